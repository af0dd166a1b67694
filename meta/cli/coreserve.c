/* coreserve: several clusters reserved for one moment, for people and not for a job: a job of several components without a
 * script, signed and sent as any other. Its id is the group's, by which jobs come in (--reservation). */
#include <stdlib.h>
#include <string.h>

#include "meta/cli/grid.h"
#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"

struct coreserve_options {
    struct job_options job; /* first: its options' places are within it */
    const char *users, *accounts;
    duration_us window;
};

static const struct cli_option coreserve_options[] = {
    JOB_TEXT ("at", 0, JOB_AFTER, "TIME", "from this moment on"),
    JOB_TEXT ("duration", 'd', JOB_TIME, "D", "for so long"),
    {"component", 0, CLI_OPT_LIST, "NAME:KEY=VALUE,...",
     "what is reserved at one site (repeat it): site, tasks, nodes, tpn, procs-per-task, mem, features ...",
     offsetof (struct coreserve_options, job.components)},
    {"window", 0, CLI_OPT_DURATION, "D",
     "or up to so much later: the first moment at which all can",
     offsetof (struct coreserve_options, window)},
    {"users", 'u', CLI_OPT_STRING, "A,B", "users of the grid who may come in beside you",
     offsetof (struct coreserve_options, users)},
    {"accounts", 'a', CLI_OPT_STRING, "A,B", "and the jobs of these accounts",
     offsetof (struct coreserve_options, accounts)},
    JOB_TEXT ("account", 'A', JOB_ACCOUNT, "NAME", "who pays for what stays idle"),
    JOB_TEXT ("max-cost", 0, JOB_MAX_COST, "CREDITS", "signed as the most it may cost; none"),
    JOB_TEXT ("name", 'N', JOB_NAME, "NAME", "of the reservation, for people"),
    {NULL, 0, CLI_OPT_FLAG, NULL, NULL, 0},
};

static size_t names_split (const char *text, struct arena *arena, char ***out)
{
    char *copy = arena_strdup (arena, text ? text : ""), *save = NULL;
    size_t count = 0;
    *out = arena_array (arena, strlen (copy) + 1, sizeof **out);
    for (char *name = strtok_r (copy, ",:", &save); name; name = strtok_r (NULL, ",:", &save))
        (*out)[count++] = name;
    return count;
}

static int coreserve_send (struct cli_context *ctx, const char *command, Nui__Common__V1__Job *job,
                           struct arena *arena)
{
    Nui__Meta__V1__SubmitRequest request = NUI__META__V1__SUBMIT_REQUEST__INIT;
    Nui__Common__V1__Envelope *envelope = NULL;
    ProtobufCMessage *reply = NULL;
    struct err err = {0};
    int code = job_sign (ctx, command, job, arena, &envelope);
    if (code != CLI_OK)
        return code;
    request.envelope = envelope;
    if (grid_call (ctx, "Submit", &request.base, &reply, &err) < 0) {
        code = cli_fail (command, &err);
    } else {
        printf ("%s\n", ((Nui__Meta__V1__SubmitReply *)reply)->grid_job_id);
        protobuf_c_message_free_unpacked (reply, NULL);
    }
    envelope_free (envelope);
    return code;
}

static int coreserve_run (struct cli_context *ctx, int argc, char **argv)
{
    struct coreserve_options *options = calloc (1, sizeof *options);
    struct arena *arena = arena_create (0);
    Nui__Common__V1__Job *job;
    struct cli_operands operands;
    int code;
    if (!options)
        abort ();
    if (!cli_options (ctx, coreserve_options, 0, options, argc, argv, &operands, &code))
        goto out;
    if (operands.count || options->job.components.count < 2 || !options->job.text[JOB_TIME]) {
        code = cli_usage (argv[0], "say --duration D and two components or more, and no script");
        goto out;
    }
    code = job_options_build (ctx, argv[0], &options->job, &operands, arena, NULL, &job);
    if (code != CLI_OK)
        goto out;
    Nui__Common__V1__Reserve *reserve = arena_new (arena, Nui__Common__V1__Reserve);
    nui__common__v1__reserve__init (reserve);
    reserve->n_users = names_split (options->users, arena, &reserve->users);
    reserve->n_accounts = names_split (options->accounts, arena, &reserve->accounts);
    job->reserve = reserve;
    if (job->not_before_us)
        job->not_after_us = job->not_before_us + options->window;
    else if (options->window)
        job->not_after_us = clock_now_us () + options->window;
    code = grid_bound_set (ctx, argv[0], job, false, arena);
    if (code == CLI_OK)
        code = coreserve_send (ctx, argv[0], job, arena);
out:
    arena_destroy (arena);
    free (options);
    return code;
}

const struct cli_command coreserve_command = {
    .name = "coreserve",
    .group = CLI_USERS,
    .summary = "reserve several clusters for one moment, without a job",
    .run = coreserve_run,
    .help = "nui coreserve --component NAME:site=SITE,tasks=N ... --at TIME -d D [options]",
    .text =
        "Reserves what the components say at all of their sites for one moment, or nothing, and\n"
        "prints the id of the group (grid.42). Jobs come in with --reservation grid.42: yours, those\n"
        "of the users and of the accounts that are named. nui status and nui jobs show the group,\n"
        "nui cancel gives it back; showres -g lists its parts at a site.",
    .options = coreserve_options,
    .example =
        "nui coreserve --component left:site=alpha,tasks=64 --component right:site=beta,tasks=64 \\\n"
        "              --at 14:00 -d 2:00:00 --accounts phys --users bob",
};
