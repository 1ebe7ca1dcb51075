--- The pods of a world: none runs a process, each does what the test sets.
local fake_runtime = require "cluster.kubelet.fake_runtime"
local host = require "cluster.host"
local kubelet = require "cluster.kubelet"
local label_selectors = require "cluster.apiserver.selector.labels"

local M = {}

local POD = { apiVersion = "v1", kind = "Pod" }
local CODES = { Succeeded = 0, Failed = 1 }
local CODE_MAX = 255

local HABITS = {
  run = function() return nil end,
  succeed = function() return { after = 0, code = 0 } end,
  fail = function() return { after = 0, code = 1 } end,
}


local function refuse(field, why)
  error(("world.pods(rule): %s: %s"):format(field, host.escape(why)), 0)
end


-- A rule as a test gives it, with its selector read. `starts`: of containers, that it counted.
local function rule_of(given)
  local rule = { starts = {}, count = 0 }
  for name, value in pairs(given) do
    if type(value) == "number" and not (value >= 0 and value < math.huge) then
      refuse(name, "expected 0 or more")
    end
    rule[name] = value
  end
  if given.exit_code and given.exit_code > CODE_MAX then
    refuse("exit_code", ("expected 0 to %d"):format(CODE_MAX))
  elseif given.exit_after and not given.exit_code then
    rule.exit_code = 0
  end
  if given.matching then
    local selector, why = label_selectors.parse(given.matching)
    rule.selector = selector or refuse("matching", why)
  end
  return rule
end


-- Is the rule for this start of a container? Counts the start.
local function is_for(rule, pod, container, attempt)
  local meta = pod.metadata
  local is_named = not rule.name or rule.name == meta.name
  if not is_named or rule.selector and not label_selectors.match(rule.selector, meta.labels) then
    return false
  end
  local start = ("%s/%s/%d"):format(meta.uid, container.name, attempt)
  if not rule.starts[start] and rule.count < (rule.times or math.huge) then
    rule.starts[start] = true
    rule.count = rule.count + 1
  end
  return rule.starts[start] ~= nil
end


-- The doings of containers by a rule; it leaves the rest to the habit of the world.
local function outcome_by(rule, habit)
  local outcome = habit or {}
  return {
    ready_after = rule.ready_after,
    after = rule.exit_code and (rule.exit_after or 0) or outcome.after,
    code = rule.exit_code or outcome.code,
  }
end


function M.add(world, server, habit, guard, settle)
  local decide, rules = type(habit) == "function" and habit or HABITS[habit], {}
  local runtime = fake_runtime.new(function(pod, container, attempt)
    local outcome = decide(pod, container)
    for i = #rules, 1, -1 do
      if is_for(rules[i], pod, container, attempt) then
        return outcome_by(rules[i], outcome)
      end
    end
    return outcome
  end)
  kubelet.new(server, { runtime = runtime }):start()

  --- From now on the containers of some pods do this; the last rule that fits a pod counts. One that runs already goes
  --- on, and is ready when the rule says.
  function world.pods(rule)
    guard()
    rules[#rules + 1] = rule_of(rule)
    runtime:decide_again()
    settle()
  end

  --- Ends a pod that runs. @param how string|integer|nil "Succeeded" (default), "Failed", or an exit code
  function world.finish_pod(name, how, namespace)
    guard()
    local code = how == nil and 0 or CODES[how] or how
    local pod = world.get(POD, name, namespace)
    if not pod or runtime:finish(pod, code) == 0 then
      error(("finish_pod: no container of pod %s runs"):format(name), 0)
    end
    settle()
  end
end


return M
