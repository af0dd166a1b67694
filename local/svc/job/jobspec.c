/* A signed job, read: trusted (signature, chain, expiry), admitted (user, policy), and what it needs in the core's terms. It
 * looks at no live job and writes nothing. */
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "local/core/explain.h"
#include "local/svc/files/staging.h"
#include "local/svc/grid/grid.h"
#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/resv/resv.h"
#include "local/svc/svc_i.h"
#include "proto/base/clock.h"
#include "proto/base/fnv.h"
#include "proto/base/text.h"
#include "proto/hash/sha256.h"
#include "proto/job/element.h"
#include "proto/job/jobcheck.h"
#include "proto/job/jobsignal.h"
#include "proto/rpc/envelope.h"

enum { COMPONENTS_MAX = 1024 };

/* Of the array's id and of whose it is, so that nobody is in another's array. */
uint64_t jobspec_array (const struct jobspec *spec)
{
    if (spec->job->array_id.len == 0)
        return 0;
    uint64_t hash = fnv_bytes (FNV_BEGIN, spec->job->array_id.data, spec->job->array_id.len);
    hash = fnv_bytes (hash, spec->submitter, strlen (spec->submitter));
    hash = fnv_bytes (hash, spec->local_account, strlen (spec->local_account));
    return (hash >> 1) | 1; /* not 0, and a number for SQL */
}

void jobspec_free (struct jobspec *spec)
{
    nui__common__v1__job__free_unpacked (spec->job, NULL);
    spec->job = NULL;
}

static uint32_t cred_number (struct svc *svc, enum cred_kind kind, const char *name)
{
    return name && *name ? strtab_intern (svc->names->tab[kind], name) : CRED_NONE;
}

bool jobspec_class_known (const struct svc *svc, const char *class)
{
    bool named =
        svc->settings->policy->cred_count[CRED_CLASS] > 1 || strtab_count (svc->place.class);
    return !named || strtab_find (svc->names->tab[CRED_CLASS], class) != STRTAB_NONE ||
           strtab_find (svc->place.class, class) != STRTAB_NONE;
}

static bool is_everybody (const char *name)
{
    return strcasecmp (name, "DEFAULT") == 0 || strcasecmp (name, "ALL") == 0 ||
           strcasecmp (name, "[ALL]") == 0;
}

/* What there is in place of a name that there is not: " (it has batch, short)", as far as it goes. */
void jobspec_names_there (const struct svc *svc, enum cred_kind kind, char *out, size_t cap)
{
    const struct strtab *from[] = {svc->names->tab[kind],
                                   kind == CRED_CLASS ? svc->place.class : NULL};
    size_t len = 0;
    *out = '\0';
    for (size_t t = 0; t < 2 && from[t]; t++)
        for (uint32_t i = 0; i < strtab_count (from[t]); i++) {
            const char *name = strtab_name (from[t], i);
            if (is_everybody (name) || (t > 0 && strtab_find (from[0], name) != STRTAB_NONE))
                continue;
            if (len + strlen (name) + sizeof " (it has , …)" > cap) {
                text_printf (out + len, cap - len, "%s", len ? ", …)" : "");
                return;
            }
            text_printf (out + len, cap - len, "%s%s", len ? ", " : " (it has ", name);
            len += strlen (out + len);
        }
    text_printf (out + len, cap - len, "%s", len ? ")" : "");
}

/* A class or QoS that nobody here has ever named is mostly mistyped. */
static bool names_known (struct svc *svc, struct jobspec *spec)
{
    const Nui__Common__V1__Component *c = spec->component;
    const char *what = NULL, *name = NULL;
    if (*c->qos && strtab_find (svc->names->tab[CRED_QOS], c->qos) == STRTAB_NONE)
        what = "QoS", name = c->qos;
    if (*c->class_ && !jobspec_class_known (svc, c->class_))
        what = "class", name = c->class_;
    if (!what || spec->taken || spec->native)
        return true;
    spec->never_fits = true;
    text_printf (spec->never_text, sizeof spec->never_text, "site %s has no %s %.63s", svc->site,
                 what, name);
    size_t len = strlen (spec->never_text);
    jobspec_names_there (svc, *what == 'c' ? CRED_CLASS : CRED_QOS, spec->never_text + len,
                         sizeof spec->never_text - len);
    return false;
}

/* What its class would never let start. */
static void policy_never (struct svc *svc, struct jobspec *spec)
{
    struct reason why;
    struct err closed;
    bool features = false;
    if (spec->taken || spec->native || spec->never_fits)
        return;
    for (size_t i = 0; i < spec->component->n_reqs; i++)
        features = features || spec->component->reqs[i]->n_features > 0;
    if (place_class_open (&svc->place, svc->settings->policy, spec->cred, features, &closed) != 0) {
        spec->never_fits = true;
        text_printf (spec->never_text, sizeof spec->never_text, "%s", closed.text);
        return;
    }
    if (!explain_class_never (svc->cluster, spec->cred, spec->reqs, spec->req_count, spec->walltime,
                              &why))
        return;
    spec->never_fits = true;
    reason_text (&why, svc->names, spec->never_text, sizeof spec->never_text);
}

/* Credentials as Maui has them: user and group are those of the mapped account. A name that is not known leaves nothing
 * behind. */
static void creds (struct svc *svc, struct jobspec *spec)
{
    bool known = names_known (svc, spec);
    char buf[4096];
    struct passwd pw, *found = NULL;
    struct group gr, *group = NULL;
    bool denied;
    for (int k = 0; k < CRED_KINDS; k++)
        spec->cred[k] = CRED_NONE;
    spec->cred[CRED_USER] = cred_number (svc, CRED_USER, spec->local_account);
    if (getpwnam_r (spec->local_account, &pw, buf, sizeof buf, &found) == 0 && found) {
        char group_buf[16384];
        if (getgrgid_r (pw.pw_gid, &gr, group_buf, sizeof group_buf, &group) == 0 && group)
            spec->cred[CRED_GROUP] = cred_number (svc, CRED_GROUP, group->gr_name);
    }
    spec->cred[CRED_ACCOUNT] = cred_number (svc, CRED_ACCOUNT, spec->job->account);
    spec->cred[CRED_CLASS] = cred_number (svc, CRED_CLASS, known ? spec->component->class_ : "");
    const char *qos = known ? spec->component->qos : "";
    const struct settings_grid *grid =
        *spec->meta ? settings_grid_of (svc->settings, spec->meta) : NULL;
    if (!*qos && grid && grid->qos_default)
        qos = grid->qos_default;
    spec->cred[CRED_QOS] = cred_number (svc, CRED_QOS, qos);
    spec->cred[CRED_QOS] = policy_qos_resolve (svc->settings->policy, spec->cred, &denied);
}

static void never (struct jobspec *spec, const char *what, const char *name)
{
    spec->never_fits = true;
    text_printf (spec->never_text, sizeof spec->never_text, "no node of this site has %s %.80s",
                 what, name);
}

static int licence_add (struct jobspec *spec, uint32_t kind, uint64_t count, struct err *err)
{
    uint32_t i = 0;
    while (i < spec->licence_count && spec->licence[i].kind != kind)
        i++;
    count += i < spec->licence_count ? (uint64_t)spec->licence[i].count : 0;
    if (count > INT32_MAX)
        return err_set (err, ERR_LIMIT, "%llu licences", (unsigned long long)count);
    spec->licence[i] = (struct licence){kind, (int32_t)count};
    spec->licence_count += i == spec->licence_count;
    return 0;
}

/* A resource of the node, or one that floats: then so many for each task. */
static int gres_of (struct svc *svc, struct jobspec *spec,
                    const Nui__Common__V1__GenericResource *in, uint32_t tasks, struct req *out,
                    struct err *err)
{
    uint32_t column, kind, count = in->count ? in->count : 1;
    if (count > 1 << 24)
        return err_set (err, ERR_LIMIT, "%u of %.60s", count, in->name);
    if (!place_gres (&svc->place, in->name, &column, &kind))
        never (spec, "the generic resource", in->name);
    else if (column)
        out->task.v[column] += (int32_t)count;
    else
        return licence_add (spec, kind, (uint64_t)count * tasks, err);
    return 0;
}

/* Of the grid, or it was when this site took the job. */
static bool licence_counted (const struct jobspec *spec, const char *name)
{
    for (size_t i = 0; i < spec->grid_licence_count; i++)
        if (strcmp (spec->grid_licence[i], name) == 0)
            return true;
    return spec->taken && *spec->meta;
}

static int licences_of (struct svc *svc, struct jobspec *spec, struct err *err)
{
    const Nui__Common__V1__Component *c = spec->component;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n_licences; i++) {
        uint32_t column, kind;
        if (place_gres (&svc->place, c->licences[i]->name, &column, &kind) && !column)
            rc = licence_add (spec, kind, c->licences[i]->count ? c->licences[i]->count : 1, err);
        else if (!licence_counted (spec, c->licences[i]->name))
            never (spec, "the licence", c->licences[i]->name);
    }
    return rc;
}

/* Which nodes, for all reqs: host list, partitions, node set, who may share them. */
static int place_of (struct svc *svc, struct jobspec *spec, struct err *err)
{
    static const char *const access[] = {"", "SHARED", "SINGLEUSER", "SINGLEJOB", "SINGLETASK"};
    const Nui__Common__V1__Component *c = spec->component;
    struct req all = {0};
    int rc = licences_of (svc, spec, err);
    if (rc == 0 && *c->hosts && (rc = place_hosts (&svc->place, c->hosts, &all.hosts, err)) != 0 &&
        err->code == ERR_NOT_FOUND) {
        never (spec, "the hosts", c->hosts);
        rc = 0;
    }
    if (rc == 0 && *c->nodeset)
        rc = place_nodeset (&svc->place, svc->settings->policy, c->nodeset, &all.nodeset, err);
    if (rc == 0 && c->n_partitions > PARTITIONS_MAX)
        rc =
            err_set (err, ERR_LIMIT, "%zu partitions, at most %d", c->n_partitions, PARTITIONS_MAX);
    for (size_t i = 0; rc == 0 && i < c->n_partitions; i++) {
        uint32_t p = strtab_find (svc->names->partition, c->partitions[i]);
        if (p == STRTAB_NONE || p >= PARTITIONS_MAX)
            never (spec, "the partition", c->partitions[i]);
        else
            all.partitions |= partition_bit (p + 1);
    }
    while (rc == 0 && all.access < sizeof access / sizeof *access &&
           strcasecmp (access[all.access], c->node_access) != 0)
        all.access++;
    if (rc == 0 && all.access == sizeof access / sizeof *access)
        rc = err_set (err, ERR_INVALID,
                      "'%.40s' is not SHARED, SINGLEUSER, SINGLEJOB or SINGLETASK", c->node_access);
    for (uint32_t r = 0; rc == 0 && r < spec->req_count; r++) {
        spec->reqs[r].hosts = all.hosts;
        spec->reqs[r].nodeset = all.nodeset;
        spec->reqs[r].partitions = all.partitions;
        spec->reqs[r].access = all.access;
    }
    return rc == 0 ? 0 : err_prefix (err, "component %.60s", c->name);
}

/* One req of the wire in the core's terms. */
static int req_of (struct svc *svc, struct jobspec *spec, const Nui__Common__V1__Req *in,
                   struct req *out, struct err *err)
{
    uint32_t procs = in->procs_per_task ? in->procs_per_task : 1;
    uint32_t per_node = in->tasks_per_node;
    uint64_t tasks = in->tasks;
    const char *name = spec->component->name;
    if (tasks == 0 && in->nodes)
        tasks = (uint64_t)in->nodes * (per_node ? per_node : 1);
    if (tasks == 0 || tasks > TASKS_MAX)
        return err_set (err, ERR_INVALID, "component %.60s: %llu tasks, wanted 1 to %d", name,
                        (unsigned long long)tasks, TASKS_MAX);
    if (in->nodes && (tasks % in->nodes || (per_node && per_node != tasks / in->nodes)))
        return err_set (err, ERR_INVALID,
                        "component %.60s: %llu tasks cannot be spread evenly over %u nodes", name,
                        (unsigned long long)tasks, in->nodes);
    if (in->nodes)
        per_node = (uint32_t)(tasks / in->nodes);
    if (per_node && tasks % per_node)
        return err_set (err, ERR_INVALID,
                        "component %.60s: %llu tasks are not a multiple of %u per node", name,
                        (unsigned long long)tasks, per_node);
    if (procs > TASKS_MAX || in->memory_mb < 0 || in->memory_mb > INT32_MAX || in->swap_mb < 0 ||
        in->swap_mb > INT32_MAX || in->disk_mb < 0 || in->disk_mb > INT32_MAX)
        return err_set (err, ERR_INVALID,
                        "component %.60s: processors, memory, swap or disk per task", name);
    *out = (struct req){.tasks = (uint32_t)tasks, .tasks_per_node = per_node};
    out->task.v[RES_PROCS] = (int32_t)procs;
    out->task.v[RES_MEM_MB] = (int32_t)in->memory_mb;
    out->task.v[RES_SWAP_MB] = (int32_t)in->swap_mb;
    out->task.v[RES_DISK_MB] = (int32_t)in->disk_mb;
    for (size_t i = 0; i < in->n_gres; i++)
        if (gres_of (svc, spec, in->gres[i], (uint32_t)tasks, out, err) != 0)
            return err_prefix (err, "component %.60s", name);
    place_gres_whole (&svc->place, &out->task);
    if (svc->settings->policy->node_match == NODEMATCH_EXACTPROC && per_node)
        out->node_procs = per_node * procs;
    for (size_t i = 0; i < in->n_features; i++) {
        uint32_t f = strtab_find (svc->features, in->features[i]);
        if (f == STRTAB_NONE)
            never (spec, "the feature", in->features[i]);
        else
            out->features.word[f / 64] |= UINT64_C (1) << (f % 64);
    }
    bool likes = true; /* a wish that no node here can meet is none */
    for (size_t i = 0; likes && i < in->n_liked; i++) {
        uint32_t f = strtab_find (svc->features, in->liked[i]);
        likes = f != STRTAB_NONE;
        if (likes)
            out->prefer.word[f / 64] |= UINT64_C (1) << (f % 64);
    }
    if (!likes)
        out->prefer = (struct features){{0}};
    uint64_t all = (uint64_t)spec->procs + tasks * procs;
    if (all > INT32_MAX)
        return err_set (err, ERR_LIMIT, "component %.60s: %llu processors", name,
                        (unsigned long long)all);
    spec->procs = (uint32_t)all;
    spec->memory_mb += (int64_t)tasks * in->memory_mb;
    return 0;
}

static int site_allowed (struct svc *svc, const Nui__Common__V1__Component *c)
{
    for (size_t i = 0; i < c->n_sites; i++)
        if (strcmp (c->sites[i], svc->site) == 0)
            return 1;
    return c->n_sites == 0;
}

/* What a user may say of a job himself; to evict others takes a QoS. */
static int flags_convert (struct jobspec *spec, struct err *err)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } known[] = {{"PREEMPTEE", JOB_PREEMPTEE}, {"NORESTART", JOB_NORESTART}, {"RESTARTABLE", 0}};
    const Nui__Common__V1__Job *job = spec->job;
    for (size_t i = 0; i < job->n_flags; i++) {
        size_t k = 0;
        while (k < 3 && strcasecmp (job->flags[i], known[k].name) != 0)
            k++;
        if (k == 3)
            return err_set (err, ERR_INVALID,
                            "flag '%.40s': wanted PREEMPTEE, NORESTART or RESTARTABLE",
                            job->flags[i]);
        spec->core_flags |= known[k].flag;
    }
    for (size_t i = 0; job->n_components > 1 && i < job->n_depends; i++) {
        enum depend_kind kind;
        bool before;
        if (strncmp (job->depends[i]->job_id, "grid.", 5) != 0 ||
            !depend_kind_parse (job->depends[i]->kind, &kind, &before) || before)
            return err_set (err, ERR_INVALID,
                            "a job of several components can wait for jobs of the grid only");
    }
    if (job->array_id.len && job->array_id.len != 16)
        return err_set (err, ERR_INVALID, "an array's id has 16 bytes");
    return 0;
}

static int component_convert (struct svc *svc, struct jobspec *spec, struct err *err)
{
    const Nui__Common__V1__Component *c = spec->component;
    int rc = 0;
    if (c->n_reqs < 1 || c->n_reqs > REQS_MAX)
        return err_set (err, ERR_INVALID, "component %.60s: %zu reqs, wanted 1 to %d", c->name,
                        c->n_reqs, REQS_MAX);
    if (*spec->job->account && name_check ("account", spec->job->account, err) != 0)
        return ERR_INVALID;
    if (jobcheck_words (c, err) != 0)
        return err->code;
    if (jobstage_check (c, err) != 0)
        return err->code;
    spec->walltime = c->walltime_us;
    if (spec->walltime == 0)
        spec->walltime =
            policy_default_wall_s (svc->settings->policy,
                                   strtab_find (svc->names->tab[CRED_CLASS], c->class_)) *
            US_PER_S;
    if (spec->walltime <= 0 || spec->walltime > INT64_MAX / 4)
        return err_set (err, ERR_INVALID, "component %.60s has no wallclock limit", c->name);
    if (jobsignal_check (c->signal, spec->walltime, err) != 0)
        return err_prefix (err, "component %.60s", c->name);
    if (*c->signal && !svc->rm.ops->warns)
        return err_set (err, ERR_UNSUPPORTED,
                        "the resource manager here (%s) sends a job no signal before its limit",
                        svc->rm.ops->type);
    for (size_t i = 0; rc == 0 && i < c->n_reqs; i++)
        rc = req_of (svc, spec, c->reqs[i], &spec->reqs[i], err);
    spec->req_count = (uint32_t)c->n_reqs;
    if (rc == 0)
        rc = flags_convert (spec, err);
    if (rc == 0)
        rc = place_of (svc, spec, err);
    if (rc == 0)
        creds (svc, spec);
    if (rc == 0 && spec->cred[CRED_CLASS] != CRED_NONE) /* it may be new here */
        rc = place_class (&svc->place, svc->settings->policy, spec->cred[CRED_CLASS], svc_now (svc),
                          err);
    if (rc == 0)
        policy_never (svc, spec);
    return rc;
}

struct who jobspec_who (struct svc *svc, const struct jobspec *spec, bool coallocated)
{
    struct who who = {
        .walltime = spec->walltime,
        .procs = spec->procs,
        .attrs = (*spec->meta ? JOBATTR_GRID : 0) | (coallocated ? JOBATTR_COALLOCATED : 0),
        .named = svc_reservation_of (svc, resv_named (svc, spec->component->reservation),
                                     spec->cred[CRED_QOS])};
    memcpy (who.cred, spec->cred, sizeof who.cred);
    return who;
}

int jobspec_runnable (const struct jobspec *spec, struct err *err)
{
    if (spec->job->question)
        return err_set (err, ERR_DENIED, "the job was signed as a question only");
    if (spec->job->reserve)
        return jobcheck_reserve (spec->job, err);
    if (spec->component->script.len == 0)
        return err_set (err, ERR_INVALID, "component %.60s has no script", spec->component->name);
    return 0;
}

/* The job in it, guarded: of a stranger's bytes only what is bounded is unpacked. */
static Nui__Common__V1__Job *job_of (const Nui__Common__V1__Envelope *envelope, struct err *err)
{
    Nui__Common__V1__Job *job = element_unpack (envelope, err);
    if (!job)
        err_prefix (err, "the envelope holds no job that may be run");
    return job;
}

/* The only component of a job for this cluster alone. */
static int component_only (struct jobspec *spec, struct err *err)
{
    if (spec->job->n_components != 1)
        return err_set (err, ERR_INVALID, "a job for one cluster has one component, this one %zu",
                        spec->job->n_components);
    if (spec->job->components[0]->n_shapes)
        return err_set (err, ERR_INVALID, "sizes to choose from need a metascheduler");
    return 0;
}

static int component_find (struct jobspec *spec, const char *name, uint32_t shape, struct err *err)
{
    if (spec->job->n_components < 1 || spec->job->n_components > COMPONENTS_MAX)
        return err_set (err, ERR_INVALID, "a job has 1 to %d components, this one %zu",
                        COMPONENTS_MAX, spec->job->n_components);
    for (size_t i = 0; i < spec->job->n_components; i++)
        if (strcmp (spec->job->components[i]->name, name) == 0) {
            spec->component = spec->job->components[i];
            spec->component_index = (uint32_t)i;
            spec->shape = shape;
            int rc = name_check ("component", name, err);
            return rc ? rc : jobshape_apply (spec->job->components[i], shape, err);
        }
    return err_set (err, ERR_NOT_FOUND, "the signed job has no component %.60s", name);
}

static int trust (struct svc *svc, const Nui__Common__V1__Envelope *envelope, bool first_time,
                  struct jobspec *spec, struct err *err)
{
    struct principal signer;
    time_us now = clock_now_us (); /* also in a simulation */
    int rc = delegation_verify (daemon_tlsid (svc->daemon), envelope, now, &signer,
                                &spec->delegation, err);
    if (rc != 0)
        return rc;
    spec->job = job_of (envelope, err);
    if (!spec->job)
        return err->code;
    principal_uri (&signer, spec->submitter);
    if (strcmp (spec->job->grid, daemon_grid (svc->daemon)) != 0)
        return err_set (err, ERR_UNAUTHENTIC, "the job is for grid '%.60s', this is %s",
                        spec->job->grid, daemon_grid (svc->daemon));
    if (strcmp (spec->job->submitter, spec->submitter) != 0)
        return err_set (err, ERR_UNAUTHENTIC, "the job says it is of %.100s but %.100s signed it",
                        spec->job->submitter, spec->submitter);
    if (spec->job->uuid.len != 16)
        return err_set (err, ERR_INVALID, "the job has no uuid of 16 bytes");
    sha256 (envelope->body.data, envelope->body.len, spec->hash);
    return first_time ? replay_expired (svc, spec, now, err) : 0;
}

int jobspec_trust (struct svc *svc, const Nui__Common__V1__Envelope *envelope, const char *meta,
                   const char *component, uint32_t shape, bool first_time, struct jobspec *out,
                   struct err *err)
{
    *out = (struct jobspec){.meta = meta};
    if (!envelope)
        return err_set (err, ERR_INVALID, "the request carries no signed job");
    int rc = trust (svc, envelope, first_time, out, err);
    if (rc == 0 && !component && (rc = component_only (out, err)) == 0)
        component = out->job->components[0]->name;
    if (rc == 0)
        rc = component_find (out, component, shape, err);
    if (rc != 0)
        jobspec_free (out);
    return rc;
}

int jobspec_admit (struct svc *svc, bool first_time, struct jobspec *spec, struct err *err)
{
    const char *account = gridmap_account (svc->gridmap, spec->submitter);
    int rc = 0;
    if (!account)
        rc = err_set (err, ERR_DENIED, "%s has no account at site %s (not in its gridmap)",
                      spec->submitter, svc->site);
    else if (!site_allowed (svc, spec->component))
        rc = err_set (err, ERR_DENIED, "the job does not allow component %.60s at site %s",
                      spec->component->name, svc->site);
    if (rc == 0) {
        text_printf (spec->local_account, sizeof spec->local_account, "%.63s", account);
        rc = component_convert (svc, spec, err);
    }
    if (rc == 0 && first_time && *spec->meta)
        rc = gridpolicy_job (svc, spec->meta, spec, err);
    if (rc == 0 && first_time)
        rc = staging_check (svc, spec, err);
    if (rc != 0)
        jobspec_free (spec);
    return rc;
}

int jobspec_verify (struct svc *svc, const Nui__Common__V1__Envelope *envelope, const char *meta,
                    const char *component, uint32_t shape, bool first_time, struct jobspec *out,
                    struct err *err)
{
    int rc = jobspec_trust (svc, envelope, meta, component, shape, first_time, out, err);
    return rc != 0 ? rc : jobspec_admit (svc, first_time, out, err);
}

int jobspec_verify_counted (struct svc *svc, const Nui__Common__V1__Envelope *envelope,
                            const char *meta, const char *component, uint32_t shape, char **licence,
                            size_t licence_count, struct jobspec *out, struct err *err)
{
    int rc = jobspec_trust (svc, envelope, meta, component, shape, true, out, err);
    if (rc == 0 && (rc = jobcheck_name (out->job, err)) != 0)
        jobspec_free (out);
    out->grid_licence = licence;
    out->grid_licence_count = licence_count;
    return rc != 0 ? rc : jobspec_admit (svc, true, out, err);
}

int jobspec_sibling (struct svc *svc, const struct jobspec *of, const char *component,
                     uint32_t shape, struct jobspec *out, struct err *err)
{
    *out = *of;
    out->req_count = out->licence_count = out->procs = out->core_flags = 0;
    out->memory_mb = 0;
    out->never_fits = false;
    int rc = component_find (out, component, shape, err);
    if (rc == 0 && !site_allowed (svc, out->component))
        rc = err_set (err, ERR_DENIED, "the job does not allow component %.60s at site %s",
                      out->component->name, svc->site);
    return rc != 0 ? rc : component_convert (svc, out, err);
}

int jobspec_fresh (const struct jobspec *spec, struct err *err)
{
    int rc = jobcheck_name (spec->job, err);
    if (rc == 0)
        rc = jobcheck_times (spec->job, *spec->submitter != 0, clock_now_us (), err);
    return rc != 0 ? rc : jobcheck_component (spec->component, false, err);
}

bool jobspec_is_reserved (const struct jobspec *spec)
{
    return spec->job->n_components > 1 || spec->grid_licence_count > 0;
}

int jobspec_local (struct svc *svc, const Nui__Common__V1__Envelope *envelope, const char *account,
                   struct jobspec *out, struct err *err)
{
    *out = (struct jobspec){.meta = ""};
    out->job = job_of (envelope, err);
    int rc = 0;
    if (!out->job)
        return err->code;
    if (strcmp (out->job->grid, daemon_grid (svc->daemon)) != 0)
        rc = err_set (err, ERR_INVALID, "the job is for grid '%.60s', this is %s", out->job->grid,
                      daemon_grid (svc->daemon));
    else if (out->job->uuid.len != 16)
        rc = err_set (err, ERR_INVALID, "the job has no uuid of 16 bytes");
    else if ((rc = component_only (out, err)) == 0)
        rc = component_find (out, out->job->components[0]->name, 0, err);
    if (rc == 0 && !site_allowed (svc, out->component))
        rc = err_set (err, ERR_DENIED, "the job does not allow site %s", svc->site);
    if (rc == 0) {
        text_printf (out->local_account, sizeof out->local_account, "%.63s", account);
        rc = component_convert (svc, out, err);
    }
    if (rc == 0)
        rc = staging_check (svc, out, err);
    if (rc != 0)
        jobspec_free (out);
    return rc;
}

int jobspec_load (struct svc *svc, const struct store_job *rec, struct jobspec *out,
                  struct err *err)
{
    void *bytes = NULL;
    size_t len = 0;
    *out = (struct jobspec){.meta = rec->meta, .taken = true};
    int rc = local_store_envelope (svc->store, rec->number, &bytes, &len, err);
    if (rc != 0)
        return rc;
    Nui__Common__V1__Envelope *envelope = nui__common__v1__envelope__unpack (NULL, len, bytes);
    free (bytes);
    if (envelope)
        out->job = nui__common__v1__job__unpack (NULL, envelope->body.len, envelope->body.data);
    if (out->job && element_apply (out->job, envelope->element, err) != 0)
        jobspec_free (out);
    nui__common__v1__envelope__free_unpacked (envelope, NULL);
    if (!out->job)
        return err_set (err, ERR_INTERNAL, "job %llu: its stored envelope cannot be read",
                        (unsigned long long)rec->number);
    snprintf (out->submitter, sizeof out->submitter, "%s", rec->submitter);
    snprintf (out->local_account, sizeof out->local_account, "%s", rec->local_account);
    rc = component_find (out, rec->component, rec->shape, err);
    if (rc == 0)
        rc = component_convert (svc, out, err);
    if (rc != 0)
        jobspec_free (out);
    return rc;
}

int jobspec_unsigned (struct svc *svc, Nui__Common__V1__Job *job, const char *local_account,
                      struct jobspec *out, struct err *err)
{
    *out = (struct jobspec){.job = job, .meta = "", .native = true};
    snprintf (out->submitter, sizeof out->submitter, "%s", job->submitter);
    snprintf (out->local_account, sizeof out->local_account, "%s", local_account);
    int rc = component_find (out, job->components[0]->name, 0, err);
    if (rc == 0)
        rc = component_convert (svc, out, err);
    if (rc != 0)
        jobspec_free (out);
    return rc;
}
