--- Formats of strings in schemas of custom kinds. Formats that are not here are ignored.
---
--- Rules: kube-openapi/pkg/validation/strfmt, kube-openapi/pkg/internal/third_party/govalidator,
--- apiextensions-apiserver/pkg/apiserver/validation/formats.go.
local names = require "cluster.names"
local regex = require "cluster.regex"

local M = {}

local DAYS = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }


-- A test by a pattern that is compiled when it is first used.
local function by_pattern(pattern)
  local compiled
  return function(text)
    compiled = compiled or assert(regex.compile(pattern))
    return compiled:match(text)
  end
end


local function is_date(text)
  local year, month, day = text:match "^(%d%d%d%d)-(%d%d)-(%d%d)$"
  if not year then
    return false
  end
  year, month, day = tonumber(year), tonumber(month), tonumber(day)
  local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  local last = month == 2 and not leap and 28 or DAYS[month]
  return last ~= nil and day >= 1 and day <= last
end


local function is_date_time(text)
  local day, time = text:lower():match "^([^t]*)t([^t]*)"
  if not day or not is_date(day) then
    return false
  end
  local hour, minute, second, rest = time:match "^(%d%d):(%d%d):(%d%d)(.*)$"
  if not hour or hour > "23" or minute > "59" or second > "59" then
    return false
  end
  local zone = rest:match "^.%d+(.*)$" or rest
  if rest:find "^[+-]%d%d:%d%d$" then
    zone = rest
  end
  return zone == "z" or zone:find "^[+-]%d%d:%d%d$" ~= nil
end


-- Leading zeros are fine, as they were for older servers.
local function is_ipv4(text)
  local parts = 0
  for part in (text .. "."):gmatch "([^.]*)%." do
    parts = parts + 1
    if not part:find "^%d+$" or #part:match "^0*(.*)$" > 3 or tonumber(part) > 255 then
      return false
    end
  end
  return parts == 4
end


-- Groups of hexadecimal digits between colons. The last one may be an IPv4 address, which counts as two.
local function count_groups(text, last)
  local groups = 0
  if text == "" then
    return 0
  end
  for part, colon in text:gmatch "([^:]*)(:?)" do
    if last and colon == "" and part:find(".", 1, true) then
      return is_ipv4(part) and groups + 2 or nil
    elseif not part:find "^%x%x?%x?%x?$" then
      return colon == "" and part == "" and groups > 0 and text:sub(-1) ~= ":" and groups or nil
    end
    groups = groups + 1
  end
  return groups
end


local function is_ipv6_text(text)
  if not text:find(":", 1, true) then
    return false
  end
  local left, right = text:match "^(.-)::(.*)$"
  if not left then
    return count_groups(text, true) == 8
  elseif right:find("::", 1, true) then
    return false
  end
  local before, after = count_groups(left, false), count_groups(right, true)
  return before ~= nil and after ~= nil and before + after < 8
end


local function is_ipv4_word(text)
  return text:find(".", 1, true) ~= nil and (is_ipv4(text) or is_ipv6_text(text))
end


local function is_cidr(text)
  local address, bits = text:match "^(.*)/(%d+)$"
  if not address or #bits > 3 then
    return false
  end
  bits = tonumber(bits)
  return is_ipv4(address) and bits <= 32 or is_ipv6_text(address) and bits <= 128
end


local MAC_BYTES = { [6] = true, [8] = true, [20] = true }

-- Bytes in hexadecimal with colons or dashes between them, or pairs of bytes with dots.
local function is_mac(text)
  local dotted = text:gsub("%.", "")
  if #dotted ~= #text then
    local groups = select(2, (text .. "."):gsub("%x%x%x%x%.", ""))
    return #text == groups * 5 - 1 and MAC_BYTES[groups * 2] == true
  end
  local separator = text:sub(3, 3)
  if separator ~= ":" and separator ~= "-" then
    return false
  end
  local groups = select(2, (text .. separator):gsub("%x%x" .. (separator == "-" and "%-" or ":"), ""))
  return #text == groups * 3 - 1 and MAC_BYTES[groups] == true
end


local function is_isbn10(text)
  local digits = text:gsub("[%s-]+", "")
  if not digits:find "^%d%d%d%d%d%d%d%d%d[%dX]$" then
    return false
  end
  local sum = 0
  for i = 1, 9 do
    sum = sum + i * (digits:byte(i) - 48)
  end
  sum = sum + 10 * (digits:sub(10) == "X" and 10 or digits:byte(10) - 48)
  return sum % 11 == 0
end


local function is_isbn13(text)
  local digits = text:gsub("[%s-]+", "")
  if #digits ~= 13 or digits:find "%D" then
    return false
  end
  local sum = 0
  for i = 1, 12 do
    sum = sum + (i % 2 == 0 and 3 or 1) * (digits:byte(i) - 48)
  end
  return digits:byte(13) - 48 == (10 - sum % 10) % 10
end


local is_card = by_pattern("^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}"
  .. "|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$")


local function is_credit_card(text)
  local digits = text:gsub("%D+", "")
  if not is_card(digits) then
    return false
  end
  local sum = 0
  for i = #digits, 1, -1 do
    local digit = digits:byte(i) - 48
    if (#digits - i) % 2 == 1 then
      digit = digit * 2
      digit = digit > 9 and digit - 9 or digit
    end
    sum = sum + digit
  end
  return sum % 10 == 0
end


local is_host = by_pattern([[^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)]]
  .. [[|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$]])


local function is_hostname(text)
  if #text > 255 or not is_host(text) then
    return false
  end
  for part in text:gmatch "[^.]+" do
    if #part > 63 then
      return false
    end
  end
  return true
end


local UNITS = {
  "ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "m", "min", "h", "hr", "hour", "d", "day", "w", "wk",
  "week",
}
local LONG = { "nano", "micro", "milli", "sec", "min", "hour", "day", "week" }
local EXACT = {}
for _, unit in ipairs(UNITS) do
  EXACT[unit] = true
end

-- Go's own durations ("1h30m") pass as well: each number of theirs is followed by one of these units.
local function is_duration(text)
  if text == "0" or text == "+0" or text == "-0" then
    return true
  end
  local found = false
  for unit in text:gmatch "%d+%s*([%aµ]+)" do
    unit = unit:lower()
    for _, long in ipairs(LONG) do
      found = found or unit:sub(1, #long) == long
    end
    found = found or EXACT[unit] == true
  end
  return found
end


-- As Go's ParseRequestURI: absolute, or a path from the root.
local function is_uri(text)
  if text == "" or text:find "[%z\1-\31\127 ]" or text:gsub("%%%x%x", ""):find("%", 1, true) then
    return false
  elseif text:sub(1, 1) == "/" or text == "*" then
    return true
  end
  local scheme, rest = text:match "^(%a[%w+.-]*):(.*)$"
  if not scheme then
    return false
  end
  local authority = rest:match "^//([^/?]*)"
  local port = authority and authority:match "[^@]*$":match "^[^%[]*:(.*)$"
  return port == nil or port:find "^%d*$" ~= nil
end


local is_address = by_pattern([[^[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~\x80-\x{10ffff}]+]]
  .. [[(\.[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~\x80-\x{10ffff}]+)*@]]
  .. [[(\[[^\[\]\\]*\]|[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~\x80-\x{10ffff}]+]]
  .. [[(\.[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~\x80-\x{10ffff}]+)*)$]])


-- "someone@example.com", or with a name before it in front of angle brackets.
local function is_email(text)
  local bare = text:match "^%s*(.-)%s*$"
  return is_address(bare:match "^[^<>@]*<([^<>]*)>$" or bare)
end


local function is_ssn(text)
  return #text == 11 and text:find "^%d%d%d[- ]?%d%d[- ]?%d%d%d%d$" ~= nil
end


local function uuid(third, fourth)
  return by_pattern(("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}$"):format(third, fourth))
end


local ANY, VARIANT = "[0-9a-f]{4}", "[89ab][0-9a-f]{3}"

local TESTS = {
  bsonobjectid = function(text) return #text == 24 and not text:find "%X" end,
  uri = is_uri,
  email = is_email,
  hostname = is_hostname,
  ipv4 = is_ipv4_word,
  ipv6 = is_ipv6_text,
  cidr = is_cidr,
  mac = is_mac,
  uuid = uuid(ANY, ANY),
  uuid3 = uuid("3[0-9a-f]{3}", ANY),
  uuid4 = uuid("4[0-9a-f]{3}", VARIANT),
  uuid5 = uuid("5[0-9a-f]{3}", VARIANT),
  isbn = function(text) return is_isbn10(text) or is_isbn13(text) end,
  isbn10 = is_isbn10,
  isbn13 = is_isbn13,
  creditcard = is_credit_card,
  ssn = is_ssn,
  hexcolor = by_pattern "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
  rgbcolor = by_pattern(("^rgb\\(\\s*%s\\s*,\\s*%s\\s*,\\s*%s\\s*\\)$"):gsub("%%s",
    "(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])")),
  byte = by_pattern "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$",
  password = function() return true end,
  date = is_date,
  duration = is_duration,
  datetime = is_date_time,
  k8sshortname = function(text) return names.label(text) == nil end,
  k8slongname = function(text) return names.subdomain(text) == nil end,
}


--- The test for strings of a format: test(text) -> boolean. nil when the format says nothing.
function M.test(format)
  return TESTS[(format:gsub("-", ""))]
end


return M
