--- Reads and checks the contents of a CertificateSigningRequest: the request, the certificate, the name of the signer.
---
--- Rules: kubernetes/pkg/apis/certificates/{helpers.go,validation/validation.go}, pkg/apis/core/validation/names.go.
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"
local pem = require "cluster.apiserver.resources.certificates.pem"

local M = {}

local REQUEST, CERTIFICATE = "CERTIFICATE REQUEST", "CERTIFICATE"
local NOT_A_NAME = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
local NO_DOTS = "should be a domain with at least two segments separated by dots"
local DOMAIN_MAX, NAME_MAX = names.SUBDOMAIN_MAX, 2 * names.SUBDOMAIN_MAX + names.LABEL_MAX + 2


local function bytes_of(field_value)
  return field_value and host.base64.decode(field_value) or ""
end


--- Reads a request, which is given as its type has it.
--- @return cluster.host.x509.request|nil wishes what it asks for; nil, and why, when it is no good request
--- @return string why or its DER
function M.read_request(value)
  local block = pem.decode(bytes_of(value))
  if not block or block.type ~= REQUEST then
    return nil, "PEM block type must be " .. REQUEST
  end
  local wishes, why = host.x509.request(block.bytes)
  return wishes, why or block.bytes
end


--- Returns the error in a certificate, or nil if it is right or there is none yet (nil or "").
function M.certificate_complaint(value)
  local text, count = bytes_of(value), 0
  if text == "" then
    return nil
  end
  while true do
    local block
    block, text = pem.decode(text)
    if not block then
      break
    elseif block.type ~= CERTIFICATE then
      return "only CERTIFICATE PEM blocks are allowed, found " .. field.quote(block.type)
    elseif #block.headers > 0 then
      return "no PEM block headers are permitted"
    end
    count = count + 1
    local found, why = host.x509.certificates(block.bytes)
    if not found then
      return why
    elseif found == 0 then
      return "found CERTIFICATE PEM block containing 0 certificates"
    end
  end
  return count == 0 and "must contain at least one CERTIFICATE PEM block" or nil
end


-- The first part of `text` that breaks a rule is told, with all that is wrong with it.
local function check_parts(text, rule, path, errors)
  for part in (text .. "."):gmatch "(.-)%." do
    local messages = rule(part)
    if messages then
      for _, message in ipairs(messages) do
        errors[#errors + 1] = field.invalid(path, text, ("validating label %s: %s"):format(field.quote(part), message))
      end
      return
    end
  end
end


--- The name of who signs: "example.com/signer".
function M.check_signer(name, path, errors)
  if name == "" then
    errors[#errors + 1] = field.required(path, "")
    return
  end
  local domain, rest = name:match "^([^/]*)/([^/]*)$"
  if not domain then
    errors[#errors + 1] = field.invalid(path, name, NOT_A_NAME)
    return
  end
  if #domain > DOMAIN_MAX then
    errors[#errors + 1] = field.too_long(path, "", DOMAIN_MAX)
  end
  check_parts(domain, names.label, path, errors)
  if not domain:find(".", 1, true) then
    errors[#errors + 1] = field.invalid(path, domain, NO_DOTS)
  end
  check_parts(rest, names.subdomain, path, errors)
  if #name > NAME_MAX then
    errors[#errors + 1] = field.too_long(path, "", NAME_MAX)
  end
end


return M
