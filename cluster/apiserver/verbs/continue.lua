--- Continue tokens: the start of the next page of a list, and the revision of the list.
---
--- Rules and wordings: apiserver/pkg/storage/continue.go, apiserver/pkg/storage/etcd3/errors.go.
local host = require "cluster.host"
local status = require "cluster.apiserver.status"
local syntax = require "cluster.apiserver.syntax"

local M = {}

local INVALID = "invalid continue token: continue key is not valid: "
local EXPIRED = "The provided continue parameter is too old to display a consistent list result. You can start a new "
  .. "list without the continue parameter, or use the continue token in this response to retrieve the remainder of "
  .. "the results. Continuing with the provided token results in an inconsistent list - objects that were created, "
  .. "modified, or deleted between the time the first chunk was returned and now may show up in the list."
local GONE = "The provided continue parameter is too old to display a consistent list result. You must start a new "
  .. "list without the continue parameter."


-- The alphabet for URLs, without padding.
local function to_url(text)
  return (text:gsub("[+/=]", { ["+"] = "-", ["/"] = "_", ["="] = "" }))
end


local function from_url(text)
  if text:find("[^%w_-]") then
    return nil
  end
  return text:gsub("[-_]", { ["-"] = "+", ["_"] = "/" }) .. ("="):rep(-#text % 4)
end


local function token_of(revision, start)
  return to_url(host.base64.encode(host.json.encode { v = "meta.k8s.io/v1", rv = revision, start = start }))
end


--- The token for what follows `key` in a list of `revision`.
function M.encode(revision, key)
  return token_of(revision, "/" .. key .. "\0")
end


local function invalid(why)
  return nil, status.bad_request(INVALID .. why)
end


--- Reads a token.
--- @return table|nil token { revision =, from = key }; nil and a status
function M.decode(text)
  local plain = from_url(text)
  local raw = plain and host.base64.decode(plain)
  if not raw then
    return invalid("illegal base64 data at input byte " .. ((text:find("[^%w_-]") or #text) - 1))
  end
  local value = host.json.decode(raw)
  if type(value) ~= "table" then
    return invalid(value == nil and syntax.describe(raw) or raw)
  end
  if value.v ~= "meta.k8s.io/v1" then
    return nil, status.bad_request("invalid continue token: server does not recognize this encoded version "
      .. tostring(value.v))
  end
  local start = value.start
  if type(start) ~= "string" or start:sub(1, 1) ~= "/" or math.type(value.rv) ~= "integer" then
    return invalid(tostring(start))
  end
  return { revision = value.rv, from = start:sub(2) }
end


--- The answer to a token whose revision is forgotten; it carries one that goes on in the present.
function M.expired(token)
  if token.revision < 0 then
    return status.expired(GONE)
  end
  local failure = status.expired(EXPIRED)
  failure.metadata.continue = token_of(-1, "/" .. token.from)
  return failure
end


return M
