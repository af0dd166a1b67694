/* coreserve: several clusters reserved for one moment, for people and not for a job: a job of several components without a
 * script, signed and sent as any other. Its id is the group's, by which jobs come in (--reservation). */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "meta/cli/grid.h"
#include "proto/base/clock.h"
#include "proto/job/jobcheck.h"
#include "proto/rpc/envelope.h"

enum { STANDING_MAX = 400 }; /* each day for more than a year */

struct coreserve_options {
    struct job_options job; /* first: its options' places are within it */
    const char *users, *accounts, *every, *until, *change;
    duration_us window;
    int64_t ahead;
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
    {"change", 0, CLI_OPT_STRING, "JOB",
     "other terms for this one, which stands: its end (-d), fewer tasks, who may come in",
     offsetof (struct coreserve_options, change)},
    {"every", 0, CLI_OPT_STRING, "mon,thu",
     "a standing one: at that hour on each of these days (day: on all), local time",
     offsetof (struct coreserve_options, every)},
    {"until", 0, CLI_OPT_STRING, "TIME", "the last of them (a year from now)",
     offsetof (struct coreserve_options, until)},
    {"ahead", 0, CLI_OPT_INT, "N", "so many of them are reserved at one time (2)",
     offsetof (struct coreserve_options, ahead)},
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

/* ---- standing ones */

/* "mon,thu", "day": as bits, Sunday the first; 0: neither. */
static unsigned days_parse (const char *text, struct arena *arena)
{
    static const char *const name[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
    char **word;
    unsigned days = 0;
    size_t count = names_split (text, arena, &word);
    for (size_t i = 0; i < count; i++) {
        unsigned found = strcasecmp (word[i], "day") == 0 ? 0x7f : 0;
        for (unsigned d = 0; d < 7; d++)
            found |= strncasecmp (word[i], name[d], 3) == 0 ? 1u << d : 0;
        if (!found)
            return 0;
        days |= found;
    }
    return days;
}

/* The hour of `first` on each of these days from then on; local time, so that it stays that hour in summer. */
static size_t moments_fill (time_us first, time_us last, unsigned days, int64_t *out, size_t most)
{
    time_t at = (time_t)(first / US_PER_S);
    struct tm day;
    size_t count = 0;
    localtime_r (&at, &day);
    const struct tm hour = day;
    while (count < most && first <= last) {
        if (days >> day.tm_wday & 1)
            out[count++] = first;
        day.tm_hour = hour.tm_hour;
        day.tm_min = hour.tm_min;
        day.tm_sec = hour.tm_sec;
        day.tm_mday++;
        day.tm_isdst = -1;
        first = (time_us)mktime (&day) * US_PER_S;
    }
    return count;
}

/* Signed as an array: each of its jobs is one of the days. */
static int standing_set (const struct coreserve_options *options, Nui__Common__V1__Job *job,
                         struct arena *arena, struct err *err)
{
    const time_us now = clock_now_us ();
    time_us last = now + 366 * INT64_C (86400) * US_PER_S;
    const unsigned days = days_parse (options->every, arena);
    if (!days)
        return err_set (err, ERR_INVALID, "--every '%.60s': wanted days as in mon,thu, or day",
                        options->every);
    if (!job->not_before_us)
        return err_set (err, ERR_INVALID, "--every needs --at TIME: the hour");
    if (options->until && time_parse (options->until, now, &last, err) < 0)
        return err->code;
    if (options->ahead < 1 || options->ahead > STANDING_MAX)
        return err_set (err, ERR_INVALID, "--ahead: wanted 1 to %d", STANDING_MAX);
    Nui__Common__V1__Reserve *reserve = job->reserve;
    reserve->starts_us = arena_array (arena, STANDING_MAX, sizeof *reserve->starts_us);
    reserve->n_starts_us =
        moments_fill (job->not_before_us, last, days, reserve->starts_us, STANDING_MAX);
    if (!reserve->n_starts_us)
        return err_set (err, ERR_INVALID, "none of these days lies before the last moment");
    Nui__Common__V1__IndexRange *range = arena_new (arena, Nui__Common__V1__IndexRange);
    nui__common__v1__index_range__init (range);
    range->from = 1;
    range->to = (uint32_t)reserve->n_starts_us;
    job->indexes = arena_array (arena, 1, sizeof *job->indexes);
    job->indexes[0] = range;
    job->n_indexes = 1;
    job->array_limit = (uint32_t)options->ahead;
    return 0;
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

/* ---- other terms for one that stands */

/* What I signed for it, as the metascheduler has it, and believed because I did. */
static int terms_now (struct cli_context *ctx, const char *id, Nui__Common__V1__Job **out,
                      struct err *err)
{
    Nui__Meta__V1__RenewRequest request = NUI__META__V1__RENEW_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    struct principal signer;
    char uri[PRINCIPAL_URI_MAX], mine[PRINCIPAL_URI_MAX];
    struct tlsid *me = cli_identity (ctx, err);
    request.grid_job_id = (char *)(uintptr_t)id;
    int rc = me ? grid_call (ctx, "Renew", &request.base, &reply, err) : err->code;
    const Nui__Common__V1__Envelope *envelope =
        rc == 0 ? ((Nui__Meta__V1__RenewReply *)reply)->envelope : NULL;
    Nui__Common__V1__Job *job = envelope ? jobcheck_unpack (&envelope->body, err) : NULL;
    if (rc == 0 && !job)
        rc = err_set (err, ERR_UNAUTHENTIC, "the metascheduler does not show the signed job");
    if (rc == 0)
        rc = envelope_verify (me, envelope, job->created_us, &signer, err);
    if (rc == 0 &&
        strcmp (principal_uri (&signer, uri), principal_uri (tlsid_self (me), mine)) != 0)
        rc = err_set (err, ERR_DENIED, "%s signed %s; only its owner can change it", uri, id);
    if (rc == 0 && !job->reserve)
        rc = err_set (err, ERR_INVALID, "%s is no co-reservation", id);
    if (rc == 0)
        *out = job; /* the caller's to free */
    else if (job)
        nui__common__v1__job__free_unpacked (job, NULL);
    if (reply)
        protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

/* "left:tasks=2": of what is there. */
static int terms_tasks (Nui__Common__V1__Job *job, const char *text, struct err *err)
{
    const char *colon = strchr (text, ':');
    uint64_t tasks;
    if (!colon || strncmp (colon + 1, "tasks=", 6) != 0)
        return err_set (err, ERR_INVALID, "'%.60s': with --change a component has tasks=N only",
                        text);
    if (uint_parse (colon + 7, "tasks", 1, UINT32_MAX, &tasks, err))
        return err->code;
    for (size_t i = 0; i < job->n_components; i++)
        if (strlen (job->components[i]->name) == (size_t)(colon - text) &&
            strncmp (job->components[i]->name, text, (size_t)(colon - text)) == 0) {
            job->components[i]->reqs[0]->tasks = (uint32_t)tasks;
            return 0;
        }
    return err_set (err, ERR_NOT_FOUND, "it has no component '%.60s'", text);
}

/* A list that was given is there instead of the old one; "" is nobody. */
static void terms_names (const char *text, struct arena *arena, size_t *count, char ***list)
{
    if (text)
        *count = names_split (text, arena, list);
}

/* What it may cost: what is said now; or what its user said before; or again a multiple of what the new terms cost. */
static int terms_cost (struct cli_context *ctx, const char *command,
                       const struct coreserve_options *options, Nui__Common__V1__Job *job,
                       struct arena *arena)
{
    const char *text = options->job.text[JOB_MAX_COST];
    struct err err = {0};
    if (text) {
        job->cost_max_micro = 0;
        job->cost_default = false;
        job->cost_any = strcasecmp (text, "none") == 0;
        if (!job->cost_any && credit_parse (text, &job->cost_max_micro, &err) == 0 &&
            job->cost_max_micro <= 0)
            err_set (&err, ERR_INVALID, "'%.60s' is not above zero", text);
        if (err.code) {
            err_prefix (&err, "--max-cost");
            return cli_fail (command, &err);
        }
        return grid_bound_set (ctx, command, job, false, arena);
    }
    if (!job->cost_default || !(options->job.text[JOB_TIME] || options->job.components.count))
        return CLI_OK;
    job->cost_max_micro = 0;
    job->cost_default = false;
    return grid_bound_set (ctx, command, job, false, arena);
}

static int coreserve_change (struct cli_context *ctx, const char *command,
                             const struct coreserve_options *options, struct arena *arena)
{
    Nui__Common__V1__Job *was = NULL, job;
    Nui__Common__V1__Reserve reserve;
    struct err err = {0};
    struct uuid uuid;
    char id[GRID_ID_MAX];
    duration_us length = 0;
    const time_us now = clock_now_us ();
    int code = grid_job_operand (ctx, command, options->change, id, sizeof id);
    if (code != CLI_OK)
        return code;
    const char *text = options->job.text[JOB_TIME];
    if ((text && duration_parse (text, &length, &err)) || terms_now (ctx, id, &was, &err))
        return cli_fail (command, &err);
    job = *was;
    reserve = *was->reserve;
    job.reserve = &reserve;
    if (!reserve.changes.len)
        reserve.changes = was->uuid;
    uuid_make (&uuid);
    job.uuid = (ProtobufCBinaryData){sizeof uuid.b, uuid.b};
    job.created_us = now;
    job.expires_us = now + (was->expires_us - was->created_us);
    job.not_before_us = job.not_after_us = 0; /* its moment is agreed */
    for (size_t i = 0; i < job.n_components && text; i++)
        job.components[i]->walltime_us = length;
    for (uint32_t i = 0; i < options->job.components.count && !err.code; i++)
        terms_tasks (&job, options->job.components.item[i], &err);
    terms_names (options->users, arena, &reserve.n_users, &reserve.users);
    terms_names (options->accounts, arena, &reserve.n_accounts, &reserve.accounts);
    code = err.code ? cli_fail (command, &err) : terms_cost (ctx, command, options, &job, arena);
    if (code == CLI_OK)
        code = coreserve_send (ctx, command, &job, arena);
    nui__common__v1__job__free_unpacked (was, NULL);
    return code;
}

static int coreserve_run (struct cli_context *ctx, int argc, char **argv)
{
    struct coreserve_options *options = calloc (1, sizeof *options);
    struct err err = {0};
    struct arena *arena = arena_create (0);
    Nui__Common__V1__Job *job;
    struct cli_operands operands;
    int code;
    if (!options)
        abort ();
    options->ahead = 2;
    if (!cli_options (ctx, coreserve_options, 0, options, argc, argv, &operands, &code))
        goto out;
    if (options->change) {
        code =
            operands.count || options->every || options->job.text[JOB_AFTER]
                ? cli_usage (argv[0],
                             "--change takes -d, --component, --users, --accounts and --max-cost")
                : coreserve_change (ctx, argv[0], options, arena);
        goto out;
    }
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
    if (options->every && standing_set (options, job, arena, &err)) {
        code = cli_usage (argv[0], "%s", err.text);
        goto out;
    }
    code = grid_bound_set (ctx, argv[0], job, options->every != NULL, arena);
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
        "nui cancel gives it back; showres -g lists its parts at a site.\n"
        "With --every it is a standing one, an array of co-reservations (grid.42[1-52]) whose next ones\n"
        "are reserved; jobs come in by grid.42, whichever it is then.",
    .options = coreserve_options,
    .example =
        "nui coreserve --component left:site=alpha,tasks=64 --component right:site=beta,tasks=64 \\\n"
        "              --at 14:00 -d 2:00:00 --accounts phys --users bob",
};
