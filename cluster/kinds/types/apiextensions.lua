--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  CustomResourceColumnDefinition = [[
description string #4
format string #3
jsonPath! string #6
name! string #1
priority int32 #5
type! string #2
]],

  CustomResourceConversion = [[
strategy! string go:v1.ConversionStrategyType #1
webhook *WebhookConversion #2
]],

  CustomResourceDefinition = [[
@kind
metadata meta.ObjectMeta #1
spec! CustomResourceDefinitionSpec #2
status CustomResourceDefinitionStatus #3
]],

  CustomResourceDefinitionCondition = [[
lastTransitionTime meta.Time #3
message string #5
observedGeneration int64 #6
reason string #4
status! string go:v1.ConditionStatus #2
type! string go:v1.CustomResourceDefinitionConditionType #1
]],

  CustomResourceDefinitionNames = [[
categories []string atomic #6
kind! string #4
listKind string #5
plural! string #1
shortNames []string atomic #3
singular string #2
]],

  CustomResourceDefinitionSpec = [[
conversion *CustomResourceConversion #9
group! string #1
names! CustomResourceDefinitionNames #3
preserveUnknownFields bool #10
scope! string go:v1.ResourceScope #4
versions! []CustomResourceDefinitionVersion atomic #7
]],

  CustomResourceDefinitionStatus = [[
acceptedNames+ CustomResourceDefinitionNames #2
conditions+ []CustomResourceDefinitionCondition map(type) #1
observedGeneration int64 #4
storedVersions+ []string atomic #3
]],

  CustomResourceDefinitionVersion = [[
additionalPrinterColumns []CustomResourceColumnDefinition atomic #6
deprecated bool #7
deprecationWarning *string #8
name! string #1
schema *CustomResourceValidation #4
selectableFields []SelectableField atomic #9
served! bool #2
storage! bool #3
subresources *CustomResourceSubresources #5
]],

  CustomResourceSubresourceScale = [[
labelSelectorPath *string #3
specReplicasPath! string #1
statusReplicasPath! string #2
]],

  CustomResourceSubresourceStatus = [[@type object]],

  CustomResourceSubresources = [[
scale *CustomResourceSubresourceScale #2
status *CustomResourceSubresourceStatus #1
]],

  CustomResourceValidation = [[openAPIV3Schema *JSONSchemaProps #1]],

  ExternalDocumentation = [[
description string #1
url string #2
]],

  JSON = [[@type any]],

  JSONSchemaProps = [[
$ref *string #3
$schema string go:v1.JSONSchemaURL #2
additionalItems *JSONSchemaPropsOrBool #33
additionalProperties *JSONSchemaPropsOrBool #30
allOf []JSONSchemaProps atomic #25
anyOf []JSONSchemaProps atomic #27
default *JSON #8
definitions {}JSONSchemaProps go:v1.JSONSchemaDefinitions #34
dependencies {}JSONSchemaPropsOrStringArray go:v1.JSONSchemaDependencies #32
description string #4
enum []JSON atomic #20
example *JSON #36
exclusiveMaximum bool #10
exclusiveMinimum bool #12
externalDocs *ExternalDocumentation #35
format string #6
id string #1
items *JSONSchemaPropsOrArray #24
maxItems *int64 #16
maxLength *int64 #13
maxProperties *int64 #21
maximum *double #9
minItems *int64 #17
minLength *int64 #14
minProperties *int64 #22
minimum *double #11
multipleOf *double #19
not *JSONSchemaProps #28
nullable bool #37
oneOf []JSONSchemaProps atomic #26
pattern string #15
patternProperties {}JSONSchemaProps #31
properties {}JSONSchemaProps #29
required []string atomic #23
title string #7
type string #5
uniqueItems bool #18
x-kubernetes-embedded-resource bool #39
x-kubernetes-int-or-string bool #40
x-kubernetes-list-map-keys []string atomic #41
x-kubernetes-list-type *string #42
x-kubernetes-map-type *string #43
x-kubernetes-preserve-unknown-fields *bool #38
x-kubernetes-validations []ValidationRule map(rule) patch:merge(rule) go:v1.ValidationRules #44
]],

  JSONSchemaPropsOrArray = [[@type any]],

  JSONSchemaPropsOrBool = [[@type any]],

  JSONSchemaPropsOrStringArray = [[@type any]],

  SelectableField = [[jsonPath! string #1]],

  ServiceReference = [[
name! string #2
namespace! string #1
path *string #3
port *int32 #4
]],

  ValidationRule = [[
fieldPath string #5
message string #2
messageExpression string #3
optionalOldSelf *bool #6
reason *string {FieldValueDuplicate|FieldValueForbidden|FieldValueInvalid|
  FieldValueRequired} go:v1.FieldValueErrorReason #4
rule! string #1
]],

  WebhookClientConfig = [[
caBundle bytes #2
service *ServiceReference #1
url *string #3
]],

  WebhookConversion = [[
clientConfig *WebhookClientConfig #2
conversionReviewVersions! []string atomic #3
]],

}
