/* busy: what the requests of a batch under way name: their keys, jobs and signed jobs.
 *
 * Two batches of which neither sees what the other writes may be under way at a time only if they name nothing in
 * common. Names are kept as hashes of 64 bits: two that fall together make a batch wait, nothing else. */
#ifndef NUI_BANK_STORE_BUSY_H
#define NUI_BANK_STORE_BUSY_H

#include "bank/core/ledger.h"
#include "proto/base/fnv.h"

/* The job's incarnation: what a hold or a usage is one of. */
static inline uint64_t fnv_job (uint64_t hash, const struct ledger_job *job)
{
    hash = fnv_text (hash, job->site);
    hash = fnv_text (hash, job->site_job);
    hash = fnv_text (hash, job->component);
    return fnv_bytes (hash, &job->incarnation, sizeof (job->incarnation));
}

struct busy;

struct busy *busy_create (void); /* aborts when out of memory */
void busy_destroy (struct busy *busy);
void busy_clear (struct busy *busy);
void busy_add (struct busy *busy, const struct ledger_request *req);
bool busy_has (const struct busy *busy, const struct ledger_request *req); /* any of its names */

#endif
