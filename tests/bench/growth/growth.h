/* growth: how a benchmark's figures grow with a size: each point measured in a process of its own
 * with a limit of processor time, then a table (CSV) and a picture with logarithmic axes (SVG). */
#ifndef NUI_TESTS_BENCH_GROWTH_H
#define NUI_TESTS_BENCH_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

enum { GROWTH_POINTS_MAX = 32, GROWTH_CURVES_MAX = 8 };

struct growth_curve {
    const char *label;
    uint32_t count;
    double x[GROWTH_POINTS_MAX], y[GROWTH_POINTS_MAX];
};

struct growth {
    const char *name; /* of the files */
    const char *title, *x_label, *y_label;
    const char *x_name, *y_name; /* columns of the table */
    uint32_t count;
    struct growth_curve curve[GROWTH_CURVES_MAX];
};

/* Measures in a child: values[count] from what. False: not done after so many seconds of processor
 * time (or it failed). */
bool growth_measure (void (*what) (const void *arg, double *values), const void *arg,
                     double *values, uint32_t count, unsigned limit_s);
void growth_point (struct growth *g, const char *label, double x, double y);
/* DIR/name.csv and DIR/name.svg; ends the program with a sentence where that cannot be. */
void growth_write (const struct growth *g, const char *dir);

#endif
