/* Runs a piece of a test with stdout and stderr going to files. */
#ifndef NUI_TESTS_CAPTURE_H
#define NUI_TESTS_CAPTURE_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char captured[2][65536]; /* stdout, stderr */

static int capture_saved[2];
static FILE *capture_file[2];

static inline void capture_begin (void)
{
    fflush (NULL);
    for (int i = 0; i < 2; i++) {
        capture_file[i] = tmpfile ();
        capture_saved[i] = dup (i + 1);
        dup2 (fileno (capture_file[i]), i + 1);
    }
}

static inline void capture_end (void)
{
    fflush (NULL);
    for (int i = 0; i < 2; i++) {
        dup2 (capture_saved[i], i + 1);
        close (capture_saved[i]);
        ssize_t n = pread (fileno (capture_file[i]), captured[i], sizeof captured[i] - 1, 0);
        captured[i][n > 0 ? n : 0] = '\0';
        fclose (capture_file[i]);
    }
}

#endif
