/* policy_table: every parameter of a policy, one a line, for tests that must not forget one: NAME, or RECORD.ATTRIBUTE,
 * and its words where it takes one of several. Other names of the same thing, and Maui's that are only told, are left out. */
#include <stdio.h>
#include <string.h>

#include "local/conf/policyconf.h"

/* SRDEPTH[x] is SRCFG[x] DEPTH, QOSFLAGS[x] is QOSCFG[x] QFLAGS. */
static bool of_record (const struct conf_param *p)
{
    return (p->flags & CONF_F_ADDS) &&
           (strncmp (p->name, "SR", 2) == 0 || strncmp (p->name, "QOS", 3) == 0);
}

static void put_table (const char *record, const struct conf_param *table)
{
    for (const struct conf_param *p = table; p->name; p++) {
        if (p->type == CONF_RECORD) {
            put_table (p->name, p->attrs);
            continue;
        }
        if ((p->flags & CONF_F_ALIAS) || p->type == CONF_UNSUPPORTED || of_record (p))
            continue;
        printf ("%s%s%s", record, *record ? "." : "", p->name);
        if (p->type == CONF_BOOL)
            printf (" TRUE FALSE");
        for (const char *const *w = p->type == CONF_WORD ? p->words : NULL; w && *w; w++)
            printf (" %s", *w);
        printf ("\n");
    }
}

int main (void)
{
    put_table ("", policy_params);
    put_table ("", policy_file_params);
    return 0;
}
