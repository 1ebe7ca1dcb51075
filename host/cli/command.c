/* The command line: parses the options of a command, prints its help, runs it. */
#include "cli/command.h"

#include "base/escape.h"
#include "include/moonloop.h"

#include <malloc.h>
#include <stdio.h>

/* ---- options ---- */

static const struct ml_option *find(const struct ml_command *command, struct ml_str name)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (ml_str_is(name, command->options[i].name))
            return &command->options[i];
    return NULL;
}

/* Levenshtein distance, for words of an option's length. */
static size_t distance(struct ml_str a, struct ml_str b)
{
    enum { MAX = 64 };
    size_t row[MAX + 1];
    if (a.len > MAX || b.len > MAX)
        return MAX;
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t replace = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
            diagonal = row[j];
            row[j] = ML_MIN(ML_MIN(row[j], row[j - 1]) + 1, replace);
        }
    }
    return row[b.len];
}

static int refuse_unknown(const struct ml_command *command, struct ml_str name, struct ml_err *err)
{
    const char *nearest = NULL;
    size_t best = name.len / 3 + 2;
    for (size_t i = 0; i < command->option_count; i++) {
        size_t d = distance(name, ml_str_of(command->options[i].name));
        if (d < best) {
            best = d;
            nearest = command->options[i].name;
        }
    }
    if (nearest)
        return ml_err_set(err, ML_EINVALID, "unknown option " ML_STR_FMT "; did you mean %s?",
                          ML_STR_ARG(name), nearest);
    return ml_err_set(err, ML_EINVALID, "unknown option " ML_STR_FMT "; see --help",
                      ML_STR_ARG(name));
}

static bool parse_size(const char *text, size_t *out)
{
    static const struct {
        const char *suffix;
        size_t factor;
    } units[] = {{"Ki", 1024}, {"Mi", 1024 * 1024}, {"Gi", 1024 * 1024 * 1024}, {"", 1}};
    struct ml_str number = ml_str_of(text);
    for (size_t i = 0; i < ML_COUNT(units); i++) {
        uint64_t value;
        if (!ml_str_ends(number, units[i].suffix))
            continue;
        number.len -= strlen(units[i].suffix);
        return ml_str_to_u64(number, &value) &&
               !__builtin_mul_overflow(value, units[i].factor, out);
    }
    return false;
}

/* "1m30s": numbers, each with a unit. */
static bool parse_duration(const char *text, int *out_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"h", 3600000}, {"m", 60000}, {"s", 1000}};
    int64_t total = 0;
    while (*text) {
        size_t digits = strspn(text, "0123456789"), unit = 0;
        uint64_t value;
        if (!ml_str_to_u64((struct ml_str){text, digits}, &value) || value > INT32_MAX)
            return false;
        text += digits;
        while (unit < ML_COUNT(units) &&
               strncmp(text, units[unit].name, strlen(units[unit].name)) != 0)
            unit++;
        if (unit == ML_COUNT(units))
            return false;
        text += strlen(units[unit].name);
        total += (int64_t)value * units[unit].ms;
        if (total > INT32_MAX)
            return false;
    }
    *out_ms = (int)total;
    return total > 0;
}

static int store(const struct ml_option *option, void *into, const char *value, struct ml_err *err)
{
    struct ml_option_list *list = into;
    int64_t seconds, count;
    switch (option->type) {
    case ML_OPTION_FLAG:
        *(bool *)into = true;
        return 0;
    case ML_OPTION_TEXT:
        *(const char **)into = value;
        return 0;
    case ML_OPTION_MAY_TEXT:
        *(const char **)into = value ? value : "";
        return 0;
    case ML_OPTION_LIST:
        if (list->count == ML_OPTION_VALUES_MAX)
            return ml_err_set(err, ML_EINVALID, "%s: given more than %d times", option->name,
                              ML_OPTION_VALUES_MAX);
        list->values[list->count++] = value;
        return 0;
    case ML_OPTION_SIZE:
        if (!parse_size(value, into))
            return ml_err_set(err, ML_EINVALID, "%s %s: expected bytes, such as 16Mi", option->name,
                              value);
        return 0;
    case ML_OPTION_COUNT:
        if (!ml_str_to_i64(ml_str_of(value), &count) || count < 0 || count > INT32_MAX)
            return ml_err_set(err, ML_EINVALID, "%s %s: expected a whole number", option->name,
                              value);
        *(int *)into = (int)count;
        return 0;
    case ML_OPTION_SECONDS:
        if (!ml_str_to_i64(ml_str_of(value), &seconds) || seconds < 0 || seconds > 86400)
            return ml_err_set(err, ML_EINVALID, "%s %s: expected seconds, 0 to 86400", option->name,
                              value);
        *(int *)into = (int)seconds;
        return 0;
    case ML_OPTION_DURATION:
        if (!parse_duration(value, into))
            return ml_err_set(err, ML_EINVALID, "%s %s: expected a time, such as 15s or 500ms",
                              option->name, value);
        return 0;
    }
    ML_UNREACHABLE();
}

static void *variable(void *values, size_t offset)
{
    return (char *)values + offset;
}

/* One option with its value; moves *at past both. */
static int parse_option(const struct ml_command *command, void *values, int argc, char **argv,
                        int *at, struct ml_err *err)
{
    struct ml_str value = ml_str_of(argv[*at]);
    struct ml_str name = ml_str_cut(&value, '=');
    const struct ml_option *option = find(command, name);
    if (!option)
        return refuse_unknown(command, name, err);
    if (option->type == ML_OPTION_FLAG && value.ptr && !ml_str_is(value, "true"))
        return ml_err_set(err, ML_EINVALID, "%s takes no value", option->name);
    if (option->type != ML_OPTION_FLAG && option->type != ML_OPTION_MAY_TEXT && !value.ptr) {
        if (*at + 1 >= argc)
            return ml_err_set(err, ML_EINVALID, "%s needs a value: %s %s", option->name,
                              option->name, option->value);
        value = ml_str_of(argv[++*at]);
    }
    ++*at;
    return store(option, variable(values, option->offset), value.ptr, err);
}

/* Stops with *help true at --help or -h. Values are borrowed from argv. */
static int parse(const struct ml_command *command, void *values, int argc, char **argv, bool *help,
                 struct ml_err *err)
{
    struct ml_option_list *words = command->words == ML_NO_WORDS ? NULL
                                                                 : variable(values, command->words);
    for (int at = 1; at < argc;) {
        if (!strcmp(argv[at], "--help") || !strcmp(argv[at], "-h")) {
            *help = true;
            return 0;
        }
        if (argv[at][0] == '-' && argv[at][1]) {
            int r = parse_option(command, values, argc, argv, &at, err);
            if (r < 0)
                return r;
            continue;
        }
        if (!words || words->count == ML_OPTION_VALUES_MAX)
            return ml_err_set(err, ML_EINVALID, "unexpected word \"%s\"; see --help", argv[at]);
        words->values[words->count++] = argv[at++];
    }
    return 0;
}

void ml_option_list_put(struct ml_json_writer *writer, const char *name,
                        const struct ml_option_list *list)
{
    ml_json_key(writer, ml_str_of(name));
    ml_json_begin_array(writer);
    for (size_t i = 0; i < list->count; i++)
        ml_json_string(writer, ml_str_of(list->values[i]));
    ml_json_end_array(writer);
}

/* ---- the command ---- */

static void print_option(const struct ml_option *option)
{
    char left[64];
    const char *form = option->type == ML_OPTION_MAY_TEXT ? "%s[=%s]" : "%s %s";
    snprintf(left, sizeof left, form, option->name, option->value ? option->value : "");
    if (strlen(left) > 36)
        printf("  %s\n  %-36s %s\n", left, "", option->help);
    else
        printf("  %-36s %s\n", left, option->help);
}

static void print_help(const struct ml_command *command)
{
    printf("Usage: moonloop %s %s\n\n%s\n\nOptions:\n", command->name, command->usage,
           command->description);
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&command->options[i]);
    printf("\nExample:\n  moonloop %s %s\n", command->name, command->example);
}

static int parse_and_run(const struct ml_command *command, int argc, char **argv,
                         struct ml_err *err)
{
    ML_AUTO_FREE void *values = ml_zalloc(command->values_size);
    bool help = false;
    if (command->defaults)
        memcpy(values, command->defaults, command->values_size);
    if (parse(command, values, argc, argv, &help, err) < 0) {
        if (command->on_wrong_option)
            command->on_wrong_option(argv, err);
        return MOONLOOP_EXIT_USAGE;
    }
    if (!help)
        return command->run(values, argv, err);
    print_help(command);
    return MOONLOOP_EXIT_OK;
}

int ml_command_main(const struct ml_command *command, int argc, char **argv)
{
    struct ml_err err = ML_ERR_INIT;
    int code = parse_and_run(command, argc, argv, &err);
    if (code != MOONLOOP_EXIT_OK && err.kind)
        ml_print_line(stderr, "moonloop %s: %s", command->name, err.message);
    return code;
}

/* ---- the program ---- */

static void print_commands(const struct ml_command *const *commands, size_t count, FILE *to)
{
    fprintf(to,
            "moonloop %s: a Kubernetes operator host for Lua reconcilers\n\n"
            "Usage: moonloop COMMAND [OPTIONS]     moonloop COMMAND --help\n\nCommands:\n",
            moonloop_version());
    for (size_t i = 0; i < count; i++)
        fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(to, "  %-10s %s\n", "version", "print the version");
    fprintf(to, "\nExit codes: 0 fine, 1 a script or file is invalid, 2 usage, 3 cannot reach or\n"
                "authenticate to the API server, 4 lost the lease.\n");
}

int ml_main(const struct ml_command *const *commands, size_t count, int argc, char **argv)
{
    /* One thread does nearly everything; an arena for each of libcurl's resolver threads would
     * cost memory that is never given back. */
    mallopt(M_ARENA_MAX, 1);
    if (argc < 2) {
        print_commands(commands, count, stderr);
        return MOONLOOP_EXIT_USAGE;
    }
    const char *name = argv[1];
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, commands[i]->name) == 0)
            return ml_command_main(commands[i], argc - 1, argv + 1);
    if (!strcmp(name, "version") || !strcmp(name, "--version")) {
        printf("moonloop %s\n", moonloop_version());
        return MOONLOOP_EXIT_OK;
    }
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h")) {
        print_commands(commands, count, stdout);
        return MOONLOOP_EXIT_OK;
    }
    ml_print_line(stderr, "moonloop: unknown command \"%s\"; see moonloop --help", name);
    return MOONLOOP_EXIT_USAGE;
}
