/* series: processors in use and length of the queue over simulated time, in bounded memory. Pure.
 *
 * Both are step functions. They are kept as time-weighted means (and the queue's highest value)
 * over SERIES_BUCKETS equal stretches of time; when the run outgrows them, two become one. */
#ifndef NUI_LOCAL_SIM_SERIES_H
#define NUI_LOCAL_SIM_SERIES_H

#include <stdint.h>

#include "proto/base/quantity.h"

enum { SERIES_BUCKETS = 4096 };

struct series;

struct series *series_create (void); /* never NULL */
void series_destroy (struct series *series);
/* From now on procs are in use and queued jobs wait. now never goes back. */
void series_add (struct series *series, time_us now, int64_t procs, uint32_t queued);

struct series_point {
    double procs;      /* mean */
    double queued;     /* mean */
    double queued_max; /* highest */
};
time_us series_begin (const struct series *series);
time_us series_end (const struct series *series);
/* Means over [begin + i * (end - begin) / count, …), i < count. */
void series_resample (const struct series *series, uint32_t count, struct series_point *out);

#endif
