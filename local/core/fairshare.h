/* fairshare: who used how much lately (Jackson, Snell & Clement 2001, section 6).
 *
 * Pure. Usage is kept per credential and window: window 0 is the present one, window n began n
 * intervals earlier. Windows lie at multiples of FSINTERVAL since the epoch, so that a restart or a
 * long gap rolls them where they would have rolled. Between events usage grows linearly, so running
 * jobs are entered as rates (added at start, removed at end) and fairshare_advance brings every
 * window up to now exactly, splitting at boundaries.
 *
 * Units: processor-seconds (PE-seconds under DEDICATEDPES), as doubles; rates are integers in
 * millionths, so that adding and removing leaves nothing behind. Cost: advance O(credentials with a
 * rate) plus O(all credentials * depth) per boundary crossed; factors O(credentials). */
#ifndef NUI_LOCAL_CORE_FAIRSHARE_H
#define NUI_LOCAL_CORE_FAIRSHARE_H

#include "local/core/policy.h"

struct fairshare;

/* Never NULL. The windows begin with the one that holds `now`. */
struct fairshare *fairshare_create (const struct policy *policy, time_us now);
void fairshare_destroy (struct fairshare *fs); /* NULL is a no-op */

/* Takes another policy (which must outlive it). Another interval or depth spreads the recorded
 * usage evenly over the new windows; what is older than they reach is dropped. */
void fairshare_policy_set (struct fairshare *fs, const struct policy *policy);

/* What a job adds per second, in millionths, by FSPOLICY: procs, PE or procs in use. */
int64_t fairshare_rate_micro (const struct policy *policy, uint32_t procs, double pe,
                              double procs_used);

/* A job of these credentials starts (rate > 0) or ends (the same, negative). CRED_NONE is skipped.
 * Call fairshare_advance to the moment first. */
void fairshare_rate_add (struct fairshare *fs, const uint32_t cred[CRED_KINDS], int64_t rate_micro);
/* Adds to the present window at once. */
void fairshare_charge (struct fairshare *fs, const uint32_t cred[CRED_KINDS], double amount);
/* Adds an amount, which may be negative, that came up evenly between `since` and the moment of the
 * last advance, to the windows of that time. No window falls below 0. */
void fairshare_charge_over (struct fairshare *fs, const uint32_t cred[CRED_KINDS], time_us since,
                            double amount);
/* Up to now; an earlier now than before changes nothing. */
void fairshare_advance (struct fairshare *fs, time_us now);

double fairshare_window (const struct fairshare *fs, enum cred_kind kind, uint32_t id, uint32_t n);
double fairshare_window_total (const struct fairshare *fs, uint32_t n);
/* sum over n of U[n] * DECAY^n */
double fairshare_effective (const struct fairshare *fs, enum cred_kind kind, uint32_t id);
double fairshare_effective_total (const struct fairshare *fs);
double fairshare_percent (const struct fairshare *fs, enum cred_kind kind, uint32_t id);

/* The factor of priority's FS component: target - percent (or 1 - usage/target where FSPOLICY ends
 * in %), 0 without a target and for caps, only upwards for a floor, only downwards for a ceiling.
 */
double fairshare_factor (const struct fairshare *fs, enum cred_kind kind, uint32_t id);
/* All of a kind at once, for priority_fairshare_set: fills factor[0..count). */
void fairshare_factors (const struct fairshare *fs, enum cred_kind kind, double *factor,
                        uint32_t count);
/* Of a credential that used nothing and has DEFAULT's target. */
double fairshare_factor_other (const struct fairshare *fs, enum cred_kind kind);
/* One past the highest credential number with usage or a record of its own. */
uint32_t fairshare_count (const struct fairshare *fs, enum cred_kind kind);

/* A cap that forbids a job: usage + amount (rate * limit, in the policy's unit) is over it. */
struct fairshare_block {
    enum cred_kind kind;
    uint32_t id;
    enum fs_target_type type;
    double target;
    double value; /* what usage (absolute) or percent (relative) would be */
};
/* true: blocked, by *block. With nothing delivered yet a relative cap blocks nobody. */
bool fairshare_blocked (const struct fairshare *fs, const uint32_t cred[CRED_KINDS], double amount,
                        struct fairshare_block *block);

/* --- state, so that a shell can make it durable ------------------------------------------ */

/* One row per credential with any usage, oldest window last; kind == CRED_KINDS is the total. Rates
 * are not part of it: running jobs are entered again by whoever restores. */
struct fairshare_row {
    enum cred_kind kind;
    uint32_t id;
    double window[FS_DEPTH_MAX];
};
struct fairshare_state {
    time_us updated_at; /* usage is complete up to here */
    duration_us interval;
    uint32_t depth;
    uint32_t row_count;
    struct fairshare_row *row;
};
void fairshare_export (const struct fairshare *fs, struct arena *arena,
                       struct fairshare_state *out);
/* Replaces all usage; then call fairshare_advance to the present. Rows out of range: ERR_INVALID
 * and nothing is changed. */
int fairshare_import (struct fairshare *fs, const struct fairshare_state *state, struct err *err);

#endif
