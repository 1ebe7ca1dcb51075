/* moonloop: finds the command and runs it. */
#include "base/escape.h"
#include "cli/command.h"
#include "include/moonloop.h"

#include <malloc.h>
#include <stdio.h>

static const struct ml_command *const commands[] = {
    &ml_command_run,
#ifdef MOONLOOP_DEV /* the image has none of this */
    &ml_command_dev,   &ml_command_test, &ml_command_rbac, &ml_command_types, &ml_command_manifests,
#endif
    &ml_command_check,
};

static void print_help(FILE *to)
{
    fprintf(to,
            "moonloop %s: a Kubernetes operator host for Lua reconcilers\n\n"
            "Usage: moonloop COMMAND [OPTIONS]     moonloop COMMAND --help\n\nCommands:\n",
            moonloop_version());
    for (size_t i = 0; i < ML_COUNT(commands); i++)
        fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(to, "  %-10s %s\n", "version", "print the version");
    fprintf(to, "\nExit codes: 0 fine, 1 a script or file is invalid, 2 usage, 3 cannot reach or\n"
                "authenticate to the API server, 4 lost the lease.\n");
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
        if (strcmp(name, commands[i]->name) == 0)
            return ml_command_main(commands[i], argc - 1, argv + 1);
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
