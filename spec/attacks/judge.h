/* Reads the log as it grows and the requests as they come: what must not be there, whether what was
 * expected has come, and how the bystander fares. */
#pragma once

#include "program.h"
#include "report.h"

struct judge {
    const struct program *program;
    struct report *report;
    int fd;
    int64_t read_to;      /* bytes of the log */
    int64_t last_tick_ms; /* of the day; -1: none yet */
    char last_time[32];
    bool watching;   /* the program has been told */
    bool came;       /* what is expected of its messages */
    size_t failures; /* messages of the program's failures */
};

void judge_log(struct judge *judge);
void judge_request(struct judge *judge, const char *method, const char *path, const char *body);
/* At the end: was the bystander late even now? `now_ms` as the log's times are. */
void judge_end(struct judge *judge, int64_t now_ms);
