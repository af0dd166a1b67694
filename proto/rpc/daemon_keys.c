/* The parameters that every daemon's configuration has; GRID, CA, CRL, CERT and KEY only where it is not alone (daemon.c). daemon.c reads them; who reads a daemon's file for another purpose
 * knows them by this table. */
#include <stddef.h>

#include "proto/rpc/daemon_i.h"

#define KEY(n, f, t, fl, what)                                                                     \
    {                                                                                              \
        .name = n, .type = t, .offset = offsetof (struct daemon_keys, f),                          \
        .flags = CONF_F_PLACE | fl, .help = what                                                   \
    }
#define BOUND(n, f, least, usual, what)                                                            \
    {                                                                                              \
        .name = n, .type = CONF_INT, .offset = offsetof (struct daemon_keys, f), .min = least,     \
        .max = 1 << 20, .initial = usual, .help = what                                             \
    }
const struct conf_param daemon_params[] = {
    KEY ("GRID", grid, CONF_STRING, 0, "the name of the grid"),
    KEY ("STATEDIR", state_dir, CONF_PATH, CONF_F_REQUIRED, "what the daemon keeps"),
    KEY ("LISTEN", listen, CONF_STRING, 0, "where it serves"),
    KEY ("SOCKET", socket, CONF_PATH, 0, "where it serves the machine itself"),
    KEY ("PORTFILE", port_file, CONF_PATH, 0, "where its port is written"),
    KEY ("PIDFILE", pid_file, CONF_PATH, 0, "where its pid is written"),
    KEY ("LOGFILE", log_file, CONF_PATH, 0, "its log; none: standard error"),
    KEY ("LOGLEVEL", log_level, CONF_STRING, 0, "how much it says"),
    KEY ("METRICS", metrics, CONF_STRING, 0, "where programs of this machine read its metrics"),
    KEY ("CA", ca, CONF_PATH, 0, "the grid's authority"),
    KEY ("CRL", crl, CONF_PATH, 0, "its revocation list"),
    KEY ("CERT", cert, CONF_PATH, 0, "the daemon's certificate"),
    KEY ("KEY", key, CONF_PATH, 0, "its key"),
    BOUND ("CONNECTIONS", connections, 16, "1024", "how many there may be"),
    BOUND ("CONNECTIONSPERUSER", per_principal, 1, "64", "of one principal or local account"),
    BOUND ("CONNECTIONSPERADDRESS", per_address, 1, "512", "from one address"),
    BOUND ("HANDSHAKES", handshakes, 8, "128",
           "connections that are not through their TLS handshake"),
    BOUND ("CALLRATE", call_rate, 0, "2000",
           "calls a second of one principal or local account; 0: any"),
    {0}};
