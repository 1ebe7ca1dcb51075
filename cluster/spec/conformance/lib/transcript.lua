--- Recorded transcripts: text that can be read and compared by eye; one JSON value a line.
local files = require "cluster.spec.conformance.lib.files"
local host = require "cluster.host"

local M = {}

-- The fields of an entry, in the order in which they are written.
local FIELDS = { "code", "headers", "body", "events", "exit", "stdout", "stderr" }


--- Returns a number that changes with the requests of a scenario, but not with its comments and blank lines.
function M.fingerprint(scenario)
  return host.sha256(scenario.text):sub(1, 16)
end


-- A value with its numbered texts, "<version 8>", passed through `number`.
local function each_number(value, number)
  if type(value) == "string" then
    return (value:gsub("<(%l+) (%d+)>", number))
  elseif type(value) ~= "table" then
    return value
  end
  if host.json.is_array(value) then
    local list = host.json.array {}
    for i, item in ipairs(value) do
      list[i] = each_number(item, number)
    end
    return list
  end
  local keys, result = {}, {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  for _, key in ipairs(keys) do
    result[each_number(key, number)] = each_number(value[key], number)
  end
  return result
end


--- Numbers the versions, uids and other values of a transcript by where they first appear in it. The normalizer counts
--- those in parts that are not compared, too, and there a version may be one that a real server's controller wrote.
function M.renumber(transcript)
  local counts, numbers = {}, {}
  local function number(word, old)
    local key = word .. " " .. old
    if not numbers[key] then
      counts[word] = (counts[word] or 0) + 1
      numbers[key] = ("<%s %d>"):format(word, counts[word])
    end
    return numbers[key]
  end
  for _, entry in ipairs(transcript) do
    for _, field in ipairs(FIELDS) do
      entry[field] = each_number(entry[field], number)
    end
  end
end


local function add_entry(lines, entry)
  lines[#lines + 1] = ""
  lines[#lines + 1] = "> " .. entry.source
  for _, field in ipairs(FIELDS) do
    local value = entry[field]
    if field == "events" and value then
      for _, event in ipairs(value) do
        lines[#lines + 1] = "event " .. host.json.encode(event)
      end
      lines[#lines + 1] = "events " .. #value
    elseif value ~= nil then
      lines[#lines + 1] = field .. " " .. host.json.encode(value)
    end
  end
end


--- Writes the transcript of a scenario.
function M.write(path, scenario, transcript)
  local lines = { "scenario " .. M.fingerprint(scenario) }
  for _, entry in ipairs(transcript) do
    add_entry(lines, entry)
  end
  files.write(path, table.concat(lines, "\n") .. "\n")
end


local function read_line(transcript, line)
  local source = line:match("^> (.*)$")
  if source then
    transcript[#transcript + 1] = { source = source }
    return
  end
  local entry = transcript[#transcript]
  local field, text = line:match("^(%l+) (.*)$")
  if field == "event" then
    entry.events = entry.events or host.json.array {}
    entry.events[#entry.events + 1] = host.json.decode(text)
  elseif field == "events" then
    entry.events = entry.events or host.json.array {}
  elseif field then
    entry[field] = assert(host.json.decode(text))
  end
end


--- Reads a recorded transcript.
---@return table|nil transcript nil and why when there is none, or one of another version of the scenario
---@return string? why
function M.read(path, scenario)
  local text = files.read(path)
  if not text then
    return nil, "was never recorded"
  end
  if text:match("^scenario (%x+)") ~= M.fingerprint(scenario) then
    return nil, "was recorded from another version of its file"
  end
  local transcript = {}
  for line in text:gmatch("[^\n]+") do
    if not line:match("^scenario ") then
      read_line(transcript, line)
    end
  end
  return transcript
end


return M
