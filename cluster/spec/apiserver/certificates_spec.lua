-- CertificateSigningRequests: who signs them, and for how long; and claims of devices, which nothing acts on.
local host = require "cluster.host"
local testcluster = require "testcluster"
local testserver = require "testserver"

local CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
local MERGE = { ["content-type"] = "application/merge-patch+json" }

-- A request for a key on P-256, O=developers, CN=jane; from `openssl req`.
local REQUEST = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIZk1JR0dBZ0VBTUNReEV6QVJCZ05WQkFvTUNtUmxkbVZzYjNC"
  .. "bGNuTXhEVEFMQmdOVkJBTU1CR3BoYm1VdwpXVEFUQmdjcWhrak9QUUlCQmdncWhrak9QUU1CQndOQ0FBUVY4eEFTcTYzdkx2dFUr"
  .. "aWIrMnBXdGV0NVhRSE1sCmUwVGNHbjJZdVF4WHRvTDY1QVV3cThqQ2Nra2RaQkpzb2tHamRkcktXcVVTTzM1VTFDdzJ1MEZtb0FB"
  .. "d0NnWUkKS29aSXpqMEVBd0lEU0FBd1JRSWdacWloZHN2OFBueDdPZ2M3Q2JPWDI2SWtpb3VyYmcrbFM4aXRlWkdNRUpFQwpJUUND"
  .. "Q0dLMnpyMUJzaUpEaUpQU2pKNHQ3clNicGdDRWg2b0QxQ1ZRTGhQamFRPT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0t"
  .. "LS0tCg=="

-- The same for O=system:nodes, CN=system:node:one.
local NODE_REQUEST =
  "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIc01JR1RBZ0VBTURFeEZUQVRCZ05WQkFvTURITjVjM1JsYlRw"
  .. "dWIyUmxjekVZTUJZR0ExVUVBd3dQYzNsegpkR1Z0T201dlpHVTZiMjVsTUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowREFRY0RR"
  .. "Z0FFaTVvb3NieGNvdGNVCnF0Y3Jib2I1Y0tHTDE0MzJyM3JPMjdDUkQ3Yk9GTkc0UDBNY2NmbyttT3VxK0tlb3JybUVaS0JUQ2sx"
  .. "OHpqek0KYkFVUGd6N0ZSS0FBTUFvR0NDcUdTTTQ5QkFNQ0EwZ0FNRVVDSUN2VFJIRFRoQmRYY3lZZlA0U2JoK0lSQzJDOQoxeUFU"
  .. "M1doWkFDbTNObkRpQWlFQXhNRFlJTUc2cGx5NVE2K2UrMCtjNGd4YTMyY0t3SzFPd0JPTmVMdkZDbE09Ci0tLS0tRU5EIENFUlRJ"
  .. "RklDQVRFIFJFUVVFU1QtLS0tLQo="

local CLIENT, KUBELET = "kubernetes.io/kube-apiserver-client", "kubernetes.io/kube-apiserver-client-kubelet"


describe("A CertificateSigningRequest", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  -- @param more table|nil fields of spec
  local function ask(name, signer, more)
    local spec = { request = REQUEST, signerName = signer, usages = host.json.array { "client auth" } }
    for key, value in pairs(more or {}) do
      spec[key] = value
    end
    cluster:must("POST", CSRS, { metadata = { name = name }, spec = spec })
  end

  local function approve(name)
    cluster:must("PATCH", ("%s/%s/approval"):format(CSRS, name), { status = { conditions = host.json.array {
      { type = "Approved", status = "True", reason = "Known", message = "by hand" },
    } } }, MERGE)
    cluster.settle()
  end

  local function get(name)
    return cluster:must("GET", CSRS .. "/" .. name)
  end

  -- The certificate as bytes, if there is one.
  local function certificate(name)
    local text = get(name).status.certificate
    local pem = text and host.base64.decode(text)
    return pem and host.base64.decode((pem:gsub("%-%-%-%-%-[^\n]*\n", ""):gsub("\n", "")))
  end

  -- From when until when a certificate is good, as its bytes have it.
  local function validity(name)
    return certificate(name):match "(%d%d%d%d%d%d%d%d%d%d%d%dZ).-(%d%d%d%d%d%d%d%d%d%d%d%dZ)"
  end

  local function failure(name)
    local found = testcluster.condition(get(name), "Failed") or {}
    return found.reason, found.message
  end

  it("is signed when it is approved, and not before", function()
    ask("jane", CLIENT)
    cluster.settle()
    assert.same({}, get("jane").status)
    approve "jane"
    local der = certificate "jane"
    assert.equal(1, host.x509.certificates(der))
    assert.truthy(der:find("developers", 1, true))
    assert.truthy(der:find("moonloop-ca", 1, true))
    cluster:must("PATCH", CSRS .. "/jane", { metadata = { labels = { of = "jane" } } }, MERGE)
    cluster.settle()
    assert.equal(der, certificate "jane")
  end)

  it("gets a certificate for the time that it asks for, within bounds", function()
    for name, case in pairs {
      year = { nil, "251231235500Z", "261231235500Z" },
      short = { 600, "251231235500Z", "260101001000Z" },
      almost = { 8 * 3600 - 1, "251231235500Z", "260101075959Z" },
      long = { 8 * 3600, "251231235500Z", "260101075500Z" },
      longest = { 2147483647, "251231235500Z", "261231235500Z" },
    } do
      ask(name, CLIENT, { expirationSeconds = case[1] })
      approve(name)
      local from, till = validity(name)
      assert.same({ name, case[2], case[3] }, { name, from, till })
    end
  end)

  it("fails when its signer does not sign such a thing", function()
    ask("server", CLIENT, { usages = host.json.array { "client auth", "server auth" } })
    ask("none", CLIENT, { usages = host.json.array { "digital signature" } })
    ask("node", "kubernetes.io/kubelet-serving")
    ask("kubelet", KUBELET)
    for name, message in pairs {
      server = "invalid usage for client certificate: server auth",
      none = "missing required usage for client certificate: client auth",
      node = "subject organization is not system:nodes", kubelet = "subject organization is not system:nodes",
    } do
      approve(name)
      assert.same({ "SignerValidationFailure", message }, { failure(name) })
      assert.is_nil(certificate(name))
    end
  end)

  it("of a kubelet for its client is approved where roles allow it", function()
    cluster.server.settings.authorization = "rbac"
    local usages = host.json.array { "client auth", "digital signature" }
    ask("any", KUBELET, { request = NODE_REQUEST, usages = usages })
    cluster.settle()
    assert.equal("Auto approving kubelet client certificate after SubjectAccessReview.",
      testcluster.condition(get "any", "Approved").message)
    assert.truthy(certificate "any")
    local code = cluster:call("POST", CSRS, { metadata = { name = "jane" }, spec = {
      request = NODE_REQUEST, signerName = KUBELET, usages = usages,
    } }, { ["impersonate-user"] = "jane" })
    assert.equal(403, code)
    cluster:must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", { metadata = { name = "asks" }, rules = {
      { apiGroups = { "certificates.k8s.io" }, resources = { "certificatesigningrequests" }, verbs = { "create" } },
    } })
    cluster:must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", { metadata = { name = "asks" },
      roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "ClusterRole", name = "asks" },
      subjects = { { kind = "User", name = "jane", apiGroup = "rbac.authorization.k8s.io" } } })
    cluster:must("POST", CSRS, { metadata = { name = "jane" }, spec = {
      request = NODE_REQUEST, signerName = KUBELET, usages = usages,
    } }, { ["impersonate-user"] = "jane" })
    cluster.settle()
    assert.same({}, get("jane").status)
  end)

  it("is deleted an hour after it was decided on, or a day after it came", function()
    ask("signed", CLIENT)
    ask("waiting", CLIENT)
    approve "signed"
    testserver.pass(cluster, 3599)
    cluster.settle()
    assert.truthy(certificate "signed")
    testserver.pass(cluster, 2)
    cluster.settle()
    assert.equal(404, (cluster:call("GET", CSRS .. "/signed")))
    testserver.pass(cluster, 22 * 3600)
    cluster.settle()
    assert.same({}, get("waiting").status)
    testserver.pass(cluster, 3600)
    cluster.settle()
    assert.equal(404, (cluster:call("GET", CSRS .. "/waiting")))
  end)

  it("is left to its own signer", function()
    ask("ours", "example.com/ours")
    approve "ours"
    assert.is_nil(certificate "ours")
    ask("theirs", "kubernetes.io/own-signer")
    approve "theirs"
    assert.is_nil(certificate "theirs")
  end)

  it("is no text that begins many blocks and ends none", function()
    for _, text in ipairs {
      ("-----BEGIN A-----\n"):rep(50000), ("x-----BEGIN A-----\n"):rep(50000) .. "-----END A-----",
      ("-----BEGIN "):rep(90000), ("-----BEGIN A-----\n-----END B-----\n"):rep(25000),
      ("-----BEGIN A-----\n"):rep(50000) .. "-----END A-----",
    } do
      local code, answer = cluster:call("POST", CSRS, {
        metadata = { name = "long" },
        spec = { request = host.base64.encode(text), signerName = "example.com/ours",
          usages = host.json.array { "client auth" } },
      })
      assert.equal(422, code)
      assert.truthy(answer.message:find("spec.request: Invalid value", 1, true), answer.message:sub(1, 200))
    end
  end)

  it("is not approved and denied at once", function()
    ask("both", "example.com/ours")
    approve "both"
    local code, answer = cluster:call("PATCH", CSRS .. "/both/approval", { status = { conditions = host.json.array {
      { type = "Approved", status = "True" }, { type = "Denied", status = "True" },
    } } }, MERGE)
    assert.equal(422, code)
    assert.truthy(answer.message:find("Approved and Denied conditions are mutually exclusive", 1, true), answer.message)
  end)
end)


describe("A client's certificate", function()
  local REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
  local server

  before_each(function()
    server = testserver.new {
      authorization = "rbac", tokens = { secret = { name = "root", groups = { "system:masters" } } },
    }
  end)

  local function whoami(client, token)
    server.certificate = client
    local code, answer = server:call("POST", REVIEWS, {}, token and { authorization = "Bearer " .. token })
    return code, code < 300 and answer.status.userInfo or answer.message
  end

  it("says who asks, whatever token there is", function()
    local client = { name = "jane", groups = { "developers", "testers" }, sha256 = "abc" }
    for _, token in ipairs { false, "secret", "wrong" } do
      local code, user = whoami(client, token)
      assert.equal(201, code)
      assert.same({ username = "jane", groups = { "developers", "testers", "system:authenticated" },
        extra = { ["authentication.kubernetes.io/credential-id"] = { "X509SHA256=abc" } } }, user)
    end
  end)

  it("that is not good is a reason to refuse, unless a token is", function()
    local client = { problem = "x509: certificate signed by unknown authority" }
    assert.same({ 401, "Unauthorized" }, { whoami(client) })
    assert.same({ 401, "Unauthorized" }, { whoami(client, "wrong") })
    local code, user = whoami(client, "secret")
    assert.equal(201, code)
    assert.equal("root", user.username)
  end)

  it("without a name is nobody's", function()
    server.certificate = { name = "", groups = { "system:masters" }, sha256 = "abc" }
    local code, answer = server:call("GET", "/api/v1/namespaces")
    assert.equal(403, code)
    assert.truthy(answer.message:find('User "system:anonymous"', 1, true), answer.message)
  end)
end)


describe("A pod with a claim of devices", function()
  it("waits, and says why", function()
    local cluster = testcluster.new()
    cluster:must("POST", "/api/v1/namespaces/default/pods", { metadata = { name = "gpu" }, spec = {
      containers = host.json.array { { name = "a", image = "x", command = { "true" } } },
      resourceClaims = host.json.array { { name = "card", resourceClaimName = "card" } },
    } })
    cluster.settle()
    local pod = cluster:must("GET", "/api/v1/namespaces/default/pods/gpu")
    assert.equal("Pending", pod.status.phase)
    local why = testcluster.condition(pod, "PodScheduled").message
    assert.truthy(why:find('resource claim "card" is only stored', 1, true), why)
  end)
end)
