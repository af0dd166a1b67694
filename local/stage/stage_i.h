/* What the engine's files share. */
#ifndef NUI_LOCAL_STAGE_STAGE_I_H
#define NUI_LOCAL_STAGE_STAGE_I_H

#include <uthash.h>

#include "local/stage/bandwidth.h"
#include "local/stage/disk.h"
#include "local/stage/filenote.h"
#include "local/stage/userfile.h"
#include "local/stage/request.h"
#include "local/stage/rules.h"
#include "local/stage/stage.h"
#include "proto/base/rng.h"

struct batch;
struct run;

/* One file of a batch. */
struct transfer {
    struct batch *batch;
    uint32_t index;
    char *url, *path, *shown;
    bool sum_given, executable;
    uint8_t sum[STAGE_SHA256_LEN];
    int64_t size_said;
    char host[STAGE_HOST_MAX]; /* of the wire */
    enum stage_file_state state;
    uint32_t tries;      /* without anything new since */
    bool sum_failed;     /* once; the next time is the last */
    int64_t total, done; /* -1: unknown */
    int64_t best;        /* the most that ever was done */
    int64_t seen, rate;  /* done at the last tick; bytes/s */
    duration_us begun;   /* monotonic: its first try; 0: none yet */
    int64_t begun_done;  /* what was there then */
    time_us next;
    char *text;          /* NULL: no failure */
    struct event *timer; /* of BACKOFF */
    struct run *run;     /* of RUNNING and CHECKING */
};

struct batch {
    struct stage *stage;
    char key[STAGE_KEY_MAX];
    enum stage_direction direction;
    int dir, memo_dir;
    struct userfile_account account;
    char *user, *owner, *origin;
    int64_t priority;
    time_us since;
    struct transfer *file;
    uint32_t count, ended, failed, first_failed;
    uint32_t next; /* none before it waits */
    int code;
    int64_t moved;
    bool done, told;
    stage_done_fn fn;
    void *arg;
    struct batch *prev,
        *after; /* of stage.open, in their order, until done; then of stage.over until told */
    UT_hash_handle hh;
};

/* A file under way: all that is open for it. */
struct run {
    struct transfer *transfer;
    struct stage *stage;
    struct rules *rules;
    struct wire wire;
    struct pair *pair;
    struct filenote memo;
    char memo_name[16];
    struct userfile place; /* stage-in, and stage-out to file: */
    int from;              /* stage-out, and stage-in from file: */
    struct stat from_stat;
    EVP_MD_CTX *hash;
    struct disk *disk;
    int64_t disk_seen; /* what of the thread's work run_moved knows */
    bool disk_counts;  /* it moves bytes of the file */
    disk_fn disk_fn;
    struct stage_bringing *bringing; /* sent.c */
    struct request request;
    int64_t offset;     /* where this request begins */
    unsigned hops;      /* redirects followed */
    duration_us window; /* monotonic: STAGERATEMIN is looked at from here on; 0: nothing came yet */
    int64_t window_done;
    bool head_seen;               /* the answer's head has been looked at */
    bool swallow;                 /* its body is none of the file */
    bool anew;                    /* from the start, at once */
    unsigned fresh;               /* how often that was */
    struct strbuf answer;         /* s3's words about an upload in parts */
    int64_t part_begin, part_end; /* of the file that is sent, what goes now */
    struct curl_slist *after;     /* sftp: its rename at the end */
    struct run *prev, *next;      /* of stage.runs */
};

struct stage {
    struct event_base *base;
    struct log *log;
    struct curl_loop *loop;
    struct rules *rules;
    struct stage_sent sent; /* open NULL: there is none */
    int state_dir;
    struct batch *batches; /* by key */
    struct batch *open, *over;
    struct run *runs;
    uint32_t active;
    struct event *turn;    /* something may begin */
    struct event *deliver; /* something is to be told */
    struct event *tick;    /* rates; while anything is active */
    duration_us tick_at, saved_at;
    struct bandwidth bandwidth;
    struct rng rng;
    struct known_size *known;
    struct estimate *estimates;
    struct farewell *farewells;
};

/* --- stage.c ------------------------------------------------------------------------------- */

/* The file is done, has failed, or is to be tried again; its run is over. */
enum transfer_end { TRANSFER_DONE, TRANSFER_FAILED, TRANSFER_TRANSIENT, TRANSFER_NO_HOST };
void stage_transfer_ended (struct transfer *t, enum transfer_end end, const struct err *why,
                           duration_us not_before);
/* At a tick. True: it was too slow, or took too long; it has failed and is gone. */
bool run_over_bounds (struct run *run, duration_us now);
/* Who goes first: negative when a does. */
int stage_batch_order (const struct batch *a, const struct batch *b);
struct batch *stage_batch_find (const struct stage *stage, const char *key);

/* --- run.c: what all transfers share -------------------------------------------------------- */

/* What it comes to is told through stage_transfer_ended, also at once. */
void run_begin (struct transfer *t);
void run_drop (struct run *run); /* nothing is told; NULL is a no-op */
void run_end (struct run *run, enum transfer_end end, const struct err *why);
void run_fail (struct run *run, const struct err *why);
/* Of what libcurl says; takes what is neither done nor redirected to its end. True: done; a
 * redirect has been followed with `again` when it returns false, too. */
bool run_answered (struct run *run, CURLcode code, void (*again) (struct run *run));
/* A request to the run's wire; its callback gets the run. False: the run is over. */
bool run_request (struct run *run, const struct wire *wire, request_fn fn);
bool run_go (struct run *run);
void run_moved (struct run *run, int64_t bytes);
/* Is there room, and is the size right and allowed? */
int run_size_check (struct run *run, int64_t total, struct err *err);
int run_memo_write (struct run *run, struct err *err);
/* The checksum of all that went through run->hash is right, or none was given. */
bool run_sum_fits (struct run *run);
/* A thread's work, of the run; fn gets the run, once it went well. counts: it moves bytes of the
 * file. */
void run_disk (struct run *run, const struct disk_order *order, bool counts, disk_fn fn);
void run_disk_look (struct run *run); /* how far it is */
/* What of the file is there is hashed, when there is a checksum; then `then` gets the run. */
void run_hash_upto (struct run *run, int fd, int64_t end, disk_fn then);

/* --- download.c, upload.c, copy.c ------------------------------------------------------------ */

void download_begin (struct run *run);
void upload_begin (struct run *run);
void copy_begin (struct run *run); /* file:, both ways */
/* The same once run->from and run->place are open; what there is of the same version is gone on with. */
void copy_from (struct run *run, const char *version);
void sent_begin (struct run *run); /* nui:, sent.c */

/* The part is whole and hashed: to disk, into place; the run ends. run.c */
void run_finish (struct run *run);
/* Is it in place already, or only without its name? Then the run ends. */
bool run_was_whole (struct run *run);

/* upload_s3.c: an upload in parts; after the last the run ends. */
void upload_s3_begin (struct run *run);
/* An upload in parts that nobody will go on with. */
void upload_s3_abandon (struct stage *stage, const struct filenote *memo);
void upload_s3_farewells_drop (struct stage *stage);

/* --- estimate.c ------------------------------------------------------------------------------ */

void estimate_close (struct stage *stage);
/* Size of a source as far as it is known; -1. */
int64_t estimate_known (const struct stage *stage, const char *url);
/* Until the batch is through. */
duration_us estimate_left (const struct batch *batch);
void estimate_learn (struct stage *stage, const char *url, int64_t size);

#endif
