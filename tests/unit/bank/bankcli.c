/* bankcli: `nui` run against the rig's real nui-bank, as somebody, with what it says and its exit code kept. */
#include "tests/unit/bank/bankcli.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void bankcli_config (struct bankd *d, const char *who)
{
    char path[512];
    snprintf (path, sizeof (path), "%s/%s.cfg", d->dir, who);
    FILE *f = fopen (path, "w");
    assert_non_null (f);
    fprintf (f, "GRID test\nCA ca.pem\nCRL ca.crl\nCERT %s.pem\nKEY %s.key\nBANK %s\n", who, who,
             d->target);
    fclose (f);
}

int bankcli_run (struct bankd *d, char *out, size_t size, const char *who, const char *words)
{
    char command[2048];
    snprintf (command, sizeof (command), "NUI_CONFIG=%s/%s.cfg '%s' %s 2>&1", d->dir, who,
              NUI_PROGRAM, words);
    FILE *p = popen (command, "r");
    assert_non_null (p);
    size_t len = fread (out, 1, size - 1, p);
    out[len] = '\0';
    int status = pclose (p);
    return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

void bankcli_says (struct bankd *d, char *out, size_t size, const char *who, const char *words,
                   int code, const char *part)
{
    int got = bankcli_run (d, out, size, who, words);
    if (got != code || !strstr (out, part))
        fail_msg ("nui %s as %s: exit %d, wanted %d and '%s'; it printed:\n%s", words, who, got,
                  code, part, out);
}
