--- JSON web tokens, signed with HMAC-SHA-256 by a key that only the server knows.
local host = require "cluster.host"

local M = {}

local HEADER = '{"alg":"HS256","typ":"JWT"}'
local TO_URL = { ["+"] = "-", ["/"] = "_", ["="] = "" }
local FROM_URL = { ["-"] = "+", _ = "/" }


local function encode(text)
  return (host.base64.encode(text):gsub("[+/=]", TO_URL))
end


--- Bytes of a text in base64 for URLs, without padding; nil when it is none.
function M.from_url(text)
  return host.base64.decode((text:gsub("[-_]", FROM_URL)) .. ("="):rep(-#text % 4))
end


--- @param claims table  @param key string  @return string token
function M.sign(claims, key)
  local signed = encode(HEADER) .. "." .. encode(host.json.encode(claims))
  return signed .. "." .. encode(host.hmac_sha256(key, signed))
end


--- The claims of a token that was signed with that key, or nil.
function M.claims(token, key)
  local signed, payload, signature = token:match("^([%w_-]+%.([%w_-]+))%.([%w_-]+)$")
  if not signed or signature ~= encode(host.hmac_sha256(key, signed)) then
    return nil
  end
  local text = M.from_url(payload)
  return text and host.json.decode(text)
end


return M
