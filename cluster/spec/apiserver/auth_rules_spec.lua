--- Rules of roles: what one allows, and what covers what.
local rules = require "cluster.apiserver.auth.rules"


local function words(text)
  local list = {}
  for word in text:gmatch("%S+") do
    list[#list + 1] = word == "core" and "" or word
  end
  return list
end


-- "get list | core apps | pods" or "get | /healthz"; a fourth part are names of resources.
local function rule(text)
  local parts = {}
  for part in (text .. " | "):gmatch("(.-) | ") do
    parts[#parts + 1] = words(part)
  end
  if #parts == 2 then
    return { verbs = parts[1], nonResourceURLs = parts[2] }
  end
  return { verbs = parts[1], apiGroups = parts[2], resources = parts[3], resourceNames = parts[4] }
end


-- "get apps deployments/scale name", "get /healthz"
local function attributes(text)
  local verb, group, resource, name = text:match("^(%S+) (%S+) (%S+) ?(%S*)$")
  if not verb then
    verb, name = text:match("^(%S+) (%S+)$")
    return { verb = verb, path = name }
  end
  local plural, subresource = resource:match("^([^/]*)/(.*)$")
  return { is_resource = true, verb = verb, group = group == "core" and "" or group, resource = plural or resource,
    subresource = subresource, name = name ~= "" and name or nil }
end


describe("a rule", function()
  local cases = {
    { "get | core | pods", "get core pods", true },
    { "get | core | pods", "list core pods", false },
    { "get | core | pods", "get apps pods", false },
    { "get | core | pods", "get core pods/log", false },
    { "get | core | pods/log", "get core pods/log", true },
    { "get | core | */log", "get core pods/log", true },
    { "get | core | */log", "get core pods", false },
    { "* | * | *", "delete x y/z n", true },
    { "* | * | *", "get /healthz", false },
    { "get | core | pods | one two", "get core pods one", true },
    { "get | core | pods | one two", "get core pods three", false },
    { "get | core | pods | one two", "get core pods", false },
    { "get | /healthz", "get /healthz", true },
    { "get | /healthz", "get /healthz/ping", false },
    { "get | /healthz/*", "get /healthz/ping", true },
    { "get | /healthz/*", "post /healthz/ping", false },
    { "* | *", "post /anything", true },
    { "get | *", "get core pods", false },
  }
  for _, case in ipairs(cases) do
    it(("[%s] %s %s"):format(case[1], case[3] and "allows" or "does not allow", case[2]), function()
      assert.equal(case[3], rules.allows(rule(case[1]), attributes(case[2])))
    end)
  end
end)


describe("rules cover", function()
  local cases = {
    { { "get list | core | pods secrets" }, "get | core | pods", nil },
    { { "* | * | *" }, "get delete | core apps | pods deployments/scale", nil },
    { { "get | core | pods", "list | core | pods" }, "get list | core | pods", nil },
    { { "get | core | */scale" }, "get | core | pods/scale", nil },
    { { "get | core | pods" }, "get | core | pods | one", nil },
    { { "get | core | pods | one" }, "get | core | pods", '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}' },
    { { "get | core | pods | one" }, "get | core | pods | one two",
      '{APIGroups:[""], Resources:["pods"], ResourceNames:["two"], Verbs:["get"]}' },
    { {}, "get list | apps | deployments", '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}' },
    { { "get | /healthz/*" }, "get | /healthz/ping /metrics", '{NonResourceURLs:["/metrics"], Verbs:["get"]}' },
  }
  for i, case in ipairs(cases) do
    it(("%s (%d)"):format(case[3] and "not all" or "all", i), function()
      local owned = {}
      for j, text in ipairs(case[1]) do
        owned[j] = rule(text)
      end
      assert.same(case[3] and { case[3] } or nil, rules.missing(owned, { rule(case[2]) }))
    end)
  end
end)
