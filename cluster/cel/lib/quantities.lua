--- Kubernetes' library of quantities: quantity("500m").
---
--- Rules: apiserver/pkg/cel/library/quantity.go.
local quantity = require "cluster.quantity"
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"

local M = {}

local TYPE = types.object "kubernetes.Quantity"
M.short = { quantity = TYPE }

local Quantity = values.class "kubernetes.Quantity"
Quantity.type = TYPE

local WRONG = {
  number = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  suffix = "unable to parse quantity's suffix",
  size = "unable to parse numeric part of quantity",
}


function Quantity:equal(other)
  return quantity.compare(self.amount, other.amount) == 0
end


Quantity.__tostring = function(value)
  return quantity.write(value.amount)
end


local function new(amount)
  return setmetatable({ amount = amount }, Quantity)
end


local function to_quantity(text)
  local amount, _, wrong = quantity.parse(text)
  if not amount then
    return nil, WRONG[wrong]
  end
  return new(amount)
end


local function of_int(whole)
  return quantity.of(whole, "exponent")
end


local function compare(a, b)
  return quantity.compare(a.amount, b.amount)
end


--- Adds them.
function M.add(functions)
  functions:add("quantity", "string_to_quantity", "(string) -> quantity", to_quantity)
  functions:add("isQuantity", "is_quantity_string", "(string) -> bool", function(text)
    return quantity.parse(text) ~= nil
  end)
  functions:add("sign", "quantity_sign", "(quantity) -> int", function(a)
    return quantity.sign(a.amount)
  end)
  functions:add("isGreaterThan", "quantity_is_greater_than", "quantity.(quantity) -> bool", function(a, b)
    return compare(a, b) > 0
  end)
  functions:add("isLessThan", "quantity_is_less_than", "quantity.(quantity) -> bool", function(a, b)
    return compare(a, b) < 0
  end)
  functions:add("compareTo", "quantity_compare_to", "quantity.(quantity) -> int", compare)
  functions:add("asApproximateFloat", "quantity_get_float", "quantity.() -> double", function(a)
    return quantity.float(a.amount)
  end)
  functions:add("asInteger", "quantity_get_int", "quantity.() -> int", function(a)
    local number = quantity.integer(a.amount)
    if not number then
      return nil, "cannot convert value to integer"
    end
    return number
  end)
  functions:add("isInteger", "quantity_is_integer", "quantity.() -> bool", function(a)
    return quantity.integer(a.amount) ~= nil
  end)
  functions:add("add", "quantity_add", "quantity.(quantity) -> quantity", function(a, b)
    return new(quantity.add(a.amount, b.amount))
  end)
  functions:add("add", "quantity_add_int", "quantity.(int) -> quantity", function(a, b)
    return new(quantity.add(a.amount, of_int(b)))
  end)
  functions:add("sub", "quantity_sub", "quantity.(quantity) -> quantity", function(a, b)
    return new(quantity.add(a.amount, quantity.negate(b.amount)))
  end)
  functions:add("sub", "quantity_sub_int", "quantity.(int) -> quantity", function(a, b)
    return new(quantity.add(a.amount, quantity.negate(of_int(b))))
  end)
end


return M
