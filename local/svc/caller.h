/* caller: who asks, what he may, the audit log; and what administrators have changed of jobs, taken up again. */
#ifndef NUI_LOCAL_SVC_CALLER_H
#define NUI_LOCAL_SVC_CALLER_H

#include "local/svc/svc_i.h"

/* Maui's levels: each includes those after it. */
enum admin_level {
    ADMIN_FULL = 1, /* ADMIN1, and root on the cluster's own socket */
    ADMIN_JOBS = 2, /* ADMIN2: everybody's jobs */
    ADMIN_INFO = 3, /* ADMIN3, and the grid's operators: sees everything */
    ADMIN_NONE = 4, /* sees and changes its own */
};

struct admin_caller {
    enum admin_level level;
    bool local;                   /* on the Unix socket */
    char name[PRINCIPAL_URI_MAX]; /* login name, or identity: for the audit log */
    char login[STORE_NAME_MAX];   /* its account here; "" none */
};

void admin_who (struct svc *svc, struct rpccall *call, struct admin_caller *out);
bool admin_owns (const struct admin_caller *caller, const struct store_job *rec);
/* 0, or ERR_DENIED with a sentence: "what needs ADMIN2, you (alice) are a plain user". */
int admin_require (const struct admin_caller *caller, enum admin_level level, const char *what,
                   struct err *err);
/* Writes down what the caller is about to do; durable when 0 is returned. Not within a
 * transaction. */
int admin_audit (struct svc *svc, const struct admin_caller *caller, struct err *err,
                 const char *fmt, ...) __attribute__ ((format (printf, 4, 5)));
/* The same within the caller's transaction. */
int admin_audit_in (struct svc *svc, const struct admin_caller *caller, struct err *err,
                    const char *fmt, ...) __attribute__ ((format (printf, 4, 5)));

/* --- changes.c ---------------------------------------------------------------------------- */

enum change_attr {
    ATTR_QOS,
    ATTR_CLASS,
    ATTR_ACCOUNT,
    ATTR_WCLIMIT,
    ATTR_STARTTIME,
    ATTR_DEADLINE,
    ATTRS
};
extern const char *const change_attr_names[]; /* as they are kept; NULL after the last */

/* Into the core: these holds beside the others, and the priority. */
int changes_apply (struct svc *svc, const struct site_job *job, uint32_t other_holds,
                   const struct store_job_admin *set, struct err *err);
/* Holds and priority that are kept of a job that waits. */
int changes_restore (struct svc *svc, struct site_job *job, struct err *err);
/* What else was changed of a job, before it is in the core. */
int changes_sets_restore (struct svc *svc, struct site_job *job, struct err *err);
/* A suspended job stays so until it is resumed. */
int changes_suspended_restore (struct svc *svc, struct site_job *job, struct err *err);

#endif
