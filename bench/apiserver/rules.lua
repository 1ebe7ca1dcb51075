--- Measures the cost that 50 rules in CEL add to a write of a custom object: one kind is written with and without them.
---
---   LUA_PATH="./?.lua;./?/init.lua;lua/?.lua;lua/?/init.lua;;" hostlua bench/apiserver/rules.lua [writes]
---
--- Prints "compile", and milliseconds until the kind with its rules has its first object; then "added", and
--- microseconds for each write.
local host = require "cluster.host"
local hostlua = require "hostlua"

local COUNT = math.tointeger(tonumber(arg[1] or "")) or 2000
local ROUNDS = 5
local GROUP_PATH = "/apis/%s/v1/namespaces/default/things"

-- Rules as operators write them; each stands in five fields.
local RULES = {
  "self.a > 0", "self.b.startsWith('x') || self.a < 100", "has(self.c) == has(self.d)",
  "self.a >= 1 && self.a <= 65535", "self.kind in ['One', 'Two', 'Three']", "!has(self.c) || self.c.size() < 50",
  "self.list.all(x, x.size() < 20)", "self.list.exists(x, x == 'one')", "self.b.matches('^[a-z][a-z0-9-]*$')",
  "!has(oldSelf.c) || has(self.c)",
}
local FIELDS = 5


local function reply()
  local made = {}
  function made:send(code, _, body)
    self.code, self.body = code, body
  end
  return made
end


local function fields_schema(with_rules)
  local text, rules = { type = "string", maxLength = 63 }, host.json.array {}
  for i, rule in ipairs(with_rules and RULES or {}) do
    rules[i] = { rule = rule }
  end
  return {
    type = "object", ["x-kubernetes-validations"] = with_rules and rules or nil,
    properties = {
      a = { type = "integer" }, b = text, c = text, d = text, kind = text,
      list = { type = "array", maxItems = 16, items = text },
    },
  }
end


local function crd(group, with_rules)
  local properties = {}
  for i = 1, FIELDS do
    properties["f" .. i] = fields_schema(with_rules)
  end
  return {
    apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition", metadata = { name = "things." .. group },
    spec = {
      group = group, scope = "Namespaced", names = { plural = "things", kind = "Thing" },
      versions = host.json.array { {
        name = "v1", served = true, storage = true, schema = { openAPIV3Schema = {
          type = "object", properties = { spec = { type = "object", properties = properties } },
        } },
      } },
    },
  }
end


local server = require("cluster.apiserver").new { history = 1000 }


local function send(method, path, body, content_type)
  local answer = reply()
  server:handle({
    method = method, path = path, query = "", body = body,
    headers = { ["content-type"] = content_type or "application/json", ["user-agent"] = "bench/1" },
  }, answer)
  assert(answer.code < 300, answer.body)
end


local function object(group)
  local spec = {}
  for i = 1, FIELDS do
    spec["f" .. i] = { a = i, b = "x-" .. i, c = "c", d = "d", kind = "Two", list = host.json.array { "one", "two" } }
  end
  return { apiVersion = group .. "/v1", kind = "Thing", metadata = { name = "t" }, spec = spec }
end


-- Seconds for so many writes.
local function time_of(group, count)
  local path = GROUP_PATH:format(group) .. "/t"
  collectgarbage()
  local begin = os.clock()
  for i = 1, count do
    send("PATCH", path, ('{"spec":{"f1":{"a":%d}}}'):format(i), "application/merge-patch+json")
  end
  return os.clock() - begin
end


local PLAIN, RULED = "plain.example.com", "ruled.example.com"
for _, group in ipairs { PLAIN, RULED } do
  local begin = os.clock()
  send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    host.json.encode(crd(group, group == RULED)))
  hostlua.poll()
  send("POST", GROUP_PATH:format(group), host.json.encode(object(group)))
  if group == RULED then
    print(("compile\t%.3f"):format((os.clock() - begin) * 1000))
  end
end
local added = {}
for i = 1, ROUNDS do
  local plain = time_of(PLAIN, COUNT // ROUNDS)
  added[i] = (time_of(RULED, COUNT // ROUNDS) - plain) / (COUNT // ROUNDS) * 1e6
end
table.sort(added)
print(("added\t%.1f"):format(added[(ROUNDS + 1) // 2]))
