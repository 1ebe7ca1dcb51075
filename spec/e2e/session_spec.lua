-- The session in docs/changing.md, on two replicas: each command of each step, and the output that stands there. In
-- each step that changes something the replica that leads is killed, and the other one has to say the same.
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local LEADS = { logger = "election", msg = "leading" }

-- The commands that change nothing begin so.
local ASK = { "kubectl get ", "kubectl events ", "moonloop status", "moonloop why ", "moonloop plan " }

-- {{{ the document

local function begins_with_one_of(text, list)
  for _, begin in ipairs(list) do
    if text:sub(1, #begin) == begin then
      return true
    end
  end
  return false
end


-- { title =, commands = { { line =, output = { line, … }, asks = it changes nothing }, … } } of each step.
local function read_session()
  local text = assert(shell.read "docs/changing.md")
  local session = assert(text:match "\n## A session to follow\n(.-)\n## ")
  local steps, is_console = {}, false
  for line in session:gmatch "[^\n]*" do
    local step = steps[#steps]
    local title, command = line:match "^### (.+)$", line:match "^%$ (.+)$"
    if title then
      steps[#steps + 1] = { title = title, commands = {} }
    elseif line:find "^```" then
      is_console = line == "```console"
    elseif is_console and command then
      table.insert(step.commands, { line = command, output = {}, asks = begins_with_one_of(command, ASK) })
    elseif is_console then
      table.insert(step.commands[#step.commands].output, line)
    end
  end
  assert(#steps > 10, "the session has no steps")
  return steps
end


local function squeeze(line)
  return (line:gsub("%s+", " "):gsub("^ ", ""):gsub(" $", ""))
end


-- "… Normal …" as a pattern.
local function pattern_of(line)
  local escaped = squeeze(line):gsub("[%^%$%(%)%%%.%[%]%*%+%-%?]", "%%%0")
  return "^" .. escaped:gsub("…", ".*") .. "$"
end


-- The first expected line that does not follow in the output; nil: all are there, in this order.
local function first_missing(expected, output)
  local index = 1
  for line in output:gmatch "[^\n]+" do
    if expected[index] and squeeze(line):find(pattern_of(expected[index])) then
      index = index + 1
    end
  end
  return expected[index]
end


-- }}}

describe("The session of docs/changing.md,", function()
  local ns, folder, env, leader, standby
  local definitions = {}

  local function start(name)
    return host.start {
      name = name, configmaps = ns .. "/scripts", namespaces = ns,
      args = {
        "--rollout-settle-seconds", "1", "--leader-elect", "--leader-election-namespace", ns,
        "--leader-election-lease-duration", "4s", "--leader-election-renew-deadline", "3s",
        "--leader-election-retry-period", "500ms",
      },
    }
  end

  -- Of the first two any may lead, once there is a script.
  local function find_leader()
    if #standby:lines(LEADS) > 0 then
      leader, standby = standby, leader
    end
  end

  -- On the PATH of the commands.
  local function write_program(name, text)
    local path = folder .. "/bin/" .. name
    shell.write(path, "#!/bin/sh\n" .. text .. "\n")
    shell.must("chmod +x " .. path)
  end

  -- The replica that leads is asked.
  local function write_moonloop()
    find_leader()
    write_program("moonloop", ([[case $1 in status|why) set -- "$@" --pid %d ;; esac
exec %s "$@"]]):format(leader.pid, shell.quote(host.binary)))
  end

  local function fail_over()
    find_leader()
    standby:till_log { logger = "election", msg = "standing by" }
    leader:kill()
    standby:till_log(LEADS, 40)
    leader, standby = standby, start "session"
  end

  setup(function()
    ns = cluster.namespace "session"
    folder = shell.folder "session"
    local kubectl = shell.must("command -v " .. shell.quote(os.getenv "KUBECTL" or "kubectl")):gsub("\n", "")
    shell.must(("mkdir %s/bin && cp -r examples/site %s/site && cp %s %s/kubeconfig"):format(folder, folder,
      shell.quote(os.getenv "KUBECONFIG"), folder))
    write_program("kubectl", ('exec %s --kubeconfig %s/kubeconfig "$@"'):format(kubectl, folder))
    shell.must(folder .. "/bin/kubectl config set-context --current --namespace " .. ns)
    env = shell.env { KUBECONFIG = folder .. "/kubeconfig", PATH = folder .. "/bin:" .. os.getenv "PATH" }
    leader, standby = start "session", start "session"
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  -- Returns the output, with the names that the document has.
  local function run(line)
    write_moonloop()
    local script = ("cd %s/site\n%s\n%s"):format(folder, table.concat(definitions, "\n"), (line:gsub("default", ns)))
    local output, code = shell.run(("%s bash -c %s 2>&1"):format(env, shell.quote(script)))
    return output:gsub(ns:gsub("%-", "%%-"), "default"), code
  end

  local function ask(command)
    local output
    local ok = pcall(wait.till, command.line, 20, function()
      output = run(command.line)
      return not first_missing(command.output, output)
    end)
    assert(ok, ("%s\nno line: %s\nof:\n%s"):format(command.line, first_missing(command.output, output), output))
  end

  local function change(command)
    if command.line:find "^[%w_]+%(%)" then
      definitions[#definitions + 1] = command.line
      return
    end
    local output, code = run(command.line)
    assert(code == 0, output)
    local missing = first_missing(command.output, output)
    assert(not missing, ("%s\nno line: %s\nof:\n%s"):format(command.line, missing, output))
  end

  for _, step in ipairs(read_session()) do
    it(step.title, function()
      local is_changed, was_killed = false, false
      for _, command in ipairs(step.commands) do
        if not command.asks then
          change(command)
          is_changed = is_changed or not begins_with_one_of(command.line, { "sed ", "cp " })
        else
          ask(command)
          if is_changed and not was_killed then
            fail_over()
            was_killed = true
            ask(command)
          end
        end
      end
    end)
  end
end)
