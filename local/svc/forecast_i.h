/* forecast_i: what the halves of forecast.h share: surveys and answers (forecast.c), the record and the
 * history (forecast_record.c). */
#ifndef NUI_LOCAL_SVC_FORECAST_I_H
#define NUI_LOCAL_SVC_FORECAST_I_H

#include "local/svc/forecast.h"

enum {
    TOLD_PER_SURVEY = 50, /* metaschedulers hear of so many moved jobs at most */
    SIZES = 24,
    LENGTHS = 10,
};

/* What a waiting job was told. */
struct told {
    uint64_t number;
    time_us given; /* the first; 0: nothing yet */
    struct estimate raw, said; /* then, from `given` */
    struct estimate last;      /* now, from last_at */
    time_us last_at;
    time_us shown;        /* the median that was last told to others, as a moment */
    char moved[256];
    bool stored; /* its row is on disk */
    char class_name[STORE_NAME_MAX];
    UT_hash_handle hh;
};

/* A start that is not yet in the store. */
struct began {
    uint64_t number;
    time_us at;
};

struct class_recent {
    char name[STORE_NAME_MAX];
    struct recent recent;
    UT_hash_handle hh;
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
    uint32_t unstored; /* of told: given, and not on disk */
    struct began *began;
    uint32_t began_count, began_cap;
    struct recent all;
    struct class_recent *classes;
    struct forward_ghost shape[SIZES * LENGTHS];
    struct estimate table[SIZES * LENGTHS];
    uint32_t shape_count;
    time_us table_at; /* TIME_US_NONE: never */
    uint64_t version; /* of the cluster, as surveyed */
    duration_us spent; /* processor time of the survey under way */
    struct forecast_cost cost;
    time_us purged;   /* when rows were last thrown away */
    uint64_t number_max; /* the youngest job that is known */
    uint32_t came, left, began_since, withdrawn; /* since the last survey: why things move */
    int64_t procs_told; /* processors that were up then */
};

struct told *told_find (struct forecast *forecast, uint64_t number); /* NULL: it is not there */
struct told *told_of (struct forecast *forecast, uint64_t number);   /* made where it is not */
void told_drop (struct forecast *forecast, struct told *told);
/* The first answer: what it will be scored by. */
void told_give (struct svc *svc, struct told *told, const struct site_job *job,
                const struct estimate *raw);

/* Rows and history from the store. */
int record_open (struct svc *svc, struct err *err);
/* First answers and starts that are not on disk yet, RECORD_AT_ONCE of each at most. */
void record_write (struct svc *svc, struct told *first);
bool record_unwritten (const struct forecast *forecast);

#endif
