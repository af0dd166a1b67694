/* How far a batch is. */
#include <string.h>

#include "local/stage/stage_i.h"
#include "proto/base/clock.h"

const char *stage_file_state_name (enum stage_file_state state)
{
    static const char *const names[] = {
        [STAGE_WAITING] = "Waiting",   [STAGE_RUNNING] = "Running", [STAGE_BACKOFF] = "Backoff",
        [STAGE_CHECKING] = "Checking", [STAGE_DONE] = "Done",       [STAGE_FAILED] = "Failed",
    };
    return names[state];
}

/* A thread's work counts as far as it is, between ticks too. */
static int64_t bytes_done (const struct transfer *t)
{
    const struct run *run = t->run;
    int64_t more =
        run && run->disk && run->disk_counts ? disk_done (run->disk) - run->disk_seen : 0;
    return t->done + more;
}

/* How long the rest takes if this transfer goes on as it has; 0: nothing is known of that. */
static duration_us own_left (const struct transfer *t, int64_t total, duration_us now)
{
    int64_t come = t->done - t->begun_done;
    if (!t->begun || come <= 0 || total < t->done)
        return 0;
    return (duration_us)((double)(total - t->done) * (double)(now - t->begun) / (double)come);
}

int stage_progress (const struct stage *stage, const char *key, struct stage_progress *out,
                    struct err *err)
{
    const struct batch *b = stage_batch_find (stage, key);
    if (!b)
        return err_set (err, ERR_NOT_FOUND, "no files of %s are being staged", key);
    bool unknown = false;
    duration_us now = clock_monotonic_us (), longest = 0;
    *out = (struct stage_progress){.direction = b->direction, .done = b->done, .files = b->count};
    for (uint32_t i = 0; i < b->count; i++) {
        const struct transfer *t = &b->file[i];
        out->files_done += t->state == STAGE_DONE;
        out->files_active += t->run != NULL;
        out->bytes_done += bytes_done (t);
        out->rate += t->rate;
        int64_t total = t->total >= 0 ? t->total : estimate_known (stage, t->url);
        unknown |= total < 0;
        duration_us own = t->state == STAGE_DONE ? 0 : own_left (t, total, now);
        longest = own > longest ? own : longest;
        out->bytes_total += total < 0 ? 0 : total;
    }
    out->left = b->done ? 0 : unknown ? -1 : estimate_left (b);
    if (!b->done && out->left >= 0 && longest > out->left)
        out->left = longest; /* its host may be fast with others */
    if (unknown)
        out->bytes_total = -1;
    return 0;
}

int stage_file_progress (const struct stage *stage, const char *key, uint32_t file,
                         struct stage_file_progress *out, struct err *err)
{
    const struct batch *b = stage_batch_find (stage, key);
    if (!b || file >= b->count)
        return err_set (err, ERR_NOT_FOUND, "no file %u of %s is being staged", file, key);
    const struct transfer *t = &b->file[file];
    *out = (struct stage_file_progress){
        .state = t->state,
        .url = t->shown,
        .path = t->path,
        .bytes_done = bytes_done (t),
        .bytes_total = t->total >= 0 ? t->total : estimate_known (stage, t->url),
        .rate = t->rate,
        .tries = t->tries,
        .next = t->state == STAGE_BACKOFF ? t->next : 0,
        .text = t->text ? t->text : "",
    };
    return 0;
}
