/* Fuzz target: calls to every handler of one daemon, whatever a caller may put into them.
 *
 * An input is a few calls one after the other: whose, which, and a message of the method's own type (wire.h), as bytes
 * through the same checks as the transport makes (inproc.h). Nothing may crash, answer with an internal error or with
 * what is no message, stop the daemon, or be left unfinished when it closes. The world is made anew now and then. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/handlers/world.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

enum { CALLS_MAX = 8, INPUTS_PER_WORLD = 200 };

static struct ground ground;
static unsigned inputs;

static void world_close (void)
{
    if (inputs)
        world.close ();
    inputs = 0;
}

static void world_fresh (void)
{
    if (!ground.dir) {
        ground_open (&ground);
        world.signers.alice = ground.alice;
        world.signers.bob = ground.bob;
        atexit (world_close); /* before the folder goes */
    }
    if (inputs == INPUTS_PER_WORLD || inproc_stopped ())
        world_close ();
    if (inputs++ == 0)
        world.open (&ground, false);
}

/* Mostly somebody who may. */
static const struct inproc_caller *caller_of (const struct rpc_method *method, uint8_t draw)
{
    unsigned count = 0;
    while (world.callers[count].name)
        count++;
    for (unsigned i = 0; draw < 240 && i < count; i++) {
        const struct inproc_caller *caller = &world.callers[(draw + i) % count];
        if (method->allow & RPC_ALLOW (caller->kind))
            return caller;
    }
    return &world.callers[draw % count];
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    world_fresh ();
    struct wire_source src = {data, size, &world.signers};
    for (int i = 0; i < CALLS_MAX && src.left > 0; i++) {
        const struct inproc_method *m = inproc_method (wire_byte (&src) % inproc_method_count ());
        const struct inproc_caller *caller = caller_of (m->info, wire_byte (&src));
        struct inproc_result result;
        struct wire w = {0};
        wire_draw (&w, m->descriptor->input, &src);
        uint8_t *bytes =
            malloc (w.len + 1); /* exactly as large, so that a read past its end is seen */
        if (!bytes)
            abort ();
        for (size_t k = 0; k < w.len; k++)
            bytes[k] = w.bytes[k];
        inproc_call (m, caller, bytes, w.len, NULL, &result);
        if (getenv ("NUI_FUZZ_TRACE"))
            fprintf (stderr, "%s.%s by %s, %zu bytes: %d %s\n", m->service->short_name,
                     m->info->name, caller->name, w.len, result.answered ? (int)result.status : -1,
                     result.text);
        free (bytes);
        wire_free (&w);
        if (inproc_stopped ())
            break;
    }
    return 0;
}
