--- The cluster addresses of services and their families. The cluster has one family, IPv4.
---
--- Rules: kubernetes/pkg/registry/core/service/storage/{alloc,storage}.go, pkg/registry/core/service/ipallocator.
local allocated = require "cluster.apiserver.resources.service.allocated"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local ip = require "cluster.apiserver.resources.ip"

local M = {}

--- The range that addresses come from.
M.RANGE = "10.0.0.0/16"
local FIRST, LAST = ip.v4 "10.0.0.0", ip.v4 "10.0.255.255"
local FAMILY, OTHER = "IPv4", "IPv6"
-- The lower part of the range is left to those who choose an address themselves.
local RESERVED = 256
local TRIES = 64


local function has_selector(spec)
  return spec.selector ~= nil and next(spec.selector) ~= nil
end


local function headless(spec)
  return spec.clusterIP == "None"
end


--- Keeps the two fields for one thing alike: spec.clusterIP and the first of spec.clusterIPs.
--- @param old table|nil spec before an update
function M.normalize(spec, old)
  local before = old or {}
  if not old then
    if spec.clusterIP and not spec.clusterIPs then
      spec.clusterIPs = host.json.array { spec.clusterIP }
    end
    return
  end
  if before.clusterIPs and not spec.clusterIPs and before.clusterIP == spec.clusterIP then
    spec.clusterIPs = before.clusterIPs
  end
  if before.clusterIP ~= spec.clusterIP and host.json.equal(before.clusterIPs or {}, spec.clusterIPs or {}) then
    spec.clusterIPs = spec.clusterIP and host.json.array { spec.clusterIP } or nil
  end
end


local function default_policy(spec, old)
  if spec.ipFamilyPolicy then
    return
  end
  spec.ipFamilyPolicy = old and old.ipFamilyPolicy
    or headless(spec) and not has_selector(spec) and "RequireDualStack" or "SingleStack"
end


-- A policy of one family does not go with two of anything.
local function check_single(spec, errors)
  if spec.ipFamilyPolicy ~= "SingleStack" then
    return
  end
  local words = "must be 'RequireDualStack' or 'PreferDualStack' when multiple %s are specified"
  if #(spec.clusterIPs or {}) == 2 then
    errors[#errors + 1] = field.invalid("spec.ipFamilyPolicy", spec.ipFamilyPolicy, words:format "cluster IPs")
  end
  if #(spec.ipFamilies or {}) == 2 then
    errors[#errors + 1] = field.invalid("spec.ipFamilyPolicy", spec.ipFamilyPolicy, words:format "IP families")
  end
end


local function infer_families(spec, errors)
  for i, address in ipairs(spec.clusterIPs or {}) do
    if address == "None" then
      return
    end
    local family = ip.family(address)
    local families = spec.ipFamilies or host.json.array {}
    if family == FAMILY and not families[i] then
      families[#families + 1] = family
      spec.ipFamilies = families
    elseif family and not families[i] then
      errors[#errors + 1] = field.invalid(("spec.clusterIPs[%d]"):format(i - 1), spec.clusterIPs,
        family .. " is not configured on this cluster")
    end
  end
end


-- A headless service with no selector may have families that the cluster lacks.
local function families_of_headless(spec)
  local families = spec.ipFamilies or host.json.array { FAMILY }
  spec.ipFamilies = families
  if #families < 2 and spec.ipFamilyPolicy ~= "SingleStack" then
    families[#families + 1] = families[1] == FAMILY and OTHER or FAMILY
  end
end


local function check_families(spec, errors)
  if spec.ipFamilyPolicy == "RequireDualStack" then
    errors[#errors + 1] = field.invalid("spec.ipFamilyPolicy", spec.ipFamilyPolicy,
      "this cluster is not configured for dual-stack services")
  end
  for i, family in ipairs(spec.ipFamilies or {}) do
    if family ~= FAMILY then
      errors[#errors + 1] = field.invalid(("spec.ipFamilies[%d]"):format(i - 1), family,
        "not configured on this cluster")
    end
  end
end


-- After the policy was made narrower, what it does not allow any more goes.
local function release_second(spec, old)
  if spec.ipFamilyPolicy ~= "SingleStack" then
    return
  end
  for _, name in ipairs { "clusterIPs", "ipFamilies" } do
    if #(spec[name] or {}) > 1 and host.json.equal(spec[name], old[name]) then
      spec[name] = host.json.array { spec[name][1] }
    end
  end
end


--- Sets spec.ipFamilyPolicy and spec.ipFamilies. @return table|nil field errors
function M.set_families(spec, old)
  if spec.type == "ExternalName" then
    return nil
  end
  local errors = {}
  default_policy(spec, old)
  if old then
    release_second(spec, old)
  end
  check_single(spec, errors)
  infer_families(spec, errors)
  if #errors > 0 then
    return errors
  end
  if headless(spec) and not has_selector(spec) then
    families_of_headless(spec)
    return nil
  end
  check_families(spec, errors)
  if #errors > 0 then
    return errors
  end
  spec.ipFamilies = spec.ipFamilies or host.json.array { FAMILY }
end


local function free_address(used)
  for _ = 1, TRIES do
    local number = FIRST + RESERVED + host.random(LAST - FIRST - RESERVED)
    if not used[ip.text(number)] then
      return ip.text(number)
    end
  end
  for number = FIRST + 1, LAST - 1 do
    if not used[ip.text(number)] then
      return ip.text(number)
    end
  end
end


local function complaint(address, used)
  local number = ip.v4(address)
  if not number or number <= FIRST or number >= LAST then
    return ("the provided IP (%s) is not in the valid range. The range of valid IPs is %s"):format(address, M.RANGE)
  elseif used[address] then
    return "provided IP is already allocated"
  end
end


--- Gives the service an address, or checks the one it chose. With `dry` none is taken, and the answer shows the first
--- of the range. @return table|nil field errors
function M.allocate(spec, server, uid, dry)
  if spec.type == "ExternalName" or headless(spec) then
    return nil
  end
  local wanted, used = spec.clusterIPs and spec.clusterIPs[1], allocated.addresses(server, uid)
  if wanted and wanted ~= "" then
    local why = complaint(wanted, used)
    return why and { field.invalid("spec.clusterIPs", spec.clusterIPs,
      ("failed to allocate IP %s: %s"):format(wanted, why)) }
  end
  local address = dry and ip.text(FIRST) or free_address(used)
  if not address then
    return { field.invalid("spec.clusterIPs", host.json.null, "failed to allocate IP: range is full") }
  end
  spec.clusterIP, spec.clusterIPs = address, host.json.array { address }
end


return M
