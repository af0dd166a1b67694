/* copy: a second cluster like a first, for whoever wants to see what would become of it. Pure. */
#ifndef NUI_LOCAL_CORE_COPY_H
#define NUI_LOCAL_CORE_COPY_H

#include "local/core/cluster.h"

/* Nodes with their states, at most `most` more than `to` has already: for whoever copies a large site
 * in pieces, before cluster_copy_site. The order is theirs. */
int cluster_copy_nodes (const struct cluster *from, struct cluster *to, uint32_t most, time_us now,
                        struct err *err);

/* What the site is made of: nodes with their states, generic resources, licences, lists of hosts, node
 * sets, switches, classes. No jobs, no reservations, no usage. `to` is new (but for
 * nodes already copied), with the same policy. */
int cluster_copy_site (const struct cluster *from, struct cluster *to, time_us now,
                       struct err *err);

/* Whether processors are all there is to count for every job that is there now: no limits, classes
 * with needs, reservations, sharing rules, deadlines, suspended jobs, nodes that go down. */
bool cluster_counts_processors (const struct cluster *cluster);

#endif
