/* Ended jobs are forgotten: their files first, then what the store has of them, so that a daemon
 * that dies in between finds them again and goes on. See local/store/purge.h for what must have
 * been acknowledged before. */
#include <assert.h>
#include <stdlib.h>

#include "local/store/purge.h"
#include "local/store/runs.h"
#include "local/store/signed.h"
#include "local/svc/job/life.h"
#include "local/svc/memory/memory.h"
#include "local/svc/svc_i.h"

enum { HISTORY_PER_GO = 500 };

struct purge {
    struct svc *svc;
    bool marked, busy;
    struct purge_mark mark;
    time_us before;
    struct purge_job job[PURGE_MAX];
    uint32_t count;
    struct event *again;
};

static void complain (struct svc *svc, const struct err *err)
{
    char quoted[300];
    log_event (svc->log, LOG_LEVEL_ERROR, "stats", "not_purged", "error=%s",
               log_quote (err->text, quoted, sizeof quoted));
}

static void forget (struct purge *p)
{
    struct svc *svc = p->svc;
    struct err err = {0};
    struct timeval at_once = {0, 0};
    uint32_t stones = 0;
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = purge_forget (svc->store, p->job, p->count, &err);
    if (rc == 0)
        rc = purge_tombstones (svc->store, p->before, &stones, &err);
    rc = svc_commit (svc, rc, &err);
    if (rc != 0) {
        complain (svc, &err);
        return;
    }
    if (p->count + stones > 0)
        log_event (svc->log, LOG_LEVEL_INFO, "stats", "jobs_purged", "jobs=%u parts=%u", p->count,
                   stones);
    if (p->count == PURGE_MAX || stones == PURGE_MAX)
        event_add (p->again, &at_once);
}

static void on_files_gone (void *arg, bool ok)
{
    struct purge *p = arg;
    p->busy = false;
    if (ok)
        forget (p);
}

static void files_go (struct purge *p)
{
    struct svc *svc = p->svc;
    struct rm_gone gone[PURGE_MAX];
    char id[PURGE_MAX][SITE_ID_MAX], mark[PURGE_MAX][RM_MARK_MAX];
    struct err err = {0};
    static_assert ((int)PURGE_MAX <= (int)RM_GONE_MAX, "one call is enough");
    for (uint32_t i = 0; i < p->count; i++) {
        struct store_job rec;
        if (local_store_job_get (svc->store, p->job[i].number, &rec, &err) != 0) {
            complain (svc, &err);
            return;
        }
        life_mark (svc, &rec, mark[i]);
        store_job_free (&rec);
        gone[i] = (struct rm_gone){site_id (svc, p->job[i].number, id[i]), p->job[i].incarnation,
                                   mark[i]};
    }
    p->busy = true;
    if (svc->rm.ops->forget (svc->rm.self, gone, p->count, on_files_gone, p, &err) != 0) {
        p->busy = false;
        complain (svc, &err);
    }
}

static void jobs_go (struct purge *p)
{
    struct svc *svc = p->svc;
    struct err err = {0};
    bool reached = false;
    if (p->busy)
        return;
    if (p->marked && purge_mark_reached (svc->store, &p->mark, &reached, &err) == 0 && reached) {
        p->marked = false;
        p->before = svc_now (svc) - svc->settings->job_purge;
        if (purge_candidates (svc->store, &p->mark, p->before, p->job, &p->count, &err) != 0)
            complain (svc, &err);
        else if (p->count > 0 && svc->rm.ops->forget)
            files_go (p);
        else
            forget (p);
    }
    if (!p->marked && !p->busy)
        p->marked = purge_mark_take (svc->store, &p->mark, &err) == 0;
}

static void history_go (struct svc *svc)
{
    struct err err = {0};
    uint32_t gone = 0;
    if (svc->settings->history_time == TIME_US_MAX)
        return;
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = history_purge (svc->store, svc_now (svc) - svc->settings->history_time,
                            statdir_written (svc), HISTORY_PER_GO, &gone, &err);
    if (rc == 0)
        rc = runs_purge (svc->store, svc_now (svc) - svc->settings->history_time, HISTORY_PER_GO,
                         &err);
    if (svc_commit (svc, rc, &err) != 0)
        complain (svc, &err);
    else if (gone > 0)
        log_event (svc->log, LOG_LEVEL_INFO, "stats", "history_purged", "jobs=%u", gone);
}

/* What the bank has is kept for one that loses it as long as the job itself; a dead letter as long as the history. */
static void messages_go (struct svc *svc)
{
    const struct settings *s = svc->settings;
    time_us now = svc_now (svc);
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = purge_messages (svc->store, s->job_purge == TIME_US_MAX ? 0 : now - s->job_purge,
                             s->history_time == TIME_US_MAX ? 0 : now - s->history_time,
                             HISTORY_PER_GO, &err);
    if (svc_commit (svc, rc, &err) != 0)
        complain (svc, &err);
}

static void signed_go (struct svc *svc)
{
    struct err err = {0};
    int rc = svc_begin (svc, &err);
    if (rc == 0) /* a day more, for a clock that steps back */
        rc = signed_purge (svc->store, svc_now (svc) - 24 * 3600 * US_PER_S, &err);
    if (svc_commit (svc, rc, &err) != 0)
        complain (svc, &err);
}

static void on_again (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    jobs_go (arg);
}

static void purge_poll (struct svc *svc)
{
    struct purge *p = svc->purge;
    if (!p) {
        p = svc->purge = calloc (1, sizeof *p);
        assert (p);
        p->svc = svc;
        p->again = evtimer_new (svc->base, on_again, p);
        assert (p->again);
    }
    if (svc->settings->mode.mode == MODE_TEST)
        return; /* beside a production scheduler, whose files they may be */
    if (svc->settings->job_purge != TIME_US_MAX)
        jobs_go (p);
    history_go (svc);
    messages_go (svc);
    signed_go (svc);
}

static void purge_close (struct svc *svc)
{
    if (!svc->purge)
        return;
    event_free (svc->purge->again);
    free (svc->purge);
    svc->purge = NULL;
}

const struct svc_listener purge_listener = {.polled = purge_poll, .close = purge_close};
