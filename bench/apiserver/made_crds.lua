--- CRDs as projects have them: most are small, some have schemas of hundreds of KiB, for they hold a pod's template
--- again. Descriptions make half of the text. The same number makes the same CRD.
local M = {}

local KIB = 1024
local SMALLEST, LARGEST = 5 * KIB, 400 * KIB
local DEPTH_MAX = 8

local WORDS = {}
for word in ([[the of a value that is used by controller when it selects resources in namespace and defines how
long field must be set to match labels name optional reference object key secret template container volume mount
policy interval timeout status condition last transition reconcile spec port address service default cannot updated
immutable for each replica node affinity toleration resource limits requests more info
https://example.com/docs/concepts#fields]])
  :gmatch "%S+" do
  WORDS[#WORDS + 1] = word
end

local Maker = {}
Maker.__index = Maker


function Maker:upto(most)
  self.state = (self.state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return (self.state >> 33) % most + 1
end


function Maker:sentence(words)
  local list = {}
  for i = 1, words do
    list[i] = WORDS[self:upto(#WORDS)]
  end
  return table.concat(list, " ") .. "."
end


function Maker:name()
  local first, second = WORDS[self:upto(#WORDS)]:gsub("%W", ""), WORDS[self:upto(#WORDS)]:gsub("%W", "")
  return ("%s%s%d"):format(first, second:gsub("^%l", string.upper), self:upto(99))
end


local SCALARS = {
  function() return { type = "string" } end,
  function() return { type = "string", enum = { "Always", "Never", "IfNotPresent" }, default = "Always" } end,
  function() return { type = "string", pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", maxLength = 253 } end,
  function() return { type = "integer", format = "int32", minimum = 0, default = 1 } end,
  function() return { type = "boolean" } end,
  function()
    return {
      anyOf = { { type = "integer" }, { type = "string" } }, ["x-kubernetes-int-or-string"] = true,
      pattern = "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))$",
    }
  end,
  function(self) return { type = "array", items = { type = "string" }, maxItems = self:upto(64) } end,
  function() return { type = "object", additionalProperties = { type = "string" } } end,
}


local function noted(self, schema, words)
  schema.description = self:sentence(words)
  self.left = self.left - #schema.description - 60
  return schema
end


local make_object


local function make_property(self, depth)
  local kind = self:upto(10)
  if depth >= DEPTH_MAX or kind > 4 then
    return noted(self, SCALARS[self:upto(#SCALARS)](self), 4 + self:upto(24))
  elseif kind == 1 then
    return noted(self, {
      type = "array", items = make_object(self, depth + 1), ["x-kubernetes-list-type"] = "atomic",
    }, 12)
  end
  return make_object(self, depth + 1)
end


function make_object(self, depth)
  local object = noted(self, { type = "object", properties = {} }, 8 + self:upto(20))
  for i = 1, 2 + self:upto(6) do
    if self.left <= 0 then
      break
    end
    local name = self:name()
    object.properties[name] = make_property(self, depth)
    object.required = i == 1 and { name } or object.required
  end
  return object
end


local function make_spec(self, size)
  self.left = size
  local spec = { type = "object", description = self:sentence(20), properties = {} }
  while self.left > 0 do
    spec.properties[self:name()] = make_property(self, 1)
  end
  return spec
end


local STATUS = {
  type = "object", properties = {
    observedGeneration = { type = "integer", format = "int64" },
    conditions = { type = "array", items = { type = "object", required = { "type", "status" }, properties = {
      type = { type = "string" }, status = { type = "string", enum = { "True", "False", "Unknown" } },
      reason = { type = "string" }, message = { type = "string" },
      lastTransitionTime = { type = "string", format = "date-time" },
    } }, ["x-kubernetes-list-type"] = "map", ["x-kubernetes-list-map-keys"] = { "type" } },
  },
}


local function make_version(self, name, size, is_stored)
  return {
    name = name, served = true, storage = is_stored, subresources = { status = {} },
    additionalPrinterColumns = { { name = "Age", type = "date", jsonPath = ".metadata.creationTimestamp" } },
    schema = { openAPIV3Schema = {
      type = "object", required = { "spec" },
      properties = {
        apiVersion = { type = "string" }, kind = { type = "string" }, metadata = { type = "object" },
        spec = make_spec(self, size), status = STATUS,
      },
    } },
  }
end


--- How large the schemas of the CRD of that number are, of `count`: as many are small as in what projects have.
local function size_of(i, count)
  local place = (i * 7919 % count + 0.5) / count
  return math.floor(SMALLEST * (LARGEST / SMALLEST) ^ (place * place))
end


--- The CRD of that number, of `count`. @return table
function M.crd(i, count)
  local self = setmetatable({ state = i }, Maker)
  local size, group = size_of(i, count), ("group%d.example.com"):format(i // 6)
  local versions = { make_version(self, "v1", i % 4 == 0 and size // 2 or size, true) }
  if i % 4 == 0 then
    versions[2] = make_version(self, "v1beta1", size // 2, false)
  end
  local plural, kind = ("things%d"):format(i), ("Thing%d"):format(i)
  return {
    apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = plural .. "." .. group },
    spec = {
      group = group, scope = "Namespaced", versions = versions,
      names = { plural = plural, singular = kind:lower(), kind = kind, listKind = kind .. "List" },
    },
  }
end


return M
