--- The report of `moonloop test --coverage`: the lines of scripts that ran, as a table and in lcov's form (geninfo(1)),
--- and the fields of the specs that they reconcile which no test set.
local host = require "cluster.host"
local virtual = require "cluster.world"

local M = {}

local DEPTH_MAX = 30 -- of a schema: a longer path is cut

local set = {} -- kind → set of paths of fields, "spec.users[].name"
local schemas = {} -- kind → { schema of spec, … }, one for each version
local reconciled = {} -- set of kinds


-- {{{ fields

local function note_fields(value, path, into)
  into[path] = true
  for key, field in pairs(value) do
    local step = math.type(key) == "integer" and "[]" or "." .. key
    if type(field) == "table" then
      note_fields(field, path .. step, into)
    elseif field ~= host.json.null then
      into[path .. step] = true
    end
  end
end


--- A test writes an object, or changes to one.
function M.note_object(kind, object)
  if M.is_on and type(object.spec) == "table" then
    set[kind] = set[kind] or {}
    note_fields(object.spec, "spec", set[kind])
  end
end


--- A world has this CustomResourceDefinition.
function M.note_definition(definition)
  local spec = definition.spec
  local list = {}
  for i, version in ipairs(spec.versions) do
    local schema = version.schema and version.schema.openAPIV3Schema or {}
    list[i] = schema.properties and schema.properties.spec
  end
  schemas[spec.names.kind] = list
end


--- A world's operator has these controllers.
function M.note_controllers()
  for _, controller in ipairs(M.is_on and virtual.waiting().controllers or {}) do
    reconciled[controller.kind or ""] = true
  end
end


-- Adds the fields below that are not in `known`, without those below them.
local function add_missing(schema, path, known, missing, depth)
  if not known[path] then
    missing[path] = true
  elseif depth < DEPTH_MAX then
    for name, property in pairs(schema.properties or {}) do
      add_missing(property, ("%s.%s"):format(path, name), known, missing, depth + 1)
    end
    if type(schema.items) == "table" then
      add_missing(schema.items, path .. "[]", known, missing, depth + 1)
    end
  end
end


local function sorted(keys)
  local list = {}
  for key in pairs(keys) do
    list[#list + 1] = key
  end
  table.sort(list)
  return list
end


-- Lines about the fields that no test set.
local function fields_text()
  local lines = {}
  for _, kind in ipairs(sorted(reconciled)) do
    local missing = {}
    for _, schema in ipairs(schemas[kind] or {}) do
      add_missing(schema, "spec", set[kind] or {}, missing, 0)
    end
    local names = table.concat(sorted(missing), ", ")
    if names ~= "" then
      lines[#lines + 1] = ("fields of %s that no test set: %s\n"):format(kind, host.escape(names))
    end
  end
  return table.concat(lines)
end


-- }}}
-- {{{ lines

-- "3, 8-10" of the lines that did not run: neighbours among those that can run make a range.
local function ranges_of(lines)
  local ranges, first, last = {}, nil, nil
  local function close()
    if first then
      ranges[#ranges + 1] = first == last and tostring(first) or ("%d-%d"):format(first, last)
    end
    first = nil
  end
  for _, line in ipairs(lines) do
    if line[2] > 0 then
      close()
    else
      first, last = first or line[1], line[1]
    end
  end
  close()
  return table.concat(ranges, ", ")
end


local function count_run(lines)
  local count = 0
  for _, line in ipairs(lines) do
    count = count + (line[2] > 0 and 1 or 0)
  end
  return count
end


local function percent(run, all)
  return all == 0 and 100 or math.floor(1000 * run / all) / 10
end


local function table_of(files)
  local width, lines, all, run = #"all", {}, 0, 0
  for _, file in ipairs(files) do
    width = math.max(width, #file.file)
  end
  local row = "%-" .. width .. "s  %6s  %6s  %6s  %s"
  lines[1] = row:format("file", "lines", "run", "%", "not run")
  for _, file in ipairs(files) do
    local count = count_run(file.lines)
    all, run = all + #file.lines, run + count
    lines[#lines + 1] = row:format(file.file, #file.lines, count, percent(count, #file.lines), ranges_of(file.lines))
  end
  lines[#lines + 1] = row:format("all", all, run, percent(run, all), "")
  return (table.concat(lines, "\n"):gsub(" +\n", "\n"):gsub(" +$", "")) .. "\n"
end


local function lcov_of(files)
  local out = {}
  for _, file in ipairs(files) do
    out[#out + 1] = "TN:\nSF:" .. file.file
    for _, line in ipairs(file.lines) do
      out[#out + 1] = ("DA:%d,%d"):format(line[1], line[2])
    end
    out[#out + 1] = ("LF:%d\nLH:%d\nend_of_record"):format(#file.lines, count_run(file.lines))
  end
  out[#out + 1] = ""
  return table.concat(out, "\n")
end


-- }}}

--- Writes the report. @param path string of lcov's file; "": none  @param out file that gets the table
--- Raises when the file cannot be written.
function M.report(path, out)
  local files = assert(virtual.coverage())
  out:write("\n", table_of(files), fields_text())
  if path == "" then
    return
  end
  local file, why = io.open(path, "w")
  local ok = file and file:write(lcov_of(files)) and file:close()
  if not ok then
    error(("--coverage=%s: %s"):format(host.escape(path), host.escape(why or "it cannot be written")), 0)
  end
end


return M
