/* The host as a library: an operator inside a program of your own.
 *
 *     cmake --build build/dev --target embed && build/dev/examples/embed reconcilers/ */
#include "moonloop.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s SCRIPTS\n", argv[0]);
        return MOONLOOP_EXIT_USAGE;
    }
    struct moonloop_opts opts = MOONLOOP_OPTS_INIT;
    opts.scripts = (const char *const[]){argv[1], NULL};
    opts.log_format = "text";
    opts.handle_signals = 1;

    struct moonloop *host = moonloop_new(&opts);
    int code = moonloop_run(host); /* serves until SIGTERM or SIGINT */
    if (code != MOONLOOP_EXIT_OK)
        fprintf(stderr, "%s\n", moonloop_error(host));
    moonloop_free(host);
    return code;
}
