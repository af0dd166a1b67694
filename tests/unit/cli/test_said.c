/* said: a command line held against the forms of its command (proto/cli/said.h). */
#include "../base/unit.h"

#include <string.h>

#include "proto/cli/message.h"
#include "proto/cli/request.h"
#include "proto/cli/table.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "capture.h"

/* A bank that remembers what it was asked and answers what it is given. */
static Nui__Bank__V1__DepositRequest *deposit;
static Nui__Bank__V1__SplitBackRequest *back;
static char method_asked[32];

static ProtobufCMessage *answer (struct cli_context *ctx, const struct cli_said *said,
                                 const char *method, const ProtobufCMessage *request,
                                 struct err *err)
{
    (void)ctx, (void)said, (void)err;
    uint8_t bytes[1024];
    size_t length = protobuf_c_message_pack (request, bytes);
    snprintf (method_asked, sizeof method_asked, "%s", method);
    if (strcmp (method, "Deposit") == 0)
        deposit = nui__bank__v1__deposit_request__unpack (NULL, length, bytes);
    if (strcmp (method, "SplitBack") == 0)
        back = nui__bank__v1__split_back_request__unpack (NULL, length, bytes);
    if (strcmp (method, "Deposit") == 0)
        return (ProtobufCMessage *)nui__bank__v1__deposit_reply__unpack (
            NULL, 9,
            (const uint8_t *)"\x0a\x07"
                             "alloc.7");
    if (strcmp (method, "HoldList") == 0) {
        Nui__Bank__V1__HoldItem item = NUI__BANK__V1__HOLD_ITEM__INIT, *items[] = {&item};
        Nui__Bank__V1__HoldListReply reply = NUI__BANK__V1__HOLD_LIST_REPLY__INIT;
        item.hold_id = (char *)"hold.4";
        item.user = (char *)"nui://test/user/alice";
        item.amount_micro = 2500000;
        item.stale = true;
        reply.n_holds = 1;
        reply.holds = items;
        length = nui__bank__v1__hold_list_reply__pack (&reply, bytes);
        return (ProtobufCMessage *)nui__bank__v1__hold_list_reply__unpack (NULL, length, bytes);
    }
    return (ProtobufCMessage *)nui__bank__v1__done_reply__unpack (NULL, 6,
                                                                  (const uint8_t *)"\x0a\x04"
                                                                                   "op.9");
}

static const struct cli_service bank = {&nui__bank__v1__bank__descriptor, answer};

static const struct cli_option options[] = {
    {"account", 'A', CLI_OPT_STRING, "ACCOUNT", "who gets them"},
    {"end", 0, CLI_OPT_TIME, "TIME", "when they expire (never)", .field = "valid_to"},
    {"reference", 0, CLI_OPT_STRING, "TEXT", "an order's number"},
    {"again", 0, CLI_OPT_FLAG, NULL, "another deposit of the same reference"},
    {"note", 'n', CLI_OPT_STRING, "TEXT", "for the statement", .field = "description|reason"},
    {"stale", 0, CLI_OPT_FLAG, NULL, "only those past their expiry"},
    {0}};

static const struct table_column columns[] = {
    {"hold", "Hold", TABLE_TEXT},        {"user", "User", TABLE_IDENTITY},
    {"amount", "Amount", TABLE_CREDITS}, {"start", "Start", TABLE_TIME},
    {"site_job", "SiteJob", TABLE_TEXT}, {"stale", "Stale", TABLE_BOOL}};

static const struct cli_form forms[] = {
    {"give -A ACCOUNT AMOUNT [--end TIME] [--reference TEXT [--again]] [--note TEXT]",
     .method = "Deposit",
     .sentence = "gave {amount} credits to {account}{reference|, for nothing}"},
    {"back ALLOCATION [AMOUNT] --note TEXT", .method = "SplitBack",
     .sentence = "took back {amount|what is left} of {allocation}"},
    {"holds [--stale]", .method = "HoldList", CLI_COLUMNS (columns)},
    {"choose -A ACCOUNT | --reference TEXT", .method = "Deposit", .sentence = "chosen"},
    {0}};

static const struct cli_command command = {.name = "gift",
                                           .group = CLI_BANK,
                                           .summary = "gives",
                                           .forms = forms,
                                           .options = options,
                                           .service = &bank};
static const struct cli_command *const commands[] = {&command, NULL};
static const struct cli_command *const *const tables[] = {commands, NULL};

static int say (const char *line)
{
    static char text[512];
    static char *argv[32];
    int argc = 0;
    snprintf (text, sizeof text, "nui %s", line);
    for (char *word = strtok (text, " "); word; word = strtok (NULL, " "))
        argv[argc++] = word;
    method_asked[0] = '\0';
    capture_begin ();
    int code = cli_main (tables, NULL, argc, argv);
    capture_end ();
    return code;
}

static void one_call_and_one_sentence (void **state)
{
    (void)state;
    assert_int_equal (
        say ("gift give -A phys 12.5 --reference PO --again -n x --end 2027-01-01T00:00:00Z"), 0);
    assert_string_equal (captured[0], "gave 12.5 credits to physPO (alloc.7)\n");
    assert_string_equal (deposit->account, "phys");
    assert_int_equal (deposit->amount_micro, 12500000);
    assert_true (deposit->valid_to_us == INT64_C (1798761600) * US_PER_S && deposit->again);
    assert_string_equal (deposit->description, "x");
    assert_int_equal (deposit->key.len, 16);
    nui__bank__v1__deposit_request__free_unpacked (deposit, NULL);
    assert_int_equal (say ("gift back alloc.3 --note x --json"), 0);
    assert_contains (captured[0], "\"id\": \"op.9\"");
    assert_contains (captured[0], "\"done\": \"took back what is left of alloc.3\"");
    assert_string_equal (back->allocation_id, "alloc.3");
    assert_int_equal (back->amount_micro, 0);
    nui__bank__v1__split_back_request__free_unpacked (back, NULL);
}

static void one_call_and_rows (void **state)
{
    (void)state;
    assert_int_equal (say ("gift holds --noheader"), 0);
    assert_string_equal (captured[0], "hold.4  alice  2.5  -  -  yes\n");
    assert_int_equal (say ("gift holds --csv"), 0);
    assert_string_equal (
        captured[0],
        "hold,user,amount,start,site_job,stale\nhold.4,nui://test/user/alice,2.5,,,true\n");
}

static void what_is_no_form_is_refused (void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"gift", "say give -A ACCOUNT AMOUNT"},
        {"gift take", "holds [--stale] or choose"},
        {"gift give 5", "with --account ACCOUNT"},
        {"gift give -A phys", "say give"},
        {"gift give -A phys 5 6", "say give"},
        {"gift give -A phys 5 --again", "say give"},
        {"gift give -A phys 5 --stale", "--stale is for nui gift holds [--stale], not for give"},
        {"gift back alloc.3", "say back ALLOCATION [AMOUNT] --note TEXT: with --note TEXT"},
        {"gift choose", "choose -A ACCOUNT | --reference TEXT"},
        {"gift give -A phys 0", "more than nothing"},
        {"gift give -A phys five", "'five'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal (say (cases[i][0]), CLI_USAGE);
        assert_contains (captured[1], cases[i][1]);
        assert_string_equal (captured[0], "");
        assert_string_equal (method_asked, "");
    }
    assert_int_equal (say ("gift choose --reference x"), 0);
    nui__bank__v1__deposit_request__free_unpacked (deposit, NULL);
}

static void help_is_the_same_table (void **state)
{
    (void)state;
    assert_int_equal (say ("help gift"), 0);
    assert_contains (captured[0], "usage: nui gift give -A ACCOUNT AMOUNT [--end TIME]");
    assert_contains (captured[0], "\n       nui gift holds [--stale]\n");
    assert_contains (captured[0], "\n  -A, --account ACCOUNT   who gets them\n");
    assert_contains (captured[0],
                     "\n      --again             another deposit of the same reference\n");
    assert_int_equal (say ("completion bash"), 0);
    assert_contains (
        captured[0],
        "gift) echo '--json --csv --noheader --config --help --end --reference --again --note "
        "--stale --account' ;;");
}

static void fields_by_name (void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *hold = &nui__bank__v1__hold_request__descriptor;
    assert_string_equal (message_field (hold, "walltime")->name, "walltime_us");
    assert_string_equal (message_field (hold, "start_time")->name, "start_us");
    assert_string_equal (message_field (hold, "site-job")->name, "site_job_id");
    assert_null (message_field (hold, "site_jo"));
    struct arena *arena = arena_create (0);
    Nui__Bank__V1__QuoteItem quote = NUI__BANK__V1__QUOTE_ITEM__INIT;
    quote.state = NUI__BANK__V1__QUOTE_STATE__QUOTE_CANCELLED;
    assert_string_equal (
        message_word (&quote.base, message_field (quote.base.descriptor, "state"), arena),
        "cancelled");
    arena_destroy (arena);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (one_call_and_one_sentence),
        cmocka_unit_test (one_call_and_rows),
        cmocka_unit_test (what_is_no_form_is_refused),
        cmocka_unit_test (help_is_the_same_table),
        cmocka_unit_test (fields_by_name),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
