/* joboptions: the options by which people describe a job, and the signed job they make.
 *
 * For nui submit, estimate and msub: command line, then --file, then the script's directives, then
 * defaults. */
#ifndef NUI_CLI_JOBOPTIONS_H
#define NUI_CLI_JOBOPTIONS_H

#include "proto/cli/client.h"
#include "proto/cli/jobarray.h"
#include "proto/cli/jobspec.h"
#include "proto/cli/options.h"

/* Places in job_options.text; the keys are jobspec_set's. */
enum job_text {
    JOB_ACCOUNT,
    JOB_QOS,
    JOB_CLASS,
    JOB_TASKS,
    JOB_NODES,
    JOB_TPN,
    JOB_PROCS_PER_TASK,
    JOB_MEM,
    JOB_SWAP,
    JOB_DISK,
    JOB_LIKE,
    JOB_TIME,
    JOB_FEATURES,
    JOB_SITE,
    JOB_AFTER,
    JOB_DEADLINE,
    JOB_NAME,
    JOB_OUTPUT,
    JOB_ERROR,
    JOB_MAX_COST,
    JOB_QUOTE,
    JOB_DEPEND,
    JOB_FLAGS,
    JOB_START_BY,
    JOB_VALID,
    JOB_PREFER,
    JOB_TRL,
    JOB_GRES,
    JOB_LICENCE,
    JOB_PARTITION,
    JOB_NODESET,
    JOB_HOSTS,
    JOB_EXCLUDE,
    JOB_NODE_ACCESS,
    JOB_PROCS_MAX,
    JOB_RESERVATION,
    JOB_RETRIES,
    JOB_RETRY_ON,
    JOB_RETRY_DELAY,
    JOB_ON_SITE_LOSS,
    JOB_ON_FAILURE,
    JOB_NOTIFY,
    JOB_CHDIR,
    JOB_MAIL,
    JOB_MAIL_TO,
    JOB_ARRAY,
    JOB_GPUS,
    JOB_MEM_PER_NODE,
    JOB_SIGNAL,
    JOB_TEXTS
};

struct job_options {
    const char *text[JOB_TEXTS];
    struct cli_list components;
    struct cli_list env;
    struct cli_list reqs;
    struct cli_list stage_in, stage_out, inputs;
    struct inputs
        *travel; /* what travels with the job, of inputs_create; NULL: it is only asked about */
    const char *file;       /* --file JOB.json */
    const char *wrap;       /* --wrap COMMAND */
    const char *resources;  /* msub -l */
    bool wait;              /* submit only */
    const char *save;       /* submit only: --save DIR */
    const char *output_dir; /* submit only: --output-dir DIR */
    const char *key;        /* submit only: --key KEY */
    bool hold, env_all, no_fallback;
    const char *site;   /* msub only: --site */
    time_us now;        /* times count from here; 0: the wall clock */
    bool site_walltime; /* a job that says no limit gets the site's */
};

#define JOB_TEXT(name, letter, place, value, help)                                                 \
    {                                                                                              \
        name, letter, CLI_OPT_STRING, value, help, offsetof (struct job_options, text[place])      \
    }

/* The job, in the arena, with grid, uuid and times; submitter "". array: which jobs it stands for; NULL: it is only asked
 * about, and one stands for all. Returns CLI_OK, or what the command returns, having told why. */
int job_options_build (struct cli_context *ctx, const char *command,
                       const struct job_options *options, const struct cli_operands *operands,
                       struct arena *arena, struct jobarray *array, Nui__Common__V1__Job **out);
/* Signs it with my key, as mine. The envelope is to be freed with envelope_free. */
int job_sign (struct cli_context *ctx, const char *command, Nui__Common__V1__Job *job,
              struct arena *arena, Nui__Common__V1__Envelope **out);
/* The same without a signature, for the cluster's own socket; lives in the arena. */
int job_unsigned (const char *command, const Nui__Common__V1__Job *job, struct arena *arena,
                  Nui__Common__V1__Envelope **out);

#endif
