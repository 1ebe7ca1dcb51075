--- The message of a container that has ended: the file of terminationMessagePath, or the end of its log.
---
--- Rules: kubernetes/pkg/kubelet/kuberuntime/kuberuntime_container.go (getTerminationMessage, toKubeContainerStatus,
--- readLastStringFromContainerLogs) and container/runtime.go for the limits.
local M = {}

local FILE_MAX = 4096
local LOG_MAX, LINES_MAX = 2048, 80


-- The end of a log, without its times.
local function end_of(log)
  local ring, count = {}, 0
  for line in log:lines() do
    ring[count % LINES_MAX + 1] = line
    count = count + 1
  end
  local texts = {}
  for i = math.max(count - LINES_MAX, 0), count - 1 do
    local mark, text = ring[i % LINES_MAX + 1]:match "^%S+ (%u) (.*)\n$"
    texts[#texts + 1] = text and text .. (mark == "F" and "\n" or "")
  end
  return table.concat(texts):sub(-LOG_MAX)
end


--- @param failure string what is known of the end, "" for nothing
--- @param base userdata the folder (process.open_folder) of all pods
--- @param path string|nil below it, the file for the container's own words
--- @param log table the log of the run, closed  @param code integer  @param policy string|nil
--- @return string|nil
function M.read(failure, base, path, log, code, policy)
  local own_message = path and base:read_end(path, FILE_MAX) or ""
  if own_message == "" and policy == "FallbackToLogsOnError" and code ~= 0 then
    own_message = end_of(log)
  end
  if failure ~= "" and own_message ~= "" then
    return failure .. ": " .. own_message
  end
  local message = failure .. own_message
  return message ~= "" and message or nil
end


return M
