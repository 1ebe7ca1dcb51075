local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Database = moonloop.kind("stable.example.com/v1", "Database")
local Claim = moonloop.kind("v1", "PersistentVolumeClaim")
local Job = moonloop.kind("batch/v1", "Job")
local Namespace = moonloop.kind("v1", "Namespace")
local Pod = moonloop.kind("v1", "Pod")
local Secret = moonloop.kind("v1", "Secret")
local Service = moonloop.kind("v1", "Service")
local StatefulSet = moonloop.kind("apps/v1", "StatefulSet")

local function database(changes)
  local spec = { engine = "PostgreSQL", version = "14", size = "20Gi", users = { { username = "admin" } } }
  for field, value in pairs(changes or {}) do
    spec[field] = value
  end
  return { apiVersion = Database.apiVersion, kind = Database.kind, metadata = { name = "db" }, spec = spec }
end


-- The Job of the users ends after a second, the server runs.
local function outcome(_, container)
  return container.name == "users" and { after = 1, code = 0 } or nil
end


describe("database", function()
  local world

  before_each(function()
    world = testing.world { pods = outcome }
  end)

  local function condition(name)
    for _, each in ipairs(world.get(Database, "db").status.conditions or {}) do
      if each.type == name then
        return each
      end
    end
  end

  local function expect_ready()
    world.advance "10s"
    world.expect(Database, "db", { status = { phase = "Ready", ready = true, message = "" } })
    assert.equal("True", condition("Ready").status)
    assert.equal("True", condition("UsersSynced").status)
  end

  local function apply(changes)
    world.apply(database(changes))
    expect_ready()
  end

  local function reasons()
    world.advance "1s"
    local list = {}
    for index, event in ipairs(world.events(Database, "db")) do
      list[index] = event.reason
    end
    return list
  end

  local function expect_image(image)
    world.expect(StatefulSet, "db", { spec = { template = { spec = { containers = { { image = image } } } } } })
  end

  -- The files that are mounted for the Job, by path: "SECRET/KEY".
  local function files()
    local paths = {}
    for _, source in ipairs(world.get(Job, "db-users").spec.template.spec.volumes[1].projected.sources) do
      paths[source.secret.items[1].path] = source.secret.name .. "/" .. source.secret.items[1].key
    end
    return paths
  end

  -- The object refuses the edit, and says that it still is as it was.
  local function expect_refused(changes, field, why)
    world.apply(database(changes))
    world.advance "1m"
    world.expect(Database, "db", { status = { phase = "Ready", ready = true } })
    assert.equal("False", condition("Reconciled").status)
    assert.matches(field .. ": ", condition("Reconciled").message, 1, true)
    assert.matches(why, condition("Reconciled").message, 1, true)
  end

  it("goes from Provisioning to Ready, and says how it is reached", function()
    world.apply(database())
    world.expect(Database, "db", { status = { phase = "Provisioning", ready = false } })
    expect_ready()
    world.expect(Database, "db", { status = { connectionString = "postgresql://db.default.svc:5432/app" } })
    assert.same({ "CreatedSecret", "Provisioning", "Provisioned", "Synced" }, reasons())
  end)

  it("is a server with a volume, at a Service of its name", function()
    apply()
    world.expect(StatefulSet, "db", { spec = {
      replicas = 1,
      template = { spec = { containers = { { image = "postgres:14" } } } },
      volumeClaimTemplates = { { spec = { resources = { requests = { storage = "20Gi" } } } } },
    } })
    local labels = world.get(Pod, "db-0").metadata.labels
    for label, value in pairs(world.get(Service, "db").spec.selector) do
      assert.equal(value, labels[label])
    end
    for _, pod in ipairs(world.list(Pod, "job-name=db-users")) do
      assert.is_nil(pod.metadata.labels["stable.example.com/database"]) -- the Service must not lead there
    end
  end)

  it("runs MySQL as well", function()
    apply { engine = "MySQL", version = "8.4" }
    expect_image "mysql:8.4"
    world.expect(Database, "db", { status = { connectionString = "mysql://db.default.svc:3306/app" } })
  end)

  it("makes a password for each user, once", function()
    apply { users = { { username = "admin" }, { username = "appuser", passwordSecret = "" } } }
    local made = world.get(Secret, "db-secrets").data
    assert.is_true(#made.admin >= 40 and #made.appuser >= 40 and #made["superuser-password"] >= 40)
    assert.are_not.equal(made.admin, made.appuser)
    world.restart()
    apply { version = "14.2", users = { { username = "admin" }, { username = "appuser" } } }
    assert.same(made, world.get(Secret, "db-secrets").data)
  end)

  it("gives the server users who are added, and takes access from those who are removed", function()
    apply()
    local made, job = world.get(Secret, "db-secrets").data, world.get(Job, "db-users").metadata.uid
    apply { users = { { username = "admin" }, { username = "late" } } }
    assert.same({
      superuser = "db-secrets/superuser-password",
      ["users/admin"] = "db-secrets/admin",
      ["users/late"] = "db-secrets/late",
    }, files())
    assert.are_not.equal(job, world.get(Job, "db-users").metadata.uid)
    assert.equal(made.admin, world.get(Secret, "db-secrets").data.admin)
    apply { users = { { username = "late" } } }
    assert.is_nil(files()["users/admin"])
    assert.is_nil(world.get(Secret, "db-secrets").data.admin)
    apply { users = moonloop.array {} }
    assert.same({ superuser = "db-secrets/superuser-password" }, files())
  end)

  it("stays ready while users are added", function()
    apply()
    world.apply(database { users = { { username = "admin" }, { username = "late" } } })
    world.expect(Database, "db", { status = { phase = "Ready" } })
    assert.equal("the server does not have all its users yet", condition("UsersSynced").message)
    assert.equal("False", condition("UsersSynced").status)
    expect_ready()
  end)

  it("takes a user's password from another Secret, and says that it waits for it", function()
    apply()
    world.apply(database { users = { { username = "own", passwordSecret = "mine" } } })
    world.advance "1m"
    assert.equal("the Secret mine has no key password", condition("UsersSynced").message)
    world.apply { apiVersion = "v1", kind = "Secret", metadata = { name = "mine" }, stringData = { password = "one" } }
    expect_ready()
    assert.equal("mine/password", files()["users/own"])
    local job = world.get(Job, "db-users").metadata.uid
    world.apply { apiVersion = "v1", kind = "Secret", metadata = { name = "mine" }, stringData = { password = "two" } }
    expect_ready()
    assert.are_not.equal(job, world.get(Job, "db-users").metadata.uid)
  end)

  it("makes a new password for a key that is deleted, and has the server use it", function()
    apply()
    local made, pod = world.get(Secret, "db-secrets").data, world.get(Pod, "db-0").metadata.uid
    world.patch(Secret, "db-secrets", { data = { ["superuser-password"] = moonloop.null } })
    expect_ready()
    assert.are_not.equal(made["superuser-password"], world.get(Secret, "db-secrets").data["superuser-password"])
    assert.are_not.equal(pod, world.get(Pod, "db-0").metadata.uid)
    assert.equal(made.admin, world.get(Secret, "db-secrets").data.admin)
  end)

  it("is Provisioning again while the server is down", function()
    apply()
    world.finish_pod("db-0", 1)
    world.finish_pod("db-0", 1)
    world.expect(Database, "db", { status = { phase = "Provisioning", ready = false } })
    assert.equal("False", condition("Ready").status)
    world.advance "1m"
    expect_ready()
  end)

  it("gives its users to the server of a new volume before it is ready again", function()
    apply()
    local job = world.get(Job, "db-users").metadata.uid
    world.delete(Claim, "data-db-0")
    world.delete(Pod, "db-0") -- then the claim goes, and the StatefulSet makes both again
    world.expect(Database, "db", { status = { phase = "Provisioning", ready = false } })
    assert.equal("False", condition("UsersSynced").status)
    expect_ready()
    assert.are_not.equal(job, world.get(Job, "db-users").metadata.uid)
  end)

  it("lets the volume grow, and not shrink", function()
    apply()
    apply { size = "30Gi" }
    world.expect(Claim, "data-db-0", { spec = { resources = { requests = { storage = "30Gi" } } } })
    expect_refused({ size = "10Gi" }, "spec.size", "30Gi")
    world.expect(Claim, "data-db-0", { spec = { resources = { requests = { storage = "30Gi" } } } })
    apply { size = "30720Mi" }
    assert.equal("True", condition("Reconciled").status)
  end)

  it("says why a volume cannot grow", function()
    apply()
    world.fault("forbidden", { verb = "patch", kind = Claim, times = 100 })
    expect_refused({ size = "30Gi" }, "spec.size", "")
  end)

  it("takes over a newer version, but not one that cannot open its files", function()
    apply { version = "14.2" }
    apply { version = "14.10" }
    expect_image "postgres:14.10"
    for _, version in ipairs { "15", "15.1", "13", "14.9", "14.2" } do
      expect_refused({ version = version }, "spec.version", "14.10")
    end
    apply { version = "14" }
  end)

  it("cannot become another engine", function()
    apply()
    local ok, message = pcall(world.apply, database { engine = "MySQL" })
    assert.is_false(ok)
    assert.matches("make a new Database", message, 1, true)
  end)

  it("takes all its parts along, the volume too", function()
    apply()
    world.delete(Database, "db")
    world.advance "1m"
    for _, kind in ipairs { Claim, Job, Pod, Secret, StatefulSet } do
      assert.same({}, world.list(kind))
    end
    world.expect(Database, "db", false)
  end)

  it("is deleted as well when it never ran", function()
    world.fault("unavailable", { verb = "patch", kind = StatefulSet, times = 100 })
    world.apply(database())
    world.delete(Database, "db")
    world.advance "1m"
    world.expect(Database, "db", false)
  end)

  it("does not keep a namespace that is deleted, and makes nothing in it any more", function()
    world.apply { apiVersion = "v1", kind = "Namespace", metadata = { name = "n" } }
    local db = database()
    db.metadata.namespace = "n"
    world.apply(db)
    world.advance "10s"
    world.expect(Database, "db", { status = { phase = "Ready" } }, "n")
    world.delete(Namespace, "n")
    world.advance "1m"
    world.expect(Namespace, "n", false)
    assert.same({}, world.list(Claim))
  end)

  it("shows its passwords nowhere but in the Secret", function()
    apply()
    local shown = require("cjson").encode {
      world.get(Database, "db"), world.get(StatefulSet, "db"), world.get(Job, "db-users"), world.events(),
    }
    for _, encoded in pairs(world.get(Secret, "db-secrets").data) do
      assert.is_nil(shown:find(encoded, 1, true))
    end
  end)

  -- A life, with a disturbance before each of its steps.
  local function live(disturb)
    disturb()
    world.apply(database())
    world.advance "10m"
    local made = world.get(Secret, "db-secrets").data.admin
    disturb()
    world.apply(database { users = { { username = "admin" }, { username = "late" } }, size = "30Gi" })
    world.advance "10m"
    expect_ready()
    assert.equal("db-secrets/late", files()["users/late"])
    assert.equal(made, world.get(Secret, "db-secrets").data.admin)
    disturb()
    world.delete(Database, "db")
    world.advance "10m"
    world.expect(Database, "db", false)
    assert.same({}, world.list(Claim))
  end

  for _, fault in ipairs { "lost_reply", "lost_request", "timeout", "unavailable", "conflict" } do
    it("comes to the same end through the fault " .. fault, function()
      live(function()
        for _, verb in ipairs { "create", "patch", "delete" } do
          world.fault(fault, { verb = verb, times = 2 })
        end
      end)
    end)
  end

  it("comes to the same end when its host is killed on the way", function()
    live(function() world.restart() end)
  end)
end)
