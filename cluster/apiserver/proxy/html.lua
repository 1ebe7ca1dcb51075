--- Rewrites the links in a page, as it comes. Everything else stays byte for byte as it was.
---
---   local page = html.new(rewrite)
---   page:feed(bytes)   -- what can be passed on already
---   page:finish()      -- the rest
---
--- A tag of more than 8 KiB is passed on as it is. Pages are read as UTF-8.
--- Rules: apimachinery/pkg/util/proxy/transport.go (the attributes), the HTML standard's tokenization.
local M = {}
M.__index = M

local TAG_MAX = 8 * 1024

local function set(text)
  local names = {}
  for name in text:gmatch "%S+" do
    names[name] = true
  end
  return names
end

-- By element, the attributes that hold URLs.
local LINKS = {
  a = set "href", applet = set "codebase", area = set "href", audio = set "src", base = set "href",
  blockquote = set "cite", body = set "background", button = set "formaction", command = set "icon",
  del = set "cite", embed = set "src", form = set "action", frame = set "longdesc src", head = set "profile",
  html = set "manifest", iframe = set "longdesc src", img = set "longdesc src usemap",
  input = set "src usemap formaction", ins = set "cite", link = set "href",
  object = set "classid codebase data usemap", q = set "cite", script = set "src", source = set "src",
  video = set "poster src",
}

-- Elements whose text has no tags.
local RAW = set "iframe noembed noframes plaintext script style textarea title xmp"

local ENTITIES = { amp = "&", lt = "<", gt = ">", quot = '"', apos = "'", ["#39"] = "'", ["#34"] = '"' }
local ESCAPES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&#34;", ["'"] = "&#39;" }


--- @param rewrite function(link) -> link, or nil for one to leave
function M.new(rewrite)
  return setmetatable({ rewrite = rewrite, rest = "" }, M)
end


-- One attribute behind its name. @return position behind its value, or nil: its end has not come; and where the value
-- is, with its quotes, if there is one
local function read_value(text, at)
  local equals = text:find("%S", at)
  if not equals then
    return nil
  elseif text:sub(equals, equals) ~= "=" then
    return at
  end
  local from = text:find("%S", equals + 1)
  local first = from and text:sub(from, from)
  if first == ">" then
    return from
  elseif first == '"' or first == "'" then
    local to = text:find(first, from + 1, true)
    return to and to + 1, from, to
  end
  local stop = from and text:find("[%s>]", from)
  return stop, from, stop and stop - 1
end


-- The start tag that begins at `at`. @return end of the tag, or nil: it has not come; name; list of attributes
local function read_tag(text, at)
  local name = text:match("^%a[^%s/>]*", at + 1)
  local position, attributes = at + 1 + #name, {}
  while true do
    position = text:find("[^%s/]", position)
    if not position then
      return nil
    elseif text:sub(position, position) == ">" then
      return position, name:lower(), attributes
    end
    local stop = text:find("[%s/>=]", position + 1)
    if not stop then
      return nil
    end
    local after, from, to = read_value(text, stop)
    if not after then
      return nil
    elseif from then
      attributes[#attributes + 1] = { name = text:sub(position, stop - 1):lower(), from = from, to = to }
    end
    position = after
  end
end


local function unescape(value)
  return (value:gsub("&([#%w]+);", function(entity)
    return ENTITIES[entity]
  end))
end


-- The value of a link's attribute as it is to be, with quotes; nil: as it was.
function M:changed(written)
  local value = unescape(written:match "^[\"'](.*)[\"']$" or written)
  local link = self.rewrite(value)
  if link and link ~= value then
    return '"' .. link:gsub("[&<>\"']", ESCAPES) .. '"'
  end
end


-- The tag with its links rewritten.
function M:rewritten(text, at, stop, name, attributes)
  local parts, links = {}, LINKS[name] or {}
  for _, attribute in ipairs(attributes) do
    local value = links[attribute.name] and self:changed(text:sub(attribute.from, attribute.to))
    if value then
      parts[#parts + 1] = text:sub(at, attribute.from - 1) .. value
      at = attribute.to + 1
    end
  end
  parts[#parts + 1] = text:sub(at, stop)
  return table.concat(parts)
end


-- Passes on up to the text that ends what has no tags. @return position behind it, or nil and what to keep
local function skip(self, text, at, out)
  local ends = self.skipping
  local stop, last = text:lower():find(ends, at, true)
  if stop then
    self.skipping = nil
    out[#out + 1] = text:sub(at, last)
    return last + 1
  end
  local kept = math.max(#text - #ends + 2, at) -- it may have begun
  out[#out + 1] = text:sub(at, kept - 1)
  return nil, kept
end


-- Passes on markup, which begins with "<". @return position behind it, or nil and what to keep
local function pass_markup(self, text, at, out)
  local lead = text:sub(at, at + 3)
  if lead:find "^<%a" then
    local stop, name, attributes = read_tag(text, at)
    if stop then
      out[#out + 1] = self:rewritten(text, at, stop, name, attributes)
      self.skipping = RAW[name] and "</" .. name or nil
      return stop + 1
    elseif #text - at < TAG_MAX then
      return nil, at
    end
  elseif lead == "<" or lead == "<!" or lead == "<!-" then
    return nil, at
  elseif lead:find "^<[!/?]" then
    self.skipping = lead == "<!--" and "-->" or ">"
    out[#out + 1] = text:sub(at, at + 1)
    return at + 2
  end
  out[#out + 1] = "<"
  return at + 1
end


--- @return string what can be passed on
function M:feed(bytes)
  local text, out, at = self.rest .. bytes, {}, 1
  local kept = #text + 1
  while at and at <= #text do
    local start = not self.skipping and text:find("<", at, true)
    if self.skipping then
      at, kept = skip(self, text, at, out)
    elseif start then
      out[#out + 1] = text:sub(at, start - 1)
      at, kept = pass_markup(self, text, start, out)
    else
      out[#out + 1] = text:sub(at)
      at = #text + 1
    end
    kept = kept or #text + 1
  end
  self.rest = text:sub(kept)
  return table.concat(out)
end


--- @return string what was kept: a tag without an end
function M:finish()
  return self.rest
end


return M
