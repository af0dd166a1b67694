/* Tells the administrator what should not wait for the next look: a job that failed, a node
 * that is down or was drained for its failing jobs, a bank that does not answer, denies, has another past or a
 * clock that differs, a reservation that has lost nodes.
 *
 * Each notification is a message of the store's outbox, written with what it tells of, so that none
 * is lost; NOTIFICATIONPROGRAM and NOTIFICATIONURL get them in order, each at least once, one at a
 * time, beside the loop. What fails is tried again a few times and then dropped, with a line in the
 * log. Without program and URL nothing is written. */
#include "local/svc/memory/memory.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "local/store/history.h"
#include "local/svc/job.h"
#include "local/svc/nodes.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"
#include "proto/notify/teller.h"

enum {
    WAITING_MAX = 10000, /* more are not written: the log has them */
    BANK_SILENT_S = 60,
};
static const char blob_name[] = "problems";

/* What is wrong now, as lines of "EVENT object"; kept sorted, so that two can be compared. */
struct problems {
    char **line;
    uint32_t count, cap;
};

struct notify {
    struct svc *svc;
    struct event *timer;
    struct teller *teller;
    uint64_t sequence; /* of the one being told */
    char *payload;     /* while it is read */
    size_t payload_len;
    struct problems told;
    bool bank_silent, history_rewritten, clock_differs;
};

/* --- events ------------------------------------------------------------------------------- */

static const struct {
    unsigned bit;
    const char *event;   /* as it is told */
    const char *cleared; /* when it is over; NULL: it does not end */
} events[] = {
    {NOTIFY_JOB_FAILURE, "JobFailure", NULL},
    {NOTIFY_NODE_DOWN, "NodeDown", "NodeUp"},
    {NOTIFY_BANK_DOWN, "BankDown", "BankUp"},
    {NOTIFY_RES_UNFILLED, "ResUnfilled", "ResFilled"},
    {NOTIFY_BANK_HISTORY, "BankHistoryRewritten", "BankHistoryRestored"},
    {NOTIFY_BANK_DENIED, "BankDenied", "BankAllowed"},
    {NOTIFY_JOB_LIMIT, "JobLimit", NULL},
    {NOTIFY_CLOCK_DIFFERS, "ClockDiffers", "ClockAgrees"},
    {NOTIFY_NODE_DRAINED, "NodeDrained", "NodeReturned"},
};
enum { EVENTS = sizeof events / sizeof *events };

static bool wanted (const struct svc *svc, unsigned event)
{
    const struct settings *s = svc->settings;
    return svc->notify && (s->notify_program || s->notify_url) && (s->notify_events & event) &&
           (s->mode.mode == MODE_NORMAL || s->mode.mode == MODE_INTERACTIVE);
}

/* In a transaction. */
static int put (struct svc *svc, const char *event, const char *object, const char *user,
                const char *text, struct err *err)
{
    struct uuid key;
    char id[QUANTITY_TEXT_MAX], moment[QUANTITY_TEXT_MAX];
    uint64_t waiting = 0;
    time_us oldest;
    int rc = local_store_outbox_waiting (svc->store, STORE_OUTBOX_NOTIFY, &waiting, &oldest, err);
    if (rc != 0)
        return rc;
    if (waiting >= WAITING_MAX) {
        log_event (svc->log, LOG_LEVEL_ERROR, "notify", "too_many_waiting", "event=%s object=%s",
                   event, object);
        return 0;
    }
    uuid_make (&key);
    time_us now = svc_now (svc);
    json_t *doc =
        json_pack ("{s:s, s:s, s:s, s:s, s:s, s:s, s:s*}", "event", event, "site", svc->site,
                   "object", object, "text", text, "time", time_format_iso (now, moment), "key",
                   uuid_format (&key, id), "user", user);
    char *bytes = doc ? json_dumps (doc, JSON_COMPACT) : NULL;
    json_decref (doc);
    if (!bytes)
        return err_set (err, ERR_INVALID, "notification of %s: not UTF-8", object);
    rc = local_store_outbox_put (svc->store, STORE_OUTBOX_NOTIFY, event, &key, bytes,
                                 strlen (bytes), now, NULL, err);
    free (bytes);
    return rc;
}

static int notify_job_ends (struct svc *svc, struct site_job *job, const struct job_end *end,
                            struct err *err)
{
    if (end->how == JOB_RUNS_AGAIN ||
        (job->rec.state != STORE_JOB_FAILED && job->rec.state != STORE_JOB_TIMEOUT))
        return 0;
    char id[SITE_ID_MAX], text[700];
    if (!wanted (svc, NOTIFY_JOB_FAILURE))
        return 0;
    site_id (svc, job->rec.number, id);
    text_printf (text, sizeof text, "job %s of %s failed: %s", id, job->rec.local_account,
                 job->rec.reason_text ? job->rec.reason_text : "no reason is known");
    if (job->rec.exit_code)
        snprintf (text + strlen (text), sizeof text - strlen (text), " (exit code %d)",
                  job->rec.exit_code);
    return put (svc, "JobFailure", id, job->rec.local_account, text, err);
}

/* --- what is wrong ------------------------------------------------------------------------- */

static void problems_free (struct problems *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        free (p->line[i]);
    free (p->line);
    *p = (struct problems){0};
}

static void problem (struct problems *p, unsigned event, const char *object)
{
    char text[256];
    if (p->count == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 16;
        p->line = realloc (p->line, p->cap * sizeof *p->line);
        assert (p->line);
    }
    text_printf (text, sizeof text, "%u %.200s", event, object);
    p->line[p->count++] = strdup (text);
}

static int by_text (const void *a, const void *b)
{
    return strcmp (*(char *const *)a, *(char *const *)b);
}

static void nodes_look (struct svc *svc, struct problems *p)
{
    for (uint32_t n = 0; n < svc->node_count; n++) {
        struct node_view view;
        const struct site_node *node = svc->node_by_id[n];
        if (!node->configured)
            continue;
        if (svc_node_aside (node))
            problem (p, NOTIFY_NODE_DRAINED, node->name);
        if (cluster_node_get (svc->cluster, (struct node_id){n}, &view, NULL) == 0 &&
            view.state == NODE_DOWN)
            problem (p, NOTIFY_NODE_DOWN, node->name);
    }
}

static void reservations_look (struct svc *svc, struct problems *p)
{
    uint32_t count = cluster_rsv_list (svc->cluster, NULL, 0);
    struct rsv_id *id = calloc (count + 1, sizeof *id);
    char name[SITE_ID_MAX];
    assert (id);
    count = cluster_rsv_list (svc->cluster, id, count);
    for (uint32_t i = 0; i < count; i++) {
        if (!resv_unfilled (svc, id[i].v))
            continue;
        const char *own = resv_name (svc, id[i].v);
        problem (p, NOTIFY_RES_UNFILLED, own ? own : site_id (svc, id[i].v, name));
    }
    free (id);
}

static void problems_now (struct svc *svc, struct problems *p)
{
    uint64_t waiting;
    time_us oldest = 0;
    nodes_look (svc, p);
    reservations_look (svc, p);
    if (svc->bank &&
        (svc->notify->bank_silent || (local_store_outbox_waiting (svc->store, STORE_OUTBOX_BANK,
                                                                  &waiting, &oldest, NULL) == 0 &&
                                      oldest && svc_now (svc) - oldest > BANK_SILENT_S * US_PER_S)))
        problem (p, NOTIFY_BANK_DOWN, svc->settings->bank);
    if (svc->bank && svc->notify->history_rewritten)
        problem (p, NOTIFY_BANK_HISTORY, svc->settings->bank);
    if (svc->bank && *bank_link_denied (svc->bank))
        problem (p, NOTIFY_BANK_DENIED, svc->settings->bank);
    if (svc->bank && svc->notify->clock_differs)
        problem (p, NOTIFY_CLOCK_DIFFERS, svc->settings->bank);
    if (p->count > 1)
        qsort (p->line, p->count, sizeof *p->line, by_text);
}

static int tell (struct svc *svc, const char *line, bool begins, struct err *err)
{
    unsigned bit = (unsigned)strtoul (line, NULL, 10);
    const char *object = strchr (line, ' ') + 1;
    char text[400], by[64] = "";
    const struct site_node *node;
    int at = 0;
    while (at < EVENTS && events[at].bit != bit)
        at++;
    if (at == EVENTS || !wanted (svc, bit))
        return 0;
    switch (bit) {
    case NOTIFY_NODE_DOWN:
        text_printf (text, sizeof text, "node %s is %s", object,
                     begins ? "down" : "no longer down");
        break;
    case NOTIFY_NODE_DRAINED:
        node = svc_node (svc, object);
        text_printf (text, sizeof text,
                     begins && node && svc_node_aside (node) ? "node %s is drained: %s"
                                                             : "node %s is drained no longer",
                     object, node && svc_node_aside (node) ? svc_node_aside (node) : "");
        break;
    case NOTIFY_BANK_DOWN:
        text_printf (text, sizeof text, "the bank %s %s", object,
                     begins ? "does not answer" : "answers again");
        break;
    case NOTIFY_BANK_DENIED:
        text_printf (text, sizeof text,
                     begins ? "the bank %s takes no charge of this site, they wait: %s"
                            : "the bank %s takes this site's charges again",
                     object, bank_link_denied (svc->bank));
        break;
    case NOTIFY_BANK_HISTORY:
        text_printf (text, sizeof text,
                     "the history of the bank %s %s the one that this site has an anchor of",
                     object, begins ? "is not" : "is again");
        break;
    case NOTIFY_CLOCK_DIFFERS:
        clocks_text (bank_clock_ahead (svc->bank_clock), "ahead of", by);
        text_printf (text, sizeof text,
                     begins ? "the clock of the bank %s is %s this site's"
                            : "the clocks of the bank %s and of this site agree again",
                     object, by);
        break;
    default:
        text_printf (text, sizeof text, "reservation %s %s", object,
                     begins ? "has less than it wants" : "has all it wants, or is over");
        break;
    }
    return put (svc, begins ? events[at].event : events[at].cleared, object, NULL, text, err);
}

static int save (struct svc *svc, const struct problems *p, struct err *err)
{
    struct strbuf b = STRBUF_INIT;
    for (uint32_t i = 0; i < p->count; i++)
        strbuf_printf (&b, "%s\n", p->line[i]);
    int rc = local_store_blob_put (svc->store, blob_name, strbuf_text (&b), b.len, err);
    strbuf_free (&b);
    return rc;
}

/* Both are sorted. */
static int tell_all (struct svc *svc, const struct problems *before, const struct problems *now,
                     struct err *err)
{
    int rc = 0;
    uint32_t a = 0, b = 0;
    while (rc == 0 && (a < before->count || b < now->count)) {
        int order = a == before->count ? 1
                    : b == now->count  ? -1
                                       : strcmp (before->line[a], now->line[b]);
        if (order < 0)
            rc = tell (svc, before->line[a++], false, err);
        else if (order > 0)
            rc = tell (svc, now->line[b++], true, err);
        else
            a++, b++;
    }
    return rc;
}

static bool same (const struct problems *a, const struct problems *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp (a->line[i], b->line[i]) != 0)
            return false;
    return true;
}

static void notify_wake (struct svc *svc);

static void notify_pass (struct svc *svc)
{
    struct notify *n = svc->notify;
    struct problems now = {0};
    struct err err = {0};
    if (!wanted (svc, NOTIFY_ALL))
        return;
    problems_now (svc, &now);
    if (same (&n->told, &now)) {
        problems_free (&now);
        return;
    }
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = tell_all (svc, &n->told, &now, &err);
    if (rc == 0)
        rc = save (svc, &now, &err);
    if (svc_commit (svc, rc, &err) != 0) { /* told in the next pass */
        problems_free (&now);
        return;
    }
    problems_free (&n->told);
    n->told = now;
    notify_wake (svc);
}

static void notify_bank (struct svc *svc, bool answers)
{
    if (svc->notify && svc->notify->bank_silent == answers) {
        svc->notify->bank_silent = !answers;
        pass_wake (svc);
    }
}

void notify_history (struct svc *svc, bool rewritten)
{
    if (svc->notify && svc->notify->history_rewritten != rewritten) {
        svc->notify->history_rewritten = rewritten;
        pass_wake (svc);
    }
}

void notify_clock (struct svc *svc, bool differs)
{
    if (svc->notify && svc->notify->clock_differs != differs) {
        svc->notify->clock_differs = differs;
        pass_wake (svc);
    }
}

/* --- sending ------------------------------------------------------------------------------ */

static void wake_in (struct notify *n, duration_us delay)
{
    struct timeval t = {.tv_sec = delay / US_PER_S, .tv_usec = delay % US_PER_S};
    evtimer_add (n->timer, &t);
}

/* What nobody took is a dead letter, with what the last one said. */
static void on_told (void *arg, const char *why)
{
    struct notify *n = arg;
    struct err err = {0};
    struct svc *svc = n->svc;
    int rc = svc_begin (svc, &err);
    if (rc == 0 && *why)
        rc = local_store_outbox_bury (svc->store, STORE_OUTBOX_NOTIFY, n->sequence, ERR_UNAVAILABLE,
                                      why, svc_now (svc), &err);
    if (rc == 0)
        rc = local_store_outbox_ack (svc->store, STORE_OUTBOX_NOTIFY, n->sequence, &err);
    rc = svc_commit (svc, rc, &err);
    wake_in (n, rc == 0 ? 0 : 10 * US_PER_S);
}

static void on_message (void *arg, const struct store_item *item)
{
    struct notify *n = arg;
    n->sequence = item->sequence;
    n->payload = malloc (item->payload_len);
    assert (n->payload);
    memcpy (n->payload, item->payload, item->payload_len);
    n->payload_len = item->payload_len;
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct notify *n = arg;
    const struct settings *s = n->svc->settings;
    struct err err = {0};
    (void)fd;
    (void)what;
    if (teller_is_busy (n->teller) || n->svc->closing)
        return; /* it is the first again after the next start */
    if (local_store_outbox_read (n->svc->store, STORE_OUTBOX_NOTIFY, 0, 1, on_message, n, &err))
        wake_in (n, 10 * US_PER_S);
    if (n->payload) /* copied: the callback may have the next one read */
        teller_tell (n->teller,
                     &(struct teller_to){s->notify_program, s->notify_account, s->notify_url},
                     n->payload, n->payload_len, on_told, n);
    free (n->payload);
    n->payload = NULL;
}

static void notify_wake (struct svc *svc)
{
    if (svc->notify && !teller_is_busy (svc->notify->teller))
        wake_in (svc->notify, 0);
}

/* --- beginning and end -------------------------------------------------------------------- */

static int told_load (struct notify *n, struct err *err)
{
    void *bytes = NULL;
    size_t len;
    char *rest = NULL;
    int rc = local_store_blob_get (n->svc->store, blob_name, &bytes, &len, err);
    if (rc == ERR_NOT_FOUND) {
        err_clear (err);
        return 0;
    }
    if (rc != 0)
        return rc;
    for (char *line = strtok_r (bytes, "\n", &rest); line; line = strtok_r (NULL, "\n", &rest)) {
        unsigned bit = (unsigned)strtoul (line, NULL, 10);
        char *object = strchr (line, ' ');
        if (object)
            problem (&n->told, bit, object + 1);
        n->bank_silent |= bit == NOTIFY_BANK_DOWN;          /* until it answers */
        n->history_rewritten |= bit == NOTIFY_BANK_HISTORY; /* until it is looked at */
        n->clock_differs |= bit == NOTIFY_CLOCK_DIFFERS;
    }
    free (bytes);
    return 0;
}

static int notify_open (struct svc *svc, struct err *err)
{
    struct notify *n = calloc (1, sizeof *n);
    assert (n);
    n->svc = svc;
    n->timer = evtimer_new (svc->base, on_timer, n);
    assert (n->timer);
    svc->notify = n;
    n->teller = teller_create (svc->base, svc->log, "nui-local", err);
    int rc = n->teller ? told_load (n, err) : ERR_INTERNAL;
    if (rc == 0)
        notify_wake (svc);
    return rc;
}

static void notify_close (struct svc *svc)
{
    struct notify *n = svc->notify;
    if (!n)
        return;
    teller_destroy (n->teller);
    event_free (n->timer);
    problems_free (&n->told);
    free (n);
    svc->notify = NULL;
}

static void notify_job_exceeds (struct svc *svc, struct site_job *job, const char *why)
{
    char id[SITE_ID_MAX], text[700];
    struct err err = {0};
    if (!wanted (svc, NOTIFY_JOB_LIMIT) || svc_begin (svc, &err) != 0)
        return;
    site_id (svc, job->rec.number, id);
    text_printf (text, sizeof text, "job %s of %s: %s", id, job->rec.local_account, why);
    (void)svc_commit (svc, put (svc, "JobLimit", id, job->rec.local_account, text, &err), &err);
    notify_wake (svc);
}

static void notify_job_ended (struct svc *svc, uint64_t number)
{
    (void)number;
    notify_wake (svc);
}

const struct svc_listener notify_listener = {.bank_heard = notify_bank,
                                             .open = notify_open,
                                             .pass_done = notify_pass,
                                             .job_ends = notify_job_ends,
                                             .job_exceeds = notify_job_exceeds,
                                             .job_ended = notify_job_ended,
                                             .stop = notify_close};
