/* anchor: reads and writes the lines that others keep of the bank's blocks. anchor_open checks
 * the bank's signature before a block counts. nui audit and a site's nui-local
 * (local/link/anchors.c) call it. A written line is synced, and no complete line of a file is
 * ever changed. */
#include "proto/audit/anchor.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/rpc/envelope.h"

enum { LINE_MAX_BYTES = 64 << 10 };

int anchor_open (struct tlsid *id, const Nui__Bank__V1__Block *message, struct block *out,
                 struct err *err)
{
    struct principal signer;
    struct err why = {0};
    if (!message->envelope ||
        block_decode (message->envelope->body.data, message->envelope->body.len, out, &why) < 0)
        return err_set (err, ERR_CONFLICT, "the bank sent no block: %s", why.text);
    if (envelope_verify_for (id, BLOCK_DOMAIN, message->envelope, out->recorded_at, &signer, &why) <
        0)
        return err_set (err, ERR_CONFLICT, "block %lld: %.200s", (long long)out->number, why.text);
    if (signer.kind != PRINCIPAL_BANK)
        return err_set (err, ERR_CONFLICT, "block %lld is signed by a %s, not by the bank",
                        (long long)out->number, principal_kind_name (signer.kind));
    return 0;
}

struct anchor anchor_of (const struct block *block)
{
    struct anchor anchor = {.number = block->number};
    struct merkle_hash link = block_link (block);
    merkle_text (&link, anchor.link);
    return anchor;
}

/* Malloc'ed; *len_out without the terminator. */
static char *line_of (const Nui__Bank__V1__Block *message, const struct block *block,
                      size_t *len_out)
{
    struct anchor anchor = anchor_of (block);
    size_t len = nui__bank__v1__block__get_packed_size (message), room = len / 3 * 4 + 160;
    uint8_t *bytes = malloc (len + 1);
    char *line = malloc (room);
    if (!bytes || !line)
        abort ();
    nui__bank__v1__block__pack (message, bytes);
    size_t at = (size_t)snprintf (line, room, "nui-anchor-v1 %lld %s ", (long long)anchor.number,
                                  anchor.link);
    at += (size_t)EVP_EncodeBlock ((unsigned char *)line + at, bytes, (int)len);
    line[at++] = '\n';
    free (bytes);
    *len_out = at;
    return line;
}

/* A last line that the machine stopped in is taken away. */
static bool end_clean (int fd)
{
    char tail[LINE_MAX_BYTES];
    off_t end = lseek (fd, 0, SEEK_END), from = end > LINE_MAX_BYTES ? end - LINE_MAX_BYTES : 0;
    ssize_t n = end < 0 ? -1 : pread (fd, tail, (size_t)(end - from), from);
    if (n != end - from)
        return false;
    const char *newline = memrchr (tail, '\n', (size_t)n);
    off_t clean = newline ? from + (newline - tail) + 1 : from;
    return clean == end || ftruncate (fd, clean) == 0;
}

int anchor_append (const char *path, const Nui__Bank__V1__Block *message, const struct block *block,
                   struct err *err)
{
    size_t len;
    char *line = line_of (message, block, &len);
    int fd = open (path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    bool ok = fd >= 0 && end_clean (fd) && write (fd, line, len) == (ssize_t)len && fsync (fd) == 0;
    int rc = ok ? 0 : err_set (err, ERR_IO, "cannot write %.200s: %s", path, strerror (errno));
    if (fd >= 0)
        close (fd);
    free (line);
    return rc;
}

int anchor_each (const char *path, void (*fn) (void *arg, const struct anchor *anchor), void *arg,
                 struct err *err)
{
    char *line = NULL;
    size_t cap = 0, number = 0;
    ssize_t len;
    int rc = 0;
    FILE *file = fopen (path, "re");
    if (!file)
        return err_set (err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "cannot read %.200s: %s",
                        path, strerror (errno));
    while (rc == 0 && (len = getline (&line, &cap, file)) > 0) {
        struct anchor anchor;
        long long n = 0;
        number++;
        if (line[len - 1] != '\n')
            break;
        anchor.link[0] = 0;
        bool is = sscanf (line, "nui-anchor-v1 %lld %64[0-9a-f] ", &n, anchor.link) == 2 &&
                  n >= 1 && strlen (anchor.link) == 2 * MERKLE_BYTES;
        anchor.number = n;
        if (is)
            fn (arg, &anchor);
        else
            rc = err_set (err, ERR_INVALID, "%.200s, line %zu: this is no anchor", path, number);
    }
    if (rc == 0 && ferror (file))
        rc = err_set (err, ERR_IO, "cannot read %.200s: %s", path, strerror (errno));
    free (line);
    fclose (file);
    return rc;
}
