-- `moonloop dev` as a process, and requests to its API server over TLS, with its own authority and token.
local cjson = require "cjson.safe"
local host = require "spec.e2e.support.host"
local http = require "spec.e2e.support.http"
local mime = require "mime"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local M = {}
M.__index = M

cjson.decode_max_depth(20000)

-- Clusters of the machine's own must not be seen.
local ENV = { KUBECONFIG = false, HOME = "/nonexistent" }

--- Why pods cannot be isolated on this machine; nil where they can.
M.no_namespaces = select(2, shell.run "unshare -Urmn true 2>/dev/null") ~= 0
  and "this machine allows no user namespaces" or nil

--- The same of pods with terminals, where these are processes of the machine.
M.no_terminals = select(2, shell.run "(: </dev/ptmx) 2>/dev/null") ~= 0 and "this machine has no terminals" or nil


--- `it` for what a machine may lack: there the spec is skipped and says why.
---@param lacks string? why
---@param it function busted's, of the spec's file
---@param skip fun(why: string) calls the `pending` of that file, which busted has another of while a spec runs
---@return fun(name: string, body: function)
function M.it_unless(lacks, it, skip)
  return not lacks and it or function(name)
    it(name, function() skip(lacks) end)
  end
end


local function read_access(self)
  local text = assert(shell.read(self.kubeconfig))
  self.port = math.tointeger(tonumber(text:match "server: https://127%.0%.0%.1:(%d+)\n"))
  self.token = text:match "token: (%S+)\n"
  self.ca = shell.path "ca.crt"
  shell.write(self.ca, (mime.unb64(text:match "certificate%-authority%-data: (%S+)\n")))
end


--- Starts it, and waits until it prints the way in.
---@param words string[]? options
---@param opts { binary?: string, env?: table, before?: string, under?: string }? see host.spawn; TMPDIR is a
---  folder of its own: `tmp`
function M.start(words, opts)
  opts = opts or {}
  local env = { TMPDIR = shell.folder "tmp" }
  for _, more in ipairs { ENV, opts.env } do
    for name, value in pairs(more) do
      env[name] = value
    end
  end
  local process = host.spawn({ "dev", table.unpack(words or {}) }, {
    name = "dev", binary = opts.binary, env = env, before = opts.before, under = opts.under,
  })
  local self = setmetatable({ host = process, tmp = env.TMPDIR }, M)
  self.kubeconfig = wait.till("moonloop dev to print the way in", 10, function()
    assert(not process:exit_code(), "moonloop dev has ended: " .. process:stderr())
    return self:story():match "\n  export KUBECONFIG=(%S+)\n", process:stderr()
  end)
  read_access(self)
  return self
end


--- Runs it to its end; see host.command.
---@return { code: integer, out: string, err: string }
function M.command(...)
  return host.command({ "dev", ... }, ENV)
end


--- Returns its standard output.
function M:story()
  return shell.read(self.host.files .. ".log") or ""
end


--- Waits for a line of the story that this pattern fits; returns what it captures.
function M:till_told(pattern, seconds)
  return wait.till("the story to have " .. pattern, seconds or 10, function()
    return self:story():match(pattern), self:story() .. self.host:stderr()
  end)
end


--- Waits for a text on standard error that this pattern fits.
function M:till_said(pattern, seconds)
  return wait.till("standard error to have " .. pattern, seconds or 10, function()
    return self.host:stderr():match(pattern), self.host:stderr()
  end)
end


--- A request. A table as body is sent as JSON.
---@param opts { type?: string, headers?: table, token?: string|false }? token: false for none
---@return integer|nil code nil when the connection was cut
---@return any answer decoded when it is JSON; why, when there is none
---@return table? headers
function M:ask(method, path, body, opts)
  opts = opts or {}
  local headers = {}
  for name, value in pairs(opts.headers or {}) do
    headers[name] = value
  end
  if opts.token ~= false then
    headers.authorization = "Bearer " .. (opts.token or self.token)
  end
  local text, code, answered = http.request {
    method = method,
    url = ("https://127.0.0.1:%d%s"):format(self.port, path),
    ca = self.ca,
    body = type(body) == "table" and cjson.encode(body) or body,
    type = opts.type,
    headers = headers,
  }
  if not text then
    return nil, code
  end
  return code, cjson.decode(text) or text, answered
end


--- A request that must succeed; returns its answer.
function M:must(method, path, body, opts)
  local code, answer = self:ask(method, path, body, opts)
  if not code or code >= 300 then
    error(("%s %s: %s %s"):format(method, path, code, type(answer) == "table" and answer.message or answer), 2)
  end
  return answer
end


--- The object at a path, or nil.
function M:get(path)
  local code, answer = self:ask("GET", path)
  return code == 200 and answer or nil
end


--- A connection of one's own, to send what no client would.
function M:connect()
  return http.connect_tls("127.0.0.1", self.port, self.ca)
end


--- Its processes: all whose command line has the name of its folder for files that go.
---@param mark string a text that only they have in their command lines
---@return string[] command lines
function M.processes(mark)
  local found = {}
  local pattern = "[" .. mark:sub(1, 1) .. "]" .. mark:sub(2) -- which the shell that looks has not
  for line in shell.run("pgrep -af -- " .. shell.quote(pattern)):gmatch "[^\n]+" do
    found[#found + 1] = line
  end
  return found
end


--- Sends a signal and waits for the end; returns the exit code.
function M:stop(signal)
  self.host:signal(signal or "TERM")
  return self.host:till_exit(10)
end


--- Ends all that a spec has left.
M.stop_all = host.stop_all

return M
