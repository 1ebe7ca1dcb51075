--- Rules for single values: types, numbers, strings, enumerations. Each function here returns the check of one rule,
--- or nil when the schema does not have the rule: check(value, run, depth). See validate.lua.
---
--- Rules: kube-openapi/pkg/validation/validate/{type,validator,values,formats}.go.
local field = require "cluster.apiserver.field"
local formats = require "cluster.apiserver.schema.formats"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local regex = require "cluster.regex"

local M = {}

local null = host.json.null
local INT32_MAX, INT32_MIN = 0x7fffffff, -0x80000000
local FLOAT32_MAX = 3.4028235677973366e38
local JSON_INTEGER_MAX = 2.0 ^ 53 - 1
local EPSILON = 1e-9

-- The format that Go gives a value, by its type.
local GO_FORMATS = { integer = "int64", number = "float64" }
local NUMBER_FORMATS = {
  integer = { int32 = true, int64 = true },
  number = { float = true, double = true },
}


local function whole(value)
  return math.tointeger(value) ~= nil
end


-- True if a float counts as a whole number by the rule of swag.IsFloat64AJSONInteger.
local function json_integer(value)
  if value ~= value or value < -JSON_INTEGER_MAX or value > JSON_INTEGER_MAX then
    return false
  end
  local cut = math.floor(math.abs(value))
  local difference = math.abs(math.abs(value) - cut)
  return difference == 0 or (cut ~= 0 and difference / (math.abs(value) + cut) < EPSILON)
end


--- The types a schema allows, as a list.
function M.types(schema)
  if schema["x-kubernetes-int-or-string"] then
    return { "integer", "string" }
  end
  return schema.type and { schema.type } or {}
end


--- The format of a schema, nil when it says nothing about such values.
function M.format(schema)
  local format, kind = schema.format, schema.type
  if not format or format == "" then
    return nil
  elseif schema["x-kubernetes-int-or-string"] then
    return nil
  elseif kind == nil or kind == "string" then
    return formats.test(format) and format or nil
  end
  local known = NUMBER_FORMATS[kind]
  return known and known[format] and format or nil
end


-- Returns the type (or format) that a schema wants and the one of `kind`, if values of `kind` do not fit; else nil.
local function mismatch(wanted, format, kind)
  local fits = false
  for _, one in ipairs(wanted) do
    fits = fits or one == kind or (one == "number" and kind == "integer")
  end
  local text_like = kind == "string" or kind == "array"
  if format and not text_like and not fits and GO_FORMATS[kind] ~= format then
    return format, GO_FORMATS[kind] or ""
  end
  local numeric = wanted[1] == "integer" or wanted[1] == "number"
  if fits or (format and text_like and not numeric) then
    return nil
  end
  return table.concat(wanted, ","), kind
end


--- The check of the type of values of `kind`: nil when they are right as they are.
function M.type_check(schema, kind)
  local wanted, format = M.types(schema), M.format(schema)
  if #wanted == 0 and not format then
    return nil
  end
  local expected, found = mismatch(wanted, format, kind)
  if not expected then
    return nil
  end
  local float = kind == "number" and wanted[1] == "integer"
  return function(value, run, depth)
    if float and json_integer(value) then
      run.matches = run.matches + 1
      return
    end
    run:type_error(depth, expected, found)
  end
end


--- The check of null.
function M.null_check(schema)
  local wanted = table.concat(M.types(schema), ",")
  if wanted == "" or schema.nullable then
    return nil
  end
  return function(_, run, depth)
    run:type_error(depth, wanted, "null")
  end
end


-- Returns a function that checks that a value fits into the type without loss; `what` is the value's name in messages.
local function range_check(schema)
  local kind, format = schema.type, M.format(schema)
  if schema["x-kubernetes-int-or-string"] or (kind ~= "integer" and kind ~= "number") then
    return nil
  end
  local function fits(value)
    if kind == "number" then
      return format ~= "float" or math.abs(value) <= FLOAT32_MAX
    end
    return whole(value) and (format ~= "int32" or (value >= INT32_MIN and value <= INT32_MAX))
  end
  local tail = format and (" value must be of type %s with format %s in "):format(kind, format)
    or (" value must be of type %s (default format) in "):format(kind)
  return function(value, run, depth, what)
    if fits(value) then
      return true
    end
    run:plain_error(what .. tail .. run:path(depth))
    return false
  end
end


local function number_text(number)
  return math.type(number) == "integer" and tostring(number) or gofmt.float(number)
end


-- The bound and the value as they are compared: whole numbers when both can be.
local function comparable(value, bound, in_range)
  if in_range and math.type(value) == "integer" then
    return value, math.tointeger(bound) or math.tointeger(bound < 0 and math.ceil(bound) or math.floor(bound)) or bound
  end
  return value + 0.0, bound + 0.0
end


local function bound_check(bound, exclusive, what, words, beyond, in_range)
  return function(value, run, depth)
    local fits = not in_range or in_range(bound, run, depth, what)
    local number, limit = comparable(value, bound, fits)
    if beyond(number, limit) or (exclusive and number == limit) then
      run:invalid(depth, number, words .. number_text(limit))
    end
  end
end


local function multiple_check(factor, in_range)
  return function(value, run, depth)
    local fits = not in_range or in_range(factor, run, depth, "MultipleOf")
    local number, by = comparable(value, factor, fits)
    if by <= 0 then
      run:error(depth, field.invalid("", by, ("factor MultipleOf declared for %s must be positive: %s"):format(
        run:path(depth), number_text(by))))
    elseif math.type(number) == "integer" and number % by ~= 0
      or math.type(number) == "float" and not json_integer(by < 1 and 1 / by * number or number / by) then
      run:invalid(depth, number, "should be a multiple of " .. number_text(by))
    end
  end
end


local function above(number, limit)
  return number > limit
end


local function below(number, limit)
  return number < limit
end


--- The check of numbers.
function M.number_check(schema)
  local in_range = range_check(schema)
  local checks = {}
  if schema.multipleOf then
    checks[#checks + 1] = multiple_check(schema.multipleOf, in_range)
  end
  if schema.minimum then
    local exclusive = schema.exclusiveMinimum
    local words = exclusive and "should be greater than " or "should be greater than or equal to "
    checks[#checks + 1] = bound_check(schema.minimum, exclusive, "Minimum boundary", words, below, in_range)
  end
  if schema.maximum then
    local exclusive = schema.exclusiveMaximum
    local words = exclusive and "should be less than " or "should be less than or equal to "
    checks[#checks + 1] = bound_check(schema.maximum, exclusive, "Maximum boundary", words, above, in_range)
  end
  if #checks == 0 and not in_range then
    return nil
  end
  return function(value, run, depth)
    if in_range then
      in_range(value, run, depth, "Checked")
    end
    for i = 1, #checks do
      checks[i](value, run, depth)
    end
  end
end


local function length(text)
  return utf8.len(text) or #text
end


--- The check of lengths and the pattern of strings; only the first rule broken is told.
function M.string_check(schema)
  local most, least, pattern = schema.maxLength, schema.minLength, schema.pattern
  if pattern == "" then
    pattern = nil
  end
  if not (most or least or pattern) then
    return nil
  end
  local compiled, why = nil, nil
  if pattern then
    compiled, why = regex.compile(pattern)
  end
  return function(value, run, depth)
    if most and #value > most and length(value) > most then
      run:error(depth, field.too_long("", "", most))
    elseif least and length(value) < least then
      run:invalid(depth, value, ("should be at least %d chars long"):format(least))
    elseif pattern and not (compiled and compiled:match(value)) then
      local shape = compiled and pattern or pattern .. ", but pattern is invalid: " .. why
      run:invalid(depth, value, ("should match '%s'"):format(shape))
    end
  end
end


--- The check of a string's format, nil when there is none.
function M.format_check(schema)
  local format = M.format(schema)
  local test = format and formats.test(format)
  if not test then
    return nil
  end
  return function(value, run, depth)
    if not test(value) then
      run:type_error(depth, format, value)
    end
  end
end


--- The check of enumerations; null is none of them, whatever they are.
function M.enum_check(schema)
  local choices = schema.enum
  if not choices or #choices == 0 then
    return nil
  end
  local scalars, words = {}, {}
  for i, choice in ipairs(choices) do
    if type(choice) ~= "table" and choice ~= null then
      scalars[choice] = true
    end
    words[i] = type(choice) == "string" and choice or host.json.encode(choice)
  end
  local function among(value)
    if math.type(value) == "float" then
      -- A fraction is cut off, as by a conversion in Go.
      return scalars[value] or scalars[math.tointeger(value < 0 and math.ceil(value) or math.floor(value))]
    elseif type(value) ~= "table" then
      return scalars[value]
    end
    for _, choice in ipairs(choices) do
      if host.json.equal(choice, value) then
        return true
      end
    end
  end
  return function(value, run, depth)
    if not among(value) then
      run:error(depth, field.not_supported("", value, words))
    end
  end
end


return M
