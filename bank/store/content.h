/* content: what a batch makes of the bank's tables, as lines of text that its block holds. Pure.
 *
 * Rows of what jobs do are written by a statement of the service's own; a line tells of each: ["add_hold",4,…], the
 * statement's name and its parameters. All else is written by PostgreSQL from the lines themselves
 * ({"add":"account","id":4,…}), so that nothing can be made of it that no line tells of: see 0003_history.sql. */
#ifndef NUI_BANK_STORE_CONTENT_H
#define NUI_BANK_STORE_CONTENT_H

#include "bank/store/pgarg.h"
#include "bank/store/statements.h"
#include "proto/base/strbuf.h"

/* Each statement that writes rows itself: its name in lines, its table and the columns of its parameters. "name?":
 * 0 stands for NULL. A column that is added comes last, since lines of before have it not: it had its default. */
#define CONTENT_DIRECT(X)                                                                          \
    X (ST_PUT_BALANCE, "put_balance", "balance allocation_id granted settled posted held")         \
    X (ST_ADD_QUOTE, "add_quote", "quote id op_id identity expires_at reusable account")           \
    X (ST_ADD_QUOTE_CARD, "add_quote_card",                                                        \
       "quote_card quote_id position site rate_version price")                                     \
    X (ST_ADD_QUOTE_USE, "add_quote_use", "quote_use op_id quote_id job")                          \
    X (ST_ADD_QUOTE_CANCEL, "add_quote_cancel", "quote_cancel quote_id op_id cancelled_at")        \
    X (ST_PUT_HOLD, "put_hold", "hold id open")                                                    \
    X (ST_ADD_HOLD, "add_hold",                                                                    \
       "hold id op_id site site_job component incarnation grid_job asked_id account_id identity "  \
       "procs walltime_us start_at expires_at rate_version rate_ppm amount open extra_parts "      \
       "qos_ppm class_ppm group_ppm pe_milli qos machine nodes walltime_max_us cost_max uuid")     \
    X (ST_LENGTHEN_HOLD, "lengthen_hold", "hold id amount walltime_us expires_at")                 \
    X (ST_ADD_LEG, "add_leg", "hold_leg hold_id leg allocation_id amount settled released")        \
    X (ST_PUT_LEG, "put_leg", "hold_leg hold_id leg settled released")                             \
    X (ST_ADD_USAGE, "add_usage",                                                                  \
       "usage id site site_job component incarnation grid_job hold_id? account_id identity procs " \
       "start_at end_at total final qos machine disputed")                                         \
    X (ST_PUT_USAGE, "put_usage", "usage id procs end_at total final disputed")                    \
    X (ST_ADD_CHARGE, "add_charge",                                                                \
       "charge id op_id usage_id hold_id? sequence procs start_at end_at final successful "        \
       "rate_version rate_ppm amount total released formula refund_most refund_due "               \
       "cpu_us nodes memory_mb submitted_at local_user queue")                                     \
    X (ST_ADD_CHARGE_LEG, "add_charge_leg",                                                        \
       "charge_leg charge_id leg allocation_id amount source")                                     \
    X (ST_ADD_REFUND, "add_refund",                                                                \
       "refund_leg op_id leg charge_id charge_leg allocation_id amount")                           \
    X (ST_ADD_RECON, "add_recon",                                                                  \
       "recon_row id op_id site class site_job component incarnation hold charge_op identity "     \
       "account amount site_ps bank_ps since_at note")                                             \
    X (ST_ADD_RECON_EVENT, "add_recon_event", "recon_event op_id row_id kind owner cured_op note") \
    X (ST_ADD_SIGNED, "add_signed",                                                                \
       "signed identity uuid hash grid_job meta part hold_id expires_at")                          \
    X (ST_PUT_ACK, "put_ack", "site_ack site acked ahead")

/* As a text literal of SQL: a line for each. */
#define CONTENT_DIRECT_LINE(stmt, name, columns) name " " columns "\n"
#define CONTENT_DIRECT_SQL "'" CONTENT_DIRECT (CONTENT_DIRECT_LINE) "'"

/* What lines alone make, in the order in which they are done: what is done, to which table, and its columns as above;
 * "name=1" is a constant. "put" finds its row by the table's key, "drop" all rows with what it names. */
enum content_object {
    OBJ_ADD_PROJECT,
    OBJ_PUT_PARENT,
    OBJ_ADD_PERSON,
    OBJ_ADD_ROLE,
    OBJ_ADD_FUNDER,
    OBJ_PUT_MEMBERSHIP, /* first: one of a person and project may end and the next begin */
    OBJ_ADD_MEMBERSHIP,
    OBJ_ADD_ACCOUNT,
    OBJ_PUT_NAME,
    OBJ_ADD_NAME,
    OBJ_CLOSE_ACCOUNT,
    OBJ_ADD_FREEZE,
    OBJ_DROP_FALLBACKS,
    OBJ_ADD_FALLBACK,
    OBJ_DROP_SCOPES,
    OBJ_ADD_SCOPE,
    OBJ_ADD_AWARD,
    OBJ_PUT_REVOKED,
    OBJ_ADD_ALLOC,
    OBJ_ADD_ALLOC_SCOPE,
    OBJ_PUT_END,
    OBJ_PUT_LIMIT,
    OBJ_ADD_BALANCE,
    OBJ_ADD_ABOUT,
    OBJ_ADD_RATE,
    OBJ_ADD_FACTOR,
    OBJ_ADD_RIGHT,
    CONTENT_OBJECTS
};

/* Adds a line for each row of args; none for NULL, and none for a statement that CONTENT_DIRECT has not. */
void content_add_object (struct strbuf *out, enum content_object object, const struct pgargs *args);
void content_add_direct (struct strbuf *out, enum bank_stmt stmt, const struct pgargs *args);

#endif
