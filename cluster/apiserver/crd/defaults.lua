--- Checks that the defaults of a CRD's schema are valid by the same schema, its rules included.
---
--- Rules: apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go.
local check_embedded = require "cluster.apiserver.schema.embedded"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local prune = require "cluster.apiserver.schema.prune"
local structural = require "cluster.apiserver.schema.structural"
local validate = require "cluster.apiserver.schema.validate"
local validator = require "cluster.apiserver.crd.rules.validator"

local M = {}

-- Where defaults may be: not under alternatives, nor under additionalProperties.
local FOLLOWED = { items = true, properties = true }

-- Fields that every resource has; defaults within them may have unknown fields.
local META = { metadata = true, apiVersion = true, kind = true }


-- The schema as that of a resource.
local function as_resource(schema)
  return setmetatable({ ["x-kubernetes-embedded-resource"] = true }, { __index = schema })
end


-- The rules for a default: as one that is kept, and as one that is new. `found` has the budget that all defaults share.
local function check_rules(schema, path, is_root, found)
  local judge = validator.compile(schema, is_root)
  if not judge then
    return
  end
  local options = { old = schema.default, root = path, budget = found.budget }
  local errors, _, remaining_budget = judge(schema.default, options)
  if #errors == 0 then
    options.old = nil
    local left_new
    errors, _, left_new = judge(schema.default, options)
    remaining_budget = math.min(remaining_budget, left_new)
  end
  found:add(errors)
  found.budget = remaining_budget
end


local function check_default(schema, path, in_meta, found)
  local default, at = schema.default, path .. ".default"
  if type(default) == "table" and not in_meta then
    local copy = host.json.copy(default)
    if #prune(schema, copy) > 0 then
      found:add { field.invalid(at, default, "must not have unknown fields") }
    end
    local embedded = check_embedded(schema, default)
    for _, err in ipairs(embedded) do
      err.path = at .. (err.path:find "^[.%[]" and "" or ".") .. err.path
    end
    if #embedded > 0 then
      return found:add(embedded)
    end
  end
  local errors = validate(schema, default, { root = at })
  if #errors > 0 then
    return found:add(errors)
  end
  check_rules(schema, at, schema["x-kubernetes-embedded-resource"], found)
end


local function check(schema, path, is_resource, in_meta, found)
  is_resource = is_resource or schema["x-kubernetes-embedded-resource"]
  in_meta = in_meta and not is_resource
  if schema.default ~= nil and schema.default ~= host.json.null then
    check_default(is_resource and as_resource(schema) or schema, path, in_meta, found)
  end
  structural.each_part(schema, path, function(inner, inner_path, keyword, name)
    if FOLLOWED[keyword] and found.budget >= 0 then
      check(inner, inner_path, false, in_meta or is_resource and META[name], found)
    end
  end)
end


local Found = {}
Found.__index = Found


function Found:add(errors)
  table.move(errors, 1, #errors, #self.errors + 1, self.errors)
end


--- Checks the defaults of a schema that stands at `path`. @return table list of field errors
function M.check(schema, path)
  local found = setmetatable({ errors = {}, budget = validator.BUDGET }, Found)
  check(schema, path, true, false, found)
  return found.errors
end


return M
