/* fakegrid: a real nui-meta process between fake sites and a fake bank that live in the test process.
 *
 * The fake sites follow the rules of local.proto (keys, tombstones, firm and expired, tokens) and can
 * be told to misbehave. They check on every Start that each part of the transaction is firm. One
 * libevent loop; fake_until runs it until a condition holds, or fails the test at its deadline. */
#ifndef NUI_TESTS_UNIT_META_FAKEGRID_H
#define NUI_TESTS_UNIT_META_FAKEGRID_H

#include "proto/base/quantity.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/nui/v1/local.pb-c.h"
#include "proto/nui/v1/meta.pb-c.h"
#include "proto/rpc/rpcclient.h"
#include "proto/rpc/rpcserver.h"

enum {
    FAKE_SITES = 3,
    FAKE_SITES_SOME = 12,
    FAKE_SITES_MAX = 36,
    FAKE_PARTS_MAX = 256,
    FAKE_SINGLES_MAX = 64
};

struct fakegrid;

enum fake_state {
    FAKE_PREPARED = 1,
    FAKE_FIRM,
    FAKE_RUNNING,
    FAKE_ENDED,
    FAKE_TOMB,
    FAKE_RELEASED,
    FAKE_EXPIRED
};

struct fake_part {
    uint8_t transaction[16];
    char component[64];
    char grid_job_id[64];
    uint32_t attempt;
    enum fake_state state;
    bool was_firm;
    uint8_t token_hash[32];
    time_us slot, launch;
    uint32_t number;
    struct event *timer;
    struct fakesite *site;
};

struct fake_single {
    char grid_job_id[64];
    char component[64];
    uint32_t attempt;
    uint32_t number;
    bool ended;
};

struct fakesite {
    struct fakegrid *grid;
    char name[16];
    struct rpcserver *server;
    struct rpcclient *meta; /* for reports */
    struct tlsid *id;
    uint32_t procs;
    struct fake_part part[FAKE_PARTS_MAX];
    uint32_t part_count;
    struct fake_single single[FAKE_SINGLES_MAX];
    uint32_t single_count;
    uint32_t number;
    /* events not acknowledged */
    Nui__Local__V1__JobInfo *event[256];
    uint64_t event_first; /* sequence of event[0] */
    uint32_t event_count;
    uint32_t reports_outstanding;
    /* how to misbehave */
    time_us start_estimate;   /* relative to now */
    duration_us since_report; /* by which that has become later */
    const char *taken_of; /* it says that it has taken jobs of this metascheduler; NULL: of none */
    uint64_t taken;       /* up to grid.N */
    uint64_t events_next; /* the number of its next event, as it says; 0: it does not */
    bool restored;        /* it says truly which events it has, and which number the next gets */
    bool forgets;         /* Job knows none */
    bool denies_numbers;  /* … and every number is another metascheduler's job */
    bool denies;          /* … or nobody's business here */
    Nui__Local__V1__JobState tells; /* how Job says that any is */
    uint32_t calls_job;
    uint32_t prepare_no;       /* so many times NO, with */
    duration_us next_feasible; /* this far from the slot */
    uint32_t commit_expired;   /* so many times EXPIRED */
    uint32_t submit_no;        /* so many times refused */
    uint32_t not_ready;        /* so many times not ready */
    bool hold_runs;            /* jobs do not end by themselves */
    char mute[16];             /* this method is not answered */
    char invalid[16];          /* … or is refused, as a message that makes no sense */
    bool infeasible;
    uint32_t room;        /* so many components fit together; 0: it does not answer for sets */
    bool query_later;     /* Query is answered a little later */
    uint32_t query_procs; /* Query says so many; 0: as many as tasks */
    const char *machine;  /* and this machine, at which the bank's price is threefold; NULL: none */
    credit_micro price_least; /* Query says that it takes a job for no less */
    bool unfunded;            /* nobody pays for a job here */
    bool submit_released;     /* as the last Submit said */
    char cancelled_for[80];   /* as the last Cancel said */
    /* what was seen */
    uint32_t calls_query, calls_prepare, calls_commit, calls_abort, calls_ready, calls_start,
        calls_release, calls_submit, calls_cancel, calls_renew;
    uint32_t queries_open, queries_most; /* at one moment */
    char renewed[32]; /* the grid's job that has been given another hand-over last */
    uint32_t launches;
};

struct fakegrid {
    struct event_base *base;
    char *dir;
    struct testca *ca;
    uint32_t sites;
    struct fakesite site[FAKE_SITES_MAX]; /* alpha, beta, gamma, more03 … */
    struct rpcserver *bank;
    struct tlsid *bank_id, *alice_id, *bob_id, *operator_id;
    bool bank_funded;
    int64_t bank_rate[FAKE_SITES_MAX]; /* price per processor-second */
    bool bank_mute;                    /* it does not answer */
    uint32_t calls_quote;
    uint8_t secret[32]; /* of the bank: hand-overs are checked by it */
    uint32_t calls_key;
    bool bank_keyless;   /* it gives no key */
    char quoted[4096];   /* what it was asked: "alpha:2 beta:2@fast; all alpha:2;" */
    char kill_on[16];    /* the first call of this method at any site kills nui-meta */
    bool impatient;      /* a submission that nobody can take is given up soon */
    uint32_t kill_after; /* … after so many such calls */
    bool killed;
    int meta_pid;
    uint16_t meta_port;
    struct rpcclient *alice, *bob, *operator_;
    uint32_t violations;
};

struct fakegrid *fake_create (uint32_t sites);
void fake_destroy (struct fakegrid *grid);
void fake_meta_start (struct fakegrid *grid); /* and waits until it serves and sites reported */
/* Replaces the configuration (NULL: as it was made) by a rename. */
void fake_meta_config (struct fakegrid *grid, const char *text);
void fake_meta_kill (struct fakegrid *grid); /* kill -9 and wait */
void fake_meta_stop (struct fakegrid *grid); /* SIGTERM; asserts exit code 0 */
/* Fails the test, with what it waits for, when cond does not hold within four times that (against hangs only). */
#define fake_until(grid, cond, arg, timeout) fake_wait (grid, #cond " of " #arg, cond, arg, timeout)
void fake_wait (struct fakegrid *grid, const char *what, bool (*cond) (void *arg), void *arg,
                duration_us timeout);
extern const struct rpc_method fake_site_methods[]; /* self: the site */
void fake_report (struct fakesite *site);
/* To before its first ordinary job: those and their events are forgotten, and all numbers begin anew. */
void fake_restored (struct fakesite *site);
/* Of the ordinary job that came last, reported at once. */
void fake_job_event (struct fakesite *site, Nui__Local__V1__JobState told);

/* A job of n components c0, c1 … each of procs processors for walltime seconds; sites[i] NULL: any. */
struct fake_job {
    uint32_t n;
    const char *sites[8];
    uint32_t procs;
    uint32_t walltime_s;
    int64_t deadline_us;
    int64_t cost_max_micro;
    const uint8_t *uuid; /* NULL: a fresh one */
    bool no_script;
    bool held;
    const char *name;
    const char *after_end_of; /* a job of the grid; NULL: none */
    uint32_t array;  /* an array of so many, of which one may be with a site; 0: no array */
    bool array_free; /* … or all of them */
};
Nui__Common__V1__Envelope *fake_envelope (struct fakegrid *grid, struct tlsid *signer,
                                          const char *submitter, const struct fake_job *job);
/* Blocking, by alice. Returns the rpc error code; id_out gets "grid.N". */
int fake_submit (struct fakegrid *grid, const struct fake_job *job, char id_out[32],
                 struct err *err);
/* The caller frees with nui__meta__v1__job_status__free_unpacked. Asserts. */
Nui__Meta__V1__JobStatus *fake_status (struct fakegrid *grid, const char *id);
/* Runs the loop until the job is in the state; sites say again what was not acknowledged. */
void fake_until_state (struct fakegrid *grid, const char *id, Nui__Meta__V1__GridJobState state);
/* No site holds, runs or has a tombstone-less prepared part. */
bool fake_nothing_held (const struct fakegrid *grid);

#endif
