/* history: rows of ended jobs, the sums over them, and the audit log, as SQL on the local store.
 * The service's memory room writes, showstats, profiler and the statistics files read. What
 * grows for years is read in bounded pieces, so that the loop is not held. */
#include "local/store/history.h"

#include <stdio.h>
#include <string.h>

#include "local/store/local_store_i.h"
#include "proto/store/outbox.h"
#include "proto/store/row.h"

#define SUMS                                                                                       \
    "jobs, successful, ps_asked, ps_run, ps_used, queue_us, queue_max_us, procs, xf_ppm, "         \
    "xf_max_ppm, xf_procs_ppm, xf_ps_milli, bypass, bypass_max, accuracy_ppm, backfilled, "        \
    "ps_backfilled, qos_met, preempted, ps_lost"

/* --- jobs that have ended ----------------------------------------------------------------- */

static const struct row_column history_columns[] = {
    ROW (struct history_job, number, 0),
    ROW (struct history_job, grid_job_id, 0),
    ROW (struct history_job, name, 0),
    ROW (struct history_job, submitter, 0),
    ROW (struct history_job, user, 0),
    ROW_AS (struct history_job, group, "grp", 0),
    ROW (struct history_job, account, 0),
    ROW_AS (struct history_job, class_name, "class", 0),
    ROW (struct history_job, qos_asked, 0),
    ROW (struct history_job, qos, 0),
    ROW (struct history_job, state, 0),
    ROW (struct history_job, reason_code, 0),
    ROW (struct history_job, exit_code, 0),
    ROW (struct history_job, nodes, 0),
    ROW (struct history_job, tasks, 0),
    ROW_AS (struct history_job, tasks_per_node, "tpn", 0),
    ROW (struct history_job, procs, 0),
    ROW_AS (struct history_job, walltime, "walltime_us", 0),
    ROW_AS (struct history_job, submit, "submit_us", 0),
    ROW_AS (struct history_job, eligible, "eligible_us", 0),
    ROW_AS (struct history_job, dispatch, "dispatch_us", 0),
    ROW_AS (struct history_job, start, "start_us", 0),
    ROW_AS (struct history_job, end, "end_us", 0),
    ROW_AS (struct history_job, not_before, "not_before_us", 0),
    ROW (struct history_job, features, 0),
    ROW (struct history_job, task_procs, 0),
    ROW (struct history_job, mem_mb, 0),
    ROW (struct history_job, swap_mb, 0),
    ROW (struct history_job, disk_mb, 0),
    ROW (struct history_job, bypass, 0),
    ROW (struct history_job, starts, 0),
    ROW (struct history_job, backfilled, 0),
    ROW (struct history_job, qos_met, 0),
    ROW_AS (struct history_job, cpu, "cpu_us", 0),
    ROW_AS (struct history_job, partition, "part", 0),
    ROW (struct history_job, hosts, 0),
    ROW (struct history_job, rm, 0),
    ROW_AS (struct history_job, reservation, "rsv", 0),
};
static const struct row_table history_table = ROW_TABLE ("history", history_columns, "sequence");

int history_add (struct local_store *store, struct history_job *j, struct err *err)
{
    int rc = store_row_write (store->db, &history_table, ROW_INSERT, NULL, j, err);
    if (rc == 0)
        j->sequence = (uint64_t)store_last_id (store->db);
    return rc;
}

static const char *col (struct store_stmt *q, int at)
{
    const char *text = store_col_text (q, at);
    return text ? text : "";
}

/* Without an arena its strings hold until the next step. */
static void job_of_row (struct store_stmt *q, struct arena *arena, struct history_job *j)
{
    j->sequence = (uint64_t)store_col_int (q, 0);
    store_row_take (q, &history_table, arena, j, NULL);
}

int history_read (struct local_store *store, const struct history_filter *f, uint64_t after,
                  uint32_t limit, void (*fn) (void *arg, const struct history_job *job), void *arg,
                  uint64_t *last_out, bool *more_out, struct err *err)
{
    /* The limit is on rows looked at, so that a filter that lets little through does not hold the
     * loop: the inner query walks the primary key. */
    const int passes = (int)history_table.count + 1;
    struct store_stmt *q = store_row_select (
        store->db, &history_table,
        ", end_us >= ?3 AND (?4 = 0 OR end_us < ?4) AND "
        "(?5 IS NULL OR user = ?5) AND (?6 IS NULL OR grp = ?6) AND (?7 IS NULL OR account = ?7) "
        "AND (?8 IS NULL OR class = ?8) AND (?9 IS NULL OR qos = ?9) FROM history "
        "WHERE sequence > ?1 ORDER BY sequence LIMIT ?2");
    uint32_t seen = 0;
    int rc;
    store_bind_int (q, 1, (int64_t)after);
    store_bind_int (q, 2, limit);
    store_bind_int (q, 3, f->from);
    store_bind_int (q, 4, f->until);
    store_bind_text (q, 5, f->user);
    store_bind_text (q, 6, f->group);
    store_bind_text (q, 7, f->account);
    store_bind_text (q, 8, f->class_name);
    store_bind_text (q, 9, f->qos);
    *last_out = after;
    while ((rc = store_step (q, err)) == 1) {
        struct history_job job;
        job_of_row (q, NULL, &job);
        seen++;
        *last_out = job.sequence;
        if (store_col_int (q, passes))
            fn (arg, &job);
    }
    *more_out = seen == limit;
    return rc;
}

/* One row, its strings in the arena; name is for the error. */
static int job_one (struct store_stmt *q, const char *name, struct arena *arena,
                    struct history_job *out, struct err *err)
{
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "job %s is not in the history", name);
    job_of_row (q, arena, out);
    store_reset (q);
    return 0;
}

int history_of_job (struct local_store *store, uint64_t number, struct arena *arena,
                    struct history_job *out, struct err *err)
{
    char name[24];
    struct store_stmt *q =
        store_row_select (store->db, &history_table,
                          " FROM history WHERE number = ?1 ORDER BY sequence DESC LIMIT 1");
    snprintf (name, sizeof name, "%llu", (unsigned long long)number);
    store_bind_int (q, 1, (int64_t)number);
    return job_one (q, name, arena, out, err);
}

int history_of_grid_job (struct local_store *store, const char *grid_job_id, struct arena *arena,
                         struct history_job *out, struct err *err)
{
    struct store_stmt *q =
        store_row_select (store->db, &history_table,
                          " FROM history WHERE grid_job_id = ?1 AND grid_job_id <> '' "
                          "ORDER BY sequence DESC LIMIT 1");
    store_bind_text (q, 1, grid_job_id);
    return job_one (q, grid_job_id, arena, out, err);
}

int history_purge (struct local_store *store, time_us before, uint64_t kept_from, uint32_t limit,
                   uint32_t *count_out, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "DELETE FROM history WHERE sequence IN (SELECT sequence FROM history "
                   "WHERE end_us < ?1 AND sequence <= ?2 ORDER BY end_us LIMIT ?3)");
    store_bind_int (q, 1, before);
    store_bind_int (q, 2, kept_from > INT64_MAX ? INT64_MAX : (int64_t)kept_from);
    store_bind_int (q, 3, limit);
    int rc = store_run (q, err);
    *count_out = rc == 0 ? (uint32_t)store_changes (store->db) : 0;
    return rc;
}

/* --- sums --------------------------------------------------------------------------------- */

static int64_t larger (int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void stats_sums_add (struct stats_sums *s, const struct stats_sums *m)
{
    s->jobs += m->jobs;
    s->successful += m->successful;
    s->ps_asked += m->ps_asked;
    s->ps_run += m->ps_run;
    s->ps_used += m->ps_used;
    s->queue_us += m->queue_us;
    s->queue_max_us = larger (s->queue_max_us, m->queue_max_us);
    s->procs += m->procs;
    s->xf_ppm += m->xf_ppm;
    s->xf_max_ppm = larger (s->xf_max_ppm, m->xf_max_ppm);
    s->xf_procs_ppm += m->xf_procs_ppm;
    s->xf_ps_milli += m->xf_ps_milli;
    s->bypass += m->bypass;
    s->bypass_max = larger (s->bypass_max, m->bypass_max);
    s->accuracy_ppm += m->accuracy_ppm;
    s->backfilled += m->backfilled;
    s->ps_backfilled += m->ps_backfilled;
    s->qos_met += m->qos_met;
    s->preempted += m->preempted;
    s->ps_lost += m->ps_lost;
}

void stats_of_job (const struct history_job *j, struct stats_sums *out)
{
    int64_t run = j->end > j->start ? j->end - j->start : 0;
    int64_t limit = larger (j->walltime, US_PER_S);
    int64_t queued = j->start > j->eligible ? j->start - j->eligible : 0;
    double xf = 1 + (double)queued / (double)limit; /* the guide's, at its start */
    double accuracy = run < limit ? (double)run / (double)limit : 1;
    *out = (struct stats_sums){
        .jobs = 1,
        .successful = j->state == STORE_JOB_COMPLETED,
        .ps_asked = (int64_t)j->procs * limit,
        .ps_run = (int64_t)j->procs * run,
        .ps_used = j->cpu >= 0 ? j->cpu : (int64_t)j->procs * run,
        .queue_us = queued,
        .queue_max_us = queued,
        .procs = j->procs,
        .xf_ppm = xf < 1e9 ? (int64_t)(xf * 1e6 + .5) : (int64_t)1e15,
        .bypass = j->bypass,
        .bypass_max = j->bypass,
        .accuracy_ppm = (int64_t)(accuracy * 1e6 + .5),
        .backfilled = j->backfilled,
        .qos_met = j->qos_met,
    };
    out->xf_max_ppm = out->xf_ppm;
    out->xf_procs_ppm = out->xf_ppm < INT64_MAX / 4 / (int64_t)larger (1, j->procs)
                            ? out->xf_ppm * j->procs
                            : INT64_MAX / 4;
    out->xf_ps_milli = (int64_t)(xf * 1e3 * ((double)out->ps_run / (double)US_PER_S) + .5);
    out->ps_backfilled = j->backfilled ? out->ps_run : 0;
}

void stats_grid_place (uint32_t procs, duration_us walltime, uint32_t *row_out,
                       uint32_t *column_out)
{
    const duration_us first = 120 * US_PER_S;
    uint32_t row = 0, column = 0;
    while (row + 1 < STATS_GRID_MAX && procs > (UINT32_C (1) << row))
        row++;
    while (column + 1 < STATS_GRID_MAX && walltime > first << column)
        column++;
    *row_out = row;
    *column_out = column;
}

int stats_add (struct local_store *store, enum stats_kind kind, const char *name,
               const struct stats_sums *m, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db,
        "INSERT INTO stats (kind, name, " SUMS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
        "?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22) ON CONFLICT (kind, name) DO "
        "UPDATE SET jobs = jobs + ?3, successful = successful + ?4, ps_asked = ps_asked + ?5, "
        "ps_run = ps_run + ?6, ps_used = ps_used + ?7, queue_us = queue_us + ?8, "
        "queue_max_us = max (queue_max_us, ?9), procs = procs + ?10, xf_ppm = xf_ppm + ?11, "
        "xf_max_ppm = max (xf_max_ppm, ?12), xf_procs_ppm = xf_procs_ppm + ?13, "
        "xf_ps_milli = xf_ps_milli + ?14, bypass = bypass + ?15, "
        "bypass_max = max (bypass_max, ?16), accuracy_ppm = accuracy_ppm + ?17, "
        "backfilled = backfilled + ?18, ps_backfilled = ps_backfilled + ?19, "
        "qos_met = qos_met + ?20, preempted = preempted + ?21, ps_lost = ps_lost + ?22");
    const int64_t value[] = {m->jobs,          m->successful, m->ps_asked,     m->ps_run,
                             m->ps_used,       m->queue_us,   m->queue_max_us, m->procs,
                             m->xf_ppm,        m->xf_max_ppm, m->xf_procs_ppm, m->xf_ps_milli,
                             m->bypass,        m->bypass_max, m->accuracy_ppm, m->backfilled,
                             m->ps_backfilled, m->qos_met,    m->preempted,    m->ps_lost};
    store_bind_int (q, 1, kind);
    store_bind_text (q, 2, name);
    for (int i = 0; i < (int)(sizeof value / sizeof *value); i++)
        store_bind_int (q, i + 3, value[i]);
    return store_run (q, err);
}

int stats_read (struct local_store *store, enum stats_kind kind,
                void (*fn) (void *arg, const char *name, const struct stats_sums *sums), void *arg,
                struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, "SELECT name, " SUMS " FROM stats "
                                                  "WHERE kind = ?1 ORDER BY name");
    int rc;
    store_bind_int (q, 1, kind);
    while ((rc = store_step (q, err)) == 1) {
        struct stats_sums s = {
            .jobs = store_col_int (q, 1),
            .successful = store_col_int (q, 2),
            .ps_asked = store_col_int (q, 3),
            .ps_run = store_col_int (q, 4),
            .ps_used = store_col_int (q, 5),
            .queue_us = store_col_int (q, 6),
            .queue_max_us = store_col_int (q, 7),
            .procs = store_col_int (q, 8),
            .xf_ppm = store_col_int (q, 9),
            .xf_max_ppm = store_col_int (q, 10),
            .xf_procs_ppm = store_col_int (q, 11),
            .xf_ps_milli = store_col_int (q, 12),
            .bypass = store_col_int (q, 13),
            .bypass_max = store_col_int (q, 14),
            .accuracy_ppm = store_col_int (q, 15),
            .backfilled = store_col_int (q, 16),
            .ps_backfilled = store_col_int (q, 17),
            .qos_met = store_col_int (q, 18),
            .preempted = store_col_int (q, 19),
            .ps_lost = store_col_int (q, 20),
        };
        fn (arg, col (q, 0), &s);
    }
    return rc;
}

int stats_reset (struct local_store *store, struct err *err)
{
    return store_run (store_stmt (store->db, "DELETE FROM stats"), err);
}

/* --- the audit log ------------------------------------------------------------------------ */

int audit_read (struct local_store *store, uint64_t before, time_us from, time_us until,
                const char *who, const char *what, uint32_t limit,
                void (*fn) (void *arg, const struct audit_row *row), void *arg, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "SELECT sequence, at_us, who, what FROM audit WHERE (?1 = 0 OR sequence < ?1) "
                   "AND at_us >= ?2 AND (?3 = 0 OR at_us < ?3) AND (?4 = '' OR who = ?4) AND "
                   "(?5 = '' OR instr (what, ?5) > 0) ORDER BY sequence DESC LIMIT ?6");
    int rc;
    store_bind_int (q, 1, (int64_t)before);
    store_bind_int (q, 2, from);
    store_bind_int (q, 3, until);
    store_bind_text (q, 4, who);
    store_bind_text (q, 5, what);
    store_bind_int (q, 6, limit);
    while ((rc = store_step (q, err)) == 1) {
        struct audit_row row = {.sequence = (uint64_t)store_col_int (q, 0),
                                .at = store_col_int (q, 1),
                                .who = col (q, 2),
                                .what = col (q, 3)};
        fn (arg, &row);
    }
    return rc;
}

int local_store_outbox_waiting (struct local_store *store, enum store_outbox box,
                                uint64_t *count_out, time_us *oldest_out, struct err *err)
{
    int rc = outbox_pending (store->db, store_box_name (box), count_out, oldest_out, err);
    if (rc == 0 && *oldest_out == TIME_US_NONE)
        *oldest_out = 0;
    return rc;
}
