/* conf_show over the policy's tables: whatever a maui.cfg says, what is shown of it reads back as the same policy and is
 * shown the same again. Random files over all parameters; one without a sample fails the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "local/conf/policyconf.h"
#include "local/core/standing.h"
#include "proto/base/strbuf.h"

enum { WORLDS = 300, SAMPLES = 4 };

/* Values of those that have a form of their own. */
static const struct {
    const char *name, *value[SAMPLES];
} samples[] = {
    {"FSPOLICY", {"DEDICATEDPS", "UTILIZEDPS%", "PEDEDICATED", "NONE"}},
    {"RESERVATIONDEPTH", {"3", "0", "17", "4294967295"}},
    {"RESERVATIONQOSLIST", {"ALL", "hi:lo", "hi,lo", "lo"}},
    {"RESERVATIONTHRESHOLDVALUE", {"4", "0", "12", "7"}},
    {"NODEAVAILABILITYPOLICY", {"COMBINED", "DEDICATED:PROC COMBINED:MEM", "UTILIZED", "DEDICATED"}},
    {"NODEMAXLOAD", {"1.5", "0", "16", ".25"}},
    {"NODESETPOLICY", {"ONEOF", "NONE", "FIRSTOF", "ANYOF"}},
    {"NODESETATTRIBUTE", {"FEATURE", "PROCSPEED", "NETWORK", "FEATURE"}},
    {"NODESETLIST", {"a b", "via myrinet ethernet", "a", "\"x y\""}},
    {"NODESETTOLERANCE", {"0", ".25", "1", "0.000001"}},
    {"NODESETPRIORITYTYPE", {"MINLOSS", "BESTFIT", "WORSTFIT", "BESTRESOURCE"}},
    {"NODESETPRIORITY", {"MINLOSS", "BESTFIT", "WORSTFIT", "BESTRESOURCE"}},
    {"USERCFG", {"PRIORITY=10", "MAXJOB=4,8 FSTARGET=20.5-", "QLIST=hi:lo QDEF=lo", "MAXPS=7"}},
    {"GROUPCFG", {"PRIORITY=-10", "MAXPROC=16", "FSTARGET=5", "MAXWC=1:00:00"}},
    {"ACCOUNTCFG", {"MAXNODE=2", "MAXPROC[USER]=4", "FSTARGET=50+", "PRIORITY=7"}},
    {"CLASSCFG", {"MAXJOB[USER]=4", "PRIORITY=1 MAXPROC=9", "QDEF=lo", "MAXIJOB=3"}},
    {"QOSCFG", {"QTWEIGHT=2 XFTARGET=3.5", "QTTARGET=00:30:00", "QFLAGS=NOBF", "OMAXJOB=9"}},
    {"SYSCFG", {"MAXJOB=100", "QLIST=hi", "MAXPROC=64", "MAXIJOB=7"}},
    {"PARCFG", {"MAXJOB=4", "MAXPROC=12", "MAXNODE=3", "MAXPS=1000"}},
    {"SRCFG", {"TASKCOUNT=4 PERIOD=DAY STARTTIME=8:00:00 ENDTIME=17:00:00", "HOSTLIST=n[1-4]",
               "TASKCOUNT=2 USERLIST=john CLASSLIST=batch", "HOSTLIST=n1 PERIOD=INFINITY"}},
    {"SRACCESS", {"DEDICATED", "SHARED", "DEDICATED", "SHARED"}},
    {"SRDAYS", {"Mon Tue", "ALL", "Sun", "Fri"}},
    {"SRFLAGS", {"BYNAME", "BYNAME", "BYNAME", "BYNAME"}},
    {"SRHOSTLIST", {"n1", "n[2-3]", "n4", "ALL"}},
    {"SRPERIOD", {"DAY", "WEEK", "INFINITY", "DAY"}},
    {"SRRESOURCES", {"PROCS:2", "PROCS:1;MEM:512", "PROCS:-1", "PROCS:4"}},
    {"SRTIMELOGIC", {"AND", "OR", "AND", "OR"}},
    {"SROWNER", {"USER:john", "GROUP:staff", "ACCOUNT:phys", "QOS:hi"}},
    {"SRPROCLIMIT", {"4", "<8", "4", "16"}},
    {"SRJOBATTRLIST", {"PREEMPTEE", "INTERACTIVE", "PREEMPTEE", "INTERACTIVE"}},
    {"QOSPRIORITY", {"1", "100", "-5", "0"}},
    {"QOSQTWEIGHT", {"1", "3", "2", "0"}},
    {"QOSXFWEIGHT", {"1", "3", "2", "0"}},
    {"QOSQTTARGET", {"00:30:00", "1:00:00", "60", "1:00:00:00"}},
    {"QOSTARGETQT", {"00:30:00", "1:00:00", "60", "1:00:00:00"}},
    {"QOSXFTARGET", {"2", "3.5", "10", "1.25"}},
    {"QOSTARGETXF", {"2", "3.5", "10", "1.25"}},
    {"QOSFLAGS", {"NOBF", "RESERVEALWAYS", "IGNALL", "NTR"}},
};

/* The rest of SR… take a duration, a number or names. */
static const char *sr_sample (const char *name, unsigned which)
{
    static const char *const times[] = {"1:00:00", "8:00:00", "00:30:00", "17:00:00"};
    static const char *const counts[] = {"1", "2", "4", "8"};
    static const char *const names[] = {"a", "a b", "b,c", "c"};
    if (strstr (name, "TIME"))
        return times[which];
    if (strstr (name, "TPN"))
        return "1";
    if (strstr (name, "DEPTH") || strstr (name, "COUNT") || strstr (name, "PRIORITY"))
        return strstr (name, "ACCOUNT") ? names[which] : counts[which];
    return strstr (name, "LIST") || strstr (name, "FEATURES") ? names[which] : names[0];
}

static uint64_t draw_state;

static uint64_t draw (uint64_t below)
{
    draw_state = draw_state * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (draw_state >> 33) % below;
}

static const char *sample_of (const struct conf_param *param)
{
    unsigned which = (unsigned)draw (SAMPLES);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        if (strcmp (samples[i].name, param->name) == 0)
            return samples[i].value[which];
    if (strncmp (param->name, "SR", 2) == 0)
        return sr_sample (param->name, which);
    fail_msg ("%s: a parameter without a sample here", param->name);
    return NULL;
}

static const char *index_of (const struct conf_param *param)
{
    static const char *const names[] = {"[john]", "[DEFAULT]", "[hi]"};
    if (param->type == CONF_RECORD)
        return strcmp (param->name, "SYSCFG") == 0 ? "[base]" : names[draw (3)];
    if (strncmp (param->name, "QOS", 3) == 0)
        return names[draw (3)];
    return strncmp (param->name, "SR", 2) == 0 || draw (2) ? "[0]" : "";
}

static void put_plain (struct strbuf *out, const struct conf_param *param)
{
    uint64_t span = (uint64_t)param->max - (uint64_t)param->min;
    bool bound = param->min != 0 || param->max != 0;
    int64_t number = bound && span < 1000000 ? param->min + (int64_t)draw (span + 1)
                                             : (param->min > 0 ? param->min : 0) + (int64_t)draw (100000);
    unsigned words = 0;
    switch (param->type) {
    case CONF_BOOL:
        strbuf_puts (out, draw (2) ? "TRUE" : "FALSE");
        break;
    case CONF_WORD:
        while (param->words[words])
            words++;
        strbuf_puts (out, param->words[draw (words)]);
        break;
    case CONF_REAL:
        strbuf_printf (out, "%lld.%06llu", (long long)(bound ? 0 : (int64_t)draw (2000) - 1000),
                       (unsigned long long)draw (1000000));
        break;
    case CONF_DURATION:
        strbuf_printf (out, "%lld", (long long)(number / US_PER_S + 1));
        break;
    default:
        strbuf_printf (out, "%lld", (long long)number);
    }
}

static void put_table (struct strbuf *out, const struct conf_param *params)
{
    for (; params->name; params++) {
        for (uint64_t lines = draw (3); lines > 0; lines--) {
            bool form = params->type == CONF_CALL || params->type == CONF_RECORD;
            strbuf_printf (out, "%s%s ", params->name, form ? index_of (params) : "");
            if (form)
                strbuf_puts (out, sample_of (params));
            else
                put_plain (out, params);
            strbuf_puts (out, "\n");
        }
    }
}

struct shown {
    struct cred_names names;
    struct conf *conf;
    struct policy *policy;
    struct strbuf text;
};

static void on_shown (void *arg, const struct conf_param *param, const char *name,
                      const char *value)
{
    (void)param;
    strbuf_printf (arg, "%s %s\n", name, value);
}

/* ERR_INVALID: the random file contradicts itself. */
static int show (const char *text, struct shown *s)
{
    struct err err = {0};
    struct arena *arena = arena_create (0);
    *s = (struct shown){0};
    cred_names_init (&s->names);
    s->conf = conf_parse (text, strlen (text), "maui.cfg", &err);
    int rc = s->conf ? policy_conf_read (s->conf, &s->names, &s->policy, &err) : err.code;
    if (rc == 0)
        conf_show (s->conf, arena, on_shown, &s->text);
    arena_destroy (arena);
    return rc;
}

static void shown_free (struct shown *s)
{
    policy_destroy (s->policy);
    conf_destroy (s->conf);
    cred_names_free (&s->names);
    strbuf_free (&s->text);
}

static size_t width_of (const struct conf_param *param)
{
    return param->type == CONF_BOOL                                        ? sizeof (bool)
           : param->type == CONF_U32                                       ? sizeof (uint32_t)
           : param->type == CONF_WORD                                      ? sizeof (int)
                                                                           : sizeof (int64_t);
}

/* Numbers of names are those of the file in which they came first: another file's may be others. */
static void same_qos (const struct shown *s, uint32_t qos, const struct shown *t, uint32_t other)
{
    if (qos == CRED_NONE || other == CRED_NONE)
        assert_int_equal (qos, other);
    else
        assert_string_equal (cred_name (&s->names, CRED_QOS, qos), cred_name (&t->names, CRED_QOS, other));
}

static void same_policy (const struct shown *s, const struct shown *t)
{
    const struct policy *a = s->policy, *b = t->policy;

    for (const struct conf_param *p = policy_params; p->name; p++)
        if (memcmp ((const char *)a + p->offset, (const char *)b + p->offset, width_of (p)) != 0)
            fail_msg ("%s is read back as another", p->name);
    assert_int_equal (a->fs_policy, b->fs_policy);
    assert_int_equal (a->fs_ratio, b->fs_ratio);
    assert_int_equal (a->bucket_count, b->bucket_count);
    for (uint32_t i = 0; i < a->bucket_count; i++)
        assert_true (a->bucket[i].used == b->bucket[i].used && a->bucket[i].depth == b->bucket[i].depth &&
                     a->bucket[i].qos_count == b->bucket[i].qos_count);
    assert_memory_equal (&a->reservation_threshold_value, &b->reservation_threshold_value,
                         sizeof (double));
    assert_memory_equal (a->node_availability, b->node_availability, sizeof a->node_availability);
    assert_int_equal (a->node_max_load_milli, b->node_max_load_milli);
    assert_int_equal (a->standing_count, b->standing_count);
    for (uint32_t i = 0; i < a->standing_count; i++) {
        assert_string_equal (a->standing[i].name, b->standing[i].name);
        assert_int_equal (a->standing[i].tasks, b->standing[i].tasks);
        assert_int_equal (a->standing[i].start_s, b->standing[i].start_s);
        assert_int_equal (a->standing[i].acl_count, b->standing[i].acl_count);
    }
    for (int k = 0; k < CRED_KINDS; k++) {
        assert_int_equal (a->cred_count[k], b->cred_count[k]);
        for (uint32_t i = 0; i < a->cred_count[k]; i++) {
            const struct policy_cred *x = &a->cred[k][i], *y = &b->cred[k][i];
            assert_int_equal (x->set, y->set);
            assert_memory_equal (&x->priority, &y->priority, sizeof (double));
            assert_memory_equal (&x->fs_target, &y->fs_target, sizeof (double));
            assert_memory_equal (&x->limits, &y->limits, sizeof x->limits);
            assert_int_equal (x->qlist_count, y->qlist_count);
            same_qos (s, x->qdef, t, y->qdef);
            assert_int_equal (x->cross_count, y->cross_count);
        }
    }
}

static void test_reads_back (void **state)
{
    unsigned good = 0;
    (void)state;
    for (unsigned world = 1; world <= WORLDS; world++) {
        struct strbuf file = STRBUF_INIT;
        struct shown first, again;
        draw_state = world;
        put_table (&file, policy_params);
        put_table (&file, policy_file_params);
        if (show (strbuf_text (&file), &first) == 0) {
            good++;
            if (show (strbuf_text (&first.text), &again) != 0)
                fail_msg ("seed %u: what is shown is refused", world);
            same_policy (&first, &again);
            assert_string_equal (strbuf_text (&first.text), strbuf_text (&again.text));
            shown_free (&again);
        }
        shown_free (&first);
        strbuf_free (&file);
    }
    if (good < WORLDS / 4)
        fail_msg ("only %u of %d random files were good", good, WORLDS);
}

/* What is in force without a file is said as well, and every row has a name for what it does. */
static void test_everything_is_shown (void **state)
{
    struct shown s;
    (void)state;
    assert_int_equal (show ("", &s), 0);
    for (const struct conf_param *p = policy_params; p->name; p++) {
        char line[80];
        snprintf (line, sizeof line, "%s ", p->name);
        bool there = strncmp (strbuf_text (&s.text), line, strlen (line)) == 0;
        snprintf (line, sizeof line, "\n%s ", p->name);
        there = there || strstr (strbuf_text (&s.text), line);
        if (there == !!(p->flags & CONF_F_ALIAS))
            fail_msg ("%s is %sshown", p->name, there ? "" : "not ");
        if (!p->help && !(p->flags & CONF_F_ALIAS))
            fail_msg ("%s has no help", p->name);
    }
    assert_non_null (strstr (strbuf_text (&s.text), "\nRESERVATIONDEPTH[0] 1\n"));
    shown_free (&s);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_reads_back),
        cmocka_unit_test (test_everything_is_shown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
