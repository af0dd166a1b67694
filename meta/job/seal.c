/* Who calls: whatever sends a part to the site that was chosen for it (single.c, move.c, group_call.c, renew.c). When the
 * keys have changed, jobs that wait or run at a site get another hand-over by the way of their renewals: the old one
 * ends with its key. */
#include "meta/job/seal.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "meta/store/keys.h"
#include "proto/base/clocksapart.h"

#define FETCH_TIMEOUT (10 * US_PER_S)
#define FETCH_EVERY (3600 * US_PER_S)
#define FETCH_AGAIN (10 * US_PER_S)
#define FETCH_FIRST_AGAIN (US_PER_S / 2) /* nothing can be handed over before */

#define CLOCK_EVERY (30 * US_PER_S)
#define CLOCK_AGAIN (5 * US_PER_S) /* while it is wrong: nothing can be paid until it is right */

struct seal {
    struct metad *metad;
    struct event *clock; /* when the bank's is looked at */
    duration_us clock_asked, clock_ahead;
    struct event *timer;
    struct handover_key key[KEYS_MAX]; /* newest first */
    uint32_t count;
    bool asking;
};

/* The newest that has begun; NULL: none that still seals. */
static const struct handover_key *seal_key (const struct seal *seal, time_us now)
{
    for (uint32_t i = 0; i < seal->count; i++)
        if (handover_begins (seal->key[i].number) <= now)
            return handover_ends (seal->key[i].number) > now ? &seal->key[i] : NULL;
    return NULL;
}

static void seal_fetch_after (struct seal *seal, duration_us delay)
{
    struct timeval t = {.tv_sec = delay / US_PER_S, .tv_usec = delay % US_PER_S};
    evtimer_add (seal->timer, &t);
}

/* Newest first, as the bank's are not. ERR_INVALID: they are no keys. */
static int seal_read (const Nui__Bank__V1__HandoverKeyReply *reply,
                      struct handover_key out[KEYS_MAX], uint32_t *count, struct err *err)
{
    *count = 0;
    for (size_t i = reply->n_keys; i-- > 0 && *count < KEYS_MAX;) {
        struct handover_key *key = &out[*count];
        if (reply->keys[i]->secret.len != sizeof key->bytes ||
            (*count && out[*count - 1].number <= reply->keys[i]->key))
            return err_set (err, ERR_INVALID, "the bank's keys are not in order, or none");
        key->number = reply->keys[i]->key;
        memcpy (key->bytes, reply->keys[i]->secret.data, sizeof key->bytes);
        (*count)++;
    }
    return *count ? 0 : err_set (err, ERR_INVALID, "the bank gave no key");
}

/* What was sealed by an earlier one ends sooner, or is no longer good. */
static bool seal_same (const struct handover_key *a, const struct handover_key *b)
{
    return a && b && a->number == b->number && memcmp (a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static int seal_take (struct seal *seal, const Nui__Bank__V1__HandoverKeyReply *reply,
                      struct err *err)
{
    struct handover_key fresh[KEYS_MAX];
    const struct handover_key *now_one = seal_key (seal, clock_now_us ());
    struct handover_key before = now_one ? *now_one : (struct handover_key){0};
    bool had = now_one != NULL;
    uint32_t count;
    if (seal_read (reply, fresh, &count, err))
        return err->code;
    if (count == seal->count && memcmp (fresh, seal->key, count * sizeof *fresh) == 0)
        return 0;
    int rc = keys_replace (seal->metad->store, fresh, count, err);
    if (rc)
        return rc;
    memcpy (seal->key, fresh, sizeof fresh);
    seal->count = count;
    if (had && !seal_same (&before, seal_key (seal, clock_now_us ())))
        parts_tell (seal->metad, keys_changed, seal->metad);
    return 0;
}

static void seal_fetched (void *arg, const struct rpc_result *result)
{
    struct seal *seal = arg;
    struct err err;
    err_clear (&err);
    seal->asking = false;
    if (seal->metad->stopping)
        return;
    if (result->status != RPC_OK)
        err_set (&err, ERR_UNAVAILABLE, "%.300s", result->message);
    else
        seal_take (seal, (const Nui__Bank__V1__HandoverKeyReply *)result->reply, &err);
    if (err.code)
        log_event (seal->metad->log, LOG_LEVEL_WARN, "seal", "no_key", "status=%d why=\"%s\"",
                   (int)result->status, err.text);
    bool has = seal_key (seal, clock_now_us ()) != NULL;
    seal_fetch_after (seal, !err.code ? FETCH_EVERY : has ? FETCH_AGAIN : FETCH_FIRST_AGAIN);
}

static void seal_on_timer (evutil_socket_t fd, short what, void *arg)
{
    Nui__Bank__V1__HandoverKeyRequest request = NUI__BANK__V1__HANDOVER_KEY_REQUEST__INIT;
    struct seal *seal = arg;
    (void)fd;
    (void)what;
    if (seal->asking)
        return;
    seal->asking = true;
    link_call (seal->metad->bank, "HandoverKey", &request.base, FETCH_TIMEOUT, seal_fetched, seal);
}

duration_us seal_bank_clock (const struct metad *metad)
{
    return metad->seal->clock_ahead;
}

static void seal_clock_after (struct seal *seal, duration_us delay)
{
    struct timeval t = {.tv_sec = delay / US_PER_S, .tv_usec = delay % US_PER_S};
    evtimer_add (seal->clock, &t);
}

/* What it shows was so between the question and the answer. */
static void seal_clock_told (void *arg, const struct rpc_result *result)
{
    struct seal *seal = arg;
    if (seal->metad->stopping)
        return;
    if (result->status == RPC_OK) {
        duration_us took = clock_monotonic_us () - seal->clock_asked;
        duration_us ahead = ((const Nui__Bank__V1__ClockReply *)result->reply)->now_us -
                            (clock_now_us () - took / 2);
        clocks_keep (&seal->clock_ahead, ahead, seal->metad->log, "bank", "");
    }
    seal_clock_after (seal, clocks_differ (seal->clock_ahead) ? CLOCK_AGAIN : CLOCK_EVERY);
}

static void seal_on_clock (evutil_socket_t fd, short what, void *arg)
{
    Nui__Bank__V1__ClockRequest request = NUI__BANK__V1__CLOCK_REQUEST__INIT;
    struct seal *seal = arg;
    (void)fd;
    (void)what;
    seal->clock_asked = clock_monotonic_us ();
    link_call (seal->metad->bank, "Clock", &request.base, FETCH_TIMEOUT, seal_clock_told, seal);
}

static int seal_open (struct metad *metad, struct err *err)
{
    struct seal *seal = metad->seal = calloc (1, sizeof *seal);
    if (!seal)
        return err_set (err, ERR_NOMEM, "no memory for keys");
    seal->metad = metad;
    seal->timer = evtimer_new (metad->base, seal_on_timer, seal);
    seal->clock = evtimer_new (metad->base, seal_on_clock, seal);
    if (!seal->timer || !seal->clock)
        return err_set (err, ERR_NOMEM, "no memory for keys");
    seal_clock_after (seal, 0);
    seal_fetch_after (seal, 0);
    return keys_load (metad->store, seal->key, &seal->count, err);
}

static void seal_close (struct metad *metad)
{
    if (!metad->seal)
        return;
    if (metad->seal->timer)
        event_free (metad->seal->timer);
    if (metad->seal->clock)
        event_free (metad->seal->clock);
    OPENSSL_cleanse (metad->seal, sizeof *metad->seal);
    free (metad->seal);
    metad->seal = NULL;
}

bool seal_has_key (const struct metad *metad)
{
    return seal_key (metad->seal, clock_now_us ()) != NULL;
}

EnvelopeMessage *seal_envelope (const struct gridjob *job, uint32_t part, const char *site,
                                time_us expires, struct arena *arena)
{
    const struct handover_key *key = seal_key (job->metad->seal, clock_now_us ());
    struct handover about = {.grid = job->metad->grid,
                             .metascheduler = tlsid_self (job->metad->id)->name,
                             .site = site,
                             .component = job->part[part].name,
                             .uuid = job->job->uuid};
    EnvelopeMessage *out = arena_new (arena, EnvelopeMessage);
    if (!key)
        return NULL;
    *out = *job->envelope;
    sha256 (out->body.data, out->body.len, about.hash);
    out->handover = handover_seal (key, &about, expires, arena);
    return out;
}

const struct metad_part seal_part = {.open = seal_open, .close = seal_close};
