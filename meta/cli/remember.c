/* What was signed and sent, and has no answer yet. Called by submit alone.
 *
 * A file is named after the job's content, without what differs each time it is signed, and after its uuid. Whoever sends
 * it holds a lock on it: two commands that are run at one time are two jobs, and one that was killed leaves a file that
 * nobody has locked. */
#include "meta/cli/remember.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/hash/sha256.h"

enum { PATH_CAP = 4096, NAME_CAP = 2 * SHA256_BYTES + 1, FILE_MAX = 8 << 20 };

struct remembered {
    char path[PATH_CAP + 256];
    int fd; /* locked */
};

static bool directory (char out[PATH_CAP])
{
    const char *state = getenv ("XDG_STATE_HOME"), *home = getenv ("HOME");
    static const char *const below[] = {"/.local", "/state", "/nui", "/unanswered"};
    size_t first = 2;
    if (state && *state == '/' && strlen (state) < PATH_CAP - 64) {
        snprintf (out, PATH_CAP, "%s", state);
    } else if (home && *home == '/' && strlen (home) < PATH_CAP - 64) {
        snprintf (out, PATH_CAP, "%s", home);
        first = 0;
    } else {
        return false;
    }
    (void)mkdir (out, 0700); /* or it is there; opening says the rest */
    for (size_t i = first; i < sizeof below / sizeof *below; i++) {
        size_t len = strlen (out);
        snprintf (out + len, PATH_CAP - len, "%s", below[i]);
        (void)mkdir (out, 0700);
    }
    return true;
}

/* The same for each signing of the same request with the same certificate. */
static bool content_name (const Nui__Common__V1__Job *job,
                          const Nui__Common__V1__Envelope *envelope, char out[NAME_CAP])
{
    Nui__Common__V1__Envelope signer = *envelope;
    signer.body = signer.signature = (ProtobufCBinaryData){0, NULL};
    Nui__Common__V1__Job read = *job;
    uint8_t hash[SHA256_BYTES];
    read.uuid = read.array_id = (ProtobufCBinaryData){0, NULL};
    read.expires_us -= read.created_us;
    read.created_us = 0;
    if (read.cost_default)
        read.cost_max_micro = 0;
    size_t len = nui__common__v1__job__get_packed_size (&read);
    size_t more = nui__common__v1__envelope__get_packed_size (&signer);
    uint8_t *bytes = malloc (len + more + 1);
    if (!bytes)
        return false;
    nui__common__v1__job__pack (&read, bytes);
    nui__common__v1__envelope__pack (&signer, bytes + len);
    sha256 (bytes, len + more, hash);
    free (bytes);
    for (size_t i = 0; i < sizeof hash; i++)
        snprintf (out + 2 * i, 3, "%02x", hash[i]);
    return true;
}

static struct remembered *locked (const char *directory_path, const char *name, int flags)
{
    struct remembered *r = calloc (1, sizeof *r);
    struct stat at, of;
    if (!r)
        return NULL;
    snprintf (r->path, sizeof r->path, "%s/%s", directory_path, name);
    r->fd = open (r->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    /* One that is removed between the two is not the file of that name any more. */
    if (r->fd >= 0 && flock (r->fd, LOCK_EX | LOCK_NB) == 0 && fstat (r->fd, &of) == 0 &&
        stat (r->path, &at) == 0 && at.st_ino == of.st_ino && of.st_uid == geteuid ())
        return r;
    if (r->fd >= 0)
        close (r->fd);
    free (r);
    return NULL;
}

static Nui__Common__V1__Envelope *envelope_read (const struct remembered *r)
{
    struct stat st;
    Nui__Common__V1__Envelope *envelope = NULL;
    if (fstat (r->fd, &st) != 0 || st.st_size <= 0 || st.st_size > FILE_MAX)
        return NULL;
    uint8_t *bytes = malloc ((size_t)st.st_size);
    if (bytes && pread (r->fd, bytes, (size_t)st.st_size, 0) == st.st_size)
        envelope = nui__common__v1__envelope__unpack (NULL, (size_t)st.st_size, bytes);
    free (bytes);
    return envelope;
}

static bool still_valid (const Nui__Common__V1__Envelope *envelope)
{
    Nui__Common__V1__Job *job =
        nui__common__v1__job__unpack (NULL, envelope->body.len, envelope->body.data);
    bool valid = job && job->expires_us > clock_now_us ();
    if (job)
        nui__common__v1__job__free_unpacked (job, NULL);
    return valid;
}

Nui__Common__V1__Envelope *remember_find (const Nui__Common__V1__Job *job,
                                          const Nui__Common__V1__Envelope *signed_now,
                                          struct remembered **out)
{
    char at[PATH_CAP], name[NAME_CAP];
    Nui__Common__V1__Envelope *envelope = NULL;
    *out = NULL;
    if (!directory (at) || !content_name (job, signed_now, name))
        return NULL;
    DIR *dir = opendir (at);
    for (struct dirent *entry; dir && !envelope && (entry = readdir (dir));) {
        if (strncmp (entry->d_name, name, NAME_CAP - 1) != 0)
            continue;
        struct remembered *r = locked (at, entry->d_name, 0);
        if (!r) /* another command is sending it now */
            continue;
        envelope = envelope_read (r);
        if (envelope && still_valid (envelope)) {
            *out = r;
            break;
        }
        if (envelope)
            nui__common__v1__envelope__free_unpacked (envelope, NULL);
        envelope = NULL;
        remember_end (r, true); /* cut short, or of no use any more */
    }
    if (dir)
        closedir (dir);
    return envelope;
}

struct remembered *remember_begin (const Nui__Common__V1__Job *job,
                                   const Nui__Common__V1__Envelope *envelope)
{
    char at[PATH_CAP], name[NAME_CAP], file[NAME_CAP + 64];
    size_t len = nui__common__v1__envelope__get_packed_size (envelope), n;
    if (!directory (at) || !content_name (job, envelope, name))
        return NULL;
    n = (size_t)snprintf (file, sizeof file, "%s.", name);
    for (size_t i = 0; i < job->uuid.len && i < 16; i++)
        n += (size_t)snprintf (file + n, sizeof file - n, "%02x", job->uuid.data[i]);
    struct remembered *r = locked (at, file, O_CREAT);
    uint8_t *bytes = malloc (len + 1);
    bool kept = r && bytes;
    if (kept) {
        nui__common__v1__envelope__pack (envelope, bytes);
        kept = pwrite (r->fd, bytes, len, 0) == (ssize_t)len && fsync (r->fd) == 0;
    }
    free (bytes);
    if (kept)
        return r;
    remember_end (r, true);
    return NULL;
}

void remember_end (struct remembered *r, bool answered)
{
    if (!r)
        return;
    if (answered)
        (void)unlink (r->path);
    close (r->fd);
    free (r);
}
