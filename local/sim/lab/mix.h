/* mix: the 76 jobs of Bode, Halstead, Kendall, Lei & Jackson 2000, section 5. Pure given the seed.
 *
 * Jobs are drawn at random, put into a class by their size and by how much of their limit they use,
 * and kept while their class has room: Large 22, Medium 31, Small 15, Debug 4, Failed 4. What fits
 * no class or a full one is thrown away. Each is submitted at a random moment within 180 minutes.
 *
 *   Large   size > 50 %            work >= 70 % of the limit
 *   Medium  15 % < size <= 50 %    work >= 70 %
 *   Small   3 % <= size <= 15 %    work >= 70 %   (the paper prints "between 30% and 15%")
 *   Debug   size < 10 %            work > 40 %, and not Small: work < 70 % or size < 3 %
 *   Failed  any size               work < 20 %
 *
 * The paper does not print how long jobs may be. Limits here are uniform up to MIX_LIMIT_MAX_S,
 * which brings the execution in order of submission (its section 6.2: 69.63 h) to the same length.
 */
#ifndef NUI_LOCAL_SIM_LAB_MIX_H
#define NUI_LOCAL_SIM_LAB_MIX_H

#include "local/trace/workload.h"

enum mix_class { MIX_LARGE, MIX_MEDIUM, MIX_SMALL, MIX_DEBUG, MIX_FAILED, MIX_CLASSES };

enum {
    MIX_JOBS = 76,
    MIX_PROCS = 64,
    MIX_SUBMIT_S = 180 * 60,
    MIX_LIMIT_MIN_S = 5 * 60,
    MIX_LIMIT_MAX_S = 3 * 3600 + 600,
};

/* MIX_CLASSES: undefined, to be rejected. */
enum mix_class mix_classify (uint32_t procs, double work_s, double limit_s);

/* *drawn_out: how many were drawn for it (the paper: 480). class_out (MIX_JOBS, may be NULL) is in
 * the workload's order. */
struct workload *mix_generate (uint64_t seed, struct cred_names *names, enum mix_class *class_out,
                               uint64_t *drawn_out);

/* Section 6.2: all jobs in this order on an empty machine, each started as soon as it fits and no
 * job before one ahead of it. order holds count places; hours. */
double mix_in_order_h (const struct workload *mix, const uint32_t *order);
double mix_minimum_h (const struct workload *mix);    /* processor time over processors */
double mix_sequential_h (const struct workload *mix); /* one job after another */

#endif
