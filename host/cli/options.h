/* L8 cli. Command-line options, one table for each subcommand: `--name VALUE`, `--name=VALUE`,
 * `--flag`; an option that may be repeated collects its values. */
#pragma once

#include "codec/json.h"

#define ML_OPTION_VALUES_MAX 64

enum ml_option_type {
    ML_OPTION_FLAG,     /* bool */
    ML_OPTION_TEXT,     /* const char * */
    ML_OPTION_LIST,     /* struct ml_option_list; repeated or comma-free */
    ML_OPTION_SIZE,     /* size_t of bytes: 16Mi, 512Ki, 1000000 */
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
    void *into;
};

/* Reads argv[1…]. Words that are not options go to `words` (NULL: refused). Stops with
 * *help true at --help or -h. ML_EINVALID names the problem and, for an unknown option, the most
 * similar one. Values are borrowed from argv. */
ML_NODISCARD int ml_options_parse(const struct ml_option *options, size_t count, int argc,
                                  char **argv, struct ml_option_list *words, bool *help,
                                  struct ml_err *err);

/* Prints the options, one or two lines each. */
void ml_options_help(const struct ml_option *options, size_t count);

/* Writes the values as a member of the object under way: "name":["value",…]. */
void ml_option_list_put(struct ml_json_writer *writer, const char *name,
                        const struct ml_option_list *list);
