/* A pass that takes long is made in slices, and the site lives on between them. */
#include "site.h"

#define STATE(name) NUI__LOCAL__V1__JOB_STATE__JOB_##name

enum { NODES = 600, WAITING = 30, WAITING_MOST = 1500 };

struct crowd {
    char machine[64]; /* runs on all nodes */
    char waiting[WAITING_MOST][64];
    unsigned count;     /* of them … */
    unsigned cancelled; /* … and of these, the first ones */
};

static void another (struct site *s, struct crowd *c)
{
    char id[64];
    struct job_make make = {.script = "#!/bin/sh\nexec sleep 1000\n",
                            .tasks = 400 + c->count * 37 % 700,
                            .walltime = (600 + 60 * (duration_us)(c->count * 53 % 97)) * US_PER_S};
    assert_true (c->count < WAITING_MOST);
    snprintf (id, sizeof id, "grid.%u", c->count + 2);
    site_submit (s, id, &make, c->waiting[c->count++]);
}

static void cancel (struct site *s, const char *id)
{
    Nui__Local__V1__JobRequest request = NUI__LOCAL__V1__JOB_REQUEST__INIT;
    struct err err = {0};
    request.job_id = (char *)id;
    if (site_call (s->as_operator, "Cancel", &request, NULL, &err) != 0)
        fail_msg ("%s", err.text);
}

static void crowd_make (struct site *s, struct crowd *c)
{
    static char config[256]; /* as long as the site may be started again */
    struct job_make machine = {
        .script = "#!/bin/sh\nexec sleep 1000\n", .tasks = 2 * NODES, .walltime = 1000 * US_PER_S};
    snprintf (config, sizeof config,
              "RESERVATIONDEPTH[0] 10000\nPEERCAP[DEFAULT] HOLDS=10000\nRMPOLLINTERVAL 1\n"
              "NODECFG[n[0001-%04u]] PROCS=2 MEM=4G\n",
              NODES);
    site_start (s, config);
    site_submit (s, "grid.1", &machine, c->machine);
    site_wait_state (s, c->machine, STATE (RUNNING));
    while (c->count < WAITING)
        another (s, c);
}

/* What the log says of all passes so far: how long the longest was, how often one began anew, and whether one
 * was far longer than its longest slice. */
struct passes {
    long long longest_us;
    unsigned given_up;
    bool sliced;
};

static struct passes passes_of (struct site *s)
{
    char path[128], line[1024];
    struct passes all = {0};
    snprintf (path, sizeof path, "%s/log", s->dir);
    FILE *f = fopen (path, "r");
    assert_non_null (f);
    while (fgets (line, sizeof line, f)) {
        const char *at = strstr (line, " pass done ");
        const char *us = at ? strstr (at, " us=") : NULL,
                   *slice = at ? strstr (at, " longest_us=") : NULL;
        const char *given_up = at ? strstr (at, " given_up=") : NULL;
        if (!us || !slice || !given_up)
            continue;
        long long length = atoll (us + 4);
        all.longest_us = length > all.longest_us ? length : all.longest_us;
        all.sliced = all.sliced || length > 2 * atoll (slice + 12);
        all.given_up += (unsigned)atoi (given_up + 10);
    }
    fclose (f);
    return all;
}

static bool all_there (struct site *s, void *arg)
{
    const struct crowd *c = arg;
    return s->report && s->report->jobs_running + s->report->jobs_queued == c->count - c->cancelled;
}

static bool some_run (struct site *s, void *arg)
{
    (void)arg;
    return s->report && s->report->jobs_running > 0;
}

/* Jobs come and go all the time, so that some do so while a pass is made. Nobody is lost by that, nor by a
 * kill -9 in the middle of it; and when the machine comes free the queue goes on. */
static void a_long_pass (void **state)
{
    struct site *s = *state;
    static struct crowd c;
    struct passes seen = {0};
    duration_us limit = clock_monotonic_us () + 120 * US_PER_S;
    crowd_make (s, &c);
    while (!seen.sliced || seen.given_up == 0) {
        another (s, &c);
        another (s, &c);
        cancel (s, c.waiting[c.cancelled++]);
        seen = passes_of (s);
        if (clock_monotonic_us () > limit)
            fail_msg ("longest pass %lld us, %u begun anew", seen.longest_us, seen.given_up);
    }
    another (s, &c);
    site_kill (s);
    site_restart (s);
    another (s, &c);
    cancel (s, c.machine);
    site_wait_state (s, c.machine, STATE (CANCELLED));
    site_wait (s, some_run, NULL, "somebody to run");
    site_wait (s, all_there, &c, "every job, waiting or running");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (a_long_pass, site_setup, site_teardown)};
    return cmocka_run_group_tests (tests, site_group_setup, site_group_teardown);
}
