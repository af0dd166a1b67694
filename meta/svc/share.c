/* Counts live jobs by submitter as the hub lists and unlists them: see share.h. Called by submit.c before a job is taken. */
#include "meta/svc/share.h"

#include <stdlib.h>
#include <string.h>

struct job_share {
    UT_hash_handle hh;
    uint32_t count;
    char submitter[PRINCIPAL_URI_MAX];
};

static struct job_share *share_find (const struct metad *metad, const char *submitter)
{
    struct job_share *share = NULL;
    HASH_FIND_STR (metad->shares, submitter, share);
    return share;
}

int share_check (const struct metad *metad, const char *submitter, uint32_t count, struct err *err)
{
    const struct job_share *share = share_find (metad, submitter);
    int64_t all = HASH_COUNT (metad->jobs), most = metad->config->live_jobs_max;
    if (count > 1 && all + count > most)
        return err_set (err, ERR_LIMIT,
                        "%lld jobs are live, %u more are not taken now (LIVEJOBSMAX %lld)",
                        (long long)all, count, (long long)most);
    if (all >= most)
        return err_set (err, ERR_LIMIT, "%lld jobs are live, more are not taken now (LIVEJOBSMAX)",
                        (long long)all);
    if (share && (int64_t)share->count + count - 1 >= most - all)
        return err_set (
            err, ERR_LIMIT,
            "%u jobs of yours are live, and room for %lld others is left, which is kept for other users: "
            "more are taken when some have ended",
            share->count, (long long)(most - all));
    return 0;
}

static void share_listed (struct gridjob *job)
{
    struct metad *metad = job->metad;
    struct job_share *share = share_find (metad, job->submitter);
    if (!share) {
        share = calloc (1, sizeof *share);
        if (!share)
            abort ();
        memcpy (share->submitter, job->submitter, strlen (job->submitter) + 1);
        HASH_ADD_STR (metad->shares, submitter, share);
    }
    share->count++;
}

static void share_unlisted (struct gridjob *job)
{
    struct job_share *share = share_find (job->metad, job->submitter);
    if (--share->count > 0)
        return;
    HASH_DEL (job->metad->shares, share);
    free (share);
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
