/* What a component's files are for the mover, when they could be here, and how far they are. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/files/staging.h"
#include "local/svc/files/staging_i.h"
#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/svc_i.h"
#include "proto/hash/sha256.h"

#define NOT_KNOWN                                                                                  \
    (10 * 60 * US_PER_S) /* how long it is said to take while nothing is known of its sizes */
#define ASK_LIMIT (3 * US_PER_S)

/* --- batches --------------------------------------------------------------------------------- */

void staging_key (const struct jobspec *spec, char out[STAGING_KEY_MAX])
{
    EVP_MD_CTX *key = sha256_begin ();
    uint8_t hash[SHA256_BYTES];
    const Nui__Common__V1__Job *job = spec->job;
    const char *const parts[] = {job->grid, spec->submitter, spec->local_account,
                                 spec->component->name};
    sha256_add (key, job->uuid.data, job->uuid.len);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        sha256_add (key, parts[i], strlen (parts[i]) + 1);
    sha256_end (key, hash);
    for (size_t i = 0; i < STAGING_KEY_BYTES; i++)
        snprintf (out + 2 * i, 3, "%02x", hash[i]);
}

static const char *checksum_text (const Nui__Common__V1__Transfer *t, struct arena *arena)
{
    char text[7 + 2 * STAGE_SHA256_LEN + 1] = "sha256:";
    if (t->sha256.len != STAGE_SHA256_LEN)
        return NULL;
    for (size_t i = 0; i < STAGE_SHA256_LEN; i++)
        snprintf (text + 7 + 2 * i, 3, "%02x", t->sha256.data[i]);
    return arena_strdup (arena, text);
}

struct stage_batch staging_batch (const struct jobspec *spec, const char *key, bool out, bool well,
                                  struct arena *arena)
{
    const Nui__Common__V1__Component *c = spec->component;
    size_t count = out ? c->n_stage_out : c->n_stage_in;
    Nui__Common__V1__Transfer *const *list = out ? c->stage_out : c->stage_in;
    struct stage_file *file = arena_array (arena, count + 1, sizeof *file);
    uint8_t sum[STAGE_SHA256_LEN];
    uint32_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (!out || well || list[i]->always)
            file[n++] = (struct stage_file){
                list[i]->url, list[i]->path, checksum_text (list[i], arena),
                !out && (list[i]->bytes > 0 || stage_sent_parse (list[i]->url, sum))
                    ? list[i]->bytes
                    : -1,
                list[i]->executable};
    return (struct stage_batch){.key = key,
                                .direction = out ? STAGE_OUT : STAGE_IN,
                                .dir = -1,
                                .account = spec->local_account,
                                .user = *spec->submitter ? spec->submitter : NULL,
                                .origin = *spec->meta ? inputs_origin (spec, arena) : NULL,
                                .file = file,
                                .file_count = n};
}

/* --- questions ------------------------------------------------------------------------------- */

struct staging_in *staging_find (const struct svc *svc, const char *key)
{
    struct staging_in *in = NULL;
    if (svc->staging)
        HASH_FIND_STR (svc->staging->ins, key, in);
    return in;
}

int staging_check (struct svc *svc, const struct jobspec *spec, struct err *err)
{
    const Nui__Common__V1__Component *c = spec->component;
    char key[STAGING_KEY_MAX];
    if (c->n_stage_in == 0 && c->n_stage_out == 0)
        return 0;
    int rc = staging_need (svc, err);
    if (rc != 0 || !svc->staging)
        return rc == 0 ? 0 : err_set (err, ERR_DENIED, "files cannot be staged here now");
    struct arena *arena = arena_create (0);
    staging_key (spec, key);
    struct stage_batch in = staging_batch (spec, key, false, true, arena);
    struct stage_batch out = staging_batch (spec, key, true, true, arena);
    if (in.file_count)
        rc = stage_check (svc->staging->mover, &in, err);
    if (rc == 0 && out.file_count)
        rc = stage_check (svc->staging->mover, &out, err);
    if (rc == 0)
        rc = inputs_check (svc, spec, err);
    arena_destroy (arena);
    const struct staging_in *before = staging_find (svc, key);
    if (rc == 0 && before && before->state == COMING_FAILED)
        rc = err_set (err, ERR_DENIED, "%s", before->text);
    if (rc != 0 && err)
        err->code = ERR_DENIED;
    return rc == 0 ? 0 : ERR_DENIED;
}

const char *staging_dir (const struct site_job *job, char *buf, size_t cap)
{
    if (!job->stage_in)
        return NULL;
    snprintf (buf, cap, ".stage/%s", job->stage_in->key);
    return buf;
}

duration_us staging_left (const struct staging_in *in)
{
    struct stage_progress progress;
    if (in->state == COMING_HERE)
        return 0;
    if (stage_progress (in->svc->staging->mover, in->key, &progress, NULL) != 0 ||
        progress.left < 0)
        return NOT_KNOWN;
    return progress.left;
}

time_us staging_expected (struct svc *svc, const struct jobspec *spec, time_us now)
{
    char key[STAGING_KEY_MAX];
    struct stage_estimate estimate;
    if (!svc->staging || !spec->component || spec->component->n_stage_in == 0)
        return now;
    staging_key (spec, key);
    const struct staging_in *in = staging_find (svc, key);
    if (in && in->state == COMING_HERE)
        return now;
    if (in && in->users)
        return now + staging_left (in);
    struct arena *arena = arena_create (0);
    struct stage_batch batch = staging_batch (spec, key, false, true, arena);
    stage_estimate_now (svc->staging->mover, &batch, &estimate);
    arena_destroy (arena);
    return now + estimate.time;
}

struct asking {
    struct svc *svc;
    void (*fn) (void *arg, const char *missing);
    void *arg;
    struct asking *next;
};

static void asked (void *arg, const struct stage_estimate *estimate)
{
    struct asking *asking = arg, **at = &asking->svc->staging->askings;
    while (*at != asking)
        at = &(*at)->next;
    *at = asking->next;
    asking->fn (asking->arg, estimate->missing ? estimate->text : "");
    free (asking);
}

bool staging_ask (struct svc *svc, const struct jobspec *spec,
                  void (*fn) (void *arg, const char *missing), void *arg)
{
    char key[STAGING_KEY_MAX];
    struct err err = {0};
    if (!svc->staging || spec->component->n_stage_in == 0)
        return false;
    staging_key (spec, key);
    if (staging_find (svc, key))
        return false;
    struct asking *asking = malloc (sizeof *asking);
    struct arena *arena = arena_create (0);
    assert (asking);
    *asking = (struct asking){svc, fn, arg, svc->staging->askings};
    struct stage_batch batch = staging_batch (spec, key, false, true, arena);
    int rc = stage_estimate (svc->staging->mover, &batch, ASK_LIMIT, asked, asking, &err);
    arena_destroy (arena);
    if (rc != 0)
        free (asking);
    else
        svc->staging->askings = asking;
    return rc == 0;
}

void staging_askings_drop (struct svc *svc)
{
    struct staging *staging = svc->staging;
    for (struct asking *one = staging->askings, *after; one; one = after) {
        after = one->next;
        one->fn (one->arg, NULL);
        free (one);
    }
}

/* --- what is told -------------------------------------------------------------------------------
 */

static void transfer_fill (const struct svc *svc, const struct stage_file_progress *p, bool out,
                           struct arena *arena, Nui__Common__V1__TransferInfo *info)
{
    static const char *const state[] = {"Waiting", "Active", "Waiting", "Active", "Done", "Failed"};
    nui__common__v1__transfer_info__init (info);
    info->out = out;
    info->url = arena_strdup (arena, p->url);
    info->path = arena_strdup (arena, p->path);
    info->state = (char *)state[p->state];
    info->bytes = p->bytes_total > 0 ? p->bytes_total : 0;
    info->bytes_done = p->bytes_done;
    info->rate = p->rate;
    info->text = arena_strdup (arena, p->text ? p->text : "");
    if (p->state == STAGE_RUNNING && p->rate > 0 && p->bytes_total >= p->bytes_done)
        info->end_us = svc_now (svc) + (p->bytes_total - p->bytes_done) / p->rate * US_PER_S;
}

void staging_transfers (const struct svc *svc, const char *key, bool out, struct arena *arena,
                        Nui__Local__V1__JobInfo *info)
{
    struct stage_progress all;
    struct stage_file_progress one;
    if (!svc->staging || stage_progress (svc->staging->mover, key, &all, NULL) != 0)
        return;
    info->transfers = arena_array (arena, all.files + 1, sizeof *info->transfers);
    for (uint32_t i = 0; i < all.files; i++) {
        if (stage_file_progress (svc->staging->mover, key, i, &one, NULL) != 0)
            continue;
        info->transfers[info->n_transfers] = arena_new (arena, Nui__Common__V1__TransferInfo);
        transfer_fill (svc, &one, out, arena, info->transfers[info->n_transfers++]);
    }
}

void staging_info (const struct svc *svc, const struct site_job *job, struct arena *arena,
                   Nui__Local__V1__JobInfo *out)
{
    if (!job->stage_in)
        return;
    staging_transfers (svc, job->stage_in->key, false, arena, out);
    if (job->stage_in->state == COMING_MOVES)
        out->data_us = job->data_at ? job->data_at : job->stage_in->expected;
}
