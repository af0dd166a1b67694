/* service: the table of methods and who may call them, and the wiring of committer, reader,
 * checkpointer and timers. main.c creates it. It never blocks and says SERVING only while every
 * call could be answered; what a method does stands in the other files of this folder. */
#include "bank/svc/service.h"

#include <stdlib.h>
#include <string.h>

#include "bank/svc/notify.h"
#include "bank/svc/service_impl.h"
#include "proto/rpc/envelope.h"

#define OFFICES (RPC_ALLOW (PRINCIPAL_AGENCY) | RPC_ALLOW (PRINCIPAL_OPERATOR))
/* What concerns all: the bank's own, operators and, as the ledger says, allocation managers. */
#define BANKS (RPC_ALLOW (PRINCIPAL_OPERATOR) | RPC_ALLOW (PRINCIPAL_USER))
/* People too: the ledger says which of them (allocation managers, leads, auditors, members). */
#define PEOPLE (OFFICES | RPC_ALLOW (PRINCIPAL_USER))
/* Beside people a gate for a user, to look. */
#define LOOK (PEOPLE | RPC_GATE_READ)
#define SITES (RPC_ALLOW (PRINCIPAL_SITE) | RPC_ALLOW (PRINCIPAL_OPERATOR))
/* A signed job with its script and chain, twice over. */
enum { SIGNED_BYTES_MAX = ENVELOPE_BODY_MAX + (256 << 10) };

/* Several times what it was seen to write on fast disks. */
enum { NUMBERS_PER_S = 100000 };

/* Ten thousand findings. */
enum { RECON_BYTES_MAX = 3 << 20 };

/* Who may call what, by the kind of certificate: nui-bank(8) has the whole table. Sites act for
 * themselves only: their name is the caller's. */
static const struct rpc_method methods[] = {
    {.name = "Quote",
     .allow = RPC_ALLOW (PRINCIPAL_META) | RPC_ALLOW (PRINCIPAL_SITE) | RPC_ALLOW (PRINCIPAL_USER),
     .request_bytes_max = SIGNED_BYTES_MAX,
     .handler = handle_quote},
    {.name = "QuoteList", .allow = LOOK, .handler = handle_quote_list},
    {.name = "QuoteCancel", .allow = PEOPLE, .handler = handle_quote_cancel},
    {.name = "Hold", .allow = SITES, .request_bytes_max = SIGNED_BYTES_MAX, .handler = handle_hold},
    {.name = "Charge",
     .allow = SITES,
     .request_bytes_max = SIGNED_BYTES_MAX,
     .handler = handle_charge},
    {.name = "Release", .allow = SITES, .handler = handle_release},
    {.name = "HoldGroup",
     .allow = RPC_ALLOW (PRINCIPAL_META) | RPC_ALLOW (PRINCIPAL_OPERATOR),
     .request_bytes_max = SIGNED_BYTES_MAX,
     .handler = handle_hold_group},
    {.name = "HandoverKey", .allow = RPC_ALLOW (PRINCIPAL_META), .handler = handle_handover_key},
    {.name = "Extend", .allow = SITES, .handler = handle_extend},
    {.name = "ProjectCreate", .allow = PEOPLE, .handler = handle_project_create},
    {.name = "ProjectMove", .allow = PEOPLE, .handler = handle_project_move},
    {.name = "UserCreate", .allow = PEOPLE, .handler = handle_user_create},
    {.name = "Member", .allow = PEOPLE, .handler = handle_member},
    {.name = "AccountCreate", .allow = PEOPLE, .handler = handle_account_create},
    {.name = "AccountModify", .allow = PEOPLE, .handler = handle_account_modify},
    {.name = "AccountRename", .allow = PEOPLE, .handler = handle_account_rename},
    {.name = "AccountClose", .allow = PEOPLE, .handler = handle_account_close},
    {.name = "AccountReopen", .allow = PEOPLE, .handler = handle_account_reopen},
    {.name = "Freeze", .allow = PEOPLE, .handler = handle_freeze},
    {.name = "RoleSet", .allow = BANKS, .handler = handle_role_set},
    {.name = "RoleList", .allow = PEOPLE, .handler = handle_role_list},
    {.name = "FunderCreate", .allow = OFFICES, .handler = handle_funder_create},
    {.name = "Grant", .allow = OFFICES, .handler = handle_grant},
    {.name = "GrantExtend", .allow = OFFICES, .handler = handle_grant_extend},
    {.name = "GrantAmend", .allow = OFFICES, .handler = handle_grant_amend},
    {.name = "GrantRevoke", .allow = OFFICES, .handler = handle_grant_revoke},
    {.name = "SplitBack", .allow = PEOPLE, .handler = handle_split_back},
    {.name = "Split", .allow = PEOPLE, .handler = handle_split},
    {.name = "CarryForward", .allow = PEOPLE, .handler = handle_carry_forward},
    {.name = "Expire", .allow = PEOPLE, .handler = handle_expire},
    {.name = "GrantList", .allow = LOOK, .handler = handle_grant_list},
    {.name = "GrantStatement", .allow = PEOPLE, .handler = handle_grant_statement},
    {.name = "JobList", .allow = LOOK | RPC_ALLOW (PRINCIPAL_SITE), .handler = handle_job_list},
    {.name = "ReconRecord",
     .allow = OFFICES,
     .request_bytes_max = RECON_BYTES_MAX,
     .handler = handle_recon_record},
    {.name = "ReconSet", .allow = OFFICES, .handler = handle_recon_set},
    {.name = "ReconList",
     .allow = PEOPLE | RPC_ALLOW (PRINCIPAL_SITE),
     .handler = handle_recon_list},
    {.name = "Deposit", .allow = PEOPLE, .handler = handle_deposit},
    {.name = "Withdraw", .allow = PEOPLE, .handler = handle_withdraw},
    {.name = "Transfer", .allow = PEOPLE, .handler = handle_transfer},
    {.name = "Refund", .allow = PEOPLE, .handler = handle_refund},
    {.name = "AllocationModify", .allow = PEOPLE, .handler = handle_allocation_modify},
    {.name = "RateSet", .allow = BANKS | RPC_ALLOW (PRINCIPAL_SITE), .handler = handle_rate_set},
    {.name = "SiteSet", .allow = BANKS, .handler = handle_site_set},
    {.name = "RateList", .allow = RPC_ALLOW_ANY, .handler = handle_rate_list},
    {.name = "Balance", .allow = LOOK, .handler = handle_balance},
    {.name = "Statement", .allow = LOOK, .handler = handle_statement},
    {.name = "Usage", .allow = LOOK, .handler = handle_usage},
    {.name = "UsageRecords",
     .allow = LOOK | RPC_ALLOW (PRINCIPAL_SITE),
     .handler = handle_usage_records},
    {.name = "HoldList", .allow = LOOK | RPC_ALLOW (PRINCIPAL_SITE), .handler = handle_hold_list},
    {.name = "List", .allow = LOOK, .handler = handle_list},
    {.name = "Blocks", .allow = RPC_ALLOW_ANY, .handler = handle_blocks},
    {.name = "Operations", .allow = PEOPLE, .handler = handle_operations},
    {.name = "Contents", .allow = PEOPLE, .handler = handle_contents},
    {.name = "Proof", .allow = PEOPLE, .handler = handle_proof},
    {.name = "LedgerCheck", .allow = PEOPLE, .handler = handle_ledger_check},
    {.name = "Clock", .allow = RPC_ALLOW_ANY, .handler = handle_clock},
    {.name = "ClockAccept",
     .allow = RPC_ALLOW (PRINCIPAL_OPERATOR),
     .handler = handle_clock_accept},
    {.name = NULL},
};

/* So often within READBOUND the database shows that it commits. */
enum { PULSES = 4 };

/* Serving means that every call can be answered: both connections are there, the database commits, and the clock is
 * right. */
static void serving_tell (struct bank_service *svc, bool writer, bool reader)
{
    bool commits = writer && committer_silence (svc->committer) != INT64_MAX;
    rpcserver_set_serving (svc->server, commits && reader && !svc->clock_ahead);
}

static void on_pulse (void *arg)
{
    struct bank_service *svc = arg;
    serving_tell (svc, committer_is_up (svc->committer), reader_is_up (svc->reader));
}

static duration_us silence (void *arg)
{
    return committer_silence (((struct bank_service *)arg)->committer);
}

static void on_clock (void *arg, const char *why)
{
    struct bank_service *svc = arg;
    svc->clock_ahead = why;
    serving_tell (svc, svc->committer && committer_is_up (svc->committer),
                  reader_is_up (svc->reader));
    notify_clock (svc->notify, why);
}

static void on_writer (void *arg, bool up, const char *why)
{
    struct bank_service *svc = arg;
    notify_writer (svc->notify, up, why);
    serving_tell (svc, up, reader_is_up (svc->reader));
    if (up) {
        reader_start (svc->reader);
        checkpointer_start (svc->checkpointer);
    }
}

static void on_reader (void *arg, bool up)
{
    struct bank_service *svc = arg;
    serving_tell (svc, committer_is_up (svc->committer), up);
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
    svc->limits = config->limits;
    svc->verified = verified_create ();
    svc->database = strdup (config->database);
    rpcserver_set_serving (svc->server, false);
    struct committer_config committer = {.base = config->base,
                                         .log = config->log,
                                         .conninfo = svc->database,
                                         .encode = reply_encode,
                                         .sign = audit_sign,
                                         .state = on_writer,
                                         .clock_bound = svc->limits.clock,
                                         .numbers_per_s = NUMBERS_PER_S,
                                         .on_clock = on_clock,
                                         .pulse = svc->limits.read / PULSES,
                                         .on_pulse = on_pulse,
                                         .arg = svc};
    svc->reader = reader_create (config->base, config->log, svc->database, on_reader, svc, err);
    svc->committer = svc->reader ? committer_create (&committer, err) : NULL;
    if (svc->committer)
        reader_silence (svc->reader, silence, svc->limits.read);
    svc->expiry = svc->committer ? expiry_create (svc) : NULL;
    svc->state = svc->committer ? state_create (svc) : NULL;
    svc->metrics = svc->committer ? metrics_create (svc) : NULL;
    svc->notify = svc->committer ? notify_create (svc, err) : NULL;
    svc->near = svc->notify ? near_create (svc) : NULL;
    svc->checkpointer =
        svc->notify ? checkpointer_create (config->base, config->log, svc->database, svc->committer,
                                           svc->limits.checkpoint_entries, svc->limits.replay, err)
                    : NULL;
    if (!svc->checkpointer ||
        rpcserver_add_service (config->server, &nui__bank__v1__bank__descriptor, methods, svc,
                               err) < 0) {
        bank_service_destroy (svc);
        return NULL;
    }
    return svc;
}

void bank_service_settings (struct bank_service *svc, const struct bank_limits *limits)
{
    svc->limits = *limits;
    state_settings (svc->state);
    committer_clock_bound (svc->committer, limits->clock);
    committer_pulse (svc->committer, limits->read / PULSES);
    reader_silence (svc->reader, silence, limits->read);
    checkpointer_settings (svc->checkpointer, limits->checkpoint_entries, limits->replay);
}

void bank_service_destroy (struct bank_service *svc)
{
    if (!svc)
        return;
    if (svc->committer) {
        struct committer_stats stats = committer_stats (svc->committer);
        log_event (
            svc->log, LOG_LEVEL_INFO, "bank", "stopped",
            "batches=%llu behind=%llu beside=%llu requests=%llu replays=%llu retries=%llu largest_batch=%u",
            (unsigned long long)stats.batches, (unsigned long long)stats.behind,
            (unsigned long long)stats.beside, (unsigned long long)stats.requests,
            (unsigned long long)stats.replays, (unsigned long long)stats.retries, stats.batch_max);
    }
    notify_destroy (svc->notify);
    svc->notify = NULL;
    metrics_destroy (svc->metrics);
    svc->metrics = NULL;
    expiry_destroy (svc->expiry);
    near_destroy (svc->near);
    state_destroy (svc->state);
    checkpointer_destroy (svc->checkpointer);
    committer_destroy (svc->committer);
    reader_destroy (svc->reader);
    verified_destroy (svc->verified);
    strbuf_free (&svc->signer);
    strbuf_free (&svc->signature);
    free (svc->database);
    free (svc);
}
