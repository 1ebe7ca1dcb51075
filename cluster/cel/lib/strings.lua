--- The library of texts: charAt, indexOf, replace, split, format and others. Places are counted in characters.
---
--- Rules: cel-go ext/strings.go, version 2, as Kubernetes has it.
local format = require "cluster.cel.format"
local runes = require "cluster.cel.runes"
local values = require "cluster.cel.values"

local M = {}

local COST_BYTES <const> = 10 -- of a result, for a unit of cost: no call makes more than the run may cost


local function out_of_range(index)
  return nil, "index out of range: " .. index
end


local function char_at(text, index)
  local size = runes.size(text)
  if index < 0 or index > size then
    return out_of_range(index)
  end
  return runes.sub(text, index, math.min(index + 1, size))
end


local function index_of(text, part, offset)
  offset = offset or 0
  if part == "" then
    return offset
  elseif offset < 0 then
    return out_of_range(offset)
  elseif offset >= runes.size(text) then
    return -1
  end
  local at = text:find(part, runes.byte_of(text, offset), true)
  return at and runes.size(text:sub(1, at - 1)) or -1
end


local function last_index_of(text, part, offset)
  local size = runes.size(text)
  if part == "" then
    return offset or size
  elseif not offset and #text < #part then
    return -1
  end
  offset = offset or size - 1
  if offset < 0 then
    return out_of_range(offset)
  elseif offset >= size then
    return -1
  end
  local last, at = nil, 1
  local limit = runes.byte_of(text, offset)
  while true do
    local found = text:find(part, at, true)
    if not found or found > limit then
      return last and runes.size(text:sub(1, last - 1)) or -1
    end
    last, at = found, found + 1
  end
end


-- The places where the text is cut: before each character when the separator is empty.
local function split_runes(text, count)
  local parts = {}
  for _, code in utf8.codes(text, true) do
    parts[#parts + 1] = utf8.char(code)
  end
  if count > 0 and #parts > count then
    parts[count] = table.concat(parts, "", count)
    for i = #parts, count + 1, -1 do
      parts[i] = nil
    end
  end
  return parts
end


local function split(text, separator, count)
  count = count or -1
  if count == 0 then
    return values.list {}
  elseif separator == "" then
    return values.list(split_runes(text, count))
  end
  local parts, at = {}, 1
  while count < 0 or #parts < count - 1 do
    local from, to = text:find(separator, at, true)
    if not from then
      break
    end
    parts[#parts + 1] = text:sub(at, from - 1)
    at = to + 1
  end
  parts[#parts + 1] = text:sub(at)
  return values.list(parts)
end


-- Before each character, and at the end, up to `count` of them.
local function insert_between(text, new, count)
  local parts = {}
  for _, code in utf8.codes(text, true) do
    if count ~= 0 then
      parts[#parts + 1] = new
      count = count - 1
    end
    parts[#parts + 1] = utf8.char(code)
  end
  if count ~= 0 then
    parts[#parts + 1] = new
  end
  return table.concat(parts)
end


local function replace(text, old, new, count)
  count = count or -1
  if count == 0 or old == new then
    return text
  elseif old == "" then
    return insert_between(text, new, count)
  end
  local parts, at = {}, 1
  while count ~= 0 do
    local from, to = text:find(old, at, true)
    if not from then
      break
    end
    parts[#parts + 1] = text:sub(at, from - 1)
    at, count = to + 1, count - 1
  end
  parts[#parts + 1] = text:sub(at)
  return table.concat(parts, new)
end


local function replaced_cost(text, old, new)
  local times = old == "" and #text + 1 or #text // #old
  return (#text + times * #new) // COST_BYTES
end


local function substring(text, from, to)
  local size = runes.size(text)
  if to and from > to then
    return nil, ("invalid substring range. start: %d, end: %d"):format(from, to)
  elseif from < 0 or from > size then
    return out_of_range(from)
  elseif to and (to < 0 or to > size) then
    return out_of_range(to)
  end
  return runes.sub(text, from, to or size)
end


local function join(list, separator)
  local parts = {}
  for i, element in ipairs(values.elements(list)) do
    if type(element) ~= "string" then
      return nil, ("join: invalid input: %s"):format(tostring(element))
    end
    parts[i] = element
  end
  return table.concat(parts, separator or "")
end


local function joined_cost(list, separator)
  local bytes = 0
  for _, element in ipairs(values.elements(list)) do
    bytes = bytes + (type(element) == "string" and #element or 0) + #(separator or "")
  end
  return bytes // COST_BYTES
end


--- Adds them.
function M.add(functions)
  functions:add("charAt", "string_char_at_int", "string.(int) -> string", char_at)
  functions:add("indexOf", "string_index_of_string", "string.(string) -> int", index_of)
  functions:add("indexOf", "string_index_of_string_int", "string.(string, int) -> int", index_of)
  functions:add("lastIndexOf", "string_last_index_of_string", "string.(string) -> int", last_index_of)
  functions:add("lastIndexOf", "string_last_index_of_string_int", "string.(string, int) -> int", last_index_of)
  functions:add("lowerAscii", "string_lower_ascii", "string.() -> string", runes.lower)
  functions:add("upperAscii", "string_upper_ascii", "string.() -> string", runes.upper)
  functions:add("replace", "string_replace_string_string", "string.(string, string) -> string", replace, replaced_cost)
  functions:add("replace", "string_replace_string_string_int", "string.(string, string, int) -> string", replace,
    replaced_cost)
  functions:add("split", "string_split_string", "string.(string) -> list(string)", split)
  functions:add("split", "string_split_string_int", "string.(string, int) -> list(string)", split)
  functions:add("substring", "string_substring_int", "string.(int) -> string", substring)
  functions:add("substring", "string_substring_int_int", "string.(int, int) -> string", substring)
  functions:add("trim", "string_trim", "string.() -> string", runes.trim)
  functions:add("format", "string_format", "string.(list(dyn)) -> string", format.format)
  functions:add("strings.quote", "strings_quote", "(string) -> string", runes.quote)
  functions:add("join", "list_join", "list(string).() -> string", join, joined_cost)
  functions:add("join", "list_join_string", "list(string).(string) -> string", join, joined_cost)
end


return M
