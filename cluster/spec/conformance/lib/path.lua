--- Paths into JSON values: `metadata.name`, `items[0]`, `items[*].kind`, `resources[name=pods].verbs`,
--- `metadata.annotations["a.b/c"]`. Scenarios use them to keep, ignore and select parts of an answer.
local M = {}


local function next_step(path, at)
  local name, past = path:match("^%.?([^.%[%]]+)()", at)
  if name then
    return { name = name }, past
  end
  local inside
  inside, past = path:match("^%[([^%]]+)%]()", at)
  assert(inside, "not a path: " .. path)
  if inside == "*" then
    return { every = true }, past
  elseif inside:match("^%d+$") then
    return { index = math.tointeger(inside) + 1 }, past
  elseif inside:match('^"') then
    return { name = inside:match('^"(.*)"$') }, past
  end
  local key, value = inside:match("^([^=]+)=(.*)$")
  assert(key, "not a path: " .. path)
  return { key = key, value = value }, past
end


--- The steps of a path.
function M.parse(path)
  local steps, at = {}, 1
  while at <= #path do
    steps[#steps + 1], at = next_step(path, at)
  end
  return steps
end


-- The keys of `value` that one step leads to.
local function keys_of(value, step)
  local keys = {}
  if step.name or step.index then
    keys[1] = value[step.name or step.index] ~= nil and (step.name or step.index) or nil
    return keys
  end
  for i, item in ipairs(value) do
    if step.every or (type(item) == "table" and tostring(item[step.key]) == step.value) then
      keys[#keys + 1] = i
    end
  end
  return keys
end


-- Calls `visit(parent, key)` for each place that the path leads to, the last ones of a list first.
local function each(value, steps, depth, visit)
  if type(value) ~= "table" then
    return
  end
  local keys = keys_of(value, steps[depth])
  for i = #keys, 1, -1 do
    if depth == #steps then
      visit(value, keys[i])
    else
      each(value[keys[i]], steps, depth + 1, visit)
    end
  end
end


--- The values that `path` leads to, in their order.
function M.all(value, path)
  local found = {}
  each(value, M.parse(path), 1, function(parent, key)
    table.insert(found, 1, parent[key])
  end)
  return found
end


--- The first value that `path` leads to, or nil.
function M.get(value, path)
  return M.all(value, path)[1]
end


--- Removes what `path` leads to, in place.
function M.remove(value, path)
  each(value, M.parse(path), 1, function(parent, key)
    if math.type(key) then
      table.remove(parent, key)
    else
      parent[key] = nil
    end
  end)
end


return M
