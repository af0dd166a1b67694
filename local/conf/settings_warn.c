/* settings_warn: what a configuration that is taken is likely not to mean: names that nothing defines, values without
 * effect. Called by settings_read once the file is good, of another program's also with faults, when the policy may not be
 * there; it notes, and refuses nothing. */
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "local/conf/settings_i.h"

enum { NAME_MAX_BYTES = 128 };

/* One ATTRIBUTE=value of one line. */
struct attribute {
    struct conf *conf;
    const struct settings *settings;
    const struct conf_entry *entry;
    char name[NAME_MAX_BYTES];
    const char *value;
    size_t value_len;
};

static struct conf_value place_of (const struct attribute *a)
{
    return (struct conf_value){.conf = a->conf,
                               .key = a->entry->key,
                               .index = a->entry->index,
                               .attr = *a->name ? a->name : NULL,
                               .line = a->entry->line};
}

/* Calls fn for each attribute of every line. */
static void attributes (struct conf *conf, const struct settings *settings,
                        void (*fn) (const struct attribute *a, void *arg), void *arg)
{
    for (uint32_t i = 0; i < conf_entry_count (conf); i++) {
        struct attribute a = {.conf = conf, .settings = settings, .entry = conf_entry (conf, i)};
        for (const char *p = a.entry->value; *p;) {
            p += strspn (p, " \t");
            size_t n = strcspn (p, " \t");
            const char *equals = memchr (p, '=', n);
            *a.name = 0;
            if (equals && equals > p && (size_t)(equals - p) < sizeof a.name)
                snprintf (a.name, sizeof a.name, "%.*s", (int)(equals - p), p);
            a.value = *a.name ? equals + 1 : p;
            a.value_len = (size_t)(p + n - a.value);
            if (a.value_len >= 2 && *a.value == '"') {
                a.value++;
                a.value_len -= 2;
            }
            if (n > 0)
                fn (&a, arg);
            p += n;
        }
    }
}

/* --- is it defined? ----------------------------------------------------------------------- */

static bool defined (struct conf *conf, const char *key, const char *name)
{
    for (uint32_t i = 0; i < conf_entry_count (conf); i++) {
        const struct conf_entry *e = conf_entry (conf, i);
        bool kind = strcasecmp (e->key, key) == 0 || /* QOSPRIORITY[x] makes one, too */
                    (strcmp (key, "QOSCFG") == 0 && strncasecmp (e->key, "QOS", 3) == 0);
        if (e->index && kind && strcmp (e->index, name) == 0)
            return true;
    }
    return strcasecmp (name, "DEFAULT") == 0 || strcasecmp (name, "ALL") == 0 ||
           strcasecmp (name, "[ALL]") == 0;
}

static bool any_defined (struct conf *conf, const char *key)
{
    for (uint32_t i = 0; i < conf_entry_count (conf); i++)
        if (strcasecmp (conf_entry (conf, i)->key, key) == 0)
            return true;
    return false;
}

/* Each name of "hi:lo,medium", without what affinity and modes add. */
static void names_check (const struct attribute *a, const char *key, const char *what)
{
    char name[NAME_MAX_BYTES];
    for (const char *p = a->value, *end = a->value + a->value_len; p < end;) {
        size_t n = strcspn (p, ":, \t\"");
        if (n > (size_t)(end - p))
            n = (size_t)(end - p);
        size_t from = strspn (p, "!*&^"), len = n > from ? n - from : 0;
        while (len > 0 && strchr ("+-=*&!^", p[from + len - 1]))
            len--;
        snprintf (name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1),
                  p + from);
        if (*name && !defined (a->conf, key, name)) {
            struct conf_value place = place_of (a);
            conf_note_add (&place, "%s %s is not defined (%s[%s])", what, name, key, name);
        }
        p += n + 1;
    }
}

static void hosts_check (const struct attribute *a)
{
    char text[256];
    regex_t regex;
    bool found = false;
    snprintf (text, sizeof text, "%.*s", (int)a->value_len, a->value);
    if (strchr (text, ',') || regcomp (&regex, text, REG_EXTENDED | REG_NOSUB) != 0)
        return; /* whoever reads it says more */
    for (uint32_t i = 0; i < a->settings->nodes.node_count && !found; i++)
        found = regexec (&regex, a->settings->nodes.node[i].name, 0, NULL, 0) == 0;
    regfree (&regex);
    if (conf_is_partial (a->conf)) /* Maui's nodes are the resource manager's */
        return;
    if (!found && strcasecmp (text, "ALL") != 0) {
        struct conf_value place = place_of (a);
        conf_note_add (&place, "no node is called %s", text);
    }
}

static void reference_check (const struct attribute *a, void *arg)
{
    bool sr = strcasecmp (a->entry->key, "SRCFG") == 0;
    (void)arg;
    if (strcasecmp (a->name, "QLIST") == 0 || strcasecmp (a->name, "QDEF") == 0 ||
        strcasecmp (a->name, "QOSLIST") == 0 ||
        (!*a->name && strcasecmp (a->entry->key, "RESERVATIONQOSLIST") == 0))
        names_check (a, "QOSCFG", "QoS");
    else if (sr && strcasecmp (a->name, "ACCOUNTLIST") == 0)
        names_check (a, "ACCOUNTCFG", "account");
    else if (sr && strcasecmp (a->name, "CLASSLIST") == 0 && any_defined (a->conf, "CLASSCFG"))
        names_check (a, "CLASSCFG", "class");
    else if (sr && strcasecmp (a->name, "HOSTLIST") == 0)
        hosts_check (a);
}

/* --- does it go together? ----------------------------------------------------------------- */

struct qlist_search {
    const struct attribute *of;
    bool there, contains;
};

static void qlist_look (const struct attribute *a, void *arg)
{
    struct qlist_search *s = arg;
    const struct conf_entry *e = s->of->entry;
    if (strcasecmp (a->name, "QLIST") != 0 || strcasecmp (a->entry->key, e->key) != 0 ||
        !a->entry->index || !e->index || strcmp (a->entry->index, e->index) != 0)
        return;
    s->there = true;
    for (const char *p = a->value, *end = a->value + a->value_len; p < end;) {
        size_t n = strcspn (p, ":,&^ \t\"");
        if (n > (size_t)(end - p))
            n = (size_t)(end - p);
        s->contains = s->contains || (n == s->of->value_len && strncmp (p, s->of->value, n) == 0);
        p += n + 1;
    }
}

static enum prio_sub sub_of (const char *key)
{
    return strcasecmp (key, "USERCFG") == 0      ? PRIO_USER
           : strcasecmp (key, "GROUPCFG") == 0   ? PRIO_GROUP
           : strcasecmp (key, "ACCOUNTCFG") == 0 ? PRIO_ACCOUNT
           : strcasecmp (key, "CLASSCFG") == 0   ? PRIO_CLASS
           : strcasecmp (key, "QOSCFG") == 0     ? PRIO_QOS
                                                 : PRIO_SUBS;
}

static void together_check (const struct attribute *a, void *arg)
{
    const struct policy *policy = a->settings->policy;
    struct conf_value place = place_of (a);
    enum prio_sub sub = sub_of (a->entry->key);
    (void)arg;
    if (strcasecmp (a->name, "QDEF") == 0) {
        struct qlist_search s = {.of = a};
        attributes (a->conf, a->settings, qlist_look, &s);
        if (s.there && !s.contains)
            conf_note_add (&place, "%.*s is not in its QLIST", (int)a->value_len, a->value);
    } else if (strcasecmp (a->name, "FSTARGET") == 0 && policy->fs_policy == FS_NONE) {
        conf_note_add (&place, "has no effect: FSPOLICY is NONE");
    } else if (strcasecmp (a->name, "PRIORITY") == 0 && sub != PRIO_SUBS &&
               (policy->sub_weight[sub] == 0 || policy->component_weight[PRIO_CRED] == 0)) {
        conf_note_add (&place, "has no effect: %sWEIGHT is 0",
                       policy->sub_weight[sub] == 0 ? prio_sub_name (sub) : "CRED");
    } else if (!*a->name && strcasecmp (a->entry->key, "RESERVATIONDEPTH") == 0 &&
               policy->reservation_policy == RESERVATION_NEVER) {
        conf_note_add (&place, "has no effect: RESERVATIONPOLICY is NEVER");
    } else if (!*a->name && strcasecmp (a->entry->key, "RESERVATIONDEPTH") == 0 &&
               policy->backfill_policy == BACKFILL_NONE) {
        conf_note_add (&place,
                       "has no effect: BACKFILLPOLICY is NONE, which makes no reservations");
    }
}

/* --- whose? --------------------------------------------------------------------------------- */

/* USERCFG[ann,bob], GROUPCFG[atlas*]: nobody is called so. */
static void index_check (struct conf *conf, const struct conf_entry *e)
{
    struct conf_value place = {.conf = conf, .key = e->key, .index = e->index, .line = e->line};
    if (e->index && sub_of (e->key) != PRIO_SUBS && strpbrk (e->index, ",:;*?|"))
        conf_note_add (&place,
                       "one name is meant, letter by letter: a list or a pattern is nobody's");
}

/* --- the same name, another meaning ------------------------------------------------------- */

/* Of Maui's own file: what would surprise. */
static void meaning_check (const struct attribute *a, void *arg)
{
    static const struct {
        const char *key, *means;
        bool path; /* one that begins with / means the same */
    } other[] = {
        {"JOBPURGETIME",
         "is here how long the directory of a job that has ended is kept, its output in it", false},
        {"STATDIR", "is below the folder of this file unless it begins with /", true},
        {"LOGFILE", "is below the folder of this file unless it begins with /", true},
        {"FEEDBACKPROGRAM",
         "gets what Maui gives it; its account is NOTIFICATIONACCOUNT, and 0 stands for memory that "
         "was used and for the greatest load",
         false},
        {"NOTIFICATIONPROGRAM",
         "gets the event, its object and a sentence as arguments (nui-local(8))", false},
    };
    (void)arg;
    if (strcasecmp (a->entry->key, "SIMWCACCURACY") == 0 && strncmp (a->value, "0.", 2) == 0) {
        struct conf_value place = place_of (a);
        conf_note_add (&place, "is percent of its limit that a job runs: 50 is half of it");
    }
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (strcasecmp (a->entry->key, other[i].key) == 0 && !(other[i].path && *a->value == '/')) {
            struct conf_value place = place_of (a);
            conf_note_add (&place, "%s", other[i].means);
        }
}

void settings_warn (struct conf *conf, const struct settings *settings)
{
    for (uint32_t i = 0; i < conf_entry_count (conf); i++)
        index_check (conf, conf_entry (conf, i));
    attributes (conf, settings, reference_check, NULL);
    if (settings->policy)
        attributes (conf, settings, together_check, NULL);
    if (conf_is_lenient (conf))
        attributes (conf, settings, meaning_check, NULL);
}
