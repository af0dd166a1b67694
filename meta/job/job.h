/* job: one job of the grid, in memory and on disk.
 *
 * A live job stays in metad->jobs until it has ended and nobody watches it; an ended one is loaded
 * when asked for and goes away again at the next turn of the loop. Whoever changes a job calls
 * job_save, which is durable when it returns 0; watchers then hear of it. A callback that may fire
 * later keeps the number, never the pointer. */
#ifndef NUI_META_JOB_JOB_H
#define NUI_META_JOB_JOB_H

#include "meta/job/arraybody.h"
#include "meta/job/hub.h"

/* How far an ordinary job has come. Stored as numbers: never renumber. */
enum single_phase {
    SINGLE_CHOOSE = 0,  /* no site has it */
    SINGLE_SENDING = 1, /* sent to `site` as `site_attempt`; the answer is not known */
    SINGLE_PLACED = 2,  /* the site has it */
};

/* How far a move to another site has come (move.h). Stored as numbers: never renumber. */
enum move_stage {
    MOVE_NONE = 0,
    MOVE_SENDING = 1,
    MOVE_WITHDRAWING = 2,
    MOVE_GOING = 3,
    MOVE_UNDOING = 4,
};

/* Its owner's hold while no site has it; the site has the one that was signed. Stored as numbers: never renumber. */
enum job_hold {
    JOB_HOLD_AS_SIGNED = 0, /* none here, and its site keeps it */
    JOB_HELD = 1,
    JOB_RELEASED = 2, /* also from the one that was signed */
};

/* Where one of an array stands (place/arrays.h). Not durable: follows from what is. */
enum array_turn {
    ARRAY_ASIDE = 0, /* held, delayed, another's, or over */
    ARRAY_WAITS = 1, /* its turn has not come */
    ARRAY_CHOOSES = 2,
    ARRAY_PLACED = 3,
};

struct jobmove {
    enum move_stage stage;
    char site[COALLOC_NAME_MAX];
    char site_job_id[COALLOC_NAME_MAX];
    uint32_t attempt;
    uint32_t shape;
    credit_micro price;
};

struct jobpart {
    char name[COALLOC_NAME_MAX];
    char site[COALLOC_NAME_MAX];
    char site_job_id[COALLOC_NAME_MAX];
    JobInfo *info;                      /* as last heard; may be NULL */
    Nui__Common__V1__Peer *peer;        /* from PREPARE; may be NULL */
    char next_job_id[COALLOC_NAME_MAX]; /* both of gridjob.slide's PREPARE */
    Nui__Common__V1__Peer *next_peer;
    Nui__Meta__V1__SiteAnswers *answers; /* answers.h; may be NULL */
    bool dirty;
    bool asked; /* lead.h: its site has told how it is; not durable */
};

struct lead_wait;

/* Who of a group of coordinators leads the job; NULL: no group, or the job is older than it (lead.h). */
struct joblead {
    char leader[COALLOC_NAME_MAX];
    bool open;                          /* as on disk: no majority is known to have its end */
    Nui__Meta__V1__GridJobState before; /* the state before its end */
    /* Of one that is led here. Not durable but for the ballot. */
    uint64_t ballot;
    uint64_t voted;                   /* what a majority has */
    bool stands;                      /* a majority has had some state of it; on disk */
    uint64_t has[QUORUM_MEMBERS_MAX]; /* which version each has at this ballot */
    uint32_t sending, paused;         /* members, as bits: asked; not again before the next tick */
    uint32_t whole;                   /* that have its envelope */
    uint32_t elsewhere;               /* where what was signed is another job */
    bool listed;                      /* in metad->lead's unvoted */
    bool blocked;                     /* its driver is to be called when it may send */
    struct gridjob *prev, *next;
    struct lead_wait *waits;
    /* Taken over: what its sites said before has to be asked for, once. */
    bool taken;
    uint32_t asked_attempt; /* an ordinary one: of which it is known */
};

struct gridjob {
    UT_hash_handle hh;
    struct metad *metad;
    uint64_t number;
    char id[48]; /* "grid.42"; of an array "grid.42[7]" */
    EnvelopeMessage *envelope;
    JobMessage *job;
    struct arraybody *body; /* of an array: what both of them are views of */
    char submitter[PRINCIPAL_URI_MAX];
    time_us submit_us;
    Nui__Meta__V1__GridJobState state;
    struct coalloc_reason reason;
    time_us start_us;
    bool start_is_estimate;
    time_us end_us;
    credit_micro price;
    uint32_t attempts;
    uint32_t retries; /* retry.h */
    time_us retry_us;
    duration_us contact_us; /* loss.h; 0: sites keep it */
    uint64_t change;
    bool cancel_wanted;
    enum job_hold held;
    /* An ordinary job. */
    enum single_phase place;
    char site[COALLOC_NAME_MAX];
    uint32_t shape; /* in which of its sizes it is there */
    uint32_t site_attempt;
    uint32_t attempt_last; /* highest that any site was given */
    struct jobmove move;
    uint32_t failures; /* for the back-off; not durable */
    /* Sites that said no, until none else is left, and how often any did in all; not durable. */
    char (*refused_by)[COALLOC_NAME_MAX];
    uint32_t refused_count, refusals;
    /* One of an array that was signed as one (array.h). */
    uint64_t array;   /* the number of its first; 0: of none */
    uint32_t element; /* 1 + its index */
    enum array_turn turn;
    struct gridjob *array_prev, *array_next;
    enum array_turn
        limit; /* gridlimits.c: PLACED counts, WAITS for others of its user. Not durable */
    struct gridjob *limit_prev, *limit_next;
    /* A co-allocated one. */
    struct coalloc_record *record;
    struct terms *terms;          /* group/terms.h; may be NULL. Not durable */
    struct coalloc_record *slide; /* slide.h; may be NULL */
    bool slide_stored;            /* one is on disk */
    bool firm_listed;             /* waits for its moment: in metad->firm */
    struct gridjob *firm_prev, *firm_next;
    duration_us slid_mono; /* when an earlier slot was last asked for; 0: not yet. Not durable */
    struct jobpart *part;
    uint32_t part_count;
    bool licensed; /* asks for licences, of the grid or of a site: in metad->licensed */
    struct gridjob *licensed_prev, *licensed_next;
    struct joblead *lead; /* lead.h; NULL: no group */
    /* Not durable. */
    Nui__Meta__V1__GridJobState counted;     /* in which state metrics.h has it; 0: in none */
    bool renew_untold;                       /* its site may not know its delegation: renew.h */
    Nui__Meta__V1__GridJobState saved_state; /* as on disk */
    uint32_t saved_retries;
    bool reloaded; /* the driver recovers at the next wake-up */
    bool unsaved;  /* the last write failed: nothing is done on it until one succeeds */
    duration_us wake_mono, slide_wake_mono; /* when either record is to be stepped; 0: not set */
    duration_us look_mono; /* when to look for a better site, or at its latest start; 0: not set */
    bool busy;             /* a call or survey of its driver is under way */
    struct event *timer;
    struct survey *survey; /* answers at hand from Submit */
    struct watcher *watchers;
};

bool job_ended (const struct gridjob *job);
/* Another of the group leads it: nothing is done with it here. */
bool job_is_elsewhere (const struct gridjob *job);
/* Whether it was submitted to this member. */
bool job_is_own (const struct gridjob *job);
/* What the sites compare: grows with each leader, and each start of one. */
uint64_t job_epoch (const struct gridjob *job);
/* It has ended as far as is known here; it is not known whether it will be so. */
bool job_untold (const struct gridjob *job);
/* ERR_UNAVAILABLE or ERR_CONFLICT, with who leads it; ERR_UNAVAILABLE, too, where its end is not known to stand. */
int job_led_here (const struct gridjob *job, struct err *err);
/* It has ended, and that may be told. */
bool job_over (const struct gridjob *job);
/* As it may be told. */
Nui__Meta__V1__GridJobState job_state (const struct gridjob *job);
/* Driven by a record: several components, or one that is reserved for its licences (gridlicence.h). */
bool job_is_group (const struct gridjob *job);
/* Who goes on with it: single.c or group.c. */
const struct job_driver *job_driver (const struct gridjob *job);
/* Until when sites take the job, by its signature or its delegation. */
time_us job_expires (const struct gridjob *job);
/* The job's envelope with another delegation, to be freed with job_envelope_free. */
EnvelopeMessage *job_envelope_with (const struct gridjob *job,
                                    const ProtobufCBinaryData *delegation);
void job_envelope_free (const struct gridjob *job, EnvelopeMessage *envelope);
/* As it is kept: of all of an array the same bytes, since which of them it is stands in its row. */
struct metastore_blob job_envelope_pack (const struct gridjob *job, const EnvelopeMessage *envelope,
                                         struct arena *arena);
/* One of an array. The body is used once more; its number and element are set. */
struct gridjob *job_create_element (struct metad *metad, struct arraybody *body, uint32_t element,
                                    const ProtobufCBinaryData *delegation, const char *submitter,
                                    struct err *err);
/* A new job around an envelope and its body, both taken over also on failure. */
struct gridjob *job_create (struct metad *metad, EnvelopeMessage *envelope, JobMessage *body,
                            const char *submitter, struct err *err);
/* Inserts it with its record and gives it its number, which is *number_out; or some of an array, in the order of their
 * indexes, or none of them: the first says of which array, by its number (0: it is the array's first). ERR_EXISTS: that uuid is
 * there as number_out. */
int job_insert (struct gridjob *const *job, uint32_t count, uint64_t *number_out, struct err *err);
/* "grid.42[1-10000]" of the array of which it is one, in the arena. */
char *job_array_id (const struct gridjob *job, struct arena *arena);
/* In memory, or from disk (then it goes away at the next turn unless it is live or watched).
 * NULL with ERR_NOT_FOUND. */
struct gridjob *job_get (struct metad *metad, uint64_t number, struct err *err);
/* Only what is in memory. */
struct gridjob *job_live (struct metad *metad, uint64_t number);
/* Makes it durable (with dirty parts, and the record when asked) and tells the watchers. Within a
 * report's transaction it only writes: the report tells with job_tell once it is durable. */
int job_save (struct gridjob *job, bool with_record, struct err *err);
void job_tell (struct gridjob *job);
/* Forgets what is in memory and takes what is on disk: after a write that failed. */
void job_reload (struct metad *metad, uint64_t number);
/* Frees what has ended and is not watched, soon (never inside the caller). */
void job_retire (struct gridjob *job);
void job_destroy (struct gridjob *job);
void jobs_destroy (struct metad *metad);

void job_reason (struct gridjob *job, const char *code, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
/* Of a job that has completed: what becomes of the files that are taken away (StageOut, StageOutFailed). */
void job_files_reason (struct gridjob *job);
/* Sets the state; end time when it ends. */
void job_end (struct gridjob *job, Nui__Meta__V1__GridJobState state);
/* (Re)arms the job's timer; its driver is called. */
void job_timer (struct gridjob *job, duration_us delay);
/* Index of a component by name, or UINT32_MAX. */
uint32_t job_part (const struct gridjob *job, const char *name);

/* Builds the message in the arena; valid as long as job and arena. */
Nui__Meta__V1__JobStatus *job_status (struct gridjob *job, struct arena *arena);
/* Sends the present status, then one on each change, until the job has ended. */
void job_watch (struct gridjob *job, struct rpccall *call);

/* Ends every Watch of it: the metascheduler stops. */
void job_unwatch (struct gridjob *job);

bool info_ended (const JobInfo *info);

#endif
