---@meta moonloop
-- Stubs of `require "moonloop"` for editors (lua-language-server). Nothing loads this file.
-- Made by tools/script-api.lua out of lua/script_api.lua.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop' instead"

---@class moonloop.Kind
---@field apiVersion string
---@field kind string
---@field labels? string of its selection
---@field fields? string of its selection
---@field metadata_only boolean of its selection

--- Which part of a kind is watched: of `owns` and `watches`, and without `metadata_only` of `reconciles`.
---@class moonloop.Selection
--- A label selector as for `kubectl -l`: only objects that match it. Its syntax is checked when the script is loaded.
---@field labels? string
--- A field selector, `"spec.nodeName=n1"`: only objects that match it. The server decides which fields of a kind can
--- be selected. If it does not know a field, the log says so (`field label not supported`), and the script does not
--- go live.
---@field fields? string
--- Only the `metadata` of each object: enough for a script that looks at names, labels and owners. Not for the kind
--- in `reconciles`.
---@field metadata_only? boolean

--- Made by `moonloop.watch`.
---@class moonloop.Watch

--- Made by `moonloop.index`.
---@class moonloop.Index

--- Made by `moonloop.controller`.
---@class moonloop.Controller

--- JSON's `null`.
---@class moonloop.Null

---@class moonloop.WriteOptions
---@field adopt? boolean `true`: takes over an object that nobody controls, whoever made it.

--- An entry of `owns`: a kind, and how the script owns its objects.
---@class moonloop.Owned
---@field kind moonloop.Kind
--- `true`: `ctx.ensure`, `ctx.apply` and `children` take over objects of this kind that nobody controls, whoever made
--- them.
---@field adopt? boolean

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

--- An object as a reconcile gets it: a plain table, its own copy. If the object has no `spec` or `status`, it reads
--- as an empty table that cannot be filled.
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
---| "Timeout"
---| "Network"
---| "TLS"

---@class moonloop.Error
--- `"NotFound"`, `"AlreadyExists"`, `"Invalid"`, `"Forbidden"`, `"Unsupported"`, `"LimitExceeded"`, `"Timeout"`,
--- `"Network"`, `"TLS"`. `Unsupported`: the server lacks the verb. `LimitExceeded`: the request or its answer is
--- larger than the host allows. `Timeout`, `Network` (no connection) and `TLS` come from `ctx.http` alone.
---@field kind moonloop.ErrorKind
---@field code integer The HTTP status; 0 when there was no answer.
---@field message string The cause. `tostring(err)` also names the request and the kind.

---@class moonloop.ListOptions
---@field namespace? string that of the reconciled object when left out; "*" for all
---@field labels? table<string, string> an object must have all of them
---@field owned? boolean only objects that the reconciled object controls
---@field fields? table<string, string> values that an object must have: `{ ["spec.nodeName"] = "n1" }`
---@field index? moonloop.Index of moonloop.index, with `key`: only objects that have this key in it
---@field key? string

--- An object that was read or that the script makes; or a reference to one, as in `ownerReferences` or
--- `involvedObject`, whose other fields are left aside.
---@class moonloop.EventObject
---@field apiVersion string
---@field kind string
---@field metadata? table of an object; else the fields below
---@field name? string
---@field namespace? string that of the reconciled object when left out, if the script declares the kind
---@field uid? string
---@field [string] any

---@class moonloop.EventOptions
---@field type? "Normal"|"Warning" "Normal" when left out
---@field about? moonloop.EventObject the object in place of the reconciled one
---@field related? moonloop.EventObject a second object that the Event has to do with

--- Made by `ctx.invalid` and `ctx.terminal`.
---@class moonloop.Outcome

--- Of the object's `status.conditions`; its type is the key.
---@class moonloop.Condition
---@field status boolean|"Unknown"|"True"|"False"
---@field reason? string one word in CamelCase; the type when left out
---@field message? string for people; empty when left out

--- Status and conditions to write with `ctx.invalid` or `ctx.terminal`.
---@class moonloop.Beside
---@field status? table
---@field conditions? table<string, moonloop.Condition|moonloop.Null>

---@class moonloop.Result
--- Merged over the object's status, and written if that changes it: return the current status each time; the host
--- sends only changes. `moonloop.null` removes a field.
---@field status? table
--- Conditions of the object by their type, as in `{ Ready = { status = true } }`.
---@field conditions? table<string, moonloop.Condition|moonloop.Null>
--- All objects of the kinds in `owns` that this object is to have: each is applied, then the others are deleted
--- (Children).
---@field children? moonloop.Manifest[]
--- Calls again after that time (also a number of seconds), if nothing changes before.
---@field requeue_after? number|string
--- Calls again at that instant, in seconds since 1970. `status` and `conditions` can be in the same table.
---@field requeue_at? number

---@class moonloop.ObjectName
---@field name string
---@field namespace? string

--- Which part of an object has to change. `generation`: its spec, or any field outside of metadata and status.
---@alias moonloop.Part
---| "generation"
---| "labels"
---| "annotations"
---| "status"

--- Which changes count: those of these parts, or those for which the function returns true. The creation and the
--- deletion of an object, and the begin of its deletion, always count.
---@alias moonloop.When moonloop.Part[]|fun(old: moonloop.Object, new: moonloop.Object): boolean

--- Both directions between another version of a kind and the version that is reconciled.
---@class moonloop.Conversion
---@field to fun(object: moonloop.Object): moonloop.Object? from the other version to the reconciled one
---@field from fun(object: moonloop.Object): moonloop.Object? from the reconciled version to the other one

--- A field that `validate` refuses.
---@class moonloop.Cause
---@field field string its path: "spec.size"
---@field message string

--- Why an object is refused: a text, fields, or the result of `ctx.invalid`.
---@alias moonloop.Refusal string|moonloop.Cause[]|moonloop.Outcome

--- As in a manifest.
---@class moonloop.LabelSelector
---@field matchLabels? table<string, string>
---@field matchExpressions? table[]

---@class moonloop.Webhooks
--- If the webhook cannot be called or fails, the API server refuses the write (`"Fail"`, the default), or goes on
--- without the webhook (`"Ignore"`).
---@field failure_policy? "Fail"|"Ignore"
---@field timeout_seconds? integer How long the API server waits for an answer, 1 to 30, by default 10.
--- `"Exact"`: only writes in the version of `reconciles`. Default: writes in all versions, which the API server
--- converts first.
---@field match_policy? "Equivalent"|"Exact"
--- Only objects in namespaces with these labels, as in a manifest: `{ matchLabels = { env = "prod" } }`.
---@field namespace_selector? moonloop.LabelSelector
---@field object_selector? moonloop.LabelSelector Only objects with these labels.

---@class moonloop.Rollout
--- `"guarded"`: a version that would do harm is held or refused. `"canary"`: likewise, and it works for one object
--- first, then for more and more. `"plan"`: a version that would change anything is held, too. `"immediate"`: each
--- version takes over.
---@field mode? "guarded"|"canary"|"plan"|"immediate"
--- A version that would delete more objects than this, and more than `max_deletes_percent`, is held; 0 to 1000000.
---@field max_deletes? integer
---@field max_deletes_percent? integer In a hundred of the objects that the tried ones own; 0 to 100.
--- A version that fails for more than so many in a hundred objects (of 5 or more), for which the running one does
--- not, is refused; 0 to 100.
---@field max_failures_percent? integer
--- After all of its objects were reconciled, a new version has to do no harm for so long: in each step of a canary,
--- and until it is not taken back by itself any more; 0 to 86400.
---@field settle_seconds? integer

---@class moonloop.Declaration
--- A DNS label. The name in logs, events and metrics; writes have the field manager `moonloop-NAME`. These names are
--- reserved for the host's own log lines: `apiserver`, `client`, `connect`, `credentials`, `dev`, `election`, `host`,
--- `informer`, `log`, `scripts`, `shard`, `watchdog`.
---@field name string
---@field formerly? string[] Names that the controller had before, at most 8: another name.
--- The kind whose objects are reconciled: each object once at the start, and after each change. The status that the
--- script itself returned is no such change.
---@field reconciles moonloop.Kind
--- `function(object, ctx)`. Not called for an object that is being deleted.
---@field reconcile fun(object: moonloop.Object, ctx: moonloop.Context): (moonloop.Result|moonloop.Outcome)?
--- `function(object, ctx)`, called in place of `reconcile` for an object that is being deleted: cleaning up.
---@field finalize? fun(object: moonloop.Object, ctx: moonloop.Context): (moonloop.Result|moonloop.Outcome)?
--- Which changes of the object call `reconcile`, if not all: a list of `"generation"` (its spec, or any field outside
--- of metadata and status), `"labels"`, `"annotations"`, `"status"`; or `function(old, new)` that returns true or
--- false. The creation of an object, and the begin of its deletion, always count.
---@field when? moonloop.When
--- A list of kinds. The reconciled object becomes the controller owner of each object of these kinds that the script
--- creates: deleting the owner deletes them, and a change of one of them calls `reconcile` for the owner. `{ kind =
--- Kind, adopt = true }` in place of a kind: objects that nobody controls are taken over. Not the kind in
--- `reconciles`: what to do then.
---@field owns? (moonloop.Kind|moonloop.Owned)[]
---@field watches? moonloop.Watch[] A list of `moonloop.watch(…)`: changes that concern more than the owner.
--- A list of kinds that are not watched: each read is a request. Good for Secrets and for objects that are rarely
--- needed.
---@field uses? moonloop.Kind[]
--- Reconciles in flight, 1 to 10000, by default 1000. One object is never reconciled twice at a time.
---@field max_concurrent? integer
--- `function(object)` fills in missing fields of an object that somebody creates or updates, before it is stored: it
--- changes the object, and returns it or nothing. See webhooks.
---@field default? fun(object: moonloop.Object): moonloop.Object?
--- `function(new, old, ctx)` checks an object that is created (`old` is nil) or updated: returns nothing, or why it
--- is refused.
---@field validate? fun(new: moonloop.Object, old: moonloop.Object?, ctx: moonloop.Context): moonloop.Refusal?, any
--- The other versions of the kind: `{ v1alpha1 = { to = function(object) … end, from = function(object) … end }
--- }`. `to` makes the version in `reconciles` of an object in v1alpha1, `from` the reverse.
---@field convert? table<string, moonloop.Conversion>
---@field webhooks? moonloop.Webhooks How the API server calls `default` and `validate`.
---@field metrics? table<string, moonloop.Metric> Metrics that the script sets, by their names.
--- Origins that the script may ask with `ctx.http`, as in `{ "https://billing.example.com", "https://*.example.org"
--- }`; at most 16.
---@field http? string[]
--- `"all"`: every change of an owned or watched object calls `reconcile`, whether the last run read the changed
--- fields or not.
---@field wakes? "all"
--- How much harm the next version may do: a mode, or limits. It is asked of the version that runs, not of the one
--- that takes over.
---@field rollout? moonloop.Rollout|"guarded"|"canary"|"plan"|"immediate"

---@alias moonloop.MetricType
---| "counter"
---| "gauge"
---| "histogram"

---@class moonloop.Metric
---@field type moonloop.MetricType
---@field help string one line
---@field labels? string[] names of labels, at most 8
---@field buckets? number[] upper bounds of a histogram, ascending
---@field sum? boolean a gauge that adds up over the objects: each sets its part, which goes with it

---@class moonloop.HttpRequest
---@field method? "GET"|"HEAD"|"POST"|"PUT"|"PATCH"|"DELETE" "GET" when left out
---@field url string below a declared origin
---@field headers? table<string, string> at most 32
---@field body? string at most 1 MiB
---@field timeout? number|string seconds, or as in "5s": at most 10 s, which is also the default

---@class moonloop.HttpResponse
---@field status integer
---@field headers table<string, string> by names in lower case; several of one name are joined with a comma
---@field body string

---@class moonloop.Context
local ctx = {}

--- The object. Watched kinds (`reconciles`, `owns`, `watches`) are read from the cache, whose only error is
--- `NotFound`; kinds of `uses` are read by a request.
---@param kind moonloop.Kind
---@param name string
---@param namespace? string that of the reconciled object when left out
---@return moonloop.Object? object
---@return moonloop.Error? err NotFound, Forbidden, LimitExceeded
function ctx.get(kind, name, namespace) end

--- A list sorted by namespace and name; from the cache, without errors, or by a request, as with `get`. An object
--- must have all `labels` and `fields`; `owned = true`: only objects that this object controls; `index` and `key`:
--- only objects with that key.
---@param kind moonloop.Kind
---@param options? moonloop.ListOptions
---@return moonloop.Object[]? objects a list sorted by namespace and name
---@return moonloop.Error? err Invalid, NotFound, Forbidden, LimitExceeded
function ctx.list(kind, options) end

--- The object of that name. Creates it if there is none, and returns when the cache shows it. If an object of an
--- owned kind exists and this object does not control it: `AlreadyExists`, which says whose it is. Nothing else of an
--- existing object is changed: `apply` does that.
---@param object moonloop.Manifest
---@param options? moonloop.WriteOptions
---@return moonloop.Object? object as the server has it
---@return moonloop.Error? err AlreadyExists, Invalid, NotFound, Forbidden, LimitExceeded
function ctx.ensure(object, options) end

--- Creates the object without a look at the cache: `AlreadyExists` if there is one of that name.
---@param object moonloop.Manifest
---@return moonloop.Object? object as the server has it
---@return moonloop.Error? err AlreadyExists, Invalid, NotFound, Forbidden, LimitExceeded
function ctx.create(object) end

--- Server-side apply: sets the given fields (and takes them over from other managers), removes those that this
--- controller set before and that are not given any more, leaves other fields alone, creates the object if it is
--- missing. If an object of an owned kind exists and this object does not control it: `AlreadyExists`, which says
--- whose it is. Sent only when the object or the given fields have changed since the last time that this process
--- applied it.
---@param object moonloop.Manifest
---@param options? moonloop.WriteOptions
---@return moonloop.Object? object as the server has it
---@return moonloop.Error? err AlreadyExists, Invalid, NotFound, Forbidden, LimitExceeded
function ctx.apply(object, options) end

--- A merge patch of an object that was read. If the object has changed since, the reconcile ends and is tried again.
--- Sends nothing if nothing would change. Not for `status`.
---@param object moonloop.Object as it was read
---@param changes table `moonloop.null` removes a field
---@return moonloop.Object? object as the server has it
---@return moonloop.Error? err Invalid, NotFound, Forbidden, LimitExceeded
function ctx.patch(object, changes) end

--- Deletes the object that was read: never a later one of the same name, and not if it has changed since (the
--- reconcile then runs again). Returns `true`, also when the object is already gone.
---@param object moonloop.Object as it was read
---@return true? done
---@return moonloop.Error? err Forbidden, LimitExceeded
function ctx.delete(object) end

--- Values that are made once, such as passwords: an owned Secret of that name with these keys. Returns its values,
--- decoded. A function is called only when the Secret lacks its key. If this object does not control the Secret:
--- `AlreadyExists`. Declare `Secret` in `owns`, or in `uses`.
---@param name string
---@param functions table<string, fun(): string> 1 to 100; each makes the value of its key
---@param namespace? string for a cluster-scoped object; else that of the reconciled object
---@return table<string, string>? values the values of these keys
---@return moonloop.Error? err AlreadyExists, Invalid, NotFound, Forbidden, LimitExceeded
function ctx.once(name, functions, namespace) end

--- A Kubernetes Event on the reconciled object, or on another one. `"Warning"` alone may stand for `{ type =
--- "Warning" }`. A repeated Event raises the count of the first. The note is cut at 1024 bytes, the API's limit; at
--- most 25 Events in one reconcile, the rest is dropped.
---@param reason string CamelCase, 1 to 128 bytes
---@param note string
---@param options? moonloop.EventOptions|"Normal"|"Warning" a type alone, or these; "Normal" when left out
function ctx.event(reason, note, options) end

--- A log line with the controller, the object's namespace and name, and the run's `reconcileID`. At most 100 in one
--- reconcile. The message is cut at 1024 bytes, the whole line holds 16 KiB.
---@param message string
---@param fields? table
function ctx.log(message, fields) end

--- Sets a gauge, adds to a counter, or observes a value of a histogram: metrics. At most 1000 in one reconcile.
---@param name string of a metric in `metrics`
---@param value number
---@param labels? table<string, string> a value for each declared label
function ctx.metric(name, value, labels) end

--- Asks another server: HTTP. Returns its answer, whatever the status: `{ status =, headers =, body = }`.
---@param request moonloop.HttpRequest
---@return moonloop.HttpResponse? response
---@return moonloop.Error? err Timeout, Network, TLS, Forbidden, LimitExceeded
function ctx.http(request) end

--- Seconds since 1970, as a float. The only clock.
---@return number seconds
function ctx.now() end

--- The object asks for something impossible. An Event and the condition `Reconciled` say so; the key waits for an
--- edit. The status and conditions of the third argument are written with it.
---@param field string "spec.schedule"
---@param why string
---@param beside? moonloop.Beside status and conditions to write with it
---@return moonloop.Outcome outcome for reconcile to return
function ctx.invalid(field, why, beside) end

--- The reconcile is not tried again before the object changes. An Event and the condition `Reconciled` say so. The
--- status and conditions of the second argument are written with it.
---@param why string
---@param beside? moonloop.Beside status and conditions to write with it
---@return moonloop.Outcome outcome for reconcile to return
function ctx.terminal(why, beside) end

---@class moonloop
local moonloop = {}

--- A kind, as manifests name it: `moonloop.kind("apps/v1", "Deployment")`. Has the fields `apiVersion` and `kind`.
--- `selection`: a part of the kind.
---@param apiVersion string "apps/v1"
---@param kind string "Deployment"
---@param selection? moonloop.Selection all of it when left out
---@return moonloop.Kind kind
function moonloop.kind(apiVersion, kind, selection) end

--- The declaration; the file returns it. A file that returns a plain table is a module for `require`.
---@param declaration moonloop.Declaration
---@return moonloop.Controller controller
function moonloop.controller(declaration) end

--- Marks an object among returned `children`, and returns it: if the server refuses the change, because a field
--- cannot be changed, the old object is deleted, and the new one is made when the old one is gone.
---@param object moonloop.Manifest
---@return moonloop.Manifest object
function moonloop.recreate(object) end

--- Marks an object among returned `children` or for `ctx.apply`, and returns it: these maps get the keys that it
--- gives, and keys of others are removed.
---@param object moonloop.Manifest
---@param ... string maps of the object, as "data" or "metadata.labels"; at most 8
---@return moonloop.Manifest object
function moonloop.exact(object, ...) end

--- An entry of `watches`. The function returns which reconciled objects a change of `object` concerns: a list of
--- `"namespace/name"` or `{ namespace =, name = }`, or nothing. It is called with the object after and before the
--- change. It can read watched kinds (`ctx.get`, `ctx.list`); it cannot write or wait. Objects whose reconcile looked
--- for `object` by name need not be returned. `when`: as in a controller.
---@param kind moonloop.Kind
---@param map fun(object: moonloop.Object, ctx: moonloop.Context): (string|moonloop.ObjectName)[]?
---@param when? moonloop.When which changes count; all when left out
---@return moonloop.Watch watch
function moonloop.watch(kind, map, when) end

--- An index of a watched kind, made at the top of the file: objects that refer to another. The function returns the
--- keys of an object: a list of strings, one string, or nothing.
---@param kind moonloop.Kind
---@param keys fun(object: moonloop.Object): string[]|string|nil
---@return moonloop.Index index
function moonloop.index(kind, keys) end

--- Marks the table as a list, so that it stays `[]` when it is empty, and returns it. Without an argument: a new
--- table. Only a table without a metatable can be marked.
---@generic T
---@param list? T[]
---@return T[] list
function moonloop.array(list) end

--- JSON's `null`. An absent field is `nil`. In the changes of `ctx.patch`, and in a returned status, it removes a
--- field.
---@type moonloop.Null
moonloop.null = nil

--- True if the value is `moonloop.null`.
---@param value any
---@return boolean is_null
function moonloop.is_null(value) end

--- A deep copy, in plain tables that the script may change, also of an object that was read: copies.
---@generic T
---@param value T
---@return T copy
function moonloop.copy(value) end

--- A new object: `a` with `b` merged over it. Lists of Kubernetes are merged by their keys, other lists are replaced:
--- merges.
---@generic T
---@param a T stays as it is
---@param b table wins; stays as it is
---@return T merged
function moonloop.merge(a, b) end

--- Are they the same? Tables by their contents, and amounts by their value (`"1Gi"` and `"1024Mi"`, `80` and `"80"`):
--- comparisons.
---@param a any
---@param b any
---@return boolean is_equal
function moonloop.equal(a, b) end

return moonloop
