/* The clock of a page. At one instant: ends, what [events] says, arrivals, then a pass (and another
 * for each that sent jobs back), then what [expect] says of this instant. There is a pass at each
 * moment that the page names and at each at which the core wants one. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/local/scenario.h"

static time_us job_ends (const struct scenario *s, const struct scn_job *j)
{
    duration_us run = cluster_job_scaled (s->cluster, (struct job_id){j->id},
                                          j->run == TIME_US_MAX ? j->spec.walltime_limit : j->run);

    return j->running ? j->start + (run - j->done) : TIME_US_MAX;
}

static void allocation_keep (struct scenario *s, struct scn_job *j, const struct allocation *a)
{
    j->last.count = a->count;
    j->last.item = arena_memdup (s->arena, a->item, a->count * sizeof *a->item);
}

void scenario_job_end (struct scenario *s, struct scn_job *j)
{
    struct err err = {0};

    scenario_must (s, 0, cluster_job_end (s->cluster, (struct job_id){j->id}, s->now, &err), &err);
    j->running = false;
    j->gone = true;
    j->end = s->now;
}

/* --- what waits for others ------------------------------------------------------------------ */

static enum depend_target target_of (const struct scn_job *j)
{
    if (!j->gone)
        return j->start != TIME_US_NONE || j->preempted ? DEPEND_TARGET_STARTED
                                                        : DEPEND_TARGET_WAITS;
    if (j->start == TIME_US_NONE)
        return DEPEND_TARGET_CANCELLED;
    return j->cancelled || j->timed_out || j->failing ? DEPEND_TARGET_FAILED
                                                      : DEPEND_TARGET_SUCCEEDED;
}

/* The worst of them. */
static enum depend_verdict depends_verdict (struct scenario *s, const struct scn_job *j)
{
    const struct line where = {0};
    enum depend_verdict worst = DEPEND_MET;

    for (const struct scn_depend *d = j->depends; d; d = d->next) {
        enum depend_verdict v = depend_check (d->kind, target_of (scenario_job (s, &where, d->on)));
        worst = v > worst ? v : worst;
    }
    return worst;
}

/* It can never run any more. */
static void lapse (struct scenario *s, struct scn_job *j)
{
    struct err err = {0};

    scenario_must (s, 0, cluster_job_remove (s->cluster, (struct job_id){j->id}, s->now, &err),
                   &err);
    j->gone = j->cancelled = true;
    j->end = s->now;
}

/* As the daemon does when something happened to any job. */
static bool depends_settle (struct scenario *s)
{
    bool changed = false;

    for (struct scn_job *j = s->first_job; j; j = j->next) {
        struct err err = {0};
        struct job_view view;
        if (!j->depends || !j->arrived || j->gone || j->running || j->suspended)
            continue;
        scenario_must (s, 0, cluster_job_get (s->cluster, (struct job_id){j->id}, &view, &err),
                       &err);
        uint32_t holds = view.spec->holds & ~(uint32_t)HOLD_DEPENDENCY;
        enum depend_verdict verdict = depends_verdict (s, j);
        if (verdict == DEPEND_NEVER) {
            lapse (s, j);
            changed = true;
            continue;
        }
        holds |= verdict == DEPEND_MET ? 0 : HOLD_DEPENDENCY;
        if (holds == view.spec->holds)
            continue;
        changed = true;
        scenario_must (
            s, 0, cluster_job_hold_set (s->cluster, (struct job_id){j->id}, holds, s->now, &err),
            &err);
    }
    return changed;
}

static void arrive (struct scenario *s, struct scn_job *j)
{
    struct err err = {0};

    j->arrived = true;
    scenario_place_job (s, j);
    scenario_must (s, 0, cluster_job_submit (s->cluster, &j->spec, s->now, &err), &err);
}

/* It ran when the page began: as a daemon finds it after a restart. */
static void begun (struct scenario *s, struct scn_job *j)
{
    const struct line where = {0};
    struct allocation a = {0};
    struct err err = {0};
    uint32_t *node, *tasks, left = j->req[0].tasks;

    arrive (s, j);
    uint32_t count = scenario_hosts (s, &where, j->nodes, &node, &tasks);
    a.item = arena_array (s->arena, count + 1, sizeof *a.item);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = tasks[i] ? tasks[i] : left / (count - i);
        left -= n < left ? n : left;
        a.item[a.count++] = (struct placement){.node = s->node[node[i]].id, .tasks = n};
    }
    scenario_must (
        s, 0, cluster_job_start (s->cluster, (struct job_id){j->id}, &a, j->begun, s->now, &err),
        &err);
    scenario_must (s, 0,
                   cluster_job_running (s->cluster, (struct job_id){j->id}, j->begun, s->now, &err),
                   &err);
    j->running = true;
    j->start = j->begun;
    allocation_keep (s, j, &a);
}

/* --- SRCFG -------------------------------------------------------------------------------------- */

static const char *node_name (void *self, uint32_t node)
{
    struct scenario *s = self;

    for (uint32_t i = 0; i < s->node_count; i++) {
        if (s->node[i].id.v == node)
            return s->node[i].name;
    }
    return "";
}

static uint32_t feature (void *self, const char *name)
{
    return strtab_find (((struct scenario *)self)->features, name);
}

static uint32_t partition (void *self, const char *name)
{
    uint32_t at = strtab_find (((struct scenario *)self)->names.partition, name);

    return at == STRTAB_NONE ? PARTITION_ANY : at + 1;
}

struct rsv_id scenario_reservation (void *self, const char *name)
{
    return (struct rsv_id){UINT64_C (1) << 61 |
                           strtab_intern (((struct scenario *)self)->reservations, name)};
}

static const char *reservation_name (void *self, uint64_t rsv)
{
    struct scenario *s = self;
    struct standing_view view;

    if (rsv >> 61 & 1)
        return strtab_name (s->reservations, (uint32_t)rsv);
    return standing_get (s->standing, s->cluster, rsv, &view) ? view.policy->name : NULL;
}

static void standing_open (struct scenario *s)
{
    struct standing_site site = {.self = s,
                                 .node_name = node_name,
                                 .feature = feature,
                                 .partition = partition,
                                 .named = scenario_reservation};

    s->standing = standing_create (&site);
    s->names.rsv_name = reservation_name;
    s->names.rsv_self = s;
}

static void cluster_build (struct scenario *s)
{
    struct cluster_options options = {0};
    struct err err = {0};

    standing_open (s);
    s->cluster = cluster_create (s->policy, &options, &err);
    if (!s->cluster)
        scenario_bad (s, 0, "%s", err.text);
    scenario_place_nodes (s);
}

/* --- passes --------------------------------------------------------------------------------- */

static struct scn_job *job_of (struct scenario *s, struct job_id id)
{
    struct scn_job *j = s->first_job;

    while (j->id != id.v)
        j = j->next;
    return j;
}

static void started (struct scenario *s, const struct plan_start *start)
{
    struct scn_job *j = job_of (s, start->job);
    struct err err = {0};

    j->running = true;
    j->suspended = false;
    j->start = s->now;
    j->phase = start->phase;
    allocation_keep (s, j, &start->allocation);
    if (start->phase == PLAN_RESUMED)
        return;
    j->done = 0;
    if (j->bad_starts > 0) {
        j->bad_starts--;
        scenario_job_start_failed (s, j);
        return;
    }
    scenario_must (s, 0, cluster_job_running (s->cluster, start->job, s->now, s->now, &err), &err);
}

/* By PREEMPTPOLICY, at once. */
static void evict (struct scenario *s, struct scn_job *j)
{
    struct job_id id = {j->id};
    struct err err = {0};
    int rc;

    j->running = false;
    j->preempted++;
    if (s->policy->preempt_policy == PREEMPT_CANCEL) {
        j->running = true;
        j->cancelled = true;
        scenario_job_end (s, j);
        return;
    }
    if (s->policy->preempt_policy == PREEMPT_SUSPEND) {
        j->suspended = true;
        j->done += s->now - j->start;
        rc = cluster_job_suspend (s->cluster, id, s->now, &err);
    } else {
        j->start = TIME_US_NONE;
        rc = cluster_job_preempt (s->cluster, id, s->now, &err);
    }
    scenario_must (s, 0, rc, &err);
}

static void violates (struct scenario *s, struct scn_job *j)
{
    struct err err = {0};

    if (s->policy->wcviolation_action == WCVIOLATION_PREEMPT) {
        j->running = false;
        j->preempted++;
        j->start = TIME_US_NONE;
        scenario_must (s, 0, cluster_job_preempt (s->cluster, (struct job_id){j->id}, s->now, &err),
                       &err);
        return;
    }
    j->timed_out = true;
    scenario_job_end (s, j);
}

static void deferral_apply (struct scenario *s, struct scn_job *j, struct deferral d)
{
    struct err err = {0};
    struct job_view view;

    if (d.until == TIME_US_NONE)
        return;
    j->deferrals++;
    scenario_must (s, 0, cluster_job_get (s->cluster, (struct job_id){j->id}, &view, &err), &err);
    scenario_must (s, 0,
                   d.batch_hold ? cluster_job_hold_set (s->cluster, (struct job_id){j->id},
                                                        view.spec->holds | HOLD_BATCH, s->now, &err)
                                : cluster_job_defer (s->cluster, (struct job_id){j->id}, d.until,
                                                     s->now, &err),
                   &err);
}

void scenario_job_start_failed (struct scenario *s, struct scn_job *j)
{
    struct err err = {0};
    struct deferral d = defer_start_failed (s->policy, ++j->start_failures, j->deferrals, s->now);

    bool later = d.until != TIME_US_NONE && !d.batch_hold;

    scenario_must (
        s, 0,
        cluster_job_requeue (s->cluster, (struct job_id){j->id}, later ? d.until : 0, s->now, &err),
        &err);
    j->running = false;
    j->start = TIME_US_NONE;
    j->deferrals += later;
    if (!later)
        deferral_apply (s, j, d);
    s->again = true;
}

static void pass (struct scenario *s)
{
    struct err err = {0};
    bool again;

    do {
        arena_reset (s->pass_arena);
        s->again = false;
        standing_roll (s->standing, s->cluster, s->now);
        scenario_must (s, 0, plan_compute (s->cluster, s->now, s->pass_arena, &s->plan, &err),
                       &err);
        scenario_must (s, 0, plan_commit (s->cluster, &s->plan, &err), &err);
        for (uint32_t i = 0; i < s->plan.start_count; i++)
            started (s, &s->plan.start[i]);
        for (uint32_t i = 0; i < s->plan.preempt_count; i++)
            evict (s, job_of (s, s->plan.preempt[i]));
        for (uint32_t i = 0; i < s->plan.violation_count; i++)
            violates (s, job_of (s, s->plan.violation[i]));
        for (uint32_t i = 0; i < s->plan.defer_count; i++) {
            struct scn_job *j = job_of (s, s->plan.defer[i].job);
            deferral_apply (s, j, defer_next (s->policy, j->deferrals, s->now));
        }
        for (uint32_t i = 0; i < s->plan.lapsed_count; i++)
            lapse (s, job_of (s, s->plan.lapsed[i]));
        again = depends_settle (s) || s->plan.lapsed_count;
        again = again || s->again || s->plan.preempt_count || s->plan.violation_count ||
                s->plan.defer_count;
    } while (again);
}

/* --- the clock ------------------------------------------------------------------------------ */

static time_us line_time (const struct scenario *s, const struct line *line)
{
    return scenario_time (s, line, line->word[0]);
}

/* The first moment after `after` at which the page or the core has something to do. */
static time_us next_moment (const struct scenario *s, time_us after, time_us last)
{
    time_us at = cluster_next_wakeup (s->cluster, after), t;

    for (const struct line *line = s->events.first; line; line = line->next) {
        t = line_time (s, line);
        at = t > after && t < at ? t : at;
    }
    for (const struct line *line = s->expect.first; line; line = line->next) {
        t = line_time (s, line);
        at = t > after && t < at ? t : at;
    }
    for (const struct scn_job *j = s->first_job; j; j = j->next) {
        t = j->arrived ? job_ends (s, j) : j->spec.submit;
        at = t > after && t < at ? t : at;
    }
    return at > last ? TIME_US_MAX : at;
}

static void instant (struct scenario *s)
{
    for (struct scn_job *j = s->first_job; j; j = j->next) {
        if (job_ends (s, j) <= s->now)
            scenario_job_end (s, j);
    }
    for (const struct line *line = s->events.first; line; line = line->next) {
        if (line_time (s, line) == s->now)
            scenario_event (s, line);
    }
    for (struct scn_job *j = s->first_job; j; j = j->next) {
        if (!j->arrived && j->spec.submit <= s->now)
            arrive (s, j);
    }
    (void)depends_settle (s);
    pass (s);
    for (const struct line *line = s->expect.first; line; line = line->next) {
        if (line_time (s, line) == s->now)
            scenario_check (s, line);
    }
}

void scenario_run (struct scenario *s)
{
    time_us last = s->base;

    s->now = s->base;
    for (const struct line *line = s->expect.first; line; line = line->next) {
        time_us t = line_time (s, line);
        if (t < s->base)
            scenario_bad (s, line->number, "before the beginning");
        last = t > last ? t : last;
    }
    cluster_build (s);
    for (struct scn_job *j = s->first_job; j; j = j->next) {
        if (j->nodes)
            begun (s, j);
    }
    for (; s->now != TIME_US_MAX; s->now = next_moment (s, s->now, last))
        instant (s);
}
