--- Authentication and authorization.
---
---   local auth = require("cluster.apiserver.auth").new(server)
---   local user, failure = auth:authenticate(request)
---   local allowed, reason = auth:authorize(user, request)
---
--- A user is { name =, uid =, groups = a list, extra = name → list }. Tokens come from the server's settings (token
--- → user), or are those of service accounts (service_account_tokens.lua); who took the request has verified the
--- client's certificate. As in the real server, there is no anonymous user where everybody may do everything: a request
--- without a token gets 401.
--- Rules: apiserver/pkg/authentication/request/x509/x509.go,
--- kubernetes/pkg/controlplane/apiserver/options (the list of authenticators and authorizers).
local bearer = require "cluster.apiserver.auth.bearer"
local bootstrap = require "cluster.apiserver.auth.bootstrap"
local denial = require "cluster.apiserver.auth.denial"
local host = require "cluster.host"
local impersonation = require "cluster.apiserver.auth.impersonation"
local rbac = require "cluster.apiserver.auth.rbac"
local service_account_tokens = require "cluster.apiserver.auth.service_account_tokens"
local status = require "cluster.apiserver.status"

local M = {}

local Auth = {}
Auth.__index = Auth

local ANONYMOUS = { name = "system:anonymous", groups = { "system:unauthenticated" } }
local KNOWN = "system:authenticated"
local CREDENTIAL = "authentication.kubernetes.io/credential-id"
local AUDIENCES = { service_account_tokens.ISSUER }


-- The user of the settings, with the group that everybody has who is known, once.
local function complete(user)
  local groups = {}
  for _, group in ipairs(user.groups or {}) do
    groups[#groups + 1] = group ~= KNOWN and group or nil
  end
  groups[#groups + 1] = KNOWN
  return { name = user.name or user.user, uid = user.uid, groups = groups, extra = user.extra }
end


--- The user of a token.
--- @param audiences string[] the names of the server that was shown the token
--- @return table|nil user, table audiences that the token is for, of these; nil, and the reason if there is one
function Auth:user_of(token, audiences)
  local user = self.users[token]
  if not user then
    return self.accounts:user(token, audiences)
  end
  for _, audience in ipairs(audiences) do
    if audience == service_account_tokens.ISSUER then
      return user, { audience }
    end
  end
  return nil
end


-- The user of a client's certificate, by its common name; nil if that is empty.
local function certified(client)
  if not client or client.problem or client.name == "" then
    return nil
  end
  return complete {
    name = client.name, groups = client.groups,
    extra = { [CREDENTIAL] = host.json.array { "X509SHA256=" .. client.sha256 } },
  }
end


-- If no tokens were set, every client is the administrator, except one that shows the token of a service account.
local function identify(self, request)
  local token, client = bearer.token(request), request.certificate
  local user = certified(client) or token and self:user_of(token, AUDIENCES)
  if user then
    return user
  elseif client and client.problem then
    host.log("warn", "a client's certificate is not accepted", { error = client.problem })
    return nil, status.unauthorized()
  elseif not self.settings.tokens then
    return self.server.administrator
  elseif token or not self:decides() then
    return nil, status.unauthorized()
  end
  return ANONYMOUS
end


--- Returns the user that a request acts as: the one who sent it, or the one whom it impersonates.
--- @param request table with headers, and what it is about
--- @return table|nil user, or nil and a status
function Auth:authenticate(request)
  local user, failure = identify(self, request)
  if not user then
    return nil, failure
  end
  return impersonation.apply(self, user, request)
end


--- Returns true if roles decide what a user may do; otherwise every user may do everything.
function Auth:decides()
  return self.settings.authorization == "rbac"
end


--- Returns true if a user may do everything, whatever the roles say.
function Auth.is_master(user)
  for _, group in ipairs(user.groups or {}) do
    if group == "system:masters" then
      return true
    end
  end
  return false
end


--- Decides if a user may do something.
--- @param attributes table a request, or the same fields: is_resource, verb, group, version, resource, subresource,
---   namespace, name, path
--- @return boolean allowed, string reason "" if there is none
function Auth:authorize(user, attributes)
  if not self:decides() or Auth.is_master(user) then
    return true, ""
  end
  return self.rbac:authorize(user, attributes)
end


--- The answer to a user who may not do something. @return table|nil failure nil if the user may
function Auth:refusal(user, attributes)
  local allowed, reason = self:authorize(user, attributes)
  return not allowed and denial.status(user, attributes, reason) or nil
end


--- Makes the roles that a server has from its start, if they decide. To be called when the server can answer requests.
function Auth:start()
  if self:decides() then
    bootstrap.start(self.server)
  end
end


--- Makes these roles, soon, where nobody asks them: a real server has them for clients that look for them.
function Auth:show_roles()
  if not self:decides() then
    bootstrap.start_in_turns(self.server)
  end
end


--- For one server, whose settings are read: authorization, tokens, and token_key, what tokens of service accounts are
--- signed with (a new key when it is not set: such tokens do not outlive the process).
function M.new(server)
  local self = setmetatable({
    server = server, settings = server.settings, users = {}, rbac = rbac.new(server.store),
    accounts = service_account_tokens.new(server, server.settings.token_key),
  }, Auth)
  for token, user in pairs(server.settings.tokens or {}) do
    self.users[token] = complete(user)
  end
  server:subresource("serviceaccounts", "token", { create = self.accounts:handler() })
  return self
end


return M
