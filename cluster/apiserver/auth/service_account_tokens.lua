--- Tokens of service accounts: POST …/serviceaccounts/NAME/token makes them, and requests are checked for them.
---
--- Rules and wordings: kubernetes/pkg/registry/core/serviceaccount/storage/token.go,
--- kubernetes/pkg/serviceaccount/claims.go, kubernetes/pkg/apis/authentication/validation/validation.go.
local apply = require "cluster.apiserver.apply"
local body = require "cluster.apiserver.verbs.body"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local jwt = require "cluster.apiserver.auth.jwt"
local options = require "cluster.apiserver.verbs.options"
local rules = require "cluster.apiserver.auth.rules"
local status = require "cluster.apiserver.status"
local write = require "cluster.apiserver.verbs.write"

local M = {}
M.__index = M

--- The issuer of tokens, and their audience if a request names none.
M.ISSUER = "https://kubernetes.default.svc"

local KEY_BYTES = 32
local LIFETIME, LIFETIME_MIN, LIFETIME_MAX = 3600, 600, 1 << 32
-- The volume that each pod has by itself asks for the first. Such a token is old after that time, and refused a year
-- after it was made, for clients that read it once and for all.
local WARNED_LIFETIME, EXTENDED_LIFETIME = 3600 + 7, 365 * 24 * 3600
local KNOWN_MAX = 1000
local REQUEST = { group = "authentication.k8s.io", plural = "TokenRequest" }
local TOKEN_REQUEST = body.kind(REQUEST.group, "v1", "TokenRequest")

-- Kinds a token may be bound to: it dies with the object.
local BOUND = {
  Pod = { id = "pods", claim = "pod", namespaced = true },
  Secret = { id = "secrets", claim = "secret", namespaced = true },
  Node = { id = "nodes", claim = "node" },
}


--- @param server table  @param key string|nil what tokens are signed with; a new one when not given
function M.new(server, key)
  return setmetatable({ server = server, key = key or host.secret(KEY_BYTES), cached = {}, cached_count = 0 }, M)
end


local function find(self, bound, namespace, name)
  return self.server.store:get(bound.id, bound.namespaced and namespace or "", name)
end


local function claim_of(entry)
  return { name = entry.name, uid = entry.uid }
end


-- The node of a pod, as a claim; without a uid when it is not there; nil while the pod has none.
local function node_claim(self, pod)
  local name = pod.spec.nodeName
  if not name or name == "" then
    return nil
  end
  local entry = find(self, BOUND.Node, nil, name)
  return entry and claim_of(entry) or { name = name }
end


-- The object that a token is to be bound to, and the node of a pod, as claims.
-- @return table|nil claims by their names, or nil and a status
local function bind(self, ref, request)
  local bound = (ref.apiVersion == "v1" or ref.apiVersion == nil) and BOUND[ref.kind]
  if not bound then
    local version = ref.apiVersion or ""
    return nil, status.bad_request(("cannot bind token to object of type %s%s, Kind=%s"):format(
      version:find("/", 1, true) and "" or "/", version, ref.kind or ""))
  end
  local entry = find(self, bound, request.namespace, ref.name)
  if not entry then
    return nil, status.not_found({ group = "", plural = bound.id }, ref.name or "")
  end
  local claims = { [bound.claim] = claim_of(entry) }
  if bound.claim == "pod" then
    local pod = host.json.decode(entry.text)
    claims.node = node_claim(self, pod)
    if pod.spec.serviceAccountName ~= request.name then
      return nil, status.bad_request(("cannot bind token for serviceaccount %s to pod running with different "
        .. "serviceaccount name."):format(field.quote(request.name)))
    end
  end
  if ref.uid and ref.uid ~= "" and ref.uid ~= entry.uid then
    return nil, status.conflict({ group = "", plural = ref.kind }, ref.name,
      ("the UID in the bound object reference (%s) does not match the UID in record. The object might have been "
        .. "deleted and then recreated"):format(ref.uid))
  end
  return claims
end


local function check_lifetime(seconds)
  if seconds < LIFETIME_MIN then
    return field.invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
  elseif seconds > LIFETIME_MAX then
    return field.invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
  end
end


local function check_metadata(token_request, account, request)
  local meta = token_request.metadata
  if meta.name and meta.name ~= "" and meta.name ~= request.name then
    return status.invalid(REQUEST.group, REQUEST.plural, request.name,
      { field.invalid("metadata.name", meta.name, "must match the service account name if specified") })
  elseif meta.namespace and meta.namespace ~= "" and meta.namespace ~= request.namespace then
    return status.invalid(REQUEST.group, REQUEST.plural, request.name,
      { field.invalid("metadata.namespace", meta.namespace, "must match the service account namespace if specified") })
  elseif meta.uid and meta.uid ~= "" and meta.uid ~= account.uid then
    return status.conflict(REQUEST, request.name, ("the UID in the token request (%s) does not match the UID of the "
      .. "service account (%s)"):format(meta.uid, account.uid))
  end
end


--- Signs a token for a service account.
--- @param account table its entry in the store  @param audiences string[]  @param seconds integer how long it lives
--- @param bound table|nil claims by their names: { pod = { name =, uid = }, node = { name =, uid = or nil } }
--- @param warned integer|nil seconds until it is said to be old
function M:mint(account, audiences, seconds, bound, warned)
  local now = math.floor(host.now())
  local private = { namespace = account.namespace, serviceaccount = { name = account.name, uid = account.uid } }
  for name, claim in pairs(bound or {}) do
    private[name] = claim
  end
  private.warnafter = warned and now + warned
  return jwt.sign({
    iss = M.ISSUER, sub = ("system:serviceaccount:%s:%s"):format(account.namespace, account.name),
    aud = host.json.array(audiences), iat = now, nbf = now, exp = now + seconds, jti = host.uuid(),
    ["kubernetes.io"] = private,
  }, self.key)
end


-- How long a token lives, and after how many seconds it is said to be old, or nil. A pod's token for the API server
-- alone lives longer than was asked (--service-account-extend-token-expiration), and its TokenRequest does not say so.
local function lifetime_of(spec, bound)
  local seconds = spec.expirationSeconds
  if not (bound and bound.pod and seconds == WARNED_LIFETIME) then
    return seconds
  end
  for _, audience in ipairs(spec.audiences) do
    if audience ~= M.ISSUER then
      return seconds
    end
  end
  return EXTENDED_LIFETIME, seconds
end


--- Answers a TokenRequest. @param token_request table the object that was sent
--- @return table|nil the TokenRequest with its token; nil and a status
function M:request(token_request, request)
  local account = self.server.store:get("serviceaccounts", request.namespace, request.name)
  if not account then
    return nil, status.not_found({ group = "", plural = "serviceaccounts" }, request.name)
  end
  local spec = token_request.spec
  local failure = check_metadata(token_request, account, request)
  local problem = check_lifetime(spec.expirationSeconds)
  if failure or problem then
    return nil, failure or status.invalid(REQUEST.group, REQUEST.plural, "", { problem })
  end
  local bound
  if type(spec.boundObjectRef) == "table" then
    bound, failure = bind(self, spec.boundObjectRef, request)
    if not bound then
      return nil, failure
    end
  end
  spec.boundObjectRef = spec.boundObjectRef or host.json.null
  if type(spec.audiences) ~= "table" or not spec.audiences[1] then
    spec.audiences = host.json.array { M.ISSUER }
  end
  local meta = token_request.metadata
  meta.name, meta.namespace, meta.uid = account.name, account.namespace, account.uid
  meta.creationTimestamp = host.timestamp()
  local seconds, warned = lifetime_of(spec, bound)
  token_request.status = {
    token = self:mint(account, spec.audiences, seconds, bound, warned),
    expirationTimestamp = os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(host.now()) + spec.expirationSeconds),
  }
  return token_request
end


local function user_of(claims)
  local private = claims["kubernetes.io"]
  local extra = { ["authentication.kubernetes.io/credential-id"] = host.json.array { "JTI=" .. claims.jti } }
  for _, bound in pairs(BOUND) do
    local claim = private[bound.claim]
    if claim and bound.claim ~= "secret" then
      extra["authentication.kubernetes.io/" .. bound.claim .. "-name"] = host.json.array { claim.name }
      extra["authentication.kubernetes.io/" .. bound.claim .. "-uid"] = claim.uid and host.json.array { claim.uid }
    end
  end
  return {
    name = claims.sub, uid = private.serviceaccount.uid, extra = extra,
    groups = { "system:serviceaccounts", "system:serviceaccounts:" .. private.namespace, "system:authenticated" },
  }
end


-- A token that was read before is not read again.
local function read(self, token)
  local cached = self.cached[token]
  if cached then
    return cached
  end
  local claims = jwt.claims(token, self.key)
  if not claims then
    return nil
  end
  if self.cached_count >= KNOWN_MAX then
    self.cached, self.cached_count = {}, 0
  end
  cached = { claims = claims, user = user_of(claims) }
  self.cached[token], self.cached_count = cached, self.cached_count + 1
  return cached
end


-- True if the account, and the object that the token is bound to, still exist. The node of a pod may be gone.
local function is_alive(self, private)
  local account = self.server.store:get("serviceaccounts", private.namespace, private.serviceaccount.name)
  if not account or account.uid ~= private.serviceaccount.uid or account.deleting then
    return false
  end
  for _, bound in pairs(BOUND) do
    local claim = private[bound.claim]
    if bound.claim == "node" and private.pod then
      claim = nil
    end
    local entry = claim and find(self, bound, private.namespace, claim.name)
    if claim and not (entry and entry.uid == claim.uid) then
      return false
    end
  end
  return true
end


local function common(list, other)
  local both = host.json.array {}
  for _, word in ipairs(other) do
    for _, candidate in ipairs(list) do
      both[#both + 1] = candidate == word and word or nil
    end
  end
  return both
end


--- The user of a token. @param audiences string[] the names of the server that was shown the token
--- @return table|nil user, table audiences that the token is for, of these; nil, and the reason if it is one of ours
function M:user(token, audiences)
  local cached = read(self, token)
  if not cached then
    return nil
  end
  local claims, now = cached.claims, host.now()
  if now >= claims.exp then
    return nil, "service account token has expired"
  elseif now < claims.nbf then
    return nil, "service account token is not valid yet"
  end
  local accepted = common(claims.aud, audiences)
  if #accepted == 0 then
    return nil, ("token audiences %s is invalid for the target audiences %s"):format(
      rules.quoted(claims.aud), rules.quoted(audiences))
  elseif not is_alive(self, claims["kubernetes.io"]) then
    return nil, "service account token has been invalidated"
  end
  return cached.user, accepted
end


local function read_request(request)
  local settings, failure = options.create(request)
  if not settings then
    return nil, failure
  end
  local token_request
  token_request, failure = body.object(request, settings, TOKEN_REQUEST)
  if not token_request then
    return nil, failure
  end
  token_request.spec.expirationSeconds = math.tointeger(token_request.spec.expirationSeconds) or LIFETIME
  return token_request
end


-- As for any object that is created, though nobody will update this one.
local function track(request, token_request)
  apply.update_managers(nil, token_request, TOKEN_REQUEST, {
    manager = write.manager_of(request, { manager = "" }), subresource = "token", time = host.timestamp(),
  })
end


--- The handler of serviceaccounts/token.
function M:handler()
  return function(request)
    local token_request, failure = read_request(request)
    if not token_request then
      return nil, failure
    end
    track(request, token_request)
    local made
    made, failure = self:request(token_request, request)
    if not made then
      return nil, failure
    end
    return 201, host.json.encode(made)
  end
end


return M
