---@meta moonloop.testing
-- What an editor (lua-language-server) knows of `require "moonloop.testing"`. Never loaded.
-- Made by tools/script-api.lua out of lua/script_api.lua.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop.testing' instead"

---@class moonloop.testing.Options
---@field now? string|number what time it is: RFC 3339, or seconds since 1970. Default 2026-01-01T00:00:00Z
---@field scripts? string|string[] paths of scripts or folders. Default: the script beside the test
--- paths of CustomResourceDefinitions. Default: the folder `crds/` beside the test's folder, or in it
---@field crds? string|string[]
--- what pods do once they run: `"run"` (default: on, until told otherwise), `"succeed"`, `"fail"`, or a function of
--- pod and container that returns `{ after = seconds, code = exit code }`
---@field pods? "run"|"succeed"|"fail"|fun(pod: moonloop.Object, container: table): { after: number, code: integer }?
---@field seed? integer of all that is random: uids, generated names, jitter. Default 1

---@class moonloop.testing.Event
---@field type "Normal"|"Warning"
---@field reason string
---@field note string
---@field kind string of the object
---@field name string of the object

---@class moonloop.testing.Request
---@field verb string "create", "patch", …
---@field path string
---@field code integer

---@alias moonloop.testing.Fault
---| "conflict"
---| "forbidden"
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

--- Each method but the reading ones lets the operator come to rest.
---@class moonloop.testing.World
local world = {}

--- Applies an object, a list of them, or the documents of a YAML text, as `kubectl apply --server-side` would.
---@param what moonloop.Manifest|moonloop.Manifest[]|string
function world.apply(what) end

--- Merges changes into an object; `"status"` as subresource for those of its status.
---@param kind moonloop.Kind
---@param name string
---@param changes table
---@param subresource? "status"
---@param namespace? string "default" when left out
function world.patch(kind, name, changes, subresource, namespace) end

--- Deletes an object, and what it owns.
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

--- All of a kind, by namespace and name; the selector is one of labels: `"app=a"`.
---@param kind moonloop.Kind
---@param selector? string of labels
---@return moonloop.Object[] objects
function world.list(kind, selector) end

--- Fails unless the object is there and has these fields; the message shows each difference. `false` as fields: it
--- must not be there.
---@param kind moonloop.Kind
---@param name string
---@param fields table|false
---@param namespace? string "default" when left out
function world.expect(kind, name, fields, namespace) end

--- Moves the clock, and stops wherever something is due.
---@param duration string "5m"
function world.advance(duration) end

--- Comes to rest without moving the clock.
function world.settle() end

--- Seconds since 1970.
---@return number seconds
function world.now() end

--- Ends a pod: `"Succeeded"` (default), `"Failed"`, or an exit code. What follows is for its restartPolicy to say.
---@param name string
---@param how? "Succeeded"|"Failed"|integer
---@param namespace? string "default" when left out
function world.finish_pod(name, how, namespace) end

--- What was told of objects, of this kind and name if given, oldest first: `type`, `reason`, `note`, `kind`, `name`.
--- They are sent a moment after they are told: `world.advance "1s"` first.
---@param kind? moonloop.Kind
---@param name? string
---@return moonloop.testing.Event[] events
function world.events(kind, name) end

--- What the operator asked of the server: `verb`, `path`, `code`. `#world.requests("create", "/pods")`
---@param verb? string
---@param path? string a part of it
---@return moonloop.testing.Request[] requests
function world.requests(verb, path) end

--- The next request that fits fails; returns a function that takes the fault away.
---@param name moonloop.testing.Fault
---@param where? moonloop.testing.Where
---@return fun() heal
function world.fault(name, where) end

--- Kills the operator where it stands, and begins another one.
function world.restart() end

---@class moonloop.testing
local testing = {}

--- Begins a new, empty cluster and ends the one before.
---@param options? moonloop.testing.Options
---@return moonloop.testing.World world
function testing.world(options) end

return testing
