/* metad: the service nui.meta.v1.Meta and what drives the jobs, as main.c owns it. */
#ifndef NUI_META_SVC_METAD_H
#define NUI_META_SVC_METAD_H

#include "meta/job/hub.h"

struct metad_env {
    struct event_base *base;
    struct log *log;
    struct tlsid *id;
    const char *grid;
    const char *state_dir; /* the store is meta.sqlite in it */
    /* Nothing can be made durable any more, and so nothing is sent: stop. NULL: nobody is told. */
    void (*failed) (void *arg, const struct err *why);
    /* Asked before a job is taken: why none is, at present. NULL: always. */
    int (*takes_work) (void *arg, struct err *err);
    void *failed_arg; /* of both */
};

/* config is lent until metad_reconfigure has taken another, or metad_destroy. Recovers every live
 * job: their calls start at once. */
struct metad *metad_create (const struct metad_env *env, struct metad_config *config,
                            struct err *err);
/* Registers nui.meta.v1.Meta. */
int metad_serve (struct metad *metad, struct rpcserver *server, struct err *err);
/* What it tells of itself, once a second at the most. */
void metad_metrics (struct metad *metad, struct metrics_page *page);
/* On failure the old configuration stays. */
int metad_reconfigure (struct metad *metad, struct metad_config *config, struct err *err);
/* Ends every Watch, so that a drain can finish. */
void metad_drain (struct metad *metad);
void metad_destroy (struct metad *metad); /* NULL is a no-op */

#endif
