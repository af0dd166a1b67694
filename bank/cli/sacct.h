/* sacct: Slurm's accounting as `sacct --parsable2` prints it. Pure.
 *
 * One header line names the fields, "|" separates them, in any order. JobIDRaw (or JobID), End, AllocCPUS (or
 * NCPUS) and ElapsedRaw (or Elapsed) must be there; Submit, Start, User, Account and State are used where they
 * are. Steps (1234.batch) are passed over, and jobs that have not ended. Times are local time, as sacct prints
 * them, or with a zone. */
#ifndef NUI_BANK_CLI_SACCT_H
#define NUI_BANK_CLI_SACCT_H

#include "proto/base/arena.h"
#include "proto/base/quantity.h"

enum { SACCT_JOBS_MAX = 5000000 };

struct sacct_job {
    const char *id, *user, *account, *state; /* "" where the file has no such field */
    time_us submit, start, end;              /* 0: not known */
    int64_t procs;
    duration_us elapsed;
};

/* Takes the text apart in place; it must live as long as the jobs. name is for errors, which say the line. */
int sacct_parse (const char *name, char *text, struct arena *arena, struct sacct_job **out,
                 uint32_t *count_out, struct err *err);

#endif
