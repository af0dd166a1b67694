/* RESOURCELIMITPOLICY and RESLIMITPOLICY, one table of words: RESOURCE:POLICY:ACTION[:VIOLATIONTIME], as many as there are resources.
 * Resources that are not measured are told, not refused: nothing kept a job to them before either. */
#include <string.h>
#include <strings.h>

#include "local/conf/policyconf_i.h"
#include "proto/base/text.h"

static int place_of (const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (strcasecmp (word, words[i]) == 0)
            return i;
    return -1;
}

/* Why a job is not kept to it by this parameter; NULL: no such resource. */
static const char *unmeasured (const char *resource)
{
    static const struct {
        const char *name, *why;
    } known[] = {
        {"WALLTIME", "WCVIOLATIONACTION and JOBMAXOVERRUN say it"},
        {"SWAP", "swap is not measured: MEM counts what is resident"},
        {"DISK", "disk is not measured: JOBOUTPUTMAX bounds a job's output"},
        {"CPUTIME", "a job has no limit of processor time of its own: PROC counts what it uses"},
        {"NETWORK", "traffic is not measured"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcasecmp (resource, known[i].name) == 0)
            return known[i].why;
    return NULL;
}

/* The fields of "MEM:EXTENDEDVIOLATION:CANCEL:00:05:00"; the time has colons of its own. */
static int rule_read (const char *resource, char *rest, struct policy_resource_limit *out,
                      struct err *err)
{
    static const char *const policies[] = {"ALWAYS", "EXTENDEDVIOLATION", NULL};
    static const char *const actions[] = {"CANCEL", "REQUEUE", "SUSPEND", "NOTIFY", NULL};
    static const enum limit_action means[] = {LIMIT_CANCEL, LIMIT_REQUEUE, LIMIT_SUSPEND,
                                              LIMIT_NOTIFY};
    char *action = rest ? strchr (rest, ':') : NULL;
    if (action)
        *action++ = '\0';
    char *after = action ? strchr (action, ':') : NULL;
    if (after)
        *after++ = '\0';
    int policy = rest ? place_of (rest, policies) : -1,
        word = action ? place_of (action, actions) : -1;
    if (policy < 0)
        return err_set (
            err, ERR_INVALID,
            "%.40s: wanted RESOURCE:POLICY:ACTION[:TIME], its policy ALWAYS or EXTENDEDVIOLATION",
            resource);
    if (word < 0)
        return err_set (err, ERR_INVALID, "%.40s: its action is CANCEL, REQUEUE, SUSPEND or NOTIFY",
                        resource);
    duration_us d = 0;
    int rc = policy == 1 && after ? duration_parse (after, &d, err) : 0;
    if (rc == 0)
        *out = (struct policy_resource_limit){.action = means[word], .after = d};
    return rc;
}

int policy_set_resource_limit (void *target, const struct conf_value *value, struct err *err)
{
    static const char *const resources[] = {"PROC",    "MEM",    "PROCS", "MEMORY",
                                            "JOBPROC", "JOBMEM", NULL};
    struct policy *p = ((struct policy_file *)target)->policy;
    bool full = strcasecmp (value->key, "RESOURCELIMITPOLICY") == 0;
    for (uint32_t i = 0; i < value->word_count; i++) {
        char text[128];
        struct policy_resource_limit rule;
        text_printf (text, sizeof text, "%s", value->word[i]);
        char *rest = strchr (text, ':');
        if (rest)
            *rest++ = '\0';
        const char *why = unmeasured (text);
        int which = place_of (text, resources);
        if (why) {
            conf_note_add (value, "%s has no effect: %s", text, why);
            continue;
        }
        if (which < 0)
            return err_set (err, ERR_INVALID, "'%.40s' is no resource: MEM or PROC", text);
        if (rule_read (text, rest, &rule, err) != 0)
            return err->code;
        struct policy_resource_limit *now = &p->resource_limit[which % RESOURCE_LIMITS];
        rule.by_full_name = full;
        if (full || !now->by_full_name)
            *now = rule;
    }
    return value->word_count > 0 ? 0 : err_set (err, ERR_INVALID, "has no value");
}
