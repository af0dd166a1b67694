/* What becomes of what a pass decides. NORMAL and SIMULATION act. TEST writes down what it would
 * have done and does nothing. INTERACTIVE asks on the administrator's terminal, one act at a time:
 *
 *     Command: start job alpha.3 on node list alpha01,alpha02
 *     Accept: (y/n) [default: n]?
 *
 * What is accepted is done by the next pass that decides the same again; a question that a later pass
 * would not ask any more is withdrawn. What is declined is not asked again before RMPOLLINTERVAL. Where
 * nobody can answer (no terminal, end of file) everything is declined. What an administrator orders
 * himself (runjob, canceljob) is not asked, and under TEST it starts nothing.
 *
 * Called by each pass before its plan is committed (mode_filter), and by who lists acts and differences; it starts and stops
 * nothing itself. */
#include "local/svc/modes/modes.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/svc/job.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"

enum { LINE_MAX_BYTES = 256, DIFFERENCES_MAX = 1000 };

/* Two schedulers that look at the same queue do not look at the same moment. */
static const duration_us same_moment = 30 * US_PER_S;

enum act_state { ACT_OPEN, ACT_ACCEPTED, ACT_DECLINED };

/* One thing a pass wants done, known by its words. */
struct act {
    char *text;
    enum act_state state;
    time_us declined_at;
    time_us first; /* when it was wanted first */
    uint64_t pass; /* that wanted it last */
    uint64_t order;
    UT_hash_handle hh;
};

struct mode {
    struct svc *svc;
    bool asks; /* INTERACTIVE; else TEST */
    struct act *acts;
    uint64_t pass, order;
    const struct act *asked; /* the question on the terminal */
    struct event *input;
    bool nobody; /* no answer can come */
    time_us began;
    char *difference[DIFFERENCES_MAX]; /* a ring */
    uint64_t difference_count, started, alike;
    char line[LINE_MAX_BYTES];
    size_t line_len;
};

/* --- acts --------------------------------------------------------------------------------- */

static void act_forget (struct mode *mode, struct act *act)
{
    HASH_DEL (mode->acts, act);
    if (mode->asked == act)
        mode->asked = NULL;
    free (act->text);
    free (act);
}

static struct act *act_of (struct mode *mode, char *text)
{
    struct act *act;
    HASH_FIND_STR (mode->acts, text, act);
    if (act) {
        free (text);
    } else {
        act = calloc (1, sizeof *act);
        assert (act);
        act->text = text;
        act->order = ++mode->order;
        act->first = svc_now (mode->svc);
        HASH_ADD_KEYPTR (hh, mode->acts, act->text, strlen (act->text), act);
        log_event (mode->svc->log, LOG_LEVEL_INFO, "mode", mode->asks ? "asks" : "would",
                   "act=\"%s\"", act->text);
    }
    act->pass = mode->pass;
    return act;
}

/* May it be done by this pass? text is malloc'ed, and taken. */
static bool may (struct mode *mode, char *text)
{
    struct svc *svc = mode->svc;
    struct act *act = act_of (mode, text);
    if (!mode->asks)
        return false;
    if (act->state == ACT_ACCEPTED) {
        act_forget (mode, act);
        return true;
    }
    if (act->state == ACT_DECLINED &&
        svc_now (svc) - act->declined_at >= svc->settings->policy->poll_interval)
        act->state = ACT_OPEN;
    if (act->state == ACT_OPEN && mode->nobody) {
        act->state = ACT_DECLINED;
        act->declined_at = svc_now (svc);
    }
    return false;
}

static char *words (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
static char *words (const char *fmt, ...)
{
    struct strbuf b = STRBUF_INIT;
    va_list ap;
    va_start (ap, fmt);
    strbuf_vprintf (&b, fmt, ap);
    va_end (ap);
    strbuf_text (&b);
    return strbuf_steal (&b);
}

static char *start_words (struct svc *svc, const struct plan_start *start)
{
    char id[SITE_ID_MAX];
    struct strbuf nodes = STRBUF_INIT;
    for (uint32_t i = 0; i < start->allocation.count; i++)
        if (i == 0 || start->allocation.item[i].node.v != start->allocation.item[i - 1].node.v)
            strbuf_printf (&nodes, "%s%s", nodes.len ? "," : "",
                           svc->node_by_id[start->allocation.item[i].node.v]->name);
    char *text =
        words ("%s job %s on node list %s", start->phase == PLAN_RESUMED ? "resume" : "start",
               site_id (svc, start->job.v, id), strbuf_text (&nodes));
    strbuf_free (&nodes);
    return text;
}

static uint32_t filter_jobs (struct mode *mode, struct job_id *job, uint32_t count,
                             const char *what)
{
    char id[SITE_ID_MAX];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (may (mode, words ("%s job %s", what, site_id (mode->svc, job[i].v, id))))
            job[kept++] = job[i];
    return kept;
}

/* --- the terminal ------------------------------------------------------------------------- */

static void ask_next (struct mode *mode)
{
    struct act *act, *next, *first = NULL;
    if (mode->asked || mode->nobody)
        return;
    HASH_ITER (hh, mode->acts, act, next)
        if (act->state == ACT_OPEN && (!first || act->order < first->order))
            first = act;
    if (!first)
        return;
    mode->asked = first;
    printf ("Command: %s\nAccept: (y/n) [default: n]? ", first->text);
    fflush (stdout);
}

static void answered (struct mode *mode, const char *answer)
{
    struct act *act = NULL;
    bool yes = *answer == 'y' || *answer == 'Y';
    if (!mode->asked) {
        if (*answer)
            printf ("(nothing is asked)\n");
        return;
    }
    HASH_FIND_STR (mode->acts, mode->asked->text, act);
    mode->asked = NULL;
    assert (act);
    act->state = yes ? ACT_ACCEPTED : ACT_DECLINED;
    act->declined_at = svc_now (mode->svc);
    log_event (mode->svc->log, LOG_LEVEL_INFO, "mode", yes ? "accepted" : "declined", "act=\"%s\"",
               act->text);
    if (yes)
        pass_wake (mode->svc);
    ask_next (mode);
}

static void nobody_answers (struct mode *mode)
{
    struct act *act, *next;
    mode->nobody = true;
    mode->asked = NULL;
    event_del (mode->input);
    log_event (mode->svc->log, LOG_LEVEL_WARN, "mode", "nobody_answers",
               "text=\"no terminal is there: everything is declined\"");
    HASH_ITER (hh, mode->acts, act, next)
        if (act->state == ACT_OPEN) {
            act->state = ACT_DECLINED;
            act->declined_at = svc_now (mode->svc);
        }
}

static void on_input (evutil_socket_t fd, short what, void *arg)
{
    struct mode *mode = arg;
    char bytes[LINE_MAX_BYTES];
    (void)what;
    ssize_t n = read (fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        nobody_answers (mode);
        return;
    }
    for (ssize_t i = 0; i < n; i++)
        if (bytes[i] == '\n') {
            mode->line[mode->line_len] = 0;
            mode->line_len = 0;
            answered (mode, mode->line);
        } else if (mode->line_len < sizeof mode->line - 1) {
            mode->line[mode->line_len++] = bytes[i];
        }
}

/* --- for others --------------------------------------------------------------------------- */

static int mode_create (struct svc *svc, struct err *err)
{
    int kind = svc->settings->mode.mode;
    if (kind != MODE_TEST && kind != MODE_INTERACTIVE)
        return 0;
    struct mode *mode = svc->mode = calloc (1, sizeof *mode);
    if (!mode)
        return err_set (err, ERR_NOMEM, "mode: no memory");
    mode->svc = svc;
    mode->asks = kind == MODE_INTERACTIVE;
    mode->began = svc_now (svc);
    if (!mode->asks)
        return 0;
    mode->input = event_new (svc->base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, mode);
    assert (mode->input);
    if (fcntl (STDIN_FILENO, F_GETFL) == -1 || event_add (mode->input, NULL) != 0)
        nobody_answers (mode);
    return 0;
}

static void mode_close (struct svc *svc)
{
    struct mode *mode = svc->mode;
    struct act *act, *next;
    if (!mode)
        return;
    HASH_ITER (hh, mode->acts, act, next)
        act_forget (mode, act);
    if (mode->input)
        event_free (mode->input);
    for (uint32_t i = 0; i < DIFFERENCES_MAX; i++)
        free (mode->difference[i]);
    free (mode);
}

void mode_filter (struct svc *svc, struct plan *plan)
{
    struct mode *mode = svc->mode;
    struct act *act, *next;
    if (!mode)
        return;
    mode->pass++;
    for (uint32_t i = 0; i < plan->start_count; i++)
        if (!plan->start[i].refused)
            plan->start[i].refused = !may (mode, start_words (svc, &plan->start[i]));
    plan->preempt_count = filter_jobs (mode, plan->preempt, plan->preempt_count, "preempt");
    plan->violation_count =
        filter_jobs (mode, plan->violation, plan->violation_count, "end (its limit is over)");
    if (!mode->asks)
        plan->defer_count = 0;
    HASH_ITER (hh, mode->acts, act, next)
        if (act->pass != mode->pass) {
            if (mode->asked == act) {
                printf ("\n(no longer: %s)\n", act->text);
                fflush (stdout);
            }
            act_forget (mode, act);
        }
    if (mode->asks)
        ask_next (mode);
}

const char *mode_act (const struct svc *svc, uint32_t at)
{
    const struct act *act = svc->mode ? svc->mode->acts : NULL;
    for (; act; act = act->hh.next)
        if (act->state == ACT_OPEN && at-- == 0)
            return act->text;
    return NULL;
}

/* --- beside another scheduler ------------------------------------------------------------- */

/* Each node's name of "n1:2,n2:1", in order. */
static char *names_of (const char *placement)
{
    struct strbuf b = STRBUF_INIT;
    for (const char *p = placement; p && *p; p = strchr (p, ',') ? strchr (p, ',') + 1 : NULL)
        strbuf_printf (&b, "%s%.*s", b.len ? "," : "", (int)strcspn (p, ":,"), p);
    strbuf_text (&b);
    return strbuf_steal (&b);
}

static bool same_names (const char *a, const char *b)
{
    if (strlen (a) != strlen (b))
        return false;
    for (const char *p = a; *p; p += strcspn (p, ","), p += *p == ',') {
        size_t len = strcspn (p, ",");
        const char *q = b;
        while (*q && !(strncmp (q, p, len) == 0 && (q[len] == ',' || q[len] == 0))) {
            q += strcspn (q, ",");
            q += *q == ',';
        }
        if (!*q)
            return false;
    }
    return true;
}

/* The start of this job that is wanted, with its nodes; NULL: none is. */
static const struct act *start_wanted (const struct mode *mode, const char *id,
                                       const char **nodes_out)
{
    char prefix[SITE_ID_MAX + 32];
    int len = snprintf (prefix, sizeof prefix, "start job %s on node list ", id);
    for (const struct act *act = mode->acts; act; act = act->hh.next)
        if (strncmp (act->text, prefix, (size_t)len) == 0) {
            *nodes_out = act->text + len;
            return act;
        }
    return NULL;
}

bool mode_started_there (struct svc *svc, const struct site_job *job, const char *placement,
                         time_us start)
{
    struct mode *mode = svc->mode;
    char id[SITE_ID_MAX], *text;
    const char *wanted = NULL;
    if (!mode || mode->asks)
        return false;
    if (start < mode->began)
        return true; /* it ran before anybody compared */
    char *nodes = names_of (placement);
    const struct act *act = start_wanted (mode, site_id (svc, job->rec.number, id), &wanted);
    if (!act && svc->pass_at <= job->taken) {
        free (nodes);
        return true; /* it was started before a pass here saw it */
    }
    bool late = act && start - act->first > same_moment;
    mode->started++;
    if (act && !late && same_names (wanted, nodes)) {
        mode->alike++;
        free (nodes);
        return true;
    }
    if (!act)
        text = words ("job %s was started on %s, and would wait here%s%s", id, nodes,
                      job->rec.reason_text && *job->rec.reason_text ? ": " : "",
                      job->rec.reason_text ? job->rec.reason_text : "");
    else if (late)
        text = words ("job %s was started on %s, %lld s after it would have been here on %s", id,
                      nodes, (long long)((start - act->first) / US_PER_S), wanted);
    else
        text = words ("job %s was started on %s, and would have been on %s", id, nodes, wanted);
    log_event (svc->log, LOG_LEVEL_INFO, "mode", "differs", "text=\"%s\"", text);
    char **slot = &mode->difference[mode->difference_count++ % DIFFERENCES_MAX];
    free (*slot);
    *slot = text;
    free (nodes);
    return true;
}

void mode_compared (const struct svc *svc, uint64_t *started_out, uint64_t *alike_out)
{
    *started_out = svc->mode ? svc->mode->started : 0;
    *alike_out = svc->mode ? svc->mode->alike : 0;
}

const char *mode_difference (const struct svc *svc, uint32_t at)
{
    const struct mode *mode = svc->mode;
    uint64_t count = mode ? mode->difference_count : 0;
    uint64_t kept = count < DIFFERENCES_MAX ? count : DIFFERENCES_MAX;
    return at < kept ? mode->difference[(count - kept + at) % DIFFERENCES_MAX] : NULL;
}

int mode_may_start (const struct svc *svc, struct err *err)
{
    if (svc->mode && !svc->mode->asks)
        return err_set (err, ERR_CONFLICT, "mode TEST: nothing is started");
    return 0;
}

const struct svc_listener mode_listener = {.open = mode_create, .close = mode_close};
