/* scene: a random small site for test_model.c, as the model sees it and as a maui.cfg says it.
 *
 * Times of the model are units of ten minutes from a Sunday's midnight. */
#ifndef NUI_TESTS_PROP_LOCAL_SCENE_H
#define NUI_TESTS_PROP_LOCAL_SCENE_H

#include "local/conf/standing.h"
#include "local/sim/engine.h"
#include "proto/base/strbuf.h"
#include "tests/prop/local/model.h"

enum { SCENE_NODES = 7, SCENE_JOBS = 40, SCENE_LIMITS = 24, SCENE_BLOCKS = 6 };

struct scene {
    struct model_node node[SCENE_NODES];
    int node_count;
    struct model_job job[SCENE_JOBS];
    int job_count;
    struct model_rule rule;
    struct model_block block[SCENE_BLOCKS]; /* the first standing_count are SRCFG's */
    int standing_count;
    struct model_limit limit[SCENE_LIMITS];
    uint64_t seed;
    struct cred_names names;
    struct strbuf config;
    struct standing *standing;
};

struct scene *scene_make (uint64_t seed);
void scene_free (struct scene *scene);
/* Read from its text, as a site's file is; sealed. */
struct policy *scene_policy (struct scene *scene);
time_us scene_time (int64_t units);
/* For struct engine_site. */
int scene_furnish (void *scene, struct cluster *cluster, time_us now, struct err *err);
void scene_roll (void *scene, struct cluster *cluster, time_us now);
/* Of both, SCENE_JOBS. */
void scene_jobs (struct scene *scene, struct engine_job *job, struct req *req);
void scene_show (const struct scene *scene, const struct engine_result *result);

#endif
