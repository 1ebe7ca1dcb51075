-- Credentials and authorities that change while the host runs: no request fails for longer than one retry.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local authority = require "spec.e2e.support.authority"
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubeconfig = require "spec.e2e.support.kubeconfig"
local kubectl = require "spec.e2e.support.kubectl"
local probe = require "spec.e2e.support.probe"
local proxy = require "spec.e2e.support.proxy"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local own = cluster.controlplane and it or pending -- certificates, impersonation in the audit log
local by_token = kubeconfig.token() and it or pending
local faulty = proxy.available and it or pending

local V1 = "client.authentication.k8s.io/v1"

-- A folder as the kubelet mounts it: files are links into one that is exchanged as a whole.
local function mounted(files)
  local dir = shell.folder "mounted"
  for name in pairs(files) do
    shell.must(("ln -s ..data/%s %s/%s"):format(name, dir, name))
  end
  local count = 0
  local function swap(new)
    count = count + 1
    local version = ("%s/..v%d"):format(dir, count)
    shell.must("mkdir " .. version)
    for name, text in pairs(new) do
      shell.write(version .. "/" .. name, text)
    end
    shell.must(("ln -s ..v%d %s/..tmp && mv -T %s/..tmp %s/..data"):format(count, dir, dir, dir))
  end
  swap(files)
  return dir, swap
end


-- A user with an exec plugin: a shell script beside the kubeconfig, which counts its runs.
local function plugin_user(script, more)
  local dir = shell.folder "plugin"
  local path = dir .. "/login.sh"
  shell.write(path, "#!/bin/sh\necho >>" .. dir .. "/runs\n" .. script)
  shell.must("chmod +x " .. path)
  local exec = { apiVersion = V1, command = path, interactiveMode = "Never" }
  for key, value in pairs(more or {}) do
    exec[key] = value
  end
  return { exec = exec }, function()
    return #(shell.read(dir .. "/runs") or "")
  end, dir
end


local function gives(token, seconds)
  return ([[
printf '{"kind":"ExecCredential","apiVersion":"%s","status":{"token":"%s","expirationTimestamp":"%%s"}}' \
  "$(date -u -d '+%d seconds' +%%Y-%%m-%%dT%%H:%%M:%%SZ)"
]]):format(V1, token, seconds)
end


describe("Credentials", function()
  local ns

  before_each(function()
    ns = cluster.namespace "auth"
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start(opts)
    opts.name, opts.scripts, opts.namespaces = "auth", "reconcilers/cnat.lua", ns
    return host.start(opts)
  end

  -- Ats one after the other for so long; each becomes a pod and ends within the seconds that probe allows.
  local function works(seconds)
    local till = wait.now() + seconds
    repeat
      assert.equal("busybox", probe.image(ns))
    until wait.now() > till
  end

  -- Fails if the log has a warning or an error that the spec does not expect.
  local function assert_quiet(moonloop, expected)
    for _, line in ipairs(moonloop:log()) do
      local bad = line.level == "warn" or line.level == "error"
      if bad and not (expected and line.msg:find(expected, 1, true)) then
        error("the host complains: " .. cjson.encode(line), 2)
      end
    end
  end

  by_token("come from an exec plugin, which is asked again before they expire", function()
    local user, runs = plugin_user(gives(kubeconfig.token(), 6))
    local moonloop = start { kubeconfig = kubeconfig.write { user = user } }
    moonloop:till_ready()
    works(14)
    assert_quiet(moonloop)
    assert.is_true(runs() >= 3 and runs() <= 8, runs() .. " runs")
    local counted = moonloop:metric("rest_client_exec_plugin_call_total", { code = "0", call_status = "no_error" })
    assert.is_true(counted >= 3)
  end)

  by_token("come from a plugin that is told of the cluster and found beside the kubeconfig", function()
    local user, _, dir = plugin_user('echo "$KUBERNETES_EXEC_INFO" >"$OUT"\necho "$1" >>"$OUT"\n'
      .. gives(kubeconfig.token(), 600), { provideClusterInfo = true, args = { "-v" } })
    user.exec.env = { { name = "OUT", value = dir .. "/seen" } }
    local path = kubeconfig.write { user = user }
    shell.must(("cp %s %s/kubeconfig && sed -i 's,%s/login.sh,./login.sh,' %s/kubeconfig"):format(
      path, dir, dir:gsub("/", "\\/"), dir))
    start({ kubeconfig = dir .. "/kubeconfig" }):till_ready()
    local info, argument = shell.read(dir .. "/seen"):match "^([^\n]*)\n(.-)\n"
    info = cjson.decode(info)
    assert.equal("-v", argument)
    assert.equal("ExecCredential", info.kind)
    assert.is_false(info.spec.interactive)
    assert.matches("^https://", info.spec.cluster.server)
    assert.is_string(info.spec.cluster["certificate-authority-data"])
  end)

  by_token("go on to be used while the plugin hangs or fails, until they expire", function()
    local user, runs, dir = plugin_user("[ ! -e $0.hang ] || exec sleep 1000\n[ ! -e $0.fail ] || exit 9\n"
      .. gives(kubeconfig.token(), 10))
    local moonloop = start { kubeconfig = kubeconfig.write { user = user } }
    moonloop:till_ready()
    shell.write(dir .. "/login.sh.fail", "")
    wait.till("a second run", 12, function()
      works(0)
      return runs() >= 2
    end)
    shell.must("rm " .. dir .. "/login.sh.fail")
    works(4)
    assert_quiet(moonloop, "the exec plugin failed")
    moonloop:till_log { msg = "the exec plugin failed", error = "exit code 9" }
    -- One under way at the end does not hold the end up.
    shell.write(dir .. "/login.sh.hang", "")
    local before = runs()
    wait.till("another run", 12, function()
      works(0)
      return runs() > before
    end)
    assert.is_true(moonloop:stop() < wait.patient(3))
  end)

  it("that a plugin does not give end the start with exit code 3 and what to do", function()
    local function ends(user)
      local moonloop = start { kubeconfig = kubeconfig.write { user = user } }
      assert.equal(3, moonloop:till_exit(10))
      return moonloop:stderr()
    end
    assert.matches("^moonloop run: cannot use the API server https://[^\n]+exec plugin [^\n]+login.sh: exit code 4: "
      .. "please log in\n$", ends((plugin_user "echo please log in >&2; exit 4")))
    assert.matches("it wrote no JSON", ends((plugin_user "echo hello")))
    assert.matches("has no status", ends((plugin_user(
      ([[echo '{"kind":"ExecCredential","apiVersion":"%s"}']]):format(V1)))))
    local missing = plugin_user("", { command = "no-such-plugin", installHint = "brew install it" })
    assert.matches("no%-such%-plugin: No such file or directory; install it where moonloop runs[^\n]+brew install it",
      ends(missing))
    assert.matches("interactiveMode Always", ends((plugin_user("", { interactiveMode = "Always" }))))
    assert.matches("auth%-provider was removed", ends { ["auth-provider"] = { name = "gcp" } })
  end)

  -- A token of a service account that lives as long as a Secret does; the API server notices its end within 10 s.
  local function bound_token(secret)
    api.create("Secret", ns, { metadata = { name = secret } })
    return (kubectl.run("create", "token", "operator", "--namespace", ns, "--bound-object-kind", "Secret",
      "--bound-object-name", secret):gsub("%s+$", ""))
  end

  own("of a service account are rotated under the host", function()
    api.create("ServiceAccount", ns, { metadata = { name = "operator" } })
    kubectl.run("create", "clusterrolebinding", ns, "--clusterrole=cluster-admin",
      "--serviceaccount=" .. ns .. ":operator")
    finally(function()
      kubectl.run("delete", "clusterrolebinding", ns)
    end)
    local dir, swap = mounted { token = bound_token "first" }
    local moonloop = start { kubeconfig = kubeconfig.write { user = { tokenFile = dir .. "/token" } } }
    moonloop:till_ready()
    works(0)
    local mark = audit.mark()
    swap { token = bound_token "second" }
    api.delete("Secret", ns, "first")
    works(12) -- the API server knows a token by heart for 10 s
    -- A file that is written in place, and slowly.
    local last = bound_token "third"
    for _, text in ipairs { "", last:sub(1, -2) } do
      swap { token = text }
      works(11)
    end
    swap { token = last }
    api.delete("Secret", ns, "second")
    works(12)
    assert.is_true(#audit.since(mark, { by_moonloop = true, code = 401 }) <= 20)
    for _, line in ipairs(moonloop:log()) do
      local expected = line.logger == "credentials"
      assert.is_true(expected or line.level == "info", cjson.encode(line))
    end
  end)

  -- A certificate of the control plane's authority and its key; `seconds` until it expires.
  local function certificate(name, seconds)
    local dir = shell.folder "ca"
    shell.write(dir .. "/index", "")
    shell.write(dir .. "/cnf", ([[
[ca]
default_ca = own
[own]
database = %s/index
new_certs_dir = %s
certificate = %s/ca.crt
private_key = %s/ca.key
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
x509_extensions = client
[any]
organizationName = optional
commonName = supplied
[client]
extendedKeyUsage = clientAuth
]]):format(dir, dir, cluster.controlplane, cluster.controlplane))
    shell.must(([[exec 2>&1; cd %s && openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
      -subj /O=system:masters/CN=%s -keyout key -out csr && openssl ca -batch -notext -config cnf -in csr -out crt \
      -startdate 20200101000000Z -enddate %s]]):format(dir, name,
        os.date("!%Y%m%d%H%M%SZ", os.time() + seconds)))
    return { ["tls.crt"] = shell.read(dir .. "/crt"), ["tls.key"] = shell.read(dir .. "/key") }
  end

  own("from certificate files are rotated under the host, and an expired one is not used again", function()
    local dir, swap = mounted(certificate("cert-one", 14))
    local begun, mark = wait.now(), audit.mark()
    local moonloop = start {
      kubeconfig = kubeconfig.write {
        user = { ["client-certificate"] = dir .. "/tls.crt", ["client-key"] = dir .. "/tls.key" },
      },
    }
    moonloop:till_ready()
    local two = certificate("cert-two", 86400)
    works(2)
    -- Half of it is no pair: the old one stays.
    swap { ["tls.crt"] = two["tls.crt"], ["tls.key"] = "" }
    works(10 - (wait.now() - begun))
    swap(two)
    works(20 - (wait.now() - begun)) -- through the end of the first
    local users = {}
    for _, event in ipairs(audit.since(mark, { ns = ns, resource = "pods", verb = "create", by_moonloop = true })) do
      users[event.user.username or ""] = (users[event.user.username or ""] or 0) + 1
    end
    assert.is_truthy(users["cert-one"] and users["cert-two"], cjson.encode(users))
    assert.is_true(#moonloop:lines { msg = "a credentials file cannot be used" } <= 1)
    for _, line in ipairs(moonloop:log()) do
      assert.is_true(line.logger == "credentials" or line.level == "info", cjson.encode(line))
    end
  end)

  own("come as certificates from a plugin, too", function()
    local one, two = certificate("plugin-one", 12), certificate("plugin-two", 86400)
    local user, runs, dir = plugin_user "cat $(dirname $0)/answer"
    local function answer(pair)
      shell.save(dir .. "/answer", cjson.encode { kind = "ExecCredential", apiVersion = V1, status = {
        clientCertificateData = pair["tls.crt"], clientKeyData = pair["tls.key"] } })
    end
    answer(one)
    local mark = audit.mark()
    local moonloop = start { kubeconfig = kubeconfig.write { user = user } }
    moonloop:till_ready()
    answer(two)
    works(14)
    assert.equal(2, runs())
    local creates = audit.since(mark, { ns = ns, resource = "pods", verb = "create", by_moonloop = true })
    assert.equal("plugin-one", creates[1].user.username)
    assert.equal("plugin-two", creates[#creates].user.username)
    assert_quiet(moonloop)
    assert.equal(1, moonloop:metric "rest_client_exec_plugin_certificate_rotation_age_count")
    assert.is_true(moonloop:metric "rest_client_exec_plugin_ttl_seconds" > 80000)
  end)

  own("may be those of somebody else", function()
    local now = kubeconfig.token()
    local mark = audit.mark()
    start({ kubeconfig = kubeconfig.write { user = {
      token = now, as = "jane", ["as-groups"] = { "system:masters", "dev" },
      ["as-user-extra"] = { ["acme.com/why"] = { "test" } } } } }):till_ready()
    works(0)
    local creates = audit.since(mark, { ns = ns, resource = "pods", verb = "create", by_moonloop = true })
    local jane = creates[1].impersonatedUser
    assert.equal("jane", jane.username)
    assert.equal("dev", jane.groups[2])
    assert.same({ "test" }, jane.extra["acme.com/why"])
  end)

  faulty("that are refused for a while end nothing, and are not shown in a hot loop", function()
    local faults = proxy.open "auth"
    local moonloop = start { kubeconfig = faults.kubeconfig }
    moonloop:till_ready()
    works(0)
    faults:add { { action = "status", code = 401, reason = "Unauthorized", message = "who are you", name = "refused" } }
    for index = 1, 5 do
      cluster.at(ns, "refused-" .. index, cluster.PAST)
    end
    wait.pass(8)
    assert.is_nil(moonloop:exit_code())
    local hits = faults:hits "refused"
    assert.is_true(hits < 200, hits .. " requests in 8 s")
    faults:clear()
    cluster.till_done(ns, 6, 40)
  end)

  -- A host before a server of that authority's, which is all that its file has.
  local function trusting(known)
    local faults = proxy.open "authority"
    faults:show(known:sign())
    local dir, swap = mounted { ["ca.crt"] = known.certificate }
    local moonloop = start {
      kubeconfig = kubeconfig.write { cluster = { server = faults.url, ["certificate-authority"] = dir .. "/ca.crt" } },
    }
    moonloop:till_ready()
    works(0)
    return moonloop, faults, swap
  end

  faulty("are shown to a server whose authority is exchanged under the host", function()
    local old, new = authority.new "old", authority.new "new"
    local moonloop, faults, swap = trusting(old)
    swap { ["ca.crt"] = old.certificate .. new.certificate }
    works(0)
    faults:show(new:sign())
    works(0)
    swap { ["ca.crt"] = new.certificate }
    wait.till("the new authority alone to be trusted", 12, function()
      works(0)
      return #moonloop:lines { msg = "credentials or CA changed on disk" } == 2
    end)
    works(0)
    assert.same({}, moonloop:complaints "certificate")
    -- The old one is nobody any more.
    faults:show(old:sign())
    moonloop:till_log { level = "warn", error = "certificate verify failed" }
  end)

  faulty("are kept from a server whose authority is not known, till it is", function()
    local known, unknown = authority.new "known", authority.new "unknown"
    local moonloop, faults, swap = trusting(known)
    faults:add { { name = "held", method = "POST", path = "/pods(\\?|$)", action = "delay", ms = 300000 } }
    cluster.at(ns, "held", cluster.PAST)
    wait.till("a write under way", 10, function()
      return faults:hits "held" == 1
    end)
    faults:show(unknown:sign())
    faults:clear()
    cluster.at(ns, "new", cluster.PAST)
    moonloop:till_log { level = "warn", error = "certificate verify failed" }
    wait.holds("no request", 3, function()
      return #faults:log() == 0, cjson.encode(faults:log())
    end)
    assert.is_nil(moonloop:exit_code())
    swap { ["ca.crt"] = known.certificate .. unknown.certificate }
    cluster.till_done(ns, 3, 40)
  end)

  by_token("are shown to any server when the kubeconfig says so, which is said loudly", function()
    local moonloop = start {
      kubeconfig = kubeconfig.write { cluster = { server = kubeconfig.server(), ["insecure-skip-tls-verify"] = true } },
    }
    moonloop:till_ready()
    moonloop:till_log { level = "warn", msg = "INSECURE" }
  end)
end)
