/* from_slurm: runs scontrol and sacctmgr, and prints a first configuration of what they say.
 * main.c calls it for --from-slurm instead of starting the daemon. It changes nothing in Slurm
 * and blocks, which is why the daemon must never call it. */
#include "local/rm/slurm/from_slurm.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "proto/base/err.h"
#include "proto/base/quantity.h"
#include "proto/base/strbuf.h"

enum { WORD = 1024, LISTED_MAX = 20 };

struct source {
    const char *bin; /* "" : by PATH */
    const char *grid, *keys, *server;
    struct strbuf config; /* of `scontrol show config` */
    bool qos, shares;     /* some were written */
};

/* --- reading ------------------------------------------------------------------------------ */

/* What a command of Slurm's prints. false: it failed, *out holds its words. */
static bool ask (const struct source *s, const char *command, struct strbuf *out)
{
    char line[8192];
    size_t n;
    snprintf (line, sizeof line, "%s%s%s 2>&1 </dev/null", s->bin, *s->bin ? "/" : "", command);
    strbuf_clear (out);
    FILE *pipe = popen (line, "re");
    if (!pipe)
        return false;
    while ((n = fread (line, 1, sizeof line, pipe)) > 0)
        strbuf_append (out, line, n);
    (void)strbuf_text (out);
    int status = pclose (pipe);
    return WIFEXITED (status) && WEXITSTATUS (status) == 0;
}

/* "Key = value" of scontrol show config; "" when it is not there or "(null)". */
static const char *setting (struct source *s, const char *key, char out[WORD])
{
    size_t len = strlen (key);
    *out = 0;
    for (char *p = strbuf_text (&s->config); p;
         p = strchr (p, '\n') ? strchr (p, '\n') + 1 : NULL) {
        if (strncmp (p, key, len) != 0 || !(p[len] == ' ' || p[len] == '='))
            continue;
        const char *value = p + len + strspn (p + len, " =");
        snprintf (out, WORD, "%.*s", (int)strcspn (value, "\n"), value);
        if (strcmp (out, "(null)") == 0)
            *out = 0;
        break;
    }
    return out;
}

/* Key=value of one line of `scontrol -o`. */
static const char *word (const char *line, const char *key, char out[WORD])
{
    size_t len = strlen (key);
    *out = 0;
    for (const char *p = line; (p = strstr (p, key)); p += len)
        if ((p == line || p[-1] == ' ') && p[len] == '=') {
            snprintf (out, WORD, "%.*s", (int)strcspn (p + len + 1, " \n"), p + len + 1);
            break;
        }
    if (strcmp (out, "(null)") == 0)
        *out = 0;
    return out;
}

/* Part of "a=1,b=2": the value of a name; "". */
static const char *part (const char *list, const char *name, char out[WORD])
{
    size_t len = strlen (name);
    *out = 0;
    for (const char *p = list; *p; p += strcspn (p, ","), p += *p == ',')
        if (strncasecmp (p, name, len) == 0 && p[len] == '=') {
            snprintf (out, WORD, "%.*s", (int)strcspn (p + len + 1, ","), p + len + 1);
            break;
        }
    return out;
}

/* "2-00:00:00", "30:00" (minutes and seconds), "UNLIMITED" (0): seconds. */
static int64_t seconds (const char *text)
{
    long long days = 0, a = 0, b = 0, c = 0;
    const char *dash = strchr (text, '-');
    if (!isdigit ((unsigned char)*text))
        return 0;
    if (dash) {
        days = strtoll (text, NULL, 10);
        text = dash + 1;
    }
    int n = sscanf (text, "%lld:%lld:%lld", &a, &b, &c);
    if (n == 3)
        return days * 86400 + a * 3600 + b * 60 + c;
    if (n == 2)
        return dash ? days * 86400 + a * 3600 + b * 60 : a * 60 + b;
    return dash ? days * 86400 + a * 3600 : a * 60;
}

static bool name_good (const char *name)
{
    return name_check ("name", name, NULL) == 0;
}

/* --- writing ------------------------------------------------------------------------------ */

static void line_end (struct strbuf *attributes, const char *key, const char *name)
{
    if (attributes->len > 0)
        printf ("%s[%s]%s\n", key, name, strbuf_text (attributes));
    strbuf_clear (attributes);
}

static void limit_add (struct strbuf *b, const char *attr, const char *value)
{
    if (*value && isdigit ((unsigned char)*value) && strcmp (value, "-1") != 0)
        strbuf_printf (b, " %s=%lld", attr, strtoll (value, NULL, 10));
}

static void wall_add (struct strbuf *b, const char *attr, const char *value)
{
    int64_t s = seconds (value);
    if (s > 0)
        strbuf_printf (b, " %s=%lld", attr, (long long)s);
}

static void site_write (struct source *s)
{
    char v[WORD], version[WORD], key[WORD], name[WORD];
    snprintf (version, sizeof version, "%s", setting (s, "SLURM_VERSION", v));
    setting (s, "ClusterName", name);
    for (char *c = name; *c; c++)
        if (!isalnum ((unsigned char)*c) && *c != '-' && *c != '_')
            *c = '-';
    printf (
        "# Written by nui-local --from-slurm from cluster %s (Slurm %s). See nui-local(8), maui.cfg(5).\n"
        "GRID     %s\nSITENAME %s\nSOCKET   /run/nui-local/socket\nSTATEDIR /var/lib/nui/local\n"
        "LOGFILE  /var/log/nui/local.log\n"
        "# Made by nui-ca(1): nui-ca issue CA site %s --out %s\n"
        "CA       %s/ca.pem\nCRL      %s/crl.pem\nCERT     %s/cert.pem\nKEY      %s/key.pem\n"
        "# LISTEN, META, BANK and GRIDMAP make it a site of a grid.\n"
        "# Look first, beside Slurm's own scheduler; then NORMAL (and the partitions State=DOWN).\n"
        "SERVERMODE TEST\n\n",
        name, version, s->grid, name, name, s->keys, s->keys, s->keys, s->keys, s->keys);
    part (setting (s, "AuthAltParameters", v), "jwt_key", key);
    if (!*key)
        printf (
            "# Slurm has no AuthAltTypes=auth/jwt with AuthAltParameters=jwt_key=FILE yet: needed.\n");
    char user[WORD];
    setting (s, "SlurmUser", user);
    user[strcspn (user, "(")] = 0;
    printf ("RMCFG[slurm] TYPE=SLURM SERVER=%s KEY=%s USER=%s PARTITION=nui", s->server,
            *key ? key : "/etc/slurm/jwt_hs256.key", *user ? user : "root");
    if (*setting (s, "SLURM_CONF", v))
        printf (" CONF=%s", v);
    if (strcmp (setting (s, "JobCompType", v), "jobcomp/filetxt") == 0)
        printf (" COMPLETIONS=%s", setting (s, "JobCompLoc", key));
    if (strcmp (setting (s, "AccountingStorageType", v), "accounting_storage/slurmdbd") == 0)
        printf (" SACCT=TRUE");
    printf ("\n");
}

/* One class for each partition but the one that is to be ours. */
static bool classes_write (struct source *s)
{
    struct strbuf out = STRBUF_INIT, b = STRBUF_INIT;
    char v[WORD], name[WORD], *save = NULL;
    bool weights = *setting (s, "PriorityWeightPartition", v) && strtoll (v, NULL, 10) > 0,
         ours = false;
    bool ok = ask (s, "scontrol show partition -a -o", &out);
    printf ("\n# Partitions are classes.\n");
    for (char *l = ok ? strtok_r (strbuf_text (&out), "\n", &save) : NULL; l;
         l = strtok_r (NULL, "\n", &save)) {
        static const struct {
            const char *slurm, *ours;
        } lists[] = {{"AllowAccounts", "REQUIREDACCOUNTLIST"},
                     {"AllowGroups", "REQUIREDGROUPLIST"},
                     {"AllowQos", "REQUIREDQOSLIST"},
                     {"DenyAccounts", "EXCLUDEACCOUNTLIST"}};
        word (l, "PartitionName", name);
        if (strcmp (name, "nui") == 0) {
            ours = true;
            continue;
        }
        if (!name_good (name))
            continue;
        wall_add (&b, "MAX.WCLIMIT", word (l, "MaxTime", v));
        wall_add (&b, "DEFAULT.WCLIMIT", word (l, "DefaultTime", v));
        limit_add (&b, "MAX.NODE", word (l, "MaxNodes", v));
        if (strtoll (word (l, "MinNodes", v), NULL, 10) > 1)
            limit_add (&b, "MIN.NODE", v);
        if (weights)
            limit_add (&b, "PRIORITY", word (l, "PriorityJobFactor", v));
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
            if (*word (l, lists[i].slurm, v) && strcmp (v, "ALL") != 0) {
                for (char *c = v; *c; c++)
                    *c = *c == ',' ? ':' : *c;
                strbuf_printf (&b, " %s=%s", lists[i].ours, v);
            }
        if (strncmp (word (l, "OverSubscribe", v), "EXCLUSIVE", 9) == 0)
            strbuf_puts (&b, " NODEACCESSPOLICY=SINGLEJOB");
        line_end (&b, "CLASSCFG", name);
        if (strcmp (word (l, "State", v), "UP") == 0)
            printf ("# %s is State=UP: Slurm starts its jobs itself until you set it to DOWN.\n",
                    name);
        if (*word (l, "QoS", v) && strcmp (v, "N/A") != 0)
            printf ("# %s: the limits of its partition QoS %s are not taken over.\n", name, v);
        if (strtoll (word (l, "PriorityTier", v), NULL, 10) > 1)
            printf ("# %s: PriorityTier=%s has no counterpart; give the class a PRIORITY.\n", name,
                    v);
    }
    if (!ours)
        printf (
            "# In slurm.conf: PartitionName=nui Nodes=ALL State=UP Hidden=YES (see SLURM in nui-local(8)).\n");
    strbuf_free (&out);
    strbuf_free (&b);
    return ok;
}

/* Slurm's factors go from 0 to 1; Maui's are minutes, processors, differences in percent. */
static void priority_write (struct source *s)
{
    char v[WORD], age[WORD];
    printf (
        "\n# Priority. Slurm's factors go from 0 to 1, times a weight; here a weight is for each minute,\n"
        "# processor, priority of a QoS or class, or percent that a share is missed by.\n");
    if (strcmp (setting (s, "PriorityType", v), "priority/multifactor") != 0) {
        printf ("# %s: first come, first served.\nQUEUETIMEWEIGHT 1\n", v);
    } else {
        int64_t max_age = seconds (setting (s, "PriorityMaxAge", age)) / 60;
        double weight = strtod (setting (s, "PriorityWeightAge", v), NULL);
        printf ("QUEUETIMEWEIGHT %.6f\n", max_age > 0 ? weight / (double)max_age : 0.0);
        if (max_age > 0 && weight > 0)
            printf ("SERVCAP %.0f\n", weight);
        weight = strtod (setting (s, "PriorityWeightFairShare", v), NULL);
        if (weight > 0)
            printf ("FSWEIGHT 1\nFSUSERWEIGHT %.6f\nFSACCOUNTWEIGHT %.6f\n", weight / 200,
                    weight / 200);
        weight = strtod (setting (s, "PriorityWeightQOS", v), NULL);
        if (weight > 0)
            printf ("CREDWEIGHT 1\nQOSWEIGHT %.6f\n", weight / 100);
        double class = strtod (setting (s, "PriorityWeightPartition", v), NULL);
        if (class > 0)
            printf ("%sCLASSWEIGHT %.6f\n", weight > 0 ? "" : "CREDWEIGHT 1\n", class / 100);
        weight = strtod (setting (s, "PriorityWeightJobSize", v), NULL);
        if (weight > 0)
            printf (
                "# PriorityWeightJobSize=%.0f is of the share of the cluster: divide it by its processors.\n"
                "RESWEIGHT 1\nPROCWEIGHT 1\n",
                weight);
        if (*setting (s, "PriorityWeightTRES", v))
            printf ("# PriorityWeightTRES=%s has no counterpart.\n", v);
        printf ("FSPOLICY DEDICATEDPS\n");
        int64_t half = seconds (setting (s, "PriorityDecayHalfLife", v));
        if (half >
            0) /* seven windows of half a half-life each: what is older weighs less than a tenth */
            printf ("FSINTERVAL %lld\nFSDEPTH 8\nFSDECAY 0.707\n", (long long)half / 2);
    }
    setting (s, "SchedulerType", v);
    printf ("BACKFILLPOLICY %s\n",
            strcmp (v, "sched/backfill") == 0 ? "FIRSTFIT\nRESERVATIONDEPTH 1" : "NONE");
}

/* Fields of `sacctmgr -nP`. */
static void split (char *line, char **field, int count)
{
    for (int i = 0; i < count; i++)
        field[i] = line ? strsep (&line, "|") : (char *)"";
}

static void qos_write (struct source *s)
{
    struct strbuf out = STRBUF_INIT, b = STRBUF_INIT;
    char v[WORD], *save = NULL, *f[7];
    if (!ask (
            s,
            "sacctmgr -nP show qos format=Name,Priority,GrpJobs,GrpTRES,MaxWall,MaxJobsPU,Preempt",
            &out)) {
        printf (
            "\n# No QoS and associations: sacctmgr has no database here. Of such a Slurm, a word qos:NAME in\n"
            "# a job's comment is its QoS.\n");
        strbuf_free (&out);
        return;
    }
    printf ("\n# QoS.\n");
    for (char *l = strtok_r (strbuf_text (&out), "\n", &save); l;
         l = strtok_r (NULL, "\n", &save)) {
        split (l, f, 7);
        if (!name_good (f[0]))
            continue;
        limit_add (&b, "PRIORITY", f[1]);
        limit_add (&b, "MAXJOB", f[2]);
        limit_add (&b, "MAXPROC", part (f[3], "cpu", v));
        limit_add (&b, "MAXNODE", part (f[3], "node", v));
        limit_add (&b, "MAXJOB[USER]", f[5]);
        if (*f[6])
            strbuf_puts (&b, " QFLAGS=PREEMPTOR");
        s->qos |= b.len > 0;
        line_end (&b, "QOSCFG", f[0]);
        if (*f[4])
            printf ("# QoS %s: MaxWall=%s is kept by Slurm.\n", f[0], f[4]);
        if (*f[6])
            printf (
                "# QoS %s may evict %s; here a job is evicted if its QoS says QFLAGS=PREEMPTEE.\n",
                f[0], f[6]);
    }
    strbuf_free (&out);
    strbuf_free (&b);
}

/* Accounts and users: shares among their brothers as percentages, group limits. */
static void associations_write (struct source *s)
{
    enum { ACCOUNT, USER, SHARE, PARENT, JOBS, TRES, MAXJOBS, QOS, DEFQOS, FIELDS };
    struct strbuf out = STRBUF_INIT, b = STRBUF_INIT;
    char v[WORD], cluster[WORD], command[WORD + 200], *save = NULL, *f[FIELDS];
    setting (s, "ClusterName", cluster);
    if (!name_good (cluster))
        return;
    snprintf (
        command, sizeof command,
        "sacctmgr -nP show assoc cluster=%s format=Account,User,Share,ParentName,GrpJobs,GrpTRES,MaxJobs,"
        "QOS,DefaultQOS",
        cluster);
    if (!ask (s, command, &out)) {
        strbuf_free (&out);
        return;
    }
    double sum = 0; /* of the shares of top accounts */
    char *copy = strdup (strbuf_text (&out));
    for (char *l = copy ? strtok_r (copy, "\n", &save) : NULL; l;
         l = strtok_r (NULL, "\n", &save)) {
        split (l, f, FIELDS);
        if (!*f[USER] && strcmp (f[PARENT], "root") == 0)
            sum += strtod (f[SHARE], NULL);
    }
    free (copy);
    printf (
        "\n# Associations: accounts, then users. Shares of accounts under root are percentages of all.\n");
    for (char *l = strtok_r (strbuf_text (&out), "\n", &save); l;
         l = strtok_r (NULL, "\n", &save)) {
        split (l, f, FIELDS);
        bool user = *f[USER], top = !user && strcmp (f[PARENT], "root") == 0;
        const char *name = user ? f[USER] : f[ACCOUNT];
        if (!name_good (name) || strcmp (name, "root") == 0)
            continue;
        if (top && sum > 0)
            strbuf_printf (&b, " FSTARGET=%.2f", 100 * strtod (f[SHARE], NULL) / sum);
        limit_add (&b, "MAXJOB", *f[JOBS] ? f[JOBS] : f[MAXJOBS]);
        limit_add (&b, "MAXPROC", part (f[TRES], "cpu", v));
        if (user && *f[QOS] && strcmp (f[QOS], "normal") != 0) {
            for (char *c = f[QOS]; *c; c++)
                *c = *c == ',' ? ':' : *c;
            strbuf_printf (&b, " QLIST=%s", f[QOS]);
            if (*f[DEFQOS])
                strbuf_printf (&b, " QDEF=%s", f[DEFQOS]);
        }
        line_end (&b, user ? "USERCFG" : "ACCOUNTCFG", name);
        if (!user && !top && *f[PARENT])
            printf ("# Account %s is under %s in Slurm; here accounts have no tree.\n", name,
                    f[PARENT]);
    }
    strbuf_free (&out);
    strbuf_free (&b);
}

/* Nodes, their weights and licences are Slurm's to tell while nui-local runs. */
static bool nodes_write (struct source *s)
{
    struct strbuf out = STRBUF_INIT;
    char name[WORD], v[WORD], first[WORD] = "", *save = NULL;
    uint32_t count = 0;
    bool weights = false;
    bool ok = ask (s, "scontrol show node -o", &out);
    printf (
        "\n# Nodes, with processors, memory, features, gres and state, come from Slurm while it runs:\n");
    for (char *l = ok ? strtok_r (strbuf_text (&out), "\n", &save) : NULL; l;
         l = strtok_r (NULL, "\n", &save)) {
        if (!*word (l, "NodeName", name))
            continue;
        word (l, "Weight", v);
        weights |= *first && strcmp (first, v) != 0;
        snprintf (first, sizeof first, "%s", v);
        if (++count > LISTED_MAX)
            continue;
        printf ("#   %s", name);
        static const char *const keys[] = {"CPUTot", "RealMemory", "AvailableFeatures", "Gres",
                                           "Weight"};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (*word (l, keys[i], v))
                printf (" %s=%s", keys[i], v);
        printf ("\n");
    }
    if (count > LISTED_MAX)
        printf ("#   and %u more\n", count - LISTED_MAX);
    printf (
        "%s",
        weights
            ? "# Their weights differ: the lowest is taken first.\nNODEALLOCATIONPOLICY PRIORITY\n"
            : "NODEALLOCATIONPOLICY MINRESOURCE\n");
    if (ask (s, "scontrol show licenses -o", &out) && strstr (strbuf_text (&out), "LicenseName=")) {
        printf ("# So do licences:\n");
        for (char *l = strtok_r (strbuf_text (&out), "\n", &save); l;
             l = strtok_r (NULL, "\n", &save))
            printf ("#   %s\n", l);
    }
    strbuf_free (&out);
    return ok;
}

/* --- the program -------------------------------------------------------------------------- */

static int usage (int code)
{
    fprintf (
        code ? stderr : stdout,
        "usage: nui-local --from-slurm [--bin DIR] [--grid NAME] [--keys DIR] [--server URL]\n"
        "Prints a first configuration, read from the running Slurm (SLURM_CONF or Slurm's default).\n"
        "  --bin DIR      where scontrol and sacctmgr are (by PATH)\n"
        "  --grid NAME    the grid's name (grid)\n"
        "  --keys DIR     of ca.pem, crl.pem, cert.pem and key.pem (/etc/nui)\n"
        "  --server URL   slurmrestd (http://localhost:6820)\n");
    return code;
}

int from_slurm_main (int argc, char **argv)
{
    static const struct option options[] = {
        {"bin", required_argument, NULL, 'b'},  {"grid", required_argument, NULL, 'g'},
        {"keys", required_argument, NULL, 'k'}, {"server", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},       {0}};
    struct source s = {
        .bin = "", .grid = "grid", .keys = "/etc/nui", .server = "http://localhost:6820"};
    int c;
    while ((c = getopt_long (argc, argv, "h", options, NULL)) != -1)
        switch (c) {
        case 'b':
            s.bin = optarg;
            break;
        case 'g':
            s.grid = optarg;
            break;
        case 'k':
            s.keys = optarg;
            break;
        case 's':
            s.server = optarg;
            break;
        default:
            return usage (c == 'h' ? 0 : 2);
        }
    if (optind < argc || strpbrk (s.bin, "'\"\\$`;&|<> \n"))
        return usage (2);
    if (!name_good (s.grid)) {
        fprintf (stderr, "nui-local: --grid %s is no name\n", s.grid);
        return 2;
    }
    bool ok = ask (&s, "scontrol show config", &s.config);
    if (ok) {
        site_write (&s);
        ok = classes_write (&s) && nodes_write (&s);
        priority_write (&s);
        qos_write (&s);
        associations_write (&s);
    }
    if (!ok) {
        const char *said = strbuf_text (&s.config);
        fprintf (stderr, "nui-local: Slurm cannot be read with scontrol: %.*s\n",
                 (int)strcspn (said, "\n"), *said ? said : "nothing was said");
    }
    strbuf_free (&s.config);
    if (fflush (stdout) != 0 || ferror (stdout)) {
        fprintf (stderr, "nui-local: the configuration cannot be written: %s\n", strerror (errno));
        return 1;
    }
    return ok ? 0 : 1;
}
