/* stage: moves the files of jobs: URLs to files below a job's directory before it starts
 * (stage-in), and files below it to URLs after it ended (stage-out); by libcurl in the daemon's
 * loop.
 *
 * A *batch* is all that goes one way for one job. The caller begins it, is told once what came of
 * the whole, and forgets it when the job is over. Nothing here is lost by a kill -9: what has
 * arrived lies in NAME.part beside its target, what is known of the source in `state_dir`; a caller
 * that calls stage_begin again with the same key, directory and files goes on where it was. A file
 * gets its name only when it is whole, on disk and of the right checksum.
 *
 * Sources that changed are never glued: https goes on only under If-Range (strong ETag, else
 * Last-Modified) and sftp and file only while size and time of the source are the same; otherwise
 * the file begins anew. Stage-out: sftp goes on at the size of the remote part and renames it when
 * whole; s3 goes on with the first part that is missing of a multipart upload; an https PUT begins
 * anew.
 *
 * Transient failures (no connection, a cut one, 408, 429, 5xx, no bytes for `patience`) are tried
 * again, first after `backoff_first`, each time twice as late up to `backoff_max`, with jitter;
 * tries that got something through do not count towards `tries_max`. Permanent ones (401, 403, 404,
 * refused host, unknown host key, wrong size, full disk) fail at once; a wrong checksum after one
 * more whole transfer. Texts are one sentence, and never hold a query, a user, or a credential.
 *
 * One loop, one thread for the network; hashing what is there, copying and fsync of a file are done
 * by a thread of their own, which only sees that file. Limits: STAGE_FILES_MAX, STAGE_BATCHES_MAX. */
#ifndef NUI_LOCAL_STAGE_STAGE_H
#define NUI_LOCAL_STAGE_STAGE_H

#include <event2/event.h>
#include <stdbool.h>
#include <sys/types.h>

#include "proto/base/err.h"
#include "proto/base/log.h"
#include "proto/base/quantity.h"
#include "proto/job/stagespec.h"

enum {
    STAGE_FILES_MAX = 10000, /* of one batch */
    STAGE_BATCHES_MAX = 100000,
    STAGE_KEY_MAX = 112,
    STAGE_TEXT_MAX = ERR_TEXT_MAX,
};

/* What nui-local.cfg says. Strings may go once the call that takes it has returned. 0 and NULL are
 * the values in brackets. */
struct stage_config {
    const char *state_dir;   /* made 0700 where it is not */
    const char *const *root; /* STAGEROOT: file:// only below one of these [none: no file://] */
    uint32_t root_count;
    const char *const *host; /* STAGEHOSTS: see hosts.h [none: every host with a public address] */
    uint32_t host_count;
    const char *credentials; /* STAGECREDENTIALS: a file, see credentials.h [none] */
    const char *known_hosts; /* STAGEKNOWNHOSTS: OpenSSH's format [none: no sftp] */
    const char *ca;          /* STAGECA: PEM file that servers are checked by [the system's] */
    uint32_t transfers_max;  /* STAGEMAX: at one time [8] */
    uint32_t host_max;       /* STAGEHOSTMAX: at one time with one host [4] */
    int64_t file_max;        /* STAGEFILEMAX: bytes [no limit but the disk] */
    int64_t keep_free; /* STAGEKEEPFREE: bytes that stay free on the target's file system [0] */
    int64_t s3_part; /* STAGES3PART: bytes of one part of an upload to s3, larger files go in parts
                        [64 MB; 5 MB is s3's least] */
    int64_t bandwidth;    /* STAGEBANDWIDTH: bytes/s where nothing has been measured [10 MB/s] */
    uint32_t tries_max;   /* STAGETRIES [8] */
    duration_us patience; /* STAGETIMEOUT: a connection without a byte for so long is cut [1:00] */
    int64_t rate_min; /* STAGERATEMIN: bytes/s; less than that on average over `patience`: it has
                         failed [1024] */
    duration_us time_max; /* STAGETIMEMAX: a file that is not there so long after it began has
                             failed [24:00:00] */
    duration_us backoff_first, backoff_max; /* [2 s, 5:00] */
};

struct stage;

/* NULL with err: a bad list of hosts or roots, a credentials file that others can read, no
 * libcurl. */
struct stage *stage_create (struct event_base *base, struct log *log,
                            const struct stage_config *config, struct err *err);
/* No callback comes any more; what was under way can be begun again by the next process. */
void stage_destroy (struct stage *stage); /* NULL is a no-op */
/* For what begins from now on; state_dir stays. On failure nothing has changed. */
int stage_reconfigure (struct stage *stage, const struct stage_config *config, struct err *err);

enum stage_direction { STAGE_IN, STAGE_OUT };

/* What was sent beside jobs (nui:///SHA-256) lies elsewhere: whose that is says where, and brings it. `origin` is the
 * batch's, `done` is called once, never from inside, unless it was dropped; why: NULL, it is here; ERR_UNAVAILABLE: it may
 * be there another time. */
struct stage_bringing;
struct stage_sent {
    void *self;
    /* To be read, as it is; ERR_NOT_FOUND: it is to be brought. */
    int (*open) (void *self, const char *account, const uint8_t sha256[STAGE_SHA256_LEN],
                 int *fd_out, struct err *err);
    struct stage_bringing *(*bring) (void *self, const char *origin, const char *account,
                                     const uint8_t sha256[STAGE_SHA256_LEN], int64_t bytes,
                                     void (*done) (void *arg, const struct err *why), void *arg,
                                     struct err *err);
    void (*drop) (struct stage_bringing *bringing);
};
void stage_sent_set (struct stage *stage, const struct stage_sent *sent); /* copied */

struct stage_file {
    const char *url;
    const char *path;     /* below the batch's directory; folders on the way are made (STAGE_IN) */
    const char *checksum; /* "sha256:HEX"; NULL or "": none. STAGE_OUT: what the file must have */
    int64_t size;         /* bytes, when the user said so: another size is an error; -1: not said */
    bool executable;
};

struct stage_batch {
    const char *key; /* "alpha.17.in": its folder in state_dir; no '/', below STAGE_KEY_MAX bytes */
    enum stage_direction direction;
    int dir; /* the job's directory, open; dup'ed */
    /* files are made, and read, as this account of the system with its groups */
    const char *account;
    const char *user;   /* grid identity, for credentials of one user; NULL: only the site's own */
    const char *origin; /* of what was sent beside the job: for stage_sent; NULL: it is here */
    int64_t priority;   /* the higher first, then the older `since`, then the key */
    time_us since;
    const struct stage_file *file; /* all is copied */
    uint32_t file_count;
};

/* What of a batch can be said before it is begun, so that a job is refused at once: syntax, roots,
 * hosts by name, sftp without known hosts, an s3 bucket without endpoint, limits. No I/O; account
 * and dir are not looked at. */
int stage_check (const struct stage *stage, const struct stage_batch *batch, struct err *err);

struct stage_result {
    int code; /* 0, or an err_code: ERR_UNAVAILABLE after the last try, ERR_NOT_FOUND, ERR_DENIED,
                 ERR_CONFLICT (checksum, size), ERR_LIMIT (disk, size limit), ERR_IO … */
    const char *text; /* a sentence for the user when code is not 0; until the callback returns */
    uint32_t file;    /* the first that failed */
    uint32_t failed;  /* how many did (STAGE_IN stops at the first) */
    int64_t bytes;    /* moved by this process */
};

/* Once for each batch that was begun, from the loop, never from inside a call; not after
 * stage_cancel. The batch stays, for stage_progress, until it is forgotten. */
typedef void (*stage_done_fn) (void *arg, const char *key, const struct stage_result *result);

/* ERR_EXISTS: the key is there (what failed is begun again after stage_forget or stage_cancel). */
int stage_begin (struct stage *stage, const struct stage_batch *batch, stage_done_fn fn, void *arg,
                 struct err *err);
/* Ends what is under way and leaves parts and state for a later stage_begin. Unknown keys are a
 * no-op. */
void stage_cancel (struct stage *stage, const char *key);
/* Ends it, and removes its state; parts in the job's directory go with the directory. Also of
 * batches that this process does not know, and with no files left. An unfinished upload to s3 is
 * given up there (in the background). */
void stage_forget (struct stage *stage, const char *key);
void stage_priority_set (struct stage *stage, const char *key, int64_t priority);

/* --- progress ----------------------------------------------------------------------------- */

struct stage_progress {
    enum stage_direction direction;
    bool done; /* the callback has been or is being called */
    uint32_t files, files_done, files_active;
    int64_t bytes_done;  /* in place or in parts; of what was there before, too */
    int64_t bytes_total; /* -1: of some file it is not known yet */
    int64_t rate;        /* bytes/s over the last seconds, 0: nothing moves */
    duration_us left;    /* what stage_estimate would say of the rest now; -1: not known */
};

enum stage_file_state {
    STAGE_WAITING, /* for its turn */
    STAGE_RUNNING,
    STAGE_BACKOFF,  /* for its next try, see text and next */
    STAGE_CHECKING, /* hashed or written to disk */
    STAGE_DONE,
    STAGE_FAILED,
};

struct stage_file_progress {
    enum stage_file_state state;
    const char *url; /* fit to be shown; texts are valid until the loop runs again */
    const char *path;
    int64_t bytes_done, bytes_total, rate; /* as above */
    uint32_t tries;
    time_us next;     /* of STAGE_BACKOFF */
    const char *text; /* the last failure; "": none */
};

/* ERR_NOT_FOUND. The first is O(files that wait in all batches), for `left`; the other O(1). */
int stage_progress (const struct stage *stage, const char *key, struct stage_progress *out,
                    struct err *err);
int stage_file_progress (const struct stage *stage, const char *key, uint32_t file,
                         struct stage_file_progress *out, struct err *err);
const char *stage_file_state_name (enum stage_file_state state); /* "Waiting" … */

/* --- estimates ---------------------------------------------------------------------------- */

struct stage_estimate {
    duration_us time; /* until all of it would have been moved, if it was begun now */
    int64_t bytes;    /* of the files of known size */
    /* files whose size could not be learnt; they count as STAGE_SIZE_GUESS each */
    uint32_t unknown;
    uint32_t missing; /* of these: the source says that there is no such file, or refuses it */
    char text[STAGE_TEXT_MAX]; /* about the first of those; "" */
};
enum { STAGE_SIZE_GUESS = 1 << 30 };

typedef void (*stage_estimate_fn) (void *arg, const struct stage_estimate *estimate);

/* By the bandwidth measured with each host (per direction), after what goes before it with that
 * host (by priority and age) or is under way, of other keys; hosts side by side. Sizes that the
 * batch does not say are asked of the sources (by their first byte), for at most `limit`, and kept
 * for 10 minutes. fn is called once, from the loop, never from inside a call. STAGE_OUT needs sizes
 * in the batch. dir and account: as in stage_begin, but dir may be -1. */
int stage_estimate (struct stage *stage, const struct stage_batch *batch, duration_us limit,
                    stage_estimate_fn fn, void *arg, struct err *err);
/* The same at once, by the sizes that are known. O(files that wait in all batches). */
void stage_estimate_now (struct stage *stage, const struct stage_batch *batch,
                         struct stage_estimate *out);

/* The bandwidth of one pair, this site and a host, kept in state_dir/bandwidth and there again
 * after a restart. Bytes and seconds in which something moved, both decaying with a minute of such
 * seconds, and one second of the configured bandwidth beside them. host: as in a URL; s3: the
 * endpoint's; file: "". */
int64_t stage_bandwidth (const struct stage *stage, const char *host,
                         enum stage_direction direction);

#endif
