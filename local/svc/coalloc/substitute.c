/* A firm part whose nodes went down before its start gets others of this site for the same slot:
 * the first step of what follows when a node dies after COMMIT. What it still has it keeps; the new
 * nodes are sought while it has them, so that nothing is lost when there are none. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "local/svc/coalloc/coalloc.h"
#include "local/svc/job.h"
#include "local/svc/nodes.h"
#include "local/svc/svc_i.h"

static bool node_lost (struct svc *svc, struct node_id node)
{
    struct node_view view;
    return cluster_node_get (svc->cluster, node, &view, NULL) != 0 || view.state == NODE_DOWN;
}

const char *substitute_lost_node (struct svc *svc, const struct allocation *a)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (node_lost (svc, a->item[i].node))
            return svc->node_by_id[a->item[i].node.v]->name;
    return NULL;
}

/* The needs of what was lost, and which of the job's reqs each of them is. */
static uint32_t needs_lost (struct svc *svc, const struct site_job *job, const struct allocation *a,
                            struct req *need, uint32_t *of)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < job->req_count; r++) {
        uint32_t tasks = 0;
        for (uint32_t i = 0; i < a->count; i++)
            if (a->item[i].req == r && node_lost (svc, a->item[i].node))
                tasks += a->item[i].tasks;
        if (tasks == 0)
            continue;
        need[count] = job->reqs[r];
        need[count].tasks = tasks;
        of[count++] = r;
    }
    return count;
}

/* The whole again, by req: what it keeps, then what is new. False: a node would be there twice. */
static bool join (struct svc *svc, const struct allocation *old, const struct allocation *fresh,
                  const uint32_t *of, uint32_t req_count, struct allocation *out)
{
    out->item = arena_array (svc->call_arena, old->count + fresh->count + 1, sizeof *out->item);
    out->count = 0;
    for (uint32_t r = 0; r < req_count; r++) {
        uint32_t first = out->count;
        for (uint32_t i = 0; i < old->count; i++)
            if (old->item[i].req == r && !node_lost (svc, old->item[i].node))
                out->item[out->count++] = old->item[i];
        for (uint32_t i = 0; i < fresh->count; i++) {
            struct placement p = fresh->item[i];
            if (of[p.req] != r)
                continue;
            for (uint32_t k = first; k < out->count; k++)
                if (out->item[k].node.v == p.node.v)
                    return false;
            p.req = r;
            out->item[out->count++] = p;
        }
    }
    return true;
}

/* Nodes for what was lost, at its slot. */
static bool seek (struct svc *svc, const struct site_part *part, const struct allocation *old,
                  struct allocation *out, struct err *err)
{
    const struct site_job *job = part->job;
    struct req need[REQS_MAX];
    uint32_t of[REQS_MAX], count = needs_lost (svc, job, old, need, of);
    time_us now = svc_now (svc);
    time_us start = part->rec.slot_start > now ? part->rec.slot_start : now;
    time_us end = part->rec.slot_start + svc_part_duration (svc, job->rec.walltime);
    struct who who = svc_who (svc, job);
    struct query query = {.req_count = count,
                          .req = need,
                          .duration = end - start,
                          .from = start,
                          .until = start,
                          .queue = true,
                          .instead = part->instead,
                          .who = &who};
    struct slot slot;
    bool granted = false;
    for (uint32_t i = 0; i < count; i++)
        if (need[i].nodeset != NODESET_SITE && need[i].nodeset != NODESET_NONE)
            return false; /* the others would have to be alike */
    return end > start &&
           query_slot (svc->cluster, &query, start, now, svc->call_arena, &granted, &slot, err) ==
               0 &&
           granted && join (svc, old, &slot.allocation, of, job->req_count, out);
}

static int reserve (struct svc *svc, struct site_part *part, const struct allocation *a,
                    struct err *err)
{
    struct site_job *job = part->job;
    struct rsv_id id = {part->rec.job};
    time_us now = svc_now (svc);
    struct who who = svc_who (svc, job);
    struct rsv_spec rsv = {.id = id,
                           .whose = part->whose,
                           .instead = part->instead,
                           .kind = RSV_COURTESY,
                           .req_count = job->req_count,
                           .req = job->reqs,
                           .licence_count = job->licence_count,
                           .licence = job->licence,
                           .who = &who};
    rsv.start = part->rec.slot_start > now ? part->rec.slot_start : now;
    rsv.end = part->rec.slot_start + svc_part_duration (svc, job->rec.walltime);
    int rc = part->rsv ? cluster_rsv_release (svc->cluster, id, now, err) : 0;
    part->rsv = false;
    if (rc == 0)
        rc = cluster_rsv_create (svc->cluster, &rsv, a, now, err);
    if (rc == 0) {
        part->rsv = true;
        rc = cluster_rsv_commit (svc->cluster, id, now, err);
    }
    return rc;
}

bool substitute_nodes (struct site_part *part)
{
    struct svc *svc = part->svc;
    struct site_job *job = part->job;
    struct err err = {0};
    struct allocation old = placement_parse (svc, job->rec.placement, svc->call_arena), fresh;
    char id[SITE_ID_MAX];
    if (instead_any (part)) /* what is to come instead of it counts on its nodes */
        return false;
    if (!seek (svc, part, &old, &fresh, &err) || reserve (svc, part, &fresh, &err) != 0)
        return false;
    char *before = job->rec.placement;
    job->rec.placement = placement_text (svc, &fresh);
    coalloc_answer_pack (part);
    int rc = svc_begin (svc, &err);
    if (rc == 0)
        rc = local_store_part_put (svc->store, &part->rec, &err);
    if (rc == 0)
        rc = svc_job_write (svc, job, true, NULL, 0, &err);
    if (svc_commit (svc, rc, &err) != 0) { /* found as it was after a restart */
        free (before);
        daemon_stop (svc->daemon, &err);
        return false;
    }
    log_event (svc->log, LOG_LEVEL_WARN, "coalloc", "nodes_substituted", "job=%s from=%s to=%s",
               site_id (svc, job->rec.number, id), before, job->rec.placement);
    free (before);
    return true;
}
