/* place: gives classes, partitions, features, generic resources and node sets their numbers for
 * one cluster. The daemon calls it when the resource manager has told its nodes, the simulator
 * at its start. A number that was given keeps its meaning: jobs in the cluster refer to it. */
#include "local/conf/place.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "local/conf/hosts.h"
#include "local/conf/items.h"
#include "local/conf/priorityf.h"
#include "local/conf/topology.h"
#include "proto/base/hostlist.h"

enum { CLASSES_MAX = 63 }; /* the bit that is left is for classes that no node names */

void place_open (struct place *p, struct cluster *cluster, struct cred_names *names,
                 struct strtab *features,
                 bool (*node_find) (void *self, const char *name, struct node_id *out), void *self)
{
    *p = (struct place){.cluster = cluster,
                        .names = names,
                        .features = features,
                        .node_find = node_find,
                        .self = self,
                        .column = strtab_create (),
                        .class = strtab_create (),
                        .sw = strtab_create ()};
}

void place_close (struct place *p)
{
    strtab_destroy (p->column);
    strtab_destroy (p->class);
    strtab_destroy (p->sw);
    memset (p, 0, sizeof *p);
}

/* --- columns and licences -------------------------------------------------------------------- */

static uint32_t column_of (const struct place *p, const char *name)
{
    uint32_t n = strtab_find (p->column, name);

    return n == STRTAB_NONE ? 0 : RES_GRES0 + n;
}

uint32_t place_class_column (const struct place *p, const char *class)
{
    char name[80];

    snprintf (name, sizeof name, "class:%s", class);
    return column_of (p, name);
}

/* "gpu.a100" is a type of "gpu"; false for what has no type. */
static bool whole_of (const char *name, char whole[64])
{
    size_t len = strcspn (name, ".");

    if (len == 0 || len >= 64 || name[len] == '\0' || name[len + 1] == '\0')
        return false;
    memcpy (whole, name, len);
    whole[len] = '\0';
    return true;
}

/* A device of a type is one of the whole, too: who takes two gpu.a100 has taken two gpu, and no other gets them. Where both
 * are said the larger counts, since the whole has its types in it. */
void place_gres_whole (const struct place *p, struct resources *r)
{
    int64_t typed[RES_MAX] = {0};
    char whole[64];

    for (uint32_t n = 0; n < strtab_count (p->column) && RES_GRES0 + n < RES_MAX; n++) {
        const char *name = place_gres_name (p, RES_GRES0 + n);
        uint32_t column = name && whole_of (name, whole) ? column_of (p, whole) : 0;
        if (column && column < RES_MAX)
            typed[column] += r->v[RES_GRES0 + n];
    }
    for (uint32_t c = RES_GRES0; c < RES_MAX; c++)
        if (typed[c] > r->v[c])
            r->v[c] = typed[c] > INT32_MAX ? INT32_MAX : (int32_t)typed[c];
}

static int gres_prepare (struct place *p, const struct nodeconf_node *node, struct err *err)
{
    const char *at = node->gres ? node->gres : "";
    char name[64], whole[64];
    int64_t count;
    int rc;

    while (item_next (&at, name, &count, err, &rc)) {
        (void)strtab_intern (p->column, name);
        if (whole_of (name, whole))
            (void)strtab_intern (p->column, whole);
    }
    return rc == 0 ? 0 : err_prefix (err, "NODECFG[%.60s] GRES", node->name);
}

static int classes_prepare (struct place *p, const struct nodeconf_node *node, struct err *err)
{
    const char *at = node->classes ? node->classes : "";
    char name[64], column[80];
    int64_t count;
    int rc;

    while (item_next (&at, name, &count, err, &rc)) {
        uint32_t bit = strtab_intern (p->class, name);
        if (bit >= CLASSES_MAX)
            return err_set (err, ERR_LIMIT, "NODECFG CLASS: more than %d classes", CLASSES_MAX);
        if (count < 0 || count == node->procs)
            continue;
        p->counted |= UINT64_C (1) << bit;
        snprintf (column, sizeof column, "class:%s", name);
        (void)strtab_intern (p->column, column);
    }
    return rc == 0 ? 0 : err_prefix (err, "NODECFG[%.60s] CLASS", node->name);
}

static int licences_prepare (struct place *p, const char *global, time_us now, struct err *err)
{
    int32_t total[LICENCES_MAX] = {0};
    const char *at = global ? global : "";
    char name[64];
    int64_t count;
    int rc;

    while (item_next (&at, name, &count, err, &rc)) {
        uint32_t kind;
        if (column_of (p, name))
            return err_set (err, ERR_INVALID,
                            "NODECFG[GLOBAL]: %s is a generic resource of nodes already", name);
        kind = strtab_intern (p->names->licence, name);
        if (kind >= LICENCES_MAX)
            return err_set (err, ERR_LIMIT, "NODECFG[GLOBAL]: more than %d licences", LICENCES_MAX);
        total[kind] = count < 0 ? 1 : (int32_t)count;
    }
    if (rc != 0)
        return err_prefix (err, "NODECFG[GLOBAL] GRES");
    uint32_t kinds = strtab_count (p->names->licence);
    return kinds ? cluster_licences_set (p->cluster, total, kinds, now, err) : 0;
}

int place_prepare (struct place *p, const struct nodeconf_node *node, uint32_t count,
                   const char *global_gres, time_us now, struct err *err)
{
    int rc = 0;

    p->counted = 0;
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        rc = gres_prepare (p, &node[i], err);
        if (rc == 0)
            rc = classes_prepare (p, &node[i], err);
        if (rc == 0 && node[i].max_jobs > 0)
            p->job_column = RES_GRES0 + strtab_intern (p->column, ":jobs");
    }
    if (rc == 0)
        rc = cluster_gres_kinds_set (p->cluster, strtab_count (p->column), now, err);
    if (rc == 0)
        rc = licences_prepare (p, global_gres, now, err);
    return rc;
}

/* --- one node --------------------------------------------------------------------------------- */

static int node_gres (const struct place *p, const struct nodeconf_node *node,
                      struct node_spec *out, struct err *err)
{
    const char *at = node->gres ? node->gres : "";
    char name[64];
    int64_t count;
    int rc;

    while (item_next (&at, name, &count, err, &rc))
        out->configured.v[column_of (p, name)] = count < 0 ? 1 : (int32_t)count;
    place_gres_whole (p, &out->configured);
    return rc;
}

/* A node that names no class serves all, with an initiator for each processor. */
static int node_classes (const struct place *p, const struct nodeconf_node *node,
                         struct node_spec *out, struct err *err)
{
    const char *at = node->classes ? node->classes : "";
    char name[64];
    int64_t count;
    int rc;

    for (uint32_t bit = 0; node->classes == NULL && bit < strtab_count (p->class); bit++) {
        uint32_t column = place_class_column (p, strtab_name (p->class, bit));
        if (column)
            out->configured.v[column] = (int32_t)node->procs;
    }
    while (item_next (&at, name, &count, err, &rc)) {
        uint32_t bit = strtab_find (p->class, name), column = place_class_column (p, name);
        out->classes |= UINT64_C (1) << bit;
        if (column)
            out->configured.v[column] = count < 0 ? (int32_t)node->procs : (int32_t)count;
    }
    return rc;
}

/* Commas part names; what is in between may be anything ("mem>=512" of a trace). */
static int names_to_bits (struct strtab *features, const char *list, const char *prefix,
                          struct features *out, struct err *err)
{
    char full[256];

    for (const char *at = list ? list : ""; *at;) {
        size_t len = strcspn (at, ",");
        uint32_t f;
        if (len + strlen (prefix) >= sizeof full)
            return err_set (err, ERR_LIMIT, "a feature's name of %zu characters", len);
        snprintf (full, sizeof full, "%s%.*s", prefix, (int)len, at);
        at += len + (at[len] == ',');
        if (len == 0)
            continue;
        f = strtab_intern (features, full);
        if (f >= FEATURES_MAX)
            return err_set (err, ERR_LIMIT, "more than %d features at one site", FEATURES_MAX);
        out->word[f / 64] |= UINT64_C (1) << (f % 64);
    }
    return 0;
}

static int node_partition (const struct place *p, const struct nodeconf_node *node,
                           struct node_spec *out, struct err *err)
{
    out->partition =
        strtab_intern (p->names->partition, node->partition ? node->partition : "DEFAULT") + 1;
    if (out->partition > PARTITIONS_MAX)
        return err_set (err, ERR_LIMIT, "more than %d partitions", PARTITIONS_MAX);
    return 0;
}

int place_node (struct place *p, const struct nodeconf_node *node, struct node_spec *out,
                struct err *err)
{
    struct node_priority fn;
    int rc;

    *out = (struct node_spec){.speed_ppm = (int32_t)node->speed_ppm,
                              .priority = (int32_t)node->priority,
                              .max_jobs_per_user = (uint32_t)node->max_jobs_per_user,
                              .max_procs_per_user = (uint32_t)node->max_procs_per_user,
                              .max_load_milli = (int32_t)node->max_load_milli};
    out->configured.v[RES_PROCS] = (int32_t)node->procs;
    out->configured.v[RES_MEM_MB] = (int32_t)node->mem_mb;
    out->configured.v[RES_SWAP_MB] = (int32_t)node->swap_mb;
    out->configured.v[RES_DISK_MB] = (int32_t)node->disk_mb;
    if (p->job_column)
        out->configured.v[p->job_column] =
            node->max_jobs > 0 ? (int32_t)node->max_jobs : INT32_MAX / 2;
    rc = names_to_bits (p->features, node->features, "", &out->features, err);
    if (rc == 0)
        rc = names_to_bits (p->features, node->networks, "net:", &out->features, err);
    if (rc == 0)
        rc = node_partition (p, node, out, err);
    if (rc == 0)
        rc = node_gres (p, node, out, err);
    if (rc == 0)
        rc = node_classes (p, node, out, err);
    if (rc == 0 && node->priorityf) {
        rc = priorityf_parse (node->priorityf, &fn, err);
        if (rc == 0)
            rc = cluster_priority_fn_define (p->cluster, &fn, &out->priority_fn, err);
    }
    return rc == 0 ? 0 : err_prefix (err, "NODECFG[%.60s]", node->name);
}

/* --- names to ids ------------------------------------------------------------------------------ */

/* Marks the nodes of a list, or takes their marks away. Of names that are not here the first is the answer, once the
 * others are marked. */
static int hosts_mark (struct place *p, const char *list, bool *node, bool mark,
                       struct arena *arena, struct err *err)
{
    const char **name;
    uint32_t count;
    int rc = hostlist_expand_most (list, arena, 2 * cluster_node_count (p->cluster) + 64, &name,
                                   &count, err); /* twice: a list may name one again */

    if (rc != 0)
        return rc;
    for (uint32_t i = 0; i < count; i++) {
        struct node_id id;
        if (p->node_find (p->self, name[i], &id))
            node[id.v] = mark;
        else if (mark && rc == 0) /* whom one does not want need not be there */
            rc = err_set (err, ERR_NOT_FOUND, "there is no node %.60s", name[i]);
    }
    return rc;
}

/* As hosts_mark; where none of the names is a node's, or it is no list, they may be patterns, as SRCFG's HOSTLIST has them. */
static int hosts_like (struct place *p, const char *list, bool *node, struct arena *arena,
                       struct err *err)
{
    uint32_t nodes = cluster_node_count (p->cluster);
    struct err why;
    int rc = hosts_mark (p, list, node, true, arena, err), like;

    if (rc == 0 || !p->node_name || memchr (node, true, nodes))
        return rc;
    const char **name = arena_array (arena, nodes + 1, sizeof *name);
    for (uint32_t n = 0; n < nodes; n++)
        name[n] = p->node_name (p->self, n);
    like = hosts_match (list, name, nodes, node, &why);
    if (like == ERR_NOT_FOUND && rc == ERR_NOT_FOUND)
        return rc;
    return like == 0 ? 0 : err_set (err, like, "%s", why.text);
}

/* The nodes that a list leaves. ERR_NOT_FOUND: it names one that is not here, beside those that are, or leaves none. */
static int hosts_chosen (struct place *p, const char *text, bool patterns, struct arena *arena,
                         struct node_id *id, uint32_t *count_out, struct err *err)
{
    uint32_t nodes = cluster_node_count (p->cluster), count = 0;
    bool *node = arena_array (arena, nodes + 1, sizeof *node);
    char *these = arena_strdup (arena, text), *but = strchr (these, '!');
    int rc = 0, rest = 0;

    if (but)
        *but++ = '\0';
    if (*these)
        rc = patterns ? hosts_like (p, these, node, arena, err)
                      : hosts_mark (p, these, node, true, arena, err);
    else
        memset (node, true, nodes * sizeof *node);
    if ((rc == 0 || rc == ERR_NOT_FOUND) && but)
        rest = hosts_mark (p, but, node, false, arena, err);
    for (uint32_t n = 0; n < nodes; n++) {
        if (node[n])
            id[count++] = (struct node_id){n};
    }
    *count_out = count;
    if (rest != 0)
        return rest;
    if (rc == 0 && count == 0)
        rc = err_set (err, ERR_NOT_FOUND, "'%.60s' leaves no node", text);
    return rc;
}

int place_hosts (struct place *p, const char *text, uint32_t *id_out, struct err *err)
{
    struct arena *arena = arena_create (0);
    uint32_t count;
    struct node_id *id = arena_array (arena, cluster_node_count (p->cluster) + 1, sizeof *id);
    int rc = hosts_chosen (p, text, false, arena, id, &count, err);

    if (rc == 0)
        rc = cluster_hosts_define (p->cluster, id, count, id_out, err);
    arena_destroy (arena);
    return rc;
}

/* Of a class: those of its list that are here, *id_out, are defined beside ERR_NOT_FOUND, too. */
static int class_hosts (struct place *p, const char *text, uint32_t *id_out, uint32_t *count_out,
                        struct err *err)
{
    struct arena *arena = arena_create (0);
    struct node_id *id = arena_array (arena, cluster_node_count (p->cluster) + 1, sizeof *id);
    int rc = hosts_chosen (p, text, true, arena, id, count_out, err);

    if (rc == 0 || rc == ERR_NOT_FOUND) { /* of nodes that there are: it cannot fail */
        int defined = cluster_hosts_define (p->cluster, id, *count_out, id_out, NULL);
        rc = defined != 0 ? err_set (err, defined, "a list of hosts") : rc;
    }
    arena_destroy (arena);
    return rc;
}

/* "fast,big" to bits; a feature that no node has is ERR_NOT_FOUND. */
static int place_features (const struct place *p, const char *text, struct features *out,
                           struct err *err)
{
    struct features all = {0};
    const char *at = text;
    char name[64];
    int64_t count;
    int rc;

    while (item_next (&at, name, &count, err, &rc)) {
        uint32_t f = strtab_find (p->features, name);
        if (f == STRTAB_NONE || f >= FEATURES_MAX)
            return err_set (err, ERR_NOT_FOUND, "no node has the feature %s", name);
        all.word[f / 64] |= UINT64_C (1) << (f % 64);
    }
    if (rc == 0)
        *out = all;
    return rc;
}

bool place_gres (const struct place *p, const char *name, uint32_t *column_out,
                 uint32_t *licence_out)
{
    uint32_t column = strncmp (name, "class:", 6) == 0 || *name == ':' ? 0 : column_of (p, name);
    uint32_t kind = strtab_find (p->names->licence, name);

    *column_out = column;
    *licence_out = kind;
    return column != 0 || kind != STRTAB_NONE;
}

const char *place_gres_name (const struct place *p, uint32_t column)
{
    const char *name = column < RES_GRES0 ? NULL : strtab_name (p->column, column - RES_GRES0);

    return name && *name != ':' && strncmp (name, "class:", 6) != 0 ? name : NULL;
}

/* --- node sets ---------------------------------------------------------------------------------- */

struct set_words {
    const char *policy, *attribute, *priority;
    char list[4096];
};

static int word_of (const char *what, const char *text, const char *const *words, int *out,
                    struct err *err)
{
    for (int i = 0; words[i]; i++) {
        if (strcasecmp (words[i], text) == 0) {
            *out = i;
            return 0;
        }
    }
    return err_set (err, ERR_INVALID, "'%.40s' is no %s of a node set", text, what);
}

/* One member of the list as the core's number. */
static int set_value (struct place *p, enum nodeset_attribute attribute, bool network,
                      const char *text, uint32_t *out, struct err *err)
{
    char name[80];
    int64_t ppm;
    int rc;

    if (attribute == NODESET_SPEED) {
        rc = ppm_parse (text, "a speed", &ppm, err);
        if (rc == 0 && (ppm <= 0 || ppm > INT32_MAX))
            return err_set (err, ERR_INVALID, "speed %.40s: above 0 and at most %d", text,
                            INT32_MAX / 1000000);
        *out = rc == 0 ? (uint32_t)ppm : 0;
        return rc;
    }
    snprintf (name, sizeof name, "%s%.64s", network ? "net:" : "", text);
    *out = strtab_find (attribute == NODESET_SWITCH ? p->sw : p->features, name);
    if (*out == STRTAB_NONE)
        return err_set (err, ERR_NOT_FOUND, "node set: no node has %s %.60s",
                        attribute == NODESET_SWITCH ? "the switch"
                        : network                   ? "the network"
                                                    : "the feature",
                        text);
    return 0;
}

/* Networks are features of their own kind; with no list, all of them. */
static uint32_t networks_all (const struct place *p, uint32_t *value)
{
    uint32_t n = 0;

    for (uint32_t f = 0; f < strtab_count (p->features) && f < FEATURES_MAX; f++) {
        if (strncmp (strtab_name (p->features, f), "net:", 4) == 0)
            value[n++] = f;
    }
    return n;
}

static int set_define (struct place *p, const struct policy *policy, const struct set_words *w,
                       uint32_t *id_out, struct err *err)
{
    static const char *const policies[] = {"ONEOF", "FIRSTOF", "ANYOF", NULL};
    static const char *const attributes[] = {"FEATURE", "PROCSPEED", "TOPOLOGY",
                                             "NETWORK", "SWITCH",    NULL};
    static const enum nodeset_attribute means[] = {NODESET_FEATURE, NODESET_SPEED, NODESET_SWITCH,
                                                   NODESET_FEATURE, NODESET_SWITCH};
    static const char *const priorities[] = {"MINLOSS", "BESTFIT", "WORSTFIT", "BESTRESOURCE",
                                             NULL};
    uint32_t value[FEATURES_MAX + 1024];
    struct nodeset set = {.mandatory = policy->nodeset_delay > 0,
                          .tolerance_ppm = policy->nodeset_tolerance_ppm,
                          .value = value};
    int kind = 0, attribute = 0, priority = 0;
    char *text = strdup (w->list), *rest = NULL;
    int rc = word_of ("policy", w->policy, policies, &kind, err);

    assert (text && "out of memory");
    if (rc == 0)
        rc = word_of ("attribute", w->attribute, attributes, &attribute, err);
    if (rc == 0 && w->priority)
        rc = word_of ("priority type", w->priority, priorities, &priority, err);
    set.policy = (enum nodeset_policy)kind;
    set.attribute = means[attribute];
    set.priority = (enum nodeset_priority)priority;
    for (char *one = strtok_r (text, ":, \t", &rest); rc == 0 && one;
         one = strtok_r (NULL, ":, \t", &rest)) {
        if (set.count == sizeof value / sizeof value[0])
            rc = err_set (err, ERR_LIMIT, "node set: more than %zu members",
                          sizeof value / sizeof value[0]);
        else
            rc = set_value (p, set.attribute, attribute == 3, one, &value[set.count++], err);
    }
    free (text);
    if (attribute == 3 && set.count > 0 &&
        !w->priority) /* ONEOF:NETWORK:VIA:ETHERNET: VIA if there is room */
        set.priority = NODESET_LISTED;
    if (rc == 0 && attribute == 3 && set.count == 0) {
        set.count = networks_all (p, value);
        if (set.count == 0)
            rc = err_set (err, ERR_NOT_FOUND, "node set: no node has a network");
    }
    return rc == 0 ? cluster_nodeset_define (p->cluster, &set, id_out, err) : rc;
}

int place_nodeset (struct place *p, const struct policy *policy, const char *text, uint32_t *id_out,
                   struct err *err)
{
    struct set_words w = {.priority = policy->nodeset_priority};
    char copy[4096];
    char *rest = NULL;

    if (strlen (text) >= sizeof copy)
        return err_set (err, ERR_LIMIT, "a node set of %zu characters", strlen (text));
    if (strcasecmp (text, "NONE") == 0) {
        *id_out = NODESET_NONE;
        return 0;
    }
    snprintf (copy, sizeof copy, "%s", text);
    w.policy = strtok_r (copy, ":", &rest);
    w.attribute = strtok_r (NULL, ":", &rest);
    if (!w.policy || !w.attribute)
        return err_set (err, ERR_INVALID,
                        "'%.60s': a node set is ONEOF, FIRSTOF or ANYOF : FEATURE, PROCSPEED, "
                        "NETWORK or TOPOLOGY [:member …]",
                        text);
    snprintf (w.list, sizeof w.list, "%s", rest ? rest : "");
    return set_define (p, policy, &w, id_out, err);
}

/* --- what is not there ---------------------------------------------------------------------------- */

/* rc is what came of a restriction. One of names that are not here is told, where somebody is to be told, and left out, or
 * stands and leaves no node (closed). */
static int told (const struct place *p, const char *key, const char *index, bool closed, int rc,
                 struct err *err)
{
    if (rc != ERR_NOT_FOUND || !p->absent)
        return rc;
    p->absent (p->self, key, index, err->text, closed);
    err_clear (err);
    return 0;
}

static int left_out (const struct place *p, const char *key, const char *index, int rc,
                     struct err *err)
{
    return told (p, key, index, false, rc, err);
}

/* --- classes, the site ----------------------------------------------------------------------------- */

/* What keeps a class's jobs off nodes stands though it names what is not here; only where nothing is run is it left out. */
static int class_guards (struct place *p, const struct policy_class *own, const char *name,
                         struct class_spec *spec, struct err *err)
{
    uint32_t count = 0;
    int rc = own->host_list ? class_hosts (p, own->host_list, &spec->hosts, &count, err) : 0;

    if (rc == ERR_NOT_FOUND && count == 0 && p->nothing_runs)
        spec->hosts = 0;
    rc = told (p, "CLASSCFG", name, count == 0 && !p->nothing_runs, rc, err);
    if (rc != 0 || !own->default_features)
        return rc;
    rc = place_features (p, own->default_features, &spec->features, err);
    if (rc == ERR_NOT_FOUND && p->absent && !p->nothing_runs &&
        names_to_bits (p->features, ":none", "", &spec->features, NULL) != 0)
        return rc;
    return told (p, "CLASSCFG", name, !p->nothing_runs, rc, err);
}

int place_class_open (struct place *p, const struct policy *policy, const uint32_t cred[CRED_KINDS],
                      bool features, struct err *err)
{
    uint32_t class = cred[CRED_CLASS], count = 1;
    const struct policy_class *own =
        class == CRED_NONE ? NULL : policy_cred (policy, CRED_CLASS, class)->class;
    const struct policy_qos *qos = policy_qos (policy, cred[CRED_QOS]);
    struct features ignored;
    int rc = 0;

    if (own && own->host_list && !(qos && (qos->flags & QOS_IGNHOSTLIST))) {
        struct arena *arena = arena_create (0);
        struct node_id *id = arena_array (arena, cluster_node_count (p->cluster) + 1, sizeof *id);
        rc = hosts_chosen (p, own->host_list, true, arena, id, &count, err);
        arena_destroy (arena);
    }
    if (count > 0) /* whatever others it names */
        rc = own && own->default_features && !features
                 ? place_features (p, own->default_features, &ignored, err)
                 : 0;
    return rc == 0 ? 0 : err_prefix (err, "class %.63s", cred_name (p->names, CRED_CLASS, class));
}

int place_class (struct place *p, const struct policy *policy, uint32_t class, time_us now,
                 struct err *err)
{
    const struct policy_class *own = policy_cred (policy, CRED_CLASS, class)->class;
    const char *name = strtab_name (p->names->tab[CRED_CLASS], class);
    struct class_spec spec = {.bit = UINT8_MAX, .initiators = 1};
    uint32_t bit = strtab_find (p->class, name);
    int rc = 0;

    if (bit != STRTAB_NONE)
        spec.bit = (uint8_t)bit;
    else if (strtab_count (p->class) > 0)
        spec.bit = CLASSES_MAX; /* nodes that name classes name another */
    if (bit != STRTAB_NONE && (p->counted >> bit & 1))
        spec.column = (uint8_t)place_class_column (p, name);
    if (own) {
        spec.access = (uint8_t)own->node_access;
        rc = class_guards (p, own, name, &spec, err);
        if (rc == 0 && own->exclude_features)
            rc = left_out (p, "CLASSCFG", name,
                           place_features (p, own->exclude_features, &spec.exclude, err), err);
        if (rc == 0 && own->nodeset)
            rc = left_out (p, "CLASSCFG", name,
                           place_nodeset (p, policy, own->nodeset, &spec.nodeset, err), err);
    }
    if (rc == 0)
        rc = cluster_class_set (p->cluster, class, &spec, now, err);
    return rc == 0 ? 0 : err_prefix (err, "CLASSCFG[%.60s]", name);
}

/* QOSFEATURES: a feature that no node has keeps its jobs waiting until one has. */
static int qos_apply (struct place *p, const struct policy *policy, uint32_t qos, time_us now,
                      struct err *err)
{
    const char *text = policy_qos (policy, qos)->features;
    struct features features = {0};
    int rc = text ? names_to_bits (p->features, text, "", &features, err) : 0;

    if (rc == 0)
        rc = cluster_qos_set (p->cluster, qos, &features, now, err);
    return rc == 0
               ? 0
               : err_prefix (err, "QOSFEATURES[%.60s]", strtab_name (p->names->tab[CRED_QOS], qos));
}

int place_apply (struct place *p, const struct policy *policy, const char *topology, time_us now,
                 struct err *err)
{
    uint32_t site = NODESET_NONE;
    int rc = left_out (p, "TOPOLOGYFILE", NULL, topology_apply (p, topology, now, err), err);

    for (uint32_t bit = 0; bit < strtab_count (p->class); bit++)
        (void)strtab_intern (p->names->tab[CRED_CLASS], strtab_name (p->class, bit));
    for (uint32_t class = 0; rc == 0 && class < strtab_count (p->names->tab[CRED_CLASS]); class ++)
        rc = place_class (p, policy, class, now, err);
    for (uint32_t qos = 0; rc == 0 && qos < strtab_count (p->names->tab[CRED_QOS]); qos++)
        rc = qos_apply (p, policy, qos, now, err);
    if (rc == 0 && policy->nodeset_policy) {
        struct set_words w = {policy->nodeset_policy, policy->nodeset_attribute,
                              policy->nodeset_priority, ""};
        if (!w.attribute)
            return err_set (err, ERR_INVALID, "NODESETPOLICY without NODESETATTRIBUTE");
        snprintf (w.list, sizeof w.list, "%s", policy->nodeset_list ? policy->nodeset_list : "");
        rc = left_out (p, "NODESETPOLICY", NULL, set_define (p, policy, &w, &site, err), err);
        if (rc != 0)
            return err_prefix (err, "NODESETPOLICY");
    }
    return rc == 0 ? cluster_nodeset_site_set (p->cluster, site, now, err) : rc;
}
