/* policyconf: the tables of the policy's parameters, one row each, and the readers of those that
 * have a form of their own. settings.c, policyconf_load.c and the laboratory call it. A
 * parameter is told once, here: showconfig, changeparam and maui.cfg(5) come from the same row.
 * The policy in force is never touched. */
#include "local/conf/policyconf.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "local/conf/policyconf_i.h"
#include "local/core/standing.h"

/* --- words, in the order of the values they stand for ------------------------------------- */

static const char *const accrual_words[] = {"QUEUEPOLICY", "FULLPOLICY", "ALWAYS", NULL};
static const int accrual_values[] = {ACCRUAL_QUEUEPOLICY, ACCRUAL_FULLPOLICY, ACCRUAL_ALWAYS};

static const char *const reservation_words[] = {"CURRENTHIGHEST", "HIGHEST", "NEVER", NULL};
static const int reservation_values[] = {RESERVATION_CURRENTHIGHEST, RESERVATION_HIGHEST,
                                         RESERVATION_NEVER};

static const char *const threshold_words[] = {"NONE", "BYPASS", "QUEUETIME", "XFACTOR", NULL};
static const int threshold_values[] = {THRESHOLD_NONE, THRESHOLD_BYPASS, THRESHOLD_QUEUETIME,
                                       THRESHOLD_XFACTOR};

static const char *const binding_words[] = {"EARLY", "LATE", NULL};
static const int binding_values[] = {BINDING_EARLY, BINDING_LATE};

static const char *const backfill_words[] = {
    "FIRSTFIT", "BESTFIT", "GREEDY", "PREEMPT", "NONE", "ON", "OFF", "BESTTIMEFIT", "LAZY", NULL};
static const int backfill_values[] = {BACKFILL_FIRSTFIT, BACKFILL_BESTFIT, BACKFILL_GREEDY,
                                      BACKFILL_PREEMPT,  BACKFILL_NONE,    BACKFILL_FIRSTFIT,
                                      BACKFILL_NONE,     BACKFILL_BESTFIT, BACKFILL_FIRSTFIT};
static const char *const backfill_notes[] = {
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    "means FIRSTFIT here",
    "means NONE here",
    "means BESTFIT here, with BACKFILLMETRIC for what is best",
    "means FIRSTFIT here: each pass looks at every job"};

static const char *const bfpriority_words[] = {"NONE", "RANDOM", "DURATION", "HWDURATION", NULL};
static const int bfpriority_values[] = {BFPRIORITY_NONE, BFPRIORITY_RANDOM, BFPRIORITY_DURATION,
                                        BFPRIORITY_HWDURATION};

static const char *const metric_words[] = {"PROCS", "PROCSECONDS", "SECONDS",    "NODES",
                                           "PE",    "PESECONDS",   "PROCESSORS", NULL};
static const int metric_values[] = {BFMETRIC_PROCS, BFMETRIC_PROCSECONDS, BFMETRIC_SECONDS,
                                    BFMETRIC_NODES, BFMETRIC_PE,          BFMETRIC_PESECONDS,
                                    BFMETRIC_PROCS};

static const char *const window_words[] = {"WIDESTFIRST", "LONGESTFIRST", NULL};
static const int window_values[] = {BFWINDOW_WIDESTFIRST, BFWINDOW_LONGESTFIRST};

static const char *const node_words[] = {
    "LASTAVAILABLE", "FIRSTAVAILABLE", "MINRESOURCE", "CPULOAD",     "PRIORITY", "FASTEST",
    "CONTIGUOUS",    "MAXBALANCE",     "LOCAL",       "MACHINEPRIO", NULL};
static const int node_values[] = {
    NODEALLOC_LASTAVAILABLE, NODEALLOC_FIRSTAVAILABLE, NODEALLOC_MINRESOURCE, NODEALLOC_CPULOAD,
    NODEALLOC_PRIORITY,      NODEALLOC_FASTEST,        NODEALLOC_CONTIGUOUS,  NODEALLOC_MAXBALANCE,
    NODEALLOC_LOCAL,         NODEALLOC_PRIORITY};

static const char *const preempt_words[] = {"REQUEUE", "SUSPEND", "CHECKPOINT", "CANCEL", NULL};
static const int preempt_values[] = {PREEMPT_REQUEUE, PREEMPT_SUSPEND, PREEMPT_CHECKPOINT,
                                     PREEMPT_CANCEL};

static const char *const violation_words[] = {"CANCEL", "PREEMPT", NULL};
static const int violation_values[] = {WCVIOLATION_CANCEL, WCVIOLATION_PREEMPT};

static const char *const match_words[] = {"NONE", "EXACTNODE", "EXACTPROC", NULL};
static const int match_values[] = {NODEMATCH_NONE, NODEMATCH_EXACTNODE, NODEMATCH_EXACTPROC};

static const char *const distribution_words[] = {"DEFAULT", "PACK",   "ROUNDROBIN",
                                                 "LOCAL",   "ARBGEO", NULL};
static const int distribution_values[] = {TASKDIST_DEFAULT, TASKDIST_PACK, TASKDIST_ROUNDROBIN,
                                          TASKDIST_LOCAL, TASKDIST_ARBGEO};

static const char *const load_words[] = {"ADJUSTSTATE", "ADJUSTPROCS", NULL};
static const int load_values[] = {NODELOAD_ADJUSTSTATE, NODELOAD_ADJUSTPROCS};

static_assert (sizeof (enum backfill_policy) == sizeof (int), "a word is kept as an int");

/* --- parameters with a form of their own --------------------------------------------------- */

static int set_fs_policy (void *target, const struct conf_value *value, struct err *err)
{
    static const struct {
        const char *word;
        enum fs_policy policy;
    } known[] = {
        {"NONE", FS_NONE},
        {"DEDICATEDPS", FS_DEDICATEDPS},
        {"PSDEDICATED", FS_DEDICATEDPS}, /* as the core-algorithms paper writes it */
        {"DEDICATEDPES", FS_DEDICATEDPES},
        {"PEDEDICATED", FS_DEDICATEDPES},
        {"UTILIZEDPS", FS_UTILIZEDPS},
        {"PSUTILIZED", FS_UTILIZEDPS},
    };
    struct policy *p = ((struct policy_file *)target)->policy;
    size_t len = strlen (value->text);
    bool ratio = len && value->text[len - 1] == '%';
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen (known[i].word) == len - ratio &&
            strncasecmp (known[i].word, value->text, len - ratio) == 0) {
            p->fs_policy = known[i].policy;
            p->fs_ratio = ratio;
            return 0;
        }
    }
    return err_set (err, ERR_INVALID,
                    "'%.60s' is not NONE, DEDICATEDPS, DEDICATEDPES or UTILIZEDPS (or one of these "
                    "with %%)",
                    value->text);
}

static int set_threshold (void *target, const struct conf_value *value, struct err *err)
{
    struct policy_file *f = target;
    (void)err;
    f->threshold_text = value->text;
    f->threshold_line = value->line;
    return 0;
}

static int bucket_of (const struct conf_value *value, uint64_t *bucket_out, struct err *err)
{
    return uint_parse (value->index ? value->index : "0", "the bucket", 0, POLICY_BUCKETS_MAX - 1,
                       bucket_out, err);
}

static int set_depth (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = ((struct policy_file *)target)->policy;
    uint64_t bucket, depth;
    int rc = bucket_of (value, &bucket, err);
    if (!rc)
        rc = uint_parse (value->text, "the depth", 0, UINT32_MAX, &depth, err);
    if (!rc)
        policy_bucket_set (p, (uint32_t)bucket, (uint32_t)depth, p->bucket[bucket].qos,
                           p->bucket[bucket].qos_count);
    return rc;
}

static int set_depth_qos (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = ((struct policy_file *)target)->policy;
    uint64_t bucket;
    uint32_t *qos = NULL, count = 0;
    int rc = bucket_of (value, &bucket, err);
    if (!rc && strcasecmp (value->text, "ALL") != 0 && strcasecmp (value->text, "[ALL]") != 0)
        rc = policy_qos_list (p, value->text, &qos, &count, err);
    if (!rc)
        policy_bucket_set (p, (uint32_t)bucket,
                           p->bucket[bucket].used ? p->bucket[bucket].depth : 1, qos, count);
    return rc;
}

/* --- the tables --------------------------------------------------------------------------- */

/* What follows is every parameter of a policy, once: what it is called, takes, is without the file, and does. Those with
 * a field of struct policy first. An index [0] is the parameter itself (partitions_check). */
#define AT(field) offsetof (struct policy, field)
#define ROW(key, form, field, ...)                                                                 \
    {                                                                                              \
        .name = key, .type = form, .offset = AT (field), .flags = CONF_F_INDEX, __VA_ARGS__        \
    }
#define GUARD(key, form, field, ...)                                                               \
    {                                                                                              \
        .name = key, .type = form, .offset = AT (field), .flags = CONF_F_INDEX | CONF_F_GUARDS,    \
        __VA_ARGS__                                                                                \
    }
#define GUARD_ALIAS(key, form, field, ...)                                                         \
    {                                                                                              \
        .name = key, .type = form, .offset = AT (field),                                           \
        .flags = CONF_F_INDEX | CONF_F_GUARDS | CONF_F_ALIAS, __VA_ARGS__                          \
    }
#define ALIAS(key, form, field, ...)                                                               \
    {                                                                                              \
        .name = key, .type = form, .offset = AT (field), .flags = CONF_F_INDEX | CONF_F_ALIAS,     \
        __VA_ARGS__                                                                                \
    }
#define WEIGHTS(row, key, what, weights, caps, number)                                             \
    row (key "WEIGHT", CONF_REAL, weights[number], .help = "weight of " what),                     \
        row (key "CAP", CONF_REAL, caps[number], .help = "most that counts of it; 0: any")
#define COMPONENT(key, number, what)                                                               \
    WEIGHTS (ROW, key, "the component: " what, component_weight, component_cap, number)
#define COMPONENT_ALIAS(key, number)                                                               \
    WEIGHTS (ALIAS, key, "the same", component_weight, component_cap, number)
#define SUB(key, number, what) WEIGHTS (ROW, key, what, sub_weight, sub_cap, number)
#define SUB_ALIAS(key, number) WEIGHTS (ALIAS, key, "the same", sub_weight, sub_cap, number)
#define WORDS(list) .words = list##_words, .values = list##_values
#define BETWEEN(least, most) .min = least, .max = most
#define LASTS(least) .min = least, .max = 366 * 86400 * US_PER_S

const struct conf_param policy_params[] = {
    ROW ("REJECTNEGPRIOJOBS", CONF_BOOL, reject_negative,
         .help = "jobs of negative priority do not run"),
    ROW ("ENABLENEGJOBPRIORITY", CONF_BOOL, enable_negative,
         .help = "negative priorities stay as they are"),
    ROW ("JOBPRIOACCRUALPOLICY", CONF_WORD, accrual, WORDS (accrual),
         .help = "since when queue time counts"),
    ROW ("XFMINWCLIMIT", CONF_SECONDS, xf_min_wclimit_s, .min = -1,
         .help = "least limit in the formula of XFACTOR; -1: none"),
    ROW ("NODEALLOCATIONPOLICY", CONF_WORD, node_allocation, WORDS (node),
         .help = "which of the nodes that would do"),
    ROW ("NODEACCESSPOLICY", CONF_WORD, node_access, WORDS (policy_access),
         .help = "who may share a node"),
    ROW ("JOBNODEMATCHPOLICY", CONF_WORD, node_match, WORDS (match),
         .help = "whether nodes and processors must be exactly as many as asked for"),
    ROW ("TASKDISTRIBUTIONPOLICY", CONF_WORD, task_distribution, WORDS (distribution),
         .help = "how tasks go on the nodes"),
    ROW ("NODELOADPOLICY", CONF_WORD, node_load_policy, WORDS (load),
         .help = "what becomes of a node above NODEMAXLOAD"),
    ROW ("NODEDOWNSTATEDELAYTIME", CONF_DURATION, node_down_delay, LASTS (0),
         .help = "how long a node that is down is expected to stay so; 0: until it is back"),
    ALIAS ("DOWNNODEDELAYTIME", CONF_DURATION, node_down_delay, LASTS (0)),
    ROW ("USEMACHINESPEED", CONF_BOOL, use_machine_speed,
         .help = "limits are for nodes of speed 1"),
    ROW ("FSINTERVAL", CONF_DURATION, fs_interval, LASTS (US_PER_S),
         .help = "length of a fairshare window"),
    ROW ("FSDEPTH", CONF_U32, fs_depth, BETWEEN (1, FS_DEPTH_MAX), .help = "fairshare windows"),
    ROW ("FSDECAY", CONF_REAL, fs_decay, BETWEEN (0, 1000000),
         .help = "weight of each window, of the one after it"),
    {.name = "NODESETDELAY",
     .type = CONF_DURATION,
     .offset = AT (nodeset_delay),
     .max = TIME_US_MAX,
     .flags = CONF_F_INDEX | CONF_F_INFINITY,
     .help = "how long a job waits for a node set; 0: best effort"},
    GUARD ("SYSTEMMAXPROCPERJOB", CONF_INT, system_max_proc_per_job, BETWEEN (-1, INT64_MAX),
           .help = "most processors of a job; -1: any"),
    GUARD_ALIAS ("SYSTEMMAXJOBPROC", CONF_INT, system_max_proc_per_job, BETWEEN (-1, INT64_MAX)),
    GUARD ("SYSTEMMAXJOBWALLTIME", CONF_SECONDS, system_max_wall_s_per_job, .min = -1,
           .help = "longest limit of a job; -1: any"),
    GUARD ("SYSTEMMAXPROCSECONDPERJOB", CONF_INT, system_max_ps_per_job, BETWEEN (-1, INT64_MAX),
           .help = "most processor-seconds of a job; -1: any"),
    GUARD_ALIAS ("SYSTEMMAXJOBPROCSECOND", CONF_INT, system_max_ps_per_job,
                 BETWEEN (-1, INT64_MAX)),
    GUARD_ALIAS ("SYSTEMMAXJOBPS", CONF_INT, system_max_ps_per_job, BETWEEN (-1, INT64_MAX)),
    ROW ("SYSTEMDEFAULTJOBWALLTIME", CONF_SECONDS, default_wall_s, .min = 1,
         .help = "limit of a job that says none"),
    ROW ("RMPOLLINTERVAL", CONF_DURATION, poll_interval, LASTS (US_PER_S),
         .help = "longest time between two passes"),
    ROW ("JOBAGGREGATIONTIME", CONF_DURATION, job_aggregation_time, LASTS (0),
         .help = "least time between a job's arrival and the pass that it causes"),
    ROW ("DEFERTIME", CONF_DURATION, defer_time, LASTS (0),
         .help = "how long a job that cannot be started is deferred; 0: not"),
    ROW ("DEFERCOUNT", CONF_U32, defer_count, BETWEEN (0, UINT32_MAX),
         .help = "deferrals before a hold"),
    ROW ("DEFERSTARTCOUNT", CONF_U32, defer_start_count, BETWEEN (0, UINT32_MAX),
         .help = "failed starts before a deferral"),
    {.name = "JOBMAXOVERRUN",
     .type = CONF_DURATION,
     .offset = AT (max_overrun),
     .max = TIME_US_MAX,
     .flags = CONF_F_INDEX | CONF_F_INFINITY,
     .help = "how far a job may run past its limit"},
    ROW ("WCVIOLATIONACTION", CONF_WORD, wcviolation_action, WORDS (violation),
         .help = "what becomes of a job past its limit"),
    ROW ("PREEMPTPOLICY", CONF_WORD, preempt_policy, WORDS (preempt),
         .help = "how a job is made to give way"),
    ALIAS ("PREEMPTIONPOLICY", CONF_WORD, preempt_policy, WORDS (preempt)),
    ROW ("BACKFILLPOLICY", CONF_WORD, backfill_policy, WORDS (backfill), .notes = backfill_notes,
         .help = "how jobs are started past reservations"),
    ROW ("BACKFILLMETRIC", CONF_WORD, backfill_metric, WORDS (metric),
         .help = "what makes a job large to backfill"),
    ALIAS ("SCHEDULINGCRITERIA", CONF_WORD, backfill_metric, WORDS (metric)),
    ROW ("BACKFILLWINDOWORDER", CONF_WORD, backfill_window_order, WORDS (window),
         .help = "which window is filled first"),
    ROW ("BFPRIORITYPOLICY", CONF_WORD, backfill_priority, WORDS (bfpriority),
         .help = "order of jobs under BACKFILLPOLICY PREEMPT"),
    ROW ("BACKFILLDEPTH", CONF_U32, backfill_depth, BETWEEN (0, UINT32_MAX),
         .help = "jobs looked at by backfill; 0: all"),
    ROW ("BACKFILLMAXSCHEDULES", CONF_U32, backfill_max_schedules, BETWEEN (1, UINT32_MAX),
         .help = "schedules compared by GREEDY"),
    ROW ("BFCHUNKSIZE", CONF_U32, bf_chunk_procs, BETWEEN (0, UINT32_MAX),
         .help = "smaller jobs wait BFCHUNKDURATION for room that comes free; 0: none do"),
    ROW ("BFCHUNKDURATION", CONF_DURATION, bf_chunk_duration, LASTS (0),
         .help = "how long room that comes free is kept for jobs of BFCHUNKSIZE"),
    ROW ("RESERVATIONPOLICY", CONF_WORD, reservation_policy, WORDS (reservation),
         .help = "which jobs keep a reservation"),
    ROW ("RESERVATIONTHRESHOLDTYPE", CONF_WORD, reservation_threshold, WORDS (threshold),
         .help = "what a job must have suffered to be reserved for"),
    ROW ("RESERVATIONRETRYTIME", CONF_DURATION, reservation_retry, LASTS (0),
         .help = "how long a job whose start failed keeps its nodes"),
    ROW ("STAGEINGRACE", CONF_DURATION, data_grace, LASTS (0),
         .help = "how long nodes are kept for files that were to be there"),
    ROW ("RESERVATIONBINDING", CONF_WORD, reservation_binding, WORDS (binding),
         .help = "whether a reservation's nodes are chosen at once or at its start"),
    /* priority: the manual's names, then the papers' */
    COMPONENT ("CRED", PRIO_CRED, "credentials"),
    SUB ("USER", PRIO_USER, "the user's PRIORITY"),
    SUB ("GROUP", PRIO_GROUP, "the group's PRIORITY"),
    SUB ("ACCOUNT", PRIO_ACCOUNT, "the account's PRIORITY"),
    SUB ("CLASS", PRIO_CLASS, "the class's PRIORITY"),
    SUB ("QOS", PRIO_QOS, "the QoS's PRIORITY"),
    COMPONENT ("FS", PRIO_FS, "fairshare"),
    SUB ("FSUSER", PRIO_FSUSER, "the user's distance from FSTARGET"),
    SUB ("FSGROUP", PRIO_FSGROUP, "the group's distance from FSTARGET"),
    SUB ("FSACCOUNT", PRIO_FSACCOUNT, "the account's distance from FSTARGET"),
    SUB ("FSCLASS", PRIO_FSCLASS, "the class's distance from FSTARGET"),
    SUB ("FSQOS", PRIO_FSQOS, "the QoS's distance from FSTARGET"),
    COMPONENT ("RES", PRIO_RES, "what the job asks for"),
    SUB ("NODE", PRIO_NODE, "nodes"),
    SUB ("PROC", PRIO_PROC, "processors"),
    SUB ("MEM", PRIO_MEM, "memory in MB"),
    SUB ("SWAP", PRIO_SWAP, "swap in MB"),
    SUB ("DISK", PRIO_DISK, "disk in MB"),
    SUB ("PS", PRIO_PS, "processor-seconds"),
    SUB ("PE", PRIO_PE, "processor equivalents"),
    SUB ("WALLTIME", PRIO_WALLTIME, "seconds of the limit"),
    SUB ("UPROC", PRIO_UPROC, "processors that the user's jobs run on"),
    SUB ("UJOB", PRIO_UJOB, "jobs that the user runs"),
    COMPONENT ("SERV", PRIO_SERV, "service"),
    SUB ("QUEUETIME", PRIO_QUEUETIME, "minutes in the queue"),
    SUB ("XFACTOR", PRIO_XFACTOR, "the expansion factor"),
    SUB ("BYPASS", PRIO_BYPASS, "how often backfill passed the job"),
    SUB ("SPVIOLATION", PRIO_SPVIOLATION, "1 while the job is over a soft limit"),
    COMPONENT ("TARG", PRIO_TARG, "targets"),
    SUB ("TARGETQUEUETIME", PRIO_TARGETQUEUETIME, "nearness to the QoS's QTTARGET"),
    SUB ("TARGETXFACTOR", PRIO_TARGETXFACTOR, "nearness to the QoS's XFTARGET"),
    COMPONENT ("USAGE", PRIO_USAGE, "of running jobs"),
    SUB ("CONSUMED", PRIO_CONSUMED, "processor-seconds used"),
    SUB ("REMAINING", PRIO_REMAINING, "processor-seconds left"),
    SUB ("PERCENT", PRIO_PERCENT, "percent of the limit used"),
    SUB ("EXECUTIONTIME", PRIO_EXECUTIONTIME, "seconds run"),
    COMPONENT_ALIAS ("DIRECTSPEC", PRIO_CRED),
    COMPONENT_ALIAS ("FAIRSHARE", PRIO_FS),
    COMPONENT_ALIAS ("RESOURCE", PRIO_RES),
    COMPONENT_ALIAS ("SERVICE", PRIO_SERV),
    COMPONENT_ALIAS ("TARGET", PRIO_TARG),
    SUB_ALIAS ("USERFS", PRIO_FSUSER),
    SUB_ALIAS ("GROUPFS", PRIO_FSGROUP),
    SUB_ALIAS ("ACCOUNTFS", PRIO_FSACCOUNT),
    SUB_ALIAS ("CLASSFS", PRIO_FSCLASS),
    SUB_ALIAS ("QOSFS", PRIO_FSQOS),
    SUB_ALIAS ("MEMORY", PRIO_MEM),
    SUB_ALIAS ("UFS", PRIO_FSUSER),
    SUB_ALIAS ("GFS", PRIO_FSGROUP),
    SUB_ALIAS ("AFS", PRIO_FSACCOUNT),
    SUB_ALIAS ("CFS", PRIO_FSCLASS),
    SUB_ALIAS ("QFS", PRIO_FSQOS),
    SUB_ALIAS ("XF", PRIO_XFACTOR),
    SUB_ALIAS ("USAGECONSUMED", PRIO_CONSUMED),
    SUB_ALIAS ("USAGEREMAINING", PRIO_REMAINING),
    SUB_ALIAS ("USAGEPERCENT", PRIO_PERCENT),
    SUB_ALIAS ("USAGEEXECUTIONTIME", PRIO_EXECUTIONTIME),
    {0},
};
#undef AT

#define CALL(key, function, without, what)                                                         \
    {                                                                                              \
        .name = key, .type = CONF_CALL, .set = function, .flags = CONF_F_INDEX,                    \
        .otherwise = without, .help = what                                                         \
    }
#define PART(key, function, what)                                                                  \
    {                                                                                              \
        .name = key, .type = CONF_CALL, .set = function, .flags = CONF_F_INDEX | CONF_F_ADDS,      \
        .help = what                                                                               \
    }
#define STANDING(key)                                                                              \
    {                                                                                              \
        .name = "SR" key, .type = CONF_CALL, .set = policy_set_standing,                           \
        .flags = CONF_F_INDEX | CONF_F_ADDS | CONF_F_GUARDS, .help = "SRCFG[x] " key               \
    }
#define QOS(key, attr) PART ("QOS" key, policy_set_qos_parameter, "QOSCFG[x] " attr)
#define RECORD(key, function, table, index, what)                                                  \
    {                                                                                              \
        .name = key, .type = CONF_RECORD, .record = function, .attrs = table, .flags = index,      \
        .help = what                                                                               \
    }

/* Those that are read into a policy_file: they have a form of their own, or are of several parts. */
const struct conf_param policy_file_params[] = {
    CALL ("FSPOLICY", set_fs_policy, "NONE",
          "what counts as usage; with %: relative to the target"),
    CALL ("RESERVATIONDEPTH", set_depth, "[0] 1", "reservations made ahead, by bucket of QoS"),
    CALL ("RESERVATIONQOSLIST", set_depth_qos, NULL, "QoS of a bucket"),
    CALL ("RESERVATIONTHRESHOLDVALUE", set_threshold, "0", "how much of RESERVATIONTHRESHOLDTYPE"),
    PART ("NODEAVAILABILITYPOLICY", policy_set_node_availability, "what counts as used of a node"),
    PART ("RESOURCELIMITPOLICY", policy_set_resource_limit,
          "what becomes of a job that uses more than it asked for"),
    PART ("RESLIMITPOLICY", policy_set_resource_limit, "the same"),
    CALL ("NODEMAXLOAD", policy_set_node_load, "0", "load from which a node is busy; 0: any"),
    CALL ("NODESETPOLICY", policy_set_nodeset, "NONE", "which node set a job is given"),
    CALL ("NODESETATTRIBUTE", policy_set_nodeset, NULL, "what makes nodes a set"),
    CALL ("NODESETLIST", policy_set_nodeset, NULL, "the sets to choose from"),
    CALL ("NODESETTOLERANCE", policy_set_nodeset, "0", "how far speeds of a set may differ"),
    CALL ("NODESETPRIORITYTYPE", policy_set_nodeset, NULL, "which set is best"),
    CALL ("NODESETPRIORITY", policy_set_nodeset, NULL, "the same"),
    RECORD ("USERCFG", policy_record_user, policy_user_attrs, CONF_F_TELLS, "a user"),
    RECORD ("GROUPCFG", policy_record_group, policy_user_attrs, CONF_F_TELLS, "a group"),
    RECORD ("ACCOUNTCFG", policy_record_account, policy_user_attrs, CONF_F_TELLS, "an account"),
    RECORD ("CLASSCFG", policy_record_class, policy_class_attrs, CONF_F_TELLS, "a class"),
    RECORD ("QOSCFG", policy_record_qos, policy_qos_attrs, CONF_F_TELLS, "a quality of service"),
    RECORD ("SYSCFG", policy_record_system, policy_system_attrs, CONF_F_INDEX | CONF_F_TELLS,
            "everybody"),
    RECORD ("PARCFG", policy_record_partition, policy_partition_attrs, CONF_F_TELLS, "a partition"),
    RECORD ("SRCFG", policy_record_standing, policy_standing_attrs,
            CONF_F_INDEX_REQUIRED | CONF_F_TELLS, "a standing reservation"),
    STANDING ("ACCESS"),
    STANDING ("ACCOUNTLIST"),
    STANDING ("CHARGEACCOUNT"),
    STANDING ("CHARGEUSER"),
    STANDING ("CLASSLIST"),
    STANDING ("DAYS"),
    STANDING ("DEPTH"),
    STANDING ("ENDTIME"),
    STANDING ("FEATURES"),
    STANDING ("FLAGS"),
    STANDING ("GROUPLIST"),
    STANDING ("HOSTLIST"),
    STANDING ("IDLETIME"),
    STANDING ("JOBATTRLIST"),
    STANDING ("MAXTIME"),
    STANDING ("NODEFEATURES"),
    STANDING ("OWNER"),
    STANDING ("PARTITION"),
    STANDING ("PERIOD"),
    STANDING ("PRIORITY"),
    STANDING ("PROCLIMIT"),
    STANDING ("QOSLIST"),
    STANDING ("RESOURCES"),
    STANDING ("STARTTIME"),
    STANDING ("TASKCOUNT"),
    STANDING ("TIMELIMIT"),
    STANDING ("TIMELOGIC"),
    STANDING ("TPN"),
    STANDING ("USERLIST"),
    STANDING ("WENDTIME"),
    STANDING ("WSTARTTIME"),
    QOS ("PRIORITY", "PRIORITY"),
    QOS ("QTWEIGHT", "QTWEIGHT"),
    QOS ("XFWEIGHT", "XFWEIGHT"),
    QOS ("QTTARGET", "QTTARGET"),
    QOS ("TARGETQT", "QTTARGET"),
    QOS ("XFTARGET", "XFTARGET"),
    QOS ("TARGETXF", "XFTARGET"),
    QOS ("FLAGS", "QFLAGS"),
    QOS ("FEATURES", "FEATURES"),
    {0},
};

static bool in_table (const struct conf_param *params, const char *key)
{
    for (; params->name; params++) {
        if (strcasecmp (params->name, key) == 0)
            return true;
    }
    return false;
}

/* Keys whose index is not a partition. */
static bool has_own_index (const char *key)
{
    size_t len = strlen (key);
    return (len > 3 && strcmp (key + len - 3, "CFG") == 0) || strncmp (key, "QOS", 3) == 0 ||
           (strncmp (key, "SR", 2) == 0 && in_table (policy_file_params, key)) ||
           strcmp (key, "RESERVATIONDEPTH") == 0 || strcmp (key, "RESERVATIONQOSLIST") == 0;
}

/* Is KEY said without a partition, too? */
static bool is_for_all (const struct conf *conf, const char *key)
{
    for (uint32_t i = 0; i < conf_entry_count (conf); i++) {
        const struct conf_entry *e = conf_entry (conf, i);
        if (strcasecmp (e->key, key) == 0 && (!e->index || strcmp (e->index, "0") == 0))
            return true;
    }
    return false;
}

/* KEY[0] is KEY; KEY[1] would be for one partition, which we do not have. */
static void partitions_check (struct conf *conf)
{
    struct err err;

    for (uint32_t i = 0; i < conf_entry_count (conf); i++) {
        const struct conf_entry *e = conf_entry (conf, i);
        if (!e->index || strcmp (e->index, "0") == 0 || has_own_index (e->key))
            continue;
        if (!in_table (policy_file_params, e->key) && !in_table (policy_params, e->key))
            continue;
        struct conf_value value = {.conf = conf, .key = e->key, .index = e->index, .line = e->line};
        if (conf_is_lenient (conf) && is_for_all (conf, e->key)) {
            conf_note_add (
                &value,
                "a value for one partition is not available: what is said for all of them counts");
            conf_drop (conf, i);
        } else if (conf_is_lenient (conf))
            conf_note_add (&value,
                           "a value for one partition is not available: taken for all of them");
        else
            conf_fault_add (
                conf,
                (err_set (&err, ERR_UNSUPPORTED,
                          "%s: line %u: %s[%.40s]: a value for one partition is not available",
                          conf_name (conf), e->line, e->key, e->index),
                 &err));
    }
}

/* RESERVATIONTHRESHOLDVALUE: a count, a duration or a factor, as the type says. */
static int threshold_read (const struct policy_file *f, struct policy *p, const char *name,
                           struct err *err)
{
    if (!f->threshold_text)
        return 0;
    int64_t ppm = 0;
    duration_us d = 0;
    int rc = p->reservation_threshold == THRESHOLD_QUEUETIME
                 ? duration_parse (f->threshold_text, &d, err)
                 : ppm_parse (f->threshold_text, "the threshold", &ppm, err);
    if (rc)
        return err_prefix (err, "%s: line %u: RESERVATIONTHRESHOLDVALUE", name, f->threshold_line);
    p->reservation_threshold_value = p->reservation_threshold == THRESHOLD_QUEUETIME
                                         ? (double)(d / US_PER_S)
                                         : (double)ppm / 1e6;
    return 0;
}

/* Of Maui's file: a target of 0 with FSPOLICY's % is no target; in a file of Nui's own it is refused. */
static void no_ratio_tell (struct conf *conf, struct policy *p)
{
    static const char *const keys[CRED_KINDS] = {[CRED_USER] = "USERCFG",
                                                 [CRED_GROUP] = "GROUPCFG",
                                                 [CRED_ACCOUNT] = "ACCOUNTCFG",
                                                 [CRED_CLASS] = "CLASSCFG",
                                                 [CRED_QOS] = "QOSCFG"};
    for (int k = 0; k < CRED_KINDS; k++)
        for (uint32_t i = 0; i < p->cred_count[k]; i++) {
            struct policy_cred *c = &p->cred[k][i];
            if (c->fs_target_type == FS_TARGET_NONE || c->fs_target > 0)
                continue;
            const char *name = cred_name (p->names, (enum cred_kind)k, c->id);
            const struct conf_entry *e = conf_entry_last (conf, keys[k], name, "FSTARGET");
            struct conf_value place = {.conf = conf,
                                       .key = keys[k],
                                       .index = name,
                                       .attr = "FSTARGET",
                                       .line = e ? e->line : 0};
            c->fs_target_type = FS_TARGET_NONE;
            c->set &= ~(unsigned)CRED_SET_FSTARGET;
            conf_note_add (
                &place,
                "0 is no target where FSPOLICY asks for a ratio: it neither helps nor hinders");
        }
}

int policy_conf_read (struct conf *conf, struct cred_names *names, struct policy **policy_out,
                      struct err *err)
{
    struct policy *p = policy_create (names);
    struct policy_file file = {.policy = p, .standing = policy_standing_begin (p, conf)};
    partitions_check (conf);
    struct err step[6] = {0};
    conf_table_read (conf, policy_file_params, &file, &step[0]);
    conf_table_read (conf, policy_older_params, &file, &step[4]);
    if (policy_older_take (&file, &step[5]) != 0)
        err_prefix (&step[5], "%s", conf_name (conf));
    conf_table_read (conf, policy_params, p, &step[1]);
    policy_standing_end (file.standing, conf_name (conf), &step[2]);
    threshold_read (&file, p, conf_name (conf), &step[3]);
    int rc = conf_faults_take (conf, step, sizeof step / sizeof step[0], err);
    if (rc == 0 && conf_is_lenient (conf) && p->fs_ratio)
        no_ratio_tell (conf, p);
    if (rc == 0 && policy_seal (p, err) != 0)
        rc = err_prefix (err, "%s", conf_name (conf));
    if (rc == 0)
        *policy_out = p;
    else
        policy_destroy (p);
    return rc;
}

int policy_conf_known (struct conf *conf, struct err *err)
{
    char nothing;
    conf_tell_unknown (conf);
    return conf_table_read (conf, policy_known_params, &nothing, err);
}
