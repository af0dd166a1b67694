/* The Slurm adapter against a slurmrestd that is played: which version of the API is taken, what is
 * asked for, and that an answer which is cut short, wrong in a field or no JSON is a sentence in
 * the log, nothing decided and nothing lost until a good one comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "local/rm/slurm/rm_slurm.h"
#include "proto/base/clock.h"
#include "tests/unit/local_rm/fake_slurm.h"
#include "tests/unit/tmpdir.h"

enum { PARTITIONS, NODES, LICENCES, RESERVATIONS, JOBS, LISTS };
static const char *const list_name[LISTS] = {"partitions", "nodes", "licenses", "reservations",
                                             "jobs"};

struct world {
    char dir[64];
    struct event_base *base;
    struct fake_slurm *fake;
    struct log *log;
    long log_from;
    struct rm rm;
    /* slurmrestd */
    const char *versions;
    int since, openapi_status;
    const char *openapi; /* NULL: of versions */
    struct strbuf good[LISTS];
    int status[LISTS];        /* 0: 200 */
    const char *bad[LISTS];   /* said instead; NULL: the good one */
    int status_since[LISTS];  /* of requests with update_time; 0: as without */
    char asked[64];           /* last version */
    char token[1024];         /* last one */
    unsigned tokens, expired; /* different ones; requests with one that was not good any more */
    unsigned count[LISTS], count_since[LISTS];
    /* what the adapter tells */
    unsigned reach, nodes, natives, started, ended;
    char handed[64];
    struct {
        enum rm_end end;
        time_us submit, start, end_at;
    } end[4];
    bool bind_again;      /* a requeued job, as its next incarnation */
    bool held, suspended; /* as told last */
    unsigned suspensions;
    char asked_for[512]; /* last "POST job/1 {…}" or "DELETE job/1 " */
    char told[4096];     /* " 1 2 3_0": natives in order */
};

/* Of {"iat":…,"exp":…,"sun":…}, the middle part of a token. */
static time_us expiry (const char *token)
{
    char part[1024], text[1024] = "";
    const char *from = strchr (token, '.');
    size_t len = strcspn (from + 1, ".");
    snprintf (part, sizeof part, "%.*s", (int)len, from + 1);
    for (char *c = part; *c; c++)
        *c = *c == '-' ? '+' : *c == '_' ? '/' : *c;
    for (; len % 4; len++)
        strcat (part, "=");
    assert_true (EVP_DecodeBlock ((unsigned char *)text, (unsigned char *)part, (int)len) > 0);
    return strtoll (strstr (text, "\"exp\":") + 6, NULL, 10) * US_PER_S;
}

static void token_look (struct world *w)
{
    const char *token = fake_slurm_token (w->fake);
    assert_non_null (token);
    w->expired += expiry (token) <= clock_now_us ();
    if (strcmp (token, w->token) == 0)
        return;
    snprintf (w->token, sizeof w->token, "%s", token);
    w->tokens++;
}

static int answer (void *arg, const char *method, const char *path, const char *query,
                   const char *sent, struct strbuf *body)
{
    struct world *w = arg;
    char what[32];
    token_look (w);
    if (strcmp (path, "/openapi/v3") == 0) {
        if (w->openapi)
            strbuf_puts (body, w->openapi);
        else
            fake_slurm_versions (w->versions, w->since, body);
        return w->openapi_status ? w->openapi_status : 200;
    }
    if (sscanf (path, "/slurm/%63[^/]/%31s", w->asked, what) != 2)
        return 404;
    if (strncmp (what, "job/", 4) == 0 && strcmp (method, "GET") != 0) {
        snprintf (w->asked_for, sizeof w->asked_for, "%s %s %s", method, what, sent);
        strbuf_puts (body, "{\"errors\":[]}");
        return 200;
    }
    if (strncmp (what, "job/", 4) == 0) { /* whoever asks for one is not misled by the others */
        strbuf_puts (body, strbuf_text (&w->good[JOBS]));
        return 200;
    }
    for (int i = 0; i < LISTS; i++) {
        if (strcmp (what, list_name[i]) != 0 ||
            (i == LICENCES && strcmp (w->asked, "v0.0.37") == 0))
            continue;
        bool since = strstr (query, "update_time=") != NULL;
        w->count[i]++;
        w->count_since[i] += since;
        if (since && w->status_since[i] == 304)
            return 304;
        if (since && w->status_since[i] == 500) {
            strbuf_puts (
                body, "{\"errors\":[{\"error\":\"Unspecified error\",\"errno\":-1}],\"nodes\":[]}");
            return 500;
        }
        strbuf_puts (body, w->bad[i] ? w->bad[i] : strbuf_text (&w->good[i]));
        return w->status[i] ? w->status[i] : 200;
    }
    return 404;
}

static void on_event (void *arg, const struct rm_event *event)
{
    struct world *w = arg;
    w->reach += event->kind == RM_EVENT_REACH;
    w->nodes += event->kind == RM_EVENT_NODES;
    w->started += event->kind == RM_EVENT_STARTED;
    if (event->kind == RM_EVENT_HANDED)
        snprintf (w->handed, sizeof w->handed, "%s=%s", event->job_id, event->rm_id);
    if (event->kind == RM_EVENT_SUSPENDED) {
        w->suspended = event->suspended;
        w->suspensions++;
    }
    if (event->kind == RM_EVENT_ENDED) {
        assert_true (w->ended < 4);
        w->end[w->ended].end = event->status->end;
        w->end[w->ended].start = event->status->start;
        w->end[w->ended].end_at = event->status->end_at;
        w->end[w->ended++].submit = event->submit;
        if (w->bind_again && event->status->end == RM_END_REQUEUED)
            assert_int_equal (w->rm.ops->bind (w->rm.self, "2", event->submit, "alpha.7",
                                               event->incarnation + 1, 0, NULL),
                              0);
    }
    for (uint32_t i = 0; event->kind == RM_EVENT_NATIVE && i < event->native_count; i++) {
        size_t len = strlen (w->told);
        w->natives++;
        if (strcmp (event->native[i].rm_id, "1") == 0)
            w->held = event->native[i].held_user || event->native[i].held_admin;
        snprintf (w->told + len, sizeof w->told - len, " %s", event->native[i].rm_id);
    }
}

static int setup (void **state)
{
    static const char *const recorded[LISTS] = {"partitions-38", "nodes-38", "licenses-38",
                                                "reservations-38", "jobs-38"};
    struct world *w = calloc (1, sizeof *w);
    struct err err = {0};
    char path[128];
    snprintf (w->dir, sizeof w->dir, "%s/nui-test-slurm-XXXXXX", tmpdir ());
    assert_non_null (mkdtemp (w->dir));
    snprintf (path, sizeof path, "%s/key", w->dir);
    FILE *f = fopen (path, "w");
    fprintf (f, "0123456789abcdef0123456789abcdef");
    fclose (f);
    for (int i = 0; i < LISTS; i++) {
        json_t *entries = fake_slurm_recorded (recorded[i]);
        fake_slurm_list (list_name[i], entries, &w->good[i]);
        json_decref (entries);
    }
    w->versions = "v0.0.37 v0.0.38";
    w->base = event_base_new ();
    w->fake = fake_slurm_create (w->base, answer, w);
    snprintf (path, sizeof path, "%s/log", w->dir);
    w->log = log_create (path, LOG_LEVEL_DEBUG, "test", &err);
    assert_non_null (w->log);
    *state = w;
    return 0;
}

static void begin (struct world *w)
{
    char server[64], key[128], jobs[128];
    struct err err = {0};
    snprintf (server, sizeof server, "http://127.0.0.1:%u", fake_slurm_port (w->fake));
    snprintf (key, sizeof key, "%s/key", w->dir);
    snprintf (jobs, sizeof jobs, "%s/jobs", w->dir);
    struct rm_slurm_config config = {.base = w->base,
                                     .log = w->log,
                                     .server = server,
                                     .key_file = key,
                                     .user = "root",
                                     .partition = "nui",
                                     .site = "alpha",
                                     .poll = US_PER_S / 50,
                                     .patience = 15 * US_PER_S,
                                     .token_life = 2 * US_PER_S,
                                     .job_dir = jobs,
                                     .on_event = on_event,
                                     .arg = w};
    if (rm_slurm_create (&config, &w->rm, &err) != 0)
        fail_msg ("%s", err.text);
}

static int teardown (void **state)
{
    struct world *w = *state;
    char command[128];
    if (w->rm.ops)
        w->rm.ops->destroy (w->rm.self);
    fake_slurm_destroy (w->fake);
    log_destroy (w->log);
    event_base_free (w->base);
    for (int i = 0; i < LISTS; i++)
        strbuf_free (&w->good[i]);
    snprintf (command, sizeof command, "rm -rf %s", w->dir);
    int rc = system (command);
    free (w);
    return rc;
}

/* What was said so far does not count any more. */
static void mark (struct world *w)
{
    char path[128];
    struct stat st;
    snprintf (path, sizeof path, "%s/log", w->dir);
    assert_int_equal (stat (path, &st), 0);
    w->log_from = st.st_size;
}

static bool said (struct world *w, const char *words)
{
    char path[128], line[2048];
    bool found = false;
    snprintf (path, sizeof path, "%s/log", w->dir);
    FILE *f = fopen (path, "r");
    fseek (f, w->log_from, SEEK_SET);
    while (!found && fgets (line, sizeof line, f))
        found = strstr (line, words) != NULL;
    fclose (f);
    return found;
}

/* Runs the loop until it is so. */
#define UNTIL(w, condition)                                                                        \
    do {                                                                                           \
        duration_us until_ = clock_monotonic_us () + 60 * US_PER_S;                                \
        while (!(condition)) {                                                                     \
            if (clock_monotonic_us () > until_)                                                    \
                fail_msg ("in vain: %s; %s", #condition, (w)->dir);                                \
            event_base_loop ((w)->base, EVLOOP_ONCE);                                              \
        }                                                                                          \
    } while (0)

static bool fresh (struct world *w)
{
    return w->rm.ops->fresh (w->rm.self);
}

/* --- versions ----------------------------------------------------------------------------- */

static void the_newest_version_known (void **state)
{
    struct world *w = *state;
    w->versions = "v0.0.36 v0.0.37 v0.0.38 v0.0.39";
    begin (w);
    UNTIL (w, fresh (w));
    assert_string_equal (w->asked, "v0.0.38");
    assert_string_equal (w->told, " 1 2 3_0 3_1 3_2 3_3 4");
    assert_true (
        said (w, "api_version version=v0.0.38 offered=\"v0.0.36, v0.0.37, v0.0.38, v0.0.39\""));
    assert_string_equal (w->rm.ops->licences (w->rm.self), "ansys:2,matlab:4");
}

/* It has no list of licences. */
static void an_older_version (void **state)
{
    struct world *w = *state;
    w->versions = "v0.0.36 v0.0.37";
    begin (w);
    UNTIL (w, fresh (w));
    assert_string_equal (w->asked, "v0.0.37");
    assert_string_equal (w->rm.ops->licences (w->rm.self), "");
    assert_int_equal (w->natives, 7);
}

static void no_version_known (void **state)
{
    static const struct {
        const char *versions, *openapi, *says;
        int status;
    } cases[] = {
        {"v0.0.36 v0.0.46", NULL,
         "slurmrestd offers v0.0.36, v0.0.46, and this program knows v0.0.40 to v0.0.45, v0.0.38 "
         "and v0.0.37",
         0},
        {"", NULL,
         "slurmrestd offers no version of its API (its options -s and -d choose them), and", 0},
        {"", "{\"paths\":7}", "slurmrestd offers no version of its API", 0},
        {"", "not JSON", "slurmrestd answered something that is no JSON object", 0},
        {"", "Authentication failure", "slurmrestd does not accept our token", 401},
        {"", "", "slurmrestd could not answer (is slurmctld up?)", 503},
        {"", "", "slurmrestd does not know what was asked for (HTTP 404)", 404},
    };
    struct world *w = *state;
    begin (w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned reached = w->reach;
        mark (w);
        w->openapi = cases[i].openapi;
        w->versions = cases[i].versions;
        w->openapi_status = cases[i].status;
        if (i > 0) { /* the version is asked for again once it could not be reached */
            w->bad[JOBS] = "";
            w->status[JOBS] = 500;
        }
        UNTIL (w, said (w, cases[i].says));
        assert_false (fresh (w));
        w->openapi = NULL;
        w->openapi_status = 0;
        w->versions = "v0.0.38";
        w->bad[JOBS] = NULL;
        w->status[JOBS] = 0;
        UNTIL (w, fresh (w));
        assert_true (w->reach > reached);
    }
    assert_int_equal (w->natives, 7);
}

/* --- answers that are wrong ---------------------------------------------------------------- */

static void wrong_answers (void **state)
{
    static const struct {
        int list, status;
        const char *body, *says;
    } cases[] = {
        {NODES, 0, "{\"nodes\":[{\"name\":\"n1\",\"state\":\"idle\",\"cpus\":4}]}",
         "node n1 has no field \\\"real_memory\\\""},
        {NODES, 0,
         "{\"nodes\":[{\"name\":\"n1\",\"state\":\"idle\",\"cpus\":[],\"real_memory\":1}]}",
         "field \\\"cpus\\\" of node n1 is a list, wanted a number"},
        {NODES, 0,
         "{\"nodes\":[{\"name\":\"n1\",\"state\":\"idle\",\"cpus\":4,\"real_memory\":-7}]}",
         "field \\\"real_memory\\\" of node n1 is -7, wanted 0 to"},
        {NODES, 0, "<html>", "slurmrestd answered something that is no JSON object"},
        {PARTITIONS, 0, "{\"partitions\":[{\"flags\":[]}]}",
         "a partition has no field \\\"name\\\""},
        {LICENCES, 0, "{\"licenses\":[{\"LicenseName\":\"m\",\"Total\":\"4\"}]}",
         "field \\\"Total\\\" of m is a text, wanted a number"},
        {LICENCES, 500, "{}", "slurmrestd could not answer (is slurmctld up?)"},
        {RESERVATIONS, 0, "{\"reservations\":[{\"name\":5}]}",
         "field \\\"name\\\" of a reservation is a number, wanted a text"},
        {JOBS, 0, "{\"jobs\":[{\"job_id\":5}]}", "job 5 has no field \\\"job_state\\\""},
        {JOBS, 0, "{\"jobs\":[{\"job_id\":5,\"job_state\":\"DREAMING\"}]}",
         "job 5 is in the state \\\"DREAMING\\\", which is not known"},
        {JOBS, 0, "{\"jobs\":[{\"job_id\":5,", "slurmrestd's answer ended early"},
        {JOBS, 0, "{\"jobs\":[{\"job_id\":tru}]}", "an entry of \\\"jobs\\\" is no JSON"},
        {JOBS, 0, "{\"errors\":[{\"error_number\":1005,\"error\":\"Protocol\"}],\"jobs\":[]}",
         "Protocol"},
        {JOBS, 511, "{\"errors\":[{\"error_number\":1007,\"error\":\"Protocol\"}],\"jobs\":[]}",
         "slurmrestd does not accept our token"},
        {JOBS, 500, "Authentication failure", "slurmrestd does not accept our token"},
        {JOBS, 500, "", "slurmrestd could not answer (is slurmctld up?)"},
        {JOBS, 418, "teapot", "slurmrestd answered HTTP 418: teapot"},
    };
    struct world *w = *state;
    begin (w);
    UNTIL (w, fresh (w));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int list = cases[i].list;
        mark (w);
        w->bad[list] = cases[i].body;
        w->status[list] = cases[i].status;
        if (list == PARTITIONS) { /* which are asked for when Slurm comes back */
            w->status[NODES] = 418;
            UNTIL (w, !fresh (w));
            w->status[NODES] = 0;
        }
        UNTIL (w, said (w, cases[i].says));
        assert_false (fresh (w));
        w->bad[list] = NULL;
        w->status[list] = 0;
        UNTIL (w, fresh (w));
    }
    assert_int_equal (w->natives, 7); /* told once, and not forgotten meanwhile */
}

/* --- changes only -------------------------------------------------------------------------- */

static void only_changes_are_asked_for (void **state)
{
    struct world *w = *state;
    w->since = 1;
    w->status_since[JOBS] = w->status_since[NODES] = 304;
    begin (w);
    UNTIL (w, w->count_since[JOBS] >= 12);
    assert_true (fresh (w));
    assert_int_equal (w->natives, 7);
    assert_int_equal (w->nodes, 1);
    assert_true (w->count[JOBS] > w->count_since[JOBS] + 1); /* now and then all of them */
    assert_true (w->count_since[NODES] >= 10);
    uint32_t count;
    const struct rm_node *node = w->rm.ops->nodes (w->rm.self, &count);
    assert_int_equal (count, 2);
    assert_string_equal (node[0].name, "n1");
    w->status_since[NODES] = 500; /* 22.05's word for: nodes changed, partitions did not */
    unsigned all = w->count[NODES] - w->count_since[NODES], some = w->count_since[NODES];
    UNTIL (w, w->count_since[NODES] >= some + 8);
    assert_true (w->count[NODES] - w->count_since[NODES] >= all + 7);
    assert_true (fresh (w));
    assert_int_equal (w->reach, 1);
}

static void what_the_api_does_not_have_is_not_asked (void **state)
{
    struct world *w = *state;
    begin (w);
    UNTIL (w, w->count[JOBS] >= 12);
    assert_int_equal (w->count_since[JOBS] + w->count_since[NODES], 0);
}

/* Cut off after some entries: these are told, and the others with the next whole answer. */
static void a_look_that_breaks_off (void **state)
{
    struct world *w = *state;
    char *half = strdup (strbuf_text (&w->good[JOBS]));
    half[strlen (half) * 2 / 3] = 0;
    w->bad[JOBS] = half;
    begin (w);
    UNTIL (w, said (w, "slurmrestd's answer ended early"));
    assert_false (fresh (w));
    assert_true (w->natives > 0 && w->natives < 7);
    w->bad[JOBS] = NULL;
    UNTIL (w, fresh (w));
    assert_int_equal (w->natives, 7);
    free (half);
}

/* --- tokens ------------------------------------------------------------------------------- */

static void a_token_is_renewed_before_it_expires (void **state)
{
    struct world *w = *state;
    begin (w);
    UNTIL (w, w->tokens >= 3);
    assert_int_equal (w->expired, 0);
    assert_true (fresh (w));
    assert_int_equal (w->reach, 1);
}

/* --- agreement ---------------------------------------------------------------------------- */

/* From now on Slurm says so of one of the recorded jobs (1 to 4), and of the others what it always said. */
static void job_says (struct world *w, int number, const char *state, json_t *fields)
{
    json_t *jobs = fake_slurm_recorded ("jobs-38"),
           *job = json_array_get (jobs, (size_t)number - 1);
    json_object_set_new (job, "job_state", json_string (state));
    json_object_update (job, fields);
    strbuf_clear (&w->good[JOBS]);
    fake_slurm_list ("jobs", jobs, &w->good[JOBS]);
    json_decref (jobs);
    json_decref (fields);
}

/* Slurm is looked at once, after what was under way already, and it is so. */
#define BY_THE_NEXT_LOOK(w, condition)                                                             \
    do {                                                                                           \
        unsigned looks_ = (w)->count[JOBS];                                                        \
        assert_false (condition);                                                                  \
        UNTIL (w, condition);                                                                      \
        assert_in_range ((w)->count[JOBS] - looks_, 0, 1);                                         \
    } while (0)

static void what_happens_there_is_told_by_the_next_look (void **state)
{
    struct world *w = *state;
    const time_us first = 1795290639 * US_PER_S;
    begin (w);
    UNTIL (w, fresh (w));
    assert_int_equal (w->rm.ops->bind (w->rm.self, "1", first, "alpha.6", 1, 0, NULL), 0);
    assert_int_equal (w->rm.ops->bind (w->rm.self, "2", first, "alpha.7", 1, 0, NULL), 0);
    UNTIL (w, w->started == 1 &&
                  strstr (w->asked_for, "job/2 ")); /* held, lest it be requeued unseen */
    unsigned looks = w->count[JOBS];
    UNTIL (w, w->count[JOBS] >= looks + 2);
    assert_true (w->held);
    job_says (w, 1, "PENDING", json_pack ("{s:i}", "priority", 100));
    BY_THE_NEXT_LOOK (w, !w->held);
    job_says (w, 1, "PENDING",
              json_pack ("{s:i, s:s}", "priority", 0, "state_reason", "JobHeldAdmin"));
    BY_THE_NEXT_LOOK (w, w->held);
    job_says (w, 2, "SUSPENDED", json_object ());
    BY_THE_NEXT_LOOK (w, w->suspensions == 1 && w->suspended);
    job_says (w, 2, "RUNNING", json_object ());
    BY_THE_NEXT_LOOK (w, w->suspensions == 2 && !w->suspended);
    job_says (w, 2, "PENDING",
              json_pack ("{s:i, s:i}", "restart_cnt", 1, "submit_time", 1795290700));
    BY_THE_NEXT_LOOK (w, w->ended == 1 && w->end[0].end == RM_END_REQUEUED);
    job_says (w, 1, "CANCELLED", json_object ());
    BY_THE_NEXT_LOOK (w, w->ended == 2 && w->end[1].end == RM_END_CANCELLED);
}

static void what_is_asked_for_here_is_sent_before_the_next_look (void **state)
{
    struct world *w = *state;
    const time_us first = 1795290639 * US_PER_S;
    begin (w);
    UNTIL (w, fresh (w));
    assert_int_equal (w->rm.ops->bind (w->rm.self, "1", first, "alpha.6", 1, 0, NULL), 0);
    UNTIL (w, w->count[JOBS] >= 3);
    assert_int_equal (w->rm.ops->hold (w->rm.self, "alpha.6", 1, RM_HOLD_ADMIN, false, NULL), 0);
    BY_THE_NEXT_LOOK (w, strcmp (w->asked_for, "POST job/1 {\"hold\":false}") == 0);
    job_says (w, 1, "PENDING", json_pack ("{s:i}", "priority", 100));
    UNTIL (w, !w->held);
    assert_int_equal (w->rm.ops->hold (w->rm.self, "alpha.6", 1, RM_HOLD_ADMIN, true, NULL), 0);
    BY_THE_NEXT_LOOK (w, strcmp (w->asked_for, "POST job/1 {\"hold\":true}") == 0);
    job_says (w, 1, "PENDING", json_object ());
    UNTIL (w, w->held);
    assert_int_equal (w->rm.ops->cancel (w->rm.self, "alpha.6", 1, NULL), 0);
    BY_THE_NEXT_LOOK (w, strcmp (w->asked_for, "DELETE job/1 ") == 0);
}

/* --- ends --------------------------------------------------------------------------------- */

/* After a restart with another state directory: Slurm has a job of that number which is not this state's. */
static void another_states_job_is_not_taken (void **state)
{
    struct world *w = *state;
    begin (w);
    job_says (w, 1, "PENDING", json_pack ("{s:s}", "comment", "nui:alpha.9:0:aaaa1111"));
    assert_int_equal (w->rm.ops->adopt (w->rm.self, "alpha.9", 0, "bbbb2222", NULL), 0);
    UNTIL (w, fresh (w));
    unsigned looks = w->count[JOBS];
    UNTIL (w, w->count[JOBS] >= looks + 2);
    assert_string_equal (w->handed, "");
    job_says (w, 1, "PENDING", json_pack ("{s:s}", "comment", "nui:alpha.8:0:aaaa1111"));
    looks = w->count[JOBS];
    UNTIL (w, w->count[JOBS] >= looks + 2);
    assert_int_equal (w->rm.ops->adopt (w->rm.self, "alpha.8", 0, "aaaa1111", NULL), 0);
    UNTIL (w, strcmp (w->handed, "alpha.8=1") == 0);
}

/* Both are told of, with when Slurm takes the job for submitted: by that it is known after a restart. */
static void requeued_and_ended_in_one_look (void **state)
{
    struct world *w = *state;
    const time_us first = 1795290639 * US_PER_S, again = first + 100 * US_PER_S;
    begin (w);
    UNTIL (w, fresh (w));
    assert_int_equal (w->rm.ops->bind (w->rm.self, "2", first, "alpha.7", 1, 0, NULL), 0);
    UNTIL (w, w->started == 1);
    job_says (w, 2, "CANCELLED",
              json_pack ("{s:i, s:I, s:I, s:I}", "restart_cnt", 1, "submit_time",
                         (json_int_t)(again / US_PER_S), "start_time",
                         (json_int_t)(again / US_PER_S + 1), "end_time",
                         (json_int_t)(again / US_PER_S + 10)));
    w->bind_again = true;
    UNTIL (w, w->ended == 2);
    assert_int_equal (w->end[0].end, RM_END_REQUEUED);
    assert_int_equal (w->end[1].end, RM_END_CANCELLED);
    assert_int_equal (w->end[0].submit, again);
    assert_int_equal (w->end[1].submit, again);
    assert_int_equal (w->natives, 7);
}

/* The run that was told of before a restart has ended with its node. */
static void a_node_died_while_nobody_looked (void **state)
{
    struct world *w = *state;
    const time_us submit = 1795290639 * US_PER_S, start = submit + 2 * US_PER_S;
    job_says (w, 2, "NODE_FAIL", json_pack ("{s:i}", "end_time", 1795290655));
    begin (w);
    assert_int_equal (w->rm.ops->bind (w->rm.self, "2", submit, "alpha.7", 1, start, NULL), 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end[0].end, RM_END_NODE_FAILURE);
    assert_int_equal (w->end[0].start, start);
    assert_int_equal (w->end[0].end_at, 1795290655 * US_PER_S);
    unsigned looks = w->count[JOBS];
    UNTIL (w, w->count[JOBS] >= looks + 2);
    assert_int_equal (w->ended, 1); /* once */
    assert_null (strstr (w->told, " 2 "));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (the_newest_version_known, setup, teardown),
        cmocka_unit_test_setup_teardown (an_older_version, setup, teardown),
        cmocka_unit_test_setup_teardown (no_version_known, setup, teardown),
        cmocka_unit_test_setup_teardown (wrong_answers, setup, teardown),
        cmocka_unit_test_setup_teardown (only_changes_are_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown (what_the_api_does_not_have_is_not_asked, setup, teardown),
        cmocka_unit_test_setup_teardown (a_look_that_breaks_off, setup, teardown),
        cmocka_unit_test_setup_teardown (a_token_is_renewed_before_it_expires, setup, teardown),
        cmocka_unit_test_setup_teardown (what_happens_there_is_told_by_the_next_look, setup,
                                         teardown),
        cmocka_unit_test_setup_teardown (what_is_asked_for_here_is_sent_before_the_next_look, setup,
                                         teardown),
        cmocka_unit_test_setup_teardown (another_states_job_is_not_taken, setup, teardown),
        cmocka_unit_test_setup_teardown (requeued_and_ended_in_one_look, setup, teardown),
        cmocka_unit_test_setup_teardown (a_node_died_while_nobody_looked, setup, teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
