/* pg_fixture: a private PostgreSQL for a test: own directory under $TMPDIR, Unix socket only, run
 * as an unprivileged account when the test is root, stopped and removed by its pid. It also stops
 * when the test dies. */
#ifndef NUI_TESTS_BANK_PG_FIXTURE_H
#define NUI_TESTS_BANK_PG_FIXTURE_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <sys/types.h>

struct pg_fixture;

/* NULL, with a sentence on stderr, when there is no PostgreSQL or it does not start. sync: fsync as
 * in production (for measuring), else faster. */
struct pg_fixture *pg_fixture_start (bool sync);
void pg_fixture_stop (struct pg_fixture *pg);
/* Creates an empty database and returns libpq's conninfo for it (owned by the fixture). */
const char *pg_fixture_database (struct pg_fixture *pg, const char *name);
/* Makes a database anew as another one is, which nobody may be connected to. */
void pg_fixture_copy (struct pg_fixture *pg, const char *from, const char *name);
/* A blocking connection for the test's own questions; asserts that it works. */
PGconn *pg_fixture_connect (const char *conninfo);
/* One value as text (malloc'ed) of a query; fails the test on an error. */
char *pg_fixture_value (PGconn *conn, const char *sql);
long long pg_fixture_number (PGconn *conn, const char *sql);
void pg_fixture_run (PGconn *conn, const char *sql); /* statements; fails the test likewise */
/* kill -9 of the server with all its backends, and a start on the same files. */
void pg_fixture_crash (struct pg_fixture *pg);
bool pg_fixture_again (struct pg_fixture *pg);

/* A server that archives what it writes, so that it can be backed up and restored to a moment. */
struct pg_fixture *pg_fixture_start_archiving (void);
bool pg_fixture_backup (struct pg_fixture *pg); /* once */
/* Another server from the backup of one that archives: signal_file "recovery.signal" or
 * "standby.signal", settings as lines of postgresql.conf (in single quotes where any). */
struct pg_fixture *pg_fixture_from_backup (struct pg_fixture *from, const char *signal_file,
                                           const char *settings);
const char *pg_fixture_dir (const struct pg_fixture *pg); /* where its socket is: "host" */

#endif
