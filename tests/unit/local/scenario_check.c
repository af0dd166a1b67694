/* What [expect] may say. Each line is compared with one sentence of the same form about what came
 * about; where they differ both are printed. A new kind of expectation is one function and one row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/hostlist.h"
#include "tests/unit/local/scenario.h"

static void nodes_text (struct scenario *s, const struct allocation *a, struct strbuf *out)
{
    const char **name = arena_array (s->pass_arena, a->count + 1, sizeof *name);
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->node_count; i++) {
        for (uint32_t k = 0; k < a->count; k++) {
            if (a->item[k].node.v == s->node[i].id.v) {
                name[n++] = s->node[i].name;
                break;
            }
        }
    }
    strbuf_puts (out, hostlist_compress (name, n, s->pass_arena));
}

/* Exactly these nodes, and so many tasks where the page says how many. */
static bool nodes_are (struct scenario *s, const struct line *line, const char *text,
                       const struct allocation *a)
{
    uint32_t *node, *tasks, count = scenario_hosts (s, line, text, &node, &tasks);
    uint32_t all = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t here = 0;
        for (uint32_t k = 0; k < a->count; k++)
            here += a->item[k].node.v == s->node[node[i]].id.v ? a->item[k].tasks : 0;
        if (here == 0 || (tasks[i] && tasks[i] != here))
            return false;
        all += here;
    }
    for (uint32_t k = 0; k < a->count; k++)
        all -= a->item[k].tasks;
    return all == 0;
}

/* By enum plan_phase. */
static const char *const phase[] = {"reserved", "priority", "backfill", "hard", "resumed"};

static const char *since (const struct scenario *s, time_us t, char buf[QUANTITY_TEXT_MAX])
{
    return t == TIME_US_NONE  ? "no time"
           : t == TIME_US_MAX ? "INFINITY"
                              : duration_format (t - s->base, buf);
}

/* What can be said of a job at this instant, in the page's words. */
static void actual (struct scenario *s, const struct scn_job *j, struct strbuf *out)
{
    char buf[QUANTITY_TEXT_MAX], text[512];
    struct job_view view;

    strbuf_printf (out, "%s ", j->name);
    if (!j->arrived) {
        strbuf_puts (out, "has not arrived");
    } else if (j->gone) {
        strbuf_printf (out, "%s",
                       j->cancelled   ? "cancelled"
                       : j->timed_out ? "timed-out"
                                      : "ended");
        strbuf_printf (out, " %s, begun %s", since (s, j->end, buf), since (s, j->start, text));
    } else if (j->running) {
        strbuf_printf (out, "%s on ", j->start == s->now ? "starts" : "runs");
        nodes_text (s, &j->last, out);
        strbuf_printf (out, " phase %s, begun %s", phase[j->phase], since (s, j->start, buf));
    } else if (j->suspended) {
        strbuf_puts (out, "suspended on ");
        nodes_text (s, &j->last, out);
    } else if (cluster_job_get (s->cluster, (struct job_id){j->id}, &view, NULL) == 0) {
        if (view.reserved_start != TIME_US_NONE) {
            strbuf_printf (out, "reserved %s on ", since (s, view.reserved_start, buf));
            nodes_text (s, &view.reserved, out);
            strbuf_puts (out, "; ");
        }
        strbuf_printf (out, "waits %s \"%s\", priority %lld", reason_code_name (view.reason.code),
                       reason_text (&view.reason, &s->names, text, sizeof text),
                       (long long)view.priority);
    }
}

/* word[at…]: "on NODES", "phase NAME", "text …" in any order after the verb. */
static bool tail_holds (struct scenario *s, const struct line *line, uint32_t at,
                        const struct scn_job *j, const struct allocation *a)
{
    for (; at < line->count; at += 2) {
        if (at + 1 == line->count)
            scenario_bad (s, line->number, "%s: and what?", line->word[at]);
        if (strcmp (line->word[at], "on") == 0) {
            if (!nodes_are (s, line, line->word[at + 1], a))
                return false;
        } else if (strcmp (line->word[at], "phase") == 0) {
            if (strcmp (phase[j->phase], line->word[at + 1]) != 0)
                return false;
        } else {
            scenario_bad (s, line->number, "%s is nothing to expect", line->word[at]);
        }
    }
    return true;
}

typedef bool check_fn (struct scenario *s, const struct line *line, struct scn_job *j);

/* T JOB starts [on NODES] [phase reserved|priority|backfill|hard]: at this very moment */
static bool check_starts (struct scenario *s, const struct line *line, struct scn_job *j)
{
    return j->start == s->now && tail_holds (s, line, 3, j, &j->last);
}

/* T JOB runs [on NODES]: since whenever */
static bool check_runs (struct scenario *s, const struct line *line, struct scn_job *j)
{
    return j->running && tail_holds (s, line, 3, j, &j->last);
}

/* T JOB ended, T JOB cancelled */
static bool check_ended (struct scenario *s, const struct line *line, struct scn_job *j)
{
    (void)s;
    (void)line;
    return j->gone && !j->cancelled && !j->timed_out;
}

static bool check_cancelled (struct scenario *s, const struct line *line, struct scn_job *j)
{
    (void)s;
    (void)line;
    return j->gone && j->cancelled;
}

/* T JOB timed-out: ended for its limit */
static bool check_timed_out (struct scenario *s, const struct line *line, struct scn_job *j)
{
    (void)s;
    (void)line;
    return j->gone && j->timed_out;
}

static bool check_suspended (struct scenario *s, const struct line *line, struct scn_job *j)
{
    (void)s;
    (void)line;
    return j->suspended;
}

static bool idle_view (struct scenario *s, const struct scn_job *j, struct job_view *view)
{
    return j->arrived && !j->gone && !j->running && !j->suspended &&
           cluster_job_get (s->cluster, (struct job_id){j->id}, view, NULL) == 0;
}

static const char *word (const struct scenario *s, const struct line *line, uint32_t i)
{
    if (i >= line->count)
        scenario_bad (s, line->number, "%s: and what?", line->word[line->count - 1]);
    return line->word[i];
}

/* T JOB waits REASON ["part of the sentence"] */
static bool check_waits (struct scenario *s, const struct line *line, struct scn_job *j)
{
    struct job_view view;
    char text[512];

    return idle_view (s, j, &view) &&
           strcmp (reason_code_name (view.reason.code), word (s, line, 3)) == 0 &&
           (line->count < 5 ||
            strstr (reason_text (&view.reason, &s->names, text, sizeof text), line->word[4]));
}

/* T JOB reserved T2 [on NODES] */
static bool check_reserved (struct scenario *s, const struct line *line, struct scn_job *j)
{
    struct job_view view;

    return idle_view (s, j, &view) &&
           view.reserved_start == scenario_time (s, line, word (s, line, 3)) &&
           tail_holds (s, line, 4, j, &view.reserved);
}

/* T JOB unreserved: waits, and nothing is kept for it */
static bool check_unreserved (struct scenario *s, const struct line *line, struct scn_job *j)
{
    struct job_view view;

    (void)line;
    return idle_view (s, j, &view) && view.reserved_start == TIME_US_NONE;
}

/* T JOB priority N */
static bool check_priority (struct scenario *s, const struct line *line, struct scn_job *j)
{
    struct job_view view;

    return idle_view (s, j, &view) && view.priority == strtoll (word (s, line, 3), NULL, 10);
}

/* T JOB preempted: sent back to the queue at least once, and not there again */
static bool check_preempted (struct scenario *s, const struct line *line, struct scn_job *j)
{
    (void)s;
    (void)line;
    return j->preempted > 0 && !j->running && !j->suspended && !j->gone;
}

static const struct {
    const char *verb;
    check_fn *fn;
} check_word[] = {
    {"starts", check_starts},         {"runs", check_runs},
    {"ended", check_ended},           {"cancelled", check_cancelled},
    {"waits", check_waits},           {"reserved", check_reserved},
    {"timed-out", check_timed_out},   {"suspended", check_suspended},
    {"unreserved", check_unreserved}, {"priority", check_priority},
    {"preempted", check_preempted},
};

static void differ (struct scenario *s, const struct line *line, const char *actual_text)
{
    fprintf (stderr, "%s:%u: at %s\n  expected:", s->path, line->number, line->word[0]);
    for (uint32_t i = 1; i < line->count; i++)
        fprintf (stderr, strchr (line->word[i], ' ') ? " \"%s\"" : " %s", line->word[i]);
    fprintf (stderr, "\n  actual:   %s\n", actual_text);
    s->wrong++;
}

/* T order A B C: so the queue stands */
static void check_order (struct scenario *s, const struct line *line)
{
    struct job_id list[WORDS_MAX];
    struct strbuf out = STRBUF_INIT;
    uint32_t count = cluster_job_list (s->cluster, JOB_IDLE, list, WORDS_MAX);
    bool same = count == line->count - 2;

    strbuf_puts (&out, "order");
    for (uint32_t i = 0; i < count && i < WORDS_MAX; i++) {
        struct scn_job *j = s->first_job;
        while (j->id != list[i].v)
            j = j->next;
        strbuf_printf (&out, " %s", j->name);
        same = same && strcmp (j->name, line->word[i + 2]) == 0;
    }
    for (uint32_t i = 2; i < line->count; i++)
        scenario_job (s, line, line->word[i])->named = true;
    if (!same)
        differ (s, line, strbuf_text (&out));
    strbuf_free (&out);
}

void scenario_check (struct scenario *s, const struct line *line)
{
    struct scn_job *j;
    size_t i = 0;

    if (line->count < 3)
        scenario_bad (s, line->number, "TIME JOB VERB …, or TIME order JOB …");
    if (strcmp (line->word[1], "order") == 0) {
        check_order (s, line);
        return;
    }
    j = scenario_job (s, line, line->word[1]);
    j->named = true;
    while (i < sizeof check_word / sizeof *check_word &&
           strcmp (check_word[i].verb, line->word[2]) != 0)
        i++;
    if (i == sizeof check_word / sizeof *check_word)
        scenario_bad (s, line->number, "%s is nothing to expect of a job", line->word[2]);
    if (!check_word[i].fn (s, line, j)) {
        struct strbuf out = STRBUF_INIT;
        actual (s, j, &out);
        differ (s, line, strbuf_text (&out));
        strbuf_free (&out);
    }
}

void scenario_check_named (struct scenario *s)
{
    for (const struct scn_job *j = s->first_job; j; j = j->next) {
        if (j->named)
            continue;
        fprintf (stderr, "%s: job %s stands nowhere in [expect]\n", s->path, j->name);
        s->wrong++;
    }
}
