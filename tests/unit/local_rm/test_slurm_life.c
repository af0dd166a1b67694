/* A job's whole life, and a site's, at a Slurm of each version that is known: slurmrestd is played from what real ones
 * answered (play_slurm.h). The adapter must drive all of them alike; each step is seen at both ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "local/rm/slurm/rm_slurm.h"
#include "local/rm/slurm/slurm_jwt.h"
#include "proto/base/clock.h"
#include "tests/unit/local_rm/fake_slurm.h"
#include "tests/unit/local_rm/play_slurm.h"
#include "tests/unit/tmpdir.h"

enum { ENDS_MAX = 16 };

struct world {
    char dir[64], token_file[128];
    struct event_base *base;
    struct fake_slurm *fake;
    struct play_slurm play;
    struct log *log;
    struct rm rm;
    bool by_token;
    duration_us patience, poll;
    /* what the adapter tells */
    unsigned started, ended, unknown, node_events, natives;
    char placement[128], handed[32], native[64];
    bool native_held;
    struct {
        char id[32];
        enum rm_end end;
        int exit_code;
        char text[256];
    } end[ENDS_MAX];
};

/* Its shape by each version of a Slurm that is to be driven. */
static const char *data; /* "26.05.3-v0.0.45" */

static void on_event (void *arg, const struct rm_event *event)
{
    struct world *w = arg;
    switch (event->kind) {
    case RM_EVENT_STARTED:
        w->started++;
        snprintf (w->placement, sizeof w->placement, "%s",
                  event->placement ? event->placement : "");
        break;
    case RM_EVENT_ENDED:
        assert_true (w->ended < ENDS_MAX);
        snprintf (w->end[w->ended].id, sizeof w->end->id, "%s", event->job_id);
        w->end[w->ended].end = event->status->end;
        w->end[w->ended].exit_code = event->status->exit_code;
        snprintf (w->end[w->ended++].text, sizeof w->end->text, "%s", event->status->text);
        break;
    case RM_EVENT_NATIVE:
        w->natives += event->native_count;
        for (uint32_t i = 0; i < event->native_count; i++) {
            snprintf (w->native, sizeof w->native, "%s", event->native[i].rm_id);
            w->native_held = event->native[i].held_user || event->native[i].held_admin;
        }
        break;
    case RM_EVENT_HANDED:
        snprintf (w->handed, sizeof w->handed, "%s", event->rm_id);
        break;
    default:
        w->unknown += event->kind == RM_EVENT_UNKNOWN;
        w->node_events += event->kind == RM_EVENT_NODES;
    }
}

static const unsigned char key[32] = "0123456789abcdef0123456789abcde";

/* A token of so many seconds, as scontrol token prints it. */
static void token_write (struct world *w, const char *user, int seconds)
{
    char token[SLURM_JWT_MAX], next[160];
    assert_int_equal (
        slurm_jwt_make (key, sizeof key, user, clock_now_us (), seconds * US_PER_S, token, NULL),
        0);
    snprintf (next, sizeof next, "%s.new", w->token_file);
    FILE *f = fopen (next, "w");
    fprintf (f, "SLURM_JWT=%s\n", token);
    fclose (f);
    assert_int_equal (rename (next, w->token_file), 0);
}

static int setup (void **state)
{
    struct world *w = calloc (1, sizeof *w);
    struct err err = {0};
    char path[128];
    snprintf (w->dir, sizeof w->dir, "%s/nui-test-life-XXXXXX", tmpdir ());
    assert_non_null (mkdtemp (w->dir));
    chmod (w->dir, 0755);
    snprintf (w->token_file, sizeof w->token_file, "%s/token", w->dir);
    snprintf (path, sizeof path, "%s/key", w->dir);
    FILE *f = fopen (path, "w");
    fwrite (key, 1, sizeof key, f);
    fclose (f);
    play_init (&w->play, data);
    w->patience = 15 * US_PER_S;
    w->poll = US_PER_S / 50;
    w->base = event_base_new ();
    w->fake = fake_slurm_create (w->base, play_answer, &w->play);
    snprintf (path, sizeof path, "%s/log", w->dir);
    w->log = log_create (path, LOG_LEVEL_DEBUG, "test", &err);
    assert_non_null (w->log);
    *state = w;
    return 0;
}

static void begin (struct world *w)
{
    char server[64], file[128], jobs[128];
    struct err err = {0};
    snprintf (server, sizeof server, "http://127.0.0.1:%u", fake_slurm_port (w->fake));
    snprintf (file, sizeof file, "%s/key", w->dir);
    snprintf (jobs, sizeof jobs, "%s/jobs", w->dir);
    struct rm_slurm_config config = {.base = w->base,
                                     .log = w->log,
                                     .server = server,
                                     .key_file = w->by_token ? NULL : file,
                                     .token_file = w->by_token ? w->token_file : NULL,
                                     .user = "root",
                                     .partition = "nui",
                                     .site = "alpha",
                                     .bin_dir = NUI_SLURM_COMMANDS,
                                     .poll = w->poll,
                                     .patience = w->patience,
                                     .token_life = 600 * US_PER_S,
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
    play_free (&w->play);
    snprintf (command, sizeof command, "rm -rf %s", w->dir);
    int rc = system (command);
    free (w);
    return rc;
}

static bool said (struct world *w, const char *words)
{
    char path[128], line[2048];
    bool found = false;
    snprintf (path, sizeof path, "%s/log", w->dir);
    FILE *f = fopen (path, "r");
    while (!found && fgets (line, sizeof line, f))
        found = strstr (line, words) != NULL;
    fclose (f);
    return found;
}

#define UNTIL(w, condition)                                                                        \
    do {                                                                                           \
        duration_us until_ = clock_monotonic_us () + 60 * US_PER_S;                                \
        while (!(condition)) {                                                                     \
            if (clock_monotonic_us () > until_)                                                    \
                fail_msg ("%s: in vain: %s; %s", data, #condition, (w)->dir);                      \
            event_base_loop ((w)->base, EVLOOP_ONCE);                                              \
        }                                                                                          \
    } while (0)

static bool fresh (struct world *w)
{
    return w->rm.ops->fresh (w->rm.self);
}

static struct world *begun (void **state)
{
    struct world *w = *state;
    begin (w);
    UNTIL (w, fresh (w));
    return w;
}

/* A user's job, as job of that id. */
static unsigned bound (struct world *w, const char *id, unsigned nodes, unsigned tasks)
{
    char rm_id[16];
    unsigned natives = w->natives, number = play_sbatch (&w->play, "games", nodes, tasks);
    snprintf (rm_id, sizeof rm_id, "%u", number);
    UNTIL (w, w->natives > natives && strcmp (w->native, rm_id) == 0);
    time_us submit = play_number (play_job (&w->play, number), "submit_time") * US_PER_S;
    assert_int_equal (w->rm.ops->bind (w->rm.self, rm_id, submit, id, 0, 0, NULL), 0);
    return number;
}

static void start_on (struct world *w, const char *id, unsigned number, const char *const *host,
                      uint32_t hosts)
{
    static const uint32_t tasks[] = {2, 2};
    char rm_id[16];
    struct err err = {0};
    snprintf (rm_id, sizeof rm_id, "%u", number);
    struct rm_job job = {.job_id = id,
                         .rm_id = rm_id,
                         .host_count = hosts,
                         .host = host,
                         .host_tasks = tasks,
                         .procs = 4,
                         .walltime = 60 * US_PER_S};
    if (w->rm.ops->start (w->rm.self, &job, &err) != 0)
        fail_msg ("%s", err.text);
}

static const char *const two[] = {"n3", "n4"};

static unsigned running (struct world *w, const char *id)
{
    unsigned started = w->started, number = bound (w, id, 2, 4);
    start_on (w, id, number, two, 2);
    UNTIL (w, w->started == started + 1);
    return number;
}

/* --- the site ----------------------------------------------------------------------------- */

static void what_there_is (void **state)
{
    struct world *w = begun (state);
    char words[64];
    uint32_t count;
    snprintf (words, sizeof words, "api_version version=%s ", w->play.version);
    assert_true (said (w, words));
    const struct rm_node *node = w->rm.ops->nodes (w->rm.self, &count);
    assert_int_equal (count, 4);
    assert_string_equal (node[0].name, "n1");
    assert_string_equal (node[0].features, "small,intel");
    assert_string_equal (node[0].classes, "queue,batch");
    assert_int_equal (node[0].procs, 4);
    assert_int_equal (node[0].memory_mb, 4000);
    assert_string_equal (node[2].features, "big,amd");
    assert_string_equal (node[2].gres, "gpu:2");
    assert_int_equal (node[2].memory_mb, 16000);
    assert_int_equal (node[2].state, RM_NODE_UP);
    assert_true (node[2].load_milli >= 0 && node[2].memory_used_mb >= -1);
    const char *licences = w->rm.ops->licences (w->rm.self);
    assert_true (strstr (licences, "matlab:4") && strstr (licences, "ansys:2"));
    assert_int_equal (w->play.unknown, 0);
}

static void nodes_are_drained_and_come_back (void **state)
{
    struct world *w = begun (state);
    uint32_t count;
    play_node (&w->play, "n2", "drain", "disk errors");
    play_node (&w->play, "n3", "down", "dead");
    UNTIL (w, !w->rm.ops->node_up (w->rm.self, "n2") && !w->rm.ops->node_up (w->rm.self, "n3"));
    const struct rm_node *node = w->rm.ops->nodes (w->rm.self, &count);
    assert_int_equal (node[1].state, RM_NODE_DRAINED);
    assert_string_equal (node[1].reason, "disk errors");
    assert_int_equal (node[2].state, RM_NODE_DOWN);
    assert_true (w->rm.ops->node_up (w->rm.self, "n1"));
    play_node (&w->play, "n2", "idle", "");
    UNTIL (w, w->rm.ops->node_up (w->rm.self, "n2"));
    assert_true (w->node_events >= 3);
}

/* The recorded answer to that, whole. */
static void recorded_drained_nodes (void **state)
{
    struct world *w = *state;
    json_t *said_of = json_object_get (w->play.said, "nodes-drained");
    json_t *nodes = json_object_get (json_object_get (said_of, "answer"), "nodes");
    json_decref (w->play.nodes);
    w->play.nodes = json_deep_copy (nodes);
    begin (w);
    UNTIL (w, fresh (w));
    uint32_t count;
    const struct rm_node *node = w->rm.ops->nodes (w->rm.self, &count);
    assert_int_equal (node[0].state, RM_NODE_DOWN);
    assert_string_equal (node[0].reason, "dead");
    assert_int_equal (node[1].state, RM_NODE_DRAINED);
    assert_string_equal (node[1].reason, "disk errors");
}

/* --- a user's job ------------------------------------------------------------------------- */

static void starts_on_the_nodes_that_were_chosen (void **state)
{
    struct world *w = begun (state);
    unsigned number = running (w, "alpha.1");
    const json_t *job = play_job (&w->play, number);
    assert_string_equal (w->placement, "n3:2,n4:2");
    assert_string_equal (play_text (job, "partition"), "nui");
    assert_string_equal (play_text (job, "required_nodes"), "n3,n4");
    UNTIL (w, play_number (play_job (&w->play, number), "priority") ==
                  0); /* lest it be requeued unseen */
    play_ends (&w->play, number, "COMPLETED", 0, 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end[0].end, RM_END_EXITED);
    assert_int_equal (w->end[0].exit_code, 0);
    assert_string_equal (w->play.passed_over, "");
}

/* Whoever is started is asked for by itself, or many by their states: nobody waits for the next look, which is an hour
 * away. */
static void a_start_is_seen_between_looks (void **state)
{
    enum { MANY = 40 };
    struct world *w = *state;
    char id[MANY][16];
    unsigned number[MANY];
    for (unsigned i = 0; i < MANY; i++)
        number[i] = play_sbatch (&w->play, "games", 2, 4);
    w->poll = 3600 * US_PER_S;
    begin (w);
    UNTIL (w, fresh (w) && w->natives == MANY);
    for (unsigned i = 0; i < MANY; i++) {
        char rm_id[16];
        snprintf (id[i], sizeof id[i], "alpha.%u", i + 1);
        snprintf (rm_id, sizeof rm_id, "%u", number[i]);
        assert_int_equal (w->rm.ops->bind (w->rm.self, rm_id, 0, id[i], 0, 0, NULL), 0);
    }
    start_on (w, id[0], number[0], two, 2);
    UNTIL (w, w->started == 1);
    if (w->play.number > 40) { /* before, many are seen by the list only, which is read for them */
        unsigned whole = w->play.whole;
        for (unsigned i = 1; i < MANY; i++)
            start_on (w, id[i], number[i], two, 2);
        UNTIL (w, w->started == MANY);
        assert_int_equal (w->play.whole, whole);
    }
}

static void ends_as_it_did (void **state)
{
    static const struct {
        const char *state;
        int exit_code, signo, told;
        enum rm_end end;
    } cases[] = {{"FAILED", 3, 0, 3, RM_END_EXITED},
                 {"FAILED", 0, 9, 137, RM_END_SIGNALLED},
                 {"TIMEOUT", 0, 15, 143, RM_END_TIMEOUT},
                 {"NODE_FAIL", 0, 0, 0, RM_END_NODE_FAILURE},
                 {"OUT_OF_MEMORY", 0, 9, 137, RM_END_SIGNALLED}};
    struct world *w = begun (state);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char id[16];
        snprintf (id, sizeof id, "alpha.%u", i + 1);
        unsigned number = running (w, id);
        play_ends (&w->play, number, cases[i].state, cases[i].exit_code, cases[i].signo);
        UNTIL (w, w->ended == i + 1);
        assert_string_equal (w->end[i].id, id);
        assert_int_equal (w->end[i].end, cases[i].end);
        assert_int_equal (w->end[i].exit_code, cases[i].told);
    }
}

static void is_cancelled (void **state)
{
    struct world *w = begun (state);
    running (w, "alpha.1");
    assert_int_equal (w->rm.ops->cancel (w->rm.self, "alpha.1", 0, NULL), 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end[0].end, RM_END_CANCELLED);
    bound (w, "alpha.2", 1, 1); /* one that waits */
    assert_int_equal (w->rm.ops->cancel (w->rm.self, "alpha.2", 0, NULL), 0);
    UNTIL (w, w->ended == 2);
    assert_int_equal (w->end[1].end, RM_END_CANCELLED);
}

static void is_held_and_released_from_both_sides (void **state)
{
    struct world *w = begun (state);
    unsigned number = bound (w, "alpha.1", 1, 1);
    assert_int_equal (w->rm.ops->hold (w->rm.self, "alpha.1", 0, RM_HOLD_ADMIN, true, NULL), 0);
    UNTIL (w, w->native_held);
    assert_int_equal (play_number (play_job (&w->play, number), "priority"), 0);
    assert_int_equal (w->rm.ops->hold (w->rm.self, "alpha.1", 0, RM_HOLD_ADMIN, false, NULL), 0);
    UNTIL (w, !w->native_held);
    json_t *job = play_job (&w->play, number);
    play_set (job, "priority", 0);
    play_set_text (job, "state_reason", "JobHeldUser");
    play_state (&w->play, number, "PENDING");
    UNTIL (w, w->native_held);
}

/* It stood still for a moment while Slurm's scheduler looked at it. */
static void what_is_put_off_is_asked_again (void **state)
{
    struct world *w = begun (state);
    unsigned number = bound (w, "alpha.1", 2, 4);
    w->play.busy = 3;
    start_on (w, "alpha.1", number, two, 2);
    UNTIL (w, w->started == 1);
    assert_int_equal (w->play.busy, 0);
    assert_false (said (w, "not_moved"));
}

static void what_does_not_start_goes_back (void **state)
{
    struct world *w = *state;
    w->patience = US_PER_S;
    begun (state);
    unsigned number = bound (w, "alpha.1", 2, 4);
    w->play.stuck = true;
    start_on (w, "alpha.1", number, two, 2);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end[0].end, RM_END_START_FAILED);
    assert_string_equal (play_text (play_job (&w->play, number), "partition"), "queue");
    assert_string_equal (play_text (play_job (&w->play, number), "required_nodes"), "");
    assert_string_equal (w->play.passed_over, "");
}

/* A failed launch, from v0.0.40 on: two flags at once. Nothing is told until it waits again. */
static void two_flags_at_once (void **state)
{
    struct world *w = begun (state);
    unsigned number = running (w, "alpha.1");
    json_t *job = play_job (&w->play, number);
    if (json_is_array (json_object_get (job, "job_state")))
        json_object_set_new (job, "job_state", json_pack ("[s,s]", "PENDING", "COMPLETING"));
    else
        json_object_set_new (job, "job_state", json_string ("COMPLETING"));
    play_set (job, "restart_cnt", 1);
    w->play.changed = clock_now_us () / US_PER_S;
    unsigned looks = w->play.whole;
    UNTIL (w, w->play.whole > looks + 2);
    assert_int_equal (w->ended, 0);
    play_state (&w->play, number, "PENDING");
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end[0].end, RM_END_REQUEUED);
}

/* Neither Slurm nor its records know it any more. */
static void a_forgotten_job_is_unknown (void **state)
{
    struct world *w = begun (state);
    unsigned number = running (w, "alpha.1");
    bound (w, "alpha.2", 1, 1);
    play_forget (&w->play, number);
    UNTIL (w, w->unknown == 1);
    assert_int_equal (w->ended, 0);
}

/* --- a job of the grid -------------------------------------------------------------------- */

static int submit (struct world *w, const char *id, struct err *err)
{
    static const char script[] = "#!/bin/sh\nsleep 1\n";
    static const uint32_t tasks[] = {2, 2};
    static const char *const env[] = {"COLOUR=deep blue"};
    struct rm_job job = {.job_id = id,
                         .local_account = "games",
                         .mark = "abcd1234",
                         .host_count = 2,
                         .host = two,
                         .host_tasks = tasks,
                         .procs = 4,
                         .memory_mb = 400,
                         .walltime = 60 * US_PER_S,
                         .script = script,
                         .script_len = sizeof script - 1,
                         .env_count = 1,
                         .env = env};
    return w->rm.ops->start (w->rm.self, &job, err);
}

static void a_grid_job_is_submitted_and_started (void **state)
{
    struct world *w = begun (state);
    struct err err = {0};
    if (submit (w, "alpha.1", &err) != 0)
        fail_msg ("%s", err.text);
    UNTIL (w, w->started == 1);
    assert_string_equal (w->handed, "1");
    assert_string_equal (w->placement, "n3:2,n4:2");
    assert_string_equal (play_text (play_job (&w->play, 1), "comment"), "nui:alpha.1:0:abcd1234");
    assert_string_equal (play_text (play_job (&w->play, 1), "partition"), "nui");
    assert_string_equal (w->play.passed_over, "");
    play_ends (&w->play, 1, "COMPLETED", 0, 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end[0].end, RM_END_EXITED);
}

/* Slurm makes a job without a field that it does not know, and remarks on it: that is not the job that was meant. */
static void without_a_field_it_is_not_the_job (void **state)
{
    struct world *w = begun (state);
    struct err err = {0};
    w->play.surprised = true;
    assert_int_equal (submit (w, "alpha.1", &err), 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->started, 0);
    assert_int_equal (w->end[0].end, RM_END_REFUSED);
    if (w->play.number >= 40) {
        assert_non_null (strstr (w->end[0].text, "slurmrestd passed over what was said of #/job/"));
        UNTIL (w, strcmp (play_text (play_job (&w->play, 1), "job_state"), "CANCELLED") == 0);
    }
}

static void a_bad_submission_is_refused (void **state)
{
    struct world *w = begun (state);
    struct err err = {0};
    json_object_set_new (json_object_get (w->play.said, "submit"), "status", json_integer (200));
    json_t *partitions = json_object_get (json_object_get (w->play.said, "partitions"), "answer");
    json_array_clear (json_object_get (partitions, "partitions")); /* meanwhile they are others */
    assert_int_equal (submit (w, "alpha.1", &err), 0);
    UNTIL (w, w->ended == 1 || w->started == 1);
    if (w->ended) {
        assert_int_equal (w->end[0].end, RM_END_REFUSED);
        assert_non_null (strstr (w->end[0].text, "nvalid partition name"));
    } else { /* this version does not tell which is the default: Slurm chose it */
        assert_in_range (w->play.number, 40, 44);
    }
}

/* --- reservations ------------------------------------------------------------------------- */

static const json_t *reservation (struct world *w)
{
    return json_array_get (w->play.reservations, 0);
}

/* Where slurmrestd makes none, scontrol does; here it is one that writes down what it was told. */
static void reservations_are_kept (void **state)
{
    struct world *w = begun (state);
    static const uint32_t whole[] = {4, 4};
    time_us from = clock_now_us () + 600 * US_PER_S;
    struct rm_reservation wish = {.name = "maint.1",
                                  .start = from,
                                  .end = from + 600 * US_PER_S,
                                  .host_count = 2,
                                  .host = two,
                                  .host_procs = whole,
                                  .user = "games"};
    assert_int_equal (w->rm.ops->reserve (w->rm.self, &wish, 1, NULL), 0);
    if (w->play.number < 43) {
        UNTIL (w, said (w, " reserved reservation=nui-alpha-maint.1"));
        return;
    }
    UNTIL (w, json_array_size (w->play.reservations) == 1);
    assert_string_equal (play_text (reservation (w), "name"), "nui-alpha-maint.1");
    assert_string_equal (play_text (reservation (w), "node_list"), "n3,n4");
    assert_string_equal (play_text (reservation (w), "users"), "root,games");
    assert_int_equal (play_number (reservation (w), "end_time"),
                      (from + 600 * US_PER_S + US_PER_S - 1) / US_PER_S);
    json_array_clear (w->play.reservations); /* somebody deletes it */
    UNTIL (w, json_array_size (w->play.reservations) == 1);
    assert_int_equal (w->rm.ops->reserve (w->rm.self, NULL, 0, NULL), 0);
    UNTIL (w, json_array_size (w->play.reservations) == 0);
    assert_int_equal (w->play.unknown, 0);
}

/* Left by a daemon that was killed: gone, and nobody else's is. */
static void what_was_left_is_deleted (void **state)
{
    struct world *w = *state;
    json_t *recorded = json_object_get (
        json_object_get (json_object_get (w->play.said, "reservations"), "answer"), "reservations");
    json_t *theirs = json_deep_copy (json_array_get (recorded, 0));
    json_object_set_new (theirs, "name", json_string ("theirs"));
    json_array_append (w->play.reservations, json_array_get (recorded, 0));
    json_array_append_new (w->play.reservations, theirs);
    begin (w);
    assert_int_equal (w->rm.ops->reserve (w->rm.self, NULL, 0, NULL), 0);
    if (w->play.number < 40) {
        UNTIL (w, said (w, "unreserved reservation=nui-alpha-1"));
        return;
    }
    UNTIL (w, json_array_size (w->play.reservations) == 1);
    assert_string_equal (play_text (reservation (w), "name"), "theirs");
}

/* --- what goes wrong ---------------------------------------------------------------------- */

static void slurmctld_goes_and_comes (void **state)
{
    struct world *w = begun (state);
    unsigned number = running (w, "alpha.1");
    UNTIL (w, play_number (play_job (&w->play, number), "priority") == 0);
    w->play.down = true;
    UNTIL (w, !fresh (w));
    assert_int_equal (w->rm.ops->cancel (w->rm.self, "alpha.1", 0, NULL), 0);
    unsigned number2 = 0;
    w->play.down = false;
    UNTIL (w, fresh (w) && w->ended == 1); /* the wish was kept */
    assert_int_equal (w->end[0].end, RM_END_CANCELLED);
    number2 = running (w, "alpha.2");
    assert_true (number2 > number);
    assert_int_equal (w->unknown, 0);
}

static void a_token_that_is_refused (void **state)
{
    struct world *w = begun (state);
    w->play.token_refused = "token-bad";
    UNTIL (w,
           said (w, w->play.number < 40 /* which says no more */
                        ? "Unspecified error"
                        : "slurmrestd does not accept our token (is KEY the cluster's jwt key?)"));
    assert_false (fresh (w));
    w->play.token_refused = NULL;
    UNTIL (w, fresh (w));
}

static void a_token_from_a_file (void **state)
{
    struct world *w = *state;
    w->by_token = true;
    token_write (w, "root", 2);
    begin (w);
    UNTIL (w, fresh (w));
    UNTIL (w, said (w, "expired at") && !fresh (w));
    assert_true (said (w, ": renew it"));
    token_write (w, "root", 600);
    UNTIL (w, fresh (w));
    token_write (w, "games", 600); /* by mistake: the good one is still there */
    unsigned looks = w->play.whole + w->play.unchanged;
    UNTIL (w, w->play.whole + w->play.unchanged > looks + 3);
    assert_true (fresh (w));
}

/* Changes of a record that no version may say: nothing is decided by it. */
static void records_that_are_wrong (void **state)
{
    static const struct {
        const char *field;
        json_int_t number; /* or */
        const char *text;
        const char *says;
    } cases[] = {
        {"cpus", INT64_C (1) << 33, NULL,
         "field \\\"cpus\\\" of job 1 is 8589934592, wanted at most"},
        {"submit_time", INT64_C (1) << 50, NULL, "field \\\"submit_time\\\" of job 1 is"},
        {"partition", 7, NULL, "field \\\"partition\\\" of job 1 is a number, wanted a text"},
        {"cpus", 0, "four", "field \\\"cpus\\\" of job 1 is a text, wanted a number"},
        {"job_state", 0, "DREAMING", "job 1 is in the state \\\"DREAMING\\\", which is not known"},
        {"user_name", 0, NULL, "job 1 has no field \\\"user_name\\\""},
    };
    struct world *w = begun (state);
    bound (w, "alpha.1", 1, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *good = json_deep_copy (play_job (&w->play, 1)), *job = play_job (&w->play, 1);
        if (cases[i].text && strcmp (cases[i].field, "job_state") == 0)
            play_set_text (job, "job_state", cases[i].text);
        else if (cases[i].text)
            json_object_set_new (job, cases[i].field, json_string (cases[i].text));
        else if (cases[i].number > 100)
            play_set (job, cases[i].field, cases[i].number);
        else if (cases[i].number)
            json_object_set_new (job, cases[i].field, json_integer (cases[i].number));
        else
            json_object_del (job, cases[i].field);
        w->play.changed = clock_now_us () / US_PER_S;
        UNTIL (w, said (w, cases[i].says));
        assert_false (fresh (w));
        json_array_set_new (w->play.jobs, 0, good);
        UNTIL (w, fresh (w));
    }
    assert_int_equal (w->ended + w->unknown, 0);
}

/* "Nothing has changed" is an empty list from v0.0.40 on: no job is gone for it. */
static void an_empty_list_of_changes (void **state)
{
    struct world *w = begun (state);
    running (w, "alpha.1");
    w->play.changed = 1;
    unsigned unchanged = w->play.unchanged;
    UNTIL (w, w->play.unchanged > unchanged + 6);
    assert_int_equal (w->ended + w->unknown, 0);
    assert_true (fresh (w));
}

/* --- many --------------------------------------------------------------------------------- */

/* With many jobs a change is seen by their states, and only what changed is read whole. */
static void of_many_only_states_are_read (void **state)
{
    struct world *w = *state;
    if (w->play.number < 41)
        skip ();
    for (int i = 0; i < 600; i++)
        play_sbatch (&w->play, "games", 1, 1);
    begin (w);
    UNTIL (w, fresh (w) && w->natives == 600);
    unsigned number = running (w, "alpha.1");
    UNTIL (w, play_number (play_job (&w->play, number), "priority") == 0);
    UNTIL (w, w->play.states > 2);
    unsigned whole = w->play.whole, fields = w->play.fields, states = w->play.states;
    play_ends (&w->play, number, "FAILED", 3, 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end[0].exit_code, 3);
    assert_in_range (w->play.fields - fields, 0, 2);
    UNTIL (w, w->play.states > states + 12);
    assert_in_range (w->play.whole - whole, 1, (w->play.states - states) / 3);
    assert_int_equal (w->unknown, 0);
    assert_in_range (w->natives, 601, 602); /* the 600, it, and it as it ran */
}

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (what_there_is, setup, teardown),
        cmocka_unit_test_setup_teardown (nodes_are_drained_and_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown (recorded_drained_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown (starts_on_the_nodes_that_were_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown (a_start_is_seen_between_looks, setup, teardown),
        cmocka_unit_test_setup_teardown (ends_as_it_did, setup, teardown),
        cmocka_unit_test_setup_teardown (is_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown (is_held_and_released_from_both_sides, setup, teardown),
        cmocka_unit_test_setup_teardown (what_is_put_off_is_asked_again, setup, teardown),
        cmocka_unit_test_setup_teardown (what_does_not_start_goes_back, setup, teardown),
        cmocka_unit_test_setup_teardown (two_flags_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown (a_forgotten_job_is_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown (a_grid_job_is_submitted_and_started, setup, teardown),
        cmocka_unit_test_setup_teardown (without_a_field_it_is_not_the_job, setup, teardown),
        cmocka_unit_test_setup_teardown (a_bad_submission_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown (reservations_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown (what_was_left_is_deleted, setup, teardown),
        cmocka_unit_test_setup_teardown (slurmctld_goes_and_comes, setup, teardown),
        cmocka_unit_test_setup_teardown (a_token_that_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown (a_token_from_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown (records_that_are_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown (an_empty_list_of_changes, setup, teardown),
        cmocka_unit_test_setup_teardown (of_many_only_states_are_read, setup, teardown),
    };
    data = argc > 1 ? argv[1] : "26.05.3-v0.0.45";
    return cmocka_run_group_tests_name (data, tests, NULL, NULL);
}
