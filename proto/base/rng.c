/* rng: the generator and the distributions drawn from it. Simulations, the laboratory and the
 * estimator call it, each with its own stream of one seed. The sequence must never change: seeds
 * kept with failing cases would show something else. */
#include "proto/base/rng.h"

#include <math.h>

static uint64_t splitmix (uint64_t *state)
{
    uint64_t z = (*state += UINT64_C (0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C (0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C (0x94D049BB133111EB);
    return z ^ (z >> 31);
}

void rng_seed (struct rng *rng, uint64_t seed, uint64_t stream)
{
    uint64_t state = seed ^ (stream + 1) * UINT64_C (0xD1B54A32D192ED03);
    for (int i = 0; i < 4; i++)
        rng->s[i] = splitmix (&state);
}

static uint64_t rotate (uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

uint64_t rng_next (struct rng *rng)
{
    uint64_t *s = rng->s, out = rotate (s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate (s[3], 45);
    return out;
}

double rng_unit (struct rng *rng)
{
    return (double)(rng_next (rng) >> 11) * 0x1p-53;
}

double rng_between (struct rng *rng, double low, double high)
{
    return low + (high - low) * rng_unit (rng);
}

uint32_t rng_below (struct rng *rng, uint32_t count)
{
    return (uint32_t)(rng_unit (rng) * count);
}

double rng_exponential (struct rng *rng, double mean)
{
    return -mean * log1p (-rng_unit (rng));
}

double rng_normal (struct rng *rng)
{
    for (;;) { /* Marsaglia's polar method; the second value is not kept */
        double u = rng_between (rng, -1, 1), v = rng_between (rng, -1, 1), s = u * u + v * v;
        if (s > 0 && s < 1)
            return u * sqrt (-2 * log (s) / s);
    }
}

double rng_gamma (struct rng *rng, double shape, double scale)
{
    if (shape < 1)
        return rng_gamma (rng, shape + 1, scale) * pow (1 - rng_unit (rng), 1 / shape);
    double d = shape - 1. / 3, c = 1 / sqrt (9 * d);
    for (;;) {
        double x = rng_normal (rng), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log (1 - rng_unit (rng)) < .5 * x * x + d - d * v + d * log (v))
            return d * v * scale;
    }
}
