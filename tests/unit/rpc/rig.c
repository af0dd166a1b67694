#include "tests/unit/rpc/rig.h"

struct rpcserver *rig_server (struct rig *rig, const char *listen)
{
    struct connshare_limits limits = RPCSERVER_LIMITS_DEFAULT;
    struct err err;
    const struct rpcserver_config config = {.base = rig->base,
                                            .id = rig->server_id,
                                            .limits = &limits,
                                            .listen = listen ? listen : "127.0.0.1:0"};

    limits.calls_per_s = 0; /* tests call as fast as the machine can */
    struct rpcserver *server = rpcserver_create (&config, &err);

    if (!server)
        fail_msg ("%s", err.text);
    rig->echo.base = rig->base;
    assert_int_equal (echoserver_add (&rig->echo, server, &err), 0);
    return server;
}

static void on_lost (void *arg)
{
    ((struct rig *)arg)->lost++;
}

struct rpcclient *rig_client (struct rig *rig, struct tlsid *id)
{
    struct err err;
    const struct rpcclient_config config = {.base = rig->base,
                                            .id = id,
                                            .target = rig->target,
                                            .expect_kind = PRINCIPAL_SITE,
                                            .lost = on_lost,
                                            .arg = rig};
    struct rpcclient *client = rpcclient_create (&config, &err);

    if (!client)
        fail_msg ("%s", err.text);
    return client;
}

void rig_up (struct rig *rig)
{
    memset (rig, 0, sizeof (*rig));
    rig->dir = testca_dir ();
    rig->ca = testca_create (rig->dir, "ca");
    testca_issue (rig->ca, &(struct testca_cert){.name = "alpha", .uri = "nui://test/site/alpha"});
    testca_issue (rig->ca, &(struct testca_cert){.name = "alice", .uri = "nui://test/user/alice"});
    rig->server_id = testca_tlsid (rig->dir, "ca", "alpha", true);
    rig->user_id = testca_tlsid (rig->dir, "ca", "alice", true);
    rig->base = event_base_new ();
    rig->server = rig_server (rig, NULL);
    snprintf (rig->target, sizeof (rig->target), "127.0.0.1:%u", rpcserver_port (rig->server));
    rig->client = rig_client (rig, rig->user_id);
}

void rig_down (struct rig *rig)
{
    rpcclient_destroy (rig->client);
    rpcserver_destroy (rig->server);
    assert_int_equal (rig->echo.open, 0); /* every handler heard of the end */
    event_base_free (rig->base);
    tlsid_destroy (rig->server_id);
    tlsid_destroy (rig->user_id);
    testca_destroy (rig->ca);
    testca_remove (rig->dir);
}

static void on_time_up (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    *(bool *)arg = true;
}

void rig_until_count (struct rig *rig, const unsigned *count, unsigned wanted)
{
    bool time_up = false;
    struct event *timer = event_new (rig->base, -1, 0, on_time_up, &time_up);
    const struct timeval tv = {20, 0};

    event_add (timer, &tv);
    while (*count < wanted && !time_up)
        event_base_loop (rig->base, EVLOOP_ONCE);
    event_free (timer);
    if (time_up)
        fail_msg ("after 20 s: %u of %u", *count, wanted);
}

void rig_until (struct rig *rig, const unsigned *flag)
{
    rig_until_count (rig, flag, 1);
}

void rig_turn (struct rig *rig)
{
    event_base_loop (rig->base, EVLOOP_NONBLOCK);
}

static void on_message (void *arg, const ProtobufCMessage *message)
{
    const Nui__Test__V1__EchoReply *reply = (const Nui__Test__V1__EchoReply *)message;
    struct outcome *o = arg;

    assert_int_equal (reply->number, o->messages);
    o->messages++;
    o->bytes += reply->data.len;
}

static void on_done (void *arg, const struct rpc_result *result)
{
    const Nui__Test__V1__EchoReply *reply = (const Nui__Test__V1__EchoReply *)result->reply;
    struct outcome *o = arg;

    o->done++;
    o->call = NULL;
    o->status = result->status;
    snprintf (o->message, sizeof (o->message), "%s", result->message);
    if (reply) {
        snprintf (o->text, sizeof (o->text), "%s", reply->text);
        snprintf (o->peer, sizeof (o->peer), "%s", reply->peer);
        o->data_len = reply->data.len;
    }
}

void rig_start (struct rig *rig, struct outcome *o, const char *method,
                const Nui__Test__V1__EchoRequest *request, duration_us timeout, bool idempotent)
{
    const struct rpccallout_config config = {.service = &nui__test__v1__echo__descriptor,
                                             .method = method,
                                             .request = &request->base,
                                             .timeout = timeout,
                                             .idempotent = idempotent,
                                             .reply_bytes_max = (4 << 20) + 1024,
                                             .on_message =
                                                 strcmp (method, "Stream") == 0 ? on_message : NULL,
                                             .done = on_done,
                                             .arg = o};

    memset (o, 0, sizeof (*o));
    o->call = rpcclient_start (rig->client, &config);
    assert_int_equal (o->done, 0); /* never inside start */
}

void rig_call (struct rig *rig, struct outcome *o, const char *method, const char *text)
{
    Nui__Test__V1__EchoRequest request = REQUEST;

    request.text = (char *)text;
    rig_start (rig, o, method, &request, 0, false);
    rig_until (rig, &o->done);
}
