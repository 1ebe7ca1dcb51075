--- One validation of one object: its current path, and the errors found.
---
--- The path to a value is the first `depth` elements of `at`: names, and for items of lists their indexes from 0. It
--- becomes text only when something is wrong.
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local status = require "cluster.apiserver.status"

local M = {}
M.__index = M


-- More are told to nobody; the same one may have been found twice.
local ERRORS_MAX = 2 * status.ERRORS_MAX


local function sorted_pairs(object)
  local keys, i = gofmt.sorted_keys(object), 0
  return function()
    i = i + 1
    return keys[i], object[keys[i]]
  end
end


--- @param root string|nil where the value stands in its object ("status"); nil: it is the object
--- @param ordered boolean whether keys of objects are looked at in their order, so that errors are always told in one
function M.new(root, ordered)
  return setmetatable({
    root = root, at = {}, errors = {}, matches = 0, each = ordered and sorted_pairs or pairs,
  }, M)
end


--- The path to a value as text, from the value that is validated.
function M:path(depth)
  local parts = {}
  for i = 1, depth do
    local step = self.at[i]
    parts[i] = type(step) == "number" and "[" .. step .. "]" or (i > 1 and "." or "") .. step
  end
  return table.concat(parts)
end


-- A path as errors have it.
local function placed(self, path)
  if path == "" then
    return self.root or "<nil>"
  end
  path = path:gsub("^%.", "")
  return self.root and self.root .. "." .. path or path
end


--- Adds a field error about the value at `depth`, its path still to be set.
function M:error(depth, err)
  err.path = placed(self, self:path(depth))
  self.errors[#self.errors + 1] = err
end


--- @return boolean so much is wrong that the rest of a list or an object need not be looked at
function M:is_full()
  return #self.errors >= ERRORS_MAX
end


--- The value has another type than the schema wants.
function M:type_error(depth, wanted, found)
  local path = self:path(depth)
  self:error(depth, field.type_invalid("", found,
    ("%s in body must be of type %s: %s"):format(path, wanted, field.quote(found))))
end


--- The value breaks a rule; `words` go on after its path.
function M:invalid(depth, value, words)
  self:error(depth, field.invalid("", value, ("%s in body %s"):format(self:path(depth), words)))
end


--- Something is wrong that upstream tells no path of.
function M:plain_error(message)
  self.errors[#self.errors + 1] = field.invalid(self.root or "<nil>", "", message)
end


--- Runs a check by itself.
--- @return table errors, integer matches how many rules had something to say, for choosing the best of alternatives
function M:alone(check, value, depth, old)
  local errors, matches = self.errors, self.matches
  self.errors, self.matches = {}, 0
  check(value, self, depth, old)
  local found, count = self.errors, self.matches
  self.errors, self.matches = errors, matches
  return found, count
end


--- Adds what another run has found.
function M:merge(errors, matches)
  table.move(errors, 1, #errors, #self.errors + 1, self.errors)
  self.matches = self.matches + matches
end


return M
