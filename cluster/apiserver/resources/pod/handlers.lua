--- The probes and hooks of a container.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (validateProbe, validateHandler, validateLifecycle).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"

local M = {}

local NONE = {}
local NUMBERS = { "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold" }
local BAD_HEADER = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex "
  .. "used for validation is '[-A-Za-z0-9]+')"


local function check_exec(action, path, errors)
  if #(action.command or NONE) == 0 then
    errors[#errors + 1] = field.required(path .. ".command", "")
  end
end


local function check_http(action, path, errors)
  check.port_or_name(action.port, path .. ".port", errors)
  check.one_of(action.scheme, { "HTTP", "HTTPS" }, path .. ".scheme", errors)
  for _, header in ipairs(action.httpHeaders or NONE) do
    if not header.name:find("^[-A-Za-z0-9]+$") then
      errors[#errors + 1] = field.invalid(path .. ".httpHeaders", header.name, BAD_HEADER)
    end
  end
end


local function check_tcp(action, path, errors)
  check.port_or_name(action.port, path .. ".port", errors)
end


local function check_grpc(action, path, errors)
  check.port(action.port, path .. ".port", errors)
end


local function check_sleep(action, path, errors, grace)
  local seconds = action.seconds
  if grace and (seconds < 0 or seconds > grace) then
    errors[#errors + 1] = field.invalid(path, seconds,
      ("must be non-negative and less than terminationGracePeriodSeconds (%d)"):format(grace))
  end
end


-- In the order in which they are looked at; of several the first counts.
local ACTIONS = {
  { "exec", check_exec }, { "httpGet", check_http }, { "tcpSocket", check_tcp }, { "grpc", check_grpc },
  { "sleep", check_sleep },
}


--- One action: a probe's or a hook's. `grace`: the pod's time to end.
function M.action(handler, path, errors, grace)
  local found = false
  for _, action in ipairs(ACTIONS) do
    local name, check_it = action[1], action[2]
    if handler[name] and found then
      errors[#errors + 1] = field.forbidden(path .. "." .. name, "may not specify more than 1 handler type")
    elseif handler[name] then
      found = true
      check_it(handler[name], path .. "." .. name, errors, grace)
    end
  end
  if not found then
    errors[#errors + 1] = field.required(path, "must specify a handler type")
  end
end


local function check_probe(probe, path, errors, grace)
  M.action(probe, path, errors, grace)
  for _, name in ipairs(NUMBERS) do
    check.not_negative(probe[name], path .. "." .. name, errors)
  end
  local period = probe.terminationGracePeriodSeconds
  if period and period <= 0 then
    errors[#errors + 1] = field.invalid(path .. ".terminationGracePeriodSeconds", period, "must be greater than 0")
  end
end


local function check_once(probe, path, errors)
  if probe.successThreshold ~= 1 then
    errors[#errors + 1] = field.invalid(path .. ".successThreshold", probe.successThreshold, "must be 1")
  end
end


local function check_lifecycle(lifecycle, path, errors, grace)
  for _, name in ipairs { "postStart", "preStop" } do
    if lifecycle[name] then
      M.action(lifecycle[name], path .. "." .. name, errors, grace)
    end
  end
end


--- The probes and hooks of a container.
function M.validate(container, path, errors, grace)
  if container.lifecycle then
    check_lifecycle(container.lifecycle, path .. ".lifecycle", errors, grace)
  end
  for _, name in ipairs { "livenessProbe", "readinessProbe", "startupProbe" } do
    local probe, probe_path = container[name], path .. "." .. name
    if probe then
      check_probe(probe, probe_path, errors, grace)
      if name ~= "readinessProbe" then
        check_once(probe, probe_path, errors)
      elseif probe.terminationGracePeriodSeconds then
        errors[#errors + 1] = field.invalid(probe_path .. ".terminationGracePeriodSeconds",
          probe.terminationGracePeriodSeconds, "must not be set for readinessProbes")
      end
    end
  end
end


--- A container that has to end has no use for them.
function M.forbid(container, path, errors)
  for _, name in ipairs { "lifecycle", "livenessProbe", "readinessProbe", "startupProbe" } do
    if container[name] then
      errors[#errors + 1] = field.forbidden(path .. "." .. name,
        "may not be set for init containers without restartPolicy=Always")
    end
  end
end


return M
