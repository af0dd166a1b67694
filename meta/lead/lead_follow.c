/* What a member of a group missed of jobs that were over before it was back.
 *
 * Who leads a job sends it to all, but asks nobody any more once a majority has its end (lead.h). So each member lists the
 * jobs that are over by when it came to know that, or to know more of them (of files that were taken away later): each
 * other reads on from the place up to which it has everything, asks for those of which it has nothing or less, and
 * notes the place when they are on its disk. From any member, so that it does not matter who led them. */
#include <stdlib.h>
#include <string.h>

#include "meta/store/jobrows.h"
#include "meta/lead/lead_i.h"

enum { LISTED_AT_ONCE = 128 };

#define TIMEOUT (5 * US_PER_S)

/* A stretch of another member's list. */
struct stretch {
    struct metad *metad;
    uint32_t member;
    uint64_t upto;
    uint32_t waiting;
    bool full, failed;
};

struct wanted {
    struct stretch *stretch;
    uint64_t job;
};

/* ---- asking */

static void list_ask (struct metad *metad, uint32_t member);

/* Once nothing of it is waited for. */
static void stretch_end (struct stretch *stretch)
{
    struct metad *metad = stretch->metad;
    if (--stretch->waiting > 0)
        return;
    if (!metad->stopping) {
        struct peer *peer = &metad->peers->member[stretch->member];
        peer->following = false;
        if (!stretch->failed &&
            metastore_followed_save (metad->store, peer->name, stretch->upto, NULL) == 0) {
            peer->followed = stretch->upto;
            if (stretch->full)
                list_ask (metad, stretch->member);
        } /* else again with its next beat */
    }
    free (stretch);
}

static void state_came (void *arg, const struct rpc_result *result)
{
    struct wanted *wanted = arg;
    struct stretch *stretch = wanted->stretch;
    bool kept = false;
    if (!stretch->metad->stopping && result->status == RPC_OK)
        lead_keep (stretch->metad, wanted->job, (const Nui__Meta__V1__StateReply *)result->reply,
                   &kept, NULL);
    stretch->failed = stretch->failed || !kept;
    free (wanted);
    stretch_end (stretch);
}

/* Of this job nothing is here, or less. */
static bool lacks (struct metad *metad, const Nui__Meta__V1__Copy *copy, struct arena *arena)
{
    struct vote theirs = {0, copy->accepted, copy->version};
    struct lead_row row;
    struct err err;
    err_clear (&err);
    return metastore_lead_load (metad->store, copy->job, arena, &row, &err) != 0 || row.open ||
           vote_newer (&theirs, &row.vote);
}

static void list_came (void *arg, const struct rpc_result *result)
{
    struct stretch *stretch = arg;
    struct metad *metad = stretch->metad;
    const Nui__Meta__V1__OverReply *reply = (const Nui__Meta__V1__OverReply *)result->reply;
    struct arena *arena = arena_create (0);
    stretch->failed = result->status != RPC_OK || reply->upto == 0;
    for (size_t i = 0; !metad->stopping && !stretch->failed && i < reply->n_jobs; i++) {
        Nui__Meta__V1__StateRequest request = NUI__META__V1__STATE_REQUEST__INIT;
        if (!lacks (metad, reply->jobs[i], arena))
            continue;
        struct wanted *wanted = malloc (sizeof *wanted);
        if (!wanted)
            abort ();
        *wanted = (struct wanted){stretch, reply->jobs[i]->job};
        request.job = wanted->job;
        stretch->waiting++;
        link_call (metad->peers->member[stretch->member].link, "State", &request.base, TIMEOUT,
                   state_came, wanted);
    }
    if (!stretch->failed) {
        stretch->upto = reply->upto;
        stretch->full = reply->n_jobs == LISTED_AT_ONCE;
    }
    arena_destroy (arena);
    stretch_end (stretch);
}

static void list_ask (struct metad *metad, uint32_t member)
{
    struct peer *peer = &metad->peers->member[member];
    Nui__Meta__V1__OverRequest request = NUI__META__V1__OVER_REQUEST__INIT;
    struct stretch *stretch = calloc (1, sizeof *stretch);
    if (!stretch)
        abort ();
    *stretch = (struct stretch){.metad = metad, .member = member, .waiting = 1};
    request.after = peer->followed;
    peer->following = true;
    link_call (peer->link, "Over", &request.base, TIMEOUT, list_came, stretch);
}

void lead_follow (struct peers *peers, struct peer *peer, uint64_t last)
{
    if (peer->following || last == peer->followed)
        return;
    if (last < peer->followed) /* it has another disk */
        peer->followed = 0;
    list_ask (peers->metad, (uint32_t)(peer - peers->member));
}

/* ---- answering */

void lead_on_over (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__OverRequest *request = (const Nui__Meta__V1__OverRequest *)message;
    struct metad *metad = self;
    if (peers_caller (metad, call) == UINT32_MAX)
        return;
    Nui__Meta__V1__OverReply reply = NUI__META__V1__OVER_REPLY__INIT;
    struct arena *arena = arena_create (0);
    struct lead_row *rows = NULL;
    uint32_t count = 0;
    struct err err;
    err_clear (&err);
    int rc = request->after <= INT64_MAX ? 0 : err_set (&err, ERR_INVALID, "no place in the list");
    if (rc == 0)
        rc = metastore_leads_over (metad->store, request->after, LISTED_AT_ONCE, arena, &rows,
                                   &count, &err);
    reply.jobs = lead_copies (rows, count, arena);
    reply.n_jobs = count;
    reply.upto = count ? rows[count - 1].place : 0;
    rpccall_answer (call, rc, &reply.base, &err);
    arena_destroy (arena);
}

void lead_on_state (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__StateRequest *request = (const Nui__Meta__V1__StateRequest *)message;
    struct metad *metad = self;
    if (peers_caller (metad, call) == UINT32_MAX)
        return;
    Nui__Meta__V1__StateReply reply = NUI__META__V1__STATE_REPLY__INIT;
    struct arena *arena = arena_create (0);
    struct lead_row row;
    struct err err;
    err_clear (&err);
    int rc = request->job <= INT64_MAX ? 0 : err_set (&err, ERR_INVALID, "no job's number");
    if (rc == 0)
        rc = metastore_lead_load (metad->store, request->job, arena, &row, &err);
    if (rc == 0 && row.open)
        rc = err_set (&err, ERR_CONFLICT, "that job is not over");
    if (rc == 0)
        rc = metastore_rows_load (metad->store, request->job, true, arena, &reply.rows,
                                  &reply.n_rows, &err);
    if (rc == 0) {
        reply.leader = (char *)row.leader;
        reply.accepted = row.vote.accepted;
        reply.version = row.vote.version;
        rpccall_reply (call, &reply.base);
    } else {
        rpccall_fail (call, &err);
    }
    arena_destroy (arena);
}
