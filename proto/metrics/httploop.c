/* httploop: libmicrohttpd's daemon as two events of libevent's loop. The metrics' door and the gate's doors stand on it; it
 * knows nothing of requests, and never blocks. */
#include "proto/metrics/httploop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct httploop {
    struct MHD_Daemon *http;
    struct event *ev_ready, *ev_timer;
};

bool httploop_address_is_loopback (const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET
               ? ntohl (((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127
               : IN6_IS_ADDR_LOOPBACK (&((const struct sockaddr_in6 *)a)->sin6_addr);
}

bool httploop_address (const char *listen, struct sockaddr_storage *out)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    const char *colon = strrchr (listen, ':');
    struct addrinfo *ai = NULL;
    char host[64] = "";
    int n = colon ? (int)(colon - listen) : 0;
    bool brackets = n > 2 && listen[0] == '[' && listen[n - 1] == ']';
    bool port = colon && colon[1] && strlen (colon) <= 6 && atoi (colon + 1) <= 65535;
    snprintf (host, sizeof host, "%.*s", brackets ? n - 2 : n, listen + brackets);
    bool ok = port && *host && getaddrinfo (host, colon + 1, &hints, &ai) == 0;
    memset (out, 0, sizeof *out);
    if (ok)
        memcpy (out, ai->ai_addr, ai->ai_addrlen);
    if (ai)
        freeaddrinfo (ai);
    return ok;
}

unsigned httploop_connections (const struct httploop *loop)
{
    const union MHD_DaemonInfo *info =
        loop ? MHD_get_daemon_info (loop->http, MHD_DAEMON_INFO_CURRENT_CONNECTIONS) : NULL;
    return info ? info->num_connections : 0;
}

uint16_t httploop_port (const struct httploop *loop)
{
    const union MHD_DaemonInfo *info =
        loop ? MHD_get_daemon_info (loop->http, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    return info ? info->port : 0;
}

/* Whatever libmicrohttpd has to do now, and when it wants to be called again if nothing comes. */
void httploop_turn (struct httploop *loop)
{
    MHD_UNSIGNED_LONG_LONG ms;
    unsigned before, now = httploop_connections (loop);
    do { /* at its bound libmicrohttpd begins to accept again only in the run after one that closed something */
        before = now;
        MHD_run (loop->http);
        now = httploop_connections (loop);
    } while (now < before);
    event_del (loop->ev_timer);
    if (MHD_get_timeout (loop->http, &ms) == MHD_YES)
        event_add (loop->ev_timer, &(struct timeval){.tv_sec = (time_t)(ms / 1000),
                                                     .tv_usec = (suseconds_t)(ms % 1000) * 1000});
}

static void httploop_event (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    httploop_turn (arg);
}

void httploop_soon (struct httploop *loop)
{
    event_active (loop->ev_timer, EV_TIMEOUT, 0);
}

struct httploop *httploop_create (struct event_base *base, struct MHD_Daemon *http)
{
    if (!http)
        return NULL;
    struct httploop *loop = calloc (1, sizeof *loop);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info (http, MHD_DAEMON_INFO_EPOLL_FD);
    if (!loop) {
        MHD_stop_daemon (http);
        errno = ENOMEM;
        return NULL;
    }
    loop->http = http;
    if (info) {
        loop->ev_ready =
            event_new (base, info->epoll_fd, EV_READ | EV_PERSIST, httploop_event, loop);
        loop->ev_timer = evtimer_new (base, httploop_event, loop);
    }
    if (!loop->ev_ready || !loop->ev_timer || event_add (loop->ev_ready, NULL) != 0) {
        httploop_destroy (loop);
        errno = ENOMEM;
        return NULL;
    }
    return loop;
}

void httploop_destroy (struct httploop *loop)
{
    if (!loop)
        return;
    if (loop->ev_ready)
        event_free (loop->ev_ready);
    if (loop->ev_timer)
        event_free (loop->ev_timer);
    MHD_stop_daemon (loop->http);
    free (loop);
}
