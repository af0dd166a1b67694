/* Who seals: nui-meta, for what it gives to a site. Who checks: nui-bank, and the banks that tests play. A site only
 * carries it, and can neither make nor change one. */
#include "proto/job/handover.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <string.h>

#include "proto/base/strbuf.h"

#define KEY_DOMAIN "nui-handover-key-v1"
#define SEAL_DOMAIN "nui-handover-v1"
/* A metascheduler whose clock is ahead may begin with the next key so much sooner. */
#define CLOCKS_APART (3600 * US_PER_S)

uint64_t handover_number (time_us at)
{
    return at > 0 ? (uint64_t)(at / HANDOVER_PERIOD) : 0;
}

time_us handover_begins (uint64_t number)
{
    return number < (uint64_t)(INT64_MAX / HANDOVER_PERIOD) ? (time_us)number * HANDOVER_PERIOD
                                                            : INT64_MAX;
}

time_us handover_ends (uint64_t number)
{
    return number < (uint64_t)(INT64_MAX / HANDOVER_PERIOD) - 2 ? handover_begins (number + 2)
                                                                : INT64_MAX;
}

/* Each part with its length before it, so that no two lists of parts are the same bytes. */
static void part_add (struct strbuf *out, const void *bytes, size_t len)
{
    char before[8];
    for (int i = 0; i < 8; i++)
        before[i] = (char)((uint64_t)len >> (56 - 8 * i));
    strbuf_append (out, before, sizeof before);
    strbuf_append (out, bytes, len);
}

static void number_add (struct strbuf *out, uint64_t number)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (56 - 8 * i));
    part_add (out, bytes, sizeof bytes);
}

void handover_derive (const uint8_t secret[SHA256_BYTES], const char *grid,
                      const char *metascheduler, uint64_t number, struct handover_key *out)
{
    struct strbuf text = STRBUF_INIT;
    part_add (&text, KEY_DOMAIN, strlen (KEY_DOMAIN));
    part_add (&text, grid, strlen (grid));
    part_add (&text, metascheduler, strlen (metascheduler));
    number_add (&text, number);
    out->number = number;
    sha256_mac (secret, strbuf_text (&text), text.len, out->bytes);
    strbuf_free (&text);
}

static void handover_mac (const struct handover_key *key, const struct handover *about,
                          const char *metascheduler, time_us expires, uint8_t out[SHA256_BYTES])
{
    struct strbuf text = STRBUF_INIT;
    part_add (&text, SEAL_DOMAIN, strlen (SEAL_DOMAIN));
    part_add (&text, about->grid, strlen (about->grid));
    part_add (&text, about->uuid.data, about->uuid.len);
    part_add (&text, about->hash, sizeof about->hash);
    part_add (&text, about->component, strlen (about->component));
    part_add (&text, about->site, strlen (about->site));
    part_add (&text, metascheduler, strlen (metascheduler));
    number_add (&text, (uint64_t)expires);
    sha256_mac (key->bytes, strbuf_text (&text), text.len, out);
    strbuf_free (&text);
}

Nui__Common__V1__HandOver *handover_seal (const struct handover_key *key,
                                          const struct handover *about, time_us expires,
                                          struct arena *arena)
{
    Nui__Common__V1__HandOver *out = arena_new (arena, Nui__Common__V1__HandOver);
    nui__common__v1__hand_over__init (out);
    out->metascheduler = arena_strdup (arena, about->metascheduler);
    out->key = key->number;
    out->expires_us = expires < handover_ends (key->number) ? expires : handover_ends (key->number);
    out->mac = (ProtobufCBinaryData){SHA256_BYTES, arena_alloc (arena, SHA256_BYTES)};
    handover_mac (key, about, out->metascheduler, out->expires_us, out->mac.data);
    return out;
}

int handover_check (const uint8_t secret[SHA256_BYTES], const Nui__Common__V1__HandOver *given,
                    const struct handover *about, time_us now, struct err *err)
{
    char ago[QUANTITY_TEXT_MAX];
    struct handover_key key;
    uint8_t mac[SHA256_BYTES];
    if (!given)
        return err_set (
            err, ERR_DENIED,
            "no metascheduler has handed component %.80s of this job over to site %.80s",
            about->component, about->site);
    if (given->expires_us <= now)
        return err_set (
            err, ERR_DENIED, "the hand-over of component %.80s to site %.80s ended %s ago",
            about->component, about->site, duration_format (now - given->expires_us, ago));
    if (handover_ends (given->key) <= now || handover_begins (given->key) > now + CLOCKS_APART)
        return err_set (
            err, ERR_DENIED,
            "the hand-over of component %.80s to site %.80s is by a key that does not hold "
            "now",
            about->component, about->site);
    handover_derive (secret, about->grid, given->metascheduler, given->key, &key);
    handover_mac (&key, about, given->metascheduler, given->expires_us, mac);
    bool good =
        given->mac.len == sizeof mac && CRYPTO_memcmp (mac, given->mac.data, sizeof mac) == 0;
    OPENSSL_cleanse (&key, sizeof key);
    return good ? 0
                : err_set (err, ERR_DENIED,
                           "the hand-over is not for component %.80s of this job at site %.80s",
                           about->component, about->site);
}
