-- Children that a script returns: made, pruned, made again where the server refuses a change, never taken from others.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

local audited = audit.available and it or pending

local SCRIPT = [[
local moonloop = require "moonloop"
local Widget = moonloop.kind("e2e.moonloop.dev/v1", "Widget")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Service = moonloop.kind("v1", "Service")
local StatefulSet = moonloop.kind("apps/v1", "StatefulSet")
local Job = moonloop.kind("batch/v1", "Job")

local function pod(widget)
  local container = { name = "main", image = "busybox", command = { "sleep", widget.spec.sleep } }
  return { metadata = { labels = { app = widget.metadata.name } },
    spec = { restartPolicy = "Never", containers = { container } } }
end

local make = {}

function make.ConfigMap(widget, name)
  return { data = { say = widget.spec.say } }
end

function make.Service(widget)
  return { spec = { clusterIP = widget.spec.headless and "None" or nil, selector = { app = widget.metadata.name },
    ports = { { name = "http", port = 80 } } } }
end

function make.StatefulSet(widget)
  local template = pod(widget)
  template.spec.restartPolicy = "Always"
  return { spec = { replicas = 1, serviceName = widget.spec.serviceName, template = template,
    selector = { matchLabels = { app = widget.metadata.name } } } }
end

function make.Job(widget)
  return { spec = { template = pod(widget) } }
end

local VERSIONS = { ConfigMap = "v1", Service = "v1", StatefulSet = "apps/v1", Job = "batch/v1" }

return moonloop.controller {
  name = "children",
  reconciles = Widget,
  owns = { ConfigMap, Service, StatefulSet, Job },

  reconcile = function(widget)
    local children = {}
    for _, line in ipairs(widget.spec.children) do
      local kind, name = line:match "^(%a+) (%S+)$"
      local child = make[kind](widget)
      child.apiVersion, child.kind, child.metadata = VERSIONS[kind], kind, { name = name }
      for path in (widget.spec.exact or ""):gmatch "%S+" do
        moonloop.exact(child, path)
      end
      children[#children + 1] = moonloop.recreate(child)
    end
    return { children = children, status = { count = #children, say = widget.spec.say } }
  end,
}
]]

local FOLLOWED = [[
local moonloop = require "moonloop"
local Widget = moonloop.kind("e2e.moonloop.dev/v1", "Widget")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local ClusterRole = moonloop.kind("rbac.authorization.k8s.io/v1", "ClusterRole")

return moonloop.controller {
  name = "followed",
  reconciles = Widget,
  owns = { ConfigMap, ClusterRole },

  reconcile = function(widget)
    local children = {}
    for _, name in ipairs(widget.spec.maps) do
      children[#children + 1] = { apiVersion = "v1", kind = "ConfigMap",
        metadata = { name = name, namespace = widget.spec.namespace } }
    end
    children[#children + 1] = { apiVersion = ClusterRole.apiVersion, kind = "ClusterRole",
      metadata = { name = widget.metadata.namespace .. "-" .. widget.metadata.name },
      rules = { { apiGroups = { "" }, resources = { "pods" }, verbs = { "get" } } } }
    return { children = children, status = { count = #children } }
  end,

  finalize = function() end,
}
]]

describe("Children that cannot be owned", function()
  local ns, other, moonloop, folder

  setup(function()
    scripts.install_widgets()
    ns, other = cluster.namespace "follows", cluster.namespace "followed"
    folder = scripts.folder { ["followed.lua"] = FOLLOWED }
    moonloop = host.start { name = "followed", scripts = folder }
    moonloop:till_ready()
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
    cluster.forget(other)
  end)

  local function till_count(name, count)
    wait.till(("%s to have %d"):format(name, count), 20, function()
      local object = api.get("Widget", ns, name)
      local has = object and object.status and object.status.count
      return has == count, has
    end)
  end

  local function till_gone(kind, namespace, name)
    wait.till(("%s %s to go"):format(kind, name), 20, function()
      return not api.get(kind, namespace, name), "still there"
    end)
  end

  local function widget(name, maps)
    api.create("Widget", ns, { metadata = { name = name }, spec = { namespace = other, maps = maps } })
    till_count(name, #maps + 1)
  end

  it("are made, listed, pruned, and go with the object", function()
    widget("one", { "one-a", "one-b" })
    local role = ns .. "-one"
    assert.truthy(api.get("ClusterRole", nil, role))
    assert.truthy(api.get("ConfigMap", other, "one-b"))
    local list = api.get("Widget", ns, "one").metadata.annotations["children.moonloop.dev/followed"]
    assert.equal(("v1 ConfigMap %s/one-a,v1 ConfigMap %s/one-b,rbac.authorization.k8s.io/v1 ClusterRole %s"):format(
      other, other, role), list)
    api.patch("Widget", ns, "one", { spec = { maps = { "one-a" } } })
    till_gone("ConfigMap", other, "one-b")
    till_count("one", 2)
    api.delete("Widget", ns, "one")
    till_gone("Widget", ns, "one")
    assert.is_nil(api.get("ConfigMap", other, "one-a"))
    assert.is_nil(api.get("ClusterRole", nil, role))
  end)

  it("come back when somebody deletes them", function()
    widget("two", { "two-a" })
    api.delete("ConfigMap", other, "two-a")
    wait.till("it to be back", 10, function() return api.get("ConfigMap", other, "two-a"), "gone" end)
    api.delete("Widget", ns, "two")
    till_gone("Widget", ns, "two")
  end)

  it("go with an object that is deleted while the operator is down", function()
    widget("three", { "three-a" })
    moonloop:kill()
    api.delete("Widget", ns, "three")
    assert.truthy(api.get("Widget", ns, "three").metadata.deletionTimestamp)
    host.start({ name = "followed-again", scripts = folder }):till_ready()
    till_gone("Widget", ns, "three")
    assert.is_nil(api.get("ConfigMap", other, "three-a"))
    assert.is_nil(api.get("ClusterRole", nil, ns .. "-three"))
  end)
end)

describe("Returned children", function()
  local ns

  setup(function()
    scripts.install_widgets()
    ns = cluster.namespace "children"
    host.start({ name = "children", scripts = scripts.folder { ["children.lua"] = SCRIPT } }):till_ready()
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function widget(name, spec)
    return api.create("Widget", ns, { metadata = { name = name }, spec = spec })
  end

  local function change(name, spec)
    api.patch("Widget", ns, name, { spec = spec })
  end

  local function till_status(name, say, seconds)
    return wait.till(("%s to say %s"):format(name, say), seconds or 20, function()
      local object = api.get("Widget", ns, name)
      local status = object and object.status or {}
      return status.say == say and object, status.say or "nothing"
    end)
  end

  local function till_gone(kind, name)
    wait.till(("%s %s to go"):format(kind, name), 20, function()
      return not api.get(kind, ns, name), "still there"
    end)
  end

  it("are made, belong to the object, and the status comes last", function()
    local owner = widget("made", { say = "a", children = { "ConfigMap made-1", "ConfigMap made-2" } })
    till_status("made", "a")
    for _, name in ipairs { "made-1", "made-2" } do
      local map = api.get("ConfigMap", ns, name)
      assert.same({ say = "a" }, map.data)
      assert.equal(owner.metadata.uid, map.metadata.ownerReferences[1].uid)
    end
  end)

  audited("go when they are not returned any more, the last first, and what is kept is not written", function()
    local four = { "ConfigMap less-1", "ConfigMap less-2", "ConfigMap less-3", "Service less" }
    widget("less", { say = "a", children = four })
    till_status("less", "a")
    local mark = audit.mark()
    change("less", { children = { "ConfigMap less-1" } })
    for _, child in ipairs { "ConfigMap less-3", "ConfigMap less-2", "Service less" } do
      till_gone(child:match "^(%a+) (%S+)$")
    end
    local order = {}
    for _, event in ipairs(audit.since(mark, { ns = ns, writes = true, by_moonloop = true })) do
      if event.objectRef.resource ~= "widgets" and event.objectRef.resource ~= "events" then
        order[#order + 1] = ("%s %s/%s"):format(event.verb, event.objectRef.resource, event.objectRef.name)
      end
    end
    assert.same({ "delete services/less", "delete configmaps/less-3", "delete configmaps/less-2" }, order)
    assert.truthy(api.get("ConfigMap", ns, "less-1"))
  end)

  it("come back, and are put right", function()
    widget("right", { say = "a", children = { "ConfigMap right" } })
    till_status("right", "a")
    api.delete("ConfigMap", ns, "right")
    wait.till("it to be back", 10, function() return api.get("ConfigMap", ns, "right"), "gone" end)
    api.patch("ConfigMap", ns, "right", { data = { say = "mine" } })
    wait.till("it to say a", 10, function()
      local said = api.get("ConfigMap", ns, "right").data.say
      return said == "a", said
    end)
  end)

  it("lose the keys of others in maps that are exact, and in no other", function()
    widget("exact", { say = "a", exact = "data metadata.labels", children = { "ConfigMap exact" } })
    till_status("exact", "a")
    local theirs = { theirs = "yes" }
    api.patch("ConfigMap", ns, "exact", { metadata = { labels = theirs, annotations = theirs }, data = theirs })
    local map = wait.till("the keys of others to be gone", 10, function()
      local object = api.get("ConfigMap", ns, "exact")
      return not object.data.theirs and not object.metadata.labels and object, "still there"
    end)
    assert.same({ say = "a" }, map.data)
    assert.equal("yes", map.metadata.annotations.theirs)
    change("exact", { exact = "" })
    change("exact", { say = "b" })
    till_status("exact", "b")
    api.patch("ConfigMap", ns, "exact", { data = theirs })
    change("exact", { say = "c" })
    till_status("exact", "c")
    assert.same({ say = "c", theirs = "yes" }, api.get("ConfigMap", ns, "exact").data)
  end)

  it("do not take over what exists; the error names whose it is, and nothing is pruned", function()
    api.create("ConfigMap", ns, { metadata = { name = "foreign" }, data = { say = "theirs" } })
    widget("thief", { say = "a", children = { "ConfigMap thief" } })
    till_status("thief", "a")
    change("thief", { say = "b", children = { "ConfigMap foreign", "ConfigMap thief-2" } })
    wait.till("an Event that names it", 20, function()
      for _, event in ipairs(api.list("Event", ns)) do
        if event.reason == "ReconcileFailed" and event.note:find("ConfigMap " .. ns .. "/foreign exists and is "
          .. "controlled by nothing", 1, true) then
          return true
        end
      end
      return false, "none"
    end)
    assert.same({ say = "theirs" }, api.get("ConfigMap", ns, "foreign").data)
    assert.is_nil(api.get("ConfigMap", ns, "foreign").metadata.ownerReferences)
    assert.truthy(api.get("ConfigMap", ns, "thief-2"))
    assert.truthy(api.get("ConfigMap", ns, "thief"))
    assert.equal("a", api.get("Widget", ns, "thief").status.say)
  end)

  for _, case in ipairs {
    { kind = "Service", from = { headless = false }, to = { headless = true } },
    { kind = "StatefulSet", from = { serviceName = "one", sleep = "600" }, to = { serviceName = "two" } },
    { kind = "Job", from = { sleep = "600" }, to = { sleep = "700" } },
  } do
    it(("that cannot be changed are made again: a %s"):format(case.kind), function()
      local name = "again-" .. case.kind:lower()
      case.from.say, case.from.children = "a", { ("%s %s"):format(case.kind, name) }
      widget(name, case.from)
      till_status(name, "a")
      local old = api.get(case.kind, ns, name)
      case.to.say = "b"
      change(name, case.to)
      local new = wait.till("another one", 40, function()
        local object = api.get(case.kind, ns, name)
        return object and object.metadata.uid ~= old.metadata.uid and object, object and "the old one" or "none"
      end)
      till_status(name, "b")
      assert.equal(1, #new.metadata.ownerReferences)
      assert.equal(new.metadata.uid, api.get(case.kind, ns, name).metadata.uid)
    end)
  end

  it("are not merged into what exists: an apply with the version of nothing makes an object or conflicts", function()
    local path = ("/api/v1/namespaces/%s/configmaps/guarded?fieldManager=e2e&force=true"):format(ns)
    local body = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "guarded", resourceVersion = "1" } }
    local codes = {}
    for round, said in ipairs { "a", "a", "b" } do
      body.data = { say = said }
      codes[round] = select(2, api.request("PATCH", path, body, "application/apply-patch+yaml"))
    end
    assert.same({ 201, 409, 409 }, codes)
    assert.same({ say = "a" }, api.get("ConfigMap", ns, "guarded").data)
  end)

  it("that the server would not take again are not deleted for that", function()
    widget("bad", { say = "a", serviceName = "one", sleep = "600", children = { "StatefulSet bad" } })
    till_status("bad", "a")
    local old = api.get("StatefulSet", ns, "bad")
    change("bad", { serviceName = "Not A Name" })
    wait.till("an Event", 20, function()
      for _, event in ipairs(api.list("Event", ns)) do
        if event.regarding.name == "bad" and event.reason == "ReconcileFailed" then
          return true
        end
      end
      return false, "none"
    end)
    assert.equal(old.metadata.uid, api.get("StatefulSet", ns, "bad").metadata.uid)
    assert.is_nil(api.get("StatefulSet", ns, "bad").metadata.deletionTimestamp)
  end)
end)
