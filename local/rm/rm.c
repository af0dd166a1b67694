/* rm: what a job for a resource manager has in all, and the words for how one ended, for the resource managers and the service alike. The
 * adapter itself is the header; nothing here may know one resource manager from another. */
#include "local/rm/rm.h"

uint32_t rm_job_tasks (const struct rm_job *job)
{
    uint32_t tasks = 0;
    for (uint32_t i = 0; i < job->host_count; i++)
        tasks += job->host_tasks[i];
    return tasks;
}

const char *rm_end_name (enum rm_end end)
{
    static const char *const name[] = {
        [RM_END_EXITED] = "exited",
        [RM_END_SIGNALLED] = "signalled",
        [RM_END_TIMEOUT] = "timeout",
        [RM_END_CANCELLED] = "cancelled",
        [RM_END_START_FAILED] = "start_failed",
        [RM_END_REFUSED] = "refused",
        [RM_END_MISTAKE] = "mistake",
        [RM_END_OUTPUT] = "output",
        [RM_END_NODE_FAILURE] = "node_failure",
        [RM_END_REQUEUED] = "requeued",
    };
    return (size_t)end < sizeof name / sizeof *name ? name[end] : "unknown";
}

const char *rm_keeper_name (enum rm_keeper keeper)
{
    static const char *const names[] = {"nothing", "cgroup", "rlimit"};
    return names[keeper];
}
