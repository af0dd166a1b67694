/* ledger: decides the bank's operations over a view of the part of the ledger that they touch.
 *
 * Pure: no clock, no I/O. The store loads a view (accounts, allocations, holds … that the requests
 * of one batch name), calls ledger_decide for each request in arrival order, and writes the view's
 * effects in one transaction. A refused request changes nothing in the view. Everything lives in
 * the view's arena; amounts are int64 micro-credits and every sum is checked.
 *
 * Entries (double entry): each operation's entries sum to zero in each layer, POSTED and HELD. A
 * deposit moves from the grants account to an allocation, a hold moves in the HELD layer between an
 * allocation and the site's account, a charge in both.
 *
 * The rules H, C, F, P and I that comments name are those of nui-bank(8). */
#ifndef NUI_BANK_CORE_LEDGER_H
#define NUI_BANK_CORE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bank/core/price.h"
#include "proto/base/arena.h"
#include "proto/base/quantity.h"

enum {
    LEDGER_HASH_BYTES = 32,
    LEDGER_FALLBACK_DEPTH_MAX = 4,
    LEDGER_FALLBACKS_MAX = 16,   /* of one account */
    LEDGER_CANDIDATES_MAX = 64,  /* accounts looked at for one hold */
    LEDGER_AHEAD_MAX = 256,      /* outbox numbers kept beyond a gap, per site */
    LEDGER_FACTORS_MAX = 256,    /* of one card */
    LEDGER_GROUP_MAX = 64,       /* holds of one group */
    LEDGER_SCOPES_MAX = 64,      /* of one account or allocation */
    LEDGER_TREE_DEPTH_MAX = 8,   /* projects above a project */
    LEDGER_LEGS_MAX = 1024,      /* of one hold, extensions too */
    LEDGER_FINDINGS_MAX = 10000, /* of one reconciliation */
    LEDGER_FINDING_KINDS_MAX = 32,
    LEDGER_QUOTE_ITEMS_MAX = 256,
    LEDGER_NODE_TYPES_MAX = 32, /* of one job */
    LEDGER_RESTARTS_MAX = 16,   /* of a signed job by its own site, beyond the first start */
    LEDGER_SIGNED_MAX = 1000,   /* holds of one signed job, however they ended */
    LEDGER_UNIT_CREDIT = 1,
};

/* Rows that migrations make; an account and its one allocation have the same id. */
enum { LEDGER_ID_GRANTS = 1, LEDGER_ID_SUSPENSE = 2, LEDGER_ID_SITES = 3, LEDGER_ID_EXPIRED = -1 };

#define LEDGER_HOLD_GRACE_US (600 * US_PER_S)

enum ledger_kind {
    LEDGER_HOLD,
    LEDGER_CHARGE,
    LEDGER_RELEASE,
    LEDGER_DEPOSIT,
    LEDGER_PROJECT_CREATE,
    LEDGER_USER_CREATE,
    LEDGER_MEMBER,
    LEDGER_ACCOUNT_CREATE,
    LEDGER_ACCOUNT_MODIFY,
    LEDGER_RATE_SET,
    LEDGER_STATE, /* what all objects are: a root over them */
    LEDGER_EXPIRE,
    LEDGER_WITHDRAW,
    LEDGER_TRANSFER,
    LEDGER_REFUND,
    LEDGER_LIMIT_SET,
    LEDGER_SITE_SET,
    LEDGER_HOLD_GROUP,
    LEDGER_EXTEND,
    LEDGER_ACCOUNT_CLOSE,
    LEDGER_CARRY_FORWARD,
    LEDGER_FUNDER_CREATE,
    LEDGER_GRANT,
    LEDGER_SPLIT,
    LEDGER_ROLE_SET,
    LEDGER_RECON,     /* what a reconciliation found */
    LEDGER_RECON_SET, /* who sees to a row of it, and how it ended */
    LEDGER_QUOTE,     /* that keeps its rates */
    LEDGER_QUOTE_CANCEL,
    LEDGER_BEGIN, /* of an allocation that was made before */
    LEDGER_CLOCK, /* an operator's word that the clock is right */
    LEDGER_ACCOUNT_REOPEN,
    LEDGER_FREEZE,
    LEDGER_SPLIT_BACK, /* taken back by who gave it */
    LEDGER_GRANT_EXTEND,
    LEDGER_GRANT_AMEND,
    LEDGER_GRANT_REVOKE,
    LEDGER_ACCOUNT_RENAME,
    LEDGER_PROJECT_MOVE,
    LEDGER_TOLD, /* its leads were told how an allocation stands */
    LEDGER_KINDS,
};
const char *ledger_kind_name (enum ledger_kind kind); /* "hold" … as the op table has it */

/* A job incarnation at a site. */
struct ledger_job {
    const char *site;
    const char *site_job;
    const char *component;
    const char *grid_job;
    int64_t incarnation;
};

/* What a job asks for beside processors and time, as far as rates look at it. */
struct ledger_gres {
    const char *name;
    int64_t count;
};

/* Processors of a job on nodes of one type. */
struct ledger_nodes {
    const char *type;
    int64_t procs;
};

struct ledger_ask {
    const char *qos, *class_, *machine; /* NULL or "": none */
    bool coreserved;                    /* one component of several */
    int64_t memory_mb, pe_milli;
    const struct ledger_gres *gres;
    uint32_t gres_count;
    const struct ledger_nodes *nodes; /* types once each; 0: not known */
    uint32_t nodes_count;
    int64_t quote_id;      /* that keeps its rates; 0: none, the rates in force */
    const char *quote_job; /* what the quote knows the job by */
};

/* Whom or what an account or an allocation is for. Of each kind: who is excluded by name is out;
 * where nothing else of the kind is said everything is in (users of an account: members of its
 * project); else one must be named, or "ANY" be there, or "MEMBERS" for users of the project. */
enum ledger_scope_kind {
    LEDGER_SCOPE_USER, /* identities */
    LEDGER_SCOPE_SITE,
    LEDGER_SCOPE_MACHINE,
    LEDGER_SCOPE_QOS,
    LEDGER_SCOPE_KINDS,
};
const char *ledger_scope_name (enum ledger_scope_kind kind); /* "user", "site", "machine", "qos" */

struct ledger_scope {
    enum ledger_scope_kind kind;
    const char *name;
    bool exclude;
};

struct ledger_scopes {
    const struct ledger_scope *item;
    uint32_t count;
};

/* "-name" excludes. ERR_INVALID for another kind, a name that is none, or users that are no
 * identities. Keeps text by pointer. */
int ledger_scope_parse (const char *kind, const char *text, struct ledger_scope *out,
                        struct err *err);

/* Where an account falls back to: at one site ("": at sites that have no list of their own), and
 * with which QoS ("": the job's). */
struct ledger_fallback {
    int64_t account_id;
    const char *site, *qos;
};

/* As a request names it. */
struct ledger_fallback_ask {
    const char *account, *site, *qos;
};

/* R4: what is given back of itself of what jobs were charged that their site failed; 0: no bound. */
struct ledger_refunds {
    bool on;
    duration_us cap;      /* what at most so much of a job's time cost */
    credit_micro minimum; /* less is not given back */
    duration_us window;   /* the last charge must be there so soon after the job's end */
};

/* What a person may do for the whole bank. */
enum ledger_role { LEDGER_ROLE_MANAGER = 1, LEDGER_ROLE_AUDITOR = 2 };
const char *ledger_role_name (enum ledger_role role); /* "manager", "auditor" */

/* What may be frozen: it pays for no new hold, or has none paid for. What runs goes on. */
enum ledger_freezable {
    LEDGER_FREEZE_USER,
    LEDGER_FREEZE_ACCOUNT,
    LEDGER_FREEZE_PROJECT, /* and those below it */
    LEDGER_FREEZE_GRANT,
    LEDGER_FREEZABLES,
};
const char *ledger_freezable_name (enum ledger_freezable what); /* "user" … */

/* A card's rates beside the price of a processor-second. GRES and MEMORY cost something per second
 * (memory per 1024 MB), the others multiply. name "*": any that is not named; MEMORY and GROUP
 * have no other. */
enum ledger_factor_kind {
    LEDGER_FACTOR_QOS,
    LEDGER_FACTOR_CLASS,
    LEDGER_FACTOR_GRES,
    LEDGER_FACTOR_MEMORY,
    LEDGER_FACTOR_GROUP, /* co-reserved jobs */
    LEDGER_FACTOR_BAND,  /* name: a time of day as price_band_parse reads it */
    LEDGER_FACTOR_MACHINE,
    LEDGER_FACTOR_NODES, /* by the processors of each type; of a hold that names none: the dearest
                          */
    LEDGER_FACTORS,
};
const char *ledger_factor_name (enum ledger_factor_kind kind); /* "qos", … "time" */
/* ERR_INVALID for another word. */
int ledger_factor_parse (const char *text, enum ledger_factor_kind *out, struct err *err);

struct ledger_factor {
    enum ledger_factor_kind kind;
    const char *name;
    int64_t ppm;
};

/* A difference between a site's records and the bank's. */
struct ledger_finding {
    const char *kind, *site_job, *component, *hold, *identity, *account, *text;
    int64_t incarnation, charge_op;
    credit_micro amount;
    int64_t site_ps, bank_ps; /* processor-microseconds; -1: that side has nothing */
    time_us since;
};

/* What bounds a site's holds and charges, beside what users signed; as an operator registered it. */
struct ledger_nodes_given {
    int64_t procs; /* of a node, where nodes are given whole; 0: they are not */
    /* that goes with a processor, for processor equivalents; 0: not registered */
    int64_t memory_mb;
    duration_us overrun; /* jobs may run so long beyond their walltime */
};

/* ---- requests ---- */

/* What was signed for of one part, in the size that is asked for. */
struct ledger_bounds {
    int64_t procs;     /* tasks times processors of each */
    int64_t procs_max; /* that the job accepts where nodes are given whole; 0: it does not say */
    int64_t nodes;     /* of what says how many nodes it wants */
    int64_t loose_procs,
        loose_task; /* of what does not: processors in all, and of its largest task */
    duration_us walltime;
    uint32_t restarts_max; /* by its own site */
};

struct ledger_hold_ask {
    struct ledger_job job;
    const char *account; /* that the job names */
    int64_t procs;
    duration_us walltime;
    struct ledger_ask ask;
    time_us start;         /* expected; 0: now */
    time_us expires;       /* of the signed job; 0: never */
    credit_micro cost_max; /* of all the request's holds; 0: no bound */
    bool is_signed;        /* the signed job is known by what follows */
    struct uuid uuid;
    uint8_t hash[LEDGER_HASH_BYTES]; /* of what was signed */
    const char *meta;                /* whose job of the grid it is; "": not said */
    bool meta_group;                 /* of several who have ids of their own for it */
    const char *part;                /* the component, as it was signed */
    uint32_t live_max;               /* site jobs of the part that may have a hold at a time */
    uint32_t runs_max; /* of the part that may end well: once, and as its retries say */
    struct ledger_bounds bounds;
    bool claimed; /* on_behalf and account are the site's word */
};

/* The signed job of a charge without a hold: what a hold would have been asked for with. */
struct ledger_signature {
    struct ledger_hold_ask ask;
    time_us created;   /* it cannot have begun before */
    time_us forgotten; /* from then on nobody knows what it was paid for before */
    /* why no hold would have been: another site or part; NULL: it would */
    const char *unsigned_for;
};

struct ledger_request {
    enum ledger_kind kind;
    const char *client;    /* identity of the caller; owns the key */
    const char *on_behalf; /* identity that signed the job, or the client's */
    bool by_user;          /* the client is a person: what they may do is for the ledger to say */
    const char *agency; /* the client is the agency of that name: its own is what it gave; NULL: it
                           is none */
    struct uuid key;
    uint8_t hash[LEDGER_HASH_BYTES]; /* of the canonical request */
    /* code != 0: must not be decided (its signature does not hold …); only the stored answer of an
     * earlier identical request may be given, else this. */
    struct err refused;
    union {
        struct ledger_hold_ask hold;
        struct {
            const struct ledger_hold_ask *item;
            uint32_t count;
        } group;
        struct {
            const char *site; /* NULL: whatever site's hold it is */
            const char *hold_id;
            duration_us walltime; /* of all, from the expected start */
        } extend;
        struct {
            struct ledger_job job;
            uint64_t sequence;
            const char *hold_id; /* "" : unheld */
            const char *account; /* unheld: that the job names */
            int64_t procs;
            struct ledger_ask ask; /* looked at without a hold */
            duration_us cpu;       /* processor time used so far; 0: not known */
            time_us start, end;
            bool final, successful;
            bool site_failed; /* it ended for the site's fault */
            bool claimed;     /* as in hold */
            /* of a signed job without a hold; else NULL */
            const struct ledger_signature *signature;
            duration_us tolerance; /* that clocks may differ by */
        } charge;
        struct {
            const char *site; /* NULL: whatever site's hold it is */
            uint64_t sequence;
            const char *hold_id;
            const char *site_job; /* that it must be for; NULL or "": any */
            const char *reason;
        } release;
        struct {
            const char *account;
            credit_micro amount;
            time_us valid_from; /* 0: now */
            time_us valid_to;   /* 0: without end */
            const char *description;
            struct ledger_scopes scopes;
            const char *funder;    /* of a grant */
            const char *reference; /* of a grant; of a deposit "" where it has none */
            bool again; /* the funder has given, or the account got, one of that reference, and this
                           is another */
            int64_t grant_id; /* of a deposit: of an earlier grant; 0: of none */
        } deposit;
        struct {
            const char *name;
            const char *description;
        } funder;
        struct {
            const char *name;
            const char *reason;
        } close;
        struct {
            int64_t allocation_id;
            credit_micro cap; /* 0: all that nothing holds */
            time_us valid_to;
            const char *description;
        } carry;
        struct {
            const char *identity;
            int role; /* of enum ledger_role */
            bool remove;
        } role;
        struct {
            const char *name;
            const char *parent; /* "": none */
            const char *description;
        } project;
        struct {
            const char *identity;
        } user;
        struct {
            const char *project;
            const char *identity;
            const char *role;
            bool remove;
        } member;
        struct {
            const char *name;
            const char *project; /* create only */
            const struct ledger_fallback_ask *fallbacks;
            uint32_t fallback_count;
            struct ledger_scopes scopes;
            bool keep_fallbacks, keep_scopes; /* modify: as they are */
        } account;
        struct {
            const char *text; /* names the root */
        } state;
        struct {
            const char *site;
            int64_t ppm;
            time_us from; /* 0: now */
            enum price_measure measure;
            bool successful_only; /* others are charged nothing */
            const struct ledger_factor *factor;
            uint32_t factor_count;
        } rate;
        struct {
            int64_t allocation_id;
            bool due; /* the bank's own look: a refusal answers nobody, and is not recorded */
            const char *description;
        } expire;
        struct {
            int64_t allocation_id;
        } begin;
        struct {
            int64_t allocation_id;
            const char *text; /* what they were told */
        } told;
        struct {
            enum ledger_freezable what;
            const char *name; /* NULL: a grant, by its number */
            int64_t grant_id;
            const char *reason;
            bool undo;
        } freeze;
        struct {
            const char *account;
            int64_t allocation_id; /* 0: those that are valid now */
            credit_micro amount;
            const char *description;
        } withdraw;
        struct {
            const char *from, *to;
            int64_t allocation_id; /* 0: those that are valid now */
            credit_micro amount;
            const char *description;
            time_us valid_from, valid_to; /* split only; 0: as what it comes from */
        } transfer;
        struct {
            int64_t allocation_id;
            credit_micro amount; /* 0: all that is neither spent nor held */
            const char *description;
        } split_back;
        struct {
            int64_t grant_id;
            time_us valid_to;    /* extend */
            credit_micro amount; /* amend: of the whole grant */
            const char *reason;
        } award;
        struct {
            const char *name, *to;
            const char *reason;
        } rename;
        struct {
            const char *name;
            const char *parent; /* "": none */
            const char *reason;
        } move;
        struct {
            int64_t charge_op;
            credit_micro amount; /* 0: all that is not refunded yet */
            bool due;            /* what the policy for its site says, instead */
            const char *reason;
        } refund;
        struct {
            int64_t allocation_id;
            credit_micro credit_limit;
        } limit;
        struct {
            const char *site;
            bool claims, keep_claims;
            struct ledger_refunds refunds;
            bool keep_refunds, keep_cap, keep_minimum, keep_window;
            struct ledger_nodes_given given;
            bool set_procs, set_memory, set_overrun; /* of given */
        } site;
        struct {
            const char *site;
            time_us from, to; /* rows of these kinds since then that are not found are gone */
            char *const *kind;
            uint32_t kind_count;
            const struct ledger_finding *item;
            uint32_t count;
        } recon;
        struct {
            int64_t row_id;
            const char *owner;
            bool close;
            int64_t cured_op; /* 0: none */
            const char *note;
        } recon_set;
        struct {
            const struct ledger_quote *ask; /* without answers */
            duration_us keep;
            bool reusable; /* by any number of jobs */
        } quote;
        struct {
            int64_t id;
        } quote_cancel;
        struct {
            duration_us ahead; /* of what was believed */
            const char *reason;
        } clock;
    };
};

/* ---- what is loaded ---- */

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

/* ---- deciding ---- */

struct ledger_candidate {
    const char *account;
    const char *code; /* "InsufficientFunds" … */
    const char *text;
    credit_micro available, shortfall;
    bool fallback;
};

struct ledger_granted {
    const char *hold_id, *account;
    const char *qos; /* of the fallback, that the job must run with; "": its own */
    credit_micro amount;
    time_us expires;
    bool fallback;
};

struct ledger_outcome {
    int code; /* 0, or a negative err_code with text */
    const char *text;
    bool replayed; /* stored holds the earlier answer (a reply when code is 0) */
    bool record;   /* to be given to ledger_record */
    const void *stored;
    size_t stored_len;
    const char *operation; /* its name */
    /* of the operation, for the op row */
    const char *site, *job, *note;
    time_us effective_at;
    int64_t op_id; /* that it will have when it is recorded */
    union {
        struct {
            bool granted;
            struct ledger_granted *item; /* one per hold of the request */
            uint32_t count, refused;     /* refused: which one was not granted */
            const char *reason_code, *reason_text;
            struct ledger_candidate *candidate;
            uint32_t candidate_count;
            credit_micro added; /* by an extension */
        } hold;
        struct {
            credit_micro charged, total, released;
            credit_micro disputed; /* of charged */
            const char *account;
            uint64_t acked;
        } charge;
        struct {
            credit_micro released;
            uint64_t acked;
        } release;
        struct {
            const char *id; /* allocation, project … */
        } done;
        struct {
            credit_micro refunded, left; /* of the charge */
        } refund;
        struct {
            uint32_t opened, open, gone;
        } recon;
        struct {
            const struct ledger_quote *answer;
            const char *id;
            time_us expires;
        } quote;
    };
};

/* Decides one request and applies it to the view. Always gives an outcome. */
void ledger_decide (struct ledger_view *view, const struct ledger_request *req,
                    struct ledger_outcome *out);
/* After the outcome was encoded: remembers the operation with its answer (rule I1). */
void ledger_record (struct ledger_view *view, const struct ledger_request *req,
                    const struct ledger_outcome *out, const void *bytes, size_t len);

/* ---- quotes: no effects unless they are asked for by a request, and then no entries ---- */

struct ledger_quote_item {
    const char *site;
    int64_t procs; /* 0: as many as bounds let the site hold, walltime 0: for as long */
    duration_us walltime;
    struct ledger_bounds bounds; /* of the signed part; none signed: 0 */
    struct ledger_ask ask;
    time_us start; /* 0: now */
    /* out */
    uint32_t rate_version; /* 0: it cannot be priced */
    credit_micro amount;
    const char *formula;
    const char *code, *reason; /* why it cannot be priced; reason NULL: it can */
    bool funded;
    const char *account;
};

struct ledger_quote {
    const char *identity, *account;
    bool all_of;
    struct ledger_quote_item *item;
    uint32_t item_count;
    /* out */
    credit_micro total;
    bool funded;
    const char *paying;
    struct ledger_candidate *candidate; /* when something is not funded */
    uint32_t candidate_count;
};

/* ERR_INVALID for quantities that cannot be priced, ERR_LIMIT for a total out of bounds. */
int ledger_quote (struct ledger_view *view, struct ledger_quote *quote, struct err *err);

/* Whether a charge can cost no more than its hold keeps: what else its signed job is paid for need not be known. */
bool ledger_within_hold (const struct ledger_request *req, const struct ledger_hold *hold);

/* posted - held + credit, clamped to int64. */
credit_micro ledger_room (const struct ledger_alloc *alloc);

#endif
