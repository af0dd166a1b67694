/* What [events] may say: "10:00 VERB …". A new verb is one function and one row. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/local/scenario.h"

typedef void event_fn (struct scenario *s, const struct line *line);

static struct job_id job_id (struct scenario *s, const struct line *line)
{
    return (struct job_id){scenario_job (s, line, line->word[2])->id};
}

/* 10:00 end JOB */
static void event_end (struct scenario *s, const struct line *line)
{
    struct scn_job *j = scenario_job (s, line, line->word[2]);

    if (!j->running)
        scenario_bad (s, line->number, "job %s does not run", j->name);
    scenario_job_end (s, j);
}

/* 10:00 cancel JOB */
static void event_cancel (struct scenario *s, const struct line *line)
{
    struct scn_job *j = scenario_job (s, line, line->word[2]);
    struct err err = {0};

    j->cancelled = true;
    if (j->running) {
        scenario_job_end (s, j);
        return;
    }
    j->gone = true;
    scenario_must (s, line->number, cluster_job_remove (s->cluster, job_id (s, line), s->now, &err),
                   &err);
}

/* 10:00 startfails JOB: it had started a moment ago, and its launch failed */
static void event_startfails (struct scenario *s, const struct line *line)
{
    struct scn_job *j = scenario_job (s, line, line->word[2]);

    if (!j->running)
        scenario_bad (s, line->number, "job %s does not run", j->name);
    scenario_job_start_failed (s, j);
}

static void hold_change (struct scenario *s, const struct line *line, bool set)
{
    const char *word = line->word[3];
    uint32_t bit = strcmp (word, "user") == 0     ? HOLD_USER
                   : strcmp (word, "system") == 0 ? HOLD_SYSTEM
                   : strcmp (word, "batch") == 0  ? HOLD_BATCH
                                                  : 0;
    struct job_view view;
    struct err err = {0};

    if (!bit)
        scenario_bad (s, line->number, "%s is no hold", word);
    scenario_must (s, line->number, cluster_job_get (s->cluster, job_id (s, line), &view, &err),
                   &err);
    uint32_t holds = set ? view.spec->holds | bit : view.spec->holds & ~bit;
    scenario_must (s, line->number,
                   cluster_job_hold_set (s->cluster, job_id (s, line), holds, s->now, &err), &err);
}

/* 10:00 hold JOB user|system|batch */
static void event_hold (struct scenario *s, const struct line *line)
{
    hold_change (s, line, true);
}

/* 10:00 release JOB user|system|batch */
static void event_release (struct scenario *s, const struct line *line)
{
    hold_change (s, line, false);
}

/* 10:00 setspri JOB 100 [relative] */
static void event_setspri (struct scenario *s, const struct line *line)
{
    struct err err = {0};
    int64_t priority = 0;
    bool relative = line->count > 4 && strcmp (line->word[4], "relative") == 0;

    scenario_must (
        s, line->number,
        int_parse (line->word[3], "the priority", -1000000000, 1000000000, &priority, &err), &err);
    scenario_must (s, line->number,
                   cluster_job_system_priority_set (s->cluster, job_id (s, line), (int32_t)priority,
                                                    !relative, s->now, &err),
                   &err);
}

static void nodes_state (struct scenario *s, const struct line *line, enum node_state state)
{
    uint32_t *node, count = scenario_hosts (s, line, line->word[2], &node, NULL);
    struct err err = {0};

    for (uint32_t i = 0; i < count; i++)
        scenario_must (
            s, line->number,
            cluster_node_state_set (s->cluster, s->node[node[i]].id, state, s->now, &err), &err);
}

/* 10:00 down NODES */
static void event_down (struct scenario *s, const struct line *line)
{
    nodes_state (s, line, NODE_DOWN);
}

static void event_drain (struct scenario *s, const struct line *line)
{
    nodes_state (s, line, NODE_DRAINED);
}

static void event_up (struct scenario *s, const struct line *line)
{
    nodes_state (s, line, NODE_UP);
}

/* 10:00 load NODES 3.5 */
static void event_load (struct scenario *s, const struct line *line)
{
    uint32_t *node, count = scenario_hosts (s, line, line->word[2], &node, NULL);
    struct err err = {0};
    int64_t ppm = 0;

    scenario_must (s, line->number, ppm_parse (line->word[3], "the load", &ppm, &err), &err);
    for (uint32_t i = 0; i < count; i++)
        scenario_must (s, line->number,
                       cluster_node_load_set (s->cluster, s->node[node[i]].id,
                                              (int32_t)(ppm / 1000), s->now, &err),
                       &err);
}

/* 10:00 used NODES 3G: memory in use, whoever asked for it */
static void event_used (struct scenario *s, const struct line *line)
{
    uint32_t *node, count = scenario_hosts (s, line, line->word[2], &node, NULL);
    struct resources used = {{0}};
    struct err err = {0};
    int64_t mb = 0;

    scenario_must (s, line->number, memory_parse (line->word[3], &mb, &err), &err);
    used.v[RES_MEM_MB] = (int32_t)mb;
    for (uint32_t i = 0; i < count; i++)
        scenario_must (s, line->number,
                       cluster_node_used_set (s->cluster, s->node[node[i]].id, &used, s->now, &err),
                       &err);
}

static const struct {
    const char *verb;
    uint32_t words; /* at least, with time and verb */
    event_fn *fn;
} event_word[] = {
    {"load", 4, event_load},
    {"used", 4, event_used},
    {"end", 3, event_end},
    {"cancel", 3, event_cancel},
    {"hold", 4, event_hold},
    {"release", 4, event_release},
    {"setspri", 4, event_setspri},
    {"down", 3, event_down},
    {"drain", 3, event_drain},
    {"up", 3, event_up},
    {"startfails", 3, event_startfails},
};

void scenario_event (struct scenario *s, const struct line *line)
{
    for (size_t i = 0; line->count > 1 && i < sizeof event_word / sizeof *event_word; i++) {
        if (strcmp (event_word[i].verb, line->word[1]) != 0)
            continue;
        if (line->count < event_word[i].words)
            scenario_bad (s, line->number, "%s wants more words", line->word[1]);
        event_word[i].fn (s, line);
        return;
    }
    scenario_bad (s, line->number, "%s is no event", line->count > 1 ? line->word[1] : "");
}
