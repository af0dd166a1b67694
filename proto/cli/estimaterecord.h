/* estimaterecord: how a site's estimates held, as cells of a row: class, answers, how many were
 * scored and how many of them were not certain, and of those coverage of the 50 % and 95 %
 * intervals, median error, bias in seconds (nulls where there are none), and whether the record has
 * earned trust. For diagnose -e and sites -e. */
#ifndef NUI_PROTO_CLI_ESTIMATERECORD_H
#define NUI_PROTO_CLI_ESTIMATERECORD_H

#include "proto/cli/table.h"
#include "proto/nui/v1/common.pb-c.h"

void estimate_record_cells (struct table *table, const Nui__Common__V1__EstimateRecord *record);

#endif
