/* policy_place: partitions, classes and node priorities of a policy */
#include "local/core/policy.h"

#include <assert.h>

/* --- partitions ---------------------------------------------------------------------------- */

static const enum cred_kind plist_order[] = {CRED_USER, CRED_GROUP, CRED_ACCOUNT, CRED_CLASS,
                                             CRED_QOS};
enum { PLISTS = sizeof plist_order / sizeof plist_order[0] };

/* One list after the other, the system's last: a list with ^ alone decides, one with & must contain
 * the partition as well, all others add up. */
uint64_t policy_partitions (const struct policy *p, const uint32_t cred[CRED_KINDS],
                            uint32_t *pdef_out, bool *none_out)
{
    uint64_t any = 0, every = UINT64_MAX;
    bool said = false;

    *pdef_out = 0;
    *none_out = false;
    for (uint32_t i = 0; i <= PLISTS; i++) {
        const struct policy_cred *c = NULL;
        uint64_t list = p->system_plist;
        uint32_t pdef = p->system_pdef;
        enum qlist_mode mode = p->system_plist_mode;
        if (i < PLISTS) {
            if (cred[plist_order[i]] == CRED_NONE)
                continue;
            c = policy_cred (p, plist_order[i], cred[plist_order[i]]);
            list = c->plist;
            pdef = c->pdef;
            mode = c->plist_mode;
        }
        if (*pdef_out == 0)
            *pdef_out = pdef;
        if (list == 0)
            continue;
        said = true;
        if (mode == QLIST_EXCLUSIVE)
            return list;
        if (mode == QLIST_INTERSECT)
            every &= list;
        else
            any |= list;
    }
    if (!said)
        return 0;
    any = any ? any & every : every;
    *none_out = any == 0;
    return any;
}

/* --- classes ------------------------------------------------------------------------------- */

static const struct policy_class *class_of (const struct policy *p, uint32_t class)
{
    return class == CRED_NONE ? NULL : policy_cred (p, CRED_CLASS, class)->class;
}

struct policy_class *policy_class_edit (struct policy *p, struct policy_cred *cred)
{
    assert (!p->sealed);
    if (cred->class == NULL) {
        cred->class = arena_new (p->arena, struct policy_class);
        cred->class->min_wall_s = cred->class->max_wall_s = -1;
        cred->class->min_procs = cred->class->max_procs = -1;
        cred->class->min_nodes = cred->class->max_nodes = -1;
        cred->class->max_ps = cred->class->default_wall_s = -1;
    }
    return cred->class;
}

static void bound_inherit (int64_t *own, int64_t from)
{
    if (*own < 0)
        *own = from;
}

static void text_inherit (const char **own, const char *from)
{
    if (*own == NULL)
        *own = from;
}

void policy_class_inherit (struct policy_cred *cred, const struct policy_cred *default_)
{
    struct policy_class *own = cred->class;
    const struct policy_class *from = default_->class;

    if (from == NULL)
        return;
    if (own == NULL) {
        cred->class = default_->class;
        return;
    }
    bound_inherit (&own->min_wall_s, from->min_wall_s);
    bound_inherit (&own->max_wall_s, from->max_wall_s);
    bound_inherit (&own->min_procs, from->min_procs);
    bound_inherit (&own->max_procs, from->max_procs);
    bound_inherit (&own->min_nodes, from->min_nodes);
    bound_inherit (&own->max_nodes, from->max_nodes);
    bound_inherit (&own->max_ps, from->max_ps);
    bound_inherit (&own->default_wall_s, from->default_wall_s);
    for (int k = 0; k < CRED_KINDS; k++) {
        if (own->required[k].count == 0)
            own->required[k] = from->required[k];
        if (own->excluded[k].count == 0)
            own->excluded[k] = from->excluded[k];
    }
    text_inherit (&own->host_list, from->host_list);
    text_inherit (&own->default_features, from->default_features);
    text_inherit (&own->exclude_features, from->exclude_features);
    text_inherit (&own->nodeset, from->nodeset);
    if (own->node_access == 0)
        own->node_access = from->node_access;
}

int64_t policy_default_wall_s (const struct policy *p, uint32_t class)
{
    const struct policy_class *own = class_of (p, class);

    return own && own->default_wall_s > 0 ? own->default_wall_s : p->default_wall_s;
}

static bool list_has (const struct policy_list *list, uint32_t id)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->id[i] == id)
            return true;
    }
    return false;
}

static enum class_rule people_check (const struct policy_class *own,
                                     const uint32_t cred[CRED_KINDS], enum cred_kind *kind_out)
{
    for (int k = 0; k < CRED_KINDS; k++) {
        *kind_out = (enum cred_kind)k;
        if (own->required[k].count && !list_has (&own->required[k], cred[k]))
            return CLASS_REQUIRED;
        if (list_has (&own->excluded[k], cred[k]))
            return CLASS_EXCLUDED;
    }
    return CLASS_ADMITS;
}

enum class_rule policy_class_check (const struct policy *p, const uint32_t cred[CRED_KINDS],
                                    int64_t wall_s, int64_t procs, int64_t nodes,
                                    int64_t *bound_out, enum cred_kind *kind_out)
{
    const struct policy_class *own = class_of (p, cred[CRED_CLASS]);

    if (own == NULL)
        return CLASS_ADMITS;
    const struct {
        enum class_rule rule;
        int64_t value, bound;
        bool least;
    } bounds[] = {
        {CLASS_MIN_WALL, wall_s, own->min_wall_s, true},
        {CLASS_MAX_WALL, wall_s, own->max_wall_s, false},
        {CLASS_MIN_PROC, procs, own->min_procs, true},
        {CLASS_MAX_PROC, procs, own->max_procs, false},
        {CLASS_MIN_NODE, nodes, own->min_nodes, true},
        {CLASS_MAX_NODE, nodes, own->max_nodes, false},
        {CLASS_MAX_PS, wall_s > INT64_MAX / (procs + 1) ? INT64_MAX : wall_s * procs, own->max_ps,
         false},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        *bound_out = bounds[i].bound;
        if (bounds[i].bound >= 0 && (bounds[i].least ? bounds[i].value < bounds[i].bound
                                                     : bounds[i].value > bounds[i].bound))
            return bounds[i].rule;
    }
    return people_check (own, cred, kind_out);
}

const char *class_rule_name (enum class_rule rule)
{
    static const char *const name[] = {
        [CLASS_ADMITS] = "admitted",      [CLASS_MIN_WALL] = "MIN.WCLIMIT",
        [CLASS_MAX_WALL] = "MAX.WCLIMIT", [CLASS_MIN_PROC] = "MIN.PROC",
        [CLASS_MAX_PROC] = "MAX.PROC",    [CLASS_MIN_NODE] = "MIN.NODE",
        [CLASS_MAX_NODE] = "MAX.NODE",    [CLASS_MAX_PS] = "MAX.PS",
        [CLASS_REQUIRED] = "REQUIRED",    [CLASS_EXCLUDED] = "EXCLUDE",
    };

    assert (rule <= CLASS_EXCLUDED);
    return name[rule];
}

/* --- PRIORITYF ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool dynamic;
} term_info[NODE_TERMS] = {
    [TERM_CPROCS] = {"CPROCS", false},
    [TERM_CMEM] = {"CMEM", false},
    [TERM_CSWAP] = {"CSWAP", false},
    [TERM_CDISK] = {"CDISK", false},
    [TERM_APROCS] = {"APROCS", true},
    [TERM_AMEM] = {"AMEM", true},
    [TERM_ASWAP] = {"ASWAP", true},
    [TERM_ADISK] = {"ADISK", true},
    [TERM_JOBCOUNT] = {"JOBCOUNT", true},
    [TERM_LOAD] = {"LOAD", true},
    [TERM_PREF] = {"PREF", false},
    [TERM_PRIORITY] = {"PRIORITY", false},
    [TERM_RESAFFINITY] = {"RESAFFINITY", false},
    [TERM_SPEED] = {"SPEED", false},
    [TERM_USAGE] = {"USAGE", true},
    [TERM_ONE] = {"1", false},
};

bool node_term_dynamic (enum node_term term)
{
    assert (term < NODE_TERMS);
    return term_info[term].dynamic;
}

const char *node_term_name (enum node_term term)
{
    assert (term < NODE_TERMS);
    return term_info[term].name;
}
