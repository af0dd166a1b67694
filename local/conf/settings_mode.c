/* SERVERMODE, SCHEDCFG and the SIM parameters: whose clock and whose resource manager the daemon has. Read by settings.c. */
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "local/conf/settings_i.h"

static const char *const mode_words[] = {"NORMAL", "TEST", "INTERACTIVE", "SIMULATION", NULL};
static const char *const submission_words[] = {"NORMAL", "CONSTANTJOBDEPTH", "CONSTANTPSDEPTH",
                                               NULL};

const char *server_mode_name (int mode)
{
    return mode_words[mode];
}

int server_mode_parse (const char *text, int *out, struct err *err)
{
    for (int i = 0; mode_words[i]; i++)
        if (strcasecmp (text, mode_words[i]) == 0) {
            *out = i;
            return 0;
        }
    return err_set (err, ERR_INVALID,
                    "mode '%.40s': wanted NORMAL, TEST, INTERACTIVE or SIMULATION", text);
}

static int set_mode (void *target, const struct conf_value *value, struct err *err)
{
    struct settings_mode *m = target;
    int mode;
    int rc = server_mode_parse (value->text, &mode, err);
    if (rc == 0 && m->mode_set && m->mode != mode)
        rc = err_set (err, ERR_INVALID, "SERVERMODE and SCHEDCFG say two modes, %s and %s",
                      server_mode_name (m->mode), server_mode_name (mode));
    if (rc == 0) {
        m->mode = mode;
        m->mode_set = true;
    }
    return rc;
}

static const char listens[] = "LISTEN says where this program listens";

static const struct conf_param sched_attrs[] = {
    {.name = "MODE", .type = CONF_CALL, .set = set_mode},
    CONF_TOLD ("SERVER", listens),
    CONF_TOLD ("HOST", listens),
    CONF_TOLD ("PORT", listens),
    {.name = NULL},
};

static int sched_record (void *target, const char *index, void **record_out, struct err *err)
{
    (void)index;
    (void)err;
    *record_out = target; /* one scheduler; its name is the administrator's */
    return 0;
}

static int set_flags (void *target, const struct conf_value *value, struct err *err)
{
    static const struct {
        const char *name;
        unsigned flag;
    } known[] = {
        {"IGNCLASS", SIM_IGNCLASS}, {"IGNQOS", SIM_IGNQOS}, {"IGNFEATURES", SIM_IGNFEATURES}};
    static const char *const others[] = {"IGNHOSTLIST", "IGNMODE", "IGNGRES", "IGNALL", NULL};
    struct settings_mode *m = target;
    char *text = arena_strdup (conf_arena (value->conf), value->text), *rest = NULL;
    for (char *word = strtok_r (text, ",:| \t", &rest); word;
         word = strtok_r (NULL, ",:| \t", &rest)) {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known && !found; i++)
            if ((found = strcasecmp (word, known[i].name) == 0))
                m->sim.flags |= known[i].flag;
        for (int i = 0; others[i] && !found; i++)
            if ((found = strcasecmp (word, others[i]) == 0))
                conf_note_add (value, "%s has no effect", others[i]);
        if (!found && conf_is_lenient (value->conf))
            conf_note_add (value, "%.40s has no effect: there are IGNCLASS, IGNQOS, IGNFEATURES",
                           word);
        else if (!found)
            return err_set (err, ERR_INVALID, "'%.40s': wanted IGNCLASS, IGNQOS or IGNFEATURES",
                            word);
    }
    return 0;
}

#define AT(field) offsetof (struct settings_mode, sim.field)
const struct conf_param settings_mode_params[] = {
    {.name = "SERVERMODE",
     .type = CONF_CALL,
     .set = set_mode,
     .help = "NORMAL, TEST, INTERACTIVE or SIMULATION"},
    {.name = "SCHEDCFG",
     .type = CONF_RECORD,
     .attrs = sched_attrs,
     .record = sched_record,
     .flags = CONF_F_INDEX | CONF_F_TELLS,
     .help = "the same, as MODE"},
    {.name = "SIMWORKLOADTRACEFILE",
     .type = CONF_PATH,
     .offset = AT (workload),
     .help = "the log of a simulation"},
    {.name = "SIMRESOURCETRACEFILE",
     .type = CONF_PATH,
     .offset = AT (resources),
     .help = "the nodes of a simulation"},
    {.name = "SIMJOBSUBMISSIONPOLICY",
     .type = CONF_WORD,
     .offset = AT (submission),
     .words = submission_words,
     .initial = "CONSTANTJOBDEPTH",
     .help = "when a simulation's jobs come"},
    {.name = "SIMINITIALQUEUEDEPTH",
     .type = CONF_INT,
     .offset = AT (initial_depth),
     .min = 0,
     .max = 1 << 24,
     .initial = "16",
     .help = "jobs kept in the queue of a simulation"},
    {.name = "SIMSTOPITERATION",
     .type = CONF_INT,
     .offset = AT (stop_iteration),
     .min = -1,
     .max = INT64_MAX,
     .initial = "-1",
     .help = "the pass after which it waits; -1: none"},
    {.name = "SIMEXITITERATION",
     .type = CONF_INT,
     .offset = AT (exit_iteration),
     .min = -1,
     .max = INT64_MAX,
     .initial = "-1",
     .help = "the pass after which it ends; -1: none"},
    {.name = "SIMAUTOSHUTDOWN",
     .type = CONF_BOOL,
     .offset = AT (auto_shutdown),
     .initial = "TRUE",
     .help = "whether it ends with its log"},
    {.name = "SIMTIMERATIO",
     .type = CONF_INT,
     .offset = AT (time_ratio),
     .min = 0,
     .max = 100000000,
     .initial = "0",
     .help = "its speed; 0: as fast as it can"},
    {.name = "SIMWCACCURACY",
     .type = CONF_PPM,
     .offset = AT (wc_accuracy_ppm),
     .min = 0,
     .max = 1000000000,
     .initial = "0",
     .help = "percent of their limit that jobs run; 0: as the log says"},
    {.name = "SIMWCSCALINGPERCENT",
     .type = CONF_INT,
     .offset = AT (wc_scaling),
     .min = 1,
     .max = 100000,
     .initial = "100",
     .help = "percent of its length that each job has"},
    {.name = "SIMNODECOUNT",
     .type = CONF_INT,
     .offset = AT (node_count),
     .min = 0,
     .max = 1 << 20,
     .initial = "0",
     .help = "how many of the nodes; 0: all"},
    {.name = "SIMFLAGS",
     .type = CONF_CALL,
     .set = set_flags,
     .flags = CONF_F_ADDS,
     .help = "what of a trace is not looked at"},
    {.name = "PRODUCTION",
     .type = CONF_PATH,
     .offset = offsetof (struct settings_mode, production),
     .help = "the state directory of the scheduler that mode TEST follows"},
    {.name = NULL},
};
#undef AT

int settings_mode_check (const struct settings_mode *m, uint32_t nodes, struct err *err)
{
    if (m->production && m->mode != MODE_TEST)
        return err_set (err, ERR_INVALID, "PRODUCTION is for mode TEST, this is %s",
                        server_mode_name (m->mode));
    if (m->mode != MODE_SIMULATION) {
        if (nodes == 0)
            return err_set (err, ERR_INVALID, "NODECFG names no node");
        return 0;
    }
    if (!m->sim.resources && nodes == 0)
        return err_set (err, ERR_INVALID,
                        "a simulation needs nodes: SIMRESOURCETRACEFILE or NODECFG");
    if (m->sim.exit_iteration >= 0 && m->sim.stop_iteration > m->sim.exit_iteration)
        return err_set (err, ERR_INVALID, "SIMSTOPITERATION %lld is after SIMEXITITERATION %lld",
                        (long long)m->sim.stop_iteration, (long long)m->sim.exit_iteration);
    return 0;
}
