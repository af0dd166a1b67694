#include "local/store/estimates.h"

#include "local/store/local_store_i.h"

const char estimates_schema[] =
    "CREATE TABLE estimate (number INTEGER PRIMARY KEY, given_us INTEGER NOT NULL,"
    " started_us INTEGER NOT NULL, class TEXT NOT NULL, draws INTEGER NOT NULL,"
    " certain INTEGER NOT NULL,"
    " raw_median INTEGER NOT NULL, raw_low50 INTEGER NOT NULL, raw_high50 INTEGER NOT NULL,"
    " raw_low95 INTEGER NOT NULL, raw_high95 INTEGER NOT NULL,"
    " median INTEGER NOT NULL, low50 INTEGER NOT NULL, high50 INTEGER NOT NULL,"
    " low95 INTEGER NOT NULL, high95 INTEGER NOT NULL);"
    "CREATE INDEX estimate_by_start ON estimate (started_us);";

static void values_bind (struct store_stmt *q, int at, const struct store_estimate_values *v)
{
    store_bind_int (q, at, v->median);
    store_bind_int (q, at + 1, v->low50);
    store_bind_int (q, at + 2, v->high50);
    store_bind_int (q, at + 3, v->low95);
    store_bind_int (q, at + 4, v->high95);
}

static void values_read (struct store_stmt *q, int at, struct store_estimate_values *v)
{
    v->median = store_col_int (q, at);
    v->low50 = store_col_int (q, at + 1);
    v->high50 = store_col_int (q, at + 2);
    v->low95 = store_col_int (q, at + 3);
    v->high95 = store_col_int (q, at + 4);
}

int store_estimate_add (struct local_store *store, const struct store_estimate *e,
                        struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "INSERT INTO estimate VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"
                               " ?10, ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT DO NOTHING");
    store_bind_int (q, 1, (int64_t)e->number);
    store_bind_int (q, 2, e->given);
    store_bind_int (q, 3, e->started);
    store_bind_text (q, 4, e->class_name);
    store_bind_int (q, 5, e->draws);
    store_bind_int (q, 6, e->certain);
    values_bind (q, 7, &e->raw);
    values_bind (q, 12, &e->said);
    return store_run (q, err);
}

int store_estimate_started (struct local_store *store, uint64_t number, time_us started,
                            struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db, "UPDATE estimate SET started_us = ?2 WHERE number = ?1 AND started_us = 0");
    store_bind_int (q, 1, (int64_t)number);
    store_bind_int (q, 2, started);
    return store_run (q, err);
}

int store_estimate_purge (struct local_store *store, time_us before, struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db,
        "DELETE FROM estimate WHERE given_us < ?1 OR (started_us = 0 AND NOT EXISTS"
        " (SELECT 1 FROM job WHERE job.number = estimate.number"
        "  AND (job.state < 5 OR job.start_us > 0)))");
    store_bind_int (q, 1, before);
    return store_run (q, err);
}

int store_estimate_each (struct local_store *store,
                         void (*fn) (void *arg, const struct store_estimate *estimate), void *arg,
                         struct err *err)
{
    struct store_stmt *q = store_stmt (
        store->db,
        "SELECT estimate.number, given_us, class, draws, certain, raw_median, raw_low50,"
        " raw_high50, raw_low95, raw_high95, median, low50, high50, low95, high95,"
        " CASE WHEN started_us > 0 THEN started_us ELSE coalesce (job.start_us, 0) END AS began"
        " FROM estimate LEFT JOIN job ON job.number = estimate.number"
        " ORDER BY began = 0, began, estimate.number");
    int rc;
    while ((rc = store_step (q, err)) == 1) {
        struct store_estimate e = {.number = (uint64_t)store_col_int (q, 0),
                                   .given = store_col_int (q, 1),
                                   .class_name = store_col_text (q, 2),
                                   .draws = (uint32_t)store_col_int (q, 3),
                                   .certain = store_col_int (q, 4) != 0,
                                   .started = store_col_int (q, 15)};
        values_read (q, 5, &e.raw);
        values_read (q, 10, &e.said);
        fn (arg, &e);
    }
    store_reset (q);
    return rc;
}
