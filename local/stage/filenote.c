/* filenote: reads and writes the few lines of a note, whole or not at all. Runs and batches call
 * it. A note is only believed for the same URL and since the same start of the machine; a URL,
 * which may be signed, is kept as its hash. */
#include "local/stage/filenote.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/hash/sha256.h"

enum { FILE_MAX = 4 << 20, HEX_LEN = 64 };

/* "SHA256 of the URL BOOT": what it must begin with. The URL itself may be signed. */
static void head_make (const char *url, char out[160])
{
    uint8_t sum[SHA256_BYTES];
    char boot[64] = "";
    int fd = open ("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read (fd, boot, sizeof boot - 1) : 0;
    if (fd >= 0)
        close (fd);
    boot[n > 0 ? n : 0] = 0;
    boot[strcspn (boot, "\n")] = 0;
    sha256 (url, strlen (url), sum);
    for (int i = 0; i < HEX_LEN / 2; i++)
        snprintf (out + 2 * i, 3, "%02x", sum[i]);
    snprintf (out + HEX_LEN, 96, " %s\n", boot);
}

void filenote_free (struct filenote *m)
{
    strbuf_free (&m->parts);
}

void filenote_clear (struct filenote *m)
{
    filenote_free (m);
    *m = FILENOTE_NEW;
}

static char *file_text (int dir, const char *name)
{
    int fd = openat (dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct strbuf b = STRBUF_INIT;
    char block[4096];
    ssize_t n = 0;
    while (fd >= 0 && b.len < FILE_MAX && (n = read (fd, block, sizeof block)) > 0)
        strbuf_append (&b, block, (size_t)n);
    if (fd >= 0)
        close (fd);
    return strbuf_text (&b);
}

static void line_take (struct filenote *m, char *line)
{
    char *value = strchr (line, '=');
    if (!value)
        return;
    *value++ = 0;
    if (strcmp (line, "etag") == 0)
        snprintf (m->etag, sizeof m->etag, "%s", value);
    else if (strcmp (line, "modified") == 0)
        snprintf (m->modified, sizeof m->modified, "%s", value);
    else if (strcmp (line, "size") == 0)
        m->size = strtoll (value, NULL, 10);
    else if (strcmp (line, "inode") == 0)
        m->whole_inode = strtoull (value, NULL, 10);
    else if (strcmp (line, "whole") == 0)
        m->whole_size = strtoll (value, NULL, 10);
    else if (strcmp (line, "upload") == 0)
        snprintf (m->upload, sizeof m->upload, "%s", value);
    else if (strcmp (line, "partsize") == 0)
        m->part_size = strtoll (value, NULL, 10);
    else if (strcmp (line, "url") == 0)
        snprintf (m->bucket_url, sizeof m->bucket_url, "%s", value);
    else if (strcmp (line, "user") == 0)
        snprintf (m->user, sizeof m->user, "%s", value);
    else if (strcmp (line, "part") == 0)
        strbuf_printf (&m->parts, "%s\n", value);
}

void filenote_read (int dir, const char *name, const char *url, struct filenote *out)
{
    char head[160], *save = NULL;
    *out = FILENOTE_NEW;
    char *text = file_text (dir, name);
    head_make (url ? url : "", head);
    size_t len = strlen (head), skip = url ? 0 : HEX_LEN, all = strlen (text);
    /* The last line says that it is whole. */
    if (all > len && strncmp (text + skip, head + skip, len - skip) == 0 && all >= len + 4 &&
        strcmp (text + all - 4, "end\n") == 0)
        for (char *line = strtok_r (text + len, "\n", &save); line;
             line = strtok_r (NULL, "\n", &save))
            line_take (out, line);
    free (text);
}

int filenote_write (int dir, const char *name, const char *url, const struct filenote *m,
                    struct err *err)
{
    char head[160], beside[64];
    struct strbuf b = STRBUF_INIT;
    head_make (url, head);
    strbuf_printf (&b,
                   "%setag=%s\nmodified=%s\nsize=%lld\ninode=%llu\nwhole=%lld\nupload=%s\n"
                   "partsize=%lld\nurl=%s\nuser=%s\n",
                   head, m->etag, m->modified, (long long)m->size,
                   (unsigned long long)m->whole_inode, (long long)m->whole_size, m->upload,
                   (long long)m->part_size, m->bucket_url, m->user);
    for (const char *part = m->parts.data; part && *part; part = strchr (part, '\n') + 1)
        strbuf_printf (&b, "part=%.*s\n", (int)strcspn (part, "\n"), part);
    strbuf_puts (&b, "end\n");
    snprintf (beside, sizeof beside, "%.50s.new", name);
    int fd = openat (dir, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool written = fd >= 0 && write (fd, b.data, b.len) == (ssize_t)b.len;
    if (fd >= 0)
        written &= close (fd) == 0;
    strbuf_free (&b);
    if (written && renameat (dir, beside, dir, name) == 0)
        return 0;
    return err_set (err, errno == ENOSPC ? ERR_LIMIT : ERR_IO, "the state of a staged file: %s",
                    strerror (errno));
}
