/* Any text as a host list; what was expanded, compressed and expanded again is the same. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "proto/base/hostlist.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create (0);
    char *text = arena_zalloc (arena, size + 1);
    if (size)
        memcpy (text, data, size);
    struct err err = {0};
    const char **names = NULL, **again = NULL;
    uint32_t count = 0, count_again = 0;
    if (hostlist_expand (text, arena, &names, &count, &err) < 0) {
        assert (err.code < 0 && err.text[0]);
    } else if (count < 4096) {
        char *shorter = hostlist_compress (names, count, arena);
        int rc = hostlist_expand (shorter, arena, &again, &count_again, &err);
        assert (rc == 0 && count_again == count);
        for (uint32_t i = 0; i < count; i++)
            assert (strcmp (names[i], again[i]) == 0);
    }
    arena_destroy (arena);
    return 0;
}
