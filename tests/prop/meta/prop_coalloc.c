/* Property test of the coordinator's state machine: seeded schedules of messages lost, repeated and
 * reordered, coordinators and sites that crash, users that cancel, and two jobs that compete for the
 * same sites, against a small in-memory model of sites that follows the rules of local.proto.
 *
 *   prop_coalloc [SEEDS [FIRST]]      default 4000 seeds from 1
 *
 * Checked after every event: (i) no component starts before all components of its transaction have
 * been firm, and two transactions of one job never run at the same time; COMMIT is sent only for a
 * transaction that the decision log holds as committed; (ii) no prepared hold outlives its lease by
 * the site's monotonic clock; (iv) a repeated COMMIT or ABORT gets the first outcome again; at the
 * end (v) all components of a completed job ran, and of any other job nothing is held or running.
 * A failing seed is printed; run it alone with `prop_coalloc 1 SEED`. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta/core/coalloc.h"

enum { SITES = 3, PARTS = 3, JOBS = 2, MSGS_MAX = 4096, HOLDS_MAX = 4096, TXNS_MAX = 1024 };

#define MS INT64_C (1000)
#define SEC US_PER_S
#define HEAL (300 * SEC) /* from here on nothing is lost and nobody crashes */
#define GIVE_UP (4 * 3600 * SEC)

static uint64_t seed_now;
static uint64_t rng;
static bool trace;

static uint64_t rnd (void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng * UINT64_C (0x2545F4914F6CDD1D);
}

static uint64_t rnd_below (uint64_t n)
{
    return rnd () % n;
}

static bool chance (uint32_t percent)
{
    return rnd_below (100) < percent;
}

#define CHECK(cond, ...)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf (stderr, "seed %" PRIu64 ": " #cond " does not hold: ", seed_now);             \
            fprintf (stderr, __VA_ARGS__);                                                         \
            fputc ('\n', stderr);                                                                  \
            exit (1);                                                                              \
        }                                                                                          \
    } while (0)

enum hold_state {
    H_PREPARED = 1,
    H_FIRM,
    H_STARTING,
    H_RUNNING,
    H_ENDED,
    H_EXPIRED,
    H_TOMB,
    H_RELEASED
};

struct hold {
    uint32_t job, part, attempt, site;
    uint64_t txn;
    enum hold_state state;
    bool was_firm, refused_commit;
    time_us start, end, launch;
    duration_us lease_end;
};

enum msg_kind {
    M_REQUEST,
    M_REPLY,
    M_TIMEOUT,
    M_WAKE,
    M_RESTART,
    M_REPORT,
    M_QUERY_DONE,
    M_CANCEL,
    M_DECIDED
};

struct msg {
    time_us at;
    uint64_t order;
    enum msg_kind kind;
    enum coalloc_action_kind what;
    uint32_t job, part, attempt, site;
    uint64_t txn, life, call;
    time_us slot;
    bool yes, unfunded, unable, gone;
    time_us next_feasible;
    duration_us lease_left;
    enum coalloc_commit outcome;
    enum decision decision;
};

struct txn {
    uint64_t id;
    uint32_t job;
    int decided; /* -1: no record */
    bool ever_firm[PARTS];
    bool ever_ready[PARTS];
    uint32_t running;
};

struct job {
    struct coalloc_record *mem; /* NULL while the coordinator is down */
    struct coalloc_record *disk;
    uint64_t life; /* grows with each restart */
    uint64_t wake_life;
    uint64_t answered[64]; /* ring of calls that were answered */
};

struct world {
    time_us now;
    uint64_t order, next_txn, next_call;
    struct msg msg[MSGS_MAX];
    uint32_t msg_count;
    struct hold hold[HOLDS_MAX];
    uint32_t hold_count;
    struct txn txn[TXNS_MAX];
    uint32_t txn_count;
    struct job job[JOBS];
    time_us site_down_until[SITES];
    uint32_t capacity[SITES];
    uint32_t loss, crash,
        taken; /* taken: how often what is firm is taken away, or cannot be started there */
    struct coalloc_policy policy;
};

static struct world w;
static uint64_t stat_repaired, stat_completed, stat_refused, stat_cancelled, stat_failed,
    stat_tries, stat_expired;

static struct msg *post (time_us at, enum msg_kind kind, uint32_t job)
{
    CHECK (w.msg_count < MSGS_MAX, "too many messages");
    struct msg *m = &w.msg[w.msg_count++];
    memset (m, 0, sizeof *m);
    m->at = at;
    m->order = w.order++;
    m->kind = kind;
    m->job = job;
    m->life = w.job[job].life;
    return m;
}

static struct txn *txn_find (uint64_t id)
{
    for (uint32_t i = w.txn_count; i-- > 0;)
        if (w.txn[i].id == id)
            return &w.txn[i];
    return NULL;
}

static uint64_t txn_of (const struct coalloc_record *record)
{
    uint64_t id;
    memcpy (&id, record->transaction, sizeof id);
    return id;
}

static time_us delay (void)
{
    return 1 * MS + (time_us)rnd_below (chance (5) ? 20 * SEC : 40 * MS);
}

static bool lossy (void)
{
    return w.now < HEAL && chance (w.loss);
}

/* ---- sites */

static bool hold_live (const struct hold *h)
{
    return h->state == H_PREPARED || h->state == H_FIRM || h->state == H_STARTING ||
           h->state == H_RUNNING;
}

static void sites_advance (void)
{
    for (uint32_t i = 0; i < w.hold_count; i++) {
        struct hold *h = &w.hold[i];
        if (h->state == H_PREPARED && w.now >= h->lease_end) {
            h->state = H_EXPIRED;
            stat_expired++;
        }
        if (h->state == H_STARTING && w.now >= h->launch) {
            struct txn *t = txn_find (h->txn);
            for (uint32_t p = 0; p < PARTS; p++)
                CHECK (t->ever_firm[p], "(i) part %u of job %u starts, part %u never was firm",
                       h->part, h->job, p);
            for (uint32_t x = 0; x < w.txn_count; x++)
                CHECK (w.txn[x].job != h->job || w.txn[x].id == h->txn || !w.txn[x].running,
                       "two transactions of job %u run at once", h->job);
            h->state = H_RUNNING;
            t->running++;
        }
        if (h->state == H_RUNNING && w.now >= h->launch + (h->end - h->start) / 2) {
            h->state = H_ENDED;
            txn_find (h->txn)->running--;
        }
    }
}

static uint32_t site_used (uint32_t site, time_us start, time_us end, time_us *free_at)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < w.hold_count; i++) {
        const struct hold *h = &w.hold[i];
        if (h->site != site || !hold_live (h) || h->start >= end || h->end <= start)
            continue;
        used++;
        if (h->end > *free_at)
            *free_at = h->end;
    }
    return used;
}

static struct hold *hold_find (const struct msg *m)
{
    for (uint32_t i = w.hold_count; i-- > 0;) {
        struct hold *h = &w.hold[i];
        if (h->txn == m->txn && h->part == m->part && h->attempt == m->attempt)
            return h;
    }
    return NULL;
}

static struct hold *hold_new (const struct msg *m, enum hold_state state)
{
    CHECK (w.hold_count < HOLDS_MAX, "too many holds");
    struct hold *h = &w.hold[w.hold_count++];
    memset (h, 0, sizeof *h);
    h->job = m->job;
    h->part = m->part;
    h->attempt = m->attempt;
    h->site = m->site;
    h->txn = m->txn;
    h->state = state;
    return h;
}

static const duration_us wall_time = 60 * SEC;

static void site_prepare (const struct msg *m, struct msg *r)
{
    struct hold *h = hold_find (m);
    time_us free_at = 0;
    if (h) { /* stored answer; the tombstone wins */
        r->yes = h->state != H_TOMB;
        r->lease_left = h->state == H_PREPARED ? h->lease_end - w.now : 0;
        return;
    }
    time_us end = m->slot + wall_time;
    if (site_used (m->site, m->slot, end, &free_at) >= w.capacity[m->site] || chance (3)) {
        r->next_feasible = free_at ? free_at : m->slot + SEC;
        return;
    }
    if (w.now < HEAL && chance (1)) {
        r->unfunded = chance (30);
        return;
    }
    h = hold_new (m, H_PREPARED);
    h->start = m->slot;
    h->end = end;
    h->lease_end = w.now + w.policy.lease;
    r->yes = true;
    r->lease_left = w.policy.lease;
}

static void site_commit (const struct msg *m, struct msg *r)
{
    struct hold *h = hold_find (m);
    if (!h) {
        r->outcome = COALLOC_UNKNOWN;
        return;
    }
    if (h->state == H_PREPARED) {
        h->state = H_FIRM;
        h->was_firm = true;
        txn_find (h->txn)->ever_firm[h->part] = true;
    }
    r->outcome = h->was_firm          ? COALLOC_FIRM
                 : h->state == H_TOMB ? COALLOC_ABORTED
                                      : COALLOC_EXPIRED;
    CHECK (!(h->refused_commit && r->outcome == COALLOC_FIRM), "(iv) COMMIT changed its answer");
    if (r->outcome != COALLOC_FIRM)
        h->refused_commit = true;
}

static void site_abort (const struct msg *m, struct msg *r)
{
    struct hold *h = hold_find (m);
    if (!h)
        h = hold_new (m, H_TOMB);
    if (h->state == H_PREPARED || h->state == H_EXPIRED)
        h->state = H_TOMB;
    r->yes = h->was_firm; /* refused_firm */
    CHECK (!h->was_firm || h->state != H_TOMB, "(iv) an ABORT undid a COMMIT");
}

static void site_release (const struct msg *m)
{
    struct hold *h = hold_find (m);
    if (!h || h->state == H_ENDED)
        return;
    if (h->state == H_RUNNING)
        txn_find (h->txn)->running--;
    h->state = H_RELEASED;
}

static void site_start (const struct msg *m, struct msg *r)
{
    struct hold *h = hold_find (m);
    r->yes = h && (h->state == H_FIRM || h->state == H_STARTING || h->state == H_RUNNING ||
                   h->state == H_ENDED);
    if (h && h->state == H_FIRM) {
        h->state = H_STARTING;
        h->launch = m->slot > w.now ? m->slot : w.now;
    }
}

/* A node may have gone, or all that was held. */
static void site_ready (const struct msg *m, struct msg *r)
{
    struct hold *h = hold_find (m);
    if (w.now < HEAL && h && h->state == H_FIRM && chance (w.taken))
        h->state = H_RELEASED;
    r->gone = !h || h->state == H_RELEASED || h->state == H_TOMB || h->state == H_EXPIRED;
    r->unable = !r->gone && w.now < HEAL && h->state == H_FIRM && chance (w.taken);
    r->yes = !r->gone && !r->unable && (w.now >= HEAL || chance (80));
}

static void site_handle (const struct msg *request)
{
    struct msg m = *request;
    if (w.now < w.site_down_until[m.site])
        return;
    struct msg answer = m;
    answer.kind = M_REPLY;
    answer.yes = false;
    switch (m.what) {
    case COALLOC_DO_PREPARE:
        site_prepare (&m, &answer);
        break;
    case COALLOC_DO_COMMIT:
        site_commit (&m, &answer);
        break;
    case COALLOC_DO_ABORT:
        site_abort (&m, &answer);
        break;
    case COALLOC_DO_READY:
        site_ready (&m, &answer);
        if (answer.yes)
            txn_find (m.txn)->ever_ready[m.part] = true;
        break;
    case COALLOC_DO_START:
        site_start (&m, &answer);
        break;
    case COALLOC_DO_RELEASE:
        site_release (&m);
        break;
    default:
        abort ();
    }
    if (w.now < HEAL && chance (w.crash)) { /* dies after what it did became durable */
        w.site_down_until[m.site] = w.now + (time_us)rnd_below (40 * SEC);
        return;
    }
    if (lossy ())
        return;
    struct msg *r = post (w.now + delay (), M_REPLY, m.job);
    answer.at = r->at;
    answer.order = r->order;
    *r = answer;
}

/* ---- the coordinator's shell */

static void job_step (uint32_t j, struct coalloc_event *event);

static void crash_job (uint32_t j)
{
    struct job *job = &w.job[j];
    coalloc_destroy (job->mem);
    job->mem = NULL;
    job->life++;
    post (w.now + (time_us)rnd_below (30 * SEC) + 1, M_RESTART, j);
}

static void send_part (uint32_t j, const struct coalloc_action *action)
{
    const struct coalloc_record *record = w.job[j].mem;
    const struct coalloc_part *part = &record->part[action->part];
    struct msg m = {.kind = M_REQUEST,
                    .what = action->kind,
                    .job = j,
                    .part = action->part,
                    .attempt = action->attempt,
                    .txn = txn_of (record),
                    .life = w.job[j].life,
                    .call = ++w.next_call,
                    .site = (uint32_t)(part->site[1] - '0')};
    m.slot = record->slot_start;
    if (action->kind == COALLOC_DO_START) {
        m.slot = record->start_at;
        for (uint32_t p = 0; p < PARTS; p++) {
            struct hold *h = hold_find (
                &(struct msg){.txn = m.txn, .part = p, .attempt = record->part[p].attempt});
            CHECK (h && h->was_firm && txn_find (m.txn)->ever_ready[p],
                   "START is sent, part %u was never firm and ready", p);
            CHECK (h->site == (uint32_t)(record->part[p].site[1] - '0'),
                   "part %u is firm at another site", p);
        }
    }
    if (action->kind == COALLOC_DO_COMMIT)
        CHECK (txn_find (m.txn)->decided == DECISION_COMMIT, "COMMIT is sent without a decision");
    uint32_t copies = lossy () ? 0 : chance (10) ? 2 : 1;
    for (uint32_t c = 0; c < copies; c++) {
        struct msg *r = post (w.now + delay (), M_REQUEST, j);
        m.at = r->at;
        m.order = r->order;
        *r = m;
    }
    struct msg *t = post (w.now + 5 * SEC, M_TIMEOUT, j);
    m.kind = M_TIMEOUT;
    m.at = t->at;
    m.order = t->order;
    *t = m;
}

static void propose (uint32_t j, enum decision proposal)
{
    struct txn *t = txn_find (txn_of (w.job[j].mem));
    if (t->decided < 0)
        t->decided = (int)proposal;
    struct msg *m = post (w.now + MS, M_DECIDED, j);
    m->txn = t->id;
    m->decision = (enum decision)t->decided;
}

static void perform (uint32_t j, const struct coalloc_actions *actions)
{
    for (uint32_t a = 0; a < actions->count; a++) {
        if (w.now < HEAL && chance (w.crash) && chance (30)) { /* dies between two actions */
            crash_job (j);
            return;
        }
        switch (actions->action[a].kind) {
        case COALLOC_DO_QUERY:
            post (w.now + delay (), M_QUERY_DONE, j);
            break;
        case COALLOC_DO_DECIDE:
            propose (j, actions->action[a].proposal);
            break;
        default:
            send_part (j, &actions->action[a]);
            break;
        }
    }
    if (actions->wake != INT64_MAX && w.job[j].mem) {
        struct msg *m = post (w.now + actions->wake + 1, M_WAKE, j);
        m->call = ++w.job[j].wake_life;
    }
}

static void job_step (uint32_t j, struct coalloc_event *event)
{
    struct job *job = &w.job[j];
    struct coalloc_actions actions;
    struct coalloc_now now = {w.now, w.now, rnd (), &w.policy, rnd () % 8 == 0, false};
    struct err err;
    if (!job->mem)
        return;
    enum coalloc_phase before = job->mem->phase;
    int rc = coalloc_step (job->mem, event, &now, &actions, &err);
    CHECK (rc == 0, "%s", err.text);
    if (trace)
        printf ("%12.3f job %u %-10s %s -> %s save=%d actions=%u %s: %s\n", (double)w.now / 1e6, j,
                coalloc_event_name (event->kind), coalloc_phase_name (before),
                coalloc_phase_name (job->mem->phase), actions.save, actions.count,
                job->mem->reason.code, job->mem->reason.text);
    if (actions.save) {
        if (w.now < HEAL && chance (w.crash)) { /* dies before it was durable */
            crash_job (j);
            return;
        }
        coalloc_destroy (job->disk);
        job->disk = coalloc_copy (job->mem);
    }
    stat_repaired += before == COALLOC_REPAIR && job->mem->phase == COALLOC_COMMIT;
    CHECK (actions.save || before == job->mem->phase, "phase changed without a durable record");
    perform (j, &actions);
}

/* The answers of all sites to QUERY, taken at once: free intervals of each site, already stale. */
static void query_done (uint32_t j)
{
    struct choose_part part[PARTS];
    struct choose_offer offer[PARTS * SITES];
    struct choose_interval starts[SITES];
    static const char *const names[SITES] = {"s0", "s1", "s2"};
    struct coalloc_event event = {.kind = COALLOC_EV_QUERIED};
    struct choose_problem problem = {.part = part, .part_count = PARTS, .offer = offer};
    const struct coalloc_record *record = w.job[j].mem;
    if (!record || (record->phase != COALLOC_QUERY && record->phase != COALLOC_REPAIR))
        return;
    for (uint32_t s = 0; s < SITES; s++)
        starts[s] = (struct choose_interval){w.now + (time_us)rnd_below (3 * SEC), INT64_MAX / 2};
    for (uint32_t p = 0; p < PARTS; p++) {
        part[p] = (struct choose_part){record->part[p].name, record->part[p].offset,
                                       record->part[p].walltime, 0};
        for (uint32_t s = 0; s < SITES && coalloc_seeks (record, p); s++)
            offer[problem.offer_count++] =
                (struct choose_offer){.part = p,
                                      .site = s,
                                      .procs = 1,
                                      .site_procs = w.capacity[s],
                                      .price = 1 + (credit_micro)rnd_below (5),
                                      .not_before = TIME_US_NONE,
                                      .starts = &starts[s],
                                      .start_count = 1};
    }
    event.u.queried.problem = &problem;
    event.u.queried.complete = true;
    event.u.queried.site_name = names;
    if (record->phase == COALLOC_QUERY) {
        CHECK (w.txn_count < TXNS_MAX, "too many transactions");
        uint64_t id = ++w.next_txn;
        w.txn[w.txn_count++] = (struct txn){.id = id, .job = j, .decided = -1};
        memcpy (event.u.queried.transaction, &id, sizeof id);
    }
    if (chance (3))
        event.u.queried.found = COALLOC_QUERY_SITE_DOWN;
    job_step (j, &event);
}

static void reply_in (const struct msg *m)
{
    struct job *job = &w.job[m->job];
    struct coalloc_event event = {.part = m->part, .attempt = m->attempt};
    uint8_t txn[16] = {0};
    if (m->life != job->life)
        return;
    job->answered[m->call % 64] = m->call;
    memcpy (txn, &m->txn, sizeof m->txn);
    event.transaction = txn;
    switch (m->what) {
    case COALLOC_DO_PREPARE:
        event.kind = COALLOC_EV_PREPARED;
        event.u.prepared.granted = m->yes;
        event.u.prepared.unfunded = m->unfunded;
        event.u.prepared.next_feasible = m->next_feasible;
        event.u.prepared.lease_left = m->lease_left;
        break;
    case COALLOC_DO_COMMIT:
        event.kind = COALLOC_EV_COMMITTED;
        event.u.committed.outcome = m->outcome;
        break;
    case COALLOC_DO_ABORT:
        event.kind = COALLOC_EV_ABORTED;
        event.u.aborted.refused_firm = m->yes;
        break;
    case COALLOC_DO_READY:
        event.kind = COALLOC_EV_READIED;
        event.u.readied.yes = m->yes;
        event.u.readied.unable = m->unable;
        event.u.readied.gone = m->gone;
        break;
    case COALLOC_DO_START:
        event.kind = COALLOC_EV_STARTED;
        event.u.started.yes = m->yes;
        break;
    default:
        event.kind = COALLOC_EV_RELEASED;
        break;
    }
    job_step (m->job, &event);
}

/* Sites repeat what they know of the present transaction; a report may be lost. */
static void report (uint32_t j)
{
    if (w.job[j].disk->phase == COALLOC_ENDED)
        return;
    post (w.now + 5 * SEC, M_REPORT, j);
    for (uint32_t i = 0; i < w.hold_count; i++) {
        const struct hold *h = &w.hold[i];
        uint8_t txn[16] = {0};
        bool taken = h->state == H_RELEASED && h->was_firm;
        if (h->job != j || (h->state != H_RUNNING && h->state != H_ENDED && !taken) || lossy ())
            continue;
        if (!w.job[j].mem || h->attempt != w.job[j].mem->part[h->part].attempt)
            continue; /* of before it was prepared anew */
        memcpy (txn, &h->txn, sizeof h->txn);
        struct coalloc_event event = {
            .kind = COALLOC_EV_RUNNING, .part = h->part, .attempt = h->attempt, .transaction = txn};
        if (h->state == H_ENDED) {
            event.kind = COALLOC_EV_PART_ENDED;
            event.u.ended.outcome = COALLOC_COMPLETED;
        }
        if (taken) {
            event.kind = COALLOC_EV_PART_ENDED;
            event.u.ended.outcome = COALLOC_CANCELLED;
            event.u.ended.lost = true;
        }
        job_step (j, &event);
    }
}

static void handle (const struct msg *m)
{
    struct job *job = &w.job[m->job];
    struct coalloc_event event = {.kind = COALLOC_EV_TICK, .part = m->part, .attempt = m->attempt};
    uint8_t txn[16] = {0};
    memcpy (txn, &m->txn, sizeof m->txn);
    switch (m->kind) {
    case M_REQUEST:
        site_handle (m);
        return;
    case M_REPLY:
        reply_in (m);
        return;
    case M_REPORT:
        report (m->job);
        return;
    case M_QUERY_DONE:
        if (m->life == job->life)
            query_done (m->job);
        return;
    case M_WAKE:
        if (m->life == job->life && m->call == job->wake_life)
            job_step (m->job, &event);
        return;
    case M_TIMEOUT:
        if (m->life != job->life || job->answered[m->call % 64] == m->call)
            return;
        event.kind = COALLOC_EV_NO_ANSWER;
        event.transaction = txn;
        job_step (m->job, &event);
        return;
    case M_DECIDED:
        if (m->life != job->life)
            return;
        event.kind = COALLOC_EV_DECIDED;
        event.transaction = txn;
        event.u.decided.decision = m->decision;
        job_step (m->job, &event);
        return;
    case M_CANCEL:
        event.kind = COALLOC_EV_CANCEL;
        if (job->mem)
            job_step (m->job, &event);
        else
            post (w.now + SEC, M_CANCEL, m->job);
        return;
    case M_RESTART:
        job->mem = coalloc_copy (job->disk);
        event.kind = COALLOC_EV_RECOVER;
        job_step (m->job, &event);
        return;
    }
}

static void world_begin (uint64_t seed)
{
    memset (&w, 0, sizeof w);
    seed_now = seed;
    rng = seed * UINT64_C (0x9E3779B97F4A7C15) + 1;
    rnd ();
    w.now = 1;
    w.loss = (uint32_t)rnd_below (30);
    w.crash = (uint32_t)rnd_below (6);
    w.taken = chance (50) ? 0 : (uint32_t)rnd_below (20);
    w.policy = (struct coalloc_policy){.lease = (5 + (duration_us)rnd_below (25)) * SEC,
                                       .lease_margin = SEC,
                                       .lead = 2 * SEC,
                                       .start_margin = SEC / 2,
                                       .barrier_timeout = 20 * SEC,
                                       .prepare_timeout = 12 * SEC,
                                       .backoff_max = 10 * SEC,
                                       .wait_site_down = 5 * SEC,
                                       .wait_slot = 20 * SEC,
                                       .resend_first = 200 * MS,
                                       .resend_max = 10 * SEC,
                                       .age_unit = 60 * SEC,
                                       .tries_max = 40,
                                       .reprepares_max = 2};
    for (uint32_t s = 0; s < SITES; s++)
        w.capacity[s] = 1 + (uint32_t)rnd_below (2);
    for (uint32_t j = 0; j < JOBS; j++) {
        struct coalloc_event begin = {.kind = COALLOC_EV_BEGIN};
        w.job[j].mem = coalloc_create (PARTS, NULL);
        w.job[j].mem->created = w.now;
        for (uint32_t p = 0; p < PARTS; p++)
            w.job[j].mem->part[p].walltime = wall_time;
        w.job[j].disk = coalloc_copy (w.job[j].mem);
        post (w.now + SEC, M_REPORT, j);
        if (chance (25))
            post (w.now + (time_us)rnd_below (60 * SEC), M_CANCEL, j);
        job_step (j, &begin);
    }
}

static bool all_ended (void)
{
    for (uint32_t j = 0; j < JOBS; j++)
        if (!w.job[j].mem || w.job[j].mem->phase != COALLOC_ENDED)
            return false;
    return true;
}

static void checks (void)
{
    for (uint32_t i = 0; i < w.hold_count; i++)
        CHECK (w.hold[i].state != H_PREPARED || w.now <= w.hold[i].lease_end,
               "(ii) a hold outlives its lease");
}

static void world_end (void)
{
    w.now += 4 * w.policy.lease + 60 * SEC;
    sites_advance ();
    for (uint32_t j = 0; j < JOBS; j++) {
        const struct coalloc_record *record = w.job[j].mem;
        uint64_t id = txn_of (record);
        uint32_t ended = 0;
        for (uint32_t i = 0; i < w.hold_count; i++) {
            const struct hold *h = &w.hold[i];
            if (h->job != j)
                continue;
            CHECK (!hold_live (h), "(v) job %u ended %d, part %u is still held in state %d", j,
                   (int)record->outcome, h->part, (int)h->state);
            if (h->txn == id && h->state == H_ENDED)
                ended++;
        }
        CHECK (record->outcome != COALLOC_COMPLETED || ended == PARTS,
               "(v) job %u completed with %u of %d parts", j, ended, PARTS);
        stat_completed += record->outcome == COALLOC_COMPLETED;
        stat_refused += record->outcome == COALLOC_REFUSED;
        stat_cancelled += record->outcome == COALLOC_CANCELLED;
        stat_failed += record->outcome == COALLOC_FAILED;
        stat_tries += record->tries;
        coalloc_destroy (w.job[j].mem);
        coalloc_destroy (w.job[j].disk);
    }
}

static void run_seed (uint64_t seed)
{
    world_begin (seed);
    while (!all_ended () || w.msg_count) {
        uint32_t next = 0;
        CHECK (w.msg_count, "nothing left to happen, yet a job has not ended");
        for (uint32_t i = 1; i < w.msg_count; i++)
            if (w.msg[i].at < w.msg[next].at ||
                (w.msg[i].at == w.msg[next].at && w.msg[i].order < w.msg[next].order))
                next = i;
        struct msg m = w.msg[next];
        w.msg[next] = w.msg[--w.msg_count];
        if (m.at > w.now)
            w.now = m.at;
        CHECK (w.now < GIVE_UP, "job 0 in %s (%s), job 1 in %s (%s) after hours",
               coalloc_phase_name (w.job[0].disk->phase), w.job[0].disk->reason.text,
               coalloc_phase_name (w.job[1].disk->phase), w.job[1].disk->reason.text);
        sites_advance ();
        handle (&m);
        sites_advance ();
        checks ();
    }
    world_end ();
}

int main (int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull (argv[1], NULL, 10) : 4000;
    uint64_t first = argc > 2 ? strtoull (argv[2], NULL, 10) : 1;
    trace = seeds == 1;
    for (uint64_t s = first; s < first + seeds; s++)
        run_seed (s);
    printf ("%" PRIu64 " seeds: %" PRIu64 " completed, %" PRIu64 " refused, %" PRIu64
            " cancelled, %" PRIu64 " failed; %" PRIu64 " tries, %" PRIu64 " leases ended, %" PRIu64
            " repairs\n",
            seeds, stat_completed, stat_refused, stat_cancelled, stat_failed, stat_tries,
            stat_expired, stat_repaired);
    return 0;
}
