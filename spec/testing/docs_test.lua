-- Each script in the pages of docs/ does what its page says: every one has a scenario here, by the heading above it.
local cjson = require "cjson"
local examples = require "doc_examples"
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Pod = moonloop.kind("v1", "Pod")
local Secret = moonloop.kind("v1", "Secret")

local function kind(name)
  return moonloop.kind("example.com/v1", name)
end


local function object(name, spec)
  return { apiVersion = "example.com/v1", kind = name, metadata = { name = "a" }, spec = spec }
end


local function configmap(name, data, namespace)
  return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = namespace }, data = data }
end


local function condition(world, type)
  for _, each in ipairs(world.get(kind "Site", "a").status.conditions or {}) do
    if each.type == type then
      return each.status
    end
  end
end


local scenarios = {}

scenarios["Writing a reconciler"] = function(world)
  world.apply(object("Site", {}))
  world.advance "1s"
  assert.equal("Invalid", world.events(kind "Site", "a")[1].reason)
  world.patch(kind "Site", "a", { spec = { title = "Hello" } })
  world.expect(ConfigMap, "a-page", { data = { ["index.html"] = "<h1>Hello</h1>" } })
  world.expect(kind "Site", "a", { status = { ready = true } })
end


scenarios["Whose an object is"] = function(world)
  local Service = moonloop.kind("v1", "Service")
  world.apply { configmap("a", { theirs = "1" }), {
    apiVersion = "v1", kind = "Service", metadata = { name = "a" }, spec = { ports = { { port = 80 } } },
  } }
  world.apply(object("Site", { title = "Hello" }))
  world.advance "1s"
  assert.matches("exists and is controlled by nothing", world.events(kind "Site", "a")[1].note)
  assert.is_nil(world.get(Service, "a").metadata.ownerReferences)
  world.patch(kind "Site", "a", { spec = { takeOver = true } })
  world.expect(ConfigMap, "a", { data = { theirs = "1", title = "Hello" } })
  world.expect(ConfigMap, "a", { metadata = { ownerReferences = { { name = "a" } } } })
  world.expect(Service, "a", { metadata = { ownerReferences = { { name = "a" } } } })
end


scenarios["Maps without keys of others"] = function(world)
  world.apply(object("Site", { title = "Hello" }))
  world.patch(ConfigMap, "a", { data = { theirs = "1" }, binaryData = { more = "eA==" } })
  assert.same({ title = "Hello" }, world.get(ConfigMap, "a").data)
  assert.is_nil(world.get(ConfigMap, "a").binaryData)
end


scenarios["An object of its own kind"] = function(world)
  world.apply(object("Site", { title = "Hello", preview = "Soon" }))
  world.expect(kind "Site", "a-preview", { spec = { title = "Soon" } })
  world.expect(kind "Site", "a-preview-preview", false)
  world.delete(kind "Site", "a")
  world.expect(kind "Site", "a-preview", false)
end


scenarios["Another name"] = function(world)
  local Site = kind "Site"
  world.apply { apiVersion = "example.com/v1", kind = "Site", metadata = { name = "a", finalizers = {
    "moonloop.dev/site" } }, spec = {} }
  world.expect(ConfigMap, "a", {})
  assert.same({ "moonloop.dev/websites" }, world.get(Site, "a").metadata.finalizers)
  world.delete(Site, "a")
  world.expect(Site, "a", false)
end


scenarios["Doing: `ctx`"] = function(world)
  local Diary = kind "Diary"
  world.apply(object("Diary", { pin = "2026-07-02" }))
  world.expect(ConfigMap, "a-2026-07-01", { metadata = { ownerReferences = { { name = "a" } } } })
  world.expect(Diary, "a", { status = { page = "a-2026-07-01" } })
  world.advance "14h1m" -- Events are kept for an hour
  world.expect(ConfigMap, "a-2026-07-01", false)
  world.expect(ConfigMap, "a-2026-07-02", { metadata = { labels = { pinned = "yes" } } })
  assert.equal("Pinned", world.events(Diary, "a")[1].reason)
  world.apply(configmap("a-2026-07-04"))
  world.advance "24h"
  world.expect(ConfigMap, "a-2026-07-02", {})
  world.expect(ConfigMap, "a-2026-07-03", {})
  world.advance "24h"
  assert.equal("Failed", world.events(Diary, "a")[1].reason)
  world.expect(Diary, "a", { status = { page = "a-2026-07-03" } })
end


scenarios["Conditions"] = function(world)
  world.apply(object "Site")
  assert.equal("False", condition(world, "Ready"))
  assert.is_nil(condition(world, "Large"))
  local page = configmap("a-page", { html = ("x"):rep(1001) })
  page.metadata.ownerReferences = { {
    apiVersion = "example.com/v1", kind = "Site", name = "a", controller = true,
    uid = world.get(kind "Site", "a").metadata.uid,
  } }
  world.apply(page)
  assert.same({ "True", "True" }, { condition(world, "Ready"), condition(world, "Large") })
end


scenarios["Children"] = function(world)
  world.apply(object("Site", { image = "one" }))
  world.expect(ConfigMap, "a", {})
  local first = world.get(Pod, "a-1")
  assert.equal("a", first.metadata.ownerReferences[1].name)
  world.patch(kind "Site", "a", { spec = { replicas = 2 } })
  world.expect(Pod, "a-2", {})
  world.patch(kind "Site", "a", { spec = { replicas = 1 } })
  world.advance "1m"
  world.expect(Pod, "a-2", false)
  world.expect(kind "Site", "a", { status = { replicas = 1 } })
  assert.equal(first.metadata.uid, world.get(Pod, "a-1").metadata.uid)
end


scenarios["Generated names"] = function(world)
  world.apply(object("Site", { title = "one" }))
  world.restart()
  world.expect(kind "Site", "a", { status = { revisions = 1 } })
  world.patch(kind "Site", "a", { spec = { title = "two" } })
  world.advance "1m"
  world.expect(kind "Site", "a", { status = { revisions = 2 } })
  assert.matches("^a%-1%-%w+$", world.list(ConfigMap)[1].metadata.name)
end


scenarios["Values that are made once"] = function(world)
  world.apply(object "Database")
  local data, status = world.get(Secret, "a-credentials").data, world.get(kind "Database", "a").status
  world.restart()
  world.patch(kind "Database", "a", { metadata = { labels = { x = "y" } } })
  assert.same(data, world.get(Secret, "a-credentials").data)
  assert.same(status, world.get(kind "Database", "a").status)
  assert.truthy(data.password and data.token)
  assert.equal("a-credentials", status.secret)
end


scenarios["Cleaning up"] = function(world)
  world.apply { apiVersion = "v1", kind = "Namespace", metadata = { name = "pages" } }
  world.apply(object "Site")
  world.expect(ConfigMap, "a-page", {}, "pages")
  world.delete(kind "Site", "a")
  world.expect(ConfigMap, "a-page", false, "pages")
  world.expect(kind "Site", "a", { status = { phase = "Deleting" } })
  world.advance "10s"
  world.expect(kind "Site", "a", false)
end


scenarios["A part of a kind"] = function(world)
  world.apply(object "Site")
  for name, labels in pairs {
    one = { site = "a", tier = "web" }, two = { site = "a", tier = "api" }, three = { site = "a", tier = "db" },
  } do
    world.apply {
      apiVersion = "v1", kind = "Pod", metadata = { name = name, labels = labels },
      spec = { containers = { { name = "main", image = "busybox" } } },
    }
  end
  world.expect(kind "Site", "a", { status = { pods = 2 } })
end


scenarios["Objects that refer to another"] = function(world)
  world.apply(configmap("gold", { greeting = "hello" }))
  world.apply(object("Tenant", { template = "gold" }))
  world.expect(kind "Tenant", "a", { status = { greeting = "hello" } })
  world.apply(configmap("gold", { greeting = "good evening" }))
  world.expect(kind "Tenant", "a", { status = { greeting = "good evening" } })
end


scenarios["Events on other objects"] = function(world)
  local spec = { nodeName = "n1", containers = { { name = "main", image = "web:1" } } }
  world.apply {
    { apiVersion = "v1", kind = "Namespace", metadata = { name = "b" } },
    { apiVersion = "v1", kind = "ServiceAccount", metadata = { name = "default", namespace = "b" } },
    { apiVersion = "v1", kind = "Pod", metadata = { name = "p", namespace = "b", labels = { site = "a" } },
      spec = spec },
    { apiVersion = "example.com/v1", kind = "Site", metadata = { name = "a", namespace = "b" },
      spec = { image = "web:2" } },
  }
  world.advance "1s"
  local of_pod, of_node = world.events(Pod, "p")[1], world.events(moonloop.kind("v1", "Node"), "n1")[1]
  assert.same({ "OldImage", "Warning", "b", "Site" },
    { of_pod.reason, of_pod.type, of_pod.namespace, of_pod.related.kind })
  assert.same({ "HasSite", "Normal", "default", "p" },
    { of_node.reason, of_node.type, of_node.namespace, of_node.related.name })
  assert.same({}, world.events(kind "Site", "a"))
end


scenarios["Metrics and HTTP"] = function(world)
  local answer
  world.http(function(request)
    assert(request.url:find "^https://billing%.example%.com/accounts/%x")
    assert(cjson.decode(request.body).name == "a")
    return answer
  end)
  answer = { status = 503 }
  world.apply(object "Tenant")
  world.expect(kind "Tenant", "a", { status = { message = "billing says 503" } })
  assert.equal(1, world.metric "refused")
  answer = { status = 200, body = '{"credit": 70}' }
  world.advance "1m"
  world.expect(kind "Tenant", "a", { status = { credit = 70, message = "" } })
  assert.equal(70, world.metric("credit", { tenant = "a" }))
  assert.equal(0, world.metric "refused")
  assert.equal(2, world.metric "calls_total")
  assert.equal(1, world.metric "credits")
end


scenarios["Webhooks of a script"] = function(world)
  local function widget(spec, version)
    return { apiVersion = version or "example.com/v1", kind = "Widget", metadata = { name = "a" }, spec = spec }
  end
  world.apply(widget { shape = "round" })
  world.expect(kind "Widget", "a", { spec = { size = 3 }, status = { size = 3 } })
  local ok, why = pcall(world.apply, widget { shape = "square" })
  assert.is_false(ok)
  assert.matches("the shape of a widget cannot be changed", why)
  ok, why = pcall(world.apply, widget { size = 101, shape = "round" })
  assert.is_false(ok)
  assert.matches("spec.size: at most 100", why)
  world.round_trip(widget { size = 7, shape = "round" })
  world.round_trip(widget({ width = 7 }, "example.com/v1alpha1"))
end


describe("The example in docs/", function()
  local path = os.tmpname()

  teardown(function()
    os.remove(path)
    os.remove(path .. ".lua")
  end)

  for _, example in ipairs(examples.read()) do
    if example.is_script then
      it(("%s.md, %s, works"):format(example.page, example.heading), function()
        local scenario = scenarios[example.heading]
        assert(scenario, "no scenario plays it; and each heading has one script at most")
        scenarios[example.heading] = nil
        local file = assert(io.open(path .. ".lua", "w"))
        file:write(example.text)
        file:close()
        scenario(testing.world {
          now = "2026-07-01T10:00:00Z", scripts = path .. ".lua",
          crds = { "spec/testing/doc_crds", "spec/testing/webhooks/crds" },
        })
      end)
    end
  end
end)


-- Under the name of a test of cnat, so that the world has that script.
describe("The example in docs/testing.md,", function()
  for i, example in ipairs(examples.of "testing") do
    it(("%s, %d, works"):format(example.heading, i), function()
      local run = 0
      local env = setmetatable({
        At = moonloop.kind("cnat.programming-kubernetes.info/v1alpha1", "At"),
        spec = { schedule = "2026-01-01T00:00:00Z", command = "true" },
        world = testing.world { scripts = "reconcilers/cnat.lua", crds = "crds" },
        assert = assert,
        describe = function(_, fn) fn() end,
        it = function(_, fn)
          fn()
          run = run + 1
        end,
      }, { __index = _G })
      assert(load(example.text, "@reconcilers/cnat_test.lua", "t", env))()
      assert.equal(example.text:find('it("', 1, true) and 1 or 0, run)
    end)
  end
end)
