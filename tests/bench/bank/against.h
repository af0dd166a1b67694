/* against: two builds' nui-banks by turns, each on a database of its own of one server: what an operation costs one and
 * the other in CPU time, which what else the machine does disturbs far less than rates. */
#ifndef NUI_TESTS_BENCH_BANK_AGAINST_H
#define NUI_TESTS_BENCH_BANK_AGAINST_H

#include "tests/bench/bank/drive.h"

/* before: the other nui-bank. Measures the parts that `wanted` names for `seconds` each in short turns and prints a table.
 * False: something failed, or an operation costs more than AGAINST_MOST times what it did. */
#define AGAINST_MOST 1.10
bool against (struct pg_fixture *pg, const char *before, long seconds,
              bool (*wanted) (const void *arg, const char *part), const void *arg);

#endif
