/* What the user's signature bounds of one hold or charge: processors, processor equivalents, time. hold.c refuses a
 * hold beyond it; of a charge, which is never refused for what it claims, charge.c has the part within it paid by the
 * user and the rest disputed. What a signed job may have in all, over its holds and charges, is signed.c's. Nothing
 * here moves a credit. */

#include "bank/core/ledger_impl.h"

static int64_t bounds_min (int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Nodes that the part needs at a site that gives them whole: as many as it says, or as few as its tasks fit on. */
static int64_t bounds_nodes (const struct ledger_bounds *b, int64_t node_procs)
{
    if (b->loose_procs == 0)
        return b->nodes;
    int64_t tasks = b->loose_task > 0 ? node_procs / b->loose_task : 0;
    int64_t each = tasks > 0 ? tasks * b->loose_task : node_procs;
    return b->nodes + (b->loose_procs + each - 1) / each;
}

int64_t bounds_procs (const struct ledger_bounds *b, const struct ledger_site *site)
{
    int64_t whole = b->procs_max;
    if (whole == 0 && site->given.procs > 0 &&
        __builtin_mul_overflow (bounds_nodes (b, site->given.procs), site->given.procs, &whole))
        whole = PRICE_PROCS_MAX;
    return whole > b->procs ? whole : b->procs;
}

/* A job's memory may be worth more processors than it has. */
int64_t bounds_pe (const struct ledger_site *site, int64_t procs, int64_t memory_mb)
{
    __int128 most = (__int128)procs * 1000;
    if (site->given.memory_mb > 0) {
        __int128 by_memory =
            ((__int128)memory_mb * 1000 + site->given.memory_mb - 1) / site->given.memory_mb;
        most = by_memory > most ? by_memory : most;
    }
    return most > PRICE_PROCS_MAX * 1000 ? PRICE_PROCS_MAX * 1000 : (int64_t)most;
}

/* An operator who registered nothing of the site hears here what there is to register; "" where something is. */
static const char *unregistered (struct ledger_view *view, const struct ledger_site *site,
                                 int64_t given, const char *option)
{
    return given ? ""
                 : arena_printf (view->arena,
                                 " (site %s has registered no %s with the bank, nui site modify)",
                                 site->name, option);
}

bool bounds_refused (struct ledger_view *view, const struct ledger_hold_ask *ask,
                     struct ledger_outcome *out)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    if (!ask->is_signed)
        return false;
    const struct ledger_site *site = ledger_site_of (view, ask->job.site);
    int64_t procs = bounds_procs (&ask->bounds, site);
    if (ask->procs > procs)
        hold_refuse (out, "BeyondSigned",
                     arena_printf (view->arena,
                                   "%lld processors asked, the user signed for at most %lld%s",
                                   (long long)ask->procs, (long long)procs,
                                   unregistered (view, site, site->given.procs, "--node-procs")));
    else if (ask->walltime > ask->bounds.walltime)
        hold_refuse (out, "BeyondSigned",
                     arena_printf (view->arena, "%s asked, the user signed a walltime of %s",
                                   duration_format (ask->walltime, a),
                                   duration_format (ask->bounds.walltime, b)));
    else
        return false;
    return true;
}

/* ---- charges ---- */

struct limits {
    const struct ledger_site *site;
    int64_t procs, pe_milli;
    duration_us time;
    time_us begin;     /* 0: whenever */
    const char *since; /* what it cannot have begun before */
};

static void say (struct ledger_view *view, const char **why, const char *text)
{
    *why = (*why)[0] ? arena_printf (view->arena, "%s, %s", *why, text) : text;
}

/* Cuts use to what is within limits, and says what was cut. */
static void cut (struct ledger_view *view, const struct limits *limits, struct price_use *use,
                 const char **why)
{
    char a[QUANTITY_TEXT_MAX], b[QUANTITY_TEXT_MAX];
    if (limits->begin && use->start < limits->begin) {
        duration_us early = bounds_min (limits->begin - use->start, use->time);
        say (view, why,
             arena_printf (view->arena, "began %s before %s",
                           duration_format (limits->begin - use->start, a), limits->since));
        use->start += early;
        use->time -= early;
    }
    if (use->time > limits->time) {
        say (view, why,
             arena_printf (
                 view->arena, "ran %s, %s are allowed%s", duration_format (use->time, a),
                 duration_format (limits->time, b),
                 unregistered (view, limits->site, limits->site->given.overrun, "--overrun")));
        use->time = limits->time;
    }
    if (use->procs > limits->procs) {
        say (view, why,
             arena_printf (
                 view->arena, "%lld processors, %lld are allowed%s", (long long)use->procs,
                 (long long)limits->procs,
                 unregistered (view, limits->site, limits->site->given.procs, "--node-procs")));
        use->procs = limits->procs;
    }
    if (use->pe_milli > limits->pe_milli) {
        say (view, why, "more processor equivalents than were held");
        use->pe_milli = limits->pe_milli;
    }
}

static void cut_future (struct ledger_view *view, const struct ledger_request *req,
                        struct price_use *use, const char **why)
{
    char a[QUANTITY_TEXT_MAX];
    duration_us ahead = use->start + use->time - view->now - req->charge.tolerance;
    if (ahead <= 0)
        return;
    say (view, why,
         arena_printf (view->arena, "ended %s ahead of the bank's clock",
                       duration_format (ahead + req->charge.tolerance, a)));
    use->time -= bounds_min (ahead, use->time);
}

static duration_us longer (duration_us walltime, const struct ledger_site *site)
{
    duration_us sum;
    return __builtin_add_overflow (walltime, site->given.overrun, &sum) ? INT64_MAX : sum;
}

static void cut_held (struct ledger_view *view, const struct ledger_request *req,
                      const struct ledger_hold *hold, struct price_use *use, const char **why)
{
    const struct ledger_site *site = ledger_site_of (view, hold->job.site);
    struct limits limits = {.site = site,
                            .procs = hold->procs,
                            .pe_milli = hold->pe_milli ? hold->pe_milli : hold->procs * 1000,
                            .time = longer (hold->walltime, site),
                            .since = "its hold"};
    /* One that the site no longer knows of pays for what may have begun before it. */
    if (req->charge.hold_id[0])
        limits.begin = hold->start - req->charge.tolerance;
    cut (view, &limits, use, why);
}

static void cut_signed (struct ledger_view *view, const struct ledger_request *req,
                        struct price_use *use, const char **why)
{
    const struct ledger_signature *s = req->charge.signature;
    const struct ledger_site *site = ledger_site_of (view, req->charge.job.site);
    int64_t procs = bounds_procs (&s->ask.bounds, site);
    struct limits limits = {.site = site,
                            .procs = procs,
                            .pe_milli = bounds_pe (site, procs, s->ask.ask.memory_mb),
                            .time = longer (s->ask.bounds.walltime, site),
                            .begin = s->created - req->charge.tolerance,
                            .since = "it was signed"};
    cut (view, &limits, use, why);
}

const char *bounds_cut (struct ledger_view *view, const struct ledger_request *req,
                        const struct ledger_hold *hold, struct price_use *use)
{
    const char *why = "";
    cut_future (view, req, use, &why);
    if (hold && hold->walltime_max)
        cut_held (view, req, hold, use, &why);
    else if (!hold && req->charge.signature)
        cut_signed (view, req, use, &why);
    return why;
}

bool ledger_within_hold (const struct ledger_request *req, const struct ledger_hold *hold)
{
    const struct ledger_ask *ask = &req->charge.ask;
    __int128 room = (__int128)hold->procs * hold->walltime;
    return !hold->cost_max ||
           (req->charge.procs <= hold->procs &&
            req->charge.end - req->charge.start <= hold->walltime && req->charge.cpu <= room &&
            ask->pe_milli <= (hold->pe_milli ? hold->pe_milli : hold->procs * 1000) &&
            (ask->nodes_count == 0 || !hold->nodes[0] || nodes_same (ask, hold->nodes)));
}
