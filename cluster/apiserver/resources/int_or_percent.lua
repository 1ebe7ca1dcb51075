--- Numbers that may be given as a share: 3 or "25%".
---
--- Rules: kubernetes/pkg/apis/apps/validation/validation.go (ValidatePositiveIntOrPercent and its neighbours).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"

local M = {}

local BAD = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
  .. "used for validation is '[0-9]+%')"


local function share(value)
  return type(value) == "string" and math.tointeger(tonumber(value:match("^(%d+)%%$") or "")) or nil
end


--- The number, or the percents of a share; of other texts what they begin with is not looked at: 0.
function M.number(value)
  return share(value) or math.tointeger(tonumber(value)) or 0
end


--- A number that is not negative, or a share.
function M.validate(value, path, errors)
  if type(value) ~= "string" then
    check.not_negative(value, path, errors)
  elseif not share(value) then
    errors[#errors + 1] = field.invalid(path, value, BAD)
  end
end


--- A share is at most 100 %.
function M.at_most_all(value, path, errors)
  if (share(value) or 0) > 100 then
    errors[#errors + 1] = field.invalid(path, value, "must not be greater than 100%")
  end
end


return M
