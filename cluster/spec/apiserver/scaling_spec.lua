-- How ReplicaSets share replicas in the middle of a roll-out.
local scaling = require "cluster.controllers.scaling"


-- A ReplicaSet as it was scaled for `desired` replicas. Its number tells its age.
local function set(number, replicas, desired)
  return {
    metadata = {
      name = "set-" .. number, creationTimestamp = ("2026-01-01T00:00:%02dZ"):format(number),
      annotations = { [scaling.DESIRED] = tostring(desired), [scaling.MAXIMUM] = tostring(desired) },
    },
    spec = { replicas = replicas }, status = {},
  }
end


local function shared(replicas, sizes, desired)
  local sets = {}
  for i, size in ipairs(sizes) do
    sets[i] = set(i, size, desired)
  end
  local newest = table.remove(sets)
  local deployment = { spec = { replicas = replicas, strategy = { type = "RollingUpdate",
    rollingUpdate = { maxSurge = 0, maxUnavailable = 1 } } } }
  local found = {}
  for i, size in ipairs(sizes) do
    found["set-" .. i] = size
  end
  for _, change in ipairs(scaling.changes(deployment, newest, sets)) do
    found[change.set.metadata.name] = change.replicas
  end
  local list = {}
  for i = 1, #sizes do
    list[i] = found["set-" .. i]
  end
  return list
end


describe("Replicas of a Deployment", function()
  -- Replicas wanted, sizes of the ReplicaSets from the oldest to the newest, what they were scaled for, new sizes.
  for what, case in pairs {
    ["go to the only one that has any"] = { 7, { 0, 5, 0 }, 5, { 0, 7, 0 } },
    ["go to the newest where none has any"] = { 7, { 0, 0 }, 0, { 0, 7 } },
    ["are shared in proportion"] = { 20, { 4, 6 }, 10, { 8, 12 } },
    ["that are left over go to the newest of the largest"] = { 10, { 3, 3, 3 }, 9, { 3, 3, 4 } },
    ["that are one too many are taken from the oldest of the largest"] = { 8, { 3, 3, 3 }, 9, { 2, 3, 3 } },
    ["are none of anybody's when there shall be none"] = { 0, { 3, 3 }, 6, { 0, 0 } },
  } do
    it(what, function()
      assert.same(case[4], shared(table.unpack(case, 1, 3)))
    end)
  end

  it("are shared anew when their number has changed", function()
    local deployment = { spec = { replicas = 5 } }
    assert.is_false(scaling.is_due(deployment, set(2, 2, 5), { set(1, 3, 5) }))
    assert.is_true(scaling.is_due(deployment, set(2, 2, 5), { set(1, 3, 4) }))
    assert.is_false(scaling.is_due(deployment, set(2, 5, 5), { set(1, 0, 4) }))
  end)
end)
