/* What a majority of the group has of the jobs that are led here: each change is sent to the others, who vote for it, and
 * whoever waits for the votes is called when there are enough. Nothing of a job leaves before (lead_may_send, lead_then). */
#include "meta/lead/lead_i.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "meta/store/jobrows.h"

/* Of one turn, and what the rows of a job are beside what was signed. */
enum { RECOVERED_AT_ONCE = 1000, FLUSH_BYTES = 1 << 20, ROWS_BYTES = 4096 };

#define VOTE_TIMEOUT (3 * US_PER_S)

struct lead_wait {
    uint64_t version;
    void (*done) (void *arg, uint64_t as);
    void *arg;
    struct lead_wait *next;
};

/* A state that was sent to a member. */
struct cast {
    struct metad *metad;
    uint64_t number, ballot, version;
    uint32_t member;
    bool whole;
};

/* ---- who leads */

static struct joblead *lead_make (struct gridjob *job, const char *leader)
{
    struct joblead *lead = calloc (1, sizeof *lead);
    if (!lead)
        abort ();
    snprintf (lead->leader, sizeof lead->leader, "%s", leader);
    job->lead = lead;
    return lead;
}

static void on_flush (evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    lead_flush (arg, false);
}

/* What has been saved is put to the vote at the end of this turn. */
static void flush_soon (struct metad *metad)
{
    const struct timeval at_once = {0, 0};
    if (!evtimer_pending (metad->lead->flush, NULL))
        evtimer_add (metad->lead->flush, &at_once);
}

static void list (struct gridjob *job)
{
    struct metad *metad = job->metad;
    struct joblead *lead = job->lead;
    lead->has[metad->peers->self] = job->change;
    if (!lead->listed)
        DL_APPEND2 (metad->lead->unvoted, job, lead->prev, lead->next);
    lead->listed = true;
    flush_soon (metad);
}

static void unlist (struct gridjob *job)
{
    struct joblead *lead = job->lead;
    if (lead->listed)
        DL_DELETE2 (job->metad->lead->unvoted, job, lead->prev, lead->next);
    lead->listed = false;
}

static int lead_job_inserting (struct gridjob *job, struct err *err)
{
    struct peers *peers = job->metad->peers;
    if (!peers)
        return 0;
    struct joblead *lead = lead_make (job, peers_self (peers));
    lead->ballot = ballot_first (peers->self);
    lead->open = true;
    lead->before = job->state;
    struct lead_row row = {.job = job->number, .leader = lead->leader, .open = true};
    row.vote.promised = row.vote.accepted = lead->ballot;
    return metastore_lead_save (job->metad->store, &row, err);
}

static int lead_job_saving (struct gridjob *job, bool with_record, struct err *err)
{
    (void)with_record;
    /* What changes after its end goes to who lists what is over. */
    return job->lead && job_over (job) ? metastore_lead_closed (job->metad->store, job->number, err)
                                       : 0;
}

static int lead_job_loaded (struct gridjob *job, struct arena *arena, struct err *err)
{
    struct peers *peers = job->metad->peers;
    struct lead_row row;
    if (!peers)
        return 0;
    int rc = metastore_lead_load (job->metad->store, job->number, arena, &row, err);
    if (rc == ERR_NOT_FOUND)
        err_clear (err);
    if (rc)
        return rc == ERR_NOT_FOUND ? 0 : rc;
    struct joblead *lead = lead_make (job, row.leader);
    lead->open = row.open;
    lead->before = !job_ended (job) ? job->state
                   : job->start_us && !job->start_is_estimate
                       ? NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING
                       : NUI__META__V1__GRID_JOB_STATE__GRID_PENDING;
    lead->ballot = row.vote.accepted;
    lead->stands = row.stands;
    lead->taken = lead->ballot != ballot_first (peers->self);
    if (lead->open && !job_is_elsewhere (job))
        list (job);
    return 0;
}

void lead_saved (struct gridjob *job)
{
    if (!job->lead || job_is_elsewhere (job))
        return;
    if (!job_ended (job))
        job->lead->before = job->state;
    list (job);
}

static void lead_job_saved (struct gridjob *job, bool with_record)
{
    (void)with_record;
    lead_saved (job);
}

struct gridjob **lead_hidden (const struct metad *metad, struct arena *arena, uint32_t *count)
{
    struct gridjob *job, *first = metad->lead ? metad->lead->unvoted : NULL;
    uint32_t most = 0;
    *count = 0;
    DL_FOREACH2 (first, job, lead->next)
    most++;
    struct gridjob **out = arena_array (arena, most + 1u, sizeof (struct gridjob *));
    DL_FOREACH2 (first, job, lead->next)
    if (job_untold (job))
        out[(*count)++] = job;
    return out;
}

int lead_recover (struct metad *metad, struct err *err)
{
    struct arena *arena = arena_create (0);
    struct lead_row *rows = NULL;
    uint32_t count = 0;
    uint64_t after = 0;
    int rc = 0;
    do {
        if (metad->peers)
            rc = metastore_leads_open (metad->store, peers_self (metad->peers), after,
                                       RECOVERED_AT_ONCE, arena, &rows, &count, err);
        for (uint32_t i = 0; i < count && rc == 0; i++) {
            after = rows[i].job;
            if (rows[i].vote.version && !job_get (metad, after, err)) /* listed when it is loaded */
                rc = err->code;
        }
        arena_reset (arena);
    } while (count == RECOVERED_AT_ONCE && rc == 0);
    arena_destroy (arena);
    return rc;
}

void lead_envelope_changed (struct gridjob *job)
{
    if (job->lead)
        job->lead->whole = 0;
}

Nui__Meta__V1__Copy **lead_copies (const struct lead_row *rows, uint32_t count, struct arena *arena)
{
    Nui__Meta__V1__Copy **out = arena_array (arena, count + 1u, sizeof *out);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = arena_new (arena, Nui__Meta__V1__Copy);
        nui__meta__v1__copy__init (out[i]);
        out[i]->job = rows[i].job;
        out[i]->accepted = rows[i].vote.accepted;
        out[i]->version = rows[i].vote.version;
    }
    return out;
}

/* ---- waiting for a majority */

bool lead_may_send (struct gridjob *job)
{
    struct joblead *lead = job->lead;
    if (!lead)
        return true;
    if (job_is_elsewhere (job))
        return false;
    if (lead->voted < job->change) {
        lead->blocked = true;
        return false;
    }
    if (peers_lead (job->metad))
        return true;
    job_timer (job, US_PER_S);
    return false;
}

void lead_then (struct gridjob *job, void (*done) (void *arg, uint64_t as), void *arg)
{
    struct joblead *lead = job->lead;
    if (!lead || lead->voted >= job->change || job_is_elsewhere (job)) {
        done (arg, !lead || lead->voted >= job->change ? job->number : 0);
        return;
    }
    struct lead_wait *wait = malloc (sizeof *wait);
    if (!wait)
        abort ();
    *wait = (struct lead_wait){job->change, done, arg, NULL};
    LL_APPEND (lead->waits, wait);
}

static void waits_end (struct joblead *lead, uint64_t as)
{
    while (lead->waits) {
        struct lead_wait *wait = lead->waits;
        lead->waits = wait->next;
        wait->done (wait->arg, as);
        free (wait);
    }
}

static void lead_job_freed (struct gridjob *job)
{
    struct joblead *lead = job->lead;
    if (!lead)
        return;
    unlist (job);
    job->lead = NULL;
    waits_end (lead, 0);
    free (lead);
}

static int over_save (struct gridjob *job)
{
    struct metastore *store = job->metad->store;
    struct err err;
    err_clear (&err);
    int rc = metastore_begin (store, &err);
    if (rc)
        return rc;
    rc = metastore_lead_closed (store, job->number, &err);
    parts_ask (rc, job->metad, job_closing, job, &err);
    if (rc == 0)
        rc = metastore_commit (store, &err);
    if (rc)
        metastore_rollback (store);
    return rc;
}

/* Makes durable what a majority has, before anybody is told. */
static bool voted_save (struct gridjob *job)
{
    struct joblead *lead = job->lead;
    if (!lead->stands)
        lead->stands = metastore_lead_stands (job->metad->store, job->number, NULL) == 0;
    if (lead->stands && job_untold (job) && lead->voted == job->change)
        lead->open = over_save (job) != 0;
    return lead->stands && !(job_untold (job) && lead->voted == job->change);
}

/* A majority has more of it than before. */
static void voted (struct gridjob *job)
{
    struct metad *metad = job->metad;
    struct joblead *lead = job->lead;
    uint64_t number = job->number;
    bool untold = job_untold (job);
    if (!voted_save (job)) { /* a full disk, say: they are asked again at the next tick */
        for (uint32_t i = 0; i < metad->peers->count; i++)
            lead->has[i] = i == metad->peers->self ? job->change : 0;
        lead->voted = 0;
        lead->paused = UINT32_MAX;
        return;
    }
    while (lead->waits && lead->waits->version <= lead->voted) {
        struct lead_wait *wait = lead->waits;
        lead->waits = wait->next;
        wait->done (wait->arg, number);
        free (wait);
        if (job_live (metad, number) != job || job->lead != lead)
            return;
    }
    if (lead->voted == job->change && lead->blocked) {
        lead->blocked = false;
        job_timer (job, 0);
    }
    if (untold && job_over (job))
        job_tell (job);
}

/* A majority has all of it, and who does not answer now will ask with a beat. */
static void settle (struct gridjob *job)
{
    const struct peers *peers = job->metad->peers;
    struct joblead *lead = job->lead;
    bool more = lead->voted < job->change;
    for (uint32_t i = 0; i < peers->count; i++)
        more = more || (lead->has[i] < job->change && !(lead->paused >> i & 1));
    if (more)
        return;
    unlist (job);
    job_retire (job);
}

/* ---- asking for votes */

/* The user has it as another job of the group, and no majority can have had it as this one. */
static void withdraw (struct gridjob *job, uint64_t other, bool stands)
{
    struct metad *metad = job->metad;
    struct err err;
    err_clear (&err);
    log_event (metad->log, LOG_LEVEL_WARN, "group", "withdrawn", "job=%s other=grid.%llu", job->id,
               (unsigned long long)other);
    int rc = metastore_begin (metad->store, &err);
    if (rc == 0)
        rc = metastore_rows_delete (metad->store, job->number, &err);
    if (rc == 0)
        rc = metastore_commit (metad->store, &err);
    if (rc) {
        metastore_rollback (metad->store); /* at the next answer */
        return;
    }
    struct joblead *lead = job->lead;
    struct lead_wait *waits = lead->waits;
    lead->waits = NULL;
    job_destroy (job);
    struct joblead rest = {.waits = waits};
    waits_end (&rest, stands ? other : 0);
}

static void refused (struct gridjob *job, uint32_t member, const Nui__Meta__V1__VoteReply *reply)
{
    struct metad *metad = job->metad;
    struct joblead *lead = job->lead;
    lead->paused |= 1u << member;
    if (reply->lacks) {
        lead->whole &= ~(1u << member);
        lead->paused &= ~(1u << member);
        flush_soon (metad);
    } else if (reply->other) {
        bool same_number = reply->other == job->number;
        lead->elsewhere |= 1u << member;
        if (!same_number) /* to whom the other one was submitted has it, too */
            lead->elsewhere |= 1u << (reply->other - 1) % metad->peers->count;
        lead->elsewhere &= ~(1u << metad->peers->self);
        if (!lead->stands && ((reply->other_voted && !same_number) ||
                              quorum_enough (lead->elsewhere, metad->peers->count)))
            withdraw (job, reply->other, reply->other_voted && !same_number);
    } else if (reply->promised > lead->ballot) {
        lead_told (metad, job->number, reply->leader);
    }
}

static void cast_done (void *arg, const struct rpc_result *result)
{
    struct cast *cast = arg;
    struct metad *metad = cast->metad;
    struct gridjob *job = metad->stopping ? NULL : job_live (metad, cast->number);
    const Nui__Meta__V1__VoteReply *reply = (const Nui__Meta__V1__VoteReply *)result->reply;
    struct joblead *lead = job && !job_is_elsewhere (job) ? job->lead : NULL;
    uint64_t number = cast->number;
    if (lead && lead->ballot == cast->ballot) {
        uint32_t bit = 1u << cast->member;
        lead->sending &= ~bit;
        if (result->status != RPC_OK) {
            lead->paused |= bit;
        } else if (!reply->granted) {
            refused (job, cast->member, reply);
        } else {
            uint64_t before = lead->voted;
            if (cast->version > lead->has[cast->member])
                lead->has[cast->member] = cast->version;
            if (cast->whole)
                lead->whole |= bit;
            lead->voted = quorum_version (lead->has, metad->peers->count);
            flush_soon (metad);
            if (lead->voted > before)
                voted (job);
        }
        if (job_live (metad, number) == job && job->lead == lead && lead->listed)
            settle (job);
    }
    free (cast);
}

static void cast_send (struct metad *metad, const struct cast *what,
                       Nui__Meta__V1__VoteRequest *request, link_done_fn done)
{
    struct cast *cast = malloc (sizeof *cast);
    if (!cast)
        abort ();
    *cast = *what;
    request->job = cast->number;
    request->ballot = cast->ballot;
    request->cast = true;
    request->version = cast->version;
    link_call (metad->peers->member[cast->member].link, "Vote", &request->base, VOTE_TIMEOUT, done,
               cast);
}

/* One state at a time to each member: what came since goes when it has answered. Returns how many bytes that were, about. */
static size_t job_send (struct gridjob *job)
{
    struct metad *metad = job->metad;
    struct peers *peers = metad->peers;
    struct joblead *lead = job->lead;
    struct arena *arena = NULL;
    Nui__Meta__V1__VoteRequest request[2] = {NUI__META__V1__VOTE_REQUEST__INIT,
                                             NUI__META__V1__VOTE_REQUEST__INIT};
    size_t bytes = 0;
    if (job->unsaved)
        return 0;
    for (uint32_t i = 0; i < peers->count; i++) {
        uint32_t bit = 1u << i;
        bool whole = !(lead->whole & bit);
        Nui__Meta__V1__VoteRequest *r = &request[whole];
        if (i == peers->self || (lead->sending | lead->paused) & bit || lead->has[i] >= job->change)
            continue;
        if (!arena)
            arena = arena_create (0);
        if (!r->n_rows && metastore_rows_load (metad->store, job->number, whole, arena, &r->rows,
                                               &r->n_rows, NULL))
            break; /* at the next tick */
        r->stands = lead->stands;
        r->over = !lead->open;
        lead->sending |= bit;
        bytes += ROWS_BYTES + (whole ? job->envelope->body.len : 0);
        cast_send (metad, &(struct cast){metad, job->number, lead->ballot, job->change, i, whole},
                   r, cast_done);
    }
    arena_destroy (arena);
    return bytes;
}

/* An array's jobs go by turns of the loop. */
void lead_flush (struct lead *group, bool tick)
{
    struct gridjob *job;
    size_t bytes = 0;
    DL_FOREACH2 (group->unvoted, job, lead->next)
    {
        if (tick)
            job->lead->paused = 0;
        if (bytes < FLUSH_BYTES)
            bytes += job_send (job);
    }
    if (bytes >= FLUSH_BYTES)
        flush_soon (group->metad);
}

static void pushed (void *arg, const struct rpc_result *result)
{
    struct cast *cast = arg;
    const Nui__Meta__V1__VoteReply *reply = (const Nui__Meta__V1__VoteReply *)result->reply;
    if (!cast->metad->stopping && result->status == RPC_OK && !reply->granted &&
        reply->promised > cast->ballot)
        lead_told (cast->metad, cast->number, reply->leader);
    free (cast); /* else it asks again */
}

void lead_push (struct metad *metad, const struct lead_row *row, uint32_t member)
{
    struct gridjob *job = job_live (metad, row->job);
    Nui__Meta__V1__VoteRequest request = NUI__META__V1__VOTE_REQUEST__INIT;
    if (job && job->lead && job->lead->listed)
        return; /* it gets it with the others */
    struct arena *arena = arena_create (0);
    request.stands = row->stands;
    request.over = !row->open;
    if (metastore_rows_load (metad->store, row->job, true, arena, &request.rows, &request.n_rows,
                             NULL) == 0)
        cast_send (
            metad,
            &(struct cast){metad, row->job, row->vote.accepted, row->vote.version, member, true},
            &request, pushed);
    arena_destroy (arena);
}

/* ---- decisions */

static void propose (void *self, const struct decision_ask *ask,
                     void (*done) (void *arg, enum decision decided, bool failed), void *arg)
{
    (void)self;
    done (arg, ask->proposal, false);
}

static void forget (void *self, const uint8_t transaction[16])
{
    (void)self;
    (void)transaction;
}

struct decision_log lead_decisions (void)
{
    static const struct decision_log_ops ops = {propose, forget};
    return (struct decision_log){&ops, NULL};
}

/* ---- beginning and end */

static int lead_open (struct metad *metad, struct err *err)
{
    if (!metad->peers)
        return 0;
    metad->lead = calloc (1, sizeof *metad->lead);
    if (metad->lead)
        metad->lead->flush = evtimer_new (metad->base, on_flush, metad->lead);
    if (!metad->lead || !metad->lead->flush)
        return err_set (err, ERR_NOMEM, "no memory for the group");
    metad->lead->metad = metad;
    return 0;
}

static void lead_close (struct metad *metad)
{
    if (!metad->lead)
        return;
    lead_takes_end (metad->lead);
    if (metad->lead->flush)
        event_free (metad->lead->flush);
    if (metad->lead->timer)
        event_free (metad->lead->timer);
    free (metad->lead);
    metad->lead = NULL;
}

const struct metad_part lead_part = {
    .open = lead_open,
    .close = lead_close,
    .job_inserting = lead_job_inserting,
    .job_saving = lead_job_saving,
    .job_saved = lead_job_saved,
    .job_loaded = lead_job_loaded,
    .job_freed = lead_job_freed,
};
