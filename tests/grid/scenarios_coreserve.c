/* scenarios_coreserve: co-reservations without a job, standing ones, other terms for them, and arrays of co-allocated jobs, while a
 * site or the coordinator dies. */
#include "scenarios.h"

static void meta_dies (struct machine *server)
{
    (void)server;
    machine_find ("meta1")->crash_after = 1;
}

/* ---- co-reservations without a job */

static bool both_reserved (void *arg)
{
    (void)arg;
    return grid_reserved ("alpha") == 1 && grid_reserved ("beta") == 1;
}

static bool both_twice (void *arg)
{
    (void)arg;
    return grid_reserved ("alpha") == 2 && grid_reserved ("beta") == 2;
}

static uint32_t coreserve (void (*strike) (struct machine *server), const char *server,
                           const char *method)
{
    struct grid_ask ask = scenario_pair;
    ask.reserve = true;
    if (strike)
        strike_at (server, method, 0, strike);
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_reserved, NULL, 120 * SEC), "alpha has %u, beta %u reservations",
           grid_reserved ("alpha"), grid_reserved ("beta"));
    return job;
}

static void coreserve_whatever_dies (void (*strike) (struct machine *server), const char *server,
                                     const char *method)
{
    uint32_t job = coreserve (strike, server, method);
    expect (job, COMPLETED);
    CHECK (hit_struck (NULL) || !strike, "nobody died");
    CHECK (bank_holds_open () == 0, "the bank keeps %u holds", bank_holds_open ());
}

static void coreservation_stands_until_its_end (void)
{
    coreserve_whatever_dies (NULL, NULL, NULL);
}

static void coordinator_dies_committing_a_coreservation (void)
{
    coreserve_whatever_dies (meta_dies, "alpha", "Commit");
}

static void site_dies_committing_a_coreservation (void)
{
    coreserve_whatever_dies (server_dies, "beta", "Commit");
}

static void coordinator_dies_starting_a_coreservation (void)
{
    coreserve_whatever_dies (meta_dies, "alpha", "Start");
}

static void site_dies_starting_a_coreservation (void)
{
    coreserve_whatever_dies (server_dies, "beta", "Start");
}

/* Its owner gives it back before it begins: both sites do. */
static void coreservation_is_given_back (void)
{
    struct grid_ask full = {.parts = 1, .tasks = {4}, .sites = {"alpha"}, .walltime = 60 * SEC};
    uint32_t filler = grid_submit ("meta1", &full);
    CHECK (grid_until (launched, &filler, 60 * SEC), "alpha is not full");
    uint32_t job = coreserve (NULL, NULL, NULL);
    grid_cancel (job);
    expect (job, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
    sim_run (sim.now + 5 * SEC);
    CHECK (grid_reserved ("alpha") == 0 && grid_reserved ("beta") == 0, "something still stands");
    expect (filler, COMPLETED);
}

/* ---- other terms */

static bool told_alike (void *arg)
{
    bool wanted[2];
    duration_us alpha = grid_reserved_for ("alpha", &wanted[0]);
    duration_us beta = grid_reserved_for ("beta", &wanted[1]);
    (void)arg;
    return alpha > 0 && alpha == beta && !wanted[0] && !wanted[1];
}

static bool gamma_reserved (void *arg)
{
    (void)arg;
    return grid_reserved ("gamma") == 1;
}

static bool changed (void *arg)
{
    return grid_changed (*(uint32_t *)arg) != 0;
}

/* It is made longer, whoever dies: both sites have the old end or both the new, and nothing stays taken. */
static void longer_whoever_dies (void (*strike) (struct machine *server), const char *server,
                                 const char *method)
{
    struct grid_ask ask = scenario_pair;
    bool wanted;
    ask.reserve = true;
    ask.walltime = 60 * SEC;
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_reserved, NULL, 60 * SEC), "nothing stands");
    sim_run (sim.now + 2 * SEC); /* its coordinator knows, too */
    if (method)
        strike_at (server, method, 0, strike);
    grid_change (job, 100 * SEC);
    CHECK (grid_until (changed, &job, 50 * SEC), "its user hears nothing");
    CHECK (!method || hit_struck (NULL), "nothing happened to %s", server);
    CHECK (grid_until (told_alike, NULL, 40 * SEC), "alpha and beta differ");
    CHECK (method || grid_changed (job) == 1, "it is refused");
    CHECK ((grid_changed (job) == 1) == (grid_reserved_for ("alpha", &wanted) == 100 * SEC),
           "its user was told something else");
    expect (job, COMPLETED);
}

static void coreservation_is_made_longer (void)
{
    longer_whoever_dies (NULL, NULL, NULL);
}

static void coordinator_dies_making_it_longer (void)
{
    longer_whoever_dies (meta_dies, "alpha", "Terms");
}

static void site_dies_making_it_longer (void)
{
    longer_whoever_dies (server_dies, "beta", "Terms");
}

/* It has taken what is needed, all have decided, and it dies keeping it. */
static void site_dies_keeping_it_longer (void)
{
    struct grid_ask ask = scenario_pair;
    ask.reserve = true;
    ask.walltime = 60 * SEC;
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_reserved, NULL, 60 * SEC), "nothing stands");
    sim_run (sim.now + 2 * SEC); /* its coordinator knows, too */
    strike_at ("beta", "Terms", 1, server_dies);
    grid_change (job, 100 * SEC);
    CHECK (grid_until (changed, &job, 50 * SEC) && grid_changed (job) == 1, "it was refused");
    CHECK (grid_until (told_alike, NULL, 40 * SEC), "alpha and beta differ");
    CHECK (hit_struck (NULL), "beta did not die");
    expect (job, COMPLETED);
}

/* What comes after it at beta is promised to another group: beta refuses, and alpha gives back what it took. */
static void one_site_refuses_to_make_it_longer (void)
{
    struct grid_ask ask = scenario_pair;
    struct grid_ask next = {.parts = 2,
                            .tasks = {4, 2},
                            .sites = {"beta", "gamma"},
                            .walltime = 30 * SEC,
                            .reserve = true};
    bool wanted;
    ask.reserve = true;
    ask.walltime = 60 * SEC;
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_reserved, NULL, 60 * SEC), "nothing stands");
    sim_run (sim.now + 2 * SEC); /* its coordinator knows, too */
    uint32_t other = grid_submit ("meta1", &next);
    CHECK (grid_until (gamma_reserved, NULL, 30 * SEC), "the other does not stand");
    grid_change (job, 100 * SEC);
    CHECK (grid_until (changed, &job, 10 * SEC) && grid_changed (job) == 2, "it is not refused");
    sim_run (sim.now + 5 * SEC);
    CHECK (grid_reserved_for ("alpha", &wanted) == 60 * SEC && !wanted, "alpha keeps %s",
           wanted ? "what it took" : "it longer");
    expect (job, COMPLETED);
    expect (other, COMPLETED);
}

/* Three days, of which two are reserved at a time, while a site dies; each stands until its end, at both sites. */
static void standing_coreservation (void)
{
    struct grid_ask ask = scenario_pair;
    ask.reserve = true;
    ask.array = 3;
    ask.limit = 2;
    uint32_t first = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_twice, NULL, 60 * SEC), "alpha has %u, beta %u reservations",
           grid_reserved ("alpha"), grid_reserved ("beta"));
    server_dies (machine_find ("beta"));
    for (uint32_t k = 0; k < ask.array; k++)
        expect (first + k, COMPLETED);
}

/* ---- arrays of co-allocated jobs */

/* Three pairs signed as one, one at a time: each is all or none, whoever dies in the second. */
static void pairs_whatever_dies (void (*strike) (struct machine *server), const char *server,
                                 const char *method)
{
    struct grid_ask ask = scenario_pair;
    ask.array = 3;
    ask.limit = 1;
    if (method)
        strike_at (server, method, 1, strike);
    uint32_t first = grid_submit ("meta1", &ask);
    for (uint32_t k = 0; k < ask.array; k++) {
        expect (first + k, COMPLETED);
        CHECK (grid_launches (first + k) == 2, "%s has %u halves", grid_id (first + k),
               grid_launches (first + k));
    }
    CHECK (!method || hit_struck (NULL), "nothing happened to %s", server);
}

static void pairs_of_an_array (void)
{
    pairs_whatever_dies (NULL, NULL, NULL);
}

static void coordinator_dies_committing_a_pair_of_an_array (void)
{
    pairs_whatever_dies (meta_dies, "alpha", "Commit");
}

static void site_dies_preparing_a_pair_of_an_array (void)
{
    pairs_whatever_dies (server_dies, "beta", "Prepare");
}

/* All of it ends by one word; what waited never begins. */
static void pairs_are_cancelled_as_one (void)
{
    struct grid_ask ask = scenario_pair;
    ask.array = 3;
    ask.limit = 1;
    uint32_t first = grid_submit ("meta1", &ask);
    CHECK (grid_until (launched, &first, 60 * SEC), "the first does not begin");
    grid_cancel (first);
    for (uint32_t k = 0; k < ask.array; k++)
        expect (first + k, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
    CHECK (grid_launches (first + 1) == 0 && grid_launches (first + 2) == 0, "another began");
}

/* ---- the rows */

static const struct grid_shape three = {
    .sites = 3, .metas = 1, .nodes = {2, 2, 2}, .balance = 100000 * 1000000LL};

const struct scenario scenarios_coreserve[] = {
    {"coreservation_stands_until_its_end", coreservation_stands_until_its_end, &three},
    {"coordinator_dies_committing_a_coreservation", coordinator_dies_committing_a_coreservation,
     &three},
    {"site_dies_committing_a_coreservation", site_dies_committing_a_coreservation, &three},
    {"coordinator_dies_starting_a_coreservation", coordinator_dies_starting_a_coreservation,
     &three},
    {"site_dies_starting_a_coreservation", site_dies_starting_a_coreservation, &three},
    {"coreservation_is_given_back", coreservation_is_given_back, &three},
    {"standing_coreservation", standing_coreservation, &three},
    {"coreservation_is_made_longer", coreservation_is_made_longer, &three},
    {"coordinator_dies_making_it_longer", coordinator_dies_making_it_longer, &three},
    {"site_dies_making_it_longer", site_dies_making_it_longer, &three},
    {"site_dies_keeping_it_longer", site_dies_keeping_it_longer, &three},
    {"one_site_refuses_to_make_it_longer", one_site_refuses_to_make_it_longer, &three},
    {"pairs_of_an_array", pairs_of_an_array, &three},
    {"coordinator_dies_committing_a_pair_of_an_array",
     coordinator_dies_committing_a_pair_of_an_array, &three},
    {"site_dies_preparing_a_pair_of_an_array", site_dies_preparing_a_pair_of_an_array, &three},
    {"pairs_are_cancelled_as_one", pairs_are_cancelled_as_one, &three},
    {NULL, NULL, NULL},
};
