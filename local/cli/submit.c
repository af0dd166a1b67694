/* msub: a job for one cluster alone, without a grid. */
#include <stdlib.h>
#include <string.h>

#include "local/cli/local_cli.h"
#include "proto/base/clock.h"
#include "proto/cli/costbound.h"
#include "proto/cli/inputs.h"
#include "proto/cli/joboptions.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/nui/v1/local.pb-c.h"
#include "proto/rpc/envelope.h"

static const struct cli_option msub_options[] = {
    JOB_TEXT ("account", 'A', JOB_ACCOUNT, "NAME",
              "account that pays (default: ACCOUNT of nui.cfg)"),
    JOB_TEXT ("class", 'q', JOB_CLASS, "NAME", "class (queue)"),
    JOB_TEXT ("qos", 0, JOB_QOS, "NAME", "quality of service"),
    JOB_TEXT ("name", 'N', JOB_NAME, "NAME", "a name for lists"),
    JOB_TEXT ("output", 'o', JOB_OUTPUT, "FILE", "file of standard output in the job's directory"),
    JOB_TEXT ("error", 'e', JOB_ERROR, "FILE", "the same for standard error"),
    JOB_TEXT ("chdir", 0, JOB_CHDIR, "DIR",
              "start in this directory of yours at the site: /PATH, ~/PATH"),
    JOB_TEXT ("signal", 0, JOB_SIGNAL, "[B:]SIG[@S]",
              "S seconds (60) before its limit: to the tasks of nui run; B: to the script"),
    JOB_TEXT ("after", 'a', JOB_AFTER, "TIME", "not before: HH:MM, +DURATION, 2026-11-21T14:30"),
    JOB_TEXT ("tasks", 0, JOB_TASKS, "N", "tasks"),
    JOB_TEXT ("nodes", 0, JOB_NODES, "N", "on so many nodes"),
    JOB_TEXT ("tpn", 0, JOB_TPN, "N", "tasks on each node"),
    JOB_TEXT ("procs-per-task", 0, JOB_PROCS_PER_TASK, "N", "processors of a task"),
    JOB_TEXT ("mem", 0, JOB_MEM, "SIZE", "memory of a task"),
    JOB_TEXT ("mem-per-node", 0, JOB_MEM_PER_NODE, "SIZE", "memory of all tasks on a node"),
    JOB_TEXT ("gpus", 0, JOB_GPUS, "[TYPE:]N", "GPUs of the whole job, shared out to its tasks"),
    JOB_TEXT ("swap", 0, JOB_SWAP, "SIZE", "swap of a task"),
    JOB_TEXT ("disk", 0, JOB_DISK, "SIZE", "local disk of a task"),
    JOB_TEXT ("like", 0, JOB_LIKE, "A,B",
              "rather nodes with these, where the site weighs it (PREF)"),
    JOB_TEXT ("time", 't', JOB_TIME, "DURATION",
              "wallclock limit (default: the class's or the site's)"),
    JOB_TEXT ("features", 0, JOB_FEATURES, "A,B", "only on nodes with all of these"),
    JOB_TEXT ("gres", 0, JOB_GRES, "A:N,B", "generic resources of the node, per task"),
    JOB_TEXT ("licence", 0, JOB_LICENCE, "A:N,B", "floating licences, for the whole job"),
    JOB_TEXT ("partition", 0, JOB_PARTITION, "A,B", "only these partitions"),
    JOB_TEXT ("nodeset", 0, JOB_NODESET, "SET",
              "nodes that are alike: ONEOF:FEATURE:a:b, ONEOF:PROCSPEED, NONE"),
    JOB_TEXT ("hosts", 'w', JOB_HOSTS, "LIST", "only these nodes: node[1-4],m1"),
    JOB_TEXT ("exclude", 'x', JOB_EXCLUDE, "LIST", "not these nodes"),
    JOB_TEXT ("node-access", 0, JOB_NODE_ACCESS, "HOW",
              "SHARED, SINGLEUSER, SINGLEJOB or SINGLETASK"),
    JOB_TEXT ("procs-max", 0, JOB_PROCS_MAX, "N",
              "pay for at most so many processors where nodes are given whole"),
    JOB_TEXT ("reservation", 0, JOB_RESERVATION, "NAME",
              "only inside this reservation of the site"),
    {"req", 0, CLI_OPT_LIST, "KEY=VALUE,..",
     "more tasks of another kind beside these (may be repeated)",
     offsetof (struct job_options, reqs)},
    JOB_TEXT ("deadline", 0, JOB_DEADLINE, "TIME", "must have ended by then"),
    JOB_TEXT ("max-cost", 0, JOB_MAX_COST, "CREDITS",
              "signed as the most it may cost; else twice the price; none"),
    JOB_TEXT ("quote", 0, JOB_QUOTE, "QUOTE", "at the rates that nui quote --keep kept: quote.7"),
    JOB_TEXT (
        "depend", 0, JOB_DEPEND, "KIND:JOB,...",
        "wait for others: after, afterany, afterok, afternotok; before... makes the others wait"),
    JOB_TEXT ("flags", 0, JOB_FLAGS, "A,B",
              "PREEMPTEE (may be evicted), NORESTART (never run twice)"),
    JOB_TEXT ("array", 0, JOB_ARRAY, "1-10%3",
              "ten jobs, NUI_ARRAY_INDEX 1 to 10, three at one time"),
    {"resources", 'l', CLI_OPT_STRING, "LIST", "nodes=2:ppn=4,walltime=1:00:00,procs=8,pmem=512mb",
     offsetof (struct job_options, resources)},
    {"env", 'v', CLI_OPT_LIST, "NAME[=VALUE]", "pass a variable (may be repeated)",
     offsetof (struct job_options, env)},
    {"env-all", 'V', CLI_OPT_FLAG, NULL, "pass all variables but those of the session and the site",
     offsetof (struct job_options, env_all)},
    {"input", 0, CLI_OPT_LIST, "FILE|DIR",
     "a file, or all in a folder, that travels with the job, as arguments that name files do; "
     "none: not even those",
     offsetof (struct job_options, inputs)},
    {"stage-in", 0, CLI_OPT_LIST, "URL=PATH[,sha256=HEX][,bytes=N]",
     "a file that is there before it starts", offsetof (struct job_options, stage_in)},
    {"stage-out", 0, CLI_OPT_LIST, "PATH=URL[,always]",
     "taken there when it completed; always: or failed", offsetof (struct job_options, stage_out)},
    {"wrap", 0, CLI_OPT_STRING, "COMMAND", "in place of a script: a shell runs this",
     offsetof (struct job_options, wrap)},
    {"file", 0, CLI_OPT_STRING, "JOB.json", "the same as JSON",
     offsetof (struct job_options, file)},
    {"no-fallback", 0, CLI_OPT_FLAG, NULL,
     "not signed for the site's fallback account (AMCFG) as well",
     offsetof (struct job_options, no_fallback)},
    {"hold", 'h', CLI_OPT_FLAG, NULL, "with a user hold: releasehold -u lets it start",
     offsetof (struct job_options, hold)},
    SITE_OPTION (struct job_options),
    {0},
};

/* No metascheduler hands the job over, so what is signed is for this site only: the bank pays no other for it. */
static void site_name_in (Nui__Common__V1__Job *job, const char *name, struct arena *arena)
{
    for (size_t i = 0; i < job->n_components; i++) {
        job->components[i]->n_sites = 1;
        job->components[i]->sites = arena_array (arena, 1, sizeof *job->components[i]->sites);
        job->components[i]->sites[0] = arena_strdup (arena, name);
    }
}

/* The most that the bank would hold for it here, the dearest of its sizes. */
static int price_ask (struct cli_context *ctx, const Nui__Common__V1__Job *job, const char *site,
                      Nui__Common__V1__Envelope *envelope, struct arena *arena,
                      struct costbound_price *out, struct err *err)
{
    Nui__Bank__V1__QuoteRequest request = NUI__BANK__V1__QUOTE_REQUEST__INIT;
    ProtobufCMessage *message = NULL;
    struct rpcclient *bank = cli_bank (ctx, err);
    const Nui__Common__V1__Component *c = job->components[0];
    if (!bank)
        return err->code;
    request.envelope = envelope;
    request.n_items = 1 + c->n_shapes;
    request.items = arena_array (arena, request.n_items, sizeof *request.items);
    for (size_t i = 0; i < request.n_items; i++) {
        request.items[i] = arena_new (arena, Nui__Bank__V1__PriceItem);
        nui__bank__v1__price_item__init (request.items[i]);
        request.items[i]->site = arena_strdup (arena, site);
        request.items[i]->qos = c->qos;
        request.items[i]->class_ = c->class_;
        request.items[i]->shape = (uint32_t)i;
    }
    if (rpcclient_call (bank, &nui__bank__v1__bank__descriptor, "Quote", &request.base,
                        SITE_CALL_TIMEOUT_S * US_PER_S, true, &message, err) < 0)
        return err->code;
    const Nui__Bank__V1__QuoteReply *reply = (const Nui__Bank__V1__QuoteReply *)message;
    for (size_t i = 0; i < reply->n_prices; i++) {
        const Nui__Bank__V1__Price *price = reply->prices[i];
        if (price->reason)
            out->none = arena_strdup (arena, price->reason->text);
        else if (price->amount_micro > out->dearest)
            out->dearest = price->amount_micro;
    }
    protobuf_c_message_free_unpacked (message, NULL);
    return 0;
}

/* costbound_ask; arg: the site's name. Without a wallclock limit the bank holds nothing, so there is nothing to ask. */
static int bound_ask (struct cli_context *ctx, const char *command, Nui__Common__V1__Job *job,
                      struct arena *arena, void *arg, struct costbound_price *out)
{
    Nui__Common__V1__Envelope *envelope = NULL;
    struct err err = {0};
    if (job->components[0]->walltime_us <= 0) {
        out->none = "no wallclock limit is signed, and the bank holds nothing without one: say -t";
        return CLI_OK;
    }
    job->question = true;
    int code = job_sign (ctx, command, job, arena, &envelope);
    job->question = false;
    if (code != CLI_OK)
        return code;
    if (price_ask (ctx, job, arg, envelope, arena, out, &err) < 0) {
        err_prefix (&err, "no price, so nothing was signed (--max-cost CREDITS signs a bound of "
                          "your own, --max-cost none none)");
        code = cli_fail (command, &err);
    }
    envelope_free (envelope);
    return code;
}

/* What is to be signed is for this site, and for at most so much where the user knows a bank. */
static int bound_set (struct cli_context *ctx, const char *site, bool array,
                      Nui__Common__V1__Job *job, struct arena *arena)
{
    struct err err = {0};
    const char *name = cli_site_name (ctx, site, &err);
    if (!name)
        return cli_fail ("msub", &err);
    site_name_in (job, name, arena);
    if (!cli_has_bank (ctx) && !job->cost_any)
        return CLI_OK;
    return costbound_set (ctx, "msub", job, array, arena, bound_ask, arena_strdup (arena, name));
}

/* Who has a certificate signs; who has none is told apart by the cluster's socket. */
static int envelope_make (struct cli_context *ctx, Nui__Common__V1__Job *job, struct arena *arena,
                          Nui__Common__V1__Envelope **out, bool *owned)
{
    *owned = cli_has_identity (ctx);
    return *owned ? job_sign (ctx, "msub", job, arena, out)
                  : job_unsigned ("msub", job, arena, out);
}

static int submission_ask (struct cli_context *ctx, const struct job_options *options,
                           Nui__Common__V1__Envelope *envelope,
                           Nui__Local__V1__SubmitJobReply **reply)
{
    Nui__Local__V1__SubmitJobRequest request = NUI__LOCAL__V1__SUBMIT_JOB_REQUEST__INIT;
    struct err err = {0};
    request.envelope = envelope;
    return site_admin (ctx, options->site, "SubmitJob", &request, true, reply, &err) < 0
               ? cli_fail ("msub", &err)
               : CLI_OK;
}

/* The site has a fallback account: the same job, signed for that too, follows. */
static int fallback_send (struct cli_context *ctx, const struct job_options *options,
                          Nui__Common__V1__Envelope *envelope, Nui__Common__V1__Job *job,
                          const char *account, struct arena *arena)
{
    Nui__Common__V1__Envelope *second = NULL;
    Nui__Local__V1__SubmitJobReply *reply = NULL;
    Nui__Common__V1__Job other = *job;
    struct uuid *uuid = arena_new (arena, struct uuid);
    uuid_make (uuid);
    other.account = arena_strdup (arena, account);
    other.uuid.data = uuid->b;
    int code = job_sign (ctx, "msub", &other, arena, &second);
    if (code != CLI_OK)
        return code;
    envelope->fallback.len = nui__common__v1__envelope__get_packed_size (second);
    envelope->fallback.data = malloc (envelope->fallback.len + 1);
    if (envelope->fallback.data)
        nui__common__v1__envelope__pack (second, envelope->fallback.data);
    envelope_free (second);
    fprintf (
        stderr,
        "nui msub: signed for account %s too, which pays where %s cannot (--no-fallback: not)\n",
        account, *job->account ? job->account : "yours");
    code = submission_ask (ctx, options, envelope, &reply);
    nui__local__v1__submit_job_reply__free_unpacked (reply, NULL);
    return code;
}

static int submission_send (struct cli_context *ctx, const struct job_options *options,
                            Nui__Common__V1__Envelope *envelope, Nui__Common__V1__Job *job,
                            struct arena *arena)
{
    static const struct table_column columns[] = {
        {"job_id", "JobName", TABLE_TEXT, 0},
        {"start_estimate", "StartEstimate", TABLE_TIME, 0},
    };
    Nui__Local__V1__SubmitJobReply *reply = NULL;
    int code = submission_ask (ctx, options, envelope, &reply);
    if (code != CLI_OK)
        return code;
    if (*reply->fallback_account && !options->no_fallback)
        code = fallback_send (ctx, options, envelope, job, reply->fallback_account, arena);
    if (cli_format (ctx) == CLI_TABLE) {
        printf ("%s\n", reply->job_id);
    } else {
        struct table *t = table_create (columns, 2);
        table_text (t, reply->job_id);
        cell_moment (t, reply->start_estimate_us);
        table_end_row (t);
        code = worse (code, table_print (t, ctx));
        table_destroy (t);
    }
    nui__local__v1__submit_job_reply__free_unpacked (reply, NULL);
    return code;
}

/* inputs_put_fn; arg: the site. */
static int input_put (void *arg, const Nui__Common__V1__ContentRequest *request,
                      Nui__Common__V1__ContentReply **reply, struct err *err)
{
    return rpcclient_call (arg, &nui__local__v1__local__descriptor, "Put", &request->base,
                           SITE_CALL_TIMEOUT_S * US_PER_S, true, (ProtobufCMessage **)reply, err);
}

static int submissions (struct cli_context *ctx, const struct job_options *options,
                        const struct jobarray *array, Nui__Common__V1__Job *job,
                        struct arena *arena)
{
    int code = cli_has_identity (ctx) ? bound_set (ctx, options->site, array->count > 0, job, arena)
                                      : CLI_OK;
    struct err err = {0};
    struct rpcclient *site = code == CLI_OK ? cli_site (ctx, options->site, &err) : NULL;
    if (*job->notify_url) { /* a metascheduler's affair */
        fprintf (stderr, "msub: note: a cluster alone tells nobody how the job fares; "
                         "nui submit's grid does\n");
        job->notify_url = arena_strdup (arena, "");
    }
    if (code == CLI_OK &&
        (!site || inputs_send (options->travel, "msub", input_put, site, &err) != 0))
        code = cli_fail ("msub", &err);
    for (uint32_t i = 0; i < (array->count ? array->count : 1) && code == CLI_OK; i++) {
        Nui__Common__V1__Envelope *envelope = NULL;
        bool owned = false;
        Nui__Common__V1__Job *one = jobarray_element (array, i, arena, job);
        code = envelope_make (ctx, one, arena, &envelope, &owned);
        if (code == CLI_OK)
            code = submission_send (ctx, options, envelope, one, arena);
        if (owned)
            envelope_free (envelope);
    }
    return code;
}

static int msub_run (struct cli_context *ctx, int argc, char **argv)
{
    struct job_options *options = calloc (1, sizeof *options);
    struct arena *arena = arena_create (0);
    Nui__Common__V1__Job *job;
    struct cli_operands operands;
    struct jobarray array;
    struct err err = {0};
    int code = CLI_OK;
    if (!options)
        return CLI_FAILED;
    if (cli_options (ctx, msub_options, CLI_STOP_AT_OPERAND, options, argc, argv, &operands,
                     &code)) {
        if ((options->text[JOB_AFTER] || options->text[JOB_DEADLINE]) &&
            site_time (ctx, options->site, "now", &options->now, &err) != 0)
            code = cli_fail ("msub", &err);
        options->site_walltime = true;
        options->travel = inputs_create (arena);
        if (code == CLI_OK)
            code = job_options_build (ctx, "msub", options, &operands, arena, &array, &job);
        if (code == CLI_OK && array.count && cli_format (ctx) != CLI_TABLE)
            code = cli_usage ("msub", "--array prints ids: no --json, no --csv");
        if (code == CLI_OK)
            code = submissions (ctx, options, &array, job, arena);
    }
    arena_destroy (arena);
    free (options);
    return code;
}

const struct cli_command msub_command = {
    .name = "msub",
    .group = CLI_CLUSTER,
    .summary = "submit a job to this cluster alone",
    .run = msub_run,
    .help = "nui msub [options] SCRIPT [ARGUMENT...]\n"
            "nui msub [options] --wrap COMMAND\n"
            "nui msub [options] --file JOB.json",
    .text =
        "Puts a job into the cluster's own queue, without a grid, and prints its id (alpha.17).\n"
        "With a certificate in nui.cfg it is signed; on the cluster itself none is needed, unless a\n"
        "bank charges for jobs. Directives #NUI in the script mean the same as nui submit's options;\n"
        "where there are none, #SBATCH, #PBS or #MSUB ones are read.",
    .options = msub_options,
    .example = "nui msub -l nodes=2:ppn=4,walltime=1:00:00 run.sh input.dat",
};
