--- Lists and watches of the operator, for faults on them.
local M = {}

--- The Status of a version, or a continue token, that is too old.
M.EXPIRED = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","code":410,'
  .. '"message":"too old resource version"}'


--- The Status of a refusal. @param code integer  @param reason string
function M.status(code, reason)
  return ('{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"%s","code":%d,'
    .. '"message":"refused by the fault"}'):format(reason, code)
end


--- The id of a kind's resource in the server's store.
function M.id_of(server, kind)
  return server.registry:of(kind.apiVersion, kind.kind).id
end


--- Ends all watches of a kind, as the server does when their time is over.
function M.cut(server, kind)
  server.hub:end_all(M.id_of(server, kind))
end


--- Ends all watches there are.
function M.cut_all(server)
  for id in pairs(server.hub.resources) do
    server.hub:end_all(id)
  end
end


--- Is the request a list or a watch of the kind?
function M.is_of(server, request, kind)
  local plural = server.registry:of(kind.apiVersion, kind.kind).plural
  return request.method == "GET" and request.path:match "[^/]+$" == plural
end


--- A reply that falls silent when gate.silent is set: what is written then is lost, and no end comes.
function M.gated(reply, gate)
  local between = {}
  function between.send(_, ...) return reply:send(...) end
  function between.start(_, ...) return reply:start(...) end

  function between.write(_, chunk)
    return gate.silent and 0 or reply:write(chunk)
  end

  function between.finish()
    if not gate.silent then
      reply:finish()
    end
  end

  function between.abort()
    if not gate.silent then
      reply:abort()
    end
  end
  return setmetatable(between, {
    __newindex = function(_, key, value) -- on_close, which the server sets
      reply[key] = value
    end,
  })
end


return M
