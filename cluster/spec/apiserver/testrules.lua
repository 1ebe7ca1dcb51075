-- A server for specs with one custom kind, whose spec.x has a rule.
local host = require "cluster.host"
local testserver = require "testserver"

local M = setmetatable({}, { __index = testserver })
M.__index = M

local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local THINGS = "/apis/e.com/v1/namespaces/default/things"
local RULES = "x-kubernetes-validations"


--- The CRD of that kind.
--- @param schema table of a whole object
function M.crd(schema, subresources)
  return {
    metadata = { name = "things.e.com" },
    spec = {
      group = "e.com", scope = "Namespaced", names = { plural = "things", kind = "Thing" },
      versions = host.json.array { {
        name = "v1", served = true, storage = true, subresources = subresources, schema = { openAPIV3Schema = schema },
      } },
    },
  }
end


--- The schema of a whole object with one of spec.x.
function M.schema(of_x)
  return { type = "object", properties = { spec = { type = "object", properties = { x = of_x } } } }
end


--- @param of_x table the schema of spec.x  @param rule table|nil  @param root boolean|nil whether it is the root's
function M.new(of_x, rule, root)
  local self = setmetatable(testserver.new(), M)
  local copy = host.json.copy(of_x)
  local schema = M.schema(copy)
  local judged = root and schema or copy
  judged[RULES] = rule and host.json.array { rule }
  self:must("POST", CRDS, M.crd(schema))
  self.settle()
  return self
end


local function thing(x, name)
  return { apiVersion = "e.com/v1", kind = "Thing", metadata = { name = name or "t" }, spec = { x = x } }
end


local function message_of(code, answer)
  return code < 300 and "" or answer.message
end


--- Tries to create an object with that spec.x, as a dry run. Returns the server's message, "" if it accepts.
function M:create(x, name)
  return message_of(self:call("POST", THINGS .. "?dryRun=All", thing(x, name)))
end


--- Updates an object from one spec.x to another. Returns the server's message, "" if it accepts.
function M:update(x, old)
  self:call("DELETE", THINGS .. "/t")
  local object = self:must("POST", THINGS, thing(old))
  object.spec.x = x
  return message_of(self:call("PUT", THINGS .. "/t", object))
end


return M
