/* nui-bank: wiring only. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bank/store/setup.h"
#include "bank/svc/notify.h"
#include "bank/svc/service.h"
#include "proto/rpc/daemon.h"

struct settings {
    const char *database;
    struct bank_limits limits;
};

struct bank {
    struct bank_service *service;
    struct settings *settings;
};

/* In the order of their bits. */
static const char *const notify_words[] = {
    "CLOCKAHEAD", "DATABASEDOWN", "WRITEREFUSED", "STATEFAILED", "RECONOPEN", "ALLOCATION", NULL};
static_assert (NOTIFY_ALL == (1u << (sizeof (notify_words) / sizeof (*notify_words) - 1)) - 1,
               "a word for each event");

static int set_notify_events (void *target, const struct conf_value *value, struct err *err)
{
    struct settings *settings = target;
    return conf_bits_parse (value, notify_words, &settings->limits.notify_events, err);
}

static const struct conf_param params[] = {
    {.name = "DATABASE",
     .type = CONF_TEXT,
     .offset = offsetof (struct settings, database),
     .flags = CONF_F_REQUIRED},
    {.name = "HOLDLIMIT",
     .type = CONF_DURATION,
     .offset = offsetof (struct settings, limits.hold),
     .min = US_PER_S,
     .max = INT64_C (3660) * 86400 * US_PER_S,
     .initial = "7:00:00:00"},
    {.name = "STATEINTERVAL",
     .type = CONF_DURATION,
     .offset = offsetof (struct settings, limits.state),
     .min = US_PER_S,
     .max = INT64_C (3660) * 86400 * US_PER_S,
     .initial = "1:00:00"},
    {.name = "QUOTELIMIT",
     .type = CONF_DURATION,
     .offset = offsetof (struct settings, limits.quote),
     .max = INT64_C (3660) * 86400 * US_PER_S,
     .initial = "7:00:00:00"},
    {.name = "REPLAYWINDOW",
     .type = CONF_DURATION,
     .offset = offsetof (struct settings, limits.replay),
     .min = US_PER_S,
     .max = INT64_C (3660) * 86400 * US_PER_S,
     .initial = "90:00:00:00"},
    {.name = "CLOCKBOUND",
     .type = CONF_DURATION,
     .offset = offsetof (struct settings, limits.clock),
     .min = US_PER_S,
     .max = 86400 * US_PER_S,
     .initial = "1:00"},
    {.name = "READBOUND",
     .type = CONF_DURATION,
     .offset = offsetof (struct settings, limits.read),
     .min = US_PER_S,
     .max = 86400 * US_PER_S,
     .initial = "0:00:30"},
    {.name = "CHARGETOLERANCE",
     .type = CONF_DURATION,
     .offset = offsetof (struct settings, limits.tolerance),
     .max = 86400 * US_PER_S,
     .initial = "0:01:00"},
    {.name = "CHECKPOINTENTRIES",
     .type = CONF_INT,
     .offset = offsetof (struct settings, limits.checkpoint_entries),
     .min = 1,
     .max = 1000000000,
     .initial = "1000"},
    {.name = "NOTIFICATIONPROGRAM",
     .type = CONF_PATH,
     .offset = offsetof (struct settings, limits.notify.program)},
    {.name = "NOTIFICATIONACCOUNT",
     .type = CONF_STRING,
     .offset = offsetof (struct settings, limits.notify.account),
     .initial = "nobody"},
    {.name = "NOTIFICATIONURL",
     .type = CONF_STRING,
     .offset = offsetof (struct settings, limits.notify.url)},
    {.name = "NOTIFICATIONEVENTS", .type = CONF_CALL, .set = set_notify_events},
    {.name = NULL},
};

static int notify_check (const struct teller_to *to, struct err *err)
{
    return conf_notify_check (to->program, to->account, to->url, err);
}

static int configure (void *self, struct conf *conf, void **settings_out, struct err *err)
{
    (void)self;
    struct settings *settings = calloc (1, sizeof (*settings));
    if (!settings)
        return err_set (err, ERR_NOMEM, "out of memory");
    if (conf_table_read (conf, params, settings, err) < 0 ||
        notify_check (&settings->limits.notify, err) < 0) {
        free (settings);
        return err->code;
    }
    if (!settings->limits.notify_events)
        settings->limits.notify_events = NOTIFY_ALL;
    *settings_out = settings;
    return 0;
}

static void settings_free (void *self, void *settings)
{
    (void)self;
    free (settings);
}

static int start (void *self, struct daemon *daemon, void *settings, struct err *err)
{
    struct bank *bank = self;
    bank->settings = settings;
    struct bank_service_config config = {.base = daemon_base (daemon),
                                         .log = daemon_log (daemon),
                                         .id = daemon_tlsid (daemon),
                                         .server = daemon_server (daemon),
                                         .database = bank->settings->database,
                                         .limits = bank->settings->limits};
    bank->service = bank_service_create (&config, err);
    return bank->service ? 0 : err->code;
}

/* Certificates and the log reload by themselves; another database needs a restart. */
static int reload (void *self, void *settings, struct err *err)
{
    struct bank *bank = self;
    struct settings *fresh = settings;
    if (strcmp (fresh->database, bank->settings->database) != 0)
        return err_set (err, ERR_CONFLICT,
                        "DATABASE cannot change while nui-bank runs: restart it");
    bank->settings = fresh;
    bank_service_settings (bank->service, &fresh->limits);
    return 0;
}

static void metrics (void *self, struct metrics_page *page)
{
    bank_service_metrics (((struct bank *)self)->service, page);
}

static void stop (void *self)
{
    struct bank *bank = self;
    bank_service_destroy (bank->service);
    bank->service = NULL;
}

/* nui-bank --schema ROLE | psql: for a service that does not own its tables. */
static int print_schema (const char *role)
{
    struct err err = {0};
    struct strbuf out = STRBUF_INIT;
    if (name_check ("role", role, &err) < 0 || strpbrk (role, ".-")) {
        fprintf (stderr, "nui-bank: '%.64s' is no role's name: letters, digits and '_'\n", role);
        return 2;
    }
    setup_script (role, &out);
    bool whole = fwrite (strbuf_text (&out), 1, out.len, stdout) == out.len && fflush (stdout) == 0;
    strbuf_free (&out);
    return whole ? 0 : 1;
}

int main (int argc, char **argv)
{
    if (argc == 3 && strcmp (argv[1], "--schema") == 0)
        return print_schema (argv[2]);
    static const struct daemon_ops ops = {.program = "nui-bank",
                                          .config_default = "/etc/nui/nui-bank.cfg",
                                          .summary = "the grid's allocation bank, over PostgreSQL",
                                          .kind = PRINCIPAL_BANK,
                                          .configure = configure,
                                          .settings_free = settings_free,
                                          .start = start,
                                          .reload = reload,
                                          .metrics = metrics,
                                          .stop = stop};
    struct bank bank = {0};
    daemon_files_raise ();
    return daemon_main (&ops, &bank, argc, argv);
}
