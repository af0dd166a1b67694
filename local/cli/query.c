/* mjobctl -q: one attribute of each of several jobs, for scripts. */
#include <stdio.h>
#include <string.h>

#include "local/cli/local_cli.h"

typedef Nui__Local__V1__JobDetail detail;

static void joined (char *const *item, size_t count, struct strbuf *out)
{
    for (size_t i = 0; i < count; i++)
        strbuf_printf (out, "%s%s", i ? "," : "", item[i]);
}

static void say_time (int64_t t, struct strbuf *out)
{
    char text[QUANTITY_TEXT_MAX];
    if (t)
        strbuf_puts (out, time_format_iso (t, text));
}

static void say_account (const detail *d, struct strbuf *out)
{
    strbuf_puts (out, d->job->account);
}

static void say_class (const detail *d, struct strbuf *out)
{
    strbuf_puts (out, d->job->class_);
}

static void say_group (const detail *d, struct strbuf *out)
{
    strbuf_puts (out, d->job->group);
}

static void say_holds (const detail *d, struct strbuf *out)
{
    joined (d->holds, d->n_holds, out);
}

static void say_hostlist (const detail *d, struct strbuf *out)
{
    for (size_t r = 0; r < d->n_reqs; r++)
        for (size_t n = 0; n < d->reqs[r]->n_nodes; n++)
            strbuf_printf (out, "%s%s", out->len ? "," : "", d->reqs[r]->nodes[n]->node);
}

static void say_priority (const detail *d, struct strbuf *out)
{
    strbuf_printf (out, "%lld", (long long)d->job->priority);
}

static void say_procs (const detail *d, struct strbuf *out)
{
    strbuf_printf (out, "%u", d->job->procs);
}

static void say_qos (const detail *d, struct strbuf *out)
{
    strbuf_puts (out, d->job->qos);
}

static void say_reason (const detail *d, struct strbuf *out)
{
    strbuf_puts (out, d->reason ? d->reason->text : "");
}

/* Of a waiting job: as showstart has it. */
static void say_starttime (const detail *d, struct strbuf *out)
{
    say_time (d->job->start_us ? d->job->start_us : d->start_estimate_us, out);
}

static void say_state (const detail *d, struct strbuf *out)
{
    strbuf_puts (out, d->job->state);
}

static void say_submittime (const detail *d, struct strbuf *out)
{
    say_time (d->job->submit_us, out);
}

static void say_user (const detail *d, struct strbuf *out)
{
    strbuf_puts (out, d->job->user);
}

static void say_wclimit (const detail *d, struct strbuf *out)
{
    char text[QUANTITY_TEXT_MAX];
    strbuf_puts (out, duration_format (d->job->walltime_us, text));
}

static const struct attribute {
    const char *name;
    void (*say) (const detail *d, struct strbuf *out); /* nothing: it has none */
} attributes[] = {
    {"account", say_account},     {"class", say_class},       {"group", say_group},
    {"holds", say_holds},         {"hostlist", say_hostlist}, {"priority", say_priority},
    {"procs", say_procs},         {"qos", say_qos},           {"reason", say_reason},
    {"starttime", say_starttime}, {"state", say_state},       {"submittime", say_submittime},
    {"user", say_user},           {"wclimit", say_wclimit},
};
enum { ATTRIBUTES = sizeof attributes / sizeof *attributes };

static const char *query_names (void)
{
    return "account, class, group, holds, hostlist, priority, procs, qos, reason, starttime, state, "
           "submittime, user or wclimit";
}

static const struct attribute *find (const char *name)
{
    for (size_t i = 0; i < ATTRIBUTES; i++)
        if (strcmp (attributes[i].name, name) == 0)
            return &attributes[i];
    return NULL;
}

static int query_one (struct cli_context *ctx, const char *site, const struct attribute *a,
                      char *job, struct table *t)
{
    detail *d = NULL;
    struct strbuf value = STRBUF_INIT;
    struct err err = {0};
    if (checkjob_fetch (ctx, site, job, false, &d, &err) < 0)
        return cli_fail ("mjobctl", &err);
    a->say (d, &value);
    table_text (t, d->job->job_id);
    table_text (t, a->name);
    cell_text (t, strbuf_text (&value));
    table_end_row (t);
    strbuf_free (&value);
    nui__local__v1__job_detail__free_unpacked (d, NULL);
    return CLI_OK;
}

int query_all (struct cli_context *ctx, const char *site, const char *attribute, char **job,
               int count)
{
    static const struct table_column columns[] = {
        {"job_id", "JobName", TABLE_TEXT, 0},
        {"attribute", "Attribute", TABLE_TEXT, 0},
        {"value", "Value", TABLE_TEXT, 0},
    };
    const struct attribute *a = find (attribute);
    int all = CLI_OK;
    if (!a)
        return cli_usage ("mjobctl", "-q '%s': wanted %s", attribute, query_names ());
    struct table *t = table_create (columns, 3);
    for (int i = 0; i < count; i++)
        all = worse (all, query_one (ctx, site, a, job[i], t));
    if (table_row_count (t) > 0 || cli_format (ctx) != CLI_TABLE)
        all = worse (all, table_print (t, ctx));
    table_destroy (t);
    return all;
}
