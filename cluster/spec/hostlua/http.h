/* HTTPS requests, one after the other over one connection, for specs: what `require "hostlua"` has.
 *
 *   http{url=,method=,ca=,headers=,sent=,head=,body=}
 *       Waits for all of the answer, 60 s at most. ca: the file of the authority's certificates.
 *       headers: lines as curl takes them. sent: the file with the request's body; nil for none.
 *       The answer's heads, interim ones too, go to the file `head`, its body to the file `body`.
 *       Returns true, or nil and why there is no answer. */
#pragma once

#include "cluster/host/server_lua.h"

struct hostlua_http;

/* Lives at least as long as `lua`. */
struct hostlua_http *hostlua_http_new(struct ml_server_lua *lua);
void hostlua_http_free(struct hostlua_http *http);
