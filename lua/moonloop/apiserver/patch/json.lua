--- JSON patch, RFC 6902, with the liberties the server's library takes: "replace" of a missing key sets it,
--- negative indices count from the end, a path without a leading slash loses its first part.
--- Rules: gopkg.in/evanphx/json-patch.v4 patch.go, apiserver/pkg/endpoints/handlers/patch.go.
local failure = require "moonloop.apiserver.patch.failure"
local gofmt = require "moonloop.apiserver.gofmt"
local host = require "moonloop.host"
local status = require "moonloop.apiserver.status"

local json = host.json
local unprocessable = failure.unprocessable

local MAX_OPERATIONS = 10000
local UNESCAPED = { ["~0"] = "~", ["~1"] = "/" }


-- "/a/b~1c" -> { "a", "b/c" }. Fails for a path without any slash, the whole document included.
local function parse_pointer(path)
  local parts = {}
  for part in path:gmatch("/([^/]*)") do
    parts[#parts + 1] = part:gsub("~[01]", UNESCAPED)
  end
  if #parts == 0 then
    unprocessable()
  end
  return parts
end


-- The position in Lua that an index stands for, in a list of `size` places.
local function position(key, size)
  local index = key:match("^[+-]?%d+$") and math.tointeger(tonumber(key))
  if not index then
    unprocessable()
  end
  if index < 0 then
    index = index + size
  end
  if index < 0 or index >= size then
    unprocessable()
  end
  return index + 1
end


-- The value under `key`; nil when an object has no such key. Fails for an index out of a list.
local function get(container, key)
  if json.is_array(container) then
    return container[position(key, #container)]
  end
  return container[key]
end


-- The container that holds what the pointer means, and the last key.
local function locate(document, pointer)
  local parts = parse_pointer(pointer)
  local container = document
  for i = 1, #parts - 1 do
    container = get(container, parts[i])
    if type(container) ~= "table" then
      unprocessable()
    end
  end
  return container, parts[#parts]
end


local function insert(container, key, value)
  if not json.is_array(container) then
    container[key] = value
  elseif key == "-" then
    container[#container + 1] = value
  else
    table.insert(container, position(key, #container + 1), value)
  end
end


local function take(container, key)
  if json.is_array(container) then
    return table.remove(container, position(key, #container))
  end
  local value = container[key]
  if value == nil then
    unprocessable()
  end
  container[key] = nil
  return value
end


-- A string member of an operation that has to be there.
local function member(operation, name)
  local value = operation[name]
  if value == nil or value == json.null then
    unprocessable()
  end
  return value
end


-- The value of an operation; one that is left out counts as null.
local function value_of(operation)
  local value = operation.value
  if value == nil then
    return json.null
  end
  return json.copy(value)
end


-- Each takes the document and an operation, and returns the document to go on with.
local OPERATIONS = {}


function OPERATIONS.add(document, operation)
  local container, key = locate(document, member(operation, "path"))
  insert(container, key, value_of(operation))
  return document
end


function OPERATIONS.remove(document, operation)
  take(locate(document, member(operation, "path")))
  return document
end


function OPERATIONS.replace(document, operation)
  local path, value = member(operation, "path"), value_of(operation)
  if path == "" then
    if type(value) ~= "table" then
      unprocessable()
    end
    return value
  end
  local container, key = locate(document, path)
  if json.is_array(container) then
    container[position(key, #container)] = value
  else
    container[key] = value
  end
  return document
end


function OPERATIONS.move(document, operation)
  local value = take(locate(document, member(operation, "from")))
  local container, key = locate(document, member(operation, "path"))
  insert(container, key, value)
  return document
end


function OPERATIONS.copy(document, operation)
  local value = get(locate(document, member(operation, "from")))
  local container, key = locate(document, member(operation, "path"))
  insert(container, key, value == nil and json.null or json.copy(value))
  return document
end


function OPERATIONS.test(document, operation)
  local path, found = member(operation, "path"), document
  if path ~= "" then
    found = get(locate(document, path))
  end
  if found == nil then
    found = json.null
  end
  if not json.equal(found, value_of(operation)) then
    unprocessable()
  end
  return document
end


local function refuse_type(value, target)
  failure.bad_request(("error decoding patch: json: cannot unmarshal %s into Go %s"):format(
    gofmt.json_type(value), target))
end


-- What upstream's decoder refuses before anything is done.
local function check(operations)
  if type(operations) ~= "table" or not json.is_array(operations) then
    refuse_type(operations, "value of type []handlers.jsonPatchOp")
  end
  for _, operation in ipairs(operations) do
    if operation ~= json.null and (type(operation) ~= "table" or json.is_array(operation)) then
      refuse_type(operation, "value of type handlers.jsonPatchOp")
    end
    for _, name in ipairs { "op", "path", "from" } do
      local value = operation ~= json.null and operation[name] or nil
      if value ~= nil and value ~= json.null and type(value) ~= "string" then
        refuse_type(value, "struct field jsonPatchOp." .. name .. " of type string")
      end
    end
  end
end


local function apply(object, operations)
  if operations == json.null then
    return json.copy(object)
  end
  check(operations)
  if #operations > MAX_OPERATIONS then
    error(status.too_large(("The allowed maximum operations in a JSON patch is %d, got %d"):format(
      MAX_OPERATIONS, #operations)), 0)
  end
  local document = json.copy(object)
  for _, operation in ipairs(operations) do
    local run = operation ~= json.null and OPERATIONS[operation.op]
    if not run then
      unprocessable()
    end
    document = run(document, operation)
  end
  return document
end


--- Applies the list `operations` to `object`. Returns the new object, or nil and a Status:
--- 400 when the patch is malformed, 413 when it is too long, 422 when it cannot be done.
--- The inputs are not changed.
return function(object, operations)
  return failure.try(apply, object, operations)
end
