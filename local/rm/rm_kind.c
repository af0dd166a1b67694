/* rm_kind: the table of resource managers, and sentences made of it. The configuration finds a kind here.
 * Nothing here knows how any of them works. */
#include "local/rm/rm_kind.h"

#include <string.h>
#include <strings.h>

#include "proto/base/text.h"

#define RM_ROW(name) &rm_##name##_kind,
static const struct rm_kind *const kinds[] = {RM_KINDS (RM_ROW)};
enum { KINDS = sizeof kinds / sizeof *kinds };

const struct rm_kind *rm_kind_find (const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcasecmp (kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

const struct rm_kind *rm_kind_default (void)
{
    return kinds[0];
}

static const char *between (size_t i, const char *last)
{
    return i == 0 ? "" : i + 1 < KINDS ? ", " : last;
}

void rm_kinds_do (char *out, size_t cap)
{
    *out = '\0';
    for (size_t i = 0; i < KINDS; i++) {
        size_t len = strlen (out);
        text_printf (out + len, cap - len, "%s%s (%s)", between (i, " or "), kinds[i]->does,
                     kinds[i]->name);
    }
}

void rm_kinds_neither (char *out, size_t cap)
{
    text_printf (out, cap, "neither ");
    for (size_t i = 0; i < KINDS; i++) {
        size_t len = strlen (out);
        text_printf (out + len, cap - len, "%s%s", between (i, " nor "), kinds[i]->name);
    }
}
