/* The members' beats: each tells the others that it is alive and what it has of their jobs, sends them what they lack, and
 * takes over the jobs of one that is silent. It acts on no job itself: leading a job is lead.c's, getting it lead_take.c's. */
#include <stdlib.h>
#include <string.h>

#include "meta/lead/lead_i.h"
#include "meta/job/sites.h"
#include "proto/rpc/pbcopy.h"

enum {
    BEATS = 6,          /* in TAKEOVERTIME */
    TOLD_AT_ONCE = 128, /* jobs told of in one beat */
    TAKE_AT_ONCE = 256, /* taken over at one time */
    FOLLOW_TICKS = 2,   /* how often sites are asked for what was taken over */
};

struct beat {
    struct metad *metad;
    uint32_t member;
};

static void reply_take (struct peers *peers, struct peer *peer,
                        const Nui__Meta__V1__BeatReply *reply)
{
    for (size_t i = 0; i < reply->n_led; i++)
        lead_told (peers->metad, reply->led[i]->job, reply->led[i]->leader);
    Nui__Meta__V1__BeatReply *copy = (Nui__Meta__V1__BeatReply *)pbcopy (&reply->base);
    if (!peers->led || !peer->reply)
        peer->behind = reply->over;
    if (peer->reply)
        nui__meta__v1__beat_reply__free_unpacked (peer->reply, NULL);
    peer->reply = copy;
    lead_follow (peers, peer, reply->over);
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
    metastore_leads_open (metad->store, peer->name, peer->asked, TOLD_AT_ONCE, arena, &rows, &count,
                          NULL);
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
static int open_answer (struct peers *peers, uint32_t member,
                        const Nui__Meta__V1__BeatRequest *request, struct arena *arena,
                        Nui__Meta__V1__BeatReply *reply, struct err *err)
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
        bool led_elsewhere = strcmp (row.leader, peers_self (peers)) != 0 && row.leader[0];
        bool older = vote_newer (&row.vote, &theirs), newer = vote_newer (&theirs, &row.vote);
        if (led_elsewhere) {
            Nui__Meta__V1__Led *led = arena_new (arena, Nui__Meta__V1__Led);
            nui__meta__v1__led__init (led);
            led->job = copy->job;
            led->leader = (char *)row.leader;
            reply->led[reply->n_led++] = led;
        }
        /* The end that a majority has is told by whoever has it: two members may each take the other for its leader. */
        if ((!row.open && !newer) || (!led_elsewhere && older))
            lead_push (peers->metad, &row, member);
        else if (!led_elsewhere && newer) /* of one that led it meanwhile, and died */
            lead_take (peers->metad, copy->job);
    }
    return 0;
}

/* Jobs led here of which the caller has nothing. */
static int missing_push (struct peers *peers, uint32_t member,
                         const Nui__Meta__V1__BeatRequest *request, struct arena *arena,
                         struct err *err)
{
    struct lead_row *rows = NULL;
    uint32_t count = 0;
    size_t at = 0;
    int rc = metastore_leads_open (peers->metad->store, peers_self (peers), request->after,
                                   2 * TOLD_AT_ONCE, arena, &rows, &count, err);
    for (uint32_t i = 0; i < count && rc == 0 && (!request->upto || rows[i].job <= request->upto);
         i++) {
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

void lead_on_beat (void *self, struct rpccall *call, const ProtobufCMessage *message)
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
    int rc = request->n_open > TOLD_AT_ONCE
                 ? err_set (&err, ERR_LIMIT, "%zu jobs in one beat, at most %d", request->n_open,
                            TOLD_AT_ONCE)
                 : open_answer (peers, member, request, arena, &reply, &err);
    if (rc == 0)
        rc = missing_push (peers, member, request, arena, &err);
    unheard_fill (peers, arena, &reply);
    if (rc == 0)
        rc = metastore_leads_over_last (metad->store, &reply.over, &err);
    rpccall_answer (call, rc, &reply.base, &err);
    arena_destroy (arena);
}

/* ---- taking over */

/* One after the other, so that they do not bid against each other. */
static bool turn_to_take (const struct peers *peers, uint32_t member)
{
    uint32_t rank = (peers->self + peers->count - member) % peers->count - 1;
    return peers_silence (peers, &peers->member[member]) >=
           peers->takeover + (duration_us)rank * peers->takeover / BEATS;
}

static void take_over (struct peers *peers)
{
    for (uint32_t i = 0; i < peers->count; i++) {
        struct arena *arena = arena_create (0);
        struct lead_row *rows = NULL;
        uint32_t count = 0;
        if (i != peers->self && turn_to_take (peers, i) && lead_takes (peers->metad) < TAKE_AT_ONCE)
            metastore_leads_open (peers->metad->store, peers->member[i].name, 0, TAKE_AT_ONCE,
                                  arena, &rows, &count, NULL);
        for (uint32_t r = 0; r < count; r++)
            lead_take (peers->metad, rows[r].job);
        arena_destroy (arena);
    }
}

static void on_tick (evutil_socket_t fd, short what, void *arg)
{
    struct metad *metad = arg;
    struct peers *peers = metad->peers;
    duration_us pause = peers->takeover / BEATS;
    struct timeval tv = {pause / US_PER_S, pause % US_PER_S};
    (void)fd;
    (void)what;
    evtimer_add (metad->lead->timer, &tv);
    metad->lead->ticks++;
    for (uint32_t i = 0; i < peers->count; i++)
        if (i != peers->self && !peers->member[i].beating)
            beat_send (peers, i);
    lead_flush (metad->lead, true);
    if (peers_lead (metad) != peers->led) {
        peers->led = !peers->led;
        peers->led_mono = clock_monotonic_us ();
        log_event (metad->log, peers->led ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "group",
                   peers->led ? "leads" : "alone", "members=%u", peers->count);
    }
    if (!peers->led)
        return;
    take_over (peers);
    if (metad->lead->ticks % FOLLOW_TICKS == 0)
        parts_tell (metad, leading, metad);
}

/* ---- beginning */

static int beat_open (struct metad *metad, struct err *err)
{
    struct timeval at_once = {0, 0};
    if (!metad->lead)
        return 0;
    metad->lead->timer = evtimer_new (metad->base, on_tick, metad);
    if (!metad->lead->timer)
        return err_set (err, ERR_NOMEM, "no memory for the group");
    evtimer_add (metad->lead->timer, &at_once);
    return 0;
}

const struct metad_part lead_beat_part = {.open = beat_open};
