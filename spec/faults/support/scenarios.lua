--- The scenarios that faults are tried on: scripts, and changes of their objects. See stage.lua.
local moonloop = require "moonloop"

local M = {}

local At = moonloop.kind("cnat.programming-kubernetes.info/v1alpha1", "At")
local Thing = moonloop.kind("example.com/v1", "Thing")
local Pod = moonloop.kind("v1", "Pod")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")
local ClusterRole = moonloop.kind("rbac.authorization.k8s.io/v1", "ClusterRole")

--- An At, due at 10:`minute` of the scenario's morning.
function M.at(name, minute)
  return {
    apiVersion = At.apiVersion, kind = At.kind, metadata = { name = name },
    spec = { schedule = ("2026-07-03T10:%02d:00Z"):format(minute), command = "echo YAY" },
  }
end


local at = M.at

--- Ats: one overdue, one that waits, one whose schedule is edited, one without a schedule that is any, and two that are
--- deleted and made anew under their names: before their pod is there, and after. A pod ends after 20 seconds.
M.cnat = {
  name = "cnat",
  kinds = { At, Pod },
  options = {
    scripts = "reconcilers/cnat.lua", crds = "crds", now = "2026-07-03T10:00:00Z",
    pods = function() return { after = 20, code = 0 } end,
  },
  play = function(world)
    local bad = at("bad", 0)
    bad.spec.schedule = "soon"
    world.apply { at("overdue", 0), at("waits", 3), at("edited", 2), at("early", 4), at("late", 0), bad }
    world.advance "10s"
    world.apply(at("edited", 5))
    world.delete(At, "early")
    world.apply(at("early", 1))
    world.delete(At, "late")
    world.apply(at("late", 2))
    world.advance "10m"
  end,
}


--- The least that matters, for what tries pairs: an At that is made anew while its pod runs.
M.few = {
  name = "few",
  kinds = M.cnat.kinds,
  options = M.cnat.options,
  play = function(world)
    world.apply(at("a", 0))
    world.advance "10s"
    world.delete(At, "a")
    world.apply(at("a", 1))
    world.advance "5m"
  end,
}


local function thing(name, size, text)
  return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name },
    spec = { mode = ("%d %s"):format(size, text) } }
end

--- Things of thing.lua, beside this file, which make, apply, patch and delete: they grow, shrink, change and go.
M.thing = {
  name = "thing",
  kinds = { Thing, ConfigMap, Secret },
  options = { scripts = "spec/faults/support/thing.lua", crds = "spec/testing/crds", now = "2026-07-03T10:00:00Z" },
  play = function(world)
    world.apply { thing("a", 2, "red"), thing("b", 1, "green") }
    world.advance "10s"
    world.apply { thing("a", 3, "blue"), thing("b", 0, "green") }
    world.advance "10s"
    world.apply { thing("a", 1, "blue") }
    world.delete(Thing, "b")
    world.apply { thing("b", 2, "grey") }
    world.advance "5m"
  end,
}

--- Things whose script returns children, spec/testing/children.lua: they grow, shrink, are made again and go.
M.children = {
  name = "children",
  kinds = M.thing.kinds,
  options = { scripts = "spec/testing/children.lua", crds = "spec/testing/crds", now = "2026-07-03T10:00:00Z" },
  play = function(world)
    world.apply { thing("a", 3, "red"), thing("b", 1, "green") }
    world.advance "10s"
    world.apply { thing("a", 2, "blue"), thing("b", 0, "green") }
    world.advance "10s"
    world.apply { thing("a", 1, "blue") }
    world.delete(Thing, "b")
    world.apply { thing("b", 1, "grey") }
    world.advance "5m"
  end,
}

--- Things with children that they cannot own, spec/testing/tracked_children.lua.
M.tracked_children = {
  name = "tracked children",
  kinds = { Thing, ConfigMap, ClusterRole },
  options = { scripts = "spec/testing/tracked_children.lua", crds = "spec/testing/crds", now = "2026-07-03T10:00:00Z" },
  play = function(world)
    world.apply { { apiVersion = "v1", kind = "Namespace", metadata = { name = "elsewhere" } }, thing("a", 2, "red") }
    world.advance "10s"
    world.apply { thing("a", 1, "blue"), thing("b", 1, "green") }
    world.advance "10s"
    world.delete(Thing, "b")
    world.advance "10m" -- what is applied while it waits goes with it
    world.apply { thing("a", 0, "blue"), thing("b", 2, "grey") }
    world.advance "5m"
  end,
}

--- By name in order.
M.all = { M.cnat, M.thing }

--- The same for what strikes writes.
M.writing = { M.children, M.cnat, M.tracked_children, M.thing }

return M
