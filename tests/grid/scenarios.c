/* scenarios: what all of them use, and running them. */
#include "scenarios.h"

const struct grid_ask scenario_pair = {
    .parts = 2, .tasks = {2, 2}, .sites = {"alpha", "beta"}, .walltime = 30 * SEC};
const struct grid_ask scenario_long = {
    .parts = 1, .tasks = {2}, .sites = {"beta,gamma"}, .walltime = 400 * SEC, .resubmit = true};

static struct {
    const char *server, *method;
    uint32_t after; /* so many replies of that method before it */
    bool struck;
    void (*strike) (struct machine *server);
    uint32_t seen;
} hit;

static void on_reply (struct machine *server, const char *method)
{
    if (hit.struck || strcmp (server->name, hit.server) != 0 || strcmp (method, hit.method) != 0 ||
        hit.seen++ < hit.after)
        return;
    hit.struck = true;
    TRACE ("strikes at %s of %s", method, server->name);
    hit.strike (server);
}

void strike_at (const char *server, const char *method, uint32_t after,
                void (*strike) (struct machine *server))
{
    memset (&hit, 0, sizeof hit);
    hit.server = server;
    hit.method = method;
    hit.after = after;
    hit.strike = strike;
    grid_strike = on_reply;
}

void server_dies (struct machine *server)
{
    server->dying = true; /* before its answer leaves */
}

static bool over (void *arg)
{
    return grid_job_over (*(uint32_t *)arg);
}

void expect_over (uint32_t job, duration_us limit)
{
    CHECK (grid_until (over, &job, limit), "job %u has not ended: %s", job, grid_reason (job));
}

void expect (uint32_t job, Nui__Meta__V1__GridJobState state)
{
    expect_over (job, 900 * SEC);
    CHECK (grid_state (job) == state, "job %u ended %d, not %d: %s", job, (int)grid_state (job),
           (int)state, grid_reason (job));
}

bool hit_struck (void *arg)
{
    (void)arg;
    return hit.struck;
}

bool nothing_held (void *arg)
{
    (void)arg;
    return grid_parts ("alpha") == 0 && grid_parts ("beta") == 0 && bank_holds_open () == 0;
}

bool both_firm (void *arg)
{
    (void)arg;
    return grid_replies ("alpha", "Commit") > 0 && grid_replies ("beta", "Commit") > 0;
}

bool launched (void *arg)
{
    return grid_launches (*(uint32_t *)arg) > 0;
}

void slide (void (*strike) (struct machine *server), const char *server, const char *method,
            uint32_t after)
{
    struct grid_ask full = {.parts = 1, .tasks = {4}, .sites = {"alpha"}, .walltime = 600 * SEC};
    struct grid_ask ask = scenario_pair;
    ask.tasks[0] = 4;
    uint32_t filler = grid_submit ("meta1", &full);
    CHECK (grid_until (launched, &filler, 60 * SEC), "alpha is not full");
    time_us begun = sim.now;
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_firm, NULL, 60 * SEC), "nothing is firm");
    if (strike)
        strike_at (server, method, after, strike);
    grid_cancel (filler);
    expect (job, COMPLETED);
    CHECK (sim.now - begun < 500 * SEC, "it waited for the moment it had first");
    CHECK (grid_launches (job) == 2, "%u components were launched", grid_launches (job));
    CHECK (!strike || hit.struck, "nobody died");
}

static bool both_launched (void *arg)
{
    return grid_launches (*(uint32_t *)arg) == 2;
}

void come_forward (void (*strike) (struct machine *server), const char *server, const char *method,
                   duration_us within)
{
    static const char *const site[] = {"alpha", "beta"};
    struct grid_ask ask = scenario_pair;
    uint32_t filler[2];
    for (int s = 0; s < 2; s++) {
        struct grid_ask full = {.parts = 1, .tasks = {4}, .sites = {site[s]}, .walltime = 70 * SEC};
        filler[s] = grid_submit ("meta1", &full);
        ask.tasks[s] = 4;
    }
    sim.shortest = 60 * SEC;
    ask.walltime = 100 * SEC;
    for (int s = 0; s < 2; s++)
        CHECK (grid_until (launched, &filler[s], 60 * SEC), "%s is not full", site[s]);
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_firm, NULL, 60 * SEC), "nothing is firm");
    if (strike)
        strike_at (server, method, 0, strike);
    grid_cancel (filler[0]);
    grid_cancel (filler[1]);
    time_us begun = sim.now;
    CHECK (grid_until (both_launched, &job, within), "it waits beside two idle machines");
    sim.silenced = NULL;
    TRACE ("begins after %.1f s", (double)(sim.now - begun) / SEC);
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 2, "%u components were launched", grid_launches (job));
    CHECK (!strike || hit.struck, "nobody died");
}

static struct {
    const char *server, *method;
    void (*strike) (struct machine *server);
} then;

void then_strike_at (const char *server, const char *method,
                     void (*strike) (struct machine *server))
{
    then.server = server;
    then.method = method;
    then.strike = strike;
}

void node_goes_first (struct machine *server)
{
    CHECK (grid_node_down (server->name), "nothing is firm");
    strike_at (then.server, then.method, 0, then.strike);
}

static bool run (const struct scenario *s, uint64_t seed, const char *only)
{
    if (only && strcmp (only, s->name) != 0)
        return false;
    sim.trace = only != NULL;
    printf ("%s\n", s->name);
    fflush (stdout);
    grid_begin (seed, s->shape);
    sim_run (sim.now + 2 * SEC);
    s->run ();
    grid_heal ();
    sim.twice_percent = 0;
    grid_finish ();
    return true;
}

/* Each table has seeds of its own: what is added to the end of one leaves all other worlds as they were. */
int scenarios_run (const char *only)
{
    uint32_t ran = 0;
    for (uint32_t i = 0; scenarios_one[i].name; i++)
        ran += run (&scenarios_one[i], 1 + i, only);
    for (uint32_t i = 0; scenarios_group[i].name; i++)
        ran += run (&scenarios_group[i], 35 + i, only);
    for (uint32_t i = 0; scenarios_coreserve[i].name; i++)
        ran += run (&scenarios_coreserve[i], 100 + i, only);
    if (!ran)
        fprintf (stderr, "there is no scenario %s\n", only);
    return ran ? 0 : 2;
}
