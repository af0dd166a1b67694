/* Any bytes as a line of Slurm's completion file and of sacct: an end of a job, or none. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "local/rm/slurm/slurm_record.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void check (enum slurm_record_is is, const struct slurm_record *r)
{
    if (is != RECORD_END)
        return;
    assert (r->submit >= 0 && r->start >= 0 && r->end >= 0 && r->walltime >= 0 &&
            r->cpu_time >= -1);
    assert (r->procs > 0 && r->exit_code >= 0 && r->exit_code < 256 && r->signo >= 0 &&
            r->signo < 128);
    assert (!r->ran || *r->nodes);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *line = malloc (size + 1);
    static struct slurm_record record;
    const char *field;
    assert (line);
    memcpy (line, data, size);
    line[size] = 0;
    enum slurm_record_is is = slurm_record_completion (line, &record, &field);
    assert ((is == RECORD_DOUBTFUL) == (field != NULL));
    check (is, &record);
    check (slurm_record_sacct (line, &record), &record);
    free (line);
    return 0;
}
