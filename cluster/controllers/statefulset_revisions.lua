--- The revisions of a StatefulSet or DaemonSet: one for each template it has had; revisionHistoryLimit limits the old
--- ones.
---
--- Rules: kubernetes/pkg/controller/statefulset/stateful_set_control.go, pkg/controller/daemon/update.go,
--- pkg/controller/history/controller_history.go.
local host = require "cluster.host"
local pods = require "cluster.controllers.pods"

local M = {}

local HASH = "controller.kubernetes.io/hash"
--- The label of a pod with the name of its revision.
M.LABEL = "controller-revision-hash"


local function by_revision(a, b)
  if a.revision ~= b.revision then
    return a.revision < b.revision
  elseif a.metadata.creationTimestamp ~= b.metadata.creationTimestamp then
    return a.metadata.creationTimestamp < b.metadata.creationTimestamp
  end
  return a.metadata.name < b.metadata.name
end


local function new_revision(set, name, hash, number)
  local template, labels = host.json.copy(set.spec.template), host.json.copy((set.spec.template.metadata or {}).labels)
  template["$patch"] = "replace"
  local annotations = host.json.copy(set.metadata.annotations or {})
  labels[set.kind == "DaemonSet" and M.LABEL or HASH] = hash
  return {
    apiVersion = "apps/v1",
    kind = "ControllerRevision",
    metadata = { name = name, labels = labels, annotations = next(annotations) and annotations },
    data = { spec = { template = template } },
    revision = number,
  }
end


--- The template that a revision keeps.
function M.template(revision)
  local template = host.json.copy(revision.data.spec.template)
  template["$patch"] = nil
  return template
end


--- The revision of the present template, made or renumbered when it is not the latest; all, oldest first; and those
--- that keep the same template as it does, which somebody else must have made.
function M.ensure(api, set)
  local all, equal = api.owned(set, "apps", "v1", "controllerrevisions"), {}
  table.sort(all, by_revision)
  for _, known in ipairs(all) do
    equal[#equal + 1] = host.json.equal(M.template(known), set.spec.template) and known or nil
  end
  local latest, current = all[#all], table.remove(equal)
  local number = latest and latest.revision + 1 or 1
  if not current then
    local hash = pods.hash(set.spec.template)
    all[#all + 1] = api.create(new_revision(set, set.metadata.name .. "-" .. hash, hash, number), set)
  elseif current ~= latest then
    for i, known in ipairs(all) do
      if known == current then
        table.remove(all, i)
        break
      end
    end
    all[#all + 1] = api.patch(current, { revision = number })
  end
  return all[#all], all, equal
end


--- The revision that pods had before the update, or the update when there is none.
function M.current(set, all, update)
  for _, revision in ipairs(all) do
    if revision.metadata.name == (set.status or {}).currentRevision then
      return revision
    end
  end
  return update
end


--- The name of a pod's revision.
function M.of(pod)
  return (pod.metadata.labels or {})[M.LABEL]
end


--- Deletes the oldest that nothing needs, as long as there are more than the limit.
function M.truncate(api, set, all, current, update, list)
  local live, old = { [current.metadata.name] = true, [update.metadata.name] = true }, {}
  for _, pod in ipairs(list) do
    live[M.of(pod) or ""] = true
  end
  for _, revision in ipairs(all) do
    old[#old + 1] = not live[revision.metadata.name] and revision or nil
  end
  for i = 1, #old - set.spec.revisionHistoryLimit do
    api.delete(old[i])
  end
end


return M
