#include "tests/unit/rpc/proxy.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { PAIRS_MAX = 64 };

struct proxy {
    struct rig *rig;
    struct evconnlistener *listener;
    struct bufferevent *pair[PAIRS_MAX][2];
    unsigned accepted;
    uint16_t server_port;
};

static void cut (struct proxy *p, unsigned i)
{
    static const struct linger hard = {1, 0}; /* RST */

    for (int side = 0; side < 2; side++) {
        if (!p->pair[i][side])
            continue;
        setsockopt (bufferevent_getfd (p->pair[i][side]), SOL_SOCKET, SO_LINGER, &hard,
                    sizeof (hard));
        bufferevent_free (p->pair[i][side]);
        p->pair[i][side] = NULL;
    }
}

static void on_read (struct bufferevent *from, void *arg)
{
    struct proxy *p = arg;

    for (unsigned i = 0; i < p->accepted; i++) {
        for (int side = 0; side < 2; side++) {
            if (p->pair[i][side] == from)
                evbuffer_add_buffer (bufferevent_get_output (p->pair[i][!side]),
                                     bufferevent_get_input (from));
        }
    }
}

static void on_event (struct bufferevent *bev, short what, void *arg)
{
    struct proxy *p = arg;

    for (unsigned i = 0; (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) && i < p->accepted; i++) {
        if (p->pair[i][0] == bev || p->pair[i][1] == bev)
            cut (p, i);
    }
}

static void on_accept (struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa, int len,
                       void *arg)
{
    struct proxy *p = arg;
    struct sockaddr_in sin = {.sin_family = AF_INET,
                              .sin_port = htons (p->server_port),
                              .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};

    (void)l, (void)sa, (void)len;
    assert_true (p->accepted < PAIRS_MAX);
    struct bufferevent **pair = p->pair[p->accepted++];
    pair[0] = bufferevent_socket_new (p->rig->base, fd, BEV_OPT_CLOSE_ON_FREE);
    pair[1] = bufferevent_socket_new (p->rig->base, -1, BEV_OPT_CLOSE_ON_FREE);
    for (int side = 0; side < 2; side++) {
        bufferevent_setcb (pair[side], on_read, NULL, on_event, p);
        bufferevent_enable (pair[side], EV_READ | EV_WRITE);
    }
    bufferevent_socket_connect (pair[1], (struct sockaddr *)&sin, sizeof (sin));
}

struct proxy *proxy_up (struct rig *rig)
{
    struct proxy *p = calloc (1, sizeof (*p));
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    socklen_t len = sizeof (sin);

    assert_non_null (p);
    p->rig = rig;
    p->server_port = rpcserver_port (rig->server);
    p->listener = evconnlistener_new_bind (rig->base, on_accept, p, LEV_OPT_CLOSE_ON_FREE, 16,
                                           (struct sockaddr *)&sin, sizeof (sin));
    assert_non_null (p->listener);
    getsockname (evconnlistener_get_fd (p->listener), (struct sockaddr *)&sin, &len);
    snprintf (rig->target, sizeof (rig->target), "127.0.0.1:%u", ntohs (sin.sin_port));
    rpcclient_destroy (rig->client);
    rig->client = rig_client (rig, rig->user_id);
    return p;
}

void proxy_cut (struct proxy *proxy)
{
    for (unsigned i = 0; i < proxy->accepted; i++)
        cut (proxy, i);
}

const unsigned *proxy_accepted (const struct proxy *proxy)
{
    return &proxy->accepted;
}

void proxy_down (struct proxy *proxy)
{
    proxy_cut (proxy);
    evconnlistener_free (proxy->listener);
    free (proxy);
}
