/* native_socket: a bufferevent for each question. native_call.c asks. A peer that accepts and says nothing, says too much or too
 * little, or goes in the middle is an ordinary event with its sentence. */
#include "local/rm/native/native_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/util.h>

#include "local/rm/native/native_wiki.h"

struct native_socket {
    struct bufferevent *io;
    struct event *limit;
    bool begun; /* its head was read */
    size_t length, most;
    duration_us patience;
    int error; /* of connect, where it failed at once */
    native_socket_fn fn;
    void *arg;
};

void native_socket_drop (struct native_socket *s)
{
    if (!s)
        return;
    if (s->io)
        bufferevent_free (s->io);
    if (s->limit)
        event_free (s->limit);
    free (s);
}

static void over (struct native_socket *s, const char *text, const char *problem)
{
    native_socket_fn fn = s->fn;
    void *arg = s->arg;
    fn (arg, text, problem);
    native_socket_drop (s);
}

static void on_read (struct bufferevent *io, void *arg)
{
    struct native_socket *s = arg;
    struct evbuffer *in = bufferevent_get_input (io);
    struct err err = {0};
    char head[NATIVE_WIKI_HEAD];
    if (!s->begun && evbuffer_get_length (in) >= sizeof head) {
        evbuffer_remove (in, head, sizeof head);
        s->begun = true;
        if (native_wiki_length (head, s->most, &s->length, &err) != 0) {
            over (s, "", err.text);
            return;
        }
    }
    if (!s->begun || evbuffer_get_length (in) < s->length)
        return;
    char *text = malloc (s->length + 1);
    if (!text || evbuffer_get_length (in) > s->length ||
        evbuffer_remove (in, text, s->length) != (int)s->length) {
        free (text);
        over (s, "", "said more than it had announced");
        return;
    }
    text[s->length] = 0;
    bool whole = strlen (text) == s->length;
    over (s, whole ? text : "", whole ? NULL : "the answer is no text");
    free (text);
}

static void on_event (struct bufferevent *io, short what, void *arg)
{
    struct native_socket *s = arg;
    char text[160];
    (void)io;
    if (what & BEV_EVENT_CONNECTED)
        return;
    if (what & BEV_EVENT_EOF)
        over (s, "", "went before it had answered");
    else {
        snprintf (text, sizeof text, "cannot be reached: %s", strerror (errno));
        over (s, "", text);
    }
}

static void on_limit (evutil_socket_t fd, short what, void *arg)
{
    struct native_socket *s = arg;
    char text[160];
    (void)fd;
    (void)what;
    if (s->error)
        snprintf (text, sizeof text, "cannot be reached: %s", strerror (s->error));
    else
        snprintf (text, sizeof text, "did not answer within %lld s (PATIENCE)",
                  (long long)(s->patience / US_PER_S));
    over (s, "", text);
}

static int address (const char *server, struct sockaddr_storage *out, int *len, struct err *err)
{
    struct sockaddr_un *local = (struct sockaddr_un *)out;
    memset (out, 0, sizeof *out);
    *len = sizeof *out;
    if (strncmp (server, "unix:", 5) == 0 && strlen (server + 5) < sizeof local->sun_path) {
        local->sun_family = AF_UNIX;
        strcpy (local->sun_path, server + 5);
        *len = sizeof *local;
        return 0;
    }
    if (evutil_parse_sockaddr_port (server, (struct sockaddr *)out, len) == 0 &&
        (out->ss_family == AF_INET ? ((struct sockaddr_in *)out)->sin_port
                                   : ((struct sockaddr_in6 *)out)->sin6_port))
        return 0;
    return err_set (err, ERR_INVALID,
                    "RMCFG: SERVER is '%.60s': wanted 127.0.0.1:7321 or unix:/path", server);
}

int native_socket_check (const char *server, struct err *err)
{
    struct sockaddr_storage at;
    int len;
    return address (server, &at, &len, err);
}

struct native_socket *native_socket_ask (struct event_base *base, const char *server,
                                         const char *frame, duration_us limit, size_t most,
                                         native_socket_fn fn, void *arg, struct err *err)
{
    struct timeval after = {.tv_sec = limit / US_PER_S, .tv_usec = limit % US_PER_S};
    struct sockaddr_storage at;
    int len;
    if (address (server, &at, &len, err) != 0)
        return NULL;
    struct native_socket *s = calloc (1, sizeof *s);
    if (s) {
        *s = (struct native_socket){.most = most, .patience = limit, .fn = fn, .arg = arg};
        s->io = bufferevent_socket_new (base, -1, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
        s->limit = evtimer_new (base, on_limit, s);
    }
    if (!s || !s->io || !s->limit) {
        native_socket_drop (s);
        err_set (err, ERR_NOMEM, "no memory for a socket");
        return NULL;
    }
    bufferevent_setcb (s->io, on_read, NULL, on_event, s);
    bufferevent_enable (s->io, EV_READ | EV_WRITE);
    bufferevent_write (s->io, frame, strlen (frame));
    if (bufferevent_socket_connect (s->io, (struct sockaddr *)&at, len) != 0) {
        s->error = errno;
        after = (struct timeval){0};
    }
    event_add (s->limit, &after);
    return s;
}
