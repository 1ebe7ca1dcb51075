-- Scales a Deployment to nothing outside of office hours, and back, when an annotation asks:
--   downscaler.moonloop.dev/hours: "mon-fri 8-18 Europe/Berlin"
-- Days as in a cron expression, whole hours, and a time zone; its summer time is the library's concern.
local moonloop = require "moonloop"
local time = require "moonloop.time"

local HOURS, REPLICAS = "downscaler.moonloop.dev/hours", "downscaler.moonloop.dev/replicas"

-- The schedules of a text: { opens =, closes =, zone = }; nil, why.
local function read_hours(text)
  local days, first, last, name = text:match "^(%S+) (%d+)-(%d+) (%S+)$"
  if not days then
    return nil, 'expected days, hours and a zone, as in "mon-fri 8-18 Europe/Berlin"'
  end
  local zone, why = time.zone(name)
  local hours = { opens = "0 " .. first .. " * * " .. days, closes = "0 " .. last .. " * * " .. days, zone = zone }
  for _, schedule in ipairs(zone and { hours.opens, hours.closes } or {}) do
    local due, problem = time.cron(schedule, 0, zone)
    why = why or not due and problem
  end
  return not why and hours or nil, why
end


-- Are the offices open, and when does that change?
local function state_of(hours, now)
  local opened = time.cron_before(hours.opens, now + 1, hours.zone) -- `now` counts as well
  local closed = time.cron_before(hours.closes, now + 1, hours.zone)
  local change = math.min(time.cron(hours.opens, now, hours.zone), time.cron(hours.closes, now, hours.zone))
  return opened > closed, change
end


-- The changes that scale a Deployment down, and remember how many replicas it had.
local function down(deployment)
  local replicas = deployment.spec.replicas
  return replicas > 0 and {
    metadata = { annotations = { [REPLICAS] = tostring(replicas) } }, spec = { replicas = 0 },
  } or nil
end


-- The changes that scale it up again. One that somebody has scaled up meanwhile keeps its replicas.
local function up(deployment)
  local remembered = deployment.metadata.annotations[REPLICAS]
  return remembered and {
    metadata = { annotations = { [REPLICAS] = moonloop.null } },
    spec = deployment.spec.replicas == 0 and { replicas = math.tointeger(tonumber(remembered)) or 1 } or nil,
  }
end


return moonloop.controller {
  name = "downscaler",
  reconciles = moonloop.kind("apps/v1", "Deployment"),
  when = { "annotations", "generation" },

  reconcile = function(deployment, ctx)
    local text = deployment.metadata.annotations[HOURS]
    local hours, why
    if text then
      hours, why = read_hours(text)
    end
    if why then
      ctx.event("BadHours", HOURS .. ": " .. why, "Warning")
      return -- it stays as it is
    end
    local is_open, change = true, nil
    if hours then
      is_open, change = state_of(hours, ctx.now())
    end
    local changes = (is_open and up or down)(deployment)
    if changes then
      assert(ctx.patch(deployment, changes))
    end
    return { requeue_at = change }
  end,
}
