--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  BoundObjectReference = [[
apiVersion string
kind string
name string
uid string
]],

  SelfSubjectReview = [[
@kind
metadata meta.ObjectMeta
status SelfSubjectReviewStatus
]],

  SelfSubjectReviewStatus = "userInfo UserInfo",

  TokenRequest = [[
@kind
metadata meta.ObjectMeta
spec TokenRequestSpec
status TokenRequestStatus
]],

  TokenRequestSpec = [[
audiences []string atomic
boundObjectRef *BoundObjectReference
expirationSeconds int64
]],

  TokenRequestStatus = [[
expirationTimestamp meta.Time
token string =""
]],

  TokenReview = [[
@kind
metadata meta.ObjectMeta
spec! TokenReviewSpec
status TokenReviewStatus
]],

  TokenReviewSpec = [[
audiences []string atomic
token! *string
]],

  TokenReviewStatus = [[
audiences []string atomic
authenticated bool
error string
user UserInfo
]],

  UserInfo = [[
extra {}[]string
groups []string atomic
uid string
username string
]],

}
