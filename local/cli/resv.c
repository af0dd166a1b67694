/* setres, releaseres, diagnose -r: reservations of administrators. */
#include <string.h>

#include "local/cli/local_cli.h"

/* --- setres --------------------------------------------------------------------------------- */

struct setres_args {
    const char *user, *group, *account, *class, *qos, *jobattr, *jobduration, *jobprocs;
    const char *name, *features, *resources, *flags, *owner, *partition, *charge, *site;
    const char *start, *end;
    duration_us duration;
    uint64_t tpn;
};

#define AT(field) offsetof (struct setres_args, field)
static const struct cli_option setres_options[] = {
    {"user", 'u', CLI_OPT_STRING, "LIST",
     "who may use it: bob:john, steve= (neutral), bill- (only if nothing else is free), !eve (never), "
     "*jim (always required)",
     AT (user)},
    {"account", 'a', CLI_OPT_STRING, "LIST", "likewise, accounts", AT (account)},
    {"charge", 'c', CLI_OPT_STRING, "ACCOUNT[:USER]",
     "who pays for what it keeps idle (default: its owner, or you)", AT (charge)},
    {"class", 0, CLI_OPT_STRING, "LIST", "likewise, classes", AT (class)},
    {"duration", 'd', CLI_OPT_DURATION, "TIME", "or its length: [[D:]HH:]MM:SS", AT (duration)},
    {"end", 'e', CLI_OPT_STRING, "TIME", "its end", AT (end)},
    {"features", 'f', CLI_OPT_STRING, "LIST", "tasks on nodes with these", AT (features)},
    {"group", 'g', CLI_OPT_STRING, "LIST", "likewise, groups", AT (group)},
    {"job-attribute", 0, CLI_OPT_STRING, "LIST",
     "GRID, COALLOCATED, PREEMPTEE, PREEMPTOR, INTERACTIVE, RESTARTABLE", AT (jobattr)},
    {"job-duration", 0, CLI_OPT_STRING, "TIME",
     "jobs of at most so long (<, <=, >, >=, == before it)", AT (jobduration)},
    {"job-procs", 0, CLI_OPT_STRING, "N", "jobs of at most so many processors", AT (jobprocs)},
    {"name", 'n', CLI_OPT_STRING, "NAME", "its name begins so (default: whom it is for)",
     AT (name)},
    {"owner", 'o', CLI_OPT_STRING, "KIND:NAME", "whose it is: USER:bob", AT (owner)},
    {"partition", 'p', CLI_OPT_STRING, "NAME", "nodes of this partition", AT (partition)},
    {"qos", 'q', CLI_OPT_STRING, "LIST", "likewise, QoS", AT (qos)},
    {"resources", 'r', CLI_OPT_STRING, "LIST",
     "of a task: PROCS:1,MEM:512; PROCS:-1 is a whole node", AT (resources)},
    {"start", 's', CLI_OPT_STRING, "TIME", "14:30, 17:00_04/14, +2:00:00 (default: now)",
     AT (start)},
    {"tpn", 0, CLI_OPT_COUNT, "N", "tasks per node", AT (tpn), 1, 1 << 20},
    {"flags", 'x', CLI_OPT_STRING, "LIST",
     "SINGLEUSE, BYNAME, META, PREEMPTEE, TIMEFLEX, SPACEFLEX, DEDICATEDNODE, DEDICATEDRESOURCE, FORCE, "
     "OWNERPREEMPT, SHARED",
     AT (flags)},
    SITE_OPTION (struct setres_args),
    {0},
};
#undef AT

void setres_text (const Nui__Local__V1__SetResReply *r, struct strbuf *out)
{
    strbuf_printf (
        out, "reservation created\n\n\nreservation '%s' created on %zu node%s (%u task%s)\n",
        r->name, r->n_nodes, r->n_nodes == 1 ? "" : "s", r->tasks, r->tasks == 1 ? "" : "s");
    for (size_t i = 0; i < r->n_nodes; i++)
        strbuf_printf (out, "%s:%u\n", r->nodes[i]->node, r->nodes[i]->tasks);
    strbuf_puts (out, "\n\n");
}

static const struct table_column setres_columns[] = {
    {"reservation", "ReservationID", TABLE_TEXT, 0},
    {"start_time", "Start", TABLE_TIME, 0},
    {"end_time", "End", TABLE_TIME, 0},
    {"node", "NodeName", TABLE_TEXT, 0},
    {"tasks", "Task", TABLE_INT, 0},
};

static int setres_print (struct cli_context *ctx, const Nui__Local__V1__SetResReply *r)
{
    struct strbuf out = STRBUF_INIT;
    int rc;
    if (cli_format (ctx) == CLI_TABLE) {
        setres_text (r, &out);
        rc = cli_output (&out);
        strbuf_free (&out);
        return rc;
    }
    struct table *t = table_create (setres_columns, 5);
    for (size_t i = 0; i < r->n_nodes; i++) {
        table_text (t, r->name);
        table_time (t, r->start_us);
        if (r->end_us)
            table_time (t, r->end_us);
        else
            table_null (t);
        table_text (t, r->nodes[i]->node);
        table_int (t, r->nodes[i]->tasks);
        table_end_row (t);
    }
    rc = table_print (t, ctx);
    table_destroy (t);
    return rc;
}

static int setres_run (struct cli_context *ctx, int argc, char **argv)
{
    struct setres_args args = {0};
    struct cli_operands operands;
    struct err err = {0};
    Nui__Local__V1__SetResRequest request = NUI__LOCAL__V1__SET_RES_REQUEST__INIT;
    Nui__Local__V1__SetResReply *reply = NULL;
    int exit_code;
    if (!cli_options (ctx, setres_options, 0, &args, argc, argv, &operands, &exit_code))
        return exit_code;
    if (operands.count != 1)
        return cli_usage ("setres", "say which nodes: ALL, a host list, TASKS==n or TASKS>=n");
    if (args.end && args.duration)
        return cli_usage ("setres", "say an end or a duration, not both");
    const struct {
        const char *value;
        char **field;
    } text[] = {
        {args.user, &request.users},
        {args.group, &request.groups},
        {args.account, &request.accounts},
        {args.class, &request.classes},
        {args.qos, &request.qos},
        {args.jobattr, &request.job_attributes},
        {args.jobduration, &request.job_duration},
        {args.jobprocs, &request.job_procs},
        {args.name, &request.name},
        {args.features, &request.features},
        {args.resources, &request.resources},
        {args.flags, &request.flags},
        {args.owner, &request.owner},
        {args.partition, &request.partition},
        {args.charge, &request.charge},
    };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        if (text[i].value)
            *text[i].field = (char *)text[i].value;
    request.expression = operands.item[0];
    if ((args.start && site_time (ctx, args.site, args.start, &request.start_us, &err) != 0) ||
        (args.end && site_time (ctx, args.site, args.end, &request.end_us, &err) != 0))
        return cli_usage ("setres", "%s", err.text);
    if (request.end_us == TIME_US_MAX)
        request.end_us = 0;
    request.duration_us = args.duration == TIME_US_MAX ? 0 : args.duration;
    request.tasks_per_node = (uint32_t)args.tpn;
    if (site_admin (ctx, args.site, "SetRes", &request, false, &reply, &err) < 0)
        return cli_fail ("setres", &err);
    exit_code = setres_print (ctx, reply);
    nui__local__v1__set_res_reply__free_unpacked (reply, NULL);
    return exit_code;
}

const struct cli_command setres_command = {
    .name = "setres",
    .group = CLI_CLUSTER,
    .summary = "reserve nodes or tasks for some, for a time",
    .run = setres_run,
    .help = "nui setres [options] ALL | HOSTS | TASKS==N | TASKS>=N",
    .text =
        "HOSTS is a list like node[001-128] or node[AB],gpu7, or a regular expression; named hosts are\n"
        "reserved whatever runs there, tasks where there is room. What is promised to co-allocated jobs\n"
        "is never taken. Without an end the reservation stays until releaseres. An empty access list\n"
        "keeps everybody out. For ADMIN1 and ADMIN2.",
    .options = setres_options,
    .example = "nui setres -s 14:30 -d 4:00:00 'node[AB]'\n"
               "nui setres -u john:sam -f fast -s 17:00_04/14 TASKS==20",
};

/* --- releaseres ------------------------------------------------------------------------------- */

struct releaseres_args {
    const char *site;
};

static const struct cli_option releaseres_options[] = {
    SITE_OPTION (struct releaseres_args),
    {0},
};

static const struct table_column release_columns[] = {
    {"reservation", "ReservationID", TABLE_TEXT, 0},
    {"released", "Released", TABLE_BOOL, 0},
};

static int release_one (struct cli_context *ctx, const char *site, char *name, struct table *t)
{
    Nui__Local__V1__ReleaseResRequest request = NUI__LOCAL__V1__RELEASE_RES_REQUEST__INIT;
    Nui__Local__V1__ReleaseResReply *reply = NULL;
    struct err err = {0};
    request.name = name;
    if (site_admin (ctx, site, "ReleaseRes", &request, false, &reply, &err) < 0)
        return cli_fail ("releaseres", &err);
    table_text (t, reply->name);
    table_bool (t, true);
    table_end_row (t);
    if (cli_format (ctx) == CLI_TABLE)
        printf ("\n\nreleased %s reservation '%s'\n\n", reply->type, reply->name);
    nui__local__v1__release_res_reply__free_unpacked (reply, NULL);
    return CLI_OK;
}

static int releaseres_run (struct cli_context *ctx, int argc, char **argv)
{
    struct releaseres_args args = {0};
    struct cli_operands ops;
    int exit_code, all = CLI_OK;
    if (!cli_options (ctx, releaseres_options, 0, &args, argc, argv, &ops, &exit_code))
        return exit_code;
    if (ops.count < 1)
        return cli_usage ("releaseres", "name at least one reservation");
    struct table *t = table_create (release_columns, 2);
    for (int i = 0; i < ops.count; i++)
        all = worse (all, release_one (ctx, args.site, ops.item[i], t));
    if (cli_format (ctx) != CLI_TABLE)
        all = worse (all, table_print (t, ctx));
    table_destroy (t);
    return all;
}

const struct cli_command releaseres_command = {
    .name = "releaseres",
    .group = CLI_CLUSTER,
    .summary = "end reservations",
    .run = releaseres_run,
    .help = "nui releaseres [--site NAME] RESERVATION...",
    .text =
        "Jobs that run inside go on. Standing reservations are the configuration's (SRCFG). For ADMIN1\n"
        "and ADMIN2.",
    .options = releaseres_options,
    .example = "nui releaseres john.0",
};

/* --- diagnose -r ------------------------------------------------------------------------------ */

static void list_line (struct strbuf *out, const char *what, char **item, size_t count)
{
    if (count == 0)
        return;
    strbuf_printf (out, "    %s: ", what);
    for (size_t i = 0; i < count; i++)
        strbuf_printf (out, "%s%s", i ? " " : "", item[i]);
    strbuf_putc (out, '\n');
}

static void details (const struct reservations *list, const Nui__Local__V1__Reservation *r,
                     struct strbuf *out)
{
    list_line (out, "Flags", r->flags, r->n_flags);
    list_line (out, "ACL", r->acl, r->n_acl);
    if (strcmp (r->type, "Job") == 0)
        return;
    if (r->n_acl == 0 && !*r->owner)
        strbuf_puts (out, "    ACL: (empty: nobody)\n");
    if (*r->owner)
        strbuf_printf (out, "    Owner: %s\n", r->owner);
    strbuf_printf (out, "    Resources: %s%s%s%s\n", r->resources,
                   *r->features ? "  Features: " : "", r->features,
                   *r->standing ? "  (standing)" : "");
    if (*r->charge)
        strbuf_printf (out, "    Charge: %s\n", r->charge);
    if (*r->used_by)
        strbuf_printf (out, "    UsedBy: %s\n", r->used_by);
    if (r->start_us <= list->now_us && r->procs)
        strbuf_printf (out, "    Active: %u of %u procs (%.2f%%)\n", r->active_procs, r->procs,
                       100.0 * r->active_procs / r->procs);
    if (r->tasks_up < r->tasks_wanted)
        strbuf_printf (out,
                       "WARNING:  reservation '%s' wants %u tasks, has %u on nodes that are up\n",
                       r->name, r->tasks_wanted, r->tasks_up);
}

void diagnose_reservations_text (const struct reservations *list, bool noheader, struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX], c[QUANTITY_TEXT_MAX];
    uint32_t procs = 0;
    if (!noheader)
        strbuf_puts (out,
                     "Diagnosing Reservations\n"
                     "ResID                      Type Par   StartTime     EndTime     Duration "
                     "Node Task Proc\n"
                     "-----                      ---- ---   ---------     -------     -------- "
                     "---- ---- ----\n");
    for (uint32_t i = 0; i < list->count; i++) {
        const Nui__Local__V1__Reservation *r = list->item[i];
        uint32_t tasks = 0;
        for (size_t n = 0; n < r->n_nodes; n++)
            tasks += r->nodes[n]->tasks;
        strbuf_printf (out, "%-26s %4s %3s %11s %11s %12s %4u %4u %4u\n", r->name, r->type, "DEF",
                       span_text (r->start_us - list->now_us, a),
                       r->end_us ? span_text (r->end_us - list->now_us, b) : "INFINITY",
                       r->end_us ? span_text (r->end_us - r->start_us, c) : "INFINITY",
                       r->node_count, tasks, r->procs);
        details (list, r, out);
        if (r->start_us <= list->now_us)
            procs += r->procs;
    }
    if (!noheader)
        strbuf_printf (out, "\nActive Reserved Processors: %u\n", procs);
}

int diagnose_reservations (struct cli_context *ctx, const char *site, const char *name)
{
    struct reservations list = {.arena = arena_create (0)};
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int exit_code;
    if (reservations_fetch (ctx, site, name, NULL, true, &list, &err) < 0) {
        exit_code = cli_fail ("diagnose", &err);
    } else if (cli_format (ctx) == CLI_TABLE) {
        diagnose_reservations_text (&list, cli_noheader (ctx), &out);
        exit_code = cli_output (&out);
    } else {
        struct table *t = reservations_table (&list, false);
        exit_code = table_print (t, ctx);
        table_destroy (t);
    }
    strbuf_free (&out);
    reservations_free (&list);
    return exit_code;
}
