/* file:, from below a root of the site's to below the job's directory and back, by a thread. Read
 * and written as the job's account: what it may not read it does not get. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/stage/stage_i.h"

static void on_copied (void *arg, struct disk_result *result)
{
    (void)result;
    run_finish (arg);
}

static void go_on (void *arg, struct disk_result *result)
{
    struct run *run = arg;
    (void)result;
    run->transfer->state = STAGE_RUNNING;
    run_disk (run,
              &(struct disk_order){run->from, run->place.fd, run->transfer->done,
                                   run->from_stat.st_size, NULL, false},
              true, on_copied);
}

/* Both files. */
static int ends_open (struct run *run, struct err *err)
{
    struct transfer *t = run->transfer;
    const struct userfile_account *account = &t->batch->account;
    bool in = t->batch->direction == STAGE_IN;
    const char *below, *root = rules_root_of (run->rules, run->wire.url, &below);
    int dir = open (root, O_PATH | O_DIRECTORY | O_CLOEXEC), rc;
    if (dir < 0)
        return err_set (err, ERR_IO, "%s: %s", root, strerror (errno));
    rc = userfile_read (account, in ? dir : t->batch->dir, in ? below : t->path, !in, &run->from,
                        &run->from_stat, err);
    if (rc == 0)
        rc = userfile_part_open (account, in ? t->batch->dir : dir, in ? t->path : below,
                                 &run->place, err);
    close (dir);
    return rc;
}

void copy_from (struct run *run, const char *version)
{
    struct transfer *t = run->transfer;
    struct filenote *m = &run->memo;
    struct err err = {0};
    const struct stat *st = &run->from_stat;
    bool same = m->size == st->st_size && strcmp (m->modified, version) == 0;
    if (same && run_was_whole (run))
        return;
    t->done = same && run->place.st.st_size <= st->st_size ? run->place.st.st_size : 0;
    filenote_clear (m);
    m->size = st->st_size;
    snprintf (m->modified, sizeof m->modified, "%s", version);
    int rc = run_size_check (run, st->st_size, &err);
    if (rc == 0 && t->done == 0 && ftruncate (run->place.fd, 0) != 0)
        rc = err_set (&err, ERR_IO, "%s", strerror (errno));
    if (rc == 0)
        rc = run_memo_write (run, &err);
    if (rc != 0)
        run_fail (run, &err);
    else
        run_hash_upto (run, run->place.fd, t->done, go_on);
}

void copy_begin (struct run *run)
{
    struct err err = {0};
    char version[sizeof run->memo.modified];
    if (ends_open (run, &err) != 0) {
        run_fail (run, &err);
        return;
    }
    const struct stat *st = &run->from_stat;
    snprintf (version, sizeof version, "%lld.%09ld %llu", (long long)st->st_mtim.tv_sec,
              st->st_mtim.tv_nsec, (unsigned long long)st->st_ino);
    copy_from (run, version);
}
