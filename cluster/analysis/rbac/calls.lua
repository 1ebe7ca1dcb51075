--- Finds the functions of ctx that a script calls, and the kinds it calls them with, as far as its text tells:
--- `moonloop rbac` grants only verbs that the script can use. A kind that the text leaves open counts as "any", so
--- everything that the script does is covered:
---
---   * a function of ctx is used when `.NAME` stands anywhere in the text, or `ctx[…]` with anything but a string;
---   * the kind of ctx.get and ctx.list is their first argument, when that is a variable which moonloop.kind made;
---   * the kinds that are created and applied are those of the tables with `kind = "Pod"` or `kind = Pod.kind`;
---   * the kind of what is patched or deleted is that of the variable, when all that is assigned to it was read by
---     one of these calls, or is the object that reconcile was called with (variables.lua).
local lexer = require "analysis.lexer"
local variables = require "cluster.analysis.rbac.variables"

local M = {}

local METHODS = { "get", "list", "ensure", "create", "apply", "patch", "delete", "once", "event" }
local READS = { get = true, list = true }
local OF_OBJECT = { patch = true, delete = true, ensure = true, create = true, apply = true }
local CONSTRUCTED = { ensure = true, create = true, apply = true }
-- Texts and trees become tables in these ways, and their kinds are not in the script.
local DECODES = { decode = true }

local is_method = {}
for _, name in ipairs(METHODS) do
  is_method[name] = true
end

-- Adds kinds to a set; nil: any kind, which sets `any` in it.
local function add(set, kinds)
  if not kinds then
    set.any = true
  else
    for kind in pairs(kinds) do
      set[kind] = true
    end
  end
end


local function is(token, text)
  return token ~= nil and token.type ~= "string" and token.text == text
end


-- "apps/v1/Deployment" of `NAME.kind("apps/v1", "Deployment"`, whose first token is at `at`.
local function kind_made_at(tokens, at)
  local dot, call, open, version, comma, kind = table.unpack(tokens, at + 1, at + 6)
  if tokens[at] and tokens[at].type == "name" and is(dot, ".") and is(call, "kind") and is(open, "(")
    and version.type == "string" and is(comma, ",") and kind.type == "string"
  then
    return version.text .. "/" .. kind.text
  end
end


-- The kinds of the expression that begins at `at` and ends before a comma or a bracket; nil: any.
local function kinds_at(tokens, at, kinds)
  local made = kind_made_at(tokens, at)
  if made then
    return { [made] = true }
  end
  while tokens[at] and tokens[at].type == "name" and is(tokens[at + 1], ".") do
    at = at + 2
  end
  local after = tokens[at + 1]
  local ends = is(after, ",") or is(after, ")") or is(after, "}")
  return tokens[at] and tokens[at].type == "name" and ends and kinds[tokens[at].text] or nil
end


-- Variables, and fields of modules, that moonloop.kind made: name → set of kinds.
local function find_kinds(tokens)
  local kinds = {}
  for at, token in ipairs(tokens) do
    local made = token.type == "name" and is(tokens[at + 1], "=") and kind_made_at(tokens, at + 2)
    if made then
      kinds[token.text] = kinds[token.text] or {}
      kinds[token.text][made] = true
    end
  end
  return kinds
end


-- The kind in `kind = …`, whose value begins at `at`: a set of the names of kinds; nil: any.
local function constructed_at(tokens, at, kinds)
  local value, dot, field = tokens[at], tokens[at + 1], tokens[at + 2]
  if value.type == "string" then
    return { [value.text] = true }
  end
  if value.type == "name" and is(dot, ".") and is(field, "kind") and kinds[value.text] then
    local names = {}
    for kind in pairs(kinds[value.text]) do
      names[kind:match "[^/]+$"] = true
    end
    return names
  end
end


-- The names of the kinds of all tables that the text constructs.
local function find_constructed(tokens, kinds)
  local constructed = {}
  for at, token in ipairs(tokens) do
    local is_key = token.text == "kind" and (token.type == "name" or is(tokens[at + 1], "]"))
    local equals = token.type == "string" and at + 2 or at + 1
    if is_key and is(tokens[equals], "=") and tokens[equals + 1] then
      add(constructed, constructed_at(tokens, equals + 1, kinds))
    elseif token.type == "name" and DECODES[token.text] and is(tokens[at - 1], ".") then
      constructed.any = true
    end
  end
  return constructed
end


local function opens(token)
  return is(token, "(") or is(token, "{")
end


-- The name in `roleRef = { … name = "view" … }`, whose first token is at `at`, and whether it is that of a ClusterRole;
-- nil: it is not fixed.
local function role_at(tokens, at)
  if not (is(tokens[at + 1], "=") and is(tokens[at + 2], "{")) then
    return nil
  end
  local name, is_cluster = nil, true
  for position = at + 3, #tokens do
    local key, value = tokens[position], tokens[position + 2]
    if is(key, "}") then
      return name, is_cluster
    elseif is(tokens[position + 1], "=") and value and value.type == "string" then
      name = is(key, "name") and value.text or name
      is_cluster = is_cluster and not (is(key, "kind") and value.text == "Role")
    end
  end
end


-- Does a call of a function of ctx begin at `at`: NAME . METHOD ( or NAME . METHOD {?
local function call_at(tokens, at)
  local base, dot, method, open = table.unpack(tokens, at, at + 3)
  return base and base.type == "name" and is(dot, ".") and method and method.type == "name" and is_method[method.text]
    and opens(open) and method.text or nil
end


-- The kinds of what is assigned by the expression at `at`; nil: any.
local function read_at(tokens, at, kinds)
  while is(tokens[at], "assert") or is(tokens[at], "(") or is(tokens[at], "ipairs") do
    at = at + 1
  end
  local method = call_at(tokens, at)
  return method and READS[method] and kinds_at(tokens, at + 4, kinds) or nil
end


-- The kinds of the first parameter of the function at `at`: of `reconcile = function(`, moonloop.watch(Kind, function(
-- and moonloop.index(Kind, function(.
local function first_parameter(tokens, at, kinds, reconciled)
  local before = tokens[at - 2]
  if is(tokens[at - 1], "=") and (is(before, "reconcile") or is(before, "finalize")) then
    return { [reconciled] = true }
  end
  local call = tokens[at - 4]
  if is(tokens[at - 1], ",") and before.type == "name" and is(tokens[at - 3], "(")
    and (is(call, "watch") or is(call, "index"))
  then
    return kinds[before.text]
  end
end


-- The kinds that the call at `at` has to do with.
local function kinds_of_call(tokens, at, method, known)
  if READS[method] then
    return kinds_at(tokens, at + 4, known.kinds)
  end
  if OF_OBJECT[method] then
    local object, after = tokens[at + 4], tokens[at + 5]
    local kinds = object and object.type == "name" and (is(after, ",") or is(after, ")"))
      and known.kinds_of_variable(at, object.text)
    if kinds then
      return kinds
    end
    return CONSTRUCTED[method] and {} or nil -- what is constructed counts in any case
  end
  return {}
end


-- The literal name in ctx.get(Kind, "name"…: the call begins at `at`.
local function literal_name(tokens, at)
  at = at + 4
  while tokens[at] and tokens[at].type == "name" or is(tokens[at], ".") do
    at = at + 1
  end
  local name = tokens[at + 1]
  return is(tokens[at], ",") and name and name.type == "string" and (is(tokens[at + 2], ",") or is(tokens[at + 2], ")"))
    and name.text or nil
end


-- Fixed names, by kind; `any` where one is not fixed.
local function note_name(found, kinds, name)
  for kind in pairs(kinds or {}) do
    found.names[kind] = found.names[kind] or {}
    found.names[kind][name or false] = true
  end
end


local function note_call(tokens, at, found, known)
  local method = call_at(tokens, at)
  if not method then
    return
  end
  local kinds = kinds_of_call(tokens, at, method, known)
  found.calls[method] = found.calls[method] or {}
  add(found.calls[method], kinds)
  if method == "get" then
    note_name(found, kinds, literal_name(tokens, at))
  end
end


-- `.get` without a call of it: what it is called with is not known. And `ctx[x]`, which may be any function.
local function note_mention(tokens, at, found)
  local token = tokens[at]
  if is(tokens[at - 1], ".") and token.type == "name" and is_method[token.text] and not opens(tokens[at + 1]) then
    local is_field = is(tokens[at + 1], "=") or is(tokens[at + 1], ".")
    if not is_field then
      found.calls[token.text] = found.calls[token.text] or {}
      found.calls[token.text].any = true
    end
  elseif token.type == "string" and is_method[token.text] and is(tokens[at - 1], "[") and is(tokens[at + 1], "]") then
    found.calls[token.text] = { any = true }
  elseif is(token, "ctx") and is(tokens[at + 1], "[") and tokens[at + 2].type ~= "string" then
    for _, method in ipairs(METHODS) do
      found.calls[method] = { any = true }
    end
  end
end


--- The calls in `texts` (a script and its modules); `reconciled` is "group/version/Kind" of the declaration.
--- @return table calls: function → set of "v1/Kind", or with `any`; constructed: set of names of kinds, or with `any`;
---   names: "v1/Kind" → set of the names that ctx.get is called with, false for one that is not fixed; keys: set of the
---   keys that tables are constructed with (`finalize`, `children`); binds: set of "clusterroles/view", or with `any`
function M.find(texts, reconciled)
  local found = { calls = {}, names = {}, keys = {}, binds = {} }
  local tokens = {}
  for _, text in ipairs(texts) do
    local list = lexer.tokens(text)
    table.move(list, 1, #list, #tokens + 1, tokens)
  end
  local known = { kinds = find_kinds(tokens) }
  known.kinds_of_variable = variables.of(tokens, function(at)
    return read_at(tokens, at, known.kinds)
  end, function(at)
    return first_parameter(tokens, at, known.kinds, reconciled)
  end)
  found.constructed = find_constructed(tokens, known.kinds)
  for at, token in ipairs(tokens) do
    note_call(tokens, at, found, known)
    note_mention(tokens, at, found)
    if is(token, "roleRef") then
      local name, is_cluster = role_at(tokens, at)
      found.binds.any = found.binds.any or name == nil
      found.binds[(is_cluster and "clusterroles/" or "roles/") .. (name or "")] = name
    end
    if token.type == "name" and is(tokens[at + 1], "=")
      or token.type == "string" and is(tokens[at + 1], "]") and is(tokens[at + 2], "=")
    then
      found.keys[token.text] = true
    end
  end
  return found
end


return M
