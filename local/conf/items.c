/* items: names with counts, as NODECFG's CLASS and GRES have them. Pure. nodeconf.c checks them with the file, place.c takes
 * them for the core. */
#include "local/conf/items.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/quantity.h"
#include "proto/base/text.h"

/* Maui writes [batch:8][special:4] as well. */
bool item_next (const char **at, char name[64], int64_t *count_out, struct err *err, int *rc_out)
{
    static const char ends[] = ",+; \t[]";
    const char *text = *at + strspn (*at, ends);
    size_t len = strcspn (text, ends), part = strcspn (text, ":=");
    char number[QUANTITY_TEXT_MAX];

    *at = text + len;
    *count_out = -1;
    *rc_out = 0;
    if (len == 0)
        return false;
    part = part < len ? part : len;
    if (part >= 64) {
        *rc_out = err_set (err, ERR_INVALID, "'%.40s…' is too long for a name", text);
        return false;
    }
    memcpy (name, text, part);
    name[part] = '\0';
    *rc_out = name_check ("resource or class", name, err);
    if (*rc_out == 0 && part < len) {
        if (len - part - 1 >= sizeof number)
            *rc_out = err_set (err, ERR_INVALID, "'%.40s' is no count", text + part + 1);
        else
            snprintf (number, sizeof number, "%.*s", (int)(len - part - 1), text + part + 1);
        if (*rc_out == 0)
            *rc_out = int_parse (number, "the count", 0, 1 << 24, count_out, err);
    }
    return *rc_out == 0;
}

int items_check (const char *text, struct err *err)
{
    char name[64];
    int64_t count;
    int rc;

    while (item_next (&text, name, &count, err, &rc))
        ;
    return rc;
}
