/* lab: the list of experiments, what they share (input, machine, numbers), and their runs
 * through the pool. labcmd.c calls it, each exp file calls back. No folder is made before all
 * input was found good. */
#include "local/sim/lab/lab.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "local/sim/lab/model.h"
#include "local/sim/lab/pbsfifo.h"
#include "proto/base/mem.h"
#include "proto/base/strbuf.h"

static const struct lab_experiment experiments[] = {
    {"mix", "The 76-job mix: PBS FIFO, Maui, Maui without backfill",
     "total run time of 76 jobs over many seeds (Bode et al. 2000, sections 5 and 6)", exp_mix},
    {"agents", "User agents: developers, heavy users and a gap filler",
     "users who wait for their jobs, until an amount of work is done (the same, section 7)",
     exp_agents},
    {"delay", "What backfill does to each job's wait",
     "each job's wait with and without backfill (Jackson et al. 2001, figure 2)", exp_delay},
    {"algorithms", "Backfill algorithms side by side",
     "FIRSTFIT, BESTFIT, GREEDY and none (the same, figure 4)", exp_algorithms},
    {"fairshare", "Fairshare steering usage to its targets",
     "weekly shares of four accounts with and without targets (the same, section 6)",
     exp_fairshare},
    {"depth", "Reservation depth against use of the machine and expansion factor",
     "RESERVATIONDEPTH from 0 to 64 (the same, section 4.2)", exp_depth},
};

static const struct lab_experiment compare = {"compare", "Policies on this site's own log",
                                              "with intervals", exp_compare};

/* NULL past the last. */
static const struct lab_experiment *lab_experiment_at (uint32_t i)
{
    return i < sizeof experiments / sizeof experiments[0] ? &experiments[i] : NULL;
}

static const struct lab_experiment *find (const char *name, struct err *err)
{
    struct strbuf names = STRBUF_INIT;
    if (!name)
        return &compare;
    for (uint32_t i = 0; lab_experiment_at (i); i++) {
        if (strcmp (experiments[i].name, name) == 0) {
            strbuf_free (&names);
            return &experiments[i];
        }
        strbuf_printf (&names, "%s%s", i ? ", " : "", experiments[i].name);
    }
    err_set (err, ERR_INVALID, "there is no experiment '%.40s'; there are %s", name,
             strbuf_text (&names));
    strbuf_free (&names);
    return NULL;
}

static int folder_make (const char *folder, struct err *err)
{
    struct strbuf path = STRBUF_INIT;
    if (!folder)
        return 0;
    strbuf_printf (&path, "%s/runs", folder);
    int rc = report_folder_make (strbuf_text (&path), err);
    strbuf_free (&path);
    return rc;
}

int lab_perform (const struct lab_options *options, struct lab **lab_out, struct err *err)
{
    const struct lab_experiment *experiment = find (options->experiment, err);
    if (!experiment)
        return ERR_INVALID;
    struct lab *lab = mem_zero (1, sizeof *lab);
    lab->options = options;
    lab->arena = arena_create (0);
    lab->source = "";
    cred_names_init (&lab->names);
    int rc = experiment->run (lab, err);
    if (!rc && lab->from_log)
        report_text (
            lab->report,
            "Where results from a log of the Parallel Workloads Archive (D. Feitelson, Hebrew "
            "University) are shown, the archive and the log's site are to be acknowledged.");
    if (!rc && options->folder)
        rc = report_write (lab->report, options->folder, err);
    if (rc)
        lab_destroy (lab);
    else
        *lab_out = lab;
    return rc;
}

void lab_destroy (struct lab *lab)
{
    if (!lab)
        return;
    report_destroy (lab->report);
    workload_destroy (lab->workload);
    machine_destroy (lab->machine);
    cred_names_free (&lab->names);
    arena_destroy (lab->arena);
    free (lab);
}

/* --- input ---------------------------------------------------------------------------------- */

static const char *last_part (const char *path)
{
    const char *slash = strrchr (path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int machine_make (struct lab *lab, uint32_t procs, struct err *err)
{
    const struct lab_options *o = lab->options;
    if (o->resources)
        lab->machine = machine_read (o->resources, lab->workload, err);
    else if (o->nodes)
        lab->machine = machine_uniform (o->nodes, o->procs_per_node ? o->procs_per_node : 1, err);
    else if (procs)
        lab->machine = machine_uniform (procs, 1, err);
    else
        return err_set (err, ERR_INVALID,
                        "%s does not say how large its machine is (MaxProcs); give --nodes N or "
                        "--resources FILE",
                        o->workload);
    return lab->machine ? 0 : err->code;
}

static int log_read (struct lab *lab, struct err *err)
{
    const struct lab_options *o = lab->options;
    struct workload_range range = o->range.last ? o->range : (struct workload_range){1, UINT64_MAX};
    lab->workload = workload_read (o->workload, &range, &lab->names, err);
    if (!lab->workload)
        return err->code;
    int64_t header = lab->workload->header_procs;
    int rc = machine_make (lab, header > 0 && header <= NODES_MAX ? (uint32_t)header : 0, err);
    if (rc)
        return rc;
    workload_fit (lab->workload, lab->machine);
    if (lab->workload->count == 0)
        return err_set (err, ERR_INVALID, "%s: no job fits the machine of %lld processors",
                        o->workload, (long long)lab->machine->procs);
    if (o->load > 0)
        model_scale (lab->workload, o->load);
    lab->from_log = true;
    lab->source = lab_words (
        lab, "%s: %llu jobs on %lld processors%s, offered load %.2f", last_part (o->workload),
        (unsigned long long)lab->workload->count, (long long)lab->machine->procs,
        o->load > 0 ? lab_words (lab, ", %.2f times its own load", o->load) : "",
        model_load (lab->workload, lab->machine->procs));
    return 0;
}

int lab_workload (struct lab *lab, uint32_t jobs, uint32_t procs, double load, struct err *err)
{
    const struct lab_options *o = lab->options;
    uint64_t named = 0;
    if (o->workload && !model_named (o->workload, &named))
        return log_read (lab, err);
    struct lublin_options model = {.seed = o->seed,
                                   .jobs = named ? (uint32_t)named : jobs,
                                   .procs = procs,
                                   .users = 32,
                                   .load = load};
    if (o->nodes)
        model.procs = o->nodes * (o->procs_per_node ? o->procs_per_node : 1);
    if (o->load > 0)
        model.load *= o->load;
    int rc = machine_make (lab, procs, err);
    if (rc)
        return rc;
    lab->workload = model_lublin (&model, &lab->names);
    workload_fit (lab->workload, lab->machine);
    lab->source = lab_words (lab,
                             "Jobs of the Lublin-Feitelson model, seed %llu: %u jobs on %u "
                             "processors, offered load %.2f",
                             (unsigned long long)o->seed, model.jobs, model.procs, model.load);
    return 0;
}

/* --- runs ----------------------------------------------------------------------------------- */

struct lab_run lab_run_make (struct lab *lab, const char *label, const char *config,
                             const struct workload *workload)
{
    return (struct lab_run){.label = label,
                            .config = config,
                            .seed = lab->options->seed,
                            .starving = PBSFIFO_STARVING_DEFAULT,
                            .workload = workload,
                            .machine = lab->machine,
                            .names = &lab->names};
}

int lab_execute (struct lab *lab, struct lab_run *run, uint32_t count, struct err *err)
{
    struct pool_options options = {.workers = lab->options->workers,
                                   .self = lab->options->self,
                                   .progress = lab->options->progress};
    /* Only now that all input was found good: a refused command leaves no folder behind. */
    for (uint32_t i = 0; i < count; i++) {
        int rc = lab_run_check (&run[i], err);
        if (rc)
            return rc;
    }
    if (lab->options->folder) {
        int rc = folder_make (lab->options->folder, err);
        if (rc)
            return rc;
        options.folder = lab_words (lab, "%s/runs", lab->options->folder);
    }
    return pool_run (run, count, &options, &lab->runs, err);
}

double *lab_numbers (struct lab *lab, uint64_t count)
{
    return arena_array (lab->arena, count + 1, sizeof (double));
}

double *lab_steps (struct lab *lab, uint32_t count, double from, double step)
{
    double *out = lab_numbers (lab, count);
    for (uint32_t i = 0; i < count; i++)
        out[i] = from + i * step;
    return out;
}

const char *lab_words (struct lab *lab, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    const char *text = arena_vprintf (lab->arena, fmt, ap);
    va_end (ap);
    return text;
}

const char *lab_command (struct lab *lab, const char *experiment, uint32_t seeds)
{
    const struct lab_options *o = lab->options;
    struct strbuf b = STRBUF_INIT;
    strbuf_printf (&b, "nui sim --experiment %s --seed %llu", experiment,
                   (unsigned long long)o->seed);
    if (seeds)
        strbuf_printf (&b, " --seeds %u", seeds);
    if (o->workload)
        strbuf_printf (&b, " --workload %s", o->workload);
    if (o->range.last && (o->range.first > 1 || o->range.last < UINT64_MAX))
        strbuf_printf (&b, " --jobs %llu..", (unsigned long long)o->range.first);
    if (o->range.last && o->range.last < UINT64_MAX)
        strbuf_printf (&b, "%llu", (unsigned long long)o->range.last);
    if (o->resources)
        strbuf_printf (&b, " --resources %s", o->resources);
    if (o->nodes)
        strbuf_printf (&b, " --nodes %u --procs-per-node %u", o->nodes,
                       o->procs_per_node ? o->procs_per_node : 1);
    if (o->load > 0)
        strbuf_printf (&b, " --load %g", o->load);
    strbuf_putc (&b, '\n');
    const char *text = arena_strdup (lab->arena, b.data);
    strbuf_free (&b);
    return text;
}

const char *lab_number (struct lab *lab, double value, bool sign)
{
    double size = fabs (value);
    int digits = size >= 100                ? 0
                 : size >= 10               ? 1
                 : size >= 1                ? 2
                 : size >= .01 || size == 0 ? 3
                                            : 4;
    return sign ? lab_words (lab, "%+.*f", digits, value) : lab_words (lab, "%.*f", digits, value);
}

/* --- shared parts of pages ------------------------------------------------------------------ */

void lab_figure_use (struct lab *lab, const struct lab_run *run, uint32_t count,
                     const char *csv_name, const char *caption)
{
    enum { POINTS = 120 };
    double from = INFINITY, until = 0;
    for (uint32_t r = 0; r < count; r++) {
        double begin = lab_first_submit_s (&run[r].result), end = lab_last_end_s (&run[r].result);
        from = begin < from ? begin : from;
        until = end > until ? end : until;
    }
    double unit = until - from > 3 * 86400 ? 86400 : 3600;
    double width = (until - from) / POINTS;
    struct chart chart = {.title = "Processors in use",
                          .y_label = "of all processors",
                          .x_label = unit > 3600 ? "days since the first submission"
                                                 : "hours since the first submission",
                          .y_percent = 1,
                          .y_zero = true,
                          .y_max = 1};
    double *x = lab_steps (lab, POINTS, width / 2 / unit, width / unit);
    for (uint32_t r = 0; r < count && r < CHART_SERIES_MAX; r++) {
        double *y = lab_numbers (lab, POINTS);
        lab_use (&run[r].result, lab->machine->procs, from, until, POINTS, y);
        chart_add (&chart, run[r].label, CHART_LINE, POINTS, x, y);
    }
    report_chart_csv (lab->report, csv_name, unit > 3600 ? "day" : "hour", &chart);
    report_figure (lab->report, &chart, csv_name, caption);
}

void lab_table_stats (struct lab *lab, const struct lab_run *run, uint32_t count,
                      const char *csv_name)
{
    struct strbuf rows = STRBUF_INIT;
    strbuf_puts (&rows, "policy\tjobs\tmean wait h\tmedian h\t95 % h\tlongest h\tslowdown\t"
                        "expansion factor\tin use %\tbackfilled %\tseconds");
    for (uint32_t r = 0; r < count; r++) {
        struct lab_stats s;
        lab_stats_compute (&run[r].result, lab->machine->procs, &s);
        strbuf_printf (
            &rows, "\n%s\t%llu\t%.2f\t%.2f\t%.1f\t%.1f\t%.1f\t%.2f\t%.1f\t%.0f\t%.2f", run[r].label,
            (unsigned long long)s.jobs, s.mean_wait_s / 3600, s.median_wait_s / 3600,
            s.p95_wait_s / 3600, s.max_wait_s / 3600, s.slowdown, s.xfactor, 100 * s.used_loaded,
            s.jobs ? 100. * (double)s.backfilled / (double)s.jobs : 0, run[r].result.wall_s);
    }
    strbuf_puts (&rows, "\n");
    report_table (lab->report, rows.data, csv_name);
    strbuf_free (&rows);
}
