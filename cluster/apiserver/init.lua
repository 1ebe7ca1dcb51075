--- The embedded API server: connects its parts, and passes each request through them.
---
---   local server = require("cluster.apiserver").new { authorization = "always" }
---   server:handle(request, reply)                         -- one request from a connection
---   local code, object = server:call("GET", "/api/v1/namespaces/default")   -- one from inside the process
---
--- The public fields and methods of a server:
---   store, registry        the stored objects and the served resources; see store.lua, registry.lua
---   quota                  holds writes to the ResourceQuotas; see quota/
---   settings               as given to new
---   subresources           id of a resource → name → handlers; see Server:subresource
---   paths                  path → handlers, for requests that are not about a resource
---   kubelets               name of a node → function(request, reply, path) that answers for its kubelet
---   has_real_pods          whether something can listen in pods; see proxy/
---   has_accounts           whether pods get a service account; see settings.accounts
---   events(fn), audit(fn)  adds a listener for changes, and for requests
---
--- Besides the fields of a resource description (registry.lua), these hooks of its `strategy` are called:
---   defaults(object)               fills in missing fields; a built-in object already has the form of its Go type
---   prepare_create(object, ctx)    before a new object is checked; prepare_update(new, old, ctx), prepare_status(new,
---                                  old, ctx) before a changed one is. They return nil and a status to refuse it
---   complete(object)               fills in what a new object gets after it was checked
---   validate(object)               field errors of a new object, nil: none; validate_update(new, old) and
---                                  validate_status(new, old) those of a changed one
---   columns                        its columns, where the facts have none; "": none of its own; see tables/columns.lua
---   admit(object, old, ctx)        a status when the namespace does not allow a valid object; old: nil for a new one
---   cells(object, now)             the cells of its row in a table; see tables/
---   convert                        see registry.lua; of a built-in kind that is stored as another one
---   name(name, prefix)             messages about an invalid name; see names.name_check. Default: a DNS subdomain
---   fields(object), field_names    for field selectors: the values of one object, and the set of names; fields_of is
---                                  whose they are, where the refusal of others says so
---   create_on_update               whether a PUT may create
---   unconditional_update           whether a PUT needs no resourceVersion; default: for built-in kinds
---   spec_changed                   false: the kind has no generation
---   review(object, request)        the kind is not stored: create answers what this returns, or nil and a status
---   handlers                       verb → function(request, reply): of a kind that is not stored and can be read;
---                                  what they return see Server:subresource
---   warnings(object, old)          texts for a valid object; old: the object before an update, or nil
---   check_delete(object, request)  a status when the object must not be deleted
---   returns_deleted                a delete answers with the object that it removed
---   mark_deleted(object, ctx)      the first delete only makes this change to the object; may_go says when it goes
---   may_go(object)                 whether the kind itself no longer waits for anything
---   graceful(object, options)      seconds until the object is removed; nil: none
---   subresources                   name → handlers; see Server:subresource
local addresses = require "cluster.apiserver.lifecycle.addresses"
local audit = require "cluster.apiserver.audit"
local auth = require "cluster.apiserver.auth"
local authentication_trust = require "cluster.apiserver.lifecycle.authentication_trust"
local bootstrap_objects = require "cluster.apiserver.lifecycle.bootstrap_objects"
local crd = require "cluster.apiserver.crd"
local expiry = require "cluster.apiserver.lifecycle.expiry"
local filters = require "cluster.apiserver.filters"
local garbage_collector = require "cluster.apiserver.lifecycle.garbage_collector"
local host = require "cluster.host"
local hub = require "cluster.apiserver.watch"
local journal = require "cluster.apiserver.journal"
local kinds = require "cluster.apiserver.resources"
local loopback_client = require "cluster.apiserver.loopback_client"
local namespaces = require "cluster.apiserver.lifecycle.namespace"
local non_resource_paths = require "cluster.apiserver.non_resource_paths"
local protection = require "cluster.apiserver.resources.protection"
local quota = require "cluster.apiserver.quota"
local registry = require "cluster.apiserver.registry"
local request = require "cluster.apiserver.request"
local resources = require "cluster.apiserver.verbs"
local respond = require "cluster.apiserver.respond"
local service_accounts = require "cluster.apiserver.lifecycle.service_accounts"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"

local M = {}

local Server = {}
Server.__index = Server

-- The user of a call from inside the process that names no user.
local ADMINISTRATOR = { name = "system:admin", groups = { "system:masters", "system:authenticated" } }


local function serve(self, parsed, reply)
  if not filters.pass(self, parsed, reply) then
    return
  end
  if parsed.is_resource then
    return resources.serve(parsed, reply)
  end
  return non_resource_paths.serve(parsed, reply)
end


--- Takes one request; its answer goes to `reply`. Never raises. It may wait for a webhook where the caller's thread can
--- be suspended.
---
--- @param raw table { method =, path = (encoded), query =, headers = {lowercase name = value}, body =, user = who asks,
---   if that is already known, client = the client's address, certificate = who shows one: { problem = } or { name =,
---   groups =, sha256 = }, object = the object that the body would have, skips_admission =: see loopback_client.lua }
--- @param reply table send(code, type, body, headers, plain) for an answer (plain: the body before it was compressed,
---   nil when it was not); start(code, type, headers), write(chunk) -> bytes
---   waiting, finish(), abort() for a stream, and `on_close`, set here, called when the client has gone
function Server:handle(raw, reply)
  local parsed = request.parse(raw)
  parsed.server = self
  parsed.user, parsed.object, parsed.certificate = raw.user, raw.object, raw.certificate
  parsed.skips_admission = raw.skips_admission
  if self.listeners[1] then
    reply = audit.reply(parsed, reply, self.listeners)
  end
  parsed.reply = reply
  local ok, why = xpcall(serve, debug.traceback, self, parsed, reply)
  if not ok and status.is(why) then
    respond.failure(parsed, reply, why)
  elseif not ok and not parsed.is_gone then
    host.log("error", "a request failed by a mistake of the server", { path = raw.path, error = tostring(why) })
    pcall(respond.failure, parsed, reply, status.internal("see the server's log"))
  end
end


--- A request from within the process; see loopback_client.lua.
--- @return integer code
--- @return any answer
function Server:call(method, path, body, options)
  return loopback_client.call(self, method, path, body, options)
end


--- Calls fn(event) after each change of any resource; see Store:subscribe.
function Server:events(fn)
  self.store:subscribe(fn)
end


--- Calls fn(record) after each request has ended; see audit.lua for the record.
function Server:audit(fn)
  self.listeners[#self.listeners + 1] = fn
end


--- Serves a part of a resource's objects.
---
--- @param id string "pods"  @param name string "log"
--- @param handlers table verb ("get", "create", "update", "patch", "delete", "connect" for any other) →
---   function(request, reply) that returns a code and the answer as JSON text, or nil and a status, or true when it
---   answers on `reply` itself. request: see request.lua; beside that res, server, user. Beside the verbs: rest,
---   whether a path may follow the name, and any_form, whether the form of the answer is not the server's to choose
function Server:subresource(id, name, handlers)
  local known = self.subresources[id]
  if not known then
    known = {}
    self.subresources[id] = known
  end
  known[name] = handlers
end


--- The authority's certificate is known from now on.
--- @param ca string PEM
function Server:publish_authority(ca)
  self.settings.ca = ca
  if self.has_accounts then
    service_accounts.ensure_all(self)
  end
  authentication_trust.ensure(self)
end


--- Writes out what is kept in settings.data. Nothing can be written to the server after it.
function Server:close()
  if self.journal then
    self.journal:close()
  end
end


local function add_resources(self)
  for _, res in ipairs(self.settings.resources or kinds.all()) do
    self.registry:add(res)
  end
end


-- Opens the folder of settings.data. The server starts with the objects in it.
local function open_journal(self)
  local folder = self.settings.data
  if not folder then
    return
  end
  local opened, why = journal.open(folder)
  if not opened then
    error("cannot keep state: " .. why, 0)
  end
  self.journal, self.settings.restored_state = opened, opened.restored_state
end


-- Custom resources can be read when the definitions of their kinds have been.
local function restore(self)
  local restored = self.settings.restored_state
  local function find(id)
    return self.registry:by_id(id)
  end
  local unknown_records = restored and self.store:restore(restored.records, find) or {}
  crd.start(self)
  self.crds:restore()
  unknown_records = self.store:restore(unknown_records, find)
  if #unknown_records > 0 then
    host.log("warn", "objects of kinds that are not served were left out",
      { count = #unknown_records, first = unknown_records[1].id })
  end
  if restored then
    self.store:start_at(restored.revision)
  end
end


--- A server.
---
--- @param settings table|nil
---   authorization  "always" (default) or "rbac"
---   tokens         token → user, for requests with a bearer token; nil: everybody is the administrator
---   token_key      what tokens of service accounts are signed with; a new key when not given
---   history        changes of a resource that are remembered for watches, 10,000 when not given
---   controllers    false: nothing that kube-controller-manager does. Deleted owners leave their dependents, deleted
---                  namespaces and volumes keep their finalizers, and accounts is false, too
---   accounts       false: no service account and no kube-root-ca.crt in each namespace; pods need no account
---   ca             PEM text of the authority, for kube-root-ca.crt and extension-apiserver-authentication
---   resources      a list of resource descriptions instead of the built-in ones
---   restored_state { records, revision }: what Store:dump returned of another server, to start from
---   data           a folder to keep all in, and to start from; raises when it cannot be used. Server:close ends it
function M.new(settings)
  settings = settings or {}
  local self = setmetatable({
    settings = settings, administrator = ADMINISTRATOR, quota = quota, listeners = {}, subresources = {}, paths = {},
    kubelets = {}, registry = registry.new(), store = store.new { history = settings.history },
    has_accounts = settings.accounts ~= false and settings.controllers ~= false,
  }, Server)
  open_journal(self)
  self.hub = hub.new(self.store)
  self.registry.on_remove = function(id) self.hub:end_all(id) end
  add_resources(self)
  self.auth = auth.new(self)
  self.namespaces = namespaces.new(self)
  restore(self)
  self.namespaces:start()
  self.auth:start()
  bootstrap_objects.ensure(self)
  addresses.start(self)
  expiry.start(self)
  if settings.controllers ~= false then
    garbage_collector.new(self):start()
    protection.start(self)
  end
  if self.has_accounts then
    service_accounts.start(self)
  end
  authentication_trust.start(self)
  self.store:compact(self.store.revision)
  if self.journal then
    self.journal:attach(self.store)
    self.journal:compact()
  end
  return self
end


return M
