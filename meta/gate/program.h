/* program: the gate as a whole. Everything of it hangs off the handle. */
#ifndef NUI_META_GATE_PROGRAM_H
#define NUI_META_GATE_PROGRAM_H

#include "meta/gate/gate.h"

struct gate_env {
    struct event_base *base;
    struct log *log;
    struct tlsid *id;
    const char *grid, *state_dir;
};

/* config outlives it. */
struct gate *gate_open (const struct gate_env *env, const struct gate_config *config,
                        struct err *err);
void gate_close (struct gate *gate); /* what is open is told that the gate is being stopped */
void gate_metrics (const struct gate *gate, struct metrics_page *page);

#endif
