/* The lists of files of a signed component, checked as a whole. Called by jobcheck.c and the client; nothing is moved here. */
#include "proto/job/jobcheck.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "proto/job/stagespec.h"

typedef Nui__Common__V1__Transfer transfer;

static int both_check (const transfer *t, struct err *err)
{
    struct stage_url url;
    int rc = stage_url_parse (t->url, &url, err);
    return rc == 0 ? stage_path_check (t->path, err) : rc;
}

/* The same, or one a directory in the other. */
static bool overlaps (const char *a, const char *b)
{
    size_t la = strlen (a), lb = strlen (b);
    return la > lb ? overlaps (b, a) : strncmp (a, b, la) == 0 && (!b[la] || b[la] == '/');
}

static int target_check (const Nui__Common__V1__Component *c, size_t at, struct err *err)
{
    const char *path = c->stage_in[at]->path;
    const char *const own[] = {"script", "nodefile", *c->stdout_name ? c->stdout_name : "stdout",
                               *c->stderr_name ? c->stderr_name : "stderr"};
    for (size_t i = 0; i < 4; i++)
        if (overlaps (own[i], path))
            return err_set (err, ERR_INVALID, "'%.60s' is a file that the site itself writes",
                            path);
    for (size_t i = 0; i < at; i++)
        if (overlaps (c->stage_in[i]->path, path))
            return err_set (err, ERR_INVALID, "two files would be brought to '%.60s'", path);
    return 0;
}

/* What was sent beside the job is named by what it holds, and the site checks it by that. */
static int sent_check (const transfer *t, struct err *err)
{
    uint8_t sum[STAGE_SHA256_LEN];
    if (!stage_sent_parse (t->url, sum))
        return t->executable ? err_set (err, ERR_INVALID,
                                        "'%.60s' cannot be executable: it is no file that was sent "
                                        "beside the job",
                                        t->path)
                             : 0;
    if (t->sha256.len != STAGE_SHA256_LEN || memcmp (t->sha256.data, sum, sizeof sum) != 0)
        return err_set (err, ERR_INVALID, "'%.60s' is sent under another SHA-256 than its own",
                        t->path);
    return 0;
}

static int in_check (const Nui__Common__V1__Component *c, size_t at, struct err *err)
{
    const transfer *t = c->stage_in[at];
    int rc = both_check (t, err);
    if (rc == 0)
        rc = sent_check (t, err);
    if (rc == 0)
        rc = target_check (c, at, err);
    if (rc == 0 && t->sha256.len != 0 && t->sha256.len != STAGE_SHA256_LEN)
        rc = err_set (err, ERR_INVALID, "the SHA-256 of '%.60s' has %zu bytes, not %d", t->path,
                      t->sha256.len, STAGE_SHA256_LEN);
    if (rc == 0 && t->bytes < 0)
        rc = err_set (err, ERR_INVALID, "'%.60s' cannot have %lld bytes", t->path,
                      (long long)t->bytes);
    return rc;
}

static int out_check (const Nui__Common__V1__Component *c, size_t at, struct err *err)
{
    const transfer *t = c->stage_out[at];
    int rc = both_check (t, err);
    if (rc == 0 && strncasecmp (t->url, "nui:", 4) == 0)
        rc = err_set (err, ERR_INVALID, "nothing is taken to a nui: URL: nui fetch brings results");
    for (size_t i = 0; rc == 0 && i < at; i++)
        if (strcmp (c->stage_out[i]->url, t->url) == 0)
            rc = err_set (err, ERR_INVALID, "two files would be taken to '%.60s'", t->url);
    return rc;
}

int jobstage_check (const Nui__Common__V1__Component *c, struct err *err)
{
    int rc = 0;
    if (c->n_stage_in > JOB_STAGE_IN_MAX)
        rc = err_set (err, ERR_LIMIT,
                      "%zu files are to be brought in, allowed are %d: pack them (tar)",
                      c->n_stage_in, JOB_STAGE_IN_MAX);
    else if (c->n_stage_out > JOB_TRANSFERS_MAX)
        rc = err_set (err, ERR_LIMIT, "%zu files are to be staged out, allowed are %d",
                      c->n_stage_out, JOB_TRANSFERS_MAX);
    for (size_t i = 0; rc == 0 && i < c->n_stage_in; i++)
        rc = in_check (c, i, err);
    for (size_t i = 0; rc == 0 && i < c->n_stage_out; i++)
        rc = out_check (c, i, err);
    return rc == 0 ? 0 : err_prefix (err, "component %.60s", c->name);
}
