/* The last steps of a started process before it is another program: its terminal, input and output,
 * and the search for the program; and the words for what fails. */
#include "cluster/host/process_internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- terminals ---- */

/* The lower end of a terminal, or -1 and errno. By its upper end, not by a path: a process in the
 * container may have put something else at the path. */
static int open_lower_end(int upper)
{
    int locked = 0;
    return ioctl(upper, TIOCSPTLCK, &locked) == 0
               ? ioctl(upper, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)
               : -1;
}

/* Makes a new terminal the controlling one of this session and its standard input, output and
 * error, and sends its upper end over `socket` to the host. The caller leads the session. The
 * process opens it itself, so that in a container the terminal is one of the container's own. False
 * and errno: it has none. */
static bool open_terminal(const struct process_request *request, int socket)
{
    const struct winsize size = {.ws_row = request->terminal.rows,
                                 .ws_col = request->terminal.columns};
    ML_AUTO(ml_close_fd)
    int upper = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    ML_AUTO(ml_close_fd) int lower = upper < 0 ? -1 : open_lower_end(upper);
    return lower >= 0 && ioctl(lower, TIOCSWINSZ, &size) == 0 && ioctl(lower, TIOCSCTTY, 0) == 0 &&
           process_fds_send_terminal(socket, upper) && dup2(lower, 0) >= 0 && dup2(lower, 1) >= 0 &&
           dup2(lower, 2) >= 0;
}

/* ---- reports, and the program ---- */

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

void process_report_failure(struct process_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report->what = PROCESS_FAILED;
    vsnprintf(report->message, sizeof report->message, format, args);
    va_end(args);
}

const char *process_errno_text(void)
{
    static char text[128];
    snprintf(text, sizeof text, "%s", strerror(errno));
    text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

static const char *find_path_variable(char *const *env)
{
    for (; *env; env++) {
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    }
    return PATH_DEFAULT;
}

/* As execvpe, but never runs a shell. Returns, with errno, only if there is no such program. */
static void exec_from_path(char *const *argv, char *const *env)
{
    int found = ENOENT;
    if (strchr(argv[0], '/')) {
        execve(argv[0], argv, env);
        return;
    }
    struct ml_str rest = ml_str_of(find_path_variable(env));
    while (rest.len && argv[0][0]) {
        struct ml_str folder = ml_str_cut(&rest, ':');
        ML_AUTO_FREE char *path = ml_asprintf(ML_STR_FMT "/%s", ML_STR_ARG(folder), argv[0]);
        if (folder.len)
            execve(path, argv, env);
        if (folder.len && errno != ENOENT && errno != ENOTDIR)
            found = errno;
    }
    errno = found;
}

/* In the words of Go's os/exec and of runc. */
static void describe_exec_failure(struct process_report *report,
                                  const struct process_request *request, bool in_folder)
{
    const char *command = request->argv[0], *why = process_errno_text();
    if (!in_folder)
        process_report_failure(report, "chdir to cwd (\"%s\"): %s", request->directory, why);
    else if (errno == ENOENT && !strchr(command, '/'))
        process_report_failure(report, "exec: \"%s\": executable file not found in $PATH", command);
    else
        process_report_failure(report, "exec: \"%s\": %s", command, why);
}

/* Standard input is /dev/null until here. */
static bool connect_stdio(const struct process_request *request, const struct process_stdio *stdio)
{
    if (request->has_terminal)
        return open_terminal(request, stdio->output);
    return (stdio->input < 0 || dup2(stdio->input, 0) >= 0) && dup2(stdio->output, 1) >= 0 &&
           dup2(stdio->errors < 0 ? stdio->output : stdio->errors, 2) >= 0;
}

void process_exec(const struct process_request *request, const struct process_stdio *stdio,
                  int failed)
{
    static const struct rlimit no_core;
    struct process_report report = {0};
    sigset_t none;
    setsid();
    setrlimit(RLIMIT_CORE, &no_core);
    bool connected = connect_stdio(request, stdio);
    if (!connected)
        process_report_failure(&report, "open a terminal: %s", process_errno_text());
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    bool in_folder = connected && (!request->directory || chdir(request->directory) == 0);
    if (in_folder)
        exec_from_path(request->argv, request->env);
    if (connected)
        describe_exec_failure(&report, request, in_folder);
    ssize_t written = write(failed, &report, sizeof report);
    (void)written; /* if nobody reads it, nobody waits for it */
    _exit(127);
}
