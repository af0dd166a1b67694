/* fundread: grants and how they burn down, what jobs were charged, who has a role.
 *
 * Results are valid during the callback only; every call ends with exactly one, from the loop. who
 * limits what is seen, as in reader.h. */
#ifndef NUI_BANK_STORE_FUNDREAD_H
#define NUI_BANK_STORE_FUNDREAD_H

#include "bank/store/reader.h"

struct fund_grant {
    int64_t id;
    const char *funder, *reference, *account, *project;
    credit_micro granted, settled, held, left, ended;
    const char *granted_wide, *settled_wide, *held_wide, *left_wide, *ended_wide; /* see reader.h */
    time_us valid_from, valid_to, given;
    const char *frozen, *revoked; /* "": it is not */
    int64_t accounts;
};

typedef void (*fundread_grants_f) (void *arg, const struct err *err, const struct fund_grant *grant,
                                   uint32_t count);
/* funder "": all; id 0: all. */
void fundread_grants (struct reader *reader, const char *who, const char *funder, int64_t id,
                      fundread_grants_f done, void *arg);

/* What had moved by the end of a day (UTC, counted from 1970); day -1: before the period. */
struct fund_day {
    int64_t day;
    credit_micro granted, charged, net;
    const char *granted_wide, *charged_wide, *net_wide;
};

struct fund_share {
    const char *project, *account, *site;
    int64_t jobs;
    credit_micro charged;
    const char *charged_wide;
};

/* What was decided on it. */
struct fund_event {
    time_us at;
    const char *kind, *who, *note;
    int64_t op_id;
};

struct fund_statement {
    const struct fund_day *day;
    uint32_t day_count;
    const struct fund_share *share;
    uint32_t share_count;
    const struct fund_event *event;
    uint32_t event_count;
};

typedef void (*fundread_statement_f) (void *arg, const struct err *err,
                                      const struct fund_statement *statement);
/* [from, to) by the moment of recording; the caller knows that the grant may be seen. */
void fundread_statement (struct reader *reader, int64_t grant, time_us from, time_us to,
                         fundread_statement_f done, void *arg);

struct fund_job {
    int64_t number;
    struct ledger_job job;
    const char *identity, *account, *formula;
    int64_t procs, hold_id, charges, op_id;
    time_us start, end, recorded;
    credit_micro total, refunded;
    int64_t rate_version, rate_due;
    bool final, expired_use;
    const char *by_hand; /* who, to put no row of a reconciliation right; "": nobody */
};

typedef void (*fundread_jobs_f) (void *arg, const struct err *err, const struct fund_job *job,
                                 uint32_t count);
/* Ended in [from, to), by number, after one. own: a site's name that sees its jobs, or NULL; site
 * "": of all sites. With site_job, all incarnations of that job of the site, whenever they ended. */
struct fund_jobs_ask {
    const char *own, *site, *site_job;
    time_us from, to;
    int64_t after;
    uint32_t limit;
};
void fundread_jobs (struct reader *reader, const char *who, const struct fund_jobs_ask *ask,
                    fundread_jobs_f done, void *arg);

/* A charge or a refund, with its run as the charge told of it. */
struct fund_record {
    int64_t op_id, charge_op;
    time_us recorded;
    credit_micro paid, disputed; /* below 0: given back */
    struct ledger_job job;
    const char *identity, *account, *project, *qos, *machine;
    int64_t procs;
    time_us since, start, end;
    bool final, successful;
    duration_us cpu, walltime;
    struct ledger_ran ran;
};

typedef void (*fundread_records_f) (void *arg, const struct err *err,
                                    const struct fund_record *record, uint32_t count);
/* Recorded in [from, to), by operation, after one; own and site as for jobs, account "": of all. */
struct fund_records_ask {
    const char *own, *site, *account;
    time_us from, to;
    int64_t after;
    uint32_t limit;
};
void fundread_records (struct reader *reader, const char *who, const struct fund_records_ask *ask,
                       fundread_records_f done, void *arg);

/* A row of reconciliation. */
struct fund_recon {
    struct ledger_recon row;
    time_us opened, closed;
    const char *state, *note; /* "open", "closed", "gone" */
    int64_t cured_op;
};

typedef void (*fundread_recons_f) (void *arg, const struct err *err, const struct fund_recon *row,
                                   uint32_t count);
/* By number, after one; own and site as for jobs. */
void fundread_recons (struct reader *reader, const char *who, const char *own, const char *site,
                      bool closed_too, int64_t after, uint32_t limit, fundread_recons_f done,
                      void *arg);

/* Rows of a site that have no owner and are open. */
struct fund_unowned {
    const char *site;
    int64_t rows;
    const char *text; /* of the first */
};
typedef void (*fundread_unowned_f) (void *arg, const struct err *err,
                                    const struct fund_unowned *row, uint32_t count);
void fundread_unowned (struct reader *reader, fundread_unowned_f done, void *arg);

/* Allocations whose leads are to hear of them: each until the bank has written down that they did. */
struct fund_near {
    int64_t id, what,
        end_s; /* what: 1: four fifths are used, 2: all is, 3: it ends within the month (end_s: then) */
    const char *account, *project, *leads; /* identities, parted by commas */
    credit_micro granted, left;
    time_us end;
};
typedef void (*fundread_near_f) (void *arg, const struct err *err, const struct fund_near *row,
                                 uint32_t count);
void fundread_near (struct reader *reader, time_us now, time_us month, fundread_near_f done,
                    void *arg);

/* What an operator's board shows. */
struct fund_figures {
    int64_t blocks;
    credit_micro suspense; /* claimed, and paid by nobody */
    int64_t unowned;       /* rows of reconciliation */
};
typedef void (*fundread_figures_f) (void *arg, const struct err *err,
                                    const struct fund_figures *figures);
void fundread_figures (struct reader *reader, fundread_figures_f done, void *arg);

struct fund_role {
    const char *identity, *role;
};

typedef void (*fundread_roles_f) (void *arg, const struct err *err, const struct fund_role *role,
                                  uint32_t count);
void fundread_roles (struct reader *reader, const char *who, fundread_roles_f done, void *arg);

#endif
