--- The macros: calls that the parser turns into loops over lists and maps.
---
--- A loop is a node { kind = "fold", form, at, range, var, var2, filter, body }. Its form says what it makes:
---   all, exists, exists_one   a bool
---   list                      map, filter, transformList: a list of bodies
---   map, entries              transformMap: a map of the keys to bodies; transformMapEntry: bodies are maps
--- { kind = "optmap", target, var, body, flat } is optMap and optFlatMap; { kind = "bind", var, init, body } gives a
--- value a name. Rules: cel-go parser/macro.go, ext/comprehensions.go, cel/library.go, ext/lists.go.
local M = {}


local function refuse(node, message)
  return nil, { at = node.at, message = message }
end


-- The name of a loop's variable; nil and what is wrong with it.
local function variable(node, message)
  if node.kind ~= "ident" then
    return refuse(node, message)
  elseif node.name == "__result__" or node.name == "@result" then
    return refuse(node, "iteration variable overwrites accumulator variable")
  end
  return node.name
end


local function fold(form, message)
  return function(at, args, target)
    local var, mistake = variable(args[1], message)
    if not var then
      return nil, mistake
    end
    return {
      kind = "fold", form = form, at = at, range = target, var = var,
      filter = #args == 3 and args[2] or nil, body = args[#args],
    }
  end
end


local function filter(at, args, target)
  local var, mistake = variable(args[1], "argument is not an identifier")
  if not var then
    return nil, mistake
  end
  return { kind = "fold", form = "list", at = at, range = target, var = var, filter = args[2], body = args[1] }
end


-- Of loops over indexes and elements, or keys and values.
local function fold_two(form, quantifier)
  return function(at, args, target)
    for i = 1, 2 do
      if args[i].kind ~= "ident" then
        return refuse(args[i], "argument must be a simple name")
      end
    end
    if args[1].name == args[2].name then
      return refuse(args[2], "duplicate variable name: " .. args[1].name)
    end
    for i = 1, 2 do
      local var, mistake = variable(args[i])
      if not var then
        return nil, mistake
      end
    end
    return {
      kind = "fold", form = form, at = at, range = target, var = args[1].name, var2 = args[2].name,
      filter = not quantifier and #args == 4 and args[3] or nil, body = args[#args],
    }
  end
end


local function has(at, args)
  local node = args[1]
  if node.kind ~= "select" then
    return refuse(node, "invalid argument to has() macro")
  end
  return { kind = "select", at = at, operand = node.operand, field = node.field, test = true }
end


local function optmap(name, flat)
  return function(at, args, target)
    if args[1].kind ~= "ident" then
      return refuse(args[1], name .. "() variable name must be a simple identifier")
    end
    return { kind = "optmap", at = at, target = target, var = args[1].name, body = args[2], flat = flat }
  end
end


-- list.sortBy(e, key): the list and the list of its keys.
local function sort_by(at, args, target)
  local var = args[1]
  if var.kind ~= "ident" then
    return refuse(var, "sortBy can only be applied to a list, identifier, comprehension, call or select expression")
  end
  local input = "@__sortBy_input__"
  local keys = {
    kind = "fold", form = "list", at = at, range = { kind = "ident", at = at, name = input }, var = var.name,
    body = args[2],
  }
  return {
    kind = "bind", at = at, var = input, init = target, body = {
      kind = "call", at = at, name = "@sortByAssociatedKeys", target = { kind = "ident", at = at, name = input },
      args = { keys },
    },
  }
end


-- name:count of arguments:is there a receiver
local MACROS = { ["has:1:false"] = has, ["filter:2:true"] = filter, ["sortBy:2:true"] = sort_by }

for _, name in ipairs { "all", "exists", "exists_one" } do
  MACROS[name .. ":2:true"] = fold(name, "argument must be a simple name")
  MACROS[name .. ":3:true"] = fold_two(name, true)
end
MACROS["existsOne:3:true"] = MACROS["exists_one:3:true"] -- Kubernetes does not have it with one variable
MACROS["map:2:true"] = fold("list", "argument is not an identifier")
MACROS["map:3:true"] = MACROS["map:2:true"]
for name, form in pairs { transformList = "list", transformMap = "map", transformMapEntry = "entries" } do
  MACROS[name .. ":3:true"] = fold_two(form)
  MACROS[name .. ":4:true"] = MACROS[name .. ":3:true"]
end
MACROS["optMap:2:true"] = optmap("optMap", false)
MACROS["optFlatMap:2:true"] = optmap("optFlatMap", true)


local function bind(at, args)
  if args[1].kind ~= "ident" then
    return refuse(args[1], "cel.bind() variable names must be simple identifiers")
  end
  return { kind = "bind", at = at, var = args[1].name, init = args[2], body = args[3] }
end


--- The function that expands cel.bind(name, value, expression); nil for other calls.
function M.binding(name, args, target)
  local is_bind = name == "bind" and #args == 3 and target and target.kind == "ident" and target.name == "cel"
  return is_bind and bind or nil
end


--- The function that expands a call.
--- @param name string
--- @param count integer of arguments
--- @param member boolean is there a receiver?
--- @return function|nil expand (at, args, target) → node, or nil and { at, message }
function M.find(name, count, member)
  return MACROS[("%s:%d:%s"):format(name, count, member)]
end


return M
