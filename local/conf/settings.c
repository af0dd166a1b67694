/* What a site says of itself in nui-local.cfg: the table of its parameters, and what belongs together. settings_read has the
 * whole file read, the policy and the nodes too; called by the daemon at start, reload and --check. */
#include <assert.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "local/conf/policyconf.h"
#include "local/conf/settings_i.h"
#include "local/trace/workload.h"
#include "proto/base/text.h"
#include "proto/rpc/tlsid.h"

static const char *const failure_words[] = {"FAIL", "REQUEUE", "CANCEL", NULL};

/* An adapter program's, as far as there is one. */
static const char *rm_program_of (const char *name)
{
    static const struct {
        const char *name, *program;
    } known[] = {{"PBS", "nui-pbs"},
                 {"TORQUE", "nui-pbs"},
                 {"PBSPRO", "nui-pbs"},
                 {"SGE", "nui-gridengine"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp (name, known[i].name) == 0)
            return known[i].program;
    return NULL;
}

/* Those of Maui's that are not spoken here would leave the nodes to two schedulers: only a file of Maui's may name one,
 * and nothing is run then (rm_missing). */
static int set_rm_type (void *target, const struct conf_value *value, struct err *err)
{
    static const char *const others[] = {"PBS", "TORQUE", "PBSPRO", "LL",    "LSF", "SGE", "WIKI",
                                         "CCS", "RMS",    "SSS",    "BPROC", "XT3", NULL};
    struct settings *s = target;
    char name[32]; /* PBS@host:port, as old files have it */
    text_printf (name, sizeof name, "%.*s", (int)strcspn (value->text, "@"), value->text);
    const struct rm_kind *kind = rm_kind_find (name);
    if (kind) {
        s->rm_kind = kind;
        return 0;
    }
    char ours[400];
    rm_kinds_do (ours, sizeof ours);
    for (int i = 0; others[i]; i++)
        if (strcasecmp (name, others[i]) == 0) {
            const char *program = rm_program_of (name);
            char why[sizeof ours + 80];
            text_printf (why, sizeof why, "%s%s%s%s", others[i],
                         program ? " is spoken to by a program: TYPE=NATIVE ADAPTER="
                                 : ": there is no adapter for it: nui-local ",
                         program ? program : ours, program ? " (nui-local(8))" : "");
            if (!conf_is_lenient (value->conf))
                return err_set (err, ERR_UNSUPPORTED, "%s", why);
            conf_note_add (value, "%s%s", why,
                           conf_is_partial (value->conf)
                               ? ""
                               : "; until then nothing is run, as in mode TEST");
            s->rm_missing = !conf_is_partial (value->conf);
            return 0;
        }
    rm_kinds_neither (ours, sizeof ours);
    return err_set (err, ERR_INVALID, "'%.40s' is %s", value->text, ours);
}

#define AT(field) offsetof (struct settings, rm.field)
#define RM_URL(attr, call)                                                                         \
    {                                                                                              \
        .name = attr, .type = CONF_STRING, .offset = AT (url[call]), .flags = CONF_F_FIXED         \
    }
static const struct conf_param rm_attrs[] = {
    {.name = "TYPE", .type = CONF_CALL, .set = set_rm_type, .flags = CONF_F_FIXED},
    {.name = "SERVER", .type = CONF_STRING, .offset = AT (server), .flags = CONF_F_FIXED},
    {.name = "KEY", .type = CONF_PATH, .offset = AT (key)},
    {.name = "TOKEN", .type = CONF_PATH, .offset = AT (token)},
    {.name = "USER", .type = CONF_STRING, .offset = AT (user), .flags = CONF_F_FIXED},
    {.name = "PARTITION", .type = CONF_STRING, .offset = AT (partition), .flags = CONF_F_FIXED},
    {.name = "CLASSES", .type = CONF_STRING, .offset = AT (classes), .flags = CONF_F_FIXED},
    {.name = "CONF", .type = CONF_PATH, .offset = AT (conf)},
    {.name = "BIN", .type = CONF_PATH, .offset = AT (bin)},
    {.name = "COMPLETIONS", .type = CONF_PATH, .offset = AT (completions)},
    {.name = "ADAPTER", .type = CONF_STRING, .offset = AT (adapter), .flags = CONF_F_FIXED},
    {.name = "ENV", .type = CONF_STRING, .offset = AT (env), .flags = CONF_F_FIXED},
    {.name = "LAUNCHER", .type = CONF_STRING, .offset = AT (launcher), .flags = CONF_F_FIXED},
    RM_URL ("CLUSTERQUERYURL", RM_CALL_CLUSTERQUERY),
    RM_URL ("WORKLOADQUERYURL", RM_CALL_WORKLOADQUERY),
    RM_URL ("JOBSUBMITURL", RM_CALL_JOBSUBMIT),
    RM_URL ("JOBSTARTURL", RM_CALL_JOBSTART),
    RM_URL ("JOBCANCELURL", RM_CALL_JOBCANCEL),
    RM_URL ("JOBREQUEUEURL", RM_CALL_JOBREQUEUE),
    RM_URL ("JOBSUSPENDURL", RM_CALL_JOBSUSPEND),
    RM_URL ("JOBRESUMEURL", RM_CALL_JOBRESUME),
    RM_URL ("JOBMODIFYURL", RM_CALL_JOBMODIFY),
    {.name = "MIRROR", .type = CONF_BOOL, .offset = AT (mirror)},
    {.name = "SACCT", .type = CONF_BOOL, .offset = AT (sacct)},
    {.name = "USAGE", .type = CONF_BOOL, .offset = AT (usage)},
    {.name = "CHARGE", .type = CONF_BOOL, .offset = AT (charge)},
    {.name = "POLL",
     .type = CONF_DURATION,
     .offset = AT (poll),
     .min = US_PER_S,
     .max = 3600 * US_PER_S},
    {.name = "PATIENCE",
     .type = CONF_DURATION,
     .offset = AT (patience),
     .min = US_PER_S,
     .max = 3600 * US_PER_S},
    {.name = "TOKENLIFE",
     .type = CONF_DURATION,
     .offset = AT (token_life),
     .min = 2 * US_PER_S,
     .max = 24 * 3600 * US_PER_S},
    CONF_TOLD ("HOST",
               "SERVER says where slurmrestd is; without it the jobs run under nui-local itself"),
    CONF_TOLD ("PORT", "SERVER has the port"),
    CONF_TOLD ("EPORT", "the resource manager's events come over the connection that is there"),
    CONF_TOLD ("NMPORT", "nodes tell their state to the resource manager"),
    CONF_TOLD ("NMHOST", "nodes tell their state to the resource manager"),
    CONF_TOLD ("NMSERVER", "nodes tell their state to the resource manager"),
    CONF_TOLD ("TIMEOUT", "PATIENCE says how long an answer is waited for"),
    CONF_TOLD ("POLLINTERVAL", "POLL says it"),
    CONF_TOLD ("AUTHTYPE",
               "KEY is Slurm's, and users prove by certificate or account who they are"),
    CONF_TOLD ("CONFIGFILE", "CONF names Slurm's"),
    CONF_TOLD ("SUBMITCMD", "jobs are handed over by slurmrestd's API"),
    CONF_TOLD ("SUBMITPOLICY", "a job waits in nui-local and is handed over when it starts"),
    CONF_TOLD ("SUBMITHOST", "jobs are handed over by slurmrestd's API"),
    CONF_TOLD ("FLAGS", "there is none that would mean something here"),
    CONF_TOLD ("VERSION", "the version is asked of the resource manager"),
    CONF_TOLD ("NAME", "the index is its name"),
    CONF_TOLD ("NODESTATEMAP", "the states of nodes are taken as the resource manager says them"),
    CONF_TOLD ("LOCALDISKFS", "NODECFG[x] DISK says how much a node has"),
    CONF_TOLD ("DEFAULTCLASS", "CLASSCFG[x] and the resource manager's queues have defaults"),
    CONF_TOLD ("WIKITYPE", "what Wiki 1.1 says is understood, of whichever kind"),
    CONF_TOLD ("SYSTEMQUERYURL", "CLUSTERQUERYURL says whether it is there"),
    CONF_TOLD ("QUEUEQUERYURL", "CLASSCFG[x] and the classes of its nodes say which there are"),
    CONF_TOLD ("JOBVALIDATEURL", "JOBSUBMITURL answers at once whether it takes a job"),
    CONF_TOLD ("NODEMODIFYURL", "a node is drained with the resource manager's own command"),
    CONF_TOLD ("NODEPOWERURL", "nothing here turns nodes on and off"),
    CONF_TOLD ("RMSTARTURL", "the resource manager is started by the system"),
    CONF_TOLD ("RMSTOPURL", "the resource manager is stopped by the system"),
    CONF_TOLD ("CREDCTLURL", "accounts are the operating system's"),
    {.name = NULL},
};
#undef RM_URL
#undef AT

static int rm_record (void *target, const char *index, void **record_out, struct err *err)
{
    struct settings *s = target;
    (void)index;
    (void)err;
    if (!s->rm.poll)
        s->rm = (struct rm_options){.user = "root",
                                    .partition = "nui",
                                    .charge = true,
                                    .poll = 10 * US_PER_S,
                                    .patience = 15 * US_PER_S,
                                    .token_life = 600 * US_PER_S};
    *record_out = target; /* one resource manager; its name is the administrator's */
    return 0;
}

/* The TYPE of a line; "": it has none. */
static void rm_type_of (const struct conf_entry *e, char out[32])
{
    *out = '\0';
    for (const char *p = e->value; strcasecmp (e->key, "RMCFG") == 0 && *p;
         p += strcspn (p, " \t")) {
        p += strspn (p, " \t");
        if (strncasecmp (p, "TYPE=", 5) == 0)
            text_printf (out, 32, "%.*s", (int)strcspn (p + 5, "@ \t"), p + 5);
    }
}

static bool rm_same (const struct conf_entry *a, const struct conf_entry *b)
{
    return strcasecmp (a->index ? a->index : "", b->index ? b->index : "") == 0;
}

/* Of several that have a TYPE the first that there is an adapter for counts, and that is no source of licences or
 * measurements alone; what is said of the others is told. */
static void rm_choose (struct conf *conf)
{
    const struct conf_entry *chosen = NULL, *first = NULL;
    uint32_t count = conf_entry_count (conf);
    char type[32];
    for (uint32_t i = 0; i < count && !chosen; i++) {
        const struct conf_entry *e = conf_entry (conf, i);
        rm_type_of (e, type);
        first = first || !*type ? first : e;
        if (*type && rm_kind_find (type) && !strstr (e->value, "RESOURCETYPE="))
            chosen = e;
    }
    chosen = chosen ? chosen : first;
    for (uint32_t i = 0; i < count && chosen; i++) {
        const struct conf_entry *typed = conf_entry (conf, i);
        rm_type_of (typed, type);
        for (uint32_t k = 0; k < count && *type && !rm_same (typed, chosen); k++) {
            const struct conf_entry *e = conf_entry (conf, k);
            if (strcasecmp (e->key, "RMCFG") != 0 || !rm_same (e, typed) || conf_dropped (conf, k))
                continue;
            conf_note_add (
                &(struct conf_value){
                    .conf = conf, .key = e->key, .index = e->index, .line = e->line},
                "there is one resource manager, RMCFG[%s]: this line has no effect",
                chosen->index ? chosen->index : "");
            conf_drop (conf, k);
        }
    }
}

static void rm_defaults (struct settings *s)
{
    for (int d = 0; s->rm_kind->dedicates && d < 4 && !s->policy->node_availability_said; d++)
        s->policy->node_availability[d] = NODEAVAIL_DEDICATED;
}

static int am_record (void *target, const char *index, void **record_out, struct err *err)
{
    (void)index; /* one bank; its name is the administrator's */
    (void)err;
    *record_out = &((struct settings *)target)->am;
    return 0;
}

static const struct conf_param cap_attrs[] = {
    {.name = "HOLDS",
     .type = CONF_INT,
     .offset = offsetof (struct settings_cap, holds),
     .min = 0,
     .max = 1000000},
    {.name = "PROCSECONDS",
     .type = CONF_INT,
     .offset = offsetof (struct settings_cap, procseconds),
     .min = 0,
     .max = INT64_MAX},
    {.name = NULL},
};

static int cap_record (void *target, const char *index, void **record_out, struct err *err)
{
    struct settings *s = target;
    for (uint32_t i = 0; i < s->cap_count; i++)
        if (strcasecmp (s->caps[i].meta, index) == 0) {
            *record_out = &s->caps[i];
            return 0;
        }
    if (s->cap_count == SETTINGS_CAPS_MAX)
        return err_set (err, ERR_LIMIT, "at most %d metaschedulers", SETTINGS_CAPS_MAX);
    const struct settings_cap *like = settings_cap_of (s, "DEFAULT");
    struct settings_cap fresh = *like;
    fresh.meta = strdup (index);
    s->caps[s->cap_count] = fresh;
    *record_out = &s->caps[s->cap_count++];
    return 0;
}

static int grid_record (void *target, const char *index, void **record_out, struct err *err)
{
    struct settings *s = target;
    struct settings_grid *like = NULL;
    for (uint32_t i = 0; i < s->grid_count; i++) {
        if (strcasecmp (s->grids[i].meta, "DEFAULT") == 0)
            like = &s->grids[i];
        if (strcasecmp (s->grids[i].meta, index) == 0) {
            *record_out = &s->grids[i];
            return 0;
        }
    }
    if (s->grid_count == SETTINGS_CAPS_MAX)
        return err_set (err, ERR_LIMIT, "at most %d metaschedulers", SETTINGS_CAPS_MAX);
    struct settings_grid *fresh = &s->grids[s->grid_count++];
    *fresh = like ? *like : (struct settings_grid){0};
    fresh->meta = strdup (index);
    *record_out = fresh;
    return 0;
}

static int set_meta (void *target, const struct conf_value *value, struct err *err)
{
    struct settings *s = target;
    for (uint32_t i = 0; i < value->word_count; i++) {
        if (s->meta_count == SETTINGS_METAS_MAX)
            return err_set (err, ERR_LIMIT, "at most %d metaschedulers", SETTINGS_METAS_MAX);
        s->metas[s->meta_count++] = value->word[i];
    }
    return 0;
}

/* One group a line. */
static int set_meta_group (void *target, const struct conf_value *value, struct err *err)
{
    struct settings *s = target;
    if (s->group_count == SETTINGS_GROUPS_MAX)
        return err_set (err, ERR_LIMIT, "at most %d groups of metaschedulers", SETTINGS_GROUPS_MAX);
    struct settings_group *group = &s->groups[s->group_count++];
    if (value->word_count < 3 || value->word_count > SETTINGS_GROUP_MEMBERS_MAX)
        return err_set (err, ERR_INVALID, "a group has 3 to %d metaschedulers, not %u",
                        SETTINGS_GROUP_MEMBERS_MAX, value->word_count);
    for (uint32_t i = 0; i < value->word_count; i++) {
        if (name_check ("metascheduler", value->word[i], err) != 0)
            return ERR_INVALID;
        group->member[group->count++] = value->word[i];
        size_t len = strlen (group->names);
        text_printf (group->names + len, sizeof group->names - len, "%s%.62s", i ? " " : "",
                     value->word[i]);
    }
    return 0;
}

/* In the order of their bits. */
static const char *const notify_words[] = {"JOBFAILURE",  "NODEDOWN",   "BANKDOWN", "RESUNFILLED",
                                           "BANKHISTORY", "BANKDENIED", "JOBLIMIT", "CLOCKDIFFERS",
                                           "NODEDRAINED", NULL};
static_assert (NOTIFY_ALL == (1u << (sizeof notify_words / sizeof *notify_words - 1)) - 1,
               "a word for each event");

static int set_notify_events (void *target, const struct conf_value *value, struct err *err)
{
    struct settings *s = target;
    return conf_bits_parse (value, notify_words, &s->notify_events, err);
}

/* The names of "root,maui pete", ended by NULL. Maui's root@host is root: an account counts on the cluster's own socket. */
static const char *const *names_split (const struct conf_value *value)
{
    struct arena *arena = conf_arena (value->conf);
    const char **name = arena_array (arena, strlen (value->text) / 2 + 2, sizeof *name);
    uint32_t count = 0;
    for (const char *at = value->text; *(at += strspn (at, " \t,\""));) {
        int len = (int)strcspn (at, " \t,\"");
        const char *host = memchr (at, '@', (size_t)len);
        bool cut = host && host > at && conf_is_lenient (value->conf);
        name[count++] = arena_printf (arena, "%.*s", cut ? (int)(host - at) : len, at);
        if (cut)
            conf_note_add (value,
                           "%.*s: the account %s on this cluster's own socket, whatever follows @",
                           len, at, name[count - 1]);
        at += len;
    }
    name[count] = NULL;
    return name;
}

/* Who administers: a login name counts on the cluster's own socket, an identity anywhere. */
static int admins_set (struct settings_admins *list, const struct conf_value *value,
                       struct err *err)
{
    struct principal identity;
    const char *const *name = names_split (value);
    for (uint32_t i = 0; name[i]; i++) {
        const char *who = name[i];
        if (strcasecmp (who, "ALL") == 0)
            return err_set (
                err, ERR_INVALID,
                "ALL stands alone, for ADMIN3: nobody else's jobs or policy are for all");
        int rc = strncmp (who, "nui://", 6) == 0 ? principal_parse (who, &identity, err)
                                                 : name_check ("login name", who, err);
        if (rc != 0)
            return rc;
        if (list->count == SETTINGS_ADMINS_MAX)
            return err_set (err, ERR_LIMIT, "at most %d administrators of a level",
                            SETTINGS_ADMINS_MAX);
        list->who[list->count++] = who;
    }
    return 0;
}

static int set_admin1 (void *target, const struct conf_value *value, struct err *err)
{
    return admins_set (&((struct settings *)target)->admin[0], value, err);
}

static int set_admin2 (void *target, const struct conf_value *value, struct err *err)
{
    return admins_set (&((struct settings *)target)->admin[1], value, err);
}

static int set_admin3 (void *target, const struct conf_value *value, struct err *err)
{
    struct settings_admins *list = &((struct settings *)target)->admin[2];
    if (value->word_count == 1 && strcasecmp (value->word[0], "ALL") == 0) {
        list->all = true;
        return 0;
    }
    return admins_set (list, value, err);
}

#define AT(field) offsetof (struct settings, field)
const struct conf_param settings_params[] = {
    {.name = "ADMIN1",
     .type = CONF_CALL,
     .set = set_admin1,
     .flags = CONF_F_FIXED | CONF_F_ADDS,
     .help = "who may do everything"},
    {.name = "ADMIN2",
     .type = CONF_CALL,
     .set = set_admin2,
     .flags = CONF_F_FIXED | CONF_F_ADDS,
     .help = "who may change jobs"},
    {.name = "ADMIN3",
     .type = CONF_CALL,
     .set = set_admin3,
     .flags = CONF_F_FIXED | CONF_F_ADDS,
     .help = "who may look at everything"},
    {.name = "SITENAME",
     .type = CONF_STRING,
     .offset = AT (site_name),
     .flags = CONF_F_FIXED | CONF_F_PLACE,
     .help = "the name of the site, where it is not the certificate's"},
    {.name = "META",
     .type = CONF_CALL,
     .set = set_meta,
     .flags = CONF_F_FIXED | CONF_F_ADDS | CONF_F_PLACE,
     .help = "metaschedulers that jobs come from"},
    {.name = "METAGROUP",
     .type = CONF_CALL,
     .set = set_meta_group,
     .flags = CONF_F_FIXED | CONF_F_ADDS | CONF_F_PLACE,
     .help = "metaschedulers that decide together"},
    {.name = "BANK",
     .type = CONF_STRING,
     .offset = AT (bank),
     .flags = CONF_F_FIXED | CONF_F_PLACE,
     .help = "where the bank is"},
    {.name = "GRIDMAP",
     .type = CONF_PATH,
     .offset = AT (gridmap),
     .help = "identities of the grid and their accounts"},
    {.name = "JOBDIR",
     .type = CONF_PATH,
     .offset = AT (job_dir),
     .help = "where jobs have their directories"},
    {.name = "SUPERVISE",
     .type = CONF_PATH,
     .offset = AT (supervise),
     .help = "the program that stands over a job"},
    {.name = "ADVERTISE",
     .type = CONF_STRING,
     .offset = AT (advertise),
     .flags = CONF_F_FIXED | CONF_F_PLACE,
     .help = "where users reach this site"},
    {.name = "PORTRANGE",
     .type = CONF_STRING,
     .offset = AT (port_range),
     .initial = "20000-20999",
     .flags = CONF_F_PLACE,
     .help = "ports for the rendezvous of co-allocated jobs"},
    {.name = "HORIZON",
     .type = CONF_DURATION,
     .offset = AT (horizon),
     .min = 60 * US_PER_S,
     .max = INT64_MAX / 4,
     .initial = "30:00:00:00",
     .help = "how far ahead parts of co-allocated jobs are placed"},
    {.name = "LEASEMAX",
     .type = CONF_DURATION,
     .offset = AT (lease_max),
     .min = US_PER_S / 1000,
     .max = 86400 * US_PER_S,
     .initial = "00:05:00",
     .help = "longest lease of a part that is prepared"},
    {.name = "REPLAYWINDOW",
     .type = CONF_DURATION,
     .offset = AT (replay_window),
     .min = 60 * US_PER_S,
     .max = INT64_MAX / 4,
     .initial = "90:00:00:00",
     .help = "how long after its signature a job is taken"},
    {.name = "STARTGRACE",
     .type = CONF_DURATION,
     .offset = AT (start_grace),
     .min = US_PER_S,
     .max = 86400 * US_PER_S,
     .initial = "00:00:30",
     .help = "how late a part of a co-allocated job may start"},
    {.name = "JOBOUTPUTMAX",
     .type = CONF_MEMORY,
     .offset = AT (output_max_mb),
     .initial = "10G",
     .help = "most that a job may write to its output, in MB; 0: any"},
    {.name = "KILLGRACE",
     .type = CONF_DURATION,
     .offset = AT (kill_grace),
     .min = US_PER_S,
     .max = 3600 * US_PER_S,
     .initial = "00:00:05",
     .help = "time between SIGTERM and SIGKILL"},
    {.name = "CLOCKTOLERANCE",
     .type = CONF_DURATION,
     .offset = AT (clock_tolerance),
     .min = 0,
     .max = 3600 * US_PER_S,
     .initial = "00:00:02",
     .help = "how far the clocks of others may be off"},
    {.name = "BANKPATIENCE",
     .type = CONF_DURATION,
     .offset = AT (bank_patience),
     .min = US_PER_S,
     .max = 600 * US_PER_S,
     .initial = "00:00:05",
     .help = "how long an answer of the bank is waited for"},
    {.name = "NOTIFICATIONPROGRAM",
     .type = CONF_PATH,
     .offset = AT (notify_program),
     .help = "hears of what an administrator should know"},
    {.name = "NOTIFICATIONACCOUNT",
     .type = CONF_STRING,
     .offset = AT (notify_account),
     .flags = CONF_F_FIXED,
     .initial = "nobody",
     .help = "as whom NOTIFICATIONPROGRAM runs"},
    {.name = "FEEDBACKPROGRAM",
     .type = CONF_PATH,
     .offset = AT (feedback_program),
     .help = "is run at the end of each job, with its figures"},
    {.name = "NOTIFICATIONURL",
     .type = CONF_STRING,
     .offset = AT (notify_url),
     .flags = CONF_F_FIXED | CONF_F_PLACE,
     .help = "the same, by HTTP"},
    {.name = "NOTIFICATIONEVENTS",
     .type = CONF_CALL,
     .set = set_notify_events,
     .flags = CONF_F_ADDS,
     .help = "of what they hear"},
    {.name = "STATDIR",
     .type = CONF_PATH,
     .offset = AT (stat_dir),
     .help = "where statistics and traces are written"},
    {.name = "JOBPURGETIME",
     .type = CONF_DURATION,
     .offset = AT (job_purge),
     .min = US_PER_S,
     .max = INT64_MAX / 4,
     .flags = CONF_F_INFINITY,
     .initial = "7:00:00:00",
     .help = "how long the directory of a job that has ended is kept"},
    {.name = "HISTORYTIME",
     .type = CONF_DURATION,
     .offset = AT (history_time),
     .min = US_PER_S,
     .max = INT64_MAX / 4,
     .flags = CONF_F_INFINITY,
     .initial = "INFINITY",
     .help = "how long the record of a job that has ended is kept"},
    {.name = "CHECKPOINTACCOUNT",
     .type = CONF_STRING,
     .offset = AT (checkpoint_account),
     .flags = CONF_F_FIXED,
     .help = "as whom CHECKPOINTHOOK runs, where not as the job's account"},
    {.name = "CHECKPOINTHOOK",
     .type = CONF_PATH,
     .offset = AT (checkpoint_hook),
     .help = "the program that checkpoints a job"},
    {.name = "NODEHEALTHPROGRAM",
     .type = CONF_PATH,
     .offset = AT (health.program),
     .help = "says whether this machine is fit for jobs"},
    {.name = "NODEHEALTHINTERVAL",
     .type = CONF_DURATION,
     .offset = AT (health.every),
     .min = US_PER_S,
     .max = 86400 * US_PER_S,
     .initial = "00:05:00",
     .help = "how often NODEHEALTHPROGRAM is run"},
    {.name = "NODEFAILUREUSERS",
     .type = CONF_U32,
     .offset = AT (node_failure_users),
     .max = 1000,
     .initial = "5",
     .help = "a node where jobs of so many users fail, one after another, is drained"},
    {.name = "JOBACTIONONNODEFAILURE",
     .type = CONF_WORD,
     .offset = AT (node_failure),
     .words = failure_words,
     .help = "what becomes of a job whose node fails"},
    {.name = "CGROUPS",
     .type = CONF_BOOL,
     .offset = AT (cgroups),
     .initial = "TRUE",
     .help = "whether jobs are put into control groups"},
    {.name = "MAUIFILE",
     .type = CONF_BOOL,
     .offset = offsetof (struct settings, maui_file),
     .flags = CONF_F_FIXED,
     .initial = "FALSE",
     .help = "whether lines that cannot be taken are told, as of a file of Maui's, or refused"},
    {.name = "RMCFG",
     .type = CONF_RECORD,
     .attrs = rm_attrs,
     .record = rm_record,
     .flags = CONF_F_INDEX | CONF_F_TELLS,
     .help = "the resource manager"},
    {.name = "AMCFG",
     .type = CONF_RECORD,
     .attrs = settings_am_attrs,
     .record = am_record,
     .flags = CONF_F_INDEX | CONF_F_TELLS,
     .help = "the bank, as Maui has it"},
    {.name = "BANKFALLBACKACCOUNT",
     .type = CONF_CALL,
     .set = settings_am_bank_fallback,
     .flags = CONF_F_INDEX,
     .help = "means AMCFG[x] FALLBACKACCOUNT"},
    {.name = "BANKDEFERJOBONFAILURE",
     .type = CONF_CALL,
     .set = settings_am_bank_defer,
     .flags = CONF_F_INDEX,
     .help = "means AMCFG[x] DEFERJOBONFAILURE"},
    {.name = "PEERCAP",
     .type = CONF_RECORD,
     .attrs = cap_attrs,
     .record = cap_record,
     .flags = CONF_F_FIXED,
     .help = "how much a metascheduler may hold"},
    {.name = "GRIDCFG",
     .type = CONF_RECORD,
     .attrs = settings_grid_attrs,
     .record = grid_record,
     .flags = CONF_F_FIXED,
     .help = "what jobs of a metascheduler may have"},
    {.name = NULL},
};
#undef AT

/* --- what the tables cannot check --------------------------------------------------------- */

static int ports_check (struct settings *s, struct err *err)
{
    uint64_t lo, hi;
    char text[64];
    text_printf (text, sizeof text, "%s", s->port_range);
    char *dash = strchr (text, '-');
    if (dash)
        *dash++ = 0;
    if (!dash || uint_parse (text, "port", SETTINGS_PORTS_MIN, 65535, &lo, err) != 0 ||
        uint_parse (dash, "port", SETTINGS_PORTS_MIN, 65535, &hi, err) != 0 || lo > hi)
        return err_set (err, ERR_INVALID, "PORTRANGE '%.40s': wanted LOW-HIGH within %d-65535",
                        s->port_range, SETTINGS_PORTS_MIN);
    s->port_lo = (uint32_t)lo;
    s->port_hi = (uint32_t)hi;
    return 0;
}

static int target_check (const char *key, const char *target, struct err *err)
{
    uint64_t port;
    const char *colon = target ? strrchr (target, ':') : NULL;
    if (!colon || colon == target || uint_parse (colon + 1, "port", 1, 65535, &port, err) != 0)
        return err_set (err, ERR_INVALID, "%s '%.80s': wanted host:port", key,
                        target ? target : "");
    return 0;
}

static int agents_check (const struct settings *s, struct err *err)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < s->nodes.node_count; i++) {
        const struct nodeconf_node *node = &s->nodes.node[i];
        if (!node->agent)
            continue;
        rc = s->rm_kind->has_agents
                 ? target_check ("AGENT", node->agent, err)
                 : err_set (err, ERR_INVALID, "AGENT: RMCFG TYPE=%s has hosts of its own",
                            s->rm_kind->name);
        if (rc != 0)
            err_prefix (err, "NODECFG[%.60s]", node->name);
    }
    return rc;
}

static int notify_check (struct settings *s, struct err *err)
{
    if (!s->notify_events)
        s->notify_events = NOTIFY_ALL;
    if (conf_notify_check (s->notify_program, s->notify_account, s->notify_url, err) != 0)
        return err->code;
    if (s->feedback_program && access (s->feedback_program, X_OK) != 0)
        return err_set (err, ERR_INVALID, "FEEDBACKPROGRAM %.200s cannot be executed: %s",
                        s->feedback_program, strerror (errno));
    if (s->feedback_program &&
        conf_program_check ("FEEDBACKPROGRAM", s->feedback_program, err) != 0)
        return err->code;
    if (s->feedback_program && !getpwnam (s->notify_account))
        return err_set (err, ERR_INVALID, "NOTIFICATIONACCOUNT %.60s: there is no such account",
                        s->notify_account);
    if (s->checkpoint_hook && conf_program_check ("CHECKPOINTHOOK", s->checkpoint_hook, err) != 0)
        return err->code;
    if (s->health.program && conf_program_check ("NODEHEALTHPROGRAM", s->health.program, err) != 0)
        return err->code;
    if (s->health.program && !s->rm_kind->has_agents)
        return err_set (err, ERR_INVALID,
                        "NODEHEALTHPROGRAM: RMCFG TYPE=%s knows which of its nodes are fit",
                        s->rm_kind->name);
    if (s->checkpoint_account && !getpwnam (s->checkpoint_account))
        return err_set (err, ERR_INVALID, "CHECKPOINTACCOUNT %.60s: there is no such account",
                        s->checkpoint_account);
    return 0;
}

/* At the last line of that key. */
static void note_at (struct conf *conf, const char *key, const char *text)
{
    const struct conf_entry *e = conf_entry_last (conf, key, NULL, NULL);
    if (e)
        conf_note_add (
            &(struct conf_value){.conf = conf, .key = e->key, .index = e->index, .line = e->line},
            "%s", text);
}

/* Maui's programs may not be here, or may be somebody's: they are not run then. */
static void program_tell (struct conf *conf, const char *key, const char **program,
                          const char *account)
{
    struct err err = {0};
    if (!*program || conf_is_partial (conf) ||
        conf_notify_check (*program, account, NULL, &err) == 0)
        return;
    const char *why = strstr (err.text, *program);
    note_at (conf, key,
             arena_printf (conf_arena (conf), "%s; nothing is run", why ? why : err.text));
    *program = NULL;
}

/* What a daemon's own file must say besides, and another program's cannot: told. */
static void lacks_tell (struct conf *conf, struct settings *s)
{
    struct err err = {0};
    if (conf_is_partial (conf) && s->rm_kind->check && s->rm_kind->check (&s->rm, &err) != 0)
        note_at (conf, "RMCFG", err.text + (strncmp (err.text, "RMCFG: ", 7) == 0 ? 7 : 0));
    program_tell (conf, "NOTIFICATIONPROGRAM", &s->notify_program, s->notify_account);
    program_tell (conf, "FEEDBACKPROGRAM", &s->feedback_program, s->notify_account);
    if (s->policy->preempt_policy != PREEMPT_CHECKPOINT || s->checkpoint_hook)
        return;
    s->policy->preempt_policy =
        PREEMPT_REQUEUE; /* Maui left the checkpoint to the resource manager */
    note_at (conf, "PREEMPTPOLICY",
             "CHECKPOINT means REQUEUE until CHECKPOINTHOOK names a program that saves jobs");
}

static int settings_check (struct settings *s, bool partial, struct err *err)
{
    int rc = ports_check (s, err);
    if (rc == 0 && !partial)
        rc = s->rm_kind->check ? s->rm_kind->check (&s->rm, err) : 0;
    if (rc == 0 && !partial) /* whose programs are on another machine */
        rc = notify_check (s, err);
    for (uint32_t i = 0; rc == 0 && i < s->grid_count; i++)
        rc = settings_grid_check (&s->grids[i], err);
    for (uint32_t i = 0; rc == 0 && i < s->meta_count; i++)
        rc = target_check ("META", s->metas[i], err);
    if (rc == 0 && s->bank)
        rc = target_check ("BANK", s->bank, err);
    if (rc == 0 && s->meta_count > 0 && !s->bank)
        rc = err_set (err, ERR_INVALID,
                      "META without BANK: a site of a grid charges through the "
                      "grid's bank (without either it stands alone)");
    if (rc == 0 && s->meta_count > 0 && !s->gridmap)
        rc = err_set (err, ERR_INVALID, "META without GRIDMAP: nobody of the grid has an account");
    if (rc == 0 && s->advertise)
        rc = target_check ("ADVERTISE", s->advertise, err);
    if (rc == 0 && s->site_name)
        rc = name_check ("SITENAME", s->site_name, err);
    if (rc == 0 && s->policy->preempt_policy == PREEMPT_CHECKPOINT && !s->checkpoint_hook)
        rc = err_set (err, ERR_INVALID, "PREEMPTPOLICY CHECKPOINT needs a CHECKPOINTHOOK");
    if (rc == 0 && s->checkpoint_hook && access (s->checkpoint_hook, X_OK) != 0)
        rc = err_set (err, ERR_INVALID, "CHECKPOINTHOOK %s: %s", s->checkpoint_hook,
                      strerror (errno));
    if (rc == 0)
        rc = agents_check (s, err);
    if (rc == 0 && !partial) /* Maui's own file leaves the nodes to the resource manager */
        rc = settings_mode_check (&s->mode, s->rm_kind->has_nodes ? 1 : s->nodes.node_count, err);
    return rc;
}

const struct settings_cap *settings_cap_of (const struct settings *settings, const char *meta)
{
    static const struct settings_cap none = {NULL, 1024, INT64_MAX};
    const struct settings_cap *found = &none;
    for (uint32_t i = 0; i < settings->cap_count; i++) {
        if (strcmp (settings->caps[i].meta, meta) == 0)
            return &settings->caps[i];
        if (strcasecmp (settings->caps[i].meta, "DEFAULT") == 0)
            found = &settings->caps[i];
    }
    return found;
}

static bool group_has (const struct settings_group *group, const char *meta)
{
    for (uint32_t i = 0; i < group->count; i++)
        if (strcmp (group->member[i], meta) == 0)
            return true;
    return false;
}

bool settings_speaks_for (const struct settings *settings, const char *meta, const char *owner)
{
    if (strcmp (meta, owner) == 0)
        return true;
    for (uint32_t i = 0; i < settings->group_count; i++)
        if (group_has (&settings->groups[i], meta) && group_has (&settings->groups[i], owner))
            return true;
    return false;
}

const struct settings_group *settings_group_of (const struct settings *settings, const char *meta)
{
    for (uint32_t i = 0; i < settings->group_count; i++)
        if (group_has (&settings->groups[i], meta))
            return &settings->groups[i];
    return NULL;
}

bool settings_names (const struct settings *settings, const char *meta)
{
    bool named = settings_group_of (settings, meta) != NULL;
    if (strcasecmp (meta, "DEFAULT") == 0) /* whose lines are for all the others */
        return named;
    for (uint32_t i = 0; !named && i < settings->cap_count; i++)
        named = strcmp (settings->caps[i].meta, meta) == 0;
    for (uint32_t i = 0; !named && i < settings->grid_count; i++)
        named = strcmp (settings->grids[i].meta, meta) == 0;
    return named;
}

const char *settings_speakers (const struct settings *settings, const char *meta)
{
    const struct settings_group *group = settings_group_of (settings, meta);
    return group ? group->names : meta;
}

const char *settings_group_first (const struct settings *settings, const char *meta,
                                  bool *group_out)
{
    const struct settings_group *group = settings_group_of (settings, meta);
    *group_out = group != NULL;
    return group ? group->member[0] : meta;
}

const struct settings_grid *settings_grid_of (const struct settings *settings, const char *meta)
{
    const struct settings_grid *found = NULL;
    for (uint32_t i = 0; i < settings->grid_count; i++) {
        if (strcmp (settings->grids[i].meta, meta) == 0)
            return &settings->grids[i];
        if (strcasecmp (settings->grids[i].meta, "DEFAULT") == 0)
            found = &settings->grids[i];
    }
    return found;
}

int settings_read (struct conf *conf, struct cred_names *names, int mode, struct settings **out,
                   struct err *err)
{
    struct settings *s = calloc (1, sizeof *s);
    if (!s)
        return err_set (err, ERR_NOMEM, "settings: no memory");
    s->rm_kind = rm_kind_default ();
    settings_am_init (&s->am);
    struct err step[6] = {0};
    rm_choose (conf);
    policy_conf_read (conf, names, &s->policy, &step[0]);
    conf_table_read (conf, settings_params, s, &step[1]);
    conf_table_read (conf, settings_stage_params, &s->stage, &step[2]);
    nodeconf_read (conf, &s->nodes, &step[3]);
    conf_table_read (conf, settings_mode_params, &s->mode, &step[4]);
    policy_conf_known (conf, &step[5]);
    int rc = conf_faults_take (conf, step, sizeof step / sizeof step[0], err);
    s->listen = conf_get (conf, "LISTEN");
    if (!*s->am.fallback)
        memcpy (s->am.fallback, s->am.older, sizeof s->am.fallback);
    if (rc == 0 && mode >= 0)
        s->mode.mode = mode;
    if (rc == 0 && s->rm_missing && s->mode.mode != MODE_SIMULATION)
        s->mode.mode = MODE_TEST;
    if (rc == 0)
        rm_defaults (s);
    if (rc == 0 && conf_is_lenient (conf))
        lacks_tell (conf, s);
    if (rc == 0 && settings_check (s, conf_is_partial (conf), err) != 0)
        rc = err_prefix (err, "%s", conf_name (conf));
    if (rc == 0 && s->mode.mode == MODE_SIMULATION && !conf_is_partial (conf))
        rc = settings_traces_read (s, names, err);
    else if (rc == 0 && !conf_is_partial (conf)) /* whose nodes are not known here */
        rc = settings_place_check (conf, s, err);
    if (rc == 0 || conf_is_lenient (conf)) /* who moves in hears everything at once */
        settings_warn (conf, s);
    if (rc != 0)
        settings_destroy (s);
    else
        *out = s;
    return rc;
}

void settings_destroy (struct settings *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->cap_count; i++)
        free (s->caps[i].meta);
    for (uint32_t i = 0; i < s->grid_count; i++)
        free (s->grids[i].meta);
    nodeconf_free (&s->nodes);
    workload_destroy (s->workload);
    policy_destroy (s->policy);
    free (s);
}
