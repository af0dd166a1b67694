/* policyconf_known: parameters of Maui 3.3 (its guide, appendix F, and what its showconfig prints)
 * that Nui does not have, each with what there is in its place. A maui.cfg with one of them is taken; the
 * administrator is told. */
#include "local/conf/policyconf_i.h"

#define TOLD CONF_TOLD

static const struct conf_param client_attrs[] = {
    TOLD ("CSKEY", "certificates and the socket's accounts say who asks; there is no shared key"),
    TOLD ("CSALGO", "all connections are TLS 1.3 or a Unix socket"),
    TOLD ("AUTHTYPE", "certificates and the socket's accounts say who asks"),
    TOLD ("HOST", "clients may come from any machine that has their certificate"),
    TOLD ("DEFAULTSUBMITPARTITION", "PDEF says which partition is tried first"),
    {0},
};

static int known_record (void *target, const char *index, void **record_out, struct err *err)
{
    (void)index;
    (void)err;
    *record_out = target;
    return 0;
}

static const char for_servername[] = "SITENAME and the certificate say what this site is called";
static const char for_serverport[] = "LISTEN says where this program listens";
static const char for_servermode[] = "nui-local takes SERVERMODE itself; a simulation has one mode";
static const char for_serverhomedir[] = "STATEDIR says where the daemon keeps what it knows";
static const char for_serverconfigfile[] = "--config says which file is read";
static const char for_admin1[] = "who may do what is a daemon's matter; a simulation asks nobody";
static const char for_adminhost[] =
    "who administers is known by his certificate or account, from any machine";
static const char for_logfile[] = "a simulation writes no log";
static const char for_logfilemaxsize[] = "logrotate(8) turns the log over: SIGHUP opens it anew";
static const char for_checkpointexpirationtime[] =
    "HISTORYTIME says how long jobs that have ended are remembered";
static const char for_clientmaxprimaryretry[] =
    "a client knows its servers from its own configuration";
static const char for_mailprogram[] =
    "NOTIFICATIONPROGRAM and NOTIFICATIONURL hear of what an administrator should know";
static const char for_msgqueryinterval[] =
    "RMPOLLINTERVAL says how often the resource manager is asked; its events come at once";
static const char for_statprocmin[] =
    "processors and times of showgrid's table follow from the jobs";
static const char for_statdepth[] =
    "statistics are kept from job to job; showstats and profiler are asked for any time";
static const char for_rmtype[] = "RMCFG[x] says what the resource manager is";
static const char for_banktype[] =
    "BANK and AMCFG say where the bank is and what becomes of jobs without it";
static const char for_featurenodetypeheader[] = "NODECFG[x] NODETYPE, SPEED and PARTITION say it";
static const char for_userpriocap[] = "USERCFG[x] PRIORITY and USERWEIGHT say it";
static const char for_nodecpuovercommitfactor[] =
    "NODECFG[x] PROCS and MEM say what may be given out";
static const char for_nodeuntrackedloadfactor[] =
    "NODELOADPOLICY and NODEMAXLOAD say what foreign load does";
static const char for_nodebusystatedelaytime[] =
    "NODEDOWNSTATEDELAYTIME says it for nodes that are away";
static const char for_machineprio[] =
    "NODECFG[x] PRIORITY with NODEALLOCATIONPOLICY PRIORITY orders nodes";
static const char for_enablemultinodejobs[] =
    "jobs of several nodes and of several requirements always run";
static const char for_bfminvirtualwalltime[] = "BACKFILLMETRIC and the job's limit decide";
static const char for_fsenablecappriority[] =
    "a target orders jobs; FSTARGET=x^ and FSTARGET=x% are caps, which keep jobs waiting";
static const char for_fstree[] = "targets are said credential by credential: USERCFG[x] FSTARGET";
static const char for_grescfg[] = "NODECFG[x] GRES and NODECFG[GLOBAL] GRES say what there is";
static const char for_attrweight[] = "attributes of jobs have no weight: QOSCFG[x] PRIORITY has";
static const char for_simworkloadtracefile[] = "`nui sim` takes its files and speeds as options";
static const char for_simtimepolicy[] = "a simulation begins with its log's first job";
static const char for_simwcaccuracychange[] =
    "SIMWCACCURACY and SIMWCSCALINGPERCENT say how long jobs run";
static const char for_simcheckpointinterval[] = "a simulation starts from the beginning";
static const char for_ignore[] =
    "nui-local looks at all jobs that it is given: CLASSCFG, USERCFG MAXJOB=0 or a hold keeps some from running";
static const char for_simcomrate[] = "messages between nodes are not simulated";

/* clang-format off */
const struct conf_param policy_known_params[] = {
    {.name = "CLIENTCFG", .type = CONF_RECORD, .attrs = client_attrs, .record = known_record, .flags = CONF_F_TELLS,
     .help = "certificates and the socket's accounts say who asks; there is no shared key"},
    TOLD ("SERVERNAME", for_servername), TOLD ("SERVERHOST", for_servername), TOLD ("DEFAULTDOMAIN", for_servername),
    TOLD ("SERVERPORT", for_serverport), TOLD ("MCSOCKETPROTOCOL", for_serverport),
    TOLD ("SERVERMODE", for_servermode), TOLD ("SCHEDCFG", for_servermode),
    TOLD ("SERVERHOMEDIR", for_serverhomedir), TOLD ("CHECKPOINTFILE", for_serverhomedir),
    TOLD ("LOCKFILE", for_serverhomedir), TOLD ("TOOLSDIR", for_serverhomedir),
    TOLD ("CHECKPOINTWITHDATABASE", for_serverhomedir),
    TOLD ("SERVERCONFIGFILE", for_serverconfigfile), TOLD ("RMCONFIGFILE", for_serverconfigfile),
    TOLD ("FSCONFIGFILE", for_serverconfigfile), TOLD ("GROUPCFGFILE", for_serverconfigfile),
    TOLD ("ADMIN1", for_admin1), TOLD ("ADMIN2", for_admin1), TOLD ("ADMIN3", for_admin1),
    TOLD ("ADMIN4", "there are three levels: ADMIN1, ADMIN2, ADMIN3"),
    TOLD ("ADMINHOST", for_adminhost), TOLD ("ADMINHOSTS", for_adminhost),
    TOLD ("LOGFILE", for_logfile), TOLD ("LOGLEVEL", for_logfile),
    TOLD ("LOGFILEMAXSIZE", for_logfilemaxsize), TOLD ("LOGFILEROLLDEPTH", for_logfilemaxsize),
    TOLD ("LOGDIR", for_logfilemaxsize),
    TOLD ("LOGFACILITY", "the log is a file, or standard error for the journal"),
    TOLD ("CHECKPOINTEXPIRATIONTIME", for_checkpointexpirationtime),
    TOLD ("JOBCPURGETIME", for_checkpointexpirationtime),
    TOLD ("PURGETIME", "what the resource manager no longer names is not forgotten by a clock: HISTORYTIME says how long a job's record is kept, JOBPURGETIME its directory; a node goes with the resource manager's word"),
    TOLD ("CLIENTMAXCONNECTIONS", "CONNECTIONS and its kin bound the connections"),
    TOLD ("CLIENTMAXPRIMARYRETRY", for_clientmaxprimaryretry),
    TOLD ("CLIENTMAXPRIMARYRETRYTIMEOUT", for_clientmaxprimaryretry),
    TOLD ("DISPLAYFLAGS", "commands have --json and --csv for programs"),
    TOLD ("MAILPROGRAM", for_mailprogram), TOLD ("MAILACTION", for_mailprogram),
    TOLD ("FEEDBACKPROGRAM", "a simulation runs no programs"), TOLD ("NOTIFICATIONINTERVAL", for_mailprogram),
    TOLD ("EVENTSERVER", for_mailprogram), TOLD ("GEVENTCFG", for_mailprogram),
    TOLD ("TRAPFUNCTION", for_mailprogram), TOLD ("TRAPJOB", for_mailprogram), TOLD ("TRAPNODE", for_mailprogram),
    TOLD ("TRAPRES", for_mailprogram), TOLD ("MONITOREDJOBS", for_mailprogram),
    TOLD ("MSGQUERYINTERVAL", for_msgqueryinterval), TOLD ("RMMSGIGNORE", for_msgqueryinterval),
    TOLD ("NODEPOLLFREQUENCY", for_msgqueryinterval), TOLD ("MAXSLEEPITERATION", for_msgqueryinterval),
    TOLD ("MINDISPATCHTIME", for_msgqueryinterval), TOLD ("MINADMINSTIME", for_msgqueryinterval),
    TOLD ("STATPROCMIN", for_statprocmin), TOLD ("STATPROCMAX", for_statprocmin),
    TOLD ("STATPROCSTEPCOUNT", for_statprocmin), TOLD ("STATPROCSTEPSIZE", for_statprocmin),
    TOLD ("STATTIMEMIN", for_statprocmin), TOLD ("STATTIMEMAX", for_statprocmin),
    TOLD ("STATTIMESTEPCOUNT", for_statprocmin), TOLD ("STATTIMESTEPSIZE", for_statprocmin),
    TOLD ("PLOTMINTIME", for_statprocmin), TOLD ("PLOTMAXTIME", for_statprocmin),
    TOLD ("PLOTTIMESCALE", for_statprocmin), TOLD ("PLOTMINPROC", for_statprocmin),
    TOLD ("PLOTMAXPROC", for_statprocmin), TOLD ("PLOTPROCSCALE", for_statprocmin),
    TOLD ("STATDEPTH", for_statdepth), TOLD ("STATINTERVAL", for_statdepth), TOLD ("JOBSTATWINDOW", for_statdepth),
    TOLD ("RMTYPE", for_rmtype), TOLD ("RMHOST", for_rmtype), TOLD ("RMSERVER", for_rmtype),
    TOLD ("RMPORT", for_rmtype), TOLD ("RMNMPORT", for_rmtype), TOLD ("RMEPORT", for_rmtype),
    TOLD ("RMNAME", for_rmtype), TOLD ("RMTIMEOUT", for_rmtype), TOLD ("RMAUTHTYPE", for_rmtype),
    TOLD ("RMSUBMITPOLICY", for_rmtype), TOLD ("RMNODESTATEMAP", for_rmtype), TOLD ("RMRETRYTIMECAP", for_rmtype),
    TOLD ("DEFAULTRMNAME", for_rmtype), TOLD ("APIFAILURETHRESHHOLD", for_rmtype),
    TOLD ("APIFAILURETHRESHOLD", for_rmtype),
    TOLD ("NODEPURGETIME", "a node is forgotten when the configuration or the resource manager no longer has it"),
    TOLD ("BANKTYPE", for_banktype), TOLD ("BANKSERVER", for_banktype), TOLD ("BANKPORT", for_banktype),
    TOLD ("BANKTIMEOUT", for_banktype), TOLD ("BANKCHARGEPOLICY", for_banktype),
    TOLD ("BANKNAME", for_banktype), TOLD ("BANKCHARGEMODE", for_banktype), TOLD ("ALLOCATIONPOLICY", for_banktype),
    TOLD ("FEATURENODETYPEHEADER", for_featurenodetypeheader),
    TOLD ("FEATUREPROCSPEEDHEADER", for_featurenodetypeheader),
    TOLD ("FEATUREPARTITIONHEADER", for_featurenodetypeheader), TOLD ("NODETYPE", for_featurenodetypeheader),
    TOLD ("DEFAULTCLASSLIST", "a node takes jobs of every class unless NODECFG[x] CLASS says which"),
    TOLD ("CPUWEIGHT", "PROCWEIGHT is the weight of a job's processors, here and in Maui"),
    TOLD ("XFACTOR", "XFACTORWEIGHT is the weight of the expansion factor, here and in Maui"),
    TOLD ("NOTIFYSCRIPT", "NOTIFICATIONPROGRAM says it"),
    TOLD ("USERPRIOCAP", for_userpriocap), TOLD ("USERPRIOWEIGHT", for_userpriocap),
    TOLD ("NODECFG", "a simulation's nodes come from its resource trace"),
    TOLD ("NODECPUOVERCOMMITFACTOR", for_nodecpuovercommitfactor),
    TOLD ("NODEMEMOVERCOMMITFACTOR", for_nodecpuovercommitfactor),
    TOLD ("NODEUNTRACKEDLOADFACTOR", for_nodeuntrackedloadfactor),
    TOLD ("NODEUNTRACKEDRESDELAYTIME", for_nodeuntrackedloadfactor),
    TOLD ("NODEBUSYSTATEDELAYTIME", for_nodebusystatedelaytime),
    TOLD ("NODEDRAINSTATEDELAYTIME", for_nodebusystatedelaytime),
    TOLD ("NODEDEADDELAYTIME", for_nodebusystatedelaytime),
    TOLD ("MACHINEPRIO", for_machineprio), TOLD ("USELOCALMACHINEPRIORITY", for_machineprio),
    TOLD ("ALLOCLOCALITYPOLICY", for_machineprio),
    TOLD ("PARTITIONMODE", "partitions are made by NODECFG[x] PARTITION"),
    TOLD ("USEMACHINESPEEDFORFS", "fairshare counts what the jobs had, whatever the nodes' speed"),
    TOLD ("ENABLEMULTINODEJOBS", for_enablemultinodejobs), TOLD ("ENABLEMULTIREQJOBS", for_enablemultinodejobs),
    TOLD ("METAMAXTASKS", for_enablemultinodejobs),
    TOLD ("RESOURCELIMITMULTIPLIER", "RESOURCELIMITPOLICY measures against what a job asked for: JOBMAXOVERRUN gives more time"),
    TOLD ("ENFORCERESOURCELIMITS", "RESOURCELIMITPOLICY says it; without it a job is kept to the memory that it asked for"),
    TOLD ("RESCTLPOLICY", "reservations are made by administrators (ADMIN1, ADMIN2) with setres, and by SRCFG"),
    TOLD ("USECPUTIME", "limits are of wallclock time, whatever jobs compute: walltime is what counts of a job's request, cput is told; charges may be of processor time (the bank's rate cards)"),
    TOLD ("JOBMAXSTARTTIME", "a job that does not start in time is requeued: STARTGRACE, DEFERSTARTCOUNT"),
    TOLD ("JOBREJECTPOLICY", "a job that can never run is refused at once, or says in checkjob why it waits"),
    TOLD ("JOBCFG", "CLASSCFG[x] DEFAULT.* gives jobs what they do not say"),
    TOLD ("JOBFBACTION", "AMCFG[x] JFACTION says what becomes of a job that the bank does not take"),
    TOLD ("JOBAGGREGATIONPOLICY", "JOBAGGREGATIONTIME says how long jobs are gathered"),
    TOLD ("ADMINQLIST", "SYSCFG QLIST and QDEF say it for everybody"),
    TOLD ("BFMINVIRTUALWALLTIME", for_bfminvirtualwalltime),
    TOLD ("BFVIRTUALWALLTIMESCALINGFACTOR", for_bfminvirtualwalltime),
    TOLD ("BACKFILLPROCFACTOR", for_bfminvirtualwalltime),
    TOLD ("RESDEPTH", "RESERVATIONDEPTH[n] says how many reservations are made"),
    TOLD ("SRNAME", "SRCFG[name]: the index is the name"),
    TOLD ("USESYSTEMQUEUETIME", "queue time counts by JOBPRIOACCRUALPOLICY"),
    TOLD ("FSSECONDARYGROUPS", "a job counts for the group that it runs in"),
    TOLD ("FSENABLECAPPRIORITY", for_fsenablecappriority),
    TOLD ("FSENFORCEMENT", "each target says how it is kept: FSTARGET=x orders jobs, x+ and x- on one side only, x^ and x% are caps, which keep jobs waiting"),
    TOLD ("FSTREE", for_fstree), TOLD ("FSACCOUNTCAPWEIGHT", for_fstree),
    TOLD ("GRESCFG", for_grescfg), TOLD ("RESOURCECFG", for_grescfg),
    TOLD ("ATTRWEIGHT", for_attrweight), TOLD ("ATTRATTRWEIGHT", for_attrweight),
    TOLD ("ATTRSTATEWEIGHT", for_attrweight), TOLD ("JOBPRIOF", "a job's state and attributes have no weight, only jobs that wait are ordered: QOSCFG[x] PRIORITY or CLASSCFG[x] PRIORITY has"),
    TOLD ("CREDDISCOUNT", "discounts are the bank's rate cards"),
    TOLD ("USECPRSVNODELIST", "RESERVATIONDEPTH and the list of nodes suffice; promised nodes are never told to others"),
    TOLD ("NODEALLOCMAXPS", "nodes are given by NODEALLOCATIONPOLICY, whatever a job's size; SYSTEMMAXPROCSECONDPERJOB and CLASSCFG[x] MAX.PS bound the processor-seconds of a job"),
    TOLD ("SIMWORKLOADTRACEFILE", for_simworkloadtracefile), TOLD ("SIMRESOURCETRACEFILE", for_simworkloadtracefile),
    TOLD ("SIMJOBSUBMISSIONPOLICY", for_simworkloadtracefile),
    TOLD ("SIMINITIALQUEUEDEPTH", for_simworkloadtracefile), TOLD ("SIMAUTOSHUTDOWN", for_simworkloadtracefile),
    TOLD ("SIMSTOPITERATION", for_simworkloadtracefile), TOLD ("SIMEXITITERATION", for_simworkloadtracefile),
    TOLD ("SIMTIMERATIO", for_simworkloadtracefile), TOLD ("SIMWCACCURACY", for_simworkloadtracefile),
    TOLD ("SIMWCSCALINGPERCENT", for_simworkloadtracefile), TOLD ("SIMNODECOUNT", for_simworkloadtracefile),
    TOLD ("SIMFLAGS", for_simworkloadtracefile),
    TOLD ("SIMTIMEPOLICY", for_simtimepolicy), TOLD ("SIMTIME", for_simtimepolicy),
    TOLD ("SIMSTARTTIME", for_simtimepolicy),
    TOLD ("SIMWCACCURACYCHANGE", for_simwcaccuracychange), TOLD ("SIMSCALEJOBRUNTIME", for_simwcaccuracychange),
    TOLD ("SIMNODECONFIGURATION", "SIMRESOURCETRACEFILE or NODECFG say what nodes there are"),
    TOLD ("SIMDEFAULTJOBFLAGS", "jobs have the flags that the log gives them"),
    TOLD ("SIMCHECKPOINTINTERVAL", for_simcheckpointinterval), TOLD ("SIMCPRESTORE", for_simcheckpointinterval),
    TOLD ("SIMCOMRATE", for_simcomrate), TOLD ("SIMCOMTYPE", for_simcomrate),
    TOLD ("COMINTRAFRAMECOST", for_simcomrate), TOLD ("COMINTERFRAMECOST", for_simcomrate),
    TOLD ("COMPUTEHOST", "nodes are named in NODECFG, or by the resource manager"),
    TOLD ("CHECKPOINTINTERVAL", "every change is on disk before it is acknowledged"),
    TOLD ("CLIENTTIMEOUT", "a client gives up by itself what is not answered in time"),
    TOLD ("JOBSYNCTIME", "a job is here what the resource manager says it is, from the moment it says so"),
    TOLD ("JOBSYNCDEADLINE", "a job is here what the resource manager says it is, from the moment it says so"),
    TOLD ("NODESYNCDEADLINE", "a node is here what the resource manager says it is, from the moment it says so"),
    TOLD ("JOBSIZEPOLICY", "PROCWEIGHT, NODEWEIGHT and WALLTIMEWEIGHT order jobs by their size"),
    TOLD ("QOSNAME", "QOSCFG[name]: the index is the name"),
    TOLD ("SIMCPUSCALINGPERCENT", for_simwcaccuracychange),
    TOLD ("SIMRMRANDOMDELAY", "the simulated resource manager answers at once"),
    TOLD ("DEADLINEPOLICY", "a job with a deadline has a reservation that keeps it; one that cannot end in time is ended"),
    TOLD ("DEFAULTACCOUNT", "a user's default account is the bank's"),
    TOLD ("DEFAULTQOS", "USERCFG[DEFAULT] QDEF and SYSCFG QDEF say it"),
    TOLD ("IGNORECLASSES", for_ignore), TOLD ("IGNOREJOBS", for_ignore), TOLD ("IGNOREUSERS", for_ignore),
    TOLD ("IGNORENODES", "mnodectl and the resource manager take nodes out; SRCFG[x] HOSTLIST keeps them for somebody"),
    TOLD ("JOBMAXHOLDTIME", "a hold stays until it is taken away; DEFERTIME bounds a deferral"),
    TOLD ("RMNMHOST", for_rmtype), TOLD ("RMNMSERVER", for_rmtype), TOLD ("RMJOBNAMEFORMAT", for_rmtype),
    TOLD ("MACHINECONFIGFILE", for_serverconfigfile), TOLD ("MAXMETATASKS", for_enablemultinodejobs),
    TOLD ("NODESYNCTIME", "a node is here what the resource manager says it is, from the moment it says so"),
    TOLD ("AMCFG", "a simulation has no bank"),
    TOLD ("SIMIGNOREJOBFLAGS", "the flags of a trace's jobs are never taken"),
    /* Moab's, which Maui's files have picked up */
    TOLD ("INCLUDE", "one file is read: its lines belong into this one"),
    TOLD ("ADMINCFG", "ADMIN1, ADMIN2 and ADMIN3 name who may do what"),
    TOLD ("LOGROLLDEPTH", for_logfilemaxsize),
    TOLD ("JOBMAXNODECOUNT", "CLASSCFG[DEFAULT] MAX.NODE says it"),
    TOLD ("RSVPROFILE", "setres takes what a reservation is from its options, SRCFG[x] from its attributes"),
    TOLD ("ACCOUNTINGINTERFACEURL", for_mailprogram), TOLD ("IDCFG", "who is who is said by USERCFG, GROUPCFG and the bank"),
    TOLD ("FALLBACKACCOUNT", "AMCFG[x] FALLBACKACCOUNT says it"),
    TOLD ("JOBFAILUREACTION", "AMCFG[x] JFACTION says what becomes of a job that the bank does not take"),
    {0},
};

/* clang-format on */
