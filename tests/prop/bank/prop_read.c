/* What is read of the ledger: balances, statements, usage, holds, ends, as whoever asks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "bank/store/fundread.h"
#include "tests/prop/bank/prop.h"

struct reading {
    bool done;
    int code;
    char *text;
    size_t len;
    FILE *out;
};

static void begin (struct reading *reading)
{
    *reading = (struct reading){0};
    reading->out = open_memstream (&reading->text, &reading->len);
    if (!reading->out)
        abort ();
}

static bool failed (struct reading *reading, const struct err *err)
{
    reading->done = true;
    reading->code = err->code;
    if (err->code)
        fprintf (reading->out, "error %d", err->code);
    return err->code != 0;
}

static void on_balance (void *arg, const struct err *err, const struct reader_alloc *row,
                        uint32_t count)
{
    struct reading *reading = arg;
    if (failed (reading, err))
        return;
    for (uint32_t i = 0; i < count; i++)
        if (row[i].id)
            fprintf (reading->out,
                     "alloc.%lld granted %lld settled %lld posted %lld held %lld limit %lld; ",
                     (long long)row[i].id, (long long)row[i].granted, (long long)row[i].settled,
                     (long long)row[i].posted, (long long)row[i].held,
                     (long long)row[i].credit_limit);
        else
            fprintf (reading->out, "empty; ");
}

static void on_statement (void *arg, const struct err *err, const struct reader_statement *s)
{
    struct reading *reading = arg;
    if (failed (reading, err))
        return;
    for (uint32_t i = 0; i < s->line_count; i++) /* what moved nothing the model does not keep */
        if (s->line[i].posted || s->line[i].held)
            fprintf (reading->out, "%s %lld %lld; ", s->line[i].kind, (long long)s->line[i].posted,
                     (long long)s->line[i].held);
    fprintf (reading->out, "opening %lld %lld closing %lld %lld granted %lld charged %lld",
             (long long)s->sum[READER_OPENING_POSTED], (long long)s->sum[READER_OPENING_HELD],
             (long long)s->sum[READER_CLOSING_POSTED], (long long)s->sum[READER_CLOSING_HELD],
             (long long)s->sum[READER_GRANTED], (long long)s->sum[READER_CHARGED]);
}

static void on_usage (void *arg, const struct err *err, const struct reader_usage *row,
                      uint32_t count)
{
    struct reading *reading = arg;
    if (failed (reading, err))
        return;
    for (uint32_t i = 0; i < count; i++) {
        for (int k = 0; k < READER_KEYS - 2; k++)
            fprintf (reading->out, "%s|", row[i].key[k]);
        fprintf (reading->out, "%lld charged %lld refunded %lld; ", (long long)row[i].runs,
                 (long long)row[i].charged, (long long)row[i].refunded);
    }
}

static void on_holds (void *arg, const struct err *err, const struct reader_hold *row,
                      uint32_t count)
{
    struct reading *reading = arg;
    if (failed (reading, err))
        return;
    for (uint32_t i = 0; i < count; i++)
        fprintf (reading->out, "hold.%lld %s %s %s %s %lld %lld %lld; ", (long long)row[i].id,
                 row[i].account, strrchr (row[i].identity, '/') + 1, row[i].job.site,
                 row[i].job.site_job, (long long)row[i].job.incarnation, (long long)row[i].amount,
                 (long long)row[i].left);
}

static void on_ends (void *arg, const struct err *err, const int64_t *id, uint32_t count)
{
    struct reading *reading = arg;
    if (failed (reading, err))
        return;
    for (uint32_t i = 0; i < count; i++)
        fprintf (reading->out, "alloc.%lld; ", (long long)id[i]);
}

/* All that a grant's page adds up: what was charged per day and by whom, and what is left. */
static void on_grant (void *arg, const struct err *err, const struct fund_statement *st)
{
    struct reading *reading = arg;
    if (failed (reading, err))
        return;
    long long charged = 0, shares = 0, left = 0;
    for (uint32_t i = 0; i < st->day_count; i++) {
        charged += st->day[i].charged;
        left += st->day[i].net;
    }
    for (uint32_t i = 0; i < st->share_count; i++)
        shares += st->share[i].charged;
    fprintf (reading->out, "charged %lld shares %lld left %lld", charged, shares, left);
}

enum { READ_KINDS = 6 };

/* What is asked, of whom and by whom; account may be what a project owes, or -1. */
struct question {
    int what, user, account, site;
    long long grant;
    long long from, to;
    unsigned by, luck; /* which of its names */
};

static struct question draw_question (struct run *r)
{
    static const unsigned mask = M_BY_USER | M_BY_PROJECT | M_BY_SITE | M_BY_ACCOUNT | M_BY_FUNDER |
                                 M_BY_GRANT | M_BY_QOS | M_BY_MACHINE;
    long long now = r->model->now;
    struct question q = {.what = (int)draw (r, READ_KINDS),
                         .user = one_in (r, 3) ? -1 : (int)draw (r, M_USERS),
                         .account = draw_account (r),
                         .site = (int)draw (r, M_SITES + 1) - 1};
    q.to = one_in (r, 2) ? now + 1 : (long long)draw (r, (uint64_t)now + 1);
    q.from = one_in (r, 2) ? 0 : (long long)draw (r, (uint64_t)q.to + 1);
    q.by = (unsigned)draw (r, mask + 1) & (one_in (r, 2) ? (unsigned)draw (r, mask + 1) : mask);
    q.luck = (unsigned)draw (r, 1000);
    q.grant = 1 + (long long)draw (r, (uint64_t)r->model->grants + 1);
    if (one_in (r, 8))
        q.account = M_ACCOUNTS + (int)draw (r, M_PROJECTS);
    return q;
}

static void model_answer (struct run *r, const struct question *q, FILE *out)
{
    const struct model *m = r->model;
    int account = q->account < M_ACCOUNTS ? q->account : -1;
    switch (q->what) {
    case 0:
        if (q->account < M_ACCOUNTS)
            model_balance (m, q->user, q->account, out);
        break;
    case 1:
        model_statement (m, q->user, q->account, q->from, q->to, out);
        break;
    case 2:
        model_usage (m, q->user, account, q->from, q->to, q->by, out);
        break;
    case 3:
        model_open_holds (m, q->user, account, q->site, q->to + 300, out);
        break;
    case 4:
        model_grant (m, q->grant, out);
        break;
    default:
        model_ends (m, out);
    }
}

static time_us moment (long long tick)
{
    return tick ? edge (tick) : 0;
}

static void bank_ask (struct run *r, const struct question *q, struct reading *reading)
{
    const char *who = q->user < 0 ? "" : prop_users[q->user];
    bool owes = q->account >= M_ACCOUNTS;
    char debt[32];
    snprintf (debt, sizeof (debt), "debt:%s", owes ? prop_projects[q->account - M_ACCOUNTS] : "");
    const char *account = owes ? debt : model_any_name (r->model, q->account, q->luck);
    switch (q->what) {
    case 0:
        if (owes)
            reading->done = true;
        else
            reader_balance (r->reader, who, account, on_balance, reading);
        break;
    case 1:
        reader_statement (r->reader, who, account, moment (q->from), moment (q->to), on_statement,
                          reading);
        break;
    case 2:
        reader_usage (r->reader, who, owes ? "" : account, moment (q->from), moment (q->to), q->by,
                      on_usage, reading);
        break;
    case 3: /* a hold expires a quarter of a second after its tick */
        reader_holds (r->reader, who, NULL, owes ? "" : account,
                      q->site < 0 ? "" : prop_sites[q->site],
                      EPOCH + (q->to + 300) * US_PER_S + US_PER_S / 2, on_holds, reading);
        break;
    case 4:
        fundread_statement (r->reader, q->grant, 0, INT64_MAX, on_grant, reading);
        break;
    default:
        reader_ended (r->reader, EPOCH + r->model->now * US_PER_S, on_ends, reading);
    }
}

void prop_read (struct run *r)
{
    static const char *const name[READ_KINDS] = {"balance", "statement", "usage",
                                                 "holds",   "grant",     "ends"};
    struct question q = draw_question (r);
    struct reading bank, model;
    char text[200];
    duration_us deadline = clock_monotonic_us () + 120 * US_PER_S;
    begin (&model);
    model_answer (r, &q, model.out);
    fclose (model.out);
    do { /* a killed backend says that it may be asked again */
        begin (&bank);
        bank_ask (r, &q, &bank);
        while (!bank.done && clock_monotonic_us () < deadline)
            event_base_loop (r->rig.base, EVLOOP_ONCE);
        fclose (bank.out);
        if (bank.code == ERR_UNAVAILABLE) {
            free (bank.text);
            while (!r->reader_up && clock_monotonic_us () < deadline)
                event_base_loop (r->rig.base, EVLOOP_ONCE);
        }
    } while (bank.code == ERR_UNAVAILABLE && clock_monotonic_us () < deadline);
    snprintf (text, sizeof (text), "%s of %s by %s in [%lld, %lld) by %x differs", name[q.what],
              q.account < M_ACCOUNTS ? model_account_name (r->model, q.account)
                                     : prop_projects[q.account - M_ACCOUNTS],
              q.user < 0 ? "all" : prop_users[q.user], q.from, q.to, q.by);
    if (!bank.done || strcmp (bank.text, model.text) != 0) {
        fprintf (stderr, "  wanted: %s\n  got:    %s\n", model.text, bank.text);
        prop_die (r, text, NULL);
    }
    r->reads++;
    free (bank.text);
    free (model.text);
}
