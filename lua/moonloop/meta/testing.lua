---@meta moonloop.testing
-- What an editor (lua-language-server) knows of `require "moonloop.testing"`. Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'moonloop.testing' instead"

---@class moonloop.testing
local testing = {}

---@class moonloop.testing.Options
---@field controller moonloop.Controller
---@field now? string|number RFC 3339, or seconds since 1970

---@class moonloop.testing.Event
---@field type "Normal"|"Warning"
---@field reason string
---@field note string
---@field name string of the object

---@class moonloop.testing.World
---@field events moonloop.testing.Event[]
---@field logs { message: string, fields?: table }[]
local world = {}

--- Creates the object or merges it over what is there (namespace "default"), and settles.
---@param object moonloop.Manifest
function world.apply(object) end

--- Moves the clock, stopping wherever a reconcile asked to come back.
---@param duration string "5m"
function world.advance(duration) end

--- Reconciles everything until nothing changes.
function world.settle() end

---@param kind moonloop.Kind
---@param name string
---@param namespace? string "default" when left out
---@return moonloop.Object?
function world.get(kind, name, namespace) end

---@param kind moonloop.Kind
---@return moonloop.Object[]
function world.list(kind) end

--- Deletes an object and what it owns, and settles.
---@param kind moonloop.Kind
---@param name string
---@param namespace? string
function world.delete(kind, name, namespace) end

--- Ends a pod, and settles.
---@param name string
---@param phase? "Succeeded"|"Failed"
---@param namespace? string
function world.finish_pod(name, phase, namespace) end

---@return number seconds
function world.now() end

---@param options moonloop.testing.Options
---@return moonloop.testing.World
function testing.world(options) end

return testing
