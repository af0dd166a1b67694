/* Who there is of the group, who of it is alive, and whether this one may lead. What lead_beat.c hears is kept here; nothing
 * is sent from here. */
#include "meta/job/peers.h"

#include <stdlib.h>
#include <string.h>

#include "meta/store/votes.h"

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
    bool knows = !peers || (peers->led && peers_lead (metad) &&
                            clock_monotonic_us () - peers->led_mono > peers->takeover / 2);
    for (uint32_t i = 0; peers && i < peers->count && knows; i++)
        knows = !answers (peers, &peers->member[i]) ||
                peers->member[i].followed >= peers->member[i].behind;
    return knows;
}

int peers_unsure (const struct metad *metad, uint64_t number, struct err *err)
{
    if (peers_knows (metad))
        return 0;
    return err_set (
        err, ERR_UNAVAILABLE,
        "this metascheduler was away from its group, and does not know of grid.%llu yet: try "
        "again, or ask another",
        (unsigned long long)number);
}

bool peers_is_us (const struct metad *metad, const char *name)
{
    const struct principal *self = tlsid_self (metad->id);
    struct principal other;
    if (principal_parse (name, &other, NULL) == 0)
        return other.kind == PRINCIPAL_META && strcmp (other.grid, self->grid) == 0 &&
               peers_is_us (metad, other.name);
    return strcmp (name, self->name) == 0 ||
           (metad->peers && peers_index (metad->peers, name) != UINT32_MAX);
}

const char *peers_self (const struct peers *peers)
{
    return peers->member[peers->self].name;
}

duration_us peers_silence (const struct peers *peers, const struct peer *peer)
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
    return i == UINT32_MAX || peers_silence (peers, &peers->member[i]) >= peers->takeover;
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
    return 0;
}

int peers_check (const struct metad *metad, const struct metad_config *config, struct err *err)
{
    const struct metad_config *old = metad->config;
    bool same = old->peer_count == config->peer_count && old->takeover == config->takeover;
    for (uint32_t i = 0; same && i < old->peer_count; i++)
        same = strcmp (old->peer[i].name, config->peer[i].name) == 0 &&
               strcmp (old->peer[i].server, config->peer[i].server) == 0;
    return same
               ? 0
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
    for (uint32_t i = 0; i < metad->peers->count; i++)
        if (metad->peers->member[i].reply)
            nui__meta__v1__beat_reply__free_unpacked (metad->peers->member[i].reply, NULL);
    free (metad->peers);
    metad->peers = NULL;
}
