--- Tables, made by the server, for `kubectl get`.
---
--- A custom kind brings its columns in its description (`res.columns`, each with a function that makes the cell). A
--- built-in one has its columns as facts (`res.printed`), and in its strategy a function that makes all cells of an
--- object: cells(object, now) returns them in the order of the columns; now is in seconds since 1970.
--- Rules: kubernetes/pkg/printers/internalversion/printers.go, apiserver/pkg/endpoints/handlers/response.go (asTable),
--- apiserver/pkg/registry/rest/table.go.
local host = require "cluster.host"
local columns = require "cluster.apiserver.tables.columns"

local M = {}

local function default_cells(obj)
  return { obj.metadata.name, obj.metadata.creationTimestamp or host.json.null }
end


-- Only what a Table's head shows of a column.
local function head_of(list)
  local head = host.json.array {}
  for i, column in ipairs(list) do
    head[i] = {
      name = column.name, type = column.type, format = column.format or "",
      description = column.description or "", priority = column.priority or 0,
    }
  end
  return head
end


local function custom(res)
  local list = res.columns
  return {
    head = head_of(list),
    cells = function(obj, now)
      local cells = {}
      for i, column in ipairs(list) do
        local value = column.value(obj, now)
        cells[i] = value == nil and host.json.null or value
      end
      return cells
    end,
  }
end


local function builtin(res)
  local printed = res.strategy and res.strategy.columns or res.printed
  if not printed or printed == "" then
    return { head = head_of(columns.default), cells = default_cells, without_rows = host.json.null }
  end
  return { head = head_of(columns.read(printed)), cells = res.strategy.cells }
end


local printers = setmetatable({}, { __mode = "k" })

local function printer_of(res)
  local printer = printers[res]
  if not printer then
    printer = res.columns and custom(res) or builtin(res)
    printers[res] = printer
  end
  return printer
end


-- includeObject → the function that makes the object of a row.
local OBJECT = {
  None = function() return host.json.null end,
  Object = function(obj, res)
    obj.kind, obj.apiVersion = res.kind, res.api_version
    return obj
  end,
  Metadata = function(obj, _, version)
    return { kind = "PartialObjectMetadata", apiVersion = version, metadata = obj.metadata }
  end,
}


--- Objects of one kind as a Table.
--- @param res table the description of the kind
--- @param objects table[] may become part of the table
--- @param options table
---   include    "Metadata", "None" or "Object": what rows carry of their objects
---   list_meta  metadata of the table
---   now        seconds since 1970, what ages are told from
---   version    of meta.k8s.io, "v1" unless it says "v1beta1"
---   after_row  nil, or called after each row
--- @return table
function M.render(res, objects, options)
  local printer = printer_of(res)
  local version = "meta.k8s.io/" .. (options.version or "v1")
  local object_of = OBJECT[options.include]
  local rows = host.json.array {}
  for i, obj in ipairs(objects) do
    local cells, conditions = printer.cells(obj, options.now)
    rows[i] = { cells = host.json.array(cells), conditions = conditions, object = object_of(obj, res, version) }
    if options.after_row then
      options.after_row()
    end
  end
  return {
    kind = "Table", apiVersion = version, metadata = options.list_meta,
    columnDefinitions = printer.head, rows = rows[1] and rows or printer.without_rows or rows,
  }
end


return M
