--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  CustomResourceColumnDefinition = [[
description string
format string
jsonPath! string
name! string
priority int32
type! string
]],

  CustomResourceConversion = [[
strategy! string go:v1.ConversionStrategyType
webhook *WebhookConversion
]],

  CustomResourceDefinition = [[
@kind
metadata meta.ObjectMeta
spec! CustomResourceDefinitionSpec
status CustomResourceDefinitionStatus
]],

  CustomResourceDefinitionCondition = [[
lastTransitionTime meta.Time
message string
observedGeneration int64
reason string
status! string go:v1.ConditionStatus
type! string go:v1.CustomResourceDefinitionConditionType
]],

  CustomResourceDefinitionNames = [[
categories []string atomic
kind! string
listKind string
plural! string
shortNames []string atomic
singular string
]],

  CustomResourceDefinitionSpec = [[
conversion *CustomResourceConversion
group! string
names! CustomResourceDefinitionNames
preserveUnknownFields bool
scope! string go:v1.ResourceScope
versions! []CustomResourceDefinitionVersion atomic
]],

  CustomResourceDefinitionStatus = [[
acceptedNames+ CustomResourceDefinitionNames
conditions+ []CustomResourceDefinitionCondition map(type)
observedGeneration int64
storedVersions+ []string atomic
]],

  CustomResourceDefinitionVersion = [[
additionalPrinterColumns []CustomResourceColumnDefinition atomic
deprecated bool
deprecationWarning *string
name! string
schema *CustomResourceValidation
selectableFields []SelectableField atomic
served! bool
storage! bool
subresources *CustomResourceSubresources
]],

  CustomResourceSubresourceScale = [[
labelSelectorPath *string
specReplicasPath! string
statusReplicasPath! string
]],

  CustomResourceSubresourceStatus = [[@type object]],

  CustomResourceSubresources = [[
scale *CustomResourceSubresourceScale
status *CustomResourceSubresourceStatus
]],

  CustomResourceValidation = [[openAPIV3Schema *JSONSchemaProps]],

  ExternalDocumentation = [[
description string
url string
]],

  JSON = [[@type any]],

  JSONSchemaProps = [[
$ref *string
$schema string go:v1.JSONSchemaURL
additionalItems *JSONSchemaPropsOrBool
additionalProperties *JSONSchemaPropsOrBool
allOf []JSONSchemaProps atomic
anyOf []JSONSchemaProps atomic
default *JSON
definitions {}JSONSchemaProps go:v1.JSONSchemaDefinitions
dependencies {}JSONSchemaPropsOrStringArray go:v1.JSONSchemaDependencies
description string
enum []JSON atomic
example *JSON
exclusiveMaximum bool
exclusiveMinimum bool
externalDocs *ExternalDocumentation
format string
id string
items *JSONSchemaPropsOrArray
maxItems *int64
maxLength *int64
maxProperties *int64
maximum *double
minItems *int64
minLength *int64
minProperties *int64
minimum *double
multipleOf *double
not *JSONSchemaProps
nullable bool
oneOf []JSONSchemaProps atomic
pattern string
patternProperties {}JSONSchemaProps
properties {}JSONSchemaProps
required []string atomic
title string
type string
uniqueItems bool
x-kubernetes-embedded-resource bool
x-kubernetes-int-or-string bool
x-kubernetes-list-map-keys []string atomic
x-kubernetes-list-type *string
x-kubernetes-map-type *string
x-kubernetes-preserve-unknown-fields *bool
x-kubernetes-validations []ValidationRule map(rule) patch:merge(rule) go:v1.ValidationRules
]],

  JSONSchemaPropsOrArray = [[@type any]],

  JSONSchemaPropsOrBool = [[@type any]],

  JSONSchemaPropsOrStringArray = [[@type any]],

  SelectableField = [[jsonPath! string]],

  ServiceReference = [[
name! string
namespace! string
path *string
port *int32
]],

  ValidationRule = [[
fieldPath string
message string
messageExpression string
optionalOldSelf *bool
reason *string {FieldValueDuplicate|FieldValueForbidden|FieldValueInvalid|
  FieldValueRequired} go:v1.FieldValueErrorReason
rule! string
]],

  WebhookClientConfig = [[
caBundle bytes
service *ServiceReference
url *string
]],

  WebhookConversion = [[
clientConfig *WebhookClientConfig
conversionReviewVersions! []string atomic
]],

}
