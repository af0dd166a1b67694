/* chart: fits the axes, then draws each series into an SVG text. Experiments fill it, report.c
 * prints it. Numbers are drawn as they are given: nothing is smoothed or left out. */
#include "local/sim/lab/chart.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { WIDTH = 860, LEFT = 74, RIGHT = 18, TOP = 62, BOTTOM = 54 };

static const char *const colour[CHART_COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#56b4e9", "#e69f00", "#666666", "#000000"};
static const char *const dash[CHART_COLOURS] = {"",    "8 3", "2 2.5", "10 3 2 3",
                                                "5 2", "1 3", "4 4",   ""};

struct axis {
    double min, max, step;
    bool log;
    double begin, length; /* on the page; length negative for y */
};

struct view {
    struct strbuf *out;
    const struct chart *chart;
    struct axis x, y;
};

void chart_text (struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            strbuf_puts (out, "&lt;");
        else if (*text == '>')
            strbuf_puts (out, "&gt;");
        else if (*text == '&')
            strbuf_puts (out, "&amp;");
        else if (*text == '"')
            strbuf_puts (out, "&quot;");
        else if (*text == '\'')
            strbuf_puts (out, "&#39;");
        else if ((unsigned char)*text >= ' ' || *text == '\n' || *text == '\t')
            strbuf_putc (out, *text);
    }
}

struct chart_series *chart_add (struct chart *c, const char *label, enum chart_mark mark,
                                uint32_t count, const double *x, const double *y)
{
    assert (c->series_count < CHART_SERIES_MAX);
    struct chart_series *s = &c->series[c->series_count];
    *s = (struct chart_series){.label = label,
                               .mark = mark,
                               .count = count,
                               .x = x,
                               .y = y,
                               .colour = c->series_count % CHART_COLOURS};
    c->series_count++;
    return s;
}

static double place (const struct axis *a, double value)
{
    double share = a->log ? log (value / a->min) / log (a->max / a->min)
                          : (value - a->min) / (a->max - a->min);
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return a->begin + share * a->length;
}

static void widen (double value, bool log_axis, double *low, double *high)
{
    if (!isfinite (value) || (log_axis && value <= 0))
        return;
    *low = value < *low ? value : *low;
    *high = value > *high ? value : *high;
}

/* 1, 2 or 5 times a power of ten, so that at most `ticks` steps make the span. */
static double round_step (double span, int ticks)
{
    double step = pow (10, ceil (log10 (span / ticks)));
    if (step / 5 * ticks >= span)
        return step / 5;
    return step / 2 * ticks >= span ? step / 2 : step;
}

static void axis_fit (struct axis *a, double low, double high, bool from_zero, bool rounded,
                      int ticks)
{
    if (low > high) /* nothing to show */
        low = a->log ? 1 : 0, high = a->log ? 10 : 1;
    if (a->log) {
        a->min = rounded ? pow (10, floor (log10 (low))) : low;
        a->max = rounded ? pow (10, ceil (log10 (high))) : high;
        a->max = a->max > a->min ? a->max : a->min * 10;
        return;
    }
    if (from_zero)
        low = low > 0 ? 0 : low, high = high < 0 ? 0 : high;
    if (high <= low)
        high = low + 1;
    a->step = round_step (high - low, ticks);
    a->min = rounded ? floor (low / a->step + 1e-9) * a->step : low;
    a->max = rounded ? ceil (high / a->step - 1e-9) * a->step : high;
}

static void view_fit (struct view *v, uint32_t height)
{
    const struct chart *c = v->chart;
    double x[2] = {INFINITY, -INFINITY}, y[2] = {INFINITY, -INFINITY};
    bool bars = false;
    v->x.log = c->x_log;
    v->y.log = c->y_log;
    for (uint32_t s = 0; s < c->series_count; s++) {
        const struct chart_series *one = &c->series[s];
        bars = bars || one->mark == CHART_BARS;
        for (uint32_t i = 0; i < one->count; i++) {
            widen (one->x[i], c->x_log, &x[0], &x[1]);
            widen (one->y[i], c->y_log, &y[0], &y[1]);
            if (one->low)
                widen (one->low[i], c->y_log, &y[0], &y[1]);
            if (one->high)
                widen (one->high[i], c->y_log, &y[0], &y[1]);
        }
    }
    if (c->category)
        x[0] = -.5, x[1] = c->category_count - .5;
    if (c->y_max > 0)
        y[1] = c->y_max;
    axis_fit (&v->x, x[0], x[1], false, false, 10);
    axis_fit (&v->y, y[0], y[1], c->y_zero || bars, true, 6);
    if (c->x_whole && v->x.step < 1)
        v->x.step = 1;
    v->x.begin = LEFT;
    v->x.length = WIDTH - LEFT - RIGHT;
    v->y.begin = height - BOTTOM;
    v->y.length = -(double)(height - TOP - BOTTOM);
}

static void y_axis (const struct view *v)
{
    const struct chart *c = v->chart;
    double value = v->y.log ? v->y.min : ceil (v->y.min / v->y.step - 1e-9) * v->y.step;
    while (value <= v->y.max * (1 + 1e-9) + 1e-12) {
        double y = place (&v->y, value);
        double shown = fabs (value) < v->y.step * 1e-6 ? 0 : value;
        strbuf_printf (v->out, "<line class='grid' x1='%d' y1='%.1f' x2='%d' y2='%.1f'/>", LEFT, y,
                       WIDTH - RIGHT, y);
        strbuf_printf (
            v->out, "<text class='tick' x='%d' y='%.1f' text-anchor='end'>%.6g%s</text>\n",
            LEFT - 7, y + 4, c->y_percent > 0 ? shown * 100 : shown, c->y_percent > 0 ? " %" : "");
        value = v->y.log ? value * 10 : value + v->y.step;
    }
    if (c->zero_line && v->y.min < 0)
        strbuf_printf (v->out, "<line class='zero' x1='%d' y1='%.1f' x2='%d' y2='%.1f'/>\n", LEFT,
                       place (&v->y, 0), WIDTH - RIGHT, place (&v->y, 0));
    strbuf_printf (v->out, "<text class='axis' x='%d' y='%d'>", LEFT, TOP - 9);
    chart_text (v->out, c->y_label);
    strbuf_puts (v->out, "</text>\n");
}

static void x_tick (const struct view *v, double value, const char *text, double number)
{
    double x = place (&v->x, value), y = v->y.begin;
    if (!text)
        strbuf_printf (v->out, "<line class='grid' x1='%.1f' y1='%d' x2='%.1f' y2='%.1f'/>", x, TOP,
                       x, y);
    strbuf_printf (v->out, "<text class='tick' x='%.1f' y='%.1f' text-anchor='middle'>", x, y + 17);
    if (text)
        chart_text (v->out, text);
    else
        strbuf_printf (v->out, "%.7g", number); /* a million in full */
    strbuf_puts (v->out, "</text>\n");
}

static void x_axis (const struct view *v)
{
    const struct chart *c = v->chart;
    if (c->category) {
        for (uint32_t i = 0; i < c->category_count; i++)
            x_tick (v, i, c->category[i], 0);
    } else if (v->x.log) {
        bool few = log10 (v->x.max / v->x.min) < 2.5;
        for (double p = pow (10, floor (log10 (v->x.min))); p <= v->x.max * 1.001; p *= 10) {
            static const double by[] = {1, 2, 5};
            for (int i = 0; i < (few ? 3 : 1); i++) {
                double value = p * by[i];
                if (value >= v->x.min * .999 && value <= v->x.max * 1.001)
                    x_tick (v, value, NULL, value);
            }
        }
    } else {
        double value = ceil (v->x.min / v->x.step - 1e-9) * v->x.step;
        for (; value <= v->x.max + v->x.step * 1e-6; value += v->x.step)
            x_tick (v, value, NULL, fabs (value) < v->x.step * 1e-6 ? 0 : value);
    }
    strbuf_printf (v->out, "<line class='base' x1='%d' y1='%.1f' x2='%d' y2='%.1f'/>\n", LEFT,
                   v->y.begin, WIDTH - RIGHT, v->y.begin);
    strbuf_printf (v->out, "<text class='axis' x='%d' y='%.1f' text-anchor='middle'>",
                   LEFT + (WIDTH - LEFT - RIGHT) / 2, v->y.begin + 42);
    chart_text (v->out, c->x_label);
    strbuf_puts (v->out, "</text>\n");
}

static void line_draw (const struct view *v, const struct chart_series *s)
{
    bool pen_down = false;
    double last_y = 0;
    strbuf_printf (v->out,
                   "<path class='line' stroke='%s' stroke-width='%s' stroke-dasharray='%s' d='",
                   colour[s->colour], s->thin ? "1.1" : "2", dash[s->colour]);
    for (uint32_t i = 0; i < s->count; i++) {
        if (!isfinite (s->y[i]) || (v->y.log && s->y[i] <= 0)) {
            pen_down = false;
            continue;
        }
        double x = place (&v->x, s->x[i]), y = place (&v->y, s->y[i]);
        if (pen_down && s->mark == CHART_STEP)
            strbuf_printf (v->out, "L%.1f %.1f", x, last_y);
        strbuf_printf (v->out, "%c%.1f %.1f", pen_down ? 'L' : 'M', x, y);
        pen_down = true;
        last_y = y;
    }
    strbuf_puts (v->out, "'/>\n");
}

static void dots_draw (const struct view *v, const struct chart_series *s)
{
    double radius = s->mark == CHART_POINTS ? 3.6
                    : s->count > 4000       ? 1.2
                    : s->count > 400        ? 1.7
                                            : 2.6;
    strbuf_printf (v->out, "<g fill='%s' fill-opacity='%s'>", colour[s->colour],
                   s->mark == CHART_DOTS ? ".5" : "1");
    for (uint32_t i = 0; i < s->count; i++) {
        if (isfinite (s->y[i]) && !(v->y.log && s->y[i] <= 0))
            strbuf_printf (v->out, "<circle cx='%.1f' cy='%.1f' r='%.1f'/>", place (&v->x, s->x[i]),
                           place (&v->y, s->y[i]), radius);
    }
    strbuf_puts (v->out, "</g>\n");
}

static void errors_draw (const struct view *v, const struct chart_series *s, double shift)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (!isfinite (s->low[i]) || !isfinite (s->high[i]))
            continue;
        double x = place (&v->x, s->x[i]) + shift;
        double low = place (&v->y, s->low[i]), high = place (&v->y, s->high[i]);
        strbuf_printf (v->out,
                       "<path class='error' d='M%.1f %.1fV%.1fM%.1f %.1fh10M%.1f %.1fh10'/>\n", x,
                       low, high, x - 5, low, x - 5, high);
    }
}

static void bars_draw (const struct view *v, const struct chart_series *s, uint32_t which,
                       uint32_t of)
{
    double slot = v->x.length / (v->x.max - v->x.min), width = slot * .72 / of;
    double zero = place (&v->y, v->y.log ? v->y.min : 0);
    for (uint32_t i = 0; i < s->count; i++) {
        if (!isfinite (s->y[i]))
            continue;
        double x = place (&v->x, s->x[i]) - slot * .36 + width * which, y = place (&v->y, s->y[i]);
        strbuf_printf (v->out, "<rect fill='%s' x='%.1f' y='%.1f' width='%.1f' height='%.1f'/>\n",
                       colour[s->colour], x, y < zero ? y : zero, width * .94, fabs (zero - y));
    }
    if (s->low && s->high)
        errors_draw (v, s, -slot * .36 + width * (which + .47));
}

static void legend_draw (const struct view *v)
{
    double x = LEFT, y = 34;
    for (uint32_t i = 0; i < v->chart->series_count; i++) {
        const struct chart_series *s = &v->chart->series[i];
        if (!s->label)
            continue;
        if (s->mark == CHART_BARS || s->mark == CHART_DOTS)
            strbuf_printf (v->out, "<rect fill='%s' x='%.1f' y='%.1f' width='11' height='11'/>",
                           colour[s->colour], x + 6, y - 10);
        else
            strbuf_printf (v->out,
                           "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='%s' "
                           "stroke-width='%s' stroke-dasharray='%s'/>",
                           x, y - 4, x + 24, y - 4, colour[s->colour], s->thin ? "1.2" : "2.4",
                           dash[s->colour]);
        strbuf_printf (v->out, "<text class='legend' x='%.1f' y='%.1f'>", x + 30, y);
        chart_text (v->out, s->label);
        strbuf_puts (v->out, "</text>\n");
        x += 30 + 7.0 * (double)strlen (s->label) + 20;
    }
}

void chart_svg (struct strbuf *out, const struct chart *c)
{
    uint32_t height = c->height ? c->height : 340, bars = 0, bar = 0;
    struct view v = {.out = out, .chart = c};
    view_fit (&v, height);
    strbuf_printf (out, "<svg viewBox='0 0 %d %u' role='img' xmlns='http://www.w3.org/2000/svg'>",
                   WIDTH, height);
    strbuf_printf (out,
                   "<rect width='%d' height='%u' fill='#fff'/><text class='title' x='%d' y='16'>",
                   WIDTH, height, LEFT);
    chart_text (out, c->title);
    strbuf_puts (out, "</text>\n");
    y_axis (&v);
    x_axis (&v);
    for (uint32_t i = 0; i < c->series_count; i++)
        bars += c->series[i].mark == CHART_BARS;
    for (uint32_t i = 0; i < c->series_count; i++) {
        const struct chart_series *s = &c->series[i];
        if (s->mark == CHART_BARS) {
            bars_draw (&v, s, bar++, bars);
            continue;
        }
        if (s->mark != CHART_DOTS)
            line_draw (&v, s);
        if (s->mark == CHART_DOTS || s->mark == CHART_POINTS)
            dots_draw (&v, s);
        if (s->low && s->high)
            errors_draw (&v, s, 0);
    }
    legend_draw (&v);
    strbuf_puts (out, "</svg>\n");
}
