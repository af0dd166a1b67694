/* anchors: a timer that asks the bank for the block kept last and for its newest, and compares.
 * links.c of the service creates it. It never takes away or changes what was kept: where the
 * bank shows another history the file is the evidence. */
#include "local/link/anchors.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"

static const duration_us first_after = 5 * US_PER_S, call_longest = 30 * US_PER_S;

struct anchors {
    struct anchors_config config;
    char *path;
    struct anchor kept; /* number 0: none yet */
    struct event *timer;
    struct rpccallout *call;
    bool told, rewritten; /* rewritten is what was told */
};

static void timer_set (struct anchors *a, duration_us d)
{
    struct timeval t = {.tv_sec = d / US_PER_S, .tv_usec = d % US_PER_S};
    evtimer_add (a->timer, &t);
}

/* Somewhere in the second half of the interval, so that sites do not ask in step. */
static void next_time (struct anchors *a)
{
    uint32_t r;
    random_bytes (&r, sizeof r);
    timer_set (a, a->config.every / 2 +
                      (duration_us)((double)(a->config.every / 2) * (r / 4294967296.0)));
}

static void rewritten_is (struct anchors *a, bool rewritten, const char *why)
{
    if (rewritten)
        log_event (a->config.log, LOG_LEVEL_ERROR, "bank", "history_rewritten",
                   "block=%lld file=%s reason=\"%s\"", (long long)a->kept.number, a->path, why);
    if (a->told && a->rewritten == rewritten)
        return;
    a->told = true;
    a->rewritten = rewritten;
    a->config.on_change (a->config.arg, rewritten, why);
}

static void ask (struct anchors *a, int64_t number,
                 void (*then) (void *arg, const struct rpc_result *result))
{
    Nui__Bank__V1__BlocksRequest request = NUI__BANK__V1__BLOCKS_REQUEST__INIT;
    request.from_number = number;
    request.limit = 1;
    struct rpccallout_config call = {
        .service = &nui__bank__v1__bank__descriptor,
        .method = "Blocks",
        .request = &request.base,
        .timeout = call_longest,
        .idempotent = true,
        .done = then,
        .arg = a,
    };
    a->call = rpcclient_start (a->config.client, &call);
}

/* Its only block; NULL when there is none, or no answer: *heard says which. */
static const Nui__Bank__V1__Block *answered (struct anchors *a, const struct rpc_result *result,
                                             bool *heard)
{
    a->call = NULL;
    *heard = result->status == RPC_OK;
    if (result->status == RPC_CANCELLED) /* the client is being closed */
        return NULL;
    if (!*heard) {
        log_event (a->config.log, LOG_LEVEL_WARN, "bank", "no_anchor", "status=%d message=\"%s\"",
                   (int)result->status, result->message);
        next_time (a);
        return NULL;
    }
    const Nui__Bank__V1__BlocksReply *reply = (const Nui__Bank__V1__BlocksReply *)result->reply;
    return reply->n_blocks == 1 ? reply->blocks[0] : NULL;
}

static void on_newest (void *arg, const struct rpc_result *result)
{
    struct anchors *a = arg;
    struct block block;
    struct err err = {0};
    char why[160];
    bool heard;
    const Nui__Bank__V1__Block *message = answered (a, result, &heard);
    if (!heard)
        return;
    next_time (a);
    if (!message && a->kept.number == 0)
        return; /* nothing is recorded yet */
    if (!message || anchor_open (a->config.id, message, &block, &err) != 0) {
        rewritten_is (a, true, message ? err.text : "the bank shows no block any more");
        return;
    }
    if (block.number < a->kept.number) {
        snprintf (why, sizeof why, "its newest block is %lld, and block %lld was kept",
                  (long long)block.number, (long long)a->kept.number);
        rewritten_is (a, true, why);
        return;
    }
    rewritten_is (a, false, "");
    if (block.number == a->kept.number)
        return;
    if (anchor_append (a->path, message, &block, &err) != 0) {
        log_event (a->config.log, LOG_LEVEL_ERROR, "bank", "anchor_not_kept", "error=\"%s\"",
                   err.text);
        return;
    }
    a->kept = anchor_of (&block);
    log_event (a->config.log, LOG_LEVEL_INFO, "bank", "anchor_kept", "block=%lld link=%s",
               (long long)a->kept.number, a->kept.link);
}

static void on_kept (void *arg, const struct rpc_result *result)
{
    struct anchors *a = arg;
    struct block block;
    struct err err = {0};
    bool heard;
    const Nui__Bank__V1__Block *message = answered (a, result, &heard);
    if (!heard)
        return;
    bool same = message && anchor_open (a->config.id, message, &block, &err) == 0 &&
                block.number == a->kept.number &&
                strcmp (anchor_of (&block).link, a->kept.link) == 0;
    if (same) {
        ask (a, 0, on_newest);
        return;
    }
    rewritten_is (a, true,
                  err.code  ? err.text
                  : message ? "the bank shows another block of that number"
                            : "the bank does not have that block any more");
    next_time (a);
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct anchors *a = arg;
    (void)fd;
    (void)what;
    if (a->kept.number)
        ask (a, a->kept.number, on_kept);
    else
        ask (a, 0, on_newest);
}

static void kept_take (void *arg, const struct anchor *anchor)
{
    struct anchors *a = arg;
    a->kept = *anchor;
}

struct anchors *anchors_create (const struct anchors_config *config, struct err *err)
{
    struct anchors *a = calloc (1, sizeof *a);
    struct err why = {0};
    if (!a || !(a->path = strdup (config->path)) ||
        !(a->timer = evtimer_new (config->base, on_timer, a))) {
        err_set (err, ERR_NOMEM, "anchors: no memory");
        anchors_destroy (a);
        return NULL;
    }
    a->config = *config;
    a->config.path = NULL; /* the caller's string; not kept */
    int rc = anchor_each (a->path, kept_take, a, &why);
    if (rc != 0 && rc != ERR_NOT_FOUND) {
        err_set (err, why.code, "%s", why.text);
        anchors_destroy (a);
        return NULL;
    }
    timer_set (a, first_after < config->every ? first_after : config->every);
    return a;
}

void anchors_every (struct anchors *a, duration_us every)
{
    if (!a || a->config.every == every)
        return;
    a->config.every = every;
    if (!a->call)
        next_time (a);
}

void anchors_destroy (struct anchors *a)
{
    if (!a)
        return;
    if (a->timer)
        event_free (a->timer);
    free (a->path);
    free (a);
}
