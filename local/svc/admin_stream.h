/* admin_stream: an answer in pieces, with the loop free in between and the peer's pace kept. */
#ifndef NUI_LOCAL_SVC_ADMIN_STREAM_H
#define NUI_LOCAL_SVC_ADMIN_STREAM_H

#include "local/svc/svc_i.h"

struct admin_stream {
    struct svc *svc;
    struct rpccall *call;
    struct event *next;
    bool blocked;
    /* Sends one piece (at most one message) and says in *blocked whether the peer is slow; false:
     * that was the last. svc->call_arena is fresh. */
    bool (*step) (struct admin_stream *stream);
    void (*free_fn) (struct admin_stream *stream); /* the whole object */
};

/* Takes over stream, which is the first member of a calloc'ed object with step, free_fn set. */
void admin_stream_start (struct svc *svc, struct rpccall *call, struct admin_stream *stream);

#endif
