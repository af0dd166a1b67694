/* The message, of all that was said. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/cli/jobspec_i.h"
#include "proto/cli/inputs.h"
#include "proto/cli/stageoption.h"
#include "proto/job/jobcheck.h"
#include "proto/job/jobsignal.h"
#include "proto/job/mailaddress.h"
#include "proto/job/element.h"

#define RETRY_DELAY_US (10 * US_PER_S)

static char **text_array (struct jobspec *spec, const struct text_list *own,
                          const struct text_list *fallback, size_t *count_out)
{
    const struct text_list *from = own->count ? own : fallback;
    char **out = arena_array (spec->arena, from->count + 1, sizeof *out);
    for (size_t i = 0; i < from->count; i++)
        out[i] = arena_strdup (spec->arena, from->item[i]);
    *count_out = from->count;
    return out;
}

static int64_t pick (int64_t own, int64_t fallback, int64_t otherwise)
{
    return own >= 0 ? own : fallback >= 0 ? fallback : otherwise;
}

static char *pick_text (const char *own, const char *fallback)
{
    const char *text = own ? own : fallback ? fallback : "";
    return (char *)(uintptr_t)text;
}

/* "matlab:2,tape": names with counts. */
static Nui__Common__V1__GenericResource **resources_build (struct jobspec *spec, const char *key,
                                                           const struct text_list *own,
                                                           const struct text_list *defaults,
                                                           size_t *count_out, struct err *err)
{
    const struct text_list *list = own->count ? own : defaults;
    Nui__Common__V1__GenericResource **out =
        arena_array (spec->arena, list->count + 1, sizeof *out);
    *count_out = list->count;
    for (size_t i = 0; i < list->count; i++) {
        char *name = arena_strdup (spec->arena, list->item[i]), *colon = strchr (name, ':');
        uint64_t count = 1;
        if (colon)
            *colon++ = '\0';
        if ((colon && uint_parse (colon, key, 1, 1u << 20, &count, err) < 0) ||
            name_check (key, name, err) < 0) {
            err_prefix (err, "--%s", key);
            return NULL;
        }
        out[i] = arena_new (spec->arena, Nui__Common__V1__GenericResource);
        nui__common__v1__generic_resource__init (out[i]);
        out[i]->name = name;
        out[i]->count = (uint32_t)count;
    }
    return out;
}

/* So many tasks share what is said for a node, or for the job; 0, with why: nobody can know. */
static int64_t sharers (enum amount_per per, const Nui__Common__V1__Req *req, const char *what,
                        struct err *err)
{
    if (per == PER_TASK)
        return 1;
    if (per == PER_JOB || req->tasks == 1)
        return req->tasks;
    if (req->tasks_per_node)
        return req->tasks_per_node;
    if (req->nodes)
        return (req->tasks + req->nodes - 1) / req->nodes;
    err_set (err, ERR_INVALID,
             "%s is said for each node, but not how many tasks a node gets: say also the number of "
             "nodes, or of tasks on each",
             what);
    return 0;
}

/* A task's memory in MB, rounded up. Below 0: err says why. */
static int64_t per_task (int64_t mb, enum amount_per per, const Nui__Common__V1__Req *req,
                         const char *what, struct err *err)
{
    if (per == PER_PROC)
        return mb * req->procs_per_task;
    int64_t n = mb ? sharers (per, req, what, err) : 1;
    return n ? (mb + n - 1) / n : -1;
}

/* Devices are not halved: each task gets the same number of them. */
static int gres_share (Nui__Common__V1__Req *req, enum amount_per per, struct err *err)
{
    int64_t n = req->n_gres ? sharers (per, req, "a generic resource", err) : 1;
    if (n == 0)
        return err->code;
    for (size_t i = 0; i < req->n_gres; i++) {
        if (req->gres[i]->count % n)
            return err_set (err, ERR_INVALID,
                            "%s:%u cannot be shared out evenly to %lld tasks: say how many each "
                            "task gets",
                            req->gres[i]->name, req->gres[i]->count, (long long)n);
        req->gres[i]->count /= (uint32_t)n;
    }
    return 0;
}

static Nui__Common__V1__Req *req_build (struct jobspec *spec, const struct part *part,
                                        const struct part *d, struct err *err)
{
    Nui__Common__V1__Req *req = arena_new (spec->arena, Nui__Common__V1__Req);
    nui__common__v1__req__init (req);
    int64_t nodes = pick (part->nodes, d->nodes, 0);
    int64_t tpn = pick (part->tpn, d->tpn, 0);
    int64_t tasks = pick (part->tasks, d->tasks, -1);
    if (tasks < 0)
        tasks = nodes && tpn ? nodes * tpn : nodes ? nodes : 1;
    if (nodes > tasks) {
        err_set (err, ERR_INVALID, "%lld nodes for %lld tasks: each node needs a task",
                 (long long)nodes, (long long)tasks);
        return NULL;
    }
    if (nodes && tpn && nodes * tpn < tasks) {
        err_set (err, ERR_INVALID, "%lld tasks do not fit on %lld nodes with %lld tasks each",
                 (long long)tasks, (long long)nodes, (long long)tpn);
        return NULL;
    }
    req->tasks = (uint32_t)tasks;
    req->nodes = (uint32_t)nodes;
    req->tasks_per_node = (uint32_t)tpn;
    req->procs_per_task = (uint32_t)pick (part->procs_per_task, d->procs_per_task, 1);
    req->memory_mb = per_task (pick (part->mem_mb, d->mem_mb, 0),
                               part->mem_mb >= 0 ? part->mem_per : d->mem_per, req, "memory", err);
    req->swap_mb = pick (part->swap_mb, d->swap_mb, 0);
    req->disk_mb =
        per_task (pick (part->disk_mb, d->disk_mb, 0),
                  part->disk_mb >= 0 ? part->disk_per : d->disk_per, req, "local disk", err);
    if (req->memory_mb < 0 || req->disk_mb < 0)
        return NULL;
    req->features = text_array (spec, &part->features, &d->features, &req->n_features);
    req->liked = text_array (spec, &part->liked, &d->liked, &req->n_liked);
    req->gres = resources_build (spec, "gres", &part->gres, &d->gres, &req->n_gres, err);
    if (req->n_gres && !req->gres)
        return NULL;
    return gres_share (req, part->gres.count ? part->gres_per : d->gres_per, err) < 0 ? NULL : req;
}

/* The job's own req, then those that --req adds. */
static int reqs_build (struct jobspec *spec, const struct part *part, Nui__Common__V1__Component *c,
                       struct err *err)
{
    const struct part *more = part->req_count ? part : &spec->defaults;
    struct part none = jobspec_part_unset (NULL);
    c->reqs = arena_array (spec->arena, more->req_count + 1, sizeof *c->reqs);
    for (uint32_t i = 0; i <= more->req_count; i++) {
        c->reqs[i] = i ? req_build (spec, more->req[i - 1], &none, err)
                       : req_build (spec, part, &spec->defaults, err);
        if (!c->reqs[i])
            return err->code;
    }
    c->n_reqs = more->req_count + 1;
    return 0;
}

static int script_build (struct jobspec *spec, const struct part *part, bool optional,
                         Nui__Common__V1__Component *c, struct err *err)
{
    const char *path = part->script_path ? part->script_path : spec->defaults.script_path;
    if (!path && spec->wrapped) {
        c->script.data = (uint8_t *)arena_strdup (spec->arena, spec->wrapped);
        c->script.len = strlen (spec->wrapped);
        return 0;
    }
    if (!path)
        return optional ? 0 : err_set (err, ERR_INVALID, "no script is given");
    char *data;
    size_t len;
    int rc = jobspec_file_read (spec, path, JOBSPEC_SCRIPT_MAX, &data, &len, err);
    if (rc < 0)
        return rc;
    if (!len)
        return err_set (err, ERR_INVALID, "%s is empty", path);
    if (spec->interpreter && !part->script_path) {
        data = arena_printf (spec->arena, "#!%s\n%s", spec->interpreter, data);
        len += strlen (spec->interpreter) + 3;
    }
    c->script.data = (uint8_t *)data;
    c->script.len = len;
    return 0;
}

/* What the job's site sets itself, or what is of this session only. */
static bool env_is_own (const char *text)
{
    static const char *const own[] = {
        "HOME=", "USER=",   "LOGNAME=",  "SHELL=", "PWD=",     "OLDPWD=", "SHLVL=",
        "_=",    "TMPDIR=", "HOSTNAME=", "TERM=",  "DISPLAY=", "MAIL=",   "NUI_",
        "SSH_",  "XDG_",    "DBUS_",     "SLURM_", "PBS_"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strncmp (text, own[i], strlen (own[i])))
            return true;
    return false;
}

/* The component's own variables, then those of all that it does not set itself. */
static int env_build (struct jobspec *spec, const struct part *part, Nui__Common__V1__Component *c,
                      struct err *err)
{
    struct part both = *part;
    both.env.item = NULL;
    both.env.count = both.env.cap = 0;
    for (size_t i = 0; i < part->env.count; i++)
        if (jobspec_env_set (spec, &both, part->env.item[i], err) < 0)
            return err->code;
    for (size_t i = 0; i < spec->defaults.env.count; i++)
        if (jobspec_env_set (spec, &both, spec->defaults.env.item[i], err) < 0)
            return err->code;
    for (char **mine = environ; spec->env_all && *mine; mine++)
        if (strchr (*mine, '=') && !env_is_own (*mine) &&
            jobspec_env_set (spec, &both, *mine, err) < 0)
            return err->code;
    c->env = text_array (spec, &both.env, &both.env, &c->n_env);
    return 0;
}

/* What another source (a script's directives) names again was given before; in one source that is an error. */
static bool target_known (const Nui__Common__V1__Component *c, const char *from, char source,
                          const char *path)
{
    for (size_t i = 0; i < c->n_stage_in; i++)
        if (from[i] != source && !strcmp (c->stage_in[i]->path, path))
            return true;
    return false;
}

/* What is named travels, and arguments that name files: nothing with "none". */
static int inputs_build (struct jobspec *spec, const struct part *part,
                         Nui__Common__V1__Component *c, struct err *err)
{
    const struct text_list *named = part->inputs.count ? &part->inputs : &spec->defaults.inputs;
    int rc = 0;
    for (size_t i = 0; i < named->count; i++)
        if (strcmp (named->item[i], "none") == 0)
            return 0;
    for (size_t i = 0; rc == 0 && spec->inputs && i < named->count; i++)
        rc = inputs_add (spec->inputs, named->item[i], c, err);
    for (size_t i = 0; rc == 0 && spec->inputs && i < spec->args.count; i++)
        rc = inputs_add_argument (spec->inputs, spec->args.item[i], c, err);
    return rc;
}

/* The component's own files, else those of all. */
static int stage_build (struct jobspec *spec, const struct part *part,
                        Nui__Common__V1__Component *c, struct err *err)
{
    const struct part *d = &spec->defaults;
    const struct text_list *in = part->stage_in.count ? &part->stage_in : &d->stage_in;
    const struct text_list *out = part->stage_out.count ? &part->stage_out : &d->stage_out;
    c->stage_in = arena_array (spec->arena, in->count + JOB_STAGE_IN_MAX + 1, sizeof *c->stage_in);
    c->stage_out = arena_array (spec->arena, out->count + 1, sizeof *c->stage_out);
    char *from = arena_alloc (spec->arena, in->count + 1);
    for (size_t i = 0; i < in->count; i++) {
        Nui__Common__V1__Transfer *t = stageoption_in (in->item[i] + 1, spec->arena, err);
        if (!t)
            return err->code;
        if (target_known (c, from, in->item[i][0], t->path))
            continue;
        from[c->n_stage_in] = in->item[i][0];
        c->stage_in[c->n_stage_in++] = t;
    }
    if (inputs_build (spec, part, c, err) != 0)
        return err->code;
    for (size_t i = 0; i < out->count; i++) {
        Nui__Common__V1__Transfer *t = stageoption_out (out->item[i] + 1, spec->arena, err);
        if (!t)
            return err->code;
        c->stage_out[c->n_stage_out++] = t;
    }
    return jobstage_check (c, err);
}

/* "8,16,32" or "8@2:00:00,16@1:00:00", in a component with '/' for the comma: tasks, and how long
 * with so many. The first is what the rest of the component is for. */
static int shapes_build (struct jobspec *spec, const struct part *part,
                         Nui__Common__V1__Component *c, struct err *err)
{
    const char *text = part->trl ? part->trl : part->tasks < 0 ? spec->defaults.trl : NULL;
    if (!text)
        return 0;
    if (part->tasks >= 0 || (part->trl == NULL && spec->defaults.tasks >= 0))
        return err_set (err, ERR_INVALID, "--trl and --tasks both say how many tasks");
    if (c->reqs[0]->nodes)
        return err_set (err, ERR_INVALID, "--trl cannot be spread over a number of --nodes");
    char *rest = arena_strdup (spec->arena, text);
    duration_us given = c->walltime_us;
    c->shapes = arena_array (spec->arena, strlen (text) + 1, sizeof *c->shapes);
    for (uint32_t i = 0; rest; i++) {
        char *one = strsep (&rest, ",/"), *at = strchr (one, '@');
        uint64_t tasks;
        duration_us walltime = given;
        if (at)
            *at++ = '\0';
        if (uint_parse (one, "trl", 1, 1u << 20, &tasks, err) < 0 ||
            (at && duration_parse (at, &walltime, err) < 0)) {
            err->code = ERR_INVALID;
            return err_prefix (err, "--trl '%s': wanted TASKS[@DURATION],...", text);
        }
        if (walltime < US_PER_S)
            return err_set (err, ERR_INVALID, "--trl '%s': no walltime is given for %s tasks", text,
                            one);
        if (i == 0) {
            c->reqs[0]->tasks = (uint32_t)tasks;
            c->walltime_us = walltime;
            continue;
        }
        Nui__Common__V1__Shape *shape = arena_new (spec->arena, Nui__Common__V1__Shape);
        nui__common__v1__shape__init (shape);
        shape->tasks = (uint32_t)tasks;
        shape->walltime_us = walltime;
        c->shapes[c->n_shapes++] = shape;
        if (jobshape_check (c, (uint32_t)c->n_shapes, err) < 0)
            return err_prefix (err, "--trl '%s'", text);
    }
    return 0;
}

/* "these!but not these" */
static char *hosts_build (struct jobspec *spec, const char *these, const char *but)
{
    return arena_printf (spec->arena, "%s%s%s", these ? these : "", but ? "!" : "", but ? but : "");
}

static Nui__Common__V1__Component *component_build (struct jobspec *spec, const struct part *part,
                                                    bool script_optional, struct err *err)
{
    const struct part *d = &spec->defaults;
    Nui__Common__V1__Component *c = arena_new (spec->arena, Nui__Common__V1__Component);
    nui__common__v1__component__init (c);
    c->name = pick_text (part->name, NULL);
    c->walltime_us = pick (part->walltime_us, d->walltime_us, -1);
    if (c->walltime_us < 0 &&
        (spec->walltime_optional ||
         ((part->trl || d->trl) && strchr (part->trl ? part->trl : d->trl, '@'))))
        c->walltime_us = 0; /* the site's default; or each size has its own */
    if (c->walltime_us < 0) {
        err_set (err, ERR_INVALID, "no walltime is given (--time, as in -t 1:00:00)");
        return NULL;
    }
    c->offset_us = part->offset_us;
    c->licences =
        resources_build (spec, "licence", &part->licences, &d->licences, &c->n_licences, err);
    c->partitions = text_array (spec, &part->partitions, &d->partitions, &c->n_partitions);
    c->nodeset = (char *)(part->nodeset ? part->nodeset : d->nodeset ? d->nodeset : "");
    c->hosts = hosts_build (spec, part->hosts ? part->hosts : d->hosts,
                            part->exclude ? part->exclude : d->exclude);
    c->node_access = (char *)(part->node_access ? part->node_access
                              : d->node_access  ? d->node_access
                                                : "");
    c->reservation = pick_text (part->reservation, d->reservation);
    c->procs_max = (uint32_t)pick (part->procs_max, d->procs_max, 0);
    if (!c->licences || reqs_build (spec, part, c, err) < 0 ||
        shapes_build (spec, part, c, err) < 0)
        return NULL;
    c->sites = text_array (spec, &part->sites, &d->sites, &c->n_sites);
    c->args = text_array (spec, &spec->args, &spec->args, &c->n_args);
    c->qos = pick_text (part->qos, d->qos);
    c->class_ = pick_text (part->class, d->class);
    c->stdout_name = pick_text (part->output, d->output);
    c->stderr_name = pick_text (part->error, d->error);
    c->directory = pick_text (part->directory, d->directory);
    c->signal = pick_text (part->signal, d->signal);
    if (jobsignal_check (c->signal, c->walltime_us, err) < 0)
        return NULL;
    if (env_build (spec, part, c, err) < 0 || stage_build (spec, part, c, err) < 0 ||
        script_build (spec, part, script_optional, c, err) < 0)
        return NULL;
    return c;
}

/* "afterok:alpha.3:alpha.4,after:grid.7": pairs of a kind and a job. */
static int depends_build (struct jobspec *spec, Nui__Common__V1__Job *job, struct err *err)
{
    char *text = arena_strdup (spec->arena, spec->depend ? spec->depend : ""), *rest = NULL;
    job->depends = arena_array (spec->arena, strlen (text) / 2 + 1, sizeof *job->depends);
    for (char *one = strtok_r (text, ",", &rest); one; one = strtok_r (NULL, ",", &rest)) {
        char *ids = strchr (one, ':'), *more = NULL;
        if (ids)
            *ids++ = '\0';
        if (!ids || !*ids || !*one)
            return err_set (err, ERR_INVALID,
                            "--depend '%s': wanted KIND:JOB, as in afterok:alpha.3", spec->depend);
        for (char *id = strtok_r (ids, ":", &more); id; id = strtok_r (NULL, ":", &more)) {
            struct element_id named;
            if (element_id_parse (id, &named, err) < 0)
                return err_prefix (err, "--depend");
            Nui__Common__V1__Dependency *d = arena_new (spec->arena, Nui__Common__V1__Dependency);
            nui__common__v1__dependency__init (d);
            d->kind = one;
            d->job_id = id;
            job->depends[job->n_depends++] = d;
        }
    }
    return 0;
}

/* "75,100-120" into each of them. */
static int codes_build (struct jobspec *spec, Nui__Common__V1__Retry *retry, struct err *err)
{
    enum { CODE_MAX = 255 };
    char *rest = arena_strdup (spec->arena, spec->retry_on);
    bool wanted[CODE_MAX + 1] = {false};
    while (rest) {
        char *first = strsep (&rest, ","), *last = strchr (first, '-');
        uint64_t from, to;
        if (last)
            *last++ = '\0';
        if (uint_parse (first, "code", 1, CODE_MAX, &from, err) < 0 ||
            uint_parse (last ? last : first, "code", from, CODE_MAX, &to, err) < 0)
            return err_set (err, ERR_INVALID,
                            "--retry-on '%s': wanted exit codes from 1 to 255, as in 75,100-120",
                            spec->retry_on);
        for (uint64_t c = from; c <= to; c++)
            wanted[c] = true;
    }
    retry->exit_codes = arena_array (spec->arena, CODE_MAX, sizeof *retry->exit_codes);
    for (uint32_t c = 1; c <= CODE_MAX; c++)
        if (wanted[c])
            retry->exit_codes[retry->n_exit_codes++] = c;
    return 0;
}

static int retry_build (struct jobspec *spec, Nui__Common__V1__Job *job, struct err *err)
{
    if (spec->retries < 0)
        return spec->retry_on || spec->retry_delay_us >= 0
                   ? err_set (err, ERR_INVALID, "--retry-on and --retry-delay need --retries")
                   : 0;
    job->retry = arena_new (spec->arena, Nui__Common__V1__Retry);
    nui__common__v1__retry__init (job->retry);
    job->retry->times = (uint32_t)spec->retries;
    job->retry->delay_us = spec->retry_delay_us >= 0 ? spec->retry_delay_us : RETRY_DELAY_US;
    return spec->retry_on ? codes_build (spec, job->retry, err) : 0;
}

/* Mail is a notification whose URL is the address: mailto:alice@example.org?on=end,fail. */
static int mail_build (struct jobspec *spec, Nui__Common__V1__Job *job, struct err *err)
{
    job->notify_url = pick_text (spec->notify, NULL);
    if (!spec->mail && !spec->mail_to)
        return 0;
    if (spec->notify)
        return err_set (err, ERR_INVALID, "--mail and --notify: a job is told of in one way");
    if (!spec->mail_to)
        return err_set (err, ERR_INVALID, "--mail: to whom? --mail-to ADDRESS");
    job->notify_url =
        arena_printf (spec->arena, "mailto:%s?on=%s%s", spec->mail_to,
                      spec->mail ? spec->mail : "end,fail", spec->mail_perhaps ? ",perhaps" : "");
    return mailaddress_check (job->notify_url, err);
}

static void flags_build (struct jobspec *spec, Nui__Common__V1__Job *job)
{
    char *text = arena_strdup (spec->arena, spec->flags ? spec->flags : ""), *rest = NULL;
    job->flags = arena_array (spec->arena, strlen (text) / 2 + 1, sizeof *job->flags);
    for (char *one = strtok_r (text, ", ", &rest); one; one = strtok_r (NULL, ", ", &rest))
        job->flags[job->n_flags++] = one;
}

int jobspec_build (struct jobspec *spec, bool script_optional, Nui__Common__V1__Job **job_out,
                   struct err *err)
{
    struct err local;
    err = err ? err : &local;
    Nui__Common__V1__Job *job = arena_new (spec->arena, Nui__Common__V1__Job);
    nui__common__v1__job__init (job);
    job->name = pick_text (spec->name, NULL);
    job->account = pick_text (spec->account, NULL);
    job->not_before_us = spec->after == TIME_US_NONE ? 0 : spec->after;
    job->deadline_us = spec->deadline == TIME_US_NONE ? 0 : spec->deadline;
    job->expires_us = spec->valid; /* from when it is signed on: job_options_build */
    job->not_after_us = spec->start_by == TIME_US_NONE ? 0 : spec->start_by;
    job->prefer = pick_text (spec->prefer, NULL);
    job->quote_id = pick_text (spec->quote, NULL);
    job->on_site_loss = pick_text (spec->on_site_loss, NULL);
    job->on_failure = pick_text (spec->on_failure, NULL);
    if (mail_build (spec, job, err) < 0)
        return err->code;
    if (job->not_after_us &&
        (job->not_after_us < spec->now || job->not_after_us < job->not_before_us))
        return err_set (err, ERR_INVALID, "--start-by is in the past or before --after");
    if (job->deadline_us && job->deadline_us <= spec->now)
        return err_set (err, ERR_INVALID, "--deadline is in the past");
    if (job->deadline_us && job->not_before_us >= job->deadline_us)
        return err_set (err, ERR_INVALID, "--after is not before --deadline");
    job->cost_max_micro = spec->cost_max < 0 ? 0 : spec->cost_max;
    job->cost_any = spec->cost_max == 0;
    job->held = spec->held;
    flags_build (spec, job);
    if (depends_build (spec, job, err) < 0 || retry_build (spec, job, err) < 0)
        return err->code;
    struct part only = jobspec_part_unset ("main");
    const struct part *parts = spec->component_count ? spec->component : &only;
    job->n_components = spec->component_count ? spec->component_count : 1;
    job->components = arena_array (spec->arena, job->n_components, sizeof *job->components);
    for (size_t i = 0; i < job->n_components; i++) {
        job->components[i] = component_build (spec, &parts[i], script_optional, err);
        if (!job->components[i])
            return spec->component_count ? err_prefix (err, "component '%s'", parts[i].name)
                                         : err->code;
    }
    *job_out = job;
    return 0;
}
