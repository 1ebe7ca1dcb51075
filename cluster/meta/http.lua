---@meta cluster.http
-- Stubs for editors (lua-language-server) of `require "cluster.http"`: requests to webhooks and to pods, for the host's
-- own Lua. The module is only there where there is an event loop to wait on. Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'cluster.http' instead"

---@class cluster.http
local http = {}

---@class cluster.http.Client
local Client = {}

--- A request whose answer comes piece by piece.
---@class cluster.http.Call
local Call = {}

---@class cluster.http.ClientOptions
---@field ca string? certificates that the server's must be signed by; the system's roots when not given
---@field server_name string? whom the server's certificate must name; the URL's host when not given
---@field insecure boolean? the server need not prove anything

--- A client. Its connections are kept for its next requests.
---@param options cluster.http.ClientOptions
---@return cluster.http.Client
function http.client(options) end

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

---@class cluster.http.RequestOptions
---@field method string
---@field url string
---@field headers table<string, string> up to 128; beside these only Host and Content-Length are sent
---@field body string
---@field http2 boolean? sent in HTTP/2, also without TLS, on a connection of its own; the list that `head` got has the
--- fields behind the body as well when `done` is called
---@field connect_seconds number until there is a connection; nothing else has a limit in time
---@field head fun(code: integer, fields: string[][]) fields: each { name, value }, as they came, up to 128
---@field data fun(bytes: string) a piece of the body
---@field done fun(why: string?, kind: string?) the last call; why: the answer did not end regularly; kind: "network",
--- "tls", "timeout" or "limit"

--- Sends a request, by HTTP/1.1 if nothing else is said. Redirects are not followed. Callbacks come from the
--- loop, never inside this call; 512 requests at most are under way.
---@param options cluster.http.RequestOptions
---@return cluster.http.Call|nil
---@return string? message why it cannot be sent
function Client:request(options) end

--- While paused no data comes, and the server has to wait.
---@param paused boolean
function Call:pause(paused) end

--- Ends it, at any time; no callback follows.
function Call:cancel() end

return http
