/* drive: the clients of a nui-bank that is measured: keeps a number of hold+charge pairs, or of balances read, in flight
 * through its RPC front, and reads the CPU time of its process and of PostgreSQL's that serve it. */
#ifndef NUI_TESTS_BENCH_BANK_DRIVE_H
#define NUI_TESTS_BENCH_BANK_DRIVE_H

#include "tests/unit/bank/bankd.h"
#include "tests/unit/bank/pg_fixture.h"

enum { ACCOUNTS = 1000, FLIGHT = 64, FLIGHT_MAX = 1024, SAMPLES_MAX = 1 << 20, BACKENDS_MAX = 8 };
enum { SIGNED_MAX = 1 << 16 };
enum {
    PER_CONNECTION = 256,
    CONNECTIONS = FLIGHT_MAX / PER_CONNECTION
}; /* the daemon's limit of streams */

/* Whose word a job is: the site's, as for what its own users give to its scheduler; or its user's
 * signature. What a local pair writes is what pgbench.sql does; a signed one also remembers its signature. */
enum kind { LOCAL, SIGNED, KINDS };

struct bench;

struct slot {
    struct bench *bench;
    int account;
    char job[32], hold[32];
    duration_us begun;
};

struct bench {
    struct pg_fixture *pg;
    struct bankd d;
    struct slot slot[FLIGHT_MAX];
    struct rpcclient *more[CONNECTIONS]; /* of alpha; the first is the daemon fixture's */
    int accounts;                        /* used now */
    enum kind kind;
    int flying;
    uint64_t jobs, pairs, failed;
    bool bad; /* something failed, in any measurement */
    /* of the next jobs, made before a measurement */
    Nui__Common__V1__Envelope *signed_job[SIGNED_MAX];
    int signed_first, signed_end;
    bool no_handover; /* the bank has no keys of hand-overs */
    duration_us end;
    time_us use;
    const char *conninfo;
    long long account, first; /* of acct0: its id, and its allocation's, which the others' follow */
    pid_t postmaster, backend[BACKENDS_MAX]; /* the daemon's connections */
    int backends;
    double *sample;
    uint32_t samples;
};

/* CPU time, microseconds: steadier than a rate when the machine is shared. */
struct cpu {
    double client, daemon, postgres;
};

struct rate {
    double per_s, p50_ms, p99_ms;
    uint64_t count;
    struct cpu each;
};

extern const char *const drive_pairs[KINDS]; /* "local pairs" */

/* Starts the bank on the database, with accounts acct0 … that each have a deposit. b has its pg, conninfo and sample;
 * false, after a sentence, when it does not serve. */
bool drive_open (struct bench *b, const char *program);
void drive_start (struct bench *b, const char *program,
                  const char *conninfo); /* the bank alone: all else is there */
void drive_close (struct bench *b);
void drive_backends (struct bench *b, PGconn *sql); /* which of PostgreSQL's processes serve it */

/* Begins a pair or a reading, and another one whenever it has ended. */
typedef void (*drive_f) (struct slot *s);
void drive_hold (struct slot *s);
void drive_read (struct slot *s);
/* Keeps `flight` of them going for a while and waits for the last. */
struct rate drive (struct bench *b, drive_f begin, int accounts, int flight, double seconds);
/* Likewise, and prints what it was. */
struct rate drive_print (struct bench *b, const char *what, drive_f begin, int accounts, int flight,
                         double seconds);

/* client: RUSAGE_SELF, or RUSAGE_CHILDREN for those that have ended, and what served them. */
struct cpu drive_cpu (const struct bench *b, int client);
struct cpu drive_cpu_each (const struct bench *b, int client, struct cpu from, double times);
void drive_cpu_print (struct cpu each);
pid_t drive_parent (pid_t pid);

#endif
