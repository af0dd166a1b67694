/* The accounts behind connshare.h: one entry per name with counters and two token buckets. rpcserver.c
 * and rpccall.c ask before they take anything on; nothing here closes a connection or writes a log. */
#include "proto/rpc/connshare.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum {
    PARTIES_IDLE_MAX = 4096, /* then those without connections are forgotten */
    KEPT_SHARE = 8,          /* one place of so many is kept */
    RESETS_BURST = 30,       /* seconds' worth, as nghttp2 has it */
    TRUSTED_SHARE = 8,       /* a daemon may have so many times as many connections */
};

/* Millionths of a token. */
struct bucket {
    int64_t level;
    duration_us at;
};

struct connshare_party {
    char *name;
    unsigned refs;
    uint32_t connections, handshakes;
    size_t unread;
    struct bucket calls, resets;
    duration_us told;
    uint64_t untold;
    UT_hash_handle hh;
};

struct connshare {
    struct connshare_limits limits;
    struct connshare_party *parties;
    uint32_t connections, ordinary, handshakes;
    size_t unread;
};

struct connshare *connshare_create (const struct connshare_limits *limits)
{
    struct connshare *cs = calloc (1, sizeof *cs);

    assert (cs);
    cs->limits = *limits;
    return cs;
}

static void connshare_forget (struct connshare *cs, struct connshare_party *party)
{
    HASH_DEL (cs->parties, party);
    free (party->name);
    free (party);
}

void connshare_destroy (struct connshare *cs)
{
    struct connshare_party *party, *next;

    if (!cs)
        return;
    HASH_ITER (hh, cs->parties, party, next)
        connshare_forget (cs, party);
    free (cs);
}

void connshare_set_limits (struct connshare *cs, const struct connshare_limits *limits)
{
    cs->limits = *limits;
}

/* Those without a connection, so that names do not fill the memory. */
static void connshare_purge (struct connshare *cs)
{
    struct connshare_party *party, *next;

    HASH_ITER (hh, cs->parties, party, next)
        if (party->refs == 0)
            connshare_forget (cs, party);
}

struct connshare_party *connshare_party (struct connshare *cs, const char *name, duration_us now)
{
    struct connshare_party *party;

    HASH_FIND_STR (cs->parties, name, party);
    if (!party) {
        if (HASH_COUNT (cs->parties) >= PARTIES_IDLE_MAX + cs->connections + cs->handshakes)
            connshare_purge (cs);
        party = calloc (1, sizeof *party);
        assert (party && (party->name = strdup (name)));
        party->calls = (struct bucket){2 * (int64_t)cs->limits.calls_per_s * US_PER_S, now};
        party->resets =
            (struct bucket){RESETS_BURST * (int64_t)cs->limits.resets_per_s * US_PER_S, now};
        party->told = now - US_PER_S;
        HASH_ADD_KEYPTR (hh, cs->parties, party->name, strlen (party->name), party);
    }
    party->refs++;
    return party;
}

void connshare_leave (struct connshare *cs, struct connshare_party *party)
{
    (void)cs;
    assert (party->refs > 0);
    party->refs--;
}

const char *connshare_name (const struct connshare_party *party)
{
    return party->name;
}

bool connshare_handshake (struct connshare *cs, struct connshare_party *address, bool *own_out)
{
    cs->handshakes++;
    address->handshakes++;
    *own_out = address->handshakes > cs->limits.handshakes_per_address;
    return *own_out || cs->handshakes > cs->limits.handshakes;
}

void connshare_handshake_over (struct connshare *cs, struct connshare_party *address)
{
    assert (cs->handshakes > 0 && address->handshakes > 0);
    cs->handshakes--;
    address->handshakes--;
}

int connshare_admit (struct connshare *cs, struct connshare_party *who,
                     struct connshare_party *address, bool trusted, struct err *err)
{
    const struct connshare_limits *l = &cs->limits;
    uint32_t each = l->per_principal * (trusted ? TRUSTED_SHARE : 1);
    uint32_t open = l->connections - l->connections / KEPT_SHARE;

    if (who->connections >= each)
        return err_set (err, ERR_LIMIT, "%s has %u connections here, as many as it may have",
                        who->name, who->connections);
    if (!trusted && address && address->connections >= l->per_address)
        return err_set (err, ERR_LIMIT,
                        "%s has %u connections here, as many as an address may have", address->name,
                        address->connections);
    if (cs->connections >= l->connections || (!trusted && cs->ordinary >= open))
        return err_set (err, ERR_LIMIT, "all %u connections that are open to it are in use",
                        trusted ? l->connections : open);
    cs->connections++;
    who->connections++;
    if (!trusted)
        cs->ordinary++;
    if (!trusted && address)
        address->connections++;
    return 0;
}

void connshare_depart (struct connshare *cs, struct connshare_party *who,
                       struct connshare_party *address, bool trusted)
{
    assert (cs->connections > 0 && who->connections > 0);
    cs->connections--;
    who->connections--;
    if (!trusted)
        cs->ordinary--;
    if (!trusted && address)
        address->connections--;
}

static bool bucket_take (struct bucket *b, uint32_t per_s, int64_t burst_s, duration_us now)
{
    int64_t full = burst_s * per_s * US_PER_S;

    if (per_s == 0)
        return true; /* no limit */
    if (now - b->at >= burst_s * US_PER_S)
        b->level = full;
    else if (now > b->at)
        b->level += (now - b->at) * per_s;
    if (b->level > full)
        b->level = full;
    b->at = now;
    if (b->level < US_PER_S)
        return false;
    b->level -= US_PER_S;
    return true;
}

bool connshare_call (struct connshare *cs, struct connshare_party *who, duration_us now)
{
    return bucket_take (&who->calls, cs->limits.calls_per_s, 2, now);
}

bool connshare_reset (struct connshare *cs, struct connshare_party *who, duration_us now)
{
    return bucket_take (&who->resets, cs->limits.resets_per_s, RESETS_BURST, now);
}

bool connshare_unread_add (struct connshare *cs, struct connshare_party *who, size_t bytes)
{
    if (bytes > cs->limits.unread_each || who->unread > cs->limits.unread_each - bytes ||
        bytes > cs->limits.unread || cs->unread > cs->limits.unread - bytes)
        return false;
    who->unread += bytes;
    cs->unread += bytes;
    return true;
}

void connshare_unread_drop (struct connshare *cs, struct connshare_party *who, size_t bytes)
{
    assert (who->unread >= bytes && cs->unread >= bytes);
    who->unread -= bytes;
    cs->unread -= bytes;
}

bool connshare_tell (struct connshare_party *party, duration_us now, uint64_t *more_out)
{
    if (now - party->told < US_PER_S) {
        party->untold++;
        return false;
    }
    *more_out = party->untold;
    party->untold = 0;
    party->told = now;
    return true;
}
