--- Regular expressions in the syntax of Go's regexp, with Go's messages. RE2 matches them (docs/decisions/0032-re2.md);
--- moonloop/dialect.lua has what RE2 reads in another way.
local dialect = require "moonloop.dialect"
local host = require "cluster.host"

local M = {}

local function refusal(reason, part)
  return ("error parsing regexp: %s: `%s`"):format(reason, part)
end


local function compile(pattern)
  local plain, why, wrong = dialect.translate(pattern)
  if not plain then
    return nil, refusal(why, wrong)
  end
  local compiled, reason, part = host.regex.compile(plain)
  if compiled then
    return compiled
  end
  return nil, refusal(reason, part == plain and pattern or part)
end


-- Pattern → what it was compiled to, as long as somebody uses that: schemas say the same pattern many times.
local known = setmetatable({}, { __mode = "v" })


--- Compiles a pattern.
--- @param pattern string
--- @return cluster.host.Regex|nil re, or nil and Go's message: "error parsing regexp: missing closing ): `(a`"
function M.compile(pattern)
  local compiled, why = known[pattern], nil
  if not compiled then
    compiled, why = compile(pattern)
    known[pattern] = compiled
  end
  return compiled, why
end


return M
