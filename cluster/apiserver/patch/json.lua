--- JSON patch, RFC 6902, with the deviations of the server's library: "replace" of a missing key sets it,
--- negative indices count from the end, a path without a leading slash loses its first part.
--- Rules: gopkg.in/evanphx/json-patch.v4 patch.go, apiserver/pkg/endpoints/handlers/patch.go.
local failure = require "cluster.apiserver.patch.failure"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local status = require "cluster.apiserver.status"

local json = host.json
local unprocessable = failure.unprocessable

-- Limits of one patch: its operations and the bytes of JSON that its copies add (both as upstream has them), and the
-- elements that insertions and removals may move within lists, which no request that means well comes near to.
local MAX_OPERATIONS = 10000
local COPIED_MAX = 3 * 1024 * 1024
local MOVED_MAX = 50 * 1000 * 1000
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


-- Counts the elements behind `place` that an insertion or a removal there moves.
local function count_moved(used, container, place)
  used.moved = used.moved + #container - place
  if used.moved > MOVED_MAX then
    unprocessable()
  end
end


local function insert(container, key, value, used)
  if not json.is_array(container) then
    container[key] = value
  elseif key == "-" then
    container[#container + 1] = value
  else
    local place = position(key, #container + 1)
    count_moved(used, container, place)
    table.insert(container, place, value)
  end
end


local function take(container, key, used)
  if json.is_array(container) then
    local place = position(key, #container)
    count_moved(used, container, place)
    return table.remove(container, place)
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


-- The value as JSON; a patch that has nested it deeper than JSON is read cannot be done.
local function encode(value)
  local ok, text = pcall(json.encode, value)
  if not ok then
    unprocessable()
  end
  return text
end


-- Each takes the document, an operation, and what the patch has used of its limits ({ copied =, moved = }), and
-- returns the document to go on with.
local OPERATIONS = {}


function OPERATIONS.add(document, operation, used)
  local container, key = locate(document, member(operation, "path"))
  insert(container, key, value_of(operation), used)
  return document
end


function OPERATIONS.remove(document, operation, used)
  local container, key = locate(document, member(operation, "path"))
  take(container, key, used)
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


function OPERATIONS.move(document, operation, used)
  local source, name = locate(document, member(operation, "from"))
  local value = take(source, name, used)
  local container, key = locate(document, member(operation, "path"))
  insert(container, key, value, used)
  return document
end


-- A few copies double a document until no memory is left: what they add is counted as JSON.
function OPERATIONS.copy(document, operation, used)
  local value = get(locate(document, member(operation, "from")))
  local container, key = locate(document, member(operation, "path"))
  if value == nil then
    value = json.null
  end
  used.copied = used.copied + #encode(value)
  if used.copied > COPIED_MAX then
    unprocessable()
  end
  insert(container, key, json.copy(value), used)
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


-- Refuses what upstream's decoder refuses, before anything is done.
local function check(operations)
  if type(operations) ~= "table" or not json.is_array(operations) then
    refuse_type(operations, "value of type []handlers.jsonPatchOp")
  end
  for _, operation in ipairs(operations) do
    if operation ~= json.null and (type(operation) ~= "table" or json.is_array(operation)) then
      refuse_type(operation, "value of type handlers.jsonPatchOp")
    end
    for _, name in ipairs { "op", "path", "from" } do
      local value
      if operation ~= json.null then
        value = operation[name]
      end
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
  local document, used = json.copy(object), { copied = 0, moved = 0 }
  for _, operation in ipairs(operations) do
    local run = operation ~= json.null and OPERATIONS[operation.op]
    if not run then
      unprocessable()
    end
    document = run(document, operation, used)
  end
  encode(document)
  return document
end


--- Applies the list `operations` to `object`. Returns the new object, or nil and a Status:
--- 400 when the patch is malformed, 413 when it is too long, 422 when it cannot be done.
--- The inputs are not changed.
return function(object, operations)
  return failure.try(apply, object, operations)
end
