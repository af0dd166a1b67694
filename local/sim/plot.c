/* plot: two panels, axes and lines as SVG text. simcmd.c calls it for --plot. It reads series
 * and draws; it computes no statistics. */
#include "local/sim/plot.h"
#include "proto/base/mem.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    WIDTH = 1120,
    HEIGHT = 660,
    LEFT = 78,
    RIGHT = 28,
    TOP = 96,
    PANEL = 220,
    GAP = 44,
    POINTS = 340,          /* means that are drawn: about one each three units … */
    POINTS_COMPARED = 110, /* … and fewer where lines cross, so that each can be followed */
};
#define INNER (WIDTH - LEFT - RIGHT)

/* Colours that remain apart for colour-blind eyes (Okabe and Ito). */
static const char *const colour[PLOT_LINES_MAX] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#56b4e9", "#e69f00", "#7f7f7f", "#000000"};

struct panel {
    struct strbuf *out;
    double top;    /* of the panel */
    double most;   /* value at its top */
    double span_s; /* of the time axis */
};

static void text_put (struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            strbuf_puts (out, "&lt;");
        else if (*text == '&')
            strbuf_puts (out, "&amp;");
        else if (*text == '"')
            strbuf_puts (out, "&quot;");
        else if ((unsigned char)*text >= ' ')
            strbuf_putc (out, *text);
    }
}

/* 1, 2 or 5 times a power of ten, so that at most `ticks` of them reach `most`. */
static double nice_step (double most, int ticks)
{
    double step = 1;
    while (step * ticks < most)
        step *= 10;
    while (step / 10 * ticks >= most)
        step /= 10;
    if (step / 5 * ticks >= most)
        return step / 5;
    if (step / 2 * ticks >= most)
        return step / 2;
    return step;
}

struct time_unit {
    const char *name;
    double seconds;
};

static struct time_unit unit_of (double span_s)
{
    if (span_s > 3 * 86400)
        return (struct time_unit){"days", 86400};
    if (span_s > 3 * 3600)
        return (struct time_unit){"hours", 3600};
    if (span_s > 180)
        return (struct time_unit){"minutes", 60};
    return (struct time_unit){"seconds", 1};
}

static double x_of (double share)
{
    return LEFT + share * INNER;
}

static double y_of (const struct panel *p, double value)
{
    double share = value / p->most;
    return p->top + PANEL - (share > 1 ? 1 : share) * PANEL;
}

static void time_axis (const struct panel *p, bool labels)
{
    struct time_unit unit = unit_of (p->span_s);
    double span = p->span_s / unit.seconds, step = nice_step (span, 10);
    for (double t = 0; t <= span * 1.0001; t += step) {
        double x = x_of (t / span);
        strbuf_printf (p->out, "<line class='grid' x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/>\n", x,
                       p->top, x, p->top + PANEL);
        if (labels)
            strbuf_printf (p->out,
                           "<text class='tick' x='%.1f' y='%.1f' text-anchor='middle'>%g</text>\n",
                           x, p->top + PANEL + 18, t);
    }
    if (labels)
        strbuf_printf (p->out,
                       "<text class='axis' x='%d' y='%.1f' text-anchor='middle'>%s since the first "
                       "submission</text>\n",
                       LEFT + INNER / 2, p->top + PANEL + 40, unit.name);
}

static void value_axis (const struct panel *p, const char *title, double step, double scale,
                        const char *suffix)
{
    for (double v = 0; v <= p->most * 1.0001; v += step) {
        double y = y_of (p, v);
        strbuf_printf (p->out, "<line class='grid' x1='%d' y1='%.1f' x2='%d' y2='%.1f'/>\n", LEFT,
                       y, WIDTH - RIGHT, y);
        strbuf_printf (p->out, "<text class='tick' x='%d' y='%.1f' text-anchor='end'>%g%s</text>\n",
                       LEFT - 8, y + 4, v * scale, suffix);
    }
    strbuf_printf (p->out, "<text class='panel' x='%d' y='%.1f'>%s</text>\n", LEFT, p->top - 10,
                   title);
    strbuf_printf (p->out, "<line class='base' x1='%d' y1='%.1f' x2='%d' y2='%.1f'/>\n", LEFT,
                   p->top + PANEL, WIDTH - RIGHT, p->top + PANEL);
}

/* A line through `count` values in the middle of equal stretches of [0, share] of the axis. */
static void line_put (const struct panel *p, const double *value, uint32_t count, double share,
                      uint32_t place, bool filled)
{
    double width = share / count;
    if (filled) {
        strbuf_printf (p->out, "<path class='area' fill='%s' d='M%.1f %.1f", colour[place],
                       x_of (0), y_of (p, 0));
        for (uint32_t i = 0; i < count; i++)
            strbuf_printf (p->out, "L%.1f %.1f", x_of ((i + .5) * width), y_of (p, value[i]));
        strbuf_printf (p->out, "L%.1f %.1fZ'/>\n", x_of (share), y_of (p, 0));
    }
    strbuf_printf (p->out, "<path class='line' stroke='%s' d='", colour[place]);
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf (p->out, "%c%.1f %.1f", i ? 'L' : 'M', x_of ((i + .5) * width),
                       y_of (p, value[i]));
    strbuf_puts (p->out, "'/>\n");
}

static void head_put (struct strbuf *out, const char *title, const struct plot_line *line,
                      uint32_t count, int64_t procs_total)
{
    strbuf_printf (out,
                   "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' "
                   "height='%d' role='img'>\n<title>",
                   WIDTH, HEIGHT, WIDTH, HEIGHT);
    text_put (out, title);
    strbuf_puts (out,
                 "</title>\n<style>\n"
                 "text{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;fill:#222}\n"
                 ".title{font-size:19px;font-weight:bold}.note{font-size:13px;fill:#555}\n"
                 ".panel{font-size:14px;font-weight:bold}.tick{font-size:12px;fill:#555}\n"
                 ".axis,.legend{font-size:13px;fill:#333}.grid{stroke:#e4e4e4;stroke-width:1}\n"
                 ".base{stroke:#888;stroke-width:1}.area{fill-opacity:.13}\n"
                 ".line{fill:none;stroke-width:1.6;stroke-linejoin:round}\n</style>\n");
    strbuf_printf (out, "<rect width='%d' height='%d' fill='#ffffff'/>\n", WIDTH, HEIGHT);
    strbuf_printf (out, "<text class='title' x='%d' y='32'>", LEFT);
    text_put (out, title);
    strbuf_printf (out,
                   "</text>\n<text class='note' x='%d' y='32' text-anchor='end'>%lld "
                   "processors</text>\n",
                   WIDTH - RIGHT, (long long)procs_total);
    double x = LEFT;
    for (uint32_t i = 0; i < count; i++) {
        strbuf_printf (out,
                       "<line x1='%.1f' y1='53' x2='%.1f' y2='53' stroke='%s' "
                       "stroke-width='3'/><text class='legend' x='%.1f' y='57'>",
                       x, x + 22, colour[i], x + 28);
        size_t begin = out->len;
        text_put (out, line[i].label);
        strbuf_printf (out, " (%.1f %% used)", 100 * line[i].utilisation);
        x += 28 + 7.6 * (double)(out->len - begin) + 24;
        strbuf_puts (out, "</text>\n");
        if (x > WIDTH - RIGHT) /* no place for more names */
            break;
    }
}

static double longest_s (const struct plot_line *line, uint32_t count)
{
    double span = 1;
    for (uint32_t i = 0; i < count; i++) {
        double own =
            (double)(series_end (line[i].series) - series_begin (line[i].series)) / US_PER_S;
        if (own > span)
            span = own;
    }
    return span;
}

void plot_svg (struct strbuf *out, const char *title, const struct plot_line *line, uint32_t count,
               int64_t procs_total)
{
    if (count > PLOT_LINES_MAX)
        count = PLOT_LINES_MAX;
    const uint32_t points = count > 1 ? POINTS_COMPARED : POINTS;
    struct series_point *point = mem_zero (points, sizeof point[0]);
    double *value = mem_zero (2 * (size_t)count * points, sizeof value[0]);
    double *share = mem_zero (count + 1, sizeof share[0]);
    struct panel use = {out, TOP, 1, longest_s (line, count)};
    struct panel queue = {out, TOP + PANEL + GAP, 1, use.span_s};
    for (uint32_t i = 0; i < count; i++) {
        series_resample (line[i].series, points, point);
        share[i] = (double)(series_end (line[i].series) - series_begin (line[i].series)) /
                   US_PER_S / use.span_s;
        for (uint32_t n = 0; n < points; n++) {
            value[(2 * i) * points + n] = point[n].procs / (double)procs_total;
            value[(2 * i + 1) * points + n] = point[n].queued;
            if (point[n].queued > queue.most)
                queue.most = point[n].queued;
        }
    }
    double step = nice_step (queue.most, 5);
    double top = step;
    while (top < queue.most)
        top += step;
    queue.most = top;

    head_put (out, title, line, count, procs_total);
    time_axis (&use, false);
    value_axis (&use, "Processors in use", .25, 100, " %");
    for (uint32_t i = count; i-- > 0;)
        line_put (&use, &value[(2 * i) * points], points, share[i], i, i == 0);
    time_axis (&queue, true);
    value_axis (&queue, "Jobs waiting", step, 1, "");
    for (uint32_t i = count; i-- > 0;)
        line_put (&queue, &value[(2 * i + 1) * points], points, share[i], i, i == 0);
    strbuf_puts (out, "</svg>\n");
    free (point);
    free (value);
    free (share);
}
