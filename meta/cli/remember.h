/* remember: what was signed and has no answer, so that the same command, run again, asks for that job instead of signing
 * another. A file for each below $XDG_STATE_HOME/nui (or ~/.local/state/nui), mode 0600, on disk before the job leaves, and
 * removed when it was taken or refused. */
#ifndef NUI_META_CLI_REMEMBER_H
#define NUI_META_CLI_REMEMBER_H

#include <stdbool.h>

#include "proto/nui/v1/common.pb-c.h"

struct remembered;

/* Of the same job as this envelope's, signed with the same certificate: one that nobody has answered, whose process is gone and that has not expired; NULL: there is
 * none. Free with envelope_free. *out: for remember_end; NULL where there is no place to remember. */
Nui__Common__V1__Envelope *remember_find (const Nui__Common__V1__Job *job,
                                          const Nui__Common__V1__Envelope *envelope,
                                          struct remembered **out);
/* The job is about to be sent. NULL where there is no place to remember. */
struct remembered *remember_begin (const Nui__Common__V1__Job *job,
                                   const Nui__Common__V1__Envelope *envelope);
/* answered: it was taken, or refused; else it is kept. NULL is a no-op. */
void remember_end (struct remembered *remembered, bool answered);

#endif
