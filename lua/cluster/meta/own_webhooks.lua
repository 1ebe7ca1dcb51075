---@meta cluster.own_webhooks
-- Stubs for editors (lua-language-server) of `require "cluster.own_webhooks"`: the webhooks of the scripts that run in
-- this process (host/cluster/own_webhooks.c). Never loaded.
-- luacheck: ignore 241
error "moonloop/meta is for editors; require 'cluster.own_webhooks' instead"

---@class cluster.own_webhooks
local own = {}

--- Answers a review that is sent to a path.
---@param call { path: string, review: table }
---@return { code: integer, content_type: string, body: string }|nil
---@return string? message
function own.answer(call) end

--- The controllers that have webhooks.
---@return { name: string, apiVersion: string, kind: string, versions: string[] }[]
function own.scripts() end

return own
