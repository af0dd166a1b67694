/* The store of what travels with jobs: whole, right and durable or not there; by owner; gone on with; swept. */
#include "../base/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/content/contents.h"

#define ALICE "nui://demo/user/alice"
#define BOB "nui://demo/user/bob"
#define HOUR (3600 * US_PER_S)

enum { BIG = 9 << 20, SHARE = 24 << 20 };

struct place {
    char dir[64];
    struct contents *contents;
    uint8_t *big;
    uint8_t sum[SHA256_BYTES];
};

static const struct contents_limits limits = {16 << 20, SHARE, HOUR};

static void reopen (struct place *p)
{
    struct err err = {0};
    contents_close (p->contents);
    p->contents = contents_open (p->dir, &limits, &err);
    if (!p->contents)
        fail_msg ("%s", err.text);
}

static int setup (void **state)
{
    struct place *p = calloc (1, sizeof *p);
    strcpy (p->dir, "/tmp/nui-contents-XXXXXX");
    if (!mkdtemp (p->dir))
        return -1;
    p->big = malloc (BIG);
    for (size_t i = 0; i < BIG; i++)
        p->big[i] = (uint8_t)(i * 2654435761u >> 13);
    sha256 (p->big, BIG, p->sum);
    reopen (p);
    *state = p;
    return 0;
}

static int teardown (void **state)
{
    struct place *p = *state;
    char command[128];
    contents_close (p->contents);
    snprintf (command, sizeof command, "rm -rf -- %s", p->dir);
    int rc = system (command);
    free (p->big);
    free (p);
    return rc;
}

/* What is left of it is given, as a client does it. Returns the code of the last call. */
static int give (struct place *p, const char *owner, const uint8_t *bytes, int64_t size,
                 const uint8_t sum[SHA256_BYTES], int64_t until, struct err *err)
{
    struct contents_state s;
    int rc = contents_put (p->contents, owner, sum, size, 0, NULL, 0, &s, err);
    while (rc == 0 && !s.whole && s.bytes < until) {
        int64_t left = until - s.bytes;
        size_t len = s.checking ? 0 : left > CONTENTS_PIECE_MAX ? CONTENTS_PIECE_MAX : (size_t)left;
        rc = contents_put (p->contents, owner, sum, size, s.bytes, bytes + s.bytes, len, &s, err);
    }
    return rc;
}

static bool has (struct place *p, const char *owner, const uint8_t sum[SHA256_BYTES],
                 const uint8_t *bytes, int64_t size)
{
    int64_t there;
    int fd;
    if (contents_read (p->contents, owner, sum, &fd, &there, NULL) != 0)
        return false;
    uint8_t *got = malloc ((size_t)size + 1);
    assert_int_equal (there, size);
    assert_int_equal (pread (fd, got, (size_t)size + 1, 0), size);
    assert_memory_equal (got, bytes, (size_t)size);
    free (got);
    close (fd);
    return true;
}

/* Files below the directory; and, of all, their time is set. */
static unsigned files (const struct place *p, int64_t age_s)
{
    char command[200], line[16] = "";
    if (age_s) {
        snprintf (command, sizeof command, "find %s -type f -exec touch -d '-%lld seconds' {} +",
                  p->dir, (long long)age_s);
        assert_int_equal (system (command), 0);
    }
    snprintf (command, sizeof command, "find %s -type f | wc -l", p->dir);
    FILE *pipe = popen (command, "r");
    assert_non_null (fgets (line, sizeof line, pipe));
    pclose (pipe);
    return (unsigned)atoi (line);
}

static void in_pieces (void **state)
{
    struct place *p = *state;
    struct err err = {0};
    struct contents_state s;
    uint8_t empty[SHA256_BYTES];
    assert_ok (give (p, ALICE, p->big, BIG, p->sum, BIG, &err), err);
    assert_true (has (p, ALICE, p->sum, p->big, BIG));
    assert_false (has (p, BOB, p->sum, p->big, BIG)); /* who has never shown that he has it */
    assert_ok (contents_put (p->contents, ALICE, p->sum, BIG, 0, NULL, 0, &s, &err), err);
    assert_true (s.whole); /* once for each content */
    assert_int_equal (contents_put (p->contents, ALICE, p->sum, 7, 0, NULL, 0, &s, &err),
                      ERR_CONFLICT);
    sha256 ("", 0, empty);
    assert_ok (contents_put (p->contents, ALICE, empty, 0, 0, NULL, 0, &s, &err), err);
    assert_true (s.whole && has (p, ALICE, empty, p->big, 0));
    reopen (p);
    assert_true (has (p, ALICE, p->sum, p->big, BIG));
}

/* What comes twice, or not at the end, does no harm; what was there before a kill is read again. */
static void gone_on_with (void **state)
{
    struct place *p = *state;
    struct err err = {0};
    struct contents_state s;
    unsigned checks = 0;
    assert_ok (give (p, ALICE, p->big, BIG, p->sum, 5 << 20, &err), err);
    assert_ok (contents_put (p->contents, ALICE, p->sum, BIG, 0, p->big, 1000, &s, &err), err);
    assert_int_equal (s.bytes, 5 << 20);
    assert_ok (contents_put (p->contents, ALICE, p->sum, BIG, 6 << 20, p->big, 1000, &s, &err),
               err);
    assert_int_equal (s.bytes, 5 << 20);
    assert_false (has (p, ALICE, p->sum, p->big, BIG));
    reopen (p); /* nothing of it was in memory only */
    do {
        assert_ok (contents_put (p->contents, ALICE, p->sum, BIG, 0, p->big, 1000, &s, &err), err);
        checks += s.checking;
    } while (s.checking);
    assert_int_equal (checks, 1); /* 4 of 5 MiB, then the rest */
    assert_int_equal (s.bytes, 5 << 20);
    assert_ok (give (p, ALICE, p->big, BIG, p->sum, BIG, &err), err);
    assert_true (has (p, ALICE, p->sum, p->big, BIG));
    assert_int_equal (files (p, 0), 1);
}

static void another_than_was_said (void **state)
{
    struct place *p = *state;
    struct err err = {0};
    uint8_t wrong[SHA256_BYTES];
    memcpy (wrong, p->sum, sizeof wrong);
    wrong[31] ^= 1;
    assert_int_equal (give (p, ALICE, p->big, BIG, wrong, BIG, &err), ERR_CONFLICT);
    assert_contains (err.text, "another SHA-256");
    assert_int_equal (files (p, 0), 0);
    assert_false (has (p, ALICE, wrong, p->big, BIG));
    /* Nor a beginning of it that lay there. */
    assert_ok (give (p, ALICE, p->big, BIG, wrong, BIG - 10, &err), err);
    reopen (p);
    assert_int_equal (give (p, ALICE, p->big, BIG, wrong, BIG, &err), ERR_CONFLICT);
    assert_int_equal (files (p, 0), 0);
}

static void limits_hold (void **state)
{
    struct place *p = *state;
    struct err err = {0};
    struct contents_state s;
    uint8_t sum[SHA256_BYTES];
    assert_int_equal (
        contents_put (p->contents, ALICE, p->sum, (16 << 20) + 1, 0, NULL, 0, &s, &err), ERR_LIMIT);
    assert_contains (err.text, "--stage-in");
    assert_int_equal (contents_put (p->contents, ALICE, p->sum, 10, 8, p->big, 3, &s, &err),
                      ERR_INVALID);
    assert_int_equal (contents_put (p->contents, ALICE, p->sum, -1, 0, NULL, 0, &s, &err),
                      ERR_INVALID);
    /* Parts count with what they will be. */
    for (int i = 0; i < 2; i++) {
        memset (sum, i, sizeof sum);
        assert_ok (contents_put (p->contents, ALICE, sum, 10 << 20, 0, p->big, 10, &s, &err), err);
    }
    memset (sum, 9, sizeof sum);
    for (int i = 0; i < 2; i++) {
        assert_int_equal (contents_put (p->contents, ALICE, sum, 10 << 20, 0, p->big, 10, &s, &err),
                          ERR_LIMIT);
        assert_contains (err.text, "INPUTSHARE");
        reopen (p); /* counted from the disk */
    }
    assert_ok (give (p, BOB, p->big, BIG, p->sum, BIG, &err), err);
    /* What nobody has asked for lately makes room; what a job needs does not. */
    assert_int_equal (files (p, 1200), 3);
    assert_ok (contents_put (p->contents, ALICE, sum, 10 << 20, 0, p->big, 10, &s, &err), err);
    assert_int_equal (files (p, 0), 2);
    contents_hold (p->contents, BOB, p->sum);
    files (p, 1200);
    assert_int_equal (contents_put (p->contents, BOB, sum, 16 << 20, 0, p->big, 10, &s, &err),
                      ERR_LIMIT);
    contents_drop (p->contents, BOB, p->sum);
    assert_ok (contents_put (p->contents, BOB, sum, 16 << 20, 0, p->big, 10, &s, &err), err);
    contents_limits_set (p->contents, &(struct contents_limits){0, SHARE, HOUR});
    assert_int_equal (contents_put (p->contents, BOB, p->sum, 1, 0, NULL, 0, &s, &err), ERR_LIMIT);
    assert_contains (err.text, "INPUTMAX");
}

static void swept (void **state)
{
    struct place *p = *state;
    struct err err = {0};
    uint8_t sum[SHA256_BYTES];
    assert_ok (give (p, ALICE, p->big, BIG, p->sum, BIG, &err), err);
    sha256 (p->big, 100, sum);
    assert_ok (give (p, ALICE, p->big, 100, sum, 100, &err), err);
    assert_ok (give (p, BOB, p->big, 100, sum, 50, &err), err);
    contents_hold (p->contents, ALICE, p->sum);
    contents_hold (p->contents, ALICE, p->sum);
    contents_drop (p->contents, ALICE, p->sum);
    for (int i = 0; i < 6; i++)
        contents_sweep (p->contents, clock_now_us ());
    assert_int_equal (files (p, 7200), 3);
    for (int i = 0; i < 6; i++)
        contents_sweep (p->contents, clock_now_us ());
    assert_int_equal (files (p, 0), 1);
    assert_true (has (p, ALICE, p->sum, p->big, BIG)); /* and has been asked for */
    contents_drop (p->contents, ALICE, p->sum);
    for (int i = 0; i < 6; i++)
        contents_sweep (p->contents, clock_now_us ());
    assert_int_equal (files (p, 7200), 1);
    for (int i = 0; i < 6; i++)
        contents_sweep (p->contents, clock_now_us ());
    assert_int_equal (files (p, 0), 0);
    assert_int_equal (rmdir (p->dir), 0); /* nor folders */
    assert_int_equal (mkdir (p->dir, 0700), 0);
}

/* Each of two that began when there was room for one has its share; what both would need is not there. */
static void half_sent_files_leave_the_disk_its_room (void **state)
{
    struct place *p = *state;
    struct err err = {0};
    struct statvfs fs;
    if (mount ("none", p->dir, "tmpfs", 0, "size=12m,mode=0700") != 0)
        skip (); /* not root, or not here */
    reopen (p);
    assert_int_equal (give (p, ALICE, p->big, BIG, p->sum, 1 << 20, &err), 0);
    assert_int_equal (give (p, BOB, p->big, BIG, p->sum, 1 << 20, &err), 0);
    assert_int_equal (give (p, ALICE, p->big, BIG, p->sum, BIG - 1, &err), 0);
    assert_int_equal (give (p, BOB, p->big, BIG, p->sum, BIG, &err), ERR_LIMIT);
    assert_non_null (strstr (err.text, "no room on the disk"));
    assert_int_equal (statvfs (p->dir, &fs), 0);
    assert_true (fs.f_bavail >= fs.f_blocks / 20);
    contents_close (p->contents);
    p->contents = NULL;
    assert_int_equal (umount2 (p->dir, MNT_DETACH), 0);
}

/* A sweep is one turn of the daemon's loop. */
static void much_is_swept_in_several_turns (void **state)
{
    struct place *p = *state;
    struct err err = {0};
    uint8_t sum[SHA256_BYTES];
    for (uint32_t i = 0; i < 300; i++) {
        sha256 (&i, sizeof i, sum);
        assert_int_equal (give (p, ALICE, (const uint8_t *)&i, sizeof i, sum, sizeof i, &err), 0);
    }
    unsigned before = files (p, 7200), turns = 0;
    assert_int_equal (before, 300);
    for (unsigned left = before; left > 0; turns++) {
        contents_sweep (p->contents, clock_now_us ());
        unsigned now = files (p, 7200);
        assert_in_range (left - now, 0, 128);
        left = now;
        assert_in_range (turns, 0, 20);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (in_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown (gone_on_with, setup, teardown),
        cmocka_unit_test_setup_teardown (another_than_was_said, setup, teardown),
        cmocka_unit_test_setup_teardown (limits_hold, setup, teardown),
        cmocka_unit_test_setup_teardown (swept, setup, teardown),
        cmocka_unit_test_setup_teardown (half_sent_files_leave_the_disk_its_room, setup, teardown),
        cmocka_unit_test_setup_teardown (much_is_swept_in_several_turns, setup, teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
