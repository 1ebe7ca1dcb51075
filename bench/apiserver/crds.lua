--- Measures the cost of many CRDs for the embedded API server, without a connection: seconds until all are established,
--- memory of the process, and the time of the first document of OpenAPI, of the second, as clients that take gzip get
--- it, and of one after a change.
---
---   LUA_PATH="./?.lua;./?/init.lua;lua/?.lua;bench/apiserver/?.lua;;" hostlua bench/apiserver/crds.lua [CRDs]
local host = require "cluster.host"
local hostlua = require "hostlua"
local made_crds = require "made_crds"

local COUNT = math.tointeger(tonumber(arg[1] or "")) or 300
local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local MIB = 1024 * 1024

local server = require("cluster.apiserver").new {}
local answered = {}


function answered:send(code, _, body)
  self.code, self.body = code, body
end


local function send(method, path, body, encoding)
  server:handle({
    method = method, path = path, query = "", body = body or "",
    headers = { ["content-type"] = "application/json", ["user-agent"] = "bench/1", ["accept-encoding"] = encoding },
  }, answered)
  return answered.code, answered.body
end


-- A figure of /proc/self/status, in MiB.
local function memory(name)
  local file = assert(io.open "/proc/self/status")
  local text = file:read "a"
  file:close()
  return tonumber(text:match(name .. ":%s*(%d+)")) / 1024
end


local function took(what, fn, ...)
  local begin = os.clock()
  fn(...)
  print(("crds.%s\t%.4f"):format(what, os.clock() - begin))
end


-- One at a time, as they would be on their way from a client: not all bodies are in memory at once.
local bytes, seconds, slowest = 0, 0, 0
for i = 1, COUNT do
  local body = host.json.encode(made_crds.crd(i, COUNT))
  bytes = bytes + #body
  local begin = os.clock()
  local code, answer = send("POST", CRDS, body)
  assert(code == 201, answer)
  hostlua.poll()
  local one = os.clock() - begin
  seconds, slowest = seconds + one, math.max(slowest, one)
end
print(("crds.MiB_sent\t%.1f"):format(bytes / MIB))
print(("crds.seconds\t%.3f"):format(seconds))
print(("crds.slowest\t%.3f"):format(slowest))
local last = made_crds.crd(COUNT, COUNT)
local path = ("/apis/%s/v1/%s"):format(last.spec.group, last.spec.names.plural)
assert(send("GET", path) == 200, "the last kind is not served")
print(("crds.VmRSS\t%.1f"):format(memory "VmRSS"))
took("openapi_v2", send, "GET", "/openapi/v2")
print(("crds.MiB_openapi_v2\t%.1f"):format(#answered.body / MIB))
took("openapi_v2_gzip", send, "GET", "/openapi/v2", nil, "gzip")
print(("crds.MiB_openapi_v2_gzip\t%.1f"):format(#answered.body / MIB))
took("openapi_v2_second", send, "GET", "/openapi/v2", nil, "gzip")
took("openapi_v3_index", send, "GET", "/openapi/v3")
took("list", send, "GET", CRDS)
local code = send("DELETE", CRDS .. "/" .. last.metadata.name)
assert(code == 200)
hostlua.poll()
took("openapi_v2_again", send, "GET", "/openapi/v2")
answered.body = nil
hostlua.poll()
print(("crds.VmRSS_openapi\t%.1f"):format(memory "VmRSS"))
print(("crds.VmHWM\t%.1f"):format(memory "VmHWM"))
