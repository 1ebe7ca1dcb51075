--- Finds texts that stand where a pattern of moonloop.regex has to stand and are none.
local dialect = require "moonloop.dialect"
local program_of = require "analysis.program"

local M = {}

-- Why the text is none, or is another one than its author thinks.
local function problem_of(pattern, compile)
  local why = dialect.too_long(pattern)
  if why then
    return why
  end
  local plain, reason, part = dialect.translate(pattern)
  local done
  if plain then
    done, reason, part = compile(plain)
  end
  if not done then
    return dialect.problem(pattern, reason, part)
  end
  local hint = dialect.hint(pattern)
  return hint and hint .. "; for a percent sign itself write '[%]'"
end


local function check_call(self, chunk, call, called, compile)
  for index, parameter in ipairs(called.parameters) do
    local node = parameter.name == "pattern" and call.arguments[index]
    local value = node and program_of.constant(node)
    local why = value and value.tag == "string" and problem_of(value.value, compile)
    local _ = why and self:tell(chunk, call.line, ("%s: pattern: %s"):format(called.entry.call, why))
  end
end


--- @param self table of init.lua: program, types, tell
--- @param compile function as of init.lua's run
function M.check(self, compile)
  for _, chunk in ipairs(self.program.list) do
    for _, call in ipairs(chunk.calls) do
      local called = self.types:called(call)
      if called and called.entry and called.what:find "^regex%." then
        check_call(self, chunk, call, called, compile)
      end
    end
  end
end


return M
