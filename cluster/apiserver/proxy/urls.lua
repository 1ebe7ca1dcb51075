--- Paths and URLs as Go reads and writes them.
---
--- Rules: Go's net/url (EscapedPath, Parse) and path (Clean).
local clean_path = require "cluster.apiserver.clean_path"

local M = {}


--- %-encodes a decoded path.
function M.escape(path)
  return (path:gsub("[^%w%-_.~$&+,/:;=@]", function(char)
    return ("%%%02X"):format(char:byte())
  end))
end


--- Undoes %-encoding. @return string|nil decoded, or nil and the text that is none
function M.unescape(text)
  local wrong
  local decoded = text:gsub("%%(.?.?)", function(hex)
    if not hex:find "^%x%x$" then
      wrong = wrong or "%" .. hex
      return nil
    end
    return string.char(tonumber(hex, 16))
  end)
  if wrong then
    return nil, wrong
  end
  return decoded
end


--- See clean_path.lua.
M.clean = clean_path


--- The same, with the slash at its end if it has one; "" stays.
function M.clean_to_slash(path)
  if path == "" then
    return ""
  end
  local clean = M.clean(path)
  return path:sub(-1) == "/" and clean:sub(-1) ~= "/" and clean .. "/" or clean
end


--- Takes a URL apart.
--- @return table|nil { scheme =, host =, path = (decoded), rest = query and fragment as they are }, with "" for what is
---   missing; nil and why it is none
function M.parse(text)
  if text:find "[%c\127]" then
    return nil, "net/url: invalid control character in URL"
  end
  local front, rest = text:match "^([^?#]*)(.*)$"
  local scheme, after = front:match "^(%a[%w+.-]*):(.*)$"
  local authority, encoded = (after or front):match "^//([^/]*)(.*)$"
  local path, wrong = M.unescape(encoded or after or front)
  if not path then
    return nil, ('invalid URL escape "%s"'):format(wrong)
  end
  return {
    scheme = (scheme or ""):lower(), host = (authority or ""):match "([^@]*)$", path = path, rest = rest,
  }
end


--- Puts it together again.
function M.text(url)
  local scheme = url.scheme ~= "" and url.scheme .. ":" or ""
  local host = url.host ~= "" and "//" .. url.host or ""
  return scheme .. host .. M.escape(url.path) .. url.rest
end


return M
