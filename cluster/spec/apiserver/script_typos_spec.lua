-- One-word typos in the operators of this repository. `moonloop check` (lua/analysis) finds each in its line, and
-- suggests the name that was meant if there is one like it.
local names = require "testnames"
local host = require "cluster.host"

-- File, what it has, what an author types instead.
local TYPOS = {
  { "cnat", "time.utc", "time.utcc" },
  { "cnat", "year = year, month", "yaer = year, month" },
  { "cnat", "moonloop.array", "moonloop.arry" },
  { "cnat", "line:gmatch", "line:gmtach" },
  { "cnat", "schedule:match", "schedule:mtach" },
  { "cnat", "at.metadata.name ..", "at.metadata.nmae .." },
  { "cnat", "containers = {", "contaners = {" },
  { "cnat", "image = ", "imgae = " },
  { "cnat", 'restartPolicy = "OnFailure"', 'restartPolicy = "OnFailrue"' },
  { "cnat", "restartPolicy", "restartPolcy" },
  { "cnat", 'kind = "Pod"', 'kind = "Pdo"' },
  { "cnat", 'apiVersion = "v1"', 'apiVersion = "v2"' },
  { "cnat", 'pod.status.phase == "Succeeded"', 'pod.status.phase == "Suceeded"' },
  { "cnat", "pod.status.phase", "pod.status.pahse" },
  { "cnat", "owns = {", "onws = {" },
  { "cnat", "at.status.phase ==", "at.staus.phase ==" },
  { "cnat", "at.spec.schedule)", "at.spec.scedule)" },
  { "cnat", "ctx.invalid", "ctx.invlaid" },
  { "cnat", "ctx.now", "ctx.nwo" },
  { "cnat", 'status = { phase = "PENDING"', 'staus = { phase = "PENDING"' },
  { "cnat", "requeue_at = instant", "requeue_att = instant" },
  { "cnat", "ctx.ensure", "ctx.ensrue" },
  { "cnat", 'kind("v1", "Pod")', 'kind("v1", "Pods")' },
  { "cnat", 'v1alpha1", "At"', 'v1alpah1", "At"' },
  { "database", "parts.own_secret(user)", "parts.own_secert(user)" },
  { "database", "db.spec.users", "db.spec.user" },
  { "database", "index = by_secret", "indx = by_secret" },
  { "database", "crypto.password", "crypto.pasword" },
  { "database", "user.username] =", "user.usrname] =" },
  { "database", "ctx.once", "ctx.onec" },
  { "database", "status.observedGeneration", "status.observedGenration" },
  { "database", "status.updateRevision", "status.updateRevison" },
  { "database", "set.spec.replicas", "set.spec.repilcas" },
  { "database", "job.status.succeeded", "job.status.suceeded" },
  { "database", "volume = synced", "volum = synced" },
  { "database", "connectionString", "conectionString" },
  { "database", "reason = ready", "raeson = ready" },
  { "database", "conditions = {", "condtions = {" },
  { "database", "claim.spec.resources.requests", "claim.spec.resources.request" },
  { "database", "requests = { storage", "request = { storage" },
  { "database", "err.message", "err.mesage" },
  { "database", "quantity.compare", "quantity.comapre" },
  { "database", "result.children[3]", "result.childern[3]" },
  { "database", "ctx.delete(set)", "ctx.delte(set)" },
  { "database", "engines.can_follow", "engines.can_folow" },
  { "database", "parts.secret_name(db)", "parts.secretname(db)" },
  { "database", "db.spec.version)", "db.spec.verison)" },
  { "database_parts", "user.passwordSecret ~=", "user.paswordSecret ~=" },
  { "database_parts", "set.spec.template", "set.spec.tempalte" },
  { "database_parts", "secret = { name = secret", "secrt = { name = secret" },
  { "database_parts", "container.image", "container.imgae" },
  { "database_parts", "container.volumeMounts = ", "container.volumeMunts = " },
  { "database_parts", "projected = ", "projcted = " },
  { "database_parts", "targetPort", "targtPort" },
  { "database_parts", "selector = labels(db), ports", "selctor = labels(db), ports" },
  { "database_parts", "containerPort", "contanerPort" },
  { "database_parts", "readinessProbe", "readinesProbe" },
  { "database_parts", "preStop", "preStpo" },
  { "database_parts", "serviceName", "servicName" },
  { "database_parts", "matchLabels", "matchLables" },
  { "database_parts", "volumeClaimTemplates =", "volumeClaimTemplate =" },
  { "database_parts", "accessModes", "acessModes" },
  { "database_parts", "template.restartPolicy", "template.restartPolcy" },
  { "database_parts", "moonloop.recreate", "moonloop.recrate" },
  { "database_parts", "backoffLimit = 1000000", 'backoffLimit = "1000000"' },
  { "database_parts", "M.job_name(db), labels", "M.job_nam(db), labels" },
  { "database_parts", "runAsNonRoot", "runAsNoRoot" },
  { "rediscluster", "publishNotReadyAddresses", "publishNotReadyAdresses" },
  { "rediscluster", 'clusterIP = "None"', "clusterIP = false" },
  { "rediscluster", "cluster.spec.size", "cluster.spec.szie" },
  { "rediscluster", "runAsGroup", "runAsGruop" },
  { "rediscluster", "periodSeconds", "periodSecnds" },
  { "rediscluster", "emptyDir", "emptydir" },
  { "rediscluster", 'condition.type == "Ready"', 'condition.tpye == "Ready"' },
  { "rediscluster", "labels = labels_for(cluster) })", "lables = labels_for(cluster) })" },
  { "rediscluster", "set.status.replicas", "set.status.replcas" },
  { "rediscluster", "children = {", "childern = {" },
  { "rediscluster", "readyReplicas = #nodes", "readyReplica = #nodes" },
  { "rediscluster", "owns = { Service, StatefulSet }", "owns = { StatefulSet }" },
  { "rediscluster", "convert = {", "covert = {" },
  { "rediscluster", "to = function", "too = function" },
  { "rediscluster", "moonloop.watch", "moonloop.wacth" },
  { "rediscluster", "ctx.event", "ctx.evnt" },
  { "tenant", "tenant.spec.tier }", "tenant.spec.teir }" },
  { "tenant", "yaml.decode", "yaml.decdoe" },
  { "tenant", "tier.data", "tier.dta" },
  { "tenant", "time.cron(NIGHTLY, time", "time.corn(NIGHTLY, time" },
  { "tenant", "time.parse", "time.prase" },
  { "tenant", "tenant.status.reportedAt", "tenant.status.reportedat" },
  { "tenant", "metadata.creationTimestamp", "metadata.creationTimestmap" },
  { "tenant", 'method = "POST"', 'method = "PSOT"' },
  { "tenant", "method = ", "metod = " },
  { "tenant", 'url = ACCOUNTS', 'url = "https://acounts.example.com"' },
  { "tenant", "headers = {", "header = {" },
  { "tenant", "cjson.encode", "cjson.ecnode" },
  { "tenant", "answer.status >=", "answer.statuss >=" },
  { "tenant", "err.message", "err.mesage" },
  { "tenant", 'labels = { "tenant" }', 'lables = { "tenant" }' },
  { "tenant", 'type = "gauge"', 'type = "guage"' },
  { "tenant", '"tenant_pods", quantity', '"tenant_pod", quantity' },
  { "tenant", "quantity.number", "quantity.numebr" },
  { "tenant", "{ tenant = tenant.metadata.name })", "{ tennant = tenant.metadata.name })" },
  { "tenant", "quota.status.used", "quota.status.usde" },
  { "tenant", "requeue_at = due", "requeu_at = due" },
  { "tenant", "reason = quota", "raeson = quota" },
  { "tenant", "reportedAt = reported", "reportedAT = reported" },
  { "tenant", "conditions = { Ready = ready }", "condition = { Ready = ready }" },
  { "tenant", 'networking.k8s.io/v1"', 'networking.k8s.io/v1beta1"' },
  { "copier", "annotations[", "anotations[" },
  { "copier", "moonloop.null", "moonloop.nul" },
  { "copier", "ctx.list", "ctx.lsit" },
  { "copier", "source.metadata.namespace", "source.metadata.namspace" },
  { "copier", "binaryData = source.binaryData", "binarydata = source.binaryData" },
  { "copier", "source.data", "source.dta" },
  { "copier", 'kind = "ConfigMap"', 'kind = "Configmap"' },
  { "copier", "namespace = namespace.metadata.name }", "namespase = namespace.metadata.name }" },
}

-- Where the message says something else than the name that was meant; and in which line, if it is another one.
local OTHERWISE = {
  ['apiVersion = "v2"'] = { "there is no version v2 of the core group; did you mean 'v1'?", 32 },
  ["owns = { StatefulSet }"] = { "Service of v1 is not in owns; children are of the kinds in owns", 123 },
  ["owns = { "] = { "ctx.once: Secret is not declared: add moonloop.kind(\"v1\", \"Secret\") to owns, or to uses", 57 },
  ['networking.k8s.io/v1beta1"'] = { "there is no version v1beta1 of networking.k8s.io; it has v1" },
  ["clusterIP = false"] = { "spec.clusterIP of Service of v1: expected a string, got false" },
  ['backoffLimit = "1000000"'] = { "spec.backoffLimit of Job of batch/v1: expected a whole number, got '1000000'" },
  ['url = "https://acounts.example.com"'] = {
    "the origin https://acounts.example.com is not declared: add it to http; or did you mean "
      .. "'https://accounts.example.com'?",
  },
}

-- The files that are read together.
local SOURCES = {
  database = { "database", "database_engines", "database_parts" },
  database_parts = { "database", "database_engines", "database_parts" },
}

local function read(name)
  local file <close> = io.open("reconcilers/" .. name .. ".lua")
    or assert(io.open("examples/configmap-copier/" .. name .. ".lua"))
  return file:read "a"
end


local function definitions()
  local manifests = {}
  local listed <close> = assert(io.popen "ls crds/*.yaml")
  for path in listed:lines() do
    local file <close> = assert(io.open(path))
    for _, manifest in ipairs(host.yaml.documents(file:read "a")) do
      manifests[#manifests + 1] = manifest.value
    end
  end
  return manifests
end


-- The word that differs between two texts: the one that was meant, and the one that was typed.
local function difference(from, to)
  local wanted, typed = {}, {}
  for word in from:gmatch "[%w_]+" do wanted[#wanted + 1] = word end
  for word in to:gmatch "[%w_]+" do typed[#typed + 1] = word end
  for index, word in ipairs(wanted) do
    if word ~= typed[index] then
      return word, typed[index]
    end
  end
end


local manifests = definitions()

-- The problems when `from` in a file is `to`, and the line of it.
local function problems(name, from, to)
  local files, line = {}, nil
  for index, each in ipairs(SOURCES[name] or { name }) do
    local text = read(each)
    if each == name then
      local first, last = text:find(from, 1, true)
      assert(first, from)
      line = select(2, text:sub(1, first):gsub("\n", "")) + 1
      text = text:sub(1, first - 1) .. to .. text:sub(last + 1)
      assert(load(text, "=" .. name))
    end
    files[index] = { name = each .. ".lua", text = text }
  end
  return names.check { files = files, manifests = manifests }, line
end


describe("A typo is found:", function()
  for _, typo in ipairs(TYPOS) do
    local name, from, to = table.unpack(typo)
    it(("%s.lua: %s"):format(name, to), function()
      local list, line = problems(name, from, to)
      local meant, typed = difference(from, to)
      local text, other_line = table.unpack(OTHERWISE[to] or { "did you mean '" .. meant .. "'?" })
      local found, all = false, {}
      for index, problem in ipairs(list) do
        local is_there = problem.text:find(("%s.lua:%d: "):format(name, other_line or line), 1, true) == 1
        found = found or is_there and problem.text:sub(-#text) == text
        all[index] = problem.text
      end
      assert.is_true(found, ("line %d, %s → %s:\n"):format(line, meant, typed) .. table.concat(all, "\n"))
    end)
  end
end)
