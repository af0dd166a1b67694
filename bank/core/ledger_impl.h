/* Shared inside bank/core: how decisions are applied to a view. Pure. */
#ifndef NUI_BANK_CORE_LEDGER_IMPL_H
#define NUI_BANK_CORE_LEDGER_IMPL_H

#include "bank/core/ledger.h"
#include "bank/core/operation.h"

struct hold_link {
    struct ledger_hold *hold;
    struct hold_link *next;
};

struct hold_list {
    struct hold_link *first;
};

void vec_push (struct ledger_view *view, struct ledger_vec *vec, void *item);

/* The allocation is to be written. */
void alloc_touch (struct ledger_view *view, struct ledger_alloc *alloc);

/* The entries of one operation, netted per (allocation, layer) and appended by journal_close.
 * The operation's id is view->next.op. */
struct journal {
    struct ledger_view *view;
    time_us effective_at;
    struct ledger_vec legs; /* struct ledger_entry */
};

/* Moves amount from one allocation to another in a layer; 0 is nothing. */
void journal_move (struct journal *j, char layer, int64_t from_account, int64_t from_alloc,
                   int64_t to_account, int64_t to_alloc, credit_micro amount);
void journal_close (struct journal *j);

/* ---- funds.c ---- */

struct share {
    struct ledger_alloc *alloc;
    credit_micro amount;
};

/* Whose job it is and where it runs, as far as allocations look at it; NULL or "": not said. */
struct funding {
    const char *identity, *site, *machine, *qos;
    time_us at;
};

/* An account that may pay, and the QoS that it pays for ("": the job's own). */
struct candidate {
    struct ledger_account *account;
    const char *qos;
};

/* The account asked for, then its fallbacks at a site, nearest first, each once (rules F1, F2). */
uint32_t funds_candidates (const struct ledger_view *view, struct ledger_account *asked,
                           const char *site, struct candidate out[LEDGER_CANDIDATES_MAX]);
bool funds_may_use (const struct ledger_view *view, const struct ledger_account *account,
                    const char *identity);
/* Whether an allocation may pay for it. */
bool funds_usable (const struct ledger_view *view, const struct ledger_account *account,
                   const struct ledger_alloc *alloc, const struct funding *f);
bool funds_overdrawn (const struct ledger_account *account);
/* What the account's project owes from allocations that ended below zero. */
credit_micro funds_debt (const struct ledger_view *view, const struct ledger_account *account);
/* Examines one candidate for an amount. Returns true when it can pay; else fills *why. */
bool funds_check (const struct ledger_view *view, const struct ledger_account *account,
                  const struct funding *f, credit_micro amount, bool fallback,
                  struct ledger_candidate *why);
/* Greedy over usable allocations in rule H2's order; the account was checked. Returns shares. */
uint32_t funds_fill (struct ledger_view *view, const struct ledger_account *account,
                     const struct funding *f, credit_micro amount, struct share **out);
/* One sentence naming every candidate (rule F4). */
const char *funds_refusal_text (const struct ledger_view *view, credit_micro amount,
                                const struct ledger_candidate *candidate, uint32_t count);

/* ---- scope.c ---- */

/* unsaid: the answer where no rule of the kind names anything. */
bool scope_admits (const struct ledger_scopes *scopes, enum ledger_scope_kind kind,
                   const char *name, bool member, bool unsaid);
uint32_t scope_narrowness (const struct ledger_scopes *scopes); /* kinds that are narrowed */
bool scopes_refused (struct ledger_view *view, const struct ledger_scopes *scopes, bool users_only,
                     struct ledger_outcome *out);

/* ---- place.c: jobs on accounts, all or nothing ---- */

/* One job, priced. place_begin fills all but qos and share, which the candidate decides. */
struct placing {
    const struct ledger_hold_ask *ask;
    struct funding funding;
    const struct ledger_rate *rate;
    struct ledger_pin *pin; /* whose rates it has; NULL: no quote's */
    struct price_use use;
    struct price_terms terms;
    credit_micro own_amount; /* at the job's own QoS */
    credit_micro amount;
    const char *code; /* why it cannot be priced */
    const char *qos;  /* of the fallback; "": the job's own */
    struct share *share;
    uint32_t shares;
};

/* Prices a job at the rates in force; *why_out: it cannot be, though its quantities are in bounds.
 */
int place_begin (struct ledger_view *view, const struct ledger_hold_ask *ask, const char *identity,
                 struct placing *p, const char **why_out, struct err *err);
/* Finds the one account that pays for all of them, at most so much, and counts them as held there; NULL when none
 * can: then nothing is, and candidate (capacity LEDGER_CANDIDATES_MAX) says why. */
struct ledger_account *place_all (struct ledger_view *view, const char *account, struct placing *p,
                                  uint32_t count, credit_micro most,
                                  struct ledger_candidate *candidate, uint32_t *candidate_count);
void place_undo (struct placing *p, uint32_t count);

/* ---- hold.c ---- */

/* Not granted is an answer, not an error: it is recorded and given again for the same key. */
void hold_refuse (struct ledger_outcome *out, const char *code, const char *text);
/* The nodes of an ask as a hold keeps them, and whether a hold was made for those of an ask. */
const char *nodes_text (struct ledger_view *view, const struct ledger_ask *ask);
bool nodes_same (const struct ledger_ask *ask, const char *text);

/* ---- bounds.c: what was signed of one hold or charge ---- */

/* The processors that a signed part may have at a site: those of its tasks, or of whole nodes. */
int64_t bounds_procs (const struct ledger_bounds *b, const struct ledger_site *site);
/* Thousandths of processor equivalents that so many processors and so much memory may count as. */
int64_t bounds_pe (const struct ledger_site *site, int64_t procs, int64_t memory_mb);
/* True, and why, for a hold of a signed job beyond that. */
bool bounds_refused (struct ledger_view *view, const struct ledger_hold_ask *ask,
                     struct ledger_outcome *out);
/* Cuts what a charge claims to what its hold, or without one the signed job, stands for, and to the bank's now.
 * Returns what was cut, in words; "": nothing. */
const char *bounds_cut (struct ledger_view *view, const struct ledger_request *req,
                        const struct ledger_hold *hold, struct price_use *use);

/* ---- signed.c: what one signed job may have in all ---- */

/* The hold number `at` of a request's: true, and why, where the user's signature does not stand for it. when: the
 * moment at which the job must not have expired. */
bool signed_refused (struct ledger_view *view, const struct ledger_hold_ask *all, uint32_t at,
                     const char *identity, time_us when, struct ledger_outcome *out);
/* Why the signed job of a charge without a hold does not pay for it; NULL: it does. */
const char *signed_not_charged (struct ledger_view *view, const struct ledger_request *req);
/* The hold, or the usage (its number, negative) without one, is one of the signed job's. */
void signed_keep (struct ledger_view *view, const struct ledger_hold_ask *ask, const char *identity,
                  int64_t hold_id);
/* What its holds keep and its runs were charged, but for a run (NULL: all). */
credit_micro signed_spent (const struct ledger_view *view, const char *identity,
                           const struct uuid *uuid, const struct ledger_job *but);

/* ---- freeze.c ---- */

/* Why an account, its project or one above, or a user may promise nothing now; NULL: they may. */
const char *freeze_of (const struct ledger_view *view, const struct ledger_account *account,
                       const char *identity);
/* The same of an allocation's grant. */
const char *freeze_of_grant (const struct ledger_view *view, const struct ledger_alloc *alloc);

/* ---- quote.c ---- */

/* Whether a job may have the rates of the quote that it names; else *code_out and *why_out. at: when
 * it is held, or began. */
struct ledger_pin *pin_for (const struct ledger_view *view, const struct ledger_ask *ask,
                            const char *identity, time_us at, const char **code_out,
                            const char **why_out);
/* The card that it keeps for a site; NULL: none. */
const struct ledger_rate *pin_card (const struct ledger_view *view, const struct ledger_pin *pin,
                                    const char *site);
/* The operation at hand has used its rates, once however often this is said. */
void pin_use (struct ledger_view *view, struct ledger_pin *pin, const char *job,
              const char *job_name);
/* ", at the rates of quote.7" for what people read; "" without one. */
const char *pin_note (const struct ledger_view *view, const struct ledger_pin *pin);

/* ---- rights.c ---- */

/* True, with the sentence, when a person may not do it. */
bool rights_refused (struct ledger_view *view, const struct ledger_request *req,
                     const struct operation *row, struct ledger_outcome *out);

/* ---- the operations; each fills out and applies itself when it is not refused ---- */

operation_decide decide_freeze, decide_quote, decide_clock, decide_quote_cancel, decide_hold,
    decide_hold_group, decide_extend, decide_charge, decide_release, decide_deposit, decide_project,
    decide_user, decide_member, decide_account_create, decide_account_modify, decide_rate,
    decide_site, decide_withdraw, decide_transfer, decide_refund, decide_limit,
    decide_account_close, decide_account_reopen, decide_carry, decide_funder, decide_grant,
    decide_split, decide_split_back, decide_grant_extend, decide_grant_amend, decide_grant_revoke,
    decide_account_rename, decide_project_move, decide_recon, decide_recon_set, decide_role,
    decide_expire, decide_begin, decide_told;

/* The hold that "hold.7" names; NULL when there is none in the view. */
struct ledger_hold *hold_named (const struct ledger_view *view, const char *hold_id);
bool same_job (const struct ledger_job *a, const struct ledger_job *b);
/* The rates that a hold pins. */
struct price_terms hold_terms (struct ledger_view *view, const struct ledger_hold *hold,
                               enum price_rounding rounding);
/* Of a deposit or a grant, whatever its account is. */
bool deposit_malformed (struct ledger_view *view, const struct ledger_request *req,
                        struct ledger_outcome *out);
/* True, with the sentence, when a name may not be one. */
bool name_refused (struct ledger_view *view, const char *what, const char *name,
                   struct ledger_outcome *out);
/* What a card says about a job; false, with a sentence, when it names others of a kind but not the
 * job's (terms are then filled as if it said 1). */
bool rate_terms (struct ledger_view *view, const struct ledger_rate *rate,
                 const struct ledger_ask *ask, enum price_rounding rounding,
                 struct price_terms *terms, const char **why_out);
/* The part of it that is for nodes by type (count 0: not known). */
bool rate_nodes (struct ledger_view *view, const struct ledger_rate *rate,
                 const struct ledger_nodes *nodes, uint32_t count, enum price_rounding rounding,
                 struct price_terms *terms, const char **why_out);
const struct ledger_rate *rate_version (const struct ledger_view *view, const char *site,
                                        uint32_t version);

/* A new row of reconciliation, that the operation at hand opens. */
void recon_open (struct ledger_view *view, const char *site, const struct ledger_finding *finding);

/* ---- correct.c; those that answer "refused" fill out ---- */

bool amount_refused (struct ledger_view *view, const char *what, credit_micro amount,
                     struct ledger_outcome *out);
/* Of a transfer or a split, whatever its accounts are. */
bool transfer_malformed (struct ledger_view *view, const struct ledger_request *req,
                         struct ledger_outcome *out);
/* Whether both names mean one account: one has the names that it had before, too. */
bool same_account (const struct ledger_view *view, const char *a, const char *b);
/* An account of a project; NULL when refused. */
struct ledger_account *project_account (struct ledger_view *view, const char *name,
                                        struct ledger_outcome *out);
bool too_much (struct ledger_view *view, const char *what, const struct ledger_account *account,
               credit_micro amount, struct ledger_outcome *out);
/* What can be taken out of an account: credits that are there, that no hold keeps and that are no
 * credit; of one allocation, or of those that are valid now, the one that ends first first. What is frozen can be
 * withdrawn, but not moved to where it may be spent; an agency takes what it gave itself. Returns the number of
 * shares, 0 when refused. */
uint32_t shares_free (struct ledger_view *view, const char *what, const char *agency, bool moves,
                      const struct ledger_account *account, int64_t alloc_id, credit_micro amount,
                      struct share **out_shares, struct ledger_outcome *out);
/* A share is no longer granted there. */
void share_leave (struct ledger_view *view, const struct share *share);
/* At most so much of what an allocation has free repays the account's other allocations. */
void debt_repay (struct ledger_view *view, struct journal *j, const struct ledger_account *account,
                 struct ledger_alloc *from, credit_micro most);

/* What a project owes; NULL: it never did. */
struct ledger_account *debt_account (const struct ledger_view *view,
                                     const struct ledger_account *account);
/* The operation at hand concerns it: its statement says so. */
void about_add (struct ledger_view *view, const char *what, int64_t id);

/* Moves what an allocation that has ended, or is of a closed account, has left, and nothing holds, to bank:expired,
 * or back to where grants come from; or what it is below zero, when nothing is held any more, to what its project
 * owes. Returns what it moved. */
credit_micro expire_rest (struct ledger_view *view, struct journal *j, struct ledger_alloc *alloc);

/* Refuses: the outcome is recorded when it depended on the ledger's state. What a request is
 * malformed by whatever the state is must be asked first: it is not recorded, so that the same
 * request again has the same answer only if no state is asked before. */
void outcome_refuse (struct ledger_view *view, struct ledger_outcome *out, int code, bool record,
                     const char *fmt, ...) __attribute__ ((format (printf, 5, 6)));

/* Notes a number of the site's outbox, and returns the highest up to which all have arrived; 0 is not noted. What moves
 * the mark is recorded: a refused charge has arrived too, and must not come for ever (I4). */
uint64_t site_arrived (struct ledger_view *view, const char *name, uint64_t sequence,
                       struct ledger_outcome *out);

#endif
