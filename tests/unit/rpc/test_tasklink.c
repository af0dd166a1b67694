/* The link of a job's tasks: what goes over it, and that nobody speaks on it without the job's secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/rpc/tasklink.h"

static const char right[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
static const char wrong[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e20";

/* Sends back each frame; its exit code says how far it came. */
static void echo (int listener, const char *hex)
{
    uint8_t secret[TASKLINK_SECRET];
    struct tasklink *link;
    struct err err = {0};
    enum tasklink_type type;
    const uint8_t *bytes;
    size_t len;
    alarm (60);
    int fd = accept (listener, NULL, NULL);
    if (fd < 0 || tasklink_secret (hex, secret, &err) != 0)
        _exit (10);
    if (tasklink_accept (fd, secret, &link, &err) != 0)
        _exit (err.code == ERR_UNAUTHENTIC ? 20 : 30);
    while (tasklink_next (link, &type, &bytes, &len))
        if (!tasklink_send (link, type, bytes, len))
            _exit (40);
    tasklink_close (link);
    _exit (0);
}

/* The port of a listener whose child echoes. */
static pid_t listener_start (const char *hex, char port[8])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal (bind (fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal (listen (fd, 4), 0);
    assert_int_equal (getsockname (fd, (struct sockaddr *)&at, &len), 0);
    snprintf (port, 8, "%u", ntohs (at.sin_port));
    pid_t pid = fork ();
    if (pid == 0)
        echo (fd, hex);
    close (fd);
    return pid;
}

static int ended (pid_t pid)
{
    int status;
    assert_int_equal (waitpid (pid, &status, 0), pid);
    return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static void frames_come_as_they_went (void **state)
{
    static const size_t sizes[] = {0, 1, 70000, TASKLINK_FRAME_MAX};
    uint8_t secret[TASKLINK_SECRET], *sent = mem_zero (1, TASKLINK_FRAME_MAX + 1);
    struct tasklink *link;
    struct err err = {0};
    enum tasklink_type type;
    const uint8_t *bytes;
    size_t len;
    char port[8];
    (void)state;
    pid_t pid = listener_start (right, port);
    assert_int_equal (tasklink_secret (right, secret, &err), 0);
    if (tasklink_connect ("127.0.0.1", port, secret, &link, &err) != 0)
        fail_msg ("%s", err.text);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset (sent, (int)('a' + i), sizes[i]);
        assert_true (tasklink_send (link, TASKLINK_STDOUT, sent, sizes[i]));
        assert_true (tasklink_next (link, &type, &bytes, &len));
        assert_int_equal (type, TASKLINK_STDOUT);
        assert_int_equal (len, sizes[i]);
        assert_memory_equal (bytes, sent, len);
    }
    assert_false (tasklink_send (link, TASKLINK_STDOUT, sent, TASKLINK_FRAME_MAX + 1));
    tasklink_close (link);
    assert_int_equal (ended (pid), 0);
    free (sent);
}

static void another_secret_opens_nothing (void **state)
{
    uint8_t secret[TASKLINK_SECRET];
    struct tasklink *link;
    struct err err = {0};
    char port[8];
    (void)state;
    pid_t pid = listener_start (right, port);
    assert_int_equal (tasklink_secret (wrong, secret, &err), 0);
    assert_int_equal (tasklink_connect ("127.0.0.1", port, secret, &link, &err), ERR_UNAUTHENTIC);
    assert_null (link);
    assert_int_equal (ended (pid), 20);
    assert_int_equal (tasklink_secret ("00", secret, &err), ERR_INVALID);
    assert_int_equal (tasklink_secret (NULL, secret, &err), ERR_INVALID);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (frames_come_as_they_went),
        cmocka_unit_test (another_secret_opens_nothing),
    };
    signal (SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
