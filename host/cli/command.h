/* L8 cli. The subcommands, each a table in its own file: name, help, options and function. One
 * routine parses the command line of all of them, prints their help and their errors. Options are
 * `--name VALUE`, `--name=VALUE` and `--flag`; an option that may be repeated collects its values.
 */
#pragma once

#include <stddef.h>

#include "codec/json.h"

struct ml_tester;

#define ML_OPTION_VALUES_MAX 64

enum ml_option_type {
    ML_OPTION_FLAG,     /* bool */
    ML_OPTION_TEXT,     /* const char * */
    ML_OPTION_MAY_TEXT, /* const char *: --name=VALUE, or --name, which is "" */
    ML_OPTION_LIST,     /* struct ml_option_list; repeated or comma-free */
    ML_OPTION_SIZE,     /* size_t of bytes: 16Mi, 512Ki, 1000000 */
    ML_OPTION_COUNT,    /* int, 0 or more */
    ML_OPTION_SECONDS,  /* int */
    ML_OPTION_DURATION, /* int of milliseconds, above 0: 15s, 1m30s, 500ms, as Go writes them */
};

struct ml_option_list {
    const char *values[ML_OPTION_VALUES_MAX + 1]; /* NULL-terminated */
    size_t count;
};

struct ml_option {
    const char *name;  /* "--kubeconfig" */
    const char *value; /* the name of its value in the help: "FILE"; NULL for a flag */
    const char *help;
    enum ml_option_type type;
    size_t offset; /* of its variable in the values of the command */
};

#define ML_NO_WORDS SIZE_MAX

struct ml_command {
    const char *name;        /* "rbac" */
    const char *usage;       /* the arguments: "[PATH…] [OPTIONS]" */
    const char *summary;     /* one line, in the list of commands */
    const char *description; /* lines of its own help */
    const char *example;     /* arguments */
    const struct ml_option *options;
    size_t option_count;
    size_t words; /* offset of the ml_option_list of arguments without a name; or ML_NO_WORDS */
    size_t values_size;   /* of the struct that the options and words fill */
    const void *defaults; /* this struct without options; NULL: zeros */
    /* `argv`, which ends with NULL, begins with the name of the command; `values` is freed
     * afterwards, and nothing that it points at. Returns an exit code (enum moonloop_exit). The
     * caller prints the error that comes with a code other than 0. */
    int (*run)(void *values, char **argv, struct ml_err *err);
    /* Called before the error of a wrong option is printed; or NULL. */
    void (*on_wrong_option)(char **argv, const struct ml_err *err);
};

extern const struct ml_command ml_command_run;
extern const struct ml_command ml_command_check;
extern const struct ml_command ml_command_plan;
extern const struct ml_command ml_command_snapshot;
extern const struct ml_command ml_command_rollback;
extern const struct ml_command ml_command_pause;
extern const struct ml_command ml_command_retry;
extern const struct ml_command ml_command_status;
extern const struct ml_command ml_command_top;
extern const struct ml_command ml_command_why;
extern const struct ml_command ml_command_trace;

/* Runs ml_command_run: `values` are its own. `tester` (borrowed; operator/own_tests.h) runs the
 * tests of scripts; NULL: this binary runs none. */
int ml_run_run(void *values, struct ml_tester *tester);

/* Parses argv[1…] and runs the command, or prints its help at --help or -h. Prints errors to stderr
 * as "moonloop NAME: message"; that of an unknown option names the most similar one. Returns the
 * exit code. */
int ml_command_main(const struct ml_command *command, int argc, char **argv);

/* The program: finds the command among these `count` ones by argv[1], and runs it. Returns the exit
 * code. */
int ml_main(const struct ml_command *const *commands, size_t count, int argc, char **argv);

/* Writes the values as a member of the object under way: "name":["value",…]. */
void ml_option_list_put(struct ml_json_writer *writer, const char *name,
                        const struct ml_option_list *list);
