--- The rules for metadata.ownerReferences.
---
--- Rules: apimachinery/pkg/api/validation/objectmeta.go.
local field = require "cluster.apiserver.field"
local host = require "cluster.host"

local M = {}

local NONE = {}
local OWNER_KEYS = { "apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion" }


local function check_owner(owner, path, errors)
  local function must(value, key, message)
    if (value or "") == "" then
      errors[#errors + 1] = field.invalid(path .. "." .. key, owner[key] or "", message)
    end
  end
  must((owner.apiVersion or ""):match("([^/]*)$"), "apiVersion", "version must not be empty")
  must(owner.kind, "kind", "must not be empty")
  must(owner.name, "name", "must not be empty")
  must(owner.uid, "uid", "must not be empty")
  if owner.apiVersion == "v1" and owner.kind == "Event" then
    errors[#errors + 1] = field.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
  end
end


-- The references as a message has them: keys in the order of their type.
local function owners_text(owners)
  local items = {}
  for i, owner in ipairs(owners) do
    local pairs_text = {}
    for _, key in ipairs(OWNER_KEYS) do
      if owner[key] ~= nil then
        pairs_text[#pairs_text + 1] = ('"%s":%s'):format(key, host.json.encode(owner[key]))
      end
    end
    items[i] = "{" .. table.concat(pairs_text, ",") .. "}"
  end
  return "[" .. table.concat(items, ",") .. "]"
end


--- Checks metadata.ownerReferences (a list, or nil): `errors` gets their errors.
function M.check(owners, errors)
  local path, controller = "metadata.ownerReferences", nil
  for _, owner in ipairs(owners or NONE) do
    check_owner(owner, path, errors)
    if owner.controller == true then
      local this = owner.kind .. "/" .. owner.name
      if controller then
        errors[#errors + 1] = field.invalid(path, nil, ("%s: Only one reference can have Controller set to true. "
          .. 'Found "true" in references for %s and %s'):format(owners_text(owners), controller, this))
      end
      controller = controller or this
    end
  end
end


return M
