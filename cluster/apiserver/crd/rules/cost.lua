--- Limits the estimated cost of a CRD's rules: of each rule, and of all of them together.
---
--- Costs are floats: a cost that is too large to be exact is far beyond the limits. Rules and wordings:
--- apiextensions-apiserver/pkg/apis/apiextensions/validation/{validation,cel_validation}.go.
local field = require "cluster.apiserver.field"

local M = {}

local EXPRESSION_MAX = 1e7
local ALL_MAX = 1e8
local NAMED_MAX = 4


-- How far a cost is beyond its limit.
local function too_much(what, cost, limit)
  local factor = cost / limit
  local text
  if factor > 100 then
    text = "more than 100x"
  else
    text = (factor < 1.5 and "%fx" or "%.1fx"):format(factor)
  end
  return ("%s exceeds budget by factor of %s (try simplifying the rule, or adding maxItems, maxProperties, and "
    .. "maxLength where arrays, maps, and strings are declared)"):format(what, text)
end


--- Returns the error of an expression that costs too much, nil if its cost is in bounds.
--- @param what string "estimated rule cost"
function M.check_one(what, cost, path)
  return cost > EXPRESSION_MAX and field.forbidden(path, too_much(what, cost, EXPRESSION_MAX)) or nil
end


--- The costs of a CRD's version, to be added up.
function M.total()
  return { sum = 0.0, named = {} }
end


--- Adds the cost of an expression; remembers the most expensive ones.
function M.add(total, path, cost)
  total.sum = total.sum + cost
  if cost < ALL_MAX / 100 then
    return
  end
  local named = total.named
  local at = #named + 1
  while at > 1 and named[at - 1].cost < cost do
    at = at - 1
  end
  table.insert(named, at, { path = path, cost = cost })
  named[NAMED_MAX + 1] = nil
end


--- Adds to `errors` what is wrong with the sum, of rules in the schema at `path`.
function M.check_all(total, path, errors)
  if total.sum <= ALL_MAX then
    return
  end
  for _, one in ipairs(total.named) do
    errors[#errors + 1] = field.forbidden(one.path,
      "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema")
  end
  errors[#errors + 1] = field.forbidden(path,
    too_much("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", total.sum, ALL_MAX))
end


--- How many times as many values the schema within a schema can have: nil when there is no limit.
function M.factor(schema)
  local limit
  if schema.type == "object" and schema.additionalProperties ~= nil then
    limit = schema.maxProperties
  elseif schema.type == "array" then
    limit = schema.maxItems
  else
    return 1.0
  end
  return limit and math.max(limit, 0) + 0.0
end


--- The cost of a compiled rule (compile.lua) for all values of an object.
--- @param bound number|nil how many values the schema allows; nil: as many as a request can hold
function M.of_rule(compiled, bound)
  local once = compiled.program and compiled.program.cost.max or 0
  local times = bound or compiled.cardinality
  return (once == 0 or times == 0) and 0.0 or once * (times + 0.0)
end


return M
