/* What users send beside their jobs (nui:///SHA-256): taken from them by Put before the job, given by Content to the site that
 * has the job and to no other, kept in STATEDIR/inputs as long as a live job names it and INPUTKEEP longer. Whose it is, is
 * who sent it; nobody has anything by knowing a digest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "meta/job/job.h"
#include "meta/job/sites.h"
#include "meta/svc/handlers.h"
#include "proto/content/contents.h"
#include "proto/job/stagespec.h"

#define SWEEP_S 10

static struct contents_limits limits_of (const struct metad_config *config)
{
    return (struct contents_limits){config->input_mb << 20, config->input_share_mb << 20,
                                    config->input_keep};
}

/* --- from users --------------------------------------------------------------------------------- */

void on_put (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Common__V1__ContentRequest *r = (const Nui__Common__V1__ContentRequest *)message;
    struct metad *metad = self;
    Nui__Common__V1__ContentReply reply = NUI__COMMON__V1__CONTENT_REPLY__INIT;
    struct contents_state state;
    char uri[PRINCIPAL_URI_MAX];
    struct err err = {0};
    int rc = metad->takes_work ? metad->takes_work (metad->failed_arg, &err) : 0;
    if (rc == 0 && r->sha256.len != STAGE_SHA256_LEN)
        rc = err_set (&err, ERR_INVALID, "a SHA-256 has %d bytes", STAGE_SHA256_LEN);
    if (rc == 0)
        rc =
            contents_put (metad->contents, principal_uri (rpccall_peer (call), uri), r->sha256.data,
                          r->bytes, r->offset, r->data.data, r->data.len, &state, &err);
    if (rc != 0) {
        rpccall_fail (call, &err);
        return;
    }
    reply.bytes = state.bytes;
    reply.whole = state.whole;
    reply.checking = state.checking;
    rpccall_reply (call, &reply.base);
}

int inputs_here (struct metad *metad, const JobMessage *job, const char *submitter, struct err *err)
{
    uint8_t sum[STAGE_SHA256_LEN];
    int64_t bytes;
    int fd;
    for (size_t c = 0; c < job->n_components; c++)
        for (size_t i = 0; i < job->components[c]->n_stage_in; i++) {
            const Nui__Common__V1__Transfer *t = job->components[c]->stage_in[i];
            if (!stage_sent_parse (t->url, sum))
                continue;
            if (contents_read (metad->contents, submitter, sum, &fd, &bytes, NULL))
                return err_set (
                    err, ERR_NOT_FOUND,
                    "file '%.200s' that the job brings with it is not here: send the job again",
                    t->path);
            close (fd);
            if (bytes != t->bytes)
                return err_set (err, ERR_INVALID, "file '%.200s' has %lld bytes, the job says %lld",
                                t->path, (long long)bytes, (long long)t->bytes);
        }
    return 0;
}

/* --- to sites ----------------------------------------------------------------------------------- */

/* Whether the site was given that component, or is being asked to take it. */
static bool is_at (const struct gridjob *job, uint32_t part, const char *site)
{
    if (part == UINT32_MAX)
        return false;
    return strcmp (job->part[part].site, site) == 0 || strcmp (job->site, site) == 0 ||
           (job->move.stage != MOVE_NONE && strcmp (job->move.site, site) == 0);
}

static bool is_named (const ComponentMessage *c, const uint8_t *sum)
{
    uint8_t one[STAGE_SHA256_LEN];
    for (size_t i = 0; i < c->n_stage_in; i++)
        if (stage_sent_parse (c->stage_in[i]->url, one) && memcmp (one, sum, sizeof one) == 0)
            return true;
    return false;
}

/* The job of the request, if this site has what it asks about. */
static int request_check (struct metad *metad, struct rpccall *call,
                          const Nui__Meta__V1__ContentReadRequest *r, struct err *err)
{
    struct uuid uuid;
    uint64_t number;
    if (r->uuid.len != sizeof uuid.b || r->sha256.len != STAGE_SHA256_LEN || r->offset < 0)
        return err_set (err, ERR_INVALID, "no such uuid, SHA-256 or offset can be");
    memcpy (uuid.b, r->uuid.data, sizeof uuid.b);
    int rc = metastore_job_find_uuid (metad->store, r->submitter, &uuid, &number, err);
    struct gridjob *job = rc == 0 ? job_get (metad, number, err) : NULL;
    if (!job)
        return err->code;
    uint32_t part = job_part (job, r->component);
    if (!is_at (job, part, rpccall_peer (call)->name) ||
        !is_named (job->job->components[part], r->sha256.data))
        return err_set (err, ERR_DENIED, "site %.60s was given no such part of a job",
                        rpccall_peer (call)->name);
    return 0;
}

void on_content (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__ContentReadRequest *r = (const Nui__Meta__V1__ContentReadRequest *)message;
    struct metad *metad = self;
    Nui__Meta__V1__ContentReadReply reply = NUI__META__V1__CONTENT_READ_REPLY__INIT;
    struct err err = {0};
    int fd = -1;
    uint8_t *piece = NULL;
    int rc = request_check (metad, call, r, &err);
    if (rc == 0)
        rc = contents_read (metad->contents, r->submitter, r->sha256.data, &fd, &reply.bytes, &err);
    if (rc == 0) {
        piece = malloc (CONTENTS_PIECE_MAX);
        ssize_t n = piece ? pread (fd, piece, CONTENTS_PIECE_MAX, r->offset) : -1;
        rc = n < 0 ? err_set (&err, ERR_IO, "a file that travels with a job: %s", strerror (errno))
                   : 0;
        reply.data = (ProtobufCBinaryData){n > 0 ? (size_t)n : 0, piece};
        close (fd);
    }
    if (rc != 0)
        rpccall_fail (call, &err);
    else
        rpccall_reply (call, &reply.base);
    free (piece);
}

/* --- as long as jobs need it --------------------------------------------------------------------- */

static void each_input (struct gridjob *job,
                        void (*fn) (struct contents *contents, const char *owner,
                                    const uint8_t sum[STAGE_SHA256_LEN]))
{
    uint8_t sum[STAGE_SHA256_LEN];
    for (size_t c = 0; c < job->job->n_components; c++)
        for (size_t i = 0; i < job->job->components[c]->n_stage_in; i++)
            if (stage_sent_parse (job->job->components[c]->stage_in[i]->url, sum))
                fn (job->metad->contents, job->submitter, sum);
}

static void inputs_listed (struct gridjob *job)
{
    each_input (job, contents_hold);
}

static void inputs_unlisted (struct gridjob *job)
{
    each_input (job, contents_drop);
}

static void on_sweep (evutil_socket_t fd, short what, void *arg)
{
    struct metad *metad = arg;
    (void)fd;
    (void)what;
    contents_sweep (metad->contents, clock_now_us ());
}

int inputs_open (struct metad *metad, const char *state_dir, struct err *err)
{
    char path[4200];
    struct contents_limits limits = limits_of (metad->config);
    snprintf (path, sizeof path, "%s/inputs", state_dir);
    metad->contents = contents_open (path, &limits, err);
    metad->sweep_timer = event_new (metad->base, -1, EV_PERSIST, on_sweep, metad);
    if (!metad->contents || !metad->sweep_timer)
        return err_set (err, ERR_IO, "%s", metad->contents ? "no memory" : err->text);
    event_add (metad->sweep_timer, &(struct timeval){.tv_sec = SWEEP_S});
    return 0;
}

void inputs_reconfigure (struct metad *metad)
{
    struct contents_limits limits = limits_of (metad->config);
    contents_limits_set (metad->contents, &limits);
}

static void inputs_close (struct metad *metad)
{
    if (metad->sweep_timer)
        event_free (metad->sweep_timer);
    contents_close (metad->contents);
    metad->sweep_timer = NULL;
    metad->contents = NULL;
}

const struct metad_part inputs_part = {
    .close = inputs_close, .job_listed = inputs_listed, .job_unlisted = inputs_unlisted};
