/* Any bytes as a resource trace of Maui's: nodes with something on them, or a sentence. */
#include <string.h>

#include "local/trace/workload.h"
#include "tests/fuzz/sim/memfile.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char path[64];
    struct err err = {0};
    struct cred_names names;
    int fd = memfile (data, size, path);
    cred_names_init (&names);
    struct workload w = {
        .names = &names,
        .constraint = {"bigmem", "class:batch", "mem>=512", "disk<3", "opsys:Linux"},
        .constraint_count = 5};
    struct machine *m = machine_read (path, &w, &err);
    if (m) {
        uint32_t nodes = 0;
        for (uint32_t g = 0; g < m->group_count; g++) {
            nodes += m->group[g].copies;
            assert (m->group[g].copies > 0 && m->group[g].spec.configured.v[RES_PROCS] > 0);
            assert (m->group[g].spec.configured.v[RES_MEM_MB] >= 0);
        }
        assert (nodes == m->node_count && nodes > 0 && m->gres_kinds <= RES_MAX - RES_GRES0);
    } else {
        assert (err.code != 0 && err.text[0]);
    }
    machine_destroy (m);
    cred_names_free (&names);
    close (fd);
    return 0;
}
