--- JSON values as Go prints them, for the messages that show a value with %v or %#v.
local host = require "cluster.host"
local field = require "cluster.apiserver.field"

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


-- Each writer of values appends the pieces of a text to `out`: joined at every level of a deep value, the text would be
-- copied as often as it is deep.
local put_plain, put_syntax


local function put_items(out, list, put, separator)
  for i, item in ipairs(list) do
    out[#out + 1] = i > 1 and separator or nil
    put(out, item)
  end
end


local function put_members(out, object, put, separator, key_text)
  for i, key in ipairs(sorted_keys(object)) do
    out[#out + 1] = i > 1 and separator or nil
    out[#out + 1] = key_text(key) .. ":"
    put(out, object[key])
  end
end


function put_plain(out, value)
  if value == nil or value == host.json.null then
    out[#out + 1] = "<nil>"
  elseif math.type(value) == "float" then
    out[#out + 1] = M.float(value)
  elseif type(value) ~= "table" then
    out[#out + 1] = tostring(value)
  elseif host.json.is_array(value) then
    out[#out + 1] = "["
    put_items(out, value, put_plain, " ")
    out[#out + 1] = "]"
  else
    out[#out + 1] = "map["
    put_members(out, value, put_plain, " ", tostring)
    out[#out + 1] = "]"
  end
end


--- `value` as %v has it: map[a:1 b:[x y]], <nil>.
function M.plain(value)
  if type(value) == "string" then
    return value
  end
  local out = {}
  put_plain(out, value)
  return table.concat(out)
end


function put_syntax(out, value)
  if value == nil or value == host.json.null then
    out[#out + 1] = "interface {}(nil)"
  elseif type(value) == "string" then
    out[#out + 1] = field.quote(value)
  elseif type(value) ~= "table" then
    out[#out + 1] = host.json.encode(value)
  elseif host.json.is_array(value) then
    out[#out + 1] = "[]interface {}{"
    put_items(out, value, put_syntax, ", ")
    out[#out + 1] = "}"
  else
    out[#out + 1] = "map[string]interface {}{"
    put_members(out, value, put_syntax, ", ", field.quote)
    out[#out + 1] = "}"
  end
end


--- `value` as %#v has it: map[string]interface {}{"a":1}.
function M.syntax(value)
  local out = {}
  put_syntax(out, value)
  return table.concat(out)
end


--- The name of the JSON type of `value` in Go's message that it does not fit: "object", "number" …
function M.json_type(value)
  if type(value) ~= "table" then
    return type(value) == "boolean" and "bool" or type(value)
  end
  return host.json.is_array(value) and "array" or "object"
end


return M
