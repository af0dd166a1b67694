/* daemon: the skeleton of nui-local, nui-meta and nui-bank.
 *
 * Options: --config FILE, --check (read the configuration, say yes or no, exit), --foreground (the
 * only mode; accepted so that unit files can say what they mean), --version, --help.
 * Keys it reads itself: GRID, STATEDIR, LISTEN host:port, SOCKET path, PORTFILE path, PIDFILE path,
 * (SOCKET of a site only: elsewhere an account of the machine would pass for the user of its name)
 * LOGFILE path, LOGLEVEL, METRICS host:port (of this machine), CA, CRL, CERT, KEY, and what one of many may have of the server: CONNECTIONS,
 * CONNECTIONSPERUSER, CONNECTIONSPERADDRESS, HANDSHAKES, CALLRATE. Paths are relative to the configuration's folder.
 *
 * Where ops->alone lets it, a file with SOCKET and none of CA, CRL, CERT, KEY and LISTEN is for one machine: no
 * authority, no certificate, nobody from outside.
 *
 * Order: configuration whole, log, pid file locked (a second instance on one state directory is
 * refused), identity, loop, RPC server, ops->start (adds services), then the port file and READY=1.
 * SIGTERM, SIGINT: drain, ops->stop, exit 0; a second one cuts the drain. SIGHUP: configuration,
 * certificates and log again. Changed certificates, CRL or configuration are also noticed by
 * themselves within two seconds.
 *
 * STATEDIR/ballast is room that is given up when the disk is full (daemon_room.c). */
#ifndef NUI_RPC_DAEMON_H
#define NUI_RPC_DAEMON_H

#include <event2/event.h>

#include "proto/base/log.h"
#include "proto/conf/conf.h"
#include "proto/metrics/metrics.h"
#include "proto/rpc/rpcserver.h"
#include "proto/rpc/tlsid.h"

struct daemon;

/* Of what every daemon reads of its configuration: a row each. */
extern const struct conf_param daemon_params[];

struct daemon_ops {
    const char *program;        /* "nui-local" */
    const char *config_default; /* "/etc/nui/local.cfg" */
    const char *summary;        /* one line for --help */
    enum principal_kind kind;   /* what the certificate must be */

    /* Does --check take a file of which the program's own keys are a part, as another program's that says nothing of
     * GRID, STATEDIR, CA, LISTEN and SOCKET? */
    bool checks_partial;
    /* The key that says TRUE where the file has that program's lines beside our own (conf_lenient). NULL: none. */
    const char *lenient_key;

    /* One option more, of the program's own: `--option VALUE`. NULL: none. */
    const char *option;      /* "mode" */
    const char *option_help; /* one line for --help */
    int (*set_option) (void *self, const char *value, struct err *err);

    /* May it run without GRID, CA, CRL, CERT, KEY and LISTEN, for its own machine by SOCKET alone? As whom is in *out,
     * whose grid is GRID's where the file has one; an error: not with these settings. NULL: never. */
    int (*alone) (void *self, const void *settings, struct principal *out, struct err *err);

    /* Reads the program's own keys (conf_table_read) into a new settings object. Called at start,
     * for --check and for every reload; no effects other than the object. The conf lives until
     * settings_free of these settings has returned. */
    int (*configure) (void *self, struct conf *conf, void **settings_out, struct err *err);
    void (*settings_free) (void *self, void *settings);

    /* Everything is there but nobody is served yet: open the state, add services, start links.
     * settings stay valid until reload has been called with others, or stop has returned. */
    int (*start) (void *self, struct daemon *daemon, void *settings, struct err *err);
    /* New settings; on failure the old ones stay and the new ones are freed. NULL: the program
     * cannot reload (its keys may then not change). */
    int (*reload) (void *self, void *settings, struct err *err);
    /* Writes what the program has to tell of itself: metrics.h. From memory, in little time; at most once a second.
     * NULL: what all daemons tell is all. */
    void (*metrics) (void *self, struct metrics_page *page);
    /* The drain has begun: end streams that would not end by themselves. NULL: nothing to do. */
    void (*draining) (void *self);
    /* The last thing: the RPC server still exists but serves nobody. Also called when start
     * succeeded but something after it failed. */
    void (*stop) (void *self);
};

/* Returns the exit code: 0, 1 failed, 2 wrong usage. */
int daemon_main (const struct daemon_ops *ops, void *self, int argc, char **argv);
/* As many open files as the system allows this process, for one with a connection to each of a thousand
 * sites. Not where jobs are its children: they would inherit it. */
void daemon_files_raise (void);

/* For start and later. */
struct event_base *daemon_base (struct daemon *daemon);
struct log *daemon_log (struct daemon *daemon);
struct tlsid *daemon_tlsid (struct daemon *daemon);
struct rpcserver *daemon_server (struct daemon *daemon);
const char *daemon_grid (const struct daemon *daemon);
const char *daemon_name (const struct daemon *daemon);      /* the name in our certificate */
const char *daemon_state_dir (const struct daemon *daemon); /* exists, mode 0700 when we made it */
/* Before new work is taken: ERR_UNAVAILABLE with the sentence while the file system of STATEDIR is full. */
int daemon_takes_work (struct daemon *daemon, struct err *err);
/* The configuration in force, until the next reload: conf_show prints it. */
const struct conf *daemon_conf (const struct daemon *daemon);
/* Takes over the configuration with these lines at its end, whole or not at all, as a reload would.
 * They hold until the file is read again (a change of it, SIGHUP, a restart). */
int daemon_change (struct daemon *daemon, const char *lines, struct err *err);
/* Ends the program as SIGTERM does; with an err the exit code is 1 and the sentence is logged. */
void daemon_stop (struct daemon *daemon, const struct err *why);
/* The same, and then the program begins again, as it was called, in the same process. */
void daemon_recycle (struct daemon *daemon);

#endif
