--- The lifecycle of CRDs: their names are accepted, their kinds are served, and their objects are deleted with them.
---
--- Rules: apiextensions-apiserver/pkg/controller/{status,establish,apiapproval,finalizer}. As there, each step is a
--- separate write to the CRD's status; here all steps follow at once after the write of the CRD.
local later = require "cluster.later"
local approval = later.module "cluster.apiserver.crd.approval"
local conditions = require "cluster.apiserver.crd.conditions"
local conversion = later.module "cluster.apiserver.crd.conversion"
local host = require "cluster.host"
local names = require "cluster.apiserver.crd.names"
local refresh = require "cluster.apiserver.crd.refresh"
local resource = later.module "cluster.apiserver.crd.resource"
local sources = require "cluster.apiserver.crd.source"
local store = require "cluster.apiserver.store"
local summary = require "cluster.apiserver.crd.summary"

local M = {}

local Controller = {}
Controller.__index = Controller

local ID = "customresourcedefinitions.apiextensions.k8s.io"
local PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
local FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
local API_SERVER = { user_agent = "kube-apiserver" }
local AS_IT_IS = { user_agent = "kube-apiserver", is_decoded = true }
local NONE = {}


local function kind(self)
  return self.server.registry:find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
end


local function object_of(self, entry)
  return store.object(kind(self), entry)
end


local function read(self, name)
  local entry = self.server.store:get(ID, "", name)
  return entry and object_of(self, entry)
end


-- The CRDs of a group without their schemas, by name.
local function of_group(self, group)
  return self.groups[group] or NONE
end


local function write_status(self, crd)
  local code, answer = self.server:call("PUT", PATH .. crd.metadata.name .. "/status", crd, AS_IT_IS)
  if code >= 400 and code ~= 404 and code ~= 409 then
    host.log("error", "the status of a CRD could not be written", { name = crd.metadata.name, error = answer.message })
  end
end


local function has_finalizer(crd)
  for _, finalizer in ipairs(crd.metadata.finalizers or {}) do
    if finalizer == FINALIZER then
      return true
    end
  end
  return false
end


local function drop_finalizer(crd)
  local finalizers = host.json.array {}
  for _, finalizer in ipairs(crd.metadata.finalizers) do
    if finalizer ~= FINALIZER then
      finalizers[#finalizers + 1] = finalizer
    end
  end
  crd.metadata.finalizers = finalizers
end


-- The version as which what the CRD defines is deleted: the stored one, or another one; nil when none is served.
local function served_version(crd)
  local found
  for _, version in ipairs(crd.spec.versions) do
    if version.served and (version.storage or not found) then
      found = version.name
    end
  end
  return found
end


-- Where a collection of what the CRD defines is, in one namespace ("" for none); nil when no version is served.
local function path_of(crd, namespace)
  local version = served_version(crd)
  return version and ("/apis/%s/%s/%s%s"):format(crd.spec.group, version,
    namespace ~= "" and "namespaces/" .. namespace .. "/" or "", crd.status.acceptedNames.plural)
end


-- Deletes what the CRD defines. @return boolean whether nothing is left
local function delete_instances(self, crd)
  local id = crd.metadata.name
  local collection, namespaces, seen = self.server.store:collection(id), {}, {}
  collection:each(nil, nil, function(entry)
    if not seen[entry.namespace] then
      seen[entry.namespace] = true
      namespaces[#namespaces + 1] = entry.namespace
    end
  end)
  for _, namespace in ipairs(namespaces) do
    local path = path_of(crd, namespace)
    if path then
      self.server:call("DELETE", path, nil, API_SERVER)
    end
  end
  return collection:size() == 0
end


-- One step towards the end of a CRD that is being deleted.
local function finish(self, crd)
  local terminating = conditions.find(crd, "Terminating")
  if not terminating or terminating.reason == "InstanceDeletionPending" then
    conditions.set(crd, "Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
    return write_status(self, crd)
  end
  if not conditions.is_true(crd, "Established") then
    conditions.set(crd, "Terminating", "False", "NeverEstablished", "resource was never established")
  elseif delete_instances(self, crd) then
    conditions.set(crd, "Terminating", "False", "InstanceDeletionCompleted", "removed all instances")
  else
    self.ending[crd.metadata.name] = true
    return
  end
  self.ending[crd.metadata.name] = nil
  drop_finalizer(crd)
  write_status(self, crd)
end


-- One step of what is to be done for a CRD; the write that it ends with asks for the next one.
local function sync(self, name)
  local crd = self.latest and self.latest.metadata.name == name and self.latest or read(self, name)
  self.latest = nil
  if not crd then
    return
  elseif crd.metadata.deletionTimestamp then
    return has_finalizer(crd) and finish(self, crd)
  end
  local are_names_changed = not host.json.equal(crd.spec.names, crd.status.acceptedNames)
    and names.accept(crd, of_group(self, crd.spec.group))
  local is_approval_changed = approval.settle(crd)
  if are_names_changed or is_approval_changed then
    write_status(self, crd)
  elseif conditions.is_true(crd, "NamesAccepted") and not conditions.is_true(crd, "Established") then
    conditions.set(crd, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    write_status(self, crd)
  end
end


local function enqueue(self, name)
  if not self.queued[name] then
    self.queued[name] = true
    host.defer(function()
      self.queued[name] = nil
      sync(self, name)
    end)
  end
end


-- The values that decide what is served, as a text: every change of the spec is another generation.
local function signature(crd)
  return host.json.encode { crd.metadata.uid, crd.metadata.generation, crd.status.acceptedNames,
    crd.metadata.deletionTimestamp ~= nil, conditions.is_true(crd, "Established") }
end


-- Serves what the CRD defines as it says now. `full` and `text` are the CRD with its schemas.
local function serve(self, crd, full, text)
  local id, now = crd.metadata.name, signature(crd)
  local before = self.served_crds[id]
  if before and before.signature == now then
    return before.source:set_text(text)
  end
  local source, webhook = sources.new(text), nil
  self.served_crds[id] = { signature = now, source = source, storage = resource.stored(crd, source).version }
  self.server.registry:remove(id)
  if not conditions.is_true(crd, "Established") then
    return
  end
  if crd.spec.conversion.strategy == "Webhook" then
    webhook = conversion.new(self.server, crd)
  end
  for _, res in ipairs(resource.of(full, crd, source, webhook)) do
    self.server.registry:add(res)
  end
  if before then
    refresh(self.server.store, crd, source, webhook and before.storage)
  end
end


-- Takes note of a CRD that is stored. @return table what is known of it from now on
local function note(self, full, text)
  local crd = summary.of(full)
  local group, name = crd.spec.group, crd.metadata.name
  self.groups[group] = self.groups[group] or {}
  self.groups[group][name] = crd
  serve(self, crd, full, text)
  return crd
end


local function forget(self, group, name)
  self.served_crds[name], self.ending[name], self.latest = nil, nil, nil
  self.groups[group][name] = nil
  if next(self.groups[group]) == nil then
    self.groups[group] = nil
  end
  self.server.registry:remove(name)
end


-- The names of a CRD that is gone, or has others now, may be what another one waits for.
local function wake_others(self, group, name)
  for other, crd in pairs(of_group(self, group)) do
    if other ~= name and not conditions.is_true(crd, "NamesAccepted") then
      enqueue(self, other)
    end
  end
end


local function changed(self, event)
  local full = object_of(self, event.entry)
  local group, name = full.spec.group, full.metadata.name
  if event.type == "DELETED" then
    forget(self, group, name)
  else
    note(self, full, event.entry.text)
    self.latest = full
    enqueue(self, name)
  end
  wake_others(self, group, name)
end


--- Begins to look after the CRDs of a server.
function M.start(server)
  local self = setmetatable({
    server = server,
    served_crds = {}, -- name → what it was served as, and where its schemas are
    groups = {},   -- group → name → CRD without schemas
    latest = nil,  -- the whole CRD that changed last, until the step that follows
    ending = {}, queued = {},
  }, Controller)
  server.store:subscribe(function(event)
    if event.id == ID then
      changed(self, event)
    elseif event.type == "DELETED" and self.ending[event.id] then
      enqueue(self, event.id)
    end
  end)
  server.crds = self
end


--- Serves what the stored CRDs define, and goes on with what they wait for. For when objects have been put back into
--- the store that were kept elsewhere: first the CRDs, then this, then what they define.
function Controller:restore()
  self.server.store:collection(ID):each(nil, nil, function(entry)
    note(self, object_of(self, entry), entry.text)
    enqueue(self, entry.name)
  end)
end


return M
