--- The differences between the two versions of OpenAPI in a schema.
local host = require "cluster.host"

local M = {}

local Version = {}
Version.__index = Version


--- A schema that refers to definition `name`, with the keywords of `extra` beside the reference.
--- @param extra table|nil belongs to the answer then
function Version:refer(name, extra)
  local reference = self.prefix .. name
  if not extra or next(extra) == nil then
    return { ["$ref"] = reference }
  elseif self.has_all_keywords then
    extra.allOf = host.json.array { { ["$ref"] = reference } }
  else
    extra["$ref"] = reference
  end
  return extra
end


--- The two versions of OpenAPI. Caches keep definitions by `name`. `has_all_keywords`: the version expresses defaults,
--- nullable, oneOf, anyOf and the like.
M.v2 = setmetatable({ name = "v2", prefix = "#/definitions/", has_all_keywords = false }, Version)
M.v3 = setmetatable({ name = "v3", prefix = "#/components/schemas/", has_all_keywords = true }, Version)

return M
