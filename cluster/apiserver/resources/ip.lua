--- IP addresses.
---
--- Rules: apimachinery/pkg/util/validation/ip.go, kubernetes/pkg/apis/core/validation/validation.go
--- (ValidateNonSpecialIP).
local field = require "cluster.apiserver.field"

local M = {}

local NOT_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


--- The number of an IPv4 address, or nil.
function M.v4(text)
  local a, b, c, d = text:match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$")
  if not a then
    return nil
  end
  local number = 0
  for _, part in ipairs { a, b, c, d } do
    if #part > 3 or tonumber(part) > 255 or #part > 1 and part:byte() == 48 then
      return nil
    end
    number = number * 256 + math.tointeger(tonumber(part))
  end
  return number
end


--- An IPv4 address of a number.
function M.text(number)
  return ("%d.%d.%d.%d"):format(number >> 24, number >> 16 & 255, number >> 8 & 255, number & 255)
end


-- How many groups of four digits a text has; nil when it has something else. The last may be an IPv4 address.
local function groups(text)
  if text == "" then
    return 0
  end
  local count = 0
  for part, rest in (text .. ":"):gmatch("([^:]*):()") do
    if part:find("^%x%x?%x?%x?$") then
      count = count + 1
    elseif rest > #text and M.v4(part) then
      count = count + 2
    else
      return nil
    end
  end
  return count
end


--- Returns true if a text is an IPv6 address.
function M.is_v6(text)
  local left, right = text:match("^(.-)::(.*)$")
  if not left then
    return groups(text) == 8
  elseif right:find("::", 1, true) then
    return false
  end
  local before, after = groups(left), groups(right)
  return before ~= nil and after ~= nil and before + after < 8
end


--- "IPv4", "IPv6", or nil for what is no address.
function M.family(text)
  return M.v4(text) and "IPv4" or M.is_v6(text) and "IPv6" or nil
end


-- The groups of an IPv6 address as its canonical text: lowercase, without leading zeros, the longest run of zeros left
-- out.
local function compressed(groups_of)
  local from, length, i = nil, 1, 1
  while i <= #groups_of do
    local last = i
    while groups_of[last] == "0" do
      last = last + 1
    end
    if last - i > length then
      from, length = i, last - i
    end
    i = math.max(last, i + 1)
  end
  if not from then
    return table.concat(groups_of, ":")
  end
  return table.concat(groups_of, ":", 1, from - 1) .. "::" .. table.concat(groups_of, ":", from + length)
end


--- An address has to be one.
function M.check(text, path, errors)
  if not M.family(text) then
    errors[#errors + 1] = field.invalid(path, text, NOT_IP)
  end
end


-- The lowest `count` bits of a number as "0101".
local function bits_of(number, count)
  local bits = {}
  for i = count, 1, -1 do
    bits[#bits + 1] = number >> (i - 1) & 1
  end
  return table.concat(bits)
end


-- The bits of some groups of an IPv6 address.
local function group_bits(text)
  local bits = {}
  for part in text:gmatch("[^:]+") do
    local number = M.v4(part)
    bits[#bits + 1] = number and bits_of(number, 32) or bits_of(tonumber(part, 16), 16)
  end
  return table.concat(bits)
end


-- The bits of an address.
local function address_bits(text)
  local number = M.v4(text)
  if number then
    return bits_of(number, 32)
  end
  local left, right = text:match("^(.-)::(.*)$")
  left, right = group_bits(left or text), group_bits(right or "")
  return left .. ("0"):rep(128 - #left - #right) .. right
end


-- An IPv6 address that stands for an IPv4 one.
local MAPPED = ("0"):rep(80) .. ("1"):rep(16)


-- An address, which is one, as Go writes it.
local function canonical(text)
  if M.v4(text) then
    return text
  end
  local bits, parts = address_bits(text), {}
  if bits:sub(1, #MAPPED) == MAPPED then
    return M.text(tonumber(bits:sub(-32), 2))
  end
  for i = 1, 128, 16 do
    parts[#parts + 1] = ("%x"):format(tonumber(bits:sub(i, i + 15), 2))
  end
  return compressed(parts)
end


--- Returns why a text is not an address in its canonical form, or nil if it is.
function M.complaint(text)
  if not M.family(text) then
    return M.v4((text:gsub("%f[%d]0+(%d)", "%1"))) and "must not have leading 0s" or NOT_IP
  elseif not M.v4(text) and address_bits(text):sub(1, #MAPPED) == MAPPED then
    return "must not be an IPv4-mapped IPv6 address"
  end
  local wanted = canonical(text)
  return wanted ~= text and ('must be in canonical form ("%s")'):format(wanted) or nil
end


-- The bits of a range's address and the length of its prefix; nil if the text is no range.
local function read_range(text)
  local address, length = text:match("^(.*)/(%d+)$")
  local family = address and M.family(address)
  length = math.tointeger(tonumber(length))
  if not family or length > (family == "IPv4" and 32 or 128) then
    return nil
  end
  return address_bits(address), length
end


--- Returns the bits that all addresses of a range begin with ("0000101"); nil if the text is no range.
function M.range(text)
  local bits, length = read_range(text)
  return bits and bits:sub(1, length)
end


--- A range of addresses: "10.9.8.0/24".
function M.check_range(text, path, errors)
  local bits, length = read_range(text)
  if not bits then
    errors[#errors + 1] = field.invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
  elseif bits:find("1", length + 1, true) then
    errors[#errors + 1] = field.invalid(path, text, "must not have bits set beyond the prefix length")
  elseif text:find("/0%d") then
    errors[#errors + 1] = field.invalid(path, text, "must not have leading 0s in IP or prefix length")
  end
end


--- The same, in its canonical form.
function M.check_canonical_range(text, path, errors)
  local before = #errors
  M.check_range(text, path, errors)
  local address, length = text:match "^(.*)/(%d+)$"
  local wanted = #errors == before and canonical(address) .. "/" .. length
  if wanted and wanted ~= text then
    errors[#errors + 1] = field.invalid(path, text, ('must be in canonical form ("%s")'):format(wanted))
  end
end


--- The address of a machine with the length of its network: "10.9.8.7/24".
function M.check_interface(text, path, errors)
  local bits = read_range(text)
  local address, length = text:match "^(.*)/(%d+)$"
  if not bits then
    errors[#errors + 1] = field.invalid(path, text,
      "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)")
    return
  end
  local wanted = ("%s/%d"):format(canonical(address), tonumber(length))
  if wanted ~= text then
    errors[#errors + 1] = field.invalid(path, text, ('must be in canonical form ("%s")'):format(wanted))
  end
end


--- An address may not be one that means something else everywhere.
function M.check_special(text, path, errors)
  local number = M.v4(text)
  local function bad(why)
    errors[#errors + 1] = field.invalid(path, text, why)
  end
  if not M.family(text) then
    bad "must be a valid IP address"
  elseif number == 0 or text == "::" then
    bad "may not be unspecified (0.0.0.0 or ::)"
  elseif number and number >> 24 == 127 or text == "::1" then
    bad "may not be in the loopback range (127.0.0.0/8, ::1/128)"
  elseif number and number >> 16 == 0xa9fe or text:lower():find("^fe[89ab]%x:") then
    bad "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
  elseif number and number >> 8 == 0xe00000 or text:lower():find("^ff%x2:") then
    bad "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
  end
end


return M
