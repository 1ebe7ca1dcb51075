--- Requests from inside the process: from controllers, the kubelet and tests.
local host = require "cluster.host"

local M = {}

-- Keeps what is answered.
local Kept = {}
Kept.__index = Kept


function Kept:send(code, content_type, body, headers)
  self.code, self.content_type, self.body, self.headers = code, content_type, body, headers
end


function Kept:start(code, content_type, headers)
  self.code, self.content_type, self.headers, self.chunks = code, content_type, headers, {}
end


function Kept:write(chunk)
  self.chunks[#self.chunks + 1] = chunk
  return 0
end


function Kept:finish()
  self.body = table.concat(self.chunks)
end


Kept.abort = Kept.finish


local function headers_of(options, body)
  return {
    ["content-type"] = body and (options.content_type or "application/json") or nil,
    ["user-agent"] = options.user_agent,
    accept = options.accept,
  }
end


--- Sends a request and returns its answer.
---
--- @param server table  @param method string  @param path string with its query, encoded
--- @param body any a JSON value, a text that is sent as it is, or nil
--- @param options table|nil { user = as auth has it (default: one who may do everything), user_agent =, content_type =,
---   accept =, is_decoded = true: `body` is an object that was read from the store, with changes of the server. It
---   is neither checked against its type nor copied, and belongs to the server from now on, skips_admission = true: no
---   plugin is asked about it; see admission/ }
--- @return integer code
--- @return any answer the JSON value, or the text when it is none
function M.call(server, method, path, body, options)
  options = options or {}
  local plain, query = path:match("^([^?]*)%??(.*)$")
  local reply = setmetatable({}, Kept)
  server:handle({
    method = method,
    path = plain,
    query = query,
    headers = headers_of(options, body),
    body = not options.is_decoded and (type(body) == "table" and host.json.encode(body) or body) or "",
    object = options.is_decoded and body or nil,
    user = options.user or server.administrator,
    skips_admission = options.skips_admission,
  }, reply)
  if not reply.body then
    if reply.on_close then
      reply.on_close()
    end
    error("a stream has no answer: " .. method .. " " .. path, 2)
  end
  if reply.content_type == "application/json" then
    return reply.code, host.json.decode(reply.body)
  end
  return reply.code, reply.body
end


return M
