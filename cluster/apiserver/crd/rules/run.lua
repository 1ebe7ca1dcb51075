--- One judgement of one object: where it is, what it found, and what it may still cost.
local outcome = require "cluster.apiserver.crd.rules.outcome"

local M = {}
M.__index = M


--- @param root string|nil where the value stands in its object; nil: it is the object
--- @param budget integer what all evaluations may cost together
function M.new(root, budget)
  return setmetatable({ root = root or "", depth = 0, at = {}, budget = budget, errors = {}, warnings = {} }, M)
end


--- Goes into a part of the value: ".name" or "[key]".
function M:enter(step)
  self.depth = self.depth + 1
  self.at[self.depth] = step
end


function M:leave()
  self.depth = self.depth - 1
end


--- The path to the value at hand, or to a field of it.
--- @param field_path string|nil "spec.name"
function M:path(field_path)
  local path = self.root .. table.concat(self.at, "", 1, self.depth) .. (field_path and "." .. field_path or "")
  path = path:gsub("^%.", "")
  return path ~= "" and path or "<nil>"
end


function M:add(err)
  self.errors[#self.errors + 1] = err
end


--- Adds a warning for the client: the value was wrong before, so it may stay wrong.
function M:warn(err)
  self.warnings[#self.warnings + 1] = err
end


--- Ends the judgement: no further rule is evaluated.
function M:stop(schema, words)
  self:add(outcome.invalid(self:path(), schema, words))
  self.budget = -1
end


return M
