/* sets: lists of hosts, node sets, switches, and the groups of candidate sets made of them.
 *
 * A job that may run in several partitions, but only in one at a time, or whose nodes have to be alike
 * (NODESETPOLICY) has a group of candidate sets; one of them must do for the whole job. Where a node
 * set is only wished for, what the wish is about is a candidate too, of a later rank. */
#include "local/core/state.h"

#include <assert.h>
#include <stdlib.h>

/* --- lists of hosts ------------------------------------------------------------------------- */

struct bitset node_bits_new (uint32_t count)
{
    struct bitset bits = {count, mem_zero (bitset_words (count) + 1, sizeof *bits.word)};

    return bits;
}

static bool has (const struct bitset *bits, uint32_t node)
{
    return node < bits->bit_count && bitset_test (bits, node);
}

bool hosts_have (const struct cluster *c, uint32_t hosts, uint32_t node)
{
    assert (hosts <= c->groups.hosts_count);
    return has (&c->groups.hosts[hosts - 1].nodes, node);
}

/* --- node sets ------------------------------------------------------------------------------ */

void switches_free (struct group_table *t)
{
    for (uint32_t i = 0; i < t->switch_count; i++)
        free (t->switches[i].nodes.word);
    free (t->switches);
    t->switches = NULL;
    t->switch_count = 0;
}

bool cluster_switch_has (const struct cluster *c, uint32_t at, struct node_id node,
                         uint32_t *level_out)
{
    const struct switch_set *s = c->groups.switches + at;

    if (at >= c->groups.switch_count || node.v >= s->nodes.bit_count ||
        !bitset_test (&s->nodes, node.v))
        return false;
    if (level_out)
        *level_out = s->level;
    return true;
}

/* --- groups --------------------------------------------------------------------------------- */

uint32_t group_intern (struct cluster *c, uint64_t partitions, uint32_t pdef, uint32_t nodeset)
{
    struct group_table *t = &c->groups;

    for (uint32_t i = 0; i < t->count; i++) {
        if (t->group[i].partitions == partitions && t->group[i].pdef == pdef &&
            t->group[i].nodeset == nodeset)
            return i + 1;
    }
    t->group = mem_grow (t->group, &t->cap, t->count + 1, sizeof *t->group);
    memset (&t->group[t->count], 0, sizeof *t->group);
    t->group[t->count].partitions = partitions;
    t->group[t->count].pdef = pdef;
    t->group[t->count].nodeset = nodeset;
    return ++t->count;
}

static void group_clear (struct node_group *g)
{
    for (uint32_t i = 0; i < g->count; i++)
        free (g->set[i].nodes.word);
    free (g->set);
    free (g->first);
    free (g->member);
    free (g->all.word);
    g->set = NULL;
    g->first = g->member = NULL;
    g->all.word = NULL;
    g->count = 0;
}

void groups_free (struct cluster *c)
{
    struct group_table *t = &c->groups;

    for (uint32_t i = 0; i < t->count; i++)
        group_clear (&t->group[i]);
    for (uint32_t i = 0; i < t->nodeset_count; i++)
        free ((void *)t->nodeset[i].value);
    for (uint32_t i = 0; i < t->hosts_count; i++)
        free (t->hosts[i].nodes.word);
    switches_free (t);
    free (t->group);
    free (t->nodeset);
    free (t->hosts);
}

/* One candidate in the making: which nodes of a partition (PARTITION_ANY: of all) belong to it. */
struct maker {
    struct cluster *c;
    struct node_group *g;
    uint32_t cap;
    uint32_t partition;
    uint32_t rank;
};

static struct node_group_set *set_begin (struct maker *m, uint32_t rank)
{
    struct node_group_set *set;

    m->g->set = mem_grow (m->g->set, &m->cap, m->g->count + 1, sizeof *m->g->set);
    set = &m->g->set[m->g->count];
    *set = (struct node_group_set){.nodes = node_bits_new (m->c->node_count), .rank = rank};
    return set;
}

/* Kept if there is any node in it. */
static void set_end (struct maker *m)
{
    struct node_group_set *set = &m->g->set[m->g->count];
    int64_t slowest = INT64_MAX, fastest = 0;

    for (uint32_t n = bitset_next (&set->nodes, 0); n < m->c->node_count;
         n = bitset_next (&set->nodes, n + 1)) {
        int64_t speed = m->c->node[n].speed_ppm;
        slowest = speed < slowest ? speed : slowest;
        fastest = speed > fastest ? speed : fastest;
    }
    if (slowest == INT64_MAX) {
        free (set->nodes.word);
        return;
    }
    set->slowest_ppm = (int32_t)slowest;
    set->loss_ppm = (fastest - slowest) * 1000000 / slowest;
    m->g->count++;
}

static bool inside (const struct maker *m, uint32_t node)
{
    return m->partition == PARTITION_ANY || m->c->node[node].partition == m->partition;
}

static void set_feature (struct maker *m, struct node_group_set *set, uint32_t feature)
{
    for (uint32_t n = 0; n < m->c->node_count; n++) {
        if (inside (m, n) && (m->c->node[n].features.word[feature / 64] >> (feature % 64) & 1))
            bitset_set (&set->nodes, n);
    }
}

static void set_speed (struct maker *m, struct node_group_set *set, int64_t least, int64_t most)
{
    for (uint32_t n = 0; n < m->c->node_count; n++) {
        int64_t speed = m->c->node[n].speed_ppm;
        if (inside (m, n) && speed >= least && speed <= most)
            bitset_set (&set->nodes, n);
    }
}

static void set_switch (struct maker *m, struct node_group_set *set, uint32_t number)
{
    const struct bitset *nodes = &m->c->groups.switches[number].nodes;

    for (uint32_t n = 0; n < m->c->node_count; n++) {
        if (inside (m, n) && has (nodes, n))
            bitset_set (&set->nodes, n);
    }
}

static void set_add (struct maker *m, struct node_group_set *set, const struct nodeset *s,
                     uint32_t value)
{
    switch (s->attribute) {
    case NODESET_FEATURE:
        set_feature (m, set, value);
        break;
    case NODESET_SPEED:
        set_speed (m, set, value, value + (int64_t)value * s->tolerance_ppm / 1000000);
        break;
    case NODESET_SWITCH:
        if (value < m->c->groups.switch_count)
            set_switch (m, set, value);
        break;
    }
}

static int value_compare (const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* All features, speeds or switches there are, where the list names none. The caller frees it. */
static uint32_t *values_all (const struct cluster *c, const struct nodeset *s, uint32_t *count)
{
    uint32_t most = s->attribute == NODESET_FEATURE  ? FEATURES_MAX
                    : s->attribute == NODESET_SWITCH ? c->groups.switch_count
                                                     : c->node_count;
    uint32_t *list = mem_zero (most + 1, sizeof *list), n = 0, kept = 0;

    for (uint32_t i = 0; i < most; i++)
        list[n++] = s->attribute == NODESET_SPEED ? (uint32_t)c->node[i].speed_ppm : i;
    qsort (list, n, sizeof *list, value_compare);
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || list[kept - 1] != list[i])
            list[kept++] = list[i];
    }
    *count = kept;
    return list;
}

/* ANYOF is no choice: all nodes of any of the sets. Of speeds: from the least to the most named. */
static void sets_united (struct maker *m, const struct nodeset *s, const uint32_t *value,
                         uint32_t count)
{
    struct node_group_set *set = set_begin (m, m->rank);
    uint32_t least = UINT32_MAX, most = 0;

    for (uint32_t i = 0; i < count && s->attribute != NODESET_SPEED; i++)
        set_add (m, set, s, value[i]);
    for (uint32_t i = 0; i < count; i++) {
        least = value[i] < least ? value[i] : least;
        most = value[i] > most ? value[i] : most;
    }
    if (s->attribute == NODESET_SPEED)
        set_speed (m, set, least, most + (int64_t)most * s->tolerance_ppm / 1000000);
    set_end (m);
}

static uint32_t level_of (const struct cluster *c, const struct nodeset *s, uint32_t value)
{
    return s->attribute == NODESET_SWITCH && value < c->groups.switch_count
               ? c->groups.switches[value].level
               : 0;
}

static void sets_made (struct maker *m, const struct nodeset *s)
{
    uint32_t count = s->count, *all = s->count ? NULL : values_all (m->c, s, &count), deepest = 0;
    const uint32_t *value = all ? all : s->value;

    if (s->policy == NODESET_ANYOF) {
        sets_united (m, s, value, count);
    } else {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t level = level_of (m->c, s, value[i]);
            deepest = level > deepest ? level : deepest;
            set_add (m, set_begin (m, m->rank + level), s, value[i]);
            set_end (m);
        }
    }
    m->rank += deepest + 1;
    free (all);
}

/* The sets within one partition; then the partition itself, where that will do as well. */
static void partition_sets (struct maker *m)
{
    const struct nodeset *s =
        m->g->nodeset == NODESET_NONE ? NULL : &m->c->groups.nodeset[m->g->nodeset - 1];

    if (s)
        sets_made (m, s);
    if (s == NULL || !s->mandatory) {
        struct node_group_set *set = set_begin (m, m->rank);
        for (uint32_t n = 0; n < m->c->node_count; n++) {
            if (inside (m, n))
                bitset_set (&set->nodes, n);
        }
        set_end (m);
    }
    m->rank++;
}

static void members_list (struct cluster *c, struct node_group *g)
{
    uint32_t total = 0;

    g->all = node_bits_new (c->node_count);
    g->first = mem_zero (c->node_count + 1, sizeof *g->first);
    for (uint32_t i = 0; i < g->count; i++)
        total += bitset_count (&g->set[i].nodes);
    g->member = mem_zero (total + 1, sizeof *g->member);
    total = 0;
    for (uint32_t n = 0; n < c->node_count; n++) {
        g->first[n] = total;
        for (uint32_t i = 0; i < g->count; i++) {
            if (bitset_test (&g->set[i].nodes, n))
                g->member[total++] = i;
        }
        if (total > g->first[n])
            bitset_set (&g->all, n);
    }
    g->first[c->node_count] = total;
}

struct node_group *group_refresh (struct cluster *c, uint32_t group)
{
    struct node_group *g = &c->groups.group[group - 1];
    struct maker m = {.c = c, .g = g};

    if (g->serial == c->node_serial)
        return g;
    group_clear (g);
    g->serial = c->node_serial;
    if (g->nodeset != NODESET_NONE) {
        g->priority = c->groups.nodeset[g->nodeset - 1].priority;
        g->named = c->groups.nodeset[g->nodeset - 1].count > 0;
        g->first_of = c->groups.nodeset[g->nodeset - 1].policy == NODESET_FIRSTOF;
    }
    if (g->partitions == 0) {
        partition_sets (&m);
    } else {
        if (g->pdef && (g->partitions & partition_bit (g->pdef))) {
            m.partition = g->pdef;
            partition_sets (&m);
        }
        for (uint32_t p = 1; p <= PARTITIONS_MAX; p++) {
            m.partition = p;
            if ((g->partitions & partition_bit (p)) && p != g->pdef)
                partition_sets (&m);
        }
    }
    members_list (c, g);
    return g;
}
