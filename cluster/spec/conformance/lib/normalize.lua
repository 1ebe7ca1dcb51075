--- Makes the answers of two servers comparable, by the rules of rules.lua. One normalizer serves one run of one
--- scenario: it remembers which values it has met.
local host = require "cluster.host"
local rules = require "cluster.spec.conformance.rules"

local M = {}
M.__index = M

local null = host.json.null


--- A normalizer for a scenario.
---@param text string the scenario's text without comments; times that stand in it are left alone
---@param variables table<string, string> NS and GROUP, whose values become $NS and $GROUP
function M.new(text, variables)
  local self = setmetatable({ text = text, counts = {}, numbers = {}, literals = {}, prefixes = {} }, M)
  for _, name in ipairs { "NS", "GROUP", "TMP" } do
    self:learn(variables[name], "$" .. name)
  end
  return self
end


--- From now on `value` reads `shown` wherever it stands.
function M:learn(value, shown)
  if value and value ~= "" and not self.literals[value] then
    self.literals[value] = shown
    self.literals[#self.literals + 1] = value
  end
end


--- A request sent this prefix for the server to complete: answers show the name even where it is refused.
function M:expect_generated(prefix)
  self.prefixes[#self.prefixes + 1] = prefix:gsub("%W", "%%%0")
end


-- "<uid 2>": the same number for the same value.
function M:number(word, value)
  local key = word .. "\0" .. value
  if not self.numbers[key] then
    self.counts[word] = (self.counts[word] or 0) + 1
    self.numbers[key] = ("<%s %d>"):format(word, self.counts[word])
  end
  return self.numbers[key]
end


local function replace_plain(text, value, shown)
  local from, to = text:find(value, 1, true)
  if not from then
    return text
  end
  return text:sub(1, from - 1) .. shown .. replace_plain(text:sub(to + 1), value, shown)
end


function M:apply_pattern(text, rule)
  return (text:gsub(rule[1], function(found)
    if self.text:find(found, 1, true) then
      return found
    end
    return rule.numbered and self:number(rule[2], found) or "<" .. rule[2] .. ">"
  end))
end


local function hide(text, list)
  for _, rule in ipairs(list) do
    text = text:gsub(rule[1], function(before, after)
      local from, to = type(before) == "string" and before or "", type(after) == "string" and after or ""
      return from .. "<" .. rule[2] .. ">" .. to
    end)
  end
  return text
end


-- Messages that show a whole object show its keys in an order that means nothing.
function M:shown_objects(text)
  return (text:gsub('"({.-})": ', function(quoted)
    local value = host.json.decode((quoted:gsub("\\(.)", "%1")))
    return value and "<" .. host.json.encode(self:value(value)) .. ">: "
  end))
end


--- A string as it is compared.
function M:string(text)
  if text:find('Invalid value: "{', 1, true) then
    text = self:shown_objects(text)
  end
  for _, value in ipairs(self.literals) do
    text = replace_plain(text, value, self.literals[value])
  end
  for _, prefix in ipairs(self.prefixes) do
    text = text:gsub("(" .. prefix .. ")(" .. rules.random_suffix .. ")%f[^%w]", function(before, random)
      return before .. self:number("random", random)
    end)
  end
  for _, rule in ipairs(rules.patterns) do
    text = self:apply_pattern(text, rule)
  end
  return hide(text, rules.sentences)
end


--- A command's output in the form for comparison: widths of columns differ with the values in them.
function M:printed(text)
  text = hide(self:string(text), rules.printed)
  return (text:gsub("[ \t]+\n", "\n"):gsub("(%S)   +", "%1  "))
end


-- Lists and bookmarks show where the server's clock of versions stands; on a server that others use too, nobody
-- can tell what it says.
local function is_collection(value)
  return value.items ~= nil or value.rows ~= nil
end


local function by_manager(a, b)
  local function key(entry)
    return table.concat({ entry.operation or "", entry.manager or "", entry.apiVersion or "",
      entry.subresource or "" }, "\0")
  end
  return key(a) < key(b)
end


function M:field(key, value)
  local made_up = math.type(value) or (type(value) == "string" and value ~= "" and value ~= "<version>")
  if made_up and rules.hidden[key] then
    return "<" .. rules.hidden[key] .. ">"
  elseif made_up and rules.numbered[key] then
    return self:number(rules.numbered[key], tostring(value))
  end
  return self:value(value)
end


-- Names that the server completed, and the order of managers, which hangs on whole seconds.
function M:metadata(metadata)
  local prefix, name = metadata.generateName, metadata.name
  if type(prefix) == "string" and type(name) == "string" and #name > #prefix and name:sub(1, #prefix) == prefix then
    self:learn(name, prefix .. self:number("random", name))
  end
  if type(metadata.managedFields) == "table" then
    table.sort(metadata.managedFields, by_manager)
  end
end


local function by_field(a, b)
  return a.field .. "\0" .. a.message < b.field .. "\0" .. b.message
end


local function by_message(a, b)
  return a.message .. "\0" .. a.field < b.message .. "\0" .. b.field
end


-- Sorts the causes of a refused custom object: the server tells them in another order each time.
local function sort_causes(status)
  local causes = status.details.causes
  table.sort(causes, by_field)
  local parts = {}
  for i, cause in ipairs(causes) do
    parts[i] = cause.field .. ": " .. cause.message
  end
  status.message = status.message:gsub("%[.*%]$", function() return "[" .. table.concat(parts, ", ") .. "]" end)
end


local function is_custom_refusal(value)
  local details = value.reason == "Invalid" and type(value.details) == "table" and value.details
  return details and type(details.causes) == "table" and (details.group or ""):find("%.conformance%.dev$") ~= nil
end


-- Whose fields are in the way the server also tells in any order.
local function is_apply_conflict(value)
  local details = value.reason == "Conflict" and type(value.details) == "table" and value.details
  local causes = details and details.causes
  return type(causes) == "table" and causes[1] ~= nil and causes[1].reason == "FieldManagerConflict"
end


-- Ages stand in tables as text, in columns that the head names. Of a watch only the first table has a head.
function M:hide_ages(head)
  self.columns = head.columnDefinitions ~= null and head.columnDefinitions or self.columns
  for i, column in ipairs(self.columns or {}) do
    for _, row in ipairs(rules.age_columns[column.name] and head.rows or {}) do
      row.cells[i] = row.cells[i] ~= null and "<age>" or null
    end
  end
end


function M:table(value)
  local is_list = host.json.is_array(value)
  if is_list then
    local list = host.json.array {}
    for i, item in ipairs(value) do
      list[i] = self:value(item)
    end
    return list
  end
  local keys, result = {}, {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  for _, key in ipairs(keys) do
    result[self:string(key)] = self:field(key, value[key])
  end
  return result
end


--- A JSON value as it is compared. `value` itself may be changed.
function M:value(value)
  if type(value) == "string" then
    return self:string(value)
  elseif value == null or type(value) ~= "table" then
    return value
  end
  if type(value.metadata) == "table" then
    self:metadata(value.metadata)
    if is_collection(value) and value.metadata.resourceVersion then
      value.metadata.resourceVersion = "<version>"
    end
  end
  if is_custom_refusal(value) then
    sort_causes(value)
  elseif is_apply_conflict(value) then
    table.sort(value.details.causes, by_message)
  end
  if value.columnDefinitions and type(value.rows) == "table" then
    self:hide_ages(value)
  end
  return self:table(value)
end


--- The headers of an answer that are compared.
function M:headers(headers)
  local kept = {}
  for _, name in ipairs(rules.headers) do
    kept[name] = headers[name] and self:string(headers[name])
  end
  if kept.warning then
    -- One header with several warnings says what several headers say.
    kept.warning = kept.warning:gsub('", 299 %- "', '"\n299 - "')
  end
  return kept
end


return M
