/* runs: what jobs used from a start to an end (an incarnation each), as the bank was told of it.
 *
 * A row is written in the transaction that ends the run, whether or not the bank is told, with the number of
 * its message in the bank's outbox; what the bank answered is added together with its acknowledgement. Who
 * reconciles compares these rows with the bank's. They stay as long as the history (HISTORYTIME), and one that
 * the bank has not answered until it has. */
#ifndef NUI_LOCAL_STORE_RUNS_H
#define NUI_LOCAL_STORE_RUNS_H

#include "local/store/local_store.h"

/* Strings are never NULL. */
struct store_run {
    uint64_t sequence;    /* given by runs_add */
    const char *site_job; /* "alpha.17", "alpha.john.1" for what a reservation kept idle */
    time_us end;          /* as the bank was told */
    const char *untold;   /* why the bank was told nothing; "": it was */
    uint64_t message;     /* of the outbox to the bank; 0: none */
    credit_micro charged; /* what the bank answered, in all; -1: nothing yet */
    const char *user;     /* local account */
    const char *rm_id;    /* what the resource manager calls it; "": nothing of its own */
    time_us rm_submit;
    /* packed nui.bank.v1.ChargeRequest, without key and envelope, with the claim */
    const void *request;
    size_t request_len;
};

/* In a transaction. */
int runs_add (struct local_store *store, const struct store_run *run, struct err *err);
/* In a transaction: the bank's answer to the last message of a run; nothing for other messages. */
int runs_answered (struct local_store *store, uint64_t message, credit_micro charged,
                   struct err *err);

/* In a transaction: what the bank is told of the run goes by another message now. */
int runs_message_set (struct local_store *store, uint64_t message, uint64_t instead,
                      struct err *err);
/* The run whose last charge is that message; 1, 0 when there is none, or an error. */
int runs_of_message (struct local_store *store, uint64_t message,
                     void (*fn) (void *arg, const struct store_run *run), void *arg,
                     struct err *err);

struct runs_after {
    time_us end;
    uint64_t sequence;
};
/* Runs that ended within [from, until) (until 0: no bound), by end and sequence, after the one given; or, with
 * site_job, all of that job. Strings hold during the callback. O(rows told). */
int runs_read (struct local_store *store, time_us from, time_us until, const char *site_job,
               const struct runs_after *after, uint32_t limit,
               void (*fn) (void *arg, const struct store_run *run), void *arg, struct err *err);
/* 1 when a run under that name of the resource manager ended after the moment, 0, or an error. */
int runs_of_rm_after (struct local_store *store, const char *rm_id, time_us moment,
                      struct err *err);
/* The earliest end there is a row of; 0: none. */
int runs_first (struct local_store *store, time_us *out, struct err *err);
/* In a transaction: up to limit rows that ended before and that the bank has no word to say of, or said that it never
 * will. */
int runs_purge (struct local_store *store, time_us before, uint32_t limit, struct err *err);

#endif
