-- moonloop plan: what it prints, and that nothing changes on the server. spec/e2e/changing_spec.lua compares what it
-- says with what an edit then does; test_operator_plan has the rest.
local cjson = require "cjson.safe"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local MAPS = "/api/v1/namespaces/default/configmaps"

-- Copies each ConfigMap that has the label into a Secret.
local COPY = [[
local moonloop = require "moonloop"
local Secret = moonloop.kind("v1", "Secret")

return moonloop.controller {
  name = "copy",
  reconciles = moonloop.kind("v1", "ConfigMap", { labels = "copy=yes" }),
  owns = { Secret },
  reconcile = function(map, ctx)
    if map.data.word == "none" then
      error "no word"
    elseif map.data.word == "ask" then
      ctx.get(Secret, "secrets-are-cached")
    end
    return { children = { {
      apiVersion = "v1", kind = "Secret", metadata = { name = map.metadata.name },
      stringData = { word = map.data.word },
    } } }
  end,
}
]]

describe("moonloop plan", function()
  local server, script

  setup(function()
    server = dev.start { "--pods", "none" }
    script = shell.folder "scripts" .. "/copy.lua"
    shell.write(script, COPY)
    for i = 1, 7 do
      server:must("POST", MAPS, {
        apiVersion = "v1", kind = "ConfigMap", data = { word = "secret-" .. i },
        metadata = { name = "map-" .. i, labels = { copy = "yes" } },
      })
    end
  end)

  teardown(dev.stop_all)

  local function plan(...)
    return host.command { "plan", "--kubeconfig", server.kubeconfig, ... }
  end

  it("prints what would be made, five of each, with the values of no Secret", function()
    local result = plan("--scripts", script)
    assert.same({ 2, "" }, { result.code, result.err })
    local lines = { "  create 7 Secret" }
    for i = 1, 5 do
      lines[#lines + 1] = ("    default/map-%d, for default/map-%d"):format(i, i)
    end
    lines[#lines + 1] = "    and 2 more\n"
    assert.matches("^copy%.lua: controller copy, revision %x+: 7 of 7 objects of ConfigMap were tried\n", result.out)
    assert.equal(table.concat(lines, "\n"), result.out:match "\n(.*)")
    result = plan(script, "-o", "json")
    assert.equal(2, result.code)
    assert.truthy(result.out:find([["kind":"Secret"]], 1, true), result.out)
    assert.truthy(result.out:find("(hidden)", 1, true), result.out)
    assert.falsy(result.out:find("secret-", 1, true), result.out)
    assert.same({}, server:get "/api/v1/namespaces/default/secrets".items)
  end)

  it("ends with 1 and the line when the script fails for an object", function()
    server:must("PATCH", MAPS .. "/map-7", { data = { word = "none" } }, { type = "application/merge-patch+json" })
    local result = plan("--scripts", script)
    assert.equal(1, result.code)
    assert.truthy(result.out:find("\n  fails\n    default/map-7: copy.lua:10: no word\n", 1, true), result.out)
    assert.truthy(result.out:find("\n  create 6 Secret\n", 1, true), result.out)
    local event = "\n  Event Warning ReconcileFailed, 1 times, as of ConfigMap default/map-7: "
    assert.truthy(result.out:find(event, 1, true), result.out)
  end)

  it("says what is wrong when there is no plan", function()
    local missing = shell.path "missing.lua"
    shell.write(missing, (COPY:gsub('"v1", "ConfigMap"', '"none.example.com/v1", "None"')))
    for words, want in pairs {
      [""] = { 2, "no scripts given: moonloop plan --scripts PATH" },
      ["/none.lua"] = { 1, "/none.lua" },
      [script .. " -o yaml"] = { 2, "-o yaml: choose json, or leave it out" },
      [script .. " --kubeconfig /none"] = { 3, "/none" },
      [missing] = { 1, "None" },
    } do
      local list = {}
      for word in words:gmatch "%S+" do
        list[#list + 1] = word
      end
      local result = plan(table.unpack(list))
      assert.equal(want[1], result.code, words .. ": " .. result.err)
      assert.truthy(result.err:find(want[2], 1, true), words .. ": " .. result.err)
    end
  end)

  -- A Service for each ConfigMap, in a namespace of its own if it says so. Of those that are there, the port changes.
  local SERVES = [[
local moonloop = require "moonloop"
local Service = moonloop.kind("v1", "Service")
local Namespace = moonloop.kind("v1", "Namespace")

return moonloop.controller {
  name = "serves",
  reconciles = moonloop.kind("v1", "ConfigMap"),
  owns = { Service, Namespace },
  reconcile = function(map)
    if map.metadata.labels.serve ~= "yes" then
      return nil
    end
    local own = map.data.own
    local children = { {
      apiVersion = "v1", kind = "Service", metadata = { name = map.metadata.name, namespace = own },
      spec = { ports = { { port = tonumber(map.data.port) } } },
    } }
    if own then
      table.insert(children, 1, { apiVersion = "v1", kind = "Namespace", metadata = { name = own } })
    end
    return { children = children }
  end,
  finalize = function() end,
}
]]

  it("has the server try each change on request, and writes nothing", function()
    local serves, services = shell.folder "serves" .. "/serves.lua", "/api/v1/namespaces/default/services"
    shell.write(serves, SERVES)
    for name, data in pairs {
      ["serve-1"] = { port = "80" }, ["serve-2"] = { port = "70000" }, ["serve-3"] = { port = "80", own = "made" },
      ["serve-4"] = { port = "81" },
    } do
      local meta = { name = name, labels = { serve = "yes" } }
      server:must("POST", MAPS, { apiVersion = "v1", kind = "ConfigMap", data = data, metadata = meta })
    end
    local owner = server:get(MAPS .. "/serve-4")
    server:must("POST", services, {
      apiVersion = "v1", kind = "Service", spec = { ports = { { port = 80 } } },
      metadata = { name = "serve-4", ownerReferences = { {
        apiVersion = "v1", kind = "ConfigMap", name = "serve-4", uid = owner.metadata.uid, controller = true,
        blockOwnerDeletion = true,
      } } },
    })
    local before = server:get(services).metadata.resourceVersion
    local offline = plan(serves)
    assert.same({ 2, "" }, { offline.code, offline.err }, offline.out)
    local result = plan(serves, "--server-side", "-o", "json")
    assert.same({ 1, "" }, { result.code, result.err })
    local by_name = {}
    for _, change in ipairs(cjson.decode(result.out).controllers[1].changes) do
      if change.kind ~= "ConfigMap" then
        by_name[change.name] = change
      end
    end
    local function field(change, name)
      for _, each in ipairs(change.fields) do
        if each.field == name then
          return each.to
        end
      end
    end
    assert.equal("ClusterIP", field(by_name["serve-1"], "spec").type)
    assert.equal(80, field(by_name["serve-1"], "spec").ports[1].targetPort)
    assert.matches('Service "serve%-2" is invalid: .*70000', by_name["serve-2"].refused)
    assert.same({ "create" }, { by_name["serve-3"].verb, by_name["serve-3"].refused }) -- its namespace is not there yet
    assert.same({ "change", "create" }, { by_name["serve-4"].verb, by_name.made.verb })
    assert.equal(81, (field(by_name["serve-4"], "spec.ports[81]") or {}).port, cjson.encode(by_name["serve-4"].fields))
    assert.equal(before, server:get(services).metadata.resourceVersion)
    assert.equal(1, #server:get(services).items - 1) -- that of the server itself
    result = plan(serves, "--server-side")
    assert.equal(1, result.code)
    local refusal = '\n      the API server refuses it: Service "serve-2" is invalid: '
    assert.truthy(result.out:find(refusal, 1, true), result.out)
  end)

  it("ends when the server answers no more", function()
    local mine, serves = dev.start { "--pods", "none" }, shell.folder "serves" .. "/serves.lua"
    local killer = shell.path "killer.lua"
    finally(function() mine:stop() end)
    shell.write(serves, SERVES)
    -- Ends the server when it asks a webhook about the first dry run.
    shell.write(killer, ([[
local listener = assert(require "socket".bind("127.0.0.1", 0))
print(select(2, listener:getsockname()))
io.stdout:flush()
listener:settimeout(60)
listener:accept()
os.execute "kill -KILL %d"
]]):format(mine.host.pid))
    local log = shell.path "killer.log"
    shell.must(("lua5.4 %s >%s 2>&1 &"):format(shell.quote(killer), shell.quote(log)))
    local port = wait.till("the killer", 10, function() return (shell.read(log) or ""):match "^%d+" end)
    for i = 1, 3 do
      mine:must("POST", MAPS, {
        apiVersion = "v1", kind = "ConfigMap", data = { port = "80" },
        metadata = { name = "serve-" .. i, labels = { serve = "yes" } },
      })
    end
    mine:must("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {
      apiVersion = "admissionregistration.k8s.io/v1", kind = "ValidatingWebhookConfiguration",
      metadata = { name = "killer" },
      webhooks = { {
        name = "killer.example.com", sideEffects = "None", admissionReviewVersions = { "v1" },
        clientConfig = { url = ("https://127.0.0.1:%s/"):format(port) },
        rules = { {
          apiGroups = { "" }, apiVersions = { "v1" }, operations = { "CREATE" }, resources = { "services" },
        } },
      } },
    })
    local result = host.command { "plan", "--kubeconfig", mine.kubeconfig, serves, "--server-side" }
    assert.same({ 1, "" }, { result.code, result.out }, result.err)
    assert.matches("serves%.lua: the API server did not answer the dry run of Service default/serve%-1: [^\n]*\n$",
      result.err)
    assert.equal(1, select(2, result.err:gsub("did not answer", "")))
  end)

  -- Takes a snapshot with the script, or with other arguments; returns the file and the result.
  local function take(...)
    local file = shell.path "snapshot"
    local arguments = select("#", ...) > 0 and { ... } or { "--scripts", script }
    return file, host.command { "snapshot", file, "--kubeconfig", server.kubeconfig, table.unpack(arguments) }
  end

  local NO_CLUSTER = { KUBECONFIG = false, HOME = "/nonexistent", KUBERNETES_SERVICE_HOST = false }

  local function plan_snapshot(...)
    return host.command({ "plan", "--snapshot", ... }, NO_CLUSTER)
  end

  it("says the same of a snapshot, without a server", function()
    server:must("PATCH", MAPS .. "/map-7", { data = { word = "some" } }, { type = "application/merge-patch+json" })
    local file, result = take()
    assert.same({ 0, "", file .. ": 7 objects of 1 controllers, and what belongs to them\n" },
      { result.code, result.err, result.out })
    assert.equal("600\n", shell.must("stat -c %a " .. shell.quote(file)))
    local live = plan(script, "-o", "json")
    result = plan_snapshot(file, script, "-o", "json")
    assert.same({ 2, "", live.out }, { result.code, result.err, result.out })
    file, result = take("--scripts", script, "--namespace", "kube-system")
    assert.same({ 0, "" }, { result.code, result.err })
    result = plan_snapshot(file, script)
    assert.matches(": 0 of 0 objects of ConfigMap were tried\n  changes nothing\n$", result.out)
    assert.equal(0, result.code)
  end)

  -- A script that compares and copies the values of Secrets.
  local READS = [[
local moonloop = require "moonloop"
local Secret = moonloop.kind("v1", "Secret")

return moonloop.controller {
  name = "reads",
  reconciles = moonloop.kind("v1", "Secret", { labels = "read=yes" }),
  uses = { moonloop.kind("v1", "Node") },
  reconcile = function(secret, ctx)
    local same = secret.data.one == secret.data.two and secret.data.one ~= secret.data.three
    return { conditions = { Ready = { status = same, reason = "Compared" } } }
  end,
}
]]

  it("leaves the values of Secrets out of a snapshot, and tells equal ones", function()
    local value, other = "dG9wc2VjcmV0", "b3RoZXI="
    server:must("POST", "/api/v1/namespaces/default/secrets", {
      apiVersion = "v1", kind = "Secret", data = { one = value, two = value, three = other },
      metadata = {
        name = "values", labels = { read = "yes" },
        annotations = { ["kubectl.kubernetes.io/last-applied-configuration"] = "topsecret", other = "kept" },
      },
    })
    local reads = shell.folder "reads" .. "/reads.lua"
    shell.write(reads, READS)
    local file, result = take("--scripts", reads)
    assert.same({ 0, "" }, { result.code, result.err })
    local text = shell.read(file)
    for _, hidden in ipairs { value, other, "topsecret" } do
      assert.falsy(text:find(hidden, 1, true), hidden)
    end
    local item = cjson.decode(text:match '\n({"item":[^\n]*"name":"values"[^\n]*)\n').item
    assert.is_nil(item.metadata.managedFields)
    assert.equal("kept", item.metadata.annotations.other)
    assert.equal(item.data.one, item.data.two)
    assert.not_equal(item.data.one, item.data.three)
    local live = plan(reads, "-o", "json")
    result = plan_snapshot(file, reads, "-o", "json")
    local function timeless(out)
      return (out:gsub('"lastTransitionTime":"[^"]*"', ""))
    end
    assert.same({ 2, "", timeless(live.out) }, { result.code, result.err, timeless(result.out) })
    assert.truthy(live.out:find('"reason":"Compared","status":"True"', 1, true), live.out)
  end)

  it("says what is wrong with a snapshot", function()
    local file = take()
    local whole = shell.read(file)
    local other = shell.folder "other" .. "/copy.lua"
    shell.write(other, (COPY:gsub("copy=yes", "copy=no")))
    local nodes = shell.folder "nodes" .. "/copy.lua"
    shell.write(nodes, (COPY:gsub("error \"no word\"", "ctx.get(moonloop.kind('v1', 'Node'), 'n')")
      :gsub("owns =", "uses = { moonloop.kind('v1', 'Node') }, owns =")
      :gsub('map.data.word == "none"', "true")))
    local function refused(want, code, ...)
      local result = plan_snapshot(...)
      assert.equal(code, result.code, result.err)
      assert.truthy((result.err .. result.out):find(want, 1, true), result.err .. result.out)
    end
    refused("labelSelector=copy%3Dno", 1, file, other)
    refused("is not in the snapshot", 1, file, other)
    refused("/v1/nodes/n: ", 0, file, nodes)
    refused("/none: cannot be read: No such file or directory", 1, "/none", script)
    refused("/: cannot be read: Is a directory", 1, "/", script)
    refused("--snapshot stands for the API server", 2, file, script, "--namespace", "a")
    refused("--snapshot stands for the API server", 2, file, script, "--kubeconfig", "a")
    refused("--server-side asks the API server; leave out --snapshot", 2, file, script, "--server-side")
    local bad = shell.path "bad"
    for _, case in ipairs {
      { "", ": no snapshot of `moonloop snapshot`" },
      { "{}\n", ":1: no snapshot of `moonloop snapshot`" },
      { "garbage\n", ":1: at byte 0: not a value" },
      { whole:sub(1, -20), ": it is not whole; take it again" },
      { whole:gsub('\n{"item"[^\n]*', "", 1), ": neither an answer, nor an item of a list, nor the end" },
      { whole .. "{}\n", ": there is more behind the end" },
      { whole:gsub('"status":200', '"status":"x"', 1), ":2: `status` is neither 200 nor 404" },
      { whole:gsub('(\n{"list".-)"resourceVersion"', '%1"version"', 1), ": a list without kind, apiVersion or" },
    } do
      shell.write(bad, case[1])
      refused(bad .. case[2]:match "^:%d*", 1, bad, script)
      refused(case[2], 1, bad, script)
    end
    local _, result = take("--scripts", "/none.lua")
    assert.equal(1, result.code)
    result = host.command { "snapshot", "--scripts", script }
    assert.equal(2, result.code)
    assert.truthy(result.err:find("expected one file, and scripts: moonloop snapshot FILE", 1, true), result.err)
    result = host.command { "snapshot", "/none/file", "--scripts", script, "--kubeconfig", server.kubeconfig }
    assert.equal(1, result.code)
    assert.truthy(result.err:find("/none/file: cannot be written: No such file", 1, true), result.err)
  end)
end)
