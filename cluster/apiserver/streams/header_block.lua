--- Name/value blocks of SPDY/3: compressed by zlib, which keeps its state from one block of a connection to the next.
---
--- Rules: the draft of SPDY/3.1, 2.6.10.
local host = require "cluster.host"

local M = {}
M.__index = M

local BLOCK_MAX = 64 * 1024 -- of one block, when it has been opened
local PAIRS_MAX = 64

-- The dictionary that both sides begin with: these words with their lengths, and a text.
local WORDS = {
  "options", "head", "post", "put", "delete", "trace", "accept", "accept-charset", "accept-encoding", "accept-language",
  "accept-ranges", "age", "allow", "authorization", "cache-control", "connection", "content-base", "content-encoding",
  "content-language", "content-length", "content-location", "content-md5", "content-range", "content-type", "date",
  "etag", "expect", "expires", "from", "host", "if-match", "if-modified-since", "if-none-match", "if-range",
  "if-unmodified-since", "last-modified", "location", "max-forwards", "pragma", "proxy-authenticate",
  "proxy-authorization", "range", "referer", "retry-after", "server", "te", "trailer", "transfer-encoding", "upgrade",
  "user-agent", "vary", "via", "warning", "www-authenticate", "method", "get", "status", "200 OK", "version",
  "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin",
}
local TEXT = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
  .. "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
  .. "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
  .. "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
  .. "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
  .. "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."


local function dictionary()
  local parts = {}
  for i, word in ipairs(WORDS) do
    parts[i] = string.pack(">s4", word)
  end
  return table.concat(parts) .. TEXT
end


--- The state of one connection.
function M.new()
  local shared = dictionary()
  return setmetatable({
    deflater = host.stream.deflater(shared), inflater = host.stream.inflater(shared, BLOCK_MAX),
  }, M)
end


--- @param headers table name → value, names in lower case
--- @return string block
function M:pack(headers)
  local names, parts = {}, {}
  for name in pairs(headers) do
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    parts[i] = string.pack(">s4s4", name, headers[name])
  end
  return self.deflater:add(string.pack(">I4", #names) .. table.concat(parts))
end


-- The text at a place, which has its length in front. @return string|nil, integer where the next one begins
local function text_at(block, at)
  if #block < at + 3 then
    return nil, at
  end
  local size = string.unpack(">I4", block, at)
  local begin = at + 4
  if #block < begin + size - 1 then
    return nil, at
  end
  return block:sub(begin, begin + size - 1), begin + size
end


--- Opens a block. Of several values of a name the first counts.
--- @return table|nil headers name → value, or nil and why
function M:unpack(bytes)
  local block, why = self.inflater:add(bytes)
  if not block then
    return nil, why
  elseif #block < 4 then
    return nil, "too short"
  end
  local count, at = string.unpack(">I4", block)
  if count > PAIRS_MAX then
    return nil, "too many headers"
  end
  local headers = {}
  for _ = 1, count do
    local name, value
    name, at = text_at(block, at)
    value, at = text_at(block, at)
    if not name or not value then
      return nil, "too short"
    end
    headers[name:lower()] = value:match "^[^%z]*"
  end
  return headers
end


return M
