/* nui quote: what a job would cost, and the rates of the moment, to be kept; what is kept. */
#include <stdio.h>
#include <string.h>

#include "bank/cli/util.h"
#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"

enum { QUOTE_SITES_MAX = 64 };

/* A job that says who asks and which account; it has no component and no site would take it. */
static Nui__Common__V1__Envelope *quote_envelope (struct cli_context *ctx, const char *account,
                                                  struct err *err)
{
    struct tlsid *id = cli_identity (ctx, err);
    const char *grid = id ? cli_grid (ctx, err) : NULL;
    char uri[PRINCIPAL_URI_MAX];
    uint8_t uuid[16], body[1024];
    Nui__Common__V1__Envelope *envelope = NULL;
    if (!grid)
        return NULL;
    Nui__Common__V1__Job job = NUI__COMMON__V1__JOB__INIT;
    job.grid = bank_text (grid);
    job.submitter = principal_uri (tlsid_self (id), uri);
    job.uuid = bank_key (uuid);
    job.created_us = clock_now_us ();
    job.expires_us = job.created_us;
    job.name = bank_text ("quote");
    job.account = bank_text (account);
    size_t len = nui__common__v1__job__get_packed_size (&job);
    if (len > sizeof (body)) {
        err_set (err, ERR_LIMIT, "the account's name is too long");
        return NULL;
    }
    nui__common__v1__job__pack (&job, body);
    return envelope_sign (id, body, len, &envelope, err) < 0 ? NULL : envelope;
}

static const struct table_column price_columns[] = {
    {"site", "Site", TABLE_TEXT},       {"price", "Price", TABLE_CREDITS, .from = "amount"},
    {"funded", "Funded", TABLE_BOOL},   {"account", "Account", TABLE_TEXT},
    {"formula", "Formula", TABLE_TEXT}, {"quote", "Quote", TABLE_TEXT},
    {"expires", "Until", TABLE_TIME}};

/* Its name and end are there where rates are kept. */
static int quote_print (struct cli_context *ctx, char **site,
                        const Nui__Bank__V1__QuoteReply *reply)
{
    struct table *table = table_create (price_columns, reply->quote_id[0] ? 7 : 5);
    for (size_t i = 0; i < reply->n_prices; i++) {
        table_text (table, site[i]);
        table_message_rest (table, &reply->prices[i]->base, &reply->base);
    }
    int rc = table_print_done (table, ctx);
    for (size_t i = 0; i < reply->n_candidates; i++)
        fprintf (stderr, "nui quote: account %s%s: %s\n", reply->candidates[i]->account,
                 reply->candidates[i]->fallback ? " (a fallback)" : "",
                 reply->candidates[i]->reason->text);
    return rc;
}

static void price_cell (struct table *table, const ProtobufCMessage *message)
{
    const Nui__Bank__V1__QuoteSite *site = (const Nui__Bank__V1__QuoteSite *)message;
    if (site->priced)
        table_credits (table, site->price_micro);
    else
        table_null (table);
}

static const struct table_column kept_columns[] = {
    {"quote", "Quote", TABLE_TEXT},
    {"user", "User", TABLE_IDENTITY},
    {"account", "Account", TABLE_TEXT},
    {"site", "Site", TABLE_TEXT},
    {"price", "Price", TABLE_CREDITS, .cell = price_cell},
    {"card", "Card", TABLE_INT, .from = "rate_version"},
    {"state", "State", TABLE_TEXT},
    {"expires", "Until", TABLE_TIME},
    {"reusable", "Reusable", TABLE_BOOL},
    {"job", "Job", TABLE_TEXT}};

/* Page by page; one quote, or those of an account. */
static int quote_kept (struct cli_context *ctx, const struct cli_said *said)
{
    int rc = CLI_OK;
    size_t count;
    Nui__Bank__V1__QuoteListRequest *request =
        (Nui__Bank__V1__QuoteListRequest *)cli_request (ctx, said, &rc);
    if (!request)
        return rc;
    struct table *table = TABLE_CREATE (kept_columns);
    do {
        ProtobufCMessage *message = cli_answer (ctx, said, &request->base, &rc);
        if (!message) {
            table_destroy (table);
            return rc;
        }
        const Nui__Bank__V1__QuoteListReply *reply = (Nui__Bank__V1__QuoteListReply *)message;
        count = reply->n_quotes;
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < reply->quotes[i]->n_sites; k++)
                table_message (table, &reply->quotes[i]->sites[k]->base, &reply->quotes[i]->base);
        if (count)
            request->after = reply->quotes[count - 1]->number;
        protobuf_c_message_free_unpacked (message, NULL);
    } while (count && !request->quote_id[0]);
    return table_print_done (table, ctx);
}

static int quote_show (struct cli_context *ctx, const struct cli_said *said)
{
    return *said_operand (said, 0) ? quote_kept (ctx, said)
                                   : cli_usage ("quote", "name a quote, as in quote.7");
}

static int quote_run (struct cli_context *ctx, const struct cli_said *said)
{
    char *site[QUOTE_SITES_MAX];
    Nui__Bank__V1__PriceItem *item[QUOTE_SITES_MAX];
    int64_t walltime = said_number (said, "walltime");
    int sites = bank_split (arena_strdup (said->arena, said_text (said, "site")), site,
                            QUOTE_SITES_MAX),
        rc = CLI_OK;
    struct err err = {0};
    char *account;
    if (walltime <= 0 || walltime == TIME_US_MAX)
        return cli_usage ("quote", "say how long with -t, for example -t 1:00:00");
    if (sites < 1)
        return cli_usage ("quote", "--site takes 1 to %d names", QUOTE_SITES_MAX);
    Nui__Bank__V1__QuoteRequest *request =
        (Nui__Bank__V1__QuoteRequest *)cli_request (ctx, said, &rc);
    if (!request || !bank_account (ctx, said, &account, &rc))
        return rc;
    for (int i = 0; i < sites; i++) {
        item[i] = (Nui__Bank__V1__PriceItem *)cli_fill (
            ctx, said, &nui__bank__v1__price_item__descriptor, &rc);
        if (!item[i])
            return rc;
        item[i]->site = site[i];
        item[i]->procs = item[i]->procs ? item[i]->procs : 1;
    }
    request->envelope = quote_envelope (ctx, account, &err);
    if (!request->envelope)
        return cli_fail ("quote", &err);
    request->n_items = (size_t)sites;
    request->items = item;
    if (!request->keep_us)
        request->key = (ProtobufCBinaryData){0};
    ProtobufCMessage *reply = cli_answer (ctx, said, &request->base, &rc);
    envelope_free (request->envelope);
    if (!reply)
        return rc;
    rc = quote_print (ctx, site, (Nui__Bank__V1__QuoteReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

static const struct cli_option quote_options[] = {
    {"procs", 'n', CLI_OPT_COUNT, "N", "processors (1)", .min = 1, .max = 100000000},
    {"walltime", 't', CLI_OPT_DURATION, "TIME", "[[D:]HH:]MM:SS or seconds"},
    {"site", 0, CLI_OPT_STRING, "A,B", "sites to be priced"},
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT",
     "else ACCOUNT of nui.cfg; list: asked for, else any"},
    BANK_JOB_OPTIONS,
    {"keep", 0, CLI_OPT_DURATION, "TIME",
     "keep these rates for so long: for the job that is submitted with --quote and the name that is printed"},
    {"reusable", 0, CLI_OPT_FLAG, NULL, "for any number of my jobs"},
    {"all", 0, CLI_OPT_FLAG, NULL, "list: also used, expired and cancelled ones"},
    {0}};

static const struct cli_form quote_forms[] = {
    {"-t WALLTIME --site SITE,SITE [-n PROCS] [-A ACCOUNT] [-q QOS] [-c CLASS] [--machine NAME] "
     "[--node-type NAME=PROCS]… [--keep TIME [--reusable]]",
     quote_run, .method = "Quote"},
    {"list [-A ACCOUNT] [--all]", quote_kept, .method = "QuoteList"},
    {"show QUOTE", quote_show, .method = "QuoteList", .fields = "all=true"},
    {"cancel QUOTE", .method = "QuoteCancel", .sentence = "cancelled"},
    {0}};

const struct cli_command quote_command = {
    .name = "quote",
    .group = CLI_USERS,
    .summary = "the price of a request, and whether your account can pay it",
    .forms = quote_forms,
    .options = quote_options,
    .service = &bank_service,
    .example = "nui quote -n 8 -t 1:00:00 --site alpha,beta -A phys",
};
