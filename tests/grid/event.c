/* libevent, as far as the services use it: timers on the simulated clock. Descriptors and signals
 * are taken and never fire. */
#include "sim.h"

struct event_base {
    struct machine *machine;
};

struct event {
    struct todo todo;
    short what;
    duration_us interval; /* of EV_PERSIST */
    event_callback_fn fn;
    void *arg;
};

struct event_base *simbase_create (struct machine *machine)
{
    struct event_base *base = calloc (1, sizeof *base);
    if (!base)
        abort ();
    base->machine = machine;
    return base;
}

void simbase_destroy (struct event_base *base)
{
    free (base);
}

static void fire (void *arg)
{
    struct event *ev = arg;
    if (ev->what & EV_PERSIST && ev->interval > 0)
        todo_set (&ev->todo, sim.now + ev->interval);
    ev->fn (-1, EV_TIMEOUT, ev->arg);
}

struct event *event_new (struct event_base *base, evutil_socket_t fd, short what,
                         event_callback_fn fn, void *arg)
{
    struct event *ev = calloc (1, sizeof *ev);
    (void)fd;
    if (!ev)
        abort ();
    ev->todo = (struct todo){.machine = base->machine, .fn = fire, .arg = ev};
    ev->what = what;
    ev->fn = fn;
    ev->arg = arg;
    return ev;
}

int event_add (struct event *ev, const struct timeval *tv)
{
    if (!tv)
        return 0;
    ev->interval = tv->tv_sec * SEC + tv->tv_usec;
    todo_set (&ev->todo, sim.now + ev->interval);
    return 0;
}

int event_del (struct event *ev)
{
    todo_drop (&ev->todo);
    return 0;
}

void event_free (struct event *ev)
{
    todo_drop (&ev->todo);
    free (ev);
}

void event_active (struct event *ev, int res, short ncalls)
{
    (void)res;
    (void)ncalls;
    todo_set (&ev->todo, sim.now);
}

int event_pending (const struct event *ev, short what, struct timeval *tv)
{
    (void)tv;
    return ev->todo.place ? what : 0;
}

struct base_once {
    event_callback_fn fn;
    void *arg;
};

static void base_once_fire (void *arg)
{
    struct base_once once = *(struct base_once *)arg;
    free (arg);
    once.fn (-1, EV_TIMEOUT, once.arg);
}

int event_base_once (struct event_base *base, evutil_socket_t fd, short what, event_callback_fn fn,
                     void *arg, const struct timeval *tv)
{
    struct base_once *once = malloc (sizeof *once);
    (void)fd;
    (void)what;
    if (!once)
        abort ();
    *once = (struct base_once){fn, arg};
    todo_once (base->machine, sim.now + (tv ? tv->tv_sec * SEC + tv->tv_usec : 0), base_once_fire,
               once);
    return 0;
}
