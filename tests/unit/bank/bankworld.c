#include "tests/unit/bank/bankworld.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

int world_up (void **state)
{
    struct world *w = calloc (1, sizeof (*w));
    w->pg = pg_fixture_start (false);
    if (!w->pg)
        return -1;
    *state = w;
    return 0;
}

int world_down (void **state)
{
    struct world *w = *state;
    pg_fixture_stop (w->pg);
    free (w);
    return 0;
}

int world_fresh (void **state, const char *name, const char *config)
{
    static int n;
    struct world *w = *state;
    char database[32];
    snprintf (database, sizeof (database), "%s%d", name, ++n);
    const char *conninfo = pg_fixture_database (w->pg, database);
    bankd_open (&w->d, NUI_BANK_PROGRAM, conninfo, config);
    if (!bankd_wait_serving (&w->d, true))
        return -1;
    bankd_found (&w->d);
    w->sql = pg_fixture_connect (conninfo);
    return 0;
}

int world_closed (void **state)
{
    struct world *w = *state;
    PQfinish (w->sql);
    int status = bankd_stop (&w->d, SIGTERM);
    bankd_close (&w->d);
    return WIFEXITED (status) && WEXITSTATUS (status) == 0 ? 0 : -1;
}
