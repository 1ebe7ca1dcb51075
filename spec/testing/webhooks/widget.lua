-- A script with all kinds of webhooks: what webhooks_test.lua tries them with. `spec.trick` asks for a mistake.
local moonloop = require "moonloop"

local Widget = moonloop.kind("example.com/v1", "Widget")
local Quota = moonloop.kind("v1", "ConfigMap")

local BEFORE = "example.com/color"

local tricks = {}

function tricks.raise()
  error "boom"
end

function tricks.loop()
  while true do end
end

function tricks.rename(widget)
  widget.metadata.name = "another"
end

function tricks.uid(widget)
  widget.metadata.uid = "another"
end

function tricks.lose(widget)
  widget.spec.size = nil
end

function tricks.number()
  return 7
end

local function trick(widget, where)
  local name = widget.spec.trick and widget.spec.trick:match("^" .. where .. "%-(%a+)$")
  if name and tricks[name] then
    return tricks[name](widget)
  end
end

local function problems(widget, old, ctx)
  local list = {}
  local limit = ctx.get(Quota, "limit")
  local most = limit and tonumber(limit.data.most) or 10
  if widget.spec.size > most then
    list[#list + 1] = { field = "spec.size", message = ("%d is more than %d"):format(widget.spec.size, most) }
  end
  if old and old.spec.shape ~= widget.spec.shape then
    list[#list + 1] = { field = "spec.shape", message = "cannot be changed" }
  end
  return list
end

return moonloop.controller {
  name = "widget",
  reconciles = Widget,
  watches = { moonloop.watch(Quota, function() end) },

  default = function(widget)
    if trick(widget, "default") then
      return 7
    end
    widget.spec.size = widget.spec.size or 3
    widget.metadata.labels = { app = "widget" }
  end,

  validate = function(new, old, ctx)
    local result = trick(new, "validate")
    if result then
      return result
    elseif new.spec.shape == "none" then
      return "a widget without a shape"
    elseif new.spec.shape == "odd" then
      return ctx.invalid("spec.shape", "is odd")
    elseif new.spec.trick == "validate-write" then
      ctx.create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "x" } }
    elseif new.spec.trick == "validate-warn" then
      return nil, { "old\nfashioned", ("ü"):rep(200) }
    end
    return problems(new, old, ctx)
  end,

  convert = {
    v1alpha1 = {
      to = function(widget)
        trick(widget, "to")
        widget.spec.size, widget.spec.width = widget.spec.width, nil
        if widget.metadata.annotations[BEFORE] then
          widget.spec.color = widget.metadata.annotations[BEFORE]
          widget.metadata.annotations[BEFORE] = nil
        end
        return widget
      end,
      from = function(widget)
        trick(widget, "from")
        widget.spec.width, widget.spec.size = widget.spec.size, nil
        if widget.spec.color then
          local annotations = { [BEFORE] = widget.spec.color }
          for key, value in pairs(widget.metadata.annotations) do
            annotations[key] = value
          end
          widget.metadata.annotations, widget.spec.color = annotations, nil
        end
        return widget
      end,
    },
  },

  reconcile = function(widget)
    return { status = { size = widget.spec.size } }
  end,
}
