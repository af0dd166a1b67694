/* agent_part: the further hosts of a job that has several. Each runs nui-tasks in the place of the script, and tells its port;
 * when all have, the script begins (rm_embedded.c), and `nui run` there has them start its tasks. One that ends before the job
 * does ends the job; when the job is over they are ended, and nothing of them is kept. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "local/rm/embedded/agent_i.h"
#include "proto/base/mem.h"
#include "proto/base/text.h"

enum { PORT_AGAIN_MS = 100 };

static bool part_of (const struct away *run, const char *job_id, uint32_t incarnation)
{
    return run->part && run->incarnation == incarnation && strcmp (run->job_id, job_id) == 0;
}

int agents_part_run (struct agents *agents, const char *job_id, uint32_t incarnation,
                     const char *mark, const struct agents_part *part, struct err *err)
{
    struct agent *agent = agent_find (agents, part->node);
    if (!agent)
        return err_set (err, ERR_NOT_FOUND, "NODECFG[%.60s] has no AGENT any more", part->node);
    return away_find_part (agents, job_id, incarnation, part->node)
               ? 0
               : away_begin_run (agents, agent, job_id, incarnation, mark, part, true, err);
}

/* --- its port --------------------------------------------------------------------------------- */

static void part_ready (struct away *run)
{
    struct agents *agents = run->agents;
    struct away *other, *next;
    char job_id[JOBDIR_KEY_MAX];
    HASH_ITER (hh, agents->runs, other, next)
        if (part_of (other, run->job_id, run->incarnation) && !other->port)
            return;
    text_printf (job_id, sizeof job_id, "%s", run->job_id);
    agents->on_ready (agents->arg, job_id, run->incarnation);
}

static void on_port_again (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    part_port_ask (arg);
}

static void on_port (struct away *run, const struct rpc_result *result)
{
    const Nui__Node__V1__GetReply *reply = (const Nui__Node__V1__GetReply *)result->reply;
    struct timeval later = {.tv_usec = PORT_AGAIN_MS * 1000};
    char text[8] = "";
    if (result->status == RPC_OK && reply->data.len < sizeof text)
        memcpy (text, reply->data.data, reply->data.len);
    unsigned long port = strtoul (text, NULL, 10);
    if (port > 0 && port <= UINT16_MAX) {
        run->port = (uint32_t)port;
        part_ready (run);
        return;
    }
    if (!run->port_again)
        run->port_again = event_new (run->agents->base, -1, 0, on_port_again, run);
    event_add (run->port_again, &later);
}

void part_port_ask (struct away *run)
{
    Nui__Node__V1__Run name;
    Nui__Node__V1__GetRequest request = NUI__NODE__V1__GET_REQUEST__INIT;
    if (run->port || run->over || run->mirror.out || run->state != AWAY_THERE || !run->agent->told)
        return;
    away_name (run, &name);
    request.run = &name;
    request.path = (char *)".tasks-port";
    away_call (run, &run->mirror, "Get", &request.base, on_port);
}

void agents_parts_list (const struct agents *agents, const char *job_id, uint32_t incarnation,
                        struct strbuf *out)
{
    struct away *run, *next;
    HASH_ITER (hh, agents->runs, run, next) {
        if (!part_of (run, job_id, incarnation))
            continue;
        const char *address = run->agent->address, *colon = strrchr (address, ':');
        int len = (int)(colon - address);
        bool bracket = len > 1 && address[0] == '[';
        strbuf_printf (out, "%s %.*s %u\n", run->agent->node, len - 2 * bracket, address + bracket,
                       run->port);
    }
}

/* --- its end ---------------------------------------------------------------------------------- */

void part_over (struct away *run, const char *why)
{
    struct agents *agents = run->agents;
    char job_id[JOBDIR_KEY_MAX], text[256];
    uint32_t incarnation = run->incarnation;
    bool expected = run->over;
    text_printf (job_id, sizeof job_id, "%s", run->job_id);
    text_printf (text, sizeof text, "its part on %s ended%s%s", run->agent->node, *why ? ": " : "",
                 why);
    away_destroy (run);
    if (!expected)
        agents->on_lost (agents->arg, job_id, incarnation, text);
}

void part_told (struct away *run, const Nui__Node__V1__RunState *state)
{
    if (state->ended) {
        Nui__Node__V1__Run name;
        away_name (run, &name);
        agent_taken (run->agent, &name);
        part_over (run, state->text);
    } else if (run->over) {
        away_act (run, NUI__NODE__V1__ACT__ACT_CANCEL, 0);
    } else if (state->started) {
        part_port_ask (run);
    }
}

void agents_parts_stop (struct agents *agents, const char *job_id, uint32_t incarnation, int signo)
{
    struct away *run, *next;
    Nui__Node__V1__Act act =
        signo == SIGSTOP ? NUI__NODE__V1__ACT__ACT_SUSPEND : NUI__NODE__V1__ACT__ACT_RESUME;
    if (!agents || (signo != SIGSTOP && signo != SIGCONT))
        return;
    HASH_ITER (hh, agents->runs, run, next) {
        if (!part_of (run, job_id, incarnation))
            continue;
        run->stop = (int)act;
        if (run->state == AWAY_THERE && run->agent->told)
            away_act (run, act, 0);
    }
}

void agents_parts_end (struct agents *agents, const char *job_id, uint32_t incarnation)
{
    struct away *run, *next;
    if (!agents)
        return;
    HASH_ITER (hh, agents->runs, run, next) {
        if (!part_of (run, job_id, incarnation))
            continue;
        run->over = run->cancel = true;
        if (run->state == AWAY_THERE && run->agent->told)
            away_act (run, NUI__NODE__V1__ACT__ACT_CANCEL, 0);
    }
}
