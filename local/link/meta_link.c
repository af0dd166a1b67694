/* meta_link: builds reports and sends them to each metascheduler, one at a time to each. The
 * service pokes it when something has changed. An event never leaves the outbox before every
 * metascheduler has acknowledged it or it was set aside as a dead letter, and events go out
 * without gaps, oldest first. */
#include "local/link/meta_link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/rpc/rpcclient.h"

enum { EVENTS_MAX = 256, EVENT_BYTES_MAX = 40 * 1024 };
static const duration_us coalesce = 20000;
/* On a large site a report takes a while to compute: at most a twentieth of our time goes there. Reports
 * in between, for their events' sake, say the same of the site. */
enum { FILL_SHARE = 20 };
static const duration_us interval = 10 * US_PER_S;
static const duration_us retry = US_PER_S;
static const duration_us call_timeout = 10 * US_PER_S;

struct peer {
    struct meta_link *link;
    struct rpcclient *client;
    struct rpccallout *call;
    uint64_t acked;
    uint64_t sent;  /* highest sequence it was sent by this process */
    uint32_t most;  /* events in the next report: fewer after one that was refused, until the one is
                      found */
    uint32_t going; /* in the report in flight, */
    uint64_t first; /* from this one on */
    /* The event that was refused alone, at fault if a report without it is taken, 0: none; and what was said. */
    uint64_t suspect;
    char why[ERR_TEXT_MAX];
    duration_us left; /* when the report in flight left, monotonic */
    bool named;       /* it has answered */
    bool dirty;       /* something changed since the report in flight was made */
};

struct meta_link {
    struct meta_link_config config;
    struct peer *peers;
    uint64_t acked;                 /* by all */
    struct event *timer;            /* the next regular report */
    struct event *change;           /* the coalesced one */
    Nui__Meta__V1__SiteReport site; /* as last filled, which took fill_cost, */
    duration_us fill_cost;
    duration_us filled; /* and when, monotonic; 0: never */
    bool closing;
};

/* Events being collected for one report. */
struct batch {
    const struct peer *peer;
    uint32_t most;
    Nui__Meta__V1__JobEvent event[EVENTS_MAX];
    Nui__Meta__V1__JobEvent *list[EVENTS_MAX];
    size_t count;
    size_t bytes;
    bool full;
};

static struct timeval tv (duration_us d)
{
    return (struct timeval){.tv_sec = d / US_PER_S, .tv_usec = d % US_PER_S};
}

static bool concerns (const struct peer *peer, const Nui__Local__V1__JobInfo *job)
{
    const struct meta_link_config *config = &peer->link->config;
    return !config->concerns ||
           config->concerns (config->arg, rpcclient_server (peer->client)->name,
                             job->metascheduler);
}

static void collect (void *arg, const struct store_item *item)
{
    struct batch *b = arg;
    /* Once one did not fit none behind it may go: sequences are contiguous. */
    b->full = b->full || b->count == b->most ||
              (b->count > 0 && b->bytes + item->payload_len > EVENT_BYTES_MAX);
    if (b->full)
        return;
    Nui__Meta__V1__JobEvent *e = &b->event[b->count];
    nui__meta__v1__job_event__init (e);
    e->sequence = item->sequence;
    if (strcmp (item->kind, STORE_ITEM_VOID) != 0) {
        e->job = nui__local__v1__job_info__unpack (NULL, item->payload_len, item->payload);
        assert (e->job); /* we packed it ourselves */
        if (!concerns (b->peer, e->job)) {
            nui__local__v1__job_info__free_unpacked (e->job, NULL);
            e->job = NULL;
        }
    }
    b->list[b->count++] = e;
    b->bytes += item->payload_len;
}

static void ack_all (struct meta_link *link)
{
    struct err err = {0};
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < link->config.target_count; i++)
        if (link->peers[i].acked < least)
            least = link->peers[i].acked;
    if (least == UINT64_MAX || least <= link->acked)
        return;
    if (local_store_begin (link->config.store, &err) != 0 ||
        local_store_outbox_ack (link->config.store, STORE_OUTBOX_META, least, &err) != 0 ||
        local_store_commit (link->config.store, &err) != 0) {
        local_store_rollback (link->config.store);
        log_event (link->config.log, LOG_LEVEL_ERROR, "meta", "ack_not_stored", "error=\"%s\"",
                   err.text);
        return;
    }
    link->acked = least;
}

static void report_send (struct peer *peer);

static void failed (struct meta_link *link, const char *what, const struct err *err)
{
    char quoted[300];
    local_store_rollback (link->config.store);
    log_event (link->config.log, LOG_LEVEL_ERROR, "meta", what, "error=%s",
               log_quote (err->text, quoted, sizeof quoted));
}

/* Never to be taken by this one: out of the way, with its reason. */
static void event_bury (struct peer *peer, uint64_t sequence)
{
    struct meta_link *link = peer->link;
    struct err err = {0};
    log_event (link->config.log, LOG_LEVEL_ERROR, "meta", "dead_letter", "sequence=%llu",
               (unsigned long long)sequence);
    if (local_store_begin (link->config.store, &err) != 0 ||
        local_store_outbox_bury (link->config.store, STORE_OUTBOX_META, sequence, ERR_INVALID,
                                 peer->why, clock_now_us (), &err) != 0 ||
        local_store_commit (link->config.store, &err) != 0)
        failed (link, "not_buried", &err);
}

/* A report that is refused as invalid is sent with one event at a time, and that one's place is told by a report
 * without any: where this is taken the event is a dead letter, where it is refused as well nothing is set aside. */
static void refused (struct peer *peer, const struct rpc_result *result)
{
    peer->suspect = peer->going == 1 ? peer->first : 0;
    peer->most = peer->going > 1 ? 1 : 0;
    if (peer->suspect)
        text_printf (peer->why, sizeof peer->why, "%s", result->message);
}

static void taken (struct peer *peer)
{
    if (peer->suspect && peer->going == 0) {
        event_bury (peer, peer->suspect);
        peer->dirty = true;
    }
    peer->suspect = 0;
    peer->most = peer->most == 0 ? 1 : peer->most * 2 > EVENTS_MAX ? EVENTS_MAX : peer->most * 2;
}

/* Its numbers tell which of us was restored to an earlier moment: it knows more than was given here, and what waits
 * gets numbers behind that; or less than it had acknowledged, and it gets what there still is. */
static void numbers_look (struct peer *peer, uint64_t theirs)
{
    struct meta_link *link = peer->link;
    struct err err = {0};
    uint64_t last = 0;
    if (local_store_outbox_position (link->config.store, STORE_OUTBOX_META, NULL, &last, &err) != 0)
        return;
    if (theirs > last) {
        log_event (
            link->config.log, LOG_LEVEL_ERROR, "meta", "numbers_lost",
            "ours=%llu theirs=%llu text=\"this site's state was restored: events get new numbers\"",
            (unsigned long long)last, (unsigned long long)theirs);
        if (local_store_begin (link->config.store, &err) != 0 ||
            local_store_outbox_renumber (link->config.store, STORE_OUTBOX_META, theirs, &err) !=
                0 ||
            local_store_commit (link->config.store, &err) != 0) {
            failed (link, "not_renumbered", &err);
            return;
        }
        for (uint32_t i = 0; i < link->config.target_count; i++)
            link->peers[i].acked = link->peers[i].sent = theirs;
        link->acked = theirs;
        peer->dirty = true;
    } else if (theirs < peer->acked) {
        log_event (link->config.log, LOG_LEVEL_ERROR, "meta", "history_lost",
                   "ours=%llu theirs=%llu", (unsigned long long)peer->acked,
                   (unsigned long long)theirs);
        peer->acked = theirs;
        peer->dirty = true;
    } else if (theirs > peer->acked) {
        peer->acked = theirs;
        ack_all (link);
    }
}

static void on_done (void *arg, const struct rpc_result *result)
{
    struct peer *peer = arg;
    struct meta_link *link = peer->link;
    peer->call = NULL;
    if (link->closing)
        return;
    uint32_t at = (uint32_t)(peer - link->peers);
    if (result->answered && link->config.met)
        link->config.met (link->config.arg, at, meta_link_server (link, at));
    if (result->status != RPC_OK) {
        log_event (link->config.log, LOG_LEVEL_WARN, "meta", "report_failed",
                   "status=%d message=\"%s\"", (int)result->status, result->message);
        if (result->answered && result->status == RPC_INVALID_ARGUMENT)
            refused (peer, result);
        struct timeval t = tv (retry);
        event_add (link->timer, &t);
        return;
    }
    if (!peer->named)
        peer->named = peer->dirty = true;
    const Nui__Meta__V1__ReportReply *reply = (const Nui__Meta__V1__ReportReply *)result->reply;
    if (link->config.heard)
        link->config.heard (link->config.arg, meta_link_server (link, at), peer->left);
    if (peer->going) /* one without events says nothing of a metascheduler that never had any */
        numbers_look (peer, reply->events_acked);
    taken (peer);
    if (peer->dirty)
        report_send (peer);
}

static void site_fill (struct meta_link *link)
{
    duration_us begun = clock_monotonic_us ();
    if (link->filled && begun - link->filled < link->fill_cost * FILL_SHARE)
        return;
    link->site = (Nui__Meta__V1__SiteReport)NUI__META__V1__SITE_REPORT__INIT;
    link->config.fill (link->config.arg, &link->site);
    link->filled = clock_monotonic_us ();
    link->fill_cost = link->filled - begun;
}

static void on_first (void *arg, const struct store_item *item)
{
    *(uint64_t *)arg = item->sequence;
}

/* The lowest number that there still is. */
static uint64_t first_of (struct meta_link *link)
{
    uint64_t first = 0;
    struct err err = {0};
    if (local_store_outbox_read (link->config.store, STORE_OUTBOX_META, 0, 1, on_first, &first,
                                 &err) != 0)
        first = 0;
    return first;
}

static void report_send (struct peer *peer)
{
    struct meta_link *link = peer->link;
    struct err err = {0};
    if (peer->call) {
        peer->dirty = true;
        return;
    }
    struct batch *b = calloc (1, sizeof *b);
    assert (b);
    b->peer = peer;
    /* Whom we speak to is known when it has answered once: the first report tells of no job. */
    b->most = peer->named ? peer->most : 0;
    site_fill (link);
    Nui__Meta__V1__SiteReport report = link->site;
    if (local_store_outbox_read (link->config.store, STORE_OUTBOX_META, peer->acked, EVENTS_MAX + 1,
                                 collect, b, &err) != 0)
        log_event (link->config.log, LOG_LEVEL_ERROR, "meta", "outbox_unreadable", "error=\"%s\"",
                   err.text);
    report.events_from = first_of (link);
    if (local_store_outbox_position (link->config.store, STORE_OUTBOX_META, NULL,
                                     &report.events_next, &err) == 0)
        report.events_next++;
    report.n_events = b->count;
    report.events = b->list;
    struct rpccallout_config call = {
        .service = &nui__meta__v1__meta__descriptor,
        .method = "Report",
        .request = &report.base,
        .timeout = call_timeout,
        .idempotent = true,
        .done = on_done,
        .arg = peer,
    };
    peer->dirty = b->full;
    peer->going = (uint32_t)b->count;
    peer->first = b->count ? b->event[0].sequence : 0;
    if (b->count > 0 && b->event[b->count - 1].sequence > peer->sent)
        peer->sent = b->event[b->count - 1].sequence;
    peer->left = clock_monotonic_us ();
    peer->call = rpcclient_start (peer->client, &call);
    for (size_t i = 0; i < b->count; i++)
        nui__local__v1__job_info__free_unpacked (b->event[i].job, NULL);
    free (b);
}

/* A metascheduler that is started anew knows nothing of us until we report. */
static void on_lost (void *arg)
{
    struct meta_link *link = arg;
    struct timeval t = tv (retry);
    event_add (link->timer, &t);
}

static void on_time (evutil_socket_t fd, short what, void *arg)
{
    struct meta_link *link = arg;
    struct timeval t = tv (interval);
    (void)fd;
    (void)what;
    for (uint32_t i = 0; i < link->config.target_count; i++)
        report_send (&link->peers[i]);
    event_add (link->timer, &t);
}

const char *meta_link_server (const struct meta_link *link, uint32_t target)
{
    return rpcclient_server (link->peers[target].client)->name;
}

struct rpcclient *meta_link_client (const struct meta_link *link, uint32_t target)
{
    return link->peers[target].client;
}

void meta_link_poke (struct meta_link *link)
{
    duration_us pause = link->fill_cost * FILL_SHARE;
    struct timeval t = tv (pause > coalesce ? pause : coalesce);
    if (!event_pending (link->change, EV_TIMEOUT, NULL))
        event_add (link->change, &t);
}

struct meta_link *meta_link_create (const struct meta_link_config *config, struct err *err)
{
    struct meta_link *link = calloc (1, sizeof *link);
    if (!link) {
        err_set (err, ERR_NOMEM, "meta link: no memory");
        return NULL;
    }
    link->config = *config;
    link->config.targets = NULL; /* the caller's strings; not kept */
    link->peers = calloc (config->target_count + 1, sizeof *link->peers);
    link->timer = evtimer_new (config->base, on_time, link);
    link->change = evtimer_new (config->base, on_time, link);
    for (uint32_t i = 0; i < config->target_count; i++) {
        struct rpcclient_config rpc = {
            .base = config->base,
            .id = config->id,
            .mend_text = true,
            .log = config->log,
            .target = config->targets[i],
            .expect_kind = PRINCIPAL_META,
            .lost = on_lost,
            .arg = link,
        };
        link->peers[i].link = link;
        link->peers[i].most = EVENTS_MAX;
        link->peers[i].client = rpcclient_create (&rpc, err);
        if (!link->peers[i].client) {
            link->config.target_count = i;
            meta_link_destroy (link);
            return NULL;
        }
    }
    meta_link_poke (link);
    return link;
}

void meta_link_destroy (struct meta_link *link)
{
    if (!link)
        return;
    link->closing = true;
    for (uint32_t i = 0; i < link->config.target_count; i++)
        rpcclient_destroy (link->peers[i].client);
    event_free (link->timer);
    event_free (link->change);
    free (link->peers);
    free (link);
}
