/* Whom and what accounts and allocations are for. */
#include <string.h>

#include "bank/core/ledger_impl.h"

static const char *const kind_name[LEDGER_SCOPE_KINDS] = {"user", "site", "machine", "qos"};

const char *ledger_scope_name (enum ledger_scope_kind kind)
{
    return kind_name[kind];
}

int ledger_scope_parse (const char *kind, const char *text, struct ledger_scope *out,
                        struct err *err)
{
    int k = 0;
    while (k < LEDGER_SCOPE_KINDS && strcmp (kind, kind_name[k]) != 0)
        k++;
    if (k == LEDGER_SCOPE_KINDS)
        return err_set (err, ERR_INVALID, "'%.40s' is none of user, site, machine, qos", kind);
    *out = (struct ledger_scope){
        .kind = (enum ledger_scope_kind)k, .name = text, .exclude = text[0] == '-'};
    out->name += out->exclude;
    bool word = strcmp (out->name, "ANY") == 0 ||
                (k == LEDGER_SCOPE_USER && strcmp (out->name, "MEMBERS") == 0);
    if (word && out->exclude)
        return err_set (err, ERR_INVALID, "-%s excludes everyone", out->name);
    if (word)
        return 0;
    if (k != LEDGER_SCOPE_USER)
        return name_check (kind_name[k], out->name, err);
    if (strncmp (out->name, "nui://", 6) != 0 || strlen (out->name) > 255)
        return err_set (err, ERR_INVALID, "'%.200s' is not a user's identity", out->name);
    return 0;
}

bool scope_admits (const struct ledger_scopes *scopes, enum ledger_scope_kind kind,
                   const char *name, bool member, bool unsaid)
{
    bool said = false, in = false;
    for (uint32_t i = 0; i < scopes->count; i++) {
        const struct ledger_scope *scope = &scopes->item[i];
        if (scope->kind != kind)
            continue;
        bool named = name && strcmp (scope->name, name) == 0;
        if (scope->exclude) {
            if (named)
                return false;
            continue;
        }
        said = true;
        in |= named || strcmp (scope->name, "ANY") == 0 ||
              (kind == LEDGER_SCOPE_USER && member && strcmp (scope->name, "MEMBERS") == 0);
    }
    return said ? in : unsaid;
}

uint32_t scope_narrowness (const struct ledger_scopes *scopes)
{
    uint32_t kinds = 0, narrow = 0;
    for (uint32_t i = 0; i < scopes->count; i++) {
        const struct ledger_scope *scope = &scopes->item[i];
        if (!scope->exclude && strcmp (scope->name, "ANY") != 0 &&
            strcmp (scope->name, "MEMBERS") != 0)
            kinds |= 1U << scope->kind;
    }
    for (int k = 0; k < LEDGER_SCOPE_KINDS; k++)
        narrow += kinds >> k & 1;
    return narrow;
}
