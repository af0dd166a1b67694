/* setup: what a fresh connection runs before it works. The committer's takes the advisory lock that
 * makes it the only writer, migrates the schema, and reads where ids and time stand. */
#ifndef NUI_BANK_STORE_SETUP_H
#define NUI_BANK_STORE_SETUP_H

#include "bank/core/ledger.h"
#include "bank/store/pgloop.h"
#include "proto/audit/block.h"
#include "proto/base/strbuf.h"

enum setup_kind {
    SETUP_READER,     /* read only */
    SETUP_WRITER,     /* the committer */
    SETUP_SECOND,     /* its second connection, while it has the first */
    SETUP_BACKGROUND, /* adds what can be derived from the rest */
};

struct setup {
    struct pgloop *loop;
    struct log *log;
    enum setup_kind kind;
    int at; /* index of the next migration */
    struct ledger_ids next;
    time_us last_recorded;
    time_us database_now;   /* by its clock */
    struct block last;      /* number 0: there is none */
    struct strbuf unsealed; /* lines that no block tells of yet; the owner frees it */
    uint8_t secret[32];     /* of hand-overs: proto/job/handover.h */
    bool has_secret;
    void (*ready) (void *arg); /* called before pgloop_ready */
    void *arg;
};

/* Runs the steps; ends with pgloop_ready or pgloop_fail. The loop's callbacks must have `setup` (or
 * something whose first member it is) as their argument. */
void setup_begin (struct setup *setup);

/* The schema as a script for psql: what is missing of it, owned by whoever runs it, and for role (a
 * name that needs no quotes) the rights that the service needs. */
void setup_script (const char *role, struct strbuf *out);

#endif
