/* recon: compares a site's records of what ran with the bank's of what was charged. Pure.
 *
 * The caller collects both sides for a period (and what either has of a job that the other side has within it:
 * `outside`), and Slurm's accounting where there is one. The answer is one row per difference, with what puts
 * it right where there is one right answer. Everything lives in the caller's arena. O(n log n). */
#ifndef NUI_BANK_CLI_RECON_H
#define NUI_BANK_CLI_RECON_H

#include "bank/cli/sacct.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/nui/v1/stats.pb-c.h"

enum recon_class {
    RECON_MISSING_AT_BANK, /* it ran, and nothing was charged */
    RECON_MISSING_AT_SITE, /* it was charged, and the site has no record of it */
    RECON_AMOUNT_DIFF,     /* processors, times or the amount differ */
    RECON_LATE,            /* recorded long after its end */
    RECON_DUPLICATE,       /* charged twice for one time */
    RECON_STALE_HOLD,      /* a hold for what has ended */
    RECON_RATE_DIFF,       /* priced with another card than its hold's, or the one in force */
    RECON_EXPIRED_USE,     /* paid from an allocation that had ended before it began */
    RECON_BY_HAND,         /* charged by an operator, not by the site */
    RECON_UNSEEN,          /* Slurm ran it, the site has no record of it */
    RECON_NOT_IN_SLURM,    /* the other way round */
    RECON_SLURM_DIFF,      /* processors or time differ between the two */
    RECON_CLASSES,
};
const char *recon_class_name (enum recon_class kind); /* "MISSING_AT_BANK" … */

enum recon_remedy {
    RECON_DECIDE,  /* a person has to */
    RECON_WAIT,    /* it is in the site's outbox */
    RECON_CHARGE,  /* what the site has, which the bank makes up to */
    RECON_RELEASE, /* the hold */
    RECON_REFUND,  /* the charge, all of it */
};
const char *recon_remedy_name (enum recon_remedy remedy); /* "decide" … */

struct recon_run {
    const Nui__Local__V1__Run *m; /* with its charge */
    bool outside;
};

struct recon_job {
    const Nui__Bank__V1__JobRecord *m;
    bool outside;
};

struct recon_books {
    struct arena *arena;
    struct recon_run *run; /* sorted by recon_compare and recon_strangers */
    uint32_t run_count;
    struct recon_job *job;
    uint32_t job_count;
    Nui__Local__V1__OpenRun *const *open;
    size_t open_count;
    Nui__Bank__V1__HoldItem *const *hold; /* of the site */
    size_t hold_count;
    bool holds_settled; /* `open` is complete: else nothing is said of holds */
    const struct sacct_job *slurm;
    uint32_t slurm_count;
    bool has_slurm;
    time_us first; /* the site's records begin here; 0: there are none */
    time_us from, to, now;
    duration_us late; /* more than this is LATE */
};

/* Strings belong to the books. */
struct recon_row {
    enum recon_class kind;
    enum recon_remedy remedy;
    const char *site_job, *component, *user, *account, *hold_id;
    uint32_t incarnation;
    uint64_t charge_op;             /* the charge that is meant; 0: none */
    time_us since;                  /* when what it is about ended, or should have */
    int64_t site_ps_us, bank_ps_us; /* processor-microseconds; -1: that side has nothing */
    credit_micro amount;            /* charged less refunded, or held */
    const char *text;
    const struct recon_run *run; /* NULL: none */
};

/* Site job ids that only one side has within the period, to be looked up at the other; each once. */
uint32_t recon_strangers (struct recon_books *books, const char ***at_bank_out,
                          const char ***at_site_out, uint32_t *at_site_count_out);
/* By class, then job. */
uint32_t recon_compare (struct recon_books *books, struct recon_row **out);

#endif
