#include "bank/svc/service.h"

#include <stdlib.h>
#include <string.h>

#include "bank/svc/service_impl.h"
#include "proto/rpc/envelope.h"

#define FUNDERS (RPC_ALLOW (PRINCIPAL_AGENCY) | RPC_ALLOW (PRINCIPAL_OPERATOR))
/* Who may read everybody's operations. */
#define AUDITORS RPC_ALLOW (PRINCIPAL_OPERATOR)
#define VIEWERS (FUNDERS | RPC_ALLOW (PRINCIPAL_USER))
/* A signed job with its script and chain, twice over. */
enum { SIGNED_BYTES_MAX = ENVELOPE_BODY_MAX + (256 << 10) };

/* Who may do what. Sites act for themselves only: their name is the caller's. */
static const struct rpc_method methods[] = {
    {.name = "Quote",
     .allow = RPC_ALLOW (PRINCIPAL_META) | RPC_ALLOW (PRINCIPAL_SITE) | RPC_ALLOW (PRINCIPAL_USER),
     .request_bytes_max = SIGNED_BYTES_MAX,
     .handler = handle_quote},
    {.name = "Hold",
     .allow = RPC_ALLOW (PRINCIPAL_SITE),
     .request_bytes_max = SIGNED_BYTES_MAX,
     .handler = handle_hold},
    {.name = "Charge",
     .allow = RPC_ALLOW (PRINCIPAL_SITE),
     .request_bytes_max = SIGNED_BYTES_MAX,
     .handler = handle_charge},
    {.name = "Release", .allow = RPC_ALLOW (PRINCIPAL_SITE), .handler = handle_release},
    {.name = "ProjectCreate", .allow = FUNDERS, .handler = handle_project_create},
    {.name = "UserCreate", .allow = FUNDERS, .handler = handle_user_create},
    {.name = "Member", .allow = FUNDERS, .handler = handle_member},
    {.name = "AccountCreate", .allow = FUNDERS, .handler = handle_account_create},
    {.name = "AccountModify", .allow = FUNDERS, .handler = handle_account_modify},
    {.name = "Deposit", .allow = FUNDERS, .handler = handle_deposit},
    {.name = "Withdraw", .allow = FUNDERS, .handler = handle_withdraw},
    {.name = "Transfer", .allow = FUNDERS, .handler = handle_transfer},
    {.name = "Refund", .allow = FUNDERS, .handler = handle_refund},
    {.name = "AllocationModify", .allow = FUNDERS, .handler = handle_allocation_modify},
    {.name = "RateSet", .allow = FUNDERS, .handler = handle_rate_set},
    {.name = "SiteSet", .allow = FUNDERS, .handler = handle_site_set},
    {.name = "RateList", .allow = RPC_ALLOW_ANY, .handler = handle_rate_list},
    {.name = "Balance", .allow = VIEWERS, .handler = handle_balance},
    {.name = "Statement", .allow = VIEWERS, .handler = handle_statement},
    {.name = "Usage", .allow = VIEWERS, .handler = handle_usage},
    {.name = "HoldList", .allow = VIEWERS, .handler = handle_hold_list},
    {.name = "List", .allow = VIEWERS, .handler = handle_list},
    {.name = "Blocks", .allow = RPC_ALLOW_ANY, .handler = handle_blocks},
    {.name = "Operations", .allow = AUDITORS, .handler = handle_operations},
    {.name = "Proof", .allow = VIEWERS, .handler = handle_proof},
    {.name = "LedgerCheck", .allow = AUDITORS, .handler = handle_ledger_check},
    {.name = NULL},
};

/* Serving means that every call can be answered: both connections are there. */
static void on_writer (void *arg, bool up, const char *why)
{
    (void)why;
    struct bank_service *svc = arg;
    rpcserver_set_serving (svc->server, up && reader_is_up (svc->reader));
    if (up)
        reader_start (svc->reader);
}

static void on_reader (void *arg, bool up)
{
    struct bank_service *svc = arg;
    rpcserver_set_serving (svc->server, up && committer_is_up (svc->committer));
}

struct bank_service *bank_service_create (const struct bank_service_config *config, struct err *err)
{
    struct bank_service *svc = calloc (1, sizeof (*svc));
    if (!svc) {
        err_set (err, ERR_NOMEM, "bank: out of memory");
        return NULL;
    }
    svc->base = config->base;
    svc->log = config->log;
    svc->id = config->id;
    svc->server = config->server;
    svc->verified = verified_create ();
    svc->database = strdup (config->database);
    rpcserver_set_serving (svc->server, false);
    struct committer_config committer = {.base = config->base,
                                         .log = config->log,
                                         .conninfo = svc->database,
                                         .encode = reply_encode,
                                         .sign = audit_sign,
                                         .state = on_writer,
                                         .arg = svc};
    svc->reader = reader_create (config->base, config->log, svc->database, on_reader, svc, err);
    svc->committer = svc->reader ? committer_create (&committer, err) : NULL;
    svc->expiry = svc->committer ? expiry_create (svc) : NULL;
    if (!svc->committer || rpcserver_add_service (config->server, &nui__bank__v1__bank__descriptor,
                                                  methods, svc, err) < 0) {
        bank_service_destroy (svc);
        return NULL;
    }
    return svc;
}

void bank_service_destroy (struct bank_service *svc)
{
    if (!svc)
        return;
    if (svc->committer) {
        struct committer_stats stats = committer_stats (svc->committer);
        log_event (svc->log, LOG_LEVEL_INFO, "bank", "stopped",
                   "batches=%llu requests=%llu replays=%llu retries=%llu largest_batch=%u",
                   (unsigned long long)stats.batches, (unsigned long long)stats.requests,
                   (unsigned long long)stats.replays, (unsigned long long)stats.retries,
                   stats.batch_max);
    }
    expiry_destroy (svc->expiry);
    committer_destroy (svc->committer);
    reader_destroy (svc->reader);
    verified_destroy (svc->verified);
    strbuf_free (&svc->signer);
    strbuf_free (&svc->signature);
    free (svc->database);
    free (svc);
}
