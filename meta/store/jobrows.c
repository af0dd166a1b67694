/* A job's rows as another member of the group has them, copied column by column by their
 * names. It knows no column: what a job's rows mean is metastore.c's. */
#include "meta/store/jobrows.h"

#include <string.h>

#include "meta/store/metastore_i.h"
#include "proto/base/strbuf.h"

typedef Nui__Meta__V1__StoredRow Row;
typedef Nui__Meta__V1__StoredValue Value;

enum { ROWS_MAX = 4096 };

/* Those that refer to others last. */
static const struct {
    const char *name, *select, *delete;
} tables[] = {
    {"job", "SELECT * FROM job WHERE number = ?1", "DELETE FROM job WHERE number = ?1"},
    {"component", "SELECT * FROM component WHERE job = ?1", "DELETE FROM component WHERE job = ?1"},
    {"coalloc", "SELECT * FROM coalloc WHERE job = ?1", "DELETE FROM coalloc WHERE job = ?1"},
    {"coalloc_part", "SELECT * FROM coalloc_part WHERE job = ?1",
     "DELETE FROM coalloc_part WHERE job = ?1"},
};
enum { TABLES = sizeof tables / sizeof *tables };

static struct store_stmt *of_job (struct metastore *store, const char *sql, uint64_t job)
{
    struct store_stmt *q = store_stmt (store->store, sql);
    store_bind_int (q, 1, (int64_t)job);
    return q;
}

/* ---- out */

static Value *value_make (struct store_stmt *q, int at, struct arena *arena)
{
    Value *v = arena_new (arena, Value);
    size_t len = 0;
    const void *bytes;
    nui__meta__v1__stored_value__init (v);
    v->column = arena_strdup (arena, store_col_name (q, at));
    switch (store_col_kind (q, at)) {
    case STORE_INT:
        v->is_case = NUI__META__V1__STORED_VALUE__IS_NUMBER;
        v->number = store_col_int (q, at);
        break;
    case STORE_TEXT:
        v->is_case = NUI__META__V1__STORED_VALUE__IS_TEXT;
        v->text = arena_strdup (arena, store_col_text (q, at));
        break;
    case STORE_BLOB:
        v->is_case = NUI__META__V1__STORED_VALUE__IS_BLOB;
        bytes = store_col_blob (q, at, &len);
        v->blob = (ProtobufCBinaryData){len, len ? arena_memdup (arena, bytes, len) : NULL};
        break;
    case STORE_NULL:
        break;
    }
    return v;
}

static Row *row_make (struct store_stmt *q, const char *table, bool whole, struct arena *arena)
{
    Row *row = arena_new (arena, Row);
    int columns = store_col_count (q);
    nui__meta__v1__stored_row__init (row);
    row->table = (char *)table;
    row->values = arena_array (arena, (size_t)columns, sizeof *row->values);
    for (int i = 0; i < columns; i++)
        if (whole || strcmp (store_col_name (q, i), "envelope") != 0)
            row->values[row->n_values++] = value_make (q, i, arena);
    return row;
}

/* The envelope of a job of an array is where the array's first is (metastore_envelope_share): whoever is sent the job's rows
 * may not have that one. */
static int envelope_add (struct metastore *store, uint64_t job, Row *row, struct arena *arena,
                         struct err *err)
{
    for (size_t i = 0; i < row->n_values; i++) {
        if (strcmp (row->values[i]->column, "envelope") != 0 || row->values[i]->blob.len > 0)
            continue;
        struct store_stmt *q = of_job (
            store,
            "SELECT f.envelope AS envelope FROM job AS j JOIN job AS f ON f.number = j.array_of"
            " WHERE j.number = ?1",
            job);
        int rc = store_step (q, err);
        if (rc > 0) {
            row->values[i] = value_make (q, 0, arena);
            store_reset (q);
        }
        return rc < 0 ? rc : 0;
    }
    return 0;
}

int metastore_rows_load (struct metastore *store, uint64_t job, bool whole, struct arena *arena,
                         Row ***rows_out, size_t *count_out, struct err *err)
{
    Row **rows = arena_array (arena, ROWS_MAX, sizeof *rows);
    size_t count = 0;
    for (int t = 0; t < TABLES; t++) {
        struct store_stmt *q = of_job (store, tables[t].select, job);
        int rc;
        while ((rc = store_step (q, err)) > 0 && count < ROWS_MAX)
            rows[count++] = row_make (q, tables[t].name, whole, arena);
        if (rc > 0)
            store_reset (q);
        if (rc)
            return rc < 0 ? rc
                          : err_set (err, ERR_LIMIT, "job %llu has more than %d rows",
                                     (unsigned long long)job, ROWS_MAX);
        if (count == 0)
            return err_set (err, ERR_NOT_FOUND, "there is no job %llu", (unsigned long long)job);
    }
    *rows_out = rows;
    *count_out = count;
    return whole ? envelope_add (store, job, rows[0], arena, err) : 0;
}

/* ---- in */

static const Value *value_of (const Row *row, const char *column)
{
    for (size_t i = 0; i < row->n_values; i++)
        if (strcmp (row->values[i]->column, column) == 0)
            return row->values[i];
    return NULL;
}

static int64_t number_of (const Row *row, const char *column)
{
    const Value *v = value_of (row, column);
    return v && v->is_case == NUI__META__V1__STORED_VALUE__IS_NUMBER ? v->number : -1;
}

/* The same columns in the same order; the envelope may be missing. */
static bool has_columns (const Row *row, struct store_stmt *q)
{
    size_t at = 0;
    for (int i = 0; i < store_col_count (q); i++) {
        const char *name = store_col_name (q, i);
        if (at < row->n_values && strcmp (row->values[at]->column, name) == 0)
            at++;
        else if (strcmp (name, "envelope") != 0)
            return false;
    }
    return at && at == row->n_values;
}

static int table_of (const Row *row)
{
    for (int t = 0; t < TABLES; t++)
        if (strcmp (row->table, tables[t].name) == 0)
            return t;
    return -1;
}

static int rows_check (struct metastore *store, uint64_t job, Row *const *rows, size_t count,
                       struct err *err)
{
    bool good = count > 0 && count <= ROWS_MAX;
    for (size_t i = 0; i < count && good; i++) {
        int t = table_of (rows[i]);
        good = t >= 0 && (t == 0) == (i == 0) &&
               has_columns (rows[i], of_job (store, tables[t].select, job)) &&
               number_of (rows[i], t == 0 ? "number" : "job") == (int64_t)job;
    }
    return good ? 0
                : err_set (err, ERR_INVALID,
                           "not the rows of job %llu: a metascheduler of another version?",
                           (unsigned long long)job);
}

/* Whose it is, and whether it is here. */
static int owner_check (struct metastore *store, uint64_t job, const Row *row, uint64_t *other_out,
                        struct err *err)
{
    const Value *uuid = value_of (row, "uuid"), *submitter = value_of (row, "submitter");
    struct store_stmt *q = store_stmt (
        store->store, "SELECT number FROM job WHERE (submitter = ?1 AND uuid = ?2) <> (number = ?3)"
                      " AND (number = ?3 OR (submitter = ?1 AND uuid = ?2))");
    if (!uuid || uuid->is_case != NUI__META__V1__STORED_VALUE__IS_BLOB || !submitter ||
        submitter->is_case != NUI__META__V1__STORED_VALUE__IS_TEXT)
        return err_set (err, ERR_INVALID, "not the rows of a job");
    store_bind_text (q, 1, submitter->text);
    store_bind_blob (q, 2, uuid->blob.data, uuid->blob.len);
    store_bind_int (q, 3, (int64_t)job);
    int rc = store_step (q, err);
    if (rc <= 0)
        return rc;
    *other_out = (uint64_t)store_col_int (q, 0);
    store_reset (q);
    return err_set (err, ERR_EXISTS, "what was signed is here as job %llu",
                    (unsigned long long)*other_out);
}

static int row_run (struct metastore *store, const Row *row, struct strbuf *sql, struct err *err)
{
    struct store_stmt *q = store_stmt (store->store, strbuf_text (sql));
    for (size_t i = 0; i < row->n_values; i++) {
        const Value *v = row->values[i];
        int at = (int)i + 1;
        if (v->is_case == NUI__META__V1__STORED_VALUE__IS_NUMBER)
            store_bind_int (q, at, v->number);
        else if (v->is_case == NUI__META__V1__STORED_VALUE__IS_TEXT)
            store_bind_text (q, at, v->text);
        else if (v->is_case == NUI__META__V1__STORED_VALUE__IS_BLOB)
            store_bind_blob (q, at, v->blob.data, v->blob.len);
    }
    strbuf_free (sql);
    return store_run (q, err);
}

static int row_insert (struct metastore *store, const Row *row, struct err *err)
{
    struct strbuf sql = STRBUF_INIT;
    strbuf_printf (&sql, "INSERT INTO %s (", row->table);
    for (size_t i = 0; i < row->n_values; i++)
        strbuf_printf (&sql, "%s%s", i ? ", " : "", row->values[i]->column);
    strbuf_printf (&sql, ") VALUES (");
    for (size_t i = 0; i < row->n_values; i++)
        strbuf_printf (&sql, "%s?%zu", i ? ", " : "", i + 1);
    strbuf_printf (&sql, ")");
    return row_run (store, row, &sql, err);
}

/* The job's own: others refer to it, so that it is changed where it is. */
static int job_row_save (struct metastore *store, const Row *row, struct err *err)
{
    struct strbuf sql = STRBUF_INIT;
    strbuf_printf (&sql, "UPDATE job SET ");
    for (size_t i = 0; i < row->n_values; i++)
        strbuf_printf (&sql, "%s%s = ?%zu", i ? ", " : "", row->values[i]->column, i + 1);
    for (size_t i = 0; i < row->n_values; i++)
        if (strcmp (row->values[i]->column, "number") == 0)
            strbuf_printf (&sql, " WHERE number = ?%zu", i + 1);
    bool whole = value_of (row, "envelope") != NULL;
    int rc = row_run (store, row, &sql, err);
    if (rc == 0 && store_changes (store->store) == 0)
        rc = whole ? row_insert (store, row, err)
                   : err_set (err, ERR_NOT_FOUND, "its envelope is not here");
    return rc == 0 && whole
               ? metastore_envelope_share (store, (uint64_t)number_of (row, "number"), err)
               : rc;
}

int metastore_rows_save (struct metastore *store, uint64_t job, Row *const *rows, size_t count,
                         uint64_t *other_out, struct err *err)
{
    int rc = rows_check (store, job, rows, count, err);
    if (rc == 0)
        rc = owner_check (store, job, rows[0], other_out, err);
    for (int t = TABLES; t-- > 1 && rc == 0;)
        rc = store_run (of_job (store, tables[t].delete, job), err);
    if (rc == 0)
        rc = job_row_save (store, rows[0], err);
    for (size_t i = 1; i < count && rc == 0; i++)
        rc = row_insert (store, rows[i], err);
    return rc;
}

bool metastore_rows_ended (Row *const *rows, size_t count)
{
    return count && number_of (rows[0], "ended") == 1;
}

int metastore_envelope_share (struct metastore *store, uint64_t job, struct err *err)
{
    return store_run (of_job (store,
                              "UPDATE job SET envelope = x'' WHERE number = ?1 AND array_of > 0"
                              " AND array_of <> number AND envelope ="
                              " (SELECT f.envelope FROM job AS f WHERE f.number = job.array_of)",
                              job),
                      err);
}

int metastore_rows_delete (struct metastore *store, uint64_t job, struct err *err)
{
    /* What others of its array have there becomes theirs. */
    int rc = store_run (
        of_job (store,
                "UPDATE job SET envelope = (SELECT f.envelope FROM job AS f WHERE"
                " f.number = ?1) WHERE array_of = ?1 AND number <> ?1 AND envelope = x''",
                job),
        err);
    for (int t = TABLES; t-- > 0 && rc == 0;)
        rc = store_run (of_job (store, tables[t].delete, job), err);
    if (rc == 0)
        rc = store_run (of_job (store, "DELETE FROM lead WHERE job = ?1", job), err);
    return rc;
}
