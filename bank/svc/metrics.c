/* What the bank tells Prometheus of itself. requests.c counts operations here; a timer reads the few figures that are in the
 * database alone, so that no scrape ever waits for it; the daemon's skeleton asks for the page. */
#include "bank/svc/metrics.h"

#include <stdlib.h>

#include "bank/store/fundread.h"
#include "bank/svc/service_impl.h"
#include "proto/base/clock.h"

enum { READ_EVERY_S = 10, AWAY_S = 1 /* until the database is there */ };

struct metrics {
    struct bank_service *svc;
    struct event *timer;
    struct metrics_times done[LEDGER_KINDS], refused[LEDGER_KINDS];
    struct fund_figures figures; /* as read last */
    duration_us read_at;         /* then, monotonic; 0: never */
    bool reading;
    bool gone; /* destroyed: the answer frees it */
};

static void metrics_read_in (struct metrics *m, int seconds)
{
    const struct timeval after = {.tv_sec = seconds};
    event_add (m->timer, &after);
}

static void metrics_on_figures (void *arg, const struct err *err,
                                const struct fund_figures *figures)
{
    struct metrics *m = arg;
    m->reading = false;
    if (m->gone) {
        free (m);
        return;
    }
    metrics_read_in (m, READ_EVERY_S);
    if (err->code)
        return;
    m->figures = *figures;
    m->read_at = clock_monotonic_us ();
}

static void metrics_on_timer (evutil_socket_t fd, short what, void *arg)
{
    struct metrics *m = arg;
    (void)fd, (void)what;
    if (!reader_is_up (m->svc->reader)) {
        metrics_read_in (m, AWAY_S);
        return;
    }
    m->reading = true;
    fundread_figures (m->svc->reader, metrics_on_figures, m);
}

struct metrics *metrics_create (struct bank_service *svc)
{
    struct metrics *m = calloc (1, sizeof *m);
    if (!m)
        abort ();
    m->svc = svc;
    m->timer = evtimer_new (svc->base, metrics_on_timer, m);
    if (!m->timer)
        abort ();
    metrics_read_in (m, 0);
    return m;
}

void metrics_destroy (struct metrics *m)
{
    if (!m)
        return;
    event_free (m->timer);
    m->gone = true;
    if (!m->reading)
        free (m);
}

void metrics_operation (struct metrics *m, enum ledger_kind kind, bool done, duration_us took)
{
    if (m)
        metrics_observe (done ? &m->done[kind] : &m->refused[kind], took);
}

/* --- the page ----------------------------------------------------------------------------- */

static void operations_write (const struct metrics *m, struct metrics_page *page)
{
    metrics_family (page, "nui_bank_op_seconds", METRICS_HISTOGRAM,
                    "From the writer's queue to the answer, by operation and whether it was done");
    for (int k = 0; k < LEDGER_KINDS; k++) {
        const char *name = ledger_kind_name ((enum ledger_kind)k);
        if (metrics_observed (&m->done[k]))
            metrics_times (page, &m->done[k], METRICS_LABELS ("op", name, "result", "done"));
        if (metrics_observed (&m->refused[k]))
            metrics_times (page, &m->refused[k], METRICS_LABELS ("op", name, "result", "refused"));
    }
}

static void figures_write (const struct metrics *m, struct metrics_page *page)
{
    if (m->read_at == 0)
        return;
    metrics_one_micro (page, "nui_bank_figures_age_seconds", METRICS_GAUGE,
                       "How long ago blocks, suspense and rows were read",
                       clock_monotonic_us () - m->read_at);
    metrics_one (page, "nui_history_blocks", METRICS_COUNTER, "Signed blocks of the history",
                 m->figures.blocks);
    metrics_one_micro (page, "nui_bank_suspense_credits", METRICS_GAUGE,
                       "What sites claim beyond what was signed or could be paid",
                       m->figures.suspense);
    metrics_one (page, "nui_bank_recon_unowned", METRICS_GAUGE,
                 "Rows of reconciliation that nobody owns", m->figures.unowned);
}

static void writer_write (const struct bank_service *svc, struct metrics_page *page)
{
    struct committer_stats stats = committer_stats (svc->committer);
    duration_us silence = committer_silence (svc->committer);
    metrics_one (page, "nui_bank_database_up", METRICS_GAUGE,
                 "1 while the bank writes to and reads from its database",
                 committer_is_up (svc->committer) && reader_is_up (svc->reader));
    metrics_one (page, "nui_bank_writers", METRICS_GAUGE,
                 "Connections that write: 2; with 1 it is slower",
                 committer_is_up (svc->committer) + committer_has_second (svc->committer));
    if (silence != INT64_MAX)
        metrics_one_micro (page, "nui_bank_commit_age_seconds", METRICS_GAUGE,
                           "Since the database committed something: its standby is gone, or behind",
                           silence);
    metrics_one (page, "nui_bank_write_refused", METRICS_GAUGE,
                 "1 while the database refuses what is written: its disk is full",
                 *committer_refusal (svc->committer) != 0);
    metrics_one (page, "nui_bank_clock_ahead", METRICS_GAUGE,
                 "1 while the machine's clock is not believed and nothing is written",
                 svc->clock_ahead);
    metrics_one (page, "nui_bank_batches", METRICS_COUNTER, "Transactions of the writer",
                 (int64_t)stats.batches);
    metrics_one (page, "nui_bank_replays", METRICS_COUNTER,
                 "Requests that had been answered before", (int64_t)stats.replays);
    metrics_one (page, "nui_bank_retries", METRICS_COUNTER,
                 "Requests that were decided again by themselves", (int64_t)stats.retries);
}

void bank_service_metrics (struct bank_service *svc, struct metrics_page *page)
{
    operations_write (svc->metrics, page);
    figures_write (svc->metrics, page);
    writer_write (svc, page);
}
