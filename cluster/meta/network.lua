---@meta cluster.network
-- Stubs for editors (lua-language-server) of `require "cluster.network"`: a network of pods' own, for
-- the host's own Lua. The module is only there when there is such a network. Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'cluster.network' instead"

---@class cluster.network
local network = {}

---@class cluster.network.Pod for process.start
local Pod = {}

--- Its network goes with the last process in it.
function Pod:close() end

---@class cluster.network.Listener
local Listener = {}

--- Nothing is accepted any more; what is connected stays so.
function Listener:close() end

--- Sends a datagram, unless it is closed; it may be lost.
---@param bytes string
---@param from string? who asked, as `answer` got it; only needed for network.datagrams
function Listener:send(bytes, from) end

--- A network namespace with an interface that has this address.
---@param address string "10.244.1.2", which no other pod has
---@param sysctls string? what its network gets: lines "net/ipv4/NAME=VALUE"
---@return cluster.network.Pod|nil, string? message
function network.pod(address, sysctls) end

--- Accepts TCP connections, and passes each on to where `target` says; nil: it is reset. An address of
--- pods or of Services is reached in their network, any other from the machine.
---@param options { address: string, port: integer, target: fun(client: string): string?, integer?, machine?: boolean }
---  machine: listens in the machine's network, not in that of pods, for clients on the machine alone
---@return cluster.network.Listener|nil, string? message
function network.listen(options) end

--- Gets UDP datagrams in the network of pods, and sends what `answer` returns to where they came from; nil: nothing
--- yet, see Listener.send.
---@param options { address: string, port: integer, answer: fun(bytes: string, from: string): string? }
---@return cluster.network.Listener|nil, string? message
function network.datagrams(options) end

--- The same for a socket of the machine's that gets datagrams from this place only, of IPv4 or IPv6, and sends there.
---@param options { address: string, port: integer, answer: fun(bytes: string, from: string): string? }
---@return cluster.network.Listener|nil, string? message
function network.outside(options) end

return network
