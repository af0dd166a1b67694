/* The table of the grid commands. Each help text is what `nui CMD --help` prints. */
#include "meta/cli/grid.h"

#define COMMON_OPTIONS                                                                             \
    "\n"                                                                                           \
    "Every command: --json, --csv, --noheader, --config FILE, --help\n"

#define JOB_OPTIONS_HELP                                                                           \
    "  -A, --account NAME     account that pays (default: ACCOUNT of nui.cfg)\n"                   \
    "  -n, --tasks N          tasks; a task stays on one node (default 1)\n"                       \
    "      --trl 8,16@1:00:00 sizes to choose from: 8 tasks, or 16 for an hour at most\n"         \
    "  -N, --nodes N          on exactly so many nodes\n"                                          \
    "      --tpn N            tasks on each node\n"                                                \
    "      --procs-per-task N processors of a task (default 1)\n"                                  \
    "      --mem SIZE         memory of a task: 512, 2G; --swap SIZE, --disk SIZE alike\n"         \
    "  -t, --time DURATION    wallclock limit: SS, MM:SS, HH:MM:SS, D:HH:MM:SS (needed)\n"         \
    "  -C, --features A,B     only nodes with all of these\n"                                      \
    "      --like A,B         rather nodes with these, where the site weighs it (PREF)\n"          \
    "      --gres A:N,B       generic resources of the node, per task\n"                           \
    "  -L, --licence A:N,B    floating licences, for the whole job: the grid's (nui licences) or a site's\n"                             \
    "      --req KEY=VALUE,.. more tasks of another kind beside these (repeat it): tasks, nodes,\n"   \
    "                         tpn, procs-per-task, mem, swap, disk, gres, features, like\n"                          \
    "  -w, --hosts LIST       only these nodes of the site: node[1-4],m1\n"                        \
    "  -x, --exclude LIST     not these nodes\n"                                                   \
    "      --partition A,B    only these partitions of the site\n"                                 \
    "      --nodeset SET      nodes that are alike: ONEOF:FEATURE:a:b, ONEOF:PROCSPEED, NONE\n"    \
    "      --node-access HOW  SHARED, SINGLEUSER, SINGLEJOB or SINGLETASK\n"                       \
    "      --procs-max N      pay for at most so many processors where nodes are given whole\n"   \
    "      --reservation NAME only inside this reservation of the site\n"                          \
    "  -p, --class NAME       class (queue) at the site\n"                                         \
    "  -q, --qos NAME         quality of service at the site\n"                                    \
    "      --site A,B         only these sites\n"                                                  \
    "      --after TIME       not before: HH:MM, +DURATION, 2026-11-21T14:30\n"                    \
    "      --start-by TIME    latest start\n"                                                     \
    "      --valid TIME       no site takes it for the first time so long after now (30 days)\n"  \
    "      --deadline TIME    must have ended by then\n"                                           \
    "      --prefer WHAT      earliest (completion, then price) or cheapest (price, then\n"       \
    "                         completion). Default: the cheapest with --deadline, else earliest\n" \
    "      --depend KIND:JOB,...  wait for jobs of the grid, or of one site: after, afterany,\n"     \
    "                         afterok, afternotok; before... makes a site's jobs wait\n"         \
    "      --retries N        run it again so often when it failed, after 10 s, 20 s, 40 s ...\n"    \
    "      --retry-on CODES   only after these exit codes: 75,100-120\n"                           \
    "      --retry-delay D    before the first; it doubles each time, up to an hour\n"             \
    "      --on-site-loss X   its site is not heard of any more: report (it stays there) or\n"        \
    "                         resubmit (it is given to another, and ended there)\n"            \
    "      --notify URL       POST it a line of JSON when the job starts, is run again, ends\n"       \
    "      --hold             with a user hold: releasehold lets it start\n"                      \
    "      --flags A,B        PREEMPTEE (may be evicted), NORESTART (never run twice)\n"          \
    "      --max-cost CREDITS signed as the most it may cost; else twice the estimate; none\n"     \
    "      --quote QUOTE      at the rates that nui quote --keep kept: quote.7\n"                    \
    "      --name NAME        a name for lists\n"                                                  \
    "  -o, --output FILE      file of standard output in the job's directory\n"                    \
    "  -e, --error FILE       the same for standard error\n"                                       \
    "      --env NAME[=VALUE] pass a variable (may be repeated)\n"                                 \
    "      --stage-in URL=PATH[,sha256=HEX][,bytes=N]   (repeat it) a file that is in the job's\n"   \
    "                         directory before it starts: https, sftp, s3 or file (of the site)\n"  \
    "      --stage-out PATH=URL[,always]   (repeat it) taken there when the job completed;\n"         \
    "                         always: also when it failed\n"                                           \
    "      --component NAME:KEY=VALUE,...   a part of a co-allocated job (repeat it): all parts\n" \
    "                         start at the same moment or none. Keys are the long options'\n"      \
    "                         names, script=FILE, and offset=-120 to start two minutes earlier\n"  \
    "      --file JOB.json    the same as JSON\n"

#define GROUP "Users, on the grid"

const struct cli_command meta_commands[] = {
    {"submit", GROUP, "sign a job, send it, print its id", cmd_submit,
     "nui submit [options] SCRIPT [ARGUMENT...]\n"
     "nui submit [options] --file JOB.json\n"
     "\n"
     "Signs a job with your key and sends it to the metascheduler, which places it where it\n"
     "will be finished soonest. Prints the job's id (grid.42). Directives #NUI in the script mean\n"
     "the same as options; where there are none, the common #SBATCH and #PBS ones are read.\n"
     "\n" JOB_OPTIONS_HELP
     "      --array 1-10%3     ten jobs, NUI_ARRAY_INDEX 1 to 10, three at one time at a site\n"
     "      --wait             follow the job, or each of an array; exit 0 only if all complete\n"
     "      --save DIR         the same, and bring what they printed into DIR\n" COMMON_OPTIONS "\n"
     "  nui submit -A phys -n 4 -t 1:00:00 run.sh input.dat\n"
     "  nui submit -t 10:00 --component left:site=alpha,tasks=2 \\\n"
     "             --component right:site=beta,tasks=4 couple.sh\n"},
    {"estimate", GROUP, "when would it start, where, for how much", cmd_estimate,
     "nui estimate [options of submit] [SCRIPT]\n"
     "\n"
     "For each candidate site, or combination of sites: start, end, price at most, free\n"
     "processors, the account that would pay, and the reason where it is impossible. Submits\n"
     "nothing. Exit code 1 when nothing is possible.\n"
     "\n" JOB_OPTIONS_HELP COMMON_OPTIONS "\n"
     "  nui estimate -n 8 -t 1:00:00\n"},
    {"jobs", GROUP, "list jobs", cmd_jobs,
     "nui jobs [options]\n"
     "\n"
     "  -a, --all              everybody's (operators)\n"
     "  -e, --ended            also those that have ended\n"
     "      --limit N          at most so many (default 1000)\n" COMMON_OPTIONS},
    {"status", GROUP, "everything about one job, with the reason it waits", cmd_status,
     "nui status JOB\n"
     "\n"
     "The job and each of its components: where, since when, why it waits or how it "
     "ended.\n" COMMON_OPTIONS "\n"
     "  nui status grid.42\n"},
    {"watch", GROUP, "follow a job until it has ended", cmd_watch,
     "nui watch JOB\n"
     "\n"
     "One line for each change. Exit code 0 when the job completed, 1 when it ended "
     "otherwise.\n" COMMON_OPTIONS},
    {"cancel", GROUP, "cancel jobs", cmd_cancel,
     "nui cancel JOB...\n"
     "\n"
     "In whatever state: a co-allocated job gives back all its parts.\n" COMMON_OPTIONS},
    {"renew", GROUP, "let a job go on after its signature has expired", cmd_renew,
     "nui renew [options] JOB...\n"
     "\n"
     "Signs leave for the metascheduler to go on with these jobs, and with nothing else.\n"
     "\n"
     "      --for TIME         so long from now (default 7 days, at most 30)\n" COMMON_OPTIONS},
    {"restage", GROUP, "take files away once more that could not be", cmd_restage,
     "nui restage [options] JOB...\n"
     "\n"
     "Begins the transfers of --stage-out that failed once more, while the sites still keep the\n"
     "files, and shows them. JOB: of the grid, or of one site (alpha.17).\n"
     "\n"
     "  -l, --list             only show which failed, why, and until when they are kept\n"
     "      --site NAME        ask this site itself\n" COMMON_OPTIONS "\n"
     "  nui restage --list grid.42\n"},
    {"output", GROUP, "what a job printed", cmd_output,
     "nui output [options] JOB [COMPONENT]\n"
     "nui output --save DIR JOB...\n"
     "\n"
     "Read from the site itself, which gives it only to the job's owner.\n"
     "\n"
     "      --stderr           standard error instead of standard output\n"
     "  -f, --follow           until the job has ended\n"
     "      --save DIR         both streams of each component, into files of DIR\n" COMMON_OPTIONS},
    {"licences", GROUP, "licences of the grid, in use and reserved", cmd_licences,
     "nui licences [LICENCE]\n"
     "\n"
     "Of each licence that the grid counts: how many there are, how many running jobs have, how many\n"
     "are free of any reservation now, and from when on all are. Of one: how many are reserved from\n"
     "when to when, and by which of your jobs (of operators: by whose).\n" COMMON_OPTIONS "\n"
     "  nui licences matlab\n"},
    {"sites", GROUP, "sites, their state and what is free", cmd_sites,
     "nui sites [--estimates]\n"
     "\n"
     "Down: no report for 30 seconds. IN95%, ESTERROR: how its start-time estimates held in\n"
     "the last four weeks.\n"
     "\n"
     "  -e, --estimates        that in full, for each site and class\n" COMMON_OPTIONS},
    {"whoami", GROUP, "my identity as the grid sees it", cmd_whoami, "nui whoami\n" COMMON_OPTIONS},
    {0},
};
