--- Path elements: how field management names a member of a map or an item of a list.
---   "f:name" a member, 'k:{"name":"x"}' the item with these key fields, 'v:"x"' the item of a set, "i:0" an index
--- Rules: structured-merge-diff fieldpath/serialize-pe.go and element.go, typed/helpers.go.
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"

local json = host.json
local null = json.null

local M = {}

local ESCAPES = { ["<"] = "\\u003c", [">"] = "\\u003e", ["&"] = "\\u0026" }
local KIND_ORDER = { f = 1, k = 2, v = 3, i = 4 }


-- A scalar as JSON, with the escapes that Go's encoder makes.
local function scalar(value)
  if type(value) == "string" then
    if not value:find('[%c"\\<>&\127-\255]') then
      return '"' .. value .. '"'
    end
    return (json.encode(value):gsub("[<>&]", ESCAPES))
  elseif math.type(value) == "integer" then
    return ("%d"):format(value)
  end
  return json.encode(value)
end


--- The list side of a type: items of `items` (a type), told apart by `keys` (nil: a set of scalars).
--- `schema` of the items has the defaults of key fields.
function M.list(items, keys, schema)
  if not keys then
    return { element = items }
  end
  local list = { element = items, keys = { table.unpack(keys) }, names = {}, defaults = {} }
  table.sort(list.keys)
  local target = schema and schema.allOf and schema.allOf[1] or schema
  for _, key in ipairs(list.keys) do
    local property = target and target.properties and target.properties[key]
    list.names[key] = json.encode(key) .. ":"
    list.defaults[key] = property and property.default
  end
  return list
end


local function set_item(value)
  if value == null then
    return nil, "associative list without keys has an element that's an explicit null"
  elseif type(value) ~= "table" then
    return "v:" .. scalar(value)
  elseif json.is_array(value) then
    return nil, "not supported: associative list with lists as elements"
  end
  return nil, "associative list without keys has an element that's a map type"
end


local function quoted_list(names)
  local quoted = {}
  for i, name in ipairs(names) do
    quoted[i] = field.quote(name)
  end
  return "[" .. table.concat(quoted, " ") .. "]"
end


--- The element of an item of `list`, the list side of a type. Returns nil and a message for an item that has none.
function M.of_item(list, item)
  local keys = list.keys
  if not keys then
    return set_item(item)
  elseif item == null then
    return nil, "associative list with keys may not have a null element"
  elseif type(item) ~= "table" or json.is_array(item) then
    return nil, "associative list with keys may not have non-map elements"
  end
  local text = "k:{"
  for i = 1, #keys do
    local key = keys[i]
    local value = item[key]
    if value == nil then
      value = list.defaults[key]
    end
    if value ~= nil then
      text = (#text > 3 and text .. "," or text) .. list.names[key] .. scalar(value)
    end
  end
  if #text == 3 then
    return nil, ("associative list with keys has an element that omits all key fields %s (and doesn't have default"
      .. " values for any key fields)"):format(quoted_list(keys))
  end
  return text .. "}"
end


--- An element as messages show it: ".name", '[name="x"]', '[="x"]', "[0]".
function M.show(text)
  local kind, rest = text:sub(1, 1), text:sub(3)
  if kind == "f" then
    return "." .. rest
  elseif kind == "i" then
    return "[" .. rest .. "]"
  end
  local value = json.decode(rest)
  if kind == "v" then
    return "[=" .. scalar(value) .. "]"
  end
  local parts = {}
  for i, key in ipairs(gofmt.sorted_keys(value)) do
    parts[i] = key .. "=" .. scalar(value[key])
  end
  return "[" .. table.concat(parts, ",") .. "]"
end


--- The element in its one spelling, or nil when it is of a kind nobody knows. Raises a message for a malformed one.
function M.canonical(text)
  local kind, rest = text:match("^(.):(.*)$")
  if not kind then
    error(#text < 2 and "key must be 2 characters long:" or "missing colon: " .. text, 0)
  elseif kind == "f" then
    return text
  elseif kind == "i" then
    return "i:" .. (math.tointeger(tonumber(rest)) or error("invalid index: " .. rest, 0))
  elseif kind ~= "k" and kind ~= "v" then
    return nil
  end
  local value, message = json.decode(rest)
  if value == nil then
    error(message, 0)
  elseif kind == "v" then
    return "v:" .. (type(value) == "table" and json.encode(value) or scalar(value))
  elseif type(value) ~= "table" then
    error("expected an object: " .. rest, 0)
  end
  local parts = {}
  for i, key in ipairs(gofmt.sorted_keys(value)) do
    local item = value[key]
    parts[i] = json.encode(key) .. ":" .. (type(item) == "table" and json.encode(item) or scalar(item))
  end
  return "k:{" .. table.concat(parts, ",") .. "}"
end


-- True if scalar `a` comes before `b`: numbers, then strings, then booleans; nil if they are equal.
local function scalar_before(a, b)
  if a == b then
    return nil
  elseif type(a) == type(b) and type(a) ~= "boolean" then
    return a < b
  elseif type(a) == "boolean" and type(b) == "boolean" then
    return not a
  end
  return type(a) == "number" or (type(a) == "string" and type(b) == "boolean")
end


--- Returns true if element `a` comes before element `b` in upstream's order: members, keys, values, indices.
function M.before(a, b)
  local kind, other = a:sub(1, 1), b:sub(1, 1)
  if kind ~= other then
    return (KIND_ORDER[kind] or 5) < (KIND_ORDER[other] or 5)
  elseif kind == "f" then
    return a < b
  end
  local left, right = json.decode(a:sub(3)), json.decode(b:sub(3))
  if kind ~= "k" then
    return scalar_before(left, right) == true
  end
  local names, others = gofmt.sorted_keys(left), gofmt.sorted_keys(right)
  for i, name in ipairs(names) do
    if others[i] ~= name then
      return others[i] ~= nil and name < others[i]
    end
    local first = scalar_before(left[name], right[name])
    if first ~= nil then
      return first
    end
  end
  return #names < #others
end


return M
