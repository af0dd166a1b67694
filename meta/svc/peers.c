#include "meta/svc/peers.h"

#include <stdlib.h>
#include <string.h>

#include "meta/store/votes.h"
#include "meta/svc/follow.h"
#include "meta/svc/handlers.h"
#include "meta/svc/lead.h"
#include "meta/svc/sites.h"
#include "proto/rpc/pbcopy.h"

enum {
    BEATS = 6,          /* in TAKEOVERTIME */
    TOLD_AT_ONCE = 128, /* jobs told of in one beat */
    TAKE_AT_ONCE = 256, /* taken over at one time */
    FOLLOW_TICKS = 2,   /* how often sites are asked for what was taken over */
};

static bool answers (const struct peers *peers, const struct peer *peer)
{
    return peer->answered_mono && clock_monotonic_us () - peer->answered_mono < peers->takeover / 2;
}

bool peers_lead (const struct metad *metad)
{
    const struct peers *peers = metad->peers;
    uint32_t with_us = 1;
    if (!peers)
        return true;
    for (uint32_t i = 0; i < peers->count; i++)
        with_us += answers (peers, &peers->member[i]);
    return with_us > peers->count / 2;
}

uint32_t peers_index (const struct peers *peers, const char *name)
{
    for (uint32_t i = 0; i < peers->count; i++)
        if (strcmp (peers->member[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

uint32_t peers_caller (const struct metad *metad, struct rpccall *call)
{
    uint32_t member = peers_index (metad->peers, rpccall_peer (call)->name);
    if (member != UINT32_MAX && member != metad->peers->self)
        return member;
    rpccall_finish (call, RPC_PERMISSION_DENIED, "not of this group (METACFG)");
    return UINT32_MAX;
}

bool peers_knows (const struct metad *metad)
{
    const struct peers *peers = metad->peers;
    bool knows = !peers || (peers->led && peers_lead (metad) && clock_monotonic_us () - peers->led_mono > peers->takeover / 2);
    for (uint32_t i = 0; peers && i < peers->count && knows; i++)
        knows = !answers (peers, &peers->member[i]) || peers->member[i].followed >= peers->member[i].behind;
    return knows;
}

int peers_unsure (const struct metad *metad, uint64_t number, struct err *err)
{
    if (peers_knows (metad))
        return 0;
    return err_set (err, ERR_UNAVAILABLE, "this metascheduler was away from its group, and does not know of grid.%llu yet: try "
                    "again, or ask another", (unsigned long long)number);
}

bool peers_is_us (const struct metad *metad, const char *name)
{
    const struct principal *self = tlsid_self (metad->id);
    struct principal other;
    if (principal_parse (name, &other, NULL) == 0)
        return other.kind == PRINCIPAL_META && strcmp (other.grid, self->grid) == 0 &&
               peers_is_us (metad, other.name);
    return strcmp (name, self->name) == 0 || (metad->peers && peers_index (metad->peers, name) != UINT32_MAX);
}

const char *peers_self (const struct peers *peers)
{
    return peers->member[peers->self].name;
}

static duration_us silence (const struct peers *peers, const struct peer *peer)
{
    duration_us since = peers->metad->started_mono;
    if (peer->heard_mono > since)
        since = peer->heard_mono;
    return clock_monotonic_us () - since;
}

bool peers_silent (const struct peers *peers, const char *name)
{
    uint32_t i = peers_index (peers, name);
    if (i == peers->self)
        return false;
    /* Of one that is no member any more nothing is heard. */
    return i == UINT32_MAX || silence (peers, &peers->member[i]) >= peers->takeover;
}

/* ---- beats */

struct beat {
    struct metad *metad;
    uint32_t member;
};

static void reply_take (struct peers *peers, struct peer *peer, const Nui__Meta__V1__BeatReply *reply)
{
    for (size_t i = 0; i < reply->n_led; i++)
        lead_told (peers->metad, reply->led[i]->job, reply->led[i]->leader);
    Nui__Meta__V1__BeatReply *copy = (Nui__Meta__V1__BeatReply *)pbcopy (&reply->base);
    if (!peers->led || !peer->reply)
        peer->behind = reply->over;
    if (peer->reply)
        nui__meta__v1__beat_reply__free_unpacked (peer->reply, NULL);
    peer->reply = copy;
    follow_look (peers, peer, reply->over);
}

static void beat_done (void *arg, const struct rpc_result *result)
{
    struct beat *beat = arg;
    struct metad *metad = beat->metad;
    if (!metad->stopping) {
        struct peer *peer = &metad->peers->member[beat->member];
        peer->beating = false;
        if (result->status == RPC_OK) {
            reply_take (metad->peers, peer, (const Nui__Meta__V1__BeatReply *)result->reply);
            peer->answered_mono = peer->sent_mono;
        }
    }
    free (beat);
}

static void beat_send (struct peers *peers, uint32_t member)
{
    struct metad *metad = peers->metad;
    struct peer *peer = &peers->member[member];
    struct arena *arena = arena_create (0);
    Nui__Meta__V1__BeatRequest request = NUI__META__V1__BEAT_REQUEST__INIT;
    struct lead_row *rows = NULL;
    uint32_t count = 0;
    struct beat *beat = calloc (1, sizeof *beat);
    if (!beat)
        abort ();
    *beat = (struct beat){metad, member};
    metastore_leads_open (metad->store, peer->name, peer->asked, TOLD_AT_ONCE, arena, &rows, &count, NULL);
    request.open = lead_copies (rows, count, arena);
    request.n_open = count;
    request.after = peer->asked;
    request.upto = count == TOLD_AT_ONCE ? rows[count - 1].job : 0;
    peer->asked = request.upto;
    peer->beating = true;
    peer->sent_mono = clock_monotonic_us ();
    link_call (peer->link, "Beat", &request.base, peers->takeover / 3, beat_done, beat);
    arena_destroy (arena);
}

/* What the caller has of jobs that it believes to be led here. */
static int open_answer (struct peers *peers, uint32_t member, const Nui__Meta__V1__BeatRequest *request,
                        struct arena *arena, Nui__Meta__V1__BeatReply *reply, struct err *err)
{
    reply->led = arena_array (arena, request->n_open + 1, sizeof *reply->led);
    for (size_t i = 0; i < request->n_open; i++) {
        const Nui__Meta__V1__Copy *copy = request->open[i];
        struct vote theirs = {0, copy->accepted, copy->version};
        struct lead_row row;
        int rc = metastore_lead_load (peers->metad->store, copy->job, arena, &row, err);
        if (rc == ERR_NOT_FOUND)
            continue;
        if (rc)
            return rc;
        if (strcmp (row.leader, peers_self (peers)) != 0 && row.leader[0]) {
            Nui__Meta__V1__Led *led = arena_new (arena, Nui__Meta__V1__Led);
            nui__meta__v1__led__init (led);
            led->job = copy->job;
            led->leader = (char *)row.leader;
            reply->led[reply->n_led++] = led;
        } else if (vote_newer (&row.vote, &theirs)) {
            lead_push (peers->metad, &row, member);
        } else if (vote_newer (&theirs, &row.vote)) { /* of one that led it meanwhile, and died */
            lead_take (peers->metad, copy->job);
        } else if (!row.open) { /* they do not know that a majority has its end */
            lead_push (peers->metad, &row, member);
        }
    }
    return 0;
}

/* Jobs led here of which the caller has nothing. */
static int missing_push (struct peers *peers, uint32_t member, const Nui__Meta__V1__BeatRequest *request,
                         struct arena *arena, struct err *err)
{
    struct lead_row *rows = NULL;
    uint32_t count = 0;
    size_t at = 0;
    int rc = metastore_leads_open (peers->metad->store, peers_self (peers), request->after, 2 * TOLD_AT_ONCE, arena,
                                   &rows, &count, err);
    for (uint32_t i = 0; i < count && rc == 0 && (!request->upto || rows[i].job <= request->upto); i++) {
        while (at < request->n_open && request->open[at]->job < rows[i].job)
            at++;
        if (at == request->n_open || request->open[at]->job != rows[i].job)
            lead_push (peers->metad, &rows[i], member);
    }
    return rc;
}

static void unheard_fill (struct peers *peers, struct arena *arena, Nui__Meta__V1__BeatReply *reply)
{
    struct metad *metad = peers->metad;
    reply->unheard = arena_array (arena, metad->site_count + 1u, sizeof *reply->unheard);
    for (uint32_t i = 0; i < metad->site_count; i++) {
        const struct site *site = metad->site[i];
        duration_us silent = site_silent_for (metad, site);
        if (!site->configured || silent < SITE_UP_S * US_PER_S)
            continue;
        Nui__Meta__V1__Unheard *unheard = arena_new (arena, Nui__Meta__V1__Unheard);
        nui__meta__v1__unheard__init (unheard);
        unheard->site = (char *)site->name;
        unheard->silent_us = silent;
        reply->unheard[reply->n_unheard++] = unheard;
    }
}

static void on_beat (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__BeatRequest *request = (const Nui__Meta__V1__BeatRequest *)message;
    struct metad *metad = self;
    struct peers *peers = metad->peers;
    Nui__Meta__V1__BeatReply reply = NUI__META__V1__BEAT_REPLY__INIT;
    uint32_t member = peers_caller (metad, call);
    struct err err;
    err_clear (&err);
    if (member == UINT32_MAX)
        return;
    struct arena *arena = arena_create (0);
    peers->member[member].heard_mono = clock_monotonic_us ();
    int rc = request->n_open > TOLD_AT_ONCE ? err_set (&err, ERR_LIMIT, "%zu jobs in one beat, at most %d", request->n_open,
                                                       TOLD_AT_ONCE)
                                            : open_answer (peers, member, request, arena, &reply, &err);
    if (rc == 0)
        rc = missing_push (peers, member, request, arena, &err);
    unheard_fill (peers, arena, &reply);
    if (rc == 0)
        rc = metastore_leads_over_last (metad->store, &reply.over, &err);
    if (rc)
        rpccall_fail (call, &err);
    else
        rpccall_reply (call, &reply.base);
    arena_destroy (arena);
}

duration_us peers_site_silent (const struct peers *peers, const char *site, duration_us own)
{
    duration_us longest[QUORUM_MEMBERS_MAX] = {0}, now = clock_monotonic_us ();
    for (uint32_t i = 0; i < peers->count; i++) {
        const struct peer *peer = &peers->member[i];
        duration_us silent = i == peers->self ? own : 0;
        if (peer->reply && now - peer->answered_mono < peers->takeover / 2)
            for (size_t s = 0; s < peer->reply->n_unheard; s++)
                if (strcmp (peer->reply->unheard[s]->site, site) == 0)
                    silent = peer->reply->unheard[s]->silent_us;
        for (uint32_t at = 0; at < peers->count; at++) /* descending */
            if (silent > longest[at]) {
                duration_us swap = longest[at];
                longest[at] = silent;
                silent = swap;
            }
    }
    /* They did not say so at one moment. */
    duration_us certain = longest[peers->count / 2] - peers->takeover;
    return certain > 0 ? certain : 0;
}

/* ---- taking over */

/* One after the other, so that they do not bid against each other. */
static bool turn_to_take (const struct peers *peers, uint32_t member)
{
    uint32_t rank = (peers->self + peers->count - member) % peers->count - 1;
    return silence (peers, &peers->member[member]) >=
           peers->takeover + (duration_us)rank * peers->takeover / BEATS;
}

static void take_over (struct peers *peers)
{
    for (uint32_t i = 0; i < peers->count; i++) {
        struct arena *arena = arena_create (0);
        struct lead_row *rows = NULL;
        uint32_t count = 0;
        if (i != peers->self && turn_to_take (peers, i) && lead_takes (peers) < TAKE_AT_ONCE)
            metastore_leads_open (peers->metad->store, peers->member[i].name, 0, TAKE_AT_ONCE, arena, &rows, &count,
                                  NULL);
        for (uint32_t r = 0; r < count; r++)
            lead_take (peers->metad, rows[r].job);
        arena_destroy (arena);
    }
}

static void on_flush (evutil_socket_t fd, short what, void *arg)
{
    struct peers *peers = arg;
    (void)fd;
    (void)what;
    lead_flush (peers, false);
}

void peers_flush_soon (struct peers *peers)
{
    const struct timeval at_once = {0, 0};
    if (peers->flush && !evtimer_pending (peers->flush, NULL))
        evtimer_add (peers->flush, &at_once);
}

static void on_tick (evutil_socket_t fd, short what, void *arg)
{
    struct peers *peers = arg;
    struct metad *metad = peers->metad;
    duration_us pause = peers->takeover / BEATS;
    struct timeval tv = {pause / US_PER_S, pause % US_PER_S};
    (void)fd;
    (void)what;
    evtimer_add (peers->timer, &tv);
    peers->ticks++;
    for (uint32_t i = 0; i < peers->count; i++)
        if (i != peers->self && !peers->member[i].beating)
            beat_send (peers, i);
    lead_flush (peers, true);
    if (peers_lead (metad) != peers->led) {
        peers->led = !peers->led;
        peers->led_mono = clock_monotonic_us ();
        log_event (metad->log, peers->led ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "group",
                   peers->led ? "leads" : "alone", "members=%u", peers->count);
    }
    if (!peers->led)
        return;
    take_over (peers);
    if (peers->ticks % FOLLOW_TICKS == 0)
        lead_follow (metad);
}

/* ---- the group */

int peers_create (struct metad *metad, struct err *err)
{
    const struct metad_config *config = metad->config;
    struct link_env env = {metad->base, metad->id, metad->log, &metad->gate};
    const char *self = tlsid_self (metad->id)->name;
    if (config->peer_count == 0)
        return 0;
    struct peers *peers = calloc (1, sizeof *peers);
    if (!peers)
        return err_set (err, ERR_NOMEM, "no memory for the group");
    metad->peers = peers;
    peers->metad = metad;
    peers->takeover = config->takeover;
    peers->count = config->peer_count;
    for (uint32_t i = 0; i < peers->count; i++)
        snprintf (peers->member[i].name, sizeof peers->member[i].name, "%s", config->peer[i].name);
    peers->self = peers_index (peers, self);
    if (peers->self == UINT32_MAX)
        return err_set (err, ERR_INVALID, "METACFG does not name %s, this metascheduler", self);
    for (uint32_t i = 0; i < peers->count; i++) {
        struct peer *peer = &peers->member[i];
        if (i == peers->self)
            continue;
        peer->link = link_to_peer (&env, peer->name, config->peer[i].server, err);
        if (!peer->link || metastore_followed_load (metad->store, peer->name, &peer->followed, err))
            return err->code;
    }
    peers->timer = evtimer_new (metad->base, on_tick, peers);
    peers->flush = evtimer_new (metad->base, on_flush, peers);
    if (!peers->timer || !peers->flush)
        return err_set (err, ERR_NOMEM, "no memory for the group");
    struct timeval at_once = {0, 0};
    evtimer_add (peers->timer, &at_once);
    return 0;
}

int peers_serve (struct metad *metad, struct rpcserver *server, struct err *err)
{
    static const struct rpc_method methods[] = {
        {.name = "Vote", .allow = RPC_ALLOW (PRINCIPAL_META), .request_bytes_max = 4 << 20,
         .handler = lead_on_vote},
        {.name = "Beat", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = on_beat},
        {.name = "Over", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = follow_on_over},
        {.name = "State", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = follow_on_state},
        {.name = "Cancel", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = on_peer_cancel},
        {.name = "Hold", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = on_peer_hold},
        {.name = "Renew", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = on_peer_renew},
        {.name = NULL},
    };
    if (!metad->peers)
        return 0;
    return rpcserver_add_service (server, &nui__meta__v1__peers__descriptor, methods, metad, err);
}

int peers_check (const struct metad *metad, const struct metad_config *config, struct err *err)
{
    const struct metad_config *old = metad->config;
    bool same = old->peer_count == config->peer_count && old->takeover == config->takeover;
    for (uint32_t i = 0; same && i < old->peer_count; i++)
        same = strcmp (old->peer[i].name, config->peer[i].name) == 0 &&
               strcmp (old->peer[i].server, config->peer[i].server) == 0;
    return same ? 0
                : err_set (err, ERR_UNSUPPORTED,
                           "METACFG and TAKEOVERTIME are taken at the start only: restart nui-meta");
}

void peers_disconnect (struct metad *metad)
{
    for (uint32_t i = 0; metad->peers && i < metad->peers->count; i++) {
        link_destroy (metad->peers->member[i].link);
        metad->peers->member[i].link = NULL;
    }
}

void peers_destroy (struct metad *metad)
{
    if (!metad->peers)
        return;
    lead_close (metad->peers);
    for (uint32_t i = 0; i < metad->peers->count; i++)
        if (metad->peers->member[i].reply)
            nui__meta__v1__beat_reply__free_unpacked (metad->peers->member[i].reply, NULL);
    if (metad->peers->timer)
        event_free (metad->peers->timer);
    if (metad->peers->flush)
        event_free (metad->peers->flush);
    free (metad->peers);
    metad->peers = NULL;
}
