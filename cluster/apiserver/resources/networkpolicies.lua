--- NetworkPolicies. They are stored; nothing holds connections to them.
---
--- Rules: kubernetes/pkg/apis/networking/validation/validation.go (ValidateNetworkPolicy),
--- pkg/apis/networking/v1/defaults.go, pkg/registry/networking/networkpolicy/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local ip = require "cluster.apiserver.resources.ip"
local selectors = require "cluster.apiserver.resources.selectors"
local text = require "cluster.apiserver.tables.text"

local NONE = {}
local PROTOCOLS, TYPES = { "TCP", "UDP", "SCTP" }, { "Ingress", "Egress" }
-- The lists of rules, and what the other side is called in each.
local DIRECTIONS = { { "ingress", "from" }, { "egress", "to" } }


local function defaults(object)
  local spec = object.spec
  for _, direction in ipairs(DIRECTIONS) do
    for _, rule in ipairs(spec[direction[1]] or NONE) do
      for _, port in ipairs(rule.ports or NONE) do
        port.protocol = port.protocol or "TCP"
      end
    end
  end
  spec.policyTypes = spec.policyTypes or host.json.array { "Ingress", spec.egress and "Egress" or nil }
end


local function check_port(port, path, errors)
  local number, last = port.port, port.endPort
  check.choice(port.protocol, PROTOCOLS, path .. ".protocol", errors)
  if number == nil then
    if last then
      errors[#errors + 1] = field.invalid(path .. ".endPort", last, "may not be specified when `port` is not specified")
    end
  elseif math.type(number) == "integer" then
    check.port(number, path .. ".port", errors)
    if last then
      if last < number then
        errors[#errors + 1] = field.invalid(path .. ".endPort", number, "must be greater than or equal to `port`")
      end
      check.port(last, path .. ".endPort", errors)
    end
  else
    if last then
      errors[#errors + 1] = field.invalid(path .. ".endPort", last, "may not be specified when `port` is non-numeric")
    end
    check.each(errors, path .. ".port", number, check.port_name(number))
  end
end


local function check_block(block, path, errors)
  if block.cidr == "" then
    errors[#errors + 1] = field.required(path .. ".cidr", "")
    return
  end
  ip.check_range(block.cidr, path .. ".cidr", errors)
  local whole = ip.range(block.cidr)
  for i, part in ipairs(whole and block.except or NONE) do
    local at = ("%s.except[%d]"):format(path, i - 1)
    ip.check_range(part, at, errors)
    local range = ip.range(part)
    if range and (range:sub(1, #whole) ~= whole or #range == #whole) then
      errors[#errors + 1] = field.invalid(at, part, "must be a strict subset of `cidr`")
    end
  end
end


local function check_peer(peer, path, errors)
  selectors.validate(peer.podSelector, path .. ".podSelector", errors)
  selectors.validate(peer.namespaceSelector, path .. ".namespaceSelector", errors)
  if peer.ipBlock then
    check_block(peer.ipBlock, path .. ".ipBlock", errors)
  end
  local selected = peer.podSelector or peer.namespaceSelector
  if not selected and not peer.ipBlock then
    errors[#errors + 1] = field.required(path, "must specify a peer")
  elseif selected and peer.ipBlock then
    errors[#errors + 1] = field.forbidden(path, "may not specify both ipBlock and another peer")
  end
end


local function check_rule(rule, peers, path, errors)
  for i, port in ipairs(rule.ports or NONE) do
    check_port(port, ("%s.ports[%d]"):format(path, i - 1), errors)
  end
  for i, peer in ipairs(rule[peers] or NONE) do
    check_peer(peer, ("%s.%s[%d]"):format(path, peers, i - 1), errors)
  end
end


local function validate(object)
  local errors, spec = {}, object.spec
  selectors.validate(spec.podSelector, "spec.podSelector", errors)
  for _, direction in ipairs(DIRECTIONS) do
    for i, rule in ipairs(spec[direction[1]] or NONE) do
      check_rule(rule, direction[2], ("spec.%s[%d]"):format(direction[1], i - 1), errors)
    end
  end
  if #spec.policyTypes > #TYPES then
    errors[#errors + 1] = field.invalid("spec.policyTypes", spec.policyTypes,
      "may not specify more than two policyTypes")
    return errors
  end
  for i, kind in ipairs(spec.policyTypes) do
    check.choice(kind, TYPES, ("spec.policyTypes[%d]"):format(i - 1), errors)
  end
  return errors
end


return {
  defaults = defaults,
  validate = validate, validate_update = validate,
  cells = function(obj, now)
    return { obj.metadata.name, text.selector(obj.spec.podSelector), age.of(obj, now) }
  end,
}
