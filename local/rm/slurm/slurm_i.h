/* slurm_i: what the sources of the Slurm adapter share.
 *
 *   rm_slurm.c     operations, creation
 *   slurm_poll.c   when Slurm is looked at, and what is done with what it says
 *   slurm_states.c states of jobs only, where there are many
 *   slurm_nodes.c  its nodes, partitions and licences
 *   slurm_parse.c  an entry of its JSON in our terms
 *   slurm_job.c    one job: wishes, and what is told of it
 *   slurm_resv.c   our reservations, made there as well
 *   slurm_cmd.c    Slurm's commands, one at a time
 *   slurm_done.c   ends that Slurm has forgotten: its completion file, sacct (slurm_record: a line of these)
 *   slurm_rest, slurm_api, slurm_wire, slurm_json, slurm_token, slurm_jwt   the wire */
#ifndef NUI_LOCAL_RM_SLURM_I_H
#define NUI_LOCAL_RM_SLURM_I_H

#include <uthash.h>

#include "local/rm/jobdir.h"
#include "local/rm/remover.h"
#include "local/rm/slurm/rm_slurm.h"
#include "local/rm/slurm/slurm_json.h"
#include "local/rm/slurm/slurm_rest.h"
#include "local/rm/slurm/slurm_wire.h"
#include "proto/base/arena.h"

enum { SLURM_TITLE_MAX = JOBDIR_KEY_MAX + 12 };
enum { SLURM_ID_MAX = 40, SLURM_WORD_MAX = 64, SLURM_RESV_NAME_MAX = 200, SLURM_BATCH = 32 };

enum slurm_state {
    SLURM_NONE, /* not heard of yet */
    SLURM_PENDING,
    SLURM_RUNNING,
    SLURM_SUSPENDED,
    SLURM_ENDED, /* finally */
};

/* An entry of /jobs. */
struct slurm_seen {
    struct rm_native native; /* strings in the arena it was parsed into */
    enum slurm_state state;
    char word[24];  /* COMPLETED, TIMEOUT … */
    int64_t number; /* of this record; 0: a task that has no record of its own yet */
    const char *comment, *reason, *partition;
    time_us end;
    int32_t exit_status; /* raw wait status */
    uint32_t restarts;
    int64_t priority;
    int64_t array_id;  /* 0: none */
    const char *tasks; /* "0-4%2": tasks without a record of their own; "" none */
};

/* A node as told by Slurm. Strings are owned, all in one block behind it. */
struct slurm_node {
    struct rm_node node;
    char *text;
    uint32_t threads;  /* of a core */
    uint32_t order;    /* in Slurm's own list */
    UT_hash_handle hh; /* by node.name */
};

enum slurm_phase {
    PHASE_NONE,
    PHASE_SUBMIT, /* to be submitted */
    PHASE_FIND,  /* the submission's answer was lost, or we were: it is looked for by its comment */
    PHASE_LATER, /* submitted; waits for its moment */
    PHASE_MOVE,  /* to be moved to our partition */
    PHASE_WATCH, /* moved: RUNNING is waited for */
    PHASE_BACK,  /* Slurm did not start it: to be moved back */
};

/* How far the search for a forgotten end has come: slurm_done.c. */
enum slurm_seek { SEEK_NONE, SEEK_WAITING, SEEK_FILE, SEEK_SACCT, SEEK_USAGE };

enum slurm_hold_wish { HOLD_WISH_NONE, HOLD_WISH_RELEASE, HOLD_WISH_USER, HOLD_WISH_ADMIN };

struct slurm_job {
    struct slurm *owner;
    char rm_id[SLURM_ID_MAX]; /* "" while not submitted */
    time_us submit;
    int64_t number;              /* 0: unknown */
    char job_id[JOBDIR_KEY_MAX]; /* "" while nobody told us which job of ours it is */
    uint32_t incarnation;
    char mark[RM_MARK_MAX]; /* of ours: in its comment and, the beginning, in its name */
    bool native;
    /* what Slurm said last */
    enum slurm_state state;
    char word[24], reason[SLURM_WORD_MAX];
    char partition[SLURM_WORD_MAX];
    time_us start, end;
    int32_t exit_status;
    uint32_t restarts;
    bool held;       /* priority 0 */
    char *placement; /* "n1:2,…" */
    uint64_t digest; /* of what was told in NATIVE */
    uint64_t seen;   /* number of the look */
    /* what was told */
    bool started_told, suspended_told;
    uint32_t restarts_told;
    time_us start_told;
    duration_us requeued; /* monotonic: when it was seen to wait, or run, once more; 0: not */
    time_us ran_since;    /* told before a restart of ours; 0: nothing, or it is seen to run on */
    /* wishes */
    enum slurm_phase phase;
    bool asked;                       /* we started it */
    bool refused;                     /* … and Slurm said no */
    char back_reason[SLURM_WORD_MAX]; /* of PHASE_BACK: why it was not started */
    bool cancel;
    enum slurm_hold_wish hold;
    enum slurm_seek seeking;
    bool busy;            /* a request is under way */
    bool guarded;         /* held while it runs */
    bool settling;        /* in job_settle */
    bool soon;            /* in slurm->unsettled */
    bool gone;            /* not in Slurm's list any more */
    uint64_t written;     /* looks begun before this number do not count */
    bool watched;         /* asked for by itself since then */
    duration_us deadline; /* monotonic; of PHASE_WATCH, of SEEK_USAGE */
    bool usage_asked;     /* sacct was, whatever it said */
    duration_us cpu_time; /* it said; -1: nothing */
    time_us launch_at;
    char *hosts; /* chosen: "n1,n2" */
    uint32_t host_count;
    char *class_name;   /* partition it came from, to go back to */
    char *hosts_wanted; /* the user's own, to go back to; "" none */
    uint32_t nodes_min, nodes_max;
    bool limitless; /* it named no time limit */
    duration_us walltime;
    char *submission; /* JSON of a job to be submitted */
    char *user;
    char reservation[SLURM_RESV_NAME_MAX]; /* it is started in; "": in none */
    bool joining, joined;                  /* its user is being added to that, or was */
    struct event *timer;
    struct slurm_job *soon_prev, *soon_next;
    UT_hash_handle hh;    /* by rm_id */
    UT_hash_handle hh_id; /* by key */
    UT_hash_handle hh_number;
    char key[JOBDIR_KEY_MAX];
};

struct slurm_command;

struct slurm {
    struct event_base *base;
    struct log *log;
    struct filewatch *watch;
    struct slurm_rest *rest;
    char *partition, *only /* ",a,b,": classes that are ours; NULL: all */, *slurm_conf, *bin_dir,
        *completions, *job_dir;
    bool sacct, usage, observe;
    duration_us poll_every, patience;
    rm_event_fn on_event;
    void *arg;
    int dir; /* job_dir */
    struct remover *remover;
    /* nodes */
    struct slurm_node *nodes, *nodes_now; /* by name; now: of the look under way */
    struct rm_node *node_list;
    uint32_t node_count;
    bool nodes_since,
        nodes_unchanged; /* of the look under way: they were asked for so; they are as before */
    char *licences;      /* "matlab:4,ansys:2" */
    struct strbuf licences_now; /* of the look under way */
    char default_class[SLURM_WORD_MAX];
    bool default_told; /* it is Slurm's own default, or the first of the list */
    struct slurm_class {
        char name[SLURM_WORD_MAX];
    } * classes;
    uint32_t class_count;
    /* jobs */
    struct slurm_job *jobs;  /* by rm_id */
    struct slurm_job *by_id; /* by key */
    struct slurm_job *by_number;
    struct slurm_job *unsettled; /* settled soon */
    struct event *settle_timer;
    /* looking */
    struct event *poll_timer, *watch_timer;
    bool watching;    /* states are asked for */
    uint64_t look;    /* number of the present or last look at jobs */
    bool light;       /* it asks for changes only */
    bool look_partly; /* the list under way is one of changes */
    uint32_t entries; /* of it */
    bool looking;
    bool look_again; /* when this one is done */
    bool telling;    /* all is read, and being told */
    time_us look_begun, look_since;
    uint32_t look_lightly; /* looks since the last whole one */
    bool fresh;
    bool ever_looked;
    char why[400];   /* it is not, as said last */
    time_us settled; /* all that ended before is told of; 0: unknown */
    duration_us retry;
    struct arena *arena; /* of the batch */
    struct rm_native batch[SLURM_BATCH];
    uint32_t batch_count;
    /* reservations */
    struct slurm_resv *resvs; /* by name */
    char resv_prefix[96];     /* "nui-alpha-"; "": none are made */
    uint64_t resv_look;       /* number of the present or last look at them */
    bool resv_wished;         /* it is known what there is to be */
    char *user;               /* in whose name all is done */
    /* commands */
    struct slurm_command *commands;
    /* forgotten ends */
    struct slurm_done *done;
};

/* --- slurm_parse.c ------------------------------------------------------------------------ */

int slurm_parse_job (const json_t *object, const char *our_partition, struct arena *arena,
                     struct slurm_seen *out, struct err *err);
/* A state in a field: one word, or a list of a state and its flags. */
int slurm_parse_state (const json_t *object, const char *what, const char *field, char word[24],
                       enum slurm_state *out, struct err *err);
/* A new node; NULL with err. */
struct slurm_node *slurm_parse_node (const json_t *object, const char *our_partition,
                                     const char *only, struct err *err);
/* Is a partition among those of ",a,b,"? NULL: all are. */
bool slurm_class_ours (const char *only, const char *name);
void slurm_node_free (struct slurm_node *node);
/* Calls fn for each number of "1,3-7:2%4"; at most cap. Returns how many there were. */
uint32_t slurm_tasks_each (const char *text, uint32_t cap, void (*fn) (void *arg, uint32_t task),
                           void *arg);
/* How an end is classified. */
void slurm_end_of (const char *word, int32_t exit_status, struct rm_status *out);
/* Slurm's "gres:gpu:tesla:2(S:0-1)" as "gpu:2,gpu.tesla:2", each name once. */
void slurm_gres (const char *text, struct strbuf *out);

/* --- slurm_poll.c ------------------------------------------------------------------------- */

int slurm_poll_init (struct slurm *slurm, struct err *err);
void slurm_poll_stop (struct slurm *slurm);
void slurm_look (struct slurm *slurm, bool whole); /* now, or when the present one is done */
void slurm_look_told (struct slurm *slurm);        /* no job is unsettled */
void slurm_unreachable (struct slurm *slurm, const struct slurm_answer *answer);
/* For an entry that no look found: room in the batch and the arena, the entry (its strings in the arena),
 * and what is in the batch told. */
void slurm_batch_room (struct slurm *slurm);
void slurm_seen_take (struct slurm *slurm, const struct slurm_seen *seen);
void slurm_batch_tell (struct slurm *slurm);
void slurm_watch (struct slurm *slurm); /* some job is about to change */
void slurm_timer_set (struct event *timer, duration_us d);

/* --- slurm_states.c ----------------------------------------------------------------------- */

/* Asks for the states of these jobs ("34,33_2"; NULL: of all), then for the fields of those whose state is another than
 * was told last: each goes to on_job. then: from the loop; ERR_LIMIT: too many, of which none was asked for. */
void slurm_states_ask (struct slurm *slurm, const char *ids,
                       int (*on_job) (void *arg, const char *key, json_t *object, struct err *err),
                       void (*then) (struct slurm *slurm, const struct slurm_answer *answer));

/* --- slurm_nodes.c ------------------------------------------------------------------------ */

/* Entries of /partitions, /nodes and /licenses. */
int slurm_on_partition (void *arg, const char *key, json_t *object, struct err *err);
int slurm_on_node (void *arg, const char *key, json_t *object, struct err *err);
int slurm_on_licence (void *arg, const char *key, json_t *object, struct err *err);
void slurm_nodes_begin (struct slurm *slurm);
/* All of them were there (or are as before): told. */
void slurm_nodes_settle (struct slurm *slurm, bool unchanged);
void slurm_nodes_stop (struct slurm *slurm);

/* --- slurm_job.c -------------------------------------------------------------------------- */

int slurm_jobs_init (struct slurm *slurm, struct err *err);
void slurm_jobs_stop (struct slurm *slurm);
struct slurm_job *slurm_job_new (struct slurm *slurm, const char *rm_id, time_us submit);
void slurm_job_free (struct slurm_job *job);
struct slurm_job *slurm_job_by_rm (struct slurm *slurm, const char *rm_id);
struct slurm_job *slurm_job_by_id (struct slurm *slurm, const char *job_id, uint32_t incarnation);
void slurm_job_name (struct slurm_job *job, const char *job_id, uint32_t incarnation);
/* Name of a job of ours in Slurm, "alpha.17.3f09c2aa": all that a record of its end has of it. */
void slurm_title (const char *key, const char *mark, char out[SLURM_TITLE_MAX]);
/* Ours of that name. */
struct slurm_job *slurm_job_by_title (struct slurm *slurm, const char *title);
void slurm_job_rm_id (struct slurm_job *job, const char *rm_id);
/* The partition that a job in ours came from; Slurm's default one when that was before a restart of ours. */
const char *slurm_job_class (const struct slurm_job *job);
/* What a look said of it, or what was asked of it alone, after its last request was answered. */
void slurm_job_seen (struct slurm_job *job, const struct slurm_seen *seen, bool asked);
/* Tells what is to be told, does what is to be done next. May free the job. */
void slurm_job_settle (struct slurm_job *job);
void slurm_job_finish (struct slurm_job *job, const struct rm_status *status);
void slurm_job_settle_in (struct slurm_job *job, duration_us d); /* from the loop */
/* In one of the loop's next turns, a few in each. */
void slurm_job_settle_soon (struct slurm_job *job);

/* --- slurm_resv.c ------------------------------------------------------------------------- */

int slurm_reserve (void *self, const struct rm_reservation *list, uint32_t count, struct err *err);
/* An entry of /reservations, and the end of them. */
int slurm_resv_on_object (void *arg, const char *key, json_t *object, struct err *err);
void slurm_resv_looked (struct slurm *slurm);
void slurm_resv_settle (struct slurm *slurm);
/* Fills job->reservation and sees to it that its user may use that. False: not yet; it is settled again. */
bool slurm_resv_join (struct slurm_job *job);
/* It was started, or was not: of a part its user is in no longer. */
void slurm_resv_leave (struct slurm_job *job);
void slurm_resv_stop (struct slurm *slurm);

/* --- slurm_cmd.c -------------------------------------------------------------------------- */

/* Runs BIN/args[0] …, one at a time, in order; what it printed (at most 64 MiB; more is a failure) goes to on_done,
 * with its exit code (-1: it could not be run). */
void slurm_command (struct slurm *slurm, const char *const *args,
                    void (*on_done) (void *arg, int code, const char *text), void *arg);
void slurm_commands_stop (struct slurm *slurm);

/* --- slurm_done.c ------------------------------------------------------------------------- */

/* Looks for the end of a job that Slurm has forgotten; slurm_job_finish or RM_EVENT_UNKNOWN
 * follows.
 */
void slurm_done_find (struct slurm_job *job);
/* Asks sacct what a job used that has ended; it is settled again when that is known, or not to be had. */
void slurm_done_usage (struct slurm_job *job);
void slurm_done_stop (struct slurm *slurm);
int slurm_done_init (struct slurm *slurm, struct err *err);
/* Jobs that ended since then and that nobody here has heard of are told of as native ones. */
void slurm_done_catch_up (struct slurm *slurm, time_us since);
bool slurm_done_idle (const struct slurm *slurm); /* no catching up is under way */

#endif
