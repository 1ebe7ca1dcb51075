-- Fights over one field: between two scripts, and with a client outside. The Deployment's own controller writes the
-- status after each change.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

-- Sets the replicas of the Deployment of its name.
local SCALER = [[
local moonloop = require "moonloop"
local Widget = moonloop.kind("e2e.moonloop.dev/v1", "Widget")
local Deployment = moonloop.kind("apps/v1", "Deployment")

return moonloop.controller {
  name = "NAME",
  reconciles = Widget,
  watches = { moonloop.watch(Deployment, function(deployment)
    return { { namespace = deployment.metadata.namespace, name = deployment.metadata.name } }
  end) },

  reconcile = function(widget, ctx)
    local deployment = ctx.get(Deployment, widget.metadata.name)
    if deployment and deployment.spec.replicas ~= REPLICAS then
      ctx.patch(deployment, { spec = { replicas = REPLICAS } }) -- a Conflict: the change that it met calls again
    end
  end,
}
]]

describe("A fight over the replicas of a Deployment", function()
  local ns

  setup(function()
    scripts.install_widgets()
  end)

  before_each(function()
    ns = cluster.namespace "fight"
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start(name, scalers)
    local files = {}
    for controller, replicas in pairs(scalers) do
      files[controller .. ".lua"] = SCALER:gsub("NAME", controller):gsub("REPLICAS", tostring(replicas))
    end
    local moonloop = host.start { name = name, namespaces = ns, scripts = scripts.folder(files) }
    moonloop:till_ready()
    return moonloop
  end

  local function fight_over(name)
    local labels = { app = name }
    api.create("Deployment", ns, { metadata = { name = name }, spec = {
      replicas = 1, selector = { matchLabels = labels },
      template = { metadata = { labels = labels }, spec = { containers = { { name = "main", image = "busybox" } } } },
    } })
    api.create("Widget", ns, { metadata = { name = name }, spec = {} })
  end

  local function generation(name)
    return api.get("Deployment", ns, name).metadata.generation
  end

  it("between two scripts is slowed within 5 s, and both lines and the field are named", function()
    local moonloop = start("fight", { ["fight-a"] = 2, ["fight-b"] = 0 })
    fight_over "x"
    moonloop:till_log({ msg = "somebody else changes the same field in turn", other = "controller fight-",
      changes = ("Deployment %s/x: spec.replicas"):format(ns) }, 10)
    wait.pass(5)
    local before = generation "x"
    wait.pass(5)
    assert.is_true(generation "x" - before <= 20, ("%d changes in 5 s"):format(generation "x" - before))
    for controller, other in pairs { ["fight-a"] = "fight-b", ["fight-b"] = "fight-a" } do
      local lines = {}
      for i, side in ipairs { controller, other } do
        lines[i] = side .. ".lua:15 of revision "
          .. moonloop:lines({ msg = "script is live", controller = side })[1].revision
      end
      cluster.till_event(ns, "Widget", "x", "ControllersFight",
        ("controller %s and controller %s change the same field in turn: Deployment %s/x: spec.replicas (%s)"):format(
          controller, other, ns, table.concat(lines, ", ")))
      assert.is_true(moonloop:metric("moonloop_self_triggers_slowed_total", { controller = controller }) > 0)
    end
  end)

  it("with a client outside is slowed, and its field manager is named", function()
    local moonloop = start("fight-outside", { ["fight-c"] = 2 })
    fight_over "y"
    local path = ("/apis/apps/v1/namespaces/%s/deployments/y?fieldManager=somebody"):format(ns)
    local function others_change()
      api.request("PATCH", path, { spec = { replicas = 0 } }, "application/merge-patch+json")
    end
    wait.till("the fight to be told", 60, function()
      others_change()
      return moonloop:lines { msg = "somebody else changes", other = "field manager somebody" }[1], "not told"
    end)
    cluster.till_event(ns, "Widget", "y", "ControllersFight", "field manager somebody")
    local before = generation "y"
    for _ = 1, 100 do
      others_change()
    end
    wait.pass(1)
    assert.is_true(generation "y" - before <= 40, ("%d changes"):format(generation "y" - before))
    others_change()
    wait.till("it to be set back", 120, function()
      return api.get("Deployment", ns, "y").spec.replicas == 2, "not yet"
    end)
  end)
end)


-- Makes the Deployment of its name, with the resourceVersion of that in the template of the pods, which each rollout
-- changes.
local ROLLER = [[
local moonloop = require "moonloop"
local Widget = moonloop.kind("e2e.moonloop.dev/v1", "Widget")
local Deployment = moonloop.kind("apps/v1", "Deployment")

return moonloop.controller {
  name = "roller",
  reconciles = Widget,
  owns = { Deployment },

  reconcile = function(widget, ctx)
    local name, labels = widget.metadata.name, { app = widget.metadata.name }
    local deployment = ctx.get(Deployment, name)
    local annotations = { ["example.com/version"] = deployment and deployment.metadata.resourceVersion }
    return {
      children = { { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = name }, spec = {
        replicas = 1, selector = { matchLabels = labels },
        template = {
          metadata = { labels = labels, annotations = annotations },
          spec = { containers = { { name = "main", image = "busybox" } } },
        },
      } } },
    }
  end,
}
]]

describe("A resourceVersion in the template of Deployments", function()
  local DEPLOYMENTS = 30
  local ns

  setup(function()
    scripts.install_widgets()
  end)

  before_each(function()
    ns = cluster.namespace "roller"
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function generations()
    local sum = 0
    for _, deployment in ipairs(api.list("Deployment", ns)) do
      sum = sum + deployment.metadata.generation
    end
    return sum
  end

  it("rolls none of thirty for ever, and the field is named", function()
    for number = 1, DEPLOYMENTS do
      api.create("Widget", ns, { metadata = { name = "r" .. number }, spec = {} })
    end
    local moonloop = host.start { name = "roller", namespaces = ns, scripts = scripts.folder { ["r.lua"] = ROLLER } }
    moonloop:till_ready()
    local names, count = {}, 0
    wait.till("all to be slowed", 60, function()
      for _, line in ipairs(moonloop:lines { msg = "script wakes itself" }) do
        local field = "spec.template.metadata.annotations[example.com/version]"
        assert.truthy(line.changes:find(field, 1, true), line.changes)
        count = count + (names[line.name] and 0 or 1)
        names[line.name] = true
      end
      return count == DEPLOYMENTS, ("%d are"):format(count)
    end)
    -- Each rollout counts twice: its controller writes the number of the revision. One alone has twenty.
    assert.is_true(generations() <= 15 * DEPLOYMENTS, ("%d generations"):format(generations()))
    cluster.till_event(ns, "Widget", "r7", "SelfTriggered", "Deployment " .. ns .. "/r7: spec.template.metadata")
  end)
end)
