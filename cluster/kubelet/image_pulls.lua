--- Images that cannot be had: what a kubelet says that cannot pull one, and when it looks again.
---
--- Rules: kubernetes/pkg/kubelet/images/image_manager.go, kuberuntime_container.go (startContainer).
local host = require "cluster.host"

local M = {}

local PAUSE_FIRST, PAUSE_MAX = 10, 300 -- seconds from one pull to the next
local BACK_OFF_AFTER = 1 -- seconds that ErrImagePull is shown before ImagePullBackOff


local function back_off(record, message, callbacks)
  local what = ("Back-off pulling image %q"):format(record.spec.image)
  callbacks.event("Normal", "BackOff", what)
  callbacks.event("Warning", "Failed", "Error: ImagePullBackOff")
  record.state = {
    waiting = { reason = "ImagePullBackOff", message = ("%s: ErrImagePull: %s"):format(what, message) },
  }
  record.timer = host.after(record.pull_pause - BACK_OFF_AFTER, callbacks.again)
  callbacks.changed()
end


local TELL = {
  InvalidImageName = function(_, message, callbacks)
    callbacks.event("Warning", "InspectFailed", message)
  end,
  ErrImageNeverPull = function(_, message, callbacks)
    callbacks.event("Warning", "ErrImageNeverPull", message)
  end,
  ErrImagePull = function(record, message, callbacks)
    local image = record.spec.image
    callbacks.event("Normal", "Pulling", ("Pulling image %q"):format(image))
    callbacks.event("Warning", "Failed", ("Failed to pull image %q: %s"):format(image, message))
  end,
}


--- True for a reason why a container cannot start that is about its image.
function M.is_reason(reason)
  return TELL[reason] ~= nil
end


--- Takes note that the image of a container cannot be had.
--- @param record table of the container: record.lua  @param reason string see is_reason  @param message string
--- @param callbacks table { event = fn(type, reason, message), changed = fn(), again = fn() } with `again` when it is
---   time to look again
function M.failed(record, reason, message, callbacks)
  TELL[reason](record, message, callbacks)
  callbacks.event("Warning", "Failed", "Error: " .. reason)
  record.state = { waiting = { reason = reason, message = message } }
  if reason ~= "ErrImagePull" then
    record.timer = host.after(PAUSE_FIRST, callbacks.again)
    return
  end
  local has_failed_before = record.pull_image == record.spec.image
  record.pull_image = record.spec.image
  record.pull_pause = has_failed_before and math.min(record.pull_pause * 2, PAUSE_MAX) or PAUSE_FIRST
  record.timer = host.after(BACK_OFF_AFTER, function()
    back_off(record, message, callbacks)
  end)
end


return M
