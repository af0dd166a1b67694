/* ledger_request: what the bank is asked for. The terms of the ledger (jobs, scopes, roles, factors), the bounds that a user
 * signed, and the request of each kind of operation. Pure data; pointers are the asker's until the operation is decided. */
#ifndef NUI_BANK_CORE_LEDGER_REQUEST_H
#define NUI_BANK_CORE_LEDGER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bank/core/price.h"
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

/* What accounting wants to know of a run; 0 and "": not known. */
struct ledger_ran {
    int64_t nodes, memory_mb;
    time_us submitted;
    const char *local_user, *queue; /* its class at the site */
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
            struct ledger_ran ran; /* recorded, and looked at by no rule */
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

#endif
