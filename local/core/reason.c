/* reason: makes sentences of the codes that a pass left with each job. checkjob, showq and the
 * replies to the metascheduler call it. It only words what was decided. The codes' names are
 * part of the interface: they are never changed, only added to. */
#include "local/core/reason.h"

#include <stdio.h>

#include "local/core/limits.h"
#include "proto/base/text.h"

const char *reason_code_name (enum reason_code code)
{
    static const char *const name[REASON_CODES] = {
        [REASON_NONE] = "None",
        [REASON_NOT_PLANNED] = "NotPlanned",
        [REASON_HOLD] = "Hold",
        [REASON_DEFERRED] = "Deferred",
        [REASON_NOT_BEFORE] = "NotBefore",
        [REASON_NEVER_FITS] = "NoResources",
        [REASON_RESERVATION] = "Reservation",
        [REASON_RESERVATION_GONE] = "ReservationGone",
        [REASON_SYSTEM_LIMIT] = "SystemLimitsExceeded",
        [REASON_LIMIT_ACTIVE] = "PolicyViolation",
        [REASON_LIMIT_IDLE] = "IdlePolicyViolation",
        [REASON_FS_CAP] = "FairshareCap",
        [REASON_NEGATIVE_PRIORITY] = "NegativePriority",
        [REASON_RESOURCES] = "Resources",
        [REASON_RESERVED] = "Reserved",
        [REASON_PROMISED] = "Promised",
        [REASON_BEHIND] = "Priority",
        [REASON_NO_BACKFILL] = "NoBackfill",
        [REASON_CHUNK] = "BackfillChunk",
        [REASON_DEPTH] = "BackfillDepth",
        [REASON_ARRAY_LIMIT] = "ArrayLimit",
        [REASON_DEADLINE] = "Deadline",
        [REASON_BARRED] = "ReservationAccess",
        [REASON_CLASS] = "ClassLimits",
        [REASON_NODE_SET] = "NodeSet",
        [REASON_LICENCES] = "Licences",
        [REASON_NEVER_LICENCES] = "NoLicences",
        [REASON_DATA] = "StageIn",
        [REASON_NEVER_FREE] = "NeverFree",
    };

    return (unsigned)code < REASON_CODES ? name[code] : "Unknown";
}

static void holds_text (int64_t holds, char *out, size_t cap)
{
    static const struct {
        enum job_hold bit;
        const char *name;
    } hold[] = {{HOLD_USER, "user"},
                {HOLD_SYSTEM, "system"},
                {HOLD_BATCH, "batch"},
                {HOLD_DEPENDENCY, "dependency"},
                {HOLD_TOKEN, "start token"}};
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < sizeof hold / sizeof *hold; i++) {
        if ((holds & hold[i].bit) && len < cap)
            len += (size_t)snprintf (out + len, cap - len, "%s%s", len ? ", " : "", hold[i].name);
    }
}

static const char *who (const struct reason *r, const struct cred_names *names, char *buf,
                        size_t cap)
{
    if (r->object == LIMIT_OBJECT_PARTITION && names) {
        text_printf (buf, cap, "partition %s", strtab_name (names->partition, r->cred));
        return buf;
    }
    if (r->object >= CRED_KINDS)
        return r->object == LIMIT_OBJECT_PARTITION ? "a partition" : "the system";
    if (names)
        text_printf (buf, cap, "%s %s", cred_kind_name ((enum cred_kind)r->object),
                     cred_name (names, (enum cred_kind)r->object, r->cred));
    else
        text_printf (buf, cap, "%s %u", cred_kind_name ((enum cred_kind)r->object), r->cred);
    return buf;
}

static const char *when (time_us t, char *buf, size_t cap)
{
    char iso[QUANTITY_TEXT_MAX];

    if (t == TIME_US_NONE)
        return "";
    text_printf (buf, cap, "; expected to clear at %s", time_format_iso (t, iso));
    return buf;
}

static const char *rsv_text (const struct reason *r, const struct cred_names *names, char *buf,
                             size_t cap)
{
    const char *name =
        names && names->rsv_name ? names->rsv_name (names->rsv_self, r->rsv.v) : NULL;

    if (name)
        text_printf (buf, cap, "%s", name);
    else
        text_printf (buf, cap, "%llu", (unsigned long long)r->rsv.v);
    return buf;
}

static int limit_text (const struct reason *r, const struct cred_names *names, const char *clears,
                       char *out, size_t cap)
{
    char name[256], need[LIMITS_AMOUNT_MAX], have[LIMITS_AMOUNT_MAX];
    enum limit_kind kind = (enum limit_kind)r->which;
    const char *limit = limit_kind_name (kind);

    switch ((enum reason_code)r->code) {
    case REASON_SYSTEM_LIMIT:
        return (int)text_printf (out, cap, "asks for %lld, over the limit per job (%s) of %s, %lld",
                                 (long long)r->need, limit, who (r, names, name, sizeof name),
                                 (long long)r->have);
    case REASON_LIMIT_ACTIVE:
        if (r->never)
            return (int)text_printf (
                out, cap,
                "asks for %s of active %s, the limit of %s is %s: it can never run "
                "under it",
                limits_amount_text (kind, r->need, need), limit, who (r, names, name, sizeof name),
                limits_amount_text (kind, r->have, have));
        return (int)text_printf (out, cap, "would bring %s to %s of active %s, the limit is %s%s",
                                 who (r, names, name, sizeof name),
                                 limits_amount_text (kind, r->need, need), limit,
                                 limits_amount_text (kind, r->have, have), clears);
    case REASON_LIMIT_IDLE:
        return (int)text_printf (out, cap, "would bring %s to %s of idle %s, the limit is %s",
                                 who (r, names, name, sizeof name),
                                 limits_amount_text (kind, r->need, need), limit,
                                 limits_amount_text (kind, r->have, have));
    default:
        return (int)text_printf (out, cap, "would bring %s to %.2f of its fairshare cap of %.2f",
                                 who (r, names, name, sizeof name), (double)r->need / 1e4,
                                 (double)r->have / 1e4);
    }
}

static const char *reason_plural (int64_t count)
{
    return count == 1 ? "" : "s";
}

static int space_text (const struct reason *r, const char *clears, char *out, size_t cap)
{
    char length[QUANTITY_TEXT_MAX];

    switch ((enum reason_code)r->code) {
    case REASON_NEVER_FITS:
        return (int)text_printf (
            out, cap, "needs %lld task%s (req %u), all nodes that are up hold %lld",
            (long long)r->need, reason_plural (r->need), r->which, (long long)r->have);
    case REASON_RESOURCES:
        return (int)text_printf (out, cap, "needs %lld task%s, %lld could start now%s",
                                 (long long)r->need, reason_plural (r->need), (long long)r->have,
                                 clears);
    case REASON_NODE_SET:
        return (int)text_printf (
            out, cap,
            "needs %lld task%s in one node set or partition, at most %lld could start "
            "now in any%s",
            (long long)r->need, reason_plural (r->need), (long long)r->have, clears);
    case REASON_RESERVED:
        return (int)text_printf (
            out, cap, "needs %lld task%s, %lld could start now; has a reservation%s%s",
            (long long)r->need, reason_plural (r->need), (long long)r->have,
            r->clears == TIME_US_NONE ? "" : " at ",
            r->clears == TIME_US_NONE ? "" : time_format_iso (r->clears, length));
    case REASON_PROMISED:
        return (int)text_printf (
            out, cap,
            "needs %lld task%s for %s; %lld could start now, but not for so long: "
            "others were promised them%s",
            (long long)r->need, reason_plural (r->need), duration_format (r->length, length),
            (long long)r->have, clears);
    case REASON_BEHIND:
        return (int)text_printf (out, cap, "waits behind job %llu: there is no backfill",
                                 (unsigned long long)r->other.v);
    case REASON_NO_BACKFILL:
        return (int)text_printf (out, cap, "its QoS is not backfilled, and it is not first");
    case REASON_CHUNK:
        return (int)text_printf (out, cap,
                                 "jobs under %lld processors leave free nodes to a larger one%s",
                                 (long long)r->have, clears);
    default:
        return (int)text_printf (out, cap, "stands further down than BACKFILLDEPTH %lld looks",
                                 (long long)r->have);
    }
}

static void never_free_text (const struct reason *r, const struct cred_names *names, char *out,
                             size_t cap)
{
    char name[128], length[QUANTITY_TEXT_MAX];

    if (r->length)
        text_printf (
            out, cap,
            "needs %lld task%s (req %u) for %s, and reservation %s, which comes again and again and does "
            "not admit it, leaves %lld at most for so long: it can never run while that stands",
            (long long)r->need, reason_plural (r->need), r->which,
            duration_format (r->length, length), rsv_text (r, names, name, sizeof name),
            (long long)r->have);
    else if (r->rsv.v == 0)
        text_printf (out, cap,
                     "needs %lld task%s (req %u), at no time are more than %lld free together: "
                     "it can never run as things are",
                     (long long)r->need, reason_plural (r->need), r->which, (long long)r->have);
    else
        text_printf (out, cap,
                     "needs %lld task%s (req %u), and reservation %s, which has no end and does "
                     "not admit it, leaves %lld: it can never run while that stands",
                     (long long)r->need, reason_plural (r->need), r->which,
                     rsv_text (r, names, name, sizeof name), (long long)r->have);
}

static int class_text (const struct reason *r, const struct cred_names *names, char *out,
                       size_t cap)
{
    enum class_rule rule = (enum class_rule)r->which;
    const char *class = names ? cred_name (names, CRED_CLASS, r->cred) : "its class";
    char need[QUANTITY_TEXT_MAX], have[QUANTITY_TEXT_MAX];

    switch (rule) {
    case CLASS_REQUIRED:
        return (int)text_printf (out, cap, "class %s is for others only: its %s is not on the list",
                                 class, cred_kind_name ((enum cred_kind)r->object));
    case CLASS_EXCLUDED:
        return (int)text_printf (out, cap, "class %s keeps its %s out", class,
                                 cred_kind_name ((enum cred_kind)r->object));
    case CLASS_MIN_WALL:
    case CLASS_MAX_WALL:
        return (int)text_printf (out, cap, "class %s: a wallclock limit of %s breaks %s of %s",
                                 class, duration_format (r->need * US_PER_S, need),
                                 class_rule_name (rule),
                                 duration_format (r->have * US_PER_S, have));
    default:
        return (int)text_printf (out, cap, "class %s: %lld breaks %s of %lld", class,
                                 (long long)r->need, class_rule_name (rule), (long long)r->have);
    }
}

static int licence_text (const struct reason *r, const struct cred_names *names, const char *clears,
                         char *out, size_t cap)
{
    const char *known = names && names->licence ? strtab_name (names->licence, r->which) : NULL;
    char name[80];

    if (known)
        text_printf (name, sizeof name, "%.70s", known);
    else
        snprintf (name, sizeof name, "number %u", r->which);
    if (r->code == REASON_NEVER_LICENCES)
        return (int)text_printf (out, cap, "needs %lld of licence %s, the site has %lld",
                                 (long long)r->need, name, (long long)r->have);
    if (r->have >= r->need)
        return (int)text_printf (out, cap,
                                 "needs %lld of licence %s; %lld are free, but not for so long%s",
                                 (long long)r->need, name, (long long)r->have, clears);
    return (int)text_printf (out, cap, "needs %lld of licence %s, %lld are free%s",
                             (long long)r->need, name, (long long)r->have, clears);
}

char *reason_text (const struct reason *r, const struct cred_names *names, char *out, size_t cap)
{
    char buf[128], holds[96], name[128];
    const char *clears = when (r->clears, buf, sizeof buf);

    switch ((enum reason_code)r->code) {
    case REASON_NONE:
        text_printf (out, cap, "nothing stands in its way");
        break;
    case REASON_NOT_PLANNED:
        text_printf (out, cap, "no scheduling pass has looked at it yet");
        break;
    case REASON_HOLD:
        holds_text (r->need, holds, sizeof holds);
        text_printf (out, cap, "held (%s)", holds);
        break;
    case REASON_DEFERRED:
        text_printf (out, cap, "deferred%s", clears);
        break;
    case REASON_NOT_BEFORE:
        text_printf (out, cap, "asked to start later%s", clears);
        break;
    case REASON_DATA:
        text_printf (out, cap, "its data is not there yet%s", clears);
        break;
    case REASON_RESERVATION:
        if (r->rsv.v == 0)
            text_printf (out, cap,
                         "its QoS uses reserved nodes only; a reservation admits it later%s",
                         clears);
        else
            text_printf (out, cap, "waits for its reservation %s%s",
                         rsv_text (r, names, name, sizeof name), clears);
        break;
    case REASON_RESERVATION_GONE:
        if (r->rsv.v == 0)
            text_printf (out, cap,
                         "its QoS uses reserved nodes only, and no reservation admits it");
        else
            text_printf (out, cap, "its reservation %s does not exist",
                         rsv_text (r, names, name, sizeof name));
        break;
    case REASON_BARRED:
        if (r->need == 0)
            text_printf (out, cap, "asks for reservation %s, which does not admit it",
                         rsv_text (r, names, name, sizeof name));
        else
            text_printf (out, cap,
                         "needs %lld task%s, %lld could start now; more are free, but reserved: "
                         "reservation %s does not admit it",
                         (long long)r->need, reason_plural (r->need), (long long)r->have,
                         rsv_text (r, names, name, sizeof name));
        break;
    case REASON_NEVER_FREE:
        never_free_text (r, names, out, cap);
        break;
    case REASON_ARRAY_LIMIT:
        text_printf (out, cap, "%lld jobs of its array run, which is all that may at one time",
                     (long long)r->have);
        break;
    case REASON_DEADLINE:
        text_printf (out, cap, "cannot end by its deadline any more, %s",
                     time_format_iso (r->clears, buf));
        break;
    case REASON_NEGATIVE_PRIORITY:
        text_printf (out, cap, "its priority is negative and REJECTNEGPRIOJOBS is set");
        break;
    case REASON_SYSTEM_LIMIT:
    case REASON_LIMIT_ACTIVE:
    case REASON_LIMIT_IDLE:
    case REASON_FS_CAP:
        limit_text (r, names, clears, out, cap);
        break;
    case REASON_CLASS:
        class_text (r, names, out, cap);
        break;
    case REASON_LICENCES:
    case REASON_NEVER_LICENCES:
        licence_text (r, names, clears, out, cap);
        break;
    default:
        space_text (r, clears, out, cap);
        break;
    }
    return out;
}
