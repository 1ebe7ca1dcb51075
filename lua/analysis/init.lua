--- Finds the names in the texts of scripts that do not exist: functions of ctx, of the library and of Lua, fields of
--- options, results, manifests and kinds, values that are not allowed, kinds and metrics that are not declared.
--- Used by `moonloop check`, `run`, `dev` and `test`, before a version goes live.
---
--- Lua gives nil for a name that does not exist, and that shows when the line runs, or never. The text of a script is
--- read here, never run. Only what the text says beyond doubt is told.
local declared = require "analysis.declared"
local documents = require "analysis.documents"
local expected_of = require "analysis.expected"
local literals = require "analysis.literals"
local names = require "moonloop.names"
local program_of = require "analysis.program"
local api = require "analysis.api"
local schemas = require "analysis.schemas"
local regexes = require "analysis.regexes"
local types_of = require "analysis.types"

local M = {}

-- {{{ what the whole text says

-- May tables get fields by names that do not stand behind a dot? Then any name in the text may be one.
local function gives_fields(chunk)
  for _, note in ipairs(chunk.assignments) do
    local target = note.target
    if target.tag == "item" then
      local value = program_of.constant(target.of)
      if value.tag ~= "table" then
        return true
      end
    end
  end
  for _, call in ipairs(chunk.calls) do
    local name = call.callee.tag == "global" and call.callee.name
    if name == "rawset" or name == "setmetatable" then
      return true
    end
  end
  return false
end


-- Which names of fields the program assigns to, and which it reads; and the words by which it may do either.
local function survey(program)
  local all = { assigned = {}, read = {}, words = {} }
  for _, chunk in ipairs(program.list) do
    local any = gives_fields(chunk)
    for _, field in ipairs(chunk.fields) do
      all[field.is_assigned and "assigned" or "read"][field.name] = true
    end
    for word in pairs(any and chunk.words or {}) do
      all.words[word] = true
    end
  end
  return all
end


-- }}}
-- {{{ reads, calls and comparisons

local Check = {}
Check.__index = Check

-- How messages call a table of the API whose fields are known.
local CALLED = { Error = "an error", HttpResponse = "an answer of ctx.http", Kind = "a kind" }

local function words_for(of)
  if of.is == "module" then
    return of.is_language and "Lua's " .. of.name or of.name
  elseif of.is == "class" then
    return CALLED[of.name] or "a " .. of.name
  end
  return of.is == "kind" and "a kind" or "the result of ctx.once"
end


local function missing_text(of, name, known)
  local nearest = names.nearest(name, known)
  if of.is == "object" then
    local path = of.path == "" and name or of.path .. "." .. name
    local hint = nearest and ("; did you mean '%s'?"):format(nearest) or ""
    return ("%s has no field '%s'%s"):format(of.of, names.text(path), hint)
  end
  return names.missing(words_for(of), name, known)
end


function Check:field(chunk, field)
  local of = self.types:of(field.of)
  local _, known
  if of then
    _, known = self.types:field(of, field.name)
  elseif field.of.tag == "variable" and not field.is_assigned then
    self:expected_field(chunk, field)
  end
  if not of then
    local other = self.program:chunk_of(field.of) or self.program:own_chunk(field.of)
    if other and not other.is_open and not other.exports[field.name] then
      self:missing_export(chunk, other, field)
    end
  end
  if not known then
    return
  end
  local own_name = of.is == "object" and (field.is_assigned and self.all.read[field.name]
    or not field.is_assigned and self.all.assigned[field.name] or self.all.words[field.name])
  if not own_name then
    self:tell(chunk, field.line, missing_text(of, field.name, known))
  end
end


-- A field of a variable that is a result, or options, later on: result.childern[3] = …
function Check:expected_field(chunk, field)
  local variable, known = field.of.variable, ""
  local value = program_of.constant(field.of)
  for _, type in pairs(self.expected:of_variable(variable) or {}) do
    local _, names_there = nil, nil
    if type and (type.is == "class" or type.is == "object") then
      _, names_there = self.types:field(type, field.name)
    end
    if not names_there then
      return
    end
    known = known .. " " .. names_there
  end
  local is_own = variable.parameter_of or not value
    or value.tag == "table" and (value.fields[field.name] or #value.keys > 0)
  if known ~= "" and not is_own and not self.all.assigned[field.name] and not self.all.words[field.name] then
    local nearest = names.nearest(field.name, known)
    self:tell(chunk, field.line, ("there is no field '%s'%s"):format(names.text(field.name),
      nearest and ("; did you mean '%s'?"):format(nearest) or ""))
  end
end


function Check:missing_export(chunk, other, field)
  local list = {}
  for name in pairs(other.exports) do
    list[#list + 1] = name
  end
  table.sort(list)
  local nearest = names.nearest(field.name, table.concat(list, " "))
  self:tell(chunk, field.line, ("%s has no '%s'%s"):format(other.file, names.text(field.name),
    nearest and ("; did you mean '%s'?"):format(nearest) or ""))
end


function Check:method(chunk, method)
  local of = self.types:of(method.of)
  if not of then
    return
  elseif of.is == "string" or of.is == "enum" or of.is == "object" and schemas.plain_type(of.schema) == "string" then
    local library = api.global "string"
    if not library.fields[method.name] then
      self:tell(chunk, method.line, missing_text(library, method.name, library.names))
    end
  elseif of.is == "module" then
    local _, known = self.types:field(of, method.name)
    if known then
      self:tell(chunk, method.line, missing_text(of, method.name, known))
    elseif not of.is_language then
      self:tell(chunk, method.line, ("call %s.%s with a dot, as in %s"):format(of.var, method.name,
        of.fields[method.name].entry and of.fields[method.name].entry.call or of.var .. "." .. method.name))
    end
  end
end


local function call_text(entry)
  return (entry.call:gsub("{(%u%a+)}", "{ … }"))
end


M.call_text = call_text


-- "..." stands for any number of arguments. @return table? of api.lua; nil: the function takes less
local function parameter_at(parameters, index)
  local last = parameters[#parameters]
  return parameters[index] or last and last.name == "..." and last or nil
end


local function name_of(parameter, index)
  return parameter.name == "..." and "argument " .. index or parameter.name
end


function Check:call(chunk, call)
  local called = self.types:called(call)
  if not called or not called.entry then
    return
  end
  local text, given = call_text(called.entry), call.arguments
  local last = given[#given]
  local is_known = not last or last.tag ~= "call" and last.tag ~= "method" and last.tag ~= "varargs"
  for index, parameter in ipairs(called.parameters) do
    if not given[index] and is_known and not parameter.is_optional and parameter.type.is ~= "any" then
      self:tell(chunk, call.line, ("%s: %s is missing"):format(text, name_of(parameter, index)))
      break
    end
  end
  for index, node in ipairs(given) do
    if not parameter_at(called.parameters, index) then
      self:tell(chunk, call.line, ("%s: there are more arguments than it takes"):format(text))
      break
    end
    self:argument(chunk, called, index, node, text)
  end
end


-- The type that an argument has to have: the schema of a kind for manifests and patches.
function Check:argument(chunk, called, index, node, text)
  local parameter = parameter_at(called.parameters, index)
  local type = parameter.type
  if type.is == "class" and type.name == "Manifest" then
    return -- manifests() looks at it
  elseif called.what == "ctx.patch" and index == 2 then
    return
  end
  local is_options = type.is == "class" and not type.is_made
  self.expected:expect(chunk, node, type, text, is_options and "" or name_of(parameter, index))
end


-- x == "literal", where x is one of some texts.
function Check:comparison(chunk, node)
  if node.operator ~= "==" and node.operator ~= "~=" then
    return
  end
  for _, pair in ipairs { { node.left, node.right }, { node.right, node.left } } do
    local value = self.types:text_of(pair[2])
    local type = value and pair[1].tag ~= "string" and self.types:of(pair[1])
    local values = type and literals.values(type)
    if values and value ~= "" and not literals.fits(type, "string", value) then
      local what = type.is == "object" and ("%s of %s"):format(type.path, type.of) or pair[1].name or "it"
      self:tell(chunk, node.line, ("%s is never '%s', it is %s%s"):format(what, names.text(value),
        literals.words(type), literals.suggestion(value, values)))
    end
  end
end


-- }}}
-- {{{ manifests, patches and results

-- A table with apiVersion, kind and metadata is a manifest wherever it stands.
function Check:manifest(chunk, node)
  local fields = node.fields
  if fields.apiVersion and fields.kind and fields.metadata then
    self:manifest_of(chunk, node)
  end
end


function Check:manifest_of(chunk, node)
  local kind = self.types:kind_of_object(node)
  local object = kind and self.types:object_of(kind)
  if object then
    self.expected:expect(chunk, node, object, object.of, "")
  end
end


-- A path of moonloop.exact leads to a map that the kind has.
function Check:path_of_map(chunk, line, of, path)
  for name in path:gmatch "[^.]+" do
    local part, known = self.types:field(of, name)
    if known then
      self:tell(chunk, line, missing_text(of, name, known))
    end
    if not part or part.is ~= "object" then
      return
    end
    of = part
  end
  local type = schemas.plain_type(of.schema)
  if type and type ~= "object" then
    self:tell(chunk, line, ("%s of %s is %s %s; moonloop.exact takes maps"):format(of.path, of.of,
      type:find "^[aio]" and "an" or "a", type))
  end
end


function Check:exact(chunk, call)
  local kind = self.types:kind_of_object(call.arguments[1])
  local object = kind and self.types:object_of(kind)
  for index = 2, object and #call.arguments or 0 do
    local path = self.types:text_of(call.arguments[index])
    if path then
      self:path_of_map(chunk, call.line, object, path)
    end
  end
end


function Check:write(chunk, call)
  local called = self.types:called(call)
  local first, second = call.arguments[1], call.arguments[2]
  if not called or not first then
    return
  elseif called.what == "ctx.apply" or called.what == "ctx.ensure" or called.what == "ctx.create" then
    self:manifest_of(chunk, first)
  elseif called.what == "moonloop.exact" then
    self:exact(chunk, call)
  elseif called.what == "ctx.patch" and second then
    local of = self.types:of(first)
    if of and of.is == "object" and of.is_root then
      self.expected:expect(chunk, second, of, of.of, "")
    end
  end
end


-- moonloop.Result with the status of the kind, and the children of a controller.
local function result_type(self, status, declaration)
  if not self.result_types[declaration] then
    local result, fields = api.class "Result", {}
    for name, type in pairs(result.fields) do
      fields[name] = type
    end
    fields.status = status or fields.status
    fields.children = { is = "list", item = { is = "child", declaration = declaration } }
    self.result_types[declaration] = { is = "class", name = "Result", names = result.names, fields = fields }
  end
  return self.result_types[declaration]
end


-- Checks what reconcile and finalize return.
function Check:results(chunk, declaration)
  local kind = self.types:kind_of(declaration.fields.reconciles)
  local object = kind and self.types:object_of(kind)
  local status = object and self.types:field(object, "status")
  for _, name in ipairs { "reconcile", "finalize" } do
    local made = self.program:function_of(declaration.fields[name])
    for _, list in ipairs(made and made.returns or {}) do
      self.expected:expect(made.chunk, list[1], result_type(self, status, declaration), "the result of " .. name, "")
    end
  end
  self.expected:expect(chunk, declaration, api.class "Declaration", "moonloop.controller", "")
end


-- }}}

function Check:tell(chunk, line, text)
  local key = ("%s:%d: %s"):format(chunk.file, line or 0, text)
  if not self.told[key] then
    self.told[key] = true
    self.problems[#self.problems + 1] = { file = chunk.file, line = line or 0, text = key, order = #self.problems }
  end
end


-- Passes on what is expected of the literals of a file.
function Check:expectations(chunk)
  for _, declaration in ipairs(chunk.declarations or {}) do
    self:results(chunk, declaration)
  end
  for _, call in ipairs(chunk.calls) do
    self:call(chunk, call)
    self:write(chunk, call)
  end
  for _, node in ipairs(chunk.tables) do
    self:manifest(chunk, node)
  end
end


function Check:names(chunk)
  for _, field in ipairs(chunk.fields) do
    self:field(chunk, field)
  end
  for _, method in ipairs(chunk.methods) do
    self:method(chunk, method)
  end
  for _, node in ipairs(chunk.binaries) do
    self:comparison(chunk, node)
  end
end


-- Problems in the order of the files and lines.
local function sort(problems, files)
  local order = {}
  for index, file in ipairs(files) do
    order[file.name] = index
  end
  table.sort(problems, function(a, b)
    if a.file ~= b.file then
      return order[a.file] < order[b.file]
    elseif a.line ~= b.line then
      return a.line < b.line
    end
    return a.order < b.order
  end)
end


-- Looks for names that do not exist. `kinds`: schema_of, as of schemas.root; missing = function(group, version, kind) →
-- why there is no such kind, nil: there is, or it is not known.
local function check(files, types, kinds, compile)
  local program = types.program
  types:know(kinds.schema_of)
  local self = setmetatable({
    program = program, types = types, all = survey(program), problems = {}, told = {}, kinds = kinds, result_types = {},
  }, Check)
  self.expected = expected_of.new(types, function(chunk, line, text)
    self:tell(chunk, line, text)
  end, function(chunk, node, declaration)
    declared.check_child(self, chunk, node, declaration)
    self:manifest_of(chunk, node)
  end)
  declared.read(self)
  for pass = 1, 2 do
    self.expected:begin_pass(pass == 1)
    for _, chunk in ipairs(program.list) do
      self:expectations(chunk)
    end
  end
  for _, chunk in ipairs(program.list) do
    self:names(chunk)
  end
  declared.check(self)
  regexes.check(self, compile)
  sort(self.problems, files)
  return self.problems
end


-- The kinds that are asked for, in that order.
local function kinds_of(types)
  local list, seen = {}, {}
  declared.check {
    program = types.program, types = types, tell = function() end,
    kinds = {
      missing = function(group, version, kind)
        local key = ("%s/%s/%s"):format(group, version, kind)
        list[#list + 1] = not seen[key] and { group = group, version = version, kind = kind } or nil
        seen[key] = true
      end,
    },
  }
  return list
end


--- The kinds that the texts name.
--- @param files table the files of one source, { { name = "x.lua", text = }, … }, which compile
--- @return table list of { group =, version =, kind = }
function M.kinds(files)
  return kinds_of(types_of.new(program_of.new(files)))
end


--- Looks for names that do not exist, for the host (host/script/analysis.c).
--- @param files table as of kinds
--- @param ask function of the kinds that the texts name; returns what documents.source takes
--- @param compile function(pattern) → true; or false, reason, part: is it a regular expression?
--- @return table problems list of { file =, line =, text = "x.lua:12: …" }, in the order of files and lines
function M.run(files, ask, compile)
  local types = types_of.new(program_of.new(files))
  return check(files, types, documents.source(ask(kinds_of(types))), compile)
end


return M
