/* nui:, what the user sent beside the job: copied from where the site keeps it (stage_sent), once it has been brought there. It
 * is the daemon's and not a user's file, so it is not read as the job's account; what is made of it is that account's. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "local/stage/stage_i.h"

static void sent_copy (struct run *run)
{
    struct transfer *t = run->transfer;
    const struct userfile_account *account = &t->batch->account;
    struct err err = {0};
    int rc = fstat (run->from, &run->from_stat) == 0
                 ? 0
                 : err_set (&err, ERR_IO, "%s", strerror (errno));
    if (rc == 0)
        rc = userfile_part_open (account, t->batch->dir, t->path, &run->place, &err);
    if (rc == 0 && t->executable)
        rc = userfile_part_executable (account, &run->place, &err);
    if (rc != 0)
        run_fail (run, &err);
    else
        copy_from (run, "sent"); /* it is what its URL says, and never another */
}

static void on_brought (void *arg, const struct err *why)
{
    struct run *run = arg;
    run->bringing = NULL;
    if (!why)
        sent_begin (run);
    else
        run_end (run, why->code == ERR_UNAVAILABLE ? TRANSFER_TRANSIENT : TRANSFER_FAILED, why);
}

void sent_begin (struct run *run)
{
    const struct stage_sent *sent = &run->stage->sent;
    struct transfer *t = run->transfer;
    struct err err = {0};
    if (!sent->open) {
        err_set (&err, ERR_UNSUPPORTED, "no files travel with jobs here");
        run_fail (run, &err);
    } else if (sent->open (sent->self, t->batch->owner, t->sum, &run->from, &err) == 0) {
        sent_copy (run);
    } else if (err.code != ERR_NOT_FOUND || !t->batch->origin) {
        run_fail (run, &err);
    } else {
        run->bringing = sent->bring (sent->self, t->batch->origin, t->batch->owner, t->sum,
                                     t->size_said, on_brought, run, &err);
        if (!run->bringing)
            run_fail (run, &err);
    }
}
