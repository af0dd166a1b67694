/* How far a batch is. */
#include <string.h>

#include "local/stage/stage_i.h"

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

int stage_progress (const struct stage *stage, const char *key, struct stage_progress *out,
                    struct err *err)
{
    const struct batch *b = stage_batch_find (stage, key);
    if (!b)
        return err_set (err, ERR_NOT_FOUND, "no files of %s are being staged", key);
    bool unknown = false;
    *out = (struct stage_progress){.direction = b->direction, .done = b->done, .files = b->count};
    for (uint32_t i = 0; i < b->count; i++) {
        const struct transfer *t = &b->file[i];
        out->files_done += t->state == STAGE_DONE;
        out->files_active += t->run != NULL;
        out->bytes_done += bytes_done (t);
        out->rate += t->rate;
        int64_t total = t->total >= 0 ? t->total : estimate_known (stage, t->url);
        unknown |= total < 0;
        out->bytes_total += total < 0 ? 0 : total;
    }
    out->left = b->done ? 0 : unknown ? -1 : estimate_left (b);
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
