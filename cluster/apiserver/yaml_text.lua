--- Strings as YAML: plain where that is safe, otherwise quoted or as a block, as the server's library writes them.
---
--- Rules: sigs.k8s.io/yaml/goyaml.v2 {encode,emitterc,resolve}.go.
local host = require "cluster.host"

local M = {}

-- Plain words that YAML reads as something else than a string.
local OTHER = {}
for word in ("y Y yes Yes YES on On ON true True TRUE n N no No NO off Off OFF false False FALSE null Null NULL ~ "
  .. ".nan .NaN .NAN .inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF << ="):gmatch("%S+") do
  OTHER[word] = true
end

local NUMBERS = {
  "^[-+]?%d+$", "^[-+]?%d+%.%d*$", "^[-+]?%.%d+$", "^[-+]?%d+[eE][-+]?%d+$", "^[-+]?%d+%.%d*[eE][-+]?%d+$",
  "^[-+]?%.%d+[eE][-+]?%d+$", "^[-+]?0x%x+$", "^[-+]?0b[01]+$", "^[-+]?0o[0-7]+$",
  "^%d%d%d%d%-%d%d?%-%d%d?$", "^%d%d%d%d%-%d%d?%-%d%d?[Tt ]%d%d?:%d%d?:%d%d?[%d.]*[Zz]?$",
  "^%d%d%d%d%-%d%d?%-%d%d?[Tt]%d%d?:%d%d?:%d%d?[%d.]*[-+]%d%d:%d%d$",
}


-- Numbers that YAML 1.1 writes in base 60: 1:30:00.
local function is_base_60(text)
  local head, tail = text:match("^[-+]?%d[%d_]*(:[%d:]+)(.*)$")
  return head ~= nil and (tail == "" or tail:find("^%.[%d_]*$") ~= nil) and not head:find("::") and not head:find(":$")
end


-- True if the plain text would be read as something other than a string.
local function is_other(text)
  if text == "" or OTHER[text] then
    return true
  elseif not text:find("^[-+.%d]") then
    return false
  end
  local digits = text:gsub("_", "")
  for _, pattern in ipairs(NUMBERS) do
    if digits:find(pattern) then
      return true
    end
  end
  return is_base_60(text)
end


-- Characters that only double quotes can say.
local function has_special(text)
  return text:find("[%z\1-\8\11-\31\127]") ~= nil or not utf8.len(text)
end


-- True if a text of one line can be written without quotes.
local function may_be_plain(text)
  if text:find("^[%s,%[%]{}#&*!|>'\"%%@`]") or text:find("%s$") or text:find("^[-?:]%s") or text:find("^[-?:]$") then
    return false
  elseif text:find("^%-%-%-") or text:find("^%.%.%.") then
    return false
  end
  return not text:find(":%s") and not text:find(":$") and not text:find("%s#") and not text:find("\t")
end


-- A text of several lines, below "key: |".
local function block(text, margin)
  local hint = text:find("^[ \n]") and "2" or ""
  local chomp = not text:find("\n$") and "-" or text:find("\n\n$") and "+" or ""
  local body = text:gsub("\n$", ""):gsub("[^\n]+", margin .. "%0")
  return "|" .. hint .. chomp .. "\n" .. body
end


--- A string as a YAML scalar; `margin` is what the lines of a block begin with.
function M.scalar(text, margin)
  if has_special(text) then
    return host.json.encode(text)
  elseif text:find("\n", 1, true) then
    if text:find("[ \t]\n") or text:find("[ \t]$") then
      return host.json.encode(text)
    end
    return block(text, margin)
  elseif is_other(text) then
    return host.json.encode(text)
  elseif may_be_plain(text) then
    return text
  end
  return "'" .. text:gsub("'", "''") .. "'"
end


return M
