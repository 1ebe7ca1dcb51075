#include "base/escape.h"
#include "cli/commands.h"
#include "include/moonloop.h"

#include <malloc.h>
#include <stdio.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", ml_command_run, "run the operator: watch, reconcile, reload scripts as they change"},
#ifdef MOONLOOP_DEV /* the image has none of this */
    {"dev", ml_command_dev, "a cluster on a laptop: API server, operator and pods in one process"},
    {"test", ml_command_test,
     "the tests of scripts, on a cluster in memory with a clock that stands"},
    {"rbac", ml_command_rbac, "the roles that scripts and flags need, as YAML"},
    {"types", ml_command_types, "the kinds of scripts and CRDs for an editor"},
    {"manifests", ml_command_manifests, "what an API server needs to call the webhooks of scripts"},
#endif
    {"check", ml_command_check, "compile and load scripts, say what is wrong, touch nothing"},
};

static void print_help(FILE *to)
{
    fprintf(to,
            "moonloop %s: a Kubernetes operator host for Lua reconcilers\n\n"
            "Usage: moonloop COMMAND [OPTIONS]     moonloop COMMAND --help\n\nCommands:\n",
            moonloop_version());
    for (size_t i = 0; i < ML_COUNT(commands); i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(to, "  %-10s %s\n", "version", "print the version");
    fprintf(to, "\nExit codes: 0 fine, 1 what was asked about is bad, 2 usage, 3 cannot reach or\n"
                "authenticate to the API server, 4 lost the lease.\n");
}

int ml_command_usage_error(const char *command, const struct ml_err *err)
{
    ml_print_line(stderr, "moonloop %s: %s", command, err->message);
    return MOONLOOP_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    /* One thread does nearly everything; an arena for each of libcurl's resolver threads would
     * cost memory that is never given back. */
    mallopt(M_ARENA_MAX, 1);
    if (argc < 2) {
        print_help(stderr);
        return MOONLOOP_EXIT_USAGE;
    }
    const char *name = argv[1];
    for (size_t i = 0; i < ML_COUNT(commands); i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (!strcmp(name, "version") || !strcmp(name, "--version")) {
        printf("moonloop %s\n", moonloop_version());
        return MOONLOOP_EXIT_OK;
    }
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h")) {
        print_help(stdout);
        return MOONLOOP_EXIT_OK;
    }
    ml_print_line(stderr, "moonloop: unknown command \"%s\"; see moonloop --help", name);
    return MOONLOOP_EXIT_USAGE;
}
