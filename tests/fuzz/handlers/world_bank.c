/* nui-bank over a PostgreSQL of its own: projects, accounts, grants, rates, holds, charges. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/svc/service.h"
#include "proto/base/clock.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/rpc/envelope.h"
#include "tests/fuzz/handlers/world.h"
#include "tests/unit/bank/pg_fixture.h"

static const struct inproc_caller callers[] = {
    {PRINCIPAL_SITE, "alpha", false, 0},   {PRINCIPAL_USER, "alice", false, 0},
    {PRINCIPAL_OPERATOR, "ops", false, 0}, {PRINCIPAL_AGENCY, "nsf", false, 0},
    {PRINCIPAL_META, "meta", false, 0},    {PRINCIPAL_USER, "bob", false, 0},
    {PRINCIPAL_SITE, "beta", false, 0},    {PRINCIPAL_AGENCY, "doe", false, 0},
    {PRINCIPAL_USER, "eve", false, 0},     {PRINCIPAL_NONE, NULL, false, 0},
};
enum { ALPHA, ALICE, OPS, NSF };

#define TEXT(s) ((char *)(uintptr_t)(s))

static struct bank {
    struct ground *ground;
    struct tlsid *id;
    struct pg_fixture *pg;
    struct bank_service *service;
    char dir[256];
    uint64_t keys;
    bool founded;
} bank;

static ProtobufCBinaryData key (uint8_t buf[16])
{
    uint64_t n = ++bank.keys;
    memset (buf, 0x5a, 16);
    memcpy (buf, &n, sizeof n);
    return (ProtobufCBinaryData){16, buf};
}

static void must (const char *method, int who, const ProtobufCMessage *request)
{
    protobuf_c_message_free_unpacked (inproc_must (method, &callers[who], request), NULL);
}

static void account (const char *name, const char *project)
{
    uint8_t k[16];
    Nui__Bank__V1__AccountCreateRequest r = NUI__BANK__V1__ACCOUNT_CREATE_REQUEST__INIT;
    Nui__Bank__V1__DepositRequest d = NUI__BANK__V1__DEPOSIT_REQUEST__INIT;
    char *fallbacks[] = {TEXT ("rich")};
    r.key = key (k);
    r.name = d.account = TEXT (name);
    r.project = TEXT (project);
    r.fallbacks = fallbacks;
    r.n_fallbacks = strcmp (name, "phys") == 0;
    must ("Bank.AccountCreate", NSF, &r.base);
    d.key = key (k);
    d.amount_micro = 1000000 * MICRO_PER_CREDIT;
    must ("Bank.Deposit", NSF, &d.base);
}

static void hold (uint64_t number)
{
    uint8_t k[16];
    Nui__Bank__V1__HoldRequest r = NUI__BANK__V1__HOLD_REQUEST__INIT;
    char job[32];
    r.key = key (k);
    r.envelope = plain_job (bank.ground, &(struct plain_job){.number = number, .site = "alpha"});
    snprintf (job, sizeof job, "alpha.%llu", (unsigned long long)number);
    r.site_job_id = job;
    r.grid_job_id = TEXT ("");
    r.component = TEXT ("main");
    r.procs = 1;
    r.walltime_us = 600 * US_PER_S;
    r.start_us = clock_now_us ();
    must ("Bank.Hold", ALPHA, &r.base);
    envelope_free (r.envelope);
}

static void found (bool large)
{
    uint8_t k[16];
    Nui__Bank__V1__ProjectCreateRequest project = NUI__BANK__V1__PROJECT_CREATE_REQUEST__INIT;
    project.key = key (k);
    project.name = TEXT ("physics");
    must ("Bank.ProjectCreate", NSF, &project.base);
    static const char *const users[] = {"nui://test/user/alice", "nui://test/user/bob"};
    for (int i = 0; i < 2; i++) {
        Nui__Bank__V1__UserCreateRequest user = NUI__BANK__V1__USER_CREATE_REQUEST__INIT;
        Nui__Bank__V1__MemberRequest member = NUI__BANK__V1__MEMBER_REQUEST__INIT;
        user.key = key (k);
        user.identity = member.identity = TEXT (users[i]);
        must ("Bank.UserCreate", NSF, &user.base);
        member.key = key (k);
        member.project = TEXT ("physics");
        member.role = TEXT (i ? "member" : "lead");
        must ("Bank.Member", NSF, &member.base);
    }
    account ("rich", "physics");
    account ("phys", "physics");
    for (int i = 0; i < (large ? 200 : 4); i++) {
        char name[32];
        snprintf (name, sizeof name, "a%d", i);
        account (name, "physics");
    }
    static const char *const sites[] = {"alpha", "beta"};
    for (int i = 0; i < 2; i++) {
        Nui__Bank__V1__RateSetRequest rate = NUI__BANK__V1__RATE_SET_REQUEST__INIT;
        rate.key = key (k);
        rate.site = TEXT (sites[i]);
        rate.multiplier_ppm = 1000000;
        must ("Bank.RateSet", OPS, &rate.base);
    }
    for (uint64_t i = 1; i <= (large ? 600u : 10u); i++)
        hold (i);
}

static bool is_up (void *arg)
{
    (void)arg;
    Nui__Bank__V1__RateListRequest r = NUI__BANK__V1__RATE_LIST_REQUEST__INIT;
    size_t len = protobuf_c_message_get_packed_size (&r.base);
    uint8_t bytes[64];
    struct inproc_result result;
    if (len > sizeof bytes)
        abort ();
    protobuf_c_message_pack (&r.base, bytes);
    inproc_call (inproc_method_find ("Bank.RateList"), &callers[OPS], bytes, len, NULL, &result);
    Nui__Bank__V1__ClockRequest c = NUI__BANK__V1__CLOCK_REQUEST__INIT;
    protobuf_c_message_pack (&c.base, bytes);
    if (!result.answered || result.status != RPC_OK)
        return false;
    Nui__Bank__V1__UserCreateRequest u = NUI__BANK__V1__USER_CREATE_REQUEST__INIT;
    uint8_t k[16] = {9}, user[128];
    u.key = (ProtobufCBinaryData){16, k};
    u.identity = TEXT ("nui://test/user/zoe");
    len = protobuf_c_message_pack (&u.base, user);
    inproc_call (inproc_method_find ("Bank.UserCreate"), &callers[OPS], user, len, NULL, &result);
    return result.answered && result.status == RPC_OK;
}

static void pg_stop (void)
{
    pg_fixture_stop (bank.pg);
}

static void bank_open (struct ground *ground, bool large)
{
    struct err err = {0};
    bank.ground = ground;
    if (!bank.id) {
        testca_issue (ground->ca,
                      &(struct testca_cert){.name = "bank", .uri = "nui://test/bank/bank"});
        bank.id = testca_tlsid (ground->dir, "ca", "bank", true);
        bank.pg = pg_fixture_start (false);
        if (!bank.pg)
            exit (1);
        atexit (pg_stop);
    }
    /* One for the life of the process: each world goes on with what the one before left. */
    static const char *database;
    if (!database)
        database = pg_fixture_database (bank.pg, "bank");
    ground_clear (ground, bank.dir);
    struct inproc_config config = {.id = bank.id, .dir = bank.dir, .patience_ms = 20000};
    inproc_open (&config);
    struct bank_service_config service = {.base = inproc_base (),
                                          .id = bank.id,
                                          .server = daemon_server (inproc_daemon ()),
                                          .database = database,
                                          .limits = {.state = 3600 * US_PER_S,
                                                     .hold = 7 * 86400 * US_PER_S,
                                                     .quote = 7 * 86400 * US_PER_S,
                                                     .replay = 90 * 86400 * US_PER_S,
                                                     .read = 60 * US_PER_S,
                                                     .clock = 60 * US_PER_S,
                                                     .tolerance = 86400 * US_PER_S,
                                                     .checkpoint_entries = 1000}};
    bank.service = bank_service_create (&service, &err);
    if (!bank.service) {
        fprintf (stderr, "world_bank: %s\n", err.text);
        abort ();
    }
    if (!inproc_until (is_up, NULL)) {
        fprintf (stderr, "world_bank: the database is not there\n");
        abort ();
    }
    if (!bank.founded)
        found (large);
    bank.founded = true;
}

static void bank_close (void)
{
    bank_service_destroy (bank.service);
    inproc_close ();
}

struct world world = {.name = "nui-bank",
                      .signers = {.site = "alpha"},
                      .callers = callers,
                      .open = bank_open,
                      .close = bank_close};
