/* copy: copies nodes, switches, sets and what the site defines from one cluster to another; jobs
 * are the caller's to copy. The estimator's draws (replay.c) and the daemon's jobs.c call it.
 * The first cluster is only read, so that no estimate ever changes what is real. */
#include "local/core/copy.h"

#include <stdlib.h>

#include "local/core/state.h"

/* What nodes refer to. */
static int kinds_copy (const struct cluster *from, struct cluster *to, time_us now, struct err *err)
{
    int rc = cluster_gres_kinds_set (to, from->dims - RES_GRES0, now, err);

    for (uint32_t i = 0; i < from->priority_fn_count && rc == 0; i++) {
        uint32_t fn;
        rc = cluster_priority_fn_define (to, &from->priority_fn[i], &fn, err);
    }
    return rc;
}

int cluster_copy_nodes (const struct cluster *from, struct cluster *to, uint32_t most, time_us now,
                        struct err *err)
{
    uint32_t first = to->node_count, left = from->node_count - first;
    int rc = first == 0 ? kinds_copy (from, to, now, err) : 0;

    for (uint32_t i = first; i < first + (left < most ? left : most) && rc == 0; i++) {
        struct node_id id;
        rc = cluster_node_add (to, &from->node[i], now, &id, err);
        if (rc == 0 && from->node_state[i] != NODE_UP)
            rc = cluster_node_state_set (to, id, (enum node_state)from->node_state[i], now, err);
        if (rc == 0 && from->load_milli[i])
            rc = cluster_node_load_set (to, id, from->load_milli[i], now, err);
    }
    return rc;
}

static uint32_t bits_list (const struct bitset *bits, uint32_t node_count, struct node_id *out)
{
    uint32_t count = 0;

    for (uint32_t n = 0; n < node_count && n < bits->bit_count; n++) {
        if (bitset_test (bits, n))
            out[count++].v = n;
    }
    return count;
}

/* In the order of their ids, which are the same then. */
static int sets_copy (const struct cluster *from, struct cluster *to, struct node_id *list,
                      time_us now, struct err *err)
{
    const struct group_table *t = &from->groups;
    uint32_t id;
    int rc = 0;

    for (uint32_t i = 0; i < t->hosts_count && rc == 0; i++)
        rc = cluster_hosts_define (to, list, bits_list (&t->hosts[i].nodes, from->node_count, list),
                                   &id, err);
    for (uint32_t i = 0; i < t->nodeset_count && rc == 0; i++)
        rc = cluster_nodeset_define (to, &t->nodeset[i], &id, err);
    if (rc == 0)
        rc = cluster_nodeset_site_set (to, t->site, now, err);
    return rc;
}

static int switches_copy (const struct cluster *from, struct cluster *to, time_us now,
                          struct err *err)
{
    const struct group_table *t = &from->groups;
    struct switch_spec *spec = mem_zero (t->switch_count + 1, sizeof *spec);
    struct node_id *list = mem_zero ((size_t)t->switch_count * from->node_count + 1, sizeof *list);
    int rc;

    for (uint32_t i = 0; i < t->switch_count; i++) {
        spec[i].level = t->switches[i].level;
        spec[i].node = list + (size_t)i * from->node_count;
        spec[i].count = bits_list (&t->switches[i].nodes, from->node_count,
                                   list + (size_t)i * from->node_count);
    }
    rc = t->switch_count ? cluster_switches_set (to, spec, t->switch_count, now, err) : 0;
    free (spec);
    free (list);
    return rc;
}

int cluster_copy_site (const struct cluster *from, struct cluster *to, time_us now, struct err *err)
{
    struct node_id *list = mem_zero (from->node_count + 1, sizeof *list);
    int rc;

    rc = cluster_copy_nodes (from, to, UINT32_MAX, now, err);
    if (rc == 0)
        rc = sets_copy (from, to, list, now, err);
    free (list);
    if (rc == 0)
        rc = switches_copy (from, to, now, err);
    if (rc == 0 && from->job_column)
        rc = cluster_job_column_set (to, from->job_column, now, err);
    if (rc == 0 && from->licence_kinds)
        rc = cluster_licences_set (to, from->licence_total, from->licence_kinds, now, err);
    for (uint32_t k = 0; k < from->class_cap && rc == 0; k++) {
        if (from->class_rec[k].known)
            rc = cluster_class_set (to, k, &from->class_rec[k].spec, now, err);
    }
    for (uint32_t q = 0; q < from->qos_features_cap && rc == 0; q++)
        rc = cluster_qos_set (to, q, &from->qos_features[q], now, err);
    return rc;
}

bool cluster_counts_processors (const struct cluster *c)
{
    return c->complex_jobs == 0 && c->limited == 0 && c->rsv_count == 0 && !c->sharing &&
           c->deadlines == 0 && c->suspended_count == 0 && c->busy_not_up == 0 &&
           c->job_column == 0 && places_simply (c) && !narrows (c);
}
