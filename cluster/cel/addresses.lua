--- IP addresses and networks, as Go's net/netip reads and writes them.
---
--- An address is a text of 4 or 16 bytes; a network is an address and the length of its prefix in bits.
local M = {}


-- Returns nil and the message, with the text from the wrong place on.
local function fail(message, rest)
  return nil, rest and ("%s (at %q)"):format(message, rest) or message
end


-- A part between dots; nil and what is wrong with it. `rest` is the text from the part on.
local function read_octet(part, rest)
  local stop = part:find "%D"
  if part == "" then
    return fail("IPv4 field must have at least one digit", rest)
  elseif stop == 1 or stop and #part:match "^%d*" <= 3 then
    return fail("unexpected character", rest:sub(stop))
  elseif part:find "^0%d" then
    return fail "IPv4 field has octet with leading zero"
  elseif #part > 3 or tonumber(part) > 255 then
    return fail "IPv4 field has value >255"
  end
  return math.tointeger(tonumber(part))
end


-- "192.0.2.1"; nil and what is wrong.
local function read_v4(text)
  local bytes = {}
  for at, part, stop in (text .. "."):gmatch "()([^.]*)()%." do
    if #bytes == 4 then
      return fail "IPv4 address too long"
    end
    local behind_last = part == "" and stop > #text -- then the last dot is the mistake
    local byte, message = read_octet(part, text:sub(behind_last and at - 1 or at))
    if not byte then
      return nil, message
    end
    bytes[#bytes + 1] = byte
  end
  if #bytes < 4 then
    return fail "IPv4 address too short"
  end
  return string.char(table.unpack(bytes))
end


-- The IPv4 address that ends an IPv6 address with so many bytes before it.
local function read_embedded(rest, size, has_gap)
  if not has_gap and size ~= 12 then
    return fail("embedded IPv4 address must replace the final 2 fields of the address", rest)
  elseif size > 12 then
    return fail("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
  end
  return read_v4(rest)
end


-- Behind a group: the text of the next one. nil and a message when there can be none.
local function next_group(rest)
  if rest:sub(1, 1) ~= ":" then
    return fail("unexpected character, want colon", rest)
  elseif rest == ":" then
    return fail("colon must be followed by more characters", rest)
  end
  return rest:sub(2)
end


-- Groups of four hexadecimal digits. `gap` is how many bytes stand before "::".
local function read_groups(rest, gap)
  local bytes = ""
  while #bytes < 16 do
    local group = rest:match "^%x*"
    if group == "" then
      return fail("each colon-separated field must have at least one digit", rest)
    elseif #group > 4 then
      return fail("each group must have 4 or less digits", rest)
    elseif rest:find("^%.", #group + 1) then
      local v4, message = read_embedded(rest, #bytes, gap)
      return v4 and bytes .. v4, v4 and "" or message, gap
    end
    bytes = bytes .. (">I2"):pack(tonumber(group, 16))
    rest = rest:sub(#group + 1)
    if rest == "" then
      break
    end
    local behind, message = next_group(rest)
    if not behind then
      return nil, message
    end
    rest = behind
    if rest:find "^:" then
      if gap then
        return fail("multiple :: in address", rest)
      end
      gap, rest = #bytes, rest:sub(2)
      if rest == "" then
        break
      end
    end
  end
  return bytes, rest, gap
end


local function read_v6(text)
  if text == "::" then
    return ("\0"):rep(16)
  end
  local gap = text:find "^::" and 0 or nil
  local bytes, rest
  bytes, rest, gap = read_groups(gap and text:sub(3) or text, gap)
  if not bytes then
    return nil, rest
  elseif rest ~= "" then
    return fail("trailing garbage after address", rest)
  elseif #bytes < 16 and not gap then
    return fail "address string too short"
  elseif #bytes == 16 and gap then
    return fail "the :: must expand to at least one field of zeros"
  end
  return gap and bytes:sub(1, gap) .. ("\0"):rep(16 - #bytes) .. bytes:sub(gap + 1) or bytes
end


--- Reads an address.
--- @return string|nil bytes
--- @return string? message Go's
function M.read(text)
  local first = text:match "[.:%%]"
  local bytes, message, zone
  if first == "." then
    bytes, message = read_v4(text)
  elseif first == ":" then
    local address = text:match "^([^%%]*)"
    zone = text:match "%%(.*)$"
    bytes, message = read_v6(address)
  else
    message = first and "missing IPv6 address" or "unable to parse IP"
  end
  if not bytes then
    return nil, ("ParseAddr(%q): %s"):format(text, message)
  end
  return bytes, zone
end


-- The longest run of zero groups, of two or more: its first group and the one behind it.
local function longest_zeros(groups)
  local best, best_end, from = nil, nil, nil
  for i = 1, 9 do
    if i <= 8 and groups[i] == 0 then
      from = from or i
    elseif from then
      if i - from >= 2 and (not best or i - from > best_end - best) then
        best, best_end = from, i
      end
      from = nil
    end
  end
  return best, best_end
end


--- The canonical text of an address.
function M.write(bytes)
  if #bytes == 4 then
    return ("%d.%d.%d.%d"):format(bytes:byte(1, 4))
  elseif M.is_mapped(bytes) then
    return "::ffff:" .. M.write(bytes:sub(13))
  end
  local groups = { (">I2I2I2I2I2I2I2I2"):unpack(bytes) }
  local texts, zeros, behind = {}, longest_zeros(groups)
  for i = 1, 8 do
    texts[i] = ("%x"):format(groups[i])
  end
  if not zeros then
    return table.concat(texts, ":")
  end
  return table.concat(texts, ":", 1, zeros - 1) .. "::" .. table.concat(texts, ":", behind, 8)
end


--- Is it an IPv4 address within an IPv6 one?
function M.is_mapped(bytes)
  return #bytes == 16 and bytes:sub(1, 12) == ("\0"):rep(10) .. "\255\255"
end


--- The address with all bits behind the prefix cleared.
function M.mask(bytes, bits)
  local out = {}
  for i = 1, #bytes do
    local kept = math.max(0, math.min(8, bits - (i - 1) * 8))
    out[i] = bytes:byte(i) & (0xff00 >> kept) & 0xff
  end
  return string.char(table.unpack(out))
end


--- Reads "10.0.0.0/8".
--- @return string|nil bytes
--- @return integer|string bits, or Go's message
function M.read_network(text)
  local function refuse(message)
    return nil, ("netip.ParsePrefix(%q): %s"):format(text, message)
  end
  local address, length = text:match "^(.*)/([^/]*)$"
  if not address then
    return refuse "no '/'"
  end
  local bytes, zone = M.read(address)
  if not bytes then
    return refuse(zone)
  elseif zone then
    return refuse "IPv6 zones cannot be present in a prefix"
  elseif not length:find "^%d+$" or #length > 1 and length:find "^0" then
    return refuse(('bad bits after slash: %q'):format(length))
  elseif #length > 3 or tonumber(length) > #bytes * 8 then
    return fail("prefix length out of range")
  end
  return bytes, math.tointeger(tonumber(length))
end


return M
