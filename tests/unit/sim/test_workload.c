/* workload: SWF logs and Maui's traces as they are read; every way of being unreadable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "local/sim/events.h"
#include "local/trace/workload.h"

static const struct workload_range all = {1, UINT64_MAX};

/* A file with this text, in a folder that is gone at the end. */
struct temp {
    char folder[64];
    char path[96];
};

static struct temp temp_file (const char *text, bool gzip)
{
    struct temp t;
    strcpy (t.folder, "/tmp/nui-test-XXXXXX");
    assert_non_null (mkdtemp (t.folder));
    snprintf (t.path, sizeof t.path, "%s/log", t.folder);
    if (gzip) {
        gzFile f = gzopen (t.path, "wb");
        assert_true (gzwrite (f, text, (unsigned)strlen (text)) > 0);
        gzclose (f);
    } else {
        FILE *f = fopen (t.path, "w");
        fputs (text, f);
        fclose (f);
    }
    return t;
}

static void temp_gone (struct temp *t)
{
    unlink (t->path);
    rmdir (t->folder);
}

static void refused (const char *text, int code, const char *sentence)
{
    struct cred_names names;
    struct err err = {0};
    cred_names_init (&names);
    struct temp t = temp_file (text, false);
    assert_null (workload_read (t.path, &all, &names, &err));
    assert_int_equal (err.code, code);
    if (!strstr (err.text, sentence))
        fail_msg ("'%s' does not say '%s'", err.text, sentence);
    temp_gone (&t);
    cred_names_free (&names);
}

static void test_swf (void **state)
{
    (void)state;
    struct cred_names names;
    struct err err = {0};
    cred_names_init (&names);
    struct workload *w = workload_read (DATA_DIR "/small.swf", &all, &names, &err);
    assert_non_null (w);
    assert_int_equal (w->header_procs, 16);
    assert_int_equal (w->read, 47);
    assert_int_equal (w->count, 43); /* too large is known only with the machine */
    assert_int_equal (w->skipped[SKIP_NO_RUN_TIME], 2);
    assert_int_equal (w->skipped[SKIP_NO_PROCESSORS], 1);
    assert_int_equal (w->skipped[SKIP_NO_SUBMIT_TIME], 1);

    struct machine *m = machine_uniform (16, 1, &err);
    workload_fit (w, m);
    assert_int_equal (w->count, 42);
    assert_int_equal (w->skipped[SKIP_TOO_LARGE], 1);
    for (uint64_t i = 1; i < w->count; i++)
        assert_true (w->job[i].submit >= w->job[i - 1].submit);

    const struct workload_job *j = &w->job[40]; /* 46: only what was allocated is known */
    assert_int_equal (j->number, 46);
    assert_int_equal (j->procs, 3);
    assert_int_equal (j->limit, 120 * US_PER_S);
    assert_int_equal (j->run, 120 * US_PER_S);
    assert_string_equal (cred_name (&names, CRED_USER, j->cred[CRED_USER]), "u2");
    assert_string_equal (cred_name (&names, CRED_CLASS, j->cred[CRED_CLASS]), "q2");
    assert_int_equal (j->cred[CRED_ACCOUNT], CRED_NONE);
    assert_int_equal (w->job[41].run, 0);
    for (uint64_t i = 0; i < w->count; i++)
        assert_true (w->job[i].run <= w->job[i].limit);
    machine_destroy (m);
    workload_destroy (w);
    cred_names_free (&names);
}

static void test_range_and_gzip (void **state)
{
    (void)state;
    struct cred_names names;
    struct err err = {0};
    cred_names_init (&names);
    struct temp t = temp_file ("; MaxProcs: 4\n"
                               "9 50 -1 10.5 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1\n"
                               "5 40 -1 10 1 -1 -1 1 20 2049 1 7 -1 -1 -1 -1 -1 -1\r\n"
                               "\n"
                               "7 40 -1 10 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1",
                               true);
    struct workload *w = workload_read (t.path, &all, &names, &err);
    assert_non_null (w);
    assert_int_equal (w->count, 3); /* sorted by submission, then number */
    assert_int_equal (w->job[0].number, 5);
    assert_int_equal (w->job[1].number, 7);
    assert_int_equal (w->job[2].number, 9);
    assert_int_equal (w->job[2].run, 10500000);
    assert_int_equal (w->job[0].req.task.v[RES_MEM_MB], 3); /* KB, rounded up to MB */
    workload_destroy (w);

    struct workload_range second = {2, 2};
    w = workload_read (t.path, &second, &names, &err);
    assert_int_equal (w->count, 1);
    assert_int_equal (w->job[0].number, 5);
    workload_destroy (w);
    temp_gone (&t);
    cred_names_free (&names);
}

/* Field 6 is CPU time per processor that it had (field 5), over the run time of the log. */
static void test_swf_use (void **state)
{
    (void)state;
    struct cred_names names;
    struct err err = {0};
    cred_names_init (&names);
    struct temp t = temp_file ("1 10 -1 100 4 25 -1 4 50 -1 1 7 -1 -1 -1 -1 -1 -1\n"
                               "2 10 -1 100 2 25 -1 4 50 -1 1 7 -1 -1 -1 -1 -1 -1\n"
                               "3 10 -1 100 4 -1 -1 4 50 -1 1 7 -1 -1 -1 -1 -1 -1\n"
                               "4 10 -1 100 4 900 -1 4 50 -1 1 7 -1 -1 -1 -1 -1 -1\n",
                               false);
    struct workload *w = workload_read (t.path, &all, &names, &err);
    assert_non_null (w);
    assert_true (w->job[0].used_known);
    assert_int_equal (w->job[0].used_micro, 1000000); /* 4 processors, a quarter of each */
    assert_int_equal (w->job[1].used_micro, 500000);
    assert_false (w->job[2].used_known);
    assert_int_equal (w->job[3].used_micro, 4000000); /* no more than it has */
    workload_destroy (w);
    temp_gone (&t);
    cred_names_free (&names);
}

static void test_swf_refused (void **state)
{
    (void)state;
    refused ("1 2 3\n", ERR_INVALID,
             "/log line 1: 3 fields, a job of the Standard Workload Format");
    refused ("; c\n1 40 -1 x 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1\n", ERR_INVALID,
             "/log line 2: field 4, 'x', is no number");
    refused ("0 40 -1 1 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1\n", ERR_INVALID,
             "job number '0' is not 1 or more");
    refused ("1 40 -1 1 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1\n"
             "1 41 -1 1 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1\n",
             ERR_INVALID, "job number 1 is there twice");
    refused ("1 99999999999999999999 -1 1 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1\n", ERR_INVALID,
             "is no number");
    refused ("1 40 -1 -1 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1\n", ERR_INVALID,
             "no job that could run");
    refused ("", ERR_INVALID, "no job at all");
    refused ("hello world\n", ERR_INVALID,
             "/log line 1: neither a job of the Standard Workload Format");
    refused ("VERSION 230\nhello world\n", ERR_INVALID,
             "/log line 2: 2 fields, a job of Maui's workload trace has 44");

    struct cred_names names;
    struct err err = {0};
    cred_names_init (&names);
    assert_null (workload_read ("/nonexistent/log.swf", &all, &names, &err));
    assert_int_equal (err.code, ERR_NOT_FOUND);
    assert_string_equal (err.text, "/nonexistent/log.swf: there is no such file");
    cred_names_free (&names);
}

static void test_gzip_cut (void **state)
{
    (void)state;
    struct cred_names names;
    struct err err = {0};
    cred_names_init (&names);
    char text[40000];
    size_t len = 0;
    for (int i = 1; len < sizeof text - 200; i++)
        len += (size_t)sprintf (text + len, "%d %d -1 %d 1 -1 -1 1 20 -1 1 7 -1 -1 -1 -1 -1 -1\n",
                                i, i * 7, i * 7919 % 20);
    struct temp t = temp_file (text, true);
    assert_int_equal (truncate (t.path, 900), 0);
    assert_null (workload_read (t.path, &all, &names, &err));
    assert_non_null (strstr (err.text, "the gzip data ends too early"));
    temp_gone (&t);
    cred_names_free (&names);
}

static bool has_feature (const struct workload *w, const struct features *set, const char *name)
{
    for (uint32_t i = 0; i < w->constraint_count; i++) {
        if (strcmp (w->constraint[i], name) == 0)
            return (set->word[i / 64] >> (i % 64)) & 1;
    }
    return false;
}

static void test_maui_traces (void **state)
{
    (void)state;
    struct cred_names names;
    struct err err = {0};
    cred_names_init (&names);
    struct workload *w = workload_read (DATA_DIR "/jobs.trace", &all, &names, &err);
    assert_non_null (w);
    assert_int_equal (w->read, 6);
    assert_int_equal (w->count, 4);
    assert_int_equal (w->skipped[SKIP_NO_RUN_TIME], 1); /* NotRun */
    assert_int_equal (w->skipped[SKIP_PLACE], 1);       /* a host by name */
    const struct workload_job *b = &w->job[0], *a = &w->job[1], *c = &w->job[3];
    assert_string_equal (a->name, "a1");
    assert_int_equal (a->run, 1000 * US_PER_S);
    assert_int_equal (a->limit, 3600 * US_PER_S);
    assert_int_equal (a->used_micro, 1500000); /* 1,500 processor-seconds */
    assert_true (a->used_known && !b->used_known);
    assert_int_equal (a->req.tasks, 4);
    assert_int_equal (a->req.tasks_per_node, 2);
    assert_int_equal (a->req.task.v[RES_MEM_MB], 256);
    assert_true (has_feature (w, &a->req.features, "bigmem"));
    assert_true (has_feature (w, &a->req.features, "opsys:Linux"));
    assert_true (has_feature (w, &a->req.features, "mem>=512"));
    assert_true (has_feature (w, &a->req.features, "class:batch"));
    assert_false (has_feature (w, &a->req.features, "class:short"));
    assert_string_equal (cred_name (&names, CRED_QOS, a->cred[CRED_QOS]), "hi");
    assert_string_equal (cred_name (&names, CRED_ACCOUNT, a->cred[CRED_ACCOUNT]), "projA");
    assert_string_equal (b->name, "b2");
    assert_int_equal (b->limit, 1800 * US_PER_S);
    assert_int_equal (b->run, 1800 * US_PER_S); /* killed at its limit */
    assert_int_equal (b->procs, 4);
    assert_int_equal (b->cred[CRED_QOS], CRED_NONE);
    assert_string_equal (c->name, "c3");
    assert_int_equal (c->submit, INT64_C (1000000500) * US_PER_S); /* its start date */

    struct machine *m = machine_read (DATA_DIR "/nodes.trace", w, &err);
    if (!m)
        fail_msg ("%s", err.text);
    assert_int_equal (m->node_count, 4); /* the drained one is not there */
    assert_int_equal (m->procs, 12);
    assert_int_equal (m->group_count, 3);
    assert_int_equal (m->group[0].copies, 2);
    const struct node_spec *n1 = &m->group[0].spec, *n3 = &m->group[1].spec,
                           *n5 = &m->group[2].spec;
    assert_true (has_feature (w, &n1->features, "mem>=512"));
    assert_false (has_feature (w, &n1->features, "mem>=9000"));
    assert_true (has_feature (w, &n3->features, "class:short")); /* it names no class: takes all */
    assert_true (has_feature (w, &n3->features, "opsys:Linux"));
    assert_false (has_feature (w, &n5->features, "opsys:Linux"));
    assert_false (has_feature (w, &n3->features, "bigmem"));
    assert_int_equal (n3->speed_ppm, 1500000);
    assert_int_equal (n1->configured.v[RES_MEM_MB], 1024);
    assert_int_equal (m->gres_kinds, 2); /* initiators of batch and of short */
    assert_int_equal (n1->configured.v[RES_GRES0 + 1], 2);
    assert_int_equal (n3->configured.v[RES_GRES0 + 1], 2);

    workload_fit (w, m);
    assert_int_equal (w->count, 3);
    assert_int_equal (w->skipped[SKIP_NO_NODES], 1); /* 9000 MB */
    assert_int_equal (w->job[0].req.task.v[RES_GRES0 + 1], 1);
    machine_destroy (m);
    workload_destroy (w);
    cred_names_free (&names);
}

/* What we write can be read, and means the same. */
static void test_trace_round (void **state)
{
    (void)state;
    struct cred_names names;
    struct err err = {0};
    cred_names_init (&names);
    struct workload *w = workload_read (DATA_DIR "/jobs.trace", &all, &names, &err);
    struct engine_result result[8];
    uint32_t qos[8] = {0};
    for (uint64_t i = 0; i < w->count; i++) {
        result[i].start = w->job[i].submit + 60 * US_PER_S;
        result[i].end = result[i].start + w->job[i].run;
    }
    result[2].start = result[2].end = TIME_US_NONE;
    struct strbuf text = STRBUF_INIT;
    mauitrace_write (&text, w, result, qos);
    struct temp t = temp_file (strbuf_text (&text), false);
    struct workload *again = workload_read (t.path, &all, &names, &err);
    if (!again)
        fail_msg ("%s", err.text);
    assert_int_equal (again->count, w->count - 1); /* the one that never ran */
    const uint64_t pair[] = {0, 1, 3};
    for (uint64_t i = 0; i < again->count; i++) {
        const struct workload_job *x = &w->job[pair[i]], *y = &again->job[i];
        assert_string_equal (x->name, y->name);
        assert_int_equal (x->submit, y->submit);
        assert_int_equal (x->run, y->run);
        assert_int_equal (x->limit, y->limit);
        assert_int_equal (x->procs, y->procs);
        assert_memory_equal (x->cred, y->cred, sizeof x->cred);
        assert_memory_equal (&x->req.task, &y->req.task, sizeof x->req.task);
        assert_int_equal (x->req.tasks_per_node, y->req.tasks_per_node);
        assert_int_equal (has_feature (w, &x->req.features, "mem>=512"),
                          has_feature (again, &y->req.features, "mem>=512"));
        assert_int_equal (has_feature (w, &x->req.features, "bigmem"),
                          has_feature (again, &y->req.features, "bigmem"));
    }
    strbuf_free (&text);
    temp_gone (&t);
    workload_destroy (w);
    workload_destroy (again);
    cred_names_free (&names);
}

static void machine_refused (const char *text, const char *sentence)
{
    struct workload w = {0};
    struct cred_names names;
    struct err err = {0};
    cred_names_init (&names);
    w.names = &names;
    struct temp t = temp_file (text, false);
    assert_null (machine_read (t.path, &w, &err));
    if (!strstr (err.text, sentence))
        fail_msg ("'%s' does not say '%s'", err.text, sentence);
    temp_gone (&t);
    cred_names_free (&names);
}

static void test_machine_refused (void **state)
{
    (void)state;
    struct err err;
    static const char one[] = "COMPUTENODE AVAILABLE 1 n1 DEFAULT 1 1 1 4 1 1 1 Linux x86 [NONE] "
                              "[NONE] [NONE] 1.0 [NONE] [NONE] [NONE]\n";
    char twice[sizeof one * 2];
    snprintf (twice, sizeof twice, "%s%s", one, one);
    machine_refused ("COMPUTENODE AVAILABLE 1 n1\n", "this one has 4 in all");
    machine_refused ("", "no node is AVAILABLE");
    machine_refused (twice, "line 2: node n1 changes over time, which is not simulated");
    machine_refused ("COMPUTENODE AVAILABLE 1 n1 DEFAULT 1 1 1 no 1 1 1 Linux x86 [NONE] [NONE] "
                     "[NONE] 1.0 [NONE] [NONE] [NONE]\n",
                     "line 1");
    assert_null (machine_uniform (0, 1, &err));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_swf),         cmocka_unit_test (test_range_and_gzip),
        cmocka_unit_test (test_swf_use),     cmocka_unit_test (test_swf_refused),
        cmocka_unit_test (test_gzip_cut),    cmocka_unit_test (test_maui_traces),
        cmocka_unit_test (test_trace_round), cmocka_unit_test (test_machine_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
