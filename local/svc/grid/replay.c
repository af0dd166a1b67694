/* A signed job runs for the metascheduler, and under the name, that it first came with.
 *
 * Metaschedulers are not trusted for what a user wants: each of them that has seen an envelope could
 * hand it over as another job, or again when it has run. What is refused and what is not:
 *   the same metascheduler, the same grid job   taken, also after the signature has expired here: a
 *                                               retry, a requeue, a part that is prepared anew
 *   another of its group (METAGROUP)            taken, as whatever grid job: it goes on with it
 *   another one, or another grid job            refused
 *   other content under the same uuid           refused
 *   an ordinary job that ended well here        refused, whatever the attempt
 *   handed in on the spot (msub)                taken once, whoever knows it already
 *   nothing known, and expired                  refused, unless the owner has delegated it for longer
 * A signature is good for REPLAYWINDOW at most, whatever it says of itself. */
#include "local/svc/grid/grid.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/store/signed.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"
#include "proto/job/element.h"

/* When the signature ends, here. */
static time_us signed_until (const struct svc *svc, const Nui__Common__V1__Job *job)
{
    duration_us window = svc->settings->replay_window;
    time_us most = job->created_us < INT64_MAX - window ? job->created_us + window : INT64_MAX;
    return job->expires_us && job->expires_us < most ? job->expires_us : most;
}

time_us replay_delegated_until (const struct svc *svc, const struct jobspec *spec, const char *meta)
{
    struct principal delegate;
    if (!spec->delegation.good || principal_parse (spec->delegation.delegate, &delegate, NULL) != 0)
        return 0;
    return settings_speaks_for (svc->settings, meta, delegate.name) ? spec->delegation.expires : 0;
}

/* … and when with the owner's delegation to the metascheduler. */
static time_us good_until (const struct svc *svc, const struct jobspec *spec, const char *meta)
{
    time_us until = signed_until (svc, spec->job);
    time_us more = replay_delegated_until (svc, spec, meta);
    return more > until ? more : until;
}

static bool same_bytes (const struct store_signed *row, const struct jobspec *spec)
{
    return memcmp (row->hash, spec->hash, sizeof row->hash) == 0;
}

int replay_expired (struct svc *svc, const struct jobspec *spec, time_us now, struct err *err)
{
    time_us until = signed_until (svc, spec->job);
    struct store_signed row;
    char when[QUANTITY_TEXT_MAX];
    if (now <= good_until (svc, spec, spec->meta))
        return 0;
    int rc = signed_get (svc->store, spec->submitter, spec->job->uuid.data, &row, err);
    if (rc != ERR_NOT_FOUND)
        return rc; /* replay_check compares the rest */
    bool window = until != spec->job->expires_us, delegated = spec->delegation.good;
    return err_set (err, ERR_UNAUTHENTIC, "the signed job expired at %s%s%s%s",
                    time_format_iso (until, when), window ? " (REPLAYWINDOW of this site)" : "",
                    delegated || *spec->delegation.why ? "; " : "",
                    delegated ? "its delegation is for another metascheduler"
                              : spec->delegation.why);
}

/* An ordinary job's only run; of several components one may run well and another not. */
static int not_done (struct svc *svc, const struct jobspec *spec, const char *meta,
                     const char *grid_job_id, struct err *err)
{
    struct store_job before = {0};
    char id[SITE_ID_MAX];
    int rc = local_store_job_find (svc->store, settings_speakers (svc->settings, meta), grid_job_id,
                                   spec->component->name, &before, err);
    if (rc == ERR_NOT_FOUND)
        return 0;
    if (rc == 0 && before.state == STORE_JOB_COMPLETED)
        rc = err_set (err, ERR_UNAUTHENTIC, "the signed job has run to its end here, as %s",
                      site_id (svc, before.number, id));
    store_job_free (&before);
    return rc;
}

int replay_check (struct svc *svc, const struct jobspec *spec, const char *meta,
                  const char *grid_job_id, struct err *err)
{
    struct store_signed row;
    int rc = signed_get (svc->store, spec->submitter, spec->job->uuid.data, &row, err);
    if (rc == ERR_NOT_FOUND)
        return 0;
    if (rc != 0)
        return rc;
    if (!same_bytes (&row, spec))
        return err_set (err, ERR_UNAUTHENTIC,
                        "another signed job of %.100s with the same uuid was taken here as %s",
                        spec->submitter, row.grid_job_id);
    if (strcmp (row.grid_job_id, grid_job_id) != 0 ||
        !settings_speaks_for (svc->settings, meta, row.meta))
        return err_set (err, ERR_UNAUTHENTIC,
                        "replayed: this signed job was taken here as %s of metascheduler %s, and "
                        "comes again as %s of %s",
                        row.grid_job_id, row.meta, grid_job_id, meta);
    return spec->job->n_components == 1 ? not_done (svc, spec, meta, grid_job_id, err) : 0;
}

int replay_unknown (struct svc *svc, const struct jobspec *spec, struct err *err)
{
    struct store_signed row;
    int rc = signed_get (svc->store, spec->submitter, spec->job->uuid.data, &row, err);
    if (rc == ERR_NOT_FOUND)
        return 0;
    if (rc != 0)
        return rc;
    return err_set (err, ERR_UNAUTHENTIC,
                    same_bytes (&row, spec)
                        ? "replayed: this signed job was taken here before, as %s"
                        : "another signed job with the same uuid was taken here as %s",
                    row.grid_job_id);
}

static void number_keep (void *arg, const char *meta, uint64_t number)
{
    struct svc *svc = arg;
    struct grid_number *n;
    HASH_FIND_STR (svc->grid_numbers, meta, n);
    if (!n) {
        n = calloc (1, sizeof *n);
        assert (n);
        text_printf (n->meta, sizeof n->meta, "%s", meta);
        HASH_ADD_STR (svc->grid_numbers, meta, n);
    }
    n->number = number > n->number ? number : n->number;
}

int replay_numbers_load (struct svc *svc, struct err *err)
{
    return signed_numbers (svc->store, number_keep, svc, err);
}

static void replay_numbers_free (struct svc *svc)
{
    struct grid_number *n, *next;
    HASH_ITER (hh, svc->grid_numbers, n, next) {
        HASH_DEL (svc->grid_numbers, n);
        free (n);
    }
}

int replay_keep (struct svc *svc, const struct jobspec *spec, const char *meta,
                 const char *grid_job_id, struct err *err)
{
    struct store_signed row = {.submitter = spec->submitter, .until = good_until (svc, spec, meta)};
    memcpy (row.uuid, spec->job->uuid.data, sizeof row.uuid);
    memcpy (row.hash, spec->hash, sizeof row.hash);
    text_printf (row.meta, sizeof row.meta, "%.63s", meta);
    text_printf (row.grid_job_id, sizeof row.grid_job_id, "%.63s", grid_job_id);
    struct element_id id;
    if (element_id_parse (grid_job_id, &id, NULL) == 0 && strcmp (id.prefix, "grid") == 0 &&
        id.number <= INT64_MAX)
        number_keep (svc, row.meta, id.number);
    return signed_put (svc->store, &row, err);
}

int replay_epoch (struct svc *svc, const uint8_t *of, uint64_t epoch, bool *newer, struct err *err)
{
    uint64_t seen;
    int rc = local_store_epoch_get (svc->store, of, &seen, err);
    if (rc != 0)
        return rc;
    *newer = epoch > seen;
    return epoch >= seen ? 0
                         : err_set (err, ERR_CONFLICT, "epoch %llu is older than %llu, seen before",
                                    (unsigned long long)epoch, (unsigned long long)seen);
}

const struct svc_listener replay_listener = {.close = replay_numbers_free};
