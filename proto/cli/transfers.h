/* transfers: files on their way to or from a job's directory, as a table: for status and checkjob.
 */
#ifndef NUI_PROTO_CLI_TRANSFERS_H
#define NUI_PROTO_CLI_TRANSFERS_H

#include "proto/cli/table.h"
#include "proto/nui/v1/common.pb-c.h"

struct table *transfers_table (void);
/* A row for each. */
void transfers_rows (struct table *table, const char *component,
                     Nui__Common__V1__TransferInfo *const *list, size_t count);

#endif
