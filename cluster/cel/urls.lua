--- Reads URLs as Go's net/url does: ParseRequestURI first, then Parse.
local M = {}


local function unescape(text, plus)
  if plus then
    text = text:gsub("+", " ")
  end
  return (text:gsub("%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end


-- The first "%" that begins no escape, or nil.
local function bad_escape(text)
  for at in text:gmatch "()%%" do
    if not text:find("^%%%x%x", at) then
      return ('invalid URL escape "%s"'):format(text:sub(at, at + 2))
    end
  end
  return nil
end


-- "https" and the rest; the rest alone when there is no scheme; nil and a message.
local function split_scheme(text)
  local scheme, rest = text:match "^(%a[%w+.-]*):(.*)$"
  if scheme then
    return rest, scheme:lower()
  elseif text:find "^:" then
    return nil, "missing protocol scheme"
  elseif text:find "^[%d+.-][%w+.-]*:" and not text:match("^[^/]*", 1):find "/" then
    return nil, "first path segment in URL cannot contain colon"
  end
  return text, ""
end


local function check_port(host)
  local port = host:match "^%[[^%]]*%](.*)$" or host:match ":[^:]*$" or ""
  if host:find "^%[" and not host:find("]", 1, true) then
    return "missing ']' in host"
  elseif port ~= "" and not port:find "^:%d*$" then
    return ('invalid port "%s" after host'):format(port)
  end
  return nil
end


local function check_host(host)
  local bad = host:match "[ \"<>\\^`{|}]"
  if bad then
    return ('invalid character "%s" in host name'):format(bad)
  end
  return bad_escape(host:gsub("%%25", "")) or check_port(host)
end


-- Sets url.userinfo and url.host; returns a message when they are wrong.
local function read_authority(url, authority)
  local user, host = authority:match "^(.*)@([^@]*)$"
  host = host or authority
  local message = check_host(host)
  if message then
    return message
  elseif user and user:find "[^%w%-._:~!$&'()*+,;=%%@]" then
    return "net/url: invalid userinfo"
  end
  url.user, url.host = user, unescape(host)
  return nil
end


-- All but the fragment.
local function parse(text, via_request)
  if text:find "[\0-\31\127]" then
    return nil, "net/url: invalid control character in URL"
  elseif text == "" and via_request then
    return nil, "empty url"
  end
  local rest, scheme = split_scheme(text)
  if not rest then
    return nil, scheme
  end
  local url = { scheme = scheme, host = "", path = "", query = "" }
  local path, query = rest:match "^([^?]*)%?(.*)$"
  rest, url.query = path or rest, query or ""
  if rest:sub(1, 1) ~= "/" then
    if scheme ~= "" then
      url.opaque = rest
      return url
    elseif via_request then
      return nil, "invalid URI for request"
    end
  end
  if rest:find "^//" and (scheme ~= "" or not via_request and not rest:find "^///") then
    local authority, behind = rest:match "^//([^/]*)(.*)$"
    local message = read_authority(url, authority)
    if message then
      return nil, message
    end
    rest = behind
  end
  local message = bad_escape(rest)
  if message then
    return nil, message
  end
  url.path = rest
  return url
end


-- As Go writes a path when it was not written in the one right way.
local function escape_path(path)
  return (unescape(path):gsub("[^%w%-._~$&+,/:;=@]", function(byte)
    return ("%%%02X"):format(byte:byte())
  end))
end


--- Reads a URL that begins with a scheme or a slash.
--- @return table|nil url { scheme, user, host, path, query, fragment }, still with escapes
--- @return string? message Go's
function M.read(text)
  local url, message = parse(text, true)
  if url then
    url, message = parse(text:match "^[^#]*", false)
  end
  if not url then
    return nil, ("parse %q: %s"):format(text, message)
  end
  return url
end


--- The path with escapes.
function M.escaped_path(url)
  if url.path:find "[^%w%-._~$&+,/:;=@!'()*%[%]%%]" then
    return escape_path(url.path)
  end
  return url.path
end


--- Without the port.
function M.hostname(url)
  return url.host:match "^%[([^%]]*)%]" or url.host:match "^(.-):[^:]*$" or url.host
end


function M.port(url)
  return url.host:match "^%[[^%]]*%]:(%d*)$" or url.host:match "^[^%[%]]-:(%d*)$" or ""
end


--- The parameters. @return table keys in order, table key → list of texts
function M.parameters(url)
  local keys, lists = {}, {}
  for part in url.query:gmatch "[^&]+" do
    local key, value = part:match "^([^=]*)=?(.*)$"
    if not part:find(";", 1, true) and not bad_escape(part) then
      key, value = unescape(key, true), unescape(value, true)
      if not lists[key] then
        keys[#keys + 1], lists[key] = key, {}
      end
      table.insert(lists[key], value)
    end
  end
  return keys, lists
end


return M
