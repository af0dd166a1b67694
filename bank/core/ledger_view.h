/* ledger_view: the part of the ledger that a batch of requests touches, and what deciding them made of it. The store loads
 * the first and writes the second; the operations read and change it. Everything lives in the view's arena. */
#ifndef NUI_BANK_CORE_LEDGER_VIEW_H
#define NUI_BANK_CORE_LEDGER_VIEW_H

#include "bank/core/ledger_request.h"
#include "proto/base/arena.h"

struct ledger_alloc {
    int64_t id, account_id;
    time_us valid_from, valid_to;
    credit_micro credit_limit;
    credit_micro granted, settled, posted, held;
    int64_t grant_id;   /* 0: none */
    const char *giver;  /* the agency whose grant or deposit it is, wherever it went; "": of none */
    int64_t split_from; /* the allocation that it was split off; 0: none */
    const char *reference; /* of a deposit; "": none */
    struct ledger_scopes scopes;
    const char *description; /* new ones */
    int64_t op_id;           /* new ones */
    bool is_new, dirty, limit_dirty, end_dirty;
};

struct ledger_account {
    int64_t id;
    const char *name;
    int64_t project_id; /* 0: a system account */
    const char *project;
    const char *makers;      /* ",nsf,dfg,": agencies that made its project, or one above */
    const int64_t *ancestor; /* projects above its own, the nearest first */
    uint32_t ancestor_count;
    struct ledger_fallback *fallback; /* in order */
    uint32_t fallback_count;
    struct ledger_scopes scopes; /* users only */
    struct ledger_alloc **alloc; /* by valid_to, then the narrower, then id (rule H2) */
    uint32_t alloc_count, alloc_cap;
    bool is_debt; /* what a project owes; no operation names it */
    bool closed;
    int64_t closed_op_id; /* of the close */
    int64_t op_id;        /* new ones */
    bool is_new, fallbacks_dirty, scopes_dirty, closed_dirty, name_dirty;
    bool whole; /* loaded with all that it may fall back to */
};

/* A hold of a signed job, and as what it was paid for: the same job under another name is a replay, and
 * more holds than it may have are none of its user's. */
struct ledger_signed {
    const char *identity;
    struct uuid uuid;
    uint8_t hash[LEDGER_HASH_BYTES];
    const char *grid_job, *meta, *part;
    bool meta_group; /* of a new one: as it was asked for */
    int64_t hold_id; /* below 0: the usage (its number, negative) that ran without one */
    time_us expires; /* of the signed job: not taken for the first time from then on */
    bool is_new;
    struct ledger_signed *next; /* a later hold of the same signed job … */
    struct ledger_signed *last; /* … known of the first */
    struct ledger_job job;      /* that was held for: the site's names of it */
    /* Loaded ones: the hold, and the run that it was for. */
    bool open, well, ran; /* ran: something was charged for it, or nothing */
    time_us hold_expires;
    int64_t used;              /* processor-microseconds, once it has ended */
    credit_micro amount, paid; /* held when it was made, or made longer; charged and not disputed */
};

struct ledger_leg {
    int64_t allocation_id;
    credit_micro amount, settled, released;
    bool is_new; /* of a hold that is not */
};

struct ledger_hold {
    int64_t id, op_id;
    struct ledger_job job;
    int64_t asked_id, account_id;
    const char *identity;
    int64_t procs;
    duration_us walltime;
    time_us start, expires;
    uint32_t rate_version;
    int64_t rate_ppm;
    int64_t extra_parts, qos_ppm, class_ppm, group_ppm; /* pinned with it */
    int64_t pe_milli;
    const char *qos, *machine; /* that it was priced with */
    const char *nodes;         /* "fat=4 thin=12": processors by node type; "": not known */
    credit_micro amount;
    bool open;
    /* that was signed; 0: nobody signed it, and what follows is not known */
    duration_us walltime_max;
    credit_micro cost_max; /* of all that the signed job is paid for; 0: no bound */
    struct uuid uuid;      /* of the signed job */
    bool summed;           /* the store has looked for what else the signed job is paid for */
    struct ledger_leg *leg;
    uint32_t leg_count;
    bool is_new, dirty, extended;
};

struct ledger_usage {
    int64_t id;
    struct ledger_job job;
    int64_t hold_id; /* 0: unheld */
    int64_t account_id;
    const char *identity, *qos, *machine;
    int64_t procs;
    time_us start, end;
    credit_micro total;
    credit_micro disputed; /* of it: beyond what was signed */
    bool final;
    bool is_new, dirty;
};

struct ledger_person {
    int64_t id;
    const char *identity;
    unsigned roles; /* of enum ledger_role */
    int64_t op_id;  /* new ones */
    bool is_new;
};

struct ledger_membership {
    int64_t id;
    int64_t project_id, person_id;
    const char *role;
    time_us valid_from, valid_to;
    int64_t op_id; /* new ones */
    bool is_new, dirty;
};

struct ledger_project {
    int64_t id;
    const char *name;
    const char *description;
    const char *makers;      /* as of an account */
    int64_t leads;           /* how many there are now */
    int64_t height;          /* of the tree below it; 0: there is none */
    const int64_t *ancestor; /* projects above it, the nearest first */
    uint32_t ancestor_count;
    int64_t op_id; /* new ones */
    bool is_new, parent_dirty;
};

/* Something was frozen, or is no longer; the newest one of a thing is in force. */
struct ledger_freeze {
    enum ledger_freezable what;
    int64_t id, op_id;
    bool frozen;
    const char *name, *reason, *who;
    time_us since;
    bool is_new;
};

struct ledger_funder {
    int64_t id;
    const char *references; /* of its grants, each between two line ends */
    const char *name;
    const char *description;
    int64_t op_id; /* new ones */
    bool is_new;
};

struct ledger_grant {
    int64_t id, funder_id, account_id;
    int64_t alloc_id; /* that it was given as */
    const char *funder;
    const char *reference;
    const int64_t *part; /* accounts that have one; of a loaded one */
    uint32_t part_count;
    int64_t op_id;         /* new ones */
    int64_t revoked_op_id; /* 0: it is not */
    bool is_new, revoked_dirty;
};

struct ledger_rate {
    const char *site;
    uint32_t version;
    time_us from;
    int64_t ppm;
    enum price_measure measure;
    bool successful_only;
    const struct ledger_factor *factor; /* as they were published */
    uint32_t factor_count;
    const struct price_band *band; /* the factors that are times of day */
    uint32_t band_count;
    int64_t op_id; /* new ones */
    bool is_new;
};

/* A quote that keeps the rates of its sites for its user. */
struct ledger_card {
    const char *site;
    uint32_t version;
    credit_micro price; /* of what was asked for there; known of new ones only */
};

struct ledger_pin {
    int64_t id, op_id;
    const char *identity;
    time_us expires; /* for holds and for starts of what was not held */
    bool reusable;
    const char *account;     /* that it was asked for */
    int64_t project_id;      /* the account's; 0: there is no such account */
    const int64_t *ancestor; /* projects above that, the nearest first */
    uint32_t ancestor_count;
    const struct ledger_card *card;
    uint32_t card_count;
    const char *job, *job_name; /* that used it first, and its name for people; NULL: none yet */
    time_us cancelled;          /* when; 0: it is not */
    int64_t cancel_op_id;       /* cancelled just now; 0: not */
    bool is_new;
};

struct ledger_site {
    const char *name;
    int64_t earned_account_id; /* LEDGER_ID_SITES until the site has a rate */
    int64_t earned_alloc_id;
    uint64_t acked;
    uint64_t ahead[LEDGER_AHEAD_MAX]; /* ascending */
    uint32_t ahead_count;
    bool dirty;
    bool claims; /* may name users of jobs that nobody signed */
    struct ledger_refunds refunds;
    struct ledger_nodes_given given;
    int64_t right_op_id; /* of a change; 0: none */
};

/* An operation that was decided before: its answer as bytes. */
struct ledger_op {
    int64_t id;
    enum ledger_kind kind;
    const char *client, *on_behalf;
    struct uuid key;
    uint8_t hash[LEDGER_HASH_BYTES];
    const char *site, *job, *note;
    time_us effective_at;
    int status;
    const void *outcome;
    size_t outcome_len;
    bool is_new;
};

/* A charge that may be given back, by the operation that made it. */
struct ledger_paid_leg {
    uint32_t leg;
    int64_t allocation_id;
    credit_micro amount, refunded;
    bool overrun;
};

struct ledger_paid {
    int64_t op_id, charge_id;
    const char *site, *job;
    int64_t earned_account_id, earned_alloc_id; /* who got it */
    credit_micro due;                           /* to be given back, by the policy for its site */
    struct ledger_paid_leg *leg;
    uint32_t leg_count;
};

/* A row of reconciliation. */
struct ledger_recon {
    int64_t id, op_id;
    const char *site, *owner;
    struct ledger_finding finding;
    bool closed;    /* one way or the other */
    bool explained; /* closed by somebody */
    bool is_new, found;
};

/* ---- effects that have no place above ---- */

struct ledger_recon_event {
    int64_t op_id, row_id;
    const char *kind; /* "owned", "closed", "gone" */
    const char *owner;
    int64_t cured_op;
    const char *note;
};

/* What an operation concerns whether or not it moves credits there: "account", "project", "grant". */
struct ledger_about {
    int64_t op_id, id;
    const char *what;
};

/* A name that an account has given up. */
struct ledger_name {
    int64_t op_id, account_id;
    const char *name;
};

/* Given to a person, or taken away. */
struct ledger_role_change {
    int64_t op_id, person_id;
    enum ledger_role role;
    bool given;
};

/* A hold or charge at the rates of a quote. */
struct ledger_pin_use {
    int64_t op_id, quote_id;
    const char *job;
};

struct ledger_refund {
    int64_t op_id, charge_id;
    uint32_t charge_leg;
    int64_t allocation_id;
    credit_micro amount;
};

struct ledger_entry {
    int64_t op_id;
    uint32_t leg;
    char layer; /* 'P' or 'H' */
    int64_t account_id, allocation_id;
    credit_micro amount;
    time_us effective_at;
};

struct ledger_charge_leg {
    int64_t allocation_id;
    credit_micro amount;
    const char *source; /* HELD AVAILABLE CREDIT OVERRUN SUSPENSE DISPUTED */
};

struct ledger_charge {
    int64_t id, op_id, usage_id, hold_id;
    uint64_t sequence;
    int64_t procs;
    time_us start, end;
    duration_us cpu;
    struct ledger_ran ran;
    bool final, successful;
    credit_micro refund_due; /* of all that its job was charged: see nui-site(1) */
    uint32_t rate_version;
    int64_t rate_ppm;
    credit_micro amount, total, released;
    const char *formula;
    struct ledger_charge_leg *leg;
    uint32_t leg_count;
};

/* A growing array of pointers in the arena. */
struct ledger_vec {
    void **item;
    uint32_t count, cap;
};

struct ledger_ids {
    int64_t op, hold, usage, charge, allocation, account, project, person, membership, funder,
        grant, recon, quote;
};

struct ledger_index; /* hash tables over the arrays below */

struct ledger_view {
    struct arena *arena;
    struct arena *keep; /* of accounts, allocations, persons, memberships, projects, rates, sites */
    time_us now;        /* recorded_at of everything decided over this view */
    struct ledger_ids next; /* next id of each kind */
    struct ledger_vec accounts, allocs, holds, usages, persons, memberships, projects, rates, sites,
        ops, funders, grants, debts, signeds;
    struct ledger_vec entries, charges;
    struct ledger_vec paid, refunds;
    struct ledger_vec recons, recon_events;
    struct ledger_vec pins, pin_uses;
    struct ledger_vec role_changes, abouts, names;
    struct ledger_vec freezes; /* all that are in force, the newest of a thing last */
    bool freezes_known;
    struct ledger_vec moves;   /* int64_t: operations of credits that were asked for by number */
    struct ledger_vec touched; /* allocations that are new or dirty */
    bool admin; /* something else than holds, charges, releases, expiries was decided */
    struct ledger_index *index;
};

/* The arena must live as long as the view; ledger_view_destroy frees the hash tables only. */
struct ledger_view *ledger_view_create (struct arena *arena, time_us now);
void ledger_view_destroy (struct ledger_view *view);
/* For the next batch, when the last one was written: keeps what changes slowly (see keep) as it is
 * now and forgets operations, holds, usages and effects. The arena that the view was created with
 * must live on; what follows lives in the new one, from which nothing is taken by this call and
 * which may be reset after it. No request may have been decided since but holds, charges, releases
 * and expiries: others leave strings of theirs in the view. */
void ledger_view_again (struct ledger_view *view, struct arena *arena, time_us now);

/* Loading. Each returns the zeroed, indexed record, or the one that is there already. Strings are
 * kept by pointer. Allocations must be added after their accounts, in any order. */
struct ledger_account *ledger_add_account (struct ledger_view *view, int64_t id, const char *name);
struct ledger_alloc *ledger_add_alloc (struct ledger_view *view, int64_t id, int64_t account_id,
                                       time_us valid_from, time_us valid_to);
struct ledger_hold *ledger_add_hold (struct ledger_view *view, int64_t id);
void ledger_index_hold (struct ledger_view *view, struct ledger_hold *hold); /* its job is known */
struct ledger_usage *ledger_add_usage (struct ledger_view *view, int64_t id,
                                       const struct ledger_job *job);
struct ledger_person *ledger_add_person (struct ledger_view *view, int64_t id,
                                         const char *identity);
struct ledger_membership *ledger_add_membership (struct ledger_view *view, int64_t id,
                                                 int64_t person_id, int64_t project_id);
struct ledger_project *ledger_add_project (struct ledger_view *view, int64_t id, const char *name);
/* The name means the account too. */
void ledger_account_also (struct ledger_view *view, struct ledger_account *account,
                          const char *name);
/* The account is what its project owes. */
void ledger_account_is_debt (struct ledger_view *view, struct ledger_account *account);
struct ledger_funder *ledger_add_funder (struct ledger_view *view, int64_t id, const char *name);
struct ledger_grant *ledger_add_grant (struct ledger_view *view, int64_t id);
/* Gives an allocation its scopes, which are kept by pointer, and its place in its account. */
void ledger_alloc_scopes (struct ledger_view *view, struct ledger_alloc *alloc,
                          struct ledger_scopes scopes);
struct ledger_rate *ledger_add_rate (struct ledger_view *view, const char *site, uint32_t version);
/* Gives a card its rates, copied into the arena that the card lives in. */
void ledger_rate_factors (struct arena *arena, struct ledger_rate *rate,
                          const struct ledger_factor *factor, uint32_t count);
struct ledger_site *ledger_add_site (struct ledger_view *view, const char *name);
struct ledger_op *ledger_add_op (struct ledger_view *view, const char *client,
                                 const struct uuid *key);

/* A hold of it more, the oldest first. */
struct ledger_signed *ledger_add_signed (struct ledger_view *view, const char *identity,
                                         const struct uuid *uuid);

struct ledger_freeze *ledger_add_freeze (struct ledger_view *view, enum ledger_freezable what,
                                         int64_t id);

struct ledger_paid *ledger_add_paid (struct ledger_view *view, int64_t op_id);

struct ledger_recon *ledger_add_recon (struct ledger_view *view, int64_t id);
void ledger_add_move (struct ledger_view *view, int64_t op_id);
struct ledger_pin *ledger_add_pin (struct ledger_view *view, int64_t id);

/* NULL when not in the view. */
struct ledger_pin *ledger_pin_by_id (const struct ledger_view *view, int64_t id);
struct ledger_paid *ledger_paid_of (const struct ledger_view *view, int64_t op_id);
/* NULL: it is not frozen. */
const struct ledger_freeze *ledger_freeze_of (const struct ledger_view *view,
                                              enum ledger_freezable what, int64_t id);
struct ledger_account *ledger_account_by_name (const struct ledger_view *view, const char *name);
struct ledger_account *ledger_account_by_id (const struct ledger_view *view, int64_t id);
struct ledger_alloc *ledger_alloc_by_id (const struct ledger_view *view, int64_t id);
struct ledger_hold *ledger_hold_by_id (const struct ledger_view *view, int64_t id);
struct ledger_hold *ledger_hold_open_of (const struct ledger_view *view,
                                         const struct ledger_job *job);
struct ledger_usage *ledger_usage_of (const struct ledger_view *view, const struct ledger_job *job);
struct ledger_person *ledger_person_of (const struct ledger_view *view, const char *identity);
struct ledger_project *ledger_project_of (const struct ledger_view *view, const char *name);
struct ledger_funder *ledger_funder_of (const struct ledger_view *view, const char *name);
struct ledger_grant *ledger_grant_by_id (const struct ledger_view *view, int64_t id);
struct ledger_site *ledger_site_of (const struct ledger_view *view, const char *name);
struct ledger_op *ledger_op_of (const struct ledger_view *view, const char *client,
                                const struct uuid *key);
/* Its first hold. */
struct ledger_signed *ledger_signed_of (const struct ledger_view *view, const char *identity,
                                        const struct uuid *uuid);
/* The rate in force at a moment: the highest version that has begun. */
const struct ledger_rate *ledger_rate_at (const struct ledger_view *view, const char *site,
                                          time_us at);
/* The newest one of a person in a project. */
struct ledger_membership *ledger_membership_of (const struct ledger_view *view, int64_t person_id,
                                                int64_t project_id);
bool ledger_is_member (const struct ledger_view *view, const char *identity, int64_t project_id);

#endif
