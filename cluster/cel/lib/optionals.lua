--- Optional values: optional.of(a), a.?b, a[?i].
---
--- `or` and `orValue` are planned in plan.lua, as the second value is only evaluated when it is needed. Rules: cel-go
--- cel/library.go (OptionalTypes).
local values = require "cluster.cel.values"

local M = {}


-- Is it what the type has when nothing was set: 0, "", an empty list?
local function is_zero(value)
  local tag = values.tag(value)
  if tag == "int" or tag == "double" then
    return value == 0
  elseif tag == "uint" then
    return value.bits == 0
  elseif tag == "bool" then
    return not value
  elseif tag == "null" then
    return true
  elseif tag == "duration" then
    return value.nanos == 0
  elseif tag == "timestamp" then
    return value.seconds == -62135596800 and value.nanos == 0
  elseif tag == "optional_type" then
    return value.value == nil
  elseif tag == "object" then
    return next(value.items) == nil
  end
  return values.size(value) == 0
end


local function unwrap(list)
  local items = {}
  for _, element in ipairs(values.elements(list)) do
    if values.tag(element) ~= "optional_type" then
      return nil, ("value %s is not optional"):format(tostring(element))
    end
    items[#items + 1] = element.value
  end
  return values.list(items)
end


local function get(optional)
  if optional.value == nil then
    return nil, "optional.none() dereference"
  end
  return optional.value
end


local function add_indexes(functions)
  functions:add("_[?_]", "list_optindex_optional_int", "(list(V), int) -> optional(V)")
  functions:add("_[?_]", "optional_list_optindex_optional_int", "(optional(list(V)), int) -> optional(V)")
  functions:add("_[?_]", "map_optindex_optional_value", "(map(K, V), K) -> optional(V)")
  functions:add("_[?_]", "optional_map_optindex_optional_value", "(optional(map(K, V)), K) -> optional(V)")
  functions:add("_[_]", "optional_list_index_int", "(optional(list(V)), int) -> optional(V)")
  functions:add("_[_]", "optional_map_index_value", "(optional(map(K, V)), K) -> optional(V)")
end


--- Adds them.
function M.add(functions)
  functions:add("optional.of", "optional_of", "(V) -> optional(V)", values.optional)
  functions:add("optional.ofNonZeroValue", "optional_ofNonZeroValue", "(V) -> optional(V)", function(value)
    return is_zero(value) and values.none or values.optional(value)
  end)
  functions:add("optional.none", "optional_none", "() -> optional(V)", function()
    return values.none
  end)
  functions:add("value", "optional_value", "optional(V).() -> V", get)
  functions:add("hasValue", "optional_hasValue", "optional(V).() -> bool", function(optional)
    return optional.value ~= nil
  end)
  functions:add("or", "optional_or_optional", "optional(V).(optional(V)) -> optional(V)")
  functions:add("orValue", "optional_orValue_value", "optional(V).(V) -> V")
  functions:add("last", "list_last", "list(V).() -> optional(V)", function(list)
    local count = #list.items
    return count == 0 and values.none or values.optional(values.element(list, count))
  end)
  functions:add("first", "list_first", "list(V).() -> optional(V)", function(list)
    return #list.items == 0 and values.none or values.optional(values.element(list, 1))
  end)
  functions:add("optional.unwrap", "optional_unwrap", "(list(optional(V))) -> list(V)", unwrap)
  functions:add("unwrapOpt", "optional_unwrapOpt", "list(optional(V)).() -> list(V)", unwrap)
  add_indexes(functions)
end


return M
