/* nui usage --format: each charge and refund of a period as other accounting systems take it: APEL's messages, what
 * Open XDMoD's shredder reads of Slurm, ACCESS's usage messages, and as rows. Called by the client only; what is
 * written depends on the ledger alone, so that a period that is written again is the same again, name by name of its
 * files and record by record. What is sent is somebody else's to do. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bank/cli/usageexport.h"
#include "proto/cli/jsonout.h"

enum {
    PAGE = 1000,
    MESSAGE_RECORDS = 1000,     /* APEL's and ACCESS's most in one message */
    MESSAGE_BYTES = 240 * 1024, /* ACCESS's are at most 256 KB */
    NAME_BYTES = 128,
    DAY_S = 86400
};

typedef Nui__Bank__V1__UsageRecord record;

struct export
{
    const char *grid;          /* of SubmitHost */
    const char *as;            /* the site's name there; NULL: as here */
    const char *level;         /* the benchmark's name; NULL: none was said */
    const char *factor;        /* and its value */
    const char *folder;        /* NULL: standard output */
    struct strbuf out;         /* of the message, so far */
    uint32_t count;            /* records in it */
    uint64_t first;            /* operation of its first record */
    const struct summary *sum; /* the one that is written */
};

/* The runs of a month that differ in nothing that APEL asks for. */
struct summary {
    time_us earliest, latest; /* that ended */
    int64_t wall_s, cpu_s, jobs;
};

/* A format: which records it has, and how each is written. A message is head, records with `between`, and tail. */
struct format {
    const char *name;
    bool (*takes) (const record *r);
    void (*put) (const struct export *e, const record *r, struct strbuf *out);
    const char *head, *between, *tail;
    uint32_t records_max; /* 0: any number */
    bool sums;            /* its records are summaries of whole months */
    bool queue;           /* its files go into a queue of directories, as ssmsend has one; else: */
    const char *begins, *ends; /* what a file's name has around the first record's operation */
};

/* ---- what several have ---- */

static int64_t seconds (time_us t)
{
    return t / US_PER_S;
}

/* Between moments in whole seconds, so that it agrees with them. */
static int64_t wall_s (const record *r)
{
    return seconds (r->end_us) - seconds (r->start_us);
}

static int64_t cpu_s (const record *r)
{
    return (r->cpu_us + US_PER_S / 2) / US_PER_S;
}

static bool is_charge (const record *r)
{
    return r->op_id == r->charge_op_id;
}

/* A run that has ended, once: its last charge tells of all of it. */
static bool takes_run (const record *r)
{
    return is_charge (r) && r->final;
}

static const char *site_of (const struct export *e, const record *r)
{
    return e->as ? e->as : r->site;
}

/* A name in a line of text: what would end the name or the line is a space. */
static void name_put (struct strbuf *out, const char *name)
{
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        strbuf_putc (out, *p < 0x20 || *p == 0x7f || *p == '|' ? ' ' : (char)*p);
}

static void utc (time_us at, char text[32])
{
    time_t t = (time_t)seconds (at);
    struct tm tm;
    gmtime_r (&t, &tm);
    strftime (text, 32, "%Y-%m-%dT%H:%M:%S", &tm);
}

/* ---- APEL ---- */

static void apel_line (struct strbuf *out, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    strbuf_printf (out, "%s: ", key);
    name_put (out, value);
    strbuf_putc (out, '\n');
}

static void apel_number (struct strbuf *out, const char *key, int64_t value)
{
    strbuf_printf (out, "%s: %lld\n", key, (long long)value);
}

/* "nui://demo/user/alice" as the name that a certificate of her has. */
static void apel_user (struct strbuf *out, const char *identity)
{
    static const char scheme[] = "nui://", user[] = "/user/";
    const char *grid = identity + sizeof scheme - 1;
    const char *name =
        strncmp (identity, scheme, sizeof scheme - 1) == 0 ? strstr (grid, user) : NULL;
    if (!name) {
        apel_line (out, "GlobalUserName", identity);
        return;
    }
    strbuf_puts (out, "GlobalUserName: /DC=nui/O=");
    for (; grid < name; grid++)
        strbuf_putc (out, *grid);
    strbuf_puts (out, "/CN=");
    name_put (out, name + sizeof user - 1);
    strbuf_putc (out, '\n');
}

/* Of a job that a metascheduler sent; else it is the site's own. */
static const char *apel_infrastructure (const record *r)
{
    return r->grid_job_id[0] && strcmp (r->grid_job_id, r->site_job_id) != 0 ? "grid" : "local";
}

static void apel_host (const struct export *e, struct strbuf *out)
{
    strbuf_puts (out, "SubmitHost: ");
    name_put (out, e->grid);
    strbuf_puts (out, "/nui\n");
}

static void apel_level (const struct export *e, struct strbuf *out)
{
    apel_line (out, "ServiceLevelType", e->level);
    apel_line (out, "ServiceLevel", e->factor);
}

static void apel_put (const struct export *e, const record *r, struct strbuf *out)
{
    apel_line (out, "Site", site_of (e, r));
    apel_host (e, out);
    apel_line (out, "MachineName", r->machine[0] ? r->machine : r->site);
    apel_line (out, "Queue", r->ran->class_);
    strbuf_puts (out, "LocalJobId: ");
    name_put (out, r->site_job_id);
    if (r->incarnation) /* another run of the job */
        strbuf_printf (out, "-%u", r->incarnation);
    strbuf_putc (out, '\n');
    apel_line (out, "LocalUserId", r->ran->local_user);
    apel_user (out, r->user);
    if (r->project[0]) {
        strbuf_puts (out, "FQAN: /");
        name_put (out, r->project);
        strbuf_puts (out, "/Role=NULL/Capability=NULL\n");
    }
    apel_number (out, "WallDuration", wall_s (r));
    apel_number (out, "CpuDuration", cpu_s (r));
    apel_number (out, "Processors", (int64_t)r->procs);
    if (r->ran->nodes)
        apel_number (out, "NodeCount", (int64_t)r->ran->nodes);
    apel_number (out, "StartTime", seconds (r->start_us));
    apel_number (out, "EndTime", seconds (r->end_us));
    apel_line (out, "InfrastructureDescription", "NUI");
    apel_line (out, "InfrastructureType", apel_infrastructure (r));
    if (r->ran->memory_mb)
        apel_number (out, "MemoryReal", r->ran->memory_mb * 1024);
    apel_level (e, out);
    strbuf_puts (out, "%%\n");
}

/* 12 * year + month, from 0. */
static int month_of (time_us at)
{
    time_t t = (time_t)seconds (at);
    struct tm tm;
    gmtime_r (&t, &tm);
    return 12 * (tm.tm_year + 1900) + tm.tm_mon;
}

/* 0: of one summary. */
static int summary_cmp (const record *a, const record *b)
{
    int c = strcmp (a->site, b->site);
    c = c ? c : month_of (a->end_us) - month_of (b->end_us);
    c = c ? c : strcmp (a->user, b->user);
    c = c ? c : strcmp (a->project, b->project);
    c = c ? c : strcmp (apel_infrastructure (a), apel_infrastructure (b));
    c = c ? c : (a->ran->nodes > b->ran->nodes) - (a->ran->nodes < b->ran->nodes);
    return c ? c : (a->procs > b->procs) - (a->procs < b->procs);
}

static int summary_order (const void *a, const void *b)
{
    const record *x = *(record *const *)a, *y = *(record *const *)b;
    int c = summary_cmp (x, y);
    return c ? c : (x->op_id > y->op_id) - (x->op_id < y->op_id);
}

static void summary_put (const struct export *e, const record *r, struct strbuf *out)
{
    int month = month_of (r->end_us);
    apel_line (out, "Site", site_of (e, r));
    apel_number (out, "Month", month % 12 + 1);
    apel_number (out, "Year", month / 12);
    apel_user (out, r->user);
    if (r->project[0]) {
        apel_line (out, "VO", r->project);
        strbuf_puts (out, "VOGroup: /");
        name_put (out, r->project);
        strbuf_puts (out, "\nVORole: Role=NULL\n");
    }
    apel_host (e, out);
    apel_line (out, "InfrastructureType", apel_infrastructure (r));
    apel_level (e, out);
    if (r->ran->nodes)
        apel_number (out, "NodeCount", (int64_t)r->ran->nodes);
    apel_number (out, "Processors", (int64_t)r->procs);
    apel_number (out, "EarliestEndTime", seconds (e->sum->earliest));
    apel_number (out, "LatestEndTime", seconds (e->sum->latest));
    apel_number (out, "WallDuration", e->sum->wall_s);
    apel_number (out, "CpuDuration", e->sum->cpu_s);
    apel_number (out, "NumberOfJobs", e->sum->jobs);
    strbuf_puts (out, "%%\n");
}

/* ---- Open XDMoD ---- */

static void xdmod_moment (struct strbuf *out, time_us at)
{
    char text[32];
    utc (at, text);
    strbuf_printf (out, "%s|", text);
}

static void xdmod_duration (struct strbuf *out, int64_t s)
{
    if (s >= DAY_S)
        strbuf_printf (out, "%lld-", (long long)(s / DAY_S));
    strbuf_printf (out, "%02d:%02d:%02d|", (int)(s % DAY_S / 3600), (int)(s % 3600 / 60),
                   (int)(s % 60));
}

static void xdmod_name (struct strbuf *out, const char *name)
{
    name_put (out, name);
    strbuf_putc (out, '|');
}

/* The number of "alpha.17"; 0: its name has none. */
static unsigned long long xdmod_number (const record *r)
{
    const char *dot = strchr (r->site_job_id, '.');
    const char *digits = dot ? dot + 1 : "";
    size_t len = strspn (digits, "0123456789");
    return len && len < 19 && !digits[len] ? strtoull (digits, NULL, 10) : 0;
}

static void xdmod_put (const struct export *e, const record *r, struct strbuf *out)
{
    unsigned long long op = r->op_id, number = xdmod_number (r);
    time_us submitted = r->ran->submitted_us ? r->ran->submitted_us : r->start_us;
    strbuf_printf (out, "%llu|%llu|", number ? number : op, op);
    xdmod_name (out, site_of (e, r));
    xdmod_name (out, r->ran->class_);
    xdmod_name (out, r->qos);
    xdmod_name (out, r->account);
    xdmod_name (out, r->project); /* the group, and Open XDMoD's principal investigator */
    strbuf_putc (out, '|');
    xdmod_name (out, r->ran->local_user[0] ? r->ran->local_user : bank_short_name (r->user));
    strbuf_putc (out, '|');
    xdmod_moment (out, submitted);
    xdmod_moment (out, submitted);
    xdmod_moment (out, r->start_us);
    xdmod_moment (out, r->end_us);
    xdmod_duration (out, wall_s (r));
    strbuf_puts (out, r->successful ? "0:0|COMPLETED|" : "1:0|FAILED|");
    strbuf_printf (out, "%llu|%llu|%llu||cpu=%llu|cpu=%llu,node=%llu|",
                   (unsigned long long)(r->ran->nodes ? r->ran->nodes : 1),
                   (unsigned long long)r->procs, (unsigned long long)r->procs,
                   (unsigned long long)r->procs, (unsigned long long)r->procs,
                   (unsigned long long)(r->ran->nodes ? r->ran->nodes : 1));
    if (r->walltime_us)
        xdmod_duration (out, seconds (r->walltime_us));
    else
        strbuf_putc (out, '|');
    strbuf_putc (out, '|');
    name_put (out, r->grid_job_id[0] ? r->grid_job_id : r->site_job_id);
    strbuf_putc (out, '\n');
}

/* ---- ACCESS ---- */

static bool takes_use (const record *r)
{
    return is_charge (r) && r->project[0];
}

/* What waits for somebody to say whose it is was charged to no project. */
static bool takes_adjustment (const record *r)
{
    return !is_charge (r) && r->project[0] && r->amount_micro != 0;
}

static void access_credits (struct jsonout *j, const char *key, credit_micro amount)
{
    char text[48];
    snprintf (text, sizeof text, "%lld.%06lld", (long long)(amount / MICRO_PER_CREDIT),
              (long long)(amount % MICRO_PER_CREDIT));
    jsonout_key (j, key);
    jsonout_text (j, text);
}

static void access_text (struct jsonout *j, const char *key, const char *text)
{
    jsonout_key (j, key);
    jsonout_text (j, text);
}

static void access_moment (struct jsonout *j, const char *key, time_us at)
{
    char text[40];
    utc (at, text);
    strcat (text, "Z");
    access_text (j, key, text);
}

static void access_number (struct jsonout *j, const char *key, uint64_t n)
{
    jsonout_key (j, key);
    jsonout_uint (j, n);
}

/* Record and project, the same for a charge and for what is given back of one. */
static void access_whose (const struct export *e, const record *r, struct jsonout *j)
{
    char id[32];
    snprintf (id, sizeof id, "op.%llu", (unsigned long long)r->op_id);
    access_text (j, "Username",
                 r->ran->local_user[0] ? r->ran->local_user : bank_short_name (r->user));
    access_text (j, "LocalProjectID", r->project);
    access_text (j, "LocalRecordID", id);
    access_text (j, "Resource", site_of (e, r));
}

static void access_put (const struct export *e, const record *r, struct strbuf *out)
{
    struct jsonout j = jsonout_make (out);
    jsonout_object (&j);
    access_whose (e, r, &j);
    access_text (&j, "LocalReference", r->site_job_id);
    access_moment (&j, "SubmitTime", r->ran->submitted_us ? r->ran->submitted_us : r->start_us);
    access_moment (&j, "StartTime",
                   r->since_us); /* of a run that was charged in parts: of this one */
    access_moment (&j, "EndTime", r->end_us);
    access_credits (&j, "Charge", r->amount_micro);
    jsonout_key (&j, "Attributes");
    jsonout_object (&j);
    if (r->ran->nodes)
        access_number (&j, "NodeCount", r->ran->nodes);
    access_number (&j, "CpuCoreCount", r->procs);
    access_text (&j, "JobName", r->grid_job_id[0] ? r->grid_job_id : r->site_job_id);
    if (r->ran->memory_mb) {
        char text[32];
        snprintf (text, sizeof text, "%lldMB", (long long)r->ran->memory_mb);
        access_text (&j, "Memory", text);
    }
    if (r->ran->class_[0])
        access_text (&j, "Queue", r->ran->class_);
    jsonout_end (&j);
    jsonout_end (&j);
}

static void adjustment_put (const struct export *e, const record *r, struct strbuf *out)
{
    struct jsonout j = jsonout_make (out);
    char text[64];
    jsonout_object (&j);
    access_text (&j, "AdjustmentType", "refund");
    access_whose (e, r, &j);
    access_moment (&j, "StartTime", r->start_us);
    access_credits (&j, "Charge", -r->amount_micro);
    snprintf (text, sizeof text, "of op.%llu", (unsigned long long)r->charge_op_id);
    access_text (&j, "Comment", text);
    jsonout_end (&j);
}

/* ---- rows ---- */

static const struct table_column columns[] = {
    {"op", "Op", TABLE_INT, .from = "op_id"},
    {"recorded", "Recorded", TABLE_TIME},
    {"charge", "Charge", TABLE_INT, .from = "charge_op_id"},
    {"amount", "Amount", TABLE_CREDITS},
    {"disputed", "Disputed", TABLE_CREDITS},
    {"site", "Site", TABLE_TEXT},
    {"site_job", "SiteJob", TABLE_TEXT, .from = "site_job_id"},
    {"component", "Component", TABLE_TEXT},
    {"incarnation", "Run", TABLE_INT},
    {"job", "Job", TABLE_TEXT, .from = "grid_job_id"},
    {"user", "User", TABLE_IDENTITY},
    {"account", "Account", TABLE_TEXT},
    {"project", "Project", TABLE_TEXT},
    {"qos", "QoS", TABLE_TEXT},
    {"machine", "Machine", TABLE_TEXT},
    {"procs", "Procs", TABLE_INT},
    {"since", "Since", TABLE_TIME},
    {"start", "Start", TABLE_TIME},
    {"end", "End", TABLE_TIME},
    {"final", "Final", TABLE_BOOL},
    {"successful", "Successful", TABLE_BOOL},
    {"cpu", "CPU", TABLE_DURATION},
    {"nodes", "Nodes", TABLE_INT, .from = "ran.nodes"},
    {"memory_mb", "MemoryMB", TABLE_INT, .from = "ran.memory_mb"},
    {"submitted", "Submitted", TABLE_TIME, .from = "ran.submitted"},
    {"local_user", "LocalUser", TABLE_TEXT, .from = "ran.local_user"},
    {"class", "Class", TABLE_TEXT, .from = "ran.class"},
    {"walltime", "Walltime", TABLE_DURATION}};

/* ---- messages ---- */

#define ACCESS(type) "{\"UsageType\": \"" type "\", \"Records\": [\n"

static const struct format formats[] = {
    {"apel", takes_run, apel_put, "APEL-individual-job-message: v0.3\n", "", "", MESSAGE_RECORDS,
     .queue = true},
    {"apel-summary", takes_run, summary_put, "APEL-summary-job-message: v0.2\n", "", "",
     MESSAGE_RECORDS, .queue = true, .sums = true},
    {"xdmod", takes_run, xdmod_put, "", "", "", 0, .begins = "nui-", .ends = ".sacct"},
    /* What was used first: an adjustment is of a record that is there. */
    {"access", takes_use, access_put, ACCESS ("Compute"), ",", "]}\n", MESSAGE_RECORDS,
     .begins = "nui-1-", .ends = ".json"},
    {"access", takes_adjustment, adjustment_put, ACCESS ("Adjustment"), ",", "]}\n",
     MESSAGE_RECORDS, .begins = "nui-2-", .ends = ".json"},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Whole or not at all, and durable before it has its name: the sender takes whatever has one. */
static int file_write (const char *folder, const char *name, const struct strbuf *text,
                       struct err *err)
{
    char path[PATH_MAX], part[PATH_MAX];
    if (snprintf (path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path ||
        snprintf (part, sizeof part, "%s/%s.tmp", folder, name) >= (int)sizeof part)
        return err_set (err, ERR_INVALID, "the folder's name is too long");
    FILE *f = fopen (part, "w");
    bool whole = f && fwrite (text->data, 1, text->len, f) == text->len && fflush (f) == 0 &&
                 fsync (fileno (f)) == 0;
    int why = errno;
    if (f && fclose (f) != 0 && whole) {
        whole = false;
        why = errno;
    }
    if (whole && rename (part, path) == 0)
        return 0;
    why = whole ? errno : why;
    if (f)
        unlink (part);
    return err_set (err, ERR_IO, "cannot write %s: %s", path, strerror (why));
}

/* The same message has the same name, whenever it is written. In a queue of directories the names are those that its
 * reader looks for: eight and fourteen digits. */
static int message_file (struct export *e, const struct format *f, struct err *err)
{
    char name[NAME_BYTES], folder[PATH_MAX];
    unsigned long long first = e->first;
    if (!f->queue) {
        snprintf (name, sizeof name, "%s%014llx%s", f->begins, first, f->ends);
        return file_write (e->folder, name, &e->out, err);
    }
    snprintf (name, sizeof name, "%014llx", first);
    if (snprintf (folder, sizeof folder, "%s/%08llx", e->folder, first >> 32) >= (int)sizeof folder)
        return err_set (err, ERR_INVALID, "the folder's name is too long");
    if (mkdir (folder, 0777) < 0 && errno != EEXIST)
        return err_set (err, ERR_IO, "cannot make %s: %s", folder, strerror (errno));
    return file_write (folder, name, &e->out, err);
}

/* What is ready of the message goes out; nothing without records. */
static int message_end (struct export *e, const struct format *f, struct err *err)
{
    int rc = 0;
    if (e->count == 0)
        return 0;
    strbuf_puts (&e->out, f->tail);
    if (e->folder)
        rc = message_file (e, f, err);
    else if (cli_output (&e->out) != CLI_OK)
        rc = err_set (err, ERR_IO, "standard output cannot be written");
    strbuf_clear (&e->out);
    e->count = 0;
    return rc;
}

static int message_add (struct export *e, const struct format *f, const record *r, struct err *err)
{
    struct strbuf one = STRBUF_INIT;
    int rc = 0;
    f->put (e, r, &one);
    if (f->records_max && e->count &&
        (e->count == f->records_max || e->out.len + one.len > MESSAGE_BYTES))
        rc = e->folder ? message_end (e, f, err)
                       : err_set (err, ERR_LIMIT,
                                  "there is more than one message may have, %d records of %d KB: "
                                  "--output FOLDER writes several",
                                  MESSAGE_RECORDS, MESSAGE_BYTES / 1024);
    if (rc == 0) {
        if (e->count == 0)
            e->first = r->op_id;
        strbuf_puts (&e->out, e->count == 0 ? f->head : f->between);
        strbuf_append (&e->out, one.data, one.len);
        e->count++;
    }
    strbuf_free (&one);
    return rc;
}

/* The list is put into their order. */
static int summaries_put (struct export *e, const struct format *f, record **list, size_t n,
                          struct err *err)
{
    int rc = 0;
    size_t runs = 0;
    for (size_t i = 0; i < n; i++)
        if (f->takes (list[i]))
            list[runs++] = list[i];
    if (runs)
        qsort (list, runs, sizeof *list, summary_order);
    for (size_t i = 0, k; i < runs && rc == 0; i = k) {
        struct summary sum = {.earliest = list[i]->end_us, .latest = list[i]->end_us};
        for (k = i; k < runs && summary_cmp (list[i], list[k]) == 0; k++) {
            const record *r = list[k];
            sum.earliest = r->end_us < sum.earliest ? r->end_us : sum.earliest;
            sum.latest = r->end_us > sum.latest ? r->end_us : sum.latest;
            sum.wall_s += wall_s (r);
            sum.cpu_s += cpu_s (r);
            sum.jobs++;
        }
        e->sum = &sum;
        rc = message_add (e, f, list[i], err);
    }
    e->sum = NULL;
    return rc == 0 ? message_end (e, f, err) : rc;
}

static int messages_put (struct export *e, const struct format *f, record **list, size_t n,
                         struct err *err)
{
    if (f->sums)
        return summaries_put (e, f, list, n, err);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        if (f->takes (list[i]))
            rc = message_add (e, f, list[i], err);
    return rc == 0 ? message_end (e, f, err) : rc;
}

/* ---- the period's records ---- */

struct pages {
    ProtobufCMessage **page; /* of the arena; to be freed each */
    record **list;           /* all of theirs */
    uint32_t pages, pages_cap, count, cap;
};

/* A summary takes the place of the one before it, so it has all that ended in its months, however late it was charged:
 * what was recorded since then, and a day before, since a site's clock may be ahead by so much. */
static void records_of_months (const struct cli_period *period, struct pages *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->list[i]->end_us >= period->from && p->list[i]->end_us < period->to)
            p->list[count++] = p->list[i];
    p->count = count;
}

static bool is_month (time_us at)
{
    return at > 0 && month_of (at) != month_of (at - 1);
}

/* Page by page, up to the moment that the first one names: what is recorded meanwhile is another period's. */
static int records_read (struct cli_context *ctx, const struct cli_said *said,
                         Nui__Bank__V1__UsageRecordsRequest *request, struct pages *p,
                         struct err *err)
{
    const Nui__Bank__V1__UsageRecordsReply *reply;
    do {
        ProtobufCMessage *answer = bank_call (ctx, "UsageRecords", &request->base, err);
        if (!answer)
            return err->code;
        reply = (const Nui__Bank__V1__UsageRecordsReply *)answer;
        p->page = bank_grown (said->arena, p->page, p->pages, &p->pages_cap, 1, sizeof *p->page);
        p->page[p->pages++] = answer;
        p->list =
            bank_grown (said->arena, p->list, p->count, &p->cap, reply->n_records, sizeof *p->list);
        for (size_t i = 0; i < reply->n_records; i++) {
            if (!reply->records[i]->ran)
                return err_set (err, ERR_INVALID, "the bank's answer has a record of no run");
            p->list[p->count++] = reply->records[i];
            request->after = reply->records[i]->op_id;
        }
        request->to_us = reply->to_us;
    } while (reply->n_records == PAGE);
    return 0;
}

/* --benchmark hepscore23=15.3: of APEL's three, and a number above nothing. */
static bool benchmark_read (const char *text, struct arena *arena, struct export *e)
{
    static const char *const known[] = {"hepscore23", "hepspec", "si2k"};
    const char *eq = text ? strchr (text, '=') : NULL;
    struct err err = {0};
    int64_t ppm;
    if (!text)
        return true;
    for (size_t i = 0; eq && i < sizeof known / sizeof *known; i++)
        if (strncmp (text, known[i], (size_t)(eq - text)) == 0 && !known[i][eq - text])
            e->level = known[i];
    e->factor = eq ? arena_strdup (arena, eq + 1) : NULL;
    return e->level && ppm_parse (e->factor, "benchmark", &ppm, &err) == 0 && ppm > 0;
}

static int export_messages (struct cli_context *ctx, const struct cli_said *said,
                            const struct pages *p, struct err *err)
{
    struct export e = {.as = said_text (said, "as"), .folder = said_text (said, "output")};
    const char *name = said_text (said, "format");
    int rc = 0;
    benchmark_read (said_text (said, "benchmark"), said->arena, &e);
    e.grid = cli_grid (ctx, err);
    if (!e.grid)
        return err->code;
    for (int i = 0; i < FORMATS && rc == 0; i++)
        if (strcmp (formats[i].name, name) == 0)
            rc = messages_put (&e, &formats[i], p->list, p->count, err);
    strbuf_free (&e.out);
    return rc;
}

/* Whether the words make sense; -1, or the code after a sentence. */
static int export_refuse (struct cli_context *ctx, const struct cli_said *said, bool *rows)
{
    const char *format = said_text (said, "format");
    struct export e = {0};
    bool known = false;
    *rows = strcmp (format, "csv") == 0 || strcmp (format, "json") == 0;
    for (int i = 0; i < FORMATS; i++)
        known |= strcmp (formats[i].name, format) == 0;
    if (!known && !*rows)
        return cli_usage ("usage", "--format takes apel, apel-summary, xdmod, access, csv or json");
    if (cli_format (ctx) != CLI_TABLE)
        return cli_usage ("usage", "--format says the form, without --json or --csv");
    if (strcmp (format, "apel-summary") == 0) {
        struct cli_period period;
        said_period (said, &period);
        if (!is_month (period.from) || !is_month (period.to))
            return cli_usage (
                "usage", "apel-summary is of whole months in UTC: TZ=UTC and --period 2026-11");
    }
    if (!benchmark_read (said_text (said, "benchmark"), said->arena, &e))
        return cli_usage ("usage", "--benchmark takes hepscore23=, hepspec= or si2k=NUMBER");
    if (*rows && (said_given (said, "as") || said_given (said, "output")))
        return cli_usage ("usage", "--as and --output are for messages, not for rows");
    if (said_given (said, "benchmark") && strncmp (format, "apel", 4) != 0)
        return cli_usage ("usage", "--benchmark is for --format apel and apel-summary");
    return -1;
}

int usage_export (struct cli_context *ctx, const struct cli_said *said)
{
    struct pages pages = {0};
    struct err err = {0};
    bool rows;
    int rc = export_refuse (ctx, said, &rows);
    if (rc >= 0)
        return rc;
    Nui__Bank__V1__UsageRecordsRequest *request =
        (Nui__Bank__V1__UsageRecordsRequest *)cli_request (ctx, said, &rc);
    if (!request)
        return rc;
    bool months = strcmp (said_text (said, "format"), "apel-summary") == 0;
    struct cli_period period;
    said_period (said, &period);
    if (months) {
        request->from_us = period.from - DAY_S * US_PER_S;
        request->to_us = 0;
    }
    int got = records_read (ctx, said, request, &pages, &err);
    if (months)
        records_of_months (&period, &pages);
    if (got < 0 || (!rows && export_messages (ctx, said, &pages, &err) < 0)) {
        rc = cli_fail ("usage", &err);
    } else {
        rc = CLI_OK;
        if (rows) {
            cli_set_format (ctx,
                            strcmp (said_text (said, "format"), "csv") == 0 ? CLI_CSV : CLI_JSON);
            rc = TABLE_SHOW (ctx, columns, pages.list, pages.count);
        }
    }
    for (uint32_t i = 0; i < pages.pages; i++)
        protobuf_c_message_free_unpacked (pages.page[i], NULL);
    return rc;
}
