/* What administrators, and owners of waiting jobs, change of jobs and nodes (mjobctl -m, setqos,
 * mnodectl -m), and of the policy while it is in force (changeparam).
 *
 * Jobs and nodes: durable, with a line in the audit log, before it is acknowledged; it holds over
 * restarts and reloads. Parameters hold until the configuration is read again, as Maui's. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "local/svc/admin/admin.h"
#include "local/svc/caller.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/job/life.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

/* --- jobs --------------------------------------------------------------------------------- */

static int attr_parse (const char *name, enum change_attr *out, struct err *err)
{
    static const struct {
        const char *name;
        enum change_attr attr;
    } also[] = {{"queue", ATTR_CLASS},
                {"walltime", ATTR_WCLIMIT},
                {"minstarttime", ATTR_STARTTIME},
                {"reqstarttime", ATTR_STARTTIME}};
    for (int a = 0; a < ATTRS; a++)
        if (strcasecmp (name, change_attr_names[a]) == 0) {
            *out = (enum change_attr)a;
            return 0;
        }
    for (size_t i = 0; i < sizeof also / sizeof *also; i++)
        if (strcasecmp (name, also[i].name) == 0) {
            *out = also[i].attr;
            return 0;
        }
    const char *near = conf_nearest (name, change_attr_names);
    return err_set (
        err, ERR_INVALID,
        "'%.40s' of a job cannot be changed%s%s%s: wanted qos, class, account, wclimit, "
        "starttime or deadline",
        name, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

/* What a change is about to make of a job. */
struct job_change {
    uint32_t cred[CRED_KINDS];
    duration_us walltime;
    time_us not_before, deadline;
    char account[STORE_NAME_MAX];
};

static struct job_change change_of (const struct site_job *job)
{
    struct job_change c = {
        .walltime = job->rec.walltime, .not_before = job->not_before, .deadline = job->deadline};
    memcpy (c.cred, job->cred, sizeof c.cred);
    snprintf (c.account, sizeof c.account, "%s", job->rec.pay_account);
    return c;
}

static void qos_list (struct svc *svc, const uint32_t cred[CRED_KINDS], char *out, size_t cap)
{
    size_t len = 0;
    *out = 0;
    for (uint32_t q = 0; q < strtab_count (svc->names->tab[CRED_QOS]) && len + 1 < cap; q++) {
        uint32_t asked[CRED_KINDS];
        bool denied = false;
        memcpy (asked, cred, sizeof asked);
        asked[CRED_QOS] = q;
        policy_qos_resolve (svc->settings->policy, asked, &denied);
        if (!denied)
            len += (size_t)snprintf (out + len, cap - len, "%s%s", len ? ":" : "",
                                     cred_name (svc->names, CRED_QOS, q));
    }
}

static int change_qos (struct svc *svc, const struct site_job *job, const char *value,
                       struct job_change *c, struct err *err)
{
    char list[200], id[SITE_ID_MAX];
    bool denied = true;
    uint32_t known = strtab_find (svc->names->tab[CRED_QOS], value);
    if (known != STRTAB_NONE) {
        c->cred[CRED_QOS] = known;
        c->cred[CRED_QOS] = policy_qos_resolve (svc->settings->policy, c->cred, &denied);
    }
    if (!denied)
        return 0;
    qos_list (svc, job->cred, list, sizeof list);
    return err_set (err, ERR_DENIED, "job %s does not have access to QOS %.60s (QOSList: %s)",
                    site_id (svc, job->rec.number, id), value, list);
}

static int change_name (struct svc *svc, enum cred_kind kind, const char *value,
                        struct job_change *c, struct err *err)
{
    bool denied;
    char there[200];
    int rc = name_check (cred_kind_name (kind), value, err);
    if (rc == 0 && kind == CRED_CLASS && !jobspec_class_known (svc, value)) {
        jobspec_names_there (svc, CRED_CLASS, there, sizeof there);
        rc = err_set (err, ERR_NOT_FOUND, "site %s has no class %.63s%s", svc->site, value, there);
    }
    if (rc != 0)
        return rc;
    c->cred[kind] = strtab_intern (svc->names->tab[kind], value);
    uint32_t qos = policy_qos_resolve (svc->settings->policy, c->cred, &denied);
    if (denied) /* its QoS came with the old one */
        c->cred[CRED_QOS] = qos;
    if (kind == CRED_ACCOUNT)
        text_printf (c->account, sizeof c->account, "%.63s", value);
    return 0;
}

/* Signed and charged: who pays, and for how long at most, is what the owner signed. */
static bool is_signed (const struct svc *svc, const struct site_job *job)
{
    return svc->bank && job->rec.submitter && *job->rec.submitter;
}

static int change_walltime (struct svc *svc, const struct admin_caller *caller,
                            const struct site_job *job, const char *value, struct job_change *c,
                            struct err *err)
{
    bool more = *value == '+', less = *value == '-';
    int rc = duration_parse (value + (more || less), &c->walltime, err);
    if (rc != 0)
        return rc;
    if (more && c->walltime < INT64_MAX / 4)
        c->walltime += job->rec.walltime;
    if (less)
        c->walltime = job->rec.walltime - c->walltime;
    if (c->walltime <= 0 || c->walltime > INT64_MAX / 4)
        return err_set (err, ERR_INVALID, "wclimit '%.40s' is no limit", value);
    if (c->walltime <= job->rec.walltime)
        return 0;
    if (is_signed (svc, job))
        return err_set (err, ERR_DENIED,
                        "the owner signed a shorter limit; it may be lowered only");
    return admin_require (caller, ADMIN_JOBS, "a longer limit", err);
}

/* One that is over, or that the job cannot keep, would end it at once. */
static int change_deadline (struct svc *svc, const char *value, struct job_change *c,
                            struct err *err)
{
    char limit[QUANTITY_TEXT_MAX];
    time_us now = svc_now (svc);
    if (strcmp (value, "0") == 0) {
        c->deadline = 0;
        return 0;
    }
    int rc = time_parse (value, now, &c->deadline, err);
    if (rc == 0 && c->deadline == TIME_US_MAX)
        c->deadline = 0;
    else if (rc == 0 && c->deadline - now < c->walltime)
        rc = err_set (err, ERR_INVALID,
                      "with a wallclock limit of %s the job cannot end by then, if it started now",
                      duration_format (c->walltime, limit));
    return rc;
}

static int change_make (struct svc *svc, const struct admin_caller *caller,
                        const struct site_job *job, enum change_attr attr, const char *value,
                        struct job_change *c, struct err *err)
{
    switch (attr) {
    case ATTR_QOS:
        return change_qos (svc, job, value, c, err);
    case ATTR_CLASS:
        return change_name (svc, CRED_CLASS, value, c, err);
    case ATTR_ACCOUNT:
        if (is_signed (svc, job))
            return err_set (err, ERR_DENIED, "the account is part of what the owner signed");
        return change_name (svc, CRED_ACCOUNT, value, c, err);
    case ATTR_WCLIMIT:
        return change_walltime (svc, caller, job, value, c, err);
    case ATTR_DEADLINE:
        return change_deadline (svc, value, c, err);
    default:
        if (strcmp (value, "0") == 0)
            c->not_before = TIME_US_NONE;
        else
            return time_parse (value, svc_now (svc), &c->not_before, err);
        return 0;
    }
}

static int core_apply (struct svc *svc, const struct site_job *job, const struct job_change *c,
                       struct err *err)
{
    struct job_view view;
    int rc = cluster_job_get (svc->cluster, (struct job_id){job->rec.number}, &view, err);
    if (rc != 0)
        return rc;
    struct job_spec spec = *view.spec;
    struct req req[REQS_MAX];
    memcpy (req, view.spec->req, spec.req_count * sizeof *req);
    spec.req = req;
    memcpy (spec.cred, c->cred, sizeof spec.cred);
    spec.walltime_limit = c->walltime;
    spec.not_before = c->not_before;
    spec.deadline = c->deadline;
    return cluster_job_modify (svc->cluster, &spec, svc_now (svc), err);
}

static void job_apply (struct site_job *job, const struct job_change *c)
{
    memcpy (job->cred, c->cred, sizeof job->cred);
    job->rec.walltime = c->walltime;
    job->not_before = c->not_before;
    job->deadline = c->deadline;
    snprintf (job->rec.pay_account, sizeof job->rec.pay_account, "%s", c->account);
}

/* As it is kept: times and durations in a form that a restart reads the same. */
static void stored_value (enum change_attr attr, const char *value, const struct job_change *c,
                          char out[STORE_NAME_MAX])
{
    if (attr == ATTR_WCLIMIT)
        snprintf (out, STORE_NAME_MAX, "%lld", (long long)c->walltime);
    else if (attr == ATTR_DEADLINE)
        snprintf (out, STORE_NAME_MAX, "%lld", (long long)c->deadline);
    else if (attr == ATTR_STARTTIME)
        snprintf (out, STORE_NAME_MAX, "%lld",
                  c->not_before == TIME_US_NONE ? 0LL : (long long)c->not_before);
    else
        text_printf (out, STORE_NAME_MAX, "%.63s", value);
}

/* The core first, since it may refuse; taken back when it cannot be written down. */
static int modify (struct svc *svc, const struct admin_caller *caller, struct site_job *job,
                   enum change_attr attr, const char *value, struct err *err)
{
    struct job_change before = change_of (job), after = before;
    char kept[STORE_NAME_MAX], id[SITE_ID_MAX];
    struct err again = {0};
    int rc = change_make (svc, caller, job, attr, value, &after, err);
    if (rc == 0)
        rc = core_apply (svc, job, &after, err);
    if (rc != 0)
        return rc;
    stored_value (attr, value, &after, kept);
    job_apply (job, &after);
    rc = svc_begin (svc, err);
    if (rc == 0)
        rc = local_store_set_put (svc->store, STORE_SET_JOB, site_id (svc, job->rec.number, id),
                                  change_attr_names[attr], kept, err);
    if (rc == 0)
        rc = svc_job_write (svc, job, false, NULL, 0, err);
    if (rc == 0)
        rc = admin_audit_in (svc, caller, err, "mjobctl -m %s=%s %s", change_attr_names[attr],
                             value, id);
    rc = svc_commit (svc, rc, err);
    if (rc != 0) {
        job_apply (job, &before);
        (void)core_apply (svc, job, &before, &again);
    }
    pass_wake (svc);
    return rc;
}

void admin_modify_job (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__ModifyJobRequest *r = (const Nui__Local__V1__ModifyJobRequest *)request;
    struct admin_caller caller;
    struct site_job *job = NULL;
    struct job_view view;
    struct err err = {0};
    enum change_attr attr = 0; /* gcc does not see that attr_parse sets it */
    admin_who (svc, call, &caller);
    int rc = attr_parse (r->attribute, &attr, &err);
    if (rc == 0)
        rc = admin_waiting_job (svc, &caller, r->job_id, ADMIN_JOBS, &job, &view, &err);
    if (rc == 0)
        rc = modify (svc, &caller, job, attr, r->value, &err);
    admin_answer (svc, call, job, rc, &err);
}

/* --- nodes -------------------------------------------------------------------------------- */

static const char *const node_attr_names[] = {"state", "features", "priority", "speed", NULL};

static int state_word (const char *value, const char **kept, struct err *err)
{
    static const char *const words[][2] = {
        {"drained", "drained"}, {"drain", "drained"}, {"draining", "drained"},
        {"offline", "drained"}, {"down", "down"},     {"up", ""}, /* as configured */
        {"idle", ""},           {"resume", ""},       {"online", ""}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp (value, words[i][0]) == 0) {
            *kept = words[i][1];
            return 0;
        }
    return err_set (err, ERR_INVALID, "state '%.40s': wanted drained, down or up", value);
}

/* "+fast,-slow" of what it has, or "fast,big": the whole list. */
static char *features_change (struct svc *svc, struct node_id node, const char *value)
{
    struct node_view view;
    struct strbuf b = STRBUF_INIT;
    bool whole = *value != '+' && *value != '-';
    if (!whole && cluster_node_get (svc->cluster, node, &view, NULL) == 0)
        for (uint32_t f = 0; f < FEATURES_MAX; f++) {
            const char *name = view.spec.features.word[f / 64] >> (f % 64) & 1
                                   ? strtab_name (svc->features, f)
                                   : NULL;
            char gone[STORE_NAME_MAX + 2];
            if (!name)
                continue;
            snprintf (gone, sizeof gone, "-%s", name);
            const char *at = strstr (value, gone);
            size_t n = strlen (gone);
            if (!at || (at[n] && at[n] != ','))
                strbuf_printf (&b, "%s%s", b.len ? "," : "", name);
        }
    for (const char *p = value; *p;) {
        size_t n = strcspn (p, ",");
        bool plus = *p == '+';
        if (n > plus && *p != '-')
            strbuf_printf (&b, "%s%.*s", b.len ? "," : "", (int)(n - plus), p + plus);
        p += n + (p[n] == ',');
    }
    strbuf_text (&b);
    return strbuf_steal (&b);
}

static int features_check (const char *list, struct err *err)
{
    char name[STORE_NAME_MAX];
    for (const char *p = list; *p;) {
        size_t n = strcspn (p, ",");
        snprintf (name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), p);
        if (n > 0 && name_check ("feature", name, err) != 0)
            return err->code;
        p += n + (p[n] == ',');
    }
    return 0;
}

/* *kept is malloc'ed; "" takes the change back. */
static int node_value (struct svc *svc, const struct site_node *node, const char *attr,
                       const char *value, char **kept, struct err *err)
{
    const char *word = value;
    int64_t ppm;
    int rc = 0;
    if (strcasecmp (attr, "state") == 0) {
        rc = state_word (value, &word, err);
    } else if (strcasecmp (attr, "features") == 0) {
        *kept = features_change (svc, node->id, value);
        rc = features_check (*kept, err);
        if (rc != 0)
            free (*kept);
        return rc;
    } else if (strcasecmp (attr, "priority") == 0) {
        char *end;
        long long n = strtoll (value, &end, 10);
        if (*value && (*end || n < -1000000000 || n > 1000000000))
            rc = err_set (err, ERR_INVALID, "priority '%.40s': a number of at most 1000000000",
                          value);
    } else if (strcasecmp (attr, "speed") == 0) {
        rc = *value ? ppm_parse (value, "speed", &ppm, err) : 0;
        if (rc == 0 && *value && (ppm < 1000 || ppm > 1000 * INT64_C (1000000)))
            rc = err_set (err, ERR_INVALID, "speed '%.40s': from 0.001 to 1000", value);
    } else {
        const char *near = conf_nearest (attr, node_attr_names);
        rc = err_set (
            err, ERR_INVALID,
            "'%.40s' of a node cannot be changed%s%s%s: wanted state, features, priority or "
            "speed",
            attr, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    }
    if (rc == 0)
        *kept = strdup (word);
    return rc;
}

static int node_set (struct svc *svc, const struct admin_caller *caller,
                     const Nui__Local__V1__SetNodeRequest *r, struct err *err)
{
    struct site_node *node;
    struct err again = {0};
    char *kept = NULL, *before = NULL;
    int rc = admin_require (caller, ADMIN_FULL, "changing nodes", err);
    HASH_FIND_STR (svc->nodes, r->node, node);
    if (rc == 0 && (!node || !node->configured))
        rc = err_set (err, ERR_NOT_FOUND, "node %.80s is not known at site %s", r->node, svc->site);
    if (rc == 0)
        rc = node_value (svc, node, r->attribute, r->value, &kept, err);
    if (rc != 0)
        return rc;
    char attr[16];
    snprintf (attr, sizeof attr, "%s", conf_nearest (r->attribute, node_attr_names));
    bool state = strcmp (attr, "state") == 0;
    before = svc_node_set (node, attr, kept);
    rc = svc_nodes_apply (svc, svc->settings, err);
    if (rc == 0)
        rc = svc_begin (svc, err);
    if (rc == 0) {
        rc = local_store_set_put (svc->store, STORE_SET_NODE, node->name, attr, kept, err);
        if (rc == 0 && state) /* whatever nui-local had against it (svc_node_set_aside) is over */
            rc = local_store_set_put (svc->store, STORE_SET_NODE, node->name, "reason", "", err);
        if (rc == 0)
            rc = admin_audit_in (svc, caller, err, "mnodectl -m %s=%s %s", attr, r->value,
                                 node->name);
        rc = svc_commit (svc, rc, err);
    }
    if (rc != 0) {
        free (svc_node_set (node, attr, before ? before : ""));
        (void)svc_nodes_apply (svc, svc->settings, &again);
    } else if (state) {
        free (svc_node_set (node, "reason", ""));
    }
    deferral_nodes_changed (svc);
    free (before);
    free (kept);
    pass_wake (svc);
    return rc;
}

void admin_set_node (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__SetNodeRequest *r = (const Nui__Local__V1__SetNodeRequest *)request;
    Nui__Local__V1__ChangeReply reply = NUI__LOCAL__V1__CHANGE_REPLY__INIT;
    struct admin_caller caller;
    struct err err = {0};
    admin_who (svc, call, &caller);
    if (node_set (svc, &caller, r, &err) != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    reply.job_id = r->node;
    rpccall_reply (call, &reply.base);
}

/* --- parameters --------------------------------------------------------------------------- */

void admin_change_param (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Local__V1__ChangeParamRequest *r =
        (const Nui__Local__V1__ChangeParamRequest *)request;
    Nui__Local__V1__ChangeReply reply = NUI__LOCAL__V1__CHANGE_REPLY__INIT;
    struct admin_caller caller;
    struct err err = {0};
    admin_who (svc, call, &caller);
    int rc = admin_require (&caller, ADMIN_FULL, "changing a parameter", &err);
    if (rc == 0 && (!*r->line || strpbrk (r->line, "\r\n")))
        rc = err_set (&err, ERR_INVALID, "changeparam takes one parameter and its value");
    if (rc == 0)
        rc = admin_audit (svc, &caller, &err, "changeparam %s", r->line);
    if (rc == 0)
        rc = daemon_change (svc->daemon, r->line, &err);
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    reply.job_id = (char *)"";
    rpccall_reply (call, &reply.base);
}
