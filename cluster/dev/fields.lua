--- Finds reads of fields that a kind does not have, in live scripts, for all kinds of the embedded API server
--- (cluster.analysis.fields).
---
--- The C side (cluster/host/dev.c) calls check when scripts have gone live.
local builtin = require "cluster.apiserver.schema.builtin"
local fields = require "cluster.analysis.fields"
local host = require "cluster.host"
local server = require "cluster.apiserver.running"

local M = {}

-- Path and name of a file → { text =, reported = set of the texts of problems, is_done = all its kinds are known }.
local checked_files = {}


local function schema_of(group, version, kind)
  local res = server.registry:by_kind(group, version, kind)
  return res and res.read_schema and res:read_schema() or builtin.of(group, version, kind)
end


local function add_news(news, file, state)
  local problems, kinds = fields.check_text(file, schema_of)
  state.is_done = true
  for _, is_known in pairs(kinds) do
    state.is_done = state.is_done and is_known
  end
  for _, problem in ipairs(problems) do
    if not state.reported[problem.text] then
      state.reported[problem.text] = true
      news[#news + 1] = problem
    end
  end
end


--- @param options table { path =, files = { { name =, text = }, … } }
--- @return table as cluster.analysis.fields' check: the problems that were not reported of this text before
function M.check(options)
  local news = host.json.array {}
  for _, file in ipairs(options.files) do
    local key = options.path .. "\0" .. file.name
    if not checked_files[key] or checked_files[key].text ~= file.text then
      checked_files[key] = { text = file.text, reported = {}, is_done = false }
    end
    if not checked_files[key].is_done then
      add_news(news, file, checked_files[key])
    end
  end
  return news
end


return M
