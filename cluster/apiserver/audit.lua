--- Notifies listeners of every finished request; it has a cost only if there are listeners.
local host = require "cluster.host"

local M = {}

-- A reply that keeps the code of the answer on its way to the client.
local AuditedReply = {}
AuditedReply.__index = AuditedReply


-- Calls the listeners, once a request.
local function finish(audited, body)
  if audited.is_reported then
    return
  end
  audited.is_reported = true
  local request = audited.request
  local record = {
    verb = request.verb, method = request.method, path = request.path,
    user = request.user and request.user.name, user_agent = request.headers["user-agent"],
    annotations = request.annotations,
    group = request.group, version = request.version, resource = request.resource, namespace = request.namespace,
    name = request.name, subresource = request.subresource,
    code = audited.code, body = request.body, answer = body, time = host.now(),
  }
  for _, listener in ipairs(audited.listeners) do
    local ok, why = xpcall(listener, debug.traceback, record)
    if not ok then
      host.log("error", "a request was answered, and a listener failed", { path = request.path, error = why })
    end
  end
end


function AuditedReply:send(code, content_type, body, headers, plain)
  self.code = code
  self.reply:send(code, content_type, body, headers)
  finish(self, plain or body)
end


function AuditedReply:start(code, content_type, headers)
  self.code = code
  self.reply:start(code, content_type, headers)
end


function AuditedReply:write(chunk)
  return self.reply:write(chunk)
end


function AuditedReply:finish()
  self.reply:finish()
  finish(self)
end


function AuditedReply:upgrade(headers)
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


function AuditedReply:pause(paused)
  self.reply:pause(paused)
end


function AuditedReply:abort()
  self.reply:abort()
  finish(self)
end


--- A reply that calls `listeners` when the request has ended: with its answer, its stream, or its client.
---
--- Each listener is called with a record it may keep but not change: verb, method, path, user (name), user_agent,
--- group, version, resource, namespace, name, subresource, code (nil: the client did not wait for it), body (text that
--- was sent), answer (text; nil for streams), time (wall seconds), annotations (of policies; name → text, or nil).
function M.reply(request, reply, listeners)
  local audited = { request = request, reply = reply, listeners = listeners, is_reported = false }
  setmetatable(audited, AuditedReply)
  reply.on_close = function()
    if audited.on_close then
      audited.on_close()
    end
    finish(audited)
  end
  return audited
end


return M
