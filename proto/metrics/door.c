/* door: the plain HTTP listener of metrics, which is libmicrohttpd's on the daemon's loop (libevent's own HTTP server cannot
 * bound how many connections it has, so any local account could take all of a daemon's descriptors). The daemons' skeleton
 * opens it. It never answers anything but GET and HEAD of /metrics. */
#include "proto/metrics/door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Whoever reads has said what he wants at once: any account of this machine can take all places, but not for long. */
enum { DOOR_CONNECTIONS = 32, DOOR_SILENT_S = 2, DOOR_MEMORY = 16 * 1024 };

struct metrics_door {
    struct MHD_Daemon *http;
    struct event *ev_ready, *ev_timer;
    metrics_text_fn text;
    void *arg;
};

static bool door_is_loopback (const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET
               ? ntohl (((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127
               : IN6_IS_ADDR_LOOPBACK (&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static int door_address (const char *listen, struct sockaddr_storage *out, struct err *err)
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
    if (!ok || !door_is_loopback (out))
        return err_set (
            err, ERR_INVALID,
            "METRICS %s: an address of this machine itself and a port are wanted, as 127.0.0.1:9464; "
            "from elsewhere metrics are read at LISTEN's port, with a certificate",
            listen);
    return 0;
}

int metrics_address_check (const char *listen, struct err *err)
{
    struct sockaddr_storage address;
    return door_address (listen, &address, err);
}

static enum MHD_Result door_say (struct MHD_Connection *c, unsigned code, const char *type,
                                 const char *text, size_t len)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer (len, (void *)text, MHD_RESPMEM_MUST_COPY);
    if (!r)
        return MHD_NO;
    MHD_add_response_header (r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header (r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result rc = MHD_queue_response (c, code, r);
    MHD_destroy_response (r);
    return rc;
}

static enum MHD_Result door_request (void *arg, struct MHD_Connection *c, const char *url,
                                     const char *method, const char *version, const char *upload,
                                     size_t *upload_size, void **state)
{
    static const char elsewhere[] = "nothing is here but /metrics\n";
    static const char only_get[] = "only GET and HEAD are answered\n";
    static int seen;
    struct metrics_door *door = arg;
    (void)version, (void)upload;
    if (!*state) { /* the headers alone: whether a body follows is not known yet */
        *state = &seen;
        return MHD_YES;
    }
    if (*upload_size > 0) { /* whatever it is, it is not wanted */
        *upload_size = 0;
        return MHD_YES;
    }
    if (strcmp (method, MHD_HTTP_METHOD_GET) != 0 && strcmp (method, MHD_HTTP_METHOD_HEAD) != 0)
        return door_say (c, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", only_get,
                         sizeof only_get - 1);
    if (strcmp (url, "/metrics") != 0)
        return door_say (c, MHD_HTTP_NOT_FOUND, "text/plain; charset=utf-8", elsewhere,
                         sizeof elsewhere - 1);
    enum metrics_form form =
        metrics_form_of (MHD_lookup_connection_value (c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT));
    size_t len;
    const char *text = door->text (door->arg, form, &len);
    return door_say (c, MHD_HTTP_OK, metrics_content_type (form), text, len);
}

static unsigned door_connections (const struct metrics_door *door)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info (door->http, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info ? info->num_connections : 0;
}

/* Whatever libmicrohttpd has to do now, and when it wants to be called again if nothing comes. */
static void door_turn (evutil_socket_t fd, short what, void *arg)
{
    struct metrics_door *door = arg;
    MHD_UNSIGNED_LONG_LONG ms;
    (void)fd, (void)what;
    unsigned before, now = door_connections (door);
    do { /* at its bound libmicrohttpd begins to accept again only in the run after one that closed something */
        before = now;
        MHD_run (door->http);
        now = door_connections (door);
    } while (now < before);
    event_del (door->ev_timer);
    if (MHD_get_timeout (door->http, &ms) == MHD_YES)
        event_add (door->ev_timer, &(struct timeval){.tv_sec = (time_t)(ms / 1000),
                                                     .tv_usec = (suseconds_t)(ms % 1000) * 1000});
}

struct metrics_door *metrics_door_open (struct event_base *base, const char *listen,
                                        metrics_text_fn text, void *arg, struct err *err)
{
    struct sockaddr_storage address;
    if (door_address (listen, &address, err) != 0)
        return NULL;
    struct metrics_door *door = calloc (1, sizeof *door);
    if (!door) {
        err_set (err, ERR_NOMEM, "METRICS: no memory");
        return NULL;
    }
    door->text = text;
    door->arg = arg;
    unsigned flags = MHD_USE_EPOLL | (address.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    door->http =
        MHD_start_daemon (flags, 0, NULL, NULL, door_request, door, MHD_OPTION_SOCK_ADDR, &address,
                          MHD_OPTION_CONNECTION_LIMIT, (unsigned)DOOR_CONNECTIONS,
                          MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)DOOR_SILENT_S,
                          MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)DOOR_MEMORY, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        door->http ? MHD_get_daemon_info (door->http, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (info) {
        door->ev_ready = event_new (base, info->epoll_fd, EV_READ | EV_PERSIST, door_turn, door);
        door->ev_timer = evtimer_new (base, door_turn, door);
    }
    if (!door->ev_ready || !door->ev_timer || event_add (door->ev_ready, NULL) != 0) {
        err_set (err, ERR_IO, "METRICS %s: %s", listen, strerror (errno));
        metrics_door_close (door);
        return NULL;
    }
    return door;
}

uint16_t metrics_door_port (const struct metrics_door *door)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info (door->http, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

void metrics_door_close (struct metrics_door *door)
{
    if (!door)
        return;
    if (door->ev_ready)
        event_free (door->ev_ready);
    if (door->ev_timer)
        event_free (door->ev_timer);
    if (door->http)
        MHD_stop_daemon (door->http);
    free (door);
}
