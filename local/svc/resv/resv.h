/* resv: administrators' reservations as the site keeps them: records, names, and the core's copies.
 *
 * A record is durable before it is acknowledged. After a restart they are there before the jobs, so that
 * what ran inside one does again. In the core their numbers begin at RSV_ADMIN_BASE, names that jobs may
 * ask for at RSV_NAME_BASE; below are co-allocated parts, which have their jobs' numbers. */
#ifndef NUI_LOCAL_SVC_RESV_H
#define NUI_LOCAL_SVC_RESV_H

#include <uthash.h>

#include "local/conf/acl.h"
#include "local/conf/standing.h"
#include "local/core/reserve.h"
#include "local/store/local_store.h"

#define RSV_NAME_BASE (UINT64_C (1) << 61)
#define RSV_ADMIN_BASE (UINT64_C (1) << 62)

enum { SITE_RSVS_MAX = 10000 };

struct svc;

struct site_rsv {
    struct store_rsv rec;
    struct acl_list acl;
    struct acl_entry owner;
    UT_hash_handle hh; /* by rec.number */
};

int resv_recover (struct svc *svc, struct err *err);
/* Out of the core too; the store is left as it is. */
void resv_forget_all (struct svc *svc);

/* Places, makes durable, makes true. *rec is taken over when 0 is returned. `what` is for the audit
 * log. */
struct admin_caller;
int resv_create (struct svc *svc, const struct admin_caller *caller, struct store_rsv *rec,
                 struct site_rsv **out, struct err *err);
/* Within a transaction: what a co-allocated part has had on these nodes, and gave back to the core just now, becomes a
 * reservation. *rec is taken over when 0 is returned. Should the transaction fail: resv_disown. */
int resv_adopt (struct svc *svc, struct store_rsv *rec, const struct allocation *a,
                struct site_rsv **out, struct err *err);
void resv_disown (struct svc *svc, struct site_rsv *rsv);
/* Within a transaction: another end, no more tasks, other rights (as rec.acl has them) for a reservation of this kind. The core
 * first: should the transaction fail, the daemon has to stop. ERR_CONFLICT and nothing is changed, where others have its nodes
 * later. Uses call_arena. */
int resv_change (struct svc *svc, struct site_rsv *rsv, time_us end, uint32_t tasks,
                 const char *acl, struct err *err);
/* The one of a co-allocated part, by its job; NULL: none. */
struct site_rsv *resv_of_part (struct svc *svc, uint64_t job);
int resv_release (struct svc *svc, const struct admin_caller *caller, struct site_rsv *rsv,
                  struct err *err);
struct site_rsv *resv_find (struct svc *svc, const char *name);
/* The first one here of a co-reservation, by the group's id; NULL: none is. */
struct site_rsv *resv_of_group (struct svc *svc, const char *group);
/* One of the core's; NULL: not an administrator's. */
struct site_rsv *resv_of_core (struct svc *svc, uint64_t core);

/* svc->standing, with the site's names. */
void resv_standing_open (struct svc *svc);
/* After a restart, before the first roll: the nodes they had are theirs again. */
void resv_standing_regain (struct svc *svc);
/* standing_roll, and what has changed is in the store. */
void resv_standing_roll (struct svc *svc, time_us now);
/* An ACL reservation by the name that showres prints; 0: there is none. */
uint64_t resv_core (struct svc *svc, const char *name);

/* --- resv_charge.c: who pays for what a reservation keeps idle --- */

/* Into rec->charge: "phys" or "phys:bob"; without a user the owner, if that is one, else the caller. */
int resv_charge_parse (struct svc *svc, const char *charge, const char *owner, const char *caller,
                       struct store_rsv *rec, struct err *err);
/* "phys:bob", or "", into the arena. */
char *resv_charge_text (struct svc *svc, uint64_t core, struct arena *arena);
int resv_charge_recover (struct svc *svc, struct err *err);

/* Any number of the core's as a name, for reasons; NULL: a co-allocated part, or nothing known. */
const char *resv_name (void *svc, uint64_t core);

/* Does it have less on nodes that are up than it wants? Of a co-allocated part: is a node of it not up? */
bool resv_unfilled (struct svc *svc, uint64_t core);

/* Of what it has, on nodes that are up: tasks, or whole nodes. */
uint32_t resv_tasks_up (struct svc *svc, const struct allocation *a, bool whole);

#endif
