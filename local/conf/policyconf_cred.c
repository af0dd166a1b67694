/* policyconf_cred: attributes of USERCFG, GROUPCFG, ACCOUNTCFG, CLASSCFG, QOSCFG, SYSCFG and PARCFG. */
#include <assert.h>
#include <string.h>
#include <strings.h>

#include "local/conf/policyconf_i.h"
#include "proto/base/text.h"
#include "local/core/types.h"

/* --- whose record ------------------------------------------------------------------------- */

static int record_of (void *target, enum cred_kind kind, const char *index, void **record_out)
{
    struct policy *p = ((struct policy_file *)target)->policy;
    struct cred_ref *ref = arena_new (p->arena, struct cred_ref);
    ref->policy = p;
    ref->kind = kind;
    ref->id = strtab_intern (p->names->tab[kind], index);
    policy_cred_edit (p, kind, ref->id);
    *record_out = ref;
    return 0;
}

#define RECORD_FUNCTION(name, kind)                                                                \
    int policy_record_##name (void *target, const char *index, void **record_out, struct err *err) \
    {                                                                                              \
        (void)err;                                                                                 \
        return record_of (target, kind, index, record_out);                                        \
    }

RECORD_FUNCTION (user, CRED_USER)
RECORD_FUNCTION (group, CRED_GROUP)
RECORD_FUNCTION (account, CRED_ACCOUNT)
RECORD_FUNCTION (class, CRED_CLASS)
RECORD_FUNCTION (qos, CRED_QOS)

int policy_record_system (void *target, const char *index, void **record_out, struct err *err)
{
    (void)index; /* SYSCFG has one object, whatever it is called */
    (void)err;
    *record_out = ((struct policy_file *)target)->policy;
    return 0;
}

int policy_record_partition (void *target, const char *index, void **record_out, struct err *err)
{
    struct policy *p = ((struct policy_file *)target)->policy;
    uint32_t number = 0;
    int rc = policy_partition_number (p, index, &number, err);
    if (rc)
        return rc;
    if (!p->partition_limits)
        p->partition_limits =
            arena_array (p->arena, PARTITIONS_MAX + 1, sizeof *p->partition_limits);
    p->partitions_limited |= partition_bit (number);
    *record_out = &p->partition_limits[number];
    return 0;
}

static struct policy_cred *edit (void *target)
{
    struct cred_ref *ref = target;
    return policy_cred_edit (ref->policy, ref->kind, ref->id);
}

enum { CRED_PRIORITY_MAX = 1000000000 };

/* --- plain attributes ---------------------------------------------------------------------- */

static int set_priority (void *target, const struct conf_value *value, struct err *err)
{
    int64_t priority;
    int rc = int_parse (value->text, "the priority", -CRED_PRIORITY_MAX, CRED_PRIORITY_MAX,
                        &priority, err);
    if (rc)
        return rc;
    struct policy_cred *c = edit (target);
    c->priority = (double)priority;
    c->set |= CRED_SET_PRIORITY;
    return 0;
}

static int set_fs_target (void *target, const struct conf_value *value, struct err *err)
{
    static const struct {
        char suffix;
        enum fs_target_type type;
    } known[] = {{'+', FS_TARGET_FLOOR},
                 {'-', FS_TARGET_CEILING},
                 {'^', FS_TARGET_CAP_ABSOLUTE},
                 {'%', FS_TARGET_CAP_RELATIVE}};
    char number[QUANTITY_TEXT_MAX];
    int64_t ppm;
    size_t len = strlen (value->text);
    enum fs_target_type type = FS_TARGET_TARGET;
    for (size_t i = 0; len && i < sizeof known / sizeof known[0]; i++) {
        if (value->text[len - 1] == known[i].suffix) {
            type = known[i].type;
            len--;
            break;
        }
    }
    if (len >= sizeof number)
        return err_set (err, ERR_INVALID, "'%.60s' is no fairshare target", value->text);
    memcpy (number, value->text, len);
    number[len] = 0;
    int rc = ppm_parse (number, "the fairshare target", &ppm, err);
    if (rc)
        return rc;
    bool beyond = type != FS_TARGET_CAP_ABSOLUTE && ppm > 100 * 1000000;
    if (beyond && conf_is_lenient (value->conf))
        conf_note_add (value, "%.60s percent is more than there is: who has it is always below it",
                       value->text);
    else if (ppm < 0 || beyond)
        return err_set (err, ERR_INVALID, "a fairshare target is 0 to 100 percent, not %.60s",
                        value->text);
    struct policy_cred *c = edit (target);
    c->fs_target = (double)ppm / 1e6;
    c->fs_target_type = type;
    c->set |= CRED_SET_FSTARGET;
    return 0;
}

int policy_qos_list (struct policy *p, const char *text, uint32_t **qos_out, uint32_t *count_out,
                     struct err *err)
{
    static const char separators[] = ":, \t";
    uint32_t *qos = arena_array (p->arena, strlen (text) / 2 + 1, sizeof qos[0]);
    uint32_t count = 0;
    for (const char *at = text; *(at += strspn (at, separators));) {
        size_t len = strcspn (at, separators);
        char name[64];
        if (len >= sizeof name)
            return err_set (err, ERR_INVALID, "'%.60s' is too long for the name of a QoS", at);
        memcpy (name, at, len);
        name[len] = 0;
        int rc = name_check ("QoS", name, err);
        if (rc)
            return rc;
        qos[count++] = strtab_intern (p->names->tab[CRED_QOS], name);
        at += len;
    }
    if (count == 0)
        return err_set (err, ERR_INVALID, "no QoS is named");
    *qos_out = qos;
    *count_out = count;
    return 0;
}

static int set_qlist (void *target, const struct conf_value *value, struct err *err)
{
    struct cred_ref *ref = target;
    char *text = arena_strdup (ref->policy->arena, value->text);
    size_t len = strlen (text);
    enum qlist_mode mode = QLIST_UNION;
    if (len && (text[len - 1] == '&' || text[len - 1] == '^')) {
        mode = text[len - 1] == '&' ? QLIST_INTERSECT : QLIST_EXCLUSIVE;
        text[len - 1] = 0;
    }
    uint32_t *qos, count;
    int rc = policy_qos_list (ref->policy, text, &qos, &count, err);
    if (!rc)
        policy_qlist_set (ref->policy, edit (target), qos, count, mode);
    return rc;
}

static int set_qdef (void *target, const struct conf_value *value, struct err *err)
{
    struct cred_ref *ref = target;
    int rc = name_check ("QoS", value->text, err);
    if (rc)
        return rc;
    struct policy_cred *c = edit (target);
    c->qdef = strtab_intern (ref->policy->names->tab[CRED_QOS], value->text);
    c->set |= CRED_SET_QDEF;
    return 0;
}

/* --- limits -------------------------------------------------------------------------------- */

static const struct {
    const char *name; /* after MAX; MINPROC stands whole */
    enum limit_kind kind;
} limit_names[] = {{"JOB", LIMIT_JOB}, {"PROC", LIMIT_PROC}, {"NODE", LIMIT_NODE}, {"PS", LIMIT_PS},
                   {"PE", LIMIT_PE},   {"MEM", LIMIT_MEM},   {"WC", LIMIT_WC}};

static enum limit_kind limit_of (const char *name)
{
    for (size_t i = 0; i < sizeof limit_names / sizeof limit_names[0]; i++) {
        size_t len = strlen (limit_names[i].name);
        if (strncasecmp (name, limit_names[i].name, len) == 0 &&
            strcasecmp (name + len, name[len] ? "S" : "") == 0)
            return limit_names[i].kind;
    }
    assert (!"an attribute of the table");
    return LIMIT_JOB;
}

static int amount_parse (enum limit_kind kind, const char *text, int64_t *out, struct err *err)
{
    duration_us d;
    int rc;
    static const char *const none[] = {"-1", "UNLIMITED", "INFINITY", "NOLIMIT"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        if (strcasecmp (text, none[i]) != 0)
            continue;
        *out = LIMIT_UNLIMITED;
        return 0;
    }
    switch (kind) {
    case LIMIT_MEM:
        return memory_parse (text, out, err);
    case LIMIT_WC:
        rc = duration_parse (text, &d, err);
        *out = rc ? 0 : d == TIME_US_MAX ? LIMIT_UNLIMITED : d / US_PER_S;
        return rc;
    case LIMIT_PE:
        rc = ppm_parse (text, "the limit", out, err);
        if (!rc && *out < 0)
            rc = err_set (err, ERR_INVALID, "a limit is 0 or more, not %.60s", text);
        return rc;
    default:
        return int_parse (text, "the limit", 0, INT64_C (1) << 53, out, err);
    }
}

/* "hard" or "soft,hard" */
static int soft_hard_parse (enum limit_kind kind, const char *text, int64_t value[LIMIT_LEVELS],
                            struct err *err)
{
    char soft[QUANTITY_TEXT_MAX];
    const char *comma = strchr (text, ',');
    if (!comma) {
        int rc = amount_parse (kind, text, &value[LIMIT_HARD], err);
        value[LIMIT_SOFT] = value[LIMIT_HARD];
        return rc;
    }
    size_t len = (size_t)(comma - text);
    if (len >= sizeof soft)
        return err_set (err, ERR_INVALID, "'%.60s' is no limit", text);
    memcpy (soft, text, len);
    soft[len] = 0;
    int rc = amount_parse (kind, soft, &value[LIMIT_SOFT], err);
    if (!rc)
        rc = amount_parse (kind, comma + 1 + strspn (comma + 1, " \t"), &value[LIMIT_HARD], err);
    if (!rc && (kind == LIMIT_MINPROC ? value[LIMIT_SOFT] < value[LIMIT_HARD]
                                      : value[LIMIT_SOFT] > value[LIMIT_HARD]))
        rc = err_set (err, ERR_INVALID, "the soft limit of '%.60s' is looser than the hard one",
                      text);
    return rc;
}

static int active_set (struct policy_limits *l, enum limit_kind kind, const char *text,
                       struct err *err)
{
    int64_t value[LIMIT_LEVELS];
    int rc = soft_hard_parse (kind, text, value, err);
    if (rc)
        return rc;
    l->active_mask |= 1u << kind;
    l->active[LIMIT_SOFT][kind] = value[LIMIT_SOFT];
    l->active[LIMIT_HARD][kind] = value[LIMIT_HARD];
    return 0;
}

static int idle_set (struct policy_limits *l, enum limit_kind kind, const char *text,
                     struct err *err)
{
    int64_t value;
    int rc = amount_parse (kind, text, &value, err);
    if (rc)
        return rc;
    l->idle_mask |= 1u << kind;
    l->idle[kind] = value;
    return 0;
}

/* "JOBQUEUED": jobs that wait. */
static enum limit_kind older_kind (const char *limit, bool *idle)
{
    *idle = strcmp (limit, "JOBQUEUED") == 0;
    return *idle ? LIMIT_JOB : limit_of (limit);
}

int policy_limit_check (const char *limit, const char *text, struct err *err)
{
    bool idle;
    int64_t value[LIMIT_LEVELS];
    enum limit_kind kind = older_kind (limit, &idle);
    return idle ? amount_parse (kind, text, value, err) : soft_hard_parse (kind, text, value, err);
}

int policy_default_limit (struct policy *policy, enum cred_kind kind, const char *limit,
                          const char *text, struct err *err)
{
    bool idle;
    enum limit_kind which = older_kind (limit, &idle);
    uint32_t id = strtab_intern (policy->names->tab[kind], "DEFAULT");
    struct policy_limits *l = &policy_cred_edit (policy, kind, id)->limits;
    if ((idle ? l->idle_mask : l->active_mask) & 1u << which)
        return 0;
    return idle ? idle_set (l, which, text, err) : active_set (l, which, text, err);
}

/* "USER" or "USER:steve" of MAXJOB[USER:steve]. */
static int cross_other (struct policy *p, enum cred_kind own, const char *index,
                        struct policy_cross *x, struct err *err)
{
    const char *colon = strchr (index, ':');
    size_t len = colon ? (size_t)(colon - index) : strlen (index);
    for (int k = 0; k < CRED_KINDS; k++) {
        const char *name = cred_kind_name ((enum cred_kind)k);
        bool match = (strlen (name) == len && strncasecmp (name, index, len) == 0) ||
                     (k == CRED_ACCOUNT && len == 4 && strncasecmp ("ACCT", index, 4) == 0);
        if (!match)
            continue;
        if (k == (int)own)
            break;
        x->other_kind = (enum cred_kind)k;
        x->other_id = colon && strcmp (colon + 1, "DEFAULT") != 0
                          ? strtab_intern (p->names->tab[k], colon + 1)
                          : CRED_NONE;
        return 0;
    }
    return err_set (err, ERR_INVALID,
                    "[%.60s] is no other kind of credential (USER, GROUP, "
                    "ACCOUNT, CLASS, QOS) or one of them, as in [USER:steve]",
                    index);
}

static int cross_set (struct cred_ref *ref, const struct conf_value *value, bool idle,
                      enum limit_kind kind, struct err *err)
{
    struct policy_cross x = {.idle = idle, .limit = kind};
    int rc = cross_other (ref->policy, ref->kind, value->attr_index, &x, err);
    if (!rc && idle) {
        rc = amount_parse (kind, value->text, &x.value[LIMIT_HARD], err);
        x.value[LIMIT_SOFT] = x.value[LIMIT_HARD];
    }
    if (!rc && !idle)
        rc = soft_hard_parse (kind, value->text, x.value, err);
    if (!rc)
        policy_cross_set (ref->policy, edit (ref), &x);
    return rc;
}

/* MAXJOBPERUSER, MAXPROCPERGROUP …: MAXJOB[USER] as Maui's older files write it. */
static int set_max_per (void *target, const struct conf_value *value, struct err *err)
{
    const char *per = strstr (value->attr, "PER");
    char name[16];
    struct conf_value cross = *value;

    text_printf (name, sizeof name, "%.*s", (int)(per - value->attr) - 3, value->attr + 3);
    cross.attr_index = per + 3;
    return cross_set (target, &cross, false, limit_of (name), err);
}

/* MAXJOB …, MAXJOB[USER] … */
static int set_max (void *target, const struct conf_value *value, struct err *err)
{
    enum limit_kind kind = limit_of (value->attr + strlen ("MAX"));
    if (value->attr_index)
        return cross_set (target, value, false, kind, err);
    return active_set (&edit (target)->limits, kind, value->text, err);
}

static int set_min_proc (void *target, const struct conf_value *value, struct err *err)
{
    if (value->attr_index)
        return cross_set (target, value, false, LIMIT_MINPROC, err);
    return active_set (&edit (target)->limits, LIMIT_MINPROC, value->text, err);
}

static int set_max_idle (void *target, const struct conf_value *value, struct err *err)
{
    enum limit_kind kind = limit_of (value->attr + strlen ("MAXI"));
    if (value->attr_index)
        return cross_set (target, value, true, kind, err);
    return idle_set (&edit (target)->limits, kind, value->text, err);
}

static int set_partition_limit (void *target, const struct conf_value *value, struct err *err)
{
    bool least = strcmp (value->attr, "MINPROC") == 0;
    return active_set (target, least ? LIMIT_MINPROC : limit_of (value->attr + strlen ("MAX")),
                       value->text, err);
}

static int set_system_max (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = target;
    return active_set (&p->system_limits, limit_of (value->attr + strlen ("MAX")), value->text,
                       err);
}

static int set_system_min_proc (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = target;
    return active_set (&p->system_limits, LIMIT_MINPROC, value->text, err);
}

static int set_system_max_idle (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = target;
    return idle_set (&p->system_limits, limit_of (value->attr + strlen ("MAXI")), value->text, err);
}

static int set_system_qlist (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = target;
    return policy_qos_list (p, value->text, &p->system_qlist, &p->system_qlist_count, err);
}

static int set_system_qdef (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = target;
    int rc = name_check ("QoS", value->text, err);
    if (rc == 0)
        p->system_qdef = strtab_intern (p->names->tab[CRED_QOS], value->text);
    return rc;
}

/* --- QoS ---------------------------------------------------------------------------------- */

static int set_override (void *target, const struct conf_value *value, struct err *err)
{
    return active_set (&edit (target)->qos->override, limit_of (value->attr + strlen ("OMAX")),
                       value->text, err);
}

static int set_override_idle (void *target, const struct conf_value *value, struct err *err)
{
    return idle_set (&edit (target)->qos->override, limit_of (value->attr + strlen ("OMAXI")),
                     value->text, err);
}

/* "MAXPROCPERJOB", "MAXWCLIMITPERJOB", "MAX.PROC", "MAX.WCLIMIT" */
static int per_job_set (struct policy_limits *l, const struct conf_value *value, struct err *err)
{
    const char *what = value->attr + (value->attr[3] == '.' ? 4 : 3);
    enum limit_kind kind = strncasecmp (what, "WC", 2) == 0     ? LIMIT_WC
                           : strncasecmp (what, "PS", 2) == 0   ? LIMIT_PS
                           : strncasecmp (what, "NODE", 4) == 0 ? LIMIT_NODE
                                                                : LIMIT_PROC;
    int64_t most;
    int rc = amount_parse (kind, value->text, &most, err);
    if (rc)
        return rc;
    l->per_job_mask |= 1u << kind;
    l->per_job[kind] = most;
    return 0;
}

static int set_per_job (void *target, const struct conf_value *value, struct err *err)
{
    return per_job_set (&edit (target)->limits, value, err);
}

static int set_system_per_job (void *target, const struct conf_value *value, struct err *err)
{
    struct policy *p = target;
    return per_job_set (&p->system_limits, value, err);
}

static int set_override_job (void *target, const struct conf_value *value, struct err *err)
{
    enum limit_kind kind = limit_of (value->attr + strlen ("OMAXJ"));
    int64_t most;
    int rc = amount_parse (kind, value->text, &most, err);
    if (rc)
        return rc;
    struct policy_qos *q = edit (target)->qos;
    q->job_override_mask |= 1u << kind;
    q->job_override[kind] = most;
    return 0;
}

static int set_weight (void *target, const struct conf_value *value, struct err *err)
{
    int64_t ppm;
    int rc = ppm_parse (value->text, "the weight", &ppm, err);
    if (rc)
        return rc;
    struct policy_cred *c = edit (target);
    bool qt = strcmp (value->attr, "QTWEIGHT") == 0;
    *(qt ? &c->qos->qtweight : &c->qos->xfweight) = (double)ppm / 1e6;
    c->set |= qt ? CRED_SET_QTWEIGHT : CRED_SET_XFWEIGHT;
    return 0;
}

static int set_qt_target (void *target, const struct conf_value *value, struct err *err)
{
    duration_us d;
    int rc = duration_parse (value->text, &d, err);
    if (rc)
        return rc;
    /* The guide's prose thinks in minutes; its format is that of every time. */
    if (d > 0 && value->text[strspn (value->text, "0123456789")] == '\0')
        conf_note_add (value, "%s is %s seconds; as many minutes are %s:00", value->text,
                       value->text, value->text);
    struct policy_cred *c = edit (target);
    c->qos->qttarget_min = d == TIME_US_MAX ? 0 : (double)d / (60.0 * US_PER_S);
    c->set |= CRED_SET_QTTARGET;
    return 0;
}

static int set_xf_target (void *target, const struct conf_value *value, struct err *err)
{
    int64_t ppm;
    int rc = ppm_parse (value->text, "the target", &ppm, err);
    if (rc)
        return rc;
    if (ppm < 0)
        return err_set (err, ERR_INVALID, "a target is 0 (none) or more, not %.60s", value->text);
    struct policy_cred *c = edit (target);
    c->qos->xftarget = (double)ppm / 1e6;
    c->set |= CRED_SET_XFTARGET;
    return 0;
}

/* IGNJOBPERUSER, IGNMAXPROCPERCLASS, IGNJOBQUEUEDPERUSER: one limit of one kind of object; IGNMAXJOB: of all of them. */
static bool ignore_flag (const char *word, struct policy_qos *q)
{
    const char *per = word;
    if (strncasecmp (word, "IGN", 3) != 0)
        return false;
    const char *limit = strncasecmp (word + 3, "MAX", 3) == 0 ? word + 6 : word + 3;
    for (per = limit; *per && strncasecmp (per, "PER", 3) != 0;)
        per++;
    size_t len = (size_t)(per - limit);
    bool idle = len > 6 && strncasecmp (limit + len - 6, "QUEUED", 6) == 0, found = false;
    len -= idle ? 6 : 0;
    for (int k = 0; k < CRED_KINDS; k++) {
        if (*per && strcasecmp (per + 3, cred_kind_name ((enum cred_kind)k)) != 0)
            continue;
        for (size_t i = 0; i < sizeof limit_names / sizeof limit_names[0]; i++) {
            if (strlen (limit_names[i].name) != len ||
                strncasecmp (limit, limit_names[i].name, len) != 0)
                continue;
            (idle ? q->ignore_idle : q->ignore_active)[k] |= 1u << limit_names[i].kind;
            found = true;
        }
    }
    return found;
}

/* IGNGROUP, IGNACCOUNT: all limits of that kind of object. */
static bool ignore_kind_flag (const char *word, struct policy_qos *q)
{
    static const enum cred_kind kinds[] = {CRED_GROUP, CRED_ACCOUNT, CRED_CLASS};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strncasecmp (word, "IGN", 3) == 0 &&
            strcasecmp (word + 3, cred_kind_name (kinds[i])) == 0) {
            q->ignore_active[kinds[i]] = q->ignore_idle[kinds[i]] = (1u << LIMIT_KINDS) - 1;
            return true;
        }
    return false;
}

/* Limits per job: processors, time, processor-seconds. */
static bool ignore_job_flag (const char *word, struct policy_qos *q)
{
    static const struct {
        const char *name;
        enum limit_kind kind;
    } known[] = {{"IGNMAXPPJ", LIMIT_PROC},   {"IGNMAXTPJ", LIMIT_WC},
                 {"IGNMAXPSPJ", LIMIT_PS},    {"IGNSYSMAXPROC", LIMIT_PROC},
                 {"IGNSYSMAXTIME", LIMIT_WC}, {"IGNSYSMAXPS", LIMIT_PS}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcasecmp (known[i].name, word) == 0) {
            q->ignore_job |= 1u << known[i].kind;
            return true;
        }
    }
    return false;
}

static int set_qflags (void *target, const struct conf_value *value, struct err *err)
{
    static const struct {
        const char *name;
        uint32_t flag;
    } known[] = {
        {"RESERVEALWAYS", QOS_RESERVEALWAYS},
        {"NORESERVATION", QOS_NORESERVATION},
        {"NOBF", QOS_NOBF},
        {"IGNSYSTEM", QOS_IGNSYSTEM},
        {"IGNUSER", QOS_IGNUSER},
        {"IGNALL", QOS_IGNALL},
        {"PREEMPTOR", QOS_PREEMPTOR},
        {"PREEMPT", QOS_PREEMPTOR}, /* as it was once called */
        {"ADVRES", QOS_USERESERVED},
        {"PREEMPTEE", QOS_PREEMPTEE},
        {"PREEMPTSPV", QOS_PREEMPTSPV},
        {"RESTARTPREEMPT", QOS_RESTARTPREEMPT},
        {"NTR", QOS_NTR},
        {"RUNNOW", QOS_RUNNOW | QOS_PREEMPTOR | QOS_IGNALL},
        {"DEDICATED", QOS_DEDICATED},
        {"IGNSRMAXTIME", QOS_IGNSRMAXTIME},
        {"SPAN", QOS_SPAN},
        {"IGNHOSTLIST", QOS_IGNHOSTLIST},
        {"USERESERVED", QOS_USERESERVED},
    };
    static const char separators[] = ":,; |\t";
    struct cred_ref *ref = target;
    char *text = arena_strdup (ref->policy->arena, value->text), *rest = NULL;
    struct policy_cred *c = edit (target);
    bool reserved = false;
    for (char *word = strtok_r (text, separators, &rest); word;
         word = strtok_r (NULL, separators, &rest)) {
        bool found = ignore_flag (word, c->qos) || ignore_job_flag (word, c->qos) ||
                     ignore_kind_flag (word, c->qos);
        for (size_t i = 0; i < sizeof known / sizeof known[0] && !found; i++) {
            if (strcasecmp (word, known[i].name) == 0) {
                c->qos->flags |= known[i].flag;
                found = true;
            }
        }
        if (!found && reserved) { /* USERESERVED:name */
            c->qos->use_reserved = word;
            found = name_check ("USERESERVED", word, err) == 0;
            if (!found)
                return ERR_INVALID;
        }
        reserved = strcasecmp (word, "USERESERVED") == 0;
        if (!found && conf_is_lenient (value->conf))
            conf_note_add (value, "'%.60s' is no flag of a QoS here, it has no effect", word);
        else if (!found)
            return err_set (err, ERR_INVALID, "'%.60s' is no flag of a QoS", word);
    }
    c->set |= CRED_SET_QFLAGS;
    return 0;
}

/* CLASSCFG[x] FLAGS=PREEMPTEE, USERCFG[y] FLAGS=PREEMPTOR: of all jobs of it. */
static int set_flags (void *target, const struct conf_value *value, struct err *err)
{
    static const char separators[] = ":,; |[]\t";
    struct cred_ref *ref = target;
    char *text = arena_strdup (ref->policy->arena, value->text), *rest = NULL;
    struct policy_cred *c = edit (target);
    for (char *word = strtok_r (text, separators, &rest); word;
         word = strtok_r (NULL, separators, &rest)) {
        uint32_t flag = strcasecmp (word, "PREEMPTEE") == 0   ? QOS_PREEMPTEE
                        : strcasecmp (word, "PREEMPTOR") == 0 ? QOS_PREEMPTOR
                                                              : 0;
        bool restartable = strcasecmp (word, "RESTARTABLE") == 0;
        bool always = restartable || strcasecmp (word, "SUSPENDABLE") == 0;
        if (!flag && !always && !conf_is_lenient (value->conf))
            return err_set (err, ERR_INVALID,
                            "'%.60s': wanted PREEMPTEE or PREEMPTOR; other flags are a job's own "
                            "(msub --flags), or its QoS's (QOSCFG[x] QFLAGS)",
                            word);
        if (always)
            conf_note_add (value, "%.60s: every job is%s", word,
                           restartable ? ", unless it was submitted with --flags=NORESTART" : "");
        else if (!flag)
            conf_note_add (value,
                           "%.60s: has no effect: other flags than PREEMPTEE and PREEMPTOR are a "
                           "job's own (msub --flags), or its QoS's (QOSCFG[x] QFLAGS)",
                           word);
        c->flags |= flag;
        ref->policy->flags_said = ref->policy->flags_said || flag;
    }
    c->set |= CRED_SET_FLAGS;
    return 0;
}

/* QOSFEATURES[x] wide interactive, QOSCFG[x] FEATURES=wide,interactive; [ANY]: any node. */
static int set_qos_features (void *target, const struct conf_value *value, struct err *err)
{
    struct policy_cred *c = edit (target);
    (void)err;
    c->set |= CRED_SET_FEATURES;
    char *text = arena_strdup (((struct cred_ref *)target)->policy->arena, value->text);
    for (char *at = text; *(at += strcspn (at, ": \t"));)
        *at = ',';
    bool any = strcasecmp (text, "ANY") == 0 || strcasecmp (text, "[ANY]") == 0;
    c->qos->features = any ? NULL : text;
    return 0;
}

int policy_set_qos_parameter (void *target, const struct conf_value *value, struct err *err)
{
    static const struct {
        const char *key, *attr;
        int (*set) (void *target, const struct conf_value *value, struct err *err);
    } known[] = {
        {"QOSPRIORITY", "PRIORITY", set_priority},     {"QOSQTWEIGHT", "QTWEIGHT", set_weight},
        {"QOSXFWEIGHT", "XFWEIGHT", set_weight},       {"QOSQTTARGET", "QTTARGET", set_qt_target},
        {"QOSTARGETQT", "QTTARGET", set_qt_target},    {"QOSXFTARGET", "XFTARGET", set_xf_target},
        {"QOSTARGETXF", "XFTARGET", set_xf_target},    {"QOSFLAGS", "QFLAGS", set_qflags},
        {"QOSFEATURES", "FEATURES", set_qos_features},
    };
    void *ref;
    int rc = record_of (target, CRED_QOS, value->index ? value->index : "DEFAULT", &ref);
    struct conf_value of_attr = *value;
    for (size_t i = 0; i < sizeof known / sizeof known[0] && !rc; i++) {
        if (strcmp (known[i].key, value->key) == 0) {
            of_attr.attr = known[i].attr;
            return known[i].set (ref, &of_attr, err);
        }
    }
    return rc;
}

/* --- tables ------------------------------------------------------------------------------- */

#define ATTR(key, function)                                                                        \
    {                                                                                              \
        .name = key, .type = CONF_CALL, .set = function                                            \
    }
#define CROSS(key, function)                                                                       \
    {                                                                                              \
        .name = key, .type = CONF_CALL, .set = function,                                           \
        .flags = CONF_F_ATTR_INDEX | CONF_F_GUARDS                                                 \
    }
#define GUARD(key, function)                                                                       \
    {                                                                                              \
        .name = key, .type = CONF_CALL, .set = function, .flags = CONF_F_GUARDS                    \
    }
#define LIST(key, function, more)                                                                  \
    {                                                                                              \
        .name = key, .type = CONF_CALL, .set = function, .flags = CONF_F_LIST | (more)             \
    }
#define TOLD CONF_TOLD
#define LIMITS(row, prefix, function)                                                              \
    row (prefix "JOB", function), row (prefix "PROC", function), row (prefix "NODE", function),    \
        row (prefix "PS", function), row (prefix "PE", function), row (prefix "MEM", function),    \
        row (prefix "WC", function)
#define PER(what) LIMITS_PER (GUARD, what, set_max_per)
#define LIMITS_PER(row, what, function)                                                            \
    row ("MAXJOBPER" what, function), row ("MAXPROCPER" what, function),                           \
        row ("MAXNODEPER" what, function), row ("MAXPSPER" what, function),                        \
        row ("MAXPEPER" what, function), row ("MAXMEMPER" what, function),                         \
        row ("MAXWCPER" what, function)
/* The guide's own example has MAXPROCS. */
#define PLURALS CROSS ("MAXJOBS", set_max), CROSS ("MAXPROCS", set_max), CROSS ("MAXNODES", set_max)
/* Moab writes MAX.PROC for what is MAXPROCPERJOB. */
#define PER_JOB(function)                                                                          \
    GUARD ("MAXPROCPERJOB", function), GUARD ("MAXNODEPERJOB", function),                          \
        GUARD ("MAXPSPERJOB", function), GUARD ("MAXWCPERJOB", function),                          \
        GUARD ("MAXWCLIMITPERJOB", function), GUARD ("MAX.PROC", function),                        \
        GUARD ("MAX.NODE", function), GUARD ("MAX.PS", function), GUARD ("MAX.WCLIMIT", function)

#define COMMON_ATTRS                                                                               \
    PLURALS, PER ("USER"), PER ("GROUP"), PER ("ACCOUNT"), PER ("CLASS"), PER ("QOS"),             \
        ATTR ("PRIORITY", set_priority), ATTR ("FSTARGET", set_fs_target),                         \
        LIST ("QLIST", set_qlist, CONF_F_GUARDS), ATTR ("QDEF", set_qdef),                         \
        LIMITS (CROSS, "MAX", set_max), CROSS ("MINPROC", set_min_proc),                           \
        LIMITS (CROSS, "MAXI", set_max_idle), LIST ("PLIST", policy_set_plist, CONF_F_GUARDS),     \
        ATTR ("PDEF", policy_set_pdef), LIST ("FLAGS", set_flags, 0),                              \
        LIST ("JOBFLAGS", set_flags, 0), TOLD ("FSCAP", "FSTARGET=x^ and FSTARGET=x% are caps"),   \
        TOLD ("EMAIL", "a grid sends mail: nui submit --mail-to says where it goes"),              \
        TOLD ("EMAILADDRESS", "a grid sends mail: nui submit --mail-to says where it goes"),       \
        TOLD ("COMMENT", "it is a remark: # does"),                                                \
        TOLD ("MEMBERULIST", "accounts' members are the bank's"),                                  \
        TOLD ("ADEF", "a user's default account is the bank's"),                                   \
        TOLD ("ALIST", "who may use an account is the bank's"),                                    \
        TOLD ("OVERRUN", "JOBMAXOVERRUN says it for all jobs"),                                    \
        TOLD ("CHARGERATE", "what a job costs is in the bank's rate cards"),                       \
        TOLD ("MAXJOBQUEUED",                                                                      \
              "MAXIJOB bounds the jobs that are looked at, others wait behind them"),              \
        TOLD ("MAXSUBMITJOBS",                                                                     \
              "MAXIJOB bounds the jobs that are looked at, others wait behind them")

const struct conf_param policy_user_attrs[] = {COMMON_ATTRS, PER_JOB (set_per_job), {0}};

const struct conf_param policy_class_attrs[] = {
    GUARD ("MAXPROCPERJOB", policy_set_class_per_job),
    GUARD ("MAXNODEPERJOB", policy_set_class_per_job),
    GUARD ("MAXPSPERJOB", policy_set_class_per_job),
    GUARD ("MAXWCPERJOB", policy_set_class_per_job),
    GUARD ("MAXWCLIMITPERJOB", policy_set_class_per_job),
    COMMON_ATTRS,
    LIST ("HOSTLIST", policy_set_class_text, CONF_F_GUARDS),
    GUARD ("MAX.PROC", policy_set_class_count),
    GUARD ("MIN.PROC", policy_set_class_count),
    GUARD ("MAX.NODE", policy_set_class_count),
    GUARD ("MIN.NODE", policy_set_class_count),
    GUARD ("MAX.PS", policy_set_class_count),
    GUARD ("MAX.WCLIMIT", policy_set_class_wall),
    GUARD ("MIN.WCLIMIT", policy_set_class_wall),
    ATTR ("DEFAULT.WCLIMIT", policy_set_class_wall),
    ATTR ("DEFAULT.FEATURES", policy_set_class_text),
    ATTR ("DEFAULT.NODESET", policy_set_class_text),
    ATTR ("EXCLUDEFEATURES", policy_set_class_text),
    LIST ("REQUIREDUSERLIST", policy_set_class_people, CONF_F_GUARDS),
    LIST ("REQUIREDGROUPLIST", policy_set_class_people, CONF_F_GUARDS),
    LIST ("REQUIREDACCOUNTLIST", policy_set_class_people, CONF_F_GUARDS),
    LIST ("REQUIREDQOSLIST", policy_set_class_people, CONF_F_GUARDS),
    LIST ("EXCLUDEUSERLIST", policy_set_class_people, CONF_F_GUARDS),
    LIST ("EXCLUDEGROUPLIST", policy_set_class_people, CONF_F_GUARDS),
    LIST ("EXCLUDEACCOUNTLIST", policy_set_class_people, CONF_F_GUARDS),
    ATTR ("NODEACCESSPOLICY", policy_set_class_access),
    TOLD ("MAXPROCPERNODE",
          "a job says its tasks per node; NODECFG[x] MAXPROCPERUSER bounds a user's on a node"),
    TOLD ("WCOVERRUN", "JOBMAXOVERRUN says it for all jobs"),
    TOLD ("NODEALLOCATIONPOLICY", "NODEALLOCATIONPOLICY is the site's, for all classes"),
    TOLD ("DEFAULT.NODEACCESSPOLICY", "NODEACCESSPOLICY of the class says it"),
    {0},
};

const struct conf_param policy_qos_attrs[] = {
    LIST ("FLAGS", set_qflags, 0),
    COMMON_ATTRS,
    ATTR ("QTWEIGHT", set_weight),
    ATTR ("XFWEIGHT", set_weight),
    ATTR ("QTTARGET", set_qt_target),
    ATTR ("XFTARGET", set_xf_target),
    LIST ("QFLAGS", set_qflags, 0),
    LIST ("FEATURES", set_qos_features, 0),
    LIMITS (GUARD, "OMAX", set_override),
    LIMITS (GUARD, "OMAXI", set_override_idle),
    GUARD ("OMAXJPROC", set_override_job),
    GUARD ("OMAXJPS", set_override_job),
    GUARD ("OMAXJWC", set_override_job),
    PER_JOB (set_per_job),
    {0},
};

const struct conf_param policy_system_attrs[] = {
    LIMITS (GUARD, "MAX", set_system_max),
    GUARD ("MINPROC", set_system_min_proc),
    LIMITS (GUARD, "MAXI", set_system_max_idle),
    PER_JOB (set_system_per_job),
    TOLD ("PRIORITY", "the same number for everybody orders nobody"),
    TOLD ("FSTARGET", "USERCFG[DEFAULT] says the target of whoever has none"),
    LIST ("QLIST", set_system_qlist, CONF_F_GUARDS),
    ATTR ("QDEF", set_system_qdef),
    LIST ("PLIST", policy_set_system_plist, CONF_F_GUARDS),
    ATTR ("PDEF", policy_set_system_plist),
    TOLD (
        "FLAGS",
        "a job's flags are its own (msub --flags), or its class's, user's or QoS's (CLASSCFG[x] FLAGS)"),
    {0},
};

const struct conf_param policy_partition_attrs[] = {
    LIMITS (GUARD, "MAX", set_partition_limit),
    GUARD ("MINPROC", set_partition_limit),
    {0},
};
