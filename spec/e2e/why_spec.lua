-- moonloop status, why and trace, asked of hosts that run with everything on: what a person is told of an object, with
-- the process killed and with a replica that stands by.
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local NO_SUCH_PROCESS = "4194304" -- beyond the kernel's highest

describe("moonloop status and why", function()
  local ns

  before_each(function()
    ns = cluster.namespace "why"
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start(name, args)
    return host.start { name = name, scripts = "reconcilers/cnat.lua", namespaces = ns, args = args }
  end

  -- Runs the command and returns what it prints; `at` is the host that is asked.
  local function ask(at, ...)
    local words = { ... }
    words[#words + 1] = "--pid"
    words[#words + 1] = tostring(at.pid)
    local result = host.command(words)
    assert.same({ 0, "" }, { result.code, result.err })
    return result.out
  end

  local function decoded(at, ...)
    return assert(cjson.decode(ask(at, ...)))
  end

  local function why(at, kind, name)
    return decoded(at, "why", kind, ns .. "/" .. name, "-o", "json")
  end

  local function till_why(at, kind, name, what, holds)
    return wait.till(what, 20, function()
      local answer = why(at, kind, name)
      return holds(answer) and answer, cjson.encode(answer)
    end)
  end

  it("tell what an object waits for, and then what was done for it", function()
    local one = start "why"
    one:till_ready()
    local due = cluster.due_in(6)
    cluster.at(ns, "a", due)
    local waits = till_why(one, "At", "a", "a time to be due", function(answer)
      return answer.controllers[1].due
    end)
    assert.equal("its last run asked to be called again", waits.controllers[1].now)
    assert.equal(due:sub(1, 19), waits.controllers[1].due:sub(1, 19))
    cluster.till_phase(ns, "a", "DONE")
    local done = till_why(one, "at", "a", "the last run to be told", function(answer)
      return answer.controllers[1].now == "nothing is due: a change wakes it" and #answer.runs > 2
    end)
    assert.matches("^At " .. ns:gsub("%-", "%%-") .. "/a", done.runs[1].cause)
    assert.equal("requeue", done.runs[2].cause)
    local made = why(one, "Pod", "a-pod").writes[1]
    assert.same({ "create", "cnat", ns .. "/a" }, { made.verb, made.controller, made["for"] })
    assert.matches("^cnat%.lua:%d+$", made.place)
    local text = ask(one, "why", "pods", ns .. "/a-pod")
    assert.matches("no controller of this host reconciles Pod\n", text, 1, true)
    assert.matches(("create Pod %s/a-pod, by cnat"):format(ns), text, 1, true)
    text = ask(one, "why", "At", ns .. "/a")
    assert.matches(("create Pod %s/a-pod, by cnat for %s/a, cnat.lua:"):format(ns, ns), text, 1, true)
  end)

  it("tell who has set a field, and by which line of a script", function()
    local one = start "why-field"
    one:till_ready()
    cluster.at(ns, "a", cluster.PAST)
    cluster.till_phase(ns, "a", "DONE")
    local function field(kind, name, of)
      return decoded(one, "why", kind, ns .. "/" .. name, of, "-o", "json").field
    end
    local image = field("Pod", "a-pod", "spec.containers[busybox].image")
    assert.same({ true, 1, "cnat" }, { image.found, #image.managers, image.managers[1].controller })
    assert.matches("^cnat%.lua:%d+$", image.managers[1].write.place)
    local command = field("At", "a", ".spec.command")
    assert.same({ "spec.command", true, 1 }, { command.name, command.found, #command.managers })
    assert.is_nil(command.managers[1].controller)
    local phase = field("At", "a", "status.phase").managers
    assert.same({ 1, "status", "patch status of" }, { #phase, phase[1].subresource, phase[1].write.verb })
    local own = field("Pod", "a-pod", "metadata.uid")
    assert.same({ true, {} }, { own.found, own.managers })
    assert.same({ name = "spec.none", found = false, managers = {} }, field("Pod", "a-pod", "spec.none"))
    local text = ask(one, "why", "pods", ns .. "/a-pod", "spec.containers[busybox].image")
    assert.matches("spec.containers[busybox].image was set by:\n  2", text, 1, true)
    assert.matches("controller cnat, field manager moonloop-cnat (", text, 1, true)
    local gone = host.command { "why", "Pod", ns .. "/none", "spec", "--pid", tostring(one.pid) }
    assert.same({ 3, "" }, { gone.code, gone.out })
    assert.matches("the API server does not show the object: ", gone.err, 1, true)
  end)

  it("are followed by a trace: each write with its line, each run with its cause, of one object", function()
    local one = start "why-traced"
    one:till_ready()
    cluster.at(ns, "a", cluster.due_in(3))
    cluster.at(ns, "b", cluster.due_in(3))
    local lines = ask(one, "trace", "cnat", ns .. "/a", "--for", "6", "-o", "json")
    local causes, verbs = {}, {}
    for line in lines:gmatch "[^\n]+" do
      local entry = assert(cjson.decode(line))
      assert.equal(ns .. "/a", (entry.run or entry.write)["for"])
      causes[#causes + 1] = entry.run and entry.run.cause
      verbs[#verbs + 1] = entry.write and entry.write.verb .. " " .. entry.write.kind
    end
    assert.truthy(table.concat(causes, ", "):find("requeue", 1, true), lines)
    assert.truthy(table.concat(verbs, ", "):find("create Pod", 1, true), lines)
  end)

  it("tell the error of a script and when it is tried again, also after the process was killed", function()
    local one = start "why-killed"
    one:till_ready()
    cluster.at(ns, "bad", "when it rains")
    one:kill()
    one = start "why-after"
    one:till_ready()
    local failed = till_why(one, "At", "bad", "the failure to be told", function(answer)
      return answer.runs[1]
    end)
    assert.equal("invalid", failed.runs[1].result)
    assert.equal("start", failed.runs[1].cause)
    assert.is_truthy(failed.runs[1].error)
    local status = decoded(one, "status", "-o", "json")
    assert.is_true(status.ready)
    assert.equal("cnat", status.controllers[1].controller)
    assert.equal(1, status.controllers[1].objects)
  end)

  it("tell of a replica that it stands by, and of the leader that it does not", function()
    local options = { "--leader-elect", "--leader-election-namespace", ns }
    local leader = start("why-leader", options)
    leader:till_log { logger = "election", msg = "leading" }
    local standby = start("why-standby", options)
    standby:till_log { msg = "standing by" }
    cluster.at(ns, "a", cluster.PAST)
    cluster.till_phase(ns, "a", "DONE")
    assert.matches("another one leads", till_why(standby, "At", "a", "the object to be cached", function(answer)
      return answer.found
    end).controllers[1].now, 1, true)
    assert.is_false(decoded(standby, "status", "-o", "json").leads)
    assert.is_true(decoded(leader, "status", "-o", "json").leads)
    assert.equal("success", why(leader, "At", "a").runs[1].result)
  end)

  it("answer nobody but their user and root", function()
    local one = start "why-alone"
    one:till_ready()
    if shell.run "id -u" ~= "0\n" then
      pending "only root can be somebody else"
      return
    end
    local folder = shell.folder "binary"
    shell.must(("cp %s %s/moonloop && chmod -R a+rX %s"):format(host.binary, folder, folder))
    shell.must(shell.line { "chmod", "a+x", folder:match "^(.*)/[^/]+$", folder })
    local out = shell.run(("cd / && setpriv --reuid 65534 --clear-groups %s/moonloop status --pid %d 2>&1"):format(
      folder, one.pid))
    assert.matches("the host answers its own user and root alone", out, 1, true)
  end)

  it("say what to do where there is nobody to ask", function()
    local nobody = host.command { "why", "At", "default/a", "--pid", NO_SUCH_PROCESS }
    assert.equal(3, nobody.code)
    assert.matches("process 4194304 is no moonloop host on this machine", nobody.err, 1, true)
    local wrong = host.command { "why", "At" }
    assert.equal(2, wrong.code)
    assert.matches("expected a kind and an object: moonloop why At default/example-at", wrong.err, 1, true)
    local many = host.command { "trace", "a", "b", "c" }
    assert.equal(2, many.code)
    assert.matches("expected a controller and an object, or less", many.err, 1, true)
    local traced = host.command { "trace", "--pid", NO_SUCH_PROCESS }
    assert.equal(3, traced.code)
    local format = host.command { "status", "-o", "yaml" }
    assert.equal(2, format.code)
    assert.matches("-o yaml: choose json, or leave it out", format.err, 1, true)
  end)
end)
