/* setres, releaseres, diagnose -r: reservations of administrators. */
#include <string.h>

#include "local/cli/local_cli.h"
#include "proto/cli/message.h"

/* --- setres --------------------------------------------------------------------------------- */

int take_moment (struct cli_context *ctx, const struct cli_said *said,
                 const struct cli_option *option, ProtobufCMessage *request, struct err *err)
{
    time_us at;
    int rc = site_time (ctx, said_text (said, "site"), said_value (said, option)->text, &at, err);
    if (rc == 0 && at != TIME_US_MAX)
        message_set_integer (request, message_field (request->descriptor, option->name), at);
    return rc;
}

static int take_length (struct cli_context *ctx, const struct cli_said *said,
                        const struct cli_option *option, ProtobufCMessage *request, struct err *err)
{
    (void)ctx, (void)err;
    if (said_value (said, option)->number != TIME_US_MAX)
        ((Nui__Local__V1__SetResRequest *)request)->duration_us = said_value (said, option)->number;
    return 0;
}

/* Maui has a letter for classes and one for queues, which are the same. */
static int take_classes (struct cli_context *ctx, const struct cli_said *said,
                         const struct cli_option *option, ProtobufCMessage *request,
                         struct err *err)
{
    Nui__Local__V1__SetResRequest *r = (Nui__Local__V1__SetResRequest *)request;
    (void)ctx, (void)err;
    r->classes = arena_printf (said->arena, "%s%s%s", r->classes, *r->classes ? "," : "",
                               said_value (said, option)->text);
    return 0;
}

static const struct cli_option setres_options[] = {
    {"user", 'u', CLI_OPT_STRING, "LIST",
     "who may use it: bob:john, steve= (neutral), bill- (only if nothing else is free), !eve (never), "
     "*jim (always required)",
     .field = "users"},
    {"group", 'g', CLI_OPT_STRING, "LIST", "likewise, groups", .field = "groups"},
    {"account", 'a', CLI_OPT_STRING, "LIST", "likewise, accounts", .field = "accounts"},
    {"class", 'c', CLI_OPT_STRING, "LIST", "likewise, classes", .take = take_classes},
    {"queue", 'q', CLI_OPT_STRING, "LIST", "the same as --class", .take = take_classes},
    {"qos", 'Q', CLI_OPT_STRING, "LIST", "likewise, QoS"},
    {"charge", 'A', CLI_OPT_STRING, "ACCOUNT[:USER]",
     "who pays for what it keeps idle (default: its owner, or you)"},
    {"start", 's', CLI_OPT_STRING, "TIME", "14:30, 17:00_04/14, +2:00:00 (default: now)",
     .take = take_moment},
    {"end", 'e', CLI_OPT_STRING, "TIME", "its end", .take = take_moment},
    {"duration", 'd', CLI_OPT_DURATION, "TIME", "or its length: [[D:]HH:]MM:SS",
     .take = take_length},
    {"name", 'n', CLI_OPT_STRING, "NAME", "its name begins so (default: whom it is for)"},
    {"features", 'f', CLI_OPT_STRING, "LIST", "tasks on nodes with these"},
    {"resources", 'r', CLI_OPT_STRING, "LIST",
     "of a task: PROCS:1,MEM:512; PROCS:-1 is a whole node"},
    {"tpn", 0, CLI_OPT_COUNT, "N", "tasks per node", .field = "tasks_per_node", .min = 1,
     .max = 1 << 20},
    {"partition", 'p', CLI_OPT_STRING, "NAME", "nodes of this partition"},
    {"owner", 'o', CLI_OPT_STRING, "KIND:NAME", "whose it is: USER:bob"},
    {"job-attribute", 0, CLI_OPT_STRING, "LIST",
     "GRID, COALLOCATED, PREEMPTEE, PREEMPTOR, INTERACTIVE, RESTARTABLE",
     .field = "job_attributes"},
    {"job-duration", 0, CLI_OPT_STRING, "TIME",
     "jobs of at most so long (<, <=, >, >=, == before it)", .field = "job_duration"},
    {"job-procs", 0, CLI_OPT_STRING, "N", "jobs of at most so many processors",
     .field = "job_procs"},
    {"flags", 'x', CLI_OPT_STRING, "LIST",
     "SINGLEUSE, BYNAME, META, PREEMPTEE, TIMEFLEX, SPACEFLEX, DEDICATEDNODE, DEDICATEDRESOURCE, FORCE, "
     "OWNERPREEMPT, SHARED"},
    SITE_SAID,
    {0},
};

static void setres_text (const Nui__Local__V1__SetResReply *r, struct strbuf *out)
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

int setres_send (struct cli_context *ctx, const char *command, const struct cli_said *said)
{
    int code = CLI_OK;
    if (said_given (said, "end") && said_given (said, "duration"))
        return cli_usage (command, "say an end or a duration, not both");
    ProtobufCMessage *request = cli_request (ctx, said, &code);
    ProtobufCMessage *reply = request ? cli_answer (ctx, said, request, &code) : NULL;
    if (!reply)
        return code;
    code = setres_print (ctx, (const Nui__Local__V1__SetResReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return code;
}

static int setres_run (struct cli_context *ctx, const struct cli_said *said)
{
    return setres_send (ctx, "setres", said);
}

static const struct cli_form setres_forms[] = {
    {"EXPRESSION [-u LIST] [-g LIST] [-a LIST] [-c LIST] [-q LIST] [-Q LIST] [-A ACCOUNT] "
     "[-s TIME] [-e TIME] [-d TIME] [-n NAME] [-f LIST] [-r LIST] [--tpn N] [-p NAME] [-o KIND:NAME] "
     "[--job-attribute LIST] [--job-duration TIME] [--job-procs N] [-x LIST] [--site NAME]",
     setres_run, .method = "SetRes"},
    {0}};

const struct cli_command setres_command = {
    .name = "setres",
    .group = CLI_CLUSTER,
    .summary = "reserve nodes or tasks for some, for a time",
    .forms = setres_forms,
    .service = &site_service,
    .text =
        "EXPRESSION is ALL, HOSTS, TASKS==N or TASKS>=N. HOSTS is a list like node[001-128] or\n"
        "node[AB],gpu7, or a regular expression; named hosts are reserved whatever runs there, tasks\n"
        "where there is room. What is promised to co-allocated jobs is never taken. Without an end the\n"
        "reservation stays until releaseres. An empty access list keeps everybody out. For ADMIN1 and\n"
        "ADMIN2.",
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

const struct table_column release_columns[] = {
    {"reservation", "ReservationID", TABLE_TEXT, 0},
    {"released", "Released", TABLE_BOOL, 0},
};

int release_one (struct cli_context *ctx, const char *command, const char *site, char *name,
                 struct table *t)
{
    Nui__Local__V1__ReleaseResRequest request = NUI__LOCAL__V1__RELEASE_RES_REQUEST__INIT;
    Nui__Local__V1__ReleaseResReply *reply = NULL;
    struct err err = {0};
    request.name = name;
    if (site_admin (ctx, site, "ReleaseRes", &request, false, &reply, &err) < 0)
        return cli_fail (command, &err);
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
        all = worse (all, release_one (ctx, "releaseres", args.site, ops.item[i], t));
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

/* "RES==maint.0", which its name is without the last number, of administrators' ones "RES==keep.0". */
static int own_name_length (const Nui__Local__V1__Reservation *r)
{
    const char *dot = *r->standing ? strrchr (r->name, '.') : NULL;
    return dot ? (int)(dot - r->name) : (int)strlen (r->name);
}

/* Entries of one kind that follow one another stand together: "CLASS==a+:==b+". */
static void acl_text (const Nui__Local__V1__Reservation *r, bool of_job, struct strbuf *out)
{
    size_t kind = 0; /* length of the last one's */
    strbuf_printf (out, "    ACL: %s==%.*s= ", of_job ? "JOB" : "RES", own_name_length (r),
                   r->name);
    for (size_t i = 0; i < r->n_acl; i++) {
        const char *at = strstr (r->acl[i], "==");
        bool same = at && kind && (size_t)(at - r->acl[i]) == kind &&
                    strncmp (r->acl[i], r->acl[i - 1], kind) == 0;
        kind = at ? (size_t)(at - r->acl[i]) : 0;
        strbuf_printf (out, "%s%s", i == 0 ? "" : same ? ":" : " ", same ? at : r->acl[i]);
    }
    if (r->n_acl)
        strbuf_putc (out, ' ');
    if (!of_job && r->n_acl == 0 && !*r->owner)
        strbuf_puts (out, "(empty: nobody)");
    strbuf_putc (out, '\n');
}

/* What of it other reservations' access lists can ask for. */
static void credentials_line (const Nui__Local__V1__Reservation *r, struct strbuf *out)
{
    char limit[QUANTITY_TEXT_MAX];
    const Nui__Local__V1__QueueJob *j = r->job;
    strbuf_printf (out, "    CL:  %s==%.*s ", strcmp (r->type, "Job") == 0 ? "JOB" : "RES",
                   own_name_length (r), r->name);
    if (j) {
        const char *const name[] = {
            "USER",     j->user, "GROUP",   j->group, "ACCT",
            j->account, "CLASS", j->class_, "QOS",    *j->qos ? j->qos : "DEFAULT"};
        for (size_t i = 0; i < sizeof name / sizeof *name; i += 2)
            if (*name[i + 1])
                strbuf_printf (out, "%s==%s ", name[i], name[i + 1]);
        strbuf_printf (out, "DURATION==%s PROC==%u ", span_text (j->walltime_us, limit), j->procs);
    }
    strbuf_putc (out, '\n');
}

/* "PROCS:1,MEM:512" as Maui has it. */
static void task_line (const Nui__Local__V1__Reservation *r, struct strbuf *out)
{
    const char *at = *r->task ? r->task : "PROCS:-1";
    strbuf_puts (out, "    Task Resources:");
    for (size_t i = 0; *at; i++) {
        size_t len = strcspn (at, ",;");
        int name = (int)strcspn (at, ":"), value = (int)len - name - 1;
        if (strncmp (at, "PROCS:-1", len) == 0)
            strbuf_puts (out, " PROCS: [ALL]");
        else
            strbuf_printf (out, "%s%.*s: %.*s%s", i ? "  " : " ", name, at, value, at + name + 1,
                           strncmp (at, "PROCS", 5) == 0 ? "" : "M");
        at += len + (at[len] != '\0');
    }
    strbuf_putc (out, '\n');
}

/* Hosts stand where they were named. */
static void attributes_line (const Nui__Local__V1__Reservation *r, struct strbuf *out)
{
    bool named = strncmp (r->resources, "TASKS", 5) != 0;
    strbuf_puts (out, "    Attributes (HostList='");
    for (size_t i = 0; i < r->n_nodes && named; i++)
        strbuf_printf (out, "%s%s", i ? "," : "", r->nodes[i]->node);
    strbuf_putc (out, '\'');
    if (r->asked && r->asked->priority)
        strbuf_printf (out, "   Priority=%lld", (long long)r->asked->priority);
    if (*r->features)
        strbuf_printf (out, "   Features=%s", r->features);
    strbuf_puts (out, ")\n");
}

static void flags_line (const Nui__Local__V1__Reservation *r, struct strbuf *out)
{
    bool preemptee = r->job && r->job->preemptible;
    if (r->n_flags == 0 && !preemptee)
        return;
    strbuf_printf (out, "    Flags:%s", preemptee ? " PREEMPTEE" : "");
    for (size_t i = 0; i < r->n_flags; i++)
        strbuf_printf (out, " %s", r->flags[i]);
    strbuf_putc (out, '\n');
}

/* Of those that are no job's. */
static void rest_text (const struct reservations *list, const Nui__Local__V1__Reservation *r,
                       struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    const Nui__Local__V1__StandingRow *s = r->asked;
    bool active = r->start_us <= list->now_us;
    task_line (r, out);
    attributes_line (r, out);
    if (*r->owner)
        strbuf_printf (out, "    Owner: %s\n", r->owner);
    if (*r->charge)
        strbuf_printf (out, "    Charge: %s\n", r->charge);
    if (*r->used_by)
        strbuf_printf (out, "    UsedBy: %s\n", r->used_by);
    if (active && r->procs)
        strbuf_printf (out, "    Active: %u of %u procs (%.2f%%)\n", r->active_procs, r->procs,
                       100.0 * r->active_procs / r->procs);
    if (s) /* what stands for ever is said to begin and end with the day */
        strbuf_printf (out,
                       "    SRAttributes (TaskCount: %u  StartTime: %s  EndTime: %s  Days: %s)\n",
                       s->tasks, span_text (s->start_us, a),
                       span_text (s->end_us ? s->end_us : 86400 * US_PER_S, b), s->days);
    if (active && r->active_procs > 0)
        strbuf_printf (out, "WARNING:  reservation '%s' has %u proc(s) allocated but %u detected\n",
                       r->name, r->procs,
                       r->procs > r->active_procs ? r->procs - r->active_procs : 0);
    if (r->tasks_up < r->tasks_wanted)
        strbuf_printf (out,
                       "WARNING:  reservation '%s' wants %u tasks, has %u on nodes that are up\n",
                       r->name, r->tasks_wanted, r->tasks_up);
}

static void details (const struct reservations *list, const Nui__Local__V1__Reservation *r,
                     struct strbuf *out)
{
    bool of_job = strcmp (r->type, "Job") == 0;
    flags_line (r, out);
    acl_text (r, of_job, out);
    credentials_line (r, out);
    if (!of_job)
        rest_text (list, r, out);
    else if (r->job && r->start_us > list->now_us)
        strbuf_printf (out, "    Attributes (Priority=%lld)\n", (long long)r->job->priority);
}

void diagnose_reservations_text (const struct reservations *list, bool noheader, struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX], c[QUANTITY_TEXT_MAX], par[4];
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
        strbuf_printf (out, "%-26s %4s %3s %11s %11s %12s %4u %4u %4u\n", r->name, r->type,
                       partition_short (*r->partition ? r->partition : "DEFAULT", par),
                       span_text (r->start_us - list->now_us, a),
                       r->end_us ? span_text (r->end_us - list->now_us, b) : "INFINITY",
                       r->end_us ? span_text (r->end_us - r->start_us, c) : "INFINITY",
                       r->node_count, tasks, r->procs);
        details (list, r, out);
        if (r->start_us <= list->now_us) /* those of jobs inside others once */
            procs += r->procs - (r->active_procs < r->procs ? r->active_procs : r->procs);
    }
    if (!noheader)
        strbuf_printf (out, "\nActive Reserved Processors: %u\n\n", procs);
}

int diagnose_reservations (struct cli_context *ctx, const char *site, const char *name)
{
    struct reservations list = {.arena = arena_create (0)};
    struct strbuf out = STRBUF_INIT;
    Nui__Local__V1__ReservationsRequest request = NUI__LOCAL__V1__RESERVATIONS_REQUEST__INIT;
    struct err err = {0};
    int exit_code;
    if (name)
        request.name = (char *)(uintptr_t)name;
    request.nodes = request.details = true;
    if (reservations_ask (ctx, site, &request, &list, &err) < 0) {
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
