/* A job that its owner wants resubmitted when this site is lost (nui submit --on-site-loss=resubmit) lives
 * here only while its metascheduler hears of us: that one gives it to another site when it has heard nothing
 * for as long and a tenth longer. So that it never runs in two places, we end it first: what waits is taken out of
 * the queue, what runs is killed. The moment of the last report that was acknowledged, counted from when it was
 * sent on the machine's monotonic clock, is kept over a restart; after a reboot nobody knows how long it was. */
#include <stdlib.h>
#include <string.h>

#include "local/svc/grid/grid.h"
#include "local/svc/job.h"
#include "local/svc/job/life.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

enum { METAS_MAX = 16 };
#define KEEP_EVERY (5 * US_PER_S)
#define LOOK_EVERY US_PER_S
static const char blob_name[] = "contact";

struct contact {
    struct svc *svc;
    struct event *timer;
    duration_us kept; /* when it was last written */
    uint32_t count;
    struct {
        char name[STORE_NAME_MAX];
        duration_us heard; /* by the monotonic clock */
    } meta[METAS_MAX];
};

static duration_us heard_by (const struct contact *c, const char *meta)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (strcmp (c->meta[i].name, meta) == 0)
            return c->meta[i].heard;
    return INT64_MIN / 2;
}

/* In a group of metaschedulers whoever leads the job counts whom the site still reaches: more than half. */
static duration_us heard_by_group (const struct contact *c, const char *meta)
{
    const struct settings_group *group = settings_group_of (c->svc->settings, meta);
    duration_us latest[SETTINGS_GROUP_MEMBERS_MAX];
    if (!group)
        return heard_by (c, meta);
    for (uint32_t i = 0; i < group->count; i++) {
        duration_us heard = heard_by (c, group->member[i]);
        uint32_t at = i;
        for (; at > 0 && latest[at - 1] < heard; at--)
            latest[at] = latest[at - 1];
        latest[at] = heard;
    }
    return latest[group->count / 2];
}

static void set (struct contact *c, const char *meta, duration_us moment)
{
    uint32_t i = 0;
    while (i < c->count && strcmp (c->meta[i].name, meta) != 0)
        i++;
    if (i == METAS_MAX)
        return;
    if (i == c->count)
        text_printf (c->meta[c->count++].name, sizeof c->meta->name, "%.63s", meta);
    c->meta[i].heard = moment;
}

static void keep (struct contact *c)
{
    struct strbuf b = STRBUF_INIT;
    struct err err = {0};
    strbuf_printf (&b, "%s", c->svc->boot_id);
    for (uint32_t i = 0; i < c->count; i++)
        strbuf_printf (&b, " %s %lld", c->meta[i].name, (long long)c->meta[i].heard);
    int rc = svc_begin (c->svc, &err);
    if (rc == 0)
        rc = local_store_blob_put (c->svc->store, blob_name, strbuf_text (&b), b.len, &err);
    if (svc_commit (c->svc, rc, &err) == 0) /* else it looks older after a restart */
        c->kept = clock_monotonic_us ();
    strbuf_free (&b);
}

static bool any_job (const struct svc *svc)
{
    for (const struct site_job *job = svc->jobs; job; job = job->hh.next)
        if (job->rec.contact)
            return true;
    return false;
}

void contact_heard (struct svc *svc, const char *meta, duration_us sent)
{
    struct contact *c = svc->contact;
    if (!c || !*meta)
        return;
    set (c, meta, sent);
    if (clock_monotonic_us () - c->kept > KEEP_EVERY && any_job (svc))
        keep (c);
}

static void contact_look (struct svc *svc)
{
    struct contact *c = svc->contact;
    duration_us now = clock_monotonic_us ();
    struct site_job *job, *next;
    if (!c || svc->closing)
        return;
    HASH_ITER (hh, svc->jobs, job, next) {
        char text[300];
        struct err err = {0};
        if (!job->rec.contact || job->rec.stop == STORE_STOP_CANCEL ||
            job->rec.state >= STORE_JOB_COMPLETED ||
            now - heard_by_group (c, job->rec.meta) <= job->rec.contact)
            continue;
        text_printf (
            text, sizeof text,
            "metascheduler %.63s has not been heard for %lld s and may have given it elsewhere",
            job->rec.meta, (long long)(job->rec.contact / US_PER_S));
        log_event (svc->log, LOG_LEVEL_WARN, "contact", "lost", "job=%llu meta=%s",
                   (unsigned long long)job->rec.number, job->rec.meta);
        if (life_cancel (svc, job, CONTACT_LOST, text, &err) != 0)
            log_event (svc->log, LOG_LEVEL_ERROR, "contact", "not_ended", "job=%llu error=\"%s\"",
                       (unsigned long long)job->rec.number, err.text); /* at the next look */
    }
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct contact *c = arg;
    (void)fd;
    (void)what;
    contact_look (c->svc);
    evtimer_add (c->timer, &(struct timeval){.tv_sec = LOOK_EVERY / US_PER_S});
}

static int load (struct contact *c, struct err *err)
{
    void *bytes = NULL;
    size_t len = 0;
    int rc = local_store_blob_get (c->svc->store, blob_name, &bytes, &len, err);
    if (rc == ERR_NOT_FOUND) {
        err_clear (err);
        return 0;
    }
    if (rc != 0)
        return rc;
    char *text = calloc (1, len + 1), *rest = NULL;
    if (text)
        memcpy (text, bytes, len);
    free (bytes);
    if (!text)
        return err_set (err, ERR_NOMEM, "contact: no memory");
    const char *boot = strtok_r (text, " ", &rest);
    while (boot && strcmp (boot, c->svc->boot_id) == 0) {
        const char *name = strtok_r (NULL, " ", &rest), *moment = strtok_r (NULL, " ", &rest);
        if (!moment)
            break;
        set (c, name, strtoll (moment, NULL, 10));
    }
    free (text);
    return 0;
}

int contact_open (struct svc *svc, struct err *err)
{
    struct contact *c = calloc (1, sizeof *c);
    if (c)
        c->timer = evtimer_new (svc->base, on_timer, c);
    if (!c || !c->timer) {
        free (c);
        return err_set (err, ERR_NOMEM, "contact: no memory");
    }
    c->svc = svc;
    svc->contact = c;
    evtimer_add (c->timer, &(struct timeval){.tv_sec = LOOK_EVERY / US_PER_S});
    return load (c, err);
}

void contact_close (struct svc *svc)
{
    if (!svc->contact)
        return;
    event_free (svc->contact->timer);
    free (svc->contact);
    svc->contact = NULL;
}

const struct svc_listener contact_listener = {.recovered = contact_look,
                                              .pass_begins = contact_look};
