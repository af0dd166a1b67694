/* GRIDCFG: what a site lets metaschedulers take of it. Read by settings.c; local/svc asks the lists. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "local/conf/settings_i.h"

enum { NAME_BYTES = 256 };
static const char separators[] = ", \t";

#define AT(field) offsetof (struct settings_grid, field)
#define LIST(key, field)                                                                           \
    {                                                                                              \
        .name = key, .type = CONF_STRING, .offset = AT (field)                                     \
    }
#define TIME(key, field)                                                                           \
    {                                                                                              \
        .name = key, .type = CONF_DURATION, .offset = AT (field), .min = US_PER_S,                 \
        .max = INT64_MAX / 4                                                                       \
    }

const struct conf_param settings_grid_attrs[] = {
    TIME ("MAXLEASE", lease),
    TIME ("MAXAHEAD", ahead),
    TIME ("MAXJOBWALLTIME", wall),
    {.name = "MAXPROCPERJOB",
     .type = CONF_INT,
     .offset = AT (procs_each),
     .min = 1,
     .max = INT32_MAX},
    {.name = "MAXPROC", .type = CONF_INT, .offset = AT (procs), .min = 1, .max = INT32_MAX},
    {.name = "SHARE", .type = CONF_INT, .offset = AT (share), .min = 1, .max = 100},
    {.name = "MINPRICE", .type = CONF_CREDITS, .offset = AT (price), .min = 0, .max = INT64_MAX},
    LIST ("QDEF", qos_default),
    LIST ("QLIST", qos),
    LIST ("USERLIST", users),
    LIST ("ACCOUNTLIST", accounts),
    LIST ("CLASSLIST", classes),
    {.name = NULL},
};

/* The next entry of a list, without its '!'; NULL: none. */
static const char *entry (const char **text, bool *denies, char out[NAME_BYTES])
{
    const char *p = *text + strspn (*text, separators);
    size_t len = strcspn (p, separators);
    if (len == 0)
        return NULL;
    *text = p + len;
    *denies = *p == '!';
    snprintf (out, NAME_BYTES, "%.*s", (int)(len - *denies), p + *denies);
    return out;
}

bool settings_grid_lists (const char *text, const char *name, const char *other)
{
    char one[NAME_BYTES];
    bool denies, admits = false, some = false;
    while (text && entry (&text, &denies, one)) {
        bool fits =
            strcmp (one, name) == 0 || strcmp (one, other) == 0 || strcasecmp (one, "ALL") == 0;
        if (fits && denies)
            return false;
        admits = admits || fits;
        some = some || !denies;
    }
    return admits || !some;
}

int settings_grid_check (const struct settings_grid *grid, struct err *err)
{
    const struct {
        const char *key, *text;
    } list[] = {{"QDEF", grid->qos_default},
                {"QLIST", grid->qos},
                {"USERLIST", grid->users},
                {"ACCOUNTLIST", grid->accounts},
                {"CLASSLIST", grid->classes}};
    char one[NAME_BYTES];
    bool denies;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (const char *text = list[i].text; text && entry (&text, &denies, one);)
            if (strncmp (one, "nui://", 6) != 0 && name_check (list[i].key, one, err) != 0)
                return err_prefix (err, "GRIDCFG[%.60s]", grid->meta);
    return 0;
}
