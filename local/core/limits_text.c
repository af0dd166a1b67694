/* limits_text: which limit is in the way, as a sentence. */
#include "local/core/limits.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/strbuf.h"

const char *limits_amount_text (enum limit_kind limit, int64_t value, char buf[LIMITS_AMOUNT_MAX])
{
    if (limit == LIMIT_PE)
        snprintf (buf, LIMITS_AMOUNT_MAX, "%lld.%02lld", (long long)(value / 1000000),
                  (long long)(value % 1000000 / 10000));
    else
        snprintf (buf, LIMITS_AMOUNT_MAX, "%lld", (long long)value);
    return buf;
}

static void amount_put (struct strbuf *b, enum limit_kind limit, int64_t value)
{
    char text[LIMITS_AMOUNT_MAX];
    strbuf_puts (b, limits_amount_text (limit, value, text));
}

static void object_put (struct strbuf *b, const struct limits_violation *v,
                        const struct cred_names *names)
{
    if (v->object == LIMIT_OBJECT_SYSTEM) {
        strbuf_puts (b, "the system");
        return;
    }
    if (v->object == LIMIT_OBJECT_PARTITION) {
        strbuf_printf (b, "partition %s", strtab_name (names->partition, v->id));
        return;
    }
    strbuf_printf (b, "%s %s", cred_kind_name ((enum cred_kind)v->object),
                   cred_name (names, (enum cred_kind)v->object, v->id));
    if (v->cross)
        strbuf_printf (b, ", %s %s", cred_kind_name (v->other_kind),
                       cred_name (names, v->other_kind, v->other_id));
}

char *limits_violation_text (const struct limits_violation *v, const char *job_name,
                             const struct cred_names *names, char *buf, size_t cap)
{
    static const char *const job_limit[LIMIT_KINDS] = {
        [LIMIT_PROC] = "SYSTEMMAXPROCPERJOB",
        [LIMIT_WC] = "SYSTEMMAXJOBWALLTIME",
        [LIMIT_PS] = "SYSTEMMAXPROCSECONDPERJOB",
        [LIMIT_NODE] = "MAXNODEPERJOB", /* of SYSCFG */
    };
    struct strbuf b = STRBUF_INIT;
    const char *name = limit_kind_name (v->limit);
    strbuf_printf (&b, "job %s violates ", job_name);
    if (v->scope == LIMIT_SCOPE_JOB && v->object != LIMIT_OBJECT_SYSTEM)
        strbuf_printf (&b, "HARD %sPERJOB limit of ", name);
    else if (v->scope == LIMIT_SCOPE_JOB)
        strbuf_printf (&b, "system HARD %s limit of ", job_limit[v->limit]);
    else if (v->scope == LIMIT_SCOPE_IDLE)
        strbuf_printf (&b, "idle HARD MAXI%s limit of ", name + 3); /* MAXIJOB */
    else
        strbuf_printf (&b, "active %s %s limit of ", v->level == LIMIT_SOFT ? "SOFT" : "HARD",
                       name);
    amount_put (&b, v->limit, v->value);
    if (v->by_override)
        strbuf_puts (&b, " (its QoS's)");
    strbuf_puts (&b, " for ");
    object_put (&b, v, names);
    strbuf_puts (&b, "  (R: ");
    amount_put (&b, v->limit, v->request);
    strbuf_puts (&b, ", U: ");
    amount_put (&b, v->limit, v->usage);
    strbuf_puts (&b, ")");
    size_t len = b.len < cap ? b.len : cap - 1;
    memcpy (buf, strbuf_text (&b), len);
    buf[len] = 0;
    strbuf_free (&b);
    return buf;
}
