/* Webhooks: a notice is written in the transaction of the change that it tells of, and sent from the store until it is taken.
 * Called by the table of listeners, and by report.c for files; a slow URL holds up no job. */
#include "meta/svc/hooks.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "meta/store/notice.h"
#include "meta/svc/mail.h"
#include "meta/job/sites.h"
#include "proto/base/clock.h"
#include "proto/notify/webhook.h"

enum { SENDERS = 8 };
#define LIMIT (30 * US_PER_S)
#define AGAIN_MAX (3600 * US_PER_S)
#define KEPT_FOR (86400 * US_PER_S)
#define LOOK_EVERY (5 * US_PER_S)

struct sender {
    struct hooks *hooks;
    struct webhook *hook;
    struct notice_row row; /* texts owned by arena */
    uint64_t upto;         /* of a mail: the last that is in it */
    struct arena *arena;   /* NULL: idle */
};

struct hooks {
    struct metad *metad;
    struct event *timer;
    struct sender sender[SENDERS];
};

int hooks_check (const struct metad *metad, const JobMessage *job, struct err *err)
{
    const struct metad_config *config = metad->config;
    if (!job->notify_url[0])
        return 0;
    if (mailaddress_is (job->notify_url)) {
        int rc = mail_check (config, job->notify_url, err);
        return rc == ERR_DENIED && mail_perhaps (job->notify_url) ? 0 : rc;
    }
    for (uint32_t i = 0; i < config->notify_allow_count; i++)
        if (strncmp (job->notify_url, config->notify_allow[i], strlen (config->notify_allow[i])) ==
            0)
            return 0;
    return err_set (err, ERR_DENIED,
                    "this grid sends no notifications to %.100s (NOTIFICATIONALLOW)",
                    job->notify_url);
}

const char *hooks_note (const struct metad *metad, const JobMessage *job, struct err *err)
{
    return mailaddress_is (job->notify_url) && mail_check (metad->config, job->notify_url, err)
               ? err->text
               : "";
}

/* ---- writing */

static void wake_in (struct hooks *n, duration_us delay)
{
    struct timeval tv = {.tv_sec = delay / US_PER_S, .tv_usec = delay % US_PER_S};
    evtimer_add (n->timer, &tv);
}

/* A full queue is said in the log, and stops no job. Takes over the document. */
static int put (struct metad *metad, const char *url, json_t *doc, struct err *err)
{
    struct notice_row row = {.url = url, .created = clock_now_us ()};
    char address[MAIL_ADDRESS_MAX + sizeof "mailto:"] = "mailto:";
    if (mailaddress_is (url)) { /* what happens until then goes in one mail */
        row.due = row.created + metad->config->mail_delay;
        mailaddress_read (url, address + strlen (address));
        row.url = address;
    }
    char key[QUANTITY_TEXT_MAX], moment[QUANTITY_TEXT_MAX];
    uuid_make (&row.key);
    char *body = NULL;
    if (doc && json_object_set_new (doc, "grid", json_string (metad->grid)) == 0 &&
        json_object_set_new (doc, "time", json_string (time_format_iso (row.created, moment))) ==
            0 &&
        json_object_set_new (doc, "key", json_string (uuid_format (&row.key, key))) == 0)
        body = json_dumps (doc, JSON_COMPACT);
    json_decref (doc);
    if (!body)
        return err_set (err, ERR_INVALID, "a notice that cannot be written");
    row.body = body;
    int rc = notice_put (metad->store, &row, err);
    free (body);
    if (rc == ERR_LIMIT) {
        log_event (metad->log, LOG_LEVEL_ERROR, "notify", "too_many_waiting", "url=%s", url);
        err_clear (err);
        rc = 0;
    }
    if (rc == 0)
        wake_in (metad->hooks, 0); /* from the loop: it is durable then */
    return rc;
}

static const char *state_word (Nui__Meta__V1__GridJobState state)
{
    static const char *const word[] = {"Unknown",   "Pending", "Queued",    "Reserved", "Running",
                                       "Completed", "Failed",  "Cancelled", "Refused"};
    return (unsigned)state < sizeof word / sizeof *word ? word[state] : word[0];
}

static json_t *components (const struct gridjob *job)
{
    json_t *list = json_array ();
    for (uint32_t p = 0; p < job->part_count; p++) {
        const struct jobpart *part = &job->part[p];
        json_t *c = json_pack ("{s:s, s:s, s:s}", "component", part->name, "site", part->site,
                               "site_job_id", part->site_job_id);
        if (part->info && part->info->end_us)
            json_object_set_new (c, "exit_code", json_integer (part->info->exit_code));
        json_array_append_new (list, c);
    }
    return list;
}

/* Why files could not be taken away; "": they were. The reason of a job that did not end well is another. */
static const char *files_failure (const JobInfo *info)
{
    if (strcmp (info->stage_out, "Failed") != 0)
        return "";
    if (info->state != NUI__LOCAL__V1__JOB_STATE__JOB_COMPLETED && info->n_transfers)
        return info->transfers[0]->text;
    return info->reason ? info->reason->text : "";
}

/* part: of which component it is told; NULL: of all of it. */
static int tell_job (struct gridjob *job, unsigned bit, const char *event,
                     const struct jobpart *part, struct err *err)
{
    const struct metad_config *config = job->metad->config;
    const char *url[] = {config->notify_events & bit ? config->notify_url : NULL,
                         job->job->notify_url[0] ? job->job->notify_url : NULL};
    const char *reason = part ? files_failure (part->info) : job->reason.text;
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++) {
        if (!url[i] || (mailaddress_is (url[i]) && !mail_wants (url[i], job, bit, part != NULL)))
            continue;
        json_t *doc = json_pack ("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:o}", "event", event, "job",
                                 job->id, "name", job->job->name, "user", job->submitter, "state",
                                 state_word (job->state), "reason", reason, "retries",
                                 (int)job->retries, "components", components (job));
        if (part)
            json_object_set_new (doc, "component", json_string (part->name));
        rc = put (job->metad, url[i], doc, err);
    }
    return rc;
}

static int hooks_job_closing (struct gridjob *job, struct err *err)
{
    return tell_job (job, HOOK_JOB_END, "JobEnd", NULL, err);
}

/* What has happened since it was saved last; its end only if that may be told. */
static int hooks_job_saving (struct gridjob *job, bool with_record, struct err *err)
{
    int rc = 0;
    (void)with_record;
    bool ran = job->state == NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING;
    if (job->retries > job->saved_retries)
        rc = tell_job (job, HOOK_JOB_RETRY, "JobRetry", NULL, err);
    if (rc == 0 && ran && job->saved_state != job->state)
        rc = tell_job (job, HOOK_JOB_START, "JobStart", NULL, err);
    if (rc == 0 && job_over (job) && job->saved_state != job->state)
        rc = hooks_job_closing (job, err);
    return rc;
}

int hooks_files (struct gridjob *job, uint32_t part, struct err *err)
{
    return tell_job (job, HOOK_JOB_END, "JobStageOut", &job->part[part], err);
}

/* ---- sites */

static void site_tell (struct metad *metad, struct site *site, bool lost)
{
    const struct metad_config *config = metad->config;
    struct err err;
    err_clear (&err);
    site->told_lost = lost;
    log_event (metad->log, LOG_LEVEL_WARN, "site", lost ? "lost" : "back", "site=%s", site->name);
    if (!config->notify_url || !(config->notify_events & HOOK_SITE_LOST))
        return;
    json_t *doc =
        json_pack ("{s:s, s:s}", "event", lost ? "SiteLost" : "SiteBack", "site", site->name);
    if (put (metad, config->notify_url, doc, &err))
        site->told_lost = !lost; /* at the next look */
}

static void sites_look (struct metad *metad)
{
    for (uint32_t i = 0; i < metad->site_count; i++) {
        struct site *site = metad->site[i];
        bool lost = site->configured && site_silent_for (metad, site) > metad->config->site_lost;
        if (lost != site->told_lost)
            site_tell (metad, site, lost);
    }
}

/* ---- sending */

static void pump (struct hooks *n);

static void idle (struct sender *s)
{
    arena_destroy (s->arena);
    s->arena = NULL;
}

static void on_outcome (void *arg, enum webhook_outcome outcome, const char *text)
{
    struct sender *s = arg;
    struct metad *metad = s->hooks->metad;
    time_us now = clock_now_us ();
    char quoted[300];
    struct err err;
    err_clear (&err);
    bool over = outcome != WEBHOOK_SILENT || now - s->row.created > KEPT_FOR;
    if (outcome != WEBHOOK_TAKEN)
        log_event (metad->log, LOG_LEVEL_WARN, "notify", over ? "dropped" : "not_taken",
                   "url=%s tries=%u why=%s", s->row.url, s->row.tries + 1,
                   log_quote (text, quoted, sizeof quoted));
    duration_us again = US_PER_S << (s->row.tries < 12 ? s->row.tries : 12);
    int rc = over ? notice_delete (metad->store, &s->row, s->upto, &err)
                  : notice_later (metad->store, &s->row,
                                  now + (again < AGAIN_MAX ? again : AGAIN_MAX), &err);
    if (rc) /* it is told once more */
        log_event (metad->log, LOG_LEVEL_ERROR, "notify", "not_stored", "error=%s",
                   log_quote (err.text, quoted, sizeof quoted));
    idle (s);
    wake_in (s->hooks, rc ? LOOK_EVERY : 0);
}

/* All that waits for that address. */
static int mail_message (struct sender *s, struct webhook_message *message, struct err *err)
{
    struct metad *metad = s->hooks->metad;
    struct notice_row *rows;
    char *address = arena_alloc (s->arena, MAIL_ADDRESS_MAX + 1);
    uint32_t count;
    int rc = notice_together (metad->store, &s->row, s->arena, &rows, &count, err);
    if (rc != 0 || count == 0)
        return rc;
    mailaddress_read (s->row.url, address);
    s->upto = rows[count - 1].sequence;
    message->url = metad->config->mail_server ? metad->config->mail_server : "smtp://localhost";
    message->from = metad->config->mail_from ? metad->config->mail_from : "nui@localhost";
    message->to = address;
    message->body = mail_text (metad, address, message->key, rows, count, s->arena);
    message->len = strlen (message->body);
    return 0;
}

static bool notice_send (struct sender *s, struct err *err)
{
    struct metad *metad = s->hooks->metad;
    const struct metad_config *config = metad->config;
    char key[QUANTITY_TEXT_MAX], signature[WEBHOOK_SIGNATURE_MAX];
    struct webhook_message message = {.url = s->row.url,
                                      .key = uuid_format (&s->row.key, key),
                                      .agent = "nui-meta",
                                      .ca = config->notify_ca,
                                      .body = s->row.body,
                                      .len = strlen (s->row.body)};
    s->upto = s->row.sequence;
    if (mailaddress_is (s->row.url) && mail_message (s, &message, err) != 0)
        return false;
    if (config->notify_secret_len && config->notify_url &&
        strcmp (s->row.url, config->notify_url) == 0)
        message.signature = webhook_sign (config->notify_secret, config->notify_secret_len,
                                          clock_now_us (), message.body, message.len, signature);
    if (!s->hook)
        s->hook = webhook_create (metad->base, err);
    return s->hook && metad->gate.open (metad->gate.self, err) == 0 &&
           webhook_post (s->hook, &message, LIMIT, on_outcome, s, err) == 0;
}

static void pump (struct hooks *n)
{
    const char *busy[SENDERS];
    uint32_t count = 0;
    struct err err;
    err_clear (&err);
    for (int i = 0; i < SENDERS; i++)
        if (n->sender[i].arena)
            busy[count++] = n->sender[i].row.url;
    for (int i = 0; i < SENDERS; i++) {
        struct sender *s = &n->sender[i];
        if (s->arena)
            continue;
        s->arena = arena_create (0);
        int rc =
            notice_due (n->metad->store, clock_now_us (), busy, count, s->arena, &s->row, &err);
        if (rc <= 0 || !notice_send (s, &err)) {
            idle (s);
            return; /* at the next look */
        }
        busy[count++] = s->row.url;
    }
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct hooks *n = arg;
    time_us next = TIME_US_NONE, now = clock_now_us ();
    (void)fd;
    (void)what;
    if (n->metad->stopping)
        return;
    sites_look (n->metad);
    pump (n);
    duration_us wait = LOOK_EVERY;
    if (notice_next (n->metad->store, &next, NULL) == 0 && next != TIME_US_NONE && next > now &&
        next - now < wait)
        wait = next - now;
    wake_in (n, wait);
}

/* ---- beginning and end */

static int hooks_open (struct metad *metad, struct err *err)
{
    struct hooks *n = calloc (1, sizeof *n);
    if (n)
        n->timer = evtimer_new (metad->base, on_timer, n);
    if (!n || !n->timer) {
        free (n);
        return err_set (err, ERR_NOMEM, "notify: no memory");
    }
    n->metad = metad;
    for (int i = 0; i < SENDERS; i++)
        n->sender[i].hooks = n;
    metad->hooks = n;
    wake_in (n, 0);
    return 0;
}

static void hooks_close (struct metad *metad)
{
    struct hooks *n = metad->hooks;
    if (!n)
        return;
    for (int i = 0; i < SENDERS; i++) {
        webhook_destroy (n->sender[i].hook);
        arena_destroy (n->sender[i].arena);
    }
    event_free (n->timer);
    free (n);
    metad->hooks = NULL;
}

const struct metad_part hooks_part = {
    .open = hooks_open,
    .close = hooks_close,
    .job_saving = hooks_job_saving,
    .job_closing = hooks_job_closing,
};
