-- CronJobs with the Job controller and pods that run nothing, in frozen time that starts at midnight of 2026-01-01.
local cron = require "cluster.apiserver.schedule.cron"
local instant = require "cluster.apiserver.instant"
local testcluster = require "testcluster"
local testserver = require "testserver"
local zones = require "cluster.zones"

local CRONJOBS = "/apis/batch/v1/namespaces/default/cronjobs"
local JOBS = "/apis/batch/v1/namespaces/default/jobs"
local MIDNIGHT = 1767225600


describe("A schedule", function()
  local function times(text, count, where)
    local schedule, time, list = assert(cron.parse(text)), MIDNIGHT, {}
    for i = 1, count do
      time = cron.next(schedule, time, where and zones.find(where))
      list[i] = os.date("!%m-%d %H:%M:%S", time)
    end
    return list
  end

  it("has its next times", function()
    assert.same({ "01-01 00:15:00", "01-01 00:30:00" }, times("*/15 * * * *", 2))
    assert.same({ "01-01 06:30:00", "01-01 10:30:00", "01-01 14:30:00", "01-02 06:30:00" },
      times("30 6-16/4 * * 1-5", 4))
    assert.same({ "02-01 00:00:00", "03-01 00:00:00" }, times("@monthly", 2))
    assert.same({ "01-01 00:01:30", "01-01 00:03:00" }, times("@every 90s", 2))
  end)

  -- The answers of robfig/cron: see the file.
  it("has the instants of Kubernetes' own library when clocks change, and at all other times", function()
    local schedule, where, text, at, cases
    cases = 0
    for line in io.lines "cluster/spec/apiserver/cron_instants.txt" do
      local name, from, expression = line:match "^= (%S+) (%S+) (.*)$"
      if name then
        where, text, schedule = assert(zones.find(name), name), line, assert(cron.parse(expression), line)
        at, cases = assert(instant.read(from)), cases + 1
      elseif line == "> the library does not return" then
        assert.is_true((cron.next(schedule, at, where) or math.huge) > at, text)
      elseif line:sub(1, 2) == "> " then
        at = cron.next(schedule, at, where)
        assert.equal(line:sub(3), at and os.date("!%Y-%m-%dT%H:%M:%SZ", at) or "never", text)
      end
    end
    assert.is_true(cases > 60)
  end)

  it("counts a day when one of its two fields fits", function()
    assert.same({ "01-02 00:00:00", "01-09 00:00:00", "01-13 00:00:00" }, times("0 0 13 * fri", 3))
  end)

  it("can be one that never comes", function()
    assert.is_nil(cron.next(cron.parse "0 0 31 2 *", MIDNIGHT))
  end)

  it("is meant in its zone", function()
    assert.same({ "01-01 03:00:00" }, times("0 3 * * *", 1, "UTC"))
    if zones.find "Asia/Tokyo" then
      assert.same({ "01-01 18:00:00" }, times("0 3 * * *", 1, "Asia/Tokyo"))
    end
  end)

  it("that is none says why, as Kubernetes does", function()
    for text, why in pairs {
      [""] = "empty spec string",
      ["a * * * *"] = 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax',
      ["60 * * * *"] = "end of range (60) above maximum (59): 60",
      ["* * 0 * *"] = "beginning of range (0) below minimum (1): 0",
      ["5-1 * * * *"] = "beginning of range (5) beyond end of range (1): 5-1",
      ["*/0 * * * *"] = "step of range should be a positive number: */0",
      ["* * * *"] = "expected exactly 5 fields, found 4: [* * * *]",
      ["@often"] = "unrecognized descriptor: @often",
      ["@every 5"] = 'failed to parse duration @every 5: time: missing unit in duration "5"',
    } do
      assert.same({ nil, why }, { cron.parse(text) })
    end
  end)
end)


describe("A CronJob", function()
  local cluster

  before_each(function()
    cluster = testcluster.new()
  end)

  local function spec_of(fields)
    local spec = { schedule = "* * * * *", jobTemplate = { spec = { template = {
      spec = { restartPolicy = "Never", containers = { { name = "a", image = "x" } } },
    } } } }
    for key, value in pairs(fields or {}) do
      spec[key] = value
    end
    return spec
  end

  local function make(fields)
    cluster:must("POST", CRONJOBS, { metadata = { name = "c" }, spec = spec_of(fields) })
    cluster.settle()
  end

  local function jobs()
    return testcluster.names(cluster:must("GET", JOBS))
  end

  local function status()
    return cluster:must("GET", CRONJOBS .. "/c").status
  end

  local function end_job(name, condition)
    cluster:must("PATCH", JOBS .. "/" .. name .. "/status", { status = {
      startTime = "2026-01-01T00:00:00Z", completionTime = condition == "Complete" and "2026-01-01T00:02:00Z" or nil,
      conditions = { { type = condition == "Complete" and "SuccessCriteriaMet" or "FailureTarget", status = "True" },
        { type = condition, status = "True" } },
    } }, { ["content-type"] = "application/merge-patch+json" })
    cluster.settle()
  end

  it("makes a Job at each time, named after it", function()
    make()
    assert.same({}, jobs())
    cluster:pass(61)
    local name = ("c-%d"):format(MIDNIGHT // 60 + 1)
    assert.same({ name }, jobs())
    local job = cluster:must("GET", JOBS .. "/" .. name)
    assert.equal("CronJob", job.metadata.ownerReferences[1].kind)
    assert.equal("2026-01-01T00:01:00Z", job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"])
    assert.equal("2026-01-01T00:01:00Z", status().lastScheduleTime)
    assert.equal(name, status().active[1].name)
    cluster:pass(60)
    assert.equal(2, #jobs())
  end)

  it("makes none while it is suspended, and then the last one it missed", function()
    make { suspend = true }
    cluster:pass(125)
    assert.same({}, jobs())
    cluster:change(CRONJOBS .. "/c", { spec = { suspend = false } })
    cluster:pass(1)
    assert.same({ ("c-%d"):format(MIDNIGHT // 60 + 2) }, jobs())
  end)

  it("that forbids concurrency waits for its Job", function()
    make { concurrencyPolicy = "Forbid" }
    cluster:pass(125)
    assert.equal(1, #jobs())
    assert.equal("Not starting job because prior execution is running and concurrency policy is Forbid",
      cluster:messages("c", "JobAlreadyActive")[1])
  end)

  it("that replaces deletes its Job first", function()
    make { concurrencyPolicy = "Replace" }
    cluster:pass(61)
    local first = jobs()[1]
    cluster:pass(61)
    assert.same({ ("c-%d"):format(MIDNIGHT // 60 + 2) }, jobs())
    assert.same({ "Deleted job " .. first }, cluster:messages("c", "SuccessfulDelete"))
  end)

  it("forgets Jobs that have ended, and keeps as many as it should", function()
    make { successfulJobsHistoryLimit = 1 }
    cluster:pass(121)
    local names = jobs()
    end_job(names[1], "Complete")
    assert.equal("2026-01-01T00:02:00Z", status().lastSuccessfulTime)
    assert.equal(1, #status().active)
    end_job(names[2], "Complete")
    assert.same({ names[2] }, jobs())
    assert.is_nil(status().active)
  end)

  it("does not start late when a deadline has passed", function()
    make { suspend = true, schedule = "0 * * * *", startingDeadlineSeconds = 10 }
    testserver.pass(cluster, 3630)
    cluster:change(CRONJOBS .. "/c", { spec = { suspend = false } })
    cluster:pass(1)
    assert.same({}, jobs())
  end)

  it("is refused when it could never work", function()
    local function refused(fields)
      local code, answer = cluster:call("POST", CRONJOBS, { metadata = { name = "c" }, spec = spec_of(fields) })
      assert.equal(422, code)
      return answer.message
    end
    assert.matches('spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]',
      refused { schedule = "* * *" }, 1, true)
    assert.matches('spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, '
      .. "use timeZone field instead", refused { schedule = "TZ=UTC * * * * *" }, 1, true)
    assert.matches('spec.timeZone: Invalid value: "No/where": unknown time zone No/where',
      refused { timeZone = "No/where" }, 1, true)
    assert.matches('spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"',
      refused { concurrencyPolicy = "Maybe" }, 1, true)
    assert.matches("spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values:", refused {
      jobTemplate = { spec = { template = { spec = { containers = { { name = "a", image = "x" } } } } } },
    }, 1, true)
  end)
end)
