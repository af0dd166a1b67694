/* plot: utilisation and queue length over simulated time as an SVG picture. Pure.
 *
 * Two panels over one time axis; one line per policy, the first one also filled. */
#ifndef NUI_LOCAL_SIM_PLOT_H
#define NUI_LOCAL_SIM_PLOT_H

#include "local/sim/series.h"
#include "proto/base/strbuf.h"

struct plot_line {
    const char *label;
    const struct series *series;
    double utilisation; /* of the whole run, for the legend */
};

enum { PLOT_LINES_MAX = 8 };

/* At most PLOT_LINES_MAX lines are drawn. */
void plot_svg (struct strbuf *out, const char *title, const struct plot_line *line, uint32_t count,
               int64_t procs_total);

#endif
