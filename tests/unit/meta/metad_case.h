/* metad_case: what the tests of nui-meta between fake sites and a fake bank share: a grid for a test, a submission and
 * its refusal, and what is waited for. */
#ifndef TESTS_UNIT_META_METAD_CASE_H
#define TESTS_UNIT_META_METAD_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/meta/fakegrid.h"

#define COMPLETED NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED
#define CANCELLED NUI__META__V1__GRID_JOB_STATE__GRID_CANCELLED
#define REFUSED NUI__META__V1__GRID_JOB_STATE__GRID_REFUSED
#define RUNNING NUI__META__V1__GRID_JOB_STATE__GRID_RUNNING

static inline int setup (void **state)
{
    struct fakegrid *grid = fake_create (FAKE_SITES);
    fake_meta_start (grid);
    *state = grid;
    return 0;
}

static inline int teardown (void **state)
{
    struct fakegrid *grid = *state;
    assert_int_equal (grid->violations, 0);
    fake_destroy (grid);
    return 0;
}

static const struct fake_job pair = {
    .n = 2, .sites = {"alpha", "beta"}, .procs = 2, .walltime_s = 60};

static inline void submit_ok (struct fakegrid *grid, const struct fake_job *job, char id[32])
{
    struct err err;
    int rc = fake_submit (grid, job, id, &err);
    if (rc)
        print_error ("%s\n", err.text);
    assert_int_equal (rc, 0);
}

static inline void refused (struct fakegrid *grid, const struct fake_job *job, int code,
                            const char *words)
{
    char id[32];
    struct err err;
    assert_int_equal (fake_submit (grid, job, id, &err), code);
    if (!strstr (err.text, words))
        print_error ("'%s' does not say '%s'\n", err.text, words);
    assert_non_null (strstr (err.text, words));
}

static inline bool nothing_held (void *arg)
{
    return fake_nothing_held (arg);
}

static inline const Nui__Meta__V1__SiteAnswer *answer_of (const Nui__Meta__V1__ComponentStatus *c,
                                                          const char *site)
{
    for (size_t i = 0; i < c->n_answers; i++)
        if (strcmp (c->answers[i]->site, site) == 0)
            return c->answers[i];
    fail_msg ("%s: no answer of %s", c->name, site);
    return NULL;
}

struct said {
    struct fakegrid *grid;
    const char *id, *words;
};

static inline bool is_said (void *arg)
{
    const struct said *said = arg;
    Nui__Meta__V1__JobStatus *s = fake_status (said->grid, said->id);
    bool is = s->reason && strstr (s->reason->text, said->words);
    nui__meta__v1__job_status__free_unpacked (s, NULL);
    return is;
}

struct count_above {
    const uint32_t *count;
    uint32_t than;
};

static inline bool is_above (void *arg)
{
    const struct count_above *above = arg;
    return *above->count > above->than;
}

static inline bool was_killed (void *arg)
{
    return ((struct fakegrid *)arg)->killed;
}

static inline int call_as (struct rpcclient *who, const char *method,
                           const ProtobufCMessage *request, struct err *err)
{
    ProtobufCMessage *reply = NULL;
    int rc = rpcclient_call (who, &nui__meta__v1__meta__descriptor, method, request, 10 * US_PER_S,
                             true, &reply, err);
    if (rc == 0)
        protobuf_c_message_free_unpacked (reply, NULL);
    return rc;
}

static inline bool reported (void *arg)
{
    return ((struct fakesite *)arg)->reports_outstanding == 0;
}

#endif
