---@meta cluster.local_webhooks
-- Stubs for editors (lua-language-server) of `require "cluster.local_webhooks"`: the webhooks of the scripts that run
-- in this process (cluster/host/local_webhooks.c). Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'cluster.local_webhooks' instead"

---@class cluster.local_webhooks
local local_webhooks = {}

--- Answers a review that is sent to a path.
---@param call { path: string, review: table }
---@return { code: integer, content_type: string, body: string }|nil
---@return string? message
function local_webhooks.answer(call) end

--- The controllers that have webhooks.
---@return { name: string, apiVersion: string, kind: string, versions: string[] }[]
function local_webhooks.scripts() end

return local_webhooks
