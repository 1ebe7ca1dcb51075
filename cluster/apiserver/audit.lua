--- Notifies listeners of every finished request; it has a cost only if there are listeners.
local host = require "cluster.host"

local M = {}

-- A reply that notes what is answered on its way to the client.
local Noted = {}
Noted.__index = Noted


-- Tells all who listen, once a request.
local function finish(noted, body)
  if noted.told then
    return
  end
  noted.told = true
  local request = noted.request
  local record = {
    verb = request.verb, method = request.method, path = request.path,
    user = request.user and request.user.name, user_agent = request.headers["user-agent"],
    annotations = request.annotations,
    group = request.group, version = request.version, resource = request.resource, namespace = request.namespace,
    name = request.name, subresource = request.subresource,
    code = noted.code, body = request.body, answer = body, time = host.now(),
  }
  for _, listener in ipairs(noted.listeners) do
    local ok, why = xpcall(listener, debug.traceback, record)
    if not ok then
      host.log("error", "a request was answered, and a listener failed", { path = request.path, error = why })
    end
  end
end


function Noted:send(code, content_type, body, headers)
  self.code = code
  self.reply:send(code, content_type, body, headers)
  finish(self, body)
end


function Noted:start(code, content_type, headers)
  self.code = code
  self.reply:start(code, content_type, headers)
end


function Noted:write(chunk)
  return self.reply:write(chunk)
end


function Noted:finish()
  self.reply:finish()
  finish(self)
end


function Noted:upgrade(headers)
  local ok, why = self.reply:upgrade(headers)
  if ok then
    self.code = 101
    self.reply.on_data = function(bytes)
      if self.on_data then
        self.on_data(bytes)
      end
    end
  end
  return ok, why
end


function Noted:pause(paused)
  self.reply:pause(paused)
end


function Noted:abort()
  self.reply:abort()
  finish(self)
end


--- A reply that tells `listeners` when the request has ended: with its answer, its stream, or its client.
---
--- Each listener is called with a record it may keep but not change: verb, method, path, user (name), user_agent,
--- group, version, resource, namespace, name, subresource, code (nil: the client did not wait for it), body (text that
--- was sent), answer (text; nil for streams), time (wall seconds), annotations (of policies; name → text, or nil).
function M.reply(request, reply, listeners)
  local noted = setmetatable({ request = request, reply = reply, listeners = listeners, told = false }, Noted)
  reply.on_close = function()
    if noted.on_close then
      noted.on_close()
    end
    finish(noted)
  end
  return noted
end


return M
