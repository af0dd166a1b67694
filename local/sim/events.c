/* events: a replay's hooks, which write down what the core decides: who starts where, who is promised what,
 * who is sent back or put off, who ends. `nui sim` prints it; the checker of tests/e2e/test_randomsim.py reads it and
 * knows nothing of the core. It only looks. */
#include "local/sim/events.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/core/reason.h"
#include "proto/base/mem.h"

struct events {
    const struct workload *workload;
    const struct machine *machine;
    const struct cred_names *names;
    bool rows;
    struct strbuf text;
    time_us *promised; /* [index]: as last told; TIME_US_NONE: nothing */
    char **never;      /* [index] */
};

struct events *events_create (const struct workload *w, const struct machine *m,
                              const struct cred_names *names, bool rows)
{
    struct events *e = mem_zero (1, sizeof *e);
    *e = (struct events){
        .workload = w, .machine = m, .names = names, .rows = rows, .text = STRBUF_INIT};
    e->promised = mem_zero (w->count + 1, sizeof *e->promised);
    e->never = mem_zero (w->count + 1, sizeof *e->never);
    for (uint64_t i = 0; i < w->count; i++)
        e->promised[i] = TIME_US_NONE;
    return e;
}

void events_destroy (struct events *e)
{
    if (!e)
        return;
    for (uint64_t i = 0; i < e->workload->count; i++)
        free (e->never[i]);
    free (e->never);
    free (e->promised);
    strbuf_free (&e->text);
    free (e);
}

static void events_row (struct events *e, time_us now, const char *what, uint64_t index, time_us at,
                        const struct allocation *a)
{
    const struct workload_job *j = &e->workload->job[index];
    char text[QUANTITY_TEXT_MAX];
    if (!e->rows)
        return;
    strbuf_printf (&e->text, "%s,%s,", credit_format (now, text), what); /* micro-units, exactly */
    if (j->name)
        strbuf_puts (&e->text, j->name);
    else
        strbuf_printf (&e->text, "%llu", (unsigned long long)j->number);
    strbuf_printf (&e->text, ",%s,", at == TIME_US_NONE ? "" : credit_format (at, text));
    for (uint32_t i = 0; a && i < a->count; i++) {
        uint32_t n = a->item[i].node.v;
        if (e->machine->name)
            strbuf_printf (&e->text, "%s%s:%u", i ? " " : "", e->machine->name[n],
                           a->item[i].tasks);
        else
            strbuf_printf (&e->text, "%snode%u:%u", i ? " " : "", n + 1, a->item[i].tasks);
    }
    strbuf_putc (&e->text, '\n');
}

static void events_why (struct events *e, uint64_t index, const struct job_view *view)
{
    char text[512];
    free (e->never[index]);
    e->never[index] = strdup (reason_text (&view->reason, e->names, text, sizeof text));
    assert (e->never[index]);
}

static void events_planned (void *self, struct engine *engine, const struct plan *plan)
{
    struct events *e = self;
    struct job_view view;
    for (uint32_t i = 0; i < plan->start_count; i++) {
        uint64_t index = engine_index (engine, plan->start[i].job);
        events_row (e, plan->now, plan->start[i].phase == PLAN_RESUMED ? "resume" : "start", index,
                    TIME_US_NONE, &plan->start[i].allocation);
        free (e->never[index]);
        e->never[index] = NULL;
    }
    for (uint32_t i = 0; i < plan->preempt_count; i++)
        events_row (e, plan->now, "preempt", engine_index (engine, plan->preempt[i]), TIME_US_NONE,
                    NULL);
    for (uint32_t i = 0; i < plan->reservation_count; i++) {
        const struct plan_reservation *r = &plan->reservation[i];
        uint64_t index = engine_index (engine, r->job);
        if (e->promised[index] != r->start)
            events_row (e, plan->now, "promise", index, r->start, &r->allocation);
        e->promised[index] = r->start;
    }
    for (uint32_t i = 0; i < plan->defer_count; i++) {
        uint64_t index = engine_index (engine, plan->defer[i].job);
        events_row (e, plan->now, "defer", index, TIME_US_NONE, NULL);
        if (cluster_job_get (engine_cluster (engine), plan->defer[i].job, &view, NULL) == 0)
            events_why (e, index, &view);
    }
}

static void events_lapsed (void *self, struct engine *engine, uint64_t index, time_us now)
{
    struct events *e = self;
    struct job_view view;
    struct job_id id = {e->workload->job[index].number};
    events_row (e, now, "lapse", index, TIME_US_NONE, NULL);
    if (cluster_job_get (engine_cluster (engine), id, &view, NULL) == 0)
        events_why (e, index, &view);
}

static void events_ended (void *self, uint64_t index, time_us now)
{
    events_row (self, now, "end", index, TIME_US_NONE, NULL);
}

/* One that was put off again and again keeps the reason for that. */
static void events_stuck (void *self, struct engine *engine, uint64_t index,
                          const struct job_view *job)
{
    struct events *e = self;
    (void)engine;
    if (!e->never[index] ||
        (job->reason.code != REASON_HOLD && job->reason.code != REASON_DEFERRED))
        events_why (e, index, job);
}

struct engine_hooks events_hooks (struct events *e)
{
    return (struct engine_hooks){.self = e,
                                 .planned = events_planned,
                                 .ended = events_ended,
                                 .stuck = events_stuck,
                                 .lapsed = events_lapsed};
}

void events_csv (const struct events *e, struct strbuf *out)
{
    strbuf_puts (out, "time,event,job,at,hosts\n");
    if (e->text.len)
        strbuf_puts (out, strbuf_text ((struct strbuf *)&e->text));
}

const char *events_never (const struct events *e, uint64_t index)
{
    return e->never[index];
}
