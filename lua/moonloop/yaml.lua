-- YAML for scripts. The host's reader reads it, as kubectl does (docs/decisions/0011). Both read the text that is
-- written here as the same value.
local _, host = ...

local M = {}

local KEY_MAX = 500 -- bytes; readers take a longer one only after "? "

-- Plain scalars, in lower case, that kubectl does not read as text. Texts that begin with a digit, a sign or a point
-- are quoted anyway.
local WORDS = {}
for word in ("y n yes no on off true false null"):gmatch "%a+" do
  WORDS[word] = true
end



-- Returns the escape of one character in UTF-8; nil if it needs none.
local function escape_of(character)
  local code = utf8.codepoint(character)
  local is_special = code >= 0x7f and code < 0xa0 or code == 0x2028 or code == 0x2029 or code == 0xfeff
    or code >= 0xfffe and code <= 0xffff
  return is_special and ("\\u%04x"):format(code) or nil
end


local function is_printable(text)
  if text:find "[\0-\9\11-\31\127]" then
    return false
  end
  for character in text:gmatch(utf8.charpattern) do
    if #character > 1 and escape_of(character) then
      return false
    end
  end
  return true
end


local function is_plain(text)
  return text:find "^[%a_/][%w_./:@ -]*$" and not text:find ":[ :]" and not text:find "[ :]$"
    and not WORDS[text:lower()]
end


local function quoted(text)
  local json = host.encode(text)
  return json:find "[\x7f-\xff]" and json:gsub(utf8.charpattern, escape_of) or json
end


-- Returns true if a block, "|" with a line for each of its lines, would be read as the same text.
local function is_block(text)
  return text:find "\n" and not text:find "^[ \n]" and not text:find "\n\n$" and not text:find "\n +\n"
    and not text:find "\n +$" and is_printable(text)
end


local function block(text, indent)
  local margin = (" "):rep(indent)
  local body = text:gsub("\n$", "")
  return (text:find "\n$" and "|\n" or "|-\n") .. margin .. body:gsub("\n([^\n])", "\n" .. margin .. "%1")
end


-- A value that begins on the line of its key; `indent`: where the lines of a block begin.
local function scalar(value, indent)
  if type(value) == "string" then
    return is_plain(value) and value or is_block(value) and block(value, indent) or (quoted(value))
  elseif type(value) == "table" then
    return host.is_list(value) and "[]" or "{}"
  elseif type(value) == "userdata" and value ~= host.null then
    error(("yaml.encode(value): readers of YAML do not hold the number %s"):format(tostring(value)), 0)
  end
  -- Readers turn a float without a fraction into an integer; this writes the integer that is equal to it.
  return host.encode(math.type(value) == "float" and math.tointeger(value) or value)
end


local write


-- The key with its colon.
local function head_of(key, margin)
  local text = is_plain(key) and key or (quoted(key))
  return #text > KEY_MAX and ("? %s\n%s:"):format(text, margin) or text .. ":"
end


local function write_object(out, object, indent, margin)
  for key, value in pairs(object) do
    out[#out + 1] = (#out > 0 and out[#out]:sub(-1) == "\n" and margin or "") .. head_of(key, margin)
    if type(value) == "table" and next(value) ~= nil then
      out[#out + 1] = "\n"
      write(out, value, host.is_list(value) and indent or indent + 2)
    else
      out[#out + 1] = " " .. scalar(value, indent + 2) .. "\n"
    end
  end
end


local function write_list(out, list, indent, margin)
  for _, value in ipairs(list) do
    out[#out + 1] = (#out > 0 and out[#out]:sub(-1) == "\n" and margin or "") .. "- "
    if type(value) == "table" and next(value) ~= nil then
      write(out, value, indent + 2)
    else
      out[#out + 1] = scalar(value, indent + 2) .. "\n"
    end
  end
end


-- Appends lines to `out`, indented by so many spaces; the first one goes on where `out` ends.
function write(out, value, indent)
  local margin = (" "):rep(indent)
  if host.is_list(value) then
    write_list(out, value, indent, margin)
  else
    write_object(out, value, indent, margin)
  end
end


--- The YAML of a value, one document. Keys of plain tables are sorted, those of an object keep its order.
---@param value any as for cjson.encode, which raises the same errors
---@return string text
function M.encode(value)
  value = host.plain(value)
  if type(value) ~= "table" or next(value) == nil then
    return scalar(value, 2) .. "\n"
  end
  local out = {}
  write(out, value, 0)
  return table.concat(out)
end


--- The value of a text with one document; moonloop.null when it has none.
---@param text string at most 1 MiB
---@return any value nil when it is no YAML
---@return string? why, with its line
function M.decode(text)
  if type(text) ~= "string" then
    error("yaml.decode(text): expected a string, got a " .. type(text), 2)
  end
  return host.yaml_decode(text)
end


return M
