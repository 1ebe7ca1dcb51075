--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  BoundObjectReference = [[
apiVersion string #2
kind string #1
name string #3
uid string go:types.UID #4
]],

  SelfSubjectReview = [[
@kind
metadata meta.ObjectMeta #1
status SelfSubjectReviewStatus #2
]],

  SelfSubjectReviewStatus = [[userInfo UserInfo #1]],

  TokenRequest = [[
@kind
metadata meta.ObjectMeta #1
spec+ TokenRequestSpec #2
status TokenRequestStatus #3
]],

  TokenRequestSpec = [[
audiences+ []string atomic #1
boundObjectRef+ *BoundObjectReference #3
expirationSeconds+ *int64 #4
]],

  TokenRequestStatus = [[
expirationTimestamp+ meta.Time #2
token+ string #1
]],

  TokenReview = [[
@kind
metadata meta.ObjectMeta #1
spec! TokenReviewSpec #2
status TokenReviewStatus #3
]],

  TokenReviewSpec = [[
audiences []string atomic #2
token- string #1
]],

  TokenReviewStatus = [[
audiences []string atomic #4
authenticated bool #1
error string #3
user UserInfo #2
]],

  UserInfo = [[
extra {}[]string go:map[string]v1.ExtraValue #4
groups []string atomic #3
uid string #2
username string #1
]],

}
