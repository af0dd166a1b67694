/* What a signed job says to the bank: which of its parts a hold or a charge is for, what was signed for it (where,
 * how many processors, for how long, how often, for how much), and what makes it that job. Holds, group holds and
 * charges without a hold all read it here; whether what is asked for is within it is the ledger's to say (bounds.c
 * and signed.c of the core). It trusts nothing that the job does not say: whoever calls has seen to the signature, or
 * will before anything is committed. */
#include <string.h>

#include "bank/svc/service_impl.h"
#include "proto/hash/sha256.h"
#include "proto/job/jobcheck.h"

enum { RETRIES_MAX = 1000 };

/* The part of the signed job that a hold is for; an ordinary job's only one needs no name. */
static const Nui__Common__V1__Component *component_of (const Nui__Common__V1__Job *job,
                                                       const char *name)
{
    if (!name[0] && job->n_components == 1)
        return job->components[0];
    for (size_t i = 0; i < job->n_components; i++)
        if (strcmp (job->components[i]->name, name) == 0)
            return job->components[i];
    return NULL;
}

/* The quote that a job names. Text that is none is a quote that is not there: a charge is not refused
 * for it. */
void quote_named (const char *text, const char *job, struct ledger_ask *ask)
{
    ask->quote_id = 0;
    ask->quote_job = job;
    if (text[0] && number_parse ("quote", text, false, &ask->quote_id, NULL) < 0)
        ask->quote_id = -1;
}

/* What a signed job is known by: its UUID. */
static const char *job_key (struct work *work, const Nui__Common__V1__Job *job)
{
    char text[QUANTITY_TEXT_MAX];
    struct uuid uuid = {{0}};
    memcpy (uuid.b, job->uuid.data,
            job->uuid.len < sizeof (uuid.b) ? job->uuid.len : sizeof (uuid.b));
    return arena_strdup (work->arena, uuid_format (&uuid, text));
}

void asked_signed (struct work *work, const Nui__Common__V1__Job *job, const char *component,
                   uint32_t shape, struct ledger_ask *ask)
{
    const Nui__Common__V1__Component *c = component_of (job, component);
    struct ledger_gres *gres = arena_array (work->arena, BANK_GRES_MAX, sizeof (*gres));
    ask->coreserved = job->n_components > 1;
    quote_named (job->quote_id, job_key (work, job), ask);
    ask->memory_mb = 0;
    ask->gres = gres;
    ask->gres_count = 0;
    if (c && jobshape_check (c, shape, NULL) < 0)
        shape = 0;
    for (size_t i = 0; c && i < c->n_reqs; i++) {
        const Nui__Common__V1__Req *req = c->reqs[i];
        uint32_t tasks = jobshape_tasks (c, shape, i);
        int64_t memory;
        if (__builtin_mul_overflow (req->memory_mb > 0 ? req->memory_mb : 0, tasks, &memory) ||
            __builtin_add_overflow (ask->memory_mb, memory, &ask->memory_mb))
            ask->memory_mb = INT64_MAX;
        for (size_t k = 0; k < req->n_gres && ask->gres_count < BANK_GRES_MAX; k++)
            gres[ask->gres_count++] =
                (struct ledger_gres){arena_strdup (work->arena, req->gres[k]->name),
                                     (int64_t)req->gres[k]->count * tasks};
    }
}

static int signed_where (const Nui__Common__V1__Component *component, const char *site,
                         struct err *err)
{
    for (size_t i = 0; i < component->n_sites; i++)
        if (strcmp (component->sites[i], site) == 0)
            return 0;
    return component->n_sites == 0
               ? 0
               : err_set (err, ERR_DENIED, "the user did not allow site %s for this component",
                          site);
}

/* When the signature ends, here: what the job says, if it is not too long after it was signed. */
static time_us signed_until (const struct work *work, const Nui__Common__V1__Job *job)
{
    duration_us window = work->svc->limits.replay;
    time_us most = job->created_us < INT64_MAX - window ? job->created_us + window : INT64_MAX;
    return job->expires_us && job->expires_us < most ? job->expires_us : most;
}

static bool signed_flag (const Nui__Common__V1__Job *job, const char *flag)
{
    for (size_t i = 0; i < job->n_flags; i++)
        if (strcmp (job->flags[i], flag) == 0)
            return true;
    return false;
}

/* How often its user signed for a part to run, and at how many places it may be for a moment: at a second one
 * while what was promised a moment (a group, a user of licences) moves to an earlier one, or while the bank
 * does not know yet how a run that is over has ended. */
static void signed_runs (const Nui__Common__V1__Job *job,
                         const Nui__Common__V1__Component *component, struct ledger_hold_ask *ask)
{
    bool resubmit = strcmp (job->on_site_loss, "resubmit") == 0;
    uint32_t retries = job->retry ? job->retry->times : 0;
    ask->runs_max = 1 + (retries < RETRIES_MAX ? retries : RETRIES_MAX) + resubmit;
    bool promised = job->n_components > 1 || component->n_licences;
    ask->live_max = promised || ask->runs_max > 1 ? 2 : 1;
    ask->bounds.restarts_max = signed_flag (job, "NORESTART") ? 0 : LEDGER_RESTARTS_MAX;
}

static int64_t at_most_procs (uint64_t count)
{
    return count < PRICE_PROCS_MAX ? (int64_t)count : PRICE_PROCS_MAX;
}

/* How much of what, in the size that is asked for. */
static void signed_size (const Nui__Common__V1__Component *component, uint32_t shape,
                         struct ledger_bounds *b)
{
    uint64_t procs = 0, loose = 0;
    for (size_t i = 0; i < component->n_reqs; i++) {
        const Nui__Common__V1__Req *req = component->reqs[i];
        uint64_t tasks = jobshape_tasks (component, shape, i),
                 each = req->procs_per_task ? req->procs_per_task : 1;
        uint32_t per_node = req->tasks_per_node;
        if (!per_node && req->nodes)
            per_node = req->tasks / req->nodes; /* also of a larger size */
        uint64_t all = (uint64_t)at_most_procs (tasks * each);
        procs += all;
        if (per_node)
            b->nodes += at_most_procs ((tasks + per_node - 1) / per_node);
        else
            loose += all;
        if (!per_node && at_most_procs (each) > b->loose_task)
            b->loose_task = at_most_procs (each);
    }
    b->procs = at_most_procs (procs);
    b->loose_procs = at_most_procs (loose);
    b->nodes = at_most_procs ((uint64_t)b->nodes);
    b->procs_max = at_most_procs (component->procs_max);
    b->walltime = jobshape_walltime (component, shape);
}

void signed_bounds (const Nui__Common__V1__Job *job, const char *component, uint32_t shape,
                    struct ledger_bounds *out)
{
    const Nui__Common__V1__Component *c = component_of (job, component);
    *out = (struct ledger_bounds){0};
    if (c && jobshape_check (c, shape, NULL) == 0)
        signed_size (c, shape, out);
}

int signed_read (struct work *work, const Nui__Common__V1__Envelope *envelope,
                 const Nui__Common__V1__Job *job, const struct signed_use *use,
                 const struct delegation *delegation, struct ledger_hold_ask *ask, struct err *err)
{
    const Nui__Common__V1__Component *component = component_of (job, use->component);
    const char *grid = rpccall_peer (work->call)->grid;
    if (job->question)
        return err_set (err, ERR_DENIED, "the user signed a question only, not a job");
    if (job->uuid.len != sizeof (ask->uuid.b))
        return err_set (err, ERR_INVALID, "the signed job has no uuid of 16 bytes");
    if (strcmp (job->grid, grid) != 0)
        return err_set (err, ERR_INVALID, "the job was signed for grid %.80s, this is %.80s",
                        job->grid, grid);
    if (use->meta[0] && name_check ("metascheduler", use->meta, err) < 0)
        return err->code;
    if (!component)
        return err_set (err, ERR_INVALID, "the signed job has no component '%s'", use->component);
    if (jobshape_check (component, use->shape, err) < 0 ||
        signed_where (component, use->site, err) < 0)
        return err->code;
    sha256 (envelope->body.data, envelope->body.len, ask->hash);
    if (handover_right (work, envelope, job, ask->hash, component, use->site, err) < 0)
        return err->code;
    ask->account = arena_strdup (work->arena, job->account);
    asked_signed (work, job, use->component, use->shape, &ask->ask);
    ask->is_signed = true;
    ask->meta = arena_strdup (work->arena, use->meta);
    ask->meta_group = use->group;
    memcpy (ask->uuid.b, job->uuid.data, sizeof (ask->uuid.b));
    time_us more = delegation_until (delegation, ask->meta_group ? "" : ask->meta);
    ask->expires = signed_until (work, job);
    if (ask->expires < more)
        ask->expires = more;
    ask->cost_max = job->cost_max_micro > 0 ? job->cost_max_micro : 0;
    ask->part = arena_strdup (work->arena, component->name);
    signed_runs (job, component, ask);
    signed_size (component, use->shape, &ask->bounds);
    return 0;
}
