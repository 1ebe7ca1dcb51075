local request = require "cluster.apiserver.request"


local function parse(line)
  local method, path, query = line:match("^(%S+) ([^?]*)%??(.*)$")
  return request.parse { method = method, path = path, query = query, headers = {}, body = "" }
end


describe("a request", function()
  for line, want in pairs {
    ["GET /api/v1/pods"] = { verb = "list", group = "", version = "v1", resource = "pods" },
    ["GET /api/v1/namespaces/a/pods/b"] = { verb = "get", namespace = "a", resource = "pods", name = "b" },
    ["GET /api/v1/namespaces/a/pods?watch=true"] = { verb = "watch", resource = "pods", namespace = "a" },
    ["GET /api/v1/namespaces/a/pods?watch=0"] = { verb = "list" },
    ["GET /api/v1/namespaces/a/pods/b?watch=true"] = { verb = "get", name = "b" },
    ["GET /api/v1/watch/namespaces/a/pods"] = { verb = "watch", resource = "pods", namespace = "a" },
    ["POST /apis/apps/v1/namespaces/a/deployments"] = { verb = "create", group = "apps", resource = "deployments" },
    ["PUT /apis/apps/v1/namespaces/a/deployments/b/status"] = { verb = "update", subresource = "status", name = "b" },
    ["PATCH /api/v1/nodes/n"] = { verb = "patch", resource = "nodes", name = "n" },
    ["DELETE /api/v1/nodes/n"] = { verb = "delete" },
    ["DELETE /api/v1/nodes"] = { verb = "deletecollection" },
    ["GET /api/v1/namespaces/a"] = { verb = "get", resource = "namespaces", name = "a", namespace = "a" },
    ["PUT /api/v1/namespaces/a/finalize"] = { resource = "namespaces", name = "a", subresource = "finalize" },
    ["GET /api/v1/namespaces/a/pods/b/proxy/c/d"] = { subresource = "proxy", rest = "c/d" },
    ["GET /api/v1/namespaces/a/pods/b%2Fc"] = { name = "b", subresource = "c" },
    ["GET /api/v1"] = { is_resource = false, verb = "get" },
    ["GET /apis/apps/v1"] = { is_resource = false },
    ["GET /healthz"] = { is_resource = false, path = "/healthz" },
    ["GET //api/v1/pods"] = { is_resource = false },
    ["FOO /api/v1/pods/a"] = { verb = "" },
  } do
    it("is read: " .. line, function()
      local got = parse(line)
      for key, value in pairs(want) do
        assert.equal(value, got[key], key)
      end
    end)
  end

  it("has a query with all values, decoded", function()
    local query = request.parse_query "a=1&a=2&b=x+y%26z&c"
    assert.same({ a = { "1", "2" }, b = { "x y&z" }, c = { "" } }, query)
  end)
end)
