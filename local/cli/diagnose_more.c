/* diagnose -S, -R, -m, -t: the scheduler, whom it talks to, the nodes' memory, partitions. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/cli/stats_cli.h"
#include "proto/base/clocksapart.h"
#include "proto/base/mem.h"
#include "proto/base/strtab.h"
#include "proto/cli/estimaterecord.h"

/* --- the scheduler, and whom it talks to --------------------------------------------------- */

static void clock_text (const Nui__Local__V1__Peer *p, struct strbuf *out)
{
    char by[64];
    if (clocks_text (p->clock_ahead_us, "ahead of", by))
        strbuf_printf (out, "WARNING:  the bank's clock is %s this site's\n", by);
}

static void scheduler_text (const Nui__Local__V1__SchedulerReply *r, struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    strbuf_printf (out, "Scheduler: mode %s  active for %s (since %s)\n", r->mode,
                   span_text ((r->now_us - r->started_us) / US_PER_S * US_PER_S, a),
                   moment_text (r->started_us, b));
    strbuf_printf (out, "Iterations: %llu  last %s  Live Jobs: %llu\n",
                   (unsigned long long)r->passes, moment_text (r->last_pass_us, a),
                   (unsigned long long)r->jobs_live);
    strbuf_printf (out, "Trace: %s (%llu jobs)\n", r->statdir, (unsigned long long)r->trace);
    for (size_t i = 0; i < r->n_peers; i++)
        if (r->peers[i]->waiting)
            strbuf_printf (out, "WARNING:  %lld messages wait for %s %s since %s\n",
                           (long long)r->peers[i]->waiting, r->peers[i]->kind, r->peers[i]->detail,
                           moment_text (r->peers[i]->oldest_us, a));
    for (size_t i = 0; i < r->n_peers; i++)
        clock_text (r->peers[i], out);
    strbuf_putc (out, '\n');
}

static void managers_text (const Nui__Local__V1__SchedulerReply *r, struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX];
    for (size_t i = 0; i < r->n_peers; i++) {
        const Nui__Local__V1__Peer *p = r->peers[i];
        if (strcmp (p->kind, "RM") == 0)
            strbuf_printf (out, "RM[%s]  type: '%s'  state: '%s'\n  Event Management:  %s\n",
                           p->name, p->name, p->state,
                           strcmp (p->name, "EMBEDDED") == 0 ? "(events come at once)"
                                                             : "(event interface disabled)");
        else
            strbuf_printf (out, "%s[%s]  server: '%s'  state: '%s'\n", p->kind, p->name, p->detail,
                           p->state);
        if (strcmp (p->kind, "RM") != 0)
            strbuf_printf (out, "  Waiting Messages: %lld%s%s\n", (long long)p->waiting,
                           p->oldest_us ? "  oldest: " : "",
                           p->oldest_us ? moment_text (p->oldest_us, a) : "");
        if (strcmp (p->state, "Down") == 0)
            strbuf_printf (out, "WARNING:  %s %s does not answer\n", p->kind,
                           *p->detail ? p->detail : p->name);
        clock_text (p, out);
    }
    strbuf_putc (out, '\n');
}

static void peers_text (const Nui__Local__V1__SchedulerReply *r, struct strbuf *out)
{
    Nui__Local__V1__SchedulerReply peers = *r;
    Nui__Local__V1__Peer **other = calloc (r->n_peers + 1, sizeof *other);
    assert (other);
    peers.peers = other;
    peers.n_peers = 0;
    for (size_t i = 0; i < r->n_peers; i++)
        if (strcmp (r->peers[i]->kind, "RM") != 0)
            other[peers.n_peers++] = r->peers[i];
    if (peers.n_peers == 0)
        strbuf_puts (out, "this site is alone: it has no metascheduler and no bank\n");
    managers_text (&peers, out);
    free (other);
}

static const struct table_column peer_columns[] = {
    {"kind", "Kind", TABLE_TEXT, 0},      {"name", "Name", TABLE_TEXT, 0},
    {"state", "State", TABLE_TEXT, 0},    {"server", "Server", TABLE_TEXT, 0},
    {"waiting", "Waiting", TABLE_INT, 0}, {"oldest_time", "Oldest", TABLE_TIME, 0},
    {"clock", "Clock", TABLE_TEXT, 0},
};

static const struct table_column scheduler_columns[] = {
    {"time", "Time", TABLE_TIME, 0},
    {"mode", "Mode", TABLE_TEXT, 0},
    {"started_time", "Started", TABLE_TIME, 0},
    {"iteration", "Iteration", TABLE_INT, 0},
    {"last_iteration_time", "Last", TABLE_TIME, 0},
    {"jobs", "Jobs", TABLE_INT, 0},
    {"statdir", "StatDir", TABLE_TEXT, 0},
    {"trace_jobs", "TraceJobs", TABLE_INT, 0},
};

static int managers_rows (struct cli_context *ctx, const Nui__Local__V1__SchedulerReply *r)
{
    char clock[64];
    struct table *t = table_create (peer_columns, sizeof peer_columns / sizeof *peer_columns);
    for (size_t i = 0; i < r->n_peers; i++) {
        table_text (t, r->peers[i]->kind);
        table_text (t, r->peers[i]->name);
        table_text (t, r->peers[i]->state);
        cell_text (t, r->peers[i]->detail);
        table_int (t, r->peers[i]->waiting);
        cell_moment (t, r->peers[i]->oldest_us);
        table_text (t, clocks_text (r->peers[i]->clock_ahead_us, "ahead", clock));
        table_end_row (t);
    }
    int rc = table_print (t, ctx);
    table_destroy (t);
    return rc;
}

static int scheduler_row (struct cli_context *ctx, const Nui__Local__V1__SchedulerReply *r)
{
    struct table *t =
        table_create (scheduler_columns, sizeof scheduler_columns / sizeof *scheduler_columns);
    table_time (t, r->now_us);
    table_text (t, r->mode);
    table_time (t, r->started_us);
    table_int (t, (int64_t)r->passes);
    cell_moment (t, r->last_pass_us);
    table_int (t, (int64_t)r->jobs_live);
    table_text (t, r->statdir);
    table_int (t, (int64_t)r->trace);
    table_end_row (t);
    int rc = table_print_record (t, ctx);
    table_destroy (t);
    return rc;
}

static int
scheduler_print (struct cli_context *ctx, const char *site,
                 void (*text) (const Nui__Local__V1__SchedulerReply *reply, struct strbuf *out),
                 int (*rows) (struct cli_context *ctx, const Nui__Local__V1__SchedulerReply *r))
{
    Nui__Local__V1__SchedulerRequest request = NUI__LOCAL__V1__SCHEDULER_REQUEST__INIT;
    Nui__Local__V1__SchedulerReply *reply = NULL;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int rc;
    if (site_stats (ctx, site, "Scheduler", &request, true, &reply, &err) < 0)
        return cli_fail ("diagnose", &err);
    if (cli_format (ctx) == CLI_TABLE) {
        text (reply, &out);
        rc = cli_output (&out);
    } else {
        rc = rows (ctx, reply);
    }
    strbuf_free (&out);
    nui__local__v1__scheduler_reply__free_unpacked (reply, NULL);
    return rc;
}

int diagnose_scheduler (struct cli_context *ctx, const char *site)
{
    return scheduler_print (ctx, site, scheduler_text, scheduler_row);
}

/* Metaschedulers and the bank, without the resource manager; then the grid's jobs. */
int diagnose_grid (struct cli_context *ctx, const char *site)
{
    Nui__Local__V1__QueueRequest request = NUI__LOCAL__V1__QUEUE_REQUEST__INIT;
    struct queue q = {.arena = arena_create (0), .totals = {.site = (char *)""}};
    struct err err = {0};
    uint32_t kept = 0;
    if (queue_fetch (ctx, site, &request, &q, &err) < 0) {
        arena_destroy (q.arena);
        return cli_fail ("diagnose", &err);
    }
    for (uint32_t i = 0; i < q.count; i++)
        if (*q.row[i].grid_job_id)
            q.row[kept++] = q.row[i];
    q.count = kept;
    int rc = CLI_OK;
    if (cli_format (ctx) == CLI_TABLE) {
        struct strbuf out = STRBUF_INIT;
        rc = scheduler_print (ctx, site, peers_text, managers_rows);
        strbuf_printf (&out, "Grid Jobs: %u\n", kept);
        for (uint32_t i = 0; i < kept; i++)
            strbuf_printf (&out, "  %-18s %-18s %8s %10s %5u\n", q.row[i].grid_job_id,
                           q.row[i].job_id, q.row[i].user, q.row[i].state, q.row[i].procs);
        if (rc == CLI_OK)
            rc = cli_output (&out);
        strbuf_free (&out);
    } else {
        struct table *t = queue_table (&q);
        rc = table_print (t, ctx);
        table_destroy (t);
    }
    arena_destroy (q.arena);
    return rc;
}

int diagnose_managers (struct cli_context *ctx, const char *site)
{
    return scheduler_print (ctx, site, managers_text, managers_rows);
}

/* --- nodes by memory ---------------------------------------------------------------------- */

static bool is_up (const Nui__Local__V1__NodeInfo *n)
{
    return strcmp (n->state, "Down") != 0 && strcmp (n->state, "Drained") != 0;
}

static int by_memory (const void *a, const void *b)
{
    const Nui__Local__V1__NodeInfo *const *x = a, *const *y = b;
    if ((*x)->memory_mb != (*y)->memory_mb)
        return (*x)->memory_mb < (*y)->memory_mb ? -1 : 1;
    return strcmp ((*x)->name, (*y)->name);
}

struct memory_class {
    int64_t memory_mb, disk_mb, swap_mb;
    uint32_t nodes, up, procs, free;
    int64_t dedicated_mb;
};

/* The class that begins at item `from` of sorted nodes; returns where the next begins. */
static uint32_t class_next (Nui__Local__V1__NodeInfo *const *item, uint32_t count, uint32_t from,
                            struct memory_class *out)
{
    uint32_t i = from;
    *out = (struct memory_class){.memory_mb = item[from]->memory_mb};
    for (; i < count && item[i]->memory_mb == out->memory_mb; i++) {
        const Nui__Local__V1__NodeInfo *n = item[i];
        out->nodes++;
        out->procs += n->procs;
        out->disk_mb += n->disk_mb;
        out->swap_mb += n->swap_mb;
        out->dedicated_mb += n->dedicated_memory_mb;
        if (is_up (n)) {
            out->up++;
            out->free += n->procs > n->dedicated_procs ? n->procs - n->dedicated_procs : 0;
        }
    }
    return i;
}

static Nui__Local__V1__NodeInfo **sorted (const struct nodes *nodes)
{
    Nui__Local__V1__NodeInfo **item =
        arena_array (nodes->arena, nodes->count + 1, sizeof (Nui__Local__V1__NodeInfo *));
    if (nodes->count)
        memcpy (item, nodes->item, nodes->count * sizeof *item);
    if (nodes->count > 0)
        qsort (item, nodes->count, sizeof *item, by_memory);
    return item;
}

static void memory_text (const struct nodes *nodes, struct strbuf *out)
{
    Nui__Local__V1__NodeInfo **item = sorted (nodes);
    struct memory_class c;
    strbuf_puts (out,
                 "diagnosing memory table\n\n"
                 "    Memory Nodes    Up Procs  Free  Dedicated(MB)   Disk(MB)   Swap(MB)\n\n");
    for (uint32_t i = 0; i < nodes->count;) {
        i = class_next (item, nodes->count, i, &c);
        strbuf_printf (out, "%10lld %5u %5u %5u %5u %14lld %10lld %10lld\n", (long long)c.memory_mb,
                       c.nodes, c.up, c.procs, c.free, (long long)c.dedicated_mb,
                       (long long)c.disk_mb, (long long)c.swap_mb);
    }
    strbuf_putc (out, '\n');
}

static const struct table_column memory_columns[] = {
    {"memory", "Memory", TABLE_INT, 0},   {"nodes", "Nodes", TABLE_INT, 0},
    {"nodes_up", "Up", TABLE_INT, 0},     {"procs", "Procs", TABLE_INT, 0},
    {"procs_free", "Free", TABLE_INT, 0}, {"memory_dedicated", "Dedicated", TABLE_INT, 0},
    {"disk", "Disk", TABLE_INT, 0},       {"swap", "Swap", TABLE_INT, 0},
};

static int memory_rows (struct cli_context *ctx, const struct nodes *nodes)
{
    struct table *t = table_create (memory_columns, sizeof memory_columns / sizeof *memory_columns);
    Nui__Local__V1__NodeInfo **item = sorted (nodes);
    struct memory_class c;
    for (uint32_t i = 0; i < nodes->count;) {
        i = class_next (item, nodes->count, i, &c);
        const int64_t value[] = {c.memory_mb, c.nodes,        c.up,      c.procs,
                                 c.free,      c.dedicated_mb, c.disk_mb, c.swap_mb};
        for (size_t v = 0; v < sizeof value / sizeof *value; v++)
            table_int (t, value[v]);
        table_end_row (t);
    }
    int rc = table_print (t, ctx);
    table_destroy (t);
    return rc;
}

/* --- partitions --------------------------------------------------------------------------- */

struct amounts {
    int64_t configured, up, dedicated, active; /* active: in use, where that is measured */
};

enum { A_NODES, A_PROCS, A_MEMORY, A_SWAP, A_DISK, A_KINDS };
static const char *const amount_title[A_KINDS] = {"NODE", "PROC", "MEM", "SWAP", "DISK"};

/* The amounts of nodes of one partition; NULL: of all. */
static void amounts_of (const struct nodes *nodes, const char *partition,
                        struct amounts out[A_KINDS])
{
    memset (out, 0, A_KINDS * sizeof *out);
    for (uint32_t i = 0; i < nodes->count; i++) {
        const Nui__Local__V1__NodeInfo *n = nodes->item[i];
        const int64_t has[A_KINDS] = {1, n->procs, n->memory_mb, n->swap_mb, n->disk_mb};
        const int64_t used[A_KINDS] = {n->dedicated_procs > 0, n->dedicated_procs,
                                       n->dedicated_memory_mb, n->dedicated_swap_mb,
                                       n->dedicated_disk_mb};
        const int64_t active[A_KINDS] = {n->n_jobs > 0, n->dedicated_procs,
                                         n->measured ? n->used_memory_mb : n->dedicated_memory_mb,
                                         n->dedicated_swap_mb, n->dedicated_disk_mb};
        if (partition && strcmp (partition, n->partition) != 0)
            continue;
        for (int k = 0; k < A_KINDS; k++) {
            out[k].configured += has[k];
            out[k].up += is_up (n) ? has[k] : 0;
            out[k].dedicated += used[k];
            out[k].active += active[k];
        }
    }
}

/* The names of the partitions, in the order of the nodes; in the nodes' arena. */
static uint32_t partitions_of (const struct nodes *nodes, const char ***out)
{
    const char **name = arena_array (nodes->arena, nodes->count + 1, sizeof *name);
    uint32_t count = 0;
    for (uint32_t i = 0; i < nodes->count; i++) {
        uint32_t k = 0;
        while (k < count && strcmp (name[k], nodes->item[i]->partition) != 0)
            k++;
        if (k == count)
            name[count++] = nodes->item[i]->partition;
    }
    *out = name;
    return count;
}

/* Of each class, initiators that are free and that there are on nodes that are up: "[batch 10:32]". */
static void classes_text (const struct nodes *nodes, const char *partition, struct strbuf *out)
{
    struct strtab *class = strtab_create ();
    struct class_sum {
        long long free, up;
    } *sum = NULL;
    uint32_t cap = 0, had = 0;
    for (uint32_t i = 0; i < nodes->count; i++) {
        const Nui__Local__V1__NodeInfo *n = nodes->item[i];
        for (size_t c = 0; c < n->n_classes && strcmp (n->partition, partition) == 0; c++) {
            struct node_class here = node_class (n, c);
            uint32_t at = strtab_intern (class, here.name);
            if (at >= had) {
                sum = mem_grow (sum, &cap, at + 1, sizeof *sum);
                sum[at] = (struct class_sum){0};
                had = at + 1;
            }
            sum[at].free += is_up (n) ? here.free : 0;
            sum[at].up += is_up (n) ? here.all : 0;
        }
    }
    strbuf_printf (out, "%12s ", partition);
    for (uint32_t at = 0; at < had; at++)
        strbuf_printf (out, "[%s %lld:%lld]", strtab_name (class, at), sum[at].free, sum[at].up);
    strbuf_puts (out, had ? "\n" : "[NONE]\n");
    free (sum);
    strtab_destroy (class);
}

static void partitions_text (const struct nodes *nodes, struct strbuf *out)
{
    struct amounts a[A_KINDS];
    const char **name;
    uint32_t count = partitions_of (nodes, &name);
    strbuf_puts (out, "Displaying Partition Status\n\nSystem Partition Settings:  PList: ");
    for (uint32_t p = 0; p < count; p++)
        strbuf_printf (out, "%s%s", p ? ":" : "", name[p]);
    strbuf_printf (out, " PDef: %s\n\nName                    Procs\n\n", count ? name[0] : "-");
    for (uint32_t p = 0; p < count; p++) {
        amounts_of (nodes, name[p], a);
        strbuf_printf (out, "%-20s %8lld\n", name[p], (long long)a[A_PROCS].configured);
    }
    strbuf_puts (
        out,
        "\nPartition    Configured         Up     U/C  Dedicated     D/U     Active     A/U\n\n");
    for (int k = 0; k < A_KINDS; k++) {
        strbuf_printf (out, "%s%.*s\n", amount_title[k], 80 - (int)strlen (amount_title[k]),
                       "----------------------------------------"
                       "----------------------------------------");
        for (uint32_t p = 0; p < count; p++) {
            amounts_of (nodes, name[p], a);
            strbuf_printf (out, "%-11s %11lld %10lld %6.2f%% %10lld %6.2f%% %10lld %6.2f%%\n",
                           name[p], (long long)a[k].configured, (long long)a[k].up,
                           share_of ((double)a[k].up, (double)a[k].configured),
                           (long long)a[k].dedicated,
                           share_of ((double)a[k].dedicated, (double)a[k].up),
                           (long long)a[k].active, share_of ((double)a[k].active, (double)a[k].up));
        }
    }
    strbuf_puts (out, "\nClass/Queue State\n\n");
    strbuf_puts (out, "             [<CLASS> <AVAIL>:<UP>]...\n\n");
    for (uint32_t p = 0; p < count; p++)
        classes_text (nodes, name[p], out);
    strbuf_putc (out, '\n');
}

static const struct table_column partition_columns[] = {
    {"partition", "Partition", TABLE_TEXT, 0},  {"resource", "Resource", TABLE_TEXT, 0},
    {"configured", "Configured", TABLE_INT, 0}, {"up", "Up", TABLE_INT, 0},
    {"dedicated", "Dedicated", TABLE_INT, 0},   {"in_use", "Active", TABLE_INT, 0},
};

static int partition_rows (struct cli_context *ctx, const struct nodes *nodes)
{
    struct table *t =
        table_create (partition_columns, sizeof partition_columns / sizeof *partition_columns);
    struct amounts a[A_KINDS];
    const char **name;
    uint32_t count = partitions_of (nodes, &name);
    for (uint32_t i = 0; i < count * A_KINDS; i++) {
        uint32_t k = i % A_KINDS;
        amounts_of (nodes, name[i / A_KINDS], a);
        table_text (t, name[i / A_KINDS]);
        table_text (t, amount_title[k]);
        table_int (t, a[k].configured);
        table_int (t, a[k].up);
        table_int (t, a[k].dedicated);
        table_int (t, a[k].active);
        table_end_row (t);
    }
    int rc = table_print (t, ctx);
    table_destroy (t);
    return rc;
}

static int nodes_print (struct cli_context *ctx, const char *site,
                        void (*text) (const struct nodes *nodes, struct strbuf *out),
                        int (*rows) (struct cli_context *ctx, const struct nodes *nodes))
{
    struct nodes nodes = {.arena = arena_create (0)};
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int rc;
    if (nodes_fetch (ctx, site, NULL, &nodes, &err) < 0) {
        rc = cli_fail ("diagnose", &err);
    } else if (cli_format (ctx) == CLI_TABLE) {
        text (&nodes, &out);
        rc = cli_output (&out);
    } else {
        rc = rows (ctx, &nodes);
    }
    strbuf_free (&out);
    nodes_free (&nodes);
    return rc;
}

int diagnose_memory (struct cli_context *ctx, const char *site)
{
    return nodes_print (ctx, site, memory_text, memory_rows);
}

int diagnose_partitions (struct cli_context *ctx, const char *site)
{
    return nodes_print (ctx, site, partitions_text, partition_rows);
}

/* --- how start-time estimates held ------------------------------------------------------------ */

static const struct table_column record_columns[] = {
    {"class", "Class", TABLE_TEXT, 0},
    {"answers", "Answers", TABLE_TEXT, 0},
    {"scored", "Scored", TABLE_INT, 0},
    {"uncertain", "Uncertain", TABLE_INT, 0},
    {"coverage_50", "In50%", TABLE_PPM, 3},
    {"coverage_95", "In95%", TABLE_PPM, 3},
    {"median_error", "MedianError", TABLE_DURATION, 0},
    {"bias_s", "BiasSeconds", TABLE_PPM, 0},
    {"earned", "Earned", TABLE_BOOL, 0},
};

static int records_print (struct cli_context *ctx, const Nui__Local__V1__EstimatesReply *r)
{
    struct table *t = table_create (record_columns, sizeof record_columns / sizeof *record_columns);
    for (size_t i = 0; i < r->n_records; i++) {
        estimate_record_cells (t, r->records[i]);
        table_end_row (t);
    }
    int rc = table_print (t, ctx);
    table_destroy (t);
    return rc;
}

int diagnose_estimates (struct cli_context *ctx, const char *site)
{
    Nui__Local__V1__EstimatesRequest request = NUI__LOCAL__V1__ESTIMATES_REQUEST__INIT;
    Nui__Local__V1__EstimatesReply *reply = NULL;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    char a[QUANTITY_TEXT_MAX];
    if (site_stats (ctx, site, "Estimates", &request, true, &reply, &err) < 0)
        return cli_fail ("diagnose", &err);
    int rc = records_print (ctx, reply);
    if (rc == CLI_OK && cli_format (ctx) == CLI_TABLE) {
        strbuf_printf (&out,
                       "\nended jobs known: %llu   surveys of the queue: %llu (last: %.1f ms, "
                       "longest slice: %.1f ms)\nlast survey: %s\n",
                       (unsigned long long)reply->history, (unsigned long long)reply->surveys,
                       (double)reply->survey_us / 1e3, (double)reply->slice_us / 1e3,
                       reply->surveyed_us ? moment_text (reply->surveyed_us, a) : "none yet");
        rc = cli_output (&out);
    }
    strbuf_free (&out);
    nui__local__v1__estimates_reply__free_unpacked (reply, NULL);
    return rc;
}
