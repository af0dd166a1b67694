/* follow: attaches the production scheduler's database and copies what has changed in it. The
 * mode that only looks (svc/modes/follow.c) calls it. The other database is opened read-only:
 * nothing may ever be written there. */
#include "local/store/follow.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/store/local_store_i.h"

/* Jobs whose nodes are promised for a moment to come (2) are not followed: their group decides. */
#define LIVE "state < 5 AND state <> 2"

int follow_attach (struct local_store *store, const char *path, struct err *err)
{
    char sql[4500];
    size_t n = (size_t)snprintf (sql, sizeof sql, "ATTACH DATABASE 'file:");
    for (const char *p = path; *p && n < sizeof sql - 80; p++)
        n += (size_t)snprintf (sql + n, sizeof sql - n, strchr ("'?#%", *p) ? "%%%02x" : "%c",
                               (unsigned char)*p);
    snprintf (sql + n, sizeof sql - n, "?mode=ro' AS prod");
    int rc = store_exec (store->db, sql, err);
    if (rc != 0)
        return err_prefix (err, "%s", path);
    int64_t version[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        struct store_stmt *q =
            store_stmt (store->db, i ? "PRAGMA prod.user_version" : "PRAGMA main.user_version");
        rc = store_step (q, err);
        if (rc < 0)
            return err_prefix (err, "%s", path);
        version[i] = store_col_int (q, 0);
        store_reset (q);
    }
    if (version[0] != version[1])
        return err_set (err, ERR_CONFLICT, "%s is of another version of nui-local than this", path);
    return store_exec (store->db,
                       "INSERT OR REPLACE INTO main.blob SELECT * FROM prod.blob "
                       "WHERE name = 'fairshare'",
                       err);
}

static int numbers (struct local_store *store, const char *sql, const char *site, uint64_t **out,
                    uint32_t *count, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, sql);
    uint32_t cap = 0;
    int rc;
    store_bind_text (q, 1, site);
    while ((rc = store_step (q, err)) == 1) {
        if (*count == cap) {
            cap = cap ? cap * 2 : 64;
            *out = realloc (*out, cap * sizeof **out);
            assert (*out);
        }
        (*out)[(*count)++] = (uint64_t)store_col_int (q, 0);
    }
    return rc;
}

static int differs (struct local_store *store, const char *sql, bool *out, struct err *err)
{
    struct store_stmt *q = store_stmt (store->db, sql);
    int rc = store_step (q, err);
    if (rc < 0)
        return rc;
    *out = store_col_int (q, 0) != 0;
    store_reset (q);
    return 0;
}

/* What is set on a job, as one text; db and job: of which. */
#define SETTINGS_OF(db, job)                                                                       \
    "coalesce ((SELECT holds || ',' || priority || ',' || absolute FROM " db ".job_admin a "       \
    "WHERE a.number = " job ".number), '') || ';' || "                                             \
    "coalesce ((SELECT group_concat (kind || ',' || target) FROM " db ".depend d "                 \
    "WHERE d.job = " job ".number), '') || ';' || "                                                \
    "coalesce ((SELECT group_concat (name || '=' || value) FROM " db ".admin_set s "               \
    "WHERE s.kind = 1 AND s.object = ?1 || '.' || " job ".number), '')"

#define COPY(table, key)                                                                           \
    "INSERT INTO main." table " SELECT * FROM prod." table " WHERE " key                           \
    " IN (SELECT number FROM changed WHERE come);"

static int copy (struct local_store *store, const struct follow_changes *c, struct err *err)
{
    int rc = 0;
    if (c->gone_count + c->come_count > 0)
        rc = store_exec (store->db,
                         "DELETE FROM main.job WHERE number IN (SELECT number FROM changed);"
                         "DELETE FROM main.depend WHERE job IN (SELECT number FROM changed);" COPY (
                             "job", "number") COPY ("envelope", "number")
                             COPY ("job_admin", "number") COPY ("depend", "job")
                         /* A co-allocated part that runs is a job that has its nodes. */
                         "UPDATE main.job SET part = 0 WHERE part <> 0;",
                         err);
    if (rc == 0)
        rc = store_exec (store->db,
                         "DELETE FROM main.admin_set; INSERT INTO main.admin_set "
                         "SELECT * FROM prod.admin_set;"
                         "DELETE FROM main.rsv; INSERT INTO main.rsv SELECT * FROM prod.rsv;"
                         "DELETE FROM changed;",
                         err);
    return rc;
}

static int changes (struct local_store *store, const char *site, struct follow_changes *c,
                    struct err *err)
{
    struct store_stmt *q;
    int rc = numbers (store,
                      "SELECT number FROM main.job m WHERE ?1 <> '' AND NOT EXISTS (SELECT 1 FROM "
                      "prod.job p WHERE p.number = m.number AND p.change = m.change AND p." LIVE
                      " AND " SETTINGS_OF ("prod", "p") " = " SETTINGS_OF ("main", "m") ")",
                      site, &c->gone, &c->gone_count, err);
    if (rc == 0)
        rc = numbers (
            store,
            "SELECT number FROM prod.job p WHERE " LIVE " AND NOT EXISTS (SELECT 1 FROM "
            "main.job m WHERE m.number = p.number AND m.change = p.change AND " SETTINGS_OF (
                "prod", "p") " = " SETTINGS_OF ("main", "m") ") ORDER BY number",
            site, &c->come, &c->come_count, err);
    if (rc == 0)
        rc = differs (store,
                      "SELECT EXISTS (SELECT * FROM main.rsv EXCEPT SELECT * FROM prod.rsv) OR "
                      "EXISTS (SELECT * FROM prod.rsv EXCEPT SELECT * FROM main.rsv)",
                      &c->reservations, err);
    if (rc == 0)
        rc = differs (store,
                      "SELECT EXISTS (SELECT * FROM main.admin_set WHERE kind = 2 EXCEPT SELECT * "
                      "FROM prod.admin_set) OR EXISTS (SELECT * FROM prod.admin_set WHERE kind = 2 "
                      "EXCEPT SELECT * FROM main.admin_set)",
                      &c->nodes, err);
    for (uint32_t i = 0; rc == 0 && i < c->gone_count + c->come_count; i++) {
        bool come = i >= c->gone_count;
        q = store_stmt (store->db, "INSERT OR REPLACE INTO changed (number, come) VALUES (?1, ?2)");
        store_bind_int (q, 1, (int64_t)(come ? c->come[i - c->gone_count] : c->gone[i]));
        store_bind_int (q, 2, come);
        rc = store_run (q, err);
    }
    return rc;
}

int follow_read (struct local_store *store, const char *site, struct follow_changes *out,
                 struct err *err)
{
    *out = (struct follow_changes){0};
    int rc = store_exec (store->db,
                         "CREATE TEMP TABLE IF NOT EXISTS changed (number INTEGER PRIMARY KEY, "
                         "come INTEGER NOT NULL)",
                         err);
    if (rc == 0)
        rc = local_store_begin (store, err);
    if (rc != 0)
        return rc;
    rc = changes (store, site, out, err);
    if (rc == 0)
        rc = copy (store, out, err);
    if (rc == 0)
        rc = local_store_commit (store, err);
    if (rc != 0)
        local_store_rollback (store);
    return rc;
}

void follow_changes_free (struct follow_changes *c)
{
    free (c->gone);
    free (c->come);
    *c = (struct follow_changes){0};
}
