--- Finds kinds, metrics, their labels and origins of ctx.http that a controller uses and does not declare; and kinds
--- that do not exist.
local api = require "analysis.api"
local names = require "moonloop.names"

local M = {}

-- {{{ declarations

-- The kinds of a list as `owns`; nil: the text leaves one of them open.
local function kinds_in(self, node, read)
  if not node then
    return {}
  end
  local list = self.types:closed_table(node)
  if not list then
    return nil
  end
  local kinds = {}
  for _, item in ipairs(list.items) do
    local kind = read(item)
    if not kind then
      return nil
    end
    kinds[kind] = true
  end
  return kinds
end


-- Has the table a field that its type lacks? Then that one was told, and may be the one that is looked for.
local function has_other_fields(node, class)
  for name in pairs(node.fields) do
    if not api.class(class).fields[name] then
      return true
    end
  end
  return false
end


local function owned_kind(self, item)
  local value = self.program:resolve(item)
  return self.types:kind_of(value and value.tag == "table" and value.fields.kind or item)
end


local function watched_kind(self, item)
  local value = self.program:resolve(item)
  local called = value and value.tag == "call" and self.types:called(value)
  return called and called.what == "moonloop.watch" and self.types:kind_of(value.arguments[1]) or nil
end


-- The kinds of all its lists, by list, and together; nil: not all are known.
local function kinds_of(self, declaration)
  local fields = declaration.fields
  local reconciled = self.types:kind_of(fields.reconciles)
  local owns = kinds_in(self, fields.owns, function(item) return owned_kind(self, item) end)
  local watches = kinds_in(self, fields.watches, function(item) return watched_kind(self, item) end)
  local uses = kinds_in(self, fields.uses, function(item) return self.types:kind_of(item) end)
  local is_known = reconciled and owns and watches and uses and #declaration.keys == 0
  if not is_known or has_other_fields(declaration, "Declaration") then
    return nil
  end
  local all = { [reconciled] = true }
  for _, list in ipairs { owns, watches, uses } do
    for kind in pairs(list) do
      all[kind] = true
    end
  end
  return { owns = owns, uses = uses, all = all }
end


local function metrics_of(self, declaration)
  local node = declaration.fields.metrics
  local value = self.types:closed_table(node)
  return not node and {} or value and value.fields or nil
end


local function origins_of(self, declaration)
  local node, origins = declaration.fields.http, {}
  local value = self.types:closed_table(node)
  if not value then
    return not node and origins or nil
  end
  for _, item in ipairs(value.items) do
    local text = self.types:text_of(item)
    if not text then
      return nil
    end
    origins[#origins + 1] = text:lower():gsub("/$", "")
  end
  return origins
end


-- The controllers that run the code of a file: those in it, and those whose files require it.
local function controllers_of(chunk, found, seen)
  found, seen = found or {}, seen or {}
  if seen[chunk] then
    return found
  end
  seen[chunk] = true
  for _, declaration in ipairs(chunk.declarations or {}) do
    found[#found + 1] = declaration
  end
  for other in pairs(chunk.is_required_by or {}) do
    controllers_of(other, found, seen)
  end
  return found
end


-- }}}
-- {{{ uses

-- Is it true of each of the controllers, and is there one?
local function is_true_of_all(list, test)
  for _, one in ipairs(list) do
    if not test(one) then
      return false
    end
  end
  return #list > 0
end


local function sorted(set)
  local list = {}
  for name in pairs(set) do
    list[#list + 1] = name
  end
  table.sort(list)
  return list
end


local function kind_words(kind)
  return ("%s of %s"):format(kind:match "[^/]+$", kind:match "^(.*)/")
end


-- Why there is no such kind, or nil.
local function why_missing(self, kind)
  local group, version, name = kind:match "^(.-)/?([^/]+)/([^/]+)$"
  return group and self.kinds.missing(group, version, name) or nil
end


local READS = { ["ctx.get"] = true, ["ctx.list"] = true }
local WRITES = { ["ctx.apply"] = true, ["ctx.ensure"] = true, ["ctx.create"] = true, ["ctx.patch"] = true,
  ["ctx.delete"] = true }

local function check_kind(self, chunk, call, what, controllers)
  local kind
  if READS[what] then
    kind = self.types:kind_of(call.arguments[1])
  elseif WRITES[what] then
    kind = call.arguments[1] and self.types:kind_of_object(call.arguments[1])
  end
  local undeclared = kind and not why_missing(self, kind) and is_true_of_all(controllers, function(declaration)
    return declaration.kinds and not declaration.kinds.all[kind]
  end)
  if undeclared then
    self:tell(chunk, call.line, ("%s is not declared: add it to owns, watches or uses"):format(kind_words(kind)))
  end
end


-- The Secret of ctx.once.
local function check_once(self, chunk, call, controllers)
  local undeclared = is_true_of_all(controllers, function(declaration)
    local kinds = declaration.kinds
    return kinds and not kinds.owns["v1/Secret"] and not kinds.uses["v1/Secret"]
  end)
  if undeclared then
    self:tell(chunk, call.line, "ctx.once: Secret is not declared: add moonloop.kind(\"v1\", \"Secret\") to owns, "
      .. "or to uses")
  end
end


local function check_metric(self, chunk, call, controllers)
  local name = self.types:text_of(call.arguments[1])
  local first = controllers[1]
  local undeclared = name and is_true_of_all(controllers, function(declaration)
    return declaration.metrics and not declaration.metrics[name]
  end)
  if undeclared then
    local nearest = names.nearest(name, table.concat(sorted(first.metrics), " "))
    self:tell(chunk, call.line, ("the metric '%s' is not declared: add it to metrics%s"):format(names.text(name),
      nearest and ("; or did you mean '%s'?"):format(nearest) or ""))
    return
  end
  local metric = name and #controllers == 1 and self.types:closed_table(first.metrics and first.metrics[name])
  local given = call.arguments[3] and self.program:resolve(call.arguments[3])
  local labels = metric and self.types:closed_table(metric.fields.labels)
  local is_known = metric and not has_other_fields(metric, "Metric") and (labels or not metric.fields.labels)
  if not is_known or not given or given.tag ~= "table" then
    return
  end
  local known = {}
  for _, item in ipairs(labels and labels.items or {}) do
    known[self.types:text_of(item) or ""] = true
  end
  for _, label in ipairs(known[""] and {} or given.order) do
    if not known[label] then
      local all = table.concat(sorted(known), " ")
      local nearest = names.nearest(label, all)
      self:tell(chunk, given.lines[label], ("the metric '%s' has no label '%s'%s"):format(name, names.text(label),
        nearest and ("; did you mean '%s'?"):format(nearest) or all ~= "" and "; it has " .. all:gsub(" ", ", ") or ""))
    end
  end
end


-- The origin of a URL whose text begins so: "https://host:port"; nil: the text ends before.
local function origin_of(text)
  return text and text:lower():match "^(https?://[^/?#]+)[/?#]"
end


-- The beginning of a text that is put together, as far as it is known, and whether that is all of it.
local function beginning(self, node)
  local text = self.types:text_of(node)
  node = self.program:resolve(node)
  if text then
    return text .. "/" -- a URL that is only an origin
  elseif node and node.tag == "binary" and node.operator == ".." then
    local left = self.types:text_of(node.left)
    if left then
      return left
    end
    return beginning(self, node.left)
  end
end


-- Does a declared origin, or a pattern "https://*.example.com", cover this one? As ml_origin_covers does.
local function covers(declared, origin)
  local scheme, tail = declared:match "^(https?://)%*(%..+)$"
  if not scheme then
    return declared == origin
  end
  return #origin > #scheme + #tail and origin:sub(1, #scheme) == scheme and origin:sub(-#tail) == tail
end


local function check_origin(self, chunk, call, controllers)
  local request = call.arguments[1] and self.program:resolve(call.arguments[1])
  local url = request and request.tag == "table" and request.fields.url
  local origin = url and origin_of(beginning(self, url))
  local undeclared = origin and is_true_of_all(controllers, function(declaration)
    if not declaration.origins then
      return false
    end
    for _, one in ipairs(declaration.origins) do
      if covers(one, origin) then
        return false
      end
    end
    return true
  end)
  if undeclared then
    local nearest = names.nearest(origin, table.concat(controllers[1].origins, " "))
    self:tell(chunk, request.lines.url, ("the origin %s is not declared: add it to http%s"):format(names.text(origin),
      nearest and ("; or did you mean '%s'?"):format(nearest) or ""))
  end
end


-- }}}
-- {{{ kinds that do not exist

local function check_kinds(self, chunk)
  for _, call in ipairs(chunk.calls) do
    local called = self.types:called(call)
    local kind = called and called.what == "moonloop.kind" and self.types:kind_of(call)
    if kind then
      local why = why_missing(self, kind)
      local _ = why and self:tell(chunk, call.line, why)
    end
  end
  for _, node in ipairs(chunk.tables) do
    local has_kind = node.fields.metadata and node.fields.apiVersion and node.fields.kind
    local kind = has_kind and self.types:kind_of_object(node)
    local why = kind and why_missing(self, kind)
    local _ = why and self:tell(chunk, node.lines.kind, why)
  end
end


-- }}}

--- Reads what the controllers declare.
--- @param self table of init.lua: program, types, kinds, tell
function M.read(self)
  for _, chunk in ipairs(self.program.list) do
    for _, declaration in ipairs(chunk.declarations or {}) do
      if self.types:closed_table(declaration.given) then -- else fields may be added to it
        declaration.kinds = kinds_of(self, declaration)
        declaration.metrics = metrics_of(self, declaration)
        declaration.origins = origins_of(self, declaration)
      end
    end
  end
end


--- An object that a reconcile returns among its children: its kind has to be in owns.
function M.check_child(self, chunk, node, declaration)
  local kind = declaration.kinds and self.types:kind_of_object(node)
  if kind and not declaration.kinds.owns[kind] then
    self:tell(chunk, node.line, ("%s is not in owns; children are of the kinds in owns"):format(kind_words(kind)))
  end
end


--- Checks what the calls of ctx use.
function M.check(self)
  for _, chunk in ipairs(self.program.list) do
    local controllers = controllers_of(chunk)
    for _, call in ipairs(chunk.calls) do
      local called = self.types:called(call)
      local what = called and called.entry and called.what
      if what then
        check_kind(self, chunk, call, what, controllers)
      end
      if what == "ctx.metric" then
        check_metric(self, chunk, call, controllers)
      elseif what == "ctx.http" then
        check_origin(self, chunk, call, controllers)
      elseif what == "ctx.once" then
        check_once(self, chunk, call, controllers)
      end
    end
    check_kinds(self, chunk)
  end
end


return M
