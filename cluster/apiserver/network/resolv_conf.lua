--- Makes the /etc/resolv.conf of a pod's containers.
---
--- Rules: kubernetes/pkg/kubelet/network/dns/dns.go.
local M = {}

local NAMESERVERS_MAX = 3
local DOMAIN = "cluster.local"


-- The machine's file; it is often a link to what containers do not see.
local function text_of_machine()
  local file = io.open "/etc/resolv.conf"
  local text = file and file:read "a"
  if file then
    file:close()
  end
  return text or ""
end


local function words(text)
  local list = {}
  for word in text:gmatch "%S+" do
    list[#list + 1] = word
  end
  return list
end


--- The present contents of the machine's own file.
--- @return table { nameservers =, searches =, options = }, lists of words
function M.of_machine()
  local parts = { nameservers = {}, searches = {}, options = {} }
  for line in text_of_machine():gmatch "[^\n]+" do
    local key, rest = line:match "^%s*(%l+)%s+(.*)$"
    if key == "nameserver" then
      table.insert(parts.nameservers, words(rest)[1])
    elseif key == "search" or key == "domain" then
      parts.searches = words(rest)
    elseif key == "options" then
      parts.options = words(rest)
    end
  end
  return parts
end


local function add_missing(list, more)
  local known = {}
  for _, item in ipairs(list) do
    known[item] = true
  end
  for _, item in ipairs(more or {}) do
    if not known[item] then
      known[item] = true
      list[#list + 1] = item
    end
  end
end


local function of_cluster(pod, resolver)
  local searches = { ("%s.svc.%s"):format(pod.metadata.namespace, DOMAIN), "svc." .. DOMAIN, DOMAIN }
  add_missing(searches, M.of_machine().searches)
  return { nameservers = { resolver }, searches = searches, options = { "ndots:5" } }
end


-- As the pod's policy says. Names are only known in the pods' network, and the machine's resolver only outside of it.
local function of_policy(pod, resolver)
  local policy = pod.spec.dnsPolicy or "ClusterFirst"
  if policy == "None" then
    return { nameservers = {}, searches = {}, options = {} }
  elseif not resolver then
    return M.of_machine()
  elseif policy == "Default" then
    local parts = M.of_machine()
    parts.nameservers = { resolver }
    return parts
  end
  return of_cluster(pod, resolver)
end


-- An option of the pod's replaces the one with its name.
local function add_options(list, options)
  for _, option in ipairs(options or {}) do
    for i = #list, 1, -1 do
      if list[i]:match "^[^:]*" == option.name then
        table.remove(list, i)
      end
    end
    list[#list + 1] = option.value and option.value ~= "" and option.name .. ":" .. option.value or option.name
  end
end


--- @param resolver string? address of the cluster's names; nil: the pod is in the machine's network
--- @return string text of the file
function M.text(pod, resolver)
  local config = pod.spec.dnsConfig
  if not resolver and not config and pod.spec.dnsPolicy ~= "None" then
    return text_of_machine() -- as it is, comments and all
  end
  local parts, lines = of_policy(pod, resolver), {}
  config = config or {}
  add_missing(parts.nameservers, config.nameservers)
  add_missing(parts.searches, config.searches)
  add_options(parts.options, config.options)
  if #parts.searches > 0 then
    lines[1] = "search " .. table.concat(parts.searches, " ")
  end
  for i = 1, math.min(#parts.nameservers, NAMESERVERS_MAX) do
    lines[#lines + 1] = "nameserver " .. parts.nameservers[i]
  end
  if #parts.options > 0 then
    lines[#lines + 1] = "options " .. table.concat(parts.options, " ")
  end
  return table.concat(lines, "\n") .. "\n"
end


return M
