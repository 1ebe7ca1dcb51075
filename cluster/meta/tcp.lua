---@meta cluster.tcp
-- Stubs for editors (lua-language-server) of `require "cluster.tcp"`: TCP connections to what listens in a pod, and
-- from pods to the host's own Lua, which has this. Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'cluster.tcp' instead"

---@class cluster.tcp
local tcp = {}

---@class cluster.tcp.Connection
local Connection = {}

--- Sends bytes, once it is connected. Bytes that the peer does not read are kept: look at what is returned.
---@param bytes string
---@return integer waiting bytes that wait in this process; 0 when it is closed
function Connection:write(bytes) end

--- The peer reads the end of the stream behind what was written; nothing may be written any more.
function Connection:end_output() end

--- While paused nothing is read, and the peer has to wait.
---@param paused boolean
function Connection:pause(paused) end

--- Ends it at once, in both directions; no callback follows.
function Connection:close() end

---@class cluster.tcp.Options
---@field address string IPv4: a pod's own, or any of the machine's
---@field port integer
---@field pod cluster.network.Pod? the socket is made in the network of this pod, whose loopback it reaches
---@field connected fun()?
---@field data fun(bytes: string)? some bytes have come
---@field ended fun()? the peer sends no more; it may still read
---@field drained fun()? less than 64 KiB wait to be sent
---@field closed fun(why: string?)? the last call: both directions have ended, or why it broke, or could not be made

--- Begins to connect. Callbacks come from the loop, never inside a call.
---@param options cluster.tcp.Options
---@return cluster.tcp.Connection|nil
---@return string? message why there is no socket for it
function tcp.connect(options) end

---@class cluster.tcp.Listener
local Listener = {}

--- Nothing is accepted any more; what is connected stays so.
function Listener:close() end

--- Accepts connections at an address in the pods' network; where there is none, on the machine. `accepted` returns
--- the functions of a connection's options, or nil: the connection is closed.
---@param options { address: string, port: integer, accepted: fun(connection: cluster.tcp.Connection): table? }
---@return cluster.tcp.Listener|nil
---@return string? message why nobody can listen there
function tcp.listen(options) end

return tcp
