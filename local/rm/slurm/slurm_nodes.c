/* What Slurm has besides jobs: nodes, partitions (classes), licences. A look reads nodes over
 * several turns of the loop: they count when all are there. */
#include <stdlib.h>
#include <string.h>

#include "local/rm/slurm/slurm_i.h"

/* --- nodes -------------------------------------------------------------------------------- */

static bool node_same (const struct rm_node *a, const struct rm_node *b)
{
    return a->state == b->state && a->procs == b->procs && a->memory_mb == b->memory_mb &&
           a->disk_mb == b->disk_mb && a->weight == b->weight &&
           strcmp (a->reason, b->reason) == 0 && strcmp (a->features, b->features) == 0 &&
           strcmp (a->gres, b->gres) == 0 && strcmp (a->classes, b->classes) == 0 &&
           strcmp (a->address, b->address) == 0;
}

static void nodes_free (struct slurm_node **nodes)
{
    struct slurm_node *node, *next;
    HASH_ITER (hh, *nodes, node, next) {
        HASH_DEL (*nodes, node);
        slurm_node_free (node);
    }
}

int slurm_on_node (void *arg, const char *key, json_t *object, struct err *err)
{
    struct slurm *slurm = arg;
    struct slurm_node *same;
    if (strcmp (key, "nodes") != 0)
        return 0;
    slurm->entries++;
    struct slurm_node *node = slurm_parse_node (object, slurm->partition, slurm->only, err);
    if (!node)
        return err->code;
    /* Of a part: where our partition is; beside Slurm's own scheduler there may be none yet. */
    if (slurm->only && !slurm_has_word (object, "partitions", slurm->partition) &&
        !(slurm->observe && *node->node.classes)) {
        slurm_node_free (node);
        return 0;
    }
    HASH_FIND_STR (slurm->nodes_now, node->node.name, same);
    if (same) {
        err_set (err, ERR_INVALID, "slurmrestd: node %.60s is there twice", node->node.name);
        slurm_node_free (node);
        return ERR_INVALID;
    }
    if (HASH_COUNT (slurm->nodes_now) >= RM_SLURM_NODES_MAX) {
        slurm_node_free (node);
        return err_set (err, ERR_LIMIT, "Slurm has more than %d nodes", RM_SLURM_NODES_MAX);
    }
    node->order = HASH_COUNT (slurm->nodes_now);
    HASH_ADD_KEYPTR (hh, slurm->nodes_now, node->node.name, strlen (node->node.name), node);
    return 0;
}

static int node_order (const void *a, const void *b)
{
    const struct rm_node *x = a, *y = b;
    return strverscmp (x->name, y->name);
}

static bool nodes_differ (const struct slurm *slurm)
{
    struct slurm_node *node, *next, *old;
    bool differ = HASH_COUNT (slurm->nodes) != HASH_COUNT (slurm->nodes_now);
    HASH_ITER (hh, slurm->nodes_now, node, next) {
        HASH_FIND_STR (slurm->nodes, node->node.name, old);
        differ = differ || !old || !node_same (&old->node, &node->node);
    }
    return differ;
}

void slurm_nodes_begin (struct slurm *slurm)
{
    nodes_free (&slurm->nodes_now);
}

void slurm_nodes_settle (struct slurm *slurm, bool unchanged)
{
    const char *licences = strbuf_text (&slurm->licences_now);
    struct rm_event event = {.kind = RM_EVENT_LOADS};
    if (strcmp (licences, slurm->licences ? slurm->licences : "") != 0) {
        free (slurm->licences);
        slurm->licences = strdup (licences);
        event.kind = RM_EVENT_NODES;
    } else if (unchanged) {
        return;
    }
    if (!unchanged) {
        struct slurm_node *node, *next;
        if (nodes_differ (slurm))
            event.kind = RM_EVENT_NODES;
        nodes_free (&slurm->nodes);
        slurm->nodes = slurm->nodes_now;
        slurm->nodes_now = NULL;
        free (slurm->node_list);
        slurm->node_count = HASH_COUNT (slurm->nodes);
        slurm->node_list = calloc (slurm->node_count + 1, sizeof *slurm->node_list);
        uint32_t n = 0;
        HASH_ITER (hh, slurm->nodes, node, next)
            slurm->node_list[n++] = node->node;
        qsort (slurm->node_list, n, sizeof *slurm->node_list, node_order);
    }
    slurm->on_event (slurm->arg, &event);
}

void slurm_nodes_stop (struct slurm *slurm)
{
    nodes_free (&slurm->nodes);
    nodes_free (&slurm->nodes_now);
    free (slurm->node_list);
    free (slurm->classes);
    free (slurm->licences);
    strbuf_free (&slurm->licences_now);
}

/* --- partitions --------------------------------------------------------------------------- */

int slurm_on_partition (void *arg, const char *key, json_t *object, struct err *err)
{
    struct slurm *slurm = arg;
    const char *name;
    if (strcmp (key, "partitions") != 0)
        return 0;
    if (slurm_text (object, "a partition", "name", true, &name, err) != 0)
        return err->code;
    if (strcmp (name, slurm->partition) == 0 || !slurm_class_ours (slurm->only, name))
        return 0;
    struct slurm_class *more =
        realloc (slurm->classes, (slurm->class_count + 1) * sizeof *slurm->classes);
    if (!more)
        return err_set (err, ERR_NOMEM, "no memory for partitions");
    slurm->classes = more;
    snprintf (more[slurm->class_count++].name, sizeof more->name, "%s", name);
    /* Which is Slurm's own is not told by v0.0.40 to v0.0.44: there the first has to do. */
    slurm->default_told |= slurm_has_word (object, "flags", "default");
    if (slurm_has_word (object, "flags", "default") || !*slurm->default_class)
        snprintf (slurm->default_class, sizeof slurm->default_class, "%s", name);
    /* Up: Slurm's own scheduler would start what users submit there. */
    bool up = slurm_has_word (object, "state", "UP") ||
              slurm_has_word (json_object_get (object, "partition"), "state", "UP");
    if (!slurm->observe && up)
        log_event (
            slurm->log, LOG_LEVEL_WARN, "slurm", "partition_up",
            "partition=%s reason=\"Slurm itself starts jobs of this partition; set its State "
            "to DOWN\"",
            name);
    return 0;
}

/* --- licences ----------------------------------------------------------------------------- */

int slurm_on_licence (void *arg, const char *key, json_t *object, struct err *err)
{
    struct slurm *slurm = arg;
    const char *name;
    int64_t total, reserved;
    if (strcmp (key, "licenses") != 0)
        return 0;
    if (slurm_text (object, "a licence", "LicenseName", true, &name, err) != 0 ||
        slurm_int (object, name, "Total", true, 0, &total, err) != 0 ||
        slurm_int (object, name, "Reserved", false, 0, &reserved, err) != 0)
        return err->code;
    strbuf_printf (&slurm->licences_now, "%s%s:%lld", slurm->licences_now.len ? "," : "", name,
                   (long long)(total > reserved ? total - reserved : 0));
    return 0;
}
