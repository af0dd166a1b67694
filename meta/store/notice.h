/* notice: what webhooks are still to be told, in the metascheduler's store. Of one URL oldest first; one that does not
 * answer holds up its own notices only. Written in the transaction of what they tell of. */
#ifndef NUI_META_STORE_NOTICE_H
#define NUI_META_STORE_NOTICE_H

#include "meta/store/metastore.h"

enum { NOTICES_MAX = 100000 }; /* more are not written */

struct notice_row {
    uint64_t sequence;
    const char *url;
    struct uuid key;
    const char *body;
    uint32_t tries;
    time_us created;
    time_us due; /* of notice_put: not before; 0: at once */
};
enum { NOTICES_TOGETHER = 500 };

/* ERR_LIMIT: NOTICES_MAX wait. */
int notice_put (struct metastore *store, const struct notice_row *row, struct err *err);
/* The oldest that is due and whose URL is none of these: 1, 0 when there is none, or an error. Texts in the
 * arena. */
int notice_due (struct metastore *store, time_us now, const char *const *not_these, uint32_t count,
                struct arena *arena, struct notice_row *out, struct err *err);
/* That one and those of its URL that came after it, at most NOTICES_TOGETHER; in the arena. */
int notice_together (struct metastore *store, const struct notice_row *first, struct arena *arena,
                     struct notice_row **rows_out, uint32_t *count_out, struct err *err);
/* When the next is due; TIME_US_NONE: none waits. */
int notice_next (struct metastore *store, time_us *out, struct err *err);
/* It was not taken: this one counts, and all of its URL wait until then. */
int notice_later (struct metastore *store, const struct notice_row *row, time_us until,
                  struct err *err);
/* It, and those of its URL from it up to another. */
int notice_delete (struct metastore *store, const struct notice_row *row, uint64_t upto,
                   struct err *err);

#endif
