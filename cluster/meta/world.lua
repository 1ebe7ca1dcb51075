---@meta cluster.world
-- Stubs for editors (lua-language-server) of `require "cluster.world"`: the world in virtual
-- time (cluster/host/world.h), which the test harness uses. Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'cluster.world' instead"

--- Each function returns nil and a message when it fails. Settle, advance, restart and reset fail
--- when what settle or advance run calls them: a handler or a timer of the server's.
---@class cluster.world
local world = {}

--- Runs server and operator until nothing is left to do at this instant. An operator that is new
--- begins when the server has nothing left to do: CRDs created before are served by then. Fails
--- when there is no end after 10000 rounds of the loop; the message names the request that is made
--- most.
---@return true|nil
---@return string? message
function world.settle() end

--- Settles, then goes from timer to timer, settling at each, until so many seconds have passed.
---@param seconds number
---@return true|nil
---@return string? message
function world.advance(seconds) end

---@class moonloop.world.Fault
---@field kind "refuse"|"lose"|"lose_reply"|"time_out"|"cut"|"hold" see cluster/host/transport_embedded.h
---@field method? string of the operator's requests that it strikes; nil: any
---@field path? string a part of path and query; nil: any
---@field times? integer requests it is good for; nil: all, until it is healed
---@field status? integer refuse: 400 to 599
---@field reason? string refuse: "Conflict"
---@field bytes? integer cut: of the body that still arrive

--- From the operator's next request on; "hold" also for streams under way. The oldest fault that
--- fits a request counts.
---@param fault moonloop.world.Fault
---@return integer|nil number
---@return string? message
function world.fault(fault) end

--- Takes a fault away; what it held goes on with the next settle.
---@param number integer
---@return true|nil
---@return string? message
function world.heal(number) end

--- The operator dies where it stands, as by a kill; another one begins with the next settle. From
--- inside of what settle and advance run it dies when the round of the loop has ended, and what it
--- asks for until then reaches nobody.
---@return true|nil
---@return string? message
function world.restart() end

--- As SIGTERM: what the operator has under way may end for so many seconds, then another one takes
--- its place. From inside, too. It has no effect on an operator that has not begun.
---@param seconds number
---@return true|nil
---@return string? message
function world.stop(seconds) end

--- Somebody sets the wall clock, forth or back (below 0); timers do not see it. From inside, too.
---@param seconds number
---@return true|nil
---@return string? message
function world.set_wall_clock(seconds) end

--- The machine stands still for so long, server and operator with it: both clocks go on, and no
--- timer comes before the next settle.
---@param seconds number
---@return true|nil
---@return string? message
function world.suspend(seconds) end

---@class moonloop.world.Cached
---@field apiVersion string
---@field kind string
---@field key string "namespace/name"
---@field uid string
---@field resourceVersion string

--- The objects that the operator's caches hold, in no stated order.
---@return moonloop.world.Cached[]
function world.cached() end

--- Does every script of the operator work?
---@return true|string ready or a line of what is missing
function world.ready() end

--- The page that the operator's /metrics serves.
---@return string
function world.metrics() end

--- The keys of the operator that are in trouble, wait or are due: the answer to /top/ of host/operator/inspect.h.
---@return table|nil
---@return string? message
function world.waiting() end

---@class moonloop.world.Covered
---@field file string path
---@field lines integer[][] { line, times }: the lines that can run, and how often each ran

--- The files of scripts of all worlds so far, by path.
---@return moonloop.world.Covered[]|true covered true: the host was not asked to note it
function world.coverage() end

---@class moonloop.world.Setup
---@field scripts? string[] files and folders of the operator
---@field settings? table for the server
---@field seed? integer of random and uuid
---@field now? number wall time at the start in seconds; nil: 2026-01-01T00:00:00Z

--- Begins again: an empty server, no faults, a new operator, the clock at its start. The server is
--- then another `require "cluster.apiserver.running"`.
---@param setup moonloop.world.Setup
---@return true|nil
---@return string? message
function world.reset(setup) end

return world
