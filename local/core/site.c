/* What the site defines: classes, priority functions, host lists, node sets, switches, licences. Events; what is made of
 * it is in needs.c, sets.c and licence.c. */
#include <stdlib.h>
#include <string.h>

#include "local/core/state.h"

int cluster_licences_set (struct cluster *c, const int32_t *total, uint32_t kinds, time_us now,
                          struct err *err)
{
    if (kinds > LICENCES_MAX || kinds < c->licence_kinds)
        return err_set (err, ERR_LIMIT, "%u kinds of licences, must be %u to %d", kinds,
                        c->licence_kinds, LICENCES_MAX);
    for (uint32_t k = 0; k < kinds; k++) {
        if (total[k] < 0)
            return err_set (err, ERR_INVALID, "licence %u: %d of them", k, total[k]);
    }
    event_begin (c, now);
    for (uint32_t k = 0; k < kinds; k++) {
        c->node_serial += c->licence_total[k] != total[k]; /* who fits at all is asked again */
        c->licence_free[k] += total[k] - c->licence_total[k];
        c->licence_total[k] = total[k];
    }
    c->licence_kinds = kinds;
    c->lasting++;
    c->version++;
    event_frees (c);
    return 0;
}

/* A change after which the same reqs may mean something else. */
static void needs_changed (struct cluster *c)
{
    c->needs_stale = true;
    c->nodes_dirty = true;
    c->version++;
    event_frees (c);
}

int cluster_class_set (struct cluster *c, uint32_t class, const struct class_spec *spec,
                       time_us now, struct err *err)
{
    uint32_t had = c->class_cap;

    if (class == CRED_NONE || (spec->bit != UINT8_MAX && spec->bit >= 64))
        return err_set (err, ERR_INVALID, "class %u: bit %u, at most 63", class, spec->bit);
    if (spec->column && (spec->column < RES_GRES0 || spec->column >= c->dims))
        return err_set (err, ERR_INVALID, "class %u: column %u is not in use", class, spec->column);
    event_begin (c, now);
    if (class >= had) {
        c->class_rec = mem_grow (c->class_rec, &c->class_cap, class + 1, sizeof *c->class_rec);
        memset (c->class_rec + had, 0, (c->class_cap - had) * sizeof *c->class_rec);
    }
    if (c->class_rec[class].known && memcmp (&c->class_rec[class].spec, spec, sizeof *spec) == 0)
        return 0;
    c->class_rec[class] = (struct class_rec){true, *spec};
    needs_changed (c);
    return 0;
}

int cluster_qos_set (struct cluster *c, uint32_t qos, const struct features *features, time_us now,
                     struct err *err)
{
    static const struct features none;
    uint32_t had = c->qos_features_cap;

    if (qos == CRED_NONE)
        return err_set (err, ERR_INVALID, "no QoS");
    event_begin (c, now);
    if (memcmp (qos < had ? &c->qos_features[qos] : &none, features, sizeof *features) == 0)
        return 0;
    if (qos >= had) {
        c->qos_features =
            mem_grow (c->qos_features, &c->qos_features_cap, qos + 1, sizeof *c->qos_features);
        memset (c->qos_features + had, 0, (c->qos_features_cap - had) * sizeof *c->qos_features);
    }
    c->qos_features[qos] = *features;
    needs_changed (c);
    return 0;
}

int cluster_priority_fn_define (struct cluster *c, const struct node_priority *fn, uint32_t *id_out,
                                struct err *err)
{
    (void)err;
    for (uint32_t i = 0; i < c->priority_fn_count; i++) {
        if (memcmp (&c->priority_fn[i], fn, sizeof *fn) == 0) {
            *id_out = i + 1;
            return 0;
        }
    }
    c->priority_fn = mem_grow (c->priority_fn, &c->priority_fn_cap, c->priority_fn_count + 1,
                               sizeof *c->priority_fn);
    c->priority_fn[c->priority_fn_count] = *fn;
    c->usage_terms = c->usage_terms || fn->weight[TERM_USAGE] != 0;
    for (int t = 0; t < NODE_TERMS; t++)
        c->worth_moves =
            c->worth_moves || (fn->weight[t] != 0 && (node_term_dynamic ((enum node_term)t) ||
                                                      t == TERM_PREF || t == TERM_RESAFFINITY));
    *id_out = ++c->priority_fn_count;
    return 0;
}

int cluster_gres_kinds_set (struct cluster *c, uint32_t kinds, time_us now, struct err *err)
{
    uint32_t dims = RES_GRES0 + kinds;
    int32_t *cap, *left;

    if (dims > RES_MAX)
        return err_set (err, ERR_LIMIT,
                        "%u kinds of generic resources, class initiators and the like, at most %d",
                        kinds, RES_MAX - RES_GRES0);
    if (dims <= c->dims)
        return 0;
    event_begin (c, now);
    cap = mem_zero ((size_t)c->node_cap * dims + 1, sizeof *cap);
    left = mem_zero ((size_t)c->node_cap * dims + 1, sizeof *left);
    for (uint32_t n = 0; n < c->node_count; n++) {
        memcpy (cap + (size_t)n * dims, row (c, c->cap, n), c->dims * sizeof *cap);
        memcpy (left + (size_t)n * dims, row (c, c->free, n), c->dims * sizeof *left);
    }
    free (c->cap);
    free (c->free);
    c->cap = cap;
    c->free = left;
    c->dims = dims;
    needs_changed (c);
    return 0;
}

int cluster_job_column_set (struct cluster *c, uint32_t column, time_us now, struct err *err)
{
    if (column && (column < RES_GRES0 || column >= c->dims))
        return err_set (err, ERR_INVALID, "column %u for jobs is not in use", column);
    if (column == c->job_column)
        return 0;
    event_begin (c, now);
    for (uint32_t n = 0; n < c->node_count && column; n++)
        row (c, c->free, n)[column] -= (int32_t)c->node_jobs[n];
    for (uint32_t n = 0; n < c->node_count && c->job_column; n++)
        row (c, c->free, n)[c->job_column] += (int32_t)c->node_jobs[n];
    c->job_column = column;
    needs_changed (c);
    return 0;
}

/* The same nodes, whenever each was made: a list is as long as there were nodes then. */
static bool bits_same (const struct bitset *a, const struct bitset *b)
{
    const struct bitset *more = a->bit_count > b->bit_count ? a : b, *less = more == a ? b : a;
    uint32_t words = bitset_words (less->bit_count);

    if (memcmp (a->word, b->word, words * sizeof *a->word) != 0)
        return false;
    for (uint32_t i = words; i < bitset_words (more->bit_count); i++) {
        if (more->word[i] != 0)
            return false;
    }
    return true;
}

static int bits_from (const struct cluster *c, const struct node_id *node, uint32_t count,
                      struct bitset *out, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (node[i].v >= c->node_count)
            return err_set (err, ERR_NOT_FOUND, "node %u: there are %u", node[i].v, c->node_count);
    }
    *out = node_bits_new (c->node_count);
    for (uint32_t i = 0; i < count; i++)
        bitset_set (out, node[i].v);
    return 0;
}

int cluster_hosts_define (struct cluster *c, const struct node_id *node, uint32_t count,
                          uint32_t *id_out, struct err *err)
{
    struct group_table *t = &c->groups;
    struct bitset bits;
    int rc = bits_from (c, node, count, &bits, err);

    if (rc != 0)
        return rc;
    for (uint32_t i = 0; i < t->hosts_count; i++) {
        if (bits_same (&t->hosts[i].nodes, &bits)) {
            free (bits.word);
            *id_out = i + 1;
            return 0;
        }
    }
    t->hosts = mem_grow (t->hosts, &t->hosts_cap, t->hosts_count + 1, sizeof *t->hosts);
    t->hosts[t->hosts_count].nodes = bits;
    *id_out = ++t->hosts_count;
    return 0;
}

static bool nodeset_same (const struct nodeset *a, const struct nodeset *b)
{
    return a->policy == b->policy && a->attribute == b->attribute && a->priority == b->priority &&
           a->mandatory == b->mandatory && a->tolerance_ppm == b->tolerance_ppm &&
           a->count == b->count &&
           (a->count == 0 || memcmp (a->value, b->value, a->count * sizeof *a->value) == 0);
}

int cluster_nodeset_define (struct cluster *c, const struct nodeset *set, uint32_t *id_out,
                            struct err *err)
{
    struct group_table *t = &c->groups;

    for (uint32_t i = 0; i < set->count && set->attribute == NODESET_FEATURE; i++) {
        if (set->value[i] >= FEATURES_MAX)
            return err_set (err, ERR_INVALID, "node set: feature %u, at most %d", set->value[i],
                            FEATURES_MAX - 1);
    }
    if (set->tolerance_ppm < 0)
        return err_set (err, ERR_INVALID, "node set: the tolerance is negative");
    for (uint32_t i = 0; i < t->nodeset_count; i++) {
        if (nodeset_same (&t->nodeset[i], set)) {
            *id_out = i + 1;
            return 0;
        }
    }
    t->nodeset = mem_grow (t->nodeset, &t->nodeset_cap, t->nodeset_count + 1, sizeof *t->nodeset);
    t->nodeset[t->nodeset_count] = *set;
    t->nodeset[t->nodeset_count].value = mem_copy (set->value, set->count * sizeof *set->value);
    *id_out = ++t->nodeset_count;
    return 0;
}

int cluster_nodeset_site_set (struct cluster *c, uint32_t id, time_us now, struct err *err)
{
    if (id != NODESET_NONE && (id == NODESET_SITE || id > c->groups.nodeset_count))
        return err_set (err, ERR_INVALID, "node set %u: there are %u", id, c->groups.nodeset_count);
    if (c->groups.site == id)
        return 0;
    event_begin (c, now);
    c->groups.site = id;
    c->needs_stale = c->nodes_dirty = true;
    c->version++;
    event_frees (c);
    return 0;
}

int cluster_switches_set (struct cluster *c, const struct switch_spec *list, uint32_t count,
                          time_us now, struct err *err)
{
    struct switch_set *made = mem_zero (count + 1, sizeof *made);
    int rc = 0;

    event_begin (c, now);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        made[i].level = list[i].level;
        rc = bits_from (c, list[i].node, list[i].count, &made[i].nodes, err);
    }
    if (rc != 0) {
        for (uint32_t i = 0; i < count; i++)
            free (made[i].nodes.word);
        free (made);
        return rc;
    }
    switches_free (&c->groups);
    c->groups.switches = made;
    c->groups.switch_count = count;
    c->needs_stale = c->nodes_dirty = true;
    c->version++;
    event_frees (c);
    return 0;
}
