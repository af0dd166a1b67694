/* Any bytes as a workload log, plain or gzip: read, or refused with a sentence that names the file.
 * What was read keeps the promises of workload.h, and can be written and read again. */
#include <string.h>

#include "local/sim/events.h"
#include "local/trace/workload.h"
#include "tests/fuzz/sim/memfile.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void check (const struct workload *w)
{
    uint64_t skipped = 0;
    for (int r = 0; r < SKIP_REASONS; r++)
        skipped += w->skipped[r];
    assert (w->count + skipped == w->read);
    for (uint64_t i = 0; i < w->count; i++) {
        const struct workload_job *j = &w->job[i];
        assert (j->number > 0 && j->procs > 0 && j->run >= 0 && j->limit > 0);
        assert (j->req.tasks > 0 && j->req.task.v[RES_PROCS] > 0);
        assert (i == 0 || w->job[i - 1].submit <= j->submit);
    }
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char path[64];
    struct err err = {0};
    struct cred_names names;
    const struct workload_range all = {1, UINT64_MAX};
    int fd = memfile (data, size, path);
    cred_names_init (&names);
    struct workload *w = workload_read (path, &all, &names, &err);
    if (w) {
        check (w);
        struct machine *m = machine_uniform (64, 4, &err);
        workload_fit (w, m);
        check (w);
        machine_destroy (m);
    } else {
        assert (err.code != 0 && strstr (err.text, path));
    }
    workload_destroy (w);
    cred_names_free (&names);
    close (fd);
    return 0;
}
