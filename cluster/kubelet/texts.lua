--- Finds texts that the system cannot take as a command line, an environment or a path: with NUL in them, or too many.
local M = {}

local WORDS_MAX = 100000 -- as process.start has it


local function has_nul(list)
  for _, text in ipairs(list) do
    if text:find("\0", 1, true) then
      return true
    end
  end
  return false
end


--- Why a command cannot be run, in the words of Go and runc; nil when it can.
--- @param words table
function M.problem_of_command(words)
  if #words == 0 then
    return "process args cannot be empty"
  elseif #words > WORDS_MAX then
    return ("exec: %q: argument list too long"):format(words[1])
  elseif has_nul(words) then
    return ("exec: %q: invalid argument"):format(words[1])
  end
end


--- Why a container cannot be started: its command, its environment, or a path. nil when it can.
--- @param command table words  @param env table "NAME=value"  @param plan table of mounts.lua or links.lua
function M.problem(command, env, plan)
  local paths = { plan.directory }
  for _, mount in ipairs((plan.container or {}).mounts or {}) do
    paths[#paths + 1] = mount.target
    paths[#paths + 1] = mount.subpath
  end
  if has_nul(env) then
    return "environment variable can't contain null(\\x00)"
  elseif has_nul(paths) then
    return "a path can't contain null(\\x00)"
  end
  return M.problem_of_command(command)
end


return M
