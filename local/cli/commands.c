/* The table of Maui's commands. Each help text is what `nui CMD --help` prints. */
#include "local/cli/stats_cli.h"

#define GROUP "On a cluster, with Maui's names"

#define SITE_HELP "      --site NAME        another cluster than the one of nui.cfg\n"

const struct cli_command local_commands[] = {
    {"showq", GROUP, "the queue: active, idle and blocked jobs", cmd_showq,
     "nui showq [-r | -i | -b] [-u USER] [--site NAME]\n"
     "\n"
     "  -r, --running          active jobs only, with where they run and their XFactor; marks:\n"
     "                         + backfilled, - preemptible, * both\n"
     "  -i, --idle             idle jobs only, in order of priority; * has a reservation\n"
     "  -b, --blocked          blocked jobs only, each with its reason\n"
     "  -u, --user USER        jobs of one account only\n" SITE_HELP
     "\n"
     "Plain users see their own jobs; how many others there are is said.\n"
     "\n"
     "  nui showq -b\n"},
    {"checkjob", GROUP, "one job, and why it waits", cmd_checkjob,
     "nui checkjob [-v] [--site NAME] JOB\n"
     "\n"
     "State, credentials, times, what it asks for and where it runs. Of a waiting job: what stops\n"
     "it, with the limit's value and present usage, when that is expected to be over, and how\n"
     "many nodes reject it for which reason. JOB is 17, alpha.17 or grid.42.\n"
     "\n"
     "  -v, --verbose          the verdict of every node\n" SITE_HELP
     "\n"
     "  nui checkjob alpha.17\n"},
    {"canceljob", GROUP, "cancel jobs", cmd_canceljob,
     "nui canceljob [--site NAME] JOB...\n"
     "\n"
     "In whatever state. One's own; everybody's for ADMIN1 and ADMIN2.\n" SITE_HELP
     "\n"
     "  nui canceljob alpha.17 alpha.18\n"},
    {"showbf", GROUP, "what is free now, and for how long", cmd_showbf,
     "nui showbf [-v] [-u USER] [-g GROUP] [-a ACCOUNT] [-c CLASS] [-q QOS] [-d DURATION]\n"
     "           [-p PARTITION] [-f FEATURES] [-m MEMORY] [-n NODES] [--site NAME]\n"
     "\n"
     "Backfill windows: processors that can be used at once without moving anybody's reservation.\n"
     "Longer windows are within the shorter ones. Nothing is offered to someone whose limit is\n"
     "reached (yours, unless others are named).\n"
     "\n"
     "  -u, --user USER        as this user, group, account, class, QoS would see it\n"
     "  -g, --group GROUP\n"
     "  -a, --account ACCOUNT\n"
     "  -c, --class CLASS\n"
     "  -q, --qos QOS\n"
     "  -d, --duration TIME    only windows at least so long\n"
     "  -p, --partition NAME   only nodes of this partition,\n"
     "  -f, --features A,B     with all of these features,\n"
     "  -m, --memory SIZE      with so much memory\n"
     "  -n, --nodes N          only windows of at least so many nodes\n"
     "  -v, --verbose          also why each node gives no more: for administrators (ADMIN3)\n" SITE_HELP
     "\n"
     "  nui showbf -d 2:00:00\n"},
    {"showstart", GROUP, "when a job, or one of a shape, will start at the earliest", cmd_showstart,
     "nui showstart [-e METHOD] [--site NAME] JOB | PROCS@DURATION\n"
     "\n"
     "By the reservations that the schedule holds and the wallclock limits of what runs.\n"
     "\n"
     "  -e, --estimate METHOD  also estimates with their intervals: limits, priority, history,\n"
     "                         simulation, or all; rsv, prio, hist and sim are the same\n" SITE_HELP
     "\n"
     "  nui showstart 8@1:00:00\n"},
    {"checknode", GROUP, "one node: state, resources, reservations, jobs", cmd_checknode,
     "nui checknode [-v] [--site NAME] NODE\n"
     "\n"
     "For administrators (ADMIN3).\n"
     "\n"
     "  -v, --verbose          also its address and priority\n" SITE_HELP
     "\n"
     "  nui checknode alpha01\n"},
    {"showres", GROUP, "reservations, those of jobs included", cmd_showres,
     "nui showres [-n] [--site NAME] [JOB | RESERVATION]\n"
     "\n"
     "What runs until its limit, what the schedule promises to waiting jobs, co-allocated parts,\n"
     "and what administrators (setres) and the configuration (SRCFG) reserved. Of jobs' plain users\n"
     "see their own.\n"
     "\n"
     "  -n, --nodes            by node\n" SITE_HELP
     "\n"
     "  nui showres -n\n"},
    {"setres", GROUP, "reserve nodes or tasks for some, for a time", cmd_setres,
     "nui setres [options] ALL | HOSTS | TASKS==N | TASKS>=N\n"
     "\n"
     "HOSTS is a list like node[001-128] or node[AB],gpu7, or a regular expression; named hosts are\n"
     "reserved whatever runs there, tasks where there is room. What is promised to co-allocated jobs\n"
     "is never taken. Without an end the reservation stays until releaseres. An empty access list\n"
     "keeps everybody out. For ADMIN1 and ADMIN2.\n"
     "\n"
     "  -s, --start TIME       14:30, 17:00_04/14, +2:00:00 (default: now)\n"
     "  -e, --end TIME         or\n"
     "  -d, --duration TIME    [[D:]HH:]MM:SS\n"
     "  -u, --user LIST        who may use it: bob:john, steve= (neutral), bill- (only if nothing\n"
     "                         else is free), !eve (never), *jim (always required)\n"
     "  -g, --group LIST       likewise, and -a, --account, --class, -q, --qos,\n"
     "      --job-attribute LIST  GRID, COALLOCATED, PREEMPTEE, PREEMPTOR, INTERACTIVE, RESTARTABLE\n"
     "      --job-duration TIME   jobs of at most so long (<, <=, >, >=, == before it)\n"
     "      --job-procs N         jobs of at most so many processors\n"
     "  -n, --name NAME        its name begins so (default: whom it is for)\n"
     "  -f, --features LIST    tasks on nodes with these\n"
     "  -r, --resources LIST   of a task: PROCS:1,MEM:512; PROCS:-1 is a whole node\n"
     "      --tpn N            tasks per node\n"
     "  -p, --partition NAME   nodes of this partition\n"
     "  -o, --owner KIND:NAME  whose it is: USER:bob\n"
     "  -c, --charge ACCOUNT[:USER]  who pays for what it keeps idle (default: its owner, or you)\n"
     "  -x, --flags LIST       SINGLEUSE, BYNAME, META, PREEMPTEE, TIMEFLEX, SPACEFLEX,\n"
     "                         DEDICATEDNODE, DEDICATEDRESOURCE, FORCE, OWNERPREEMPT, SHARED\n" SITE_HELP
     "\n"
     "  nui setres -s 14:30 -d 4:00:00 'node[AB]'\n"
     "  nui setres -u john:sam -f fast -s 17:00_04/14 TASKS==20\n"},
    {"releaseres", GROUP, "end reservations", cmd_releaseres,
     "nui releaseres [--site NAME] RESERVATION...\n"
     "\n"
     "Jobs that run inside go on. Standing reservations are the configuration's (SRCFG). For ADMIN1\n"
     "and ADMIN2.\n" SITE_HELP
     "\n"
     "  nui releaseres john.0\n"},
    {"showstate", GROUP, "the nodes as a map of letters, one letter a job", cmd_showstate,
     "nui showstate [--site NAME]\n"
     "\n"
     "For administrators (ADMIN3). --json and --csv give one row for each node.\n" SITE_HELP
     "\n"
     "  nui showstate\n"},
    {"sethold", GROUP, "keep waiting jobs from starting", cmd_sethold,
     "nui sethold [-b | -s | -u] [--site NAME] JOB...\n"
     "\n"
     "  -b, --batch            a batch hold (default), -s a system hold: for ADMIN1 and ADMIN2\n"
     "  -s, --system\n"
     "  -u, --user             a user hold: anyone, on one's own jobs\n" SITE_HELP
     "\n"
     "  nui sethold -u alpha.17\n"},
    {"releasehold", GROUP, "let held jobs start", cmd_releasehold,
     "nui releasehold [-a | -b | -s | -u] [--site NAME] JOB...\n"
     "\n"
     "  -a, --all              all its holds\n"
     "  -b, --batch            the batch hold (default)\n"
     "  -s, --system           the system hold\n"
     "  -u, --user             the user hold\n" SITE_HELP
     "\n"
     "  nui releasehold -a alpha.17\n"},
    {"setspri", GROUP, "set a system priority on waiting jobs", cmd_setspri,
     "nui setspri [-r] [--site NAME] PRIORITY JOB...\n"
     "\n"
     "PRIORITY from 1 to 1000 puts a job above every one without, 0 takes that back. For ADMIN1\n"
     "and ADMIN2.\n"
     "\n"
     "  -r, --relative         add PRIORITY, which may be negative, to what the job has\n" SITE_HELP
     "\n"
     "  nui setspri 10 alpha.17\n"},
    {"runjob", GROUP, "start waiting jobs now", cmd_runjob,
     "nui runjob [-f] [--site NAME] JOB...\n"
     "\n"
     "Where there is room that nobody was promised, within the limits. For ADMIN1 and ADMIN2. A\n"
     "held job is not started, and no reservation of a co-allocation is broken.\n"
     "\n"
     "  -f, --force            past limits, and past what the schedule promised to waiting jobs\n"
     SITE_HELP
     "\n"
     "  nui runjob alpha.17\n"},
    {"mjobctl", GROUP, "change jobs: cancel, hold, release, priority, run", cmd_mjobctl,
     "nui mjobctl -c | -x | -h TYPE | -u TYPE | -p [+|-]PRIORITY | -m ATTRIBUTE=VALUE\n"
     "            | -q ATTRIBUTE | -R | -s | -r [--site NAME] JOB...\n"
     "\n"
     "  -c, --cancel           as canceljob\n"
     "  -x, --run              as runjob\n"
     "  -h, --hold TYPE        as sethold: user, system, batch or all\n"
     "  -u, --unhold TYPE      as releasehold: user, system, batch or all\n"
     "  -p, --priority N       as setspri; +N or -N is relative\n"
     "  -m, --modify A=VALUE   of waiting jobs: qos, class, account, wclimit, starttime. One's own;\n"
     "                         everybody's, and a longer limit, for ADMIN1 and ADMIN2\n"
     "  -q, --query ATTRIBUTE  say it: account, class, group, holds, hostlist, priority, procs, qos,\n"
     "                         reason, starttime, state, submittime, user, wclimit\n"
     "  -R, --requeue          a running job back to the queue; what it did is charged and lost\n"
     "  -s, --suspend          stop a running job until -r; its processors are free for others\n"
     "  -r, --resume           let it go on\n" SITE_HELP
     "\n"
     "  nui mjobctl -h user alpha.17\n"},
    {"setqos", GROUP, "give waiting jobs another quality of service", cmd_setqos,
     "nui setqos [--site NAME] QOS JOB...\n"
     "\n"
     "One that the job's credentials give access to. One's own jobs; everybody's for ADMIN1 and\n"
     "ADMIN2.\n" SITE_HELP
     "\n"
     "  nui setqos hi alpha.17\n"},
    {"mnodectl", GROUP, "change nodes: drain them, bring them back, their attributes", cmd_mnodectl,
     "nui mnodectl -m ATTRIBUTE=VALUE [--site NAME] NODE...\n"
     "\n"
     "  -m, --modify A=VALUE   state=drained (what runs there goes on, nothing starts), state=down\n"
     "                         (it has failed: JOBACTIONONNODEFAILURE) or state=up;\n"
     "                         features=A,B or features=+A,-B; priority=N; speed=X. An empty value\n"
     "                         goes back to what is configured\n" SITE_HELP
     "\n"
     "Holds over restarts and reloads, and is in the audit log. For ADMIN1.\n"
     "\n"
     "  nui mnodectl -m state=drained 'alpha[01-02]' beta01\n"},
    {"changeparam", GROUP, "change a parameter of the policy at once", cmd_changeparam,
     "nui changeparam [--site NAME] PARAMETER VALUE...\n"
     "\n"
     "As a line at the end of the configuration, checked like the whole: taken, or refused with\n"
     "nothing changed. It holds until the file is read again (edited, SIGHUP, restart): what is to\n"
     "last belongs there. For ADMIN1.\n" SITE_HELP
     "\n"
     "  nui changeparam RESERVATIONDEPTH[0] 2\n"
     "  nui changeparam USERCFG[john] MAXJOB=4 PRIORITY=100\n"},
    {"msub", GROUP, "submit a job to this cluster alone", cmd_msub,
     "nui msub [options] SCRIPT [ARGUMENT...]\n"
     "nui msub [options] --file JOB.json\n"
     "\n"
     "Puts a job into the cluster's own queue, without a grid, and prints its id (alpha.17).\n"
     "With a certificate in nui.cfg it is signed; on the cluster itself none is needed, unless a\n"
     "bank charges for jobs. Directives #NUI in the script mean the same as nui submit's options;\n"
     "where there are none, #SBATCH, #PBS or #MSUB ones are read.\n"
     "\n"
     "  -l, --resources LIST   nodes=2:ppn=4,walltime=1:00:00,procs=8,pmem=512mb\n"
     "  -t, --time DURATION    wallclock limit (default: the class's or the site's)\n"
     "      --tasks N          tasks, --nodes N on so many nodes, --tpn N on each,\n"
     "      --nodes N          --procs-per-task N processors of a task, --mem SIZE of its memory,\n"
     "      --tpn N            --features A,B only on nodes with all of these\n"
     "      --procs-per-task N\n"
     "      --mem SIZE         --swap SIZE, --disk SIZE: swap and local disk of a task\n"
     "      --swap SIZE\n"
     "      --disk SIZE\n"
     "      --features A,B\n"
     "      --like A,B         rather nodes with these, where the site weighs it (PREF)\n"
     "      --gres A:N,B       generic resources of the node, per task\n"
     "      --licence A:N,B    floating licences, for the whole job\n"
     "      --req KEY=VALUE,.. more tasks of another kind beside these (may be repeated)\n"
     "  -w, --hosts LIST       only these nodes: node[1-4],m1\n"
     "  -x, --exclude LIST     not these nodes\n"
     "      --partition A,B    only these partitions\n"
     "      --nodeset SET      nodes that are alike: ONEOF:FEATURE:a:b, ONEOF:PROCSPEED, NONE\n"
     "      --node-access HOW  SHARED, SINGLEUSER, SINGLEJOB or SINGLETASK\n"
     "      --procs-max N      pay for at most so many processors where nodes are given whole\n"
     "      --reservation NAME only inside this reservation of the site\n"
     "  -q, --class NAME       class (queue)\n"
     "      --qos NAME         quality of service\n"
     "  -A, --account NAME     account that pays (default: ACCOUNT of nui.cfg)\n"
     "  -N, --name NAME        a name for lists\n"
     "  -a, --after TIME       not before: HH:MM, +DURATION, 2026-11-21T14:30\n"
     "      --deadline TIME    must have ended by then\n"
     "      --depend KIND:JOB,...  wait for others: after, afterany, afterok, afternotok;\n"
     "                         before... makes the others wait\n"
     "      --array 1-10%3     ten jobs, NUI_ARRAY_INDEX 1 to 10, three at one time\n"
     "      --flags A,B        PREEMPTEE (may be evicted), NORESTART (never run twice)\n"
     "      --max-cost CREDITS signed as the most it may cost; none: no bound\n"
     "      --quote QUOTE      at the rates that nui quote --keep kept: quote.7\n"
     "  -o, --output FILE      file of standard output in the job's directory\n"
     "  -e, --error FILE       the same for standard error\n"
     "  -v, --env NAME[=VALUE] pass a variable (may be repeated)\n"
     "      --stage-in URL=PATH[,sha256=HEX][,bytes=N]   a file that is there before it starts\n"
     "      --stage-out PATH=URL[,always]   taken there when it completed; always: or failed\n"
     "  -h, --hold             with a user hold: releasehold -u lets it start\n"
     "      --file JOB.json    the same as JSON\n" SITE_HELP
     "\n"
     "  nui msub -l nodes=2:ppn=4,walltime=1:00:00 run.sh input.dat\n"},
    {"schedctl", GROUP, "stop, step, resume or end the scheduler", cmd_schedctl,
     "nui schedctl [-s [N[I] | TIME] | -S [N[I] | DURATION] | -r [TIME] | -k | -R | -n] [-w]\n"
     "             [--site NAME]\n"
     "\n"
     "Without an option: mode, iteration, and whether it is stopped. While it is, nothing is\n"
     "started; jobs run on and commands work. In a SIMULATION an iteration is RMPOLLINTERVAL of\n"
     "its time, elsewhere a scheduling pass. For ADMIN1; its state and -n for ADMIN3.\n"
     "\n"
     "  -s, --stop [N|TIME]    stop when N iterations have been, or at TIME (default: at once)\n"
     "  -S, --step [N|LENGTH]  run N iterations more, or for LENGTH (default 1), then stop\n"
     "  -r, --resume [TIME]    run on, at once or at TIME\n"
     "  -k, --kill             end nui-local; jobs run on\n"
     "  -R, --recycle          let it begin again with its configuration read anew\n"
     "  -n, --nodes            the nodes in the format of Maui's resource trace\n"
     "  -w, --wait             come back when it has stopped\n" SITE_HELP
     "\n"
     "TIME is 17:00, 17:00_04/14 or +2:00:00 and LENGTH 2:00:00, by the schedule's clock; a plain\n"
     "number counts iterations.\n"
     "\n"
     "  nui schedctl -S 10 --wait\n"},
    {"diagnose", GROUP, "priorities by their parts, fairshare, jobs, nodes, credentials",
     cmd_diagnose,
     "nui diagnose -p [JOB] | -f [KIND] | -q [JOB] | -j [JOB] | -n [NODE] | -r [RESERVATION]\n"
     "             | -s [NAME] | -u [USER] | -g [GROUP] | -a [ACCOUNT] | -c [CLASS] | -Q [QOS]\n"
     "             | -m | -R | -S | -t | -e [--site NAME]\n"
     "\n"
     "  -p, --priority         each idle job's priority: every component's share in percent and,\n"
     "                         in brackets, what each part adds; of one JOB a line for each part\n"
     "  -f, --fairshare        usage of every credential, or of one kind, by interval\n"
     "  -q, --queue            why each blocked job is blocked (also -b, --blocked)\n"
     "  -j, --jobs             all jobs with what they ask for\n"
     "  -n, --nodes            all nodes: free and configured\n"
     "  -r, --reservations     all reservations: times, nodes, access lists, flags; those short of\n"
     "                         what they want\n"
     "  -s, --standing         what SRCFG asks for, and the reservations that stand for it\n"
     "  -u, --users            what the policy says of each user,\n"
     "  -g, --groups           group,\n"
     "  -a, --accounts         account,\n"
     "  -c, --classes          class,\n"
     "  -Q, --qos              QoS: priority, access, fairshare target, limits\n"
     "  -m, --memory           nodes by how much memory they have\n"
     "  -R, --managers         resource manager, bank and metaschedulers, and what waits for them\n"
     "  -S, --scheduler        the scheduler: mode, iterations, its job trace\n"
     "  -t, --partitions       partitions: configured, up, dedicated\n"
     "  -e, --estimates        how start-time estimates held\n" SITE_HELP
     "\n"
     "For administrators (ADMIN3); -q and -j also show plain users their own jobs; -e is for all.\n"
     "\n"
     "  nui diagnose -p\n"},
    {"showstats", GROUP, "statistics: the system, users, groups, accounts, classes, QoS, nodes",
     cmd_showstats,
     "nui showstats [-v] | -u [USER] | -g [GROUP] | -a [ACCOUNT] | -c [CLASS] | -q [QOS] | -n |\n"
     "              -f STATISTIC [--site NAME]\n"
     "\n"
     "Since the last resetstats, over jobs that have ended; Active is the present moment, with\n"
     "the processor-hours left until the limits.\n"
     "\n"
     "  -s, --system           the whole system (default)\n"
     "  -v, --verbose          with preemption, bypass and the lowest utilization\n"
     "  -u, --users            by user,\n"
     "  -g, --groups           group,\n"
     "  -a, --accounts         account,\n"
     "  -c, --classes          class,\n"
     "  -q, --qos              QoS; or only the one that is named\n"
     "  -n, --nodes            by node: how long it was up, how long busy\n"
     "  -f, --grid STATISTIC   as showgrid\n" SITE_HELP
     "\n"
     "For administrators (ADMIN3); -u shows plain users their own line.\n"
     "\n"
     "  nui showstats -u\n"},
    {"showgrid", GROUP, "a statistic of ended jobs, by their size and length", cmd_showgrid,
     "nui showgrid [--site NAME] STATISTIC\n"
     "\n"
     "A matrix: processors by wallclock limit; in each cell the value and how many jobs it is\n"
     "over. STATISTIC is one of\n"
     "\n"
     "  AVGXFACTOR MAXXFACTOR     expansion factor\n"
     "  AVGQTIME MAXQTIME         queue time, hours\n"
     "  AVGBYPASS MAXBYPASS       how often others were backfilled past them\n"
     "  JOBCOUNT                  how many\n"
     "  PHREQUEST PHRUN           processor-hours asked for, run: percent of all\n"
     "  WCACCURACY                run time in percent of the limit\n"
     "  BFCOUNT BFPHRUN           backfilled: percent of jobs, of processor-hours run\n"
     "  JOBEFFICIENCY             processor time used in percent of dedicated\n"
     "  QOSDELIVERED              percent whose QoS's targets were met\n"
     "\n"
     "For administrators (ADMIN3).\n" SITE_HELP
     "\n"
     "  nui showgrid AVGQTIME\n"},
    {"profiler", GROUP, "a report over a time frame of the job history", cmd_profiler,
     "nui profiler [-b TIME] [-e TIME] [-u USER] [-g GROUP] [-A ACCOUNT] [-c CLASS] [-Q QOS]\n"
     "             [-p BY | -m STATISTIC] [--site NAME]\n"
     "\n"
     "Over jobs that ended within the time frame, whatever resetstats did.\n"
     "\n"
     "  -b, --begin TIME       ended at or after TIME; +N and -N are from now\n"
     "  -e, --end TIME         ended before TIME\n"
     "  -u, --user USER        only jobs of this user, group, account, class, QoS\n"
     "  -g, --group GROUP\n"
     "  -A, --account ACCOUNT\n"
     "  -c, --class CLASS\n"
     "  -Q, --qos QOS\n"
     "  -p, --by BY            a line for each user, group, account, class, qos, day or hour\n"
     "  -m, --matrix STATISTIC by size and length, as showgrid\n" SITE_HELP
     "\n"
     "For administrators (ADMIN3); -u with one's own name is for everybody.\n"
     "\n"
     "  nui profiler -b -7:00:00:00 -p day\n"},
    {"resetstats", GROUP, "begin the statistics anew", cmd_resetstats,
     "nui resetstats [--site NAME]\n"
     "\n"
     "What showstats and showgrid add up begins at zero. The job history, and with it profiler,\n"
     "stays as it is. For ADMIN1.\n" SITE_HELP
     "\n"
     "  nui resetstats\n"},
    {"showaudit", GROUP, "who changed what, and when", cmd_showaudit,
     "nui showaudit [-u WHO] [-m TEXT] [-b TIME] [-e TIME] [-n COUNT] [--site NAME]\n"
     "\n"
     "Every change that a person made, newest first.\n"
     "\n"
     "  -u, --user WHO         by this login name or identity only\n"
     "  -m, --match TEXT       only what has TEXT in it: a job's id, a command\n"
     "  -b, --begin TIME       at or after TIME, -e before TIME; +N and -N are from now\n"
     "  -e, --end TIME\n"
     "  -n, --limit COUNT      so many at most (100)\n" SITE_HELP
     "\n"
     "For administrators (ADMIN3); -u with one's own name is for everybody.\n"
     "\n"
     "  nui showaudit -m alpha.17\n"},
    {"showconfig", GROUP, "the policy in force, as maui.cfg would say it", cmd_showconfig,
     "nui showconfig [-v] [--site NAME]\n"
     "\n"
     "Every parameter in force with its value, defaults included, in lines that maui.cfg could\n"
     "hold. For administrators (ADMIN3).\n"
     "\n"
     "  -v, --verbose          also what is of this machine: paths, addresses, identity\n" SITE_HELP
     "\n"
     "  nui showconfig\n"},
    {0},
};
