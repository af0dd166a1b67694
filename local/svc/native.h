/* native: what native.c and native_needs.c share. */
#ifndef NUI_LOCAL_SVC_NATIVE_H
#define NUI_LOCAL_SVC_NATIVE_H

#include "local/svc/svc_i.h"

extern const char native_component[]; /* the name of the only component of such a job */

/* What cannot be said in our terms: the job waits, and says why. "" when all is well. */
struct native_misfit {
    char text[300];
};

/* The job as a jobspec, and as the envelope without signature that is stored. A job that cannot be
 * converted is one of a single processor, with misfit filled. Which nodes it may have (-w, -x) is in the
 * spec only: the resource manager says it again after a restart. */
int native_spec (struct svc *svc, const struct rm_native *n, struct arena *arena,
                 struct jobspec *spec, uint8_t **envelope_out, size_t *len_out,
                 struct native_misfit *misfit, struct err *err);

#endif
