/* What users send beside their jobs (nui:///SHA-256): taken from them by PUT where the site is asked itself, fetched from the
 * metascheduler that gave the job else, kept in STATEDIR/inputs by account and digest as long as a job needs it and INPUTKEEP
 * longer. The mover asks for it (stage_sent); what one of a job's contents is, is in what its user signed. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "local/link/meta_link.h"
#include "local/svc/caller.h"
#include "local/svc/files/stageout.h"
#include "local/svc/files/staging.h"
#include "local/svc/job.h"
#include "local/svc/job/jobs.h"
#include "local/svc/job/jobspec.h"
#include "local/svc/svc_i.h"
#include "proto/base/text.h"
#include "proto/content/contents.h"
#include "proto/job/jobcheck.h"
#include "proto/rpc/rpcclient.h"

#define READ_TIMEOUT (30 * US_PER_S)

/* Who of the mover waits for a content. */
struct stage_bringing {
    struct bring *bring;
    void (*done) (void *arg, const struct err *why);
    void *arg;
    struct stage_bringing *prev, *next;
};

/* One content on its way here, for all who wait for it. */
struct bring {
    struct inputs *inputs;
    char account[STORE_NAME_MAX], component[STORE_NAME_MAX], meta[STORE_NAME_MAX];
    char submitter[PRINCIPAL_URI_MAX];
    uint8_t uuid[16], sha256[STAGE_SHA256_LEN];
    int64_t bytes, at;
    uint32_t target; /* of META: who is asked */
    struct err why;  /* what the one before said */
    bool lacks;      /* all that answered do not have it */
    bool dead;       /* goes when its call has ended */
    struct rpccallout *call;
    struct event *turn;
    struct stage_bringing *waits;
    struct bring *prev, *next;
};

struct inputs {
    struct svc *svc;
    struct contents *contents;
    struct bring *brings;
    struct stage_sent sent;
};

static struct contents_limits limits_of (const struct settings *settings)
{
    const struct settings_stage *s = &settings->stage;
    return (struct contents_limits){s->input_mb << 20, s->input_share_mb << 20, s->input_keep};
}

/* --- from the user ----------------------------------------------------------------------------- */

void inputs_put (void *self, struct rpccall *call, const ProtobufCMessage *request)
{
    struct svc *svc = self;
    const Nui__Common__V1__ContentRequest *r = (const Nui__Common__V1__ContentRequest *)request;
    Nui__Common__V1__ContentReply reply = NUI__COMMON__V1__CONTENT_REPLY__INIT;
    struct contents_state state;
    struct admin_caller caller;
    struct err err = {0};
    int rc = svc_may_act (svc, &err);
    admin_who (svc, call, &caller);
    if (rc == 0 && !svc->inputs)
        rc = err_set (&err, ERR_DENIED, "no files are taken in this mode");
    if (rc == 0 && !*caller.login)
        rc = err_set (&err, ERR_DENIED, "%.120s has no account at site %s", caller.name, svc->site);
    if (rc == 0 && r->sha256.len != STAGE_SHA256_LEN)
        rc = err_set (&err, ERR_INVALID, "a SHA-256 has %d bytes", STAGE_SHA256_LEN);
    if (rc == 0)
        rc = contents_put (svc->inputs->contents, caller.login, r->sha256.data, r->bytes, r->offset,
                           r->data.data, r->data.len, &state, &err);
    if (rc != 0) {
        jobs_refuse (svc, call, &err);
        return;
    }
    reply.bytes = state.bytes;
    reply.whole = state.whole;
    reply.checking = state.checking;
    rpccall_reply (call, &reply.base);
}

/* --- of a job ----------------------------------------------------------------------------------- */

const char *inputs_origin (const struct jobspec *spec, struct arena *arena)
{
    char uuid[2 * 16 + 1] = "";
    for (size_t i = 0; i < spec->job->uuid.len && i < 16; i++)
        snprintf (uuid + 2 * i, 3, "%02x", spec->job->uuid.data[i]);
    return arena_printf (arena, "%s\n%s\n%s\n%s", spec->meta, uuid, spec->component->name,
                         spec->submitter);
}

/* Of a job for this site alone: it was sent here before. */
static int here_check (struct svc *svc, const struct jobspec *spec,
                       const Nui__Common__V1__Transfer *t, const uint8_t *sum, struct err *err)
{
    int64_t bytes;
    int fd;
    if (*spec->meta || spec->job->question)
        return 0;
    if (contents_read (svc->inputs->contents, spec->local_account, sum, &fd, &bytes, NULL) != 0)
        return err_set (err, ERR_NOT_FOUND,
                        "file '%.200s' that the job brings with it is not here: send the job again",
                        t->path);
    close (fd);
    return bytes == t->bytes
               ? 0
               : err_set (err, ERR_CONFLICT, "file '%.200s' has %lld bytes, the job says %lld",
                          t->path, (long long)bytes, (long long)t->bytes);
}

int inputs_check (struct svc *svc, const struct jobspec *spec, struct err *err)
{
    const Nui__Common__V1__Component *c = spec->component;
    struct contents_limits limits = limits_of (svc->settings);
    uint8_t sum[STAGE_SHA256_LEN];
    int64_t all = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->n_stage_in; i++) {
        const Nui__Common__V1__Transfer *t = c->stage_in[i];
        if (!stage_sent_parse (t->url, sum))
            continue;
        all += t->bytes < limits.share ? t->bytes : limits.share;
        if (t->bytes > limits.file_max || all > limits.share)
            rc = err_set (
                err, ERR_LIMIT, "site %s takes files of at most %lld MB with a job, %lld MB in all",
                svc->site, (long long)limits.file_max >> 20, (long long)limits.share >> 20);
        else if (!svc->inputs)
            rc = err_set (err, ERR_DENIED, "no files are taken in this mode");
        else
            rc = here_check (svc, spec, t, sum, err);
    }
    return rc;
}

void inputs_hold (struct svc *svc, struct site_job *job, const struct jobspec *spec)
{
    const Nui__Common__V1__Component *c = spec->component;
    if (!svc->inputs || job->input)
        return;
    job->input = calloc (c->n_stage_in + 1, sizeof *job->input);
    assert (job->input);
    for (size_t i = 0; i < c->n_stage_in; i++)
        if (stage_sent_parse (c->stage_in[i]->url, job->input[job->input_count]))
            contents_hold (svc->inputs->contents, job->rec.local_account,
                           job->input[job->input_count++]);
}

static void inputs_leave (struct svc *svc, struct site_job *job)
{
    for (uint32_t i = 0; svc->inputs && i < job->input_count; i++)
        contents_drop (svc->inputs->contents, job->rec.local_account, job->input[i]);
    free (job->input);
    job->input = NULL;
    job->input_count = 0;
}

/* --- from the metascheduler ---------------------------------------------------------------------- */

static void bring_free (struct bring *b)
{
    DL_DELETE (b->inputs->brings, b);
    event_free (b->turn);
    b->dead = true;
    if (b->call)
        rpccallout_cancel (b->call);
    else
        free (b);
}

static void bring_end (struct bring *b, const struct err *why)
{
    struct stage_bringing *wait = b->waits;
    struct err kept = why ? *why : (struct err){0};
    b->waits = NULL;
    bring_free (b);
    while (wait) {
        struct stage_bringing *next = wait->next;
        wait->done (wait->arg, why ? &kept : NULL);
        free (wait);
        wait = next;
    }
}

/* The next of META that speaks for the job's; NULL: none is left. */
static struct rpcclient *bring_source (struct bring *b)
{
    const struct svc *svc = b->inputs->svc;
    for (; svc->meta && b->target < svc->settings->meta_count; b->target++) {
        const char *name = meta_link_server (svc->meta, b->target);
        if (*name && settings_speaks_for (svc->settings, name, b->meta))
            return meta_link_client (svc->meta, b->target);
    }
    return NULL;
}

static void bring_turn (struct bring *b)
{
    event_active (b->turn, EV_TIMEOUT, 0);
}

/* What came is written; what does not fit its digest is nowhere. */
static int bring_take (struct bring *b, const Nui__Meta__V1__ContentReadReply *reply,
                       struct err *err)
{
    struct contents_state state;
    if (reply->data.len == 0 || reply->bytes != b->bytes)
        return err_set (err, ERR_CONFLICT, "the metascheduler has another file of that SHA-256");
    int rc = contents_put (b->inputs->contents, b->account, b->sha256, b->bytes, b->at,
                           reply->data.data, reply->data.len, &state, err);
    return rc;
}

static void on_piece (void *arg, const struct rpc_result *result)
{
    struct bring *b = arg;
    struct err err = {0};
    b->call = NULL;
    if (b->dead) {
        free (b);
        return;
    }
    if (result->status == RPC_OK &&
        bring_take (b, (const Nui__Meta__V1__ContentReadReply *)result->reply, &err) != 0) {
        err.code = err.code == ERR_LIMIT ? ERR_UNAVAILABLE : err.code; /* others may make room */
        bring_end (b, &err);
        return;
    }
    if (result->status != RPC_OK) {
        b->lacks = b->lacks && result->answered && result->status == RPC_NOT_FOUND;
        err_set (&b->why, ERR_UNAVAILABLE, "%s", result->message);
        b->target++;
    }
    bring_turn (b);
}

static void bring_ask (struct bring *b)
{
    Nui__Meta__V1__ContentReadRequest request = NUI__META__V1__CONTENT_READ_REQUEST__INIT;
    struct rpcclient *source = bring_source (b);
    struct rpccallout_config call = {.service = &nui__meta__v1__meta__descriptor,
                                     .method = "Content",
                                     .request = &request.base,
                                     .timeout = READ_TIMEOUT,
                                     .idempotent = true,
                                     .done = on_piece,
                                     .arg = b};
    if (!source) {
        if (!b->why.code)
            err_set (&b->why, ERR_UNAVAILABLE, "no metascheduler has answered yet that has it");
        else if (b->lacks)
            b->why.code = ERR_NOT_FOUND;
        bring_end (b, &b->why);
        return;
    }
    request.submitter = b->submitter;
    request.uuid = (ProtobufCBinaryData){sizeof b->uuid, b->uuid};
    request.component = b->component;
    request.sha256 = (ProtobufCBinaryData){sizeof b->sha256, b->sha256};
    request.offset = b->at;
    b->call = rpcclient_start (source, &call);
}

/* How much is here? Then the rest is asked for. */
static void on_turn (evutil_socket_t fd, short what, void *arg)
{
    struct bring *b = arg;
    struct contents_state state;
    struct err err = {0};
    (void)fd;
    (void)what;
    if (contents_put (b->inputs->contents, b->account, b->sha256, b->bytes, 0, NULL, 0, &state,
                      &err) != 0) {
        err.code = err.code == ERR_LIMIT ? ERR_UNAVAILABLE : err.code;
        bring_end (b, &err);
        return;
    }
    b->at = state.bytes;
    if (state.whole)
        bring_end (b, NULL);
    else if (state.checking)
        bring_turn (b);
    else
        bring_ask (b);
}

static struct bring *bring_find (struct inputs *inputs, const char *account, const uint8_t *sum)
{
    struct bring *b;
    DL_FOREACH (inputs->brings, b)
        if (strcmp (b->account, account) == 0 && memcmp (b->sha256, sum, sizeof b->sha256) == 0)
            return b;
    return NULL;
}

/* "META\nUUID\nCOMPONENT\nSUBMITTER": inputs_origin's. */
static bool origin_read (struct bring *b, const char *origin)
{
    char text[PRINCIPAL_URI_MAX + 2 * STORE_NAME_MAX + 64], *rest = text;
    snprintf (text, sizeof text, "%s", origin);
    const char *meta = strsep (&rest, "\n"), *uuid = strsep (&rest, "\n"),
               *component = strsep (&rest, "\n");
    if (!meta || !uuid || !component || !rest || strlen (uuid) != 2 * sizeof b->uuid)
        return false;
    text_printf (b->meta, sizeof b->meta, "%s", meta);
    text_printf (b->component, sizeof b->component, "%s", component);
    text_printf (b->submitter, sizeof b->submitter, "%s", rest);
    for (size_t i = 0; i < sizeof b->uuid; i++) {
        unsigned byte;
        if (sscanf (uuid + 2 * i, "%2x", &byte) != 1)
            return false;
        b->uuid[i] = (uint8_t)byte;
    }
    return true;
}

static struct bring *bring_begin (struct inputs *inputs, const char *origin, const char *account,
                                  const uint8_t *sum, int64_t bytes)
{
    struct bring *b = calloc (1, sizeof *b);
    assert (b);
    b->inputs = inputs;
    b->bytes = bytes;
    b->lacks = true;
    memcpy (b->sha256, sum, sizeof b->sha256);
    text_printf (b->account, sizeof b->account, "%s", account);
    if (!origin_read (b, origin)) {
        free (b);
        return NULL;
    }
    b->turn = event_new (inputs->svc->base, -1, 0, on_turn, b);
    assert (b->turn);
    DL_APPEND (inputs->brings, b);
    bring_turn (b);
    return b;
}

static struct stage_bringing *sent_bring (void *self, const char *origin, const char *account,
                                          const uint8_t *sum, int64_t bytes,
                                          void (*done) (void *arg, const struct err *why),
                                          void *arg, struct err *err)
{
    struct inputs *inputs = self;
    struct bring *b = bring_find (inputs, account, sum);
    if (!b)
        b = bring_begin (inputs, origin, account, sum, bytes);
    if (!b) {
        err_set (err, ERR_INTERNAL, "where a file of the job is cannot be read");
        return NULL;
    }
    struct stage_bringing *wait = calloc (1, sizeof *wait);
    assert (wait);
    *wait = (struct stage_bringing){.bring = b, .done = done, .arg = arg};
    DL_APPEND (b->waits, wait);
    return wait;
}

static void sent_drop (struct stage_bringing *wait)
{
    struct bring *b = wait->bring;
    DL_DELETE (b->waits, wait);
    free (wait);
    if (!b->waits)
        bring_free (b); /* what has come stays for who asks next */
}

static int sent_open (void *self, const char *account, const uint8_t *sum, int *fd_out,
                      struct err *err)
{
    struct inputs *inputs = self;
    int64_t bytes;
    return contents_read (inputs->contents, account, sum, fd_out, &bytes, err);
}

const struct stage_sent *inputs_sent (const struct svc *svc)
{
    static const struct stage_sent none;
    return svc->inputs ? &svc->inputs->sent : &none;
}

/* --- the room ------------------------------------------------------------------------------------ */

static int inputs_open (struct svc *svc, struct err *err)
{
    char path[4200];
    struct contents_limits limits = limits_of (svc->settings);
    int mode = svc->settings->mode.mode;
    if (mode != MODE_NORMAL && mode != MODE_INTERACTIVE)
        return 0;
    struct inputs *inputs = calloc (1, sizeof *inputs);
    assert (inputs);
    snprintf (path, sizeof path, "%s/inputs", daemon_state_dir (svc->daemon));
    inputs->svc = svc;
    inputs->contents = contents_open (path, &limits, err);
    inputs->sent = (struct stage_sent){inputs, sent_open, sent_bring, sent_drop};
    if (!inputs->contents) {
        free (inputs);
        return err ? err->code : ERR_IO;
    }
    svc->inputs = inputs;
    return 0;
}

static void inputs_reloaded (struct svc *svc)
{
    struct contents_limits limits = limits_of (svc->settings);
    if (svc->inputs)
        contents_limits_set (svc->inputs->contents, &limits);
}

static void inputs_polled (struct svc *svc)
{
    if (svc->inputs)
        contents_sweep (svc->inputs->contents, svc_now (svc));
}

static void inputs_close (struct svc *svc)
{
    if (!svc->inputs)
        return;
    contents_close (svc->inputs->contents);
    free (svc->inputs);
    svc->inputs = NULL;
}

const struct svc_listener inputs_listener = {.open = inputs_open,
                                             .polled = inputs_polled,
                                             .reloaded = inputs_reloaded,
                                             .job_leaves = inputs_leave,
                                             .close = inputs_close};
