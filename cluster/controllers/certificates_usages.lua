--- Checks a CertificateSigningRequest by the rules of Kubernetes' own signers.
---
--- Rules: kubernetes/pkg/apis/certificates/helpers.go, kubernetes/pkg/controller/certificates/signer/signer.go.
local M = {}

local NODES, NODE = "system:nodes", "system:node:"
local SIGNS, ENCIPHERS, CLIENT, SERVER = "digital signature", "key encipherment", "client auth", "server auth"

-- Alternative names that a kubelet's client must not have, in the order in which they are reported.
local CLIENT_NAMES = {
  { "dns_names", "DNS subjectAltNames are not allowed" },
  { "email_addresses", "Email subjectAltNames are not allowed" },
  { "ip_addresses", "IP subjectAltNames are not allowed" },
  { "uris", "URI subjectAltNames are not allowed" },
}


-- True if the usages are `purpose` and a digital signature; key encipherment, which RSA needs, may be there too.
local function are_usages(usages, purpose)
  local known = { [SIGNS] = true, [purpose] = true, [ENCIPHERS] = true }
  local seen = {}
  for _, usage in ipairs(usages) do
    if not known[usage] then
      return false
    end
    seen[usage] = true
  end
  return (seen[SIGNS] and seen[purpose]) == true
end


local function usages_complaint(usages, purpose)
  return not are_usages(usages, purpose)
    and ("usages did not match [%s]"):format(table.concat(purpose == CLIENT and { CLIENT, SIGNS, ENCIPHERS }
      or { SIGNS, ENCIPHERS, SERVER }, " ")) or nil
end


local function of_nodes(wishes)
  return #wishes.organizations == 1 and wishes.organizations[1] == NODES
end


local function is_node(wishes)
  return wishes.common_name:sub(1, #NODE) == NODE
end


--- Returns why a request is not right for the client of a kubelet, or nil if it is.
--- @param wishes cluster.host.x509.request
--- @param usages string[]
function M.kubelet_client(wishes, usages)
  if not of_nodes(wishes) then
    return "subject organization is not system:nodes"
  end
  for _, kind in ipairs(CLIENT_NAMES) do
    if #wishes[kind[1]] > 0 then
      return kind[2]
    end
  end
  if not is_node(wishes) then
    return "subject common name does not begin with system:node: "
  end
  return usages_complaint(usages, CLIENT)
end


--- The same for the server of a kubelet.
function M.kubelet_serving(wishes, usages)
  if not of_nodes(wishes) then
    return "subject organization is not system:nodes"
  elseif #wishes.dns_names == 0 and #wishes.ip_addresses == 0 then
    return "DNS or IP subjectAltName is required"
  elseif #wishes.email_addresses > 0 then
    return "Email subjectAltNames are not allowed"
  elseif #wishes.uris > 0 then
    return "URI subjectAltNames are not allowed"
  end
  local complaint = usages_complaint(usages, SERVER)
  if complaint then
    return complaint
  end
  return not is_node(wishes) and "subject common name does not begin with system:node: " or nil
end


--- The same for any client of the API server, which may call itself what it likes.
function M.client(_, usages)
  local is_client = false
  for _, usage in ipairs(usages) do
    if usage == CLIENT then
      is_client = true
    elseif usage ~= SIGNS and usage ~= ENCIPHERS then
      return "invalid usage for client certificate: " .. usage
    end
  end
  return not is_client and "missing required usage for client certificate: client auth" or nil
end


return M
