/* forecast_i: what the parts of forecast.h share: surveys and answers (forecast.c), which answer stands and
 * why it moved (forecast_answers.c), the record and the history (forecast_record.c). */
#ifndef NUI_LOCAL_SVC_FORECAST_I_H
#define NUI_LOCAL_SVC_FORECAST_I_H

#include "local/svc/forecast/forecast.h"

enum {
    TOLD_PER_SURVEY = 50, /* metaschedulers hear of so many moved jobs at most */
    SIZES = 24,
    LENGTHS = 10,
    QUOTED_MAX = 256, /* answers about jobs that may yet come */
};

/* Kinds of answers: a job's first one; what it was told later; where an asker wanted another method, that
 * method's name; KIND_TABLE: from the table of shapes, before it came. */
#define KIND_FIRST "first"
#define KIND_LATER "later"
#define KIND_TABLE "table"

/* What a waiting job was told. */
struct told {
    uint64_t number;
    time_us given;             /* the first; 0: nothing yet */
    struct estimate raw, said; /* then, from `given` */
    struct estimate shown;     /* what stands: the last that it was told, from shown_at */
    time_us shown_at;
    time_us confirmed; /* when it was last seen to stand */
    char moved[288];   /* what had moved it */
    bool stored;       /* the first is on disk */
    bool due;          /* `shown` is a later one that is not */
    bool later;        /* there are others than the first on disk */
    bool queued;       /* in forecast.unwritten */
    char class_name[STORE_NAME_MAX];
    UT_hash_handle hh;
};

/* A start that is not yet in the store. */
struct began {
    uint64_t number;
    time_us at;
};

/* How answers of a kind to jobs of a class ("": of all) held. */
struct held {
    struct held_key {
        char class_name[STORE_NAME_MAX], kind[16];
    } key;
    struct recent recent;
    UT_hash_handle hh;
};

/* An answer that was just made. */
struct answer {
    struct estimate raw, said;
    time_us at;
    enum { ANSWER_FRESH, ANSWER_SHOWN, ANSWER_TABLE } from; /* raw: of fresh ones only */
};

/* Jobs that … */
struct happened {
    uint32_t came, ended, started, withdrawn;
};

/* Given about a job that has not come. */
struct quoted {
    uint8_t uuid[16];
    uint32_t component_index, shape, user;
    struct answer answer; /* at 0: none */
};

struct forecast {
    struct estimator *estimator;
    struct scene scene; /* of the survey */
    struct simulation *simulation;
    enum {
        REST,
        QUEUE,  /* simulating, with the queue */
        TAKE,   /* its answers, job by job */
        SHAPES, /* simulating, for shapes */
    } phase;
    uint32_t taken;                  /* TAKE: the next place of the scene */
    uint64_t moved[TOLD_PER_SURVEY]; /* TAKE: grid jobs with news for metaschedulers */
    uint32_t moved_count;
    bool wanted;
    struct event *event; /* the next slice, or the next survey */
    struct event *due;
    struct told *told;
    uint64_t *unwritten; /* whose answers are not on disk, in turn */
    uint32_t unwritten_count, unwritten_cap;
    struct quoted quoted[QUOTED_MAX];
    uint32_t quoted_next;
    struct began *began;
    uint32_t began_count, began_cap;
    struct held *held;
    const struct recent *all; /* of it: first answers to all */
    struct forward_ghost shape[SIZES * LENGTHS];
    struct estimate table[SIZES * LENGTHS];
    uint32_t shape_count;
    time_us table_at;  /* TIME_US_NONE: never */
    uint64_t version;  /* of the cluster, as surveyed */
    duration_us spent; /* processor time of the survey under way */
    struct forecast_cost cost;
    time_us purged;           /* when rows were last thrown away */
    uint64_t number_max;      /* the youngest job that is known */
    struct happened happened; /* that no survey has seen: why things move */
    struct happened seen;     /* of it: by the survey under way */
    int64_t procs_told;       /* processors that were up then */
};

/* --- forecast_answers.c ----------------------------------------------------------------------- */

/* What the simulation says at `at` of a waiting job. It is the job's answer from now on where it has none or
 * differs from what stands by more than a minute and that share of what is left. True: it is, and is to
 * be written (record_write). */
bool answer_take (struct svc *svc, const struct site_job *job, const struct estimate *raw,
                  time_us at, double share);
/* Somebody asked about a waiting job: durable before it is told. answer: what to tell, which may be what
 * stands. */
int answer_asked (struct svc *svc, const struct site_job *job, enum estimate_method method,
                  struct answer *answer, struct err *err);
/* It was given about a job that may come. */
void quoted_put (struct forecast *forecast, const struct jobspec *spec,
                 const struct answer *answer);

/* --- forecast_record.c ------------------------------------------------------------------------- */

struct told *told_find (struct forecast *forecast, uint64_t number); /* NULL: it is not there */
struct told *told_of (struct svc *svc, const struct site_job *job);  /* made where it is not */
/* Its answer is to be written. */
void told_due (struct forecast *forecast, struct told *told);
/* In a transaction: its first answer, and the later one that is due. */
int told_store (struct svc *svc, const struct told *told, struct err *err);
void told_stored (struct told *told); /* that was committed */
/* In a transaction: one more answer. */
int later_store (struct svc *svc, const struct told *told, const char *kind,
                 const struct estimate *said, time_us given, const char *cause, struct err *err);

/* Rows and history from the store. */
int record_open (struct svc *svc, struct err *err);
/* Answers (`only`: of that job) and starts that are not on disk yet, RECORD_AT_ONCE of each at
 * most. */
void record_write (struct svc *svc, struct told *only);
bool record_unwritten (const struct forecast *forecast);

#endif
