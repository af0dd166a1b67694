/* bankcli: the bank's commands of the real nui, as its users type them, against the nui-bank of a bankd. */
#ifndef NUI_TESTS_BANK_BANKCLI_H
#define NUI_TESTS_BANK_BANKCLI_H

#include <stddef.h>

#include "tests/unit/bank/bankd.h"

/* Of "alice" …: once before the first run. */
void bankcli_config (struct bankd *d, const char *who);
/* stdout and stderr together in out; returns the exit code, -1 where it ended otherwise. */
int bankcli_run (struct bankd *d, char *out, size_t size, const char *who, const char *words);
/* Fails the test for another exit code, or where `part` is not printed. */
void bankcli_says (struct bankd *d, char *out, size_t size, const char *who, const char *words,
                   int code, const char *part);

#endif
