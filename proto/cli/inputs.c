/* inputs: finds the files that travel with a job, hashes them, and sends what is not there yet. jobspec finds, submit and msub
 * send. What a file holds is read twice, to be signed and to be sent: whoever takes it compares. */
#include "proto/cli/inputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/cli/client.h"
#include "proto/hash/sha256.h"
#include "proto/job/jobcheck.h"
#include "proto/job/stagespec.h"

enum { PIECE = 1 << 20, TRIES_MAX = 5, DEPTH_MAX = 32 };

/* One content. */
struct input {
    const char *file; /* here */
    uint8_t sha256[SHA256_BYTES];
    int64_t bytes;
};

struct inputs {
    struct arena *arena;
    struct input item[JOB_STAGE_IN_MAX * 4]; /* of all components */
    size_t count, files;
    int64_t bytes;
};

struct inputs *inputs_create (struct arena *arena)
{
    struct inputs *inputs = arena_new (arena, struct inputs);
    inputs->arena = arena;
    return inputs;
}

/* --- what there is ------------------------------------------------------------------------------ */

static int input_open (const char *file, struct stat *st, struct err *err)
{
    int fd = open (file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_set (err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s", file,
                        strerror (errno));
    if (fstat (fd, st) != 0 || !S_ISREG (st->st_mode)) {
        close (fd);
        return err_set (err, ERR_INVALID, "%s is no plain file, and no folder: it cannot travel",
                        file);
    }
    return fd;
}

static int input_hash (const char *file, struct input *out, mode_t *mode, struct err *err)
{
    struct stat st;
    ssize_t n = 0;
    int fd = input_open (file, &st, err);
    if (fd < 0)
        return err->code;
    char *block = malloc (PIECE);
    EVP_MD_CTX *hash = sha256_begin ();
    struct cli_progress *progress = cli_progress_start (file, (uint64_t)st.st_size);
    out->file = file;
    out->bytes = 0;
    while (block && (n = read (fd, block, PIECE)) > 0) {
        sha256_add (hash, block, (size_t)n);
        out->bytes += n;
        cli_progress_update (progress, (uint64_t)out->bytes);
    }
    cli_progress_end (progress);
    sha256_end (hash, out->sha256);
    bool block_there = block != NULL;
    free (block);
    close (fd);
    *mode = st.st_mode;
    return n == 0 && block_there ? 0 : err_set (err, ERR_IO, "%s: %s", file, strerror (errno));
}

/* The content, once for all that hold the same. */
static int input_keep (struct inputs *inputs, const struct input *one, struct err *err)
{
    for (size_t i = 0; i < inputs->count; i++)
        if (memcmp (inputs->item[i].sha256, one->sha256, SHA256_BYTES) == 0)
            return 0;
    if (inputs->count == sizeof inputs->item / sizeof *inputs->item)
        return err_set (err, ERR_LIMIT, "more than %zu files travel with the job: pack them (tar)",
                        inputs->count);
    inputs->item[inputs->count++] = *one;
    inputs->bytes += one->bytes;
    return 0;
}

static int file_add (struct inputs *inputs, const char *file, const char *path,
                     Nui__Common__V1__Component *c, struct err *err)
{
    struct input one;
    mode_t mode = 0;
    char url[STAGE_SENT_URL_MAX];
    for (size_t i = 0; i < c->n_stage_in; i++)
        if (strcmp (c->stage_in[i]->path, path) == 0)
            return 0;
    if (c->n_stage_in == JOB_STAGE_IN_MAX)
        return err_set (err, ERR_LIMIT, "more than %d files travel with the job: pack them (tar)",
                        JOB_STAGE_IN_MAX);
    file = arena_strdup (inputs->arena, file);
    if (input_hash (file, &one, &mode, err) != 0 || input_keep (inputs, &one, err) != 0)
        return err->code;
    Nui__Common__V1__Transfer *t = arena_new (inputs->arena, Nui__Common__V1__Transfer);
    nui__common__v1__transfer__init (t);
    t->url = arena_strdup (inputs->arena, stage_sent_url (one.sha256, url));
    t->path = arena_strdup (inputs->arena, path);
    t->bytes = one.bytes;
    t->sha256.data = arena_memdup (inputs->arena, one.sha256, SHA256_BYTES);
    t->sha256.len = SHA256_BYTES;
    t->executable = (mode & S_IXUSR) != 0;
    c->stage_in[c->n_stage_in++] = t;
    inputs->files++;
    return 0;
}

static int by_name (const struct dirent **a, const struct dirent **b)
{
    return strcmp ((*a)->d_name, (*b)->d_name);
}

static int visible (const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int folder_add (struct inputs *inputs, const char *file, const char *path, unsigned depth,
                       Nui__Common__V1__Component *c, struct err *err)
{
    struct dirent **entry;
    struct stat st;
    int count = scandir (file, &entry, visible, by_name), rc = 0;
    if (count < 0)
        return err_set (err, ERR_IO, "%s: %s", file, strerror (errno));
    if (depth == DEPTH_MAX)
        rc = err_set (err, ERR_LIMIT, "%s: more than %d folders deep", file, DEPTH_MAX);
    for (int i = 0; i < count; i++) {
        const char *below = arena_printf (inputs->arena, "%s/%s", file, entry[i]->d_name);
        const char *there =
            arena_printf (inputs->arena, "%s%s%s", path, *path ? "/" : "", entry[i]->d_name);
        if (rc == 0 && stat (below, &st) != 0)
            rc = err_set (err, ERR_IO, "%s: %s", below, strerror (errno));
        else if (rc == 0 && S_ISDIR (st.st_mode))
            rc = folder_add (inputs, below, there, depth + 1, c, err);
        else if (rc == 0)
            rc = file_add (inputs, below, there, c, err);
        free (entry[i]);
    }
    free (entry);
    return rc;
}

/* Its place at the site: "./a//b/" is a/b, what is not below here comes under its last name; "": this folder. */
static const char *place_of (struct inputs *inputs, const char *path)
{
    char *copy = arena_strdup (inputs->arena, path), *rest = copy;
    const char *out = "", *last = "";
    bool outside = *path == '/';
    for (char *name; (name = strsep (&rest, "/"));) {
        if (!*name || strcmp (name, ".") == 0)
            continue;
        outside = outside || strcmp (name, "..") == 0;
        last = name;
        out = arena_printf (inputs->arena, "%s%s%s", out, *out ? "/" : "", name);
    }
    return !outside ? out : strcmp (last, "..") == 0 ? "" : last;
}

int inputs_add (struct inputs *inputs, const char *path, Nui__Common__V1__Component *c,
                struct err *err)
{
    struct stat st;
    const char *place = place_of (inputs, path);
    if (stat (path, &st) != 0)
        return err_set (err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "--input %s: %s", path,
                        strerror (errno));
    int rc = S_ISDIR (st.st_mode) ? folder_add (inputs, path, place, 0, c, err)
                                  : file_add (inputs, path, place, c, err);
    return rc == 0 ? 0 : err_prefix (err, "--input");
}

int inputs_add_argument (struct inputs *inputs, const char *argument, Nui__Common__V1__Component *c,
                         struct err *err)
{
    struct stat st;
    struct err no = {0};
    const char *place = place_of (inputs, argument);
    bool climbs = strcmp (argument, "..") == 0 || strncmp (argument, "../", 3) == 0 ||
                  strstr (argument, "/../");
    if (*argument == '/' || climbs || stage_path_check (place, &no) != 0 ||
        stat (argument, &st) != 0 || !S_ISREG (st.st_mode))
        return 0;
    int rc = file_add (inputs, argument, place, c, err);
    return rc == 0 ? 0
                   : err_prefix (err,
                                 "argument '%.200s' names a file, which travels with the job "
                                 "(--input none keeps it here)",
                                 argument);
}

/* --- sent ---------------------------------------------------------------------------------------- */

struct sending {
    inputs_put_fn put;
    void *arg;
    int64_t sent;
    struct cli_progress *progress;
};

/* One call; *at is how much is there then. */
static int piece_put (struct sending *s, const struct input *one, int64_t *at, const void *data,
                      size_t len, bool *whole, bool *checking, struct err *err)
{
    Nui__Common__V1__ContentRequest request = NUI__COMMON__V1__CONTENT_REQUEST__INIT;
    Nui__Common__V1__ContentReply *reply = NULL;
    request.sha256.data = (uint8_t *)(uintptr_t)one->sha256;
    request.sha256.len = SHA256_BYTES;
    request.bytes = one->bytes;
    request.offset = *at;
    request.data.data = (uint8_t *)(uintptr_t)data;
    request.data.len = len;
    int rc = s->put (s->arg, &request, &reply, err);
    if (rc != 0)
        return rc;
    *whole = reply->whole;
    *checking = reply->checking;
    *at = reply->bytes;
    protobuf_c_message_free_unpacked (&reply->base, NULL);
    return *at >= 0 && *at <= one->bytes
               ? 0
               : err_set (err, ERR_INTERNAL, "it says that %lld bytes are there", (long long)*at);
}

/* Lost calls are made again, as long as something goes through in between. */
static int input_put (struct sending *s, const struct input *one, int fd, char *block,
                      struct err *err)
{
    bool whole = false, checking = true; /* first, how much is there */
    int64_t at = 0, best = 0;
    int tries = 0;
    while (!whole) {
        ssize_t n = checking ? 0 : pread (fd, block, PIECE, at);
        if (n < 0)
            return err_set (err, ERR_IO, "%s", strerror (errno));
        if (!checking && n == 0)
            return err_set (err, ERR_CONFLICT, "it became shorter meanwhile: submit again");
        if (n > one->bytes - at)
            n = (ssize_t)(one->bytes - at);
        int rc = piece_put (s, one, &at, block, (size_t)n, &whole, &checking, err);
        if (rc == ERR_UNAVAILABLE && ++tries < TRIES_MAX) {
            checking = true;
            continue;
        }
        if (rc != 0)
            return rc;
        tries = at > best ? 0 : tries;
        best = at > best ? at : best;
        s->sent += n;
        cli_progress_update (s->progress, (uint64_t)at);
        if (n > 0 && at < best && ++tries == TRIES_MAX)
            return err_set (err, ERR_CONFLICT, "nothing of it stays there");
    }
    return 0;
}

int inputs_send (struct inputs *inputs, const char *command, inputs_put_fn put, void *arg,
                 struct err *err)
{
    struct sending s = {put, arg, 0, NULL};
    char *block = malloc (PIECE);
    struct stat st;
    int rc = block ? 0 : err_set (err, ERR_NOMEM, "no memory");
    for (size_t i = 0; rc == 0 && i < inputs->count; i++) {
        const struct input *one = &inputs->item[i];
        int fd = input_open (one->file, &st, err);
        if (fd < 0) {
            rc = err->code;
            break;
        }
        s.progress = cli_progress_start (one->file, (uint64_t)one->bytes);
        rc = input_put (&s, one, fd, block, err);
        cli_progress_end (s.progress);
        close (fd);
        if (rc == ERR_CONFLICT)
            err_set (err, rc, "it is not what was signed (did it change meanwhile?): submit again");
        if (rc != 0)
            err_prefix (err, "%s", one->file);
    }
    free (block);
    if (rc == 0 && command && inputs->files)
        fprintf (stderr,
                 "nui %s: %zu file%s of %lld bytes travel%s with the job, %lld bytes were sent\n",
                 command, inputs->files, inputs->files == 1 ? "" : "s", (long long)inputs->bytes,
                 inputs->files == 1 ? "s" : "", (long long)s.sent);
    return rc;
}
