/* Looks at Slurm: nodes and partitions, then jobs, every so often and when something was asked for.
 * A look is whole now and then; in between only changes are asked for, which slurmrestd answers
 * with everything or with nothing (304). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/rm/slurm/slurm_i.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

enum {
    LIGHT_LOOKS = 5,
    STATES_FROM = 500, /* so many jobs are not read whole for each change */
    WATCHED_ONE_BY_ONE = 16,
    WATCHED_BY_STATE = 256,
};
static const duration_us watch_every = US_PER_S / 4, retry_first = US_PER_S / 2,
                         retry_last = 10 * US_PER_S;

void slurm_timer_set (struct event *timer, duration_us d)
{
    struct timeval t = {.tv_sec = d / US_PER_S, .tv_usec = d % US_PER_S};
    evtimer_add (timer, &t);
}

static void tell (struct slurm *slurm, enum rm_event_kind kind)
{
    struct rm_event event = {.kind = kind};
    slurm->on_event (slurm->arg, &event);
}

static void look_end (struct slurm *slurm, duration_us next);

void slurm_unreachable (struct slurm *slurm, const struct slurm_answer *answer)
{
    char quoted[600];
    if (slurm->telling) { /* that look was before */
        slurm->telling = false;
        look_end (slurm, retry_first);
    }
    if (!slurm->fresh && slurm->ever_looked && strcmp (answer->text, slurm->why) == 0)
        return;
    text_printf (slurm->why, sizeof slurm->why, "%s", answer->text);
    log_event (slurm->log, LOG_LEVEL_WARN, "slurm", "unreachable",
               "error=%s reason=\"nothing is decided until Slurm answers again\"",
               log_quote (answer->text, quoted, sizeof quoted));
    slurm->ever_looked = true;
    if (slurm->fresh) {
        slurm->fresh = false;
        tell (slurm, RM_EVENT_REACH);
    }
    if (!slurm->looking)
        slurm_timer_set (slurm->poll_timer, retry_first);
}

static void jobs_ask (struct slurm *slurm);
static void look_failed (struct slurm *slurm, const struct slurm_answer *answer);

/* --- reservations ------------------------------------------------------------------------- */

static void on_reservations_done (void *arg, const struct slurm_answer *answer)
{
    struct slurm *slurm = arg;
    if (answer->code != 0) {
        look_failed (slurm, answer);
        return;
    }
    slurm_resv_looked (slurm);
    jobs_ask (slurm);
}

static void reservations_ask (struct slurm *slurm)
{
    struct slurm_request request = {.method = "GET",
                                    .path = "reservations",
                                    .on_object = slurm_resv_on_object,
                                    .on_done = on_reservations_done,
                                    .arg = slurm};
    slurm->resv_look++;
    slurm_rest_send (slurm->rest, &request);
}

static void on_licences_done (void *arg, const struct slurm_answer *answer)
{
    struct slurm *slurm = arg;
    if (answer->code != 0 && answer->code != ERR_NOT_FOUND) {
        look_failed (slurm, answer);
        return;
    }
    /* v0.0.37 has no such list (404): no licence is counted then. */
    slurm_nodes_settle (slurm, slurm->nodes_unchanged);
    if (*slurm->resv_prefix)
        reservations_ask (slurm);
    else
        jobs_ask (slurm);
}

static void licences_ask (struct slurm *slurm)
{
    struct slurm_request request = {.method = "GET",
                                    .path = "licenses",
                                    .on_object = slurm_on_licence,
                                    .on_done = on_licences_done,
                                    .arg = slurm};
    strbuf_clear (&slurm->licences_now);
    slurm_rest_send (slurm->rest, &request);
}

/* --- jobs --------------------------------------------------------------------------------- */

void slurm_batch_tell (struct slurm *slurm)
{
    struct rm_event event = {
        .kind = RM_EVENT_NATIVE, .native = slurm->batch, .native_count = slurm->batch_count};
    if (slurm->batch_count > 0)
        slurm->on_event (slurm->arg, &event);
    slurm->batch_count = 0; /* what it pointed to goes when the next entry is parsed */
}

/* A job that carries our comment belongs to the one it names: if that is of this state (rm.h: mark), and its
 * user the one for whom it was submitted. */
static struct slurm_job *by_comment (struct slurm *slurm, const struct slurm_seen *seen)
{
    char id[JOBDIR_KEY_MAX], mark[RM_MARK_MAX] = "";
    unsigned incarnation;
    static_assert (JOBDIR_KEY_MAX == 96 && RM_MARK_MAX == 65, "widths of the scan");
    if (sscanf (seen->comment, "nui:%95[^:]:%u:%64s", id, &incarnation, mark) < 2)
        return NULL;
    struct slurm_job *job = slurm_job_by_id (slurm, id, incarnation);
    if (!job || *job->rm_id || strcmp (job->mark, mark) != 0 ||
        (job->user && strcmp (job->user, seen->native.user) != 0))
        return NULL; /* not waited for, or another's */
    slurm_job_rm_id (job, seen->native.rm_id);
    job->submit = seen->native.submit;
    job->phase = job->phase == PHASE_FIND || job->phase == PHASE_SUBMIT ? PHASE_LATER : job->phase;
    struct rm_event event = {.kind = RM_EVENT_HANDED,
                             .job_id = job->job_id,
                             .incarnation = incarnation,
                             .rm_id = job->rm_id};
    slurm->on_event (slurm->arg, &event);
    return job;
}

/* Ours whose answer is still on its way, or that nobody waits for any more. */
static bool ours_unknown (const struct slurm_seen *seen)
{
    return strncmp (seen->comment, "nui:", 4) == 0;
}

static void native_tell (struct slurm *slurm, struct slurm_job *job, const struct rm_native *native)
{
    struct rm_native told = *native;
    bool runs =
        job->state == SLURM_RUNNING || job->state == SLURM_SUSPENDED || job->state == SLURM_ENDED;
    told.unasked = runs && !job->asked;
    told.job_id = *job->job_id ? arena_strdup (slurm->arena, job->job_id) : NULL;
    /* Put there by us: what somebody else moves there is not ours to start. */
    bool ours = (job->class_name && *job->class_name) || job->restarts || job->ran_since;
    if (job->native && ours && strcmp (told.class_name, slurm->partition) == 0)
        told.class_name = arena_strdup (slurm->arena, slurm_job_class (job));
    if (job->phase != PHASE_NONE || strcmp (job->partition, slurm->partition) == 0) {
        told.hosts = job->hosts_wanted ? arena_strdup (slurm->arena, job->hosts_wanted) : "";
        told.nodes_min = job->nodes_min ? job->nodes_min : told.nodes_min;
        told.nodes_max = job->nodes_max;
    }
    uint64_t digest = rm_native_digest (&told);
    if (digest == job->digest)
        return;
    job->digest = digest;
    slurm->batch[slurm->batch_count++] = told;
    if (slurm->batch_count == SLURM_BATCH)
        slurm_batch_tell (slurm);
}

void slurm_seen_take (struct slurm *slurm, const struct slurm_seen *seen)
{
    const struct rm_native *n = &seen->native;
    struct slurm_job *job = slurm_job_by_rm (slurm, n->rm_id);
    if (job && job->submit && job->submit != n->submit && !job->phase && !job->busy &&
        !*job->job_id) {
        slurm_job_free (job); /* Slurm counts anew: another job of the same number */
        job = NULL;
    }
    if (!job)
        job = by_comment (slurm, seen);
    if (!job && ours_unknown (seen))
        return;
    if (!job && strcmp (seen->partition, slurm->partition) != 0 &&
        !slurm_class_ours (slurm->only, seen->partition))
        return; /* of the part of the cluster that is Slurm's */
    if (!job) {
        bool ran = seen->state == SLURM_ENDED && n->start;
        if (seen->state == SLURM_ENDED && !ran)
            return;
        if (HASH_COUNT (slurm->jobs) >= RM_SLURM_JOBS_MAX)
            return;
        job = slurm_job_new (slurm, n->rm_id, n->submit);
    }
    job->submit = n->submit;
    if (job->digest == 1 && seen->state == SLURM_ENDED) { /* told */
        job->seen = slurm->look;
        return;
    }
    if (job->digest == 1) /* someone requeued what had ended */
        job->digest = 0;
    bool counts = !job->busy && job->written <= slurm->look;
    slurm_job_seen (job, seen, false);
    if (job->native && counts && (seen->state != SLURM_ENDED || !*job->job_id) &&
        slurm_job_by_rm (slurm, n->rm_id) == job && job->digest != 1)
        native_tell (slurm, job, n);
}

struct task_arg {
    struct slurm *slurm;
    struct slurm_seen *seen;
};

static void on_task (void *arg, uint32_t task)
{
    struct task_arg *t = arg;
    t->seen->native.rm_id =
        arena_printf (t->slurm->arena, "%lld_%u", (long long)t->seen->array_id, task);
    t->seen->number = 0;
    slurm_seen_take (t->slurm, t->seen);
}

void slurm_batch_room (struct slurm *slurm)
{
    if (slurm->batch_count > SLURM_BATCH / 2)
        slurm_batch_tell (slurm);
    if (slurm->batch_count == 0)
        arena_reset (slurm->arena);
}

static int seen_take (struct slurm *slurm, json_t *object, struct err *err)
{
    struct slurm_seen seen;
    slurm_batch_room (slurm);
    int rc = slurm_parse_job (object, slurm->partition, slurm->arena, &seen, err);
    if (rc != 0)
        return rc;
    if (seen.array_id > 0 && *seen.tasks) { /* tasks that have no record of their own yet */
        struct task_arg t = {slurm, &seen};
        slurm_tasks_each (seen.tasks, RM_SLURM_JOBS_MAX, on_task, &t);
        return 0;
    }
    slurm_seen_take (slurm, &seen);
    return 0;
}

static int on_job (void *arg, const char *key, json_t *object, struct err *err)
{
    struct slurm *slurm = arg;
    if (strcmp (key, "jobs") != 0)
        return 0;
    slurm->entries++;
    return seen_take (slurm, object, err);
}

/* Those that a whole look did not find. */
static void missing_settle (struct slurm *slurm)
{
    struct slurm_job *job, *next;
    HASH_ITER (hh, slurm->jobs, job, next) {
        if (job->seen == slurm->look || job->busy || job->written > slurm->look)
            continue;
        if (!*job->job_id) {
            slurm_job_free (job);
        } else if (!job->gone) {
            job->gone = true; /* twice in a row, then it is believed */
            slurm->look_again = true;
        } else {
            slurm_done_find (job);
        }
    }
    HASH_ITER (hh_id, slurm->by_id, job, next) {
        if (*job->rm_id || job->phase != PHASE_FIND || job->busy || job->written > slurm->look)
            continue;
        struct rm_status cancelled = {.ended = true, .end = RM_END_CANCELLED};
        if (job->submission && job->cancel) {
            slurm_job_finish (job, &cancelled);
            slurm_job_free (job);
        } else if (job->submission) { /* its answer was lost and it is not there: again */
            job->phase = PHASE_SUBMIT;
            slurm_job_settle (job);
        } else {
            slurm_done_find (job);
        }
    }
}

/* --- a look ------------------------------------------------------------------------------- */

static void look_end (struct slurm *slurm, duration_us next)
{
    slurm->looking = false;
    if (slurm->look_again) {
        slurm->look_again = false;
        next = US_PER_S / 20;
    }
    slurm_timer_set (slurm->poll_timer, next);
}

static void look_failed (struct slurm *slurm, const struct slurm_answer *answer)
{
    slurm->look_lightly = LIGHT_LOOKS; /* the next one is whole */
    slurm_batch_tell (slurm);          /* what was read is so */
    slurm_unreachable (slurm, answer);
    slurm->retry = slurm->retry ? slurm->retry * 2 : retry_first;
    if (slurm->retry > retry_last)
        slurm->retry = retry_last;
    if (slurm->retry > slurm->poll_every)
        slurm->retry = slurm->poll_every;
    look_end (slurm, slurm->retry);
}

static void settle_all (struct slurm *slurm)
{
    struct slurm_job *job, *next;
    HASH_ITER (hh_id, slurm->by_id, job, next)
        slurm_job_settle_soon (job);
}

/* All that the look found is told of: only now anything may be decided by it. */
void slurm_look_told (struct slurm *slurm)
{
    if (!slurm->telling)
        return;
    slurm->telling = false;
    bool news = !slurm->fresh;
    slurm->fresh = slurm->ever_looked = true;
    if (news) {
        log_event (slurm->log, LOG_LEVEL_INFO, "slurm", "reached", "version=%s nodes=%u jobs=%u",
                   slurm_rest_api (slurm->rest)->name, slurm->node_count, HASH_COUNT (slurm->jobs));
        tell (slurm, RM_EVENT_REACH);
    }
    slurm_resv_settle (slurm);
    if (news)
        settle_all (slurm); /* what waited for that */
    if (news && slurm->settled)
        slurm_done_catch_up (slurm, slurm->settled);
    if (slurm_done_idle (slurm))
        slurm->settled = slurm->look_begun;
    look_end (slurm, slurm->poll_every);
}

/* "Nothing changed" is, from v0.0.40 on, an empty list with a remark. So is a list that became empty: which it was,
 * the next whole look tells. */
static bool unchanged_since (const struct slurm *slurm, const struct slurm_answer *answer)
{
    return answer->unchanged || (slurm->look_partly && slurm->entries == 0);
}

static void on_jobs_done (void *arg, const struct slurm_answer *answer)
{
    struct slurm *slurm = arg;
    if (answer->code != 0) {
        look_failed (slurm, answer);
        return;
    }
    slurm_batch_tell (slurm);
    slurm->look_since = slurm->look_begun;
    slurm->retry = 0;
    if (!unchanged_since (slurm, answer))
        missing_settle (slurm);
    slurm->telling = true;
    settle_all (slurm);
    if (!slurm->unsettled)
        slurm_look_told (slurm);
}

/* The whole list, or with since, where the API allows, what changed since the last look. */
static void list_ask (struct slurm *slurm, const char *list, bool since,
                      int (*on_object) (void *arg, const char *key, json_t *object,
                                        struct err *err),
                      void (*on_done) (void *arg, const struct slurm_answer *answer))
{
    char path[64];
    struct slurm_request request = {
        .method = "GET", .path = path, .on_object = on_object, .on_done = on_done, .arg = slurm};
    snprintf (path, sizeof path, "%s", list);
    const struct slurm_api *api = slurm_rest_api (slurm->rest);
    slurm->look_partly = since && (strcmp (list, "jobs") == 0 ? api->jobs_since : api->nodes_since);
    slurm->entries = 0;
    if (slurm->look_partly)
        /* a second and more to be sure: clocks, and Slurm's whole seconds. v0.0.41 takes seconds only so marked */
        snprintf (path, sizeof path, "%s?update_time=%s%lld", list,
                  api->number >= SLURM_API_LISTS ? "uts" : "",
                  (long long)(slurm->look_since / US_PER_S - 3));
    slurm_rest_send (slurm->rest, &request);
}

static void on_states (struct slurm *slurm, const struct slurm_answer *answer)
{
    slurm->look_partly = false;
    if (answer->code == ERR_LIMIT) /* too much is new */
        list_ask (slurm, "jobs", false, on_job, on_jobs_done);
    else
        on_jobs_done (slurm, answer);
}

static void jobs_ask (struct slurm *slurm)
{
    slurm->look++;
    if (slurm->light && !slurm->only && HASH_COUNT (slurm->jobs) >= STATES_FROM &&
        slurm_rest_api (slurm->rest)->jobs_state)
        slurm_states_ask (slurm, NULL, on_job, on_states);
    else
        list_ask (slurm, "jobs", slurm->light, on_job, on_jobs_done);
}

static void nodes_ask (struct slurm *slurm, bool since);

/* Slurm 22.05 answers 500, and no more, where nodes have changed since and partitions have not. */
static void on_nodes_done (void *arg, const struct slurm_answer *answer)
{
    struct slurm *slurm = arg;
    bool since = slurm->nodes_since;
    slurm->nodes_unchanged = unchanged_since (slurm, answer);
    if (answer->code == ERR_CONFLICT && since)
        nodes_ask (slurm, false);
    else if (answer->code != 0)
        look_failed (slurm, answer);
    else
        licences_ask (slurm);
}

static void nodes_ask (struct slurm *slurm, bool since)
{
    slurm->nodes_since = since;
    slurm_nodes_begin (slurm);
    list_ask (slurm, "nodes", since, slurm_on_node, on_nodes_done);
}

static void on_partitions_done (void *arg, const struct slurm_answer *answer)
{
    struct slurm *slurm = arg;
    if (answer->code != 0)
        look_failed (slurm, answer);
    else
        nodes_ask (slurm, slurm->light);
}

static void on_poll (evutil_socket_t fd, short what, void *arg)
{
    struct slurm *slurm = arg;
    (void)fd;
    (void)what;
    if (slurm->looking)
        return;
    slurm->looking = true;
    slurm->light = slurm->look_lightly < LIGHT_LOOKS && slurm->look_since > 0;
    slurm->look_lightly = slurm->light ? slurm->look_lightly + 1 : 0;
    slurm->look_begun = clock_now_us ();
    if (slurm->fresh && slurm->class_count > 0) {
        nodes_ask (slurm, slurm->light);
        return;
    }
    slurm->class_count = 0;
    *slurm->default_class = 0;
    slurm->default_told = false;
    struct slurm_request request = {.method = "GET",
                                    .path = "partitions",
                                    .on_object = slurm_on_partition,
                                    .on_done = on_partitions_done,
                                    .arg = slurm};
    slurm_rest_send (slurm->rest, &request);
}

void slurm_look (struct slurm *slurm, bool whole)
{
    if (whole)
        slurm->look_lightly = LIGHT_LOOKS;
    if (slurm->looking)
        slurm->look_again = true;
    else if (slurm->fresh || !slurm->ever_looked)
        slurm_timer_set (slurm->poll_timer, 0);
}

/* --- watching a few ----------------------------------------------------------------------- */

static bool watched (const struct slurm_job *job)
{
    return *job->rm_id && !job->owner->observe && job->state != SLURM_ENDED &&
           (job->phase == PHASE_WATCH || (job->started_told && !job->guarded));
}

static int on_watched_job (void *arg, const char *key, json_t *object, struct err *err)
{
    struct slurm *slurm = arg;
    struct slurm_seen seen;
    if (strcmp (key, "jobs") != 0)
        return 0;
    struct arena *arena = arena_create (0);
    int rc = slurm_parse_job (object, slurm->partition, arena, &seen, err);
    struct slurm_job *job = rc == 0 ? slurm_job_by_rm (slurm, seen.native.rm_id) : NULL;
    if (job && job->submit == seen.native.submit)
        slurm_job_seen (job, &seen, job->watched);
    arena_destroy (arena);
    return rc;
}

static void on_watched_done (void *arg, const struct slurm_answer *answer)
{
    if (answer->code == ERR_UNAVAILABLE || answer->code == ERR_DENIED)
        slurm_unreachable (arg, answer);
}

static void on_watched_states (struct slurm *slurm, const struct slurm_answer *answer)
{
    slurm->watching = false;
    on_watched_done (slurm, answer);
}

/* One by one; by the list where that cannot be. */
static void watch_each (struct slurm *slurm, struct slurm_job *const *job, uint32_t count)
{
    bool all = count > WATCHED_ONE_BY_ONE;
    for (uint32_t i = 0; i < count; i++)
        all |= job[i]->number ==
               0; /* a task without a record of its own can be found in the list only */
    if (all)
        slurm_look (slurm, true);
    for (uint32_t i = 0; !all && i < count; i++) {
        char path[SLURM_ID_MAX + 8];
        struct slurm_request request = {.method = "GET",
                                        .path = path,
                                        .on_object = on_watched_job,
                                        .on_done = on_watched_done,
                                        .arg = slurm};
        snprintf (path, sizeof path, "job/%lld", (long long)job[i]->number);
        job[i]->watched = !job[i]->busy;
        slurm_rest_send (slurm->rest, &request);
    }
    if (count > 0)
        slurm_timer_set (slurm->watch_timer, all ? US_PER_S : watch_every);
}

static void on_watch (evutil_socket_t fd, short what, void *arg)
{
    struct slurm *slurm = arg;
    struct slurm_job *job, *next, *found[WATCHED_BY_STATE];
    uint32_t count = 0;
    (void)fd;
    (void)what;
    HASH_ITER (hh_id, slurm->by_id, job, next)
        if (count < WATCHED_BY_STATE && watched (job))
            found[count++] = job;
    if (count <= WATCHED_ONE_BY_ONE || !slurm_rest_api (slurm->rest)->jobs_state) {
        watch_each (slurm, found, count);
        return;
    }
    struct strbuf ids = STRBUF_INIT;
    for (uint32_t i = 0; i < count && !slurm->watching; i++) {
        strbuf_printf (&ids, "%s%s", i ? "," : "", found[i]->rm_id);
        found[i]->watched = !found[i]->busy;
    }
    if (!slurm->watching)
        slurm_states_ask (slurm, strbuf_text (&ids), on_watched_job, on_watched_states);
    slurm->watching = true;
    strbuf_free (&ids);
    slurm_timer_set (slurm->watch_timer, watch_every);
}

void slurm_watch (struct slurm *slurm)
{
    if (!evtimer_pending (slurm->watch_timer, NULL))
        slurm_timer_set (slurm->watch_timer, watch_every / 4);
}

int slurm_poll_init (struct slurm *slurm, struct err *err)
{
    slurm->arena = arena_create (0);
    slurm->poll_timer = evtimer_new (slurm->base, on_poll, slurm);
    slurm->watch_timer = evtimer_new (slurm->base, on_watch, slurm);
    if (!slurm->poll_timer || !slurm->watch_timer)
        return err_set (err, ERR_NOMEM, "Slurm: no memory for timers");
    slurm->look_lightly = LIGHT_LOOKS;
    slurm_timer_set (slurm->poll_timer, 0);
    return 0;
}

void slurm_poll_stop (struct slurm *slurm)
{
    if (slurm->poll_timer)
        event_free (slurm->poll_timer);
    if (slurm->watch_timer)
        event_free (slurm->watch_timer);
    slurm_nodes_stop (slurm);
    if (slurm->arena)
        arena_destroy (slurm->arena);
}
