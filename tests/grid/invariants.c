/* invariants: what must hold after everything that happens (grid.h). */
#include "grid_i.h"

#include "local/store/local_store.h"
#include "local/svc/resv/resv.h"
#include "proto/job/element.h"

static const duration_us lease_slack = 2 * SEC, launch_slack = 2 * SEC + SEC / 10;

void (*grid_strike) (struct machine *server, const char *method);

static uint32_t job_of_envelope (const Nui__Common__V1__Envelope *envelope)
{
    Nui__Common__V1__Job *job = element_unpack (envelope, NULL);
    uint32_t found = UINT32_MAX;
    for (uint32_t j = 0; job && j < w.job_count; j++)
        if (memcmp (w.job[j].uuid, job->uuid.data, 16) == 0)
            found = j;
    CHECK (found != UINT32_MAX, "a job that nobody submitted");
    nui__common__v1__job__free_unpacked (job, NULL);
    return found;
}

static struct placed *placed_find (const struct machine *site, const char *site_job_id)
{
    for (uint32_t i = w.placed_count; i-- > 0;)
        if (w.placed[i].site == site && strcmp (w.placed[i].site_job_id, site_job_id) == 0)
            return &w.placed[i];
    return NULL;
}

void grid_on_handover (struct machine *site, void *service, const char *site_job_id)
{
    struct svc *svc = service;
    struct err err = {0};
    void *bytes = NULL;
    size_t len = 0;
    struct site_job *job = svc_job (svc, strtoull (strchr (site_job_id, '.') + 1, NULL, 10));
    struct placed *placed = placed_find (site, site_job_id);
    CHECK (job, "%s is handed over, and %s does not know it", site_job_id, site->name);
    if (!placed) {
        CHECK (w.placed_count < PLACED_MAX, "too many jobs");
        placed = &w.placed[w.placed_count++];
    }
    memset (placed, 0, sizeof *placed);
    placed->site = site;
    snprintf (placed->site_job_id, sizeof placed->site_job_id, "%s", site_job_id);
    CHECK (local_store_envelope (svc->store, job->rec.number, &bytes, &len, &err) == 0, "%s",
           err.text);
    Nui__Common__V1__Envelope *envelope = nui__common__v1__envelope__unpack (NULL, len, bytes);
    placed->job = job_of_envelope (envelope);
    placed->part = job->rec.component_index;
    placed->coallocated = job->rec.part;
    memcpy (placed->txn, job->rec.transaction, 16);
    nui__common__v1__envelope__free_unpacked (envelope, NULL);
    free (bytes);
}

/* Metaschedulers that are no group have so many each. */
static void licences_check (const struct ujob *launched)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < w.placed_count && launched->licences; i++) {
        const struct placed *placed = &w.placed[i];
        const struct ujob *job = &w.job[placed->job];
        if (placed->launched && !placed->ended &&
            (w.shape.group || strcmp (job->meta, launched->meta) == 0))
            used += job->licences;
    }
    coverage_add ("total launches with licences", launched->licences > 0);
    CHECK (used <= GRID_LICENCES, "%u licences are in use, there are %d, when %s starts", used,
           GRID_LICENCES, launched->id);
}

/* No more of an array run at one time than its user signed. In a group whose members lead jobs of one array, each counts
 * those that it leads (nui-submit(1)). */
static void limit_check (const struct ujob *launched)
{
    const struct ujob *first = launched - launched->before;
    uint32_t running = 0;
    for (uint32_t k = 0; k < first->array; k++)
        running += first[k].running > 0;
    CHECK (!first->limit || w.shape.group || running <= first->limit,
           "%u of an array run, it may be %u, when %s starts", running, first->limit, launched->id);
}

void grid_on_launch (struct machine *site, const char *site_job_id)
{
    struct placed *placed = placed_find (site, site_job_id);
    struct ujob *job = &w.job[placed->job];
    uint32_t firm = 0;
    placed->launched = true;
    job->launches++;
    coverage_add ("total launches", 1);
    CHECK (job->running == 0 || (placed->coallocated && memcmp (job->txn, placed->txn, 16) == 0),
           "(i) job %u (%s) runs as %s while it runs elsewhere", placed->job, job->id, site_job_id);
    if (placed->coallocated && job->resubmit && memcmp (job->txn, placed->txn, 16) != 0)
        memset (job->ended_well, 0,
                sizeof job->ended_well); /* a lost one is run again as a whole */
    CHECK (!job->ended_well[placed->part], "job %u (%s) part %u runs again after it completed",
           placed->job, job->id, placed->part);
    for (uint32_t i = 0; i < w.answer_count; i++)
        firm += w.answers[i].firm && memcmp (w.answers[i].txn, placed->txn, 16) == 0;
    CHECK (!placed->coallocated || firm >= job->parts,
           "(i) %s of job %u starts with %u of %u components firm", site_job_id, placed->job, firm,
           job->parts);
    memcpy (job->txn, placed->txn, 16);
    job->running++;
    licences_check (job);
    limit_check (job);
    if (!w.clocks_stepped) /* limits, like slots, are moments of the wall clock */
        runner_check ();
}

void grid_on_end (struct machine *site, const char *site_job_id, bool launched, bool well)
{
    struct placed *placed = placed_find (site, site_job_id);
    placed->ended = true;
    if (!launched)
        return;
    w.job[placed->job].running--;
    if (well)
        w.job[placed->job].ended_well[placed->part] = true;
}

static struct answers *answers_of (struct machine *site, const Nui__Local__V1__Part *part)
{
    for (uint32_t i = w.answer_count; i-- > 0;) {
        struct answers *a = &w.answers[i];
        if (a->site == site && a->attempt == part->attempt &&
            memcmp (a->txn, part->transaction.data, 16) == 0 &&
            strcmp (a->component, part->component) == 0)
            return a;
    }
    CHECK (w.answer_count < ANSWERS_MAX, "too many parts");
    struct answers *a = &w.answers[w.answer_count++];
    memset (a, 0, sizeof *a);
    a->site = site;
    a->attempt = part->attempt;
    memcpy (a->txn, part->transaction.data, 16);
    snprintf (a->component, sizeof a->component, "%s", part->component);
    return a;
}

static const char *const counted[] = {"Query",   "Prepare", "Commit", "Abort", "Ready", "Start",
                                      "Release", "Submit",  "Report", "Quote", "Hold",  NULL};

/* (iv) */
void invariants_reply (struct machine *server, const char *method, const ProtobufCMessage *request,
                       const ProtobufCMessage *reply)
{
    for (uint32_t i = 0; counted[i]; i++)
        w.replies[machine_index (server)][i] += strcmp (counted[i], method) == 0;
    if (server->kind == PRINCIPAL_SITE && strcmp (method, "Prepare") == 0) {
        const Nui__Local__V1__PrepareReply *r = (const Nui__Local__V1__PrepareReply *)reply;
        struct answers *a =
            answers_of (server, ((const Nui__Local__V1__PrepareRequest *)request)->part);
        CHECK (!r->granted || r->lease_left_us == 0 || !a->aborted,
               "(iv) PREPARE is granted at %s after its ABORT", server->name);
    } else if (server->kind == PRINCIPAL_SITE && strcmp (method, "Commit") == 0) {
        const Nui__Local__V1__CommitReply *r = (const Nui__Local__V1__CommitReply *)reply;
        struct answers *a =
            answers_of (server, ((const Nui__Local__V1__CommitRequest *)request)->part);
        bool firm = r->outcome == NUI__LOCAL__V1__COMMIT_REPLY__OUTCOME__FIRM;
        CHECK (!(firm ? a->not_firm : a->firm), "(iv) COMMIT changes its answer at %s",
               server->name);
        CHECK (!firm || !a->aborted, "(iv) %s is firm at %s after its ABORT", a->component,
               server->name);
        a->firm = a->firm || firm;
        a->not_firm = a->not_firm || !firm;
    } else if (server->kind == PRINCIPAL_SITE && strcmp (method, "Abort") == 0) {
        const Nui__Local__V1__AbortReply *r = (const Nui__Local__V1__AbortReply *)reply;
        struct answers *a =
            answers_of (server, ((const Nui__Local__V1__AbortRequest *)request)->part);
        a->aborted = a->aborted || !r->refused_firm;
    }
    if (grid_strike)
        grid_strike (server, method);
}

/* (iii): the bank has it, for long enough. */
static void hold_check (const struct svc *svc, const struct site_job *job)
{
    time_us expires = 0;
    CHECK (job->rec.hold_id[0] && bank_hold_open (job->rec.hold_id, &expires),
           "(iii) %s.%" PRIu64 " is in state %d without an open hold (%s)", svc->site,
           job->rec.number, (int)job->rec.state, job->rec.hold_id);
    CHECK (!job->part || expires >= job->part->rec.slot_start + job->rec.walltime,
           "(iii) the bank's hold of %s.%" PRIu64 " ends before its slot", svc->site,
           job->rec.number);
}

/* When and where a job may use processors. */
static bool span_of (const struct site_job *job, time_us *from, time_us *to)
{
    bool promised = job->part && (job->part->rec.state == STORE_PART_PREPARED ||
                                  job->part->rec.state == STORE_PART_FIRM);
    bool runs = job->rec.state == STORE_JOB_RUNNING;
    if (job->reserves && job->part && job->part->rec.state == STORE_PART_FIRM)
        return false; /* jobs inside use the same, and lost nodes are replaced */
    *from = runs ? job->rec.start : promised ? job->part->rec.slot_start : 0;
    *to = *from + job->rec.walltime;
    return (runs || promised) && job->rec.placement;
}

static uint32_t tasks_on (const char *placement, const char *host, size_t len)
{
    uint32_t tasks = 0;
    for (const char *at = placement; at && *at; at = strchr (at, ',') ? strchr (at, ',') + 1 : NULL)
        if (strncmp (at, host, len) == 0 && at[len] == ':')
            tasks += (uint32_t)strtoul (at + len + 1, NULL, 10);
    return tasks;
}

static void promised_twice (const struct svc *svc, const struct site_job *job, const char *host,
                            size_t len, uint32_t used)
{
    char who[512] = "";
    time_us from, to, other_from, other_to;
    span_of (job, &from, &to);
    for (const struct site_job *o = svc->jobs; o; o = o->hh.next)
        if (span_of (o, &other_from, &other_to) && other_from <= from &&
            from + launch_slack < other_to && tasks_on (o->rec.placement, host, len))
            snprintf (who + strlen (who), sizeof who - strlen (who),
                      " %" PRIu64 " (%.3f to %.3f s)", o->rec.number,
                      (double)(other_from - sim.epoch) / 1e6, (double)(other_to - sim.epoch) / 1e6);
    sim_fail ("(v) %.*s has %u processors promised when %s.%" PRIu64 " begins:%s", (int)len, host,
              used, svc->site, job->rec.number, who);
}

/* What parts of that transaction, or those that come instead of it, have on the node at `at`. */
static uint32_t tasks_of (const struct svc *svc, const uint8_t *transaction, bool instead,
                          time_us at, const char *host, size_t len)
{
    uint32_t tasks = 0;
    time_us from, to;
    for (const struct site_job *o = svc->jobs; o; o = o->hh.next)
        if (o->part && span_of (o, &from, &to) && from <= at && at + launch_slack < to &&
            memcmp (instead ? o->part->rec.replaces : o->part->rec.transaction, transaction, 16) ==
                0)
            tasks += tasks_on (o->rec.placement, host, len);
    return tasks;
}

/* Of a group's place and the one that it is to have instead only one is used: together they have what the larger has. */
static uint32_t tasks_shared (const struct svc *svc, time_us at, const char *host, size_t len)
{
    uint32_t shared = 0;
    for (const struct site_part *part = svc->parts; part; part = part->hh.next) {
        const struct site_part *first = svc->parts;
        while (memcmp (first->rec.transaction, part->rec.transaction, 16) != 0)
            first = first->hh.next;
        if (first != part)
            continue; /* of each transaction once */
        uint32_t old = tasks_of (svc, part->rec.transaction, false, at, host, len);
        uint32_t fresh = tasks_of (svc, part->rec.transaction, true, at, host, len);
        shared += old < fresh ? old : fresh;
        coverage_add ("total places over a place", old && fresh);
    }
    return shared;
}

/* (v): at the moment at which one begins, all that overlap it for longer than a launch may take fit
 * each of its nodes. */
static void nodes_check (const struct svc *svc, const struct site_job *job)
{
    time_us from, to, other_from, other_to;
    if (!span_of (job, &from, &to))
        return;
    for (const char *at = job->rec.placement; at && *at;
         at = strchr (at, ',') ? strchr (at, ',') + 1 : NULL) {
        size_t len = strcspn (at, ":");
        uint32_t used = 0;
        for (const struct site_job *o = svc->jobs; o; o = o->hh.next)
            if (span_of (o, &other_from, &other_to) && other_from <= from &&
                from + launch_slack < other_to)
                used += tasks_on (o->rec.placement, at, len);
        if (used > GRID_NODE_PROCS)
            used -= tasks_shared (svc, from, at, len);
        if (used > GRID_NODE_PROCS)
            promised_twice (svc, job, at, len, used);
    }
}

void invariants_step (void)
{
    bool bank = machine_find ("bank")->ran;
    for (uint32_t i = 0; i < sim.machine_count; i++) {
        struct machine *machine = &sim.machine[i];
        struct svc *svc = svc_of (machine);
        if (machine->disk_full)
            w.steady_at = sim.now + 3 * SEC;
        for (const struct site_part *part = svc ? svc->parts : NULL; part; part = part->hh.next) {
            duration_us over = sim.now + machine->mono_base - part->rec.lease_end_boottime;
            CHECK (part->rec.state != STORE_PART_PREPARED || over <= lease_slack ||
                       sim.now < w.steady_at || sim.now < machine->started + lease_slack,
                   "(ii) %s.%" PRIu64 " outlives its lease by %.3f s", svc->site, part->rec.job,
                   (double)over / 1e6);
        }
        /* Only what ran may have changed, or the bank. */
        bool changed = machine->ran;
        for (const struct site_job *job = svc && (changed || bank) ? svc->jobs : NULL; job;
             job = job->hh.next) {
            bool held = job->rec.state == STORE_JOB_RUNNING ||
                        (job->part &&
                         (job->part->rec.state == STORE_PART_PREPARED ||
                          job->part->rec.state == STORE_PART_FIRM) &&
                         !(job->reserves && job->part->rec.start_accepted));
            if (held)
                hold_check (svc, job);
            if (changed && !w.clocks_stepped)
                nodes_check (svc, job);
        }
    }
    for (uint32_t i = 0; i < sim.machine_count; i++)
        sim.machine[i].ran = false;
}

bool grid_node_down (const char *site)
{
    struct machine *machine = machine_find (site);
    struct svc *svc = svc_of (machine);
    struct err err = {0};
    for (const struct site_part *part = svc ? svc->parts : NULL; part; part = part->hh.next) {
        struct site_node *node = NULL;
        char name[32];
        snprintf (name, sizeof name, "%.*s", (int)strcspn (part->job->rec.placement, ":"),
                  part->job->rec.placement);
        HASH_FIND_STR (svc->nodes, name, node);
        CHECK (node, "%s has no node %s", site, name);
        sim.self = machine;
        machine->ran = true;
        free (svc_node_set (node, "state", "down"));
        CHECK (svc_nodes_apply (svc, svc->settings, &err) == 0, "%s", err.text);
        sim.self = NULL;
        TRACE ("%-6s %s is down", site, name);
        return true;
    }
    return false;
}

uint32_t grid_replies (const char *site, const char *method)
{
    for (uint32_t i = 0; counted[i]; i++)
        if (strcmp (counted[i], method) == 0)
            return w.replies[machine_index (machine_find (site))][i];
    sim_fail ("nobody counts %s", method);
}

uint32_t grid_parts (const char *site)
{
    struct svc *svc = svc_of (machine_find (site));
    uint32_t waiting = 0;
    for (const struct site_part *part = svc ? svc->parts : NULL; part; part = part->hh.next)
        waiting += !part->rec.start_accepted;
    return svc ? waiting : UINT32_MAX;
}

uint32_t grid_reserved (const char *site)
{
    struct svc *svc = svc_of (machine_find (site));
    return svc ? HASH_COUNT (svc->rsvs) : UINT32_MAX;
}

duration_us grid_reserved_for (const char *site, bool *wanted)
{
    struct svc *svc = svc_of (machine_find (site));
    const struct site_job *job = svc && svc->rsvs ? svc_job (svc, svc->rsvs->rec.part) : NULL;
    *wanted = job && job->part && job->part->rec.wanted;
    return job ? svc->rsvs->rec.end - svc->rsvs->rec.start : -1;
}

static void job_end_check (uint32_t j)
{
    const struct ujob *job = &w.job[j];
    CHECK (job->running == 0, "job %u (%s) has ended and runs", j, job->id);
    coverage_count ("total jobs %s", grid_state_name (job->state));
    if (job->reserve) {
        CHECK (job->launches == 0, "something runs for co-reservation %s", job->id);
    } else if (job->state == NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED) {
        for (uint32_t p = 0; p < job->parts; p++)
            CHECK (job->ended_well[p], "job %u (%s) completed without part %u", j, job->id, p);
    } else if (job->state == NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED) {
        CHECK (job->launches == 0, "job %u (%s) is refused after it ran: %s", j, job->id,
               job->reason);
    } else {
        /* One of an array whose latest start comes before its turn. */
        bool late = (job->array || job->before) && strncmp (job->reason, "TooLate", 7) == 0;
        CHECK (job->state == NUI__META__V1__GRID_JOB_STATE__GRID_FAILED || job->cancel || late,
               "job %u (%s) is cancelled, and nobody asked: %s", j, job->id, job->reason);
    }
}

void invariants_end (void)
{
    for (uint32_t j = 0; j < w.job_count; j++)
        job_end_check (j);
    for (uint32_t i = 0; i < sim.machine_count; i++)
        CHECK (sim.machine[i].kind != PRINCIPAL_SITE || grid_reserved (sim.machine[i].name) == 0,
               "(i) a co-reservation still stands at %s", sim.machine[i].name);
}
