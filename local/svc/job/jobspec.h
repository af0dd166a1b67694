/* jobspec: a signed job as this site sees it: who, which component, what it needs in the core's terms. */
#ifndef NUI_LOCAL_SVC_JOB_JOBSPEC_H
#define NUI_LOCAL_SVC_JOB_JOBSPEC_H

#include "local/svc/svc_i.h"
#include "proto/job/delegation.h"

/* A signed job seen by this site. Everything is owned; see jobspec_free. */
struct jobspec {
    Nui__Common__V1__Job *job;
    const Nui__Common__V1__Component *component;
    const char *meta; /* the metascheduler whose job it is; "": none */
    uint32_t component_index;
    uint32_t shape;
    bool depends_met; /* the metascheduler says so of jobs of the grid */
    char submitter[PRINCIPAL_URI_MAX];
    uint8_t hash[STORE_HASH_LEN]; /* of the signed bytes */
    struct delegation delegation;
    char local_account[STORE_NAME_MAX];
    uint32_t cred[CRED_KINDS];
    struct req reqs[REQS_MAX];
    uint32_t req_count;
    struct licence licence[LICENCES_MAX];
    uint32_t licence_count;
    uint32_t procs;
    int64_t memory_mb;
    duration_us walltime;
    uint32_t core_flags; /* enum job_flag */
    bool taken;          /* by this site, before */
    bool native;         /* the resource manager took it: its names are not ours to judge */
    char **grid_licence; /* names that the metascheduler counts; the request's */
    size_t grid_licence_count;
    uint64_t
        instead; /* site_part.whose of the co-allocation that it is to come instead of; 0: none */
    bool never_fits; /* a feature or resource that no node has */
    char never_text[200];
};

/* Checks signature, chain, grid, submitter and expiry; finds the component. ERR_UNAUTHENTIC, ERR_INVALID,
 * ERR_NOT_FOUND. *out is valid when 0 is returned; meta ("": there is none) must outlive it. */
int jobspec_trust (struct svc *svc, const Nui__Common__V1__Envelope *envelope, const char *meta,
                   const char *component, uint32_t shape, bool first_time, struct jobspec *out,
                   struct err *err);
/* Of one that is trusted: maps its user, converts the component, and asks whether the metascheduler may have it.
 * ERR_INVALID, ERR_DENIED (not mapped, against the site's policy); freed unless 0 is returned. */
int jobspec_admit (struct svc *svc, bool first_time, struct jobspec *spec, struct err *err);
/* What the grid also asks of a job when it comes first: its name, its moments, its sizes (proto/job/jobcheck.h). */
int jobspec_fresh (const struct jobspec *spec, struct err *err);
/* Both. component NULL: the only one of a job for this cluster alone. */
int jobspec_verify (struct svc *svc, const Nui__Common__V1__Envelope *envelope, const char *meta,
                    const char *component, uint32_t shape, bool first_time, struct jobspec *out,
                    struct err *err);
/* The same for the first time, of a job for which the metascheduler counts the licences of these names. */
int jobspec_verify_counted (struct svc *svc, const Nui__Common__V1__Envelope *envelope,
                            const char *meta, const char *component, uint32_t shape, char **licence,
                            size_t licence_count, struct jobspec *out, struct err *err);
/* Another component of the same job, of whom is known what `of` knows; what it points to is of's: not to be
 * freed, and no component twice. ERR_INVALID, ERR_NOT_FOUND, ERR_DENIED. */
int jobspec_sibling (struct svc *svc, const struct jobspec *of, const char *component,
                     uint32_t shape, struct jobspec *out, struct err *err);
/* Has the configuration, the resource manager or anything else here ever named this class? A site that names none knows
 * any. */
bool jobspec_class_known (const struct svc *svc, const char *class);
/* " (it has batch, short)": the classes or QoS there are, as far as they go into out; "" for none. */
void jobspec_names_there (const struct svc *svc, enum cred_kind kind, char *out, size_t cap);
/* It starts when its metascheduler says so, not when it has come to the front of the queue. */
bool jobspec_is_reserved (const struct jobspec *spec);
/* Without a signature, as an account of this machine: checked but for who asks. ERR_INVALID. */
int jobspec_local (struct svc *svc, const Nui__Common__V1__Envelope *envelope, const char *account,
                   struct jobspec *out, struct err *err);
/* What a job needs beyond what a question needs: a script. */
int jobspec_runnable (const struct jobspec *spec, struct err *err);
/* From the store: checked when it came in. The account stays the one it got then. */
int jobspec_load (struct svc *svc, const struct store_job *rec, struct jobspec *out,
                  struct err *err);
/* A job that nobody signed, of an account of this cluster. Takes job over, also on failure. */
int jobspec_unsigned (struct svc *svc, Nui__Common__V1__Job *job, const char *local_account,
                      struct jobspec *out, struct err *err);
void jobspec_free (struct jobspec *spec);
/* The number of its array here; 0: none. */
uint64_t jobspec_array (const struct jobspec *spec);
struct who jobspec_who (struct svc *svc, const struct jobspec *spec, bool coallocated);

#endif
