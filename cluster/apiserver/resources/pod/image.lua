--- Names of container images.
---
--- Rules: kubernetes/pkg/util/parsers/parsers.go, distribution/reference (the form of names).
local M = {}

local DIGEST = "@[A-Za-z][A-Za-z0-9.+_-]*:%x+$"


-- Splits off digest and tag. @return string name, string|nil tag, boolean has a digest
local function split(text)
  local digest = text:find(DIGEST)
  if digest then
    text = text:sub(1, digest - 1)
  end
  local name, tag = text:match("^(.*):([%w_][%w_.-]*)$")
  if name and not tag:find("/", 1, true) then
    return name, tag, digest ~= nil
  end
  return text, nil, digest ~= nil
end


-- The part before the first slash is a machine when it looks like one.
local function without_domain(name)
  local domain, path = name:match("^([^/]+)/(.+)$")
  if domain and (domain:find("[.:]") or domain == "localhost" or domain:find("%u")) then
    return path
  end
  return name
end


local function well_formed(name)
  local path = without_domain(name)
  return path:find("^[a-z0-9][a-z0-9._/-]*$") ~= nil and path:find("[a-z0-9]$") ~= nil and not path:find("//", 1, true)
    and #path <= 255
end


--- Which tag an image has: "latest" when none is given, "" with a digest only, or when it is no name of an image.
function M.tag(text)
  local name, tag, digest = split(text or "")
  if not well_formed(name) then
    return ""
  end
  return tag or not digest and "latest" or ""
end


--- When to pull the image, when nothing is said about that.
function M.pull_policy(text)
  return M.tag(text) == "latest" and "Always" or "IfNotPresent"
end


return M
