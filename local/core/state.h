/* state: what a cluster is made of. Internal to local/core.
 *
 * Jobs live in chunks that never move, named by slot; hot columns are arrays over slots. Nodes are
 * rows of arrays over node numbers; a row of resources has `dims` columns. A plan that was computed
 * but not yet committed has its starts applied (pending); every event takes them back first. */
#ifndef NUI_LOCAL_CORE_STATE_H
#define NUI_LOCAL_CORE_STATE_H

#include <assert.h>
#include <string.h>

#include "local/core/access.h"
#include "local/core/cluster.h"
#include "local/core/plan.h"
#include "local/core/priority.h"
#include "proto/base/bitset.h"
#include "proto/base/mem.h"

#define SLOT_NONE UINT32_MAX

enum { JOB_CHUNK = 1024, SHAPE_BUCKETS = 4096, CACHE_LINE = 64 };

/* A partition that no node is in: what is left when none may be used. */
#define NOWHERE (UINT64_C (1) << 63)
static_assert (PARTITIONS_MAX < 64, "one bit stands for nowhere");

/* What the site adds to what a req asks, for whom it is: needs.c. Compared as bytes. */
struct needs {
    uint64_t partitions;  /* partition_bit; 0: any */
    uint64_t classes;     /* of node_spec.classes */
    uint32_t class_hosts; /* hosts id; 0: any */
    uint32_t group;       /* candidate sets of nodes, one of which must do: sets.c; 0: none */
    uint32_t owner;       /* user + 1 where it matters who shares a node; 0: it does not */
    uint32_t access;      /* enum node_access, ACCESS_SITE resolved */
    int32_t speed_ppm;    /* nodes at least so fast: narrow.c */
    uint32_t zero;        /* in place of padding: needs are compared as bytes */
};
static_assert (sizeof (struct needs) == 2 * sizeof (uint64_t) + 6 * sizeof (uint32_t),
               "no padding, which may hold anything");

/* A distinct kind of task; jobs that are alike share one. There may be thousands, and a pass asks for each of
 * them what could start now: what that looks at is one line of the cache. */
struct shape {
    uint64_t now_serial;       /* pass and start for which now_count holds */
    uint64_t now_count;        /* tasks that could start now for a moment */
    uint64_t late_serial;      /* pass for which the next two hold */
    duration_us late_duration; /* for so long or longer … */
    uint64_t late_count;       /* … at most so many */
    uint32_t fit_serial;       /* node_serial for which fit_max and nodes hold */
    uint32_t access;           /* class of those who ask (access.h) */
    uint32_t twin;             /* the same for access 0; SLOT_NONE: this is it */
    uint32_t refs;             /* 0: may be taken for another */
    uint32_t had;              /* now_count at the end of the last pass in which one waited */
    /* up and suitable; word NULL: all that are up (everywhere); the twin's, if any */
    struct bitset nodes;
    int32_t procs;      /* per task */
    uint8_t shift;      /* procs is 1 << shift; UINT8_MAX: it is not */
    bool simple;        /* one processor and nothing else: any free processor will do */
    bool everywhere;    /* every node that is up suits */
    bool special;       /* shape_fit_special has a say */
    uint32_t dim_count; /* columns that it needs, procs first */
    struct needs needs;
    bool prefers; /* PREF: it likes some nodes better */
    uint8_t dim[RES_MAX];
    struct req req; /* tasks is 0; with what needs adds to task, features, exclusive */
    uint32_t bucket;
    uint32_t next;           /* in the bucket */
    uint64_t fit_max;        /* tasks that all nodes that are up take when idle */
    uint64_t barred_version; /* of the cluster, for which the next two hold: access_barred */
    uint64_t barred_tasks;
    struct rsv_id barred_rsv;
    uint32_t never_serial;   /* when (below) there was no moment for … */
    uint32_t never_tasks;    /* so many tasks … */
    duration_us never_limit; /* for so long: in that pass. 0: for how short ever, with that
                                cluster.lasting */
    uint64_t shut_serial;    /* cluster.lasting for which … (never_shut_out) */
    time_us shut_before;     /* reservations without an end that begin before then … */
    uint64_t shut_room;      /* leave room for so many tasks */
    uint64_t line_rest[5];
};
static_assert (sizeof (struct shape) % CACHE_LINE == 0, "each of an array begins with a line");

struct job {
    struct job_spec spec; /* req points to one or is owned */
    struct req one;
    uint32_t one_shape;
    uint32_t *shape; /* per req: &one_shape or owned */
    uint32_t access; /* its class, as of the last access_settle */
    enum job_state state;
    bool pending; /* started by a plan that is not committed */
    bool gone;    /* the slot is free */
    bool backfilled;
    bool kept;            /* RESERVATIONPOLICY HIGHEST: it once had a reservation */
    bool held;            /* in a pass: what it was promised is taken before its turn; deadline.c */
    uint8_t eviction;     /* enum eviction */
    bool resuming;        /* by a plan that is not committed; pending as well */
    time_us suspended_at; /* JOB_SUSPENDED */
    duration_us used;     /* of its limit, before it was suspended */
    uint32_t procs;
    time_us deferred_until;
    uint64_t ever_serial;  /* cluster.lasting for which ever holds */
    uint64_t why_serial;   /* … and for which its reason does, if that is NEVER_FREE */
    uint8_t ever;          /* enum ever: space.c */
    uint64_t again_serial; /* cluster.lasting for which … (never_recurs) */
    bool again_shut;       /* reservations that come again leave it no moment */
    time_us data_first;    /* the first moment at which its data was to be there; 0: it is */
    /* RESERVATIONRETRYTIME: its start failed, and it keeps the nodes until then */
    time_us retry_until;
    struct allocation retry; /* these; owned */
    time_us start;
    time_us limit_end;
    struct allocation allocation; /* owned */
    int64_t rate_micro;           /* what fairshare was told */
    struct job_usage usage;       /* while it runs */
    struct reason reason;
    time_us reserved_start;
    struct allocation reserved; /* owned */
    uint32_t reserved_cap;
    uint64_t stamp;   /* of the plan that last reserved for it */
    uint64_t entered; /* how many plans there had been when it entered the queue */
};

/* What the walk through the queue looks at. */
struct job_hot {
    duration_us limit;
    uint32_t tasks; /* of the only req */
    uint32_t shape; /* of the only req; SLOT_NONE: several reqs */
    uint32_t procs;
    uint8_t gate;         /* GATE_…: 0 for an ordinary job */
    uint8_t limited;      /* LIMITED_… bits: which limits could concern it */
    uint8_t reason_code;  /* as in job.reason, to see quickly that nothing changed */
    uint8_t over_soft;    /* PRIORITY_SPVIOLATION is set */
    uint32_t fits_serial; /* node_serial for which it would fit, were all idle; 0: not known */
    uint32_t licence;     /* LIMITED_LICENCE: kind and count of the only one, or LICENCE_LOOK */
};
#define LICENCE_LOOK UINT32_MAX /* look at the job: several, or very many */
enum { LICENCE_COUNT_BITS = 24 };
enum {
    GATE_HOLD = 1,
    GATE_DEFER = 2,
    GATE_DATE = 4,
    GATE_RSV = 8,
    GATE_RETRY = 16,
    GATE_DEADLINE = 32,
    GATE_DATA = 64
};
enum {
    LIMITED_ACTIVE = 1,
    LIMITED_IDLE = 2,
    LIMITED_SYSTEM = 4,
    LIMITED_ARRAY = 8,
    LIMITED_CLASS = 32,   /* its class has bounds or lists */
    LIMITED_LICENCE = 64, /* it wants licences */
};

struct running { /* sorted by end, then id */
    time_us end;
    uint64_t id;
    uint32_t slot;
    uint32_t procs;
};

struct rsv {
    struct rsv_spec spec;         /* req, acl, who and licence owned */
    struct allocation allocation; /* owned */
    struct job_id used_by;        /* SINGLEUSE: who came; 0: nobody yet */
};

struct hosts {           /* cluster_hosts_define; id - 1 is its place */
    struct bitset nodes; /* of as many bits as nodes were there: later ones are not in it */
};

struct class_rec {
    bool known;
    struct class_spec spec;
};

/* One set of nodes out of which all of a job's nodes may come. */
struct node_group_set {
    struct bitset nodes;
    uint32_t rank; /* partitions in order, then preferred sets before all others: smaller first */
    int64_t loss_ppm; /* (fastest - slowest) / slowest */
    int32_t slowest_ppm;
};

/* The candidate sets for (partitions, node set): exactly one must do. */
struct node_group {
    uint64_t partitions; /* one of these; 0: no choice of partitions */
    uint32_t pdef;       /* the partition to try first; PARTITION_ANY: by number */
    uint32_t nodeset;    /* id, or NODESET_NONE */
    uint32_t serial;     /* node_serial for which the rest holds */
    uint32_t count;
    struct node_group_set *set;
    uint32_t *first;   /* [node], with one more: where its sets begin in … */
    uint32_t *member;  /* … this */
    struct bitset all; /* the union */
    enum nodeset_priority priority;
    bool named;    /* members are listed: of equal ones the first */
    bool first_of; /* in the order of the list */
};

struct group_table {
    struct node_group *group; /* id - 1 is its place */
    uint32_t count, cap;
    struct nodeset *nodeset; /* id - 1 is its place; value owned */
    uint32_t nodeset_count, nodeset_cap;
    uint32_t site; /* what NODESET_SITE means */
    struct hosts *hosts;
    uint32_t hosts_count, hosts_cap;
    struct switch_set {
        uint32_t level;
        struct bitset nodes;
    } * switches;
    uint32_t switch_count;
};

struct node_usage {          /* load.c */
    int32_t used[RES_GRES0]; /* measured */
    bool measured;
    time_us since, at; /* TIME_US_NONE: nobody counts */
    double proc_us;    /* dedicated until `at` */
};

struct id_map {    /* job number -> slot; open addressing */
    uint64_t *key; /* 0: empty, UINT64_MAX: was removed */
    uint32_t *slot;
    uint32_t capacity; /* power of two */
    uint32_t used;     /* with removed ones */
    uint32_t count;
};

struct planner; /* what passes keep for each other: plan_state.h */

/* The timeline of the last question about the queue, for the next one: query.c. */
struct asked_last {
    struct arena *arena; /* NULL: none yet */
    struct timeline *timeline;
    uint64_t settled; /* cluster.settled, and … */
    uint32_t classes; /* … how many access classes there were */
    uint32_t uses;
};

struct cluster {
    const struct policy *policy;
    struct priority *priority;
    struct fairshare *fairshare;
    struct limits *limits;
    uint32_t dims;
    time_us now;      /* the latest moment seen */
    uint64_t version; /* any change of the schedule */
    uint64_t settled; /* any change but that of a job that comes to wait */
    uint64_t lasting; /* any change of what has no end by itself: nodes, policy, reservations and
                         jobs without end */
    struct asked_last asked;
    uint64_t seed; /* of what is drawn */

    /* nodes */
    uint32_t node_count;
    uint32_t node_cap;
    struct node_spec *node;
    uint8_t *node_state;
    int32_t *load_milli;
    struct node_usage *usage;
    bool gauged;   /* some node has a load, or says what is in use */
    bool measured; /* … and that leaves other room there than what is dedicated: loads_settle */
    bool loads_stale; /* what that was found by has changed */
    bool usage_terms; /* some PRIORITYF looks at USAGE */
    bool worth_moves; /* some PRIORITYF looks at more than configuration */
    int32_t *cap;     /* [node * dims + column]: configured */
    int32_t *free;    /* configured - dedicated; whatever the state of the node */
    uint32_t *node_jobs;
    struct bitset open; /* up, with a free processor */
    uint32_t *rank;     /* nodes in the order of a static node allocation policy; NULL: by number */
    /* changes with configuration or state of any node, and with licence_total */
    uint32_t node_serial;
    int64_t up_procs;
    int64_t up_free;      /* free processors on nodes that are up, where not negative */
    uint32_t busy_not_up; /* nodes that are not up and not idle */
    int32_t *speed;       /* the nodes' speeds, ascending, each once … */
    uint32_t speed_count; /* … and how many; 0: they make no difference (USEMACHINESPEED) */
    uint32_t speed_cap;
    bool awaited;     /* some are down and promised nevertheless: NODEDOWNSTATEDELAYTIME */
    bool units_exact; /* every node is up with one processor, free or not; false: not sure */
    bool nodes_dirty; /* the sums below and above are to be made anew: nodes_settle */
    bool unit_nodes;  /* every node that is up has one processor */
    bool age_policy;  /* the policy weighs nothing but age */
    bool qos_flagged; /* some QoS has flags, or FLAGS of another credential */
    bool fs_capped;   /* some credential has a fairshare cap */
    struct priority_totals totals; /* configured, of nodes not down */
    int32_t largest_node;          /* processors of the largest node not down */

    /* placement: needs.c, sets.c, licence.c */
    struct group_table groups;
    struct class_rec *class_rec;   /* by number of the class */
    struct features *qos_features; /* by number of the QoS: cluster_qos_set */
    uint32_t qos_features_cap;
    uint32_t class_cap;
    uint64_t partition_mask;           /* of all nodes */
    struct node_priority *priority_fn; /* id - 1 is its place */
    uint32_t priority_fn_count, priority_fn_cap;
    uint32_t job_column; /* each req takes one of it per node; 0: none */
    bool sharing;        /* it matters who shares a node */
    bool sharing_asked;  /* … because a job asked for it */
    bool needs_stale;    /* shapes are to be resolved anew: nodes_settle */
    uint32_t licence_kinds;
    int32_t licence_total[LICENCES_MAX];
    int32_t licence_free[LICENCES_MAX];

    /* shapes */
    struct shape *shape;
    uint32_t shape_count;
    uint32_t shape_cap;
    uint32_t shape_last;   /* the one interned last */
    uint32_t shape_unused; /* with refs 0 */
    uint64_t shape_serial; /* changes when one that was not in use is */
    uint32_t shape_bucket[SHAPE_BUCKETS];

    /* jobs */
    struct job **chunk;
    uint32_t chunk_count;
    uint32_t slot_count;
    uint32_t slot_cap; /* of the columns below */
    uint32_t *slot_free;
    uint32_t slot_free_count;
    struct job_hot *hot;
    struct priority_job *pj;
    struct limits_job *lj;
    double *prio_static;
    uint32_t *prio_key; /* priority_key of the last pass; not kept where by_age */
    struct id_map map;
    uint32_t *idle; /* slots by (submit, id) */
    uint32_t idle_count;
    uint32_t idle_cap;
    struct running *run;
    uint32_t run_count;
    uint32_t run_cap;
    uint64_t run_serial; /* changes with that list; 0: nobody ever ran */
    uint32_t starting_count;
    uint32_t complex_jobs; /* idle or running, for which counting processors is not exact */
    uint32_t gated;        /* idle jobs with any gate bit */
    uint32_t aged_apart;   /* idle jobs whose queue time does not count from their submission */
    uint32_t limited;      /* idle jobs that some limit could concern */
    time_us freed_at;      /* when resources last came free; TIME_US_NONE: never */
    bool qos_reserves;     /* some QoS has RESERVEALWAYS */
    uint32_t system_prioritised; /* idle jobs with a system priority */
    bool by_age;                 /* in the last pass priority was nothing but age */
    uint32_t deadlines;          /* idle jobs with a deadline */
    uint32_t *suspended;         /* slots, by when they were suspended */
    uint32_t suspended_count;
    uint32_t suspended_cap;
    struct id_map array_running; /* array -> its jobs that run */

    /* reservations, by id */
    struct rsv **rsv;
    uint32_t rsv_count;
    uint32_t rsv_cap;
    struct access *access; /* NULL until an ACL reservation is made */

    struct planner *planner;
};

static inline struct job *job_at (const struct cluster *c, uint32_t slot)
{
    return &c->chunk[slot / JOB_CHUNK][slot % JOB_CHUNK];
}

static inline int32_t *row (const struct cluster *c, int32_t *column, uint32_t node)
{
    return column + (size_t)node * c->dims;
}

/* a + b without passing the end of time */
static inline time_us time_add (time_us a, duration_us b)
{
    return b > TIME_US_MAX - a ? TIME_US_MAX : a + b;
}

/* Is that after everything that has an end? */
static inline bool endless (time_us end)
{
    return end > TIME_US_MAX / 2;
}

#define PRIORITY_SYSTEM (PRIORITY_SYSTEM_ABSOLUTE | PRIORITY_SYSTEM_RELATIVE)

/* When a running job's resources can be counted on: its limit, or a little after now. */
static inline time_us effective_end (const struct cluster *c, time_us end, time_us now)
{
    return end > now ? end : now + c->policy->poll_interval;
}

/* --- tables.c ---------------------------------------------------------------------------- */

/* As mem_grow, beginning with a cache line: for rows that are read in any order. */
void *grow_lines (void *old, uint32_t *cap, uint32_t need, size_t size);
uint32_t map_find (const struct id_map *map, uint64_t key);
void map_put (struct id_map *map, uint64_t key, uint32_t slot);
void map_remove (struct id_map *map, uint64_t key);

/* --- state.c ----------------------------------------------------------------------------- */

void idle_insert (struct cluster *c, uint32_t slot);
void idle_remove (struct cluster *c, uint32_t slot);
void run_insert (struct cluster *c, uint32_t slot);
void run_remove (struct cluster *c, uint32_t slot);

/* Dedicate (sign -1) or free (sign 1) what tasks of the job's reqs take on the nodes. */
void nodes_apply (struct cluster *c, const struct job *job, const struct allocation *a, int sign);
/* An idle job's resources, limits, fairshare, lists: as started at `start`, ending at limit_end. The
 * allocation is taken over. */
void job_enter_running (struct cluster *c, uint32_t slot, struct allocation allocation,
                        time_us start);
/* The reverse; the job is nowhere then. The allocation is freed. */
void job_leave_running (struct cluster *c, uint32_t slot);

/* Takes it off the list of suspended jobs and lets go of its nodes. */
void suspended_forget (struct cluster *c, uint32_t slot);
/* A plan let it go on and is not committed; or is. */
void suspended_again (struct cluster *c, uint32_t slot);
void suspended_over (struct cluster *c, uint32_t slot);
time_us suspended_wakeup (const struct cluster *c, uint32_t i);

/* Is another req of the allocation, before the i-th item, on the same node? */
bool earlier_req_there (const struct allocation *a, uint32_t i);

/* --- event.c ----------------------------------------------------------------------------- */

/* Every event begins here: the clock, and a plan that was not committed is taken back. */
void event_begin (struct cluster *c, time_us now);
/* What it frees may let others start: nothing kept from earlier passes holds. */
void event_frees (struct cluster *c);

struct planner *planner_create (void);
void planner_destroy (struct planner *planner);
/* Takes back the starts of a plan that was not committed. */
void planner_settle (struct cluster *c);

/* --- usage.c: a running job's part in fairshare ------------------------------------------- */

void usage_open (struct cluster *c, uint32_t slot);
void usage_close (struct cluster *c, uint32_t slot);
/* Its rate by the policy, its PE and its use as they are now; fairshare is at the present. */
void usage_rate_set (struct cluster *c, uint32_t slot);
void usage_policy_changed (struct cluster *c, uint32_t slot);

/* --- licence.c ---------------------------------------------------------------------------- */

int licences_check (const struct cluster *c, const struct licence *list, uint32_t count,
                    struct err *err);
/* Are so many free at this moment? */
int licences_left (const struct cluster *c, const struct licence *list, uint32_t count,
                   struct err *err);
/* The first kind of which too few are free now; UINT32_MAX: none. */
uint32_t licences_lack (const struct cluster *c, const struct licence *list, uint32_t count);
/* The licence that is short, for good or now (else the first). */
struct reason licences_reason (const struct cluster *c, const struct licence *list, uint32_t count);
void licences_apply (struct cluster *c, const struct job *job, int sign);

/* --- nodes.c ----------------------------------------------------------------------------- */

void nodes_settle (struct cluster *c);
/* nodes_settle, then access_settle: before anything is asked. */
void cluster_settle (struct cluster *c);

/* --- rsv.c ------------------------------------------------------------------------------- */

void rsv_free (struct rsv *rsv);
struct rsv *rsv_find (const struct cluster *c, struct rsv_id id);
/* Does it leave alone what is promised to co-allocated parts? ERR_CONFLICT names the first node. */
int rsv_spares_parts (const struct cluster *c, const struct rsv_spec *spec,
                      const struct allocation *a, struct err *err);

/* --- queue.c ----------------------------------------------------------------------------- */

/* A slot with room in all columns. */
uint32_t job_slot_take (struct cluster *c);
/* What the job is, with its shapes and its ACL class; and the reverse, before it is another one or gone. */
void job_spec_take (struct cluster *c, struct job *job, const struct job_spec *spec);
void job_spec_drop (struct cluster *c, struct job *job);
/* The columns of its slot, by the policy and the nodes that there are. */
void job_columns_fill (struct cluster *c, uint32_t slot);
/* Its shapes as the site's policy is now. */
void job_reshape (struct cluster *c, uint32_t slot);
/* Is counting processors not exact for it? */
bool job_complex (const struct cluster *c, const struct job *job);
/* PRIORITY_SYSTEM_… bits: above all others, by setspri or by its QoS (next to run, run now). */
uint32_t job_system_flags (const struct cluster *c, const struct job_spec *spec);
/* Nodes that they need at least, for NODEWEIGHT and MAXNODE. */
uint32_t reqs_nodes (const struct cluster *c, const struct req *reqs, uint32_t count);
/* --- eligible.c: why the policy keeps a job ------------------------------------------------ */
struct limits_violation;
struct reason reason_of_limit (enum reason_code code, const struct limits_violation *v);
/* False: its class takes it. */
bool reason_of_class (const struct policy *policy, const uint32_t cred[CRED_KINDS], int64_t wall_s,
                      uint32_t procs, uint32_t nodes, struct reason *why);
/* PE and static priorities, which depend on the cluster's totals, anew. */
void jobs_totals_changed (struct cluster *c);
/* Limits, rates and static priorities by the policy that is now in force. */
void jobs_policy_changed (struct cluster *c);
void gate_update (struct cluster *c, uint32_t slot);
void job_enter_idle (struct cluster *c, uint32_t slot);
/* The job is no longer in the queue (the caller sees to the idle list). */
void job_leave_idle (struct cluster *c, uint32_t slot);
/* It is in no list any more: its slot is free. */
void job_gone (struct cluster *c, uint32_t slot);
/* Nodes that are its own until then (copied), or no longer. */
void job_retry_take (struct job *job, const struct allocation *a, time_us until);
void job_retry_drop (struct job *job);
/* Room was made for the idle job on these nodes: it starts there as soon as they are free, before all
 * others, for the next minutes. */
void job_claim (struct cluster *c, uint32_t slot, const struct allocation *a);

/* --- job.c ------------------------------------------------------------------------------- */

/* After job_enter_running: the start is real now. */
void job_started (struct cluster *c, uint32_t slot, enum job_state state);
/* ERR_NOT_FOUND, with a sentence. */
int job_find (const struct cluster *c, struct job_id id, uint32_t *slot_out, struct err *err);
/* Is there enough left for the job on these nodes right now? */
int room_check (const struct cluster *c, const struct job *job, const struct allocation *a,
                struct err *err);

/* --- ask.c -------------------------------------------------------------------------------- */

int job_spec_check (const struct cluster *c, const struct job_spec *spec, struct err *err);
int req_check (const struct cluster *c, const struct req *req, uint32_t index, struct err *err);
/* Partitions and node sets are the whole job's. */
int reqs_together (const struct req *req, uint32_t count, struct err *err);
/* Does the allocation name nodes that exist, and give each req what it asks? */
int allocation_check (const struct cluster *c, const struct req *req, uint32_t req_count,
                      const struct allocation *a, struct err *err);

/* --- choose.c ----------------------------------------------------------------------------- */

/* Nodes in the policy's order where that depends on configuration only; NULL: by number. */
const uint32_t *rank_order (struct cluster *c);

/* --- timeline_make.c ---------------------------------------------------------------------- */

/* Is the allocation free over [start, end), idle jobs' reservations aside? */
int timeline_conflict (struct cluster *c, const struct rsv_spec *spec, const struct allocation *a,
                       time_us now, struct err *err);

/* --- shape.c ----------------------------------------------------------------------------- */

/* access: of those who ask (access.h). cred: whose it is; NULL: nobody's, so that no class or
 * partition list counts. */
uint32_t shape_intern (struct cluster *c, const struct req *req, uint32_t access,
                       const uint32_t *cred);
/* The same for another access class. The old one is still to be released. */
uint32_t shape_for_access (struct cluster *c, uint32_t shape, uint32_t access);
/* The same on fewer nodes: of these partitions (0: all of its own), at least so fast. To be released. */
uint32_t shape_narrowed (struct cluster *c, uint32_t shape, uint64_t partitions, int32_t speed_ppm);
void shape_release (struct cluster *c, uint32_t shape);
/* Brings fit_max and nodes up to date. */
struct shape *shape_refresh (struct cluster *c, uint32_t shape);
/* Of a node's tasks, how many it does not take. */
typedef uint32_t (*node_lost_fn) (const void *self, const struct cluster *c, const struct shape *s,
                                  uint32_t node);
/* Tasks that the best of the candidate sets takes when idle, less what is lost on each node (NULL: nothing). */
uint64_t shape_group_most (struct cluster *c, const struct shape *s, const struct node_group *group,
                           node_lost_fn lost, const void *self);
/* What is left of `fit` where nodes are counted in more than resources per task. */
uint32_t shape_fit_special (const struct cluster *c, const struct shape *s, uint32_t node,
                            const int32_t *free_row, uint32_t fit);
/* Tasks of the shape that fit in a row of free resources on a node. */
static inline uint32_t shape_fit (const struct cluster *c, const struct shape *s, uint32_t node,
                                  const int32_t *free_row)
{
    int32_t fit = free_row[RES_PROCS];

    if (fit < s->procs)
        return 0;
    fit = s->shift != UINT8_MAX ? fit >> s->shift : fit / s->procs;
    for (uint32_t d = 1; d < s->dim_count; d++) {
        int32_t one = s->req.task.v[s->dim[d]];
        int32_t have = free_row[s->dim[d]];
        if (have < (int64_t)one * fit)
            fit = have < one ? 0 : have / one;
    }
    if (__builtin_expect (s->special, 0))
        fit = (int32_t)shape_fit_special (c, s, node, free_row, (uint32_t)fit);
    if (s->req.tasks_per_node)
        return (uint32_t)fit >= s->req.tasks_per_node ? s->req.tasks_per_node : 0;
    return (uint32_t)fit;
}
/* May anything be promised there? On a node that is down from NODEDOWNSTATEDELAYTIME on. */
static inline bool node_plannable (const struct cluster *c, uint32_t node)
{
    return c->node_state[node] == NODE_UP ||
           (c->node_state[node] == NODE_DOWN && c->policy->node_down_delay > 0 &&
            !c->node[node].gone);
}
static inline bool shape_suits (const struct cluster *c, const struct shape *s, uint32_t node)
{
    return node_plannable (c, node) &&
           (s->everywhere || (s->nodes.word[node >> 6] >> (node & 63) & 1));
}

/* --- needs.c ------------------------------------------------------------------------------ */

/* in, and what the site makes of it for these credentials. out->tasks is 0. */
void needs_resolve (struct cluster *c, const struct req *in, const uint32_t *cred, struct req *out,
                    struct needs *needs);
/* Does it matter who shares a node? Marks the shapes stale when that has changed. */
void needs_sharing (struct cluster *c);
/* Is the node one for this shape, idle as it may be? */
bool needs_met (const struct cluster *c, const struct shape *s, uint32_t node);
/* Shapes of all idle jobs anew (job.c). */
void jobs_needs_changed (struct cluster *c);

/* --- speed.c ------------------------------------------------------------------------------ */

/* The speeds that there are, when nodes or the policy have changed. */
void speeds_settle (struct cluster *c);
/* How long a job of this limit has its nodes, if the slowest has this speed. */
duration_us speed_length (duration_us limit, int32_t speed_ppm);
/* … if these are its nodes (a part of a co-allocation has its slot, wherever); … on the fastest. */
duration_us length_on (const struct cluster *c, const struct job *job, const struct allocation *a);
duration_us length_least (const struct cluster *c, duration_us limit);

/* --- partition.c --------------------------------------------------------------------------- */

struct partition_use {
    int64_t v[LIMIT_KINDS];
};
/* What is active in each partition, by number, into the arena; NULL: no partition has a limit. */
struct partition_use *partition_usage (const struct cluster *c, time_us now, struct arena *arena);
/* Bits of the partitions that an idle job may use, but for those whose limits it would break; of one of
 * these *v (may be NULL) says which. */
uint64_t partition_open (const struct cluster *c, const struct partition_use *use, uint32_t slot,
                         enum limit_level level, struct limits_violation *v);

/* --- load.c ------------------------------------------------------------------------------- */

/* Does anything measured make a difference now? Most often not: nobody uses more than he was given. */
void loads_settle (struct cluster *c);

void node_usage_advance (struct cluster *c, uint32_t node); /* before what is dedicated changes */
double usage_percent (const struct cluster *c, uint32_t node);
/* Is less of the column free than is not dedicated, for what was measured? */
bool load_keeps_off (const struct cluster *c, uint32_t node, uint32_t column);

/* --- sets.c ------------------------------------------------------------------------------- */

uint32_t group_intern (struct cluster *c, uint64_t partitions, uint32_t pdef, uint32_t nodeset);
struct node_group *group_refresh (struct cluster *c, uint32_t group); /* for the present nodes */
/* Do its nodes have to be alike, not only of one partition? */
static inline bool shape_in_set (const struct cluster *c, const struct shape *s)
{
    return s->needs.group && c->groups.group[s->needs.group - 1].nodeset != NODESET_NONE;
}
bool hosts_have (const struct cluster *c, uint32_t hosts, uint32_t node);
struct bitset node_bits_new (uint32_t count); /* all clear; its words are the caller's */
void switches_free (struct group_table *t);
void groups_free (struct cluster *c);

/* Is nothing asked of nodes but an order that counting or bit sets can follow? */
static inline bool places_simply (const struct cluster *c)
{
    const struct policy *p = c->policy;

    return !c->measured && p->node_allocation != NODEALLOC_CONTIGUOUS &&
           p->node_allocation != NODEALLOC_MAXBALANCE && p->node_allocation != NODEALLOC_LOCAL &&
           !(p->node_allocation == NODEALLOC_PRIORITY && c->worth_moves) &&
           (p->task_distribution == TASKDIST_DEFAULT || p->task_distribution == TASKDIST_ARBGEO);
}

/* Are there jobs for which not each of the nodes that suit them will do at any time? */
static inline bool narrows (const struct cluster *c)
{
    return c->speed_count || c->policy->partitions_limited || c->awaited;
}

/* --- order.c ------------------------------------------------------------------------------ */

/* True where priority is nothing but age, so that the idle list is the order. */
bool policy_is_age (const struct policy *policy);

/* --- plan.c ------------------------------------------------------------------------------ */

/* For cluster_job_list and cluster_job_get. */
/* Jobs that a plan, made or in the making, has started; they count as idle until the commit. */
uint32_t planner_starts (const struct cluster *c);
uint32_t planner_idle_list (const struct cluster *c, struct job_id *out, uint32_t cap);
/* The reason of a job that waits for room. */
struct reason room_reason (const struct cluster *c, uint32_t slot);
int64_t job_priority (const struct cluster *c, uint32_t slot);
/* The higher the priority, the smaller. */
uint32_t priority_key (int64_t priority);

#endif
