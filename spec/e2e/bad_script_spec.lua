-- Scripts as wrong as can be: the object or the script is told so, with file and line, and the
-- other controllers of the process do not notice.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local probe = require "spec.e2e.support.probe"
local scripts = require "spec.e2e.support.scripts"
local wait = require "spec.e2e.support.wait"

-- Does DEED to each Widget with that label. A controller for each deed: one that runs into its limits is held back.
local BAD = [[
local moonloop = require "moonloop"
local Widget = moonloop.kind("e2e.moonloop.dev/v1", "Widget", { labels = "deed=DEED" })

local deeds = {
  loop = function() while true do end end,
  caught = function() while true do pcall(function() while true do end end) end end,
  pattern = function() return (("a"):rep(60)):find(("a*"):rep(30) .. "b") end,
  memory = function() local all = {} while true do all[#all + 1] = ("x"):rep(1000000) end end,
  doubling = function() local text = "x" while true do text = text .. text end end,
  recursion = function() local function f(n) return 1 + f(n + 1) end return f(1) end,
  raise = function() error "boom" end,
  index = function() local nothing; return nothing.field end,
  nonsense = function() return "nonsense" end,
  misspelt = function() return { statsu = { said = "x" } } end,
  unstorable = function() return { status = { said = error } } end,
  table = function() error { 1, 2, 3 } end,
}

return moonloop.controller {
  name = "bad-DEED",
  reconciles = Widget,
  reconcile = function()
    return deeds.DEED()
  end,
}
]]

-- On a busy machine who eats memory may run out of CPU time before; units tell the two limits apart.
local MEMORY = { "^bad_%a+%.lua:%d+: .*memory", "^bad_%a+%.lua:%d+: .*CPU" }

-- The note of the Event about each script: a pattern, or a list with one that matches.
local NOTES = {
  loop = "^bad_%a+%.lua:%d+: .*CPU",
  caught = "^bad_%a+%.lua:%d+: .*CPU",
  pattern = "^bad_%a+%.lua:%d+: .*CPU",
  memory = MEMORY,
  doubling = "^bad_%a+%.lua:%d+: ",
  -- Its stack, the memory of all scripts, or the deadline: what is reached first depends on the others.
  recursion = { "^bad_%a+%.lua:%d+: stack overflow", MEMORY[1], MEMORY[2] },
  raise = "^bad_%a+%.lua:%d+: boom",
  index = "^bad_%a+%.lua:%d+: .*nil value",
  nonsense = "^bad_%a+%.lua:%d+: reconcile returned a string",
  misspelt = "^bad_%a+%.lua:%d+: .*'statsu'.*did you mean 'status'",
  unstorable = "^bad_%a+%.lua:%d+: .*status%.said: .*function",
  table = "error%(%) was called with a table",
}

local function is_said(text, expected)
  for _, pattern in ipairs(type(expected) == "table" and expected or { expected }) do
    if text:find(pattern) then
      return true
    end
  end
  return false
end

describe("A reconcile that goes wrong", function()
  local ns, moonloop

  local function widget(name, deed)
    api.create("Widget", ns, { metadata = { name = name, labels = { deed = deed } }, spec = {} })
  end

  setup(function()
    scripts.install_widgets()
    ns = cluster.namespace "bad"
    local files = { ["cnat.lua"] = scripts.cnat }
    for deed in pairs(NOTES) do
      files[("bad_%s.lua"):format(deed)] = BAD:gsub("DEED", deed)
    end
    moonloop = host.start { name = "bad", scripts = scripts.folder(files), namespaces = ns }
    moonloop:till_ready()
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  for deed, note in pairs(NOTES) do
    it(("(%s) has an Event with file and line on its object"):format(deed), function()
      widget(deed, deed)
      local event = cluster.till_event(ns, "Widget", deed, "ReconcileFailed")
      assert.equal("Warning", event.type)
      assert.is_true(is_said(event.note, note), event.note)
    end)
  end

  it("leaves the other controllers of the process their pace", function()
    for index = 1, 10 do
      -- It loops once more while the At is timed.
      api.patch("Widget", ns, "loop", { spec = { turn = index } })
      cluster.at(ns, "at-" .. index, cluster.PAST)
      -- A sanitizer build lets each of them burn half a second of CPU, and a pod takes several turns of the loop.
      cluster.till_pod(ns, ("at-%d-pod"):format(index), 15)
    end
  end)

  it("is counted and tried again with growing pauses", function()
    local function errors()
      return moonloop:metric "controller_runtime_reconcile_errors_total"
    end
    widget("paced", "raise")
    cluster.till_event(ns, "Widget", "paced", "ReconcileFailed")
    assert.is_true(errors() >= 13)
    -- 5 ms doubled each time: 13 objects make 10 tries each in their first 5 s.
    local before = errors()
    wait.pass(1)
    assert.is_true(errors() - before < 13 * 9)
  end)

  it("is over as soon as its object no longer asks for it", function()
    widget("reformed", "raise")
    cluster.till_event(ns, "Widget", "reformed", "ReconcileFailed")
    local function cached()
      return moonloop:metric("moonloop_cache_objects", { resource = "widgets" })
    end
    local before = cached()
    api.delete("Widget", ns, "reformed")
    -- The other scripts burn CPU, so that the deletion may take its time.
    wait.till("the deletion to be seen", 20, function()
      return cached() == before - 1
    end)
    local seen = #moonloop:lines { level = "error", name = "reformed" }
    wait.holds("no further try", 1, function()
      return #moonloop:lines { level = "error", name = "reformed" } == seen
    end)
  end)
end)


describe("A script that goes wrong while it loads", function()
  local REFUSED = {
    ["loop.lua"] = { "while true do end", "loop.lua:1: .*CPU" },
    ["memory.lua"] = { "local t = {}\nwhile true do t[#t + 1] = ('x'):rep(99999) end", "memory.lua:%d+: .*memory" },
    ["bytecode.lua"] = { string.dump(load "return {}"), "bytecode.lua:1: .*bytecode" },
    ["nonsense.lua"] = { "return 42", "nonsense.lua" },
    ["raises.lua"] = { "error 'not today'", "raises.lua:1: not today" },
    ["syntax.lua"] = { "local x =\n\n= 3", "syntax.lua:3: " },
  }

  it("is refused alone, with its file named", function()
    local ns = cluster.namespace "load"
    finally(function()
      host.stop_all()
      cluster.forget(ns)
    end)
    local files = { ["cnat.lua"] = scripts.cnat }
    for file, case in pairs(REFUSED) do
      files[file] = case[1]
    end
    local moonloop = host.start { name = "load", scripts = scripts.folder(files), namespaces = ns }
    for file, case in pairs(REFUSED) do
      local line = moonloop:till_log { level = "error", msg = "script refused", script = file }
      assert.matches(case[2], line.error)
      assert.equal(1, moonloop:metric("moonloop_script_refused_total", { file = file }))
    end
    assert.equal("busybox", probe.image(ns))
  end)
end)
