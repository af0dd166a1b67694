/* delegate: leave for a gate to ask in my name, as a bearer token. Signed here; nobody else is asked. */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "meta/cli/grid.h"
#include "proto/base/clock.h"
#include "proto/hash/sha256.h"
#include "proto/rpc/gatedeleg.h"

#define DELEGATE_FOR_US (12 * 3600 * US_PER_S)
enum { DELEGATE_SECRET = 32 };

struct delegate_options {
    duration_us length;
    const char *gate, *accounts, *sites;
    uint64_t jobs;
    credit_micro cost;
    bool look;
};

static const struct cli_option options[] = {
    {"gate", 0, CLI_OPT_STRING, "NAME", "which gate (default: gate)",
     offsetof (struct delegate_options, gate)},
    {"for", 0, CLI_OPT_DURATION, "TIME", "so long from now (default 12 hours, at most 7 days)",
     offsetof (struct delegate_options, length)},
    {"look", 0, CLI_OPT_FLAG, NULL, "it may only look", offsetof (struct delegate_options, look)},
    {"jobs", 0, CLI_OPT_COUNT, "N", "it may itself sign so many jobs (default none)",
     offsetof (struct delegate_options, jobs), .min = 1, .max = GATEDELEG_JOBS_MAX},
    {"max-cost", 0, CLI_OPT_CREDITS, "CREDITS", "each of which costs at most so much",
     offsetof (struct delegate_options, cost), .min = 1, .max = INT64_MAX},
    {"accounts", 'A', CLI_OPT_STRING, "A,B", "paid by these accounts (default: ACCOUNT)",
     offsetof (struct delegate_options, accounts)},
    {"sites", 0, CLI_OPT_STRING, "A,B", "at these sites (default: any)",
     offsetof (struct delegate_options, sites)},
    {0},
};

/* Names between commas; *out points into *copy_out. Both are the caller's to free. */
static size_t names_of (const char *text, char **copy_out, char ***out)
{
    char *copy = strdup (text ? text : ""), *save = NULL;
    size_t count = 0;
    *out = copy ? calloc (strlen (copy) + 1, sizeof **out) : NULL;
    if (!*out)
        abort ();
    for (char *name = strtok_r (copy, ",", &save); name; name = strtok_r (NULL, ",", &save))
        (*out)[count++] = name;
    *copy_out = copy;
    return count;
}

/* As RFC 4648's base64url, without padding. */
static void base64url_print (const uint8_t *bytes, size_t len)
{
    char *text = malloc (len * 4 / 3 + 8);
    if (!text)
        abort ();
    EVP_EncodeBlock ((unsigned char *)text, bytes, (int)len);
    for (char *c = text; *c && *c != '='; c++)
        putchar (*c == '+' ? '-' : *c == '/' ? '_' : *c);
    free (text);
}

static int delegate (struct cli_context *ctx, const struct delegate_options *given, struct err *err)
{
    GateDelegation d = NUI__COMMON__V1__GATE_DELEGATION__INIT;
    uint8_t secret[DELEGATE_SECRET], hash[SHA256_BYTES];
    ProtobufCBinaryData out = {0, NULL};
    char *accounts, *sites;
    struct tlsid *me = cli_identity (ctx, err);
    if (!me)
        return err->code;
    struct principal gate = {.kind = PRINCIPAL_GATE};
    char uri[PRINCIPAL_URI_MAX];
    const char *name = given->gate ? given->gate : "gate";
    if (name_check ("gate", name, err) < 0)
        return err->code;
    memcpy (gate.grid, tlsid_self (me)->grid, sizeof gate.grid);
    memcpy (gate.name, name, strlen (name) + 1);
    d.gate = principal_uri (&gate, uri);
    d.change = !given->look;
    d.jobs_max = (uint32_t)given->jobs;
    d.cost_max_micro = given->cost;
    const char *paid = given->accounts ? given->accounts : cli_account (ctx);
    d.n_accounts = names_of (given->jobs ? paid : NULL, &accounts, &d.accounts);
    d.n_sites = names_of (given->sites, &sites, &d.sites);
    random_bytes (secret, sizeof secret);
    sha256 (secret, sizeof secret, hash);
    d.secret_hash = (ProtobufCBinaryData){sizeof hash, hash};
    int rc = gatedeleg_make (me, &d, clock_now_us (), given->length, &out, err);
    if (rc == 0) {
        base64url_print (out.data, out.len);
        putchar ('.');
        base64url_print (secret, sizeof secret);
        putchar ('\n');
    }
    free (out.data);
    free (d.accounts), free (d.sites), free (accounts), free (sites);
    return rc;
}

static int delegate_run (struct cli_context *ctx, int argc, char **argv)
{
    struct delegate_options given = {.length = DELEGATE_FOR_US};
    struct cli_operands operands;
    struct err err = {0};
    int code;
    if (!cli_options (ctx, options, 0, &given, argc, argv, &operands, &code))
        return code;
    if (operands.count)
        return cli_usage (argv[0], "it takes options only, as in nui delegate --gate gate");
    if (!given.jobs != !given.cost)
        return cli_usage (argv[0], "--jobs and --max-cost go together");
    if (given.look && given.jobs)
        return cli_usage (argv[0], "--look and --jobs exclude each other");
    return delegate (ctx, &given, &err) < 0 ? cli_fail (argv[0], &err) : CLI_OK;
}

const struct cli_command delegate_command = {
    .name = "delegate",
    .group = CLI_USERS,
    .summary = "let a gate (REST) ask in your name: prints a bearer token",
    .run = delegate_run,
    .help = "nui delegate [options]",
    .text =
        "Signs leave for a gate to ask in your name, within bounds, and prints it with a secret: keep it as a password.",
    .options = options,
};
