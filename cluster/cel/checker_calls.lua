--- Finds which overloads of a function a call may mean: part of checker.lua.
local parser = require "cluster.cel.parser"
local types = require "cluster.cel.types"
local unify = require "cluster.cel.unify"

local M = {}


--- Adds the check of calls. @param Checker table the class @param CHECK table kind of a node → its check
function M.add(Checker, CHECK)
  -- The declaration of an overload with parameters of its own.
  function Checker:instance(overload)
    if #overload.params == 0 then
      return overload.args, overload.result
    end
    local own = unify.new()
    for _, name in ipairs(overload.params) do
      own.of[name] = self:new_param()
    end
    local args = {}
    for i, arg in ipairs(overload.args) do
      args[i] = own:apply(arg)
    end
    return args, own:apply(overload.result)
  end

  function Checker:junction(node)
    local made = types.bool
    for _, arg in ipairs(node.args) do
      if not self.types:assignable(arg.type, types.bool) then
        made = self.issues and types.error or made
        self:mistake(arg, "expected type 'bool' but found '%s'", types.format(arg.type))
      end
    end
    self:set(node, made)
  end

  function Checker:resolve(node, overloads, args)
    local argument_types, result = {}, nil
    for i, arg in ipairs(args) do
      argument_types[i] = arg.type
    end
    node.overloads = {}
    for _, overload in ipairs(overloads) do
      if overload.member == (node.target ~= nil) and #overload.args == #args then
        local wanted, made = self:instance(overload)
        if self.types:assignable_all(argument_types, wanted) then
          made = self.types:apply(made)
          node.overloads[#node.overloads + 1] = overload
          if not result then
            result = made
          elseif result.kind ~= "dyn" and not types.exact(made, result) then
            result = types.dyn
          end
        end
      end
    end
    if not result and not self.issues then
      return self:leave_open(node, overloads, #args)
    elseif not result then
      for i, type in ipairs(argument_types) do
        argument_types[i] = self.types:apply(type, true)
      end
      self:mistake(node, "found no matching overload for '%s' applied to '%s'", node.name,
        types.format_call(argument_types, node.target ~= nil))
    end
    self:set(node, result or types.error)
  end

  -- The values choose the overload.
  function Checker:leave_open(node, overloads, count)
    for _, overload in ipairs(overloads) do
      if overload.member == (node.target ~= nil) and #overload.args == count then
        table.insert(node.overloads, overload)
      end
    end
    node.open = true
    node.failed = #node.overloads == 0 and "no such overload" or nil
    self:set(node, types.dyn)
  end

  function Checker:optional_selection(node)
    local type = self:field_type(node, node.args[1], node.args[2].value, true)
    self:set(node, self.types:apply(type))
  end

  -- "a.b.c(x)" may be a function named "a.b.c": then it has no receiver.
  function Checker:namespaced(node)
    local prefix = node.target and parser.qualified(node.target)
    local overloads, name
    if prefix then
      overloads, name = self:find_function(prefix .. "." .. node.name)
    end
    if overloads then
      node.target, node.name = nil, name
    end
    return overloads
  end

  function CHECK.call(self, node)
    if node.name == "_?._" then
      return self:optional_selection(node)
    end
    for _, arg in ipairs(node.args) do
      self:check(arg)
    end
    if node.name == "_&&_" or node.name == "_||_" then
      return self:junction(node)
    end
    local overloads = self:namespaced(node)
    local args = node.args
    if node.target then
      self:check(node.target)
      args = { node.target, table.unpack(node.args) }
    end
    if not overloads then
      local name
      overloads, name = self:find_function(node.name)
      if not overloads then
        return self:undeclared(node, node.name)
      end
      node.name = name
    end
    self:resolve(node, overloads, args)
  end
end


return M
