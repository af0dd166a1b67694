/* load: collects the keys that some requests name, asks for all their rows in one batch, and
 * puts them into the view. The committer and the reader call it. It decides nothing, and a row
 * that the view has already is never replaced: what is in the view may be newer than the
 * database. */
#include "bank/store/load.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bank/core/operation.h"
#include "bank/store/statements.h"

struct load {
    struct arena *arena;
    struct ledger_view *view;
    struct pgargs *ops;      /* client, key */
    struct pgargs *touched;  /* hold ids | site, job, component, incarnation */
    struct pgargs *accounts; /* names | allocation ids | ids */
    struct pgargs *sites, *persons, *projects, *funders, *grants;
    struct pgargs *signeds; /* identity, uuid */
    struct pgargs *paid;    /* operations that charged */
    struct pgargs *recons;  /* sites | rows | operations */
    struct pgargs *quotes;
    struct pgargs *new_ops, *new_jobs; /* taken to be new: as ops; as touched without the ids */
    struct pgargs *new_signeds; /* taken to be new, or as they are: identity, uuid, hash, grid job,
                                   meta, group, part */
    int64_t requests;
    bool rows;           /* whether anything is in recons */
    bool jobs, funds;    /* whether anything is in touched, in accounts */
    bool parts, sources; /* all accounts that have a part of the grants; what splits came from */
    bool sums; /* a hold may cost more than it keeps: what else its signed job is paid for counts */
};

enum { COL_HOLD, COL_SITE };
enum { COL_NAME, COL_ALLOC, COL_ID };

static void begin (struct load *load)
{
    load->ops = pgargs_create (load->arena, "tb");
    load->touched = pgargs_create (load->arena, "ittti");
    load->accounts = pgargs_create (load->arena, "tii");
    load->sites = pgargs_create (load->arena, "t");
    load->persons = pgargs_create (load->arena, "t");
    load->projects = pgargs_create (load->arena, "t");
    load->funders = pgargs_create (load->arena, "t");
    load->grants = pgargs_create (load->arena, "i");
    load->signeds = pgargs_create (load->arena, "tb");
    load->paid = pgargs_create (load->arena, "i");
    load->recons = pgargs_create (load->arena, "tii");
    load->quotes = pgargs_create (load->arena, "i");
    load->jobs = load->funds = load->rows = false;
}

struct load *load_create (struct arena *arena, struct ledger_view *view)
{
    struct load *load = arena_new (arena, struct load);
    load->arena = arena;
    load->view = view;
    load->new_ops = pgargs_create (arena, "tb");
    load->new_jobs = pgargs_create (arena, "ttti");
    load->new_signeds = pgargs_create (arena, "tbbttot");
    begin (load);
    return load;
}

static void want_account (struct load *load, const char *name)
{
    const struct ledger_account *known = ledger_account_by_name (load->view, name);
    if (known && known->whole)
        return;
    pgargs_text (load->accounts, COL_NAME, name);
    load->funds = true;
}

static void want_account_id (struct load *load, int64_t id)
{
    if (ledger_account_by_id (load->view, id))
        return;
    pgargs_i64 (load->accounts, COL_ID, id);
    load->funds = true;
}

static void want_alloc (struct load *load, int64_t id)
{
    if (ledger_alloc_by_id (load->view, id))
        return;
    pgargs_i64 (load->accounts, COL_ALLOC, id);
    load->funds = true;
}

static void want_site (struct load *load, const char *name)
{
    if (!ledger_site_of (load->view, name))
        pgargs_text (load->sites, 0, name);
}

static void want_person (struct load *load, const char *identity)
{
    if (!ledger_person_of (load->view, identity))
        pgargs_text (load->persons, 0, identity);
}

static void want_project (struct load *load, const char *name)
{
    if (!ledger_project_of (load->view, name))
        pgargs_text (load->projects, 0, name);
}

static void job_put (struct pgargs *args, unsigned col, const struct ledger_job *job)
{
    pgargs_text (args, col++, job->site);
    pgargs_text (args, col++, job->site_job);
    pgargs_text (args, col++, job->component);
    pgargs_i64 (args, col, job->incarnation);
}

static void want_job (struct load *load, const struct ledger_job *job)
{
    job_put (load->touched, COL_SITE, job);
    load->jobs = true;
}

static void want_hold (struct load *load, const char *hold_id)
{
    char prefix[8];
    uint64_t number;
    if (id_parse (hold_id, prefix, sizeof (prefix), &number, NULL) == 0 && number <= INT64_MAX) {
        pgargs_i64 (load->touched, COL_HOLD, (int64_t)number);
        load->jobs = true;
    }
}

uint32_t load_factors (char *text, struct ledger_factor factor[LEDGER_FACTORS_MAX])
{
    uint32_t count = 0;
    char *rest = NULL;
    for (char *part = strtok_r (text, ";", &rest); part; part = strtok_r (NULL, ";", &rest)) {
        char *name = strchr (part, ' '), *ppm = strrchr (part, '=');
        struct err err;
        assert (name && ppm && count < LEDGER_FACTORS_MAX);
        *name = *ppm = '\0';
        factor[count].name = name + 1;
        factor[count].ppm = strtoll (ppm + 1, NULL, 10);
        if (ledger_factor_parse (part, &factor[count].kind, &err) < 0)
            assert (!"a kind of rate that this program does not know");
        count++;
    }
    return count;
}

static void want_quote (struct load *load, const struct ledger_ask *ask)
{
    if (ask->quote_id)
        pgargs_i64 (load->quotes, 0, ask->quote_id);
}

static void want_uuid (struct load *load, const char *identity, const struct uuid *uuid)
{
    pgargs_text (load->signeds, 0, identity);
    pgargs_bytes (load->signeds, 1, uuid->b, sizeof (uuid->b));
}

static void want_signed (struct load *load, const struct ledger_hold_ask *ask, const char *identity,
                         bool is_new)
{
    struct pgargs *a = load->new_signeds;
    if (!is_new) {
        want_uuid (load, identity, &ask->uuid);
        return;
    }
    pgargs_text (a, 0, identity);
    pgargs_bytes (a, 1, ask->uuid.b, sizeof (ask->uuid.b));
    pgargs_bytes (a, 2, ask->hash, sizeof (ask->hash));
    pgargs_text (a, 3, ask->job.grid_job);
    pgargs_text (a, 4, ask->meta);
    pgargs_bool (a, 5, ask->meta_group);
    pgargs_text (a, 6, ask->part);
}

static void want_ask (struct load *load, const struct ledger_hold_ask *ask, const char *identity,
                      bool is_new)
{
    want_quote (load, &ask->ask);
    if (is_new)
        job_put (load->new_jobs, 0, &ask->job);
    else
        want_job (load, &ask->job);
    if (ask->is_signed)
        want_signed (load, ask, identity, is_new);
    want_account (load, ask->account);
    want_site (load, ask->job.site);
}

/* Whether what a request asks for may be taken to be new. */
static bool may_be_new (struct load *load, const struct ledger_request *req,
                        const struct recent *recent)
{
    if (!recent || req->refused.code)
        return false;
    /* One that has expired goes on only where it is known; what a job of several parts may cost is for all of them. */
    if (req->kind == LEDGER_HOLD)
        return (!req->hold.expires || req->hold.expires > load->view->now) &&
               !(req->hold.cost_max && req->hold.ask.coreserved);
    return req->kind == LEDGER_CHARGE && recent_take (recent, req, load->view);
}

void load_check (const struct load *load, struct pgloop *loop)
{
    pgargs_seal (load->new_jobs);
    pgargs_seal (load->new_signeds);
    if (pgargs_rows (load->new_jobs))
        pgbatch_add (loop, ST_NEW_JOBS, load->new_jobs);
    if (pgargs_rows (load->new_signeds))
        pgbatch_add (loop, ST_NEW_SIGNED, load->new_signeds);
}

bool load_is_lone_hold (const struct load *load)
{
    return load->requests == 1 && pgargs_rows (load->new_jobs) == 1;
}

void load_check_ops (const struct load *load, int64_t ops, struct pgloop *loop)
{
    pgargs_seal (load->new_ops);
    if (pgargs_rows (load->new_ops) && ops < load->requests)
        pgbatch_add (loop, ST_NEW_OPS, load->new_ops);
}

bool load_was_wrong (const struct load *load, const struct pgbatch_result *result)
{
    return pgargs_rows (load->new_ops) && result->end == PGBATCH_FAILED &&
           (strcmp (result->sqlstate, PG_NO_NUMBER) == 0 ||
            strcmp (result->sqlstate, PG_UNIQUE) == 0);
}

static void want_charge (struct load *load, const struct ledger_request *req, bool is_new)
{
    if (!is_new) {
        want_job (load, &req->charge.job);
        want_hold (load, req->charge.hold_id);
        load->sums = true;
    }
    if (req->charge.signature)
        want_signed (load, &req->charge.signature->ask, req->on_behalf, false);
    if (!req->charge.hold_id[0]) {
        want_account (load, req->charge.account);
        want_person (load, req->on_behalf);
        want_quote (load, &req->charge.ask);
    }
    want_site (load, req->charge.job.site);
}

static void want_named (struct load *load, enum subject_of of, const char *name)
{
    if (!name[0])
        return;
    if (of == OF_ACCOUNT || of == OF_WHOLE)
        want_account (load, name);
    else if (of == OF_PROJECT)
        want_project (load, name);
    else if (of == OF_PERSON)
        want_person (load, name);
    else if (of == OF_SITE)
        want_site (load, name);
    else if (of == OF_HOLD)
        want_hold (load, name);
    else
        pgargs_text (load->funders, 0, name);
}

/* One of what an operation's row says that it needs, or that must be an agency's own. */
static void want_subject (struct load *load, const struct subject *subject,
                          const struct ledger_request *req)
{
    int64_t id;
    switch (subject->of) {
    case OF_NOTHING:
    case OF_BANK:
    case OF_FROZEN: /* see below */
        return;
    case OF_ALLOC:
    case OF_GRANT:
    case OF_CHARGE:
    case OF_QUOTE:
        if ((id = subject_number (subject, req)) == 0)
            return;
        if (subject->of == OF_ALLOC)
            want_alloc (load, id);
        else
            pgargs_i64 (subject->of == OF_GRANT    ? load->grants
                        : subject->of == OF_CHARGE ? load->paid
                                                   : load->quotes,
                        0, id);
        return;
    default:
        want_named (load, subject->of, subject_name (subject, req));
    }
}

void load_want_request (struct load *load, const struct ledger_request *req,
                        const struct recent *recent)
{
    bool is_new = may_be_new (load, req, recent);
    struct pgargs *ops = is_new ? load->new_ops : load->ops;
    load->requests++;
    pgargs_text (ops, 0, req->client);
    pgargs_bytes (ops, 1, req->key.b, sizeof (req->key.b));
    if (req->refused.code)
        return;
    if (req->by_user)
        want_person (load, req->client);
    const struct operation *row = operation_of (req->kind);
    for (size_t i = 0; i < sizeof (row->needs) / sizeof (row->needs[0]); i++)
        want_subject (load, &row->needs[i], req);
    for (size_t i = 0; req->agency && i < sizeof (row->agency) / sizeof (row->agency[0]); i++)
        want_subject (load, &row->agency[i], req);
    switch (req->kind) {
    case LEDGER_HOLD:
        want_ask (load, &req->hold, req->on_behalf, is_new);
        want_person (load, req->on_behalf);
        return;
    case LEDGER_HOLD_GROUP:
        for (uint32_t i = 0; i < req->group.count; i++)
            want_ask (load, &req->group.item[i], req->on_behalf, false);
        want_person (load, req->on_behalf);
        return;
    case LEDGER_EXTEND:
        load->sums = true;
        return;
    case LEDGER_CHARGE:
        want_charge (load, req, is_new);
        return;
    case LEDGER_ACCOUNT_CREATE:
    case LEDGER_ACCOUNT_MODIFY:
        for (uint32_t i = 0; i < req->account.fallback_count; i++)
            want_account (load, req->account.fallbacks[i].account);
        return;
    case LEDGER_FREEZE:
        if (req->freeze.what == LEDGER_FREEZE_USER)
            want_person (load, req->freeze.name);
        else if (req->freeze.what == LEDGER_FREEZE_ACCOUNT)
            want_account (load, req->freeze.name);
        else if (req->freeze.what == LEDGER_FREEZE_PROJECT)
            want_project (load, req->freeze.name);
        else
            pgargs_i64 (load->grants, 0, req->freeze.grant_id);
        return;
    case LEDGER_RECON:
        pgargs_text (load->recons, 0, req->recon.site);
        load->rows = true;
        return;
    case LEDGER_RECON_SET:
        pgargs_i64 (load->recons, 1, req->recon_set.row_id);
        pgargs_i64 (load->recons, 2, req->recon_set.cured_op);
        load->rows = true;
        return;
    case LEDGER_QUOTE:
        load_want_quote (load, req->quote.ask);
        return;
    case LEDGER_SPLIT_BACK:
        load->sources = true;
        return;
    case LEDGER_GRANT_EXTEND:
    case LEDGER_GRANT_AMEND:
    case LEDGER_GRANT_REVOKE:
        load->parts = true;
        return;
    default: /* what its row names */
        return;
    }
}

void load_want_quote (struct load *load, const struct ledger_quote *quote)
{
    want_account (load, quote->account);
    want_person (load, quote->identity);
    for (uint32_t i = 0; i < quote->item_count; i++) {
        want_site (load, quote->item[i].site);
        want_quote (load, &quote->item[i].ask);
    }
}

bool load_more (const struct load *load)
{
    return pgargs_rows (load->ops) || load->jobs || load->funds || pgargs_rows (load->sites) ||
           pgargs_rows (load->persons) || pgargs_rows (load->projects) ||
           pgargs_rows (load->funders) || pgargs_rows (load->grants) || pgargs_rows (load->paid) ||
           pgargs_rows (load->signeds) || load->rows || pgargs_rows (load->quotes);
}

void load_send (struct load *load, struct pgloop *loop)
{
    struct pgargs *all[] = {load->ops,     load->touched,  load->accounts, load->sites,
                            load->persons, load->projects, load->funders,  load->grants,
                            load->paid,    load->recons,   load->quotes,   load->signeds};
    for (size_t i = 0; i < sizeof (all) / sizeof (all[0]); i++)
        pgargs_seal (all[i]);
    if (pgargs_rows (load->ops))
        pgbatch_add (loop, ST_OPS, load->ops);
    if (load->jobs) {
        pgbatch_add (loop, ST_HOLDS, load->touched);
        pgbatch_add (loop, ST_USAGES, load->touched);
    }
    if (load->funds) {
        pgbatch_add (loop, ST_ACCOUNTS, load->accounts);
        pgbatch_add (loop, ST_ALLOCS, load->accounts);
    }
    if (pgargs_rows (load->sites)) {
        pgbatch_add (loop, ST_SITES, load->sites);
        pgbatch_add (loop, ST_RATES, load->sites);
    }
    if (pgargs_rows (load->persons))
        pgbatch_add (loop, ST_MEMBERS, load->persons);
    if (pgargs_rows (load->projects))
        pgbatch_add (loop, ST_PROJECTS, load->projects);
    if (pgargs_rows (load->funders))
        pgbatch_add (loop, ST_FUNDERS, load->funders);
    if (pgargs_rows (load->grants))
        pgbatch_add (loop, ST_GRANTS, load->grants);
    if (pgargs_rows (load->paid))
        pgbatch_add (loop, ST_PAID, load->paid);
    if (load->rows) {
        pgbatch_add (loop, ST_RECONS, load->recons);
        pgbatch_add (loop, ST_MOVES, load->recons);
    }
    if (pgargs_rows (load->quotes))
        pgbatch_add (loop, ST_QUOTES, load->quotes);
    if (pgargs_rows (load->signeds))
        pgbatch_add (loop, ST_SIGNED, load->signeds);
    if (!load->view->freezes_known)
        pgbatch_add (loop, ST_FREEZES, NULL);
}

/* ---- results ---- */

static enum ledger_kind kind_of (const char *name)
{
    for (int kind = 0; kind < LEDGER_KINDS; kind++)
        if (strcmp (ledger_kind_name ((enum ledger_kind)kind), name) == 0)
            return (enum ledger_kind)kind;
    assert (!"an operation in the ledger of a kind that this program does not know");
    return LEDGER_HOLD;
}

static void take_ops (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        struct uuid key;
        assert (PQgetlength (res, i, 2) == 16 && PQgetlength (res, i, 3) == LEDGER_HASH_BYTES);
        memcpy (key.b, PQgetvalue (res, i, 2), 16);
        struct ledger_op *op = ledger_add_op (view, pgres_text (res, i, 1, view->arena), &key);
        op->id = pgres_i64 (res, i, 0);
        memcpy (op->hash, PQgetvalue (res, i, 3), LEDGER_HASH_BYTES);
        op->kind = kind_of (pgres_text (res, i, 4, view->arena));
        op->status = (int)pgres_i64 (res, i, 5);
        op->outcome_len = (size_t)PQgetlength (res, i, 6);
        op->outcome = arena_memdup (view->arena, PQgetvalue (res, i, 6), op->outcome_len);
    }
}

static struct ledger_job take_job (const PGresult *res, int row, int col, int grid_col,
                                   struct arena *arena)
{
    return (struct ledger_job){.site = pgres_text (res, row, col, arena),
                               .site_job = pgres_text (res, row, col + 1, arena),
                               .component = pgres_text (res, row, col + 2, arena),
                               .incarnation = pgres_i64 (res, row, col + 3),
                               .grid_job = pgres_text (res, row, grid_col, arena)};
}

/* "allocation:amount:settled:released,…" */
static void take_legs (struct ledger_hold *hold, const char *text, struct arena *arena)
{
    uint32_t count = text[0] ? 1 : 0;
    for (const char *c = text; *c; c++)
        count += *c == ',';
    hold->leg = arena_array (arena, count, sizeof (*hold->leg));
    hold->leg_count = count;
    for (uint32_t i = 0; i < count; i++) {
        char *end;
        hold->leg[i].allocation_id = strtoll (text, &end, 10);
        hold->leg[i].amount = strtoll (end + 1, &end, 10);
        hold->leg[i].settled = strtoll (end + 1, &end, 10);
        hold->leg[i].released = strtoll (end + 1, &end, 10);
        text = *end ? end + 1 : end;
    }
}

static void take_holds (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        int64_t id = pgres_i64 (res, i, 0);
        if (ledger_hold_by_id (view, id))
            continue; /* named twice */
        struct ledger_hold *hold = ledger_add_hold (view, id);
        hold->op_id = pgres_i64 (res, i, 1);
        hold->job = take_job (res, i, 2, 6, view->arena);
        hold->asked_id = pgres_i64 (res, i, 7);
        hold->account_id = pgres_i64 (res, i, 8);
        hold->identity = pgres_text (res, i, 9, view->arena);
        hold->procs = pgres_i64 (res, i, 10);
        hold->walltime = pgres_i64 (res, i, 11);
        hold->start = pgres_i64 (res, i, 12);
        hold->expires = pgres_i64 (res, i, 13);
        hold->rate_version = (uint32_t)pgres_i64 (res, i, 14);
        hold->rate_ppm = pgres_i64 (res, i, 15);
        hold->amount = pgres_i64 (res, i, 16);
        hold->open = pgres_bool (res, i, 17);
        hold->extra_parts = pgres_i64 (res, i, 18);
        hold->qos_ppm = pgres_i64 (res, i, 19);
        hold->class_ppm = pgres_i64 (res, i, 20);
        hold->group_ppm = pgres_i64 (res, i, 21);
        hold->pe_milli = pgres_i64 (res, i, 22);
        hold->qos = pgres_text (res, i, 23, view->arena);
        hold->machine = pgres_text (res, i, 24, view->arena);
        hold->nodes = pgres_text (res, i, 25, view->arena);
        take_legs (hold, pgres_text (res, i, 26, view->arena), view->arena);
        hold->walltime_max = pgres_i64 (res, i, 27);
        hold->cost_max = pgres_i64 (res, i, 28);
        if (PQgetlength (res, i, 29) == sizeof (hold->uuid.b))
            memcpy (hold->uuid.b, PQgetvalue (res, i, 29), sizeof (hold->uuid.b));
        ledger_index_hold (view, hold);
    }
}

static void take_usages (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        struct ledger_job job = take_job (res, i, 1, 5, view->arena);
        struct ledger_usage *usage = ledger_add_usage (view, pgres_i64 (res, i, 0), &job);
        usage->hold_id = pgres_i64 (res, i, 6);
        usage->account_id = pgres_i64 (res, i, 7);
        usage->identity = pgres_text (res, i, 8, view->arena);
        usage->procs = pgres_i64 (res, i, 9);
        usage->start = pgres_i64 (res, i, 10);
        usage->end = pgres_i64 (res, i, 11);
        usage->total = pgres_i64 (res, i, 12);
        usage->final = pgres_bool (res, i, 13);
        usage->disputed = pgres_i64 (res, i, 14);
    }
}

/* "12/site/qos,…" */
static void take_fallbacks (struct ledger_account *account, char *text, struct arena *arena)
{
    char *rest = NULL;
    account->fallback = arena_array (arena, LEDGER_FALLBACKS_MAX, sizeof (*account->fallback));
    account->fallback_count = 0;
    for (char *part = strtok_r (text, ",", &rest); part; part = strtok_r (NULL, ",", &rest)) {
        char *site = strchr (part, '/'), *qos = site ? strchr (site + 1, '/') : NULL;
        assert (qos && account->fallback_count < LEDGER_FALLBACKS_MAX);
        *qos = '\0';
        account->fallback[account->fallback_count++] =
            (struct ledger_fallback){strtoll (part, NULL, 10), site + 1, qos + 1};
    }
}

/* "3,1" */
static uint32_t take_ancestors (const char *text, const int64_t **out, struct arena *arena)
{
    int64_t *id = arena_array (arena, LEDGER_TREE_DEPTH_MAX, sizeof (*id));
    uint32_t count = 0;
    while (*text && count < LEDGER_TREE_DEPTH_MAX) {
        char *end;
        id[count++] = strtoll (text, &end, 10);
        text = *end ? end + 1 : end;
    }
    *out = id;
    return count;
}

/* "user=-nui://g/user/x site=alpha": names have no blank. */
static struct ledger_scopes take_scopes (char *text, struct arena *arena)
{
    struct ledger_scope *item = NULL;
    uint32_t count = 0;
    char *rest = NULL;
    for (char *part = strtok_r (text, " ", &rest); part; part = strtok_r (NULL, " ", &rest)) {
        char *name = strchr (part, '=');
        struct err err;
        assert (name && count < LEDGER_SCOPES_MAX);
        if (!item)
            item = arena_array (arena, LEDGER_SCOPES_MAX, sizeof (*item));
        *name = '\0';
        if (ledger_scope_parse (part, name + 1, &item[count++], &err) < 0)
            assert (!"a scope that this program does not know");
    }
    return (struct ledger_scopes){item, count};
}

static void take_accounts (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        struct ledger_account *account =
            ledger_add_account (view, pgres_i64 (res, i, 0), pgres_text (res, i, 1, view->keep));
        account->project_id = pgres_i64 (res, i, 2);
        account->project = pgres_text (res, i, 3, view->keep);
        take_fallbacks (account, pgres_text (res, i, 4, view->keep), view->keep);
        account->whole |= pgres_i64 (res, i, 5) == 0;
        if (pgres_bool (res, i, 6))
            ledger_account_is_debt (view, account);
        account->closed = pgres_bool (res, i, 7);
        account->ancestor_count =
            take_ancestors (pgres_text (res, i, 8, view->keep), &account->ancestor, view->keep);
        account->makers = pgres_text (res, i, 9, view->keep);
        account->scopes = take_scopes (pgres_text (res, i, 10, view->keep), view->keep);
        char *rest = NULL, *names = pgres_text (res, i, 11, view->keep);
        for (char *name = strtok_r (names, " ", &rest); name; name = strtok_r (NULL, " ", &rest))
            ledger_account_also (view, account, name);
    }
}

static void take_allocs (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        /* A reader's statements have a snapshot each: an account may be newer than the first. */
        if (!ledger_account_by_id (view, pgres_i64 (res, i, 1)))
            continue;
        struct ledger_alloc *alloc =
            ledger_add_alloc (view, pgres_i64 (res, i, 0), pgres_i64 (res, i, 1),
                              pgres_i64 (res, i, 2), pgres_i64 (res, i, 3));
        alloc->credit_limit = pgres_i64 (res, i, 4);
        alloc->granted = pgres_i64 (res, i, 5);
        alloc->settled = pgres_i64 (res, i, 6);
        alloc->posted = pgres_i64 (res, i, 7);
        alloc->held = pgres_i64 (res, i, 8);
        alloc->grant_id = pgres_i64 (res, i, 9);
        alloc->giver = pgres_text (res, i, 10, view->keep);
        alloc->split_from = pgres_i64 (res, i, 12);
        alloc->reference = pgres_text (res, i, 13, view->keep);
        char *scopes = pgres_text (res, i, 11, view->keep);
        if (scopes[0])
            ledger_alloc_scopes (view, alloc, take_scopes (scopes, view->keep));
    }
}

static void take_sites (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        struct ledger_site *site = ledger_add_site (view, pgres_text (res, i, 0, view->keep));
        if (!PQgetisnull (res, i, 1)) {
            site->earned_account_id = pgres_i64 (res, i, 1);
            site->earned_alloc_id = pgres_i64 (res, i, 2);
        }
        site->acked = (uint64_t)pgres_i64 (res, i, 3);
        site->claims = !PQgetisnull (res, i, 5) && pgres_bool (res, i, 5);
        site->refunds.on = !PQgetisnull (res, i, 6) && pgres_bool (res, i, 6);
        if (!PQgetisnull (res, i, 7)) {
            site->refunds.cap = pgres_i64 (res, i, 7);
            site->refunds.minimum = pgres_i64 (res, i, 8);
            site->refunds.window = pgres_i64 (res, i, 9);
            site->given = (struct ledger_nodes_given){
                pgres_i64 (res, i, 10), pgres_i64 (res, i, 11), pgres_i64 (res, i, 12)};
        }
        site->ahead_count = 0;
        const char *text = pgres_text (res, i, 4, view->keep);
        while (*text && site->ahead_count < LEDGER_AHEAD_MAX) {
            char *end;
            site->ahead[site->ahead_count++] = strtoull (text, &end, 10);
            text = *end ? end + 1 : end;
        }
    }
}

static void take_rates (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        struct ledger_rate *rate = ledger_add_rate (view, pgres_text (res, i, 0, view->keep),
                                                    (uint32_t)pgres_i64 (res, i, 1));
        rate->from = pgres_i64 (res, i, 2);
        rate->ppm = pgres_i64 (res, i, 3);
        struct err err;
        if (price_measure_parse (pgres_text (res, i, 4, view->arena), &rate->measure, &err) < 0)
            assert (!"a measure that this program does not know");
        rate->successful_only = pgres_bool (res, i, 5);
        struct ledger_factor factor[LEDGER_FACTORS_MAX];
        ledger_rate_factors (view->keep, rate, factor,
                             load_factors (pgres_text (res, i, 6, view->arena), factor));
    }
}

static void take_members (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        struct ledger_person *person =
            ledger_add_person (view, pgres_i64 (res, i, 0), pgres_text (res, i, 1, view->keep));
        person->roles = (pgres_bool (res, i, 7) ? LEDGER_ROLE_MANAGER : 0U) |
                        (pgres_bool (res, i, 8) ? LEDGER_ROLE_AUDITOR : 0U);
        if (PQgetisnull (res, i, 2))
            continue;
        struct ledger_membership *m =
            ledger_add_membership (view, pgres_i64 (res, i, 2), person->id, pgres_i64 (res, i, 3));
        m->role = pgres_text (res, i, 4, view->keep);
        m->valid_from = pgres_i64 (res, i, 5);
        m->valid_to = pgres_i64 (res, i, 6);
    }
}

static void take_projects (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        struct ledger_project *project =
            ledger_add_project (view, pgres_i64 (res, i, 0), pgres_text (res, i, 1, view->keep));
        project->ancestor_count =
            take_ancestors (pgres_text (res, i, 2, view->keep), &project->ancestor, view->keep);
        project->makers = pgres_text (res, i, 3, view->keep);
        project->leads = pgres_i64 (res, i, 4);
        project->height = pgres_i64 (res, i, 5);
    }
}

static void take_funders (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++)
        ledger_add_funder (view, pgres_i64 (res, i, 0), pgres_text (res, i, 1, view->keep))
            ->references = pgres_text (res, i, 2, view->keep);
}

/* "3,1" */
static uint32_t take_numbers (const char *text, const int64_t **out, struct arena *arena)
{
    uint32_t count = 0, most = text[0] ? 1 : 0;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    int64_t *id = arena_array (arena, most, sizeof (*id));
    while (*text) {
        char *end;
        id[count++] = strtoll (text, &end, 10);
        text = *end ? end + 1 : end;
    }
    *out = id;
    return count;
}

static void take_grants (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        struct ledger_grant *grant = ledger_add_grant (view, pgres_i64 (res, i, 0));
        grant->funder_id = pgres_i64 (res, i, 1);
        grant->account_id = pgres_i64 (res, i, 2);
        grant->funder = pgres_text (res, i, 3, view->arena);
        grant->revoked_op_id = pgres_i64 (res, i, 4);
        grant->alloc_id = pgres_i64 (res, i, 5);
        grant->part_count =
            take_numbers (pgres_text (res, i, 6, view->arena), &grant->part, view->arena);
    }
}

static void take_paid (const PGresult *res, struct ledger_view *view)
{
    int rows = PQntuples (res);
    for (int i = 0; i < rows; i++) {
        struct ledger_paid *paid = ledger_add_paid (view, pgres_i64 (res, i, 0));
        uint32_t leg = (uint32_t)pgres_i64 (res, i, 6);
        if (!paid->leg) {
            paid->charge_id = pgres_i64 (res, i, 1);
            paid->site = pgres_text (res, i, 2, view->arena);
            paid->job = pgres_text (res, i, 3, view->arena);
            paid->earned_account_id = pgres_i64 (res, i, 4);
            paid->earned_alloc_id = pgres_i64 (res, i, 5);
            paid->due = pgres_i64 (res, i, 11);
            paid->leg = arena_array (view->arena, (size_t)rows, sizeof (*paid->leg));
        }
        if (leg < paid->leg_count)
            continue; /* named twice */
        paid->leg[paid->leg_count++] =
            (struct ledger_paid_leg){.leg = leg,
                                     .allocation_id = pgres_i64 (res, i, 7),
                                     .amount = pgres_i64 (res, i, 8),
                                     .overrun = pgres_bool (res, i, 9),
                                     .refunded = pgres_i64 (res, i, 10)};
    }
}

static void take_recons (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        struct ledger_recon *row = ledger_add_recon (view, pgres_i64 (res, i, 0));
        row->site = pgres_text (res, i, 1, view->arena);
        row->finding = (struct ledger_finding){.kind = pgres_text (res, i, 2, view->arena),
                                               .site_job = pgres_text (res, i, 3, view->arena),
                                               .component = pgres_text (res, i, 4, view->arena),
                                               .incarnation = pgres_i64 (res, i, 5),
                                               .hold = pgres_text (res, i, 6, view->arena),
                                               .charge_op = pgres_i64 (res, i, 7),
                                               .amount = pgres_i64 (res, i, 8),
                                               .site_ps = pgres_i64 (res, i, 9),
                                               .bank_ps = pgres_i64 (res, i, 10),
                                               .since = pgres_i64 (res, i, 11)};
        const char *end = pgres_text (res, i, 12, view->arena);
        row->closed = end[0];
        row->explained = strcmp (end, "closed") == 0;
    }
}

/* "alpha=3 beta=1" */
static void take_cards (struct ledger_pin *pin, char *text, struct arena *arena)
{
    struct ledger_card *card = arena_array (arena, LEDGER_QUOTE_ITEMS_MAX, sizeof (*card));
    char *rest = NULL;
    for (char *part = strtok_r (text, " ", &rest); part; part = strtok_r (NULL, " ", &rest)) {
        char *version = strchr (part, '=');
        assert (version && pin->card_count < LEDGER_QUOTE_ITEMS_MAX);
        *version = '\0';
        card[pin->card_count++] =
            (struct ledger_card){part, (uint32_t)strtoul (version + 1, NULL, 10), 0};
    }
    pin->card = card;
}

static void take_quotes (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        int64_t id = pgres_i64 (res, i, 0);
        if (ledger_pin_by_id (view, id))
            continue; /* named twice */
        struct ledger_pin *pin = ledger_add_pin (view, id);
        pin->op_id = pgres_i64 (res, i, 1);
        pin->identity = pgres_text (res, i, 2, view->arena);
        pin->expires = pgres_i64 (res, i, 3);
        pin->reusable = pgres_bool (res, i, 4);
        take_cards (pin, pgres_text (res, i, 5, view->arena), view->arena);
        pin->job = PQgetisnull (res, i, 6) ? NULL : pgres_text (res, i, 6, view->arena);
        pin->job_name = pgres_text (res, i, 7, view->arena);
        pin->cancelled = pgres_i64 (res, i, 8);
        pin->project_id = pgres_i64 (res, i, 9);
        pin->ancestor_count =
            take_ancestors (pgres_text (res, i, 10, view->arena), &pin->ancestor, view->arena);
    }
}

static void take_signed (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        struct uuid uuid;
        assert (PQgetlength (res, i, 1) == sizeof (uuid.b) &&
                PQgetlength (res, i, 2) == LEDGER_HASH_BYTES);
        memcpy (uuid.b, PQgetvalue (res, i, 1), sizeof (uuid.b));
        struct ledger_signed *row =
            ledger_add_signed (view, pgres_text (res, i, 0, view->arena), &uuid);
        memcpy (row->hash, PQgetvalue (res, i, 2), LEDGER_HASH_BYTES);
        row->grid_job = pgres_text (res, i, 3, view->arena);
        row->meta = pgres_text (res, i, 4, view->arena);
        row->part = pgres_text (res, i, 5, view->arena);
        row->hold_id = pgres_i64 (res, i, 6);
        row->job = (struct ledger_job){.site = pgres_text (res, i, 7, view->arena),
                                       .site_job = pgres_text (res, i, 8, view->arena),
                                       .component = pgres_text (res, i, 9, view->arena),
                                       .incarnation = pgres_i64 (res, i, 10),
                                       .grid_job = row->grid_job};
        row->open = pgres_bool (res, i, 11);
        row->hold_expires = pgres_i64 (res, i, 12);
        row->used = pgres_i64 (res, i, 13);
        row->well = pgres_bool (res, i, 14);
        row->ran = pgres_bool (res, i, 15);
        row->amount = pgres_i64 (res, i, 16);
        row->paid = pgres_i64 (res, i, 17);
    }
}

static void take_freezes (const PGresult *res, struct ledger_view *view)
{
    for (int i = 0; i < PQntuples (res); i++) {
        const char *name = pgres_text (res, i, 0, view->arena);
        int what = 0;
        while (what < LEDGER_FREEZABLES &&
               strcmp (ledger_freezable_name ((enum ledger_freezable)what), name) != 0)
            what++;
        assert (what < LEDGER_FREEZABLES);
        struct ledger_freeze *freeze =
            ledger_add_freeze (view, (enum ledger_freezable)what, pgres_i64 (res, i, 1));
        freeze->name = pgres_text (res, i, 2, view->keep);
        freeze->reason = pgres_text (res, i, 3, view->keep);
        freeze->who = pgres_text (res, i, 4, view->keep);
        freeze->since = pgres_i64 (res, i, 5);
    }
    view->freezes_known = true;
}

static void want_paid (struct load *load)
{
    for (uint32_t i = 0; i < load->view->paid.count; i++) {
        const struct ledger_paid *paid = load->view->paid.item[i];
        for (uint32_t k = 0; k < paid->leg_count; k++)
            if (paid->leg[k].allocation_id != LEDGER_ID_SUSPENSE)
                want_alloc (load, paid->leg[k].allocation_id);
    }
}

void load_take (struct load *load, const struct pgbatch_result *result)
{
    PGresult *const *res = result->result;
    struct ledger_view *view = load->view;
    if (pgargs_rows (load->ops))
        take_ops (*res++, view);
    if (load->jobs) {
        take_holds (*res++, view);
        take_usages (*res++, view);
    }
    if (load->funds) {
        take_accounts (*res++, view);
        take_allocs (*res++, view);
    }
    if (pgargs_rows (load->sites)) {
        take_sites (*res++, view);
        take_rates (*res++, view);
    }
    if (pgargs_rows (load->persons))
        take_members (*res++, view);
    if (pgargs_rows (load->projects))
        take_projects (*res++, view);
    if (pgargs_rows (load->funders))
        take_funders (*res++, view);
    if (pgargs_rows (load->grants))
        take_grants (*res++, view);
    if (pgargs_rows (load->paid))
        take_paid (*res++, view);
    if (load->rows) {
        take_recons (*res++, view);
        for (int i = 0; i < PQntuples (*res); i++)
            ledger_add_move (view, pgres_i64 (*res, i, 0));
        res++;
    }
    if (pgargs_rows (load->quotes))
        take_quotes (*res++, view);
    if (pgargs_rows (load->signeds))
        take_signed (*res++, view);
    if (!view->freezes_known)
        take_freezes (*res++, view);
    assert (res == result->result + result->count);
    begin (load);
    for (uint32_t i = 0; i < view->holds.count; i++) {
        struct ledger_hold *hold = view->holds.item[i];
        if (load->sums && hold->cost_max && !hold->summed &&
            !ledger_signed_of (view, hold->identity, &hold->uuid))
            want_uuid (load, hold->identity, &hold->uuid);
        hold->summed |= load->sums;
        want_account_id (load, hold->account_id);
        want_site (load, hold->job.site);
        want_person (load, hold->identity);
    }
    for (uint32_t i = 0; i < view->usages.count; i++) {
        const struct ledger_usage *usage = view->usages.item[i];
        want_account_id (load, usage->account_id);
        want_person (load, usage->identity);
    }
    for (uint32_t i = 0; load->parts && i < view->grants.count; i++) {
        const struct ledger_grant *grant = view->grants.item[i];
        for (uint32_t k = 0; k < grant->part_count; k++)
            want_account_id (load, grant->part[k]);
    }
    for (uint32_t i = 0; load->sources && i < view->allocs.count; i++) {
        const struct ledger_alloc *alloc = view->allocs.item[i];
        if (alloc->split_from)
            want_alloc (load, alloc->split_from);
    }
    want_paid (load);
}
