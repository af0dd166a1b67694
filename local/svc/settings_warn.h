/* settings_warn: what a configuration that is taken is likely not to mean. */
#ifndef NUI_LOCAL_SVC_SETTINGS_WARN_H
#define NUI_LOCAL_SVC_SETTINGS_WARN_H

#include "local/svc/settings.h"

/* Notes of the conf, with file and line: names that nothing defines (QoS, accounts, classes, nodes),
 * values that stand against each other or have no effect beside others. For --check, start and
 * reload alike. */
void settings_warn (struct conf *conf, const struct settings *settings);

#endif
