/* fnv: FNV-1a hashes of 64 bits (Fowler, Noll, Vo), made piece by piece from FNV_BEGIN on. Not for secrets. */
#ifndef NUI_BANK_STORE_FNV_H
#define NUI_BANK_STORE_FNV_H

#include <string.h>

#include "bank/core/ledger.h"

#define FNV_BEGIN UINT64_C (14695981039346656037)

static inline uint64_t fnv_bytes (uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *c = bytes;
    while (len--)
        hash = (hash ^ *c++) * UINT64_C (1099511628211);
    return hash;
}

static inline uint64_t fnv_text (uint64_t hash, const char *text)
{
    return fnv_bytes (hash, text, strlen (text) + 1);
}

/* The job's incarnation: what a hold or a usage is one of. */
static inline uint64_t fnv_job (uint64_t hash, const struct ledger_job *job)
{
    hash = fnv_text (hash, job->site);
    hash = fnv_text (hash, job->site_job);
    hash = fnv_text (hash, job->component);
    return fnv_bytes (hash, &job->incarnation, sizeof (job->incarnation));
}

#endif
