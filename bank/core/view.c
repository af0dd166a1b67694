/* The view: records in arrays, found through hash tables. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "bank/core/ledger_impl.h"

/* One node type for every table; a key is a byte string in the arena. */
struct node {
    UT_hash_handle hh;
    void *record;
    size_t key_len;
    unsigned char key[];
};

enum table {
    T_ACCOUNT_NAME,
    T_ACCOUNT_ID,
    T_ALLOC,
    T_HOLD,
    T_HOLD_JOB,
    T_USAGE,
    T_PERSON,
    T_MEMBERSHIP,
    T_MEMBERSHIP_ID,
    T_PROJECT,
    T_FUNDER,
    T_GRANT,
    T_SITE,
    T_OP,
    T_SIGNED,
    T_COUNT
};

struct ledger_index {
    struct node *head[T_COUNT];
};

struct key {
    unsigned char *bytes;
    size_t len;
};

static void vec_put (struct arena *arena, struct ledger_vec *vec, void *item)
{
    if (vec->count == vec->cap) {
        uint32_t cap = vec->cap ? vec->cap * 2 : 16;
        void **bigger = arena_array (arena, cap, sizeof (void *));
        if (vec->count)
            memcpy (bigger, vec->item, vec->count * sizeof (void *));
        vec->item = bigger;
        vec->cap = cap;
    }
    vec->item[vec->count++] = item;
}

void vec_push (struct ledger_view *view, struct ledger_vec *vec, void *item)
{
    vec_put (view->arena, vec, item);
}

void alloc_touch (struct ledger_view *view, struct ledger_alloc *alloc)
{
    if (!alloc->dirty)
        vec_push (view, &view->touched, alloc);
    alloc->dirty = true;
}

static bool is_kept (enum table t)
{
    return t != T_HOLD && t != T_HOLD_JOB && t != T_USAGE && t != T_OP && t != T_SIGNED;
}

static void *table_get (const struct ledger_view *view, enum table t, const void *key, size_t len)
{
    struct node *node = NULL;
    HASH_FIND (hh, view->index->head[t], key, len, node);
    return node ? node->record : NULL;
}

static void table_put (struct ledger_view *view, enum table t, const void *key, size_t len,
                       void *record)
{
    struct node *node = arena_zalloc (is_kept (t) ? view->keep : view->arena, sizeof (*node) + len);
    node->record = record;
    node->key_len = len;
    memcpy (node->key, key, len);
    HASH_ADD_KEYPTR (hh, view->index->head[t], node->key, len, node);
}

static void *get_text (const struct ledger_view *view, enum table t, const char *text)
{
    return table_get (view, t, text, strlen (text));
}

/* The four parts of an incarnation; a NUL separates, so that no two jobs share a key. */
static struct key job_key (const struct ledger_view *view, const struct ledger_job *job)
{
    size_t a = strlen (job->site) + 1, b = strlen (job->site_job) + 1,
           c = strlen (job->component) + 1;
    struct key key = {arena_alloc (view->arena, a + b + c + 8), a + b + c + 8};
    memcpy (key.bytes, job->site, a);
    memcpy (key.bytes + a, job->site_job, b);
    memcpy (key.bytes + a + b, job->component, c);
    memcpy (key.bytes + a + b + c, &job->incarnation, 8);
    return key;
}

/* What somebody gave a uuid: an operation, a signed job. */
static struct key op_key (const struct ledger_view *view, const char *client,
                          const struct uuid *uuid)
{
    size_t len = strlen (client);
    struct key key = {arena_alloc (view->arena, 16 + len), 16 + len};
    memcpy (key.bytes, uuid->b, 16);
    memcpy (key.bytes + 16, client, len);
    return key;
}

struct ledger_view *ledger_view_create (struct arena *arena, time_us now)
{
    struct ledger_view *view = arena_new (arena, struct ledger_view);
    view->arena = view->keep = arena;
    view->now = now;
    view->index = arena_new (arena, struct ledger_index);
    return view;
}

void ledger_view_destroy (struct ledger_view *view)
{
    if (!view)
        return;
    for (int t = 0; t < T_COUNT; t++)
        HASH_CLEAR (hh, view->index->head[t]);
}

void ledger_view_again (struct ledger_view *view, struct arena *arena, time_us now)
{
    struct ledger_vec *batch[] = {
        &view->holds,        &view->usages,  &view->ops,  &view->entries,  &view->signeds,
        &view->charges,      &view->touched, &view->paid, &view->refunds,  &view->recons,
        &view->recon_events, &view->moves,   &view->pins, &view->pin_uses, &view->role_changes};
    assert (!view->admin);
    for (uint32_t i = 0; i < view->touched.count; i++)
        ((struct ledger_alloc *)view->touched.item[i])->dirty = false;
    view->arena = arena;
    view->now = now;
    for (int t = 0; t < T_COUNT; t++)
        if (!is_kept (t))
            HASH_CLEAR (hh, view->index->head[t]);
    for (size_t i = 0; i < sizeof (batch) / sizeof (batch[0]); i++)
        *batch[i] = (struct ledger_vec){0};
    for (uint32_t i = 0; i < view->sites.count; i++)
        ((struct ledger_site *)view->sites.item[i])->dirty = false;
}

struct ledger_account *ledger_add_account (struct ledger_view *view, int64_t id, const char *name)
{
    struct ledger_account *account = ledger_account_by_id (view, id);
    if (account)
        return account;
    account = arena_new (view->keep, struct ledger_account);
    account->id = id;
    account->makers = ",";
    account->name = name;
    vec_put (view->keep, &view->accounts, account);
    table_put (view, T_ACCOUNT_ID, &id, sizeof (id), account);
    table_put (view, T_ACCOUNT_NAME, name, strlen (name), account);
    return account;
}

void ledger_account_also (struct ledger_view *view, struct ledger_account *account,
                          const char *name)
{
    if (!ledger_account_by_name (view, name))
        table_put (view, T_ACCOUNT_NAME, name, strlen (name), account);
}

void ledger_account_is_debt (struct ledger_view *view, struct ledger_account *account)
{
    if (!account->is_debt)
        vec_put (view->keep, &view->debts, account);
    account->is_debt = true;
}

static bool alloc_before (const struct ledger_alloc *a, const struct ledger_alloc *b)
{
    uint32_t narrow_a = scope_narrowness (&a->scopes), narrow_b = scope_narrowness (&b->scopes);
    if (a->valid_to != b->valid_to)
        return a->valid_to < b->valid_to;
    return narrow_a != narrow_b ? narrow_a > narrow_b : a->id < b->id;
}

static void account_insert (struct ledger_view *view, struct ledger_account *account,
                            struct ledger_alloc *alloc)
{
    if (account->alloc_count == account->alloc_cap) {
        uint32_t cap = account->alloc_cap ? account->alloc_cap * 2 : 4;
        struct ledger_alloc **bigger = arena_array (view->keep, cap, sizeof (*bigger));
        if (account->alloc_count)
            memcpy (bigger, account->alloc, account->alloc_count * sizeof (*bigger));
        account->alloc = bigger;
        account->alloc_cap = cap;
    }
    uint32_t i = account->alloc_count++;
    for (; i > 0 && alloc_before (alloc, account->alloc[i - 1]); i--)
        account->alloc[i] = account->alloc[i - 1];
    account->alloc[i] = alloc;
}

void ledger_alloc_scopes (struct ledger_view *view, struct ledger_alloc *alloc,
                          struct ledger_scopes scopes)
{
    struct ledger_account *account = ledger_account_by_id (view, alloc->account_id);
    uint32_t at = 0;
    alloc->scopes = scopes;
    while (account->alloc[at] != alloc)
        at++;
    memmove (&account->alloc[at], &account->alloc[at + 1],
             (--account->alloc_count - at) * sizeof (*account->alloc));
    account_insert (view, account, alloc);
}

struct ledger_alloc *ledger_add_alloc (struct ledger_view *view, int64_t id, int64_t account_id,
                                       time_us valid_from, time_us valid_to)
{
    struct ledger_alloc *alloc = ledger_alloc_by_id (view, id);
    if (alloc)
        return alloc;
    alloc = arena_new (view->keep, struct ledger_alloc);
    *alloc = (struct ledger_alloc){.id = id,
                                   .account_id = account_id,
                                   .valid_from = valid_from,
                                   .valid_to = valid_to,
                                   .giver = "",
                                   .reference = ""};
    vec_put (view->keep, &view->allocs, alloc);
    table_put (view, T_ALLOC, &id, sizeof (id), alloc);
    struct ledger_account *account = ledger_account_by_id (view, account_id);
    assert (account);
    account_insert (view, account, alloc);
    return alloc;
}

struct ledger_hold *ledger_add_hold (struct ledger_view *view, int64_t id)
{
    struct ledger_hold *hold = ledger_hold_by_id (view, id);
    if (hold)
        return hold;
    hold = arena_new (view->arena, struct ledger_hold);
    hold->id = id;
    hold->qos_ppm = hold->class_ppm = hold->group_ppm = PRICE_ONE;
    hold->qos = hold->machine = hold->nodes = "";
    vec_push (view, &view->holds, hold);
    table_put (view, T_HOLD, &id, sizeof (id), hold);
    return hold;
}

void ledger_index_hold (struct ledger_view *view, struct ledger_hold *hold)
{
    struct key key = job_key (view, &hold->job);
    /* Closed holds of the same incarnation may be in the view too: a list per job, newest first. */
    struct hold_link *link = arena_new (view->arena, struct hold_link);
    link->hold = hold;
    struct hold_list *list = table_get (view, T_HOLD_JOB, key.bytes, key.len);
    if (!list) {
        list = arena_new (view->arena, struct hold_list);
        table_put (view, T_HOLD_JOB, key.bytes, key.len, list);
    }
    link->next = list->first;
    list->first = link;
}

struct ledger_usage *ledger_add_usage (struct ledger_view *view, int64_t id,
                                       const struct ledger_job *job)
{
    struct ledger_usage *usage = ledger_usage_of (view, job);
    if (usage)
        return usage;
    usage = arena_new (view->arena, struct ledger_usage);
    usage->id = id;
    usage->job = *job;
    usage->qos = usage->machine = "";
    vec_push (view, &view->usages, usage);
    struct key key = job_key (view, job);
    table_put (view, T_USAGE, key.bytes, key.len, usage);
    return usage;
}

struct ledger_person *ledger_add_person (struct ledger_view *view, int64_t id, const char *identity)
{
    struct ledger_person *person = ledger_person_of (view, identity);
    if (person)
        return person;
    person = arena_new (view->keep, struct ledger_person);
    person->id = id;
    person->identity = identity;
    vec_put (view->keep, &view->persons, person);
    table_put (view, T_PERSON, identity, strlen (identity), person);
    return person;
}

struct ledger_membership *ledger_add_membership (struct ledger_view *view, int64_t id,
                                                 int64_t person_id, int64_t project_id)
{
    int64_t pair[2] = {person_id, project_id};
    struct ledger_membership *m = table_get (view, T_MEMBERSHIP_ID, &id, sizeof (id));
    if (m)
        return m;
    m = arena_new (view->keep, struct ledger_membership);
    m->id = id;
    m->person_id = person_id;
    m->project_id = project_id;
    vec_put (view->keep, &view->memberships, m);
    table_put (view, T_MEMBERSHIP_ID, &id, sizeof (id), m);
    struct node *node = NULL;
    HASH_FIND (hh, view->index->head[T_MEMBERSHIP], pair, sizeof (pair), node);
    if (node)
        node->record = m;
    else
        table_put (view, T_MEMBERSHIP, pair, sizeof (pair), m);
    return m;
}

struct ledger_project *ledger_add_project (struct ledger_view *view, int64_t id, const char *name)
{
    struct ledger_project *project = ledger_project_of (view, name);
    if (project)
        return project;
    project = arena_new (view->keep, struct ledger_project);
    project->id = id;
    project->makers = ",";
    project->name = name;
    vec_put (view->keep, &view->projects, project);
    table_put (view, T_PROJECT, name, strlen (name), project);
    return project;
}

struct ledger_funder *ledger_add_funder (struct ledger_view *view, int64_t id, const char *name)
{
    struct ledger_funder *funder = ledger_funder_of (view, name);
    if (funder)
        return funder;
    funder = arena_new (view->keep, struct ledger_funder);
    funder->references = "";
    funder->id = id;
    funder->name = name;
    vec_put (view->keep, &view->funders, funder);
    table_put (view, T_FUNDER, name, strlen (name), funder);
    return funder;
}

struct ledger_grant *ledger_add_grant (struct ledger_view *view, int64_t id)
{
    struct ledger_grant *grant = ledger_grant_by_id (view, id);
    if (grant)
        return grant;
    grant = arena_new (view->keep, struct ledger_grant);
    grant->id = id;
    grant->funder = "";
    vec_put (view->keep, &view->grants, grant);
    table_put (view, T_GRANT, &id, sizeof (id), grant);
    return grant;
}

struct ledger_rate *ledger_add_rate (struct ledger_view *view, const char *site, uint32_t version)
{
    struct ledger_rate *rate = arena_new (view->keep, struct ledger_rate);
    rate->site = site;
    rate->version = version;
    vec_put (view->keep, &view->rates, rate);
    return rate;
}

struct ledger_site *ledger_add_site (struct ledger_view *view, const char *name)
{
    struct ledger_site *site = ledger_site_of (view, name);
    if (site)
        return site;
    site = arena_new (view->keep, struct ledger_site);
    site->name = name;
    site->earned_account_id = LEDGER_ID_SITES;
    site->earned_alloc_id = LEDGER_ID_SITES;
    vec_put (view->keep, &view->sites, site);
    table_put (view, T_SITE, name, strlen (name), site);
    return site;
}

struct ledger_op *ledger_add_op (struct ledger_view *view, const char *client,
                                 const struct uuid *uuid)
{
    struct ledger_op *op = ledger_op_of (view, client, uuid);
    if (op)
        return op;
    op = arena_new (view->arena, struct ledger_op);
    op->client = client;
    op->key = *uuid;
    vec_push (view, &view->ops, op);
    struct key key = op_key (view, client, uuid);
    table_put (view, T_OP, key.bytes, key.len, op);
    return op;
}

struct ledger_signed *ledger_add_signed (struct ledger_view *view, const char *identity,
                                         const struct uuid *uuid)
{
    struct ledger_signed *first = ledger_signed_of (view, identity, uuid);
    struct ledger_signed *row = arena_new (view->arena, struct ledger_signed);
    row->identity = identity;
    row->uuid = *uuid;
    vec_push (view, &view->signeds, row);
    if (first) {
        first->last->next = row;
        first->last = row;
        return row;
    }
    row->last = row;
    struct key key = op_key (view, identity, uuid);
    table_put (view, T_SIGNED, key.bytes, key.len, row);
    return row;
}

struct ledger_freeze *ledger_add_freeze (struct ledger_view *view, enum ledger_freezable what,
                                         int64_t id)
{
    struct ledger_freeze *freeze = arena_new (view->keep, struct ledger_freeze);
    freeze->what = what;
    freeze->id = id;
    freeze->frozen = true;
    vec_put (view->keep, &view->freezes, freeze);
    return freeze;
}

struct ledger_account *ledger_account_by_name (const struct ledger_view *view, const char *name)
{
    return get_text (view, T_ACCOUNT_NAME, name);
}

struct ledger_account *ledger_account_by_id (const struct ledger_view *view, int64_t id)
{
    return table_get (view, T_ACCOUNT_ID, &id, sizeof (id));
}

struct ledger_alloc *ledger_alloc_by_id (const struct ledger_view *view, int64_t id)
{
    return table_get (view, T_ALLOC, &id, sizeof (id));
}

struct ledger_hold *ledger_hold_by_id (const struct ledger_view *view, int64_t id)
{
    return table_get (view, T_HOLD, &id, sizeof (id));
}

struct ledger_hold *ledger_hold_open_of (const struct ledger_view *view,
                                         const struct ledger_job *job)
{
    struct key key = job_key (view, job);
    struct hold_list *list = table_get (view, T_HOLD_JOB, key.bytes, key.len);
    for (struct hold_link *link = list ? list->first : NULL; link; link = link->next)
        if (link->hold->open)
            return link->hold;
    return NULL;
}

struct ledger_usage *ledger_usage_of (const struct ledger_view *view, const struct ledger_job *job)
{
    struct key key = job_key (view, job);
    return table_get (view, T_USAGE, key.bytes, key.len);
}

struct ledger_person *ledger_person_of (const struct ledger_view *view, const char *identity)
{
    return get_text (view, T_PERSON, identity);
}

struct ledger_project *ledger_project_of (const struct ledger_view *view, const char *name)
{
    return get_text (view, T_PROJECT, name);
}

struct ledger_funder *ledger_funder_of (const struct ledger_view *view, const char *name)
{
    return get_text (view, T_FUNDER, name);
}

struct ledger_grant *ledger_grant_by_id (const struct ledger_view *view, int64_t id)
{
    return table_get (view, T_GRANT, &id, sizeof (id));
}

struct ledger_site *ledger_site_of (const struct ledger_view *view, const char *name)
{
    return get_text (view, T_SITE, name);
}

struct ledger_op *ledger_op_of (const struct ledger_view *view, const char *client,
                                const struct uuid *uuid)
{
    struct key key = op_key (view, client, uuid);
    return table_get (view, T_OP, key.bytes, key.len);
}

struct ledger_signed *ledger_signed_of (const struct ledger_view *view, const char *identity,
                                        const struct uuid *uuid)
{
    struct key key = op_key (view, identity, uuid);
    return table_get (view, T_SIGNED, key.bytes, key.len);
}

const struct ledger_rate *ledger_rate_at (const struct ledger_view *view, const char *site,
                                          time_us at)
{
    const struct ledger_rate *best = NULL;
    for (uint32_t i = 0; i < view->rates.count; i++) {
        const struct ledger_rate *rate = view->rates.item[i];
        if (strcmp (rate->site, site) == 0 && rate->from <= at &&
            (!best || rate->version > best->version))
            best = rate;
    }
    return best;
}

struct ledger_membership *ledger_membership_of (const struct ledger_view *view, int64_t person_id,
                                                int64_t project_id)
{
    int64_t pair[2] = {person_id, project_id};
    return table_get (view, T_MEMBERSHIP, pair, sizeof (pair));
}

bool ledger_is_member (const struct ledger_view *view, const char *identity, int64_t project_id)
{
    const struct ledger_person *person = ledger_person_of (view, identity);
    const struct ledger_membership *m =
        person ? ledger_membership_of (view, person->id, project_id) : NULL;
    return m && m->valid_from <= view->now && view->now < m->valid_to;
}

struct ledger_hold *hold_named (const struct ledger_view *view, const char *hold_id)
{
    char prefix[8];
    uint64_t number;
    if (id_parse (hold_id, prefix, sizeof (prefix), &number, NULL) < 0 ||
        strcmp (prefix, "hold") != 0)
        return NULL;
    return ledger_hold_by_id (view, (int64_t)number);
}

bool same_job (const struct ledger_job *a, const struct ledger_job *b)
{
    return strcmp (a->site, b->site) == 0 && strcmp (a->site_job, b->site_job) == 0 &&
           strcmp (a->component, b->component) == 0 && a->incarnation == b->incarnation;
}

struct ledger_account *debt_account (const struct ledger_view *view,
                                     const struct ledger_account *account)
{
    for (uint32_t i = 0; i < view->debts.count; i++) {
        struct ledger_account *debt = view->debts.item[i];
        if (debt->project_id == account->project_id)
            return debt;
    }
    return NULL;
}
