/* scenarios_one: each row of the protocol's failure table under one coordinator, or rivals that know nothing of each
 * other. */
#include "scenarios.h"

static void meta_dies (struct machine *server)
{
    (void)server;
    machine_find ("meta1")->crash_after = 1;
}

static void meta_dies_later (struct machine *server)
{
    (void)server;
    machine_find ("meta1")->crash_after = 1;
    machine_find ("meta1")->crash_late = true;
}

static void server_cut_off (struct machine *server)
{
    struct machine *meta = machine_find ("meta1");
    sim.cut[machine_index (meta)][machine_index (server)] = true;
    sim.cut[machine_index (server)][machine_index (meta)] = true;
}

static void release_is_lost (struct machine *server)
{
    (void)server;
    sim.silenced = "Release";
}

static struct {
    time_us asked, committed;
    uint32_t commits;
} trip;

static void trip_note (struct machine *server, const char *method)
{
    (void)server;
    if (strcmp (method, "Query") == 0 && !trip.asked)
        trip.asked = sim.now - sim.latency;
    if (strcmp (method, "Commit") == 0) {
        trip.committed = sim.now + sim.latency;
        trip.commits++;
    }
}

/* Where only the way of messages takes time: from a Submit's arrival until all have committed the coordinator asks the
 * sites three times, QUERY, PREPARE and COMMIT; beside the first it asks the bank for the price, and in the second each
 * site asks it for a hold. */
static void sites_are_asked_three_times (void)
{
    struct grid_ask ask = {
        .parts = 3, .tasks = {2, 2, 2}, .sites = {"alpha", "beta", "gamma"}, .walltime = 30 * SEC};
    sim_run (sim.now + 20 * SEC); /* all have reported */
    memset (&trip, 0, sizeof trip);
    grid_strike = trip_note;
    sim.latency = 300 * MS;
    uint32_t job = grid_submit ("meta1", &ask);
    expect (job, COMPLETED);
    grid_strike = NULL;
    CHECK (trip.commits == 3 && grid_attempts (job) == 1, "%u commits in %u attempts", trip.commits,
           grid_attempts (job));
    CHECK (trip.committed - trip.asked <= 8 * sim.latency + MS,
           "committed after %.3f s, and a way takes %.1f s",
           (double)(trip.committed - trip.asked) / SEC, (double)sim.latency / SEC);
    sim.latency = 0;
}

static void coordinator_dies_before_decide (void)
{
    strike_at ("beta", "Prepare", 0, server_dies); /* so that not all have said yes */
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    CHECK (grid_until (hit_struck, NULL, 60 * SEC), "nothing was prepared");
    machine_find ("meta1")->held_down = true;
    machine_kill (machine_find ("meta1"), -1);
    CHECK (grid_until (nothing_held, NULL, 12 * SEC + 40 * SEC),
           "holds are left after the lease: alpha %u, beta %u, bank %u", grid_parts ("alpha"),
           grid_parts ("beta"), bank_holds_open ());
    grid_heal ();
    expect (job, COMPLETED);
}

static void coordinator_dies_deciding (void)
{
    strike_at ("beta", "Prepare", 0,
               meta_dies); /* at the step that would have written the decision */
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    expect (job, COMPLETED);
    CHECK (machine_find ("meta1")->crashes, "the metascheduler did not die");
}

static void coordinator_dies_after_decide (void)
{
    strike_at ("alpha", "Commit", 0, meta_dies_later); /* when it writes that alpha is firm */
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    expect (job, COMPLETED);
    CHECK (machine_find ("meta1")->crashes, "the metascheduler did not die");
}

static void coordinator_is_away_past_the_leases (void)
{
    strike_at ("alpha", "Prepare", 0, meta_dies);
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    CHECK (grid_until (hit_struck, NULL, 60 * SEC), "nothing was prepared");
    machine_find ("meta1")->held_down = true;
    sim_run (sim.now + 60 * SEC);
    CHECK (nothing_held (NULL), "a hold outlived its lease");
    grid_heal ();
    expect (job, COMPLETED);
}

static void messages_repeat_and_cross (void)
{
    sim.twice_percent = 100;
    sim.slow_percent = 30;
    uint32_t job = grid_submit ("meta1", &scenario_pair),
             other = grid_submit ("meta1", &scenario_pair);
    expect_over (job, 3600 * SEC);
    expect_over (other, 3600 * SEC);
    CHECK (grid_launches (job) <= 2 && grid_launches (other) <= 2,
           "a component was launched twice");
}

static void messages_get_lost (void)
{
    sim.loss_percent = 25;
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    expect_over (job, 3600 * SEC);
    CHECK (sim.lost, "nothing was lost");
}

static void site_dies_before_its_yes (void)
{
    struct machine *beta = machine_find ("beta");
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    sim_run (sim.now + 20 * MS);
    beta->crash_after = 1;
    expect (job, COMPLETED);
    CHECK (beta->crashes, "the site did not die");
}

static void site_dies_after_its_yes (void)
{
    strike_at ("beta", "Prepare", 0, server_dies);
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    expect (job, COMPLETED);
    CHECK (machine_find ("beta")->crashes, "the site did not die");
}

static void site_dies_when_firm (void)
{
    strike_at ("beta", "Commit", 0, server_dies);
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    expect (job, COMPLETED);
    CHECK (machine_find ("beta")->crashes, "the site did not die");
}

static void cut_during_commit (void)
{
    strike_at ("beta", "Prepare", 0, server_cut_off); /* its yes arrives, nothing after it */
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    CHECK (grid_until (hit_struck, NULL, 60 * SEC), "nothing was prepared");
    sim_run (sim.now + 50 * SEC);
    CHECK (grid_launches (job) == 0, "a component started alone");
    grid_heal ();
    expect (job, COMPLETED);
}

static void clocks_apart_and_stepping (void)
{
    grid_clock_step (machine_find ("alpha"), 180 * SEC);
    grid_clock_step (machine_find ("beta"), -180 * SEC);
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    sim_run (sim.now + 5 * SEC);
    grid_clock_step (machine_find ("alpha"), -180 * SEC);
    grid_clock_step (machine_find ("beta"), 180 * SEC);
    expect_over (job, 3600 * SEC);
}

/* Each needs all of every site. Whoever goes round in circles comes to the limit of its tries. */
static void rivals_want_one_slot (void)
{
    enum { ATTEMPTS_ENOUGH = 12 };
    uint32_t job[6];
    struct grid_ask all = {
        .parts = 3, .tasks = {4, 4, 4}, .sites = {"alpha", "beta", "gamma"}, .walltime = 30 * SEC};
    for (uint32_t i = 0; i < 6; i++)
        job[i] = grid_submit (i % 3 == 0 ? "meta1" : i % 3 == 1 ? "meta2" : "meta3", &all);
    for (uint32_t i = 0; i < 6; i++)
        expect_over (job[i], 3600 * SEC);
    uint32_t completed = 0;
    for (uint32_t i = 0; i < 6; i++) {
        completed += grid_launches (job[i]) == 3;
        CHECK (grid_attempts (job[i]) <= ATTEMPTS_ENOUGH, "rival %u made %u attempts", i,
               grid_attempts (job[i]));
        TRACE ("rival %u: %u attempts", i, grid_attempts (job[i]));
    }
    CHECK (completed == 6, "%u of 6 rivals got their slots", completed);
}

/* Five parts of two processors, wherever there is room: five at one site would be cheapest, and only two have room beside
 * what runs. Asked for one by one each finds room everywhere. */
static void parts_fill_the_gaps (void)
{
    struct grid_ask busy = {.parts = 1, .walltime = 300 * SEC};
    struct grid_ask five = {.parts = 5, .tasks = {2, 2, 2, 2, 2}, .walltime = 20 * SEC};
    const char *const at[] = {"alpha", "beta", "gamma"};
    const uint32_t used[] = {4, 4, 6};
    uint32_t before[3];
    for (uint32_t i = 0; i < 3; i++) {
        busy.sites[0] = at[i];
        busy.tasks[0] = used[i];
        before[i] = grid_submit ("meta1", &busy);
    }
    for (uint32_t i = 0; i < 3; i++)
        CHECK (grid_until (launched, &before[i], 60 * SEC), "%s", grid_reason (before[i]));
    time_us begun = sim.now;
    uint32_t job = grid_submit ("meta1", &five);
    CHECK (grid_until (launched, &job, 60 * SEC), "it waits beside idle nodes: %s",
           grid_reason (job));
    CHECK (sim.now - begun < 30 * SEC, "it began after %.1f s", (double)(sim.now - begun) / 1e6);
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 5, "%u of 5 parts ran", grid_launches (job));
}

/* It needs all three sites, which are full for longer than any number of tries: it is kept, and runs. */
static void waits_for_a_common_slot (void)
{
    struct grid_ask busy = {.parts = 1, .tasks = {4}, .walltime = 900 * SEC};
    struct grid_ask all = {.parts = 3, .tasks = {4, 4, 4}, .walltime = 20 * SEC};
    uint32_t first = grid_submit ("meta1", &busy);
    CHECK (grid_until (launched, &first, 60 * SEC), "%s", grid_reason (first));
    uint32_t job = grid_submit ("meta1", &all);
    sim_run (sim.now + 600 * SEC);
    CHECK (!grid_job_over (job), "it was not kept: %s", grid_reason (job));
    CHECK (grid_until (launched, &job, 600 * SEC), "it did not run: %s", grid_reason (job));
    expect (job, COMPLETED);
}

static void just_seen (struct machine *server)
{
    (void)server;
}

static void bank_is_down (void)
{
    struct machine *bank = machine_find ("bank");
    strike_at ("alpha", "Query", 0, just_seen);
    sim.latency = 100 * MS;
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    CHECK (grid_until (hit_struck, NULL, 60 * SEC), "nobody was asked");
    sim_run (sim.now + sim.latency + sim.latency / 2); /* priced, not yet held */
    sim.latency = 0;
    CHECK (grid_replies ("bank", "Quote") == 1 && grid_replies ("bank", "Hold") == 0,
           "priced %u times, held %u times", grid_replies ("bank", "Quote"),
           grid_replies ("bank", "Hold"));
    machine_kill (bank, -1);
    bank->held_down = true;
    sim_run (sim.now + 60 * SEC);
    CHECK (grid_launches (job) == 0, "a component started that nobody pays");
    CHECK (grid_parts ("alpha") == 0 && grid_parts ("beta") == 0,
           "a part is held without the bank");
    grid_heal ();
    expect (job, COMPLETED);
}

static bool both_firm_or_gamma (void *arg)
{
    (void)arg;
    return grid_replies ("alpha", "Commit") > 0 &&
           (grid_replies ("beta", "Commit") > 0 || grid_replies ("gamma", "Commit") > 0);
}

/* A node is free: the site puts it in the place of the dead one, and nobody asks again. */
static void node_dies_after_commit_and_is_replaced (void)
{
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    CHECK (grid_until (both_firm, NULL, 60 * SEC) && grid_node_down ("beta"), "nothing is firm");
    expect (job, COMPLETED);
    CHECK (grid_replies ("beta", "Prepare") == 1, "it was prepared again");
}

/* None is free: the component is prepared at another site. */
static void node_dies_after_commit_and_none_is_free (void)
{
    struct grid_ask ask = scenario_pair;
    ask.tasks[1] = 4; /* all of beta */
    ask.sites[1] = "beta,gamma";
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_firm, NULL, 60 * SEC) && grid_node_down ("beta"), "nothing is firm");
    expect (job, COMPLETED);
    CHECK (grid_replies ("gamma", "Commit") > 0, "it was not prepared elsewhere");
    CHECK (grid_replies ("alpha", "Prepare") == 1 && grid_replies ("alpha", "Release") == 0,
           "the other component did not stay firm");
    CHECK (grid_replies ("beta", "Release") > 0, "what beta cannot start was not given back");
}

/* In the middle of that. */
static void repair_with (const char *server, const char *method,
                         void (*strike) (struct machine *server))
{
    struct grid_ask ask = scenario_pair;
    ask.tasks[1] = 4;
    ask.sites[1] = "beta,gamma";
    then_strike_at (server, method, strike);
    strike_at ("beta", "Commit", 0, node_goes_first);
    uint32_t job = grid_submit ("meta1", &ask);
    expect (job, COMPLETED);
    CHECK (hit_struck (NULL), "%s never answered %s", server, method);
    CHECK (grid_launches (job) == 2, "%u components were launched", grid_launches (job));
}

static void coordinator_dies_releasing_for_a_repair (void)
{
    repair_with ("beta", "Release", meta_dies);
}

static void coordinator_dies_committing_a_repair (void)
{
    repair_with ("gamma", "Commit", meta_dies_later);
}

static void site_dies_in_a_repair (void)
{
    repair_with ("gamma", "Prepare", server_dies);
}

/* And nowhere else may it run: the whole is cancelled, and says why. */
static void node_dies_after_commit_and_nowhere_else (void)
{
    struct grid_ask ask = scenario_pair;
    ask.tasks[1] = 4;
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_firm, NULL, 60 * SEC) && grid_node_down ("beta"), "nothing is firm");
    expect (job, NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED);
    CHECK (grid_launches (job) == 0, "a component started alone");
}

/* Who answers has said no, and who might run it does not answer: the job is taken, and waits. */
static void waits_for_a_silent_site_when_no_other_can (void)
{
    struct grid_ask one = {.parts = 1, .tasks = {4}, .sites = {"beta,gamma"}, .walltime = 30 * SEC},
                    two = {.parts = 2,
                           .tasks = {2, 4},
                           .sites = {"alpha", "beta,gamma"},
                           .walltime = 30 * SEC};
    uint32_t first = grid_submit ("meta1", &scenario_pair);
    CHECK (grid_until (both_firm, NULL, 60 * SEC) && grid_node_down ("beta"), "nothing is firm");
    expect (first, COMPLETED);
    machine_kill (machine_find ("gamma"), -1);
    machine_find ("gamma")->held_down = true;
    sim_run (sim.now + 40 * SEC); /* it does not count as up any more */
    uint32_t job = grid_submit ("meta1", &one), group = grid_submit ("meta1", &two);
    sim_run (sim.now + 10 * SEC);
    CHECK (grid_state (job) == NUI__META__V1__GRID_JOB_STATE__GRID_PENDING &&
               grid_state (job) == grid_state (group),
           "not taken: '%s', '%s'", grid_reason (job), grid_reason (group));
    grid_heal ();
    expect (job, COMPLETED);
    expect (group, COMPLETED);
}

static void node_dies_when_running (void)
{
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    for (int i = 0; i < 1000 && grid_launches (job) < 2; i++)
        sim_run (sim.now + 100 * MS);
    CHECK (runner_lose_node (machine_find ("beta")), "nothing ran at beta");
    expect (job, NUI__META__V1__GRID_JOB_STATE__GRID_FAILED);
}

/* ---- sliding */

static void group_slides (void)
{
    slide (NULL, NULL, NULL, 0);
    CHECK (grid_replies ("alpha", "Release") > 0, "the old place was not given back");
}

static void coordinator_dies_preparing_a_slide (void)
{
    slide (meta_dies, "beta", "Prepare", 0);
}

static void coordinator_dies_committing_a_slide (void)
{
    slide (meta_dies_later, "alpha", "Commit", 0);
}

static void coordinator_dies_changing_places (void)
{
    slide (meta_dies, "alpha", "Release", 0);
}

static void site_dies_in_a_slide (void)
{
    slide (server_dies, "beta", "Commit", 0);
}

/* The old place lies in the way of the new one at both sites. */
static void group_comes_forward_over_its_place (void)
{
    come_forward (NULL, NULL, NULL, 12 * SEC);
    CHECK (grid_replies ("alpha", "Prepare") == 2 && grid_replies ("beta", "Prepare") == 2,
           "it took more than one try");
}

static void coordinator_dies_preparing_over_its_place (void)
{
    come_forward (meta_dies, "beta", "Prepare", 60 * SEC);
}

static void coordinator_dies_committing_over_its_place (void)
{
    come_forward (meta_dies_later, "alpha", "Commit", 60 * SEC);
}

static void coordinator_dies_changing_over_its_place (void)
{
    come_forward (meta_dies, "alpha", "Release", 60 * SEC);
}

static void site_dies_preparing_over_its_place (void)
{
    come_forward (server_dies, "beta", "Prepare", 60 * SEC);
}

static void site_dies_committing_over_its_place (void)
{
    come_forward (server_dies, "beta", "Commit", 60 * SEC);
}

/* It is told to start before it has heard that the old place is given up. */
static void starts_before_the_old_place_is_given_up (void)
{
    come_forward (release_is_lost, "alpha", "Commit", 12 * SEC);
}

/* ---- limits over the grid */

static uint32_t limited_jobs, limited_most;

/* Never more than so many at all sites together. */
static bool limited_over (void *arg)
{
    static const char *const site[] = {"alpha", "beta", "gamma"};
    uint32_t live = 0, over = 0;
    (void)arg;
    for (int s = 0; s < 3; s++)
        live += runner_live (machine_find (site[s]));
    CHECK (live <= limited_most, "%u jobs are with sites, the limit is %u", live, limited_most);
    for (uint32_t j = 0; j < limited_jobs; j++)
        over += grid_job_over (j);
    return over == limited_jobs;
}

static void limited_submit (uint32_t jobs, uint32_t metas, uint32_t most)
{
    static const char *const meta[] = {"meta1", "meta2", "meta3"};
    struct grid_ask one = {.parts = 1, .tasks = {2}, .walltime = 20 * SEC};
    limited_jobs = jobs;
    limited_most = most;
    sim_run (sim.now + 15 * SEC); /* all have reported */
    for (uint32_t j = 0; j < jobs; j++)
        grid_submit (meta[j % metas], &one);
}

static void limited_finish (void)
{
    CHECK (grid_until (limited_over, NULL, 600 * SEC), "not all of them ended");
    for (uint32_t j = 0; j < limited_jobs; j++)
        expect (j, COMPLETED);
}

static bool some_are_told (void *arg)
{
    uint32_t told = 0;
    (void)arg;
    for (uint32_t j = 0; j < limited_jobs; j++)
        told += strncmp (grid_reason (j), "GridLimit", 9) == 0;
    return told == limited_jobs - limited_most;
}

/* All would find processors at once; the metascheduler dies while two run. */
static void user_stays_within_the_grids_limit (void)
{
    limited_submit (5, 1, 2);
    sim.shortest = 15 * SEC;
    CHECK (grid_until (some_are_told, NULL, 14 * SEC), "nobody is told of the limit");
    machine_kill (machine_find ("meta1"), SEC);
    limited_finish ();
}

static void group_shares_the_grids_limit (void)
{
    limited_submit (9, 3, 3);
    limited_finish ();
}

/* ---- sites that are lost */

static void cut_off (const char *site)
{
    server_cut_off (machine_find (site));
}

/* At beta or gamma, whichever has it. */
static const char *cut_off_its_site (uint32_t job)
{
    static const char *const site[] = {"beta", "gamma"};
    for (int i = 0; i < 2; i++)
        if (grid_replies (site[i], "Submit")) {
            cut_off (site[i]);
            return site[i];
        }
    CHECK (false, "no site has job %u", job);
    return NULL;
}

static bool no_holds (void *arg)
{
    (void)arg;
    return bank_holds_open () == 0;
}

/* It runs there; the site ends it before the other one gets it: invariant (i). */
static void site_of_a_running_job_is_lost (void)
{
    sim.shortest = 200 * SEC; /* else it may have run to its end before it is lost */
    uint32_t job = grid_submit ("meta1", &scenario_long);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    const char *was = cut_off_its_site (job);
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 2 &&
               grid_replies (strcmp (was, "beta") ? "beta" : "gamma", "Submit") == 1,
           "it was not given to the other site");
    grid_heal (); /* the lost site tells the bank what it has */
    CHECK (grid_until (no_holds, NULL, 120 * SEC), "the bank keeps %u holds", bank_holds_open ());
    CHECK (bank_charges (grid_id (job)) == 1, "its owner is charged for %u runs",
           bank_charges (grid_id (job)));
}

/* By the owner's choice it stays. */
static void site_is_lost_and_the_job_stays (void)
{
    struct grid_ask ask = scenario_long;
    ask.resubmit = false;
    sim.shortest = 350 * SEC;
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    cut_off_its_site (job);
    sim_run (sim.now + 200 * SEC);
    CHECK (!grid_job_over (job) && strstr (grid_reason (job), "SiteLost"), "its status says %s",
           grid_reason (job));
    grid_heal ();
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 1, "it was run again");
}

/* It waits in the queue of a site whose machine goes down; back again that one must not start it. */
static void site_of_a_queued_job_is_lost (void)
{
    struct grid_ask full = {.parts = 1, .tasks = {4}, .sites = {"beta"}, .walltime = 300 * SEC},
                    ask = scenario_long;
    uint32_t filler = grid_submit ("meta1", &full);
    CHECK (grid_until (launched, &filler, 60 * SEC), "beta is not full");
    ask.sites[0] = "beta";
    uint32_t job = grid_submit ("meta1", &ask);
    sim_run (sim.now + 10 * SEC);
    machine_find ("beta")->held_down = true;
    machine_kill (machine_find ("beta"), -1);
    sim_run (sim.now + 100 * SEC);
    CHECK (strstr (grid_reason (job), "SiteDown") || strstr (grid_reason (job), "SiteLost"),
           "its status says %s", grid_reason (job));
    grid_heal ();
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 1, "it ran %u times", grid_launches (job));
}

/* One of two that run together: the other is ended, and both run again, elsewhere. */
static void site_of_a_component_is_lost (void)
{
    struct grid_ask ask = scenario_pair;
    ask.walltime = 400 * SEC;
    ask.sites[1] = "beta,gamma";
    ask.resubmit = true;
    uint32_t job = grid_submit ("meta1", &ask);
    for (int i = 0; i < 1000 && grid_launches (job) < 2; i++)
        sim_run (sim.now + 100 * MS);
    cut_off (grid_replies ("beta", "Start") ? "beta" : "gamma");
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 4, "%u components were launched", grid_launches (job));
}

static bool both_beta_and_gamma (void *arg)
{
    (void)arg;
    return grid_replies ("beta", "Commit") > 0 && grid_replies ("gamma", "Commit") > 0;
}

/* Firm, not started: the other site gets it for the same moment, and what is firm stays so. */
static void site_of_a_firm_component_is_lost (void)
{
    struct grid_ask full = {.parts = 1, .tasks = {4}, .sites = {"alpha"}, .walltime = 300 * SEC},
                    ask = scenario_pair;
    uint32_t filler = grid_submit ("meta1", &full);
    CHECK (grid_until (launched, &filler, 60 * SEC), "alpha is not full");
    ask.tasks[0] = 4;
    ask.sites[1] = "beta,gamma";
    ask.resubmit = true;
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_firm_or_gamma, NULL, 60 * SEC), "nothing is firm");
    cut_off (grid_replies ("beta", "Commit") ? "beta" : "gamma");
    CHECK (grid_until (both_beta_and_gamma, NULL, 300 * SEC), "it was not prepared elsewhere");
    CHECK (grid_replies ("alpha", "Prepare") == 1, "the other component did not stay firm");
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 2, "%u components were launched", grid_launches (job));
}

/* alpha is silent past the limit of the job there, and the metascheduler starts anew: nobody knows whether the
 * licences are in use, so nobody else gets them. */
static void licence_is_kept_while_its_site_is_silent (void)
{
    struct grid_ask ask = {
        .parts = 1, .tasks = {2}, .sites = {"alpha"}, .walltime = 30 * SEC, .licences = 4};
    uint32_t first = grid_submit ("meta1", &ask);
    CHECK (grid_until (launched, &first, 60 * SEC), "it does not start");
    cut_off ("alpha");
    ask.sites[0] = "beta";
    uint32_t second = grid_submit ("meta1", &ask);
    sim_run (sim.now + 120 * SEC);
    machine_kill (machine_find ("meta1"), 5 * SEC);
    sim_run (sim.now + 120 * SEC);
    CHECK (grid_launches (second) == 0, "4 of %d are given out twice", GRID_LICENCES);
    grid_heal ();
    expect_over (first, 900 * SEC);
    expect (second, COMPLETED);
}

static void greedy_peer_is_capped (void)
{
    uint32_t job[8], most = 0;
    struct grid_ask one = scenario_pair;
    one.tasks[0] = one.tasks[1] = 1;
    for (uint32_t i = 0; i < 8; i++)
        job[i] = grid_submit ("meta1", &one);
    for (int t = 0; t < 3000; t++) {
        uint32_t parts = grid_parts ("alpha");
        sim_run (sim.now + 20 * MS);
        most = parts > most ? parts : most;
    }
    CHECK (most <= 2, "%u parts are held where the cap is 2", most);
    for (uint32_t i = 0; i < 8; i++)
        expect_over (job[i], 3600 * SEC);
}

static void disk_fills (struct machine *server)
{
    server->disk_full = true;
}

static bool start_accepted (void *arg)
{
    (void)arg;
    return grid_replies ("alpha", "Start") > 0 && grid_replies ("beta", "Start") > 0;
}

/* Between START and the launch; that it never began cannot be written down when the runner says so. */
static void cancelled_before_launch_with_a_full_disk (void)
{
    strike_at ("beta", "Release", 0, disk_fills);
    uint32_t job = grid_submit ("meta1", &scenario_pair);
    CHECK (grid_until (start_accepted, NULL, 60 * SEC) && grid_launches (job) == 0,
           "nothing waits for its launch");
    grid_cancel (job);
    CHECK (grid_until (hit_struck, NULL, 60 * SEC), "nothing was released");
    sim_run (sim.now + 10 * SEC);
    grid_heal ();
    expect (job, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
    CHECK (grid_launches (job) == 0, "it was launched");
}

/* That it is about to be sent to a site cannot be written down: it is not sent. */
static void sent_with_a_full_disk (void)
{
    const struct grid_ask one = {
        .parts = 1, .tasks = {2}, .sites = {"beta,gamma"}, .walltime = 30 * SEC};
    strike_at ("meta1", "Submit", 0, disk_fills);
    uint32_t job = grid_submit ("meta1", &one);
    CHECK (grid_until (hit_struck, NULL, 60 * SEC), "it was not taken");
    sim_run (sim.now + 20 * SEC);
    CHECK (grid_launches (job) == 0, "a site has what is not on disk");
    machine_find ("meta1")->dying = true;
    sim_run (sim.now + 5 * SEC);
    grid_heal ();
    expect (job, NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED);
    CHECK (grid_launches (job) == 1, "it ran twice");
}

/* ---- the rows */

static const struct grid_shape three = {
    .sites = 3, .metas = 1, .nodes = {2, 2, 2}, .balance = 100000 * 1000000LL};
static const struct grid_shape rivals = {.sites = 3,
                                         .metas = 3,
                                         .nodes = {2, 2, 2},
                                         .balance = 100000 * 1000000LL,
                                         .meta_lines = "ATTEMPTSMAX 60"};

static const struct grid_shape limited = {.sites = 3,
                                          .metas = 1,
                                          .nodes = {2, 2, 2},
                                          .balance = 100000 * 1000000LL,
                                          .meta_lines = "GRIDUSERCFG[alice] MAXJOB=2"};
static const struct grid_shape limited_group = {.sites = 3,
                                                .metas = 3,
                                                .nodes = {2, 2, 2},
                                                .balance = 100000 * 1000000LL,
                                                .meta_lines = "GRIDUSERCFG[DEFAULT] MAXPROC=6",
                                                .group = true};
static const struct grid_shape losing = {.sites = 3,
                                         .metas = 1,
                                         .nodes = {2, 2, 2},
                                         .balance = 100000 * 1000000LL,
                                         .meta_lines = "SITELOSTTIME 60"};

static const struct grid_shape licensed = {.sites = 2,
                                           .metas = 1,
                                           .nodes = {2, 2},
                                           .balance = 100000 * 1000000LL,
                                           .meta_lines =
                                               "GRIDLICENSE[cad] COUNT=7\nATTEMPTSMAX 100"};

static const struct grid_shape gaps = {
    .sites = 3, .metas = 1, .nodes = {4, 4, 4}, .balance = 100000 * 1000000LL};
/* What ends in more than five minutes is beyond what the sites are asked for. */
static const struct grid_shape short_sighted = {.sites = 3,
                                                .metas = 1,
                                                .nodes = {2, 2, 2},
                                                .balance = 100000 * 1000000LL,
                                                .meta_lines = "HORIZON 5:00\nATTEMPTSMAX 3"};

static const struct grid_shape capped = {.sites = 3,
                                         .metas = 1,
                                         .nodes = {2, 2, 2},
                                         .balance = 100000 * 1000000LL,
                                         .site_lines = "PEERCAP[DEFAULT] HOLDS=2"};

const struct scenario scenarios_one[] = {
    {"coordinator_dies_before_decide", coordinator_dies_before_decide, &three},
    {"coordinator_dies_deciding", coordinator_dies_deciding, &three},
    {"coordinator_dies_after_decide", coordinator_dies_after_decide, &three},
    {"coordinator_is_away_past_the_leases", coordinator_is_away_past_the_leases, &three},
    {"messages_repeat_and_cross", messages_repeat_and_cross, &three},
    {"messages_get_lost", messages_get_lost, &three},
    {"site_dies_before_its_yes", site_dies_before_its_yes, &three},
    {"site_dies_after_its_yes", site_dies_after_its_yes, &three},
    {"site_dies_when_firm", site_dies_when_firm, &three},
    {"cut_during_commit", cut_during_commit, &three},
    {"clocks_apart_and_stepping", clocks_apart_and_stepping, &three},
    {"rivals_want_one_slot", rivals_want_one_slot, &rivals},
    {"bank_is_down", bank_is_down, &three},
    {"node_dies_after_commit_and_is_replaced", node_dies_after_commit_and_is_replaced, &three},
    {"node_dies_after_commit_and_none_is_free", node_dies_after_commit_and_none_is_free, &three},
    {"node_dies_after_commit_and_nowhere_else", node_dies_after_commit_and_nowhere_else, &three},
    {"coordinator_dies_releasing_for_a_repair", coordinator_dies_releasing_for_a_repair, &three},
    {"coordinator_dies_committing_a_repair", coordinator_dies_committing_a_repair, &three},
    {"site_dies_in_a_repair", site_dies_in_a_repair, &three},
    {"waits_for_a_silent_site_when_no_other_can", waits_for_a_silent_site_when_no_other_can,
     &three},
    {"node_dies_when_running", node_dies_when_running, &three},
    {"cancelled_before_launch_with_a_full_disk", cancelled_before_launch_with_a_full_disk, &three},
    {"sent_with_a_full_disk", sent_with_a_full_disk, &three},
    {"group_slides", group_slides, &three},
    {"coordinator_dies_preparing_a_slide", coordinator_dies_preparing_a_slide, &three},
    {"coordinator_dies_committing_a_slide", coordinator_dies_committing_a_slide, &three},
    {"coordinator_dies_changing_places", coordinator_dies_changing_places, &three},
    {"site_dies_in_a_slide", site_dies_in_a_slide, &three},
    {"site_of_a_running_job_is_lost", site_of_a_running_job_is_lost, &losing},
    {"site_is_lost_and_the_job_stays", site_is_lost_and_the_job_stays, &losing},
    {"site_of_a_queued_job_is_lost", site_of_a_queued_job_is_lost, &losing},
    {"site_of_a_component_is_lost", site_of_a_component_is_lost, &losing},
    {"site_of_a_firm_component_is_lost", site_of_a_firm_component_is_lost, &losing},
    {"licence_is_kept_while_its_site_is_silent", licence_is_kept_while_its_site_is_silent,
     &licensed},
    {"greedy_peer_is_capped", greedy_peer_is_capped, &capped},
    {"parts_fill_the_gaps", parts_fill_the_gaps, &gaps},
    {"waits_for_a_common_slot", waits_for_a_common_slot, &short_sighted},
    {"sites_are_asked_three_times", sites_are_asked_three_times, &three},
    {"group_comes_forward_over_its_place", group_comes_forward_over_its_place, &three},
    {"coordinator_dies_preparing_over_its_place", coordinator_dies_preparing_over_its_place,
     &three},
    {"coordinator_dies_committing_over_its_place", coordinator_dies_committing_over_its_place,
     &three},
    {"coordinator_dies_changing_over_its_place", coordinator_dies_changing_over_its_place, &three},
    {"site_dies_preparing_over_its_place", site_dies_preparing_over_its_place, &three},
    {"site_dies_committing_over_its_place", site_dies_committing_over_its_place, &three},
    {"starts_before_the_old_place_is_given_up", starts_before_the_old_place_is_given_up, &three},
    {"user_stays_within_the_grids_limit", user_stays_within_the_grids_limit, &limited},
    {"group_shares_the_grids_limit", group_shares_the_grids_limit, &limited_group},
    {NULL, NULL, NULL},
};
