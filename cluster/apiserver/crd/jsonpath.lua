--- JSONPath as printer columns and selectable fields use it: ".spec.size", ".spec.parts[0].name",
--- ".status.conditions[?(@.type==\"Ready\")].status", ".spec.tags[*]", "..name".
---
--- Rules: client-go/util/jsonpath/{parser,jsonpath}.go. Templates, ranges and unions of fields are not supported.
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"

local is_array, null = host.json.is_array, host.json.null

local M = {}

-- A path is a list of steps; a step takes a list of values to the list of what they lead to, or to nil when it cannot.


local function is_object(value)
  return type(value) == "table" and not is_array(value)
end


local function children(value, add)
  if is_array(value) then
    for _, item in ipairs(value) do
      add(item)
    end
  elseif type(value) == "table" then
    for _, key in ipairs(gofmt.sorted_keys(value)) do
      add(value[key])
    end
  end
end


-- The step that takes each value to what `visit(value, add)` adds.
local function each(visit)
  return function(values)
    local found = {}
    for _, value in ipairs(values) do
      if visit(value, function(inner) found[#found + 1] = inner end) == false then
        return nil
      end
    end
    return found
  end
end


local function field_step(name)
  return each(function(value, add)
    if is_object(value) and value[name] ~= nil then
      add(value[name])
    end
  end)
end


local wildcard = each(children)


local function descend(value, add)
  add(value)
  children(value, function(inner)
    if type(inner) == "table" then
      descend(inner, add)
    end
  end)
end


-- Items first to last, counted from 0; negative numbers count from the end. Out of bounds nothing is found at all.
local function slice_step(first, last, step, single)
  return each(function(value, add)
    if value == null then
      return nil
    elseif not is_array(value) then
      return false
    end
    local count = #value
    local from = first or 0
    from = from < 0 and from + count or from
    local to = last or count
    to = (to < 0 or (to == 0 and single)) and to + count or to
    if from == to then
      return nil
    elseif from < 0 or from >= count or to > count or to < 0 or from > to then
      return false
    end
    for i = from, to - 1, step do
      add(value[i + 1])
    end
  end)
end


local COMPARE = {
  ["=="] = function(a, b) return host.json.equal(a, b) end,
  ["!="] = function(a, b) return not host.json.equal(a, b) end,
  ["<"] = function(a, b) return type(a) == type(b) and a < b end,
  ["<="] = function(a, b) return type(a) == type(b) and a <= b end,
  [">"] = function(a, b) return type(a) == type(b) and a > b end,
  [">="] = function(a, b) return type(a) == type(b) and a >= b end,
}


local function run(steps, values)
  for _, step in ipairs(steps) do
    values = step(values)
    if not values then
      return {}
    end
  end
  return values
end


local function literal(text)
  local quoted = text:match '^"(.*)"$' or text:match "^'(.*)'$"
  if quoted then
    return quoted
  elseif text == "true" or text == "false" then
    return text == "true"
  end
  return math.tointeger(tonumber(text)) or tonumber(text)
end


-- One side of a comparison: value(item) -> value or nil; nil when it cannot be read.
local function operand(text)
  text = text:match "^%s*(.-)%s*$"
  if text:sub(1, 1) == "@" then
    local steps = text == "@" and {} or M.parse(text:sub(2))
    return steps and function(item)
      return run(steps, { item })[1]
    end
  end
  local value = literal(text)
  if value == nil then
    return nil
  end
  return function()
    return value
  end
end


local function split_filter(text)
  for _, operator in ipairs { "==", "!=", "<=", ">=", "<", ">" } do
    local at = text:find(operator, 1, true)
    if at then
      return text:sub(1, at - 1), operator, text:sub(at + #operator)
    end
  end
  return text
end


local function filter_step(text)
  local left_text, operator, right_text = split_filter(text)
  local left = operand(left_text)
  local right = right_text and operand(right_text)
  if not left or (operator and not right) then
    return nil
  end
  return each(function(value, add)
    if not is_array(value) then
      return value == null and nil or false
    end
    for _, item in ipairs(value) do
      local a, b = left(item), operator and right(item)
      if a ~= nil and (not operator or (b ~= nil and COMPARE[operator](a, b))) then
        add(item)
      end
    end
  end)
end


-- Makes a step of the text between brackets.
local function bracket_step(text)
  local filter = text:match "^%?%((.*)%)$"
  if filter then
    return filter_step(filter)
  elseif text == "*" then
    return wildcard
  end
  local name = text:match "^'([^']*)'$"
  local steps = name and M.parse("." .. name)
  if steps then
    return function(values)
      return run(steps, values)
    end
  end
  local index = text:match "^-?%d+$"
  if index then
    index = math.tointeger(tonumber(index))
    return slice_step(index, index + 1, 1, true)
  end
  local from, to, step = text:match "^(-?%d*):(-?%d*):?(%d*)$"
  if from then
    return slice_step(math.tointeger(tonumber(from)), math.tointeger(tonumber(to)),
      math.tointeger(tonumber(step)) or 1, false)
  end
end


-- The end of the bracket that opens at `from`, over quotes and brackets within.
local function closing(text, from)
  local depth, quote = 0, nil
  for i = from, #text do
    local char = text:sub(i, i)
    if quote then
      quote = char ~= quote and quote or nil
    elseif char == "'" or char == '"' then
      quote = char
    elseif char == "[" then
      depth = depth + 1
    elseif char == "]" then
      depth = depth - 1
      if depth == 0 then
        return i
      end
    end
  end
end


-- A name that ends at a dot or a bracket; a backslash takes the next character as it is.
local function read_name(text, from)
  local name, i = {}, from
  while i <= #text do
    local char = text:sub(i, i)
    if char == "\\" then
      i = i + 1
      char = text:sub(i, i)
    elseif char:find "[.,%[%]$@{}%s]" then
      break
    end
    name[#name + 1] = char
    i = i + 1
  end
  return table.concat(name), i
end


local function next_step(text, at)
  if text:sub(at, at + 1) == ".." then
    return each(descend), text:sub(at + 2, at + 2) == "[" and at + 2 or at + 1
  elseif text:sub(at, at) == "[" then
    local last = closing(text, at)
    return last and bracket_step(text:sub(at + 1, last - 1)), last and last + 1
  elseif text:sub(at, at) == "." then
    local name, after = read_name(text, at + 1)
    if name == "*" then
      return wildcard, after
    elseif name == "" then
      return after > #text and at == 1 and each(function(value, add) add(value) end) or nil, after
    end
    return field_step(name), after
  end
end


--- Reads a path. @return table|nil steps; nil when it is none
function M.parse(text)
  local steps, at = {}, 1
  while at <= #text do
    local step, after = next_step(text, at)
    if not step then
      return nil
    end
    steps[#steps + 1] = step
    at = after
  end
  return steps
end


--- The names of a path that has nothing but names, or nil.
function M.names(text)
  local names = {}
  if not text:find "^%.[^.]" or text:find "[%[%]\\*{}%s,$@]" or text:find("..", 1, true) then
    return nil
  end
  for name in text:gmatch "[^.]+" do
    names[#names + 1] = name
  end
  return names
end


--- A function from an object to the first value that a path leads to, nil when there is none; nil when the text is no
--- path.
function M.compile(text)
  local names = M.names(text)
  if names then
    return function(object)
      for i = 1, #names do
        if type(object) ~= "table" then
          return nil
        end
        object = object[names[i]]
      end
      return object
    end
  end
  local steps = M.parse(text)
  return steps and function(object)
    return run(steps, { object })[1]
  end
end


return M
