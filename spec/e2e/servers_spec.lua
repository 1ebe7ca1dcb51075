-- Servers that nobody here wrote, as pods of moonloop dev with a network of their own: PostgreSQL and three Redis,
-- asked by their usual clients from another pod, for root and for an ordinary user.
local cluster = require "spec.e2e.support.cluster"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local KUBECTL = os.getenv "KUBECTL" or "kubectl"
local MANIFEST = "spec/e2e/fixtures/servers.yaml"
local NOBODY = 65534
local PROGRAMS = [[PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' :)
  for program in redis-server redis-cli initdb postgres psql; do command -v $program || exit 1; done]]

local function succeeds(line)
  return select(2, shell.run(line .. " >/dev/null 2>&1")) == 0
end

local is_root = shell.run "id -u" == "0\n"
local lacks = cluster.controlplane and "tried with the embedded server"
  or not succeeds(PROGRAMS) and "PostgreSQL or Redis is not installed"
  or not succeeds "unshare -Urmn true" and "this machine has no user namespaces"


-- Files of the machine's: those that a container's root, or its user, could have written if it were not held.
local function machine_files()
  return shell.must "find / -maxdepth 1; find /etc /usr /opt /srv /home -xdev; ls -A ~"
end


-- What this user owns outside of a folder, processes left out.
local function owned_files(user, folder)
  return shell.run(("find / -xdev \\( -path %s -o -path /proc \\) -prune -o -user %d -print 2>/dev/null | sort"):format(
    shell.quote(folder), user))
end


-- A folder that other users may enter, as those of a run may not be, with a copy of the binary.
local function open_folder()
  local folder = shell.must("mktemp -d"):match "%S+"
  shell.must(("chmod 755 %s && cp %s %s/moonloop"):format(folder, shell.quote(host.binary), folder))
  return folder
end


describe("PostgreSQL and Redis in pods", function()
  local folder
  after_each(function()
    dev.stop_all()
    shell.must("rm -rf " .. folder)
  end)

  -- Runs all of the manifest; returns what its client printed.
  local function run(opts)
    local server = dev.start({ "--pod-network", "own" }, opts)
    local function kubectl(...)
      return shell.must(("KUBECONFIG=%s %s"):format(server.kubeconfig, shell.line { KUBECTL, ... }))
    end
    kubectl("apply", "-f", MANIFEST)
    wait.till("the client to end", 60, function()
      local job = server:get "/apis/batch/v1/namespaces/default/jobs/client"
      return (job.status or {}).conditions, server:story()
    end)
    local said = kubectl("logs", "job/client")
    assert.equal("3", kubectl("get", "statefulset", "cache", "-o", "jsonpath={.status.readyReplicas}"))
    assert.equal(0, server:stop())
    return said
  end

  local function asserts_answers(said)
    assert.equal("kept\nOK\nOK\nOK\ncache-2\ncache-1\ncache-0\ncache-0\ncache-0\n", said)
  end

  it("answer at their names, and write nothing outside of the data folder", function()
    folder = open_folder()
    if lacks then
      pending(lacks)
      return
    end
    local before = machine_files()
    asserts_answers(run { env = { TMPDIR = folder } })
    assert.equal(before, machine_files())
  end)

  it("do so for an ordinary user", function()
    folder = open_folder()
    if lacks or not is_root then
      pending(lacks or "all specs are run by an ordinary user")
      return
    end
    local data = folder .. "/data"
    shell.must(("mkdir %s && chown %d %s"):format(data, NOBODY, data))
    local before = owned_files(NOBODY, folder)
    asserts_answers(run {
      binary = folder .. "/moonloop", env = { TMPDIR = data },
      under = ("setpriv --reuid=%d --regid=%d --clear-groups"):format(NOBODY, NOBODY),
    })
    assert.equal(before, owned_files(NOBODY, folder))
  end)
end)
