--- How fast the embedded API server is without a connection: requests a second on one core, and bytes an object.
---
---   LUA_PATH="./?.lua;./?/init.lua;lua/?.lua;lua/?/init.lua;;" hostlua bench/apiserver/inprocess.lua [objects]
local COUNT = math.tointeger(tonumber(arg[1] or "")) or 20000
local PATH = "/api/v1/namespaces/default/configmaps"
local FILLING = ("x"):rep(700)


local function quiet_reply()
  local reply = { code = nil, bytes = 0 }
  function reply:send(code, _, body)
    self.code, self.bytes = code, self.bytes + #body
  end
  function reply:start(code)
    self.code = code
  end
  function reply:write(chunk)
    self.bytes = self.bytes + #chunk
    return 0
  end
  function reply.finish() end
  function reply.abort() end
  return reply
end


-- An object of about 1 KB, as a client sends it.
local function body_of(i)
  return ('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-%d","labels":{"app":"bench","shard":"%d"},'
    .. '"annotations":{"example.com/note":"made by the bench"}},"data":{"first":"%s","second":"value","third":"3"}}')
    :format(i, i % 16, FILLING)
end


local function measure(what, count, each)
  collectgarbage()
  local begin = os.clock()
  for i = 1, count do
    each(i)
  end
  local took = os.clock() - begin
  print(("%-28s %10.0f a second %10.1f us each"):format(what, count / took, took / count * 1e6))
end


local server = require("cluster.apiserver").new { history = 1000 }
local reply = quiet_reply()


local function send(method, path, query, body, content_type)
  server:handle({
    method = method, path = path, query = query or "", body = body or "",
    headers = { ["content-type"] = content_type or "application/json", ["user-agent"] = "bench/1" },
  }, reply)
  return reply.code
end


local function memory()
  collectgarbage()
  return collectgarbage "count" * 1024
end


local before = memory()
local bodies = {}
for i = 1, COUNT do
  bodies[i] = body_of(i)
end
print(("%d objects of %d bytes"):format(COUNT, #bodies[1]))
measure("create", COUNT, function(i)
  assert(send("POST", PATH, nil, bodies[i]) == 201)
end)
bodies = nil
print(("%-28s %10.0f bytes"):format("memory an object", (memory() - before) / COUNT))
measure("get", COUNT, function(i)
  assert(send("GET", PATH .. "/c-" .. i) == 200)
end)
measure("list of 500, paged", COUNT // 500, function()
  assert(send("GET", PATH, "limit=500") == 200)
end)
measure("update", COUNT, function(i)
  assert(send("PUT", PATH .. "/c-" .. i, nil, (body_of(i):gsub("value", "other"))) == 200)
end)
measure("merge patch", COUNT, function(i)
  assert(send("PATCH", PATH .. "/c-" .. i, nil, '{"data":{"third":"4"}}', "application/merge-patch+json") == 200)
end)
for _ = 1, 100 do
  server:handle({
    method = "GET", path = PATH, query = "watch=true&resourceVersion=" .. server.store.revision,
    body = "", headers = {},
  }, quiet_reply())
end
measure("merge patch, 100 watchers", COUNT // 10, function(i)
  assert(send("PATCH", PATH .. "/c-" .. i, nil, '{"data":{"third":"5"}}', "application/merge-patch+json") == 200)
end)
measure("delete", COUNT, function(i)
  assert(send("DELETE", PATH .. "/c-" .. i) == 200)
end)
