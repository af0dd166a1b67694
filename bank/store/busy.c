/* busy: a set of hashes, open addressing. The committer adds what a batch names when it is sent,
 * and asks before it sends another one beside it. It may say "busy" for a name that is free,
 * never "free" for one that is busy. */
#include "bank/store/busy.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 2048, NAMES_MAX = 1 + 2 * LEDGER_GROUP_MAX };

/* Open addressing; 0 is a free slot. At most half of them are taken. */
struct busy {
    uint64_t *slot;
    uint32_t slots, count;
};

struct names {
    uint64_t hash[NAMES_MAX];
    unsigned count;
};

static uint64_t begin (char kind)
{
    return fnv_bytes (FNV_BEGIN, &kind, 1);
}

static void put (struct names *names, uint64_t hash)
{
    hash ^= hash >> 32;
    names->hash[names->count++] = hash ? hash : 1;
}

static void put_job (struct names *names, const struct ledger_job *job)
{
    put (names, fnv_job (begin ('j'), job));
}

static void put_uuid (struct names *names, const struct uuid *uuid, const char *identity)
{
    put (names, fnv_bytes (fnv_text (begin ('s'), identity), uuid->b, sizeof (uuid->b)));
}

static void put_ask (struct names *names, const struct ledger_hold_ask *ask, const char *identity)
{
    put_job (names, &ask->job);
    if (ask->is_signed)
        put_uuid (names, &ask->uuid, identity);
}

static void put_charge (struct names *names, const struct ledger_request *req)
{
    put_job (names, &req->charge.job);
    if (req->charge.signature)
        put_uuid (names, &req->charge.signature->ask.uuid, req->on_behalf);
}

static void names_of (const struct ledger_request *req, struct names *names)
{
    names->count = 0;
    put (names, fnv_bytes (fnv_text (begin ('k'), req->client), req->key.b, sizeof (req->key.b)));
    if (req->refused.code)
        return;
    if (req->kind == LEDGER_HOLD)
        put_ask (names, &req->hold, req->on_behalf);
    else if (req->kind == LEDGER_CHARGE)
        put_charge (names, req);
    else if (req->kind == LEDGER_HOLD_GROUP)
        for (uint32_t i = 0; i < req->group.count; i++)
            put_ask (names, &req->group.item[i], req->on_behalf);
}

static void slots_make (struct busy *busy, uint32_t slots)
{
    busy->slot = calloc (slots, sizeof (*busy->slot));
    if (!busy->slot)
        abort ();
    busy->slots = slots;
}

struct busy *busy_create (void)
{
    struct busy *busy = calloc (1, sizeof (*busy));
    if (!busy)
        abort ();
    slots_make (busy, SLOTS_FIRST);
    return busy;
}

void busy_destroy (struct busy *busy)
{
    if (!busy)
        return;
    free (busy->slot);
    free (busy);
}

void busy_clear (struct busy *busy)
{
    if (busy->count)
        memset (busy->slot, 0, busy->slots * sizeof (*busy->slot));
    busy->count = 0;
}

/* Where the hash stands, or would. */
static uint64_t *place_of (const struct busy *busy, uint64_t hash)
{
    uint64_t at = hash & (busy->slots - 1);
    while (busy->slot[at] && busy->slot[at] != hash)
        at = (at + 1) & (busy->slots - 1);
    return &busy->slot[at];
}

static void insert (struct busy *busy, uint64_t hash)
{
    uint64_t *place = place_of (busy, hash);
    busy->count += *place == 0;
    *place = hash;
}

static void grow (struct busy *busy)
{
    struct busy old = *busy;
    slots_make (busy, old.slots * 2);
    busy->count = 0;
    for (uint32_t i = 0; i < old.slots; i++)
        if (old.slot[i])
            insert (busy, old.slot[i]);
    free (old.slot);
}

void busy_add (struct busy *busy, const struct ledger_request *req)
{
    struct names names;
    names_of (req, &names);
    while ((busy->count + names.count) * 2 > busy->slots)
        grow (busy);
    for (unsigned i = 0; i < names.count; i++)
        insert (busy, names.hash[i]);
}

bool busy_has (const struct busy *busy, const struct ledger_request *req)
{
    struct names names;
    if (busy->count == 0)
        return false;
    names_of (req, &names);
    for (unsigned i = 0; i < names.count; i++)
        if (*place_of (busy, names.hash[i]))
            return true;
    return false;
}
