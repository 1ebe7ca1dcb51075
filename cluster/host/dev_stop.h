/* cluster. Ends `moonloop dev` when a signal has asked for that and the loop does not come to it,
 * because Lua or a function of C works without end. */
#pragma once

#include "cluster/host/server_lua.h"

/* The parts that a signal ends. They are borrowed until ml_dev_stop_forget. */
struct ml_dev_stop {
    struct ml_server_lua *lua;  /* NULL: not there yet */
    const char *kubeconfig;     /* a file that goes in any case; NULL: none yet */
    void (*end)(void *context); /* called from within Lua: ends pods and removes files. The process
                                 * exits when it returns */
    void *context;
};

/* Call after ml_loop_on_signal for SIGINT, SIGTERM and SIGHUP. From the first of them on the loop
 * has to call ml_dev_stop_heard: when 0.5 s of CPU time pass without that, `end` is called at the
 * next instruction of Lua, and after 0.9 s the process exits wherever it is, upon which its pods
 * end. One at a time in a process. */
void ml_dev_stop_watch(const struct ml_dev_stop *stop);

/* The loop turns. */
void ml_dev_stop_heard(void);

/* From here on signals are the loop's alone. */
void ml_dev_stop_forget(void);
