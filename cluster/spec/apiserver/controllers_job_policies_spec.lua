-- Jobs with indexes, and with policies of what a failure and a success is, in frozen time.
local testjobs = require "testjobs"

local INDEX = "batch.kubernetes.io/job-completion-index"


describe("A Job", function()
  local cluster

  before_each(function()
    cluster = testjobs.new()
  end)

  describe("with indexes", function()
    -- The indexes of the pods that are at work.
    local function at_work()
      local list = {}
      for _, pod in ipairs(cluster:pods()) do
        if pod.status.phase == "Running" and not pod.metadata.deletionTimestamp then
          list[#list + 1] = pod.metadata.annotations[INDEX]
        end
      end
      table.sort(list)
      return list
    end

    -- The pod of an index ends.
    local function finish_index(index, code)
      for _, pod in ipairs(cluster:pods()) do
        if pod.metadata.annotations[INDEX] == tostring(index) then
          cluster.runtime:finish(pod, code)
        end
      end
      cluster:pass(1)
    end

    it("gives each pod one, in label, name, hostname and variable", function()
      cluster:make { completionMode = "Indexed", completions = 3, parallelism = 2 }
      assert.same({ "0", "1" }, at_work())
      local pod = cluster:pods()[2]
      assert.equal("1", pod.metadata.labels[INDEX])
      assert.equal("work-1", pod.spec.hostname)
      assert.truthy(pod.metadata.name:find "^work%-1%-%w+$")
      assert.same({
        name = "JOB_COMPLETION_INDEX",
        valueFrom = { fieldRef = { apiVersion = "v1", fieldPath = "metadata.labels['" .. INDEX .. "']" } },
      }, pod.spec.containers[1].env[1])
    end)

    it("is complete when each has succeeded, and tells which have", function()
      cluster:make { completionMode = "Indexed", completions = 7, parallelism = 7 }
      local told = {}
      for i, index in ipairs { 1, 2, 3, 5, 6, 0, 4 } do
        finish_index(index, 0)
        told[i] = cluster:job().status.completedIndexes
      end
      assert.same({ "1", "1,2", "1-3", "1-3,5", "1-3,5,6", "0-3,5,6", "0-6" }, told)
      assert.same({ "SuccessCriteriaMet", "Complete" }, cluster:truths())
    end)

    it("tries the index again that failed, never one that is done", function()
      cluster:make { completionMode = "Indexed", completions = 3, parallelism = 3 }
      finish_index(1, 0)
      cluster:must("DELETE", testjobs.PODS .. "?fieldSelector=status.phase=Succeeded")
      finish_index(2, 1)
      cluster:pass(10)
      assert.same({ "0", "2" }, at_work())
      assert.same({ active = 2, succeeded = 1, failed = 1 }, cluster:counts())
    end)

    it("shrinks with completions and parallelism", function()
      cluster:make { completionMode = "Indexed", completions = 4, parallelism = 4 }
      cluster:change(testjobs.JOB, { spec = { completions = 2, parallelism = 2 } })
      cluster:pass(1)
      assert.same({ "0", "1" }, at_work())
      assert.same({ active = 2, succeeded = 0, failed = 0 }, cluster:counts())
    end)

    it("gives each its own backoffLimitPerIndex, and fails when all are over", function()
      cluster:make { completionMode = "Indexed", completions = 2, parallelism = 2, backoffLimitPerIndex = 1 }
      finish_index(0, 1)
      assert.same({ "1" }, at_work())
      cluster:pass(9)
      assert.same({ "0", "1" }, at_work())
      finish_index(0, 1)
      assert.equal("0", cluster:job().status.failedIndexes)
      cluster:pass(60)
      assert.same({ "1" }, at_work())
      finish_index(1, 0)
      assert.equal("FailedIndexes", testjobs.condition(cluster:job(), "Failed").reason)
      assert.equal("1", cluster:job().status.completedIndexes)
      assert.same({ active = 0, succeeded = 1, failed = 2 }, cluster:counts())
    end)

    it("fails at once with more than maxFailedIndexes", function()
      cluster:make {
        completionMode = "Indexed", completions = 4, parallelism = 4, backoffLimitPerIndex = 0, maxFailedIndexes = 1,
      }
      finish_index(0, 1)
      assert.same({}, cluster:truths())
      finish_index(3, 1)
      assert.equal("MaxFailedIndexesExceeded", testjobs.condition(cluster:job(), "Failed").reason)
      assert.equal("0,3", cluster:job().status.failedIndexes)
    end)

    it("succeeds early as its successPolicy says", function()
      cluster:make {
        completionMode = "Indexed", completions = 4, parallelism = 4,
        successPolicy = { rules = { { succeededIndexes = "0,2-3", succeededCount = 2 } } },
      }
      finish_index(1, 0)
      finish_index(0, 0)
      assert.same({}, cluster:truths())
      finish_index(3, 0)
      assert.same({ "SuccessCriteriaMet", "Complete" }, cluster:truths())
      assert.equal("SuccessPolicy", testjobs.condition(cluster:job(), "Complete").reason)
      assert.equal("Matched rules at index 0", testjobs.condition(cluster:job(), "Complete").message)
      assert.same({}, at_work())
      assert.same({ active = 0, succeeded = 3, failed = 0 }, cluster:counts())
    end)
  end)

  describe("with a podFailurePolicy", function()
    local function rule(action, values)
      return { action = action, onExitCodes = { operator = "In", values = values } }
    end

    it("fails at an exit code that says so", function()
      cluster:make { podFailurePolicy = { rules = { rule("FailJob", { 42 }) } } }
      local name = cluster:present()[1]
      cluster:finish(1, 42)
      local failed = testjobs.condition(cluster:job(), "Failed")
      assert.equal("PodFailurePolicy", failed.reason)
      local message = "Container c for pod default/%s failed with exit code 42 matching FailJob rule at index 0"
      assert.equal(message:format(name), failed.message)
    end)

    it("does not count what it ignores", function()
      cluster:make { backoffLimit = 0, podFailurePolicy = { rules = { rule("Ignore", { 42 }) } } }
      cluster:finish(1, 42)
      cluster:pass(10)
      assert.same({ active = 1, succeeded = 0, failed = 0 }, cluster:counts())
      cluster:finish(1, 1)
      assert.same({ "FailureTarget", "Failed" }, cluster:truths())
    end)

    it("gives up an index", function()
      cluster:make {
        completionMode = "Indexed", completions = 2, parallelism = 1, backoffLimitPerIndex = 5,
        podFailurePolicy = { rules = { rule("FailIndex", { 42 }) } },
      }
      cluster:finish(1, 42)
      assert.equal("0", cluster:job().status.failedIndexes)
      assert.equal("1", cluster:pods()[2].metadata.annotations[INDEX])
    end)
  end)
end)
