/* L6 operator. A script's own tests: the *_test.lua beside it in its source, which a new version
 * has to pass before it goes live. The world that they need is not in the image; a program that has
 * one gives the operator a struct ml_tester.
 *
 * The tests of a version: for each file NAME.lua that it was loaded from, NAME_test.lua. */
#pragma once

#include "operator/files.h"
#include "state/services.h"

#define ML_TESTS_CPU_S 10 /* of all tests of a version together */

/* ---- what runs them ---- */

enum ml_tests_outcome {
    ML_TESTS_PASS,
    ML_TESTS_FAIL, /* the error has file:line, the first test's name, and why it fails */
    ML_TESTS_LOST, /* they could not be run; the error says why */
};

/* `err` is meaningful unless the tests pass. */
typedef void ml_tests_done(void *context, enum ml_tests_outcome outcome, const struct ml_err *err);

struct ml_tests_job {
    const struct ml_files *files; /* scripts and tests, by names that differ */
    const char *const *tests;     /* names of the files to run; ends with NULL */
    /* Where the world's CustomResourceDefinitions are: in the folder `crds`; NULL: in these files,
     * each with one as JSON. */
    const char *crds;
    const struct ml_files *definitions;
    /* Of the files. A test may read what is in it and beside it, and a path in a test begins at the
     * working folder, as in `moonloop test`. NULL: a path begins at the copies of the files, and
     * nothing else is to be read. */
    const char *folder;
};

struct ml_tests_run;

struct ml_tester {
    /* Begins a run, or has it wait for others; all is copied. `done` is called once, later from the
     * loop; the run is gone then. */
    struct ml_tests_run *(*begin)(struct ml_tester *tester, struct ml_loop *loop,
                                  const struct ml_tests_job *job, ml_tests_done *done,
                                  void *context);
    void (*cancel)(struct ml_tests_run *run); /* ends it; `done` is not called any more */
};

/* ---- of a new version ---- */

struct ml_own_tests;

struct ml_own_tests_opts {
    struct ml_services *services;
    struct ml_tester *tester;
    const struct ml_declaration *declaration;
    const struct ml_files *version; /* that it was loaded from */
    const struct ml_files *scripts; /* all of its source; those of the version come first */
    const struct ml_files *tests;   /* all of its source */
    const char *folder;             /* of its source; NULL: a ConfigMap */
    ml_tests_done *done;            /* once, later from the loop; the struct is gone then */
    void *context;
};

/* Copies all it needs but services and tester. CustomResourceDefinitions are those of a folder
 * crds/ in or beside the source's; where there is none, those of the API server that the script
 * declares. NULL: the version has no tests. */
struct ml_own_tests *ml_own_tests_new(const struct ml_own_tests_opts *opts);
void ml_own_tests_cancel(struct ml_own_tests *tests); /* NULL is fine */
