/* grid: a grid of sites, metaschedulers and a bank on simulated machines, users who submit to it,
 * and the six invariants, looked at after everything that happens:
 *
 *   (i)   no component starts unless all of its transaction are firm, and a job runs in one place
 * only; (ii)  no hold outlives its lease by the site's own monotonic clock; (iii) whatever is
 * prepared, firm or running has its hold at the bank, and at the end none is left; (iv)  COMMIT and
 * ABORT say the same however often they come, and a tombstone wins; (v)   no processor is promised,
 * or used, twice for one moment; (vi) nobody asks the bank to hold for what no metascheduler gave it.
 *
 * And of the grid's licences never more are in use than its metaschedulers were given. */
#ifndef NUI_TESTS_GRID_GRID_H
#define NUI_TESTS_GRID_GRID_H

#include "sim.h"

#include "proto/nui/v1/bank.pb-c.h"
#include "proto/nui/v1/local.pb-c.h"
#include "proto/nui/v1/meta.pb-c.h"

enum {
    GRID_NODE_PROCS = 2,
    GRID_LICENCES = 7,
    GRID_JOBS_MAX = 48,
    GRID_PARTS_MAX = 5,
    GRID_SITES_MAX = 4
};

/* What a user asks for. */
struct grid_ask {
    uint32_t parts; /* 1: an ordinary job */
    uint32_t tasks[GRID_PARTS_MAX];
    const char *sites[GRID_PARTS_MAX]; /* "alpha,beta"; NULL: any */
    duration_us walltime;
    duration_us not_after; /* from now; 0: none */
    bool resubmit;         /* when its site is lost */
    uint32_t licences;     /* of the grid's, for each part */
    bool reserve;          /* a co-reservation: no process is started */
    uint32_t array,
        limit; /* so many jobs signed as one, and at one time; 0: a job by itself, any number */
};

struct grid_shape {
    uint32_t sites, metas, nodes[GRID_SITES_MAX];
    credit_micro balance;
    const char *site_lines, *meta_lines; /* more configuration; may be NULL */
    bool group;                          /* three metaschedulers decide by majority */
};

/* Once for all worlds, and at the end. */
void grid_open (void);
void grid_close (void);
void grid_worker (uint32_t number); /* in a process of its own: it has its own files */

void grid_begin (uint64_t seed, const struct grid_shape *shape);
/* A user's job, sent to that metascheduler until it is taken or refused; its number here. Of an array that of its first; the
 * others come after it. */
uint32_t grid_submit (const char *meta, const struct grid_ask *ask);
/* Its user signs other terms for a co-reservation: so long from its beginning, at all of its sites or none. Asked until it is
 * answered; grid_changed: 0 not yet, 1 done, 2 refused. */
void grid_change (uint32_t job, duration_us walltime);
int grid_changed (uint32_t job);
void grid_cancel (uint32_t job); /* the first of an array: all of it, by its id */
/* Its user asks there from now on, and nobody else, as if nothing were known. */
void grid_ask_at (uint32_t job, const char *meta);
/* From now on nothing fails any more. */
void grid_heal (void);
/* Its wall clock, not its monotonic one. */
void grid_clock_step (struct machine *machine, duration_us by);
/* Runs until every job has ended and nothing is left to settle, then looks at the whole once more.
 */
void grid_finish (void);
Nui__Meta__V1__GridJobState grid_state (uint32_t job);
const char *grid_reason (uint32_t job);
const char *grid_id (uint32_t job);    /* "grid.42" */
bool grid_job_over (uint32_t job);     /* the first of an array: all of it */
uint32_t grid_attempts (uint32_t job); /* at a co-reservation, as its metascheduler counts them */
/* Components that were launched, over all its transactions. */
uint32_t grid_launches (uint32_t job);

/* What scenarios wait for; false: it did not happen by then. */
bool grid_until (bool (*happened) (void *arg), void *arg, duration_us limit);
/* How often a site has answered that method since the world began. */
uint32_t grid_replies (const char *site, const char *method);
/* Called before a reply leaves a server: where a scenario strikes. NULL: nobody. */
extern void (*grid_strike) (struct machine *server, const char *method);
/* Parts that this site keeps something for and that have not started; UINT32_MAX: it is down. */
uint32_t grid_parts (const char *site);

/* Reservations that stand at this site for co-reservations; UINT32_MAX: it is down. */
uint32_t grid_reserved (const char *site);

/* How long the only one is at this site, and whether it has something that nobody has decided on; -1: none, or it is down. */
duration_us grid_reserved_for (const char *site, bool *wanted);

/* A node that a waiting part of this site has goes down; false: there is none. */
bool grid_node_down (const char *site);

/* From the runner; service: the site's struct svc, which may still be starting. */
void grid_on_handover (struct machine *site, void *service, const char *site_job_id);
void grid_on_launch (struct machine *site, const char *site_job_id);
void grid_on_end (struct machine *site, const char *site_job_id, bool launched, bool well);

/* bank.c: the rules that matter here (reference/bank.md), in memory, durable as they are answered.
 */
extern const struct program bank_program;
void bank_begin (credit_micro balance);
/* Whether it has this hold open; its end. */
bool bank_hold_open (const char *hold_id, time_us *expires_out);
uint32_t bank_holds_open (void);
uint32_t bank_charges (const char *grid_job_id); /* of more than nothing */
const char *bank_hold_any (void);                /* the job of one that is open */

/* faults.c: what goes wrong at random until it heals; clocks that stepped step back. */
void faults_plan (duration_us until);
void faults_end (void); /* now; again is harmless */
/* oracle.c: one more job, when all is well again, begins when a search over all sites and moments says that it can. */
void oracle_probe (void);
/* scenarios.c */
int scenarios_run (const char *only);

#endif
