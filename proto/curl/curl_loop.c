/* curl_loop: gives libcurl's sockets and its one timer to libevent, and hands each finished
 * request to the owner. Webhooks, staging and the adapter for slurmrestd use it. The owner's
 * function is called from the loop only, never from inside curl_loop_add. */
#include "proto/curl/curl_loop.h"

#include <assert.h>
#include <stdlib.h>

struct curl_loop {
    struct event_base *base;
    CURLM *multi;
    struct event *timer;
    curl_loop_fn fn;
    void *arg;
};

static void look (struct curl_loop *l)
{
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read (l->multi, &left)))
        if (message->msg == CURLMSG_DONE) /* its memory goes when the handle is taken out */
            l->fn (l->arg, message->easy_handle, message->data.result);
}

static void on_socket (evutil_socket_t fd, short what, void *arg)
{
    struct curl_loop *l = arg;
    int running,
        bits = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    curl_multi_socket_action (l->multi, fd, bits, &running);
    look (l);
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct curl_loop *l = arg;
    int running;
    (void)fd;
    (void)what;
    curl_multi_socket_action (l->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    look (l);
}

static int want_socket (CURL *easy, curl_socket_t fd, int what, void *self, void *known)
{
    struct curl_loop *l = self;
    struct event *event = known;
    (void)easy;
    if (event)
        event_free (event);
    event = NULL;
    if (what != CURL_POLL_REMOVE) {
        short bits = (short)(EV_PERSIST | (what & CURL_POLL_IN ? EV_READ : 0) |
                             (what & CURL_POLL_OUT ? EV_WRITE : 0));
        event = event_new (l->base, fd, bits, on_socket, l);
        assert (event);
        event_add (event, NULL);
    }
    curl_multi_assign (l->multi, fd, event);
    return 0;
}

static int want_timer (CURLM *multi, long ms, void *self)
{
    struct curl_loop *l = self;
    struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    (void)multi;
    if (ms < 0)
        evtimer_del (l->timer);
    else
        evtimer_add (l->timer, &t);
    return 0;
}

struct curl_loop *curl_loop_create (struct event_base *base, long connections_max, curl_loop_fn fn,
                                    void *arg, struct err *err)
{
    struct curl_loop *l = calloc (1, sizeof *l);
    assert (l);
    *l = (struct curl_loop){.base = base, .fn = fn, .arg = arg};
    l->multi = curl_multi_init ();
    l->timer = evtimer_new (base, on_timer, l);
    if (!l->multi || !l->timer) {
        curl_loop_destroy (l);
        err_set (err, ERR_INTERNAL, "libcurl does not begin");
        return NULL;
    }
    curl_multi_setopt (l->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl_multi_setopt (l->multi, CURLMOPT_SOCKETDATA, l);
    curl_multi_setopt (l->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    curl_multi_setopt (l->multi, CURLMOPT_TIMERDATA, l);
    curl_multi_setopt (l->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections_max);
    return l;
}

void curl_loop_destroy (struct curl_loop *l)
{
    if (!l)
        return;
    if (l->multi)
        curl_multi_cleanup (l->multi); /* frees what listens on its connections */
    if (l->timer)
        event_free (l->timer);
    free (l);
}

int curl_loop_add (struct curl_loop *l, CURL *easy, struct err *err)
{
    /* Else ending a request while its host is looked up would wait for the look-up. */
    curl_easy_setopt (easy, CURLOPT_QUICK_EXIT, 1L);
    CURLMcode code = curl_multi_add_handle (l->multi, easy);
    return code == CURLM_OK ? 0
                            : err_set (err, ERR_INTERNAL, "libcurl does not take the request: %s",
                                       curl_multi_strerror (code));
}

void curl_loop_remove (struct curl_loop *l, CURL *easy)
{
    curl_multi_remove_handle (l->multi, easy);
}
