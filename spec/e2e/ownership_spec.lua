-- Whose an object is, and fields that no version of a script wants any more: on a server with its own idea of
-- managedFields, owner references and garbage collection.
local cjson = require "cjson"
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

-- Makes the ConfigMap spec.map, with the keys of spec.keys, and a Secret and a Deployment of that name, in the way that
-- spec.way says. NAME and FORMERLY are replaced.
local SCRIPT = [[
local moonloop = require "moonloop"
local Widget = moonloop.kind("e2e.moonloop.dev/v1", "Widget")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")
local Deployment = moonloop.kind("apps/v1", "Deployment")

local function objects(widget)
  local name, data, env = widget.spec.map, {}, {}
  for _, key in ipairs(widget.spec.keys) do
    data[key] = widget.metadata.name
    env[#env + 1] = { name = key, value = widget.metadata.name }
  end
  local labels = { app = name }
  return {
    { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = data },
    { apiVersion = "v1", kind = "Secret", metadata = { name = name }, stringData = data },
    { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = name }, spec = {
      replicas = 0, selector = { matchLabels = labels }, template = {
        metadata = { labels = labels }, spec = { containers = { { name = "main", image = "busybox", env = env } } },
      },
    } },
  }
end

return moonloop.controller {
  name = "NAME",
  formerly = FORMERLY,
  reconciles = Widget,
  owns = { ConfigMap, Secret, Deployment },

  reconcile = function(widget, ctx)
    local list = objects(widget)
    if widget.spec.away then
      list[#list + 1] = { apiVersion = "v1", kind = "ConfigMap", metadata = {
        name = widget.spec.map, namespace = widget.spec.away }, data = list[1].data }
    end
    local status = { way = widget.spec.way, keys = #widget.spec.keys, by = "NAME" }
    if widget.spec.way == "children" then
      return { children = list, status = status }
    end
    for _, object in ipairs(list) do
      assert(ctx[widget.spec.way](object, { adopt = widget.spec.adopt }))
    end
    return { status = status }
  end,

  finalize = function() end,
}
]]

local KINDS = { "ConfigMap", "Secret", "Deployment" }

describe("Whose an object is", function()
  local ns, away, moonloop

  local function folder(name, formerly)
    local text = SCRIPT:gsub("%f[%u]NAME", name):gsub("FORMERLY", formerly or "nil")
    return scripts.folder { ["owner.lua"] = text }
  end

  setup(function()
    scripts.install_widgets()
    ns, away = cluster.namespace "ownership", cluster.namespace "ownership-away"
    moonloop = host.start { name = "owner", scripts = folder "owner" }
    moonloop:till_ready()
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
    cluster.forget(away)
  end)

  local function widget(name, spec)
    return api.create("Widget", ns, { metadata = { name = name }, spec = spec })
  end

  local function till_status(name, want, seconds)
    wait.till(("%s to be done"):format(name), seconds or 30, function()
      local status = (api.get("Widget", ns, name) or {}).status or {}
      for key, value in pairs(want) do
        if status[key] ~= value then
          return false, ("%s is %s"):format(key, tostring(status[key]))
        end
      end
      return true
    end)
  end

  local function controller_of(kind, name)
    for _, reference in ipairs((api.get(kind, ns, name) or { metadata = {} }).metadata.ownerReferences or {}) do
      if reference.controller then
        return reference.uid
      end
    end
    return "nobody"
  end

  local function till_controlled(kind, name, uid)
    wait.till(("%s %s to have its owner"):format(kind, name), 30, function()
      local is = controller_of(kind, name)
      return is == uid, is
    end)
  end

  local function till_told(name, text)
    wait.till(("an Event on %s"):format(name), 30, function()
      for _, event in ipairs(api.list("Event", ns)) do
        if event.regarding.name == name and event.note:find(text, 1, true) then
          return true
        end
      end
      return false, "none"
    end)
  end

  local function orphan(name)
    for _, kind in ipairs(KINDS) do
      api.patch(kind, ns, name, { metadata = { ownerReferences = cjson.null } })
    end
  end

  for _, way in ipairs { "apply", "ensure", "children" } do
    it(("does not change, with %s, because a script names what a user has made"):format(way), function()
      local name = "precious-" .. way
      api.create("ConfigMap", ns, { metadata = { name = name }, data = { theirs = "1" } })
      widget(name, { way = way, map = name, keys = { "mine" } })
      till_told(name, "exists and is controlled by nothing")
      assert.same({ theirs = "1" }, api.get("ConfigMap", ns, name).data)
      api.delete("Widget", ns, name)
      wait.till("the owner to go", 20, function() return not api.get("Widget", ns, name), "there" end)
      assert.same({ theirs = "1" }, api.get("ConfigMap", ns, name).data)
      assert.equal("nobody", controller_of("ConfigMap", name))
    end)

    it(("stays that of the first, with %s, when two name one object"):format(way), function()
      local name = "shared-" .. way
      local first = widget(name, { way = way, map = name, keys = { "a" } })
      till_status(name, { way = way })
      widget(name .. "-2", { way = way, map = name, keys = { "a" } })
      till_told(name .. "-2", "is controlled by Widget " .. name)
      for _, kind in ipairs(KINDS) do
        assert.equal(first.metadata.uid, controller_of(kind, name))
      end
      assert.same({ a = name }, api.get("ConfigMap", ns, name).data)
    end)

    it(("is as it was, with %s, after owner references were lost"):format(way), function()
      local name = "lost-" .. way
      local owner = widget(name, { way = way, map = name, keys = { "a" } })
      till_status(name, { way = way })
      orphan(name)
      for _, kind in ipairs(KINDS) do
        till_controlled(kind, name, owner.metadata.uid)
      end
    end)
  end

  -- The garbage collector watches each kind by itself. It orphans the dependents that it has seen when the owner goes,
  -- and deletes one that it sees later. It has seen a dependent when it has collected a later one of that kind.
  local function till_dependents_seen()
    local owner = { apiVersion = "v1", kind = "ConfigMap", name = "gone", uid = "00000000-0000-4000-8000-000000000000" }
    local labels, containers = { app = "later" }, { { name = "main", image = "busybox" } }
    local deployment = {
      replicas = 0, selector = { matchLabels = labels },
      template = { metadata = { labels = labels }, spec = { containers = containers } },
    }
    for _, kind in ipairs(KINDS) do
      api.create(kind, ns, {
        metadata = { name = "later", ownerReferences = { owner } }, spec = kind == "Deployment" and deployment or nil,
      })
    end
    for _, kind in ipairs(KINDS) do
      wait.till("the end of " .. kind .. " later", 30, function() return not api.get(kind, ns, "later"), "there" end)
    end
  end

  it("goes to an owner that is made again after --cascade=orphan", function()
    widget("again", { way = "apply", map = "again", keys = { "a" } })
    till_status("again", { way = "apply" })
    local uid = api.get("ConfigMap", ns, "again").metadata.uid
    till_dependents_seen()
    kubectl.run("delete", "widget", "again", "-n", ns, "--cascade=orphan")
    wait.till("the owner to go", 60, function() return not api.get("Widget", ns, "again"), "there" end)
    local owner = widget("again", { way = "apply", map = "again", keys = { "a" } })
    for _, kind in ipairs(KINDS) do
      till_controlled(kind, "again", owner.metadata.uid)
    end
    assert.equal(uid, api.get("ConfigMap", ns, "again").metadata.uid)
  end)

  it("is taken over from a stranger where the script says so", function()
    api.create("ConfigMap", ns, { metadata = { name = "adopted" }, data = { theirs = "1" } })
    local owner = widget("adopted", { way = "apply", adopt = true, map = "adopted", keys = { "mine" } })
    till_status("adopted", { way = "apply" })
    assert.same({ theirs = "1", mine = "adopted" }, api.get("ConfigMap", ns, "adopted").data)
    assert.equal(owner.metadata.uid, controller_of("ConfigMap", "adopted"))
  end)

  local function env_of(name)
    local names = {}
    for _, entry in ipairs(api.get("Deployment", ns, name).spec.template.spec.containers[1].env or {}) do
      names[#names + 1] = entry.name
    end
    return table.concat(names, " ")
  end

  for _, way in ipairs { "apply", "children" } do
    it(("loses the fields that ensure set when the script goes to %s"):format(way), function()
      local name = "fields-" .. way
      widget(name, { way = "ensure", map = name, keys = { "KEPT", "PASSWORD" } })
      till_status(name, { way = "ensure" })
      assert.equal("KEPT PASSWORD", env_of(name))
      api.patch("ConfigMap", ns, name, { data = { theirs = "1" } })
      api.patch("Widget", ns, name, { spec = { way = way, keys = { "KEPT" } } })
      till_status(name, { way = way })
      assert.equal("KEPT", env_of(name))
      assert.same({ KEPT = name, theirs = "1" }, api.get("ConfigMap", ns, name).data)
      local data = api.get("Secret", ns, name).data
      assert.is_string(data.KEPT)
      assert.is_nil(data.PASSWORD)
      api.patch("Widget", ns, name, { spec = { keys = { "OTHER" } } }) -- and so on
      wait.till("the next key", 20, function() return env_of(name) == "OTHER", env_of(name) end)
      wait.till("the Secret's next key", 20, function()
        data = api.get("Secret", ns, name).data
        return data.OTHER and not data.KEPT, "not yet"
      end)
    end)
  end

  it("is taken over by another name of the controller, with all that it has", function()
    widget("named", { way = "children", map = "named", keys = { "KEPT", "PASSWORD" }, away = away })
    till_status("named", { by = "owner" })
    assert.truthy(api.get("ConfigMap", away, "named").data.PASSWORD)
    assert.same({ "moonloop.dev/owner" }, api.get("Widget", ns, "named").metadata.finalizers)
    moonloop:kill()
    host.start({ name = "owner-two", scripts = folder("owner-two", '{ "owner" }') }):till_ready()
    api.patch("Widget", ns, "named", { spec = { keys = { "KEPT" } } })
    till_status("named", { by = "owner-two", keys = 1 })
    assert.equal("KEPT", env_of("named"))
    assert.same({ KEPT = "named" }, api.get("ConfigMap", away, "named").data)
    local object = api.get("Widget", ns, "named")
    assert.same({ "moonloop.dev/owner-two" }, object.metadata.finalizers)
    assert.is_nil(object.metadata.annotations["children.moonloop.dev/owner"])
    api.delete("Widget", ns, "named")
    wait.till("it to go", 30, function() return not api.get("Widget", ns, "named"), "there" end)
    assert.is_nil(api.get("ConfigMap", away, "named"))
  end)
end)
