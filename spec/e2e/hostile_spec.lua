-- The worst script of each kind that we know, all in one process with cnat: they cost themselves an error, and cnat
-- nothing. How late its pods are beside them is for bench/scenarios/hostile.sh.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local judge = require "spec.e2e.support.judge"
local scripts = require "spec.e2e.support.scripts"
local shell = require "spec.e2e.support.shell"

local audited = audit.available and it or pending

local FOLDER = "spec/e2e/fixtures/hostile/"
local NAMES = { "gas", "greedy", "hot", "memory", "protected", "slices", "thread", "voice", "world" }
local ATS, WIDGETS, LOOPING_FILES = 200, 30, 20

describe("cnat beside hostile scripts", function()
  local ns, mark, moonloop

  setup(function()
    scripts.install_widgets()
    ns = cluster.namespace "hostile"
    mark = audit.available and audit.mark()
    local files = { ["cnat.lua"] = scripts.cnat }
    for _, name in ipairs(NAMES) do
      files[name .. ".lua"] = assert(shell.read(FOLDER .. name .. ".lua"))
    end
    for index = 1, LOOPING_FILES do
      files[("loops-%02d.lua"):format(index)] = "while true do end"
    end
    for index = 1, WIDGETS do
      api.create("Widget", ns, { metadata = { name = "widget-" .. index }, spec = {} })
    end
    local folder = scripts.folder(files)
    shell.must("mkfifo " .. shell.quote(folder .. "/pipe.lua") .. " && mkdir " .. shell.quote(folder .. "/folder.lua"))
    moonloop = host.start { name = "hostile", scripts = folder, namespaces = ns }
    for _, name in ipairs { "cnat.lua", "thread.lua", "greedy.lua" } do -- thread.lua waits its turn behind the loops
      moonloop:till_log({ msg = "script is live", script = name }, 60)
    end
  end)

  teardown(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  it("is refused nothing: each file is judged by itself", function()
    for _, name in ipairs { "pipe.lua", "folder.lua", "loops-01.lua", ("loops-%02d.lua"):format(LOOPING_FILES) } do
      moonloop:till_log({ level = "error", msg = "script refused", script = name }, 30)
    end
  end)

  audited("makes one pod for each of 200 Ats that are due at once", function()
    local schedule = cluster.due_in(8)
    for index = 1, ATS do
      cluster.at(ns, ("at-%03d"):format(index), schedule)
    end
    cluster.till_done(ns, ATS, 60)
    judge.one_pod_each(mark, ns, ATS)
  end)

  it("is the only one whose words begin a line of the log", function()
    moonloop:till_log({ logger = "hostile-voice", level = "error" }, 20)
    for _, line in ipairs(moonloop:log()) do
      assert.is_truthy(line.ts and line.level, line.msg)
    end
  end)

  it("goes on when its neighbours have lost their turns", function()
    cluster.at(ns, "at-last", cluster.PAST)
    cluster.till_done(ns, ATS + 1, 20)
    assert.is_nil(moonloop:exit_code())
  end)

  it("ends with them in good order", function()
    moonloop:stop()
  end)
end)
