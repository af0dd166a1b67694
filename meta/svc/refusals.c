/* What a Submit was refused with, for late copies of it. In memory only. */
#include "meta/svc/refusals.h"

#include <stdlib.h>
#include <string.h>

#include "proto/hash/sha256.h"

struct refusals {
    uint64_t count; /* since the start: the next one's place is that modulo REFUSALS_KEPT */
    uint8_t body[REFUSALS_KEPT][SHA256_BYTES];
    struct refusal {
        duration_us at_mono;
        struct err why;
    } of[REFUSALS_KEPT];
};

static bool for_good (int code)
{
    return code == ERR_INVALID || code == ERR_DENIED || code == ERR_LIMIT || code == ERR_CONFLICT ||
           code == ERR_FUNDS || code == ERR_UNSUPPORTED;
}

void refusals_add (struct metad *metad, const ProtobufCBinaryData *body, const struct err *why)
{
    if (!for_good (why->code))
        return;
    if (!metad->refusals && !(metad->refusals = calloc (1, sizeof *metad->refusals)))
        return;
    struct refusals *all = metad->refusals;
    uint32_t at = (uint32_t)(all->count++ % REFUSALS_KEPT);
    sha256 (body->data, body->len, all->body[at]);
    all->of[at] = (struct refusal){clock_monotonic_us (), *why};
}

int refusals_find (const struct metad *metad, const ProtobufCBinaryData *body, struct err *err)
{
    const struct refusals *all = metad->refusals;
    uint8_t hash[SHA256_BYTES];
    if (!all)
        return 0;
    sha256 (body->data, body->len, hash);
    for (uint32_t i = 0; i < all->count && i < REFUSALS_KEPT; i++) {
        if (memcmp (all->body[i], hash, sizeof hash) != 0 ||
            clock_monotonic_us () - all->of[i].at_mono > REFUSAL_AGE)
            continue;
        *err = all->of[i].why;
        return err->code;
    }
    return 0;
}

static void refusals_close (struct metad *metad)
{
    free (metad->refusals);
    metad->refusals = NULL;
}

const struct metad_part refusals_part = {.close = refusals_close};
