/* estimaterecord: the one place that lays out a site's record of estimates, for diagnose -e and
 * sites -e alike. A share or an error is null, never 0, where nothing was scored. */
#include "proto/cli/estimaterecord.h"

void estimate_record_cells (struct table *table, const Nui__Common__V1__EstimateRecord *record)
{
    table_text (table, *record->class_ ? record->class_ : "[ALL]");
    table_text (table, record->answers);
    table_int (table, record->count);
    table_int (table, record->uncertain);
    if (record->uncertain) {
        table_ppm (table, record->coverage50_ppm);
        table_ppm (table, record->coverage95_ppm);
        table_duration (table, record->median_error_us);
        table_ppm (table, record->bias_us);
    } else
        for (int i = 0; i < 4; i++)
            table_null (table);
    table_bool (table, record->earned);
}
