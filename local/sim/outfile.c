/* outfile: gathers files under temporary names, syncs them, and renames all at the end. Whatever
 * nui sim writes goes through here. Until everything is written, no file that was there before
 * is touched. */
#include "local/sim/outfile.h"
#include "proto/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder_of (const char *path)
{
    const char *slash = strrchr (path, '/');
    char *folder = !slash          ? strdup (".")
                   : slash == path ? strdup ("/")
                                   : strndup (path, (size_t)(slash - path));
    assert (folder);
    return folder;
}

int outfile_check (const char *path, struct err *err)
{
    struct stat st;
    char *folder = folder_of (path);
    int rc = 0;
    if (!*path)
        rc = err_set (err, ERR_INVALID, "an output file needs a name");
    else if (stat (path, &st) == 0 && !S_ISREG (st.st_mode))
        rc = err_set (err, ERR_INVALID, "%s: is not a plain file", path);
    else if (stat (folder, &st) != 0 || !S_ISDIR (st.st_mode))
        rc = err_set (err, ERR_NOT_FOUND, "%s: there is no folder %s", path, folder);
    else if (access (folder, W_OK | X_OK) != 0)
        rc = err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
    free (folder);
    return rc;
}

struct strbuf *outfiles_add (struct outfiles *files, const char *path)
{
    assert (files->count < OUTFILES_MAX);
    files->file[files->count].path = path;
    return &files->file[files->count++].text;
}

static int write_all (int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write (fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

static int temp_write (const char *path, const struct strbuf *text, char **temp_out,
                       struct err *err)
{
    size_t cap = strlen (path) + 16;
    char *temp = mem_alloc (cap);
    snprintf (temp, cap, "%s.XXXXXX", path);
    int fd = mkostemp (temp, O_CLOEXEC);
    if (fd < 0) {
        err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
        free (temp);
        return ERR_IO;
    }
    mode_t mask = umask (0);
    umask (mask);
    int rc = 0;
    if (write_all (fd, text->data, text->len) != 0 || fchmod (fd, 0666 & ~mask) != 0 ||
        fsync (fd) != 0)
        rc = err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
    if (close (fd) != 0 && !rc)
        rc = err_set (err, ERR_IO, "%s: %s", path, strerror (errno));
    if (rc) {
        unlink (temp);
        free (temp);
        return rc;
    }
    *temp_out = temp;
    return 0;
}

int outfiles_commit (struct outfiles *files, struct err *err)
{
    char *temp[OUTFILES_MAX] = {0};
    int rc = 0;
    for (unsigned i = 0; i < files->count && !rc; i++)
        rc = temp_write (files->file[i].path, &files->file[i].text, &temp[i], err);
    for (unsigned i = 0; i < files->count; i++) {
        if (!rc && rename (temp[i], files->file[i].path) != 0)
            rc = err_set (err, ERR_IO, "%s: %s", files->file[i].path, strerror (errno));
        if (rc && temp[i])
            unlink (temp[i]);
        free (temp[i]);
    }
    return rc;
}

void outfiles_free (struct outfiles *files)
{
    for (unsigned i = 0; i < files->count; i++)
        strbuf_free (&files->file[i].text);
    files->count = 0;
}
