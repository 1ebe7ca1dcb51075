-- An edit in a cluster, and what a person sees of it and does about it: docs/changing.md, step by step.
local api = require "spec.e2e.support.api"
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local scripts = require "spec.e2e.support.scripts"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

-- Each Widget has three ConfigMaps.
local PARTS = scripts.parts
local INVERTED = scripts.edited(PARTS, "if widget.spec.say then", "if not widget.spec.say then")
local WIDGETS = 12

describe("A script that is changed", function()
  local ns, moonloop

  setup(scripts.install_widgets)

  -- Specs of what follows an edit that did harm let it.
  local function start(name, args)
    moonloop = host.start {
      name = name, configmaps = ns .. "/scripts", namespaces = ns, args = args or { "--rollout", "immediate" },
    }
    moonloop:till_ready()
    return moonloop
  end

  before_each(function()
    ns = cluster.namespace "changing"
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = PARTS })
    start "changing"
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function make_widgets(count)
    for i = 1, count do
      api.create("Widget", ns, { metadata = { name = ("w%02d"):format(i) }, spec = { say = "one" } })
    end
  end

  local function parts()
    local count, said = 0, {}
    for _, map in ipairs(api.list("ConfigMap", ns)) do
      if map.metadata.name:find "^w%d%d%-%d$" then
        count, said[map.data.said] = count + 1, true
      end
    end
    return count, said
  end

  local function till_parts(count)
    wait.till(count .. " ConfigMaps", 20, function()
      local is = parts()
      return is == count, is
    end)
  end

  local function till_said(text, name)
    wait.till("status.said " .. text, 10, function()
      local widget = api.get("Widget", ns, name or "w01")
      return widget.status and widget.status.said == text, cjson.encode(widget)
    end)
  end

  local function annotate(kind, name, key, value)
    api.patch(kind, ns, name, { metadata = { annotations = { ["moonloop.dev/" .. key] = value } } })
  end

  it("has a revision, the one that sha256sum gives, wherever it is named, and after a restart", function()
    local file = shell.path "parts.lua"
    shell.write(file, PARTS)
    local texts = ([[{ printf 'parts.lua\0'; cat %s; printf '\0'; }]]):format(file)
    local digits = shell.must(texts .. " | sha256sum | cut -c 1-8"):match "^%x%x%x%x%x%x%x%x"
    local version = api.get("ConfigMap", ns, "scripts").metadata.resourceVersion
    local line = moonloop:till_log { msg = "script is live", revision = digits }
    assert.equal(version, line.resourceVersion)
    cluster.till_event(ns, "ConfigMap", "scripts", "ScriptLoaded", "the new version, revision " .. digits)
    local labels = {
      controller = "parts", revision = digits, source = "configmap " .. ns .. "/scripts", resource_version = version,
    }
    assert.equal(1, moonloop:metric("moonloop_script_info", labels))
    moonloop:stop()
    start "changing-again"
    assert.equal(1, moonloop:metric("moonloop_script_info", labels))
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = PARTS .. "-- another\n" })
    moonloop:till_log { msg = "new version is live" }
    assert.equal(0, moonloop:metric("moonloop_script_info", labels))
  end)

  local function kept()
    local map = api.get("ConfigMap", ns, "scripts-revisions")
    local revisions, count = {}, 0
    for key, value in pairs(map and map.data or {}) do
      revisions[key:match "^parts%.(%x+)$"] = cjson.decode(value)
      count = count + 1
    end
    return revisions, count
  end

  local function live_revision()
    local page = assert(moonloop:get "/metrics")
    return page:match 'moonloop_script_info{controller="parts",revision="(%x+)"'
  end

  local function till_kept(revision)
    return wait.till("revision " .. revision .. " to be kept", 10, function()
      local revisions, count = kept()
      return revisions[revision], count
    end)
  end

  -- Edits the script so that it makes so many ConfigMaps for each Widget, and waits until it is live.
  local function edit(count)
    local before = live_revision()
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = scripts.edited(PARTS, "i = 1, 3", "i = 1, " .. count) })
    return wait.till("another revision", 10, function()
      local now = live_revision()
      return now ~= before and now, now
    end)
  end

  it("keeps the last five revisions, with who wrote them", function()
    local first = live_revision()
    local entry = till_kept(first)
    assert.equal("start", entry.way)
    assert.equal(PARTS, entry.files["parts.lua"])
    assert.equal(api.get("ConfigMap", ns, "scripts").metadata.resourceVersion, entry.resourceVersion)
    assert.is_string(entry.by)
    local last
    for count = 4, 8 do
      last = edit(count)
      assert.equal("edit", till_kept(last).way)
    end
    local revisions, count = kept()
    assert.equal(5, count)
    assert.is_nil(revisions[first])
    moonloop:stop()
    start "changing-again"
    assert.equal(last, live_revision())
    assert.same(revisions, (kept()))
  end)

  local function roll_back(to, from)
    annotate("ConfigMap", "scripts", "rollback", ("parts: %s instead of %s"):format(to, from))
  end

  it("goes back to a kept revision, until the next edit, after a kill too", function()
    make_widgets(WIDGETS)
    till_parts(3 * WIDGETS)
    local good = live_revision()
    till_kept(good)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = INVERTED })
    till_parts(0)
    local bad = live_revision()
    roll_back(good, bad)
    till_parts(3 * WIDGETS)
    cluster.till_event(ns, "ConfigMap", "scripts", "RolledBack", "runs an older version, revision " .. good)
    assert.equal(good, live_revision())
    assert.equal(1, moonloop:metric("moonloop_script_drifted", { file = "parts.lua" }))
    local page = moonloop:get "/readyz?verbose"
    for _, line in ipairs {
      "ok\n[+]connection ok: http", ("\n[+]configmap %s/scripts ok\n"):format(ns),
      ("\n[+]parts.lua ok: controller parts runs revision %s; rolled back\n"):format(good),
    } do
      assert.truthy(page:find(line, 1, true), page)
    end
    moonloop:kill()
    start "changing-again"
    assert.equal(good, live_revision())
    assert.equal(1, moonloop:metric("moonloop_script_drifted", { file = "parts.lua" }))
    assert.equal(3 * WIDGETS, (parts()))
    edit(2)
    till_parts(2 * WIDGETS)
    assert.equal(0, moonloop:metric("moonloop_script_drifted", { file = "parts.lua" }))
    roll_back("00000000", live_revision())
    cluster.till_event(ns, "ConfigMap", "scripts", "RollbackFailed", "it is not kept; configmap " .. ns)
    assert.equal(2 * WIDGETS, (parts()))
  end)

  it("goes back on two replicas, of which the one that stands by keeps nothing", function()
    local election = { "--leader-elect", "--leader-election-namespace", ns, "--rollout", "immediate" }
    moonloop:stop()
    local leader = start("leader", election)
    leader:till_log { logger = "election", msg = "leading" }
    local standby = start("standby", election)
    make_widgets(2)
    till_parts(6)
    local good = live_revision()
    till_kept(good)
    edit(4)
    till_parts(8)
    local bad = live_revision()
    assert.equal("edit", till_kept(bad).way)
    roll_back(good, bad)
    till_parts(6)
    for _, one in ipairs { leader, standby } do
      one:till_log { msg = "older version is live, as its source says", revision = good }
    end
    leader:kill() -- the other one waits for the Lease to expire
    api.patch("Widget", ns, "w01", { spec = { say = "two" } })
    wait.till("status.said two", 40, function()
      return api.get("Widget", ns, "w01").status.said == "two"
    end)
    assert.equal(6, (parts()))
    assert.equal("rollback", till_kept(good).way)
  end)

  -- Runs a command that has to go well; returns its line.
  local function command(...)
    local result = host.command { ... }
    assert.same({ 0, "" }, { result.code, result.err })
    return result.out
  end

  it("goes back by one command, which finds the ConfigMap and the revision", function()
    make_widgets(2)
    till_parts(6)
    local good = live_revision()
    till_kept(good)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = INVERTED })
    till_parts(0)
    local bad = live_revision()
    till_kept(bad)
    assert.equal(("parts: revision %s runs instead of %s, until its script in ConfigMap %s/scripts is edited, or "
      .. "`moonloop rollback parts --end`\n"):format(good, bad, ns), command("rollback", "parts", "--namespace", ns))
    till_parts(6)
    local result = host.command { "rollback", "parts", "--namespace", ns }
    assert.equal(1, result.code)
    assert.matches("no older revision of controller parts is kept in ConfigMap .*%-revisions; it has: ", result.err)
    command("rollback", "parts", "--end", "--namespace", ns)
    till_parts(0)
    command("rollback", "parts", "--to", good, "--scripts-configmap", ns .. "/scripts")
    till_parts(6)
    edit(2)
    till_parts(4)
  end)

  it("is held and repeated by one command", function()
    local failing = scripts.edited(PARTS, "local children = {}", 'assert(widget.spec.say ~= "bad", "it is bad")\n'
      .. "    local children = {}")
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = failing })
    moonloop:till_log { msg = "new version is live" }
    make_widgets(1)
    till_said "one"
    till_kept(live_revision())
    assert.equal("parts: reconciles nothing until `moonloop pause parts --end`\n",
      command("pause", "parts", "--namespace", ns))
    moonloop:till_log { msg = "controller is paused" }
    api.patch("Widget", ns, "w01", { spec = { say = "two" } })
    wait.holds("nothing is written", 1, function()
      return api.get("Widget", ns, "w01").status.said == "one"
    end)
    command("pause", "parts", "--end", "--namespace", ns)
    till_said "two"
    command("retry", "parts", "--namespace", ns)
    moonloop:till_log { msg = "controller tries all objects again", controller = "parts" }
  end)

  -- Returns the exit code, what the plan says of the controller, and standard error.
  local function plan(text, ...)
    local file = shell.folder "plan" .. "/parts.lua"
    shell.write(file, text)
    local result = host.command { "plan", "--scripts", file, "--namespace", ns, "-o", "json", ... }
    local said = cjson.decode(result.out)
    return result.code, said and said.controllers[1], result.err
  end

  it("is planned first: the plan says what the edit then does, and writes nothing", function()
    make_widgets(WIDGETS)
    till_parts(3 * WIDGETS)
    till_said("one", ("w%02d"):format(WIDGETS))
    local code, said = plan(PARTS)
    assert.same({ 0, {} }, { code, said.changes })
    local version = api.get("Widget", ns, "w01").metadata.resourceVersion
    code, said = plan(INVERTED)
    assert.equal(2, code)
    assert.same({ WIDGETS, WIDGETS }, { said.objects, said.tried })
    assert.equal(3 * WIDGETS, #said.changes)
    for _, change in ipairs(said.changes) do
      assert.same({ "delete", "ConfigMap", ns }, { change.verb, change.kind, change.namespace })
      assert.equal(ns .. "/" .. change.name:match "^w%d%d", change["for"])
      assert.equal("no longer returned by parts.lua:9", change.why)
    end
    local said_is = "data = { said = widget.spec.say"
    code, said = plan(scripts.edited(PARTS, said_is, said_is .. " .. '!'"))
    assert.equal(2, code)
    assert.equal(3 * WIDGETS, #said.changes)
    assert.same({ field = "data.said", from = "one", to = "one!" }, said.changes[1].fields[1])
    assert.equal(3 * WIDGETS, (parts()))
    assert.equal(version, api.get("Widget", ns, "w01").metadata.resourceVersion)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = INVERTED })
    till_parts(0)
    code, said = plan(INVERTED)
    assert.same({ 0, {} }, { code, said.changes })
  end)

  it("is tried by the server on request: the plan has its defaults and refusals, and writes nothing", function()
    make_widgets(2)
    till_parts(6)
    till_said("one", "w02")
    local code, said = plan([[
local moonloop = require "moonloop"
local Service = moonloop.kind("v1", "Service")
return moonloop.controller {
  name = "parts",
  reconciles = moonloop.kind("e2e.moonloop.dev/v1", "Widget"),
  owns = { Service, moonloop.kind("v1", "ConfigMap") },
  reconcile = function(widget)
    local port = widget.metadata.name == "w01" and 80 or 70000
    return {
      children = { {
        apiVersion = "v1", kind = "Service", metadata = { name = widget.metadata.name },
        spec = { ports = { { port = port } } },
      } },
      status = { said = "served" },
    }
  end,
}
]], "--server-side")
    assert.equal(1, code)
    local found = {}
    for _, change in ipairs(said.changes) do
      local key = change.verb .. " " .. change.kind
      found[key] = found[key] or {}
      table.insert(found[key], change)
    end
    assert.equal(6, #found["delete ConfigMap"])
    assert.is_nil(found["delete ConfigMap"][1].refused)
    local made, refused = table.unpack(found["create Service"])
    local stored = {}
    for _, field in ipairs(made.fields) do
      stored[field.field] = field.to
    end
    assert.same({ "w01", "ClusterIP", 80 }, { made.name, stored.spec.type, stored.spec.ports[1].targetPort })
    assert.matches('Service "w02" is invalid: %[?spec.ports%[0%].port: Invalid value: 70000', refused.refused)
    for _, change in ipairs(found["change Widget"]) do
      assert.same({ { field = "status.said", from = "one", to = "served" } }, change.fields)
    end
    assert.same({}, api.list("Service", ns))
    assert.same({ 6, { one = true } }, { parts() })
    assert.equal("one", api.get("Widget", ns, "w02").status.said)
  end)

  it("is planned over a snapshot, without the cluster, which has gone on meanwhile", function()
    make_widgets(3)
    till_parts(9)
    till_said("one", "w03")
    local folder, file = shell.folder "snapshot", shell.path "staging"
    shell.write(folder .. "/parts.lua", PARTS)
    local words = { "snapshot", file, "--scripts", folder, "--namespace", ns }
    assert.same({ 0, "" }, { host.command(words).code, host.command(words).err })
    local _, live = plan(INVERTED)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = INVERTED })
    till_parts(0)
    shell.write(folder .. "/parts.lua", INVERTED)
    local result = host.command({ "plan", "--snapshot", file, "--scripts", folder, "-o", "json" },
      { KUBECONFIG = "/none", KUBERNETES_SERVICE_HOST = false })
    assert.same({ 2, "" }, { result.code, result.err })
    local said = cjson.decode(result.out).controllers[1]
    assert.equal(9, #said.changes)
    assert.same(live.changes, said.changes)
  end)

  local HELD = "script held; the last good version keeps running"

  -- Waits until INVERTED is held, with its numbers; returns its revision.
  local function till_held(host_of)
    local line = host_of:till_log { msg = HELD }
    local count, revision = line.error:match
      "would delete (%d+) objects %(its own have %d+%); the first: ConfigMap .*; .*approve: (%x+)$"
    assert.equal(tostring(3 * WIDGETS), count, line.error)
    return revision
  end

  local function restart_guarded(name)
    start(name, { "--rollout", "guarded" })
  end

  it("is held before it deletes anything, after a kill too, and goes live when it is approved", function()
    moonloop:stop()
    restart_guarded "guarded"
    make_widgets(WIDGETS)
    till_parts(3 * WIDGETS)
    local good = live_revision()
    till_kept(good)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = INVERTED })
    local held = till_held(moonloop)
    cluster.till_event(ns, "ConfigMap", "scripts", "ScriptHeld", "revision " .. held .. " would delete 36 objects")
    local file = { file = "parts.lua" }
    assert.equal(1, moonloop:metric("moonloop_script_held", file))
    assert.equal(0, moonloop:metric("moonloop_script_refused", file))
    assert.equal(1, moonloop:metric("moonloop_script_drifted", file))
    assert.truthy(moonloop:get("/readyz?verbose"):find(good .. "; the newest version is held\n", 1, true))
    api.patch("Widget", ns, "w01", { spec = { say = "two" } })
    till_said "two"
    moonloop:kill()
    restart_guarded "guarded-again"
    assert.equal(held, till_held(moonloop))
    assert.equal(good, live_revision())
    api.patch("Widget", ns, "w01", { spec = { say = "three" } })
    till_said "three"
    assert.equal(3 * WIDGETS, (parts()))
    annotate("ConfigMap", "scripts", "approve", held)
    till_parts(0)
    assert.equal(held, live_revision())
    assert.equal(0, moonloop:metric("moonloop_script_held", file))
  end)

  -- The text with these fields in its `rollout`.
  local function limited(text, fields)
    return scripts.edited(text, 'name = "parts",', ('name = "parts", rollout = { %s },'):format(fields))
  end

  -- All of it with --rollout immediate: the field wins.
  it("is held by the limits of the version that runs, after a kill too, and not by its own", function()
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = limited(PARTS, 'mode = "guarded", max_deletes = 8') })
    moonloop:till_log { msg = "new version is live" }
    make_widgets(3)
    till_parts(9)
    local good = live_revision()
    till_kept(good)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = limited(INVERTED, 'mode = "immediate", max_deletes = 1000') })
    assert.matches("would delete 9 objects %(its own have 9%)", moonloop:till_log({ msg = HELD }).error)
    moonloop:kill()
    start "changing-again"
    assert.matches("would delete 9 objects %(its own have 9%)", moonloop:till_log({ msg = HELD }).error)
    assert.equal(good, live_revision())
    assert.equal(9, (parts()))
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = limited(PARTS, 'mode = "guarded", max_deletes = 9') })
    wait.till("another revision", 10, function()
      local now = live_revision()
      return now ~= good and now, now
    end)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = INVERTED })
    till_parts(0)
  end)

  -- All of it with --rollout immediate: the field wins.
  it("waits for approval with whatever it would change in the mode plan, after a kill too", function()
    local waiting = scripts.edited(PARTS, 'name = "parts",', 'name = "parts", rollout = "plan",')
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = waiting })
    moonloop:till_log { msg = "new version is live" }
    make_widgets(2)
    till_parts(6)
    local good = live_revision()
    till_kept(good)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = waiting .. "-- nothing else\n" })
    wait.till("another revision", 10, function()
      local now = live_revision()
      return now ~= good and now, now
    end)
    good = live_revision()
    till_kept(good)
    local other = scripts.edited(waiting, "for i = 1, 3 do", "for i = 1, 2 do")
    other = scripts.edited(other, "data = { said = widget.spec.say }", 'data = { said = "x" }')
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = other })
    local does = 'would delete 2 ConfigMap %(the first: [^:]+/w01%-3: no longer returned by parts.lua:%d+%), '
      .. 'change 4 ConfigMap %(the first: [^:]+: data.said: "one" → "x"%);'
    assert.matches(does, moonloop:till_log({ msg = HELD }).error)
    moonloop:kill()
    start "changing-again"
    local why = moonloop:till_log({ msg = HELD }).error
    assert.matches(does, why)
    assert.equal(good, live_revision())
    assert.same({ 6, { one = true } }, { parts() })
    annotate("ConfigMap", "scripts", "approve", why:match "approve: (%x+)")
    till_parts(4)
    wait.till("the new text", 10, function()
      local _, said = parts()
      return said.x and not said.one, cjson.encode(said)
    end)
  end)

  it("is guarded or not as its ConfigMap says", function()
    moonloop:stop()
    restart_guarded "guarded"
    make_widgets(WIDGETS)
    till_parts(3 * WIDGETS)
    till_kept(live_revision())
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = INVERTED })
    till_held(moonloop)
    annotate("ConfigMap", "scripts", "rollout", "imediate")
    local unknown = "expected guarded, canary, plan or immediate, got 'imediate'"
    cluster.till_event(ns, "ConfigMap", "scripts", "RolloutUnknown", unknown)
    moonloop:till_log { msg = "the annotation for the rollout is not known" }
    assert.equal(3 * WIDGETS, (parts()))
    annotate("ConfigMap", "scripts", "rollout", "immediate")
    till_parts(0)
  end)

  it("is held on two replicas, whichever of them leads", function()
    local election = { "--leader-elect", "--leader-election-namespace", ns }
    moonloop:stop()
    local leader = start("leader", election)
    leader:till_log { logger = "election", msg = "leading" }
    local standby = start("standby", election)
    make_widgets(WIDGETS)
    till_parts(3 * WIDGETS)
    till_kept(live_revision())
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = INVERTED })
    local held = till_held(leader)
    assert.equal(held, till_held(standby))
    leader:kill()
    api.patch("Widget", ns, "w01", { spec = { say = "two" } })
    wait.till("status.said two", 40, function()
      return api.get("Widget", ns, "w01").status.said == "two"
    end)
    assert.equal(3 * WIDGETS, (parts()))
    annotate("ConfigMap", "scripts", "approve", held)
    till_parts(0)
  end)

  it("is refused when it fails for objects that the running version handles", function()
    moonloop:stop()
    restart_guarded "guarded"
    make_widgets(6)
    till_parts(18)
    local good = live_revision()
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = scripts.edited(PARTS, "local children = {}", [[
local children = {}
    assert(widget.metadata.name > "w02", "it is bad")]]) })
    cluster.till_event(ns, "ConfigMap", "scripts", "ScriptRefused", "fails for 2 of 6 objects, for which the running "
      .. "one does not; the first: " .. ns .. "/w01: parts.lua:11: it is bad")
    assert.equal(good, live_revision())
    assert.equal(1, moonloop:metric("moonloop_script_refused", { file = "parts.lua" }))
  end)

  it("is held when each run would change what the one before has made", function()
    moonloop:stop()
    restart_guarded "guarded"
    make_widgets(2)
    till_parts(6)
    local endless = scripts.edited(PARTS, "reconcile = function(widget)", "reconcile = function(widget, ctx)")
    endless = scripts.edited(endless, "data = { said = widget.spec.say },", [[
data = {
            said = widget.spec.say,
            at = (ctx.get(ConfigMap, widget.metadata.name .. "-" .. i) or widget).metadata.resourceVersion,
          },]])
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = endless })
    local line = moonloop:till_log { msg = HELD }
    assert.matches("would write without end for 2 of 2 objects", line.error)
    assert.is_nil(api.get("ConfigMap", ns, "w01-1").data.at)
  end)

  it("is planned with its failures", function()
    make_widgets(3)
    till_parts(9)
    local code, said = plan(scripts.edited(PARTS, "local children = {}", [[
local children = {}
    assert(widget.metadata.name ~= "w02", "it is bad")]]))
    assert.equal(1, code)
    assert.same({ { object = ns .. "/w02", message = "parts.lua:11: it is bad" } }, said.fails)
    local err
    code, said, err = plan "return {"
    assert.same({ 1, {} }, { code, said or {} })
    assert.matches("^parts%.lua:1: ", err)
    code, said, err = plan(scripts.edited(PARTS, "return { children", "return { childs"))
    assert.same({ 1, {} }, { code, said or {} })
    assert.matches("parts%.lua:19: .*childs", err)
  end)

  it("is not touched by a command that cannot be carried out", function()
    local good = live_revision()
    local before = api.get("ConfigMap", ns, "scripts").metadata.annotations
    till_kept(good)
    for words, want in pairs {
      ["rollback nobody"] = { 1, "no ConfigMap in namespace " .. ns .. " keeps a revision of controller nobody" },
      ["rollback parts --to 00000000"] = { 1, "no revision 00000000 of controller parts is kept" },
      ["rollback parts --to " .. good] = { 1, "is the one that the ConfigMap has" },
      ["pause nobody --scripts-configmap " .. ns .. "/scripts"] = { 1, "has no script of controller nobody" },
      ["retry parts --scripts-configmap " .. ns .. "/none"] = { 1, "not found" },
      ["retry parts --scripts-configmap none"] = { 2, "expected NAMESPACE/NAME" },
      ["retry"] = { 2, "expected a controller, or a kind and an object: moonloop retry CONTROLLER, or " },
      ["retry Widget none"] = { 1, 'widgets.e2e.moonloop.dev "none" not found' },
      ["retry Wodget w01"] = { 1, "the server has no kind Wodget; is its CRD installed?" },
      ["pause one two"] = { 2, "expected one name of a controller" },
      ["retry parts --kubeconfig /none"] = { 3, "/none" },
    } do
      local list = { "--namespace", ns }
      for word in words:gmatch "%S+" do
        table.insert(list, #list - 1, word)
      end
      local result = host.command(list)
      assert.equal(want[1], result.code, words .. ": " .. result.err)
      assert.truthy(result.err:find(want[2], 1, true), words .. ": " .. result.err)
    end
    assert.same(before, api.get("ConfigMap", ns, "scripts").metadata.annotations)
    assert.equal(good, live_revision())
  end)

  it("runs what ran before when it starts with a script that is refused", function()
    make_widgets(1)
    till_parts(3)
    local good = live_revision()
    till_kept(good)
    moonloop:stop()
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = "return {" })
    start "changing-again"
    assert.equal(good, live_revision())
    assert.equal(1, moonloop:metric("moonloop_script_refused", { file = "parts.lua" }))
    assert.equal(1, moonloop:metric("moonloop_script_drifted", { file = "parts.lua" }))
    api.patch("Widget", ns, "w01", { spec = { say = "two" } })
    till_said "two"
  end)

  it("tells each object that it deletes, on the object that it was for, and a sum of many", function()
    make_widgets(WIDGETS)
    till_parts(3 * WIDGETS)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = INVERTED })
    till_parts(0)
    local told = moonloop:till_log { msg = "deleted more objects in the same second" }
    assert.equal("parts", told.controller)
    local alone
    wait.till("each deletion to be told", 10, function() -- on a slow machine they take more than a second
      alone = moonloop:lines { msg = "deleted an object" }
      local sum = #alone
      for _, line in ipairs(moonloop:lines { msg = "deleted more objects in the same second" }) do
        sum = sum + line.objects
      end
      return sum == 3 * WIDGETS, sum
    end)
    assert.matches("^no longer returned by parts%.lua:9$", alone[1].why)
    assert.matches("^ConfigMap " .. ns:gsub("%p", "%%%0") .. "/w%d%d%-%d$", alone[1].deleted)
    for i = 1, WIDGETS do
      cluster.till_event(ns, "Widget", ("w%02d"):format(i), "SuccessfulDelete", "no longer returned by parts.lua:9")
    end
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = PARTS })
    till_parts(3 * WIDGETS)
  end)

  it("runs for nothing while its ConfigMap is paused, after a restart too", function()
    make_widgets(WIDGETS)
    till_parts(3 * WIDGETS)
    annotate("ConfigMap", "scripts", "paused", "true")
    moonloop:till_log { msg = "controller is paused" }
    cluster.till_event(ns, "ConfigMap", "scripts", "Paused", "controller parts reconciles nothing")
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = INVERTED })
    moonloop:till_log { msg = "new version is live" }
    api.patch("Widget", ns, "w01", { spec = { say = "two" } })
    moonloop:kill()
    start "changing-again"
    assert.equal(1, moonloop:metric("moonloop_controller_paused", { controller = "parts" }))
    wait.holds("nothing is done", 1, function()
      local count, said = parts()
      return count == 3 * WIDGETS and not said.two
    end)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = PARTS })
    moonloop:till_log { msg = "new version is live" }
    annotate("ConfigMap", "scripts", "paused", cjson.null)
    till_said "two"
    till_parts(3 * WIDGETS)
    assert.equal(0, moonloop:metric("moonloop_controller_paused", { controller = "parts" }))
  end)

  it("leaves a paused object alone, and says so on it", function()
    make_widgets(2)
    till_said "one"
    annotate("Widget", "w01", "paused", "true")
    cluster.till_condition("Widget", ns, "w01", "Reconciled", "False", "Paused: ")
    cluster.till_event(ns, "Widget", "w01", "Paused", "moonloop.dev/paused")
    assert.equal(1, moonloop:metric("moonloop_objects_paused", { controller = "parts" }))
    for i = 1, 2 do
      api.patch("Widget", ns, ("w%02d"):format(i), { spec = { say = "two" } })
    end
    till_said("two", "w02")
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = INVERTED })
    till_parts(3)
    assert.equal("one", api.get("Widget", ns, "w01").status.said)
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = PARTS })
    till_parts(6)
    annotate("Widget", "w01", "paused", cjson.null)
    till_said "two"
    assert.equal("True", cluster.condition(api.get("Widget", ns, "w01"), "Reconciled").status)
  end)

  it("tries again at once when somebody says so", function()
    local failing = scripts.edited(PARTS, "local children = {}", 'assert(widget.spec.say ~= "bad", "it is bad")\n'
      .. "    local children = {}\n    if widget.spec.later then return { requeue_after = 3600 } end")
    kubectl.configmap(ns, "scripts", { ["parts.lua"] = failing })
    moonloop:till_log { msg = "new version is live" }
    api.create("Widget", ns, { metadata = { name = "w01" }, spec = { say = "one", later = true } })
    local function runs()
      local count = 0
      for _, result in ipairs { "success", "error", "requeue_after" } do
        local labels = { controller = "parts", result = result }
        count = count + (moonloop:metric("controller_runtime_reconcile_total", labels) or 0)
      end
      return count
    end
    wait.till("a run", 10, function() return runs() == 1, runs() end)
    annotate("Widget", "w01", "retry", "1")
    wait.till("a second run", 10, function() return runs() == 2, runs() end)
    annotate("ConfigMap", "scripts", "retry", "1")
    wait.till("a third run", 10, function() return runs() == 3, runs() end)
    assert.equal(("Widget %s/w01: is tried again now\n"):format(ns), command("retry", "Widget", ns .. "/w01"))
    wait.till("a fourth run", 10, function() return runs() == 4, runs() end)
    command("retry", "widgets.e2e.moonloop.dev", "w01", "--namespace", ns)
    wait.till("a fifth run", 10, function() return runs() == 5, runs() end)
    wait.holds("one run for each", 1, function() return runs() == 5, runs() end)
  end)
end)
