/* lead_take: what a member promises and keeps of the jobs that others lead, and how it takes them over. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "meta/store/jobrows.h"
#include "meta/lead/lead_i.h"
#include "proto/rpc/pbcopy.h"

#define ROUND (2 * US_PER_S)

/* A job that this member wants to lead. */
struct taking {
    struct metad *metad;
    uint64_t number;
    struct inquiry inquiry;
    char leader[COALLOC_NAME_MAX];  /* who led it; itself: it has to have a higher ballot */
    Nui__Meta__V1__VoteReply *best; /* with the state that goes on; NULL: what is here */
    struct event *timer;
    struct taking *next;
};

struct question {
    struct metad *metad;
    uint64_t number, ballot;
    uint32_t member;
};

static struct taking *taking_find (const struct metad *metad, uint64_t number)
{
    struct taking *taking = metad->lead->takings;
    while (taking && taking->number != number)
        taking = taking->next;
    return taking;
}

static void taking_end (struct taking *taking)
{
    struct lead *lead = taking->metad->lead;
    LL_DELETE (lead->takings, taking);
    lead->taking_count--;
    if (taking->best)
        nui__meta__v1__vote_reply__free_unpacked (taking->best, NULL);
    event_free (taking->timer);
    free (taking);
}

uint32_t lead_takes (const struct metad *metad)
{
    return metad->lead->taking_count;
}

/* The row, or that of a job of which nothing is here. */
static int row_load (struct metad *metad, uint64_t number, struct arena *arena,
                     struct lead_row *row, struct err *err)
{
    int rc = metastore_lead_load (metad->store, number, arena, row, err);
    if (rc != ERR_NOT_FOUND)
        return rc;
    err_clear (err);
    *row = (struct lead_row){.job = number, .leader = ""};
    return 0;
}

/* What is in memory is not what is on disk any more. */
static void changed_on_disk (struct metad *metad, uint64_t number)
{
    if (job_live (metad, number))
        job_reload (metad, number);
    struct gridjob *job = job_live (metad, number);
    if (job)
        job_tell (job);
    else
        parts_tell (metad, job_told, metad, number);
}

/* ---- a member's answers */

static int promise_give (struct metad *metad, const char *caller,
                         const Nui__Meta__V1__VoteRequest *request, struct lead_row *row,
                         struct arena *arena, Nui__Meta__V1__VoteReply *reply, struct err *err)
{
    /* Who leads it and is alive keeps it. */
    bool free_to = !row->leader[0] || strcmp (row->leader, caller) == 0 ||
                   peers_silent (metad->peers, row->leader);
    if (!free_to || !vote_take (&row->vote, request->ballot, false, 0))
        return 0;
    int rc = metastore_lead_save (metad->store, row, err);
    if (rc == 0 && row->vote.accepted)
        rc = metastore_rows_load (metad->store, row->job, true, arena, &reply->rows, &reply->n_rows,
                                  err);
    reply->granted = rc == 0;
    return rc;
}

static int state_keep (struct metad *metad, const Nui__Meta__V1__VoteRequest *request,
                       struct lead_row *row, Nui__Meta__V1__VoteReply *reply, struct err *err)
{
    int rc = metastore_begin (metad->store, err);
    if (rc)
        return rc;
    rc = metastore_rows_save (metad->store, row->job, request->rows, request->n_rows, &reply->other,
                              err);
    if (rc == 0)
        rc = metastore_lead_save (metad->store, row, err);
    if (rc == 0)
        rc = metastore_commit (metad->store, err);
    if (rc)
        metastore_rollback (metad->store);
    reply->lacks = rc == ERR_NOT_FOUND;
    return rc;
}

/* The same signed job is here as another, which can be no majority's any more. */
static bool other_yields (struct metad *metad, const struct lead_row *row,
                          Nui__Meta__V1__VoteReply *reply)
{
    struct arena *arena = arena_create (0);
    struct lead_row other;
    struct err err;
    err_clear (&err);
    bool known = metastore_lead_load (metad->store, reply->other, arena, &other, &err) == 0;
    reply->other_voted = known && other.stands;
    bool yields = known && !other.stands && row->stands && reply->other != row->job &&
                  metastore_begin (metad->store, &err) == 0;
    arena_destroy (arena);
    if (!yields)
        return false;
    int rc = metastore_rows_delete (metad->store, reply->other, &err);
    if (rc == 0)
        rc = metastore_commit (metad->store, &err);
    if (rc)
        metastore_rollback (metad->store);
    else
        job_destroy (job_live (metad, reply->other));
    return rc == 0;
}

static int cast_take (struct metad *metad, const char *caller,
                      const Nui__Meta__V1__VoteRequest *request, struct lead_row *row,
                      Nui__Meta__V1__VoteReply *reply, struct err *err)
{
    struct vote before = row->vote;
    if (!vote_take (&row->vote, request->ballot, true, request->version))
        return 0;
    if (vote_newer (&row->vote, &before)) {
        row->leader = caller;
        row->stands = row->stands || request->stands;
        /* Its leader has it, and this one. */
        uint32_t leader = peers_index (metad->peers, caller);
        bool over = request->over ||
                    quorum_enough (1u << leader | 1u << metad->peers->self, metad->peers->count);
        row->open = !over || !metastore_rows_ended (request->rows, request->n_rows);
        int rc = state_keep (metad, request, row, reply, err);
        if (reply->other && other_yields (metad, row, reply)) {
            reply->other = 0;
            err_clear (err);
            rc = state_keep (metad, request, row, reply, err);
        }
        if (reply->lacks || reply->other) {
            err_clear (err);
            row->vote = before;
            return 0;
        }
        if (rc)
            return rc;
        struct taking *taking = taking_find (metad, row->job);
        if (taking) /* another was quicker */
            taking_end (taking);
        changed_on_disk (metad, row->job);
    } else if (request->over && row->open) {
        int rc = metastore_lead_closed (metad->store, row->job, err);
        if (rc)
            return rc;
        changed_on_disk (metad, row->job);
    }
    reply->granted = true;
    return 0;
}

int lead_keep (struct metad *metad, uint64_t job, const Nui__Meta__V1__StateReply *state,
               bool *kept, struct err *err)
{
    Nui__Meta__V1__VoteRequest request = NUI__META__V1__VOTE_REQUEST__INIT;
    Nui__Meta__V1__VoteReply reply = NUI__META__V1__VOTE_REPLY__INIT;
    struct arena *arena = arena_create (0);
    struct lead_row row;
    request.job = job;
    request.ballot = state->accepted;
    request.version = state->version;
    request.stands = request.over = true;
    request.rows = state->rows;
    request.n_rows = state->n_rows;
    int rc = row_load (metad, job, arena, &row, err);
    if (rc == 0)
        rc = cast_take (metad, state->leader, &request, &row, &reply, err);
    *kept = rc == 0 && reply.granted;
    arena_destroy (arena);
    return rc;
}

void lead_on_vote (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__VoteRequest *request = (const Nui__Meta__V1__VoteRequest *)message;
    struct metad *metad = self;
    Nui__Meta__V1__VoteReply reply = NUI__META__V1__VOTE_REPLY__INIT;
    struct lead_row row;
    struct err err;
    const char *caller = rpccall_peer (call)->name;
    uint32_t member = peers_caller (metad, call);
    err_clear (&err);
    if (member == UINT32_MAX)
        return;
    if (request->ballot < QUORUM_STRIDE || ballot_member (request->ballot) != member ||
        request->ballot > INT32_MAX || request->job == 0 || request->job > INT64_MAX ||
        request->version > INT64_MAX) {
        rpccall_finish (call, RPC_INVALID_ARGUMENT, "not a ballot of that metascheduler");
        return;
    }
    struct arena *arena = arena_create (0);
    int rc = row_load (metad, request->job, arena, &row, &err);
    if (rc == 0)
        rc = request->cast ? cast_take (metad, caller, request, &row, &reply, &err)
                           : promise_give (metad, caller, request, &row, arena, &reply, &err);
    reply.promised = row.vote.promised;
    reply.accepted = row.vote.accepted;
    reply.version = row.vote.version;
    reply.leader = (char *)row.leader;
    rpccall_answer (call, rc, &reply.base, &err);
    arena_destroy (arena);
}

/* ---- taking over */

static int state_install (struct taking *taking, struct arena *arena, struct err *err)
{
    struct metad *metad = taking->metad;
    const Nui__Meta__V1__VoteReply *best = taking->best;
    uint64_t other = 0;
    struct lead_row row;
    int rc = row_load (metad, taking->number, arena, &row, err);
    if (rc == 0 && row.vote.promised > taking->inquiry.ballot)
        rc = err_set (err, ERR_CONFLICT, "promised to another since");
    /* What is here may have gone on since it was asked. */
    if (rc == 0 && best && vote_newer (&taking->inquiry.best, &row.vote))
        rc = metastore_rows_save (metad->store, row.job, best->rows, best->n_rows, &other, err);
    if (rc == 0)
        rc = metastore_lead_version (metad->store, row.job, err);
    row.leader = peers_self (metad->peers);
    row.open = true;
    row.vote.promised = row.vote.accepted = taking->inquiry.ballot;
    return rc ? rc : metastore_lead_save (metad->store, &row, err);
}

/* A majority has promised: it is led here from now on. */
static void taken (struct taking *taking)
{
    struct metad *metad = taking->metad;
    uint64_t number = taking->number;
    struct arena *arena = arena_create (0);
    struct err err;
    err_clear (&err);
    int rc = metastore_begin (metad->store, &err);
    if (rc == 0)
        rc = state_install (taking, arena, &err);
    if (rc == 0)
        rc = metastore_commit (metad->store, &err);
    if (rc)
        metastore_rollback (metad->store);
    arena_destroy (arena);
    log_event (metad->log, rc ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "group",
               rc ? "not_taken" : "taken_over", "job=grid.%llu from=%s ballot=%llu",
               (unsigned long long)number, taking->leader,
               (unsigned long long)taking->inquiry.ballot);
    if (rc)
        return; /* the timer tries again */
    taking_end (taking);
    if (job_live (metad, number))
        job_reload (metad, number);
    struct gridjob *job = job_get (metad, number, &err);
    if (!job)
        return;
    job->reloaded = !job_ended (job);
    lead_saved (job);
    job_tell (job);
    if (job_live (metad, number) == job)
        job_timer (job, 0);
}

static void heard (struct taking *taking, uint32_t member, uint64_t ballot,
                   const Nui__Meta__V1__VoteReply *reply)
{
    struct vote vote = {reply->promised, reply->accepted, reply->version};
    bool best,
        enough = inquiry_heard (&taking->inquiry, member, ballot, reply->granted, &vote, &best);
    if (best) {
        if (taking->best)
            nui__meta__v1__vote_reply__free_unpacked (taking->best, NULL);
        taking->best = member == taking->inquiry.self
                           ? NULL
                           : (Nui__Meta__V1__VoteReply *)pbcopy (&reply->base);
    }
    if (enough)
        taken (taking);
}

static void question_done (void *arg, const struct rpc_result *result)
{
    struct question *q = arg;
    struct metad *metad = q->metad;
    const Nui__Meta__V1__VoteReply *reply = (const Nui__Meta__V1__VoteReply *)result->reply;
    struct taking *taking =
        metad->stopping || result->status != RPC_OK ? NULL : taking_find (metad, q->number);
    if (taking &&
        (reply->granted || strcmp (reply->leader, taking->leader) == 0 || !reply->leader[0])) {
        heard (taking, q->member, q->ballot, reply);
    } else if (taking) { /* led by another, as that one knows */
        taking_end (taking);
        lead_told (metad, q->number, reply->leader);
    }
    free (q);
}

/* To itself first: a ballot that is not on disk here is not used. */
static void round_begin (struct taking *taking)
{
    struct metad *metad = taking->metad;
    struct peers *peers = metad->peers;
    Nui__Meta__V1__VoteRequest request = NUI__META__V1__VOTE_REQUEST__INIT;
    Nui__Meta__V1__VoteReply own = NUI__META__V1__VOTE_REPLY__INIT;
    uint64_t number = taking->number, ballot = taking->inquiry.ballot;
    struct lead_row row;
    struct err err;
    uint32_t random;
    random_bytes (&random, sizeof random);
    duration_us wait = ROUND + (duration_us)(random % ROUND);
    struct timeval tv = {wait / US_PER_S, wait % US_PER_S};
    evtimer_add (taking->timer, &tv);
    request.job = number;
    request.ballot = ballot;
    struct arena *arena = arena_create (0);
    err_clear (&err);
    int rc = row_load (metad, number, arena, &row, &err);
    own.granted = rc == 0 && vote_take (&row.vote, ballot, false, 0);
    if (own.granted)
        rc = metastore_lead_save (metad->store, &row, &err);
    own.promised = row.vote.promised;
    own.accepted = row.vote.accepted;
    own.version = row.vote.version;
    arena_destroy (arena);
    if (rc)
        return; /* a full disk, say: the timer tries again */
    heard (taking, peers->self, ballot, &own);
    for (uint32_t i = 0; i < peers->count; i++) {
        struct question *q = i == peers->self || !own.granted ? NULL : malloc (sizeof *q);
        if (!q)
            continue;
        *q = (struct question){metad, number, ballot, i};
        link_call (peers->member[i].link, "Vote", &request.base, ROUND, question_done, q);
    }
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct taking *taking = arg;
    struct metad *metad = taking->metad;
    (void)fd;
    (void)what;
    bool own = strcmp (taking->leader, peers_self (metad->peers)) == 0;
    if (!own && !peers_silent (metad->peers, taking->leader)) {
        taking_end (taking);
        return;
    }
    if (taking->best)
        nui__meta__v1__vote_reply__free_unpacked (taking->best, NULL);
    taking->best = NULL;
    inquiry_again (&taking->inquiry);
    round_begin (taking);
}

void lead_take (struct metad *metad, uint64_t number)
{
    struct peers *peers = metad->peers;
    struct arena *arena = arena_create (0);
    struct lead_row row;
    struct err err;
    err_clear (&err);
    if (!taking_find (metad, number) &&
        metastore_lead_load (metad->store, number, arena, &row, &err) == 0) {
        struct taking *taking = calloc (1, sizeof *taking);
        if (!taking)
            abort ();
        taking->metad = metad;
        taking->number = number;
        snprintf (taking->leader, sizeof taking->leader, "%s", row.leader);
        taking->timer = evtimer_new (metad->base, on_timer, taking);
        if (!taking->timer)
            abort ();
        LL_PREPEND (metad->lead->takings, taking);
        metad->lead->taking_count++;
        inquiry_begin (&taking->inquiry, peers->count, peers->self, &row.vote);
        round_begin (taking);
    }
    arena_destroy (arena);
}

void lead_told (struct metad *metad, uint64_t number, const char *leader)
{
    struct arena *arena = arena_create (0);
    struct lead_row row;
    struct err err;
    err_clear (&err);
    const char *self = peers_self (metad->peers);
    bool known = metastore_lead_load (metad->store, number, arena, &row, &err) == 0;
    if (known && (strcmp (leader, self) == 0 || !leader[0])) {
        lead_take (metad, number); /* by a ballot above what somebody has promised */
    } else if (known && strcmp (leader, row.leader) != 0 &&
               peers_index (metad->peers, leader) != UINT32_MAX) {
        log_event (metad->log, LOG_LEVEL_INFO, "group", "led_by", "job=grid.%llu leader=%s",
                   (unsigned long long)number, leader);
        if (metastore_lead_leader (metad->store, number, leader, &err) == 0)
            changed_on_disk (metad, number);
    }
    arena_destroy (arena);
}

void lead_takes_end (struct lead *lead)
{
    while (lead->takings)
        taking_end (lead->takings);
}
