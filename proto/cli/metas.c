/* metas: tries the members of a group of metaschedulers one after another. Commands that ask the
 * grid call it, and block in it. A change is repeated at another member only with the same
 * request and key, so that a lost reply never makes a second job. */
#include "proto/cli/metas.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/base/clock.h"
#include "proto/nui/v1/health.pb-c.h"

struct meta {
    const char *target;
    struct rpcclient *client; /* NULL: not asked yet */
    bool answers;
};

struct metas {
    struct meta meta[METAS_MAX];
    uint32_t count, at; /* the one that is asked first */
    metas_connect_f connect;
    void *arg;
};

struct ask {
    const ProtobufCServiceDescriptor *service;
    const char *method;
    const ProtobufCMessage *request;
    duration_us timeout;
    ProtobufCMessage **reply;
    bool change;      /* not without effect */
    bool heard_maybe; /* by one that did not answer */
    /* Of a stream. */
    void (*on_message) (void *arg, const ProtobufCMessage *message);
    void *arg;
    duration_us heard; /* when the last message came */
};

struct metas *metas_create (metas_connect_f connect, void *arg)
{
    struct metas *metas = calloc (1, sizeof *metas);
    assert (metas);
    metas->connect = connect;
    metas->arg = arg;
    return metas;
}

void metas_clear (struct metas *metas)
{
    for (uint32_t i = 0; i < metas->count; i++)
        if (metas->meta[i].client)
            rpcclient_destroy (metas->meta[i].client);
    metas->count = metas->at = 0;
}

void metas_destroy (struct metas *metas)
{
    if (metas)
        metas_clear (metas);
    free (metas);
}

uint32_t metas_count (const struct metas *metas)
{
    return metas->count;
}

int metas_add (struct metas *metas, const char *target, struct err *err)
{
    uint64_t port;
    const char *colon = strrchr (target, ':');
    if (!colon || colon == target || strchr (target, ',') ||
        uint_parse (colon + 1, "port", 1, 65535, &port, NULL) != 0)
        return err_set (err, ERR_INVALID, "'%.80s': wanted host:port, several with blanks between",
                        target);
    for (uint32_t i = 0; i < metas->count; i++)
        if (strcmp (metas->meta[i].target, target) == 0)
            return err_set (err, ERR_INVALID, "%.80s is there twice", target);
    if (metas->count == METAS_MAX)
        return err_set (err, ERR_LIMIT, "more than %d metaschedulers", METAS_MAX);
    metas->meta[metas->count++] = (struct meta){.target = target};
    return 0;
}

/* Worth asking another. */
static bool no_answer (int code)
{
    return code == ERR_UNAVAILABLE || code == ERR_TIMEOUT;
}

static int probe (struct meta *meta, struct err *err)
{
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    int rc = rpcclient_call (meta->client, &grpc__health__v1__health__descriptor, "Check",
                             &request.base, METAS_PROBE_US, true, &reply, err);
    if (rc < 0)
        return rc;
    meta->answers = ((const Grpc__Health__V1__HealthCheckResponse *)reply)->status ==
                    GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;
    protobuf_c_message_free_unpacked (reply, NULL);
    return meta->answers ? 0 : err_set (err, ERR_UNAVAILABLE, "%s is about to stop", meta->target);
}

static void on_message (void *arg, const ProtobufCMessage *message)
{
    struct ask *ask = arg;
    ask->heard = clock_monotonic_us ();
    ask->on_message (ask->arg, message);
}

static int ask_one (struct metas *metas, struct meta *meta, struct ask *ask, struct err *err)
{
    if (!meta->client && !(meta->client = metas->connect (metas->arg, meta->target, err)))
        return err->code;
    int rc = metas->count > 1 && (!meta->answers || ask->change) ? probe (meta, err) : 0;
    bool asked = rc == 0;
    if (rc == 0 && ask->on_message)
        rc = rpcclient_stream (meta->client, ask->service, ask->method, ask->request, INT64_MAX,
                               on_message, ask, err);
    else if (rc == 0) /* of several, the next is asked rather than this one waited for */
        rc = rpcclient_call (meta->client, ask->service, ask->method, ask->request, ask->timeout,
                             metas->count == 1, ask->reply, err);
    if (no_answer (rc)) {
        meta->answers = false;
        ask->heard_maybe |= asked;
    }
    return rc;
}

/* Each once, from the one that answered last on. */
static int ask_round (struct metas *metas, struct ask *ask, struct err *err)
{
    struct err first = {0}, why = {0};
    bool unknown = false; /* to one that answers, while another may know */
    uint32_t start = metas->at;
    for (uint32_t i = 0; i < metas->count; i++) {
        uint32_t at = (start + i) % metas->count;
        int rc = ask_one (metas, &metas->meta[at], ask, &why);
        if (rc < 0 && !no_answer (rc) && !(rc == ERR_NOT_FOUND && first.code)) {
            *err = why;
            return rc;
        }
        if (rc == 0 || rc == ERR_NOT_FOUND)
            metas->at = at;
        if (rc == 0)
            return 0;
        unknown |= rc == ERR_NOT_FOUND;
        if (!first.code)
            first = why;
    }
    if (metas->count == 1)
        return err_set (err, first.code, "%s", first.text);
    if (unknown)
        return err_set (err, first.code, "%.300s; another metascheduler answers: %.300s",
                        first.text, why.text);
    return err_set (
        err, first.code, "none of %u metaschedulers answers: %.300s%s", metas->count, first.text,
        ask->change && ask->heard_maybe
            ? "; one may have heard the request: look (nui jobs) before it is made again"
            : "");
}

int metas_call (struct metas *metas, const ProtobufCServiceDescriptor *service, const char *method,
                const ProtobufCMessage *request, duration_us timeout, ProtobufCMessage **reply_out,
                struct err *err)
{
    struct ask ask = {.service = service,
                      .method = method,
                      .request = request,
                      .timeout = timeout,
                      .reply = reply_out};
    return ask_round (metas, &ask, err);
}

int metas_call_at (struct metas *metas, uint32_t at, const ProtobufCServiceDescriptor *service,
                   const char *method, const ProtobufCMessage *request, duration_us timeout,
                   ProtobufCMessage **reply_out, struct err *err)
{
    struct ask ask = {.service = service,
                      .method = method,
                      .request = request,
                      .timeout = timeout,
                      .reply = reply_out};
    return ask_one (metas, &metas->meta[at], &ask, err);
}

int metas_call_change (struct metas *metas, const ProtobufCServiceDescriptor *service,
                       const char *method, const ProtobufCMessage *request, duration_us timeout,
                       ProtobufCMessage **reply_out, struct err *err)
{
    struct ask ask = {.service = service,
                      .method = method,
                      .request = request,
                      .timeout = timeout,
                      .reply = reply_out,
                      .change = true};
    return ask_round (metas, &ask, err);
}

int metas_stream (struct metas *metas, const ProtobufCServiceDescriptor *service,
                  const char *method, const ProtobufCMessage *request,
                  void (*message) (void *arg, const ProtobufCMessage *message), void *arg,
                  struct err *err)
{
    struct ask ask = {.service = service,
                      .method = method,
                      .request = request,
                      .on_message = message,
                      .arg = arg,
                      .heard = clock_monotonic_us ()};
    for (;;) {
        int rc = ask_round (metas, &ask, err);
        if (!no_answer (rc) || metas->count == 1 ||
            clock_monotonic_us () - ask.heard > METAS_PATIENCE_US)
            return rc;
        nanosleep (&(struct timespec){.tv_sec = 1}, NULL); /* one takes over what another had */
    }
}
