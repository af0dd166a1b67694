/* A fresh folder for a test's database. */
#ifndef NUI_TESTS_SCRATCH_H
#define NUI_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/tmpdir.h"

struct scratch {
    char dir[64];
    char db[96];
};

static inline int scratch_setup (void **state)
{
    struct scratch *s = calloc (1, sizeof *s);
    snprintf (s->dir, sizeof s->dir, "%s/nui-store-XXXXXX", tmpdir ());
    if (!s || !mkdtemp (s->dir))
        return -1;
    snprintf (s->db, sizeof s->db, "%s/state.db", s->dir);
    *state = s;
    return 0;
}

static inline int scratch_teardown (void **state)
{
    struct scratch *s = *state;
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        char path[128];
        snprintf (path, sizeof path, "%s%s", s->db, ends[i]);
        unlink (path);
    }
    rmdir (s->dir);
    free (s);
    return 0;
}

#endif
