/* A part that is to come instead of another of its job: a group goes to an earlier slot, and has its place here until it has
 * the other everywhere. The two may lie over each other (local/core/instead.c), since of the two one starts: START
 * of either ends the other here first, whatever the coordinator says of it later. PREPARE and QUERY
 * ask which part that is; a metascheduler is believed only of its own, or of its group's. */
#include <string.h>

#include "local/svc/coalloc/coalloc.h"
#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"

static bool instead_same (const struct svc *svc, const char *caller, const struct site_part *part,
                          const uint8_t *transaction)
{
    return memcmp (part->rec.transaction, transaction, STORE_TRANSACTION_LEN) == 0 &&
           settings_speaks_for (svc->settings, caller, part->rec.caller);
}

uint64_t instead_whose (struct svc *svc, const struct store_part *rec)
{
    struct site_part *part, *next;
    HASH_ITER (hh, svc->parts, part, next)
        if (part->whose && instead_same (svc, rec->caller, part, rec->transaction))
            return part->whose;
    return rec->job; /* no other has it, ever */
}

static bool instead_pair (const struct svc *svc, const struct site_part *a,
                          const struct site_part *b)
{
    static const uint8_t none[STORE_TRANSACTION_LEN];
    return memcmp (a->rec.replaces, none, sizeof none) != 0 &&
           instead_same (svc, a->rec.caller, b, a->rec.replaces);
}

uint64_t instead_known (const struct site_part *part)
{
    for (const struct site_part *other = part->svc->parts; other; other = other->hh.next)
        if (other != part && instead_pair (part->svc, part, other))
            return other->whose;
    return 0;
}

uint64_t instead_of (struct svc *svc, const char *caller, const ProtobufCBinaryData *transaction,
                     const char *grid_job_id)
{
    struct site_part *part, *next;
    uint64_t whose = 0;
    if (transaction->len != STORE_TRANSACTION_LEN)
        return 0;
    HASH_ITER (hh, svc->parts, part, next) {
        if (!instead_same (svc, caller, part, transaction->data))
            continue;
        if (part->rec.state != STORE_PART_FIRM || part->rec.start_accepted ||
            instead_known (part) || /* three places of which one is used: START ends one other */
            (grid_job_id && strcmp (part->job->rec.grid_job_id, grid_job_id) != 0))
            return 0;
        whose = part->whose;
    }
    return whose;
}

bool instead_any (struct site_part *part)
{
    struct site_part *other, *next;
    HASH_ITER (hh, part->svc->parts, other, next)
        if (other != part && instead_pair (part->svc, other, part))
            return true;
    return false;
}

bool instead_started (const struct site_part *part)
{
    for (const struct site_part *other = part->svc->parts; other; other = other->hh.next)
        if (other != part && other->rec.start_accepted &&
            (instead_pair (part->svc, other, part) || instead_pair (part->svc, part, other)))
            return true;
    return false;
}

int instead_end (struct site_part *part, struct err *err)
{
    struct svc *svc = part->svc;
    struct site_part *other, *next;
    int rc = 0;
    HASH_ITER (hh, svc->parts, other, next) {
        if (rc != 0 || other == part ||
            (!instead_pair (svc, other, part) && !instead_pair (svc, part, other)))
            continue;
        rc = coalloc_part_end (
            other, other->rec.state == STORE_PART_FIRM ? STORE_PART_RELEASED : STORE_PART_ABORTED,
            "Moved", "the group starts in another slot", err);
    }
    return rc;
}
