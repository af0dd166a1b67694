/* Calls that change nothing: quote, balance, statement, list, rates. */
#include <string.h>

#include "bank/svc/service_impl.h"

/* Whose memberships limit what is seen: a user's; agencies and operators see everything. A site has
 * none, and sees what names it. */
const char *viewer (struct work *work)
{
    const struct principal *peer = rpccall_peer (work->call);
    char uri[PRINCIPAL_URI_MAX];
    return peer->kind == PRINCIPAL_USER || peer->kind == PRINCIPAL_SITE
               ? arena_strdup (work->arena, principal_uri (peer, uri))
               : "";
}

const char *viewer_site (struct work *work)
{
    const struct principal *peer = rpccall_peer (work->call);
    return peer->kind == PRINCIPAL_SITE ? peer->name : NULL;
}

/* ---- quote ---- */

static void on_quote (void *arg, const struct err *err, struct ledger_quote *quote)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__QuoteReply reply;
    reply_quote (work->arena, quote, "", 0, &reply);
    work_reply (work, &reply.base);
}

static int item_read (struct work *work, const Nui__Common__V1__Job *job,
                      const Nui__Bank__V1__PriceItem *m, struct ledger_quote_item *item,
                      struct err *err)
{
    if (name_check ("site", m->site, err) < 0)
        return err->code;
    if (m->procs > INT64_MAX || m->start_us < 0 || strlen (m->machine) > 255)
        return err_set (err, ERR_INVALID, "quote: processors, start or machine out of bounds");
    item->site = m->site;
    item->procs = (int64_t)m->procs;
    item->walltime = m->walltime_us;
    item->start = m->start_us;
    item->ask.machine = m->machine;
    if (asked_read (work, m->asked, m->qos, m->class_, &item->ask, err) < 0)
        return err->code;
    asked_signed (work, job, m->component, m->shape, &item->ask);
    signed_bounds (job, m->component, m->shape, &item->bounds);
    return 0;
}

static int quote_fill (struct work *work, const Nui__Common__V1__Job *job, const char *signer,
                       const Nui__Bank__V1__QuoteRequest *m, struct err *err)
{
    char uri[PRINCIPAL_URI_MAX];
    const struct principal *peer = rpccall_peer (work->call);
    work->quote.identity = signer;
    work->quote.account = arena_strdup (work->arena, job->account);
    if (peer->kind == PRINCIPAL_USER && strcmp (principal_uri (peer, uri), signer) != 0)
        return err_set (err, ERR_DENIED, "quote: the job was signed by %.200s, not by you", signer);
    work->quote.all_of = m->all_of;
    work->quote.item_count = (uint32_t)m->n_items;
    work->quote.item = arena_array (work->arena, m->n_items, sizeof (*work->quote.item));
    for (size_t i = 0; i < m->n_items; i++)
        if (item_read (work, job, m->items[i], &work->quote.item[i], err) < 0)
            return err->code;
    return 0;
}

static int quote_read (struct work *work, const Nui__Bank__V1__QuoteRequest *m, struct err *err)
{
    Nui__Common__V1__Job *job = NULL;
    char *signer = NULL;
    if (m->n_items == 0 || m->n_items > LEDGER_QUOTE_ITEMS_MAX)
        return err_set (err, ERR_LIMIT, "quote: %zu items, 1 to %d can be priced", m->n_items,
                        LEDGER_QUOTE_ITEMS_MAX);
    if (job_open (work, m->envelope, 0, &signer, &job, NULL, err) < 0)
        return err->code;
    quote_fill (work, job, signer, m, err);
    job_close (job);
    return err->code;
}

/* Rates that are to be kept: an operation, and answered again as it was for the same key. */
static void quote_keep (struct work *work, const Nui__Bank__V1__QuoteRequest *m)
{
    char asked[QUANTITY_TEXT_MAX], most[QUANTITY_TEXT_MAX];
    struct ledger_request *req = &work->req;
    struct err err = {0};
    if (request_begin (work, LEDGER_QUOTE, &m->key, &nui__bank__v1__quote_reply__descriptor, &err) <
        0) {
        work_fail (work, &err);
        return;
    }
    req->quote.ask = &work->quote;
    req->quote.keep = m->keep_us;
    req->quote.reusable = m->reusable;
    if (quote_read (work, m, &req->refused) == 0) {
        req->on_behalf = work->quote.identity;
        if (m->keep_us < 0 || m->keep_us > work->svc->limits.quote)
            err_set (&req->refused, ERR_LIMIT, "quote: rates cannot be kept for %s, at most for %s",
                     duration_format (m->keep_us, asked),
                     duration_format (work->svc->limits.quote, most));
    }
    request_submit (work);
}

void handle_quote (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__QuoteRequest *m = (const void *)request;
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    struct err err = {0};
    work->now = committer_now (work->svc->committer);
    if (m->keep_us != 0)
        quote_keep (work, m);
    else if (quote_read (work, m, &err) < 0)
        work_fail (work, &err);
    else
        reader_quote (svc->reader, &work->quote, work->now, on_quote, work);
}

/* ---- balance ---- */

static credit_micro room_of (const struct reader_alloc *row)
{
    struct ledger_alloc alloc = {
        .posted = row->posted, .held = row->held, .credit_limit = row->credit_limit};
    return ledger_room (&alloc);
}

/* Of an account: each in 64 bits, their sums not. */
struct balance_sums {
    __int128 granted, settled, held, available, scheduled;
};

static int64_t sum_micro (__int128 sum)
{
    return sum > INT64_MAX ? INT64_MAX : sum < INT64_MIN ? INT64_MIN : (int64_t)sum;
}

/* In credits where it is beyond 64 bits of micro-credits; else "". */
static char *sum_wide (struct arena *arena, __int128 sum)
{
    unsigned __int128 left = sum < 0 ? -(unsigned __int128)sum : (unsigned __int128)sum;
    char whole[48], part[QUANTITY_TEXT_MAX];
    size_t at = sizeof (whole) - 1;
    if (sum == sum_micro (sum))
        return unconst ("");
    /* "0.5": what follows the whole credits */
    credit_format ((credit_micro)(left % MICRO_PER_CREDIT), part);
    left /= MICRO_PER_CREDIT;
    whole[at] = '\0';
    do
        whole[--at] = (char)('0' + (int)(left % 10));
    while (left /= 10);
    return arena_printf (arena, "%s%s%s", sum < 0 ? "-" : "", whole + at, part + 1);
}

static void balance_sums_put (struct arena *arena, const struct balance_sums *sums,
                              Nui__Bank__V1__Balance *balance)
{
    balance->granted_micro = sum_micro (sums->granted);
    balance->settled_micro = sum_micro (sums->settled);
    balance->held_micro = sum_micro (sums->held);
    balance->available_micro = sum_micro (sums->available);
    balance->scheduled_micro = sum_micro (sums->scheduled);
    balance->granted_wide = sum_wide (arena, sums->granted);
    balance->settled_wide = sum_wide (arena, sums->settled);
    balance->held_wide = sum_wide (arena, sums->held);
    balance->available_wide = sum_wide (arena, sums->available);
    balance->scheduled_wide = sum_wide (arena, sums->scheduled);
}

/* One allocation's part in its account's balance; false for what has ended and is settled. */
static bool balance_add (struct balance_sums *sums, const struct reader_alloc *row, time_us now,
                         credit_micro *available_out)
{
    bool valid = row->valid_from <= now && now < row->valid_to;
    credit_micro room = room_of (row);
    *available_out = valid || room < 0 ? room : 0;
    if (row->valid_from > now) {
        sums->scheduled += row->granted;
        return true;
    }
    if (!valid && row->held == 0 && room >= 0)
        return false;
    sums->granted += row->granted;
    sums->settled += row->settled;
    sums->held += row->held;
    sums->available += *available_out;
    return true;
}

static void balance_alloc (struct arena *arena, Nui__Bank__V1__Balance *balance,
                           const struct reader_alloc *row, credit_micro available)
{
    Nui__Bank__V1__Allocation *alloc = arena_new (arena, Nui__Bank__V1__Allocation);
    nui__bank__v1__allocation__init (alloc);
    alloc->id = arena_printf (arena, "alloc.%lld", (long long)row->id);
    alloc->granted_micro = row->granted;
    alloc->settled_micro = row->settled;
    alloc->held_micro = row->held;
    alloc->available_micro = available;
    alloc->valid_from_us = row->valid_from;
    alloc->valid_to_us = row->valid_to == TIME_US_MAX ? 0 : row->valid_to;
    alloc->description = unconst (row->description);
    alloc->credit_limit_micro = row->credit_limit;
    alloc->frozen = unconst (row->grant_frozen);
    balance->allocations[balance->n_allocations++] = alloc;
}

static void on_balance (void *arg, const struct err *err, const struct reader_alloc *row,
                        uint32_t count)
{
    struct work *work = arg;
    const Nui__Bank__V1__BalanceRequest *m = work->request;
    struct err mine = *err;
    if (!mine.code && count == 0 && m->account[0])
        err_set (&mine, ERR_NOT_FOUND,
                 "there is no account %.80s, or you are not a member of its project", m->account);
    if (mine.code) {
        work_fail (work, &mine);
        return;
    }
    Nui__Bank__V1__BalanceReply reply = NUI__BANK__V1__BALANCE_REPLY__INIT;
    reply.balances = arena_array (work->arena, count, sizeof (*reply.balances));
    Nui__Bank__V1__Balance *balance = NULL;
    struct balance_sums sums = {0};
    for (uint32_t i = 0; i < count; i++) {
        credit_micro available;
        if (!balance || strcmp (balance->account, row[i].account) != 0) {
            balance = arena_new (work->arena, Nui__Bank__V1__Balance);
            nui__bank__v1__balance__init (balance);
            balance->account = unconst (row[i].account);
            balance->project = unconst (row[i].project);
            balance->frozen = unconst (row[i].frozen);
            balance->allocations =
                arena_array (work->arena, count - i, sizeof (*balance->allocations));
            reply.balances[reply.n_balances++] = balance;
            sums = (struct balance_sums){0};
        }
        if (row[i].id && balance_add (&sums, &row[i], work->now, &available))
            balance_alloc (work->arena, balance, &row[i], available);
        if (i + 1 == count || strcmp (row[i + 1].account, row[i].account) != 0)
            balance_sums_put (work->arena, &sums, balance);
    }
    work_reply (work, &reply.base);
}

void handle_balance (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__BalanceRequest *m = work->request;
    work->now = committer_now (work->svc->committer);
    reader_balance (svc->reader, viewer (work), m->account, on_balance, work);
}

/* ---- statement ---- */

static void on_statement (void *arg, const struct err *err, const struct reader_statement *st)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__StatementReply reply = NUI__BANK__V1__STATEMENT_REPLY__INIT;
    reply.account = unconst (st->account);
    reply.from_us = work->from;
    reply.to_us = work->to;
    int64_t *sum[READER_STATEMENT_SUMS] = {&reply.opening_posted_micro, &reply.opening_held_micro,
                                           &reply.closing_posted_micro, &reply.closing_held_micro,
                                           &reply.granted_micro,        &reply.charged_micro,
                                           &reply.available_micro};
    char **wide[READER_STATEMENT_SUMS] = {&reply.opening_posted_wide, &reply.opening_held_wide,
                                          &reply.closing_posted_wide, &reply.closing_held_wide,
                                          &reply.granted_wide,        &reply.charged_wide,
                                          &reply.available_wide};
    for (int i = 0; i < READER_STATEMENT_SUMS; i++) {
        *sum[i] = st->sum[i];
        *wide[i] = unconst (st->wide[i]);
    }
    reply.n_lines = st->line_count;
    reply.lines = arena_array (work->arena, st->line_count, sizeof (*reply.lines));
    for (uint32_t i = 0; i < st->line_count; i++) {
        Nui__Bank__V1__StatementLine *line = arena_new (work->arena, Nui__Bank__V1__StatementLine);
        nui__bank__v1__statement_line__init (line);
        line->at_us = st->line[i].at;
        line->kind = unconst (st->line[i].kind);
        line->job = unconst (st->line[i].job);
        line->site = unconst (st->line[i].site);
        line->amount_micro = st->line[i].posted;
        line->held_micro = st->line[i].held;
        line->amount_wide = unconst (st->line[i].posted_wide);
        line->held_wide = unconst (st->line[i].held_wide);
        line->description = unconst (st->line[i].note);
        line->who = unconst (st->line[i].who);
        line->op_id = st->line[i].op_id;
        reply.lines[i] = line;
    }
    work_reply (work, &reply.base);
}

int period_read (struct work *work, time_us from, time_us to, const char *what, struct err *err)
{
    struct committer *committer = work->svc->committer;
    /* Never beyond what is settled now: the closing of one is the opening of the next. */
    time_us horizon = committer_horizon (committer);
    work->from = from;
    work->to = to > 0 && to < horizon ? to : horizon;
    if (from < 0 || to < 0)
        return err_set (err, ERR_INVALID, "%s: a moment before 1970", what);
    if (work->from > work->to)
        return err_set (err, ERR_INVALID, "%s: the period ends before it begins", what);
    /* While the writer is away a commit of unknown outcome may still arrive before the horizon. */
    if (!committer_is_up (committer))
        return err_set (err, ERR_UNAVAILABLE, "the bank's database is away: ask again");
    return 0;
}

void handle_statement (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__StatementRequest *m = work->request;
    struct err err = {0};
    if (name_check ("account", m->account, &err) < 0 ||
        period_read (work, m->from_us, m->to_us, "statement", &err) < 0)
        work_fail (work, &err);
    else
        reader_statement (svc->reader, viewer (work), m->account, work->from, work->to,
                          on_statement, work);
}

/* ---- lists ---- */

static void on_list (void *arg, const struct err *err, const struct reader_item *item,
                     uint32_t count)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__ListReply reply = NUI__BANK__V1__LIST_REPLY__INIT;
    reply.n_items = count;
    reply.items = arena_array (work->arena, count, sizeof (*reply.items));
    for (uint32_t i = 0; i < count; i++) {
        Nui__Bank__V1__ListItem *out = arena_new (work->arena, Nui__Bank__V1__ListItem);
        nui__bank__v1__list_item__init (out);
        out->name = unconst (item[i].name);
        out->project = unconst (item[i].project);
        out->detail = unconst (item[i].detail);
        out->number = (uint64_t)item[i].number;
        out->parent = unconst (item[i].parent);
        out->description = unconst (item[i].description);
        out->closed = item[i].closed;
        reply.items[i] = out;
    }
    work_reply (work, &reply.base);
}

void handle_list (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    static const char *const name[] = {"project", "user", "account", "site", "funder"};
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__ListRequest *m = work->request;
    for (int kind = 0; kind < 5; kind++)
        if (strcmp (m->kind, name[kind]) == 0) {
            reader_list (svc->reader, viewer (work), (enum reader_list)kind, on_list, work);
            return;
        }
    struct err err = {0};
    err_set (&err, ERR_INVALID, "list: '%.40s' is none of project, user, account, site, funder",
             m->kind);
    work_fail (work, &err);
}

static void factors_put (struct arena *arena, Nui__Bank__V1__Rate *out,
                         const struct ledger_factor *factor, uint32_t count)
{
    out->n_factors = count;
    out->factors = arena_array (arena, count, sizeof (*out->factors));
    for (uint32_t i = 0; i < count; i++) {
        out->factors[i] = arena_new (arena, Nui__Bank__V1__RateFactor);
        nui__bank__v1__rate_factor__init (out->factors[i]);
        out->factors[i]->kind = unconst (ledger_factor_name (factor[i].kind));
        out->factors[i]->name = unconst (factor[i].name);
        out->factors[i]->ppm = factor[i].ppm;
    }
}

static void on_rates (void *arg, const struct err *err, const struct reader_rate *rate,
                      uint32_t count)
{
    struct work *work = arg;
    if (work_failed (work, err))
        return;
    Nui__Bank__V1__RateListReply reply = NUI__BANK__V1__RATE_LIST_REPLY__INIT;
    reply.n_rates = count;
    reply.rates = arena_array (work->arena, count, sizeof (*reply.rates));
    for (uint32_t i = 0; i < count; i++) {
        Nui__Bank__V1__Rate *out = arena_new (work->arena, Nui__Bank__V1__Rate);
        nui__bank__v1__rate__init (out);
        out->site = unconst (rate[i].site);
        out->multiplier_ppm = rate[i].ppm;
        out->from_us = rate[i].from;
        out->version = rate[i].version;
        out->measure = unconst (rate[i].measure);
        out->successful_only = rate[i].successful_only;
        factors_put (work->arena, out, rate[i].factor, rate[i].factor_count);
        reply.rates[i] = out;
    }
    work_reply (work, &reply.base);
}

void handle_rate_list (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct bank_service *svc = self;
    struct work *work = work_create (svc, call, request);
    const Nui__Bank__V1__RateListRequest *m = work->request;
    reader_rates (svc->reader, m->site, on_rates, work);
}
