/* nui-meta's own keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "meta/conf/config.h"

static struct metad_config *read_text (const char *text, struct conf **conf, struct err *err)
{
    err_clear (err);
    *conf = conf_parse (text, strlen (text), "meta.cfg", err);
    assert_non_null (*conf);
    return metad_config_read (*conf, err);
}

static void defaults_and_values (void **state)
{
    struct conf *conf;
    struct err err;
    (void)state;
    struct metad_config *config = read_text ("BANK b:1\nSITECFG[beta] SERVER=h:2\n"
                                             "SITECFG[alpha] SERVER=h:3\n",
                                             &conf, &err);
    assert_non_null (config);
    assert_string_equal (config->bank, "b:1");
    assert_int_equal (config->site_count, 2);
    assert_string_equal (config->site[0].name, "alpha"); /* canonical order */
    assert_string_equal (config->site[0].server, "h:3");
    assert_int_equal (config->policy.lease, 30 * US_PER_S);
    assert_int_equal (config->policy.lead, 2 * US_PER_S);
    assert_int_equal (config->policy.barrier_timeout, 60 * US_PER_S);
    assert_int_equal (config->policy.prepare_timeout, 10 * US_PER_S);
    assert_int_equal (config->policy.tries_max, 20);
    assert_int_equal (config->horizon, 30 * 86400 * US_PER_S);
    assert_int_equal (config->move_interval, 300 * US_PER_S);
    assert_int_equal (config->move_gain, 60 * US_PER_S);
    assert_int_equal (config->move_share, 20);
    assert_true (config->job_history == TIME_US_MAX);
    metad_config_destroy (config);
    conf_destroy (conf);
    config = read_text (
        "BANK b:1\nLEASETIME 1:00\nCOALLOCLEAD 5\nBARRIERTIMEOUT 7\n"
        "PREPARETIMEOUT 3\nATTEMPTSMAX 4\nJOBHISTORYTIME 7:00:00\nHORIZON 1:00:00\n"
        "GRIDLICENSE[matlab] COUNT=20\nGRIDLICENSE[cad] COUNT=1\nGRIDLICENSE[matlab] COUNT=21\n",
        &conf, &err);
    assert_non_null (config);
    assert_int_equal (config->policy.lease, 60 * US_PER_S);
    assert_int_equal (config->policy.lead, 5 * US_PER_S);
    assert_int_equal (config->policy.barrier_timeout, 7 * US_PER_S);
    assert_int_equal (config->policy.prepare_timeout, 3 * US_PER_S);
    assert_int_equal (config->policy.tries_max, 4);
    assert_int_equal (config->horizon, 3600 * US_PER_S);
    assert_int_equal (config->job_history, 7 * 3600 * US_PER_S);
    assert_int_equal (config->licence_count, 2);
    assert_string_equal (config->licence[0].name, "matlab");
    assert_int_equal (config->licence[0].count, 21);
    metad_config_destroy (config);
    conf_destroy (conf);
}

static void bad_files_are_refused_whole (void **state)
{
    static const char *const bad[][2] = {
        {"SITECFG[a] SERVER=h:1\n", "BANK"},
        {"BANK b:1\nSITECFG[a]\n", "SITECFG"},
        {"BANK b:1\nSITECFG[bad/name] SERVER=h:1\n", "site"},
        {"BANK b:1\nSITECFG[a] SEVRER=h:1\n", "SERVER"},
        {"BANK b:1\nLEASETIME 0\n", "LEASETIME"},
        {"BANK b:1\nLEASETIME 10\nPREPARETIMEOUT 10\n", "PREPARETIMEOUT"},
        {"BANK b:1\nATTEMPTSMAX none\n", "ATTEMPTSMAX"},
        {"BANK b:1\nMETACFG[a] SERVER=h:1\nMETACFG[b] SERVER=h:2\n", "3, 5 or 7"},
        {"BANK b:1\nMETACFG[a] SERVER=h:1\nMETACFG[b] SERVER=h:2\nMETACFG[c]\n", "METACFG"},
        {"BANK b:1\nTAKEOVERTIME 1\n", "TAKEOVERTIME"},
        {"BANK b:1\nGRIDLICENSE[matlab] COUNT=0\n", "COUNT"},
        {"BANK b:1\nGRIDLICENSE[matlab]\n", "GRIDLICENSE"},
        {"BANK b:1\nGRIDLICENSE[a/b] COUNT=1\n", "licence"},
        {"BANK b:1\nJOBHISTORYTIME 0\n", "JOBHISTORYTIME"},
        {"BANK b:1\nJOBHISTORYTIME 1\nMETACFG[a] SERVER=h:1\nMETACFG[b] SERVER=h:2\n"
         "METACFG[c] SERVER=h:3\n",
         "keeps all its jobs"},
        {"BANK b:1\nGRIDUSERCFG[bob]\n", "GRIDUSERCFG"},
        {"BANK b:1\nGRIDUSERCFG[bob] MAXJOB=0\n", "MAXJOB"},
        {"BANK b:1\nGRIDUSERCFG[a/b] MAXJOB=1\n", "user"},
        {"BANK b:1\nGRIDUSERCFG[bob] MAXPROC=2\nMETACFG[a] SERVER=a:1\nMETACFG[b] SERVER=b:1\n"
         "METACFG[c] SERVER=c:1\n",
         "gives out a share"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct conf *conf;
        struct err err;
        struct metad_config *config = read_text (bad[i][0], &conf, &err);
        assert_null (config);
        if (!strstr (err.text, bad[i][1]))
            print_error ("case %zu: '%s'\n", i, err.text);
        assert_non_null (strstr (err.text, bad[i][1]));
        conf_destroy (conf);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (defaults_and_values),
        cmocka_unit_test (bad_files_are_refused_whole),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
