--- Checks that the defaults of a CRD's schema are valid by the same schema.
---
--- Rules: apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go.
local check_embedded = require "cluster.apiserver.schema.embedded"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local prune = require "cluster.apiserver.schema.prune"
local structural = require "cluster.apiserver.schema.structural"
local validate = require "cluster.apiserver.schema.validate"

local M = {}

-- Where defaults may be: not under alternatives, nor under additionalProperties.
local FOLLOWED = { items = true, properties = true }

-- What every resource has; its unknown fields are nobody's.
local META = { metadata = true, apiVersion = true, kind = true }


-- The schema as that of a resource.
local function as_resource(schema)
  return setmetatable({ ["x-kubernetes-embedded-resource"] = true }, { __index = schema })
end


local function check_default(schema, path, in_meta, errors)
  local default, at = schema.default, path .. ".default"
  if type(default) == "table" and not in_meta then
    local copy = host.json.copy(default)
    if #prune(schema, copy) > 0 then
      errors[#errors + 1] = field.invalid(at, default, "must not have unknown fields")
    end
    local embedded = check_embedded(schema, default)
    for _, err in ipairs(embedded) do
      err.path = at .. (err.path:find "^[.%[]" and "" or ".") .. err.path
    end
    if #embedded > 0 then
      return table.move(embedded, 1, #embedded, #errors + 1, errors)
    end
  end
  local found = validate(schema, default, { root = at })
  table.move(found, 1, #found, #errors + 1, errors)
end


local function check(schema, path, is_resource, in_meta, errors)
  is_resource = is_resource or schema["x-kubernetes-embedded-resource"]
  in_meta = in_meta and not is_resource
  if schema.default ~= nil and schema.default ~= host.json.null then
    check_default(is_resource and as_resource(schema) or schema, path, in_meta, errors)
  end
  structural.each_part(schema, path, function(inner, inner_path, keyword, name)
    if FOLLOWED[keyword] then
      check(inner, inner_path, false, in_meta or is_resource and META[name], errors)
    end
  end)
end


--- What is wrong with the defaults of a schema that stands at `path`. @return table list of field errors
function M.check(schema, path)
  local errors = {}
  check(schema, path, true, false, errors)
  return errors
end


return M
