/* How often a C program of spec/faults has tried the fault of a row. */
#pragma once

#include <stddef.h>

/* Adds `count` tries of `row` ("F11") to the tally of tools/faults.sh: a line in the file that
 * $FAULTS_TALLY names, if that is set. Ends the process when the line cannot be written. */
void faults_tried(const char *row, size_t count);
