/* reason: why a job does not start, as a code with values and as a sentence. Pure.
 *
 * A pass writes one struct reason (plain, no pointers) per waiting job; the sentence is made on
 * demand. Codes are stable names for programs ("Resources", "MaxProcs" …). */
#ifndef NUI_LOCAL_CORE_REASON_H
#define NUI_LOCAL_CORE_REASON_H

#include <stddef.h>

#include "local/core/types.h"

enum reason_code {
    REASON_NONE,             /* nothing stands in its way (it starts) */
    REASON_NOT_PLANNED,      /* no pass has seen it yet */
    REASON_HOLD,             /* need: enum job_hold bits */
    REASON_DEFERRED,         /* clears: until when */
    REASON_NOT_BEFORE,       /* clears: the moment it asked for */
    REASON_NEVER_FITS,       /* need tasks of req `which`, the whole machine could take have */
    REASON_RESERVATION,      /* waits for the reservation it names; clears: its start */
    REASON_RESERVATION_GONE, /* the reservation it names does not exist */
    REASON_SYSTEM_LIMIT,     /* SYSTEMMAX…: which = limit_kind, need, have = limit */
    REASON_LIMIT_ACTIVE, /* MAX…: which = limit_kind, object, cred; need = usage + job, have = limit
                          */
    REASON_LIMIT_IDLE,   /* MAXI…: likewise */
    REASON_FS_CAP,       /* fairshare cap of object, cred; need, have in percent * 1e4 */
    REASON_NEGATIVE_PRIORITY, /* REJECTNEGPRIOJOBS */
    REASON_RESOURCES,         /* need tasks, have free now; clears: when it is promised, if known */
    REASON_RESERVED,          /* like RESOURCES, and the pass holds nodes for it from clears on */
    REASON_PROMISED,    /* need tasks for length, have free now, but promised to others by then */
    REASON_BEHIND,      /* no backfill: waits behind job `other` */
    REASON_NO_BACKFILL, /* its QoS is not backfilled, and it is not first */
    REASON_CHUNK,       /* BFCHUNKSIZE keeps jobs under have procs out until clears */
    REASON_DEPTH,       /* further down than BACKFILLDEPTH (have) */
    REASON_ARRAY_LIMIT, /* have jobs of its array run, which is all that may */
    REASON_DEADLINE,    /* could not end by its deadline, clears */
    REASON_BARRED,      /* need tasks, have free now; more are free in reservation rsv, which does
                           not admit it. Where it named rsv: that one does not */
    REASON_CLASS,       /* its class does not take it: which = class_rule, object = whose list,
                           cred = the class; need (seconds, processors …), have = bound */
    REASON_NODE_SET,    /* need tasks in one node set, at most have in any now */
    REASON_LICENCES, /* need of licence `which`, have free (or: until others are promised them) */
    REASON_NEVER_LICENCES, /* … and the site has no more than have */
    REASON_DATA,           /* is not there before clears */
    REASON_NEVER_FREE, /* need tasks of req `which`, at no time are more than have free together, as
                          things stand: reservation rsv (0: none) has no end and does not admit it
                        */
    REASON_CODES
};

struct reason {
    uint16_t code;  /* enum reason_code */
    uint8_t which;  /* a limit_kind or the index of a req */
    uint8_t object; /* LIMIT_OBJECT…: a cred_kind, or LIMIT_OBJECT_SYSTEM */
    uint32_t cred;  /* its number */
    int64_t need;
    int64_t have;
    time_us clears; /* TIME_US_NONE: not known */
    duration_us length;
    struct job_id other; /* the job or … */
    struct rsv_id rsv;   /* … reservation that stands in the way; 0: none */
    bool never; /* REASON_LIMIT_ACTIVE: all by itself, so that it never runs under that limit */
};

/* "Resources", "Hold" …; stable. */
const char *reason_code_name (enum reason_code code);

/* One sentence without a final newline, e.g. "needs 16 tasks, 4 could start now; promised from
 * 2026-11-21T14:30:00Z". names may be NULL (numbers are printed). Returns out. */
char *reason_text (const struct reason *reason, const struct cred_names *names, char *out,
                   size_t cap);

#endif
