/* What a job's processes use is counted whoever forked them: here a thread that is not the first. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "local/rm/embedded/process_use.h"

enum { MB = 256 };

struct forked {
    pid_t pid;
    int ready, leave[2];
};

/* A child that has touched MB of memory and used the processor, then waits; the thread stays. */
static void *fork_there (void *arg)
{
    struct forked *forked = arg;
    char one = 0;
    int told[2];
    assert_int_equal (pipe (told), 0);
    forked->pid = fork ();
    if (forked->pid == 0) {
        char *memory = malloc ((size_t)MB << 20);
        while (memory && clock () < CLOCKS_PER_SEC / 5)
            memset (memory, (int)clock (), (size_t)MB << 20);
        if (write (told[1], "x", 1) == 1)
            pause ();
        _exit (0);
    }
    assert_int_equal (read (told[0], &one, 1), 1);
    close (told[0]);
    close (told[1]);
    assert_int_equal (write (forked->ready, "x", 1), 1);
    assert_int_equal (read (forked->leave[0], &one, 1), 1);
    return NULL;
}

static void children_of_threads_count (void **state)
{
    struct forked forked = {0};
    pthread_t thread;
    int ready[2];
    char one;
    (void)state;
    assert_int_equal (pipe (ready), 0);
    assert_int_equal (pipe (forked.leave), 0);
    forked.ready = ready[1];
    int64_t before = cpu_time_below (getpid ());
    assert_int_equal (pthread_create (&thread, NULL, fork_there, &forked), 0);
    assert_int_equal (read (ready[0], &one, 1), 1);
    assert_true (memory_below_mb (getpid ()) >= MB);
    assert_true (cpu_time_below (getpid ()) - before >= 150000);
    assert_int_equal (write (forked.leave[1], "x", 1), 1);
    pthread_join (thread, NULL);
    kill (forked.pid, SIGKILL);
    waitpid (forked.pid, NULL, 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (children_of_threads_count)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
