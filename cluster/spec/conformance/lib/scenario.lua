--- Reads scenario files. The format stands in README.md.
local files = require "cluster.spec.conformance.lib.files"

local M = {}

-- The kinds of patch, written as if they were methods.
local PATCHES = {
  MERGE = "application/merge-patch+json",
  STRATEGIC = "application/strategic-merge-patch+json",
  ["JSON-PATCH"] = "application/json-patch+json",
  APPLY = "application/apply-patch+yaml",
}

local METHODS = { GET = true, POST = true, PUT = true, PATCH = true, DELETE = true, HEAD = true, OPTIONS = true }


local function request_step(word, rest)
  local patch = PATCHES[word]
  if not patch and not METHODS[word] then
    return nil
  end
  return { does = "request", method = patch and "PATCH" or word, path = rest, headers = { ["content-type"] = patch } }
end


-- One function a word that opens a step; each returns the step.
local OPENERS = {
  WATCH = function(rest)
    local name, path = rest:match("^(%S+) (%S+)$")
    return name and { does = "watch", name = name, path = path, method = "GET", headers = {} }
  end,
  EVENTS = function(rest)
    local name, count = rest:match("^(%S+) (%S+)$")
    return name and { does = "events", name = name, count = math.tointeger(tonumber(count)) }
  end,
  ["$"] = function(rest)
    return { does = "command", command = rest }
  end,
  FILE = function(rest)
    return { does = "file", name = rest }
  end,
}

-- One function a word that says more about the step before; each changes the step.
local MODIFIERS = {
  expect = function(step, rest)
    step.expect = assert(math.tointeger(tonumber(rest)), "expect takes a number")
  end,
  keep = function(step, rest)
    local name, path = rest:match("^(%u[%u%d_]*) = (.+)$")
    step.keep[#step.keep + 1] = { name = assert(name, "keep NAME = path"), path = path }
  end,
  ignore = function(step, rest)
    step.ignore[#step.ignore + 1] = rest
  end,
  only = function(step, rest)
    step.only = step.only or {}
    step.only[#step.only + 1] = rest
  end,
  ["until"] = function(step, rest)
    local path, value = rest:match("^(.-) = (.*)$")
    step.wait = path and { path = path, value = value } or { code = math.tointeger(tonumber(rest)) }
  end,
}


local function open_step(line, number)
  local word, rest = line:match("^(%S+) (.+)$")
  local opener = OPENERS[word]
  local step = word and (opener and opener(rest) or not opener and request_step(word, rest))
  if step then
    step.line, step.source = number, line
    step.keep, step.ignore = {}, {}
  end
  return step
end


-- The lines below a step: what it sends, headers, and what is done with the answer.
local function add_line(step, line)
  local raw = line:match("^| ?(.*)$")
  local text = raw or line:match("^  (.*)$")
  if text then
    step.raw = step.raw or raw ~= nil
    step.body = step.body and step.body .. "\n" .. text or text
    return
  end
  local from = line:match("^< (%S+)$")
  if from then
    step.body = assert(files.read("cluster/spec/conformance/scenarios/" .. from), "no file " .. from):gsub("\n$", "")
    return
  end
  local header, value = line:match("^([%w-]+): (.*)$")
  if header then
    step.headers[header:lower()] = value
    return
  end
  local word, rest = line:match("^(%l+) (.+)$")
  local modifier = assert(MODIFIERS[word], "not understood: " .. line)
  modifier(step, rest)
end


-- True for a line that no step reads. An indented "#" belongs to a body, so it is no comment.
local function is_ignored(line)
  return line:match("^#") or not line:match("%S")
end


local function read_line(scenario, line, number)
  local step = open_step(line, number)
  if step then
    scenario.steps[#scenario.steps + 1] = step
  else
    add_line(assert(scenario.steps[#scenario.steps], "nothing to belong to"), line)
  end
end


--- The scenario that a text describes. Raises "name:line: why" when it cannot be read.
---@param name string "basics/create", what reports and recordings call it
---@param text string
---@return table scenario name, steps, and text: the lines without comments and blank lines, and the files
function M.parse(name, text)
  local scenario = { name = name, steps = {} }
  local kept, number = {}, 0
  for line in (text .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    if not is_ignored(line) then
      kept[#kept + 1] = line .. "\n"
      local ok, problem = pcall(read_line, scenario, line, number)
      if not ok then
        error(("%s:%d: %s"):format(name, number, (tostring(problem):gsub("^[^:]+:%d+: ", ""))), 0)
      end
      if line:match("^< ") then
        kept[#kept + 1] = scenario.steps[#scenario.steps].body .. "\n"
      end
    end
  end
  scenario.text = table.concat(kept)
  return scenario
end


return M
