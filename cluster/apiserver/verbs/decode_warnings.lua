--- Messages about unknown fields and duplicate keys.
---
--- Built-in kinds are decoded by their Go types, which report in the order of the text. For other kinds duplicate keys
--- come first, then removed fields.
--- Rules and wordings: sigs.k8s.io/json (strict decoding), apiextensions-apiserver (schema coercing decoder).
local status = require "cluster.apiserver.status"

-- Records the byte position of each key of a JSON text, for `seen(path, position)`.
local Walk = {}
Walk.__index = Walk


function Walk:skip()
  self.at = self.text:find("[^ \t\r\n,:]", self.at) or #self.text + 1
end


function Walk:string()
  local start = self.at + 1
  local stop = start
  while true do
    stop = self.text:find('["\\]', stop)
    if not stop or self.text:byte(stop) == 34 then
      break
    end
    stop = stop + 2
  end
  stop = stop or #self.text
  self.at = stop + 1
  return self.text:sub(start, stop - 1)
end


function Walk:object(path)
  self.at = self.at + 1
  self:skip()
  while self.text:sub(self.at, self.at) == '"' do
    local position = self.at
    local key = self:string()
    local inner = path == "" and key or path .. "." .. key
    self.on_field(inner, position)
    self:value(inner)
    self:skip()
  end
  self.at = self.at + 1
end


function Walk:array(path)
  self.at = self.at + 1
  self:skip()
  local index = 0
  while self.at <= #self.text and self.text:sub(self.at, self.at) ~= "]" do
    self:value(("%s[%d]"):format(path, index))
    index = index + 1
    self:skip()
  end
  self.at = self.at + 1
end


function Walk:value(path)
  self:skip()
  local char = self.text:sub(self.at, self.at)
  if char == "{" then
    self:object(path)
  elseif char == "[" then
    self:array(path)
  elseif char == '"' then
    self:string()
  else
    self.at = self.text:find("[,%]} \t\r\n]", self.at) or #self.text + 1
  end
end


-- Where the keys stand that are complained of: path → position of the first, and of the second of a key that came
-- twice.
local function positions_of(text)
  local first, second = {}, {}
  setmetatable({ text = text, at = 1, on_field = function(path, position)
    if first[path] then
      second[path] = second[path] or position
    else
      first[path] = position
    end
  end }, Walk):value("")
  return first, second
end


--- @param res table the kind  @param text string|nil the JSON text that was read; nil when it was protobuf
--- @param duplicates table paths in the order of the text; `yaml` is a complaint that comes before all others
--- @param unknown table sorted paths
--- @return table list of messages; of more than status.ERRORS_MAX unknown fields, or keys that came twice, the first
return function(res, text, duplicates, unknown)
  local list = {}
  if #duplicates + #unknown == 0 then
    return { duplicates.yaml }
  end
  local first, second = {}, {}
  if res.builtin and text then
    first, second = positions_of(text)
  end
  local function add(word, paths, positions)
    for i = 1, math.min(#paths, status.ERRORS_MAX) do
      local path = paths[i]
      list[#list + 1] = {
        text = ('%s field "%s"'):format(word, path), place = positions[path] or math.huge, number = #list,
      }
    end
  end
  add("duplicate", duplicates, second)
  add("unknown", unknown, first)
  table.sort(list, function(a, b)
    if a.place ~= b.place then
      return a.place < b.place
    end
    return a.number < b.number
  end)
  for i, item in ipairs(list) do
    list[i] = item.text
  end
  if duplicates.yaml then
    table.insert(list, 1, duplicates.yaml)
  end
  return list
end
