/* Names of nodes, resources, classes, switches: what is taken and what is refused, with its reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "local/conf/place.h"
#include "local/conf/priorityf.h"
#include "local/conf/policyconf.h"
#include "local/conf/settings.h"
#include "local/conf/topology.h"

struct site {
    struct cred_names names;
    struct policy *policy;
    struct conf *conf;
    struct nodeconf nodes;
    struct cluster *cluster;
    struct strtab *features;
    struct place place;
    bool tells, nothing_runs; /* what is not there is left out; also what keeps jobs off nodes */
    char told[400];
    struct err err;
    int rc;
};

static bool node_find (void *self, const char *name, struct node_id *out)
{
    const struct site *s = self;

    for (uint32_t i = 0; i < s->nodes.node_count; i++) {
        if (strcmp (s->nodes.node[i].name, name) == 0) {
            *out = (struct node_id){i};
            return true;
        }
    }
    return false;
}

static const char *node_name (void *self, uint32_t node)
{
    return ((struct site *)self)->nodes.node[node].name;
}

static void absent (void *self, const char *key, const char *index, const char *why, bool closed)
{
    struct site *s = self;
    size_t len = strlen (s->told);

    snprintf (s->told + len, sizeof s->told - len, "%s[%s] %s%s\n", key, index ? index : "", why,
              closed ? ": closed" : "");
}

static void nodes_make (struct site *s, const char *topology)
{
    struct node_spec spec;

    s->features = strtab_create ();
    s->cluster = cluster_create (s->policy, NULL, &s->err);
    place_open (&s->place, s->cluster, &s->names, s->features, node_find, s);
    s->place.absent = s->tells ? absent : NULL;
    s->place.node_name = node_name;
    s->place.nothing_runs = s->nothing_runs;
    s->rc = place_prepare (&s->place, s->nodes.node, s->nodes.node_count, s->nodes.global_gres, 0,
                           &s->err);
    for (uint32_t i = 0; s->rc == 0 && i < s->nodes.node_count; i++) {
        s->rc = place_node (&s->place, &s->nodes.node[i], &spec, &s->err);
        if (s->rc == 0)
            s->rc = cluster_node_add (s->cluster, &spec, 0, NULL, &s->err);
    }
    if (s->rc == 0)
        s->rc = place_apply (&s->place, s->policy, topology, 0, &s->err);
}

static void load (struct site *s, const char *text, const char *topology)
{
    bool tells = s->tells, nothing_runs = s->nothing_runs;

    memset (s, 0, sizeof *s);
    s->tells = tells;
    s->nothing_runs = nothing_runs;
    cred_names_init (&s->names);
    s->conf = conf_parse (text, strlen (text), "maui.cfg", &s->err);
    assert_non_null (s->conf);
    s->rc = policy_conf_read (s->conf, &s->names, &s->policy, &s->err);
    if (s->rc == 0)
        s->rc = nodeconf_read (s->conf, &s->nodes, &s->err);
    if (s->rc == 0)
        nodes_make (s, topology);
}

static void leave (struct site *s)
{
    if (s->place.column)
        place_close (&s->place);
    if (s->features)
        strtab_destroy (s->features);
    cluster_destroy (s->cluster);
    nodeconf_free (&s->nodes);
    policy_destroy (s->policy);
    conf_destroy (s->conf);
    cred_names_free (&s->names);
}

static void refused (const char *text, const char *topology, const char *sentence)
{
    struct site s = {0};

    load (&s, text, topology);
    if (s.rc == 0 || !strstr (s.err.text, sentence))
        fail_msg ("%s\n  wanted: %s\n  got: %s", text, sentence, s.rc ? s.err.text : "no error");
    leave (&s);
}

static void test_taken (void **state)
{
    struct site s = {0};
    struct node_view view;
    uint32_t column, licence, id;
    int32_t total, left;

    (void)state;
    load (
        &s,
        "NODECFG[DEFAULT] MEM=4G CLASS=batch\n"
        "NODECFG[n[1-3]]  PROCS=8 GRES=tape:2,gpu PARTITION=old\n"
        "NODECFG[n4]      PROCS=2 CLASS=batch:1,special MAXJOB=1 NETWORK=via FEATURES=fast\n"
        "NODECFG[GLOBAL]  GRES=matlab:5\n"
        "CLASSCFG[special] HOSTLIST=n4 DEFAULT.FEATURES=fast\n"
        "NODESETPOLICY FIRSTOF\nNODESETATTRIBUTE NETWORK\nNODESETLIST via\n",
        "SwitchName=a Nodes=n[1-2] # left\nSwitchName=b Nodes=n[3-4]\n\nSwitchName=c Switches=a,b\n");
    if (s.rc != 0)
        fail_msg ("%s", s.err.text);
    assert_int_equal (s.nodes.node_count, 4);
    assert_int_equal (s.nodes.node[3].mem_mb, 4096);
    assert_true (place_gres (&s.place, "tape", &column, &licence));
    assert_int_equal (cluster_node_get (s.cluster, (struct node_id){1}, &view, NULL), 0);
    assert_int_equal (view.spec.configured.v[column], 2);
    assert_int_not_equal (view.spec.partition, 1);
    assert_true (place_gres (&s.place, "matlab", &column, &licence));
    assert_int_equal (column, 0);
    cluster_licence_get (s.cluster, licence, &total, &left);
    assert_int_equal (total, 5);
    assert_false (place_gres (&s.place, "class:batch", &column, &licence));
    assert_int_equal (cluster_node_get (s.cluster, (struct node_id){3}, &view, NULL), 0);
    column = place_class_column (&s.place, "batch");
    assert_int_equal (view.spec.configured.v[column], 1);
    assert_int_equal (cluster_node_get (s.cluster, (struct node_id){0}, &view, NULL), 0);
    assert_int_equal (view.spec.configured.v[column], 8); /* one for each processor */
    assert_int_equal (place_nodeset (&s.place, s.policy, "ONEOF:TOPOLOGY:a:b", &id, &s.err), 0);
    assert_int_equal (place_nodeset (&s.place, s.policy, "NONE", &id, &s.err), 0);
    assert_int_equal (id, NODESET_NONE);
    assert_int_not_equal (place_nodeset (&s.place, s.policy, "ONEOF:TOPOLOGY:x", &id, &s.err), 0);
    leave (&s);
}

static int32_t configured (struct site *s, uint32_t node, const char *gres)
{
    struct node_view view;
    uint32_t column, licence;

    assert_true (place_gres (&s->place, gres, &column, &licence));
    assert_int_equal (cluster_node_get (s->cluster, (struct node_id){node}, &view, NULL), 0);
    return view.spec.configured.v[column];
}

/* Typed devices count in the whole, whether the file names the whole or not; so do requests. */
static void test_types (void **state)
{
    struct site s = {0};
    struct resources asked = {{0}};
    uint32_t whole, typed, licence;

    (void)state;
    load (&s,
          "NODECFG[n1] PROCS=8 GRES=gpu:2,gpu.a100:2\n"
          "NODECFG[n2] PROCS=8 GRES=gpu.a100:1,gpu.h100:3\n"
          "NODECFG[n3] PROCS=8 GRES=gpu:4,gpu.a100:1\n",
          NULL);
    if (s.rc != 0)
        fail_msg ("%s", s.err.text);
    assert_int_equal (configured (&s, 0, "gpu"), 2);
    assert_int_equal (configured (&s, 1, "gpu"), 4);
    assert_int_equal (configured (&s, 2, "gpu"), 4);
    assert_int_equal (configured (&s, 1, "gpu.h100"), 3);
    assert_true (place_gres (&s.place, "gpu", &whole, &licence));
    assert_true (place_gres (&s.place, "gpu.a100", &typed, &licence));
    asked.v[typed] = 2;
    place_gres_whole (&s.place, &asked);
    assert_int_equal (asked.v[whole], 2);
    place_gres_whole (&s.place, &asked); /* what names the whole already is not counted again */
    assert_int_equal (asked.v[whole], 2);
    asked.v[whole] = 3;
    place_gres_whole (&s.place, &asked);
    assert_int_equal (asked.v[whole], 3);
    leave (&s);
}

static void test_refused (void **state)
{
    (void)state;
    refused ("NODECFG[n1] PROCS=1\nNODECFG[n[1-2]] PROCS=2\n", NULL, "n1 is configured twice");
    refused ("NODECFG[n1] GRES=tape:x\n", NULL, "GRES: the count");
    refused ("NODECFG[n1] PRIORITYF='SPEED +'\n", NULL, "is no term");
    refused ("NODECFG[n1] PRIORITYF='SPEED AMEM'\n", NULL, "'+' or '-' wanted");
    refused ("NODECFG[n1] GRES=a\nNODECFG[GLOBAL] GRES=a:2\n", NULL, "of nodes already");
    refused ("NODECFG[n1] PROCS=1\nCLASSCFG[c] HOSTLIST=n9\n", NULL,
             "CLASSCFG[c]: there is no node n9");
    refused ("NODECFG[n1] PROCS=1\nCLASSCFG[c] DEFAULT.FEATURES=x\n", NULL,
             "no node has the feature x");
    refused ("NODECFG[n1] PROCS=1\nNODESETPOLICY ONEOF\n", NULL, "without NODESETATTRIBUTE");
    refused ("NODECFG[n1] PROCS=1\nTOPOLOGYFILE /nonexistent\n", NULL, "cannot be read");
    refused ("NODECFG[n1] PROCS=1\n", "Nodes=n1\n", "line 1: it begins with SwitchName=");
    refused ("NODECFG[n1] PROCS=1\n", "SwitchName=a\n", "one of them");
    refused ("NODECFG[n1] PROCS=1\n", "SwitchName=a Nodes=n2\n", "there is no node n2");
    refused ("NODECFG[n1] PROCS=1\n", "SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
             "above itself");
    refused ("NODECFG[n1] PROCS=1\n", "SwitchName=a Nodes=n1\nSwitchName=a Nodes=n1\n",
             "there already");
}

/* Whether jobs of a class are taken, as far as its hosts and features go; features: they ask for some themselves. */
static void open_to (struct site *s, const char *class, bool features, const char *sentence)
{
    uint32_t cred[CRED_KINDS];
    struct err err = {0};

    for (int k = 0; k < CRED_KINDS; k++)
        cred[k] = CRED_NONE;
    cred[CRED_CLASS] = strtab_find (s->names.tab[CRED_CLASS], class);
    int rc = place_class_open (&s->place, s->policy, cred, features, &err);
    assert_int_equal (rc, sentence ? ERR_NOT_FOUND : 0);
    if (sentence)
        assert_string_equal (err.text, sentence);
}

/* A class kept to what is not here stands, without a node; one of whose hosts some are here keeps those; patterns are
 * HOSTLIST's as in SRCFG. */
static void test_closed (void **state)
{
    static const char text[] = "NODECFG[n[01-04]] PROCS=1 FEATURES=fast\n"
                               "CLASSCFG[gone] HOSTLIST=m[1-2]\n"
                               "CLASSCFG[some] HOSTLIST=n01,m1\n"
                               "CLASSCFG[none] DEFAULT.FEATURES=wide\n"
                               "CLASSCFG[like] HOSTLIST=n0[12],n.*4\n"
                               "CLASSCFG[all]  HOSTLIST=ALL\n"
                               "CLASSCFG[fast] DEFAULT.FEATURES=fast\n";
    static const char told[] = "CLASSCFG[gone] there is no node m1: closed\n"
                               "CLASSCFG[some] there is no node m1\n"
                               "CLASSCFG[none] no node has the feature wide: closed\n";
    struct site s = {.tells = true};

    (void)state;
    load (&s, text, NULL);
    if (s.rc != 0)
        fail_msg ("%s", s.err.text);
    assert_string_equal (s.told, told);
    for (int again = 0; again < 2; again++) { /* and so it stays */
        open_to (&s, "gone", false, "class gone: there is no node m1");
        open_to (&s, "none", false, "class none: no node has the feature wide");
        open_to (&s, "none", true, NULL);
        open_to (&s, "some", false, NULL);
        open_to (&s, "like", false, NULL);
        open_to (&s, "all", false, NULL);
        open_to (&s, "fast", false, NULL);
        assert_int_equal (place_apply (&s.place, s.policy, NULL, 0, &s.err), 0);
    }
    leave (&s);
}

/* What names nothing that is here is told and left out; also what keeps jobs off nodes, where nothing is run. */
static void test_left_out (void **state)
{
    static const char text[] =
        "NODECFG[n1] PROCS=1\n"
        "CLASSCFG[c] DEFAULT.NODESET=ONEOF:FEATURE:wide EXCLUDEFEATURES=slow\n"
        "NODESETPOLICY ONEOF\nNODESETATTRIBUTE NETWORK\nNODESETLIST via\n";
    static const char all[] = "TOPOLOGYFILE[] topology line 1: there is no node n2\n"
                              "CLASSCFG[c] no node has the feature slow\n"
                              "CLASSCFG[c] node set: no node has the feature wide\n"
                              "NODESETPOLICY[] node set: no node has the network via\n";
    static const char guards[] = "NODECFG[n1] PROCS=1\nCLASSCFG[c] HOSTLIST=n9\n";
    struct site s = {.tells = true};

    (void)state;
    load (&s, text, "SwitchName=a Nodes=n2\n");
    assert_int_equal (s.rc, 0);
    assert_string_equal (s.told, all);
    leave (&s);
    s.nothing_runs = true;
    load (&s, guards, NULL);
    assert_int_equal (s.rc, 0);
    assert_string_equal (s.told, "CLASSCFG[c] there is no node n9\n");
    leave (&s);
}

/* settings_read of these lines: these faults, each with its line, and no other. */
static void faults (const char *text, const char *const *wanted)
{
    char whole[4000];
    struct cred_names names;
    struct settings *settings = NULL;
    struct err err = {0};

    snprintf (whole, sizeof whole, "%sSTATEDIR /var/lib/nui\nSOCKET /run/nui/sock\n", text);
    cred_names_init (&names);
    struct conf *conf = conf_parse (whole, strlen (whole), "f", &err);
    assert_non_null (conf);
    int rc = settings_read (conf, &names, -1, &settings, &err);
    for (uint32_t i = 0; wanted[i]; i++) {
        if (i >= conf_fault_count (conf))
            fail_msg ("%s\n  wanted: %s\n  got: %s", text, wanted[i], rc ? err.text : "no error");
        if (!strstr (conf_fault (conf, i), wanted[i]))
            fail_msg ("%s\n  wanted: %s\n  got: %s", text, wanted[i], conf_fault (conf, i));
        assert_int_equal (conf_fault_count (conf) > i + 1, wanted[i + 1] != NULL);
    }
    assert_int_equal (rc != 0, wanted[0] != NULL);
    settings_destroy (settings);
    conf_destroy (conf);
    cred_names_free (&names);
}

/* What only shows when nodes are made is a fault of the file, with its line. */
static void test_faults (void **state)
{
    char many[2000] = "NODECFG[n1] PROCS=1\nNODECFG[n2] CLASS=c0",
         longest[600] = "NODECFG[n1] FEATURES=a,";
    size_t len = strlen (many);

    (void)state;
    faults ("NODECFG[n[1-2]] CLASS=batch:2,short GRES=tape:1,gpu FEATURES=a,b\n"
            "CLASSCFG[short] HOSTLIST=n[1-2] DEFAULT.FEATURES=a\n",
            (const char *const[]){NULL});
    faults (
        "NODECFG[n1] CLASS=batch:x PROCS=2\nNODECFG[n2] GRES=ta/pe\nNODECFG[DEFAULT] PRIORITYF=SPED\n",
        (const char *const[]){
            "f: line 1: NODECFG[n1]: CLASS: the count",
            "f: line 2: NODECFG[n2]: GRES: ", "f: line 3: NODECFG[DEFAULT]: PRIORITYF: ", NULL});
    for (int i = 1; i < 64; i++)
        len += (size_t)snprintf (many + len, sizeof many - len, ",c%d", i);
    snprintf (many + len, sizeof many - len, "\n");
    faults (many, (const char *const[]){"f: line 2: NODECFG CLASS: more than 63 classes", NULL});
    len = strlen (longest);
    memset (longest + len, 'f', 300);
    snprintf (longest + len + 300, sizeof longest - len - 300, "\n");
    faults (longest, (const char *const[]){
                         "f: line 1: NODECFG[n1]: FEATURES: a feature's name of 300", NULL});
    faults ("NODECFG[n1] GRES=a\nNODECFG[GLOBAL] GRES=a:2\n",
            (const char *const[]){"f: line 2: NODECFG[GLOBAL]: a is a generic resource of nodes",
                                  NULL});
    faults ("NODECFG[n1] PROCS=1\nCLASSCFG[c] HOSTLIST=n9\nCLASSCFG[d] DEFAULT.FEATURES=x\n",
            (const char *const[]){"f: line 2: CLASSCFG[c]: there is no node n9",
                                  "f: line 3: CLASSCFG[d]: no node has the feature x", NULL});
    faults ("NODECFG[n1] PROCS=1\nNODESETPOLICY ONEOF\n",
            (const char *const[]){"f: line 2: NODESETPOLICY without NODESETATTRIBUTE", NULL});
}

/* settings_read of a file of Maui's: it is taken, and all of this is told of it. */
static struct settings *told_of (const char *text, struct conf **conf_out, struct cred_names *names)
{
    char whole[4000];
    struct settings *settings = NULL;
    struct err err = {0};

    snprintf (whole, sizeof whole, "%sSTATEDIR /var/lib/nui\nSOCKET /run/nui/sock\n", text);
    cred_names_init (names);
    *conf_out = conf_parse (whole, strlen (whole), "f", &err);
    assert_non_null (*conf_out);
    conf_lenient (*conf_out);
    if (settings_read (*conf_out, names, -1, &settings, &err) != 0)
        fail_msg ("%s\n  %s", text, err.text);
    return settings;
}

static void is_told (struct conf *conf, const char *sentence)
{
    for (uint32_t i = 0; i < conf_note_count (conf); i++)
        if (strstr (conf_note (conf, i), sentence))
            return;
    for (uint32_t i = 0; i < conf_note_count (conf); i++)
        fprintf (stderr, "%s\n", conf_note (conf, i));
    fail_msg ("nobody is told: %s", sentence);
}

/* A second resource manager, one that is not spoken here, nodes that are a pattern. */
static void test_maui_rm (void **state)
{
    struct conf *conf;
    struct cred_names names;
    struct settings *s =
        told_of ("NODECFG[n1] PROCS=1\nNODECFG[n*] MAXJOB=2\nRMCFG[base] TYPE=PBS HOST=h\n"
                 "RMCFG[lic] TYPE=NATIVE RESOURCETYPE=LICENSE\nCLASSCFG[far] HOSTLIST=m1\n"
                 "QOSCFG[hi] FEATURES=wide\n",
                 &conf, &names);

    (void)state;
    is_told (conf, "f: line 2: NODECFG[n*]: is no list of nodes");
    is_told (conf, "f: line 3: RMCFG[base] TYPE: PBS is spoken to by a program: TYPE=NATIVE "
                   "ADAPTER=nui-pbs (nui-local(8)); until then nothing is run, as in mode TEST");
    is_told (conf, "f: line 4: RMCFG[lic]: there is one resource manager, RMCFG[base]: this line");
    is_told (conf, "f: line 5: CLASSCFG[far]: there is no node m1; jobs of the class are refused");
    is_told (conf, "f: line 6: QOSCFG[hi]: no node has the feature wide; jobs of the QoS wait");
    assert_int_equal (s->nodes.node_count, 1);
    assert_int_equal (s->mode.mode, MODE_TEST);
    assert_string_equal (s->rm_kind->name, "EMBEDDED");
    settings_destroy (s);
    conf_destroy (conf);
    cred_names_free (&names);
    s = told_of ("NODECFG[n1] PROCS=1\nRMCFG[old] TYPE=LL\nRMCFG[new] TYPE=EMBEDDED\n", &conf,
                 &names);
    is_told (conf, "f: line 2: RMCFG[old]: there is one resource manager, RMCFG[new]");
    assert_int_equal (s->mode.mode, MODE_NORMAL);
    settings_destroy (s);
    conf_destroy (conf);
    cred_names_free (&names);
}

static void test_priorityf (void **state)
{
    struct node_priority fn;
    struct err err;

    (void)state;
    assert_int_equal (priorityf_parse ("'AMEM - 10*USAGE + SPEED'", &fn, &err), 0);
    assert_true (fn.weight[TERM_AMEM] == 1 && fn.weight[TERM_USAGE] == -10 &&
                 fn.weight[TERM_SPEED] == 1 && fn.weight[TERM_LOAD] == 0);
    assert_int_equal (priorityf_parse ("-.5*load*2 + 3 + PRIORITY", &fn, &err), 0);
    assert_true (fn.weight[TERM_LOAD] == -1 && fn.weight[TERM_ONE] == 3 &&
                 fn.weight[TERM_PRIORITY] == 1);
    assert_int_not_equal (priorityf_parse ("", &fn, &err), 0);
    assert_int_not_equal (priorityf_parse ("SPEED*AMEM", &fn, &err), 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_taken),   cmocka_unit_test (test_types),
        cmocka_unit_test (test_refused), cmocka_unit_test (test_left_out),
        cmocka_unit_test (test_faults),  cmocka_unit_test (test_priorityf),
        cmocka_unit_test (test_closed),  cmocka_unit_test (test_maui_rm),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
