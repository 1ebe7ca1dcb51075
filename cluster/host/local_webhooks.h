/* cluster. The webhooks of the scripts of an operator that runs in the same process as the embedded
 * API server: they register themselves (cluster/register.lua), and are called without a socket,
 * so that nobody has to wait for them. */
#pragma once

#include "cluster/host/server_lua.h"
#include "codec/json.h"
#include "operator/operator.h"

/* Gives the server's Lua `require "cluster.local_webhooks"` (cluster/meta/local_webhooks.lua
 * says how); once. `operator` is where the operator of the moment stands; NULL there: none. */
void ml_local_webhooks_open(struct ml_server_lua *lua, struct ml_operator *const *operator);

/* Makes the webhooks of the live scripts those of the API server: to be called whenever one has
 * gone live (ml_operator_on_live). ML_ESCRIPT. */
ML_NODISCARD int ml_local_webhooks_register(struct ml_operator *operator,
                                            struct ml_server_lua * lua, struct ml_err *err);

/* Writes "group/Kind" of a script that has webhooks; else nothing. */
void ml_local_webhooks_put_kind(const struct ml_declaration *declaration,
                                struct ml_json_writer *writer);
