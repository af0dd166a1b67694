/* policyconf_place: parameters and attributes about where jobs run: classes, partitions, node sets, who
 * shares a node, how nodes are counted. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "local/conf/hosts.h"
#include "local/conf/policyconf_i.h"
#include "local/core/types.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

static struct policy *policy_of (void *target)
{
    return ((struct policy_file *)target)->policy;
}

static struct policy_class *class_of (void *target)
{
    struct cred_ref *ref = target;

    return policy_class_edit (ref->policy, policy_cred_edit (ref->policy, ref->kind, ref->id));
}

/* --- words ----------------------------------------------------------------------------------- */

static int word (const char *text, const char *const *words, const int *values, int *out,
                 struct err *err)
{
    struct strbuf all = STRBUF_INIT;
    int rc;

    for (int i = 0; words[i]; i++) {
        if (strcasecmp (words[i], text) == 0) {
            *out = values[i];
            strbuf_free (&all);
            return 0;
        }
        strbuf_printf (&all, "%s%s", i ? ", " : "", words[i]);
    }
    rc = err_set (err, ERR_INVALID, "'%.40s' is none of %s", text, strbuf_text (&all));
    strbuf_free (&all);
    return rc;
}

const char *const policy_access_words[] = {"SHARED",     "SINGLEUSER", "SINGLEJOB",
                                           "SINGLETASK", "DEDICATED",  NULL};
const int policy_access_values[] = {ACCESS_SHARED, ACCESS_SINGLEUSER, ACCESS_SINGLEJOB,
                                    ACCESS_SINGLETASK, ACCESS_SINGLEJOB};

/* "COMBINED" for all, or "DEDICATED:PROCS COMBINED:MEM", also the other way round: "PROCS:DEDICATED". */
int policy_set_node_availability (void *target, const struct conf_value *value, struct err *err)
{
    static const char *const words[] = {"COMBINED", "DEDICATED", "UTILIZED", NULL};
    static const int values[] = {NODEAVAIL_COMBINED, NODEAVAIL_DEDICATED, NODEAVAIL_UTILIZED};
    static const char *const resources[] = {"PROC",  "MEM",    "SWAP", "DISK",
                                            "PROCS", "MEMORY", "CPU",  NULL};
    static const int columns[] = {RES_PROCS, RES_MEM_MB, RES_SWAP_MB, RES_DISK_MB,
                                  RES_PROCS, RES_MEM_MB, RES_PROCS};
    struct policy *p = policy_of (target);

    p->node_availability_said = true;
    for (const char *at = value->text; *(at += strspn (at, " \t,"));) {
        char text[64];
        int how, column = -1, rc, len = (int)strcspn (at, " \t,");
        snprintf (text, sizeof text, "%.*s", len < 60 ? len : 60, at);
        at += len;
        char *first = text, *second = strchr (text, ':');
        if (second)
            *second++ = '\0';
        if (second && word (first, resources, columns, &column, NULL) == 0) {
            first = second;
            second = NULL;
        }
        rc = word (first, words, values, &how, err);
        if (rc == 0 && second)
            rc = word (second, resources, columns, &column, err);
        if (rc != 0)
            return rc;
        for (int d = 0; d < 4; d++) {
            if (column < 0 || column == d)
                p->node_availability[d] = (enum node_availability)how;
        }
    }
    return 0;
}

int policy_set_node_load (void *target, const struct conf_value *value, struct err *err)
{
    int64_t ppm = 0;
    int rc = ppm_parse (value->text, "the load", &ppm, err);
    if (rc == 0 && (ppm < 0 || ppm / 1000 > INT32_MAX))
        return err_set (err, ERR_INVALID, "NODEMAXLOAD is a load average, 0 for none");
    if (rc == 0)
        policy_of (target)->node_max_load_milli = (int32_t)(ppm / 1000);
    return rc;
}

/* --- node sets -------------------------------------------------------------------------------- */

int policy_set_nodeset (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = policy_of (target);
    const char *text = arena_strdup (p->arena, value->text);

    if (strcmp (value->key, "NODESETPOLICY") == 0) {
        static const char *const words[] = {"NONE", "ONEOF", "FIRSTOF", "ANYOF", NULL};
        static const int values[] = {0, 1, 2, 3};
        int which = 0, rc = word (text, words, values, &which, err);
        p->nodeset_policy = which ? text : NULL;
        return rc;
    }
    if (strcmp (value->key, "NODESETATTRIBUTE") == 0) {
        static const char *const words[] = {"FEATURE", "PROCSPEED", "NETWORK", "TOPOLOGY", NULL};
        static const int values[] = {0, 1, 2, 3};
        int which = 0;
        p->nodeset_attribute = text;
        return word (text, words, values, &which, err);
    }
    if (strcmp (value->key, "NODESETLIST") == 0) {
        p->nodeset_list = text;
        return 0;
    }
    if (strcmp (value->key, "NODESETTOLERANCE") == 0) {
        int rc = ppm_parse (text, "the tolerance", &p->nodeset_tolerance_ppm, err);
        if (rc == 0 && p->nodeset_tolerance_ppm < 0)
            return err_set (err, ERR_INVALID, "the tolerance is 0 or more");
        return rc;
    }
    static const char *const words[] = {"MINLOSS", "BESTFIT", "WORSTFIT", "BESTRESOURCE", NULL};
    static const int values[] = {0, 1, 2, 3};
    int which = 0;
    p->nodeset_priority = text;
    return word (text, words, values, &which, err);
}

/* --- partitions -------------------------------------------------------------------------------- */

int policy_partition_number (struct policy *p, const char *name, uint32_t *out, struct err *err)
{
    int rc = name_check ("partition", name, err);

    if (rc)
        return rc;
    *out = strtab_intern (p->names->partition, name) + 1;
    if (*out > PARTITIONS_MAX)
        return err_set (err, ERR_LIMIT, "more than %d partitions", PARTITIONS_MAX);
    return 0;
}

static int partition_list (struct policy *p, const char *list, uint64_t *mask_out,
                           enum qlist_mode *mode_out, struct err *err)
{
    char *text = arena_strdup (p->arena, list), *rest = NULL;
    size_t len = strlen (text);
    int rc = 0;

    *mode_out = QLIST_UNION;
    if (len && (text[len - 1] == '&' || text[len - 1] == '^')) {
        *mode_out = text[len - 1] == '&' ? QLIST_INTERSECT : QLIST_EXCLUSIVE;
        text[len - 1] = '\0';
    }
    *mask_out = 0;
    for (char *one = strtok_r (text, ":, \t[]", &rest); rc == 0 && one;
         one = strtok_r (NULL, ":, \t[]", &rest)) {
        uint32_t number = 0;
        if (strcasecmp (one, "ALL") == 0) {
            *mask_out = UINT64_MAX >> 1;
            continue;
        }
        rc = policy_partition_number (p, one, &number, err);
        if (rc == 0)
            *mask_out |= partition_bit (number);
    }
    if (rc == 0 && *mask_out == 0)
        return err_set (err, ERR_INVALID, "no partition is named");
    return rc;
}

int policy_set_plist (void *target, const struct conf_value *value, struct err *err)
{
    struct cred_ref *ref = target;
    enum qlist_mode mode;
    uint64_t mask;
    int rc = partition_list (ref->policy, value->text, &mask, &mode, err);

    if (rc == 0) {
        struct policy_cred *c = policy_cred_edit (ref->policy, ref->kind, ref->id);
        c->plist = mask;
        c->plist_mode = mode;
        c->set |= CRED_SET_PLIST;
    }
    return rc;
}

int policy_set_pdef (void *target, const struct conf_value *value, struct err *err)
{
    struct cred_ref *ref = target;
    uint32_t number;
    int rc = policy_partition_number (ref->policy, value->text, &number, err);

    if (rc == 0) {
        struct policy_cred *c = policy_cred_edit (ref->policy, ref->kind, ref->id);
        c->pdef = number;
        c->set |= CRED_SET_PDEF;
    }
    return rc;
}

int policy_set_system_plist (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = target;

    if (value->word_count == 0) {
        conf_note_add (
            value, "is empty and says nothing: who has no %s of his own has %s", value->attr,
            value->attr[1] == 'D' ? "none"
                                  : "all partitions (USERCFG[DEFAULT] PLIST=x says fewer)");
        return 0;
    }
    if (strcmp (value->attr, "PDEF") == 0)
        return policy_partition_number (p, value->text, &p->system_pdef, err);
    return partition_list (p, value->text, &p->system_plist, &p->system_plist_mode, err);
}

/* --- classes ------------------------------------------------------------------------------------ */

int policy_set_class_wall (void *target, const struct conf_value *value, struct err *err)
{
    struct policy_class *c = class_of (target);
    duration_us d;
    int rc = duration_parse (value->text, &d, err);

    if (rc == 0 && (d < US_PER_S || d == TIME_US_MAX))
        return err_set (err, ERR_INVALID, "a wallclock limit is at least a second");
    if (rc == 0)
        *(value->attr[0] == 'D'                  ? &c->default_wall_s
          : strncmp (value->attr, "MAX", 3) == 0 ? &c->max_wall_s
                                                 : &c->min_wall_s) = d / US_PER_S;
    return rc;
}

int policy_set_class_count (void *target, const struct conf_value *value, struct err *err)
{
    struct policy_class *c = class_of (target);
    bool most = strncmp (value->attr, "MAX", 3) == 0;
    const char *what = strrchr (value->attr, '.') + 1;
    int64_t *field = strcmp (what, "PS") == 0     ? &c->max_ps
                     : strcmp (what, "NODE") == 0 ? (most ? &c->max_nodes : &c->min_nodes)
                                                  : (most ? &c->max_procs : &c->min_procs);

    return int_parse (value->text, value->attr, 1, INT64_MAX, field, err);
}

/* MAXPROCPERJOB=8: MAX.PROC=8; MAXWCPERJOB and MAXWCLIMITPERJOB: MAX.WCLIMIT */
int policy_set_class_per_job (void *target, const struct conf_value *value, struct err *err)
{
    char attr[16];
    struct conf_value as = *value;
    bool wall = strncasecmp (value->attr, "MAXWC", 5) == 0;
    size_t len = strlen (value->attr) - strlen ("MAX") - strlen ("PERJOB");
    text_printf (attr, sizeof attr, "MAX.%.*s", (int)len, value->attr + 3);
    as.attr = wall ? "MAX.WCLIMIT" : attr;
    return wall ? policy_set_class_wall (target, &as, err)
                : policy_set_class_count (target, &as, err);
}

int policy_set_class_text (void *target, const struct conf_value *value, struct err *err)
{
    struct policy_class *c = class_of (target);
    const char *text = arena_strdup (((struct cred_ref *)target)->policy->arena, value->text);

    if (strcmp (value->attr, "HOSTLIST") == 0) {
        c->host_list = text;
        return hosts_readable (text, err);
    }
    if (strcmp (value->attr, "DEFAULT.FEATURES") == 0)
        c->default_features = text;
    else if (strcmp (value->attr, "EXCLUDEFEATURES") == 0)
        c->exclude_features = text;
    else
        c->nodeset = text;
    return 0;
}

int policy_set_class_access (void *target, const struct conf_value *value, struct err *err)
{
    return word (value->text, policy_access_words, policy_access_values,
                 &class_of (target)->node_access, err);
}

/* REQUIREDUSERLIST=a,b; EXCLUDEGROUPLIST=c … */
int policy_set_class_people (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = ((struct cred_ref *)target)->policy;
    struct policy_class *c = class_of (target);
    bool required = strncmp (value->attr, "REQUIRED", 8) == 0;
    const char *what = value->attr + (required ? 8 : 7);
    char *text = arena_strdup (p->arena, value->text), *rest = NULL;
    enum cred_kind kind = CRED_USER;

    for (int k = 0; k < CRED_KINDS; k++) {
        size_t len = strlen (cred_kind_name ((enum cred_kind)k));
        if (strncasecmp (what, cred_kind_name ((enum cred_kind)k), len) == 0)
            kind = (enum cred_kind)k;
    }
    struct policy_list *list = required ? &c->required[kind] : &c->excluded[kind];
    list->id = arena_array (p->arena, strlen (text) / 2 + 1, sizeof *list->id);
    list->count = 0;
    for (char *one = strtok_r (text, ":, \t", &rest); one; one = strtok_r (NULL, ":, \t", &rest)) {
        int rc = name_check (cred_kind_name (kind), one, err);
        if (rc)
            return rc;
        list->id[list->count++] = strtab_intern (p->names->tab[kind], one);
    }
    return list->count ? 0 : err_set (err, ERR_INVALID, "nobody is named");
}
