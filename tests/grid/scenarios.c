/* scenarios: each row of the protocol's failure table, provoked at its moment and looked at by what
 * must be seen. The invariants are looked at all along, as in every world. */
#include "grid.h"

#define COMPLETED NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED

static const struct grid_shape three = {
    .sites = 3, .metas = 1, .nodes = {2, 2, 2}, .balance = 100000 * 1000000LL};
static const struct grid_ask pair = {
    .parts = 2, .tasks = {2, 2}, .sites = {"alpha", "beta"}, .walltime = 30 * SEC};

/* ---- striking at a moment */

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

/* When that server answers that method for the (after + 1)th time. */
static void strike_at (const char *server, const char *method, uint32_t after,
                       void (*strike) (struct machine *server))
{
    memset (&hit, 0, sizeof hit);
    hit.server = server;
    hit.method = method;
    hit.after = after;
    hit.strike = strike;
    grid_strike = on_reply;
}

static void server_dies (struct machine *server)
{
    server->dying = true; /* before its answer leaves */
}

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

static bool over (void *arg)
{
    return grid_job_over (*(uint32_t *)arg);
}

static void expect_over (uint32_t job, duration_us limit)
{
    CHECK (grid_until (over, &job, limit), "job %u has not ended: %s", job, grid_reason (job));
}

static void expect (uint32_t job, Nui__Meta__V1__GridJobState state)
{
    expect_over (job, 900 * SEC);
    CHECK (grid_state (job) == state, "job %u ended %d, not %d: %s", job, (int)grid_state (job),
           (int)state, grid_reason (job));
}

static bool hit_struck (void *arg)
{
    (void)arg;
    return hit.struck;
}

static bool nothing_held (void *arg)
{
    (void)arg;
    return grid_parts ("alpha") == 0 && grid_parts ("beta") == 0 && bank_holds_open () == 0;
}

/* ---- the rows */

static void coordinator_dies_before_decide (void)
{
    strike_at ("beta", "Prepare", 0, server_dies); /* so that not all have said yes */
    uint32_t job = grid_submit ("meta1", &pair);
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
    uint32_t job = grid_submit ("meta1", &pair);
    expect (job, COMPLETED);
    CHECK (machine_find ("meta1")->crashes, "the metascheduler did not die");
}

static void coordinator_dies_after_decide (void)
{
    strike_at ("alpha", "Commit", 0, meta_dies_later); /* when it writes that alpha is firm */
    uint32_t job = grid_submit ("meta1", &pair);
    expect (job, COMPLETED);
    CHECK (machine_find ("meta1")->crashes, "the metascheduler did not die");
}

static void coordinator_is_away_past_the_leases (void)
{
    strike_at ("alpha", "Prepare", 0, meta_dies);
    uint32_t job = grid_submit ("meta1", &pair);
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
    uint32_t job = grid_submit ("meta1", &pair), other = grid_submit ("meta1", &pair);
    expect_over (job, 3600 * SEC);
    expect_over (other, 3600 * SEC);
    CHECK (grid_launches (job) <= 2 && grid_launches (other) <= 2,
           "a component was launched twice");
}

static void messages_get_lost (void)
{
    sim.loss_percent = 25;
    uint32_t job = grid_submit ("meta1", &pair);
    expect_over (job, 3600 * SEC);
    CHECK (sim.lost, "nothing was lost");
}

static void site_dies_before_its_yes (void)
{
    struct machine *beta = machine_find ("beta");
    uint32_t job = grid_submit ("meta1", &pair);
    sim_run (sim.now + 20 * MS);
    beta->crash_after = 1;
    expect (job, COMPLETED);
    CHECK (beta->crashes, "the site did not die");
}

static void site_dies_after_its_yes (void)
{
    strike_at ("beta", "Prepare", 0, server_dies);
    uint32_t job = grid_submit ("meta1", &pair);
    expect (job, COMPLETED);
    CHECK (machine_find ("beta")->crashes, "the site did not die");
}

static void site_dies_when_firm (void)
{
    strike_at ("beta", "Commit", 0, server_dies);
    uint32_t job = grid_submit ("meta1", &pair);
    expect (job, COMPLETED);
    CHECK (machine_find ("beta")->crashes, "the site did not die");
}

static void cut_during_commit (void)
{
    strike_at ("beta", "Prepare", 0, server_cut_off); /* its yes arrives, nothing after it */
    uint32_t job = grid_submit ("meta1", &pair);
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
    uint32_t job = grid_submit ("meta1", &pair);
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

static void bank_is_down (void)
{
    struct machine *bank = machine_find ("bank");
    uint32_t job = grid_submit ("meta1", &pair);
    sim_run (sim.now + 60 * MS); /* priced, not yet held */
    machine_kill (bank, -1);
    bank->held_down = true;
    sim_run (sim.now + 60 * SEC);
    CHECK (grid_launches (job) == 0, "a component started that nobody pays");
    CHECK (grid_parts ("alpha") == 0 && grid_parts ("beta") == 0,
           "a part is held without the bank");
    grid_heal ();
    expect (job, COMPLETED);
}

static bool both_firm (void *arg)
{
    (void)arg;
    return grid_replies ("alpha", "Commit") > 0 && grid_replies ("beta", "Commit") > 0;
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
    uint32_t job = grid_submit ("meta1", &pair);
    CHECK (grid_until (both_firm, NULL, 60 * SEC) && grid_node_down ("beta"), "nothing is firm");
    expect (job, COMPLETED);
    CHECK (grid_replies ("beta", "Prepare") == 1, "it was prepared again");
}

/* None is free: the component is prepared at another site. */
static void node_dies_after_commit_and_none_is_free (void)
{
    struct grid_ask ask = pair;
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

static struct {
    const char *server, *method;
    void (*strike) (struct machine *server);
} then;

static void node_goes_first (struct machine *server)
{
    CHECK (grid_node_down (server->name), "nothing is firm");
    strike_at (then.server, then.method, 0, then.strike);
}

/* In the middle of that. */
static void repair_with (const char *server, const char *method, void (*strike) (struct machine *server))
{
    struct grid_ask ask = pair;
    ask.tasks[1] = 4;
    ask.sites[1] = "beta,gamma";
    then.server = server;
    then.method = method;
    then.strike = strike;
    strike_at ("beta", "Commit", 0, node_goes_first);
    uint32_t job = grid_submit ("meta1", &ask);
    expect (job, COMPLETED);
    CHECK (hit.struck, "%s never answered %s", server, method);
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
    struct grid_ask ask = pair;
    ask.tasks[1] = 4;
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_firm, NULL, 60 * SEC) && grid_node_down ("beta"), "nothing is firm");
    expect (job, NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED);
    CHECK (grid_launches (job) == 0, "a component started alone");
}

static void node_dies_when_running (void)
{
    uint32_t job = grid_submit ("meta1", &pair);
    for (int i = 0; i < 1000 && grid_launches (job) < 2; i++)
        sim_run (sim.now + 100 * MS);
    CHECK (runner_lose_node (machine_find ("beta")), "nothing ran at beta");
    expect (job, NUI__META__V1__GRID_JOB_STATE__GRID_FAILED);
}

/* ---- sliding */

static bool launched (void *arg)
{
    return grid_launches (*(uint32_t *)arg) > 0;
}

/* alpha is full for ten minutes by its limit, and frees up once the group has its place after that: it has
 * to be through long before. */
static void slide (void (*strike) (struct machine *server), const char *server, const char *method,
                   uint32_t after)
{
    struct grid_ask full = {.parts = 1, .tasks = {4}, .sites = {"alpha"}, .walltime = 600 * SEC};
    struct grid_ask ask = pair;
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

/* ---- sites that are lost */

static const struct grid_ask long_one = {
    .parts = 1, .tasks = {2}, .sites = {"beta,gamma"}, .walltime = 400 * SEC, .resubmit = true};

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

/* It runs there; the site ends it before the other one gets it: invariant (i). */
static void site_of_a_running_job_is_lost (void)
{
    uint32_t job = grid_submit ("meta1", &long_one);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    const char *was = cut_off_its_site (job);
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 2 && grid_replies (strcmp (was, "beta") ? "beta" : "gamma", "Submit") == 1,
           "it was not given to the other site");
}

/* By the owner's choice it stays. */
static void site_is_lost_and_the_job_stays (void)
{
    struct grid_ask ask = long_one;
    ask.resubmit = false;
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    cut_off_its_site (job);
    sim_run (sim.now + 200 * SEC);
    CHECK (!grid_job_over (job) && strstr (grid_reason (job), "SiteLost"), "its status says %s", grid_reason (job));
    grid_heal ();
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 1, "it was run again");
}

/* It waits in the queue of a site whose machine goes down; back again that one must not start it. */
static void site_of_a_queued_job_is_lost (void)
{
    struct grid_ask full = {.parts = 1, .tasks = {4}, .sites = {"beta"}, .walltime = 300 * SEC},
                    ask = long_one;
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
    struct grid_ask ask = pair;
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
                    ask = pair;
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
    struct grid_ask ask = {.parts = 1, .tasks = {2}, .sites = {"alpha"}, .walltime = 30 * SEC, .licences = 4};
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
    struct grid_ask one = pair;
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
    uint32_t job = grid_submit ("meta1", &pair);
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
    const struct grid_ask one = {.parts = 1, .tasks = {2}, .sites = {"beta,gamma"}, .walltime = 30 * SEC};
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

/* ---- a group of three coordinators, of which the first is lost for good */

static void meta1_is_lost (struct machine *server)
{
    (void)server;
    machine_find ("meta1")->dying = true;
    machine_find ("meta1")->held_down = true;
}

static void meta1_loses_its_group (struct machine *server)
{
    (void)server;
    for (uint32_t i = 0; i < sim.machine_count; i++)
        if (sim.machine[i].kind == PRINCIPAL_META)
            for (uint32_t j = 0; j < sim.machine_count; j++)
                sim.cut[i][j] = sim.machine[j].kind == PRINCIPAL_META && i != j &&
                                (strcmp (sim.machine[i].name, "meta1") == 0 ||
                                 strcmp (sim.machine[j].name, "meta1") == 0);
}

static bool both_run (void *arg)
{
    return grid_launches (*(uint32_t *)arg) == 2;
}

/* Whom the user asks after it: the one that was lost, and came back. */
static void all_show (uint32_t job, Nui__Meta__V1__GridJobState state)
{
    static const char *const meta[] = {"meta1", "meta2", "meta3"};
    for (int m = 0; m < 3; m++) {
        grid_ask_at (job, meta[m]);
        expect (job, state);
    }
}

/* It strikes; the others bring the job to its end and tell of it; who comes back shows that. */
static void the_others_finish (const char *server, const char *method, void (*strike) (struct machine *server),
                               const struct grid_ask *ask)
{
    sim_run (sim.now + 10 * SEC); /* past the first TAKEOVERTIME, in which nobody takes anything */
    strike_at (server, method, 0, strike);
    uint32_t job = grid_submit ("meta1", ask);
    CHECK (grid_until (hit_struck, NULL, 60 * SEC), "%s never answered %s", server, method);
    grid_ask_at (job, "meta2");
    expect (job, COMPLETED);
    CHECK (grid_until (nothing_held, NULL, 60 * SEC), "alpha keeps %u, beta %u, the bank %u", grid_parts ("alpha"),
           grid_parts ("beta"), bank_holds_open ());
    grid_heal ();
    all_show (job, COMPLETED);
    CHECK (grid_launches (job) == ask->parts, "%u launches", grid_launches (job));
}

/* The vote that makes a majority of a state is on disk; who leads is not told. */
static void group_loses_coordinator_in_its_first_vote (void)
{
    the_others_finish ("meta2", "Vote", meta1_is_lost, &pair);
}

static void group_loses_coordinator_before_decide (void)
{
    the_others_finish ("beta", "Prepare", meta1_is_lost, &pair);
}

static void vote_after_prepare (struct machine *server)
{
    (void)server;
    strike_at ("meta2", "Vote", 0, meta1_is_lost);
}

/* All have said YES; that it is decided is with one of the others, and nobody has been told. */
static void group_loses_coordinator_deciding (void)
{
    the_others_finish ("beta", "Prepare", vote_after_prepare, &pair);
}

static void group_loses_coordinator_between_commits (void)
{
    the_others_finish ("alpha", "Commit", meta1_is_lost, &pair);
}

static void group_loses_coordinator_between_starts (void)
{
    the_others_finish ("alpha", "Start", meta1_is_lost, &pair);
}

static const struct grid_ask one_at_beta = {.parts = 1, .tasks = {2}, .sites = {"beta"}, .walltime = 30 * SEC};

/* The site has it, and its answer does not arrive. */
static void group_loses_coordinator_submitting (void)
{
    the_others_finish ("beta", "Submit", meta1_is_lost, &one_at_beta);
}

/* It lives, reaches the sites, and must not act: nobody tells it whether it still leads. */
static void group_is_cut_off_from_coordinator (void)
{
    the_others_finish ("meta2", "Vote", meta1_loses_its_group, &pair);
}

static void group_is_cut_off_from_coordinator_submitting (void)
{
    the_others_finish ("beta", "Submit", meta1_loses_its_group, &one_at_beta);
}

static void group_job_ran (uint32_t job, uint32_t launches)
{
    expect (job, COMPLETED);
    grid_heal ();
    all_show (job, COMPLETED);
    CHECK (grid_launches (job) == launches, "%u launches", grid_launches (job));
}

/* Long after the start: what runs goes on running, and its end is heard of. */
static void group_loses_coordinator_of_a_running_job (void)
{
    struct grid_ask ask = pair;
    ask.walltime = 900 * SEC;
    sim_run (sim.now + 10 * SEC);
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (both_run, &job, 60 * SEC), "nothing was started");
    sim_run (sim.now + 25 * SEC);
    CHECK (!nothing_held (NULL), "it ended too soon");
    meta1_is_lost (NULL);
    group_job_ran (job, 2);
}

static void group_loses_coordinator_of_a_running_ordinary_job (void)
{
    struct grid_ask ask = one_at_beta;
    ask.walltime = 300 * SEC;
    sim_run (sim.now + 10 * SEC);
    uint32_t job = grid_submit ("meta1", &ask);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    meta1_is_lost (NULL);
    group_job_ran (job, 1);
}

/* It ends while nobody leads it: who takes over has been told of it, and could not act on it. */
static void group_loses_coordinator_before_the_end (void)
{
    sim_run (sim.now + 10 * SEC);
    uint32_t job = grid_submit ("meta1", &one_at_beta);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    while (!nothing_held (NULL))
        sim_run (sim.now + 20 * MS);
    meta1_is_lost (NULL);
    group_job_ran (job, 1);
}

static void group_queued (uint32_t *filler, uint32_t *job)
{
    struct grid_ask full = {.parts = 1, .tasks = {4}, .sites = {"beta"}, .walltime = 120 * SEC};
    sim_run (sim.now + 10 * SEC);
    *filler = grid_submit ("meta1", &full);
    CHECK (grid_until (launched, filler, 60 * SEC), "beta is not full");
    *job = grid_submit ("meta1", &one_at_beta);
    sim_run (sim.now + 5 * SEC);
    CHECK (grid_replies ("beta", "Submit") == 2 && grid_launches (*job) == 0, "it does not wait at beta");
}

static void group_loses_coordinator_of_a_queued_job (void)
{
    uint32_t filler, job;
    group_queued (&filler, &job);
    meta1_is_lost (NULL);
    expect (filler, COMPLETED);
    group_job_ran (job, 1);
}

/* Cancelled at who has taken it over, and at one that has not. */
static void group_cancels_what_was_taken_over (void)
{
    uint32_t filler, job;
    group_queued (&filler, &job);
    meta1_is_lost (NULL);
    sim_run (sim.now + 20 * SEC);
    grid_ask_at (job, "meta2");
    grid_cancel (job);
    expect (job, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
    grid_ask_at (filler, "meta3");
    grid_cancel (filler);
    expect (filler, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
    grid_heal ();
    all_show (job, NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED);
    CHECK (grid_launches (job) == 0, "it ran");
}

/* Some have promised another that died before it led: the leader needs a higher ballot, and is not stuck. */
static void group_promises_one_that_dies (void)
{
    uint32_t filler, job;
    group_queued (&filler, &job);
    struct machine *meta1 = machine_find ("meta1");
    machine_kill (meta1, -1);
    meta1->held_down = true;
    strike_at ("meta3", "Vote", 0, server_dies); /* its promise is on disk, and meta2 does not hear of it */
    CHECK (grid_until (hit_struck, NULL, 60 * SEC), "nobody asks to take it over");
    machine_kill (machine_find ("meta2"), -1);
    machine_find ("meta2")->held_down = true;
    meta1->held_down = false;
    machine_start (meta1);
    expect (filler, COMPLETED);
    group_job_ran (job, 1);
}

/* The first has it on disk, nobody else, and the user goes to another. */
static void group_is_asked_twice (void)
{
    sim_run (sim.now + 10 * SEC);
    strike_at ("beta", "Query", 0, meta1_loses_its_group);
    uint32_t job = grid_submit ("meta1", &one_at_beta);
    CHECK (grid_until (hit_struck, NULL, 60 * SEC), "nobody was asked");
    expect (job, COMPLETED);
    grid_heal ();
    all_show (job, COMPLETED);
    CHECK (grid_launches (job) == 1, "it ran %u times", grid_launches (job));
}

static void cut_between (const char *a, const char *b)
{
    uint32_t i = machine_index (machine_find (a)), j = machine_index (machine_find (b));
    sim.cut[i][j] = sim.cut[j][i] = true;
}

static void node_goes_unseen_by_meta2 (struct machine *server)
{
    cut_between ("meta1", "meta2");
    node_goes_first (server);
}

/* A component was prepared elsewhere, and one of those that may take over has only heard of where it was before. */
static void group_loses_coordinator_after_a_repair (void)
{
    struct grid_ask ask = pair;
    ask.tasks[1] = 4;
    ask.sites[1] = "beta,gamma";
    sim_run (sim.now + 10 * SEC);
    then.server = "gamma";
    then.method = "Commit";
    then.strike = meta1_is_lost;
    strike_at ("beta", "Commit", 0, node_goes_unseen_by_meta2);
    uint32_t job = grid_submit ("meta1", &ask);
    expect (job, COMPLETED);
    CHECK (hit.struck && grid_replies ("alpha", "Prepare") == 1 && grid_replies ("gamma", "Prepare") == 1,
           "the group was prepared anew");
    group_job_ran (job, 2);
}

/* Who took over dies as well; with the first one back there is a majority again. */
static void group_loses_two_after_another (void)
{
    sim_run (sim.now + 10 * SEC);
    strike_at ("beta", "Prepare", 0, vote_after_prepare);
    uint32_t job = grid_submit ("meta1", &pair);
    sim_run (sim.now + 5 * SEC);
    strike_at ("alpha", "Commit", 0, server_dies);
    CHECK (grid_until (hit_struck, NULL, 60 * SEC), "nobody took it over");
    machine_find ("meta2")->held_down = true;
    machine_kill (machine_find ("meta2"), -1);
    machine_find ("meta1")->held_down = false;
    machine_start (machine_find ("meta1"));
    group_job_ran (job, 2);
}

/* ---- sliding, and sites that are lost, in a group */

static void meta1_is_lost_in_a_slide (const char *server, const char *method)
{
    sim_run (sim.now + 10 * SEC);
    slide (meta1_is_lost, server, method, 0);
}

static void group_slides_in_a_group (void)
{
    sim_run (sim.now + 10 * SEC);
    slide (NULL, NULL, NULL, 0);
    CHECK (grid_replies ("alpha", "Release") > 0, "the old place was not given back");
}

static void group_loses_coordinator_preparing_a_slide (void)
{
    meta1_is_lost_in_a_slide ("beta", "Prepare");
}

static void group_loses_coordinator_committing_a_slide (void)
{
    meta1_is_lost_in_a_slide ("alpha", "Commit");
}

static void group_loses_coordinator_changing_places (void)
{
    meta1_is_lost_in_a_slide ("alpha", "Release");
}

static void cut_off_from_the_group (const char *site)
{
    cut_between ("meta1", site);
    cut_between ("meta2", site);
    cut_between ("meta3", site);
}

static const char *its_site (void)
{
    return grid_replies ("beta", "Submit") ? "beta" : "gamma";
}

/* No member hears of it: the site ends it, and another runs it. */
static void group_loses_a_site (void)
{
    sim_run (sim.now + 10 * SEC);
    uint32_t job = grid_submit ("meta1", &long_one);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    cut_off_from_the_group (its_site ());
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 2, "it was not given to the other site");
}

/* The leader alone does not hear of it: it stays. */
static void group_hears_of_a_site_that_its_leader_does_not (void)
{
    sim_run (sim.now + 10 * SEC);
    uint32_t job = grid_submit ("meta1", &long_one);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    cut_between ("meta1", its_site ());
    sim_run (sim.now + 300 * SEC);
    CHECK (grid_launches (job) == 1, "it was given to another");
    grid_heal ();
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 1, "it ran %u times", grid_launches (job));
}

/* The leader and the site together: the site reaches the others, so it goes on there; then nobody. */
static void group_loses_coordinator_and_site (void)
{
    sim_run (sim.now + 10 * SEC);
    uint32_t job = grid_submit ("meta1", &long_one);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    meta1_is_lost (NULL);
    sim_run (sim.now + 100 * SEC);
    CHECK (grid_launches (job) == 1, "it was given to another while two hear of its site");
    cut_off_from_the_group (its_site ());
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 2, "it was not given to the other site");
}

/* ---- running them */

static const struct grid_shape group = {.sites = 3,
                                        .metas = 3,
                                        .nodes = {2, 2, 2},
                                        .balance = 100000 * 1000000LL,
                                        .group = true};

static const struct grid_shape rivals = {.sites = 3,
                                         .metas = 3,
                                         .nodes = {2, 2, 2},
                                         .balance = 100000 * 1000000LL,
                                         .meta_lines = "ATTEMPTSMAX 60"};
static const struct grid_shape losing = {.sites = 3,
                                         .metas = 1,
                                         .nodes = {2, 2, 2},
                                         .balance = 100000 * 1000000LL,
                                         .meta_lines = "SITELOSTTIME 60"};
static const struct grid_shape losing_group = {.sites = 3,
                                               .metas = 3,
                                               .nodes = {2, 2, 2},
                                               .balance = 100000 * 1000000LL,
                                               .meta_lines = "SITELOSTTIME 60",
                                               .group = true};
static const struct grid_shape licensed = {.sites = 2,
                                           .metas = 1,
                                           .nodes = {2, 2},
                                           .balance = 100000 * 1000000LL,
                                           .meta_lines = "GRIDLICENSE[cad] COUNT=7\nATTEMPTSMAX 100"};
static const struct grid_shape capped = {.sites = 3,
                                         .metas = 1,
                                         .nodes = {2, 2, 2},
                                         .balance = 100000 * 1000000LL,
                                         .site_lines = "PEERCAP[DEFAULT] HOLDS=2"};

static const struct {
    const char *name;
    void (*run) (void);
    const struct grid_shape *shape;
} rows[] = {
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
    {"licence_is_kept_while_its_site_is_silent", licence_is_kept_while_its_site_is_silent, &licensed},
    {"greedy_peer_is_capped", greedy_peer_is_capped, &capped},
    {"group_loses_coordinator_in_its_first_vote", group_loses_coordinator_in_its_first_vote, &group},
    {"group_loses_coordinator_before_decide", group_loses_coordinator_before_decide, &group},
    {"group_loses_coordinator_deciding", group_loses_coordinator_deciding, &group},
    {"group_loses_coordinator_between_commits", group_loses_coordinator_between_commits, &group},
    {"group_loses_coordinator_between_starts", group_loses_coordinator_between_starts, &group},
    {"group_loses_coordinator_submitting", group_loses_coordinator_submitting, &group},
    {"group_is_cut_off_from_coordinator", group_is_cut_off_from_coordinator, &group},
    {"group_is_cut_off_from_coordinator_submitting", group_is_cut_off_from_coordinator_submitting, &group},
    {"group_loses_coordinator_of_a_running_job", group_loses_coordinator_of_a_running_job, &group},
    {"group_loses_coordinator_of_a_running_ordinary_job", group_loses_coordinator_of_a_running_ordinary_job, &group},
    {"group_loses_coordinator_before_the_end", group_loses_coordinator_before_the_end, &group},
    {"group_loses_coordinator_of_a_queued_job", group_loses_coordinator_of_a_queued_job, &group},
    {"group_cancels_what_was_taken_over", group_cancels_what_was_taken_over, &group},
    {"group_promises_one_that_dies", group_promises_one_that_dies, &group},
    {"group_is_asked_twice", group_is_asked_twice, &group},
    {"group_loses_coordinator_after_a_repair", group_loses_coordinator_after_a_repair, &group},
    {"group_loses_two_after_another", group_loses_two_after_another, &group},
    {"group_slides_in_a_group", group_slides_in_a_group, &group},
    {"group_loses_coordinator_preparing_a_slide", group_loses_coordinator_preparing_a_slide, &group},
    {"group_loses_coordinator_committing_a_slide", group_loses_coordinator_committing_a_slide, &group},
    {"group_loses_coordinator_changing_places", group_loses_coordinator_changing_places, &group},
    {"group_loses_a_site", group_loses_a_site, &losing_group},
    {"group_hears_of_a_site_that_its_leader_does_not", group_hears_of_a_site_that_its_leader_does_not, &losing_group},
    {"group_loses_coordinator_and_site", group_loses_coordinator_and_site, &losing_group},
};

int scenarios_run (const char *only)
{
    uint32_t ran = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (only && strcmp (only, rows[i].name) != 0)
            continue;
        sim.trace = only != NULL;
        printf ("%s\n", rows[i].name);
        fflush (stdout);
        grid_begin (i + 1, rows[i].shape);
        sim_run (sim.now + 2 * SEC);
        rows[i].run ();
        grid_heal ();
        sim.twice_percent = 0;
        grid_finish ();
        ran++;
    }
    if (!ran)
        fprintf (stderr, "there is no scenario %s\n", only);
    return ran ? 0 : 2;
}
