/* Called by the daemons' own queues (local/svc/notify.c, bank/svc/notify.c). It must never hold the loop: the program
 * runs beside it, and so does the POST. */
#include "proto/notify/teller.h"

#include <assert.h>
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/text.h"
#include "proto/child/child.h"
#include "proto/conf/conf.h"
#include "proto/notify/webhook.h"

enum {
    TRIES_MAX = 6, /* 1 + 2 + 4 + 8 + 16 s between them */
    LIMIT_S = 30,
};

struct teller {
    struct event_base *base;
    struct log *log;
    const char *agent;
    struct event *timer;
    struct webhook *hook;
    struct child *child;
    char *program, *account, *url; /* that still have to take it; NULL: none, or it has */
    char *body;                    /* NULL: idle */
    json_t *doc;
    unsigned tries;
    char why[TELLER_WHY_MAX];
    teller_fn fn;
    void *arg;
};

static void teller_next (struct teller *t);

static const char *teller_field (const struct teller *t, const char *name)
{
    const char *text = json_string_value (json_object_get (t->doc, name));
    return text ? text : "";
}

static void teller_forget (char **text)
{
    free (*text);
    *text = NULL;
}

static void teller_clear (struct teller *t)
{
    json_decref (t->doc);
    t->doc = NULL;
    teller_forget (&t->program);
    teller_forget (&t->account);
    teller_forget (&t->url);
    teller_forget (&t->body);
}

static void teller_taken (struct teller *t, char **by)
{
    t->tries = 0;
    teller_forget (by);
    teller_next (t);
}

/* Once more later, or never. */
static void teller_failed (struct teller *t, const char *by, char **who, bool again,
                           const char *why)
{
    char quoted[300];
    t->tries++;
    again = again && t->tries < TRIES_MAX;
    log_event (t->log, LOG_LEVEL_WARN, "notify", again ? "not_taken" : "dead_letter",
               "event=%s object=%s by=%s tries=%u why=%s", teller_field (t, "event"),
               teller_field (t, "object"), by, t->tries, log_quote (why, quoted, sizeof quoted));
    if (again) {
        struct timeval after = {.tv_sec = 1 << (t->tries - 1)};
        evtimer_add (t->timer, &after);
        return;
    }
    text_printf (t->why, sizeof t->why, "%s: %.200s", by, why);
    teller_taken (t, who);
}

static void teller_on_program (void *arg, int exit_code, bool timed_out)
{
    struct teller *t = arg;
    char why[80];
    t->child = NULL;
    if (exit_code == 0) {
        teller_taken (t, &t->program);
        return;
    }
    snprintf (why, sizeof why,
              timed_out ? "it took longer than %d s" : "it ended with exit code %d",
              timed_out ? LIMIT_S : exit_code);
    teller_failed (t, "program", &t->program, true, why);
}

/* NUI_EVENT=… and so on: every text of the message. */
static const char **teller_environment (const struct teller *t, struct arena *arena)
{
    const char **env = arena_array (arena, json_object_size (t->doc) + 2, sizeof *env);
    size_t count = 0;
    const char *name;
    json_t *value;
    env[count++] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    json_object_foreach (t->doc, name, value)
    {
        char *item = arena_printf (arena, "NUI_%s=%s", name,
                                   json_string_value (value) ? json_string_value (value) : "");
        for (char *c = item; *c != '='; c++)
            *c = (char)toupper ((unsigned char)*c);
        env[count++] = item;
    }
    env[count] = NULL;
    return env;
}

static void teller_run (struct teller *t)
{
    struct arena *arena = arena_create (0);
    struct err err = {0};
    const char *argv[CHILD_AS_MAX + 5];
    const char *const event = teller_field (t, "event"), *object = teller_field (t, "object"),
                      *text = teller_field (t, "text");
    uint32_t as = child_as (t->account, arena, argv, &err);
    memcpy (argv + as, (const char *[]){t->program, event, object, text, NULL}, 5 * sizeof *argv);
    if (err.code == 0 && conf_program_check ("NOTIFICATIONPROGRAM", t->program, &err) == 0)
        t->child = child_run (t->base, argv, teller_environment (t, arena), LIMIT_S * US_PER_S,
                              teller_on_program, t, &err);
    arena_destroy (arena);
    if (!t->child)
        teller_failed (t, "program", &t->program, true, err.text);
}

static void teller_on_url (void *arg, enum webhook_outcome outcome, const char *text)
{
    struct teller *t = arg;
    if (outcome == WEBHOOK_TAKEN)
        teller_taken (t, &t->url);
    else
        teller_failed (t, "url", &t->url, outcome == WEBHOOK_SILENT, text);
}

static void teller_post (struct teller *t)
{
    struct err err = {0};
    struct webhook_message message = {.url = t->url,
                                      .key = teller_field (t, "key"),
                                      .agent = t->agent,
                                      .body = t->body,
                                      .len = strlen (t->body)};
    if (webhook_post (t->hook, &message, LIMIT_S * US_PER_S, teller_on_url, t, &err) != 0)
        teller_failed (t, "url", &t->url, true, err.text);
}

static void teller_next (struct teller *t)
{
    if (t->program) {
        teller_run (t);
    } else if (t->url) {
        teller_post (t);
    } else {
        teller_clear (t);
        t->fn (t->arg, t->why);
    }
}

static void teller_on_timer (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    teller_next (arg);
}

static char *teller_copy (const char *text)
{
    char *copy = text ? strdup (text) : NULL;
    assert (copy || !text);
    return copy;
}

void teller_tell (struct teller *t, const struct teller_to *to, const char *body, size_t len,
                  teller_fn fn, void *arg)
{
    assert (!t->body);
    t->body = malloc (len + 1); /* it may have no NUL of its own */
    assert (t->body);
    memcpy (t->body, body, len);
    t->body[len] = '\0';
    t->doc = json_loads (t->body, 0, NULL);
    t->program = teller_copy (to->program);
    t->account = teller_copy (to->account);
    t->url = teller_copy (to->url);
    t->tries = 0;
    *t->why = '\0';
    t->fn = fn;
    t->arg = arg;
    teller_next (t);
}

bool teller_is_busy (const struct teller *t)
{
    return t->body != NULL;
}

struct teller *teller_create (struct event_base *base, struct log *log, const char *agent,
                              struct err *err)
{
    struct teller *t = calloc (1, sizeof *t);
    assert (t);
    *t = (struct teller){
        .base = base, .log = log, .agent = agent, .timer = evtimer_new (base, teller_on_timer, t)};
    assert (t->timer);
    t->hook = webhook_create (base, err);
    if (t->hook)
        return t;
    teller_destroy (t);
    return NULL;
}

void teller_destroy (struct teller *t)
{
    if (!t)
        return;
    child_kill (t->child);
    webhook_destroy (t->hook);
    event_free (t->timer);
    teller_clear (t);
    free (t);
}
