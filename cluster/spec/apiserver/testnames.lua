-- The analysis of the names in scripts, for specs.
local analysis = require "analysis"
local host = require "cluster.host"
local schemas = require "cluster.analysis.schemas"

local M = {}

--- The problems of a source, as `moonloop check` finds them.
--- @param options table { files = { { name =, text = }, … }, manifests = as of schemas.answer }
--- @return table list of { file =, line =, text = "database.lua:12: …" }
function M.check(options)
  return analysis.run(options.files, function(kinds)
    local answer = schemas.answer { kinds = kinds, manifests = options.manifests }
    return answer.documents, answer.known
  end, host.regex.compile)
end


return M
