/* charge: what is told to the bank of what was used (charge.c, charge_lost.c), and what it is asked with (asked.c). */
#ifndef NUI_LOCAL_SVC_JOB_CHARGE_H
#define NUI_LOCAL_SVC_JOB_CHARGE_H

#include "local/svc/job.h"
#include "local/svc/job/jobspec.h"
#include "proto/nui/v1/bank.pb-c.h"

enum { BANK_GRES_MAX = 16, BANK_NODE_TYPES_MAX = 32 };

struct bank_asked {
    Nui__Bank__V1__Asked message;
    Nui__Common__V1__GenericResource gres[BANK_GRES_MAX], *item[BANK_GRES_MAX];
    Nui__Bank__V1__NodeShare nodes[BANK_NODE_TYPES_MAX], *node[BANK_NODE_TYPES_MAX];
};
/* What the job asks for, without its nodes. Points into itself and the spec. */
void bank_asked_fill (const struct svc *svc, const struct jobspec *spec, struct bank_asked *out);
/* Where it is placed: its processors by node type, where any node has one. Points into the nodes. */
void bank_nodes_fill (const struct svc *svc, const struct site_job *job, const struct jobspec *spec,
                      struct bank_asked *out);
/* The machine that the bank is told of (AMCFG MACHINE); "": none. Of no job: "" where each has its own. */
const char *bank_machine (const struct svc *svc, const struct site_job *job);

/* In a transaction: what a reservation kept idle, with who pays in its claim. */
int charge_idle (struct svc *svc, Nui__Bank__V1__ChargeRequest *request, struct err *err);
/* In a transaction: the use of this incarnation until `end`; final: it has ended, and a row of the runs
 * says what the bank was told of it. cpu_time: that its processes used; 0: not known. The bank is told
 * nothing of what is not charged. */
int charge_job (struct svc *svc, const struct site_job *job, time_us end, duration_us cpu_time,
                bool final, struct err *err);
/* Could it be charged without a hold? The bank has to know whose it is. */
bool charge_unheld_may (const struct site_job *job);
/* A native job's hold: who it is for, by the gridmap; false: the gridmap has nobody for its account. */
bool charge_claim (struct svc *svc, const struct site_job *job,
                   Nui__Bank__V1__SiteClaim *claim_out);
/* Whether the bank is asked for it, and told. */
bool charge_wanted (const struct svc *svc, const struct site_job *job);
/* In a transaction: puts one into the outbox. */
int charge_put (struct svc *svc, Nui__Bank__V1__ChargeRequest *request, uint64_t *message_out,
                struct err *err);
/* bank_link_config.on_refused, of a svc (charge_lost.c). */
int charge_refused (void *arg, const struct store_item *item, enum rpc_status status,
                    struct err *err);

#endif
