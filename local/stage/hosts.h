/* hosts: with whom files are exchanged (STAGEHOSTS). Pure but for inet_pton.
 *
 * The daemon fetches what users name, so it must not become their way into the site's own network.
 * Entries in order, the first that fits decides:
 *     *.example.org   a host by name (shell pattern)      !bad.example.org   not this one
 *     192.0.2.0/24    hosts by address (IPv4, IPv6)       !2001:db8::/32     none of these
 * Where there are entries, what none fits is refused. Addresses of loopback, link-local, private,
 * shared, multicast and unspecified networks need an entry that names the host (more than "*") or
 * holds the address. An address counts as it is when the connection is made: after every look-up of
 * the name, and after redirects. */
#ifndef NUI_LOCAL_STAGE_HOSTS_H
#define NUI_LOCAL_STAGE_HOSTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "proto/base/err.h"

enum { HOSTS_MAX = 1000 };

struct hosts;

/* ERR_INVALID naming the entry, ERR_LIMIT. */
int hosts_parse (const char *const *entry, uint32_t count, struct hosts **out, struct err *err);
void hosts_free (struct hosts *hosts); /* NULL is a no-op */
/* address NULL: it is not known yet, and what depends on it is let pass. ERR_DENIED with a
 * sentence. */
int hosts_check (const struct hosts *hosts, const char *name, const struct sockaddr *address,
                 struct err *err);

#endif
