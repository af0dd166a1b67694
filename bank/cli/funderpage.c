/* A grant's statement for its funder: as tables, and as a page to be printed (one HTML file that
 * needs nothing else) with the burn-down as a plot; weasyprint(1) makes a PDF file of the page. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bank/cli/util.h"
#include "proto/audit/block.h"

enum {
    PLOT_W = 720,
    PLOT_H = 260,
    PLOT_LEFT = 90,
    PLOT_RIGHT = 15,
    PLOT_TOP = 15,
    PLOT_BOTTOM = 40
};

static void text_put (struct strbuf *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            strbuf_puts (out, "&lt;");
            break;
        case '>':
            strbuf_puts (out, "&gt;");
            break;
        case '&':
            strbuf_puts (out, "&amp;");
            break;
        default:
            strbuf_putc (out, *text);
        }
}

/* "2026-11-21", or with the time of day where that says more. */
static void moment_put (struct strbuf *out, time_us at, bool with_time)
{
    time_t seconds = (time_t)(at / US_PER_S);
    struct tm tm;
    char text[32];
    gmtime_r (&seconds, &tm);
    strftime (text, sizeof (text), with_time ? "%Y-%m-%d %H:%M" : "%Y-%m-%d", &tm);
    strbuf_puts (out, text);
}

/* Credits to the last micro-credit, so that sums are seen to be right, with thin spaces between thousands:
 * 1 234 567.5. */
static void credits_put (struct strbuf *out, __int128 amount)
{
    char digits[48];
    int len = 0, places = 6;
    unsigned __int128 left = amount < 0 ? -(unsigned __int128)amount : (unsigned __int128)amount;
    unsigned long long micro = (unsigned long long)(left % MICRO_PER_CREDIT);
    left /= MICRO_PER_CREDIT;
    do
        digits[len++] = (char)('0' + (int)(left % 10));
    while (left /= 10);
    strbuf_puts (out, amount < 0 ? "−" : "");
    for (int i = len; i > 0; i--)
        strbuf_printf (out, "%s%c", i < len && i % 3 == 0 ? "\u2009" : "", digits[i - 1]);
    for (; micro && micro % 10 == 0; places--)
        micro /= 10;
    if (micro)
        strbuf_printf (out, ".%0*llu", places, micro);
}

/* A sum that may be beyond 64 bits, in micro-credits. */
static __int128 sum_of (credit_micro amount, const char *wide)
{
    __int128 sum = 0;
    int places = -1; /* after the point */
    if (!wide[0])
        return amount;
    for (const char *c = wide; *c; c++) {
        if (*c == '.')
            places = 0;
        if (*c < '0' || *c > '9' || places == 6)
            continue;
        sum = sum * 10 + (*c - '0');
        places += places >= 0;
    }
    for (places = places < 0 ? 0 : places; places < 6; places++)
        sum *= 10;
    return wide[0] == '-' ? -sum : sum;
}
#define SUM_OF(m, field) sum_of ((m)->field##_micro, (m)->field##_wide)

/* ---- the plot: attributes, because not every renderer applies a page's style to pictures in it ---- */

#define TEXT "font-family='sans-serif' font-size='11' fill='#333'"
#define GRID "stroke='#ddd'"
#define EVEN "stroke='#888' stroke-dasharray='5 4'"
#define LEFT "fill='none' stroke='#0b5394' stroke-width='2'"

struct plot {
    struct strbuf *out;
    time_us from, to;
    double top; /* credits at the upper edge */
};

static double x_of (const struct plot *p, time_us at)
{
    double part = (double)(at - p->from) / (double)(p->to - p->from);
    return PLOT_LEFT + part * (PLOT_W - PLOT_LEFT - PLOT_RIGHT);
}

static double y_of (const struct plot *p, __int128 amount)
{
    double part = (double)amount / MICRO_PER_CREDIT / p->top;
    part = part < 0 ? 0 : part;
    return PLOT_H - PLOT_BOTTOM - part * (PLOT_H - PLOT_TOP - PLOT_BOTTOM);
}

/* 1, 2 or 5 times a power of ten: at most six steps to the top. */
static double step_of (double top)
{
    static const double nice[] = {1, 2, 5};
    double power = 1;
    for (;;) {
        for (int i = 0; i < 3; i++)
            if (top / (nice[i] * power) <= 6)
                return nice[i] * power;
        power *= 10;
    }
}

static void axes (const struct plot *p)
{
    double step = step_of (p->top);
    for (double v = 0; v <= p->top * 1.0001; v += step) {
        double y = y_of (p, (__int128)(v * MICRO_PER_CREDIT));
        strbuf_printf (p->out, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' " GRID "/>", PLOT_LEFT, y,
                       PLOT_W - PLOT_RIGHT, y);
        strbuf_printf (p->out, "<text x='%d' y='%.1f' text-anchor='end' " TEXT ">", PLOT_LEFT - 8,
                       y + 4);
        credits_put (p->out, (__int128)(v * MICRO_PER_CREDIT));
        strbuf_printf (p->out, "</text>\n");
    }
    for (int i = 0; i <= 4; i++) {
        time_us at = p->from + (p->to - p->from) / 4 * i;
        strbuf_printf (p->out,
                       "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' stroke='#888'/>"
                       "<text x='%.1f' y='%d' text-anchor='%s' " TEXT ">",
                       x_of (p, at), PLOT_H - PLOT_BOTTOM, x_of (p, at), PLOT_H - PLOT_BOTTOM + 5,
                       x_of (p, at), PLOT_H - PLOT_BOTTOM + 20, i == 4 ? "end" : "middle");
        moment_put (p->out, at, p->to - p->from < 4 * 86400 * US_PER_S);
        strbuf_printf (p->out, "</text>\n");
    }
}

/* What is left, as steps; and what would be left if it were used evenly. */
static void curves (const struct plot *p, const Nui__Bank__V1__GrantStatementReply *st)
{
    const Nui__Bank__V1__GrantItem *g = st->grant;
    if (g->valid_to_us)
        strbuf_printf (p->out, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' " EVEN "/>\n",
                       x_of (p, g->valid_from_us > p->from ? g->valid_from_us : p->from),
                       y_of (p, SUM_OF (g, granted)), x_of (p, g->valid_to_us), y_of (p, 0));
    double y = y_of (p, SUM_OF (st->opening, left));
    strbuf_printf (p->out, "<path class='left' d='M%.1f %.1f", x_of (p, st->from_us), y);
    for (size_t i = 0; i < st->n_points; i++) {
        strbuf_printf (p->out, " H%.1f V%.1f", x_of (p, st->points[i]->at_us),
                       y_of (p, SUM_OF (st->points[i], left)));
    }
    strbuf_printf (p->out, " H%.1f' " LEFT "/>\n", x_of (p, st->to_us));
}

static void plot_put (struct strbuf *out, const Nui__Bank__V1__GrantStatementReply *st)
{
    struct plot p = {.out = out, .from = st->from_us, .to = st->to_us};
    __int128 top = SUM_OF (st->opening, left);
    for (size_t i = 0; i < st->n_points; i++)
        if (SUM_OF (st->points[i], left) > top)
            top = SUM_OF (st->points[i], left);
    if (st->grant->valid_to_us) {
        top = SUM_OF (st->grant, granted) > top ? SUM_OF (st->grant, granted) : top;
        p.to = st->grant->valid_to_us > p.to ? st->grant->valid_to_us : p.to;
    }
    p.to = p.to > p.from ? p.to : p.from + US_PER_S;
    p.top = top > MICRO_PER_CREDIT ? (double)top / MICRO_PER_CREDIT * 1.05 : 1;
    strbuf_printf (out, "<svg viewBox='0 0 %d %d' role='img' aria-label='burn-down'>\n", PLOT_W,
                   PLOT_H);
    axes (&p);
    curves (&p, st);
    strbuf_printf (out,
                   "<text x='%d' y='%d' text-anchor='middle' " TEXT
                   ">credits left (solid); used evenly "
                   "(dashed)</text></svg>\n",
                   (PLOT_W + PLOT_LEFT) / 2, PLOT_H - 4);
}

/* ---- the page ---- */

static const char style[] =
    "@page{size:A4;margin:18mm}body{font:11pt/1.4 sans-serif;max-width:180mm;margin:1em auto;"
    "color:#111}h1{font-size:16pt;margin:0}h2{font-size:12pt;margin:1.2em 0 .3em}table{border-"
    "collapse:collapse;width:100%}th,td{padding:.15em .6em;border-bottom:1px solid #ccc;text-align:"
    "left}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}svg{width:100%;height:auto}"
    ".fine{font-size:8.5pt;"
    "color:#444;word-break:break-all}tr{break-inside:avoid}";

static void row (struct strbuf *out, const char *label, __int128 amount)
{
    strbuf_printf (out, "<tr><td>%s</td><td class='n'>", label);
    credits_put (out, amount);
    strbuf_printf (out, "</td></tr>\n");
}

static void summary (struct strbuf *out, const Nui__Bank__V1__GrantStatementReply *st)
{
    const Nui__Bank__V1__GrantPoint *end =
        st->n_points ? st->points[st->n_points - 1] : st->opening;
    __int128 began = SUM_OF (st->opening, left), left = SUM_OF (end, left);
    __int128 granted = SUM_OF (end, granted) - SUM_OF (st->opening, granted);
    __int128 charged = SUM_OF (end, charged) - SUM_OF (st->opening, charged);
    __int128 other = left - began - granted + charged;
    strbuf_printf (out, "<h2>In this period</h2><table>\n");
    row (out, "Left at its beginning", began);
    row (out, "Granted", granted);
    row (out, "Charged, less refunds", -charged);
    row (out, "Expired, or owed before", other);
    row (out, "Left at its end", left);
    row (out, "of which jobs hold now", SUM_OF (st->grant, held));
    strbuf_printf (out, "</table>\n");
}

static void shares (struct strbuf *out, const Nui__Bank__V1__GrantStatementReply *st)
{
    strbuf_printf (out, "<h2>Who used it</h2><table><tr><th>Project</th><th>Account</th><th>Site"
                        "</th><th class='n'>Jobs</th><th class='n'>Credits</th></tr>\n");
    for (size_t i = 0; i < st->n_shares; i++) {
        const Nui__Bank__V1__GrantShare *s = st->shares[i];
        const char *word[] = {s->project, s->account, s->site};
        strbuf_printf (out, "<tr>");
        for (int k = 0; k < 3; k++) {
            strbuf_printf (out, "<td>");
            text_put (out, word[k]);
            strbuf_printf (out, "</td>");
        }
        strbuf_printf (out, "<td class='n'>%llu</td><td class='n'>", (unsigned long long)s->jobs);
        credits_put (out, SUM_OF (s, charged));
        strbuf_printf (out, "</td></tr>\n");
    }
    strbuf_printf (out, st->n_shares ? "</table>\n"
                                     : "<tr><td colspan='5'>nobody yet</td></tr></table>\n");
}

static void events (struct strbuf *out, const Nui__Bank__V1__GrantStatementReply *st)
{
    strbuf_printf (
        out,
        "<h2>What was decided on it</h2><table><tr><th>When</th><th>By</th><th>What</th></tr>\n");
    for (size_t i = 0; i < st->n_events; i++) {
        strbuf_printf (out, "<tr><td>");
        moment_put (out, st->events[i]->at_us, true);
        strbuf_printf (out, "</td><td>");
        text_put (out, st->events[i]->who);
        strbuf_printf (out, "</td><td>%s: ", st->events[i]->kind);
        text_put (out, st->events[i]->description);
        strbuf_printf (out, "</td></tr>\n");
    }
    strbuf_printf (out,
                   st->n_events ? "</table>\n" : "<tr><td colspan='3'>nothing</td></tr></table>\n");
}

/* What ties the page to the bank's signed history. */
static void anchor_put (struct strbuf *out, const Nui__Bank__V1__Block *anchor)
{
    struct block block;
    struct err err;
    if (!anchor || !anchor->envelope ||
        block_decode (anchor->envelope->body.data, anchor->envelope->body.len, &block, &err) < 0)
        return;
    struct merkle_hash link = block_link (&block);
    char text[2 * MERKLE_BYTES + 1];
    strbuf_printf (out,
                   "<p class='fine'>The bank's history stood at block %lld when this was made; its "
                   "link is %s. Keep it: <code>nui verify --anchor</code> shows that the history "
                   "still holds it, <code>nui proof</code> that a line is in it.</p>\n",
                   (long long)block.number, merkle_text (&link, text));
}

static void page (struct strbuf *out, const Nui__Bank__V1__GrantStatementReply *st)
{
    const Nui__Bank__V1__GrantItem *g = st->grant;
    strbuf_printf (out, "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>");
    text_put (out, g->reference);
    strbuf_printf (out, "</title><style>%s</style></head><body>\n<h1>", style);
    text_put (out, g->reference);
    strbuf_printf (out, "</h1><p>%s, granted by ", g->grant_id);
    text_put (out, g->funder);
    strbuf_printf (out, " to project ");
    text_put (out, g->project);
    strbuf_printf (out, " (account ");
    text_put (out, g->account);
    strbuf_printf (out, "), valid from ");
    moment_put (out, g->valid_from_us, false);
    if (g->valid_to_us) {
        strbuf_printf (out, " to ");
        moment_put (out, g->valid_to_us, false);
    }
    strbuf_printf (out, ", in %u account%s.<br>Statement from ", g->accounts,
                   g->accounts == 1 ? "" : "s");
    moment_put (out, st->from_us, true);
    strbuf_printf (out, " to ");
    moment_put (out, st->to_us, true);
    strbuf_printf (out, " UTC, in credits.</p>\n");
    plot_put (out, st);
    summary (out, st);
    shares (out, st);
    events (out, st);
    anchor_put (out, st->anchor);
    strbuf_printf (out, "</body></html>\n");
}

int funder_page (const Nui__Bank__V1__GrantStatementReply *st, const char *file)
{
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    page (&out, st);
    FILE *f = fopen (file, "w");
    bool whole = f && fwrite (strbuf_text (&out), 1, out.len, f) == out.len;
    whole &= f && fclose (f) == 0;
    strbuf_free (&out);
    if (whole)
        return CLI_OK;
    err_set (&err, ERR_IO, "cannot write %s: %s", file, strerror (errno));
    return cli_fail ("grant", &err);
}

/* weasyprint's standard input is the page, its standard output the file. */
static int pdf_make (FILE *html, FILE *pdf, struct err *err)
{
    char *argv[] = {(char[]){"weasyprint"}, (char[]){"--quiet"}, (char[]){"-"}, (char[]){"-"},
                    NULL};
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status = 0;
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_adddup2 (&files, fileno (html), STDIN_FILENO);
    posix_spawn_file_actions_adddup2 (&files, fileno (pdf), STDOUT_FILENO);
    int rc = posix_spawnp (&pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy (&files);
    if (rc == ENOENT)
        return err_set (
            err, ERR_IO,
            "weasyprint is not installed (Debian has it as a package of that name): --html "
            "writes the page, which any browser prints");
    if (rc)
        return err_set (err, ERR_IO, "cannot run weasyprint: %s", strerror (rc));
    while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED (status) || WEXITSTATUS (status) != 0)
        return err_set (err, ERR_IO, "weasyprint failed: nothing was written");
    return 0;
}

int funder_pdf (const Nui__Bank__V1__GrantStatementReply *st, const char *file)
{
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    FILE *html = tmpfile (), *pdf = fopen (file, "w");
    page (&out, st);
    if (!pdf)
        err_set (&err, ERR_IO, "cannot write %s: %s", file, strerror (errno));
    else if (!html || fwrite (strbuf_text (&out), 1, out.len, html) != out.len ||
             fseek (html, 0, SEEK_SET) != 0)
        err_set (&err, ERR_IO, "cannot write a temporary file: %s", strerror (errno));
    else
        pdf_make (html, pdf, &err);
    strbuf_free (&out);
    if (html)
        fclose (html);
    if (pdf)
        fclose (pdf);
    if (pdf && err.code)
        unlink (file);
    return err.code ? cli_fail ("grant", &err) : CLI_OK;
}

int funder_table (struct cli_context *ctx, const Nui__Bank__V1__GrantStatementReply *st)
{
    static const struct table_column columns[] = {{"time", "Time", TABLE_TIME, 0},
                                                  {"granted", "Granted", TABLE_CREDITS, 0},
                                                  {"charged", "Charged", TABLE_CREDITS, 0},
                                                  {"left", "Left", TABLE_CREDITS, 0}};
    struct table *table = table_create (columns, 4);
    for (size_t i = 0; i < st->n_points + 1; i++) {
        const Nui__Bank__V1__GrantPoint *point = i ? st->points[i - 1] : st->opening;
        table_time (table, point->at_us);
        table_credits_wide (table, point->granted_micro, point->granted_wide);
        table_credits_wide (table, point->charged_micro, point->charged_wide);
        table_credits_wide (table, point->left_micro, point->left_wide);
        table_end_row (table);
    }
    int rc = table_print (table, ctx);
    table_destroy (table);
    char at[QUANTITY_TEXT_MAX];
    for (size_t i = 0;
         i < st->n_events && rc == CLI_OK && cli_format (ctx) == CLI_TABLE && !cli_noheader (ctx);
         i++)
        printf ("%s%s  %s by %s: %s\n", i ? "" : "\n", time_format_iso (st->events[i]->at_us, at),
                st->events[i]->kind, st->events[i]->who, st->events[i]->description);
    return rc;
}
