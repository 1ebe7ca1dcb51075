-- The command of docs/dev.md with all operators of this repository and their samples: PostgreSQL and three Redis run,
-- and another pod gets in, for root and for an ordinary user. When it has ended nothing of it is left.
local cluster = require "spec.e2e.support.cluster"
local dev = require "spec.host.support.dev"
local machine = require "spec.e2e.support.machine"
local operators = require "spec.e2e.support.operators"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local COMMAND = {
  "--scripts", "reconcilers/", "--apply", "crds/", "--apply", "crds/samples/",
  "--allow-http", "https://accounts.example.com",
}
local SERVERS = {
  Database = "/apis/stable.example.com/v1/namespaces/default/databases/my-first-db",
  RedisCluster = "/apis/cache.example.com/v1/namespaces/default/redisclusters/example-rediscluster",
}

local lacks = cluster.controlplane and "tried with the embedded server"
  or not operators.runs "initdb postgres psql redis-server redis-cli"
  and "PostgreSQL or Redis is not installed, or there are no user namespaces"


describe("moonloop dev with all operators and their samples", function()
  local folder

  before_each(function()
    folder = machine.open_folder()
    shell.must(("cp -r reconcilers crds %s && chmod -R a+rX %s"):format(folder, folder))
  end)

  after_each(function()
    dev.stop_all()
    shell.must("rm -rf " .. folder)
  end)

  local function till_ready(server)
    for kind, path in pairs(SERVERS) do
      wait.till(kind .. " to be ready", 60, function()
        local ready = cluster.condition(server:get(path), "Ready")
        return ready and ready.status == "True", server:story()
      end)
    end
  end

  -- How many of the processes are servers, by their programs.
  local function servers_of(processes)
    local count = { postgres = 0, redis = 0 }
    for _, process in ipairs(processes) do
      count.postgres = count.postgres + (process.command:find "^%S*postgres %-D" and 1 or 0)
      count.redis = count.redis + (process.command:find "^%S*redis%-server" and 1 or 0)
    end
    return count
  end

  -- Runs it from its first line to its last. `files` lists the machine's, or those of its user.
  local function run(files, under)
    local function all_files()
      return files() .. shell.must("find " .. folder)
    end
    local before = all_files()
    local server = dev.start(COMMAND, {
      binary = folder .. "/moonloop", before = "cd " .. folder, env = { TMPDIR = folder .. "/data" }, under = under,
    })
    till_ready(server)
    assert.equal("PostgreSQL\nOK\nRedis\n", machine.client(server, "spec/e2e/fixtures/samples_client.yaml"))
    local processes
    wait.till("a server of PostgreSQL and three of Redis", 5, function()
      processes = machine.processes(server.host.pid)
      local found = servers_of(processes) -- a new child of postgres has its parent's command line for a moment
      return found.postgres == 1 and found.redis == 3, ("%d and %d"):format(found.postgres, found.redis)
    end)
    assert.equal(0, server:stop "TERM")
    assert.same({}, machine.left(processes))
    assert.equal(before, all_files())
  end

  it("runs their servers, and leaves no file and no process", function()
    if lacks then
      pending(lacks)
      return
    end
    run(machine.files)
  end)

  it("does so for an ordinary user", function()
    if lacks or not machine.is_root then
      pending(lacks or "all specs are run by an ordinary user")
      return
    end
    run(machine.files_of_nobody, machine.AS_NOBODY)
  end)
end)
