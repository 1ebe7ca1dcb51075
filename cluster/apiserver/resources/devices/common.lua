--- Checks that the kinds of resource.k8s.io share.
---
--- Rules: kubernetes/pkg/apis/resource/validation/validation.go, pkg/apis/core/validation/validation.go.
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"
local storage = require "cluster.apiserver.resources.storage.common"

local M = {}

local ID_MAX = 32
local NOT_IDENTIFIER = "a valid C identifier must start with alphabetic character or '_', followed by a string of "
  .. "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
  .. "'[A-Za-z_][A-Za-z0-9_]*')"
local NOT_FULL = "a fully qualified name must be a domain and a name separated by a slash"
local NONE = {}

--- The effects of taints.
M.EFFECTS = { "NoExecute", "NoSchedule", "None" }


--- The items of a list, unless there are more than `max` (nil: any number).
--- @param visit function(item, path of it)
function M.each(list, max, path, errors, visit)
  list = check.list(list)
  if max and #list > max then
    errors[#errors + 1] = field.too_many(path, #list, max)
    return false
  end
  for i, item in ipairs(list) do
    visit(item, ("%s[%d]"):format(path, i - 1))
  end
  return true
end


--- The same, and no two items with one key. @param key function(item) -> text
function M.each_once(list, max, path, errors, visit, key)
  local seen = {}
  if not M.each(list, max, path, errors, visit) then
    return
  end
  for i, item in ipairs(check.list(list)) do
    local value = key and key(item) or item
    if seen[value] then
      errors[#errors + 1] = field.duplicate(("%s[%d]"):format(path, i - 1), value)
    end
    seen[value] = true
  end
end


--- A text of a rule of names.lua.
function M.name(value, rule, path, errors)
  check.each(errors, path, value, rule(value))
end


--- The name of a pool of devices: DNS subdomains between slashes.
function M.pool(name, path, errors)
  if name == "" then
    errors[#errors + 1] = field.required(path, "")
    return
  end
  if #name > names.SUBDOMAIN_MAX then
    errors[#errors + 1] = field.too_long(path, "", names.SUBDOMAIN_MAX)
  end
  for part in (name .. "/"):gmatch "(.-)/" do
    M.name(part, names.subdomain, path, errors)
  end
end


-- Checks the part of an attribute's name behind the domain.
local function check_identifier(id, path, errors)
  if #id > ID_MAX then
    errors[#errors + 1] = field.too_long(path, "", ID_MAX)
  end
  if not id:find "^[A-Za-z_][A-Za-z0-9_]*$" then
    errors[#errors + 1] = field.invalid(path, id, NOT_IDENTIFIER)
  end
end


--- The name of an attribute or of a capacity: "model", "gpu.example.com/model". As in Kubernetes, a name with more
--- slashes is not checked.
function M.qualified(name, path, errors)
  local domain, id = name:match "^([^/]*)/([^/]*)$"
  if not name:find("/", 1, true) then
    check_identifier(name, path, errors)
  elseif domain then
    if domain == "" then
      errors[#errors + 1] = field.invalid(path, "", "the domain must not be empty")
    else
      storage.check_driver(domain, path, errors)
    end
    if id == "" then
      errors[#errors + 1] = field.invalid(path, "", "the name must not be empty")
    else
      check_identifier(id, path, errors)
    end
  end
end


--- The same with a domain.
function M.fully_qualified(name, path, errors)
  M.qualified(name, path, errors)
  if not name:find("/", 1, true) then
    errors[#errors + 1] = field.invalid(path, name, NOT_FULL)
  end
end


--- An object of somebody else's type; `max` bytes as JSON.
function M.raw(value, max, path, errors)
  if value == nil or value == host.json.null then
    errors[#errors + 1] = field.required(path, "")
  elseif #host.json.encode(value) > max then
    errors[#errors + 1] = field.too_long(path, "", max)
  elseif type(value) ~= "table" or host.json.is_array(value) then
    errors[#errors + 1] = field.invalid(path, "<value omitted>", "must be a valid JSON object")
  end
end


--- The key of a label.
function M.label_key(key, path, errors)
  check.each(errors, path, key, names.qualified(key))
end


--- The effect of a taint or of a toleration.
function M.effect(effect, path, errors)
  check.choice(effect, M.EFFECTS, path, errors)
end


-- Calls `wrong(place, value, why)` for each value that is twice in `list`, or in `others` as well.
local function find_repeated(list, others, wrong)
  local seen = {}
  for i, value in ipairs(list) do
    if seen[value] then
      wrong(i, value, "twice")
    end
    seen[value] = true
    if others[value] then
      wrong(i, value, "both")
    end
  end
end


--- Conditions that a device waits for before it is bound, and those that say that it cannot be.
function M.binding_conditions(owner, path, errors)
  local good, bad = owner.bindingConditions or NONE, owner.bindingFailureConditions or NONE
  local at_good, at_bad = path .. ".bindingConditions", path .. ".bindingFailureConditions"
  local function key(value, at)
    M.label_key(value, at, errors)
  end
  M.each(good, 4, at_good, errors, key)
  M.each(bad, 4, at_bad, errors, key)
  local function teller(at)
    return function(i, value, why)
      local item = ("%s[%d]"):format(at, i - 1)
      errors[#errors + 1] = why == "twice" and field.duplicate(item, value)
        or field.invalid(item, value, "bindingFailureConditions must not overlap with bindingConditions")
    end
  end
  find_repeated(good, NONE, teller(at_good))
  find_repeated(bad, check.set(good), teller(at_bad))
  if #good == 0 and #bad > 0 then
    errors[#errors + 1] = field.invalid(at_good, host.json.null,
      "bindingConditions are required to use bindingFailureConditions")
  elseif #bad == 0 and #good > 0 then
    errors[#errors + 1] = field.invalid(at_bad, host.json.null,
      "bindingFailureConditions are required to use bindingConditions")
  end
end


return M
