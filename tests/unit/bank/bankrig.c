#include "tests/unit/bank/bankrig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"

#define AGENCY "nui://test/agency/nsf"

void bankrig_encode (void *arg, const struct ledger_request *req, const struct ledger_outcome *out,
                     struct strbuf *bytes)
{
    (void)arg;
    switch (req->kind) {
    case LEDGER_HOLD:
    case LEDGER_HOLD_GROUP:
    case LEDGER_EXTEND:
        for (uint32_t i = 0; out->hold.granted && i < out->hold.count; i++) {
            const struct ledger_granted *item = &out->hold.item[i];
            strbuf_printf (bytes, "%s%s %lld %s%s%s%s",
                           i                            ? "; "
                           : req->kind == LEDGER_EXTEND ? "extended "
                                                        : "granted ",
                           item->hold_id, (long long)item->amount, item->account,
                           item->fallback ? " fallback" : "", item->qos[0] ? " at " : "",
                           item->qos);
        }
        if (out->hold.granted)
            return;
        strbuf_printf (bytes, "refused %s", out->hold.reason_code);
        for (uint32_t i = 0; i < out->hold.candidate_count; i++)
            strbuf_printf (bytes, " %s:%s:%lld", out->hold.candidate[i].account,
                           out->hold.candidate[i].code,
                           (long long)out->hold.candidate[i].shortfall);
        return;
    case LEDGER_CHARGE:
        strbuf_printf (bytes, "charged %lld total %lld released %lld %s acked %llu",
                       (long long)out->charge.charged, (long long)out->charge.total,
                       (long long)out->charge.released, out->charge.account,
                       (unsigned long long)out->charge.acked);
        return;
    case LEDGER_RELEASE:
        strbuf_printf (bytes, "released %lld acked %llu", (long long)out->release.released,
                       (unsigned long long)out->release.acked);
        return;
    case LEDGER_REFUND:
        strbuf_printf (bytes, "refunded %lld left %lld", (long long)out->refund.refunded,
                       (long long)out->refund.left);
        return;
    case LEDGER_QUOTE:
        strbuf_printf (bytes, "%s total %lld", out->quote.id, (long long)out->quote.answer->total);
        for (uint32_t i = 0; i < out->quote.answer->item_count; i++)
            strbuf_printf (bytes, " %lld:%s", (long long)out->quote.answer->item[i].amount,
                           out->quote.answer->item[i].account);
        return;
    case LEDGER_WITHDRAW: /* its id is the operation's, which a model does not know */
    case LEDGER_SITE_SET:
    case LEDGER_ROLE_SET:
    case LEDGER_FREEZE:
        strbuf_printf (bytes, "done");
        return;
    case LEDGER_RECON:
        strbuf_printf (bytes, "opened %u open %u gone %u", out->recon.opened, out->recon.open,
                       out->recon.gone);
        return;
    default:
        strbuf_printf (bytes, "done %s", out->done.id);
    }
}

static void on_state (void *arg, bool up, const char *why)
{
    struct bankrig *rig = arg;
    (void)why;
    rig->up = up;
    if (up)
        committer_clock_accept (
            rig->committer); /* a test's time of its own, whatever PostgreSQL's clock says */
}

/* A signature that anyone can make: the rig's tests are not about keys. */
static int sign (void *arg, const uint8_t body[BLOCK_BYTES], struct seal_mark *mark,
                 struct err *err)
{
    (void)arg;
    (void)body;
    (void)err;
    *mark = (struct seal_mark){"chain", 5, "signature", 9};
    return 0;
}

static duration_us bankrig_shift;

/* The monotonic one shows the time too: some tests have a time of their own. */
static struct moment_now bankrig_clock (void)
{
    time_us now = clock_now_us ();
    return (struct moment_now){now + bankrig_shift, now};
}

static int64_t bankrig_leaps;

void bankrig_numbers_leap (int64_t per_s)
{
    bankrig_leaps = per_s;
}

void bankrig_clock_shift (duration_us shift)
{
    bankrig_shift = shift;
}

void bankrig_open (struct bankrig *rig, const char *conninfo)
{
    struct err err = {0};
    *rig = (struct bankrig){.base = event_base_new ()};
    struct committer_config config = {.base = rig->base,
                                      .log = NULL,
                                      .conninfo = conninfo,
                                      .encode = bankrig_encode,
                                      .sign = sign,
                                      .state = on_state,
                                      .clock_bound = 60 * US_PER_S,
                                      .clock = bankrig_clock,
                                      .numbers_per_s = bankrig_leaps,
                                      .arg = rig};
    rig->committer = committer_create (&config, &err);
    if (!rig->committer) {
        fprintf (stderr, "bankrig: %s\n", err.text);
        abort ();
    }
}

static void on_tick (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
}

/* Runs the loop until what `is` says of arg is want; false after so many seconds. */
static bool run_until (struct bankrig *rig, bool (*is) (const void *arg), const void *arg,
                       bool want, int seconds)
{
    struct event *tick = event_new (rig->base, -1, EV_PERSIST, on_tick, NULL);
    struct timeval tv = {0, 10000};
    duration_us deadline = clock_monotonic_us () + seconds * US_PER_S;
    event_add (tick, &tv);
    while (is (arg) != want && clock_monotonic_us () < deadline)
        event_base_loop (rig->base, EVLOOP_ONCE);
    event_free (tick);
    return is (arg) == want;
}

static bool flag_is (const void *arg)
{
    return *(const bool *)arg;
}

static bool second_is (const void *arg)
{
    return committer_has_second (((const struct bankrig *)arg)->committer);
}

bool bankrig_wait_up (struct bankrig *rig, bool up)
{
    return run_until (rig, flag_is, &rig->up, up, 120);
}

bool bankrig_wait_second (struct bankrig *rig, bool up)
{
    return run_until (rig, second_is, rig, up, 30);
}

void bankrig_close (struct bankrig *rig)
{
    committer_destroy (rig->committer);
    event_base_free (rig->base);
}

static void on_done (void *arg, const struct err *err, const void *bytes, size_t len)
{
    struct answer *answer = arg;
    answer->given = true;
    answer->err = *err;
    snprintf (answer->text, sizeof (answer->text), "%.*s", (int)len,
              len ? (const char *)bytes : "");
}

void bankrig_send (struct bankrig *rig, const struct ledger_request *req, struct answer *answer)
{
    *answer = (struct answer){0};
    while (committer_submit (rig->committer, req, NULL, on_done, answer, &answer->err) < 0)
        if (!bankrig_wait_up (rig, true)) {
            fprintf (stderr, "bankrig: %s\n", answer->err.text);
            abort ();
        }
}

void bankrig_await (struct bankrig *rig, struct answer *answer)
{
    if (!run_until (rig, flag_is, &answer->given, true, 120)) {
        fprintf (stderr, "bankrig: no answer within 120 s\n");
        abort ();
    }
}

struct answer bankrig_ask (struct bankrig *rig, const struct ledger_request *req)
{
    struct answer *answer = malloc (sizeof (*answer));
    bankrig_send (rig, req, answer);
    bankrig_await (rig, answer);
    struct answer out = *answer;
    free (answer);
    return out;
}

/* ---- requests ---- */

static void mix (uint64_t *h, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        *h = (*h ^ ((const uint8_t *)bytes)[i]) * UINT64_C (1099511628211);
}

static void mix_text (uint64_t *h, const char *text)
{
    mix (h, text, strlen (text) + 1);
}

/* Stands for the SHA-256 that the service makes of the packed request. */
void request_seal (struct ledger_request *req)
{
    uint64_t h = UINT64_C (14695981039346656037);
    mix (&h, &req->kind, sizeof (req->kind));
    switch (req->kind) {
    case LEDGER_HOLD:
        mix_text (&h, req->hold.job.site_job);
        mix_text (&h, req->hold.account);
        mix (&h, &req->hold.procs, 8);
        mix (&h, &req->hold.walltime, 8);
        break;
    case LEDGER_CHARGE:
        mix_text (&h, req->charge.hold_id);
        mix_text (&h, req->charge.job.site_job);
        mix (&h, &req->charge.procs, 8);
        mix (&h, &req->charge.end, 8);
        break;
    case LEDGER_RELEASE:
        mix_text (&h, req->release.hold_id);
        break;
    case LEDGER_EXTEND:
        mix_text (&h, req->extend.hold_id);
        mix (&h, &req->extend.walltime, 8);
        break;
    case LEDGER_DEPOSIT:
        mix_text (&h, req->deposit.account);
        mix (&h, &req->deposit.amount, 8);
        break;
    case LEDGER_PROJECT_CREATE:
        mix_text (&h, req->project.name);
        break;
    default:
        break;
    }
    memset (req->hash, 0, sizeof (req->hash));
    memcpy (req->hash, &h, sizeof (h));
}

struct ledger_request req_new (struct bankrig *rig, enum ledger_kind kind, const char *client)
{
    struct ledger_request req = {.kind = kind, .client = client, .on_behalf = client};
    uint64_t n = ++rig->keys;
    memcpy (req.key.b, &n, sizeof (n));
    memcpy (req.key.b + 8, &rig, sizeof (rig));
    return req;
}

struct ledger_request req_project (struct bankrig *rig, const char *name)
{
    struct ledger_request req = req_new (rig, LEDGER_PROJECT_CREATE, AGENCY);
    req.project.name = name;
    req.project.parent = "";
    req.project.description = "";
    request_seal (&req);
    return req;
}

struct ledger_request req_user (struct bankrig *rig, const char *identity)
{
    struct ledger_request req = req_new (rig, LEDGER_USER_CREATE, AGENCY);
    req.user.identity = identity;
    return req;
}

struct ledger_request req_member (struct bankrig *rig, const char *project, const char *identity)
{
    struct ledger_request req = req_new (rig, LEDGER_MEMBER, AGENCY);
    req.member.project = project;
    req.member.identity = identity;
    req.member.role = "member";
    return req;
}

struct ledger_request req_account (struct bankrig *rig, const char *name, const char *project,
                                   const char *const *fallbacks, uint32_t count)
{
    static struct ledger_fallback_ask ask[LEDGER_FALLBACKS_MAX];
    struct ledger_request req = req_new (rig, LEDGER_ACCOUNT_CREATE, AGENCY);
    for (uint32_t i = 0; i < count; i++)
        ask[i] = (struct ledger_fallback_ask){fallbacks[i], "", ""};
    req.account.name = name;
    req.account.project = project;
    req.account.fallbacks = ask;
    req.account.fallback_count = count;
    return req;
}

struct ledger_request req_deposit (struct bankrig *rig, const char *account, credit_micro amount,
                                   time_us from, time_us to)
{
    struct ledger_request req = req_new (rig, LEDGER_DEPOSIT, AGENCY);
    req.deposit.account = account;
    req.deposit.amount = amount;
    req.deposit.valid_from = from;
    req.deposit.valid_to = to;
    req.deposit.description = "grant";
    req.deposit.reference = "";
    request_seal (&req);
    return req;
}

struct ledger_request req_rate (struct bankrig *rig, const char *site, int64_t ppm)
{
    struct ledger_request req = req_new (rig, LEDGER_RATE_SET, AGENCY);
    req.rate.site = site;
    req.rate.ppm = ppm;
    return req;
}

struct ledger_request req_hold (struct bankrig *rig, const char *site, const char *job,
                                const char *account, const char *user, int64_t procs,
                                int64_t seconds)
{
    struct ledger_request req = req_new (rig, LEDGER_HOLD, "nui://test/site/x");
    req.client = site;
    req.on_behalf = user;
    req.hold.job = (struct ledger_job){site, job, "main", "grid.1", 0};
    req.hold.account = account;
    req.hold.procs = procs;
    req.hold.walltime = seconds * US_PER_S;
    request_seal (&req);
    return req;
}

void ask_sign (struct ledger_hold_ask *ask)
{
    ask->is_signed = true;
    ask->meta = ask->part = "";
    ask->live_max = ask->runs_max = 1;
    ask->bounds = (struct ledger_bounds){.procs = ask->procs,
                                         .loose_procs = ask->procs,
                                         .loose_task = 1,
                                         .walltime = ask->walltime,
                                         .restarts_max = LEDGER_RESTARTS_MAX};
}

struct ledger_request req_charge (struct bankrig *rig, const char *site, const char *job,
                                  const char *hold, int64_t procs, time_us start, int64_t seconds,
                                  bool final)
{
    struct ledger_request req = req_new (rig, LEDGER_CHARGE, site);
    req.charge.job = (struct ledger_job){site, job, "main", "grid.1", 0};
    req.charge.hold_id = hold;
    req.charge.account = "";
    req.charge.procs = procs;
    req.charge.start = start;
    req.charge.end = start + seconds * US_PER_S;
    req.charge.final = final;
    req.charge.successful = true;
    req.charge.tolerance = 86400 * US_PER_S; /* most of these tests do not wait for their jobs */
    request_seal (&req);
    return req;
}

struct ledger_request req_release (struct bankrig *rig, const char *site, const char *hold)
{
    struct ledger_request req = req_new (rig, LEDGER_RELEASE, site);
    req.release.site = site;
    req.release.hold_id = hold;
    req.release.reason = "test";
    request_seal (&req);
    return req;
}

struct ledger_request req_withdraw (struct bankrig *rig, const char *account, credit_micro amount)
{
    struct ledger_request req = req_new (rig, LEDGER_WITHDRAW, AGENCY);
    req.withdraw.account = account;
    req.withdraw.amount = amount;
    req.withdraw.description = "back";
    return req;
}

struct ledger_request req_transfer (struct bankrig *rig, const char *from, const char *to,
                                    credit_micro amount)
{
    struct ledger_request req = req_new (rig, LEDGER_TRANSFER, AGENCY);
    req.transfer.from = from;
    req.transfer.to = to;
    req.transfer.amount = amount;
    req.transfer.description = "";
    return req;
}

struct ledger_request req_refund (struct bankrig *rig, int64_t charge_op, credit_micro amount)
{
    struct ledger_request req = req_new (rig, LEDGER_REFUND, AGENCY);
    req.refund.charge_op = charge_op;
    req.refund.amount = amount;
    req.refund.reason = "it failed";
    return req;
}

struct ledger_request req_freeze (struct bankrig *rig, enum ledger_freezable what, const char *name,
                                  int64_t grant, bool undo)
{
    struct ledger_request req = req_new (rig, LEDGER_FREEZE, "nui://test/operator/ops");
    req.freeze.what = what;
    req.freeze.name = name;
    req.freeze.grant_id = grant;
    req.freeze.reason = undo ? "" : "an audit";
    req.freeze.undo = undo;
    return req;
}

struct ledger_request req_limit (struct bankrig *rig, int64_t allocation_id, credit_micro limit)
{
    struct ledger_request req = req_new (rig, LEDGER_LIMIT_SET, AGENCY);
    req.limit.allocation_id = allocation_id;
    req.limit.credit_limit = limit;
    return req;
}
