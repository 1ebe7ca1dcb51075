#include "cluster/process_child.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Closes the host's descriptors, or its peers would not see them closed when it ends. */
static void close_inherited_fds(int socket)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2); /* often a terminal, which a container would reach by an init's /proc/1/fd/2 */
    if (socket > 3)
        close_range(3, (unsigned)socket - 1, 0);
    close_range((unsigned)socket + 1, ~0U, 0);
}

/* Wipes the host's environment: what the warden forks can be read in a container, by an init's
 * /proc/1/environ. */
static void wipe_inherited_environment(void)
{
    for (char **variable = environ; variable && *variable; variable++)
        memset(*variable, 0, strlen(*variable));
    environ = NULL;
}

/* Resets handlers, and blocked or ignored signals, which started processes would inherit. */
static void reset_inherited_signals(void)
{
    sigset_t none;
    for (int signo = 1; signo < NSIG; signo++)
        signal(signo, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void process_child_begin(int socket, const char *name)
{
    setsid(); /* ^C at the terminal goes to the host only */
    prctl(PR_SET_NAME, name);
    close_inherited_fds(socket);
    wipe_inherited_environment();
    reset_inherited_signals();
}
