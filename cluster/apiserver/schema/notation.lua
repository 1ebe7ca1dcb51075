--- Parses the notation of kinds/types/*.lua, one definition at a time.
---
--- A definition is a text of lines; a line that starts with blanks continues the line before. Lines that start
--- with "@" are about the whole definition:
---     @kind            a kind of its package's group version; has apiVersion and kind besides its fields
---     @kinds           a kind that every group version has (DeleteOptions)
---     @atomic          x-kubernetes-map-type of the object
---     @type T          no fields at all: any, object, date-time
--- Each other line is a field: its name, its type, further properties, and its number in protobuf:
---     ports []ServicePort map(port,protocol) patch:merge(port) #1
---     protocol string ="TCP" {SCTP|TCP|UDP} go:v1.Protocol #4
---     status *PodStatus #3
--- Types: string bytes bool int32 int64 integer double object, []T a list, {}T a map from strings; other words name
--- a definition of the same package, or of another one with its alias before a dot ("meta.ObjectMeta"). A "*" says
--- that the Go type is a pointer.
--- The mark after a name:
---     none   optional, and is not written when it is empty (Go's omitempty)
---     "!"    required, and is always written
---     "+"    optional, and is always written
---     "-"    required, and is not written when it is empty
--- As in Go, a type that is not a pointer has a zero value, which the API publishes as its default: {} for structs;
--- "", 0 or false for scalars that are always written, and for items. Other defaults stand after "=", as JSON.
--- atomic, set, map(KEYS) say how lists are merged, atomic and granular how maps are, patch:STRATEGY(KEY) how a
--- strategic merge patch treats the field. {A|B} lists the values allowed, of each item when the field is a list.
--- go:NAME is the name of the Go type, if it differs from the name that the notation's type would have. in:NAME is the
--- embedded Go type that the field belongs to; its number is then a path (#2.1). omitzero: an instant that is not a
--- pointer and is still not written when it is not set.
local packages = require "cluster.kinds.packages"

local M = {}

local SCALARS = {
  string = { type = "string" },
  bytes = { type = "string", format = "byte" },
  bool = { type = "boolean" },
  integer = { type = "integer" },
  int32 = { type = "integer", format = "int32" },
  int64 = { type = "integer", format = "int64" },
  number = { type = "number" },
  double = { type = "number", format = "double" },
  object = { type = "object" },
}

--- The packages of definitions, by alias. The version is v1 where none is given.
M.packages = packages

--- Definitions that stand alone in their packages, by the words for them.
M.words = {
  Quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity",
  IntOrString = "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
  RawExtension = "io.k8s.apimachinery.pkg.runtime.RawExtension",
}


local function full_name(word, package)
  if M.words[word] then
    return M.words[word]
  end
  local alias, short = word:match "^(%l+)%.(%w+)$"
  if alias then
    return M.packages[alias].name .. "." .. short
  end
  return package.name .. "." .. word
end


-- A type: { list = type }, { map = type }, { ref = full name }, or { type =, format = }.
local function read_type(word, package)
  local prefix, rest = word:match "^([%[{][%]}])(.+)$"
  if prefix == "[]" then
    return { list = read_type(rest, package) }
  elseif prefix then
    return { map = read_type(rest, package) }
  end
  return SCALARS[word] or { ref = full_name(word, package) }
end


local function split(text, separator)
  local list = {}
  for item in (text .. separator):gmatch("([^" .. separator .. "]*)" .. separator) do
    list[#list + 1] = item
  end
  return list
end


local function read_default(text)
  if text == "false" then
    return false
  end
  return tonumber(text) or text:match '^"(.*)"$'
end


local function read_merge_rule(field, word)
  if word:find "^map%(" then
    field.list_type, field.list_keys = "map", split(word:sub(5, -2), ",")
  elseif field.type.list then
    field.list_type = word
  else
    field.map_type = word
  end
end


-- Reads one word behind the type of a field; its first character, or the whole word, tells which rule it is.
local function read_rule(field, word)
  local first = word:sub(1, 1)
  if first == "#" then
    field.number = word:sub(2)
  elseif first == "=" then
    field.default = read_default(word:sub(2))
  elseif first == "{" then
    field.enum = split(word:sub(2, -2), "|")
  elseif word:find "^go:" then
    field.go_type = word:sub(4)
  elseif word:find "^in:" then
    field.embedded = word:sub(4)
  elseif word == "omitzero" then
    field.omitzero = true
  elseif word:find "^patch:" then
    field.patch, field.merge_key = word:match "^patch:([%a,]+)%(?([^)]*)"
    field.merge_key = field.merge_key ~= "" and field.merge_key or nil
  else
    read_merge_rule(field, word)
  end
end


local function read_field(line, package)
  local name, mark, pointer, type_word, rest = line:match "^(%S-)([!+-]?) (%*?)(%S+)(.*)$"
  local field = {
    name = name,
    required = mark == "!" or mark == "-",
    written = mark == "!" or mark == "+",
    pointer = pointer ~= "",
    type = read_type(type_word, package),
  }
  for word in rest:gmatch "%S+" do
    read_rule(field, word)
  end
  return field
end


local function read_directive(definition, line)
  local word, rest = line:match "^@(%l+) ?(.*)$"
  if word == "type" then
    definition.plain = rest
  elseif word == "atomic" then
    definition.map_type = word
  else
    definition.kind = word
  end
end


local STRING_FIELD = { required = false, written = false, pointer = false, type = SCALARS.string }


local function text_field(name)
  return setmetatable({ name = name }, { __index = STRING_FIELD })
end


--- Reads one definition. `package` is one of `M.packages`.
--- Returns { kind = nil|"kind"|"kinds", map_type =, plain = nil|"any"|"object"|"date-time", fields = {…} sorted by
--- name }; a field is { name =, required =, written =, pointer =, type =, default =, enum =, list_type =, list_keys =,
--- map_type =, patch =, merge_key =, go_type =, embedded =, omitzero =, number = (a text) }.
function M.read(text, package)
  local definition = { fields = {} }
  if text:find("\n ", 1, true) then
    text = text:gsub("|\n +", "|"):gsub("\n +", " ")
  end
  for line in text:gmatch "[^\n]+" do
    if line:sub(1, 1) == "@" then
      read_directive(definition, line)
    else
      definition.fields[#definition.fields + 1] = read_field(line, package)
    end
  end
  if definition.kind == "kind" then
    table.insert(definition.fields, text_field "apiVersion")
    table.insert(definition.fields, text_field "kind")
    table.sort(definition.fields, function(a, b)
      return a.name < b.name
    end)
  end
  return definition
end


return M
