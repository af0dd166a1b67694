/* diagnose -s: what SRCFG asks for, and the reservations that stand for it. */
#include <string.h>

#include "local/cli/local_cli.h"

static void list_line (struct strbuf *out, const char *what, char *const *item, size_t count)
{
    if (count == 0)
        return;
    strbuf_printf (out, "    %s:", what);
    for (size_t i = 0; i < count; i++)
        strbuf_printf (out, " %s", item[i]);
    strbuf_putc (out, '\n');
}

static void standing_text (const Nui__Local__V1__StandingReply *r, bool noheader,
                           struct strbuf *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    if (!noheader)
        strbuf_puts (out,
                     "Diagnosing Standing Reservations\n"
                     "Name                 Period   Days                 StartTime     EndTime "
                     "Depth Resources\n"
                     "----                 ------   ----                 ---------     ------- "
                     "----- ---------\n");
    for (size_t i = 0; i < r->n_rows; i++) {
        const Nui__Local__V1__StandingRow *s = r->rows[i];
        bool ever = strcmp (s->period, "INFINITY") == 0;
        strbuf_printf (out, "%-20s %-8s %-20s %9s %11s %5u %s of %s\n", s->name, s->period, s->days,
                       ever ? "-" : span_text (s->start_us, a),
                       ever ? "-" : span_text (s->end_us, b), s->depth, s->resources, s->task);
        if (*s->features)
            strbuf_printf (out, "    Features: %s\n", s->features);
        if (*s->partition)
            strbuf_printf (out, "    Partition: %s\n", s->partition);
        list_line (out, "ACL", s->acl, s->n_acl);
        list_line (out, "Flags", s->flags, s->n_flags);
        if (*s->owner)
            strbuf_printf (out, "    Owner: %s\n", s->owner);
        list_line (out, "Reservations", s->reservations, s->n_reservations);
        if (s->next_us == 0)
            strbuf_printf (out, "WARNING:  '%s' has no time within a year\n", s->name);
        else if (s->n_reservations == 0)
            strbuf_printf (out, "WARNING:  no reservation stands for '%s'\n", s->name);
    }
    if (!noheader)
        strbuf_printf (out, "\nStanding Reservations: %zu\n\n", r->n_rows);
}

static const struct table_column columns[] = {
    {"name", "Name", TABLE_TEXT},
    {"period", "Period", TABLE_TEXT},
    {"days", "Days", TABLE_TEXT},
    {"start", "Start", TABLE_DURATION},
    {"end", "End", TABLE_DURATION},
    {"depth", "Depth", TABLE_INT},
    {"resources", "Resources", TABLE_TEXT},
    {"task", "Task", TABLE_TEXT},
    {"features", "Features", TABLE_TEXT},
    {"partition", "Partition", TABLE_TEXT},
    {"acl", "ACL", TABLE_TEXT, .between = " "},
    {"flags", "Flags", TABLE_TEXT, .between = " "},
    {"owner", "Owner", TABLE_TEXT},
    {"next_time", "Next", TABLE_TIME},
    {"reservations", "Reservations", TABLE_TEXT, .between = " "},
};

int diagnose_standing (struct cli_context *ctx, const char *site, const char *name)
{
    Nui__Local__V1__StandingRequest request = NUI__LOCAL__V1__STANDING_REQUEST__INIT;
    Nui__Local__V1__StandingReply *reply = NULL;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int rc;
    if (name)
        request.name = (char *)(uintptr_t)name;
    if (site_admin (ctx, site, "Standing", &request, true, &reply, &err) < 0)
        return cli_fail ("diagnose", &err);
    if (cli_format (ctx) == CLI_TABLE) {
        standing_text (reply, cli_noheader (ctx), &out);
        rc = cli_output (&out);
    } else {
        rc = TABLE_SHOW (ctx, columns, reply->rows, reply->n_rows);
    }
    strbuf_free (&out);
    nui__local__v1__standing_reply__free_unpacked (reply, NULL);
    return rc;
}
