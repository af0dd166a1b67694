/* site: a real nui-local process between a bank and a metascheduler that the test plays itself. */
#ifndef NUI_TESTS_LOCAL_SVC_SITE_H
#define NUI_TESTS_LOCAL_SVC_SITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/nui/v1/bank.pb-c.h"
#include "proto/nui/v1/local.pb-c.h"
#include "proto/nui/v1/meta.pb-c.h"
#include "proto/rpc/envelope.h"
#include "proto/rpc/rpcclient.h"

enum { KEPT_MAX = 2048 };
/* For so long a site that is away is called again: against hangs only. */
#define SITE_AWAY_MAX (120 * US_PER_S)

enum bank_mood {
    BANK_GRANTS,
    BANK_REFUSES, /* for want of funds */
    BANK_SILENT,  /* keeps holds without an answer until bank_speak */
};

struct kept_charge {
    char hold_id[64], job[64];
    uint64_t sequence, procs;
    int64_t start_us, end_us, submitted_us;
    bool final, successful;
    uint64_t nodes; /* as the charge's measures say it, so for the next */
    char local_user[64], queue[64];
};

struct site {
    char dir[64];
    struct event_base *base;
    struct tlsid *ids[8];
    struct rpcserver *bank_server, *meta_server, *third_server;
    uint16_t bank_port, meta_port, port;
    struct rpcclient *as_meta, *as_alice, *as_bob, *as_operator, *as_local, *as_rival;
    pid_t pid;
    const char *extra; /* lines added to the configuration */
    /* the bank */
    enum bank_mood mood;
    struct rpccall *silent[KEPT_MAX];
    char silent_key[KEPT_MAX][33];
    unsigned silent_count;
    char granted_key[KEPT_MAX][33]; /* key → hold number is its place */
    unsigned holds;                 /* granted, ever */
    unsigned hold_calls;
    char released[KEPT_MAX][64];
    uint64_t released_sequence[KEPT_MAX];
    unsigned releases;
    struct kept_charge charge[KEPT_MAX];
    unsigned charges;
    int64_t hold_lifetime_us; /* expires_us of grants, from now; 0: none said */
    int charge_status;        /* enum rpc_status: what charges are refused with */
    unsigned charge_calls;
    int64_t disputed_micro;  /* of each charge */
    bool bank_loses_answers; /* does everything, answers UNAVAILABLE */
    int64_t bank_ahead_us;   /* what its clock shows, beside the test's */
    /* the metascheduler */
    Nui__Meta__V1__SiteReport *report; /* the last */
    unsigned reports;
    uint64_t acked;
    bool meta_forgets; /* takes events, acknowledges none */
    const char
        *meta_refuses; /* an event of this job makes a report invalid; "": all are; NULL: none is */
    unsigned reports_refused;
    unsigned events; /* unique ones */
    Nui__Local__V1__JobInfo *event[KEPT_MAX];
    uint64_t gap; /* a sequence that was jumped over */
    /* A metascheduler "third" beside it, which acknowledges all that it is told. */
    bool third_serves;  /* said before site_start */
    bool rival_unnamed; /* likewise: no line of the configuration has its name */
    unsigned third_reports;
    unsigned third_told; /* of jobs */
};

int site_group_setup (void **state); /* certificates, once */
int site_group_teardown (void **state);
int site_setup (void **state); /* a fresh site per test */
int site_teardown (void **state);
void site_start (struct site *s, const char *extra_config);
void site_kill (struct site *s); /* kill -9, and waits; fails the test if it had ended by itself */
void site_restart (struct site *s); /* kill -9 and a new one, without waiting for it */
/* Whether the one that was started last has come so far. */
bool site_listens (struct site *s);
/* Runs the loop until check is true; fails the test after 120 s. */
void site_wait (struct site *s, bool (*check) (struct site *s, void *arg), void *arg,
                const char *what);
/* Whether a line of its log has these words; for site_wait. */
bool site_logged (struct site *s, void *words);
void bank_speak (struct site *s); /* answers what was kept silent, by the present mood */

struct job_make {
    const char *script;
    uint32_t tasks;       /* 0: 1 */
    duration_us walltime; /* 0: 60 s */
    const char *component;
    const char *signer;     /* "alice" (default), "bob", "mallory" (another CA) */
    const char *submitter;  /* NULL: the signer's */
    duration_us expires_in; /* 0: an hour */
    duration_us created_in; /* from now; 0: now */
    const char *feature;
    const char *hosts;
    const uint8_t *uuid; /* 16 bytes; NULL: a new one */
    const char *grid;
    const char *account; /* "chem" */
    const char *qos;
    const char *queue;                   /* its class */
    const char *flag;                    /* one of the job's; NULL: none */
    const char *depend_kind, *depend_on; /* NULL: none */
    bool held;
    bool boundless;    /* says nothing of what it may cost; else: whatever */
    const char *array; /* 16 bytes; NULL: none */
    uint32_t array_index, array_limit;
    uint32_t twins;         /* further components like the first, "twin0", "twin1" …: at most 3 */
    bool reserve;           /* a co-reservation: no script */
    const uint8_t *changes; /* … that is to have other terms; 16 bytes; NULL: a new one */
};
/* A signed job. Free with envelope_free. */
Nui__Common__V1__Envelope *job_envelope (struct site *s, const struct job_make *make);

/* A call of nui.local.v1; *reply_out (may be NULL) is to be freed with
 * protobuf_c_message_free_unpacked. Returns 0 or an error code with the text in err. */
int site_call (struct rpcclient *client, const char *method, const void *request, void *reply_out,
               struct err *err);
/* Submits an ordinary job as the metascheduler; returns its id in out. Fails the test if refused. */
void site_submit (struct site *s, const char *grid_id, const struct job_make *make, char out[64]);
/* The state of the last event of this job; 0: none. */
int site_told (struct site *s, const char *site_job_id);
const Nui__Local__V1__JobInfo *site_last_event (struct site *s, const char *site_job_id);
void site_wait_state (struct site *s, const char *site_job_id, int state);
/* The whole stdout as this caller gets it, following the job to its end. */
char *site_output (struct rpcclient *client, const char *job_id, struct err *err);
void free_message (void *message);

#endif
