/* The text forms of metrics, and the plain door to them: what is asked for, refused, and how many may ask at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/metrics/door.h"

static void fill (struct metrics_page *page)
{
    struct metrics_times times = {0};
    metrics_observe (&times, 1000);
    metrics_observe (&times, 1001);
    metrics_observe (&times, INT64_C (3600) * US_PER_S);
    metrics_observe (&times, -5);
    metrics_family (page, "nui_build", METRICS_INFO, "Which daemon this is");
    metrics_count (page, 1, METRICS_LABELS ("name", "a\"b\\c\nd"));
    metrics_family (page, "nui_coalloc", METRICS_COUNTER, "Ended");
    metrics_count (page, 3, METRICS_LABELS ("result", "done", "reason", ""));
    metrics_one_micro (page, "nui_bank_suspense_credits", METRICS_GAUGE, "Claimed", -1500000);
    metrics_one_micro (page, "nui_x_ratio", METRICS_GAUGE, "Least", INT64_MIN);
    metrics_family (page, "nui_pass_seconds", METRICS_HISTOGRAM, "How long");
    metrics_times (page, &times, METRICS_LABELS ("mode", "normal"));
    metrics_end (page);
}

static const char buckets[] = "nui_pass_seconds_bucket{mode=\"normal\",le=\"0.001\"} 2\n"
                              "nui_pass_seconds_bucket{mode=\"normal\",le=\"0.005\"} 3\n"
                              "nui_pass_seconds_bucket{mode=\"normal\",le=\"0.02\"} 3\n"
                              "nui_pass_seconds_bucket{mode=\"normal\",le=\"0.1\"} 3\n"
                              "nui_pass_seconds_bucket{mode=\"normal\",le=\"0.5\"} 3\n"
                              "nui_pass_seconds_bucket{mode=\"normal\",le=\"2.5\"} 3\n"
                              "nui_pass_seconds_bucket{mode=\"normal\",le=\"10\"} 3\n"
                              "nui_pass_seconds_bucket{mode=\"normal\",le=\"60\"} 3\n"
                              "nui_pass_seconds_bucket{mode=\"normal\",le=\"600\"} 3\n"
                              "nui_pass_seconds_bucket{mode=\"normal\",le=\"+Inf\"} 4\n"
                              "nui_pass_seconds_sum{mode=\"normal\"} 3600.002001\n"
                              "nui_pass_seconds_count{mode=\"normal\"} 4\n";

static void open_form (void **state)
{
    struct metrics_page page = {.form = METRICS_OPEN};
    char want[4096];
    (void)state;
    fill (&page);
    snprintf (want, sizeof want,
              "# HELP nui_build Which daemon this is\n# TYPE nui_build info\n"
              "nui_build_info{name=\"a\\\"b\\\\c\\nd\"} 1\n"
              "# HELP nui_coalloc Ended\n# TYPE nui_coalloc counter\n"
              "nui_coalloc_total{result=\"done\",reason=\"\"} 3\n"
              "# HELP nui_bank_suspense_credits Claimed\n# TYPE nui_bank_suspense_credits gauge\n"
              "nui_bank_suspense_credits -1.5\n"
              "# HELP nui_x_ratio Least\n# TYPE nui_x_ratio gauge\n"
              "nui_x_ratio -9223372036854.775808\n"
              "# HELP nui_pass_seconds How long\n# TYPE nui_pass_seconds histogram\n%s# EOF\n",
              buckets);
    assert_string_equal (strbuf_text (&page.text), want);
    strbuf_free (&page.text);
}

static void prometheus_form (void **state)
{
    struct metrics_page page = {.form = METRICS_PROMETHEUS};
    (void)state;
    fill (&page);
    const char *text = strbuf_text (&page.text);
    assert_non_null (strstr (text, "# TYPE nui_build_info gauge\nnui_build_info{"));
    assert_non_null (strstr (text, "# TYPE nui_coalloc_total counter\nnui_coalloc_total{"));
    assert_non_null (strstr (text, "# TYPE nui_pass_seconds histogram\n"));
    assert_null (strstr (text, "EOF"));
    strbuf_free (&page.text);
}

static void forms (void **state)
{
    (void)state;
    assert_int_equal (metrics_form_of (NULL), METRICS_OPEN);
    assert_int_equal (metrics_form_of ("*/*"), METRICS_OPEN);
    assert_int_equal (metrics_form_of ("text/plain;version=0.0.4"), METRICS_PROMETHEUS);
    assert_int_equal (
        metrics_form_of (
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"),
        METRICS_OPEN);
}

/* --- the door ----------------------------------------------------------------------------- */

struct world {
    struct event_base *base;
    struct metrics_door *door;
    int asked;
};

static const char *words (void *arg, enum metrics_form form, size_t *len)
{
    struct world *w = arg;
    const char *text = form == METRICS_OPEN ? "open\n" : "plain\n";
    w->asked++;
    *len = strlen (text);
    return text;
}

static int up (void **state)
{
    struct world *w = calloc (1, sizeof *w);
    struct err err;
    w->base = event_base_new ();
    w->door = metrics_door_open (w->base, "127.0.0.1:0", words, w, &err);
    assert_non_null (w->door);
    *state = w;
    return 0;
}

static int down (void **state)
{
    struct world *w = *state;
    metrics_door_close (w->door);
    event_base_free (w->base);
    free (w);
    return 0;
}

static int ask (struct world *w, const char *text)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons (metrics_door_port (w->door)),
                             .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal (connect (fd, (struct sockaddr *)&to, sizeof to), 0);
    fcntl (fd, F_SETFL, O_NONBLOCK);
    assert_int_equal (write (fd, text, strlen (text)), (ssize_t)strlen (text));
    return fd;
}

/* Until `last` has come (NULL: until the connection is closed), within 20 s. */
static void answer (struct world *w, int fd, char out[4096], const char *last)
{
    size_t len = 0;
    duration_us until = clock_monotonic_us () + 20 * US_PER_S;
    out[0] = 0;
    while (clock_monotonic_us () < until) {
        ssize_t n = read (fd, out + len, 4095 - len);
        if (n > 0)
            out[len += (size_t)n] = 0;
        if (n == 0 || (last && strstr (out, last)))
            break;
        event_base_loop (w->base, EVLOOP_NONBLOCK);
    }
    close (fd);
}

static void door_answers (void **state)
{
    struct world *w = *state;
    char text[4096];
    answer (w, ask (w, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), text, "open\n");
    assert_non_null (strstr (text, "200 OK"));
    assert_non_null (strstr (text, "application/openmetrics-text; version=1.0.0"));
    answer (w, ask (w, "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\n\r\n"), text,
            "plain\n");
    assert_non_null (strstr (text, "text/plain; version=0.0.4"));
    assert_int_equal (w->asked, 2);
}

static void door_refuses (void **state)
{
    struct world *w = *state;
    char text[4096];
    answer (w, ask (w, "GET /etc/passwd HTTP/1.0\r\n\r\n"), text, NULL);
    assert_non_null (strstr (text, " 404 "));
    answer (w, ask (w, "POST /metrics HTTP/1.0\r\nContent-Length: 4\r\n\r\nabcd"), text, NULL);
    assert_non_null (strstr (text, " 405 "));
    assert_non_null (strstr (text, "Allow: GET, HEAD"));
    answer (w, ask (w, "GET /metrics HTTP/1.0\r\n nonsense\r\n\r\n\r\n"), text, NULL);
    assert_null (strstr (text, "open\n"));
    assert_int_equal (w->asked, 0);
}

static int files_open (void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl (fd, F_GETFD) != -1;
    return n;
}

/* Who keeps many connections open has 32 of them, and takes nobody's descriptors; who comes meanwhile waits. */
static void door_is_bounded (void **state)
{
    struct world *w = *state;
    char text[4096];
    int fds[40], before = files_open ();
    for (int i = 0; i < 40; i++)
        fds[i] = ask (w, "G");
    int last = ask (w, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 200; i++)
        event_base_loop (w->base, EVLOOP_NONBLOCK);
    assert_int_equal (files_open () - before - 41, 32);
    assert_int_equal (w->asked, 0);
    for (int i = 0; i < 40; i++)
        close (fds[i]);
    answer (w, last, text, "open\n");
    assert_int_equal (w->asked, 1);
}

static void addresses (void **state)
{
    static const char *const bad[] = {"0.0.0.0:9464", "127.0.0.1", "192.168.1.1:80",
                                      "here:9464",    "[::]:9464", "127.0.0.1:99999",
                                      ":9464",        ""};
    struct err err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal (metrics_address_check (bad[i], &err), ERR_INVALID);
        assert_non_null (strstr (err.text, "with a certificate"));
    }
    assert_int_equal (metrics_address_check ("127.0.0.1:9464", &err), 0);
    assert_int_equal (metrics_address_check ("[::1]:0", &err), 0);
}

/* A port that somebody else has is a sentence, not a daemon without metrics. */
static void taken (void **state)
{
    struct world *w = *state;
    char listen[64];
    struct err err;
    snprintf (listen, sizeof listen, "127.0.0.1:%u", (unsigned)metrics_door_port (w->door));
    assert_null (metrics_door_open (w->base, listen, words, w, &err));
    assert_non_null (strstr (err.text, "Address already in use"));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (open_form),
        cmocka_unit_test (prometheus_form),
        cmocka_unit_test (forms),
        cmocka_unit_test (addresses),
        cmocka_unit_test_setup_teardown (door_answers, up, down),
        cmocka_unit_test_setup_teardown (door_refuses, up, down),
        cmocka_unit_test_setup_teardown (door_is_bounded, up, down),
        cmocka_unit_test_setup_teardown (taken, up, down),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
