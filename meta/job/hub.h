/* hub: what the rooms of the metascheduler share: its sites, its state, and the table by which the hub tells the rooms of
 * what happens. One thread; everything hangs off struct metad. Whoever adds to it adds what several rooms need: what one
 * room alone knows is a pointer to a struct of its own. */
#ifndef NUI_META_JOB_HUB_H
#define NUI_META_JOB_HUB_H

#include <event2/event.h>
#include <uthash.h>

#include "meta/core/coalloc.h"
#include "meta/link/link.h"
#include "meta/store/metastore.h"
#include "meta/conf/config.h"
#include "proto/base/arena.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/nui/v1/common.pb-c.h"
#include "proto/nui/v1/local.pb-c.h"
#include "proto/nui/v1/meta.pb-c.h"
#include "proto/rpc/rpcserver.h"

typedef Nui__Common__V1__Job JobMessage;
typedef Nui__Common__V1__Component ComponentMessage;
typedef Nui__Common__V1__Envelope EnvelopeMessage;
typedef Nui__Local__V1__JobInfo JobInfo;
typedef Nui__Meta__V1__SiteReport SiteReport;

enum { SITE_UP_S = 30 }; /* a site that reported within this is up */

struct gridjob;
struct metad;

/* One configured site; kept by pointer for the life of the daemon (a site that is taken out of the
 * configuration is only marked). */
struct site {
    /* What choosing reads of each site for each job comes first, on one cache line. */
    bool configured;
    uint32_t procs, nodes, procs_per_node; /* of the report: all, all, most */
    int64_t memory_per_node_mb;            /* most; 0: not known */
    SiteReport *report;            /* the last one, without events; NULL: never in this life */
    struct choose_estimate *table; /* its start estimates, pruned */
    uint32_t cells;
    duration_us reported_mono;
    time_us reported_us;     /* 0: never */
    duration_us clock_ahead; /* its clock, when it reported */
    char name[COALLOC_NAME_MAX];
    struct link *link;
    uint64_t acked;                 /* events applied */
    struct site_inquiry *inquiry;   /* svc/inquire.h; one allocation; NULL: none */
    bool told_lost;                 /* svc/hooks.c */
    char machine[COALLOC_NAME_MAX]; /* by its last answer, for the bank */
};

/* A part as the hub knows it: what it is told of, each NULL where it does not listen. metad.c has the table of the parts;
 * they are told in its order. The job may be changed by nobody in these calls but for the part's own fields. */
struct metad_part {
    int (*open) (struct metad *metad, struct err *err);
    void (*close) (struct metad *metad); /* also after an open that failed; the jobs are gone */
    /* The job has a number and is among metad->jobs; it is not any more; it is being freed. */
    void (*job_listed) (struct gridjob *job);
    void (*job_unlisted) (struct gridjob *job);
    void (*job_freed) (struct gridjob *job);
    /* In the transaction that inserts it, that saves it, or after which its end may be told. */
    int (*job_inserting) (struct gridjob *job, struct err *err);
    int (*job_saving) (struct gridjob *job, bool with_record, struct err *err);
    int (*job_closing) (struct gridjob *job, struct err *err);
    /* Inserted or saved; saved_state is still what it was before. */
    void (*job_saved) (struct gridjob *job, bool with_record);
    /* Its own row and components were read from disk. */
    int (*job_loaded) (struct gridjob *job, struct arena *arena, struct err *err);
    /* Something may be told of the job of that number, which need not be in memory. */
    void (*job_told) (struct metad *metad, uint64_t number);
    /* The keys of what is given to sites are others (seal.h). */
    void (*keys_changed) (struct metad *metad);
    /* From time to time while this one leads jobs of its group. */
    void (*leading) (struct metad *metad);
};

#define parts_tell(metad, event, ...)                                                              \
    do {                                                                                           \
        for (const struct metad_part *const *part_ = (metad)->parts; *part_; part_++)              \
            if ((*part_)->event)                                                                   \
                (*part_)->event (__VA_ARGS__);                                                     \
    } while (0)
/* Until one of them fails; not at all when rc is not 0. */
#define parts_ask(rc, metad, event, ...)                                                           \
    do {                                                                                           \
        for (const struct metad_part *const *part_ = (metad)->parts; *part_ && (rc) == 0; part_++) \
            if ((*part_)->event)                                                                   \
                (rc) = (*part_)->event (__VA_ARGS__);                                              \
    } while (0)

/* What goes on with a job when its timer fires: an ordinary one by single.c, one that has a record by group.c. */
struct job_driver {
    void (*wake) (struct gridjob *job);
    void (*recover) (struct gridjob *job); /* it came from disk: what was under way is not known */
};

struct metad {
    const struct metad_part *const *parts; /* ends with NULL */
    const struct job_driver *single, *group;
    struct event_base *base;
    struct log *log;
    struct tlsid *id;
    struct metad_config *config; /* replaced whole by metad_reconfigure */
    char grid[PRINCIPAL_NAME_MAX];
    struct metastore *store;
    struct contents *contents; /* svc/inputs.c: what was sent beside jobs */
    struct event *sweep_timer;
    struct sendgate gate; /* nothing leaves before what led to it is durable */
    void (*failed) (void *arg, const struct err *why);
    int (*takes_work) (void *arg, struct err *err);
    void *failed_arg;
    struct decision_log decisions;
    struct peers *peers; /* peers.h: the group; NULL: none */
    struct lead *lead;   /* lead.h; NULL: no group */
    struct site **site;  /* by name, ascending: the canonical order */
    uint32_t site_count;
    struct link *bank;
    struct gridjob *jobs;      /* live ones and those being watched, by number */
    struct gridjob *licensed;  /* gridlicence.c: those of them that ask for licences */
    struct gridjob *firm;      /* slide.c: co-allocated ones that wait for their moment */
    struct awaited *awaited;   /* waits.c: jobs that others wait for */
    struct array *arrays;      /* arrays.c: hash by number */
    struct arraybody *bodies;  /* arraybody.c: hash by the array's number */
    struct event *renew_timer; /* renew.c; NULL until the first */
    uint64_t renew_next;       /* … the job with which its next turn begins; 0: the first */
    bool renew_some;           /* … and whether any before it is still to be told */
    struct steps_run *steps;   /* steps.c */
    struct soon *soon;         /* soon.h */
    struct arriving *arriving; /* arrive.c: arrays that are not whole yet */
    struct hooks *hooks;
    struct forget *forget;     /* svc/forget.c */
    struct gridlimit *limits;  /* gridlimits.c: hash by submitter */
    struct job_share *shares;  /* share.c: hash by submitter */
    struct refusals *refusals; /* NULL until the first */
    struct metrics *metrics;   /* metrics.h */
    struct seal *seal;         /* seal.h: keys for what is given to sites */
    struct ranking *ranking;   /* NULL until the first */
    uint64_t reports; /* that came, and changes of the configuration: what is known of sites */
    duration_us started_mono;
    uint64_t watchers;
    uint32_t surveys;    /* that wait for answers */
    bool stopping;       /* links are going: their calls end and lead to nothing */
    uint64_t number_max; /* of the jobs that are known to have had numbers */
    bool in_report;      /* a report's transaction is open: job_save joins it */
};

#endif
