/* Unit tests of meta/store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "meta/store/metastore.h"
#include "meta/store/jobrows.h"
#include "meta/store/past.h"
#include "meta/store/votes.h"
#include "proto/base/clock.h"
#include "tests/unit/tmpdir.h"

struct fixture {
    char dir[64];
    char path[96];
    struct metastore *store;
    struct arena *arena;
};

static int setup (void **state)
{
    struct fixture *f = calloc (1, sizeof *f);
    struct err err;
    snprintf (f->dir, sizeof f->dir, "%s/nui-metastore-XXXXXX", tmpdir ());
    assert_non_null (mkdtemp (f->dir));
    snprintf (f->path, sizeof f->path, "%s/meta.sqlite", f->dir);
    f->store = metastore_open (f->path, &err);
    assert_non_null (f->store);
    f->arena = arena_create (0);
    *state = f;
    return 0;
}

static int teardown (void **state)
{
    struct fixture *f = *state;
    char path[128];
    metastore_close (f->store);
    arena_destroy (f->arena);
    unlink (f->path);
    snprintf (path, sizeof path, "%s-wal", f->path);
    unlink (path);
    snprintf (path, sizeof path, "%s-shm", f->path);
    unlink (path);
    rmdir (f->dir);
    free (f);
    return 0;
}

static void reopen (struct fixture *f)
{
    struct err err;
    metastore_close (f->store);
    f->store = metastore_open (f->path, &err);
    assert_non_null (f->store);
}

static struct job_row row_make (const char *submitter)
{
    struct job_row row = {.submitter = submitter,
                          .name = "n",
                          .account = "a",
                          .envelope = {"bytes\0more", 10},
                          .submit_us = 77,
                          .state = 1,
                          .reason_code = "Pending",
                          .reason_text = "choosing"};
    uuid_make (&row.uuid);
    return row;
}

static void jobs_survive (void **state)
{
    struct fixture *f = *state;
    struct job_row row = row_make ("alice");
    struct job_row back;
    uint64_t number = 0;
    struct err err;
    assert_int_equal (metastore_job_insert (f->store, &row, &number, &err), 0);
    assert_int_equal (number, 1);
    row.number = number;
    row.state = 2;
    row.site = "alpha";
    row.site_attempt = 3;
    row.place = 2;
    row.start_us = 100;
    row.start_is_estimate = true;
    row.price = 12345;
    row.change = 9;
    row.cancel_wanted = true;
    row.reason_text = "it's \"quoted\"; DROP TABLE job";
    assert_int_equal (metastore_job_update (f->store, &row, &err), 0);
    reopen (f);
    assert_int_equal (metastore_job_load (f->store, number, f->arena, &back, &err), 0);
    assert_memory_equal (back.uuid.b, row.uuid.b, 16);
    assert_string_equal (back.submitter, "alice");
    assert_int_equal (back.envelope.len, 10);
    assert_memory_equal (back.envelope.bytes, "bytes\0more", 10);
    assert_int_equal (back.submit_us, 77);
    assert_int_equal (back.state, 2);
    assert_false (back.ended);
    assert_string_equal (back.reason_code, "Pending");
    assert_string_equal (back.reason_text, row.reason_text);
    assert_int_equal (back.start_us, 100);
    assert_true (back.start_is_estimate);
    assert_int_equal (back.price, 12345);
    assert_int_equal (back.change, 9);
    assert_true (back.cancel_wanted);
    assert_string_equal (back.site, "alpha");
    assert_int_equal (back.site_attempt, 3);
    assert_int_equal (back.place, 2);
    assert_int_equal (metastore_job_load (f->store, 99, f->arena, &back, &err), ERR_NOT_FOUND);
}

static void uuid_is_unique_per_submitter (void **state)
{
    struct fixture *f = *state;
    struct job_row row = row_make ("alice");
    uint64_t number = 0, again = 0;
    struct err err;
    assert_int_equal (metastore_job_insert (f->store, &row, &number, &err), 0);
    assert_int_equal (metastore_job_insert (f->store, &row, &again, &err), ERR_EXISTS);
    assert_int_equal (again, number);
    row.submitter = "bob"; /* his uuids are his own */
    assert_int_equal (metastore_job_insert (f->store, &row, &again, &err), 0);
    assert_int_not_equal (again, number);
}

static void lists (void **state)
{
    struct fixture *f = *state;
    uint64_t *numbers = NULL, number = 0;
    uint32_t count = 0;
    struct err err;
    for (uint64_t i = 1; i <= 200; i++) {
        struct job_row row = row_make (i % 2 ? "alice" : "bob");
        assert_int_equal (metastore_job_insert (f->store, &row, &number, &err), 0);
        row.number = number;
        row.ended = i <= 150;
        assert_int_equal (metastore_job_update (f->store, &row, &err), 0);
    }
    assert_int_equal (
        metastore_job_list (f->store, NULL, false, 0, UINT32_MAX, f->arena, &numbers, &count, &err),
        0);
    assert_int_equal (count, 50);
    assert_int_equal (numbers[0], 151);
    assert_int_equal (numbers[49], 200);
    assert_int_equal (
        metastore_job_list (f->store, "bob", true, 0, 10, f->arena, &numbers, &count, &err), 0);
    assert_int_equal (count, 10);
    assert_int_equal (numbers[0], 182); /* the newest ten, oldest first */
    assert_int_equal (numbers[9], 200);
    assert_int_equal (
        metastore_job_list (f->store, "carol", true, 0, 10, f->arena, &numbers, &count, &err), 0);
    assert_int_equal (count, 0);
}

static void records_survive (void **state)
{
    struct fixture *f = *state;
    struct job_row row = row_make ("alice");
    struct coalloc_record *record = coalloc_create (3, NULL);
    struct coalloc_record *back = NULL;
    uint64_t number = 0;
    struct err err;
    assert_int_equal (metastore_job_insert (f->store, &row, &number, &err), 0);
    assert_int_equal (metastore_coalloc_load (f->store, number, METASTORE_PRESENT, &back, &err),
                      ERR_NOT_FOUND);
    record->phase = COALLOC_COMMIT;
    record->tries = 4;
    record->decided = record->ran = record->cancel_wanted = true;
    record->outcome = COALLOC_FAILED;
    strcpy (record->reason.code, "Code");
    strcpy (record->reason.text, "words");
    record->created = 5;
    memset (record->transaction, 0xab, sizeof record->transaction);
    memset (record->start_token, 0xcd, sizeof record->start_token);
    record->slot_start = 6;
    record->start_at = 7;
    record->not_before = 8;
    record->deadline = 9;
    record->expires = 10;
    record->cost_max = 11;
    for (uint32_t p = 0; p < 3; p++) {
        struct coalloc_part *part = &record->part[p];
        snprintf (part->name, sizeof part->name, "part%u", p);
        strcpy (part->site, "beta");
        part->offset = -1 - (duration_us)p;
        part->walltime = 20 + p;
        part->state = PART_FIRM;
        part->attempt = 2 + p;
        part->price = 30 + p;
        part->ended = COALLOC_COMPLETED;
        strcpy (part->hint_site, "gamma");
        part->hint_start = TIME_US_MAX;
    }
    assert_int_equal (metastore_coalloc_save (f->store, number, METASTORE_PRESENT, record, &err),
                      0);
    record->phase = COALLOC_READY; /* and over it */
    record->expires = 12;          /* its owner has renewed it */
    assert_int_equal (metastore_coalloc_save (f->store, number, METASTORE_PRESENT, record, &err),
                      0);
    reopen (f);
    assert_int_equal (metastore_coalloc_load (f->store, number, METASTORE_PRESENT, &back, &err), 0);
    struct coalloc_part *parts = back->part;
    assert_memory_equal (parts, record->part, 3 * sizeof *parts);
    back->part = record->part;
    assert_memory_equal (back, record, sizeof *back);
    back->part = parts;
    coalloc_destroy (back);
    /* that of an earlier slot, beside it, and gone again */
    record->slot_start = 3;
    assert_int_equal (metastore_coalloc_save (f->store, number, METASTORE_SLIDE, record, &err), 0);
    reopen (f);
    assert_int_equal (metastore_coalloc_load (f->store, number, METASTORE_SLIDE, &back, &err), 0);
    assert_int_equal (back->slot_start, 3);
    coalloc_destroy (back);
    assert_int_equal (metastore_coalloc_drop (f->store, number, METASTORE_SLIDE, &err), 0);
    assert_int_equal (metastore_coalloc_load (f->store, number, METASTORE_SLIDE, &back, &err),
                      ERR_NOT_FOUND);
    assert_int_equal (metastore_coalloc_load (f->store, number, METASTORE_PRESENT, &back, &err), 0);
    assert_int_equal (back->slot_start, 6);
    coalloc_destroy (back);
    coalloc_destroy (record);
}

static void components_survive (void **state)
{
    struct fixture *f = *state;
    struct job_row row = row_make ("alice");
    struct component_row c = {
        .index = 1, .name = "right", .site = "beta", .site_job_id = "beta.3", .info = {"info", 4}};
    struct component_row *rows = NULL;
    uint32_t count = 0;
    uint64_t number = 0;
    struct err err;
    assert_int_equal (metastore_job_insert (f->store, &row, &number, &err), 0);
    assert_int_equal (metastore_component_save (f->store, number, &c, &err), 0);
    c.peer = (struct metastore_blob){"peer!", 5};
    assert_int_equal (metastore_component_save (f->store, number, &c, &err), 0);
    c.index = 0;
    c.name = "left";
    assert_int_equal (metastore_component_save (f->store, number, &c, &err), 0);
    reopen (f);
    assert_int_equal (metastore_component_load (f->store, number, f->arena, &rows, &count, &err),
                      0);
    assert_int_equal (count, 2);
    assert_string_equal (rows[0].name, "left");
    assert_string_equal (rows[1].site_job_id, "beta.3");
    assert_int_equal (rows[1].peer.len, 5);
    assert_memory_equal (rows[1].peer.bytes, "peer!", 5);
}

static void transactions_are_whole (void **state)
{
    struct fixture *f = *state;
    struct job_row row = row_make ("alice");
    struct job_row back;
    uint64_t number = 0;
    struct err err;
    assert_int_equal (metastore_begin (f->store, &err), 0);
    assert_int_equal (metastore_job_insert (f->store, &row, &number, &err), 0);
    assert_int_equal (metastore_site_ack (f->store, "alpha", 5, &err), 0);
    metastore_rollback (f->store);
    assert_int_equal (metastore_job_load (f->store, number, f->arena, &back, &err), ERR_NOT_FOUND);
    uint64_t acked = 1;
    assert_int_equal (metastore_site_acked (f->store, "alpha", &acked, &err), 0);
    assert_int_equal (acked, 0);
    assert_int_equal (metastore_site_ack (f->store, "alpha", 7, &err), 0);
    reopen (f);
    assert_int_equal (metastore_site_acked (f->store, "alpha", &acked, &err), 0);
    assert_int_equal (acked, 7);
}

static void take_decision (void *arg, enum decision decided, bool failed)
{
    assert_false (failed);
    *(int *)arg = (int)decided;
}

static int decide (struct fixture *f, const uint8_t *txn, enum decision proposal)
{
    struct decision_log log = metastore_decision_log (f->store);
    struct decision_ask ask = {.transaction = txn, .proposal = proposal};
    int decided = -1;
    log.ops->propose (log.self, &ask, take_decision, &decided);
    return decided;
}

static void the_first_decision_stands (void **state)
{
    struct fixture *f = *state;
    uint8_t txn[16] = {1}, other[16] = {2};
    struct job_row row = row_make ("alice");
    struct coalloc_record *record = coalloc_create (1, NULL);
    uint64_t number = 0;
    struct err err;
    assert_int_equal (metastore_job_insert (f->store, &row, &number, &err), 0);
    memcpy (record->transaction, txn, sizeof txn);
    assert_int_equal (metastore_coalloc_save (f->store, number, METASTORE_PRESENT, record, &err),
                      0);
    coalloc_destroy (record);
    assert_int_equal (decide (f, txn, DECISION_COMMIT), DECISION_COMMIT);
    reopen (f);
    assert_int_equal (decide (f, txn, DECISION_ABORT), DECISION_COMMIT); /* a recovery */
    assert_int_equal (decide (f, other, DECISION_ABORT), DECISION_ABORT);
    assert_int_equal (decide (f, other, DECISION_COMMIT), DECISION_ABORT); /* too late */
    /* once its job has ended nobody will ask: it goes at the next start */
    row.number = number;
    row.ended = true;
    assert_int_equal (metastore_job_update (f->store, &row, &err), 0);
    reopen (f);
    struct decision_log log = metastore_decision_log (f->store);
    assert_int_equal (decide (f, txn, DECISION_ABORT), DECISION_ABORT);
    log.ops->forget (log.self, txn);
    assert_int_equal (decide (f, txn, DECISION_COMMIT), DECISION_COMMIT);
}

static void numbers_of_a_group_are_its_members_own (void **state)
{
    struct fixture *f = *state;
    struct job_row row = row_make ("alice");
    uint64_t number = 0, next = 0;
    struct err err;
    assert_int_equal (metastore_job_number (f->store, 3, 1, &next, &err), 0);
    assert_int_equal (next, 2);
    row.number = next;
    assert_int_equal (metastore_job_insert (f->store, &row, &number, &err), 0);
    assert_int_equal (number, 2);
    for (uint32_t self = 0; self < 3; self++) {
        assert_int_equal (metastore_job_number (f->store, 3, self, &next, &err), 0);
        assert_int_equal (next % 3, (self + 1) % 3);
        assert_in_range (next, 3, 5);
    }
}

static void leads_survive (void **state)
{
    struct fixture *f = *state;
    struct arena *arena = arena_create (0);
    struct lead_row row = {.job = 5,
                           .leader = "meta2",
                           .vote = {17, 9, 0},
                           .stands = true,
                           .open = true},
                    back, *rows;
    uint32_t count = 0;
    struct err err;
    assert_int_equal (metastore_lead_load (f->store, 5, arena, &back, &err), ERR_NOT_FOUND);
    assert_int_equal (metastore_lead_save (f->store, &row, &err), 0);
    reopen (f);
    assert_int_equal (metastore_lead_load (f->store, 5, arena, &back, &err), 0);
    assert_string_equal (back.leader, "meta2");
    assert_int_equal (back.vote.promised, 17);
    assert_int_equal (back.vote.accepted, 9);
    assert_int_equal (back.vote.version, 0); /* the job is not here */
    assert_true (back.stands);
    row.job = 8;
    assert_int_equal (metastore_lead_save (f->store, &row, &err), 0);
    assert_int_equal (metastore_leads_open (f->store, "meta2", 5, 10, arena, &rows, &count, &err),
                      0);
    assert_int_equal (count, 1);
    assert_int_equal (rows[0].job, 8);
    assert_int_equal (metastore_lead_leader (f->store, 8, "meta3", &err), 0);
    assert_int_equal (metastore_leads_open (f->store, "meta2", 0, 10, arena, &rows, &count, &err),
                      0);
    assert_int_equal (count, 1);
    row.open = false;
    row.job = 5;
    assert_int_equal (metastore_lead_save (f->store, &row, &err), 0);
    assert_int_equal (metastore_leads_open (f->store, "meta2", 0, 10, arena, &rows, &count, &err),
                      0);
    assert_int_equal (count, 0);
    arena_destroy (arena);
}

static void over_add (struct fixture *f, uint64_t job)
{
    struct lead_row row = {
        .job = job, .leader = "meta2", .vote = {17, 9, 0}, .stands = true, .open = true};
    struct err err;
    assert_int_equal (metastore_lead_save (f->store, &row, &err), 0);
    assert_int_equal (metastore_lead_closed (f->store, job, &err), 0);
}

/* By when they came to be over, or changed after that. */
static void over_is_listed_in_order (void **state)
{
    struct fixture *f = *state;
    struct arena *arena = arena_create (0);
    struct lead_row *rows, open = {.job = 6, .leader = "meta2", .open = true}, back;
    uint32_t count = 0;
    uint64_t place = 9;
    struct err err;
    assert_int_equal (metastore_leads_over_last (f->store, &place, &err), 0);
    assert_int_equal (place, 0);
    over_add (f, 5);
    over_add (f, 8);
    over_add (f, 2);
    assert_int_equal (metastore_lead_save (f->store, &open, &err), 0);
    assert_int_equal (metastore_leads_over (f->store, 0, 10, arena, &rows, &count, &err), 0);
    assert_int_equal (count, 3);
    assert_true (rows[0].job == 5 && rows[1].job == 8 && rows[2].job == 2);
    assert_int_equal (metastore_lead_closed (f->store, 5, &err), 0);
    reopen (f);
    assert_int_equal (metastore_leads_over (f->store, rows[1].place, 1, arena, &rows, &count, &err),
                      0);
    assert_int_equal (count, 1);
    assert_int_equal (rows[0].job, 2);
    assert_int_equal (
        metastore_leads_over (f->store, rows[0].place, 10, arena, &rows, &count, &err), 0);
    assert_int_equal (count, 1);
    assert_int_equal (rows[0].job, 5);
    assert_int_equal (metastore_leads_over_last (f->store, &place, &err), 0);
    assert_int_equal (place, rows[0].place);
    assert_int_equal (metastore_lead_load (f->store, 6, arena, &back, &err), 0);
    assert_int_equal (back.place, 0);

    assert_int_equal (metastore_followed_load (f->store, "meta2", &place, &err), 0);
    assert_int_equal (place, 0);
    assert_int_equal (metastore_followed_save (f->store, "meta2", 7, &err), 0);
    assert_int_equal (metastore_followed_save (f->store, "meta3", 3, &err), 0);
    assert_int_equal (metastore_followed_save (f->store, "meta2", 8, &err), 0);
    assert_int_equal (metastore_followed_load (f->store, "meta2", &place, &err), 0);
    assert_int_equal (place, 8);
    arena_destroy (arena);
}

/* All of a job, written at another member as it is here; then what has changed of it. */
static void rows_are_the_same_job_elsewhere (void **state)
{
    struct fixture *f = *state;
    struct err err;
    char path[128];
    snprintf (path, sizeof path, "%s/there", f->dir);
    struct metastore *there = metastore_open (path, &err);
    struct arena *arena = arena_create (0);
    struct job_row row = row_make ("alice"), back;
    struct component_row component = {.index = 0,
                                      .name = "left",
                                      .site = "alpha",
                                      .site_job_id = "alpha.1",
                                      .info = {"info", 4}},
                         *components;
    struct coalloc_record *record = coalloc_create (1, NULL), *copy = NULL;
    Nui__Meta__V1__StoredRow **rows;
    uint64_t number = 0, other = 0;
    uint32_t count = 0;
    size_t n = 0;
    row.number = 4;
    assert_int_equal (metastore_job_insert (f->store, &row, &number, &err), 0);
    assert_int_equal (metastore_component_save (f->store, 4, &component, &err), 0);
    record->phase = COALLOC_PREPARE;
    record->transaction[3] = 7;
    snprintf (record->part[0].site, sizeof record->part[0].site, "alpha");
    assert_int_equal (metastore_coalloc_save (f->store, 4, METASTORE_PRESENT, record, &err), 0);

    assert_int_equal (metastore_rows_load (f->store, 4, false, arena, &rows, &n, &err), 0);
    assert_int_equal (n, 4);
    assert_int_equal (metastore_rows_save (there, 4, rows, n, &other, &err),
                      ERR_NOT_FOUND); /* no envelope */
    assert_int_equal (metastore_rows_load (f->store, 4, true, arena, &rows, &n, &err), 0);
    assert_int_equal (metastore_rows_save (there, 4, rows, n, &other, &err), 0);
    assert_false (metastore_rows_ended (rows, n));
    assert_int_equal (metastore_job_load (there, 4, arena, &back, &err), 0);
    assert_string_equal (back.submitter, row.submitter);
    assert_int_equal (back.envelope.len, row.envelope.len);
    assert_memory_equal (back.envelope.bytes, row.envelope.bytes, row.envelope.len);

    row.site = "beta";
    row.ended = true;
    assert_int_equal (metastore_job_update (f->store, &row, &err), 0);
    record->part[0].state = PART_GONE;
    assert_int_equal (metastore_coalloc_save (f->store, 4, METASTORE_PRESENT, record, &err), 0);
    assert_int_equal (metastore_rows_load (f->store, 4, false, arena, &rows, &n, &err), 0);
    assert_true (metastore_rows_ended (rows, n));
    assert_int_equal (metastore_rows_save (there, 4, rows, n, &other, &err), 0);
    assert_int_equal (metastore_job_load (there, 4, arena, &back, &err), 0);
    assert_string_equal (back.site, "beta");
    assert_int_equal (back.envelope.len, row.envelope.len); /* it was there */
    assert_int_equal (metastore_component_load (there, 4, arena, &components, &count, &err), 0);
    assert_int_equal (count, 1);
    assert_memory_equal (components[0].info.bytes, "info", 4);
    assert_int_equal (metastore_coalloc_load (there, 4, METASTORE_PRESENT, &copy, &err), 0);
    assert_int_equal (copy->part[0].state, PART_GONE);
    assert_int_equal (copy->transaction[3], 7);

    /* what was signed once is one job, and a number is one job's */
    assert_int_equal (metastore_rows_save (there, 5, rows, n, &other, &err), ERR_INVALID);
    for (size_t i = 0; i < n; i++)
        for (size_t v = 0; v < rows[i]->n_values; v++)
            if (strcmp (rows[i]->values[v]->column, i ? "job" : "number") == 0)
                rows[i]->values[v]->number = 5;
    assert_int_equal (metastore_rows_save (there, 5, rows, n, &other, &err), ERR_EXISTS);
    assert_int_equal (other, 4);
    for (size_t v = 0; v < rows[0]->n_values; v++)
        if (strcmp (rows[0]->values[v]->column, "uuid") == 0) {
            Nui__Meta__V1__StoredValue blob = *rows[0]->values[v];
            rows[0]->values[v]->is_case = NUI__META__V1__STORED_VALUE__IS_NUMBER;
            rows[0]->values[v]->number = -1;
            assert_int_equal (metastore_rows_save (there, 5, rows, n, &other, &err), ERR_INVALID);
            *rows[0]->values[v] = blob;
        }
    rows[0]->values[0]->column = (char *)"no such";
    assert_int_equal (metastore_rows_save (there, 5, rows, n, &other, &err), ERR_INVALID);
    assert_int_equal (metastore_rows_delete (there, 4, &err), 0);
    assert_int_equal (metastore_job_load (there, 4, arena, &back, &err), ERR_NOT_FOUND);
    coalloc_destroy (record);
    coalloc_destroy (copy);
    arena_destroy (arena);
    metastore_close (there);
    unlink (path);
}

static int64_t asked (const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
    assert_int_equal (sqlite3_prepare_v2 (db, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal (sqlite3_step (q), SQLITE_ROW);
    int64_t out = sqlite3_column_int64 (q, 0);
    sqlite3_finalize (q);
    sqlite3_close (db);
    return out;
}

/* Each job of an array that another member sends has all that was signed; on disk it is once, until it differs or its place
 * goes. */
static void an_array_has_one_envelope (void **state)
{
    struct fixture *f = *state;
    char path[160];
    struct err err;
    snprintf (path, sizeof path, "%s/there", f->dir);
    struct metastore *there = metastore_open (path, &err);
    struct arena *arena = arena_create (0);
    struct job_row row = row_make ("alice"), back;
    const struct metastore_blob signed_for_all = row.envelope, other = {"another", 7};
    const char all[] = "SELECT count (*) FROM job WHERE length (envelope) > 0";
    Nui__Meta__V1__StoredRow **rows;
    uint64_t number = 0, same = 0;
    size_t n = 0;
    assert_true (signed_for_all.len > 0);
    for (uint64_t i = 10; i < 15; i++) {
        row.number = i;
        row.array = 10;
        row.element = (uint32_t)(i - 9);
        row.uuid.b[15] = (uint8_t)i;
        row.envelope = i == 10 ? signed_for_all : (struct metastore_blob){"", 0};
        assert_int_equal (metastore_job_insert (f->store, &row, &number, &err), 0);
        assert_int_equal (metastore_rows_load (f->store, i, true, arena, &rows, &n, &err), 0);
        assert_int_equal (metastore_rows_save (there, i, rows, n, &same, &err), 0);
    }
    assert_int_equal (asked (path, all), 1);
    assert_int_equal (metastore_job_envelope_put (there, 12, &other, &err), 0);
    assert_int_equal (asked (path, all), 2);
    assert_int_equal (metastore_job_envelope_put (there, 12, &signed_for_all, &err), 0);
    assert_int_equal (asked (path, all), 1);
    assert_int_equal (metastore_rows_delete (there, 10, &err), 0);
    assert_int_equal (asked (path, all), 4);
    assert_int_equal (metastore_job_load (there, 14, arena, &back, &err), 0);
    assert_int_equal (back.envelope.len, signed_for_all.len);
    assert_memory_equal (back.envelope.bytes, signed_for_all.bytes, signed_for_all.len);
    arena_destroy (arena);
    metastore_close (there);
    unlink (path);
}

/* number: its own, of which array, when it ended and its signature does; 0: it lives. */
static void past_add (struct fixture *f, uint64_t number, uint64_t array, time_us end,
                      time_us expires)
{
    struct job_row row = row_make ("alice");
    struct err err;
    row.number = number;
    row.array = array;
    row.element = array ? (uint32_t)(number - array + 1) : 0;
    row.expires_us = expires;
    assert_int_equal (metastore_job_insert (f->store, &row, &number, &err), 0);
    row.number = number;
    row.ended = end > 0;
    row.end_us = end;
    assert_int_equal (metastore_job_update (f->store, &row, &err), 0);
}

/* "4 1 …" of those before that moment, two at a time. */
static const char *past_numbers (struct fixture *f, time_us before)
{
    static char text[128];
    struct past_row at = {0}, *rows;
    uint32_t count = 2;
    struct err err;
    for (*text = '\0'; count == 2;) {
        assert_int_equal (past_list (f->store, before, &at, 2, f->arena, &rows, &count, &err), 0);
        for (uint32_t i = 0; i < count; i++, at = rows[i - 1])
            snprintf (text + strlen (text), sizeof text - strlen (text), "%s%llu", *text ? " " : "",
                      (unsigned long long)rows[i].number);
    }
    return text;
}

static void the_past_is_over_and_goes (void **state)
{
    struct fixture *f = *state;
    struct past_row row = {.over = 100, .end = 50, .number = 1};
    struct job_row back;
    time_us forgotten = 1;
    bool is = true;
    struct err err;
    past_add (f, 1, 0, 50, 100); /* its signature is the later one */
    past_add (f, 2, 0, 80, 60);
    past_add (f, 3, 0, 0, 10); /* it lives */
    past_add (f, 4, 0, 80, 20);
    past_add (f, 5, 5, 70, 20);
    past_add (f, 6, 5, 90, 20);
    assert_string_equal (past_numbers (f, 80), "5");
    assert_string_equal (past_numbers (f, 81), "5 2 4");
    assert_string_equal (past_numbers (f, 1000), "5 2 4 6 1");
    assert_int_equal (past_array_over (f->store, 5, 90, &is, &err), 0);
    assert_false (is);
    assert_int_equal (past_array_over (f->store, 5, 91, &is, &err), 0);
    assert_true (is);
    assert_int_equal (metastore_arriving_put (f->store, 5, &err), 0);
    assert_int_equal (past_array_over (f->store, 5, 91, &is, &err), 0);
    assert_false (is); /* the others are still to come */
    assert_int_equal (past_array_last (f->store, 5, &is, &err), 0);
    assert_false (is);
    assert_int_equal (past_forgotten (f->store, &forgotten, &err), 0);
    assert_int_equal (forgotten, 0);
    assert_int_equal (past_forget (f->store, &row, &err), 0);
    row = (struct past_row){.over = 90, .end = 90, .number = 6, .array = 5};
    assert_int_equal (past_forget (f->store, &row, &err), 0);
    row = (struct past_row){.over = 80, .end = 80, .number = 2};
    assert_int_equal (past_forget (f->store, &row, &err), 0);
    reopen (f);
    assert_int_equal (past_forgotten (f->store, &forgotten, &err), 0);
    assert_int_equal (forgotten, 90); /* the latest, in whatever order they went */
    assert_int_equal (past_array_last (f->store, 5, &is, &err), 0);
    assert_true (is);
    assert_string_equal (past_numbers (f, 1000), "5 4");
    assert_int_equal (metastore_job_load (f->store, 1, f->arena, &back, &err), ERR_NOT_FOUND);
}

static void epochs_grow (void **state)
{
    struct fixture *f = *state;
    uint64_t first = metastore_epoch (f->store);
    reopen (f);
    assert_true (metastore_epoch (f->store) > first);
}

#define TEST(f) cmocka_unit_test_setup_teardown (f, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (jobs_survive),
        TEST (uuid_is_unique_per_submitter),
        TEST (lists),
        TEST (records_survive),
        TEST (components_survive),
        TEST (transactions_are_whole),
        TEST (the_first_decision_stands),
        TEST (epochs_grow),
        TEST (the_past_is_over_and_goes),
        TEST (numbers_of_a_group_are_its_members_own),
        TEST (leads_survive),
        TEST (numbers_of_a_group_are_its_members_own),
        TEST (over_is_listed_in_order),
        TEST (rows_are_the_same_job_elsewhere),
        TEST (an_array_has_one_envelope),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
