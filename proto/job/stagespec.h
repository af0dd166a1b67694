/* stagespec: what a job says of a file to be staged: a URL, a place below the job's directory, a
 * checksum. Pure; the client checks with it before it signs, the site before it takes the job.
 *
 *     https://data.example.org/run7/grid.h5   also http; a query is allowed (signed URLs)
 *     sftp://alice@dtn.example.org:2222/a/b    an absolute path; /~/ is the home directory
 *     s3://bucket/key                          the endpoint is the site's, by bucket
 *     file:///projects/run7/grid.h5            on the site's own file systems
 *     nui:///SHA-256                           sent beside the job by its user (64 hexadecimal digits, small letters)
 *
 * A password in a URL is refused: a job's text is read by many. */
#ifndef NUI_JOB_STAGESPEC_H
#define NUI_JOB_STAGESPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

enum stage_scheme { STAGE_FILE, STAGE_HTTP, STAGE_HTTPS, STAGE_SFTP, STAGE_S3, STAGE_SENT };

enum {
    STAGE_URL_MAX = 4096, /* bytes with the NUL, as everywhere here */
    STAGE_PATH_MAX = 1024,
    STAGE_HOST_MAX = 256,
    STAGE_USER_MAX = 64,
    STAGE_SHA256_LEN = 32,
};

struct stage_url {
    enum stage_scheme scheme;
    char user[STAGE_USER_MAX]; /* "": none */
    char host[STAGE_HOST_MAX]; /* in lower case, an IPv6 address without brackets; s3: the bucket;
                                  file: "" */
    uint16_t port;             /* the scheme's own where none is said; 0: s3, file */
    const char *path; /* in the text that was given, from its '/': with the query; never "" */
};

/* ERR_INVALID: unknown scheme, no host, no path, a password, a fragment, blanks or control
 * characters,
 * %-escapes that are none, a ".." in the path of file, sftp or s3. */
int stage_url_parse (const char *text, struct stage_url *out, struct err *err);
const char *stage_scheme_name (enum stage_scheme scheme);
/* Of a content, 32 bytes, the URL; and back: false where the URL is none of these. */
enum { STAGE_SENT_URL_MAX = 7 + 2 * STAGE_SHA256_LEN + 1 };
char *stage_sent_url (const uint8_t sha256[STAGE_SHA256_LEN], char out[STAGE_SENT_URL_MAX]);
bool stage_sent_parse (const char *url, uint8_t sha256_out[STAGE_SHA256_LEN]);
/* The URL as it may be shown to anybody: without user and query. */
const char *stage_url_show (const char *url, char *buf, size_t cap);
/* A relative path of plain names ("in/grid.h5"): no "..", ".", "//", control characters, no name
 * that ends in ".part" or begins with ".nui". */
int stage_path_check (const char *path, struct err *err);
/* A relative path of plain names, whatever they are: no "..", ".", "//", no control characters. */
int stage_names_check (const char *path, struct err *err);
/* "sha256:" and 64 hexadecimal digits. */
int stage_checksum_parse (const char *text, uint8_t sha256_out[STAGE_SHA256_LEN], struct err *err);
/* The text with the index of an array's job for each "{index}"; the caller's to free. */
char *stage_index_put (const char *text, uint32_t index);

#endif
