/* Made by tools/script-api.lua out of lua/script_api.lua: how each function of ctx is
 * called, for its error messages. */
#pragma once

#define GET_CALL      "ctx.get(Kind, name [, namespace])"
#define LIST_CALL     "ctx.list(Kind [, { namespace =, labels =, owned =, fields =, index =, key = }])"
#define ENSURE_CALL   "ctx.ensure(object [, { adopt = }])"
#define CREATE_CALL   "ctx.create(object)"
#define APPLY_CALL    "ctx.apply(object [, { adopt = }])"
#define PATCH_CALL    "ctx.patch(object, changes)"
#define DELETE_CALL   "ctx.delete(object)"
#define ONCE_CALL     "ctx.once(name, { key = function() … end } [, namespace])"
#define EVENT_CALL    "ctx.event(reason, note [, { type =, about =, related = }])"
#define LOG_CALL      "ctx.log(message [, fields])"
#define METRIC_CALL   "ctx.metric(name, value [, labels])"
#define HTTP_CALL     "ctx.http { method =, url =, headers =, body =, timeout = }"
#define NOW_CALL      "ctx.now()"
#define INVALID_CALL  "ctx.invalid(field, why [, { status =, conditions = }])"
#define TERMINAL_CALL "ctx.terminal(why [, { status =, conditions = }])"
