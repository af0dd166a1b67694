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

/* Its name and end are there where rates are kept. */
static int quote_print (struct cli_context *ctx, char **site,
                        const Nui__Bank__V1__QuoteReply *reply)
{
    static const struct table_column columns[] = {
        {"site", "Site", TABLE_TEXT, 0},       {"price", "Price", TABLE_CREDITS, 0},
        {"funded", "Funded", TABLE_BOOL, 0},   {"account", "Account", TABLE_TEXT, 0},
        {"formula", "Formula", TABLE_TEXT, 0}, {"quote", "Quote", TABLE_TEXT, 0},
        {"expires", "Until", TABLE_TIME, 0}};
    bool kept = reply->quote_id[0];
    struct table *table = table_create (columns, kept ? 7 : 5);
    for (size_t i = 0; i < reply->n_prices; i++) {
        table_text (table, site[i]);
        table_credits (table, reply->prices[i]->amount_micro);
        table_bool (table, reply->prices[i]->funded);
        table_text (table, reply->prices[i]->account);
        table_text (table, reply->prices[i]->formula);
        if (kept) {
            table_text (table, reply->quote_id);
            table_time (table, reply->expires_us);
        }
        table_end_row (table);
    }
    int rc = table_print (table, ctx);
    table_destroy (table);
    for (size_t i = 0; i < reply->n_candidates; i++)
        fprintf (stderr, "nui quote: account %s%s: %s\n", reply->candidates[i]->account,
                 reply->candidates[i]->fallback ? " (a fallback)" : "",
                 reply->candidates[i]->reason->text);
    return rc;
}

static const char *state_name (Nui__Bank__V1__QuoteState state)
{
    static const char *const name[] = {"open", "used", "expired", "cancelled"};
    return state < sizeof (name) / sizeof (name[0]) ? name[state] : "unknown";
}

static void quote_rows (struct cli_context *ctx, const Nui__Bank__V1__QuoteItem *q,
                        struct table *table)
{
    for (size_t i = 0; i < q->n_sites; i++) {
        table_text (table, q->quote_id);
        table_text (table, cli_format (ctx) == CLI_TABLE ? bank_short_name (q->user) : q->user);
        table_text (table, q->account[0] ? q->account : NULL);
        table_text (table, q->sites[i]->site);
        if (q->sites[i]->priced)
            table_credits (table, q->sites[i]->price_micro);
        else
            table_null (table);
        table_int (table, q->sites[i]->rate_version);
        table_text (table, state_name (q->state));
        table_time (table, q->expires_us);
        table_bool (table, q->reusable);
        table_text (table, q->job[0] ? q->job : NULL);
        table_end_row (table);
    }
}

/* Page by page; one quote, or those of an account. */
static int quote_list (struct cli_context *ctx, const char *quote, const char *account, bool all)
{
    static const struct table_column columns[] = {
        {"quote", "Quote", TABLE_TEXT, 0},      {"user", "User", TABLE_TEXT, 0},
        {"account", "Account", TABLE_TEXT, 0},  {"site", "Site", TABLE_TEXT, 0},
        {"price", "Price", TABLE_CREDITS, 0},   {"card", "Card", TABLE_INT, 0},
        {"state", "State", TABLE_TEXT, 0},      {"expires", "Until", TABLE_TIME, 0},
        {"reusable", "Reusable", TABLE_BOOL, 0}, {"job", "Job", TABLE_TEXT, 0}};
    struct table *table = table_create (columns, sizeof (columns) / sizeof (columns[0]));
    Nui__Bank__V1__QuoteListRequest request = NUI__BANK__V1__QUOTE_LIST_REQUEST__INIT;
    struct err err = {0};
    size_t count;
    request.quote_id = bank_text (quote);
    request.account = bank_text (account ? account : "");
    request.all = all;
    do {
        ProtobufCMessage *message = bank_call (ctx, "QuoteList", &request.base, &err);
        if (!message) {
            table_destroy (table);
            return cli_fail ("quote", &err);
        }
        const Nui__Bank__V1__QuoteListReply *reply = (Nui__Bank__V1__QuoteListReply *)message;
        count = reply->n_quotes;
        for (size_t i = 0; i < count; i++)
            quote_rows (ctx, reply->quotes[i], table);
        if (count)
            request.after = reply->quotes[count - 1]->number;
        protobuf_c_message_free_unpacked (message, NULL);
    } while (count && !quote[0]);
    int rc = table_print (table, ctx);
    table_destroy (table);
    return rc;
}

static int quote_cancel (struct cli_context *ctx, const char *quote)
{
    uint8_t key[16];
    Nui__Bank__V1__QuoteCancelRequest request = NUI__BANK__V1__QUOTE_CANCEL_REQUEST__INIT;
    request.key = bank_key (key);
    request.quote_id = bank_text (quote);
    return bank_do (ctx, "quote", "QuoteCancel", &request.base, "cancelled");
}

struct quote_args {
    const char *account, *site, *qos, *class_, *machine;
    uint64_t procs;
    duration_us walltime, keep;
    bool reusable, all;
    struct cli_list nodes;
};

static int quote_ask (struct cli_context *ctx, const struct quote_args *args, char **site,
                      int sites)
{
    uint8_t key[16];
    Nui__Bank__V1__PriceItem item[QUOTE_SITES_MAX], *items[QUOTE_SITES_MAX];
    struct bank_nodes nodes;
    struct err err = {0};
    if (bank_nodes (&args->nodes, &nodes, &err) < 0)
        return cli_usage ("quote", "%s", err.text);
    for (int i = 0; i < sites; i++) {
        nui__bank__v1__price_item__init (&item[i]);
        item[i].site = site[i];
        item[i].procs = args->procs;
        item[i].walltime_us = args->walltime;
        item[i].qos = bank_text (args->qos);
        item[i].class_ = bank_text (args->class_);
        item[i].machine = bank_text (args->machine);
        item[i].asked = &nodes.asked;
        items[i] = &item[i];
    }
    Nui__Bank__V1__QuoteRequest request = NUI__BANK__V1__QUOTE_REQUEST__INIT;
    request.envelope = quote_envelope (ctx, args->account, &err);
    if (!request.envelope)
        return cli_fail ("quote", &err);
    request.n_items = (size_t)sites;
    request.items = items;
    if (args->keep) {
        request.key = bank_key (key);
        request.keep_us = args->keep;
        request.reusable = args->reusable;
    }
    ProtobufCMessage *reply = bank_call (ctx, "Quote", &request.base, &err);
    envelope_free (request.envelope);
    if (!reply)
        return cli_fail ("quote", &err);
    int rc = quote_print (ctx, site, (Nui__Bank__V1__QuoteReply *)reply);
    protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

/* list, show, cancel: of what is kept. */
static int quote_kept (struct cli_context *ctx, const struct quote_args *args,
                       const struct cli_operands *o)
{
    bool priced = args->site || args->walltime || args->keep || args->reusable || args->qos[0] ||
                  args->class_[0] || args->machine[0] || args->nodes.count || args->procs != 1;
    bool plain = !priced && !args->account && !args->all;
    if (strcmp (o->item[0], "list") == 0 && o->count == 1 && !priced)
        return quote_list (ctx, "", args->account, args->all);
    if (strcmp (o->item[0], "show") == 0 && o->count == 2 && o->item[1][0] && plain)
        return quote_list (ctx, o->item[1], NULL, true);
    if (strcmp (o->item[0], "cancel") == 0 && o->count == 2 && plain)
        return quote_cancel (ctx, o->item[1]);
    return cli_usage ("quote", "say -t WALLTIME --site SITE for a price, list [-A ACCOUNT] [--all], "
                               "show QUOTE or cancel QUOTE");
}

int cmd_quote (struct cli_context *ctx, int argc, char **argv)
{
    struct quote_args args = {.procs = 1, .qos = "", .class_ = "", .machine = ""};
    static const struct cli_option options[] = {
        {"account", 'A', CLI_OPT_STRING, offsetof (struct quote_args, account), 0, 0},
        {"procs", 'n', CLI_OPT_COUNT, offsetof (struct quote_args, procs), 1, 100000000},
        {"walltime", 't', CLI_OPT_DURATION, offsetof (struct quote_args, walltime), 0, 0},
        {"site", 0, CLI_OPT_STRING, offsetof (struct quote_args, site), 0, 0},
        {"qos", 'q', CLI_OPT_STRING, offsetof (struct quote_args, qos), 0, 0},
        {"class", 'c', CLI_OPT_STRING, offsetof (struct quote_args, class_), 0, 0},
        {"machine", 0, CLI_OPT_STRING, offsetof (struct quote_args, machine), 0, 0},
        {"node-type", 0, CLI_OPT_LIST, offsetof (struct quote_args, nodes), 0, 0},
        {"keep", 0, CLI_OPT_DURATION, offsetof (struct quote_args, keep), 0, 0},
        {"reusable", 0, CLI_OPT_FLAG, offsetof (struct quote_args, reusable), 0, 0},
        {"all", 0, CLI_OPT_FLAG, offsetof (struct quote_args, all), 0, 0},
        {0}};
    struct cli_operands operands;
    struct err err = {0};
    char list[1024], *site[QUOTE_SITES_MAX];
    int rc;
    if (!cli_options (ctx, options, 0, &args, argc, argv, &operands, &rc))
        return rc;
    if (operands.count)
        return quote_kept (ctx, &args, &operands);
    if (args.all)
        return cli_usage (argv[0], "--all is for nui quote list");
    if (args.walltime <= 0 || args.walltime == TIME_US_MAX)
        return cli_usage (argv[0], "say how long with -t, for example -t 1:00:00");
    if (!args.site || strlen (args.site) >= sizeof (list))
        return cli_usage (argv[0],
                          "name the sites to be priced with --site, for example --site alpha,beta");
    snprintf (list, sizeof (list), "%s", args.site);
    int sites = bank_split (list, site, QUOTE_SITES_MAX);
    if (sites < 1)
        return cli_usage (argv[0], "--site takes 1 to %d names", QUOTE_SITES_MAX);
    if (args.reusable && !args.keep)
        return cli_usage (argv[0], "--reusable says something of rates that --keep keeps");
    if (cli_config (ctx, &err) < 0)
        return cli_fail (argv[0], &err);
    if (!args.account)
        args.account = cli_account (ctx);
    if (!args.account)
        return cli_usage (argv[0], "name an account with -A");
    return quote_ask (ctx, &args, site, sites);
}
