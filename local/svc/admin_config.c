/* The policy in force, as lines that maui.cfg could hold. */
#include <assert.h>
#include <stdarg.h>

#include "local/svc/admin.h"

enum { PARAMETERS_MAX = 256 };

struct lines {
    struct arena *arena;
    Nui__Local__V1__ConfigReply *reply;
};

static void line (struct lines *l, const char *name, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));
static void line (struct lines *l, const char *name, const char *fmt, ...)
{
    Nui__Local__V1__Parameter *p = arena_new (l->arena, Nui__Local__V1__Parameter);
    va_list ap;
    assert (l->reply->n_parameters < PARAMETERS_MAX);
    nui__local__v1__parameter__init (p);
    p->name = arena_strdup (l->arena, name);
    va_start (ap, fmt);
    p->value = arena_vprintf (l->arena, fmt, ap);
    va_end (ap);
    l->reply->parameters[l->reply->n_parameters++] = p;
}

static void span (struct lines *l, const char *name, duration_us d)
{
    char text[QUANTITY_TEXT_MAX];
    line (l, name, "%s", duration_format (d, text));
}

static void truth (struct lines *l, const char *name, bool value)
{
    line (l, name, "%s", value ? "TRUE" : "FALSE");
}

static void weight (struct lines *l, const char *name, double value, double cap)
{
    line (l, arena_printf (l->arena, "%sWEIGHT", name), "%g", value);
    if (cap > 0)
        line (l, arena_printf (l->arena, "%sCAP", name), "%g", cap);
}

static void weights (struct lines *l, const struct policy *p)
{
    for (int c = 0; c < PRIO_COMPONENTS; c++) {
        weight (l, prio_component_name ((enum prio_component)c), p->component_weight[c],
                p->component_cap[c]);
        for (int s = 0; s < PRIO_SUBS; s++)
            if (prio_sub_component ((enum prio_sub)s) == (enum prio_component)c)
                weight (l, prio_sub_name ((enum prio_sub)s), p->sub_weight[s], p->sub_cap[s]);
    }
}

static void reservations (struct lines *l, const struct policy *p)
{
    static const char *const policy[] = {"CURRENTHIGHEST", "HIGHEST", "NEVER"};
    static const char *const threshold[] = {"NONE", "BYPASS", "QUEUETIME", "XFACTOR"};
    static const char *const binding[] = {"EARLY", "LATE"};
    line (l, "RESERVATIONPOLICY", "%s", policy[p->reservation_policy]);
    for (uint32_t b = 0; b < p->bucket_count; b++)
        if (p->bucket[b].used)
            line (l, arena_printf (l->arena, "RESERVATIONDEPTH[%u]", b), "%u", p->bucket[b].depth);
    line (l, "RESERVATIONTHRESHOLDTYPE", "%s", threshold[p->reservation_threshold]);
    line (l, "RESERVATIONTHRESHOLDVALUE", "%g", p->reservation_threshold_value);
    span (l, "RESERVATIONRETRYTIME", p->reservation_retry);
    line (l, "RESERVATIONBINDING", "%s", binding[p->reservation_binding]);
}

static void backfill (struct lines *l, const struct policy *p)
{
    static const char *const policy[] = {"FIRSTFIT", "BESTFIT", "GREEDY", "PREEMPT", "NONE"};
    static const char *const metric[] = {"PROCS", "PROCSECONDS", "SECONDS",
                                         "NODES", "PE",          "PESECONDS"};
    line (l, "BACKFILLPOLICY", "%s", policy[p->backfill_policy]);
    line (l, "BACKFILLMETRIC", "%s", metric[p->backfill_metric]);
    line (l, "BACKFILLDEPTH", "%u", p->backfill_depth);
    line (l, "BACKFILLMAXSCHEDULES", "%u", p->backfill_max_schedules);
    line (l, "BFCHUNKSIZE", "%u", p->bf_chunk_procs);
    span (l, "BFCHUNKDURATION", p->bf_chunk_duration);
}

static void rest (struct lines *l, const struct policy *p)
{
    static const char *const accrual[] = {"QUEUEPOLICY", "FULLPOLICY", "ALWAYS"};
    static const char *const fs[] = {"NONE", "DEDICATEDPS", "DEDICATEDPES", "UTILIZEDPS"};
    static const char *const nodes[] = {"LASTAVAILABLE", "FIRSTAVAILABLE", "MINRESOURCE",
                                        "CPULOAD",       "PRIORITY",       "CONTIGUOUS",
                                        "MAXBALANCE",    "FASTEST",        "LOCAL"};
    truth (l, "REJECTNEGPRIOJOBS", p->reject_negative);
    truth (l, "ENABLENEGJOBPRIORITY", p->enable_negative);
    line (l, "JOBPRIOACCRUALPOLICY", "%s", accrual[p->accrual]);
    line (l, "XFMINWCLIMIT", "%lld", (long long)p->xf_min_wclimit_s);
    line (l, "NODEALLOCATIONPOLICY", "%s", nodes[p->node_allocation]);
    span (l, "NODEDOWNSTATEDELAYTIME", p->node_down_delay);
    truth (l, "USEMACHINESPEED", p->use_machine_speed);
    line (l, "FSPOLICY", "%s%s", fs[p->fs_policy], p->fs_ratio ? "%" : "");
    span (l, "FSINTERVAL", p->fs_interval);
    line (l, "FSDEPTH", "%u", p->fs_depth);
    line (l, "FSDECAY", "%g", p->fs_decay);
    line (l, "SYSTEMMAXPROCPERJOB", "%lld", (long long)p->system_max_proc_per_job);
    line (l, "SYSTEMMAXJOBWALLTIME", "%lld", (long long)p->system_max_wall_s_per_job);
    line (l, "SYSTEMMAXPROCSECONDPERJOB", "%lld", (long long)p->system_max_ps_per_job);
    span (l, "SYSTEMDEFAULTJOBWALLTIME", p->default_wall_s * US_PER_S);
    span (l, "RMPOLLINTERVAL", p->poll_interval);
    span (l, "JOBAGGREGATIONTIME", p->job_aggregation_time);
    span (l, "DEFERTIME", p->defer_time);
    line (l, "DEFERCOUNT", "%u", p->defer_count);
    line (l, "DEFERSTARTCOUNT", "%u", p->defer_start_count);
}

void admin_config (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    Nui__Local__V1__ConfigReply reply = NUI__LOCAL__V1__CONFIG_REPLY__INIT;
    struct lines l = {svc->call_arena, &reply};
    struct admin_caller caller;
    struct err err = {0};
    (void)request;
    admin_who (svc, call, &caller);
    if (admin_require (&caller, ADMIN_INFO, "the configuration", &err) != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    arena_reset (svc->call_arena);
    reply.parameters = arena_array (svc->call_arena, PARAMETERS_MAX, sizeof *reply.parameters);
    rest (&l, svc->settings->policy);
    backfill (&l, svc->settings->policy);
    reservations (&l, svc->settings->policy);
    weights (&l, svc->settings->policy);
    rpccall_reply (call, &reply.base);
}
