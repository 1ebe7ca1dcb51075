--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  CertificateSigningRequest = [[
@kind
metadata meta.ObjectMeta #1
spec! CertificateSigningRequestSpec #2
status CertificateSigningRequestStatus #3
]],

  CertificateSigningRequestCondition = [[
lastTransitionTime meta.Time #5
lastUpdateTime meta.Time #4
message string #3
reason string #2
status! string go:v1.ConditionStatus #6
type! string go:v1.RequestConditionType #1
]],

  CertificateSigningRequestSpec = [[
expirationSeconds *int32 #8
extra {}[]string go:map[string]v1.ExtraValue #6
groups []string atomic #4
request! bytes #1
signerName! string #7
uid string #3
usages []string atomic {any|cert sign|client auth|code signing|content commitment|crl sign|data encipherment|
  decipher only|digital signature|email protection|encipher only|ipsec end system|ipsec tunnel|ipsec user|
  key agreement|key encipherment|microsoft sgc|netscape sgc|ocsp signing|s/mime|server auth|signing|
  timestamping} go:[]v1.KeyUsage #5
username string #2
]],

  CertificateSigningRequestStatus = [[
certificate bytes #2
conditions []CertificateSigningRequestCondition map(type) #1
]],

}
