-- moonloop top, asked of a host that runs with everything on: the objects in trouble come first, in a pipe and on a
-- terminal, which it gives back.
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

describe("moonloop top", function()
  local ns, one

  before_each(function()
    ns = cluster.namespace "top"
    one = host.start { name = "top", scripts = "reconcilers/cnat.lua", namespaces = ns }
    one:till_ready()
    cluster.at(ns, "later", cluster.due_in(600))
    cluster.at(ns, "rain", "when it rains")
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  -- Runs it and returns what it prints.
  local function top(...)
    local result = host.command { "top", "--pid", tostring(one.pid), ... }
    assert.same({ 0, "" }, { result.code, result.err })
    return result.out
  end

  local function till_both_are_told()
    return wait.till("both objects to be told", 20, function()
      local answer = assert(cjson.decode(top("-o", "json")))
      return answer.keys[2] and answer.keys[1].state == "fails" and answer.keys[2].state == "due" and answer,
        cjson.encode(answer)
    end)
  end

  it("lists the object that fails before the one that waits", function()
    local answer = till_both_are_told()
    assert.same({ ns .. "/rain", ns .. "/later" }, { answer.keys[1].name, answer.keys[2].name })
    assert.same({ "At", "cnat", "invalid" }, { answer.keys[1].kind, answer.keys[1].controller, answer.keys[1].result })
    assert.equal("its last run asked to be called again", answer.keys[2].now)
    assert.same({ 2, 1 }, { answer.keys_in_all, answer.fails_of_host })
    assert.is_true(answer.runs >= 2)
    local text = top "--once"
    assert.matches("^ready, leads\ncontrollers 1, objects 2, failing 1, queued 0, runs/s ", text)
    assert.matches("\n2 of 2 objects in trouble or active, by trouble\n", text, 1, true)
    local failing = text:find("\n" .. ns .. "/rain", 1, true)
    local due = text:find("\n" .. ns .. "/later", 1, true)
    assert.is_true(failing and due and failing < due, text)
    assert.equal(text:match "CONTROLLER .*", top():match "CONTROLLER .*") -- no terminal: once
    assert.matches("\nno object of controller other is in trouble or active\n", top "other", 1, true)
  end)

  it("reads keys on a terminal, and gives it back", function()
    if shell.run "(: </dev/ptmx) 2>/dev/null; echo $?" ~= "0\n" then
      pending "this machine has no terminals"
      return
    end
    till_both_are_told()
    local before, after, screen = shell.path "before", shell.path "after", shell.path "screen"
    local own = shell.line { host.binary, "top", "--pid", tostring(one.pid) }
    local line = ("stty rows 24 cols 100; stty -g >%s; %s; echo code $?; stty -g >%s"):format(before, own, after)
    local keys = ("till() { until grep -qF \"$1\" %s; do sleep 0.05; done 2>/dev/null; }; "
      .. "till '? help'; printf '\\r'; till 'last runs:'; printf 'q'; printf 's'; till 'by name'; printf q; "
      .. "till 'code 0'"):format(screen)
    local out, code = shell.run(("timeout 60 sh -c %s | timeout 60 script -qefc %s %s 2>&1"):format(
      shell.quote(keys), shell.quote(line), screen))
    assert.equal(0, code, out)
    assert.matches("At " .. ns .. "/rain", out, 1, true)
    assert.matches("\27[?1049l", out, 1, true)
    assert.equal(shell.read(before), shell.read(after))
  end)

  it("says what is wrong", function()
    for words, says in pairs {
      ["-o yaml"] = "-o yaml: choose json, or leave it out",
      ["--interval 0"] = "--interval 0: expected a second or more",
      ["a b"] = "expected a controller, or nothing: moonloop top cnat",
      ["a?b"] = "expected a controller, or nothing: moonloop top cnat",
    } do
      local list = { "top" }
      for word in words:gmatch "%S+" do
        list[#list + 1] = word
      end
      local wrong = host.command(list)
      assert.equal(2, wrong.code)
      assert.matches(says, wrong.err, 1, true)
    end
    local nobody = host.command { "top", "--once", "--pid", "4194304" }
    assert.equal(3, nobody.code)
    assert.matches("process 4194304 is no moonloop host on this machine", nobody.err, 1, true)
  end)
end)
