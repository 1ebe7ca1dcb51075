--- Validates objects against the schemas of their kinds.
---
--- Schemas are tables, as builtin.lua describes. Each is compiled to functions when it is first used, and the functions
--- are kept as long as the schema is: a schema must not be changed.
local custom_metadata = require "cluster.apiserver.schema.custom_metadata"
local decode_builtin = require "cluster.apiserver.schema.decode"

return {
  --- Returns the error that keeps a decoder from reading `object`, or nil. Changes an object of a custom kind: see
  --- custom_metadata.lua.
  --- @return string|nil message
  decode = function(schema, object)
    return (schema["x-go-type"] and decode_builtin or custom_metadata)(schema, object)
  end,

  --- Takes out what the schema does not know. @return table sorted paths of what is gone
  prune = require "cluster.apiserver.schema.prune",

  --- Fills in defaults, takes out nulls that may not be.
  default = require "cluster.apiserver.schema.default",

  --- Validates an object. @return table list of field errors
  validate = require "cluster.apiserver.schema.validate",
}
