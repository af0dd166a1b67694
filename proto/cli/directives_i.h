/* directives_i: what the readers of directives share: one table of options for each dialect. */
#ifndef NUI_CLI_DIRECTIVES_I_H
#define NUI_CLI_DIRECTIVES_I_H

#include "proto/cli/jobspec_i.h"

/* The directives of one script, while they are read. */
struct directives {
    struct jobspec *spec;
    const char *mark; /* "#SBATCH" */
    FILE *note;       /* NULL: silently */
    const char *memory,
        *gres;       /* the option that asked for some: each may be asked for in one way */
    bool error_told; /* a name for standard error is given */
    /* of PBS: -l select and -l place, which mean something together */
    char *select;
    const char *place, *join; /* -j: "oe", "eo" */
};

enum directive_takes { A_VALUE, NO_VALUE, PERHAPS_A_VALUE };

/* An option of a dialect. With a key it means what that key of jobspec_set means; fn does what is more than that;
 * refused and noted say why it cannot be had: refused where the job would compute something else, or elsewhere,
 * than its script says, noted where only its comfort suffers. None of them: it is so here anyway. */
struct directive {
    char letter;
    const char *name;
    enum directive_takes takes;
    const char *key;
    int (*fn) (struct directives *d, const char *name, char *value, struct err *err);
    const char *refused, *noted;
};

/* They end with an entry without letter and name. */
extern const struct directive directives_slurm[], directives_pbs[];

int directives_slurm_finish (struct directives *d, struct err *err);
int directives_pbs_finish (struct directives *d, struct err *err);
/* "nodes=2:ppn=4,walltime=1:00:00": -l of qsub and msub. */
int directives_pbs_resources (struct directives *d, const char *name, char *value, struct err *err);

/* Memory by jobspec's key ("mem-per-node"), generic resources likewise. ERR_INVALID: asked for in another way before. */
int directives_memory (struct directives *d, const char *name, const char *key, const char *value,
                       struct err *err);
int directives_gres (struct directives *d, const char *name, const char *key, const char *value,
                     struct err *err);
/* "afterok:alpha.3:alpha.4,afterany:alpha.5". ERR_INVALID: a kind that is not known here. */
int directives_depend (struct directives *d, const char *name, char *value, struct err *err);
/* The job's own directory is what it starts in: "." is the same; a path at the site is --chdir's. */
int directives_directory (struct directives *d, const char *name, char *value, struct err *err);
/* Events of --mail, or an address: the command line's come first; said by a directive alone, they refuse no job. */
int directives_mail (struct directives *d, const char *key, const char *value, struct err *err);
void directives_note (const struct directives *d, const char *name, const char *text);

#endif
