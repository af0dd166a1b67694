/* acl: whom one reservation's access list admits. */
#include "local/core/access.h"

static bool compared (uint8_t how, int64_t have, int64_t value)
{
    switch ((enum acl_compare)how) {
    case ACL_LE:
        return have <= value;
    case ACL_LT:
        return have < value;
    case ACL_EQ:
        return have == value;
    case ACL_NE:
        return have != value;
    case ACL_GE:
        return have >= value;
    case ACL_GT:
        return have > value;
    }
    return false;
}

static bool entry_matches (const struct acl_entry *e, const struct who *who)
{
    if (e->type < CRED_KINDS)
        return who->cred[e->type] != CRED_NONE && (int64_t)who->cred[e->type] == e->value;
    if (e->type == ACL_JOBATTR)
        return (who->attrs & (uint64_t)e->value) != 0;
    return compared (e->compare, e->type == ACL_DURATION ? who->walltime : (int64_t)who->procs,
                     e->value);
}

/* Of several entries that match, the one that attracts most counts. */
static bool list_admits (const struct rsv_spec *rsv, const struct who *who, uint8_t *affinity)
{
    bool ordinary = false, matched = false, required = false;

    *affinity = AFFINITIES;
    for (uint32_t i = 0; i < rsv->acl_count; i++) {
        const struct acl_entry *e = &rsv->acl[i];
        bool matches = entry_matches (e, who);
        if (e->deny && matches)
            return false;
        if (e->required && !matches)
            return false;
        required = required || e->required;
        if (e->deny || e->required)
            continue;
        ordinary = true;
        matched = matched || matches;
        if (matches && e->affinity < *affinity)
            *affinity = e->affinity;
    }
    if (*affinity == AFFINITIES)
        *affinity = AFFINITY_POSITIVE; /* required ones alone */
    return ordinary ? matched : required;
}

static bool names (const struct rsv_spec *rsv, struct rsv_id named)
{
    return named.v != 0 && (named.v == rsv->id.v || named.v == rsv->group);
}

bool access_admits (const struct rsv_spec *rsv, const struct who *who, uint8_t *affinity)
{
    if ((rsv->flags & RSV_BYNAME) && !names (rsv, who->named))
        return false;
    if ((rsv->flags & RSV_META) && !(who->attrs & JOBATTR_GRID))
        return false;
    if (list_admits (rsv, who, affinity) ||
        (rsv->owned && entry_matches (&rsv->owner, who) && (*affinity = AFFINITY_POSITIVE, true)))
        return true;
    *affinity = AFFINITY_PREEMPTIBLE;
    return (rsv->flags & RSV_PREEMPTEE) && (who->attrs & JOBATTR_PREEMPTOR);
}
