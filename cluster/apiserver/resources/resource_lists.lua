--- Amounts by the names of resources, as texts: { cpu = "500m", memory = "1Gi" }.
---
--- Rules: apiserver/pkg/quota/v1/resources.go, component-helpers/resource/helpers.go.
local check = require "cluster.apiserver.resources.check"
local quantity = require "cluster.quantity"

local M = {}

local ZERO = quantity.of(0)


--- Compares two texts: -1, 0 or 1. A missing one is 0.
function M.compare(a, b)
  return quantity.compare(quantity.parse(a or "0") or ZERO, quantity.parse(b or "0") or ZERO)
end


--- Adds the amounts of `more` (nil: none) to those of `list`, which is changed. @return table list
function M.add(list, more)
  for name, text in pairs(more or {}) do
    local amount = list[name] and quantity.parse(list[name])
    local other = quantity.parse(text)
    list[name] = amount and other and quantity.write(quantity.add(amount, other)) or list[name] or text
  end
  return list
end


--- Raises the amounts of `list`, which is changed, to those of `more`. @return table list
function M.raise(list, more)
  for name, text in pairs(more or {}) do
    if not list[name] or M.compare(text, list[name]) > 0 then
      list[name] = text
    end
  end
  return list
end


--- Subtracts `b` from `a`; a result that would be negative is 0, and so are names that only `b` has.
function M.minus(a, b)
  local rest = {}
  for name, text in pairs(a) do
    local amount, other = quantity.parse(text) or ZERO, quantity.parse(b[name] or "0") or ZERO
    local left = quantity.add(amount, quantity.negate(other))
    rest[name] = quantity.sign(left) > 0 and quantity.write(left) or "0"
  end
  for name in pairs(b) do
    rest[name] = rest[name] or "0"
  end
  return rest
end


--- Returns the amounts of `list` whose names are keys of `names`.
function M.mask(list, names)
  local some = {}
  for name, text in pairs(list) do
    if names[name] then
      some[name] = text
    end
  end
  return some
end


--- As messages have them: "cpu=1,pods=2".
function M.text(list)
  local parts = {}
  for i, name in ipairs(check.sorted_keys(list)) do
    parts[i] = name .. "=" .. list[name]
  end
  return table.concat(parts, ",")
end


return M
