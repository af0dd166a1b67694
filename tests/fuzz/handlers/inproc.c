/* The transport, the skeleton, libcurl's loop and the runner, as handlers see them: see inproc.h. Used by the fuzz targets
 * and the test of how long a call may hold the loop. */
#include "tests/fuzz/handlers/inproc.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utlist.h>

#include "local/rm/embedded/rm_embedded.h"
#include "proto/base/clock.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"
#include "proto/curl/curl_loop.h"
#include "proto/rpc/pbguard.h"
#include "proto/rpc/rpcclient.h"
#include "proto/rpc/rpcrequest.h"

enum { METHODS_MAX = 128, QUEUED_MAX = 256 * 1024, TURNS = 4, WAIT_MS = 60000 };

struct rpccall {
    const struct inproc_method *method;
    struct principal peer;
    bool local;
    uint32_t uid;
    ProtobufCMessage *request;
    void (*cancel_fn) (void *arg);
    void *cancel_arg;
    void (*ready_fn) (void *arg);
    void *ready_arg;
    bool cancelled, stopped;
    size_t queued;
    struct inproc_result *result; /* NULL once its caller is gone */
    ProtobufCMessage **reply_out;
    struct rpccall *prev, *next;
};

struct rpcclient {
    char target[128];
    struct principal server;
    struct rpccallout *calls;
};

struct rpccallout {
    struct rpcclient *client;
    void (*done) (void *arg, const struct rpc_result *result);
    void *arg;
    ProtobufCMessage *reply;
    struct event *event;
    struct rpccallout *prev, *next;
};

static struct {
    struct inproc_config config;
    struct event_base *base;
    struct conf *conf;
    char *changes;
    struct inproc_method method[METHODS_MAX];
    uint32_t method_count;
    const struct sendgate *gate;
    struct rpccall *calls;
    bool stopped;
} in;

uint64_t (*inproc_meter) (void);

static void *must (void *p)
{
    if (!p)
        abort ();
    return p;
}

static void give_up (const struct rpccall *call, const char *what, const char *text)
{
    fprintf (stderr, "inproc: %s.%s: %s: %s\n", call->method->service->short_name,
             call->method->info->name, what, text);
    abort ();
}

/* ---- the world's side */

void inproc_open (const struct inproc_config *config)
{
    in.config = *config;
    struct event_config *loop = must (event_config_new ());
    event_config_set_max_dispatch_interval (loop, NULL, 1, 0); /* the daemons' look each 2 ms */
    in.base = must (event_base_new_with_config (loop));
    event_config_free (loop);
    if (event_base_priority_init (in.base, 2) != 0)
        abort ();
    in.method_count = 0;
    in.gate = NULL;
    in.stopped = false;
}

void inproc_close (void)
{
    if (in.calls)
        give_up (in.calls, "was never finished", "");
    event_base_free (in.base);
    free (in.changes);
    in.changes = NULL;
    in.base = NULL;
    in.conf = NULL;
}

struct event_base *inproc_base (void)
{
    return in.base;
}

void inproc_conf_set (struct conf *conf)
{
    in.conf = conf;
}

bool inproc_stopped (void)
{
    return in.stopped;
}

uint32_t inproc_method_count (void)
{
    return in.method_count;
}

const struct inproc_method *inproc_method (uint32_t index)
{
    return &in.method[index];
}

const struct inproc_method *inproc_method_find (const char *name)
{
    const char *dot = must (strchr (name, '.'));
    for (uint32_t i = 0; i < in.method_count; i++)
        if (strcmp (in.method[i].info->name, dot + 1) == 0 &&
            strncmp (in.method[i].service->short_name, name, (size_t)(dot - name)) == 0 &&
            !in.method[i].service->short_name[dot - name])
            return &in.method[i];
    fprintf (stderr, "inproc: no method %s\n", name);
    abort ();
}

void inproc_patience (uint32_t ms)
{
    in.config.patience_ms = ms;
}

/* ---- one loop's work, in pieces */

static uint64_t piece_begin (void)
{
    return inproc_meter ? inproc_meter () : 0;
}

static void piece_end (uint64_t begun, struct inproc_result *result)
{
    uint64_t work = inproc_meter ? inproc_meter () - begun : 0;
    if (work > result->work)
        result->work = work;
}

/* Libevent's, before each event: the loop looks for what else has come. */
static struct {
    uint64_t begun;
    struct inproc_result *result; /* NULL: nobody asks */
} piece;

int epoll_wait (int fd, struct epoll_event *events, int most, int ms)
{
    if (piece.result)
        piece_end (piece.begun, piece.result);
    int n = (int)syscall (SYS_epoll_pwait, fd, events, most, ms, NULL, 0);
    piece.begun = piece_begin ();
    return n;
}

static void gate_open (void)
{
    struct err err = {0};
    if (in.gate && in.gate->shut (in.gate->self) && in.gate->open (in.gate->self, &err) != 0) {
        fprintf (stderr, "inproc: nothing can be made durable: %s\n", err.text);
        abort ();
    }
}

static void ready_calls (void)
{
    struct rpccall *call, *next;
    DL_FOREACH_SAFE (in.calls, call, next)
        if (call->stopped && call->ready_fn) {
            call->stopped = false;
            call->queued = 0;
            call->ready_fn (call->ready_arg);
            break; /* it may have changed the list */
        }
}

static void turn (int flags, struct inproc_result *result)
{
    piece.result = result;
    piece.begun = piece_begin ();
    event_base_loop (in.base, flags);
    ready_calls ();
    gate_open ();
    piece_end (piece.begun, result);
    piece.result = NULL;
}

static void on_tick (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

/* Waits for what the loop does of its own accord. */
static bool wait_for (bool (*so) (void *arg), void *arg, uint32_t ms, struct inproc_result *result)
{
    struct event *tick = must (event_new (in.base, -1, EV_PERSIST, on_tick, NULL));
    duration_us until = clock_monotonic_us () + (duration_us)ms * 1000;
    event_add (tick, &(struct timeval){0, 20000});
    bool yes = so (arg);
    while (!yes && clock_monotonic_us () < until) {
        turn (EVLOOP_ONCE, result);
        yes = so (arg);
    }
    event_free (tick);
    return yes;
}

bool inproc_until (bool (*so) (void *arg), void *arg)
{
    struct inproc_result unused = {0};
    return wait_for (so, arg, WAIT_MS, &unused);
}

static bool is_answered (void *arg)
{
    return ((struct inproc_result *)arg)->answered;
}

/* ---- a call */

static struct rpccall *call_new (const struct inproc_method *method,
                                 const struct inproc_caller *caller, struct inproc_result *result,
                                 ProtobufCMessage **reply_out)
{
    struct rpccall *call = must (calloc (1, sizeof *call));
    call->method = method;
    call->peer.kind = caller->kind;
    text_printf (call->peer.grid, sizeof call->peer.grid, "test");
    text_printf (call->peer.name, sizeof call->peer.name, "%s", caller->name);
    call->local = caller->local;
    call->uid = caller->uid;
    call->result = result;
    call->reply_out = reply_out;
    DL_APPEND (in.calls, call);
    return call;
}

void inproc_call (const struct inproc_method *method, const struct inproc_caller *caller,
                  uint8_t *bytes, size_t len, ProtobufCMessage **reply_out,
                  struct inproc_result *out)
{
    struct rpccall *call, *open;
    const char *mended;
    struct err err = {0};
    memset (out, 0, sizeof *out);
    if (reply_out)
        *reply_out = NULL;
    call = call_new (method, caller, out, reply_out);
    uint64_t begun = piece_begin ();
    if (!(method->info->allow & RPC_ALLOW (caller->kind))) {
        rpccall_finish (call, RPC_PERMISSION_DENIED,
                        "this method is not open to callers of this kind");
    } else if (len > rpcrequest_bytes_max (method->info)) {
        rpccall_finish (call, RPC_RESOURCE_EXHAUSTED, "message too large");
    } else if (!(call->request = rpcrequest_unpack (method->info, method->descriptor->input,
                                                    caller->kind, bytes, len, &mended, &err))) {
        rpccall_fail (call, &err);
    } else {
        method->info->handler (method->self, call, call->request);
        gate_open ();
    }
    piece_end (begun, out);
    for (int i = 0; i < TURNS && (!out->answered || i == 0); i++)
        turn (EVLOOP_ONCE | EVLOOP_NONBLOCK, out);
    if (!out->answered && in.config.patience_ms)
        wait_for (is_answered, out, in.config.patience_ms, out);
    DL_FOREACH (in.calls, open)
        if (open == call) { /* its client goes away */
            call->result = NULL;
            call->reply_out = NULL;
            call->cancelled = true;
            if (call->cancel_fn)
                call->cancel_fn (call->cancel_arg);
            break;
        }
}

ProtobufCMessage *inproc_must (const char *method, const struct inproc_caller *caller,
                               const ProtobufCMessage *request)
{
    struct inproc_result result;
    ProtobufCMessage *reply;
    size_t len = protobuf_c_message_get_packed_size (request);
    uint8_t *bytes = must (malloc (len + 1));
    protobuf_c_message_pack (request, bytes);
    inproc_call (inproc_method_find (method), caller, bytes, len, &reply, &result);
    free (bytes);
    if (!result.answered || result.status != RPC_OK) {
        fprintf (stderr, "inproc: %s: status %d: %s\n", method,
                 result.answered ? (int)result.status : -1, result.text);
        abort ();
    }
    return reply;
}

/* ---- what handlers call */

static void call_end (struct rpccall *call, enum rpc_status status, const char *message)
{
    struct inproc_result *result = call->result;
    if (status == RPC_INTERNAL || (unsigned)status > RPC_UNAUTHENTICATED)
        give_up (call, "an internal error", message ? message : "");
    if (message && (status != RPC_OK) && !text_ok ((const uint8_t *)message, strlen (message)))
        give_up (call, "what is said is no text", message);
    if (result) {
        result->answered = true;
        result->status = status;
        text_printf (result->text, sizeof result->text, "%s", message ? message : "");
    }
    DL_DELETE (in.calls, call);
    if (call->request)
        protobuf_c_message_free_unpacked (call->request, NULL);
    free (call);
}

/* As the transport sends it. */
static size_t message_check (struct rpccall *call, const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size (message);
    uint8_t *bytes = must (malloc (len + 1));
    const char *mended;
    struct err err = {0};
    assert (message->descriptor == call->method->descriptor->output);
    protobuf_c_message_pack (message, bytes);
    if (pbguard_mend (message->descriptor, bytes, len, &mended, &err) < 0)
        give_up (call, "the answer is no good", err.text);
    if (call->reply_out && !*call->reply_out)
        *call->reply_out = must (protobuf_c_message_unpack (message->descriptor, NULL, len, bytes));
    free (bytes);
    if (call->result)
        call->result->reply_bytes += len;
    return len;
}

const struct principal *rpccall_peer (const struct rpccall *call)
{
    return &call->peer;
}

ProtobufCMessage *rpccall_take (struct rpccall *call)
{
    ProtobufCMessage *request = must (call->request);
    call->request = NULL;
    return request;
}

bool rpccall_is_local (const struct rpccall *call, uint32_t *uid_out)
{
    if (call->local && uid_out)
        *uid_out = call->uid;
    return call->local;
}

void rpccall_on_cancel (struct rpccall *call, void (*fn) (void *arg), void *arg)
{
    call->cancel_fn = fn;
    call->cancel_arg = arg;
}

void rpccall_on_ready (struct rpccall *call, void (*fn) (void *arg), void *arg)
{
    call->ready_fn = fn;
    call->ready_arg = arg;
}

bool rpccall_send (struct rpccall *call, const ProtobufCMessage *message)
{
    assert (call->method->info->server_streaming);
    if (call->cancelled)
        return false;
    call->queued += message_check (call, message);
    call->stopped = call->queued > QUEUED_MAX;
    return !call->stopped;
}

void rpccall_reply (struct rpccall *call, const ProtobufCMessage *message)
{
    if (!call->cancelled)
        message_check (call, message);
    call_end (call, RPC_OK, NULL);
}

void rpccall_finish (struct rpccall *call, enum rpc_status status, const char *message)
{
    call_end (call, status, message);
}

void rpccall_fail (struct rpccall *call, const struct err *err)
{
    call_end (call, rpc_status_of_err (err->code), err->text);
}

int rpcserver_add_service (struct rpcserver *server, const ProtobufCServiceDescriptor *descriptor,
                           const struct rpc_method *methods, void *self, struct err *err)
{
    (void)server, (void)err;
    for (const struct rpc_method *m = methods; m->name; m++) {
        assert (in.method_count < METHODS_MAX);
        const ProtobufCMethodDescriptor *d =
            protobuf_c_service_descriptor_get_method_by_name (descriptor, m->name);
        in.method[in.method_count++] =
            (struct inproc_method){descriptor, must ((void *)(uintptr_t)d), m, self};
    }
    return 0;
}

void rpcserver_set_gate (struct rpcserver *server, const struct sendgate *gate)
{
    (void)server;
    in.gate = gate;
}

void rpcserver_set_serving (struct rpcserver *server, bool serving)
{
    (void)server, (void)serving;
}

uint16_t rpcserver_port (const struct rpcserver *server)
{
    (void)server;
    return 1;
}

/* ---- clients: answered by the world, at a later turn */

struct rpcclient *rpcclient_create (const struct rpcclient_config *config, struct err *err)
{
    struct rpcclient *client = must (calloc (1, sizeof *client));
    (void)err;
    text_printf (client->target, sizeof client->target, "%s", config->target);
    client->server.kind = config->expect_kind;
    text_printf (client->server.grid, sizeof client->server.grid, "test");
    text_printf (client->server.name, sizeof client->server.name, "%.*s",
                 (int)strcspn (config->target, ":"), config->target);
    return client;
}

static void callout_end (struct rpccallout *out, enum rpc_status status, const char *message)
{
    struct rpc_result result = {
        .status = status, .message = message, .reply = out->reply, .answered = out->reply != NULL};
    DL_DELETE (out->client->calls, out);
    event_free (out->event);
    out->done (out->arg, &result);
    if (out->reply)
        protobuf_c_message_free_unpacked (out->reply, NULL);
    free (out);
}

static void on_callout (evutil_socket_t fd, short what, void *arg)
{
    struct rpccallout *out = arg;
    (void)fd, (void)what;
    callout_end (out, out->reply ? RPC_OK : RPC_UNAVAILABLE,
                 out->reply ? "" : "connection refused");
}

void rpcclient_destroy (struct rpcclient *client)
{
    while (client && client->calls) {
        struct rpccallout *out = client->calls;
        if (out->reply)
            protobuf_c_message_free_unpacked (out->reply, NULL);
        out->reply = NULL;
        callout_end (out, RPC_CANCELLED, "the client is gone");
    }
    free (client);
}

bool rpcclient_connected (const struct rpcclient *client)
{
    (void)client;
    return true;
}

const struct principal *rpcclient_server (const struct rpcclient *client)
{
    return &client->server;
}

struct rpccallout *rpcclient_start (struct rpcclient *client,
                                    const struct rpccallout_config *config)
{
    struct rpccallout *out = must (calloc (1, sizeof *out));
    out->client = client;
    out->done = config->done;
    out->arg = config->arg;
    out->reply = in.config.answer && !config->on_message
                     ? in.config.answer (client->target, config->method, config->request)
                     : NULL;
    out->event = must (evtimer_new (in.base, on_callout, out));
    event_active (out->event, EV_TIMEOUT, 1);
    DL_APPEND (client->calls, out);
    return out;
}

void rpccallout_cancel (struct rpccallout *out)
{
    callout_end (out, RPC_CANCELLED, "cancelled");
}

int rpcclient_call (struct rpcclient *client, const ProtobufCServiceDescriptor *service,
                    const char *method, const ProtobufCMessage *request, duration_us timeout,
                    bool idempotent, ProtobufCMessage **reply_out, struct err *err)
{
    (void)client, (void)service, (void)method, (void)request, (void)timeout, (void)idempotent,
        (void)reply_out;
    return err_set (err, ERR_UNAVAILABLE, "a handler must not block");
}

/* ---- the skeleton */

struct daemon {
    int unused;
};
static struct daemon the_daemon;

struct daemon *inproc_daemon (void)
{
    return &the_daemon;
}

int daemon_takes_work (struct daemon *daemon, struct err *err)
{
    (void)daemon, (void)err;
    return 0;
}

struct event_base *daemon_base (struct daemon *daemon)
{
    (void)daemon;
    return in.base;
}

struct log *daemon_log (struct daemon *daemon)
{
    (void)daemon;
    return NULL;
}

struct tlsid *daemon_tlsid (struct daemon *daemon)
{
    (void)daemon;
    return in.config.id;
}

struct rpcserver *daemon_server (struct daemon *daemon)
{
    return (struct rpcserver *)(void *)daemon;
}

const char *daemon_grid (const struct daemon *daemon)
{
    (void)daemon;
    return "test";
}

const char *daemon_name (const struct daemon *daemon)
{
    (void)daemon;
    return tlsid_self (in.config.id)->name;
}

const char *daemon_state_dir (const struct daemon *daemon)
{
    (void)daemon;
    return in.config.dir;
}

const struct conf *daemon_conf (const struct daemon *daemon)
{
    (void)daemon;
    return in.conf;
}

int daemon_change (struct daemon *daemon, const char *lines, struct err *err)
{
    struct strbuf all = STRBUF_INIT;
    (void)daemon;
    strbuf_printf (&all, "%s%s\n", in.changes ? in.changes : "", lines);
    struct conf *conf =
        conf_parse (in.config.conf_text, strlen (in.config.conf_text), "the test", err);
    int rc = !conf ? err->code : conf_append (conf, strbuf_text (&all), err);
    if (rc == 0)
        rc = in.config.reload ? in.config.reload (conf, err)
                              : err_set (err, ERR_UNSUPPORTED, "it cannot change");
    if (rc != 0) {
        conf_destroy (conf);
        strbuf_free (&all);
        return rc;
    }
    free (in.changes);
    in.changes = strbuf_steal (&all);
    return 0;
}

void daemon_stop (struct daemon *daemon, const struct err *why)
{
    (void)daemon;
    if (why) {
        fprintf (stderr, "inproc: the daemon stops: %s\n", why->text);
        abort ();
    }
    in.stopped = true;
}

void daemon_recycle (struct daemon *daemon)
{
    daemon_stop (daemon, NULL);
}

/* ---- libcurl's loop: there is no network */

struct curl_loop {
    int unused;
};

struct curl_loop *curl_loop_create (struct event_base *base, long connections_max, curl_loop_fn fn,
                                    void *arg, struct err *err)
{
    (void)base, (void)connections_max, (void)fn, (void)arg, (void)err;
    return must (calloc (1, sizeof (struct curl_loop)));
}

void curl_loop_destroy (struct curl_loop *loop)
{
    free (loop);
}

int curl_loop_add (struct curl_loop *loop, CURL *easy, struct err *err)
{
    (void)loop, (void)easy;
    return err_set (err, ERR_UNAVAILABLE, "there is no network");
}

void curl_loop_remove (struct curl_loop *loop, CURL *easy)
{
    (void)loop, (void)easy;
}

/* ---- the runner: a job starts at once and ends when it is cancelled */

enum { RUNS_MAX = 4096 };

struct run {
    struct runner *runner;
    char job_id[96];
    uint32_t incarnation;
    bool ending;
    struct rm_status status;
    struct event *event;
};

struct runner {
    struct rm_ops ops;
    rm_event_fn on_event;
    void *arg;
    struct run *run[RUNS_MAX];
    uint32_t count;
};

static struct run *run_find (struct runner *r, const char *job_id, uint32_t incarnation)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->run[i]->incarnation == incarnation && strcmp (r->run[i]->job_id, job_id) == 0)
            return r->run[i];
    return NULL;
}

static void on_run (evutil_socket_t fd, short what, void *arg)
{
    struct run *run = arg;
    (void)fd, (void)what;
    struct rm_status status = run->status;
    struct rm_event event = {.kind = run->ending ? RM_EVENT_ENDED : RM_EVENT_STARTED,
                             .job_id = run->job_id,
                             .incarnation = run->incarnation,
                             .status = &status};
    run->runner->on_event (run->runner->arg, &event);
}

static int run_add (struct runner *r, const char *job_id, uint32_t incarnation, struct err *err)
{
    if (r->count == RUNS_MAX)
        return err_set (err, ERR_LIMIT, "too many jobs");
    struct run *run = must (calloc (1, sizeof *run));
    run->runner = r;
    text_printf (run->job_id, sizeof run->job_id, "%s", job_id);
    run->incarnation = incarnation;
    run->status = (struct rm_status){.started = true, .start = clock_now_us ()};
    run->event = must (evtimer_new (in.base, on_run, run));
    event_active (run->event, EV_TIMEOUT, 1);
    r->run[r->count++] = run;
    return 0;
}

static int run_start (void *self, const struct rm_job *job, struct err *err)
{
    if (run_find (self, job->job_id, job->incarnation))
        return err_set (err, ERR_EXISTS, "%s was started before", job->job_id);
    return run_add (self, job->job_id, job->incarnation, err);
}

bool inproc_adopts;

static int run_known (void *self, const char *job_id, uint32_t incarnation, struct err *err)
{
    return run_find (self, job_id, incarnation)
               ? 0
               : err_set (err, ERR_NOT_FOUND, "%s was never started", job_id);
}

static int run_adopt (void *self, const char *job_id, uint32_t incarnation, const char *mark,
                      struct err *err)
{
    (void)mark;
    if (inproc_adopts && !run_find (self, job_id, incarnation))
        return run_add (self, job_id, incarnation, err);
    return run_known (self, job_id, incarnation, err);
}

static int run_signal (void *self, const char *job_id, uint32_t incarnation, int signo,
                       struct err *err)
{
    (void)signo;
    return run_known (self, job_id, incarnation, err);
}

static int run_suspend (void *self, const char *job_id, uint32_t incarnation, bool on,
                        struct err *err)
{
    (void)on;
    return run_known (self, job_id, incarnation, err);
}

static int run_used (void *self, const char *job_id, uint32_t incarnation, struct rm_used *out,
                     struct err *err)
{
    *out = (struct rm_used){.memory_mb = -1};
    return run_known (self, job_id, incarnation, err);
}

static int run_limits (void *self, const char *job_id, uint32_t incarnation, struct rm_limits *out,
                       struct err *err)
{
    *out = (struct rm_limits){0};
    return run_known (self, job_id, incarnation, err);
}

/* Nothing is removed: it is tried again with what is taken next. */
static int run_forget (void *self, const struct rm_gone *jobs, uint32_t count,
                       void (*done) (void *arg, bool ok), void *arg, struct err *err)
{
    (void)self, (void)jobs, (void)count, (void)done, (void)arg;
    return err_set (err, ERR_UNAVAILABLE, "nothing is removed here");
}

static int run_cancel (void *self, const char *job_id, uint32_t incarnation, struct err *err)
{
    struct run *run = run_find (self, job_id, incarnation);
    if (!run)
        return err_set (err, ERR_NOT_FOUND, "%s was never started", job_id);
    if (run->ending)
        return 0;
    run->ending = run->status.ended = true;
    run->status.end = RM_END_CANCELLED;
    run->status.exit_code = 143;
    run->status.end_at = clock_now_us ();
    event_active (run->event, EV_TIMEOUT, 1);
    return 0;
}

static int run_output (void *self, const char *job_id, uint32_t incarnation, const char *mark,
                       const char *stream, struct err *err)
{
    (void)self, (void)incarnation, (void)mark, (void)stream;
    err_set (err, ERR_NOT_FOUND, "%s has no output", job_id);
    return -1;
}

static int run_poll (void *self, struct err *err)
{
    (void)self, (void)err;
    return 0;
}

static bool run_node_up (void *self, const char *name)
{
    (void)self, (void)name;
    return true;
}

static void run_destroy (void *self)
{
    struct runner *r = self;
    for (uint32_t i = 0; i < r->count; i++) {
        event_free (r->run[i]->event);
        free (r->run[i]);
    }
    free (r);
}

int rm_embedded_create (const struct rm_embedded_config *config, struct rm *out, struct err *err)
{
    static const struct rm_ops ops = {.type = "EMBEDDED",
                                      .here = true,
                                      .start = run_start,
                                      .adopt = run_adopt,
                                      .signal = run_signal,
                                      .cancel = run_cancel,
                                      .output_open = run_output,
                                      .poll = run_poll,
                                      .node_up = run_node_up,
                                      .destroy = run_destroy};
    struct runner *r = must (calloc (1, sizeof *r));
    (void)err;
    r->on_event = config->on_event;
    r->arg = config->arg;
    r->ops = ops;
    if (inproc_adopts) {
        r->ops.suspend = run_suspend;
        r->ops.used = run_used;
        r->ops.limits = run_limits;
        r->ops.forget = run_forget;
    }
    *out = (struct rm){&r->ops, r};
    return 0;
}

const char *rm_embedded_cgroup (const struct rm *rm)
{
    (void)rm;
    return "";
}
