/* scenarios: each row of the protocol's failure table, provoked at its moment and looked at by what must be seen. The
 * invariants are looked at all along, as in every world. */
#ifndef NUI_TESTS_GRID_SCENARIOS_H
#define NUI_TESTS_GRID_SCENARIOS_H

#include "grid.h"

#define COMPLETED NUI__META__V1__GRID_JOB_STATE__GRID_COMPLETED

struct scenario {
    const char *name; /* NULL: after the last */
    void (*run) (void);
    const struct grid_shape *shape;
};
extern const struct scenario scenarios_one[], scenarios_group[], scenarios_coreserve[];

extern const struct grid_ask scenario_pair; /* at alpha and beta */
extern const struct grid_ask
    scenario_long; /* at beta or gamma; given to the other when the site is lost */

/* When that server answers that method for the (after + 1)th time. */
void strike_at (const char *server, const char *method, uint32_t after,
                void (*strike) (struct machine *server));
bool hit_struck (void *arg);
void server_dies (struct machine *server);
/* A strike: a node of the server goes; then as then_strike_at was told before. */
void node_goes_first (struct machine *server);
void then_strike_at (const char *server, const char *method,
                     void (*strike) (struct machine *server));

/* Conditions of grid_until; arg of launched: the job. */
bool nothing_held (void *arg);
bool both_firm (void *arg);
bool launched (void *arg);

void expect_over (uint32_t job, duration_us limit);
void expect (uint32_t job, Nui__Meta__V1__GridJobState state);
/* Two sites are full until a minute from now by limits, and the group, which needs all of both for longer than that, has its
 * place after it. What runs there ends soon: the group has to begin at once, although the new place lies over its own. */
void come_forward (void (*strike) (struct machine *server), const char *server, const char *method,
                   duration_us within);
/* alpha is full for ten minutes by its limit, and frees up once the group has its place after that: it has
 * to be through long before. */
void slide (void (*strike) (struct machine *server), const char *server, const char *method,
            uint32_t after);

#endif
