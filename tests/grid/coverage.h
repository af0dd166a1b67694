/* coverage: how often worlds have come to what: each fault, death, lost message, transition of the
 * coordinator and event of a daemon's log, by a name that says it. Counts of several processes are one
 * table in memory that they share. */
#ifndef NUI_TESTS_GRID_COVERAGE_H
#define NUI_TESTS_GRID_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

/* A table for so many processes, before they are made. Without it nothing is counted. */
void coverage_open (uint32_t processes);
void coverage_process (uint32_t process); /* who counts from now on; 0 unless said */
void coverage_close (void);

void coverage_add (const char *name, uint64_t times);
uint64_t coverage_of (const char *name);
void coverage_count (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
/* A line of a daemon's log; text NULL: nothing more is known of it. */
void coverage_log (const char *area, const char *event, const char *text);
bool coverage_wants_text (const char *area, const char *event);

/* All counts, by name. */
void coverage_print (uint64_t worlds);
/* Of the names in that file, one a line, all have to have been counted: says which were not. */
bool coverage_reaches (const char *path);

#endif
