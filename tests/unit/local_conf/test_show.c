/* conf_show over all tables of nui-local.cfg: whatever a file says, what is shown of it reads back as the same policy and the same
 * settings, and is shown the same again. Random files over all parameters; one without a sample fails the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "local/conf/policyconf.h"
#include "local/conf/settings_i.h"
#include "local/core/standing.h"
#include "proto/base/strbuf.h"
#include "proto/rpc/daemon_i.h"

enum { WORLDS = 300, SAMPLES = 4 };

/* Values of those that have a form of their own. */
static const struct {
    const char *name, *value[SAMPLES];
} samples[] = {
    {"FSPOLICY", {"DEDICATEDPS", "UTILIZEDPS%", "PEDEDICATED", "NONE"}},
    {"RESERVATIONDEPTH", {"3", "0", "17", "4294967295"}},
    {"RESERVATIONQOSLIST", {"ALL", "hi:lo", "hi,lo", "lo"}},
    {"RESERVATIONTHRESHOLDVALUE", {"4", "0", "12", "7"}},
    {"NODEAVAILABILITYPOLICY",
     {"COMBINED", "DEDICATED:PROC COMBINED:MEM", "UTILIZED", "DEDICATED"}},
    {"RESOURCELIMITPOLICY",
     {"MEM:ALWAYS:CANCEL", "PROC:EXTENDEDVIOLATION:SUSPEND:0:10:00 MEM:ALWAYS:REQUEUE",
      "MEM:EXTENDEDVIOLATION:NOTIFY:300", "PROC:ALWAYS:CANCEL"}},
    {"RESLIMITPOLICY",
     {"MEM:ALWAYS:NOTIFY", "PROC:ALWAYS:REQUEUE", "MEM:EXTENDEDVIOLATION:CANCEL:00:05:00",
      "PROC:ALWAYS:SUSPEND"}},
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
    {"SRCFG",
     {"TASKCOUNT=4 PERIOD=DAY STARTTIME=8:00:00 ENDTIME=17:00:00", "HOSTLIST=n[1-4]",
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
    {"QOSFEATURES", {"wide interactive", "[ANY]", "fast", "a,b"}},
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
    int64_t number = bound && span < 1000000
                         ? param->min + (int64_t)draw (span + 1)
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
    return param->type == CONF_BOOL   ? sizeof (bool)
           : param->type == CONF_U32  ? sizeof (uint32_t)
           : param->type == CONF_WORD ? sizeof (int)
                                      : sizeof (int64_t);
}

/* Numbers of names are those of the file in which they came first: another file's may be others. */
static void same_qos (const struct shown *s, uint32_t qos, const struct shown *t, uint32_t other)
{
    if (qos == CRED_NONE || other == CRED_NONE)
        assert_int_equal (qos, other);
    else
        assert_string_equal (cred_name (&s->names, CRED_QOS, qos),
                             cred_name (&t->names, CRED_QOS, other));
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
        assert_true (a->bucket[i].used == b->bucket[i].used &&
                     a->bucket[i].depth == b->bucket[i].depth &&
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

/* --- the site's own parameters --------------------------------------------------------------- */

static const struct {
    const char *name, *value[SAMPLES];
} site_samples[] = {
    {"ADMIN1", {"root", "alice bob", "nui://g/user/carol", "dave"}},
    {"ADMIN2", {"erin", "alice frank", "nui://g/user/bob", "root"}},
    {"ADMIN3", {"ALL", "alice frank", "nui://g/user/bob", "root"}},
    {"META", {"m1:7000", "m1:7000 m2:7001", "localhost:1", "m3.example:65535"}},
    {"METAGROUP", {"a b c", "d e f g", "h i j", "k l m n o p q"}},
    {"NOTIFICATIONEVENTS",
     {"ALL", "JOBFAILURE", "NODEDOWN BANKDOWN",
      "RESUNFILLED BANKHISTORY BANKDENIED JOBLIMIT CLOCKDIFFERS NODEDRAINED"}},
    {"RMCFG",
     {"TYPE=EMBEDDED", "TYPE=SLURM SERVER=h:6820 KEY=/k USER=u PARTITION=p",
      "POLL=30 PATIENCE=20 SACCT=TRUE USAGE=TRUE",
      "MIRROR=TRUE CHARGE=FALSE TOKENLIFE=300 CONF=/c BIN=/usr/bin COMPLETIONS=/d"}},
    {"AMCFG",
     {"JFACTION=DEFER TIMEOUT=30", "DEFERJOBONFAILURE=TRUE FLUSHINTERVAL=INFINITY",
      "ANCHORINTERVAL=60 NODEFAILURE=FREE", "MACHINE=cray FALLBACKACCOUNT=idle"}},
    {"BANKFALLBACKACCOUNT", {"idle", "standby", "freecycle", "a"}},
    {"BANKDEFERJOBONFAILURE", {"TRUE", "FALSE", "ON", "OFF"}},
    {"PEERCAP", {"HOLDS=3", "PROCSECONDS=1000", "HOLDS=0 PROCSECONDS=7", "HOLDS=1000000"}},
    {"GRIDCFG",
     {"MAXLEASE=60 SHARE=30 MAXJOBWALLTIME=2:00:00", "MAXPROC=64 MAXPROCPERJOB=8 MINPRICE=0.5",
      "QDEF=lo QLIST=hi,lo",
      "USERLIST=alice,!bob ACCOUNTLIST=phys CLASSLIST=batch MAXAHEAD=1:00:00"}},
    {"STAGEROOT", {"/data", "/data /scratch", "/a/b", "\"/x y\""}},
    {"STAGEHOSTS", {"a.example", "b.example c.example", "d", "*.example"}},
    {"STAGEBANDWIDTH", {"200M", "1G", "17", "5K"}},
    {"STAGERATEMIN", {"1M", "2G", "1", "512K"}},
    {"SERVERMODE", {"NORMAL", "NORMAL", "NORMAL", "NORMAL"}}, /* two that differ are refused */
    {"SCHEDCFG", {"MODE=NORMAL", "MODE=NORMAL", "MODE=NORMAL", "MODE=NORMAL"}},
    {"SIMFLAGS", {"IGNCLASS", "IGNQOS IGNFEATURES", "IGNQOS", "IGNFEATURES"}},
    {"TOPOLOGYFILE", {"/dev/null", "/dev/null", "/dev/null", "/dev/null"}},
    {"NODECFG",
     {"PROCS=8 MEM=64G SWAP=1G DISK=10G SPEED=1.5 MAXLOAD=4",
      "PROCS=2 FEATURES=a,b NETWORK=ib PRIORITY=-5 NODETYPE=fat",
      "PRIORITYF='SPEED + .01*AMEM' ADDRESS=h PARTITION=old GRES=tape:2",
      "CLASS=batch:8 MAXJOB=2 MAXJOBPERUSER=1 MAXPROCPERUSER=4"}},
};

static const char *site_sample_of (const struct conf_param *param)
{
    for (size_t i = 0; i < sizeof site_samples / sizeof *site_samples; i++)
        if (strcmp (site_samples[i].name, param->name) == 0)
            return site_samples[i].value[draw (SAMPLES)];
    if (param->type == CONF_CALL || param->type == CONF_RECORD)
        fail_msg ("%s: a parameter without a sample here", param->name);
    return NULL;
}

static void put_site_table (struct strbuf *out, const struct conf_param *params)
{
    static const char *const names[] = {"[n1]", "[n[2-4]]", "[DEFAULT]", "[m1]"};
    for (; params->name; params++) {
        for (uint64_t lines = draw (3); lines > 0; lines--) {
            const char *sample = site_sample_of (params);
            bool nodes = strcmp (params->name, "NODECFG") == 0;
            strbuf_printf (out, "%s%s ", params->name,
                           params->type == CONF_RECORD ? names[nodes ? draw (3) : 2 + draw (2)]
                                                       : "");
            if (sample)
                strbuf_puts (out, sample);
            else
                put_plain (out, params);
            strbuf_puts (out, "\n");
        }
    }
}

struct site {
    struct conf *conf;
    struct settings s;
    struct daemon_keys keys;
    struct strbuf text;
};

static const struct conf_param *const site_tables[] = {
    daemon_params, settings_params, settings_stage_params, settings_mode_params, nodeconf_params};

static int site_show (const char *text, struct site *site)
{
    struct err err = {0};
    struct arena *arena = arena_create (0);
    *site = (struct site){0};
    settings_am_init (&site->s.am);
    site->conf = conf_parse (text, strlen (text), "nui-local.cfg", &err);
    assert_non_null (site->conf);
    conf_partial (site->conf);
    int rc = conf_table_read (site->conf, daemon_params, &site->keys, &err);
    if (rc == 0)
        rc = conf_table_read (site->conf, settings_params, &site->s, &err);
    if (rc == 0)
        rc = conf_table_read (site->conf, settings_stage_params, &site->s.stage, &err);
    if (rc == 0)
        rc = conf_table_read (site->conf, settings_mode_params, &site->s.mode, &err);
    if (rc == 0)
        rc = nodeconf_read (site->conf, &site->s.nodes, &err);
    if (rc == 0)
        conf_show (site->conf, arena, on_shown, &site->text);
    arena_destroy (arena);
    return rc;
}

static void site_free (struct site *site)
{
    for (uint32_t i = 0; i < site->s.cap_count; i++)
        free (site->s.caps[i].meta);
    for (uint32_t i = 0; i < site->s.grid_count; i++)
        free (site->s.grids[i].meta);
    nodeconf_free (&site->s.nodes);
    conf_destroy (site->conf);
    strbuf_free (&site->text);
}

static void same_text (const char *name, const char *a, const char *b)
{
    if (!a != !b || (a && strcmp (a, b) != 0))
        fail_msg ("%s: '%s' is read back as '%s'", name, a ? a : "", b ? b : "");
}

static void same_list (const char *name, const char *const *a, const char *const *b,
                       uint32_t a_count, uint32_t b_count)
{
    assert_int_equal (a_count, b_count);
    for (uint32_t i = 0; i < a_count; i++)
        same_text (name, a[i], b[i]);
}

/* All rows that have a field of one form. */
static void same_fields (const struct conf_param *params, const void *a, const void *b)
{
    for (const struct conf_param *p = params; p->name; p++) {
        const char *x = (const char *)a + p->offset, *y = (const char *)b + p->offset, *s, *t;
        if (p->type == CONF_CALL || p->type == CONF_RECORD || p->type == CONF_UNSUPPORTED)
            continue;
        if (p->type == CONF_STRING || p->type == CONF_TEXT || p->type == CONF_PATH) {
            memcpy (&s, x, sizeof s);
            memcpy (&t, y, sizeof t);
            same_text (p->name, s, t);
        } else if (memcmp (x, y, width_of (p)) != 0) {
            fail_msg ("%s is read back as another", p->name);
        }
    }
}

static const struct conf_param *attrs_of (const char *record)
{
    for (const struct conf_param *p = settings_params; p->name; p++)
        if (strcmp (p->name, record) == 0)
            return p->attrs;
    fail_msg ("%s is no parameter", record);
    return NULL;
}

static void same_node (const struct nodeconf_node *x, const struct nodeconf_node *y)
{
    const char *const a[] = {x->name, x->features, x->networks, x->address,  x->partition,
                             x->type, x->gres,     x->classes,  x->priorityf};
    const char *const b[] = {y->name, y->features, y->networks, y->address,  y->partition,
                             y->type, y->gres,     y->classes,  y->priorityf};
    const int64_t m[] = {x->procs,
                         x->mem_mb,
                         x->swap_mb,
                         x->disk_mb,
                         x->speed_ppm,
                         x->priority,
                         x->max_jobs,
                         x->max_jobs_per_user,
                         x->max_procs_per_user,
                         x->max_load_milli,
                         x->has_priority};
    const int64_t n[] = {y->procs,
                         y->mem_mb,
                         y->swap_mb,
                         y->disk_mb,
                         y->speed_ppm,
                         y->priority,
                         y->max_jobs,
                         y->max_jobs_per_user,
                         y->max_procs_per_user,
                         y->max_load_milli,
                         y->has_priority};
    same_list ("NODECFG", a, b, sizeof a / sizeof *a, sizeof b / sizeof *b);
    assert_memory_equal (m, n, sizeof m);
}

static void same_settings (const struct settings *a, const struct settings *b)
{
    same_fields (settings_params, a, b);
    same_fields (settings_stage_params, &a->stage, &b->stage);
    same_fields (settings_mode_params, &a->mode, &b->mode);
    same_fields (nodeconf_params, &a->nodes, &b->nodes);
    for (int i = 0; i < SETTINGS_ADMIN_LEVELS; i++) {
        assert_int_equal (a->admin[i].all, b->admin[i].all);
        same_list ("ADMIN", a->admin[i].who, b->admin[i].who, a->admin[i].count, b->admin[i].count);
    }
    same_list ("META", a->metas, b->metas, a->meta_count, b->meta_count);
    assert_int_equal (a->group_count, b->group_count);
    for (uint32_t i = 0; i < a->group_count; i++)
        same_list ("METAGROUP", a->groups[i].member, b->groups[i].member, a->groups[i].count,
                   b->groups[i].count);
    assert_int_equal (a->notify_events, b->notify_events);
    assert_ptr_equal (a->rm_kind, b->rm_kind);
    same_fields (attrs_of ("RMCFG"), a, b);
    same_fields (attrs_of ("AMCFG"), &a->am, &b->am);
    assert_string_equal (a->am.machine, b->am.machine);
    assert_string_equal (a->am.fallback, b->am.fallback);
    assert_int_equal (a->cap_count, b->cap_count);
    for (uint32_t i = 0; i < a->cap_count; i++) {
        same_text ("PEERCAP", a->caps[i].meta, b->caps[i].meta);
        same_fields (attrs_of ("PEERCAP"), &a->caps[i], &b->caps[i]);
    }
    assert_int_equal (a->grid_count, b->grid_count);
    for (uint32_t i = 0; i < a->grid_count; i++) {
        same_text ("GRIDCFG", a->grids[i].meta, b->grids[i].meta);
        same_fields (attrs_of ("GRIDCFG"), &a->grids[i], &b->grids[i]);
    }
    same_list ("STAGEROOT", a->stage.roots.item, b->stage.roots.item, a->stage.roots.count,
               b->stage.roots.count);
    same_list ("STAGEHOSTS", a->stage.hosts.item, b->stage.hosts.item, a->stage.hosts.count,
               b->stage.hosts.count);
    assert_int_equal (a->stage.bandwidth, b->stage.bandwidth);
    assert_int_equal (a->stage.rate_min, b->stage.rate_min);
    assert_int_equal (a->mode.mode, b->mode.mode);
    assert_int_equal (a->mode.sim.flags, b->mode.sim.flags);
    assert_int_equal (a->nodes.node_count, b->nodes.node_count);
    for (uint32_t i = 0; i < a->nodes.node_count; i++)
        same_node (&a->nodes.node[i], &b->nodes.node[i]);
}

static void test_site_reads_back (void **state)
{
    unsigned good = 0;
    (void)state;
    for (unsigned world = 1; world <= WORLDS; world++) {
        struct strbuf file = STRBUF_INIT;
        struct site first, again;
        draw_state = world;
        for (size_t t = 0; t < sizeof site_tables / sizeof *site_tables; t++)
            put_site_table (&file, site_tables[t]);
        if (site_show (strbuf_text (&file), &first) == 0) {
            good++;
            if (site_show (strbuf_text (&first.text), &again) != 0)
                fail_msg ("seed %u: what is shown is refused", world);
            same_fields (daemon_params, &first.keys, &again.keys);
            same_settings (&first.s, &again.s);
            assert_string_equal (strbuf_text (&first.text), strbuf_text (&again.text));
            site_free (&again);
        }
        site_free (&first);
        strbuf_free (&file);
    }
    if (good < WORLDS / 4)
        fail_msg ("only %u of %d random files were good", good, WORLDS);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_reads_back),
        cmocka_unit_test (test_everything_is_shown),
        cmocka_unit_test (test_site_reads_back),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
