/* What real Slurms answered (tests/data/slurm: 22.05 to 26.05, request and answer a line), through the decoder: the same
 * jobs were made at each of them, so the same must come of each, whatever its version's shape is. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "local/rm/slurm/slurm_i.h"

struct taken {
    const char *name; /* of the answer */
    struct arena *arena;
    struct slurm_seen seen;
    struct slurm slurm;
    struct slurm_offers offers;
    struct slurm_split split;
    unsigned jobs, states, nodes, errors;
    struct slurm_node *last;
    int64_t number;
    char error[200], states_of[4096];
};

static int on_object (void *arg, const char *key, json_t *object, struct err *err)
{
    struct taken *t = arg;
    char word[24];
    const char *id;
    enum slurm_state state;
    if (strcmp (key, "paths") == 0)
        slurm_offers_take (&t->offers, t->split.name, object);
    if (strcmp (key, "errors") == 0)
        t->errors += slurm_error_of (object, &t->number, t->error, sizeof t->error);
    if (strcmp (key, "jobs") == 0 && strcmp (t->name, "jobs-state") == 0) {
        t->states++;
        int rc = slurm_text (object, "an entry", "job_id", true, &id, err);
        return rc == 0 ? slurm_parse_state (object, id, "state", word, &state, err) : rc;
    }
    if (strcmp (key, "jobs") == 0) {
        t->jobs++;
        return slurm_parse_job (object, "nui", t->arena, &t->seen, err);
    }
    if (strcmp (key, "nodes") == 0) {
        t->nodes++;
        slurm_node_free (t->last);
        t->last = slurm_parse_node (object, "nui", NULL, err);
        return t->last ? 0 : err->code;
    }
    int rc = slurm_on_partition (&t->slurm, key, object, err);
    rc = rc == 0 ? slurm_on_licence (&t->slurm, key, object, err) : rc;
    return rc == 0 ? slurm_resv_on_object (&t->slurm, key, object, err) : rc;
}

static void take (struct taken *t, const char *name, const json_t *answer)
{
    struct err err = {0};
    char *text = json_dumps (answer, JSON_INDENT (1)); /* as slurmrestd writes it */
    *t = (struct taken){.name = name, .arena = arena_create (0)};
    t->slurm.partition = (char *)"nui";
    t->slurm.observe = true;
    snprintf (t->slurm.resv_prefix, sizeof t->slurm.resv_prefix, "nui-alpha-");
    slurm_split_init (&t->split);
    if (slurm_split_feed (&t->split, text, strlen (text), on_object, t, &err) != 0)
        fail_msg ("%s: %s", name, err.text);
    assert_true (t->split.done);
    free (text);
}

static void let_go (struct taken *t)
{
    slurm_split_free (&t->split);
    slurm_resv_stop (&t->slurm);
    slurm_nodes_stop (&t->slurm);
    slurm_node_free (t->last);
    arena_destroy (t->arena);
}

static void ended (const struct taken *t, enum rm_end end, int exit_code)
{
    struct rm_status status = {0};
    assert_int_equal (t->seen.state, SLURM_ENDED);
    slurm_end_of (t->seen.word, t->seen.exit_status, &status);
    assert_int_equal (status.end, end);
    assert_int_equal (status.exit_code, exit_code);
    assert_true (t->seen.end >= t->seen.native.start && t->seen.native.start > 0);
}

static void check_job (const struct taken *t)
{
    const struct rm_native *n = &t->seen.native;
    assert_int_equal (t->jobs, 1);
    assert_string_equal (n->user, "root");
    assert_true (n->submit > 0 && t->seen.number > 0);
    if (strcmp (t->name, "job-waiting") == 0) {
        assert_int_equal (t->seen.state, SLURM_PENDING);
        assert_string_equal (t->seen.partition, "queue");
        assert_string_equal (t->seen.comment, "of the user");
        assert_int_equal (n->nodes_min, 2);
        assert_int_equal (n->nodes_max, 2);
        assert_int_equal (n->tasks, 4);
        assert_int_equal (n->procs, 4);
        assert_int_equal (n->memory_per_proc_mb, 100);
        assert_int_equal (n->walltime, 600 * US_PER_S);
        assert_string_equal (n->features, "big");
        assert_string_equal (n->gres_per_node, "gpu:1");
        assert_false (n->exclusive || n->held_user || n->held_admin);
    } else if (strcmp (t->name, "job-held") == 0) {
        assert_true (n->held_user && !n->held_admin && t->seen.priority == 0);
        assert_int_equal (n->walltime, 0);
    } else if (strcmp (t->name, "job-running") == 0) {
        assert_int_equal (t->seen.state, SLURM_RUNNING);
        unsigned a = 0, b = 0; /* Slurm's choice */
        assert_int_equal (sscanf (n->placement, "n3:%u,n4:%u", &a, &b), 2);
        assert_int_equal (a + b, 4);
        assert_true (strcmp (n->hosts, "n[3-4]") == 0 || strcmp (n->hosts, "n3,n4") == 0);
        assert_string_equal (t->seen.partition, "nui");
    } else if (strcmp (t->name, "job-array") == 0) {
        assert_string_equal (t->seen.tasks, "1-3%2");
        assert_int_equal (n->array_limit, 2);
        assert_true (t->seen.array_id == t->seen.number);
    } else if (strcmp (t->name, "job-failed") == 0) {
        ended (t, RM_END_EXITED, 3);
    } else if (strcmp (t->name, "job-killed") == 0) {
        ended (t, RM_END_SIGNALLED, 137);
    } else if (strcmp (t->name, "job-completed") == 0) {
        ended (t, RM_END_EXITED, 0);
    } else if (strcmp (t->name, "job-cancelled") == 0) {
        ended (t, RM_END_CANCELLED, 143);
    }
}

static void check_list (struct taken *t, int version)
{
    const char *name = t->name;
    struct slurm_api api;
    struct err err = {0};
    if (strcmp (name, "openapi") == 0) {
        assert_int_equal (slurm_offers_choose (&t->offers, &api, &err), 0);
        assert_true (api.number >= version && api.jobs_since && api.nodes_since);
        assert_int_equal (api.jobs_state, api.number >= 41);
        assert_int_equal (api.resv_create, api.number >= 43);
        assert_int_equal (api.resv_delete, api.number >= 40);
        assert_int_equal (api.requeue, api.number >= 45);
    } else if (strcmp (name, "nodes") == 0) {
        assert_int_equal (t->nodes, 4);
        assert_string_equal (t->last->node.gres, "gpu:2");
        assert_int_equal (t->last->node.state, RM_NODE_UP);
    } else if (strcmp (name, "partitions") == 0) {
        assert_int_equal (t->slurm.class_count, 2); /* without ours */
        assert_int_equal (t->slurm.default_told, version < 40 || version >= 45);
        assert_string_equal (t->slurm.default_class, t->slurm.default_told ? "batch" : "queue");
    } else if (strcmp (name, "licenses") == 0) {
        const char *found = strbuf_text (&t->slurm.licences_now);
        assert_true (strstr (found, "matlab:4") && strstr (found, "ansys:2"));
    } else if (strcmp (name, "reservations") == 0) {
        assert_non_null (t->slurm.resvs); /* the one that is ours */
    } else if (strcmp (name, "jobs-state") == 0) {
        assert_true (t->states > 5);
    } else if (strcmp (name, "submit-bad") == 0) {
        assert_true (t->errors > 0 && strstr (t->error, "nvalid partition name"));
    }
}

static void one_recording (const char *path)
{
    const char *at = strstr (path, "-v0.0.");
    int version = atoi (at + 6);
    char *line = NULL;
    size_t cap = 0;
    unsigned jobs = 0, all = 0;
    FILE *f = fopen (path, "r");
    assert_non_null (f);
    for (; getline (&line, &cap, f) > 0; all++) {
        struct taken t;
        json_t *doc = json_loads (line, 0, NULL), *answer = json_object_get (doc, "answer");
        const char *name = json_string_value (json_object_get (doc, "name"));
        assert_non_null (name);
        if (json_is_object (answer)) {
            take (&t, name, answer);
            json_t *list = json_object_get (answer, "jobs");
            if (strncmp (name, "job-", 4) == 0 && json_array_size (list) == 1) {
                check_job (&t);
                jobs++;
            }
            check_list (&t, version);
            let_go (&t);
        }
        json_decref (doc);
    }
    free (line);
    fclose (f);
    assert_int_equal (jobs, 8);
    assert_true (all > 25);
}

static void recorded_answers (void **state)
{
    glob_t found;
    (void)state;
    assert_int_equal (glob (NUI_SLURM_DATA "/*.jsonl", 0, NULL, &found), 0);
    assert_true (found.gl_pathc >= 5);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        print_message ("%s\n", found.gl_pathv[i]);
        one_recording (found.gl_pathv[i]);
    }
    globfree (&found);
}

/* What is asked, in the words of v0.0.40 and later; before, it stays as it is. */
static void requests_in_both_shapes (void **state)
{
    static const struct {
        const char *before, *since;
    } cases[] = {
        {"{\"partition\":\"nui\",\"node_list\":\"n1,n2\",\"nodes\":\"2-2\",\"begin_time\":\"now\","
         "\"time_limit\":5}",
         "{\"begin_time\":{\"infinite\":false,\"number\":7,\"set\":true},\"maximum_nodes\":2,"
         "\"minimum_nodes\":2,\"partition\":\"nui\",\"required_nodes\":[\"n1\",\"n2\"],"
         "\"time_limit\":{\"infinite\":false,\"number\":5,\"set\":true}}"},
        {"{\"signal\":\"B:10@90\"}", "{\"kill_warning_delay\":{\"infinite\":false,\"number\":90,"
                                     "\"set\":true},\"kill_warning_flags\":[\"BATCH_JOB\"],"
                                     "\"kill_warning_signal\":\"10\"}"},
        {"{\"signal\":\"12@5\"}",
         "{\"kill_warning_delay\":{\"infinite\":false,\"number\":5,\"set\":true},"
         "\"kill_warning_flags\":[],\"kill_warning_signal\":\"12\"}"},
        {"{\"node_list\":\"\",\"nodes\":\"3\",\"hold\":false}",
         "{\"hold\":false,\"maximum_nodes\":3,\"minimum_nodes\":3,\"required_nodes\":[]}"},
        {"{\"script\":\"#!/bin/sh\\n\",\"job\":{\"environment\":{\"A\":\"b=c\"},"
         "\"memory_per_cpu\":100}}",
         "{\"job\":{\"environment\":[\"A=b=c\"],\"memory_per_cpu\":{\"infinite\":false,"
         "\"number\":100,\"set\":true},\"script\":\"#!/bin/sh\\n\"}}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int version = 38; version <= 45; version += 7) {
            const char *want = version < 40 ? cases[i].before : cases[i].since;
            json_t *body =
                slurm_wire_job (json_loads (cases[i].before, 0, NULL), version, 7 * US_PER_S + 3);
            json_t *wanted = json_loads (want, 0, NULL);
            char *said = json_dumps (body, JSON_COMPACT | JSON_SORT_KEYS);
            if (!json_equal (body, wanted))
                fail_msg ("v0.0.%d: %s, wanted %s", version, said, want);
            free (said);
            json_decref (wanted);
            json_decref (body);
        }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (recorded_answers),
        cmocka_unit_test (requests_in_both_shapes),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
