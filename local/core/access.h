/* access: which of the administrators' reservations admit whom. access_admits is for everybody, the
 * rest internal to local/core.
 *
 * Who is alike in the eyes of all ACLs together is one access class, a small number; class 0 is
 * admitted nowhere, and the only one while there is no such reservation (which costs nothing then).
 * A class is part of a shape, so that every answer that is kept per shape is kept per class, and a
 * timeline shows each class its own view (view.c): that is the one place where ACLs keep anybody off
 * a node. A SINGLEUSE reservation that has its user is closed to everyone else there.
 *
 * Anything that changes an ACL reservation makes this dirty; access_settle brings everything up to
 * date. Costs: O(ACL entries + distinct jobs · reservations that name one of their credentials). */
#ifndef NUI_LOCAL_CORE_ACCESS_H
#define NUI_LOCAL_CORE_ACCESS_H

#include "local/core/types.h"

struct cluster;
struct rsv;
struct job;

struct grant {
    uint32_t rsv; /* place in access.open */
    uint8_t affinity;
};

struct access_class {
    uint32_t count;
    struct grant *grant; /* by place */
    uint32_t next;       /* in the bucket */
};

/* What one reservation keeps on one node. */
struct fence {
    uint32_t rsv;  /* place in access.open */
    bool whole;    /* all that is there, whatever it is */
    uint32_t part; /* its own number among those that are not whole */
    time_us start, end;
    struct resources keep; /* where not whole */
};

struct access {
    bool dirty;
    bool fences_dirty; /* nodes have changed: what is whole may be another */
    uint32_t count;    /* reservations */
    struct rsv **open; /* of kind ADMIN, by id */
    uint32_t cap;
    /* Those with an entry for a credential, side by side. */
    uint32_t cred_count[CRED_KINDS];
    uint32_t *first[CRED_KINDS];
    uint32_t *list[CRED_KINDS];
    uint32_t *single; /* those with SINGLEUSE */
    uint32_t single_count;
    uint32_t *always; /* those to be looked at whoever asks */
    uint32_t always_count;
    int64_t *bound[2]; /* of durations, processors: sorted, each once */
    uint32_t bound_count[2];
    uint32_t *stamp, stamp_now; /* by place: looked at for this question */
    struct access_class *class;
    uint32_t class_count, class_cap;
    uint32_t *bucket; /* of classes, by content */
    struct access_memo *memo;
    uint32_t memo_count, memo_cap;
    /* fences by node */
    uint32_t *fence_first; /* [node count + 1] */
    struct fence *fence;
    uint32_t part_count;
    uint32_t *fenced; /* nodes that have some */
    uint32_t fenced_count;
    uint32_t *fenced_at; /* [node]: place in fenced + 1; 0: none */
};

void access_free (struct access *access);
/* The reservations have changed. */
void access_changed (struct cluster *c);
/* Everything up to date: classes, the jobs' shapes, fences. After nodes_settle. */
void access_settle (struct cluster *c);
uint32_t access_of (struct cluster *c, const struct who *who);
struct who access_who (const struct cluster *c, const struct job *job);
uint32_t access_of_job (struct cluster *c, const struct job *job);
/* The class to which reservations with ACCESS=SHARED alone are open. */
uint32_t access_shared (struct cluster *c);
/* Does this reservation's ACL with its flags let them in, and with what affinity? */
bool access_admits (const struct rsv_spec *rsv, const struct who *who, uint8_t *affinity_out);
/* The class's grant for the reservation at this place; NULL: not admitted. */
const struct grant *access_grant (const struct access *access, uint32_t class, uint32_t rsv);

/* Would the reservations that keep this shape's class out leave room for so many tasks more, now?
 * *rsv_out: the first of them. Kept per shape until something changes. */
bool access_barred (const struct cluster *c, uint32_t shape, uint64_t missing,
                    struct rsv_id *rsv_out);
/* The same for a question between two passes, of which nothing is kept. */
bool access_barred_now (const struct cluster *c, uint32_t shape, uint64_t missing,
                        struct rsv_id *rsv_out);

struct timeline;
/* SINGLEUSE: does one of its nodes, and something of its time, lie in the reservation? */
bool rsv_lies_on (const struct rsv *rsv, const struct job *job);
/* report.c, rsv.c: a job starts: SINGLEUSE reservations that it uses are its own from now on. tl may be NULL. True: there are
 * some, so that others see their nodes otherwise than before. */
bool rsv_use (struct cluster *c, const struct job *job, struct timeline *tl);
/* It did not start after all. */
void rsv_unuse (struct cluster *c, struct job_id job);
/* It has ended: what it used is gone. */
void rsv_used_up (struct cluster *c, struct job_id job);

/* Is it an owner's of some reservation with OWNERPREEMPT that stands now? May it evict the victim from
 * one, whatever their priorities are? */
bool access_owner (const struct cluster *c, const struct job *job);
bool access_owner_evicts (const struct cluster *c, const struct job *job, const struct job *victim);

#endif
