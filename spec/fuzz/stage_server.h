/* Private to the stage: its API server. */
#pragma once

#include "script_stage.h"

struct ml_transport stage_server(void); /* to stand in a struct stage */

/* Answers the first request of those that wait with `text`, or as the input says. */
void stage_server_answer(struct stage *stage, const char *text);
