/* policyconf_older: limits as Maui 3.0 wrote them, before there was USERCFG. MAXJOBPERUSERPOLICY ON has MAXJOBPERUSERCOUNT
 * kept, and softly SMAXJOBPERUSERCOUNT: they are what USERCFG[DEFAULT] MAXJOB=soft,hard says, which counts more where it
 * stands. Read into a policy_file, taken over once the whole file is known. */
#include <string.h>
#include <strings.h>

#include "local/conf/policyconf_i.h"
#include "proto/base/text.h"

enum older_part { OLDER_POLICY, OLDER_HARD, OLDER_SOFT, OLDER_PARTS };

struct older_limit {
    struct older_limit *next;
    enum cred_kind of;
    char limit[16]; /* "JOB", "JOBQUEUED" … */
    struct conf_value value[OLDER_PARTS];
    bool said[OLDER_PARTS];
    bool on, counted; /* POLICY says so; MAX…COUNT said how much, not MAX… alone */
};

/* MAXJOBQUEUEDPERUSERPOLICY to "JOBQUEUED", user, policy. Names are those of the table below. */
static enum older_part name_parts (const char *key, char limit[16], enum cred_kind *of,
                                   bool *counted)
{
    bool soft = *key == 'S';
    const char *from = key + (soft ? 4 : 3), *per = strstr (from, "PER"), *rest = per + 3;
    text_printf (limit, 16, "%.*s", (int)(per - from), from);
    for (int k = 0; k < CRED_KINDS; k++) {
        size_t len = strlen (cred_kind_name ((enum cred_kind)k));
        if (strncasecmp (rest, cred_kind_name ((enum cred_kind)k), len) == 0) {
            *of = (enum cred_kind)k;
            rest += len;
            break;
        }
    }
    *counted = strcmp (rest, "COUNT") == 0;
    return strcmp (rest, "POLICY") == 0 ? OLDER_POLICY : soft ? OLDER_SOFT : OLDER_HARD;
}

static int set_older (void *target, const struct conf_value *value, struct err *err)
{
    struct policy_file *file = target;
    char limit[16];
    enum cred_kind of = CRED_USER;
    bool counted;
    enum older_part part = name_parts (value->key, limit, &of, &counted);
    struct older_limit **at = &file->older;
    while (*at && ((*at)->of != of || strcmp ((*at)->limit, limit) != 0))
        at = &(*at)->next;
    struct older_limit *l = *at;
    if (!l) {
        *at = l = arena_new (file->policy->arena, struct older_limit);
        l->of = of;
        text_printf (l->limit, sizeof l->limit, "%s", limit);
    }
    l->value[part] = *value;
    l->counted = part == OLDER_HARD ? counted : l->counted;
    l->said[part] = part == OLDER_POLICY || strcmp (value->text, "0") != 0; /* 0: none, as there */
    if (part != OLDER_POLICY)
        return policy_limit_check (limit, value->text, err);
    l->on = strcasecmp (value->text, "ON") == 0 || strcasecmp (value->text, "TRUE") == 0;
    if (!l->on && strcasecmp (value->text, "OFF") != 0 && strcasecmp (value->text, "FALSE") != 0)
        return err_set (err, ERR_INVALID, "'%.60s' is not ON or OFF", value->text);
    return 0;
}

static int take (struct policy *p, const struct older_limit *l, struct err *err)
{
    char text[2 * QUANTITY_TEXT_MAX];
    const char *hard = l->said[OLDER_HARD] ? l->value[OLDER_HARD].text : "-1";
    if (l->said[OLDER_SOFT] && !strchr (hard, ',') && strcmp (l->limit, "JOBQUEUED") != 0)
        text_printf (text, sizeof text, "%s,%s", l->value[OLDER_SOFT].text, hard);
    else /* 4,8 is both already; of idle jobs there is a hard one only */
        text_printf (text, sizeof text, "%s", hard);
    return policy_default_limit (p, l->of, l->limit, text, err);
}

/* COUNT alone limits nobody, there and here. */
static void not_on (const struct older_limit *l, const struct conf_value *value)
{
    const char *key = value->key + (*value->key == 'S');
    size_t len = strlen (key) - strlen ("COUNT");
    conf_note_add (value, "has no effect, as in Maui: %.*sPOLICY is %s", (int)len, key,
                   l->said[OLDER_POLICY] ? "OFF" : "not ON");
}

int policy_older_take (struct policy_file *file, struct err *err)
{
    int rc = 0;
    for (const struct older_limit *l = file->older; l && rc == 0; l = l->next) {
        bool bare = l->said[OLDER_HARD] && !l->counted;
        enum older_part first = l->said[OLDER_HARD] ? OLDER_HARD : OLDER_SOFT;
        if (!l->said[OLDER_HARD] && !l->said[OLDER_SOFT]) {
            if (l->on)
                conf_note_add (&l->value[OLDER_POLICY], "has no effect: no COUNT says how much");
        } else if (!l->on && !bare) {
            not_on (l, &l->value[first]);
        } else {
            rc = take (file->policy, l, err);
            if (rc != 0)
                rc = err_prefix (err, "line %u: %s", l->value[first].line, l->value[first].key);
        }
    }
    return rc;
}

#define ROW(key, means)                                                                            \
    {                                                                                              \
        .name = key, .type = CONF_CALL, .set = set_older, .flags = CONF_F_INDEX | CONF_F_GUARDS,   \
        .help = means                                                                              \
    }
#define LIMIT(limit, per, attr)                                                                    \
    ROW ("MAX" limit "PER" per "POLICY", "means " per "CFG[DEFAULT] " attr),                       \
        ROW ("MAX" limit "PER" per "COUNT", "means " per "CFG[DEFAULT] " attr),                    \
        ROW ("SMAX" limit "PER" per "COUNT", "means " per "CFG[DEFAULT] " attr),                   \
        ROW ("MAX" limit "PER" per, "means " per "CFG[DEFAULT] " attr)
#define LIMITS_PER(per)                                                                            \
    LIMIT ("JOB", per, "MAXJOB=soft,hard"), LIMIT ("JOBQUEUED", per, "MAXIJOB=hard"),              \
        LIMIT ("PROC", per, "MAXPROC=soft,hard"), LIMIT ("NODE", per, "MAXNODE=soft,hard"),        \
        LIMIT ("PS", per, "MAXPS=soft,hard"), LIMIT ("PE", per, "MAXPE=soft,hard"),                \
        LIMIT ("WC", per, "MAXWC=soft,hard"), LIMIT ("MEM", per, "MAXMEM=soft,hard")

const struct conf_param policy_older_params[] = {
    LIMITS_PER ("USER"),  LIMITS_PER ("GROUP"), LIMITS_PER ("ACCOUNT"),
    LIMITS_PER ("CLASS"), LIMITS_PER ("QOS"),   {0},
};
