-- How the host finds the API server and shows who it is, and what it watches there.
local api = require "spec.e2e.support.api"
local audit = require "spec.e2e.support.audit"
local authority = require "spec.e2e.support.authority"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubeconfig = require "spec.e2e.support.kubeconfig"
local kubectl = require "spec.e2e.support.kubectl"
local probe = require "spec.e2e.support.probe"
local proxy = require "spec.e2e.support.proxy"
local scripts = require "spec.e2e.support.scripts"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local own = cluster.controlplane and it or pending -- the embedded server takes no client certificates
local faulty = proxy.available and it or pending

describe("The host", function()
  local ns

  before_each(function()
    ns = cluster.namespace "connection"
  end)

  after_each(function()
    host.stop_all()
    cluster.forget(ns)
  end)

  local function start(opts)
    opts.name, opts.scripts = "connection", opts.scripts or "reconcilers/cnat.lua"
    opts.namespaces = opts.namespaces or ns
    return host.start(opts)
  end

  it("takes --kubeconfig before KUBECONFIG", function()
    start({ kubeconfig = cluster.kubeconfig, env = { KUBECONFIG = "/nowhere" } }):till_ready()
    assert.equal("busybox", probe.image(ns))
  end)

  it("takes a context by its name", function()
    local path = kubeconfig.write { context = "other" }
    start({ kubeconfig = path, args = { "--context", "other" } }):till_ready()
    assert.equal("busybox", probe.image(ns))
  end)

  it("joins the files of a KUBECONFIG list", function()
    start({ env = { KUBECONFIG = kubeconfig.write_two() } }):till_ready()
    assert.equal("busybox", probe.image(ns))
  end)

  it("finds ~/.kube/config", function()
    local home = shell.folder "home"
    shell.must(("mkdir %s/.kube && cp %s %s/.kube/config"):format(home, kubeconfig.write {}, home))
    start({ env = { KUBECONFIG = false, HOME = home } }):till_ready()
    assert.equal("busybox", probe.image(ns))
  end)

  own("shows a client certificate from files", function()
    local mark = audit.mark()
    local path = kubeconfig.write {
      user = {
        ["client-certificate"] = cluster.controlplane .. "/client.crt",
        ["client-key"] = cluster.controlplane .. "/client.key",
      },
    }
    start({ kubeconfig = path }):till_ready()
    assert.equal("busybox", probe.image(ns))
    local creates = audit.since(mark, { ns = ns, resource = "pods", verb = "create" })
    assert.equal("cert-admin", creates[1].user.username)
  end)

  own("shows a client certificate that stands in the kubeconfig", function()
    local function base64(name)
      return shell.must("base64 -w 0 " .. shell.quote(cluster.controlplane .. "/" .. name))
    end
    local path = kubeconfig.write {
      user = { ["client-certificate-data"] = base64 "client.crt", ["client-key-data"] = base64 "client.key" },
    }
    start({ kubeconfig = path }):till_ready()
    assert.equal("busybox", probe.image(ns))
  end)

  faulty("reads a token from a file", function()
    local path = shell.path "token"
    shell.write(path, kubeconfig.token() .. "\n")
    start({ kubeconfig = kubeconfig.write { user = { tokenFile = path } } }):till_ready()
    assert.equal("busybox", probe.image(ns))
  end)

  it("ends with exit code 3 and a line that says why when its token is not known", function()
    local path = kubeconfig.write { user = { token = "expired-or-made-up" } }
    local begun = wait.now()
    local moonloop = start { kubeconfig = path }
    assert.equal(3, moonloop:till_exit(10))
    assert.is_true(wait.now() - begun < wait.patient(5))
    assert.matches("^moonloop run: cannot use the API server https://[^\n]+Unauthorized[^\n]*\n$", moonloop:stderr())
    assert.is_truthy(moonloop:stderr():find(path, 1, true))
  end)

  it("ends with exit code 3 when the server's certificate is of another authority", function()
    local moonloop = start {
      kubeconfig = kubeconfig.write {
        cluster = { server = kubeconfig.server(), ["certificate-authority"] = authority.new("other").files .. ".crt" },
      },
    }
    assert.equal(3, moonloop:till_exit(10))
    assert.matches("^moonloop run: cannot use the API server https://[^\n]+certificate[^\n]*\n$", moonloop:stderr())
  end)

  faulty("waits for a server that starts with it", function()
    local faults = proxy.open "connection"
    faults:down()
    local moonloop = start { kubeconfig = faults.kubeconfig }
    moonloop:till_log { msg = "the API server does not answer yet" }
    local _, code = moonloop:get "/readyz"
    assert.equal(500, code)
    faults:up()
    moonloop:till_ready()
    assert.equal("busybox", probe.image(ns))
  end)

  -- A forward proxy that shows this certificate, and the kubeconfig of the server behind it; `ca` is a file with the
  -- authorities of both.
  local function tunnelled(pair, ca)
    local tunnels = proxy.open "tunnels"
    tunnels:show(pair)
    return tunnels, kubeconfig.write {
      cluster = { server = kubeconfig.server(), ["proxy-url"] = tunnels.url, ["certificate-authority"] = ca },
    }
  end

  local function authorities(...)
    local path = shell.path "ca"
    shell.write(path, table.concat { kubeconfig.authority(), ... })
    return path
  end

  -- It says what it waits for, and no way leads it past that.
  local function waits(moonloop, why)
    cluster.at(ns, "at-1", cluster.PAST)
    moonloop:till_log { msg = "cannot list or watch", error = why }
    wait.holds("an untouched At", 2, function()
      return not api.get("At", ns, "at-1").status, "a status"
    end)
    assert.is_nil(moonloop:exit_code())
  end

  faulty("goes through a proxy that speaks TLS, and no other way", function()
    local signer = authority.new "proxy"
    local tunnels, path = tunnelled(signer:sign(), authorities(signer.certificate))
    local moonloop = start { kubeconfig = path }
    moonloop:till_ready()
    assert.equal("busybox", probe.image(ns))
    local server = kubeconfig.server():match "^https://(.+)$"
    assert.is_true(#tunnels:log() > 0)
    for _, request in ipairs(tunnels:log()) do
      assert.same({ "CONNECT", server, 200 }, { request.method, request.path, request.status })
    end
    tunnels:down()
    waits(moonloop, "connect to the proxy 127.0.0.1")
    tunnels:up()
    cluster.till_phase(ns, "at-1", "DONE", 40)
  end)

  faulty("ends with exit code 3 when its proxy is not who it should be", function()
    local known, unknown = authority.new "known", authority.new "unknown"
    local tunnels, path = tunnelled(unknown:sign(), authorities(known.certificate))
    local function ends(with)
      local moonloop = start { kubeconfig = path }
      assert.equal(3, moonloop:till_exit(10))
      assert.matches("^moonloop run: cannot use the API server https://[^\n]+TLS to the proxy " .. with .. "[^\n]*\n$",
        moonloop:stderr())
    end
    ends "[^\n]+issuer[^\n]+check certificate%-authority"
    tunnels:show(known:sign "DNS:proxy.test")
    ends "[^\n]+subject name"
    assert.same({}, tunnels:log())
  end)

  faulty("takes no way past a proxy that changes its authority, and goes on when that is known", function()
    local old, new = authority.new "old", authority.new "new"
    local ca = authorities(old.certificate)
    local tunnels, path = tunnelled(old:sign(), ca)
    local moonloop = start { kubeconfig = path }
    moonloop:till_ready()
    tunnels:show(new:sign())
    tunnels:clear()
    waits(moonloop, "TLS to the proxy 127.0.0.1")
    assert.same({}, tunnels:log())
    shell.save(ca, kubeconfig.authority() .. old.certificate .. new.certificate)
    cluster.till_phase(ns, "at-1", "DONE", 40)
  end)

  faulty("waits for a proxy that turns it away, and says that it is the proxy", function()
    local signer = authority.new "proxy"
    local tunnels, path = tunnelled(signer:sign(), authorities(signer.certificate))
    tunnels:add { { method = "CONNECT", action = "status", code = 503 } }
    local moonloop = start { kubeconfig = path }
    local line = moonloop:till_log { msg = "the API server does not answer yet" }
    assert.matches("the proxy 127%.0%.0%.1:%d+ .*503", line.error)
    tunnels:clear()
    moonloop:till_ready()
  end)

  it("touches nothing outside of its --namespace list", function()
    local second, other = cluster.namespace "second", cluster.namespace "other"
    finally(function()
      host.stop_all()
      cluster.forget(second)
      cluster.forget(other)
    end)
    for _, where in ipairs { ns, second, other } do
      cluster.at(where, "at-1", cluster.PAST)
    end
    start({ namespaces = { ns, second } }):till_ready()
    cluster.till_phase(ns, "at-1", "DONE")
    cluster.till_phase(second, "at-1", "DONE")
    wait.holds("an untouched At elsewhere", 1, function()
      return not api.get("At", other, "at-1").status, "a status"
    end)
    assert.is_nil(api.get("Pod", other, "at-1-pod"))
  end)

  it("waits for a kind that is not installed, says so, and goes on when it appears", function()
    kubectl.run("delete", "crd", "gadgets.e2e.moonloop.dev", "--ignore-not-found")
    finally(function()
      host.stop_all()
      kubectl.run("delete", "crd", "gadgets.e2e.moonloop.dev", "--ignore-not-found", "--wait=false")
    end)
    local gadgets = scripts.widgets:gsub("Widget", "Gadget"):gsub("widget", "gadget")
    local moonloop = start { scripts = scripts.folder { ["cnat.lua"] = scripts.cnat, ["gadgets.lua"] = gadgets } }
    moonloop:till_log { level = "warn", msg = "kind is not installed; waiting for it", kind = "Gadget" }
    assert.equal("busybox", probe.image(ns))
    local why, code
    wait.till("the other script to be enough", 20, function()
      why, code = moonloop:get "/readyz?verbose"
      return code == 200, why
    end)
    assert.matches("gadgets%.lua", why)

    cluster.install("spec/e2e/fixtures/gadgets.yaml", "gadgets.e2e.moonloop.dev")
    api.create("Gadget", ns, { metadata = { name = "first" }, spec = { say = "hello" } })
    wait.till("the Gadget's status", 10, function()
      local status = api.get("Gadget", ns, "first").status
      return status and status.said == "hello"
    end)
    moonloop:till_ready()
    local tries = 0 -- it is said again when they have doubled
    for _, line in ipairs(moonloop:lines { msg = "kind is not installed", kind = "Gadget" }) do
      assert.is_true(line.failures >= 2 * tries, line.failures)
      tries = line.failures
    end
  end)
end)
