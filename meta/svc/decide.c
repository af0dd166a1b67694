#include "meta/svc/decide.h"

#include <stdlib.h>
#include <string.h>

#include "meta/svc/job.h"

#define ROUND (2 * US_PER_S)

struct waiter {
    void (*done) (void *arg, enum decision decided, bool failed);
    void *arg;
    struct waiter *next;
};

/* A decision that is being sought. */
struct proposal {
    struct peers *peers;
    uint8_t transaction[16];
    struct proposer proposer;
    char owner[COALLOC_NAME_MAX];
    char leader[COALLOC_NAME_MAX]; /* from whom it is taken over; "": from nobody */
    void *transfer;
    size_t transfer_len;
    int64_t transfer_ballot;       /* by which it was voted for; INT64_MAX: it is the leader's own, and newer */
    struct waiter *waiters;
    struct event *timer;
    struct proposal *next;
};

/* A question to a member. */
struct question {
    struct metad *metad;
    uint8_t transaction[16];
    uint32_t member;
    uint64_t ballot;
    bool cast;
};

static void round_begin (struct proposal *proposal);

static struct proposal *proposal_find (const struct peers *peers, const uint8_t transaction[16])
{
    struct proposal *proposal = peers->proposals;
    while (proposal && memcmp (proposal->transaction, transaction, 16) != 0)
        proposal = proposal->next;
    return proposal;
}

bool decide_running (const struct peers *peers, const uint8_t transaction[16])
{
    return proposal_find (peers, transaction) != NULL;
}

/* ---- votes */

/* One's own vote, or another's who asks here; durable when it returns 0. transfer: what was voted for before, in
 * the arena. */
static int vote_give (struct peers *peers, const char *caller,
                      const Nui__Meta__V1__VoteRequest *request, struct arena *arena,
                      struct vote_answer *answer, struct metastore_blob *transfer, struct err *err)
{
    struct metastore *store = peers->metad->store;
    struct vote_row row = {0};
    int rc = metastore_vote_load (store, request->transaction.data, arena, &row, err);
    if (rc == ERR_NOT_FOUND) {
        memcpy (row.transaction, request->transaction.data, sizeof row.transaction);
        row.owner = row.leader = request->owner;
        rc = 0;
    }
    *answer = (struct vote_answer){false, row.vote};
    *transfer = row.vote.voted ? row.transfer : (struct metastore_blob){NULL, 0};
    /* Who leads it and is alive keeps it. */
    bool free_to = strcmp (row.leader, caller) == 0 || peers_silent (peers, row.leader);
    if (rc == 0 && free_to)
        *answer = vote_take (&row.vote, request->ballot, request->cast,
                             request->commit ? DECISION_COMMIT : DECISION_ABORT);
    if (rc == 0 && answer->granted) {
        if (request->cast && strcmp (row.leader, caller) != 0) { /* who only asked may give up */
            row.prior = row.leader;
            row.leader = caller;
        }
        if (request->transfer.len && (request->cast || !row.transfer.len)) /* it goes with the vote */
            row.transfer = (struct metastore_blob){request->transfer.data, request->transfer.len};
        rc = metastore_vote_save (store, &row, err);
    }
    return rc;
}

void decide_on_vote (void *self, struct rpccall *call, const ProtobufCMessage *message)
{
    const Nui__Meta__V1__VoteRequest *request = (const Nui__Meta__V1__VoteRequest *)message;
    struct peers *peers = ((struct metad *)self)->peers;
    Nui__Meta__V1__VoteReply reply = NUI__META__V1__VOTE_REPLY__INIT;
    struct vote_answer answer;
    struct err err;
    const char *caller = rpccall_peer (call)->name;
    uint32_t member = peers_index (peers, caller);
    err_clear (&err);
    if (member == UINT32_MAX || peers_index (peers, request->owner) == UINT32_MAX) {
        rpccall_finish (call, RPC_PERMISSION_DENIED, "not of this group (METACFG)");
        return;
    }
    bool own = request->ballot == 0 ? strcmp (request->owner, caller) == 0
                                    : ballot_member (request->ballot) == member;
    if (request->transaction.len != 16 || !own || request->ballot > INT32_MAX) {
        rpccall_finish (call, RPC_INVALID_ARGUMENT, "not a ballot of that metascheduler");
        return;
    }
    struct arena *arena = arena_create (0);
    struct metastore_blob transfer;
    if (vote_give (peers, caller, request, arena, &answer, &transfer, &err)) {
        rpccall_fail (call, &err);
        arena_destroy (arena);
        return;
    }
    reply.granted = answer.granted;
    reply.over = answer.vote.over;
    reply.promised = answer.vote.promised;
    reply.voted = answer.vote.voted;
    reply.accepted = answer.vote.accepted;
    reply.commit = answer.vote.decision == DECISION_COMMIT;
    if (!request->cast)
        reply.transfer = (ProtobufCBinaryData){transfer.len, (uint8_t *)transfer.bytes};
    rpccall_reply (call, &reply.base);
    arena_destroy (arena);
}

/* ---- proposals */

static void proposal_free (struct proposal *proposal)
{
    struct proposal **at = &proposal->peers->proposals;
    while (*at != proposal)
        at = &(*at)->next;
    *at = proposal->next;
    while (proposal->waiters) {
        struct waiter *waiter = proposal->waiters;
        proposal->waiters = waiter->next;
        free (waiter);
    }
    if (proposal->timer)
        event_free (proposal->timer);
    free (proposal->transfer);
    free (proposal);
}

static void proposal_end (struct proposal *proposal, bool failed)
{
    enum decision decided = proposal->proposer.decision;
    struct waiter *waiters = proposal->waiters;
    log_event (proposal->peers->metad->log, LOG_LEVEL_INFO, "group", "decided",
               "owner=%s ballot=%llu outcome=%s", proposal->owner,
               (unsigned long long)proposal->proposer.ballot,
               failed ? "none" : decided == DECISION_COMMIT ? "commit" : "abort");
    proposal->waiters = NULL;
    proposal_free (proposal);
    while (waiters) {
        struct waiter *waiter = waiters;
        waiters = waiter->next;
        waiter->done (waiter->arg, decided, failed);
        free (waiter);
    }
}

/* After a stage has changed. */
static void proposal_go_on (struct proposal *proposal)
{
    switch (proposal->proposer.stage) {
    case PROPOSER_DECIDED:
        proposal_end (proposal, false);
        break;
    case PROPOSER_OVER:
        metastore_vote_over (proposal->peers->metad->store, proposal->transaction, NULL);
        proposal_end (proposal, true);
        break;
    default:
        round_begin (proposal);
        break;
    }
}

/* Of what was voted for that of the highest ballot goes on: its leader may have changed it since. */
static void transfer_take (struct proposal *proposal, const Nui__Meta__V1__VoteReply *reply)
{
    if (!reply->voted || !reply->transfer.len || (int64_t)reply->accepted <= proposal->transfer_ballot)
        return;
    void *copy = malloc (reply->transfer.len);
    if (!copy)
        abort ();
    memcpy (copy, reply->transfer.data, reply->transfer.len);
    free (proposal->transfer);
    proposal->transfer = copy;
    proposal->transfer_len = reply->transfer.len;
    proposal->transfer_ballot = (int64_t)reply->accepted;
}

static void question_done (void *arg, const struct rpc_result *result)
{
    struct question *q = arg;
    const Nui__Meta__V1__VoteReply *reply = (const Nui__Meta__V1__VoteReply *)result->reply;
    struct proposal *proposal = q->metad->stopping || result->status != RPC_OK
                                    ? NULL
                                    : proposal_find (q->metad->peers, q->transaction);
    if (proposal) {
        struct vote_answer answer = {
            reply->granted,
            {reply->promised, reply->voted, reply->accepted,
             reply->commit ? DECISION_COMMIT : DECISION_ABORT, reply->over}};
        transfer_take (proposal, reply);
        if (proposer_heard (&proposal->proposer, q->member, q->ballot, q->cast, &answer))
            proposal_go_on (proposal);
    }
    free (q);
}

static void question_send (struct proposal *proposal, uint32_t member,
                           const Nui__Meta__V1__VoteRequest *request)
{
    struct question *q = calloc (1, sizeof *q);
    if (!q)
        abort ();
    q->metad = proposal->peers->metad;
    memcpy (q->transaction, proposal->transaction, sizeof q->transaction);
    q->member = member;
    q->ballot = request->ballot;
    q->cast = request->cast;
    link_call (proposal->peers->member[member].link, "Vote", &request->base, ROUND, question_done,
               q);
}

/* What this stage says, to itself first: a ballot that is not on disk here is not used. */
static void round_begin (struct proposal *proposal)
{
    struct peers *peers = proposal->peers;
    const struct proposer *proposer = &proposal->proposer;
    Nui__Meta__V1__VoteRequest request = NUI__META__V1__VOTE_REQUEST__INIT;
    struct vote_answer own;
    struct metastore_blob before;
    uint32_t random;
    random_bytes (&random, sizeof random);
    duration_us wait = ROUND + (duration_us)(random % ROUND);
    struct timeval tv = {wait / US_PER_S, wait % US_PER_S};
    evtimer_add (proposal->timer, &tv);
    request.transaction = (ProtobufCBinaryData){16, proposal->transaction};
    request.ballot = proposer->ballot;
    request.cast = proposer->stage == PROPOSER_CASTING;
    request.commit = proposer->decision == DECISION_COMMIT;
    request.owner = proposal->owner;
    request.transfer = (ProtobufCBinaryData){proposal->transfer_len, proposal->transfer};
    struct arena *arena = arena_create (0);
    int rc = vote_give (peers, peers_self (peers), &request, arena, &own, &before, NULL);
    arena_destroy (arena);
    if (rc)
        return; /* a full disk, say: the timer tries again */
    if (proposer_heard (&proposal->proposer, peers->self, request.ballot, request.cast, &own)) {
        proposal_go_on (proposal); /* it was over */
        return;
    }
    if (!own.granted)
        return;
    for (uint32_t i = 0; i < peers->count; i++)
        if (i != peers->self)
            question_send (proposal, i, &request);
}

static void on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct proposal *proposal = arg;
    (void)fd;
    (void)what;
    if (proposal->leader[0] && !peers_silent (proposal->peers, proposal->leader)) {
        proposal_end (proposal, true);
        return;
    }
    proposer_again (&proposal->proposer);
    round_begin (proposal);
}

static struct proposal *proposal_create (struct peers *peers, const uint8_t transaction[16],
                                         const char *owner, const void *transfer, size_t len,
                                         int64_t transfer_ballot)
{
    struct proposal *proposal = calloc (1, sizeof *proposal);
    if (!proposal)
        abort ();
    proposal->peers = peers;
    memcpy (proposal->transaction, transaction, sizeof proposal->transaction);
    snprintf (proposal->owner, sizeof proposal->owner, "%s", owner);
    proposal->transfer = malloc (len + 1);
    proposal->timer = evtimer_new (peers->metad->base, on_timer, proposal);
    if (!proposal->transfer || !proposal->timer)
        abort ();
    if (len)
        memcpy (proposal->transfer, transfer, len);
    proposal->transfer_len = len;
    proposal->transfer_ballot = transfer_ballot;
    proposal->next = peers->proposals;
    peers->proposals = proposal;
    return proposal;
}

static int64_t accepted_by (const struct vote *vote)
{
    return vote->voted ? (int64_t)vote->accepted : -1;
}

static void waiter_add (struct proposal *proposal,
                        void (*done) (void *arg, enum decision decided, bool failed), void *arg)
{
    struct waiter *waiter = malloc (sizeof *waiter);
    if (!waiter)
        abort ();
    *waiter = (struct waiter){done, arg, proposal->waiters};
    proposal->waiters = waiter;
}

static void propose (void *self, const struct decision_ask *ask,
                     void (*done) (void *arg, enum decision decided, bool failed), void *arg)
{
    struct peers *peers = self;
    struct proposal *proposal = proposal_find (peers, ask->transaction);
    struct arena *arena = NULL;
    struct vote_row row = {0};
    struct err err;
    if (proposal) { /* asked again after its record could not be written */
        waiter_add (proposal, done, arg);
        return;
    }
    arena = arena_create (0);
    err_clear (&err);
    int rc = metastore_vote_load (peers->metad->store, ask->transaction, arena, &row, &err);
    if (rc && rc != ERR_NOT_FOUND) {
        arena_destroy (arena);
        done (arg, DECISION_ABORT, true);
        return;
    }
    proposal = proposal_create (peers, ask->transaction, rc ? peers_self (peers) : row.owner,
                                ask->transfer, ask->transfer_len,
                                ask->proposal == DECISION_COMMIT ? INT64_MAX : accepted_by (&row.vote));
    waiter_add (proposal, done, arg);
    if (rc && ask->proposal == DECISION_COMMIT)
        proposer_first (&proposal->proposer, peers->count, peers->self, DECISION_COMMIT);
    else
        proposer_later (&proposal->proposer, peers->count, peers->self, &row.vote, ask->proposal);
    arena_destroy (arena);
    round_begin (proposal);
}

void decide_take_over (struct peers *peers, const struct vote_row *row,
                       void (*done) (void *arg, enum decision decided, bool failed), void *arg)
{
    struct proposal *proposal = proposal_create (peers, row->transaction, row->owner,
                                                 row->transfer.bytes, row->transfer.len,
                                                 accepted_by (&row->vote));
    snprintf (proposal->leader, sizeof proposal->leader, "%s",
              strcmp (row->leader, peers_self (peers)) == 0 ? "" : row->leader);
    waiter_add (proposal, done, arg);
    proposer_later (&proposal->proposer, peers->count, peers->self, &row->vote, DECISION_ABORT);
    round_begin (proposal);
}

static void forget (void *self, const uint8_t transaction[16])
{
    struct peers *peers = self;
    metastore_vote_over (peers->metad->store, transaction, NULL); /* else found at the next start */
}

struct decision_log decide_log (struct peers *peers)
{
    static const struct decision_log_ops ops = {propose, forget};
    return (struct decision_log){&ops, peers};
}

void decide_close (struct peers *peers)
{
    while (peers->proposals) {
        struct waiter *waiter = peers->proposals->waiters;
        for (; waiter; waiter = waiter->next)
            waiter->done (waiter->arg, DECISION_ABORT, true); /* frees its argument */
        proposal_free (peers->proposals);
    }
}
