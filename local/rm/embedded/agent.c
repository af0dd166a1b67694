/* agent: the site's other hosts. Each is watched by one call that does not end: while it lives the host is up. What becomes of
 * the runs there is agent_run.c's. rm_embedded.c calls it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/rm/embedded/agent_i.h"
#include "proto/base/mem.h"
#include "proto/base/text.h"

/* A lost connection is made again at once; for so long the host counts as up. */
enum { AGAIN_MS = 500, PATIENCE_S = 10 };

static void agent_watch (struct agent *agent);

struct agent *agent_find (const struct agents *agents, const char *node)
{
    for (uint32_t i = 0; agents && i < agents->count; i++)
        if (strcmp (agents->list[i].node, node) == 0)
            return &agents->list[i];
    return NULL;
}

bool agents_have (const struct agents *agents, const char *node)
{
    return agent_find (agents, node) != NULL;
}

bool agents_up (const struct agents *agents, const char *node)
{
    const struct agent *agent = agent_find (agents, node);
    return !agent || agent->up;
}

const char *agents_why (const struct agents *agents, const char *node)
{
    const struct agent *agent = agent_find (agents, node);
    return agent && agent->why[0] ? agent->why : NULL;
}

/* --- the watch -------------------------------------------------------------------------------- */

static void agent_up_set (struct agent *agent, bool up)
{
    if (agent->up == up)
        return;
    agent->up = up;
    log_event (agent->agents->log, up ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "rm",
               up ? "agent_up" : "agent_down", "node=%s agent=%s", agent->node, agent->address);
    agent->agents->on_nodes (agent->agents->arg);
}

static void on_run (struct agent *agent, const Nui__Node__V1__RunState *state)
{
    if (!state->run || name_check ("job id", state->run->job_id, NULL) != 0)
        return;
    struct away *run =
        away_find_part (agent->agents, state->run->job_id, state->run->incarnation, agent->node);
    if (!run)
        run = away_find (agent->agents, state->run->job_id, state->run->incarnation);
    if (run && run->agent == agent && strcmp (run->mark, state->run->mark) == 0) {
        run->round = agent->round;
        away_told (run, state);
    } else {
        away_stranger (agent, state);
    }
}

static void on_all (struct agent *agent)
{
    struct away *run, *next;
    agent->told = true;
    agent->refusal[0] = 0;
    event_del (agent->patience);
    HASH_ITER (hh, agent->agents->runs, run, next)
        if (run->agent == agent && run->round != agent->round)
            away_absent (run);
        else if (run->agent == agent && run->part)
            part_port_ask (run);
    agent_up_set (agent, true);
}

static void on_watched (void *arg, const ProtobufCMessage *message)
{
    struct agent *agent = arg;
    const Nui__Node__V1__WatchEvent *event = (const Nui__Node__V1__WatchEvent *)message;
    if (event->run)
        on_run (agent, event->run);
    if (event->health && strcmp (event->health->against, agent->why) != 0) {
        text_printf (agent->why, sizeof agent->why, "%s", event->health->against);
        if (agent->up)
            agent->agents->on_nodes (agent->agents->arg);
    }
    if (event->all)
        on_all (agent);
}

static void on_watch_end (void *arg, const struct rpc_result *result)
{
    struct agent *agent = arg;
    struct away *run, *next;
    struct timeval soon = {.tv_usec = AGAIN_MS * 1000}, long_ago = {.tv_sec = PATIENCE_S};
    agent->watch = NULL;
    if (!agent->again)
        return; /* we end */
    if (result->message[0] && strcmp (result->message, agent->refusal) != 0) {
        text_printf (agent->refusal, sizeof agent->refusal, "%s", result->message);
        log_event (agent->agents->log, LOG_LEVEL_WARN, "rm", "agent_away",
                   "node=%s agent=%s reason=\"%.300s\"", agent->node, agent->address,
                   result->message);
    }
    if (agent->told)
        event_add (agent->patience, &long_ago);
    agent->told = false;
    HASH_ITER (hh, agent->agents->runs, run, next)
        if (run->agent == agent)
            away_cut (run);
    event_add (agent->again, &soon);
}

static void agent_watch (struct agent *agent)
{
    Nui__Node__V1__WatchRequest request = NUI__NODE__V1__WATCH_REQUEST__INIT;
    struct rpccallout_config call = {.service = &nui__node__v1__node__descriptor,
                                     .method = "Watch",
                                     .request = &request.base,
                                     .timeout = INT64_MAX,
                                     .on_message = on_watched,
                                     .done = on_watch_end,
                                     .arg = agent};
    agent->round++;
    agent->watch = rpcclient_start (agent->client, &call);
}

static void on_again (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    agent_watch (arg);
}

static void on_patience (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    agent_up_set (arg, false);
}

/* --- all of them ------------------------------------------------------------------------------ */

static int agent_open (struct agents *agents, struct agent *agent, const struct rm_agent *from,
                       struct tlsid *id, struct err *err)
{
    struct strbuf name = STRBUF_INIT;
    strbuf_printf (&name, "%s.%s", agents->site, from->node);
    *agent = (struct agent){.agents = agents,
                            .node = strdup (from->node),
                            .address = strdup (from->address),
                            .name = strbuf_steal (&name)};
    struct rpcclient_config config = {.base = agents->base,
                                      .id = id,
                                      .log = agents->log,
                                      .target = agent->address,
                                      .expect_kind = PRINCIPAL_NODE,
                                      .expect_name = agent->name,
                                      .backoff_max = 2 * US_PER_S,
                                      .mend_text = true};
    agent->client = rpcclient_create (&config, err);
    if (!agent->client)
        return err_prefix (err, "NODECFG[%.60s] AGENT", from->node);
    agent->again = event_new (agents->base, -1, 0, on_again, agent);
    agent->patience = event_new (agents->base, -1, 0, on_patience, agent);
    assert (agent->again && agent->patience);
    agent_watch (agent);
    return 0;
}

int agents_create (const struct agents_config *config, struct agents **out, struct err *err)
{
    *out = NULL;
    if (config->count == 0)
        return 0;
    struct agents *agents = mem_zero (1, sizeof *agents);
    *agents = (struct agents){.base = config->base,
                              .log = config->log,
                              .site = config->site,
                              .job_dir = config->job_dir,
                              .dir = config->dir,
                              .on_nodes = config->on_nodes,
                              .on_ready = config->on_ready,
                              .on_lost = config->on_lost,
                              .arg = config->arg};
    agents->list = mem_zero (config->count, sizeof *agents->list);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < config->count; i++) {
        rc = agent_open (agents, &agents->list[i], &config->agent[i], config->id, err);
        agents->count++;
    }
    if (rc == 0)
        *out = agents;
    else
        agents_destroy (agents);
    return rc;
}

void agents_destroy (struct agents *agents)
{
    struct away *run, *next;
    if (!agents)
        return;
    HASH_ITER (hh, agents->runs, run, next)
        away_destroy (run);
    for (uint32_t i = 0; i < agents->count; i++) {
        struct agent *agent = &agents->list[i];
        if (agent->again)
            event_free (agent->again);
        if (agent->patience)
            event_free (agent->patience);
        agent->again = NULL;
        if (agent->client)
            rpcclient_destroy (agent->client);
        free (agent->node);
        free (agent->address);
        free (agent->name);
    }
    free (agents->list);
    free (agents);
}
