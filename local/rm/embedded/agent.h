/* agent: the site's other hosts, each behind a nui-node (nui-node(8), proto/nui/v1/node.proto).
 *
 * For the embedded runner, which goes on looking at the job's directory at home: the agent's run takes the supervisor's
 * place. Its working directory goes there, its beginning, its files and its end come back into the directory at home
 * (`started`, `status`), files before the end; only then is the agent told that the end is taken. A host that is cut off
 * is down once the patience is over; what runs there runs on, and its end comes when the host is back.
 *
 * One loop, one thread; nothing blocks on a host. Files go in pieces, one call at a time for each run. */
#ifndef NUI_LOCAL_RM_EMBEDDED_AGENT_H
#define NUI_LOCAL_RM_EMBEDDED_AGENT_H

#include <event2/event.h>

#include "local/rm/rm.h"
#include "local/rm/rm_kind.h"
#include "proto/base/log.h"
#include "proto/base/strbuf.h"

struct agents;

struct agents_config {
    struct event_base *base;
    struct log *log;
    struct tlsid *id;
    const char *site;
    const char *job_dir; /* the folder of all jobs: kept by pointer */
    int dir;             /* the same, open; the caller's */
    const struct rm_agent *agent;
    uint32_t count;
    /* A host came, went, or has something new to say of itself. */
    void (*on_nodes) (void *arg);
    /* All further hosts of the job wait for its tasks (agents_parts). */
    void (*on_ready) (void *arg, const char *job_id, uint32_t incarnation);
    /* One of them does no longer, or never did; started: it had. */
    void (*on_lost) (void *arg, const char *job_id, uint32_t incarnation, const char *why);
    void *arg;
};

/* *out NULL where there are none. */
int agents_create (const struct agents_config *config, struct agents **out, struct err *err);
void agents_destroy (struct agents *agents); /* NULL is a no-op; what runs there runs on */
/* Whether that node is another host. agents may be NULL. */
bool agents_have (const struct agents *agents, const char *node);
bool agents_up (const struct agents *agents, const char *node);
/* What its health program has against it; NULL: nothing. Holds until on_nodes. */
const char *agents_why (const struct agents *agents, const char *node);
/* Runs the job whose directory is made on that node, or goes on with it after a restart (again). */
int agents_run (struct agents *agents, const char *job_id, uint32_t incarnation, const char *mark,
                const char *node, bool again, struct err *err);
/* A further host of a job: so many processors and so much memory of it are the job's. on_ready or on_lost follows. */
struct agents_part {
    const char *node;
    uint32_t procs;
    int64_t memory_mb;
};
int agents_part_run (struct agents *agents, const char *job_id, uint32_t incarnation,
                     const char *mark, const struct agents_part *part, struct err *err);
/* "node host port", a line for each of its further hosts, which are all ready. */
void agents_parts_list (const struct agents *agents, const char *job_id, uint32_t incarnation,
                        struct strbuf *out);
/* They stop (SIGSTOP) or go on (SIGCONT) with it; another signal is not theirs. */
void agents_parts_stop (struct agents *agents, const char *job_id, uint32_t incarnation, int signo);
/* The job is over: they end. */
void agents_parts_end (struct agents *agents, const char *job_id, uint32_t incarnation);

enum agents_act { AGENTS_SIGNAL, AGENTS_CANCEL, AGENTS_SUSPEND, AGENTS_RESUME };
int agents_act (struct agents *agents, const char *job_id, uint32_t incarnation,
                enum agents_act act, int signo, struct err *err);
/* As was last heard, and asks anew. ERR_NOT_FOUND: nothing was heard yet. Either may be NULL. */
int agents_measured (struct agents *agents, const char *job_id, uint32_t incarnation,
                     struct rm_used *used, struct rm_limits *limits, struct err *err);
/* What it printed since the last time is asked for, and written to its files here. */
void agents_output_wanted (struct agents *agents, const char *job_id, uint32_t incarnation);

#endif
