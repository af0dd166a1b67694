/* acl: parses access lists, owners and flags, and spells them again for people. SRCFG in
 * maui.cfg and nui's reservation commands come through here, so that both mean the same. It only
 * builds a list: who is admitted is decided by local/core/access.c. */
#include "local/conf/acl.h"
#include "proto/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void acl_list_free (struct acl_list *list)
{
    free (list->entry);
    *list = (struct acl_list){0};
}

static int append (struct acl_list *list, const struct acl_entry *entry, struct err *err)
{
    if (list->count >= ACL_ENTRIES_MAX)
        return err_set (err, ERR_LIMIT, "more than %d entries in one access list", ACL_ENTRIES_MAX);
    list->entry = mem_grow (list->entry, &list->cap, list->count + 1, sizeof *list->entry);
    list->entry[list->count++] = *entry;
    return 0;
}

/* --- modifiers ------------------------------------------------------------------------------ */

static bool modifier (char c, struct acl_entry *entry)
{
    switch (c) {
    case '+':
        entry->affinity = AFFINITY_POSITIVE;
        return true;
    case '-':
        entry->affinity = AFFINITY_NEGATIVE;
        return true;
    case '=':
        entry->affinity = AFFINITY_NEUTRAL;
        return true;
    case '!':
        entry->deny = true;
        return true;
    case '*':
        entry->required = true;
        return true;
    default:
        return false;
    }
}

/* The name without its modifiers, which go into *entry. */
static int word_read (const char *word, size_t len, char *name, size_t cap, struct acl_entry *entry,
                      struct err *err)
{
    while (len > 1 && modifier (*word, entry)) {
        word++;
        len--;
    }
    while (len > 0 && modifier (word[len - 1], entry))
        len--;
    if (len == 0 || len >= cap)
        return err_set (err, ERR_INVALID, "'%.*s' is no name in an access list",
                        (int)(len < 60 ? len : 60), word);
    snprintf (name, cap, "%.*s", (int)len, word);
    return 0;
}

typedef int (*word_fn) (void *arg, const char *name, struct acl_entry *entry, struct err *err);

static int words (struct acl_list *list, const char *text, uint8_t type, word_fn fn, void *arg,
                  struct err *err)
{
    uint32_t before = list->count;
    int rc = 0;

    while (rc == 0 && *text) {
        size_t n = strcspn (text, ",: \t");
        struct acl_entry entry = {.type = type};
        char name[64];
        if (n > 0) {
            rc = word_read (text, n, name, sizeof name, &entry, err);
            if (rc == 0)
                rc = fn (arg, name, &entry, err);
            if (rc == 0)
                rc = append (list, &entry, err);
        }
        text += n + (text[n] != 0);
    }
    if (rc != 0)
        list->count = before;
    return rc;
}

/* --- credentials and attributes --------------------------------------------------------------- */

static int cred_word (void *arg, const char *name, struct acl_entry *entry, struct err *err)
{
    struct cred_names *names = arg;
    enum cred_kind kind = (enum cred_kind)entry->type;

    if (name_check (cred_kind_name (kind), name, err) != 0)
        return ERR_INVALID;
    entry->value = strtab_intern (names->tab[kind], name);
    return 0;
}

int acl_add_creds (struct acl_list *list, struct cred_names *names, enum cred_kind kind,
                   const char *text, struct err *err)
{
    return words (list, text, (uint8_t)kind, cred_word, names, err);
}

static const char *const attr_name[JOBATTR_COUNT] = {"GRID",      "COALLOCATED", "PREEMPTEE",
                                                     "PREEMPTOR", "INTERACTIVE", "RESTARTABLE"};

static int attr_word (void *arg, const char *name, struct acl_entry *entry, struct err *err)
{
    (void)arg;
    for (int i = 0; i < JOBATTR_COUNT; i++) {
        if (strcasecmp (name, attr_name[i]) == 0) {
            entry->value = 1 << i;
            return 0;
        }
    }
    return err_set (err, ERR_INVALID,
                    "'%s' is no job attribute: GRID, COALLOCATED, PREEMPTEE, PREEMPTOR, "
                    "INTERACTIVE or RESTARTABLE",
                    name);
}

int acl_add_jobattrs (struct acl_list *list, const char *text, struct err *err)
{
    return words (list, text, ACL_JOBATTR, attr_word, NULL, err);
}

/* --- durations and processors ------------------------------------------------------------------- */

static const struct {
    const char *text;
    enum acl_compare how;
} comparison[] = {{"<=", ACL_LE}, {">=", ACL_GE}, {"==", ACL_EQ}, {"!=", ACL_NE},
                  {"<", ACL_LT},  {">", ACL_GT},  {"=", ACL_EQ}};

/* The value behind the comparison, if any, and before the modifiers. */
static int compared_read (const char *text, char *value, size_t cap, struct acl_entry *entry,
                          struct err *err)
{
    size_t len;

    entry->compare = ACL_LE;
    for (size_t i = 0; i < sizeof comparison / sizeof *comparison; i++) {
        size_t n = strlen (comparison[i].text);
        if (strncmp (text, comparison[i].text, n) != 0)
            continue;
        entry->compare = (uint8_t)comparison[i].how;
        text += n;
        break;
    }
    len = strlen (text);
    while (len > 0 && modifier (text[len - 1], entry))
        len--;
    if (len == 0 || len >= cap)
        return err_set (err, ERR_INVALID, "'%.60s' has no value", text);
    snprintf (value, cap, "%.*s", (int)len, text);
    return 0;
}

int acl_add_duration (struct acl_list *list, const char *text, struct err *err)
{
    struct acl_entry entry = {.type = ACL_DURATION};
    char value[64];
    duration_us d;
    int rc = compared_read (text, value, sizeof value, &entry, err);

    if (rc == 0)
        rc = duration_parse (value, &d, err);
    if (rc == 0 && d <= 0)
        rc = err_set (err, ERR_INVALID, "'%.60s': a time above zero", text);
    if (rc != 0)
        return rc;
    entry.value = d;
    return append (list, &entry, err);
}

int acl_add_procs (struct acl_list *list, const char *text, struct err *err)
{
    struct acl_entry entry = {.type = ACL_PROCS};
    char value[64];
    uint64_t n;
    int rc = compared_read (text, value, sizeof value, &entry, err);

    if (rc == 0)
        rc = uint_parse (value, "processors", 1, INT32_MAX, &n, err);
    if (rc != 0)
        return rc;
    entry.value = (int64_t)n;
    return append (list, &entry, err);
}

/* --- owners and flags --------------------------------------------------------------------------- */

int acl_owner (struct cred_names *names, const char *text, struct acl_entry *out, struct err *err)
{
    static const char *const word[CRED_KINDS] = {"USER", "GROUP", "ACCOUNT", "CLASS", "QOS"};
    size_t n = strcspn (text, ":=");
    const char *name = text + n + strspn (text + n, ":=");

    *out = (struct acl_entry){0};
    for (int k = 0; k < CRED_KINDS; k++) {
        bool same = strlen (word[k]) == n && strncasecmp (text, word[k], n) == 0;
        if (!same && !(k == CRED_ACCOUNT && n == 4 && strncasecmp (text, "ACCT", 4) == 0))
            continue;
        if (name_check (cred_kind_name ((enum cred_kind)k), name, err) != 0)
            return ERR_INVALID;
        out->type = (uint8_t)k;
        out->value = strtab_intern (names->tab[k], name);
        return 0;
    }
    return err_set (err, ERR_INVALID,
                    "owner '%.60s': say USER:name, GROUP:name, ACCOUNT:name, CLASS:name or "
                    "QOS:name",
                    text);
}

static const struct {
    const char *name;
    uint32_t bit;
} flag_name[] = {
    {"SINGLEUSE", RSV_SINGLEUSE},
    {"BYNAME", RSV_BYNAME},
    {"META", RSV_META},
    {"PREEMPTEE", RSV_PREEMPTEE},
    {"TIMEFLEX", RSV_TIMEFLEX},
    {"SPACEFLEX", RSV_SPACEFLEX},
    {"DEDICATEDNODE", RSV_DEDICATEDNODE},
    {"DEDICATEDRESOURCE", RSV_DEDICATEDRESOURCE},
    {"FORCE", RSV_FORCED},
    {"OWNERPREEMPT", RSV_OWNERPREEMPT},
    {"SHARED", RSV_SHARED},
    {"STANDINGRES", RSV_STANDING}, /* told, never asked for */
};

const char *acl_flag_name (uint32_t bit)
{
    for (size_t i = 0; i < sizeof flag_name / sizeof *flag_name; i++) {
        if (flag_name[i].bit == bit)
            return flag_name[i].name;
    }
    return NULL;
}

int acl_flags (const char *text, uint32_t *out, struct err *err)
{
    uint32_t flags = 0;

    while (*text) {
        size_t n = strcspn (text, ",:| \t"), i = 0;
        while (i < sizeof flag_name / sizeof *flag_name &&
               !(strlen (flag_name[i].name) == n && strncasecmp (text, flag_name[i].name, n) == 0))
            i++;
        if (n > 0 &&
            (i == sizeof flag_name / sizeof *flag_name || flag_name[i].bit == RSV_STANDING))
            return err_set (err, ERR_INVALID,
                            "'%.*s' is no flag of a reservation: SINGLEUSE, BYNAME, META, "
                            "PREEMPTEE, TIMEFLEX, SPACEFLEX, DEDICATEDNODE, DEDICATEDRESOURCE, "
                            "FORCE, OWNERPREEMPT, SHARED",
                            (int)(n < 40 ? n : 40), text);
        if (n > 0)
            flags |= flag_name[i].bit;
        text += n + (text[n] != 0);
    }
    *out = flags;
    return 0;
}

/* --- text ----------------------------------------------------------------------------------- */

static const char *value_text (const struct acl_entry *e, const struct cred_names *names,
                               char buf[QUANTITY_TEXT_MAX])
{
    if (e->type < CRED_KINDS)
        return cred_name (names, (enum cred_kind)e->type, (uint32_t)e->value);
    if (e->type == ACL_DURATION)
        return duration_format (e->value, buf);
    if (e->type == ACL_PROCS) {
        snprintf (buf, QUANTITY_TEXT_MAX, "%lld", (long long)e->value);
        return buf;
    }
    for (int i = 0; i < JOBATTR_COUNT; i++) {
        if (e->value == 1 << i)
            return attr_name[i];
    }
    return "?";
}

char *acl_entry_text (const struct acl_entry *e, const struct cred_names *names,
                      char out[ACL_TEXT_MAX])
{
    static const char *const type[ACL_TYPES] = {"USER", "GROUP",   "ACCT",     "CLASS",
                                                "QOS",  "JOBATTR", "DURATION", "PROC"};
    const char *how = "==";
    const char *mark = e->deny || e->required             ? ""
                       : e->affinity == AFFINITY_NEGATIVE ? "-"
                       : e->affinity == AFFINITY_NEUTRAL  ? "="
                                                          : "+";
    char buf[QUANTITY_TEXT_MAX];

    for (size_t i = 0; e->type >= ACL_DURATION && i < sizeof comparison / sizeof *comparison; i++) {
        if (comparison[i].how == (enum acl_compare)e->compare) {
            how = comparison[i].text;
            break;
        }
    }
    snprintf (out, ACL_TEXT_MAX, "%s%s%s%.80s%s",
              e->deny       ? "!"
              : e->required ? "*"
                            : "",
              type[e->type], how, value_text (e, names, buf), mark);
    return out;
}
