/* contents: a store of what files hold, by owner and SHA-256. nui-meta and nui-local each have one, filled by Put and, at a site,
 * from the metascheduler. Nothing here knows of jobs or connections; a name in it is made of digits only, never of what a
 * peer said. */
#include "proto/content/contents.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <uthash.h>

#include "proto/base/clock.h"

enum { OWNER_BYTES = 16, OWNER_MAX = 2 * OWNER_BYTES + 1, NAME_MAX_ = 2 * SHA256_BYTES + 32 };
/* What was sent for a job that is about to come is not taken away for another's sake. */
#define FRESH (10 * 60 * US_PER_S)
/* Stays free on the disk, which is the daemon's state's as well. */
#define ROOM_MIN (INT64_C (256) << 20)
/* Removed in one call: the rest is there at the next. */
enum { SWEEP_MAX = 128 };

struct content_key {
    uint8_t owner[OWNER_BYTES];
    uint8_t sha256[SHA256_BYTES];
};

struct held {
    struct content_key key;
    uint32_t count;
    UT_hash_handle hh;
};

/* A part that is open: `at` of its bytes are hashed. */
struct part {
    struct content_key key;
    int64_t bytes, at, there;
    int fd;
    EVP_MD_CTX *hash;
    uint64_t used;
    UT_hash_handle hh;
};

/* What an owner has, once it was counted. */
struct owner {
    uint8_t id[OWNER_BYTES];
    int64_t bytes;
    uint32_t files;
    UT_hash_handle hh;
};

struct contents {
    int dir;
    struct contents_limits limits;
    struct held *held;
    struct part *parts;
    struct owner *owners;
    uint64_t turn;
    DIR *sweep; /* of dir; NULL: from the start */
};

/* --- names ------------------------------------------------------------------------------------ */

static void hex_text (const uint8_t *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++)
        snprintf (out + 2 * i, 3, "%02x", bytes[i]);
}

/* Of digits that were checked. */
static void hex_read (const char *text, size_t count, uint8_t *out)
{
    for (size_t i = 0; i < 2 * count; i++) {
        uint8_t digit = (uint8_t)(text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10);
        out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] << 4 | digit : digit);
    }
}

static struct content_key key_make (const char *owner, const uint8_t sum[SHA256_BYTES])
{
    struct content_key key;
    uint8_t hash[SHA256_BYTES];
    sha256 (owner, strlen (owner), hash);
    memcpy (key.owner, hash, sizeof key.owner);
    memcpy (key.sha256, sum, sizeof key.sha256);
    return key;
}

static void whole_name (const struct content_key *key, char out[NAME_MAX_])
{
    hex_text (key->sha256, SHA256_BYTES, out);
}

static void part_name (const struct content_key *key, int64_t bytes, char out[NAME_MAX_])
{
    whole_name (key, out);
    snprintf (out + 2 * SHA256_BYTES, NAME_MAX_ - 2 * SHA256_BYTES, ".%" PRId64 ".part", bytes);
}

static int io_fail (const char *what, struct err *err)
{
    if (errno == ENOSPC || errno == EDQUOT)
        return err_set (err, ERR_LIMIT, "no room on the disk for %s", what);
    return err_set (err, ERR_IO, "%s: %s", what, strerror (errno));
}

/* The owner's folder; -1. */
static int folder_open (const struct contents *c, const uint8_t id[OWNER_BYTES], bool make)
{
    char name[OWNER_MAX];
    hex_text (id, OWNER_BYTES, name);
    if (make && mkdirat (c->dir, name, 0700) != 0 && errno != EEXIST)
        return -1;
    return openat (c->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* --- who has how much ------------------------------------------------------------------------- */

/* Of a name in an owner's folder: what it counts as; -1: it is none of ours. */
static int64_t entry_bytes (int folder, const char *name, struct stat *st,
                            uint8_t sum[SHA256_BYTES], bool *is_part)
{
    int64_t bytes;
    int end = 0;
    if (strspn (name, "0123456789abcdef") != 2 * (size_t)SHA256_BYTES ||
        fstatat (folder, name, st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG (st->st_mode))
        return -1;
    hex_read (name, SHA256_BYTES, sum);
    const char *rest = name + 2 * (size_t)SHA256_BYTES;
    *is_part = *rest != 0;
    if (!*rest)
        return st->st_size;
    return sscanf (rest, ".%" SCNd64 ".part%n", &bytes, &end) == 1 && end > 0 && !rest[end] ? bytes
                                                                                            : -1;
}

static struct owner *owner_of (struct contents *c, const uint8_t id[OWNER_BYTES], int folder)
{
    struct owner *o;
    struct stat st;
    uint8_t sum[SHA256_BYTES];
    bool part;
    HASH_FIND (hh, c->owners, id, OWNER_BYTES, o);
    if (o)
        return o;
    o = calloc (1, sizeof *o);
    assert (o);
    memcpy (o->id, id, OWNER_BYTES);
    HASH_ADD (hh, c->owners, id, OWNER_BYTES, o);
    int fd = openat (folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir (fd) : NULL;
    for (struct dirent *one; dir && (one = readdir (dir));) {
        int64_t bytes = entry_bytes (fd, one->d_name, &st, sum, &part);
        if (bytes < 0)
            continue;
        o->bytes += bytes;
        o->files++;
    }
    if (dir)
        closedir (dir);
    else if (fd >= 0)
        close (fd);
    return o;
}

static bool is_held (const struct contents *c, const struct content_key *key)
{
    struct held *held;
    HASH_FIND (hh, c->held, key, sizeof *key, held);
    return held != NULL;
}

static void part_close (struct contents *c, struct part *part)
{
    HASH_DEL (c->parts, part);
    EVP_MD_CTX_free (part->hash);
    close (part->fd);
    free (part);
}

static void part_forget (struct contents *c, const struct content_key *key)
{
    struct part *part;
    HASH_FIND (hh, c->parts, key, sizeof *key, part);
    if (part)
        part_close (c, part);
}

/* Removes what no job needs and was not asked for since `before`, some of it where it is much. */
static void folder_sweep (struct contents *c, const uint8_t id[OWNER_BYTES], int folder,
                          time_us before)
{
    struct stat st;
    struct content_key key;
    uint32_t removed = 0;
    bool is_part;
    struct owner *o = owner_of (c, id, folder);
    int fd = openat (folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir (fd) : NULL;
    memcpy (key.owner, id, OWNER_BYTES);
    for (struct dirent *one; dir && removed < SWEEP_MAX && (one = readdir (dir));) {
        int64_t bytes = entry_bytes (fd, one->d_name, &st, key.sha256, &is_part);
        if (bytes < 0 || st.st_mtim.tv_sec * US_PER_S >= before || (!is_part && is_held (c, &key)))
            continue;
        if (is_part)
            part_forget (c, &key);
        if (unlinkat (fd, one->d_name, 0) != 0)
            continue;
        removed++;
        o->bytes -= bytes;
        o->files--;
    }
    if (dir)
        closedir (dir);
    else if (fd >= 0)
        close (fd);
}

/* Whether so many bytes more leave the disk what it needs: parts were counted when they began, by themselves. */
static int disk_check (int folder, int64_t bytes, struct err *err)
{
    struct statvfs fs;
    if (fstatvfs (folder, &fs) != 0)
        return 0;
    int64_t all = (int64_t)fs.f_blocks * (int64_t)fs.f_frsize;
    int64_t left = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    return left - bytes >= (all / 20 < ROOM_MIN ? all / 20 : ROOM_MIN)
               ? 0
               : err_set (err, ERR_LIMIT, "no room on the disk for %" PRId64 " bytes more", bytes);
}

/* Whether another content of so many bytes is taken. */
static int room_check (struct contents *c, const struct content_key *key, int folder, int64_t bytes,
                       struct err *err)
{
    struct owner *o = owner_of (c, key->owner, folder);
    if ((o->bytes + bytes > c->limits.share || o->files >= CONTENTS_OF_ONE) &&
        bytes <= c->limits.share)
        folder_sweep (c, key->owner, folder, clock_now_us () - FRESH);
    if (o->bytes + bytes > c->limits.share)
        return err_set (
            err, ERR_LIMIT,
            "your files that travel with jobs have %" PRId64 " MB here, with these it would "
            "be %" PRId64 " MB, and %" PRId64 " are your share (INPUTSHARE): larger ones "
            "come by --stage-in",
            o->bytes >> 20, (o->bytes + bytes) >> 20, c->limits.share >> 20);
    if (o->files >= CONTENTS_OF_ONE)
        return err_set (err, ERR_LIMIT,
                        "you have %u files here that travel with jobs, more are not taken",
                        o->files);
    return disk_check (folder, bytes, err);
}

/* --- parts ------------------------------------------------------------------------------------ */

static void part_make_room (struct contents *c)
{
    struct part *part, *next, *oldest = NULL;
    if (HASH_COUNT (c->parts) < CONTENTS_OPEN)
        return;
    HASH_ITER (hh, c->parts, part, next)
        if (!oldest || part->used < oldest->used)
            oldest = part;
    part_close (c, oldest);
}

static int part_open (struct contents *c, const struct content_key *key, int folder, int64_t bytes,
                      struct part **out, struct err *err)
{
    struct part *part;
    struct stat st;
    char name[NAME_MAX_];
    HASH_FIND (hh, c->parts, key, sizeof *key, part);
    if (part && part->bytes != bytes) { /* somebody says another size of it */
        part_close (c, part);
        part = NULL;
    }
    *out = part;
    if (part)
        return 0;
    part_name (key, bytes, name);
    int fd = openat (folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        if (room_check (c, key, folder, bytes, err) != 0)
            return err->code;
        fd = openat (folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0) {
            struct owner *o = owner_of (c, key->owner, folder);
            o->bytes += bytes;
            o->files++;
        }
    }
    if (fd < 0 || fstat (fd, &st) != 0) {
        io_fail ("a file that travels with a job", err);
        if (fd >= 0)
            close (fd);
        return err->code;
    }
    part_make_room (c);
    part = calloc (1, sizeof *part);
    assert (part);
    *part = (struct part){.key = *key,
                          .bytes = bytes,
                          .there = st.st_size < bytes ? st.st_size : bytes,
                          .fd = fd,
                          .hash = sha256_begin ()};
    HASH_ADD (hh, c->parts, key, sizeof *key, part);
    *out = part;
    return 0;
}

/* Some of what was there before this process knew of it. */
static int part_check (struct part *part, struct err *err)
{
    enum { BLOCK = 256 << 10 };
    int64_t until = part->there - part->at > CONTENTS_STEP ? part->at + CONTENTS_STEP : part->there;
    uint8_t *block = malloc (BLOCK);
    int rc = 0;
    assert (block);
    while (rc == 0 && part->at < until) {
        size_t want = until - part->at > BLOCK ? BLOCK : (size_t)(until - part->at);
        ssize_t n = pread (part->fd, block, want, part->at);
        if (n <= 0) {
            rc = n < 0 ? io_fail ("a file that travels with a job", err) : 0;
            part->there = part->at; /* it is shorter now */
            break;
        }
        sha256_add (part->hash, block, (size_t)n);
        part->at += n;
    }
    free (block);
    return rc;
}

static int part_write (struct part *part, const uint8_t *data, size_t len, struct err *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite (part->fd, data + done, len - done, part->at + (int64_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_fail ("a file that travels with a job", err);
        done += (size_t)n;
    }
    sha256_add (part->hash, data, len);
    /* Begun now, so that the last one's fsync has little left to wait for. */
    (void)sync_file_range (part->fd, part->at, (int64_t)len, SYNC_FILE_RANGE_WRITE);
    part->at += (int64_t)len;
    part->there = part->at;
    return 0;
}

/* Nothing of it stays. */
static void part_remove (struct contents *c, struct part *part, int folder)
{
    char name[NAME_MAX_];
    struct owner *o = owner_of (c, part->key.owner, folder);
    part_name (&part->key, part->bytes, name);
    if (unlinkat (folder, name, 0) == 0) {
        o->bytes -= part->bytes;
        o->files--;
    }
    part_close (c, part);
}

static int part_finish (struct contents *c, struct part *part, int folder, struct err *err)
{
    char name[NAME_MAX_], from[NAME_MAX_];
    uint8_t sum[SHA256_BYTES];
    sha256_end (part->hash, sum);
    part->hash = NULL;
    if (memcmp (sum, part->key.sha256, sizeof sum) != 0) {
        part_remove (c, part, folder);
        return err_set (err, ERR_CONFLICT,
                        "what came has another SHA-256 than was said of it: nothing was kept");
    }
    whole_name (&part->key, name);
    part_name (&part->key, part->bytes, from);
    int rc = 0;
    if (fsync (part->fd) != 0 || renameat (folder, from, folder, name) != 0 || fsync (folder) != 0)
        rc = io_fail ("a file that travels with a job", err);
    part_close (c, part);
    return rc;
}

/* --- what is asked for ------------------------------------------------------------------------- */

static int whole_open (struct contents *c, const struct content_key *key, int *folder_out,
                       bool make, struct stat *st)
{
    char name[NAME_MAX_];
    int folder = folder_open (c, key->owner, make);
    *folder_out = folder;
    if (folder < 0)
        return -1;
    whole_name (key, name);
    int fd = openat (folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat (fd, st) != 0 || !S_ISREG (st->st_mode))) {
        close (fd);
        fd = -1;
    }
    if (fd >= 0)
        (void)futimens (fd, NULL); /* asked for now */
    return fd;
}

static int put_check (const struct contents *c, int64_t bytes, int64_t offset, size_t len,
                      struct err *err)
{
    if (bytes < 0 || offset < 0 || len > CONTENTS_PIECE_MAX || offset > bytes ||
        (int64_t)len > bytes - offset)
        return err_set (err, ERR_INVALID, "a file of %" PRId64 " bytes has no %zu at %" PRId64,
                        bytes, len, offset);
    if (c->limits.file_max == 0)
        return err_set (err, ERR_LIMIT,
                        "no files travel with jobs here (INPUTMAX is 0): they come by --stage-in");
    if (bytes > c->limits.file_max)
        return err_set (err, ERR_LIMIT,
                        "it has %" PRId64 " bytes, and files of at most %" PRId64
                        " MB travel with a job (INPUTMAX): larger ones come by --stage-in",
                        bytes, c->limits.file_max >> 20);
    return 0;
}

static int put (struct contents *c, const struct content_key *key, int folder, int64_t bytes,
                int64_t offset, const void *data, size_t len, struct contents_state *state,
                struct err *err)
{
    struct part *part;
    int rc = part_open (c, key, folder, bytes, &part, err);
    if (rc != 0)
        return rc;
    part->used = ++c->turn;
    if (part->at < part->there) {
        rc = part_check (part, err);
        state->checking = part->at < part->there;
    }
    bool writes = rc == 0 && !state->checking && len > 0 && offset == part->at;
    state->bytes = part->at;
    if (writes && (rc = disk_check (folder, (int64_t)len, err)) != 0)
        return rc;
    if (writes)
        rc = part_write (part, data, len, err);
    state->bytes = part->at;
    if (rc != 0) /* what is on disk is not what was hashed: read again */
        part_close (c, part);
    else if (part->at == bytes) {
        rc = part_finish (c, part, folder, err);
        state->whole = rc == 0;
    }
    return rc;
}

int contents_put (struct contents *c, const char *owner, const uint8_t sum[SHA256_BYTES],
                  int64_t bytes, int64_t offset, const void *data, size_t len,
                  struct contents_state *state, struct err *err)
{
    struct err local = {0};
    struct content_key key = key_make (owner, sum);
    struct stat st;
    int folder;
    err = err ? err : &local;
    *state = (struct contents_state){0};
    int rc = put_check (c, bytes, offset, len, err);
    if (rc != 0)
        return rc;
    int fd = whole_open (c, &key, &folder, true, &st);
    if (folder < 0)
        return io_fail ("a file that travels with a job", err);
    if (fd >= 0) {
        close (fd);
        if (st.st_size == bytes)
            *state = (struct contents_state){.bytes = bytes, .whole = true};
        else
            rc = err_set (err, ERR_CONFLICT,
                          "the file of that SHA-256 has %" PRId64 " bytes, not %" PRId64,
                          (int64_t)st.st_size, bytes);
    } else {
        rc = put (c, &key, folder, bytes, offset, data, len, state, err);
    }
    close (folder);
    return rc;
}

int contents_read (struct contents *c, const char *owner, const uint8_t sum[SHA256_BYTES],
                   int *fd_out, int64_t *bytes_out, struct err *err)
{
    struct content_key key = key_make (owner, sum);
    struct stat st;
    int folder;
    int fd = whole_open (c, &key, &folder, false, &st);
    if (folder >= 0)
        close (folder);
    if (fd < 0)
        return err_set (err, ERR_NOT_FOUND, "a file that travels with the job is not here");
    *fd_out = fd;
    *bytes_out = st.st_size;
    return 0;
}

void contents_hold (struct contents *c, const char *owner, const uint8_t sum[SHA256_BYTES])
{
    struct content_key key = key_make (owner, sum);
    struct held *held;
    HASH_FIND (hh, c->held, &key, sizeof key, held);
    if (!held) {
        held = calloc (1, sizeof *held);
        assert (held);
        held->key = key;
        HASH_ADD (hh, c->held, key, sizeof key, held);
    }
    held->count++;
}

void contents_drop (struct contents *c, const char *owner, const uint8_t sum[SHA256_BYTES])
{
    struct content_key key = key_make (owner, sum);
    struct held *held;
    HASH_FIND (hh, c->held, &key, sizeof key, held);
    if (!held || --held->count > 0)
        return;
    HASH_DEL (c->held, held);
    free (held);
}

/* --- all of it --------------------------------------------------------------------------------- */

void contents_sweep (struct contents *c, time_us now)
{
    struct dirent *one = NULL;
    uint8_t id[OWNER_BYTES];
    if (!c->sweep) {
        int fd = openat (c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        c->sweep = fd >= 0 ? fdopendir (fd) : NULL;
    }
    while (c->sweep && (one = readdir (c->sweep)))
        if (strlen (one->d_name) == OWNER_MAX - 1 &&
            strspn (one->d_name, "0123456789abcdef") == OWNER_MAX - 1)
            break;
    if (!c->sweep || !one) {
        if (c->sweep)
            closedir (c->sweep);
        c->sweep = NULL;
        return;
    }
    hex_read (one->d_name, OWNER_BYTES, id);
    int folder = folder_open (c, id, false);
    if (folder < 0)
        return;
    folder_sweep (c, id, folder, now - c->limits.keep);
    close (folder);
    (void)unlinkat (c->dir, one->d_name, AT_REMOVEDIR); /* where nothing is left in it */
}

struct contents *contents_open (const char *dir, const struct contents_limits *limits,
                                struct err *err)
{
    struct contents *c = calloc (1, sizeof *c);
    assert (c);
    if (mkdir (dir, 0700) != 0 && errno != EEXIST) {
        err_set (err, ERR_IO, "%s: %s", dir, strerror (errno));
        free (c);
        return NULL;
    }
    c->dir = open (dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (c->dir < 0) {
        err_set (err, ERR_IO, "%s: %s", dir, strerror (errno));
        free (c);
        return NULL;
    }
    c->limits = *limits;
    return c;
}

void contents_limits_set (struct contents *c, const struct contents_limits *limits)
{
    c->limits = *limits;
}

void contents_close (struct contents *c)
{
    struct held *held, *next_held;
    struct part *part, *next_part;
    struct owner *owner, *next_owner;
    if (!c)
        return;
    HASH_ITER (hh, c->held, held, next_held) {
        HASH_DEL (c->held, held);
        free (held);
    }
    HASH_ITER (hh, c->parts, part, next_part)
        part_close (c, part);
    HASH_ITER (hh, c->owners, owner, next_owner) {
        HASH_DEL (c->owners, owner);
        free (owner);
    }
    if (c->sweep)
        closedir (c->sweep);
    close (c->dir);
    free (c);
}
