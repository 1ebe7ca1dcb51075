-- Jobs with the other controllers and pods that run nothing, in frozen time.
local host = require "cluster.host"
local testjobs = require "testjobs"


describe("A Job", function()
  local cluster

  before_each(function()
    cluster = testjobs.new()
  end)

  describe("that goes well", function()
    it("is complete when its pod has succeeded", function()
      cluster:make()
      assert.same({ active = 1, succeeded = 0, failed = 0 }, cluster:counts())
      assert.equal(1, cluster:job().status.ready)
      assert.equal("2026-01-01T00:00:00Z", cluster:job().status.startTime)
      cluster:finish(1, 0)
      assert.same({ active = 0, succeeded = 1, failed = 0 }, cluster:counts())
      assert.same({ "SuccessCriteriaMet", "Complete" }, cluster:truths())
      assert.equal("CompletionsReached", testjobs.condition(cluster:job(), "Complete").reason)
      assert.equal("2026-01-01T00:00:01Z", cluster:job().status.completionTime)
      assert.same({ "Job completed" }, cluster:messages("work", "Completed"))
    end)

    it("never has more pods at work than parallelism, nor than are missing", function()
      cluster:make { completions = 5, parallelism = 2 }
      local actives = {}
      while #cluster:truths() == 0 do
        actives[#actives + 1] = #cluster:present() - (cluster:job().status.succeeded or 0)
        cluster:finish(1, 0)
      end
      assert.same({ 2, 2, 2, 2, 1 }, actives)
      assert.same({ active = 0, succeeded = 5, failed = 0 }, cluster:counts())
    end)

    it("without completions is complete when one pod has succeeded and the others have ended", function()
      cluster:make { parallelism = 3 }
      cluster:finish(1, 0)
      assert.same({ active = 2, succeeded = 1, failed = 0 }, cluster:counts())
      assert.same({}, cluster:truths())
      cluster:finish(2, 0)
      assert.same({ active = 0, succeeded = 3, failed = 0 }, cluster:counts())
      assert.same({ "SuccessCriteriaMet", "Complete" }, cluster:truths())
    end)

    it("that wants no completions is complete at once", function()
      cluster:make { completions = 0 }
      assert.same({}, cluster:present())
      assert.same({ "SuccessCriteriaMet", "Complete" }, cluster:truths())
    end)

    it("follows parallelism up and down; what it takes away has not failed", function()
      cluster:make { completions = 8, parallelism = 1 }
      for _, parallelism in ipairs { 4, 2, 0, 1 } do
        cluster:change(testjobs.JOB, { spec = { parallelism = parallelism } })
        cluster:pass(1)
        assert.same({ active = parallelism, succeeded = 0, failed = 0 }, cluster:counts())
        assert.equal(parallelism, #cluster:present())
      end
    end)

    it("keeps its pods, which nobody waits for any more", function()
      cluster:make { completions = 2, parallelism = 2 }
      assert.same({ "batch.kubernetes.io/job-tracking" }, cluster:pods()[1].metadata.finalizers)
      cluster:finish(2, 0)
      assert.equal(2, #cluster:pods())
      assert.is_nil(cluster:pods()[1].metadata.finalizers)
      assert.is_nil(cluster:pods()[2].metadata.finalizers)
    end)

    it("counts a pod once, also when that is deleted afterwards", function()
      cluster:make { completions = 2 }
      cluster:finish(1, 0)
      local over = cluster:pods()
      table.sort(over, function(a, b) return a.status.phase == "Succeeded" and b.status.phase ~= "Succeeded" end)
      cluster:must("DELETE", testjobs.PODS .. "/" .. over[1].metadata.name)
      cluster:pass(1)
      assert.same({ active = 1, succeeded = 1, failed = 0 }, cluster:counts())
      cluster:finish(1, 0)
      assert.same({ "SuccessCriteriaMet", "Complete" }, cluster:truths())
    end)

    it("counts a pod once, also when it cannot be let go of at first", function()
      cluster:make { completions = 2 }
      local call, refused = cluster.server.call, 0
      function cluster.server.call(server, method, path, ...)
        if method == "PATCH" and path:find "/pods/[^/]+$" and refused < 3 then
          refused = refused + 1
          return 500, { message = "not now" }
        end
        return call(server, method, path, ...)
      end
      cluster:finish(1, 0)
      assert.equal(3, refused)
      assert.same({ active = 1, succeeded = 1, failed = 0 }, cluster:counts())
      assert.same({}, cluster:truths())
    end)
  end)

  describe("whose pods fail", function()
    it("tries again 10 s after the first failure, and waits twice as long each time", function()
      cluster:all_end(1, 0)
      cluster:make { backoffLimit = 5 }
      local waits, since = {}, 0
      for second = 1, 400 do
        if #cluster:pods() == #waits + 2 then
          waits[#waits + 1], since = second - since, second
        end
        cluster:pass(1)
      end
      assert.same({ 10, 20, 40, 80, 160 }, waits)
      assert.same({ active = 0, succeeded = 0, failed = 6 }, cluster:counts())
    end)

    it("never waits longer than ten minutes", function()
      cluster:all_end(1, 0)
      cluster:make { backoffLimit = 9 }
      cluster:pass(10 + 20 + 40 + 80 + 160 + 320 + 20)
      assert.equal(7, cluster:job().status.failed)
      cluster:pass(600)
      assert.equal(8, cluster:job().status.failed)
      cluster:pass(600)
      assert.equal(9, cluster:job().status.failed)
    end)

    it("does not wait behind a success", function()
      cluster:make { completions = 3 }
      cluster:finish(1, 1)
      cluster:pass(10)
      cluster:finish(1, 0)
      assert.equal(1, cluster:job().status.active)
      cluster:finish(1, 1)
      cluster:pass(8)
      assert.is_nil(cluster:job().status.active)
      cluster:pass(2)
      assert.equal(1, cluster:job().status.active)
    end)

    it("has failed beyond backoffLimit, and takes along the pods that still run", function()
      cluster:make { backoffLimit = 0, parallelism = 3, completions = 3 }
      cluster:finish(1, 1)
      assert.same({ "FailureTarget", "Failed" }, cluster:truths())
      assert.same({ active = 0, succeeded = 0, failed = 3 }, cluster:counts())
      assert.equal(0, cluster:job().status.terminating)
      assert.equal("BackoffLimitExceeded", testjobs.condition(cluster:job(), "Failed").reason)
      assert.same({ "Job has reached the specified backoff limit" }, cluster:messages("work", "BackoffLimitExceeded"))
      assert.equal(1, #cluster:present()) -- the one that failed
    end)

    it("has not failed as long as pods are about to go", function()
      cluster.is_deaf = true
      cluster:make { backoffLimit = 0, parallelism = 2, completions = 2 }
      cluster:finish(1, 1)
      assert.same({ "FailureTarget" }, cluster:truths())
      assert.same({ active = 0, succeeded = 0, failed = 2 }, cluster:counts())
      assert.equal(1, cluster:job().status.terminating)
      cluster:finish(1, 1)
      assert.same({ "FailureTarget", "Failed" }, cluster:truths())
      assert.same({ active = 0, succeeded = 0, failed = 2 }, cluster:counts())
    end)

    it("keeps count when failed pods are deleted", function()
      cluster:make { backoffLimit = 1 }
      for _ = 1, 2 do
        cluster:finish(1, 1)
        cluster:must("DELETE", testjobs.PODS)
        cluster:pass(10)
      end
      assert.equal(2, cluster:job().status.failed)
      assert.same({ "FailureTarget", "Failed" }, cluster:truths())
    end)

    it("counts a pod that is deleted as one that failed", function()
      cluster:make()
      cluster:must("DELETE", testjobs.PODS .. "/" .. cluster:present()[1])
      cluster:pass(5)
      assert.same({ active = 0, succeeded = 0, failed = 1 }, cluster:counts())
      cluster:pass(5)
      assert.same({ active = 1, succeeded = 0, failed = 1 }, cluster:counts())
    end)

    local IGNORED = { action = "Ignore", onExitCodes = { operator = "In", values = { 42 } } }
    for with, changes in pairs {
      ["podReplacementPolicy Failed"] = { podReplacementPolicy = "Failed" },
      ["a podFailurePolicy"] = { podFailurePolicy = { rules = { IGNORED } } },
    } do
      it(("with %s replaces a pod when that has ended, not before"):format(with), function()
        cluster.is_deaf = true
        cluster:make(changes)
        cluster:must("DELETE", testjobs.PODS .. "/" .. cluster:present()[1])
        cluster:pass(30)
        assert.same({ active = 0, succeeded = 0, failed = 0 }, cluster:counts())
        assert.equal(1, cluster:job().status.terminating)
        cluster:finish(1, 143)
        cluster:pass(10)
        assert.same({ active = 1, succeeded = 0, failed = 1 }, cluster:counts())
      end)
    end

    it("under OnFailure with podReplacementPolicy Failed replaces a pod that was deleted", function()
      cluster:make({ podReplacementPolicy = "Failed" }, "OnFailure")
      cluster:must("DELETE", testjobs.PODS .. "/" .. cluster:present()[1])
      cluster:pass(30)
      assert.same({ active = 1, succeeded = 0, failed = 1 }, cluster:counts())
    end)

    it("under OnFailure counts restarts, and has failed when there were backoffLimit of them", function()
      cluster:all_end(1, 0)
      cluster:make({ backoffLimit = 2 }, "OnFailure")
      local name = cluster:present()[1]
      cluster:pass(8)
      assert.equal(name, cluster:present()[1])
      assert.same({}, cluster:truths())
      cluster:pass(1)
      assert.same({ "FailureTarget", "Failed" }, cluster:truths())
      assert.same({}, cluster:present())
      assert.equal(1, cluster:job().status.failed)
    end)

    it("under OnFailure counts restarts of init containers as well", function()
      cluster:all_end(1, 0)
      cluster:make { backoffLimit = 2, template = { spec = {
        restartPolicy = "OnFailure",
        initContainers = { { name = "i", image = "busybox:1" } }, containers = { { name = "c", image = "busybox:1" } },
      } } }
      cluster:pass(60)
      assert.same({ "FailureTarget", "Failed" }, cluster:truths())
      assert.same({}, cluster:present())
    end)

    it("under OnFailure keeps its pod, which succeeds in the end", function()
      local tries = 0
      cluster.outcome = function()
        tries = tries + 1
        return { after = 0, code = tries < 3 and 1 or 0 }
      end
      cluster:make({}, "OnFailure")
      cluster:pass(60)
      assert.equal(1, #cluster:pods())
      assert.same({ active = 0, succeeded = 1, failed = 0 }, cluster:counts())
    end)

    it("has failed when activeDeadlineSeconds are over", function()
      cluster:make { activeDeadlineSeconds = 30, parallelism = 2, completions = 2 }
      cluster:pass(28)
      assert.same({}, cluster:truths())
      cluster:pass(1)
      cluster:pass(1)
      assert.same({ "FailureTarget", "Failed" }, cluster:truths())
      assert.equal("DeadlineExceeded", testjobs.condition(cluster:job(), "Failed").reason)
      assert.same({ active = 0, succeeded = 0, failed = 2 }, cluster:counts())
      assert.same({}, cluster:present())
    end)
  end)

  describe("that is suspended", function()
    it("has no pods, no start and no deadline until it is resumed", function()
      cluster:make { suspend = true, activeDeadlineSeconds = 10 }
      cluster:pass(60)
      assert.same({}, cluster:present())
      assert.is_nil(cluster:job().status.startTime)
      assert.same({ "Suspended" }, cluster:truths())
      cluster:change(testjobs.JOB, { spec = { suspend = false } })
      cluster:pass(5)
      assert.equal("2026-01-01T00:01:01Z", cluster:job().status.startTime)
      assert.equal("JobResumed", testjobs.condition(cluster:job(), "Suspended").reason)
      assert.same({ active = 1, succeeded = 0, failed = 0 }, cluster:counts())
    end)

    it("loses its pods, which have not failed, and goes on where it was", function()
      cluster:make { completions = 3, parallelism = 2 }
      cluster:finish(1, 0)
      cluster:change(testjobs.JOB, { spec = { suspend = true } })
      cluster:pass(1)
      assert.same({ active = 0, succeeded = 1, failed = 0 }, cluster:counts())
      assert.equal(1, #cluster:present()) -- the one that succeeded
      assert.is_nil(cluster:job().status.startTime)
      cluster:change(testjobs.JOB, { spec = { suspend = false } })
      cluster:pass(1)
      assert.same({ active = 2, succeeded = 1, failed = 0 }, cluster:counts())
      assert.same({ "Job suspended" }, cluster:messages("work", "Suspended"))
      assert.same({ "Job resumed" }, cluster:messages("work", "Resumed"))
    end)
  end)

  describe("that is over", function()
    for _, code in ipairs { 0, 1 } do
      it(("with exit code %d goes with its pods after ttlSecondsAfterFinished"):format(code), function()
        cluster:make { ttlSecondsAfterFinished = 60, backoffLimit = 0 }
        cluster:finish(1, code)
        cluster:pass(58)
        assert.equal(200, (cluster:call("GET", testjobs.JOB)))
        cluster:pass(1)
        cluster:pass(1)
        assert.equal(404, (cluster:call("GET", testjobs.JOB)))
        assert.same({}, cluster:pods())
      end)
    end

    it("stays as it is, whatever becomes of its pods", function()
      cluster:make()
      cluster:finish(1, 0)
      local before = cluster:job().status
      cluster:must("DELETE", testjobs.PODS)
      cluster:pass(60)
      assert.same(before, cluster:job().status)
      assert.same({}, cluster:pods())
    end)
  end)

  describe("that is deleted", function()
    for _, policy in ipairs { "Background", "Foreground" } do
      it(("takes its pods along: %s"):format(policy), function()
        cluster:make { parallelism = 2, completions = 2 }
        cluster:must("DELETE", testjobs.JOB .. "?propagationPolicy=" .. policy)
        cluster:pass(60)
        assert.equal(404, (cluster:call("GET", testjobs.JOB)))
        assert.same({}, cluster:pods())
      end)
    end

    it("leaves its pods behind when asked to, and nothing holds these", function()
      cluster:make()
      cluster:must("DELETE", testjobs.JOB .. "?propagationPolicy=Orphan")
      cluster:pass(1)
      local pod = cluster:pods()[1]
      assert.is_nil(pod.metadata.ownerReferences)
      assert.is_nil(pod.metadata.finalizers)
    end)
  end)

  it("that another controller manages is left alone", function()
    cluster:make { managedBy = "example.com/other" }
    cluster:pass(60)
    assert.same({}, cluster:pods())
    assert.same({}, cluster:job().status)
  end)

  it("lets go of a pod that loses its labels, and makes another", function()
    cluster:make()
    local name = cluster:present()[1]
    cluster:change(testjobs.PODS .. "/" .. name, { metadata = { labels = {
      ["batch.kubernetes.io/controller-uid"] = host.json.null } } })
    cluster:pass(1)
    assert.equal(2, #cluster:present())
    assert.is_nil(cluster:pod(name).metadata.ownerReferences)
    assert.is_nil(cluster:pod(name).metadata.finalizers)
    assert.equal(1, cluster:job().status.active)
  end)

  it("says why its pods are refused", function()
    cluster:make { template = { spec = {
      serviceAccountName = "nobody", restartPolicy = "Never", containers = { { name = "c", image = "busybox:1" } },
    } } }
    assert.truthy(cluster:messages("work", "FailedCreate")[1]:find('serviceaccount "nobody" not found', 1, true))
  end)
end)
