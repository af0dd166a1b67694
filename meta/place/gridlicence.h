/* gridlicence: the grid's floating licences (GRIDLICENSE), reserved through time as nodes are at a site.
 *
 * A job that asks for one is reserved at its site, also where it has one component only: it is chosen,
 * prepared, committed and started as a co-allocated job is (group.h), so that it begins at a moment that
 * this metascheduler has chosen and not before it says START. Which licences a job holds, and when, is read
 * from the durable records of the live jobs (core/licence.h): there is no other table that could differ from
 * them, or that a crash could lose. At CHOOSE each offer is cut down to the moments at which the licences are
 * free throughout; from PREPARE until all is ended or given back the job has its interval; and START leaves
 * only while those that may be running leave enough.
 *
 * In a group of metaschedulers each gives out its share of the count, and nobody another's. */
#ifndef NUI_META_PLACE_GRIDLICENCE_H
#define NUI_META_PLACE_GRIDLICENCE_H

#include "meta/core/licence.h"
#include "meta/job/job.h"
#include "meta/place/survey.h"

/* Whether a component of it names a licence of the grid. */
bool gridlicence_asked (const struct metad *metad, const JobMessage *job);
/* What no moment could satisfy; ERR_LIMIT, ERR_INVALID. */
int gridlicence_check (const struct metad *metad, const JobMessage *job, struct err *err);
/* The names that the component asks for and the grid has, for the sites; in the arena. */
char **gridlicence_named (const struct metad *metad, const ComponentMessage *component,
                          struct arena *arena, size_t *count_out);

/* What of them is reserved, to be asked about a survey's offers; NULL where its job needs none. In the arena. */
struct gridlicence_view;
struct gridlicence_view *gridlicence_view (const struct survey *survey, struct arena *arena);
/* The moments of the offer's at which the licences are there, too; the offer's own where view is NULL.
 * Those in the arena. */
const struct choose_interval *gridlicence_starts (struct gridlicence_view *view,
                                                  const struct survey_offer *offer,
                                                  uint32_t *count_out);
/* When the offer could start at the earliest, not before that moment; 0: never in the site's horizon. The
 * reason is filled where the site alone could sooner: which licence it waits for, and until when. */
time_us gridlicence_start (struct gridlicence_view *view, const struct survey_offer *offer,
                           time_us not_before, struct coalloc_reason *reason);

/* Whether START of that record has to wait for a licence that another has not given back. */
bool gridlicence_withhold (const struct gridjob *job, const struct coalloc_record *record);
/* Each job that asks for one is in metad->licensed as long as it is in memory; when it has ended, those that wait for the
 * same look again whether they can start sooner. */
extern const struct metad_part gridlicence_part;

/* The method Licences: what is reserved of each, when, and for whom as far as the caller may know. */
void on_licences (void *self, struct rpccall *call, const ProtobufCMessage *request);

#endif
