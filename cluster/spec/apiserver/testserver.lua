--- A server for specs, with frozen time, and a client that keeps what was answered.
local apiserver = require "cluster.apiserver"
local host = require "cluster.host"
local hostlua = require "hostlua"

local M = {}
M.__index = M

local EPOCH = 1767225600 -- 2026-01-01T00:00:00Z


local Reply = {}
Reply.__index = Reply


function Reply:send(code, kind, body, headers)
  self.code, self.kind, self.body, self.headers = code, kind, body, headers or {}
end


function Reply:start(code, kind, headers)
  self.code, self.kind, self.headers, self.chunks = code, kind, headers or {}, {}
end


function Reply:write(chunk)
  self.chunks[#self.chunks + 1] = chunk
  return self.waiting or 0
end


function Reply:finish()
  self.finished = true
end


function Reply:abort()
  self.aborted = true
end


--- The events that have come on a watch: a list of { type =, object = }.
function Reply:events()
  local list = {}
  for line in table.concat(self.chunks):gmatch("[^\n]+") do
    list[#list + 1] = host.json.decode(line)
  end
  return list
end


--- The events in short: "ADDED a".
function Reply:short()
  local list = {}
  for i, event in ipairs(self:events()) do
    list[i] = event.type .. " " .. tostring(event.object.metadata.name)
  end
  return list
end


--- A new server at the beginning of 2026, whose deferred work is done.
function M.new(settings)
  hostlua.freeze(EPOCH)
  hostlua.seed(1)
  local self = setmetatable({ server = apiserver.new(settings or {}) }, M)
  hostlua.poll()
  return self
end


--- Does what was put off.
function M.settle()
  hostlua.poll()
end


--- Lets seconds pass.
function M.pass(_, seconds)
  hostlua.advance(seconds)
end


--- Sends a request, by whom self.certificate says, if anybody. `body`: a table, a text, or nil. Returns the reply.
function M:send(method, path, body, headers)
  local reply = setmetatable({}, Reply)
  local plain, query = path:match("^([^?]*)%??(.*)$")
  local all = { ["content-type"] = body and "application/json" or nil, ["user-agent"] = "spec" }
  for name, value in pairs(headers or {}) do
    all[name] = value
  end
  self.server:handle({
    method = method, path = plain, query = query, headers = all, certificate = self.certificate,
    body = type(body) == "table" and host.json.encode(body) or body or "",
  }, reply)
  return reply
end


--- Sends a request and returns its code and its answer as a table.
function M:call(method, path, body, headers)
  local reply = self:send(method, path, body, headers)
  return reply.code, reply.kind == "application/json" and host.json.decode(reply.body) or reply.body, reply
end


--- Like call, for what has to succeed: returns the answer alone.
function M:must(method, path, body, headers)
  local code, answer = self:call(method, path, body, headers)
  assert(code < 300, ("%s %s: %d %s"):format(method, path, code, type(answer) == "table" and answer.message or ""))
  return answer
end


local MEDIA = { merge = "application/merge-patch+json", json = "application/json-patch+json",
  strategic = "application/strategic-merge-patch+json", apply = "application/apply-patch+yaml" }


--- A patch of a kind: "merge", "json", "strategic", "apply".
function M:patch(kind, path, body)
  return self:call("PATCH", path, body, { ["content-type"] = MEDIA[kind] })
end


--- Creates a ConfigMap in the namespace "default".
function M:configmap(name, fields)
  local object = { metadata = { name = name } }
  for key, value in pairs(fields or {}) do
    if key == "metadata" then
      for inner, part in pairs(value) do
        object.metadata[inner] = part
      end
    else
      object[key] = value
    end
  end
  return self:must("POST", M.CONFIGMAPS, object)
end


M.CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


--- Names of a list's items.
function M.names(list)
  local names = {}
  for i, item in ipairs(list.items) do
    names[i] = item.metadata.name
  end
  return names
end


return M
