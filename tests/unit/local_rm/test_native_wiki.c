/* Wiki over a socket: frames as they are written and read, a job's life over a resource manager that is played, and what one that is
 * broken or hostile says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>

#include "local/rm/native/native_wiki.h"
#include "tests/unit/local_rm/native_world.h"

struct played {
    struct native_world *w;
    struct evconnlistener *listener;
    char server[64], asked[8][200];
    uint32_t asked_count;
    const char *nodes, *jobs, *other;
    const char *raw; /* said as it is, instead; "": nothing, for ever */
    bool hang_up;    /* then */
};

static void on_written (struct bufferevent *io, void *arg)
{
    (void)arg;
    bufferevent_free (io);
}

static void on_gone (struct bufferevent *io, short what, void *arg)
{
    (void)what;
    (void)arg;
    bufferevent_free (io);
}

static void on_asked (struct bufferevent *io, void *arg)
{
    struct played *p = arg;
    char text[300] = "", frame[1000];
    size_t n = bufferevent_read (io, text, sizeof text - 1);
    const char *command = strstr (text, "DT=");
    assert_non_null (command);
    assert_int_equal (strtoul (text, NULL, 10), n - NATIVE_WIKI_HEAD);
    bool nodes = strstr (command, "GETNODES"), jobs = strstr (command, "GETJOBS");
    if (!nodes && !jobs && p->asked_count < 8)
        snprintf (p->asked[p->asked_count++], sizeof p->asked[0], "%s", command + 3);
    if (p->hang_up)
        bufferevent_setcb (io, NULL, on_written, on_gone, p);
    if (p->raw) {
        bufferevent_write (io, p->raw, strlen (p->raw));
    } else {
        snprintf (text, sizeof text, "CK=0123456789abcdef TS=1 AUTH=rm DT=%s",
                  nodes  ? p->nodes
                  : jobs ? p->jobs
                         : p->other);
        snprintf (frame, sizeof frame, "%08zu\n%s", strlen (text), text);
        bufferevent_write (io, frame, strlen (frame));
    }
}

static void on_connection (struct evconnlistener *listener, evutil_socket_t fd,
                           struct sockaddr *peer, int len, void *arg)
{
    struct bufferevent *io =
        bufferevent_socket_new (evconnlistener_get_base (listener), fd, BEV_OPT_CLOSE_ON_FREE);
    (void)peer;
    (void)len;
    bufferevent_setcb (io, on_asked, NULL, on_gone, arg);
    bufferevent_enable (io, EV_READ | EV_WRITE);
}

static int setup (void **state)
{
    struct played *p = calloc (1, sizeof *p);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    p->w = native_world_create ();
    p->listener = evconnlistener_new_bind (p->w->base, on_connection, p, LEV_OPT_CLOSE_ON_FREE, -1,
                                           (struct sockaddr *)&at, sizeof at);
    getsockname (evconnlistener_get_fd (p->listener), (struct sockaddr *)&at, &len);
    snprintf (p->server, sizeof p->server, "127.0.0.1:%u", ntohs (at.sin_port));
    p->nodes = "SC=0 ARG=2#n1:STATE=Idle;CPROC=4;FEATURE=a:b;#n2:STATE=Down;CPROC=4;";
    p->jobs = "SC=0 ARG=1#12:STATE=Idle;UNAME=ann;QUEUETIME=100;TASKS=3;WCLIMIT=60;";
    p->other = "SC=0 RESPONSE=done";
    p->w->options.server = p->server;
    p->w->kind = &rm_wiki_kind;
    p->w->bind_native = true;
    *state = p;
    return 0;
}

static int teardown (void **state)
{
    struct played *p = *state;
    native_world_close (p->w);
    evconnlistener_free (p->listener);
    p->raw = "";
    event_base_loop (p->w->base, EVLOOP_NONBLOCK); /* connections that are gone */
    event_base_loop (p->w->base, EVLOOP_NONBLOCK);
    native_world_destroy (p->w);
    free (p);
    return 0;
}

static void a_jobs_life (void **state)
{
    static const char *const hosts[] = {"n1", "n2"};
    static const uint32_t tasks[] = {2, 1};
    struct played *p = *state;
    struct native_world *w = p->w;
    struct rm_job spec = {.job_id = "site.12",
                          .rm_id = "12",
                          .host_count = 2,
                          .host = hosts,
                          .host_tasks = tasks,
                          .procs = 3,
                          .walltime = 60 * US_PER_S};
    uint32_t count;
    native_world_open (w);
    UNTIL (w, native_world_fresh (w) && w->natives == 1);
    const struct rm_node *node = w->rm.ops->nodes (w->rm.self, &count);
    assert_int_equal (count, 2);
    assert_string_equal (node[0].features, "a,b");
    assert_int_equal (node[1].state, RM_NODE_DOWN);
    assert_string_equal (w->rm.ops->type, "WIKI");
    assert_null (w->rm.ops->hold);
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, p->asked_count == 1);
    assert_string_equal (p->asked[0], "CMD=STARTJOB ARG=12 TASKLIST=n1:n1:n2");
    p->jobs =
        "SC=0 ARG=1#12:STATE=Running;UNAME=ann;QUEUETIME=100;TASKS=3;WCLIMIT=60;STARTTIME=200;"
        "TASKLIST=n1:n1:n2;";
    UNTIL (w, w->started == 1);
    assert_string_equal (w->placement, "n1:2,n2:1");
    assert_int_equal (w->rm.ops->suspend (w->rm.self, "site.12", 0, true, NULL), 0);
    UNTIL (w, p->asked_count >= 2);
    assert_string_equal (p->asked[1], "CMD=SUSPENDJOB ARG=12");
    assert_int_equal (w->rm.ops->cancel (w->rm.self, "site.12", 0, NULL), 0);
    UNTIL (w, p->asked_count >= 3);
    assert_string_equal (p->asked[2], "CMD=CANCELJOB ARG=12 TYPE=ADMIN");
    p->jobs = "SC=0 ARG=1#12:STATE=Removed;UNAME=ann;QUEUETIME=100;STARTTIME=200;COMPLETETIME=230;";
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_CANCELLED);
}

static void refused (void **state)
{
    static const char *const hosts[] = {"n1"};
    static const uint32_t tasks[] = {3};
    struct played *p = *state;
    struct native_world *w = p->w;
    struct rm_job spec = {
        .job_id = "site.12", .rm_id = "12", .host_count = 1, .host = hosts, .host_tasks = tasks};
    p->other = "SC=-5 RESPONSE=n1 is taken";
    native_world_open (w);
    UNTIL (w, native_world_fresh (w) && w->natives == 1);
    assert_int_equal (w->rm.ops->start (w->rm.self, &spec, NULL), 0);
    UNTIL (w, w->ended == 1);
    assert_int_equal (w->end.end, RM_END_REFUSED);
    assert_non_null (strstr (w->end.text, "n1 is taken"));
}

static void what_is_no_answer (void **state)
{
    static const struct {
        const char *raw, *nodes, *says;
        bool hang_up;
    } bad[] = {
        {"hello", NULL, "went before it had answered", true},
        {"hello, sailor", NULL, "does not begin with its length", false},
        {"99999999\nCK=", NULL, "an answer of 99999999 bytes: at most 67108864", false},
        {"00000100\nCK=0 DT=SC=0", NULL, "went before it had answered", true},
        {"00000004\nCK=0 DT=SC=0", NULL, "said more than it had announced", false},
        {"00000004\nCK=0", NULL, "an answer without DT=SC=", false},
        {"", NULL, "did not answer within 1 s", false},
        {NULL, "SC=-1 RESPONSE=busy", "busy", false},
        {NULL, "SC=0", "a list without ARG", false},
        {NULL, "SC=0 ARG=2#n1:STATE=Idle;CPROC=4;", "COUNT=2 was announced, and 1 came", false},
        {NULL, "SC=0 ARG=1#n1:STATE;CPROC=4;", "not understood", false},
    };
    struct played *p = *state;
    struct native_world *w = p->w;
    const char *good = p->nodes;
    native_world_open (w);
    UNTIL (w, native_world_fresh (w));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        native_world_mark (w);
        p->raw = bad[i].raw;
        p->hang_up = bad[i].hang_up;
        p->nodes = bad[i].nodes ? bad[i].nodes : good;
        UNTIL (w, !native_world_fresh (w));
        if (!native_world_said (w, bad[i].says))
            fail_msg ("%zu: '%s' was not said; %s", i, bad[i].says, w->dir);
        p->raw = NULL;
        p->hang_up = false;
        p->nodes = good;
        UNTIL (w, native_world_fresh (w));
    }
    assert_int_equal (w->nodes, 1);
}

static void nobody_there (void **state)
{
    struct played *p = *state;
    struct err err = {0};
    p->w->options.server = "127.0.0.1:1";
    native_world_open (p->w);
    UNTIL (p->w, native_world_said (p->w, "cannot be reached: Connection refused"));
    native_world_close (p->w);
    p->w->options.server = NULL;
    assert_int_equal (rm_wiki_kind.check (&p->w->options, &err), ERR_INVALID);
    assert_non_null (strstr (err.text, "SERVER"));
}

static void values_of_their_own (void **state)
{
    struct arena *arena = arena_create (0);
    struct err err = {0};
    const char *out;
    (void)state;
    assert_int_equal (native_wiki_read ("CK=1 DT=SC=0 ARG=1#n1:STATE=Idle;CAT=\"a#b\";X=1\\#2:3;",
                                        true, arena, &out, &err),
                      0);
    assert_string_equal (out, "SC=0 COUNT=1\nn1 STATE=Idle;CAT=\"a#b\";X=1\\#2:3;\n");
    arena_destroy (arena);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST (a_jobs_life),
        TEST (refused),
        TEST (what_is_no_answer),
        TEST (nobody_there),
        cmocka_unit_test (values_of_their_own),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
