/* needs: what a site's classes, partitions and access policies add to what a req asks. */
#include "local/core/state.h"

static const struct class_spec *class_of (const struct cluster *c, const uint32_t *cred)
{
    if (cred == NULL || cred[CRED_CLASS] >= c->class_cap || !c->class_rec[cred[CRED_CLASS]].known)
        return NULL;
    return &c->class_rec[cred[CRED_CLASS]].spec;
}

static bool features_any (const struct features *f)
{
    uint64_t any = 0;

    for (uint32_t w = 0; w < FEATURES_MAX / 64; w++)
        any |= f->word[w];
    return any != 0;
}

static bool qos_says (const struct cluster *c, const uint32_t *cred, uint32_t flag)
{
    const struct policy_qos *qos = policy_qos (c->policy, cred[CRED_QOS]);

    return qos && (qos->flags & flag);
}

static void class_add (const struct cluster *c, const struct class_spec *class,
                       const uint32_t *cred, struct req *out, struct needs *needs)
{
    if (class->bit != UINT8_MAX)
        needs->classes = UINT64_C (1) << class->bit;
    if (class->column)
        out->task.v[class->column] += class->initiators;
    needs->class_hosts = qos_says (c, cred, QOS_IGNHOSTLIST) ? 0 : class->hosts;
    if (!features_any (&out->features))
        out->features = class->features;
    for (uint32_t w = 0; w < FEATURES_MAX / 64; w++)
        out->exclude.word[w] |= class->exclude.word[w];
}

/* QOSFEATURES: beside what the job asks for. */
static void qos_add (const struct cluster *c, const uint32_t *cred, struct req *out)
{
    if (cred == NULL || cred[CRED_QOS] >= c->qos_features_cap)
        return;
    for (uint32_t w = 0; w < FEATURES_MAX / 64; w++)
        out->features.word[w] |= c->qos_features[cred[CRED_QOS]].word[w];
}

static bool spans (const struct cluster *c, const uint32_t *cred)
{
    /* a reservation lies where it lies */
    return cred == NULL || qos_says (c, cred, QOS_SPAN);
}

/* Which partitions; the choice among several, where they may not be mixed, is the group's. */
static uint64_t partitions_of (const struct cluster *c, const struct req *in, const uint32_t *cred,
                               uint32_t *pdef)
{
    uint64_t mask = in->partitions ? in->partitions : UINT64_MAX, listed = 0;
    bool none = false;

    *pdef = 0;
    if (in->partition != PARTITION_ANY)
        mask &= partition_bit (in->partition);
    if (cred)
        listed = policy_partitions (c->policy, cred, pdef, &none);
    if (listed)
        mask &= listed;
    if (none || (mask & c->partition_mask) == 0)
        return NOWHERE;
    return mask & c->partition_mask;
}

static uint32_t sharing_of (const struct cluster *c, const struct req *in,
                            const struct class_spec *class)
{
    if (in->access != ACCESS_SITE)
        return in->access;
    if (class && class->access != ACCESS_SITE)
        return class->access;
    return (uint32_t)c->policy->node_access;
}

void needs_resolve (struct cluster *c, const struct req *in, const uint32_t *cred, struct req *out,
                    struct needs *needs)
{
    const struct class_spec *class = class_of (c, cred);
    uint32_t pdef, nodeset = in->nodeset;
    uint64_t mask = partitions_of (c, in, cred, &pdef);
    bool choice;

    *out = *in;
    out->tasks = 0;
    memset (needs, 0, sizeof *needs);
    if (class)
        class_add (c, class, cred, out, needs);
    qos_add (c, cred, out);
    needs->access = sharing_of (c, in, class);
    out->exclusive = in->exclusive || needs->access >= ACCESS_SINGLEJOB;
    out->access = ACCESS_SITE;
    out->partition = PARTITION_ANY;
    out->partitions = 0;
    if (mask != c->partition_mask)
        needs->partitions = mask;
    if (nodeset == NODESET_SITE && class)
        nodeset = class->nodeset;
    if (nodeset == NODESET_SITE)
        nodeset = cred ? c->groups.site : NODESET_NONE;
    out->nodeset = NODESET_SITE;
    choice = (mask & (mask - 1)) && !spans (c, cred);
    if (choice || nodeset != NODESET_NONE)
        needs->group = group_intern (c, choice ? mask : 0, choice ? pdef : 0, nodeset);
    if (c->sharing && cred)
        needs->owner = cred[CRED_USER] == CRED_NONE ? UINT32_MAX : cred[CRED_USER] + 1;
}

/* --- who shares ----------------------------------------------------------------------------- */

void needs_sharing (struct cluster *c)
{
    bool sharing = c->sharing_asked || c->policy->node_access == ACCESS_SINGLEUSER;

    for (uint32_t i = 0; i < c->class_cap && !sharing; i++)
        sharing = c->class_rec[i].known && c->class_rec[i].spec.access == ACCESS_SINGLEUSER;
    for (uint32_t n = 0; n < c->node_count && !sharing; n++)
        sharing = c->node[n].max_jobs_per_user || c->node[n].max_procs_per_user;
    c->needs_stale = c->needs_stale || sharing != c->sharing;
    c->sharing = sharing;
}

/* --- nodes ---------------------------------------------------------------------------------- */

bool needs_met (const struct cluster *c, const struct shape *s, uint32_t node)
{
    const struct node_spec *spec = &c->node[node];

    if (s->needs.partitions && !(s->needs.partitions & partition_bit (spec->partition)))
        return false;
    if (spec->speed_ppm < s->needs.speed_ppm)
        return false;
    if (spec->classes && (s->needs.classes & ~spec->classes))
        return false;
    for (uint32_t w = 0; w < FEATURES_MAX / 64; w++) {
        if ((s->req.features.word[w] & ~spec->features.word[w]) ||
            (s->req.exclude.word[w] & spec->features.word[w]))
            return false;
    }
    if (s->req.node_procs && (uint32_t)spec->configured.v[RES_PROCS] != s->req.node_procs)
        return false;
    if (s->req.hosts && !hosts_have (c, s->req.hosts, node))
        return false;
    return !s->needs.class_hosts || hosts_have (c, s->needs.class_hosts, node);
}

uint32_t shape_fit_special (const struct cluster *c, const struct shape *s, uint32_t node,
                            const int32_t *free_row, uint32_t fit)
{
    if (s->req.exclusive &&
        memcmp (free_row, c->cap + (size_t)node * c->dims, c->dims * sizeof *free_row) != 0)
        return 0;
    if (c->job_column && free_row[c->job_column] < 1)
        return 0;
    if (s->needs.access == ACCESS_SINGLETASK && fit > 1)
        return 1;
    return fit;
}
