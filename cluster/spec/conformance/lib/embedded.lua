--- The embedded server in this process, with a clock that only goes on when the player waits.
local controllers = require "cluster.controllers"
local hostlua = require "hostlua"

local M = {}
M.__index = M

-- When the server was started: any time will do, as long as it is the same each time.
local START = 1782900000
local TOKEN = "conformance"

-- Nothing listens where scenarios have webhooks.
local WEBHOOKS = { client = function()
  return { post = function() return nil, "connection refused", false end }
end }


--- A transport to a new server that decides by roles, with controllers and without a kubelet.
function M.new()
  hostlua.freeze(START)
  hostlua.seed(1)
  local server = require("cluster.apiserver").new {
    authorization = "rbac", ca = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
    tokens = { [TOKEN] = { name = "admin", uid = "admin", groups = { "system:masters" } } },
  }
  package.loaded["cluster.http"] = WEBHOOKS
  controllers.start(server)
  hostlua.poll()
  return setmetatable({ server = server, in_process = true }, M)
end


--- Nothing is left behind.
function M:close()
  self.server, package.loaded["cluster.http"] = nil, nil
end


--- Lets the server work for so many seconds.
function M.pass(_, seconds)
  hostlua.advance(seconds)
end


-- An answer, kept as the server sends it.
local Reply = {}
Reply.__index = Reply


local function lowercase(headers, content_type)
  local list = { ["content-type"] = content_type }
  for name, value in pairs(headers or {}) do
    list[name:lower()] = value
  end
  return list
end


function Reply:send(code, content_type, body, headers)
  self.code, self.headers, self.chunks = code, lowercase(headers, content_type), { body }
  self.is_closed = true
end


function Reply:start(code, content_type, headers)
  self.code, self.headers, self.chunks = code, lowercase(headers, content_type), {}
end


function Reply:write(chunk)
  self.chunks[#self.chunks + 1] = chunk
  return 0
end


function Reply:finish()
  self.is_closed = true
end


Reply.abort = Reply.finish


-- As the HTTP server would hand it over.
local function raw_of(request)
  local path, query = request.path:match("^([^?]*)%??(.*)$")
  local headers = { ["user-agent"] = "conformance", authorization = "Bearer " .. TOKEN }
  for name, value in pairs(request.headers) do
    headers[name] = value ~= "none" and value or nil
  end
  return { method = request.method, path = path, query = query, headers = headers, body = request.body or "" }
end


local function handle(self, request)
  local reply = setmetatable({}, Reply)
  self.server:handle(raw_of(request), reply)
  hostlua.poll()
  return reply
end


--- Sends a request and waits for all of the answer.
---@param request table method, path, headers and body
---@return table { code =, headers =, body = }
function M:request(request)
  local reply = handle(self, request)
  assert(reply.is_closed, "the answer has no end: " .. request.path)
  local body = request.method ~= "HEAD" and table.concat(reply.chunks) or ""
  return { code = reply.code, headers = reply.headers, body = body }
end


--- Starts a request whose answer is read as it comes.
---@return table stream read() -> text so far, closed() -> bool, stop(), code, headers
function M:stream(request)
  local reply = handle(self, request)
  return {
    code = reply.code,
    headers = reply.headers,
    read = function() return table.concat(reply.chunks) end,
    closed = function() return reply.is_closed == true end,
    stop = function()
      if not reply.is_closed and reply.on_close then
        reply.is_closed = true
        reply.on_close()
      end
    end,
  }
end


return M
