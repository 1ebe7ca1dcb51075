--- Plays a scenario against a server and writes down, in a form that can be compared, what was answered.
---
--- A transcript is a list with one entry a step that was answered: `source` (the step as the scenario has it) and
--- the fields that are compared: `code`, `headers`, `body`, `events`, or `exit`, `stdout`, `stderr`.
local host = require "cluster.host"
local normalize = require "cluster.spec.conformance.lib.normalize"
local files = require "cluster.spec.conformance.lib.files"
local paths = require "cluster.spec.conformance.lib.path"
local transcripts = require "cluster.spec.conformance.lib.transcript"

local M = {}

local PATIENCE = 40 -- seconds, for what a server does in its own time
local POLL = 0.05


-- $NAME and ${repeat:text:count} in a text. Names that nobody set stay as they are.
local function fill(text, variables)
  text = text:gsub("%${repeat:([^}]-):(%d+)}", function(piece, count)
    return piece:rep(math.tointeger(tonumber(count)))
  end)
  return (text:gsub("%$(%u[%u%d_]*)", variables))
end


-- Bodies are YAML that is sent as JSON, for the sake of who reads them, unless they are written after a bar.
local function body_of(step, variables)
  if not step.body then
    return nil
  end
  local text = fill(step.body, variables)
  local kind = step.headers["content-type"]
  if step.raw or kind == "application/yaml" or kind == "application/vnd.kubernetes.protobuf" then
    return text
  end
  local documents = assert(host.yaml.decode(text), "the body is no YAML")
  return host.json.encode(documents[1])
end


-- A prefix for a generated name, where a body has one.
local function generated_prefix(body)
  return body and body:match('"generateName":"([^"]*)"')
end


local function request_of(run, step)
  local headers = {}
  for name, value in pairs(step.headers) do
    headers[name] = fill(value, run.variables)
  end
  local body = body_of(step, run.variables)
  if generated_prefix(body) then
    run.normalizer:expect_generated(generated_prefix(body))
  end
  if body and not headers["content-type"] then
    headers["content-type"] = "application/json"
  end
  return { method = step.method, path = fill(step.path, run.variables), headers = headers, body = body }
end


local function decoded(answer)
  local kind = answer.headers["content-type"] or ""
  if kind:find("json", 1, true) and answer.body ~= "" then
    return host.json.decode(answer.body) or answer.body
  end
  return answer.body
end


local function holds(wait, answer, variables)
  if wait.code then
    return answer.code == wait.code
  end
  local body = decoded(answer)
  local value = type(body) == "table" and paths.get(body, wait.path)
  return tostring(value) == fill(wait.value, variables)
end


-- A real server may serve a custom resource once more as it was, after it has shown a change of the definition, and
-- sets its storage up anew only then. A request that it refuses meanwhile was not done.
local function is_to_come_again(answer)
  return answer.code == 429 and answer.body:find("storage is (re)initializing", 1, true)
end


-- Asks until the answer is as the step wants it; the last answer counts.
local function ask(run, step)
  local request = request_of(run, step)
  local answer = run.transport:request(request)
  local waited = 0
  while is_to_come_again(answer) or step.wait and not holds(step.wait, answer, run.variables) do
    waited = waited + POLL
    if waited > PATIENCE then
      run.problem(step, ("waited %d s; last answer: %d %s"):format(PATIENCE, answer.code, answer.body:sub(1, 300)))
      break
    end
    run.transport:pass(POLL)
    answer = run.transport:request(request)
  end
  return answer
end


local function keep(run, step, body)
  for _, wish in ipairs(step.keep) do
    local value = paths.get(body, wish.path)
    if value == nil then
      run.problem(step, "nothing to keep at " .. wish.path)
    end
    run.variables[wish.name] = value ~= nil and tostring(value) or ""
  end
end


-- Returns the part of a normalized body that is compared.
local function chosen(step, body)
  if type(body) ~= "table" then
    return body
  end
  for _, path in ipairs(step.ignore) do
    paths.remove(body, path)
  end
  if not step.only then
    return body
  end
  local part = {}
  for _, path in ipairs(step.only) do
    part[path] = host.json.array(paths.all(body, path))
  end
  return part
end


local function check_code(run, step, answer)
  if step.expect and step.expect ~= answer.code then
    run.problem(step, ("expected %d, got %d %s"):format(step.expect, answer.code, answer.body:sub(1, 300)))
  end
end


-- One function a word that steps do; each returns what the transcript keeps, or nil.
local STEPS = {}


function STEPS.request(run, step)
  local answer = ask(run, step)
  check_code(run, step, answer)
  local body = decoded(answer)
  keep(run, step, body)
  return {
    code = answer.code,
    headers = run.normalizer:headers(answer.headers),
    body = chosen(step, run.normalizer:value(body)),
  }
end


function STEPS.watch(run, step)
  local stream = run.transport:stream(request_of(run, step))
  run.streams[step.name] = stream
  run.streams[#run.streams + 1] = stream
  check_code(run, step, { code = stream.code, body = "" })
  return { code = stream.code, headers = run.normalizer:headers(stream.headers) }
end


-- The whole lines of a stream so far.
local function lines_of(stream)
  local lines = {}
  for line in stream.read():gmatch("([^\n]*)\n") do
    lines[#lines + 1] = line
  end
  return lines
end


-- Bookmarks tell of nothing but versions that pass; the one that ends the initial events is an event.
local function event_of(run, line)
  local event = host.json.decode(line)
  if type(event) ~= "table" then
    return line
  end
  local metadata = type(event.object) == "table" and event.object.metadata or {}
  if event.type == "BOOKMARK" then
    if not (metadata.annotations or {})["k8s.io/initial-events-end"] then
      return nil
    end
    metadata.resourceVersion = "<version>"
  end
  return run.normalizer:value(event)
end


local function events_so_far(stream)
  local count = 0
  for _, line in ipairs(lines_of(stream)) do
    local is_bookmark = line:find('^{"type":"BOOKMARK"') and not line:find("initial-events-end", 1, true)
    count = count + (is_bookmark and 0 or 1)
  end
  return count
end


function STEPS.events(run, step)
  local stream = assert(run.streams[step.name], "no watch of that name")
  local waited = 0
  local function enough()
    return step.count and events_so_far(stream) >= step.count or stream.closed()
  end
  while not enough() do
    run.transport:pass(POLL)
    waited = waited + POLL
    if waited > PATIENCE then
      run.problem(step, "waited for events; got " .. stream.read():sub(1, 500))
      break
    end
  end
  stream.stop()
  local events = host.json.array {}
  for _, line in ipairs(lines_of(stream)) do
    local event = event_of(run, line)
    events[#events + 1] = event and chosen(step, event)
  end
  return { events = events }
end


function STEPS.file(run, step)
  files.write(run.variables.TMP .. "/" .. step.name, fill(step.body, run.variables) .. "\n")
end


function STEPS.command(run, step)
  local stdin = step.body and run.variables.TMP .. "/stdin" or "/dev/null"
  if step.body then
    files.write(stdin, fill(step.body, run.variables) .. "\n")
  end
  local said = run.variables.TMP .. "/stderr"
  local environment = ("cd %s; export KUBECONFIG=%s KUBECACHEDIR=%s HOME=%s PATH=%s:$PATH\n"):format(
    files.quote(run.variables.TMP), files.quote(run.kubeconfig), files.quote(run.variables.TMP .. "/cache"),
    files.quote(run.variables.TMP), files.quote(run.kubectl_folder))
  local script = environment .. fill(step.command, run.variables)
  local stdout, exit = files.run(("timeout 60 bash -c %s <%s 2>%s"):format(
    files.quote(script), files.quote(stdin), files.quote(said)))
  if step.expect and step.expect ~= exit then
    run.problem(step, ("expected exit code %d, got %d: %s"):format(step.expect, exit, files.read(said)))
  end
  return {
    exit = exit,
    stdout = run.normalizer:printed(stdout),
    stderr = run.normalizer:printed(files.read(said)),
  }
end


local function play_step(run, step)
  local ok, entry = pcall(STEPS[step.does], run, step)
  if not ok then
    entry = { code = 0, body = tostring(entry) }
    run.problem(step, entry.body)
  end
  if entry then
    entry.source = step.source
    entry.line = step.line
    run.transcript[#run.transcript + 1] = entry
  end
end


local function send(run, method, path, body)
  return run.transport:request {
    method = method, path = path, headers = { ["content-type"] = "application/json" },
    body = body and host.json.encode(body),
  }
end


-- The namespace of the scenario, with what controllers put into each: whatever comes later finds them there.
local function prepare(run)
  local ns = run.variables.NS
  send(run, "POST", "/api/v1/namespaces", { metadata = { name = ns } })
  local function there(path)
    return send(run, "GET", "/api/v1/namespaces/" .. ns .. path).code == 200
  end
  local waited = 0
  while waited < PATIENCE and not (there "/serviceaccounts/default" and there "/configmaps/kube-root-ca.crt") do
    run.transport:pass(POLL)
    waited = waited + (run.transport.patience_factor or 1) * POLL
  end
end


local function clean_up(run, scenario)
  for _, stream in ipairs(run.streams) do
    stream.stop()
  end
  send(run, "DELETE", "/api/v1/namespaces/" .. run.variables.NS)
  files.remove(run.variables.TMP)
  if not scenario.text:find("$GROUP", 1, true) then
    return
  end
  local crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
  local list = host.json.decode(send(run, "GET", crds).body) or {}
  for _, crd in ipairs(list.items or {}) do
    if crd.metadata.name:find(run.variables.GROUP, 1, true) then
      send(run, "DELETE", crds .. "/" .. crd.metadata.name)
    end
  end
end


--- Plays a scenario.
---@param scenario table of scenario.parse
---@param transport table request, stream, pass
---@param options table? kubectl_folder: where the kubectl of sessions stands
---@return table transcript
---@return string[] problems what the scenario itself did not expect
function M.play(scenario, transport, options)
  local id = files.random_hex(8)
  local problems = {}
  local run = {
    transport = transport, streams = {}, transcript = {}, kubeconfig = transport.kubeconfig,
    kubectl_folder = options and options.kubectl_folder,
    variables = { NS = "c-" .. id, GROUP = "g" .. id .. ".conformance.dev", TMP = files.folder() },
  }
  run.problem = function(step, message)
    problems[#problems + 1] = ("%s:%d: %s"):format(scenario.name, step.line, message)
  end
  run.normalizer = normalize.new(scenario.text, run.variables)
  prepare(run)
  for _, step in ipairs(scenario.steps) do
    play_step(run, step)
  end
  clean_up(run, scenario)
  transcripts.renumber(run.transcript)
  return run.transcript, problems
end


return M
