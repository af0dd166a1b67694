/* slurm_record: one end of a job, as Slurm's completion file (JobCompType=jobcomp/filetxt) and
 * sacct say it.
 *
 * Pure. A job's name and directory stand in a line as their user wrote them: nothing that a line
 * says twice is believed. */
#ifndef NUI_LOCAL_RM_SLURM_RECORD_H
#define NUI_LOCAL_RM_SLURM_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/quantity.h"

enum { SLURM_RECORD_NODES_MAX = 64 << 10, SLURM_RECORD_WORD_MAX = 128 };

struct slurm_record {
    char id[SLURM_RECORD_WORD_MAX]; /* "12", of an array "12_3" */
    int64_t number;                 /* Slurm's own of this job or task */
    char state[32];                 /* COMPLETED, TIMEOUT … */
    time_us submit, start, end;     /* 0: not said */
    int exit_code, signo;
    bool ran; /* it had nodes */
    char name[SLURM_RECORD_WORD_MAX], user[SLURM_RECORD_WORD_MAX], group[SLURM_RECORD_WORD_MAX];
    char account[SLURM_RECORD_WORD_MAX], qos[SLURM_RECORD_WORD_MAX],
        partition[SLURM_RECORD_WORD_MAX];
    uint32_t procs;
    duration_us walltime; /* 0: no limit */
    duration_us cpu_time; /* of all its processes; -1: not said */
    char nodes[SLURM_RECORD_NODES_MAX];
};

enum slurm_record_is { RECORD_NONE, RECORD_END, RECORD_DOUBTFUL };

/* NONE: no end of a job (a requeue, a line cut short). DOUBTFUL: *field_out, which is static, is
 * there twice; of the record only id and number are filled. */
enum slurm_record_is slurm_record_completion (const char *line, struct slurm_record *out,
                                              const char **field_out);

/* A line of `sacct --parsable2 --format=` slurm_record_sacct_fields, with times in epoch seconds;
 * it is cut up. NONE also for a step of a job. */
extern const char slurm_record_sacct_fields[];
enum slurm_record_is slurm_record_sacct (char *line, struct slurm_record *out);

#endif
