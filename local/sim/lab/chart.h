/* chart: one diagram as SVG, to stand in a page. Pure.
 *
 * Lines, steps, dots, and bars by category, with error bars; axes choose round steps. Colours
 * remain apart for colour-blind eyes; dashes keep lines apart in print without colour. */
#ifndef NUI_LOCAL_SIM_LAB_CHART_H
#define NUI_LOCAL_SIM_LAB_CHART_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/strbuf.h"

enum chart_mark { CHART_LINE, CHART_STEP, CHART_DOTS, CHART_POINTS /* with a line */, CHART_BARS };

struct chart_series {
    const char *label; /* NULL: not in the legend */
    enum chart_mark mark;
    uint32_t colour; /* 0 … CHART_COLOURS - 1 */
    uint32_t count;
    const double *x, *y;      /* y may hold NAN: a gap */
    const double *low, *high; /* ends of error bars, or NULL */
    bool thin;                /* a quieter line: a target, a bound */
};

enum { CHART_COLOURS = 8, CHART_SERIES_MAX = 16 };

struct chart {
    const char *title;
    const char *x_label, *y_label;
    bool x_log, y_log;
    bool x_whole;                /* only whole numbers on the x axis */
    const char *const *category; /* names of x = 0, 1, …; NULL: x is a number */
    uint32_t category_count;
    bool y_zero;      /* the axis begins at 0 */
    double y_max;     /* 0: as needed */
    double y_percent; /* > 0: values are shares, shown times 100 with a percent sign */
    bool zero_line;
    uint32_t height; /* 0: 340 */
    uint32_t series_count;
    struct chart_series series[CHART_SERIES_MAX];
};

void chart_svg (struct strbuf *out, const struct chart *chart);
/* The next free series of the chart. */
struct chart_series *chart_add (struct chart *chart, const char *label, enum chart_mark mark,
                                uint32_t count, const double *x, const double *y);
/* Text as HTML and SVG need it. */
void chart_text (struct strbuf *out, const char *text);

#endif
