-- The library that `require "moonloop"` returns to a script: kinds, and the declaration of a controller. The host
-- passes its own primitives. Each table of a script is copied first (host.copy calls no metamethod); then the copy is
-- checked and used. (Tests get cluster/testing/moonloop.lua under this name.)
local _, host = ...
local names = host.require "moonloop.names"
local fields = host.require "moonloop.fields"
local webhooks = host.require "moonloop.webhooks"
local declarations = host.require "moonloop.declarations"

local M = {}

local KINDS_MAX = 32
local PARTS_MAX = 16
local FORMERLY_MAX = 8

local EXACT_CALL = 'moonloop.exact(object, "data", …)'
local EXACT_MAX = 8 -- maps of an object
local EXACT_PATH_MAX = 63 -- bytes of a path
local NOT_EXACT = { apiVersion = true, kind = true, status = true }
local EXACT_METADATA = { ["metadata.labels"] = true, ["metadata.annotations"] = true }

local watch_mark = { __metatable = false, __name = "moonloop.watch" }

--- Marks a table as a list, so that it stays a list when it is empty.
M.array = host.array

--- JSON's null: in the changes of ctx.patch it removes a field.
M.null = host.null

--- Is the value moonloop.null?
function M.is_null(value)
  return rawequal(value, host.null)
end


-- Their module is loaded by the first call: few scripts need it.
for _, name in ipairs { "copy", "merge", "equal" } do
  M[name] = function(...)
    return host.require "moonloop.objects"[name](...)
  end
end


local function a(value)
  return host.is_kind(value) and "the kind " .. tostring(value) or "a " .. type(value)
end


--- Marks an object among returned children: if the server refuses to change it, it is deleted and made again.
---@param object table
---@return table object
function M.recreate(object)
  if type(object) ~= "table" then
    error("moonloop.recreate(object): expected an object as in a manifest, got " .. a(object), 2)
  end
  local marked, got = host.mark_recreate(object)
  if not marked then
    error("moonloop.recreate(object): expected an object as in a manifest, got " .. got, 2)
  end
  return marked
end


-- The value at a path of an object, or nil.
local function value_at(object, path)
  for part in path:gmatch "[^.]+" do
    if type(object) ~= "table" then
      return nil
    end
    object = object[part]
  end
  return object
end


local function exact_problem(object, path)
  if type(path) ~= "string" then
    return 'expected the path of a map, as in "data" or "metadata.labels", got ' .. a(path)
  elseif #path > EXACT_PATH_MAX or ("." .. path):find("[^%w_%-.]") or ("." .. path .. "."):find("..", 1, true) then
    return ('"%s" is no path of fields with dots between them, as in "data" or "metadata.labels"')
      :format(names.text(path))
  elseif NOT_EXACT[path:match "^[^.]+"] or (path .. "."):find "^metadata%." and not EXACT_METADATA[path] then
    return ('"%s" cannot be exact; of the metadata, labels and annotations can'):format(path)
  end
  local value = value_at(object, path)
  if value ~= nil and (type(value) ~= "table" or #value > 0) then
    return ('"%s" is %s; expected a map'):format(path, type(value) == "table" and "a list" or a(value))
  end
end


-- The sorted paths of both lists, or nil and the problem.
local function all_paths(paths, more)
  local list, seen = {}, {}
  for _, part in ipairs { paths, more } do
    for _, path in ipairs(part) do
      list[#list + 1], seen[path] = not seen[path] and path or nil, true
    end
  end
  table.sort(list)
  for index, path in ipairs(list) do
    local before = list[index - 1]
    if before and path:sub(1, #before + 1) == before .. "." then
      return nil, ('"%s" is within "%s"'):format(path, before)
    end
  end
  return list, #list > EXACT_MAX and ("%d maps; at most %d"):format(#list, EXACT_MAX) or nil
end


--- Marks an object among returned children, or for ctx.apply: these maps get the keys that it gives, and keys of others
--- are removed.
---@param object table
---@param ... string paths, as "data" or "metadata.labels"
---@return table object
function M.exact(object, ...)
  if type(object) ~= "table" then
    error(EXACT_CALL .. ": expected an object as in a manifest, got " .. a(object), 2)
  end
  local more = table.pack(...)
  local problem
  if more.n == 0 or more.n > EXACT_MAX then
    problem = ('expected paths of maps, as "data" or "metadata.labels", %d at most'):format(EXACT_MAX)
  end
  for index = 1, problem and 0 or more.n do
    problem = problem or exact_problem(object, more[index])
  end
  local paths
  if not problem then
    paths, problem = all_paths(host.exact_paths(object) or {}, more)
  end
  if problem then
    error(EXACT_CALL .. ": " .. problem, 2)
  end
  local marked, got = host.mark_exact(object, paths)
  if not marked then
    error(EXACT_CALL .. ": expected an object as in a manifest, got " .. got, 2)
  end
  return object
end


local function check_selection(selection)
  if type(selection) ~= "table" then
    return ('expected what to select, as in { labels = "app=web" }, got %s'):format(a(selection))
  end
  for _, field in ipairs { "labels", "fields" } do
    if selection[field] ~= nil and type(selection[field]) ~= "string" then
      return ("%s: expected a selector in one string, got %s"):format(field, a(selection[field]))
    end
  end
  if selection.metadata_only ~= nil and type(selection.metadata_only) ~= "boolean" then
    return "metadata_only: expected true or false, got " .. a(selection.metadata_only)
  end
  return names.unknown(selection, fields.selection)
end


--- A kind of object, by the apiVersion and kind of its manifests.
---@param api_version string
---@param kind string
---@param selection? table which part of the kind is watched: labels, fields, metadata_only; default: all
function M.kind(api_version, kind, selection)
  if type(selection) == "table" then
    selection = host.copy(selection)
  end
  local problem = selection ~= nil and check_selection(selection)
  if problem then
    error("moonloop.kind(apiVersion, kind [, selection]): " .. problem, 2)
  end
  selection = selection or {}
  local value
  value, problem = host.kind(api_version, kind, selection.labels, selection.fields, selection.metadata_only or false)
  if not value then
    error("moonloop.kind(apiVersion, kind [, selection]): " .. problem, 2)
  end
  return value
end


local function check_part(part, index)
  if type(part) ~= "string" then
    return ("when[%d]: expected a part of the object, got %s"):format(index, a(part))
  end
  if not names.is_known(part, fields.part) then
    return ("when[%d]: there is no part '%s'; %s"):format(index, part, names.hint(part, fields.part, "the parts are"))
  end
end


-- Which changes of `kind` count: those of certain parts of the object, or a function decides. Returns a copy, or nil
-- and the problem.
local function check_when(when, kind)
  if when == nil or type(when) == "function" then
    return when
  end
  local parts = type(when) == "table" and not host.is_kind(when) and host.copy(when)
  if not parts or #parts == 0 then
    return nil, ('when: expected function(old, new), or parts of the object, as in { "generation", "labels" }, got %s')
      :format(parts and "an empty list" or a(when))
  end
  local copy, problem = {}, #parts > PARTS_MAX and ("when: more than %d parts"):format(PARTS_MAX) or nil
  for index, part in ipairs(parts) do
    problem = problem or check_part(part, index)
    if not problem and part == "status" and kind.metadata_only then
      problem = ("when[%d]: no status of %s is watched, metadata_only"):format(index, tostring(kind))
    end
    copy[index] = part
  end
  for key in pairs(parts) do
    if not problem and not copy[key] then
      problem = ("when: expected a list, found the key '%s'"):format(names.text(key))
    end
  end
  if problem then
    return nil, problem
  end
  return copy
end


--- A kind to watch, and the function that returns which objects a change concerns.
---@param kind any of moonloop.kind
---@param map function
---@param when? string[]|function which changes count, as in a controller; default: all
function M.watch(kind, map, when)
  if not host.is_kind(kind) or type(map) ~= "function" then
    error("moonloop.watch(Kind, function(object, ctx) … end [, when]): expected a kind and a function", 2)
  end
  local checked, problem = check_when(when, kind)
  if problem then
    error("moonloop.watch(Kind, function(object, ctx) … end [, when]): " .. problem, 2)
  end
  return setmetatable({ kind = kind, map = map, when = checked }, watch_mark)
end


--- An index of the watched objects of a kind: ctx.list finds those with a key in it without a look at the others.
---@param kind any of moonloop.kind
---@param keys function of an object; returns its keys
function M.index(kind, keys)
  local value, problem = host.index(kind, keys)
  if not value then
    error("moonloop.index(Kind, function(object) … end): " .. problem, 2)
  end
  return value
end


local function check_list(declaration, field, accepts, expected)
  local list = declaration[field]
  if list == nil then
    return {}
  end
  if type(list) ~= "table" or host.is_kind(list) then
    return nil, ("%s: expected a list of %s, got %s"):format(field, expected, a(list))
  end
  list = host.copy(list)
  local copy = {}
  for index, entry in ipairs(list) do
    if not accepts(entry) then
      return nil, ("%s[%d]: expected %s, got %s"):format(field, index, expected, a(entry))
    end
    copy[index] = entry
  end
  for key in pairs(list) do
    if math.type(key) ~= "integer" or key < 1 or key > #copy then
      return nil, ("%s: expected a list of %s, found the key '%s'"):format(field, expected, names.text(key))
    end
  end
  return copy
end


-- The entries of `owns`, as { kind =, adopt = }, and their kinds; or nil and the problem.
local function check_owns(declaration)
  local list, problem = check_list(declaration, "owns", function(entry)
    return host.is_kind(entry) or type(entry) == "table"
  end, "kinds")
  local entries, kinds = {}, {}
  for index, given in ipairs(list or {}) do
    local entry = host.is_kind(given) and { kind = given } or host.copy(given)
    problem = problem or names.unknown(entry, fields.owned)
    if not problem and not host.is_kind(entry.kind) then
      problem = "kind: expected a kind of moonloop.kind, got " .. a(entry.kind)
    elseif not problem and entry.adopt ~= nil and type(entry.adopt) ~= "boolean" then
      problem = "adopt: expected true or false, got " .. a(entry.adopt)
    end
    if problem then
      return nil, ("owns[%d]: %s"):format(index, problem)
    end
    entries[index], kinds[index] = { kind = entry.kind, adopt = entry.adopt or false }, entry.kind
  end
  return list and entries, problem or kinds
end


local function is_watch(value)
  return type(value) == "table" and rawequal(host.getmetatable(value), watch_mark)
end


-- Checks the results of moonloop.watch again: the script may have changed them since.
local function check_watches(watches)
  for index, watch in ipairs(watches) do
    local copy = host.copy(watch)
    if not host.is_kind(copy.kind) or type(copy.map) ~= "function" then
      return ("watches[%d]: expected a kind and a function"):format(index)
    end
    local problem
    copy.when, problem = check_when(copy.when, copy.kind)
    if problem then
      return ("watches[%d]: %s"):format(index, problem)
    end
    watches[index] = { kind = copy.kind, map = copy.map, when = copy.when }
  end
end


local function check_name(value)
  if type(value) ~= "string" then
    return "name: expected a string, got " .. a(value)
  end
  if #value > 63 or not value:match("^[a-z0-9][a-z0-9-]*$") or value:match("-$") then
    return ("name: '%s' is no DNS label: lower case letters, digits and '-', at most 63"):format(value)
  end
end


-- A copy of the names that the controller had; or nil and the problem.
local function check_formerly(declaration)
  local list, problem = check_list(declaration, "formerly", function(name) return type(name) == "string" end, "names")
  local seen = { [declaration.name] = true }
  if list and #list > FORMERLY_MAX then
    problem = ("formerly: %d names; at most %d"):format(#list, FORMERLY_MAX)
  end
  for index, name in ipairs(list or {}) do
    local wrong = check_name(name)
    if wrong then
      problem = problem or ("formerly[%d]: %s"):format(index, wrong:gsub("^name: ", ""))
    elseif seen[name] then
      problem = problem or ("formerly[%d]: '%s' is %s"):format(index, name,
        name == declaration.name and "the name that it has now" or "there twice")
    end
    seen[name] = true
  end
  return not problem and list or nil, problem
end


local function same_selection(one, other)
  return one.labels == other.labels and one.fields == other.fields and one.metadata_only == other.metadata_only
end


-- Checks the selections. A script watches one part of a kind, because ctx.get and ctx.list read one cache.
local function check_selections(declaration)
  if declaration.reconciles.metadata_only then
    return ("reconciles: %s is metadata_only; a reconcile needs the object's spec and status"):format(
      tostring(declaration.reconciles))
  end
  if declaration.finalize and (declaration.reconciles.labels or declaration.reconciles.fields) then
    return ("reconciles: a part of %s is selected, and there is finalize: an object that leaves that part would keep "
      .. "its finalizer for ever; watch all of the kind, and look at the labels in reconcile"):format(
      tostring(declaration.reconciles))
  end
  local first = { [tostring(declaration.reconciles)] = declaration.reconciles }
  local watched = { table.unpack(declaration.owns) }
  for index, watch in ipairs(declaration.watches) do
    watched[#declaration.owns + index] = watch.kind
  end
  for _, kind in ipairs(watched) do
    local key = tostring(kind)
    first[key] = first[key] or kind
    if not same_selection(first[key], kind) then
      return key .. " is there twice with different selections; a script watches one part of a kind"
    end
  end
  for index, kind in ipairs(declaration.uses) do
    if kind.labels or kind.fields or kind.metadata_only then
      return ("uses[%d]: labels, fields and metadata_only say what of a kind is watched; %s is read by request")
        :format(index, tostring(kind))
    end
  end
end


-- A kind has one role: it is reconciled, owned or used. In addition, an owned or reconciled kind may be
-- watched with a function.
local function check_roles(declaration)
  local roles, count = {}, 0
  local function add(kind, field)
    count = count + 1
    local key = tostring(kind)
    if roles[key] == "reconciles" and field == "owns" then
      return ("%s is in reconciles and in owns: each object of that kind is reconciled by itself, and cannot be a "
        .. "child as well; docs/children.md (An object of its own kind) says what to do"):format(key)
    elseif roles[key] then
      return ("%s is in %s and in %s"):format(key, roles[key], field)
    end
    roles[key] = field
  end
  local problem = add(declaration.reconciles, "reconciles")
  for _, field in ipairs { "owns", "uses" } do
    for _, kind in ipairs(declaration[field]) do
      problem = problem or add(kind, field)
    end
  end
  local watched = {}
  for _, watch in ipairs(declaration.watches) do
    local key = tostring(watch.kind)
    if watched[key] or roles[key] == "uses" then
      problem = problem or ("%s is in watches and in %s"):format(key, watched[key] or "uses")
    end
    watched[key], count = "watches", count + 1
  end
  if not problem and count > KINDS_MAX then
    problem = ("%d kinds; at most %d"):format(count, KINDS_MAX)
  end
  return problem
end


local function check_rest(declaration)
  if not host.is_kind(declaration.reconciles) then
    return "reconciles: expected a kind of moonloop.kind, got " .. a(declaration.reconciles)
  end
  if type(declaration.reconcile) ~= "function" then
    return "reconcile: expected function(object, ctx), got " .. a(declaration.reconcile)
  end
  if declaration.finalize ~= nil and type(declaration.finalize) ~= "function" then
    return "finalize: expected function(object, ctx), got " .. a(declaration.finalize)
  end
  local most = declaration.max_concurrent
  if most ~= nil and (math.type(most) ~= "integer" or most < 1 or most > 10000) then
    return "max_concurrent: expected a whole number from 1 to 10000"
  end
  local wakes = declaration.wakes
  if wakes ~= nil and wakes ~= "all" then
    local nearest = type(wakes) == "string" and names.nearest(wakes, "all")
    return ("wakes: expected \"all\" or nothing, got %s%s"):format(
      type(wakes) == "string" and ("'%s'"):format(wakes) or a(wakes), nearest and "; did you mean 'all'?" or "")
  end
end


--- Declares a controller; a script returns it.
function M.controller(declaration)
  if type(declaration) ~= "table" then
    error("moonloop.controller { … }: expected a table", 2)
  end
  declaration = host.copy(declaration)
  local problem = names.unknown(declaration, fields.controller) or check_name(declaration.name)
    or check_rest(declaration)
  if problem then
    error("moonloop.controller: " .. problem, 2)
  end
  local checked = {
    name = declaration.name,
    reconciles = declaration.reconciles,
    reconcile = declaration.reconcile,
    finalize = declaration.finalize,
    max_concurrent = declaration.max_concurrent or 1000,
    wakes = declaration.wakes,
  }
  checked.when, problem = check_when(declaration.when, declaration.reconciles)
  if problem then
    error("moonloop.controller: " .. problem, 2)
  end
  for _, field in ipairs { "metrics", "http", "rollout" } do
    checked[field], problem = declarations[field](declaration[field])
    if problem then
      error("moonloop.controller: " .. problem, 2)
    end
  end
  checked.formerly, problem = check_formerly(declaration)
  if problem then
    error("moonloop.controller: " .. problem, 2)
  end
  local owned
  owned, checked.owns = check_owns(declaration)
  if not owned then
    error("moonloop.controller: " .. checked.owns, 2)
  end
  for _, field in ipairs { "watches", "uses" } do
    local accepts = field == "watches" and is_watch or host.is_kind
    local expected = field == "watches" and "moonloop.watch(Kind, function)" or "kinds"
    checked[field], problem = check_list(declaration, field, accepts, expected)
    if problem then
      error("moonloop.controller: " .. problem, 2)
    end
  end
  problem = check_watches(checked.watches) or check_roles(checked) or check_selections(checked)
  if not problem then
    problem, checked.webhooks = webhooks.check(declaration)
  end
  if problem then
    error("moonloop.controller: " .. problem, 2)
  end
  checked.owns = owned
  return host.controller(checked)
end


return M
