/* Nodes that fail one job after another: a disk that is full, a file system that is not mounted. Such a node is free
 * again at once, so it takes the whole queue and ends each job of it. A user's own mistakes look the same, but
 * only for that user: what counts is how many accounts' jobs failed on a node since one ended well there. It is drained then, durably,
 * with a sentence why, until an administrator takes it back.
 *
 * Only jobs of a single node are counted, since of several nobody knows which it was. Where many nodes fail at
 * once it is rather something that they share, or a queue of broken jobs: no more than a tenth are drained.
 * Called with each end that the resource manager tells of; what is counted is in memory only. */
#include "local/svc/job/blame.h"

#include <stdlib.h>
#include <string.h>

#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"
#include "proto/base/strbuf.h"
#include "proto/base/text.h"

enum { ONE_OF = 10 };
static const duration_us at_once = 60 * US_PER_S;

/* NULL: it has several, or one that is no longer configured. */
static struct site_node *blame_only_node (const struct svc *svc, const char *placement)
{
    struct site_node *only = NULL, *node;
    unsigned tasks, req;
    for (const char *at = placement; placement_next (svc, &at, &node, &tasks, &req); only = node)
        if (!node || (only && only != node))
            return NULL;
    return only;
}

static bool blame_is_failure (const struct rm_status *status)
{
    switch (status->end) {
    case RM_END_START_FAILED:
        return true;
    case RM_END_EXITED:
    case RM_END_SIGNALLED:
    case RM_END_NODE_FAILURE:
        return status->exit_code != 0 && status->start > 0 &&
               status->end_at - status->start < at_once;
    default:
        return false;
    }
}

static void blame_forgive (struct site_node *node)
{
    free (node->failed);
    node->failed = NULL;
}

/* How many accounts it is then. */
static uint32_t blame_count (struct site_node *node, const char *account)
{
    uint32_t count = 0;
    struct strbuf b = STRBUF_INIT;
    strbuf_printf (&b, ",%s,", account);
    if (!node->failed || !strstr (node->failed, strbuf_text (&b))) {
        strbuf_clear (&b);
        strbuf_printf (&b, "%s%s,", node->failed ? node->failed : ",", account);
        strbuf_text (&b);
        free (node->failed);
        node->failed = strbuf_steal (&b);
    }
    strbuf_free (&b);
    for (const char *p = node->failed; *p; p++)
        count += *p == ',';
    return count - 1;
}

/* May one more be without work for this? */
static bool blame_has_room (const struct svc *svc)
{
    uint32_t nodes = 0, aside = 0;
    for (uint32_t n = 0; n < svc->node_count; n++) {
        nodes += svc->node_by_id[n]->configured;
        aside += svc->node_by_id[n]->configured && svc_node_aside (svc->node_by_id[n]);
    }
    return aside < nodes / ONE_OF || aside == 0;
}

static void blame_drain (struct svc *svc, struct site_node *node, uint32_t users,
                         const struct site_job *job, const struct rm_status *status)
{
    char id[SITE_ID_MAX], reason[400], quoted[900], how[280];
    struct err err = {0};
    if (status->end == RM_END_EXITED)
        text_printf (how, sizeof how, "ended with %d", status->exit_code);
    else if (status->end == RM_END_SIGNALLED)
        text_printf (how, sizeof how, "was ended by signal %d", status->exit_code - 128);
    else
        text_printf (how, sizeof how, "%s: %s",
                     status->end == RM_END_START_FAILED ? "could not be started" : "was lost",
                     status->text);
    text_printf (reason, sizeof reason,
                 "jobs of %u user%s failed here, none ended well since: %s %s", users,
                 users == 1 ? "" : "s", site_id (svc, job->rec.number, id), how);
    log_quote (reason, quoted, sizeof quoted);
    if (!blame_has_room (svc)) {
        log_event (svc->log, LOG_LEVEL_ERROR, "node", "not_set_aside",
                   "node=%s reason=%s text=\"a tenth of the nodes is out for this already\"",
                   node->name, quoted);
        return;
    }
    if (svc_node_set_aside (svc, node, reason, &err) != 0) { /* with the next one that fails */
        log_event (svc->log, LOG_LEVEL_ERROR, "node", "not_set_aside",
                   "node=%s reason=%s error=\"%s\"", node->name, quoted, err.text);
        return;
    }
    log_event (svc->log, LOG_LEVEL_WARN, "node", "set_aside", "node=%s reason=%s", node->name,
               quoted);
    blame_forgive (node);
    pass_wake (svc);
}

void blame_ended (struct svc *svc, const struct site_job *job, const struct rm_status *status)
{
    uint32_t most = svc->settings->node_failure_users, users;
    struct site_node *node;
    unsigned tasks, req;
    if (most == 0 || svc->rm.ops->simulated || svc_may_act (svc, NULL) != 0)
        return;
    if (status->end == RM_END_EXITED && status->exit_code == 0) {
        for (const char *at = job->rec.placement; placement_next (svc, &at, &node, &tasks, &req);)
            if (node)
                blame_forgive (node);
        return;
    }
    node = blame_only_node (svc, job->rec.placement);
    if (!node || svc_node_aside (node) || job->rec.stop != STORE_STOP_NONE ||
        !blame_is_failure (status))
        return;
    users = blame_count (node, job->rec.local_account);
    if (users >= most)
        blame_drain (svc, node, users, job, status);
}
