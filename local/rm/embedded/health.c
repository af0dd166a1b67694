/* health: runs the administrator's health program beside the loop, and keeps what it said. The embedded runner has one for its
 * own machine, nui-node for its host. */
#include "local/rm/embedded/health.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/mem.h"
#include "proto/base/text.h"
#include "proto/child/child.h"

enum { HEALTH_LIMIT_S = 60, HEALTH_BYTES_MAX = 64 << 10 };

struct health {
    struct event_base *base;
    struct log *log;
    char *program;
    duration_us every;
    void (*changed) (void *arg);
    void *arg;
    struct event *due;
    struct child *child;
    char why[200]; /* "": nothing */
};

static void health_say (struct health *health, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
static void health_say (struct health *health, const char *fmt, ...)
{
    char why[sizeof health->why], quoted[300];
    va_list ap;
    va_start (ap, fmt);
    text_vprintf (why, sizeof why, fmt, ap);
    va_end (ap);
    text_mend (why, strlen (why));
    for (char *c = why; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    if (strcmp (why, health->why) == 0)
        return;
    text_printf (health->why, sizeof health->why, "%s", why);
    log_event (health->log, *why ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "rm",
               *why ? "unhealthy" : "healthy", "reason=%s", log_quote (why, quoted, sizeof quoted));
    health->changed (health->arg);
}

static void health_wait (struct health *health)
{
    struct timeval later = {.tv_sec = health->every / US_PER_S,
                            .tv_usec = health->every % US_PER_S};
    event_add (health->due, &later);
}

static void on_said (void *arg, const struct child_said *said)
{
    struct health *health = arg;
    int line = (int)strcspn (said->text, "\n");
    health->child = NULL;
    health_wait (health);
    if (said->timed_out)
        health_say (health, "its health program did not end within %d s", HEALTH_LIMIT_S);
    else if (said->exit_code != 0 && line > 0)
        health_say (health, "%.*s", line, said->text);
    else if (said->exit_code != 0)
        health_say (health, "its health program ended with %d", said->exit_code);
    else
        health_say (health, "%s", "");
}

static void on_due (evutil_socket_t fd, short what, void *arg)
{
    struct health *health = arg;
    const char *const argv[] = {health->program, NULL};
    static const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    struct err err = {0};
    (void)fd;
    (void)what;
    health->child = child_ask (health->base, argv, envp, HEALTH_LIMIT_S * US_PER_S,
                               HEALTH_BYTES_MAX, on_said, health, &err);
    if (health->child)
        return;
    health_wait (health);
    health_say (health, "its health program could not be started: %s", err.text);
}

struct health *health_begin (struct event_base *base, struct log *log,
                             const struct rm_health *wanted, void (*changed) (void *arg), void *arg)
{
    if (!wanted->program)
        return NULL;
    struct health *health = mem_zero (1, sizeof *health);
    *health = (struct health){.base = base,
                              .log = log,
                              .program = strdup (wanted->program),
                              .every = wanted->every,
                              .changed = changed,
                              .arg = arg};
    health->due = event_new (base, -1, 0, on_due, health);
    assert (health->due && health->program);
    event_active (health->due, EV_TIMEOUT, 0);
    return health;
}

void health_end (struct health *health)
{
    if (!health)
        return;
    child_kill (health->child);
    event_free (health->due);
    free (health->program);
    free (health);
}

const char *health_why (const struct health *health)
{
    return health && health->why[0] ? health->why : NULL;
}
