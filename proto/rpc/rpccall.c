/* One incoming call: from the headers of its stream to its trailers. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "proto/base/clock.h"
#include "proto/base/text.h"
#include "proto/rpc/gatedeleg.h"
#include "proto/rpc/pbguard.h"
#include "proto/rpc/rpcrequest.h"
#include "proto/rpc/rpcserver_i.h"

enum {
    STALLED_S = 10, /* an answer of which nothing was read for so long is cut when room is wanted */
};

enum todo { TODO_DISPATCH = 1, TODO_CANCEL = 2, TODO_READY = 4 };

/* A message on its way out, with its length prefix. */
struct outmsg {
    struct outmsg *next;
    size_t len, off;
    uint8_t bytes[];
};

struct rpccall {
    unsigned refs;            /* stream, handler, todo list: one each */
    struct srvconn *conn;     /* NULL once the stream is closed */
    struct rpcserver *server; /* for the count of buffered bytes; NULL with conn */
    struct rpcmethod *method;
    const struct rpcserver_page *page; /* what GET reads; then it is no gRPC call */
    enum metrics_form form;            /* in which */
    int32_t stream_id;
    struct principal peer;
    bool local;
    uint32_t uid;

    size_t header_bytes;
    char *delegation; /* as a gate brought it; NULL: none */
    size_t delegation_len;
    enum rpc_status refuse; /* decided while headers come in */
    const char *refuse_text;
    bool http_415, is_post, is_get, headers_done;
    duration_us begun; /* monotonic */

    duration_us deadline;
    struct event ev_deadline;
    bool has_deadline;

    struct grpcwire_reader reader;
    size_t buffered;
    bool complete; /* the one message is there */
    ProtobufCMessage *request;

    bool dispatched, handler_done, cancelled;
    void (*cancel_fn) (void *arg);
    void *cancel_arg;
    void (*ready_fn) (void *arg);
    void *ready_arg;

    struct outmsg *out, *out_tail;
    size_t queued;
    duration_us moved; /* when something was read last, or queued first; monotonic */
    bool submitted;    /* response headers are on their way */
    bool deferred;     /* nghttp2 waits for resume_data */
    bool stopped;      /* rpccall_send said stop */
    bool final;        /* status is decided */
    enum rpc_status status;
    char *message;

    unsigned todo; /* enum todo bits */
    struct rpccall *todo_next;
    struct rpccall *prev, *next; /* conn->calls */
};

/* ---- lifetime */

static void queued_drop (struct rpccall *call, size_t bytes)
{
    call->queued -= bytes;
    if (call->conn && !call->conn->trusted && call->server)
        connshare_unread_drop (rpcserver_shares (call->server), call->conn->who, bytes);
}

static void out_clear (struct rpccall *call)
{
    while (call->out) {
        struct outmsg *m = call->out;
        call->out = m->next;
        free (m);
    }
    call->out_tail = NULL;
    queued_drop (call, call->queued);
}

static void unref (struct rpccall *call)
{
    assert (call->refs > 0);
    if (--call->refs > 0)
        return;
    out_clear (call);
    if (call->request)
        protobuf_c_message_free_unpacked (call->request, NULL);
    grpcwire_reader_clear (&call->reader);
    free (call->message);
    free (call->delegation);
    free (call);
}

static void request_bytes_drop (struct rpccall *call)
{
    if (call->server)
        rpcserver_unbuffer (call->server, call->buffered);
    call->buffered = 0;
    grpcwire_reader_clear (&call->reader);
}

static void todo_add (struct rpccall *call, struct srvconn *conn, enum todo bit)
{
    if (call->todo == 0) {
        call->refs++;
        call->todo_next = NULL;
        if (conn->todo_tail)
            conn->todo_tail->todo_next = call;
        else
            conn->todo = call;
        conn->todo_tail = call;
    }
    call->todo |= bit;
    h2conn_dirty (conn->h2);
}

/* The stream is gone. */
static void detach (struct rpccall *call)
{
    struct srvconn *conn = call->conn;

    if (!conn)
        return;
    if (call->has_deadline)
        event_del (&call->ev_deadline);
    request_bytes_drop (call);
    DL_DELETE (conn->calls, call);
    out_clear (call);
    call->conn = NULL;
    call->server = NULL;
    if (call->dispatched && !call->handler_done && !call->cancelled)
        todo_add (call, conn, TODO_CANCEL);
    unref (call);
}

/* ---- answering */

static nghttp2_session *session_of (struct rpccall *call)
{
    return call->conn ? h2conn_session (call->conn->h2) : NULL;
}

#define NV(n, v)                                                                                   \
    {                                                                                              \
        (uint8_t *)(n), (uint8_t *)(v), sizeof (n) - 1, sizeof (v) - 1,                            \
            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE                           \
    }

/* grpc-status and perhaps grpc-message, appended to nv; returns the count. text must outlive nv. */
static size_t status_nv (const struct rpccall *call, nghttp2_nv *nv, char *text, size_t cap)
{
    static const char *const numbers[] = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                          "9", "10", "11", "12", "13", "14", "15", "16"};
    const char *number = numbers[call->status];
    size_t n = 0;

    nv[n++] = (nghttp2_nv){(uint8_t *)"grpc-status", (uint8_t *)number, 11, strlen (number),
                           NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
    if (call->message) {
        size_t len = strlen (call->message);
        if (len > GRPCWIRE_MESSAGE_MAX) {
            len = GRPCWIRE_MESSAGE_MAX;
            while (len > 0 && ((uint8_t)call->message[len] & 0xc0) == 0x80)
                len--;
        }
        len = grpcwire_percent_encode (call->message, len, text, cap);
        nv[n++] = (nghttp2_nv){(uint8_t *)"grpc-message", (uint8_t *)text, 12, len,
                               NGHTTP2_NV_FLAG_NO_INDEX | NGHTTP2_NV_FLAG_NO_COPY_NAME};
    }
    return n;
}

static void submit_trailer (nghttp2_session *session, struct rpccall *call)
{
    char text[3 * GRPCWIRE_MESSAGE_MAX + 1];
    nghttp2_nv nv[2];
    size_t n = status_nv (call, nv, text, sizeof (text));

    /* Only out of memory can fail here; then the session fails as a whole. */
    (void)nghttp2_submit_trailer (session, call->stream_id, nv, n);
}

/* nghttp2 asks for bytes of the response. */
static ssize_t on_produce (nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t cap,
                           uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    struct rpccall *call = nghttp2_session_get_stream_user_data (session, stream_id);
    size_t n = 0;

    (void)source, (void)user_data;
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    while (n < cap && call->out) {
        struct outmsg *m = call->out;
        size_t take = m->len - m->off < cap - n ? m->len - m->off : cap - n;
        memcpy (buf + n, m->bytes + m->off, take);
        n += take;
        m->off += take;
        queued_drop (call, take);
        if (m->off == m->len) {
            call->out = m->next;
            free (m);
        }
    }
    if (n > 0)
        call->moved = clock_monotonic_us ();
    if (!call->out)
        call->out_tail = NULL;
    if (call->stopped && call->queued <= RPCSERVER_QUEUED_MAX / 2) {
        call->stopped = false;
        if (call->ready_fn && !call->final)
            todo_add (call, call->conn, TODO_READY);
    }
    if (!call->out && call->final && call->page) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        return (ssize_t)n;
    }
    if (!call->out && call->final) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        submit_trailer (session, call);
        return (ssize_t)n;
    }
    if (n == 0) {
        call->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)n;
}

static void submit_headers (nghttp2_session *session, struct rpccall *call)
{
    static const nghttp2_nv nv[] = {NV (":status", "200"), NV ("content-type", "application/grpc")};
    nghttp2_data_provider provider = {.read_callback = on_produce};

    call->submitted = true;
    (void)nghttp2_submit_response (session, call->stream_id, nv, 2, &provider);
}

static void submit_trailers_only (nghttp2_session *session, struct rpccall *call)
{
    char text[3 * GRPCWIRE_MESSAGE_MAX + 1];
    nghttp2_nv nv[4] = {NV (":status", "200"), NV ("content-type", "application/grpc")};
    size_t n = 2 + status_nv (call, nv + 2, text, sizeof (text));

    call->submitted = true;
    (void)nghttp2_submit_response (session, call->stream_id, nv, n, NULL);
}

static void submit_http_error (nghttp2_session *session, struct rpccall *call, const char *code)
{
    nghttp2_nv nv[] = {{(uint8_t *)":status", (uint8_t *)code, 7, strlen (code),
                        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE}};

    call->submitted = true;
    call->final = true;
    (void)nghttp2_submit_response (session, call->stream_id, nv, 1, NULL);
}

/* Something is queued, or the status was decided: get it going. */
static void push (struct rpccall *call)
{
    nghttp2_session *session = session_of (call);

    if (!session)
        return;
    if (!call->submitted && call->final && !call->out)
        submit_trailers_only (session, call);
    else if (!call->submitted)
        submit_headers (session, call);
    else if (call->deferred)
        (void)nghttp2_session_resume_data (session, call->stream_id);
    call->deferred = false;
    h2conn_dirty (call->conn->h2);
}

/* Decides the status, once. */
static void decide (struct rpccall *call, enum rpc_status status, const char *message)
{
    if (call->final)
        return;
    call->final = true;
    call->status = status;
    if (call->server && call->method && !call->method->info->server_streaming)
        rpcmetrics_count (call->method, status, clock_monotonic_us () - call->begun);
    if (message && status != RPC_OK)
        call->message = strdup (message);
    if (call->has_deadline && call->conn) {
        event_del (&call->ev_deadline);
        call->has_deadline = false;
    }
    push (call);
}

static void refuse (struct rpccall *call, enum rpc_status status, const char *message)
{
    request_bytes_drop (call);
    decide (call, status, message);
}

/* ---- work at the end of the turn */

static void run_cancel (struct rpccall *call)
{
    if (call->cancelled || call->handler_done)
        return;
    call->cancelled = true;
    if (call->cancel_fn)
        call->cancel_fn (call->cancel_arg);
}

ProtobufCMessage *rpccall_take (struct rpccall *call)
{
    ProtobufCMessage *request = call->request;

    assert (request);
    call->request = NULL;
    return request;
}

static void mended_log (struct rpccall *call, const ProtobufCMessageDescriptor *message,
                        const char *field)
{
    char uri[PRINCIPAL_URI_MAX];

    if (field)
        log_event (rpcserver_log (call->server), LOG_LEVEL_WARN, "rpc", "text_mended",
                   "peer=%s message=%s field=%s", principal_uri (&call->peer, uri), message->name,
                   field);
}

static ProtobufCMessage *request_unpack (struct rpccall *call, struct err *err)
{
    const ProtobufCMessageDescriptor *input = call->method->descriptor->input;
    const char *mended = NULL;
    ProtobufCMessage *request =
        rpcrequest_unpack (call->method->info, input, call->peer.kind, call->reader.body,
                           call->reader.len, &mended, err);

    mended_log (call, input, mended);
    return request;
}

static void dispatch (struct rpccall *call)
{
    const struct rpcmethod *method = call->method;
    struct err err;

    if (!call->conn || call->final)
        return;
    if (call->deadline != INT64_MAX && clock_monotonic_us () >= call->deadline) {
        refuse (call, RPC_DEADLINE_EXCEEDED, "the deadline passed before the call was begun");
        return;
    }
    call->request = request_unpack (call, &err);
    if (!call->request) {
        refuse (call, rpc_status_of_err (err.code), err.text);
        return;
    }
    request_bytes_drop (call);
    call->dispatched = true;
    call->refs++;
    method->info->handler (method->self, call, call->request);
}

void rpccall_turn (struct srvconn *conn)
{
    while (conn->todo) {
        struct rpccall *call = conn->todo;
        unsigned bits = call->todo;
        conn->todo = call->todo_next;
        if (!conn->todo)
            conn->todo_tail = NULL;
        call->todo = 0;
        if (bits & TODO_DISPATCH)
            dispatch (call);
        if (bits & TODO_CANCEL)
            run_cancel (call);
        if ((bits & TODO_READY) && call->conn && !call->final && !call->handler_done &&
            call->ready_fn)
            call->ready_fn (call->ready_arg);
        unref (call);
    }
}

void rpccall_detach_all (struct srvconn *conn)
{
    while (conn->calls)
        detach (conn->calls);
    rpccall_turn (conn);
}

/* Ends it in the middle of its answer: nothing more can be said on that stream. */
static void cut (struct rpccall *call, enum rpc_status status)
{
    call->final = true;
    call->status = status;
    out_clear (call);
    (void)nghttp2_submit_rst_stream (session_of (call), NGHTTP2_FLAG_NONE, call->stream_id,
                                     NGHTTP2_CANCEL);
    h2conn_dirty (call->conn->h2);
}

static void on_deadline (evutil_socket_t fd, short what, void *arg)
{
    struct rpccall *call = arg;
    nghttp2_session *session = session_of (call);
    struct srvconn *conn = call->conn;

    (void)fd, (void)what;
    if (!session || call->final)
        return;
    request_bytes_drop (call);
    if (call->submitted) { /* the client's own clock says the same */
        cut (call, RPC_DEADLINE_EXCEEDED);
    } else {
        decide (call, RPC_DEADLINE_EXCEEDED, "the deadline passed");
    }
    if (call->dispatched)
        todo_add (call, conn, TODO_CANCEL);
}

static void cut_stalled (struct srvconn *conn, void *arg)
{
    const duration_us *now = arg;
    struct rpccall *call, *next;

    DL_FOREACH_SAFE (conn->calls, call, next)
        if (!conn->trusted && call->queued > 0 && session_of (call) &&
            *now - call->moved >= STALLED_S * US_PER_S) {
            cut (call, RPC_RESOURCE_EXHAUSTED);
            if (call->dispatched)
                todo_add (call, conn, TODO_CANCEL);
        }
}

/* Room for an answer; those that nobody reads lose theirs first. */
static bool queued_add (struct rpccall *call, size_t bytes)
{
    struct connshare *shares = rpcserver_shares (call->server);
    duration_us now = clock_monotonic_us ();

    if (!call->conn->trusted && !connshare_unread_add (shares, call->conn->who, bytes)) {
        rpcserver_each (call->server, cut_stalled, &now);
        if (call->final || !connshare_unread_add (shares, call->conn->who, bytes)) {
            rpcserver_refusal_log (call->conn, "answers that it does not read");
            decide (call, RPC_RESOURCE_EXHAUSTED,
                    "too many bytes of answers wait to be read: read them first");
            return false;
        }
    }
    if (call->queued == 0)
        call->moved = now;
    call->queued += bytes;
    return true;
}

/* ---- coming in */

static bool is (const uint8_t *text, size_t len, const char *want)
{
    return strlen (want) == len && memcmp (text, want, len) == 0;
}

static int on_begin_headers (nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct srvconn *conn = user_data;
    struct rpccall *call;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    call = calloc (1, sizeof (*call));
    if (!call)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    call->refs = 1;
    call->conn = conn;
    call->server = conn->server;
    call->stream_id = frame->hd.stream_id;
    call->deadline = INT64_MAX;
    call->peer = conn->peer;
    call->local = conn->local;
    call->uid = conn->uid;
    call->http_415 = true;
    call->refuse = RPC_UNIMPLEMENTED; /* until :path names a method */
    call->refuse_text = "no such method";
    DL_APPEND (conn->calls, call);
    nghttp2_session_set_stream_user_data (session, call->stream_id, call);
    return 0;
}

static void set_refusal (struct rpccall *call, enum rpc_status status, const char *text)
{
    if (call->refuse == RPC_OK || call->refuse == RPC_UNIMPLEMENTED) {
        call->refuse = status;
        call->refuse_text = text;
    }
}

static void on_path (struct rpccall *call, const uint8_t *value, size_t len)
{
    const struct srvconn *conn = call->conn;

    call->method = rpcserver_find (call->server, (const char *)value, len);
    call->page = rpcserver_page_at (call->server, (const char *)value, len);
    if (!call->method)
        return;
    if (call->refuse == RPC_UNIMPLEMENTED)
        call->refuse = RPC_OK;
    if (conn->peer.kind != PRINCIPAL_GATE &&
        !(call->method->info->allow & RPC_ALLOW (conn->peer.kind)))
        set_refusal (call, RPC_PERMISSION_DENIED,
                     "this method is not open to callers of this kind");
    call->reader.max = rpcrequest_bytes_max (call->method->info);
}

static int on_header (nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                      size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                      void *user_data)
{
    struct rpccall *call = nghttp2_session_get_stream_user_data (session, frame->hd.stream_id);
    duration_us timeout;

    (void)flags, (void)user_data;
    if (!call || call->final)
        return 0;
    call->header_bytes += name_len + value_len + 32;
    if (call->header_bytes > RPCSERVER_HEADER_BYTES_MAX) {
        set_refusal (call, RPC_RESOURCE_EXHAUSTED, "request headers over 16 KiB");
        return 0;
    }
    if (call->headers_done)
        return 0; /* trailers of a request mean nothing */
    if (is (name, name_len, ":path")) {
        on_path (call, value, value_len);
    } else if (is (name, name_len, ":method")) {
        call->is_post = is (value, value_len, "POST");
        call->is_get = is (value, value_len, "GET");
    } else if (is (name, name_len, "accept")) {
        call->form = metrics_form_of ((const char *)value); /* nghttp2 ends it with a NUL */
    } else if (is (name, name_len, GATEDELEG_HEADER) && !call->delegation) {
        call->delegation = malloc (value_len + 1);
        if (call->delegation)
            memcpy (call->delegation, value, value_len);
        call->delegation_len = call->delegation ? value_len : 0;
    } else if (is (name, name_len, "content-type")) {
        call->http_415 = !grpcwire_content_type_ok ((const char *)value, value_len);
    } else if (is (name, name_len, "grpc-timeout")) {
        if (grpcwire_timeout_parse ((const char *)value, value_len, &timeout))
            call->deadline = clock_monotonic_us () + timeout;
        else
            set_refusal (call, RPC_INVALID_ARGUMENT, "malformed grpc-timeout");
    }
    return 0;
}

/* A gate has no rights of its own beyond those of everybody: it calls for the user whose delegation it brought. */
static void gate_stand (struct rpccall *call)
{
    uint32_t allow = call->method->info->allow;
    struct principal user;
    bool change;
    struct err err;

    if (call->conn->peer.kind != PRINCIPAL_GATE) {
        if (call->delegation)
            set_refusal (call, RPC_PERMISSION_DENIED, "only a gate calls by a delegation");
        return;
    }
    if (!call->delegation && allow != RPC_ALLOW_ANY)
        set_refusal (call, RPC_PERMISSION_DENIED, "a gate calls this by a user's delegation only");
    if (!call->delegation)
        return;
    if (rpcserver_gate_user (call->server, call->delegation, call->delegation_len,
                             &call->conn->peer, &user, &change, &err) < 0) {
        rpcserver_refusal_log (call->conn, err.text);
        refuse (call, rpc_status_of_err (err.code), err.text);
        return;
    }
    if (!(allow & RPC_ALLOW (PRINCIPAL_USER)) || !(allow & (RPC_GATE_READ | RPC_GATE_CHANGE))) {
        set_refusal (call, RPC_PERMISSION_DENIED, "this method is not open to gates");
    } else if (!(allow & RPC_GATE_READ) && !change) {
        set_refusal (call, RPC_PERMISSION_DENIED, "the user's delegation is for looking only");
    }
    call->peer = user;
}

/* GET of the server's page: answered at once, whole. */
static void page_answer (nghttp2_session *session, struct rpccall *call)
{
    const char *type = metrics_content_type (call->form);
    nghttp2_nv nv[] = {NV (":status", "200"),
                       {(uint8_t *)"content-type", (uint8_t *)type, 12, strlen (type),
                        NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE}};
    nghttp2_data_provider provider = {.read_callback = on_produce};
    size_t len;

    if (!(call->page->allow & RPC_ALLOW (call->conn->peer.kind))) {
        rpcserver_refusal_log (call->conn, "it may not read this page");
        submit_http_error (session, call, "403");
        return;
    }
    const char *text = call->page->text (call->page->arg, call->form, &len);
    struct outmsg *m = malloc (sizeof (*m) + len);
    if (!m || !queued_add (call, len)) {
        free (m);
        submit_http_error (session, call, "503");
        return;
    }
    *m = (struct outmsg){.len = len};
    memcpy (m->bytes, text, len);
    call->out = call->out_tail = m;
    call->submitted = call->final = true;
    (void)nghttp2_submit_response (session, call->stream_id, nv, 2, &provider);
}

static void headers_done (nghttp2_session *session, struct rpccall *call)
{
    call->begun = clock_monotonic_us ();
    call->headers_done = true;
    if (!call->is_get)
        call->page = NULL;
    if (!call->page && (call->http_415 || !call->is_post)) {
        submit_http_error (session, call, "415");
        return;
    }
    if (!call->conn->trusted &&
        !connshare_call (rpcserver_shares (call->server), call->conn->who, clock_monotonic_us ())) {
        rpcserver_refusal_log (call->conn, "too many calls a second");
        if (call->page)
            submit_http_error (session, call, "429");
        else
            refuse (call, RPC_RESOURCE_EXHAUSTED,
                    "more calls a second than you may make here: try again in a moment");
        return;
    }
    if (call->page) {
        page_answer (session, call);
        return;
    }
    if (call->method)
        gate_stand (call);
    if (call->final)
        return;
    if (call->refuse == RPC_PERMISSION_DENIED) {
        char why[GRPCWIRE_PATH_MAX + 32];
        snprintf (why, sizeof (why), "it may not call %s", call->method->path);
        rpcserver_refusal_log (call->conn, why);
    }
    if (call->refuse != RPC_OK) {
        refuse (call, call->refuse, call->refuse_text);
        return;
    }
    if (call->deadline != INT64_MAX) {
        duration_us left = call->deadline - clock_monotonic_us ();
        struct timeval tv = {0};
        if (left > 0)
            tv = (struct timeval){left / US_PER_S, left % US_PER_S};
        evtimer_assign (&call->ev_deadline, rpcserver_base (call->server), on_deadline, call);
        event_add (&call->ev_deadline, &tv);
        call->has_deadline = true;
    }
}

static void request_done (struct rpccall *call)
{
    if (call->final)
        return;
    if (call->complete)
        todo_add (call, call->conn, TODO_DISPATCH);
    else if (grpcwire_reader_idle (&call->reader))
        refuse (call, RPC_UNIMPLEMENTED, "the request message is missing");
    else
        refuse (call, RPC_INTERNAL, "the request message is cut short");
}

/* nghttp2 counts the resets of each connection; these are a principal's, over all it has. */
static void on_reset (nghttp2_session *session, struct srvconn *conn)
{
    if (!conn->server || conn->trusted || !conn->who ||
        connshare_reset (rpcserver_shares (conn->server), conn->who, clock_monotonic_us ()))
        return;
    rpcserver_refusal_log (conn, "too many streams reset a second");
    (void)nghttp2_session_terminate_session (session, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_frame_recv (nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    struct srvconn *conn = user_data;
    struct rpccall *call;

    if (frame->hd.type == NGHTTP2_RST_STREAM)
        on_reset (session, conn);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    call = nghttp2_session_get_stream_user_data (session, frame->hd.stream_id);
    if (!call)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !call->headers_done)
        headers_done (session, call);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        request_done (call);
    return 0;
}

static int on_data (nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                    size_t len, void *user_data)
{
    struct rpccall *call = nghttp2_session_get_stream_user_data (session, stream_id);
    size_t used = 0;

    (void)flags, (void)user_data;
    if (!call || call->final || len == 0)
        return 0;
    if (call->complete) {
        refuse (call, RPC_UNIMPLEMENTED, "more than one request message");
        return 0;
    }
    enum grpcwire_read r = grpcwire_feed (&call->reader, data, len, &used);
    if (!rpcserver_buffer (call->server, call->reader.cap - call->buffered)) {
        refuse (call, RPC_RESOURCE_EXHAUSTED, "the server holds too many request bytes");
        return 0;
    }
    call->buffered = call->reader.cap;
    switch (r) {
    case GRPCWIRE_MORE:
        break;
    case GRPCWIRE_COMPLETE:
        call->complete = true;
        if (used < len)
            refuse (call, RPC_UNIMPLEMENTED, "more than one request message");
        break;
    case GRPCWIRE_COMPRESSED:
        refuse (call, RPC_UNIMPLEMENTED, "compressed messages are not supported");
        break;
    case GRPCWIRE_TOO_LARGE:
        refuse (call, RPC_RESOURCE_EXHAUSTED, "the request is over this method's size limit");
        break;
    case GRPCWIRE_BAD:
        refuse (call, RPC_INTERNAL, "malformed message prefix");
        break;
    case GRPCWIRE_NOMEM:
        refuse (call, RPC_RESOURCE_EXHAUSTED, "out of memory");
        break;
    }
    return 0;
}

static int on_stream_close (nghttp2_session *session, int32_t stream_id, uint32_t error_code,
                            void *user_data)
{
    struct rpccall *call = nghttp2_session_get_stream_user_data (session, stream_id);

    (void)error_code, (void)user_data;
    if (call)
        detach (call);
    return 0;
}

/* An answer that is complete while the client still sends: only now may the stream be reset, for
 * RST_STREAM throws away headers and trailers that are still queued. */
static int on_frame_send (nghttp2_session *session, const nghttp2_frame *frame, void *user_data)
{
    (void)user_data;
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
        nghttp2_session_get_stream_remote_close (session, frame->hd.stream_id) == 0)
        (void)nghttp2_submit_rst_stream (session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                         NGHTTP2_NO_ERROR);
    return 0;
}

nghttp2_session_callbacks *rpccall_callbacks (void)
{
    nghttp2_session_callbacks *cb;

    if (nghttp2_session_callbacks_new (&cb) != 0)
        return NULL;
    nghttp2_session_callbacks_set_on_begin_headers_callback (cb, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback (cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback (cb, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback (cb, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback (cb, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback (cb, on_frame_send);
    return cb;
}

/* ---- what handlers call */

const struct principal *rpccall_peer (const struct rpccall *call)
{
    return &call->peer;
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

/* Packs and checks a message into the queue; on failure decides the call. */
static bool enqueue (struct rpccall *call, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *output = call->method->descriptor->output;
    size_t len = protobuf_c_message_get_packed_size (message);
    const char *mended;
    struct outmsg *m;
    struct err err;

    assert (message->descriptor == output);
    if (call->queued + len > RPCSERVER_QUEUED_HARD_MAX) {
        decide (call, RPC_RESOURCE_EXHAUSTED, "the answer is over 16 MiB, or read too slowly");
        return false;
    }
    m = malloc (sizeof (*m) + GRPCWIRE_PREFIX_LEN + len);
    if (!m) {
        decide (call, RPC_RESOURCE_EXHAUSTED, "out of memory");
        return false;
    }
    protobuf_c_message_pack (message, m->bytes + GRPCWIRE_PREFIX_LEN);
    if (pbguard_mend (output, m->bytes + GRPCWIRE_PREFIX_LEN, len, &mended, &err) < 0) {
        free (m);
        decide (call, RPC_INTERNAL, err.text);
        return false;
    }
    mended_log (call, output, mended);
    grpcwire_prefix_put (m->bytes, (uint32_t)len);
    m->next = NULL;
    m->off = 0;
    m->len = GRPCWIRE_PREFIX_LEN + len;
    if (!queued_add (call, m->len)) {
        free (m);
        return false;
    }
    if (call->out_tail)
        call->out_tail->next = m;
    else
        call->out = m;
    call->out_tail = m;
    return true;
}

bool rpccall_send (struct rpccall *call, const ProtobufCMessage *message)
{
    assert (call->method->info->server_streaming && !call->handler_done);
    if (!call->conn || call->final || !enqueue (call, message))
        return false;
    push (call);
    call->stopped = call->queued > RPCSERVER_QUEUED_MAX;
    return !call->stopped;
}

void rpccall_finish (struct rpccall *call, enum rpc_status status, const char *message)
{
    assert (!call->handler_done && (unsigned)status <= RPC_UNAUTHENTICATED);
    call->handler_done = true;
    decide (call, status, message);
    unref (call);
}

void rpccall_reply (struct rpccall *call, const ProtobufCMessage *message)
{
    if (call->conn && !call->final)
        (void)enqueue (call, message);
    rpccall_finish (call, RPC_OK, NULL);
}

void rpccall_fail (struct rpccall *call, const struct err *err)
{
    char text[ERR_TEXT_MAX + 8];

    text_printf (text, sizeof (text), "%s%s", err->code == ERR_FUNDS ? "funds: " : "", err->text);
    rpccall_finish (call, rpc_status_of_err (err->code), text);
}
