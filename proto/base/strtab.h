/* strtab: names to small dense numbers and back (interning). Pure.
 *
 * Numbers are given out from 0 in order of first use and never change; the table owns copies.
 * Lookup is O(1) expected. At most UINT32_MAX - 1 names. */
#ifndef NUI_BASE_STRTAB_H
#define NUI_BASE_STRTAB_H

#include <stdint.h>

#define STRTAB_NONE UINT32_MAX

struct strtab;

struct strtab *strtab_create (void);
void strtab_destroy (struct strtab *tab);
uint32_t strtab_intern (struct strtab *tab, const char *name);       /* adds when new */
uint32_t strtab_find (const struct strtab *tab, const char *name);   /* STRTAB_NONE when absent */
const char *strtab_name (const struct strtab *tab, uint32_t number); /* NULL when out of range */
uint32_t strtab_count (const struct strtab *tab);

#endif
