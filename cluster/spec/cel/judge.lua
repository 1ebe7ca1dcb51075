--- Runs cel-spec's conformance data against cluster.cel.
---
---     hostlua cluster/spec/cel/judge.lua FOLDER [FILE…]
---
--- FOLDER is tests/simple/testdata of the Go module cel.dev/expr. Prints each case that fails, and "n passed, n failed,
--- n skipped"; exits 1 when one failed. excluded.lua lists the cases that Kubernetes' dialect does not have.
local cel = require "cluster.cel"
local compare = require "cluster.cel.compare"
local decode = require "decode"
local excluded = require "excluded"
local textproto = require "textproto"

local types, values = cel.types, cel.values

local FILES = {
  "basic", "bindings_ext", "block_ext", "comparisons", "conversions", "dynamic", "encoders_ext", "enums", "fields",
  "fp_math", "integer_math", "lists", "logic", "macros", "macros2", "math_ext", "namespace", "optionals", "parse",
  "plumbing", "proto2", "proto2_ext", "proto3", "string", "string_ext", "timestamps", "type_deduction", "unknowns",
  "wrappers",
}


local function text_of(test, field)
  local list = test[field]
  return list and list[1].text or ""
end


local function is_named(names, name)
  for _, other in ipairs(names) do
    if other == name then
      return true
    end
  end
  return false
end


-- Why the case is left out, or nil.
local function exclusion(file, section, test)
  for _, row in ipairs(excluded) do
    if (not row.file or row.file == file) and (not row.section or row.section == section)
      and (not row.names or is_named(row.names, text_of(test, "name")))
      and (not row.text or text_of(test, "expr"):find(row.text) or text_of(test, "container"):find(row.text)) then
      return row
    end
  end
  return nil
end


-- Do they agree in type as well?
local function same(a, b)
  local tag = values.tag(a)
  if tag ~= values.tag(b) then
    return false
  elseif tag == "list" then
    for i = 1, math.max(#a.items, #b.items) do
      if a.items[i] == nil or b.items[i] == nil or not same(values.element(a, i), values.element(b, i)) then
        return false
      end
    end
    return true
  elseif a ~= a then
    return b ~= b
  end
  return compare.equal(a, b)
end


local function environment(test)
  local variables = {}
  for _, declaration in ipairs(test.type_env or {}) do
    if not declaration.ident then
      error(decode.UNSUPPORTED, 0)
    end
    variables[declaration.name[1].text] = decode.type(declaration.ident[1].type[1])
  end
  return cel.env {
    variables = variables, container = text_of(test, "container"), mixed_literals = true, strict_presence = true,
    quoted_fields = true, unchecked = test.disable_check and test.disable_check[1] == "true",
  }
end


local function show(value)
  local ok, text = pcall(function()
    return values.tag(value) .. " " .. tostring(type(value) == "table" and (value.bits or value.text or value.name)
      or value)
  end)
  return ok and text or tostring(value)
end


local function check_value(value, expected)
  if not same(value, expected) then
    return ("%s, not %s"):format(show(value), show(expected))
  end
  return nil
end


-- Returns a message that says why the test fails, or nil.
local function run(test)
  local program, issues = environment(test):compile(text_of(test, "expr"))
  local wants_error = test.eval_error or test.any_eval_errors
  if not program then
    return not wants_error and tostring(issues) or nil
  end
  local typed = test.typed_result and test.typed_result[1]
  if typed and typed.deduced_type and not types.exact(program.type, decode.type(typed.deduced_type[1])) then
    return ("type %s, not %s"):format(types.format(program.type), types.format(decode.type(typed.deduced_type[1])))
  elseif test.check_only then
    return nil
  end
  local bindings = {}
  for _, binding in ipairs(test.bindings or {}) do
    bindings[binding.key[1].text] = decode.value(binding.value[1].value[1])
  end
  local value, err = program:run(bindings)
  if wants_error then
    return value ~= nil and "a value, not an error: " .. show(value) or nil
  elseif value == nil then
    return "error: " .. err.message
  end
  local expected = test.value and test.value[1] or typed and typed.result and typed.result[1]
  return check_value(value, expected == nil or decode.value(expected))
end


local counts = { passed = 0, failed = 0, skipped = 0 }


local function judge(file, section, test)
  local row = exclusion(file, section, test)
  if row then
    counts.skipped = counts.skipped + 1
    return
  end
  local ok, wrong = xpcall(run, function(err)
    return type(err) == "table" and "the case needs messages" or debug.traceback(err)
  end, test)
  if ok and not wrong then
    counts.passed = counts.passed + 1
  else
    counts.failed = counts.failed + 1
    print(("FAIL %s/%s/%s: %s\n  %s"):format(file, section, text_of(test, "name"), text_of(test, "expr"), wrong))
  end
end


local folder = arg[1] or error "usage: judge.lua FOLDER [FILE…]"
for _, name in ipairs(#arg > 1 and { table.unpack(arg, 2) } or FILES) do
  local file = assert(io.open(("%s/%s.textproto"):format(folder, name)))
  for _, section in ipairs(textproto.read(file:read "a").section or {}) do
    for _, test in ipairs(section.test or {}) do
      judge(name, text_of(section, "name"), test)
    end
  end
  file:close()
end
print(("%d passed, %d failed, %d skipped"):format(counts.passed, counts.failed, counts.skipped))
os.exit(counts.failed == 0)
