/* report: the page of an experiment: what was claimed and what came out, figures, the numbers as
 * CSV, the configuration. One HTML file without anything from elsewhere, beside it the CSV files.
 *
 * Findings are there for tests as well: each has a name, and a test asserts what the page says. */
#ifndef NUI_LOCAL_SIM_LAB_REPORT_H
#define NUI_LOCAL_SIM_LAB_REPORT_H

#include <stdbool.h>

#include "local/sim/lab/chart.h"
#include "proto/base/err.h"

enum { REPORT_FINDINGS_MAX = 32, REPORT_FILES_MAX = 32 };

enum finding_verdict {
    FINDING_HOLDS,
    FINDING_DIFFERS, /* why says how and why */
    FINDING_NOISE,   /* cannot be told from chance */
    FINDING_NUMBER,  /* nothing was claimed: only told */
    FINDING_LOWER,   /* than what it is compared with, by more than chance */
    FINDING_HIGHER,
};

struct finding {
    const char *name; /* "order-beats-fifo"; static */
    char *claim;      /* the paper's, or what is asked */
    char *ours;
    char *why; /* NULL: nothing to explain */
    double value;
    enum finding_verdict verdict;
};

struct report;

struct report *report_create (const char *title, const char *source);
void report_destroy (struct report *report); /* NULL is a no-op */

/* A paragraph before the findings. */
void report_lead (struct report *report, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
struct finding *report_finding (struct report *report, const char *name, double value,
                                enum finding_verdict verdict, const char *claim, const char *fmt,
                                ...) __attribute__ ((format (printf, 6, 7)));
void finding_why (struct finding *finding, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
/* NULL: there is none of that name. */
const struct finding *report_finding_get (const struct report *report, const char *name);
const struct finding *report_finding_at (const struct report *report, uint32_t index);

void report_heading (struct report *report, const char *text);
void report_text (struct report *report, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));
/* csv_name may be NULL: no numbers of its own. */
void report_figure (struct report *report, const struct chart *chart, const char *csv_name,
                    const char *caption);
/* The text of a new file beside the page, to be filled (name static, "waits.csv"). */
struct strbuf *report_file (struct report *report, const char *name);
/* Columns x and one for each series; for charts whose series share their x. */
void report_chart_csv (struct report *report, const char *name, const char *x_name,
                       const struct chart *chart);

/* Rows of a table: cells divided by '\t'; the first row is the head. */
void report_table (struct report *report, const char *rows, const char *csv_name);
void report_config (struct report *report, const char *label, const char *text);

/* The folder, with whatever is missing above it. */
int report_folder_make (const char *folder, struct err *err);
/* Writes index.html and the files into folder, which must be there. */
int report_write (const struct report *report, const char *folder, struct err *err);

#endif
