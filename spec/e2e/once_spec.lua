-- ctx.once with two processes that work on the same objects at the same time, without a Lease, and with one that is
-- killed: each value is made once, and whoever saw one saw the same.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

local audited = audit.available and it or pending

-- Each replica notes the values that it saw in a ConfigMap of its own. REPLICA and KEYS are replaced.
local SCRIPT = [[
local moonloop = require "moonloop"

local At = moonloop.kind("cnat.programming-kubernetes.info/v1alpha1", "At")
local Secret = moonloop.kind("v1", "Secret")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function value() return ("%016x"):format(math.random(0, math.maxinteger)) end

return moonloop.controller {
  name = "once",
  reconciles = At,
  owns = { Secret, ConfigMap },
  reconcile = function(at, ctx)
    local values = assert(ctx.once(at.metadata.name, { KEYS }))
    assert(ctx.apply {
      apiVersion = "v1", kind = "ConfigMap",
      metadata = { name = at.metadata.name .. "-REPLICA" }, data = values,
    })
  end,
}
]]

describe("ctx.once in two processes", function()
  local ns, mark

  before_each(function()
    ns = cluster.namespace "once"
    mark = audit.available and audit.mark()
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start(replica, keys)
    local list = {}
    for key in keys:gmatch "%a" do
      list[#list + 1] = key .. " = value"
    end
    local text = SCRIPT:gsub("%u%u%u%u+", { REPLICA = replica, KEYS = table.concat(list, ", ") })
    return host.start { name = "once-" .. replica, scripts = scripts.folder { ["once.lua"] = text }, namespaces = ns }
  end

  local function make_ats(count)
    for index = 1, count do
      cluster.at(ns, ("at-%03d"):format(index), cluster.due_in(3600))
    end
  end

  -- All replicas have seen the values that the server has.
  local function till_same(count, replicas, keys)
    wait.till("each replica to have each value", 60, function()
      local seen, done = {}, 0
      for _, map in ipairs(api.list("ConfigMap", ns)) do
        seen[map.metadata.name] = map.data
      end
      for _, secret in ipairs(api.list("Secret", ns, "?labelSelector=moonloop.dev%2Fonce%3Dtrue")) do
        local same = true
        for replica in replicas:gmatch "%a" do
          local data = seen[("%s-%s"):format(secret.metadata.name, replica)] or {}
          for key in keys:gmatch "%a" do
            same = same and data[key] ~= nil and secret.data[key] == require("mime").b64(data[key])
          end
        end
        done = done + (same and 1 or 0)
      end
      return done == count
    end)
  end

  -- As many Secrets as Ats, none made twice, and none patched more often than its keys changed. A server may record no
  -- code for what it made for a process that was killed meanwhile.
  local function made_once(count, keysets)
    local names, writes = {}, {}
    for _, event in ipairs(audit.since(mark, { ns = ns, resource = "secrets", verb = "create", code = 201 })) do
      local name = event.objectRef.name
      names[name] = (names[name] or 0) + 1
      assert.equal(1, names[name], name)
    end
    assert.is_truthy(next(names))
    assert.equal(count, #api.list("Secret", ns, "?labelSelector=moonloop.dev%2Fonce%3Dtrue"))
    for _, event in ipairs(audit.since(mark, { ns = ns, resource = "secrets", verb = "patch", code = 200 })) do
      local name = event.objectRef.name
      writes[name] = (writes[name] or 0) + 1
      assert.is_true(writes[name] < keysets, name .. " was patched once more")
    end
  end

  audited("gives both the same values", function()
    local a, b = start("a", "x"), start("b", "x")
    a:till_ready()
    b:till_ready()
    make_ats(40)
    till_same(40, "ab", "x")
    made_once(40, 1)
    assert.same({}, a:complaints "reconcile failed")
    assert.same({}, b:complaints "reconcile failed")
  end)

  audited("gives the next process what a killed one has made", function()
    local a = start("a", "x")
    a:till_ready()
    make_ats(60)
    wait.till("some Secrets", 20, function()
      return #audit.since(mark, { ns = ns, resource = "secrets", verb = "create", code = 201 }) > 10
    end)
    a:kill()
    start("a", "x"):till_ready()
    till_same(60, "a", "x")
    made_once(60, 1)
  end)

  audited("adds a key once, whoever comes first", function()
    make_ats(20)
    local first = start("a", "x")
    till_same(20, "a", "x")
    first:stop()
    local a, b = start("a", "xy"), start("b", "xy")
    a:till_ready()
    b:till_ready()
    till_same(20, "ab", "xy")
    made_once(20, 2)
  end)
end)
