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
