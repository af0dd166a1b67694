/* rng: seeded random numbers, the same on every machine for one seed. Pure.
 *
 * xoshiro256** (Blackman & Vigna), seeded by splitmix64. Not for secrets. */
#ifndef NUI_BASE_RNG_H
#define NUI_BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

/* Streams of one seed are independent of each other. */
void rng_seed (struct rng *rng, uint64_t seed, uint64_t stream);
uint64_t rng_next (struct rng *rng);
double rng_unit (struct rng *rng);                             /* [0, 1) */
double rng_between (struct rng *rng, double low, double high); /* [low, high) */
uint32_t rng_below (struct rng *rng, uint32_t count);          /* 0 … count - 1 */
double rng_exponential (struct rng *rng, double mean);
double rng_normal (struct rng *rng);
double rng_gamma (struct rng *rng, double shape, double scale); /* Marsaglia & Tsang 2000 */

#endif
