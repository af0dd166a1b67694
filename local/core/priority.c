/* priority: the sum of weighted, capped components, once quickly for all jobs and once itemised
 * for a person. The order of the pass, preemption and scenes of estimates call it. Both ways
 * must add in the same order, so that diagnose -p shows exactly the number that decided. */
#include "local/core/priority.h"
#include "proto/base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of one kind of credentials. */
struct factor_table {
    double *factor;   /* by credential number */
    double *weighted; /* W * min (CAP, factor) */
    uint32_t count;
    uint32_t cap;
    double other_factor;
    double other_weighted;
};

struct priority {
    const struct policy *policy;
    bool static_weighs; /* some subcomponent of CRED or RES has a weight */
    struct factor_table fs[CRED_KINDS];
    struct priority_use *use; /* by user */
    bool *moved;              /* by user: the last priority_use_set changed it */
    uint32_t use_count, use_cap, moved_count;
};

/* Kind of credential of the five subcomponents of CRED and of FS, which share one order. */
static const enum cred_kind kind_order[CRED_KINDS] = {CRED_USER, CRED_GROUP, CRED_ACCOUNT,
                                                      CRED_CLASS, CRED_QOS};
static_assert (PRIO_QOS - PRIO_USER == CRED_KINDS - 1, "CRED has one subcomponent per kind");
static_assert (PRIO_FSQOS - PRIO_FSUSER == CRED_KINDS - 1, "FS has one subcomponent per kind");

static enum prio_sub sub_of_kind (enum prio_sub first, enum cred_kind kind)
{
    int i = 0;
    while (kind_order[i] != kind)
        i++;
    return (enum prio_sub) (first + i);
}

static double capped (double value, double cap)
{
    return cap > 0 && value > cap ? cap : value;
}

static double sub_value (const struct policy *p, enum prio_sub sub, double factor)
{
    return p->sub_weight[sub] * capped (factor, p->sub_cap[sub]);
}

static double component_value (const struct policy *p, enum prio_component c, double sum)
{
    return p->component_weight[c] * capped (sum, p->component_cap[c]);
}

double priority_pe (int64_t procs, int64_t mem_mb, int64_t swap_mb, int64_t disk_mb,
                    const struct priority_totals *totals)
{
    double most = totals->procs > 0 ? (double)procs / (double)totals->procs : 0;
    if (totals->mem_mb > 0 && (double)mem_mb / (double)totals->mem_mb > most)
        most = (double)mem_mb / (double)totals->mem_mb;
    if (totals->swap_mb > 0 && (double)swap_mb / (double)totals->swap_mb > most)
        most = (double)swap_mb / (double)totals->swap_mb;
    if (totals->disk_mb > 0 && (double)disk_mb / (double)totals->disk_mb > most)
        most = (double)disk_mb / (double)totals->disk_mb;
    return most * (double)totals->procs;
}

static bool static_weighs (const struct policy *p)
{
    bool weighs = false;

    for (int s = 0; s < PRIO_SUBS; s++) {
        enum prio_component component = prio_sub_component ((enum prio_sub)s);
        weighs = weighs || ((component == PRIO_CRED || component == PRIO_RES) &&
                            p->sub_weight[s] != 0 && p->component_weight[component] != 0);
    }
    return weighs;
}

struct priority *priority_create (const struct policy *policy)
{
    assert (policy->sealed);
    struct priority *prio = mem_zero (1, sizeof *prio);
    prio->policy = policy;
    prio->static_weighs = static_weighs (policy);
    return prio;
}

void priority_destroy (struct priority *prio)
{
    if (!prio)
        return;
    for (int k = 0; k < CRED_KINDS; k++)
        free (prio->fs[k].factor);
    free (prio->use);
    free (prio->moved);
    free (prio);
}

void priority_fairshare_set (struct priority *prio, enum cred_kind kind, const double *factor,
                             uint32_t count, double other_factor)
{
    struct factor_table *t = &prio->fs[kind];
    if (count > t->cap) {
        double *grown = mem_resize (t->factor, 2 * (size_t)count * sizeof grown[0]);
        t->factor = grown;
        t->cap = count;
    }
    t->count = count;
    t->weighted = t->factor + t->cap;
    enum prio_sub sub = sub_of_kind (PRIO_FSUSER, kind);
    for (uint32_t i = 0; i < count; i++) {
        t->factor[i] = factor[i];
        t->weighted[i] = sub_value (prio->policy, sub, factor[i]);
    }
    t->other_factor = other_factor;
    t->other_weighted = sub_value (prio->policy, sub, other_factor);
}

static double fs_value (const struct priority *prio, enum cred_kind kind, uint32_t id)
{
    const struct factor_table *t = &prio->fs[kind];
    if (id == CRED_NONE)
        return 0;
    return id < t->count ? t->weighted[id] : t->other_weighted;
}

static double fs_factor (const struct priority *prio, enum cred_kind kind, uint32_t id)
{
    const struct factor_table *t = &prio->fs[kind];
    if (id == CRED_NONE)
        return 0;
    return id < t->count ? t->factor[id] : t->other_factor;
}

static double cred_factor (const struct policy *p, enum cred_kind kind, uint32_t id)
{
    return id == CRED_NONE ? 0 : policy_cred (p, kind, id)->priority;
}

bool priority_use_weighs (const struct policy *p)
{
    return p->component_weight[PRIO_RES] != 0 &&
           (p->sub_weight[PRIO_UPROC] != 0 || p->sub_weight[PRIO_UJOB] != 0);
}

static struct priority_use use_of (const struct priority *prio, uint32_t user)
{
    return user < prio->use_count ? prio->use[user] : (struct priority_use){0};
}

bool priority_use_set (struct priority *prio, const struct priority_use *use, uint32_t count)
{
    bool any = false;

    if (count > prio->use_cap) {
        uint32_t cap = 2 * count;
        prio->use = mem_resize (prio->use, cap * sizeof *use);
        prio->moved = mem_resize (prio->moved, cap * sizeof *prio->moved);
        prio->use_cap = cap;
    }
    prio->moved_count = count > prio->use_count ? count : prio->use_count;
    for (uint32_t user = 0; user < prio->moved_count; user++) {
        struct priority_use was = use_of (prio, user);
        struct priority_use is = user < count ? use[user] : (struct priority_use){0};
        prio->moved[user] = was.procs != is.procs || was.jobs != is.jobs;
        any = any || prio->moved[user];
    }
    if (count)
        memcpy (prio->use, use, count * sizeof *use);
    prio->use_count = count;
    return any;
}

bool priority_use_moved (const struct priority *prio, uint32_t user)
{
    return user < prio->moved_count && prio->moved[user];
}

static double res_factor (const struct priority *prio, const struct priority_job *job,
                          enum prio_sub sub)
{
    switch (sub) {
    case PRIO_NODE:
        return job->nodes;
    case PRIO_PROC:
        return job->procs;
    case PRIO_MEM:
        return (double)job->mem_mb;
    case PRIO_SWAP:
        return (double)job->swap_mb;
    case PRIO_DISK:
        return (double)job->disk_mb;
    case PRIO_PS:
        return (double)job->procs * (double)job->wclimit_s;
    case PRIO_PE:
        return job->pe;
    case PRIO_WALLTIME:
        return (double)job->wclimit_s;
    case PRIO_UPROC:
        return (double)use_of (prio, job->cred[CRED_USER]).procs;
    case PRIO_UJOB:
        return (double)use_of (prio, job->cred[CRED_USER]).jobs;
    default:
        assert (!"a subcomponent of RES");
        return 0;
    }
}

double priority_static (const struct priority *prio, const struct priority_job *job)
{
    const struct policy *p = prio->policy;
    double cred = 0, res = 0;

    if (!prio->static_weighs)
        return 0;
    for (int i = 0; i < CRED_KINDS; i++)
        cred += sub_value (p, (enum prio_sub) (PRIO_USER + i),
                           cred_factor (p, kind_order[i], job->cred[kind_order[i]]));
    for (int s = PRIO_NODE; s <= PRIO_WALLTIME; s++)
        res += sub_value (p, (enum prio_sub)s, res_factor (prio, job, (enum prio_sub)s));
    for (int s = PRIO_UPROC; s <= PRIO_UJOB && prio->use_count; s++)
        res += sub_value (p, (enum prio_sub)s, res_factor (prio, job, (enum prio_sub)s));
    return component_value (p, PRIO_CRED, cred) + component_value (p, PRIO_RES, res);
}

static double queued_minutes (const struct priority_job *job, time_us now)
{
    int64_t queued = now - job->eff_queue_since;
    return queued > 0 ? (double)queued / (60.0 * US_PER_S) : 0;
}

double priority_xfactor (const struct policy *policy, int64_t queued_us, int64_t wclimit_s)
{
    int64_t limit = wclimit_s > policy->xf_min_wclimit_s ? wclimit_s : policy->xf_min_wclimit_s;
    if (limit < 1)
        limit = 1;
    return 1 + (queued_us > 0 ? (double)queued_us / (double)US_PER_S : 0) / (double)limit;
}

/* Grows as the target comes near, 1e8 from then on (Jackson, Snell & Clement 2001, table 2). */
static double target_factor (double target, double value)
{
    if (target <= 0)
        return 0;
    double distance = target - value;
    if (distance < .0001)
        distance = .0001;
    return 1 / (distance * distance);
}

/* What is left of the sum once CRED and RES are known. Adds in the order priority_explain uses. */
static double moving_value (const struct priority *prio, const struct priority_job *job,
                            time_us now, double sum)
{
    const struct policy *p = prio->policy;
    const struct policy_qos *qos =
        policy_qos (p, job->cred[CRED_QOS] == CRED_NONE ? CRED_DEFAULT : job->cred[CRED_QOS]);
    double minutes = queued_minutes (job, now);
    double xfactor = priority_xfactor (p, now - job->eff_queue_since, job->wclimit_s);

    double fs = 0;
    for (int i = 0; i < CRED_KINDS; i++)
        fs += fs_value (prio, kind_order[i], job->cred[kind_order[i]]);
    sum += component_value (p, PRIO_FS, fs);

    double serv = (p->sub_weight[PRIO_QUEUETIME] + qos->qtweight) *
                  capped (minutes, p->sub_cap[PRIO_QUEUETIME]);
    serv +=
        (p->sub_weight[PRIO_XFACTOR] + qos->xfweight) * capped (xfactor, p->sub_cap[PRIO_XFACTOR]);
    serv += sub_value (p, PRIO_BYPASS, job->bypass);
    serv += sub_value (p, PRIO_SPVIOLATION, (job->flags & PRIORITY_SPVIOLATION) ? 1 : 0);
    sum += component_value (p, PRIO_SERV, serv);

    double targ = sub_value (p, PRIO_TARGETQUEUETIME, target_factor (qos->qttarget_min, minutes));
    targ += sub_value (p, PRIO_TARGETXFACTOR, target_factor (qos->xftarget, xfactor));
    return sum + component_value (p, PRIO_TARG, targ);
}

static int64_t rounded (double value)
{
    if (value >= (double)PRIORITY_MAX)
        return PRIORITY_MAX;
    if (value <= -(double)PRIORITY_MAX)
        return -PRIORITY_MAX;
    return (int64_t)(value < 0 ? value - .5 : value + .5);
}

static int64_t final_priority (const struct policy *p, const struct priority_job *job, double sum)
{
    if (job->flags & PRIORITY_SYSTEM_ABSOLUTE)
        return PRIORITY_MAX + job->system_priority;
    if (job->flags & PRIORITY_SYSTEM_RELATIVE)
        sum += (double)job->system_priority;
    int64_t priority = rounded (sum);
    if (priority < 1 && !p->reject_negative && !p->enable_negative)
        return 1;
    return priority;
}

int64_t priority_start (const struct priority *prio, const struct priority_job *job,
                        double static_value, time_us now)
{
    return final_priority (prio->policy, job, moving_value (prio, job, now, static_value));
}

/* What moving_value looks up, once for many jobs. Caps that are not set are infinite. */
struct moving {
    double weight[PRIO_SUBS], cap[PRIO_SUBS];
    double component_weight[PRIO_COMPONENTS], component_cap[PRIO_COMPONENTS];
    struct moving_qos {
        double qt_weight, xf_weight, qttarget_min, xftarget;
    } * qos; /* by credential number; the last is of all others */
    uint32_t qos_count;
};

static struct moving_qos moving_qos (const struct policy *p, uint32_t id)
{
    const struct policy_qos *q = policy_qos (p, id);
    return (struct moving_qos){p->sub_weight[PRIO_QUEUETIME] + q->qtweight,
                               p->sub_weight[PRIO_XFACTOR] + q->xfweight, q->qttarget_min,
                               q->xftarget};
}

static void moving_open (const struct policy *p, struct moving *m)
{
    for (int s = 0; s < PRIO_SUBS; s++) {
        m->weight[s] = p->sub_weight[s];
        m->cap[s] = p->sub_cap[s] > 0 ? p->sub_cap[s] : INFINITY;
    }
    for (int c = 0; c < PRIO_COMPONENTS; c++) {
        m->component_weight[c] = p->component_weight[c];
        m->component_cap[c] = p->component_cap[c] > 0 ? p->component_cap[c] : INFINITY;
    }
    m->qos_count = p->cred_index_count[CRED_QOS];
    m->qos = mem_zero (m->qos_count + 1, sizeof m->qos[0]);
    for (uint32_t id = 0; id < m->qos_count; id++)
        m->qos[id] = moving_qos (p, id);
    m->qos[m->qos_count] = moving_qos (p, CRED_DEFAULT);
}

static inline double least (double a, double b)
{
    return a > b ? b : a;
}

/* moving_value with everything at hand; the same sums in the same order. */
static inline double moving_quick (const struct priority *prio, const struct moving *m,
                                   const struct priority_job *job, time_us now, double sum)
{
    const struct policy *p = prio->policy;
    uint32_t id = job->cred[CRED_QOS];
    const struct moving_qos *q = &m->qos[id < m->qos_count ? id : m->qos_count];
    double minutes = queued_minutes (job, now);
    double xfactor = priority_xfactor (p, now - job->eff_queue_since, job->wclimit_s);

    double fs = 0;
    for (int i = 0; i < CRED_KINDS; i++)
        fs += fs_value (prio, kind_order[i], job->cred[kind_order[i]]);
    sum += m->component_weight[PRIO_FS] * least (fs, m->component_cap[PRIO_FS]);

    double serv = q->qt_weight * least (minutes, m->cap[PRIO_QUEUETIME]);
    serv += q->xf_weight * least (xfactor, m->cap[PRIO_XFACTOR]);
    serv += m->weight[PRIO_BYPASS] * least (job->bypass, m->cap[PRIO_BYPASS]);
    serv += m->weight[PRIO_SPVIOLATION] *
            least ((job->flags & PRIORITY_SPVIOLATION) ? 1 : 0, m->cap[PRIO_SPVIOLATION]);
    sum += m->component_weight[PRIO_SERV] * least (serv, m->component_cap[PRIO_SERV]);

    double targ = m->weight[PRIO_TARGETQUEUETIME] *
                  least (target_factor (q->qttarget_min, minutes), m->cap[PRIO_TARGETQUEUETIME]);
    targ += m->weight[PRIO_TARGETXFACTOR] *
            least (target_factor (q->xftarget, xfactor), m->cap[PRIO_TARGETXFACTOR]);
    return sum + m->component_weight[PRIO_TARG] * least (targ, m->component_cap[PRIO_TARG]);
}

void priority_start_many (const struct priority *prio, const struct priority_job *job,
                          const double *static_value, uint32_t count, time_us now, int64_t *out)
{
    struct moving m;
    moving_open (prio->policy, &m);
    for (uint32_t i = 0; i < count; i++)
        out[i] = final_priority (prio->policy, &job[i],
                                 moving_quick (prio, &m, &job[i], now, static_value[i]));
    free (m.qos);
}

bool priority_rejected (const struct priority *prio, int64_t priority)
{
    return prio->policy->reject_negative && priority < 0;
}

int64_t priority_run (const struct priority *prio, const struct priority_usage *u)
{
    const struct policy *p = prio->policy;
    double used = (double)u->used_s, left = (double)(u->wclimit_s - u->used_s);
    double sum = sub_value (p, PRIO_CONSUMED, u->procs * used);
    sum += sub_value (p, PRIO_REMAINING, u->procs * left);
    sum += sub_value (p, PRIO_PERCENT, u->wclimit_s > 0 ? 100 * used / (double)u->wclimit_s : 0);
    sum += sub_value (p, PRIO_EXECUTIONTIME, used);
    return u->start_priority + u->preempt_margin + rounded (component_value (p, PRIO_USAGE, sum));
}

double priority_sub_weight (const struct priority *prio, enum prio_sub sub, uint32_t qos)
{
    double weight = prio->policy->sub_weight[sub];
    const struct policy_qos *q = policy_qos (prio->policy, qos == CRED_NONE ? CRED_DEFAULT : qos);
    if (sub == PRIO_QUEUETIME)
        weight += q->qtweight;
    if (sub == PRIO_XFACTOR)
        weight += q->xfweight;
    return weight;
}

static void explain_factors (const struct priority *prio, const struct priority_job *job,
                             time_us now, struct priority_explained *out)
{
    const struct policy *p = prio->policy;
    const struct policy_qos *qos =
        policy_qos (p, job->cred[CRED_QOS] == CRED_NONE ? CRED_DEFAULT : job->cred[CRED_QOS]);
    for (int i = 0; i < CRED_KINDS; i++) {
        out->factor[PRIO_USER + i] = cred_factor (p, kind_order[i], job->cred[kind_order[i]]);
        out->factor[PRIO_FSUSER + i] = fs_factor (prio, kind_order[i], job->cred[kind_order[i]]);
    }
    for (int s = PRIO_NODE; s <= PRIO_UJOB; s++)
        out->factor[s] = res_factor (prio, job, (enum prio_sub)s);
    double minutes = queued_minutes (job, now);
    double xfactor = priority_xfactor (p, now - job->eff_queue_since, job->wclimit_s);
    out->factor[PRIO_QUEUETIME] = minutes;
    out->factor[PRIO_XFACTOR] = xfactor;
    out->factor[PRIO_BYPASS] = job->bypass;
    out->factor[PRIO_SPVIOLATION] = (job->flags & PRIORITY_SPVIOLATION) ? 1 : 0;
    out->factor[PRIO_TARGETQUEUETIME] = target_factor (qos->qttarget_min, minutes);
    out->factor[PRIO_TARGETXFACTOR] = target_factor (qos->xftarget, xfactor);
}

void priority_explain (const struct priority *prio, const struct priority_job *job, time_us now,
                       struct priority_explained *out)
{
    const struct policy *p = prio->policy;
    memset (out, 0, sizeof *out);
    explain_factors (prio, job, now, out);
    double sum[PRIO_COMPONENTS] = {0};
    for (int s = 0; s < PRIO_SUBS; s++) {
        enum prio_component c = prio_sub_component ((enum prio_sub)s);
        if (c == PRIO_USAGE)
            continue;
        out->sub[s] = priority_sub_weight (prio, (enum prio_sub)s, job->cred[CRED_QOS]) *
                      capped (out->factor[s], p->sub_cap[s]);
        sum[c] += out->sub[s];
    }
    for (int c = 0; c < PRIO_USAGE; c++)
        out->component[c] = component_value (p, (enum prio_component)c, sum[c]);
    out->sum = out->component[PRIO_CRED] + out->component[PRIO_RES];
    out->sum += out->component[PRIO_FS];
    out->sum += out->component[PRIO_SERV];
    out->sum += out->component[PRIO_TARG];
    out->priority = final_priority (p, job, out->sum);
}

time_us priority_accrue (enum job_prio_accrual policy, time_us submit, time_us since,
                         uint32_t blocks, time_us now)
{
    const uint32_t limits =
        ACCRUAL_BLOCK_LIMIT_IDLE | ACCRUAL_BLOCK_LIMIT_ACTIVE | ACCRUAL_BLOCK_LIMIT_SYSTEM;
    switch (policy) {
    case ACCRUAL_ALWAYS:
        return submit;
    case ACCRUAL_FULLPOLICY:
        return blocks ? now : since;
    case ACCRUAL_QUEUEPOLICY:
        break;
    }
    return (blocks & limits) ? now : since;
}
