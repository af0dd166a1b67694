/* The database looked at from outside after each batch: balances as the model has them, and what must
 * hold of the journal whatever was asked. What a batch did is looked at after it; everything from the
 * beginning from time to time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/store/statements.h"
#include "tests/prop/bank/prop.h"

struct sums {
    long long posted, held;
};

struct check {
    PGconn *sql;
    long long op, charge;        /* looked at up to these */
    struct sums alloc[M_ALLOCS]; /* of each allocation, by its id */
    long long suspense, expired, earned[M_SITES];
};

/* $1: operations, $2: charges beyond which to look. */
static const char *const balances =
    "SELECT b.allocation_id, b.granted, b.settled, b.posted, b.held, coalesce (l.award_id, 0), "
    "CASE a.class WHEN 'DEBT' THEN p.name END, coalesce (e.p, 0), coalesce (e.h, 0) FROM balance b "
    "JOIN allocation l ON l.id = b.allocation_id JOIN account a ON a.id = l.account_id "
    "LEFT JOIN project p ON p.id = a.project_id LEFT JOIN (SELECT allocation_id, "
    "sum (amount) FILTER (WHERE layer = 'P') p, sum (amount) FILTER (WHERE layer = 'H') h "
    "FROM entry WHERE op_id > $1::bigint GROUP BY 1) e USING (allocation_id) ORDER BY 1";
static const char *const systems =
    "SELECT a.name, sum (e.amount) FROM entry e JOIN account a ON a.id = e.account_id WHERE "
    "e.op_id > $1::bigint AND e.layer = 'P' AND a.project_id IS NULL GROUP BY 1";
static const char *const charges = "SELECT id, op_id FROM charge WHERE id > $1::bigint ORDER BY id";
static const char *const counts =
    "SELECT (SELECT max (id) FROM op), (SELECT count (*) FROM recon_row), (SELECT count (*) FROM "
    "recon_row r WHERE NOT EXISTS (SELECT FROM recon_event e WHERE e.row_id = r.id AND e.kind <> "
    "'owned')), (SELECT count (*) FROM quote_cancel), (SELECT count (DISTINCT quote_id) FROM "
    "quote_use), (SELECT recorded_at FROM op ORDER BY id DESC LIMIT 1)";
static const char *const rules =
    "SELECT "
    "(SELECT count (*) FROM (SELECT 1 FROM entry WHERE op_id > $1::bigint GROUP BY op_id, unit_id, layer "
    " HAVING sum (amount) <> 0) x) AS \"operations do not sum to zero\", "
    "(SELECT count (*) FROM balance b JOIN (SELECT DISTINCT allocation_id FROM entry WHERE op_id > $1 "
    " AND layer = 'H') t USING (allocation_id) LEFT JOIN (SELECT allocation_id, sum (g.amount - g.settled - "
    " g.released) h FROM hold_leg g JOIN hold ON id = hold_id WHERE open GROUP BY allocation_id) e "
    " USING (allocation_id) WHERE b.held <> coalesce (e.h, 0)) AS \"holds are not the sum of open legs\", "
    "(SELECT count (*) FROM charge c LEFT JOIN (SELECT charge_id, sum (amount) a FROM charge_leg WHERE "
    " charge_id > $2::bigint GROUP BY 1) g ON g.charge_id = c.id WHERE c.id > $2 AND c.amount <> "
    " coalesce (g.a, 0)) AS \"charges are not the sum of their legs\", "
    "(SELECT count (*) FROM charge_leg g JOIN (SELECT charge_id, charge_leg, sum (amount) a FROM refund_leg "
    " WHERE (charge_id, charge_leg) IN (SELECT charge_id, charge_leg FROM refund_leg WHERE op_id > $1) "
    " GROUP BY 1, 2) r ON r.charge_id = g.charge_id AND r.charge_leg = g.leg WHERE r.a > g.amount) "
    " AS \"legs were refunded more than they paid\", "
    "(SELECT count (*) FROM usage u JOIN (SELECT usage_id, sum (amount) a FROM charge WHERE usage_id IN "
    " (SELECT usage_id FROM charge WHERE id > $2) GROUP BY 1) c ON c.usage_id = u.id WHERE u.total <> c.a) "
    " AS \"uses are not the sum of their charges\", "
    /* Whatever a lying site or metascheduler sent. */
    "(SELECT count (*) FROM (SELECT h.identity, h.uuid, max (h.cost_max) AS most FROM hold h WHERE h.cost_max > 0 "
    " GROUP BY 1, 2) j WHERE (SELECT sum (u.total - u.disputed) FROM usage u WHERE u.id IN (SELECT v.id FROM signed s "
    "  JOIN hold h ON h.id = s.hold_id JOIN usage v ON v.site = h.site AND v.site_job = h.site_job AND "
    "  v.component = h.component AND v.incarnation = h.incarnation WHERE s.uuid = j.uuid AND s.identity = j.identity "
    "  AND v.hold_id = h.id UNION SELECT -s.hold_id FROM signed s WHERE s.hold_id < 0 AND s.uuid = j.uuid AND "
    "  s.identity = j.identity)) > j.most) AS \"a signed job was paid for with more than it may cost\", "
    "(SELECT count (*) FROM charge c JOIN hold h ON h.id = c.hold_id WHERE c.id > $2 AND h.walltime_max_us > 0 AND "
    " c.amount > 0 AND (c.procs > h.procs OR c.end_at - c.start_at > h.walltime_max_us + (SELECT "
    "  coalesce (max (r.overrun_us), 0) FROM site_right r WHERE r.site = h.site)) AND NOT EXISTS (SELECT FROM "
    "  charge_leg g WHERE g.charge_id = c.id AND g.source = 'DISPUTED') AND (SELECT u.disputed FROM usage u WHERE "
    "  u.id = c.usage_id) = 0 AND c.total > h.amount AND EXISTS (SELECT FROM rate r WHERE r.site = h.site AND "
    "  r.version = h.rate_version AND r.measure = 'wall')) AS \"more was paid for than was signed\", "
    "(SELECT count (*) FROM (SELECT recorded_at - lag (recorded_at) OVER (ORDER BY id) AS d FROM op WHERE id >= $1) x "
    " WHERE x.d < 0) AS \"the ledger's time went back\", "
    "(SELECT count (*) FROM hold h WHERE h.walltime_max_us > 0 AND h.walltime_us > h.walltime_max_us) "
    " AS \"a hold is longer than was signed\"";

static PGresult *good (struct check *c, PGresult *res, const char *what)
{
    if (PQresultStatus (res) != PGRES_TUPLES_OK && PQresultStatus (res) != PGRES_COMMAND_OK) {
        fprintf (stderr, "prop_bank: %s: %s\n", what, PQerrorMessage (c->sql));
        abort ();
    }
    return res;
}

static void prepare (struct check *c, const char *name, const char *sql)
{
    PQclear (good (c, PQprepare (c->sql, name, sql, 0, NULL), name));
}

struct check *check_open (const char *conninfo)
{
    struct check *c = calloc (1, sizeof (*c));
    if (!c)
        abort ();
    c->sql = pg_fixture_connect (conninfo);
    pg_fixture_run (c->sql, "SET jit = off; SET plan_cache_mode = force_generic_plan");
    prepare (c, "balances", balances);
    prepare (c, "systems", systems);
    prepare (c, "charges", charges);
    prepare (c, "counts", counts);
    prepare (c, "rules", rules);
    return c;
}

void check_close (struct check *c)
{
    PQfinish (c->sql);
    free (c);
}

PGconn *check_sql (struct check *c)
{
    return c->sql;
}

static PGresult *ask (struct check *c, const char *name, int args, long long a, long long b)
{
    char text[2][24];
    const char *value[2] = {text[0], text[1]};
    snprintf (text[0], sizeof (text[0]), "%lld", a);
    snprintf (text[1], sizeof (text[1]), "%lld", b);
    return good (c, PQexecPrepared (c->sql, name, args, value, NULL, NULL, 0), name);
}

static long long number (const PGresult *res, int row, int column)
{
    return atoll (PQgetvalue (res, row, column));
}

static void equal (struct run *r, const char *what, long long bank, long long model)
{
    char text[160];
    snprintf (text, sizeof (text), "%s: the bank has %lld, the model %lld", what, bank, model);
    if (bank != model)
        prop_die (r, text, NULL);
}

static int project_named (const char *name)
{
    int p = 0;
    while (p < M_PROJECTS && strcmp (prop_projects[p], name) != 0)
        p++;
    return p;
}

/* What an allocation has is what it had and what its entries since then say. */
static void folded (struct run *r, const PGresult *res, int row)
{
    struct check *c = r->check;
    long long id = number (res, row, 0);
    if (id < 0 || id >= M_ALLOCS)
        prop_die (r, "an allocation's id is out of bounds", NULL);
    struct sums *s = &c->alloc[id];
    s->posted += number (res, row, 7);
    s->held += number (res, row, 8);
    equal (r, "posted, and its entries", number (res, row, 3), s->posted);
    equal (r, "held, and its entries", number (res, row, 4), s->held);
}

static void see_balances (struct run *r)
{
    const struct model *m = r->model;
    PGresult *res = ask (r->check, "balances", 1, r->check->op, 0);
    long long debt[M_PROJECTS + 1] = {0}, there = 0;
    int at = 0;
    for (int i = 0; i < PQntuples (res); i++) {
        folded (r, res, i);
        there += number (res, i, 3) + number (res, i, 2) - number (res, i, 1);
        if (!PQgetisnull (res, i, 6)) {
            debt[project_named (PQgetvalue (res, i, 6))] = number (res, i, 3);
            continue;
        }
        if (at == m->allocs)
            prop_die (r, "the bank has more allocations than the model", NULL);
        const struct model_alloc *a = &m->alloc[at++];
        equal (r, "id", number (res, i, 0), a->id);
        equal (r, "granted", number (res, i, 1), a->granted);
        equal (r, "settled", number (res, i, 2), a->settled);
        equal (r, "posted", number (res, i, 3), a->posted);
        equal (r, "held", number (res, i, 4), a->held);
        equal (r, "grant", number (res, i, 5), a->grant);
    }
    equal (r, "allocations", at, m->allocs);
    for (int p = 0; p < M_PROJECTS; p++)
        equal (r, prop_projects[p], debt[p], m->debt[p]); /* what it owes */
    /* What is there is what was granted less what was charged, what expired, and what closed accounts gave back. */
    equal (r, "all that is there", there, -m->expired - m->returned);
    PQclear (res);
}

static void see_systems (struct run *r)
{
    const struct model *m = r->model;
    struct check *c = r->check;
    PGresult *res = ask (c, "systems", 1, c->op, 0);
    for (int i = 0; i < PQntuples (res); i++) {
        const char *name = PQgetvalue (res, i, 0);
        long long sum = number (res, i, 1);
        if (strcmp (name, "bank:suspense") == 0)
            c->suspense -= sum;
        else if (strcmp (name, "bank:expired") == 0)
            c->expired += sum;
        else if (strncmp (name, "site:s", 6) == 0)
            c->earned[name[6] - '0'] += sum;
    }
    PQclear (res);
    equal (r, "suspense", c->suspense, m->suspense);
    equal (r, "expired", c->expired, m->expired);
    equal (r, "earned by s0", c->earned[0], m->earned[0]);
    equal (r, "earned by s1", c->earned[1], m->earned[1]);
}

/* Charges are numbered as they come: whose operation is which. */
static void see_charges (struct run *r)
{
    PGresult *res = ask (r->check, "charges", 1, r->charged, 0);
    equal (r, "charges", r->charged + PQntuples (res), r->model->charges);
    for (int i = 0; i < PQntuples (res); i++)
        r->charge_op[number (res, i, 0)] = number (res, i, 1);
    PQclear (res);
}

/* Returns the newest operation. */
static long long see_counts (struct run *r)
{
    const struct model *m = r->model;
    int open = 0, used = 0, cancelled = 0;
    for (int i = 0; i < m->rows; i++)
        open += m->row[i].state == M_OPEN;
    for (int i = 0; i < m->pins; i++) {
        used += m->pin[i].used;
        cancelled += m->pin[i].cancelled;
    }
    PGresult *res = ask (r->check, "counts", 0, 0, 0);
    equal (r, "rows of reconciliation", number (res, 0, 1), m->rows);
    equal (r, "open ones", number (res, 0, 2), open);
    equal (r, "quotes that were cancelled", number (res, 0, 3), cancelled);
    equal (r, "quotes that were used", number (res, 0, 4), used);
    long long newest = number (res, 0, 0), moment = number (res, 0, 5);
    if (moment >= EPOCH + (r->model->now + 1) * US_PER_S)
        prop_die (r, "the ledger's time is ahead of what was vouched for", NULL);
    PQclear (res);
    return newest;
}

/* All that nui verify --rules asks for: the lines of the blocks give every row of every table. The model's clock is its
 * own, that of the migrations is not. */
static void see_history (struct run *r)
{
    char what[400];
    PGresult *res =
        good (r->check, PQexec (r->check->sql, bank_stmt[BANK_STMT_COUNT + RD_LEDGER_CHECKS].sql),
              "rules");
    for (int i = 0; i < PQntuples (res); i++)
        if (strcmp (PQgetvalue (res, i, 2), "0") != 0 &&
            strncmp (PQgetvalue (res, i, 0), "what was there before ", 22) != 0) {
            snprintf (what, sizeof (what), "%s: %s", PQgetvalue (res, i, 0),
                      PQgetvalue (res, i, 3));
            prop_die (r, what, NULL);
        }
    PQclear (res);
}

void check_step (struct run *r, bool whole)
{
    struct check *c = r->check;
    if (whole) {
        PGconn *sql = c->sql;
        *c = (struct check){.sql = sql};
        see_history (r);
    }
    see_balances (r);
    see_systems (r);
    see_charges (r);
    PGresult *res = ask (c, "rules", 2, c->op, c->charge);
    for (int i = 0; i < PQnfields (res); i++)
        if (number (res, 0, i) != 0)
            prop_die (r, PQfname (res, i), NULL);
    PQclear (res);
    c->op = see_counts (r);
    c->charge = r->model->charges;
}
