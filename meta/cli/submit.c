/* submit and estimate: a job is written, signed and sent. */
#include <stdlib.h>
#include <string.h>

#include "meta/cli/grid.h"
#include "meta/cli/remember.h"
#include "proto/base/clock.h"
#include "proto/cli/inputs.h"
#include "proto/cli/metas.h"
#include "proto/hash/sha256.h"
#include "proto/rpc/envelope.h"

enum { KEY_MAX = 200 };

static int submitted (struct cli_context *ctx, const char *id)
{
    struct strbuf out = STRBUF_INIT;
    if (cli_format (ctx) == CLI_JSON) {
        struct jsonout json = jsonout_make (&out);
        jsonout_object (&json);
        jsonout_key (&json, "job_id");
        jsonout_text (&json, id);
        jsonout_end (&json);
    } else {
        const char *head = cli_format (ctx) == CLI_CSV && !cli_noheader (ctx) ? "job_id\n" : "";
        const char *quote = cli_format (ctx) == CLI_CSV && strchr (id, ',') ? "\"" : "";
        strbuf_printf (&out, "%s%s%s%s\n", head, quote, id, quote);
    }
    int code = cli_output (&out);
    fflush (stdout);
    strbuf_free (&out);
    return code;
}

/* Whether it was taken, or refused: not where nobody knows. */
static bool is_answer (const struct err *err)
{
    return err->code != ERR_UNAVAILABLE && err->code != ERR_TIMEOUT && err->code != ERR_IO &&
           err->code != ERR_INTERNAL;
}

static int submit_send (struct cli_context *ctx, Nui__Common__V1__Envelope *envelope, bool keyed,
                        struct arena *arena, const char **id, struct err *err)
{
    Nui__Meta__V1__SubmitRequest request = NUI__META__V1__SUBMIT_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    request.envelope = envelope;
    request.keyed = keyed;
    struct metas *metas = cli_metas (ctx, err);
    if (metas &&
        metas_call_change (metas, &nui__meta__v1__meta__descriptor, "Submit", &request.base,
                           GRID_CALL_TIMEOUT_S * US_PER_S, &reply, err) == 0) {
        const Nui__Meta__V1__SubmitReply *taken = (Nui__Meta__V1__SubmitReply *)reply;
        if (*taken->note)
            fprintf (stderr, "nui: note: %s\n", taken->note);
        *id = arena_strdup (arena, taken->grid_job_id);
    }
    if (reply)
        protobuf_c_message_free_unpacked (reply, NULL);
    return *id ? 0 : err->code;
}

static int submit_one (struct cli_context *ctx, const char *command, Nui__Common__V1__Job *job,
                       bool keyed, bool remembers, struct arena *arena, const char **id)
{
    Nui__Common__V1__Envelope *envelope = NULL;
    struct remembered *remembered = NULL;
    struct err err = {0};
    int code = job_sign (ctx, command, job, arena, &envelope);
    if (code == CLI_OK && remembers) {
        Nui__Common__V1__Envelope *before = remember_find (job, envelope, &remembered);
        if (before) {
            fprintf (stderr,
                     "%s: the same job was sent before and had no answer: it is sent again, and no "
                     "other signed\n",
                     command);
            envelope_free (envelope);
            envelope = before;
        } else {
            remembered = remember_begin (job, envelope);
        }
    }
    if (code == CLI_OK && submit_send (ctx, envelope, keyed, arena, id, &err) != 0)
        code = cli_fail (command, &err);
    remember_end (remembered, code == CLI_OK || is_answer (&err));
    envelope_free (envelope);
    return code;
}

/* With --key the uuid follows from the key and from whose it is, whatever else is asked for. */
static int key_apply (struct cli_context *ctx, const char *command, const char *key,
                      struct arena *arena, Nui__Common__V1__Job *job)
{
    struct err err = {0};
    char uri[PRINCIPAL_URI_MAX];
    uint8_t hash[SHA256_BYTES];
    const uint32_t zero = 0;
    struct tlsid *me = cli_identity (ctx, &err);
    if (!me)
        return cli_fail (command, &err);
    if (!*key || strlen (key) > KEY_MAX)
        return cli_usage (command, "--key has 1 to %d characters", KEY_MAX);
    EVP_MD_CTX *md = sha256_begin ();
    sha256_add (md, "nui submit --key", sizeof "nui submit --key");
    sha256_add (md, job->grid, strlen (job->grid) + 1);
    sha256_add (md, principal_uri (tlsid_self (me), uri), strlen (uri) + 1);
    sha256_add (md, key, strlen (key) + 1);
    sha256_add (md, &zero, sizeof zero);
    sha256_end (md, hash);
    job->uuid.data = arena_memdup (arena, hash, 16);
    return CLI_OK;
}

/* Until it has ended; then what it printed, and its files, are brought home. CLI_OK only if it completed. */
static int follow (struct cli_context *ctx, const char *command, const char *id,
                   const struct job_options *options, const char *files)
{
    Nui__Meta__V1__GridJobState state = NUI__META__V1__GRID_JOB_STATE__GRID_UNSET;
    int code = grid_watch (ctx, command, id, &state);
    bool ran = state == NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED ||
               state == NUI__META__V1__GRID_JOB_STATE__GRID_FAILED;
    if (options->save && ran)
        code = grid_output_save (ctx, command, id, options->save);
    if (files && ran && code == CLI_OK)
        code = grid_fetch (ctx, command, id, files);
    return code == CLI_OK && state != NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED ? CLI_FAILED
                                                                                    : code;
}

/* The job, or each of the array that has this id; the files of each of an array go into a folder of its index. */
static int follow_all (struct cli_context *ctx, const char *command, const char *id,
                       const struct jobarray *array, const struct job_options *options)
{
    const char *open = strchr (id, '['), *home = options->output_dir;
    int code = CLI_OK;
    if (!array->count || !open)
        return follow (ctx, command, id, options, home);
    for (uint32_t i = 0; i < array->count; i++) {
        struct strbuf one = STRBUF_INIT, files = STRBUF_INIT;
        strbuf_append (&one, id, (size_t)(open - id));
        strbuf_printf (&one, "[%u]", array->index[i]);
        strbuf_printf (&files, "%s/%u", home ? home : "", array->index[i]);
        int ended =
            follow (ctx, command, strbuf_text (&one), options, home ? strbuf_text (&files) : NULL);
        code = code == CLI_OK ? ended : code;
        strbuf_free (&one);
        strbuf_free (&files);
    }
    return code;
}

/* inputs_put_fn. */
struct meta_place {
    struct metas *metas;
    uint32_t at;
};

static int input_put (void *arg, const Nui__Common__V1__ContentRequest *request,
                      Nui__Common__V1__ContentReply **reply, struct err *err)
{
    const struct meta_place *place = arg;
    return metas_call_at (place->metas, place->at, &nui__meta__v1__meta__descriptor, "Put",
                          &request->base, GRID_CALL_TIMEOUT_S * US_PER_S,
                          (ProtobufCMessage **)reply, err);
}

/* To each of a group, since any may come to lead the job; those that do not answer are passed over. */
static int inputs_to_grid (struct cli_context *ctx, const char *command, struct inputs *inputs)
{
    struct err err = {0}, why = {0};
    struct meta_place place = {cli_metas (ctx, &err), 0};
    uint32_t have = 0;
    if (!place.metas)
        return cli_fail (command, &err);
    for (; place.at < metas_count (place.metas); place.at++) {
        if (inputs_send (inputs, have ? NULL : command, input_put, &place, &why) == 0)
            have++;
        else if (why.code != ERR_UNAVAILABLE && why.code != ERR_TIMEOUT)
            return cli_fail (command, &why);
    }
    return have ? CLI_OK : cli_fail (command, &why);
}

static int submit_run (struct cli_context *ctx, int argc, char **argv)
{
    struct job_options *options = calloc (1, sizeof *options);
    struct arena *arena = arena_create (0);
    Nui__Common__V1__Job *job;
    struct cli_operands operands;
    struct jobarray array;
    const char *id = NULL;
    int code;
    if (!cli_options (ctx, grid_submit_options, CLI_STOP_AT_OPERAND, options, argc, argv, &operands,
                      &code))
        goto out;
    options->travel = inputs_create (arena);
    code = job_options_build (ctx, argv[0], options, &operands, arena, &array, &job);
    if (code != CLI_OK)
        goto out;
    if (array.count)
        jobarray_whole (&array, arena, job);
    code = grid_bound_set (ctx, argv[0], job, array.count > 0, arena);
    if (code == CLI_OK && options->key)
        code = key_apply (ctx, argv[0], options->key, arena, job);
    if (code == CLI_OK)
        code = inputs_to_grid (ctx, argv[0], options->travel);
    if (code == CLI_OK)
        code = submit_one (ctx, argv[0], job, options->key != NULL, !options->key, arena, &id);
    if (code == CLI_OK)
        code = submitted (ctx, id);
    if (code == CLI_OK && (options->wait || options->save || options->output_dir))
        code = follow_all (ctx, argv[0], id, &array, options);
out:
    arena_destroy (arena);
    free (options);
    return code;
}

const struct cli_command submit_command = {
    .name = "submit",
    .group = CLI_USERS,
    .summary = "sign a job, send it, print its id",
    .run = submit_run,
    .help = "nui submit [options] SCRIPT [ARGUMENT...]\n"
            "nui submit [options] --wrap COMMAND\n"
            "nui submit [options] --file JOB.json",
    .text =
        "Signs a job with your key and sends it to the metascheduler, which places it where it\n"
        "will be finished soonest. Prints the job's id (grid.42). Directives #NUI in the script mean\n"
        "the same as options; where there are none, #SBATCH, #PBS or #MSUB ones are read: what cannot\n"
        "be had is refused.",
    .options = grid_submit_options,
    .example = "nui submit -A phys -n 4 -t 1:00:00 run.sh input.dat\n"
               "nui submit -t 10:00 --component left:site=alpha,tasks=2 \\\n"
               "           --component right:site=beta,tasks=4 couple.sh",
};

static const struct table_column estimate_columns[] = {
    {"sites", "SITES", TABLE_TEXT, 0},
    {"tasks", "TASKS", TABLE_TEXT, 0, .spare = 5},
    {"start", "START", TABLE_TIME, 0},
    {"wait", "WAIT", TABLE_DURATION, 0},
    {"completion", "COMPLETION", TABLE_TIME, 0, .spare = 2},
    {"price", "PRICE", TABLE_CREDITS, 0},
    {"free_procs", "FREE", TABLE_INT, 0, .spare = 4},
    {"account", "ACCOUNT", TABLE_TEXT, 0},
    {"median", "MEDIAN", TABLE_TIME, 0, .spare = 7},
    {"low50", "FROM50%", TABLE_TIME, 0, .spare = 9},
    {"high50", "TO50%", TABLE_TIME, 0, .spare = 9},
    {"low95", "FROM95%", TABLE_TIME, 0, .spare = 8},
    {"high95", "TO95%", TABLE_TIME, 0, .spare = 8},
    {"latest", "RESERVED", TABLE_TIME, 0, .spare = 6},
    {"confidence", "CONFIDENCE", TABLE_TEXT, 0, .spare = 3},
    {"start_diff", "START+", TABLE_DURATION, 0, .spare = 9},
    {"completion_diff", "COMPLETION+", TABLE_DURATION, 0, .spare = 9},
    {"price_diff", "PRICE+", TABLE_CREDITS, 0, .spare = 7},
    {"bound", "BOUND", TABLE_CREDITS, 0, .spare = 1},
    {"reason", "REASON", TABLE_TEXT, 0},
};

/* Whether the bank has said what it costs. What costs nothing somebody pays, too. */
static bool is_priced (const Nui__Meta__V1__Candidate *c)
{
    return c->funded || c->price_micro != 0;
}

/* What choosing this instead of the best, the first, would cost: below 0, it is sooner or cheaper. */
static void diff_cells (struct table *table, const Nui__Meta__V1__Candidate *c,
                        const Nui__Meta__V1__Candidate *best)
{
    if (!c->feasible || !best->feasible || c == best) {
        for (int i = 0; i < 3; i++)
            table_null (table);
        return;
    }
    bool priced = is_priced (c) && is_priced (best);
    /* In whole seconds, as they are compared: sites answer within milliseconds of one another. */
    table_duration (table, (c->start_us / US_PER_S - best->start_us / US_PER_S) * US_PER_S);
    table_duration (table,
                    (c->completion_us / US_PER_S - best->completion_us / US_PER_S) * US_PER_S);
    if (priced)
        table_credits (table, c->price_micro - best->price_micro);
    else
        table_null (table);
}

/* The site's forecast; nulls where it gave none. Nothing is certain that the bank may still refuse. */
static void forecast_cells (struct table *table, const Nui__Meta__V1__Candidate *c)
{
    const Nui__Common__V1__Forecast *f = c->feasible ? c->forecast : NULL;
    const int64_t moment[] = {f ? f->median_us : 0, f ? f->low50_us : 0,
                              f ? f->high50_us : 0, f ? f->low95_us : 0,
                              f ? f->high95_us : 0, c->feasible ? c->latest_us : 0};
    for (size_t i = 0; i < sizeof moment / sizeof *moment; i++)
        if (moment[i])
            table_time (table, moment[i]);
        else
            table_null (table);
    table_text (table, f && f->certain && is_priced (c)     ? "certain"
                       : f && !f->certain && *f->confidence ? f->confidence
                                                            : NULL);
}

/* bound: what submit would sign; 0: it would ask for one. */
static void estimate_row (struct table *table, const Nui__Meta__V1__Candidate *c,
                          const Nui__Meta__V1__Candidate *best, credit_micro bound, time_us now)
{
    struct strbuf sites = STRBUF_INIT;
    for (size_t i = 0; i < c->n_sites; i++)
        strbuf_printf (&sites, "%s%s", i ? "+" : "", c->sites[i]);
    table_text (table, strbuf_text (&sites));
    strbuf_clear (&sites);
    for (size_t i = 0; i < c->n_tasks; i++)
        strbuf_printf (&sites, "%s%u", i ? "+" : "", c->tasks[i]);
    table_text (table, sites.len ? strbuf_text (&sites) : NULL);
    strbuf_free (&sites);
    if (c->feasible) {
        table_time (table, c->start_us);
        table_duration (table, c->start_us > now ? c->start_us - now : 0);
        table_time (table, c->completion_us);
        if (is_priced (c))
            table_credits (table, c->price_micro);
        else
            table_null (table);
    } else
        for (int i = 0; i < 4; i++)
            table_null (table);
    table_int (table, c->free_procs);
    table_text (table, c->funded && c->account ? c->account : NULL);
    forecast_cells (table, c);
    diff_cells (table, c, best);
    if (bound)
        table_credits (table, bound);
    else
        table_null (table);
    const char *why = c->reason ? c->reason->text : "";
    const char *funds = c->funds_reason ? c->funds_reason->text : "";
    if (*why && *funds)
        table_printf (table, "%s; %s", why, funds);
    else
        table_text (table, *why ? why : *funds ? funds : NULL);
    table_end_row (table);
}

static int estimate_run (struct cli_context *ctx, int argc, char **argv)
{
    struct job_options *options = calloc (1, sizeof *options);
    struct arena *arena = arena_create (0);
    Nui__Common__V1__Envelope *envelope = NULL;
    Nui__Common__V1__Job *job;
    ProtobufCMessage *reply = NULL;
    struct table *table = NULL;
    struct cli_operands operands;
    struct err err;
    int code;
    err_clear (&err);
    if (!cli_options (ctx, grid_estimate_options, CLI_STOP_AT_OPERAND, options, argc, argv,
                      &operands, &code))
        goto out;
    code = job_options_build (ctx, argv[0], options, &operands, arena, NULL, &job);
    if (code != CLI_OK)
        goto out;
    job->question = true;
    code = job_sign (ctx, argv[0], job, arena, &envelope);
    if (code != CLI_OK)
        goto out;
    Nui__Meta__V1__EstimateRequest request = NUI__META__V1__ESTIMATE_REQUEST__INIT;
    request.envelope = envelope;
    if (grid_call (ctx, "Estimate", &request.base, &reply, &err) < 0) {
        code = cli_fail (argv[0], &err);
        goto out;
    }
    const Nui__Meta__V1__EstimateReply *answer = (const Nui__Meta__V1__EstimateReply *)reply;
    table = table_create (estimate_columns, sizeof estimate_columns / sizeof *estimate_columns);
    bool feasible = false;
    credit_micro bound = job->cost_max_micro;
    if (!bound && !job->cost_any && answer->priced)
        bound = costbound_of (ctx, job, answer->price_most_micro);
    for (size_t i = 0; i < answer->n_candidates; i++) {
        feasible |= answer->candidates[i]->feasible;
        estimate_row (table, answer->candidates[i], answer->candidates[0], bound, clock_now_us ());
    }
    code = table_print (table, ctx);
    if (code == CLI_OK && !feasible) {
        err_set (&err, ERR_CONFLICT, "no site, or combination of sites, can run this job");
        code = cli_fail (argv[0], &err);
    }
out:
    table_destroy (table);
    if (reply)
        protobuf_c_message_free_unpacked (reply, NULL);
    envelope_free (envelope);
    arena_destroy (arena);
    free (options);
    return code;
}

const struct cli_command estimate_command = {
    .name = "estimate",
    .group = CLI_USERS,
    .summary = "when would it start, where, for how much",
    .run = estimate_run,
    .help = "nui estimate [options of submit] [SCRIPT]",
    .text =
        "For each candidate site, or combination of sites: start, end, price at most, free\n"
        "processors, the account that would pay, and the reason where it is impossible. Submits\n"
        "nothing. Exit code 1 when nothing is possible.",
    .options = grid_estimate_options,
    .example = "nui estimate -n 8 -t 1:00:00",
};
