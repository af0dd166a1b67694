/* native_i: what the sources of the adapter for RMCFG TYPE=NATIVE share.
 *
 *   rm_native.c      operations, creation
 *   native_submit.c  a job that came through the grid, as the resource manager is to have it
 *   native_job.c     one job: wishes, and what is told of it
 *   native_look.c    when the resource manager is asked, and what is done with what it says
 *   native_call.c    calls: programs, HTTP and Wiki, bounded in time and bytes (native_socket.c, native_wiki.c)
 *   native_parse.c   what is answered, in our terms
 *   native_url.c     where a call goes
 *
 * A call that was not answered well may have been heard all the same: what became of it shows in the next look. Calls about one
 * job are made one at a time, and looks that began before the last of them was answered do not count for it. */
#ifndef NUI_LOCAL_RM_NATIVE_I_H
#define NUI_LOCAL_RM_NATIVE_I_H

#include <event2/event.h>
#include <uthash.h>

#include "local/rm/jobdir.h"
#include "local/rm/native/native_parse.h"
#include "local/rm/native/native_url.h"
#include "local/rm/remover.h"
#include "proto/base/strbuf.h"

enum { NATIVE_TITLE_MAX = JOBDIR_KEY_MAX + 12, NATIVE_BATCH = 32 };

enum native_phase {
    NATIVE_SETTLED, /* nothing is under way */
    NATIVE_SUBMIT,  /* to be submitted */
    NATIVE_FIND,    /* perhaps submitted: it is looked for by its name there */
    NATIVE_LATER,   /* submitted; waits for its moment */
    NATIVE_START,   /* to be started */
    NATIVE_WATCH,   /* started, they say: that it runs is waited for */
    NATIVE_BACK,    /* it was not started: not to be any more */
};

enum native_hold_wish {
    NATIVE_HOLD_NONE,
    NATIVE_HOLD_RELEASE,
    NATIVE_HOLD_USER,
    NATIVE_HOLD_ADMIN
};
enum native_suspend_wish { NATIVE_AS_IT_IS, NATIVE_TO_SUSPEND, NATIVE_TO_RESUME };

struct native_job {
    struct native *owner;
    char rm_id[NATIVE_ID_MAX]; /* "" while not submitted */
    time_us submit;
    char job_id[JOBDIR_KEY_MAX]; /* "" while nobody told us which job of ours it is */
    uint32_t incarnation;
    char key[JOBDIR_KEY_MAX];
    char mark[RM_MARK_MAX]; /* of ours; its beginning stands in its name there */
    bool ours;              /* it came through the grid */
    /* what was said last */
    enum native_state state;
    bool removed;
    time_us start, end;
    time_us run; /* what its run is known by: DISPATCHTIME where it is said, else start */
    int32_t exit_code;
    duration_us cpu_time; /* -1: not said */
    char *placement;      /* "n1:2,…" */
    uint64_t digest;      /* of what was told in NATIVE; 1: its end was */
    uint64_t seen;        /* number of the look */
    /* what was told */
    bool started_told, suspended_told;
    time_us start_told; /* as told */
    time_us start_seen; /* … and as it was said: job->run then */
    time_us ran_since;  /* told before a restart of ours; 0: nothing, or it is seen to run on */
    /* wishes */
    enum native_phase phase;
    bool asked;     /* we started it */
    bool cancel;    /* it is to end */
    bool cancelled; /* … and has been told so */
    bool requeue;
    enum native_hold_wish hold, hold_said; /* … and what the last call said of it */
    enum native_suspend_wish suspend, suspend_said;
    bool busy; /* a call is under way */
    bool settling, soon;
    bool gone;            /* not in the list any more */
    uint64_t written;     /* looks begun before this number do not count */
    uint64_t counted;     /* number of the last one that did */
    duration_us deadline; /* monotonic: of its submission, then of its start */
    duration_us again_at; /* monotonic: a call that came to nothing is made again then */
    uint32_t tries;       /* … and had before */
    time_us launch_at;
    char *tasklist; /* chosen: "n1,n1,n2" */
    char *user;     /* for whom it runs */
    duration_us walltime;
    char **submission; /* words of JOBSUBMIT, NULL at the end */
    char why[200];     /* of BACK: why it was not started */
    bool refused;      /* … and that was an answer */
    struct event *timer;
    struct native_job *soon_prev, *soon_next;
    UT_hash_handle hh, hh_id; /* by rm_id, by key */
};

/* What came of a call. */
enum native_heard {
    NATIVE_DONE,
    NATIVE_REFUSED, /* and nothing was changed */
    NATIVE_UNHEARD, /* hang, flood, garbage: whatever may have been done */
};

struct native_said {
    enum native_heard heard;
    char why[400];      /* not DONE: a sentence */
    const char *text;   /* of a query: all of it, NUL-terminated */
    size_t len;         /* … */
    const char *job_id; /* of another: JOBID of its answer; "" */
};

/* job: NULL of a query; of another it does not come when the job is gone. */
typedef void (*native_said_fn) (struct native *native, struct native_job *job,
                                const struct native_said *said);

struct native {
    struct event_base *base;
    struct log *log;
    struct rm_ops ops; /* what is not configured is NULL */
    char *site, *job_dir;
    char *launcher; /* of nui run; NULL: none */
    bool observe;
    duration_us poll_every, patience;
    rm_event_fn on_event;
    void *arg;
    int dir; /* job_dir */
    struct remover *remover;
    /* calls */
    struct arena *places; /* strings of the next two */
    struct native_url url[RM_CALLS];
    const char *const *env; /* NULL at the end */
    struct native_call *calls;
    uint32_t calls_running; /* of those that are no query */
    struct curl_loop *curl; /* NULL: nothing is asked by HTTP */
    /* nodes */
    struct arena *node_arena;
    struct strbuf node_text; /* what they were read from */
    const struct rm_node *nodes;
    uint32_t node_count;
    const char *licences;
    /* jobs */
    struct native_job *jobs;      /* by rm_id */
    struct native_job *by_id;     /* by key */
    struct native_job *unsettled; /* settled soon */
    /* looking */
    struct event *poll_timer, *turn_timer;
    uint64_t look;           /* number of the present or last one */
    uint64_t whole;          /* … and of the last one of which all was told */
    struct strbuf job_text;  /* what the last whole one read */
    bool job_text_again;     /* the same text is to be read once more */
    struct arena *job_arena; /* of the entries */
    struct native_seen *entry;
    uint32_t entry_count, entry_at;
    bool looking, look_again, reading, telling;
    time_us look_begun;
    bool fresh, ever_looked;
    char why[500]; /* it is not, as said last */
    time_us since; /* ends of jobs that nobody here knows are told from then on */
    time_us settled;
    char since_word[40]; /* "NUI_SINCE=…": ends from then on are wanted */
    duration_us retry;
    struct rm_native batch[NATIVE_BATCH];
    uint32_t batch_count;
};

/* --- native_call.c ------------------------------------------------------------------------ */

/* wiki: all goes over the socket of SERVER. */
int native_calls_init (struct native *native, const struct rm_config *config, bool wiki,
                       struct err *err);
void native_calls_stop (struct native *native);
bool native_can (const struct native *native, enum rm_call call);
/* words: NULL at the end, read before this returns. account: in whose name a program is run; NULL: ours. fn (NULL: nobody
 * asks) comes from the loop, once. While a job's call is under way the job is busy. */
void native_call (struct native *native, enum rm_call call, struct native_job *job,
                  const char *account, const char *const *words, native_said_fn fn);

/* --- native_look.c ------------------------------------------------------------------------ */

int native_look_init (struct native *native, struct err *err);
void native_look_stop (struct native *native);
void native_look (struct native *native); /* now, or when the present one is done */
void native_turn_soon (struct native *native);
void native_timer_set (struct event *timer, duration_us d);

/* --- native_job.c ------------------------------------------------------------------------- */

struct native_job *native_job_new (struct native *native, const char *rm_id, time_us submit);
void native_job_free (struct native_job *job);
void native_jobs_stop (struct native *native);
struct native_job *native_job_by_rm (struct native *native, const char *rm_id);
struct native_job *native_job_by_key (struct native *native, const char *key);
struct native_job *native_job_by_id (struct native *native, const char *job_id,
                                     uint32_t incarnation);
void native_job_name (struct native_job *job, const char *job_id, uint32_t incarnation);
void native_job_rm_id (struct native_job *job, const char *rm_id);
void native_job_handed (struct native_job *job, const char *rm_id); /* told, too */
/* What a look said of it. */
void native_job_seen (struct native_job *job, const struct native_seen *seen);
/* Tells what is to be told, does what is to be done next. May free the job. */
void native_job_settle (struct native_job *job);
void native_job_settle_in (struct native_job *job, duration_us d);
void native_job_settle_soon (struct native_job *job); /* in one of the loop's next turns */
void native_job_finish (struct native_job *job, const struct rm_status *status);
void native_job_unknown (struct native_job *job);     /* told, and freed */
void native_job_not_started (struct native_job *job); /* told, with its why */

/* --- native_submit.c ---------------------------------------------------------------------- */

/* Its name there, "alpha.17.3f09c2aa". */
void native_title (const char *key, const char *mark, char out[NATIVE_TITLE_MAX]);
/* Is that the name of a job of ours, whichever; key_out: of which. */
bool native_title_ours (const struct native *native, const char *title,
                        char key_out[JOBDIR_KEY_MAX]);
/* Of one that was handed over before: for whom, where, when and how long, as its directory says. */
void native_recall (struct native_job *job);
int native_start_ours (struct native *native, const struct rm_job *spec, struct err *err);
/* Did it end at once, by a fault of its script? */
bool native_ran_into_mistake (const struct native_job *job, const struct rm_status *status,
                              char *text);
char *native_tasklist (const struct rm_job *spec); /* malloc'ed */

#endif
