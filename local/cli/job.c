/* checkjob and canceljob: one job in Maui's words. */
#include <string.h>

#include "local/cli/local_cli.h"
#include "proto/cli/transfers.h"

/* --- checkjob as text --------------------------------------------------------------------- */

static void req_text (const Nui__Local__V1__JobDetail *d, size_t at, struct strbuf *out)
{
    const Nui__Local__V1__JobReq *r = d->reqs[at];
    strbuf_printf (out, "Req[%zu]  TaskCount: %u  Partition: %s\n", at, r->tasks,
                   r->n_nodes ? (*d->job->partition ? d->job->partition : "DEFAULT") : "ALL");
    const char *memory = feature_of (r->features, r->n_features, "mem>=");
    strbuf_printf (
        out, "Network: %s  Memory >= %s  Disk >= 0  Swap NC 0\nOpsys: %s  Arch: %s  Features: ",
        feature_of (r->features, r->n_features, "net:"), *memory == '[' ? "0" : memory,
        feature_of (r->features, r->n_features, "opsys:"),
        feature_of (r->features, r->n_features, "arch:"));
    features_plain (r->features, r->n_features, out);
    strbuf_putc (out, '\n');
    if (r->procs != 1 || r->memory_mb || r->swap_mb || r->disk_mb) {
        strbuf_printf (out, "Dedicated Resources Per Task: PROCS: %u", r->procs);
        if (r->memory_mb)
            strbuf_printf (out, "  MEM: %lldM", (long long)r->memory_mb);
        if (r->swap_mb)
            strbuf_printf (out, "  SWAP: %lldM", (long long)r->swap_mb);
        if (r->disk_mb)
            strbuf_printf (out, "  DISK: %lldM", (long long)r->disk_mb);
        strbuf_putc (out, '\n');
    }
    if (r->tasks_per_node)
        strbuf_printf (out, "TasksPerNode: %u\n", r->tasks_per_node);
    if (d->verbose || r->exclusive)
        strbuf_printf (out, "NodeAccess: %s\n", r->exclusive ? "SINGLEJOB" : "SHARED");
    if (r->n_nodes == 0)
        return;
    strbuf_printf (out, "NodeCount: %zu\nAllocated Nodes:\n", r->n_nodes);
    for (size_t i = 0; i < r->n_nodes; i++) {
        if (r->nodes[i]->tasks) /* of an ended job they are not known */
            strbuf_printf (out, "[%s:%u]", r->nodes[i]->node, r->nodes[i]->tasks);
        else
            strbuf_printf (out, "[%s]", r->nodes[i]->node);
    }
    strbuf_putc (out, '\n');
}

static void times_text (const Nui__Local__V1__JobDetail *d, struct strbuf *out)
{
    const Nui__Local__V1__QueueJob *j = d->job;
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    bool ended = j->start_us && j->section == NUI__LOCAL__V1__QUEUE_SECTION__SECTION_UNSET;
    int64_t until = j->start_us ? j->start_us : d->now_us;
    int64_t used = !j->start_us ? 0 : (ended ? j->end_us : d->now_us) - j->start_us;
    strbuf_printf (out, "WallTime: %s of %s\n", span_text (used, a), span_text (j->walltime_us, b));
    strbuf_printf (out, "SubmitTime: %s\n", moment_text (j->submit_us, a));
    if (j->section == NUI__LOCAL__V1__QUEUE_SECTION__SECTION_UNSET && !j->start_us)
        until = j->end_us;
    strbuf_printf (out, "  (Time Queued  Total: %s", span_text (until - j->submit_us, a));
    if (j->eligible_us)
        strbuf_printf (out, "  Eligible: %s",
                       span_text (until > j->eligible_us ? until - j->eligible_us : 0, a));
    strbuf_puts (out, ")\n\n");
    if (j->start_us)
        strbuf_printf (out, "StartTime: %s\n", moment_text (j->start_us, a));
    if (j->section == NUI__LOCAL__V1__QUEUE_SECTION__SECTION_UNSET)
        strbuf_printf (out, "EndTime: %s  ExitCode: %d\n", moment_text (j->end_us, a),
                       d->exit_code);
}

static void holds_text (const Nui__Local__V1__JobDetail *d, struct strbuf *out)
{
    if (d->n_holds == 0)
        return;
    strbuf_puts (out, "Holds:    ");
    for (size_t i = 0; i < d->n_holds; i++)
        strbuf_printf (out, "%s%s", i ? "  " : "", d->holds[i]);
    strbuf_putc (out, '\n');
}

static void reservation_text (const Nui__Local__V1__JobDetail *d, struct strbuf *out)
{
    const Nui__Local__V1__QueueJob *j = d->job;
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX], c[QUANTITY_TEXT_MAX];
    int64_t start = j->start_us ? j->start_us : j->reserved_us;
    int64_t end = j->start_us ? j->end_us : d->reservation_end_us;
    if (j->section == NUI__LOCAL__V1__QUEUE_SECTION__SECTION_UNSET || !start)
        return;
    if (!end)
        end = start + j->walltime_us;
    strbuf_printf (out, "Reservation '%s' (%s -> %s  Duration: %s)\n", j->job_id,
                   span_text (start - d->now_us, a), span_text (end - d->now_us, b),
                   span_text (end - start, c));
}

static void verdicts_text (const Nui__Local__V1__JobDetail *d, const char *node, struct strbuf *out)
{
    if (d->n_rejections)
        strbuf_puts (out, "\nRejection Reasons: ");
    for (size_t i = 0; i < d->n_rejections; i++)
        strbuf_printf (out, "[%-12s :%5u]", d->rejections[i]->reason, d->rejections[i]->count);
    if (d->n_rejections)
        strbuf_putc (out, '\n');
    if (!d->verbose)
        return;
    strbuf_puts (out, "\nDetailed Node Availability Information:\n\n");
    for (size_t i = 0; i < d->n_nodes; i++) {
        const Nui__Local__V1__NodeVerdict *n = d->nodes[i];
        if (node && strcmp (n->node, node) != 0)
            continue;
        if (strcmp (n->reason, "Accepted") == 0)
            strbuf_printf (out, "%-24s accepted : %u tasks supported\n", n->node, n->count);
        else
            strbuf_printf (out, "%-24s rejected : %s\n", n->node, n->reason);
    }
}

/* The first thing in its way: hold, limit, date or credit; else what the nodes have. */
static void verdict_text (const Nui__Local__V1__JobDetail *d, struct strbuf *out)
{
    const Nui__Local__V1__QueueJob *j = d->job;
    bool blocked = j->section == NUI__LOCAL__V1__QUEUE_SECTION__SECTION_BLOCKED;
    long long idle = (long long)d->idle_procs, usable = (long long)d->feasible_procs;
    if (d->n_holds)
        strbuf_printf (out, "cannot select job %s for partition DEFAULT (job hold active)\n",
                       j->job_id);
    else if (blocked && d->limit)
        strbuf_printf (out, "cannot select job %s for partition DEFAULT (%s)\n", j->job_id,
                       d->limit->text);
    else if (blocked)
        strbuf_printf (out, "cannot select job %s for partition DEFAULT (%s)\n", j->job_id,
                       d->reason ? d->reason->text : "");
    else if (idle < j->procs)
        strbuf_printf (out,
                       "job cannot run in partition DEFAULT (insufficient idle procs available: "
                       "%lld < %u)\n",
                       idle, j->procs);
    else if (usable < j->procs)
        strbuf_printf (out,
                       "job cannot run in partition DEFAULT (idle procs do not meet requirements "
                       ": %lld of %u procs found)\nidle procs: %3lld  feasible procs: %3lld\n",
                       usable, j->procs, idle, usable);
    else
        strbuf_printf (out,
                       "job can run in partition DEFAULT (%lld procs available.  %u procs "
                       "required)\n",
                       usable, j->procs);
}

/* -l: whether limits of that level let it start. */
static void level_text (const Nui__Local__V1__JobDetail *d, struct strbuf *out)
{
    if (*d->level && d->limit)
        strbuf_printf (out, "PolicyLevel: %s: %s\n", d->level, d->limit->text);
    else if (*d->level)
        strbuf_printf (out, "PolicyLevel: %s: no limit keeps job %s\n", d->level, d->job->job_id);
}

static void access_text (const Nui__Local__V1__JobDetail *d, struct strbuf *out)
{
    const Nui__Local__V1__ReservationAccess *a = d->access;
    if (!a)
        return;
    strbuf_printf (out, "job %s %s use reservation '%s'  (ACL:", d->job->job_id,
                   a->admitted ? "may" : "may not", a->reservation);
    for (size_t i = 0; i < a->n_acl; i++)
        strbuf_printf (out, " %s", a->acl[i]);
    strbuf_puts (out, a->n_acl ? ")\n" : " empty)\n");
}

static void waiting_text (const Nui__Local__V1__JobDetail *d, const char *node, struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    const Nui__Local__V1__LimitHit *l = d->limit;
    verdict_text (d, out);
    level_text (d, out);
    verdicts_text (d, node, out);
    strbuf_putc (out, '\n');
    if (d->reason)
        strbuf_printf (out, "Waits: %s (%s)\n", d->reason->text, d->reason->code);
    if (l)
        strbuf_printf (out, "Limit: %s %s %lld for %s  used: %lld  this job: %lld\n", l->level,
                       l->limit, (long long)l->value, l->object, (long long)l->usage,
                       (long long)l->request);
    if (d->clears_us)
        strbuf_printf (out, "Clears: in %s on %s\n", span_text (d->clears_us - d->now_us, a),
                       moment_text (d->clears_us, b));
    if (d->start_estimate_us)
        strbuf_printf (out, "Start: expected in %s on %s\n",
                       span_text (d->start_estimate_us - d->now_us, a),
                       moment_text (d->start_estimate_us, b));
    else if (d->n_holds == 0)
        strbuf_puts (out, "Start: never, as things are\n");
}

static void transfer_text (const Nui__Common__V1__TransferInfo *t, struct strbuf *out)
{
    char b[QUANTITY_TEXT_MAX];
    strbuf_printf (out, "Stage%s: %s  %s  %lld", t->out ? "Out" : "In", t->path, t->state,
                   (long long)t->bytes_done);
    if (t->bytes)
        strbuf_printf (out, " of %lld", (long long)t->bytes);
    strbuf_puts (out, " bytes");
    if (t->rate)
        strbuf_printf (out, ", %lld per second", (long long)t->rate);
    if (t->end_us)
        strbuf_printf (out, ", expected %s", moment_text (t->end_us, b));
    if (t->kept_us)
        strbuf_printf (out, ", kept until %s", moment_text (t->kept_us, b));
    strbuf_printf (out, "  %s%s%s\n", t->url, *t->text ? "  " : "", t->text);
}

/* One line "NAME=17;STATE=Idle;…" for scripts. */
static void checkjob_attributes_text (const Nui__Local__V1__JobDetail *d, struct strbuf *out)
{
    const Nui__Local__V1__QueueJob *j = d->job;
    unsigned long long tasks = 0, nodes = 0;
    for (size_t i = 0; i < d->n_reqs; i++) {
        tasks += d->reqs[i]->tasks;
        nodes += d->reqs[i]->n_nodes;
    }
    strbuf_printf (out,
                   "NAME=%s;STATE=%s;UNAME=%s;GNAME=%s;ACCOUNT=%s;RCLASS=%s;WCLIMIT=%lld;"
                   "QUEUETIME=%lld;STARTTIME=%lld;TASKS=%llu;NODES=%llu;",
                   j->job_id, j->state, j->user, j->group, j->account, j->class_,
                   (long long)(j->walltime_us / US_PER_S), (long long)(j->submit_us / US_PER_S),
                   (long long)(j->start_us / US_PER_S), tasks, nodes);
    strbuf_printf (out, "QOS=%s;PRIORITY=%lld;PARTITION=%s;HOLD=", j->qos, (long long)j->priority,
                   j->partition);
    for (size_t i = 0; i < d->n_holds; i++)
        strbuf_printf (out, "%s%s", i ? "," : "", d->holds[i]);
    strbuf_puts (out, ";TASKLIST=");
    for (size_t r = 0, n = 0; r < d->n_reqs; r++)
        for (size_t i = 0; i < d->reqs[r]->n_nodes; i++)
            for (uint32_t t = 0; t < d->reqs[r]->nodes[i]->tasks; t++)
                strbuf_printf (out, "%s%s", n++ ? ":" : "", d->reqs[r]->nodes[i]->node);
    strbuf_puts (out, ";\n");
}

/* node: only its verdict; NULL: of all, where the detail is verbose. */
static void checkjob_text (const Nui__Local__V1__JobDetail *d, const char *node, struct strbuf *out)
{
    const Nui__Local__V1__QueueJob *j = d->job;
    uint64_t tasks = 0;
    bool waits = j->section == NUI__LOCAL__V1__QUEUE_SECTION__SECTION_IDLE ||
                 j->section == NUI__LOCAL__V1__QUEUE_SECTION__SECTION_BLOCKED;
    strbuf_printf (out, "\n\nchecking job %s\n\nState: %s\n", j->job_id, j->state);
    strbuf_printf (out, "Creds:  user:%s  group:%s  account:%s  class:%s  qos:%s\n", j->user,
                   or_none (j->group), or_none (j->account), or_none (j->class_), or_none (j->qos));
    if (*j->grid_job_id)
        strbuf_printf (out, "GridJob: %s  Component: %s  Submitter: %s\n", j->grid_job_id,
                       or_none (d->component), d->submitter);
    if (*d->rm_job_id)
        strbuf_printf (out, "RMJob:  %s\n", d->rm_job_id);
    times_text (d, out);
    for (size_t i = 0; i < d->n_reqs; i++)
        tasks += d->reqs[i]->tasks;
    if (d->n_reqs)
        strbuf_printf (out, "Total Tasks: %llu\n\n", (unsigned long long)tasks);
    for (size_t i = 0; i < d->n_reqs; i++)
        req_text (d, i, out);
    strbuf_printf (out, "\n\nBypass: %u  StartCount: %u", d->bypass, d->start_count);
    if (d->defer_count)
        strbuf_printf (out, "  DeferCount: %u", d->defer_count);
    strbuf_puts (out, "\nPartitionMask: [ALL]\n");
    if (d->system_priority)
        strbuf_printf (out, "SystemPriority:  %lld\n", (long long)d->system_priority);
    holds_text (d, out);
    reservation_text (d, out);
    if (d->limits_kept)
        strbuf_printf (out,
                       "LimitsKeptBy:  memory: %s  processors: %s  processor time: %s  "
                       "processes: %s\n",
                       d->limits_kept->memory, d->limits_kept->processors, d->limits_kept->cpu_time,
                       d->limits_kept->processes);
    if (*d->directory)
        strbuf_printf (out, "IWD: %s  Executable:  %s/script\n", d->directory, d->directory);
    if (d->output_max_mb)
        strbuf_printf (out, "OutputLimit:  %lldM (stdout and stderr together)\n",
                       (long long)d->output_max_mb);
    if (d->pe_micro)
        strbuf_printf (out, "PE:  %.2f  StartPriority:  %lld\n", (double)d->pe_micro / 1e6,
                       (long long)j->priority);
    if (waits && d->pe_micro)
        waiting_text (d, node, out);
    else if (d->reason)
        strbuf_printf (out, "Reason: %s (%s)\n", d->reason->text, d->reason->code);
    access_text (d, out);
    for (size_t i = 0; i < d->n_transfers; i++)
        transfer_text (d->transfers[i], out);
    strbuf_putc (out, '\n');
}

/* --- checkjob as a record ----------------------------------------------------------------- */

static void access_cell (struct table *t, const ProtobufCMessage *message)
{
    const Nui__Local__V1__ReservationAccess *a =
        ((const Nui__Local__V1__JobDetail *)message)->access;
    table_text (t, !a ? NULL : a->admitted ? "admitted" : "not admitted");
}

static const struct table_column columns[] = {
    {"job_id", "JobName", TABLE_TEXT, .from = "job.job_id"},
    {"grid_job_id", "GridJob", TABLE_TEXT, .from = "job.grid_job_id"},
    {"component", "Component", TABLE_TEXT},
    {"submitter", "Submitter", TABLE_TEXT},
    {"state", "State", TABLE_TEXT, .from = "job.state"},
    {"user", "User", TABLE_TEXT, .from = "job.user"},
    {"group", "Group", TABLE_TEXT, .from = "job.group"},
    {"account", "Account", TABLE_TEXT, .from = "job.account"},
    {"class", "Class", TABLE_TEXT, .from = "job.class"},
    {"qos", "QoS", TABLE_TEXT, .from = "job.qos"},
    {"procs", "Procs", TABLE_INT, .from = "job.procs"},
    {"walltime", "WCLimit", TABLE_DURATION, .from = "job.walltime"},
    {"submit_time", "Submit", TABLE_TIME, .from = "job.submit"},
    {"eligible_time", "Eligible", TABLE_TIME, .from = "job.eligible"},
    {"start_time", "Start", TABLE_TIME, .from = "job.start"},
    {"end_time", "End", TABLE_TIME, .from = "job.end"},
    {"exit_code", "ExitCode", TABLE_INT},
    {"bypass", "Bypass", TABLE_INT},
    {"start_count", "StartCount", TABLE_INT},
    {"pe", "PE", TABLE_PPM, 2},
    {"priority", "StartPriority", TABLE_INT, .from = "job.priority"},
    {"system_priority", "SystemPriority", TABLE_INT},
    {"held", "Held", TABLE_CREDITS},
    {"reserved_start", "Reserved", TABLE_TIME, .from = "job.reserved"},
    {"reason_code", "Code", TABLE_TEXT, .from = "reason.code"},
    {"reason", "Reason", TABLE_TEXT, .from = "reason.text"},
    {"clears_time", "Clears", TABLE_TIME},
    {"limit", "Limit", TABLE_TEXT, .from = "limit.limit"},
    {"limit_level", "Level", TABLE_TEXT, .from = "limit.level"},
    {"limit_object", "Of", TABLE_TEXT, .from = "limit.object"},
    {"limit_value", "Value", TABLE_INT, .from = "limit.value"},
    {"limit_usage", "Usage", TABLE_INT, .from = "limit.usage"},
    {"limit_request", "Request", TABLE_INT, .from = "limit.request"},
    {"idle_procs", "Idle", TABLE_INT},
    {"feasible_procs", "Feasible", TABLE_INT},
    {"start_estimate", "Estimate", TABLE_TIME},
    {"rm_job_id", "RMJob", TABLE_TEXT},
    {"defer_count", "Deferred", TABLE_INT},
    {"memory_kept_by", "MemoryBy", TABLE_TEXT, .from = "limits_kept.memory"},
    {"processors_kept_by", "ProcsBy", TABLE_TEXT, .from = "limits_kept.processors"},
    {"cpu_time_kept_by", "CPUTimeBy", TABLE_TEXT, .from = "limits_kept.cpu_time"},
    {"processes_kept_by", "ProcessesBy", TABLE_TEXT, .from = "limits_kept.processes"},
    {"directory", "IWD", TABLE_TEXT},
    {"output_max_mb", "OutputMax", TABLE_INT},
    {"partition", "Par", TABLE_TEXT, .from = "job.partition"},
    {"policy_level", "PolicyLevel", TABLE_TEXT, .from = "level"},
    {"reservation", "Reservation", TABLE_TEXT, .from = "access.reservation"},
    {"reservation_access", "Access", TABLE_TEXT, .cell = access_cell},
};

static struct table *checkjob_table (const Nui__Local__V1__JobDetail *d)
{
    struct table *t = TABLE_CREATE (columns);
    TABLE_ROW (t, d);
    return t;
}

static void lists_json (const Nui__Local__V1__JobDetail *d, struct jsonout *j)
{
    struct table *files = transfers_table ();
    transfers_rows (files, d->component, d->transfers, d->n_transfers);
    jsonout_key (j, "transfers");
    table_to_json (files, j);
    table_destroy (files);
    jsonout_key (j, "holds");
    jsonout_array (j);
    for (size_t i = 0; i < d->n_holds; i++)
        jsonout_text (j, d->holds[i]);
    jsonout_end (j);
    jsonout_key (j, "allocated");
    jsonout_array (j);
    for (size_t r = 0; r < d->n_reqs; r++)
        for (size_t i = 0; i < d->reqs[r]->n_nodes; i++) {
            jsonout_object (j);
            jsonout_key (j, "node");
            jsonout_text (j, d->reqs[r]->nodes[i]->node);
            jsonout_key (j, "tasks");
            if (d->reqs[r]->nodes[i]->tasks)
                jsonout_uint (j, d->reqs[r]->nodes[i]->tasks);
            else
                jsonout_null (j);
            jsonout_end (j);
        }
    jsonout_end (j);
    jsonout_key (j, "rejections");
    jsonout_object (j);
    for (size_t i = 0; i < d->n_rejections; i++) {
        jsonout_key (j, d->rejections[i]->reason);
        jsonout_uint (j, d->rejections[i]->count);
    }
    jsonout_end (j);
    if (!d->verbose)
        return;
    jsonout_key (j, "nodes");
    jsonout_array (j);
    for (size_t i = 0; i < d->n_nodes; i++) {
        jsonout_object (j);
        jsonout_key (j, "node");
        jsonout_text (j, d->nodes[i]->node);
        jsonout_key (j, "reason");
        jsonout_text (j, d->nodes[i]->reason);
        jsonout_key (j, "tasks");
        jsonout_uint (j, d->nodes[i]->count);
        jsonout_end (j);
    }
    jsonout_end (j);
}

static int detail_print (struct cli_context *ctx, const Nui__Local__V1__JobDetail *d,
                         const char *node, bool attributes)
{
    struct strbuf out = STRBUF_INIT;
    if (attributes) {
        checkjob_attributes_text (d, &out);
    } else if (cli_format (ctx) == CLI_TABLE) {
        checkjob_text (d, node, &out);
    } else {
        struct table *t = checkjob_table (d);
        struct jsonout j = jsonout_make (&out);
        if (cli_format (ctx) == CLI_CSV) {
            table_to_csv (t, cli_noheader (ctx), &out);
        } else {
            jsonout_object (&j);
            jsonout_key (&j, "job");
            table_to_json_row (t, 0, &j);
            lists_json (d, &j);
            jsonout_end (&j);
        }
        table_destroy (t);
    }
    int rc = cli_output (&out);
    strbuf_free (&out);
    return rc;
}

int checkjob_print (struct cli_context *ctx, const Nui__Local__V1__JobDetail *d)
{
    return detail_print (ctx, d, NULL, false);
}

struct job_args {
    bool verbose, attributes;
    const char *level, *node, *reservation, *site;
};

static const struct cli_option checkjob_options[] = {
    {"attributes", 'A', CLI_OPT_FLAG, NULL,
     "one line NAME=JOB;STATE=Idle;UNAME=USER; … for scripts: times in seconds since 1970, 0 for none",
     offsetof (struct job_args, attributes)},
    {"level", 'l', CLI_OPT_STRING, "LEVEL",
     "whether limits of this level keep it: HARD, SOFT, or OFF: as if there were none",
     offsetof (struct job_args, level)},
    {"node", 'n', CLI_OPT_STRING, "NODE", "the verdict of this node only",
     offsetof (struct job_args, node)},
    {"reservation", 'r', CLI_OPT_STRING, "NAME", "also whether it may use this reservation",
     offsetof (struct job_args, reservation)},
    {"verbose", 'v', CLI_OPT_FLAG, NULL, "the verdict of every node",
     offsetof (struct job_args, verbose)},
    SITE_OPTION (struct job_args),
    {0},
};

int checkjob_fetch (struct cli_context *ctx, const char *site, char *job, bool verbose,
                    Nui__Local__V1__JobDetail **out, struct err *err)
{
    Nui__Local__V1__CheckJobRequest request = NUI__LOCAL__V1__CHECK_JOB_REQUEST__INIT;
    request.job_id = job;
    request.verbose = verbose;
    return site_admin (ctx, site, "CheckJob", &request, true, out, err);
}

/* The verdict of the node, or that it runs there. */
static bool node_known (const Nui__Local__V1__JobDetail *d, const char *node)
{
    for (size_t i = 0; i < d->n_nodes; i++)
        if (strcmp (d->nodes[i]->node, node) == 0)
            return true;
    for (size_t r = 0; r < d->n_reqs; r++)
        for (size_t i = 0; i < d->reqs[r]->n_nodes; i++)
            if (strcmp (d->reqs[r]->nodes[i]->node, node) == 0)
                return true;
    return false;
}

static int checkjob_run (struct cli_context *ctx, int argc, char **argv)
{
    struct job_args args = {0};
    struct cli_operands operands;
    struct err err = {0};
    Nui__Local__V1__CheckJobRequest request = NUI__LOCAL__V1__CHECK_JOB_REQUEST__INIT;
    Nui__Local__V1__JobDetail *detail = NULL;
    int exit_code;
    if (!cli_options (ctx, checkjob_options, 0, &args, argc, argv, &operands, &exit_code))
        return exit_code;
    if (operands.count != 1)
        return cli_usage ("checkjob", "name one job");
    if (args.attributes && cli_format (ctx) != CLI_TABLE)
        return cli_usage ("checkjob", "-A is a format of its own, beside --json and --csv");
    request.job_id = operands.item[0];
    request.verbose = args.verbose || args.node;
    if (args.level)
        request.level = (char *)args.level;
    if (args.reservation)
        request.reservation = (char *)args.reservation;
    char site[SITE_NAME_CAP];
    if (site_of_grid_job (ctx, request.job_id, site, &args.site, &err) < 0 ||
        site_admin (ctx, args.site, "CheckJob", &request, true, &detail, &err) < 0)
        return cli_fail ("checkjob", &err);
    if (args.node && !node_known (detail, args.node)) {
        err_set (&err, ERR_NOT_FOUND, "nothing is known of job %s on node %.80s",
                 detail->job->job_id, args.node);
        exit_code = cli_fail ("checkjob", &err);
    } else {
        exit_code = detail_print (ctx, detail, args.node, args.attributes);
    }
    nui__local__v1__job_detail__free_unpacked (detail, NULL);
    return exit_code;
}

const struct cli_command checkjob_command = {
    .name = "checkjob",
    .group = CLI_CLUSTER,
    .summary = "one job, and why it waits",
    .run = checkjob_run,
    .help = "nui checkjob [-A | -v] [-l LEVEL] [-n NODE] [-r RESERVATION] [--site NAME] JOB",
    .text =
        "State, credentials, times, what it asks for and where it runs. Of a waiting job: what stops\n"
        "it, with the limit's value and present usage, when that is expected to be over, and how\n"
        "many nodes reject it for which reason. JOB is 17, alpha.17 or grid.42.",
    .options = checkjob_options,
    .example = "nui checkjob alpha.17",
};

/* --- canceljob ---------------------------------------------------------------------------- */

static const struct cli_option canceljob_options[] = {
    SITE_OPTION (struct job_args),
    {0},
};

static const struct table_column cancel_columns[] = {
    {"job_id", "JobName", TABLE_TEXT, 0},
    {"cancelled", "Cancelled", TABLE_BOOL, 0},
};

static int cancel_one (struct cli_context *ctx, const char *command, const char *site, char *job,
                       struct table *t)
{
    Nui__Local__V1__CancelJobRequest request = NUI__LOCAL__V1__CANCEL_JOB_REQUEST__INIT;
    Nui__Local__V1__CancelJobReply *reply = NULL;
    struct err err = {0};
    int exit_code = CLI_OK;
    request.job_id = job;
    if (site_admin (ctx, site, "CancelJob", &request, true, &reply, &err) < 0)
        return cli_fail (command, &err);
    table_text (t, reply->job_id);
    table_bool (t, reply->cancelled);
    table_end_row (t);
    if (!reply->cancelled) {
        err_set (&err, ERR_CONFLICT, "job '%s' has ended already", reply->job_id);
        exit_code = cli_fail (command, &err);
    } else if (cli_format (ctx) == CLI_TABLE) {
        printf ("\n\njob '%s' cancelled\n\n", reply->job_id);
    }
    nui__local__v1__cancel_job_reply__free_unpacked (reply, NULL);
    return exit_code;
}

int cancel_all (struct cli_context *ctx, const char *command, const char *site, char **job,
                int count)
{
    int all = CLI_OK;
    struct table *t = table_create (cancel_columns, 2);
    for (int i = 0; i < count; i++)
        all = worse (all, cancel_one (ctx, command, site, job[i], t));
    if (cli_format (ctx) != CLI_TABLE)
        all = worse (all, table_print (t, ctx));
    table_destroy (t);
    return all;
}

static int canceljob_run (struct cli_context *ctx, int argc, char **argv)
{
    struct job_args args = {0};
    struct cli_operands operands;
    int exit_code;
    if (!cli_options (ctx, canceljob_options, 0, &args, argc, argv, &operands, &exit_code))
        return exit_code;
    if (operands.count < 1)
        return cli_usage ("canceljob", "name at least one job");
    return cancel_all (ctx, "canceljob", args.site, operands.item, operands.count);
}

const struct cli_command canceljob_command = {
    .name = "canceljob",
    .group = CLI_CLUSTER,
    .summary = "cancel jobs",
    .run = canceljob_run,
    .help = "nui canceljob [--site NAME] JOB...",
    .text = "In whatever state. One's own; everybody's for ADMIN1 and ADMIN2.",
    .options = canceljob_options,
    .example = "nui canceljob alpha.17 alpha.18",
};
