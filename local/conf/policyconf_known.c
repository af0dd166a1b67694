/* policyconf_known: parameters of Maui 3.3 (its guide, appendix F, and what its showconfig prints)
 * that Nui does not have. A maui.cfg with one of them is taken; the administrator is told. */
#include "local/conf/policyconf_i.h"

#define KNOWN(key)                                                                                 \
    {                                                                                              \
        .name = key, .type = CONF_UNSUPPORTED, .flags = CONF_F_INDEX                               \
    }

/* Its matter is settled in another way, which the note says. */
#define TOLD(key, sentence)                                                                        \
    {                                                                                              \
        .name = key, .type = CONF_UNSUPPORTED, .flags = CONF_F_INDEX, .why = sentence              \
    }

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

/* clang-format off */
const struct conf_param policy_known_params[] = {
    /* server, files, administrators */
    KNOWN ("SERVERHOST"), 
    TOLD ("SERVERPORT", "LISTEN says where this program listens"),
    KNOWN ("SERVERMODE"), KNOWN ("SERVERNAME"),
    KNOWN ("SERVERHOMEDIR"), KNOWN ("SERVERCONFIGFILE"), KNOWN ("SCHEDCFG"), KNOWN ("ADMIN1"),
    KNOWN ("ADMIN2"), KNOWN ("ADMIN3"), KNOWN ("ADMIN4"), KNOWN ("ADMINHOST"),
    KNOWN ("ADMINHOSTS"), KNOWN ("LOGFILE"), KNOWN ("LOGFILEMAXSIZE"), KNOWN ("LOGFILEROLLDEPTH"),
    KNOWN ("LOGLEVEL"), KNOWN ("LOGFACILITY"), KNOWN ("LOGDIR"),
    KNOWN ("TOOLSDIR"), KNOWN ("LOCKFILE"), KNOWN ("CHECKPOINTFILE"),
    
    TOLD ("CHECKPOINTINTERVAL", "every change is on disk before it is acknowledged"),
    KNOWN ("CHECKPOINTEXPIRATIONTIME"),
    KNOWN ("CHECKPOINTWITHDATABASE"), 
    {.name = "CLIENTCFG", .type = CONF_RECORD, .attrs = client_attrs, .record = known_record},
    
    TOLD ("CLIENTTIMEOUT", "a client gives up by itself what is not answered in time"),
   
    KNOWN ("CLIENTMAXCONNECTIONS"), KNOWN ("CLIENTMAXPRIMARYRETRY"),
    KNOWN ("CLIENTMAXPRIMARYRETRYTIMEOUT"), KNOWN ("DEFAULTDOMAIN"), KNOWN ("DISPLAYFLAGS"),
    KNOWN ("MAILPROGRAM"), KNOWN ("NOTIFICATIONINTERVAL"),
    KNOWN ("MSGQUERYINTERVAL"), KNOWN ("TRAPFUNCTION"), KNOWN ("TRAPJOB"), KNOWN ("TRAPNODE"),
    KNOWN ("TRAPRES"), KNOWN ("MONITOREDJOBS"), KNOWN ("MCSOCKETPROTOCOL"),
    KNOWN ("USECPRSVNODELIST"), KNOWN ("STATPROCMIN"), KNOWN ("STATPROCMAX"),
    KNOWN ("STATPROCSTEPCOUNT"), KNOWN ("STATPROCSTEPSIZE"), KNOWN ("STATTIMEMIN"),
    KNOWN ("STATTIMEMAX"), KNOWN ("STATTIMESTEPCOUNT"), KNOWN ("STATTIMESTEPSIZE"),
    KNOWN ("PLOTMINTIME"), KNOWN ("PLOTMAXTIME"), KNOWN ("PLOTTIMESCALE"), KNOWN ("PLOTMINPROC"),
    KNOWN ("PLOTMAXPROC"), KNOWN ("PLOTPROCSCALE"), KNOWN ("STATDEPTH"), KNOWN ("STATINTERVAL"),
    KNOWN ("JOBSTATWINDOW"),
    /* resource managers and allocation managers */
    KNOWN ("RMCFG"), KNOWN ("RMTYPE"), KNOWN ("RMHOST"), KNOWN ("RMSERVER"), KNOWN ("RMPORT"),
    KNOWN ("RMNMPORT"), KNOWN ("RMEPORT"), KNOWN ("RMNAME"), KNOWN ("RMTIMEOUT"),
    KNOWN ("RMAUTHTYPE"), KNOWN ("RMCONFIGFILE"), KNOWN ("RMSUBMITPOLICY"),
    KNOWN ("RMNODESTATEMAP"), KNOWN ("RMRETRYTIMECAP"), KNOWN ("RMMSGIGNORE"),
    KNOWN ("APIFAILURETHRESHHOLD"), KNOWN ("APIFAILURETHRESHOLD"), KNOWN ("NODEPOLLFREQUENCY"),
    
    TOLD ("JOBSYNCTIME", "a job is here what the resource manager says it is, from the moment it says so"),
    
    TOLD ("NODESYNCTIME", "a node is here what the resource manager says it is, from the moment it says so"),
   
    KNOWN ("NODEPURGETIME"), 
    TOLD ("AMCFG", "a simulation has no bank"),
    KNOWN ("BANKTYPE"), KNOWN ("BANKSERVER"),
    KNOWN ("BANKPORT"), KNOWN ("BANKTIMEOUT"), KNOWN ("BANKCHARGEPOLICY"),
    KNOWN ("BANKFALLBACKACCOUNT"), KNOWN ("BANKDEFERJOBONFAILURE"), KNOWN ("BANKNAME"),
    KNOWN ("ALLOCATIONPOLICY"), KNOWN ("FEATURENODETYPEHEADER"), KNOWN ("FEATUREPROCSPEEDHEADER"),
    KNOWN ("FEATUREPARTITIONHEADER"), KNOWN ("DEFAULTCLASSLIST"), KNOWN ("DEFAULTRMNAME"),
    KNOWN ("EVENTSERVER"), KNOWN ("GEVENTCFG"), KNOWN ("USERPRIOCAP"), KNOWN ("USERPRIOWEIGHT"),
    /* nodes */
    KNOWN ("NODECFG"),   
    KNOWN ("NODECPUOVERCOMMITFACTOR"),
    KNOWN ("NODEMEMOVERCOMMITFACTOR"), KNOWN ("NODEUNTRACKEDLOADFACTOR"),
    KNOWN ("NODEUNTRACKEDRESDELAYTIME"),
    KNOWN ("NODEBUSYSTATEDELAYTIME"), KNOWN ("NODEDRAINSTATEDELAYTIME"),
    KNOWN ("NODEDEADDELAYTIME"),
   
    KNOWN ("NODETYPE"),
    KNOWN ("MACHINEPRIO"), KNOWN ("PARTITIONMODE"),
    KNOWN ("USEMACHINESPEEDFORFS"), KNOWN ("USELOCALMACHINEPRIORITY"),
    KNOWN ("ALLOCLOCALITYPOLICY"),
    KNOWN ("ENABLEMULTINODEJOBS"), KNOWN ("ENABLEMULTIREQJOBS"), KNOWN ("MINDISPATCHTIME"),
    KNOWN ("RESOURCELIMITPOLICY"), KNOWN ("RESOURCELIMITMULTIPLIER"), KNOWN ("RESCTLPOLICY"),
    /* jobs, preemption, reservations */
    KNOWN ("JOBMAXSTARTTIME"), KNOWN ("JOBREJECTPOLICY"),
    KNOWN ("JOBCFG"), KNOWN ("JOBFBACTION"), KNOWN ("JOBCPURGETIME"),
    KNOWN ("JOBAGGREGATIONPOLICY"), KNOWN ("MAXJOBPERUSERPOLICY"), KNOWN ("MAXJOBPERUSERCOUNT"),
    KNOWN ("MAXJOBPERGROUPPOLICY"), KNOWN ("MAXJOBPERGROUPCOUNT"),
    KNOWN ("MAXJOBPERACCOUNTPOLICY"), KNOWN ("MAXJOBPERACCOUNTCOUNT"),
    KNOWN ("MAXJOBQUEUEDPERUSERPOLICY"), KNOWN ("MAXJOBQUEUEDPERUSERCOUNT"),
    KNOWN ("MAXPROCPERUSERPOLICY"), KNOWN ("MAXPROCPERUSERCOUNT"), KNOWN ("MAXNODEPERUSERPOLICY"),
    KNOWN ("MAXNODEPERUSERCOUNT"), KNOWN ("MAXPSPERUSERPOLICY"), KNOWN ("MAXPSPERUSERCOUNT"),
    KNOWN ("MAXPEPERUSERPOLICY"), KNOWN ("MAXPEPERUSERCOUNT"), KNOWN ("MAXWCPERUSERPOLICY"),
    KNOWN ("MAXWCPERUSERCOUNT"), KNOWN ("MAXSLEEPITERATION"), KNOWN ("MINADMINSTIME"),
    KNOWN ("METAMAXTASKS"),
    KNOWN ("ADMINQLIST"),
    KNOWN ("BFMINVIRTUALWALLTIME"), KNOWN ("BFVIRTUALWALLTIMESCALINGFACTOR"),
    KNOWN ("BACKFILLPROCFACTOR"), KNOWN ("RESDEPTH"), 
    
    KNOWN ("SRNAME"), 
    
    KNOWN ("USESYSTEMQUEUETIME"), KNOWN ("FSCONFIGFILE"),
    KNOWN ("FSSECONDARYGROUPS"), KNOWN ("FSENABLECAPPRIORITY"), KNOWN ("FSTREE"),
    KNOWN ("GRESCFG"), KNOWN ("RESOURCECFG"), KNOWN ("ATTRWEIGHT"), KNOWN ("ATTRATTRWEIGHT"),
    KNOWN ("ATTRSTATEWEIGHT"), KNOWN ("CREDDISCOUNT"), KNOWN ("GROUPCFGFILE"),
    KNOWN ("FSACCOUNTCAPWEIGHT"),
    /* simulation: `nui sim` takes its files as options */
    KNOWN ("SIMWORKLOADTRACEFILE"), KNOWN ("SIMRESOURCETRACEFILE"),
    KNOWN ("SIMJOBSUBMISSIONPOLICY"), KNOWN ("SIMINITIALQUEUEDEPTH"), KNOWN ("SIMAUTOSHUTDOWN"),
    KNOWN ("SIMSTOPITERATION"), KNOWN ("SIMEXITITERATION"), KNOWN ("SIMTIMERATIO"),
    KNOWN ("SIMTIMEPOLICY"), KNOWN ("SIMTIME"), KNOWN ("SIMSTARTTIME"), KNOWN ("SIMWCACCURACY"),
    KNOWN ("SIMWCACCURACYCHANGE"), KNOWN ("SIMWCSCALINGPERCENT"), KNOWN ("SIMSCALEJOBRUNTIME"),
    KNOWN ("SIMNODECOUNT"), KNOWN ("SIMNODECONFIGURATION"), KNOWN ("SIMFLAGS"),
    
    TOLD ("SIMIGNOREJOBFLAGS", "the flags of a trace's jobs are never taken"),
    KNOWN ("SIMCOMRATE"), KNOWN ("SIMCOMTYPE"),
    KNOWN ("SIMDEFAULTJOBFLAGS"), KNOWN ("SIMCHECKPOINTINTERVAL"), KNOWN ("SIMCPRESTORE"),
    KNOWN ("COMINTRAFRAMECOST"), KNOWN ("COMINTERFRAMECOST"), KNOWN ("COMPUTEHOST"),
    {0},
};

/* nui-local(8)'s own: its file may be given to `nui sim` as it is. No part of a policy. */
static int pass_over (void *target, const struct conf_value *value, struct err *err)
{
    (void)target;
    (void)value;
    (void)err;
    return 0;
}

#define SITE(key)                                                                                  \
    {                                                                                              \
        .name = key, .type = CONF_CALL, .set = pass_over, .flags = CONF_F_INDEX                    \
    }

const struct conf_param policy_site_params[] = {
    SITE ("GRID"), SITE ("STATEDIR"), SITE ("LISTEN"), SITE ("SOCKET"), SITE ("PORTFILE"),
    SITE ("PIDFILE"), SITE ("LOGFILE"), SITE ("LOGLEVEL"), SITE ("CA"), SITE ("CRL"), SITE ("CERT"),
    SITE ("CONNECTIONS"), SITE ("CONNECTIONSPERUSER"), SITE ("CONNECTIONSPERADDRESS"),
    SITE ("HANDSHAKES"), SITE ("CALLRATE"), SITE ("KEY"), SITE ("SITENAME"), SITE ("META"), SITE ("BANK"), SITE ("GRIDMAP"),
    SITE ("JOBDIR"), SITE ("SUPERVISE"), SITE ("ADVERTISE"), SITE ("PORTRANGE"), SITE ("HORIZON"),
    SITE ("LEASEMAX"), SITE ("STARTGRACE"), SITE ("KILLGRACE"), SITE ("CLOCKTOLERANCE"),
    SITE ("BANKPATIENCE"), SITE ("CGROUPS"), SITE ("RMCFG"), SITE ("NODECFG"), SITE ("TOPOLOGYFILE"), SITE ("PEERCAP"),
    SITE ("GRIDCFG"), SITE ("REPLAYWINDOW"),
    SITE ("STATDIR"), SITE ("JOBPURGETIME"), SITE ("HISTORYTIME"),
    SITE ("CHECKPOINTHOOK"), SITE ("JOBACTIONONNODEFAILURE"), SITE ("NOTIFICATIONPROGRAM"),
    SITE ("NOTIFICATIONURL"), SITE ("NOTIFICATIONEVENTS"),
    {0},
};
/* clang-format on */
