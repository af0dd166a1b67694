/* linereader: zlib's reader and a buffer that grows to the longest line. Readers of traces and
 * workloads call it. The file is the user's: nothing in it is believed, and a line beyond the
 * bound is an error with its number. */
#include "local/trace/linereader.h"
#include "proto/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

struct linereader {
    gzFile file;
    char *path;
    uint64_t number;
    char *data; /* what was read; [begin, end) is not given out yet */
    size_t begin, end, cap;
    bool at_end;
};

struct linereader *linereader_open (const char *path, struct err *err)
{
    errno = 0;
    gzFile file = gzopen (path, "rbe");
    if (!file) {
        if (errno == ENOENT)
            err_set (err, ERR_NOT_FOUND, "%s: there is no such file", path);
        else
            err_set (err, ERR_IO, "%s: %s", path, errno ? strerror (errno) : "cannot be opened");
        return NULL;
    }
    gzbuffer (file, 256 * 1024);
    struct linereader *r = mem_zero (1, sizeof *r);
    r->file = file;
    r->path = strdup (path);
    r->cap = 256 * 1024;
    r->data = malloc (r->cap + 1);
    assert (r->path && r->data);
    return r;
}

void linereader_close (struct linereader *r)
{
    if (!r)
        return;
    gzclose_r (r->file);
    free (r->path);
    free (r->data);
    free (r);
}

static int fill (struct linereader *r, struct err *err)
{
    if (r->begin > 0) {
        memmove (r->data, r->data + r->begin, r->end - r->begin);
        r->end -= r->begin;
        r->begin = 0;
    }
    if (r->end == r->cap) {
        if (r->cap >= LINEREADER_LINE_MAX)
            return err_set (err, ERR_INVALID, "%s line %llu: longer than %d bytes", r->path,
                            (unsigned long long)r->number + 1, LINEREADER_LINE_MAX);
        r->cap *= 2;
        r->data = mem_resize (r->data, r->cap + 1);
    }
    int got = gzread (r->file, r->data + r->end, (unsigned)(r->cap - r->end));
    int code;
    const char *text = gzerror (r->file, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
        const char *why = code == Z_BUF_ERROR ? "the gzip data ends too early"
                          : code == Z_ERRNO   ? strerror (errno)
                                              : text;
        return err_set (err, code == Z_ERRNO ? ERR_IO : ERR_INVALID, "%s: %s", r->path, why);
    }
    r->end += (size_t)got;
    r->at_end = got == 0;
    return 0;
}

int linereader_next (struct linereader *r, char **line_out, struct err *err)
{
    size_t looked = 0;
    for (;;) {
        char *begin = r->data + r->begin;
        char *newline = memchr (begin + looked, '\n', r->end - r->begin - looked);
        if (newline || (r->at_end && r->end > r->begin)) {
            char *stop = newline ? newline : r->data + r->end;
            r->begin = (size_t)(stop - r->data) + (newline ? 1 : 0);
            if (stop > begin && stop[-1] == '\r')
                stop--;
            *stop = 0;
            r->number++;
            *line_out = begin;
            return 0;
        }
        if (r->at_end) {
            *line_out = NULL;
            return 0;
        }
        looked = r->end - r->begin;
        int rc = fill (r, err);
        if (rc)
            return rc;
    }
}

uint64_t linereader_number (const struct linereader *r)
{
    return r->number;
}

const char *linereader_path (const struct linereader *r)
{
    return r->path;
}
