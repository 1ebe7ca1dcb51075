--- Finds the types of loops and of names within an expression: part of checker.lua.
local types = require "cluster.cel.types"

local M = {}


--- Adds the check of loops. @param Checker table the class @param CHECK table kind of a node → its check
function M.add(Checker, CHECK)
  -- The types of the variables of a loop over that type.
  function Checker:range_types(node, range, two)
    if range.kind == "list" then
      return two and types.int or range.params[1], range.params[1]
    elseif range.kind == "map" then
      return range.params[1], range.params[2]
    elseif range.kind == "dyn" or range.kind == "error" or range.kind == "param" then
      self.types:assignable(types.dyn, range)
      return types.dyn, types.dyn
    end
    self:mistake(node.range,
      "expression of type '%s' cannot be range of a comprehension (must be list, map, or dynamic)", types.format(range))
    return types.error, types.error
  end

  function Checker:expect_bool(node)
    if not self.types:assignable(types.bool, self:check(node)) then
      self:mistake(node, "expected type 'bool' but found '%s'", types.format(node.type))
    end
  end

  -- The call that one step of a loop is, as its mistakes are told.
  local function no_overload(self, node, name, ...)
    self:mistake(node, "found no matching overload for '%s' applied to '%s'", name, types.format_call({ ... }, false))
    return types.error
  end

  local FOLD = {}

  function FOLD.all(self, node)
    self:expect_bool(node.body)
    return types.bool
  end

  FOLD.exists = FOLD.all

  function FOLD.exists_one(self, node)
    local type = self:check(node.body)
    if not self.types:assignable(types.bool, type) then
      no_overload(self, node, "_?_:_", self.types:apply(type, true), types.int, types.int)
    end
    return types.bool
  end

  function FOLD.list(self, node)
    return types.list(self:check(node.body))
  end

  function FOLD.map(self, node, key)
    return types.map(key, self:check(node.body))
  end

  function FOLD.entries(self, node)
    local type = self:check(node.body)
    local made = types.map(self:new_param(), self:new_param())
    if not self.types:assignable(made, type) then
      return no_overload(self, node, "cel.@mapInsert", types.map(types.dyn, types.dyn), self.types:apply(type, true))
    end
    return made
  end

  function CHECK.fold(self, node)
    local range = self.types:apply(self:check(node.range))
    local first, second = self:range_types(node, range, node.var2 ~= nil)
    node.decl = { name = node.var, type = first }
    node.decl2 = node.var2 and { name = node.var2, type = second } or nil
    self:enter(node.decl, node.decl2)
    local filter = node.filter and self:check(node.filter)
    local made = FOLD[node.form](self, node, first)
    if filter and not self.types:assignable(types.bool, filter) then
      local step = self.types:apply(made, true)
      no_overload(self, node, "_?_:_", self.types:apply(filter, true), step, step)
    end
    self:leave()
    self:set(node, self.types:apply(made))
  end

  function CHECK.bind(self, node)
    node.decl = { name = node.var, type = self.types:apply(self:check(node.init)) }
    self:enter(node.decl)
    self:check(node.body)
    self:leave()
    self:set(node, self.types:apply(node.body.type))
  end

  function CHECK.optmap(self, node)
    local target = self.types:apply(self:check(node.target))
    local inner, test = self:new_param(), types.bool
    if not self.types:assignable(target, types.optional(inner)) then
      for _, name in ipairs { "hasValue", "value" } do
        self:mistake(node, "found no matching overload for '%s' applied to '%s.()'", name, types.format(target))
      end
      inner, test = types.error, types.error
    end
    node.decl = { name = node.var, type = self.types:apply(inner) }
    self:enter(node.decl)
    local body = self:check(node.body)
    self:leave()
    local made = node.flat and body or types.optional(body)
    if node.flat and not self.types:assignable(body, types.optional(self:new_param())) then
      no_overload(self, node, "_?_:_", test, self.types:apply(body, true), types.optional(types.dyn))
      made = types.error
    end
    self:set(node, self.types:apply(made))
  end
end


return M
