--- The recorded answers of a real server, from cluster/spec/apiserver/recorded/.
local host = require "cluster.host"

local M = {}

local FOLDER = "cluster/spec/apiserver/recorded/"


local function read(name)
  local file = assert(io.open(FOLDER .. name))
  local text = file:read "a"
  file:close()
  return text
end


--- A JSON file as a table.
function M.json(name)
  return assert(host.json.decode(read(name)))
end


--- The first document of a YAML file.
function M.yaml(name)
  return assert(host.yaml.decode(read(name)))[1]
end


return M
