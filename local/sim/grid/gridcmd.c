/* gridcmd: options of --grid, the order of work, tables, CSV and page. simcmd.c calls it. All
 * input is checked before the first run begins, and results are moved to their places together
 * at the end. */
#include "local/sim/grid/gridcmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/sim/outfile.h"
#include "proto/base/mem.h"
#include "proto/cli/table.h"

struct command {
    const struct gridcmd_args *args;
    struct grid *grid;
    double share[GRID_SHARES_MAX];
    uint32_t share_count;
    struct grid_run run[GRID_RUNS_MAX];
    uint32_t count;
    struct cli_progress *progress;
    uint64_t progress_base;
};

static void note (void *self, const char *text)
{
    (void)self;
    fprintf (stderr, "nui sim: %s\n", text);
}

/* "5,10,20", ascending. */
static int shares_parse (struct command *c, struct err *err)
{
    const char *at = c->args->coallocate;
    while (at) {
        size_t len = strcspn (at, ",");
        char text[QUANTITY_TEXT_MAX];
        int64_t micro = 0;
        bool good = len > 0 && len < sizeof text;
        snprintf (text, sizeof text, "%.*s", (int)(len < sizeof text ? len : 0), at);
        good = good && credit_parse (text, &micro, NULL) == 0 && micro > 0 &&
               micro <= 100 * INT64_C (1000000);
        double share = (double)micro / 1e8;
        if (!good || (c->share_count && share <= c->share[c->share_count - 1]))
            return err_set (err, ERR_INVALID,
                            "--coallocate %.60s: per cent of jobs, ascending: 5,10,20",
                            c->args->coallocate);
        if (c->share_count == GRID_SHARES_MAX)
            return err_set (err, ERR_LIMIT, "--coallocate: at most %d shares", GRID_SHARES_MAX);
        c->share[c->share_count++] = share;
        at = at[len] ? at + len + 1 : NULL;
    }
    return 0;
}

static int outputs_check (const struct gridcmd_args *a, struct err *err)
{
    int rc = a->jobs_out ? outfile_check (a->jobs_out, err) : 0;
    if (!rc && a->stats_out)
        rc = outfile_check (a->stats_out, err);
    if (!rc && a->jobs_out && a->stats_out && strcmp (a->jobs_out, a->stats_out) == 0)
        rc = err_set (err, ERR_INVALID, "%s: two results cannot be one file", a->jobs_out);
    return rc;
}

static void step (void *self, uint64_t jobs_done)
{
    struct command *c = self;
    cli_progress_update (c->progress, c->progress_base + jobs_done);
}

static int one_run (struct command *c, enum grid_kind kind, double share, struct err *err)
{
    const struct grid_run *base = kind == GRID_SHARED ? &c->run[0] : NULL;
    c->progress_base = c->count * c->grid->count;
    return grid_run (c->grid, kind, share, base, c->args->seed, step, c, &c->run[c->count++], err);
}

static int run_all (struct command *c, struct err *err)
{
    static const enum grid_kind plain[] = {GRID_ISOLATED, GRID_POOL, GRID_PLACED, GRID_MOVED};
    enum { PLAIN = sizeof plain / sizeof plain[0] };
    int rc = 0;
    c->progress = cli_progress_start ("simulated jobs", c->grid->count * (PLAIN + c->share_count));
    for (uint32_t i = 0; i < PLAIN && !rc; i++)
        rc = one_run (c, plain[i], 0, err);
    for (uint32_t i = 0; i < c->share_count && !rc; i++)
        rc = one_run (c, GRID_SHARED, c->share[i], err);
    cli_progress_end (c->progress);
    return rc;
}

/* --- results -------------------------------------------------------------------------------- */

static int64_t ppm (double value)
{
    return (int64_t)(value * 1e6 + (value < 0 ? -.5 : .5));
}

static const struct table_column columns[] = {
    {"run", "RUN", TABLE_TEXT, 0},
    {"jobs", "JOBS", TABLE_INT, 0},
    {"mean_wait_s", "MEANWAIT", TABLE_PPM, 0},
    {"p95_wait_s", "95%", TABLE_PPM, 0},
    {"mean_bounded_slowdown", "SLOWDOWN", TABLE_PPM, 2},
    {"utilisation", "UTIL", TABLE_PPM, 4},
    {"away", "AWAY", TABLE_INT, 0},
    {"moved", "MOVED", TABLE_INT, 0},
    {"coallocated", "GROUPS", TABLE_INT, 0},
    {"group_wait_s", "GROUPWAIT", TABLE_PPM, 0},
    {"group_response_s", "GROUPRESP", TABLE_PPM, 0},
    {"local_wait_s", "LOCALWAIT", TABLE_PPM, 0},
    {"local_extra_s", "EXTRAWAIT", TABLE_PPM, 0},
    {"held_idle", "HELDIDLE", TABLE_PPM, 4},
    {"no_slot", "NOSLOT", TABLE_INT, 0},
    {"not_started", "NOTRUN", TABLE_INT, 0},
    {"wall_s", "SECONDS", TABLE_PPM, 2},
};

static int results_show (struct cli_context *ctx, const struct command *c)
{
    struct table *t = table_create (columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < c->count; i++) {
        const struct grid_run *r = &c->run[i];
        table_text (t, r->label);
        table_int (t, (int64_t)r->ended);
        table_ppm (t, ppm (r->mean_wait_s));
        table_ppm (t, ppm (r->p95_wait_s));
        table_ppm (t, ppm (r->mean_slowdown));
        table_ppm (t, ppm (r->summary.utilisation));
        table_int (t, (int64_t)r->summary.away);
        table_int (t, (int64_t)r->summary.moved);
        table_int (t, (int64_t)r->summary.coallocated);
        table_ppm (t, ppm (r->group_wait_s));
        table_ppm (t, ppm (r->group_response_s));
        table_ppm (t, ppm (r->local_wait_s));
        table_ppm (t, ppm (r->local_extra_s));
        table_ppm (t, ppm (r->summary.held_idle));
        table_int (t, (int64_t)r->summary.no_slot);
        table_int (t, (int64_t)r->summary.never);
        table_ppm (t, ppm (r->wall_s));
        table_end_row (t);
    }
    int code = table_print (t, ctx);
    table_destroy (t);
    return code;
}

static void stats_file (struct strbuf *out, const struct command *c)
{
    struct jsonout j = jsonout_make (out);
    jsonout_object (&j);
    jsonout_key (&j, "grid");
    jsonout_text (&j, c->args->grid);
    jsonout_key (&j, "jobs");
    jsonout_uint (&j, c->grid->count);
    jsonout_key (&j, "left_out");
    jsonout_uint (&j, c->grid->left_out);
    jsonout_key (&j, "period_s");
    jsonout_int (&j, c->grid->period / US_PER_S);
    jsonout_key (&j, "runs");
    jsonout_array (&j);
    for (uint32_t i = 0; i < c->count; i++) {
        const struct grid_run *r = &c->run[i];
        const struct {
            const char *key;
            double value;
        } real[] = {{"mean_wait_s", r->mean_wait_s},
                    {"p95_wait_s", r->p95_wait_s},
                    {"mean_bounded_slowdown", r->mean_slowdown},
                    {"utilisation", r->summary.utilisation},
                    {"held_idle", r->summary.held_idle},
                    {"group_wait_s", r->group_wait_s},
                    {"group_response_s", r->group_response_s},
                    {"local_wait_s", r->local_wait_s},
                    {"local_extra_s", r->local_extra_s}};
        const struct {
            const char *key;
            uint64_t value;
        } whole[] = {{"jobs", r->ended},
                     {"away", r->summary.away},
                     {"moved", r->summary.moved},
                     {"coallocated", r->summary.coallocated},
                     {"no_slot", r->summary.no_slot},
                     {"not_started", r->summary.never}};
        jsonout_object (&j);
        jsonout_key (&j, "run");
        jsonout_text (&j, r->label);
        for (size_t k = 0; k < sizeof whole / sizeof whole[0]; k++) {
            jsonout_key (&j, whole[k].key);
            jsonout_uint (&j, whole[k].value);
        }
        for (size_t k = 0; k < sizeof real / sizeof real[0]; k++) {
            jsonout_key (&j, real[k].key);
            jsonout_ppm (&j, ppm (real[k].value));
        }
        jsonout_end (&j);
    }
    jsonout_end (&j);
    jsonout_end (&j);
}

static void seconds_put (struct strbuf *out, time_us t)
{
    char text[QUANTITY_TEXT_MAX];
    strbuf_printf (out, ",%s", t == TIME_US_NONE ? "" : credit_format (t, text));
}

static void jobs_csv (struct strbuf *out, const struct command *c)
{
    strbuf_puts (out, "run,home,job_id,submit,start,end,procs,site,moves,coallocated\n");
    for (uint32_t i = 0; i < c->count; i++) {
        const struct grid_run *r = &c->run[i];
        for (uint64_t k = 0; k < c->grid->count; k++) {
            const struct gridsim_job *job = &c->grid->job[k];
            const struct gridsim_result *result = &r->result[k];
            strbuf_printf (out, "%s,%s,", r->label, c->grid->site[job->home].name);
            if (job->job->name)
                strbuf_puts (out, job->job->name);
            else
                strbuf_printf (out, "%llu", (unsigned long long)job->job->number);
            seconds_put (out, job->submit);
            seconds_put (out, result->start);
            seconds_put (out, result->end);
            strbuf_printf (out, ",%u,%s,%u,%s\n", job->job->procs,
                           r->kind == GRID_POOL ? "pool" : c->grid->site[result->site].name,
                           result->moves, result->coallocated ? "yes" : "no");
        }
    }
}

static int files_write (const struct command *c, struct err *err)
{
    struct outfiles files = {0};
    if (c->args->jobs_out)
        jobs_csv (outfiles_add (&files, c->args->jobs_out), c);
    if (c->args->stats_out)
        stats_file (outfiles_add (&files, c->args->stats_out), c);
    int rc = outfiles_commit (&files, err);
    outfiles_free (&files);
    return rc;
}

static void input_tell (const struct grid *grid)
{
    for (uint32_t s = 0; s < grid->site_count; s++) {
        const struct workload *w = grid->site[s].workload;
        for (int r = 0; r < SKIP_REASONS; r++) {
            if (w->skipped[r])
                fprintf (stderr, "nui sim: %s: %llu of %llu jobs skipped: %s\n", grid->site[s].name,
                         (unsigned long long)w->skipped[r], (unsigned long long)w->read,
                         workload_skip_text ((enum workload_skip)r));
        }
    }
    if (grid->left_out)
        fprintf (stderr,
                 "nui sim: %llu jobs left out: they come after the end of the shortest log (%.1f "
                 "days)\n",
                 (unsigned long long)grid->left_out, (double)grid->period / 86400 / US_PER_S);
}

int gridcmd_run (struct cli_context *ctx, const struct gridcmd_args *args)
{
    struct command *c = mem_zero (1, sizeof *c);
    struct err err = {0};
    int code = CLI_OK;
    c->args = args;
    if (shares_parse (c, &err)) {
        free (c);
        return cli_usage ("sim", "%s", err.text);
    }
    int rc = outputs_check (args, &err);
    if (!rc) {
        c->grid = grid_read (args->grid, note, NULL, &err);
        rc = c->grid ? 0 : err.code;
    }
    if (!rc) {
        input_tell (c->grid);
        rc = run_all (c, &err);
    }
    if (!rc)
        rc = files_write (c, &err);
    if (!rc && args->report)
        rc = gridpage_write (c->grid, args->grid, c->run, c->count, args->report, &err);
    if (!rc && args->report)
        fprintf (stderr, "nui sim: the page is %s/index.html\n", args->report);
    code = rc ? cli_fail ("sim", &err) : results_show (ctx, c);
    for (uint32_t i = 0; i < c->count; i++)
        grid_run_free (&c->run[i]);
    grid_destroy (c->grid);
    free (c);
    return code;
}
