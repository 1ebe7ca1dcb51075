/* A script in its sandbox, for specs: what `require "hostlua"` has of it.
 *
 *   load(text)                  what a script of this text declares:
 *                               { name =, max_concurrent =, kinds = { { apiVersion =, kind =, use
 * =, labels =, fields =, metadata_only =, when = }, … } }; true for a module; nil and the message
 * when it is refused reconcile(text)             what one reconcile of a ConfigMap came to: {
 * outcome =, message =, field =, status =, requeue_after =, requeue_at = }. There is no cluster:
 * the script must not use what ctx has for one counts{script=,old=,new=}   does a change between
 * these objects count for what it reconciles?
 *
 * In messages the script is t.lua. */
#pragma once

#include "cluster/host/server_lua.h"

void hostlua_define_sandbox(struct ml_server_lua *lua);
