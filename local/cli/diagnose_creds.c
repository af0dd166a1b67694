/* diagnose -u, -g, -a, -c, -Q: what the policy says of users, groups, accounts, classes and QoS. */
#include <math.h>
#include <string.h>

#include "local/cli/local_cli.h"

static const char *list_text (char *const *item, size_t count, const char *between,
                              struct strbuf *b)
{
    strbuf_clear (b);
    for (size_t i = 0; i < count; i++)
        strbuf_printf (b, "%s%s", i ? between : "", item[i]);
    return count ? strbuf_text (b) : "[NONE]";
}

static void credential_line (const Nui__Local__V1__CredentialRow *r, const char *kind,
                             struct strbuf *out)
{
    struct strbuf qlist = STRBUF_INIT, limits = STRBUF_INIT, flags = STRBUF_INIT;
    const char *q = list_text (r->qlist, r->n_qlist, ":", &qlist);
    const char *l = list_text (r->limits, r->n_limits, " ", &limits);
    if (strcmp (kind, "qos") == 0)
        strbuf_printf (out, "%-20s  %8.0f %8g %8g %8g %8.2f %10s %10s %s\n", r->name, r->priority,
                       r->qtweight, r->qttarget, r->xfweight, r->xftarget,
                       list_text (r->flags, r->n_flags, ",", &flags), "[NONE]", l);
    else if (strcmp (kind, "class") == 0)
        strbuf_printf (out, "%-14s %8.0f %-12s %-12s %12s  %-20s %5.2f  %s\n", r->name, r->priority,
                       "[NONE]", or_none (r->qdef), q, "[NONE]", r->target, l);
    else
        strbuf_printf (out, "%-12s %8.0f %12s %12s %12s %21s %6.2f  %s\n", r->name, r->priority,
                       "[NONE]", or_none (r->qdef), q, "[NONE]", r->target, l);
    strbuf_free (&qlist);
    strbuf_free (&limits);
    strbuf_free (&flags);
}

/* Who may use a QoS. */
static void members_text (const Nui__Local__V1__CredentialRow *r, struct strbuf *out)
{
    const struct {
        const char *title;
        char **item;
        size_t count;
    } of[] = {{"Users:", r->users, r->n_users},
              {"Groups:", r->groups, r->n_groups},
              {"Accounts:", r->accounts, r->n_accounts},
              {"Classes:", r->classes, r->n_classes}};
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        if (of[k].count == 0)
            continue;
        strbuf_printf (out, "  %-10s", of[k].title);
        for (size_t i = 0; i < of[k].count; i++)
            strbuf_printf (out, " %s", of[k].item[i]);
        strbuf_putc (out, '\n');
    }
}

static void qos_titles (const Nui__Local__V1__CredentialsReply *r, struct strbuf *out)
{
    struct strbuf b = STRBUF_INIT;
    const char *list = list_text (r->system_qlist, r->n_system_qlist, ":", &b);
    strbuf_printf (out,
                   "QOS Status\n\nSystem QOS Settings:  QList: %s (Def: %s)  Flags: 0\n\n"
                   "Name                * Priority QTWeight QTTarget XFWeight"
                   " XFTarget     QFlags   JobFlags Limits\n\n",
                   r->n_system_qlist ? list : "DEFAULT",
                   *r->system_qdef ? r->system_qdef : "DEFAULT");
    strbuf_free (&b);
}

void credentials_text (const Nui__Local__V1__CredentialsReply *r, const char *kind, bool noheader,
                       struct strbuf *out)
{
    bool class = strcmp (kind, "class") == 0;
    if (noheader)
        ;
    else if (strcmp (kind, "qos") == 0)
        qos_titles (r, out);
    else if (class)
        strbuf_puts (out, "Class/Queue Status\n\nName           Priority Flags        QDef"
                          "              QOSList* PartitionList        Target Limits\n\n");
    else
        strbuf_printf (out,
                       "Displaying %s information...\nName         Priority        Flags"
                       "         QDef      QOSList*        PartitionList Target  Limits\n\n",
                       kind);
    for (size_t i = 0; i < r->n_rows; i++) {
        if (class && strcmp (r->rows[i]->name, "DEFAULT") == 0 && r->rows[i]->n_limits == 0)
            continue;
        credential_line (r->rows[i], kind, out);
        members_text (r->rows[i], out);
    }
    if (!noheader)
        strbuf_putc (out, '\n');
}

static const struct table_column credential_columns[] = {
    {"name", "Name", TABLE_TEXT, 0},        {"priority", "Priority", TABLE_PPM, 0},
    {"qdef", "QDef", TABLE_TEXT, 0},        {"qlist", "QOSList", TABLE_TEXT, 0},
    {"target", "Target", TABLE_PPM, 2},     {"target_type", "Type", TABLE_TEXT, 0},
    {"limits", "Limits", TABLE_TEXT, 0},    {"flags", "QFlags", TABLE_TEXT, 0},
    {"qtweight", "QTWeight", TABLE_PPM, 2}, {"qttarget", "QTTarget", TABLE_PPM, 2},
    {"xfweight", "XFWeight", TABLE_PPM, 2}, {"xftarget", "XFTarget", TABLE_PPM, 2},
};

static int credentials_rows (struct cli_context *ctx, const Nui__Local__V1__CredentialsReply *r)
{
    struct table *t =
        table_create (credential_columns, sizeof credential_columns / sizeof *credential_columns);
    struct strbuf b = STRBUF_INIT;
    for (size_t i = 0; i < r->n_rows; i++) {
        const Nui__Local__V1__CredentialRow *row = r->rows[i];
        const double value[] = {row->qtweight, row->qttarget, row->xfweight, row->xftarget};
        table_text (t, row->name);
        table_ppm (t, (int64_t)llround (row->priority * 1e6));
        cell_text (t, row->qdef);
        table_text (t, row->n_qlist ? list_text (row->qlist, row->n_qlist, ":", &b) : NULL);
        table_ppm (t, (int64_t)llround (row->target * 1e6));
        cell_text (t, row->target_type);
        table_text (t, row->n_limits ? list_text (row->limits, row->n_limits, " ", &b) : NULL);
        table_text (t, row->n_flags ? list_text (row->flags, row->n_flags, ",", &b) : NULL);
        for (size_t v = 0; v < 4; v++)
            table_ppm (t, (int64_t)llround (value[v] * 1e6));
        table_end_row (t);
    }
    int rc = table_print (t, ctx);
    table_destroy (t);
    strbuf_free (&b);
    return rc;
}

int diagnose_creds (struct cli_context *ctx, const char *site, const char *kind, const char *name)
{
    Nui__Local__V1__CredentialsRequest request = NUI__LOCAL__V1__CREDENTIALS_REQUEST__INIT;
    Nui__Local__V1__CredentialsReply *reply = NULL;
    struct strbuf out = STRBUF_INIT;
    struct err err = {0};
    int exit_code;
    request.kind = (char *)(uintptr_t)kind;
    if (name)
        request.name = (char *)(uintptr_t)name;
    if (site_admin (ctx, site, "Credentials", &request, true, &reply, &err) < 0)
        return cli_fail ("diagnose", &err);
    if (cli_format (ctx) == CLI_TABLE) {
        credentials_text (reply, kind, cli_noheader (ctx), &out);
        exit_code = cli_output (&out);
    } else {
        exit_code = credentials_rows (ctx, reply);
    }
    strbuf_free (&out);
    nui__local__v1__credentials_reply__free_unpacked (reply, NULL);
    return exit_code;
}
