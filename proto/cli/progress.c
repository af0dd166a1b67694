/* progress: one line on stderr that says how far a long command is, when stderr is a terminal
 * and the first second is over. nui audit, reconcile and the simulators call it. It writes
 * nothing to stdout and nothing into a pipe, so that output that is read by programs stays as it
 * is. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/cli/client.h"

enum { FIRST_US = 1000000, REDRAW_US = 100000 };

struct cli_progress {
    const char *label;
    uint64_t total;
    duration_us started, drawn;
    bool on_terminal, visible;
};

struct cli_progress *cli_progress_start (const char *label, uint64_t total)
{
    struct cli_progress *p = calloc (1, sizeof *p);
    assert (p);
    p->label = label;
    p->total = total;
    p->started = clock_monotonic_us ();
    p->on_terminal = isatty (STDERR_FILENO);
    return p;
}

void cli_progress_update (struct cli_progress *p, uint64_t done)
{
    if (!p->on_terminal)
        return;
    duration_us now = clock_monotonic_us (), run = now - p->started;
    if (run < FIRST_US || now - p->drawn < REDRAW_US)
        return;
    p->drawn = now;
    p->visible = true;
    uint64_t rate = done / (uint64_t)(run / US_PER_S); /* run is at least a second */
    fprintf (stderr, "\r\033[K%s %" PRIu64, p->label, done);
    if (p->total)
        fprintf (stderr, "/%" PRIu64, p->total);
    fprintf (stderr, "  %" PRIu64 "/s", rate);
    if (p->total > done && done > 0) {
        char left[QUANTITY_TEXT_MAX];
        double left_us = (double)run * (double)(p->total - done) / (double)done;
        if (left_us < 1e15)
            fprintf (stderr, "  %s left", duration_format ((duration_us)left_us, left));
    }
    fflush (stderr);
}

void cli_progress_end (struct cli_progress *p)
{
    if (!p)
        return;
    if (p->visible)
        fputs ("\r\033[K", stderr);
    free (p);
}
