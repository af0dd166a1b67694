/* model_limit: limits for model.c, by adding up everybody's use each time. Called for each job at each
 * moment that is tried; keeps nothing, so that no count can be forgotten. */
#include "tests/prop/local/model.h"

static int64_t procs_of (const struct model_job *j)
{
    return (int64_t)j->tasks * j->procs;
}

/* As few nodes as the largest there are would do. */
static int64_t nodes_of (const struct model_crowd *c, const struct model_job *j)
{
    int largest = 0, most;

    for (int n = 0; n < c->node_count; n++)
        largest = c->node[n].procs > largest ? c->node[n].procs : largest;
    most = largest / j->procs;
    return most > 1 ? (j->tasks + most - 1) / most : j->tasks;
}

/* Its largest share of the whole machine, in processors. */
static int64_t pe_of (const struct model_crowd *c, const struct model_job *j)
{
    double procs = 0, mem = 0, share;

    for (int n = 0; n < c->node_count; n++) {
        procs += c->node[n].procs;
        mem += c->node[n].mem;
    }
    share = (double)procs_of (j) / procs;
    if ((double)j->tasks * j->mem / mem > share)
        share = (double)j->tasks * j->mem / mem;
    return (int64_t)(share * procs * 1e6 + .5);
}

/* What it counts while `left` remains to it. */
static int64_t use_of (const struct model_crowd *c, const struct model_job *j, enum model_what what,
                       int64_t left)
{
    switch (what) {
    case MODEL_JOB:
        return 1;
    case MODEL_PROC:
    case MODEL_MINPROC:
        return procs_of (j);
    case MODEL_NODE:
        return nodes_of (c, j);
    case MODEL_PS:
        return procs_of (j) * left;
    case MODEL_PE:
        return pe_of (c, j);
    case MODEL_MEM:
        return (int64_t)j->tasks * j->mem;
    case MODEL_WC:
        return left;
    case MODEL_WHATS:
        break;
    }
    return 0;
}

static bool same (const struct model_job *a, const struct model_job *b, int kind)
{
    return kind < 0 || kind >= MODEL_CREDS || a->cred[kind] == b->cred[kind];
}

/* The sum over all who count, of the job's own credential of that kind and of the other. */
static int64_t sum (const struct model_crowd *c, const struct model_job *j, int kind, int other,
                    enum model_what what, bool of_idle)
{
    int64_t all = 0;

    for (int i = 0; i < c->job_count && what != MODEL_MINPROC; i++) {
        const struct model_job *o = &c->job[i];
        if (c->until[i] && same (o, j, kind) && same (o, j, other))
            all += use_of (c, o, what, of_idle ? o->limit : c->until[i] - c->at);
    }
    return all;
}

/* The same thing said for the job's own credential, or for its own other one. */
static bool said_apart (const struct model_rule *rule, const struct model_limit *l,
                        const struct model_job *j, bool of_other)
{
    for (int i = 0; i < rule->limit_count; i++) {
        const struct model_limit *o = &rule->limit[i];
        bool alike = o->whose == l->whose && o->what == l->what && o->idle == l->idle &&
                     o->other_kind == l->other_kind;
        if (alike && !of_other && o->id == j->cred[l->whose] && o->other_id == l->other_id)
            return true;
        if (alike && of_other && (o->id == j->cred[l->whose] || o->id == MODEL_EACH) &&
            o->other_id == j->cred[l->other_kind])
            return true;
    }
    return false;
}

static bool overridden (const struct model_rule *rule, const struct model_limit *l,
                        const struct model_job *j)
{
    for (int i = 0; i < rule->limit_count; i++) {
        const struct model_limit *o = &rule->limit[i];
        if (o->whose == MODEL_OVERRIDE && o->id == j->cred[MODEL_QOS] && o->what == l->what &&
            o->idle == l->idle)
            return true;
    }
    return false;
}

/* Is it a limit of this job's own, or of everybody's? */
static bool concerns (const struct model_rule *rule, const struct model_limit *l,
                      const struct model_job *j)
{
    bool plain = l->other_kind < 0;

    if (l->whose == MODEL_SYSTEM || l->whose == MODEL_EACH_JOB)
        return true;
    if (rule->free_qos >> j->cred[MODEL_QOS] & 1)
        return false;
    if (l->whose == MODEL_OVERRIDE)
        return l->id == j->cred[MODEL_QOS];
    if (j->cred[l->whose] < 0 || (l->id != MODEL_EACH && l->id != j->cred[l->whose]) ||
        (l->id == MODEL_EACH && said_apart (rule, l, j, false)))
        return false;
    if (plain)
        return l->whose == MODEL_QOS || !overridden (rule, l, j);
    if (j->cred[l->other_kind] < 0)
        return false;
    return l->other_id == MODEL_EACH ? !said_apart (rule, l, j, true)
                                     : l->other_id == j->cred[l->other_kind];
}

static bool keeps (const struct model_crowd *c, const struct model_limit *l,
                   const struct model_job *j, int kind, bool soft)
{
    int64_t most = soft ? l->soft : l->hard, own = use_of (c, j, l->what, j->limit);

    if (l->what == MODEL_MINPROC)
        return own >= most;
    return sum (c, j, kind, l->other_kind, l->what, l->idle) + own <= most;
}

bool model_within (const struct model_crowd *c, int index, bool of_idle, bool soft)
{
    const struct model_job *j = &c->job[index];

    for (int i = 0; i < c->rule->limit_count; i++) {
        const struct model_limit *l = &c->rule->limit[i];
        if (l->idle != of_idle || l->whose == MODEL_EACH_JOB || !concerns (c->rule, l, j))
            continue;
        if (l->whose != MODEL_OVERRIDE) {
            if (!keeps (c, l, j, l->whose, soft))
                return false;
            continue;
        }
        for (int kind = MODEL_USER; kind < MODEL_QOS; kind++) {
            if (j->cred[kind] >= 0 && !keeps (c, l, j, kind, soft))
                return false;
        }
    }
    return true;
}

bool model_alone (const struct model_crowd *c, int index)
{
    const struct model_job *j = &c->job[index];

    for (int i = 0; i < c->rule->limit_count; i++) {
        const struct model_limit *l = &c->rule->limit[i];
        if (l->whose == MODEL_EACH_JOB && use_of (c, j, l->what, j->limit) > l->hard)
            return false;
    }
    return true;
}

bool model_timed (const struct model_rule *rule)
{
    for (int i = 0; i < rule->limit_count; i++) {
        const struct model_limit *l = &rule->limit[i];
        if (!l->idle && l->whose != MODEL_EACH_JOB && (l->what == MODEL_PS || l->what == MODEL_WC))
            return true;
    }
    return false;
}
