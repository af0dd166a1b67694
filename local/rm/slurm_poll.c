/* Looks at Slurm: nodes and partitions, then jobs, every so often and when something was asked for.
 * A look is whole now and then; in between only changes are asked for, which slurmrestd answers
 * with everything or with nothing (304). */
#include <stdlib.h>
#include <string.h>

#include "local/rm/slurm_i.h"
#include "proto/base/clock.h"

enum { LIGHT_LOOKS = 5, WATCHED_ONE_BY_ONE = 16 };
static const duration_us watch_every = US_PER_S / 4, retry_first = US_PER_S / 2,
                         retry_last = 10 * US_PER_S;

static void timer_set (struct event *timer, duration_us d)
{
    struct timeval t = {.tv_sec = d / US_PER_S, .tv_usec = d % US_PER_S};
    evtimer_add (timer, &t);
}

static void tell (struct slurm *slurm, enum rm_event_kind kind)
{
    struct rm_event event = {.kind = kind};
    slurm->on_event (slurm->arg, &event);
}

void slurm_unreachable (struct slurm *slurm, const struct slurm_answer *answer)
{
    char quoted[600];
    if (!slurm->fresh && slurm->ever_looked)
        return;
    log_event (slurm->log, LOG_LEVEL_WARN, "slurm", "unreachable",
               "error=%s reason=\"nothing is decided until Slurm answers again\"",
               log_quote (answer->text, quoted, sizeof quoted));
    slurm->ever_looked = true;
    if (slurm->fresh) {
        slurm->fresh = false;
        tell (slurm, RM_EVENT_REACH);
    }
    if (!slurm->looking)
        timer_set (slurm->poll_timer, retry_first);
}

/* --- nodes -------------------------------------------------------------------------------- */

static bool node_same (const struct rm_node *a, const struct rm_node *b)
{
    return a->state == b->state && a->procs == b->procs && a->memory_mb == b->memory_mb &&
           a->disk_mb == b->disk_mb && a->weight == b->weight &&
           strcmp (a->reason, b->reason) == 0 && strcmp (a->features, b->features) == 0 &&
           strcmp (a->gres, b->gres) == 0 && strcmp (a->classes, b->classes) == 0 &&
           strcmp (a->address, b->address) == 0;
}

static int on_node (void *arg, const char *key, json_t *object, struct err *err)
{
    struct slurm *slurm = arg;
    struct slurm_node *old;
    if (strcmp (key, "nodes") != 0)
        return 0;
    struct slurm_node *node = slurm_parse_node (object, slurm->partition, err);
    if (!node)
        return err->code;
    HASH_FIND_STR (slurm->nodes, node->node.name, old);
    if (!old && HASH_COUNT (slurm->nodes) >= RM_SLURM_NODES_MAX) {
        slurm_node_free (node);
        return err_set (err, ERR_LIMIT, "Slurm has more than %d nodes", RM_SLURM_NODES_MAX);
    }
    if (old) {
        slurm->nodes_changed |= !node_same (&old->node, &node->node);
        free (old->text);
        old->text = node->text;
        HASH_DEL (slurm->nodes, old);
        old->node = node->node;
        old->threads = node->threads;
        free (node);
        node = old;
    } else {
        slurm->nodes_changed = true;
    }
    HASH_ADD_KEYPTR (hh, slurm->nodes, node->node.name, strlen (node->node.name), node);
    node->seen = true;
    node->order = slurm->nodes_seen++;
    return 0;
}

static int node_order (const void *a, const void *b)
{
    const struct rm_node *x = a, *y = b;
    return strverscmp (x->name, y->name);
}

static void nodes_settle (struct slurm *slurm)
{
    struct slurm_node *node, *next;
    HASH_ITER (hh, slurm->nodes, node, next)
    {
        if (!node->seen) {
            HASH_DEL (slurm->nodes, node);
            slurm_node_free (node);
            slurm->nodes_changed = true;
            continue;
        }
        node->seen = false;
    }
    free (slurm->node_list); /* its texts are those of the last poll */
    slurm->node_count = HASH_COUNT (slurm->nodes);
    slurm->node_list = calloc (slurm->node_count + 1, sizeof *slurm->node_list);
    uint32_t n = 0;
    HASH_ITER (hh, slurm->nodes, node, next)
    slurm->node_list[n++] = node->node;
    qsort (slurm->node_list, n, sizeof *slurm->node_list, node_order);
    tell (slurm, slurm->nodes_changed ? RM_EVENT_NODES : RM_EVENT_LOADS);
    slurm->nodes_changed = false;
}

/* --- partitions --------------------------------------------------------------------------- */

static int on_partition (void *arg, const char *key, json_t *object, struct err *err)
{
    struct slurm *slurm = arg;
    const char *name;
    if (strcmp (key, "partitions") != 0)
        return 0;
    if (slurm_text (object, "a partition", "name", true, &name, err) != 0)
        return err->code;
    if (strcmp (name, slurm->partition) == 0)
        return 0;
    struct slurm_class *more =
        realloc (slurm->classes, (slurm->class_count + 1) * sizeof *slurm->classes);
    if (!more)
        return err_set (err, ERR_NOMEM, "no memory for partitions");
    slurm->classes = more;
    snprintf (more[slurm->class_count++].name, sizeof more->name, "%s", name);
    if (slurm_has_word (object, "flags", "default") || !*slurm->default_class)
        snprintf (slurm->default_class, sizeof slurm->default_class, "%s", name);
    /* Up: Slurm's own scheduler would start what users submit there. */
    const char *state = "";
    if (!slurm->observe && slurm_text (object, "a partition", "state", false, &state, NULL) == 0 &&
        strcmp (state, "UP") == 0)
        log_event (
            slurm->log, LOG_LEVEL_WARN, "slurm", "partition_up",
            "partition=%s reason=\"Slurm itself starts jobs of this partition; set its State "
            "to DOWN\"",
            name);
    return 0;
}

/* --- licences ----------------------------------------------------------------------------- */

static int on_licence (void *arg, const char *key, json_t *object, struct err *err)
{
    struct slurm *slurm = arg;
    const char *name;
    int64_t total, reserved;
    if (strcmp (key, "licenses") != 0)
        return 0;
    if (slurm_text (object, "a licence", "LicenseName", true, &name, err) != 0 ||
        slurm_int (object, name, "Total", true, 0, &total, err) != 0 ||
        slurm_int (object, name, "Reserved", false, 0, &reserved, err) != 0)
        return err->code;
    strbuf_printf (&slurm->licences_now, "%s%s:%lld", slurm->licences_now.len ? "," : "", name,
                   (long long)(total > reserved ? total - reserved : 0));
    return 0;
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
    const char *now = strbuf_text (&slurm->licences_now);
    if (strcmp (now, slurm->licences ? slurm->licences : "") != 0) {
        free (slurm->licences);
        slurm->licences = strdup (now);
        slurm->nodes_changed = true;
    }
    nodes_settle (slurm);
    if (*slurm->resv_prefix)
        reservations_ask (slurm);
    else
        jobs_ask (slurm);
}

static void licences_ask (struct slurm *slurm)
{
    struct slurm_request request = {.method = "GET",
                                    .path = "licenses",
                                    .on_object = on_licence,
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

/* A job that carries our comment belongs to the one it names. */
static struct slurm_job *by_comment (struct slurm *slurm, const struct slurm_seen *seen)
{
    char id[JOBDIR_KEY_MAX];
    unsigned incarnation;
    if (sscanf (seen->comment, "nui:%95[^:]:%u", id, &incarnation) != 2)
        return NULL;
    struct slurm_job *job = slurm_job_by_id (slurm, id, incarnation);
    if (!job || *job->rm_id)
        return NULL; /* not waited for */
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
    if (job->native && job->class_name && strcmp (told.class_name, slurm->partition) == 0)
        told.class_name = arena_strdup (slurm->arena, job->class_name);
    if (job->phase != PHASE_NONE || strcmp (job->partition, slurm->partition) == 0) {
        told.hosts = job->hosts_wanted ? arena_strdup (slurm->arena, job->hosts_wanted) : "";
        told.nodes_min = job->nodes_min ? job->nodes_min : told.nodes_min;
        told.nodes_max = job->nodes_max;
    }
    uint64_t digest = slurm_digest (&told);
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
    slurm_job_seen (job, seen);
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
    return strcmp (key, "jobs") == 0 ? seen_take (arg, object, err) : 0;
}

/* Those that a whole look did not find. */
static void missing_settle (struct slurm *slurm)
{
    struct slurm_job *job, *next;
    HASH_ITER (hh, slurm->jobs, job, next)
    {
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
    HASH_ITER (hh_id, slurm->by_id, job, next)
    {
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
    timer_set (slurm->poll_timer, next);
}

static void look_failed (struct slurm *slurm, const struct slurm_answer *answer)
{
    slurm->look_lightly = LIGHT_LOOKS; /* the next one is whole */
    slurm->batch_count = 0;
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
    slurm_job_settle (job);
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
    if (!answer->unchanged)
        missing_settle (slurm);
    bool news = !slurm->fresh;
    slurm->fresh = slurm->ever_looked = true;
    if (news) {
        log_event (slurm->log, LOG_LEVEL_INFO, "slurm", "reached", "version=%s nodes=%u jobs=%u",
                   slurm_rest_version (slurm->rest), slurm->node_count, HASH_COUNT (slurm->jobs));
        tell (slurm, RM_EVENT_REACH);
    }
    slurm_resv_settle (slurm);
    settle_all (slurm);
    if (news && slurm->settled)
        slurm_done_catch_up (slurm, slurm->settled);
    if (slurm_done_idle (slurm))
        slurm->settled = slurm->look_begun;
    look_end (slurm, slurm->poll_every);
}

static void jobs_ask (struct slurm *slurm)
{
    char path[64] = "jobs";
    bool light = slurm->look_lightly < LIGHT_LOOKS && slurm->look_since > 0;
    slurm->look_lightly = light ? slurm->look_lightly + 1 : 0;
    slurm->look++;
    slurm->look_begun = clock_now_us ();
    if (light) /* a second and more to be sure: clocks, and Slurm's whole seconds */
        snprintf (path, sizeof path, "jobs?update_time=%lld",
                  (long long)(slurm->look_since / US_PER_S - 3));
    struct slurm_request request = {
        .method = "GET", .path = path, .on_object = on_job, .on_done = on_jobs_done, .arg = slurm};
    slurm_rest_send (slurm->rest, &request);
}

static void on_nodes_done (void *arg, const struct slurm_answer *answer)
{
    struct slurm *slurm = arg;
    if (answer->code != 0) {
        look_failed (slurm, answer);
        return;
    }
    licences_ask (slurm);
}

static void nodes_ask (struct slurm *slurm)
{
    slurm->nodes_seen = 0;
    struct slurm_request request = {.method = "GET",
                                    .path = "nodes",
                                    .on_object = on_node,
                                    .on_done = on_nodes_done,
                                    .arg = slurm};
    slurm_rest_send (slurm->rest, &request);
}

static void on_partitions_done (void *arg, const struct slurm_answer *answer)
{
    struct slurm *slurm = arg;
    if (answer->code != 0)
        look_failed (slurm, answer);
    else
        nodes_ask (slurm);
}

static void on_poll (evutil_socket_t fd, short what, void *arg)
{
    struct slurm *slurm = arg;
    (void)fd;
    (void)what;
    if (slurm->looking)
        return;
    slurm->looking = true;
    if (slurm->fresh && slurm->class_count > 0) {
        nodes_ask (slurm);
        return;
    }
    slurm->class_count = 0;
    *slurm->default_class = 0;
    struct slurm_request request = {.method = "GET",
                                    .path = "partitions",
                                    .on_object = on_partition,
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
        timer_set (slurm->poll_timer, 0);
}

/* --- watching a few ----------------------------------------------------------------------- */

static bool watched (const struct slurm_job *job)
{
    return *job->rm_id && !job->owner->observe &&
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
        slurm_job_seen (job, &seen);
    arena_destroy (arena);
    return rc;
}

static void on_watched_done (void *arg, const struct slurm_answer *answer)
{
    if (answer->code == ERR_UNAVAILABLE || answer->code == ERR_DENIED)
        slurm_unreachable (arg, answer);
}

static void on_watch (evutil_socket_t fd, short what, void *arg)
{
    struct slurm *slurm = arg;
    struct slurm_job *job, *next;
    uint32_t count = 0;
    char path[WATCHED_ONE_BY_ONE][SLURM_ID_MAX + 8];
    bool all = false;
    (void)fd;
    (void)what;
    HASH_ITER (hh_id, slurm->by_id, job, next)
    {
        if (!watched (job))
            continue;
        if (job->number == 0 || count == WATCHED_ONE_BY_ONE)
            all = true; /* a task without a record of its own can be found in the list only */
        else
            snprintf (path[count++], sizeof path[0], "job/%lld", (long long)job->number);
    }
    if (all) {
        slurm_look (slurm, true);
        timer_set (slurm->watch_timer, US_PER_S);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct slurm_request request = {.method = "GET",
                                        .path = path[i],
                                        .on_object = on_watched_job,
                                        .on_done = on_watched_done,
                                        .arg = slurm};
        slurm_rest_send (slurm->rest, &request);
    }
    if (count > 0)
        timer_set (slurm->watch_timer, watch_every);
}

void slurm_watch (struct slurm *slurm)
{
    if (!evtimer_pending (slurm->watch_timer, NULL))
        timer_set (slurm->watch_timer, watch_every / 4);
}

int slurm_poll_init (struct slurm *slurm, struct err *err)
{
    slurm->arena = arena_create (0);
    slurm->poll_timer = evtimer_new (slurm->base, on_poll, slurm);
    slurm->watch_timer = evtimer_new (slurm->base, on_watch, slurm);
    if (!slurm->poll_timer || !slurm->watch_timer)
        return err_set (err, ERR_NOMEM, "Slurm: no memory for timers");
    slurm->look_lightly = LIGHT_LOOKS;
    timer_set (slurm->poll_timer, 0);
    return 0;
}

void slurm_poll_stop (struct slurm *slurm)
{
    struct slurm_node *node, *next;
    if (slurm->poll_timer)
        event_free (slurm->poll_timer);
    if (slurm->watch_timer)
        event_free (slurm->watch_timer);
    HASH_ITER (hh, slurm->nodes, node, next)
    {
        HASH_DEL (slurm->nodes, node);
        slurm_node_free (node);
    }
    free (slurm->node_list);
    free (slurm->classes);
    free (slurm->licences);
    strbuf_free (&slurm->licences_now);
    if (slurm->arena)
        arena_destroy (slurm->arena);
}
