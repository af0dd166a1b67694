/* world: one daemon with something in it, and who calls it. Each program is linked with one. */
#ifndef NUI_TESTS_FUZZ_WORLD_H
#define NUI_TESTS_FUZZ_WORLD_H

#include "tests/fuzz/handlers/inproc.h"
#include "tests/fuzz/handlers/wire.h"
#include "proto/nui/v1/common.pb-c.h"
#include "tests/interop/testca.h"

/* Of all worlds: certificates, and a folder in which each has its own. */
struct ground {
    char *dir;
    struct testca *ca;
    struct tlsid *alice, *bob;
};
/* Once; what is left in the folder goes with the process. */
void ground_open (struct ground *ground);
void ground_clear (const struct ground *ground, char dir[256]); /* a fresh, empty folder */

/* Who is to be refused every method of a service. */
struct world_stranger {
    const char *service;
    struct inproc_caller caller;
};

/* A call that no drawn message is: of what the world has. */
struct world_more {
    const char *method, *what; /* "Meta.Submit" */
    void (*make) (struct wire *out, uint64_t number);
};

struct world {
    const char *name;
    struct wire_signers signers;
    const struct inproc_caller *callers;              /* NULL name ends */
    const struct world_stranger *strangers;           /* NULL service ends */
    const struct world_more *more;                    /* NULL method ends; may be NULL */
    void (*open) (struct ground *ground, bool large); /* large: as much as a busy one has */
    void (*close) (void);
};
extern struct world world;

/* A plain job of alice's, of one component, whose uuid is of that number. To be freed with envelope_free. */
struct plain_job {
    uint64_t number;
    uint32_t tasks;
    const char *site;    /* NULL: any */
    uint32_t components; /* 0: one, "main"; else "c0" … */
    int64_t walltime_us; /* 0: ten minutes */
    uint32_t array;      /* so many indexes; 0: no array */
    uint32_t ranges;     /* … in so many ranges; 0: one */
};
Nui__Common__V1__Envelope *plain_job (const struct ground *ground, const struct plain_job *job);

#endif
