/* What goes through the gate as JSON and comes back: messages of the contract field by field, JobSpecs out of the signed job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "meta/gate/gate.h"
#include "meta/gate/pbjson.h"

typedef Nui__Common__V1__Job Job;

static json_t *json_of (const char *text)
{
    json_error_t where;
    json_t *json = json_loads (text, JSON_DECODE_ANY, &where);
    if (!json)
        fail_msg ("%s: %s", text, where.text);
    return json;
}

/* ---- messages */

static void fields_come_back (void **state)
{
    static const char text[] =
        "{\"grid\":\"g\",\"uuid\":\"AAECAwQFBgcICQoLDA0ODw==\",\"created_us\":\"9223372036854775807\","
        "\"cost_max_micro\":\"-9007199254740993\",\"held\":true,\"flags\":[\"a\",\"\xc3\xa9\"],"
        "\"components\":[{\"name\":\"main\",\"script\":\"IyE=\",\"reqs\":[{\"tasks\":4294967295}],"
        "\"shapes\":[]},{\"name\":\"b\"}],\"retry\":{\"times\":3,\"exit_codes\":[1,2]}}";
    struct err err = {0};
    (void)state;
    json_t *json = json_of (text);
    ProtobufCMessage *one = pbjson_read (&nui__common__v1__job__descriptor, json, &err);
    if (!one)
        fail_msg ("%s", err.text);
    const Job *job = (const Job *)one;
    assert_true (job->created_us == INT64_MAX && job->cost_max_micro == -9007199254740993);
    assert_int_equal (job->uuid.len, 16);
    assert_int_equal (job->uuid.data[15], 15);
    assert_int_equal (job->components[0]->reqs[0]->tasks, UINT32_MAX);
    assert_int_equal (job->components[0]->script.len, 2);
    assert_null (job->reserve);
    json_t *back = pbjson_write (one);
    ProtobufCMessage *two = pbjson_read (&nui__common__v1__job__descriptor, back, &err);
    uint8_t a[1024], b[1024];
    size_t len = protobuf_c_message_pack (one, a);
    assert_int_equal (protobuf_c_message_pack (two, b), len);
    assert_memory_equal (a, b, len);
    /* What was given stands in what is written. */
    const char *key;
    json_t *value;
    json_object_foreach (json, key, value)
    {
        if (!json_is_array (value) && !json_is_object (value))
            assert_true (json_equal (value, json_object_get (back, key)));
    }
    json_decref (json), json_decref (back);
    protobuf_c_message_free_unpacked (one, NULL);
    protobuf_c_message_free_unpacked (two, NULL);
}

static void what_is_no_message (void **state)
{
    static const struct {
        const char *json, *words;
    } cases[] = {{"[]", "wanted an object"},
                 {"{\"colour\": 1}", "no field 'colour'"},
                 {"{\"grid\": 1}", "grid: wanted a text"},
                 {"{\"held\": \"true\"}", "held: wanted true or false"},
                 {"{\"created_us\": 1.5}", "created_us: wanted a whole number"},
                 {"{\"created_us\": \"\"}", "created_us: wanted a whole number"},
                 {"{\"created_us\": \"1x\"}", "created_us: wanted a whole number"},
                 {"{\"created_us\": \"9223372036854775808\"}", "out of range"},
                 {"{\"array_count\": -1}", "array_count: wanted a whole, not negative number"},
                 {"{\"array_count\": 4294967296}", "out of range"},
                 {"{\"uuid\": \"AAA\"}", "uuid: wanted bytes as base64"},
                 {"{\"uuid\": \"A===\"}", "uuid: wanted bytes as base64"},
                 {"{\"uuid\": \"\xc3\xa9\xc3\xa9\"}", "uuid: wanted bytes as base64"},
                 {"{\"flags\": \"x\"}", "flags: wanted a list"},
                 {"{\"flags\": [\"a\", 1]}", "flags: wanted a text"},
                 {"{\"components\": [{\"reqs\": [{\"tasks\": true}]}]}",
                  "components: reqs: tasks: wanted a whole"},
                 {"{\"components\": [null]}", "components: wanted an object"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        json_t *json = json_of (cases[i].json);
        assert_null (pbjson_read (&nui__common__v1__job__descriptor, json, &err));
        assert_int_equal (err.code, ERR_INVALID);
        if (!strstr (err.text, cases[i].words))
            fail_msg ("%s: '%s' instead of '%s'", cases[i].json, err.text, cases[i].words);
        json_decref (json);
    }
}

static void parameters_of_a_query (void **state)
{
    struct err err = {0};
    (void)state;
    ProtobufCMessage *m = pbjson_new (&nui__bank__v1__usage_request__descriptor);
    assert_int_equal (pbjson_set (m, "by", "user,site", &err), 0);
    assert_int_equal (pbjson_set (m, "from_us", "17", &err), 0);
    assert_int_equal (pbjson_set (m, "colour", "red", &err), ERR_NOT_FOUND);
    assert_int_equal (pbjson_set (m, "to_us", "later", &err), ERR_INVALID);
    const Nui__Bank__V1__UsageRequest *usage = (const Nui__Bank__V1__UsageRequest *)m;
    assert_int_equal (usage->n_by, 2);
    assert_string_equal (usage->by[1], "site");
    assert_int_equal (usage->from_us, 17);
    protobuf_c_message_free_unpacked (m, NULL);
}

/* ---- JobSpecs */

/* Through the bytes that are signed. */
static json_t *there_and_back (json_t *spec, struct arena *arena, char **script_out)
{
    struct err err = {0};
    Job *job;
    if (jobspec_read (spec, "alpha", arena, &job, &err) < 0)
        fail_msg ("%s", err.text);
    size_t len = nui__common__v1__job__get_packed_size (job);
    uint8_t *bytes = arena_alloc (arena, len);
    nui__common__v1__job__pack (job, bytes);
    Job *signed_ = nui__common__v1__job__unpack (NULL, len, bytes);
    assert_non_null (signed_);
    assert_string_equal (signed_->components[0]->sites[0], "alpha");
    json_t *back = jobspec_write (signed_);
    const ProtobufCBinaryData *script = &signed_->components[0]->script;
    if (script_out)
        *script_out = arena_printf (arena, "%.*s", (int)script->len, (char *)script->data);
    nui__common__v1__job__free_unpacked (signed_, NULL);
    return back;
}

static const char full[] =
    "{\"executable\": \"/bin/echo\", \"arguments\": [\"a b\", \"it's\", \"\", \"$HOME\", \"\\n\", \"\xe2\x82\xac\"],"
    " \"directory\": \"/tmp/it's here\", \"name\": \"n\", \"inherit_environment\": false,"
    " \"environment\": {\"A\": \"1=2\", \"B\": \"\"}, \"stdin_path\": \"/dev/null\", \"stdout_path\": \"/tmp/o\","
    " \"stderr_path\": null, \"pre_launch\": \"a=1\\nb=2\", \"post_launch\": \":\", \"launcher\": null,"
    " \"container\": null, \"resources\": {\"node_count\": 2, \"process_count\": 4, \"processes_per_node\": 2,"
    " \"cpu_cores_per_process\": 3, \"gpu_cores_per_process\": 1, \"exclusive_node_use\": true, \"memory\": 1},"
    " \"attributes\": {\"duration\": 61, \"queue_name\": \"q\", \"account\": \"acc\", \"reservation_id\": \"r.1\","
    " \"custom_attributes\": {\"nui.max_cost\": \"0.5\", \"nui.quote\": \"7\", \"nui.qos\": \"high\", \"x.y\": \"z\"}}}";

static void a_jobspec_comes_back (void **state)
{
    static const char *const specs[] = {
        full, "{\"executable\": \"x\"}",
        "{\"executable\": \"x\", \"resources\": null, \"attributes\": {}}"};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct arena *arena = arena_create (0);
        json_t *spec = json_of (specs[i]), *back = there_and_back (spec, arena, NULL);
        if (!json_equal (spec, back))
            fail_msg ("%s", json_dumps (back, 0));
        json_decref (spec), json_decref (back);
        arena_destroy (arena);
    }
}

static void its_fields_mean_something (void **state)
{
    struct arena *arena = arena_create (0);
    struct err err = {0};
    Job *job;
    (void)state;
    json_t *spec = json_of (full);
    assert_int_equal (jobspec_read (spec, NULL, arena, &job, &err), 0);
    const Nui__Common__V1__Component *c = job->components[0];
    const Nui__Common__V1__Req *req = c->reqs[0];
    assert_int_equal (req->tasks, 4);
    assert_int_equal (req->nodes, 2);
    assert_int_equal (req->tasks_per_node, 2);
    assert_int_equal (req->procs_per_task, 3);
    assert_int_equal (req->memory_mb, 1); /* rounded up */
    assert_string_equal (req->gres[0]->name, "gpu");
    assert_string_equal (c->node_access, "SINGLEJOB");
    assert_int_equal (c->walltime_us, 61 * US_PER_S);
    assert_string_equal (c->class_, "q");
    assert_string_equal (c->qos, "high");
    assert_string_equal (c->reservation, "r.1");
    assert_string_equal (job->account, "acc");
    assert_string_equal (job->quote_id, "7");
    assert_int_equal (job->cost_max_micro, 500000);
    assert_int_equal (c->n_sites, 0);
    assert_int_equal (c->n_args, 6);
    assert_string_equal (c->env[0], "A=1=2");
    json_decref (spec);
    arena_destroy (arena);
}

/* The script is run: whatever a name holds, it is a name. */
static void the_script_quotes (void **state)
{
    char dir[] = "/tmp/nui-gate-XXXXXX", text[4096], command[8192];
    struct arena *arena = arena_create (0);
    char *script;
    (void)state;
    assert_non_null (mkdtemp (dir));
    snprintf (
        text, sizeof text,
        "{\"executable\": \"/bin/echo\", \"directory\": \"%s/it's; touch gone\", \"stdout_path\": \"$(touch gone)\","
        " \"pre_launch\": \"mark=yes\", \"post_launch\": \"echo $mark $nui_code\"}",
        dir);
    json_t *spec = json_of (text), *back = there_and_back (spec, arena, &script);
    snprintf (command, sizeof command, "%s/it's; touch gone", dir);
    assert_int_equal (mkdir (command, 0700), 0);
    snprintf (command, sizeof command, "%s/script", dir);
    FILE *file = fopen (command, "w");
    assert_non_null (file);
    fputs (script, file);
    fclose (file);
    snprintf (command, sizeof command, "cd %s && sh script 'one two' \"it's\" && find . -name gone",
              dir);
    file = popen (command, "r");
    assert_non_null (file);
    assert_null (fgets (text, sizeof text, file)); /* nothing was touched */
    assert_int_equal (pclose (file), 0);
    snprintf (command, sizeof command, "%s/it's; touch gone/$(touch gone)", dir);
    file = fopen (command, "r");
    assert_non_null (file);
    text[fread (text, 1, sizeof text - 1, file)] = '\0';
    fclose (file);
    assert_string_equal (text, "one two it's\nyes 0\n");
    snprintf (command, sizeof command, "rm -r '%s'", dir);
    assert_int_equal (system (command), 0);
    json_decref (spec), json_decref (back);
    arena_destroy (arena);
}

/* A job that no JobSpec was: as near as it comes. */
static void another_job_is_shown_as_one (void **state)
{
    struct err err = {0};
    (void)state;
    json_t *json = json_of (
        "{\"name\": \"n\", \"account\": \"a\", \"components\": [{\"name\": \"m\", \"script\": \"IyEvYmluL3NoCmVjaG8K\","
        " \"args\": [\"x\"], \"env\": [\"A=b\", \"odd\"], \"walltime_us\": \"60000000\", \"reqs\": [{\"tasks\": 2}]}]}");
    ProtobufCMessage *job = pbjson_read (&nui__common__v1__job__descriptor, json, &err);
    assert_non_null (job);
    json_t *spec = jobspec_write ((const Job *)job);
    assert_string_equal (json_string_value (json_object_get (spec, "executable")), "/bin/sh");
    assert_int_equal (
        json_integer_value (json_object_get (json_object_get (spec, "attributes"), "duration")),
        60);
    assert_int_equal (
        json_integer_value (json_object_get (json_object_get (spec, "resources"), "process_count")),
        2);
    json_decref (json), json_decref (spec);
    protobuf_c_message_free_unpacked (job, NULL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (fields_come_back),
        cmocka_unit_test (what_is_no_message),
        cmocka_unit_test (parameters_of_a_query),
        cmocka_unit_test (a_jobspec_comes_back),
        cmocka_unit_test (its_fields_mean_something),
        cmocka_unit_test (the_script_quotes),
        cmocka_unit_test (another_job_is_shown_as_one),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
