--- JSON values as Go prints them, for the messages that show a value with %v or %#v.
local host = require "moonloop.host"
local field = require "moonloop.apiserver.field"

local M = {}


--- The keys of an object, sorted bytewise.
function M.sorted_keys(object)
  local keys = {}
  for key in pairs(object) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end


local sorted_keys = M.sorted_keys


--- A float as %v has it, in the fewest digits that are read back the same: 0.5, 1e+06.
function M.float(value)
  local text
  for digits = 1, 17 do
    text = ("%." .. digits - 1 .. "e"):format(value)
    if tonumber(text) == value then
      break
    end
  end
  local sign, whole, rest, exponent = text:match "^(-?)(%d)%.?(%d*)e([+-]%d+)$"
  if not sign then
    return value > 0 and "+Inf" or value < 0 and "-Inf" or "NaN"
  end
  exponent = math.tointeger(tonumber(exponent))
  if exponent < -4 or exponent >= 6 then
    return ("%s%s%se%+03d"):format(sign, whole, rest ~= "" and "." .. rest or "", exponent)
  elseif exponent < 0 then
    return sign .. "0." .. ("0"):rep(-exponent - 1) .. whole .. rest
  end
  local digits = whole .. rest .. ("0"):rep(exponent - #rest)
  local behind = digits:sub(exponent + 2)
  return sign .. digits:sub(1, exponent + 1) .. (behind ~= "" and "." .. behind or "")
end


--- `value` as %v has it: map[a:1 b:[x y]], <nil>.
function M.plain(value)
  if value == nil or value == host.json.null then
    return "<nil>"
  elseif type(value) == "string" then
    return value
  elseif math.type(value) == "float" then
    return M.float(value)
  elseif type(value) ~= "table" then
    return tostring(value)
  end
  local parts = {}
  if host.json.is_array(value) then
    for i, item in ipairs(value) do
      parts[i] = M.plain(item)
    end
    return "[" .. table.concat(parts, " ") .. "]"
  end
  for i, key in ipairs(sorted_keys(value)) do
    parts[i] = key .. ":" .. M.plain(value[key])
  end
  return "map[" .. table.concat(parts, " ") .. "]"
end


--- `value` as %#v has it: map[string]interface {}{"a":1}.
function M.syntax(value)
  if value == nil or value == host.json.null then
    return "interface {}(nil)"
  elseif type(value) == "string" then
    return field.quote(value)
  elseif type(value) ~= "table" then
    return host.json.encode(value)
  end
  local parts = {}
  if host.json.is_array(value) then
    for i, item in ipairs(value) do
      parts[i] = M.syntax(item)
    end
    return "[]interface {}{" .. table.concat(parts, ", ") .. "}"
  end
  for i, key in ipairs(sorted_keys(value)) do
    parts[i] = field.quote(key) .. ":" .. M.syntax(value[key])
  end
  return "map[string]interface {}{" .. table.concat(parts, ", ") .. "}"
end


--- What Go calls the JSON type of `value` when it cannot be put somewhere: "object", "number" …
function M.json_type(value)
  if type(value) ~= "table" then
    return type(value) == "boolean" and "bool" or type(value)
  end
  return host.json.is_array(value) and "array" or "object"
end


return M
