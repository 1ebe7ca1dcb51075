---@meta moonloop.testing
-- Stubs of `require "moonloop.testing"` for editors (lua-language-server). Nothing loads this file.
-- Made by tools/script-api.lua out of lua/script_api.lua.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop.testing' instead"

---@class moonloop.testing.Options
---@field now? string|number the time: RFC 3339, or seconds since 1970. Default 2026-01-01T00:00:00Z
---@field scripts? string|string[] paths of scripts or folders. Default: the script beside the test
--- paths of CustomResourceDefinitions. Default: the folder `crds/` beside the test's folder, or in it
---@field crds? string|string[]
--- what pods do once they run: `"run"` (default: until `finish_pod`), `"succeed"`, `"fail"`, or a function of pod and
--- container that returns `{ after = seconds, code = exit code }`
---@field pods? "run"|"succeed"|"fail"|fun(pod: moonloop.Object, container: table): { after: number, code: integer }?
---@field seed? integer for everything random: uids, generated names, jitter, the script's draws. Default 1

---@class moonloop.testing.PodRule
---@field matching? string a label selector: `"app=a,tier!=b"`. Default: all pods
---@field name? string of the one pod
--- seconds from the start of a container until it is ready; `false`: never. Until then its readiness probe fails; if
--- it has none, it starts only then
---@field ready_after? number|false
---@field exit_code? integer the containers end, with this code. 0 when only `exit_after` is given
---@field exit_after? number seconds until they end. Default 0
---@field times? integer for so many starts of containers. Default: for all

---@class moonloop.testing.Waiting
---@field controller string
---@field kind string of the object
---@field name string of the object
---@field namespace? string of the object
--- of `"fails"` the last run failed; `"due"` asked to be called again; `"cache"` waits until the cache shows what the
--- run wrote
---@field state "fails"|"slowed"|"paused"|"cache"|"due"
---@field why string the same in words
---@field at? number when it runs again, in seconds since 1970. Nil: nothing is planned
---@field failures integer in a row
---@field error? string of the last run

---@class moonloop.testing.Event
---@field type "Normal"|"Warning"
---@field reason string
---@field note string
---@field kind string of the object
---@field name string of the object
---@field namespace string of the Event: that of the object, or default
---@field related moonloop.EventObject? the related object
---@field by string the controller that reports it

---@class moonloop.testing.Request
---@field verb string "create", "patch", …
---@field path string
---@field code integer

---@alias moonloop.testing.Fault
---| "conflict"
---| "forbidden"
---| "internal_error"
---| "unavailable"
---| "too_many_requests"
---| "lost_request"
---| "lost_reply"
---| "timeout"
---| "stale_cache"

---@class moonloop.testing.Where
---@field verb? "create"|"update"|"patch"|"delete"|"get"|"list"
---@field kind? moonloop.Kind
---@field times? integer default 1

--- Each method, except those that only read, lets the operator finish its work at this instant.
---@class moonloop.testing.World
local world = {}

--- Applies an object, a list of them, or the documents of a YAML text, as `kubectl apply --server-side` would.
---@param what moonloop.Manifest|moonloop.Manifest[]|string
function world.apply(what) end

--- Merges changes into an object; `moonloop.null` removes a field. For changes of its status, the subresource is
--- `"status"`; others are those of the server, such as `"scale"`.
---@param kind moonloop.Kind
---@param name string
---@param changes table
---@param subresource? string
---@param namespace? string "default" when left out
function world.patch(kind, name, changes, subresource, namespace) end

--- Deletes an object, and the objects that it owns. One with finalizers stays until these are gone, and the script's
--- `finalize` is called.
---@param kind moonloop.Kind
---@param name string
---@param namespace? string "default" when left out
function world.delete(kind, name, namespace) end

--- The object, or nil.
---@param kind moonloop.Kind
---@param name string
---@param namespace? string "default" when left out
---@return moonloop.Object? object
function world.get(kind, name, namespace) end

--- All objects of a kind, by namespace and name; the selector is a label selector: `"app=a"`.
---@param kind moonloop.Kind
---@param selector? string of labels
---@return moonloop.Object[] objects
function world.list(kind, selector) end

--- Fails unless the object exists and has these fields; the message shows each difference. `false` as fields: it must
--- not exist.
---@param kind moonloop.Kind
---@param name string
---@param fields table|false
---@param namespace? string "default" when left out
function world.expect(kind, name, fields, namespace) end

--- Advances the clock by a duration, or by seconds (a number), and stops at each instant at which something is due.
---@param duration string|number "5m", or seconds
function world.advance(duration) end

--- Runs until no work is left. The clock advances only to tries again that are due within a second, as after a
--- conflict. Returns the objects that wait then: below.
---@return moonloop.testing.Waiting[] waiting
function world.settle() end

--- Seconds since 1970.
---@return number seconds
function world.now() end

--- From now on pods do as the rule says: below.
---@param rule moonloop.testing.PodRule
function world.pods(rule) end

--- Ends a pod: `"Succeeded"` (default), `"Failed"`, or an exit code. Its restartPolicy decides what follows.
---@param name string
---@param how? "Succeeded"|"Failed"|integer
---@param namespace? string "default" when left out
function world.finish_pod(name, how, namespace) end

--- The Events on objects, of this kind and name and by this controller if given, oldest first: `type`, `reason`,
--- `note`, `kind`, `name`, `namespace`, `related`, `by`. `world.events(nil, nil, "site")` are those of the script
--- `site`. The operator sends them with a short delay: call `world.advance "1s"` first.
---@param kind? moonloop.Kind
---@param name? string
---@param by? string the name of a controller: a script's, or of the cluster, as `deployment-controller`
---@return moonloop.testing.Event[] events
function world.events(kind, name, by) end

--- The requests of the operator: `verb`, `path`, `code`. `#world.requests("create", "/pods")`
---@param verb? string
---@param path? string a part of it
---@return moonloop.testing.Request[] requests
function world.requests(verb, path) end

--- The next matching request fails; returns a function that removes the fault.
---@param name moonloop.testing.Fault
---@param where? moonloop.testing.Where
---@return fun() heal
function world.fault(name, where) end

--- Converts the object to each other version and back with the script's `convert`. Fails if the result differs, and
--- shows how.
---@param object moonloop.Manifest
function world.round_trip(object) end

--- The value of the first series with these labels, of a metric that the script sets by `ctx.metric`; of a histogram,
--- the number of its values. Nil if there is none.
---@param name string
---@param labels? table<string, string>
---@return number? value
function world.metric(name, labels) end

--- Answers the script's `ctx.http`: the function gets `{ method =, url =, headers =, body = }` and returns `{ status
--- =, headers =, body = }`; nothing: a time-out; nil and a text: no connection.
---@param answer fun(request: table): table?, string?
function world.http(answer) end

--- Kills the operator without a shutdown, and starts another one.
function world.restart() end

---@class moonloop.testing
local testing = {}

--- Starts a new, empty cluster and ends the one before.
---@param options? moonloop.testing.Options
---@return moonloop.testing.World world
function testing.world(options) end

return testing
