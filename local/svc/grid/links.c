/* The grid's bank and metaschedulers, as far as this site asks and tells them of its own accord. */
#include "local/svc/grid/grid.h"
#include "local/svc/job/charge.h"
#include "local/svc/job/life.h"
#include "local/svc/memory/memory.h"
#include "local/svc/svc_i.h"

/* Only a production scheduler has to do with a bank and a grid. */
static bool in_production (const struct settings *settings)
{
    return settings->mode.mode == MODE_NORMAL || settings->mode.mode == MODE_INTERACTIVE;
}

static void on_history (void *arg, bool rewritten, const char *why)
{
    (void)why; /* in the log */
    notify_history (arg, rewritten);
}

static void on_clock (void *arg, bool differ)
{
    notify_clock (arg, differ);
}

static int clock_begin (struct svc *svc, struct err *err)
{
    struct bank_clock_config config = {
        .base = svc->base,
        .log = svc->log,
        .client = bank_link_client (svc->bank),
        .on_change = on_clock,
        .arg = svc,
    };
    svc->bank_clock = bank_clock_create (&config, err);
    return svc->bank_clock ? 0 : err->code;
}

static int anchors_begin (struct svc *svc, const struct settings *settings, struct err *err)
{
    char path[4096];
    struct anchors_config config = {
        .base = svc->base,
        .log = svc->log,
        .id = daemon_tlsid (svc->daemon),
        .client = bank_link_client (svc->bank),
        .path = path,
        .every = settings->am.anchors,
        .on_change = on_history,
        .arg = svc,
    };
    snprintf (path, sizeof path, "%s/anchors", daemon_state_dir (svc->daemon));
    svc->anchors = anchors_create (&config, err);
    return svc->anchors ? 0 : err->code;
}

/* A metascheduler hears of the jobs that it, or one of its group, gave. */
static bool concerns (void *arg, const char *metascheduler, const char *owner)
{
    const struct svc *svc = arg;
    return settings_speaks_for (svc->settings, metascheduler, owner);
}

static void on_heard (void *arg, const char *metascheduler, duration_us sent)
{
    contact_heard (arg, metascheduler, sent);
}

static void on_met (void *arg, uint32_t at, const char *metascheduler)
{
    named_met (arg, at, metascheduler);
}

static void on_denied (void *arg)
{
    pass_wake (arg);
}

static int links_open (struct svc *svc, struct err *err)
{
    const struct settings *settings = svc->settings;
    if (!in_production (settings))
        return 0;
    struct bank_link_config bank = {
        .base = svc->base,
        .log = svc->log,
        .id = daemon_tlsid (svc->daemon),
        .target = settings->bank,
        .timeout = settings->am.timeout,
        .store = svc->store,
        .on_answer = life_on_answer,
        .on_refused = charge_refused,
        .on_denied = on_denied,
        .arg = svc,
    };
    struct meta_link_config meta = {
        .base = svc->base,
        .log = svc->log,
        .id = daemon_tlsid (svc->daemon),
        .targets = settings->metas,
        .target_count = settings->meta_count,
        .store = svc->store,
        .fill = report_fill,
        .concerns = concerns,
        .met = on_met,
        .heard = on_heard,
        .arg = svc,
    };
    if (settings->bank) {
        svc->bank = bank_link_create (&bank, err);
        if (!svc->bank || anchors_begin (svc, settings, err) != 0 || clock_begin (svc, err) != 0)
            return err ? err->code : ERR_IO;
    }
    if (settings->meta_count > 0) {
        svc->meta = meta_link_create (&meta, err);
        if (!svc->meta || named_open (svc, err) != 0 || contact_open (svc, err) != 0)
            return err ? err->code : ERR_IO;
    }
    return 0;
}

static void links_reloaded (struct svc *svc)
{
    const struct settings *settings = svc->settings;
    if (svc->bank)
        bank_link_timeout_set (svc->bank, settings->am.timeout);
    anchors_every (svc->anchors, settings->am.anchors);
}

static void links_close (struct svc *svc)
{
    bank_link_destroy (svc->bank);
    anchors_destroy (svc->anchors);
    bank_clock_destroy (svc->bank_clock);
    meta_link_destroy (svc->meta);
    named_close (svc);
    contact_close (svc);
}

const struct svc_listener links_listener = {
    .open = links_open, .reloaded = links_reloaded, .stop = links_close};
