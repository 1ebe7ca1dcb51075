---@meta moonloop
-- What an editor (lua-language-server) knows of `require "moonloop"`. Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop' instead"

---@class moonloop
local moonloop = {}

---@class moonloop.Kind
---@field apiVersion string
---@field kind string
---@field labels? string
---@field fields? string
---@field metadata_only boolean

--- What of a kind is watched: of owns and watches, and without metadata_only of reconciles.
---@class moonloop.Selection
---@field labels? string a label selector, "app=web,tier in (a, b)": only the objects that meet it
---@field fields? string a field selector, "spec.nodeName=n1": likewise
---@field metadata_only? boolean of each object no more than its metadata

---@class moonloop.Watch

---@class moonloop.Controller

---@class moonloop.Null

---@class moonloop.OwnerReference
---@field apiVersion string
---@field kind string
---@field name string
---@field uid string
---@field controller? boolean
---@field blockOwnerDeletion? boolean

---@class moonloop.Metadata
---@field name string
---@field namespace? string
---@field uid string
---@field resourceVersion string
---@field generation? integer
---@field creationTimestamp string
---@field deletionTimestamp? string
---@field labels table<string, string> an empty table that cannot be filled when there are none
---@field annotations table<string, string> an empty table that cannot be filled when there are none
---@field ownerReferences? moonloop.OwnerReference[]
---@field finalizers? string[]

--- An object as a reconcile gets it: a plain table, its own copy. `spec` and `status` read as
--- empty tables that cannot be filled when the object has none.
---@class moonloop.Object
---@field apiVersion string
---@field kind string
---@field metadata moonloop.Metadata
---@field spec table
---@field status table
---@field [string] any

---@class moonloop.ManifestMetadata
---@field name string
---@field namespace? string that of the reconciled object when left out
---@field labels? table<string, string>
---@field annotations? table<string, string>
---@field ownerReferences? moonloop.OwnerReference[]

--- An object as a manifest writes it.
---@class moonloop.Manifest
---@field apiVersion string
---@field kind string
---@field metadata moonloop.ManifestMetadata
---@field [string] any

---@alias moonloop.ErrorKind
---| "NotFound"
---| "AlreadyExists"
---| "Invalid"
---| "Forbidden"
---| "Unsupported"
---| "LimitExceeded"

---@class moonloop.Error
---@field kind moonloop.ErrorKind
---@field code integer HTTP status, 0 when there was no answer
---@field message string

---@class moonloop.ListOptions
---@field namespace? string that of the reconciled object when left out; "*" for all
---@field labels? table<string, string> all of them must be there
---@field owned? boolean only what the reconciled object controls

---@class moonloop.Outcome

---@class moonloop.Result
---@field status? table merged over the object's status; written only when it differs
---@field requeue_after? number|string seconds, or a duration like "5m30s"
---@field requeue_at? number seconds since 1970

---@class moonloop.Context
local ctx = {}

--- Reads one object; from the cache when the kind is watched, else by request.
---@param kind moonloop.Kind
---@param name string
---@param namespace? string that of the reconciled object when left out
---@return moonloop.Object? object
---@return moonloop.Error? err
function ctx.get(kind, name, namespace) end

--- Reads all objects of a kind, sorted by namespace and name.
---@param kind moonloop.Kind
---@param options? moonloop.ListOptions
---@return moonloop.Object[]? objects
---@return moonloop.Error? err
function ctx.list(kind, options) end

--- The object by that name, created when there is none. When the kind is in `owns` it is owned
--- by the reconciled object, and one that is somebody else's is an error (AlreadyExists).
---@param object moonloop.Manifest
---@return moonloop.Object? object as the server has it
---@return moonloop.Error? err
function ctx.ensure(object) end

--- Creates an object; AlreadyExists when there is one by that name.
---@param object moonloop.Manifest
---@return moonloop.Object? object as the server has it
---@return moonloop.Error? err
function ctx.create(object) end

--- Server-side apply: the fields of `object` are made true, others are left alone.
---@param object moonloop.Manifest
---@return moonloop.Object? object as the server has it
---@return moonloop.Error? err
function ctx.apply(object) end

--- A merge patch of an object that was read; moonloop.null removes a field. Sends nothing when
--- nothing would change.
---@param object moonloop.Object
---@param changes table
---@return moonloop.Object? object as the server has it
---@return moonloop.Error? err
function ctx.patch(object, changes) end

--- Deletes this object and no later one by the same name. One that is gone is fine.
---@param object moonloop.Object
---@return true? done
---@return moonloop.Error? err
function ctx.delete(object) end

--- Records a Kubernetes Event on the reconciled object.
---@param reason string CamelCase, at most 128 bytes
---@param note string
---@param type? "Normal"|"Warning"
function ctx.event(reason, note, type) end

--- Writes a log line with the object's name and namespace.
---@param message string
---@param fields? table
function ctx.log(message, fields) end

--- Wall clock, seconds since 1970-01-01T00:00:00Z.
---@return number seconds
function ctx.now() end

--- To be returned: the object asks for something that cannot be, and waits for an edit.
---@param field string "spec.schedule"
---@param why string
---@return moonloop.Outcome
function ctx.invalid(field, why) end

--- To be returned: no use trying again before the object changes.
---@param why string
---@return moonloop.Outcome
function ctx.terminal(why) end

---@class moonloop.ObjectName
---@field name string
---@field namespace? string

--- What of an object has to change. `generation`: its spec, or whatever stands outside of metadata and status.
---@alias moonloop.Part "generation"|"labels"|"annotations"|"status"

--- Which changes count: those of these parts, or those for which the function says true. What comes, goes, or begins to
--- go counts always.
---@alias moonloop.When moonloop.Part[]|fun(old: moonloop.Object, new: moonloop.Object): boolean

---@class moonloop.Declaration
---@field name string a DNS label; the name in logs, metrics and as field manager
---@field reconciles moonloop.Kind
---@field when? moonloop.When which changes of a reconciled object call reconcile; all of others when left out
---@field owns? moonloop.Kind[]
---@field watches? moonloop.Watch[]
---@field uses? moonloop.Kind[]
---@field max_concurrent? integer reconciles in flight, 1 to 10000, by default 1000
---@field wakes? "all" every change calls reconcile, whether it had read what changed or not
---@field reconcile fun(object: moonloop.Object, ctx: moonloop.Context): (moonloop.Result|moonloop.Outcome)?

--- A kind of object, by the apiVersion and kind of its manifests.
---@param apiVersion string "apps/v1"
---@param kind string "Deployment"
---@param selection? moonloop.Selection all of it when left out
---@return moonloop.Kind
function moonloop.kind(apiVersion, kind, selection) end

--- Declares a controller; a script returns it.
---@param declaration moonloop.Declaration
---@return moonloop.Controller
function moonloop.controller(declaration) end

--- A kind to watch, and whom a change of one concerns. The function reads caches only.
---@param kind moonloop.Kind
---@param map fun(object: moonloop.Object, ctx: moonloop.Context): (string|moonloop.ObjectName)[]?
---@param when? moonloop.When which changes concern anybody; all when left out
---@return moonloop.Watch
function moonloop.watch(kind, map, when) end

--- Marks a table as a list, so that it stays `[]` when it is empty.
---@generic T
---@param list? T[]
---@return T[]
function moonloop.array(list) end

---@type moonloop.Null
moonloop.null = nil

--- Is the value moonloop.null?
---@param value any
---@return boolean
function moonloop.is_null(value) end

return moonloop
