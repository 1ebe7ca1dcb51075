--- The served resources. resources/ and crd/ make the resource descriptions.
---
--- A description of a version that differs from the stored one has `convert` = { load = function(object), save =
--- function(object) }, which change an object of the stored version into one of this version, and back. Where a webhook
--- converts, each description has `convert` = { webhook = as crd/conversion.lua makes it }, and `stored`, that of the
--- stored version.
---
--- A description may have `deprecated`, a text that warns its users.
---
--- `add` completes a description with the texts from which answers are built:
---   name       its name in messages: "deployments.apps"
---   head       the start of every object of this version, after its brace: '"kind":"Pod","apiVersion":"v1",'
---   item_head  the same for an object within a list: built-in kinds leave it out there
---   list_head  the start of every list of this version, up to its metadata
local status = require "cluster.apiserver.status"

local M = {}
M.__index = M


--- An empty registry. `generation` changes with each change of what is served.
function M.new()
  return setmetatable({
    generation = 0, paths = {}, kinds = {}, sorted = nil,
    versions = {},   -- id → list of its descriptions, in the order of their versions
    on_remove = nil,
  }, M)
end


local function slot(map, first, second, create)
  local inner = map[first]
  if not inner then
    if not create then
      return nil
    end
    inner = {}
    map[first] = inner
  end
  local leaf = inner[second]
  if not leaf and create then
    leaf = {}
    inner[second] = leaf
  end
  return leaf
end


--- The description of `plural` in that group ("" for core) and version, or nil.
function M:find(group, version, plural)
  local leaf = slot(self.paths, group, version)
  return leaf and leaf[plural]
end


--- The description of `kind` in that group and version, or nil.
function M:by_kind(group, version, kind)
  local leaf = slot(self.kinds, group, version)
  return leaf and leaf[kind]
end


--- The description of a kind as objects name it, of("apps/v1", "Deployment"), or nil.
function M:of(api_version, kind)
  local group, version = api_version:match "^(.-)/?([^/]+)$"
  return self:by_kind(group, version, kind)
end


-- A name comes from a field of some object and may be any text there: it is escaped so that it stays one part of the
-- path. An invalid name matches no object.
local function part(name)
  return name and name:gsub("[/%%?]", function(char)
    return ("%%25%02X"):format(char:byte())
  end) or nil
end


--- The path of a resource, or of one of its objects. `namespace`: nil or "" for all of them, or for none.
function M.path(res, namespace, name, subresource)
  local parts = { res.group == "" and "/api" or "/apis/" .. res.group, res.version }
  if namespace and namespace ~= "" then
    parts[#parts + 1] = "namespaces/" .. part(namespace)
  end
  parts[#parts + 1] = res.plural
  parts[#parts + 1] = part(name)
  parts[#parts + 1] = subresource
  return table.concat(parts, "/")
end


--- Returns true if something is served in that version of the group, or, without a version, in the group at all.
function M:has_group(group, version)
  local versions = self.paths[group]
  if not versions or not version then
    return versions ~= nil and next(versions) ~= nil
  end
  return versions[version] ~= nil and next(versions[version]) ~= nil
end


local function before(a, b)
  if a.group ~= b.group then
    return a.group < b.group
  end
  if a.version ~= b.version then
    return a.version < b.version
  end
  return a.plural < b.plural
end


--- All descriptions, ordered by group, version and plural. The list is shared: do not change it.
function M:all()
  if not self.sorted then
    local list = {}
    for _, versions in pairs(self.paths) do
      for _, plurals in pairs(versions) do
        for _, res in pairs(plurals) do
          list[#list + 1] = res
        end
      end
    end
    table.sort(list, before)
    self.sorted = list
  end
  return self.sorted
end


--- The description of the resource with that id in the version it is stored in, or nil.
function M:by_id(id)
  local versions = self.versions[id]
  for _, res in ipairs(versions or {}) do
    if res.version == res.storage_version and (not res.convert or res.convert.webhook) then
      return res
    end
  end
  return versions and versions[1]
end


local function changed(self)
  self.generation = self.generation + 1
  self.sorted = nil
end


-- Puts `res` among the descriptions of its id, in the place of the one of its version.
local function add_version(self, res)
  local list = {}
  for _, other in ipairs(self.versions[res.id] or {}) do
    if other.group ~= res.group or other.version ~= res.version then
      list[#list + 1] = other
    end
  end
  list[#list + 1] = res
  table.sort(list, before)
  self.versions[res.id] = list
end


--- Serves `res`, instead of one with the same group, version and plural if there is one.
function M:add(res)
  res.name = status.resource_name(res)
  res.head = ('"kind":"%s","apiVersion":"%s",'):format(res.kind, res.api_version)
  res.item_head = res.builtin and "" or res.head
  res.list_head = ('{"kind":"%s","apiVersion":"%s",'):format(res.list_kind, res.api_version)
  slot(self.paths, res.group, res.version, true)[res.plural] = res
  slot(self.kinds, res.group, res.version, true)[res.kind] = res
  add_version(self, res)
  changed(self)
end


--- Serves no version of the resource `id` ("deployments.apps") any more. Unknown ids are no error. `on_remove`, if it
--- is set, is called with the id.
function M:remove(id)
  for _, res in ipairs(self.versions[id] or {}) do
    self.paths[res.group][res.version][res.plural] = nil
    self.kinds[res.group][res.version][res.kind] = nil
  end
  self.versions[id] = nil
  changed(self)
  if self.on_remove then
    self.on_remove(id)
  end
end


return M
