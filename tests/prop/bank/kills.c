/* bank_kills [ROUNDS [SEED]]: disasters while jobs are held and charged, over and over on one ledger.
 *
 * Each round sends holds, and a charge for each that was granted, many at a time; in the middle one of six
 * happens: kill -9 of nui-bank, of all its backends, of PostgreSQL whole, the connection is cut when COMMIT
 * was sent and before its answer (a relay between the two does it), or the end of one of the two backends that write. Then everything is sent again under its
 * keys, as sites do, until all is answered. What was acknowledged before must be answered the same, byte for
 * byte as far as a reply says; each hold and charge is there once; nothing stays held; credits are conserved. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/rpc/envelope.h"
#include "tests/unit/bank/bankd.h"
#include "tests/unit/bank/pg_fixture.h"

#define TEXT(s) ((char *)(uintptr_t)(s))

enum { JOBS = 240, FLIGHT = 96, ROUNDS = 6, DISASTERS = 6, RELAYS_MAX = 16 };

static const char *const disaster_name[DISASTERS] = {"kill -9 of nui-bank",
                                                     "its backends ended",
                                                     "kill -9 of PostgreSQL",
                                                     "cut after COMMIT was sent",
                                                     "the first writing backend ended",
                                                     "the second writing backend ended"};

struct kills;

struct job {
    struct kills *k;
    int number;
    Nui__Common__V1__Envelope *envelope;
    bool charging, done;
    char hold[32], first_hold[32];  /* as answered now, and the first time */
    int64_t charged, first_charged; /* -1: not yet */
};

struct kills {
    struct pg_fixture *pg;
    struct bankd d;
    PGconn *sql;
    const char *conninfo;
    pid_t relay;
    volatile int *cuts; /* the relay's, so far */
    int round, next, flying, answered;
    time_us use;
    struct job job[JOBS];
};

static void die (struct kills *k, const char *what, const char *detail)
{
    fprintf (stderr, "bank_kills: round %d: %s %s\n", k->round, what, detail);
    bankd_stop (&k->d, SIGKILL);
    pg_fixture_stop (k->pg);
    exit (1);
}

/* --- a relay between nui-bank and PostgreSQL ---------------------------------------------------- */

static volatile sig_atomic_t cut_wanted;

static void on_cut (int sig)
{
    (void)sig;
    cut_wanted = 1;
}

static bool all_sent (int fd, const char *bytes, ssize_t len)
{
    for (ssize_t sent; len > 0; bytes += sent, len -= sent)
        if ((sent = send (fd, bytes, (size_t)len, MSG_NOSIGNAL)) <= 0)
            return false;
    return true;
}

/* One chunk; false: the pair is over. COMMIT goes through, its answer does not come back. */
static bool chunk_relayed (struct kills *k, int from, int to, bool from_bank)
{
    static char bytes[65536];
    ssize_t len = recv (from, bytes, sizeof (bytes), 0);
    if (len <= 0 || !all_sent (to, bytes, len))
        return false;
    if (from_bank && cut_wanted && memmem (bytes, (size_t)len, "commit", 6)) {
        cut_wanted = 0;
        ++*k->cuts;
        return false;
    }
    return true;
}

static int unix_socket (const char *path, bool listening)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert (fd >= 0 && strlen (path) < sizeof (at.sun_path));
    strcpy (at.sun_path, path);
    int rc = listening ? bind (fd, (struct sockaddr *)&at, sizeof (at))
                       : connect (fd, (struct sockaddr *)&at, sizeof (at));
    if (rc == 0 && (!listening || listen (fd, 16) == 0))
        return fd;
    close (fd);
    return -1;
}

static void relay_run (struct kills *k, int listener, const char *server)
{
    struct pollfd fd[1 + 2 * RELAYS_MAX];
    nfds_t count = 1; /* then pairs: the bank's side, PostgreSQL's side */
    fd[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (;;) {
        if (poll (fd, count, -1) < 0) {
            if (errno == EINTR)
                continue;
            _exit (1);
        }
        for (nfds_t i = 1; i < count; i += 2) {
            bool good = true;
            if (fd[i].revents)
                good = chunk_relayed (k, fd[i].fd, fd[i + 1].fd, true);
            if (good && fd[i + 1].revents)
                good = chunk_relayed (k, fd[i + 1].fd, fd[i].fd, false);
            if (good)
                continue;
            close (fd[i].fd);
            close (fd[i + 1].fd);
            fd[i] = fd[count - 2];
            fd[i + 1] = fd[count - 1];
            count -= 2;
            break; /* what moved is looked at after the next poll */
        }
        if (fd[0].revents && count + 2 <= sizeof (fd) / sizeof (fd[0])) {
            int bank = accept (listener, NULL, NULL), pg = unix_socket (server, false);
            if (bank >= 0 && pg >= 0) {
                fd[count++] = (struct pollfd){.fd = bank, .events = POLLIN};
                fd[count++] = (struct pollfd){.fd = pg, .events = POLLIN};
            } else { /* PostgreSQL is away */
                if (bank >= 0)
                    close (bank);
                if (pg >= 0)
                    close (pg);
            }
        }
    }
}

/* What libpq is told instead, to go through the relay. */
static void relay_start (struct kills *k, const char *folder, char through[512])
{
    char host[256], rest[256], server[400], mine[400];
    int words = sscanf (k->conninfo, "host=%255s %255[^\n]", host, rest);
    assert (words == 2);
    snprintf (server, sizeof (server), "%s/.s.PGSQL.5432", host);
    snprintf (mine, sizeof (mine), "%s/.s.PGSQL.5432", folder);
    snprintf (through, 512, "host=%s %s", folder, rest);
    int listener = unix_socket (mine, true);
    k->cuts =
        mmap (NULL, sizeof (*k->cuts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert (listener >= 0 && k->cuts != MAP_FAILED);
    k->relay = fork ();
    assert (k->relay >= 0);
    if (k->relay == 0) {
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        struct sigaction act = {.sa_handler = on_cut};
        sigaction (SIGUSR1, &act, NULL);
        relay_run (k, listener, server);
    }
    close (listener);
}

/* --- jobs ------------------------------------------------------------------------------------- */

static void launch (struct kills *k);

static void key_of (const struct job *j, bool charge, uint8_t key[16])
{
    memset (key, 0, 16);
    key[0] = 1 + charge;
    memcpy (key + 4, &j->k->round, sizeof (j->k->round));
    memcpy (key + 8, &j->number, sizeof (j->number));
}

static void send_job (struct job *j, const char *method, const ProtobufCMessage *m,
                      void (*done) (void *arg, const struct rpc_result *result))
{
    struct rpccallout_config c = {.service = &nui__bank__v1__bank__descriptor,
                                  .method = method,
                                  .request = m,
                                  .timeout = 20 * US_PER_S,
                                  .done = done,
                                  .arg = j};
    rpcclient_start (j->k->d.client[WHO_ALPHA], &c);
}

static void job_over (struct job *j)
{
    j->k->flying--;
    launch (j->k);
}

static void on_charge (void *arg, const struct rpc_result *result)
{
    struct job *j = arg;
    if (result->status == RPC_OK) {
        j->charged = ((const Nui__Bank__V1__ChargeReply *)result->reply)->charged_micro;
        if (j->first_charged < 0)
            j->first_charged = j->charged;
        if (j->charged != j->first_charged)
            die (j->k, "a charge was answered otherwise:", j->hold);
        j->done = true;
        j->k->answered++;
    }
    job_over (j);
}

static void on_hold (void *arg, const struct rpc_result *result)
{
    struct job *j = arg;
    uint8_t key[16];
    if (result->status != RPC_OK) {
        job_over (j);
        return;
    }
    const Nui__Bank__V1__HoldReply *r = (const Nui__Bank__V1__HoldReply *)result->reply;
    if (!r->granted)
        die (j->k, "not granted:", r->reason->text);
    snprintf (j->hold, sizeof (j->hold), "%s", r->hold_id);
    if (!*j->first_hold)
        snprintf (j->first_hold, sizeof (j->first_hold), "%s", r->hold_id);
    if (strcmp (j->hold, j->first_hold) != 0)
        die (j->k, "a hold was answered otherwise:", j->hold);
    Nui__Bank__V1__ChargeRequest m = NUI__BANK__V1__CHARGE_REQUEST__INIT;
    char name[48];
    key_of (j, true, key);
    snprintf (name, sizeof (name), "alpha.%d", j->k->round * JOBS + j->number + 1);
    m.key = (ProtobufCBinaryData){16, key};
    m.hold_id = j->hold;
    m.grid_job_id = TEXT ("grid.1");
    m.site_job_id = name;
    m.component = TEXT ("main");
    m.procs = 1;
    m.start_us = j->k->use;
    m.end_us = j->k->use + 8 * US_PER_S;
    m.final = m.successful = true;
    send_job (j, "Charge", &m.base, on_charge);
}

static void launch (struct kills *k)
{
    while (k->flying < FLIGHT && k->next < JOBS) {
        struct job *j = &k->job[k->next++];
        uint8_t key[16];
        char name[48];
        key_of (j, false, key);
        snprintf (name, sizeof (name), "alpha.%d", k->round * JOBS + j->number + 1);
        Nui__Bank__V1__HoldRequest m = NUI__BANK__V1__HOLD_REQUEST__INIT;
        m.key = (ProtobufCBinaryData){16, key};
        m.envelope = j->envelope;
        m.grid_job_id = TEXT ("grid.1");
        m.site_job_id = name;
        m.component = TEXT ("main");
        m.procs = 1;
        m.walltime_us = 10 * US_PER_S;
        k->flying++;
        send_job (j, "Hold", &m.base, on_hold);
    }
}

/* --- a round ---------------------------------------------------------------------------------- */

#define END_OF(name)                                                                               \
    "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE application_name = '" name "'"

static void strike (struct kills *k, int disaster)
{
    switch (disaster) {
    case 0:
        bankd_stop (&k->d, SIGKILL);
        return;
    case 1:
        PQclear (PQexec (k->sql, "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE "
                                 "pid <> pg_backend_pid () AND datname = current_database ()"));
        return;
    case 2:
        PQfinish (k->sql);
        pg_fixture_crash (k->pg);
        return;
    case 3:
        kill (k->relay, SIGUSR1);
        return;
    default:
        PQclear (PQexec (k->sql, disaster == 4 ? END_OF ("nui-bank committer")
                                               : END_OF ("nui-bank second committer")));
    }
}

static void mend (struct kills *k, int disaster)
{
    if (disaster == 0)
        bankd_start (&k->d, NUI_BANK_PROGRAM);
    if (disaster == 2) {
        if (!pg_fixture_again (k->pg))
            die (k, "PostgreSQL does not start", "");
        k->sql = pg_fixture_connect (k->conninfo);
    }
    if (!bankd_wait_serving (&k->d, true))
        die (k, "nui-bank does not serve again", "");
}

/* All jobs once; when `after` have an answer the disaster strikes (-1: none). Returns how many were done. */
static int fly (struct kills *k, int disaster, int after)
{
    duration_us deadline = clock_monotonic_us () + 240 * US_PER_S;
    k->next = k->answered = 0;
    launch (k);
    while (k->flying > 0) {
        if (clock_monotonic_us () > deadline)
            die (k, "no answers", "");
        event_base_loop (k->d.base, EVLOOP_ONCE);
        if (disaster >= 0 && k->answered >= after) {
            strike (k, disaster);
            disaster = -1;
        }
    }
    return k->answered;
}

static void expect (struct kills *k, const char *what, const char *sql, long long want)
{
    char detail[100];
    long long got = pg_fixture_number (k->sql, sql);
    snprintf (detail, sizeof (detail), "%lld, not %lld", got, want);
    if (got != want)
        die (k, what, detail);
}

static void prove (struct kills *k)
{
    long long jobs = (long long)JOBS * (k->round + 1);
    expect (k, "holds:", "SELECT count (*) FROM hold", jobs);
    expect (k, "charges:", "SELECT count (*) FROM charge WHERE final", jobs);
    expect (k, "held:", "SELECT sum (held)::bigint FROM balance", 0);
    expect (k, "settled:", "SELECT sum (settled)::bigint FROM balance",
            jobs * 8 * MICRO_PER_CREDIT);
    expect (k, "credits that came from nowhere:", "SELECT sum (amount)::bigint FROM entry", 0);
    expect (
        k, "balances that are not their entries:",
        "SELECT count (*) FROM balance b WHERE posted <> (SELECT coalesce (sum (amount), 0) FROM "
        "entry e WHERE e.allocation_id = b.allocation_id AND layer = 'P')",
        0);
}

static void round_run (struct kills *k, int disaster, int after)
{
    struct bankd_job job = {.account = "rich"};
    for (int i = 0; i < JOBS; i++) {
        envelope_free (k->job[i].envelope);
        k->job[i] = (struct job){.k = k,
                                 .number = i,
                                 .envelope = bankd_sign (&k->d, WHO_ALICE, &job),
                                 .first_charged = -1};
        bankd_hand_over (&k->d, k->job[i].envelope, "alpha");
    }
    int cuts = *k->cuts, before = fly (k, disaster, after);
    if (disaster == 3 && *k->cuts == cuts)
        die (k, "nothing was cut", "");
    mend (k, disaster);
    int turns = 1;
    while (fly (k, -1, 0) < JOBS)
        if (++turns > 50)
            die (k, "never all answered", "");
    prove (k);
    printf ("round %d: %s: %d of %d were answered before, all after %d more\n", k->round,
            disaster_name[disaster], before, JOBS, turns);
    fflush (stdout);
}

int main (int argc, char **argv)
{
    static struct kills k;
    int rounds = argc > 1 ? atoi (argv[1]) : ROUNDS;
    unsigned seed = argc > 2 ? (unsigned)atoi (argv[2]) : 1;
    char folder[] = "/tmp/bank_kills.XXXXXX", through[512], path[600];
    uint8_t key[16];
    signal (SIGPIPE, SIG_IGN);
    k.pg = pg_fixture_start (true);
    if (!k.pg || !mkdtemp (folder))
        return 1;
    k.conninfo = pg_fixture_database (k.pg, "kills");
    relay_start (&k, folder, through);
    bankd_open (&k.d, NUI_BANK_PROGRAM, through, "CHECKPOINTENTRIES 200\n");
    if (!bankd_wait_serving (&k.d, true))
        return 1;
    bankd_found (&k.d);
    Nui__Bank__V1__DepositRequest m = NUI__BANK__V1__DEPOSIT_REQUEST__INIT;
    m.key = bankd_key (&k.d, key);
    m.account = TEXT ("rich");
    m.amount_micro = (int64_t)rounds * JOBS * 10 * MICRO_PER_CREDIT;
    struct bankd_reply reply = bankd_call (&k.d, WHO_NSF, "Deposit", &m.base);
    assert (reply.message);
    bankd_reply_free (&reply);
    k.sql = pg_fixture_connect (k.conninfo);
    k.use = clock_now_us ();
    for (; k.round < rounds; k.round++)
        round_run (&k, k.round % DISASTERS, rand_r (&seed) % (JOBS * 3 / 4));
    printf (
        "bank_kills: %d rounds, with each disaster in turn: every acknowledged hold and charge is there, "
        "once\n",
        rounds);
    for (int i = 0; i < JOBS; i++)
        envelope_free (k.job[i].envelope);
    PQfinish (k.sql);
    int status = bankd_stop (&k.d, SIGTERM);
    bankd_close (&k.d);
    pg_fixture_stop (k.pg);
    kill (k.relay, SIGKILL);
    waitpid (k.relay, NULL, 0);
    snprintf (path, sizeof (path), "rm -r '%s'", folder);
    return system (path) == 0 && WIFEXITED (status) && WEXITSTATUS (status) == 0 ? 0 : 1;
}
