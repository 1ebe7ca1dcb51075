/* L5 script, private to apiserver*.c. The answer of the embedded server to one request, a userdata
 * in Lua. */
#pragma once

#include "cluster/apiserver.h"
#include "cluster/host.h"

enum reply_state { REPLY_OPEN, REPLY_STARTED, REPLY_OVER };

/* A full userdata; its user value is on_close. Until it is over the registry holds it, under its
 * own address. */
struct ml_apiserver_call {
    struct ml_list node; /* among those of its server */
    struct ml_trusted *trusted;
    const struct ml_apiserver_sink *sink;
    void *context;
    enum reply_state state;
};

/* Makes the type known to the state. */
void reply_open(lua_State *L);

/* [+1] A new one, on the running thread; in no list yet. */
struct ml_apiserver_call *reply_push(struct ml_trusted *trusted,
                                     const struct ml_apiserver_sink *sink, void *context);

/* Nothing more goes to the sink; Lua's collector may take it. Leaves its list. */
void reply_end(struct ml_apiserver_call *call);
