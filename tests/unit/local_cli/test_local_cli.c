/* Whole outputs against those of the original scheduler (reference/maui-output), from the same
 * data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>

#include "local/cli/stats_cli.h"

#define NOW (INT64_C (1000007940) * US_PER_S) /* Sun Sep  9 03:59:00 2001 */
#define S(n) ((n)*US_PER_S)

#define ACTIVE NUI__LOCAL__V1__QUEUE_SECTION__SECTION_ACTIVE
#define IDLE NUI__LOCAL__V1__QUEUE_SECTION__SECTION_IDLE
#define BLOCKED NUI__LOCAL__V1__QUEUE_SECTION__SECTION_BLOCKED

static char *reference_path (const char *name, char *path, size_t cap)
{
    const char *shared = getenv ("NUI_SHARED");
    if (shared)
        snprintf (path, cap, "%s/reference/maui-output/%s", shared, name);
    else
        snprintf (path, cap, "%s/../shared/reference/maui-output/%s", NUI_SOURCE_DIR, name);
    return path;
}

/* The file without its first line and the exit code. The caller frees. */
static char *maui_output (const char *name)
{
    char path[512], line[1024];
    FILE *f = fopen (reference_path (name, path, sizeof path), "r");
    struct strbuf out = STRBUF_INIT;
    assert_non_null (f);
    for (int n = 0; fgets (line, sizeof line, f); n++)
        if (n > 0 && strncmp (line, "[exit ", 6) != 0)
            strbuf_puts (&out, line);
    fclose (f);
    strbuf_text (&out);
    return strbuf_steal (&out);
}

static void replace_all (char *text, const char *what, const char *by)
{
    assert_int_equal (strlen (what), strlen (by));
    for (char *at = text; (at = strstr (at, what)); at += strlen (by))
        memcpy (at, by, strlen (by));
}

static void same_as (const char *name, const char *got, const char *unknown)
{
    char *want = maui_output (name);
    if (unknown) /* what we do not measure */
        replace_all (want, unknown, "------");
    assert_string_equal (got, want);
    free (want);
}

/* --- the queue of the reference ------------------------------------------------------------ */

struct row {
    Nui__Local__V1__QueueSection section;
    const char *id, *user, *group, *host;
    unsigned procs;
    int limit_s, begin_s; /* start or submission, before now */
    int reserved_s;
    bool backfilled;
    int priority;
    unsigned xfactor;
};

static const struct row rows[] = {
    {ACTIVE, "1014", "bob", "phys", "node06", 4, 14400, 5040, 0, true, 0, 1000},
    {ACTIVE, "1018", "alice", "phys", "node07", 4, 7200, 3900, 0, true, 0, 1000},
    {ACTIVE, "1021", "dave", "bio", "node04", 4, 14400, 2940, 0, false, 0, 1000},
    {ACTIVE, "1024", "alice", "phys", "node01", 8, 600, 60, 0, true, 0, 4900},
    {ACTIVE, "1025", "bob", "phys", "node05", 2, 3600, 2100, 0, false, 0, 1000},
    {ACTIVE, "1026", "carol", "chem", "node01", 4, 14400, 1500, 0, false, 0, 1000},
    {ACTIVE, "1035", "alice", "phys", "node02", 4, 7200, 240, 0, true, 0, 1000},
    {IDLE, "1030", "dave", "bio", "", 12, 7200, 1507, 3300, false, 198, 1200},
    {IDLE, "1023", "bob", "phys", "", 2, 3600, 2522, 0, false, 1, 1700},
    {IDLE, "1036", "bob", "phys", "", 2, 14400, 154, 0, false, 1, 1000},
    {BLOCKED, "1009", "alice", "phys", "", 16, 14400, 6076, 0, false, 0, 0},
    {BLOCKED, "1017", "alice", "phys", "", 12, 7200, 4124, 0, false, 0, 0},
    {BLOCKED, "1020", "alice", "phys", "", 4, 14400, 3331, 0, false, 0, 0},
    {BLOCKED, "1022", "alice", "phys", "", 8, 3600, 2601, 0, false, 0, 0},
    {BLOCKED, "1028", "alice", "phys", "", 16, 1800, 1712, 0, false, 0, 0},
    {BLOCKED, "1029", "alice", "phys", "", 12, 3600, 1690, 0, false, 0, 0},
    {BLOCKED, "1031", "alice", "phys", "", 24, 7200, 1109, 0, false, 0, 0},
    {BLOCKED, "1032", "alice", "phys", "", 8, 14400, 885, 0, false, 0, 0},
    {BLOCKED, "1033", "alice", "phys", "", 2, 3600, 768, 0, false, 0, 0},
};

static void row_make (const struct row *r, Nui__Local__V1__QueueJob *j)
{
    static Nui__Common__V1__Reason why = NUI__COMMON__V1__REASON__INIT;
    why.code = (char *)"PolicyViolation";
    why.text = (char *)"violates active HARD MAXJOB limit of 3 for user alice  (R: 1, U: 3)";
    nui__local__v1__queue_job__init (j);
    j->section = r->section;
    j->job_id = (char *)r->id;
    j->user = (char *)r->user;
    j->group = (char *)r->group;
    j->host = (char *)r->host;
    j->state = (char *)(r->section == ACTIVE ? "Running" : "Idle");
    j->class_ = (char *)"batch";
    j->qos = (char *)(r->section == ACTIVE ? "DEFAULT" : "");
    j->partition = (char *)(r->section == ACTIVE ? "DEFAULT" : "");
    j->procs = r->procs;
    j->walltime_us = S (r->limit_s);
    j->submit_us = NOW - S (r->begin_s);
    if (r->section == ACTIVE) {
        j->start_us = NOW - S (r->begin_s);
        j->end_us = j->start_us + S (r->limit_s);
    }
    j->reserved_us = r->reserved_s ? NOW + S (r->reserved_s) : 0;
    j->backfilled = r->backfilled;
    j->priority = r->priority;
    j->xfactor_milli = r->xfactor;
    j->reason = r->section == BLOCKED ? &why : NULL;
}

/* In two chunks, as it comes. */
static void queue_make (struct queue *q)
{
    enum { COUNT = sizeof rows / sizeof *rows };
    Nui__Local__V1__QueueChunk chunk = NUI__LOCAL__V1__QUEUE_CHUNK__INIT;
    Nui__Local__V1__QueueTotals totals = NUI__LOCAL__V1__QUEUE_TOTALS__INIT;
    Nui__Local__V1__QueueJob job[COUNT], *list[COUNT];
    *q = (struct queue){.arena = arena_create (0)};
    for (size_t i = 0; i < COUNT; i++) {
        row_make (&rows[i], &job[i]);
        list[i] = &job[i];
    }
    totals.now_us = NOW;
    totals.procs = 32;
    totals.procs_active = 30;
    totals.nodes = totals.nodes_active = 8;
    totals.site = (char *)"alpha";
    chunk.totals = &totals;
    chunk.jobs = list;
    chunk.n_jobs = 5;
    queue_add (q, &chunk);
    chunk.totals = NULL;
    chunk.jobs = list + 5;
    chunk.n_jobs = COUNT - 5;
    chunk.last = true;
    queue_add (q, &chunk);
    queue_sort (q);
}

static void showq_as_maui (enum queue_view view, const char *name, const char *unknown)
{
    struct queue q;
    struct strbuf out = STRBUF_INIT;
    queue_make (&q);
    queue_text (&q, view, false, false, &out);
    same_as (name, strbuf_text (&out), unknown);
    strbuf_free (&out);
    arena_destroy (q.arena);
}

static void showq (void **state)
{
    (void)state;
    showq_as_maui (QUEUE_ALL, "showq.txt", NULL);
}

static void showq_running (void **state)
{
    (void)state;
    showq_as_maui (QUEUE_RUNNING, "showq-r.txt", "100.00");
}

static void showq_idle (void **state)
{
    (void)state;
    showq_as_maui (QUEUE_WAITING, "showq-i.txt", NULL);
}

static void showq_blocked (void **state)
{
    (void)state;
    showq_as_maui (QUEUE_STUCK, "showq-b.txt", NULL);
}

static void showq_rows_only_and_hidden (void **state)
{
    struct queue q;
    struct strbuf out = STRBUF_INIT;
    (void)state;
    queue_make (&q);
    q.hidden = 3;
    queue_text (&q, QUEUE_ALL, false, false, &out);
    assert_non_null (strstr (strbuf_text (&out), "\n3 jobs of other people are not shown"));
    strbuf_clear (&out);
    queue_text (&q, QUEUE_WAITING, false, true, &out);
    assert_memory_equal (strbuf_text (&out), "              1030*        198", 30);
    assert_null (strstr (strbuf_text (&out), "Jobs:"));
    strbuf_free (&out);
    arena_destroy (q.arena);
}

/* --- showbf, showstart, showres, showstate -------------------------------------------------- */

static void showbf (void **state)
{
    Nui__Local__V1__WindowsReply reply = NUI__LOCAL__V1__WINDOWS_REPLY__INIT;
    Nui__Local__V1__Window wide = NUI__LOCAL__V1__WINDOW__INIT, longer = wide;
    Nui__Local__V1__Window *list[] = {&wide, &longer};
    struct strbuf out = STRBUF_INIT;
    (void)state;
    reply.now_us = NOW;
    reply.user = reply.group = (char *)"root";
    reply.windows = list;
    reply.n_windows = 2;
    wide.procs = 2;
    wide.length_us = S (7260);
    longer.procs = 1;
    longer.length_us = S (10500);
    showbf_text (&reply, false, &out);
    same_as ("showbf.txt", strbuf_text (&out), NULL);
    strbuf_clear (&out);
    reply.user = (char *)"alice";
    reply.n_windows = 0;
    showbf_text (&reply, false, &out);
    same_as ("showbf-u.txt", strbuf_text (&out), NULL);
    strbuf_free (&out);
}

static void showstart_as_maui (const char *file, const char *job, unsigned procs, int limit_s,
                               int start_s)
{
    Nui__Local__V1__StartTimeReply reply = NUI__LOCAL__V1__START_TIME_REPLY__INIT;
    struct strbuf out = STRBUF_INIT;
    reply.now_us = NOW;
    reply.procs = procs;
    reply.walltime_us = S (limit_s);
    reply.start_us = NOW + S (start_s);
    showstart_text (&reply, job, &out);
    same_as (file, strbuf_text (&out), NULL);
    strbuf_free (&out);
}

static void showstart (void **state)
{
    (void)state;
    showstart_as_maui ("showstart-job.txt", "1030", 12, 7200, 3300);
    showstart_as_maui ("showstart-blocked.txt", "1009", 16, 14400, 10500);
    showstart_as_maui ("showstart-running.txt", "1026", 4, 14400, -1500);
    showstart_as_maui ("showstart-spec.txt", "8@1:00:00", 8, 3600, 9360);
}

struct held {
    const char *name, *type, *state;
    int start_s, length_s; /* 0: no end */
    unsigned nodes, procs;
};

static void rsv_make (struct reservations *r, const struct held *held, size_t count)
{
    *r = (struct reservations){.arena = arena_create (0), .now_us = NOW, .count = (uint32_t)count};
    r->item = arena_array (r->arena, count, sizeof *r->item);
    for (size_t i = 0; i < count; i++) {
        Nui__Local__V1__Reservation *one = malloc (sizeof *one);
        nui__local__v1__reservation__init (one);
        one->name = strdup (held[i].name);
        one->type = strdup (held[i].type);
        one->state = strdup (held[i].state);
        one->start_us = NOW + S (held[i].start_s);
        one->end_us = held[i].length_s ? one->start_us + S (held[i].length_s) : 0;
        one->node_count = held[i].nodes;
        one->procs = held[i].procs;
        r->item[i] = one;
    }
}

static void showres (void **state)
{
    static const struct held held[] = {
        {"1014", "Job", "Running", -5040, 14400, 2, 4},
        {"1018", "Job", "Running", -3900, 7200, 2, 4},
        {"1021", "Job", "Running", -2940, 14400, 2, 4},
        {"1024", "Job", "Running", -60, 600, 5, 8},
        {"1025", "Job", "Running", -2100, 3600, 1, 2},
        {"1026", "Job", "Running", -1500, 14400, 2, 4},
        {"1030", "Job", "Idle", 3300, 7200, 7, 12},
        {"1035", "Job", "Running", -240, 7200, 1, 4},
        {"maint.0.0", "User", "", 7260, 7200, 1, 4},
        {"maint.1.0", "User", "", 93660, 7200, 1, 4},
        {"short.0.0", "User", "", 0, 0, 1, 4},
    };
    struct reservations r;
    struct strbuf out = STRBUF_INIT;
    (void)state;
    rsv_make (&r, held, sizeof held / sizeof *held);
    showres_text (&r, (struct showres_look){0}, &out);
    same_as ("showres.txt", strbuf_text (&out), NULL);
    strbuf_free (&out);
    reservations_free (&r);
}

static void showres_by_node (void **state)
{
    static const struct held held[] = {{"1024", "Job", "Running", -60, 600, 1, 1}};
    struct reservations r;
    struct strbuf out = STRBUF_INIT;
    char *want = maui_output ("showres-n.txt");
    (void)state;
    rsv_make (&r, held, 1);
    Nui__Local__V1__NodeTasks *on = malloc (sizeof *on);
    nui__local__v1__node_tasks__init (on);
    on->node = strdup ("node01");
    on->tasks = 1;
    r.item[0]->nodes = malloc (sizeof *r.item[0]->nodes);
    r.item[0]->nodes[0] = on;
    r.item[0]->n_nodes = 1;
    showres_text (&r, (struct showres_look){.nodes = true}, &out);
    char *end = strstr (strbuf_text (&out), "1 nodes reserved");
    assert_non_null (end);
    assert_memory_equal (strbuf_text (&out), want, (size_t)(end - strbuf_text (&out)));
    free (want);
    strbuf_free (&out);
    reservations_free (&r);
}

/* Lines that begin so are taken out of the text. */
static void drop_lines (char *text, const char *begin)
{
    for (char *at = text; at; at = strchr (at, '\n') ? strchr (at, '\n') + 1 : NULL)
        while (strncmp (at, begin, strlen (begin)) == 0) {
            char *end = strchr (at, '\n');
            memmove (at, end ? end + 1 : at + strlen (at), strlen (end ? end + 1 : "") + 1);
        }
}

struct held_job {
    const char *user, *group, *account, *class;
    int limit_s;
    unsigned tasks;
};

static void held_details (Nui__Local__V1__Reservation *r, const struct held_job *of)
{
    Nui__Local__V1__QueueJob *j = malloc (sizeof *j);
    nui__local__v1__queue_job__init (j);
    j->user = strdup (of->user);
    j->group = strdup (of->group);
    j->account = strdup (of->account);
    j->class_ = strdup (of->class);
    j->qos = strdup ("DEFAULT");
    j->walltime_us = S (of->limit_s);
    j->procs = of->tasks;
    j->preemptible = r->start_us > NOW;
    j->priority = 197;
    r->job = j;
}

static void held_standing (Nui__Local__V1__Reservation *r, const char *acl, bool whole)
{
    Nui__Local__V1__StandingRow *s = malloc (sizeof *s);
    nui__local__v1__standing_row__init (s);
    s->days = strdup ("ALL");
    s->start_us = whole ? S (6 * 3600) : 0;
    s->end_us = whole ? S (8 * 3600) : S (86400);
    s->tasks = whole ? 0 : 4;
    r->asked = s;
    r->standing = strndup (r->name, strlen (r->name) - 4);
    r->task = strdup (whole ? "PROCS:-1" : "PROCS:1");
    r->resources = strdup (whole ? "node08" : "TASKS==4");
    r->flags = malloc (sizeof *r->flags);
    r->flags[r->n_flags++] = strdup ("STANDINGRES");
    r->acl = malloc (2 * sizeof *r->acl);
    r->acl[r->n_acl++] = strdup (acl);
    if (!whole)
        r->acl[r->n_acl++] = strdup ("DURATION<=1:00:00+");
}

/* But for processor-hours used so far, which are not kept, and warnings of reservations that have not begun. */
static void diagnose_reservations_as_maui (void **state)
{
    static const struct held held[] = {
        {"maint.0.0", "User", "", 7260, 7200, 1, 4},
        {"maint.1.0", "User", "", 93660, 7200, 1, 4},
        {"short.0.0", "User", "", 0, 0, 1, 4},
        {"1014", "Job", "Running", -5040, 14400, 2, 4},
        {"1026", "Job", "Running", -1500, 14400, 2, 4},
        {"1035", "Job", "Running", -240, 7200, 1, 4},
        {"1018", "Job", "Running", -3900, 7200, 2, 4},
        {"1021", "Job", "Running", -2940, 14400, 2, 4},
        {"1024", "Job", "Running", -60, 600, 5, 8},
        {"1025", "Job", "Running", -2100, 3600, 1, 2},
        {"1030", "Job", "Idle", 3300, 7200, 7, 12},
    };
    static const struct held_job job[] = {
        {"bob", "phys", "projA", "batch", 14400, 4},  {"carol", "chem", "projB", "batch", 14400, 4},
        {"alice", "phys", "projA", "batch", 7200, 4}, {"alice", "phys", "projA", "batch", 7200, 4},
        {"dave", "bio", "projC", "batch", 14400, 4},  {"alice", "phys", "projA", "short", 600, 8},
        {"bob", "phys", "projA", "batch", 3600, 2},   {"dave", "bio", "projC", "batch", 7200, 12},
    };
    struct reservations r;
    struct strbuf out = STRBUF_INIT;
    char *want = maui_output ("diagnose-r.txt");
    (void)state;
    rsv_make (&r, held, sizeof held / sizeof *held);
    for (uint32_t i = 0; i < r.count; i++) {
        Nui__Local__V1__NodeTasks *on = malloc (sizeof *on);
        nui__local__v1__node_tasks__init (on);
        on->node = strdup ("node08");
        on->tasks = i < 3 ? 1 : job[i - 3].tasks;
        r.item[i]->nodes = malloc (sizeof *r.item[i]->nodes);
        r.item[i]->nodes[r.item[i]->n_nodes++] = on;
        if (i >= 3)
            held_details (r.item[i], &job[i - 3]);
        else
            held_standing (r.item[i], i == 2 ? "CLASS==short+" : "GROUP==bio+", i < 2);
    }
    r.item[2]->active_procs = 4;
    diagnose_reservations_text (&r, false, &out);
    assert_non_null (
        strstr (strbuf_text (&out),
                "WARNING:  reservation 'short.0.0' has 4 proc(s) allocated but 0 detected\n"));
    drop_lines (want, "    Active");
    drop_lines (out.data, "    Active");
    drop_lines (want, "WARNING");
    drop_lines (out.data, "WARNING");
    assert_string_equal (out.data, want);
    free (want);
    strbuf_free (&out);
    reservations_free (&r);
}

static void showstate (void **state)
{
    static const char *const on[9][3] = {{"1024", "1026"},
                                         {"1035"},
                                         {"1026", "1024"},
                                         {"1021", "1024"},
                                         {"1021", "1025", "1024"},
                                         {"1014", "1024"},
                                         {"1014", "1018"},
                                         {"1018"},
                                         {NULL}};
    Nui__Local__V1__NodeInfo node[9], *list[9];
    struct nodes nodes = {.item = list, .count = 9};
    struct strbuf out = STRBUF_INIT;
    struct queue q;
    char *want = maui_output ("showstate.txt");
    (void)state;
    queue_make (&q);
    q.count = 7; /* the active ones come first */
    for (unsigned i = 0; i < 9; i++) {
        nui__local__v1__node_info__init (&node[i]);
        node[i].name = (char *)"n";
        node[i].state = (char *)(i == 8 ? "Drained" : "Busy");
        node[i].jobs = (char **)(uintptr_t)on[i];
        while (node[i].n_jobs < 3 && on[i][node[i].n_jobs])
            node[i].n_jobs++;
        list[i] = &node[i];
    }
    showstate_text (&q, &nodes, &out);
    size_t head = (size_t)(strstr (want, "usage summary") - want);
    assert_memory_equal (strbuf_text (&out), want, head); /* Maui counts a node once for each job */
    assert_non_null (strstr (strbuf_text (&out), "7 active jobs  8 active nodes"));
    assert_non_null (strstr (strbuf_text (&out), "               [1][2][3][4][5][6][7][8][9]\n"));
    assert_non_null (strstr (strbuf_text (&out), ": [G][D][G][F][F][E][E][C][!]"));
    free (want);
    strbuf_free (&out);
    arena_destroy (q.arena);
}

/* --- diagnose ----------------------------------------------------------------------------- */

static void diagnose_priorities (void **state)
{
    static char *cred[] = {(char *)"USER", (char *)"QOS"}, *fs[] = {(char *)"FSUSER"},
                *serv[] = {(char *)"QUEUETIME", (char *)"XFACTOR"}, *res[] = {(char *)"PROC"};
    static double cred_w[] = {1, 1}, fs_w[] = {10}, serv_w[] = {1, 10}, res_w[] = {2};
    static double a[] = {0, 0, 137, 25.1, 12.1, 24}, b[] = {0, 0, -270, 42, 17, 4},
                  c[] = {0, 0, -270, 2.6, 10.1, 4};
    Nui__Local__V1__PriorityPart part[4], *parts[] = {&part[0], &part[1], &part[2], &part[3]};
    Nui__Local__V1__PriorityRow row[3], *three[] = {&row[0], &row[1], &row[2]};
    Nui__Local__V1__PrioritiesChunk chunk = NUI__LOCAL__V1__PRIORITIES_CHUNK__INIT;
    struct priority_chunk link = {.message = &chunk};
    struct priorities p = {.first = &link, .last = &link};
    struct strbuf out = STRBUF_INIT;
    char *want = maui_output ("diagnose-p-after-spri.txt");
    const struct {
        const char *name;
        char **subs;
        double *weights;
        size_t n;
    } of[] = {{"CRED", cred, cred_w, 2},
              {"FS", fs, fs_w, 1},
              {"SERV", serv, serv_w, 2},
              {"RES", res, res_w, 1}};
    static const char *const id[] = {"1030", "1023", "1036"};
    static const int priority[] = {198, -208, -254};
    double *const values[] = {a, b, c};
    (void)state;
    for (int i = 0; i < 4; i++) {
        nui__local__v1__priority_part__init (&part[i]);
        part[i].component = (char *)(uintptr_t)of[i].name;
        part[i].weight = 1;
        part[i].subs = of[i].subs;
        part[i].n_subs = part[i].n_weights = of[i].n;
        part[i].weights = of[i].weights;
    }
    for (int i = 0; i < 3; i++) {
        nui__local__v1__priority_row__init (&row[i]);
        row[i].job_id = (char *)(uintptr_t)id[i];
        row[i].priority = priority[i];
        row[i].values = values[i];
        row[i].n_values = 6;
        row[i].system = i == 2;
    }
    chunk.parts = parts;
    chunk.n_parts = 4;
    chunk.rows = three;
    chunk.n_rows = 3;
    priorities_text (&p, false, &out);
    replace_all (want, "-270.", " -270"); /* Maui cuts the last digit off */
    assert_string_equal (strbuf_text (&out), want);
    free (want);
    strbuf_free (&out);
}

static void credentials_as_maui (const char *file, const char *kind,
                                 const Nui__Local__V1__CredentialRow *rows_of, size_t count)
{
    Nui__Local__V1__CredentialsReply reply = NUI__LOCAL__V1__CREDENTIALS_REPLY__INIT;
    Nui__Local__V1__CredentialRow *list[8];
    struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < count; i++)
        list[i] = (Nui__Local__V1__CredentialRow *)(uintptr_t)&rows_of[i];
    reply.rows = list;
    reply.n_rows = count;
    credentials_text (&reply, kind, false, &out);
    same_as (file, strbuf_text (&out), NULL);
    strbuf_free (&out);
}

static void diagnose_credentials (void **state)
{
    static const char *const users[] = {"carol", "alice", "bob", "root", "DEFAULT", "dave"};
    static const char *const classes[] = {"short", "batch"};
    static char *maxjob[] = {(char *)"MAXJOB=3"}, *maxproc[] = {(char *)"MAXPROC=16,20"};
    Nui__Local__V1__CredentialRow row[6];
    (void)state;
    for (int i = 0; i < 6; i++) {
        nui__local__v1__credential_row__init (&row[i]);
        row[i].name = (char *)(uintptr_t)users[i];
    }
    row[1].priority = 100;
    row[1].target = 40;
    row[1].limits = maxjob;
    row[2].target = 20;
    row[2].limits = maxproc;
    row[1].n_limits = row[2].n_limits = 1;
    row[4].target = 25;
    credentials_as_maui ("diagnose-u.txt", "user", row, 6);
    for (int i = 0; i < 2; i++) {
        nui__local__v1__credential_row__init (&row[i]);
        row[i].name = (char *)(uintptr_t)classes[i];
    }
    row[0].priority = 50;
    credentials_as_maui ("diagnose-c.txt", "class", row, 2);
}

/* But for [ALL], which is no QoS. */
static void diagnose_qos (void **state)
{
    static char *chem[] = {(char *)"chem"}, *flags[] = {(char *)"PREEMPTOR"};
    Nui__Local__V1__CredentialsReply reply = NUI__LOCAL__V1__CREDENTIALS_REPLY__INIT;
    Nui__Local__V1__CredentialRow row[2], *list[] = {&row[0], &row[1]};
    struct strbuf out = STRBUF_INIT;
    char *want = maui_output ("diagnose-Q.txt");
    (void)state;
    for (int i = 0; i < 2; i++) {
        nui__local__v1__credential_row__init (&row[i]);
        row[i].name = (char *)(i ? "hi" : "DEFAULT");
        row[i].groups = chem;
        row[i].n_groups = 1;
    }
    row[1].priority = 1000;
    row[1].flags = flags;
    row[1].n_flags = 1;
    reply.rows = list;
    reply.n_rows = 2;
    credentials_text (&reply, "qos", false, &out);
    drop_lines (want, "[ALL]");
    assert_string_equal (strbuf_text (&out), want);
    free (want);
    strbuf_free (&out);
}

/* In place of a test that compares: skipped before it has made anything. */
static void without_reference (void **state)
{
    (void)state;
    print_message ("skipped: the shared reference is not here (NUI_SHARED)\n");
    skip ();
}

/* --- statistics ---------------------------------------------------------------------------- */

#define PH(n) ((int64_t)((n)*3600e6)) /* processor-hours */

/* The cells of the reference: sums that give what Maui printed. */
struct cell {
    uint32_t row, column, jobs;
    double ph_asked, accuracy; /* percent */
};

static const struct cell cells[] = {
    {0, 3, 1, 10 / 60.0, 70}, {0, 5, 3, 3, 57.78},       {0, 6, 2, 4, 38.3333},
    {1, 3, 1, 20 / 60.0, 70}, {1, 4, 1, 1, 40},          {1, 5, 2, 4, 60.8333},
    {2, 6, 1, 8, 81.6667},    {3, 3, 2, 160 / 60.0, 95}, {3, 5, 2, 16, 33.3333},
    {4, 5, 1, 12, 78.3333},
};

static void cells_fill (struct grid *g)
{
    grid_clear (g);
    g->since_us = US_PER_S; /* "Thu Jan  1 00:00:01"; the reference begins at 0 */
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        Nui__Local__V1__JobSums s = NUI__LOCAL__V1__JOB_SUMS__INIT;
        s.jobs = cells[i].jobs;
        s.ps_asked_us = PH (cells[i].ph_asked);
        s.ps_run_us = PH (cells[i].ph_asked * cells[i].accuracy / 100);
        grid_add (g, cells[i].row, cells[i].column, &s);
    }
}

static void one_grid (const char *file, const char *statistic, const char *total)
{
    static struct grid g;
    struct strbuf out = STRBUF_INIT;
    cells_fill (&g);
    grid_text (&g, grid_stat_find (statistic), false, &out);
    strbuf_text (&out);
    char *want = maui_output (file);
    replace_all (want, "00:00:00", "00:00:01");
    char *line = total ? strstr (want, total) : NULL; /* whose last digits come of Maui's seconds */
    char *mine = total ? strstr (out.data, total) : NULL;
    if (line && mine)
        memset (line, ' ', strcspn (line, "\n")), memset (mine, ' ', strcspn (mine, "\n"));
    assert_string_equal (out.data, want);
    free (want);
    strbuf_free (&out);
}

static void grids (void **state)
{
    (void)state;
    one_grid ("showgrid-JOBCOUNT.txt", "jobcount", NULL);
    one_grid ("showgrid-PHREQUEST.txt", "PHREQUEST", NULL);
    one_grid ("showgrid-WCACCURACY.txt", "WCACCURACY", "Overall WallClock Accuracy");
    assert_int_equal (grid_stat_find ("NOSUCH"), -1);
}

static void summary (void **state)
{
    Nui__Local__V1__SummaryReply r = NUI__LOCAL__V1__SUMMARY_REPLY__INIT;
    Nui__Local__V1__JobSums s = NUI__LOCAL__V1__JOB_SUMS__INIT;
    struct strbuf out = STRBUF_INIT;
    (void)state;
    r.now_us = NOW;
    r.started_us = NOW - S (7260);
    r.since_us = US_PER_S;
    r.passes = 120;
    r.eligible_jobs = 11;
    r.idle_jobs = 14;
    r.active_jobs = 7;
    r.completed = &s;
    s.jobs = s.successful = 16;
    s.queue_us = PH (16 * .0933);
    s.queue_max_us = PH (1);
    s.xfactor_ppm = 16 * 1790000;
    s.xfactor_max_ppm = 2230000;
    s.bypass = 3;
    s.bypass_max = 3;
    s.accuracy_ppm = 16 * 605210;
    s.ps_run_us = s.ps_used_us = PH (1);
    r.dedicated_ps_us = PH (47.216);
    r.available_ps_us = PH (64.533);
    r.procs_active = 30;
    r.procs = 32;
    r.nodes_active = r.nodes = 8;
    r.least_ppm = 93750;
    r.least_pass = 6;
    summary_text (&r, true, &out);
    char *want = maui_output ("showstats-v.txt");
    /* its name, its beginning; an XFactor below 1; a negative backlog */
    replace_all (want, "Thu Jan  1 00:00:00", "Thu Jan  1 00:00:01");
    replace_all (want, "01:59:00", "01:58:00"); /* 2:01:00 before 03:59 */
    replace_all (want, "0.79/1.23", "1.79/2.23");
    replace_all (want, "-0.88/0.00", " 0.00/0.00");
    assert_string_equal (strbuf_text (&out), want);
    free (want);
    strbuf_free (&out);
}

static void sums_by_user (void **state)
{
    static const struct {
        const char *name;
        uint64_t active, procs;
        double left, asked, run, xf, queue, accuracy, target;
        uint64_t jobs;
    } user[] = {{"bob", 2, 6, 11.23, 25.5, 22.1, 1.69, .06, 61.38, 20, 6},
                {"alice", 3, 16, 12.6, 22.3333, 16.8, 1.76, .16, 59.04, 40, 7},
                {"dave", 1, 4, 12.73, 3, 4.9, 1.59, .01, 58.35, 0, 2},
                {"carol", 1, 4, 14.33, .33333, 1.9, 1.79, .01, 70, 0, 1}};
    Nui__Local__V1__SumsReply r = NUI__LOCAL__V1__SUMS_REPLY__INIT;
    Nui__Local__V1__SumsRow row[4], *made[4];
    Nui__Local__V1__JobSums sums[4], total = NUI__LOCAL__V1__JOB_SUMS__INIT;
    struct strbuf out = STRBUF_INIT;
    (void)state;
    r.since_us = US_PER_S;
    r.total = &total;
    r.rows = made;
    for (int i = 0; i < 4; i++) {
        nui__local__v1__sums_row__init (&row[i]);
        nui__local__v1__job_sums__init (&sums[i]);
        made[r.n_rows++] = &row[i];
        row[i].completed = &sums[i];
        row[i].name = (char *)user[i].name;
        row[i].active_jobs = user[i].active;
        row[i].active_procs = user[i].procs;
        row[i].active_ps_us = PH (user[i].left + 1e-6);
        row[i].target = user[i].target;
        row[i].target_type = (char *)(user[i].target > 0 ? "=" : "");
        sums[i].jobs = user[i].jobs;
        sums[i].ps_asked_us = PH (user[i].asked);
        sums[i].ps_run_us = sums[i].ps_used_us = PH (user[i].run);
        sums[i].xfactor_ppm = (int64_t)(user[i].xf * 1e6 * (double)user[i].jobs);
        sums[i].queue_us = PH (user[i].queue * (double)user[i].jobs + 1e-6);
        sums[i].accuracy_ppm = (int64_t)(user[i].accuracy * 1e4 * (double)user[i].jobs + 1);
        sums_add (&total, &sums[i]);
    }
    sums_text (&r, "user", false, &out);
    /* Column for column where Maui has them; what is summed up of rounded figures differs in places. */
    char *want = maui_output ("showstats-u.txt"), *a = NULL, *b = NULL;
    char *mine = strtok_r (strbuf_text (&out), "\n", &a), *theirs = strtok_r (want, "\n", &b);
    for (int n = 0; n < 7; n++) {
        assert_non_null (mine);
        assert_non_null (theirs);
        if (n == 0)
            assert_string_equal (mine, "statistics initialized Thu Jan  1 00:00:01");
        else if (n < 3)
            assert_string_equal (mine, theirs);
        else
            for (size_t c = 0; c <= strlen (theirs); c++)
                assert_int_equal (mine[c] == ' ' || !mine[c], theirs[c] == ' ' || !theirs[c]);
        mine = strtok_r (NULL, "\n", &a);
        theirs = strtok_r (NULL, "\n", &b);
    }
    free (want);
    strbuf_free (&out);
}

int main (void)
{
    setenv ("TZ", "UTC", 1);
    tzset ();
    char path[512];
    bool reference = access (reference_path ("", path, sizeof path), R_OK) == 0;
#define COMPARES(name)                                                                             \
    {                                                                                              \
#name, reference ? name : without_reference, NULL, NULL, NULL                              \
    }
    const struct CMUnitTest tests[] = {
        COMPARES (showq),
        COMPARES (showq_running),
        COMPARES (showq_idle),
        COMPARES (showq_blocked),
        cmocka_unit_test (showq_rows_only_and_hidden),
        COMPARES (showbf),
        COMPARES (showstart),
        COMPARES (showres),
        COMPARES (showres_by_node),
        COMPARES (diagnose_reservations_as_maui),
        COMPARES (showstate),
        COMPARES (diagnose_priorities),
        COMPARES (diagnose_credentials),
        COMPARES (diagnose_qos),
        COMPARES (grids),
        COMPARES (summary),
        COMPARES (sums_by_user),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
