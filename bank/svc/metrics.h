/* metrics: what the bank tells Prometheus of itself: how long operations took, blocks, suspense, rows that nobody owns, and
 * whether its database answers and its clock is believed. No account and no person is named. */
#ifndef NUI_BANK_SVC_METRICS_H
#define NUI_BANK_SVC_METRICS_H

#include "bank/core/ledger.h"
#include "bank/svc/service.h"

struct metrics;

struct metrics *metrics_create (struct bank_service *svc);
void metrics_destroy (struct metrics *metrics); /* NULL is a no-op */
/* An operation was answered, so long after it was handed to the writer. */
void metrics_operation (struct metrics *metrics, enum ledger_kind kind, bool done,
                        duration_us took);

#endif
