/* What every C unit test starts with: cmocka and the headers it asks for. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

/* Prints both sides when they differ. */
static inline void assert_str_eq(struct ml_str got, const char *want)
{
    char *text = ml_str_dup(got);
    assert_string_equal(text, want);
    free(text);
}
