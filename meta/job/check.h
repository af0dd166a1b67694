/* check: is a job sane, and could a site ever run a part of it? Pure, over protobuf messages. */
#ifndef NUI_META_JOB_CHECK_H
#define NUI_META_JOB_CHECK_H

#include "meta/job/hub.h"
#include "proto/job/jobcheck.h"

/* Shape, limits, names; the sentence names the component and the bound. */
int job_check (const JobMessage *job, const char *grid, struct err *err);
/* What a job that is to run needs besides: an estimate can do without. */
int job_check_runnable (const JobMessage *job, struct err *err);
/* Whether the site, by its report, could ever run it in the size of so many processors; ERR_LIMIT says why not.
 * One that has not reported might. */
int component_fits (const ComponentMessage *component, uint64_t procs, const struct site *site,
                    struct err *err);
/* In any of its sizes; else what forbids the first. */
int component_fits_some (const ComponentMessage *component, const struct site *site,
                         struct err *err);
/* When a component fails the others run on. */
bool job_goes_on (const JobMessage *job);
/* What comes first for its owner. */
enum choose_prefer job_prefer (const JobMessage *job);
/* Whether the component may run on the site (its list is empty or names it). */
bool component_allows (const ComponentMessage *component, const char *site);

#endif
