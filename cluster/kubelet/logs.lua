--- Files with the output of containers: one for each run, at most LOG_MAX bytes and as many older ones.
---
--- A line of a file, with its newline, is "TIME F text" or, where the container wrote no newline, "TIME P text", as
--- container runtimes write them. Followers get each line as it comes.
local host = require "cluster.host"

local M = {}
M.__index = M

local Log = {}
Log.__index = Log

local LOG_MAX = 10 * 1024 * 1024 -- containerLogMaxSize of the kubelet
local RUNS_MAX = 2 -- of a container: this one, and the one before for `kubectl logs --previous`
local LINE_MAX = 16 * 1024 -- longer lines come in parts, as with container runtimes


--- @param directory string an existing folder that belongs to this store alone
--- @param on_line function? (pod, container, line) is told every line of every container, as it is kept
function M.new(directory, on_line)
  return setmetatable({ directory = directory, on_line = on_line, pods = {} }, M)
end


-- For its owner alone. A file, or nil.
local function open_anew(path)
  return host.file.make(path) and io.open(path, "w") or nil
end


--- A log for one run. Where the file cannot be made, nothing is kept, and followers are told all the same.
function M:open(pod, container, attempt)
  local path = ("%s/%s_%s_%d.log"):format(self.directory, pod.metadata.uid, container, attempt)
  local log = setmetatable({ path = path, file = open_anew(path), size = 0, rests = {}, followers = {} }, Log)
  if self.on_line then
    log:follow(function(line)
      if line then
        self.on_line(pod, container, line)
      end
    end)
  end
  local containers = self.pods[pod.metadata.uid] or {}
  local runs = containers[container] or {}
  self.pods[pod.metadata.uid] = containers
  containers[container] = runs
  table.insert(runs, log)
  while #runs > RUNS_MAX do
    table.remove(runs, 1):remove()
  end
  return log
end


--- The log of the latest run of a container, or with `previous` of the one before; nil when there is none.
function M:find(pod, container, previous)
  local runs = (self.pods[pod.metadata.uid] or {})[container] or {}
  return runs[#runs - (previous and 1 or 0)]
end


--- Removes all logs of a pod.
function M:forget(pod)
  for _, runs in pairs(self.pods[pod.metadata.uid] or {}) do
    for _, log in ipairs(runs) do
      log:close()
      log:remove()
    end
  end
  self.pods[pod.metadata.uid] = nil
end


local function keep(self, text)
  if not self.file then
    return
  end
  if self.size + #text > LOG_MAX then
    self.file:close()
    os.rename(self.path, self.path .. ".1")
    self.file = open_anew(self.path)
    self.size = 0
  end
  -- On a full disk lines are lost; the container is not disturbed.
  if self.file and self.file:write(text) and self.file:flush() then
    self.size = self.size + #text
  end
end


-- Keeps lines all at once: a container may print a great many.
local function add(self, lines)
  if #lines == 0 then
    return
  end
  keep(self, table.concat(lines))
  for _, follower in ipairs(self.followers) do
    for _, line in ipairs(lines) do
      follower(line)
    end
  end
end


--- Takes in what the container printed, in pieces as they come.
--- @param stream string? "output" (if not given) or "errors"; each has its own lines
function Log:write(bytes, stream)
  stream = stream or "output"
  local ended, parted = host.timestamp_micro() .. " F ", nil
  local text, lines, at = (self.rests[stream] or "") .. bytes, {}, 1
  while true do
    local stop = text:find("\n", at, true)
    if not stop then
      break
    end
    lines[#lines + 1] = ended .. text:sub(at, stop)
    at = stop + 1
  end
  local rest = text:sub(at)
  while #rest >= LINE_MAX do
    parted = parted or ended:gsub("F $", "P ")
    lines[#lines + 1] = parted .. rest:sub(1, LINE_MAX) .. "\n"
    rest = rest:sub(LINE_MAX + 1)
  end
  self.rests[stream] = rest
  add(self, lines)
end


--- The run is over: followers are told nil.
function Log:close()
  if self.is_closed then
    return
  end
  self.is_closed = true
  for _, stream in ipairs { "output", "errors" } do
    local rest = self.rests[stream] or ""
    if rest ~= "" then
      add(self, { ("%s P %s\n"):format(host.timestamp_micro(), rest) })
    end
  end
  if self.file then
    self.file:close()
    self.file = nil
  end
  local followers = self.followers
  self.followers = {}
  for _, follower in ipairs(followers) do
    follower(nil)
  end
end


function Log:remove()
  os.remove(self.path)
  os.remove(self.path .. ".1")
end


--- The lines so far, oldest first, as an iterator.
function Log:lines()
  local names, file = { self.path .. ".1", self.path }, nil
  return function()
    while true do
      local line = file and file:read "L"
      if line then
        return line
      end
      if file then
        file:close()
      end
      local name = table.remove(names, 1)
      if not name then
        file = nil
        return nil
      end
      file = io.open(name)
    end
  end
end


--- Calls fn(line) for each further line, and fn(nil) at the end, unless it has been before.
--- @return function that ends it
function Log:follow(fn)
  table.insert(self.followers, fn)
  return function()
    local others = {} -- a new list: this may be called by one who is being told
    for _, follower in ipairs(self.followers) do
      if follower ~= fn then
        others[#others + 1] = follower
      end
    end
    self.followers = others
  end
end


return M
