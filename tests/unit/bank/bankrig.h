/* bankrig: a committer on a loop of its own, asked as if it were a function. Answers are text. */
#ifndef NUI_TESTS_BANK_BANKRIG_H
#define NUI_TESTS_BANK_BANKRIG_H

#include <stdbool.h>

#include "bank/store/committer.h"

struct bankrig {
    struct event_base *base;
    struct committer *committer;
    bool up;
    uint64_t keys; /* for keys that are made here */
};

struct answer {
    bool given;
    struct err err;
    char text[2048]; /* of the reply */
};

/* The text of a reply, as the rig stores it. */
void bankrig_encode (void *arg, const struct ledger_request *req, const struct ledger_outcome *out,
                     struct strbuf *bytes);

void bankrig_open (struct bankrig *rig, const char *conninfo);
bool bankrig_wait_up (struct bankrig *rig, bool up); /* false after 120 s */
bool bankrig_wait_second (struct bankrig *rig,
                          bool up); /* the second connection; false after 30 s */
void bankrig_close (struct bankrig *rig);
/* Every rig's clock is so far ahead of the machine's, from now on. */
void bankrig_clock_shift (duration_us shift);
/* Of rigs that are opened from now on: committer_config.numbers_per_s. Else numbers can be told beforehand. */
void bankrig_numbers_leap (int64_t per_s);
/* Sends without waiting; *answer is filled when the loop runs. Retries while the bank is away. */
void bankrig_send (struct bankrig *rig, const struct ledger_request *req, struct answer *answer);
/* Runs the loop until the answer is there; aborts after 120 s. */
void bankrig_await (struct bankrig *rig, struct answer *answer);
struct answer bankrig_ask (struct bankrig *rig, const struct ledger_request *req);

/* Requests with a fresh key; hash_of makes the hash from all that counts in it. */
void request_seal (struct ledger_request *req);
struct ledger_request req_new (struct bankrig *rig, enum ledger_kind kind, const char *client);
struct ledger_request req_project (struct bankrig *rig, const char *name);
struct ledger_request req_user (struct bankrig *rig, const char *identity);
struct ledger_request req_member (struct bankrig *rig, const char *project, const char *identity);
/* Until the next one is made: its fallbacks are kept in one place. */
struct ledger_request req_account (struct bankrig *rig, const char *name, const char *project,
                                   const char *const *fallbacks, uint32_t count);
struct ledger_request req_deposit (struct bankrig *rig, const char *account, credit_micro amount,
                                   time_us from, time_us to);
struct ledger_request req_rate (struct bankrig *rig, const char *site, int64_t ppm);
struct ledger_request req_hold (struct bankrig *rig, const char *site, const char *job,
                                const char *account, const char *user, int64_t procs,
                                int64_t seconds);
/* As if a user had signed for what it asks, and for no more. */
void ask_sign (struct ledger_hold_ask *ask);
struct ledger_request req_charge (struct bankrig *rig, const char *site, const char *job,
                                  const char *hold, int64_t procs, time_us start, int64_t seconds,
                                  bool final);
struct ledger_request req_release (struct bankrig *rig, const char *site, const char *hold);
struct ledger_request req_withdraw (struct bankrig *rig, const char *account, credit_micro amount);
struct ledger_request req_transfer (struct bankrig *rig, const char *from, const char *to,
                                    credit_micro amount);
struct ledger_request req_refund (struct bankrig *rig, int64_t charge_op, credit_micro amount);
/* By an operator, for an audit. name NULL: a grant. */
struct ledger_request req_freeze (struct bankrig *rig, enum ledger_freezable what, const char *name,
                                  int64_t grant, bool undo);
struct ledger_request req_limit (struct bankrig *rig, int64_t allocation_id, credit_micro limit);

#endif
