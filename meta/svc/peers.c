#include "meta/svc/peers.h"

#include <stdlib.h>
#include <string.h>

#include "meta/store/votes.h"
#include "meta/svc/adopt.h"
#include "meta/svc/decide.h"
#include "meta/svc/job.h"

enum {
    BEATS = 6,          /* in TAKEOVERTIME */
    OPEN_AT_ONCE = 64,  /* transactions asked about in one beat */
    TAKE_AT_ONCE = 16,  /* taken over in one turn from one member */
    FOLLOW_TICKS = 2,   /* how often sites are asked for what was taken over */
    PURGE_TICKS = 1000,
};

#define VOTES_KEPT (INT64_C (24) * 3600 * US_PER_S) /* no message is as late */

bool peers_lead (const struct metad *metad)
{
    const struct peers *peers = metad->peers;
    uint32_t with_us = 1;
    if (!peers)
        return true;
    for (uint32_t i = 0; i < peers->count; i++) {
        const struct peer *peer = &peers->member[i];
        if (peer->answered_mono &&
            clock_monotonic_us () - peer->answered_mono < peers->takeover / 2)
            with_us++;
    }
    return with_us > peers->count / 2;
}

uint32_t peers_index (const struct peers *peers, const char *name)
{
    for (uint32_t i = 0; i < peers->count; i++)
        if (strcmp (peers->member[i].name, name) == 0)
            return i;
    return UINT32_MAX;
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

static int reply_take (struct peers *peers, struct peer *peer,
                       const Nui__Meta__V1__BeatReply *reply, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < reply->n_over && rc == 0; i++)
        if (reply->over[i].len == 16)
            rc = metastore_vote_over (peers->metad->store, reply->over[i].data, err);
    peer->known_count = 0;
    for (size_t i = 0; i < reply->n_taken && rc == 0; i++) {
        bool ended = false;
        rc = adopt_taken (peers->metad, reply->taken[i], &ended, err);
        if (ended && peer->known_count < PEER_KNOWN_MAX)
            peer->known[peer->known_count++] = reply->taken[i]->job;
    }
    return rc;
}

static void beat_done (void *arg, const struct rpc_result *result)
{
    struct beat *beat = arg;
    struct metad *metad = beat->metad;
    struct err err;
    err_clear (&err);
    if (!metad->stopping) {
        struct peer *peer = &metad->peers->member[beat->member];
        peer->beating = false;
        if (result->status == RPC_OK &&
            reply_take (metad->peers, peer, (const Nui__Meta__V1__BeatReply *)result->reply,
                        &err) == 0)
            peer->answered_mono = peer->sent_mono;
    }
    free (beat);
}

static void beat_send (struct peers *peers, uint32_t member)
{
    struct metad *metad = peers->metad;
    struct peer *peer = &peers->member[member];
    struct arena *arena = arena_create (0);
    Nui__Meta__V1__BeatRequest request = NUI__META__V1__BEAT_REQUEST__INIT;
    struct vote_row *rows = NULL;
    uint32_t count = 0;
    struct beat *beat = calloc (1, sizeof *beat);
    if (!beat)
        abort ();
    *beat = (struct beat){metad, member};
    metastore_votes_open (metad->store, peer->name, peer->asked, OPEN_AT_ONCE, arena, &rows, &count,
                          NULL);
    request.open = arena_array (arena, count + 1u, sizeof *request.open);
    for (uint32_t i = 0; i < count; i++)
        request.open[request.n_open++] = (ProtobufCBinaryData){16, rows[i].transaction};
    if (count == OPEN_AT_ONCE)
        memcpy (peer->asked, rows[count - 1].transaction, sizeof peer->asked);
    else
        memset (peer->asked, 0, sizeof peer->asked);
    request.known = peer->known;
    request.n_known = peer->known_count;
    peer->beating = true;
    peer->sent_mono = clock_monotonic_us ();
    link_call (peer->link, "Beat", &request.base, peers->takeover / 3, beat_done, beat);
    arena_destroy (arena);
}

/* Of the caller's, what another leads now. */
static int taken_fill (struct peers *peers, const char *caller, struct arena *arena,
                       Nui__Meta__V1__BeatReply *reply, struct err *err)
{
    struct vote_row *votes = NULL;
    struct lead_row *leads = NULL;
    uint32_t vote_count = 0, lead_count = 0;
    int rc = metastore_votes_lost (peers->metad->store, caller, arena, &votes, &vote_count, err);
    if (rc == 0)
        rc = metastore_lead_untold (peers->metad->store, caller, arena, &leads, &lead_count, err);
    if (rc)
        return rc;
    reply->taken = arena_array (arena, vote_count + lead_count + 1u, sizeof *reply->taken);
    for (uint32_t i = 0; i < vote_count + lead_count; i++) {
        Nui__Meta__V1__Taken *taken = arena_new (arena, Nui__Meta__V1__Taken);
        nui__meta__v1__taken__init (taken);
        if (i < vote_count) {
            taken->transaction = (ProtobufCBinaryData){16, votes[i].transaction};
            taken->leader = (char *)votes[i].leader;
            taken->ballot = votes[i].vote.accepted;
        } else {
            struct gridjob *job = job_get (peers->metad, leads[i - vote_count].job, err);
            if (!job)
                return err->code;
            taken->leader = (char *)peers_self (peers);
            taken->job = leads[i - vote_count].origin_job;
            taken->ballot = leads[i - vote_count].ballot;
            taken->status = job_status (job, arena);
        }
        reply->taken[reply->n_taken++] = taken;
    }
    return 0;
}

static int over_fill (struct peers *peers, const Nui__Meta__V1__BeatRequest *request,
                      struct arena *arena, Nui__Meta__V1__BeatReply *reply, struct err *err)
{
    reply->over = arena_array (arena, request->n_open + 1, sizeof *reply->over);
    for (size_t i = 0; i < request->n_open; i++) {
        struct vote_row row;
        if (request->open[i].len != 16)
            continue;
        int rc = metastore_vote_load (peers->metad->store, request->open[i].data, arena, &row, err);
        if (rc && rc != ERR_NOT_FOUND)
            return rc;
        if (rc || row.vote.over)
            reply->over[reply->n_over++] = request->open[i];
    }
    return 0;
}

static void on_beat (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__BeatRequest *request = (const Nui__Meta__V1__BeatRequest *)message;
    struct metad *metad = self;
    Nui__Meta__V1__BeatReply reply = NUI__META__V1__BEAT_REPLY__INIT;
    const char *caller = rpccall_peer (call)->name;
    uint32_t member = peers_index (metad->peers, caller);
    struct err err;
    err_clear (&err);
    if (member == UINT32_MAX || member == metad->peers->self) {
        rpccall_finish (call, RPC_PERMISSION_DENIED, "not of this group (METACFG)");
        return;
    }
    struct arena *arena = arena_create (0);
    int rc = 0;
    metad->peers->member[member].heard_mono = clock_monotonic_us ();
    for (size_t i = 0; i < request->n_known && rc == 0; i++)
        rc = metastore_lead_told (metad->store, caller, request->known[i], &err);
    if (rc == 0)
        rc = over_fill (metad->peers, request, arena, &reply, &err);
    if (rc == 0)
        rc = taken_fill (metad->peers, caller, arena, &reply, &err);
    if (rc)
        rpccall_fail (call, &err);
    else
        rpccall_reply (call, &reply.base);
    arena_destroy (arena);
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
        struct vote_row *rows = NULL;
        uint32_t count = 0;
        if (i != peers->self && turn_to_take (peers, i))
            metastore_votes_open (peers->metad->store, peers->member[i].name, NULL, TAKE_AT_ONCE,
                                  arena, &rows, &count, NULL);
        for (uint32_t r = 0; r < count; r++)
            adopt_begin (peers->metad, &rows[r]);
        arena_destroy (arena);
    }
}

/* Led here, and no job here is about it: it was over when we died, or taken over and not written. */
static void orphans_settle (struct peers *peers)
{
    struct metad *metad = peers->metad;
    struct arena *arena = arena_create (0);
    struct vote_row *rows = NULL;
    uint32_t count = 0;
    peers->orphans =
        metastore_votes_orphaned (metad->store, peers_self (peers), arena, &rows, &count, NULL) != 0;
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].vote.promised >= QUORUM_STRIDE)
            adopt_begin (metad, &rows[i]);
        else
            metastore_vote_over (metad->store, rows[i].transaction, NULL);
    }
    arena_destroy (arena);
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
    if (peers_lead (metad) != peers->led) {
        peers->led = !peers->led;
        log_event (metad->log, peers->led ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "group",
                   peers->led ? "leads" : "alone", "members=%u", peers->count);
    }
    if (!peers->led)
        return;
    if (peers->orphans)
        orphans_settle (peers);
    take_over (peers);
    if (peers->ticks % FOLLOW_TICKS == 0)
        adopt_follow (metad);
    if (peers->ticks % PURGE_TICKS == 0)
        metastore_votes_purge (metad->store, clock_now_us () - VOTES_KEPT, NULL);
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
    peers->orphans = true;
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
        if (!peer->link)
            return err->code;
    }
    peers->timer = evtimer_new (metad->base, on_tick, peers);
    if (!peers->timer)
        return err_set (err, ERR_NOMEM, "no memory for the group");
    struct timeval at_once = {0, 0};
    evtimer_add (peers->timer, &at_once);
    return 0;
}

int peers_serve (struct metad *metad, struct rpcserver *server, struct err *err)
{
    static const struct rpc_method methods[] = {
        {.name = "Vote", .allow = RPC_ALLOW (PRINCIPAL_META), .request_bytes_max = 4 << 20,
         .handler = decide_on_vote},
        {.name = "Beat", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = on_beat},
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
    decide_close (metad->peers);
    if (metad->peers->timer)
        event_free (metad->peers->timer);
    free (metad->peers);
    metad->peers = NULL;
}
