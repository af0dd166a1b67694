/* staging_i: what staging's files share. */
#ifndef NUI_LOCAL_SVC_STAGING_I_H
#define NUI_LOCAL_SVC_STAGING_I_H

#include "local/svc/files/staging.h"

enum { STAGING_KEY_BYTES = 16, STAGING_KEY_MAX = 2 * STAGING_KEY_BYTES + 1 };

enum coming { COMING_MOVES, COMING_HERE, COMING_FAILED };

/* The files of one component, wanted by some jobs of this site or, for a while, by none. */
struct staging_in {
    struct svc *svc;
    char key[STAGING_KEY_MAX];
    enum coming state;
    struct site_job *users; /* by stage_next */
    time_us expected;
    int64_t bytes;             /* that had come … */
    time_us moved_at;          /* … when some came last */
    char text[STAGE_TEXT_MAX]; /* why it failed */
    struct event *unused;
    struct event *failing; /* it could not even begin */
    UT_hash_handle hh;
};

struct staging {
    struct stage *mover;
    struct staging_in *ins; /* hash by key */
    struct removal *removals;
    struct asking *askings;
    int dir; /* JOBDIR/.stage */
};

/* --- staging_dir.c: the mover, and the directories in JOBDIR/.stage ------------------------- */

/* That of one component, of its account; *fd_out is the caller's. */
int staging_dir_make (struct svc *svc, const char *key, const char *account, int *fd_out,
                      struct err *err);
void staging_dir_remove (struct svc *svc, const char *key); /* in the background */
void staging_removals_drop (struct svc *svc);

/* --- staging_ask.c: batches, questions, what is told ----------------------------------------- */

void staging_key (const struct jobspec *spec, char out[STAGING_KEY_MAX]);
struct staging_in *staging_find (const struct svc *svc,
                                 const char *key); /* NULL: nobody wanted them */
/* By what the mover knows of one that moves. */
duration_us staging_left (const struct staging_in *in);
void staging_askings_drop (struct svc *svc); /* each is told that there is no answer */

#endif
