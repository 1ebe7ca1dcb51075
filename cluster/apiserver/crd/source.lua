--- Reads the schemas of a CRD from its stored text when somebody asks for them: they take most of the room of a CRD,
--- and the schemas of many kinds are never used.
local host = require "cluster.host"

local M = {}

local Source = {}
Source.__index = Source

local WEAK = { __mode = "v" }


-- Name of a version → its schema. Kept as long as somebody uses it: several versions are asked for one after another.
local function schemas(self)
  local known = self.read.schemas
  if not known then
    known = {}
    for _, version in ipairs(host.json.decode(self.text).spec.versions) do
      known[version.name] = version.schema.openAPIV3Schema
    end
    self.read.schemas = known
  end
  return known
end


--- The schema of a version of the CRD, not to be changed.
function Source:schema(version)
  return schemas(self)[version]
end


--- The CRD is stored anew, with the same spec: the text before is not needed any more.
function Source:set_text(text)
  self.text = text
end


--- @param text string a stored CRD as JSON
function M.new(text)
  return setmetatable({ text = text, read = setmetatable({}, WEAK) }, Source)
end


return M
