--- The merge rules of a schema for one of its fields.
--- Rules: apimachinery/pkg/util/strategicpatch/meta.go.
local failure = require "cluster.apiserver.patch.failure"

local M = {}

-- The merge rules of a field that merges plainly.
local PLAIN = { strategy = "", merge_key = nil }

-- The schema behind a lone allOf, which is how a $ref with a default beside it is written.
local function resolve(schema)
  local all = schema and schema.allOf
  if all and #all == 1 and not schema.type then
    return all[1]
  end
  return schema
end


local function strategy_of(property)
  local text = property["x-kubernetes-patch-strategy"]
  if not text then
    return ""
  end
  local rest = {}
  for part in text:gmatch("[^,]+") do
    if part ~= "retainKeys" then
      rest[#rest + 1] = part
    end
  end
  return rest[1] or ""
end


--- The root of a schema, to start from. `kind` names it in errors.
function M.root(schema, kind)
  return { schema = resolve(schema), name = kind }
end


--- The field `key` under `node`. Returns the node of the field, and { strategy = "merge" | "replace" | "",
--- merge_key = string | nil }. Raises a Status when there is no such field.
function M.field(node, key)
  local schema = node.schema
  local property = schema and schema.properties and schema.properties[key]
  if property then
    local meta = { strategy = strategy_of(property), merge_key = property["x-kubernetes-patch-merge-key"] }
    local name = key == "metadata" and "ObjectMeta" or key:gsub("^%l", string.upper)
    return { schema = resolve(property), name = name }, meta
  end
  if not schema or not schema.properties then
    return { name = key }, PLAIN
  end
  failure.unexpected(("unable to find api field in struct %s for the json field %q"):format(node.name, key))
end


--- The list `key` under `node`: as M.field, but the node is that of the items.
function M.list(node, key)
  local found, meta = M.field(node, key)
  local items = found.schema and found.schema.items
  return { schema = resolve(items), name = found.name }, meta
end


return M
