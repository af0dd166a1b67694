/* The bank's commands of `nui`. */
#include "bank/cli/util.h"

#define USERS "Users, on the grid"
#define BANK "Bank"

#define COMMON                                                                                     \
    "  --json, --csv, --noheader   output for programs\n"                                          \
    "  --config FILE               instead of ~/.config/nui/nui.cfg\n"

const struct cli_command bank_commands[] = {
    {"balance", USERS, "what my accounts have: granted, settled, in flight, available, scheduled",
     cmd_balance,
     "usage: nui balance [-A ACCOUNT] [--allocations]\n\n"
     "  -A, --account ACCOUNT   this account only; else all you may see\n"
     "  -a, --allocations       one line per allocation, with its validity\n" COMMON
     "\nexample: nui balance -A phys --json\n"},
    {"statement", USERS, "what happened on an account over a period", cmd_statement,
     "usage: nui statement [-A ACCOUNT] [--from TIME] [--to TIME | --period PERIOD]\n\n"
     "  -A, --account ACCOUNT   else ACCOUNT of nui.cfg\n"
     "  --from TIME             from the beginning when left out\n"
     "  --to TIME               exclusive; until now when left out\n"
     "  --period PERIOD         both at once: a month (2026-11), a day (2026-11-21), yesterday\n" COMMON
     "\nexample: nui statement -A phys --from 2026-11-01T00:00\n"},
    {"quote", USERS, "the price of a request, and whether your account can pay it", cmd_quote,
     "usage: nui quote -t WALLTIME --site SITE[,SITE…] [-n PROCS] [-A ACCOUNT] [-q QOS] [-c CLASS]\n"
     "                 [--machine NAME] [--node-type NAME=PROCS]… [--keep TIME [--reusable]]\n"
     "       nui quote list [-A ACCOUNT] [--all]\n"
     "       nui quote show QUOTE\n"
     "       nui quote cancel QUOTE\n\n"
     "  -n, --procs N           processors (1)\n"
     "  -t, --walltime TIME     [[D:]HH:]MM:SS or seconds\n"
     "  --site A,B              sites to be priced\n"
     "  -A, --account ACCOUNT   else ACCOUNT of nui.cfg; list: asked for, else any\n"
     "  -q, --qos, -c, --class, --machine NAME   that rates may look at\n"
     "  --node-type NAME=PROCS  processors on nodes of each type; else those of the dearest\n"
     "  --keep TIME             keep these rates for so long: for the job that is submitted\n"
     "                          with --quote and the name that is printed\n"
     "  --reusable              for any number of my jobs\n"
     "  --all                   list: also used, expired and cancelled ones\n" COMMON
     "\nexample: nui quote -n 8 -t 1:00:00 --site alpha,beta -A phys\n"},
    {"usage", USERS, "what was charged over a period, by user, project, site or account", cmd_usage,
     "usage: nui usage [-A ACCOUNT] [--by KEY[,KEY…]] [--from TIME] [--to TIME | --period PERIOD]\n\n"
     "  -A, --account ACCOUNT   of this account only; else all you may see\n"
     "  --by KEYS               one or more of "
     "user,project,site,account,funder,grant,qos,machine,\n"
     "                          and one of day,week,month (account,user)\n"
     "  --from TIME             from the beginning when left out\n"
     "  --to TIME               exclusive; until now when left out\n"
     "  --period PERIOD         both at once: a month (2026-11), a day (2026-11-21), yesterday\n" COMMON
     "\nexample: nui usage --by site --period 2026-11 --csv\n"},
    {"hold", BANK, "what jobs hold; to place, lengthen and release holds by hand", cmd_hold,
     "usage: nui hold list [-A ACCOUNT] [--stale]\n"
     "       nui hold create -A ACCOUNT --user USER -t WALLTIME --part SITE/JOB/PROCS…\n"
     "       nui hold extend HOLD -t WALLTIME\n"
     "       nui hold release HOLD -d REASON\n\n"
     "  -A, --account ACCOUNT   of this account only; else all you may see\n"
     "  --stale                 only those past their expiry\n"
     "  --part SITE/JOB/PROCS   a job of a site; several: all of them on one account, or none\n"
     "  -u, --user USER         whose job it is\n"
     "  -t, --walltime TIME     of the jobs; extend: the whole of it\n"
     "  --job, --component NAME of the grid\n"
     "  -q, --qos, -c, --class, --machine NAME\n"
     "  --node-type NAME=PROCS  processors on nodes of each type\n"
     "  --quote QUOTE           at the rates that it keeps for the user\n"
     "  -d, --description TEXT  why it is released\n" COMMON "\nexample: nui hold list --stale\n"},
    {"charge", BANK, "charge a job by hand, as its site would have", cmd_charge,
     "usage: nui charge --site SITE --site-job JOB -n PROCS --start TIME --end TIME\n"
     "                  --hold HOLD | --user USER -A ACCOUNT [--partial] [--failed]\n\n"
     "  --hold HOLD             that pays\n"
     "  -u, --user USER, -A, --account ACCOUNT\n"
     "                          who pays, where there is no hold\n"
     "  -n, --procs N           it had\n"
     "  --start, --end TIME     a clock time is the last one: 23:00 in the morning is yesterday's\n"
     "  --partial               more will follow; else it is the job's last charge\n"
     "  --failed                the job did not end well\n"
     "  --incarnation N, --cpu TIME, --job, --component, -q, --qos, -c, --class, --machine,\n"
     "  --node-type NAME=PROCS, --quote QUOTE\n" COMMON
     "\nexample: nui charge --site alpha --site-job alpha.17 --hold hold.4 -n 8 --start 09:00 "
     "--end 09:30\n"},
    {"deposit", BANK, "grant credits to an account", cmd_deposit,
     "usage: nui deposit -A ACCOUNT AMOUNT [--start TIME] [--end TIME] [--description TEXT]\n\n"
     "  -A, --account ACCOUNT   who gets them\n"
     "  --start TIME            when they become available (now)\n"
     "  --end TIME              when they expire (never)\n"
     "  --for KIND=NAME         whom and what they are for, repeated: user=, site=, machine=, "
     "qos=;\n"
     "                          -NAME excludes, ANY and MEMBERS\n"
     "  --grant GRANT           more for an earlier grant\n"
     "  --reference TEXT        an order's number or the like\n"
     "  --again                 another deposit of the same reference\n"
     "  -d, --description TEXT  for the statement\n" COMMON
     "\nexample: nui deposit -A phys 100000 --end 2027-12-31T00:00 -d 'grant PHY-17'\n"},
    {"withdraw", BANK, "take back credits that nothing holds", cmd_withdraw,
     "usage: nui withdraw -A ACCOUNT AMOUNT [--allocation ID] [--description TEXT]\n\n"
     "  -A, --account ACCOUNT   from whom\n"
     "  --allocation ID         from this one; else from those that are valid now, the one that\n"
     "                          ends first first\n"
     "  -d, --description TEXT  for the statement\n" COMMON
     "\nexample: nui withdraw -A phys 500 -d 'returned to the agency'\n"},
    {"transfer", BANK, "move credits between accounts, with their validity", cmd_transfer,
     "usage: nui transfer --from ACCOUNT --to ACCOUNT AMOUNT [--allocation ID] "
     "[--description TEXT]\n\n"
     "  --from, --to ACCOUNT    what arrives is valid as long as what left\n"
     "  --allocation ID         from this one; else from those that are valid now, the one that\n"
     "                          ends first first\n"
     "  -d, --description TEXT  for the statement\n" COMMON
     "\nexample: nui transfer --from phys --to chem 500\n"},
    {"refund", BANK, "give a charge back to the allocations that paid it", cmd_refund,
     "usage: nui refund CHARGE [AMOUNT] [--description TEXT]\n\n"
     "  CHARGE                  the number of its operation, as nui statement shows it\n"
     "  AMOUNT                  all that is not refunded yet when left out\n"
     "  -d, --description TEXT  why, for the statement\n" COMMON
     "\nexample: nui refund 4711 -d 'node failure'\n"},
    {"funder", BANK, "who gives grants", cmd_funder,
     "usage: nui funder create NAME [--description TEXT]\n"
     "       nui funder list\n\n" COMMON
     "\nexample: nui funder create nsf -d 'science foundation'\n"},
    {"grant", BANK, "grants of funders, and how they burn down", cmd_grant,
     "usage: nui grant create AMOUNT -A ACCOUNT --reference TEXT [--funder NAME] [--start TIME]\n"
     "                 [--end TIME] [--for KIND=NAME]… [--description TEXT] [--again]\n"
     "       nui grant list [--funder NAME]\n"
     "       nui grant extend GRANT --end TIME --reason TEXT\n"
     "       nui grant amend GRANT AMOUNT --reason TEXT\n"
     "       nui grant revoke GRANT --reason TEXT\n"
     "       nui grant statement GRANT [--from TIME] [--to TIME | --period PERIOD]\n"
     "                           [--html FILE] [--pdf FILE]\n\n"
     "  -A, --account ACCOUNT   who gets it; nui split passes parts on\n"
     "  --funder NAME           an agency's is its own\n"
     "  --reference TEXT        the funder's number or title\n"
     "  --again                 another grant of the same reference\n"
     "  --start, --end TIME     when it is valid (now; without end)\n"
     "  --reason TEXT           why it ends later, is of another amount, or is no more\n"
     "  --for KIND=NAME         as for nui deposit\n"
     "  --html FILE             a page to be printed, with the burn-down as a plot\n"
     "  --pdf FILE              the same as PDF, by weasyprint\n" COMMON
     "\nexample: nui grant statement grant.1 --from 2026-01-01T00:00 --html phy17.html\n"},
    {"split", BANK, "pass a part of a grant to an account of the same project or one below it",
     cmd_split,
     "usage: nui split --from ACCOUNT --to ACCOUNT AMOUNT [--allocation ID] [--start TIME]\n"
     "                 [--end TIME] [--description TEXT]\n"
     "       nui split back ALLOCATION [AMOUNT] [--description TEXT]\n\n"
     "  back                    what is neither spent nor held of it goes back to where it came from\n"
     "  --allocation ID         of this one; else of those that are valid now, the one that ends\n"
     "                          first first\n"
     "  --start, --end TIME     within what it comes from (the same)\n" COMMON
     "\nexample: nui split --from phys --to lasers 5000 --end 2027-01-01T00:00\n"},
    {"role", BANK, "who manages allocations, and who audits", cmd_role,
     "usage: nui role grant USER manager|auditor\n"
     "       nui role revoke USER manager|auditor\n"
     "       nui role list\n\n" COMMON "\nexample: nui role grant carol auditor\n"},
    {"allocation", BANK, "allocations, how far they may go below zero, and into the next year",
     cmd_allocation,
     "usage: nui allocation list [-A ACCOUNT]\n"
     "       nui allocation modify ALLOCATION --credit-limit CREDITS\n"
     "       nui allocation carry-forward ALLOCATION --until TIME [--cap CREDITS]\n"
     "       nui allocation expire ALLOCATION\n\n"
     "  -A, --account ACCOUNT   of this account only\n"
     "  --credit-limit CREDITS  0: none\n"
     "  --until TIME            the end of what is carried forward\n"
     "  --cap CREDITS           at most so much of what is left\n"
     "  -d, --description TEXT  for the statement\n" COMMON
     "\nexample: nui allocation carry-forward alloc.7 --until 2028-01-01T00:00 --cap 1000\n"},
    {"project", BANK, "projects and who is in them", cmd_project,
     "usage: nui project create NAME [--parent PROJECT] [--description TEXT]\n"
     "       nui project list\n"
     "       nui project add-user PROJECT USER [--role lead]\n"
     "       nui project remove-user PROJECT USER\n"
     "       nui project move PROJECT --parent PROJECT [--description TEXT]\n"
     "       nui project modify PROJECT --add-user USER [--role lead] | --remove-user USER\n\n"
     "  --parent PROJECT        that it is a part of; '' for none\n"
     "  -d, --description TEXT  of a new project; why it is moved\n"
     "  --role member|lead      of a user in the project (member)\n"
     "  USER is a name in this grid or a whole identity, nui://GRID/user/NAME\n" COMMON
     "\nexample: nui project add-user physics alice --role lead\n"},
    {"user", BANK, "people the bank knows", cmd_user,
     "usage: nui user create NAME-OR-IDENTITY\n"
     "       nui user list\n\n" COMMON "\nexample: nui user create alice\n"},
    {"account", BANK, "accounts of projects, who may use them, and where they fall back to",
     cmd_account,
     "usage: nui account create NAME --project PROJECT [--fallback LIST] [--users LIST]\n"
     "       nui account modify NAME --fallback LIST | --users LIST\n"
     "       nui account rename NAME NEW-NAME [--description TEXT]\n"
     "       nui account close NAME --yes [--description TEXT]\n"
     "       nui account reopen NAME [--description TEXT]\n"
     "       nui account list\n\n"
     "  -p, --project PROJECT   whose members may use it\n"
     "  --fallback LIST         [SITE:]ACCOUNT[@QOS],…: tried in this order when it cannot pay, "
     "at\n"
     "                          that site, with that QoS; '' for none\n"
     "  --users LIST            NAME,-NAME,ANY,MEMBERS: who may use it (MEMBERS)\n"
     "  -y, --yes               closes it: what is left goes back to where it came from\n" COMMON
     "\nexample: nui account create phys --project physics --fallback reserve@low,beta:spare\n"},
    {"freeze", BANK, "holds nothing new for a user, an account, a project or a grant", cmd_freeze,
     "usage: nui freeze user:NAME|account:NAME|project:NAME|grant.N --reason TEXT\n\n"
     "  --reason TEXT           why: whoever is refused reads it\n" COMMON
     "\nexample: nui freeze account:phys --reason 'audit until Friday'\n"},
    {"unfreeze", BANK, "ends that", cmd_unfreeze,
     "usage: nui unfreeze user:NAME|account:NAME|project:NAME|grant.N [--reason TEXT]\n\n"
     "  --reason TEXT           for the history\n" COMMON "\nexample: nui unfreeze account:phys\n"},
    {"site", BANK, "what sites may do beyond settling signed jobs, and what they owe for failures",
     cmd_site,
     "usage: nui site modify SITE [--claims yes|no] [--refunds yes|no] [--refund-cap TIME]\n"
     "                            [--refund-minimum CREDITS] [--refund-window TIME]\n"
     "                            [--node-procs N] [--proc-memory SIZE] [--overrun TIME]\n"
     "       nui site list\n\n"
     "  --claims yes|no         whether the site's word is enough for whose job it is, where\n"
     "                          nobody signed it (jobs given to its own cluster); no at "
     "first\n"
     "  --refunds yes|no        whether what a job was charged that lost a node is given back\n"
     "  --refund-cap TIME       at most what so much of the job's time cost; 0: no bound\n"
     "  --refund-minimum CREDITS  less is not given back\n"
     "  --refund-window TIME    nothing where the last charge comes later after the job's end; 0: no bound\n"
     "                          by itself; no at first\n"
     "  --node-procs N          it gives nodes whole, of so many processors: jobs may be charged for\n"
     "                          the nodes that they need; 0: it does not\n"
     "  --proc-memory SIZE      memory that goes with a processor, where it charges processor equivalents\n"
     "  --overrun TIME          jobs may run, and be charged, so long beyond their walltime\n" COMMON "\nexample: nui site modify alpha --claims yes\n"},
    {"rate", BANK, "what a processor-second costs at a site", cmd_rate,
     "usage: nui rate set SITE MULTIPLIER [--from TIME] [--measure wall|cpu|pe] "
     "[--successful-only]\n"
     "                    [--qos NAME=X]… [--class NAME=X]… [--time 'DAYS HH:MM-HH:MM=X']…\n"
     "                    [--machine NAME=X]… [--node-type NAME=X]… [--group X] [--memory RATE]\n"
     "                    [--gres NAME=RATE]…\n"
     "       nui rate list [SITE]\n\n"
     "  MULTIPLIER              credits per processor-second, up to six decimals\n"
     "  --measure WHAT          processor-seconds dedicated (wall), used (cpu), or equivalents "
     "(pe)\n"
     "  --successful-only       other jobs are charged nothing\n"
     "  --qos, --class NAME=X   jobs of that QoS or class cost X times as much; NAME *: of others\n"
     "  --machine NAME=X        of the site, where it has several\n"
     "  --node-type NAME=X      by the processors that the job has on nodes of each type\n"
     "  --time 'DAYS FROM-TO=X' so does time in it, in UTC: 'Mon-Fri 08:00-18:00=1.5'\n"
     "  --group X               so do jobs that reserve several sites for one moment\n"
     "  --memory RATE           credits per 1024 MB and second beside\n"
     "  --gres NAME=RATE        credits per second for one of a generic resource beside\n"
     "  --from TIME             when it begins (now); never in the past\n" COMMON
     "\nexample: nui rate set alpha 1.25 --from 2027-01-01T00:00\n"},
    {"reconcile", BANK, "what a site ran against what the bank charged, and against Slurm's accounting",
     cmd_reconcile,
     "usage: nui reconcile --site SITE [--from TIME] [--to TIME] [--period PERIOD] [--sacct FILE] [--late TIME]\n"
     "                     [--record | --apply]\n"
     "       nui reconcile list [--site SITE] [--all]\n"
     "       nui reconcile own ROW [--owner USER] [--description TEXT]\n"
     "       nui reconcile close ROW --op OPERATION | --description TEXT\n\n"
     "  --site SITE             whose records are compared with the bank's\n"
     "  --from TIME             what ended from then on; from the beginning when left out\n"
     "  --to TIME               exclusive; until now when left out\n"
     "  --period PERIOD         both at once: a month (2026-11), a day (2026-11-21), yesterday\n"
     "  --sacct FILE            what sacct --parsable2 printed, to be compared too\n"
     "  --late TIME             recorded so long after its end is late (1:00:00:00)\n"
     "  --record                keeps what was found as rows at the bank; ends those not found again\n"
     "  --apply                 that, and does what has one right answer: charge, release, refund\n"
     "  --all                   closed rows too\n"
     "  --owner USER            who sees to the row (who calls)\n"
     "  --op OPERATION          that put it right\n"
     "  -d, --description TEXT  why, or what explains it\n" COMMON
     "\nexample: nui reconcile --site alpha --period 2026-11\n"},
    {"anchor", BANK, "the newest block of the bank's history, to be kept outside the bank",
     cmd_anchor,
     "usage: nui anchor [--save FILE]\n\n"
     "  --save FILE             adds the block, with the bank's signature, as a line\n" COMMON
     "\nexample: nui anchor --save anchors\n"},
    {"verify", BANK, "recompute the bank's history, block by block", cmd_verify,
     "usage: nui verify [--from BLOCK] [--headers] [--anchor FILE]\n"
     "       nui verify --rules\n\n"
     "  --from BLOCK            from this block on, trusting what it follows (1)\n"
     "  --headers               signatures and links only, not the operations\n"
     "  --anchor FILE           the history must hold every anchor of the file\n"
     "  --rules                 the ledger's rules instead, recomputed over all of it\n" COMMON
     "\nexample: nui verify --anchor anchors\n"},
    {"clock", BANK, "the bank's clock, and an operator's word that it is right", cmd_clock,
     "usage: nui clock [accept -d REASON]\n\n"
     "  -d, --description TEXT  why it is right, though it is ahead of what the bank can believe\n" COMMON
     "\nexample: nui clock accept -d 'the database host had stood still'\n"},
    {"proof", BANK, "show that an operation is in the bank's signed history", cmd_proof,
     "usage: nui proof OPERATION [--save FILE]\n"
     "       nui proof --check FILE\n\n"
     "  OPERATION               its number, as nui statement shows it\n"
     "  --save FILE             keeps the proof\n"
     "  --check FILE            checks one that was kept; asks nobody\n" COMMON
     "\nexample: nui proof 812 --save proof.812\n"},
    {0}};
