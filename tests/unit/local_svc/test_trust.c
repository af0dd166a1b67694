/* What a metascheduler may not do with a job that a user did sign. */
#include "site.h"

#include <unistd.h>

#define STATE(name) NUI__LOCAL__V1__JOB_STATE__JOB_##name

/* Hands an envelope over; the refusal goes to text ("": taken). Returns the error code, or 0. */
static int hand_over (struct site *s, struct rpcclient *as, Nui__Common__V1__Envelope *envelope,
                      const char *grid_id, uint32_t attempt, char text[600])
{
    Nui__Local__V1__SubmitRequest request = NUI__LOCAL__V1__SUBMIT_REQUEST__INIT;
    Nui__Local__V1__SubmitReply *reply = NULL;
    struct err err = {0};
    (void)s;
    request.envelope = envelope;
    request.component = (char *)"main";
    request.grid_job_id = (char *)grid_id;
    request.attempt = attempt;
    int rc = site_call (as, "Submit", &request, &reply, &err);
    text[0] = 0;
    if (rc != 0)
        snprintf (text, 600, "%s", err.text);
    else if (!reply->accepted)
        snprintf (text, 600, "%s: %s", reply->reason->code, reply->reason->text);
    free_message (reply);
    return rc;
}

static int prepare_it (struct rpcclient *as, Nui__Common__V1__Envelope *envelope,
                       const char *grid_id, uint8_t transaction, char text[600])
{
    Nui__Local__V1__PrepareRequest r = NUI__LOCAL__V1__PREPARE_REQUEST__INIT;
    Nui__Local__V1__Part part = NUI__LOCAL__V1__PART__INIT;
    Nui__Local__V1__PrepareReply *reply = NULL;
    uint8_t id[16] = {transaction}, hash[32] = {1};
    struct err err = {0};
    part.transaction.data = id;
    part.transaction.len = sizeof id;
    part.component = (char *)"main";
    r.part = &part;
    r.envelope = envelope;
    r.grid_job_id = (char *)grid_id;
    r.slot_start_us = clock_now_us () + 3600 * US_PER_S;
    r.lease_us = 60 * US_PER_S;
    r.start_token_hash.data = hash;
    r.start_token_hash.len = sizeof hash;
    int rc = site_call (as, "Prepare", &r, &reply, &err);
    text[0] = 0;
    if (rc != 0)
        snprintf (text, 600, "%s", err.text);
    else if (!reply->granted)
        snprintf (text, 600, "%s: %s", reply->reason->code, reply->reason->text);
    free_message (reply);
    return rc;
}

static void assert_refused (int rc, const char *text, const char *words)
{
    if (rc != ERR_UNAUTHENTIC || !strstr (text, words))
        fail_msg ("wanted a refusal with '%s', got %d: %s", words, rc, text);
}

/* The rogue's tries: under another id, as another metascheduler, by SUBMIT and by PREPARE. */
static void replays_are_refused (struct site *s, Nui__Common__V1__Envelope *envelope)
{
    char text[600];
    assert_refused (hand_over (s, s->as_meta, envelope, "grid.2", 1, text), text,
                    "taken here as grid.1 of metascheduler meta");
    assert_refused (hand_over (s, s->as_rival, envelope, "grid.1", 1, text), text,
                    "comes again as grid.1 of rival");
    assert_refused (prepare_it (s->as_meta, envelope, "grid.9", 3, text), text, "replayed");
    assert_refused (prepare_it (s->as_rival, envelope, "grid.1", 4, text), text, "replayed");
}

static void a_signed_job_is_taken_once (void **state)
{
    struct site *s = *state;
    char text[600];
    site_start (s, NULL);
    Nui__Common__V1__Envelope *envelope =
        job_envelope (s, &(struct job_make){.script = "exit 0\n"});
    s->mood = BANK_SILENT;
    assert_int_equal (hand_over (s, s->as_meta, envelope, "grid.1", 1, text), 0);
    assert_string_equal (text, "");
    replays_are_refused (s, envelope);
    site_kill (s);
    site_start (s, NULL);
    replays_are_refused (s, envelope);
    /* The metascheduler's own retry is no replay … */
    assert_int_equal (hand_over (s, s->as_meta, envelope, "grid.1", 1, text), 0);
    assert_string_equal (text, "");
    s->mood = BANK_GRANTS;
    bank_speak (s);
    site_wait_state (s, "alpha.1", STATE (COMPLETED));
    /* … but it has run now, and is not run again. */
    assert_refused (hand_over (s, s->as_meta, envelope, "grid.1", 2, text), text,
                    "has run to its end here, as alpha.1");
    replays_are_refused (s, envelope);
    envelope_free (envelope);
}

/* Not by SUBMIT only: a part that was prepared is remembered as well. */
static void a_prepared_part_is_remembered (void **state)
{
    struct site *s = *state;
    char text[600];
    site_start (s, NULL);
    Nui__Common__V1__Envelope *envelope =
        job_envelope (s, &(struct job_make){.script = "exit 0\n"});
    assert_int_equal (prepare_it (s->as_meta, envelope, "grid.1", 1, text), 0);
    assert_string_equal (text, "");
    replays_are_refused (s, envelope);
    /* Another try of its coordinator, in a transaction of its own. */
    assert_int_equal (prepare_it (s->as_meta, envelope, "grid.1", 2, text), 0);
    assert_string_equal (text, "");
    site_kill (s);
    site_start (s, NULL);
    replays_are_refused (s, envelope);
    envelope_free (envelope);
}

static bool is_past (struct site *s, void *arg)
{
    (void)s;
    return clock_now_us () > *(const time_us *)arg;
}

static void after_its_expiry_only_retries (void **state)
{
    struct site *s = *state;
    char text[600];
    site_start (s, NULL);
    Nui__Common__V1__Envelope *known = job_envelope (
        s, &(struct job_make){.script = "exit 3\n", .expires_in = 4 * US_PER_S});
    Nui__Common__V1__Envelope *fresh = job_envelope (
        s, &(struct job_make){.script = "exit 0\n", .expires_in = 4 * US_PER_S});
    time_us expiry = clock_now_us () + 4 * US_PER_S;
    assert_int_equal (hand_over (s, s->as_meta, known, "grid.1", 1, text), 0);
    site_wait_state (s, "alpha.1", STATE (FAILED));
    site_wait (s, is_past, &expiry, "the signature to expire");
    assert_refused (hand_over (s, s->as_meta, fresh, "grid.2", 1, text), text, "expired at");
    assert_refused (hand_over (s, s->as_rival, known, "grid.1", 1, text), text, "replayed");
    assert_int_equal (hand_over (s, s->as_meta, known, "grid.1", 2, text), 0);
    assert_string_equal (text, "");
    site_wait_state (s, "alpha.2", STATE (FAILED));
    envelope_free (known);
    envelope_free (fresh);
}

static void no_signature_is_good_for_ever (void **state)
{
    struct site *s = *state;
    char text[600];
    site_start (s, "REPLAYWINDOW 00:01:00");
    Nui__Common__V1__Envelope *envelope = job_envelope (
        s, &(struct job_make){.script = "exit 0\n", .created_in = -120 * US_PER_S});
    assert_refused (hand_over (s, s->as_meta, envelope, "grid.1", 1, text), text,
                    "REPLAYWINDOW of this site");
    envelope_free (envelope);
}

int main (void)
{
#define T(name) cmocka_unit_test_setup_teardown (name, site_setup, site_teardown)
    const struct CMUnitTest tests[] = {
        T (a_signed_job_is_taken_once), T (a_prepared_part_is_remembered),
        T (after_its_expiry_only_retries), T (no_signature_is_good_for_ever),
    };
    cmocka_set_test_filter (getenv ("NUI_TEST_ONLY"));
    return cmocka_run_group_tests (tests, site_group_setup, site_group_teardown);
}
