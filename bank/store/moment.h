/* moment: the ledger's time, which never jumps. Pure: whoever asks says what the clocks show.
 *
 * A moment that is given out is later than every one before it, also over restarts. It is the machine's wall clock as
 * long as that can be believed: it is compared with the monotonic clock of the same machine since it was last
 * believed, and at the beginning with the database's. More than the bound ahead of both it is not believed: nothing
 * may be decided at it, since what expires by it expires for good. A clock that is behind does no harm: the ledger
 * goes on from its last moment. */
#ifndef NUI_BANK_STORE_MOMENT_H
#define NUI_BANK_STORE_MOMENT_H

#include "proto/base/quantity.h"

struct moment {
    duration_us bound;
    time_us last;     /* that was given out, or recorded before */
    time_us wall;     /* that was believed … */
    duration_us boot; /* … when the monotonic clock showed this; 0: nothing yet */
    bool accepted;    /* an operator's word, against the database's clock */
};

struct moment_now {
    time_us wall;
    duration_us boot; /* monotonic */
};

/* The database shows `database`, and the last operation was recorded at `recorded` (0: there is none). */
void moment_begin (struct moment *m, struct moment_now now, time_us database, time_us recorded);
/* How far ahead the clock is of what can be believed; 0: not beyond the bound. */
duration_us moment_ahead (const struct moment *m, struct moment_now now);
/* How far behind the last moment the clock is; 0: not beyond the bound. */
duration_us moment_behind (const struct moment *m, struct moment_now now);
/* What can be believed: the clock, or without its step ahead. */
time_us moment_is (const struct moment *m, struct moment_now now);
/* The next one; by what can be believed when the clock cannot. */
time_us moment_next (struct moment *m, struct moment_now now);
/* The clock is right, whatever was believed. */
void moment_accept (struct moment *m, struct moment_now now);

#endif
