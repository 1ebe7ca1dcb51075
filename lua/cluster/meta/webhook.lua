---@meta cluster.webhook
-- Stubs for editors (lua-language-server) of `require "cluster.webhook"`: requests to webhooks, for the host's own Lua.
-- The module is only there where there is an event loop to wait on. Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'cluster.webhook' instead"

---@class cluster.webhook
local webhook = {}

---@class cluster.webhook.Client
local Client = {}

--- A client. Its connections are kept for its next requests.
---@param ca_pem? string certificates that the server's must be signed by; the system's roots when not given
---@param server_name? string whom the server's certificate must name; the URL's host when not given
---@return cluster.webhook.Client
function webhook.client(ca_pem, server_name) end

--- Sends a POST of JSON and waits for the answer, 8 MiB at most: the Lua thread is suspended, and goes on from the
--- event loop. The main thread cannot wait, and 512 requests at most are under way.
---@param url string
---@param body string
---@param seconds number above 0, up to 60: after so long it is given up
---@param host? string for the Host header
---@return integer|nil code nil when there was no answer
---@return string content_type or why there was none
---@return string|boolean body or whether the time was over
function Client:post(url, body, seconds, host) end

return webhook
