/* A writer is killed with SIGKILL at arbitrary moments, many times over one database. It tells
 * through a pipe what was committed; whatever it told must be there afterwards, in order, without
 * a gap, and the state must agree with the outbox. */
#include "../base/unit.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "proto/base/clock.h"
#include "proto/store/outbox.h"
#include "scratch.h"

enum { ROUNDS = 40, TOLD_MIN = 3 };

static const char *const steps[] = {
    outbox_schema,
    "CREATE TABLE counter (id INTEGER PRIMARY KEY CHECK (id = 1), n INTEGER);"
    "INSERT INTO counter VALUES (1, 0)",
    NULL};

/* Appends and acknowledges until it is killed. */
static void writer (const char *path, int tell)
{
    struct err err = {0};
    struct store *store = store_open (path, steps, &err);
    if (!store)
        _exit (1);
    while (true) {
        struct uuid key;
        uint64_t seq = 0;
        uuid_make (&key);
        if (store_begin (store, &err) < 0 ||
            store_exec (store, "UPDATE counter SET n = n + 1", &err) < 0 ||
            outbox_append (store, "bank", "charge", &key, key.b, 16, 0, &seq, &err) < 0)
            _exit (2);
        /* Acknowledge now and then, but never the newest ten. */
        if (seq % 7 == 0 && seq > 10 && outbox_ack (store, "bank", seq - 10, &err) < 0)
            _exit (3);
        if (store_commit (store, &err) < 0)
            _exit (4);
        if (write (tell, &seq, sizeof seq) != (ssize_t)sizeof seq)
            _exit (5);
    }
}

/* Reads what the writer tells until enough was told, kills it, and returns the last number. */
static uint64_t kill_after (pid_t pid, int told, unsigned how_many, uint64_t last)
{
    duration_us deadline = clock_monotonic_us () + 30 * US_PER_S;
    for (unsigned n = 0; n < how_many; n++) {
        struct pollfd p = {.fd = told, .events = POLLIN};
        assert_true (clock_monotonic_us () < deadline);
        assert_int_equal (poll (&p, 1, 30000), 1);
        assert_int_equal (read (told, &last, sizeof last), sizeof last);
    }
    kill (pid, SIGKILL);
    int status;
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_true (WIFSIGNALED (status));
    uint64_t more;
    while (read (told, &more, sizeof more) == (ssize_t)sizeof more)
        last = more;
    return last;
}

static void check (const char *path, uint64_t told)
{
    struct err err = {0};
    struct store *store = store_open (path, steps, &err);
    if (!store)
        fail_msg ("%s", err.text);
    assert_ok (store_check (store, &err), err);
    struct store_stmt *q = store_stmt (
        store, "SELECT n, (SELECT next_seq - 1 FROM outbox_state), (SELECT count(*) FROM outbox),"
               " (SELECT max(seq) - min(seq) + 1 FROM outbox),"
               " (SELECT next_seq - 1 - acked FROM outbox_state) FROM counter");
    assert_int_equal (store_step (q, &err), 1);
    uint64_t n = (uint64_t)store_col_int (q, 0);
    assert_true (n >= told);     /* nothing that was told is lost … */
    assert_true (n <= told + 1); /* … and at most one commit was not told yet */
    assert_int_equal (store_col_int (q, 1), n);
    assert_int_equal (store_col_int (q, 2), store_col_int (q, 3));
    assert_int_equal (store_col_int (q, 2), store_col_int (q, 4));
    store_reset (q);
    store_close (store);
}

static void nothing_acknowledged_is_lost (void **state)
{
    struct scratch *s = *state;
    struct err err = {0};
    store_close (store_open (s->db, steps, &err));
    uint64_t told = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int pipe_fd[2];
        assert_int_equal (pipe (pipe_fd), 0);
        pid_t pid = fork ();
        assert_true (pid >= 0);
        if (pid == 0) {
            close (pipe_fd[0]);
            writer (s->db, pipe_fd[1]);
        }
        close (pipe_fd[1]);
        told = kill_after (pid, pipe_fd[0], TOLD_MIN + (unsigned)round % 5, told);
        close (pipe_fd[0]);
        check (s->db, told);
        /* A commit that was not told counts from now on. */
        struct store *store = store_open (s->db, steps, &err);
        struct store_stmt *q = store_stmt (store, "SELECT n FROM counter");
        assert_int_equal (store_step (q, &err), 1);
        told = (uint64_t)store_col_int (q, 0);
        store_close (store);
    }
    assert_true (told >= ROUNDS * TOLD_MIN);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (nothing_acknowledged_is_lost, scratch_setup,
                                         scratch_teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
