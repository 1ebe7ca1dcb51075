--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  BoundObjectReference = [[
    apiVersion=2 kind=1 name=3 uid=4]],
  SelfSubjectReview = [[
    metadata=1 status=2]],
  SelfSubjectReviewStatus = [[
    userInfo=1]],
  TokenRequest = [[
    metadata=1 spec=2 status=3]],
  TokenRequestSpec = [[
    audiences=1 boundObjectRef=3 expirationSeconds=4]],
  TokenRequestStatus = [[
    expirationTimestamp=2 token=1]],
  TokenReview = [[
    metadata=1 spec=2 status=3]],
  TokenReviewSpec = [[
    audiences=2 token=1]],
  TokenReviewStatus = [[
    audiences=4 authenticated=1 error=3 user=2]],
  UserInfo = [[
    extra=4 groups=3 uid=2 username=1]],
}
