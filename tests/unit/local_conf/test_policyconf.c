/* policyconf: maui.cfg to struct policy. The examples of the papers and the manual as they stand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "local/conf/policyconf.h"
#include "local/core/standing.h"

struct loaded {
    struct cred_names names;
    struct conf *conf;
    struct policy *policy;
    struct err err;
    int rc;
};

static struct loaded load (const char *text)
{
    struct loaded l = {0};
    cred_names_init (&l.names);
    l.conf = conf_parse (text, strlen (text), "maui.cfg", &l.err);
    return l;
}

/* The policy points at the names, so these must be where they stay. */
static void take (struct loaded *l)
{
    l->rc = l->conf ? policy_conf_read (l->conf, &l->names, &l->policy, &l->err) : l->err.code;
    if (!l->rc)
        l->rc = policy_conf_known (l->conf, &l->err);
    if (!l->rc)
        l->rc = conf_finish (l->conf, &l->err);
}

static void release (struct loaded *l)
{
    policy_destroy (l->policy);
    conf_destroy (l->conf);
    cred_names_free (&l->names);
}

#define LOAD(l, lines)                                                                             \
    struct loaded l = load (lines);                                                                \
    take (&l);                                                                                     \
    if (l.rc)                                                                                      \
    fail_msg ("%s", l.err.text)

static const struct policy_cred *cred (struct loaded *l, enum cred_kind kind, const char *name)
{
    return policy_cred (l->policy, kind, strtab_find (l->names.tab[kind], name));
}

static void refused (const char *text, const char *sentence)
{
    struct loaded l = load (text);
    take (&l);
    assert_int_not_equal (l.rc, 0);
    if (!strstr (l.err.text, sentence))
        fail_msg ("'%s' does not say '%s'", l.err.text, sentence);
    release (&l);
}

static bool noted (const struct loaded *l, const char *sentence)
{
    for (uint32_t i = 0; i < conf_note_count (l->conf); i++) {
        if (strstr (conf_note (l->conf, i), sentence))
            return true;
    }
    return false;
}

/* Core algorithms of the Maui scheduler, figure 5 (with the suffixes that its comments ask for). */
static void test_figure_5 (void **state)
{
    (void)state;
    LOAD (l, "FSPOLICY    PSDEDICATED # track fairshare usage by dedicated proc-seconds\n"
             "FSINTERVAL  12:00:00 # maintain 12 hour fairshare utilization records\n"
             "FSDEPTH     14 # track effective usage using last 14 records\n"
             "FSDECAY     0.80 # decay historical records\n"
             "FSWEIGHT    100 # specify relative fairshare priority weight\n"
             "USERFSWEIGHT 2 # relative user fairshare impact\n"
             "GROUPFSWEIGHT 1 # relative group fairshare impact\n"
             "QOSFSWEIGHT 10 # relative QOS fairshare impact\n"
             "CLASSFSWEIGHT 4 # relative class fairshare impact\n"
             "\n"
             "UserCfg[BigKahuna]    FSTARGET=50 # target usage of 50% (target)\n"
             "GroupCfg[staff]       FSTARGET=10.0- # target usage below 10% (ceiling)\n"
             "QOSCfg[HighPriority]  FSTARGET=40.0+ # target usage above 40% (floor)\n"
             "ClassCfg[interactive] FSTARGET=15.0% # ignore interactive jobs\n"
             "                                     # if usage exceeds 15% (cap)\n");
    const struct policy *p = l.policy;
    assert_int_equal (p->fs_policy, FS_DEDICATEDPS);
    assert_false (p->fs_ratio);
    assert_int_equal (p->fs_interval, 12 * 3600 * US_PER_S);
    assert_int_equal (p->fs_depth, 14);
    assert_true (p->fs_decay == .8);
    assert_true (p->component_weight[PRIO_FS] == 100);
    assert_true (p->sub_weight[PRIO_FSUSER] == 2 && p->sub_weight[PRIO_FSGROUP] == 1);
    assert_true (p->sub_weight[PRIO_FSQOS] == 10 && p->sub_weight[PRIO_FSCLASS] == 4);
    assert_int_equal (cred (&l, CRED_USER, "BigKahuna")->fs_target_type, FS_TARGET_TARGET);
    assert_int_equal (cred (&l, CRED_GROUP, "staff")->fs_target_type, FS_TARGET_CEILING);
    assert_int_equal (cred (&l, CRED_QOS, "HighPriority")->fs_target_type, FS_TARGET_FLOOR);
    const struct policy_cred *c = cred (&l, CRED_CLASS, "interactive");
    assert_int_equal (c->fs_target_type, FS_TARGET_CAP_RELATIVE);
    assert_true (c->fs_target == 15);
    assert_int_equal (conf_note_count (l.conf), 0);
    release (&l);
}

/* The examples of the book's chapter on Maui, with its blanks and its notes. */
static void test_book_examples (void **state)
{
    (void)state;
    LOAD (l, "    USERCFG[bob]       PRIORITY=100\n"
             "    USERCFG[john]      PRIORITY=500\n"
             "    USERWEIGHT         1\n"
             "    GROUPWEIGHT        1\n"
             "    CREDWEIGHT         1\n"
             "USERCFG[bob] MAXJOB=3 MAXPROC=32\n"
             "GROUPCFG [DEFAULT] MAXNODE=64\n"
             "USERCFG[DEFAULT] MAXNODE=16,24\n"
             "NODECFG [DEFAULT] PRIORITYF='AMEM - 10*USAGE + SPEED'\n"
             "    # maui.cfg\n"
             "    FSDEPTH    7\n"
             "    FSINTERVAL 24:00:00\n"
             "    FSDECAY    0.80\n"
             "    USERCFG[john]     FSTARGET=25.0+\n"
             "    GROUPCFG[staff]   FSTARGET=20.0-\n"
             "    SRCFG[development]     PERIOD=DAY DAYS=MON, TUE, WED, THU, FRI\n"
             "    SRCFG[development]     STARTTIME=8:00:00 ENDTIME=17:00:00\n"
             "    SRCFG[development]     TASKCOUNT=16 TIMELIMIT=00:30:00\n"
             "    SRUSERLIST[special]  bob john steve= bill-\n"
             " AMCFG[qbank] TYPE=QBANK  HOST=bank.univ.edu\n"
             "  USERCFG[john] QLIST=hiprio:normal QDEF=hiprio\n"
             "  GROUPCFG[bio] QLIST=hiprio:medprio:development QDEF=medprio\n"
             "USERCFG[paul]   PRIORITY=-1000\n"
             "QOSCFG[special] QTWEIGHT=5000\n"
             "QOSCFG[special] XFWEIGHT=5000\n");
    const struct policy_cred *bob = cred (&l, CRED_USER, "bob");
    assert_true (bob->priority == 100);
    assert_int_equal (bob->limits.active[LIMIT_HARD][LIMIT_JOB], 3);
    assert_int_equal (bob->limits.active[LIMIT_SOFT][LIMIT_PROC], 32);
    assert_int_equal (bob->limits.active[LIMIT_SOFT][LIMIT_NODE], 16); /* DEFAULT's */
    assert_int_equal (bob->limits.active[LIMIT_HARD][LIMIT_NODE], 24);
    assert_int_equal (cred (&l, CRED_GROUP, "anyone")->limits.active[LIMIT_HARD][LIMIT_NODE], 64);
    const struct policy_cred *john = cred (&l, CRED_USER, "john");
    assert_true (john->priority == 500);
    assert_int_equal (john->fs_target_type, FS_TARGET_FLOOR);
    assert_int_equal (john->qlist_count, 2);
    assert_int_equal (john->qdef, strtab_find (l.names.tab[CRED_QOS], "hiprio"));
    assert_int_equal (cred (&l, CRED_GROUP, "bio")->qlist_count, 3);
    assert_true (cred (&l, CRED_USER, "paul")->priority == -1000);
    assert_true (cred (&l, CRED_QOS, "special")->qos->qtweight == 5000);
    assert_true (cred (&l, CRED_QOS, "special")->qos->xfweight == 5000);
    assert_true (noted (&l, "line 9: NODECFG"));
    assert_int_equal (l.policy->standing_count, 1); /* the other one names no node */
    assert_string_equal (l.policy->standing[0].name, "development");
    assert_int_equal (l.policy->standing[0].days, 0x3E);
    assert_int_equal (l.policy->standing[0].start_s, 8 * 3600);
    assert_int_equal (l.policy->standing[0].tasks, 16);
    assert_int_equal (l.policy->standing[0].acl_count, 1);
    assert_int_equal (l.policy->standing[0].acl[0].type, ACL_DURATION);
    assert_int_equal (l.policy->standing[0].acl[0].value, 1800 * US_PER_S);
    assert_true (noted (&l, "line 19: SRCFG[special]"));
    assert_true (noted (&l, "line 20: AMCFG"));
    assert_int_equal (conf_note_count (l.conf), 3);
    release (&l);
}

static void test_weights_of_both_spellings (void **state)
{
    (void)state;
    static const struct {
        const char *manual, *paper;
        enum prio_component component;
    } component[] = {{"CRED", "DIRECTSPEC", PRIO_CRED}, {"FS", "FAIRSHARE", PRIO_FS},
                     {"RES", "RESOURCE", PRIO_RES},     {"SERV", "SERVICE", PRIO_SERV},
                     {"TARG", "TARGET", PRIO_TARG},     {"USAGE", "USAGE", PRIO_USAGE}};
    char text[256];
    for (size_t i = 0; i < sizeof component / sizeof component[0]; i++) {
        for (int paper = 0; paper <= 1; paper++) {
            const char *name = paper ? component[i].paper : component[i].manual;
            snprintf (text, sizeof text, "%sWEIGHT 17\n%sCAP[0] 2.5\n", name, name);
            LOAD (l, text);
            assert_true (l.policy->component_weight[component[i].component] == 17);
            assert_true (l.policy->component_cap[component[i].component] == 2.5);
            release (&l);
        }
    }
    for (int s = 0; s < PRIO_SUBS; s++) {
        snprintf (text, sizeof text, "%sWEIGHT -3\n%sCAP 7\n", prio_sub_name ((enum prio_sub)s),
                  prio_sub_name ((enum prio_sub)s));
        LOAD (l, text);
        for (int o = 0; o < PRIO_SUBS; o++) {
            assert_true (l.policy->sub_weight[o] == (o == s ? -3 : o == PRIO_QUEUETIME ? 1 : 0));
            assert_true (l.policy->sub_cap[o] == (o == s ? 7 : 0));
        }
        release (&l);
    }
    LOAD (l, "USAGECONSUMEDWEIGHT 1\nUSAGEREMAININGWEIGHT 2\nUSAGEPERCENTWEIGHT 3\n"
             "USAGEEXECUTIONTIMEWEIGHT 4\nXFWEIGHT 5\nXFCAP 6\nQueueTimeCap 100\nAFSWEIGHT 9\n");
    assert_true (l.policy->sub_weight[PRIO_CONSUMED] == 1);
    assert_true (l.policy->sub_weight[PRIO_REMAINING] == 2);
    assert_true (l.policy->sub_weight[PRIO_PERCENT] == 3);
    assert_true (l.policy->sub_weight[PRIO_EXECUTIONTIME] == 4);
    assert_true (l.policy->sub_weight[PRIO_XFACTOR] == 5);
    assert_true (l.policy->sub_cap[PRIO_XFACTOR] == 6);
    assert_true (l.policy->sub_cap[PRIO_QUEUETIME] == 100);
    assert_true (l.policy->sub_weight[PRIO_FSACCOUNT] == 9);
    release (&l);
}

static void test_limits (void **state)
{
    (void)state;
    LOAD (l, "USERCFG[u] MAXJOB=2,4 MAXPROC=16 MAXNODE=3 MAXPS=100000 MAXPE=2.5,3 MAXMEM=4G\n"
             "USERCFG[u] MAXWC=10:00:00 MINPROC=2 MAXIJOB=5 MAXIPS=77\n"
             "CLASSCFG[x] MAXJOB[USER]=2 MAXPROC[USER:steve]=3,8 MAXIJOB[GROUP]=9\n"
             "QOSCFG[hi] OMAXJOB=50 OMAXIJOB=500 OMAXJPROC=1000 OMAXJWC=2:00:00 MAXPROC=150\n"
             "SYSCFG[all] MAXPROC=999 MAXIJOB=10000\n"
             "USERCFG[free] MAXJOB=-1\n"
             "SYSTEMMAXPROCPERJOB 64\nSYSTEMMAXJOBWALLTIME 2:00:00:00\n"
             "SYSTEMMAXPROCSECONDPERJOB 86400\nSYSTEMDEFAULTJOBWALLTIME 1:00:00\n");
    const struct policy_limits *u = &cred (&l, CRED_USER, "u")->limits;
    assert_int_equal (u->active_mask, (1u << LIMIT_KINDS) - 1);
    const int64_t soft[LIMIT_KINDS] = {2, 16, 3, 100000, 2500000, 4096, 36000, 2};
    const int64_t hard[LIMIT_KINDS] = {4, 16, 3, 100000, 3000000, 4096, 36000, 2};
    for (int k = 0; k < LIMIT_KINDS; k++) {
        assert_int_equal (u->active[LIMIT_SOFT][k], soft[k]);
        assert_int_equal (u->active[LIMIT_HARD][k], hard[k]);
    }
    assert_int_equal (u->idle_mask, 1u << LIMIT_JOB | 1u << LIMIT_PS);
    assert_int_equal (u->idle[LIMIT_PS], 77);
    const struct policy_cred *x = cred (&l, CRED_CLASS, "x");
    assert_int_equal (x->cross_count, 3);
    assert_int_equal (x->cross[0].other_id, CRED_NONE);
    assert_int_equal (x->cross[1].other_id, strtab_find (l.names.tab[CRED_USER], "steve"));
    assert_int_equal (x->cross[1].value[LIMIT_SOFT], 3);
    assert_int_equal (x->cross[1].value[LIMIT_HARD], 8);
    assert_true (x->cross[2].idle);
    assert_int_equal (x->cross[2].other_kind, CRED_GROUP);
    const struct policy_cred *hi = cred (&l, CRED_QOS, "hi");
    assert_int_equal (hi->qos->override.active[LIMIT_HARD][LIMIT_JOB], 50);
    assert_int_equal (hi->qos->override.idle[LIMIT_JOB], 500);
    assert_int_equal (hi->qos->job_override[LIMIT_PROC], 1000);
    assert_int_equal (hi->qos->job_override[LIMIT_WC], 7200);
    assert_int_equal (hi->limits.active[LIMIT_HARD][LIMIT_PROC], 150);
    assert_int_equal (l.policy->system_limits.active[LIMIT_HARD][LIMIT_PROC], 999);
    assert_int_equal (l.policy->system_limits.idle[LIMIT_JOB], 10000);
    assert_true (cred (&l, CRED_USER, "free")->limits.active[LIMIT_HARD][LIMIT_JOB] ==
                 LIMIT_UNLIMITED);
    assert_int_equal (l.policy->system_max_proc_per_job, 64);
    assert_int_equal (l.policy->system_max_wall_s_per_job, 2 * 86400);
    assert_int_equal (l.policy->system_max_ps_per_job, 86400);
    assert_int_equal (l.policy->default_wall_s, 3600);
    release (&l);
}

static void test_qos_and_the_rest (void **state)
{
    (void)state;
    LOAD (
        l,
        "QOSCFG[hi] PRIORITY=50 QTTARGET=00:30:00 XFTARGET=4.5 "
        "QFLAGS=NOBF:RESERVEALWAYS,IGNJOBPERUSER:IGNPROCQUEUEDPERCLASS:IGNSYSTEM:PREEMPTOR:USERESERVED:night\n"
        "QOSXFTARGET[lo] 9\nQOSQTTARGET[lo] 1:00:00\nQOSQTWEIGHT[lo] 3\n"
        "USERCFG[a] QLIST=hi,lo&\nGROUPCFG[b] QLIST=hi^\n"
        "JOBPRIOACCRUALPOLICY FULLPOLICY\nREJECTNEGPRIOJOBS TRUE\nENABLENEGJOBPRIORITY yes\n"
        "XFMINWCLIMIT 00:02:00\nFSPOLICY UTILIZEDPS%\n"
        "RESERVATIONPOLICY HIGHEST\nRESERVATIONDEPTH[0] 4\nRESERVATIONDEPTH[3] 7\n"
        "RESERVATIONQOSLIST[0] hi\nRESERVATIONTHRESHOLDTYPE QUEUETIME\n"
        "RESERVATIONTHRESHOLDVALUE 2:00:00\nRESERVATIONRETRYTIME 60\n"
        "RESERVATIONBINDING LATE\nBACKFILLPOLICY GREEDY\nBACKFILLMETRIC PESECONDS\n"
        "BACKFILLWINDOWORDER LONGESTFIRST\nBACKFILLDEPTH 100\nBACKFILLMAXSCHEDULES 7\n"
        "BFCHUNKSIZE 32\nBFCHUNKDURATION 00:10:00\nNODEALLOCATIONPOLICY FASTEST\n"
        "RMPOLLINTERVAL 00:00:30\nJOBAGGREGATIONTIME 5\nDEFERTIME 0\nDEFERCOUNT 3\n"
        "DEFERSTARTCOUNT 2\n");
    const struct policy *p = l.policy;
    const struct policy_cred *hi = cred (&l, CRED_QOS, "hi"), *lo = cred (&l, CRED_QOS, "lo");
    assert_true (hi->priority == 50 && hi->qos->qttarget_min == 30 && hi->qos->xftarget == 4.5);
    assert_int_equal (hi->qos->flags, QOS_NOBF | QOS_RESERVEALWAYS | QOS_IGNSYSTEM | QOS_PREEMPTOR |
                                          QOS_USERESERVED);
    assert_int_equal (hi->qos->ignore_active[CRED_USER], 1u << LIMIT_JOB);
    assert_int_equal (hi->qos->ignore_idle[CRED_CLASS], 1u << LIMIT_PROC);
    assert_string_equal (hi->qos->use_reserved, "night");
    assert_true (lo->qos->xftarget == 9 && lo->qos->qttarget_min == 60 && lo->qos->qtweight == 3);
    assert_int_equal (cred (&l, CRED_USER, "a")->qlist_mode, QLIST_INTERSECT);
    assert_int_equal (cred (&l, CRED_USER, "a")->qlist_count, 2);
    assert_int_equal (cred (&l, CRED_GROUP, "b")->qlist_mode, QLIST_EXCLUSIVE);
    assert_int_equal (p->accrual, ACCRUAL_FULLPOLICY);
    assert_true (p->reject_negative && p->enable_negative && p->fs_ratio);
    assert_int_equal (p->xf_min_wclimit_s, 120);
    assert_int_equal (p->fs_policy, FS_UTILIZEDPS);
    assert_int_equal (p->reservation_policy, RESERVATION_HIGHEST);
    assert_int_equal (p->bucket_count, 4);
    assert_int_equal (p->bucket[0].depth, 4);
    assert_int_equal (p->bucket[0].qos_count, 1);
    assert_int_equal (p->bucket[3].depth, 7);
    assert_int_equal (policy_bucket_of (p, CRED_DEFAULT), 3);
    assert_int_equal (p->reservation_threshold, THRESHOLD_QUEUETIME);
    assert_true (p->reservation_threshold_value == 7200);
    assert_int_equal (p->reservation_retry, 60 * US_PER_S);
    assert_int_equal (p->reservation_binding, BINDING_LATE);
    assert_int_equal (p->backfill_policy, BACKFILL_GREEDY);
    assert_int_equal (p->backfill_metric, BFMETRIC_PESECONDS);
    assert_int_equal (p->backfill_window_order, BFWINDOW_LONGESTFIRST);
    assert_int_equal (p->backfill_depth, 100);
    assert_int_equal (p->backfill_max_schedules, 7);
    assert_int_equal (p->bf_chunk_procs, 32);
    assert_int_equal (p->bf_chunk_duration, 600 * US_PER_S);
    assert_int_equal (p->node_allocation, NODEALLOC_FASTEST);
    assert_int_equal (p->poll_interval, 30 * US_PER_S);
    assert_int_equal (p->job_aggregation_time, 5 * US_PER_S);
    assert_int_equal (p->defer_time, 0);
    assert_int_equal (p->defer_count, 3);
    assert_int_equal (p->defer_start_count, 2);
    release (&l);
}

/* An empty file is the defaults. */
static void test_empty (void **state)
{
    (void)state;
    LOAD (l, "");
    struct policy *d = policy_create (&l.names);
    struct err err;
    assert_int_equal (policy_seal (d, &err), 0);
    assert_memory_equal (l.policy->sub_weight, d->sub_weight, sizeof d->sub_weight);
    assert_memory_equal (l.policy->component_weight, d->component_weight,
                         sizeof d->component_weight);
    assert_memory_equal (l.policy->sub_cap, d->sub_cap, sizeof d->sub_cap);
    size_t from = offsetof (struct policy, xf_min_wclimit_s);
    size_t to = offsetof (struct policy, bucket);
    assert_memory_equal ((char *)l.policy + from, (char *)d + from, to - from);
    from = offsetof (struct policy, reservation_threshold);
    to = offsetof (struct policy, names);
    assert_memory_equal ((char *)l.policy + from, (char *)d + from, to - from);
    assert_int_equal (l.policy->bucket[0].depth, 1);
    policy_destroy (d);
    release (&l);
}

/* Each with its line and reason; nothing of the file is taken. */
static void test_refused (void **state)
{
    (void)state;
    refused ("FSDECAY 0.8\nFSDEPHT 7\n", "maui.cfg: line 2: unknown parameter FSDEPHT");
    refused ("FSDEPHT 7\n", "FSDEPTH");
    refused ("FSDEPTH 33\n", "line 1: FSDEPTH");
    refused ("FSDECAY 1.5\n", "line 1: FSDECAY");
    refused ("FSINTERVAL 0\n", "line 1: FSINTERVAL");
    refused ("FSPOLICY PS\n", "line 1: FSPOLICY");
    refused ("USERCFG[x] FSTARGET=120\n", "0 to 100 percent");
    refused ("USERCFG[x] FSTARGET=ten\n", "line 1: USERCFG[x]");
    refused ("USERCFG[x] MAXJBO=3\n", "MAXJOB");
    refused ("USERCFG[x] MAXJOB=3,2\n", "looser than the hard one");
    refused ("USERCFG[x] MAXJOB=-2\n", "line 1: USERCFG[x]");
    refused ("USERCFG[x] MAXJOB[USER]=2\n", "[USER] is no other kind of credential");
    refused ("USERCFG[x] MAXJOB[HOST]=2\n", "[HOST] is no other kind of credential");
    refused ("USERCFG MAXJOB=2\n", "needs an index");
    refused ("QOSCFG[x] QFLAGS=FASTER\n", "'FASTER' is no flag of a QoS");
    refused ("USERCFG[x] MAXJOBPERUSER=2\n", "[USER] is no other kind of credential");
    refused ("SRCFG[x] PERIOD=DAY STARTTIME=1:08:00:00 TASKCOUNT=1\n", "needs PERIOD=WEEK");
    refused ("BACKFILLPOLICY SOON\n", "'SOON' is none of FIRSTFIT, BESTFIT, GREEDY, PREEMPT, NONE");
    refused ("NODEALLOCATIONPOLICY CIRCULAR\n", "'CIRCULAR' is none of");
    refused ("NODEACCESSPOLICY NOBODY\n", "is none of SHARED, SINGLEUSER");
    refused ("CLASSCFG[a] MAX.PROC=0\n", "MAX.PROC");
    refused ("NODESETTOLERANCE -1\n", "0 or more");
    refused ("NODECFG[a] PRIORITYF='SPEED\n", "a quote is not closed");
    refused ("RESERVATIONDEPTH[32] 1\n", "line 1: RESERVATIONDEPTH[32]");
    refused ("RESERVATIONDEPTH -1\n", "line 1: RESERVATIONDEPTH");
    refused ("RESERVATIONTHRESHOLDTYPE XFACTOR\nRESERVATIONTHRESHOLDVALUE many\n",
             "line 2: RESERVATIONTHRESHOLDVALUE");
    refused ("QUEUETIMEWEIGHT[1] 10\n", "QUEUETIMEWEIGHT[1]: a value for one partition");
    refused ("SYSTEMDEFAULTJOBWALLTIME 0\n", "at least a second");
    refused ("FSPOLICY DEDICATEDPS%\nUSERCFG[x] FSTARGET=0\n",
             "user x: FSTARGET of 0 has no ratio");
}

/* The same said in the spellings of Maui's older files. */
static void test_older_spellings (void **state)
{
    (void)state;
    LOAD (
        l,
        "CLASSCFG[a] MAXJOBPERUSER=4 MAXPSPERGROUP = 100,200\nCLASSCFG[b] MAXJOB[USER]=4 MAXPS[GROUP]=100,200\n"
        "SYSCFG QLIST=hi\nSYSCFG[base] PLIST=\nQOSCFG[hi] FLAGS=PREEMPTOR\nMEMORYWEIGHT '3'\n"
        "NODEAVAILABILITYPOLICY DEDICATED:PROCS MEMORY:UTILIZED\nBACKFILLPOLICY ON\n"
        "SYSTEMMAXJOBPROC 64\nSYSTEMMAXJOBPROCSECOND 1000\nDOWNNODEDELAYTIME 0:10:00\nFOOBAR 3\n");
    const struct policy_cred *a = cred (&l, CRED_CLASS, "a"), *b = cred (&l, CRED_CLASS, "b");
    assert_int_equal (a->cross_count, 2);
    assert_int_equal (b->cross_count, 2);
    assert_memory_equal (a->cross, b->cross, 2 * sizeof *a->cross);
    assert_int_equal (l.policy->system_qlist_count, 1);
    assert_true (noted (&l, "line 4: SYSCFG[base] PLIST: is empty"));
    assert_true (cred (&l, CRED_QOS, "hi")->qos->flags & QOS_PREEMPTOR);
    assert_true (l.policy->sub_weight[PRIO_MEM] == 3);
    assert_int_equal (l.policy->node_availability[RES_PROCS], NODEAVAIL_DEDICATED);
    assert_int_equal (l.policy->node_availability[RES_MEM_MB], NODEAVAIL_UTILIZED);
    assert_int_equal (l.policy->node_availability[RES_DISK_MB], NODEAVAIL_COMBINED);
    assert_int_equal (l.policy->backfill_policy, BACKFILL_FIRSTFIT);
    assert_true (noted (&l, "line 8: BACKFILLPOLICY: ON: means FIRSTFIT here"));
    assert_int_equal (l.policy->system_max_proc_per_job, 64);
    assert_int_equal (l.policy->system_max_ps_per_job, 1000);
    assert_int_equal (l.policy->node_down_delay, 600 * US_PER_S);
    assert_true (noted (&l, "line 12: FOOBAR: neither Maui nor Nui has such a parameter"));
    release (&l);
}

/* Three parameters for what is one since: POLICY ON, COUNT, and SMAX…COUNT where the limit is soft, too. */
static void test_older_limits (void **state)
{
    (void)state;
    LOAD (l, "MAXJOBPERUSERPOLICY ON\nMAXJOBPERUSERCOUNT 4\nSMAXJOBPERUSERCOUNT 2\n"
             "MAXPROCPERGROUPCOUNT 64\nMAXPSPERACCOUNTPOLICY ON\nMAXWCPERACCOUNTCOUNT 2:00:00\n"
             "MAXWCPERACCOUNTPOLICY ON\nSMAXPEPERCLASSCOUNT 3\nMAXPEPERCLASSPOLICY TRUE\n"
             "MAXJOBQUEUEDPERUSERPOLICY ON\nMAXJOBQUEUEDPERUSERCOUNT 5\nMAXMEMPERQOS 1G\n"
             "MAXNODEPERUSERPOLICY ON\nMAXNODEPERUSERCOUNT 9,10\nUSERCFG[DEFAULT] MAXNODE=3\n"
             "MAXPROCPERUSERPOLICY OFF\nMAXPROCPERUSERCOUNT 1\nMAXPSPERUSERPOLICY ON\n"
             "MAXPSPERUSERCOUNT 0\nMAXJOBPERQOSPOLICY ON\nMAXJOBPERQOSCOUNT 4,8\n");
    const struct policy_limits *user = &cred (&l, CRED_USER, "john")->limits;
    assert_int_equal (user->active_mask, 1u << LIMIT_JOB | 1u << LIMIT_NODE);
    assert_int_equal (user->active[LIMIT_HARD][LIMIT_JOB], 4);
    assert_int_equal (user->active[LIMIT_SOFT][LIMIT_JOB], 2);
    assert_int_equal (user->active[LIMIT_HARD][LIMIT_NODE], 3);
    assert_int_equal (user->idle_mask, 1u << LIMIT_JOB);
    assert_int_equal (user->idle[LIMIT_JOB], 5);
    assert_int_equal (cred (&l, CRED_GROUP, "g")->limits.active_mask, 0);
    const struct policy_limits *account = &cred (&l, CRED_ACCOUNT, "a")->limits;
    assert_int_equal (account->active_mask, 1u << LIMIT_WC);
    assert_int_equal (account->active[LIMIT_SOFT][LIMIT_WC], 7200);
    const struct policy_limits *class = &cred (&l, CRED_CLASS, "c")->limits;
    assert_int_equal (class->active[LIMIT_SOFT][LIMIT_PE], 3000000);
    assert_true (class->active[LIMIT_HARD][LIMIT_PE] == LIMIT_UNLIMITED);
    assert_int_equal (cred (&l, CRED_QOS, "q")->limits.active[LIMIT_HARD][LIMIT_MEM], 1024);
    assert_int_equal (cred (&l, CRED_QOS, "q")->limits.active[LIMIT_SOFT][LIMIT_JOB], 4);
    assert_int_equal (cred (&l, CRED_QOS, "q")->limits.active[LIMIT_HARD][LIMIT_JOB], 8);
    assert_true (noted (
        &l,
        "line 4: MAXPROCPERGROUPCOUNT: has no effect, as in Maui: MAXPROCPERGROUPPOLICY is not ON"));
    assert_true (noted (&l, "line 5: MAXPSPERACCOUNTPOLICY: has no effect: no COUNT"));
    assert_true (noted (
        &l,
        "line 17: MAXPROCPERUSERCOUNT: has no effect, as in Maui: MAXPROCPERUSERPOLICY is OFF"));
    release (&l);
    refused ("MAXJOBPERUSERPOLICY PERHAPS\n", "'PERHAPS' is not ON or OFF");
    refused ("MAXJOBPERUSERPOLICY ON\nMAXJOBPERUSERCOUNT many\n", "line 2: MAXJOBPERUSERCOUNT");
    refused ("MAXJOBPERUSERPOLICY ON\nMAXJOBPERUSERCOUNT 2\nSMAXJOBPERUSERCOUNT 4\n",
             "line 2: MAXJOBPERUSERCOUNT: the soft limit of '4,2' is looser");
}

/* A bare number is seconds, and that is said: somebody may have thought of minutes. */
static void test_qttarget_unit (void **state)
{
    (void)state;
    LOAD (
        l,
        "QOSCFG[a] QTTARGET=30\nQOSCFG[b] QTTARGET=30:00\nQOSQTTARGET[c] 1800\nQOSCFG[d] QTTARGET=0\n");
    assert_true (cred (&l, CRED_QOS, "a")->qos->qttarget_min == .5);
    assert_true (cred (&l, CRED_QOS, "b")->qos->qttarget_min == 30);
    assert_true (cred (&l, CRED_QOS, "c")->qos->qttarget_min == 30);
    assert_true (
        noted (&l, "line 1: QOSCFG[a] QTTARGET: 30 is 30 seconds; as many minutes are 30:00"));
    assert_true (noted (&l, "line 3: QOSQTTARGET[c]"));
    assert_int_equal (conf_note_count (l.conf), 2);
    release (&l);
}

/* MEM:EXTENDEDVIOLATION:CANCEL:00:05:00 and its likes; the full name counts more, wherever it stands. */
static void test_resource_limits (void **state)
{
    (void)state;
    LOAD (l, "RESOURCELIMITPOLICY MEM:EXTENDEDVIOLATION:CANCEL:00:05:00 SWAP:ALWAYS:CANCEL\n"
             "RESLIMITPOLICY mem:always:requeue procs:always:notify\n");
    const struct policy_resource_limit *r = l.policy->resource_limit;
    assert_int_equal (r[RESOURCE_LIMIT_MEM].action, LIMIT_CANCEL);
    assert_int_equal (r[RESOURCE_LIMIT_MEM].after, 300 * US_PER_S);
    assert_int_equal (r[RESOURCE_LIMIT_PROC].action, LIMIT_NOTIFY);
    assert_int_equal (r[RESOURCE_LIMIT_PROC].after, 0);
    assert_true (noted (&l, "line 1: RESOURCELIMITPOLICY: SWAP has no effect"));
    release (&l);
    refused ("RESOURCELIMITPOLICY MEM\n", "wanted RESOURCE:POLICY:ACTION");
    refused ("RESOURCELIMITPOLICY MEM:ALWAYS\n", "its action is CANCEL");
    refused ("RESOURCELIMITPOLICY MEM:EXTENDEDVIOLATION:CANCEL:soon\n",
             "line 1: RESOURCELIMITPOLICY");
    refused ("RESLIMITPOLICY GPU:ALWAYS:CANCEL\n", "'GPU' is no resource");
}

/* The manual's own: Monday 8:00 to Friday 17:00 at a stretch; hours without a day are hours of each day. */
static void test_weeks (void **state)
{
    (void)state;
    LOAD (
        l,
        "SRCFG[work] PERIOD=WEEK STARTTIME=1:08:00:00 ENDTIME=5:17:00:00 TIMELIMIT=1:00:00* HOSTLIST=a, b\n"
        "SRCFG[hours] PERIOD=WEEK DAYS=MON STARTTIME=9:00:00 ENDTIME=12:00:00 TASKCOUNT=2 USERLIST = x,y\n"
        "SRPERIOD[0] WEEK\nSRSTARTTIME[0] 6:00:00:00\nSRTASKCOUNT[0] 1\nSRIDLETIME[0] 0:10:00\n"
        "SRCFG[shut] HOSTLIST=ALL PERIOD=INFINITY\n"
        "SRCFG[early] HOSTLIST=a STARTTIME=8:00 ENDTIME=18:00\n");
    const struct policy_standing *s = l.policy->standing;
    assert_int_equal (l.policy->standing_count, 5);
    assert_int_equal (s[0].period, STANDING_WEEK);
    assert_int_equal (s[0].week_start_s, 86400 + 8 * 3600);
    assert_int_equal (s[0].week_end_s, 5 * 86400 + 17 * 3600);
    assert_string_equal (s[0].hosts, "a,b");
    assert_int_equal (s[0].acl_count, 1);
    assert_int_equal (s[0].acl[0].value, 3600 * US_PER_S);
    assert_true (s[0].acl[0].required);
    assert_int_equal (s[1].period, STANDING_DAY);
    assert_int_equal (s[1].depth, 14);
    assert_int_equal (s[1].start_s, 9 * 3600);
    assert_int_equal (s[1].days, 2);
    assert_int_equal (s[1].acl_count, 2);
    assert_true (
        noted (&l, "SRCFG[hours]: STARTTIME and ENDTIME without a day are hours of each of DAYS"));
    assert_int_equal (s[2].week_start_s, 6 * 86400);
    assert_int_equal (s[2].week_end_s, 7 * 86400);
    assert_int_equal (s[2].idle, 600 * US_PER_S);
    assert_true (
        noted (&l, "SRCFG[shut]: keeps every node from every job, always: is that meant?"));
    assert_true (noted (&l, "SRCFG[early] STARTTIME: 8:00 is 8 minutes after midnight; "
                            "8 o'clock is 8:00:00"));
    release (&l);
}

/* Maui's configuration of the sample outputs, as it stands. */
static void test_demo (void **state)
{
    (void)state;
    const char *shared = getenv ("NUI_SHARED") ? getenv ("NUI_SHARED") : SHARED_DEFAULT;
    char path[4096];
    snprintf (path, sizeof path, "%s/reference/maui-output/maui.cfg.demo.txt", shared);
    if (access (path, R_OK) != 0) {
        print_message ("%s is not here: skipped\n", path);
        skip ();
    }
    struct loaded l = {0};
    cred_names_init (&l.names);
    if (policy_conf_load (path, &l.names, &l.policy, &l.conf, &l.err))
        fail_msg ("%s", l.err.text);
    assert_true (l.policy->sub_weight[PRIO_XFACTOR] == 10);
    assert_int_equal (cred (&l, CRED_USER, "alice")->limits.active[LIMIT_HARD][LIMIT_JOB], 3);
    assert_true (cred (&l, CRED_USER, "bob")->fs_target == 20);
    assert_int_equal (l.policy->bucket[0].depth, 1);
    assert_true (noted (&l, "line 1: SERVERHOST"));
    assert_false (noted (&l, "LOGLEVEL")); /* nui-local has one */
    assert_false (noted (&l, "QFLAGS: PREEMPTOR"));
    for (uint32_t i = 0; i < conf_note_count (l.conf); i++)
        print_message ("%s\n", conf_note (l.conf, i));
    release (&l);
}

/* A reload on the same names: numbers stay, what was taken away is gone; a bad file changes
 * nothing. */
static void test_reload (void **state)
{
    (void)state;
    char path[] = "/tmp/nui-test-XXXXXX";
    int fd = mkstemp (path);
    assert_true (fd >= 0);
    static const char one[] = "USERCFG[u] MAXJOB=3\n", two[] = "USERCFG[w] MAXJOB=4\n",
                      bad[] = "USERCFG[w] MAXJOB=5\nFSDEPTH x\n";
    struct cred_names names;
    struct err err;
    cred_names_init (&names);
    struct policy *first = NULL, *second = NULL;
    assert_int_equal (pwrite (fd, one, strlen (one), 0), strlen (one));
    assert_int_equal (policy_conf_load (path, &names, &first, NULL, &err), 0);
    uint32_t u = strtab_find (names.tab[CRED_USER], "u");
    assert_int_equal (policy_cred (first, CRED_USER, u)->limits.active[LIMIT_HARD][LIMIT_JOB], 3);
    assert_int_equal (pwrite (fd, bad, strlen (bad), 0), strlen (bad));
    assert_int_not_equal (policy_conf_load (path, &names, &second, NULL, &err), 0);
    assert_null (second);
    assert_int_equal (ftruncate (fd, 0), 0);
    assert_int_equal (pwrite (fd, two, strlen (two), 0), strlen (two));
    assert_int_equal (policy_conf_load (path, &names, &second, NULL, &err), 0);
    assert_int_equal (strtab_find (names.tab[CRED_USER], "u"), u);
    assert_int_equal (policy_cred (second, CRED_USER, u)->limits.active_mask, 0);
    uint32_t w = strtab_find (names.tab[CRED_USER], "w");
    assert_int_equal (policy_cred (second, CRED_USER, w)->limits.active[LIMIT_HARD][LIMIT_JOB], 4);
    assert_int_equal (policy_conf_load ("/nonexistent", &names, &second, NULL, &err),
                      ERR_NOT_FOUND);
    policy_destroy (first);
    policy_destroy (second);
    cred_names_free (&names);
    close (fd);
    unlink (path);
}

/* A site's whole file: what is not policy is passed over, what nobody knows is not. */
static void test_site_file (void **state)
{
    (void)state;
    char path[] = "/tmp/nui-test-XXXXXX";
    int fd = mkstemp (path);
    assert_true (fd >= 0);
    static const char site[] = "SITENAME alpha\nGRID maui\nMETA localhost:1\nBANK localhost:2\n"
                               "NODECFG[a[01-04]] PROCS=2\nRMCFG[base] TYPE=EMBEDDED\n"
                               "PEERCAP[m] HOLDS=3\nXFACTORWEIGHT 3\nBACKFILLPOLICY PREEMPT\n"
                               "BFPRIORITYPOLICY HWDURATION\n";
    struct cred_names names;
    struct err err;
    struct policy *policy = NULL;
    struct conf *conf = NULL;
    cred_names_init (&names);
    assert_int_equal (pwrite (fd, site, strlen (site), 0), strlen (site));
    if (policy_conf_load (path, &names, &policy, &conf, &err))
        fail_msg ("%s", err.text);
    assert_true (policy->sub_weight[PRIO_XFACTOR] == 3);
    assert_int_equal (policy->backfill_policy, BACKFILL_PREEMPT);
    assert_int_equal (policy->backfill_priority, BFPRIORITY_HWDURATION);
    assert_int_equal (conf_note_count (conf), 0);
    policy_destroy (policy);
    conf_destroy (conf);
    assert_int_equal (pwrite (fd, "SITENAMX ", 9, 0), 9);
    assert_int_not_equal (policy_conf_load (path, &names, &policy, NULL, &err), 0);
    assert_non_null (strstr (err.text, "unknown parameter SITENAMX"));
    cred_names_free (&names);
    close (fd);
    unlink (path);
}

/* The shipped example of a short pool and a downtime. */
static void test_shortpool_sample (void **state)
{
    struct cred_names names;
    struct policy *policy = NULL;
    struct err err = {0};

    (void)state;
    cred_names_init (&names);
    if (policy_conf_load (NUI_SOURCE_DIR "/deploy/samples/shortpool.cfg", &names, &policy, NULL,
                          &err) != 0)
        fail_msg ("%s", err.text);
    assert_int_equal (policy->standing_count, 2);
    assert_int_equal (policy->standing[0].busy, 7200 * US_PER_S);
    assert_int_equal (policy->standing[1].acl_count, 0);
    assert_int_equal (policy->standing[1].week_start_s, 2 * 86400 + 2 * 3600);
    policy_destroy (policy);
    cred_names_free (&names);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_figure_5),
        cmocka_unit_test (test_book_examples),
        cmocka_unit_test (test_shortpool_sample),
        cmocka_unit_test (test_weights_of_both_spellings),
        cmocka_unit_test (test_limits),
        cmocka_unit_test (test_qos_and_the_rest),
        cmocka_unit_test (test_empty),
        cmocka_unit_test (test_refused),
        cmocka_unit_test (test_older_spellings),
        cmocka_unit_test (test_resource_limits),
        cmocka_unit_test (test_older_limits),
        cmocka_unit_test (test_qttarget_unit),
        cmocka_unit_test (test_weeks),
        cmocka_unit_test (test_demo),
        cmocka_unit_test (test_reload),
        cmocka_unit_test (test_site_file),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
