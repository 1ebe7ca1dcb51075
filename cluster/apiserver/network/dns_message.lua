--- Messages of DNS: reads a query, writes its answer. Queries come from pods: anything may be in them.
---
--- Rules: RFC 1035 section 4, RFC 2782 (SRV), RFC 6891 (EDNS: how long an answer may be).
local M = {}

M.TYPES = { A = 1, CNAME = 5, PTR = 12, AAAA = 28, SRV = 33, ANY = 255 }
M.OK, M.MALFORMED, M.FAILED, M.NO_NAME, M.NOT_SERVED, M.REFUSED = 0, 1, 2, 3, 4, 5

local ADDRESS_SIZES = { [1] = 4, [28] = 16 } -- A, AAAA
local OPT, INTERNET = 41, 1
local HEAD = 12
local LABEL_MAX, NAME_MAX = 63, 255
local SIZE, SIZE_MAX = 512, 1232 -- bytes of an answer: without EDNS, and at most
local IS_ANSWER, IS_OURS, IS_CUT, MAY_RECURSE = 0x8000, 0x0400, 0x0200, 0x0080
local OPCODE, WANTS_RECURSION = 0x7800, 0x0100
local TTL = 5 -- seconds


-- @return string|nil name, without the dot at its end, or nil when it is no name; integer the place behind it
local function read_name(bytes, at)
  local labels, size = {}, 0
  while true do
    local len = bytes:byte(at)
    if not len or len > LABEL_MAX or at + len > #bytes then
      return nil, at -- also a pointer: there is nothing in front of a question to point at
    elseif len == 0 then
      return table.concat(labels, "."), at + 1
    end
    size = size + len + 1
    if size >= NAME_MAX then
      return nil, at
    end
    labels[#labels + 1] = bytes:sub(at + 1, at + len)
    at = at + len + 1
  end
end


-- How long the answer may be, if an OPT record right behind the question says so. @return integer|nil
local function read_size(bytes, at, others, additional)
  if others > 0 or additional == 0 or #bytes - at + 1 < 11 then
    return nil
  end
  local root, type, size = (">B I2 I2"):unpack(bytes, at)
  if root == 0 and type == OPT then
    return math.max(SIZE, math.min(size, SIZE_MAX))
  end
end


--- Reads a query.
--- @param most integer? bytes that its answer may have; as the query itself says, if nothing else does
--- @return table|nil query { name = in lower case without the last dot, type =, rcode = what is wrong, or nil }, and
---   what write needs; nil when there is nobody to answer
function M.read(bytes, most)
  if #bytes < HEAD then
    return nil
  end
  local id, flags, questions, answers, authorities, additional = (">I2 I2 I2 I2 I2 I2"):unpack(bytes)
  if flags & IS_ANSWER ~= 0 then
    return nil
  end
  local query = { id = id, flags = flags & (OPCODE | WANTS_RECURSION), question = "", room = most or SIZE }
  if flags & OPCODE ~= 0 then
    query.rcode = M.NOT_SERVED
    return query
  end
  local name, at = read_name(bytes, HEAD + 1)
  if questions ~= 1 or not name or #bytes - at + 1 < 4 then
    query.rcode = M.MALFORMED
    return query
  end
  local type, class = (">I2 I2"):unpack(bytes, at)
  query.name, query.type = name:lower(), type
  query.question = bytes:sub(HEAD + 1, at + 3)
  query.size = read_size(bytes, at + 4, answers + authorities, additional)
  query.room = most or query.size or SIZE
  query.rcode = class ~= INTERNET and M.REFUSED or nil
  return query
end


--- The same message with another number.
function M.with_id(bytes, id)
  return (">I2"):pack(id) .. bytes:sub(3)
end


--- The code of an answer, if it is an answer to this query, sent with this number; else nil.
--- @return integer|nil rcode
function M.rcode_of(bytes, id, query)
  if #bytes < HEAD then
    return nil
  end
  local its_id, flags, questions = (">I2 I2 I2"):unpack(bytes)
  local question = bytes:sub(HEAD + 1, HEAD + #query.question)
  local is_answer = its_id == id and flags & IS_ANSWER ~= 0 and questions == 1
  return is_answer and question:lower() == query.question:lower() and flags & 15 or nil
end


local function name_bytes(name)
  local parts = {}
  for label in name:gmatch "[^.]+" do
    parts[#parts + 1] = string.char(#label) .. label
  end
  return table.concat(parts) .. "\0"
end


--- A query with the number 0.
--- @param name string one that fits a message  @param type integer
function M.query(name, type)
  return (">I2 I2 I2 I2 I2 I2"):pack(0, WANTS_RECURSION, 1, 0, 0, 0) .. name_bytes(name)
    .. (">I2 I2"):pack(type, INTERNET)
end


-- The place behind a name, which may end in a pointer; nil when the bytes end before.
local function skip_name(bytes, at)
  while true do
    local len = bytes:byte(at)
    if not len then
      return nil
    elseif len == 0 then
      return at + 1
    elseif len > LABEL_MAX then
      return at + 2
    end
    at = at + len + 1
  end
end


--- The addresses in an answer, which rcode_of has accepted: as far as it can be read, it may come from anybody.
--- @param query table that it answers
--- @return table records as write takes them
function M.addresses(bytes, query)
  local list, at = {}, HEAD + #query.question + 1
  for _ = 1, (">I2"):unpack(bytes, 7) do
    at = skip_name(bytes, at)
    if not at or at + 9 > #bytes then
      break
    end
    local type, class, _, len = (">I2 I2 I4 I2"):unpack(bytes, at)
    local data = bytes:sub(at + 10, at + 9 + len)
    if type == query.type and class == INTERNET and #data == ADDRESS_SIZES[type] then
      list[#list + 1] = { type = type == M.TYPES.A and "A" or "AAAA", data = data }
    end
    at = at + 10 + len
  end
  return list
end


local function address_bytes(address)
  local a, b, c, d = address:match "^(%d+)%.(%d+)%.(%d+)%.(%d+)$"
  return string.char(a, b, c, d)
end

local DATA = {
  A = function(record)
    return address_bytes(record.address)
  end,
  CNAME = function(record)
    return name_bytes(record.target)
  end,
  PTR = function(record)
    return name_bytes(record.target)
  end,
  SRV = function(record)
    return (">I2 I2 I2"):pack(0, 100, record.port) .. name_bytes(record.target)
  end,
}


local function record_bytes(query, record)
  local owner = (record.name or query.name) == query.name and "\xC0\x0C" or name_bytes(record.name)
  local data = record.data or DATA[record.type](record)
  return owner .. (">I2 I2 I4 s2"):pack(M.TYPES[record.type], INTERNET, TTL, data)
end


--- True for an answer that says that there is more of it than it holds.
function M.is_cut(bytes)
  return (">I2"):unpack(bytes, 3) & IS_CUT ~= 0
end


--- The answer to a query: as many of the records as there is room for. One that lacks some says so.
--- @param query table as read
--- @param rcode integer
--- @param records table list of { type = "A", address = }, { type = "CNAME" or "PTR", target = } and
---   { type = "SRV", target =, port = }, each with `name` when that is not what was asked for, or with `data` as it is
---   in messages
function M.write(query, rcode, records)
  local opt = query.size and ("\0" .. (">I2 I2 I4 I2"):pack(OPT, SIZE_MAX, 0, 0)) or ""
  local room = query.room - HEAD - #query.question - #opt
  local parts, cut = {}, 0
  for _, record in ipairs(records) do
    local bytes = record_bytes(query, record)
    room = room - #bytes
    if room < 0 then
      cut = IS_CUT
      break
    end
    parts[#parts + 1] = bytes
  end
  local head = (">I2 I2 I2 I2 I2 I2"):pack(query.id, query.flags | IS_ANSWER | IS_OURS | MAY_RECURSE | cut | rcode,
    query.question ~= "" and 1 or 0, #parts, 0, opt ~= "" and 1 or 0)
  return head .. query.question .. table.concat(parts) .. opt
end


return M
