/* client: the context behind every command of nui: reads nui.cfg, finds out who is asking, and
 * opens the connections, each at its first use. The dispatcher makes one per run. Nothing
 * connects and no key is read before a command asks for it, so that help works on a machine
 * without a configuration. */
#include "proto/cli/client.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "proto/base/arena.h"
#include "proto/cli/options.h"

enum { SITES_MAX = 1024 };

struct site {
    const char *name;
    const char *server; /* host:port, or NULL */
    const char *socket; /* path, or NULL */
    struct rpcclient *client;
};

struct settings {
    const char *grid, *ca, *crl, *cert, *key, *bank, *account, *default_site;
    bool alone; /* of no grid: settle_grid */
    struct site *site;
    uint32_t site_count;
    const char **site_name; /* ends with NULL */
    struct metas *metas;
    int64_t cost_factor_ppm;
    struct arena *arena;
};

struct cli_context {
    const char *config_path; /* --config */
    enum cli_format format;
    bool noheader;
    const struct cli_command *command;
    struct cli_operands operands;
    struct conf *conf;
    struct settings settings;
    struct event_base *base;
    struct tlsid *id;
    struct rpcclient *bank;
};

/* --- the context ---------------------------------------------------------------------------- */

struct cli_context *cli_context_create (void)
{
    struct cli_context *ctx = calloc (1, sizeof *ctx);
    assert (ctx);
    return ctx;
}

void cli_context_destroy (struct cli_context *ctx)
{
    if (!ctx)
        return;
    for (uint32_t i = 0; i < ctx->settings.site_count; i++)
        if (ctx->settings.site[i].client)
            rpcclient_destroy (ctx->settings.site[i].client);
    metas_destroy (ctx->settings.metas);
    if (ctx->bank)
        rpcclient_destroy (ctx->bank);
    tlsid_destroy (ctx->id);
    if (ctx->base)
        event_base_free (ctx->base);
    arena_destroy (ctx->settings.arena);
    conf_destroy (ctx->conf);
    free (ctx);
}

void cli_set_config (struct cli_context *ctx, const char *path)
{
    ctx->config_path = path;
}

void cli_set_format (struct cli_context *ctx, enum cli_format format)
{
    ctx->format = format;
}

void cli_set_noheader (struct cli_context *ctx, bool noheader)
{
    ctx->noheader = noheader;
}

enum cli_format cli_format (const struct cli_context *ctx)
{
    return ctx->format;
}

bool cli_noheader (const struct cli_context *ctx)
{
    return ctx->noheader;
}

bool cli_colour (const struct cli_context *ctx)
{
    (void)ctx;
    const char *no_color = getenv ("NO_COLOR");
    return !(no_color && *no_color) && isatty (STDOUT_FILENO);
}

unsigned cli_columns (const struct cli_context *ctx)
{
    (void)ctx;
    struct winsize size;
    if (ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 0;
}

void cli_set_command (struct cli_context *ctx, const struct cli_command *command)
{
    ctx->command = command;
}

void cli_set_operands (struct cli_context *ctx, const struct cli_operands *operands)
{
    ctx->operands = *operands;
}

const struct cli_command *cli_command (const struct cli_context *ctx)
{
    return ctx->command;
}

/* --- sentences ------------------------------------------------------------------------------ */

int cli_fail (const char *command, const struct err *err)
{
    fprintf (stderr, "nui %s: %s\n", command, err->text[0] ? err->text : err_code_name (err->code));
    switch (err->code) {
    case ERR_DENIED:
    case ERR_UNAUTHENTIC:
        return CLI_DENIED;
    case ERR_UNAVAILABLE:
    case ERR_TIMEOUT:
        return CLI_NO_ANSWER;
    case ERR_NOT_FOUND:
        return CLI_NOT_FOUND;
    default:
        return CLI_FAILED;
    }
}

int cli_usage (const char *command, const char *fmt, ...)
{
    fprintf (stderr, "nui %s: ", command);
    va_list ap;
    va_start (ap, fmt);
    vfprintf (stderr, fmt, ap);
    va_end (ap);
    fprintf (stderr, " (see nui %s --help)\n", command);
    return CLI_USAGE;
}

/* --- configuration -------------------------------------------------------------------------- */

static int site_record (void *target, const char *index, void **out, struct err *err)
{
    struct settings *s = target;
    int rc = name_check ("SITECFG", index, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < s->site_count; i++) {
        if (strcmp (s->site[i].name, index) == 0) {
            *out = &s->site[i];
            return 0;
        }
    }
    if (s->site_count == SITES_MAX)
        return err_set (err, ERR_LIMIT, "more than %d sites", SITES_MAX);
    struct site *site = &s->site[s->site_count];
    site->name = arena_strdup (s->arena, index);
    s->site_name[s->site_count++] = site->name;
    *out = site;
    return 0;
}

/* A later line wins. */
static int set_metas (void *target, const struct conf_value *value, struct err *err)
{
    struct settings *s = target;
    int rc = 0;
    metas_clear (s->metas);
    for (uint32_t i = 0; i < value->word_count && rc == 0; i++)
        rc = metas_add (s->metas, value->word[i], err);
    return rc;
}

static const struct conf_param site_attrs[] = {
    {.name = "SERVER", .type = CONF_STRING, .offset = offsetof (struct site, server)},
    {.name = "SOCKET", .type = CONF_PATH, .offset = offsetof (struct site, socket)},
    {0}};

static const struct conf_param client_params[] = {
    {.name = "GRID", .type = CONF_STRING, .offset = offsetof (struct settings, grid)},
    {.name = "CA", .type = CONF_PATH, .offset = offsetof (struct settings, ca)},
    {.name = "CRL", .type = CONF_PATH, .offset = offsetof (struct settings, crl)},
    {.name = "CERT", .type = CONF_PATH, .offset = offsetof (struct settings, cert)},
    {.name = "KEY", .type = CONF_PATH, .offset = offsetof (struct settings, key)},
    {.name = "META", .type = CONF_CALL, .set = set_metas},
    {.name = "BANK", .type = CONF_STRING, .offset = offsetof (struct settings, bank)},
    {.name = "ACCOUNT", .type = CONF_STRING, .offset = offsetof (struct settings, account)},
    {.name = "COSTFACTOR",
     .type = CONF_PPM,
     .offset = offsetof (struct settings, cost_factor_ppm),
     .min = 1000000,
     .max = 1000 * INT64_C (1000000)},
    {.name = "SITE", .type = CONF_STRING, .offset = offsetof (struct settings, default_site)},
    {.name = "SITECFG", .type = CONF_RECORD, .attrs = site_attrs, .record = site_record},
    {0}};

/* $NUI_CONFIG and --config must be there; the two usual places may be missing. */
static struct conf *find_config (const struct cli_context *ctx, struct err *err)
{
    const char *named = ctx->config_path ? ctx->config_path : getenv ("NUI_CONFIG");
    if (named && *named)
        return conf_read_file (named, err);
    const char *home = getenv ("HOME");
    char path[4096] = "";
    if (home && *home && strlen (home) < sizeof path - 32) {
        snprintf (path, sizeof path, "%s/.config/nui/nui.cfg", home);
        struct conf *conf = conf_read_file (path, err);
        if (conf || err->code != ERR_NOT_FOUND)
            return conf;
    }
    struct conf *conf = conf_read_file ("/etc/nui/nui.cfg", err);
    if (!conf && err->code == ERR_NOT_FOUND)
        err_set (err, ERR_NOT_FOUND,
                 "no configuration: neither --config nor $NUI_CONFIG is given, and neither "
                 "%s%s/etc/nui/nui.cfg is there",
                 path, *path ? " nor " : "");
    return conf;
}

static int check_sites (const struct settings *s, struct err *err)
{
    for (uint32_t i = 0; i < s->site_count; i++)
        if (!s->site[i].server && !s->site[i].socket)
            return err_set (err, ERR_INVALID, "SITECFG[%s] has neither SERVER nor SOCKET",
                            s->site[i].name);
    for (uint32_t i = 0; s->default_site && i < s->site_count; i++)
        if (strcmp (s->site[i].name, s->default_site) == 0)
            return 0;
    return s->default_site ? err_set (err, ERR_INVALID, "SITE %s has no SITECFG[%s]",
                                      s->default_site, s->default_site)
                           : 0;
}

/* Of a cluster by itself nobody needs to know a grid: only its socket is there. */
static int settle_grid (struct conf *conf, struct settings *s, struct err *err)
{
    bool alone = s->site_count > 0 && !s->ca && !s->cert && !s->bank && !conf_has (conf, "META");
    for (uint32_t i = 0; i < s->site_count; i++)
        alone = alone && !s->site[i].server;
    if (!s->grid && !alone)
        return err_set (err, ERR_INVALID, "GRID is missing");
    s->alone = !s->grid;
    s->grid = s->grid ? s->grid : "local";
    return 0;
}

static struct rpcclient *meta_connect (void *arg, const char *target, struct err *err);

int cli_config (struct cli_context *ctx, struct err *err)
{
    if (ctx->conf)
        return 0;
    struct conf *conf = find_config (ctx, err);
    if (!conf)
        return err->code;
    struct settings s = {.arena = arena_create (0),
                         .metas = metas_create (meta_connect, ctx),
                         .cost_factor_ppm = CLI_COST_FACTOR_PPM};
    s.site = arena_array (s.arena, SITES_MAX, sizeof *s.site);
    s.site_name = arena_array (s.arena, SITES_MAX + 1, sizeof *s.site_name);
    int rc = conf_table_read (conf, client_params, &s, err);
    if (rc == 0)
        rc = conf_finish (conf, err);
    if (rc == 0 && ((rc = settle_grid (conf, &s, err)) < 0 || (rc = check_sites (&s, err)) < 0))
        err_prefix (err, "%s", conf_name (conf));
    if (rc < 0) {
        metas_destroy (s.metas);
        arena_destroy (s.arena);
        conf_destroy (conf);
        return rc;
    }
    ctx->conf = conf;
    ctx->settings = s;
    return 0;
}

const char *cli_grid (struct cli_context *ctx, struct err *err)
{
    return cli_config (ctx, err) < 0 ? NULL : ctx->settings.grid;
}

const char *cli_account (struct cli_context *ctx)
{
    struct err err = {0};
    return cli_config (ctx, &err) < 0 ? NULL : ctx->settings.account;
}

int64_t cli_cost_factor_ppm (struct cli_context *ctx)
{
    struct err err = {0};
    return cli_config (ctx, &err) < 0 ? CLI_COST_FACTOR_PPM : ctx->settings.cost_factor_ppm;
}

const char *const *cli_site_names (struct cli_context *ctx, struct err *err)
{
    return cli_config (ctx, err) < 0 ? NULL : ctx->settings.site_name;
}

/* --- identity and connections ---------------------------------------------------------------- */

struct tlsid *cli_identity (struct cli_context *ctx, struct err *err)
{
    if (ctx->id)
        return ctx->id;
    if (cli_config (ctx, err) < 0)
        return NULL;
    const struct settings *s = &ctx->settings;
    const char *missing = !s->ca ? "CA" : !s->cert ? "CERT" : !s->key ? "KEY" : NULL;
    if (missing) {
        err_set (err, ERR_UNAUTHENTIC, "%s: %s is missing, so that nobody can tell who you are",
                 conf_name (ctx->conf), missing);
        return NULL;
    }
    struct tlsid_config config = {
        .ca_file = s->ca, .cert_file = s->cert, .key_file = s->key, .crl_file = s->crl};
    struct tlsid *id = tlsid_create (&config, err);
    if (id && strcmp (tlsid_self (id)->grid, s->grid) != 0) {
        err_set (err, ERR_UNAUTHENTIC, "certificate %s is for grid %s, GRID is %s", s->cert,
                 tlsid_self (id)->grid, s->grid);
        tlsid_destroy (id);
        return NULL;
    }
    ctx->id = id;
    return id;
}

bool cli_has_identity (struct cli_context *ctx)
{
    return cli_config (ctx, NULL) == 0 && ctx->settings.cert && ctx->settings.key;
}

bool cli_has_bank (struct cli_context *ctx)
{
    return cli_config (ctx, NULL) == 0 && ctx->settings.bank;
}

struct event_base *cli_base (struct cli_context *ctx)
{
    if (!ctx->base) {
        ctx->base = event_base_new ();
        assert (ctx->base);
    }
    return ctx->base;
}

/* A program's output stays as it is. */
static void cli_slow (const char *target)
{
    if (isatty (STDERR_FILENO))
        fprintf (stderr, "nui: %s has not answered for %d s; waiting on (Ctrl-C ends it)\n", target,
                 (int)(RPCCLIENT_SLOW_US / US_PER_S));
}

static struct rpcclient *connect_to (struct cli_context *ctx, const char *target, bool local,
                                     enum principal_kind kind, const char *name, struct err *err)
{
    struct tlsid *id = local ? NULL : cli_identity (ctx, err);
    if (!local && !id)
        return NULL;
    struct rpcclient_config config = {.base = cli_base (ctx),
                                      .id = id,
                                      .target = target,
                                      .slow = cli_slow,
                                      .expect_kind = kind,
                                      .expect_name = name};
    return rpcclient_create (&config, err);
}

static struct rpcclient *meta_connect (void *arg, const char *target, struct err *err)
{
    return connect_to (arg, target, false, PRINCIPAL_META, NULL, err);
}

static int is_missing (struct cli_context *ctx, const char *key, struct err *err)
{
    return err_set (err, ERR_INVALID, "%s: %s is missing (host:port of the daemon)%s",
                    conf_name (ctx->conf), key,
                    ctx->settings.alone
                        ? ": a cluster of no grid is asked by nui showq, showq -c and checkjob"
                        : "");
}

struct metas *cli_metas (struct cli_context *ctx, struct err *err)
{
    if (cli_config (ctx, err) < 0 ||
        (metas_count (ctx->settings.metas) == 0 && is_missing (ctx, "META", err) < 0))
        return NULL;
    return ctx->settings.metas;
}

struct rpcclient *cli_bank (struct cli_context *ctx, struct err *err)
{
    if (ctx->bank || cli_config (ctx, err) < 0)
        return ctx->bank;
    if (ctx->settings.bank)
        ctx->bank = connect_to (ctx, ctx->settings.bank, false, PRINCIPAL_BANK, NULL, err);
    else
        is_missing (ctx, "BANK", err);
    return ctx->bank;
}

static bool here (const struct site *site)
{
    return site->socket && access (site->socket, F_OK) == 0;
}

/* The machine whose scheduler it is: SERVER's, or this one where its socket is here. */
static bool on_host (const struct site *site, const char *name)
{
    char own[HOST_NAME_MAX + 1] = "";
    const char *colon = site->server ? strrchr (site->server, ':') : NULL;
    if (colon && strlen (name) == (size_t)(colon - site->server) &&
        strncasecmp (site->server, name, strlen (name)) == 0)
        return true;
    if (!here (site) || gethostname (own, sizeof own - 1) != 0)
        return false;
    return strcmp (name, "localhost") == 0 || strcasecmp (name, own) == 0;
}

static struct site *find_site (struct cli_context *ctx, const char *name, struct err *err)
{
    struct settings *s = &ctx->settings;
    for (uint32_t i = 0; i < s->site_count; i++)
        if (strcmp (s->site[i].name, name) == 0)
            return &s->site[i];
    for (uint32_t i = 0; i < s->site_count; i++)
        if (on_host (&s->site[i], name))
            return &s->site[i];
    const char *near = conf_nearest (name, s->site_name);
    err_set (err, ERR_NOT_FOUND, "%s: no SITECFG[%.63s]%s%s%s", conf_name (ctx->conf), name,
             near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    return NULL;
}

/* Jobs say where they are: alpha.3 is one of alpha's. 0, *out NULL: no operand is a job of a site of ours. */
static int site_of_jobs (struct cli_context *ctx, struct site **out, struct err *err)
{
    struct settings *s = &ctx->settings;
    *out = NULL;
    for (int k = 0; k < ctx->operands.count; k++) {
        const char *id = ctx->operands.item[k], *dot = strrchr (id, '.');
        for (uint32_t i = 0;
             dot && dot[1] && !dot[1 + strspn (dot + 1, "0123456789")] && i < s->site_count; i++) {
            struct site *site = &s->site[i];
            if (strlen (site->name) != (size_t)(dot - id) ||
                strncmp (site->name, id, (size_t)(dot - id)) != 0)
                continue;
            if (*out && *out != site)
                return err_set (err, ERR_INVALID,
                                "%.80s is not at %.63s, as the other one: name jobs of one site",
                                id, (*out)->name);
            *out = site;
        }
    }
    return 0;
}

static struct site *default_site (struct cli_context *ctx, struct err *err)
{
    struct settings *s = &ctx->settings;
    if (s->default_site)
        return find_site (ctx, s->default_site, err);
    struct site *only = NULL;
    for (uint32_t i = 0; i < s->site_count; i++) {
        if (!here (&s->site[i]))
            continue;
        if (only) {
            only = NULL;
            break;
        }
        only = &s->site[i];
    }
    if (only)
        return only;
    if (s->site_count == 1)
        return &s->site[0];
    err_set (err, ERR_INVALID, "%s: %s", conf_name (ctx->conf),
             s->site_count ? "several sites: name one (option --site, or SITE here)"
                           : "no site (SITECFG[name] SERVER=host:port)");
    return NULL;
}

static struct site *pick_site (struct cli_context *ctx, const char *name, struct err *err)
{
    struct site *found;
    if (cli_config (ctx, err) < 0)
        return NULL;
    if (name)
        return find_site (ctx, name, err);
    if (site_of_jobs (ctx, &found, err) < 0)
        return NULL;
    return found ? found : default_site (ctx, err);
}

const char *cli_site_name (struct cli_context *ctx, const char *site, struct err *err)
{
    struct site *found = pick_site (ctx, site, err);
    return found ? found->name : NULL;
}

struct rpcclient *cli_site (struct cli_context *ctx, const char *site, struct err *err)
{
    struct site *found = pick_site (ctx, site, err);
    if (!found || found->client)
        return found ? found->client : NULL;
    if (here (found)) {
        const char *target = arena_printf (ctx->settings.arena, "unix:%s", found->socket);
        found->client = connect_to (ctx, target, true, PRINCIPAL_NONE, NULL, err);
    } else if (found->server) {
        found->client = connect_to (ctx, found->server, false, PRINCIPAL_SITE, found->name, err);
    } else {
        err_set (err, ERR_UNAVAILABLE, "site %s: nui-local's socket %s is not there", found->name,
                 found->socket);
    }
    return found->client;
}
