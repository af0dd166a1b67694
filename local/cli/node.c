/* checknode, showres, showstate: nodes and what stands on them. */
#include <stdlib.h>
#include <string.h>

#include "local/cli/local_cli.h"
#include "local/cli/stats_cli.h"
#include "proto/rpc/pbcopy.h"

/* --- collecting --------------------------------------------------------------------------- */

static void *grown (struct arena *arena, const void *old, uint32_t count, uint32_t *cap,
                    size_t size)
{
    if (count < *cap)
        return (void *)(uintptr_t)old;
    uint32_t more = *cap ? *cap * 2 : 64;
    void *list = arena_array (arena, more, size);
    if (count)
        memcpy (list, old, count * size);
    *cap = more;
    return list;
}

static void on_nodes (void *arg, const ProtobufCMessage *message)
{
    struct nodes *n = arg;
    const Nui__Local__V1__NodesChunk *chunk = (const Nui__Local__V1__NodesChunk *)message;
    n->now_us = chunk->now_us;
    for (size_t i = 0; i < chunk->n_nodes; i++) {
        n->item = grown (n->arena, n->item, n->count, &n->cap, sizeof *n->item);
        n->item[n->count++] = (Nui__Local__V1__NodeInfo *)pbcopy (&chunk->nodes[i]->base);
    }
}

int nodes_fetch (struct cli_context *ctx, const char *site, const char *node, struct nodes *out,
                 struct err *err)
{
    Nui__Local__V1__NodesRequest request = NUI__LOCAL__V1__NODES_REQUEST__INIT;
    struct rpcclient *client = cli_site (ctx, site, err);
    if (!client)
        return err->code;
    if (node)
        request.node = (char *)node;
    return rpcclient_stream (client, &nui__local__v1__admin__descriptor, "Nodes", &request.base,
                             SITE_CALL_TIMEOUT_S * US_PER_S, on_nodes, out, err);
}

void nodes_free (struct nodes *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        nui__local__v1__node_info__free_unpacked (n->item[i], NULL);
    arena_destroy (n->arena);
}

static void on_reservations (void *arg, const ProtobufCMessage *message)
{
    struct reservations *r = arg;
    const Nui__Local__V1__ReservationsChunk *chunk =
        (const Nui__Local__V1__ReservationsChunk *)message;
    r->now_us = chunk->now_us;
    r->hidden += chunk->hidden;
    for (size_t i = 0; i < chunk->n_reservations; i++) {
        r->item = grown (r->arena, r->item, r->count, &r->cap, sizeof *r->item);
        r->item[r->count++] = (Nui__Local__V1__Reservation *)pbcopy (&chunk->reservations[i]->base);
    }
}

int reservations_ask (struct cli_context *ctx, const char *site,
                      const Nui__Local__V1__ReservationsRequest *request, struct reservations *out,
                      struct err *err)
{
    struct rpcclient *client = cli_site (ctx, site, err);
    if (!client)
        return err->code;
    return rpcclient_stream (client, &nui__local__v1__admin__descriptor, "Reservations",
                             &request->base, SITE_CALL_TIMEOUT_S * US_PER_S, on_reservations, out,
                             err);
}

int reservations_fetch (struct cli_context *ctx, const char *site, const char *name,
                        const char *node, bool nodes, struct reservations *out, struct err *err)
{
    Nui__Local__V1__ReservationsRequest request = NUI__LOCAL__V1__RESERVATIONS_REQUEST__INIT;
    if (name)
        request.name = (char *)name;
    if (node)
        request.node = (char *)node;
    request.nodes = nodes;
    return reservations_ask (ctx, site, &request, out, err);
}

void reservations_free (struct reservations *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        nui__local__v1__reservation__free_unpacked (r->item[i], NULL);
    arena_destroy (r->arena);
}

/* --- checknode ---------------------------------------------------------------------------- */

static void resources_text (const char *label, int64_t procs, int64_t memory, int64_t swap,
                            int64_t disk, struct strbuf *out)
{
    strbuf_printf (out, "%s PROCS: %lld", label, (long long)procs);
    if (memory)
        strbuf_printf (out, "  MEM: %lldM", (long long)memory);
    if (swap)
        strbuf_printf (out, "  SWAP: %lldM", (long long)swap);
    if (disk)
        strbuf_printf (out, "  DISK: %lldM", (long long)disk);
    strbuf_putc (out, '\n');
}

static uint32_t tasks_on (const Nui__Local__V1__Reservation *r)
{
    uint32_t tasks = 0;
    for (size_t i = 0; i < r->n_nodes; i++)
        tasks += r->nodes[i]->tasks;
    return tasks;
}

/* always: [NONE] where there is nothing, else no line. */
static void bracketed (struct strbuf *out, const char *title, char *const *item, size_t count,
                       bool always)
{
    if (count == 0 && !always)
        return;
    strbuf_puts (out, title);
    for (size_t i = 0; i < count; i++)
        strbuf_printf (out, "[%s]", item[i]);
    strbuf_puts (out, count ? "\n" : "[NONE]\n");
}

struct node_class node_class (const Nui__Local__V1__NodeInfo *n, size_t i)
{
    struct node_class c = {.free = (long long)n->procs - n->dedicated_procs, .all = n->procs};
    (void)sscanf (n->classes[i], "%79s %lld:%lld", c.name, &c.free, &c.all);
    return c;
}

static void classes_text (const Nui__Local__V1__NodeInfo *n, struct strbuf *out)
{
    strbuf_puts (out, "Classes:    ");
    for (size_t i = 0; i < n->n_classes; i++) {
        struct node_class c = node_class (n, i);
        strbuf_printf (out, "[%s %lld:%lld]", c.name, c.free, c.all);
    }
    strbuf_puts (out, n->n_classes ? "\n" : "[NONE]\n");
}

static void checknode_text (const Nui__Local__V1__NodeInfo *n, const struct reservations *rsv,
                            bool verbose, struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX], c[QUANTITY_TEXT_MAX];
    strbuf_printf (out, "\n\nchecking node %s\n\nState:  %8s", n->name, n->state);
    if (n->state_since_us)
        strbuf_printf (out, "  (in current state for %s)",
                       span_text (rsv->now_us - n->state_since_us, a));
    strbuf_putc (out, '\n');
    if (*n->reason)
        strbuf_printf (out, "Reason:     %s\n", n->reason);
    resources_text ("Configured Resources:", n->procs, n->memory_mb, n->swap_mb, n->disk_mb, out);
    if (n->measured || n->load_milli)
        resources_text ("Utilized   Resources:", (n->load_milli + 500) / 1000, n->used_memory_mb, 0,
                        0, out);
    if (n->dedicated_procs || n->dedicated_memory_mb)
        resources_text ("Dedicated  Resources:", n->dedicated_procs, n->dedicated_memory_mb,
                        n->dedicated_swap_mb, n->dedicated_disk_mb, out);
    else
        strbuf_puts (out, "Dedicated  Resources: [NONE]\n");
    strbuf_printf (out, "Opsys:  %12s  Arch: %11s\n", or_none (n->opsys), or_none (n->arch));
    strbuf_printf (out, "Speed:      %.2f  Load:       %.3f\n", n->speed_ppm / 1e6,
                   n->load_milli / 1e3);
    if (verbose)
        strbuf_printf (out, "Location:   Partition: %s  Address: %s  Priority: %d\n",
                       *n->partition ? n->partition : "DEFAULT", n->address, n->priority);
    bracketed (out, "Network:    ", n->networks, n->n_networks, true);
    bracketed (out, "Features:   ", n->features, n->n_features, true);
    strbuf_puts (out, "Attributes: [Batch]\n");
    classes_text (n, out);
    bracketed (out, "Switches:   ", n->switches, n->n_switches, false);
    bracketed (out, "Gres:       ", n->gres, n->n_gres, false);
    if (n->total_us)
        strbuf_printf (out, "\nTotal Time: %s  Up: %s (%.2f%%)  Active: %s (%.2f%%)\n",
                       span_text (n->total_us, a), span_text (n->up_us, b),
                       share_of ((double)n->up_us, (double)n->total_us), span_text (n->busy_us, c),
                       share_of ((double)n->busy_us, (double)n->total_us));
    strbuf_puts (out, "\nReservations:\n");
    for (uint32_t i = 0; i < rsv->count; i++) {
        const Nui__Local__V1__Reservation *r = rsv->item[i];
        strbuf_printf (out, "  %s '%s'(x%u)  %s -> %s (%s)\n", r->type, r->name, tasks_on (r),
                       span_text (r->start_us - rsv->now_us, a),
                       r->end_us ? span_text (r->end_us - rsv->now_us, b) : "INFINITY",
                       r->end_us ? span_text (r->end_us - r->start_us, c) : "INFINITY");
    }
    strbuf_puts (out, "JobList:  ");
    for (size_t i = 0; i < n->n_jobs; i++)
        strbuf_printf (out, "%s%s", i ? "," : "", n->jobs[i]);
    strbuf_printf (out, "%s\n\n", n->n_jobs ? "" : "[NONE]");
}

static void in_use_cell (struct table *t, const ProtobufCMessage *message)
{
    const Nui__Local__V1__NodeInfo *n = (const Nui__Local__V1__NodeInfo *)message;
    if (n->measured)
        table_int (t, n->used_memory_mb);
    else
        table_null (t);
}

static void partition_cell (struct table *t, const ProtobufCMessage *message)
{
    const char *partition = ((const Nui__Local__V1__NodeInfo *)message)->partition;
    table_text (t, *partition ? partition : "DEFAULT");
}

static const struct table_column node_columns[] = {
    {"node", "Node", TABLE_TEXT, .from = "name"},
    {"state", "State", TABLE_TEXT},
    {"procs", "Procs", TABLE_INT},
    {"dedicated_procs", "Dedicated", TABLE_INT},
    {"memory_mb", "Mem", TABLE_INT},
    {"dedicated_memory_mb", "UsedMem", TABLE_INT},
    {"swap_mb", "Swap", TABLE_INT},
    {"disk_mb", "Disk", TABLE_INT},
    {"speed", "Speed", TABLE_PPM, 2},
    {"load", "Load", TABLE_PPM, 3},
    {"priority", "Priority", TABLE_INT},
    {"features", "Features", TABLE_TEXT},
    {"address", "Address", TABLE_TEXT},
    {"jobs", "JobList", TABLE_TEXT},
    {"used_memory_mb", "InUse", TABLE_INT, .cell = in_use_cell},
    {"partition", "Partition", TABLE_TEXT, .cell = partition_cell},
    {"classes", "Classes", TABLE_TEXT},
    {"networks", "Network", TABLE_TEXT},
    {"gres", "Gres", TABLE_TEXT},
    {"switches", "Switches", TABLE_TEXT},
    {"opsys", "Opsys", TABLE_TEXT},
    {"arch", "Arch", TABLE_TEXT},
    {"reason", "Reason", TABLE_TEXT},
};

struct table *nodes_table (const struct nodes *nodes)
{
    struct table *t = TABLE_CREATE (node_columns);
    for (uint32_t i = 0; i < nodes->count; i++)
        TABLE_ROW (t, nodes->item[i]);
    return t;
}

static void duration_cell (struct table *t, const ProtobufCMessage *message)
{
    const Nui__Local__V1__Reservation *r = (const Nui__Local__V1__Reservation *)message;
    table_duration (t, r->end_us ? r->end_us - r->start_us : TIME_US_MAX);
}

/* The node that the row is about, of those of the reservation; NULL: it is about all. */
static void node_cell (struct table *t, const ProtobufCMessage *message)
{
    const Nui__Local__V1__NodeTasks *on = table_beside (t);
    (void)message;
    table_text (t, on ? on->node : NULL);
}

static void tasks_cell (struct table *t, const ProtobufCMessage *message)
{
    const Nui__Local__V1__NodeTasks *on = table_beside (t);
    (void)message;
    if (on)
        table_int (t, on->tasks);
    else
        table_null (t);
}

static const struct table_column rsv_columns[] = {
    {"reservation_id", "ReservationID", TABLE_TEXT, .from = "name"},
    {"type", "Type", TABLE_TEXT},
    {"job_state", "S", TABLE_TEXT, .from = "state"},
    {"start_time", "StartTime", TABLE_TIME},
    {"end_time", "EndTime", TABLE_TIME},
    {"duration", "Duration", TABLE_DURATION, .cell = duration_cell},
    {"nodes", "N", TABLE_INT, .from = "node_count"},
    {"procs", "P", TABLE_INT},
    {"node", "NodeName", TABLE_TEXT, .cell = node_cell},
    {"tasks", "Task", TABLE_INT, .cell = tasks_cell},
    {"acl", "ACL", TABLE_TEXT},
    {"flags", "Flags", TABLE_TEXT},
    {"owner", "Owner", TABLE_TEXT},
    {"resources", "Resources", TABLE_TEXT},
    {"tasks_wanted", "Wanted", TABLE_INT},
    {"tasks_up", "Up", TABLE_INT},
    {"used_by", "UsedBy", TABLE_TEXT},
    {"standing", "Standing", TABLE_TEXT},
    {"charge", "Charge", TABLE_TEXT},
    {"group", "Group", TABLE_TEXT},
};

struct table *reservations_table (const struct reservations *rsv, bool by_node)
{
    struct table *t = TABLE_CREATE (rsv_columns);
    for (uint32_t i = 0; i < rsv->count; i++) {
        const Nui__Local__V1__Reservation *r = rsv->item[i];
        for (size_t n = 0; n < (by_node ? r->n_nodes : 1); n++) {
            table_set_beside (t, by_node ? r->nodes[n] : NULL);
            TABLE_ROW (t, r);
        }
    }
    return t;
}

struct node_args {
    bool verbose;
    const char *site;
};

static const struct cli_option checknode_options[] = {
    {"verbose", 'v', CLI_OPT_FLAG, NULL, "also its address and priority",
     offsetof (struct node_args, verbose)},
    SITE_OPTION (struct node_args),
    {0},
};

/* A node with what stands on it, of all that were fetched. */
static void standing_on (const struct reservations *all, const char *node, struct reservations *out)
{
    out->now_us = all->now_us;
    out->item = arena_array (all->arena, all->count + 1, sizeof *out->item);
    out->count = 0;
    for (uint32_t i = 0; i < all->count; i++)
        for (size_t n = 0; n < all->item[i]->n_nodes; n++) {
            if (strcmp (all->item[i]->nodes[n]->node, node) != 0)
                continue;
            Nui__Local__V1__Reservation *here =
                arena_memdup (all->arena, all->item[i], sizeof *here);
            here->nodes = &all->item[i]->nodes[n]; /* of several reqs each is told */
            here->n_nodes = 1;
            out->item[out->count++] = here;
        }
}

static void node_json (const struct table *rows, uint32_t at, const struct reservations *on_it,
                       struct jsonout *j)
{
    struct table *held = reservations_table (on_it, true);
    jsonout_object (j);
    jsonout_key (j, "node");
    table_to_json_row (rows, at, j);
    jsonout_key (j, "reservations");
    table_to_json (held, j);
    jsonout_end (j);
    table_destroy (held);
}

/* several: all nodes were asked for: in JSON a list. */
static int checknode_print (struct cli_context *ctx, const struct nodes *nodes,
                            const struct reservations *rsv, bool several, bool verbose)
{
    struct strbuf out = STRBUF_INIT;
    struct jsonout j = jsonout_make (&out);
    struct table *t = nodes_table (nodes);
    struct reservations on_it = {0};
    if (cli_format (ctx) == CLI_CSV)
        table_to_csv (t, cli_noheader (ctx), &out);
    if (several && cli_format (ctx) == CLI_JSON)
        jsonout_array (&j);
    for (uint32_t i = 0; i < nodes->count && cli_format (ctx) != CLI_CSV; i++) {
        standing_on (rsv, nodes->item[i]->name, &on_it);
        if (cli_format (ctx) == CLI_TABLE)
            checknode_text (nodes->item[i], &on_it, verbose, &out);
        else
            node_json (t, i, &on_it, &j);
    }
    if (several && cli_format (ctx) == CLI_JSON)
        jsonout_end (&j);
    table_destroy (t);
    int rc = cli_output (&out);
    strbuf_free (&out);
    return rc;
}

static const char global_node[] = "GLOBAL";

static int checknode_run (struct cli_context *ctx, int argc, char **argv)
{
    struct node_args args = {0};
    struct cli_operands operands;
    struct err err = {0};
    int exit_code;
    if (!cli_options (ctx, checknode_options, 0, &args, argc, argv, &operands, &exit_code))
        return exit_code;
    if (operands.count != 1)
        return cli_usage ("checknode", "name one node, ALL or GLOBAL");
    struct nodes nodes = {.arena = arena_create (0)};
    struct reservations rsv = {.arena = arena_create (0)};
    bool all = strcmp (operands.item[0], "ALL") == 0;
    const char *node = all ? NULL : operands.item[0];
    int rc = nodes_fetch (ctx, args.site, node, &nodes, &err);
    if (rc == 0)
        rc = reservations_fetch (ctx, args.site, NULL, node, true, &rsv, &err);
    if (rc == 0 && all) /* and what floats, where anything does */
        rc = nodes_fetch (ctx, args.site, global_node, &nodes, &err);
    if (rc == 0 && all && nodes.count > 0 && nodes.item[nodes.count - 1]->n_gres == 0)
        nui__local__v1__node_info__free_unpacked (nodes.item[--nodes.count], NULL);
    if (rc == 0 && nodes.count == 0)
        rc = err_set (&err, ERR_INTERNAL, "no answer about node %s", operands.item[0]);
    exit_code = rc < 0 ? cli_fail ("checknode", &err)
                       : checknode_print (ctx, &nodes, &rsv, all, args.verbose);
    nodes_free (&nodes);
    reservations_free (&rsv);
    return exit_code;
}

const struct cli_command checknode_command = {
    .name = "checknode",
    .group = CLI_CLUSTER,
    .summary = "one node: state, resources, reservations, jobs",
    .run = checknode_run,
    .help = "nui checknode [-v] [--site NAME] NODE | ALL | GLOBAL",
    .text =
        "GLOBAL has what belongs to no node: floating licences, free and in all. For administrators\n"
        "(ADMIN3).",
    .options = checknode_options,
    .example = "nui checknode alpha01",
};

/* --- showres ------------------------------------------------------------------------------ */

static char state_letter (const Nui__Local__V1__Reservation *r)
{
    return strcmp (r->state, "Reserved") == 0 ? 'I' : *r->state ? r->state[0] : '-';
}

static void more_text (const char *what, char *const *item, size_t count, struct strbuf *out)
{
    if (count)
        strbuf_printf (out, "    %s:", what);
    for (size_t i = 0; i < count; i++)
        strbuf_printf (out, " %s%s", item[i], i + 1 == count ? "\n" : "");
}

static void showres_list (const struct reservations *rsv, struct showres_look look,
                          struct strbuf *out)
{
    bool noheader = look.noheader;
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX], c[QUANTITY_TEXT_MAX], d[QUANTITY_TEXT_MAX];
    if (!noheader)
        strbuf_printf (out,
                       "Reservations\n\nReservationID       Type S       Start         End"
                       "    Duration    N/P%s\n\n",
                       look.relative ? "" : "    StartTime");
    for (uint32_t i = 0; i < rsv->count; i++) {
        const Nui__Local__V1__Reservation *r = rsv->item[i];
        char procs[16];
        snprintf (procs, sizeof procs, "%u", r->procs);
        strbuf_printf (out, "%-18s %5s %c %11s %11s %11s %4u/%-4s%s%s\n", r->name, r->type,
                       state_letter (r), span_text (r->start_us - rsv->now_us, a),
                       r->end_us ? span_text (r->end_us - rsv->now_us, b) : "INFINITY",
                       r->end_us ? span_text (r->end_us - r->start_us, c) : "INFINITY",
                       r->node_count, procs, look.relative ? "" : " ",
                       look.relative ? "" : moment_text (r->start_us, d));
        if (look.verbose) {
            more_text ("ACL", r->acl, r->n_acl, out);
            more_text ("Flags", r->flags, r->n_flags, out);
            more_text ("Owner", &r->owner, *r->owner != 0, out);
            more_text ("Resources", &r->resources, *r->resources != 0, out);
        }
    }
    if (!noheader)
        strbuf_printf (out, "\n%u reservations located\n\n", rsv->count);
}

struct on_node {
    const char *node;
    uint32_t tasks, at;
    const Nui__Local__V1__Reservation *rsv;
};

static int by_node (const void *a, const void *b)
{
    const struct on_node *x = a, *y = b;
    int c = strcmp (x->node, y->node);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* One line for each type: how many, those that have begun, nodes and processors. */
static void showres_sums (const struct reservations *rsv, struct strbuf *out)
{
    static const char *const type[] = {"Job", "User"};
    for (size_t k = 0; k < 2; k++) {
        uint32_t count = 0, active = 0, nodes = 0, procs = 0;
        for (uint32_t i = 0; i < rsv->count; i++) {
            const Nui__Local__V1__Reservation *r = rsv->item[i];
            if (strcmp (r->type, type[k]) != 0)
                continue;
            bool begun = r->start_us <= rsv->now_us;
            count++;
            active += begun;
            nodes += begun ? r->node_count : 0;
            procs += begun ? r->procs : 0;
        }
        strbuf_printf (out, "%-4s reservations: %u  active: %u  (%u nodes, %u procs)\n", type[k],
                       count, active, nodes, procs);
    }
}

static void showres_nodes (const struct reservations *rsv, struct showres_look look,
                           struct strbuf *out)
{
    bool noheader = look.noheader;
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < rsv->count; i++)
        count += (uint32_t)rsv->item[i]->n_nodes;
    struct on_node *line = arena_array (rsv->arena, count + 1, sizeof *line);
    count = 0;
    for (uint32_t i = 0; i < rsv->count; i++)
        for (size_t n = 0; n < rsv->item[i]->n_nodes; n++, count++)
            line[count] = (struct on_node){rsv->item[i]->nodes[n]->node,
                                           rsv->item[i]->nodes[n]->tasks, count, rsv->item[i]};
    qsort (line, count, sizeof *line, by_node);
    if (!noheader)
        strbuf_printf (out,
                       "reservations on %s\n\n            NodeName       Type      ReservationID"
                       "   JobState Task       Start    Duration%s\n\n",
                       moment_text (rsv->now_us, a), look.relative ? "" : "            StartTime");
    for (uint32_t i = 0; i < count; i++) {
        const Nui__Local__V1__Reservation *r = line[i].rsv;
        char start[QUANTITY_TEXT_MAX];
        strbuf_printf (out, "%20s %10s %18s %10s %4u %11s %11s%s%s\n", line[i].node, r->type,
                       r->name, *r->state ? r->state : "N/A", line[i].tasks,
                       span_text (r->start_us - rsv->now_us, start),
                       r->end_us ? span_text (r->end_us - r->start_us, a) : "INFINITE",
                       look.relative ? "" : "  ",
                       look.relative ? "" : moment_text (r->start_us, b));
    }
    if (!noheader)
        strbuf_printf (out, "%u nodes reserved\n", count);
}

void showres_text (const struct reservations *rsv, struct showres_look look, struct strbuf *out)
{
    if (look.summary)
        showres_sums (rsv, out);
    else if (look.nodes)
        showres_nodes (rsv, look, out);
    else
        showres_list (rsv, look, out);
    if (rsv->hidden && !look.noheader)
        strbuf_printf (out,
                       "%u reservations of other people are not shown: that is for "
                       "administrators\n",
                       rsv->hidden);
}

/* Only those of co-reservations. */
static void showres_groups (struct reservations *rsv)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rsv->count; i++)
        if (*rsv->item[i]->group)
            rsv->item[count++] = rsv->item[i];
        else
            nui__local__v1__reservation__free_unpacked (rsv->item[i], NULL);
    rsv->count = count;
}

struct showres_args {
    struct showres_look look;
    bool grep;
    const char *partition, *site;
};

#define AT(field) offsetof (struct showres_args, field)
static const struct cli_option showres_options[] = {
    {"nodes", 'n', CLI_OPT_FLAG, NULL, "by node", AT (look.nodes)},
    {"grep", 'g', CLI_OPT_FLAG, NULL,
     "parts of co-reservations (nui coreserve); with -n: every line says its node, for grep: so it always is, and "
     "there are no titles",
     AT (grep)},
    {"relative", 'r', CLI_OPT_FLAG, NULL, "times from now only, no dates", AT (look.relative)},
    {"summary", 's', CLI_OPT_FLAG, NULL, "how many there are, and what the active ones hold",
     AT (look.summary)},
    {"partition", 'p', CLI_OPT_STRING, "NAME", "those that have nodes of this partition",
     AT (partition)},
    {"verbose", 'v', CLI_OPT_FLAG, NULL, "also access list, flags and owner of each",
     AT (look.verbose)},
    SITE_OPTION (struct showres_args),
    {0},
};
#undef AT

static int showres_run (struct cli_context *ctx, int argc, char **argv)
{
    struct showres_args args = {0};
    struct cli_operands operands;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    Nui__Local__V1__ReservationsRequest request = NUI__LOCAL__V1__RESERVATIONS_REQUEST__INIT;
    int exit_code;
    if (!cli_options (ctx, showres_options, 0, &args, argc, argv, &operands, &exit_code))
        return exit_code;
    if (operands.count > 1)
        return cli_usage ("showres", "name one reservation at most");
    if (args.look.summary && (args.look.nodes || args.look.verbose))
        return cli_usage ("showres", "-s is sums alone: without -n and -v");
    struct reservations rsv = {.arena = arena_create (0)};
    if (operands.count)
        request.name = operands.item[0];
    if (args.partition)
        request.partition = (char *)args.partition;
    request.nodes = args.look.nodes;
    bool groups = args.grep && !args.look.nodes;
    args.look.noheader = (args.grep && !groups) || cli_noheader (ctx);
    int rc = reservations_ask (ctx, args.site, &request, &rsv, &err);
    if (rc == 0 && groups)
        showres_groups (&rsv);
    if (rc == 0 && *request.name && rsv.count == 0)
        rc = err_set (&err, ERR_NOT_FOUND, "%s has no reservation", request.name);
    if (rc < 0) {
        exit_code = cli_fail ("showres", &err);
    } else if (cli_format (ctx) == CLI_TABLE) {
        showres_text (&rsv, args.look, &out);
        exit_code = cli_output (&out);
    } else {
        struct table *t = reservations_table (&rsv, args.look.nodes);
        exit_code = table_print (t, ctx);
        table_destroy (t);
    }
    strbuf_free (&out);
    reservations_free (&rsv);
    return exit_code;
}

const struct cli_command showres_command = {
    .name = "showres",
    .group = CLI_CLUSTER,
    .summary = "reservations, those of jobs included",
    .run = showres_run,
    .help =
        "nui showres [-n [-g] | -g | -s] [-r] [-v] [-p PARTITION] [--site NAME] [JOB | RESERVATION]",
    .text =
        "What runs until its limit, what the schedule promises to waiting jobs, co-allocated parts,\n"
        "and what administrators (setres) and the configuration (SRCFG) reserved. Of jobs' plain users\n"
        "see their own.",
    .options = showres_options,
    .example = "nui showres -n",
};

/* --- showstate ---------------------------------------------------------------------------- */

enum { NODES_PER_FRAME = 32, LETTERS = 62 };

static char letter_of (uint32_t at)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    return at < LETTERS ? letters[at] : '&';
}

/* The last of the active jobs that is on the node; UINT32_MAX: none. */
static uint32_t job_on (const struct queue *q, const Nui__Local__V1__NodeInfo *n)
{
    for (uint32_t i = q->count; i-- > 0;)
        for (size_t k = 0; k < n->n_jobs; k++)
            if (strcmp (q->row[i].job_id, n->jobs[k]) == 0)
                return i;
    return UINT32_MAX;
}

static char node_mark (const struct queue *q, const Nui__Local__V1__NodeInfo *n)
{
    uint32_t job = n->n_jobs ? job_on (q, n) : UINT32_MAX;
    if (strcmp (n->state, "Down") == 0)
        return n->n_jobs ? '*' : '#';
    if (job != UINT32_MAX)
        return letter_of (job);
    if (strcmp (n->state, "Drained") == 0)
        return '!';
    return n->dedicated_procs ? '@' : ' ';
}

static void frame_text (const struct queue *q, const struct nodes *nodes, uint32_t from,
                        struct strbuf *out)
{
    uint32_t to = from + NODES_PER_FRAME < nodes->count ? from + NODES_PER_FRAME : nodes->count;
    strbuf_printf (out, "Frame %7u: ", from / NODES_PER_FRAME + 1);
    for (uint32_t i = from; i < to; i++)
        strbuf_printf (out, "[%c]", node_mark (q, nodes->item[i]));
    strbuf_printf (out, "  %s", nodes->item[from]->name);
    if (to - from > 1)
        strbuf_printf (out, " to %s", nodes->item[to - 1]->name);
    strbuf_putc (out, '\n');
}

void showstate_text (const struct queue *q, const struct nodes *nodes, struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    uint32_t wide = nodes->count < NODES_PER_FRAME ? nodes->count : NODES_PER_FRAME, busy = 0;
    strbuf_printf (out,
                   "cluster state summary for %s\n\n\n"
                   "    JobName            S      User    Group Procs   Remaining"
                   "            StartTime\n"
                   "    ------------------ - --------- -------- ----- -----------"
                   "  -------------------\n\n",
                   moment_text (q->totals.now_us, a));
    for (uint32_t i = 0; i < q->count; i++) {
        const Nui__Local__V1__QueueJob *r = &q->row[i];
        int64_t left = (r->end_us ? r->end_us : q->totals.now_us) - q->totals.now_us;
        strbuf_printf (out, "(%c) %-18s %c %9s %8s %5u %11s  %19s\n", letter_of (i), r->job_id,
                       r->state[0], r->user, r->group, r->procs, span_text (left, a),
                       moment_text (r->start_us, b));
    }
    for (uint32_t i = 0; i < nodes->count; i++)
        busy += nodes->item[i]->n_jobs > 0;
    strbuf_printf (out, "\nusage summary:  %u active jobs  %u active nodes\n\n               ",
                   q->count, busy);
    for (uint32_t i = 1; i <= wide; i++)
        strbuf_printf (out, "[%u]", i / 10);
    strbuf_puts (out, "\n               ");
    for (uint32_t i = 1; i <= wide; i++)
        strbuf_printf (out, "[%u]", i % 10);
    strbuf_puts (out, "\n\n");
    for (uint32_t i = 0; i < nodes->count; i += NODES_PER_FRAME)
        frame_text (q, nodes, i, out);
    strbuf_puts (out, "\nKey:  [*]:Down w/Job [#]:Down [ ]:Idle [@] Busy w/No Job [!] Drained\n");
}

static const struct cli_option showstate_options[] = {
    SITE_OPTION (struct node_args),
    {0},
};

static int showstate_run (struct cli_context *ctx, int argc, char **argv)
{
    struct node_args args = {0};
    struct cli_operands operands;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int exit_code;
    if (!cli_options (ctx, showstate_options, 0, &args, argc, argv, &operands, &exit_code))
        return exit_code;
    if (operands.count > 0)
        return cli_usage ("showstate", "'%s' is too much", operands.item[0]);
    struct nodes nodes = {.arena = arena_create (0)};
    struct queue q = {.arena = arena_create (0), .totals = {.site = (char *)""}};
    Nui__Local__V1__QueueRequest request = NUI__LOCAL__V1__QUEUE_REQUEST__INIT;
    request.section = NUI__LOCAL__V1__QUEUE_SECTION__SECTION_ACTIVE;
    int rc = nodes_fetch (ctx, args.site, NULL, &nodes, &err);
    if (rc == 0)
        rc = queue_fetch (ctx, args.site, &request, &q, &err);
    if (rc < 0) {
        exit_code = cli_fail ("showstate", &err);
    } else if (cli_format (ctx) == CLI_TABLE) {
        showstate_text (&q, &nodes, &out);
        exit_code = cli_output (&out);
    } else {
        struct table *t = nodes_table (&nodes);
        exit_code = table_print (t, ctx);
        table_destroy (t);
    }
    strbuf_free (&out);
    nodes_free (&nodes);
    arena_destroy (q.arena);
    return exit_code;
}

const struct cli_command showstate_command = {
    .name = "showstate",
    .group = CLI_CLUSTER,
    .summary = "the nodes as a map of letters, one letter a job",
    .run = showstate_run,
    .help = "nui showstate [--site NAME]",
    .text = "For administrators (ADMIN3). --json and --csv give one row for each node.",
    .options = showstate_options,
    .example = "nui showstate",
};
