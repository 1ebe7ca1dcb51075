--- The order in which discovery lists groups and versions.
---
--- Rules: apimachinery/pkg/version/helpers.go (versions), kube-apiserver's priorities of its own API services (groups).
local facts = require "cluster.kinds.resources"

local M = {}

local STAGES = { [""] = 3, beta = 2, alpha = 1 }

-- Built-in groups, in the order of the facts. Groups of custom resources come after them, by name.
local places = {}
for place, resource in ipairs(facts) do
  places[resource.group] = places[resource.group] or place
end


--- Returns true if group `a` is listed before `b`.
function M.group_before(a, b)
  local left, right = places[a] or math.huge, places[b] or math.huge
  if left ~= right then
    return left < right
  end
  return a < b
end


-- Stage, major and minor number of a version such as "v2beta1"; nil for other words.
local function read_version(version)
  local major, stage, minor = version:match("^v(%d+)(%l*)(%d*)$")
  if not major or not STAGES[stage] or (stage == "") ~= (minor == "") then
    return nil
  end
  return STAGES[stage], math.tointeger(tonumber(major)), math.tointeger(tonumber(minor)) or 0
end


--- Returns true if version `a` is listed before `b`: stable ones first, then beta, alpha and other words; of these the
--- higher numbers first.
function M.version_before(a, b)
  local stage, major, minor = read_version(a)
  local other_stage, other_major, other_minor = read_version(b)
  if not stage or not other_stage then
    if (stage == nil) == (other_stage == nil) then
      return a < b
    end
    return stage ~= nil
  elseif stage ~= other_stage then
    return stage > other_stage
  elseif major ~= other_major then
    return major > other_major
  end
  return minor > other_minor
end


return M
