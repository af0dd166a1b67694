/* fairshare: the windows of usage, rolled and filled by rates. cluster.c and job.c tell it of
 * starts and ends; order.c takes the factors; the daemon saves and takes up its state. It reads
 * no clock: whoever asks brings it up to the moment first. */
#include "local/core/fairshare.h"
#include "proto/base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TOTAL = CRED_KINDS, TABLES };

/* Usage of one kind; rows of FS_DEPTH_MAX windows. The total is a table of one row. */
struct usage_table {
    uint32_t count;
    uint32_t cap;
    double (*window)[FS_DEPTH_MAX];
    double *tail; /* sum over n >= 1 of U[n] * DECAY^n */
    int64_t *rate_micro;
};

struct fairshare {
    const struct policy *policy;
    duration_us interval;
    uint32_t depth;
    time_us updated_at;
    int64_t window_number; /* of window 0: floor (updated_at / interval) */
    struct usage_table table[TABLES];
};

static int64_t floor_div (int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static void table_grow (struct usage_table *t, uint32_t count)
{
    if (count > t->cap) {
        uint32_t cap = t->cap ? t->cap : 16;
        while (cap < count)
            cap *= 2;
        t->window = mem_resize (t->window, cap * sizeof t->window[0]);
        t->tail = mem_resize (t->tail, cap * sizeof t->tail[0]);
        t->rate_micro = mem_resize (t->rate_micro, cap * sizeof t->rate_micro[0]);
        t->cap = cap;
    }
    for (uint32_t i = t->count; i < count; i++) {
        memset (t->window[i], 0, sizeof t->window[i]);
        t->tail[i] = 0;
        t->rate_micro[i] = 0;
    }
    if (count > t->count)
        t->count = count;
}

static void table_free (struct usage_table *t)
{
    free (t->window);
    free (t->tail);
    free (t->rate_micro);
}

struct fairshare *fairshare_create (const struct policy *policy, time_us now)
{
    assert (policy->sealed);
    struct fairshare *fs = mem_zero (1, sizeof *fs);
    fs->policy = policy;
    fs->interval = policy->fs_interval;
    fs->depth = policy->fs_depth;
    fs->updated_at = now;
    fs->window_number = floor_div (now, fs->interval);
    table_grow (&fs->table[TOTAL], 1);
    return fs;
}

void fairshare_destroy (struct fairshare *fs)
{
    if (!fs)
        return;
    for (int t = 0; t < TABLES; t++)
        table_free (&fs->table[t]);
    free (fs);
}

static void tail_update (const struct fairshare *fs, struct usage_table *t, uint32_t i)
{
    double factor = fs->policy->fs_decay, sum = 0;
    for (uint32_t n = 1; n < fs->depth; n++) {
        sum += t->window[i][n] * factor;
        factor *= fs->policy->fs_decay;
    }
    t->tail[i] = sum;
}

static void tails_update (struct fairshare *fs)
{
    for (int k = 0; k < TABLES; k++) {
        for (uint32_t i = 0; i < fs->table[k].count; i++)
            tail_update (fs, &fs->table[k], i);
    }
}

/* count windows have passed: every row moves back by as many. */
static void roll (struct fairshare *fs, int64_t count)
{
    uint32_t by = count > fs->depth ? fs->depth : (uint32_t)count;
    for (int k = 0; k < TABLES; k++) {
        struct usage_table *t = &fs->table[k];
        for (uint32_t i = 0; i < t->count; i++) {
            memmove (t->window[i] + by, t->window[i], (fs->depth - by) * sizeof (double));
            memset (t->window[i], 0, by * sizeof (double));
        }
    }
    fs->window_number += count;
}

static void accumulate (struct fairshare *fs, duration_us elapsed)
{
    double elapsed_s = (double)elapsed / (double)US_PER_S;
    for (int k = 0; k < TABLES; k++) {
        struct usage_table *t = &fs->table[k];
        for (uint32_t i = 0; i < t->count; i++) {
            if (t->rate_micro[i])
                t->window[i][0] += (double)t->rate_micro[i] * 1e-6 * elapsed_s;
        }
    }
}

void fairshare_advance (struct fairshare *fs, time_us now)
{
    if (now <= fs->updated_at)
        return;
    int64_t target = floor_div (now, fs->interval);
    bool rolled = target > fs->window_number;
    /* Far more windows than are kept: what lies before them would be rolled out again. */
    if (target - fs->window_number > (int64_t)fs->depth + 1) {
        int64_t skip = target - fs->window_number - fs->depth;
        roll (fs, skip);
        fs->updated_at = fs->window_number * fs->interval;
    }
    while (fs->window_number < target) {
        time_us boundary = (fs->window_number + 1) * fs->interval;
        accumulate (fs, boundary - fs->updated_at);
        fs->updated_at = boundary;
        roll (fs, 1);
    }
    accumulate (fs, now - fs->updated_at);
    fs->updated_at = now;
    if (rolled)
        tails_update (fs);
}

int64_t fairshare_rate_micro (const struct policy *policy, uint32_t procs, double pe,
                              double procs_used)
{
    switch (policy->fs_policy) {
    case FS_NONE:
        return 0;
    case FS_DEDICATEDPS:
        return (int64_t)procs * 1000000;
    case FS_DEDICATEDPES:
        return (int64_t)(pe * 1e6 + .5);
    case FS_UTILIZEDPS:
        return (int64_t)(procs_used * 1e6 + .5);
    }
    return 0;
}

void fairshare_rate_add (struct fairshare *fs, const uint32_t cred[CRED_KINDS], int64_t rate_micro)
{
    if (rate_micro == 0)
        return;
    for (int k = 0; k < CRED_KINDS; k++) {
        if (cred[k] == CRED_NONE)
            continue;
        table_grow (&fs->table[k], cred[k] + 1);
        fs->table[k].rate_micro[cred[k]] += rate_micro;
    }
    fs->table[TOTAL].rate_micro[0] += rate_micro;
}

void fairshare_charge (struct fairshare *fs, const uint32_t cred[CRED_KINDS], double amount)
{
    for (int k = 0; k < CRED_KINDS; k++) {
        if (cred[k] == CRED_NONE)
            continue;
        table_grow (&fs->table[k], cred[k] + 1);
        fs->table[k].window[cred[k]][0] += amount;
    }
    fs->table[TOTAL].window[0][0] += amount;
}

/* --- reading ----------------------------------------------------------------------------- */

static double effective (const struct usage_table *t, uint32_t id)
{
    return id < t->count ? t->window[id][0] + t->tail[id] : 0;
}

double fairshare_window (const struct fairshare *fs, enum cred_kind kind, uint32_t id, uint32_t n)
{
    const struct usage_table *t = &fs->table[kind];
    return id < t->count && n < fs->depth ? t->window[id][n] : 0;
}

double fairshare_window_total (const struct fairshare *fs, uint32_t n)
{
    return n < fs->depth ? fs->table[TOTAL].window[0][n] : 0;
}

double fairshare_effective (const struct fairshare *fs, enum cred_kind kind, uint32_t id)
{
    return effective (&fs->table[kind], id);
}

double fairshare_effective_total (const struct fairshare *fs)
{
    return effective (&fs->table[TOTAL], 0);
}

static double percent_of (double part, double total)
{
    return total > 0 ? 100 * part / total : 0;
}

double fairshare_percent (const struct fairshare *fs, enum cred_kind kind, uint32_t id)
{
    return percent_of (fairshare_effective (fs, kind, id), fairshare_effective_total (fs));
}

static double factor_of (const struct policy *p, const struct policy_cred *c, double percent)
{
    if (p->fs_policy == FS_NONE)
        return 0;
    double factor = c->fs_target - percent;
    if (p->fs_ratio)
        factor = c->fs_target > 0 ? 1 - percent / c->fs_target : 0;
    switch (c->fs_target_type) {
    case FS_TARGET_TARGET:
        return factor;
    case FS_TARGET_FLOOR:
        return factor > 0 ? factor : 0;
    case FS_TARGET_CEILING:
        return factor < 0 ? factor : 0;
    case FS_TARGET_NONE:
    case FS_TARGET_CAP_ABSOLUTE:
    case FS_TARGET_CAP_RELATIVE:
        break;
    }
    return 0;
}

double fairshare_factor (const struct fairshare *fs, enum cred_kind kind, uint32_t id)
{
    return factor_of (fs->policy, policy_cred (fs->policy, kind, id),
                      fairshare_percent (fs, kind, id));
}

void fairshare_factors (const struct fairshare *fs, enum cred_kind kind, double *factor,
                        uint32_t count)
{
    double total = fairshare_effective_total (fs);
    for (uint32_t id = 0; id < count; id++)
        factor[id] = factor_of (fs->policy, policy_cred (fs->policy, kind, id),
                                percent_of (fairshare_effective (fs, kind, id), total));
}

double fairshare_factor_other (const struct fairshare *fs, enum cred_kind kind)
{
    return factor_of (fs->policy, policy_cred (fs->policy, kind, CRED_DEFAULT), 0);
}

uint32_t fairshare_count (const struct fairshare *fs, enum cred_kind kind)
{
    uint32_t named = fs->policy->cred_index_count[kind];
    return fs->table[kind].count > named ? fs->table[kind].count : named;
}

bool fairshare_blocked (const struct fairshare *fs, const uint32_t cred[CRED_KINDS], double amount,
                        struct fairshare_block *block)
{
    if (fs->policy->fs_policy == FS_NONE)
        return false;
    double total = fairshare_effective_total (fs);
    for (int k = 0; k < CRED_KINDS; k++) {
        if (cred[k] == CRED_NONE)
            continue;
        const struct policy_cred *c = policy_cred (fs->policy, (enum cred_kind)k, cred[k]);
        double value = effective (&fs->table[k], cred[k]) + amount;
        if (c->fs_target_type == FS_TARGET_CAP_RELATIVE)
            value = percent_of (value, total);
        else if (c->fs_target_type != FS_TARGET_CAP_ABSOLUTE)
            continue;
        if (value > c->fs_target) {
            if (block)
                *block = (struct fairshare_block){(enum cred_kind)k, cred[k], c->fs_target_type,
                                                  c->fs_target, value};
            return true;
        }
    }
    return false;
}

/* --- another policy, saved state --------------------------------------------------------- */

/* Adds usage that grew evenly over [begin, end) to the windows it belongs in. */
static void spread (const struct fairshare *fs, double window[FS_DEPTH_MAX], time_us begin,
                    time_us end, double amount)
{
    if (amount == 0)
        return;
    int64_t first = floor_div (begin, fs->interval);
    int64_t last = end > begin ? floor_div (end - 1, fs->interval) : first;
    for (int64_t w = last; w >= first && fs->window_number - w < fs->depth; w--) {
        time_us from = w * fs->interval > begin ? w * fs->interval : begin;
        time_us to = (w + 1) * fs->interval < end ? (w + 1) * fs->interval : end;
        double share = first == last ? 1 : (double)(to - from) / (double)(end - begin);
        if (w <= fs->window_number)
            window[fs->window_number - w] += amount * share;
    }
}

static void charge_over (struct fairshare *fs, struct usage_table *t, uint32_t id, time_us since,
                         double amount)
{
    table_grow (t, id + 1);
    spread (fs, t->window[id], since, fs->updated_at, amount);
    for (uint32_t n = 0; n < fs->depth; n++)
        t->window[id][n] = t->window[id][n] > 0 ? t->window[id][n] : 0;
    tail_update (fs, t, id);
}

void fairshare_charge_over (struct fairshare *fs, const uint32_t cred[CRED_KINDS], time_us since,
                            double amount)
{
    for (int k = 0; k < CRED_KINDS; k++) {
        if (cred[k] != CRED_NONE)
            charge_over (fs, &fs->table[k], cred[k], since, amount);
    }
    charge_over (fs, &fs->table[TOTAL], 0, since, amount);
}

static void row_take (struct fairshare *fs, const struct fairshare_state *state,
                      const struct fairshare_row *row)
{
    struct usage_table *t = &fs->table[row->kind];
    uint32_t id = (int)row->kind == TOTAL ? 0 : row->id;
    table_grow (t, id + 1);
    int64_t number = floor_div (state->updated_at, state->interval);
    for (uint32_t n = 0; n < state->depth; n++) {
        time_us begin = (number - n) * state->interval;
        time_us end = n == 0 ? state->updated_at : begin + state->interval;
        spread (fs, t->window[id], begin, end, row->window[n]);
    }
}

static void state_take (struct fairshare *fs, const struct fairshare_state *state)
{
    for (int k = 0; k < TABLES; k++) {
        for (uint32_t i = 0; i < fs->table[k].count; i++)
            memset (fs->table[k].window[i], 0, sizeof fs->table[k].window[i]);
    }
    fs->updated_at = state->updated_at;
    fs->window_number = floor_div (state->updated_at, fs->interval);
    for (uint32_t r = 0; r < state->row_count; r++)
        row_take (fs, state, &state->row[r]);
    tails_update (fs);
}

void fairshare_policy_set (struct fairshare *fs, const struct policy *policy)
{
    assert (policy->sealed);
    bool same = policy->fs_interval == fs->interval && policy->fs_depth == fs->depth;
    fs->policy = policy;
    if (same) {
        tails_update (fs);
        return;
    }
    struct arena *arena = arena_create (0);
    struct fairshare_state state;
    fairshare_export (fs, arena, &state);
    fs->interval = policy->fs_interval;
    fs->depth = policy->fs_depth;
    state_take (fs, &state);
    arena_destroy (arena);
}

void fairshare_export (const struct fairshare *fs, struct arena *arena, struct fairshare_state *out)
{
    uint32_t rows = 0;
    for (int k = 0; k < TABLES; k++)
        rows += fs->table[k].count;
    *out = (struct fairshare_state){fs->updated_at, fs->interval, fs->depth, 0,
                                    arena_array (arena, rows, sizeof out->row[0])};
    for (int k = 0; k < TABLES; k++) {
        for (uint32_t i = 0; i < fs->table[k].count; i++) {
            bool any = false;
            for (uint32_t n = 0; n < fs->depth && !any; n++)
                any = fs->table[k].window[i][n] != 0;
            if (!any)
                continue;
            struct fairshare_row *row = &out->row[out->row_count++];
            row->kind = (enum cred_kind)k;
            row->id = i;
            memcpy (row->window, fs->table[k].window[i], sizeof row->window);
        }
    }
}

int fairshare_import (struct fairshare *fs, const struct fairshare_state *state, struct err *err)
{
    if (state->interval <= 0 || state->depth < 1 || state->depth > FS_DEPTH_MAX)
        return err_set (err, ERR_INVALID, "saved fairshare: %u windows of %lld us", state->depth,
                        (long long)state->interval);
    for (uint32_t r = 0; r < state->row_count; r++) {
        const struct fairshare_row *row = &state->row[r];
        if ((int)row->kind < 0 || (int)row->kind > TOTAL || row->id == CRED_NONE)
            return err_set (err, ERR_INVALID, "saved fairshare: row %u is of no known kind", r);
        for (uint32_t n = 0; n < state->depth; n++) {
            if (!(row->window[n] >= 0 && row->window[n] <= 1e300))
                return err_set (err, ERR_INVALID,
                                "saved fairshare: row %u, window %u holds no usage", r, n);
        }
    }
    state_take (fs, state);
    return 0;
}
