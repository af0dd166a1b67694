/* nui reconcile: what a site ran against what the bank charged, and Slurm's accounting against both. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/cli/reconrows.h"
#include "proto/base/clock.h"
#include "proto/cli/options.h"

enum { CALL_TIMEOUT_S = 30, PAGE = 1000, WAITING_MAX = 10000, SACCT_BYTES_MAX = 1 << 30 };
#define SLURM_MARGIN (3600 * US_PER_S) /* runs around the period that Slurm may have put into it */

struct reconcile_args {
    const char *site, *sacct;
    struct cli_period period;
    duration_us late;
    bool record, apply;
};

struct reconcile {
    struct cli_context *ctx;
    const struct reconcile_args *args;
    struct arena *arena;
    struct recon_books books;
    uint32_t run_cap, job_cap;
    uint64_t waiting, refused;
    time_us waiting_since;
    const char *waiting_why;
    ProtobufCMessage **kept; /* the answers that the books point into */
    uint32_t kept_count, kept_cap;
};

/* --- collecting ------------------------------------------------------------------------------- */

static void keep (struct reconcile *rec, void *message)
{
    rec->kept =
        bank_grown (rec->arena, rec->kept, rec->kept_count, &rec->kept_cap, 1, sizeof (*rec->kept));
    rec->kept[rec->kept_count++] = message;
}

static int runs_page (struct reconcile *rec, const Nui__Local__V1__RunsRequest *request,
                      Nui__Local__V1__RunsReply **out, struct err *err)
{
    struct rpcclient *site = cli_site (rec->ctx, rec->args->site, err);
    ProtobufCMessage *reply = NULL;
    if (!site || rpcclient_call (site, &nui__local__v1__stats__descriptor, "Runs", &request->base,
                                 CALL_TIMEOUT_S * US_PER_S, true, &reply, err) < 0)
        return err->code;
    keep (rec, reply);
    *out = (Nui__Local__V1__RunsReply *)reply;
    return 0;
}

/* All of a job (its runs within the period are there already), or of the period and its margins. */
static int runs_take (struct reconcile *rec, Nui__Local__V1__RunsRequest *request, struct err *err)
{
    struct recon_books *b = &rec->books;
    bool one = *request->site_job_id;
    Nui__Local__V1__RunsReply *page = NULL;
    do {
        if (runs_page (rec, request, &page, err) < 0)
            return err->code;
        b->run = bank_grown (rec->arena, b->run, b->run_count, &rec->run_cap, page->n_runs,
                             sizeof (*b->run));
        for (size_t i = 0; i < page->n_runs; i++) {
            const Nui__Local__V1__Run *m = page->runs[i];
            if (!m->charge)
                return err_set (err, ERR_INTERNAL, "site %s sent a run without its charge",
                                rec->args->site);
            bool outside = m->charge->end_us < b->from || m->charge->end_us >= b->to;
            request->after_end_us = m->charge->end_us;
            request->after = m->sequence;
            if (!one || outside)
                b->run[b->run_count++] = (struct recon_run){m, outside};
        }
        if (page->n_open) { /* on the first page only */
            b->open = page->open;
            b->open_count = page->n_open;
        }
        b->first = page->first_us;
        rec->waiting = page->waiting;
        rec->refused = page->refused;
        rec->waiting_since = page->waiting_since_us;
        rec->waiting_why = page->waiting_why;
    } while (page->n_runs == PAGE);
    return 0;
}

static int jobs_take (struct reconcile *rec, Nui__Bank__V1__JobListRequest *request,
                      struct err *err)
{
    struct recon_books *b = &rec->books;
    bool one = *request->site_job_id;
    const Nui__Bank__V1__JobListReply *page;
    do {
        ProtobufCMessage *reply = bank_call (rec->ctx, "JobList", &request->base, err);
        if (!reply)
            return err->code;
        keep (rec, reply);
        page = (Nui__Bank__V1__JobListReply *)reply;
        b->job = bank_grown (rec->arena, b->job, b->job_count, &rec->job_cap, page->n_jobs,
                             sizeof (*b->job));
        for (size_t i = 0; i < page->n_jobs; i++) {
            const Nui__Bank__V1__JobRecord *m = page->jobs[i];
            bool outside = m->end_us < b->from || m->end_us >= b->to;
            request->after = m->number;
            if (!one || outside)
                b->job[b->job_count++] = (struct recon_job){m, outside};
        }
    } while (page->n_jobs == PAGE);
    return 0;
}

/* What one side has within the period and the other does not: does it have it outside? */
static int strangers_look_up (struct reconcile *rec, struct err *err)
{
    const char **at_bank, **at_site;
    uint32_t site_count,
        bank_count = recon_strangers (&rec->books, &at_bank, &at_site, &site_count);
    struct cli_progress *progress =
        cli_progress_start ("looking up", (uint64_t)bank_count + site_count);
    int rc = 0;
    for (uint32_t i = 0; i < bank_count && rc == 0; i++) {
        Nui__Bank__V1__JobListRequest request = NUI__BANK__V1__JOB_LIST_REQUEST__INIT;
        request.site = bank_text (rec->args->site);
        request.site_job_id = bank_text (at_bank[i]);
        rc = jobs_take (rec, &request, err);
        cli_progress_update (progress, i);
    }
    for (uint32_t i = 0; i < site_count && rc == 0; i++) {
        Nui__Local__V1__RunsRequest request = NUI__LOCAL__V1__RUNS_REQUEST__INIT;
        request.site_job_id = bank_text (at_site[i]);
        rc = runs_take (rec, &request, err);
        cli_progress_update (progress, bank_count + i);
    }
    cli_progress_end (progress);
    return rc;
}

static int books_fill (struct reconcile *rec, struct err *err)
{
    struct recon_books *b = &rec->books;
    Nui__Local__V1__RunsRequest runs = NUI__LOCAL__V1__RUNS_REQUEST__INIT;
    Nui__Bank__V1__JobListRequest jobs = NUI__BANK__V1__JOB_LIST_REQUEST__INIT;
    Nui__Bank__V1__HoldListRequest holds = NUI__BANK__V1__HOLD_LIST_REQUEST__INIT;
    runs.from_us = b->has_slurm ? b->from - SLURM_MARGIN : b->from;
    runs.until_us = b->has_slurm ? b->to + SLURM_MARGIN : b->to;
    jobs.site = holds.site = bank_text (rec->args->site);
    jobs.from_us = b->from;
    jobs.to_us = b->to;
    if (runs_take (rec, &runs, err) < 0 || jobs_take (rec, &jobs, err) < 0 ||
        strangers_look_up (rec, err) < 0)
        return err->code;
    ProtobufCMessage *reply = bank_call (rec->ctx, "HoldList", &holds.base, err);
    if (!reply)
        return err->code;
    keep (rec, reply);
    b->hold = ((Nui__Bank__V1__HoldListReply *)reply)->holds;
    b->hold_count = ((Nui__Bank__V1__HoldListReply *)reply)->n_holds;
    b->holds_settled =
        rec->waiting < WAITING_MAX; /* the site lists no more of what it gives back */
    return 0;
}

static char *file_read (const char *name, struct arena *arena, struct err *err)
{
    FILE *file = fopen (name, "r");
    char *text = NULL;
    long size = -1;
    if (file && fseek (file, 0, SEEK_END) == 0)
        size = ftell (file);
    if (size < 0) {
        err_set (err, ERR_IO, "%s: %s", name, strerror (errno));
    } else if (size > SACCT_BYTES_MAX) {
        err_set (err, ERR_LIMIT, "%s has more than %d bytes", name, SACCT_BYTES_MAX);
    } else {
        rewind (file);
        text = arena_alloc (arena, (size_t)size + 1);
        if (fread (text, 1, (size_t)size, file) != (size_t)size) {
            err_set (err, ERR_IO, "%s could not be read", name);
            text = NULL;
        } else {
            text[size] = '\0';
        }
    }
    if (file)
        fclose (file);
    return text;
}

static int slurm_read (struct reconcile *rec, struct err *err)
{
    struct sacct_job *jobs;
    const char *name = rec->args->sacct;
    char *text = name ? file_read (name, rec->arena, err) : NULL;
    if (!name)
        return 0;
    if (!text || sacct_parse (name, text, rec->arena, &jobs, &rec->books.slurm_count, err) < 0)
        return err->code;
    rec->books.slurm = jobs;
    rec->books.has_slurm = true;
    return 0;
}

/* --- putting right ---------------------------------------------------------------------------- */

/* The bank makes up the difference to what it has; one final charge per incarnation, whoever sends it. */
static ProtobufCMessage *charge_apply (struct reconcile *rec, const struct recon_row *row,
                                       struct err *err)
{
    Nui__Bank__V1__ChargeRequest request = *row->run->m->charge;
    uint8_t key[16];
    bool open = false;
    for (size_t i = 0; i < rec->books.hold_count; i++)
        open |= strcmp (rec->books.hold[i]->hold_id, row->hold_id) == 0;
    request.key = bank_key (key);
    request.site = bank_text (rec->args->site);
    request.hold_id =
        bank_text (open ? row->hold_id : ""); /* the claim says who pays without one */
    return bank_call (rec->ctx, "Charge", &request.base, err);
}

static ProtobufCMessage *release_apply (struct reconcile *rec, const struct recon_row *row,
                                        struct err *err)
{
    Nui__Bank__V1__ReleaseRequest request = NUI__BANK__V1__RELEASE_REQUEST__INIT;
    uint8_t key[16];
    request.key = bank_key (key);
    request.hold_id = bank_text (row->hold_id);
    request.reason = arena_printf (rec->arena, "reconciled: %s", row->text);
    return bank_call (rec->ctx, "Release", &request.base, err);
}

static ProtobufCMessage *refund_apply (struct reconcile *rec, const struct recon_row *row,
                                       struct err *err)
{
    Nui__Bank__V1__RefundRequest request = NUI__BANK__V1__REFUND_REQUEST__INIT;
    uint8_t key[16];
    request.key = bank_key (key);
    request.charge_op_id = row->charge_op;
    request.reason = arena_printf (rec->arena, "reconciled: %s", row->text);
    return bank_call (rec->ctx, "Refund", &request.base, err);
}

/* What was done, or why not; the row at the bank is closed by it. */
static const char *row_apply (struct reconcile *rec, const struct recon_row *row,
                              const Nui__Bank__V1__ReconRow *kept, bool *failed)
{
    char amount[QUANTITY_TEXT_MAX];
    struct err err = {0};
    const char *what;
    credit_micro moved;
    uint64_t op;
    ProtobufCMessage *reply = row->remedy == RECON_CHARGE    ? charge_apply (rec, row, &err)
                              : row->remedy == RECON_RELEASE ? release_apply (rec, row, &err)
                                                             : refund_apply (rec, row, &err);
    *failed |= !reply;
    if (!reply)
        return arena_printf (rec->arena, "failed: %s", err.text);
    keep (rec, reply);
    if (row->remedy == RECON_CHARGE) {
        const Nui__Bank__V1__ChargeReply *m = (Nui__Bank__V1__ChargeReply *)reply;
        what = "charged";
        moved = m->charged_micro;
        op = m->op_id;
    } else if (row->remedy == RECON_RELEASE) {
        const Nui__Bank__V1__ReleaseReply *m = (Nui__Bank__V1__ReleaseReply *)reply;
        what = "released";
        moved = m->released_micro;
        op = m->op_id;
    } else {
        const Nui__Bank__V1__RefundReply *m = (Nui__Bank__V1__RefundReply *)reply;
        what = "refunded";
        moved = m->refunded_micro;
        op = m->op_id;
    }
    what = arena_printf (rec->arena, "%s %s", what, credit_format (moved, amount));
    if (kept && reconrows_close (rec->ctx, kept->row, op, what, &err) < 0) {
        *failed = true;
        what = arena_printf (rec->arena, "%s; its row is still open: %s", what, err.text);
    }
    return what;
}

/* --- telling ---------------------------------------------------------------------------------- */

static void use_cell (struct table *table, int64_t ps_us)
{
    if (ps_us < 0)
        table_null (table);
    else
        table_credits (table, ps_us);
}

static void text_cell (struct table *table, const char *text)
{
    table_text (table, *text ? text : NULL);
}

static void row_print (struct reconcile *rec, struct table *table, const struct recon_row *row,
                       const Nui__Bank__V1__ReconRow *kept, const char *done)
{
    bool people = cli_format (rec->ctx) == CLI_TABLE;
    if (kept)
        table_int (table, (int64_t)kept->row);
    else
        table_null (table);
    text_cell (table, !kept ? "" : people ? bank_short_name (kept->owner) : kept->owner);
    table_text (table, recon_class_name (row->kind));
    table_text (table, row->site_job);
    text_cell (table, row->component);
    table_int (table, row->incarnation);
    text_cell (table, people ? bank_short_name (row->user) : row->user);
    text_cell (table, row->account);
    text_cell (table, row->hold_id);
    if (row->charge_op)
        table_int (table, (int64_t)row->charge_op);
    else
        table_null (table);
    use_cell (table, row->site_ps_us);
    use_cell (table, row->bank_ps_us);
    table_credits (table, row->amount);
    table_duration (table, rec->books.now > row->since ? rec->books.now - row->since : 0);
    table_text (table, recon_remedy_name (row->remedy));
    text_cell (table, done);
    table_text (table, row->text);
    table_end_row (table);
}

static void waiting_tell (const struct reconcile *rec)
{
    char age[QUANTITY_TEXT_MAX];
    if (rec->waiting)
        fprintf (
            stderr,
            "nui reconcile: %llu messages of site %s to the bank wait, the oldest for %s%s%s\n",
            (unsigned long long)rec->waiting, rec->args->site,
            duration_format (rec->books.now - rec->waiting_since, age),
            *rec->waiting_why ? ": the bank takes none: " : "", rec->waiting_why);
    if (rec->refused)
        fprintf (
            stderr,
            "nui reconcile: %llu messages of site %s were refused by the bank for good; what they leave to be "
            "done is a row above\n",
            (unsigned long long)rec->refused, rec->args->site);
    if (!rec->books.holds_settled)
        fprintf (stderr, "nui reconcile: so many that holds were not looked at\n");
}

/* What is done about it now; "": nothing. */
static const char *row_see_to (struct reconcile *rec, const struct recon_row *row,
                               const Nui__Bank__V1__ReconRow *kept, bool *failed)
{
    if (kept && strcmp (kept->state, "closed") == 0)
        return arena_printf (rec->arena, "explained: %s", kept->note);
    return rec->args->apply && row->remedy >= RECON_CHARGE ? row_apply (rec, row, kept, failed)
                                                           : "";
}

static int rows_tell (struct reconcile *rec, const struct recon_row *row, uint32_t count,
                      const struct reconrows *kept)
{
    static const struct table_column columns[] = {{"row", "Row", TABLE_INT, 0},
                                                  {"owner", "Owner", TABLE_TEXT, 0},
                                                  {"class", "Class", TABLE_TEXT, 0},
                                                  {"site_job", "SiteJob", TABLE_TEXT, 0},
                                                  {"component", "Component", TABLE_TEXT, 0},
                                                  {"incarnation", "Inc", TABLE_INT, 0},
                                                  {"user", "User", TABLE_TEXT, 0},
                                                  {"account", "Account", TABLE_TEXT, 0},
                                                  {"hold", "Hold", TABLE_TEXT, 0},
                                                  {"charge", "Charge", TABLE_INT, 0},
                                                  {"site_ps", "SitePS", TABLE_CREDITS, 0},
                                                  {"bank_ps", "BankPS", TABLE_CREDITS, 0},
                                                  {"amount", "Amount", TABLE_CREDITS, 0},
                                                  {"age", "Age", TABLE_DURATION, 0},
                                                  {"remedy", "Remedy", TABLE_TEXT, 0},
                                                  {"done", "Done", TABLE_TEXT, 0},
                                                  {"text", "Why", TABLE_TEXT, 0}};
    struct table *table = table_create (columns, sizeof (columns) / sizeof (columns[0]));
    bool failed = false;
    struct cli_progress *progress = cli_progress_start ("putting right", count);
    for (uint32_t i = 0; i < count; i++) {
        const Nui__Bank__V1__ReconRow *known = reconrows_of (kept, &row[i]);
        row_print (rec, table, &row[i], known, row_see_to (rec, &row[i], known, &failed));
        cli_progress_update (progress, i);
    }
    cli_progress_end (progress);
    int rc = table_print (table, rec->ctx);
    table_destroy (table);
    waiting_tell (rec);
    if (failed)
        fprintf (stderr, "nui reconcile: not everything could be put right: see the column Done\n");
    return rc == CLI_OK && failed ? CLI_FAILED : rc;
}

static int compare (struct cli_context *ctx, const struct reconcile_args *args)
{
    struct err err = {0};
    struct recon_row *row;
    struct reconrows kept = {0};
    int rc;
    struct reconcile rec = {.ctx = ctx, .args = args, .arena = arena_create (0)};
    rec.books = (struct recon_books){
        .arena = rec.arena, .from = args->period.from, .now = clock_now_us (), .late = args->late};
    rec.books.to = args->period.to ? args->period.to : rec.books.now;
    if (rec.books.to <= rec.books.from) {
        rc = cli_usage ("reconcile", "the period ends before it begins");
    } else if (name_check ("site", args->site, &err) < 0 || slurm_read (&rec, &err) < 0 ||
               books_fill (&rec, &err) < 0) {
        rc = cli_fail ("reconcile", &err);
    } else {
        uint32_t count = recon_compare (&rec.books, &row);
        if (((args->record || args->apply) &&
             reconrows_record (ctx, args->site, &rec.books, row, count, &err) < 0) ||
            reconrows_read (ctx, args->site, true, rec.arena, &kept, &err) < 0)
            rc = cli_fail ("reconcile", &err);
        else
            rc = rows_tell (&rec, row, count, &kept);
    }
    for (uint32_t i = 0; i < rec.kept_count; i++)
        protobuf_c_message_free_unpacked (rec.kept[i], NULL);
    reconrows_free (&kept);
    arena_destroy (rec.arena);
    return rc;
}

static int reconcile_compare (struct cli_context *ctx, const struct cli_said *said)
{
    struct reconcile_args args = {.site = said_text (said, "site"),
                                  .sacct = said_text (said, "sacct"),
                                  .late = said_given (said, "late") ? said_number (said, "late")
                                                                    : 86400 * US_PER_S,
                                  .record = said_flag (said, "record"),
                                  .apply = said_flag (said, "apply")};
    said_period (said, &args.period);
    return compare (ctx, &args);
}

static int reconcile_list (struct cli_context *ctx, const struct cli_said *said)
{
    return reconrows_list (ctx, said_text (said, "site"), said_flag (said, "all"));
}

static const struct cli_option reconcile_options[] = {
    {"site", 0, CLI_OPT_STRING, "SITE", "whose records are compared with the bank's"},
    {"from", 0, CLI_OPT_PAST, "TIME", "what ended from then on; from the beginning when left out"},
    {"to", 0, CLI_OPT_PAST, "TIME", "exclusive; until now when left out"},
    {"period", 0, CLI_OPT_PERIOD, "PERIOD",
     "both at once: a month (2026-11), a day (2026-11-21), yesterday"},
    {"sacct", 0, CLI_OPT_STRING, "FILE", "what sacct --parsable2 printed, to be compared too"},
    {"late", 0, CLI_OPT_DURATION, "TIME", "recorded so long after its end is late (1:00:00:00)"},
    {"record", 0, CLI_OPT_FLAG, NULL,
     "keeps what was found as rows at the bank; ends those not found again"},
    {"apply", 0, CLI_OPT_FLAG, NULL,
     "that, and does what has one right answer: charge, release, refund"},
    {"all", 0, CLI_OPT_FLAG, NULL, "closed rows too"},
    {"owner", 0, CLI_OPT_STRING, "USER", "who sees to the row (who calls)"},
    {"op", 0, CLI_OPT_COUNT, "OPERATION", "that put it right", .min = 1, .max = INT64_MAX},
    {"description", 'd', CLI_OPT_STRING, "TEXT", "why, or what explains it", .field = "note"},
    {0}};

static const struct cli_form reconcile_forms[] = {
    {"--site SITE [--from TIME] [--to TIME | --period PERIOD] [--sacct FILE] [--late TIME] [--record | --apply]",
     reconcile_compare},
    {"list [--site SITE] [--all]", reconcile_list},
    {"own ROW [--owner USER] [--description TEXT]", reconrows_own, .method = "ReconSet"},
    {"close ROW --op OPERATION | --description TEXT", .method = "ReconSet", .fields = "close=true",
     .sentence = "row {row} is closed"},
    {0}};

const struct cli_command reconcile_command = {
    .name = "reconcile",
    .group = CLI_BANK,
    .summary = "what a site ran against what the bank charged, and against Slurm's accounting",
    .forms = reconcile_forms,
    .options = reconcile_options,
    .service = &bank_service,
    .example = "nui reconcile --site alpha --period 2026-11",
};
