/* workload_i: what the readers of the two formats share. Private to local/trace. */
#ifndef NUI_LOCAL_TRACE_WORKLOAD_I_H
#define NUI_LOCAL_TRACE_WORKLOAD_I_H

#include "local/trace/linereader.h"
#include "local/trace/workload.h"

enum { SWF_FIELDS = 18 };

struct workload_reader {
    struct linereader *lines;
    struct workload *workload;
    struct workload_range range;
    uint64_t place; /* of the last job seen in the file */
    uint64_t cap;   /* of workload->job while it grows (malloc) */
};

/* Called for each line that is neither empty nor a comment. */
int swf_line (struct workload_reader *r, char *line, struct err *err);
void swf_header (struct workload_reader *r, const char *line); /* "; MaxProcs: 100" */
int mauitrace_line (struct workload_reader *r, char *line, struct err *err);

/* Next place; false where it is outside the range. */
bool workload_place (struct workload_reader *r);
void workload_add (struct workload_reader *r, const struct workload_job *job);
/* So many processors in use on the average; no more than the job has. */
void workload_used (struct workload_job *job, double procs);
void workload_skip (struct workload_reader *r, enum workload_skip reason);
/* The number of a constraint by its text; ERR_LIMIT past FEATURES_MAX. */
int workload_constraint (struct workload *w, const char *text, uint32_t *number_out,
                         struct err *err);

/* Splits at blanks, in place. At most max fields are stored; returns how many there are. */
uint32_t fields_split (char *line, char **field, uint32_t max);
/* "599850", "12.5", "-1" as microseconds; false when it is no such number. */
bool seconds_parse (const char *text, int64_t *us_out);

/* ERR_INVALID "FILE line N: …" */
int line_error (const struct workload_reader *r, struct err *err, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

#endif
