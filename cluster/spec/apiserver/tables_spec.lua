--- Tables: what the cells of each kind say.
local host = require "cluster.host"
local age = require "cluster.apiserver.tables.age"
local columns = require "cluster.apiserver.tables.columns"
local resources = require "cluster.apiserver.resources"
local tables = require "cluster.apiserver.tables"

local NOW = 1782900000
local CREATED = "2026-07-01T09:58:00Z"   -- two minutes before

local decode = host.json.decode


-- A built-in kind, as the registry has it.
local function kind(group, name)
  for _, res in ipairs(resources.all()) do
    if res.group == group and res.kind == name then
      return res
    end
  end
end


local function render(res, object, include)
  object.metadata = object.metadata or { name = "a", creationTimestamp = CREATED }
  return tables.render(res, { object }, { include = include or "None", now = NOW, list_meta = {} })
end


describe("the age of something", function()
  local cases = {
    { -3, "<invalid>" }, { -1, "0s" }, { 0, "0s" }, { 119, "119s" }, { 120, "2m" }, { 125, "2m5s" }, { 600, "10m" },
    { 3 * 3600 - 1, "179m" }, { 3 * 3600, "3h" }, { 7 * 3600 + 60, "7h1m" }, { 8 * 3600 + 60, "8h" },
    { 47 * 3600, "47h" }, { 48 * 3600, "2d" }, { 49 * 3600, "2d1h" }, { 8 * 86400, "8d" }, { 729 * 86400, "729d" },
    { 730 * 86400, "2y" }, { 731 * 86400, "2y1d" }, { 9 * 365 * 86400, "9y" },
  }
  for _, case in ipairs(cases) do
    it(("is %s after %d seconds"):format(case[2], case[1]), function()
      assert.equal(case[2], age.duration(case[1]))
    end)
  end

  it("is unknown without a time", function()
    assert.equal("<unknown>", age.since(nil, NOW))
    assert.equal("<unknown>", age.since(host.json.null, NOW))
  end)

  it("of a custom column is null without a time and invalid with a wrong one", function()
    assert.equal(host.json.null, age.cell(nil, NOW))
    assert.equal("<invalid>", age.cell("yesterday", NOW))
    assert.equal("2m", age.cell(CREATED, NOW))
  end)
end)


describe("the notation of columns", function()
  it("has names with spaces, types, the format of names, and columns shown on demand", function()
    local function is(name, of, format, priority)
      return { name = name, type = of, format = format, priority = priority, description = "" }
    end
    assert.same({ is("Last Seen", "string", "", 0), is("Port(s)", "string", "", 0), is("Count", "integer", "", 1),
      is("Name", "string", "name", 1), is("Attacher", "string", "name", 0), is("Name", "string", "", 0) },
      columns.read("Last_Seen Port(s) (Count:integer) (Name) Attacher:/name Name:/-"))
  end)
end)


describe("the cells of", function()
  local cases = {
    { "", "ConfigMap", '{"data":{"a":"1"},"binaryData":{"b":"AA=="}}', '["a",2,"2m"]' },
    { "", "Secret", '{"type":"Opaque"}', '["a","Opaque",0,"2m"]' },
    { "", "ServiceAccount", "{}", '["a","2m"]' },
    { "", "Namespace", '{"status":{"phase":"Active"}}', '["a","Active","2m"]' },
    { "", "Service", '{"spec":{"type":"ClusterIP","clusterIPs":["10.0.0.1"],"ports":[{"port":80,"protocol":"TCP"}],'
      .. '"selector":{"b":"c","a":"b"}}}', '["a","ClusterIP","10.0.0.1","<none>","80/TCP","2m","a=b,b=c"]' },
    { "", "Service", '{"spec":{"type":"LoadBalancer","clusterIPs":["10.0.0.1"],'
      .. '"ports":[{"port":80,"nodePort":31000,"protocol":"TCP"}]}}',
      '["a","LoadBalancer","10.0.0.1","<pending>","80:31000/TCP","2m","<none>"]' },
    { "", "Service", '{"spec":{"type":"ExternalName","externalName":"x.y"}}',
      '["a","ExternalName","<none>","x.y","<none>","2m","<none>"]' },
    { "", "Endpoints", '{"subsets":[{"addresses":[{"ip":"::1"},{"ip":"1.1.1.1"}],"ports":[{"port":1},{"port":2}]}]}',
      '["a","[::1]:1,1.1.1.1:1,[::1]:2 + 1 more...","2m"]' },
    { "", "Endpoints", "{}", '["a","<none>","2m"]' },
    { "", "Event", '{"type":"Normal","reason":"Made","message":" done ","count":2,'
      .. '"lastTimestamp":"2026-07-01T09:59:00Z",'
      .. '"firstTimestamp":"2026-07-01T09:58:00Z","involvedObject":{"kind":"Pod","name":"p"},'
      .. '"source":{"component":"c","host":"h"}}',
      '["60s","Normal","Made","pod/p","","c, h","done","2m",2,"a"]' },
    { "events.k8s.io", "Event", '{"type":"Normal","reason":"Made","note":"done",'
      .. '"eventTime":"2026-07-01T09:58:00.000000Z",'
      .. '"regarding":{"kind":"Pod","name":"p"},"reportingController":"c","reportingInstance":"i"}',
      '["2m","Normal","Made","pod/p","","c, i","done","2m",1,"a"]' },
    { "", "Node", '{"metadata":{"name":"n","labels":{"node-role.kubernetes.io/worker":""},"creationTimestamp":"'
      .. CREATED .. '"},"spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"True"}],'
      .. '"nodeInfo":{"kubeletVersion":"v1","kernelVersion":"6","architecture":"amd64"}}}',
      '["n","Ready,SchedulingDisabled","worker","2m","v1","<none>","<none>","<unknown>","6 (amd64)","<unknown>"]' },
    { "", "PersistentVolumeClaim", '{"spec":{"volumeName":"v","storageClassName":"s"},"status":{"phase":"Bound",'
      .. '"accessModes":["ReadWriteMany","ReadWriteOnce"],"capacity":{"storage":"1Gi"}}}',
      '["a","Bound","v","1Gi","RWO,RWX","s","<unset>","2m","<unset>"]' },
    { "apps", "Deployment", '{"spec":{"replicas":3,"selector":{"matchLabels":{"b":"c"},"matchExpressions":['
      .. '{"key":"a","operator":"In","values":["y","x"]},{"key":"z","operator":"DoesNotExist"}]},'
      .. '"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}},"status":{"readyReplicas":1}}',
      '["a","1/3",0,0,"2m","c","i","a in (x,y),b=c,!z"]' },
    { "apps", "StatefulSet", '{"spec":{"replicas":1,"template":{"spec":{"containers":[]}}}}',
      '["a","0/1","2m","",""]' },
    { "apps", "ControllerRevision", '{"revision":2,"metadata":{"name":"a","creationTimestamp":"' .. CREATED
      .. '","ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"s","controller":true}]}}',
      '["a","statefulset.apps/s",2,"2m"]' },
    { "batch", "Job", '{"spec":{"completions":1,"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{}}},'
      .. '"status":{"startTime":"2026-07-01T09:59:00Z"}}', '["a","Running","0/1","60s","2m","","","a=b"]' },
    { "batch", "Job", '{"spec":{"parallelism":2,"selector":{},"template":{"spec":{}}},"status":{"succeeded":1,'
      .. '"conditions":[{"type":"Complete","status":"True"}]}}', '["a","Complete","1/1 of 2","","2m","","","<none>"]' },
    { "coordination.k8s.io", "Lease", '{"spec":{"holderIdentity":"me"}}', '["a","me","2m"]' },
    { "discovery.k8s.io", "EndpointSlice", '{"addressType":"IPv4","ports":null,"endpoints":null}',
      '["a","IPv4","<unset>","<unset>","2m"]' },
    { "policy", "PodDisruptionBudget", '{"spec":{"minAvailable":"50%"}}', '["a","50%","N/A",0,"2m"]' },
    { "rbac.authorization.k8s.io", "RoleBinding", '{"roleRef":{"kind":"Role","name":"r"},"subjects":['
      .. '{"kind":"User","name":"u"},{"kind":"ServiceAccount","name":"s","namespace":"n"}]}',
      '["a","Role/r","2m","u","","n/s"]' },
    { "rbac.authorization.k8s.io", "Role", "{}", '["a","' .. CREATED .. '"]' },
  }
  for i, case in ipairs(cases) do
    it(("%s (%d)"):format(case[2], i), function()
      local made = render(kind(case[1], case[2]), decode(case[3]))
      assert.equal(case[4], host.json.encode(made.rows[1].cells))
      assert.equal(#made.columnDefinitions, #made.rows[1].cells)
    end)
  end
end)


describe("the status of a pod", function()
  local function pod(status, more)
    local spec = { containers = { { name = "a" }, { name = "b" } } }
    for key, value in pairs(more or {}) do
      spec[key] = value
    end
    return { spec = spec, status = decode(status) }
  end

  local cases = {
    { "its phase", '{"phase":"Pending"}', "0/2", "Pending", "0" },
    { "what a container waits for", '{"phase":"Running","containerStatuses":[{"name":"a","ready":true,'
      .. '"state":{"running":{}}},{"name":"b","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}},'
      .. '"lastState":{"terminated":{"finishedAt":"2026-07-01T09:59:50Z"}}}]}',
      "1/2", "CrashLoopBackOff", "3 (10s ago)" },
    { "how a container ended", '{"phase":"Failed","containerStatuses":[{"name":"a","state":{"terminated":'
      .. '{"exitCode":3}}}]}', "0/2", "ExitCode:3", "0" },
    { "running when one runs and is ready", '{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],'
      .. '"containerStatuses":[{"name":"a","state":{"terminated":{"exitCode":0,"reason":"Completed"}}},'
      .. '{"name":"b","ready":true,"state":{"running":{}}}]}', "1/2", "Running", "0" },
    { "not ready when one runs and it is not", '{"phase":"Running","containerStatuses":['
      .. '{"name":"a","state":{"terminated":{"exitCode":0,"reason":"Completed"}}},'
      .. '{"name":"b","ready":true,"state":{"running":{}}}]}', "1/2", "NotReady", "0" },
    { "a gate", '{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",'
      .. '"reason":"SchedulingGated"}]}', "0/2", "SchedulingGated", "0" },
  }
  for _, case in ipairs(cases) do
    it("is " .. case[1], function()
      local cells = render(kind("", "Pod"), pod(case[2])).rows[1].cells
      assert.same({ case[3], case[4], case[5] }, { cells[2], cells[3], cells[4] })
    end)
  end

  local init = { initContainers = { { name = "i" }, { name = "j" } } }
  local init_cases = {
    { '{"state":{"running":{}}}', "Init:0/2" },
    { '{"state":{"terminated":{"exitCode":1,"reason":"Error"}}}', "Init:Error" },
    { '{"state":{"terminated":{"exitCode":1,"signal":9}}}', "Init:Signal:9" },
    { '{"state":{"waiting":{"reason":"ImagePullBackOff"}}}', "Init:ImagePullBackOff" },
    { '{"state":{"waiting":{"reason":"PodInitializing"}}}', "Init:0/2" },
  }
  for _, case in ipairs(init_cases) do
    it("is " .. case[2] .. " while it initializes", function()
      local object = pod('{"phase":"Pending","initContainerStatuses":[' .. case[1] .. "]}", init)
      assert.equal(case[2], render(kind("", "Pod"), object).rows[1].cells[3])
    end)
  end

  it("counts a side container that has started among the others", function()
    local object = pod('{"phase":"Running","initContainerStatuses":[{"name":"i","started":true,"ready":true,'
      .. '"restartCount":2,"state":{"running":{}}}],"containerStatuses":[]}',
      { initContainers = { { name = "i", restartPolicy = "Always" } } })
    local cells = render(kind("", "Pod"), object).rows[1].cells
    assert.same({ "1/3", "Running", "2" }, { cells[2], cells[3], cells[4] })
  end)

  it("is Terminating once it is deleted, unless it had ended", function()
    local object = pod '{"phase":"Running"}'
    object.metadata = { name = "a", deletionTimestamp = CREATED }
    assert.equal("Terminating", render(kind("", "Pod"), object).rows[1].cells[3])
    object.status.phase = "Succeeded"
    assert.equal("Succeeded", render(kind("", "Pod"), object).rows[1].cells[3])
  end)

  it("says in the row's condition that it has ended", function()
    local row = render(kind("", "Pod"), pod '{"phase":"Succeeded"}').rows[1]
    assert.same({ { type = "Completed", status = "True", reason = "Succeeded",
      message = "The pod has completed successfully." } }, row.conditions)
    assert.is_nil(render(kind("", "Pod"), pod '{"phase":"Running"}').rows[1].conditions)
  end)
end)


describe("a table", function()
  local res = kind("", "ConfigMap")

  it("carries of each object what was asked for", function()
    assert.equal(host.json.null, render(res, {}, "None").rows[1].object)
    assert.same({ kind = "PartialObjectMetadata", apiVersion = "meta.k8s.io/v1", metadata = { name = "b" } },
      render(res, { metadata = { name = "b" }, data = {} }, "Metadata").rows[1].object)
    local whole = render(res, { data = { k = "v" } }, "Object").rows[1].object
    assert.same({ "ConfigMap", "v1", { k = "v" } }, { whole.kind, whole.apiVersion, whole.data })
  end)

  it("without rows is an empty list, or null for a kind that has no columns of its own", function()
    local options = { include = "None", now = NOW, list_meta = { resourceVersion = "1" } }
    assert.equal('[]', host.json.encode(tables.render(res, {}, options).rows))
    assert.equal(host.json.null, tables.render(kind("rbac.authorization.k8s.io", "ClusterRole"), {}, options).rows)
  end)

  it("of a custom kind has the columns of its description; what gives no value is null", function()
    local custom = { group = "g", version = "v1", kind = "K", api_version = "g/v1", columns = {
      { name = "Name", type = "string", format = "name", value = function(obj) return obj.metadata.name end },
      { name = "Size", type = "integer", description = "how large", priority = 1, value = function() return nil end },
    } }
    local made = render(custom, {})
    assert.same({ name = "Size", type = "integer", format = "", description = "how large", priority = 1 },
      made.columnDefinitions[2])
    assert.equal('["a",null]', host.json.encode(made.rows[1].cells))
  end)
end)
