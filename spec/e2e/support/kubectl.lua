-- Runs kubectl as a user does: $KUBECTL, or kubectl of the PATH, on $KUBECONFIG.
local shell = require "spec.e2e.support.shell"

local M = {}

local KUBECTL = os.getenv "KUBECTL" or "kubectl"

--- kubectl WORDS…, which must succeed; returns what it prints.
function M.run(...)
  return shell.must(shell.line { KUBECTL, ... })
end


--- kubectl apply -f of a manifest's text.
function M.apply(manifest)
  local path = shell.path "manifest.yaml"
  shell.write(path, manifest)
  return M.run("apply", "-f", path)
end


--- Makes or replaces a ConfigMap of files, as `kubectl create configmap --from-file` does.
---@param ns string
---@param name string
---@param files table<string, string> content by file name
function M.configmap(ns, name, files)
  local lines = { "apiVersion: v1", "kind: ConfigMap", "metadata:", "  name: " .. name, "  namespace: " .. ns, "data:" }
  for file, text in pairs(files) do
    lines[#lines + 1] = ("  %s: |2"):format(file)
    for line in (text .. "\n"):gmatch("(.-)\n") do
      lines[#lines + 1] = line == "" and "" or "    " .. line
    end
  end
  if not next(files) then
    lines[#lines] = "data: {}"
  end
  return M.apply(table.concat(lines, "\n") .. "\n")
end


return M
