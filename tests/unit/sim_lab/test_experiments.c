/* What the papers claim, as the pages of the laboratory state it: each finding is asserted here
 * with the verdict and the range it has today, so that a change of the scheduler that turns a claim
 * shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "local/sim/lab/lab.h"

struct wanted {
    const char *name;
    double low, high; /* of the value */
    enum finding_verdict verdict;
};

static void check (const struct lab *lab, const struct wanted *wanted, size_t count)
{
    const struct finding *f;
    bool good = true;
    for (uint32_t i = 0; (f = report_finding_at (lab->report, i)); i++) {
        print_message ("  %-28s %10.4f %s\n", f->name, f->value, f->ours);
        /* Where ours is not the paper's, the page says why. */
        if (f->verdict == FINDING_DIFFERS)
            assert_non_null (f->why);
    }
    for (size_t i = 0; i < count; i++) {
        f = report_finding_get (lab->report, wanted[i].name);
        assert_non_null (f);
        if (f->value < wanted[i].low || f->value > wanted[i].high ||
            f->verdict != wanted[i].verdict) {
            print_error ("%s: %g, verdict %d; wanted %g to %g, verdict %d\n", f->name, f->value,
                         f->verdict, wanted[i].low, wanted[i].high, wanted[i].verdict);
            good = false;
        }
    }
    assert_true (good);
}

static struct lab *performed (const struct lab_options *o)
{
    struct lab *lab;
    struct err err = {0};
    if (lab_perform (o, &lab, &err))
        fail_msg ("%s: %s", o->experiment ? o->experiment : "compare", err.text);
    return lab;
}

#define CHECK(lab, wanted) check ((lab), (wanted), sizeof (wanted) / sizeof (wanted)[0])

/* Two sets of seeds: what holds must not hang on one of them. */
static void mix (void **state)
{
    static const struct wanted wanted[] = {
        {"maui-beats-fifo", -10, -4, FINDING_HOLDS},
        {"order-beats-fifo", -20, -10, FINDING_HOLDS},
        {"fifo-order", -11, -5, FINDING_DIFFERS},
        {"backfill-not-always", .05, .45, FINDING_HOLDS},
        {"strict-order", -14, -7, FINDING_DIFFERS},
        {"exact-limits", .05, .5, FINDING_DIFFERS},
        {"waits-follow-size", 2, 5, FINDING_HOLDS},
        {"fifo-small-at-once", .25, .7, FINDING_DIFFERS},
        {"maui-keeps-small", 16, 50, FINDING_HOLDS},
        {"use-first-half", .02, .2, FINDING_HOLDS},
    };
    (void)state;
    for (uint64_t seed = 0; seed <= 1000; seed += 1000) {
        struct lab *lab =
            performed (&(struct lab_options){.experiment = "mix", .seed = seed, .seeds = 40});
        CHECK (lab, wanted);
        lab_destroy (lab);
    }
}

static void agents (void **state)
{
    static const struct wanted wanted[] = {
        {"maui-does-it-sooner", -2, -.2, FINDING_HOLDS},
        {"backfill-does-it-sooner", -4, -1, FINDING_HOLDS},
        {"developers-wait", 0, .2, FINDING_HOLDS},
        {"filler-share", .05, .4, FINDING_NUMBER},
        {"heavy-waits", .8, 1.5, FINDING_NUMBER},
    };
    (void)state;
    struct lab *lab = performed (&(struct lab_options){.experiment = "agents", .seeds = 12});
    CHECK (lab, wanted);
    lab_destroy (lab);
}

static void delay (void **state)
{
    static const struct wanted wanted[] = {
        {"few-wait-longer", .002, .05, FINDING_DIFFERS},
        {"mean-gain", -60, -10, FINDING_HOLDS},
        {"use-gain", .35, .9, FINDING_DIFFERS},
    };
    (void)state;
    struct lab *lab = performed (&(struct lab_options){.experiment = "delay"});
    CHECK (lab, wanted);
    lab_destroy (lab);
}

static void algorithms (void **state)
{
    static const struct wanted wanted[] = {
        {"same-use", 0, .01, FINDING_HOLDS},
        {"waits-differ", .1, .4, FINDING_DIFFERS},
        {"against-none", .8, 1, FINDING_HOLDS},
    };
    (void)state;
    struct lab *lab = performed (&(struct lab_options){.experiment = "algorithms"});
    CHECK (lab, wanted);
    lab_destroy (lab);
}

static void fairshare (void **state)
{
    static const struct wanted wanted[] = {
        {"steers", 0, .4, FINDING_HOLDS},
        {"highest-over-lowest", .15, .5, FINDING_HOLDS},
        {"cannot-force", 0, .2, FINDING_HOLDS},
    };
    (void)state;
    struct lab *lab = performed (&(struct lab_options){.experiment = "fairshare"});
    CHECK (lab, wanted);
    lab_destroy (lab);
}

static void depth (void **state)
{
    static const struct wanted wanted[] = {
        {"shallow-waits-less", .2, 4, FINDING_HOLDS},
        {"use", -.02, .02, FINDING_NOISE},
        {"expansion-factor", -.5, .2, FINDING_NUMBER},
        {"reservation-protects-large", 1.02, 2, FINDING_HOLDS},
    };
    (void)state;
    struct lab *lab = performed (&(struct lab_options){.experiment = "depth"});
    CHECK (lab, wanted);
    lab_destroy (lab);
}

/* The site that itself ran Maui: the paper's "roughly 10 %" is where backfill has little to do. */
static void real_logs (void **state)
{
    static const struct wanted hpc2n[] = {
        {"few-wait-longer", .05, .15, FINDING_HOLDS},
        {"mean-gain", -3, -1, FINDING_HOLDS},
        {"use-gain", .03, .1, FINDING_DIFFERS},
    };
    static const struct wanted kth[] = {
        {"same-use", 0, .002, FINDING_HOLDS},
        {"waits-differ", 0, .1, FINDING_HOLDS},
        {"against-none", .9, 1, FINDING_HOLDS},
    };
    static const struct wanted ctc[] = {
        {"shallow-waits-less", 1, 4, FINDING_HOLDS},
        {"reservation-protects-large", 1.01, 2, FINDING_HOLDS},
    };
    const char *shared = getenv ("NUI_SHARED");
    char path[3][4096];
    static const char *const log[3] = {"HPC2N-first20000", "KTH-SP2", "CTC-SP2-first20000"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf (path[i], sizeof path[i], "%s/traces/%s.swf.gz", shared ? shared : SHARED_DEFAULT,
                  log[i]);
        if (access (path[i], R_OK) != 0) {
            print_message ("%s is not there: skipped\n", path[i]);
            skip ();
        }
    }
    struct lab *lab = performed (&(struct lab_options){.experiment = "delay", .workload = path[0]});
    CHECK (lab, hpc2n);
    lab_destroy (lab);
    lab = performed (&(struct lab_options){.experiment = "algorithms", .workload = path[1]});
    CHECK (lab, kth);
    lab_destroy (lab);
    lab = performed (&(struct lab_options){.experiment = "depth", .workload = path[2]});
    CHECK (lab, ctc);
    lab_destroy (lab);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (mix),        cmocka_unit_test (agents),    cmocka_unit_test (delay),
        cmocka_unit_test (algorithms), cmocka_unit_test (fairshare), cmocka_unit_test (depth),
        cmocka_unit_test (real_logs),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
