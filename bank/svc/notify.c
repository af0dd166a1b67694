/* Called by the service when its connections or the clock change, and by its own timer. It never decides anything, and
 * nothing waits for it. */
#include "bank/svc/notify.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "bank/store/fundread.h"
#include "bank/svc/service_impl.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

enum { LOOK_S = 2, RECON_EVERY = 5 /* looks */, WAITING_MAX = 1000, OBJECT_MAX = 128 };

static const struct {
    unsigned bit;
    const char *event, *cleared; /* as it is told */
} events[] = {
    {NOTIFY_CLOCK_AHEAD, "ClockAhead", "ClockBelieved"},
    {NOTIFY_DATABASE_DOWN, "DatabaseDown", "DatabaseUp"},
    {NOTIFY_WRITE_REFUSED, "WriteRefused", "WriteTaken"},
    {NOTIFY_STATE_FAILED, "StateFailed", "StateRecorded"},
    {NOTIFY_RECON_OPEN, "ReconOpen", "ReconOwned"},
};
enum { EVENTS = sizeof (events) / sizeof (*events) };

struct message {
    STAILQ_ENTRY (message) link;
    char *body;
    void (*done) (void *arg, const char *why); /* may be NULL */
    void *arg;
};

/* What is wrong and was told. */
struct problem {
    LIST_ENTRY (problem) link;
    unsigned event;
    char object[OBJECT_MAX];
    bool found; /* by the look that is under way */
};

struct notify {
    struct bank_service *svc;
    struct event *timer;
    struct teller *teller;
    STAILQ_HEAD (, message) queue; /* the first is being told */
    uint32_t waiting;
    LIST_HEAD (, problem) problems;
    bool up;           /* the writer's connection … */
    duration_us since; /* … since then, monotonic */
    char down_why[ERR_TEXT_MAX];
    unsigned looks;
    bool reading; /* rows of reconciliation */
    bool gone;    /* destroyed: the answer frees it */
};

/* ---- telling */

static void notify_next (struct notify *n);

static void notify_on_told (void *arg, const char *why)
{
    struct notify *n = arg;
    struct message *message = STAILQ_FIRST (&n->queue);
    STAILQ_REMOVE_HEAD (&n->queue, link);
    n->waiting--;
    if (message->done) /* else the teller's line in the log is enough */
        message->done (message->arg, why);
    free (message->body);
    free (message);
    notify_next (n);
}

static void notify_next (struct notify *n)
{
    struct message *message = STAILQ_FIRST (&n->queue);
    if (message && !teller_is_busy (n->teller))
        teller_tell (n->teller, &n->svc->limits.notify, message->body, strlen (message->body),
                     notify_on_told, n);
}

bool notify_wanted (const struct notify *n, unsigned event)
{
    const struct bank_limits *limits = &n->svc->limits;
    return limits->notify_events & event && (limits->notify.program || limits->notify.url);
}

static void member_default (json_t *doc, const char *name, const char *text)
{
    if (!json_object_get (doc, name))
        json_object_set_new (doc, name, json_string (text));
}

int notify_message (struct notify *n, json_t *doc, void (*done) (void *arg, const char *why),
                    void *arg, struct err *err)
{
    char moment[QUANTITY_TEXT_MAX], key[QUANTITY_TEXT_MAX];
    struct uuid id;
    uuid_make (&id);
    member_default (doc, "grid", tlsid_self (n->svc->id)->grid);
    member_default (doc, "time", time_format_iso (clock_now_us (), moment));
    member_default (doc, "key", uuid_format (&id, key));
    char *body = doc ? json_dumps (doc, JSON_COMPACT) : NULL;
    json_decref (doc);
    if (!body)
        return err_set (err, ERR_INVALID, "a message that is not UTF-8");
    if (n->waiting >= WAITING_MAX) {
        free (body);
        return err_set (err, ERR_LIMIT, "%d messages wait", WAITING_MAX);
    }
    struct message *message = calloc (1, sizeof (*message));
    if (!message)
        abort ();
    *message = (struct message){.body = body, .done = done, .arg = arg};
    STAILQ_INSERT_TAIL (&n->queue, message, link);
    n->waiting++;
    notify_next (n);
    return 0;
}

static void notify_tell (struct notify *n, unsigned event, bool begins, const char *object,
                         const char *text)
{
    const char *name = "";
    struct err err;
    for (int i = 0; i < EVENTS; i++)
        if (events[i].bit == event)
            name = begins ? events[i].event : events[i].cleared;
    if (notify_wanted (n, event) &&
        notify_message (
            n, json_pack ("{s:s, s:s, s:s}", "event", name, "object", object, "text", text), NULL,
            NULL, &err) < 0)
        log_event (n->svc->log, LOG_LEVEL_ERROR, "notify", "not_told", "event=%s object=%s why=%s",
                   name, object, log_quote (err.text, (char[ERR_TEXT_MAX]){0}, ERR_TEXT_MAX));
}

/* ---- what is wrong */

static struct problem *problem_find (struct notify *n, unsigned event, const char *object)
{
    struct problem *p;
    LIST_FOREACH (p, &n->problems, link)
    if (p->event == event && strcmp (p->object, object) == 0)
        return p;
    return NULL;
}

/* It is wrong now, or not; text says so when that is new. */
static void problem_is (struct notify *n, unsigned event, const char *object, bool wrong,
                        const char *text)
{
    struct problem *p = problem_find (n, event, object);
    if (wrong && p) {
        p->found = true;
        return;
    }
    if (!wrong && !p)
        return;
    if (wrong) {
        p = calloc (1, sizeof (*p));
        if (!p)
            abort ();
        p->event = event;
        p->found = true;
        snprintf (p->object, sizeof (p->object), "%s", object);
        LIST_INSERT_HEAD (&n->problems, p, link);
    }
    notify_tell (n, event, wrong, object, text);
    if (!wrong) {
        LIST_REMOVE (p, link);
        free (p);
    }
}

void notify_clock (struct notify *n, const char *why)
{
    if (n)
        problem_is (n, NOTIFY_CLOCK_AHEAD, "bank", why != NULL,
                    why ? why : "the bank's clock is believed again");
}

/* Of a primary that lost its standby nothing comes back, while the connection is well. */
static void database_problem (struct notify *n)
{
    duration_us bound = n->svc->limits.read, silent = committer_silence (n->svc->committer);
    duration_us state = clock_monotonic_us () - n->since,
                since = n->up && silent != INT64_MAX ? silent : state;
    char by[QUANTITY_TEXT_MAX], text[ERR_TEXT_MAX];
    if (n->up && silent == INT64_MAX && since <= bound) /* it has not yet shown that it commits */
        return;
    duration_format (since, by);
    if (!n->up)
        text_printf (text, sizeof (text), "the bank's database is away for %s: %.200s", by,
                     n->down_why);
    else
        snprintf (text, sizeof (text),
                  "the bank's database has committed nothing for %s: is its standby gone?", by);
    problem_is (n, NOTIFY_DATABASE_DOWN, "database", since > bound,
                since > bound ? text : "the bank's database commits again");
}

/* A full disk, say. */
static void write_problem (struct notify *n)
{
    const char *why = committer_refusal (n->svc->committer);
    problem_is (n, NOTIFY_WRITE_REFUSED, "database", *why,
                *why ? why : "the bank's database takes what is written again");
}

/* Rows that are nobody's, by site. */
static void recon_told (struct notify *n, const struct fund_unowned *row, uint32_t count)
{
    struct problem *p, *next;
    char text[ERR_TEXT_MAX];
    LIST_FOREACH (p, &n->problems, link)
    p->found = p->event != NOTIFY_RECON_OPEN;
    for (uint32_t i = 0; i < count; i++) {
        text_printf (
            text, sizeof (text),
            "rows of reconciliation with site %.64s are nobody's (%lld; nui reconcile list), the first: %.250s",
            row[i].site, (long long)row[i].rows, row[i].text);
        problem_is (n, NOTIFY_RECON_OPEN, row[i].site, true, text);
    }
    for (p = LIST_FIRST (&n->problems); p; p = next) {
        next = LIST_NEXT (p, link);
        if (p->found)
            continue;
        text_printf (text, sizeof (text),
                     "every row of reconciliation with site %.64s has an owner or is closed",
                     p->object);
        problem_is (n, p->event, p->object, false, text);
    }
}

static void notify_on_rows (void *arg, const struct err *err, const struct fund_unowned *row,
                            uint32_t count)
{
    struct notify *n = arg;
    n->reading = false;
    if (n->gone)
        free (n);
    else if (!err->code)
        recon_told (n, row, count);
}

void notify_writer (struct notify *n, bool up, const char *why)
{
    if (!n)
        return;
    if (n->up != up)
        n->since = clock_monotonic_us ();
    n->up = up;
    text_printf (n->down_why, sizeof (n->down_why), "%s", why);
}

void notify_state (struct notify *n, const char *why)
{
    char text[ERR_TEXT_MAX];
    if (!n)
        return;
    if (why)
        text_printf (text, sizeof (text), "the state of all objects was not recorded: %.300s", why);
    else
        snprintf (text, sizeof (text), "the state of all objects was recorded");
    problem_is (n, NOTIFY_STATE_FAILED, "state", why != NULL, text);
}

static void notify_on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct notify *n = arg;
    (void)fd;
    (void)what;
    database_problem (n);
    write_problem (n);
    if (n->looks++ % RECON_EVERY || n->reading || !reader_is_up (n->svc->reader))
        return;
    n->reading = true;
    fundread_unowned (n->svc->reader, notify_on_rows, n);
}

/* ---- beginning and end */

struct notify *notify_create (struct bank_service *svc, struct err *err)
{
    struct notify *n = calloc (1, sizeof (*n));
    struct timeval period = {LOOK_S, 0};
    if (!n)
        abort ();
    n->svc = svc;
    STAILQ_INIT (&n->queue);
    LIST_INIT (&n->problems);
    n->since = clock_monotonic_us ();
    snprintf (n->down_why, sizeof (n->down_why), "it was not there yet");
    n->timer = event_new (svc->base, -1, EV_PERSIST, notify_on_timer, n);
    if (!n->timer || event_add (n->timer, &period) < 0)
        abort ();
    n->teller = teller_create (svc->base, svc->log, "nui-bank", err);
    if (n->teller)
        return n;
    notify_destroy (n);
    return NULL;
}

void notify_destroy (struct notify *n)
{
    if (!n)
        return;
    event_free (n->timer);
    teller_destroy (n->teller);
    for (struct message *m; (m = STAILQ_FIRST (&n->queue));) {
        STAILQ_REMOVE_HEAD (&n->queue, link);
        if (m->done)
            m->done (m->arg, "the bank stops");
        free (m->body);
        free (m);
    }
    for (struct problem *p; (p = LIST_FIRST (&n->problems));) {
        LIST_REMOVE (p, link);
        free (p);
    }
    n->gone = true;
    if (!n->reading)
        free (n);
}
