/* metrics: what a daemon tells of itself, as text for Prometheus and whoever reads OpenMetrics 1.0.
 *
 * A page is written family after family, each family once; of a family first its head, then its samples. Names are whole
 * as OpenMetrics has them, with the unit at their end (nui_pass_seconds) and without `_total`, `_info`, `_bucket`, which
 * the type adds. Labels are few and bounded (site, class, state, reason), never a user or a job.
 *
 * Numbers are exact: whole ones, or millionths (microseconds as seconds, micro-credits as credits, ppm as ratios).
 * Pure. Writing costs O(bytes). */
#ifndef NUI_METRICS_METRICS_H
#define NUI_METRICS_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/quantity.h"
#include "proto/base/strbuf.h"

enum metrics_form {
    METRICS_OPEN,       /* OpenMetrics 1.0 */
    METRICS_PROMETHEUS, /* Prometheus' text form 0.0.4 */
    METRICS_FORMS
};

enum metrics_type { METRICS_GAUGE, METRICS_COUNTER, METRICS_HISTOGRAM, METRICS_INFO };

struct metrics_page {
    struct strbuf text; /* strbuf_free */
    enum metrics_form form;
    const char *family; /* the one that is being written */
    enum metrics_type type;
};

/* Which form an HTTP Accept header (NULL: none) asks for: Prometheus' where it names text/plain and not OpenMetrics. */
enum metrics_form metrics_form_of (const char *accept);
const char *metrics_content_type (enum metrics_form form);

/* The head of a family; name and help are kept by pointer until the next. */
void metrics_family (struct metrics_page *page, const char *name, enum metrics_type type,
                     const char *help);

/* A sample of the family. labels: name, value, name, value …, NULL; values need no quoting. */
#define METRICS_LABELS(...) ((const char *const[]){__VA_ARGS__, NULL}) /* none: NULL */
void metrics_count (struct metrics_page *page, int64_t value, const char *const *labels);
void metrics_micro (struct metrics_page *page, int64_t millionths, const char *const *labels);

/* Family and the one sample without labels. */
void metrics_one (struct metrics_page *page, const char *name, enum metrics_type type,
                  const char *help, int64_t value);
void metrics_one_micro (struct metrics_page *page, const char *name, enum metrics_type type,
                        const char *help, int64_t millionths);

/* Durations, sorted into buckets of metrics_bounds. All zero is empty. */
enum { METRICS_BOUNDS = 9 };
extern const duration_us metrics_bounds[METRICS_BOUNDS];
struct metrics_times {
    uint64_t count[METRICS_BOUNDS + 1]; /* the last: longer than all bounds */
    int64_t sum_us;
};
void metrics_observe (struct metrics_times *times, duration_us took); /* below 0 is 0 */
bool metrics_observed (const struct metrics_times *times);            /* any */
void metrics_times (struct metrics_page *page, const struct metrics_times *times,
                    const char *const *labels);

/* After the last family. */
void metrics_end (struct metrics_page *page);

#endif
