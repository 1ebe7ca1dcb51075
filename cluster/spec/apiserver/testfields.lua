--- Reads docs/fields.md, and finds what is wrong with it.
---
--- A row of the page is about fields of a type, or of several that are alike; without a type it is about those of the
--- row above. These rows are a *section*. `*` stands for all fields that no other row of the section names. A row says
--- one of:
---   acts   by files of cluster/: each has the name of each of these fields
---   waits  the same, and nothing below these fields counts: a pod that has one of them waits
---   kept   by a row of "Kept, and nothing acts on it" in docs/embedded-server.md, which names these fields
local builtin = require "cluster.apiserver.schema.builtin"

local M = {}

--- The kinds whose fields the page is about.
M.KINDS = {
  { "", "Pod" }, { "", "Service" }, { "", "PersistentVolume" }, { "", "PersistentVolumeClaim" }, { "", "Node" },
  { "", "Namespace" }, { "apps", "Deployment" }, { "apps", "ReplicaSet" }, { "apps", "StatefulSet" },
  { "apps", "DaemonSet" }, { "batch", "Job" }, { "batch", "CronJob" },
}

local PARTS = { metadata = true, spec = true, status = true }
local WORDS = { acts = true, waits = true, kept = true }


local function items(text, pattern)
  local list = {}
  for item in text:gmatch(pattern) do
    list[#list + 1] = item
  end
  return list
end


-- @return table|nil row, table types: empty where they are those of the row above
local function read_row(line)
  local types, names, here, by = line:match "^| ([%w, ]*)| (`.-) | (%S+) | (.-) |$"
  if types then
    local files = here ~= "kept" and items(by:match "^[^:]*", "`([^`]+)`") or {}
    return { fields = items(names, "`([^`]+)`"), here = here, by = by, files = files }, items(types, "%w+")
  end
end


--- Reads the sections of docs/fields.md.
--- @param text string
--- @return table list of { types =, rows = list of { fields =, here = "acts" …, by = its last cell, files = } }
function M.sections(text)
  local sections = {}
  for line in text:gmatch "[^\n]+" do
    local row, types = read_row(line)
    if row and types[1] then
      sections[#sections + 1] = { types = types, rows = {} }
    end
    if row then
      table.insert(sections[#sections].rows, row)
    end
  end
  return sections
end


--- Reads the table "Kept, and nothing acts on it" of docs/embedded-server.md.
--- @param text string
--- @return table first cell of a row → the whole row
function M.kept(text)
  local rows = {}
  for line in text:match("\n## Kept, and nothing acts on it\n(.*)$"):gmatch "[^\n]+" do
    local key = line:match "^| (.-) | "
    rows[key or ""] = line
  end
  return rows
end


local function has_word(text, word)
  return text:find("%f[%w_]" .. word .. "%f[^%w_]") ~= nil
end


-- The fields of a type that need a row. The parts of an object lead to types with sections of their own.
local function fields_of(record)
  local fields = {}
  for _, field in ipairs(record.fields) do
    local is_head = record.kind == "kind" and (field.name == "apiVersion" or field.name == "kind")
    if not is_head and not (PARTS[field.name] and field.type.ref) then
      fields[field.name] = field
    end
  end
  return fields
end


-- The record of the definition that the values of a field, or their items, have, or nil.
local function record_below(field)
  local kind = field.type
  while kind.list or kind.map do
    kind = kind.list or kind.map
  end
  local record = kind.ref and builtin.record(kind.ref)
  return record and not record.plain and record or nil
end


-- Calls fn(record) for each type of these kinds. @param goes_on function (type, field) → whether what is below counts
local function walk(kinds, goes_on, fn)
  local seen = {}
  local function visit(record)
    if seen[record.name] then
      return
    end
    seen[record.name] = true
    fn(record)
    for _, field in ipairs(record.fields) do
      local below = record_below(field)
      if below and goes_on(record.name, field.name) then
        visit(below)
      end
    end
  end
  for _, kind in ipairs(kinds) do
    visit(builtin.record(builtin.name_of(kind[1], "v1", kind[2])))
  end
end


-- The rows of a page: by type, then by field ("*": the rest). The first row of a field counts.
local function index(sections)
  local rows = {}
  for _, section in ipairs(sections) do
    for _, type in ipairs(section.types) do
      rows[type] = rows[type] or {}
      for _, row in ipairs(section.rows) do
        for _, name in ipairs(row.fields) do
          rows[type][name] = rows[type][name] or row
        end
      end
    end
  end
  return rows
end


local NO_FIELD = "%s.%s: there is no such field, or another row has it: take it out of docs/fields.md"
local NO_ROW = '%s.%s: neither acts nor is kept: add it to docs/fields.md, as "acts" with the files of cluster/ that '
  .. 'act on it, or as "kept" with the row of "Kept, and nothing acts on it" in docs/embedded-server.md that names it'


-- Notes which of a type's fields stand in which row.
local function cover(record, rows, covered, report)
  local fields = fields_of(record)
  if next(fields) and not rows then
    report("%s: docs/fields.md has no row of this type: add some", record.name)
    return
  end
  for name in pairs(fields) do
    local row = rows[name] or rows["*"]
    if row then
      covered[row] = covered[row] or {}
      covered[row][name] = record.name
    else
      report(NO_ROW, record.name, name)
    end
  end
end


local function check_files(row, names, read, report)
  if not row.files[1] then
    report("%s: %s, by no file: name one of cluster/", table.concat(row.fields, " "), row.here)
  end
  for _, file in ipairs(row.files) do
    local text = read("cluster/" .. file)
    local code = text and text:gsub("%-%-[^\n]*", "")
    if not code then
      report("%s: there is no cluster/%s", table.concat(row.fields, " "), file)
    end
    for name, type in pairs(code and names or {}) do
      if not has_word(code, name) then
        report("%s.%s: cluster/%s does not have its name: name the file that acts on it, or say that it is kept",
          type, name, file)
      end
    end
  end
end


local function check_kept(row, names, kept, report)
  local said = kept[row.by]
  for name, type in pairs(names) do
    if not said then
      report('%s.%s: "Kept, and nothing acts on it" has no row "%s"', type, name, row.by)
    elseif name == "*" or not has_word(said, name) then
      report('%s.%s: the row "%s" of docs/embedded-server.md does not name it: add it there', type, name, row.by)
    end
  end
end


-- Checks one row that covers these fields: name → type.
local function check_row(section, row, names, sources, report)
  for _, name in ipairs(row.fields) do
    if not names[name] and (name ~= "*" or not next(names)) then
      report(NO_FIELD, section.types[1], name)
    end
  end
  if not WORDS[row.here] then
    report("%s.%s: %s: acts, waits or kept", section.types[1], row.fields[1], row.here)
  elseif row.here == "kept" then
    check_kept(row, names, sources.kept, report)
  else
    check_files(row, names, sources.read, report)
  end
end


--- All that is wrong with a page.
--- @param sections table see M.sections
--- @param sources table { kept = see M.kept, read = function (path) → text of a file of the checkout, or nil,
---   kinds = as M.KINDS }
--- @return table sorted list of texts
function M.problems(sections, sources)
  local problems, covered, reached = {}, {}, {}
  local function report(...)
    problems[#problems + 1] = string.format(...)
  end
  local rows = index(sections)
  local function goes_on(type, name)
    local row = (rows[type] or {})[name] or (rows[type] or {})["*"]
    return not row or row.here == "acts"
  end
  walk(sources.kinds, goes_on, function(record)
    reached[record.name] = true
    cover(record, rows[record.name], covered, report)
  end)
  for _, section in ipairs(sections) do
    for _, type in ipairs(section.types) do
      if not reached[type] then
        report("%s: nothing that acts leads to this type: take its rows out of docs/fields.md", type)
      end
    end
    for _, row in ipairs(section.rows) do
      check_row(section, row, covered[row] or {}, sources, report)
    end
  end
  table.sort(problems)
  return problems
end


return M
