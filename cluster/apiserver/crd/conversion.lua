--- Conversion of a CRD's objects by its webhook.
---
--- An entry of such a kind keeps the version in which it was stored (`as`), and the forms that the webhook made of it
--- for other versions (`forms`). Code that shows an entry in another version asks for its form first, and waits; see
--- versioned_storage.lua. As in the real server the webhook decides about everything but metadata; of metadata it
--- decides about labels and annotations.
--- Rules and wordings: apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go, and
--- customresource_handler.go (schemaCoercingConverter: what a version does not know is taken out).
local default = require "cluster.apiserver.schema.default"
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local metadata = require "cluster.apiserver.metadata"
local prune = require "cluster.apiserver.schema.prune"
local status = require "cluster.apiserver.status"
local unstructured = require "cluster.apiserver.unstructured"
local webhook = require "cluster.apiserver.webhook"

local M = {}
M.__index = M

local null = host.json.null

local SECONDS = 30 -- that the webhook has for an answer
local BATCH_MAX = 100 -- objects in one review
local KNOWN = { v1 = true, v1beta1 = true }
local GROUP = "apiextensions.k8s.io"
local FREE = { "labels", "annotations" } -- the metadata that a webhook may change


--- @param server table  @param crd table as summary.lua makes it
function M.new(server, crd)
  local settings, version = crd.spec.conversion.webhook, nil
  for _, candidate in ipairs(settings.conversionReviewVersions) do
    version = version or KNOWN[candidate] and candidate or nil
  end
  return setmetatable({
    server = server, review_version = version, group = crd.spec.group,
    webhook = { config = settings.clientConfig, seconds = SECONDS },
  }, M)
end


local function not_null(value)
  return value ~= nil and value ~= null and value or nil
end


-- The objects of an answer. @return table|nil list; nil and why it cannot be taken
local function read(text, review)
  local answer, why = host.json.decode(text)
  if type(answer) ~= "table" then
    return nil, "couldn't get version/kind; json parse error: " .. (why or "it is no object")
  end
  local response, is_strict = not_null(answer.response), review.apiVersion == GROUP .. "/v1"
  if is_strict and (answer.apiVersion ~= review.apiVersion or answer.kind ~= review.kind) then
    return nil, ("expected webhook response of %s/v1, Kind=ConversionReview, got %s, Kind=%s"):format(GROUP,
      tostring(answer.apiVersion), tostring(answer.kind))
  elseif type(response) ~= "table" then
    return nil, "no response provided"
  elseif is_strict and response.uid ~= review.request.uid then
    return nil, ("expected response.uid=%s, got %s"):format(field.quote(review.request.uid),
      field.quote(tostring(not_null(response.uid) or "")))
  end
  local result = type(response.result) == "table" and response.result or {}
  if result.status ~= "Success" then
    local message = not_null(result.message) or ""
    return nil, message ~= "" and tostring(message)
      or ("response.result.status was '%s', not 'Success'"):format(tostring(not_null(result.status) or ""))
  end
  local objects = not_null(response.convertedObjects) or {}
  return type(objects) == "table" and objects or {}
end


-- Checks that the webhook did not change the name, namespace or uid. @return string|nil what it did change
local function check_identity(before, after)
  local old, new = before.metadata, type(after.metadata) == "table" and after.metadata or {}
  for _, name in ipairs { "name", "namespace", "uid" } do
    if (not_null(new[name]) or "") ~= (old[name] or "") then
      local shown = name == "uid" and "UID" or name
      return ("must have the same %s: %s != %s"):format(shown, old[name] or "", tostring(not_null(new[name]) or ""))
    end
  end
end


local function check_texts(map, name)
  if type(map) ~= "table" or host.json.is_array(map) and #map > 0 then
    return ("invalid metadata.%s of type %s in converted object"):format(name, unstructured.type_name(map))
  end
  for _, key in ipairs(gofmt.sorted_keys(map)) do
    if type(map[key]) ~= "string" then
      return ("metadata.%s[%s] must be a string, but is %s in converted object"):format(name, key,
        unstructured.type_name(map[key]))
    end
  end
end


-- The labels or annotations of a converted object. @return table|nil map, or nil and why they cannot be taken
local function check_map(meta, before, name)
  local map = not_null(meta[name])
  local why = map and check_texts(map, name)
  if why or map == nil or host.json.equal(map, before[name]) then
    return map, why
  end
  local errors, messages = {}, {}
  metadata.check_template({ [name] = map }, "metadata", errors)
  for i, err in ipairs(errors) do
    messages[i] = err.path .. ": " .. field.body(err)
  end
  return map, messages[1] and status.aggregate(messages)
end


-- Gives `after` the metadata of `before`, with labels and annotations of its own. @return string|nil why it cannot
local function restore_metadata(before, after)
  local new, meta = after.metadata, host.json.copy(before.metadata)
  if new == nil then
    return "missing metadata in converted object"
  elseif type(new) ~= "table" or host.json.is_array(new) and #new > 0 then
    return ("invalid metadata of type %s in converted object"):format(unstructured.type_name(new))
  end
  for _, name in ipairs(FREE) do
    local map, why = check_map(new, before.metadata, name)
    if why then
      return why
    end
    meta[name] = map
  end
  after.metadata = meta
end


-- One object of an answer. @return string|nil why it cannot be taken
local function check(before, after, api_version, place)
  if type(after) ~= "table" then
    return ("returned invalid converted object at index %d: it is no object"):format(place)
  elseif after.apiVersion ~= api_version then
    return ("returned invalid object at index %d: invalid groupVersion (expected %s, received %s)"):format(place,
      api_version, tostring(not_null(after.apiVersion) or ""))
  elseif after.kind ~= before.kind then
    return ("returned invalid object at index %d: invalid kind (expected %s, received %s)"):format(place, before.kind,
      tostring(not_null(after.kind) or ""))
  end
  local why = check_identity(before, after)
  if why then
    return "returned invalid object: " .. why
  end
  why = restore_metadata(before, after)
  return why and "returned invalid metadata: " .. why
end


-- Asks about objects of one version. @return table|nil list of objects; nil and why there is none
local function ask(self, objects, api_version)
  local first = objects[1]
  local subject = ("conversion webhook for %s, Kind=%s "):format(first.apiVersion, first.kind)
  local review = {
    kind = "ConversionReview", apiVersion = GROUP .. "/" .. self.review_version,
    request = { uid = host.uuid(), desiredAPIVersion = api_version, objects = host.json.array(objects) },
  }
  local text, why = webhook.post(self.webhook, self.server, review)
  local converted
  if text then
    converted, why = read(text, review)
  end
  if not converted then
    return nil, subject .. "failed: " .. why
  elseif #converted ~= #objects then
    return nil, subject .. ("returned %d objects, expected %d"):format(#converted, #objects)
  end
  for i, object in ipairs(converted) do
    why = check(objects[i], object, api_version, i - 1)
    if why then
      return nil, subject .. why
    end
  end
  return converted
end


--- Objects of one version as another one has them. Waits for the webhook.
--- @param objects list of one object at least; they stay as they are  @param res table what they are to become
--- @return table|nil list; nil and why they cannot be converted
function M:convert(objects, res)
  local list = {}
  for from = 1, #objects, BATCH_MAX do
    local batch = table.move(objects, from, math.min(from + BATCH_MAX - 1, #objects), 1, {})
    local converted, why = ask(self, batch, res.api_version)
    if not converted then
      return nil, why
    end
    for _, object in ipairs(converted) do
      prune(res.schema, object)
      list[#list + 1] = object
    end
  end
  return list
end


-- The object of an entry as it was stored.
local function stored_object(self, entry, res)
  local object = host.json.decode(entry.text)
  object.apiVersion, object.kind = self.group .. "/" .. entry.as, res.kind
  return object
end


local function lacks_form(entry, res)
  return entry.as ~= res.version and not (entry.forms and entry.forms[res.version])
end


--- Returns true if all of these entries can be shown as `res` has them and the webhook need not be asked.
function M.is_ready(entries, res)
  for _, entry in ipairs(entries) do
    if lacks_form(entry, res) then
      return false
    end
  end
  return true
end


-- The entries that lack a form, by the version in which they are stored.
local function groups_of(entries, res)
  local groups, order = {}, {}
  for _, entry in ipairs(entries) do
    if lacks_form(entry, res) then
      if not groups[entry.as] then
        groups[entry.as] = {}
        order[#order + 1] = groups[entry.as]
      end
      table.insert(groups[entry.as], entry)
    end
  end
  return order
end


--- Has the entries converted that `res` cannot show yet. Waits for the webhook.
--- @return string|nil why they cannot be shown
function M:make_ready(entries, res)
  local fields = res.strategy.fields
  for _, group in ipairs(groups_of(entries, res)) do
    local objects = {}
    for i, entry in ipairs(group) do
      objects[i] = stored_object(self, entry, res)
    end
    local converted, why = self:convert(objects, res)
    if not converted then
      return why
    end
    for i, entry in ipairs(group) do
      local object = converted[i]
      object.apiVersion, object.kind = nil, nil
      entry.forms = entry.forms or {}
      entry.forms[res.version] = host.json.encode(object)
      if fields then
        entry.form_fields = entry.form_fields or {}
        entry.form_fields[res.version] = fields(object)
      end
    end
  end
end


--- An object of `res` as it is to be stored. Waits for the webhook, unless the version is the stored one.
--- @return table|nil { as = version, object = a table of its own }; nil and why it cannot be stored
function M:storable(object, res)
  local stored = res.stored
  if res.version == stored.version then
    return { as = stored.version, object = host.json.copy(object) }
  end
  local converted, why = self:convert({ object }, stored)
  if not converted then
    return nil, why
  end
  default(stored.schema, converted[1])
  return { as = stored.version, object = converted[1] }
end


return M
