/* tape: what nui-bank's committer sends to PostgreSQL, recorded on its way, and played back by itself: the same
 * statements with the same rows in the same batches, but with no RPC, no signature and nothing to decide. What
 * PostgreSQL makes of it bounds every front that sends these rows.
 *
 * A recorder is a process between the two. It plays to a copy of the database that was made before. */
#ifndef NUI_TESTS_BENCH_BANK_TAPE_H
#define NUI_TESTS_BENCH_BANK_TAPE_H

#include <stdbool.h>

struct tape;

/* server_dir: where the server's socket is. Aborts when it cannot. */
struct tape *tape_record (const char *server_dir);
const char *
tape_dir (const struct tape *tape);    /* the recorder's socket: "host" for who is recorded */
void tape_end (struct tape *tape);     /* who was recorded has closed its connection */
void tape_destroy (struct tape *tape); /* NULL is a no-op; the recording goes with it */

struct tape_result {
    double seconds;     /* from the first COMMIT to the last */
    double postgres_us; /* CPU time of the backend in them */
    unsigned commits, errors;
};

/* To the database `to` where the recording says `from`, a name of the same length, as fast as the server takes it. */
struct tape_result tape_play (const struct tape *tape, const char *from, const char *to);

#endif
