-- A host that is killed right after each of its writes, and started again: the server has done what was asked, and the
-- process never hears of it. Needs the proxy. For operators_killed_spec.lua.
--
-- A new process does not know which children have been applied, and applies the first of them again. That changes
-- nothing, so it passes, once in each process; else none would come further than its first child.
--
--   local killed = kills.start { name = "killed", scripts = … }
--   killed:till("the Database to be ready", 30, function() return …, "what is there" end)
--   killed:stop()
--   killed.count                                          -- how many processes were killed
local host = require "spec.e2e.support.host"
local proxy = require "spec.e2e.support.proxy"
local wait = require "spec.e2e.support.wait"

local M = {}
M.__index = M

M.available = proxy.available

-- Events pass: they are told beside the work, and nothing waits for them.
local EVENTS = { name = "event", path = "/events(\\?|$)", action = "delay" }
local METHODS = { "POST", "PUT", "PATCH", "DELETE" }


-- Lets the writes of `passed` through, once each; what else is written never has a reply.
local function set_rules(self)
  local rules = { EVENTS }
  for _, write in pairs(self.passed) do
    local path = "^" .. write.path:gsub("[%^%$%.%[%]|()?*+{}\\]", "\\%0") .. "$"
    rules[#rules + 1] = { name = "again", method = write.method, path = path, times = 1, action = "delay" }
  end
  for _, method in ipairs(METHODS) do
    rules[#rules + 1] = { name = "write", method = method, action = "stall" }
  end
  self.faults:clear()
  self.faults:add(rules)
end


local function start_process(self)
  set_rules(self)
  self.process = host.start(self.opts)
end


-- Notes the writes that the next process will repeat: applies of existing objects, and refused requests.
local function note(self, write)
  local place = write.path:match "^[^?]*"
  if write.method == "DELETE" then
    self.passed["PATCH " .. place] = nil
  elseif write.status >= 300 or write.method == "PATCH" and not place:find "/status$" then
    self.passed[write.method .. " " .. place] = write
  end
end


--- Starts the first process.
---@param opts table as of host.start
function M.start(opts)
  local self = setmetatable({ opts = opts, faults = proxy.open(opts.name), passed = {}, count = 0 }, M)
  opts.kubeconfig = self.faults.kubeconfig
  start_process(self)
  return self
end


-- Has the server answered a write of the present process?
local function has_written(self)
  local found = false
  for _, request in ipairs(self.faults:log()) do
    if request.rule == "write" and request.status > 0 then
      note(self, request)
      found = true
    end
  end
  return found
end


local function next_process(self)
  self.process:kill()
  self.count = self.count + 1
  start_process(self)
end


--- As wait.till; meanwhile each process that has written is killed, and another one started. When this returns, writes
--- that were let through as repeated ones do not pass any more: somebody may now edit an object.
function M:till(what, seconds, predicate)
  local result = wait.till(what, seconds, function()
    if has_written(self) then
      next_process(self)
    elseif self.process:exit_code() then
      error("the host ended by itself: " .. self.process:stderr(), 0)
    end
    return predicate()
  end)
  self.passed = {}
  set_rules(self)
  return result
end


--- Kills the last process.
function M:stop()
  self.process:kill()
  self.faults:clear()
end


return M
