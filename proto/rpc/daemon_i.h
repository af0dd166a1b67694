/* daemon_i: the small pieces under daemon.c that touch the system. Not for others. */
#ifndef NUI_RPC_DAEMON_I_H
#define NUI_RPC_DAEMON_I_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/rpc/daemon.h"

/* What the skeleton itself reads from the configuration, by daemon_params. */
struct daemon_keys {
    const char *grid, *state_dir, *listen, *socket, *port_file, *pid_file, *log_file, *log_level;
    const char *metrics;
    const char *ca, *crl, *cert, *key;
    int64_t connections, per_principal, per_address, handshakes, call_rate;
};

struct daemon_args {
    const char *config_file;
    const char *option; /* ops->option's value; NULL: not given */
    bool check;
};

/* False: the program ends with *exit_code (help, version, or wrong usage, already told). */
bool daemon_parse_args (const struct daemon_ops *ops, int argc, char **argv,
                        struct daemon_args *args, int *exit_code);

/* daemon_room.c */
struct daemon_room {
    char *dir;    /* STATEDIR; its own copy: configurations come and go */
    bool tight;   /* little is left */
    bool ballast; /* the file is there */
};
void daemon_room_open (struct daemon_room *room,
                       const char *dir);          /* before anything is written there */
bool daemon_room_look (struct daemon_room *room); /* true: tight has changed */
void daemon_room_close (struct daemon_room *room);
int daemon_room_check (struct daemon_room *room,
                       struct err *err); /* ERR_UNAVAILABLE while it is tight */

/* daemon_metrics.c: the daemon's page, at LISTEN's port for the grid's daemons and operators and, where METRICS says so,
 * for programs of this machine. */
struct daemon_metrics;
struct daemon_metrics_config {
    struct event_base *base;
    struct log *log;
    struct rpcserver *server;
    struct tlsid *id;
    const struct daemon_ops *ops;
    void *self;
    const struct daemon_room *room;
    const char *listen; /* METRICS; NULL: only at LISTEN */
};
struct daemon_metrics *daemon_metrics_open (const struct daemon_metrics_config *config,
                                            struct err *err);
void daemon_metrics_close (struct daemon_metrics *metrics); /* before the server goes */

/* What a file was like when it was last looked at. */
struct daemon_stamp {
    int64_t mtime_ns;
    int64_t size;
    uint64_t inode;
};

/* True when the file is there and differs from the stamp, which is then brought up to date. A file
 * that is missing (being replaced) counts as unchanged. */
bool daemon_stamp_changed (const char *path, struct daemon_stamp *stamp);

/* Takes the lock that one instance holds, and writes our pid into the file. The lock belongs to
 * this process only: children never inherit it. ERR_EXISTS names who has it. */
int daemon_pid_lock (const char *path, const char *program, int *fd_out, struct err *err);
void daemon_pid_unlock (int fd); /* -1 is a no-op */

/* Writes "N\n" under another name, then renames. */
int daemon_write_number (const char *path, unsigned number, struct err *err);

/* sd_notify(3) without libsystemd: a datagram to $NOTIFY_SOCKET, if there is one. */
void daemon_notify (const char *state);

#endif
