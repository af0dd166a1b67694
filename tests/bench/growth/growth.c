#include "tests/bench/growth/growth.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/sim/lab/chart.h"

bool growth_measure (void (*what) (const void *arg, double *values), const void *arg,
                     double *values, uint32_t count, unsigned limit_s)
{
    ssize_t want = (ssize_t)(count * sizeof *values), got;
    int ends[2], status = 0;
    pid_t child;

    fflush (stdout);
    if (pipe (ends) != 0 || (child = fork ()) < 0) {
        perror ("growth");
        exit (1);
    }
    if (child == 0) {
        struct rlimit limit = {limit_s, limit_s + 1};
        (void)setrlimit (RLIMIT_CPU, &limit);
        what (arg, values);
        _exit (write (ends[1], values, (size_t)want) == want ? 0 : 1);
    }
    close (ends[1]);
    got = read (ends[0], values, (size_t)want);
    close (ends[0]);
    (void)waitpid (child, &status, 0);
    return got == want && status == 0;
}

void growth_point (struct growth *g, const char *label, double x, double y)
{
    struct growth_curve *c = g->curve;

    while (c < g->curve + g->count && strcmp (c->label, label) != 0)
        c++;
    if (c == g->curve + g->count) {
        assert (g->count < GROWTH_CURVES_MAX);
        g->count++;
        *c = (struct growth_curve){.label = label};
    }
    assert (c->count < GROWTH_POINTS_MAX);
    c->x[c->count] = x;
    c->y[c->count++] = y;
}

/* A chart stands in a page, which says how it looks; this one stands alone. */
static void style_insert (struct strbuf *out, const struct strbuf *chart)
{
    static const char style[] =
        "<style>text{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;fill:#222}"
        ".title{font-size:15px;font-weight:bold}.tick{font-size:12px}.axis,.legend{font-size:12."
        "5px}"
        ".grid{stroke:#e3e3e3}.base,.zero{stroke:#777}.line{fill:none;stroke-linejoin:round}</"
        "style>";
    size_t head = (size_t)(strchr (chart->data, '>') + 1 - chart->data);

    strbuf_append (out, chart->data, head);
    strbuf_puts (out, style);
    strbuf_append (out, chart->data + head, chart->len - head);
}

static void file_write (const char *dir, const char *name, const char *kind,
                        const struct strbuf *text)
{
    char path[1024];
    FILE *file;

    snprintf (path, sizeof path, "%s/%s.%s", dir, name, kind);
    file = fopen (path, "w");
    if (file == NULL || fwrite (text->data, 1, text->len, file) != text->len ||
        fclose (file) != 0) {
        perror (path);
        exit (1);
    }
}

void growth_write (const struct growth *g, const char *dir)
{
    struct chart chart = {.title = g->title,
                          .x_label = g->x_label,
                          .y_label = g->y_label,
                          .x_log = true,
                          .y_log = true};
    struct strbuf csv = {0}, svg = {0}, alone = {0};

    strbuf_printf (&csv, "curve,%s,%s\n", g->x_name, g->y_name);
    for (uint32_t i = 0; i < g->count; i++) {
        const struct growth_curve *c = &g->curve[i];
        (void)chart_add (&chart, c->label, CHART_POINTS, c->count, c->x, c->y);
        for (uint32_t k = 0; k < c->count; k++)
            strbuf_printf (&csv, "%s,%.0f,%.4g\n", c->label, c->x[k], c->y[k]);
    }
    chart_svg (&svg, &chart);
    style_insert (&alone, &svg);
    file_write (dir, g->name, "csv", &csv);
    file_write (dir, g->name, "svg", &alone);
    strbuf_free (&csv);
    strbuf_free (&svg);
    strbuf_free (&alone);
}
