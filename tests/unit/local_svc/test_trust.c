/* What a metascheduler may not do with a job that a user did sign. */
#include "site.h"

#include <pwd.h>
#include <unistd.h>

#include "proto/nui/v1/admin.pb-c.h"

#define STATE(name) NUI__LOCAL__V1__JOB_STATE__JOB_##name

/* Hands an envelope over, as that leader of it (0: of no group), to be ended when the metascheduler has not been
 * heard for so long (0: never); the refusal goes to text ("": taken). Returns the
 * error code, or 0. */
static int hand_over_by (struct rpcclient *as, uint64_t epoch, duration_us contact,
                         Nui__Common__V1__Envelope *envelope, const char *grid_id, uint32_t attempt,
                         char text[600])
{
    Nui__Local__V1__SubmitRequest request = NUI__LOCAL__V1__SUBMIT_REQUEST__INIT;
    Nui__Local__V1__SubmitReply *reply = NULL;
    struct err err = {0};
    request.envelope = envelope;
    request.component = (char *)"main";
    request.grid_job_id = (char *)grid_id;
    request.attempt = attempt;
    request.epoch = epoch;
    request.contact_us = contact;
    int rc = site_call (as, "Submit", &request, &reply, &err);
    text[0] = 0;
    if (rc != 0)
        snprintf (text, 600, "%s", err.text);
    else if (!reply->accepted)
        snprintf (text, 600, "%s: %s", reply->reason->code, reply->reason->text);
    free_message (reply);
    return rc;
}

static int hand_over (struct site *s, struct rpcclient *as, Nui__Common__V1__Envelope *envelope,
                      const char *grid_id, uint32_t attempt, char text[600])
{
    (void)s;
    return hand_over_by (as, 0, 0, envelope, grid_id, attempt, text);
}

/* A slot of the envelope's component in so long from now, with so long a lease. */
static time_us next_said; /* with the last answer to PREPARE */

static int prepare_at (struct rpcclient *as, Nui__Common__V1__Envelope *envelope,
                       const char *grid_id, uint8_t transaction, duration_us in, duration_us lease,
                       char text[600])
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
    r.slot_start_us = clock_now_us () + in;
    r.lease_us = lease;
    r.start_token_hash.data = hash;
    r.start_token_hash.len = sizeof hash;
    int rc = site_call (as, "Prepare", &r, &reply, &err);
    text[0] = 0;
    if (rc != 0)
        snprintf (text, 600, "%s", err.text);
    else if (!reply->granted)
        snprintf (text, 600, "%s: %s", reply->reason->code, reply->reason->text);
    next_said = rc == 0 ? reply->next_feasible_us : 0;
    free_message (reply);
    return rc;
}

static int prepare_it (struct rpcclient *as, Nui__Common__V1__Envelope *envelope,
                       const char *grid_id, uint8_t transaction, char text[600])
{
    return prepare_at (as, envelope, grid_id, transaction, 3600 * US_PER_S, 60 * US_PER_S, text);
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
    Nui__Common__V1__Envelope *known =
        job_envelope (s, &(struct job_make){.script = "exit 3\n", .expires_in = 4 * US_PER_S});
    Nui__Common__V1__Envelope *fresh =
        job_envelope (s, &(struct job_make){.script = "exit 0\n", .expires_in = 4 * US_PER_S});
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

/* One of a group goes on with what another had, under the same id; nobody else does. */
static void a_group_is_one_metascheduler (void **state)
{
    struct site *s = *state;
    char text[600];
    site_start (s, "METAGROUP meta rival third");
    Nui__Common__V1__Envelope *envelope =
        job_envelope (s, &(struct job_make){.script = "exit 0\n"});
    assert_int_equal (prepare_it (s->as_meta, envelope, "grid.1", 1, text), 0);
    assert_string_equal (text, "");
    assert_int_equal (prepare_it (s->as_rival, envelope, "grid.1", 2, text), 0);
    assert_string_equal (text, "");
    assert_refused (prepare_it (s->as_rival, envelope, "grid.2", 3, text), text, "replayed");
    site_kill (s);
    site_start (s, NULL);
    assert_refused (prepare_it (s->as_rival, envelope, "grid.1", 4, text), text, "replayed");
    envelope_free (envelope);
}

/* Of a group only who leads a job now may hand it over: what one before sent comes too late, also where the later one
 * was told no, and after kill -9. What is not signed shuts nobody out. */
static void an_earlier_leader_comes_too_late (void **state)
{
    struct site *s = *state;
    char text[600];
    site_start (s, "METAGROUP meta rival third");
    s->mood = BANK_SILENT;
    Nui__Common__V1__Envelope *job = job_envelope (s, &(struct job_make){.script = "echo good\n"});
    Nui__Common__V1__Envelope *large =
        job_envelope (s, &(struct job_make){.script = "exit 0\n", .tasks = 9});
    uint8_t *word = memmem (job->body.data, job->body.len, "good", 4);
    assert_int_equal (hand_over_by (s->as_meta, 1, 0, job, "grid.1", 1, text), 0);
    assert_string_equal (text, "");
    assert_int_equal (hand_over_by (s->as_rival, 2, 0, job, "grid.1", 1, text), 0);
    assert_string_equal (text, "");
    assert_int_equal (hand_over_by (s->as_meta, 1, 0, job, "grid.1", 1, text), ERR_CONFLICT);
    assert_int_equal (hand_over_by (s->as_meta, 1, 0, job, "grid.1", 2, text), ERR_CONFLICT);
    assert_int_equal (hand_over_by (s->as_rival, 2, 0, large, "grid.2", 1, text), 0);
    assert_non_null (strstr (text, "NoResources"));
    site_kill (s);
    site_start (s, "METAGROUP meta rival third");
    assert_int_equal (hand_over_by (s->as_meta, 1, 0, job, "grid.1", 2, text), ERR_CONFLICT);
    assert_int_equal (hand_over_by (s->as_meta, 1, 0, large, "grid.2", 1, text), ERR_CONFLICT);
    assert_non_null (strstr (text, "older"));
    memcpy (word, "evil", 4);
    assert_refused (hand_over_by (s->as_rival, 9, 0, job, "grid.1", 1, text), text, "");
    memcpy (word, "good", 4);
    assert_int_equal (hand_over_by (s->as_rival, 2, 0, job, "grid.1", 1, text), 0);
    assert_string_equal (text, "");
    envelope_free (job);
    envelope_free (large);
}

static bool have_reported (struct site *s, void *arg)
{
    (void)arg;
    return s->reports && (s->third_reports || !s->third_serves);
}

/* A job of rival's, which has never been heard here. */
static void submit_unheard (struct site *s, char id[64])
{
    Nui__Local__V1__JobRequest nothing = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    char text[600];
    Nui__Common__V1__Envelope *envelope =
        job_envelope (s, &(struct job_make){.script = "exit 0\n"});
    site_wait (s, have_reported, NULL, "the first reports");
    nothing.job_id =
        (char *)"alpha.99"; /* their answers were under way before this was: the site has both */
    assert_int_equal (site_call (s->as_meta, "Job", &nothing, NULL, NULL), ERR_NOT_FOUND);
    assert_int_equal (hand_over_by (s->as_rival, 1, 60 * US_PER_S, envelope, "grid.1", 1, text), 0);
    assert_string_equal (text, "");
    snprintf (id, 64, "alpha.1");
    envelope_free (envelope);
}

/* Of a group whoever leads the job counts whom the site reaches: more than half of them is enough, */
static void two_of_three_have_heard_of_it (void **state)
{
    struct site *s = *state;
    char id[64];
    s->third_serves = true;
    site_start (s, "METAGROUP meta rival third");
    submit_unheard (s, id);
    site_wait_state (s, id, STATE (COMPLETED));
}

/* and less is not, also where who sent it is among them. */
static void one_of_three_has_heard_of_it (void **state)
{
    struct site *s = *state;
    char id[64];
    site_start (s, "METAGROUP meta rival third");
    s->mood = BANK_SILENT;
    submit_unheard (s, id);
    site_wait_state (s, id, STATE (CANCELLED));
    assert_string_equal (site_last_event (s, id)->reason->code, "ContactLost");
    Nui__Common__V1__Envelope *own = job_envelope (s, &(struct job_make){.script = "exit 0\n"});
    char text[600];
    assert_int_equal (hand_over_by (s->as_meta, 1, 60 * US_PER_S, own, "grid.4", 1, text), 0);
    site_wait_state (s, "alpha.2", STATE (CANCELLED));
    envelope_free (own);
}

static void no_signature_is_good_for_ever (void **state)
{
    struct site *s = *state;
    char text[600];
    site_start (s, "REPLAYWINDOW 00:01:00");
    Nui__Common__V1__Envelope *envelope =
        job_envelope (s, &(struct job_make){.script = "exit 0\n", .created_in = -120 * US_PER_S});
    assert_refused (hand_over (s, s->as_meta, envelope, "grid.1", 1, text), text,
                    "REPLAYWINDOW of this site");
    envelope_free (envelope);
}

/* --- what the site lets the grid have ------------------------------------------------------ */

/* Asked as the metascheduler: why not; "": it could run. */
static void query_it (struct rpcclient *as, Nui__Common__V1__Envelope *envelope, char text[600])
{
    Nui__Local__V1__QueryRequest r = NUI__LOCAL__V1__QUERY_REQUEST__INIT;
    Nui__Local__V1__QueryReply *reply = NULL;
    struct err err = {0};
    r.envelope = envelope;
    r.component = (char *)"main";
    if (site_call (as, "Query", &r, &reply, &err) != 0)
        fail_msg ("query: %s", err.text);
    snprintf (text, 600, "%s", reply->feasible ? "" : reply->reason->text);
    free_message (reply);
}

/* msub: the id, or the refusal. */
static int msub (struct rpcclient *as, Nui__Common__V1__Envelope *envelope, char text[600])
{
    Nui__Local__V1__SubmitJobRequest request = NUI__LOCAL__V1__SUBMIT_JOB_REQUEST__INIT;
    Nui__Local__V1__SubmitJobReply *reply = NULL;
    struct err err = {0};
    request.envelope = envelope;
    int rc = rpcclient_call (as, &nui__local__v1__admin__descriptor, "SubmitJob", &request.base,
                             15 * US_PER_S, true, (ProtobufCMessage **)&reply, &err);
    snprintf (text, 600, "%s", rc ? err.text : reply->job_id);
    free_message (reply);
    return rc;
}

static int job_asked (struct rpcclient *as, const char *method, const char *id, char text[600])
{
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    void *reply = NULL;
    struct err err = {0};
    request.job_id = (char *)id;
    int rc = site_call (as, method, &request, &reply, &err);
    snprintf (text, 600, "%s", err.text);
    free_message (reply);
    return rc;
}

static void wait_running (struct rpcclient *as, const char *id)
{
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    duration_us until = clock_monotonic_us () + 20 * US_PER_S;
    int state = 0;
    request.job_id = (char *)id;
    while (state != STATE (RUNNING) && clock_monotonic_us () < until) {
        Nui__Local__V1__JobInfo *info = NULL;
        struct err err = {0};
        if (site_call (as, "Job", &request, &info, &err) != 0)
            fail_msg ("%s", err.text);
        state = (int)info->state;
        free_message (info);
    }
    assert_int_equal (state, STATE (RUNNING));
}

/* Seen: any metascheduler saw and cancelled what was handed in here, and what another gave. */
static void a_metascheduler_sees_its_own (void **state)
{
    struct site *s = *state;
    char id[600], text[600], theirs[64];
    s->third_serves = true;
    site_start (s, "");
    Nui__Common__V1__Envelope *own = job_envelope (s, &(struct job_make){.script = "sleep 30"});
    assert_int_equal (msub (s->as_alice, own, id), 0);
    site_submit (s, "grid.7", &(struct job_make){.script = "sleep 30"}, theirs);
    struct rpcclient *const metas[] = {s->as_meta, s->as_rival};
    for (int i = 0; i < 2; i++) {
        assert_int_equal (job_asked (metas[i], "Job", id, text), ERR_DENIED);
        assert_int_equal (job_asked (metas[i], "Cancel", id, text), ERR_DENIED);
    }
    assert_int_equal (job_asked (s->as_rival, "Job", theirs, text), ERR_DENIED);
    assert_int_equal (job_asked (s->as_rival, "Cancel", theirs, text), ERR_DENIED);
    assert_int_equal (job_asked (s->as_meta, "Job", theirs, text), 0);
    assert_int_equal (job_asked (s->as_alice, "Job", id, text), 0);
    site_wait_state (s, theirs, STATE (RUNNING));
    assert_int_equal (s->third_told, 0); /* it hears of the site, and of no job */
    assert_int_equal (job_asked (s->as_alice, "Cancel", id, text), 0);
    assert_int_equal (job_asked (s->as_meta, "Cancel", theirs, text), 0);
    envelope_free (own);
}

/* Every call that a metascheduler has, with nothing in it: the refusal of each, or "". */
static void call_empty (struct rpcclient *as, const char *method, int wanted, const char *words)
{
    const ProtobufCServiceDescriptor *service = &nui__local__v1__local__descriptor;
    const ProtobufCMethodDescriptor *m =
        protobuf_c_service_descriptor_get_method_by_name (service, method);
    struct err err = {0};
    assert_non_null (m);
    ProtobufCMessage *request = malloc (m->input->sizeof_message);
    protobuf_c_message_init (m->input, request);
    int rc = rpcclient_call (as, service, method, request, 60 * US_PER_S, true, NULL, &err);
    free (request);
    if ((wanted && rc != wanted) || !strstr (err.text, words) ||
        (!wanted && (rc == ERR_DENIED || rc == ERR_UNAVAILABLE)))
        fail_msg ("%s: %d, %s", method, rc, err.text);
}

static void calls_empty (struct rpcclient *as, int wanted, const char *words)
{
    static const char users[] = " Output Files Fetch Put "; /* which no metascheduler has */
    const ProtobufCServiceDescriptor *service = &nui__local__v1__local__descriptor;
    char name[64];
    for (unsigned i = 0; i < service->n_methods; i++) {
        snprintf (name, sizeof name, " %s ", service->methods[i].name);
        if (!strstr (users, name))
            call_empty (as, service->methods[i].name, wanted, words);
    }
}

/* Of a grid's metaschedulers those that META and the rest of the file name, by the certificate that is shown at META's
 * addresses. It is known again after a restart, also when nobody answers there; and before it is known nobody is told
 * no for good. */
static void a_site_speaks_to_whom_it_names (void **state)
{
    static const char *const lines[] = {"GRIDCFG[rival] MAXPROC=6", "PEERCAP[rival] HOLDS=9",
                                        "METAGROUP rival other third"};
    struct site *s = *state;
    const char *no = "site alpha does not serve metascheduler rival";
    char text[600];
    s->rival_unnamed = true;
    site_start (s, "GRIDCFG[DEFAULT] MAXPROC=6\nPEERCAP[DEFAULT] HOLDS=9");
    Nui__Common__V1__Envelope *own = job_envelope (s, &(struct job_make){.script = "exit 0"});
    calls_empty (s->as_rival, ERR_DENIED, no);
    calls_empty (s->as_meta, 0, "");
    assert_int_equal (hand_over (s, s->as_rival, own, "grid.1", 1, text), ERR_DENIED);
    site_wait (s, site_logged, (char *)" meta named ", "its name to be kept");
    site_kill (s);
    rpcserver_destroy (s->meta_server);
    s->meta_server = NULL;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        site_start (s, lines[i]);
        calls_empty (s->as_rival, 0, "");
        site_kill (s);
    }
    site_start (s, "");
    calls_empty (s->as_rival, ERR_DENIED, no);
    assert_int_equal (hand_over (s, s->as_meta, own, "grid.1", 1, text), 0);
    assert_string_equal (text, "");
    site_kill (s);
    s->meta_port = 1; /* an address where it has met nobody */
    site_start (s, "");
    calls_empty (s->as_rival, ERR_UNAVAILABLE, "site alpha has not reached META 127.0.0.1:1 yet");
    envelope_free (own);
}

/* A job that is handed in on the spot is checked as one that comes by the grid. */
static void handed_in_on_the_spot (void **state)
{
    static const uint8_t uuid[16] = {7, 7, 7};
    struct site *s = *state;
    char first[600], text[600];
    site_start (s, "");
    Nui__Common__V1__Envelope *e[] = {
        job_envelope (s, &(struct job_make){.script = "exit 0", .uuid = uuid}),
        job_envelope (s, &(struct job_make){.script = "exit 1", .uuid = uuid}),
        job_envelope (s, &(struct job_make){.script = "exit 0"}),
        job_envelope (s, &(struct job_make){.script = "exit 0", .created_in = 3600 * US_PER_S}),
        job_envelope (s,
                      &(struct job_make){.script = "exit 0", .walltime = 400 * 86400 * US_PER_S}),
        job_envelope (s, &(struct job_make){.script = "exit 0", .hosts = "n[1-1048570]"}),
        job_envelope (s, &(struct job_make){.script = "exit 0", .boundless = true}),
    };
    assert_int_equal (msub (s->as_alice, e[0], first), 0);
    assert_int_equal (msub (s->as_alice, e[0], text), 0); /* again: the same job */
    assert_string_equal (text, first);
    assert_int_equal (msub (s->as_alice, e[1], text), ERR_EXISTS);
    assert_non_null (strstr (text, "a job with this uuid and other content was taken as"));
    assert_refused (hand_over (s, s->as_meta, e[0], "grid.9", 1, text), text, "replayed");
    assert_int_equal (hand_over (s, s->as_meta, e[2], "grid.1", 1, text), 0);
    assert_int_equal (msub (s->as_alice, e[2], text), ERR_UNAUTHENTIC);
    assert_string_equal (text, "replayed: this signed job was taken here before, as grid.1");
    assert_int_equal (msub (s->as_alice, e[3], text), ERR_INVALID);
    assert_string_equal (text, "the job was created in the future; check the clocks");
    assert_int_equal (msub (s->as_alice, e[4], text), ERR_INVALID);
    assert_non_null (strstr (text, "at most 366 days"));
    assert_int_equal (msub (s->as_alice, e[5], text), ERR_LIMIT); /* before a name is made */
    assert_non_null (strstr (text, "range 1-1048570 has more than"));
    assert_int_equal (msub (s->as_alice, e[6], text), ERR_DENIED); /* nobody told its user */
    assert_non_null (
        strstr (text, "jobs are charged at site alpha, and this one's user signed no bound"));
    assert_int_equal (msub (s->as_bob, e[0], text), ERR_UNAUTHENTIC);
    if (geteuid () == 0) { /* on the socket: who is not the signer's account */
        struct passwd *other = getpwnam ("nobody");
        Nui__Common__V1__Envelope *cheque =
            job_envelope (s, &(struct job_make){.script = "exit 0"});
        assert_non_null (other);
        assert_int_equal (seteuid (other->pw_uid), 0);
        int rc = msub (s->as_local, cheque, text);
        assert_int_equal (seteuid (0), 0);
        assert_int_equal (rc, ERR_UNAUTHENTIC);
        assert_non_null (strstr (text, "but nobody sends it"));
        envelope_free (cheque);
    }
    for (size_t i = 0; i < sizeof e / sizeof *e; i++)
        envelope_free (e[i]);
}

static bool asked_twice (struct site *s, void *arg)
{
    (void)arg;
    return s->hold_calls >= 2;
}

/* The first job with the second inside, as msub sends what is signed for the site's fallback account. */
static void both_signed (struct site *s, const struct job_make *second, const char *nested,
                         const char *words)
{
    char text[600];
    Nui__Common__V1__Envelope *first = job_envelope (s, &(struct job_make){.script = "exit 0"});
    Nui__Common__V1__Envelope *other = job_envelope (s, second);
    if (nested) {
        other->fallback.data = (uint8_t *)strdup (nested);
        other->fallback.len = strlen (nested);
    }
    first->fallback.len = nui__common__v1__envelope__get_packed_size (other);
    first->fallback.data = malloc (first->fallback.len);
    nui__common__v1__envelope__pack (other, first->fallback.data);
    int rc = msub (s->as_alice, first, text);
    if (*words ? !strstr (text, words) : rc != 0)
        fail_msg ("'%s' instead of '%s'", text, words);
    assert_int_equal (rc != 0, *words != 0);
    if (rc ==
        0) { /* again, when it goes on with the other account: the same job; the second alone is another one */
        char id[600], again[600];
        snprintf (id, sizeof id, "%s", text);
        site_wait (s, asked_twice, NULL, "the bank to be asked for both accounts");
        assert_int_equal (msub (s->as_alice, first, again), 0);
        assert_string_equal (again, id);
        assert_int_equal (msub (s->as_alice, other, again), 0);
        assert_string_not_equal (again, id);
    }
    envelope_free (first);
    envelope_free (other);
}

static void signed_for_another_account_too (void **state)
{
    struct site *s = *state;
    s->mood = BANK_REFUSES;
    site_start (s, "AMCFG[bank] FALLBACKACCOUNT=idle\nDEFERTIME 01:00:00\nRMPOLLINTERVAL 1\n");
    both_signed (s, &(struct job_make){.script = "exit 0", .account = "idle"}, NULL, "");
    both_signed (s, &(struct job_make){.script = "exit 0", .account = "rich"}, NULL,
                 "site alpha's fallback account is idle, not rich");
    both_signed (s, &(struct job_make){.script = "exit 1", .account = "idle"}, NULL,
                 "what is signed for the fallback account is not the same job");
    both_signed (s, &(struct job_make){.script = "exit 0", .account = "idle", .boundless = true},
                 NULL, "is not the same job");
    both_signed (s, &(struct job_make){.script = "exit 0", .account = "idle", .signer = "bob"},
                 NULL,
                 "for the fallback account: nui://test/user/bob has no account at site alpha");
    both_signed (s, &(struct job_make){.script = "exit 0", .account = "idle", .signer = "mallory"},
                 NULL, "for the fallback account");
    both_signed (s, &(struct job_make){.script = "exit 0", .account = "idle"}, "more",
                 "what is signed for the fallback account cannot be read");
    site_kill (s);
    site_start (s, "");
    both_signed (s, &(struct job_make){.script = "exit 0", .account = "idle"}, NULL,
                 "site alpha has no fallback account");
}

/* What stands where the second job should: bytes that only fallback.c looks into. */
static void said_of (struct site *s, const void *bytes, size_t len, const char *words)
{
    char text[600];
    Nui__Common__V1__Envelope *first = job_envelope (s, &(struct job_make){.script = "exit 0"});
    first->fallback.len = len;
    first->fallback.data = malloc (len);
    memcpy (first->fallback.data, bytes, len);
    assert_int_not_equal (msub (s->as_alice, first, text), 0);
    if (!strstr (text, words))
        fail_msg ("'%s' instead of '%s'", text, words);
    envelope_free (first);
}

static void hostile_second_jobs (void **state)
{
    static const char unread[] = "what is signed for the fallback account cannot be read";
    enum { EMPTIES = 100000 };
    struct site *s = *state;
    s->mood = BANK_REFUSES;
    site_start (s, "AMCFG[bank] FALLBACKACCOUNT=idle\n");
    Nui__Common__V1__Envelope *second =
        job_envelope (s, &(struct job_make){.script = "exit 0", .account = "idle"});
    size_t len = nui__common__v1__envelope__get_packed_size (second);
    uint8_t *bytes = malloc (len + 2 * EMPTIES);
    nui__common__v1__envelope__pack (second, bytes);
    for (size_t cut = 1; cut < len; cut += 1 + len / 64) /* torn */
        said_of (s, bytes, cut, "fallback account");
    for (size_t i = 0; i < 2 * EMPTIES;
         i += 2) /* a field that nobody knows, empty, and again: 144 MB of heap */
        memcpy (bytes + len + i, "\x7a", 2);
    said_of (s, bytes, len + 2 * EMPTIES, unread);
    memset (bytes, 0xff, len);
    said_of (s, bytes, len, unread);
    memset (bytes, 0x0b, len); /* a group that begins, within each other */
    said_of (s, bytes, len, unread);
    said_of (s, "", 1, unread);
    both_signed (s, &(struct job_make){.script = "exit 0", .account = "idle"}, NULL,
                 ""); /* it lives */
    free (bytes);
    envelope_free (second);
}

/* By QUERY, SUBMIT and PREPARE the same sentence, or the same yes (words ""). */
static void policy_says (struct site *s, struct rpcclient *as, const struct job_make *make,
                         const char *words)
{
    static unsigned n;
    char text[3][600], name[2][32];
    Nui__Common__V1__Envelope *envelope[2] = {job_envelope (s, make), job_envelope (s, make)};
    for (int i = 0; i < 2; i++)
        snprintf (name[i], sizeof name[i], "grid.%u", ++n);
    query_it (as, envelope[0], text[0]);
    assert_int_equal (hand_over (s, as, envelope[0], name[0], 1, text[1]), 0);
    assert_int_equal (prepare_it (as, envelope[1], name[1], (uint8_t)n, text[2]), 0);
    for (int i = 0; i < 3; i++)
        if (*words ? !strstr (text[i], words) : *text[i])
            fail_msg ("%d: '%s' instead of '%s'", i, text[i], words);
    for (int i = 0; i < 2; i++)
        envelope_free (envelope[i]);
}

static void each_rule_is_named (void **state)
{
    struct site *s = *state;
    char words[200];
    site_start (s, "GRIDCFG[DEFAULT] MAXJOBWALLTIME=00:10:00 MAXPROCPERJOB=4 QLIST=grid,fine "
                   "QDEF=grid USERLIST=!bob,ALL ACCOUNTLIST=chem\n"
                   "GRIDCFG[rival] MAXPROCPERJOB=1\n"
                   "QOSCFG[grid] PRIORITY=1\nQOSCFG[fine] PRIORITY=2\nQOSCFG[best] PRIORITY=3\n"
                   "USERCFG[DEFAULT] QLIST=grid,fine,best\n");
    policy_says (s, s->as_meta, &(struct job_make){.script = "exit 0\n", .tasks = 4}, "");
    policy_says (s, s->as_meta, &(struct job_make){.script = "exit 0\n", .qos = "fine"}, "");
    policy_says (s, s->as_meta, &(struct job_make){.script = "exit 0\n", .qos = "best"},
                 "GRIDCFG[DEFAULT] QLIST=grid,fine for jobs of the grid: the QoS is best");
    policy_says (s, s->as_meta, &(struct job_make){.script = "exit 0\n", .tasks = 5},
                 "MAXPROCPERJOB=4 for jobs of the grid: asked are 5 processors");
    policy_says (s, s->as_meta,
                 &(struct job_make){.script = "exit 0\n", .walltime = 601 * US_PER_S},
                 "MAXJOBWALLTIME=00:10:00 for jobs of the grid: asked are 00:10:01");
    policy_says (s, s->as_meta, &(struct job_make){.script = "exit 0\n", .account = "phys"},
                 "ACCOUNTLIST=chem for jobs of the grid: the account is phys");
    /* The rival's own line says what DEFAULT's does not. */
    policy_says (s, s->as_rival, &(struct job_make){.script = "exit 0\n"}, "");
    policy_says (s, s->as_rival, &(struct job_make){.script = "exit 0\n", .tasks = 2},
                 "GRIDCFG[rival] MAXPROCPERJOB=1");
    /* The file is looked at again. */
    site_kill (s);
    site_start (s, "GRIDCFG[DEFAULT] USERLIST=nui://test/user/bob\n");
    snprintf (words, sizeof words,
              "USERLIST=nui://test/user/bob for jobs of the grid: the user is "
              "nui://test/user/alice");
    policy_says (s, s->as_meta, &(struct job_make){.script = "exit 0\n"}, words);
}

static void a_share_of_the_site (void **state)
{
    struct site *s = *state;
    char text[600];
    site_start (s, "GRIDCFG[DEFAULT] SHARE=50 MAXLEASE=00:02:00 MAXAHEAD=02:00:00\n"
                   "GRIDCFG[rival] MAXPROC=6 SHARE=100\n");
    const struct job_make three = {.script = "exit 0\n", .tasks = 3, .walltime = 600 * US_PER_S};
    Nui__Common__V1__Envelope *e[6];
    for (int i = 0; i < 6; i++)
        e[i] = job_envelope (s, &three);
    duration_us hour = 3600 * US_PER_S, minute = 60 * US_PER_S;
    /* 8 processors: 4 at one time, and 3 are promised. */
    assert_int_equal (prepare_at (s->as_meta, e[0], "grid.1", 1, hour, minute, text), 0);
    assert_string_equal (text, "");
    assert_int_equal (prepare_at (s->as_meta, e[1], "grid.2", 2, hour + 5 * minute, minute, text),
                      0);
    assert_non_null (strstr (text,
                             "SHARE=50 for jobs of the grid: metascheduler meta has 3 processors "
                             "in that time and asks for 3 more"));
    /* It says when what stands in the way has ended. */
    assert_true (next_said > clock_now_us () + hour + 9 * minute);
    assert_true (next_said < clock_now_us () + hour + 15 * minute);
    assert_int_equal (prepare_at (s->as_meta, e[1], "grid.2", 3, hour + 15 * minute, minute, text),
                      0);
    assert_string_equal (text, "");
    /* What another has is not counted against it. */
    assert_int_equal (prepare_at (s->as_rival, e[2], "grid.1", 4, hour, minute, text), 0);
    assert_string_equal (text, "");
    assert_int_equal (prepare_at (s->as_meta, e[3], "grid.4", 5, hour, 3 * minute, text), 0);
    assert_non_null (
        strstr (text, "MAXLEASE=00:02:00 for jobs of the grid: the lease is 00:03:00"));
    assert_int_equal (prepare_at (s->as_meta, e[3], "grid.4", 6, 3 * hour, minute, text), 0);
    if (!strstr (text, "MAXAHEAD=2:00:00"))
        fail_msg ("%s", text);
    assert_int_equal (next_said, 0);
    /* And offers nothing that it would refuse. */
    Nui__Local__V1__QueryRequest r = NUI__LOCAL__V1__QUERY_REQUEST__INIT;
    Nui__Local__V1__QueryReply *reply = NULL;
    r.envelope = job_envelope (s, &(struct job_make){.script = "exit 0\n", .twins = 1});
    r.component = (char *)"main";
    assert_int_equal (site_call (s->as_meta, "Query", &r, &reply, NULL), 0);
    assert_true (reply->n_start_intervals > 0);
    for (size_t i = 0; i < reply->n_start_intervals; i++)
        assert_true (reply->start_intervals[i]->end_us <= reply->now_us + 2 * hour);
    free_message (reply);
    envelope_free (r.envelope);
    /* Also of what it had before a crash. */
    site_kill (s);
    site_start (s, "GRIDCFG[DEFAULT] SHARE=50\nGRIDCFG[rival] MAXPROC=5 SHARE=100\n");
    assert_int_equal (prepare_at (s->as_meta, e[4], "grid.5", 7, hour, minute, text), 0);
    assert_non_null (strstr (text, "SHARE=50"));
    assert_int_equal (prepare_at (s->as_rival, e[5], "grid.6", 8, hour, minute, text), 0);
    assert_non_null (strstr (text, "MAXPROC=5"));
    for (int i = 0; i < 6; i++)
        envelope_free (e[i]);
}

static bool waits_for_its_share (struct site *s, void *arg)
{
    const Nui__Local__V1__JobInfo *e = site_last_event (s, arg);
    return e && e->reason && strcmp (e->reason->code, "GridPolicy") == 0;
}

/* What starts from the queue is counted as slots are, and with them. */
static void a_share_of_what_runs (void **state)
{
    struct site *s = *state;
    char gate[300], script[400], first[64], second[64], rivals[64], text[600];
    const char *config = "GRIDCFG[DEFAULT] SHARE=50\nGRIDCFG[rival] SHARE=100\nRMPOLLINTERVAL 1\n";
    site_start (s, config);
    snprintf (gate, sizeof gate, "%s/gate", s->dir);
    snprintf (script, sizeof script, "while [ ! -e %s ]; do sleep 0.05; done\n", gate);
    const struct job_make three = {.script = script, .tasks = 3, .walltime = 600 * US_PER_S};
    site_submit (s, "grid.1", &three, first);
    site_wait_state (s, first, STATE (RUNNING));
    site_submit (s, "grid.2", &three, second);
    site_wait (s, waits_for_its_share, second, "the second to be over the share");
    assert_non_null (
        strstr (site_last_event (s, second)->reason->text,
                "SHARE=50 for jobs of the grid: metascheduler meta has 3 processors in that "
                "time and asks for 3 more"));
    Nui__Common__V1__Envelope *slot = job_envelope (s, &three), *other = job_envelope (s, &three);
    assert_int_equal (
        prepare_at (s->as_meta, slot, "grid.3", 1, 60 * US_PER_S, 60 * US_PER_S, text), 0);
    assert_non_null (strstr (text, "SHARE=50"));
    assert_int_equal (hand_over (s, s->as_rival, other, "grid.1", 1, text),
                      0); /* 3 of 8 are free, and another's */
    assert_string_equal (text, "");
    snprintf (rivals, sizeof rivals, "alpha.3");
    wait_running (s->as_rival, rivals); /* of which the metascheduler hears nothing */
    site_kill (s);
    site_start (s, config);
    assert_non_null (strstr (site_last_event (s, second)->reason->text, "SHARE=50"));
    fclose (fopen (gate, "w"));
    site_wait_state (s, first, STATE (COMPLETED));
    site_wait_state (s, second, STATE (COMPLETED));
    envelope_free (slot);
    envelope_free (other);
}

static bool priced_too_low (struct site *s, void *arg)
{
    const Nui__Local__V1__JobInfo *e = site_last_event (s, arg);
    return e && e->reason && strcmp (e->reason->code, "MinPrice") == 0;
}

static bool holds_are_back (struct site *s, void *arg)
{
    (void)arg;
    return s->releases == 2;
}

/* The bank holds a credit for each processor-second. */
static void not_below_its_price (void **state)
{
    struct site *s = *state;
    char id[64], text[600];
    site_start (s, "GRIDCFG[DEFAULT] MINPRICE=1.25\nDEFERTIME 01:00:00\n");
    site_submit (s, "grid.1", &(struct job_make){.script = "exit 0\n"}, id);
    site_wait (s, priced_too_low, id, "the price to be refused");
    assert_non_null (
        strstr (site_last_event (s, id)->reason->text,
                "MINPRICE=1.25 for each processor-second of jobs of the grid: the bank "
                "holds 60 for 1 processors"));
    Nui__Common__V1__Envelope *envelope =
        job_envelope (s, &(struct job_make){.script = "exit 0\n"});
    assert_int_equal (prepare_it (s->as_meta, envelope, "grid.2", 1, text), 0);
    assert_non_null (strstr (text, "MinPrice"));
    site_wait (s, holds_are_back, NULL, "both holds to be given back");
    site_kill (s);
    site_start (s, "GRIDCFG[DEFAULT] MINPRICE=1\n");
    assert_int_equal (prepare_it (s->as_meta, envelope, "grid.2", 2, text), 0);
    assert_string_equal (text, "");
    envelope_free (envelope);
}

/* Nodes and hours are Maui's reservations, with a list that the grid is not on. */
static void nodes_that_the_grid_does_not_get (void **state)
{
    struct site *s = *state;
    char id[64], text[600];
    site_start (s, "SRCFG[own] PERIOD=INFINITY HOSTLIST=alpha0[1-3] JOBATTRLIST=!GRID "
                   "PROCLIMIT=>=1\n");
    Nui__Common__V1__Envelope *envelope =
        job_envelope (s, &(struct job_make){.script = "exit 0\n", .tasks = 3});
    query_it (s->as_meta, envelope, text);
    if (!strstr (text, "own"))
        fail_msg ("the reason does not name the reservation: %s", text);
    envelope_free (envelope);
    site_submit (s, "grid.1", &(struct job_make){.script = "exit 0\n", .tasks = 2}, id);
    site_wait_state (s, id, STATE (COMPLETED));
    const Nui__Local__V1__JobInfo *e = site_last_event (s, id);
    assert_int_equal (e->n_hosts, 1);
    assert_string_equal (e->hosts[0], "alpha04");
}

/* The hours of the day from one to three hours from now. */
static void hours_that_the_grid_does_not_get (void **state)
{
    struct site *s = *state;
    char config[300], text[600], at[2][16];
    duration_us hour = 3600 * US_PER_S, minute = 60 * US_PER_S;
    for (int i = 0; i < 2; i++) {
        time_t t = (time_t)(clock_now_us () / US_PER_S) + (i ? 3 : 1) * 3600;
        strftime (at[i], sizeof at[i], "%H:%M:00", localtime (&t));
    }
    snprintf (config, sizeof config,
              "SRCFG[office] PERIOD=DAY STARTTIME=%s ENDTIME=%s HOSTLIST=alpha0[1-4] "
              "JOBATTRLIST=!GRID PROCLIMIT=>=1\n",
              at[0], at[1]);
    site_start (s, config);
    Nui__Common__V1__Envelope *envelope =
        job_envelope (s, &(struct job_make){.script = "exit 0\n", .walltime = 5 * minute});
    assert_int_equal (prepare_at (s->as_meta, envelope, "grid.1", 1, 2 * hour, minute, text), 0);
    assert_string_not_equal (text, "");
    assert_int_equal (prepare_at (s->as_meta, envelope, "grid.1", 2, hour / 2, minute, text), 0);
    assert_string_equal (text, "");
    assert_int_equal (
        prepare_at (s->as_meta, envelope, "grid.1", 3, 3 * hour + minute, minute, text), 0);
    assert_string_equal (text, "");
    envelope_free (envelope);
}

int main (void)
{
#define T(name) cmocka_unit_test_setup_teardown (name, site_setup, site_teardown)
    const struct CMUnitTest tests[] = {
        T (a_signed_job_is_taken_once),
        T (a_prepared_part_is_remembered),
        T (after_its_expiry_only_retries),
        T (no_signature_is_good_for_ever),
        T (a_group_is_one_metascheduler),
        T (an_earlier_leader_comes_too_late),
        T (two_of_three_have_heard_of_it),
        T (one_of_three_has_heard_of_it),
        T (a_metascheduler_sees_its_own),
        T (a_site_speaks_to_whom_it_names),
        T (handed_in_on_the_spot),
        T (signed_for_another_account_too),
        T (hostile_second_jobs),
        T (each_rule_is_named),
        T (a_share_of_the_site),
        T (a_share_of_what_runs),
        T (not_below_its_price),
        T (nodes_that_the_grid_does_not_get),
        T (hours_that_the_grid_does_not_get),
    };
    cmocka_set_test_filter (getenv ("NUI_TEST_ONLY"));
    return cmocka_run_group_tests (tests, site_group_setup, site_group_teardown);
}
