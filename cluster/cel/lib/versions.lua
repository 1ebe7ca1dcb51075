--- Kubernetes' library of semantic versions: semver("1.2.3").
---
--- Rules: apiserver/pkg/cel/library/semverlib.go, semver.org 2.0.0.
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"

local M = {}

local TYPE = types.object "kubernetes.Semver"
M.short = { semver = TYPE }

local Semver = values.class "kubernetes.Semver"
Semver.type = TYPE

local DIGITS_MAX = 18
local NAMES = { "major", "minor", "patch" }


-- A number of a version; nil and a message.
local function read_number(text, name)
  if not text:find "^%d+$" then
    return nil, ('Invalid character(s) found in %s number "%s"'):format(name, text)
  elseif #text > 1 and text:find "^0" then
    return nil, ('%s number must not contain leading zeroes "%s"'):format(name:gsub("^%l", string.upper), text)
  elseif #text > DIGITS_MAX then
    return nil, ('strconv.ParseUint: parsing "%s": value out of range'):format(text)
  end
  return math.tointeger(tonumber(text))
end


-- The parts of a pre-release: numbers and words.
local function read_pre(text)
  local parts = {}
  for part in (text .. "."):gmatch "([^.]*)%." do
    if part == "" then
      return nil, "Prerelease is empty"
    elseif part:find "[^%w-]" then
      return nil, ('Invalid character(s) found in prerelease "%s"'):format(part)
    elseif part:find "^%d+$" then
      local number, message = read_number(part, "numeric PreRelease version")
      if not number then
        return nil, message
      end
      parts[#parts + 1] = number
    else
      parts[#parts + 1] = part
    end
  end
  return parts
end


local function check_build(text)
  for part in (text .. "."):gmatch "([^.]*)%." do
    if part == "" then
      return "Build meta data is empty"
    elseif part:find "[^%w-]" then
      return ('Invalid character(s) found in build meta data "%s"'):format(part)
    end
  end
  return nil
end


local function read(text)
  if text == "" then
    return nil, "Version string empty"
  end
  local major, minor, rest = text:match "^([^.]*)%.([^.]*)%.(.*)$"
  if not major then
    return nil, "No Major.Minor.Patch elements found"
  end
  local core, build = rest:match "^([^+]*)%+(.*)$"
  core = core or rest
  local patch, pre = core:match "^([^-]*)%-(.*)$"
  local version, message = { pre = {} }, nil
  for i, part in ipairs { major, minor, patch or core } do
    version[NAMES[i]], message = read_number(part, NAMES[i])
    if not version[NAMES[i]] then
      return nil, message
    end
  end
  if pre then
    version.pre, message = read_pre(pre)
  end
  message = not version.pre and message or build and check_build(build) or nil
  if message then
    return nil, message
  end
  version.text = text
  return setmetatable(version, Semver)
end


local function without_zeros(part)
  if #part > 1 then
    part = part:gsub("^0+", "")
    if not part:find "^%d" then
      part = "0" .. part
    end
  end
  return part
end


-- "v1.02" is read as "1.2.0".
local function normalize(text)
  text = text:gsub("^v", "")
  local major, minor, rest = text:match "^([^.]*)%.?([^.]*)%.?(.*)$"
  local count = select(2, text:gsub("%.", ".")) + 1
  if count < 3 and (count == 1 and major or minor):find "[+-]" then
    return nil, "short version cannot contain PreRelease/Build meta data"
  end
  return ("%s.%s.%s"):format(without_zeros(major), count > 1 and without_zeros(minor) or "0",
    count > 2 and without_zeros(rest) or "0")
end


local function to_semver(text, tolerant)
  if tolerant then
    local normal, message = normalize(text)
    if not normal then
      return nil, message
    end
    text = normal
  end
  return read(text)
end


local function is_semver(text, tolerant)
  return to_semver(text, tolerant) ~= nil
end


local function order(a, b)
  return a < b and -1 or a > b and 1 or 0
end


-- A number stands before a word.
local function compare_parts(a, b)
  if type(a) == type(b) then
    return order(a, b)
  end
  return type(a) == "number" and -1 or 1
end


local function compare_pre(a, b)
  if #a == 0 or #b == 0 then
    return order(#b, #a) -- a version without one comes last
  end
  for i = 1, math.min(#a, #b) do
    local result = compare_parts(a[i], b[i])
    if result ~= 0 then
      return result
    end
  end
  return order(#a, #b)
end


local function compare(a, b)
  for _, name in ipairs(NAMES) do
    if a[name] ~= b[name] then
      return order(a[name], b[name])
    end
  end
  return compare_pre(a.pre, b.pre)
end


function Semver:equal(other)
  return compare(self, other) == 0
end


Semver.__tostring = function(version)
  return version.text
end


--- Adds them.
function M.add(functions)
  functions:add("semver", "string_to_semver", "(string) -> semver", to_semver)
  functions:add("semver", "string_bool_to_semver", "(string, bool) -> semver", to_semver)
  functions:add("isSemver", "is_semver_string", "(string) -> bool", is_semver)
  functions:add("isSemver", "is_semver_string_bool", "(string, bool) -> bool", is_semver)
  functions:add("isGreaterThan", "semver_is_greater_than", "semver.(semver) -> bool", function(a, b)
    return compare(a, b) > 0
  end)
  functions:add("isLessThan", "semver_is_less_than", "semver.(semver) -> bool", function(a, b)
    return compare(a, b) < 0
  end)
  functions:add("compareTo", "semver_compare_to", "semver.(semver) -> int", compare)
  for _, name in ipairs(NAMES) do
    functions:add(name, "semver_" .. name, "semver.() -> int", function(version)
      return version[name]
    end)
  end
end


return M
