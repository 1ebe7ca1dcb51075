--- Finds reads of fields that a kind does not have, in live scripts, for all kinds of the embedded API server
--- (cluster.analysis.fields).
---
--- The C side (cluster/host/dev.c) calls check when scripts have gone live.
local builtin = require "cluster.apiserver.schema.builtin"
local fields = require "cluster.analysis.fields"
local host = require "cluster.host"
local server = require "cluster.apiserver.running"

local M = {}

-- Path and name of a file → { text =, told = set of the problems that were told, is_done = all its kinds are known }.
local known = {}


local function schema_of(group, version, kind)
  local res = server.registry:by_kind(group, version, kind)
  return res and res.read_schema and res:read_schema() or builtin.of(group, version, kind)
end


local function add_news(news, file, seen)
  local problems, kinds = fields.check_text(file, schema_of)
  seen.is_done = true
  for _, is_known in pairs(kinds) do
    seen.is_done = seen.is_done and is_known
  end
  for _, problem in ipairs(problems) do
    if not seen.told[problem.text] then
      seen.told[problem.text] = true
      news[#news + 1] = problem
    end
  end
end


--- @param asked table { path =, files = { { name =, text = }, … } }
--- @return table as cluster.analysis.fields' check: the problems that were not told of this text before
function M.check(asked)
  local news = host.json.array {}
  for _, file in ipairs(asked.files) do
    local key = asked.path .. "\0" .. file.name
    if not known[key] or known[key].text ~= file.text then
      known[key] = { text = file.text, told = {}, is_done = false }
    end
    if not known[key].is_done then
      add_news(news, file, known[key])
    end
  end
  return news
end


return M
