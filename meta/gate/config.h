/* config: the keys of nui-gate.cfg. */
#ifndef NUI_META_GATE_CONFIG_H
#define NUI_META_GATE_CONFIG_H

#include "meta/gate/gate.h"
#include "proto/conf/conf.h"

struct gate_config *gate_config_read (struct conf *conf, struct err *err);
void gate_config_destroy (struct gate_config *config);

#endif
