--- The answer to an apply that would change fields of other managers.
--- Rules: apimachinery/pkg/util/managedfields/internal/conflict.go.
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local set = require "cluster.apiserver.apply.set"
local status = require "cluster.apiserver.status"

local M = {}


local function show_owner(owner)
  local text = field.quote(owner.manager)
  if owner.subresource then
    text = text .. " with subresource " .. field.quote(owner.subresource)
  end
  if owner.operation == "Update" then
    text = text .. " using " .. owner.version
  end
  return text
end


--- The Status for conflicts. `owners`: all owners; `conflicts`: identifier → the paths of that owner.
function M.status(owners, conflicts)
  local causes, lines = {}, {}
  for _, id in ipairs(gofmt.sorted_keys(conflicts)) do
    local who = show_owner(owners[id])
    lines[#lines + 1] = "conflicts with " .. who .. ":"
    for _, path in ipairs(set.paths(conflicts[id])) do
      causes[#causes + 1] = { reason = "FieldManagerConflict", message = "conflict with " .. who, field = path }
      lines[#lines + 1] = "- " .. path
    end
  end
  if #causes == 1 then
    return status.apply_conflict(causes, ("Apply failed with 1 conflict: %s: %s"):format(
      causes[1].message, causes[1].field))
  end
  return status.apply_conflict(causes, ("Apply failed with %d conflicts: %s"):format(
    #causes, table.concat(lines, "\n")))
end


return M
