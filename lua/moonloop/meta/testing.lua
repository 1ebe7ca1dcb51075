---@meta moonloop.testing
-- What an editor (lua-language-server) knows of `require "moonloop.testing"`. Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop.testing' instead"

---@class moonloop.testing
local testing = {}

---@class moonloop.testing.Options
---@field now? string|number RFC 3339, or seconds since 1970; default 2026-01-01T00:00:00Z
---@field scripts? string|string[] paths; default: "x.lua" for a test in "x_test.lua"
---@field crds? string|string[] paths; default: crds/ beside the test's folder, or in it
---@field pods? "run"|"succeed"|"fail"|fun(pod: moonloop.Object, container: table): { after: number, code: integer }?
---@field seed? integer default 1

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

--- Each method but the reading ones lets the operator come to rest.
---@class moonloop.testing.World
local world = {}

--- Applies an object, a list of them, or the documents of a YAML text.
---@param what moonloop.Manifest|moonloop.Manifest[]|string
function world.apply(what) end

--- Merges changes into an object, or into its status.
---@param kind moonloop.Kind
---@param name string
---@param changes table
---@param subresource? "status"
---@param namespace? string "default" when left out
function world.patch(kind, name, changes, subresource, namespace) end

--- Deletes an object and what it owns.
---@param kind moonloop.Kind
---@param name string
---@param namespace? string
function world.delete(kind, name, namespace) end

---@param kind moonloop.Kind
---@param name string
---@param namespace? string
---@return moonloop.Object?
function world.get(kind, name, namespace) end

---@param kind moonloop.Kind
---@param selector? string of labels
---@return moonloop.Object[]
function world.list(kind, selector) end

--- Fails unless the object has these fields; `false`: unless it is not there.
---@param kind moonloop.Kind
---@param name string
---@param wanted table|false
---@param namespace? string
function world.expect(kind, name, wanted, namespace) end

--- Moves the clock, stopping wherever something is due.
---@param duration string "5m"
function world.advance(duration) end

--- Lets the operator run until nothing is left to do at this instant.
function world.settle() end

---@return number seconds since 1970
function world.now() end

--- Ends a pod that runs.
---@param name string
---@param how? "Succeeded"|"Failed"|integer
---@param namespace? string
function world.finish_pod(name, how, namespace) end

--- What was told of objects, oldest first.
---@param kind? moonloop.Kind
---@param name? string
---@return moonloop.testing.Event[]
function world.events(kind, name) end

--- What the operator asked of the server.
---@param verb? string
---@param path? string a part of it
---@return moonloop.testing.Request[]
function world.requests(verb, path) end

---@alias moonloop.testing.Fault
---| "conflict" | "forbidden" | "unavailable" | "too_many_requests"
---| "lost_request" | "lost_reply" | "timeout" | "stale_cache"

---@class moonloop.testing.Where
---@field verb? "create"|"update"|"patch"|"delete"|"get"|"list"
---@field kind? moonloop.Kind
---@field times? integer default 1

---@param name moonloop.testing.Fault
---@param where? moonloop.testing.Where
---@return fun() heal
function world.fault(name, where) end

--- Kills the operator where it stands, and begins another one.
function world.restart() end

---@param options? moonloop.testing.Options
---@return moonloop.testing.World
function testing.world(options) end

return testing
