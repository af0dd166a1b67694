/* A simulation's log and machine, as the SIM parameters ask for them. Called by settings_read under SIMULATION. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/conf/settings_i.h"
#include "local/trace/workload.h"
#include "proto/base/mem.h"
#include "proto/base/strbuf.h"

static const time_us undated_before = INT64_C (365) * 86400 * US_PER_S;
static const time_us undated_epoch = INT64_C (946684800) * US_PER_S; /* 1 January 2000 */

/* --- jobs --------------------------------------------------------------------------------- */

static int numbers_compare (const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* "1024" of Maui's trace is job alpha.1024, when all names are numbers and each is there once. */
static void renumber (struct workload *w)
{
    uint64_t *number = mem_alloc ((w->count + 1) * 2 * sizeof *number), *sorted = number + w->count;
    bool good = w->count > 0;
    for (uint64_t i = 0; good && i < w->count; i++)
        good = w->job[i].name &&
               uint_parse (w->job[i].name, "job", 1, INT64_MAX / 2, &number[i], NULL) == 0;
    if (good) {
        memcpy (sorted, number, w->count * sizeof *sorted);
        qsort (sorted, w->count, sizeof *sorted, numbers_compare);
    }
    for (uint64_t i = 1; good && i < w->count; i++)
        good = sorted[i] != sorted[i - 1];
    for (uint64_t i = 0; good && i < w->count; i++)
        w->job[i].number = number[i];
    free (number);
}

static duration_us percent_of (duration_us d, int64_t percent)
{
    return d > INT64_MAX / 100000 ? d : d / 100 * percent + d % 100 * percent / 100;
}

duration_us settings_accurate (const struct settings_sim *sim, duration_us limit)
{
    int64_t ppm = sim->wc_accuracy_ppm;
    return percent_of (limit, ppm / 1000000) + percent_of (limit, ppm % 1000000) / 1000000;
}

static void adjust (struct workload *w, const struct settings_sim *sim)
{
    time_us shift = w->count > 0 && w->job[0].submit < undated_before ? undated_epoch : 0;
    for (uint64_t i = 0; i < w->count; i++) {
        struct workload_job *j = &w->job[i];
        j->submit += shift;
        j->deadline += j->deadline ? shift : 0;
        j->limit = percent_of (j->limit, sim->wc_scaling);
        if (j->limit < 1)
            j->limit = 1;
        if (sim->wc_accuracy_ppm > 0)
            j->run = settings_accurate (sim, j->limit);
        if (sim->flags & SIM_IGNCLASS)
            j->cred[CRED_CLASS] = CRED_NONE;
        if (sim->flags & SIM_IGNQOS)
            j->cred[CRED_QOS] = CRED_NONE;
        for (uint32_t c = 0; c < w->constraint_count; c++) {
            bool of_class = strncmp (w->constraint[c], "class:", 6) == 0;
            if (sim->flags & (of_class ? SIM_IGNCLASS : SIM_IGNFEATURES))
                j->req.features.word[c / 64] &= ~(UINT64_C (1) << (c % 64));
        }
    }
}

/* --- nodes -------------------------------------------------------------------------------- */

static bool listed (const char *list, const char *name)
{
    size_t n = strlen (name);
    for (const char *p = list; *p; p += strcspn (p, ","), p += *p == ',')
        if (strncmp (p, name, n) == 0 && (p[n] == ',' || !p[n]))
            return true;
    return false;
}

/* Its own features, and by name what it satisfies of what the jobs ask: "class:batch", "mem>=512". */
static char *features_text (const struct workload *w, const struct node_spec *spec, const char *own)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_puts (&b, own);
    for (uint32_t c = 0; w && c < w->constraint_count; c++)
        if (spec->features.word[c / 64] >> (c % 64) & 1 && !listed (own, w->constraint[c]))
            strbuf_printf (&b, "%s%s", b.len ? "," : "", w->constraint[c]);
    strbuf_text (&b);
    return strbuf_steal (&b);
}

static const struct nodeconf_node *configured_as (const struct nodeconf_node *list, uint32_t count,
                                                  const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp (list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

/* What the trace says of a node; the rest as NODECFG has it for that node, or for DEFAULT. */
static void node_take (const struct settings *s, struct nodeconf_node *n,
                       const struct nodeconf_node *also, const struct node_spec *spec,
                       const char *name, char *features, char *classes)
{
    if (also)
        nodeconf_node_copy (also, n);
    else
        nodeconf_node_default (&s->nodes, n);
    nodeconf_node_traced (n, name, spec, true);
    if (also && also->features) {
        char *both = NULL;
        if (asprintf (&both, "%s%s%s", features, *features ? "," : "", also->features) < 0)
            abort ();
        free (features);
        features = both;
    }
    free (n->features);
    n->features = features;
    if (n->classes)
        free (classes);
    else
        n->classes = classes;
}

/* SIMNODECOUNT: the first so many. */
static void cut (struct machine *m, uint32_t nodes)
{
    uint32_t left = nodes;
    m->procs = 0;
    for (uint32_t g = 0; g < m->group_count; g++) {
        if (m->group[g].copies > left)
            m->group[g].copies = left;
        left -= m->group[g].copies;
        m->procs += (int64_t)m->group[g].copies * m->group[g].spec.configured.v[RES_PROCS];
    }
    m->node_count = nodes - left;
}

static int machine_nodes (struct settings *s, const struct machine *m,
                          const struct cred_names *names, struct err *err)
{
    uint32_t n = 0, said_count = s->nodes.node_count;
    struct nodeconf_node *said = s->nodes.node;
    int rc = 0;
    s->nodes.node = mem_zero (m->node_count + 1, sizeof *s->nodes.node);
    s->nodes.node_count = 0;
    for (uint32_t g = 0; g < m->group_count && rc == 0; g++)
        for (uint32_t i = 0; i < m->group[g].copies && rc == 0; i++, n++) {
            const struct node_spec *spec = &m->group[g].spec;
            if (name_check ("node", m->name[n], err) != 0) {
                rc = err_prefix (err, "%s", s->mode.sim.resources);
                break;
            }
            node_take (s, &s->nodes.node[n], configured_as (said, said_count, m->name[n]), spec,
                       m->name[n], features_text (s->workload, spec, m->features[n]),
                       machine_classes (m, spec, names));
            s->nodes.node_count = n + 1;
        }
    for (uint32_t i = 0; i < said_count; i++)
        nodeconf_node_clear (&said[i]);
    free (said);
    return rc;
}

/* NODECFG's nodes as a machine of which only processors are known. */
static struct machine *configured (const struct settings *s)
{
    struct arena *arena = arena_create (0);
    struct machine *m = arena_new (arena, struct machine);
    m->arena = arena;
    m->group = arena_array (arena, s->nodes.node_count + 1, sizeof *m->group);
    m->group_count = m->node_count = s->nodes.node_count;
    for (uint32_t i = 0; i < s->nodes.node_count; i++) {
        m->group[i].copies = 1;
        m->group[i].spec.configured.v[RES_PROCS] = (int32_t)s->nodes.node[i].procs;
        m->procs += s->nodes.node[i].procs;
    }
    return m;
}

int settings_traces_read (struct settings *s, struct cred_names *names, struct err *err)
{
    const struct settings_sim *sim = &s->mode.sim;
    struct workload_range all = {1, UINT64_MAX};
    struct workload empty = {.names = names};
    int rc = 0;
    if (sim->workload) {
        s->workload = workload_read (sim->workload, &all, names, err);
        if (!s->workload)
            return err ? err->code : ERR_INVALID;
        renumber (s->workload);
        adjust (s->workload, sim);
    }
    struct machine *m = sim->resources
                            ? machine_read (sim->resources, s->workload ? s->workload : &empty, err)
                            : configured (s);
    if (!m)
        return err ? err->code : ERR_INVALID;
    if (sim->resources) {
        if (sim->node_count > 0 && sim->node_count < m->node_count)
            cut (m, (uint32_t)sim->node_count);
        rc = machine_nodes (s, m, names, err);
        m->gres_kinds = 0; /* the nodes count their initiators now (CLASS), not the jobs */
        for (uint32_t g = 0; g < m->group_count; g++)
            for (int c = RES_GRES0; c < RES_MAX; c++)
                m->group[g].spec.configured.v[c] = 0;
    }
    if (rc == 0 && s->workload) {
        workload_fit (s->workload, m);
        if (s->workload->count == 0)
            rc = err_set (err, ERR_INVALID, "%s: no job fits the machine", sim->workload);
    }
    machine_destroy (m);
    return rc;
}
