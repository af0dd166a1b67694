/* agent_i: between agent.c (the hosts) and agent_run.c (one run on a host). */
#ifndef NUI_LOCAL_RM_EMBEDDED_AGENT_I_H
#define NUI_LOCAL_RM_EMBEDDED_AGENT_I_H

#include <pwd.h>
#include <uthash.h>

#include "local/rm/embedded/agent.h"
#include "local/rm/embedded/runfiles.h"
#include "local/rm/jobdir.h"
#include "proto/nui/v1/node.pb-c.h"
#include "proto/rpc/rpcclient.h"

struct agent {
    struct agents *agents;
    char *node, *address, *name; /* name: in its certificate, SITE.NODE */
    struct rpcclient *client;
    struct rpccallout *watch;
    struct event *again;    /* begins watch anew */
    struct event *patience; /* then it is down */
    bool told;              /* everything it has, since watch began */
    bool up;
    char why[200];     /* of its health program; "": nothing is against it */
    char refusal[256]; /* why it could not be watched, as it was told of last */
    uint32_t round;    /* of watch */
};

/* A call that may be dropped: what comes of it then reaches nobody. */
struct away_call;
struct away_slot {
    struct rpccallout *out; /* NULL: none */
    struct away_call *call;
};

enum away_state {
    AWAY_UNKNOWN,  /* until the host has told what it has */
    AWAY_SENDING,  /* files */
    AWAY_STARTING, /* the last call before it is there for good */
    AWAY_THERE,
    AWAY_FETCHING, /* files, after its end */
};

struct away {
    struct agents *agents;
    struct agent *agent;
    char key[JOBDIR_KEY_MAX + 80]; /* of a part with its node */
    char job_id[JOBDIR_KEY_MAX], mark[RM_MARK_MAX], account[64];
    uint32_t incarnation;
    int dir, work; /* open, at home */
    uid_t uid;
    gid_t gid;
    enum away_state state;
    uint32_t round;        /* of the agent's watch in which it was last told of */
    bool cancel;           /* wanted: said again whenever the host tells of it */
    bool asked;            /* the host may have it */
    int stop;              /* the last wish: ACT_SUSPEND or ACT_RESUME; 0: none */
    struct away_slot call; /* of the state */
    struct runfiles files; /* that go, or come */
    uint32_t at;
    int64_t offset;
    struct rm_status end;
    struct event *again; /* after something here failed: the disk was full */
    /* of a further host of its job: the share, and its port when it waits for tasks */
    bool part, over;
    uint32_t procs, port;
    int64_t memory_mb;
    struct event *port_again;
    /* while it runs */
    struct away_slot measure, mirror;
    bool measured;
    struct rm_used used;
    struct rm_limits limits;
    int stream; /* the one that is asked for */
    UT_hash_handle hh;
};

struct agents {
    struct event_base *base;
    struct log *log;
    const char *site, *job_dir;
    int dir;
    struct agent *list;
    uint32_t count;
    struct away *runs;
    void (*on_nodes) (void *arg);
    void (*on_ready) (void *arg, const char *job_id, uint32_t incarnation);
    void (*on_lost) (void *arg, const char *job_id, uint32_t incarnation, const char *why);
    void *arg;
};

/* --- agent_run.c */
struct away *away_find (const struct agents *agents, const char *job_id, uint32_t incarnation);
/* That of a further host of the job. */
struct away *away_find_part (const struct agents *agents, const char *job_id, uint32_t incarnation,
                             const char *node);
int away_begin_run (struct agents *agents, struct agent *agent, const char *job_id,
                    uint32_t incarnation, const char *mark, const struct agents_part *part,
                    bool again, struct err *err);
struct agent *agent_find (const struct agents *agents, const char *node);
void away_name (const struct away *run, Nui__Node__V1__Run *out);
void away_call (struct away *run, struct away_slot *slot, const char *method,
                const ProtobufCMessage *request,
                void (*done) (struct away *run, const struct rpc_result *result));
void away_drop (struct away_slot *slot);
void away_act (struct away *run, Nui__Node__V1__Act act, int signo);
void agent_taken (struct agent *agent, Nui__Node__V1__Run *name);
/* --- agent_part.c */
void part_told (struct away *run, const Nui__Node__V1__RunState *state);
void part_over (struct away *run, const char *why);
/* Once it can be known. */
void part_port_ask (struct away *run);
void away_destroy (struct away *run);
/* The host told of it. */
void away_told (struct away *run, const Nui__Node__V1__RunState *state);
/* The host told of everything, and not of it. */
void away_absent (struct away *run);
/* No call of it will be answered. */
void away_cut (struct away *run);
/* Nobody here waits for that run: where its end is here already, the host is told so. */
void away_stranger (struct agent *agent, const Nui__Node__V1__RunState *state);

#endif
