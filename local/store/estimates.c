/* estimates: the two tables of answers about starts: first ones and later ones. The forecast
 * (svc/forecast) calls it. It computes nothing: scores are made from these rows by
 * local/estimate/record.h. */
#include "local/store/estimates.h"

#include "local/store/local_store_i.h"
#include "proto/store/row.h"

#define VALUES(type, field, prefix)                                                                \
    ROW_AS (type, field.median, prefix "median", 0),                                               \
        ROW_AS (type, field.low50, prefix "low50", 0),                                             \
        ROW_AS (type, field.high50, prefix "high50", 0),                                           \
        ROW_AS (type, field.low95, prefix "low95", 0),                                             \
        ROW_AS (type, field.high95, prefix "high95", 0)

static const struct row_column estimate_columns[] = {
    ROW (struct store_estimate, number, ROW_KEY),
    ROW_AS (struct store_estimate, given, "given_us", 0),
    ROW_AS (struct store_estimate, started, "started_us", 0),
    ROW_AS (struct store_estimate, class_name, "class", 0),
    ROW (struct store_estimate, draws, 0),
    ROW (struct store_estimate, certain, 0),
    VALUES (struct store_estimate, raw, "raw_"),
    VALUES (struct store_estimate, said, ""),
};
static const struct row_table estimate_table = ROW_TABLE ("estimate", estimate_columns);

int store_estimate_add (struct local_store *store, const struct store_estimate *e, struct err *err)
{
    return store_row_write (store->db, &estimate_table, ROW_KEEP, NULL, e, err);
}

int store_estimate_started (struct local_store *store, uint64_t number, time_us started,
                            struct err *err)
{
    static const char *const sql[] = {
        "UPDATE estimate SET started_us = ?2 WHERE number = ?1 AND started_us = 0",
        "UPDATE estimate_later SET started_us = ?2 WHERE number = ?1 AND started_us = 0"};
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++) {
        struct store_stmt *q = store_stmt (store->db, sql[i]);
        store_bind_int (q, 1, (int64_t)number);
        store_bind_int (q, 2, started);
        rc = store_run (q, err);
    }
    return rc;
}

#define GONE(table)                                                                                \
    " (started_us = 0 AND NOT EXISTS"                                                              \
    " (SELECT 1 FROM job WHERE job.number = " table ".number"                                      \
    "  AND (job.state < 5 OR job.start_us > 0)))"

int store_estimate_purge (struct local_store *store, time_us before, struct err *err)
{
    static const char *const sql[] = {
        "DELETE FROM estimate WHERE given_us < ?1 OR" GONE ("estimate"),
        "DELETE FROM estimate_later WHERE" GONE ("estimate_later"),
        /* they are in the order in which they were given */
        "DELETE FROM estimate_later WHERE sequence < ifnull ((SELECT sequence FROM estimate_later"
        " WHERE given_us >= ?1 ORDER BY sequence LIMIT 1), 9223372036854775807) OR sequence <="
        " (SELECT max (sequence) FROM estimate_later) - ?2"};
    int rc = 0;
    for (int i = 0; i < 3 && rc == 0; i++) {
        struct store_stmt *q = store_stmt (store->db, sql[i]);
        if (i != 1)
            store_bind_int (q, 1, before);
        if (i == 2)
            store_bind_int (q, 2, STORE_LATER_MAX);
        rc = store_run (q, err);
    }
    return rc;
}

#define HEAL(table)                                                                                \
    "UPDATE " table " SET started_us ="                                                            \
    " (SELECT start_us FROM job WHERE job.number = " table ".number)"                              \
    " WHERE started_us = 0 AND EXISTS"                                                             \
    " (SELECT 1 FROM job WHERE job.number = " table ".number AND job.start_us > 0)"

int store_estimate_heal (struct local_store *store, struct err *err)
{
    int rc = store_run (store_stmt (store->db, HEAL ("estimate")), err);
    return rc ? rc : store_run (store_stmt (store->db, HEAL ("estimate_later")), err);
}

int store_estimate_each (struct local_store *store,
                         void (*fn) (void *arg, const struct store_estimate *estimate), void *arg,
                         struct err *err)
{
    struct store_stmt *q = store_row_select (
        store->db, &estimate_table, " FROM estimate ORDER BY started_us = 0, started_us, number");
    int rc;
    while ((rc = store_step (q, err)) == 1) {
        struct store_estimate e;
        store_row_take (q, &estimate_table, NULL, &e, NULL);
        fn (arg, &e);
    }
    store_reset (q);
    return rc;
}

/* --- later answers ---------------------------------------------------------------------------- */

static const struct row_column later_columns[] = {
    ROW (struct store_later, number, 0),
    ROW (struct store_later, kind, 0),
    ROW_AS (struct store_later, class_name, "class", 0),
    ROW_AS (struct store_later, given, "given_us", 0),
    ROW_AS (struct store_later, started, "started_us", 0),
    ROW (struct store_later, draws, 0),
    ROW (struct store_later, certain, 0),
    VALUES (struct store_later, said, ""),
    ROW (struct store_later, cause, 0),
};
static const struct row_table later_table = ROW_TABLE ("estimate_later", later_columns, "sequence");

int store_later_add (struct local_store *store, const struct store_later *later, struct err *err)
{
    return store_row_write (store->db, &later_table, ROW_INSERT, NULL, later, err);
}

#define LATER(which) " FROM estimate_later WHERE " which " ORDER BY started_us, sequence"

int store_later_each (struct local_store *store, uint64_t number, time_us since,
                      void (*fn) (void *arg, const struct store_later *later), void *arg,
                      struct err *err)
{
    static const char *const of_one = LATER ("number = ?1"),
                             *const of_all = LATER ("started_us = 0 OR started_us > ?1");
    struct store_stmt *q = store_row_select (store->db, &later_table, number ? of_one : of_all);
    store_bind_int (q, 1, number ? (int64_t)number : since);
    int rc;
    while ((rc = store_step (q, err)) == 1) {
        struct store_later e;
        store_row_take (q, &later_table, NULL, &e, NULL);
        fn (arg, &e);
    }
    store_reset (q);
    return rc;
}
