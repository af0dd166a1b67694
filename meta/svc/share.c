/* Counts live jobs by submitter as the hub lists and unlists them: see share.h. Called by submit.c before a job is taken. */
#include "meta/svc/share.h"

#include <stdlib.h>
#include <string.h>

struct job_share {
    UT_hash_handle hh;
    uint32_t count;
    uint32_t coming; /* of an array that was taken, and not in memory yet */
    char submitter[PRINCIPAL_URI_MAX];
};

static struct job_share *share_find (const struct metad *metad, const char *submitter)
{
    struct job_share *share = NULL;
    HASH_FIND_STR (metad->shares, submitter, share);
    return share;
}

static struct job_share *share_make (struct metad *metad, const char *submitter)
{
    struct job_share *share = share_find (metad, submitter);
    if (share)
        return share;
    share = calloc (1, sizeof *share);
    if (!share)
        abort ();
    memcpy (share->submitter, submitter, strlen (submitter) + 1);
    HASH_ADD_STR (metad->shares, submitter, share);
    return share;
}

static void share_drop (struct metad *metad, struct job_share *share)
{
    if (share->count || share->coming)
        return;
    HASH_DEL (metad->shares, share);
    free (share);
}

void share_coming (struct metad *metad, const char *submitter, int64_t more)
{
    struct job_share *share = share_make (metad, submitter);
    share->coming = (uint32_t)(share->coming + more);
    share_drop (metad, share);
}

/* Those that are in memory, and those that are still to come. */
static int64_t share_all (const struct metad *metad)
{
    int64_t all = HASH_COUNT (metad->jobs);
    for (const struct job_share *share = metad->shares; share; share = share->hh.next)
        all += share->coming;
    return all;
}

int share_check (const struct metad *metad, const char *submitter, uint32_t count, struct err *err)
{
    const struct job_share *share = share_find (metad, submitter);
    int64_t all = share_all (metad), most = metad->config->live_jobs_max;
    int64_t own = share ? (int64_t)share->count + share->coming : 0;
    if (count > 1 && all + count > most)
        return err_set (err, ERR_LIMIT,
                        "%lld jobs are live, %u more are not taken now (LIVEJOBSMAX %lld)",
                        (long long)all, count, (long long)most);
    if (all >= most)
        return err_set (err, ERR_LIMIT, "%lld jobs are live, more are not taken now (LIVEJOBSMAX)",
                        (long long)all);
    if (share && own + count - 1 >= most - all)
        return err_set (
            err, ERR_LIMIT,
            "%lld jobs of yours are live, and room for %lld others is left, which is kept for other users: "
            "more are taken when some have ended",
            (long long)own, (long long)(most - all));
    return 0;
}

static void share_listed (struct gridjob *job)
{
    share_make (job->metad, job->submitter)->count++;
}

static void share_unlisted (struct gridjob *job)
{
    struct job_share *share = share_find (job->metad, job->submitter);
    share->count--;
    share_drop (job->metad, share);
}

static void share_close (struct metad *metad)
{
    struct job_share *share, *next;
    HASH_ITER (hh, metad->shares, share, next) {
        HASH_DEL (metad->shares, share);
        free (share);
    }
}

const struct metad_part share_part = {
    .close = share_close, .job_listed = share_listed, .job_unlisted = share_unlisted};
