-- The EndpointSlices of Services, for specs.
local M = {}

M.SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


--- The slices of a Service, by name.
function M.of(cluster, service)
  return cluster:must("GET", M.SLICES .. "?labelSelector=kubernetes.io/service-name=" .. service).items
end


--- Each slice in a line: "PORT… : POD OR ADDRESS…", sorted.
function M.lines(cluster, service)
  local list = {}
  for i, slice in ipairs(M.of(cluster, service)) do
    local words = {}
    for _, port in ipairs(type(slice.ports) == "table" and slice.ports or {}) do
      words[#words + 1] = tostring(port.port)
    end
    words[#words + 1] = ":"
    for _, endpoint in ipairs(type(slice.endpoints) == "table" and slice.endpoints or {}) do
      words[#words + 1] = (endpoint.targetRef or {}).name or endpoint.addresses[1]
    end
    list[i] = table.concat(words, " ")
  end
  table.sort(list)
  return list
end


return M
