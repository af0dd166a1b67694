/* What a client has signed and has no answer for: who finds it again, and who does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meta/cli/remember.h"
#include "proto/base/clock.h"

struct signed_job {
    Nui__Common__V1__Job job;
    Nui__Common__V1__Envelope envelope;
    uint8_t uuid[16], body[512];
};

/* Signed now; nobody looks at the signature here. */
static void make (struct signed_job *s, const char *name, uint8_t number, duration_us valid)
{
    nui__common__v1__job__init (&s->job);
    nui__common__v1__envelope__init (&s->envelope);
    memset (s->uuid, number, sizeof s->uuid);
    s->job.grid = (char *)"demo";
    s->job.name = (char *)name;
    s->job.uuid = (ProtobufCBinaryData){sizeof s->uuid, s->uuid};
    s->job.created_us = clock_now_us ();
    s->job.expires_us = s->job.created_us + valid;
    s->job.cost_default = true;
    s->job.cost_max_micro = 100 + number;
    s->envelope.body =
        (ProtobufCBinaryData){nui__common__v1__job__get_packed_size (&s->job), s->body};
    assert_true (s->envelope.body.len <= sizeof s->body);
    nui__common__v1__job__pack (&s->job, s->body);
}

static uint32_t files (const char *home)
{
    char path[300];
    uint32_t count = 0;
    snprintf (path, sizeof path, "%s/.local/state/nui/unanswered", home);
    DIR *dir = opendir (path);
    for (struct dirent *e; dir && (e = readdir (dir));)
        count += e->d_name[0] != '.';
    if (dir)
        closedir (dir);
    return count;
}

static void what_has_no_answer_is_found_again (void **state)
{
    struct signed_job first, again, other;
    struct remembered *r, *found;
    char home[] = "/tmp/nui-remember-XXXXXX";
    (void)state;
    assert_non_null (mkdtemp (home));
    unsetenv ("XDG_STATE_HOME");
    setenv ("HOME", home, 1);
    make (&first, "one", 1, 3600 * US_PER_S);
    make (&again, "one", 2, 3600 * US_PER_S); /* the same request, signed another time */
    make (&other, "two", 3, 3600 * US_PER_S);
    assert_null (remember_find (&again.job, &again.envelope, &found));
    r = remember_begin (&first.job, &first.envelope);
    assert_non_null (r);
    assert_null (remember_find (&again.job, &again.envelope, &found)); /* it is on its way */
    remember_end (r, false);
    assert_null (remember_find (&other.job, &other.envelope, &found));
    Nui__Common__V1__Envelope *before = remember_find (&again.job, &again.envelope, &found);
    assert_non_null (before);
    assert_non_null (found);
    assert_int_equal (before->body.len, first.envelope.body.len);
    assert_memory_equal (before->body.data, first.body, before->body.len);
    nui__common__v1__envelope__free_unpacked (before, NULL);
    assert_int_equal (files (home), 1);
    remember_end (found, true); /* answered at last */
    assert_int_equal (files (home), 0);
    assert_null (remember_find (&again.job, &again.envelope, &found));
}

/* Its process is killed between sending and the answer. */
static void the_killed_leave_it (void **state)
{
    struct signed_job job;
    struct remembered *found;
    int status;
    (void)state;
    make (&job, "killed", 1, 3600 * US_PER_S);
    pid_t pid = fork ();
    if (pid == 0)
        _exit (remember_begin (&job.job, &job.envelope) ? 0 : 1);
    assert_int_equal (waitpid (pid, &status, 0), pid);
    assert_int_equal (status, 0);
    Nui__Common__V1__Envelope *before = remember_find (&job.job, &job.envelope, &found);
    assert_non_null (before);
    nui__common__v1__envelope__free_unpacked (before, NULL);
    remember_end (found, true);
}

static void the_expired_are_forgotten (void **state)
{
    struct signed_job old, now;
    struct remembered *found;
    (void)state;
    make (&old, "old", 1, 1);
    make (&now, "old", 2, 1);
    remember_end (remember_begin (&old.job, &old.envelope), false);
    assert_null (remember_find (&now.job, &now.envelope, &found));
    assert_int_equal (files (getenv ("HOME")), 0);
    setenv ("HOME", "/proc/nowhere", 1); /* no place: it goes on without */
    assert_null (remember_find (&now.job, &now.envelope, &found));
    assert_null (remember_begin (&now.job, &now.envelope));
    remember_end (NULL, true);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (what_has_no_answer_is_found_again),
        cmocka_unit_test (the_killed_leave_it),
        cmocka_unit_test (the_expired_are_forgotten),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
