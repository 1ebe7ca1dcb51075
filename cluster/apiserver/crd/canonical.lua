--- The schema of a CRD in its stored form. Some fields take a schema or something else (items may be a list,
--- additionalProperties a boolean). Their type does not say that a schema is there, so such schemas are converted here.
---
--- Rules: apiextensions-apiserver/pkg/apis/apiextensions/v1/marshal.go.
local host = require "cluster.host"
local builtin = require "cluster.apiserver.schema.builtin"
local prune = require "cluster.apiserver.schema.prune"
local structural = require "cluster.apiserver.schema.structural"
local typed = require "cluster.apiserver.schema.typed"

local NAME = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


local function in_form(schema)
  prune(builtin.definition(NAME), schema)
  return typed.of(NAME)(schema)
end


local function canonical(schema)
  local items, additional = schema.items, schema.additionalProperties
  if items ~= nil and type(items) ~= "table" then
    schema.items = nil
  elseif items and not host.json.is_array(items) then
    schema.items = in_form(items)
  end
  if type(additional) == "table" then
    schema.additionalProperties = in_form(additional)
  end
  structural.each_part(schema, nil, canonical)
end


--- Puts what stands within `schema` in its form; the schema itself has it already.
return canonical
