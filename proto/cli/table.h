/* table: one set of rows, printed as an aligned table, as JSON or as CSV (RFC 4180).
 *
 * Rows are filled cell by cell in the columns' order; the cell function must fit the column's type
 * (asserted). Cells are kept as values, so each format gets its own spelling. */
#ifndef NUI_CLI_TABLE_H
#define NUI_CLI_TABLE_H

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

#include "proto/cli/client.h"
#include "proto/cli/jsonout.h"

enum table_type {
    TABLE_TEXT, /* left */
    TABLE_INT,  /* right, as all below */
    TABLE_CREDITS,
    TABLE_DURATION,
    TABLE_TIME, /* table: "Sun Sep  9 03:34:00", and the year where that is not this one; JSON, CSV:
                   ISO 8601 */
    TABLE_PPM,  /* parts per million as a decimal; see decimals */
    TABLE_BOOL, /* yes, no; JSON true, false */
    TABLE_IDENTITY, /* left; table: the last part of a user's identity; JSON, CSV: all of it */
};

struct table;

struct table_column {
    const char *key;   /* in JSON and CSV: "start_time" */
    const char *title; /* in the table: "STARTTIME" */
    enum table_type type;
    uint8_t decimals; /* TABLE_PPM in tables: digits after the point (rounded) */
    /* Where table_message finds it: NULL: the field called like the key (message.h); a path "job.user"; "": nowhere, it is
     * empty or zero. */
    const char *from;
    void (*cell) (struct table *table, const ProtobufCMessage *message); /* adds the cell instead */
    const char *between; /* the items of a list; NULL: "," */
    uint8_t spare;       /* a terminal that is too narrow shows none but 0; the largest go first */
};

/* How a table looks on paper or on a screen. */
struct table_look {
    bool noheader, colour;
    unsigned
        width; /* columns of the terminal; 0: as wide as it gets. Where that is too little, columns that are empty
                       and those that can be spared are left out, and the last texts shortened */
    time_us now; /* moments of another year than this carry theirs; 0: none does */
    bool zone;   /* the first title of a moment says the zone of all */
};
struct table_look cli_look (const struct cli_context *ctx);

/* columns is static. */
struct table *table_create (const struct table_column *columns, uint32_t count);
void table_destroy (struct table *table);
/* What cells' functions need to know beside the message; the table keeps only the pointer. */
void table_set_beside (struct table *table, const void *beside);
const void *table_beside (const struct table *table);
#define TABLE_CREATE(columns) table_create (columns, sizeof (columns) / sizeof *(columns))

void table_text (struct table *table, const char *text); /* copied; NULL is null */
void table_printf (struct table *table, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
void table_int (struct table *table, int64_t value);
void table_credits (struct table *table, credit_micro amount);
/* wide: the same in credits where it is beyond 64 bits; else "". */
void table_credits_wide (struct table *table, credit_micro amount, const char *wide);
void table_duration (struct table *table, duration_us d);
void table_time (struct table *table, time_us t); /* TIME_US_NONE is null */
void table_ppm (struct table *table, int64_t ppm);
void table_bool (struct table *table, bool value);
void table_null (struct table *table); /* any type: "-" in tables, null, empty in CSV */
/* A whole row from a message, cell by cell as the columns say, of other (or NULL) where the message has no such field.
 * Null: an empty text, no moment (0), a field of a message that is not there. */
void table_message (struct table *table, const ProtobufCMessage *message,
                    const ProtobufCMessage *other);
/* The same for the rest of a row that has been begun. */
void table_message_rest (struct table *table, const ProtobufCMessage *message,
                         const ProtobufCMessage *other);
#define TABLE_ROW(table, m) table_message (table, &(m)->base, NULL)
/* A row is complete; asserts that every cell is there. */
void table_end_row (struct table *table);
uint32_t table_row_count (const struct table *table);
/* The rows ordered by a column ("-cost": the largest first; what is null comes last), then only these columns in this
 * order ("job_id,end_time"); NULL: as they are. ERR_INVALID names a column that is not there, and those that are. */
int table_arrange (struct table *table, const char *columns, const char *sort, struct err *err);

/* To stdout in the context's format: JSON an array of objects. No rows: header only, [] or the
 * CSV header. CLI_OK, or CLI_FAILED after a sentence when stdout cannot be written. */
int table_print (struct table *table, struct cli_context *ctx);
int table_print_done (struct table *table, struct cli_context *ctx); /* and destroys it */
/* A table with a row for each message, created, printed and destroyed. items: an array of pointers to messages. */
int table_show (struct cli_context *ctx, const struct table_column *columns, uint32_t count,
                const void *items, size_t item_count);
#define TABLE_SHOW(ctx, columns, items, n)                                                         \
    table_show (ctx, columns, sizeof (columns) / sizeof *(columns), items, n)
/* One row as a person reads it, "Title: value" lines of what is not null; JSON one object; CSV as above. */
int table_print_record (struct table *table, struct cli_context *ctx);
/* The pieces, for commands with several tables or lines of their own. */
void table_to_text (const struct table *table, struct table_look look, struct strbuf *out);
void table_to_csv (const struct table *table, bool noheader, struct strbuf *out);
void table_to_json (const struct table *table, struct jsonout *json); /* the array */
void table_to_json_row (const struct table *table, uint32_t row, struct jsonout *json);
void table_to_json_members (const struct table *table, uint32_t row,
                            struct jsonout *json); /* of an object */
/* Writes all of it to stdout; CLI_OK or CLI_FAILED. */
int cli_output (const struct strbuf *text);

#endif
