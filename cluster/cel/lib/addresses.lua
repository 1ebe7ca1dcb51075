--- Kubernetes' libraries of IP addresses and networks.
---
--- Rules: apiserver/pkg/cel/library/{ip,cidr}.go.
local addresses = require "cluster.cel.addresses"
local types = require "cluster.cel.types"
local values = require "cluster.cel.values"

local M = {}

local IP_TYPE, CIDR_TYPE = types.opaque "net.IP", types.opaque "net.CIDR"
M.short = { ip = IP_TYPE, cidr = CIDR_TYPE }

local IP, CIDR = values.class "net.IP", values.class "net.CIDR"
IP.type, CIDR.type = IP_TYPE, CIDR_TYPE


function IP:equal(other)
  return self.bytes == other.bytes
end


function CIDR:equal(other)
  return self.bytes == other.bytes and self.bits == other.bits
end


IP.__tostring = function(ip)
  return addresses.write(ip.bytes)
end


CIDR.__tostring = function(cidr)
  return ("%s/%d"):format(addresses.write(cidr.bytes), cidr.bits)
end


local function new_ip(bytes)
  return setmetatable({ bytes = bytes }, IP)
end


local function new_cidr(bytes, bits)
  return setmetatable({ bytes = bytes, bits = bits }, CIDR)
end


local function to_ip(text)
  local bytes, zone = addresses.read(text)
  if not bytes then
    return nil, ("IP Address %q parse error during conversion from string: %s"):format(text, zone)
  elseif zone then
    return nil, ("IP address %q with zone value is not allowed"):format(text)
  elseif addresses.is_mapped(bytes) then
    return nil, ("IPv4-mapped IPv6 address %q is not allowed"):format(text)
  end
  return new_ip(bytes)
end


local function parse_cidr(text)
  local bytes, bits = addresses.read_network(text)
  if not bytes then
    return nil, "network address parse error during conversion from string: " .. bits
  elseif addresses.is_mapped(bytes) then
    return nil, ("IPv4-mapped IPv6 address %q is not allowed"):format(text)
  end
  return new_cidr(bytes, bits)
end


local function to_cidr(text)
  local cidr, message = parse_cidr(text)
  if not cidr then
    return nil, "network address parse error during conversion from string: " .. message
  end
  return cidr
end


local function contains_ip(cidr, ip)
  return #cidr.bytes == #ip.bytes and addresses.mask(ip.bytes, cidr.bits) == addresses.mask(cidr.bytes, cidr.bits)
end


local function contains_cidr(cidr, other)
  return cidr.bits <= other.bits and contains_ip(cidr, other)
end


-- Of a text: what it stands for first.
local function with_text(read, contains)
  return function(cidr, text)
    local other, message = read(text)
    if not other then
      return nil, message
    end
    return contains(cidr, other)
  end
end


local function is_v4(bytes)
  return #bytes == 4
end


local IS = {
  isUnspecified = function(bytes)
    return not bytes:find "[^\0]"
  end,
  isLoopback = function(bytes)
    return is_v4(bytes) and bytes:byte() == 127 or bytes == ("\0"):rep(15) .. "\1"
  end,
  isLinkLocalMulticast = function(bytes)
    return is_v4(bytes) and bytes:find "^\224\0\0" ~= nil
      or not is_v4(bytes) and bytes:byte(1) == 0xff and bytes:byte(2) & 15 == 2
  end,
  isLinkLocalUnicast = function(bytes)
    return is_v4(bytes) and bytes:find "^\169\254" ~= nil
      or not is_v4(bytes) and bytes:byte(1) == 0xfe and bytes:byte(2) & 0xc0 == 0x80
  end,
}

local IDS = {
  isUnspecified = "ip_is_unspecified", isLoopback = "ip_is_loopback",
  isLinkLocalMulticast = "ip_is_link_local_multicast", isLinkLocalUnicast = "ip_is_link_local_unicast",
}


local function is_global_unicast(ip)
  local bytes = ip.bytes
  local multicast = is_v4(bytes) and bytes:byte() >> 4 == 14 or not is_v4(bytes) and bytes:byte() == 0xff
  return not multicast and bytes ~= "\255\255\255\255" and not IS.isUnspecified(bytes) and not IS.isLoopback(bytes)
    and not IS.isLinkLocalUnicast(bytes)
end


-- Bytes, as costs count the size of an address: a network is of the size of its address.
local function size_of(value)
  return value.bytes and math.ceil(#value.bytes) or 1
end


local function add_ips(functions)
  functions:add("ip", "string_to_ip", "(string) -> ip", to_ip)
  functions:add("family", "ip_family", "ip.() -> int", function(ip)
    return is_v4(ip.bytes) and 4 or 6
  end)
  functions:add("ip.isCanonical", "ip_is_canonical", "(string) -> bool", function(text)
    local ip, message = to_ip(text)
    if not ip then
      return nil, message
    end
    return tostring(ip) == text
  end)
  functions:add("isIP", "is_ip", "(string) -> bool", function(text)
    return to_ip(text) ~= nil
  end)
  for name, test in pairs(IS) do
    functions:add(name, IDS[name], "ip.() -> bool", function(ip)
      return test(ip.bytes)
    end)
  end
  functions:add("isGlobalUnicast", "ip_is_global_unicast", "ip.() -> bool", is_global_unicast)
  functions:add("string", "ip_to_string", "(ip) -> string", tostring)
end


local function containment_cost(factor, more)
  return function(cidr, other)
    local text = type(other) == "string" and math.ceil(#other * 0.1) or 0
    return math.ceil(2 * size_of(cidr) * 0.1) + text + math.ceil(size_of(cidr) * 0.1) * factor + more
  end
end


local function add_cidrs(functions)
  functions:add("cidr", "string_to_cidr", "(string) -> cidr", to_cidr)
  functions:add("isCIDR", "is_cidr", "(string) -> bool", function(text)
    return parse_cidr(text) ~= nil
  end)
  functions:add("containsIP", "cidr_contains_ip_string", "cidr.(string) -> bool", with_text(to_ip, contains_ip))
  functions:cost(containment_cost(0, 0))
  functions:add("containsIP", "cidr_contains_ip_ip", "cidr.(ip) -> bool", contains_ip)
  functions:cost(containment_cost(0, 0))
  functions:add("containsCIDR", "cidr_contains_cidr_string", "cidr.(string) -> bool",
    with_text(to_cidr, contains_cidr))
  functions:cost(containment_cost(1, 1))
  functions:add("containsCIDR", "cidr_contains_cidr", "cidr.(cidr) -> bool", contains_cidr)
  functions:cost(containment_cost(1, 1))
  functions:add("ip", "cidr_ip", "cidr.() -> ip", function(cidr)
    return new_ip(cidr.bytes)
  end)
  functions:add("prefixLength", "cidr_prefix_length", "cidr.() -> int", function(cidr)
    return cidr.bits
  end)
  functions:add("masked", "cidr_masked", "cidr.() -> cidr", function(cidr)
    return new_cidr(addresses.mask(cidr.bytes, cidr.bits), cidr.bits)
  end)
  functions:add("string", "cidr_to_string", "(cidr) -> string", tostring)
end


--- Adds them.
function M.add(functions)
  add_ips(functions)
  add_cidrs(functions)
end


return M
