/* policyconf_standing: SRCFG[x] and the older SRUSERLIST[x], SRTASKCOUNT[x] …: standing reservations. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "local/conf/acl.h"
#include "local/conf/hosts.h"
#include "local/conf/policyconf_i.h"
#include "local/conf/taskspec.h"
#include "local/core/standing.h"
#include "proto/base/fnv.h"
#include "proto/base/text.h"

enum { DAY_S = 86400, WEEK_S = 7 * DAY_S };

struct standing_parts { /* while the file is read */
    struct policy_standing s;
    struct acl_list acl;
    bool limited, both; /* TIMELIMIT, TIMELOGIC AND */
    bool open;          /* ENDTIME=INFINITY */
    bool faulty;        /* something of it was refused: more is not said of it */
    duration_us limit;
    bool days_given, times_given,
        week_given;         /* STARTTIME or ENDTIME with a day, at all; WSTARTTIME, WENDTIME */
    int start_day, end_day; /* of the week; -1: none was said */
};

struct standing_file {
    struct standing_parts *item[STANDINGS_MAX];
    uint32_t count;
    struct policy *policy;
    struct conf *conf;
};

struct standing_file *policy_standing_begin (struct policy *policy, struct conf *conf)
{
    struct standing_file *f = arena_zalloc (policy->arena, sizeof *f);
    f->conf = conf;
    f->policy = policy;
    return f;
}

static struct standing_parts *parts_of (struct standing_file *f, const char *name, struct err *err)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (strcmp (f->item[i]->s.name, name) == 0)
            return f->item[i];
    if (name_check ("standing reservation", name, err) != 0)
        return NULL;
    if (f->count == STANDINGS_MAX) {
        err_set (err, ERR_LIMIT, "more than %d standing reservations", STANDINGS_MAX);
        return NULL;
    }
    struct standing_parts *p = arena_new (f->policy->arena, struct standing_parts);
    f->item[f->count++] = p;
    *p = (struct standing_parts){
        .start_day = -1,
        .end_day = -1,
        .s = {.days = 0x7F, .depth = 2, .end_s = DAY_S, .week_end_s = WEEK_S, .whole = true}};
    snprintf (p->s.name, sizeof p->s.name, "%s", name);
    p->s.task.v[RES_PROCS] = 1;
    return p;
}

/* --- values ---------------------------------------------------------------------------------- */

/* The days of one word: SUN, Sunday; FRI-MON; WEEKDAYS, WEEKEND. 0: it is none. */
static uint32_t days_of (const char *text, size_t n)
{
    static const char *const day[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};
    const char *dash = memchr (text, '-', n);
    uint32_t days = 0;
    int from = 0, to = 0;
    if (strncasecmp (text, "WEEKEND", n < 7 ? 8 : 7) == 0)
        return 1u << 0 | 1u << 6;
    if (strncasecmp (text, "WEEKDAY", n < 7 ? 8 : 7) == 0)
        return 0x3E;
    const char *last = dash ? dash + 1 : text;
    if (n < 3 || (size_t)(text + n - last) < 3 || (dash && dash - text < 3))
        return 0;
    while (from < 7 && strncasecmp (text, day[from], 3) != 0)
        from++;
    while (to < 7 && strncasecmp (last, day[to], 3) != 0)
        to++;
    if (from == 7 || to == 7)
        return 0;
    for (int d = from; days |= 1u << d, d != to;)
        d = (d + 1) % 7;
    return days;
}

static int days_read (const char *text, uint32_t *out, struct err *err)
{
    uint32_t days = 0;
    if (strcasecmp (text, "ALL") == 0) {
        *out = 0x7F;
        return 0;
    }
    while (*text) {
        size_t n = strcspn (text, ",:|[] \t");
        uint32_t these = n > 0 ? days_of (text, n) : 0;
        if (n > 0 && these == 0)
            return err_set (err, ERR_INVALID,
                            "'%.*s' is no day: ALL, WEEKDAYS, WEEKEND, or SUN, MON … SAT, MON-FRI",
                            (int)(n < 20 ? n : 20), text);
        days |= these;
        text += n + (text[n] != 0);
    }
    *out = days;
    return days ? 0 : err_set (err, ERR_INVALID, "no day is named");
}

static int moment_read (const char *text, int64_t most, int64_t *out, struct err *err)
{
    duration_us d;
    int rc = duration_parse (text, &d, NULL);
    if (rc != 0)
        return err_set (
            err, ERR_INVALID,
            "'%.40s' is no time of a day (17:00:00) or of a week (5:17:00:00, the day first); "
            "a reservation of one date is made with setres -s",
            text);
    if (rc == 0 && (d < 0 || d / US_PER_S > most))
        rc = err_set (err, ERR_INVALID, "'%.40s': at most %lld hours", text,
                      (long long)(most / 3600));
    if (rc == 0)
        *out = d / US_PER_S;
    return rc;
}

static int word_read (const char *text, const char *const *word, int *out, struct err *err)
{
    for (int i = 0; word[i]; i++)
        if (strcasecmp (text, word[i]) == 0) {
            *out = i;
            return 0;
        }
    return err_set (err, ERR_INVALID, "'%.40s' is not %s or %s", text, word[0], word[1]);
}

static int count_read (const char *text, const char *what, uint64_t least, uint64_t most,
                       uint32_t *out, struct err *err)
{
    uint64_t n;
    int rc = uint_parse (text, what, least, most, &n, err);
    if (rc == 0)
        *out = (uint32_t)n;
    return rc;
}

static int period_read (const char *text, struct policy_standing *s, struct err *err)
{
    static const char *const word[] = {"DAY", "WEEK", "INFINITY", "INFINITE", NULL};
    int which;
    int rc = word_read (text, word, &which, err);
    if (rc != 0)
        return err_set (err, ERR_INVALID, "'%.40s' is not DAY, WEEK or INFINITY", text);
    s->period = which > 2 ? STANDING_INFINITY : (enum standing_period)which;
    return 0;
}

static int acl_add (struct standing_file *f, struct standing_parts *p, const char *attr,
                    const char *text, struct err *err)
{
    static const char *const cred[CRED_KINDS] = {"USERLIST", "GROUPLIST", "ACCOUNTLIST",
                                                 "CLASSLIST", "QOSLIST"};
    for (int k = 0; k < CRED_KINDS; k++)
        if (strcasecmp (attr, cred[k]) == 0)
            return acl_add_creds (&p->acl, (struct cred_names *)f->policy->names, (enum cred_kind)k,
                                  text, err);
    if (strcasecmp (attr, "JOBATTRLIST") == 0)
        return acl_add_jobattrs (&p->acl, text, err);
    return acl_add_procs (&p->acl, text, err); /* PROCLIMIT */
}

/* Of another program's file, entry by entry: one that cannot be read admits nobody, and is told; one that keeps
 * somebody out is not passed over. */
static int set_acl (struct standing_file *f, struct standing_parts *p, const char *attr,
                    const char *text, struct err *err)
{
    struct conf_value value = {
        .conf = f->conf, .key = "SRCFG", .index = p->s.name, .attr = attr, .line = p->s.line};
    if (!conf_is_lenient (f->conf) || strcasecmp (attr, "PROCLIMIT") == 0)
        return acl_add (f, p, attr, text, err);
    char *list = arena_strdup (f->policy->arena, text), *rest = NULL;
    int rc = 0;
    for (char *one = strtok_r (list, ",: \t", &rest); one && rc == 0;
         one = strtok_r (NULL, ",: \t", &rest)) {
        size_t len = strlen (one);
        char *name = one + (*one == '&');
        if (name != one || one[len - 1] == '&') {
            conf_note_add (&value,
                           "'%.60s': who is admitted may also run elsewhere, & has no effect", one);
            one[len - 1] = one[len - 1] == '&' ? '\0' : one[len - 1];
        }
        rc = acl_add (f, p, attr, name, err);
        if (rc != 0 && !strchr (name, '!')) {
            conf_note_add (&value, "%s; it admits nobody", err->text);
            rc = 0;
        }
    }
    return rc;
}

/* "8:00:00", or "1:08:00:00" with the day of the week (0: Sunday), as a WEEK has it. */
static int start_read (struct standing_parts *p, const char *text, int64_t *out, int *day_out,
                       int64_t most, struct err *err)
{
    int colons = 0;
    p->times_given = true;
    for (const char *c = text; *c; c++)
        colons += *c == ':';
    *day_out = -1;
    if (colons < 3)
        return moment_read (text, most, out, err);
    int rc = moment_read (text, WEEK_S, out, err);
    p->days_given = rc == 0;
    if (rc == 0) {
        *day_out = (int)(*out / DAY_S);
        *out %= DAY_S;
    }
    return rc;
}

/* 8:00 is minutes and seconds, as every time; who writes it mostly means the hour. */
static void hour_note (struct standing_file *f, const struct standing_parts *p, const char *attr,
                       const char *text)
{
    struct conf_value value = {
        .conf = f->conf, .key = "SRCFG", .index = p->s.name, .attr = attr, .line = p->s.line};
    const char *colon = strchr (text, ':');
    if (colon && !strchr (colon + 1, ':') && strtol (text, NULL, 10) > 0)
        conf_note_add (&value, "%s is %.*s minutes after midnight; %.*s o'clock is %s:00", text,
                       (int)(colon - text), text, (int)(colon - text), text, text);
}

static int set_time (struct standing_file *f, struct standing_parts *p, const char *attr,
                     const char *text, struct err *err)
{
    struct policy_standing *s = &p->s;
    if (strcasecmp (attr, "STARTTIME") == 0 || strcasecmp (attr, "ENDTIME") == 0)
        hour_note (f, p, attr, text);
    if (strcasecmp (attr, "STARTTIME") == 0)
        return start_read (p, text, &s->start_s, &p->start_day, DAY_S, err);
    if (strcasecmp (attr, "ENDTIME") == 0 && strncasecmp (text, "INFINIT", 7) == 0)
        return p->open = true, 0;
    if (strcasecmp (attr, "ENDTIME") == 0)
        return start_read (p, text, &s->end_s, &p->end_day, 2 * DAY_S, err);
    p->week_given = p->week_given || toupper ((unsigned char)attr[0]) == 'W';
    if (strcasecmp (attr, "WSTARTTIME") == 0)
        return moment_read (text, WEEK_S, &s->week_start_s, err);
    if (strcasecmp (attr, "WENDTIME") == 0)
        return moment_read (text, WEEK_S, &s->week_end_s, err);
    if (strcasecmp (attr, "IDLETIME") == 0)
        return duration_parse (text, &s->idle, err);
    if (strcasecmp (attr, "BUSYTIME") == 0)
        return duration_parse (text, &s->busy, err);
    p->limited = true; /* TIMELIMIT, with * where it is required whatever else admits the job */
    char limit[QUANTITY_TEXT_MAX];
    size_t n = strlen (text);
    bool star = n > 0 && text[n - 1] == '*';
    if (strncmp (text, "<=", 2) == 0) { /* as PROCLIMIT has it, and what it means */
        text += 2;
        n -= 2;
    }
    text_printf (limit, sizeof limit, "%.*s", (int)(n - star), text);
    p->both = p->both || star;
    return duration_parse (limit, &p->limit, err);
}

static int charge_read (struct arena *arena, const char *what, const char *text,
                        struct policy_standing *s, struct err *err)
{
    bool account = strcasecmp (what, "ACCOUNT") == 0;
    int rc = name_check (account ? "account" : "user", text, err);
    if (rc == 0)
        *(account ? &s->charge_account : &s->charge_user) = arena_strdup (arena, text);
    return rc;
}

static int flags_known (struct standing_file *f, const struct standing_parts *p, const char *text,
                        uint32_t *out)
{
    struct conf_value value = {
        .conf = f->conf, .key = "SRCFG", .index = p->s.name, .attr = "FLAGS", .line = p->s.line};
    char *list = arena_strdup (f->policy->arena, text), *rest = NULL;
    for (char *one = strtok_r (list, ",:| \t", &rest); one;
         one = strtok_r (NULL, ",:| \t", &rest)) {
        uint32_t flag;
        if (acl_flags (one, &flag, NULL) == 0)
            *out |= flag;
        else
            conf_note_add (&value, "'%.40s' is no flag of a reservation here, it has no effect",
                           one);
    }
    return 0;
}

static int set_rest (struct standing_file *f, struct standing_parts *p, const char *attr,
                     const char *text, struct err *err)
{
    static const char *const access[] = {"DEDICATED", "SHARED", NULL};
    static const char *const logic[] = {"OR", "AND", NULL};
    struct policy_standing *s = &p->s;
    struct arena *arena = f->policy->arena;
    int which = 0, rc = 0;
    if (strcasecmp (attr, "ACCESS") == 0) {
        rc = word_read (text, access, &which, err);
        s->flags |= rc == 0 && which ? RSV_SHARED : 0;
        return rc;
    }
    if (strcasecmp (attr, "TIMELOGIC") == 0) {
        rc = word_read (text, logic, &which, err);
        p->both = p->both || (rc == 0 && which);
        return rc;
    }
    if (strcasecmp (attr, "FLAGS") == 0) {
        uint32_t flags = 0;
        rc = acl_flags (text, &flags, err);
        if (rc != 0 && conf_is_lenient (f->conf)) /* those of the list that there are */
            rc = flags_known (f, p, text, &flags);
        s->flags |= rc == 0 ? flags : 0;
        return rc;
    }
    if (strcasecmp (attr, "DAYS") == 0)
        return days_read (text, &s->days, err);
    if (strcasecmp (attr, "DEPTH") == 0)
        return count_read (text, "the depth", 1, STANDING_DEPTH_MAX, &s->depth, err);
    if (strcasecmp (attr, "HOSTLIST") == 0) {
        s->hosts = arena_strdup (arena, text);
        return hosts_readable (text, err);
    }
    if (strcasecmp (attr, "NODEFEATURES") == 0)
        s->features = arena_strdup (arena, text);
    else if (strcasecmp (attr, "PARTITION") == 0)
        s->partition = arena_strdup (arena, text);
    else if (strncasecmp (attr, "CHARGE", 6) == 0)
        return charge_read (arena, attr + 6, text, s, err);
    else if (strcasecmp (attr, "OWNER") == 0) {
        rc = acl_owner ((struct cred_names *)f->policy->names, text, &s->owner, err);
        s->owned = rc == 0;
        return rc;
    } else if (strcasecmp (attr, "PERIOD") == 0)
        return period_read (text, s, err);
    else if (strcasecmp (attr, "PRIORITY") == 0)
        return int_parse (text, "the priority", -1000000000, 1000000000, &s->priority, err);
    else if (strcasecmp (attr, "RESOURCES") == 0)
        return s->whole = false, taskspec_read (text, &s->task, &s->whole, err);
    else if (strcasecmp (attr, "TASKCOUNT") == 0)
        return count_read (text, "tasks", 0, TASKS_MAX, &s->tasks, err);
    else /* TPN */
        return count_read (text, "tasks per node", 0, TASKS_MAX, &s->tasks_per_node, err);
    return 0;
}

static int set_one (struct standing_file *f, struct standing_parts *p, const char *attr,
                    const char *text, struct err *err)
{
    size_t n = strlen (attr);
    if (strcasecmp (attr, "PROCLIMIT") == 0 || strcasecmp (attr, "JOBATTRLIST") == 0 ||
        (n > 4 && strcasecmp (attr + n - 4, "LIST") == 0 && strcasecmp (attr, "HOSTLIST") != 0))
        return set_acl (f, p, attr, text, err);
    if (n > 4 && (strcasecmp (attr + n - 4, "TIME") == 0 || strcasecmp (attr, "TIMELIMIT") == 0))
        return set_time (f, p, attr, text, err);
    return set_rest (f, p, attr, text, err);
}

static int set_attr (struct standing_file *f, struct standing_parts *p, const char *attr,
                     const char *text, uint32_t line, struct err *err)
{
    for (const char *c = attr; *c; c++)
        p->s.hash = fnv_word (p->s.hash, (uint64_t)toupper ((unsigned char)*c));
    p->s.hash = fnv_bytes (p->s.hash, text, strlen (text));
    p->s.line = line;
    int rc = set_one (f, p, attr, text, err);
    p->faulty = p->faulty || (rc != 0 && strcasecmp (attr, "OWNER") != 0);
    return rc;
}

/* --- SRCFG[x] ATTR=… ---------------------------------------------------------------------------- */

struct standing_ref {
    struct standing_file *file;
    struct standing_parts *parts;
};

int policy_record_standing (void *target, const char *index, void **record_out, struct err *err)
{
    struct policy_file *f = target;
    struct standing_ref *ref = arena_new (f->policy->arena, struct standing_ref);
    ref->file = f->standing;
    ref->parts = parts_of (f->standing, index, err);
    *record_out = ref;
    return ref->parts ? 0 : err ? err->code : ERR_INVALID;
}

/* Two names of one thing. */
static const char *attr_of (const char *name)
{
    return strcasecmp (name, "MAXTIME") == 0    ? "TIMELIMIT"
           : strcasecmp (name, "FEATURES") == 0 ? "NODEFEATURES"
                                                : name;
}

static int set_by_attr (void *target, const struct conf_value *value, struct err *err)
{
    struct standing_ref *ref = target;
    return set_attr (ref->file, ref->parts, attr_of (value->attr), value->text, value->line, err);
}

#define ATTR(key) KIND (key, 0)
#define LIST(key) KIND (key, CONF_F_LIST)
#define KIND(key, more)                                                                            \
    {                                                                                              \
        .name = key, .type = CONF_CALL, .set = set_by_attr, .flags = CONF_F_GUARDS | (more)        \
    }

const struct conf_param policy_standing_attrs[] = {
    ATTR ("ACCESS"),
    LIST ("ACCOUNTLIST"),
    LIST ("CLASSLIST"),
    LIST ("DAYS"),
    ATTR ("DEPTH"),
    ATTR ("STARTTIME"),
    ATTR ("ENDTIME"),
    LIST ("FEATURES"),
    LIST ("FLAGS"),
    LIST ("GROUPLIST"),
    LIST ("HOSTLIST"),
    ATTR ("IDLETIME"),
    LIST ("JOBATTRLIST"),
    KIND ("MAXTIME", CONF_F_COMPARES),
    LIST ("NODEFEATURES"),
    {.name = "OWNER", .type = CONF_CALL, .set = set_by_attr}, /* a right only */
    ATTR ("PARTITION"),
    ATTR ("PERIOD"),
    ATTR ("PRIORITY"),
    KIND ("PROCLIMIT", CONF_F_COMPARES),
    LIST ("QOSLIST"),
    ATTR ("RESOURCES"),
    ATTR ("TASKCOUNT"),
    KIND ("TIMELIMIT", CONF_F_COMPARES),
    ATTR ("TIMELOGIC"),
    ATTR ("TPN"),
    LIST ("USERLIST"),
    ATTR ("WSTARTTIME"),
    ATTR ("WENDTIME"),
    ATTR ("BUSYTIME"),
    ATTR ("CHARGEACCOUNT"),
    ATTR ("CHARGEUSER"),
    CONF_TOLD (
        "TRIGGER",
        "NOTIFICATIONPROGRAM hears of what an administrator should know; nothing else is run"),
    CONF_TOLD ("RMACCESSLIST", "there is one resource manager"),
    CONF_TOLD ("COMMENT", "it is a remark: # does"),
    CONF_TOLD ("LOGLEVEL", "LOGLEVEL is the daemon's"),
    {0},
};

/* SRUSERLIST[x] and its kin, as older files have them. */
int policy_set_standing (void *target, const struct conf_value *value, struct err *err)
{
    struct policy_file *f = target;
    const char *attr = attr_of (value->key + 2);
    struct standing_parts *p = parts_of (f->standing, value->index ? value->index : "0", err);
    if (p == NULL)
        return err ? err->code : ERR_INVALID;
    return set_attr (f->standing, p, attr, value->text, value->line, err);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* The times of a week: WSTARTTIME and WENDTIME, or STARTTIME and ENDTIME with a day; without one they are hours of each
 * of DAYS, which is what PERIOD=DAY means. */
static int week_settle (struct standing_file *f, struct standing_parts *p, const char *file,
                        struct err *err)
{
    struct policy_standing *s = &p->s;
    struct conf_value value = {.conf = f->conf, .key = "SRCFG", .index = s->name, .line = s->line};

    if (p->days_given && s->period != STANDING_WEEK)
        return err_set (err, ERR_INVALID,
                        "%s: line %u: SRCFG[%s] a day in STARTTIME or ENDTIME needs PERIOD=WEEK",
                        file, s->line, s->name);
    if (s->period != STANDING_WEEK || p->week_given || !p->times_given)
        return 0;
    if (p->days_given) {
        s->week_start_s = (p->start_day > 0 ? p->start_day * (int64_t)DAY_S : 0) + s->start_s;
        s->week_end_s = p->end_day >= 0 ? p->end_day * (int64_t)DAY_S + s->end_s : (int64_t)WEEK_S;
        return 0;
    }
    s->period = STANDING_DAY;
    s->depth = s->depth > STANDING_DEPTH_MAX / 7 ? STANDING_DEPTH_MAX : s->depth * 7;
    conf_note_add (
        &value,
        "STARTTIME and ENDTIME without a day are hours of each of DAYS, as with PERIOD=DAY");
    return 0;
}

/* Is it all nodes, always, for nobody? It may be meant; more often it is what is left of a mistake. */
static void ask_about_everything (struct standing_file *f, const struct standing_parts *p)
{
    const struct policy_standing *s = &p->s;
    bool all = s->hosts && (strcasecmp (s->hosts, "ALL") == 0 || strcmp (s->hosts, ".*") == 0) &&
               s->tasks == 0;
    bool always =
        s->period == STANDING_INFINITY ||
        (s->period == STANDING_DAY && s->days == 0x7F && s->end_s - s->start_s >= DAY_S) ||
        (s->period == STANDING_WEEK && s->week_end_s - s->week_start_s >= WEEK_S);
    struct conf_value value = {.conf = f->conf, .key = "SRCFG", .index = s->name, .line = s->line};

    if (all && always && s->acl_count == 0 && !s->owned && !s->features && !s->partition)
        conf_note_add (&value, "keeps every node from every job, always: is that meant?");
}

static int finish_one (struct standing_file *f, struct standing_parts *p, const char *file,
                       struct err *err)
{
    struct policy_standing *s = &p->s;
    struct acl_entry limit = {
        .type = ACL_DURATION, .compare = ACL_LE, .value = p->limit, .required = p->both};
    if (p->open && s->period != STANDING_INFINITY)
        return err_set (err, ERR_INVALID,
                        "%s: line %u: SRCFG[%s] ENDTIME=INFINITY needs PERIOD=INFINITY", file,
                        s->line, s->name);
    if (week_settle (f, p, file, err) != 0)
        return err->code;
    if (s->end_s <= s->start_s)
        s->end_s += DAY_S; /* past midnight */
    if (s->week_end_s <= s->week_start_s)
        return err_set (err, ERR_INVALID, "%s: line %u: SRCFG[%s] WENDTIME is not after WSTARTTIME",
                        file, s->line, s->name);
    if (s->tasks_per_node && s->tasks % s->tasks_per_node != 0)
        return err_set (err, ERR_INVALID,
                        "%s: line %u: SRCFG[%s] %u tasks cannot be spread as %u per node", file,
                        s->line, s->name, s->tasks, s->tasks_per_node);
    if (s->charge_account && !s->charge_user && s->owned && s->owner.type == CRED_USER)
        s->charge_user = cred_name (f->policy->names, CRED_USER, (uint32_t)s->owner.value);
    if (s->charge_account && !s->charge_user && conf_is_lenient (f->conf)) {
        struct conf_value value = {.conf = f->conf,
                                   .key = "SRCFG",
                                   .index = s->name,
                                   .attr = "CHARGEACCOUNT",
                                   .line = s->line};
        conf_note_add (
            &value, "has no effect without CHARGEUSER, who may use it, or an OWNER that is a user");
        s->charge_account = NULL;
    }
    if (s->charge_account && !s->charge_user)
        return err_set (
            err, ERR_INVALID,
            "%s: line %u: SRCFG[%s] CHARGEACCOUNT needs a CHARGEUSER who may use it, or "
            "an OWNER that is a user",
            file, s->line, s->name);
    s->flags |= RSV_STANDING;
    s->acl_count = p->acl.count + p->limited;
    s->acl = arena_array (f->policy->arena, s->acl_count + 1, sizeof *s->acl);
    if (p->acl.count)
        memcpy (s->acl, p->acl.entry, p->acl.count * sizeof *s->acl);
    if (p->limited)
        s->acl[p->acl.count] = limit;
    ask_about_everything (f, p);
    return 0;
}

int policy_standing_end (struct standing_file *f, const char *file, struct err *err)
{
    struct policy *policy = f->policy;
    int rc = 0;
    if (f->count > 0)
        policy->standing = arena_array (policy->arena, f->count, sizeof *policy->standing);
    for (uint32_t i = 0; rc == 0 && i < f->count; i++) {
        struct policy_standing *s = &f->item[i]->s;
        if (f->item[i]->faulty)
            continue;
        if (s->tasks == 0 && s->hosts == NULL) { /* Maui's own book has one */
            struct conf_value value = {
                .conf = f->conf, .key = "SRCFG", .index = s->name, .line = s->line};
            conf_note_add (&value, "names neither HOSTLIST nor TASKCOUNT, it has no effect");
            continue;
        }
        rc = finish_one (f, f->item[i], file, err);
        policy->standing[policy->standing_count++] = f->item[i]->s;
    }
    for (uint32_t i = 0; i < f->count; i++)
        acl_list_free (&f->item[i]->acl);
    return rc;
}
