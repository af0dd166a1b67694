/* metrics: the text form of what a daemon tells of itself. The daemons' collectors call it, once a second at the most; it
 * knows no daemon and keeps nothing. */
#include "proto/metrics/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const duration_us metrics_bounds[METRICS_BOUNDS] = {1000,    5000,     20000,    100000,   500000,
                                                    2500000, 10000000, 60000000, 600000000};

enum metrics_form metrics_form_of (const char *accept)
{
    return accept && strstr (accept, "text/plain") && !strstr (accept, "openmetrics-text")
               ? METRICS_PROMETHEUS
               : METRICS_OPEN;
}

const char *metrics_content_type (enum metrics_form form)
{
    return form == METRICS_OPEN ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                : "text/plain; version=0.0.4; charset=utf-8";
}

/* What the samples of a type are called beside the family. */
static const char *metrics_suffix (enum metrics_type type)
{
    return type == METRICS_COUNTER ? "_total" : type == METRICS_INFO ? "_info" : "";
}

void metrics_family (struct metrics_page *page, const char *name, enum metrics_type type,
                     const char *help)
{
    static const char *const words[] = {"gauge", "counter", "histogram", "info"};
    bool open = page->form == METRICS_OPEN;
    /* Prometheus' own form has no infos, and heads a counter by its samples' name. */
    const char *suffix = open ? "" : metrics_suffix (type);
    const char *word = !open && type == METRICS_INFO ? "gauge" : words[type];
    page->family = name;
    page->type = type;
    strbuf_printf (&page->text, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name,
                   suffix, word);
}

static void metrics_label_value (struct strbuf *b, const char *value)
{
    for (; *value; value++)
        if (*value == '\n')
            strbuf_puts (b, "\\n");
        else if (*value == '"' || *value == '\\')
            strbuf_printf (b, "\\%c", *value);
        else
            strbuf_putc (b, *value);
}

static void metrics_name (struct metrics_page *page, const char *suffix, const char *const *labels,
                          const char *le)
{
    struct strbuf *b = &page->text;
    char sep = '{';
    assert (page->family);
    strbuf_printf (b, "%s%s", page->family, suffix);
    for (; labels && labels[0]; labels += 2) {
        strbuf_printf (b, "%c%s=\"", sep, labels[0]);
        metrics_label_value (b, labels[1]);
        strbuf_putc (b, '"');
        sep = ',';
    }
    if (le) {
        strbuf_printf (b, "%cle=\"%s\"", sep, le);
        sep = ',';
    }
    strbuf_puts (b, sep == ',' ? "} " : " ");
}

/* 1500000 is "1.5". */
static void metrics_millionths (int64_t v, char out[32])
{
    uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;
    int n =
        snprintf (out, 32, "%s%" PRIu64 ".%06" PRIu64, v < 0 ? "-" : "", u / 1000000, u % 1000000);
    while (out[n - 1] == '0')
        out[--n] = 0;
    if (out[n - 1] == '.')
        out[n - 1] = 0;
}

void metrics_count (struct metrics_page *page, int64_t value, const char *const *labels)
{
    assert (page->type != METRICS_HISTOGRAM);
    metrics_name (page, metrics_suffix (page->type), labels, NULL);
    strbuf_printf (&page->text, "%" PRId64 "\n", value);
}

void metrics_micro (struct metrics_page *page, int64_t millionths, const char *const *labels)
{
    char text[32];
    assert (page->type != METRICS_HISTOGRAM);
    metrics_millionths (millionths, text);
    metrics_name (page, metrics_suffix (page->type), labels, NULL);
    strbuf_printf (&page->text, "%s\n", text);
}

void metrics_one (struct metrics_page *page, const char *name, enum metrics_type type,
                  const char *help, int64_t value)
{
    metrics_family (page, name, type, help);
    metrics_count (page, value, NULL);
}

void metrics_one_micro (struct metrics_page *page, const char *name, enum metrics_type type,
                        const char *help, int64_t millionths)
{
    metrics_family (page, name, type, help);
    metrics_micro (page, millionths, NULL);
}

void metrics_observe (struct metrics_times *times, duration_us took)
{
    int i = 0;
    while (i < METRICS_BOUNDS && took > metrics_bounds[i])
        i++;
    times->count[i]++;
    times->sum_us += took > 0 ? took : 0;
}

bool metrics_observed (const struct metrics_times *times)
{
    for (int i = 0; i <= METRICS_BOUNDS; i++)
        if (times->count[i])
            return true;
    return false;
}

void metrics_times (struct metrics_page *page, const struct metrics_times *times,
                    const char *const *labels)
{
    uint64_t so_far = 0;
    char text[32];
    assert (page->type == METRICS_HISTOGRAM);
    for (int i = 0; i <= METRICS_BOUNDS; i++) {
        if (i < METRICS_BOUNDS)
            metrics_millionths (metrics_bounds[i], text);
        so_far += times->count[i];
        metrics_name (page, "_bucket", labels, i < METRICS_BOUNDS ? text : "+Inf");
        strbuf_printf (&page->text, "%" PRIu64 "\n", so_far);
    }
    metrics_millionths (times->sum_us, text);
    metrics_name (page, "_sum", labels, NULL);
    strbuf_printf (&page->text, "%s\n", text);
    metrics_name (page, "_count", labels, NULL);
    strbuf_printf (&page->text, "%" PRIu64 "\n", so_far);
}

void metrics_end (struct metrics_page *page)
{
    if (page->form == METRICS_OPEN)
        strbuf_puts (&page->text, "# EOF\n");
}
