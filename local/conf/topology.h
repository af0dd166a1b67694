/* topology: the interconnect as a text file, as Slurm's topology.conf has it:
 *
 *     SwitchName=s1 Nodes=node[01-16]
 *     SwitchName=s2 Nodes=node[17-32]
 *     SwitchName=top Switches=s[1-2]
 *
 * A switch has nodes or other switches that stand above it in no order; '#' begins a comment. */
#ifndef NUI_LOCAL_CONF_TOPOLOGY_H
#define NUI_LOCAL_CONF_TOPOLOGY_H

#include "local/conf/place.h"

enum { TOPOLOGY_SWITCHES_MAX = 4096 };

/* Gives the switches to the cluster and their names to place->sw; NULL: there are none any more.
 * ERR_INVALID names the line; ERR_NOT_FOUND a node or switch that does not exist. */
int topology_apply (struct place *place, const char *text, time_us now, struct err *err);

#endif
