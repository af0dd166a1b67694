/* transfers: lays out the state of a job's files for status of the grid and checkjob of a site,
 * so that both show the same columns. It only shows what the message says. */
#include "proto/cli/transfers.h"

static const struct table_column columns[] = {
    {"component", "COMPONENT", TABLE_TEXT, 0},
    {"direction", "STAGE", TABLE_TEXT, 0},
    {"path", "FILE", TABLE_TEXT, 0},
    {"state", "STATE", TABLE_TEXT, 0},
    {"bytes_done", "BYTES", TABLE_INT, 0},
    {"bytes", "OF", TABLE_INT, 0},
    {"rate", "PERSECOND", TABLE_INT, 0},
    {"end_time", "EXPECTED", TABLE_TIME, 0},
    {"url", "URL", TABLE_TEXT, 0},
    {"kept_time", "KEPTUNTIL", TABLE_TIME, 0},
    {"reason", "REASON", TABLE_TEXT, 0},
};

struct table *transfers_table (void)
{
    return table_create (columns, sizeof columns / sizeof *columns);
}

void transfers_rows (struct table *t, const char *component,
                     Nui__Common__V1__TransferInfo *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        table_text (t, component);
        table_text (t, list[i]->out ? "Out" : "In");
        table_text (t, list[i]->path);
        table_text (t, list[i]->state);
        table_int (t, list[i]->bytes_done);
        if (list[i]->bytes)
            table_int (t, list[i]->bytes);
        else
            table_null (t);
        table_int (t, list[i]->rate);
        table_time (t, list[i]->end_us ? list[i]->end_us : TIME_US_NONE);
        table_text (t, list[i]->url);
        table_time (t, list[i]->kept_us ? list[i]->kept_us : TIME_US_NONE);
        table_text (t, *list[i]->text ? list[i]->text : NULL);
        table_end_row (t);
    }
}
