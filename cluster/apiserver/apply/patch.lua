--- Merges a part of an object into it, as MutatingAdmissionPolicies do: nobody comes to own anything.
---
--- Rules and wordings: apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go.
local host = require "cluster.host"
local merge = require "cluster.apiserver.apply.merge"
local types = require "cluster.apiserver.apply.types"
local validate = require "cluster.apiserver.apply.validate"


-- The paths in a part whose values could only be replaced as a whole.
local function find_atomics(kind, value, path, found)
  if type(value) ~= "table" or not kind then
    return
  end
  local is_list = host.json.is_array(value)
  local side = is_list and kind.list or not is_list and kind.map
  if not side then
    return
  elseif side.atomic then
    found[#found + 1] = path
  end
  if is_list then
    for i, item in ipairs(value) do
      find_atomics(side.element, item, ("%s[%d]"):format(path, i - 1), found)
    end
    return
  end
  for name, item in pairs(value) do
    find_atomics(side.fields and side.fields[name], item, path .. "." .. name, found)
  end
end


--- @param object table of the kind; stays as it is  @param part table
--- @return table|nil object, or nil and why the part cannot be merged
return function(res, object, part)
  local kind = types.of(res.schema)
  local problem = validate.problem(kind, part)
  if problem then
    return nil, "failed to convert patch object to typed object: " .. problem
  end
  local atomics = {}
  find_atomics(kind, part, "", atomics)
  if #atomics > 0 then
    table.sort(atomics)
    return nil, "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
      .. table.concat(atomics, ", ")
  end
  local ok, merged = pcall(merge.merge, kind, object, part)
  if not ok then
    if type(merged) == "string" and merged:find "^associative list" then
      return nil, "failed to merge patch: " .. merged
    end
    error(merged, 0)
  end
  return host.json.copy(merged)
end
