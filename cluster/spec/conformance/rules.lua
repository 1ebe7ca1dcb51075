--- All rules that make allowed differences between two servers read the same. lib/normalize.lua applies them.

-- The letters that names made by a server end with.
local SUFFIX = "[bcdfghjklmnpqrstvwxz2-9]"

return {

  -- The letters that a server adds to metadata.generateName.
  random_suffix = SUFFIX:rep(5),

  -- Headers that are compared; no other is.
  headers = { "content-type", "warning", "retry-after", "www-authenticate", "allow", "location" },

  -- Fields that hold what a server made up. Each value becomes <word N>, where N counts the values of a
  -- scenario as they come, so that it still shows which of them are the same.
  numbered = {
    uid = "uid",
    resourceVersion = "version",
    ["pod-template-hash"] = "hash",
    ["controller-uid"] = "uid",
    ["batch.kubernetes.io/controller-uid"] = "uid",
    ["controller-revision-hash"] = "revision",
    currentRevision = "revision",
    updateRevision = "revision",
    collisionCount = "count",
  },

  -- Fields that become <word>, whatever they hold.
  hidden = {
    continue = "continue",
    nodePort = "port",
    token = "token",
    hash = "hash",
    storageVersionHash = "hash",
    podIP = "address",
    hostIP = "address",
    ip = "address",
    nodeName = "node",
    selfLink = "link",
    serverAddress = "address",
  },

  -- Columns of tables that tell how long ago something was.
  age_columns = { Age = true, Duration = true, ["Last Seen"] = true, ["First Seen"] = true, ["Last Schedule"] = true },

  -- Lua patterns in any string, in this order. A match becomes <word>, or <word N> where `numbered` is set. Times
  -- that the scenario itself wrote stay.
  patterns = {
    { "%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x", "uid", numbered = true },
    { "%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.?%d*Z", "time" },
    { "kube%-api%-access%-" .. SUFFIX:rep(5), "kube-api-access" },
    { "10%.0%.%d+%.%d+", "address" },
    { "%f[%d]127%.0%.0%.1:%d+", "address" },
    { "selfType%d+", "type" }, -- an object, in what is wrong with an expression
  },

  -- Sentences that tell a version or a time: what stands between the two captures is hidden.
  sentences = {
    { '(resourceVersion: ")%d+(")', "version" },
    { '(resourceVersion\\*": ?\\*")%d+(\\*")', "version" },
    { "(ResourceVersion in object meta: )%d+()", "version" },
    { "(the ResourceVersion in record %()%d+(%))", "version" },
    { "(too old resource version: %d+ %()%d+(%))", "version" },
    { "(Too large resource version: %d+, current: )%d+()", "version" },
    { "(%f[%w]%u%l%a-)%d%d%d%d%d+(%f[.@'),])", "number" }, -- the type of a kind: Deployment412345678.spec
  },

  -- Only in what kubectl prints: likewise.
  printed = {
    { "(Resource Version: +)%d+()", "version" },
    { "(pod%-template%-hash=)%w+()", "hash" },
    { "(dev%.conformance%.)g%x+()", "group" },
    { "()%a%a%a, %d%d %a%a%a %d%d%d%d %d%d:%d%d:%d%d [+-]%d%d%d%d()", "time" },
    { "(%l%-)" .. SUFFIX:rep(8) .. SUFFIX .. "?" .. SUFFIX .. "?(%f[^%w])", "hash" },
    { "(>%-)" .. SUFFIX:rep(5) .. "(%f[^%w])", "random" },
    -- Behind the random ends of names, which may look like an age.
    { "(%f[%w])%d+[smhd]%d*[smh]?(%f[^%w])", "age" },
    { "()<invalid>()", "age" },
  },
}
