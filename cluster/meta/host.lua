---@meta cluster.host
-- Stubs for editors (lua-language-server) of `require "cluster.host"`: the bindings of the host's
-- own Lua, which scripts do not have. Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'cluster.host' instead"

---@class cluster.host
---@field json cluster.host.json
---@field yaml cluster.host.yaml
---@field regex cluster.host.regex
---@field base64 cluster.host.base64
---@field file cluster.host.file
---@field x509 cluster.host.x509
---@field stream cluster.host.stream
local host = {}

--- A JSON value: nil never, null as json.null, an array as a marked table, an object as a plain
--- one. Integers are integers; other numbers, and integers beyond 64 bits, are floats.
---@alias cluster.host.value string|number|boolean|table|lightuserdata

---@class cluster.host.json
---@field null lightuserdata JSON's null
local json = {}

--- Reads a text that is one JSON value, nested 10000 deep at most. Of a key that comes twice the
--- last value counts. Tables are new with each call.
---@param text string
---@return cluster.host.value|nil value nil when it is no JSON
---@return string? message "at byte 12: …"
function json.decode(text) end

--- The same, and the paths of keys that come twice in their object, each once, in the order of
--- the text, 100 at most: "spec.containers[0].name".
---@param text string
---@return cluster.host.value|nil value
---@return string[]|string duplicates empty when there are none; the message when value is nil
function json.decode_strict(text) end

--- The value as JSON without spaces, keys sorted bytewise, floats as Go writes them (1.0 is `1`).
--- A table is an array when json.is_array says so. Raises, with the path, for what JSON cannot
--- hold: functions, keys that are no strings, arrays with holes, infinite numbers.
---@param value cluster.host.value
---@return string
function json.encode(value) end

--- Marks a table, or a new one, as an array: it stays `[]` when it is empty.
---@generic T: table
---@param table? T
---@return T table the same one
function json.array(table) end

--- Is it a table that is marked as an array, or has something at 1?
---@param value any
---@return boolean
function json.is_array(value) end

--- A deep copy. Marks are kept.
---@generic T
---@param value T
---@return T
function json.copy(value) end

--- Deep equality: 1 equals 1.0, an empty array does not equal an empty object.
---@param a cluster.host.value
---@param b cluster.host.value
---@return boolean
function json.equal(a, b) end

---@class cluster.host.yaml
local yaml = {}

--- The documents of a YAML or JSON text as kubectl reads them, without those that are empty or null, as an array of
--- values.
---@param text string
---@return cluster.host.value[]|nil values nil when one is no YAML
---@return string? message "line 3: …"
function yaml.decode(text) end

---@class cluster.host.Document
---@field line integer where it begins
---@field value cluster.host.value|nil nil when it cannot be read
---@field wrong string|nil then: "line 3: …"

--- The same, each with its place; documents that cannot be read are among them.
---@param text string
---@return cluster.host.Document[]
function yaml.documents(text) end

--- The first document of a text as JSON with sorted keys, "null" when there is none; what follows is not looked at.
---@param text string
---@param strict boolean? whether keys that come twice are told
---@return string|nil json nil when it is no YAML
---@return string duplicates_or_message lines "line 3: key \"a\" already set in map", "" when there are none; or
--- kube-apiserver's words for what is wrong
function yaml.to_json(text, strict) end

---@class cluster.host.regex
local regex = {}

--- Compiles a pattern in RE2's syntax. For that of Go's regexp there is cluster.regex.
---@param pattern string
---@return cluster.host.Regex|nil re nil when it is no pattern
---@return string? reason Go's words
---@return string? part the part of the pattern that is wrong
function regex.compile(pattern) end

---@class cluster.host.Regex
local Regex = {}

--- Does the pattern match anywhere in the text? False, with a message, when the text is no UTF-8.
---@param text string
---@return boolean
---@return string? message
function Regex:match(text) end

--- All matches, from the left; an empty one that touches the one before it does not count.
---@param text string
---@param count integer at most so many; all when it is below 0
---@return integer[]|nil places first and last byte of each: { from, to, from, to, … }
---@return string? message when it takes too long, or the text is no UTF-8
function Regex:find_all(text, count) end

---@class cluster.host.base64
local base64 = {}

--- RFC 4648 with padding.
---@param bytes string
---@return string
function base64.encode(bytes) end

--- Line ends and spaces are passed over.
---@param text string
---@return string|nil bytes nil when it is no base64
function base64.decode(text) end

---@class cluster.host.stream
local stream = {}

---@class cluster.host.Deflater
local Deflater = {}

--- zlib's compression, whose state goes on from one call to the next.
---@param dictionary string
---@return cluster.host.Deflater
function stream.deflater(dictionary) end

---@param bytes string
---@return string bytes enough for the other side to read all that was added
function Deflater:add(bytes) end

---@class cluster.host.Gzipper
local Gzipper = {}

--- A text in gzip's format, compressed as fast as can be.
---@return cluster.host.Gzipper
function stream.gzipper() end

--- Adds the bytes of a text from one place to another, both counted. With its last one all has been
--- said: raises after that.
---@param text string
---@param from integer
---@param to integer
---@return string bytes what follows the bytes that were returned before
function Gzipper:add(text, from, to) end

---@class cluster.host.Inflater
local Inflater = {}

--- The other direction. After a failure it is of no use.
---@param dictionary string for those who say that they use one
---@param max integer bytes that one call may give
---@return cluster.host.Inflater
function stream.inflater(dictionary, max) end

---@param bytes string
---@return string|nil bytes nil when it is no zlib, or more than `max`
---@return string? message
function Inflater:add(bytes) end

--- The mask of a WebSocket's frame, on or off.
---@param bytes string
---@param key string four bytes
---@return string
function stream.mask(bytes, key) end

--- The value of Sec-WebSocket-Accept for one of Sec-WebSocket-Key.
---@param key string
---@return string
function stream.accept(key) end

---@class cluster.host.x509
local x509 = {}

--- The contents of a certificate request: the last common name ("" for none) and the organizations of its subject, and
--- its alternative names (addresses as 4 or 16 bytes).
---@class cluster.host.x509.request
---@field common_name string
---@field organizations string[]
---@field dns_names string[]
---@field email_addresses string[]
---@field ip_addresses string[]
---@field uris string[]

--- Reads a certificate request (DER), and checks that its own key has signed it.
---@param der string
---@return cluster.host.x509.request|nil request nil when it is no good request
---@return string? message in the words of Go's crypto/x509
function x509.request(der) end

--- Signs a certificate request by the cluster's authority: its subject, alternative names and key, and nothing else
--- that it asks for.
---@param der string
---@param usages string[] in Kubernetes' words; 64 at most
---@param not_before integer seconds since 1970
---@param not_after integer cut at the end of the authority's certificate
---@return string|nil certificate PEM
---@return string? message
function x509.sign(der, usages, not_before, not_after) end

--- The certificate of the cluster's authority, which is made when it is first asked for.
---@return string|nil certificate PEM
---@return string? message
function x509.authority() end

--- Reads certificates (DER), one behind the other.
---@param der string
---@return integer|nil count nil when one cannot be read
---@return string? message
function x509.certificates(der) end

--- SHA-256 in lowercase hexadecimal.
---@param bytes string
---@return string
function host.sha256(bytes) end

--- HMAC-SHA-256 as 32 raw bytes.
---@param key string
---@param bytes string
---@return string
function host.hmac_sha256(key, bytes) end

--- Wall time in seconds since 1970, with a fraction. May jump.
---@return number
function host.now() end

--- Seconds of a clock that only goes forward; for delays.
---@return number
function host.monotonic() end

--- Wall time as "2026-07-03T10:00:00Z" (metav1.Time).
---@return string
function host.timestamp() end

--- Wall time as "2026-07-03T10:00:00.000000Z" (metav1.MicroTime).
---@return string
function host.timestamp_micro() end

--- Foreign text as it may stand in a line for a terminal: control characters, bytes that are no UTF-8 and what turns
--- the direction of text become \n, \x1b, \u202e and so on; the rest, backslashes too, stays.
---@param text string
---@return string
function host.escape(text) end

--- A whole number in [0, n), from the host's random seam: a seed repeats it. Not for secrets.
---@param n integer above 0
---@return integer
function host.random(n) end

--- A UUID of version 4, from the same seam.
---@return string
function host.uuid() end

--- Random bytes from the kernel.
---@param n integer 1 to 256
---@return string
function host.secret(n) end

---@class cluster.host.Timer
local Timer = {}

--- The function will not be called any more. Safe at any time.
function Timer:stop() end

--- Calls `fn` once after so many seconds, from 0 to 31 years, from the event loop. An error in it is logged and ends
--- only that call. Raises when there is no loop.
---@param seconds number
---@param fn fun()
---@return cluster.host.Timer
function host.after(seconds, fn) end

--- Calls `fn` soon, from the event loop, in the order of the calls of defer.
---@param fn fun()
function host.defer(fn) end

--- Lets the loop turn when the call from the loop that this is part of has lasted 10 ms, and goes on in a later turn:
--- others may have changed anything meanwhile. Loops over many objects call it. Not for a coroutine of Lua's own.
--- Returns at once where there is no loop, or its clock stands.
function host.give_way() end

--- Collects all garbage, and gives the memory that is free then back to the system. It is for work that leaves much
--- behind, as it takes some 10 ms.
function host.release_memory() end

--- Writes a line to the host's log.
---@param level "debug"|"info"|"warn"|"error"
---@param message string constant text
---@param fields? table<string, cluster.host.value> up to 16
function host.log(level, message, fields) end

--- Files that must survive a crash.
---@class cluster.host.file
local file = {}

--- For reading and appending; made when it is not there, with mode 0600; locked against other
--- processes until it is closed.
---@param path string
---@return cluster.host.File|nil
---@return string? message
function file.open(path) end

--- Makes an empty file for its owner alone, for those who then write it by other means. One that is there keeps what it
--- has, and nobody else reads it from now on; what is no plain file is left alone.
---@param path string
---@return true|nil
---@return string? message
function file.make(path) end

--- Makes a folder for its owner alone. Fine when it is there.
---@param path string
---@return true|nil
---@return string? message
function file.make_folder(path) end

--- Returns when renames in the folder are on the disk.
---@param path string
---@return true|nil
---@return string? message
function file.sync_folder(path) end

---@class cluster.host.File
local File = {}

--- Appends all of it, or leaves the file as it was.
---@param text string
---@return true|nil
---@return string? message
function File:write(text) end

--- The whole content.
---@return string|nil
---@return string? message
function File:read() end

--- Drops what is behind so many bytes.
---@param size integer
---@return true|nil
---@return string? message
function File:cut(size) end

--- Returns when what was written is on the disk.
---@return true|nil
---@return string? message
function File:sync() end

--- Safe at any time.
function File:close() end

--- A request as the server's `handle` gets it.
---@class cluster.host.Request
---@field method string
---@field path string still %-encoded
---@field query string behind the '?', "" when there is none
---@field headers table<string, string> names in lowercase; values of equal names joined by ", "
---@field body string

--- Where a request's answer goes: send; or start, any number of writes, finish. Any but abort
--- raises when the answer has ended or its client has gone.
---@class cluster.host.Reply
---@field on_close? fun() to set: called once when the client has gone before the answer has ended
---@field on_data? fun(bytes: string) to set: what the client of an upgraded connection sends
local Reply = {}

--- Answers whole.
---@param code integer
---@param content_type string|nil
---@param body string
---@param headers? table<string, string|string[]> up to 256 values
function Reply:send(code, content_type, body, headers) end

--- Begins an answer of unknown length.
---@param code integer
---@param content_type string|nil
---@param headers? table<string, string|string[]> up to 256 values
function Reply:start(code, content_type, headers) end

--- Adds to an answer that has begun.
---@param bytes string
---@return integer waiting bytes of this answer that still wait in the process
function Reply:write(bytes) end

--- Ends an answer that has begun.
function Reply:finish() end

--- In place of start, with "101 Switching Protocols": from here on write sends bytes as they are, and on_data is told
--- what the client sends. finish closes the connection once all has been sent.
---@param headers table<string, string> up to 16, with Connection and Upgrade
---@return true|nil upgraded nil when this connection cannot be: the answer is still to be given
---@return string? message
function Reply:upgrade(headers) end

--- Of an upgraded connection: while paused, on_data is not called and the client has to wait. That it has gone is not
--- noticed either.
---@param paused boolean
function Reply:pause(paused) end

--- Cuts the connection, whatever has been sent. Nothing when the answer has ended.
function Reply:abort() end

return host
