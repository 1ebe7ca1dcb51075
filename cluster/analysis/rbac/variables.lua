--- Which kinds of objects the local variables of a script may hold, for calls.lua: those of the calls that they were
--- assigned from. Follows blocks and parameters as Lua does, and assumes nothing else: what it does not understand may
--- be any kind.
local M = {}

local OPENS = { ["function"] = true, ["do"] = true, ["then"] = true, ["else"] = true, ["repeat"] = true }
local CLOSES = { ["end"] = true, ["until"] = true, ["elseif"] = true, ["else"] = true }
-- Tokens that an expression does not continue with.
local STATEMENTS = {
  ["local"] = true, ["return"] = true, ["if"] = true, ["for"] = true, ["while"] = true, ["do"] = true, ["then"] = true,
  ["repeat"] = true, ["end"] = true, ["else"] = true, ["elseif"] = true, ["until"] = true, ["break"] = true,
  ["goto"] = true, [";"] = true, ["in"] = true,
}
local OPERATORS = { ["and"] = true, ["or"] = true, ["not"] = true }
local DEPTH = { ["("] = 1, ["["] = 1, ["{"] = 1, [")"] = -1, ["]"] = -1, ["}"] = -1 }

local function is(token, text)
  return token ~= nil and token.type ~= "string" and token.text == text
end


local function add(set, kinds)
  if not kinds then
    set.any = true
  end
  for kind in pairs(kinds or {}) do
    set[kind] = true
  end
end


-- The binding of a name that is visible in the block, or nil.
local function visible(block, name)
  while block do
    if block.names[name] then
      return block.names[name]
    end
    block = block.parent
  end
end


-- Does an expression end before the token at `at`, at depth 0?
local function ends_before(tokens, at)
  local before, token = tokens[at - 1], tokens[at]
  if not token or token.type ~= "string" and STATEMENTS[token.text] then
    return true
  end
  local ends_operand = before.type ~= "symbol" and not OPERATORS[before.text] or is(before, ")") or is(before, "]")
    or is(before, "}")
  return token.type == "name" and not OPERATORS[token.text] and ends_operand
end


-- The expressions that begin at `at`: list of { first, last } tokens, and whether all of them were understood.
local function expressions(tokens, at)
  local list, first, depth = {}, at, 0
  while true do
    local token = tokens[at]
    local is_end = depth == 0 and at > first and ends_before(tokens, at)
    if not token or is_end or is(token, "function") then
      list[#list + 1] = { first, at - 1 }
      return list, not is(token, "function")
    elseif depth == 0 and is(token, ",") then
      list[#list + 1], first = { first, at - 1 }, at + 1
    else
      depth = depth + (token.type ~= "string" and DEPTH[token.text] or 0)
      if depth < 0 then
        list[#list + 1] = { first, at - 1 }
        return list, true
      end
    end
    at = at + 1
  end
end


-- The kinds of what an expression comes to; nil: any. `read` says of a call that begins at a token what it reads.
local function kinds_of(tokens, range, block, read)
  local first, last = range[1], range[2]
  local name = tokens[first]
  if first == last and name.type == "name" then
    local binding = visible(block, name.text)
    return binding and not binding.any and binding or nil
  end
  local depth = 0
  for at = first, last do
    depth = depth + (tokens[at].type ~= "string" and DEPTH[tokens[at].text] or 0)
    local otherwise = is(tokens[at], "or") and not is(tokens[at + 1], "{")
    if depth <= 1 and (otherwise or is(tokens[at], "and")) then
      return nil
    end
  end
  return read(first)
end


-- The names from `at` on, separated by commas, and the token behind them.
local function name_list(tokens, at)
  local names = {}
  while tokens[at] and tokens[at].type == "name" do
    names[#names + 1] = tokens[at].text
    at = at + 1
    if is(tokens[at], "<") then -- <const>, <close>
      at = at + 3
    end
    if not is(tokens[at], ",") then
      break
    end
    at = at + 1
  end
  return names, at
end


local function bind(block, name, kinds)
  block.names[name] = {}
  add(block.names[name], kinds)
end


-- `local a, b = …`, or without `local`. The result of a call beyond the first is no object when the first is one: it is
-- the error.
local function assign(tokens, at, block, read, is_local)
  local names, behind = name_list(tokens, at)
  local list, understood = {}, true
  if is(tokens[behind], "=") then
    list, understood = expressions(tokens, behind + 1)
  elseif not is_local then
    return
  end
  for index, name in ipairs(names) do
    local range, kinds = list[index], {}
    if range then
      kinds = kinds_of(tokens, range, block, read)
    elseif #list > 0 and not (understood and read(list[#list][1])) then
      kinds = nil
    end
    if is_local then
      bind(block, name, kinds)
    else
      local binding = visible(block, name)
      if binding then
        add(binding, kinds)
      end
    end
  end
end


-- The variables of a loop, which its block gets: `for _, pod in ipairs(ctx.list(Pod))`.
local function loop_names(tokens, at, block, read)
  local names, behind = name_list(tokens, at)
  local kinds
  if is(tokens[behind], "in") and is(tokens[behind + 1], "ipairs") and is(tokens[behind + 2], "(") then
    local list = expressions(tokens, behind + 3)
    kinds = kinds_of(tokens, list[1], block, read)
  end
  local result = {}
  for index, name in ipairs(names) do
    result[name] = index == 2 and (kinds or { any = true }) or { any = true }
  end
  return result
end


-- The parameters of the function at `at`, whose first one has these kinds (nil: any).
local function parameters(tokens, at, block, first)
  while tokens[at] and not is(tokens[at], "(") do
    at = at + 1
  end
  for index, name in ipairs((name_list(tokens, at + 1))) do
    bind(block, name, index == 1 and first or nil)
  end
end


--- @param tokens table of a lexer
--- @param read function(at) of a call or expression at a token: the set of kinds that it reads; nil: not known
--- @param first function(at) of a `function` at a token: the set of kinds of its first parameter; nil: any
--- @return function(at, name) the set of kinds that the variable may hold there; nil: any
function M.of(tokens, read, first)
  local block, blocks, loops = { names = {}, depth = 0 }, {}, {}
  for at, token in ipairs(tokens) do
    local text = token.type ~= "string" and token.text
    if CLOSES[text] then
      block = block.parent or block
    end
    if OPENS[text] then
      block = { parent = block, names = {}, depth = 0 }
      if text == "function" then
        parameters(tokens, at, block, first(at))
      elseif text == "do" and loops[#loops] and loops[#loops].parent == block.parent then
        block.names = table.remove(loops).names
      end
    elseif text == "for" then
      loops[#loops + 1] = { parent = block, names = loop_names(tokens, at + 1, block, read) }
    elseif text == "{" or text == "}" then
      block.depth = block.depth + DEPTH[text]
    elseif text == "local" and not is(tokens[at + 1], "function") then
      assign(tokens, at + 1, block, read, true)
    elseif token.type == "name" and block.depth == 0 and not is(tokens[at - 1], ".") and not is(tokens[at - 1], ",")
      and not is(tokens[at - 1], "local")
    then
      assign(tokens, at, block, read, false)
    end
    blocks[at] = block
  end
  return function(at, name)
    local binding = visible(blocks[at], name)
    return binding and not binding.any and binding or nil
  end
end


return M
