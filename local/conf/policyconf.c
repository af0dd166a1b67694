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

static const char *const backfill_words[] = {"FIRSTFIT", "BESTFIT", "GREEDY",
                                             "PREEMPT",  "NONE",    NULL};
static const int backfill_values[] = {BACKFILL_FIRSTFIT, BACKFILL_BESTFIT, BACKFILL_GREEDY,
                                      BACKFILL_PREEMPT, BACKFILL_NONE};

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

static const char *const node_words[] = {"LASTAVAILABLE", "FIRSTAVAILABLE", "MINRESOURCE",
                                         "CPULOAD",       "PRIORITY",       "FASTEST",
                                         "CONTIGUOUS",    "MAXBALANCE",     "LOCAL",
                                         "MACHINEPRIO",   NULL};
static const int node_values[] = {NODEALLOC_LASTAVAILABLE, NODEALLOC_FIRSTAVAILABLE,
                                  NODEALLOC_MINRESOURCE,   NODEALLOC_CPULOAD,
                                  NODEALLOC_PRIORITY,      NODEALLOC_FASTEST,
                                  NODEALLOC_CONTIGUOUS,    NODEALLOC_MAXBALANCE,
                                  NODEALLOC_LOCAL,         NODEALLOC_PRIORITY};

static const char *const preempt_words[] = {"REQUEUE", "SUSPEND", "CHECKPOINT", "CANCEL", NULL};
static const int preempt_values[] = {PREEMPT_REQUEUE, PREEMPT_SUSPEND, PREEMPT_CHECKPOINT,
                                     PREEMPT_CANCEL};

static const char *const violation_words[] = {"CANCEL", "PREEMPT", NULL};
static const int violation_values[] = {WCVIOLATION_CANCEL, WCVIOLATION_PREEMPT};

static int place_of (int value, const int *values)
{
    int place = 0;
    while (values[place] != value)
        place++;
    return place;
}

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

/* A duration, or -1 for none. */
static int optional_seconds (const char *text, int64_t *out_s, struct err *err)
{
    duration_us d;
    if (strcmp (text, "-1") == 0) {
        *out_s = -1;
        return 0;
    }
    int rc = duration_parse (text, &d, err);
    if (rc)
        return rc;
    *out_s = d == TIME_US_MAX ? -1 : d / US_PER_S;
    return 0;
}

static int set_seconds (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = ((struct policy_file *)target)->policy;
    int64_t *field = strcmp (value->key, "XFMINWCLIMIT") == 0 ? &p->xf_min_wclimit_s
                                                              : &p->system_max_wall_s_per_job;
    return optional_seconds (value->text, field, err);
}

static int set_default_wall (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = ((struct policy_file *)target)->policy;
    duration_us d;
    int rc = duration_parse (value->text, &d, err);
    if (rc)
        return rc;
    if (d < US_PER_S || d == TIME_US_MAX)
        return err_set (err, ERR_INVALID, "a job needs a limit of at least a second");
    p->default_wall_s = d / US_PER_S;
    return 0;
}

static int set_job_limit (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = ((struct policy_file *)target)->policy;
    int64_t *field = strcmp (value->key, "SYSTEMMAXPROCPERJOB") == 0 ? &p->system_max_proc_per_job
                                                                     : &p->system_max_ps_per_job;
    return int_parse (value->text, "the limit", -1, INT64_MAX, field, err);
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
    struct policy_file *f = target;
    uint64_t bucket, depth;
    int rc = bucket_of (value, &bucket, err);
    if (!rc)
        rc = uint_parse (value->text, "the depth", 0, UINT32_MAX, &depth, err);
    if (rc)
        return rc;
    f->bucket[bucket].depth_set = true;
    f->bucket[bucket].depth = (uint32_t)depth;
    return 0;
}

static int set_depth_qos (void *target, const struct conf_value *value, struct err *err)
{
    struct policy_file *f = target;
    uint64_t bucket;
    int rc = bucket_of (value, &bucket, err);
    if (rc)
        return rc;
    f->bucket[bucket].list_set = true;
    f->bucket[bucket].qos_count = 0;
    if (strcasecmp (value->text, "ALL") == 0)
        return 0;
    return policy_qos_list (f->policy, value->text, &f->bucket[bucket].qos,
                            &f->bucket[bucket].qos_count, err);
}

/* --- the table ---------------------------------------------------------------------------- */

#define AT(field) offsetof (struct policy_file, field)
#define PPM(key, field)                                                                            \
    {                                                                                              \
        .name = key, .type = CONF_PPM, .offset = AT (field), .flags = CONF_F_INDEX                 \
    }
#define COMPONENT(key, component)                                                                  \
    PPM (key "WEIGHT", component_weight_ppm[component]),                                           \
        PPM (key "CAP", component_cap_ppm[component])
#define SUB(key, sub) PPM (key "WEIGHT", sub_weight_ppm[sub]), PPM (key "CAP", sub_cap_ppm[sub])
#define INT(key, field, least, most)                                                               \
    {                                                                                              \
        .name = key, .type = CONF_INT, .offset = AT (field), .min = least, .max = most,            \
        .flags = CONF_F_INDEX                                                                      \
    }
#define WORD(key, field, list)                                                                     \
    {                                                                                              \
        .name = key, .type = CONF_WORD, .offset = AT (field), .words = list, .flags = CONF_F_INDEX \
    }
#define CALL(key, function)                                                                        \
    {                                                                                              \
        .name = key, .type = CONF_CALL, .set = function, .flags = CONF_F_INDEX                     \
    }
#define RECORD(key, function, table)                                                               \
    {                                                                                              \
        .name = key, .type = CONF_RECORD, .record = function, .attrs = table,                      \
        .flags = CONF_F_INDEX_REQUIRED                                                             \
    }

static const struct conf_param file_params[] = {
    /* components: the manual's names, then the papers' */
    COMPONENT ("CRED", PRIO_CRED),
    COMPONENT ("DIRECTSPEC", PRIO_CRED),
    COMPONENT ("FS", PRIO_FS),
    COMPONENT ("FAIRSHARE", PRIO_FS),
    COMPONENT ("RES", PRIO_RES),
    COMPONENT ("RESOURCE", PRIO_RES),
    COMPONENT ("SERV", PRIO_SERV),
    COMPONENT ("SERVICE", PRIO_SERV),
    COMPONENT ("TARG", PRIO_TARG),
    COMPONENT ("TARGET", PRIO_TARG),
    COMPONENT ("USAGE", PRIO_USAGE),
    /* subcomponents */
    SUB ("USER", PRIO_USER),
    SUB ("GROUP", PRIO_GROUP),
    SUB ("ACCOUNT", PRIO_ACCOUNT),
    SUB ("CLASS", PRIO_CLASS),
    SUB ("QOS", PRIO_QOS),
    SUB ("FSUSER", PRIO_FSUSER),
    SUB ("FSGROUP", PRIO_FSGROUP),
    SUB ("FSACCOUNT", PRIO_FSACCOUNT),
    SUB ("FSCLASS", PRIO_FSCLASS),
    SUB ("FSQOS", PRIO_FSQOS),
    SUB ("USERFS", PRIO_FSUSER),
    SUB ("GROUPFS", PRIO_FSGROUP),
    SUB ("ACCOUNTFS", PRIO_FSACCOUNT),
    SUB ("CLASSFS", PRIO_FSCLASS),
    SUB ("QOSFS", PRIO_FSQOS),
    SUB ("UFS", PRIO_FSUSER),
    SUB ("GFS", PRIO_FSGROUP),
    SUB ("AFS", PRIO_FSACCOUNT),
    SUB ("CFS", PRIO_FSCLASS),
    SUB ("QFS", PRIO_FSQOS),
    SUB ("NODE", PRIO_NODE),
    SUB ("PROC", PRIO_PROC),
    SUB ("MEM", PRIO_MEM),
    SUB ("SWAP", PRIO_SWAP),
    SUB ("DISK", PRIO_DISK),
    SUB ("PS", PRIO_PS),
    SUB ("PE", PRIO_PE),
    SUB ("WALLTIME", PRIO_WALLTIME),
    SUB ("UPROC", PRIO_UPROC),
    SUB ("UJOB", PRIO_UJOB),
    SUB ("QUEUETIME", PRIO_QUEUETIME),
    SUB ("XFACTOR", PRIO_XFACTOR),
    SUB ("XF", PRIO_XFACTOR),
    SUB ("BYPASS", PRIO_BYPASS),
    SUB ("SPVIOLATION", PRIO_SPVIOLATION),
    SUB ("TARGETQUEUETIME", PRIO_TARGETQUEUETIME),
    SUB ("TARGETXFACTOR", PRIO_TARGETXFACTOR),
    SUB ("USAGECONSUMED", PRIO_CONSUMED),
    SUB ("USAGEREMAINING", PRIO_REMAINING),
    SUB ("USAGEPERCENT", PRIO_PERCENT),
    SUB ("USAGEEXECUTIONTIME", PRIO_EXECUTIONTIME),
    SUB ("CONSUMED", PRIO_CONSUMED),
    SUB ("REMAINING", PRIO_REMAINING),
    SUB ("PERCENT", PRIO_PERCENT),
    SUB ("EXECUTIONTIME", PRIO_EXECUTIONTIME),
    CALL ("XFMINWCLIMIT", set_seconds),
    WORD ("JOBPRIOACCRUALPOLICY", accrual, accrual_words),

    CALL ("FSPOLICY", set_fs_policy),
    INT ("FSDEPTH", fs_depth, 1, FS_DEPTH_MAX),
    {.name = "FSDECAY",
     .type = CONF_PPM,
     .offset = AT (fs_decay_ppm),
     .min = 0,
     .max = 1000000,
     .flags = CONF_F_INDEX},

    CALL ("SYSTEMMAXPROCPERJOB", set_job_limit),
    CALL ("SYSTEMMAXPROCSECONDPERJOB", set_job_limit),
    CALL ("SYSTEMMAXJOBWALLTIME", set_seconds),
    CALL ("SYSTEMDEFAULTJOBWALLTIME", set_default_wall),

    WORD ("RESERVATIONPOLICY", reservation_policy, reservation_words),
    CALL ("RESERVATIONDEPTH", set_depth),
    CALL ("RESERVATIONQOSLIST", set_depth_qos),
    WORD ("RESERVATIONTHRESHOLDTYPE", reservation_threshold, threshold_words),
    CALL ("RESERVATIONTHRESHOLDVALUE", set_threshold),
    WORD ("RESERVATIONBINDING", reservation_binding, binding_words),

    WORD ("BACKFILLPOLICY", backfill_policy, backfill_words),
    WORD ("BACKFILLMETRIC", backfill_metric, metric_words),
    WORD ("SCHEDULINGCRITERIA", backfill_metric, metric_words),
    WORD ("BACKFILLWINDOWORDER", backfill_window_order, window_words),
    WORD ("BFPRIORITYPOLICY", backfill_priority, bfpriority_words),
    INT ("BACKFILLDEPTH", backfill_depth, 0, UINT32_MAX),
    INT ("BACKFILLMAXSCHEDULES", backfill_max_schedules, 1, UINT32_MAX),
    INT ("BFCHUNKSIZE", bf_chunk_procs, 0, UINT32_MAX),

    WORD ("NODEALLOCATIONPOLICY", node_allocation, node_words),
    CALL ("NODEACCESSPOLICY", policy_set_node_access),
    CALL ("JOBNODEMATCHPOLICY", policy_set_node_match),
    CALL ("TASKDISTRIBUTIONPOLICY", policy_set_task_distribution),
    CALL ("NODEAVAILABILITYPOLICY", policy_set_node_availability),
    CALL ("NODELOADPOLICY", policy_set_node_load),
    CALL ("NODEMAXLOAD", policy_set_node_load),
    CALL ("NODESETPOLICY", policy_set_nodeset),
    CALL ("NODESETATTRIBUTE", policy_set_nodeset),
    CALL ("NODESETLIST", policy_set_nodeset),
    CALL ("NODESETTOLERANCE", policy_set_nodeset),
    CALL ("NODESETPRIORITYTYPE", policy_set_nodeset),
    CALL ("NODESETPRIORITY", policy_set_nodeset),
    WORD ("PREEMPTPOLICY", preempt_policy, preempt_words),
    WORD ("PREEMPTIONPOLICY", preempt_policy, preempt_words),
    WORD ("WCVIOLATIONACTION", wcviolation_action, violation_words),
    INT ("DEFERCOUNT", defer_count, 0, UINT32_MAX),
    INT ("DEFERSTARTCOUNT", defer_start_count, 0, UINT32_MAX),

    RECORD ("USERCFG", policy_record_user, policy_user_attrs),
    RECORD ("GROUPCFG", policy_record_group, policy_user_attrs),
    RECORD ("ACCOUNTCFG", policy_record_account, policy_user_attrs),
    RECORD ("CLASSCFG", policy_record_class, policy_class_attrs),
    RECORD ("QOSCFG", policy_record_qos, policy_qos_attrs),
    RECORD ("SRCFG", policy_record_standing, policy_standing_attrs),
    CALL ("SRACCESS", policy_set_standing),
    CALL ("SRACCOUNTLIST", policy_set_standing),
    CALL ("SRCHARGEACCOUNT", policy_set_standing),
    CALL ("SRCHARGEUSER", policy_set_standing),
    CALL ("SRCLASSLIST", policy_set_standing),
    CALL ("SRDAYS", policy_set_standing),
    CALL ("SRDEPTH", policy_set_standing),
    CALL ("SRENDTIME", policy_set_standing),
    CALL ("SRFEATURES", policy_set_standing),
    CALL ("SRFLAGS", policy_set_standing),
    CALL ("SRGROUPLIST", policy_set_standing),
    CALL ("SRHOSTLIST", policy_set_standing),
    CALL ("SRJOBATTRLIST", policy_set_standing),
    CALL ("SRMAXTIME", policy_set_standing),
    CALL ("SRNODEFEATURES", policy_set_standing),
    CALL ("SROWNER", policy_set_standing),
    CALL ("SRPARTITION", policy_set_standing),
    CALL ("SRPERIOD", policy_set_standing),
    CALL ("SRPRIORITY", policy_set_standing),
    CALL ("SRPROCLIMIT", policy_set_standing),
    CALL ("SRQOSLIST", policy_set_standing),
    CALL ("SRRESOURCES", policy_set_standing),
    CALL ("SRSTARTTIME", policy_set_standing),
    CALL ("SRTASKCOUNT", policy_set_standing),
    CALL ("SRTIMELIMIT", policy_set_standing),
    CALL ("SRTIMELOGIC", policy_set_standing),
    CALL ("SRTPN", policy_set_standing),
    CALL ("SRUSERLIST", policy_set_standing),
    CALL ("SRWENDTIME", policy_set_standing),
    CALL ("SRWSTARTTIME", policy_set_standing),
    RECORD ("SYSCFG", policy_record_system, policy_system_attrs),
    RECORD ("PARCFG", policy_record_partition, policy_partition_attrs),
    CALL ("QOSPRIORITY", policy_set_qos_parameter),
    CALL ("QOSQTWEIGHT", policy_set_qos_parameter),
    CALL ("QOSXFWEIGHT", policy_set_qos_parameter),
    CALL ("QOSQTTARGET", policy_set_qos_parameter),
    CALL ("QOSTARGETQT", policy_set_qos_parameter),
    CALL ("QOSXFTARGET", policy_set_qos_parameter),
    CALL ("QOSTARGETXF", policy_set_qos_parameter),
    CALL ("QOSFLAGS", policy_set_qos_parameter),
    {0},
};

#define POLICY_AT(field) offsetof (struct policy, field)
#define DURATION(key, field, least)                                                                \
    {                                                                                              \
        .name = key, .type = CONF_DURATION, .offset = POLICY_AT (field), .min = least,             \
        .max = 366 * 86400 * US_PER_S, .flags = CONF_F_INDEX                                       \
    }

/* Those that go into the policy as they are. */
static const struct conf_param policy_params[] = {
    {.name = "REJECTNEGPRIOJOBS",
     .type = CONF_BOOL,
     .offset = POLICY_AT (reject_negative),
     .flags = CONF_F_INDEX},
    {.name = "ENABLENEGJOBPRIORITY",
     .type = CONF_BOOL,
     .offset = POLICY_AT (enable_negative),
     .flags = CONF_F_INDEX},
    DURATION ("FSINTERVAL", fs_interval, US_PER_S),
    DURATION ("NODESETDELAY", nodeset_delay, 0),
    DURATION ("RESERVATIONRETRYTIME", reservation_retry, 0),
    DURATION ("BFCHUNKDURATION", bf_chunk_duration, 0),
    DURATION ("RMPOLLINTERVAL", poll_interval, US_PER_S),
    DURATION ("JOBAGGREGATIONTIME", job_aggregation_time, 0),
    DURATION ("DEFERTIME", defer_time, 0),
    DURATION ("NODEDOWNSTATEDELAYTIME", node_down_delay, 0),
    {.name = "USEMACHINESPEED",
     .type = CONF_BOOL,
     .offset = POLICY_AT (use_machine_speed),
     .flags = CONF_F_INDEX},
    {.name = "JOBMAXOVERRUN",
     .type = CONF_DURATION,
     .offset = POLICY_AT (max_overrun),
     .max = TIME_US_MAX,
     .flags = CONF_F_INDEX | CONF_F_INFINITY},
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
           (strncmp (key, "SR", 2) == 0 && in_table (file_params, key)) ||
           strcmp (key, "RESERVATIONDEPTH") == 0 || strcmp (key, "RESERVATIONQOSLIST") == 0;
}

/* KEY[0] is KEY; KEY[1] would be for one partition, which we do not have. */
static int partitions_check (struct conf *conf, struct err *err)
{
    for (uint32_t i = 0; i < conf_entry_count (conf); i++) {
        const struct conf_entry *e = conf_entry (conf, i);
        if (!e->index || strcmp (e->index, "0") == 0 || has_own_index (e->key))
            continue;
        if (in_table (file_params, e->key) || in_table (policy_params, e->key))
            return err_set (err, ERR_UNSUPPORTED,
                            "%s: line %u: %s[%.40s]: a value for one partition is not available",
                            conf_name (conf), e->line, e->key, e->index);
    }
    return 0;
}

static int64_t ppm_of (double value)
{
    return (int64_t)(value * 1e6 + (value < 0 ? -.5 : .5));
}

static void file_from_policy (struct policy_file *f, struct policy *p)
{
    memset (f, 0, sizeof *f);
    f->policy = p;
    for (int c = 0; c < PRIO_COMPONENTS; c++)
        f->component_weight_ppm[c] = ppm_of (p->component_weight[c]);
    for (int s = 0; s < PRIO_SUBS; s++)
        f->sub_weight_ppm[s] = ppm_of (p->sub_weight[s]);
    f->fs_decay_ppm = ppm_of (p->fs_decay);
    f->fs_depth = p->fs_depth;
    f->backfill_depth = p->backfill_depth;
    f->backfill_max_schedules = p->backfill_max_schedules;
    f->bf_chunk_procs = p->bf_chunk_procs;
    f->defer_count = p->defer_count;
    f->defer_start_count = p->defer_start_count;
    f->accrual = place_of (p->accrual, accrual_values);
    f->reservation_policy = place_of (p->reservation_policy, reservation_values);
    f->reservation_threshold = place_of (p->reservation_threshold, threshold_values);
    f->reservation_binding = place_of (p->reservation_binding, binding_values);
    f->backfill_policy = place_of (p->backfill_policy, backfill_values);
    f->backfill_metric = place_of (p->backfill_metric, metric_values);
    f->backfill_window_order = place_of (p->backfill_window_order, window_values);
    f->backfill_priority = place_of (p->backfill_priority, bfpriority_values);
    f->node_allocation = place_of (p->node_allocation, node_values);
    f->preempt_policy = place_of (p->preempt_policy, preempt_values);
    f->wcviolation_action = place_of (p->wcviolation_action, violation_values);
}

static void file_to_policy (const struct policy_file *f, struct policy *p)
{
    for (int c = 0; c < PRIO_COMPONENTS; c++) {
        p->component_weight[c] = (double)f->component_weight_ppm[c] / 1e6;
        p->component_cap[c] = (double)f->component_cap_ppm[c] / 1e6;
    }
    for (int s = 0; s < PRIO_SUBS; s++) {
        p->sub_weight[s] = (double)f->sub_weight_ppm[s] / 1e6;
        p->sub_cap[s] = (double)f->sub_cap_ppm[s] / 1e6;
    }
    p->fs_decay = (double)f->fs_decay_ppm / 1e6;
    p->fs_depth = (uint32_t)f->fs_depth;
    p->backfill_depth = (uint32_t)f->backfill_depth;
    p->backfill_max_schedules = (uint32_t)f->backfill_max_schedules;
    p->bf_chunk_procs = (uint32_t)f->bf_chunk_procs;
    p->defer_count = (uint32_t)f->defer_count;
    p->defer_start_count = (uint32_t)f->defer_start_count;
    p->accrual = (enum job_prio_accrual)accrual_values[f->accrual];
    p->reservation_policy = (enum reservation_policy)reservation_values[f->reservation_policy];
    p->reservation_threshold =
        (enum reservation_threshold)threshold_values[f->reservation_threshold];
    p->reservation_binding = (enum reservation_binding)binding_values[f->reservation_binding];
    p->backfill_policy = (enum backfill_policy)backfill_values[f->backfill_policy];
    p->backfill_metric = (enum backfill_metric)metric_values[f->backfill_metric];
    p->backfill_window_order = (enum backfill_window_order)window_values[f->backfill_window_order];
    p->backfill_priority = (enum backfill_priority)bfpriority_values[f->backfill_priority];
    p->node_allocation = (enum node_allocation)node_values[f->node_allocation];
    p->preempt_policy = (enum preempt_policy)preempt_values[f->preempt_policy];
    p->wcviolation_action = (enum wcviolation_action)violation_values[f->wcviolation_action];
    for (uint32_t b = 0; b < POLICY_BUCKETS_MAX; b++) {
        if (f->bucket[b].depth_set || f->bucket[b].list_set)
            policy_bucket_set (p, b, f->bucket[b].depth_set ? f->bucket[b].depth : 1,
                               f->bucket[b].qos, f->bucket[b].qos_count);
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

int policy_conf_read (struct conf *conf, struct cred_names *names, struct policy **policy_out,
                     struct err *err)
{
    struct policy *p = policy_create (names);
    struct policy_file file;
    file_from_policy (&file, p);
    file.standing = policy_standing_begin (p, conf);
    int rc = partitions_check (conf, err);
    if (!rc)
        rc = conf_table_read (conf, file_params, &file, err);
    if (!rc)
        rc = conf_table_read (conf, policy_params, p, err);
    if (rc)
        goto out;
    file_to_policy (&file, p);
    rc = policy_standing_end (file.standing, conf_name (conf), err);
    file.standing = NULL;
    if (rc)
        goto out;
    rc = threshold_read (&file, p, conf_name (conf), err);
    if (rc)
        goto out;
    rc = policy_seal (p, err);
    if (rc) {
        err_prefix (err, "%s", conf_name (conf));
        goto out;
    }
    *policy_out = p;
    p = NULL;
out:
    if (file.standing)
        policy_standing_drop (file.standing);
    policy_destroy (p);
    return rc;
}

int policy_conf_known (struct conf *conf, struct err *err)
{
    char nothing;
    return conf_table_read (conf, policy_known_params, &nothing, err);
}

int policy_conf_load (const char *path, struct cred_names *names, struct policy **policy_out,
                      struct conf **conf_out, struct err *err)
{
    struct err local;
    struct policy *p = NULL;
    char nothing;
    if (!err)
        err = &local;
    struct conf *conf = conf_read_file (path, err);
    if (!conf)
        return err->code;
    int rc = policy_conf_read (conf, names, &p, err);
    if (!rc)
        rc = conf_table_read (conf, policy_site_params, &nothing, err);
    if (!rc)
        rc = policy_conf_known (conf, err);
    if (!rc)
        rc = conf_finish (conf, err);
    if (rc) {
        policy_destroy (p);
        conf_destroy (conf);
        return rc;
    }
    *policy_out = p;
    if (conf_out)
        *conf_out = conf;
    else
        conf_destroy (conf);
    return 0;
}
