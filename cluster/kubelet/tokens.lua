--- The tokens of service accounts that the volumes of a pod have, each renewed before it ends.
---
--- Rules: kubernetes/pkg/kubelet/token/token_manager.go.
local host = require "cluster.host"

local M = {}
M.__index = M

local AGE_MAX = 24 * 3600
local JITTER = 10 -- seconds by which a token is renewed earlier, at most
local LEFT = 5 -- a fifth of its life is left then


--- @param request function (pod, audience, seconds) -> token, or nil and why not
function M.new(request)
  return setmetatable({ request = request, kept = {} }, M)
end


local function renewal(issued, seconds)
  return issued + math.min(AGE_MAX, seconds - seconds // LEFT) - host.random(JITTER)
end


-- A clock that was set back makes a token that is not good yet.
local function is_fresh(token, now)
  return now >= token.issued and now < token.renew_at
end


--- A token of a pod's service account: the one that it has, or a new one when that is due.
--- @param audience string?  @param seconds integer how long it lives
--- @return string|nil token, or nil and why there is none. One that cannot be renewed is given until it ends
function M:get(pod, audience, seconds)
  local key, now = ("%s/%d"):format(audience or "", seconds), host.now()
  local kept = self.kept[key]
  if kept and is_fresh(kept, now) then
    return kept.text
  end
  local text, why = self.request(pod, audience, seconds)
  if text then
    local issued = math.floor(now)
    self.kept[key] = { text = text, issued = issued, renew_at = renewal(issued, seconds), over_at = issued + seconds }
    return text
  elseif kept and now < kept.over_at then
    return kept.text
  end
  return nil, why
end


--- Seconds until the first of the tokens is due; 0 or less: one is. nil: there is none.
function M:due_in()
  local first
  for _, token in pairs(self.kept) do
    first = math.min(first or token.renew_at, token.renew_at)
  end
  return first and first - host.now()
end


return M
