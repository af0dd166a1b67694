/* scenarios_group: what becomes of jobs when members of a group of three coordinators are lost or cut off. */
#include "scenarios.h"

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

static void cut_between (const char *a, const char *b)
{
    uint32_t i = machine_index (machine_find (a)), j = machine_index (machine_find (b));
    sim.cut[i][j] = sim.cut[j][i] = true;
}

static bool both_run (void *arg)
{
    return grid_launches (*(uint32_t *)arg) == 2;
}

/* Whom the user asks after it: the one that was lost, and came back. */
static void all_show (uint32_t job, Nui__Meta__V1__GridJobState state)
{
    for (uint32_t i = 0; i < sim.machine_count; i++)
        if (sim.machine[i].kind == PRINCIPAL_META) {
            grid_ask_at (job, sim.machine[i].name);
            expect (job, state);
        }
}

/* It strikes; the others bring the job to its end and tell of it; who comes back shows that. */
static void the_others_finish (const char *server, const char *method,
                               void (*strike) (struct machine *server), const struct grid_ask *ask)
{
    sim_run (sim.now + 10 * SEC); /* past the first TAKEOVERTIME, in which nobody takes anything */
    strike_at (server, method, 0, strike);
    uint32_t job = grid_submit ("meta1", ask);
    CHECK (grid_until (hit_struck, NULL, 60 * SEC), "%s never answered %s", server, method);
    grid_ask_at (job, "meta2");
    expect (job, COMPLETED);
    CHECK (grid_until (nothing_held, NULL, 60 * SEC), "alpha keeps %u, beta %u, the bank %u",
           grid_parts ("alpha"), grid_parts ("beta"), bank_holds_open ());
    grid_heal ();
    all_show (job, COMPLETED);
    CHECK (grid_launches (job) == ask->parts, "%u launches", grid_launches (job));
}

/* The vote that makes a majority of a state is on disk; who leads is not told. */
static void group_loses_coordinator_in_its_first_vote (void)
{
    the_others_finish ("meta2", "Vote", meta1_is_lost, &scenario_pair);
}

static void group_loses_coordinator_before_decide (void)
{
    the_others_finish ("beta", "Prepare", meta1_is_lost, &scenario_pair);
}

static void vote_after_prepare (struct machine *server)
{
    (void)server;
    strike_at ("meta2", "Vote", 0, meta1_is_lost);
}

/* All have said YES; that it is decided is with one of the others, and nobody has been told. */
static void group_loses_coordinator_deciding (void)
{
    the_others_finish ("beta", "Prepare", vote_after_prepare, &scenario_pair);
}

static void group_loses_coordinator_between_commits (void)
{
    the_others_finish ("alpha", "Commit", meta1_is_lost, &scenario_pair);
}

static void group_loses_coordinator_between_starts (void)
{
    the_others_finish ("alpha", "Start", meta1_is_lost, &scenario_pair);
}

static const struct grid_ask one_at_beta = {
    .parts = 1, .tasks = {2}, .sites = {"beta"}, .walltime = 30 * SEC};

/* The site has it, and its answer does not arrive. */
static void group_loses_coordinator_submitting (void)
{
    the_others_finish ("beta", "Submit", meta1_is_lost, &one_at_beta);
}

/* It lives, reaches the sites, and must not act: nobody tells it whether it still leads. */
static void group_is_cut_off_from_coordinator (void)
{
    the_others_finish ("meta2", "Vote", meta1_loses_its_group, &scenario_pair);
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
    struct grid_ask ask = scenario_pair;
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

static void site_alone_with_meta1 (const char *site)
{
    cut_between ("meta2", site);
    cut_between ("meta3", site);
}

/* What meta1 says of a job that has ended on its disk alone, before and after it dies. */
static void not_told (uint32_t job, const char *reason)
{
    for (int again = 0; again < 2; again++) {
        grid_ask_at (job, "meta1");
        sim_run (sim.now + 15 * SEC);
        CHECK (grid_state (job) == NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING &&
                   strncmp (grid_reason (job), reason, strlen (reason)) == 0,
               "meta1 tells that it is %d (%s)", (int)grid_state (job), grid_reason (job));
        machine_kill (machine_find ("meta1"), SEC);
        sim_run (sim.now + 15 * SEC);
    }
}

/* Its site reaches the leader alone, and the leader nobody of its group: the others may go on with it otherwise. */
static void group_does_not_know_of_an_end (void)
{
    sim.shortest = 15 * SEC; /* it ends after the cut */
    sim_run (sim.now + 10 * SEC);
    uint32_t job = grid_submit ("meta1", &one_at_beta);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    sim_run (sim.now + 5 * SEC);
    meta1_loses_its_group (NULL);
    site_alone_with_meta1 ("beta");
    CHECK (grid_until (nothing_held, NULL, 60 * SEC), "it does not end");
    sim_run (sim.now + 10 * SEC);
    not_told (job, "Alone");
    grid_heal ();
    all_show (job, COMPLETED);
    CHECK (grid_launches (job) == 1, "it ran %u times", grid_launches (job));
}

/* The others are away: who led it has to have it voted for once they are back. */
static void group_hears_of_an_end_later (void)
{
    sim.shortest = 15 * SEC; /* it ends after the cut */
    sim_run (sim.now + 10 * SEC);
    uint32_t job = grid_submit ("meta1", &one_at_beta);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    sim_run (sim.now + 5 * SEC);
    static const char *const others[] = {"meta2", "meta3"};
    for (int m = 0; m < 2; m++) {
        machine_find (others[m])->held_down = true;
        machine_kill (machine_find (others[m]), -1);
    }
    sim_run (sim.now + 60 * SEC);
    not_told (job, "Alone");
    grid_heal ();
    all_show (job, COMPLETED);
    CHECK (grid_launches (job) == 1, "it ran %u times", grid_launches (job));
}

/* From before it was submitted until it was over, and who led it is lost then. */
static void group_tells_who_was_away (void)
{
    sim_run (sim.now + 10 * SEC);
    machine_find ("meta3")->held_down = true;
    machine_kill (machine_find ("meta3"), -1);
    uint32_t job = grid_submit ("meta1", &one_at_beta);
    expect (job, COMPLETED);
    meta1_is_lost (NULL);
    sim_run (sim.now + 20 * SEC);
    machine_find ("meta3")->held_down = false;
    machine_start (machine_find ("meta3"));
    grid_ask_at (job, "meta3");
    expect (job, COMPLETED);
    group_job_ran (job, 1);
}

/* Two of five have it. */
static void group_of_five_does_not_know_of_an_end (void)
{
    static const char *const two[] = {"meta1", "meta2"}, *const three[] = {"meta3", "meta4",
                                                                           "meta5"};
    sim.shortest = 15 * SEC; /* it ends after the cut */
    sim_run (sim.now + 10 * SEC);
    uint32_t job = grid_submit ("meta1", &one_at_beta);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    sim_run (sim.now + 5 * SEC);
    for (int m = 0; m < 3; m++) {
        cut_between (three[m], "beta");
        for (int n = 0; n < 2; n++)
            cut_between (two[n], three[m]);
    }
    CHECK (grid_until (nothing_held, NULL, 60 * SEC), "it does not end");
    sim_run (sim.now + 10 * SEC);
    for (int n = 0; n < 2; n++) {
        grid_ask_at (job, two[n]);
        sim_run (sim.now + 5 * SEC);
        CHECK (grid_state (job) == NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING,
               "%s tells that it is %d", two[n], (int)grid_state (job));
    }
    grid_heal ();
    all_show (job, COMPLETED);
    CHECK (grid_launches (job) == 1, "it ran %u times", grid_launches (job));
}

static void group_queued (uint32_t *filler, uint32_t *job)
{
    struct grid_ask full = {.parts = 1, .tasks = {4}, .sites = {"beta"}, .walltime = 120 * SEC};
    sim_run (sim.now + 10 * SEC);
    *filler = grid_submit ("meta1", &full);
    CHECK (grid_until (launched, filler, 60 * SEC), "beta is not full");
    *job = grid_submit ("meta1", &one_at_beta);
    sim_run (sim.now + 5 * SEC);
    CHECK (grid_replies ("beta", "Submit") == 2 && grid_launches (*job) == 0,
           "it does not wait at beta");
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
    strike_at ("meta3", "Vote", 0,
               server_dies); /* its promise is on disk, and meta2 does not hear of it */
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

static void node_goes_unseen_by_meta2 (struct machine *server)
{
    cut_between ("meta1", "meta2");
    node_goes_first (server);
}

/* A component was prepared elsewhere, and one of those that may take over has only heard of where it was before. */
static void group_loses_coordinator_after_a_repair (void)
{
    struct grid_ask ask = scenario_pair;
    ask.tasks[1] = 4;
    ask.sites[1] = "beta,gamma";
    sim_run (sim.now + 10 * SEC);
    then_strike_at ("gamma", "Commit", meta1_is_lost);
    strike_at ("beta", "Commit", 0, node_goes_unseen_by_meta2);
    uint32_t job = grid_submit ("meta1", &ask);
    expect (job, COMPLETED);
    CHECK (hit_struck (NULL) && grid_replies ("alpha", "Prepare") == 1 &&
               grid_replies ("gamma", "Prepare") == 1,
           "the group was prepared anew");
    group_job_ran (job, 2);
}

/* Who took over dies as well; with the first one back there is a majority again. */
static void group_loses_two_after_another (void)
{
    sim_run (sim.now + 10 * SEC);
    strike_at ("beta", "Prepare", 0, vote_after_prepare);
    uint32_t job = grid_submit ("meta1", &scenario_pair);
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

/* The same with the old place in the way at both sites: whoever takes the job over finds one of the two, whole. */
static void meta1_is_lost_coming_forward (const char *server, const char *method)
{
    sim_run (sim.now + 10 * SEC);
    come_forward (meta1_is_lost, server, method, 80 * SEC);
}

static void group_loses_coordinator_preparing_over_its_place (void)
{
    meta1_is_lost_coming_forward ("beta", "Prepare");
}

static void group_loses_coordinator_committing_over_its_place (void)
{
    meta1_is_lost_coming_forward ("alpha", "Commit");
}

static void group_loses_coordinator_changing_over_its_place (void)
{
    meta1_is_lost_coming_forward ("alpha", "Release");
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
    sim.shortest = 200 * SEC;
    uint32_t job = grid_submit ("meta1", &scenario_long);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    cut_off_from_the_group (its_site ());
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 2, "it was not given to the other site");
}

/* The leader alone does not hear of it: it stays. */
static void group_hears_of_a_site_that_its_leader_does_not (void)
{
    sim_run (sim.now + 10 * SEC);
    sim.shortest = 200 * SEC;
    uint32_t job = grid_submit ("meta1", &scenario_long);
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
    sim.shortest = 250 * SEC;
    uint32_t job = grid_submit ("meta1", &scenario_long);
    CHECK (grid_until (launched, &job, 60 * SEC), "it does not run");
    meta1_is_lost (NULL);
    sim_run (sim.now + 100 * SEC);
    CHECK (grid_launches (job) == 1, "it was given to another while two hear of its site");
    cut_off_from_the_group (its_site ());
    expect (job, COMPLETED);
    CHECK (grid_launches (job) == 2, "it was not given to the other site");
}

/* ---- the rows */

static const struct grid_shape group = {
    .sites = 3, .metas = 3, .nodes = {2, 2, 2}, .balance = 100000 * 1000000LL, .group = true};

static const struct grid_shape losing_group = {.sites = 3,
                                               .metas = 3,
                                               .nodes = {2, 2, 2},
                                               .balance = 100000 * 1000000LL,
                                               .meta_lines = "SITELOSTTIME 60",
                                               .group = true};

static const struct grid_shape group_of_five = {
    .sites = 3, .metas = 5, .nodes = {2, 2, 2}, .balance = 100000 * 1000000LL, .group = true};

const struct scenario scenarios_group[] = {
    {"group_loses_coordinator_in_its_first_vote", group_loses_coordinator_in_its_first_vote,
     &group},
    {"group_loses_coordinator_before_decide", group_loses_coordinator_before_decide, &group},
    {"group_loses_coordinator_deciding", group_loses_coordinator_deciding, &group},
    {"group_loses_coordinator_between_commits", group_loses_coordinator_between_commits, &group},
    {"group_loses_coordinator_between_starts", group_loses_coordinator_between_starts, &group},
    {"group_loses_coordinator_submitting", group_loses_coordinator_submitting, &group},
    {"group_is_cut_off_from_coordinator", group_is_cut_off_from_coordinator, &group},
    {"group_is_cut_off_from_coordinator_submitting", group_is_cut_off_from_coordinator_submitting,
     &group},
    {"group_loses_coordinator_of_a_running_job", group_loses_coordinator_of_a_running_job, &group},
    {"group_loses_coordinator_of_a_running_ordinary_job",
     group_loses_coordinator_of_a_running_ordinary_job, &group},
    {"group_loses_coordinator_before_the_end", group_loses_coordinator_before_the_end, &group},
    {"group_loses_coordinator_of_a_queued_job", group_loses_coordinator_of_a_queued_job, &group},
    {"group_cancels_what_was_taken_over", group_cancels_what_was_taken_over, &group},
    {"group_promises_one_that_dies", group_promises_one_that_dies, &group},
    {"group_is_asked_twice", group_is_asked_twice, &group},
    {"group_loses_coordinator_after_a_repair", group_loses_coordinator_after_a_repair, &group},
    {"group_loses_two_after_another", group_loses_two_after_another, &group},
    {"group_slides_in_a_group", group_slides_in_a_group, &group},
    {"group_loses_coordinator_preparing_a_slide", group_loses_coordinator_preparing_a_slide,
     &group},
    {"group_loses_coordinator_committing_a_slide", group_loses_coordinator_committing_a_slide,
     &group},
    {"group_loses_coordinator_changing_places", group_loses_coordinator_changing_places, &group},
    {"group_loses_a_site", group_loses_a_site, &losing_group},
    {"group_hears_of_a_site_that_its_leader_does_not",
     group_hears_of_a_site_that_its_leader_does_not, &losing_group},
    {"group_loses_coordinator_and_site", group_loses_coordinator_and_site, &losing_group},
    {"group_does_not_know_of_an_end", group_does_not_know_of_an_end, &group},
    {"group_hears_of_an_end_later", group_hears_of_an_end_later, &group},
    {"group_of_five_does_not_know_of_an_end", group_of_five_does_not_know_of_an_end,
     &group_of_five},
    {"group_tells_who_was_away", group_tells_who_was_away, &group},
    {"group_loses_coordinator_preparing_over_its_place",
     group_loses_coordinator_preparing_over_its_place, &group},
    {"group_loses_coordinator_committing_over_its_place",
     group_loses_coordinator_committing_over_its_place, &group},
    {"group_loses_coordinator_changing_over_its_place",
     group_loses_coordinator_changing_over_its_place, &group},
    {NULL, NULL, NULL},
};
