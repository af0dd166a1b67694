/* fetch: files of a job's directory, brought here by the site that ran it, which gives them to the job's owner only. What comes
 * lies in NAME.part until it is whole and its digest is the site's; a part that is there is gone on with. No name that the site
 * tells may lead out of the directory that the user has named. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "meta/cli/grid.h"
#include "proto/hash/sha256.h"
#include "proto/job/stagespec.h"

enum { TRIES_MAX = 5 }; /* without a byte in between */

struct fetch_args {
    const char *dir, *component;
};

/* One file on its way. */
struct arrival {
    int fd;
    int64_t at, bytes; /* -1: not known yet */
    EVP_MD_CTX *hash;
    uint8_t sum[SHA256_BYTES];
    bool whole;
    int failed; /* errno of a write; 0 */
    struct cli_progress *progress;
};

struct source {
    struct rpcclient *site;
    char *job_id;
    const char *dir;
    char **pattern;
    int pattern_count;
    const char *command;
};

static void arrived (void *arg, const ProtobufCMessage *message)
{
    struct arrival *a = arg;
    const Nui__Local__V1__FetchChunk *chunk = (const Nui__Local__V1__FetchChunk *)message;
    const uint8_t *data = chunk->data.data;
    a->bytes = chunk->bytes;
    for (size_t left = chunk->data.len; left > 0 && !a->failed;) {
        ssize_t n = pwrite (a->fd, data, left, a->at);
        if (n < 0 && errno != EINTR)
            a->failed = errno;
        if (n <= 0)
            continue;
        sha256_add (a->hash, data, (size_t)n);
        data += n;
        left -= (size_t)n;
        a->at += n;
    }
    if (chunk->sha256.len == SHA256_BYTES) {
        memcpy (a->sum, chunk->sha256.data, SHA256_BYTES);
        a->whole = true;
    }
    if (a->progress)
        cli_progress_update (a->progress, (uint64_t)a->at);
}

/* What is there of it already is hashed; it goes on behind that, or from the start. */
static int arrival_begin (struct arrival *a, bool anew, struct err *err)
{
    char block[65536];
    ssize_t n = 0;
    EVP_MD_CTX_free (a->hash);
    a->hash = sha256_begin ();
    a->at = 0;
    a->whole = false;
    if (anew && ftruncate (a->fd, 0) != 0)
        return err_set (err, ERR_IO, "%s", strerror (errno));
    while ((n = pread (a->fd, block, sizeof block, a->at)) > 0) {
        sha256_add (a->hash, block, (size_t)n);
        a->at += n;
    }
    return n < 0 ? err_set (err, ERR_IO, "%s", strerror (errno)) : 0;
}

static int arrival_ask (const struct source *from, const char *path, struct arrival *a,
                        struct err *err)
{
    Nui__Local__V1__FetchRequest request = NUI__LOCAL__V1__FETCH_REQUEST__INIT;
    request.job_id = from->job_id;
    request.path = (char *)(uintptr_t)path;
    request.offset = a->at;
    int rc = rpcclient_stream (from->site, &nui__local__v1__local__descriptor, "Fetch",
                               &request.base, INT64_MAX, arrived, a, err);
    if (a->failed)
        return err_set (err, ERR_IO, "%s", strerror (a->failed));
    if (rc == 0 && !a->whole)
        return err_set (err, ERR_UNAVAILABLE, "the site's answer ended too early");
    return rc;
}

static bool sum_fits (struct arrival *a)
{
    uint8_t sum[SHA256_BYTES];
    sha256_end (a->hash, sum);
    a->hash = NULL;
    return memcmp (sum, a->sum, sizeof sum) == 0 && a->at == a->bytes;
}

/* Cut connections are gone on from; a part of another version of the file begins anew, once. */
static int arrival_run (const struct source *from, const char *path, struct arrival *a,
                        struct err *err)
{
    bool anew = false;
    int rc = arrival_begin (a, false, err);
    for (int tries = 0; rc == 0;) {
        int64_t before = a->at;
        rc = arrival_ask (from, path, a, err);
        if (rc == ERR_UNAVAILABLE) {
            tries = a->at > before ? 0 : tries + 1;
            rc = tries < TRIES_MAX ? 0 : rc;
            continue;
        }
        if (rc == 0 && sum_fits (a))
            return 0;
        if (rc != 0 && (rc != ERR_CONFLICT || before == 0))
            return rc;
        if (anew || before == 0)
            return err_set (err, ERR_CONFLICT, "what came is not what the site has");
        anew = true;
        rc = arrival_begin (a, true, err);
    }
    return rc;
}

int grid_folders_make (const char *dir, const char *path, struct err *err)
{
    struct strbuf at = STRBUF_INIT;
    int rc = 0;
    strbuf_printf (&at, "%s/%s", dir, path);
    char *text = strbuf_text (&at);
    for (char *slash = text + 1; rc == 0 && (slash = strchr (slash, '/')); *slash++ = '/') {
        *slash = 0;
        if (mkdir (text, 0777) != 0 && errno != EEXIST)
            rc = err_set (err, ERR_IO, "%s: %s", text, strerror (errno));
    }
    strbuf_free (&at);
    return rc;
}

static int file_fetch (const struct source *from, const Nui__Local__V1__FileInfo *file,
                       struct err *err)
{
    struct strbuf part = STRBUF_INIT, name = STRBUF_INIT;
    struct arrival a = {.fd = -1, .bytes = -1};
    strbuf_printf (&name, "%s/%s", from->dir, file->path);
    strbuf_printf (&part, "%s.part", strbuf_text (&name));
    int rc = grid_folders_make (from->dir, file->path, err);
    if (rc == 0) {
        a.fd = open (strbuf_text (&part), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
                     0666);
        rc = a.fd < 0 ? err_set (err, ERR_IO, "%s", strerror (errno)) : 0;
    }
    if (rc == 0) {
        a.progress = cli_progress_start (file->path, file->bytes > 0 ? (uint64_t)file->bytes : 0);
        rc = arrival_run (from, file->path, &a, err);
        cli_progress_end (a.progress);
        if (rc == 0 && rename (strbuf_text (&part), strbuf_text (&name)) != 0)
            rc = err_set (err, ERR_IO, "%s", strerror (errno));
        if (rc == 0)
            printf ("%s\n", strbuf_text (&name));
        else
            err_prefix (err, "%s", strbuf_text (&name));
    } else {
        err_prefix (err, "%s", strbuf_text (&name));
    }
    if (a.fd >= 0)
        close (a.fd);
    EVP_MD_CTX_free (a.hash);
    strbuf_free (&part);
    strbuf_free (&name);
    return rc;
}

static bool hidden (const char *path)
{
    return path[0] == '.' || strstr (path, "/.");
}

/* By its whole path, by its name alone, or by a folder above it. Without patterns: all but what the site put there itself. What
 * is hidden comes only where a pattern says so: else a site could put a .profile into the home of who fetches there. */
static bool wanted (const struct source *from, const char *path)
{
    const char *slash = strrchr (path, '/');
    if (from->pattern_count == 0)
        return strcmp (path, "script") != 0 && strcmp (path, "nodefile") != 0 && !hidden (path);
    for (int i = 0; i < from->pattern_count; i++) {
        const char *pattern = from->pattern[i];
        size_t len = strlen (pattern);
        if (hidden (path) && !hidden (pattern))
            continue;
        if (fnmatch (pattern, path, 0) == 0 ||
            (slash && !strchr (pattern, '/') && fnmatch (pattern, slash + 1, 0) == 0) ||
            (strncmp (pattern, path, len) == 0 && path[len] == '/'))
            return true;
    }
    return false;
}

static int files_fetch (const struct source *from, const Nui__Local__V1__FilesReply *files)
{
    struct err err = {0};
    int code = CLI_OK;
    bool any = false;
    for (size_t i = 0; i < files->n_files && code == CLI_OK; i++) {
        const Nui__Local__V1__FileInfo *file = files->files[i];
        if (!wanted (from, file->path))
            continue;
        any = true;
        if (stage_names_check (file->path, &err) != 0 || file_fetch (from, file, &err) != 0)
            code = cli_fail (from->command, &err);
    }
    if (code == CLI_OK && !any && from->pattern_count > 0) {
        err_set (&err, ERR_NOT_FOUND, "job %s has no file of that name", from->job_id);
        code = cli_fail (from->command, &err);
    }
    if (code == CLI_OK && files->more) {
        err_set (
            &err, ERR_LIMIT,
            "job %s has more files than its site lists (%zu): pack them in the job, or take them away by "
            "--stage-out",
            from->job_id, files->n_files);
        code = cli_fail (from->command, &err);
    }
    return code;
}

static int source_fetch (const struct source *from)
{
    Nui__Local__V1__FilesRequest request = NUI__LOCAL__V1__FILES_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err = {0};
    request.job_id = from->job_id;
    if (grid_folders_make (from->dir, "", &err) != 0)
        return cli_fail (from->command, &err);
    if (rpcclient_call (from->site, &nui__local__v1__local__descriptor, "Files", &request.base,
                        GRID_CALL_TIMEOUT_S * US_PER_S, true, &reply, &err) < 0)
        return cli_fail (from->command, &err);
    int code = files_fetch (from, (const Nui__Local__V1__FilesReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return code;
}

/* Of one component, into a folder of its own where there are several. */
static int component_fetch (struct cli_context *ctx, const Nui__Meta__V1__ComponentStatus *c,
                            bool several, struct source *from)
{
    struct strbuf dir = STRBUF_INIT;
    struct err err = {0};
    const char *above = from->dir;
    if (!c->job || !*c->job->site_job_id || !*c->site) {
        err_set (&err, ERR_CONFLICT, "component %s has not been placed on a site", c->name);
        return cli_fail (from->command, &err);
    }
    from->site = *c->site_server ? grid_site_open (ctx, c, &err) : cli_site (ctx, c->site, &err);
    if (!from->site)
        return cli_fail (from->command, &err);
    strbuf_printf (&dir, several ? "%s/%s" : "%s", above, c->name);
    from->dir = strbuf_text (&dir);
    from->job_id = c->job->site_job_id;
    int code = source_fetch (from);
    if (*c->site_server) /* else it is the context's */
        rpcclient_destroy (from->site);
    from->dir = above;
    strbuf_free (&dir);
    return code;
}

static int job_fetch (struct cli_context *ctx, const char *id, const char *component,
                      struct source *from)
{
    Nui__Meta__V1__JobRequest request = NUI__META__V1__JOB_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct err err = {0};
    int code = CLI_OK;
    bool found = false;
    request.grid_job_id = (char *)(uintptr_t)id;
    if (grid_call (ctx, "Status", &request.base, &reply, &err) < 0)
        return cli_fail (from->command, &err);
    const Nui__Meta__V1__JobStatus *status = (const Nui__Meta__V1__JobStatus *)reply;
    for (size_t i = 0; i < status->n_components && code == CLI_OK; i++) {
        const Nui__Meta__V1__ComponentStatus *c = status->components[i];
        if (component && strcmp (component, c->name) != 0)
            continue;
        found = true;
        code = component_fetch (ctx, c, !component && status->n_components > 1, from);
    }
    if (!found) {
        err_set (&err, ERR_NOT_FOUND, "job %s has no component '%s'", id,
                 component ? component : "");
        code = cli_fail (from->command, &err);
    }
    protobuf_c_message_free_unpacked (reply, NULL);
    return code;
}

int grid_fetch (struct cli_context *ctx, const char *command, const char *grid_job_id,
                const char *directory)
{
    struct source from = {.dir = directory, .command = command};
    return job_fetch (ctx, grid_job_id, NULL, &from);
}

/* A job of a cluster itself, alpha.17: nobody else is asked. */
static int site_job_fetch (struct cli_context *ctx, char *id, struct source *from)
{
    char site[PRINCIPAL_NAME_MAX];
    uint64_t number;
    struct err err = {0};
    if (id_parse (id, site, sizeof site, &number, &err) < 0)
        return cli_fail (from->command, &err);
    from->site = cli_site (ctx, site, &err);
    from->job_id = id;
    return from->site ? source_fetch (from) : cli_fail (from->command, &err);
}

static const struct cli_option fetch_options[] = {
    {"output-dir", 'd', CLI_OPT_STRING, "DIR", "into this directory (default: this one)",
     offsetof (struct fetch_args, dir)},
    {"component", 0, CLI_OPT_STRING, "NAME",
     "only this part of a co-allocated job; else each has a folder of its name",
     offsetof (struct fetch_args, component)},
    {0},
};

static int fetch_run (struct cli_context *ctx, int argc, char **argv)
{
    struct fetch_args args = {.dir = "."};
    struct cli_operands operands;
    char id[2 * QUANTITY_TEXT_MAX];
    int code;
    if (!cli_options (ctx, fetch_options, 0, &args, argc, argv, &operands, &code))
        return code;
    if (cli_format (ctx) != CLI_TABLE)
        return cli_usage (argv[0], "files have no other format");
    if (operands.count < 1)
        return cli_usage (argv[0],
                          "a job, and perhaps which files, as in nui fetch grid.42 '*.dat'");
    code = grid_job_operand (ctx, argv[0], operands.item[0], id, sizeof id);
    if (code != CLI_OK)
        return code;
    struct source from = {.dir = args.dir,
                          .pattern = operands.item + 1,
                          .pattern_count = operands.count - 1,
                          .command = argv[0]};
    if (strncmp (id, "grid.", 5) == 0)
        return job_fetch (ctx, id, args.component, &from);
    if (args.component)
        return cli_usage (argv[0], "a job of one cluster has no components");
    return site_job_fetch (ctx, id, &from);
}

const struct cli_command fetch_command = {
    .name = "fetch",
    .group = CLI_USERS,
    .summary = "bring files out of a job's directory",
    .run = fetch_run,
    .help = "nui fetch [options] JOB [PATTERN...]",
    .text =
        "While the job runs and after it, as long as its site keeps them. A PATTERN such as '*.dat' or\n"
        "'results' (a folder) chooses; without one all files come but the script and the list of nodes.\n"
        "What was cut is gone on with; a file has its name when it is whole and its digest is right.",
    .options = fetch_options,
    .example = "nui fetch -d home grid.42 'results/*.h5' stderr",
};
