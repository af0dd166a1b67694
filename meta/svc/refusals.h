/* refusals: a Submit that was refused is refused when it comes again, with the same sentence, so that a copy that
 * was late does not run a job whose user was told that it will not. The newest REFUSALS_KEPT, for as long as a
 * copy may be under way; not those that may be tried again (UNAVAILABLE and such), and not beyond this process. */
#ifndef NUI_META_SVC_REFUSALS_H
#define NUI_META_SVC_REFUSALS_H

#include "meta/job/hub.h"

enum { REFUSALS_KEPT = 1024 };
#define REFUSAL_AGE (120 * US_PER_S)

/* body: what was signed, the whole job; anything else of it is another request. */
void refusals_add (struct metad *metad, const ProtobufCBinaryData *body, const struct err *why);
/* Fills err and returns its code; 0: not refused lately. */
int refusals_find (const struct metad *metad, const ProtobufCBinaryData *body, struct err *err);
extern const struct metad_part refusals_part;

#endif
