-- moonloop status, why and trace of hosts in a cluster: through the API server, by users with different rights. On the
-- embedded server the hosts are pods; on the control plane, which runs no containers, the port itself is asked.
local api = require "spec.e2e.support.api"
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local kubeconfig = require "spec.e2e.support.kubeconfig"
local http = require "spec.e2e.support.http"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local KUBECTL = os.getenv "KUBECTL" or "kubectl"
local SYSTEM = "moonloop-system"
local HOSTS = "/api/v1/namespaces/" .. SYSTEM .. "/pods?labelSelector=app.kubernetes.io/name=moonloop"
local ATS = "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/%s/ats"
local RBAC = "/apis/rbac.authorization.k8s.io/v1"
local GROUP = "cnat.programming-kubernetes.info"

-- Reading Ats, and the pods that they lead to.
local READS = {
  { apiGroups = { GROUP }, resources = { "ats" }, verbs = { "get", "list" } },
  { apiGroups = { "" }, resources = { "pods" }, verbs = { "get", "list" } },
}


local function at(name)
  return {
    apiVersion = GROUP .. "/v1alpha1", kind = "At", metadata = { name = name },
    spec = { schedule = cluster.PAST, command = "true" },
  }
end


-- Waits until the API server allows what a rule says: kube-apiserver's authorizer sees a new binding a little later.
local function until_allowed(must, owner, name, rule, ns)
  local resource, subresource = rule.resources[1]:match "^([^/]+)/?(.*)$"
  wait.till(("%s/%s to be allowed to %s %s"):format(owner, name, rule.verbs[1], rule.resources[1]), 20, function()
    return must("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
      apiVersion = "authorization.k8s.io/v1", kind = "SubjectAccessReview",
      spec = {
        user = ("system:serviceaccount:%s:%s"):format(owner, name),
        resourceAttributes = {
          group = rule.apiGroups[1], resource = resource, subresource = subresource, verb = rule.verbs[1],
          namespace = ns,
        },
      },
    }).status.allowed
  end)
end


-- Gives the ServiceAccount NAMESPACE/NAME rules in a namespace; in all of them without one.
local function grant(must, account, rules, ns)
  local owner, name = account:match "(.+)/(.+)"
  local kind = ns and "Role" or "ClusterRole"
  local base = ns and RBAC .. "/namespaces/" .. ns or RBAC
  local id = ("%s-%s-%s"):format(owner, name, ns or "all")
  must("POST", ("%s/%s"):format(base, ns and "roles" or "clusterroles"), {
    apiVersion = "rbac.authorization.k8s.io/v1", kind = kind, metadata = { name = id }, rules = rules,
  })
  must("POST", ("%s/%s"):format(base, ns and "rolebindings" or "clusterrolebindings"), {
    apiVersion = "rbac.authorization.k8s.io/v1", kind = kind .. "Binding", metadata = { name = id },
    roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = kind, name = id },
    subjects = { { kind = "ServiceAccount", name = name, namespace = owner } },
  })
  until_allowed(must, owner, name, rules[#rules], ns)
end


-- A ServiceAccount with a token that is good for ten minutes; returns the token.
local function account(must, ns, name)
  local path = ("/api/v1/namespaces/%s/serviceaccounts"):format(ns)
  must("POST", path, { apiVersion = "v1", kind = "ServiceAccount", metadata = { name = name } })
  return must("POST", ("%s/%s/token"):format(path, name), {
    apiVersion = "authentication.k8s.io/v1", kind = "TokenRequest", spec = { expirationSeconds = 600 },
  }).status.token
end


describe("a host in a cluster", function()
  local lacks = cluster.controlplane and "the control plane runs no containers" or dev.no_namespaces
  local server, users = nil, {}

  local function must(...)
    return server:must(...)
  end

  local function kubectl(command)
    return shell.must(("export KUBECONFIG=%s; %s %s"):format(shell.quote(server.kubeconfig), shell.quote(KUBECTL),
      command))
  end

  -- A kubeconfig with a token, of the server that runs.
  local function kubeconfig_of(name, token)
    local path = shell.path("kubeconfig-" .. name)
    shell.write(path, (shell.read(server.kubeconfig):gsub("token: %S+", "token: " .. token)))
    return path
  end

  -- Makes a user: may it forward ports of the hosts; in which namespace may it read (true: in all)?
  local function user(name, forwards, reads)
    local token = account(must, "askers", name)
    local rules = { { apiGroups = { "" }, resources = { "pods" }, verbs = { "get", "list" } } }
    if forwards then
      rules[2] = { apiGroups = { "" }, resources = { "pods/portforward" }, verbs = { "get", "create" } }
    end
    grant(must, "askers/" .. name, rules, SYSTEM)
    if reads then
      grant(must, "askers/" .. name, READS, reads ~= true and reads or nil)
    end
    users[name] = { token = token, kubeconfig = kubeconfig_of(name, token) }
  end

  local function words_of(name, words)
    local list = { table.unpack(words) }
    list[#list + 1] = "--kubeconfig"
    list[#list + 1] = users[name].kubeconfig
    return list
  end

  local function command(name, ...)
    return host.command(words_of(name, { ... }))
  end

  local function ask(name, ...)
    local result = command(name, ...)
    assert.same({ 0, "" }, { result.code, result.err })
    return result.out
  end

  local function till_done(ns, name)
    wait.till(("%s/%s to be DONE"):format(ns, name), 30, function()
      local object = server:get(ATS:format(ns) .. "/" .. name)
      return (object.status or {}).phase == "DONE", cjson.encode(object)
    end)
  end

  -- Two replicas: one of them leads, or with --shard both reconcile. Returns when no others are left.
  local function deploy(mode)
    local deployment = shell.path "deployment.yaml"
    shell.write(deployment, (shell.read "deploy/deployment.yaml":gsub("registry.invalid/moonloop", "moonloop")
      :gsub("%-%-leader%-elect", mode)))
    kubectl(("-n %s apply -f deploy/rbac.yaml -f deploy/sharded/rbac.yaml -f %s"):format(SYSTEM, deployment))
    wait.till("both replicas to be ready", 60, function()
      local found = server:get(("/apis/apps/v1/namespaces/%s/deployments/moonloop"):format(SYSTEM))
      local status, pods = found.status or {}, must("GET", HOSTS).items
      return status.readyReplicas == 2 and status.updatedReplicas == 2 and #pods == 2, cjson.encode(status)
    end)
  end

  setup(function()
    if lacks then
      return
    end
    server = dev.start { "--authorization-mode", "RBAC" }
    kubectl "apply -f crds/at.yaml -f deploy/namespace.yaml"
    kubectl(("-n %s create configmap moonloop-scripts --from-file=reconcilers/cnat.lua"):format(SYSTEM))
    deploy "--leader-elect"
    for _, name in ipairs { "askers", "shop" } do
      must("POST", "/api/v1/namespaces", { apiVersion = "v1", kind = "Namespace", metadata = { name = name } })
    end
    user("one", true, "shop")
    user("all", true, true)
    user("none", false, true)
    for _, ns in ipairs { "shop", "default" } do
      must("POST", ATS:format(ns), at "a")
      till_done(ns, "a")
    end
  end)

  teardown(dev.stop_all)

  local asked = dev.it_unless(lacks, it, function(why) pending(why) end)

  asked("tells who may list everything how each replica is", function()
    local text = ask("all", "status")
    assert.equal(2, select(2, text:gsub("\npod moonloop%-", "", 1)) + select(2, text:gsub("^pod moonloop%-", "")))
    assert.equal(2, select(2, text:gsub("\ncnat +%x+ +At +2 ", "")))
    assert.matches("ready, reconciles", text, 1, true)
    assert.matches("ready, stands by: another replica leads", text, 1, true)
    assert.is_nil(text:find("not shown", 1, true))
  end)

  asked("answers for the object by the replica that acts for it", function()
    local answer = cjson.decode(ask("all", "why", "At", "default/a", "-o", "json"))
    assert.is_true(answer.acts)
    local lease = must("GET", ("/apis/coordination.k8s.io/v1/namespaces/%s/leases/moonloop"):format(SYSTEM))
    assert.equal(1, lease.spec.holderIdentity:find(answer.pod, 1, true))
    assert.matches("create Pod default/a-pod, by cnat for default/a, cnat.lua:", ask("all", "why", "pods",
      "default/a-pod"), 1, true)
    for line in ask("all", "status", "-o", "json"):gmatch "[^\n]+" do
      local status = cjson.decode(line)
      local one = cjson.decode(ask("all", "why", "At", "default/a", "-o", "json", "--pod", status.pod))
      assert.same({ status.pod, status.leads }, { one.pod, one.acts })
    end
  end)

  asked("tells of one namespace to those who may read there", function()
    assert.matches("create Pod shop/a-pod, by cnat for shop/a", ask("one", "why", "At", "shop/a"), 1, true)
    local text = ask("one", "status")
    assert.matches("1 controller is not shown: you may not list ats." .. GROUP, text, 1, true)
    assert.is_nil(text:find("\ncnat ", 1, true))
    local refused = command("one", "why", "At", "default/a")
    assert.same({ 3, "" }, { refused.code, refused.out })
    assert.matches("you may not get ats." .. GROUP .. " in namespace default, by the name a", refused.err, 1, true)
    local unknown = command("one", "why", "Node", "a")
    assert.matches("no script of this host has the kind Node", unknown.err, 1, true)
  end)

  asked("is traced as far as the asker may list", function()
    local one = host.spawn(words_of("one", { "trace", "-o", "json", "--for", "60" }), { name = "trace-one" })
    local all = host.spawn(words_of("all", { "trace", "--for", "60" }), { name = "trace-all" })
    wait.till("the trace to begin", 20, function()
      return select(2, all:stderr():gsub("is traced; Ctrl%-C ends it", "")) == 2, all:stderr()
    end)
    must("POST", ATS:format "shop", at "first") -- until the trace of the other user has begun, too
    wait.till("the trace of shop", 20, function()
      return (shell.read(one.files .. ".log") or ""):find("shop/", 1, true), one:stderr()
    end)
    must("POST", ATS:format "default", at "hidden")
    till_done("default", "hidden")
    must("POST", ATS:format "shop", at "shown")
    for _, trace in ipairs { one, all } do
      wait.till("the last runs to be traced", 20, function()
        return (shell.read(trace.files .. ".log") or ""):find("shop/shown", 1, true), trace:stderr()
      end)
    end
    assert.is_nil(shell.read(one.files .. ".log"):find("hidden", 1, true))
    assert.matches("default/hidden", shell.read(all.files .. ".log"), 1, true)
    assert.matches("you may not list ats." .. GROUP .. " in namespace default", one:stderr(), 1, true)
    for line in shell.read(one.files .. ".log"):gmatch "[^\n]+\n" do
      assert.matches("^moonloop%-", cjson.decode(line).pod)
    end
    for _, trace in ipairs { one, all } do
      trace:kill()
    end
  end)

  asked("is not reached by those who may not forward its port", function()
    local refused = command("none", "status")
    assert.equal(3, refused.code)
    assert.matches('cannot get resource "pods/portforward"', refused.err, 1, true)
    local stranger = host.command { "status", "--kubeconfig", kubeconfig_of("stranger", "no-such-token") }
    assert.equal(3, stranger.code)
    assert.matches("Unauthorized", stranger.err)
  end)

  asked("is shown a token of the ServiceAccount that is named, with its rights", function()
    users.admin = { kubeconfig = server.kubeconfig }
    assert.is_nil(ask("admin", "status"):find("not shown", 1, true))
    assert.matches("1 controller is not shown", ask("admin", "status", "--token-of", "askers/one"), 1, true)
    local wrong = command("admin", "status", "--token-of", "askers")
    assert.same({ 2, "moonloop status: --token-of askers: expected NAMESPACE/SERVICEACCOUNT\n" },
      { wrong.code, wrong.err })
  end)

  asked("is shown the token of a file, and that of a plugin", function()
    local file, plugin = shell.path "token", shell.path "plugin"
    shell.write(file, users.one.token .. "\n")
    shell.write(plugin, ("#!/bin/sh\necho '%s'\n"):format(cjson.encode {
      apiVersion = "client.authentication.k8s.io/v1", kind = "ExecCredential", status = { token = users.one.token },
    }))
    shell.must("chmod +x " .. plugin)
    local exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: %s, interactiveMode: Never}"
    for name, shows in pairs { file = "tokenFile: " .. file, plugin = exec:format(plugin) } do
      local path = shell.path("kubeconfig-" .. name)
      shell.write(path, (shell.read(server.kubeconfig):gsub("token: %S+", shows)))
      users[name] = { kubeconfig = path }
      assert.matches("1 controller is not shown", ask(name, "status"), 1, true)
    end
  end)

  asked("says what its Deployment lacks, and where no host is", function()
    must("POST", ("/api/v1/namespaces/%s/pods"):format(SYSTEM), {
      apiVersion = "v1", kind = "Pod",
      metadata = { name = "plain", labels = { ["app.kubernetes.io/name"] = "moonloop" } },
      spec = { terminationGracePeriodSeconds = 1,
        containers = { { name = "c", image = "busybox", command = { "sleep", "600" } } } },
    })
    wait.till("the pod to run", 20, function()
      local pod = server:get(("/api/v1/namespaces/%s/pods/plain"):format(SYSTEM))
      return pod.status.phase == "Running", pod.status.phase
    end)
    assert.matches("its Deployment needs the argument --inspect-bind-address=127.0.0.1:8082",
      command("all", "status", "--pod", "plain").err, 1, true)
    assert.matches("^pod moonloop%-", ask("all", "status")) -- of the others
    must("DELETE", ("/api/v1/namespaces/%s/pods/plain"):format(SYSTEM))
    assert.matches('pods "nobody" not found', command("all", "status", "--pod", "nobody").err, 1, true)
    users.admin = { kubeconfig = server.kubeconfig }
    assert.matches("no pod with the label app.kubernetes.io/name=moonloop runs in namespace shop",
      command("admin", "status", "--namespace", "shop").err, 1, true)
    assert.matches("--pid is for a host on this machine", command("all", "status", "--pid", "1").err, 1, true)
  end)

  -- The one in its place may lead as well as the one that stood by.
  asked("is traced on, with the replica that comes in place of one that ended", function()
    local leader
    for line in ask("all", "status", "-o", "json"):gmatch "[^\n]+" do
      local status = cjson.decode(line)
      leader = status.leads and status.pod or leader
    end
    local trace = host.spawn(words_of("all", { "trace", "--for", "120" }), { name = "trace-on" })
    wait.till("the trace to begin", 20, function()
      return select(2, trace:stderr():gsub("is traced; Ctrl%-C ends it", "")) == 2, trace:stderr()
    end)
    kubectl(("-n %s delete pod %s --wait=false"):format(SYSTEM, leader))
    wait.till("the end of the leader to be told", 60, function()
      return trace:stderr():find("pod " .. leader .. " is traced no longer", 1, true), trace:stderr()
    end)
    wait.till("the one in its place to be traced", 60, function()
      return select(2, trace:stderr():gsub("is traced; Ctrl%-C ends it", "")) == 3, trace:stderr()
    end)
    must("POST", ATS:format "shop", at "after")
    till_done("shop", "after")
    wait.till("the run of the one that leads", 20, function()
      return (shell.read(trace.files .. ".log") or ""):find("shop/after", 1, true), trace:stderr()
    end)
    assert.is_nil(trace:exit_code())
    trace:kill()
  end)

  asked("answers for the object by the member of a shard group that has it", function()
    deploy "--shard"
    local acting
    wait.till("both members to have a share", 30, function()
      local count, pods = 0, {}
      acting = {}
      for i = 1, 40 do -- their names are random: that one has the first forty does not happen
        local name = "s" .. i
        acting[name] = {}
        for line in ask("all", "status", "-o", "json"):gmatch "[^\n]+" do
          local pod = cjson.decode(line).pod
          if cjson.decode(ask("all", "why", "At", "shop/" .. name, "-o", "json", "--pod", pod)).acts then
            table.insert(acting[name], pod)
            count = count + (pods[pod] and 0 or 1)
            pods[pod] = true
          end
        end
        if #acting[name] ~= 1 then
          return false, cjson.encode(acting)
        end
        if count == 2 then
          break
        end
      end
      return count == 2, cjson.encode(acting)
    end)
    for name, list in pairs(acting) do
      assert.equal(list[1], cjson.decode(ask("all", "why", "At", "shop/" .. name, "-o", "json")).pod)
    end
  end)

  asked("writes no token into its log", function()
    for _, pod in ipairs(must("GET", HOSTS).items) do
      local log = kubectl(("-n %s logs %s"):format(SYSTEM, pod.metadata.name))
      assert.matches("serving questions", log, 1, true)
      for _, each in pairs(users) do
        assert.is_nil(each.token and log:find(each.token, 1, true))
      end
    end
  end)
end)


describe("the port of questions, on a real control plane", function()
  local lacks = not cluster.controlplane and "the embedded server is asked above" or nil
  local ns, one, port

  local function must(method, path, body)
    local answer, code = api.request(method, path, body)
    if code >= 300 then
      error(("%s %s: %s %s"):format(method, path, code, answer.message), 2)
    end
    return answer
  end

  local function ask(path, token)
    local text, code = http.request {
      url = ("http://127.0.0.1:%d%s"):format(port, path), headers = { authorization = token and "Bearer " .. token },
    }
    return code, cjson.decode(text) or text
  end

  -- The user of a kubeconfig who may do everything, by a certificate of the control plane's authority.
  local function client_certificate()
    local ca, own = cluster.controlplane .. "/ca", shell.path "client"
    shell.must(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj "
      .. "/O=system:masters/CN=e2e -addext extendedKeyUsage=clientAuth -CA %s.crt -CAkey %s.key -keyout %s.key -out "
      .. "%s.crt 2>&1"):format(ca, ca, own, own))
    return { ["client-certificate"] = own .. ".crt", ["client-key"] = own .. ".key" }
  end

  before_each(function()
    if not lacks then
      ns = cluster.namespace "inspect"
      one = host.start { name = "inspect", scripts = "reconcilers/cnat.lua", namespaces = ns,
        args = { "--inspect-bind-address", "127.0.0.1:0" } }
      one:till_ready()
      port = math.tointeger(one:till_log { msg = "serving questions" }.inspect_port)
      cluster.at(ns, "a", cluster.PAST)
      cluster.till_phase(ns, "a", "DONE")
    end
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local asked = dev.it_unless(lacks, it, function(why) pending(why) end)

  asked("answers as the rights of the token allow", function()
    local reader, stranger = account(must, ns, "reader"), account(must, ns, "stranger")
    grant(must, ns .. "/reader", READS, ns)
    local code, answer = ask("/why/At/" .. ns .. "/a", reader)
    assert.equal(200, code, cjson.encode(answer))
    assert.is_true(answer.found)
    assert.is_true(answer.acts)
    assert.is_nil(answer.not_shown)
    assert.equal("create", answer.writes[1].verb)
    code, answer = ask("/why/At/" .. ns .. "/a", stranger)
    assert.equal(403, code)
    assert.matches("you may not get ats." .. GROUP .. " in namespace " .. ns, answer, 1, true)
    code, answer = ask("/trace/0", stranger)
    assert.equal(200, code)
    assert.same({}, answer.entries)
    assert.matches("are not shown: you may not list ats." .. GROUP, table.concat(answer.not_shown), 1, true)
    assert.is_true(#select(2, ask("/trace/0", reader)).entries > 0)
    assert.equal(401, (ask "/status"))
    assert.equal(401, (ask("/status", "no-such-token")))
    local status = select(2, ask("/status", reader)) -- the host watches this namespace alone
    assert.equal("cnat", status.controllers[1].controller)
    assert.same({}, select(2, ask("/status", stranger)).controllers)
    for _, token in ipairs { reader, stranger } do
      assert.same({}, one:lines { msg = token })
      assert.is_nil(shell.read(one.files .. ".log"):find(token, 1, true))
    end
  end)

  -- No kubelet is there, but the API server answers our handshake.
  asked("is not reached without the right to forward its port, and without a token", function()
    local path = ("/api/v1/namespaces/%s/pods"):format(ns)
    must("POST", path, {
      apiVersion = "v1", kind = "Pod", metadata = { name = "p", labels = { ["app.kubernetes.io/name"] = "moonloop" } },
      spec = { containers = { { name = "c", image = "moonloop", args = { "--inspect-bind-address=127.0.0.1:1" } } } },
    })
    local _, code = api.request("PATCH", path .. "/p/status", { status = { phase = "Running" } },
      "application/merge-patch+json")
    assert.equal(200, code)
    local function status(...)
      local result = host.command { "status", "--namespace", ns, ... }
      assert.equal(3, result.code, result.err)
      return result.err
    end
    local by_certificate = kubeconfig.write { user = client_certificate() }
    assert.matches("the kubeconfig has no token that the host could check",
      status("--kubeconfig", by_certificate), 1, true)
    account(must, ns, "reader")
    assert.matches('"fake-node" not found', status("--kubeconfig", by_certificate, "--token-of", ns .. "/reader"), 1,
      true)
    local token = account(must, ns, "lister")
    grant(must, ns .. "/lister", READS, ns)
    local lister = kubeconfig.write { user = { token = token } }
    assert.matches('cannot get resource "pods/portforward"', status("--kubeconfig", lister), 1, true)
  end)

  asked("forgets a right within ten seconds after it was taken away", function()
    local reader = account(must, ns, "reader")
    grant(must, ns .. "/reader", READS, ns)
    assert.equal(200, (ask("/why/At/" .. ns .. "/a", reader)))
    must("DELETE", ("%s/namespaces/%s/rolebindings/%s-reader-%s"):format(RBAC, ns, ns, ns))
    wait.till("the right to be gone", 20, function()
      local code = ask("/why/At/" .. ns .. "/a", reader)
      return code == 403, code
    end)
  end)
end)
