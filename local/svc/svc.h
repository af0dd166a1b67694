/* svc: the site's service: nui.local.v1 on the core, the store, the resource manager and the links.
 *
 * One object, one loop. What is acknowledged is durable first (local/store); policy is the core's
 * (local/core); this only carries out and writes down. */
#ifndef NUI_LOCAL_SVC_SVC_H
#define NUI_LOCAL_SVC_SVC_H

#include "local/conf/settings.h"
#include "proto/rpc/daemon.h"

struct svc;

/* names: of credentials; outlives the service. settings: until svc_reload with others. */
int svc_create (struct daemon *daemon, struct cred_names *names, const struct settings *settings,
                struct svc **out, struct err *err);
int svc_reload (struct svc *svc, const struct settings *settings, struct err *err);
/* What the site tells of itself (memory/metrics.c), once a second at the most. */
void svc_metrics (struct svc *svc, struct metrics_page *page);
void svc_draining (struct svc *svc); /* ends streams that follow output */
void svc_destroy (struct svc *svc);  /* jobs run on; NULL is a no-op */

#endif
