/* Who may do what, cell by cell: every call of the bank by every role, against the real nui-bank;
 * and whose rows each sees. The table is nui-bank(8)'s. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankd.h"
#include "tests/unit/bank/pg_fixture.h"

#define TEXT(s) ((char *)(uintptr_t)(s))

#define SPLIT "alloc.9" /* that up() splits off: more than there is of it is asked back */

enum { ROLES = 8 };
static const struct {
    const char *name;
    enum bankd_who who;
} roles[ROLES] = {{"funder", WHO_NSF},   {"manager", WHO_MARA}, {"lead", WHO_LENA},
                  {"member", WHO_ALICE}, {"operator", WHO_OPS}, {"auditor", WHO_OTTO},
                  {"site", WHO_ALPHA},   {"meta", WHO_META}};

/* y: may; -: is refused for who they are. The fields make a request that is whole, but changes
 * nothing that others look at: what it names is not there, or is as it is asked to be. */
/* clang-format off */
static const struct {
    const char *method, *cells, *fields;
} table[] = {
    /*                   FMLmOASX */
    {"Quote",           "-yyy-yyy", ""},
    {"QuoteList",       "yyyyyy--", "all=1"},
    {"QuoteCancel",     "yyyyyy--", "quote_id=quote.999"},
    {"Hold",            "----y-y-", "site=alpha"},
    {"Charge",          "----y-y-", "site=alpha"},
    {"Release",         "----y-y-", "hold_id=hold.999"},
    {"HoldGroup",       "----y--y", ""},
    {"HandoverKey",     "-------y", ""},
    {"Extend",          "----y-y-", "hold_id=hold.999 walltime_us=1"},
    {"ProjectCreate",   "yyy-y---", "name=physics parent=physics"},
    {"ProjectMove",     "yy--y---", "name=physics parent=physics"},
    {"UserCreate",      "yy--y---", "identity=" ALICE_URI},
    {"Member",          "yyy-y---", "project=physics identity=nui://test/user/nobody"},
    {"AccountCreate",   "yyy-y---", "name=phys project=physics"},
    {"AccountModify",   "yyy-y---", "name=phys keep_fallbacks=1"},
    {"AccountRename",   "yyy-y---", "name=phys to=phys"},
    {"AccountClose",    "yy--y---", "name=nothing"},
    {"AccountReopen",   "yy--y---", "name=nothing"},
    {"Freeze",          "yyy-y---", "what=account name=phys undo=1"},
    {"RoleSet",         "-y--y---", "identity=nui://test/user/nobody role=auditor"},
    {"RoleList",        "yyyyyy--", ""},
    {"FunderCreate",    "y---y---", "name=nsf"},
    {"Grant",           "y---y---", "funder=nsf reference=x account=nothing amount_micro=1"},
    {"GrantExtend",     "y---y---", "grant_id=grant.999 reason=x"},
    {"GrantAmend",      "y---y---", "grant_id=grant.999 amount_micro=1 reason=x"},
    {"GrantRevoke",     "y---y---", "grant_id=grant.999 reason=x"},
    {"SplitBack",       "yyy-y---", "allocation_id=" SPLIT " amount_micro=9000000000000"},
    {"Split",           "yyy-y---", "from_account=phys to_account=nothing amount_micro=1"},
    {"CarryForward",    "yy--y---", "allocation_id=alloc.999 valid_to_us=1"},
    {"Expire",          "yy--y---", "allocation_id=alloc.999"},
    {"GrantList",       "yyyyyy--", ""},
    {"GrantStatement",  "yyyyyy--", "grant_id=grant.999"},
    {"JobList",         "yyyyyyy-", ""},
    {"ReconRecord",     "y---y---", "site=alpha"},
    {"ReconSet",        "y---y---", "row=999 owner=nui://test/user/nobody"},
    {"ReconList",       "yyyyyyy-", ""},
    {"Deposit",         "yy--y---", "account=nothing amount_micro=1"},
    {"Withdraw",        "yy--y---", "account=nothing amount_micro=1"},
    {"Transfer",        "yy--y---", "from_account=phys to_account=nothing amount_micro=1"},
    {"Refund",          "yy--y---", "charge_op_id=999999"},
    {"AllocationModify","yy--y---", "allocation_id=alloc.999"},
    {"RateSet",         "-y--y-y-", "site=alpha multiplier_ppm=1 from_us=1"},
    {"SiteSet",         "-y--y---", "site=alpha"},
    {"RateList",        "yyyyyyyy", ""},
    {"Clock",           "yyyyyyyy", ""},
    {"ClockAccept",     "----y---", ""},
    {"Balance",         "yyyyyy--", ""},
    {"Statement",       "yyyyyy--", "account=phys"},
    {"Usage",           "yyyyyy--", ""},
    {"UsageRecords",    "yyyyyyy-", ""},
    {"HoldList",        "yyyyyyy-", ""},
    {"List",            "yyyyyy--", "kind=project"},
    {"Blocks",          "yyyyyyyy", ""},
    {"Operations",      "y---yy--", "from_id=1"},
    {"Contents",        "y---yy--", "from_number=1"},
    {"Proof",           "yyyyyy--", "op_id=1"},
    {"LedgerCheck",     "y---yy--", ""},
};
/* clang-format on */
enum { CALLS = sizeof (table) / sizeof (table[0]) };

struct world {
    struct pg_fixture *pg;
    struct bankd d;
};

static void must (struct bankd *d, enum bankd_who who, const char *method,
                  const ProtobufCMessage *request)
{
    struct bankd_reply reply = bankd_call (d, who, method, request);
    if (reply.err.code)
        fail_msg ("%s: %s", method, reply.err.text);
    bankd_reply_free (&reply);
}

static void member (struct bankd *d, const char *uri, const char *role)
{
    uint8_t key[16];
    Nui__Bank__V1__MemberRequest m = NUI__BANK__V1__MEMBER_REQUEST__INIT;
    m.key = bankd_key (d, key);
    m.project = TEXT ("physics");
    m.identity = TEXT (uri);
    m.role = TEXT (role);
    must (d, WHO_NSF, "Member", &m.base);
}

static void user (struct bankd *d, const char *uri, const char *role, const char *bank_role)
{
    uint8_t key[16];
    Nui__Bank__V1__UserCreateRequest create = NUI__BANK__V1__USER_CREATE_REQUEST__INIT;
    create.key = bankd_key (d, key);
    create.identity = TEXT (uri);
    must (d, WHO_NSF, "UserCreate", &create.base);
    if (role)
        member (d, uri, role);
    if (bank_role) {
        Nui__Bank__V1__RoleSetRequest set = NUI__BANK__V1__ROLE_SET_REQUEST__INIT;
        set.key = bankd_key (d, key);
        set.identity = TEXT (uri);
        set.role = TEXT (bank_role);
        must (d, WHO_OPS, "RoleSet", &set.base);
    }
}

static int up (void **state)
{
    struct world *w = calloc (1, sizeof (*w));
    uint8_t key[16];
    w->pg = pg_fixture_start (false);
    if (!w->pg)
        return -1;
    *state = w;
    bankd_open (&w->d, NUI_BANK_PROGRAM, pg_fixture_database (w->pg, "roles"), "");
    if (!bankd_wait_serving (&w->d, true))
        return -1;
    bankd_found (&w->d); /* alice is a member of physics */
    user (&w->d, LENA_URI, "lead", NULL);
    user (&w->d, MARA_URI, NULL, "manager");
    user (&w->d, OTTO_URI, NULL, "auditor");
    Nui__Bank__V1__FunderCreateRequest funder = NUI__BANK__V1__FUNDER_CREATE_REQUEST__INIT;
    funder.key = bankd_key (&w->d, key);
    funder.name = TEXT ("nsf");
    must (&w->d, WHO_NSF, "FunderCreate", &funder.base);
    /* A project that nobody of the users is in. */
    Nui__Bank__V1__ProjectCreateRequest project = NUI__BANK__V1__PROJECT_CREATE_REQUEST__INIT;
    project.key = bankd_key (&w->d, key);
    project.name = TEXT ("secret");
    must (&w->d, WHO_NSF, "ProjectCreate", &project.base);
    Nui__Bank__V1__AccountCreateRequest account = NUI__BANK__V1__ACCOUNT_CREATE_REQUEST__INIT;
    account.key = bankd_key (&w->d, key);
    account.name = TEXT ("hidden");
    account.project = TEXT ("secret");
    must (&w->d, WHO_NSF, "AccountCreate", &account.base);
    Nui__Bank__V1__DepositRequest deposit = NUI__BANK__V1__DEPOSIT_REQUEST__INIT;
    deposit.key = bankd_key (&w->d, key);
    deposit.account = TEXT ("phys");
    deposit.amount_micro = 2 * MICRO_PER_CREDIT;
    must (&w->d, WHO_NSF, "Deposit", &deposit.base);
    Nui__Bank__V1__SplitRequest split = NUI__BANK__V1__SPLIT_REQUEST__INIT;
    split.key = bankd_key (&w->d, key);
    split.from_account = TEXT ("phys");
    split.to_account = TEXT ("rich");
    split.amount_micro = MICRO_PER_CREDIT;
    split.allocation_id = TEXT ("alloc.8");
    struct bankd_reply reply = bankd_call (&w->d, WHO_NSF, "Split", &split.base);
    assert_string_equal ("", reply.err.text);
    assert_string_equal (SPLIT, ((Nui__Bank__V1__DoneReply *)reply.message)->id);
    bankd_reply_free (&reply);
    return 0;
}

static int down (void **state)
{
    struct world *w = *state;
    bankd_close (&w->d);
    pg_fixture_stop (w->pg);
    free (w);
    return 0;
}

/* Sets a field of any message from a word. */
static void field_set (ProtobufCMessage *m, const char *name, char *value)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name (m->descriptor, name);
    if (!field)
        fail_msg ("%s has no field %s", m->descriptor->name, name);
    char *at = (char *)m + field->offset;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        memcpy (at, &value, sizeof (value));
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        *(int64_t *)(void *)at = atoll (value);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)(void *)at = atoi (value);
        break;
    default:
        fail_msg ("%s: a kind of field that no request here has", name);
    }
}

static void request_make (struct bankd *d, ProtobufCMessage *m, char *fields, uint8_t key[16])
{
    const ProtobufCFieldDescriptor *keyed =
        protobuf_c_message_descriptor_get_field_by_name (m->descriptor, "key");
    char *rest = NULL;
    if (keyed)
        *(ProtobufCBinaryData *)(void *)((char *)m + keyed->offset) = bankd_key (d, key);
    for (char *word = strtok_r (fields, " ", &rest); word; word = strtok_r (NULL, " ", &rest)) {
        char *equals = strchr (word, '=');
        *equals = '\0';
        field_set (m, word, equals + 1);
    }
}

static void cells (void **state)
{
    struct world *w = *state;
    const ProtobufCServiceDescriptor *service = &nui__bank__v1__bank__descriptor;
    assert_int_equal (CALLS, service->n_methods);
    for (unsigned i = 0; i < service->n_methods; i++) { /* each has its row */
        int call = 0;
        while (call < CALLS && strcmp (table[call].method, service->methods[i].name) != 0)
            call++;
        if (call == CALLS)
            fail_msg ("%s: who may call it is not said here", service->methods[i].name);
    }
    for (int call = 0; call < CALLS; call++)
        for (int role = 0; role < ROLES; role++) {
            const ProtobufCMethodDescriptor *method =
                protobuf_c_service_descriptor_get_method_by_name (service, table[call].method);
            assert_non_null (method);
            char fields[256];
            uint8_t key[16];
            ProtobufCMessage *m = calloc (1, method->input->sizeof_message);
            protobuf_c_message_init (method->input, m);
            snprintf (fields, sizeof (fields), "%s", table[call].fields);
            request_make (&w->d, m, fields, key);
            struct bankd_reply reply = bankd_call (&w->d, roles[role].who, table[call].method, m);
            bool may = reply.err.code != ERR_DENIED && reply.err.code != ERR_UNAUTHENTIC;
            if (may != (table[call].cells[role] == 'y'))
                fail_msg ("%s as %s: %d '%s'", table[call].method, roles[role].name, reply.err.code,
                          reply.err.text);
            /* Refused for who asks, not because nobody could be asked. */
            assert_int_not_equal (reply.err.code, ERR_UNAVAILABLE);
            bankd_reply_free (&reply);
            free (m);
        }
}

/* The manual's table is this one: the same calls, the same cells. */
static void manual (void **state)
{
    (void)state;
    char line[256], name[64], cell[ROLES][2];
    int found = 0;
    FILE *page = fopen (NUI_BANK_PAGE, "r");
    assert_non_null (page);
    while (fgets (line, sizeof (line), page)) {
        if (sscanf (line, "%63s %1[x.] %1[x.] %1[x.] %1[x.] %1[x.] %1[x.] %1[x.] %1[x.]", name,
                    cell[0], cell[1], cell[2], cell[3], cell[4], cell[5], cell[6],
                    cell[7]) != ROLES + 1)
            continue;
        int call = 0;
        while (call < CALLS && strcmp (table[call].method, name) != 0)
            call++;
        if (call == CALLS)
            fail_msg ("nui-bank(8) has a call %s that is not tested", name);
        for (int role = 0; role < ROLES; role++)
            if ((cell[role][0] == 'x') != (table[call].cells[role] == 'y'))
                fail_msg ("nui-bank(8): %s as %s", name, roles[role].name);
        found++;
    }
    fclose (page);
    assert_int_equal (found, CALLS);
}

/* Bob, at site beta, in the project that nobody else is in: a grant, a charged job, a job that runs, a row of
 * reconciliation. The names of all of it have "secret" or "hidden" in them. */
static void hide (struct world *w)
{
    struct bankd *d = &w->d;
    uint8_t key[16];
    struct bankd_job job = {.account = "hidden", .retries = 1};
    Nui__Common__V1__Envelope *envelope = bankd_sign (d, WHO_BOB, &job);
    Nui__Bank__V1__MemberRequest member = NUI__BANK__V1__MEMBER_REQUEST__INIT;
    Nui__Bank__V1__GrantRequest grant = NUI__BANK__V1__GRANT_REQUEST__INIT;
    Nui__Bank__V1__ChargeRequest charge = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    Nui__Bank__V1__HoldRequest hold = NUI__BANK__V1__HOLD_REQUEST__INIT;
    Nui__Bank__V1__Finding finding = NUI__BANK__V1__FINDING__INIT, *findings = &finding;
    Nui__Bank__V1__ReconRecordRequest recon = NUI__BANK__V1__RECON_RECORD_REQUEST__INIT;
    member.key = bankd_key (d, key);
    member.project = TEXT ("secret");
    member.identity = TEXT (BOB_URI);
    must (d, WHO_NSF, "Member", &member.base);
    grant.key = bankd_key (d, key);
    grant.reference = TEXT ("secret-1");
    grant.account = TEXT ("hidden");
    grant.amount_micro = 1000 * MICRO_PER_CREDIT;
    must (d, WHO_NSF, "Grant", &grant.base);
    charge.key = bankd_key (d, key);
    charge.sequence = 1;
    charge.envelope = hold.envelope = envelope;
    charge.site_job_id = TEXT ("beta.7771");
    charge.component = hold.component = TEXT ("main");
    charge.procs = hold.procs = 1;
    charge.start_us = clock_now_us ();
    charge.end_us = charge.start_us + US_PER_S;
    charge.final = charge.successful = true;
    must (d, WHO_BETA, "Charge", &charge.base);
    hold.key = bankd_key (d, key);
    hold.site_job_id = TEXT ("beta.7772");
    hold.walltime_us = 10 * US_PER_S;
    must (d, WHO_BETA, "Hold", &hold.base);
    finding.class_ = TEXT ("LATE");
    finding.site_job_id = TEXT ("beta.7771");
    finding.account = TEXT ("hidden");
    finding.user = TEXT (BOB_URI);
    recon.key = bankd_key (d, key);
    recon.site = TEXT ("beta");
    recon.findings = &findings;
    recon.n_findings = 1;
    must (d, WHO_OPS, "ReconRecord", &recon.base);
    envelope_free (envelope);
}

/* Whether a read, if it may be asked, shows something that has a word in it. */
static bool shows (struct world *w, enum bankd_who who, const char *call, const char *asked,
                   const char *word)
{
    static char *by[] = {(char *)(uintptr_t) "account"};
    char fields[256];
    uint8_t key[16];
    const ProtobufCMethodDescriptor *method =
        protobuf_c_service_descriptor_get_method_by_name (&nui__bank__v1__bank__descriptor, call);
    ProtobufCMessage *m = calloc (1, method->input->sizeof_message);
    protobuf_c_message_init (method->input, m);
    snprintf (fields, sizeof (fields), "%s", asked);
    request_make (&w->d, m, fields, key);
    if (strcmp (call, "Usage") == 0) {
        ((Nui__Bank__V1__UsageRequest *)m)->n_by = 1;
        ((Nui__Bank__V1__UsageRequest *)m)->by = by;
    }
    struct bankd_reply reply = bankd_call (&w->d, who, call, m);
    bool found = false;
    if (reply.message) {
        size_t size = protobuf_c_message_get_packed_size (reply.message);
        uint8_t *bytes = malloc (size + 1);
        protobuf_c_message_pack (reply.message, bytes);
        found = memmem (bytes, size, word, strlen (word)) != NULL;
        free (bytes);
    } else {
        assert_true (reply.err.code == ERR_NOT_FOUND || reply.err.code == ERR_DENIED);
    }
    bankd_reply_free (&reply);
    free (m);
    return found;
}

/* Whose rows each sees of a project and a site that are not theirs; then the site's own, and the user's. */
static void rows (void **state)
{
    struct world *w = *state;
    static const struct {
        const char *call, *asked, *word, *cells;
    } read[] = {
        /*                                           FMLmOASXBb */
        {"Balance", "", "hidden", "yy--yy---y"},
        {"Balance", "account=hidden", "hidden", "yy--yy---y"},
        {"Statement", "account=hidden", "hidden", "yy--yy---y"},
        {"Usage", "", "hidden", "yy--yy---y"},
        {"HoldList", "", "beta.7772", "yy--yy--yy"},
        {"JobList", "", "beta.7771", "yy--yy--yy"},
        {"UsageRecords", "", "beta.7771", "yy--yy--yy"},
        {"GrantList", "", "secret-1", "yy--yy---y"},
        {"GrantStatement", "grant_id=grant.1", "secret-1", "yy--yy---y"},
        {"List", "kind=account", "hidden", "yy--yy---y"},
        {"List", "kind=project", "secret", "yy--yy---y"},
        {"List", "kind=user", BOB_URI, "yy--yy---y"},
        {"ReconList", "", "beta.7771", "yy--yy--y-"},
        {"RoleList", "", OTTO_URI, "yy--yy----"},
        {"Operations", "from_id=1", "beta.7771", "y---yy----"},
    };
    hide (w);
    for (size_t i = 0; i < sizeof (read) / sizeof (read[0]); i++)
        for (int k = 0; k < ROLES + 2; k++) {
            enum bankd_who who = k < ROLES ? roles[k].who : k == ROLES ? WHO_BETA : WHO_BOB;
            bool want = read[i].cells[k] == 'y';
            if (shows (w, who, read[i].call, read[i].asked, read[i].word) != want)
                fail_msg ("%s %s as %s: %s is %s", read[i].call, read[i].asked,
                          k < ROLES    ? roles[k].name
                          : k == ROLES ? "the site"
                                       : "the user",
                          read[i].word, want ? "not seen" : "seen");
        }
    /* The proof of the charge, by who is in it or sees all; its number is the newest charge's. */
    char asked[32];
    static const char proof[] = "yy--yy--";
    Nui__Bank__V1__JobListRequest jobs = NUI__BANK__V1__JOB_LIST_REQUEST__INIT;
    struct bankd_reply reply = bankd_call (&w->d, WHO_BETA, "JobList", &jobs.base);
    assert_int_equal (0, reply.err.code);
    snprintf (asked, sizeof (asked), "op_id=%llu",
              (unsigned long long)((Nui__Bank__V1__JobListReply *)reply.message)->jobs[0]->op_id);
    bankd_reply_free (&reply);
    for (int k = 0; k < ROLES; k++)
        assert_int_equal (proof[k] == 'y', shows (w, roles[k].who, "Proof", asked, "beta.7771"));
}

/* A lead acts for the own project only, and a site for itself. */
static void own_only (void **state)
{
    struct world *w = *state;
    uint8_t key[16];
    Nui__Bank__V1__MemberRequest member = NUI__BANK__V1__MEMBER_REQUEST__INIT;
    member.key = bankd_key (&w->d, key);
    member.project = TEXT ("secret");
    member.identity = TEXT (LENA_URI);
    struct bankd_reply reply = bankd_call (&w->d, WHO_LENA, "Member", &member.base);
    assert_int_equal (ERR_DENIED, reply.err.code);
    Nui__Bank__V1__SplitRequest split = NUI__BANK__V1__SPLIT_REQUEST__INIT;
    split.key = bankd_key (&w->d, key);
    split.from_account = TEXT ("hidden");
    split.to_account = TEXT ("phys");
    split.amount_micro = 1;
    reply = bankd_call (&w->d, WHO_LENA, "Split", &split.base);
    assert_int_equal (ERR_DENIED, reply.err.code);
    Nui__Bank__V1__ChargeRequest charge = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    charge.key = bankd_key (&w->d, key);
    charge.site = TEXT ("beta");
    charge.site_job_id = TEXT ("beta.1");
    reply = bankd_call (&w->d, WHO_ALPHA, "Charge", &charge.base);
    assert_int_equal (ERR_DENIED, reply.err.code);
    /* An agency gives in its own name only. */
    Nui__Bank__V1__GrantRequest grant = NUI__BANK__V1__GRANT_REQUEST__INIT;
    grant.key = bankd_key (&w->d, key);
    grant.funder = TEXT ("other");
    grant.reference = TEXT ("x");
    grant.account = TEXT ("phys");
    grant.amount_micro = 1;
    reply = bankd_call (&w->d, WHO_NSF, "Grant", &grant.base);
    assert_int_equal (ERR_DENIED, reply.err.code);
}

/* A quote that alice keeps, for the account phys of the project that lena leads; its name in id. */
static void kept (struct world *w, char id[32])
{
    uint8_t key[16];
    struct bankd_job job = {.account = "phys"};
    Nui__Common__V1__Envelope *envelope = bankd_sign (&w->d, WHO_ALICE, &job);
    Nui__Bank__V1__PriceItem item = NUI__BANK__V1__PRICE_ITEM__INIT, *items = &item;
    Nui__Bank__V1__QuoteRequest m = NUI__BANK__V1__QUOTE_REQUEST__INIT;
    item.site = TEXT ("alpha");
    item.procs = 1;
    item.walltime_us = US_PER_S;
    m.key = bankd_key (&w->d, key);
    m.envelope = envelope;
    m.items = &items;
    m.n_items = 1;
    m.keep_us = 3600 * US_PER_S;
    struct bankd_reply reply = bankd_call (&w->d, WHO_ALICE, "Quote", &m.base);
    assert_int_equal (0, reply.err.code);
    snprintf (id, 32, "%s", ((Nui__Bank__V1__QuoteReply *)reply.message)->quote_id);
    bankd_reply_free (&reply);
    envelope_free (envelope);
}

static int cancelled (struct world *w, enum bankd_who who, char *id)
{
    uint8_t key[16];
    Nui__Bank__V1__QuoteCancelRequest m = NUI__BANK__V1__QUOTE_CANCEL_REQUEST__INIT;
    m.key = bankd_key (&w->d, key);
    m.quote_id = id;
    struct bankd_reply reply = bankd_call (&w->d, who, "QuoteCancel", &m.base);
    int code = reply.err.code;
    bankd_reply_free (&reply);
    return code;
}

/* Whose kept quotes each sees and cancels: users their own, leads those for their accounts. */
static void quotes (void **state)
{
    struct world *w = *state;
    static const struct {
        enum bankd_who who;
        bool sees, may;
    } row[] = {{WHO_NSF, true, true},   {WHO_MARA, true, true}, {WHO_LENA, true, true},
               {WHO_ALICE, true, true}, {WHO_OPS, true, true},  {WHO_OTTO, true, false},
               {WHO_BOB, false, false}};
    char id[32];
    member (&w->d, BOB_URI, "member"); /* of the same project: that is not enough */
    for (size_t i = 0; i < sizeof (row) / sizeof (row[0]); i++) {
        Nui__Bank__V1__QuoteListRequest list = NUI__BANK__V1__QUOTE_LIST_REQUEST__INIT;
        kept (w, id);
        list.quote_id = id;
        struct bankd_reply reply = bankd_call (&w->d, row[i].who, "QuoteList", &list.base);
        assert_int_equal (row[i].sees ? 0 : ERR_NOT_FOUND, reply.err.code);
        bankd_reply_free (&reply);
        list.quote_id = TEXT ("");
        reply = bankd_call (&w->d, row[i].who, "QuoteList", &list.base);
        assert_int_equal (0, reply.err.code);
        assert_int_equal (row[i].sees,
                          ((Nui__Bank__V1__QuoteListReply *)reply.message)->n_quotes != 0);
        bankd_reply_free (&reply);
        assert_int_equal (row[i].may ? 0 : ERR_DENIED, cancelled (w, row[i].who, id));
        assert_int_equal (row[i].may ? ERR_EXISTS : 0, cancelled (w, WHO_ALICE, id));
    }
}

/* In the project physics: code, and a sentence with words where it is refused. */
static void lead_change (struct world *w, enum bankd_who who, const char *uri, const char *role,
                         int code, const char *words)
{
    uint8_t key[16];
    Nui__Bank__V1__MemberRequest m = NUI__BANK__V1__MEMBER_REQUEST__INIT;
    m.key = bankd_key (&w->d, key);
    m.project = TEXT ("physics");
    m.identity = TEXT (uri);
    m.role = TEXT (role ? role : "");
    m.remove = role == NULL;
    struct bankd_reply reply = bankd_call (&w->d, who, "Member", &m.base);
    if (reply.err.code != code || !strstr (reply.err.text, words))
        fail_msg ("%s as %s: %d '%s'", uri, role ? role : "nobody", reply.err.code, reply.err.text);
    bankd_reply_free (&reply);
}

/* A project's last lead neither leaves nor becomes a member by her own word; with another beside her she does, and so
 * does she by the agency's, which gives the project another. */
static void last_lead (void **state)
{
    struct world *w = *state;
    static const char last[] = LENA_URI " is the last lead of project physics";
    lead_change (w, WHO_LENA, LENA_URI, NULL, ERR_CONFLICT, last);
    lead_change (w, WHO_LENA, LENA_URI, "member", ERR_CONFLICT, last);
    lead_change (w, WHO_LENA, ALICE_URI, "lead", 0, ""); /* that she still may: she leads it */
    lead_change (w, WHO_LENA, LENA_URI, NULL, 0, "");
    lead_change (w, WHO_LENA, ALICE_URI, "member", ERR_DENIED, "");
    lead_change (w, WHO_ALICE, ALICE_URI, NULL, ERR_CONFLICT,
                 ALICE_URI " is the last lead of project physics");
    lead_change (w, WHO_NSF, ALICE_URI, "member", 0, "");
    lead_change (w, WHO_NSF, LENA_URI, "lead", 0, "");
    lead_change (w, WHO_LENA, LENA_URI, NULL, ERR_CONFLICT, last);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (cells),    cmocka_unit_test (manual), cmocka_unit_test (rows),
        cmocka_unit_test (own_only), cmocka_unit_test (quotes), cmocka_unit_test (last_lead),
    };
    return cmocka_run_group_tests (tests, up, down);
}
