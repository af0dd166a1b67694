/* simcmd: `nui sim`, see nui-sim(1). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/conf/policyconf.h"
#include "local/sim/estimates.h"
#include "local/sim/events.h"
#include "local/sim/grid/gridcmd.h"
#include "local/sim/lab/labcmd.h"
#include "local/sim/lab/model.h"
#include "local/sim/outfile.h"
#include "local/sim/plot.h"
#include "local/sim/simrun.h"
#include "local/sim/site.h"
#include "proto/base/mem.h"
#include "proto/cli/options.h"
#include "proto/cli/table.h"

enum { POLICIES_MAX = 64 };

struct args {
    const char *config;
    const char *workload;
    const char *resources;
    uint64_t nodes;
    uint64_t procs_per_node;
    const char *jobs;
    const char *jobs_out;
    const char *stats_out;
    const char *trace_out;
    const char *plot;
    const char *estimates;
    const char *events_out;
    struct cli_list compare;
    duration_us tick;
    uint64_t seed;
    const char *load;
    const char *experiment;
    const char *report;
    const char *grid;
    const char *coallocate;
    uint64_t seeds;
    uint64_t workers;
};

static const struct cli_option options[] = {
    {"config", 'c', CLI_OPT_STRING, "FILE", "the policy, in Maui's syntax (maui.cfg(5))",
     offsetof (struct args, config)},
    {"workload", 'w', CLI_OPT_STRING, "FILE",
     "jobs: a Standard Workload Format log, plain or gzip, or a workload trace of Maui's; "
     "model:lublin[:JOBS] makes some",
     offsetof (struct args, workload)},
    {"resources", 'r', CLI_OPT_STRING, "FILE", "nodes: a resource trace of Maui's",
     offsetof (struct args, resources)},
    {"nodes", 'N', CLI_OPT_COUNT, "N",
     "N equal nodes (default: MaxProcs of the log's header, one processor each)",
     offsetof (struct args, nodes), 1, NODES_MAX},
    {"procs-per-node", 0, CLI_OPT_COUNT, "P", "processors on each of them (default 1)",
     offsetof (struct args, procs_per_node), 1, 1 << 20},
    {"jobs", 0, CLI_OPT_STRING, "A..B", "only the A-th to the B-th job of the log",
     offsetof (struct args, jobs)},
    {"jobs-out", 0, CLI_OPT_STRING, "FILE",
     "one row for each job: job_id,submit,start,end,procs,state", offsetof (struct args, jobs_out)},
    {"stats-out", 0, CLI_OPT_STRING, "FILE", "statistics as JSON",
     offsetof (struct args, stats_out)},
    {"trace-out", 0, CLI_OPT_STRING, "FILE", "the outcome as a workload trace of Maui's",
     offsetof (struct args, trace_out)},
    {"plot", 0, CLI_OPT_STRING, "FILE", "utilisation and queue length over time, as SVG",
     offsetof (struct args, plot)},
    {"estimates", 0, CLI_OPT_STRING, "FILE",
     "when would each job start, asked at its submission by every method, against when it did; prints how "
     "good each method is",
     offsetof (struct args, estimates)},
    {"events-out", 0, CLI_OPT_STRING, "FILE",
     "who starts where, is promised what, is sent back or put off, ends (CSV)",
     offsetof (struct args, events_out)},
    {"compare", 0, CLI_OPT_LIST, "FILE",
     "another policy on the same jobs, side by side (repeat it)", offsetof (struct args, compare)},
    {"tick", 0, CLI_OPT_DURATION, "DURATION",
     "decide at multiples of DURATION only, as a polling scheduler does (default: at every event)",
     offsetof (struct args, tick)},
    {"load", 0, CLI_OPT_STRING, "F",
     "F times the load: the time between submissions is divided by F",
     offsetof (struct args, load)},
    {"experiment", 0, CLI_OPT_STRING, "NAME",
     "mix, agents, delay, algorithms, fairshare or depth: what the papers claim, repeated (nui-sim(1))",
     offsetof (struct args, experiment)},
    {"report", 0, CLI_OPT_STRING, "DIR",
     "the experiment, or the comparison, as a page with figures and CSV; what was finished before a stop "
     "is not done again",
     offsetof (struct args, report)},
    {"grid", 0, CLI_OPT_STRING, "FILE",
     "several sites, each with its own log, policy and machine: every job at home, on one pool of all "
     "processors, and placed by the metascheduler (nui-sim(1) has the file's form)",
     offsetof (struct args, grid)},
    {"coallocate", 0, CLI_OPT_STRING, "SHARES",
     "5,10,20: as well with so many per cent of jobs as two halves at one moment on two sites, and what that "
     "costs the others",
     offsetof (struct args, coallocate)},
    {"seeds", 0, CLI_OPT_COUNT, "N", "how many, in mix and agents", offsetof (struct args, seeds),
     1, 10000},
    {"workers", 0, CLI_OPT_COUNT, "N", "simulations at once (default: one for each core)",
     offsetof (struct args, workers), 1, 64},
    {"seed", 0, CLI_OPT_COUNT, "S",
     "what models, experiments and BFPRIORITYPOLICY RANDOM draw from (default 0)",
     offsetof (struct args, seed)},
    {0},
};

struct policy_entry {
    const char *path;
    const char *label;
    struct policy *policy;
    struct nodeconf nodes;
    struct simrun run;
    struct events *events; /* NULL with --estimates */
};

struct sim {
    struct args args;
    struct cred_names names;
    struct workload *workload;
    struct machine *machine;
    struct policy_entry entry[POLICIES_MAX]; /* the first is --config's */
    uint32_t count;
    struct estimates estimates; /* with --estimates: of the first */
    struct cli_progress *progress;
    uint64_t progress_base;
};

/* --- input -------------------------------------------------------------------------------- */

static int usage_check (const struct sim *sim)
{
    const struct args *a = &sim->args;
    struct workload_range range;
    struct err err;
    if (!a->config)
        return cli_usage ("sim", "which policy? give --config FILE");
    if (!a->workload)
        return cli_usage ("sim", "which jobs? give --workload FILE");
    if (a->resources && a->nodes)
        return cli_usage ("sim", "--resources and --nodes both describe the machine; give one");
    if (a->procs_per_node && !a->nodes)
        return cli_usage ("sim", "--procs-per-node goes with --nodes");
    if (a->estimates && a->compare.count)
        return cli_usage ("sim", "--estimates is about one policy; --compare about several");
    if (a->estimates && a->events_out)
        return cli_usage ("sim", "--estimates goes without --events-out");
    if (a->tick < 0 || a->tick == TIME_US_MAX)
        return cli_usage ("sim", "--tick is a duration of 0 or more");
    if (workload_range_parse (a->jobs, &range, &err))
        return cli_usage ("sim", "--jobs %s", err.text);
    return CLI_OK;
}

static const char *last_part (const char *path)
{
    const char *slash = strrchr (path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int policies_read (struct sim *sim, struct err *err)
{
    for (uint32_t i = 0; i < sim->count; i++) {
        struct conf *conf = NULL;
        int rc =
            policy_conf_load (sim->entry[i].path, &sim->names, &sim->entry[i].policy, &conf, err);
        if (rc)
            return rc;
        rc = nodeconf_read (conf, &sim->entry[i].nodes, err);
        for (uint32_t n = 0; n < conf_note_count (conf); n++)
            fprintf (stderr, "nui sim: %s\n", conf_note (conf, n));
        conf_destroy (conf);
        if (rc)
            return rc;
    }
    return 0;
}

/* The log, or what stands in its place; more or less of it each day by --load. */
static struct workload *jobs_read (struct sim *sim, const struct workload_range *range,
                                   struct err *err)
{
    enum { MODEL_JOBS = 5000, MODEL_PROCS = 128, MODEL_USERS = 32 };
    const struct args *a = &sim->args;
    double factor = 1;
    uint64_t jobs;
    if (a->load && labcmd_load_parse (a->load, &factor, err))
        return NULL;
    if (model_named (a->workload, &jobs)) {
        uint64_t procs =
            a->nodes ? a->nodes * (a->procs_per_node ? a->procs_per_node : 1) : MODEL_PROCS;
        struct lublin_options model = {a->seed, jobs ? (uint32_t)jobs : MODEL_JOBS, (uint32_t)procs,
                                       MODEL_USERS, .9 * factor};
        return model_lublin (&model, &sim->names);
    }
    struct workload *w = workload_read (a->workload, range, &sim->names, err);
    if (w && a->load)
        model_scale (w, factor);
    return w;
}

static int input_read (struct sim *sim, struct err *err)
{
    const struct args *a = &sim->args;
    struct workload_range range;
    int rc = workload_range_parse (a->jobs, &range, err);
    if (rc)
        return rc;
    sim->workload = jobs_read (sim, &range, err);
    if (!sim->workload)
        return err->code;
    if (a->resources)
        sim->machine = machine_read (a->resources, sim->workload, err);
    else if (a->nodes)
        sim->machine = machine_uniform ((uint32_t)a->nodes,
                                        a->procs_per_node ? (uint32_t)a->procs_per_node : 1, err);
    else if (sim->entry[0].nodes.node_count > 0)
        sim->machine = simsite_machine (&sim->entry[0].nodes);
    else if (sim->workload->header_procs > 0 && sim->workload->header_procs <= NODES_MAX)
        sim->machine = machine_uniform ((uint32_t)sim->workload->header_procs, 1, err);
    else
        return err_set (err, ERR_INVALID,
                        "%s does not say how large its machine is (MaxProcs); give --nodes N, "
                        "--resources FILE, or NODECFG in the configuration",
                        a->workload);
    if (!sim->machine)
        return err->code;
    workload_fit (sim->workload, sim->machine);
    if (sim->workload->count == 0)
        return err_set (err, ERR_INVALID, "%s: no job fits the machine of %lld processors",
                        a->workload, (long long)sim->machine->procs);
    return 0;
}

static int outputs_check (const struct args *a, struct err *err)
{
    const char *const path[] = {a->jobs_out, a->stats_out, a->trace_out,
                                a->plot,     a->estimates, a->events_out};
    enum { PATHS = sizeof path / sizeof path[0] };
    for (int i = 0; i < PATHS; i++) {
        for (int j = 0; path[i] && j < i; j++) {
            if (path[j] && strcmp (path[i], path[j]) == 0)
                return err_set (err, ERR_INVALID, "%s: two results cannot be one file", path[i]);
        }
        int rc = path[i] ? outfile_check (path[i], err) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

/* --- output ------------------------------------------------------------------------------- */

/* Seconds as the log has them: whole, or with the decimals there are. */
static void seconds_put (struct strbuf *out, time_us t)
{
    char text[QUANTITY_TEXT_MAX];
    strbuf_puts (out, credit_format (t, text)); /* micro-units, exactly */
}

static void jobs_csv (struct strbuf *out, const struct sim *sim)
{
    const struct simrun *run = &sim->entry[0].run;
    strbuf_puts (out, "job_id,submit,start,end,procs,state\n");
    for (uint64_t i = 0; i < sim->workload->count; i++) {
        const struct workload_job *j = &sim->workload->job[i];
        bool ran = run->result[i].start != TIME_US_NONE && run->result[i].end != TIME_US_NONE;
        if (j->name)
            strbuf_puts (out, j->name);
        else
            strbuf_printf (out, "%llu", (unsigned long long)j->number);
        strbuf_putc (out, ',');
        seconds_put (out, j->submit);
        strbuf_putc (out, ',');
        if (ran)
            seconds_put (out, run->result[i].start);
        strbuf_putc (out, ',');
        if (ran)
            seconds_put (out, run->result[i].end);
        strbuf_printf (out, ",%u,%s\n", j->procs, ran ? "Completed" : "NotRun");
    }
}

static int64_t ppm (double value)
{
    return (int64_t)(value * 1e6 + .5);
}

static void stats_json (struct jsonout *j, const struct policy_entry *e)
{
    const struct simstats *s = &e->run.stats;
    const struct {
        const char *key;
        double value;
    } real[] = {{"mean_wait_s", s->mean_wait_s},
                {"median_wait_s", s->median_wait_s},
                {"p95_wait_s", s->p95_wait_s},
                {"max_wait_s", s->max_wait_s},
                {"mean_bounded_slowdown", s->mean_bounded_slowdown},
                {"utilisation", s->utilisation},
                {"makespan_s", s->makespan_s}};
    jsonout_key (j, "policy");
    jsonout_text (j, e->path);
    jsonout_key (j, "jobs");
    jsonout_uint (j, s->jobs);
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) {
        jsonout_key (j, real[i].key);
        jsonout_ppm (j, ppm (real[i].value));
    }
    jsonout_key (j, "backfilled");
    jsonout_uint (j, s->backfilled);
    jsonout_key (j, "preempted");
    jsonout_uint (j, s->preempted);
    jsonout_key (j, "passes");
    jsonout_uint (j, s->passes);
    jsonout_key (j, "wall_s");
    jsonout_ppm (j, ppm (s->wall_s));
    jsonout_key (j, "not_started");
    jsonout_uint (j, s->not_started);
}

static void skipped_json (struct jsonout *j, const struct workload *w)
{
    jsonout_key (j, "skipped");
    jsonout_object (j);
    for (int r = 0; r < SKIP_REASONS; r++) {
        if (w->skipped[r]) {
            jsonout_key (j, workload_skip_text ((enum workload_skip)r));
            jsonout_uint (j, w->skipped[r]);
        }
    }
    jsonout_end (j);
}

static void stats_file (struct strbuf *out, const struct sim *sim)
{
    struct jsonout j = jsonout_make (out);
    jsonout_object (&j);
    stats_json (&j, &sim->entry[0]);
    jsonout_key (&j, "workload");
    jsonout_text (&j, sim->args.workload);
    jsonout_key (&j, "procs");
    jsonout_int (&j, sim->machine->procs);
    skipped_json (&j, sim->workload);
    if (sim->count > 1) {
        jsonout_key (&j, "compare");
        jsonout_array (&j);
        for (uint32_t i = 1; i < sim->count; i++) {
            jsonout_object (&j);
            stats_json (&j, &sim->entry[i]);
            jsonout_end (&j);
        }
        jsonout_end (&j);
    }
    jsonout_end (&j);
}

static void plot_file (struct strbuf *out, const struct sim *sim)
{
    struct plot_line line[PLOT_LINES_MAX];
    uint32_t count = sim->count < PLOT_LINES_MAX ? sim->count : PLOT_LINES_MAX;
    for (uint32_t i = 0; i < count; i++)
        line[i] = (struct plot_line){sim->entry[i].label, sim->entry[i].run.series,
                                     sim->entry[i].run.stats.utilisation};
    plot_svg (out, last_part (sim->args.workload), line, count, sim->machine->procs);
}

static int files_write (const struct sim *sim, struct err *err)
{
    struct outfiles files = {0};
    const struct args *a = &sim->args;
    if (a->jobs_out)
        jobs_csv (outfiles_add (&files, a->jobs_out), sim);
    if (a->stats_out)
        stats_file (outfiles_add (&files, a->stats_out), sim);
    if (a->trace_out)
        mauitrace_write (outfiles_add (&files, a->trace_out), sim->workload,
                         sim->entry[0].run.result, sim->entry[0].run.qos);
    if (a->estimates)
        estimates_csv (outfiles_add (&files, a->estimates), sim->workload, &sim->estimates);
    if (a->events_out)
        events_csv (sim->entry[0].events, outfiles_add (&files, a->events_out));
    if (a->plot)
        plot_file (outfiles_add (&files, a->plot), sim);
    int rc = outfiles_commit (&files, err);
    outfiles_free (&files);
    return rc;
}

static const struct table_column columns[] = {
    {"policy", "POLICY", TABLE_TEXT, 0},
    {"jobs", "JOBS", TABLE_INT, 0},
    {"mean_wait_s", "MEANWAIT", TABLE_PPM, 0},
    {"median_wait_s", "MEDIAN", TABLE_PPM, 0},
    {"p95_wait_s", "95%", TABLE_PPM, 0},
    {"max_wait_s", "MAXWAIT", TABLE_PPM, 0},
    {"mean_bounded_slowdown", "SLOWDOWN", TABLE_PPM, 2},
    {"utilisation", "UTIL", TABLE_PPM, 4},
    {"makespan_s", "MAKESPAN", TABLE_PPM, 0},
    {"backfilled", "BACKFILLED", TABLE_INT, 0},
    {"preempted", "PREEMPTED", TABLE_INT, 0},
    {"not_started", "NOTRUN", TABLE_INT, 0},
    {"passes", "PASSES", TABLE_INT, 0},
    {"wall_s", "SECONDS", TABLE_PPM, 2},
};

static int results_show (struct cli_context *ctx, const struct sim *sim)
{
    struct table *t = table_create (columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < sim->count; i++) {
        const struct simstats *s = &sim->entry[i].run.stats;
        table_text (t, sim->entry[i].label);
        table_int (t, (int64_t)s->jobs);
        table_ppm (t, ppm (s->mean_wait_s));
        table_ppm (t, ppm (s->median_wait_s));
        table_ppm (t, ppm (s->p95_wait_s));
        table_ppm (t, ppm (s->max_wait_s));
        table_ppm (t, ppm (s->mean_bounded_slowdown));
        table_ppm (t, ppm (s->utilisation));
        table_ppm (t, ppm (s->makespan_s));
        table_int (t, (int64_t)s->backfilled);
        table_int (t, (int64_t)s->preempted);
        table_int (t, (int64_t)s->not_started);
        table_int (t, (int64_t)s->passes);
        table_ppm (t, ppm (s->wall_s));
        table_end_row (t);
    }
    int code = table_print (t, ctx);
    table_destroy (t);
    return code;
}

static const struct table_column estimate_columns[] = {
    {"method", "METHOD", TABLE_TEXT, 0},           {"jobs", "JOBS", TABLE_INT, 0},
    {"mean_wait_s", "MEANWAIT", TABLE_PPM, 0},     {"error_share", "ERROR", TABLE_PPM, 3},
    {"bias_share", "BIAS", TABLE_PPM, 3},          {"within_1m", "1MIN", TABLE_PPM, 3},
    {"within_10m", "10MIN", TABLE_PPM, 3},         {"certain", "CERTAIN", TABLE_PPM, 3},
    {"coverage_50", "IN50", TABLE_PPM, 3},         {"coverage_95", "IN95", TABLE_PPM, 3},
    {"unsure_coverage_50", "IN50*", TABLE_PPM, 3}, {"unsure_coverage_95", "IN95*", TABLE_PPM, 3},
    {"width_50_share", "WIDTH50", TABLE_PPM, 3},   {"width_95_share", "WIDTH95", TABLE_PPM, 3},
    {"ms_mean", "MSMEAN", TABLE_PPM, 2},           {"ms_max", "MSMAX", TABLE_PPM, 2},
};

/* Errors and widths as shares of the mean wait; *: of jobs whose answer was not certain. */
static int estimates_show (struct cli_context *ctx, const struct sim *sim)
{
    struct table *t =
        table_create (estimate_columns, sizeof estimate_columns / sizeof estimate_columns[0]);
    for (int m = 0; m < ESTIMATE_METHODS; m++) {
        const struct estimates_summary *sum = &sim->estimates.method[m];
        const struct score *s = &sum->score;
        double jobs = s->count ? (double)s->count : 1, wait = s->wait_s > 0 ? s->wait_s : 1;
        double unsure = s->count > s->certain ? (double)(s->count - s->certain) : 1;
        table_text (t, estimate_method_name ((enum estimate_method)m));
        table_int (t, (int64_t)s->count);
        table_ppm (t, ppm (s->wait_s / jobs));
        table_ppm (t, ppm (s->error_s / wait));
        table_ppm (t, ppm (s->bias_s / wait));
        table_ppm (t, ppm ((double)s->within_1m / jobs));
        table_ppm (t, ppm ((double)s->within_10m / jobs));
        table_ppm (t, ppm ((double)s->certain / jobs));
        table_ppm (t, ppm ((double)s->in50 / jobs));
        table_ppm (t, ppm ((double)s->in95 / jobs));
        table_ppm (t, ppm ((double)s->unsure_in50 / unsure));
        table_ppm (t, ppm ((double)s->unsure_in95 / unsure));
        table_ppm (t, ppm (s->width50_s / wait));
        table_ppm (t, ppm (s->width95_s / wait));
        table_ppm (t, ppm (sum->ms_mean));
        table_ppm (t, ppm (sum->ms_max));
        table_end_row (t);
    }
    int code = table_print (t, ctx);
    table_destroy (t);
    return code;
}

/* Who never ran, and why; of many, the first. */
static void never_tell (const struct sim *sim, const struct policy_entry *entry)
{
    enum { TOLD_MAX = 20 };
    uint64_t left = entry->run.stats.not_started, told = 0;
    if (left)
        fprintf (stderr, "nui sim: under %s %llu jobs never started\n", entry->label,
                 (unsigned long long)left);
    for (uint64_t i = 0; i < sim->workload->count && told < left && entry->events; i++) {
        const struct workload_job *j = &sim->workload->job[i];
        const char *why = events_never (entry->events, i);
        if (!why)
            continue;
        if (told++ == TOLD_MAX) {
            fprintf (stderr, "nui sim: and %llu more\n", (unsigned long long)(left - TOLD_MAX));
            return;
        }
        if (j->name)
            fprintf (stderr, "nui sim: job %s never ran: %s\n", j->name, why);
        else
            fprintf (stderr, "nui sim: job %llu never ran: %s\n", (unsigned long long)j->number,
                     why);
    }
}

static void skipped_tell (const struct sim *sim)
{
    for (int r = 0; r < SKIP_REASONS; r++) {
        if (sim->workload->skipped[r])
            fprintf (stderr, "nui sim: %llu of %llu jobs skipped: %s\n",
                     (unsigned long long)sim->workload->skipped[r],
                     (unsigned long long)sim->workload->read,
                     workload_skip_text ((enum workload_skip)r));
    }
    for (uint32_t i = 0; i < sim->count; i++)
        never_tell (sim, &sim->entry[i]);
}

/* --- the command ---------------------------------------------------------------------------- */

static void progress_step (void *self, uint64_t jobs_done)
{
    struct sim *sim = self;
    cli_progress_update (sim->progress, sim->progress_base + jobs_done);
}

static void site_note (void *self, const char *sentence)
{
    fprintf (stderr, "nui sim: %s: %s\n", ((const struct policy_entry *)self)->label, sentence);
}

static int replay_one (struct sim *sim, struct policy_entry *entry, struct err *err)
{
    struct simsite *place = simsite_needed (&entry->nodes, entry->policy)
                                ? simsite_create (&entry->nodes, entry->policy, sim->workload,
                                                  sim->machine, site_note, entry)
                                : NULL;
    const struct engine_site *site = simsite_engine (place);
    if (!sim->args.estimates)
        entry->events = events_create (sim->workload, sim->machine, &sim->names,
                                       sim->args.events_out && entry == sim->entry);
    struct engine_hooks hooks =
        entry->events ? events_hooks (entry->events) : (struct engine_hooks){0};
    sim->names.rsv_name = place ? simsite_rsv_name : NULL;
    sim->names.rsv_self = place;
    int rc = sim->args.estimates
                 ? estimates_replay (sim->workload, sim->machine, entry->policy, site,
                                     sim->args.tick, sim->args.seed, progress_step, sim,
                                     &entry->run, &sim->estimates, err)
                 : simrun_replay_hooked (sim->workload, sim->machine, entry->policy, site,
                                         sim->args.tick, sim->args.seed, progress_step, sim, &hooks,
                                         &entry->run, err);
    sim->names.rsv_name = NULL;
    simsite_destroy (place);
    return rc;
}

static int replay_all (struct sim *sim, struct err *err)
{
    int rc = 0;
    sim->progress = cli_progress_start ("simulated jobs", sim->workload->count * sim->count);
    for (uint32_t i = 0; i < sim->count && !rc; i++) {
        sim->progress_base = sim->workload->count * i;
        rc = replay_one (sim, &sim->entry[i], err);
        if (rc && sim->count > 1)
            err_prefix (err, "%s", sim->entry[i].path);
    }
    cli_progress_end (sim->progress);
    return rc;
}

static void sim_free (struct sim *sim)
{
    for (uint32_t i = 0; i < sim->count; i++) {
        policy_destroy (sim->entry[i].policy);
        simrun_free (&sim->entry[i].run);
        nodeconf_free (&sim->entry[i].nodes);
        events_destroy (sim->entry[i].events);
    }
    estimates_free (&sim->estimates);
    workload_destroy (sim->workload);
    machine_destroy (sim->machine);
    cred_names_free (&sim->names);
    free (sim);
}

static int entries_make (struct sim *sim, const struct cli_operands *ops)
{
    const struct args *a = &sim->args;
    uint32_t wanted = 1 + a->compare.count + (uint32_t)ops->count;
    if (ops->count && !a->compare.count)
        return cli_usage ("sim", "'%s' is no option (files to compare follow --compare)",
                          ops->item[0]);
    if (wanted > POLICIES_MAX)
        return cli_usage ("sim", "at most %d policies can be compared", POLICIES_MAX);
    sim->entry[sim->count++].path = a->config;
    for (uint32_t i = 0; i < a->compare.count; i++)
        sim->entry[sim->count++].path = a->compare.item[i];
    for (int i = 0; i < ops->count; i++)
        sim->entry[sim->count++].path = ops->item[i];
    for (uint32_t i = 0; i < sim->count; i++)
        sim->entry[i].label = last_part (sim->entry[i].path);
    return CLI_OK;
}

static int page_make (struct cli_context *ctx, const struct args *a, const struct cli_operands *ops)
{
    struct labcmd_args lab = {.experiment = a->experiment,
                              .report = a->report,
                              .workload = a->workload,
                              .resources = a->resources,
                              .config = a->config,
                              .compare = &a->compare,
                              .more = ops,
                              .nodes = a->nodes,
                              .procs_per_node = a->procs_per_node,
                              .seed = a->seed,
                              .seeds = a->seeds,
                              .workers = a->workers};
    struct err err;
    if (workload_range_parse (a->jobs, &lab.range, &err))
        return cli_usage ("sim", "--jobs %s", err.text);
    if (a->load && labcmd_load_parse (a->load, &lab.load, &err))
        return cli_usage ("sim", "%s", err.text);
    if (a->jobs_out || a->stats_out || a->trace_out || a->plot || a->tick || a->estimates ||
        a->events_out)
        return cli_usage ("sim", "--tick and the files of one simulation do not go with a page");
    if (ops->count && !a->compare.count)
        return cli_usage ("sim", "'%s' is no option (files to compare follow --compare)",
                          ops->item[0]);
    return labcmd_run (ctx, &lab);
}

static int grid_make (struct cli_context *ctx, const struct args *a, const struct cli_operands *ops)
{
    struct gridcmd_args grid = {.grid = a->grid,
                                .coallocate = a->coallocate,
                                .report = a->report,
                                .jobs_out = a->jobs_out,
                                .stats_out = a->stats_out,
                                .seed = a->seed};
    if (ops->count)
        return cli_usage ("sim", "'%s' is no option", ops->item[0]);
    if (a->config || a->workload || a->resources || a->nodes || a->procs_per_node || a->jobs)
        return cli_usage ("sim", "the file of --grid says each site's policy, jobs and machine");
    if (a->trace_out || a->plot || a->estimates || a->compare.count || a->experiment || a->tick ||
        a->load || a->seeds || a->workers)
        return cli_usage ("sim", "with --grid go --coallocate, --report, --jobs-out, --stats-out "
                                 "and --seed");
    return gridcmd_run (ctx, &grid);
}

static int sim_run (struct cli_context *ctx, int argc, char **argv)
{
    struct sim *sim = mem_zero (1, sizeof *sim);
    struct cli_operands ops;
    struct err err = {0};
    int code;
    cred_names_init (&sim->names);
    if (!cli_options (ctx, options, 0, &sim->args, argc, argv, &ops, &code))
        goto out;
    if (sim->args.grid) {
        code = grid_make (ctx, &sim->args, &ops);
        goto out;
    }
    if (sim->args.coallocate) {
        code = cli_usage ("sim", "--coallocate goes with --grid");
        goto out;
    }
    if (sim->args.experiment || sim->args.report) {
        code = page_make (ctx, &sim->args, &ops);
        goto out;
    }
    code = usage_check (sim);
    if (code == CLI_OK)
        code = entries_make (sim, &ops);
    if (code != CLI_OK)
        goto out;
    if (outputs_check (&sim->args, &err) || policies_read (sim, &err) || input_read (sim, &err) ||
        replay_all (sim, &err) || files_write (sim, &err)) {
        code = cli_fail ("sim", &err);
        goto out;
    }
    skipped_tell (sim);
    code = sim->args.estimates ? estimates_show (ctx, sim) : results_show (ctx, sim);
out:
    sim_free (sim);
    return code;
}

static const struct cli_command sim_command = {
    .name = "sim",
    .group = "Simulation",
    .summary = "run the scheduler's core over a workload log",
    .run = sim_run,
    .help = "usage: nui sim --config FILE --workload FILE [--resources FILE | --nodes N\n"
            "               [--procs-per-node P]] [--jobs A..B] [--tick DURATION] [--seed S]\n"
            "               [--jobs-out FILE.csv] [--stats-out FILE.json] [--trace-out FILE]\n"
            "               [--plot FILE.svg] [--estimates FILE.csv] [--events-out FILE.csv]\n"
            "               [--compare FILE ...] [--load F]\n"
            "       nui sim --experiment NAME [--workload FILE] [--report DIR] [--seed S]\n"
            "       nui sim --compare FILE FILE ... --workload FILE --report DIR\n"
            "       nui sim --grid FILE [--coallocate SHARES] [--report DIR] [--seed S]\n"
            "               [--jobs-out FILE.csv] [--stats-out FILE.json]",
    .text = "Replays a workload through the scheduler's own core, in virtual time.",
    .options = options,
    .example = "nui sim -c maui.cfg -w KTH-SP2.swf.gz --plot kth.svg",
};

const struct cli_command *const sim_commands[] = {&sim_command, NULL};
