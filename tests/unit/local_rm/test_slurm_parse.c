/* What slurmrestd says, in our terms: tokens, answers in pieces, fields that are missing or of another
 * type, states, ends, tasks of arrays. The entries are shortened ones of a real Slurm 22.05. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "local/rm/slurm/slurm_i.h"
#include "local/rm/slurm/slurm_jwt.h"

/* --- tokens ------------------------------------------------------------------------------- */

static void token_is_a_jwt (void **state)
{
    unsigned char key[32];
    char token[SLURM_JWT_MAX];
    struct err err = {0};
    (void)state;
    for (int i = 0; i < 32; i++)
        key[i] = (unsigned char)i;
    assert_int_equal (slurm_jwt_make (key, sizeof key, "root", 1795268323 * US_PER_S,
                                      600 * US_PER_S, token, &err),
                      0);
    /* As Python's hmac and base64 make it. */
    assert_string_equal (token, "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
                                "eyJleHAiOjE3OTUyNjg5MjMsImlhdCI6MTc5NTI2ODMyMywic3VuIjoicm9vdCJ9."
                                "DOHxF20JF703PnxhIWJyqRpAq2fL84qrhFnMkQY3ZyU");
    assert_int_equal (slurm_jwt_make (key, sizeof key, "a\"b", 0, 1, token, &err), ERR_INVALID);
    assert_int_equal (slurm_jwt_make (key, 0, "root", 0, 1, token, &err), ERR_INVALID);
}

/* --- pieces ------------------------------------------------------------------------------- */

struct got {
    int jobs, errors;
    long long sum;
    int refuse_at;
};

static int on_object (void *arg, const char *key, json_t *object, struct err *err)
{
    struct got *got = arg;
    if (strcmp (key, "errors") == 0)
        got->errors++;
    if (strcmp (key, "jobs") != 0)
        return 0;
    got->sum += json_integer_value (json_object_get (object, "job_id"));
    if (++got->jobs == got->refuse_at)
        return err_set (err, ERR_LIMIT, "enough");
    return 0;
}

static const char answer[] =
    " {\"meta\":{\"plugin\":{\"type\":\"a]}\\\"{\"},\"list\":[{\"x\":1}]},"
    "\"errors\":[{\"error\":\"e\"}],"
    "\"jobs\":[{\"job_id\":1,\"name\":\"]}{\\\\\"},{\"job_id\":20,\"in\":{\"a\":[{}]}},"
    "{\"job_id\":300}]}\n";

static void answers_come_in_pieces (void **state)
{
    (void)state;
    for (size_t piece = 1; piece < sizeof answer; piece++) {
        struct slurm_split split;
        struct got got = {0};
        struct err err = {0};
        slurm_split_init (&split);
        for (size_t at = 0; at < sizeof answer - 1; at += piece) {
            size_t left = sizeof answer - 1 - at;
            assert_int_equal (slurm_split_feed (&split, answer + at, left < piece ? left : piece,
                                                on_object, &got, &err),
                              0);
        }
        assert_true (split.done);
        assert_int_equal (got.jobs, 3);
        assert_int_equal (got.errors, 1);
        assert_int_equal (got.sum, 321);
        slurm_split_free (&split);
    }
}

static void answers_that_are_none (void **state)
{
    static const struct {
        const char *text;
        int rc;
    } cases[] = {{"Authentication failure", ERR_INVALID},
                 {"[1]", ERR_INVALID},
                 {"{\"jobs\":[{\"job_id\":tru}]}", ERR_INVALID},
                 {"{\"jobs\":[{\"job_id\":1}", 0}}; /* cut: not done */
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slurm_split split;
        struct got got = {0};
        struct err err = {0};
        slurm_split_init (&split);
        assert_int_equal (
            slurm_split_feed (&split, cases[i].text, strlen (cases[i].text), on_object, &got, &err),
            cases[i].rc);
        assert_false (split.done);
        slurm_split_free (&split);
    }
    struct slurm_split split;
    struct got got = {.refuse_at = 2};
    struct err err = {0};
    slurm_split_init (&split);
    assert_int_equal (slurm_split_feed (&split, answer, sizeof answer - 1, on_object, &got, &err),
                      ERR_LIMIT);
    assert_string_equal (err.text, "enough");
    slurm_split_free (&split);
}

/* --- jobs --------------------------------------------------------------------------------- */

#define PENDING                                                                                    \
    "{\"job_id\":1,\"array_job_id\":0,\"array_task_id\":null,\"array_task_string\":\"\","          \
    "\"job_state\":\"PENDING\",\"state_reason\":\"JobHeldUser\",\"priority\":0,"                   \
    "\"partition\":\"debug\",\"submit_time\":1795268323,\"name\":\"j\",\"user_name\":\"games\","   \
    "\"group_name\":\"games\",\"account\":\"phys\",\"qos\":\"\",\"comment\":\"x qos:gold, y\","    \
    "\"node_count\":2,\"max_nodes\":2,\"tasks\":4,\"cpus\":8,\"cpus_per_task\":null,"              \
    "\"memory_per_node\":100,\"memory_per_cpu\":null,\"features\":\"big&amd\","                    \
    "\"tres_per_node\":\"gres:gpu:1\",\"licenses\":\"matlab:1\",\"time_limit\":5,"                 \
    "\"dependency\":\"afterok:1(unfulfilled)\",\"required_nodes\":\"n1\",\"shared\":\"none\","     \
    "\"nodes\":\"\",\"start_time\":0,\"end_time\":0,\"exit_code\":0,\"restart_cnt\":0}"

static int parse (const char *text, struct arena *arena, struct slurm_seen *out, struct err *err)
{
    json_t *object = json_loads (text, 0, NULL);
    assert_non_null (object);
    int rc = slurm_parse_job (object, "nui", arena, out, err);
    json_decref (object);
    return rc;
}

static void a_job_that_waits (void **state)
{
    struct arena *arena = arena_create (0);
    struct slurm_seen seen;
    struct err err = {0};
    (void)state;
    assert_int_equal (parse (PENDING, arena, &seen, &err), 0);
    const struct rm_native *n = &seen.native;
    assert_string_equal (n->rm_id, "1");
    assert_int_equal (n->state, RM_NATIVE_PENDING);
    assert_true (n->held_user && !n->held_admin && n->exclusive);
    assert_string_equal (n->qos, "gold");
    assert_string_equal (n->class_name, "debug");
    assert_string_equal (n->dependency, "afterok:1(unfulfilled)");
    assert_int_equal (n->procs, 8);
    assert_int_equal (n->nodes_min, 2);
    assert_int_equal (n->walltime, 300 * US_PER_S);
    assert_int_equal (n->submit, 1795268323 * US_PER_S);
    assert_int_equal (n->start, 0);
    uint64_t before = rm_native_digest (n);
    struct rm_native other = *n;
    other.held_user = false;
    assert_true (before != rm_native_digest (&other));
    arena_destroy (arena);
}

static void a_job_that_runs (void **state)
{
    struct arena *arena = arena_create (0);
    struct slurm_seen seen;
    struct err err = {0};
    (void)state;
    assert_int_equal (
        parse (
            "{\"job_id\":6,\"array_job_id\":4,\"array_task_id\":2,\"job_state\":\"RUNNING\","
            "\"partition\":\"nui\",\"submit_time\":5,\"user_name\":\"games\",\"node_count\":2,"
            "\"cpus\":6,\"priority\":0,\"nodes\":\"n[5-6]\",\"start_time\":7,"
            "\"job_resources\":{\"allocated_nodes\":["
            "{\"nodename\":\"n5\",\"sockets\":{\"0\":{\"cores\":{\"0\":\"allocated\",\"1\":\"allocated\"}}}},"
            "{\"nodename\":\"n6\",\"sockets\":{\"0\":{\"cores\":{\"0\":\"allocated\"}}}}]}}",
            arena, &seen, &err),
        0);
    assert_string_equal (seen.native.rm_id, "4_2");
    assert_int_equal (seen.number, 6);
    assert_int_equal (seen.native.start, 7 * US_PER_S);
    assert_string_equal (seen.native.placement, "n5:4,n6:2");       /* two threads of a core */
    assert_false (seen.native.held_user || seen.native.held_admin); /* the guard is no hold */
    arena_destroy (arena);
}

/* Changes one part of PENDING. */
static void broken (const char *from, const char *to, const char *says)
{
    char text[2048] = PENDING;
    struct arena *arena = arena_create (0);
    struct slurm_seen seen;
    struct err err = {0};
    char *at = strstr (text, from);
    assert_non_null (at);
    char rest[2048];
    snprintf (rest, sizeof rest, "%s", at + strlen (from));
    snprintf (at, sizeof text - (size_t)(at - text), "%s%s", to, rest);
    assert_int_equal (parse (text, arena, &seen, &err), ERR_INVALID);
    if (!strstr (err.text, says))
        fail_msg ("'%s' does not say '%s'", err.text, says);
    arena_destroy (arena);
}

static void fields_that_are_wrong_are_named (void **state)
{
    (void)state;
    broken ("\"job_state\":\"PENDING\",", "", "job 1 has no field \"job_state\"");
    broken ("\"cpus\":8", "\"cpus\":\"8\"", "field \"cpus\" of job 1 is a text, wanted a number");
    broken ("\"user_name\":\"games\"", "\"user_name\":7",
            "field \"user_name\" of job 1 is a number");
    broken ("\"PENDING\"", "\"DREAMING\"", "the state \"DREAMING\"");
    broken ("\"job_id\":1,", "", "a job has no field \"job_id\"");
    broken ("\"time_limit\":5", "\"time_limit\":{\"set\":true}", "holds no number");
}

static void ends_are_told_apart (void **state)
{
    static const struct {
        const char *word;
        int32_t status;
        enum rm_end end;
        int32_t code;
    } cases[] = {
        {"COMPLETED", 0, RM_END_EXITED, 0},         {"FAILED", 768, RM_END_EXITED, 3},
        {"FAILED", 11, RM_END_SIGNALLED, 139},      {"CANCELLED", 15, RM_END_CANCELLED, 143},
        {"TIMEOUT", 0, RM_END_TIMEOUT, 0},          {"NODE_FAIL", 0, RM_END_NODE_FAILURE, 0},
        {"OUT_OF_MEMORY", 0, RM_END_SIGNALLED, 137}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rm_status status = {0};
        slurm_end_of (cases[i].word, cases[i].status, &status);
        assert_int_equal (status.end, cases[i].end);
        assert_int_equal (status.exit_code, cases[i].code);
    }
}

static void on_task (void *arg, uint32_t task)
{
    uint32_t *sum = arg;
    *sum = *sum * 10 + task;
}

static void tasks_of_arrays (void **state)
{
    uint32_t digits = 0;
    (void)state;
    assert_int_equal (slurm_tasks_each ("1,3-7:2%4", 100, on_task, &digits), 4);
    assert_int_equal (digits, 1357);
    digits = 0;
    assert_int_equal (slurm_tasks_each ("0-4%2", 3, on_task, &digits), 3); /* cap */
    assert_int_equal (slurm_tasks_each ("", 3, on_task, &digits), 0);
    assert_int_equal (slurm_tasks_each ("x", 3, on_task, &digits), 0);
}

static void nodes (void **state)
{
    static const struct {
        const char *state, *flags;
        enum rm_node_state want;
    } cases[] = {{"idle", "", RM_NODE_UP},
                 {"mixed", "", RM_NODE_UP},
                 {"idle", "\"DRAIN\"", RM_NODE_DRAINED},
                 {"down", "", RM_NODE_DOWN},
                 {"idle", "\"NOT_RESPONDING\"", RM_NODE_DOWN}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[600];
        struct err err = {0};
        snprintf (
            text, sizeof text,
            "{\"name\":\"n8\",\"state\":\"%s\",\"state_flags\":[%s],\"reason\":\"disk errors\","
            "\"cpus\":4,\"real_memory\":16000,\"temporary_disk\":0,\"weight\":2,"
            "\"active_features\":\"big,amd\",\"gres\":\"gpu:2\",\"cpu_load\":876,"
            "\"free_memory\":4000,"
            "\"partitions\":[\"batch\",\"nui\",\"debug\"],\"address\":\"127.0.0.1\"}",
            cases[i].state, cases[i].flags);
        json_t *object = json_loads (text, 0, NULL);
        struct slurm_node *node = slurm_parse_node (object, "nui", NULL, &err);
        assert_non_null (node);
        assert_int_equal (node->node.state, cases[i].want);
        assert_string_equal (node->node.classes, "batch,debug");
        assert_string_equal (node->node.reason, "disk errors");
        assert_int_equal (node->node.load_milli, 8760);
        assert_int_equal (node->node.memory_used_mb, 12000);
        slurm_node_free (node);
        json_decref (object);
    }
    struct err err = {0};
    json_t *object = json_loads ("{\"name\":\"n8\",\"state\":\"idle\",\"cpus\":4,\"real_memory\":1,"
                                 "\"state_flags\":[\"NOT_RESPONDING\"],\"reason\":\"\"}",
                                 0, NULL);
    struct slurm_node *silent = slurm_parse_node (object, "nui", NULL, &err);
    assert_string_equal (silent->node.reason, "NOT_RESPONDING");
    slurm_node_free (silent);
    json_decref (object);
    object = json_loads ("{\"name\":\"n8\",\"state\":\"idle\",\"cpus\":4}", 0, NULL);
    assert_null (slurm_parse_node (object, "nui", NULL, &err));
    assert_non_null (strstr (err.text, "node n8 has no field \"real_memory\""));
    json_decref (object);
}

static void generic_resources (void **state)
{
    static const struct {
        const char *slurm, *ours;
    } cases[] = {
        {"", ""},
        {"gpu", "gpu:1"},
        {"gres:gpu:2", "gpu:2"},
        {"gres/gpu=2", "gpu:2"},
        {"gpu:tesla:2(S:0-1),gpu:kepler:1(S:0,1),nic:no_consume:1",
         "gpu:3,gpu.tesla:2,gpu.kepler:1,nic:1,nic.no_consume:1"},
        {"bandwidth:4K", "bandwidth:4096"},
        {"bandwidth:999T", "bandwidth:16777216"},
        {",:,(", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strbuf b = STRBUF_INIT;
        slurm_gres (cases[i].slurm, &b);
        assert_string_equal (strbuf_text (&b), cases[i].ours);
        strbuf_free (&b);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (token_is_a_jwt),
        cmocka_unit_test (answers_come_in_pieces),
        cmocka_unit_test (answers_that_are_none),
        cmocka_unit_test (a_job_that_waits),
        cmocka_unit_test (a_job_that_runs),
        cmocka_unit_test (fields_that_are_wrong_are_named),
        cmocka_unit_test (ends_are_told_apart),
        cmocka_unit_test (tasks_of_arrays),
        cmocka_unit_test (nodes),
        cmocka_unit_test (generic_resources),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
