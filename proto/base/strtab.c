/* strtab: a hash from name to number beside an array from number to name. Readers of traces and
 * topologies call it, so that cores compare numbers in place of texts. A name is never removed,
 * and a number never given to another. */
#include "proto/base/strtab.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

struct name {
    uint32_t number;
    UT_hash_handle hh;
    char text[];
};

struct strtab {
    struct name *by_text;
    struct name **by_number;
    uint32_t count;
    uint32_t cap;
};

struct strtab *strtab_create (void)
{
    struct strtab *tab = calloc (1, sizeof *tab);
    assert (tab);
    return tab;
}

void strtab_destroy (struct strtab *tab)
{
    if (!tab)
        return;
    HASH_CLEAR (hh, tab->by_text);
    for (uint32_t i = 0; i < tab->count; i++)
        free (tab->by_number[i]);
    free (tab->by_number);
    free (tab);
}

uint32_t strtab_find (const struct strtab *tab, const char *name)
{
    struct name *found = NULL;
    HASH_FIND (hh, tab->by_text, name, strlen (name), found);
    return found ? found->number : STRTAB_NONE;
}

uint32_t strtab_intern (struct strtab *tab, const char *name)
{
    uint32_t number = strtab_find (tab, name);
    if (number != STRTAB_NONE)
        return number;
    assert (tab->count < UINT32_MAX - 1);
    if (tab->count == tab->cap) {
        uint32_t cap = tab->cap > UINT32_MAX / 2 ? UINT32_MAX - 1 : tab->cap ? tab->cap * 2 : 16;
        struct name **grown = reallocarray (tab->by_number, cap, sizeof *grown);
        assert (grown);
        tab->by_number = grown;
        tab->cap = cap;
    }
    size_t len = strlen (name);
    struct name *added = calloc (1, sizeof *added + len + 1);
    assert (added);
    memcpy (added->text, name, len + 1);
    added->number = tab->count;
    HASH_ADD_KEYPTR (hh, tab->by_text, added->text, len, added);
    tab->by_number[tab->count++] = added;
    return added->number;
}

const char *strtab_name (const struct strtab *tab, uint32_t number)
{
    return number < tab->count ? tab->by_number[number]->text : NULL;
}

uint32_t strtab_count (const struct strtab *tab)
{
    return tab->count;
}
