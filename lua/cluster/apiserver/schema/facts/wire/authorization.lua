--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  FieldSelectorAttributes = [[
    rawSelector=1 requirements=2]],
  LabelSelectorAttributes = [[
    rawSelector=1 requirements=2]],
  LocalSubjectAccessReview = [[
    metadata=1 spec=2 status=3]],
  NonResourceAttributes = [[
    path=1 verb=2]],
  NonResourceRule = [[
    nonResourceURLs=2 verbs=1]],
  ResourceAttributes = [[
    fieldSelector=8 group=3 labelSelector=9 name=7 namespace=1 resource=5 subresource=6 verb=2 version=4]],
  ResourceRule = [[
    apiGroups=2 resourceNames=4 resources=3 verbs=1]],
  SelfSubjectAccessReview = [[
    metadata=1 spec=2 status=3]],
  SelfSubjectAccessReviewSpec = [[
    nonResourceAttributes=2 resourceAttributes=1]],
  SelfSubjectRulesReview = [[
    metadata=1 spec=2 status=3]],
  SelfSubjectRulesReviewSpec = [[
    namespace=1]],
  SubjectAccessReview = [[
    metadata=1 spec=2 status=3]],
  SubjectAccessReviewSpec = [[
    extra=5 groups=4 nonResourceAttributes=2 resourceAttributes=1 uid=6 user=3]],
  SubjectAccessReviewStatus = [[
    allowed=1 denied=4 evaluationError=3 reason=2]],
  SubjectRulesReviewStatus = [[
    evaluationError=4 incomplete=3 nonResourceRules=2 resourceRules=1]],
}
