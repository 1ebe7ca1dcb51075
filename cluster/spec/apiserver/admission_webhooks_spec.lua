local host = require "cluster.host"
local testserver = require "testserver"
local testwebhooks = require "testwebhooks"

local MAPS = "/api/v1/namespaces/default/configmaps"
local MERGE = { ["content-type"] = "application/merge-patch+json" }


describe("a request that waits for a webhook", function()
  local server, asked

  before_each(function()
    server, asked = testserver.new(), {}
    testwebhooks.install(function(request)
      asked[#asked + 1] = request
      coroutine.yield()
      return { allowed = true }
    end)
  end)

  after_each(testwebhooks.remove)

  -- Writes at once: the server does not ask the webhooks about it.
  local function write(method, path, body)
    local kind = method == "PATCH" and MERGE["content-type"] or nil
    local code, answer = server.server:call(method, path, body, { skips_admission = true, content_type = kind })
    assert.truthy(code < 300, answer.message)
  end

  it("is answered when the webhook has answered", function()
    testwebhooks.configure(server, "validating")
    local sent = testwebhooks.send(server, "POST", MAPS, { metadata = { name = "a" } })
    assert.is_nil(sent.reply)
    assert.equal(404, (server:call("GET", MAPS .. "/a")))
    sent.go_on()
    assert.equal(201, sent.reply.code)
    assert.equal(200, (server:call("GET", MAPS .. "/a")))
  end)

  it("does not overwrite what came meanwhile", function()
    server:configmap("a", { data = { first = "1" } })
    testwebhooks.configure(server, "validating")
    local sent = testwebhooks.send(server, "PATCH", MAPS .. "/a", { data = { mine = "2" } }, MERGE)
    write("PATCH", MAPS .. "/a", { data = { others = "3" } })
    sent.go_on()
    assert.is_nil(sent.reply, "it begins again, and asks again")
    sent.go_on()
    assert.equal(200, sent.reply.code)
    assert.same({ first = "1", mine = "2", others = "3" }, server:must("GET", MAPS .. "/a").data)
    assert.same({ first = "1", mine = "2", others = "3" }, asked[2].object.data)
  end)

  it("gives up when the object changes every time", function()
    server:configmap "a"
    testwebhooks.configure(server, "mutating")
    local sent, count = testwebhooks.send(server, "PATCH", MAPS .. "/a", { data = { mine = "2" } }, MERGE), 0
    while not sent.reply do
      count = count + 1
      write("PATCH", MAPS .. "/a", { data = { others = tostring(count) } })
      sent.go_on()
    end
    assert.equal(409, sent.reply.code)
    assert.equal(5, count)
  end)

  it("is refused when its resourceVersion is of the past", function()
    local version = server:configmap("a").metadata.resourceVersion
    testwebhooks.configure(server, "validating")
    local sent = testwebhooks.send(server, "PUT", MAPS .. "/a",
      { metadata = { name = "a", resourceVersion = version } })
    write("PATCH", MAPS .. "/a", { data = { others = "3" } })
    sent.go_on()
    assert.equal(409, sent.reply.code)
  end)

  it("creates nothing twice, and nothing in a namespace that has gone", function()
    testwebhooks.configure(server, "validating")
    local sent = testwebhooks.send(server, "POST", MAPS, { metadata = { name = "a" } })
    write("POST", MAPS, { metadata = { name = "a" } })
    sent.go_on()
    assert.equal(409, sent.reply.code)
    write("POST", "/api/v1/namespaces", { metadata = { name = "short" } })
    sent = testwebhooks.send(server, "POST", "/api/v1/namespaces/short/configmaps", { metadata = { name = "a" } })
    write("DELETE", "/api/v1/namespaces/short")
    sent.go_on()
    assert.equal(403, sent.reply.code)
  end)

  it("deletes what is there, or says that it has gone", function()
    server:configmap "a"
    server:configmap "b"
    testwebhooks.configure(server, "validating")
    local sent = testwebhooks.send(server, "DELETE", MAPS .. "/a")
    write("PATCH", MAPS .. "/a", { metadata = { finalizers = { "example.com/wait" } } })
    sent.go_on()
    sent.go_on()
    assert.equal(200, sent.reply.code)
    assert.truthy(server:must("GET", MAPS .. "/a").metadata.deletionTimestamp)
    sent = testwebhooks.send(server, "DELETE", MAPS .. "/b")
    write("DELETE", MAPS .. "/b")
    sent.go_on()
    assert.equal(404, sent.reply.code)
  end)

  it("writes nothing for a client that has gone", function()
    testwebhooks.configure(server, "validating")
    local reply = {}
    local run = coroutine.create(function()
      server.server:handle({ method = "POST", path = MAPS, query = "",
        headers = { ["content-type"] = "application/json" }, body = '{"metadata":{"name":"a"}}' }, reply)
    end)
    assert(coroutine.resume(run))
    reply.on_close()
    assert(coroutine.resume(run))
    assert.equal("dead", coroutine.status(run))
    assert.equal(404, (server:call("GET", MAPS .. "/a")))
  end)
end)


describe("a webhook", function()
  local server, asked, answer

  before_each(function()
    server, asked = testserver.new(), {}
    answer = function() return { allowed = true } end
    testwebhooks.install(function(request, url, name)
      asked[#asked + 1] = { request = request, url = url, host = name }
      return answer(request)
    end)
  end)

  after_each(testwebhooks.remove)

  it("changes objects, which get the defaults of their kind", function()
    answer = function()
      return testwebhooks.patch {
        { op = "add", path = "/spec/containers/-", value = { name = "sidecar", image = "s" } },
      }
    end
    testwebhooks.configure(server, "mutating", {
      rules = { { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "CREATE" }, resources = { "pods" } } },
    })
    local spec = { containers = { { name = "c", image = "i" } } }
    local pod = server:must("POST", "/api/v1/namespaces/default/pods", { metadata = { name = "p" }, spec = spec })
    assert.equal("sidecar", pod.spec.containers[2].name)
    assert.equal("Always", pod.spec.containers[2].imagePullPolicy)
  end)

  it("is asked as the version that its rules name", function()
    testwebhooks.configure(server, "validating", {
      rules = { {
        apiGroups = { "autoscaling" }, apiVersions = { "v1" }, operations = { "CREATE" },
        resources = { "horizontalpodautoscalers" },
      } },
    })
    local path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    server:must("POST", path, { metadata = { name = "a" },
      spec = { maxReplicas = 2, scaleTargetRef = { apiVersion = "apps/v1", kind = "Deployment", name = "a" } } })
    local request = asked[1].request
    assert.same({ "v1", "v2", "autoscaling/v1" }, { request.kind.version, request.requestKind.version,
      request.object.apiVersion })
  end)

  it("is not asked twice about one object of a version that its rules name", function()
    testwebhooks.configure(server, "validating", { matchPolicy = "Exact" })
    server:configmap "a"
    assert.equal(1, #asked)
  end)

  for given, called in pairs {
    ["https://127.0.0.1:1//check"] = "https://127.0.0.1:1/check?timeout=10s",
    ["https://127.0.0.1:1/a/../check/"] = "https://127.0.0.1:1/check?timeout=10s",
    ["https://127.0.0.1:1"] = "https://127.0.0.1:1/?timeout=10s",
  } do
    it("has its path cleaned: " .. given, function()
      testwebhooks.configure(server, "validating", { clientConfig = { url = given } })
      server:configmap "a"
      assert.equal(called, asked[1].url)
    end)
  end

  it("is reached at a place behind its Service", function()
    server:must("POST", "/api/v1/namespaces/default/services", { metadata = { name = "hooks" },
      spec = { ports = { { name = "web", port = 443 } } } })
    server:must("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", {
      metadata = { name = "hooks-1", labels = { ["kubernetes.io/service-name"] = "hooks" } }, addressType = "IPv4",
      ports = { { name = "web", port = 9443 } }, endpoints = { { addresses = { "10.244.0.9" } } },
    })
    testwebhooks.configure(server, "validating",
      { clientConfig = { service = { name = "hooks", namespace = "default", path = "/check" } }, timeoutSeconds = 3 })
    server:configmap "a"
    assert.equal("https://10.244.0.9:9443/check?timeout=3s", asked[1].url)
    assert.equal("hooks.default.svc:443", asked[1].host)
  end)

  it("says who failed where there is no place behind its Service", function()
    testwebhooks.configure(server, "validating",
      { clientConfig = { service = { name = "hooks", namespace = "default" } } })
    local code, failure = server:call("POST", MAPS, { metadata = { name = "a" } })
    assert.equal(500, code)
    assert.equal('Internal error occurred: failed calling webhook "validating.example.com": failed to call webhook: '
      .. 'Post "https://hooks.default.svc:443/?timeout=10s": service "hooks" not found', failure.message)
  end)

  it("is not asked about configurations of webhooks", function()
    testwebhooks.configure(server, "validating", {
      rules = { { apiGroups = { "*" }, apiVersions = { "*" }, operations = { "*" }, resources = { "*/*" } } },
    })
    answer = function() return { allowed = false } end
    assert.equal(200, (server:call("DELETE",
      "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/validating")))
  end)

  it("fails by its policy in a test, where nothing can be called", function()
    testwebhooks.remove()
    testwebhooks.configure(server, "validating")
    local code, failure = server:call("POST", MAPS, { metadata = { name = "a" } })
    assert.equal(500, code)
    assert.matches("nothing is called in moonloop test", failure.message)
    server:must("PATCH", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/validating",
      { webhooks = { { name = "validating.example.com", failurePolicy = "Ignore" } } },
      { ["content-type"] = "application/strategic-merge-patch+json" })
    server:configmap "a"
  end)

  it("is asked again about what others changed after it, if it wants to be", function()
    local function hook(name, policy)
      return {
        name = name .. ".example.com", clientConfig = { url = "https://127.0.0.1:1/" .. name }, sideEffects = "None",
        rules = { { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "CREATE" },
          resources = { "configmaps" } } },
        admissionReviewVersions = { "v1" }, reinvocationPolicy = policy,
      }
    end
    local last
    testwebhooks.install(function(request, url)
      asked[#asked + 1] = url:match "(%w+)%?"
      last = request.object
      if #asked == 2 then
        return testwebhooks.patch { { op = "add", path = "/data", value = { by = "second" } } }
      end
      return { allowed = true }
    end)
    server:must("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {
      metadata = { name = "three" }, webhooks = { hook("first", "IfNeeded"), hook "second", hook "third" },
    })
    server:configmap "a"
    assert.same({ "first", "second", "third", "first" }, asked)
    assert.same({ by = "second" }, last.data)
  end)

  it("is asked about connections to a pod before they are refused", function()
    answer = function() return { allowed = false, status = { message = "no shell here" } } end
    testwebhooks.configure(server, "validating", {
      rules = {
        { apiGroups = { "" }, apiVersions = { "v1" }, operations = { "CONNECT" }, resources = { "pods/exec" } },
      },
    })
    local pod = "/api/v1/namespaces/default/pods/p/"
    local code, failure = server:call("GET", pod .. "exec?command=rm&command=-rf&stdin=true&tty=0&container=c")
    assert.same({ 400, 'admission webhook "validating.example.com" denied the request: no shell here' },
      { code, failure.message })
    assert.same({ "CONNECT", "PodExecOptions", "exec", "p" }, { asked[1].request.operation, asked[1].request.kind.kind,
      asked[1].request.subResource, asked[1].request.name })
    assert.same({ kind = "PodExecOptions", apiVersion = "v1", command = { "rm", "-rf" }, stdin = true,
      container = "c" }, asked[1].request.object)
    for _, part in ipairs { "attach", "portforward?ports=80", "proxy", "proxy/index.html" } do
      assert.equal(404, (server:call("GET", pod .. part)))
    end
    assert.equal(1, #asked)
  end)

  it("adds warnings and annotations", function()
    answer = function()
      return { allowed = true, warnings = host.json.array { "old" }, auditAnnotations = { key = "value" } }
    end
    local seen
    server.server:audit(function(record) seen = record end)
    testwebhooks.configure(server, "validating")
    local _, _, reply = server:call("POST", MAPS, { metadata = { name = "a" } })
    assert.same({ '299 - "old"' }, { reply.headers.warning or reply.headers.Warning })
    assert.equal("value", seen.annotations["validating.example.com/key"])
  end)

  for name, response in pairs {
    ["no object"] = host.json.array { 1 }, ["of wrong types"] = { allowed = "yes" }, ["a number"] = 5,
    ["with a patch that is no base64"] = { allowed = true, patchType = "JSONPatch", patch = "?" },
    ["with a patch that is no list"] = {
      allowed = true, patchType = "JSONPatch", patch = host.base64.encode '{"a":1}',
    },
    ["with a patch that is no JSON"] = { allowed = true, patchType = "JSONPatch", patch = host.base64.encode "[" },
    ["for another request"] = { allowed = true, uid = "another" },
    ["with warnings of numbers"] = { allowed = false, warnings = { 5 }, status = { code = "x", message = 5 } },
  } do
    it("whose response is " .. name .. " is no mistake of the server's", function()
      package.loaded["cluster.http"] = { client = function()
        return { post = function(_, _, body)
          local uid = host.json.decode(body).request.uid
          if type(response) == "table" and not host.json.is_array(response) then
            response.uid = response.uid or uid
          end
          return 200, "", host.json.encode { apiVersion = "admission.k8s.io/v1", kind = "AdmissionReview",
            response = response }
        end }
      end }
      testwebhooks.configure(server, "mutating")
      local code, failure = server:call("POST", MAPS, { metadata = { name = "a" } })
      assert.truthy(code >= 400, failure.message)
      assert.matches("webhook", failure.message)
      assert.equal(404, (server:call("GET", MAPS .. "/a")))
    end)
  end
end)
