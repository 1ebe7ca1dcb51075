-- moonloop dev: the way in, what it takes again when that is saved, and its options.
local cjson = require "cjson.safe"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
local ATS = "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats"
local PODS = "/api/v1/namespaces/default/pods"
local CNAT = shell.read "reconcilers/cnat.lua"

-- Marks one ConfigMap, and would clean up after it.
local MARKS = [[
local moonloop = require "moonloop"
return moonloop.controller {
  name = "marks",
  reconciles = moonloop.kind("v1", "ConfigMap"),
  reconcile = function(map, ctx)
    if map.metadata.name == "marked" then
      assert(ctx.patch(map, { data = { seen = "yes" } }))
    end
  end,
  finalize = function() end,
}
]]

-- Works for some objects.
local BAD_SCRIPT = [[
local moonloop = require "moonloop"
return moonloop.controller {
  name = "bad",
  reconciles = moonloop.kind("v1", "Namespace"),
  reconcile = function(namespace, ctx)
    ctx.log "seen"
    if namespace.metadata.name == "default" then
      error "not this one"
    end
  end,
}
]]

local function configmap(name, value)
  return ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {k: %s}\n"):format(name, value)
end


local function pod(name, command)
  return {
    apiVersion = "v1",
    kind = "Pod",
    metadata = { name = name },
    spec = { restartPolicy = "Never", containers = { { name = "main", image = "busybox", command = command } } },
  }
end


local function folder(files)
  local path = shell.folder "given"
  for name, text in pairs(files) do
    shell.write(path .. "/" .. name, text)
  end
  return path
end


local function make_at(server, name)
  server:must("POST", ATS, {
    apiVersion = "cnat.programming-kubernetes.info/v1alpha1",
    kind = "At",
    metadata = { name = name },
    spec = { schedule = "2020-01-01T00:00:00Z", command = "echo YAY" },
  })
end


-- Waits until the object at a path has these texts at these places: { ["status.phase"] = "DONE" }.
local function till_has(server, path, wanted)
  wait.till(path, 10, function()
    local object = server:get(path)
    for place, value in pairs(wanted) do
      local is = object
      for name in place:gmatch "[^.]+" do
        is = type(is) == "table" and is[name] or nil
      end
      if is ~= value then
        return false, cjson.encode(object)
      end
    end
    return object
  end)
end


describe("moonloop dev", function()
  local server, waiting, failing

  -- These give up after ten and after twenty seconds; the others do not wait for that.
  setup(function()
    waiting = host.spawn({ "dev", "--until-idle", "--scripts", "reconcilers/cnat.lua" }, { name = "waiting" })
    local words = { "dev", "--until-idle", "--scripts", folder { ["bad.lua"] = BAD_SCRIPT } }
    failing = host.spawn(words, { name = "failing" })
  end)

  teardown(dev.stop_all)

  describe("at work", function()
    local scripts, manifests, audit

    setup(function()
      scripts = folder { ["cnat.lua"] = CNAT }
      manifests = folder { ["one.yaml"] = configmap("one", "v1") }
      audit = shell.path "audit.log"
      server = dev.start {
        "--scripts", scripts, "--apply", "crds", "--apply", manifests, "--pods", "fake", "--audit-log", audit,
      }
      server:till_said "script is live"
    end)

    teardown(function() server:stop() end)

    it("prints the way in, in a file for its user alone", function()
      assert.matches("^moonloop dev: a cluster at https://127%.0%.0%.1:" .. server.port .. ";", server:story())
      assert.equal("600", shell.must("stat -c %a " .. server.kubeconfig):match "%d+")
      assert.matches("^v1%.36", server:must("GET", "/version").gitVersion)
    end)

    it("asks for its token", function()
      for _, token in ipairs { false, "wrong", server.token .. "x", server.token:sub(1, -2) } do
        local code, answer = server:ask("GET", CONFIGMAPS, nil, { token = token })
        assert.same({ 401, "Unauthorized" }, { code, answer.reason })
      end
    end)

    it("is known by the authority in the kubeconfig only", function()
      local other = shell.path "other.crt"
      shell.must(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=x"
        .. " -keyout %s.key -out %s"):format(other, other))
      local ca = server.ca
      server.ca = other
      assert.has_error(function() server:connect() end)
      server.ca = ca
    end)

    it("applies what is given, and again when it is saved", function()
      till_has(server, CONFIGMAPS .. "/one", { ["data.k"] = "v1" })
      shell.save(manifests .. "/one.yaml", configmap("one", "v2"))
      till_has(server, CONFIGMAPS .. "/one", { ["data.k"] = "v2" })
      shell.save(manifests .. "/two.yaml", configmap("two", "v1"))
      till_has(server, CONFIGMAPS .. "/two", { ["data.k"] = "v1" })
      server:till_told "configmap/one +configured"
    end)

    it("says what is wrong in a manifest that is saved, and keeps what was", function()
      shell.save(manifests .. "/two.yaml", "a: [b\nc: d\n")
      server:till_said "two%.yaml: line %d"
      shell.save(manifests .. "/two.yaml", configmap("two", "[1]"))
      server:till_said "two%.yaml: [^\n]*data%.k"
      till_has(server, CONFIGMAPS .. "/two", { ["data.k"] = "v1" })
    end)

    it("goes on with the old script when one is saved that does not load, and says in which line", function()
      shell.save(scripts .. "/cnat.lua", CNAT:gsub("\nlocal function words", "\nlocal function = words", 1))
      local line = select(2, CNAT:match("^(.-)\nlocal function words"):gsub("\n", "")) + 2
      server:till_said("cnat%.lua:" .. line .. ": ")
      make_at(server, "while-broken")
      till_has(server, ATS .. "/while-broken", { ["status.phase"] = "DONE" })
    end)

    it("takes the new script when it is saved", function()
      shell.save(scripts .. "/cnat.lua", (CNAT:gsub('image = "busybox"', 'image = "other"')))
      server:till_said "new version is live"
      make_at(server, "edited")
      till_has(server, ATS .. "/edited", { ["status.phase"] = "DONE" })
      assert.equal("other", server:get(PODS .. "/edited-pod").spec.containers[1].image)
    end)

    it("removes the controller of a script whose file is deleted, and its finalizers with it", function()
      shell.save(scripts .. "/marks.lua", MARKS)
      shell.save(manifests .. "/marked.yaml", configmap("marked", "v1"))
      till_has(server, CONFIGMAPS .. "/marked", { ["data.seen"] = "yes" })
      assert.same({ "moonloop.dev/marks" }, server:get(CONFIGMAPS .. "/marked").metadata.finalizers)
      shell.must(shell.line { "rm", scripts .. "/marks.lua" })
      server:till_said "controller is removed; its objects stay"
      assert.is_nil(server:get(CONFIGMAPS .. "/marked").metadata.finalizers)
    end)

    it("tells the story", function()
      server:till_told "at/edited +DONE\n"
      server:till_told "pod/edited%-pod +Succeeded\n"
    end)

    it("is asked with moonloop status and why", function()
      local pid = tostring(server.host.pid)
      local status = host.command { "status", "--pid", pid }
      assert.same({ 0, "" }, { status.code, status.err })
      assert.matches("^ready, reconciles\n", status.out)
      local why = host.command { "why", "ConfigMap", "default/nobody", "--pid", pid }
      assert.matches("^ConfigMap default/nobody\n", why.out)
    end)

    it("writes a line of audit for each request, with who and what came of it", function()
      server:ask("POST", CONFIGMAPS, { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "Not_Allowed" } })
      server:must("GET", CONFIGMAPS .. "/one")
      local function find(want)
        return wait.till("a line of audit " .. cjson.encode(want), 5, function()
          for text in assert(shell.read(audit)):gmatch "([^\n]*)\n" do
            local event = assert(cjson.decode(text), text)
            local object = event.objectRef or {}
            if event.verb == want.verb and object.name == want.name and event.responseStatus.code == want.code
              and event.user.username == want.user then
              return event
            end
          end
        end)
      end
      local refused = find { verb = "create", name = "Not_Allowed", code = 422, user = "kubernetes-admin" }
      assert.same({ "Event", "audit.k8s.io/v1", "Metadata", "ResponseComplete", CONFIGMAPS },
        { refused.kind, refused.apiVersion, refused.level, refused.stage, refused.requestURI })
      find { verb = "get", name = "one", code = 200, user = "kubernetes-admin" }
      find { verb = "create", name = "edited-pod", code = 201, user = "kubernetes-admin" }
    end)
  end)

  describe("--pods", function()
    after_each(function() server:stop() end)

    it("fake lets them succeed without a process", function()
      server = dev.start { "--pods", "fake" }
      server:must("POST", PODS, pod("p", { "/no/such/command" }))
      till_has(server, PODS .. "/p", { ["status.phase"] = "Succeeded" })
    end)

    it("none leaves them alone", function()
      server = dev.start { "--pods", "none" }
      server:must("POST", PODS, pod("p", { "true" }))
      wait.holds("that nobody takes it", 0.3, function()
        local found = server:get(PODS .. "/p")
        return found.spec.nodeName == nil and found.status.phase == "Pending", cjson.encode(found)
      end)
    end)

    it("process runs them, says what they print, and how they end", function()
      server = dev.start {}
      server:must("POST", PODS, pod("good", { "echo", "YAY" }))
      server:must("POST", PODS, pod("bad", { "sh", "-c", "exit 3" }))
      server:must("POST", PODS, pod("none", { "/no/such/command" }))
      till_has(server, PODS .. "/good", { ["status.phase"] = "Succeeded" })
      for name, code in pairs { bad = 3, none = 128 } do
        till_has(server, PODS .. "/" .. name, { ["status.phase"] = "Failed" })
        assert.equal(code, server:get(PODS .. "/" .. name).status.containerStatuses[1].state.terminated.exitCode)
      end
      assert.equal("YAY\n", server:must("GET", PODS .. "/good/log"))
      server:till_told "good +| YAY\n"
    end)
  end)

  it("is asked about nothing as long as it has no scripts, so another host may be", function()
    server = dev.start { "--pods", "none" }
    local status = host.command { "status", "--pid", tostring(server.host.pid) }
    server:stop()
    assert.equal(3, status.code)
    assert.matches("is no moonloop host on this machine", status.err, 1, true)
  end)

  describe("--authorization-mode RBAC", function()
    it("keeps a service account to its rules", function()
      server = dev.start { "--authorization-mode", "RBAC", "--pods", "none" }
      local as_robot = { headers = { ["impersonate-user"] = "system:serviceaccount:default:robot" } }
      local code, answer = server:ask("GET", CONFIGMAPS, nil, as_robot)
      assert.same({ 403, "Forbidden" }, { code, answer.reason })
      assert.equal(
        'configmaps is forbidden: User "system:serviceaccount:default:robot" cannot list resource "configmaps"'
          .. ' in API group "" in the namespace "default"', answer.message)
      local rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
      server:must("POST", rbac .. "roles", {
        metadata = { name = "reader" },
        rules = { { apiGroups = { "" }, resources = { "configmaps" }, verbs = { "list" } } },
      })
      server:must("POST", rbac .. "rolebindings", {
        metadata = { name = "reader" },
        roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "Role", name = "reader" },
        subjects = { { kind = "ServiceAccount", name = "robot", namespace = "default" } },
      })
      assert.equal(200, (server:ask("GET", CONFIGMAPS, nil, as_robot)))
      assert.equal(403, (server:ask("DELETE", CONFIGMAPS .. "/kube-root-ca.crt", nil, as_robot)))
      assert.equal(0, server:stop())
    end)
  end)

  it("tells of custom objects, whatever is in their status", function()
    server = dev.start { "--pods", "none" }
    server:must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      metadata = { name = "things.e.com" },
      spec = {
        group = "e.com", scope = "Namespaced", names = { plural = "things", kind = "Thing" },
        versions = { { name = "v1", served = true, storage = true, schema = {
          openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } } },
      },
    })
    local things = "/apis/e.com/v1/namespaces/default/things"
    wait.till("the kind", 10, function() return server:get(things) end)
    local statuses = {
      '"text"', "null", "[]", '{"phase":{}}', '{"phase":"x","message":[]}', '{"conditions":5}',
      '{"conditions":[5,null]}', '{"conditions":[{"status":"True"}]}',
      '{"conditions":[{"type":{},"status":"True"}]}',
      '{"conditions":[{"type":"Ready","status":true}]}',
      '{"conditions":[{"type":"Ready","status":"True","reason":{}}]}',
      '{"phase":"x","containerStatuses":[1,{"state":2},{"state":{"waiting":3}},{"state":{"waiting":{"message":4}}}]}',
    }
    for i, status in ipairs(statuses) do
      local code = server:ask("POST", things,
        ('{"apiVersion":"e.com/v1","kind":"Thing","metadata":{"name":"t%d"},"status":%s}'):format(i, status))
      assert.equal(201, code, status)
    end
    server:till_told "thing/t12 +x\n"
    assert.matches("thing/t11 +Ready=True\n", server:story())
    assert.equal("", server.host:stderr())
    assert.equal(0, server:stop())
  end)

  it("is an API server alone where nobody wants controllers, for which scripts work as well", function()
    server = dev.start { "--controllers", "none", "--scripts", folder { ["marks.lua"] = MARKS } }
    server:must("POST", CONFIGMAPS, { metadata = { name = "marked" } })
    till_has(server, CONFIGMAPS .. "/marked", { ["data.seen"] = "yes" })
    assert.equal(1, #server:get(CONFIGMAPS).items)
    assert.equal(0, #server:get("/api/v1/serviceaccounts").items)
    assert.equal(0, #server:get("/api/v1/nodes").items)
    assert.equal(0, server:stop())
  end)

  it("serves the operator's metrics, prints what its scripts write, and counts it at the end", function()
    local script = [[
local moonloop = require "moonloop"
local Map, Service = moonloop.kind("v1", "ConfigMap"), moonloop.kind("v1", "Service")
return moonloop.controller {
  name = "web",
  reconciles = Map,
  owns = { Service },
  reconcile = function(map)
    if map.metadata.name == "web" then
      return { children = { {
        apiVersion = "v1", kind = "Service", metadata = { name = "web" }, spec = { ports = { { port = 80 } } },
      } } }
    end
  end,
}
]]
    server = dev.start {
      "--pods", "none", "--scripts", folder { ["web.lua"] = script }, "--metrics-bind-address", "127.0.0.1:0",
    }
    server:must("POST", CONFIGMAPS, { metadata = { name = "web" } })
    server:till_told "service/web +created\n"
    local port = server:story():match "/metrics is at port (%d+)\n"
    local page = shell.must("curl -sf http://127.0.0.1:" .. port .. "/metrics")
    assert.matches('\ncontroller_runtime_reconcile_total{controller="web",result="success"} %d', page)
    server:must("DELETE", CONFIGMAPS .. "/web")
    server:till_told "service/web +deleted\n"
    assert.equal(0, server:stop())
    assert.matches("  writes of scripts +1 made\n%d%d:%d%d:%d%d    services +1 made\n$", server:story())
  end)

  it("runs pods without controllers for those who ask for it", function()
    server = dev.start { "--controllers", "none", "--pods", "fake" }
    server:must("POST", PODS, pod("a", { "true" }))
    till_has(server, PODS .. "/a", { ["status.phase"] = "Succeeded" })
    assert.equal(0, server:stop())
  end)

  it("prints a path of the kubeconfig that is good in any folder", function()
    local place = shell.must("realpath -ms --relative-to=. " .. shell.quote(shell.path "kubeconfig")):match "[^\n]+"
    assert.not_equal("/", place:sub(1, 1))
    server = dev.start { "--pods", "none", "--write-kubeconfig", place }
    assert.equal("/", server.kubeconfig:sub(1, 1))
    assert.equal(0, server:stop())
  end)

  describe("refuses", function()
    local MISTAKES = {
      { "an address that is not loopback", { "--bind-address", "0.0.0.0:0" }, "only loopback is served" },
      { "metrics on an address that is not loopback", { "--metrics-bind-address", "0.0.0.0:0" },
        "--metrics-bind-address 0.0.0.0:0: only loopback is served" },
      { "metrics on an address that is none", { "--metrics-bind-address", "127.0.0.1" }, "127.0.0.1:PORT" },
      { "metrics on a port that is none", { "--metrics-bind-address", "127.0.0.1:http" }, "127.0.0.1:PORT" },
      { "an address that is none", { "--bind-address", "127.0.0.1" }, "" },
      { "unknown controllers", { "--controllers", "some" }, "--controllers some: expected all or none" },
      { "an unknown way to run pods", { "--pods", "docker" }, "expected process, fake or none" },
      { "an unknown way to authorize", { "--authorization-mode", "ABAC" }, "expected AlwaysAllow or RBAC" },
      { "an unknown level", { "--log-level", "loud" }, "expected debug, info, warn or error" },
      { "no number of pods", { "--max-pods", "0" }, "expected a number from 1 to 10000" },
      { "an unknown option", { "--script", "x" }, "did you mean --scripts?" },
    }

    for _, mistake in ipairs(MISTAKES) do
      it(mistake[1], function()
        local result = dev.command(table.unpack(mistake[2]))
        assert.equal(2, result.code, result.err)
        assert.equal("", result.out)
        assert.matches("^moonloop dev: [^\n]+\n$", result.err)
        assert.matches(mistake[3], result.err, 1, true)
      end)
    end

    it("a port that is taken", function()
      server = dev.start { "--pods", "none" }
      local result = dev.command("--bind-address", "127.0.0.1:" .. server.port)
      assert.same({ 1, "" }, { result.code, result.out })
      assert.matches("^moonloop dev: [^\n]*[Aa]ddress already in use[^\n]*\n$", result.err)
      assert.equal(0, server:stop())
    end)

    it("a place for the kubeconfig that is not there", function()
      local result = dev.command("--write-kubeconfig", "/nonexistent/kubeconfig")
      assert.same({ 1, "" }, { result.code, result.out })
      assert.matches("^moonloop dev: /nonexistent/kubeconfig: [^\n]+\n$", result.err)
    end)
  end)

  describe("--until-idle", function()
    local AT = "apiVersion: cnat.programming-kubernetes.info/v1alpha1\nkind: At\nmetadata: {name: a}\n"
      .. "spec: {schedule: '2020-01-01T00:00:00Z', command: echo YAY}\n"
    it("ends when all is done", function()
      local path = folder { ["at.yaml"] = AT }
      local script = "reconcilers/cnat.lua"
      local result = dev.command("--until-idle", "--scripts", script, "--apply", "crds", "--apply", path)
      assert.equal(0, result.code, result.err)
      assert.matches("a%-pod +| YAY\n", result.out)
      assert.matches("at/a +DONE\n", result.out)
    end)

    it("refuses a script with names that do not exist, and runs the others", function()
      local script = [[
local moonloop = require "moonloop"
local Pod = moonloop.kind("v1", "Pod")
return moonloop.controller {
  name = "reads",
  reconciles = moonloop.kind("cnat.programming-kubernetes.info/v1alpha1", "At"),
  uses = { Pod },
  reconcile = function(at, ctx)
    local pod = ctx.get(Pod, "a")
    return { status = { phase = pod and pod.status.phsae or at.spec.shedule } }
  end,
}
]]
      local scripts, manifests = folder { ["reads.lua"] = script, ["cnat.lua"] = CNAT }, folder { ["at.yaml"] = AT }
      local result = dev.command("--until-idle", "--scripts", scripts, "--apply", "crds", "--apply", manifests)
      assert.equal(1, result.code, result.err)
      local problem = "reads.lua:9: Pod of v1 has no field 'status.phsae'; did you mean 'phase'? (and 1 more)\n"
      assert.equal("moonloop dev: " .. problem, result.err:match "moonloop dev: [^\n]+\n$")
      assert.matches("at/a +DONE\n", result.out)
    end)

    it("checks the fields of a kind that comes after its script", function()
      local path = folder { ["a-at.yaml"] = AT, ["z-crd.yaml"] = shell.read "crds/at.yaml" }
      local scripts = folder { ["cnat.lua"] = (CNAT:gsub("at%.spec%.schedule", "at.spec.scedule")) }
      local result = dev.command("--until-idle", "--scripts", scripts, "--apply", path)
      assert.equal(1, result.code, result.err)
      assert.matches("cnat%.lua:%d+: At of [^\n]* has no field 'spec%.scedule'; did you mean 'schedule'", result.err)
    end)

    it("waits for kinds that come with another manifest", function()
      local path = folder { ["a-at.yaml"] = AT, ["z-crd.yaml"] = shell.read "crds/at.yaml" }
      local result = dev.command("--until-idle", "--scripts", "reconcilers/cnat.lua", "--apply", path)
      assert.equal(0, result.code, result.err)
      assert.matches("at/a +DONE\n", result.out)
    end)

    local BAD = {
      { "a script that does not load", { ["cnat.lua"] = "local x =\n\nend" }, {}, "cnat%.lua:3: " },
      { "a manifest that is no YAML", { ["cnat.lua"] = CNAT }, { ["a.yaml"] = "a: [b\nc: d" }, "a%.yaml: line" },
      { "a bad document before a good one", { ["cnat.lua"] = CNAT },
        { ["a.yaml"] = "a: [b\n---\n" .. configmap("good", "v") }, "a%.yaml: line %d+: " },
      { "a manifest that is not allowed", { ["cnat.lua"] = CNAT }, { ["a.yaml"] = configmap("Not_Allowed", "v") },
        "a%.yaml: .*Not_Allowed" },
      { "a manifest whose kind never comes", { ["cnat.lua"] = CNAT },
        { ["a.yaml"] = "apiVersion: e.com/v1\nkind: Never\nmetadata: {name: a}\n" },
        "a%.yaml: .*no kind Never in e%.com/v1" },
    }

    for _, case in ipairs(BAD) do
      it("fails for " .. case[1], function()
        local scripts, manifests = folder(case[2]), folder(case[3])
        local result = dev.command("--until-idle", "--scripts", scripts, "--apply", "crds", "--apply", manifests)
        assert.equal(1, result.code, result.err)
        assert.matches(case[4], result.err)
        assert.matches("moonloop dev: [^\n]+\n$", result.err)
      end)
    end

    it("applies what can be read beside what cannot, and says which file and line is wrong", function()
      local named = "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: %s}\n"
      local manifests = folder {
        ["a.yaml"] = "a: [b\nc: d\n---\n" .. configmap("good-a", "v") .. "---\n- 1\n---\n" .. configmap("Bad_A", "v"),
        ["b.yaml"] = configmap("good-b", "v") .. "---\nkind: [\n",
        ["c.json"] = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"good-c"}}\n'
          .. '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"good-d"}}\n',
        ["d.yaml"] = "apiVersion: v1\nkind: List\nitems:\n" .. named:format("good-e") .. "- 1\n" .. named:format("f"),
      }
      local result = dev.command("--until-idle", "--apply", manifests)
      assert.equal(1, result.code, result.err)
      for _, name in ipairs { "good-a", "good-b", "good-c", "good-d", "good-e", "f" } do
        assert.matches("configmap/" .. name:gsub("%-", "%%-") .. " +created\n", result.out)
      end
      for _, place in ipairs { "a%.yaml: line 2: did not find", "a%.yaml: line %d+: a manifest must be a mapping",
        "a%.yaml: line %d+: .*Bad_A", "b%.yaml: line %d+: did not find", "d%.yaml: line 1: a manifest must be" } do
        assert.matches(place, result.err)
      end
    end)

    it("counts a file that was mended as applied", function()
      local manifests = folder { ["a-at.yaml"] = "at: [\n---\n" .. AT }
      server = dev.start { "--apply", manifests, "--pods", "none" }
      server:till_said "a%-at%.yaml: line 2: "
      shell.save(manifests .. "/a-at.yaml", "0: {mode: 0644}\n")
      server:till_said "a%-at%.yaml: line 1: apiVersion and kind must be set"
      server:stop()
    end)

    it("fails for a manifest that is not there", function()
      local result = dev.command("--until-idle", "--apply", "/nonexistent.yaml")
      assert.equal(1, result.code)
      assert.matches("/nonexistent%.yaml", result.err)
    end)

    it("fails for a folder without scripts", function()
      local empty = folder {}
      local result = dev.command("--until-idle", "--scripts", empty)
      assert.equal(1, result.code)
      assert.equal(("moonloop dev: %s: no script in it\n"):format(empty), result.err:match "[^\n]*\n$")
    end)

    it("gives up on a script whose kinds never come", function()
      assert.equal(1, waiting:till_exit(20))
      assert.matches("moonloop dev: cnat%.lua: the server has no kind At in [^\n]+\n$", waiting:stderr())
    end)

    it("fails when a script fails for an object again and again, and names both", function()
      assert.equal(1, failing:till_exit(60))
      assert.matches("moonloop dev: bad%.lua: Namespace default failed 13 times in a row: bad%.lua:8: not this one\n$",
        failing:stderr())
    end)

    it("names a Namespace in the log by its name alone", function()
      assert.matches('bad: seen controller="bad" controllerKind="Namespace" name="kube%-system" reconcileID="%x+"\n',
        failing:stderr())
    end)
  end)
end)
