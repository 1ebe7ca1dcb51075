--- Gives the volumes of pods their files, and keeps them as their sources are: ConfigMaps, Secrets, the pod's own
--- labels and annotations, and tokens, which end.
---
--- A change is written within a second. However often sources change, the volumes of a pod are written once a second at
--- most, at last as the last change left them. A volume that cannot be written keeps its files, and a pod starts
--- when all its volumes have theirs. Until then, Events at growing intervals say why.
---
--- Rules: kubernetes/pkg/kubelet/volumemanager (WaitForAttachAndMount), pkg/volume/util/operationexecutor
--- (FailedMount), pkg/util/goroutinemap/exponentialbackoff.
local host = require "cluster.host"
local tokens = require "cluster.kubelet.tokens"

local M = {}
M.__index = M

local SOURCES = { configmaps = true, secrets = true, persistentvolumeclaims = true }
local SOON, INTERVAL = 0.05, 1 -- seconds: changes that come together are one; from one writing to the next
local PAUSE_FIRST, PAUSE_MAX = 0.5, 122 -- between two tries of what failed
local TOKEN_TRY_AGAIN = 30 -- after a token could not be renewed
local TOKEN_LOOK = 60 -- from one look at a token's age to the next: timers stand still while a machine sleeps


--- @param kubelet table with runtime, read, make_token(pod, audience, seconds), and event(pod, …)
function M.new(kubelet)
  return setmetatable({
    kubelet = kubelet,
    pods = {}, -- by uid: see M:follow
    followers = {}, -- by "RESOURCE/NAMESPACE/NAME": set of those
  }, M)
end


-- Calls fn(source) for a volume, or each part of a projected one.
local function each_source(pod, fn)
  for _, volume in ipairs(pod.spec.volumes or {}) do
    fn(volume)
    for _, source in ipairs(volume.projected and volume.projected.sources or {}) do
      fn(source)
    end
  end
end


-- True for the fields of a pod that may change while it runs.
local function changes(item)
  local path = item.fieldRef and item.fieldRef.fieldPath or ""
  return item.resourceFieldRef ~= nil or path:find("^metadata%.labels") ~= nil
    or path:find("^metadata%.annotations") ~= nil
end


-- The objects that a pod's volumes show. @return table list of keys of followers, boolean whether the volumes show
-- fields of the pod that may change
local function sources_of(pod)
  local keys, shows_pod = {}, false
  local function add(id, name)
    keys[#keys + 1] = ("%s/%s/%s"):format(id, pod.metadata.namespace, name)
  end
  each_source(pod, function(source)
    if source.configMap then
      add("configmaps", source.configMap.name)
    elseif source.secret then
      add("secrets", source.secret.secretName or source.secret.name)
    elseif source.persistentVolumeClaim then
      add("persistentvolumeclaims", source.persistentVolumeClaim.claimName)
    end
    for _, item in ipairs(source.downwardAPI and source.downwardAPI.items or {}) do
      shows_pod = shows_pod or changes(item)
    end
  end)
  return keys, shows_pod
end


--- The volumes of this pod get their files, and are kept up to date from now on. @param pod table as stored
--- @param mounted function, called once all of them have some: inside this call, or later from the loop
function M:follow(pod, mounted)
  local keys, shows_pod = sources_of(pod)
  local followed = {
    pod = pod,
    keys = keys,
    shows_pod = shows_pod,
    mounted = mounted, -- nil: it was called
    tokens = tokens.new(function(...)
      return self.kubelet:make_token(...)
    end),
    timer = nil, -- of the next writing, at `at`
    written_at = -math.huge,
    pause = 0, -- of what failed
    tell_at = 0, -- not earlier is there an Event about what failed
  }
  self.pods[pod.metadata.uid] = followed
  for _, key in ipairs(keys) do
    self.followers[key] = self.followers[key] or {}
    self.followers[key][followed] = true
  end
  self:write(followed)
end


-- Writes the volumes at that time of host.monotonic, or when it is planned, if that is earlier.
local function plan(self, followed, at)
  if followed.timer and followed.at <= at then
    return
  elseif followed.timer then
    followed.timer:stop()
  end
  followed.at = at
  followed.timer = host.after(math.max(at - host.monotonic(), 0), function()
    followed.timer = nil
    self:write(followed)
  end)
end


local function plan_soon(self, followed)
  plan(self, followed, math.max(host.monotonic() + SOON, followed.written_at + INTERVAL))
end


local function plan_renewal(self, followed)
  local seconds = followed.tokens:due_in()
  if seconds then
    plan(self, followed, host.monotonic() + (seconds > 0 and math.min(seconds, TOKEN_LOOK) or TOKEN_TRY_AGAIN))
  end
end


-- Tells what failed, and plans another try.
local function take_failures(self, followed, failures)
  local now = host.monotonic()
  local may_tell = now >= followed.tell_at
  if #failures == 0 then
    followed.pause = may_tell and 0 or followed.pause
    return
  elseif may_tell then
    followed.pause = math.min(math.max(followed.pause * 2, PAUSE_FIRST), PAUSE_MAX)
    followed.tell_at = now + followed.pause
    for _, why in ipairs(failures) do
      self.kubelet:event(followed.pod, "Warning", "FailedMount", why)
    end
  end
  plan(self, followed, math.max(followed.tell_at, followed.written_at + INTERVAL))
end


--- Writes the volumes of a pod as their sources are now.
function M:write(followed)
  followed.written_at = host.monotonic()
  local failures = self.kubelet.runtime:update_volumes {
    pod = followed.pod, read = self.kubelet.read, token = self.kubelet.token, has_started = not followed.mounted,
  }
  take_failures(self, followed, failures)
  plan_renewal(self, followed)
  local mounted = followed.mounted
  if mounted and #failures == 0 then
    followed.mounted = nil
    mounted()
  end
end


--- A token for a volume of a pod. @return string|nil token, or nil and why there is none
function M:token(pod, audience, seconds)
  local followed = self.pods[pod.metadata.uid]
  local token, why = followed.tokens:get(pod, audience, seconds)
  plan_renewal(self, followed)
  return token, why
end


--- Takes in a new version of a pod. @param pod table with the status that the kubelet knows
function M:update(pod)
  local followed = self.pods[pod.metadata.uid]
  if followed then
    followed.pod = pod
    if followed.shows_pod then
      plan_soon(self, followed)
    end
  end
end


--- Takes in a change of the store: a ConfigMap, a Secret or a claim may be a pod's.
function M:on_change(event)
  if not SOURCES[event.id] then
    return
  end
  local key = ("%s/%s/%s"):format(event.id, event.entry.namespace, event.entry.name)
  for followed in pairs(self.followers[key] or {}) do
    plan_soon(self, followed)
  end
end


--- The pod has ended: its volumes stay as they are.
function M:leave(uid)
  local followed = self.pods[uid]
  if not followed then
    return
  end
  self.pods[uid] = nil
  if followed.timer then
    followed.timer:stop()
  end
  for _, key in ipairs(followed.keys) do
    local followers = self.followers[key]
    if followers then
      followers[followed] = nil
      self.followers[key] = next(followers) and followers or nil
    end
  end
end


return M
