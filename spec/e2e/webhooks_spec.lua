-- Admission webhooks that answer well, badly and not at all: the embedded server does with each what the real one does.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local cjson = require "cjson.safe"
local mime = require "mime"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"
local webhooks = require "spec.e2e.support.webhooks"

local KUBECTL = os.getenv "KUBECTL" or "kubectl"
local KINDS = { mutating = "MutatingWebhookConfiguration", validating = "ValidatingWebhookConfiguration" }
local GROUP = "/apis/admissionregistration.k8s.io/v1/"

local FAILED = 'Internal error occurred: failed calling webhook "NAME": '

-- Webhook, its path, what becomes of a create, and the message: a plain text of it.
local CASES = {
  { "validating", "allow", 201 },
  { "validating", "deny", 403, 'admission webhook "NAME" denied the request: not today' },
  { "validating", "bare", 400, 'admission webhook "NAME" denied the request without explanation' },
  { "mutating", "reason", 400, 'admission webhook "NAME" denied the request: Because' },
  { "mutating", "move", 400, "the namespace of the provided object does not match the namespace sent on the request" },
  { "mutating", "breaks", 500, "Internal error occurred: " },
  { "mutating", "invalid", 422, 'ConfigMap "a" is invalid: data[a b]: Invalid value: "a b": ' },
  { "mutating", "missing", 500, "Internal error occurred: " },
  { "mutating", "untyped", 500, FAILED .. "received invalid webhook response: "
    .. "webhook returned response.patch but not response.patchType" },
  { "mutating", "merge", 500, FAILED },
  { "validating", "first", 500, FAILED .. "received invalid webhook response: "
    .. "validating webhook may not return response.patch" },
  { "validating", "uid", 500, FAILED .. 'received invalid webhook response: expected response.uid="' },
  { "validating", "kind", 500, 'failed calling webhook "NAME": ' },
  { "validating", "absent", 500, FAILED .. "received invalid webhook response: webhook response was absent" },
  { "validating", "garbage", 500, FAILED .. "failed to call webhook: "
    .. "couldn't get version/kind; json parse error: " },
  { "validating", "error", 500, FAILED .. "failed to call webhook: "
    .. 'an error on the server ("unknown") has prevented the request from succeeding' },
  { "validating", "notfound", 500, FAILED .. "failed to call webhook: "
    .. "the server could not find the requested resource" },
  { "validating", "close", 500, FAILED .. 'failed to call webhook: Post "URL": ' },
  { "validating", "hang", 500, FAILED .. 'failed to call webhook: Post "URL": context deadline exceeded' },
}


describe("Admission webhooks", function()
  local server, ns, made

  setup(function()
    server = webhooks.serve "webhooks"
  end)

  teardown(function()
    server.stop()
  end)

  before_each(function()
    ns, made = cluster.namespace "webhooks", {}
  end)

  after_each(function()
    for _, path in ipairs(made) do
      api.request("DELETE", path)
    end
    cluster.forget(ns)
  end)

  local function url(path)
    return ("https://127.0.0.1:%d/%s"):format(server.port, path)
  end

  -- A configuration about ConfigMaps of the spec's namespace, with a hook for each of the paths.
  local function configure(kind, paths, more)
    local hooks = {}
    for i, path in ipairs(paths) do
      hooks[i] = {
        name = path .. ".e2e.moonloop.dev",
        clientConfig = { url = url(path), caBundle = mime.b64(server.authority.certificate) },
        rules = { { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "*" }, resources = { "configmaps" } } },
        namespaceSelector = { matchLabels = { ["kubernetes.io/metadata.name"] = ns } },
        objectSelector = { matchExpressions = { { key = "free", operator = "DoesNotExist" } } },
        sideEffects = "None", admissionReviewVersions = { "v1" }, timeoutSeconds = path == "hang" and 1 or 10,
      }
      for key, value in pairs(more or {}) do
        hooks[i][key] = value
      end
    end
    local path = GROUP .. KINDS[kind]:lower() .. "s"
    local answer, code = api.request("POST", path, { metadata = { name = ns }, webhooks = hooks })
    assert.equal(201, code, answer and answer.message)
    made[#made + 1] = path .. "/" .. ns
  end

  local function create(name, options)
    return api.request("POST", ("/api/v1/namespaces/%s/configmaps%s"):format(ns, options or ""),
      { metadata = { name = name } })
  end

  -- Configurations are heard of after a while: dry runs tell when.
  local function till_called(path)
    os.remove(("%s.%s.json"):format(server.files, path))
    return wait.till("a review at " .. path, 20, function()
      create("a", "?dryRun=All")
      local text = shell.read(("%s.%s.json"):format(server.files, path))
      return text and cjson.decode(text).request
    end)
  end

  for _, case in ipairs(CASES) do
    local kind, path, wanted, message = table.unpack(case)
    it(("that are %s and answer as %s does give %d"):format(kind, path, wanted), function()
      configure(kind, { path })
      till_called(path)
      local answer, code = create "a"
      assert.equal(wanted, code, answer.message)
      if message then
        local shown = ("%s?timeout=%ds"):format(url(path), path == "hang" and 1 or 10)
        message = message:gsub("NAME", path .. ".e2e.moonloop.dev"):gsub("URL", shown)
        assert.truthy(answer.message:find(message, 1, true), answer.message)
      end
      assert.equal(wanted == 201, api.get("ConfigMap", ns, "a") ~= nil)
    end)
  end

  it("are not asked again about what they changed, unless they want to be", function()
    configure("mutating", { "first", "second" }, { reinvocationPolicy = "IfNeeded" })
    till_called "second"
    local answer, code = create "a"
    assert.equal(201, code, answer.message)
    assert.same({ first = "2", second = "2" }, answer.metadata.labels)
    assert.same(answer.metadata.labels, api.get("ConfigMap", ns, "a").metadata.labels)
  end)

  it("make nobody wait but who is asked about", function()
    configure("validating", { "hang" }, { timeoutSeconds = 3 })
    till_called "hang"
    os.remove(server.files .. ".hang.json")
    local said = shell.path "said"
    local command = ("%s create configmap b -n %s"):format(KUBECTL, ns)
    shell.must(("(%s >%s 2>&1; echo over >>%s) >/dev/null 2>&1 &"):format(command, said, said))
    wait.till("the review", 20, function()
      return shell.read(server.files .. ".hang.json")
    end)
    api.create("Secret", ns, { metadata = { name = "meanwhile" } })
    assert.equal("", shell.read(said))
    api.request("DELETE", table.remove(made))
    wait.till("the create to end", 30, function()
      return shell.read(said):find "over"
    end)
    assert.matches("context deadline exceeded", shell.read(said))
  end)

  it("that fail are passed over where their policy says so", function()
    configure("validating", { "garbage", "close", "uid", "error" }, { failurePolicy = "Ignore" })
    till_called "error"
    assert.equal(201, select(2, create "a"))
  end)

  it("get what the request says", function()
    configure("validating", { "allow" })
    local request = till_called "allow"
    assert.same({
      kind = { group = "", version = "v1", kind = "ConfigMap" }, operation = "CREATE", name = "a", namespace = ns,
      resource = { group = "", version = "v1", resource = "configmaps" }, dryRun = true,
      requestKind = { group = "", version = "v1", kind = "ConfigMap" },
      requestResource = { group = "", version = "v1", resource = "configmaps" }, oldObject = cjson.null,
    }, {
      kind = request.kind, operation = request.operation, name = request.name, namespace = request.namespace,
      resource = request.resource, dryRun = request.dryRun, requestKind = request.requestKind,
      requestResource = request.requestResource, oldObject = request.oldObject,
    })
    assert.equal("CreateOptions", request.options.kind)
    assert.equal("meta.k8s.io/v1", request.options.apiVersion)
    assert.same({ "All" }, request.options.dryRun)
    assert.equal("ConfigMap", request.object.kind)
    assert.equal("v1", request.object.apiVersion)
    assert.equal("a", request.object.metadata.name)
    assert.matches("^%x+%-%x+%-%x+%-%x+%-%x+$", request.uid)
    assert.is_string(request.userInfo.username)
    assert.is_nil(request.subResource)
  end)

  it("are asked about updates and deletions with the object before", function()
    configure("validating", { "allow" })
    till_called "allow"
    create "a"
    api.patch("ConfigMap", ns, "a", { data = { a = "b" } })
    local request = cjson.decode(shell.read(server.files .. ".allow.json")).request
    assert.equal("UPDATE", request.operation)
    assert.same({ a = "b" }, request.object.data)
    assert.is_nil(request.oldObject.data)
    api.delete("ConfigMap", ns, "a")
    request = cjson.decode(shell.read(server.files .. ".allow.json")).request
    assert.equal("DELETE", request.operation)
    assert.equal(cjson.null, request.object)
    assert.same({ a = "b" }, request.oldObject.data)
    assert.is_nil(api.get("ConfigMap", ns, "a"))
  end)
end)
