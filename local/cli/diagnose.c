/* diagnose: what the scheduler weighs, and what stands in the way. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "local/cli/stats_cli.h"
#include "proto/base/hostlist.h"
#include "proto/rpc/pbcopy.h"

/* What is told beside the table; limits of which level count. */
struct diagnose_how {
    bool verbose;
    const char *level; /* NULL: HARD */
};

/* --- -p: priorities ----------------------------------------------------------------------- */

static void on_priorities (void *arg, const ProtobufCMessage *message)
{
    struct priorities *p = arg;
    struct priority_chunk *c = arena_new (p->arena, struct priority_chunk);
    c->message = (Nui__Local__V1__PrioritiesChunk *)pbcopy (message);
    if (p->last)
        p->last->next = c;
    else
        p->first = c;
    p->last = c;
}

static void priorities_free (struct priorities *p)
{
    for (struct priority_chunk *c = p->first; c; c = c->next)
        nui__local__v1__priorities_chunk__free_unpacked (c->message, NULL);
    arena_destroy (p->arena);
}

static const char *short_name (const char *const pairs[][2], const char *name)
{
    for (size_t i = 0; pairs[i][0]; i++)
        if (strcmp (pairs[i][0], name) == 0)
            return pairs[i][1];
    return name;
}

static const char *component_short (const char *name)
{
    static const char *const pairs[][2] = {{"CRED", "Cred"},   {"FS", "FS"},   {"SERV", "Serv"},
                                           {"TARG", "Targ"},   {"RES", "Res"}, {"SERVICE", "Serv"},
                                           {"TARGET", "Targ"}, {NULL, NULL}};
    return short_name (pairs, name);
}

static const char *sub_short (const char *name)
{
    static const char *const pairs[][2] = {{"USER", "User"},
                                           {"GROUP", "Group"},
                                           {"ACCOUNT", "Accnt"},
                                           {"CLASS", "Class"},
                                           {"QOS", "QOS"},
                                           {"FSUSER", "User"},
                                           {"FSGROUP", "Group"},
                                           {"FSACCOUNT", "Accnt"},
                                           {"FSCLASS", "Class"},
                                           {"FSQOS", "QOS"},
                                           {"NODE", "Node"},
                                           {"PROC", "Proc"},
                                           {"MEM", "Mem"},
                                           {"SWAP", "Swap"},
                                           {"DISK", "Disk"},
                                           {"PS", "PS"},
                                           {"PE", "PE"},
                                           {"WALLTIME", "WallT"},
                                           {"QUEUETIME", "QTime"},
                                           {"XFACTOR", "XFctr"},
                                           {"BYPASS", "Bypas"},
                                           {"SPVIOLATION", "SPVio"},
                                           {"TARGETQUEUETIME", "QTime"},
                                           {"TARGETXFACTOR", "XFctr"},
                                           {NULL, NULL}};
    return short_name (pairs, name);
}

/* Five characters wide; what does not fit with a decimal goes without. */
static void number (double value, struct strbuf *out)
{
    char text[32];
    snprintf (text, sizeof text, "%5.1f", value);
    if (strlen (text) > 5)
        snprintf (text, sizeof text, "%5.0f", value);
    strbuf_puts (out, text);
}

/* One line: for each component its share of the whole and, in brackets, each part; with `shares`
 * the parts are shares as well. */
static void parts_text (const Nui__Local__V1__PrioritiesChunk *head, const double *values,
                        bool shares, struct strbuf *out)
{
    double whole = 0;
    size_t at = 0, n = 0;
    for (size_t p = 0; p < head->n_parts; p++)
        for (size_t s = 0; s < head->parts[p]->n_subs; s++)
            whole += fabs (values[n++]);
    for (size_t p = 0; p < head->n_parts; p++) {
        const Nui__Local__V1__PriorityPart *part = head->parts[p];
        double sum = 0;
        for (size_t s = 0; s < part->n_subs; s++)
            sum += fabs (values[at + s]);
        strbuf_printf (out, "%6.1f(", whole > 0 ? 100 * sum / whole : 0);
        for (size_t s = 0; s < part->n_subs; s++, at++) {
            strbuf_puts (out, s ? ":" : "");
            number (shares ? (whole > 0 ? 100 * fabs (values[at]) / whole : 0) : values[at], out);
        }
        strbuf_putc (out, ')');
    }
    strbuf_putc (out, '\n');
}

static void priority_titles (const Nui__Local__V1__PrioritiesChunk *head, struct strbuf *out)
{
    strbuf_puts (out, "diagnosing job priority information (partition: ALL)\n\n"
                      "Job                    PRIORITY* ");
    for (size_t p = 0; p < head->n_parts; p++) {
        strbuf_printf (out, "%6s(", component_short (head->parts[p]->component));
        for (size_t s = 0; s < head->parts[p]->n_subs; s++)
            strbuf_printf (out, "%s%5s", s ? ":" : "", sub_short (head->parts[p]->subs[s]));
        strbuf_putc (out, ')');
    }
    strbuf_puts (out, "\n             Weights   --------  ");
    for (size_t p = 0; p < head->n_parts; p++) {
        strbuf_printf (out, "%6g(", head->parts[p]->weight);
        for (size_t s = 0; s < head->parts[p]->n_subs; s++)
            strbuf_printf (out, "%s%5g", s ? ":" : "", head->parts[p]->weights[s]);
        strbuf_putc (out, ')');
    }
    strbuf_puts (out, "\n\n");
}

void priorities_text (const struct priorities *p, bool noheader, struct strbuf *out)
{
    const Nui__Local__V1__PrioritiesChunk *head = p->first->message;
    double sum[64] = {0};
    bool marked = false;
    if (!noheader)
        priority_titles (head, out);
    for (const struct priority_chunk *c = p->first; c; c = c->next)
        for (size_t i = 0; i < c->message->n_rows; i++) {
            const Nui__Local__V1__PriorityRow *r = c->message->rows[i];
            strbuf_printf (out, "%-20s %10lld%c ", r->job_id, (long long)r->priority,
                           r->system ? '*' : ' ');
            parts_text (head, r->values, false, out);
            for (size_t v = 0; v < r->n_values && v < 64; v++)
                sum[v] += fabs (r->values[v]);
            marked = marked || r->system;
        }
    if (noheader)
        return;
    strbuf_puts (out, "\nPercent Contribution   --------  ");
    parts_text (head, sum, true, out);
    strbuf_puts (out, marked ? "\n* indicates system prio set on job\n\n" : "\n");
}

/* Of one job: every subcomponent with its weight, what it adds, and its share in percent. */
static void priority_parts_text (const struct priorities *p, struct strbuf *out)
{
    const Nui__Local__V1__PrioritiesChunk *head = p->first->message;
    double whole = 0;
    size_t at = 0;
    if (head->n_rows == 0)
        return;
    const Nui__Local__V1__PriorityRow *r = head->rows[0];
    for (size_t v = 0; v < r->n_values; v++)
        whole += fabs (r->values[v]);
    strbuf_puts (out, "Component  Subcomponent     Weight   SubWeight    Contribution  Percent\n");
    for (size_t i = 0; i < head->n_parts; i++)
        for (size_t s = 0; s < head->parts[i]->n_subs; s++, at++)
            strbuf_printf (out, "%-10s %-15s %7g %11g %15.3f  %6.2f%%\n",
                           component_short (head->parts[i]->component), head->parts[i]->subs[s],
                           head->parts[i]->weight, head->parts[i]->weights[s], r->values[at],
                           whole > 0 ? 100 * fabs (r->values[at]) / whole : 0);
    strbuf_putc (out, '\n');
}

static void priority_json_row (const Nui__Local__V1__PrioritiesChunk *head,
                               const Nui__Local__V1__PriorityRow *r, struct jsonout *j)
{
    double whole = 0;
    size_t at = 0;
    jsonout_object (j);
    jsonout_key (j, "job_id");
    jsonout_text (j, r->job_id);
    jsonout_key (j, "priority");
    jsonout_int (j, r->priority);
    jsonout_key (j, "system");
    jsonout_bool (j, r->system);
    for (size_t v = 0; v < r->n_values; v++)
        whole += fabs (r->values[v]);
    for (size_t p = 0; p < head->n_parts; p++)
        for (size_t s = 0; s < head->parts[p]->n_subs; s++, at++) {
            jsonout_key (j, head->parts[p]->subs[s]);
            jsonout_object (j);
            jsonout_key (j, "value");
            jsonout_ppm (j, (int64_t)llround (r->values[at] * 1e6));
            jsonout_key (j, "percent");
            jsonout_ppm (j, (int64_t)llround (whole > 0 ? 1e8 * fabs (r->values[at]) / whole : 0));
            jsonout_end (j);
        }
    jsonout_end (j);
}

static void priorities_csv (const struct priorities *p, bool noheader, struct strbuf *out)
{
    const Nui__Local__V1__PrioritiesChunk *head = p->first->message;
    if (!noheader) {
        strbuf_puts (out, "job_id,priority,system");
        for (size_t i = 0; i < head->n_parts; i++)
            for (size_t s = 0; s < head->parts[i]->n_subs; s++)
                strbuf_printf (out, ",%s,%s_percent", head->parts[i]->subs[s],
                               head->parts[i]->subs[s]);
        strbuf_puts (out, "\r\n");
    }
    for (const struct priority_chunk *c = p->first; c; c = c->next)
        for (size_t i = 0; i < c->message->n_rows; i++) {
            const Nui__Local__V1__PriorityRow *r = c->message->rows[i];
            double whole = 0;
            strbuf_printf (out, "%s,%lld,%s", r->job_id, (long long)r->priority,
                           r->system ? "true" : "false");
            for (size_t v = 0; v < r->n_values; v++)
                whole += fabs (r->values[v]);
            for (size_t v = 0; v < r->n_values; v++)
                strbuf_printf (out, ",%.6f,%.6f", r->values[v],
                               whole > 0 ? 100 * fabs (r->values[v]) / whole : 0);
            strbuf_puts (out, "\r\n");
        }
}

/* The parts of every job, one below the other. */
static void all_parts_text (const struct priorities *p, struct strbuf *out)
{
    Nui__Local__V1__PrioritiesChunk one = *p->first->message;
    struct priority_chunk only = {&one, NULL};
    struct priorities row = {.first = &only};
    one.n_rows = 1;
    for (const struct priority_chunk *c = p->first; c; c = c->next)
        for (size_t i = 0; i < c->message->n_rows; i++) {
            strbuf_printf (out, "job %s\n", c->message->rows[i]->job_id);
            one.rows = &c->message->rows[i];
            priority_parts_text (&row, out);
        }
}

static int diagnose_priorities (struct cli_context *ctx, const char *site,
                                const struct diagnose_how *how, const char *job)
{
    Nui__Local__V1__PrioritiesRequest request = NUI__LOCAL__V1__PRIORITIES_REQUEST__INIT;
    struct priorities p = {.arena = arena_create (0)};
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    struct rpcclient *client = cli_site (ctx, site, &err);
    int exit_code;
    if (job)
        request.job_id = (char *)job;
    if (!client ||
        rpcclient_stream (client, &nui__local__v1__admin__descriptor, "Priorities", &request.base,
                          SITE_CALL_TIMEOUT_S * US_PER_S, on_priorities, &p, &err) < 0) {
        exit_code = cli_fail ("diagnose", &err);
    } else {
        if (cli_format (ctx) == CLI_TABLE) {
            priorities_text (&p, cli_noheader (ctx), &out);
            if (job)
                priority_parts_text (&p, &out);
            else if (how->verbose)
                all_parts_text (&p, &out);
        } else if (cli_format (ctx) == CLI_CSV) {
            priorities_csv (&p, cli_noheader (ctx), &out);
        } else {
            struct jsonout j = jsonout_make (&out);
            jsonout_array (&j);
            for (const struct priority_chunk *c = p.first; c; c = c->next)
                for (size_t i = 0; i < c->message->n_rows; i++)
                    priority_json_row (p.first->message, c->message->rows[i], &j);
            jsonout_end (&j);
        }
        exit_code = cli_output (&out);
    }
    strbuf_free (&out);
    priorities_free (&p);
    return exit_code;
}

/* --- -f: fairshare ------------------------------------------------------------------------ */

static void fairshare_kind (const Nui__Local__V1__FairshareReply *r, const char *kind,
                            const char *title, struct strbuf *out)
{
    bool begun = false;
    for (size_t i = 0; i < r->n_rows; i++) {
        const Nui__Local__V1__FairshareRow *row = r->rows[i];
        if (strcmp (row->kind, kind) != 0)
            continue;
        if (!begun)
            strbuf_printf (out, "%s\n-------------\n", title);
        begun = true;
        strbuf_printf (out, "%-14s %7.2f", row->name, row->percent);
        if (*row->target_type)
            strbuf_printf (out, " %6.2f%c", row->target,
                           *row->target_type == '=' ? ' ' : *row->target_type);
        else
            strbuf_puts (out, " -------");
        for (size_t n = 0; n < row->n_windows; n++) {
            if (row->windows[n] > 0)
                strbuf_printf (out, " %7.2f", row->windows[n]);
            else
                strbuf_puts (out, " -------");
        }
        strbuf_putc (out, '\n');
    }
    if (begun)
        strbuf_putc (out, '\n');
}

/* kind: as of credentials; NULL: all */
static void fairshare_text (const Nui__Local__V1__FairshareReply *r, const char *kind,
                            struct strbuf *out)
{
    static const char *const kinds[][2] = {{"user", "USER"},
                                           {"group", "GROUP"},
                                           {"account", "ACCT"},
                                           {"qos", "QOS"},
                                           {"class", "CLASS"}};
    char a[QUANTITY_TEXT_MAX];
    double weight = 1;
    strbuf_printf (out,
                   "FairShare Information\n\nDepth: %u intervals   Interval Length: %s   "
                   "Decay Rate: %.2f\n\nFS Policy: %s\nSystem FS Settings:  "
                   "Target Usage: 0.00    Flags: 0\n\n",
                   r->depth, span_text (r->interval_us, a), r->decay, r->policy);
    strbuf_puts (out, "FSInterval        %     Target");
    for (uint32_t n = 0; n < r->depth; n++)
        strbuf_printf (out, " %7u", n);
    strbuf_puts (out, "\nFSWeight       ------- -------");
    for (uint32_t n = 0; n < r->depth; n++, weight *= r->decay)
        strbuf_printf (out, " %7.4f", weight);
    strbuf_puts (out, "\nTotalUsage      100.00 -------");
    for (size_t n = 0; n < r->n_totals; n++) {
        if (r->totals[n] > 0)
            strbuf_printf (out, " %7.1f", r->totals[n] / 3600);
        else
            strbuf_puts (out, " -------");
    }
    strbuf_puts (out, "\n\n");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!kind || strcmp (kind, kinds[k][0]) == 0)
            fairshare_kind (r, kinds[k][0], kinds[k][1], out);
}

static const struct table_column fairshare_columns[] = {
    {"kind", "Kind", TABLE_TEXT, 0},
    {"name", "Name", TABLE_TEXT, 0},
    {"percent", "Percent", TABLE_PPM, 2},
    {"target", "Target", TABLE_PPM, 2},
    {"target_type", "Type", TABLE_TEXT, 0},
    {"interval", "Interval", TABLE_INT, 0},
    {"interval_percent", "IntervalPercent", TABLE_PPM, 2},
};

/* One row for each credential and interval. */
static int fairshare_rows (struct cli_context *ctx, const Nui__Local__V1__FairshareReply *r,
                           const char *kind)
{
    struct table *t = table_create (fairshare_columns, 7);
    for (size_t i = 0; i < r->n_rows; i++)
        for (size_t n = 0; n < r->rows[i]->n_windows; n++) {
            const Nui__Local__V1__FairshareRow *row = r->rows[i];
            if (kind && strcmp (kind, row->kind) != 0)
                break;
            table_text (t, row->kind);
            table_text (t, row->name);
            table_ppm (t, (int64_t)llround (row->percent * 1e6));
            if (*row->target_type)
                table_ppm (t, (int64_t)llround (row->target * 1e6));
            else
                table_null (t);
            cell_text (t, row->target_type);
            table_int (t, (int64_t)n);
            table_ppm (t, (int64_t)llround (row->windows[n] * 1e6));
            table_end_row (t);
        }
    int rc = table_print (t, ctx);
    table_destroy (t);
    return rc;
}

/* "acct" is Maui's word for account. */
int diagnose_fairshare (struct cli_context *ctx, const char *site, const char *kind)
{
    static const char *const known[] = {"user", "group", "account", "class", "qos"};
    size_t k = 0;
    if (kind && strcmp (kind, "acct") == 0)
        kind = "account";
    while (kind && k < 5 && strcmp (kind, known[k]) != 0)
        k++;
    if (k == 5)
        return cli_usage ("diagnose", "-f '%s': wanted user, group, account, class or qos", kind);
    Nui__Local__V1__FairshareRequest request = NUI__LOCAL__V1__FAIRSHARE_REQUEST__INIT;
    Nui__Local__V1__FairshareReply *reply = NULL;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int exit_code;
    if (site_admin (ctx, site, "Fairshare", &request, true, &reply, &err) < 0)
        return cli_fail ("diagnose", &err);
    if (cli_format (ctx) == CLI_TABLE) {
        fairshare_text (reply, kind, &out);
        exit_code = cli_output (&out);
    } else {
        exit_code = fairshare_rows (ctx, reply, kind);
    }
    strbuf_free (&out);
    nui__local__v1__fairshare_reply__free_unpacked (reply, NULL);
    return exit_code;
}

/* --- -q: blocked jobs; -j: jobs ------------------------------------------------------------- */

/* level: the policy level that was asked for: "HARD". */
static void blocked_text (const struct queue *q, const char *level, bool noheader,
                          struct strbuf *out)
{
    if (!noheader)
        strbuf_printf (out, "Diagnosing blocked jobs (policylevel %s  partition ALL)\n\n", level);
    for (uint32_t i = 0; i < q->count; i++)
        strbuf_printf (out, "job %s %s\n", q->row[i].job_id,
                       q->row[i].reason ? q->row[i].reason->text : "-");
    if (!noheader)
        strbuf_putc (out, '\n');
}

static void job_line (const struct queue *q, const Nui__Local__V1__QueueJob *r, struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX], class[80], memory[32], par[4];
    int64_t since = r->eligible_us ? r->eligible_us : r->submit_us;
    int64_t until = r->start_us ? r->start_us : q->totals.now_us;
    bool active = r->section == NUI__LOCAL__V1__QUEUE_SECTION__SECTION_ACTIVE;
    snprintf (class, sizeof class, "[%.60s:1]", r->class_);
    snprintf (memory, sizeof memory, ">=%lld", (long long)r->memory_mb);
    strbuf_printf (out,
                   "%-18s %8s %3s %4u %.3s %11s %d %4u %8s %8s %8s %11s %8s %6s %6s %6s %6s %6s "
                   "%11s ",
                   r->job_id, r->state, partition_short (r->partition, par), r->procs,
                   *r->qos ? r->qos : "---", span_text (r->walltime_us, a),
                   active || r->reserved_us, r->procs, r->user, r->group,
                   *r->account ? r->account : "-", span_text (until > since ? until - since : 0, b),
                   feature_of (r->features, r->n_features, "net:"),
                   feature_of (r->features, r->n_features, "opsys:"),
                   feature_of (r->features, r->n_features, "arch:"), memory, ">=0", "NC0",
                   *r->class_ ? class : "[NONE]");
    features_plain (r->features, r->n_features, out);
    strbuf_putc (out, '\n');
}

static void jobs_text (const struct queue *q, bool noheader, struct strbuf *out)
{
    uint32_t active = 0;
    if (!noheader)
        strbuf_puts (out, "Name                  State Par Proc QOS     WCLimit R  Min     User"
                          "    Group  Account  QueuedTime  Network  Opsys   Arch    Mem   Disk"
                          "  Procs       Class Features\n\n");
    for (uint32_t i = 0; i < q->count; i++) {
        job_line (q, &q->row[i], out);
        active += q->row[i].section == NUI__LOCAL__V1__QUEUE_SECTION__SECTION_ACTIVE;
    }
    if (!noheader)
        strbuf_printf (out, "\n\nTotal Jobs: %u  Active Jobs: %u\n\n", q->count, active);
}

/* Only the job of this name stays: 17, alpha.17 or grid.42. False: it is not among them. */
static bool queue_only (struct queue *q, const char *name)
{
    for (uint32_t i = 0; i < q->count; i++) {
        const char *id = q->row[i].job_id, *dot = strrchr (id, '.');
        if (strcmp (id, name) != 0 && strcmp (q->row[i].grid_job_id, name) != 0 &&
            (!dot || strcmp (dot + 1, name) != 0))
            continue;
        q->row[0] = q->row[i];
        q->count = 1;
        return true;
    }
    return false;
}

/* -v: what the table has no room for, a line for each that has any. */
static void jobs_more_text (const struct queue *q, struct strbuf *out)
{
    for (uint32_t i = 0; i < q->count; i++) {
        const Nui__Local__V1__QueueJob *r = &q->row[i];
        strbuf_printf (out, "job %s: priority %lld", r->job_id, (long long)r->priority);
        for (size_t h = 0; h < r->n_holds; h++)
            strbuf_printf (out, "  hold: %s", r->holds[h]);
        if (*r->grid_job_id)
            strbuf_printf (out, "  grid job: %s", r->grid_job_id);
        if (r->reason)
            strbuf_printf (out, "  (%s) %s", r->reason->code, r->reason->text);
        strbuf_putc (out, '\n');
    }
}

static int diagnose_queue (struct cli_context *ctx, const char *site, bool blocked,
                           const struct diagnose_how *how, const char *job)
{
    const char *level = how->level ? how->level : blocked ? "SOFT" : "HARD";
    Nui__Local__V1__QueueRequest request = NUI__LOCAL__V1__QUEUE_REQUEST__INIT;
    struct queue q = {.arena = arena_create (1 << 20), .totals = {.site = (char *)""}};
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int exit_code;
    request.section = blocked ? NUI__LOCAL__V1__QUEUE_SECTION__SECTION_BLOCKED
                              : NUI__LOCAL__V1__QUEUE_SECTION__SECTION_UNSET;
    request.needs = !blocked;
    request.level = (char *)level;
    int rc = queue_fetch (ctx, site, &request, &q, &err);
    if (rc == 0 && job && !queue_only (&q, job))
        rc = err_set (&err, ERR_NOT_FOUND, "job %.80s is not in the queue, or not yours to see",
                      job);
    if (rc < 0) {
        exit_code = cli_fail ("diagnose", &err);
    } else if (cli_format (ctx) != CLI_TABLE) {
        struct table *t = queue_table (&q);
        exit_code = table_print (t, ctx);
        table_destroy (t);
    } else {
        if (blocked)
            blocked_text (&q, level, cli_noheader (ctx), &out);
        else
            jobs_text (&q, cli_noheader (ctx), &out);
        if (how->verbose)
            jobs_more_text (&q, &out);
        exit_code = cli_output (&out);
    }
    strbuf_free (&out);
    arena_destroy (q.arena);
    return exit_code;
}

/* --- -n: nodes ---------------------------------------------------------------------------- */

struct node_sum {
    long long procs[2], memory[2], disk[2], swap[2]; /* free, configured */
    uint32_t active, idle, down;
};

static void pair (long long have, long long all, int width, struct strbuf *out)
{
    strbuf_printf (out, " %*lld:%-*lld", width, have, width, all);
}

/* The cell that began there: [NONE] where nothing was put, one word to who counts words ("tape_1:2"), and as wide. */
static void cell_end (struct strbuf *out, size_t begin, int width)
{
    if (out->len == begin)
        strbuf_puts (out, "[NONE]");
    for (char *blank = out->data + begin; *blank; blank++)
        *blank = *blank == ' ' ? '_' : *blank;
    for (int wide = (int)(out->len - begin); wide < width; wide++)
        strbuf_putc (out, ' ');
}

/* "[a][b]", wider where it has to be. */
static void bracketed_cell (char *const *item, size_t count, int width, struct strbuf *out)
{
    strbuf_putc (out, ' ');
    size_t begin = out->len;
    for (size_t i = 0; i < count; i++)
        strbuf_printf (out, "[%s]", item[i]);
    cell_end (out, begin, width);
}

static void classes_cell (const Nui__Local__V1__NodeInfo *n, int width, struct strbuf *out)
{
    strbuf_putc (out, ' ');
    size_t begin = out->len;
    for (size_t i = 0; i < n->n_classes; i++) {
        struct node_class c = node_class (n, i);
        strbuf_printf (out, "[%s_%lld:%lld]", c.name, c.free, c.all);
    }
    cell_end (out, begin, width);
}

static void node_line (const Nui__Local__V1__NodeInfo *n, uint32_t held, struct node_sum *sum,
                       struct strbuf *out)
{
    const long long have[4] = {
        (long long)n->procs - n->dedicated_procs, n->memory_mb - n->dedicated_memory_mb,
        n->disk_mb - n->dedicated_disk_mb, n->swap_mb - n->dedicated_swap_mb};
    const long long all[4] = {n->procs, n->memory_mb, n->disk_mb, n->swap_mb};
    long long *into[4] = {sum->procs, sum->memory, sum->disk, sum->swap};
    strbuf_printf (out, "%-20s %8s", n->name, n->state);
    for (int i = 0; i < 4; i++) {
        pair (have[i], all[i], i == 0 ? 3 : 6, out);
        into[i][0] += have[i];
        into[i][1] += all[i];
    }
    strbuf_printf (out, " %5.2f %6s %6s %.3s %6.2f %03u", n->speed_ppm / 1e6, or_none (n->opsys),
                   or_none (n->arch), *n->partition ? n->partition : "DEFAULT", n->load_milli / 1e3,
                   held);
    classes_cell (n, 30, out);
    bracketed_cell (n->networks, n->n_networks, 30, out);
    bracketed_cell (n->features, n->n_features, 20, out);
    bracketed_cell (n->gres, n->n_gres, 0, out);
    strbuf_putc (out, '\n');
    bool up = strcmp (n->state, "Down") != 0 && strcmp (n->state, "Drained") != 0;
    sum->down += !up;
    sum->active += up && n->n_jobs > 0;
    sum->idle += up && n->n_jobs == 0;
}

void nodes_text (const struct nodes *nodes, const uint32_t *held, bool noheader, struct strbuf *out)
{
    struct node_sum sum = {0};
    if (!noheader)
        strbuf_puts (out, "diagnosing node table\n"
                          "Name                    State  Procs     Memory         Disk"
                          "          Swap      Speed  Opsys   Arch Par   Load Res Classes"
                          "                        Network                        Features"
                          "             Gres\n\n");
    for (uint32_t i = 0; i < nodes->count; i++)
        node_line (nodes->item[i], held[i], &sum, out);
    if (noheader)
        return;
    strbuf_printf (out, "%-20s %8s", "-----", "---");
    pair (sum.procs[0], sum.procs[1], 3, out);
    pair (sum.memory[0], sum.memory[1], 6, out);
    pair (sum.disk[0], sum.disk[1], 6, out);
    pair (sum.swap[0], sum.swap[1], 6, out);
    strbuf_printf (out, "\n\nTotal Nodes: %u  (Active: %u  Idle: %u  Down: %u)\n\n", nodes->count,
                   sum.active, sum.idle, sum.down);
}

struct name_at {
    const char *name;
    uint32_t at;
};

static int by_name (const void *a, const void *b)
{
    return strcmp (((const struct name_at *)a)->name, ((const struct name_at *)b)->name);
}

/* How many reservations stand on each node. */
static uint32_t *held_count (const struct nodes *nodes, const struct reservations *rsv)
{
    uint32_t *held = arena_array (nodes->arena, nodes->count + 1, sizeof *held);
    struct name_at *index = arena_array (nodes->arena, nodes->count + 1, sizeof *index);
    for (uint32_t i = 0; i < nodes->count; i++)
        index[i] = (struct name_at){nodes->item[i]->name, i};
    qsort (index, nodes->count, sizeof *index, by_name);
    for (uint32_t i = 0; i < rsv->count; i++)
        for (size_t n = 0; n < rsv->item[i]->n_nodes; n++) {
            struct name_at key = {rsv->item[i]->nodes[n]->node, 0};
            const struct name_at *found =
                bsearch (&key, index, nodes->count, sizeof *index, by_name);
            if (found)
                held[found->at]++;
        }
    return held;
}

/* Those of a host list, of all that were fetched. */
static int nodes_only (struct nodes *nodes, const char *list, struct err *err)
{
    const char **name;
    uint32_t wanted, kept = 0;
    int rc = hostlist_expand (list, nodes->arena, &name, &wanted, err);
    for (uint32_t k = 0; rc == 0 && k < wanted; k++) {
        uint32_t at = 0;
        while (at < nodes->count && strcmp (nodes->item[at]->name, name[k]) != 0)
            at++;
        if (at == nodes->count)
            return err_set (err, ERR_NOT_FOUND, "there is no node %.80s", name[k]);
    }
    for (uint32_t i = 0; rc == 0 && i < nodes->count; i++) {
        uint32_t k = 0;
        while (k < wanted && strcmp (nodes->item[i]->name, name[k]) != 0)
            k++;
        if (k == wanted)
            nui__local__v1__node_info__free_unpacked (nodes->item[i], NULL);
        else
            nodes->item[kept++] = nodes->item[i];
    }
    nodes->count = rc == 0 ? kept : nodes->count;
    return rc;
}

static void nodes_more_text (const struct nodes *nodes, struct strbuf *out)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        const Nui__Local__V1__NodeInfo *n = nodes->item[i];
        strbuf_printf (out, "node %s: address %s  priority %d", n->name, n->address, n->priority);
        for (size_t j = 0; j < n->n_jobs; j++)
            strbuf_printf (out, "%s%s", j ? "," : "  jobs ", n->jobs[j]);
        strbuf_printf (out, "%s%s\n", *n->reason ? "  reason: " : "", n->reason);
    }
}

static int diagnose_nodes (struct cli_context *ctx, const char *site,
                           const struct diagnose_how *how, const char *list)
{
    bool several = list && strpbrk (list, "[,: ");
    const char *node = several ? NULL : list;
    struct nodes nodes = {.arena = arena_create (0)};
    struct reservations rsv = {.arena = arena_create (0)};
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int exit_code;
    int rc = nodes_fetch (ctx, site, node, &nodes, &err);
    if (rc == 0 && several)
        rc = nodes_only (&nodes, list, &err);
    if (rc == 0)
        rc = reservations_fetch (ctx, site, NULL, node, true, &rsv, &err);
    if (rc < 0) {
        exit_code = cli_fail ("diagnose", &err);
    } else if (cli_format (ctx) == CLI_TABLE) {
        nodes_text (&nodes, held_count (&nodes, &rsv), cli_noheader (ctx), &out);
        if (how->verbose)
            nodes_more_text (&nodes, &out);
        exit_code = cli_output (&out);
    } else {
        struct table *t = nodes_table (&nodes);
        exit_code = table_print (t, ctx);
        table_destroy (t);
    }
    strbuf_free (&out);
    nodes_free (&nodes);
    reservations_free (&rsv);
    return exit_code;
}

/* --- showconfig --------------------------------------------------------------------------- */

static const struct table_column config_columns[] = {
    {"parameter", "Parameter", TABLE_TEXT, 0},
    {"value", "Value", TABLE_TEXT, 0},
};

struct config_args {
    const char *site;
    bool all;
};

static const struct cli_option config_options[] = {
    SITE_OPTION (struct config_args),
    {"verbose", 'v', CLI_OPT_FLAG, NULL, "also what is of this machine: paths, addresses, identity",
     offsetof (struct config_args, all)},
    {0},
};

/* "RESERVATIONDEPTH" is RESERVATIONDEPTH[0] and all others of it, in any case. */
static bool is_param (const char *name, const char *wanted)
{
    size_t n = strlen (wanted);
    return strncasecmp (name, wanted, n) == 0 && (!name[n] || name[n] == '[');
}

static int config_print (struct cli_context *ctx, const Nui__Local__V1__ConfigReply *r,
                         const char *only)
{
    struct table *t = table_create (config_columns, 2);
    struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < r->n_parameters; i++) {
        if (only && !is_param (r->parameters[i]->name, only))
            continue;
        strbuf_printf (&out, "%-33s %s\n", r->parameters[i]->name, r->parameters[i]->value);
        table_text (t, r->parameters[i]->name);
        table_text (t, r->parameters[i]->value);
        table_end_row (t);
    }
    int rc;
    if (only && table_row_count (t) == 0) {
        struct err err = {0};
        err_set (&err, ERR_NOT_FOUND, "there is no parameter %.80s, or nothing says it", only);
        rc = cli_fail ("schedctl", &err);
    } else {
        rc = cli_format (ctx) == CLI_TABLE ? cli_output (&out) : table_print (t, ctx);
    }
    strbuf_free (&out);
    table_destroy (t);
    return rc;
}

int config_list (struct cli_context *ctx, const char *command, const char *site, bool all,
                 const char *only)
{
    struct err err = {0};
    Nui__Local__V1__ConfigRequest request = NUI__LOCAL__V1__CONFIG_REQUEST__INIT;
    Nui__Local__V1__ConfigReply *reply = NULL;
    request.all = all;
    if (site_admin (ctx, site, "Config", &request, true, &reply, &err) < 0)
        return cli_fail (command, &err);
    int code = config_print (ctx, reply, only);
    nui__local__v1__config_reply__free_unpacked (reply, NULL);
    return code;
}

static int showconfig_run (struct cli_context *ctx, int argc, char **argv)
{
    struct config_args args = {0};
    struct cli_operands ops;
    int exit_code;
    if (!cli_options (ctx, config_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (ops.count > 0)
        return cli_usage ("showconfig", "'%s' is too much", ops.item[0]);
    return config_list (ctx, "showconfig", args.site, args.all, NULL);
}

const struct cli_command showconfig_command = {
    .name = "showconfig",
    .group = CLI_CLUSTER,
    .summary = "the policy in force, as maui.cfg would say it",
    .run = showconfig_run,
    .help = "nui showconfig [-v] [--site NAME]",
    .text =
        "Every parameter in force with its value, defaults included, in lines that maui.cfg could\n"
        "hold. For administrators (ADMIN3).",
    .options = config_options,
    .example = "nui showconfig",
};

/* --- the command -------------------------------------------------------------------------- */

struct diagnose_args {
    bool priority, fairshare, queue, blocked, jobs, nodes, reservations, standing;
    bool user, group, account, class, qos;
    bool memory, managers, scheduler, partitions, estimates, grid;
    struct diagnose_how how;
    const char *site;
};

#define AT(field) offsetof (struct diagnose_args, field)
static const struct cli_option diagnose_options[] = {
    {"priority", 'p', CLI_OPT_FLAG, NULL,
     "each idle job's priority: every component's share in percent and, in brackets, what each part adds; "
     "of one JOB a line for each part",
     AT (priority)},
    {"fairshare", 'f', CLI_OPT_FLAG, NULL, "usage of every credential, or of one kind, by interval",
     AT (fairshare)},
    {"queue", 'q', CLI_OPT_FLAG, NULL, "why each blocked job is blocked", AT (queue)},
    {"blocked", 'b', CLI_OPT_FLAG, NULL, "the same", AT (blocked)},
    {"jobs", 'j', CLI_OPT_FLAG, NULL, "all jobs with what they ask for", AT (jobs)},
    {"nodes", 'n', CLI_OPT_FLAG, NULL, "all nodes: free and configured", AT (nodes)},
    {"reservations", 'r', CLI_OPT_FLAG, NULL,
     "all reservations: times, nodes, access lists, flags; those short of what they want",
     AT (reservations)},
    {"standing", 's', CLI_OPT_FLAG, NULL,
     "what SRCFG asks for, and the reservations that stand for it", AT (standing)},
    {"users", 'u', CLI_OPT_FLAG, NULL,
     "users: what the policy says of each, priority, access, fairshare target, limits", AT (user)},
    {"groups", 'g', CLI_OPT_FLAG, NULL, "groups, likewise", AT (group)},
    {"accounts", 'a', CLI_OPT_FLAG, NULL, "accounts, likewise", AT (account)},
    {"classes", 'c', CLI_OPT_FLAG, NULL, "classes, likewise", AT (class)},
    {"qos", 'Q', CLI_OPT_FLAG, NULL, "QoS, likewise", AT (qos)},
    {"memory", 'm', CLI_OPT_FLAG, NULL, "nodes by how much memory they have", AT (memory)},
    {"managers", 'R', CLI_OPT_FLAG, NULL,
     "resource manager, bank and metaschedulers, and what waits for them", AT (managers)},
    {"scheduler", 'S', CLI_OPT_FLAG, NULL, "the scheduler: mode, iterations, its job trace",
     AT (scheduler)},
    {"partitions", 't', CLI_OPT_FLAG, NULL, "partitions: configured, up, dedicated",
     AT (partitions)},
    {"estimates", 'e', CLI_OPT_FLAG, NULL, "how start-time estimates held", AT (estimates)},
    {"grid", 'G', CLI_OPT_FLAG, NULL,
     "the grid: metaschedulers and bank, what waits for them, and the grid's jobs that are here",
     AT (grid)},
    {"level", 'l', CLI_OPT_STRING, "LEVEL",
     "with -q and -j: jobs that a limit of this level keeps are blocked: SOFT (-q, as in Maui), HARD (-j); OFF: limits do not "
     "count",
     AT (how.level)},
    {"verbose", 'v', CLI_OPT_FLAG, NULL,
     "with -q and -j: also priority, holds and reason of each; with -n: address, jobs and why it is down; with -p: "
     "the parts of each job's priority",
     AT (how.verbose)},
    SITE_OPTION (struct diagnose_args),
    {0},
};
#undef AT

static int diagnose_run (struct cli_context *ctx, int argc, char **argv)
{
    struct diagnose_args args = {0};
    struct cli_operands ops;
    int exit_code;
    if (!cli_options (ctx, diagnose_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    const char *kind = args.user      ? "user"
                       : args.group   ? "group"
                       : args.account ? "account"
                       : args.class   ? "class"
                       : args.qos     ? "qos"
                                      : NULL;
    bool blocked = args.queue || args.blocked;
    bool whole = args.memory || args.managers || args.scheduler || args.partitions ||
                 args.estimates || args.grid;
    if (args.priority + args.fairshare + blocked + args.jobs + args.nodes + args.reservations +
            args.standing + args.user + args.group + args.account + args.class + args.qos +
            args.memory + args.managers + args.scheduler + args.partitions + args.estimates +
            args.grid !=
        1)
        return cli_usage ("diagnose",
                          "say one of -p, -f, -q, -b, -j, -n, -r, -s, -u, -g, -a, -c, -Q, "
                          "-m, -R, -S, -t, -e and -G");
    if (args.how.level && !blocked && !args.jobs)
        return cli_usage ("diagnose", "-l goes with -q and -j");
    if (args.how.verbose && !blocked && !args.jobs && !args.nodes && !args.priority)
        return cli_usage ("diagnose",
                          "-v goes with -p, -q, -j and -n; the others tell all they know");
    if (ops.count > (whole ? 0 : 1))
        return cli_usage ("diagnose", "'%s' is too much", ops.item[ops.count - 1]);
    const char *name = ops.count ? ops.item[0] : NULL;
    if (args.reservations)
        return diagnose_reservations (ctx, args.site, name);
    if (args.standing)
        return diagnose_standing (ctx, args.site, name);
    if (args.priority)
        return diagnose_priorities (ctx, args.site, &args.how, name);
    if (args.fairshare)
        return diagnose_fairshare (ctx, args.site, name);
    if (kind)
        return diagnose_creds (ctx, args.site, kind, name);
    if (args.memory)
        return diagnose_memory (ctx, args.site);
    if (args.managers)
        return diagnose_managers (ctx, args.site);
    if (args.scheduler)
        return diagnose_scheduler (ctx, args.site);
    if (args.partitions)
        return diagnose_partitions (ctx, args.site);
    if (args.estimates)
        return diagnose_estimates (ctx, args.site);
    if (args.nodes)
        return diagnose_nodes (ctx, args.site, &args.how, name);
    if (args.grid)
        return diagnose_grid (ctx, args.site);
    return diagnose_queue (ctx, args.site, blocked, &args.how, name);
}

const struct cli_command mdiag_command = {
    .name = "mdiag",
    .group = CLI_CLUSTER,
    .summary = "the same as diagnose",
    .run = diagnose_run,
    .help = "nui mdiag [the options of diagnose]",
    .options = diagnose_options,
    .example = "nui mdiag -j -v",
};

const struct cli_command diagnose_command = {
    .name = "diagnose",
    .group = CLI_CLUSTER,
    .summary = "priorities by their parts, fairshare, jobs, nodes, credentials",
    .run = diagnose_run,
    .help =
        "nui diagnose -p [JOB] | -f [KIND] | -q [JOB] | -j [JOB] | -n [NODE] | -r [RESERVATION]\n"
        "             | -s [NAME] | -u [USER] | -g [GROUP] | -a [ACCOUNT] | -c [CLASS] | -Q [QOS]\n"
        "             | -m | -R | -S | -t | -e | -G [-l LEVEL] [-v] [--site NAME]",
    .text =
        "For administrators (ADMIN3); -q and -j also show plain users their own jobs; -e is for all.",
    .options = diagnose_options,
    .example = "nui diagnose -p",
};
