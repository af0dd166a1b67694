/* contents: what users' files hold that travel with their jobs, kept by SHA-256 until no job needs them any more.
 *
 *     DIR/OWNER/SHA256             whole, on disk, and right
 *     DIR/OWNER/SHA256.BYTES.part  on its way; counts as BYTES
 *
 * Each owner (a text: an identity, an account) has a folder, a share, and nothing of anybody else's: who knows the
 * SHA-256 of another's file has nothing by it. Parts come by offset and in order, survive a kill -9, and go on where they
 * were once what is there has been read again, some of it with each call. A content is whole only if its SHA-256 is the
 * one that was said; else nothing of it stays.
 *
 * Blocking, and short: a call writes or reads CONTENTS_STEP bytes at most; only the last one of a content waits for the
 * disk. Limits: CONTENTS_OF_ONE of an owner, CONTENTS_OPEN parts open at a time (others are read again when they go on). */
#ifndef NUI_CONTENT_CONTENTS_H
#define NUI_CONTENT_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"
#include "proto/hash/sha256.h"

enum {
    CONTENTS_PIECE_MAX = 1 << 20, /* of one call; 1 MiB */
    CONTENTS_STEP = 4 << 20,
    CONTENTS_OF_ONE = 10000,
    CONTENTS_OPEN = 32,
};

struct contents_limits {
    int64_t file_max; /* bytes of a content; 0: none is taken */
    int64_t share;    /* bytes of an owner */
    duration_us keep; /* what no job needs goes when it has not been asked for so long */
};

struct contents;

/* DIR is made 0700 where it is not. NULL with err. */
struct contents *contents_open (const char *dir, const struct contents_limits *limits,
                                struct err *err);
void contents_close (struct contents *contents); /* NULL is a no-op */
void contents_limits_set (struct contents *contents, const struct contents_limits *limits);

struct contents_state {
    int64_t bytes; /* there, from the start */
    bool whole;
    bool checking; /* a part from before is being read: ask again */
};

/* Some of it, or none: a question. What does not begin at the part's end is passed over, so that a repetition does no
 * harm. ERR_LIMIT: larger than file_max, beyond the share, a full disk; ERR_CONFLICT: the whole has another SHA-256;
 * ERR_INVALID, ERR_IO. */
int contents_put (struct contents *contents, const char *owner, const uint8_t sha256[SHA256_BYTES],
                  int64_t bytes, int64_t offset, const void *data, size_t len,
                  struct contents_state *state, struct err *err);
/* To be read; ERR_NOT_FOUND: it is not there as a whole. It counts as asked for. */
int contents_read (struct contents *contents, const char *owner, const uint8_t sha256[SHA256_BYTES],
                   int *fd_out, int64_t *bytes_out, struct err *err);
/* A job needs it: it stays until it was dropped as often. Not durable: said again of each live job. */
void contents_hold (struct contents *contents, const char *owner,
                    const uint8_t sha256[SHA256_BYTES]);
void contents_drop (struct contents *contents, const char *owner,
                    const uint8_t sha256[SHA256_BYTES]);
/* One owner's folder, the next with each call: what is not needed and has not been asked for is removed. To be called
 * from time to time. */
void contents_sweep (struct contents *contents, time_us now);

#endif
