/* place_check: what only shows when nodes are made, as faults of the file with their lines: more classes or resources than
 * there can be, hosts, features, switches and node sets that nobody has. It makes the nodes as the daemon will, with place.c, of a
 * cluster that is thrown away. settings_read calls it, once the file is good in itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/conf/place.h"
#include "local/conf/settings_i.h"

struct trial {
    struct conf *conf;
    const struct nodeconf *nodes;
    const struct policy *policy;
    struct cred_names names; /* what is interned here is forgotten */
    struct cluster *cluster;
    struct strtab *node, *features;
    struct place place;
};

static bool node_find (void *self, const char *name, struct node_id *out)
{
    uint32_t n = strtab_find (((struct trial *)self)->node, name);
    *out = (struct node_id){n};
    return n != STRTAB_NONE;
}

static const char *node_name (void *self, uint32_t node)
{
    return strtab_name (((struct trial *)self)->node, node);
}

/* As the daemon will, with a file of Maui's. */
static void absent (void *self, const char *key, const char *index, const char *why, bool closed)
{
    const struct trial *t = self;
    const struct conf_entry *e = conf_entry_last (t->conf, key, index, NULL);
    conf_note_add (
        &(struct conf_value){.conf = t->conf, .key = key, .index = index, .line = e ? e->line : 0},
        "%s; %s", why, closed ? "jobs of the class are refused until there is" : "left out");
}

static struct strtab *tab_copy (const struct strtab *from)
{
    struct strtab *to = strtab_create ();
    for (uint32_t i = 0; i < strtab_count (from); i++)
        (void)strtab_intern (to, strtab_name (from, i));
    return to;
}

static int trial_open (struct trial *t, struct err *err)
{
    t->names = *t->policy->names;
    t->names.partition = tab_copy (t->names.partition);
    t->names.licence = tab_copy (t->names.licence);
    t->names.tab[CRED_CLASS] = tab_copy (t->names.tab[CRED_CLASS]);
    t->node = strtab_create ();
    t->features = strtab_create ();
    t->cluster = cluster_create (t->policy, NULL, err);
    if (t->cluster)
        place_open (&t->place, t->cluster, &t->names, t->features, node_find, t);
    t->place.node_name = node_name;
    if (t->cluster && conf_is_lenient (t->conf))
        t->place.absent = absent;
    return t->cluster ? 0 : err->code;
}

static void trial_close (struct trial *t)
{
    if (t->cluster)
        place_close (&t->place);
    cluster_destroy (t->cluster);
    strtab_destroy (t->features);
    strtab_destroy (t->node);
    strtab_destroy (t->names.partition);
    strtab_destroy (t->names.licence);
    strtab_destroy (t->names.tab[CRED_CLASS]);
}

/* At the last line of that key; the first is what settings_read answers with. */
static void fault_at (const struct trial *t, const char *key, const char *index,
                      const struct err *why, struct err *err)
{
    struct err fault = *why;
    conf_fault_at (t->conf, conf_entry_last (t->conf, key, index, NULL), &fault);
    if (err->code == 0)
        *err = fault;
}

/* A line's nodes are alike: the first of them shows what is too much, and with which line. */
static int line_try (struct trial *t, const struct nodeconf_line *line, struct err *why)
{
    if (line->count == 0) /* DEFAULT, GLOBAL */
        return 0;
    const struct nodeconf_node *node = &t->nodes->node[line->first];
    struct node_spec spec;
    int rc = place_prepare (&t->place, node, 1, NULL, 0, why);
    for (uint32_t i = 0; rc == 0 && i < line->count; i++) {
        rc = place_node (&t->place, &node[i], &spec, why);
        if (rc == 0)
            rc = cluster_node_add (t->cluster, &spec, 0, NULL, why);
        (void)strtab_intern (t->node, node[i].name);
    }
    return rc;
}

/* A QoS's jobs wait for a node that has its features, which may come. */
static void qos_tell (const struct trial *t)
{
    const struct strtab *qos = t->names.tab[CRED_QOS];
    char name[NODECONF_FEATURE_MAX + 1];

    for (uint32_t q = 0; q < strtab_count (qos); q++) {
        const char *list = policy_qos (t->policy, q)->features;
        for (size_t n = 0; list && *list; list += n + (list[n] == ',')) {
            n = strcspn (list, ",");
            snprintf (name, sizeof name, "%.*s", (int)(n < sizeof name ? n : 0), list);
            if (!*name || strtab_find (t->features, name) != STRTAB_NONE)
                continue;
            const char *index = strtab_name (qos, q);
            const struct conf_entry *e = conf_entry_last (t->conf, "QOSFEATURES", index, NULL);
            if (!e)
                e = conf_entry_last (t->conf, "QOSCFG", index, "FEATURES=");
            conf_note_add (&(struct conf_value){.conf = t->conf,
                                                .key = e ? e->key : "QOSCFG",
                                                .index = index,
                                                .line = e ? e->line : 0},
                           "no node has the feature %s; jobs of the QoS wait until one has", name);
        }
    }
}

/* Every class by itself; the rest is the site's. */
static void apply_try (struct trial *t, struct err *err)
{
    struct err why = {0}, one = {0};
    if (place_apply (&t->place, t->policy, t->nodes->topology, 0, &why) == 0)
        return;
    for (uint32_t class = 0; class < strtab_count (t->names.tab[CRED_CLASS]); class ++)
        if (place_class (&t->place, t->policy, class, 0, &one) != 0)
            fault_at (t, "CLASSCFG", strtab_name (t->names.tab[CRED_CLASS], class), &one, err);
    if (one.code == 0)
        fault_at (t, strncmp (why.text, "NODESET", 7) == 0 ? "NODESETPOLICY" : "TOPOLOGYFILE", NULL,
                  &why, err);
}

int settings_place_check (struct conf *conf, const struct settings *settings, struct err *err)
{
    struct trial t = {.conf = conf, .nodes = &settings->nodes, .policy = settings->policy};
    struct err why = {0};
    int rc = trial_open (&t, err);
    if (rc == 0)
        err_clear (err);
    for (uint32_t l = 0; rc == 0 && l < t.nodes->line_count; l++) {
        rc = line_try (&t, &t.nodes->line[l], &why);
        if (rc != 0)
            fault_at (&t, "NODECFG", t.nodes->line[l].hosts, &why, err);
    }
    if (rc == 0 && place_prepare (&t.place, NULL, 0, t.nodes->global_gres, 0, &why) != 0)
        fault_at (&t, "NODECFG", "GLOBAL", &why, err);
    else if (rc == 0 &&
             !settings->rm_kind->has_nodes) { /* who else has nodes tells of them later */
        qos_tell (&t);
        apply_try (&t, err);
    }
    trial_close (&t);
    return err->code;
}
