/* labcmd: options of --experiment, --compare and --report, progress, and findings on the
 * terminal. simcmd.c calls it. It computes no number: what it shows is what the page says. */
#include "local/sim/lab/labcmd.h"

#include <stdio.h>
#include <string.h>

#include "local/conf/policyconf.h"
#include "local/sim/lab/lab.h"
#include "proto/cli/table.h"

struct telling {
    struct cli_progress *progress;
};

static void progress_tell (void *self, uint64_t done, uint64_t total)
{
    struct telling *t = self;
    if (!t->progress)
        t->progress = cli_progress_start ("simulated jobs", total);
    cli_progress_update (t->progress, done);
}

int labcmd_load_parse (const char *text, double *out, struct err *err)
{
    int64_t ppm;
    int rc = ppm_parse (text, "--load", &ppm, err);
    if (rc)
        return rc;
    if (ppm <= 0 || ppm > INT64_C (1000) * 1000000)
        return err_set (err, ERR_INVALID, "--load %.40s: a factor above 0 and up to 1000", text);
    *out = (double)ppm / 1e6;
    return 0;
}

static const struct table_column columns[] = {
    {"finding", "FINDING", TABLE_TEXT, 0},
    {"value", "VALUE", TABLE_PPM, 3},
    {"verdict", "VERDICT", TABLE_TEXT, 0},
    {"found", "FOUND", TABLE_TEXT, 0},
};

static int findings_show (struct cli_context *ctx, const struct lab *lab)
{
    static const char *const verdict[] = {"holds", "differs", "noise", "-", "lower", "higher"};
    struct table *t = table_create (columns, sizeof columns / sizeof columns[0]);
    const struct finding *f;
    for (uint32_t i = 0; (f = report_finding_at (lab->report, i)); i++) {
        bool whole = f->value > -9e12 && f->value < 9e12; /* millionths in 64 bits */
        table_text (t, f->name);
        table_ppm (t, whole ? (int64_t)(f->value * 1e6) : 0);
        table_text (t, verdict[f->verdict]);
        table_text (t, f->ours);
        table_end_row (t);
    }
    int code = table_print (t, ctx);
    table_destroy (t);
    return code;
}

/* What the administrator should hear of his files; whether they can be read at all. */
static int configs_check (const struct lab_options *o, struct err *err)
{
    struct cred_names names;
    int rc = 0;
    cred_names_init (&names);
    for (uint32_t i = 0; i < o->config_count && !rc; i++) {
        struct policy *policy = NULL;
        struct conf *conf = NULL;
        if (strcmp (o->config[i], i > 0 ? LAB_PBSFIFO_NAME : LAB_LOG_NAME) == 0)
            continue;
        rc = policy_conf_load (o->config[i], &names, &policy, &conf, err);
        for (uint32_t n = 0; !rc && n < conf_note_count (conf); n++)
            fprintf (stderr, "nui sim: %s\n", conf_note (conf, n));
        policy_destroy (policy);
        conf_destroy (conf);
    }
    cred_names_free (&names);
    return rc;
}

static int usage_check (const struct labcmd_args *a, const struct lab_options *o)
{
    if (a->experiment && (a->config || a->compare->count))
        return cli_usage ("sim",
                          "an experiment brings its own policies; --config and --compare do not go "
                          "with it");
    if (!a->experiment && !a->workload)
        return cli_usage ("sim", "which jobs? give --workload FILE");
    if (!a->experiment && o->config_count < 2)
        return cli_usage ("sim", "a comparison needs two policies: --compare A.cfg B.cfg");
    if (a->resources && a->nodes)
        return cli_usage ("sim", "--resources and --nodes both describe the machine; give one");
    if (a->procs_per_node && !a->nodes)
        return cli_usage ("sim", "--procs-per-node goes with --nodes");
    return CLI_OK;
}

static int config_add (struct lab_options *o, const char *path)
{
    if (o->config_count == LAB_CONFIGS_MAX)
        return cli_usage ("sim", "at most %d policies can be on one page", LAB_CONFIGS_MAX);
    o->config[o->config_count++] = path;
    return CLI_OK;
}

int labcmd_run (struct cli_context *ctx, const struct labcmd_args *a)
{
    struct telling telling = {0};
    struct lab_options o = {.experiment = a->experiment,
                            .workload = a->workload,
                            .resources = a->resources,
                            .nodes = (uint32_t)a->nodes,
                            .procs_per_node = (uint32_t)a->procs_per_node,
                            .range = a->range,
                            .load = a->load,
                            .seed = a->seed,
                            .seeds = (uint32_t)a->seeds,
                            .folder = a->report,
                            .workers = (uint32_t)a->workers,
                            .self = &telling,
                            .progress = progress_tell};
    struct lab *lab;
    struct err err = {0};
    int code = a->config ? config_add (&o, a->config) : CLI_OK;
    for (uint32_t i = 0; i < a->compare->count && code == CLI_OK; i++)
        code = config_add (&o, a->compare->item[i]);
    for (int i = 0; i < a->more->count && code == CLI_OK; i++)
        code = config_add (&o, a->more->item[i]);
    if (code == CLI_OK)
        code = usage_check (a, &o);
    if (code != CLI_OK)
        return code;
    int rc = configs_check (&o, &err);
    if (!rc)
        rc = lab_perform (&o, &lab, &err);
    if (telling.progress)
        cli_progress_end (telling.progress);
    if (rc) {
        code = cli_fail ("sim", &err);
        return rc == ERR_UNAVAILABLE ? CLI_FAILED : code; /* stopped: no daemon failed to answer */
    }
    if (lab->runs.kept)
        fprintf (stderr, "nui sim: %u of %u simulations were there from before\n", lab->runs.kept,
                 lab->runs.kept + lab->runs.simulated);
    code = findings_show (ctx, lab);
    if (a->report)
        fprintf (stderr, "nui sim: the page is %s/index.html\n", a->report);
    lab_destroy (lab);
    return code;
}
