/* Other terms for a part of a co-reservation (Terms), over the wire: which are taken, and what is never kept that its user did not
 * sign. */
#include "site.h"

#include <openssl/sha.h>
#include <sqlite3.h>
#include <string.h>

static const uint8_t first[16] = "the first signed", second[16] = "the other signed",
                     third[16] = "one that is late";
static uint8_t transaction[16] = "one transaction";

static Nui__Local__V1__Part part_of (void)
{
    Nui__Local__V1__Part part = NUI__LOCAL__V1__PART__INIT;
    part.transaction = (ProtobufCBinaryData){sizeof transaction, transaction};
    part.component = (char *)"left";
    part.attempt = 1;
    return part;
}

static struct job_make reserved (const uint8_t *uuid, const uint8_t *changes, duration_us walltime)
{
    return (struct job_make){.reserve = true,
                             .uuid = uuid,
                             .changes = changes,
                             .component = "left",
                             .tasks = 2,
                             .twins = 1,
                             .walltime = walltime,
                             .created_in = changes ? US_PER_S : 0};
}

/* It is firm, a minute long. */
static void stands (struct site *s)
{
    Nui__Local__V1__PrepareRequest prepare = NUI__LOCAL__V1__PREPARE_REQUEST__INIT;
    Nui__Local__V1__CommitRequest commit = NUI__LOCAL__V1__COMMIT_REQUEST__INIT;
    Nui__Local__V1__PrepareReply *yes = NULL;
    Nui__Local__V1__CommitReply *firm = NULL;
    Nui__Local__V1__Part part = part_of ();
    struct job_make make = reserved (first, NULL, 60 * US_PER_S);
    struct err err = {0};
    uint8_t hash[32];
    SHA256 (first, sizeof first, hash);
    site_start (s, NULL);
    prepare.part = commit.part = &part;
    prepare.envelope = job_envelope (s, &make);
    prepare.grid_job_id = (char *)"grid.42";
    prepare.slot_start_us = clock_now_us () + 600 * US_PER_S;
    prepare.lease_us = 30 * US_PER_S;
    prepare.start_token_hash = (ProtobufCBinaryData){sizeof hash, hash};
    assert_int_equal (site_call (s->as_meta, "Prepare", &prepare, &yes, &err), 0);
    assert_true (yes->granted);
    assert_int_equal (site_call (s->as_meta, "Commit", &commit, &firm, &err), 0);
    assert_int_equal (firm->outcome, NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__FIRM);
    envelope_free (prepare.envelope);
    nui__local__v1__prepare_reply__free_unpacked (yes, NULL);
    nui__local__v1__commit_reply__free_unpacked (firm, NULL);
}

/* NULL: done; else the reason's words, until the next call. */
static const char *terms (struct site *s, Nui__Common__V1__Envelope *envelope, bool keep)
{
    static char said[512];
    Nui__Local__V1__TermsRequest r = NUI__LOCAL__V1__TERMS_REQUEST__INIT;
    Nui__Local__V1__TermsReply *reply = NULL;
    Nui__Local__V1__Part part = part_of ();
    struct err err = {0};
    r.part = &part;
    r.envelope = envelope;
    r.keep = keep;
    if (site_call (s->as_meta, "Terms", &r, &reply, &err) != 0)
        fail_msg ("%s", err.text);
    bool done = reply->done;
    snprintf (said, sizeof said, "%s", reply->reason ? reply->reason->text : "");
    nui__local__v1__terms_reply__free_unpacked (reply, NULL);
    return done ? NULL : said;
}

static const char *signed_terms (struct site *s, const struct job_make *make, bool keep)
{
    Nui__Common__V1__Envelope *envelope = job_envelope (s, make);
    const char *said = terms (s, envelope, keep);
    envelope_free (envelope);
    return said;
}

/* How many seconds it is reserved for, as the site has it on disk. */
static int seconds (struct site *s)
{
    char path[512];
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    snprintf (path, sizeof path, "%s/state/local.db", s->dir);
    assert_int_equal (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal (
        sqlite3_prepare_v2 (db, "SELECT (end_us - start_us) / 1000000 FROM rsv", -1, &q, NULL),
        SQLITE_OK);
    assert_int_equal (sqlite3_step (q), SQLITE_ROW);
    int found = sqlite3_column_int (q, 0);
    sqlite3_finalize (q);
    sqlite3_close (db);
    return found;
}

static void taken_and_kept (void **state)
{
    struct site *s = *state;
    struct job_make longer = reserved (second, first, 120 * US_PER_S);
    struct job_make old = reserved (first, NULL, 60 * US_PER_S);
    stands (s);
    Nui__Common__V1__Envelope *envelope = job_envelope (s, &longer);
    assert_null (terms (s, envelope, false));
    assert_null (terms (s, envelope, false)); /* the answer was lost */
    assert_int_equal (seconds (s), 120);
    assert_null (signed_terms (s, &old, true)); /* given up: the old ones are kept */
    assert_int_equal (seconds (s), 60);
    assert_null (terms (s, envelope, false));
    site_kill (s);
    site_restart (s);
    assert_null (terms (s, envelope, true));
    assert_null (terms (s, envelope, true));
    assert_int_equal (seconds (s), 120);
    /* What was signed before that is no more; shorter ones that were signed later are. */
    assert_non_null (strstr (signed_terms (s, &old, false), "another co-reservation"));
    struct job_make late = reserved (third, first, 30 * US_PER_S);
    late.created_in = 2 * US_PER_S;
    assert_null (signed_terms (s, &late, false));
    assert_int_equal (seconds (s), 120); /* until they are kept */
    assert_null (signed_terms (s, &late, true));
    assert_int_equal (seconds (s), 30);
    assert_non_null (strstr (terms (s, envelope, false), "signed later"));
    envelope_free (envelope);
}

static void not_what_was_signed (void **state)
{
    struct site *s = *state;
    struct job_make longer = reserved (second, first, 120 * US_PER_S), other;
    stands (s);
    assert_null (signed_terms (s, &longer, false));
    /* The same uuid, and other content under its signature: never kept. */
    Nui__Common__V1__Envelope *forged = job_envelope (s, &longer);
    other = longer;
    other.walltime = 400 * US_PER_S;
    Nui__Common__V1__Envelope *fatter = job_envelope (s, &other);
    ProtobufCBinaryData body = forged->body;
    forged->body = fatter->body;
    assert_non_null (terms (s, forged, true));
    assert_int_equal (seconds (s), 120);
    forged->body = body;
    envelope_free (forged);
    envelope_free (fatter);
    other = longer;
    other.signer = "bob";
    assert_non_null (signed_terms (s, &other, false));
    other = reserved (third, second, 120 * US_PER_S);
    assert_non_null (strstr (signed_terms (s, &other, false), "another co-reservation"));
    other = longer;
    other.tasks = 3;
    other.uuid = third;
    assert_non_null (strstr (signed_terms (s, &other, false), "more of them"));
    other = longer;
    other.reserve = false;
    other.script = "exit 0\n";
    assert_non_null (strstr (signed_terms (s, &other, true), "no co-reservation"));
    assert_int_equal (seconds (s), 120);
}

int main (void)
{
#define T(name) cmocka_unit_test_setup_teardown (name, site_setup, site_teardown)
    const struct CMUnitTest tests[] = {T (taken_and_kept), T (not_what_was_signed)};
    cmocka_set_test_filter (getenv ("NUI_TEST_ONLY"));
    return cmocka_run_group_tests (tests, site_group_setup, site_group_teardown);
}
