--- Which type may stand where another is expected, and what type parameters stand for.
---
--- A substitution maps names of type parameters to types. A trial that fails leaves it as it was. Rules: cel-go
--- checker/types.go.
local types = require "cluster.cel.types"

local M = {}

local Substitution = {}
Substitution.__index = Substitution


function M.new()
  return setmetatable({ of = {}, trail = {} }, Substitution)
end


-- Remembers what a parameter stood for, for undo.
function Substitution:bind(param, type)
  self.trail[#self.trail + 1] = { name = param.name, before = self.of[param.name] }
  self.of[param.name] = type
end


function Substitution:undo(mark)
  for i = #self.trail, mark + 1, -1 do
    local entry = self.trail[i]
    self.of[entry.name] = entry.before
    self.trail[i] = nil
  end
end


local NULLABLE = { opaque = true, struct = true, object = true, duration = true, timestamp = true }


local function is_nullable(type)
  return NULLABLE[type.kind] or type.nullable or type.kind == "null"
end


local function is_wild(type)
  return type.kind == "dyn" or type.kind == "error"
end


-- A type is less specific than another when it has dyn in its place.
local function less_specific(a, b)
  if a.kind == "dyn" or a.kind == "param" then
    return true
  elseif b.kind == "dyn" or b.kind == "param" or a.kind ~= b.kind or #a.params ~= #b.params then
    return false
  elseif a.kind == "type" then
    return true
  elseif #a.params == 0 or a.name ~= b.name then
    return types.exact(a, b)
  end
  for i, param in ipairs(a.params) do
    if not less_specific(param, b.params[i]) then
      return false
    end
  end
  return true
end


--- The more general of two types that unify.
function M.most_general(a, b)
  return less_specific(a, b) and a or b
end


-- Does the parameter stand nowhere in the type?
function Substitution:free(param, type)
  if types.exact(param, type) then
    return false
  elseif type.kind == "param" then
    local bound = self.of[type.name]
    return not bound or self:free(param, bound)
  end
  for _, inner in ipairs(type.params) do
    if not self:free(param, inner) then
      return false
    end
  end
  return true
end


-- May the parameter stand for the type? Also: does it stand for one already?
function Substitution:fits(type, param)
  if types.exact(type, param) then
    return true, true
  end
  local bound = self.of[param.name]
  if bound then
    if types.exact(type, bound) then
      return true, true
    elseif not self:assign(type, bound) then
      return false, true
    end
    local general = M.most_general(type, bound)
    if self:free(param, general) then
      self:bind(param, general)
    end
    return true, true
  elseif self:free(param, type) then
    self:bind(param, type)
    return true, false
  end
  return false, false
end


function Substitution:assign_all(list, others)
  if #list ~= #others then
    return false
  end
  for i, type in ipairs(list) do
    if not self:assign(type, others[i]) then
      return false
    end
  end
  return true
end


function Substitution:assign(a, b)
  if b.kind == "param" then
    local fits, bound = self:fits(a, b)
    if fits or bound then
      return fits
    end
  end
  if a.kind == "param" then
    return (self:fits(b, a))
  elseif is_wild(a) or is_wild(b) then
    return true
  elseif a.kind == "null" or b.kind == "null" then
    return is_nullable(a.kind == "null" and b or a)
  elseif a.kind == "type" then
    return b.kind == "type"
  end
  return a.kind == b.kind and a.name == b.name and self:assign_all(a.params, b.params)
end


--- May a value of one type stand where the other is expected? Binds type parameters when it may.
function Substitution:assignable(a, b)
  local mark = #self.trail
  if self:assign(a, b) then
    return true
  end
  self:undo(mark)
  return false
end


--- The same for lists of types.
function Substitution:assignable_all(list, others)
  local mark = #self.trail
  if self:assign_all(list, others) then
    return true
  end
  self:undo(mark)
  return false
end


local function has_param(type)
  if type.kind == "param" then
    return true
  end
  for _, param in ipairs(type.params) do
    if has_param(param) then
      return true
    end
  end
  return false
end


--- The type with its parameters replaced.
--- @param type table
--- @param final boolean|nil parameters that stand for nothing become dyn
function Substitution:apply(type, final)
  if type.kind == "param" then
    local bound = self.of[type.name]
    if bound then
      return self:apply(bound, final)
    end
    return final and types.dyn or type
  elseif not has_param(type) then
    return type
  end
  local params = {}
  for i, param in ipairs(type.params) do
    params[i] = self:apply(param, final)
  end
  return types.with_params(type, params)
end


return M
