/* Each line of tests/data/maui/examples.cfg by itself: what the policy is that comes of it. A line is either here, or told in
 * examples.report (e2e_check) as having no effect; one that is neither fails the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "local/conf/settings.h"
#include "local/core/standing.h"
#include "proto/base/text.h"

enum { LINES_MAX = 400 };

/* One line, read as a Maui file of that line (and of those before it that it needs). */
struct one {
    struct cred_names names;
    struct conf *conf;
    struct settings *s;
    const struct policy *p;
};

static char example[LINES_MAX][256];
static bool tested[LINES_MAX];
static uint32_t example_count, wrong;
static bool others; /* the lines need not be in examples.cfg */

static struct one *begin (const char *before, const char *line)
{
    struct one *o = calloc (1, sizeof *o);
    struct err err = {0};
    char text[1024];
    bool found = false;
    assert_non_null (o);
    for (uint32_t i = 0; i < example_count; i++)
        if (strcmp (example[i], line) == 0)
            found = tested[i] = true;
    if (!found && !others)
        fail_msg ("examples.cfg has no line '%s'", line);
    text_printf (text, sizeof text, "%s%s\n", before, line);
    cred_names_init (&o->names);
    o->conf = conf_parse (text, strlen (text), "maui.cfg", &err);
    assert_non_null (o->conf);
    conf_partial (o->conf);
    if (settings_read (o->conf, &o->names, -1, &o->s, &err) != 0)
        fail_msg ("%s: %s", line, err.text);
    o->p = o->s->policy;
    return o;
}

static void end (struct one *o)
{
    settings_destroy (o->s);
    conf_destroy (o->conf);
    cred_names_free (&o->names);
    free (o);
}

static const struct policy_cred *cred (const struct one *o, enum cred_kind kind, const char *name)
{
    return policy_cred (o->p, kind, strtab_find (o->names.tab[kind], name));
}

static bool is_qos (const struct one *o, uint32_t id, const char *name)
{
    return id != CRED_NONE && strcmp (strtab_name (o->names.tab[CRED_QOS], id), name) == 0;
}

static bool is (const char *text, const char *wanted)
{
    return text && strcmp (text, wanted) == 0;
}

/* The one standing reservation admits so many credentials of that kind. */
static bool admits (const struct one *o, uint8_t kind, uint32_t count)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < o->p->standing[0].acl_count; i++)
        found += o->p->standing[0].acl[i].type == kind;
    return o->p->standing_count == 1 && found == count;
}

#define WITH(before, line, expression)                                                             \
    do {                                                                                           \
        struct one *o = begin (before, line);                                                      \
        const struct policy *p = o->p;                                                             \
        const struct policy_standing *r = p->standing;                                             \
        (void)p, (void)r;                                                                          \
        if (!(expression)) {                                                                       \
            print_error ("%s: not so: %s\n", line, #expression);                                   \
            wrong++;                                                                               \
        }                                                                                          \
        end (o);                                                                                   \
    } while (0)
#define EXAMPLE(line, expression) WITH ("", line, expression)
#define WEIGHT(line, sub, number) EXAMPLE (line, p->sub_weight[sub] == (number))
#define COMPONENT(line, of, number) EXAMPLE (line, p->component_weight[of] == (number))
#define LIMIT(line, kind, name, limit, number)                                                     \
    EXAMPLE (line, cred (o, kind, name)->limits.active[LIMIT_HARD][limit] == (number) &&           \
                       is_qos (o, cred (o, kind, name)->qdef, "first"))

static void priorities (void)
{
    WEIGHT ("AFSWEIGHT 10", PRIO_FSACCOUNT, 10);
    WEIGHT ("ACCOUNTWEIGHT 100", PRIO_ACCOUNT, 100);
    WEIGHT ("BYPASSWEIGHT 5000", PRIO_BYPASS, 5000);
    WEIGHT ("CLASSWEIGHT 10", PRIO_CLASS, 10);
    COMPONENT ("CREDWEIGHT 2", PRIO_CRED, 2);
    WEIGHT ("DISKWEIGHT 100", PRIO_DISK, 100);
    WEIGHT ("FSACCOUNTWEIGHT 10", PRIO_FSACCOUNT, 10);
    EXAMPLE ("FSCAP 10.0", p->component_cap[PRIO_FS] == 10);
    WEIGHT ("FSGROUPWEIGHT 4", PRIO_FSGROUP, 4);
    WEIGHT ("FSQOSWEIGHT 2", PRIO_FSQOS, 2);
    WEIGHT ("FSUSERWEIGHT 8", PRIO_FSUSER, 8);
    COMPONENT ("FSWEIGHT 500", PRIO_FS, 500);
    WEIGHT ("GROUPWEIGHT 20", PRIO_GROUP, 20);
    WEIGHT ("MEMWEIGHT[0] 1000", PRIO_MEM, 1000);
    WEIGHT ("NODEWEIGHT 1000", PRIO_NODE, 1000);
    WEIGHT ("PEWEIGHT[0] 100", PRIO_PE, 100);
    WEIGHT ("PROCWEIGHT 2500", PRIO_PROC, 2500);
    EXAMPLE ("QUEUETIMECAP[0] 10000", p->sub_cap[PRIO_QUEUETIME] == 10000);
    WEIGHT ("QUEUETIMEWEIGHT[0] 20", PRIO_QUEUETIME, 20);
    EXAMPLE ("RESCAP[0] 1000", p->component_cap[PRIO_RES] == 1000);
    COMPONENT ("RESWEIGHT[0] 5", PRIO_RES, 5);
    WEIGHT ("MEMORYWEIGHT[0] 10", PRIO_MEM, 10);
    WEIGHT ("SWAPWEIGHT[0] 0", PRIO_SWAP, 0);
    COMPONENT ("TARGETWEIGHT 1000", PRIO_TARG, 1000);
    WEIGHT ("SWAPWEIGHT 10", PRIO_SWAP, 10);
    COMPONENT ("USAGEWEIGHT 100", PRIO_USAGE, 100);
    WEIGHT ("USAGEPERCENTWEIGHT 1", PRIO_PERCENT, 1);
    WEIGHT ("USERWEIGHT 100", PRIO_USER, 100);
    EXAMPLE ("XFACTORCAP 10000", p->sub_cap[PRIO_XFACTOR] == 10000);
    EXAMPLE ("XFMINWCLIMIT 0:01:00", p->xf_min_wclimit_s == 60);
    WEIGHT ("XFACTORWEIGHT 1000", PRIO_XFACTOR, 1000);
    EXAMPLE ("ENABLENEGJOBPRIORITY TRUE", p->enable_negative);
    EXAMPLE ("REJECTNEGPRIOJOBS    TRUE", p->reject_negative);
    EXAMPLE ("JOBPRIOACCRUALPOLICY QUEUEPOLICY", p->accrual == ACCRUAL_QUEUEPOLICY);
    EXAMPLE ("FSDECAY 0.9", p->fs_decay == .9);
    EXAMPLE ("FSDEPTH 12", p->fs_depth == 12);
    EXAMPLE ("FSINTERVAL 12:00:00", p->fs_interval == 12 * 3600 * US_PER_S);
    EXAMPLE ("FSPOLICY DEDICATEDPES", p->fs_policy == FS_DEDICATEDPES && !p->fs_ratio);
}

static void credentials (void)
{
    LIMIT ("ACCOUNTCFG[oceans] MAXJOB=50 QDEF=first", CRED_ACCOUNT, "oceans", LIMIT_JOB, 50);
    LIMIT ("CLASSCFG[batch] MAXJOB=50 QDEF=first", CRED_CLASS, "batch", LIMIT_JOB, 50);
    LIMIT ("GROUPCFG[staff] MAXJOB=50 QDEF=first", CRED_GROUP, "staff", LIMIT_JOB, 50);
    LIMIT ("USERCFG[john] MAXJOB=50 QDEF=first", CRED_USER, "john", LIMIT_JOB, 50);
    EXAMPLE ("SYSCFG PLIST=Partition1 QDEF=first",
             is_qos (o, p->system_qdef, "first") && p->system_plist != 0);
    EXAMPLE ("QOSCFG[paying] PRIORITY=1000 MAXJOB=4 MAXPROCS=80",
             cred (o, CRED_QOS, "paying")->priority == 1000 &&
                 cred (o, CRED_QOS, "paying")->limits.active[LIMIT_HARD][LIMIT_JOB] == 4 &&
                 cred (o, CRED_QOS, "paying")->limits.active[LIMIT_HARD][LIMIT_PROC] == 80);
    EXAMPLE ("QOSFEATURES[2] wide interactive",
             is (cred (o, CRED_QOS, "2")->qos->features, "wide,interactive"));
    EXAMPLE ("QOSFLAGS[1] ADVRES IGNMAXJOBPERUSER",
             cred (o, CRED_QOS, "1")->qos->flags == QOS_USERESERVED &&
                 cred (o, CRED_QOS, "1")->qos->ignore_active[CRED_USER] == 1u << LIMIT_JOB);
    EXAMPLE ("QOSPRIORITY[2] 1000", cred (o, CRED_QOS, "2")->priority == 1000);
    EXAMPLE ("QOSQTTARGET 2:00:00", cred (o, CRED_QOS, "any")->qos->qttarget_min == 120);
    EXAMPLE ("QOSQTWEIGHT 5", cred (o, CRED_QOS, "any")->qos->qtweight == 5);
    EXAMPLE ("QOSXFTARGET[3] 5.0", cred (o, CRED_QOS, "3")->qos->xftarget == 5);
    EXAMPLE ("QOSXFWEIGHT[2] 1000", cred (o, CRED_QOS, "2")->qos->xfweight == 1000);
    EXAMPLE ("MAXPSPERUSER 100000",
             cred (o, CRED_USER, "any")->limits.active[LIMIT_HARD][LIMIT_PS] == 100000);
    EXAMPLE ("MAXWCPERUSER 24:00:00",
             cred (o, CRED_USER, "any")->limits.active[LIMIT_HARD][LIMIT_WC] == 86400);
    EXAMPLE ("SYSTEMDEFAULTJOBWALLTIME 1:00:00:00", p->default_wall_s == 86400);
    EXAMPLE ("SYSTEMMAXJOBPROC 256", p->system_max_proc_per_job == 256);
    EXAMPLE ("SYSTEMMAXJOBPROCSECOND 86400", p->system_max_ps_per_job == 86400);
    EXAMPLE ("SYSTEMMAXJOBWALLTIME 1:00:00:00", p->system_max_wall_s_per_job == 86400);
    EXAMPLE ("ADMIN1 keeper anna bert", o->s->admin[0].count == 3);
    EXAMPLE ("ADMIN2 carl dora", is (o->s->admin[1].who[1], "dora"));
    EXAMPLE ("ADMIN3 ops", is (o->s->admin[2].who[0], "ops"));
}

static void passes (void)
{
    EXAMPLE ("BACKFILLDEPTH 128", p->backfill_depth == 128);
    EXAMPLE ("BACKFILLMETRIC PROCSECONDS", p->backfill_metric == BFMETRIC_PROCSECONDS);
    EXAMPLE ("BACKFILLPOLICY BESTFIT", p->backfill_policy == BACKFILL_BESTFIT);
    EXAMPLE ("BFCHUNKDURATION 00:05:00", p->bf_chunk_duration == 300 * US_PER_S);
    EXAMPLE ("BFCHUNKSIZE     4", p->bf_chunk_procs == 4);
    EXAMPLE ("BFPRIORITYPOLICY  DURATION", p->backfill_priority == BFPRIORITY_DURATION);
    EXAMPLE ("DEFERCOUNT 12", p->defer_count == 12);
    EXAMPLE ("DEFERSTARTCOUNT 3", p->defer_start_count == 3);
    EXAMPLE ("DEFERTIME 0:05:00", p->defer_time == 300 * US_PER_S);
    EXAMPLE ("JOBAGGREGATIONTIME 00:00:04", p->job_aggregation_time == 4 * US_PER_S);
    EXAMPLE ("JOBMAXOVERRUN 1:00:00", p->max_overrun == 3600 * US_PER_S);
    EXAMPLE ("PREEMPTPOLICY REQUEUE", p->preempt_policy == PREEMPT_REQUEUE);
    EXAMPLE ("RESERVATIONDEPTH[0] 4", p->bucket[0].depth == 4);
    EXAMPLE ("RESERVATIONPOLICY CURRENTHIGHEST",
             p->reservation_policy == RESERVATION_CURRENTHIGHEST);
    EXAMPLE ("RESERVATIONQOSLIST[0] 1 3 5",
             p->bucket[0].qos_count == 3 && is_qos (o, p->bucket[0].qos[1], "3"));
    EXAMPLE ("RESERVATIONRETRYTIME 60", p->reservation_retry == 60 * US_PER_S);
    EXAMPLE ("RESOURCELIMITPOLICY MEM:ALWAYS:CANCEL",
             p->resource_limit[RESOURCE_LIMIT_MEM].action == LIMIT_CANCEL &&
                 p->resource_limit[RESOURCE_LIMIT_PROC].action == LIMIT_ALLOW);
    EXAMPLE ("RMPOLLINTERVAL 60", p->poll_interval == 60 * US_PER_S);
    EXAMPLE ("WCVIOLATIONACTION PREEMPT", p->wcviolation_action == WCVIOLATION_PREEMPT);
}

static void nodes (void)
{
    EXAMPLE ("DOWNNODEDELAYTIME 1:00:00", p->node_down_delay == 3600 * US_PER_S);
    EXAMPLE ("NODEDOWNSTATEDELAYTIME 0:30:00", p->node_down_delay == 1800 * US_PER_S);
    EXAMPLE ("JOBNODEMATCHPOLICY EXACTNODE", p->node_match == NODEMATCH_EXACTNODE);
    EXAMPLE ("NODEACCESSPOLICY SINGLEUSER", p->node_access == ACCESS_SINGLEUSER);
    EXAMPLE ("NODEALLOCATIONPOLICY MINRESOURCE", p->node_allocation == NODEALLOC_MINRESOURCE);
    EXAMPLE ("NODEAVAILABILITYPOLICY DEDICATED:PROCS COMBINED:MEM",
             p->node_availability[RES_PROCS] == NODEAVAIL_DEDICATED &&
                 p->node_availability[RES_MEM_MB] == NODEAVAIL_COMBINED);
    EXAMPLE ("NODECFG[nodeA] MAXJOB=2 SPEED=1.2",
             o->s->nodes.node[0].max_jobs == 2 && o->s->nodes.node[0].speed_ppm == 1200000);
    EXAMPLE ("NODELOADPOLICY ADJUSTSTATE", p->node_load_policy == NODELOAD_ADJUSTSTATE);
    EXAMPLE ("NODEMAXLOAD 0.75", p->node_max_load_milli == 750);
    EXAMPLE ("NODESETATTRIBUTE PROCSPEED", is (p->nodeset_attribute, "PROCSPEED"));
    EXAMPLE ("NODESETDELAY 0:00:00", p->nodeset_delay == 0);
    EXAMPLE ("NODESETLIST switchA switchB", is (p->nodeset_list, "switchA switchB"));
    EXAMPLE ("NODESETPOLICY ONEOF", is (p->nodeset_policy, "ONEOF"));
    EXAMPLE ("NODESETPRIORITYTYPE BESTRESOURCE", is (p->nodeset_priority, "BESTRESOURCE"));
    EXAMPLE ("NODESETTOLERANCE 0.5", p->nodeset_tolerance_ppm == 500000);
    EXAMPLE ("TASKDISTRIBUTIONPOLICY DEFAULT", p->task_distribution == TASKDIST_DEFAULT);
    EXAMPLE ("USEMACHINESPEED ON", p->use_machine_speed);
}

#define HOST(n) "SRHOSTLIST[" n "] node001\n"

static void reservations (void)
{
    WITH ("SRHOSTLIST[test] node001\n", "SRACCESS[test] SHARED", r->flags & RSV_SHARED);
    WITH (HOST ("1"), "SRACCOUNTLIST[1] ops staff", admits (o, CRED_ACCOUNT, 2));
    WITH ("SRHOSTLIST[test] node001\nSRCHARGEUSER[test] anna\n", "SRCHARGEACCOUNT[test] anna",
          is (r->charge_account, "anna"));
    WITH ("SRHOSTLIST[fast] node001\n", "SRCFG[fast] STARTTIME=9:00:00 ENDTIME=15:00:00",
          r->start_s == 9 * 3600 && r->end_s == 15 * 3600);
    EXAMPLE ("SRCFG[fast] HOSTLIST=node0[1-4]$", is (r->hosts, "node0[1-4]$"));
    WITH ("SRHOSTLIST[fast] node001\n", "SRCFG[fast] QOSLIST=high:low", admits (o, CRED_QOS, 2));
    WITH (HOST ("2"), "SRCLASSLIST[2] interactive", admits (o, CRED_CLASS, 1));
    WITH (HOST ("1"), "SRDAYS[1] Mon Tue Wed Thu Fri", r->days == 0x3E);
    WITH (HOST ("1"), "SRDEPTH[1] 7", r->depth == 7);
    WITH (HOST ("2"), "SRENDTIME[2] 17:00:00", r->end_s == 17 * 3600);
    WITH ("SRTASKCOUNT[3] 1\n", "SRFEATURES[3] wide fddi", r->features != NULL);
    WITH (HOST ("1"), "SRFLAGS[1] BYNAME", r->flags & RSV_BYNAME);
    WITH (HOST ("1"), "SRGROUPLIST[1] staff ops special", admits (o, CRED_GROUP, 3));
    EXAMPLE ("SRHOSTLIST[3] node001 node002 node003",
             strstr (r->hosts, "node001") && strstr (r->hosts, "node003"));
    WITH (HOST ("6"), "SRMAXTIME[6] 1:00:00", admits (o, ACL_DURATION, 1));
    WITH ("SRTASKCOUNT[0] 1\n", "SRPARTITION[0] OLD", is (r->partition, "OLD"));
    WITH (HOST ("1"), "SRPERIOD[1] WEEK", r->period == STANDING_WEEK);
    WITH (HOST ("1"), "SRQOSLIST[1] 1 3 4 5", admits (o, CRED_QOS, 4));
    WITH ("SRTASKCOUNT[1] 1\n", "SRRESOURCES[1] PROCS=1;MEM=512",
          r->task.v[RES_PROCS] == 1 && r->task.v[RES_MEM_MB] == 512);
    WITH (HOST ("1"), "SRSTARTTIME[1] 08:00:00", r->start_s == 8 * 3600);
    EXAMPLE ("SRTASKCOUNT[2] 16", r->tasks == 16);
    WITH (HOST ("5"), "SRTIMELOGIC[5] AND", p->standing_count == 1);
    WITH ("SRTASKCOUNT[2] 4\n", "SRTPN[2] 4", r->tasks_per_node == 4);
    WITH (HOST ("1"), "SRUSERLIST[1] bob joe mary", admits (o, CRED_USER, 3));
    WITH (HOST ("8") "SRPERIOD[8] WEEK\nSRWSTARTTIME[8] 1:08:00:00\n", "SRWENDTIME[8] 5:17:00:00",
          r->week_end_s == 5 * 86400 + 17 * 3600);
    WITH (HOST ("8") "SRPERIOD[8] WEEK\nSRWENDTIME[8] 5:17:00:00\n", "SRWSTARTTIME[8] 1:08:00:00",
          r->week_start_s == 86400 + 8 * 3600);
}

static void modes (void)
{
    const char sim[] = "SERVERMODE SIMULATION\n";
    EXAMPLE ("SERVERMODE SIMULATION", o->s->mode.mode == MODE_SIMULATION);
    WITH (sim, "SIMAUTOSHUTDOWN ON", o->s->mode.sim.auto_shutdown);
    WITH (sim, "SIMEXITITERATION 36000", o->s->mode.sim.exit_iteration == 36000);
    WITH (sim, "SIMINITIALQUEUEDEPTH 64", o->s->mode.sim.initial_depth == 64);
    WITH (sim, "SIMJOBSUBMISSIONPOLICY CONSTANTJOBDEPTH",
          o->s->mode.sim.submission == SIM_CONSTANTJOBDEPTH);
    WITH (sim, "SIMNODECOUNT 16", o->s->mode.sim.node_count == 16);
    WITH (sim, "SIMRESOURCETRACEFILE traces/nodes.1",
          strstr (o->s->mode.sim.resources, "traces/nodes.1"));
    WITH (sim, "SIMSTOPITERATION 1", o->s->mode.sim.stop_iteration == 1);
    WITH (sim, "SIMTIMERATIO 10", o->s->mode.sim.time_ratio == 10);
    WITH (sim, "SIMWORKLOADTRACEFILE traces/jobs.2",
          strstr (o->s->mode.sim.workload, "traces/jobs.2"));
    EXAMPLE ("STATDIR /var/adm/maui/stats", is (o->s->stat_dir, "/var/adm/maui/stats"));
    EXAMPLE ("LOGLEVEL 4", is (conf_get (o->conf, "LOGLEVEL"), "4")); /* the daemon's own */
}

/* Line numbers of the report that say of a line what becomes of it. */
static bool told (const char *report, uint32_t line)
{
    char place[48];
    text_printf (place, sizeof place, "examples.cfg: line %u: ", line);
    return strstr (report, place) != NULL;
}

static int64_t hard (const struct one *o, enum cred_kind kind, enum limit_kind limit)
{
    const struct policy_limits *l = &cred (o, kind, "any")->limits;
    return l->active_mask & 1u << limit ? l->active[LIMIT_HARD][limit] : -1;
}

/* Limits that a comma, a colon or a blank must not lose. */
static void nearly (void)
{
    others = true;
#define ANY_HAS(line, jobs, procs)                                                                 \
    EXAMPLE (line, hard (o, CRED_GROUP, LIMIT_JOB) == (jobs) &&                                    \
                       hard (o, CRED_GROUP, LIMIT_PROC) == (procs))
    ANY_HAS ("GROUPCFG[any] MAXJOB=20,MAXPROC=30", 20, 30);
    ANY_HAS ("GROUPCFG[any] MAXJOB=10,20,MAXPROC=30", 20, 30);
    ANY_HAS ("GROUPCFG[any] MAXJOB=20;MAXPROC=30", 20, 30);
    ANY_HAS ("GROUPCFG[any] MAXJOB: 12 maxproc:3", 12, 3);
    ANY_HAS ("GROUPCFG[any] MAXJOB 5 MAXPROC = 6", 5, 6);
    ANY_HAS ("GROUPCFG[any] MAXJOB=4, MAXPROC = 6", 4, 6);
    ANY_HAS ("GROUPCFG[any] MAXJOB<=5 \"MAXPROC=7\"", 5, 7);
    ANY_HAS ("GROUPCFG[ any ] MAXJOB=5 MAXPROC=", 5, -1);
    EXAMPLE ("GROUPCFG[any] MAXPROC[USER]:3", cred (o, CRED_GROUP, "any")->cross_count == 1);
    EXAMPLE ("MAXNODEPERACCOUNT 256",
             cred (o, CRED_ACCOUNT, "DEFAULT")->limits.active[LIMIT_HARD][LIMIT_NODE] == 256);
    EXAMPLE ("MAXNODEPERACCOUNTCOUNT 256",
             cred (o, CRED_ACCOUNT, "DEFAULT")->limits.active_mask == 0);
    EXAMPLE ("SYSTEMMAXPROCPERJOB UNLIMITED", p->system_max_proc_per_job == -1);
    EXAMPLE ("NODEALLOCATIONPOLICY FIRSTAVAILABLE;",
             p->node_allocation == NODEALLOC_FIRSTAVAILABLE);
    EXAMPLE ("SIMWCACCURACY 62.5", settings_accurate (&o->s->mode.sim, 800) == 500);
    EXAMPLE ("SIMFLAGS IGNHOSTLIST,IGNQOS", o->s->mode.sim.flags == SIM_IGNQOS);
#define RESERVED(line, expression) EXAMPLE ("SRCFG[x] HOSTLIST=n1 " line, expression)
    RESERVED ("PERIOD=INFINITY ENDTIME=INFINITY USERLIST=a", r->period == STANDING_INFINITY);
    RESERVED ("DAYS=WEEKEND", r->days == 0x41);
    RESERVED ("DAYS=WEEKDAYS,SAT", r->days == 0x7E);
    RESERVED ("DAYS=Fri-Monday,Wed", r->days == 0x6B);
    RESERVED ("DAYS=MON TUE WED STARTTIME=8:00:00", r->days == 0x0E && r->start_s == 28800);
    RESERVED ("USERLIST=a, b c", admits (o, CRED_USER, 3));
    RESERVED ("USERLIST=bob steve= bill- PRIORITY=3", admits (o, CRED_USER, 3) &&
                                                          r->priority == 3 &&
                                                          r->acl[1].affinity == AFFINITY_NEUTRAL &&
                                                          r->acl[2].affinity == AFFINITY_NEGATIVE);
    RESERVED ("USERLIST=+bob,-ann,&carl", admits (o, CRED_USER, 3) &&
                                              r->acl[1].affinity == AFFINITY_NEGATIVE &&
                                              r->acl[2].affinity == AFFINITY_POSITIVE);
    RESERVED ("USERLIST=bob@home,ann GROUPLIST=@staff",
              admits (o, CRED_USER, 1) && r->acl_count == 1);
    RESERVED ("PROCLIMIT<=4",
              r->acl_count == 1 && r->acl[0].value == 4 && r->acl[0].compare == ACL_LE);
    RESERVED ("PROCLIMIT>=4",
              r->acl_count == 1 && r->acl[0].value == 4 && r->acl[0].compare == ACL_GE);
    RESERVED ("TIMELIMIT<=1:00:00*",
              r->acl_count == 1 && r->acl[0].value == 3600 * US_PER_S && r->acl[0].required);
    RESERVED ("n2 n3 USERLIST=a", is (r->hosts, "n1 n2 n3"));
    RESERVED ("USERLIST=a OWNER=bob", p->standing_count == 1 && !r->owned);
    EXAMPLE ("USERCFG[any] QLIST=a b c", cred (o, CRED_USER, "any")->qlist_count == 3);
    others = false;
}

/* As people write them. */
static void sloppy (void)
{
    others = true;
    EXAMPLE ("ADMIN1 maui, pete,ann", o->s->admin[0].count == 3 &&
                                          is (o->s->admin[0].who[0], "maui") &&
                                          is (o->s->admin[0].who[1], "pete"));
    EXAMPLE ("ADMIN2 root@radon.example.org pete",
             o->s->admin[1].count == 2 && is (o->s->admin[1].who[0], "root"));
    EXAMPLE ("BANKDEFERJOBONFAILURE TRUE",
             o->s->am.defer && settings_am_away (&o->s->am) == AM_DEFER);
    EXAMPLE ("BANKFALLBACKACCOUNT standby", is (o->s->am.fallback, "standby"));
    EXAMPLE ("AMCFG[b] FALLBACKACCOUNT=idle\nBANKFALLBACKACCOUNT standby",
             is (o->s->am.fallback, "idle"));
    EXAMPLE ("BANKFALLBACKACCOUNT[0] a\nBANKFALLBACKACCOUNT b", is (o->s->am.fallback, "b"));
    EXAMPLE ("NODEAVAILABILITYPOLICY DEDICATED:PROCS,UTILIZED:MEM",
             p->node_availability[RES_PROCS] == NODEAVAIL_DEDICATED &&
                 p->node_availability[RES_MEM_MB] == NODEAVAIL_UTILIZED);
    EXAMPLE ("CLASSCFG[any] MAXPROCPERJOB=8 MAXWCPERJOB=1:00:00 MAXNODEPERJOB=2 MAXPSPERJOB=99",
             cred (o, CRED_CLASS, "any")->class->max_procs == 8 &&
                 cred (o, CRED_CLASS, "any")->class->max_nodes == 2 &&
                 cred (o, CRED_CLASS, "any")->class->max_ps == 99 &&
                 cred (o, CRED_CLASS, "any")->class->max_wall_s == 3600);
    EXAMPLE ("GROUPCFG[any] MAXPROCPERJOB=8 MAXWCLIMITPERJOB=1:00:00 MAX.NODE=2 MAX.PS=99",
             cred (o, CRED_GROUP, "any")->limits.per_job[LIMIT_PROC] == 8 &&
                 cred (o, CRED_GROUP, "any")->limits.per_job[LIMIT_NODE] == 2 &&
                 cred (o, CRED_GROUP, "any")->limits.per_job[LIMIT_PS] == 99 &&
                 cred (o, CRED_GROUP, "any")->limits.per_job[LIMIT_WC] == 3600);
    EXAMPLE ("SYSCFG MAXNODEPERJOB=4 MAX.WCLIMIT=UNLIMITED",
             p->system_limits.per_job[LIMIT_NODE] == 4 &&
                 p->system_limits.per_job[LIMIT_WC] == LIMIT_UNLIMITED);
    EXAMPLE ("USERCFG[any] MAXJOB=10, MAXPROC=NOLIMIT",
             cred (o, CRED_USER, "any")->limits.active[LIMIT_HARD][LIMIT_JOB] == 10 &&
                 cred (o, CRED_USER, "any")->limits.active[LIMIT_HARD][LIMIT_PROC] ==
                     LIMIT_UNLIMITED);
    EXAMPLE ("BACKFILLPOLICY[0] BESTFIT\nBACKFILLPOLICY[1] NONE",
             p->backfill_policy == BACKFILL_BESTFIT);
    EXAMPLE ("FSPOLICY DEDICATEDPS%\nGROUPCFG[any] FSTARGET=0",
             cred (o, CRED_GROUP, "any")->fs_target_type == FS_TARGET_NONE);
    EXAMPLE ("RMCFG[base] TYPE=SLURM HOST=head", p->preempt_policy == PREEMPT_REQUEUE);
    EXAMPLE ("PREEMPTPOLICY CHECKPOINT", p->preempt_policy == PREEMPT_REQUEUE);
    EXAMPLE ("NODECFG[any] POWER=1 GRES[tape]=1 FEATURES+=ib loose", true);
    others = false;
}

static void file_text (const char *name, char *out, size_t cap)
{
    FILE *f = fopen (name, "r");
    assert_non_null (f);
    out[fread (out, 1, cap - 1, f)] = '\0';
    assert_true (feof (f));
    fclose (f);
}

static void test_examples (void **state)
{
    static char text[65536], report[65536];
    char *rest = NULL;
    (void)state;
    file_text (NUI_SOURCE_DIR "/tests/data/maui/examples.cfg", text, sizeof text);
    file_text (NUI_SOURCE_DIR "/tests/data/maui/examples.report", report, sizeof report);
    for (char *line = strtok_r (text, "\n", &rest); line; line = strtok_r (NULL, "\n", &rest)) {
        assert_true (example_count < LINES_MAX);
        text_printf (example[example_count++], sizeof example[0], "%s", line);
    }
    priorities ();
    credentials ();
    passes ();
    nodes ();
    reservations ();
    modes ();
    sloppy ();
    nearly ();
    for (uint32_t i = 0; i < example_count; i++)
        if (*example[i] != '#' && !tested[i] && !told (report, i + 1)) {
            print_error ("line %u: '%s' is neither tested nor told\n", i + 1, example[i]);
            wrong++;
        }
    assert_int_equal (wrong, 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_examples)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
