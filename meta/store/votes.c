/* The decision log of one metascheduler alone, and who leads each job of a group: whose votes, which promises, which jobs are
 * over. It keeps what it is told; who may be promised what is meta/core/quorum.h. */
#include "meta/store/votes.h"

#include <string.h>

#include "meta/store/metastore_i.h"
#include "proto/base/clock.h"

/* ---- the single log */

static int decision_record (struct metastore *store, const uint8_t transaction[16],
                            enum decision proposal, enum decision *decided, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "INSERT INTO decision (txn, decision, at_us) VALUES (?1, ?2, ?3)"
                                  " ON CONFLICT (txn) DO NOTHING");
    store_bind_blob (q, 1, transaction, 16);
    store_bind_int (q, 2, proposal);
    store_bind_int (q, 3, clock_now_us ());
    int rc = store_run (q, err);
    if (rc)
        return rc;
    q = store_stmt (store->store, "SELECT decision FROM decision WHERE txn = ?1");
    store_bind_blob (q, 1, transaction, 16);
    rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *decided = rc && store_col_int (q, 0) == DECISION_COMMIT ? DECISION_COMMIT : DECISION_ABORT;
    store_reset (q);
    return 0;
}

static void decision_propose (void *self, const struct decision_ask *ask,
                              void (*done) (void *arg, enum decision decided, bool failed),
                              void *arg)
{
    enum decision decided = DECISION_ABORT;
    int rc = decision_record (self, ask->transaction, ask->proposal, &decided, NULL);
    done (arg, decided, rc != 0);
}

static void decision_forget (void *self, const uint8_t transaction[16])
{
    struct metastore *store = self;
    struct store_stmt *q = store_stmt (store->store, "DELETE FROM decision WHERE txn = ?1");
    store_bind_blob (q, 1, transaction, 16);
    store_run (q, NULL); /* what stays is harmless */
}

struct decision_log metastore_decision_log (struct metastore *store)
{
    static const struct decision_log_ops ops = {decision_propose, decision_forget};
    return (struct decision_log){&ops, store};
}

/* ---- who leads a job */

#define NEXT_PLACE "(SELECT coalesce (max (place), 0) + 1 FROM lead WHERE place > 0)"
#define LEAD_COLUMNS                                                                               \
    "l.job, l.leader, l.promised, l.accepted, l.stands, l.open, coalesce (j.change, 0), l.place"   \
    " FROM lead l LEFT JOIN job j ON j.number = l.job"

static void lead_col (struct store_stmt *q, struct arena *arena, struct lead_row *row)
{
    row->job = (uint64_t)store_col_int (q, 0);
    row->leader = arena_strdup (arena, store_col_text (q, 1));
    row->vote.promised = (uint64_t)store_col_int (q, 2);
    row->vote.accepted = (uint64_t)store_col_int (q, 3);
    row->stands = store_col_int (q, 4) != 0;
    row->open = store_col_int (q, 5) != 0;
    row->vote.version = (uint64_t)store_col_int (q, 6);
    row->place = (uint64_t)store_col_int (q, 7);
}

int metastore_lead_load (struct metastore *store, uint64_t job, struct arena *arena,
                         struct lead_row *out, struct err *err)
{
    struct store_stmt *q = store_stmt (store->store, "SELECT " LEAD_COLUMNS " WHERE l.job = ?1");
    store_bind_int (q, 1, (int64_t)job);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set (err, ERR_NOT_FOUND, "job %llu is not the group's", (unsigned long long)job);
    lead_col (q, arena, out);
    store_reset (q);
    return 0;
}

int metastore_lead_save (struct metastore *store, const struct lead_row *row, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->store,
        "INSERT INTO lead (job, leader, promised, accepted, stands, open, place)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, CASE WHEN ?6 THEN 0 ELSE " NEXT_PLACE " END)"
        " ON CONFLICT (job) DO UPDATE SET"
        " leader = excluded.leader, promised = excluded.promised, accepted = excluded.accepted,"
        " stands = excluded.stands, open = excluded.open, place = excluded.place");
    store_bind_int (q, 1, (int64_t)row->job);
    store_bind_text (q, 2, row->leader);
    store_bind_int (q, 3, (int64_t)row->vote.promised);
    store_bind_int (q, 4, (int64_t)row->vote.accepted);
    store_bind_int (q, 5, row->stands);
    store_bind_int (q, 6, row->open);
    return store_run (q, err);
}

static int lead_set (struct metastore *store, const char *sql, uint64_t job, struct err *err)
{
    struct store_stmt *q = store_stmt (store->store, sql);
    store_bind_int (q, 1, (int64_t)job);
    return store_run (q, err);
}

int metastore_lead_version (struct metastore *store, uint64_t job, struct err *err)
{
    int rc = lead_set (store, "UPDATE job SET change = change + 1 WHERE number = ?1", job, err);
    if (rc || store_changes (store->store))
        return rc;
    return err_set (err, ERR_NOT_FOUND, "there is no job %llu", (unsigned long long)job);
}

int metastore_lead_stands (struct metastore *store, uint64_t job, struct err *err)
{
    return lead_set (store, "UPDATE lead SET stands = 1 WHERE job = ?1", job, err);
}

int metastore_lead_closed (struct metastore *store, uint64_t job, struct err *err)
{
    return lead_set (store, "UPDATE lead SET open = 0, place = " NEXT_PLACE " WHERE job = ?1", job,
                     err);
}

int metastore_lead_leader (struct metastore *store, uint64_t job, const char *leader,
                           struct err *err)
{
    struct store_stmt *q = store_stmt (store->store, "UPDATE lead SET leader = ?2 WHERE job = ?1");
    store_bind_int (q, 1, (int64_t)job);
    store_bind_text (q, 2, leader);
    return store_run (q, err);
}

static int leads_take (struct store_stmt *q, uint32_t limit, struct arena *arena,
                       struct lead_row **rows_out, uint32_t *count_out, struct err *err)
{
    struct lead_row *rows = arena_array (arena, limit, sizeof *rows);
    uint32_t count = 0;
    int rc;
    while ((rc = store_step (q, err)) > 0)
        lead_col (q, arena, &rows[count++]);
    *rows_out = rows;
    *count_out = count;
    return rc;
}

int metastore_leads_over (struct metastore *store, uint64_t after, uint32_t limit,
                          struct arena *arena, struct lead_row **rows_out, uint32_t *count_out,
                          struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT " LEAD_COLUMNS
                                  " WHERE l.place > 0 AND l.place > ?1 ORDER BY l.place LIMIT ?2");
    store_bind_int (q, 1, (int64_t)after);
    store_bind_int (q, 2, limit);
    return leads_take (q, limit, arena, rows_out, count_out, err);
}

static int place_take (struct store_stmt *q, uint64_t *place_out, struct err *err)
{
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *place_out = rc ? (uint64_t)store_col_int (q, 0) : 0;
    store_reset (q);
    return 0;
}

int metastore_leads_over_last (struct metastore *store, uint64_t *place_out, struct err *err)
{
    return place_take (
        store_stmt (store->store, "SELECT coalesce (max (place), 0) FROM lead WHERE place > 0"),
        place_out, err);
}

int metastore_followed_load (struct metastore *store, const char *member, uint64_t *place_out,
                             struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT place FROM followed WHERE member = ?1");
    store_bind_text (q, 1, member);
    return place_take (q, place_out, err);
}

int metastore_followed_save (struct metastore *store, const char *member, uint64_t place,
                             struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "INSERT INTO followed (member, place) VALUES (?1, ?2)"
                                  " ON CONFLICT (member) DO UPDATE SET place = excluded.place");
    store_bind_text (q, 1, member);
    store_bind_int (q, 2, (int64_t)place);
    return store_run (q, err);
}

int metastore_leads_open (struct metastore *store, const char *leader, uint64_t after,
                          uint32_t limit, struct arena *arena, struct lead_row **rows_out,
                          uint32_t *count_out, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->store, "SELECT " LEAD_COLUMNS " WHERE l.open = 1 AND l.leader = ?1"
                                  " AND l.job > ?2 ORDER BY l.job LIMIT ?3");
    store_bind_text (q, 1, leader);
    store_bind_int (q, 2, (int64_t)after);
    store_bind_int (q, 3, limit);
    return leads_take (q, limit, arena, rows_out, count_out, err);
}
