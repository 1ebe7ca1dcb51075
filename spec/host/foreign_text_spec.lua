-- Texts of scripts, objects, manifests and containers reach terminals and logs as text: they begin no line of their own
-- and do not steer the terminal.
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local THINGS = "/apis/example.com/v1/namespaces/default/things"

-- As a Lua string in a script, as a JSON or YAML string, and as the bytes themselves: a line of the host's own, a
-- screen that is cleared, a C1 control (U+009B), and text from right to left.
local FORGED = "x\n2026-01-01T00:00:00.000Z error host: forged\r\27[2J\194\155\226\128\174y"
local IN_LUA = [["x\n2026-01-01T00:00:00.000Z error host: forged\r\27[2J\194\155\226\128\174y"]]
local IN_YAML = [["x\n2026-01-01T00:00:00.000Z error host: forged\r\x1b[2J\u009b\u202ey"]]
local ESCAPED = [[x\n2026-01-01T00:00:00.000Z error host: forged\r\x1b[2J\u009b\u202ey]]

local CRD = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
]]

local SCRIPT = ([[
local moonloop = require "moonloop"
local text = FORGED
return moonloop.controller {
  name = "hostile",
  reconciles = moonloop.kind("example.com/v1", "Thing"),
  uses = { moonloop.kind("v1", "ConfigMap") },
  reconcile = function(thing, ctx)
    ctx.log(text, { [text] = text, nested = { [text] = { text } } })
    ctx.event("Hostile", text, "Warning")
    local metadata = { name = "x", labels = { a = text } }
    local made, why = ctx.create { apiVersion = "v1", kind = "ConfigMap", metadata = metadata }
    if thing.metadata.name == "raises" then error(text) end
    if thing.metadata.name == "fails" then error(why) end
    if thing.metadata.name == "called" then thing[text].x() end
    if thing.metadata.name == "invalid" then return ctx.invalid("spec." .. text, text) end
    if thing.metadata.name == "terminal" then return ctx.terminal(text) end
    local ready = { type = "Ready", status = "False", reason = "Text", message = text }
    return { status = { phase = text, conditions = { ready } } }
  end,
}
]]):gsub("FORGED", function() return IN_LUA end)

local NAMES = { "raises", "fails", "called", "invalid", "terminal", "status" }

local function folder(files)
  local path = shell.folder "foreign"
  for name, text in pairs(files) do
    shell.write(path .. "/" .. name, text)
  end
  return path
end


-- Only what a terminal shows as it stands, line by line.
local function assert_plain(text, line_pattern)
  local bad = text:gsub("\n", ""):match "[%z\1-\31\127]"
  assert.is_nil(bad and ("%q"):format(bad))
  for _, sequence in ipairs { "\194\155", "\226\128\174" } do
    assert.is_nil(text:find(sequence, 1, true))
  end
  assert(utf8.len(text), "not UTF-8")
  for line in text:gmatch "([^\n]*)\n" do
    assert.not_matches("^2026%-01%-01T00:00:00%.000Z error host: forged", line)
    if line_pattern then
      assert.matches(line_pattern, line)
    end
  end
end


local function make_things(server)
  for _, name in ipairs(NAMES) do
    server:must("POST", THINGS, {
      apiVersion = "example.com/v1", kind = "Thing", metadata = { name = name }, spec = {},
    })
  end
end


describe("foreign text", function()
  local server, operator

  after_each(dev.stop_all)

  it("stays on its line in the log and in the story of moonloop dev", function()
    local manifests = folder {
      ["crd.yaml"] = CRD,
      ["bad.yaml"] = "apiVersion: v1\nkind: " .. IN_YAML .. "\nmetadata: {name: x}\n",
      ["worse.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " .. IN_YAML .. "}\n",
    }
    server = dev.start { "--scripts", folder { ["hostile.lua"] = SCRIPT }, "--apply", manifests }
    server:till_said "script is live"
    make_things(server)
    server:must("POST", "/api/v1/namespaces/default/pods", {
      apiVersion = "v1",
      kind = "Pod",
      metadata = { name = "printer" },
      spec = {
        restartPolicy = "Never",
        containers = { { name = "main", image = "busybox", command = { "printf", "%s\n", FORGED } } },
      },
    })
    for _, name in ipairs { "raises", "fails", "called", "invalid", "terminal" } do
      server:till_said(('name="%s" reconcileID="%%x+" error='):format(name))
    end
    server:till_told "thing/status +x\\n2026"
    server:till_told "thing/raises +! Hostile: x\\n2026"
    server:till_told "printer +| 2026%-01%-01T00:00:00%.000Z error host: forged\\r\\x1b"
    server:till_said "worse%.yaml: "
    server:till_said "bad%.yaml: "
    wait.till("printer to have ended", 10, function()
      local pod = server:get "/api/v1/namespaces/default/pods/printer"
      return pod.status.phase == "Succeeded", pod.status.phase
    end)
    server:stop()
    local story = server:story():gsub("^.-export KUBECONFIG=[^\n]*\n\n", "")
    assert_plain(story, "^%d%d:%d%d:%d%d  ")
    assert.is_truthy(story:find("! Hostile: " .. ESCAPED, 1, true))
    local errors = server.host:stderr()
    assert_plain(errors)
    assert.is_truthy(errors:find(" info  hostile: " .. ESCAPED
      .. ' controller="hostile" controllerKind="Thing" namespace="default"', 1, true))
    for line in errors:gmatch "([^\n]*)\n" do
      assert.is_truthy(line:find "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ %l+ +[%w-]+: "
        or line:find "^  hostile%.lua:%d+: in " or line:find "^  %[host%]: in "
        or line:find("^" .. manifests:gsub("%p", "%%%0") .. "/%l+%.yaml: "), line)
    end
  end)

  it("ends after a while in the story of moonloop dev", function()
    server = dev.start { "--pods", "none" }
    server:must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD, { type = "application/yaml" })
    wait.till("the kind to be served", 10, function() return server:get(THINGS) end)
    local head = { apiVersion = "example.com/v1", kind = "Thing", metadata = { name = "long" } }
    server:must("POST", THINGS, head)
    server:must("PATCH", THINGS .. "/long/status", { status = { phase = ("ü"):rep(600000) } },
      { type = "application/merge-patch+json" })
    local line = server:till_told "(thing/long [^\n]*)\n"
    assert.truthy(line:find("ü… (1199000 bytes more)", 1, true), #line)
    assert.is_true(#line < 1200)
    assert(utf8.len(server:story()), "not UTF-8")
    server:stop()
  end)

  it("is JSON on one line in the log of moonloop run", function()
    server = dev.start { "--apply", folder { ["crd.yaml"] = CRD }, "--pods", "none" }
    wait.till("the kind to be there", 10, function() return server:get(THINGS) end)
    operator = host.start { scripts = folder { ["hostile.lua"] = SCRIPT }, kubeconfig = server.kubeconfig }
    operator:till_ready()
    make_things(server)
    for _, name in ipairs { "raises", "fails", "called", "invalid", "terminal" } do
      operator:till_log { level = "error", name = name }
    end
    local line = operator:till_log { msg = FORGED, name = "status" }
    assert.same({ [FORGED] = FORGED, nested = { [FORGED] = { FORGED } } }, line.fields)
    operator:stop()
    local text = shell.read(operator.files .. ".log")
    assert_plain(text, '^{"level":"%l+","ts":".*}$')
    for each in text:gmatch "([^\n]*)\n" do
      assert.is_table(require "cjson.safe".decode(each), each)
    end
  end)

  it("stays on its line in what moonloop check says", function()
    local files = {
      ["raises.lua"] = "error(" .. IN_LUA .. ")",
      ["name.lua"] = SCRIPT:gsub('"hostile"', function() return IN_LUA end),
      ["kind.lua"] = SCRIPT:gsub('"Thing"', function() return IN_LUA end),
      ["version.lua"] = SCRIPT:gsub('"example.com/v1"', function() return IN_LUA end),
      ["field.lua"] = "local t = {} t[" .. IN_LUA .. "].x()",
      ["x\n2026-01-01T00:00:00.000Z error host: forged.lua"] = "return 1",
    }
    local result = host.command { "check", folder(files) }
    assert.equal(1, result.code)
    assert_plain(result.out .. result.err)
    assert.matches("raises%.lua:1: x\\n2026", result.err)
    assert.matches("x?2026%-01%-01T00:00:00%.000Z error host: forged%.lua: the name of a file", result.err)
    result = host.command { "check", "no\n2026-01-01T00:00:00.000Z error host: forged" }
    assert_plain(result.err)
    result = host.command { "run", "--log-format", "\n2026-01-01T00:00:00.000Z error host: forged" }
    assert_plain(result.err)
  end)

  it("stays on its line in what moonloop test says of objects and scripts", function()
    local path = folder {
      ["hostile.lua"] = SCRIPT,
      ["raises.lua"] = "error(" .. IN_LUA .. ")",
      ["crd.yaml"] = CRD,
    }
    shell.write(path .. "/hostile_test.lua", ([[
      local testing = require "moonloop.testing"
      local Thing = { apiVersion = "example.com/v1", kind = "Thing" }
      local crds = { "PATH/crd.yaml" }
      it("differs", function()
        local world = testing.world { crds = crds }
        world.apply { apiVersion = "example.com/v1", kind = "Thing", metadata = { name = "a" }, spec = {} }
        world.expect(Thing, "a", { status = { phase = "DONE" } })
      end)
      it("is refused", function()
        testing.world({ crds = crds }).apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = FORGED } }
      end)
      it("does not load", function()
        testing.world { scripts = "PATH/raises.lua" }
      end)
    ]]):gsub("PATH", path):gsub("FORGED", function() return IN_LUA end))
    local result = host.command { "test", path, "--output", "plainTerminal" }
    assert.equal(1, result.code, result.out .. result.err)
    assert.matches("\n0 successes / 1 failure / 2 errors", result.out)
    assert_plain(result.out .. result.err)
    assert.is_truthy(result.out:find([[+ "x\n2026-01-01]], 1, true), result.out)
  end)
end)
