/* L8 cli. Prints JSON as YAML for people: block style, in the order of the text. */
#pragma once

#include "base/str.h"

#include <stdio.h>

/* `json` has been checked. A document of a stream: begins with "---". */
void ml_yaml_print(FILE *out, struct ml_str json);
