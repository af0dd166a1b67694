/* What the tests of proto share: cmocka and two shorthands. */
#ifndef NUI_TESTS_UNIT_H
#define NUI_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/base/err.h"

#define assert_ok(rc, err)                                                                         \
    do {                                                                                           \
        if ((rc) < 0)                                                                              \
            fail_msg ("unexpected error %s: %s", err_code_name ((err).code), (err).text);          \
    } while (0)

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (!strstr ((text), (part)))                                                              \
            fail_msg ("'%s' does not contain '%s'", (text), (part));                               \
    } while (0)

#endif
