/* statements: every SQL text of the ledger's daemon, one per number of enum bank_stmt. pgloop
 * prepares them, load, write and the readers send them by number. Nothing is ever pasted into a
 * text: whatever differs is a parameter. */
#include "bank/store/statements.h"

#include "bank/store/content.h"

/* Holds by id ($1) and open ones by job incarnation ($2 to $5). */
#define HOLDS                                                                                      \
    "(SELECT h.* FROM unnest ($1::bigint[]) AS k (id) CROSS JOIN LATERAL "                         \
    " (SELECT * FROM hold x WHERE x.id = k.id LIMIT 1) h "                                         \
    "UNION ALL SELECT h.* FROM unnest ($2::text[], $3::text[], $4::text[], $5::bigint[]) "         \
    " AS k (site, job, component, incarnation) CROSS JOIN LATERAL "                                \
    " (SELECT * FROM hold x WHERE x.site = k.site AND x.site_job = k.job AND "                     \
    "  x.component = k.component AND x.incarnation = k.incarnation AND x.open LIMIT 1) h)"

#define USAGES                                                                                     \
    "(SELECT u.* FROM unnest ($2::text[], $3::text[], $4::text[], $5::bigint[]) "                  \
    " AS k (site, job, component, incarnation) CROSS JOIN LATERAL "                                \
    " (SELECT * FROM usage x WHERE x.site = k.site AND x.site_job = k.job AND "                    \
    "  x.component = k.component AND x.incarnation = k.incarnation LIMIT 1) u)"

/* The accounts named ($1), those of allocations ($2), those with an id ($3), and all that they may
 * fall back to. */
#define CLOSURE                                                                                    \
    "WITH RECURSIVE seed (id) AS ("                                                                \
    " SELECT a.id FROM unnest ($1::text[]) AS k (name) CROSS JOIN LATERAL "                        \
    "  (SELECT id FROM account x WHERE x.name = k.name UNION ALL "                                 \
    "   SELECT account_id FROM account_name x WHERE x.name = k.name LIMIT 1) a "                   \
    " UNION SELECT l.account_id FROM unnest ($2::bigint[]) AS k (id) CROSS JOIN LATERAL "          \
    "  (SELECT account_id FROM allocation x WHERE x.id = k.id LIMIT 1) l "                         \
    " UNION SELECT unnest ($3::bigint[])), "                                                       \
    "reach (id, depth) AS (SELECT id, 0 FROM seed UNION "                                          \
    " SELECT f.fallback_id, r.depth + 1 FROM reach r "                                             \
    " JOIN account_fallback f ON f.account_id = r.id WHERE r.depth < 4), "                         \
    "needed (id, depth) AS (SELECT id, min (depth) FROM reach GROUP BY id "                        \
    " UNION ALL SELECT d.id, 9 FROM (SELECT DISTINCT a.project_id FROM reach r "                   \
    "  JOIN account a ON a.id = r.id) p JOIN account d ON d.project_id = p.project_id AND "        \
    "  d.class = 'DEBT' WHERE d.id NOT IN (SELECT id FROM reach)) "

#define ALLOCS                                                                                     \
    CLOSURE                                                                                        \
    "SELECT b.allocation_id, l.account_id, l.valid_from, l.valid_to, l.credit_limit, "             \
    "b.granted, b.settled, b.posted, b.held, l.award_id, l.giver, "                                \
    "(SELECT string_agg (x.kind || '=' || CASE WHEN x.exclude THEN '-' ELSE '' END || "            \
    " x.name, ' ' ORDER BY x.position) FROM allocation_scope x "                                   \
    " WHERE x.allocation_id = l.id), l.split_from, l.reference FROM needed r "                     \
    "JOIN allocation l ON l.account_id = r.id "                                                    \
    "JOIN balance b ON b.allocation_id = l.id ORDER BY b.allocation_id"

/* Of a usage row: its job of the grid, else of its site. */
#define USAGE_JOB "coalesce (nullif (u.grid_job, ''), u.site_job)"

/* Who sees what of project p: $1 is the caller's identity, or '' for those who see everything;
 * people see their projects and those below what they lead, managers and auditors all. */
#define SEES                                                                                       \
    "($1::text[] = '{\"\"}' OR EXISTS (SELECT 1 FROM membership m JOIN person pe ON "              \
    "pe.id = m.person_id WHERE m.project_id = p.id AND pe.identity = ($1::text[])[1] AND "         \
    "m.valid_to = 9223372036854775807) OR EXISTS (SELECT 1 FROM person pe WHERE "                  \
    "pe.identity = ($1::text[])[1] AND (has_role (pe.id, 'manager') OR "                           \
    "has_role (pe.id, 'auditor') OR leads_above (pe.id, p.id))))"

#define BALANCE                                                                                    \
    "a.name, p.name, l.id, l.valid_from, l.valid_to, l.credit_limit, l.description, l.granted, "   \
    "l.settled, l.posted, l.held, "
/* A function in each row costs more than all else of a balance: it is called where anything is frozen. */
#define IF_FROZEN(text) "CASE WHEN EXISTS (SELECT FROM freeze_now) THEN " text " END"
#define FROZEN                                                                                     \
    IF_FROZEN ("account_frozen (a.id, a.project_id)")                                              \
    ", " IF_FROZEN ("frozen_text ('grant', l.award_id)")
/* Of each: $1 who, $2 account, $3 a number, given back in the last column. SEES, but with no part of it as a hash of
 * all memberships. */
#define BALANCES(columns, account)                                                                               \
    "SELECT " BALANCE columns                                                                                    \
    ", n.number FROM unnest ($1::text[], $2::text[], $3::bigint[]) AS n (who, account, number) "                 \
    "CROSS JOIN LATERAL (" account " LIMIT 1) a "                                                                \
    "CROSS JOIN LATERAL (SELECT * FROM project x WHERE x.id = a.project_id LIMIT 1) p "                          \
    "CROSS JOIN LATERAL (SELECT WHERE n.who = '' UNION ALL (SELECT FROM person pe JOIN membership m ON "         \
    "  m.person_id = pe.id AND m.project_id = p.id AND m.valid_to = 9223372036854775807 "                        \
    "  WHERE pe.identity = n.who LIMIT 1) UNION ALL (SELECT FROM person pe WHERE pe.identity = n.who AND "       \
    "  (has_role (pe.id, 'manager') OR has_role (pe.id, 'auditor') OR leads_above (pe.id, p.id)) LIMIT 1) "      \
    "  LIMIT 1) seen "                                                                                           \
    "LEFT JOIN LATERAL (SELECT l.*, b.granted, b.settled, b.posted, b.held FROM allocation l JOIN balance b ON " \
    "  b.allocation_id = l.id WHERE l.account_id = a.id OFFSET 0) l ON true ORDER BY n.number, l.valid_to, l.id"
#define ACCOUNT_NOW "SELECT * FROM account x WHERE x.name = n.account"
#define ACCOUNT_ONCE                                                                               \
    "SELECT x.* FROM account_name y JOIN account x ON x.id = y.account_id WHERE y.name = n.account"

/* "kind name=ppm;…" of a card; names have no ";". */
#define FACTORS                                                                                    \
    "(SELECT string_agg (f.kind || ' ' || f.name || '=' || f.ppm, ';' ORDER BY f.position) "       \
    " FROM rate_factor f WHERE f.site = r.site AND f.version = r.version)"

/* What jobs were charged, with the last charge of each. */
#define JOBS                                                                                                 \
    "SELECT u.id, u.site, u.site_job, u.component, u.incarnation, u.grid_job, u.identity, a.name, "          \
    "u.procs, u.start_at, u.end_at, u.total, (SELECT coalesce (sum (r.amount), 0)::bigint FROM "             \
    "  charge c JOIN refund_leg r ON r.charge_id = c.id WHERE c.usage_id = u.id), u.final, "                 \
    "u.hold_id, (SELECT count (*) FROM charge c WHERE c.usage_id = u.id), last.op_id, "                      \
    "last.formula, o.recorded_at, last.rate_version, coalesce ((SELECT h.rate_version FROM hold h "          \
    "  WHERE h.id = u.hold_id), (SELECT last.rate_version FROM quote_use q WHERE q.op_id = last.op_id "      \
    "  LIMIT 1), (SELECT max (r.version) FROM rate r WHERE r.site = u.site AND "                             \
    "  r.valid_from <= last.start_at AND r.op_id < last.op_id), 0), EXISTS (SELECT FROM charge c "           \
    "  JOIN charge_leg g ON g.charge_id = c.id JOIN allocation l ON l.id = g.allocation_id "                 \
    "  WHERE c.usage_id = u.id AND l.valid_to <= u.start_at), coalesce ((SELECT h.client FROM charge c "     \
    "  JOIN op h ON h.id = c.op_id WHERE c.usage_id = u.id AND h.client LIKE '%/operator/%' AND NOT EXISTS " \
    "  (SELECT FROM recon_event e WHERE e.cured_op = h.id) ORDER BY c.id DESC LIMIT 1), '') "                \
    "FROM usage u JOIN account a ON a.id = u.account_id LEFT JOIN project p ON "                             \
    "p.id = a.project_id CROSS JOIN LATERAL (SELECT c.op_id, c.formula, c.rate_version, "                    \
    "  c.start_at FROM charge c WHERE c.usage_id = u.id ORDER BY c.id DESC LIMIT 1) last "                   \
    "JOIN op o ON o.id = last.op_id "

#define BLOCK_COLUMNS                                                                              \
    "b.number, b.first_op, b.ops, b.recorded_at, b.prev, b.root, b.signature, s.chain"

/* The block that holds operation $1. */
#define BLOCK_OF                                                                                   \
    "(SELECT * FROM (SELECT * FROM block WHERE first_op <= ($1::bigint[])[1] ORDER BY first_op "   \
    "DESC LIMIT 1) x WHERE ($1::bigint[])[1] < x.first_op + x.ops)"

/* Of block b: lines, none where it has none. */
#define CONTENT                                                                                    \
    "concat_ws (E'\\n', (SELECT nullif (c.objects, '') FROM change c WHERE c.block = b.number), "  \
    "nullif (b.rows, ''))"

#define OP_COLUMNS                                                                                 \
    "o.id, o.client, o.key, o.hash, o.kind, o.on_behalf, o.site, o.job, o.note, o.effective_at, "  \
    "o.recorded_at, o.status, o.outcome"

#define ENTRY_COLUMNS                                                                              \
    "e.op_id, e.leg, e.layer, e.unit_id, e.account_id, e.allocation_id, e.amount, "                \
    "e.effective_at, e.recorded_at"

/* A hold x of a signed job that stands against another, n: see signed.c of the core. */
#define PAID_AS_ANOTHER                                                                            \
    "(x.part = n.part OR x.hash <> n.hash OR (NOT n.grouped AND x.grid_job <> n.grid_job) OR "     \
    " (x.meta <> '' AND n.meta <> '' AND x.meta <> n.meta))"

#define HOLD_COLUMNS                                                                                \
    "id, op_id, site, site_job, component, incarnation, grid_job, asked_id, account_id, identity, " \
    "procs, walltime_us, start_at, expires_at, rate_version, rate_ppm, amount, open, extra_parts, " \
    "qos_ppm, class_ppm, group_ppm, pe_milli, qos, machine, nodes, walltime_max_us, cost_max, uuid"

#define ADD_HOLD                                                                                   \
    "INSERT INTO hold (" HOLD_COLUMNS ") SELECT * FROM unnest ($1::bigint[], $2::bigint[], "       \
    "$3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[], "   \
    "$10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], "     \
    "$16::bigint[], $17::bigint[], $18::boolean[], $19::bigint[], $20::bigint[], $21::bigint[], "  \
    "$22::bigint[], $23::bigint[], $24::text[], $25::text[], $26::text[], $27::bigint[], "         \
    "$28::bigint[], $29::bytea[]) AS n"

const struct pgstmt bank_stmt[BANK_STMT_COUNT + READ_STMT_COUNT] = {
    /* clang-format off */
    [ST_BEGIN] = {"begin", "BEGIN ISOLATION LEVEL READ COMMITTED"},
    /* Nothing but a commit that has to reach the disk, and the standby that is waited for. */
    [ST_PULSE] = {"pulse", "SELECT pg_logical_emit_message (true, 'nui-bank', '')"},
    [ST_COMMIT] = {"commit", "COMMIT"}, [ST_ROLLBACK] = {"rollback", "ROLLBACK"},
    [ST_OPS] = {"ops",
                "SELECT o.id, o.client, o.key, o.hash, o.kind, o.status, o.outcome "
                "FROM unnest ($1::text[], $2::bytea[]) AS k (client, key) CROSS JOIN LATERAL "
                "(SELECT * FROM op x WHERE x.client = k.client AND x.key = k.key LIMIT 1) o"},
    [ST_HOLDS] =
        {"holds",
         "SELECT h.id, h.op_id, h.site, h.site_job, h.component, h.incarnation, h.grid_job, "
         "h.asked_id, h.account_id, h.identity, h.procs, h.walltime_us, h.start_at, "
         "h.expires_at, h.rate_version, h.rate_ppm, h.amount, h.open, h.extra_parts, h.qos_ppm, "
         "h.class_ppm, h.group_ppm, h.pe_milli, h.qos, h.machine, h.nodes, "
         "(SELECT string_agg (concat_ws (':', g.allocation_id, g.amount, g.settled, g.released), "
         " ',' ORDER BY g.leg) FROM hold_leg g WHERE g.hold_id = h.id), h.walltime_max_us, h.cost_max, h.uuid "
         "FROM " HOLDS " h"},
    [ST_USAGES] =
        {"usages",
         "SELECT u.id, u.site, u.site_job, u.component, u.incarnation, u.grid_job, u.hold_id, "
         "u.account_id, u.identity, u.procs, u.start_at, u.end_at, u.total, u.final, u.disputed FROM "
         "(SELECT $1::bigint[]) unused, " USAGES " u"},
    [ST_ACCOUNTS] = {"accounts", CLOSURE
                     "SELECT a.id, a.name, a.project_id, p.name, "
                     "(SELECT string_agg (concat_ws ('/', f.fallback_id, f.site, f.qos), ',' "
                     " ORDER BY f.position) FROM account_fallback f WHERE f.account_id = a.id), "
                     "r.depth, a.class = 'DEBT', a.closed_op IS NOT NULL, project_ancestors (a.project_id), project_makers (a.project_id), "
                     "(SELECT string_agg (x.kind || '=' || CASE WHEN x.exclude THEN '-' ELSE '' END || "
                     " x.name, ' ' ORDER BY x.position) FROM account_scope x WHERE x.account_id = a.id), "
                     "(SELECT string_agg (x.name, ' ') FROM account_name x WHERE x.account_id = a.id) "
                     "FROM needed r JOIN account a ON a.id = r.id "
                     "LEFT JOIN project p ON p.id = a.project_id ORDER BY a.id"},
    [ST_ALLOCS] = {"allocs", ALLOCS},
    [ST_RATES] =
        {"rates",
         "SELECT r.site, r.version, r.valid_from, r.multiplier_ppm, r.measure, r.successful_only, " FACTORS " FROM "
         "(SELECT DISTINCT unnest ($1::text[])) AS k (site) JOIN rate r ON r.site = k.site"},
    [ST_SITES] =
        {"sites",
         "SELECT k.site, a.id, l.id, s.acked, s.ahead, r.claims, r.refunds, r.refund_cap_us, r.refund_minimum, "
         "r.refund_window_us, r.node_procs, r.proc_memory_mb, r.overrun_us FROM "
         "(SELECT DISTINCT unnest ($1::text[])) AS k (site) "
         "LEFT JOIN LATERAL (SELECT * FROM site_right x WHERE x.site = k.site "
         " ORDER BY x.op_id DESC LIMIT 1) r ON true "
         "LEFT JOIN account a ON a.name = 'site:' || k.site "
         "LEFT JOIN allocation l ON l.account_id = a.id "
         "LEFT JOIN site_ack s ON s.site = k.site"},
    [ST_MEMBERS] =
        {"members",
         "SELECT p.id, p.identity, m.id, m.project_id, m.role, m.valid_from, m.valid_to, "
         "has_role (p.id, 'manager'), has_role (p.id, 'auditor') "
         "FROM (SELECT DISTINCT unnest ($1::text[])) AS k (identity) JOIN person p ON p.identity = k.identity "
         "LEFT JOIN membership m ON m.person_id = p.id AND m.valid_to = 9223372036854775807"},
    [ST_PROJECTS] = {"projects", "SELECT p.id, p.name, project_ancestors (p.id), project_makers (p.id), (SELECT count (*) FROM membership m "
                                 "WHERE m.project_id = p.id AND m.role = 'lead' AND m.valid_to = 9223372036854775807), project_height (p.id) FROM "
                                 "unnest ($1::text[]) AS k (name) JOIN project p ON p.name = k.name"},
    [ST_FUNDERS] = {"funders", "SELECT f.id, f.name, (SELECT string_agg (E'\\n' || g.reference || E'\\n', '') FROM award g "
                               "WHERE g.funder_id = f.id) FROM unnest ($1::text[]) AS k (name) JOIN funder f ON f.name = k.name"},
    [ST_GRANTS] = {"grants", "SELECT g.id, g.funder_id, g.account_id, f.name, g.revoked_op, "
                             "(SELECT min (l.id) FROM allocation l WHERE l.award_id = g.id AND l.op_id = g.op_id), "
                             "(SELECT string_agg (DISTINCT l.account_id::text, ',') FROM allocation l WHERE l.award_id = g.id) "
                             "FROM unnest ($1::bigint[]) AS k (id) "
                             "JOIN award g ON g.id = k.id JOIN funder f ON f.id = g.funder_id"},
    /* Who earned a charge says its entry; what closing its hold moved on, to bank:expired or out of what a
     * project owes, are others. */
    [ST_PAID] =
        {"paid",
         "SELECT c.op_id, c.id, u.site, CASE u.grid_job WHEN '' THEN u.site_job ELSE u.grid_job END, "
         "e.account_id, e.allocation_id, g.leg, g.allocation_id, g.amount, g.source = 'OVERRUN', "
         "(SELECT coalesce (sum (r.amount), 0)::bigint FROM refund_leg r WHERE r.charge_id = c.id AND "
         " r.charge_leg = g.leg), coalesce (refund_due_of (c.id), 0) "
         "FROM unnest ($1::bigint[]) AS k (op) CROSS JOIN LATERAL "
         "(SELECT * FROM charge x WHERE x.op_id = k.op LIMIT 1) c CROSS JOIN LATERAL "
         "(SELECT * FROM usage x WHERE x.id = c.usage_id LIMIT 1) u CROSS JOIN LATERAL "
         "(SELECT x.account_id, x.allocation_id FROM entry x JOIN account a ON a.id = x.account_id WHERE "
         " x.op_id = c.op_id AND x.layer = 'P' AND x.amount > 0 AND a.class = 'SITE_EARNED' LIMIT 1) e JOIN charge_leg g ON g.charge_id = c.id "
         "ORDER BY c.op_id, g.leg"},
    /* $1 sites, $2 rows, $3 operations: the sites' rows and these. */
    [ST_RECONS] =
        {"recons",
         "SELECT r.id, r.site, r.class, r.site_job, r.component, r.incarnation, r.hold, r.charge_op, "
         "r.amount, r.site_ps, r.bank_ps, r.since_at, coalesce (e.kind, '') FROM recon_row r "
         "LEFT JOIN recon_event e ON e.row_id = r.id AND e.kind IN ('closed', 'gone') "
         "WHERE (r.site = ANY ($1::text[]) OR r.id = ANY ($2::bigint[])) AND $3::bigint[] IS NOT NULL"},
    [ST_MOVES] =
        {"moves",
         "SELECT k.op FROM unnest ($3::bigint[]) AS k (op) WHERE $1::text[] IS NOT NULL AND "
         "$2::bigint[] IS NOT NULL AND EXISTS (SELECT FROM op o WHERE o.id = k.op AND o.status = 0 AND "
         "o.kind IN ('charge', 'release', 'refund', 'hold', 'extend', 'deposit', 'withdraw', 'transfer', "
         "'split', 'carry-forward', 'split-back', 'grant-amend', 'grant-revoke'))"},
    /* All that is frozen. */
    [ST_FREEZES] = {"freezes", "SELECT what, object_id, name, reason, who, since FROM freeze_now ORDER BY what, object_id"},
    [ST_NEW_OPS] =
        {"new_ops",
         "SELECT ('recorded already: a request of ' || n.client)::bigint FROM "
         "unnest ($1::text[], $2::bytea[]) AS n (client, key) CROSS JOIN LATERAL "
         "(SELECT FROM op x WHERE x.client = n.client AND x.key = n.key LIMIT 1) x"},
    [ST_NEW_JOBS] =
        {"new_jobs",
         "SELECT ('known already: ' || n.job)::bigint FROM "
         "unnest ($1::text[], $2::text[], $3::text[], $4::bigint[]) "
         "AS n (site, job, component, incarnation) CROSS JOIN LATERAL "
         "((SELECT FROM hold x WHERE x.site = n.site AND x.site_job = n.job AND "
         "  x.component = n.component AND x.incarnation = n.incarnation AND x.open LIMIT 1) UNION ALL "
         " (SELECT FROM usage x WHERE x.site = n.site AND x.site_job = n.job AND "
         "  x.component = n.component AND x.incarnation = n.incarnation LIMIT 1)) x"},
    /* Signed jobs that were paid for as another, or whose part was paid for: see signed.c of the core. */
    [ST_NEW_SIGNED] =
        {"new_signed",
         "SELECT ('paid for as another: ' || n.grid_job)::bigint FROM "
         "unnest ($1::text[], $2::bytea[], $3::bytea[], $4::text[], $5::text[], $6::boolean[], $7::text[]) "
         "AS n (identity, uuid, hash, grid_job, meta, grouped, part) CROSS JOIN LATERAL "
         "(SELECT FROM signed x WHERE x.uuid = n.uuid AND x.identity = n.identity AND "
         " " PAID_AS_ANOTHER " LIMIT 1) x"},
    [ST_AFTER] = {"after", "SELECT ('not there: block ' || n.number)::bigint FROM unnest ($1::bigint[]) AS n (number) "
                           "WHERE NOT EXISTS (SELECT FROM block b WHERE b.number = n.number)"},
    [ST_ADD_OP] =
        {"add_op",
         "INSERT INTO op (id, client, key, hash, kind, on_behalf, site, job, note, effective_at, "
         "recorded_at, status, outcome) SELECT * FROM unnest ($1::bigint[], $2::text[], "
         "$3::bytea[], $4::bytea[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], "
         "$10::bigint[], $11::bigint[], $12::bigint[], $13::bytea[]) AS n"},
    [ST_ADD_CHANGE] = {"add_change", "INSERT INTO change (block, objects) SELECT * FROM unnest ($1::bigint[], $2::text[])"},
    [ST_PUT_BALANCE] =
        {"put_balance",
         "UPDATE balance b SET granted = n.granted, settled = n.settled, posted = n.posted, "
         "held = n.held FROM unnest ($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], "
         "$5::bigint[]) AS n (id, granted, settled, posted, held) WHERE b.allocation_id = n.id"},
    /* Every hold of a signed job and every run of it without one, and how they ended. */
    [ST_SIGNED] =
        {"signed",
         "SELECT s.identity, s.uuid, s.hash, s.grid_job, s.meta, s.part, s.hold_id, coalesce (h.site, u.site), "
         "coalesce (h.site_job, u.site_job), coalesce (h.component, u.component), "
         "coalesce (h.incarnation, u.incarnation), coalesce (h.open, false), coalesce (h.expires_at, 0), "
         "CASE WHEN u.final THEN least (u.procs::numeric * (u.end_at - u.start_at), 9223372036854775807)::bigint "
         " ELSE 0 END, coalesce (u.well, false), u.id IS NOT NULL, coalesce (h.amount, 0), "
         "coalesce (u.total - u.disputed, 0) "
         "FROM (SELECT DISTINCT * FROM unnest ($1::text[], $2::bytea[])) AS k (identity, uuid) "
         "CROSS JOIN LATERAL (SELECT * FROM signed x WHERE x.uuid = k.uuid AND x.identity = k.identity "
         " OFFSET 0) s LEFT JOIN LATERAL (SELECT * FROM hold x WHERE x.id = s.hold_id LIMIT 1) h ON true "
         "LEFT JOIN LATERAL (SELECT x.*, EXISTS (SELECT FROM charge c WHERE "
         "  c.usage_id = x.id AND c.final AND c.successful) AS well FROM "
         "  (SELECT * FROM (SELECT * FROM usage y WHERE y.site = h.site AND "
         "   y.site_job = h.site_job AND y.component = h.component AND y.incarnation = h.incarnation LIMIT 1) y1 "
         "   UNION ALL SELECT * FROM (SELECT * FROM usage y WHERE y.id = -s.hold_id LIMIT 1) y2) x LIMIT 1) u ON true "
         "ORDER BY s.hold_id"},
    [ST_ADD_SIGNED] =
        {"add_signed",
         "INSERT INTO signed (identity, uuid, hash, grid_job, meta, part, hold_id, expires_at) SELECT * FROM "
         "unnest ($1::text[], $2::bytea[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::bigint[], "
         "$8::bigint[]) AS n"},
    [ST_ADD_NEW_SIGNED] =
        {"add_new_signed",
         "INSERT INTO signed (identity, uuid, hash, grid_job, meta, part, hold_id, expires_at) SELECT "
         "identity, uuid, hash, grid_job, meta, part, hold_id, expires_at FROM "
         "unnest ($1::text[], $2::bytea[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::bigint[], "
         "$8::bigint[], $9::boolean[]) AS n (identity, uuid, hash, grid_job, meta, part, hold_id, expires_at, grouped) "
         "WHERE (SELECT ('paid for as another: ' || x.grid_job)::bigint FROM signed x WHERE x.uuid = n.uuid AND "
         " x.identity = n.identity AND " PAID_AS_ANOTHER ") IS NULL"},
    [ST_ADD_HOLD] = {"add_hold", ADD_HOLD},
    /* An open hold of the job is found by its index. */
    [ST_ADD_NEW_HOLD] =
        {"add_new_hold",
         ADD_HOLD " (" HOLD_COLUMNS ") WHERE (SELECT ('known already: ' || x.site_job)::bigint FROM usage x WHERE "
         "x.site = n.site AND x.site_job = n.site_job AND x.component = n.component AND "
         "x.incarnation = n.incarnation) IS NULL"},
    [ST_PUT_HOLD] = {"put_hold",
                     "UPDATE hold h SET open = n.open FROM unnest ($1::bigint[], $2::boolean[]) "
                     "AS n (id, open) WHERE h.id = n.id AND h.open <> n.open"},
    [ST_LENGTHEN_HOLD] =
        {"lengthen_hold",
         "UPDATE hold h SET amount = n.amount, walltime_us = n.walltime_us, expires_at = n.expires_at "
         "FROM unnest ($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS n (id, amount, "
         "walltime_us, expires_at) WHERE h.id = n.id"},
    [ST_ADD_LEG] =
        {"add_leg",
         "INSERT INTO hold_leg (hold_id, leg, allocation_id, amount, settled, released) "
         "SELECT * FROM unnest ($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], "
         "$5::bigint[], $6::bigint[]) AS n"},
    [ST_PUT_LEG] =
        {"put_leg",
         "UPDATE hold_leg g SET settled = n.settled, released = n.released FROM unnest "
         "($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) "
         "AS n (hold_id, leg, settled, released) WHERE g.hold_id = n.hold_id AND g.leg = n.leg"},
    [ST_ADD_USAGE] =
        {"add_usage",
         "INSERT INTO usage (id, site, site_job, component, incarnation, grid_job, hold_id, "
         "account_id, identity, procs, start_at, end_at, total, final, qos, machine, disputed) "
         "SELECT id, site, site_job, component, incarnation, grid_job, nullif (hold_id, 0), "
         "account_id, identity, procs, start_at, end_at, total, final, qos, machine, disputed FROM unnest "
         "($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], "
         "$7::bigint[], $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], "
         "$13::bigint[], $14::boolean[], $15::text[], $16::text[], $17::bigint[]) AS n (id, site, site_job, "
         "component, incarnation, grid_job, hold_id, account_id, identity, procs, start_at, end_at, "
         "total, final, qos, machine, disputed)"},
    [ST_PUT_USAGE] =
        {"put_usage",
         "UPDATE usage u SET procs = n.procs, end_at = n.end_at, total = n.total, final = n.final, "
         "disputed = n.disputed FROM unnest ($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], "
         "$6::bigint[]) AS n (id, procs, end_at, total, final, disputed) WHERE u.id = n.id"},
    [ST_ADD_CHARGE] =
        {"add_charge",
         "INSERT INTO charge (id, op_id, usage_id, hold_id, sequence, procs, start_at, end_at, "
         "final, successful, rate_version, rate_ppm, amount, total, released, formula, refund_due, refund_most, "
         "cpu_us, nodes, memory_mb, submitted_at, local_user, queue) "
         "SELECT id, op_id, usage_id, nullif (hold_id, 0), sequence, procs, start_at, end_at, "
         "final, successful, rate_version, rate_ppm, amount, total, released, formula, refund_due, "
         "refund_most, cpu_us, nodes, memory_mb, submitted_at, local_user, queue FROM "
         "unnest ($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], "
         "$6::bigint[], $7::bigint[], $8::bigint[], $9::boolean[], $10::boolean[], "
         "$11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], "
         "$16::text[], $17::bigint[], $18::boolean[], $19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[], "
         "$23::text[], $24::text[]) AS n (id, op_id, usage_id, hold_id, sequence, procs, start_at, end_at, "
         "final, successful, rate_version, rate_ppm, amount, total, released, formula, refund_most, refund_due, "
         "cpu_us, nodes, memory_mb, submitted_at, local_user, queue)"},
    [ST_ADD_CHARGE_LEG] =
        {"add_charge_leg",
         "INSERT INTO charge_leg (charge_id, leg, allocation_id, amount, source) SELECT * FROM "
         "unnest ($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) AS n"},
    [ST_ADD_REFUND] =
        {"add_refund",
         "INSERT INTO refund_leg (op_id, leg, charge_id, charge_leg, allocation_id, amount) "
         "SELECT * FROM unnest ($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], "
         "$5::bigint[], $6::bigint[])"},
    [ST_QUOTES] =
        {"quotes",
         "SELECT q.id, q.op_id, q.identity, q.expires_at, q.reusable, "
         "(SELECT string_agg (c.site || '=' || c.rate_version, ' ' ORDER BY c.position) "
         " FROM quote_card c WHERE c.quote_id = q.id), u.job, u.name, "
         "(SELECT x.cancelled_at FROM quote_cancel x WHERE x.quote_id = q.id), a.project_id, "
         "project_ancestors (a.project_id) FROM unnest ($1::bigint[]) AS k (id) CROSS JOIN LATERAL "
         "(SELECT * FROM quote x WHERE x.id = k.id LIMIT 1) q LEFT JOIN LATERAL "
         "(SELECT x.job, (SELECT o.job FROM op o WHERE o.id = x.op_id) AS name FROM quote_use x "
         " WHERE x.quote_id = q.id ORDER BY x.op_id LIMIT 1) u ON true LEFT JOIN LATERAL "
         "(SELECT x.project_id FROM account x WHERE x.id = account_named (q.account)) a ON true"},
    [ST_ADD_QUOTE] =
        {"add_quote",
         "INSERT INTO quote (id, op_id, identity, expires_at, reusable, account) SELECT * FROM unnest ("
         "$1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::boolean[], $6::text[])"},
    [ST_ADD_QUOTE_CARD] =
        {"add_quote_card",
         "INSERT INTO quote_card (quote_id, position, site, rate_version, price) SELECT * FROM unnest ("
         "$1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[])"},
    [ST_ADD_QUOTE_USE] =
        {"add_quote_use",
         "INSERT INTO quote_use (op_id, quote_id, job) SELECT * FROM unnest ("
         "$1::bigint[], $2::bigint[], $3::text[])"},
    [ST_ADD_QUOTE_CANCEL] =
        {"add_quote_cancel",
         "INSERT INTO quote_cancel (quote_id, op_id, cancelled_at) SELECT * FROM unnest ("
         "$1::bigint[], $2::bigint[], $3::bigint[])"},
    [ST_ADD_RECON] =
        {"add_recon",
         "INSERT INTO recon_row (id, op_id, site, class, site_job, component, incarnation, hold, "
         "charge_op, identity, account, amount, site_ps, bank_ps, since_at, note) SELECT * FROM unnest ("
         "$1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], "
         "$8::text[], $9::bigint[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], "
         "$14::bigint[], $15::bigint[], $16::text[])"},
    [ST_ADD_RECON_EVENT] =
        {"add_recon_event",
         "INSERT INTO recon_event (op_id, row_id, kind, owner, cured_op, note) SELECT * FROM unnest ("
         "$1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[])"},
    [ST_ADD_ENTRY] =
        {"add_entry",
         "INSERT INTO entry (op_id, leg, layer, unit_id, account_id, allocation_id, amount, "
         "effective_at, recorded_at) SELECT op_id, leg, layer::\"char\", 1, account_id, "
         "allocation_id, amount, effective_at, recorded_at FROM unnest ($1::bigint[], "
         "$2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], "
         "$8::bigint[]) AS n (op_id, leg, layer, account_id, allocation_id, amount, "
         "effective_at, recorded_at)"},
    [ST_PUT_ACK] = {
        "put_ack",
        "INSERT INTO site_ack (site, acked, ahead) SELECT * FROM unnest ($1::text[], "
        "$2::bigint[], $3::text[]) AS n "
        "ON CONFLICT (site) DO UPDATE SET acked = excluded.acked, ahead = excluded.ahead"},
    [ST_DROP_UNSEALED] = {"drop_unsealed", "DELETE FROM unsealed"},
    [ST_ADD_SIGNER] = {"add_signer",
                       "INSERT INTO signer (id, chain) SELECT * FROM unnest ($1::bytea[], "
                       "$2::bytea[]) ON CONFLICT (id) DO NOTHING"},
    [ST_ADD_BLOCK] =
        {"add_block",
         "INSERT INTO block (number, first_op, ops, recorded_at, prev, root, signer, signature, rows) "
         "SELECT * FROM unnest ($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], "
         "$5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[], $9::text[]) AS n"},

    [BANK_STMT_COUNT + RD_BALANCE] =
        {"rd_balance",
         "SELECT " BALANCE FROZEN " FROM account a JOIN project p ON p.id = a.project_id LEFT JOIN "
         "(SELECT l.*, b.granted, b.settled, b.posted, b.held FROM allocation l JOIN balance b ON "
         " b.allocation_id = l.id) l ON l.account_id = a.id WHERE " SEES " ORDER BY a.name, l.valid_to, l.id"},
    /* What most balances are: by the name that the account has now, where nothing was ever frozen; else it says so
     * (balanceread.c). Former names and what is frozen cost as much again. */
    [BANK_STMT_COUNT + RD_BALANCES] = {"rd_balances", BALANCES ("EXISTS (SELECT FROM freezing)", ACCOUNT_NOW)},
    [BANK_STMT_COUNT + RD_BALANCES_ALL] = {"rd_balances_all", BALANCES (FROZEN, ACCOUNT_NOW " UNION ALL " ACCOUNT_ONCE)},
    /* Otherwise PostgreSQL may make a plan for each statement of an account, over all parts of the journal,
     * which costs it ten times as much as to follow one. Ends with the batch. */
    [BANK_STMT_COUNT + RD_KEEP_PLAN] = {"rd_keep_plan",
        "SELECT set_config ('plan_cache_mode', 'force_generic_plan', true), set_config ('enable_seqscan', 'off', true)"},
    /* $1 who, $2 account, $3 moment: sums of what was recorded before it, at [1] and at [2]; and
     * grants and charges between the two. */
    /* Opening and closing, then what came and what was used: from the last checkpoint before the period. */
    [BANK_STMT_COUNT + RD_STATEMENT_SUMS] =
        {"rd_statement_sums",
         "WITH acc AS MATERIALIZED (SELECT a.id FROM account a JOIN project p ON p.id = a.project_id "
         "  WHERE a.id = account_named (($2::text[])[1]) AND " SEES "), "
         "kept AS MATERIALIZED (SELECT c.at, c.posted, c.held FROM acc CROSS JOIN LATERAL (SELECT * FROM "
         "  checkpoint k WHERE k.account_id = acc.id AND k.at <= ($3::bigint[])[1] ORDER BY k.at DESC LIMIT 1) c), "
         "before AS (SELECT coalesce (sum (e.amount) FILTER (WHERE e.layer = 'P'), 0) + "
         "  coalesce ((SELECT posted FROM kept), 0) AS p, "
         "  coalesce (sum (e.amount) FILTER (WHERE e.layer = 'H'), 0) + "
         "  coalesce ((SELECT held FROM kept), 0) AS h FROM acc JOIN entry e ON e.account_id = acc.id "
         "  AND e.recorded_at >= coalesce ((SELECT at FROM kept), 0) AND e.recorded_at < ($3::bigint[])[1]), "
         "during AS (SELECT coalesce (sum (e.amount) FILTER (WHERE e.layer = 'P'), 0) AS p, "
         "  coalesce (sum (e.amount) FILTER (WHERE e.layer = 'H'), 0) AS h, "
         "  coalesce (sum (e.amount) FILTER (WHERE e.layer = 'P' AND o.kind IN ('deposit', 'grant', 'withdraw', "
         "  'transfer', 'split', 'account-close', 'split-back', 'grant-amend', 'grant-revoke')), 0) AS came, "
         "  coalesce (-sum (e.amount) FILTER (WHERE e.layer = 'P' AND o.kind IN ('charge', 'refund')), 0) AS used "
         "  FROM acc JOIN entry e ON e.account_id = acc.id AND e.recorded_at >= ($3::bigint[])[1] "
         "  AND e.recorded_at < ($3::bigint[])[2] JOIN op o ON o.id = e.op_id), "
         "lent AS (SELECT coalesce (sum (l.credit_limit), 0) AS l FROM allocation l WHERE "
         "  l.account_id = account_named (($2::text[])[1])) "
         "SELECT micro (b.p), micro (b.h), micro (b.p + d.p), micro (b.h + d.h), micro (d.came), micro (d.used), "
         "micro (b.p + d.p - b.h - d.h + t.l), wide_credits (b.p), wide_credits (b.h), wide_credits (b.p + d.p), "
         "wide_credits (b.h + d.h), wide_credits (d.came), wide_credits (d.used), "
         "wide_credits (b.p + d.p - b.h - d.h + t.l) FROM before b, during d, lent t"},
    [BANK_STMT_COUNT + RD_STATEMENT_LINES] =
        {"rd_statement_lines",
         "WITH acc AS MATERIALIZED (SELECT a.id, a.project_id FROM account a JOIN project p ON p.id = a.project_id "
         "  WHERE a.id = account_named (($2::text[])[1]) AND " SEES "), "
         "line AS (SELECT e.op_id, sum (e.amount) FILTER (WHERE e.layer = 'P') AS p, "
         "  sum (e.amount) FILTER (WHERE e.layer = 'H') AS h FROM acc JOIN entry e ON e.account_id = acc.id AND "
         "  e.recorded_at >= ($3::bigint[])[1] AND e.recorded_at < ($3::bigint[])[2] GROUP BY e.op_id "
         " UNION ALL SELECT b.op_id, 0, 0 FROM acc JOIN about b ON b.what = 'account' AND b.object_id = acc.id "
         " UNION ALL SELECT b.op_id, 0, 0 FROM acc JOIN about b ON b.what = 'project' AND b.object_id = acc.project_id "
         " UNION ALL SELECT b.op_id, 0, 0 FROM acc JOIN freezing b ON b.what = 'account' AND b.object_id = acc.id "
         " UNION ALL SELECT b.op_id, 0, 0 FROM acc JOIN freezing b ON b.what = 'project' AND b.object_id = acc.project_id) "
         "SELECT o.id, o.recorded_at, o.kind, o.job, o.site, o.note, CASE WHEN o.client LIKE 'nui://%/operator/%' "
         "THEN o.client ELSE o.on_behalf END, micro (coalesce (sum (x.p), 0)), micro (coalesce (sum (x.h), 0)), "
         "wide_credits (coalesce (sum (x.p), 0)), wide_credits (coalesce (sum (x.h), 0)) FROM line x JOIN op o ON o.id = x.op_id WHERE o.recorded_at >= ($3::bigint[])[1] AND "
         "o.recorded_at < ($3::bigint[])[2] GROUP BY o.id ORDER BY o.id LIMIT ($3::bigint[])[3]"},
    [BANK_STMT_COUNT +
        RD_ACCOUNT_SEEN] = {"rd_account_seen",
                            "SELECT a.id, a.name FROM account a JOIN project p ON p.id = a.project_id "
                            "WHERE a.id = account_named (($2::text[])[1]) AND " SEES},
    [BANK_STMT_COUNT + RD_PROJECTS] =
        {"rd_projects",
         "SELECT p.name, p.name, concat_ws ('; ', nullif (p.description, ''), "
         "(SELECT 'part of ' || u.name FROM project u WHERE u.id = p.parent_id), "
         "(SELECT 'members: ' || string_agg (pe.identity || CASE m.role WHEN 'lead' THEN ' (lead)' "
         "ELSE '' END, "
         " ', ' ORDER BY pe.identity) FROM membership m JOIN person pe ON pe.id = m.person_id "
         " WHERE m.project_id = p.id AND m.valid_to = 9223372036854775807), frozen_text ('project', p.id)), "
         "p.id, coalesce ((SELECT u.name FROM project u WHERE u.id = p.parent_id), ''), p.description, false "
         "FROM project p WHERE " SEES " ORDER BY p.name"},
    [BANK_STMT_COUNT + RD_USERS] =
        {"rd_users",
         "SELECT pe.identity, coalesce (string_agg (p.name, ',' ORDER BY p.name), ''), "
         "concat_ws ('; ', string_agg (p.name || ': ' || m.role, ', ' ORDER BY p.name), frozen_text ('user', pe.id)) "
         "FROM person pe LEFT JOIN (membership m JOIN project p ON p.id = m.project_id AND "
         " m.valid_to = 9223372036854775807) ON m.person_id = pe.id "
         "WHERE $1::text[] = '{\"\"}' OR (p.id IS NOT NULL AND " SEES ") "
         "GROUP BY pe.id ORDER BY pe.identity"},
    [BANK_STMT_COUNT +
        RD_ACCOUNTS] = {"rd_accounts",
                        "SELECT a.name, p.name, concat_ws ('; ', (SELECT 'falls back to ' || "
                        "string_agg (concat (nullif (f.site, '') || ':', x.name, '@' || nullif "
                        "(f.qos, '')), ', ' ORDER BY f.position) FROM account_fallback f JOIN "
                        "account x ON x.id = f.fallback_id WHERE f.account_id = a.id), "
                        "(SELECT 'for ' || string_agg (CASE WHEN x.exclude THEN '-' ELSE '' END || "
                        "x.name, ', ' ORDER BY x.position) FROM account_scope x WHERE "
                        "x.account_id = a.id), CASE WHEN a.closed_op IS NOT NULL THEN 'closed' END, "
                        "(SELECT 'was ' || string_agg (x.name, ', ' ORDER BY x.op_id) FROM account_name x WHERE "
                        "x.account_id = a.id), frozen_text ('account', a.id), "
                        "CASE a.class WHEN 'DEBT' THEN 'what the project owes' END), "
                        "CASE a.class WHEN 'PROJECT' THEN a.id ELSE 0 END, '', '', a.closed_op IS NOT NULL "
                        "FROM account a JOIN project p ON p.id = a.project_id WHERE " SEES
                        " ORDER BY a.name"},
    [BANK_STMT_COUNT + RD_SITES] =
        {"rd_sites",
         "SELECT s.site, '', CASE WHEN r.claims THEN 'may name users of jobs that nobody signed' "
         "ELSE 'needs signed jobs' END || CASE WHEN r.refunds THEN '; what it failed is given back' || "
         "CASE WHEN r.refund_cap_us > 0 THEN ', at most what ' || r.refund_cap_us / 1000000 || ' s cost' ELSE '' END || "
         "CASE WHEN r.refund_minimum > 0 THEN ', from ' || trim_scale (r.refund_minimum / 1000000.0) || ' credits on' "
         "ELSE '' END || CASE WHEN r.refund_window_us > 0 THEN ', charged within ' || r.refund_window_us / 1000000 || "
         "' s' ELSE '' END ELSE '' END || CASE WHEN r.node_procs > 0 THEN '; gives whole nodes of ' || r.node_procs || "
         "' processors' ELSE '' END || CASE WHEN r.proc_memory_mb > 0 THEN '; ' || r.proc_memory_mb || "
         "' MB go with a processor' ELSE '' END || CASE WHEN r.overrun_us > 0 THEN '; jobs may run on for ' || r.overrun_us / 1000000 || "
         "' s' ELSE '' END FROM (SELECT site FROM rate UNION SELECT site FROM "
         "site_right UNION SELECT site FROM site_ack) s LEFT JOIN LATERAL (SELECT * FROM site_right x "
         "WHERE x.site = s.site ORDER BY x.op_id DESC LIMIT 1) r ON true "
         "WHERE $1::text[] IS NOT NULL ORDER BY s.site"},
    [BANK_STMT_COUNT + RD_RATES] =
        {"rd_rates",
         "SELECT r.site, r.multiplier_ppm, r.valid_from, r.version, r.measure, r.successful_only, " FACTORS
         " FROM rate r WHERE cardinality ($1::text[]) = 0 OR r.site = ANY ($1::text[]) "
         "ORDER BY r.site, r.version"},
    /* Allocations that have ended with something left that nothing holds. */
    [BANK_STMT_COUNT + RD_ENDED] = {"rd_ended",
        "SELECT l.id FROM allocation l JOIN balance b ON b.allocation_id = l.id "
        "WHERE l.valid_to < 9223372036854775807 AND l.valid_to <= ($1::bigint[])[1] AND (b.posted > b.held OR (b.posted < 0 AND b.held = 0)) ORDER BY l.valid_to, l.id LIMIT 256"},
    /* $1 a moment: allocations that have begun by then, were made before they did, and of which the bank has not
     * said so; its key for one is the allocation's number, the highest byte first. */
    [BANK_STMT_COUNT + RD_BEGUN] = {"rd_begun",
        "SELECT l.id FROM allocation l JOIN op o ON o.id = l.op_id WHERE l.valid_from > 0 AND "
        "l.valid_from <= ($1::bigint[])[1] AND o.recorded_at < l.valid_from AND NOT EXISTS (SELECT FROM op b WHERE "
        "b.client = 'bank:begin' AND b.key = int8send (l.id) || int8send (0)) ORDER BY l.valid_from, l.id LIMIT 256"},
    /* $1 a moment, and one a month later: of allocations that are in force, those of which four fifths (1) or all (2) is used, and
     * those that end within the month and were longer (3), with the projects' leads; those alone of which the bank has not said
     * so. Its key is the allocation's number and, above 56 bits, which of these, with the second of the end that was told. */
    [BANK_STMT_COUNT + RD_NEAR] = {"rd_near",
        "SELECT l.id, w.what::bigint, w.end_s, a.name, p.name, b.granted, b.posted, l.valid_to, coalesce ((SELECT "
        "string_agg (DISTINCT r.identity, ',' ORDER BY r.identity) FROM membership m JOIN person r ON r.id = m.person_id "
        "WHERE m.project_id = p.id AND m.role = 'lead' AND m.valid_from <= ($1::bigint[])[1] AND m.valid_to > ($1::bigint[])[1]), '') "
        "FROM allocation l JOIN balance b ON b.allocation_id = l.id JOIN account a ON a.id = l.account_id "
        "JOIN project p ON p.id = a.project_id CROSS JOIN LATERAL (VALUES (1, 0::bigint), (2, 0), (3, l.valid_to / 1000000)) "
        "AS w (what, end_s) WHERE a.class = 'PROJECT' AND b.granted > 0 AND l.valid_from <= ($1::bigint[])[1] AND "
        "l.valid_to > ($1::bigint[])[1] AND CASE w.what WHEN 1 THEN b.posted > 0 AND b.posted <= b.granted / 5 "
        "WHEN 2 THEN b.posted <= 0 ELSE b.posted > 0 AND l.valid_to <= ($1::bigint[])[2] AND "
        "l.valid_to - l.valid_from > ($1::bigint[])[2] - ($1::bigint[])[1] END AND NOT EXISTS (SELECT FROM op o WHERE "
        "o.client = 'bank:told' AND o.key = int8send (l.id) || int8send ((w.what::bigint << 56) | w.end_s)) "
        "ORDER BY l.id, w.what LIMIT 64"},
    /* $1 who, $2 account or none, $3 from, to, lines, then whether to group by each of enum reader_by:
     * what was charged and given back in the period, by who paid. */
    [BANK_STMT_COUNT + RD_USAGE] = {"rd_usage",
        "WITH moved AS (SELECT c.usage_id, g.allocation_id, g.amount AS charged, 0 AS refunded, o.recorded_at, o.client, "
        " CASE c.amount WHEN 0 THEN 0 ELSE c.procs::numeric * (c.end_at - greatest (c.start_at, (SELECT max (p.end_at) "
        "  FROM charge p WHERE p.usage_id = c.usage_id AND p.sequence < c.sequence))) * g.amount / c.amount END AS used "
        " FROM op o JOIN charge c ON c.op_id = o.id JOIN charge_leg g ON g.charge_id = c.id "
        " WHERE o.recorded_at >= ($3::bigint[])[1] AND o.recorded_at < ($3::bigint[])[2] AND o.kind = 'charge' "
        " UNION ALL SELECT c.usage_id, r.allocation_id, 0, r.amount, o.recorded_at, x.client, 0 "
        " FROM op o JOIN refund_leg r ON r.op_id = o.id JOIN charge c ON c.id = r.charge_id JOIN op x ON x.id = c.op_id "
        " WHERE o.recorded_at >= ($3::bigint[])[1] AND o.recorded_at < ($3::bigint[])[2] AND o.kind = 'refund'), "
        "timed AS (SELECT *, to_timestamp (recorded_at / 1000000) AT TIME ZONE 'UTC' AS at FROM moved) SELECT "
        "CASE WHEN ($3::bigint[])[4] = 1 THEN CASE WHEN m.client LIKE 'nui://%/operator/%' THEN m.client ELSE u.identity END "
        "ELSE '' END, "
        "CASE WHEN ($3::bigint[])[5] = 1 THEN coalesce (p.name, '') ELSE '' END, "
        "CASE WHEN ($3::bigint[])[6] = 1 THEN u.site ELSE '' END, "
        "CASE WHEN ($3::bigint[])[7] = 1 THEN a.name ELSE '' END, "
        "CASE WHEN ($3::bigint[])[8] = 1 THEN coalesce (f.name, '') ELSE '' END, "
        "CASE WHEN ($3::bigint[])[9] = 1 THEN coalesce ('grant.' || g.id, '') ELSE '' END, "
        "CASE WHEN ($3::bigint[])[10] = 1 THEN u.qos ELSE '' END, "
        "CASE WHEN ($3::bigint[])[11] = 1 THEN u.machine ELSE '' END, "
        "CASE WHEN ($3::bigint[])[12] = 1 THEN " USAGE_JOB " ELSE '' END, "
        "CASE 1 WHEN ($3::bigint[])[13] THEN to_char (m.at, 'YYYY-MM-DD') WHEN ($3::bigint[])[14] THEN "
        "to_char (date_trunc ('week', m.at), 'YYYY-MM-DD') WHEN ($3::bigint[])[15] THEN "
        "to_char (date_trunc ('month', m.at), 'YYYY-MM-DD') ELSE '' END, "
        "count (DISTINCT (u.identity, " USAGE_JOB ")), micro (sum (m.charged)), micro (sum (m.refunded)), wide_credits (sum (m.charged)), "
        "wide_credits (sum (m.refunded)), wide_credits (sum (m.charged) - sum (m.refunded)), "
        "count (DISTINCT u.id), floor (sum (m.used) / 1000000)::bigint "
        "FROM timed m JOIN usage u ON u.id = m.usage_id JOIN allocation l ON l.id = m.allocation_id "
        "JOIN account a ON a.id = l.account_id LEFT JOIN project p ON p.id = a.project_id "
        "LEFT JOIN award g ON g.id = l.award_id LEFT JOIN funder f ON f.id = g.funder_id "
        "WHERE " SEES " AND (cardinality ($2::text[]) = 0 OR a.id = account_named (($2::text[])[1])) "
        "GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 LIMIT ($3::bigint[])[3]"},
    /* $1 who, $2 account or none, $3 expired before, lines, $4 site or none: open holds. */
    [BANK_STMT_COUNT + RD_HOLDS] = {"rd_holds",
        "SELECT h.id, a.name, h.identity, h.site, h.grid_job, h.site_job, h.component, h.incarnation, "
        "h.amount, (SELECT coalesce (sum (g.amount - g.settled - g.released), 0)::bigint FROM hold_leg g "
        " WHERE g.hold_id = h.id), h.start_at, h.expires_at "
        "FROM hold h JOIN account a ON a.id = h.account_id JOIN project p ON p.id = a.project_id "
        "WHERE h.open AND (h.site = ($1::text[])[2] OR " SEES ") AND (cardinality ($2::text[]) = 0 OR a.id = account_named (($2::text[])[1])) "
        "AND (cardinality ($4::text[]) = 0 OR h.site = ANY ($4::text[])) "
        "AND h.expires_at <= ($3::bigint[])[1] ORDER BY h.expires_at, h.id LIMIT ($3::bigint[])[2]"},
    /* $1 first number (0: the newest) and lines. */
    [BANK_STMT_COUNT + RD_BLOCKS] = {"rd_blocks",
        "SELECT " BLOCK_COLUMNS " FROM block b JOIN signer s ON s.id = b.signer "
        "WHERE b.number >= CASE ($1::bigint[])[1] WHEN 0 THEN (SELECT max (number) FROM block) "
        "ELSE ($1::bigint[])[1] END ORDER BY b.number LIMIT ($1::bigint[])[2]"},
    /* $1 the operation. */
    [BANK_STMT_COUNT + RD_BLOCK_OF] = {"rd_block_of",
        "SELECT " BLOCK_COLUMNS " FROM " BLOCK_OF " b JOIN signer s ON s.id = b.signer"},
    [BANK_STMT_COUNT + RD_BLOCK_OPS] = {"rd_block_ops",
        "SELECT " OP_COLUMNS " FROM " BLOCK_OF " b JOIN op o ON o.id >= b.first_op AND "
        "o.id < b.first_op + b.ops ORDER BY o.id"},
    [BANK_STMT_COUNT + RD_BLOCK_ENTRIES] = {"rd_block_entries",
        "SELECT " ENTRY_COLUMNS " FROM " BLOCK_OF " b JOIN entry e ON e.op_id >= b.first_op AND "
        "e.op_id < b.first_op + b.ops ORDER BY e.op_id, e.leg"},
    [BANK_STMT_COUNT + RD_BLOCK_CONTENT] = {"rd_block_content",
        "SELECT b.number, " CONTENT " FROM " BLOCK_OF " b"},
    /* $1 first number and blocks. */
    [BANK_STMT_COUNT + RD_CONTENTS] = {"rd_contents",
        "SELECT b.number, " CONTENT " FROM block b WHERE b.number >= ($1::bigint[])[1] "
        "ORDER BY b.number LIMIT ($1::bigint[])[2]"},
    /* $1 who, $2 a table and a key or a name, or nothing: the newest block, all lines of the state, and which of them
     * are of that, where who may see it. */
    [BANK_STMT_COUNT + RD_STATE] = {"rd_state",
        "WITH asked AS MATERIALIZED (SELECT coalesce (alias.tbl, ($2::text[])[1]) AS tbl, ($2::text[])[2] AS key "
        "  FROM (SELECT) x LEFT JOIN (VALUES ('grant', 'award'), ('user', 'person'), ('role', 'bank_role'), "
        "  ('site', 'site_right'), ('limit', 'allocation'), ('fallback', 'account_fallback')) alias (name, tbl) "
        "  ON alias.name = ($2::text[])[1]), "
        "all_of AS MATERIALIZED (SELECT $1::text[] = '{\"\"}' OR EXISTS (SELECT FROM person pe WHERE "
        "  pe.identity = ($1::text[])[1] AND has_role (pe.id, 'auditor')) AS seen) "
        "SELECT (SELECT coalesce (max (number), 0) FROM block), s.line, CASE WHEN s.tbl = (SELECT tbl FROM asked) AND EXISTS ("
        "  SELECT FROM asked a WHERE s.key = a.key OR starts_with (s.key, a.key || '/') OR s.name = a.key OR "
        "  (s.tbl IN ('person', 'membership', 'bank_role') AND s.name LIKE '%/user/' || a.key)) "
        "THEN (SELECT seen FROM all_of) OR s.tbl IN ('rate', 'rate_factor', 'site_right') OR "
        "  EXISTS (SELECT FROM person pe WHERE pe.identity = ($1::text[])[1] AND pe.id = coalesce ((s.line::jsonb ->> "
        "  'person_id')::bigint, CASE s.tbl WHEN 'person' THEN (s.line::jsonb ->> 'id')::bigint END)) OR "
        "  EXISTS (SELECT FROM account a JOIN project p ON p.id = a.project_id WHERE a.id = coalesce ((s.line::jsonb ->> "
        "  'account_id')::bigint, CASE s.tbl WHEN 'account' THEN (s.line::jsonb ->> 'id')::bigint END) AND " SEES ") "
        "ELSE false END FROM state_lines () s"},
    /* $1 first operation and the one after the last. */
    [BANK_STMT_COUNT + RD_OPS] = {"rd_ops",
        "SELECT " OP_COLUMNS " FROM op o WHERE o.id >= ($1::bigint[])[1] AND "
        "o.id < ($1::bigint[])[2] ORDER BY o.id"},
    [BANK_STMT_COUNT + RD_OP_ENTRIES] = {"rd_op_entries",
        "SELECT " ENTRY_COLUMNS " FROM entry e WHERE e.op_id >= ($1::bigint[])[1] AND "
        "e.op_id < ($1::bigint[])[2] ORDER BY e.op_id, e.leg"},
    /* $1 who, $2 the operation: whether it moved something on an account of theirs. */
    [BANK_STMT_COUNT + RD_OP_SEEN] = {"rd_op_seen",
        "SELECT o.id FROM op o WHERE o.id = ($2::bigint[])[1] AND ($1::text[] = '{\"\"}' OR EXISTS "
        "(SELECT 1 FROM entry e JOIN account a ON a.id = e.account_id JOIN project p ON "
        "p.id = a.project_id WHERE e.op_id = o.id AND " SEES ") OR EXISTS (SELECT 1 FROM about b JOIN account a ON "
        "a.id = b.object_id JOIN project p ON p.id = a.project_id WHERE b.op_id = o.id AND b.what = 'account' AND " SEES "))"},
    /* One row per rule: its name, how much was checked, how much breaks it, an example. */
    [BANK_STMT_COUNT + RD_LEDGER_CHECKS] = {"rd_ledger_checks",
        "WITH sums AS (SELECT e.op_id, e.unit_id, e.layer, sum (e.amount) AS off FROM entry e "
        "  GROUP BY 1, 2, 3), "
        "folded AS (SELECT b.allocation_id, b.posted, b.held, "
        "  coalesce (sum (e.amount) FILTER (WHERE e.layer = 'P'), 0) AS p, "
        "  coalesce (sum (e.amount) FILTER (WHERE e.layer = 'H'), 0) AS h "
        "  FROM balance b LEFT JOIN entry e ON e.allocation_id = b.allocation_id GROUP BY 1, 2, 3), "
        "opened AS (SELECT b.allocation_id, b.held, coalesce (sum (g.amount - g.settled - g.released) "
        "  FILTER (WHERE h.open), 0) AS legs FROM balance b LEFT JOIN hold_leg g ON "
        "  g.allocation_id = b.allocation_id LEFT JOIN hold h ON h.id = g.hold_id GROUP BY 1, 2), "
        "charged AS (SELECT c.id, c.amount, coalesce (sum (g.amount), 0) AS legs FROM charge c "
        "  LEFT JOIN charge_leg g ON g.charge_id = c.id GROUP BY 1, 2), "
        "given AS (SELECT g.charge_id, g.leg, g.amount, sum (r.amount) AS back FROM refund_leg r "
        "  JOIN charge_leg g ON g.charge_id = r.charge_id AND g.leg = r.charge_leg GROUP BY 1, 2, 3), "
        "used AS (SELECT u.id, u.total, coalesce (sum (c.amount), 0) AS charges FROM usage u "
        "  LEFT JOIN charge c ON c.usage_id = u.id GROUP BY 1, 2), "
        "linked AS (SELECT b.number, b.first_op, lag (b.number) OVER w AS before, "
        "  lag (b.first_op + b.ops) OVER w AS due FROM block b WINDOW w AS (ORDER BY b.number)), "
        "stretch AS (SELECT c.account_id, c.at, coalesce (lag (c.at) OVER v, 0) AS since, "
        "  c.posted - coalesce (lag (c.posted) OVER v, 0) AS posted, "
        "  c.held - coalesce (lag (c.held) OVER v, 0) AS held, "
        "  c.entries - coalesce (lag (c.entries) OVER v, 0) AS entries "
        "  FROM checkpoint c WINDOW v AS (PARTITION BY c.account_id ORDER BY c.at)), "
        "kept AS (SELECT s.account_id, s.at, s.entries = count (e.op_id) AND s.posted = "
        "  coalesce (sum (e.amount) FILTER (WHERE e.layer = 'P'), 0) AND s.held = "
        "  coalesce (sum (e.amount) FILTER (WHERE e.layer = 'H'), 0) AS fits "
        "  FROM stretch s LEFT JOIN entry e ON e.account_id = s.account_id AND e.recorded_at >= s.since "
        "  AND e.recorded_at < s.at GROUP BY s.account_id, s.at, s.posted, s.held, s.entries) "
        "SELECT 'entries of an operation sum to zero in each layer', count (*), "
        "  count (*) FILTER (WHERE off <> 0), 'op ' || min (op_id) FILTER (WHERE off <> 0) FROM sums "
        "UNION ALL SELECT 'balances are the sums of their entries', count (*), "
        "  count (*) FILTER (WHERE posted <> p OR held <> h), "
        "  'alloc.' || min (allocation_id) FILTER (WHERE posted <> p OR held <> h) FROM folded "
        "UNION ALL SELECT 'what is held is what open holds have left', count (*), "
        "  count (*) FILTER (WHERE held <> legs), "
        "  'alloc.' || min (allocation_id) FILTER (WHERE held <> legs) FROM opened "
        "UNION ALL SELECT 'the legs of a charge sum to it', count (*), "
        "  count (*) FILTER (WHERE amount <> legs), "
        "  'charge ' || min (id) FILTER (WHERE amount <> legs) FROM charged "
        "UNION ALL SELECT 'a job has used what was charged for it', count (*), "
        "  count (*) FILTER (WHERE total <> charges), "
        "  'usage ' || min (id) FILTER (WHERE total <> charges) FROM used "
        "UNION ALL SELECT 'refunds of a leg do not exceed it', count (*), "
        "  count (*) FILTER (WHERE back > amount), "
        "  'charge ' || min (charge_id) FILTER (WHERE back > amount) FROM given "
        "UNION ALL SELECT 'operations are numbered without gaps', count (*), "
        "  coalesce (max (id), 0) - count (*), NULL FROM op "
        "UNION ALL SELECT 'entries belong to operations', count (*), "
        "  count (*) FILTER (WHERE o.id IS NULL), "
        "  'op ' || min (s.op_id) FILTER (WHERE o.id IS NULL) FROM sums s LEFT JOIN op o ON o.id = s.op_id "
        "UNION ALL SELECT 'checkpoints are the sums of the entries before them', count (*), "
        "  count (*) FILTER (WHERE NOT fits), 'acct ' || min (account_id) FILTER (WHERE NOT fits) FROM kept "
        "UNION ALL SELECT 'blocks follow one another without gaps', count (*), "
        "  count (*) FILTER (WHERE number <> before + 1 OR first_op <> due), "
        "  'block ' || min (number) FILTER (WHERE number <> before + 1 OR first_op <> due) FROM linked "
        "UNION ALL SELECT 'every operation since the first block is in one', count (*), count (*) FILTER (WHERE o.id > l.done), "
        "  'op ' || min (o.id) FILTER (WHERE o.id > l.done) FROM op o, (SELECT max (first_op + ops) - 1 AS done FROM block) l "
        "UNION ALL SELECT 'changes belong to blocks', count (*), count (*) FILTER (WHERE b.number IS NULL), "
        "  'block ' || min (c.block) FILTER (WHERE b.number IS NULL) FROM change c LEFT JOIN block b ON b.number = c.block "
        "UNION ALL SELECT 'who signed blocks is named by them', count (*), count (*) FILTER (WHERE NOT fits), "
        "  'signer ' || min (encode (id, 'hex')) FILTER (WHERE NOT fits) FROM (SELECT s.id, s.id = sha256 (s.chain) "
        "  AND EXISTS (SELECT FROM block b WHERE b.signer = s.id) AS fits FROM signer s) x "
        "UNION ALL SELECT 'looks for checkpoints go up to an operation before them', count (*), "
        "  count (*) FILTER (WHERE o.id IS NULL), 'run ' || min (r.upto_op) FILTER (WHERE o.id IS NULL) FROM checkpoint_run r "
        "  LEFT JOIN op o ON o.id = r.upto_op AND o.recorded_at < r.at "
        "UNION ALL SELECT 'checkpoints were made by such a look', count (*), count (*) FILTER (WHERE NOT fits), "
        "  'acct ' || min (account_id) FILTER (WHERE NOT fits) FROM (SELECT c.account_id, EXISTS (SELECT FROM checkpoint_run r "
        "  WHERE r.at = c.at) AS fits FROM checkpoint c) x "
        "UNION ALL SELECT 'migrations were applied one after the other', count (*), "
        "  (count (*) <> " BANK_SCHEMA_NEWEST " OR min (version) <> 1 OR max (version) <> " BANK_SCHEMA_NEWEST ")::int, "
        "  NULL FROM schema_version "
        "UNION ALL SELECT * FROM history_check (" CONTENT_DIRECT_SQL ") "
        "UNION ALL SELECT * FROM state_check (" CONTENT_DIRECT_SQL ")"},
    [BANK_STMT_COUNT + RD_FUNDERS] = {"rd_funders",
        "SELECT f.name, '', concat_ws ('; ', nullif (f.description, ''), count (g.id) || ' grants') "
        "FROM funder f LEFT JOIN award g ON g.funder_id = f.id WHERE $1::text[] IS NOT NULL "
        "GROUP BY f.id ORDER BY f.name"},
    /* $1 who: one row for those who may read everybody's operations. */
    [BANK_STMT_COUNT + RD_AUDITS] = {"rd_audits",
        "SELECT 1 WHERE $1::text[] = '{\"\"}' OR EXISTS (SELECT FROM person pe WHERE "
        "pe.identity = ($1::text[])[1] AND has_role (pe.id, 'auditor'))"},
    /* $1 expired before: open holds that no site has closed. */
    [BANK_STMT_COUNT + RD_STALE] = {"rd_stale",
        "SELECT h.id FROM hold h WHERE h.open AND h.expires_at <= ($1::bigint[])[1] "
        "ORDER BY h.expires_at, h.id LIMIT 256"},
    /* $1 an operation: the newest one, and charges of jobs whose last charge is due to be given back
     * since then; those of which anything was given back are settled. */
    [BANK_STMT_COUNT + RD_REFUNDS] = {"rd_refunds",
        "SELECT x.op FROM (SELECT 0 AS k, coalesce (max (id), 0) AS op FROM op UNION ALL "
        "SELECT 1, c.op_id FROM charge d JOIN charge c ON c.usage_id = d.usage_id WHERE d.refund_due AND "
        "d.op_id >= ($1::bigint[])[1] AND refund_due_of (c.id) > 0 AND NOT EXISTS (SELECT FROM refund_leg r "
        "WHERE r.charge_id = c.id)) x ORDER BY x.k, x.op LIMIT 256"},
    [BANK_STMT_COUNT + RD_ROLES] = {"rd_roles",
        "SELECT pe.identity, r.role FROM person pe CROSS JOIN (VALUES ('auditor'), ('manager')) r (role) "
        "WHERE has_role (pe.id, r.role) AND ($1::text[] = '{\"\"}' OR pe.identity = ($1::text[])[1] OR "
        "EXISTS (SELECT FROM person me WHERE me.identity = ($1::text[])[1] AND (has_role (me.id, "
        "'manager') OR has_role (me.id, 'auditor')))) ORDER BY pe.identity, r.role"},
    /* $1 who, $2 funder or none, $3 a grant or 0. */
    [BANK_STMT_COUNT + RD_GRANTS] = {"rd_grants",
        "SELECT g.id, f.name, g.reference, a.name, p.name, micro (sum (b.granted)), "
        "micro (sum (b.settled)), micro (sum (b.held)), micro (sum (b.posted::numeric - b.held)), "
        "micro (sum (b.granted::numeric - b.settled - b.posted)), min (l.valid_from), max (l.valid_to), "
        "count (DISTINCT l.account_id), o.recorded_at, coalesce (frozen_text ('grant', g.id), ''), "
        "coalesce ((SELECT to_char (to_timestamp (r.recorded_at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SSZ') || "
        "' by ' || r.client || substring (r.note FROM ': .*') FROM op r WHERE r.id = g.revoked_op), ''), "
        "wide_credits (sum (b.granted)), wide_credits (sum (b.settled)), wide_credits (sum (b.held)), "
        "wide_credits (sum (b.posted::numeric - b.held)), wide_credits (sum (b.granted::numeric - b.settled - b.posted)) "
        "FROM award g JOIN funder f ON f.id = g.funder_id "
        "JOIN account a ON a.id = g.account_id JOIN project p ON p.id = a.project_id "
        "JOIN op o ON o.id = g.op_id JOIN allocation l ON l.award_id = g.id "
        "JOIN balance b ON b.allocation_id = l.id WHERE " SEES " AND (cardinality ($2::text[]) = 0 OR "
        "f.name = ANY ($2::text[])) AND (($3::bigint[])[1] = 0 OR g.id = ($3::bigint[])[1]) "
        "GROUP BY g.id, f.name, a.name, p.name, o.recorded_at ORDER BY g.id"},
    /* $1 grant, from, to: what had moved by the end of each day (UTC) on which something did; all before is day -1. What was charged is what its legs say, as in
     * RD_GRANT_SHARES: an operation that charges may also give back, end or repay. */
    [BANK_STMT_COUNT + RD_GRANT_DAYS] = {"rd_grant_days",
        "WITH mine AS MATERIALIZED (SELECT l.id, l.account_id FROM allocation l WHERE l.award_id = ($1::bigint[])[1]), "
        "moved AS (SELECT e.recorded_at AS at, CASE WHEN o.kind IN ('grant', 'deposit', 'withdraw', 'account-close', "
        "  'grant-amend', 'grant-revoke') "
        "  THEN e.amount ELSE 0 END AS granted, 0 AS charged, e.amount AS net FROM mine l JOIN entry e ON "
        "  e.account_id = l.account_id AND e.allocation_id = l.id AND e.layer = 'P' JOIN op o ON o.id = e.op_id "
        " UNION ALL SELECT o.recorded_at, 0, g.amount, 0 FROM op o JOIN charge c ON c.op_id = o.id JOIN charge_leg g ON "
        "  g.charge_id = c.id WHERE o.kind = 'charge' AND g.allocation_id IN (SELECT id FROM mine) "
        " UNION ALL SELECT o.recorded_at, 0, -r.amount, 0 FROM op o JOIN refund_leg r ON r.op_id = o.id "
        "  WHERE o.kind = 'refund' AND r.allocation_id IN (SELECT id FROM mine)) "
        "SELECT x.day, micro (x.g), micro (x.c), micro (x.n), wide_credits (x.g), wide_credits (x.c), wide_credits (x.n) FROM "
        "(SELECT t.day, sum (sum (t.granted)) OVER w AS g, sum (sum (t.charged)) OVER w AS c, sum (sum (t.net)) OVER w AS n "
        " FROM (SELECT CASE WHEN m.at < ($1::bigint[])[2] THEN -1 ELSE m.at / 86400000000 END AS day, m.* FROM moved m "
        "  WHERE m.at < ($1::bigint[])[3]) t GROUP BY t.day WINDOW w AS (ORDER BY t.day)) x ORDER BY 1"},
    /* $1 grant, from, to: what was decided on it. */
    [BANK_STMT_COUNT + RD_GRANT_EVENTS] = {"rd_grant_events",
        "SELECT o.recorded_at, o.kind, o.client, o.note, o.id FROM (SELECT op_id FROM award WHERE id = ($1::bigint[])[1] "
        " UNION SELECT op_id FROM about WHERE what = 'grant' AND object_id = ($1::bigint[])[1] "
        " UNION SELECT op_id FROM freezing WHERE what = 'grant' AND object_id = ($1::bigint[])[1]) x "
        "JOIN op o ON o.id = x.op_id WHERE o.recorded_at >= ($1::bigint[])[2] AND o.recorded_at < ($1::bigint[])[3] "
        "ORDER BY o.id LIMIT 10000"},
    /* $1 grant, from, to: who used it. */
    [BANK_STMT_COUNT + RD_GRANT_SHARES] = {"rd_grant_shares",
        "SELECT p.name, a.name, u.site, count (DISTINCT u.id), micro (sum (m.amount)), wide_credits (sum (m.amount)) FROM "
        "(SELECT c.usage_id, g.allocation_id, g.amount FROM op o JOIN charge c ON c.op_id = o.id "
        "  JOIN charge_leg g ON g.charge_id = c.id WHERE o.recorded_at >= ($1::bigint[])[2] AND "
        "  o.recorded_at < ($1::bigint[])[3] AND o.kind = 'charge' "
        " UNION ALL SELECT c.usage_id, r.allocation_id, -r.amount FROM op o JOIN refund_leg r ON "
        "  r.op_id = o.id JOIN charge c ON c.id = r.charge_id WHERE o.recorded_at >= ($1::bigint[])[2] AND "
        "  o.recorded_at < ($1::bigint[])[3] AND o.kind = 'refund') m "
        "JOIN usage u ON u.id = m.usage_id JOIN allocation l ON l.id = m.allocation_id "
        "JOIN account a ON a.id = l.account_id JOIN project p ON p.id = a.project_id "
        "WHERE l.award_id = ($1::bigint[])[1] GROUP BY 1, 2, 3 ORDER BY sum (m.amount) DESC, 1, 2, 3"},
    /* $1 who and a site's own name, $2 site or none, $3 ended from, to, after, lines. */
    [BANK_STMT_COUNT + RD_JOBS] = {"rd_jobs",
        JOBS "WHERE u.id > ($3::bigint[])[3] AND u.end_at >= ($3::bigint[])[1] AND "
        "u.end_at < ($3::bigint[])[2] "
        "AND u.id IN (SELECT c.usage_id FROM charge c WHERE c.end_at >= ($3::bigint[])[1] AND "
        "  c.end_at < ($3::bigint[])[2]) AND (cardinality ($2::text[]) = 0 OR u.site = ANY ($2::text[])) "
        "AND (u.site = ($1::text[])[2] OR " SEES ") ORDER BY u.id LIMIT ($3::bigint[])[4]"},
    /* $1 as above, $2 site and its job, $3 after, lines. */
    [BANK_STMT_COUNT + RD_JOBS_OF] = {"rd_jobs_of",
        JOBS "WHERE u.id > ($3::bigint[])[1] AND u.site = ($2::text[])[1] AND "
        "u.site_job = ($2::text[])[2] "
        "AND (u.site = ($1::text[])[2] OR " SEES ") ORDER BY u.id LIMIT ($3::bigint[])[2]"},
    /* $1 who and a site's own name, $2 account or none, $3 from, to, after, lines, $4 site or none. */
    [BANK_STMT_COUNT + RD_RECORDS] = {"rd_records",
        "SELECT m.op_id, m.recorded_at, c.op_id, m.paid, m.disputed, u.site, u.site_job, u.component, "
        "u.incarnation, u.grid_job, u.identity, a.name, p.name, u.qos, u.machine, c.procs, "
        "greatest (c.start_at, (SELECT max (b.end_at) FROM charge b WHERE b.usage_id = c.usage_id AND b.id < c.id)), "
        "c.start_at, c.end_at, c.final, c.successful, c.cpu_us, c.nodes, c.memory_mb, c.submitted_at, "
        "c.local_user, c.queue, (SELECT h.walltime_us FROM hold h WHERE h.id = c.hold_id) "
        "FROM (SELECT o.id AS op_id, o.recorded_at, x.id AS charge, x.amount - d.amount AS paid, d.amount AS disputed "
        " FROM op o JOIN charge x ON x.op_id = o.id CROSS JOIN LATERAL (SELECT coalesce (sum (g.amount), 0)::bigint "
        "  AS amount FROM charge_leg g WHERE g.charge_id = x.id AND g.source = 'DISPUTED') d "
        " WHERE o.recorded_at >= ($3::bigint[])[1] AND o.recorded_at < ($3::bigint[])[2] AND o.kind = 'charge' "
        " UNION ALL SELECT o.id, o.recorded_at, r.charge_id, "
        "  (- coalesce (sum (r.amount) FILTER (WHERE g.source <> 'DISPUTED'), 0))::bigint, "
        "  (- coalesce (sum (r.amount) FILTER (WHERE g.source = 'DISPUTED'), 0))::bigint "
        " FROM op o JOIN refund_leg r ON r.op_id = o.id JOIN charge_leg g ON g.charge_id = r.charge_id AND "
        "  g.leg = r.charge_leg "
        " WHERE o.recorded_at >= ($3::bigint[])[1] AND o.recorded_at < ($3::bigint[])[2] AND o.kind = 'refund' "
        " GROUP BY o.id, o.recorded_at, r.charge_id) m "
        "JOIN charge c ON c.id = m.charge JOIN usage u ON u.id = c.usage_id JOIN account a ON a.id = u.account_id "
        "LEFT JOIN project p ON p.id = a.project_id WHERE m.op_id > ($3::bigint[])[3] "
        "AND (u.site = ($1::text[])[2] OR " SEES ") AND (cardinality ($2::text[]) = 0 OR "
        "a.id = account_named (($2::text[])[1])) AND (cardinality ($4::text[]) = 0 OR u.site = ANY ($4::text[])) "
        "ORDER BY m.op_id LIMIT ($3::bigint[])[4]"},
    /* $1 who and a site's own name, $2 site or none, $3 after, lines, closed ones too. */
    [BANK_STMT_COUNT + RD_RECONS] = {"rd_recons",
        "SELECT r.id, r.site, r.class, r.site_job, r.component, r.incarnation, r.hold, r.charge_op, "
        "r.identity, r.account, r.amount, r.site_ps, r.bank_ps, r.since_at, r.note, o.recorded_at, "
        "coalesce ((SELECT w.owner FROM recon_event w WHERE w.row_id = r.id AND w.kind = 'owned' "
        "  ORDER BY w.op_id DESC LIMIT 1), ''), coalesce (e.kind, 'open'), "
        "coalesce ((SELECT c.recorded_at FROM op c WHERE c.id = e.op_id), 0), coalesce (e.cured_op, 0), "
        "coalesce (e.note, '') FROM recon_row r JOIN op o ON o.id = r.op_id LEFT JOIN recon_event e ON "
        "e.row_id = r.id AND e.kind IN ('closed', 'gone') WHERE r.id > ($3::bigint[])[1] AND "
        "($1::text[] = '{\"\"}' OR r.site = ($1::text[])[2] OR EXISTS (SELECT FROM person pe WHERE "
        "  pe.identity = ($1::text[])[1] AND (has_role (pe.id, 'auditor') OR has_role (pe.id, 'manager')))) "
        "AND (cardinality ($2::text[]) = 0 OR r.site = ANY ($2::text[])) AND (e.kind IS NULL OR "
        "($3::bigint[])[3] = 1) ORDER BY r.id LIMIT ($3::bigint[])[2]"},
    [BANK_STMT_COUNT + RD_UNOWNED] = {"rd_unowned",
        "SELECT r.site, count (*), (array_agg (r.note ORDER BY r.id))[1] FROM recon_row r WHERE NOT EXISTS "
        "(SELECT FROM recon_event e WHERE e.row_id = r.id) GROUP BY r.site ORDER BY r.site"},
    [BANK_STMT_COUNT + RD_FIGURES] = {"rd_figures",
        "SELECT coalesce ((SELECT max (number) FROM block), 0), coalesce ((SELECT -posted FROM balance "
        "WHERE allocation_id = 2), 0), (SELECT count (*) FROM recon_row r WHERE NOT EXISTS "
        "(SELECT FROM recon_event e WHERE e.row_id = r.id))"},
    /* $1 who, $2 account or none, $3 after, quotes, one quote or 0, when they are open or 0. */
    [BANK_STMT_COUNT + RD_QUOTES] = {"rd_quotes",
        "SELECT q.id, q.identity, coalesce (q.account, ''), o.recorded_at, q.expires_at, "
        "(SELECT x.cancelled_at FROM quote_cancel x WHERE x.quote_id = q.id), q.reusable, "
        "coalesce ((SELECT y.job FROM quote_use x JOIN op y ON y.id = x.op_id WHERE x.quote_id = q.id "
        "  ORDER BY x.op_id LIMIT 1), ''), c.site, c.rate_version, coalesce (c.price, -1) "
        "FROM (SELECT * FROM quote x WHERE x.id > ($3::bigint[])[1] AND (cardinality ($2::text[]) = 0 OR "
        "  account_named (x.account) = account_named (($2::text[])[1])) AND (($3::bigint[])[3] = 0 OR x.id = ($3::bigint[])[3]) AND "
        "  (($3::bigint[])[4] = 0 OR (x.expires_at > ($3::bigint[])[4] AND NOT EXISTS (SELECT FROM "
        "  quote_cancel y WHERE y.quote_id = x.id) AND (x.reusable OR NOT EXISTS (SELECT FROM quote_use y "
        "  WHERE y.quote_id = x.id)))) AND ($1::text[] = '{\"\"}' OR x.identity = ($1::text[])[1] OR "
        "  EXISTS (SELECT FROM person pe WHERE pe.identity = ($1::text[])[1] AND (has_role (pe.id, "
        "  'manager') OR has_role (pe.id, 'auditor') OR EXISTS (SELECT FROM account a WHERE "
        "  a.id = account_named (x.account) AND (leads_above (pe.id, a.project_id) OR EXISTS (SELECT FROM membership m "
        "  WHERE m.person_id = pe.id AND m.project_id = a.project_id AND m.role = 'lead' AND "
        "  m.valid_to = 9223372036854775807)))))) ORDER BY x.id LIMIT ($3::bigint[])[2]) q "
        "JOIN op o ON o.id = q.op_id JOIN quote_card c ON c.quote_id = q.id ORDER BY q.id, c.position"},
    /* clang-format on */
};

/* A signed job's hold on one allocation, or one that a site claims; the only charge of a job against such a hold. */
const struct pgwith bank_with[BANK_WITH_COUNT] = {
    [WITH_HOLD] = {"with_hold",
                   6,
                   {ST_ADD_OP, ST_PUT_BALANCE, ST_ADD_NEW_HOLD, ST_ADD_LEG, ST_ADD_NEW_SIGNED,
                    ST_ADD_ENTRY}},
    [WITH_LOCAL_HOLD] = {"with_local_hold",
                         5,
                         {ST_ADD_OP, ST_PUT_BALANCE, ST_ADD_NEW_HOLD, ST_ADD_LEG, ST_ADD_ENTRY}},
    [WITH_CHARGE] = {"with_charge",
                     8,
                     {ST_ADD_OP, ST_PUT_BALANCE, ST_PUT_HOLD, ST_PUT_LEG, ST_ADD_USAGE,
                      ST_ADD_CHARGE, ST_ADD_CHARGE_LEG, ST_ADD_ENTRY}},
};
