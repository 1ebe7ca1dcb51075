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

local NOT_NUMBER = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
local NOT_SUFFIX = "unable to parse quantity's suffix"


-- An amount of more digits than integers hold has a double for its value.
local function is_large(amount)
  return math.type(amount.value) == "float"
end


local function approximate(amount)
  return amount.value * 10.0 ^ amount.scale
end


local function order(a, b)
  if is_large(a) or is_large(b) then
    local x, y = approximate(a), approximate(b)
    return x < y and -1 or x > y and 1 or 0
  end
  return quantity.compare(a, b)
end


function Quantity:equal(other)
  return order(self.amount, other.amount) == 0
end


Quantity.__tostring = function(value)
  return is_large(value.amount) and ("%.0f"):format(approximate(value.amount)) or quantity.write(value.amount)
end


local function new(amount)
  return setmetatable({ amount = amount }, Quantity)
end


-- Of many digits: the suffix is read as if there were few.
local function parse_large(number, suffix)
  local value = tonumber(number)
  local unit = value and quantity.parse("1" .. suffix)
  if not unit then
    return nil
  end
  return { value = value * unit.value + 0.0, scale = unit.scale, form = unit.form }
end


local function parse(text)
  local amount = quantity.parse(text)
  if amount then
    return amount
  end
  local number, suffix = text:match "^([-+]?%d*%.?%d*)([eEinumkKMGTP]*[-+]?%d*)$"
  if not number or not number:find "%d" then
    return nil, NOT_NUMBER
  end
  amount = parse_large(number:gsub("^%+", ""), suffix)
  if not amount then
    return nil, NOT_SUFFIX
  end
  return amount
end


local function to_quantity(text)
  local amount, message = parse(text)
  if not amount then
    return nil, message
  end
  return new(amount)
end


local function sum(a, b)
  if is_large(a) or is_large(b) then
    return new { value = approximate(a) + approximate(b), scale = 0, form = a.form }
  end
  return new(quantity.add(a, b))
end


local function of_int(whole)
  return { value = whole, scale = 0, form = "exponent" }
end


local function negated(amount)
  return { value = -amount.value, scale = amount.scale, form = amount.form }
end


-- The amount as an integer; nil when it has a fraction, or does not fit.
local function whole(value)
  local amount = value.amount
  if is_large(amount) then
    return nil
  end
  local number = amount.value
  for _ = 1, amount.scale do
    if number > math.maxinteger // 10 or number < math.mininteger // 10 then
      return nil
    end
    number = number * 10
  end
  for _ = amount.scale, -1 do
    if number % 10 ~= 0 then
      return nil
    end
    number = number // 10
  end
  return number
end


local function compare(a, b)
  return order(a.amount, b.amount)
end


--- Adds them.
function M.add(functions)
  functions:add("quantity", "string_to_quantity", "(string) -> quantity", to_quantity)
  functions:add("isQuantity", "is_quantity_string", "(string) -> bool", function(text)
    return parse(text) ~= nil
  end)
  functions:add("sign", "quantity_sign", "(quantity) -> int", function(a)
    return a.amount.value > 0 and 1 or a.amount.value < 0 and -1 or 0
  end)
  functions:add("isGreaterThan", "quantity_is_greater_than", "quantity.(quantity) -> bool", function(a, b)
    return compare(a, b) > 0
  end)
  functions:add("isLessThan", "quantity_is_less_than", "quantity.(quantity) -> bool", function(a, b)
    return compare(a, b) < 0
  end)
  functions:add("compareTo", "quantity_compare_to", "quantity.(quantity) -> int", compare)
  functions:add("asApproximateFloat", "quantity_get_float", "quantity.() -> double", function(a)
    return approximate(a.amount)
  end)
  functions:add("asInteger", "quantity_get_int", "quantity.() -> int", function(a)
    local number = whole(a)
    if not number then
      return nil, "cannot convert value to integer"
    end
    return number
  end)
  functions:add("isInteger", "quantity_is_integer", "quantity.() -> bool", function(a)
    return whole(a) ~= nil
  end)
  functions:add("add", "quantity_add", "quantity.(quantity) -> quantity", function(a, b)
    return sum(a.amount, b.amount)
  end)
  functions:add("add", "quantity_add_int", "quantity.(int) -> quantity", function(a, b)
    return sum(a.amount, of_int(b))
  end)
  functions:add("sub", "quantity_sub", "quantity.(quantity) -> quantity", function(a, b)
    return sum(a.amount, negated(b.amount))
  end)
  functions:add("sub", "quantity_sub_int", "quantity.(int) -> quantity", function(a, b)
    return sum(a.amount, negated(of_int(b)))
  end)
end


return M
