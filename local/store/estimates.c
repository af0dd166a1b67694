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

const char later_schema[] =
    "CREATE TABLE estimate_later (sequence INTEGER PRIMARY KEY, number INTEGER NOT NULL,"
    " kind TEXT NOT NULL, class TEXT NOT NULL, given_us INTEGER NOT NULL,"
    " started_us INTEGER NOT NULL, draws INTEGER NOT NULL, certain INTEGER NOT NULL,"
    " median INTEGER NOT NULL, low50 INTEGER NOT NULL, high50 INTEGER NOT NULL,"
    " low95 INTEGER NOT NULL, high95 INTEGER NOT NULL, cause TEXT NOT NULL);"
    "CREATE INDEX estimate_later_by_job ON estimate_later (number);"
    "CREATE INDEX estimate_later_by_start ON estimate_later (started_us, sequence);";

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

#define GONE(table)                                                                              \
    " (started_us = 0 AND NOT EXISTS"                                                            \
    " (SELECT 1 FROM job WHERE job.number = " table ".number"                                    \
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

#define HEAL(table)                                                                              \
    "UPDATE " table " SET started_us ="                                                          \
    " (SELECT start_us FROM job WHERE job.number = " table ".number)"                            \
    " WHERE started_us = 0 AND EXISTS"                                                           \
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
    struct store_stmt *q = store_stmt (
        store->db,
        "SELECT number, given_us, class, draws, certain, raw_median, raw_low50, raw_high50,"
        " raw_low95, raw_high95, median, low50, high50, low95, high95, started_us"
        " FROM estimate ORDER BY started_us = 0, started_us, number");
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

/* --- later answers ---------------------------------------------------------------------------- */

int store_later_add (struct local_store *store, const struct store_later *later, struct err *err)
{
    struct store_stmt *q =
        store_stmt (store->db, "INSERT INTO estimate_later VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6,"
                               " ?7, ?8, ?9, ?10, ?11, ?12, ?13)");
    store_bind_int (q, 1, (int64_t)later->number);
    store_bind_text (q, 2, later->kind);
    store_bind_text (q, 3, later->class_name);
    store_bind_int (q, 4, later->given);
    store_bind_int (q, 5, later->started);
    store_bind_int (q, 6, later->draws);
    store_bind_int (q, 7, later->certain);
    values_bind (q, 8, &later->said);
    store_bind_text (q, 13, later->cause);
    return store_run (q, err);
}

#define LATER(which)                                                                             \
    "SELECT number, kind, class, given_us, started_us, draws, certain, median, low50, high50,"   \
    " low95, high95, cause FROM estimate_later WHERE " which                                     \
    " ORDER BY started_us, sequence"

int store_later_each (struct local_store *store, uint64_t number, time_us since,
                      void (*fn) (void *arg, const struct store_later *later), void *arg,
                      struct err *err)
{
    static const char *const of_one = LATER ("number = ?1"),
                            *const of_all = LATER ("started_us = 0 OR started_us > ?1");
    struct store_stmt *q = store_stmt (store->db, number ? of_one : of_all);
    store_bind_int (q, 1, number ? (int64_t)number : since);
    int rc;
    while ((rc = store_step (q, err)) == 1) {
        struct store_later e = {.number = (uint64_t)store_col_int (q, 0),
                                .kind = store_col_text (q, 1),
                                .class_name = store_col_text (q, 2),
                                .given = store_col_int (q, 3),
                                .started = store_col_int (q, 4),
                                .draws = (uint32_t)store_col_int (q, 5),
                                .certain = store_col_int (q, 6) != 0,
                                .cause = store_col_text (q, 12)};
        values_read (q, 7, &e.said);
        fn (arg, &e);
    }
    store_reset (q);
    return rc;
}
