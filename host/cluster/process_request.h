/* cluster. What the host asks a keeper to start, as a file in memory: process_request_open
 * (process_internal.h) writes it, the warden reads its head, the keeper all. */
#pragma once

#include "cluster/process_internal.h"

/* At the beginning of the file. Each string that follows ends with a NUL. */
struct process_request_head {
    uint32_t count_max; /* a container's init is counted in */
    uint32_t argc;
    uint32_t envc;
    uint32_t mountc;
    uint32_t user;
    uint32_t group;
    int beside; /* a pid in the container to enter; 0: none */
    bool has_directory;
    bool has_container;
    bool read_only;
    bool has_terminal;
    struct ml_process_terminal terminal;
};

/* What was read. Its strings point into `text`. */
struct process_request {
    char *text;
    char **argv;
    char **env;
    const char *directory; /* NULL: where the keeper is */
    int beside;
    bool has_container;
    bool has_terminal;
    struct ml_process_terminal terminal;
    struct ml_process_container container;
};

/* Reads what process_request_open wrote; what is read lives until the keeper ends. */
bool process_request_read(struct process_request *request, int fd);
