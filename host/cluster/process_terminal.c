/* Called by process_exec.c. */
#include "cluster/process_terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The lower end of a terminal, or -1 and errno. By its upper end, not by a path: who is in the
 * container may have put something else at the path. */
static int open_lower_end(int upper)
{
    int locked = 0;
    return ioctl(upper, TIOCSPTLCK, &locked) == 0
               ? ioctl(upper, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)
               : -1;
}

bool process_terminal_open(const struct process_request *request, int socket)
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
