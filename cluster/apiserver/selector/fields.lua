--- Field selectors: "metadata.name=a,status.phase!=Running".
---
--- Rules and wordings: apimachinery/pkg/fields/selector.go.
local M = {}


-- Cuts at commas that no backslash stands before.
local function split_terms(text)
  local terms, term, escaped = {}, {}, false
  for char in text:gmatch(utf8.charpattern) do
    if char == "," and not escaped then
      terms[#terms + 1] = table.concat(term)
      term = {}
    else
      term[#term + 1] = char
    end
    escaped = char == "\\" and not escaped
  end
  terms[#terms + 1] = table.concat(term)
  table.sort(terms)
  return terms
end


local function unescape(text)
  local out, escaped = {}, false
  for char in text:gmatch(utf8.charpattern) do
    if escaped then
      if char ~= "\\" and char ~= "," and char ~= "=" then
        return nil, "invalid field selector: invalid escape sequence: \\" .. char
      end
      out[#out + 1], escaped = char, false
    elseif char == "\\" then
      escaped = true
    elseif char == "," or char == "=" then
      return nil, "invalid field selector: unescaped character in value: " .. char
    else
      out[#out + 1] = char
    end
  end
  if escaped then
    return nil, "invalid field selector: invalid escape sequence: \\"
  end
  return table.concat(out)
end


local function read_term(term)
  local at = term:find("[!=]")
  while at and term:sub(at, at) == "!" and term:sub(at + 1, at + 1) ~= "=" do
    at = term:find("[!=]", at + 1)
  end
  if not at then
    return nil
  end
  local operator = term:match("^!=", at) or term:match("^==", at) or "="
  return term:sub(1, at - 1), operator, term:sub(at + #operator)
end


--- Reads a field selector.
--- @return table|nil terms { { field =, negated =, value = }, … }, or nil and why
function M.parse(text)
  local terms = {}
  for _, term in ipairs(split_terms(text)) do
    if term ~= "" then
      local name, operator, value = read_term(term)
      if not name then
        return nil, ("invalid selector: '%s'; can't understand '%s'"):format(text, term)
      end
      local plain, why = unescape(value)
      if not plain then
        return nil, why
      end
      terms[#terms + 1] = { field = name, negated = operator == "!=", value = plain }
    end
  end
  return terms
end


local function field_of(entry, fields, name)
  if name == "metadata.name" then
    return entry.name
  elseif name == "metadata.namespace" then
    return entry.namespace
  end
  return fields and fields[name] or ""
end


--- Returns true if a store's entry meets what M.parse returned.
--- @param fields table? those that its kind has, name → value
function M.match(terms, entry, fields)
  for _, term in ipairs(terms) do
    if (field_of(entry, fields, term.field) == term.value) == term.negated then
      return false
    end
  end
  return true
end


--- Returns true if terms ask for a field that only some kinds have.
function M.asks_kind(terms)
  for _, term in ipairs(terms) do
    if term.field ~= "metadata.name" and term.field ~= "metadata.namespace" then
      return true
    end
  end
  return false
end


--- The value that the field `name` has to have for every entry that meets `terms`, or nil.
function M.exact(terms, name)
  for _, term in ipairs(terms) do
    if term.field == name and not term.negated then
      return term.value
    end
  end
end


return M
