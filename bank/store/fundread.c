/* fundread: the reader's statements on grants, their burn-down, charged jobs, roles and
 * findings. The methods of svc (funders, reports, recon, notify) call it. It only reads and
 * never blocks; who may see a row is decided in the statement, not by the caller. */
#include "bank/store/fundread.h"

#include "bank/store/reader_impl.h"

#define GIVE(read, type) ((type)(read)->any)

static void give_grants (struct read *read, struct err *err, PGresult *const *res)
{
    uint32_t count = res ? (uint32_t)PQntuples (res[0]) : 0;
    struct fund_grant *grant = arena_array (read->arena, count, sizeof (*grant));
    for (uint32_t i = 0; i < count; i++) {
        int r = (int)i;
        grant[i] = (struct fund_grant){.id = pgres_i64 (res[0], r, 0),
                                       .funder = pgres_text (res[0], r, 1, read->arena),
                                       .reference = pgres_text (res[0], r, 2, read->arena),
                                       .account = pgres_text (res[0], r, 3, read->arena),
                                       .project = pgres_text (res[0], r, 4, read->arena),
                                       .granted = pgres_i64 (res[0], r, 5),
                                       .settled = pgres_i64 (res[0], r, 6),
                                       .held = pgres_i64 (res[0], r, 7),
                                       .left = pgres_i64 (res[0], r, 8),
                                       .ended = pgres_i64 (res[0], r, 9),
                                       .valid_from = pgres_i64 (res[0], r, 10),
                                       .valid_to = pgres_i64 (res[0], r, 11),
                                       .accounts = pgres_i64 (res[0], r, 12),
                                       .given = pgres_i64 (res[0], r, 13),
                                       .frozen = pgres_text (res[0], r, 14, read->arena),
                                       .revoked = pgres_text (res[0], r, 15, read->arena),
                                       .granted_wide = pgres_text (res[0], r, 16, read->arena),
                                       .settled_wide = pgres_text (res[0], r, 17, read->arena),
                                       .held_wide = pgres_text (res[0], r, 18, read->arena),
                                       .left_wide = pgres_text (res[0], r, 19, read->arena),
                                       .ended_wide = pgres_text (res[0], r, 20, read->arena)};
    }
    GIVE (read, fundread_grants_f) (read->arg, err, grant, count);
}

void fundread_grants (struct reader *reader, const char *who, const char *funder, int64_t id,
                      fundread_grants_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_grants);
    if (!read)
        return;
    struct pgargs *args = pgargs_create (read->arena, "tti");
    pgargs_text (args, 0, who);
    if (funder[0])
        pgargs_text (args, 1, funder);
    pgargs_i64 (args, 2, id);
    read_add (read, RD_GRANTS, args);
    pgbatch_submit (reader->loop);
}

static void give_statement (struct read *read, struct err *err, PGresult *const *res)
{
    struct fund_statement st = {.day_count = res ? (uint32_t)PQntuples (res[0]) : 0,
                                .share_count = res ? (uint32_t)PQntuples (res[1]) : 0};
    struct fund_day *day = arena_array (read->arena, st.day_count, sizeof (*day));
    struct fund_share *share = arena_array (read->arena, st.share_count, sizeof (*share));
    for (uint32_t i = 0; i < st.day_count; i++)
        day[i] = (struct fund_day){.day = pgres_i64 (res[0], (int)i, 0),
                                   .granted = pgres_i64 (res[0], (int)i, 1),
                                   .charged = pgres_i64 (res[0], (int)i, 2),
                                   .net = pgres_i64 (res[0], (int)i, 3),
                                   .granted_wide = pgres_text (res[0], (int)i, 4, read->arena),
                                   .charged_wide = pgres_text (res[0], (int)i, 5, read->arena),
                                   .net_wide = pgres_text (res[0], (int)i, 6, read->arena)};
    for (uint32_t i = 0; i < st.share_count; i++)
        share[i] = (struct fund_share){.project = pgres_text (res[1], (int)i, 0, read->arena),
                                       .account = pgres_text (res[1], (int)i, 1, read->arena),
                                       .site = pgres_text (res[1], (int)i, 2, read->arena),
                                       .jobs = pgres_i64 (res[1], (int)i, 3),
                                       .charged = pgres_i64 (res[1], (int)i, 4),
                                       .charged_wide = pgres_text (res[1], (int)i, 5, read->arena)};
    uint32_t events = res ? (uint32_t)PQntuples (res[2]) : 0;
    struct fund_event *event = arena_array (read->arena, events, sizeof (*event));
    for (uint32_t i = 0; i < events; i++)
        event[i] = (struct fund_event){.at = pgres_i64 (res[2], (int)i, 0),
                                       .kind = pgres_text (res[2], (int)i, 1, read->arena),
                                       .who = pgres_text (res[2], (int)i, 2, read->arena),
                                       .note = pgres_text (res[2], (int)i, 3, read->arena),
                                       .op_id = pgres_i64 (res[2], (int)i, 4)};
    st.event = event;
    st.event_count = events;
    st.day = day;
    st.share = share;
    GIVE (read, fundread_statement_f) (read->arg, err, &st);
}

void fundread_statement (struct reader *reader, int64_t grant, time_us from, time_us to,
                         fundread_statement_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_statement);
    if (!read)
        return;
    static const int stmt[] = {RD_GRANT_DAYS, RD_GRANT_SHARES, RD_GRANT_EVENTS};
    for (int i = 0; i < 3; i++) {
        struct pgargs *args = pgargs_create (read->arena, "i");
        pgargs_i64 (args, 0, grant);
        pgargs_i64 (args, 0, from);
        pgargs_i64 (args, 0, to);
        read_add (read, stmt[i], args);
    }
    pgbatch_submit (reader->loop);
}

static void give_jobs (struct read *read, struct err *err, PGresult *const *res)
{
    uint32_t count = res ? (uint32_t)PQntuples (res[0]) : 0;
    struct fund_job *job = arena_array (read->arena, count, sizeof (*job));
    for (uint32_t i = 0; i < count; i++) {
        int r = (int)i;
        job[i] = (struct fund_job){.number = pgres_i64 (res[0], r, 0),
                                   .job = {.site = pgres_text (res[0], r, 1, read->arena),
                                           .site_job = pgres_text (res[0], r, 2, read->arena),
                                           .component = pgres_text (res[0], r, 3, read->arena),
                                           .incarnation = pgres_i64 (res[0], r, 4),
                                           .grid_job = pgres_text (res[0], r, 5, read->arena)},
                                   .identity = pgres_text (res[0], r, 6, read->arena),
                                   .account = pgres_text (res[0], r, 7, read->arena),
                                   .procs = pgres_i64 (res[0], r, 8),
                                   .start = pgres_i64 (res[0], r, 9),
                                   .end = pgres_i64 (res[0], r, 10),
                                   .total = pgres_i64 (res[0], r, 11),
                                   .refunded = pgres_i64 (res[0], r, 12),
                                   .final = pgres_bool (res[0], r, 13),
                                   .hold_id = pgres_i64 (res[0], r, 14),
                                   .charges = pgres_i64 (res[0], r, 15),
                                   .op_id = pgres_i64 (res[0], r, 16),
                                   .formula = pgres_text (res[0], r, 17, read->arena),
                                   .recorded = pgres_i64 (res[0], r, 18),
                                   .rate_version = pgres_i64 (res[0], r, 19),
                                   .rate_due = pgres_i64 (res[0], r, 20),
                                   .expired_use = pgres_bool (res[0], r, 21),
                                   .by_hand = pgres_text (res[0], r, 22, read->arena)};
    }
    GIVE (read, fundread_jobs_f) (read->arg, err, job, count);
}

void fundread_jobs (struct reader *reader, const char *who, const struct fund_jobs_ask *ask,
                    fundread_jobs_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_jobs);
    if (!read)
        return;
    struct pgargs *args = pgargs_create (read->arena, "tti");
    bool one = ask->site_job[0];
    pgargs_text (args, 0, who);
    if (ask->own)
        pgargs_text (args, 0, ask->own);
    if (one || ask->site[0])
        pgargs_text (args, 1, ask->site);
    if (one) {
        pgargs_text (args, 1, ask->site_job);
    } else {
        pgargs_i64 (args, 2, ask->from);
        pgargs_i64 (args, 2, ask->to);
    }
    pgargs_i64 (args, 2, ask->after);
    pgargs_i64 (args, 2, ask->limit);
    read_add (read, one ? RD_JOBS_OF : RD_JOBS, args);
    pgbatch_submit (reader->loop);
}

static void give_records (struct read *read, struct err *err, PGresult *const *res)
{
    uint32_t count = res ? (uint32_t)PQntuples (res[0]) : 0;
    struct fund_record *record = arena_array (read->arena, count, sizeof (*record));
    for (uint32_t i = 0; i < count; i++) {
        int r = (int)i;
        record[i] =
            (struct fund_record){.op_id = pgres_i64 (res[0], r, 0),
                                 .recorded = pgres_i64 (res[0], r, 1),
                                 .charge_op = pgres_i64 (res[0], r, 2),
                                 .paid = pgres_i64 (res[0], r, 3),
                                 .disputed = pgres_i64 (res[0], r, 4),
                                 .job = {.site = pgres_text (res[0], r, 5, read->arena),
                                         .site_job = pgres_text (res[0], r, 6, read->arena),
                                         .component = pgres_text (res[0], r, 7, read->arena),
                                         .incarnation = pgres_i64 (res[0], r, 8),
                                         .grid_job = pgres_text (res[0], r, 9, read->arena)},
                                 .identity = pgres_text (res[0], r, 10, read->arena),
                                 .account = pgres_text (res[0], r, 11, read->arena),
                                 .project = pgres_text (res[0], r, 12, read->arena),
                                 .qos = pgres_text (res[0], r, 13, read->arena),
                                 .machine = pgres_text (res[0], r, 14, read->arena),
                                 .procs = pgres_i64 (res[0], r, 15),
                                 .since = pgres_i64 (res[0], r, 16),
                                 .start = pgres_i64 (res[0], r, 17),
                                 .end = pgres_i64 (res[0], r, 18),
                                 .final = pgres_bool (res[0], r, 19),
                                 .successful = pgres_bool (res[0], r, 20),
                                 .cpu = pgres_i64 (res[0], r, 21),
                                 .ran = {.nodes = pgres_i64 (res[0], r, 22),
                                         .memory_mb = pgres_i64 (res[0], r, 23),
                                         .submitted = pgres_i64 (res[0], r, 24),
                                         .local_user = pgres_text (res[0], r, 25, read->arena),
                                         .queue = pgres_text (res[0], r, 26, read->arena)},
                                 .walltime = pgres_i64 (res[0], r, 27)};
    }
    GIVE (read, fundread_records_f) (read->arg, err, record, count);
}

void fundread_records (struct reader *reader, const char *who, const struct fund_records_ask *ask,
                       fundread_records_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_records);
    if (!read)
        return;
    struct pgargs *args = pgargs_create (read->arena, "ttit");
    pgargs_text (args, 0, who);
    if (ask->own)
        pgargs_text (args, 0, ask->own);
    if (ask->account[0])
        pgargs_text (args, 1, ask->account);
    pgargs_i64 (args, 2, ask->from);
    pgargs_i64 (args, 2, ask->to);
    pgargs_i64 (args, 2, ask->after);
    pgargs_i64 (args, 2, ask->limit);
    if (ask->site[0])
        pgargs_text (args, 3, ask->site);
    read_add (read, RD_RECORDS, args);
    pgbatch_submit (reader->loop);
}

static void give_recons (struct read *read, struct err *err, PGresult *const *res)
{
    uint32_t count = res ? (uint32_t)PQntuples (res[0]) : 0;
    struct fund_recon *row = arena_array (read->arena, count, sizeof (*row));
    for (uint32_t i = 0; i < count; i++) {
        int r = (int)i;
        row[i].row.id = pgres_i64 (res[0], r, 0);
        row[i].row.site = pgres_text (res[0], r, 1, read->arena);
        row[i].row.finding =
            (struct ledger_finding){.kind = pgres_text (res[0], r, 2, read->arena),
                                    .site_job = pgres_text (res[0], r, 3, read->arena),
                                    .component = pgres_text (res[0], r, 4, read->arena),
                                    .incarnation = pgres_i64 (res[0], r, 5),
                                    .hold = pgres_text (res[0], r, 6, read->arena),
                                    .charge_op = pgres_i64 (res[0], r, 7),
                                    .identity = pgres_text (res[0], r, 8, read->arena),
                                    .account = pgres_text (res[0], r, 9, read->arena),
                                    .amount = pgres_i64 (res[0], r, 10),
                                    .site_ps = pgres_i64 (res[0], r, 11),
                                    .bank_ps = pgres_i64 (res[0], r, 12),
                                    .since = pgres_i64 (res[0], r, 13),
                                    .text = pgres_text (res[0], r, 14, read->arena)};
        row[i].opened = pgres_i64 (res[0], r, 15);
        row[i].row.owner = pgres_text (res[0], r, 16, read->arena);
        row[i].state = pgres_text (res[0], r, 17, read->arena);
        row[i].closed = pgres_i64 (res[0], r, 18);
        row[i].cured_op = pgres_i64 (res[0], r, 19);
        row[i].note = pgres_text (res[0], r, 20, read->arena);
    }
    GIVE (read, fundread_recons_f) (read->arg, err, row, count);
}

void fundread_recons (struct reader *reader, const char *who, const char *own, const char *site,
                      bool closed_too, int64_t after, uint32_t limit, fundread_recons_f done,
                      void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_recons);
    if (!read)
        return;
    struct pgargs *args = pgargs_create (read->arena, "tti");
    pgargs_text (args, 0, who);
    if (own)
        pgargs_text (args, 0, own);
    if (site[0])
        pgargs_text (args, 1, site);
    pgargs_i64 (args, 2, after);
    pgargs_i64 (args, 2, limit);
    pgargs_i64 (args, 2, closed_too);
    read_add (read, RD_RECONS, args);
    pgbatch_submit (reader->loop);
}

static void give_unowned (struct read *read, struct err *err, PGresult *const *res)
{
    uint32_t count = res ? (uint32_t)PQntuples (res[0]) : 0;
    struct fund_unowned *row = arena_array (read->arena, count, sizeof (*row));
    for (uint32_t i = 0; i < count; i++)
        row[i] = (struct fund_unowned){pgres_text (res[0], (int)i, 0, read->arena),
                                       pgres_i64 (res[0], (int)i, 1),
                                       pgres_text (res[0], (int)i, 2, read->arena)};
    GIVE (read, fundread_unowned_f) (read->arg, err, row, count);
}

void fundread_unowned (struct reader *reader, fundread_unowned_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_unowned);
    if (!read)
        return;
    read_add (read, RD_UNOWNED, pgargs_create (read->arena, ""));
    pgbatch_submit (reader->loop);
}

static void give_near (struct read *read, struct err *err, PGresult *const *res)
{
    uint32_t count = res ? (uint32_t)PQntuples (res[0]) : 0;
    struct fund_near *row = arena_array (read->arena, count, sizeof (*row));
    for (uint32_t i = 0; i < count; i++)
        row[i] = (struct fund_near){.id = pgres_i64 (res[0], (int)i, 0),
                                    .what = pgres_i64 (res[0], (int)i, 1),
                                    .end_s = pgres_i64 (res[0], (int)i, 2),
                                    .account = pgres_text (res[0], (int)i, 3, read->arena),
                                    .project = pgres_text (res[0], (int)i, 4, read->arena),
                                    .granted = pgres_i64 (res[0], (int)i, 5),
                                    .left = pgres_i64 (res[0], (int)i, 6),
                                    .end = pgres_i64 (res[0], (int)i, 7),
                                    .leads = pgres_text (res[0], (int)i, 8, read->arena)};
    GIVE (read, fundread_near_f) (read->arg, err, row, count);
}

void fundread_near (struct reader *reader, time_us now, time_us month, fundread_near_f done,
                    void *arg)
{
    const int64_t moments[] = {now, month};
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_near);
    if (!read)
        return;
    struct pgargs *args = pgargs_create (read->arena, "i");
    for (int i = 0; i < 2; i++)
        pgargs_i64 (args, 0, moments[i]);
    read_add (read, RD_NEAR, args);
    pgbatch_submit (reader->loop);
}

static void give_figures (struct read *read, struct err *err, PGresult *const *res)
{
    struct fund_figures figures = {0};
    if (res)
        figures = (struct fund_figures){pgres_i64 (res[0], 0, 0), pgres_i64 (res[0], 0, 1),
                                        pgres_i64 (res[0], 0, 2)};
    GIVE (read, fundread_figures_f) (read->arg, err, &figures);
}

void fundread_figures (struct reader *reader, fundread_figures_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_figures);
    if (!read)
        return;
    read_add (read, RD_FIGURES, pgargs_create (read->arena, ""));
    pgbatch_submit (reader->loop);
}

static void give_roles (struct read *read, struct err *err, PGresult *const *res)
{
    uint32_t count = res ? (uint32_t)PQntuples (res[0]) : 0;
    struct fund_role *role = arena_array (read->arena, count, sizeof (*role));
    for (uint32_t i = 0; i < count; i++)
        role[i] = (struct fund_role){pgres_text (res[0], (int)i, 0, read->arena),
                                     pgres_text (res[0], (int)i, 1, read->arena)};
    GIVE (read, fundread_roles_f) (read->arg, err, role, count);
}

void fundread_roles (struct reader *reader, const char *who, fundread_roles_f done, void *arg)
{
    struct read *read = read_start (reader, (reader_any_f)done, arg, give_roles);
    if (!read)
        return;
    struct pgargs *args = pgargs_create (read->arena, "t");
    pgargs_text (args, 0, who);
    read_add (read, RD_ROLES, args);
    pgbatch_submit (reader->loop);
}
