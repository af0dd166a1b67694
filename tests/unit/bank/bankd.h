/* bankd: the real nui-bank with certificates of a test CA, and clients of several identities. */
#ifndef NUI_TESTS_BANK_BANKD_H
#define NUI_TESTS_BANK_BANKD_H

#include "proto/nui/v1/bank.pb-c.h"
#include "proto/job/handover.h"
#include "proto/rpc/rpcclient.h"
#include "tests/interop/testca.h"

enum bankd_who {
    WHO_ALPHA,
    WHO_BETA,
    WHO_META,
    WHO_ALICE,
    WHO_BOB,
    WHO_NSF,
    WHO_OPS,
    WHO_LENA,
    WHO_MARA,
    WHO_OTTO,
    WHO_COUNT
};

struct bankd {
    char *dir;
    struct testca *ca;
    struct event_base *base;
    struct tlsid *id[WHO_COUNT];
    struct rpcclient *client[WHO_COUNT];
    char target[64];
    pid_t pid;
    uint64_t keys;
    struct handover_key key; /* of WHO_META; number 0: it has not asked yet */
    bool keep_envelopes;     /* bankd_call sends them as they are */
};

#define ALICE_URI "nui://test/user/alice"
#define BOB_URI "nui://test/user/bob"
#define LENA_URI "nui://test/user/lena"
#define MARA_URI "nui://test/user/mara"
#define OTTO_URI "nui://test/user/otto"

/* program: the nui-bank to run; database: libpq's conninfo; more: lines of its configuration. Aborts when it
 * does not start. */
void bankd_open (struct bankd *d, const char *program, const char *database, const char *more);
void bankd_start (struct bankd *d, const char *program); /* after bankd_stop or a kill */
int bankd_stop (struct bankd *d, int sig);               /* waits; returns waitpid's status */
void bankd_close (struct bankd *d);
/* Until the health service says SERVING (or not); false after 30 s. */
bool bankd_wait_serving (struct bankd *d, bool serving);

struct bankd_reply {
    ProtobufCMessage *message; /* NULL on failure; free with bankd_reply_free */
    struct err err;
};
/* As the metascheduler would before its site has it: Hold and Charge for a signed job that nobody handed over go out with
 * a hand-over to the calling site. */
struct bankd_reply bankd_call (struct bankd *d, enum bankd_who who, const char *method,
                               const ProtobufCMessage *request);
/* Of the envelope's part ("": its first) to the site, by the key of WHO_META; in the arena. */
Nui__Common__V1__HandOver *bankd_handover (struct bankd *d,
                                           const Nui__Common__V1__Envelope *envelope,
                                           const char *part, const char *site, time_us expires,
                                           struct arena *arena);
/* The envelope gets one, of its first part, which goes with envelope_free. */
void bankd_hand_over (struct bankd *d, Nui__Common__V1__Envelope *envelope, const char *site);
void bankd_reply_free (struct bankd_reply *reply);
/* 16 fresh bytes, the same ones for the same n. */
ProtobufCBinaryData bankd_key (struct bankd *d, uint8_t buf[16]);

/* A signed ordinary job; free with bankd_envelope_free. */
struct bankd_job {
    const char *account;
    const char *const *sites;
    size_t site_count;
    int64_t walltime_us, expires_us, cost_max_micro;
    const char *submitter; /* NULL: the signer's */
    int64_t memory_mb;     /* of its one task */
    uint32_t gpus;
    const char *quote;   /* NULL: none */
    const char *licence; /* NULL: none */
    bool two;            /* components */
    uint32_t retries;
    int64_t age_us;                   /* since it was signed */
    uint32_t procs;                   /* of its one task; 0: 8 */
    uint32_t tasks, nodes, procs_max; /* tasks 0: one */
    const char *grid;                 /* NULL: the test's */
    const char *flag;                 /* NULL: none */
    const uint8_t *uuid;              /* 16 bytes; NULL: a new one */
};
Nui__Common__V1__Envelope *bankd_sign (struct bankd *d, enum bankd_who who,
                                       const struct bankd_job *job);

/* A NOTIFICATIONPROGRAM of ours: what it hears is a line "event|object|text|grid". */
struct bankd_heard {
    char place[64];
};
void bankd_hear (struct bankd_heard *heard, char config_out[512]);
/* Until so many lines have this in them; aborts when there are more, or after 60 s. */
void bankd_wait_heard (const struct bankd_heard *heard, const char *part, int count);

/* Projects, accounts and grants of the tests: project physics with alice; accounts phys (1,000
 * credits, falls back to rich) and rich (100,000); rates alpha 1 and beta 1.25. */
void bankd_found (struct bankd *d);

#endif
