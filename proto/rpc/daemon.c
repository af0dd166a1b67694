/* daemon: main() of the three daemons, from the options to the exit code; what touches files of
 * the system is in daemon_sys.c. The mains call daemon_main. Configuration is taken whole or not
 * at all: a reload that fails leaves everything as it was, and nobody is served before
 * ops->start is through. */
#include "proto/rpc/daemon.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/strbuf.h"
#include "proto/base/text.h"
#include "proto/metrics/door.h"
#include "proto/rpc/daemon_i.h"

enum { WATCH_S = 2, DRAIN_GRACE_S = 5 };

/* One configuration as a whole; strings and settings live as long as conf. */
struct loaded {
    struct conf *conf;
    struct daemon_keys *keys; /* owned; conf_show reads it */
    struct log_levels levels;
    void *settings;
};

struct daemon {
    const struct daemon_ops *ops;
    void *self;
    const char *config_file;
    struct loaded now;
    char *changes; /* lines after the file's; NULL: none */
    struct log *log;
    struct tlsid *id;
    struct rpcserver *server;
    struct event_base *base;
    struct event *on_term, *on_int, *on_hup, *on_watch;
    struct daemon_metrics *metrics;
    struct daemon_room room;
    struct daemon_stamp config_stamp;
    struct daemon_stamp tls_stamp[4]; /* ca, crl, cert, key */
    int pid_fd;
    bool started, looping, stopping, failed, recycle;
};

static void loaded_free (struct daemon *d, struct loaded *l)
{
    if (l->settings)
        d->ops->settings_free (d->self, l->settings);
    conf_destroy (l->conf);
    free (l->keys);
    memset (l, 0, sizeof *l);
}

/* What one of many may have of the server; what is not a key is RPCSERVER_LIMITS_DEFAULT's. */
static struct connshare_limits limits_of (const struct daemon_keys *k)
{
    struct connshare_limits l = RPCSERVER_LIMITS_DEFAULT;
    l.connections = (uint32_t)k->connections;
    l.per_principal = (uint32_t)k->per_principal;
    l.per_address = (uint32_t)k->per_address;
    l.handshakes = (uint32_t)k->handshakes;
    l.handshakes_per_address = l.handshakes / 2;
    l.calls_per_s = (uint32_t)k->call_rate;
    return l;
}

/* A file for its own machine: nobody from outside is to be served or believed. */
static bool is_alone (const struct daemon *d, const struct daemon_keys *k)
{
    return d->ops->alone && k->socket && !k->listen && !k->ca && !k->crl && !k->cert && !k->key;
}

/* What everybody needs who is not alone; each that is missing is a fault. */
static void require_keys (const struct daemon *d, const struct loaded *l)
{
    const struct daemon_keys *k = l->keys;
    const struct {
        const char *name, *value;
    } needed[] = {
        {"GRID", k->grid}, {"CA", k->ca}, {"CRL", k->crl}, {"CERT", k->cert}, {"KEY", k->key}};
    if (conf_is_partial (l->conf) || is_alone (d, k))
        return;
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!needed[i].value) {
            struct err fault = {0};
            err_set (&fault, ERR_INVALID, "%s: %s is missing", conf_name (l->conf), needed[i].name);
            conf_fault_add (l->conf, &fault);
        }
}

static int load_keys (const struct daemon *d, struct loaded *l, struct err *err)
{
    l->keys = calloc (1, sizeof *l->keys);
    int rc = l->keys ? conf_table_read (l->conf, daemon_params, l->keys, err)
                     : err_set (err, ERR_NOMEM, "configuration: no memory");
    if (l->keys)
        require_keys (d, l);
    if (rc < 0)
        return rc;
    if (!l->keys->listen && !l->keys->socket && !conf_is_partial (l->conf))
        return err_set (err, ERR_INVALID, "%s: neither LISTEN nor SOCKET is given",
                        conf_name (l->conf));
    if (l->keys->metrics && metrics_address_check (l->keys->metrics, err) < 0)
        return err_prefix (err, "%s", conf_name (l->conf));
    l->levels.all = LOG_LEVEL_INFO;
    if (l->keys->log_level && log_levels_parse (l->keys->log_level, &l->levels, err) < 0)
        return err_prefix (err, "%s: LOGLEVEL", conf_name (l->conf));
    return 0;
}

/* Nothing in it says that it is a daemon's. */
static bool says_nothing_of_us (const struct conf *conf)
{
    static const char *const ours[] = {"GRID", "STATEDIR", "CA", "CERT", "KEY", "LISTEN", "SOCKET"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (conf_has (conf, ours[i]))
            return false;
    return true;
}

static bool says_lenient (const struct daemon *d, const struct conf *conf)
{
    const char *key = d->ops->lenient_key;
    const struct conf_entry *e = key ? conf_entry_last (conf, key, NULL, NULL) : NULL;
    bool value = false;
    return e && bool_parse (e->value, &value, NULL) == 0 && value;
}

static int socket_refused (const struct daemon *d, const struct loaded *l, struct err *err)
{
    return !l->keys->socket || d->ops->kind == PRINCIPAL_SITE
               ? 0
               : err_set (
                     err, ERR_INVALID,
                     "%s: SOCKET is for sites: an account of this machine is no user of the grid",
                     conf_name (l->conf));
}

/* Whole or not at all; *out keeps the conf, which says what there is to say, either way. changes: further lines, or
 * NULL. partial: a part of a file will do. */
static int load (struct daemon *d, const char *changes, bool partial, struct loaded *out,
                 struct err *err)
{
    struct loaded l = {.conf = partial || d->ops->lenient_key
                                   ? conf_read_all (d->config_file, err)
                                   : conf_read_file (d->config_file, err)};
    struct err fault = {0};
    *out = l;
    int rc = !l.conf ? err->code : changes ? conf_append (l.conf, changes, err) : 0;
    if (rc < 0) {
        loaded_free (d, out);
        return rc;
    }
    if (partial && says_nothing_of_us (l.conf))
        conf_partial (l.conf);
    if (says_lenient (d, l.conf))
        conf_lenient (l.conf);
    if (load_keys (d, &l, &fault) < 0 || socket_refused (d, &l, &fault) < 0)
        conf_fault_add (l.conf, &fault);
    struct principal self;
    if (d->ops->configure (d->self, l.conf, &l.settings, &fault) < 0 ||
        (is_alone (d, l.keys) && d->ops->alone (d->self, l.settings, &self, &fault) < 0))
        conf_fault_add (l.conf, &fault);
    *out = l;
    return conf_finish (l.conf, err);
}

static void log_notes (struct daemon *d)
{
    char quoted[600];
    for (uint32_t i = 0; i < conf_note_count (d->now.conf); i++)
        log_event (d->log, LOG_LEVEL_WARN, "daemon", "parameter_without_effect", "text=%s",
                   log_quote (conf_note (d->now.conf, i), quoted, sizeof quoted));
}

static void log_err (struct daemon *d, const char *event, const struct err *err)
{
    char quoted[2 * ERR_TEXT_MAX];
    log_event (d->log, LOG_LEVEL_ERROR, "daemon", event, "text=%s",
               log_quote (err->text, quoted, sizeof quoted));
}

/* --- reload -------------------------------------------------------------------------------- */

static bool same_text (const char *a, const char *b)
{
    return a == b || (a && b && strcmp (a, b) == 0);
}

/* These are bound to open files, sockets and the state: only a restart changes them. */
static int refuse_fixed (const struct daemon_keys *a, const struct daemon_keys *b, struct err *err)
{
    const struct {
        const char *name, *now, *then;
    } fixed[] = {
        {"GRID", a->grid, b->grid},
        {"STATEDIR", a->state_dir, b->state_dir},
        {"LISTEN", a->listen, b->listen},
        {"SOCKET", a->socket, b->socket},
        {"PORTFILE", a->port_file, b->port_file},
        {"PIDFILE", a->pid_file, b->pid_file},
        {"LOGFILE", a->log_file, b->log_file},
        {"METRICS", a->metrics, b->metrics},
        {"CA", a->ca, b->ca},
        {"CRL", a->crl, b->crl},
        {"CERT", a->cert, b->cert},
        {"KEY", a->key, b->key},
    };
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (!same_text (fixed[i].now, fixed[i].then))
            return err_set (err, ERR_CONFLICT,
                            "%s cannot change while the program runs: restart it", fixed[i].name);
    return 0;
}

/* Takes over what the file and these lines say, whole or not at all. */
static int take (struct daemon *d, const char *changes, struct err *err)
{
    struct loaded fresh;
    int rc = load (d, changes, false, &fresh, err);
    if (rc == 0)
        rc = refuse_fixed (d->now.keys, fresh.keys, err);
    if (rc == 0 && !d->ops->reload)
        rc = err_set (err, ERR_UNSUPPORTED, "%s takes a new configuration only by a restart",
                      d->ops->program);
    if (rc == 0)
        rc = d->ops->reload (d->self, fresh.settings, err);
    if (rc < 0) {
        loaded_free (d, &fresh);
        return rc;
    }
    loaded_free (d, &d->now);
    d->now = fresh;
    log_levels_set (d->log, &d->now.levels);
    const struct connshare_limits limits = limits_of (d->now.keys);
    rpcserver_set_limits (d->server, &limits);
    return 0;
}

static void reload_config (struct daemon *d)
{
    struct err err = {0};
    daemon_stamp_changed (d->config_file, &d->config_stamp);
    if (take (d, NULL, &err) < 0) {
        log_err (d, "configuration_refused", &err);
        return;
    }
    log_event (d->log, LOG_LEVEL_INFO, "daemon", "configuration_taken", "file=%s%s", d->config_file,
               d->changes ? " changed_by_hand=forgotten" : "");
    free (d->changes);
    d->changes = NULL;
    log_notes (d);
}

int daemon_change (struct daemon *d, const char *lines, struct err *err)
{
    struct strbuf all = STRBUF_INIT;
    strbuf_printf (&all, "%s%s\n", d->changes ? d->changes : "", lines);
    int rc = take (d, strbuf_text (&all), err);
    if (rc < 0) {
        strbuf_free (&all);
        return rc;
    }
    free (d->changes);
    d->changes = strbuf_steal (&all);
    log_event (d->log, LOG_LEVEL_INFO, "daemon", "configuration_taken", "changed_by_hand=1");
    return 0;
}

static void reload_tls (struct daemon *d)
{
    struct err err = {0};
    if (is_alone (d, d->now.keys))
        return;
    if (tlsid_reload (d->id, &err) < 0) {
        log_err (d, "certificates_refused", &err);
        return;
    }
    rpcserver_recheck_peers (d->server);
    log_event (d->log, LOG_LEVEL_INFO, "daemon", "certificates_taken", "crl=%s", d->now.keys->crl);
}

static bool tls_changed (struct daemon *d)
{
    const struct daemon_keys *k = d->now.keys;
    const char *const path[4] = {k->ca, k->crl, k->cert, k->key};
    bool changed = false;
    for (int i = 0; i < 4; i++)
        changed |= path[i] && daemon_stamp_changed (path[i], &d->tls_stamp[i]);
    return changed;
}

static void on_hup (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct daemon *d = arg;
    struct err err = {0};
    if (log_reopen (d->log, &err) < 0)
        log_err (d, "log_not_reopened", &err);
    reload_config (d);
    tls_changed (d);
    reload_tls (d);
}

static void room_look (struct daemon *d)
{
    if (!daemon_room_look (&d->room))
        return;
    if (d->room.tight)
        log_event (
            d->log, LOG_LEVEL_ERROR, "daemon", "disk_full",
            "dir=%s text=\"no new work is taken; what is under way goes on, in the room that was kept "
            "for it\"",
            d->room.dir);
    else
        log_event (d->log, LOG_LEVEL_INFO, "daemon", "disk_has_room", "dir=%s", d->room.dir);
}

int daemon_takes_work (struct daemon *d, struct err *err)
{
    room_look (d);
    return daemon_room_check (&d->room, err);
}

static void on_watch (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct daemon *d = arg;
    room_look (d);
    if (tls_changed (d))
        reload_tls (d);
    if (daemon_stamp_changed (d->config_file, &d->config_stamp))
        reload_config (d);
}

/* --- stop ---------------------------------------------------------------------------------- */

static void on_drained (void *arg)
{
    struct daemon *d = arg;
    event_base_loopbreak (d->base);
}

static void begin_stop (struct daemon *d)
{
    if (d->stopping) { /* asked twice: no more patience */
        event_base_loopbreak (d->base);
        return;
    }
    d->stopping = true;
    log_event (d->log, LOG_LEVEL_INFO, "daemon", "draining", "grace_s=%d", DRAIN_GRACE_S);
    daemon_notify ("STOPPING=1");
    if (d->ops->draining)
        d->ops->draining (d->self);
    rpcserver_drain (d->server, DRAIN_GRACE_S * US_PER_S, on_drained, d);
}

static void on_term (evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    begin_stop (arg);
}

void daemon_stop (struct daemon *d, const struct err *why)
{
    if (why) {
        d->failed = true;
        log_err (d, "failed", why);
    }
    if (d->looping) {
        if (!d->stopping)
            begin_stop (d);
    } else {
        d->stopping = true; /* asked for inside start: the loop never begins */
    }
}

void daemon_recycle (struct daemon *d)
{
    d->recycle = true;
    daemon_stop (d, NULL);
}

/* --- start --------------------------------------------------------------------------------- */

static int make_state_dir (const char *dir, struct err *err)
{
    struct stat st;
    if (mkdir (dir, 0700) < 0 && errno != EEXIST)
        return err_set (err, ERR_IO, "STATEDIR %s: %s", dir, strerror (errno));
    if (stat (dir, &st) < 0)
        return err_set (err, ERR_IO, "STATEDIR %s: %s", dir, strerror (errno));
    if (!S_ISDIR (st.st_mode))
        return err_set (err, ERR_INVALID, "STATEDIR %s is not a directory", dir);
    return 0;
}

static int lock_pid (struct daemon *d, struct err *err)
{
    char path[4096];
    const char *file = d->now.keys->pid_file;
    if (!file) {
        int n = snprintf (path, sizeof path, "%s/%s.pid", d->now.keys->state_dir, d->ops->program);
        if (n < 0 || (size_t)n >= sizeof path)
            return err_set (err, ERR_LIMIT, "STATEDIR: the path is too long");
        file = path;
    }
    return daemon_pid_lock (file, d->ops->program, &d->pid_fd, err);
}

static int open_alone (struct daemon *d, struct err *err)
{
    struct principal self = {.kind = d->ops->kind};
    int rc = d->ops->alone (d->self, d->now.settings, &self, err);
    if (rc == 0 && d->now.keys->grid && (rc = name_check ("grid", d->now.keys->grid, err)) == 0)
        text_printf (self.grid, sizeof self.grid, "%s", d->now.keys->grid);
    d->id = rc == 0 ? tlsid_create_alone (&self, err) : NULL;
    return d->id ? 0 : err->code;
}

static int open_identity (struct daemon *d, struct err *err)
{
    const struct daemon_keys *k = d->now.keys;
    if (is_alone (d, k))
        return open_alone (d, err);
    struct tlsid_config config = {
        .ca_file = k->ca, .crl_file = k->crl, .cert_file = k->cert, .key_file = k->key};
    tls_changed (d); /* before reading, so that a change meanwhile is seen */
    d->id = tlsid_create (&config, err);
    if (!d->id)
        return err->code;
    const struct principal *self = tlsid_self (d->id);
    char uri[PRINCIPAL_URI_MAX];
    if (d->ops->kind != PRINCIPAL_NONE && self->kind != d->ops->kind)
        return err_set (err, ERR_UNAUTHENTIC, "certificate %s is for %s, %s needs one of kind %s",
                        k->cert, principal_uri (self, uri), d->ops->program,
                        principal_kind_name (d->ops->kind));
    if (strcmp (self->grid, k->grid) != 0)
        return err_set (err, ERR_UNAUTHENTIC, "certificate %s is for grid %s, GRID is %s", k->cert,
                        self->grid, k->grid);
    return 0;
}

/* While calls keep the loop busy it looks so often for what else has come. Events have priority 1
 * of two, so that some can be served before them (the bank's database). */
enum { LOOK_US = 2000 };

static int open_events (struct daemon *d, struct err *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction (SIGPIPE, &ignore, NULL);
    struct event_config *config = event_config_new ();
    const struct timeval look = {0, LOOK_US};
    if (config)
        event_config_set_max_dispatch_interval (config, &look, -1, 0);
    d->base = config ? event_base_new_with_config (config) : NULL;
    if (config)
        event_config_free (config);
    if (!d->base || event_base_priority_init (d->base, 2) != 0)
        return err_set (err, ERR_IO, "the event loop cannot be made");
    d->on_term = evsignal_new (d->base, SIGTERM, on_term, d);
    d->on_int = evsignal_new (d->base, SIGINT, on_term, d);
    d->on_hup = evsignal_new (d->base, SIGHUP, on_hup, d);
    d->on_watch = event_new (d->base, -1, EV_PERSIST, on_watch, d);
    assert (d->on_term && d->on_int && d->on_hup && d->on_watch);
    struct timeval every = {.tv_sec = WATCH_S};
    if (evsignal_add (d->on_term, NULL) < 0 || evsignal_add (d->on_int, NULL) < 0 ||
        evsignal_add (d->on_hup, NULL) < 0 || event_add (d->on_watch, &every) < 0)
        return err_set (err, ERR_IO, "signals cannot be watched");
    return 0;
}

static int open_server (struct daemon *d, struct err *err)
{
    const struct connshare_limits limits = limits_of (d->now.keys);
    struct rpcserver_config config = {.base = d->base,
                                      .limits = &limits,
                                      .id = d->id,
                                      .log = d->log,
                                      .listen = d->now.keys->listen,
                                      .unix_path = d->now.keys->socket};
    d->server = rpcserver_create (&config, err);
    return d->server ? 0 : err->code;
}

static int open_metrics (struct daemon *d, struct err *err)
{
    struct daemon_metrics_config config = {.base = d->base,
                                           .log = d->log,
                                           .server = d->server,
                                           .id = d->id,
                                           .ops = d->ops,
                                           .self = d->self,
                                           .room = &d->room,
                                           .listen = d->now.keys->metrics};
    d->metrics = daemon_metrics_open (&config, err);
    return d->metrics ? 0 : err->code;
}

static int start (struct daemon *d, struct err *err)
{
    int rc = make_state_dir (d->now.keys->state_dir, err);
    if (rc == 0) {
        daemon_room_open (&d->room, d->now.keys->state_dir);
        d->log = log_create (d->now.keys->log_file, d->now.levels.all, d->ops->program, err);
        log_levels_set (d->log, &d->now.levels);
        rc = d->log ? 0 : err->code;
    }
    if (rc == 0)
        rc = lock_pid (d, err);
    if (rc == 0)
        log_notes (d);
    if (rc == 0 && d->now.keys->port_file)
        unlink (d->now.keys->port_file);
    if (rc == 0)
        rc = open_identity (d, err);
    if (rc == 0)
        rc = open_events (d, err);
    if (rc == 0)
        rc = open_server (d, err);
    if (rc == 0)
        rc = d->ops->start (d->self, d, d->now.settings, err);
    if (rc < 0)
        return rc;
    d->started = true;
    rc = open_metrics (d, err);
    if (rc == 0 && d->now.keys->port_file && d->now.keys->listen)
        rc = daemon_write_number (d->now.keys->port_file, rpcserver_port (d->server), err);
    return rc;
}

static void run (struct daemon *d)
{
    char uri[PRINCIPAL_URI_MAX];
    log_event (d->log, LOG_LEVEL_INFO, "daemon", "ready", "version=%s self=%s port=%u", NUI_VERSION,
               principal_uri (tlsid_self (d->id), uri), (unsigned)rpcserver_port (d->server));
    daemon_notify ("READY=1");
    d->looping = true;
    if (!d->stopping)
        event_base_dispatch (d->base);
    d->looping = false;
    log_event (d->log, LOG_LEVEL_INFO, "daemon", "stopped", "failed=%d", d->failed);
}

static void close_all (struct daemon *d)
{
    daemon_metrics_close (d->metrics); /* it asks the program */
    if (d->started)
        d->ops->stop (d->self);
    if (d->started && d->now.keys->port_file)
        unlink (d->now.keys->port_file);
    rpcserver_destroy (d->server);
    struct event *const events[] = {d->on_term, d->on_int, d->on_hup, d->on_watch};
    for (int i = 0; i < 4; i++)
        if (events[i])
            event_free (events[i]);
    tlsid_destroy (d->id);
    if (d->base)
        event_base_free (d->base);
    loaded_free (d, &d->now);
    free (d->changes);
    daemon_room_close (&d->room);
    log_destroy (d->log);
    daemon_pid_unlock (d->pid_fd);
}

static void print_all (const struct daemon *d, const struct conf *conf,
                       uint32_t (*count) (const struct conf *),
                       const char *(*text) (const struct conf *, uint32_t))
{
    for (uint32_t i = 0; i < count (conf); i++)
        fprintf (stderr, "%s: %s\n", d->ops->program, text (conf, i));
}

static int check (struct daemon *d)
{
    struct err err = {0};
    struct loaded l;
    int rc = load (d, NULL, d->ops->checks_partial, &l, &err);
    if (!l.conf) {
        fprintf (stderr, "%s: %s\n", d->ops->program, err.text);
        return 1;
    }
    print_all (d, l.conf, conf_note_count, conf_note);
    print_all (d, l.conf, conf_fault_count, conf_fault);
    if (rc == 0)
        printf ("%s: %s is good%s\n", d->ops->program, d->config_file,
                conf_is_partial (l.conf) ? " as a policy: it says nothing of a daemon's own" : "");
    else if (conf_fault_count (l.conf) > 1 || conf_note_count (l.conf) > 0) /* which they are */
        fprintf (stderr, "%s: %s is refused: %u fault%s%s\n", d->ops->program, d->config_file,
                 conf_fault_count (l.conf), conf_fault_count (l.conf) == 1 ? "" : "s",
                 conf_note_count (l.conf) > 0 ? ", told last" : "");
    loaded_free (d, &l);
    return rc == 0 ? 0 : 1;
}

int daemon_main (const struct daemon_ops *ops, void *self, int argc, char **argv)
{
    struct daemon d = {.ops = ops, .self = self, .pid_fd = -1};
    struct daemon_args args = {.config_file = ops->config_default};
    int exit_code = 0;
    if (!daemon_parse_args (ops, argc, argv, &args, &exit_code))
        return exit_code;
    struct err err = {0};
    d.config_file = args.config_file;
    if (args.option && ops->set_option (self, args.option, &err) != 0) {
        fprintf (stderr, "%s: --%s: %s\n", ops->program, ops->option, err.text);
        return 2;
    }
    if (args.check)
        return check (&d);
    umask (027);
    daemon_stamp_changed (d.config_file, &d.config_stamp);
    int rc = load (&d, NULL, false, &d.now, &err);
    if (rc < 0 && d.now.conf)
        print_all (&d, d.now.conf, conf_fault_count, conf_fault);
    else if (rc == 0 && (rc = start (&d, &err)) == 0)
        run (&d);
    if (rc < 0 && (!d.now.conf || conf_fault_count (d.now.conf) == 0)) {
        fprintf (stderr, "%s: %s\n", ops->program, err.text);
        if (d.log && d.now.keys->log_file)
            log_err (&d, "not_started", &err);
    }
    bool failed = rc < 0 || d.failed;
    close_all (&d);
    if (d.recycle && !failed) {
        execv ("/proc/self/exe", argv);
        fprintf (stderr, "%s: it cannot begin again: %s\n", ops->program, strerror (errno));
        return 1;
    }
    return failed ? 1 : 0;
}

struct event_base *daemon_base (struct daemon *d)
{
    return d->base;
}

struct log *daemon_log (struct daemon *d)
{
    return d->log;
}

struct tlsid *daemon_tlsid (struct daemon *d)
{
    return d->id;
}

struct rpcserver *daemon_server (struct daemon *d)
{
    return d->server;
}

const char *daemon_grid (const struct daemon *d)
{
    return tlsid_self (d->id)->grid;
}

const char *daemon_name (const struct daemon *d)
{
    return tlsid_self (d->id)->name;
}

const char *daemon_state_dir (const struct daemon *d)
{
    return d->now.keys->state_dir;
}

const struct conf *daemon_conf (const struct daemon *d)
{
    return d->now.conf;
}
