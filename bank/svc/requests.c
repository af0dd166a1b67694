/* Writing calls of sites: hold, charge, release. The bank checks the user's signature itself. */
#include <stdlib.h>
#include <string.h>

#include "bank/svc/service_impl.h"
#include "proto/base/clock.h"
#include "proto/hash/sha256.h"
#include "proto/job/delegation.h"
#include "proto/job/element.h"

enum { NAME_MAX_BYTES = 255 };

struct work *work_create (struct bank_service *svc, struct rpccall *call, const void *request)
{
    struct arena *arena = arena_create (4096);
    struct work *work = arena_new (arena, struct work);
    work->svc = svc;
    work->call = call;
    work->arena = arena;
    work->request = request;
    return work;
}

static void work_destroy (struct work *work)
{
    arena_destroy (work->arena);
}

void work_fail (struct work *work, const struct err *err)
{
    rpccall_fail (work->call, err);
    work_destroy (work);
}

bool work_failed (struct work *work, const struct err *err)
{
    if (!err->code)
        return false;
    work_fail (work, err);
    return true;
}

void work_reply (struct work *work, const ProtobufCMessage *reply)
{
    rpccall_reply (work->call, reply);
    work_destroy (work);
}

int text_check (const char *what, const char *text, size_t max, struct err *err)
{
    if (strlen (text) > max)
        return err_set (err, ERR_LIMIT, "%s is %zu bytes long, %zu are allowed", what,
                        strlen (text), max);
    return 0;
}

static void request_hash (const ProtobufCMessage *request, uint8_t out[LEDGER_HASH_BYTES])
{
    /* The packed form is canonical: fields by number, defaults left out. */
    size_t len = protobuf_c_message_get_packed_size (request);
    uint8_t *packed = malloc (len + 1);
    const char *name = request->descriptor->name;
    if (!packed)
        abort ();
    protobuf_c_message_pack (request, packed);
    EVP_MD_CTX *hash = sha256_begin ();
    sha256_add (hash, name, strlen (name) + 1);
    sha256_add (hash, packed, len);
    sha256_end (hash, out);
    free (packed);
}

int request_begin (struct work *work, enum ledger_kind kind, const ProtobufCBinaryData *key,
                   const ProtobufCMessageDescriptor *reply, struct err *err)
{
    char uri[PRINCIPAL_URI_MAX];
    if (key->len != sizeof (work->req.key.b))
        return err_set (err, ERR_INVALID, "the idempotency key has %zu bytes, it must have 16",
                        key->len);
    work->reply = reply;
    work->req.kind = kind;
    work->req.client = arena_strdup (work->arena, principal_uri (rpccall_peer (work->call), uri));
    work->req.on_behalf = work->req.client;
    work->req.by_user = rpccall_peer (work->call)->kind == PRINCIPAL_USER;
    if (rpccall_peer (work->call)->kind == PRINCIPAL_AGENCY)
        work->req.agency = arena_strdup (work->arena, rpccall_peer (work->call)->name);
    memcpy (work->req.key.b, key->data, key->len);
    request_hash (work->request, work->req.hash);
    return 0;
}

static void on_done (void *arg, const struct err *err, const void *bytes, size_t len)
{
    struct work *work = arg;
    metrics_operation (work->svc->metrics, work->req.kind, err->code == 0,
                       clock_monotonic_us () - work->submitted);
    if (work_failed (work, err))
        return;
    if (work->req.kind == LEDGER_CHARGE && work->req.charge.site_failed)
        expiry_wake (work->svc->expiry); /* it may be due to be given back */
    if (work->req.kind == LEDGER_CLOCK)
        committer_clock_accept (work->svc->committer);
    ProtobufCMessage *reply = protobuf_c_message_unpack (work->reply, NULL, len, bytes);
    if (reply)
        rpccall_reply (work->call, reply);
    else
        rpccall_finish (work->call, RPC_INTERNAL, "the stored answer cannot be read");
    if (reply)
        protobuf_c_message_free_unpacked (reply, NULL);
    work_destroy (work);
}

static bool job_signed (void *arg);

void request_submit (struct work *work)
{
    struct err err = {0};
    work->submitted = clock_monotonic_us ();
    if (committer_submit (work->svc->committer, &work->req, work->unchecked ? job_signed : NULL,
                          on_done, work, &err) < 0)
        work_fail (work, &err);
}

/* ---- envelopes ---- */

/* A moment in the past is an unheld charge's: rare, and never remembered. A delegation may stand in for
 * what is no longer good by itself. */
static int job_verify (struct work *work, const Nui__Common__V1__Envelope *envelope, time_us at,
                       struct principal *signer, struct delegation *delegation, struct err *err)
{
    struct bank_service *svc = work->svc;
    time_us now = committer_now (svc->committer);
    *delegation = (struct delegation){0};
    if (envelope->delegation.len > 0)
        return delegation_verify (svc->id, envelope, at ? at : now, signer, delegation, err);
    if (at != 0)
        return envelope_verify (svc->id, envelope, at, signer, err);
    return verified_envelope (svc->verified, svc->id, envelope, now, signer, err);
}

static int signer_check (const struct principal *signer, const char *submitter, struct err *err)
{
    char uri[PRINCIPAL_URI_MAX];
    principal_uri (signer, uri);
    if (signer->kind != PRINCIPAL_USER)
        return err_set (err, ERR_UNAUTHENTIC, "%s signed the job, not a user", uri);
    if (strcmp (submitter, uri) != 0)
        return err_set (err, ERR_UNAUTHENTIC,
                        "the job names %.200s as its submitter, %.200s signed it", submitter, uri);
    return 0;
}

int job_open (struct work *work, const Nui__Common__V1__Envelope *envelope, time_us at,
              char **signer_uri_out, Nui__Common__V1__Job **job_out, struct delegation *delegation,
              struct err *err)
{
    struct principal signer;
    struct delegation unused;
    if (!envelope || envelope->body.len == 0)
        return err_set (err, ERR_INVALID, "the request carries no signed job");
    if (job_verify (work, envelope, at, &signer, delegation ? delegation : &unused, err) < 0)
        return err->code;
    Nui__Common__V1__Job *job = element_unpack (envelope, err);
    if (!job)
        return err_prefix (err, "the signed job");
    if (signer_check (&signer, job->submitter, err) < 0) {
        job_close (job);
        return err->code;
    }
    *signer_uri_out = arena_strdup (work->arena, job->submitter);
    *job_out = job;
    return 0;
}

/* The job as its submitter says it is, where the writer is idle: PostgreSQL works on the hold while the signature is
 * looked at (job_signed), which is most of what nui-bank does for one. NULL: it is to be looked at now. */
static Nui__Common__V1__Job *job_open_unchecked (struct work *work,
                                                 const Nui__Common__V1__Envelope *envelope,
                                                 char **signer_uri_out)
{
    struct principal p;
    struct err err = {0};
    char uri[PRINCIPAL_URI_MAX];
    if (!committer_is_idle (work->svc->committer) || !envelope || envelope->body.len == 0 ||
        envelope->delegation.len > 0)
        return NULL;
    Nui__Common__V1__Job *job = element_unpack (envelope, &err);
    if (!job)
        return NULL;
    if (principal_parse (job->submitter, &p, &err) < 0 || p.kind != PRINCIPAL_USER ||
        strcmp (principal_uri (&p, uri), job->submitter) != 0) {
        job_close (job);
        return NULL;
    }
    *signer_uri_out = arena_strdup (work->arena, uri);
    work->unchecked = envelope;
    return job;
}

/* What is left to be found out of such a job: false, and why in the request. */
static bool job_signed (void *arg)
{
    struct work *work = arg;
    struct principal signer;
    struct delegation unused;
    struct err err = {0};
    if (job_verify (work, work->unchecked, 0, &signer, &unused, &err) == 0 &&
        signer_check (&signer, work->req.on_behalf, &err) == 0)
        return true;
    work->req.refused = err;
    return false;
}

void job_close (Nui__Common__V1__Job *job)
{
    if (job)
        nui__common__v1__job__free_unpacked (job, NULL);
}

/* A site's jobs are SITE.NUMBER, as nui-local makes them, and what a reservation kept idle is SITE.RESERVATION: the ids of
 * one site are never another's, whatever it claims. What is charged by hand may have other names of that site. */
static int site_job_check (struct work *work, const char *site, const char *site_job,
                           const char *component, struct err *err)
{
    char prefix[PRINCIPAL_NAME_MAX];
    uint64_t number;
    size_t len = strlen (site);
    bool own = strncmp (site_job, site, len) == 0 && site_job[len] == '.';
    if (own && id_parse (site_job, prefix, sizeof (prefix), &number, NULL) == 0 &&
        strcmp (prefix, site) == 0)
        return 0;
    bool any =
        rpccall_peer (work->call)->kind == PRINCIPAL_OPERATOR || strcmp (component, "idle") == 0;
    if (own && any && name_check ("job", site_job + len + 1, NULL) == 0)
        return 0;
    return err_set (err, ERR_INVALID,
                    "'%.80s' is no job of site %.80s: its jobs are %.80s.1, %.80s.2 …", site_job,
                    site, site, site);
}

static int job_ids_check (struct work *work, const char *site, const char *grid_job,
                          const char *site_job, const char *component, struct err *err)
{
    if (!site_job[0])
        return err_set (err, ERR_INVALID, "the request names no job of the site");
    if (text_check ("grid_job_id", grid_job, NAME_MAX_BYTES, err) < 0 ||
        text_check ("site_job_id", site_job, NAME_MAX_BYTES, err) < 0 ||
        text_check ("component", component, NAME_MAX_BYTES, err) < 0)
        return err->code;
    return site_job_check (work, site, site_job, component, err);
}

/* Types are kept in one text of the hold: they are names, each once. */
static int nodes_read (struct work *work, const Nui__Bank__V1__Asked *asked, struct ledger_ask *ask,
                       struct err *err)
{
    struct ledger_nodes *nodes = arena_array (work->arena, asked->n_nodes, sizeof (*nodes));
    if (asked->n_nodes > LEDGER_NODE_TYPES_MAX)
        return err_set (err, ERR_LIMIT, "%zu node types, a job has at most %d", asked->n_nodes,
                        LEDGER_NODE_TYPES_MAX);
    for (size_t i = 0; i < asked->n_nodes; i++) {
        const Nui__Bank__V1__NodeShare *m = asked->nodes[i];
        if (name_check ("node type", m->type, err) < 0)
            return err->code;
        if (m->procs < 1 || m->procs > PRICE_PROCS_MAX)
            return err_set (err, ERR_INVALID, "processors on nodes of type %s are out of bounds",
                            m->type);
        for (size_t k = 0; k < i; k++)
            if (strcmp (nodes[k].type, m->type) == 0)
                return err_set (err, ERR_INVALID, "node type %s is there twice", m->type);
        nodes[i] = (struct ledger_nodes){m->type, m->procs};
    }
    ask->nodes = nodes;
    ask->nodes_count = (uint32_t)asked->n_nodes;
    return 0;
}

int asked_read (struct work *work, const Nui__Bank__V1__Asked *asked, const char *qos,
                const char *class_, struct ledger_ask *ask, struct err *err)
{
    ask->qos = qos;
    ask->class_ = class_;
    if (text_check ("qos", qos, NAME_MAX_BYTES, err) < 0 ||
        text_check ("class", class_, NAME_MAX_BYTES, err) < 0)
        return err->code;
    if (!asked)
        return 0;
    if (asked->memory_mb < 0 || asked->memory_mb > INT64_C (1) << 50 || asked->pe_milli < 0 ||
        asked->n_gres > BANK_GRES_MAX)
        return err_set (err, ERR_INVALID, "what the job asks for is out of bounds");
    struct ledger_gres *gres = arena_array (work->arena, asked->n_gres, sizeof (*gres));
    for (size_t i = 0; i < asked->n_gres; i++)
        gres[i] = (struct ledger_gres){asked->gres[i]->name, asked->gres[i]->count};
    ask->memory_mb = asked->memory_mb;
    ask->pe_milli = asked->pe_milli;
    ask->gres = gres;
    ask->gres_count = (uint32_t)asked->n_gres;
    return nodes_read (work, asked, ask, err);
}

/* A site's own word for whose job it is. Whether it may say so is the ledger's to decide. */
static int claim_open (struct work *work, const Nui__Bank__V1__SiteClaim *claim,
                       const char **account_out, struct err *err)
{
    struct principal user;
    char uri[PRINCIPAL_URI_MAX];
    if (principal_parse (claim->identity, &user, err) < 0)
        return err->code;
    if (user.kind != PRINCIPAL_USER || strcmp (user.grid, rpccall_peer (work->call)->grid) != 0)
        return err_set (err, ERR_INVALID,
                        "the site claims a job of %.200s, which is no user of "
                        "this grid",
                        claim->identity);
    work->req.on_behalf = arena_strdup (work->arena, principal_uri (&user, uri));
    *account_out = claim->account;
    return 0;
}

/* Whose job a request is about: a site's own, or the one that an operator names. NULL: neither. */
static const char *acting_site (struct work *work, const char *named, struct err *err)
{
    const struct principal *peer = rpccall_peer (work->call);
    if (peer->kind != PRINCIPAL_SITE)
        return name_check ("site", named, err) < 0 ? NULL : named;
    if (!named[0] || strcmp (named, peer->name) == 0)
        return peer->name;
    err_set (err, ERR_DENIED, "site %s acts for itself, not for site %.80s", peer->name, named);
    return NULL;
}

/* A request's hold, but for whose it is. */
static int hold_read (struct work *work, const Nui__Bank__V1__HoldRequest *m, const char *site,
                      struct ledger_hold_ask *ask, struct err *err)
{
    if (job_ids_check (work, site, m->grid_job_id, m->site_job_id, m->component, err) < 0 ||
        text_check ("machine", m->machine, NAME_MAX_BYTES, err) < 0 ||
        asked_read (work, m->asked, m->qos, m->class_, &ask->ask, err) < 0)
        return err->code;
    if (m->procs > INT64_MAX || m->walltime_us < 0)
        return err_set (err, ERR_INVALID, "hold: processors or walltime out of bounds");
    ask->ask.machine = m->machine;
    quote_named (m->quote_id, arena_printf (work->arena, "%s/%s", site, m->site_job_id), &ask->ask);
    ask->job = (struct ledger_job){.site = site,
                                   .site_job = m->site_job_id,
                                   .component = m->component,
                                   .grid_job = m->grid_job_id,
                                   .incarnation = m->incarnation};
    ask->procs = (int64_t)m->procs;
    ask->walltime = m->walltime_us;
    ask->start = m->start_us;
    ask->account = "";
    return 0;
}

/* Whose it is: by the user's signature, or by the word of the site or an operator. */
static int holds_owner (struct work *work, const Nui__Common__V1__Envelope *envelope,
                        const Nui__Bank__V1__SiteClaim *claim,
                        const Nui__Bank__V1__HoldRequest *const *m, struct ledger_hold_ask *ask,
                        size_t count, struct err *err)
{
    Nui__Common__V1__Job *job = NULL;
    char *signer = NULL;
    if (claim && !envelope) {
        const char *account = "";
        int rc = claim_open (work, claim, &account, err);
        for (size_t i = 0; i < count; i++) {
            ask[i].claimed = rpccall_peer (work->call)->kind != PRINCIPAL_OPERATOR;
            ask[i].account = account;
        }
        return rc;
    }
    struct delegation delegation = {0};
    job = job_open_unchecked (work, envelope, &signer);
    if (!job && job_open (work, envelope, 0, &signer, &job, &delegation, err) < 0)
        return err->code;
    work->req.on_behalf = signer;
    const struct principal *peer = rpccall_peer (work->call);
    for (size_t i = 0; i < count && !err->code; i++) {
        const struct signed_use use = {.component = m[i]->component,
                                       .shape = m[i]->shape,
                                       .site = ask[i].job.site,
                                       .meta = peer->kind == PRINCIPAL_META ? peer->name
                                                                            : m[i]->metascheduler,
                                       .group = m[i]->group};
        if (signed_read (work, envelope, job, &use, &delegation, &ask[i], err) < 0)
            err_prefix (err, "hold");
    }
    job_close (job);
    if (err->code && work->unchecked) { /* whose it is counts first */
        job_signed (work);
        work->unchecked = NULL;
    }
    return err->code;
}

void handle_hold (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__HoldRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    const char *site;
    if (request_begin (work, LEDGER_HOLD, &m->key, &nui__bank__v1__hold_reply__descriptor, &err) <
            0 ||
        !(site = acting_site (work, m->site, &err)) ||
        hold_read (work, m, site, &work->req.hold, &err) < 0) {
        work_fail (work, &err);
        return;
    }
    /* A request whose signature does not hold (any more) still gets the answer of its key. */
    holds_owner (work, m->envelope, m->claim, &m, &work->req.hold, 1, &work->req.refused);
    request_submit (work);
}

void handle_hold_group (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__HoldGroupRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct ledger_hold_ask *ask = arena_array (work->arena, LEDGER_GROUP_MAX, sizeof (*ask));
    struct err err = {0};
    int rc = request_begin (work, LEDGER_HOLD_GROUP, &m->key,
                            &nui__bank__v1__hold_group_reply__descriptor, &err);
    if (rc == 0 && (m->n_holds == 0 || m->n_holds > LEDGER_GROUP_MAX))
        rc = err_set (&err, ERR_LIMIT, "hold: a group has 1 to %d holds, not %zu", LEDGER_GROUP_MAX,
                      m->n_holds);
    for (size_t i = 0; i < m->n_holds && rc == 0; i++) {
        rc = name_check ("site", m->holds[i]->site, &err);
        if (rc == 0)
            rc = hold_read (work, m->holds[i], m->holds[i]->site, &ask[i], &err);
    }
    if (rc < 0) {
        work_fail (work, &err);
        return;
    }
    work->req.group.item = ask;
    work->req.group.count = (uint32_t)m->n_holds;
    holds_owner (work, m->envelope, m->claim, (const Nui__Bank__V1__HoldRequest *const *)m->holds,
                 ask, m->n_holds, &work->req.refused);
    request_submit (work);
}

void handle_extend (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__ExtendRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    const struct principal *peer = rpccall_peer (call);
    struct err err = {0};
    if (request_begin (work, LEDGER_EXTEND, &m->key, &nui__bank__v1__extend_reply__descriptor,
                       &err) < 0 ||
        text_check ("hold_id", m->hold_id, NAME_MAX_BYTES, &err) < 0) {
        work_fail (work, &err);
        return;
    }
    work->req.extend.site = peer->kind == PRINCIPAL_SITE ? peer->name : NULL;
    work->req.extend.hold_id = m->hold_id;
    work->req.extend.walltime = m->walltime_us;
    request_submit (work);
}

/* The hold that a charge without one would have had. */
static struct ledger_hold_ask hold_of_charge (const struct ledger_request *req)
{
    return (struct ledger_hold_ask){.job = req->charge.job,
                                    .account = req->charge.account,
                                    .procs = req->charge.procs,
                                    .walltime = req->charge.end - req->charge.start,
                                    .ask = req->charge.ask,
                                    .start = req->charge.start};
}

/* Who pays is the signed job's to say, and for what: a hold for it would have been asked for so. What it does not
 * stand for is not refused, since something was used: the ledger has a person look at it. */
static void charge_signed (struct work *work, const Nui__Bank__V1__ChargeRequest *m,
                           const Nui__Common__V1__Job *job, const struct delegation *delegation)
{
    struct ledger_request *req = &work->req;
    struct ledger_signature *s = arena_new (work->arena, struct ledger_signature);
    struct err err = {0};
    const struct signed_use use = {.component = m->component,
                                   .shape = m->shape,
                                   .site = req->charge.job.site,
                                   .meta = "",
                                   .group = true};
    req->charge.account = arena_strdup (work->arena, job->account);
    asked_signed (work, job, m->component, m->shape, &req->charge.ask);
    s->ask = hold_of_charge (req);
    if (signed_read (work, m->envelope, job, &use, delegation, &s->ask, &err) < 0)
        s->unsigned_for = arena_strdup (work->arena, err.text);
    s->created = job->created_us;
    s->forgotten = s->ask.expires < INT64_MAX - work->svc->limits.replay
                       ? s->ask.expires + work->svc->limits.replay
                       : INT64_MAX;
    req->charge.signature = s;
}

/* Nobody signed it, as far as can be seen here (another authority's user, say, or a revoked one): what the site says
 * that was used is recorded and disputed, for a person to look at, rather than refused for good. */
static void charge_unsigned (struct work *work, const char *why)
{
    struct ledger_request *req = &work->req;
    struct ledger_signature *s = arena_new (work->arena, struct ledger_signature);
    s->ask = hold_of_charge (req);
    s->unsigned_for = arena_printf (work->arena, "no user's signature: %.200s", why);
    s->forgotten = INT64_MAX;
    req->charge.signature = s;
}

/* Nothing is decided by it; it may be missing. */
static int ran_read (const Nui__Bank__V1__Ran *m, struct ledger_ran *ran, struct err *err)
{
    *ran = (struct ledger_ran){.local_user = "", .queue = ""};
    if (!m)
        return 0;
    if (text_check ("local_user", m->local_user, NAME_MAX_BYTES, err) < 0 ||
        text_check ("class", m->class_, NAME_MAX_BYTES, err) < 0)
        return err->code;
    if (m->nodes > INT64_MAX || m->memory_mb < 0 || m->submitted_us < 0)
        return err_set (err, ERR_INVALID, "charge: nodes, memory or submission out of bounds");
    *ran = (struct ledger_ran){.nodes = (int64_t)m->nodes,
                               .memory_mb = m->memory_mb,
                               .submitted = m->submitted_us,
                               .local_user = m->local_user,
                               .queue = m->class_};
    return 0;
}

void handle_charge (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__ChargeRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct ledger_request *req = &work->req;
    Nui__Common__V1__Job *job = NULL;
    char *signer = NULL;
    struct delegation delegation = {0};
    struct err err = {0};
    if (request_begin (work, LEDGER_CHARGE, &m->key, &nui__bank__v1__charge_reply__descriptor,
                       &err) < 0 ||
        text_check ("hold_id", m->hold_id, NAME_MAX_BYTES, &err) < 0 ||
        asked_read (work, m->asked, m->qos, m->class_, &req->charge.ask, &err) < 0 ||
        ran_read (m->ran, &req->charge.ran, &err) < 0) {
        work_fail (work, &err);
        return;
    }
    const char *site = acting_site (work, m->site, &err);
    if (!site ||
        job_ids_check (work, site, m->grid_job_id, m->site_job_id, m->component, &err) < 0 ||
        text_check ("machine", m->machine, NAME_MAX_BYTES, &err) < 0) {
        work_fail (work, &err);
        return;
    }
    bool operator= rpccall_peer (call)->kind == PRINCIPAL_OPERATOR;
    if (m->procs > INT64_MAX || m->sequence > INT64_MAX || m->cpu_us < 0 ||
        (operator&& m->sequence)) {
        err_set (&err, ERR_INVALID, "charge: processors, their time or sequence out of bounds");
        work_fail (work, &err);
        return;
    }
    req->charge.ask.machine = m->machine;
    quote_named (m->quote_id, arena_printf (work->arena, "%s/%s", site, m->site_job_id),
                 &req->charge.ask);
    req->charge.job = (struct ledger_job){.site = site,
                                          .site_job = m->site_job_id,
                                          .component = m->component,
                                          .grid_job = m->grid_job_id,
                                          .incarnation = m->incarnation};
    req->charge.sequence = m->sequence;
    req->charge.hold_id = m->hold_id;
    req->charge.account = "";
    req->charge.procs = (int64_t)m->procs;
    req->charge.start = m->start_us;
    req->charge.end = m->end_us;
    req->charge.cpu = m->cpu_us;
    req->charge.final = m->final;
    req->charge.successful = m->successful;
    req->charge.site_failed = m->site_failed;
    req->charge.tolerance = work->svc->limits.tolerance;
    /* Without a hold the signed job says who pays; its certificate had to hold when it ran. */
    if (!m->hold_id[0] && m->claim && !m->envelope) {
        req->charge.claimed = !operator;
        claim_open (work, m->claim, &req->charge.account, &req->refused);
    } else if (!m->hold_id[0] && job_open (work, m->envelope, m->start_us, &signer, &job,
                                           &delegation, &req->refused) == 0) {
        req->on_behalf = signer;
        charge_signed (work, m, job, &delegation);
    } else if (req->refused.code == ERR_UNAUTHENTIC && m->envelope) {
        charge_unsigned (work, arena_strdup (work->arena, req->refused.text));
        err_clear (&req->refused);
    }
    job_close (job);
    request_submit (work);
}

void handle_release (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    const Nui__Bank__V1__ReleaseRequest *m = (const void *)request;
    struct work *work = work_create (self, call, m);
    struct err err = {0};
    if (request_begin (work, LEDGER_RELEASE, &m->key, &nui__bank__v1__release_reply__descriptor,
                       &err) < 0 ||
        text_check ("hold_id", m->hold_id, NAME_MAX_BYTES, &err) < 0 ||
        text_check ("site_job_id", m->site_job_id, NAME_MAX_BYTES, &err) < 0 ||
        text_check ("reason", m->reason, 1024, &err) < 0) {
        work_fail (work, &err);
        return;
    }
    const struct principal *peer = rpccall_peer (call);
    if (m->sequence > INT64_MAX || (peer->kind != PRINCIPAL_SITE && m->sequence)) {
        err_set (&err, ERR_INVALID, "release: sequence out of bounds");
        work_fail (work, &err);
        return;
    }
    work->req.release.site = peer->kind == PRINCIPAL_SITE ? peer->name : NULL;
    work->req.release.sequence = m->sequence;
    work->req.release.hold_id = m->hold_id;
    work->req.release.site_job = m->site_job_id;
    work->req.release.reason = m->reason;
    request_submit (work);
}
