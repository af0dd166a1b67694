/* tmpdir: the folder below which tests work, as for mkdtemp: TMPDIR, otherwise /tmp. deploy/test sets it. */
#ifndef TESTS_UNIT_TMPDIR_H
#define TESTS_UNIT_TMPDIR_H

#include <stdlib.h>

static inline const char *tmpdir (void)
{
    const char *said = getenv ("TMPDIR");
    return said && *said ? said : "/tmp";
}

#endif
