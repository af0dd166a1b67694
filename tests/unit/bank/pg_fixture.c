#include "tests/unit/bank/pg_fixture.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"

enum { DATABASES_MAX = 64 };

struct pg_fixture {
    char dir[256], bin[256], data[300], log[300];
    char conninfo[DATABASES_MAX][512];
    unsigned databases;
    bool sync, archive;
    pid_t pid;
};

static bool find_bin (char *out, size_t cap)
{
    glob_t found;
    bool ok = glob ("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0 && found.gl_pathc > 0;
    if (ok) {
        snprintf (out, cap, "%s", found.gl_pathv[found.gl_pathc - 1]);
        *strrchr (out, '/') = '\0';
    }
    globfree (&found);
    return ok;
}

/* In the child: PostgreSQL refuses root. */
static void drop_root (void)
{
    const struct passwd *pw = geteuid () == 0 ? getpwnam ("postgres") : NULL;
    if (geteuid () != 0)
        return;
    if (!pw)
        pw = getpwnam ("nobody");
    if (!pw || setgroups (0, NULL) != 0 || setgid (pw->pw_gid) != 0 || setuid (pw->pw_uid) != 0)
        _exit (126);
}

static pid_t run (const struct pg_fixture *pg, const char *const argv[])
{
    pid_t parent = getpid ();
    pid_t pid = fork ();
    if (pid != 0)
        return pid;
    int fd = open (pg->log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2 (fd, 1);
    dup2 (fd, 2);
    drop_root ();
    prctl (PR_SET_PDEATHSIG, SIGINT);
    if (getppid () != parent || chdir (pg->dir) != 0)
        _exit (127);
    execv (argv[0], (char *const *)(uintptr_t)argv);
    _exit (127);
}

static bool wait_ok (pid_t pid)
{
    int status;
    while (waitpid (pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED (status) && WEXITSTATUS (status) == 0;
}

static bool start_server (struct pg_fixture *pg)
{
    char program[320], sockdir[320], conninfo[512], archive[320];
    snprintf (program, sizeof (program), "%s/postgres", pg->bin);
    snprintf (sockdir, sizeof (sockdir), "unix_socket_directories=%s", pg->dir);
    snprintf (archive, sizeof (archive), "archive_command=cp %%p %s/wal/%%f", pg->dir);
    const char *const argv[] = {program,
                                "-D",
                                pg->data,
                                "-c",
                                pg->archive ? "archive_mode=on" : "archive_mode=off",
                                "-c",
                                archive,
                                "-c",
                                sockdir,
                                "-c",
                                "listen_addresses=",
                                "-c",
                                "max_connections=100",
                                "-c",
                                pg->sync ? "fsync=on" : "fsync=off",
                                "-c",
                                "unix_socket_permissions=0777",
                                "-c",
                                "shared_buffers=128MB",
                                NULL};
    pg->pid = run (pg, argv);
    if (pg->pid < 0)
        return false;
    snprintf (conninfo, sizeof (conninfo), "host=%s dbname=postgres user=bank", pg->dir);
    duration_us deadline = clock_monotonic_us () + 240 * US_PER_S;
    while (PQping (conninfo) != PQPING_OK) {
        struct timespec pause = {0, 20000000};
        int status;
        if (waitpid (pg->pid, &status, WNOHANG) == pg->pid || clock_monotonic_us () > deadline) {
            fprintf (stderr, "pg_fixture: PostgreSQL did not start, see %s\n", pg->log);
            return false;
        }
        nanosleep (&pause, NULL);
    }
    return true;
}

/* A fixture without a server; NULL after a sentence. */
static struct pg_fixture *fixture_new (bool sync)
{
    struct pg_fixture *pg = calloc (1, sizeof (*pg));
    const char *tmp = getenv ("TMPDIR");
    assert (pg);
    pg->sync = sync;
    if (!find_bin (pg->bin, sizeof (pg->bin))) {
        fprintf (stderr, "pg_fixture: no PostgreSQL server under /usr/lib/postgresql\n");
        free (pg);
        return NULL;
    }
    snprintf (pg->dir, sizeof (pg->dir), "%s/nui-pg-XXXXXX",
              tmp && strlen (tmp) < 60 ? tmp : "/tmp");
    if (!mkdtemp (pg->dir) || chmod (pg->dir, 0777) != 0) {
        perror ("pg_fixture: mkdtemp");
        free (pg);
        return NULL;
    }
    snprintf (pg->data, sizeof (pg->data), "%s/data", pg->dir);
    snprintf (pg->log, sizeof (pg->log), "%s/log", pg->dir);
    return pg;
}

static struct pg_fixture *start_new (bool sync, bool archive)
{
    struct pg_fixture *pg = fixture_new (sync);
    char program[320], wal[300];
    if (!pg)
        return NULL;
    pg->archive = archive;
    snprintf (wal, sizeof (wal), "%s/wal", pg->dir);
    if (archive && (mkdir (wal, 0777) != 0 || chmod (wal, 0777) != 0))
        abort ();
    snprintf (program, sizeof (program), "%s/initdb", pg->bin);
    const char *const argv[] = {program, "-D", pg->data, "-U",   "bank",       "-A",
                                "trust", "-N", "-E",     "UTF8", "--locale=C", NULL};
    if (!wait_ok (run (pg, argv)) || !start_server (pg)) {
        fprintf (stderr, "pg_fixture: see %s\n", pg->log);
        pg_fixture_stop (pg);
        return NULL;
    }
    return pg;
}

struct pg_fixture *pg_fixture_start (bool sync)
{
    return start_new (sync, false);
}

struct pg_fixture *pg_fixture_start_archiving (void)
{
    return start_new (false, true);
}

bool pg_fixture_backup (struct pg_fixture *pg)
{
    char program[320], target[300];
    snprintf (program, sizeof (program), "%s/pg_basebackup", pg->bin);
    snprintf (target, sizeof (target), "%s/backup", pg->dir);
    const char *const argv[] = {program, "-h",   pg->dir, "-U",     "bank",
                                "-D",    target, "-X",    "stream", "--checkpoint=fast",
                                NULL};
    return wait_ok (run (pg, argv));
}

struct pg_fixture *pg_fixture_from_backup (struct pg_fixture *from, const char *signal_file,
                                           const char *settings)
{
    struct pg_fixture *pg = fixture_new (false);
    char script[2048];
    if (!pg)
        return NULL;
    snprintf (script, sizeof (script),
              "cp -a '%s/backup' '%s' && touch '%s/%s' && printf '%%s\\n' \"restore_command = 'cp "
              "%s/wal/%%f %%p'\" \"%s\" >> '%s/postgresql.auto.conf'",
              from->dir, pg->data, pg->data, signal_file, from->dir, settings, pg->data);
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    if (!wait_ok (run (pg, argv)) || !start_server (pg)) {
        fprintf (stderr, "pg_fixture: see %s\n", pg->log);
        pg_fixture_stop (pg);
        return NULL;
    }
    return pg;
}

const char *pg_fixture_dir (const struct pg_fixture *pg)
{
    return pg->dir;
}

static int remove_one (const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove (path);
}

void pg_fixture_stop (struct pg_fixture *pg)
{
    if (!pg)
        return;
    if (pg->pid > 0) {
        kill (pg->pid, SIGQUIT); /* immediate: nothing of it is kept */
        waitpid (pg->pid, NULL, 0);
    }
    nftw (pg->dir, remove_one, 32, FTW_DEPTH | FTW_PHYS);
    free (pg);
}

void pg_fixture_crash (struct pg_fixture *pg)
{
    /* SIGQUIT makes the backends stop without writing anything: what a power cut leaves. */
    kill (pg->pid, SIGQUIT);
    waitpid (pg->pid, NULL, 0);
    pg->pid = 0;
}

bool pg_fixture_again (struct pg_fixture *pg)
{
    return start_server (pg);
}

PGconn *pg_fixture_connect (const char *conninfo)
{
    PGconn *conn = PQconnectdb (conninfo);
    if (PQstatus (conn) != CONNECTION_OK) {
        fprintf (stderr, "pg_fixture: %s\n", PQerrorMessage (conn));
        abort ();
    }
    PQclear (PQexec (conn, "SET search_path = bank, pg_catalog; SET client_min_messages = error"));
    return conn;
}

static void outside (const struct pg_fixture *pg, const char *sql)
{
    char conninfo[512];
    snprintf (conninfo, sizeof (conninfo), "host=%s dbname=postgres user=bank", pg->dir);
    PGconn *conn = pg_fixture_connect (conninfo);
    pg_fixture_run (conn, sql);
    PQfinish (conn);
}

void pg_fixture_copy (struct pg_fixture *pg, const char *from, const char *name)
{
    char sql[256];
    snprintf (sql, sizeof (sql), "DROP DATABASE IF EXISTS %s WITH (FORCE)", name);
    outside (pg, sql);
    snprintf (sql, sizeof (sql), "CREATE DATABASE %s TEMPLATE %s", name, from);
    outside (pg, sql);
}

const char *pg_fixture_database (struct pg_fixture *pg, const char *name)
{
    char conninfo[512], sql[128];
    assert (pg->databases < DATABASES_MAX);
    snprintf (sql, sizeof (sql), "CREATE DATABASE %s", name);
    outside (pg, sql);
    char *out = pg->conninfo[pg->databases++];
    snprintf (conninfo, sizeof (conninfo), "host=%s dbname=%s user=bank", pg->dir, name);
    memcpy (out, conninfo, sizeof (conninfo));
    return out;
}

char *pg_fixture_value (PGconn *conn, const char *sql)
{
    PGresult *res = PQexec (conn, sql);
    if (PQresultStatus (res) != PGRES_TUPLES_OK || PQntuples (res) < 1) {
        fprintf (stderr, "pg_fixture: %s: %s\n", sql, PQresultErrorMessage (res));
        abort ();
    }
    char *out = strdup (PQgetvalue (res, 0, 0));
    PQclear (res);
    return out;
}

long long pg_fixture_number (PGconn *conn, const char *sql)
{
    char *text = pg_fixture_value (conn, sql);
    long long n = atoll (text);
    free (text);
    return n;
}

void pg_fixture_run (PGconn *conn, const char *sql)
{
    PGresult *res = PQexec (conn, sql);
    ExecStatusType status = PQresultStatus (res);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fprintf (stderr, "pg_fixture: %s: %s\n", sql, PQresultErrorMessage (res));
        abort ();
    }
    PQclear (res);
}
