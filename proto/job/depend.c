/* The kinds of dependency between jobs, by name, and what each asks of the job that is waited for. Called by the metascheduler
 * for jobs of the grid and by a site for its own. */
#include "proto/job/depend.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    enum depend_kind kind;
    bool before;
} names[] = {
    {"after", DEPEND_AFTER, false},
    {"afterany", DEPEND_AFTERANY, false},
    {"afterok", DEPEND_AFTEROK, false},
    {"afternotok", DEPEND_AFTERNOTOK, false},
    {"jobstart", DEPEND_AFTER, false},
    {"jobcomplete", DEPEND_AFTERANY, false},
    {"jobsuccessfulcomplete", DEPEND_AFTEROK, false},
    {"jobfailedcomplete", DEPEND_AFTERNOTOK, false},
    {"before", DEPEND_AFTER, true},
    {"beforeany", DEPEND_AFTERANY, true},
    {"beforeok", DEPEND_AFTEROK, true},
    {"beforenotok", DEPEND_AFTERNOTOK, true},
};

bool depend_kind_parse (const char *name, enum depend_kind *kind_out, bool *before_out)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcasecmp (names[i].name, name) == 0) {
            *kind_out = names[i].kind;
            *before_out = names[i].before;
            return true;
        }
    }
    return false;
}

const char *depend_kind_name (enum depend_kind kind)
{
    assert (kind >= DEPEND_AFTER && kind <= DEPEND_AFTERNOTOK);
    return names[kind - DEPEND_AFTER].name;
}

enum depend_verdict depend_check (enum depend_kind kind, enum depend_target target)
{
    bool ended = target >= DEPEND_TARGET_SUCCEEDED;

    switch (kind) {
    case DEPEND_AFTER:
        return target == DEPEND_TARGET_CANCELLED ? DEPEND_NEVER
               : target == DEPEND_TARGET_WAITS   ? DEPEND_WAITS
                                                 : DEPEND_MET;
    case DEPEND_AFTERANY:
        return ended ? DEPEND_MET : DEPEND_WAITS;
    case DEPEND_AFTEROK:
        return !ended                              ? DEPEND_WAITS
               : target == DEPEND_TARGET_SUCCEEDED ? DEPEND_MET
                                                   : DEPEND_NEVER;
    case DEPEND_AFTERNOTOK:
        return !ended                              ? DEPEND_WAITS
               : target == DEPEND_TARGET_SUCCEEDED ? DEPEND_NEVER
                                                   : DEPEND_MET;
    }
    return DEPEND_NEVER;
}
