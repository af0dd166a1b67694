/* report: collects findings, figures and configurations, and writes page and CSV files together.
 * The experiments fill it. All texts that come from files or options are escaped, and the page
 * fetches nothing from elsewhere. */
#include "local/sim/lab/report.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "local/sim/outfile.h"
#include "proto/base/mem.h"

struct report {
    const char *title, *source;
    struct strbuf lead, body, config;
    struct finding finding[REPORT_FINDINGS_MAX];
    uint32_t finding_count;
    struct {
        const char *name;
        struct strbuf text;
    } file[REPORT_FILES_MAX];
    uint32_t file_count;
    uint32_t figure_count;
};

struct report *report_create (const char *title, const char *source)
{
    struct report *r = mem_zero (1, sizeof *r);
    r->title = title;
    r->source = source;
    return r;
}

void report_destroy (struct report *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->finding_count; i++) {
        free (r->finding[i].claim);
        free (r->finding[i].ours);
        free (r->finding[i].why);
    }
    for (uint32_t i = 0; i < r->file_count; i++)
        strbuf_free (&r->file[i].text);
    strbuf_free (&r->lead);
    strbuf_free (&r->body);
    strbuf_free (&r->config);
    free (r);
}

static char *text_of (const char *fmt, va_list ap) __attribute__ ((format (printf, 1, 0)));
static char *text_of (const char *fmt, va_list ap)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_vprintf (&b, fmt, ap);
    return strbuf_steal (&b);
}

static void paragraph (struct strbuf *out, const char *fmt, va_list ap)
    __attribute__ ((format (printf, 2, 0)));
static void paragraph (struct strbuf *out, const char *fmt, va_list ap)
{
    char *text = text_of (fmt, ap);
    strbuf_puts (out, "<p>");
    chart_text (out, text);
    strbuf_puts (out, "</p>\n");
    free (text);
}

void report_lead (struct report *r, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    paragraph (&r->lead, fmt, ap);
    va_end (ap);
}

struct finding *report_finding (struct report *r, const char *name, double value,
                                enum finding_verdict verdict, const char *claim, const char *fmt,
                                ...)
{
    assert (r->finding_count < REPORT_FINDINGS_MAX);
    struct finding *f = &r->finding[r->finding_count++];
    va_list ap;
    va_start (ap, fmt);
    *f = (struct finding){.name = name,
                          .claim = strdup (claim),
                          .ours = text_of (fmt, ap),
                          .value = value,
                          .verdict = verdict};
    va_end (ap);
    return f;
}

void finding_why (struct finding *f, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    free (f->why);
    f->why = text_of (fmt, ap);
    va_end (ap);
}

const struct finding *report_finding_at (const struct report *r, uint32_t i)
{
    return i < r->finding_count ? &r->finding[i] : NULL;
}

const struct finding *report_finding_get (const struct report *r, const char *name)
{
    for (uint32_t i = 0; i < r->finding_count; i++) {
        if (strcmp (r->finding[i].name, name) == 0)
            return &r->finding[i];
    }
    return NULL;
}

void report_heading (struct report *r, const char *text)
{
    strbuf_puts (&r->body, "<h2>");
    chart_text (&r->body, text);
    strbuf_puts (&r->body, "</h2>\n");
}

void report_text (struct report *r, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    paragraph (&r->body, fmt, ap);
    va_end (ap);
}

static void csv_link (struct report *r, const char *name)
{
    if (name)
        strbuf_printf (&r->body, " <a class='csv' href='%s'>%s</a>", name, name);
}

void report_figure (struct report *r, const struct chart *chart, const char *csv_name,
                    const char *caption)
{
    strbuf_puts (&r->body, "<figure>\n");
    chart_svg (&r->body, chart);
    strbuf_printf (&r->body, "<figcaption><b>Figure %u.</b> ", ++r->figure_count);
    chart_text (&r->body, caption);
    csv_link (r, csv_name);
    strbuf_puts (&r->body, "</figcaption>\n</figure>\n");
}

struct strbuf *report_file (struct report *r, const char *name)
{
    assert (r->file_count < REPORT_FILES_MAX);
    r->file[r->file_count].name = name;
    return &r->file[r->file_count++].text;
}

static void csv_text (struct strbuf *out, const char *text)
{
    bool quoted = strpbrk (text, ",\"\n") != NULL;
    if (quoted)
        strbuf_putc (out, '"');
    for (; *text; text++) {
        if (*text == '"')
            strbuf_putc (out, '"');
        strbuf_putc (out, *text);
    }
    if (quoted)
        strbuf_putc (out, '"');
}

void report_chart_csv (struct report *r, const char *name, const char *x_name,
                       const struct chart *c)
{
    struct strbuf *out = report_file (r, name);
    strbuf_puts (out, x_name);
    for (uint32_t s = 0; s < c->series_count; s++) {
        strbuf_putc (out, ',');
        csv_text (out, c->series[s].label ? c->series[s].label : "");
    }
    strbuf_putc (out, '\n');
    for (uint32_t i = 0; c->series_count && i < c->series[0].count; i++) {
        if (c->category)
            csv_text (out, c->category[i]);
        else
            strbuf_printf (out, "%.6g", c->series[0].x[i]);
        for (uint32_t s = 0; s < c->series_count; s++) {
            strbuf_putc (out, ',');
            if (i < c->series[s].count && isfinite (c->series[s].y[i]))
                strbuf_printf (out, "%.8g", c->series[s].y[i]);
        }
        strbuf_putc (out, '\n');
    }
}

void report_table (struct report *r, const char *rows, const char *csv_name)
{
    struct strbuf *csv = csv_name ? report_file (r, csv_name) : NULL;
    bool head = true;
    strbuf_puts (&r->body, "<table>\n");
    while (*rows) {
        strbuf_puts (&r->body, head ? "<thead><tr>" : "<tr>");
        bool first = true, end = false;
        while (!end) {
            size_t len = strcspn (rows, "\t\n");
            char cell[512];
            snprintf (cell, sizeof cell, "%.*s", (int)(len < 500 ? len : 500), rows);
            strbuf_printf (&r->body, "<t%c%s>", head ? 'h' : 'd', first ? " class='name'" : "");
            chart_text (&r->body, cell);
            strbuf_printf (&r->body, "</t%c>", head ? 'h' : 'd');
            if (csv) {
                strbuf_puts (csv, first ? "" : ",");
                csv_text (csv, cell);
            }
            end = rows[len] != '\t';
            rows += len + (rows[len] != 0);
            first = false;
        }
        strbuf_puts (&r->body, head ? "</tr></thead>\n" : "</tr>\n");
        if (csv)
            strbuf_putc (csv, '\n');
        head = false;
    }
    strbuf_puts (&r->body, "</table>\n");
    if (csv_name) {
        strbuf_puts (&r->body, "<p class='files'>");
        csv_link (r, csv_name);
        strbuf_puts (&r->body, "</p>\n");
    }
}

void report_config (struct report *r, const char *label, const char *text)
{
    strbuf_puts (&r->config, "<div class='config'><h3>");
    chart_text (&r->config, label);
    strbuf_puts (&r->config, "</h3>\n<pre>");
    chart_text (&r->config, text);
    strbuf_puts (&r->config, "</pre></div>\n");
}

/* --- the page ------------------------------------------------------------------------------- */

static const char style[] =
    "body{font:16px/1.5 'DejaVu Sans',Helvetica,Arial,sans-serif;color:#1c1c1c;max-width:920px;"
    "margin:2em auto;padding:0 1.5em}\n"
    "h1{font-size:1.65em;line-height:1.25;margin:0 0 .2em}h2{font-size:1.2em;margin:1.8em 0 .5em;"
    "border-bottom:1px solid #ccc;padding-bottom:.15em}h3{font-size:1em;margin:.6em 0 .2em}\n"
    ".source{color:#555;margin:0 0 1.2em}p{margin:.6em 0}\n"
    "figure{margin:1.2em "
    "0;break-inside:avoid}figcaption{font-size:.88em;color:#333;margin-top:.2em}\n"
    "svg{width:100%;height:auto;display:block}\n"
    "svg text{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;fill:#222}\n"
    ".title{font-size:15px;font-weight:bold}.tick{font-size:12px}.axis,.legend{font-size:12.5px}\n"
    ".grid{stroke:#e3e3e3}.base,.zero{stroke:#777}.line{fill:none;stroke-linejoin:round}\n"
    ".error{stroke:#111;stroke-width:1.4;fill:none}\n"
    "table{border-collapse:collapse;width:100%;font-size:.86em;margin:.8em 0;break-inside:auto}\n"
    "tr{break-inside:avoid}th,td{text-align:right;padding:.32em .55em;border-bottom:1px solid #ddd;"
    "vertical-align:top}th{border-bottom:2px solid #999}td.name,th.name{text-align:left}\n"
    "table.findings td,table.findings th{text-align:left}.why{color:#444;font-size:.95em;"
    "margin:.35em 0 0}\n"
    ".verdict{font-weight:bold;white-space:nowrap}.holds{color:#00694d}.differs{color:#a63d00}"
    ".noise,.number{color:#555}\n"
    "pre{background:#f5f5f5;padding:.6em .8em;font-size:.82em;line-height:1.4;overflow-x:auto;"
    "white-space:pre-wrap;margin:.2em 0}.config{break-inside:avoid}\n"
    "a{color:#00568a}.csv{white-space:nowrap}.files{font-size:.86em}\n"
    "@page{margin:16mm 14mm}@media print{body{max-width:none;margin:0;padding:0;font-size:10.5pt}"
    "h2{break-after:avoid}a{color:inherit;text-decoration:none}pre{background:none;border:1px "
    "solid "
    "#ccc}}\n";

static void findings_put (const struct report *r, struct strbuf *out)
{
    static const char *const word[] = {"holds", "differs", "noise", "number", "number", "number"};
    static const char *const shown[] = {"holds",   "differs", "not told from noise",
                                        "&ndash;", "lower",   "higher"};
    if (!r->finding_count)
        return;
    strbuf_puts (out, "<h2>What came out</h2>\n<table class='findings'><thead><tr><th>Claim or "
                      "question</th><th>Found here</th><th></th></tr></thead>\n");
    for (uint32_t i = 0; i < r->finding_count; i++) {
        const struct finding *f = &r->finding[i];
        strbuf_puts (out, "<tr><td>");
        chart_text (out, f->claim);
        strbuf_puts (out, "</td><td>");
        chart_text (out, f->ours);
        if (f->why) {
            strbuf_puts (out, "<p class='why'>");
            chart_text (out, f->why);
            strbuf_puts (out, "</p>");
        }
        strbuf_printf (out, "</td><td class='verdict %s'>%s</td></tr>\n", word[f->verdict],
                       shown[f->verdict]);
    }
    strbuf_puts (out, "</table>\n");
}

static void page_put (const struct report *r, struct strbuf *out)
{
    strbuf_puts (out, "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\n<meta "
                      "name='viewport' content='width=device-width, initial-scale=1'>\n<title>");
    chart_text (out, r->title);
    strbuf_puts (out, "</title>\n<style>\n");
    strbuf_puts (out, style);
    strbuf_puts (out, "</style></head><body>\n<h1>");
    chart_text (out, r->title);
    strbuf_puts (out, "</h1>\n<p class='source'>");
    chart_text (out, r->source);
    strbuf_puts (out, "</p>\n");
    strbuf_append (out, r->lead.data, r->lead.len);
    findings_put (r, out);
    strbuf_append (out, r->body.data, r->body.len);
    if (r->config.len) {
        strbuf_puts (out, "<h2>What made this page</h2>\n");
        strbuf_append (out, r->config.data, r->config.len);
    }
    strbuf_printf (out, "<p class='files'>Made by nui %s. All numbers:", NUI_VERSION);
    for (uint32_t i = 0; i < r->file_count; i++)
        strbuf_printf (out, " <a class='csv' href='%s'>%s</a>", r->file[i].name, r->file[i].name);
    strbuf_puts (out, "</p>\n</body></html>\n");
}

static int one_write (const char *folder, const char *name, const struct strbuf *text,
                      struct err *err)
{
    char path[4096];
    struct outfiles files = {0};
    snprintf (path, sizeof path, "%s/%s", folder, name);
    strbuf_append (outfiles_add (&files, path), text->data, text->len);
    int rc = outfiles_commit (&files, err);
    outfiles_free (&files);
    return rc;
}

static int path_make (char *path, struct err *err)
{
    struct stat st;
    for (char *slash = strchr (path + 1, '/');; slash = strchr (slash + 1, '/')) {
        if (slash)
            *slash = 0;
        int rc = mkdir (path, 0777) != 0 && errno != EEXIST
                     ? err_set (err, ERR_IO, "%s: %s", path, strerror (errno))
                     : 0;
        if (rc == 0 && (stat (path, &st) != 0 || !S_ISDIR (st.st_mode)))
            rc = err_set (err, ERR_INVALID, "%s is no folder", path);
        if (slash)
            *slash = '/';
        if (rc != 0 || !slash)
            return rc;
    }
}

int report_folder_make (const char *folder, struct err *err)
{
    struct strbuf path = STRBUF_INIT;
    strbuf_puts (&path, folder);
    int rc = path_make (path.data, err);
    strbuf_free (&path);
    return rc;
}

int report_write (const struct report *r, const char *folder, struct err *err)
{
    struct strbuf page = STRBUF_INIT;
    int rc = 0;
    for (uint32_t i = 0; i < r->file_count && !rc; i++)
        rc = one_write (folder, r->file[i].name, &r->file[i].text, err);
    page_put (r, &page);
    if (!rc)
        rc = one_write (folder, "index.html", &page, err);
    strbuf_free (&page);
    return rc;
}
