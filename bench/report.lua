-- Writes RESULTS.md to standard output from what run.sh measured: lua5.4 report.lua FOLDER
-- The targets stand here. A figure that was taken several times is judged by its median.
local folder = assert(arg[1], "usage: lua5.4 report.lua FOLDER")


--- Every value of each figure, in the order they were taken.
---@return table<string, string[]>
local function read_figures(path)
  local figures = setmetatable({}, { __index = function() return {} end })
  for line in io.lines(path) do
    local name, value = line:match("^([^\t]+)\t(.*)$")
    local values = figures[name]
    values[#values + 1] = value
    figures[name] = values
  end
  return figures
end


local figures = read_figures(folder .. "/figures.tsv")
local function meta(name) return figures["meta." .. name][1] or "?" end
local quick = meta "quick" == "yes"
local subject = figures["meta.image"][1] and "image" or "development"


-- ---- numbers

local function numbers(name, scale)
  local list = {}
  for i, value in ipairs(figures[name]) do
    list[i] = tonumber(value) * (scale or 1)
  end
  return list
end


-- The largest of the numbers: of thirty, that is their p99.
local function longest(name, scale)
  local list = numbers(name, scale)
  return #list > 0 and { math.max(table.unpack(list)) } or list
end


local function median(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  local middle = #sorted // 2
  if #sorted % 2 == 1 then return sorted[middle + 1], sorted[1], sorted[#sorted] end
  return (sorted[middle] + sorted[middle + 1]) / 2, sorted[1], sorted[#sorted]
end


--- "12.3 (11.9 to 13.0 in 5)", or "not measured".
local function spread(list, format)
  if #list == 0 then return "not measured" end
  local middle, low, high = median(list)
  if #list == 1 then return format:format(middle) end
  return ("%s (%s to %s in %d)"):format(format:format(middle), format:format(low), format:format(high), #list)
end


-- Of the two bare clients, the one whose last pod but a hundredth is earlier is the measure.
local function bare_of(count)
  local some = numbers(("late.%d.bare-some.made_p99"):format(count))
  local all = numbers(("late.%d.bare-all.made_p99"):format(count))
  if #some == 0 or #all == 0 then return nil end
  return median(some) < median(all) and "bare-some" or "bare-all"
end


--- The operator's lateness over the bare client's, pair by pair.
local function ratios(count, quantile)
  local list, bare = {}, bare_of(count)
  if not bare then return list end
  local host = numbers(("late.%d.host.%s"):format(count, quantile))
  local other = numbers(("late.%d.%s.%s"):format(count, bare, quantile))
  for i = 1, math.min(#host, #other) do
    list[i] = host[i] / other[i]
  end
  return list
end


--- How much later the pods are beside hostile scripts than alone, pair by pair.
local function hostile_delay(quantile)
  local list, alone = {}, numbers("hostile.alone." .. quantile)
  for i, beside in ipairs(numbers("hostile.beside." .. quantile)) do
    list[i] = alone[i] and beside - alone[i]
  end
  return list
end


--- Bytes for one more object, between two sizes of the cache.
local function slope(from, to, scale)
  local few, many = numbers("memory.few")[1], numbers("memory.many")[1]
  local a, b = numbers(from, scale)[1], numbers(to, scale)[1]
  if not (few and a and b) then return {} end
  return { (b - a) / (many - few) }
end


--- Bytes of malloc for one more pod in the cache, of the small shape and, beside it, of the large.
local function cached_bytes(shape)
  local few, many, large = numbers("cache.few.heap")[1], numbers("cache.many.heap")[1], numbers("cache.large.heap")[1]
  if not (few and many and large) then return {} end
  local small = (many - few) / (numbers("cache.many")[1] - 10000)
  return { shape == "large" and small + (large - few) / 10000 or small }
end


--- Bytes of malloc for one more time zone of a script.
local function zone_bytes()
  local few, many = numbers("memory.zones.few")[1], numbers("memory.zones.many")[1]
  return few and many and { (many - few) / 20 } or {}
end


-- ---- targets: what, values, how to print one, the most it may be

local MIB, MS = 1 / 1024, 1000
local of = function(pattern, build) return pattern:format(build or subject) end
local cached_100000 = (numbers("cache.many")[1] or 0) == 100000
local at_10000 = (numbers("memory.many")[1] or 0) == 10000

local targets = {
  { "idle: resident", numbers(of "idle.%s.VmRSS", MIB), "%.1f MiB", 8 },
  { "exec to the first pod's create at the server", numbers(of "start.%s.pod", MS), "%.1f ms", 20 },
  { "exec to ready", numbers(of "start.%s.ready", MS), "%.1f ms", 50 },
  { "1,000 waiting Ats: resident", numbers(of "memory.%s.ats_few.VmRSS", MIB), "%.1f MiB", 9 },
  { "10,000 waiting Ats: resident", at_10000 and numbers(of "memory.%s.ats_many.VmRSS", MIB) or {}, "%.1f MiB", 13 },
  { "10,000 Ats and 10,000 pods: resident",
    at_10000 and numbers(of "memory.%s.pods_many.VmRSS", MIB) or {}, "%.1f MiB", 30 },
  { "… at its highest, while it started",
    at_10000 and numbers(of "memory.%s.pods_many.VmHWM", MIB) or {}, "%.1f MiB", 30 },
  { "… of a development build that saw each come", at_10000 and numbers("memory.grown.pods_many.VmRSS", MIB) or {},
    "%.1f MiB", 30 },
  { "1,000 lifecycles: CPU of the host", numbers(of "life.%s.host_cpu"), "%.2f s", 0.6 },
  { "1,000 lifecycles: most resident", numbers(of "life.%s.VmHWM", MIB), "%.1f MiB", 12 },
  { "1,000 lifecycles: CPU of the API server", numbers(of "life.%s.server_cpu"), "%.1f s", 14 },
  { "writes per At that was due already", numbers "writes.due", "%.2f", 3 },
  { "writes per At that waited", numbers "writes.waited", "%.2f", 4 },
  { "200 due at once: lateness p50", numbers "late.200.host.made_p50", "%.2f s", 0.2 },
  { "200 due at once: lateness p99", numbers "late.200.host.made_p99", "%.2f s", 0.4 },
  { "1,000 due at once: p50, times the bare client", ratios(1000, "made_p50"), "%.2f", 1.2 },
  { "1,000 due at once: p99, times the bare client", ratios(1000, "made_p99"), "%.2f", 1.2 },
  { "200 due at once beside hostile scripts: the last pod later by", hostile_delay "made_max", "%.2f s", 0.5 },
  { "write of the ConfigMap to the first pod under the new script",
    numbers("reload.alone.asked", MS), "%.0f ms", 1000 },
  { "… among 1,000 other Ats", numbers("reload.among1000.asked", MS), "%.0f ms", 1000 },
  { "an edit of a script of 220 lines over 100 Ats: until it is live, with its plan",
    numbers("edit.few.guarded", MS), "%.0f ms", 50 },
  { "… the one that took longest", longest("edit.few.guarded", MS), "%.0f ms", 50 },
  { "… without a plan (`--rollout immediate`)", numbers("edit.few.immediate", MS), "%.0f ms", 50 },
  { "… over 10,000 Ats, with its plan", (numbers("edit.count")[1] or 0) == 10000
    and numbers("edit.many.guarded", MS) or {}, "%.0f ms", 1000 },
  { "`moonloop plan` over 10,000 Ats", (numbers("edit.count")[1] or 0) == 10000 and numbers "edit.plan.seconds" or {},
    "%.1f s", 5 },
  { "… at its highest", (numbers("edit.count")[1] or 0) == 10000 and numbers("edit.plan.VmHWM", MIB) or {}, "%.0f MiB",
    64 },
  { "`moonloop check` of database.lua", numbers("edit.check", MS), "%.0f ms", 50 },
  { "`moonloop status` of a host over 10,000 Ats", (numbers("edit.count")[1] or 0) == 10000
    and numbers("edit.ask.status", MS) or {}, "%.0f ms", 100 },
  { "`moonloop why` there", (numbers("edit.count")[1] or 0) == 10000 and numbers("edit.ask.why", MS) or {}, "%.0f ms",
    100 },
  { "`moonloop top --once` there", (numbers("edit.count")[1] or 0) == 10000 and numbers("edit.ask.top", MS) or {},
    "%.0f ms", 100 },
  { "an edit in the flood of a start: from its event to its pod asked for, p50",
    numbers("overtake.flood.own_p50", MS), "%.0f ms", 50 },
  { "… p99", numbers("overtake.flood.own_p99", MS), "%.0f ms", 50 },
  { "the leader is killed: until another one leads", numbers "failover.KILL.leads", "%.1f s", 20 },
  { "the leader ends: until another one leads", numbers "failover.TERM.leads", "%.2f s", 1 },
  { "100,000 pods of cnat cached: resident",
    cached_100000 and numbers(of "cache.%s.many.VmRSS", MIB) or {}, "%.1f MiB", 30 },
  { "a pod of 6 KB in the cache, beside its kind's dictionary", cached_bytes "large", "%.0f bytes", 1024 },
  { "20,000 events a second of so many pods: lag at most", numbers("cache.many.20000.lag_max"), "%.2f s", 1 },
  { "… CPU of the host for a second of them", numbers("cache.many.20000.cpu_us", 20000 / 1e6), "%.2f s", 1 },
  { "… with an At for each, reconciled at every event", numbers("cache.owned.20000.cpu_us", 20000 / 1e6), "%.2f s", 1 },
  { "one more time zone that a script uses", zone_bytes(), "%.0f bytes", 8192 },
  { "soak: lateness of the last pod", numbers "soak.made_max", "%.2f s", 2 },
  { "soak: memory of the cgroup at its highest", numbers("soak.cgroup_max", MIB), "%.1f MiB", 30 },
  { "flapping: times that /healthz was not 200", numbers "flapping.dead", "%.0f", 0 },
  { "flapping: lists of a kind and outage", numbers "flapping.lists_max", "%.0f", 1 },
  { "`moonloop dev`: exec to the first answer", numbers("embedded.answered", MS), "%.0f ms", 100 },
  { "… with `--controllers none`", numbers("embedded.alone", MS), "%.0f ms", 30 },
  { "100 watchers at 1,000 events a second: events lost", numbers "embedded.watchers.lost", "%.0f", 0 },
  { "50 rules in CEL: time they add to a write", numbers("embedded.rules.added", 1 / 1000), "%.3f ms", 0.2 },
  { "an admission webhook that allows: time it adds to a write, p50",
    numbers("embedded.webhook.added_p50", MS), "%.2f ms", 1 },
  { "a webhook of a script: time it adds to a write, p50",
    numbers("webhooks.admission.added_p50", MS), "%.2f ms", 1 },
  { "… 1,000 a second while it is edited: failed, or of two versions",
    numbers "webhooks.1000.swapped.failed", "%.0f", 0 },
  { "1,000 Databases, RedisClusters and Tenants, three operators: resident",
    (numbers("operators.count")[1] or 0) == 1000 and numbers(of "operators.%s.VmRSS", MIB) or {}, "%.1f MiB", 30 },
  { "… of a process that saw each come", (numbers("operators.count")[1] or 0) == 1000
    and numbers("operators.grown.VmRSS", MIB) or {}, "%.1f MiB", 30 },
  { "a pod in namespaces: from its create until it runs, p50", numbers("embedded.starts.p50", MS), "%.1f ms", 15 },
  { "a ConfigMap is changed: until a pod that runs has it in its volume, p50",
    numbers("embedded.changes.p50", MS), "%.0f ms", 2000 },
  { "… the one that took longest", numbers("embedded.changes.longest", MS), "%.0f ms", 2000 },
  { "a Service: time it adds to a request from pod to pod, p50",
    numbers("embedded.hops.added_p50", MS), "%.2f ms", 0.2 },
  { "`moonloop test reconcilers/`", numbers("embedded.test", MS), "%.0f ms", 100 },
  { "300 CRDs, in process: until all are established", numbers "embedded.crds.seconds", "%.1f s", 9 },
  { "… resident then", numbers("embedded.crds.VmRSS"), "%.0f MiB", 120 },
  { "… resident when all of OpenAPI was asked for, too", numbers "embedded.crds.VmRSS_openapi", "%.0f MiB", 120 },
  { "… the first `/openapi/v2`", numbers "embedded.crds.openapi_v2", "%.2f s", 1 },
  { "… the second, in gzip's format", numbers "embedded.crds.openapi_v2_second", "%.2f s", 0.3 },
}


-- Of these more is better.
local least = {
  { "events of cached pods a second, as fast as they are taken", numbers "cache.many.all.rate", "%.0f", 20000 },
  { "embedded server, in process: creates a second", numbers "embedded.inprocess.create", "%.0f", 20000 },
  { "embedded server, TLS, one connection: creates a second", numbers "embedded.tls1.creates", "%.0f", 3000 },
  { "embedded server, TLS, 16 connections: creates a second", numbers "embedded.tls16.creates", "%.0f", 3000 },
  { "embedded server, TLS, 16 connections: gets a second", numbers "embedded.tls16.gets", "%.0f", 3000 },
}


local function verdict(list, target, wants_more)
  if #list == 0 then return "" end
  local over = target == 0 and (median(list) > 0 and 1 or 0) or median(list) / target - 1
  if wants_more then
    return over >= 0 and ("met, %.0f %% above"):format(over * 100) or ("**missed by %.0f %%**"):format(-over * 100)
  end
  if over <= 0.0005 then return over > -0.0005 and "met" or ("met, %.0f %% below"):format(-over * 100) end
  return ("**missed by %.0f %%**"):format(over * 100)
end


-- ---- pages

local function line(...) print(string.format(...)) end


local function head()
  local loops, low, high = median(numbers "noise.loop_ms")
  line "# Results\n"
  line "Written by `bench/run.sh` (`make bench`); how each figure is taken stands in [README.md](README.md).\n"
  line("- Machine: %s, %s cores, %s, %s; load %s at the beginning", meta "cpu", meta "cores", meta "memory",
    meta "kernel", meta "load")
  line("- Date: %s. Commit: %s. Took %s s%s", meta "date", meta "commit", meta "seconds",
    quick and ", the quick form" or "")
  line("- Noise: a fixed loop took %.0f ms, from %.0f to %.0f between the scenarios", loops, low, high)
  line("- Figures are medians (lowest to highest in how many runs). Operator, API server and etcd share the cores")
  line("- Targets are judged on %s\n", subject == "image" and "the image's binary" or
    "the development build, whose shared libraries cost 4 MiB more and 5 ms: the image's binary was not there")
end


local function target_table()
  line "## Targets\n"
  line "| | target | measured | |\n|---|---|---|---|"
  for _, row in ipairs(targets) do
    local what, list, format, target = table.unpack(row)
    if #list > 0 then
      line("| %s | ≤ %s | %s | %s |", what, format:gsub("%%%.%df", "%%g"):format(target), spread(list, format),
        verdict(list, target))
    end
  end
  for _, row in ipairs(least) do
    local what, list, format, target = table.unpack(row)
    if #list > 0 then
      line("| %s | ≥ %d | %s | %s |", what, target, spread(list, format), verdict(list, target, true))
    end
  end
  line ""
end


local function lateness_table(count)
  if not bare_of(count) then return end
  line("### %d due in the same second\n", count)
  line "| seconds after the instant | create asked p50 | asked p99 | pod made p50 | made p99 | made, last |"
  line "|---|---|---|---|---|---|"
  local clients = {
    { "host", "moonloop" },
    { "bare-some", "bare client, 32 at a time" },
    { "bare-all", "bare client, all at once" },
  }
  for _, who in ipairs(clients) do
    local cells = {}
    for i, quantile in ipairs { "asked_p50", "asked_p99", "made_p50", "made_p99", "made_max" } do
      cells[i] = spread(numbers(("late.%d.%s.%s"):format(count, who[1], quantile)), "%.3f")
    end
    line("| %s | %s |", who[2], table.concat(cells, " | "))
  end
  line("\nmoonloop over the %s, pair by pair: p50 %s, p99 %s.\n",
    bare_of(count) == "bare-all" and "bare client that asks for all at once" or "bare client with 32 at a time",
    spread(ratios(count, "made_p50"), "%.2f"), spread(ratios(count, "made_p99"), "%.2f"))
end


local function hostile_table()
  line "### Beside hostile scripts\n"
  line "200 Ats due in the same second, in pairs: cnat alone, and beside `spec/e2e/fixtures/hostile` in one process.\n"
  line "| seconds after the instant | pod made p50 | made p99 | made, last | CPU of the host |"
  line "|---|---|---|---|---|"
  for _, who in ipairs { "alone", "beside" } do
    local cells = {}
    for i, quantile in ipairs { "made_p50", "made_p99", "made_max" } do
      cells[i] = spread(numbers(("hostile.%s.%s"):format(who, quantile)), "%.3f")
    end
    line("| %s | %s | %s |", who, table.concat(cells, " | "),
      spread(numbers(("hostile.%s.cpu"):format(who), 1 / MS), "%.2f s"))
  end
  line ""
end


local MEMORY_ROWS = {
  { "idle.%s", "idle" },
  { "memory.%s.ats_few", "Ats waiting: few" },
  { "memory.%s.ats_many", "Ats waiting: many" },
  { "memory.%s.pods_few", "… and pods that have ended: few" },
  { "memory.%s.pods_many", "… and pods: many" },
  { "life.%s", "after 1,000 lifecycles" },
  { "operators.%s", "Databases, RedisClusters and Tenants, three operators" },
}


local function memory_table()
  local few, many = numbers("memory.few")[1], numbers("memory.many")[1]
  line "## Memory\n"
  if few then line("Few is %d, many is %d.\n", few, many) end
  local each = numbers("operators.count")[1]
  if each then line("Of Databases, RedisClusters and Tenants there are %d each.\n", each) end
  line "| MiB | build | resident | anonymous | proportional | highest |\n|---|---|---|---|---|---|"
  for _, row in ipairs(MEMORY_ROWS) do
    for _, build in ipairs { "image", "development", "grown" } do
      local cells = {}
      for i, field in ipairs { "VmRSS", "RssAnon", "Pss", "VmHWM" } do
        cells[i] = spread(numbers(row[1]:format(build) .. "." .. field, MIB), "%.1f")
      end
      if cells[1] ~= "not measured" then
        line("| %s | %s | %s |", row[2], build == "grown" and "development, saw each come" or build,
          table.concat(cells, " | "))
      end
    end
  end
  if few then
    line "\n| bytes for one more object | resident | handed out by malloc |\n|---|---|---|"
    for _, kind in ipairs { "ats", "pods" } do
      local from, to = ("memory.grown.%s_few"):format(kind), ("memory.grown.%s_many"):format(kind)
      line("| %s | %s | %s |", kind == "ats" and "At" or "pod",
        spread(slope(from .. ".VmRSS", to .. ".VmRSS", 1024), "%.0f"),
        spread(slope(from .. ".heap", to .. ".heap"), "%.0f"))
    end
  end
  for _, build in ipairs { "image", "development" } do
    local size = numbers("size." .. build, 1 / 1024)[1]
    if size then
      line("\nThe binary of the %s%s is a file of %.0f KiB.", build, build == "development" and " build" or "", size)
    end
  end
  line ""
end


local function start_table()
  line "## Start\n"
  line "| ms | build | exec to ready | exec to the first pod's create |\n|---|---|---|---|"
  for _, build in ipairs { "image", "development" } do
    if figures[of("start.%s.ready", build)][1] then
      line("| | %s | %s | %s |", build, spread(numbers(of("start.%s.ready", build), MS), "%.1f"),
        spread(numbers(of("start.%s.pod", build), MS), "%.1f"))
    end
  end
  line ""
end


local function overtake_table()
  local count = numbers("overtake.count")[1]
  if not count then return end
  line "## An edit in the flood of a start\n"
  line "| ms to its pod asked for | from the edit's answer: p50 | p99 | most | from its event: p50 | p99 | most |"
  line "|---|---|---|---|---|---|---|"
  for _, row in ipairs { { "flood", ("while %d Ats are worked off"):format(count) }, { "calm", "afterwards" } } do
    local cells = {}
    for i, quantile in ipairs { "asked_p50", "asked_p99", "asked_max", "own_p50", "own_p99", "own_max" } do
      cells[i] = spread(numbers(("overtake.%s.%s"):format(row[1], quantile), MS), "%.0f")
    end
    line("| %s | %s |", row[2], table.concat(cells, " | "))
  end
  line ""
end


local function lifecycle_table()
  line "## 1,000 lifecycles\n"
  line "| build | seconds in all | CPU-s of the host | CPU-s of the API server |\n|---|---|---|---|"
  for _, build in ipairs { "image", "development" } do
    if figures[of("life.%s.wall", build)][1] then
      line("| %s | %s | %s | %s |", build, spread(numbers(of("life.%s.wall", build)), "%.1f"),
        spread(numbers(of("life.%s.host_cpu", build)), "%.2f"),
          spread(numbers(of("life.%s.server_cpu", build)), "%.1f"))
    end
  end
  local bare = numbers "floor.cpu"
  if bare[1] then
    line("| bare_operator | | %s | |", spread(bare, "%.2f"))
    line("\nOf the bare one's, seconds in user mode %s, in the kernel %s; PROFILE.md says of what.",
      spread(numbers "floor.user", "%.2f"), spread(numbers "floor.system", "%.2f"))
  end
  line ""
end


local function writes_table()
  local names = {}
  for name in pairs(figures) do
    if name:match "^writes%.%a+%." then names[#names + 1] = name end
  end
  table.sort(names)
  line "## Writes per At\n"
  line "| | write | per At |\n|---|---|---|"
  for _, name in ipairs(names) do
    local when, what = name:match "^writes%.(%a+)%.(.*)$"
    line("| %s | %s | %s |", when == "due" and "due already" or "waited", what:gsub("_", " "),
      spread(numbers(name), "%.3f"))
  end
  line ""
end


local function cache_table()
  line "## Cache\n"
  line "| pods | resident | CPU per event | events a second | lag at 20,000 a second, most | CPU per event then |"
  line "|---|---|---|---|---|---|"
  local many = numbers("cache.many")[1] or 0
  for _, row in ipairs {
    { "few", "10,000 and 1,000 Ats" },
    { "many", ("%d and 1,000 Ats"):format(many) },
    { "owned", ("%d, each with its At"):format(many) },
    { "large", "10,000 of 6 KB and 1,000 Ats" },
  } do
    local name = "cache." .. row[1]
    line("| %s | %s | %s | %s | %s | %s |", row[2],
      spread(numbers(of("cache.%s." .. row[1] .. ".VmRSS"), MIB), "%.1f MiB"),
      spread(numbers(name .. ".all.cpu_us"), "%.1f µs"), spread(numbers(name .. ".all.rate"), "%.0f"),
      spread(numbers(name .. ".20000.lag_max"), "%.3f s"), spread(numbers(name .. ".20000.cpu_us"), "%.1f µs"))
  end
  line("\nBytes handed out by malloc for one more pod: %s of 1.4 KB, %s of 6 KB.\n",
    spread(cached_bytes "small", "%.0f"), spread(cached_bytes "large", "%.0f"))
end


local function recovery_table()
  line "## Recovery\n"
  line "| | |\n|---|---|"
  for _, row in ipairs {
    { "requests per useful change, nothing in the way", "recovery.calm.requests", "%.3f" },
    { "… connections cut every two seconds", "recovery.cut.requests", "%.3f" },
    { "cut to the last watch asked for again: p50", "recovery.cut.watched_p50", "%.1f ms", MS },
    { "… longest", "recovery.cut.watched_max", "%.1f ms", MS },
    { "cut to the next pod made: p50", "recovery.cut.pod_p50", "%.1f ms", MS },
    { "… longest", "recovery.cut.pod_max", "%.1f ms", MS },
    { "lists of a kind after a cut, at most", "recovery.cut.lists_max", "%.0f" },
  } do
    line("| %s | %s |", row[1], spread(numbers(row[2], row[4]), row[3]))
  end
  line ""
end


-- Writes the figures of a long run, one below the other.
local function long_table(title, name, rows)
  line("## %s, %s minutes\n", title, figures[name .. ".minutes"][1])
  line "| | |\n|---|---|"
  for _, row in ipairs(rows) do
    line("| %s | %s |", row[1], spread(numbers(name .. "." .. row[2], row[4]), row[3]))
  end
  line ""
end


local SOAK_ROWS = {
  { "Ats made and finished", "made", "%.0f" },
  { "lateness of a pod: p50", "made_p50", "%.2f s" },
  { "… p99", "made_p99", "%.2f s" },
  { "… last", "made_max", "%.2f s" },
  { "resident at first", "rss_first", "%.1f MiB", MIB },
  { "… at last", "rss_last", "%.1f MiB", MIB },
  { "… at its highest", "rss_max", "%.1f MiB", MIB },
  { "… more in the last quarter of the time than in the second", "rss_growth", "%.0f KiB" },
  { "the cgroup's memory at its highest", "memory_peak", "%.1f MiB", 1 / 1048576 },
  { "periods of 100 ms with something to do", "nr_periods", "%.0f" },
  { "… of them throttled", "nr_throttled", "%.0f" },
}

local FLAPPING_ROWS = {
  { "outages", "outages", "%.0f" },
  { "Ats made and finished", "made", "%.0f" },
  { "descriptors at first", "fds_first", "%.0f" },
  { "… at most", "fds_max", "%.0f" },
  { "… at last", "fds_last", "%.0f" },
  { "resident at first", "rss_first", "%.1f MiB", MIB },
  { "… at its highest", "rss_max", "%.1f MiB", MIB },
  { "… at last", "rss_last", "%.1f MiB", MIB },
  { "… more in the last quarter of the time than in the second", "rss_growth", "%.0f KiB" },
  { "times that /healthz was not 200", "dead", "%.0f" },
  { "share of the seconds with /readyz 200", "ready", "%.2f" },
  { "lists of a kind and outage, at most", "lists_max", "%.0f" },
  { "back to the last watch asked for: p50", "watched_p50", "%.2f s" },
  { "… longest", "watched_max", "%.2f s" },
}


local function embedded_table()
  line "## The embedded server\n"
  line "| | | |\n|---|---|---|"
  for _, row in ipairs {
    { "resident, empty", "embedded.VmRSS.empty", "%.1f MiB", MIB },
    { "resident, 10,000 ConfigMaps of 1 KB", "embedded.VmRSS.full", "%.1f MiB", MIB },
    { "gets a second, TLS, one connection", "embedded.tls1.gets", "%.0f" },
    { "gets a second, in process", "embedded.inprocess.get", "%.0f" },
    { "300 CRDs: the text of all", "embedded.crds.MiB_sent", "%.1f MiB" },
    { "… the slowest of them", "embedded.crds.slowest", "%.2f s" },
    { "… `/openapi/v2` in gzip's format, the first time", "embedded.crds.openapi_v2_gzip", "%.2f s" },
    { "… `/openapi/v2` after a change of one", "embedded.crds.openapi_v2_again", "%.2f s" },
    { "… the index of `/openapi/v3`", "embedded.crds.openapi_v3_index", "%.2f s" },
    { "`make demo` from cache", "embedded.demo", "%.1f s" },
  } do
    line("| %s | %s | |", row[1], spread(numbers(row[2], row[4]), row[3]))
  end
  line ""
end


local function webhooks_table()
  line "## Webhooks of a script\n"
  line "| requests a second | p50 | p99 | p99.9 | CPU of the host for one | failed |\n|---|---|---|---|---|---|"
  for _, row in ipairs {
    { "100.kept", "100, connections kept" }, { "100.fresh", "100, each on a new one" },
    { "1000.kept", "1,000, connections kept" }, { "1000.fresh", "1,000, each on a new one" },
    { "1000.swapped", "1,000, kept, an edit of the script every half second" },
  } do
    local name, cells = "webhooks." .. row[1] .. ".", {}
    for i, quantile in ipairs { "p50", "p99", "p999" } do
      cells[i] = spread(numbers(name .. "took_" .. quantile, MS), "%.2f ms")
    end
    line("| %s | %s | %s | %s |", row[2], table.concat(cells, " | "), spread(numbers(name .. "cpu", MS), "%.2f ms"),
      spread(numbers(name .. "failed"), "%.0f"))
  end
  line("\nA create at the API server, one after the other: p50 %s without the webhook, %s with it.\n",
    spread(numbers("webhooks.admission.alone_p50", MS), "%.2f ms"),
    spread(numbers("webhooks.admission.asked_p50", MS), "%.2f ms"))
end


local function codec_text()
  local file = io.open(folder .. "/codec.txt")
  if not file then return end
  line "## JSON codec\n\n```"
  io.write(file:read "a")
  line "```"
  file:close()
end


local function failover_table()
  line "## Failover\n"
  line "| | another one leads | … and has made what was due |\n|---|---|---|"
  for _, row in ipairs { { "the leader is killed", "KILL" }, { "the leader ends", "TERM" } } do
    line("| %s | %s | %s |", row[1], spread(numbers(("failover.%s.leads"):format(row[2])), "%.2f s"),
      spread(numbers(("failover.%s.pod"):format(row[2])), "%.2f s"))
  end
  line ""
end


head()
target_table()
if bare_of(200) then
  line "## Lateness\n"
  lateness_table(200)
  lateness_table(1000)
end
if figures["hostile.beside.made_max"][1] then hostile_table() end
overtake_table()
if figures["life." .. subject .. ".wall"][1] then lifecycle_table() end
if figures["writes.due"][1] or figures["writes.waited"][1] then writes_table() end
if figures["start." .. subject .. ".pod"][1] then start_table() end
if figures["idle." .. subject .. ".VmRSS"][1] or figures["memory.few"][1] or figures["operators.count"][1] then
  memory_table()
end
if figures["cache.many"][1] then cache_table() end
if figures["recovery.calm.requests"][1] then recovery_table() end
if figures["failover.KILL.leads"][1] then failover_table() end
if figures["soak.minutes"][1] then long_table("Soak", "soak", SOAK_ROWS) end
if figures["flapping.minutes"][1] then long_table("Flapping", "flapping", FLAPPING_ROWS) end
if figures["embedded.answered"][1] then embedded_table() end
if figures["webhooks.100.kept.failed"][1] then webhooks_table() end
codec_text()
