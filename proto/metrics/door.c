/* door: the plain HTTP listener of metrics, which is libmicrohttpd's on the daemon's loop (libevent's own HTTP server cannot
 * bound how many connections it has, so any local account could take all of a daemon's descriptors). The daemons' skeleton
 * opens it. It never answers anything but GET and HEAD of /metrics. */
#include "proto/metrics/door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/metrics/httploop.h"

/* Whoever reads has said what he wants at once: any account of this machine can take all places, but not for long. */
enum { DOOR_CONNECTIONS = 32, DOOR_SILENT_S = 2, DOOR_MEMORY = 16 * 1024 };

struct metrics_door {
    struct httploop *http;
    metrics_text_fn text;
    void *arg;
};

static int door_address (const char *listen, struct sockaddr_storage *out, struct err *err)
{
    if (!httploop_address (listen, out) || !httploop_address_is_loopback (out))
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
    door->http = httploop_create (
        base,
        MHD_start_daemon (flags, 0, NULL, NULL, door_request, door, MHD_OPTION_SOCK_ADDR, &address,
                          MHD_OPTION_CONNECTION_LIMIT, (unsigned)DOOR_CONNECTIONS,
                          MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)DOOR_SILENT_S,
                          MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)DOOR_MEMORY, MHD_OPTION_END));
    if (!door->http) {
        err_set (err, ERR_IO, "METRICS %s: %s", listen, strerror (errno));
        metrics_door_close (door);
        return NULL;
    }
    return door;
}

uint16_t metrics_door_port (const struct metrics_door *door)
{
    return httploop_port (door->http);
}

void metrics_door_close (struct metrics_door *door)
{
    if (!door)
        return;
    httploop_destroy (door->http);
    free (door);
}
