-- The Database of the seed documents: a server, users who come and go, edits, and its end. Where the server's programs
-- are installed and pods are processes, it is PostgreSQL or MariaDB that answers, at the name of its Service.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local host = require "spec.e2e.support.host"
local kubectl = require "spec.e2e.support.kubectl"
local operators = require "spec.e2e.support.operators"
local wait = require "spec.e2e.support.wait"

-- `say USER SQL` sends it with the password of the Secret; `as BASE64 USER SQL` with this one; `refuses` fails if
-- that is taken. `enter HOST PASSWORD` logs the superuser in, and counts the accounts without a password.
local AS = [[
  as() { echo "$1" | base64 -d >/tmp/password; shift; PASSWORD=/tmp/password say "$@"; }
  refuses() { if "$@" 2>/dev/null; then exit 9; fi; }
]]
local ENGINES = {
  PostgreSQL = {
    version = "14", higher = "14.5", other = "15", programs = "initdb postgres psql",
    say = [[
      say() { PGPASSWORD="$(cat "${PASSWORD:-/secrets/$1}")" psql -X -q -At -U "$1" -c "$2" "$URL"; }
    ]],
    enter = [[
      enter() { PGPASSWORD=$2 psql -X -w -At -h "$1" -U postgres -c "$BARE" postgres; }
      BARE='SELECT count(*) FROM pg_authid WHERE rolcanlogin AND rolpassword IS NULL'
    ]],
  },
  MySQL = {
    version = "8.0", higher = "8.4", other = "9.0", programs = "mariadbd mariadb-install-db mariadb",
    say = [[
      address=${URL#mysql://} address=${address%:3306/app}
      say() { MYSQL_PWD="$(cat "${PASSWORD:-/secrets/$1}")" mariadb --no-defaults -h "$address" -u "$1" -NBe "$2" app; }
    ]],
    enter = [[
      enter() { MYSQL_PWD=$2 mariadb --no-defaults --protocol=tcp -h "$1" -u root -NBe "$BARE" mysql; }
      BARE="SELECT count(*) FROM user WHERE authentication_string = '' AND user <> 'mariadb.sys'"
    ]],
  },
}

for engine, facts in pairs(ENGINES) do
  local runs = operators.runs(facts.programs)
  local served = (runs or cluster.controlplane) and it or pending
  local asked = runs and it or pending

  describe("A Database of " .. engine, function()
    local ns

    setup(function()
      ns = cluster.namespace "database"
      host.start({ name = "database", scripts = "reconcilers/database.lua", namespaces = ns }):till_ready()
      api.create("Database", ns, {
        metadata = { name = "db" },
        spec = {
          engine = engine, version = facts.version, size = "1Gi",
          users = { { username = "admin" }, { username = "appuser" } },
        },
      })
    end)

    teardown(function()
      host.stop_all()
      cluster.forget(ns)
    end)

    local function set(spec)
      api.patch("Database", ns, "db", { spec = spec })
    end

    local function till_condition(name, status, text)
      return wait.till(("the condition %s to be %s"):format(name, status), 60, function()
        if status == "True" then
          operators.finish_jobs(ns)
        end
        local db = api.get("Database", ns, "db")
        local is = cluster.condition(db, name)
        local fits = is and is.status == status and is.observedGeneration == db.metadata.generation
        return fits and is.message:find(text or "", 1, true) and db, is and is.status .. ": " .. is.message
      end)
    end

    -- Runs these lines in another pod; all must go well. Returns the answers.
    local function ask(lines)
      local url = wait.till("a connection string", 60, function()
        return api.get("Database", ns, "db").status.connectionString
      end)
      local ok, said = operators.client(ns, "db-secrets", ("URL=%s\n%s%s%s"):format(url, facts.say, AS, lines))
      assert.is_true(ok, said)
      return said
    end

    served("becomes ready", function()
      local db = operators.till_ready("Database", ns, "db", 60)
      assert.same({ "Ready", true, "" }, { db.status.phase, db.status.ready, db.status.message })
      for _, reason in ipairs { "CreatedSecret", "Provisioning", "Provisioned", "Synced" } do
        cluster.till_event(ns, "Database", "db", reason)
      end
      local head, row = kubectl.run("get", "db", "-n", ns):match("([^\n]+)\n([^\n]+)")
      assert.matches("^NAME%s+ENGINE%s+VERSION%s+SIZE%s+PHASE%s+AGE%s*$", head)
      assert.matches("^db%s+" .. engine .. "%s+%S+%s+1Gi%s+Ready%s+%w+%s*$", row)
    end)

    asked("lets its users in, at the name of its Service, with their passwords and no other", function()
      assert.equal("kept\n", ask [[
        say admin "CREATE TABLE theirs (word varchar(9))"
        say appuser "CREATE TABLE mine (word varchar(9))"
        say appuser "INSERT INTO mine VALUES ('kept')"
        say appuser "SELECT word FROM mine"
        refuses as d3Jvbmc= admin "SELECT 1"
      ]])
    end)

    asked("lets nobody in without the password, not even in its own pod", function()
      local said = kubectl.run("exec", "-n", ns, "db-0", "--", "sh", "-c", facts.enter .. [[
        for password in '' wrong "$(cat /secrets/superuser)"; do
          for host in 127.0.0.1 db-0 db; do
            enter "$host" "$password" 2>/dev/null || echo refused
          done
        done
      ]])
      assert.equal(("refused\n"):rep(6) .. ("0\n"):rep(3), said)
    end)

    served("gives the server users who are added, and takes access from those who are removed", function()
      local before = api.get("Secret", ns, "db-secrets").data
      set { users = { { username = "admin" }, { username = "late" } } }
      till_condition("UsersSynced", "True")
      local after = api.get("Secret", ns, "db-secrets").data
      assert.equal(before.admin, after.admin)
      assert.truthy(after.late)
      assert.is_nil(after.appuser)
      assert.equal("0\n", not runs and "0\n" or ask(([[
        say late "CREATE TABLE new (word varchar(9))"
        refuses as %s appuser "SELECT 1"
        say admin "SELECT count(*) FROM theirs"
      ]]):format(before.appuser)))
    end)

    served("takes a user's password from another Secret, when it is there", function()
      set { users = { { username = "admin" }, { username = "own", passwordSecret = "mine" } } }
      till_condition("UsersSynced", "False", "the Secret mine has no key password")
      local secret = { metadata = { name = "mine" }, stringData = { password = [[it's "my" \ $(own) `one`]] } }
      local password = api.create("Secret", ns, secret).data.password
      till_condition("UsersSynced", "True")
      assert.equal("1\n", not runs and "1\n" or ask(([[as %s own "SELECT 1"]]):format(password)))
    end)

    asked("takes over another password of the superuser's", function()
      api.patch("Secret", ns, "db-secrets", { stringData = { ["superuser-password"] = [[it's \now "my" \ `one`]] } })
      assert.equal("0\n", ask(facts.enter .. [[
        until enter db "$(cat /secrets/superuser-password)" 2>/dev/null; do sleep 0.2; done
      ]]))
      till_condition("UsersSynced", "True")
    end)

    served("takes over a higher version and keeps the data, but refuses one that cannot open it", function()
      set { version = facts.higher }
      operators.till_ready("Database", ns, "db", 60)
      local image = api.get("StatefulSet", ns, "db").spec.template.spec.containers[1].image
      assert.equal(facts.higher, image:match ":(.*)$")
      set { version = facts.other }
      till_condition("Reconciled", "False", "spec.version: ")
      assert.equal("Ready", api.get("Database", ns, "db").status.phase)
      set { version = facts.higher }
      till_condition("Reconciled", "True")
      assert.equal("0\n", not runs and "0\n" or ask [[say admin "SELECT count(*) FROM theirs"]])
    end)

    served("grows where the volume can, says why where it cannot, and never shrinks", function()
      set { size = "2Gi" }
      if runs then
        wait.till("the claim to grow", 30, function()
          local size = api.get("PersistentVolumeClaim", ns, "data-db-0").spec.resources.requests.storage
          return size == "2Gi", size
        end)
        set { size = "1Gi" }
      end
      till_condition("Reconciled", "False", "spec.size: ")
      operators.till_ready("Database", ns, "db")
    end)

    served("comes back with its data when its server is gone", function()
      local pod = api.get("Pod", ns, "db-0").metadata.uid
      api.delete("Pod", ns, "db-0")
      wait.till("another pod to be ready", 60, function() -- the Database may not have lost its Ready yet
        local is = api.get("Pod", ns, "db-0")
        local ready = is and is.metadata.uid ~= pod and cluster.condition(is, "Ready")
        return ready and ready.status == "True"
      end)
      operators.till_ready("Database", ns, "db", 60)
      assert.equal("0\n", not runs and "0\n" or ask [[
        until say admin "SELECT 1" >/dev/null 2>&1; do sleep 0.2; done
        say admin "SELECT count(*) FROM theirs"
      ]])
    end)

    served("goes, with all that it has and the data", function()
      kubectl.run("delete", "db", "db", "-n", ns)
      for _, kind in ipairs { "StatefulSet", "Service" } do
        operators.till_gone(kind, ns, "db")
      end
      operators.till_gone("Secret", ns, "db-secrets")
      operators.till_gone("Job", ns, "db-users")
      wait.till("the claim to go", 60, function()
        local claim = api.get("PersistentVolumeClaim", ns, "data-db-0")
        return not claim or cluster.controlplane and claim.metadata.deletionTimestamp -- no controller lets go of it
      end)
    end)
  end)
end
