--- CronJobs.
---
--- Rules: kubernetes/pkg/apis/batch/v1/defaults.go, pkg/apis/batch/validation/validation.go (ValidateCronJobCreate),
--- pkg/registry/batch/cronjob/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local cron = require "cluster.apiserver.schedule.cron"
local field = require "cluster.apiserver.field"
local job_validation = require "cluster.apiserver.resources.job_validation"
local pod_defaults = require "cluster.apiserver.resources.pod.defaults"
local text = require "cluster.apiserver.tables.text"
local warnings = require "cluster.apiserver.resources.pod.warnings"
local workload = require "cluster.apiserver.resources.workload"
local zones = require "cluster.zones"

-- Jobs are called after their CronJob, with eleven characters more.
local NAME_MAX = 52
local POLICIES = { "Allow", "Forbid", "Replace" }


local function defaults(object)
  local spec = object.spec
  spec.concurrencyPolicy = spec.concurrencyPolicy or "Allow"
  spec.suspend = spec.suspend or false
  spec.successfulJobsHistoryLimit = spec.successfulJobsHistoryLimit or 3
  spec.failedJobsHistoryLimit = spec.failedJobsHistoryLimit or 1
  pod_defaults.spec(spec.jobTemplate.spec.template.spec)
end


local function check_schedule(spec, old, errors)
  local schedule, path = spec.schedule, "spec.schedule"
  if schedule == "" then
    errors[#errors + 1] = field.required(path, "")
    return
  end
  local read, why = cron.parse(schedule)
  if not read then
    errors[#errors + 1] = field.invalid(path, schedule, why)
  end
  if not schedule:find("TZ", 1, true) then
    return
  elseif not (old and old.schedule:find("TZ", 1, true)) then
    errors[#errors + 1] = field.invalid(path, schedule,
      "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
  elseif spec.timeZone then
    errors[#errors + 1] = field.invalid(path, schedule,
      "cannot use both timeZone field and TZ or CRON_TZ in schedule")
  end
end


local function check_zone(name, errors)
  local path = "spec.timeZone"
  if name == "" then
    errors[#errors + 1] = field.invalid(path, name, "timeZone must be nil or non-empty string")
    return
  end
  if name:lower() == "local" then
    errors[#errors + 1] = field.invalid(path, name,
      "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
  end
  if name ~= "Local" and not zones.find(name) then
    errors[#errors + 1] = field.invalid(path, name, "unknown time zone " .. name)
  end
end


local function check_spec(spec, old, errors)
  check_schedule(spec, old, errors)
  check.not_negative(spec.startingDeadlineSeconds, "spec.startingDeadlineSeconds", errors)
  if spec.timeZone and not (old and old.timeZone == spec.timeZone) then
    check_zone(spec.timeZone, errors)
  end
  check.choice(spec.concurrencyPolicy, POLICIES, "spec.concurrencyPolicy", errors)
  job_validation.check_template(spec.jobTemplate.spec, "spec.jobTemplate.spec", errors)
  check.not_negative(spec.successfulJobsHistoryLimit, "spec.successfulJobsHistoryLimit", errors)
  check.not_negative(spec.failedJobsHistoryLimit, "spec.failedJobsHistoryLimit", errors)
end


local function validate(object)
  local errors, name = {}, object.metadata.name or ""
  check_spec(object.spec, nil, errors)
  if #name > NAME_MAX then
    errors[#errors + 1] = field.invalid("metadata.name", name, ("must be no more than %d characters"):format(NAME_MAX))
  end
  return errors
end


local function validate_update(new, old)
  local errors = {}
  check_spec(new.spec, old.spec, errors)
  return errors
end


local function cells(obj, now)
  local spec, status = obj.spec, obj.status or {}
  local names, images = text.containers(spec.jobTemplate.spec.template.spec)
  local selector = spec.jobTemplate.spec.selector
  return {
    obj.metadata.name, spec.schedule, spec.timeZone or "<none>", spec.suspend and "True" or "False",
    #(status.active or {}), status.lastScheduleTime and age.since(status.lastScheduleTime, now) or "<none>",
    age.of(obj, now), names, images, text.selector(selector),
  }
end


return {
  defaults = defaults,
  prepare_create = workload.clear_status,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  warnings = warnings.template,
  validate = validate, validate_update = validate_update,
  cells = cells,
}
