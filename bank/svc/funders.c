/* Reading calls about grants and roles. */
#include "bank/store/fundread.h"
#include "bank/svc/service_impl.h"

static Nui__Bank__V1__GrantItem *grant_message (struct arena *arena, const struct fund_grant *g)
{
    Nui__Bank__V1__GrantItem *out = arena_new (arena, Nui__Bank__V1__GrantItem);
    nui__bank__v1__grant_item__init (out);
    out->grant_id = arena_printf (arena, "grant.%lld", (long long)g->id);
    out->funder = arena_strdup (arena, g->funder);
    out->reference = arena_strdup (arena, g->reference);
    out->account = arena_strdup (arena, g->account);
    out->project = arena_strdup (arena, g->project);
    out->granted_micro = g->granted;
    out->settled_micro = g->settled;
    out->held_micro = g->held;
    out->left_micro = g->left;
    out->ended_micro = g->ended;
    out->granted_wide = arena_strdup (arena, g->granted_wide);
    out->settled_wide = arena_strdup (arena, g->settled_wide);
    out->held_wide = arena_strdup (arena, g->held_wide);
    out->left_wide = arena_strdup (arena, g->left_wide);
    out->ended_wide = arena_strdup (arena, g->ended_wide);
    out->valid_from_us = g->valid_from;
    out->valid_to_us = g->valid_to == TIME_US_MAX ? 0 : g->valid_to;
    out->accounts = (uint32_t)g->accounts;
    out->frozen = arena_strdup (arena, g->frozen);
    out->revoked = arena_strdup (arena, g->revoked);
    return out;
}

static void on_grants (void *arg, const struct err *err, const struct fund_grant *grant,
                       uint32_t count)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__GrantListReply reply = NUI__BANK__V1__GRANT_LIST_REPLY__INIT;
    reply.n_grants = count;
    reply.grants = arena_array (work->arena, count, sizeof (*reply.grants));
    for (uint32_t i = 0; i < count; i++)
        reply.grants[i] = grant_message (work->arena, &grant[i]);
    work_reply (work, &reply.base);
}

void handle_grant_list (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__GrantListRequest *m = work->request;
    struct err err = {0};
    int64_t id;
    if ((m->funder[0] && name_check ("funder", m->funder, &err) < 0) ||
        number_parse ("grant", m->grant_id, true, &id, &err) < 0)
        work_fail (work, &err);
    else
        fundread_grants (svc->reader, viewer (work), m->funder, id, on_grants, work);
}

/* ---- one grant's statement: the grant, then its days and shares, then the newest block ---- */

static void point (struct arena *arena, Nui__Bank__V1__GrantPoint **at, time_us when,
                   const struct fund_day *sum)
{
    *at = arena_new (arena, Nui__Bank__V1__GrantPoint);
    nui__bank__v1__grant_point__init (*at);
    (*at)->at_us = when;
    (*at)->granted_micro = sum->granted;
    (*at)->charged_micro = sum->charged;
    (*at)->left_micro = sum->net;
    (*at)->granted_wide = arena_strdup (arena, sum->granted_wide);
    (*at)->charged_wide = arena_strdup (arena, sum->charged_wide);
    (*at)->left_wide = arena_strdup (arena, sum->net_wide);
}

static void on_anchor (void *arg, const struct err *err, const struct audit_block *block,
                       uint32_t count, int64_t newest)
{
    struct work *work = arg;
    (void)newest;
    if (work_failed (work, err))
        return;
    work->statement->anchor = count ? block_message (work->arena, block) : NULL;
    work_reply (work, &work->statement->base);
}

static void points_put (struct work *work, const struct fund_statement *st)
{
    Nui__Bank__V1__GrantStatementReply *reply = work->statement;
    const struct fund_day nothing = {.granted_wide = "", .charged_wide = "", .net_wide = ""},
                          *before = &nothing;
    reply->points = arena_array (work->arena, st->day_count + 1, sizeof (*reply->points));
    for (uint32_t i = 0; i < st->day_count; i++) {
        const struct fund_day *day = &st->day[i];
        time_us end = (day->day + 1) * 86400 * US_PER_S;
        if (day->day >= 0 && !reply->opening)
            point (work->arena, &reply->opening, work->from, before);
        before = day;
        if (day->day >= 0)
            point (work->arena, &reply->points[reply->n_points++], end < work->to ? end : work->to,
                   day);
    }
    if (!reply->opening)
        point (work->arena, &reply->opening, work->from, before);
}

static void events_put (struct work *work, const struct fund_statement *st)
{
    Nui__Bank__V1__GrantStatementReply *reply = work->statement;
    reply->events = arena_array (work->arena, st->event_count, sizeof (*reply->events));
    for (uint32_t i = 0; i < st->event_count; i++) {
        Nui__Bank__V1__GrantEvent *event = arena_new (work->arena, Nui__Bank__V1__GrantEvent);
        nui__bank__v1__grant_event__init (event);
        event->at_us = st->event[i].at;
        event->kind = arena_strdup (work->arena, st->event[i].kind);
        event->who = arena_strdup (work->arena, st->event[i].who);
        event->description = arena_strdup (work->arena, st->event[i].note);
        event->op_id = (uint64_t)st->event[i].op_id;
        reply->events[reply->n_events++] = event;
    }
}

static void on_statement (void *arg, const struct err *err, const struct fund_statement *st)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__GrantStatementReply *reply = work->statement;
    points_put (work, st);
    events_put (work, st);
    reply->n_shares = st->share_count;
    reply->shares = arena_array (work->arena, st->share_count, sizeof (*reply->shares));
    for (uint32_t i = 0; i < st->share_count; i++) {
        Nui__Bank__V1__GrantShare *share = arena_new (work->arena, Nui__Bank__V1__GrantShare);
        nui__bank__v1__grant_share__init (share);
        share->project = arena_strdup (work->arena, st->share[i].project);
        share->account = arena_strdup (work->arena, st->share[i].account);
        share->site = arena_strdup (work->arena, st->share[i].site);
        share->jobs = (uint64_t)st->share[i].jobs;
        share->charged_micro = st->share[i].charged;
        share->charged_wide = arena_strdup (work->arena, st->share[i].charged_wide);
        reply->shares[i] = share;
    }
    auditread_blocks (work->svc->reader, 0, 1, on_anchor, work);
}

static void on_grant (void *arg, const struct err *err, const struct fund_grant *grant,
                      uint32_t count)
{
    struct work *work = arg;
    const Nui__Bank__V1__GrantStatementRequest *m = work->request;
    struct err mine = *err;
    if (!mine.code && count == 0)
        err_set (&mine, ERR_NOT_FOUND,
                 "there is no %.40s, or it is of a project that you do not "
                 "see",
                 m->grant_id);
    time_us from = m->from_us ? m->from_us : count ? grant->given : 0;
    if (mine.code || period_read (work, from, m->to_us, "grant", &mine) < 0) {
        work_fail (work, &mine);
        return;
    }
    work->statement = arena_new (work->arena, Nui__Bank__V1__GrantStatementReply);
    nui__bank__v1__grant_statement_reply__init (work->statement);
    work->statement->grant = grant_message (work->arena, grant);
    work->statement->from_us = work->from;
    work->statement->to_us = work->to;
    fundread_statement (work->svc->reader, grant->id, work->from, work->to, on_statement, work);
}

void handle_grant_statement (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__GrantStatementRequest *m = work->request;
    struct err err = {0};
    int64_t id;
    if (number_parse ("grant", m->grant_id, false, &id, &err) < 0)
        work_fail (work, &err);
    else
        fundread_grants (svc->reader, viewer (work), "", id, on_grant, work);
}

/* ---- roles ---- */

static void on_roles (void *arg, const struct err *err, const struct fund_role *role,
                      uint32_t count)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__RoleListReply reply = NUI__BANK__V1__ROLE_LIST_REPLY__INIT;
    reply.n_roles = count;
    reply.roles = arena_array (work->arena, count, sizeof (*reply.roles));
    for (uint32_t i = 0; i < count; i++) {
        Nui__Bank__V1__RoleItem *item = arena_new (work->arena, Nui__Bank__V1__RoleItem);
        nui__bank__v1__role_item__init (item);
        item->identity = unconst (role[i].identity);
        item->role = unconst (role[i].role);
        reply.roles[i] = item;
    }
    work_reply (work, &reply.base);
}

void handle_role_list (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    fundread_roles (svc->reader, viewer (work), on_roles, work);
}
