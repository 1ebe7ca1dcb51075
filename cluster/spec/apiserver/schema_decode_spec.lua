local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local decode = require("cluster.apiserver.schema").decode


local function told(kind, text)
  local group = kind == "Deployment" and "apps" or kind == "CustomResourceDefinition" and "apiextensions.k8s.io" or ""
  local why = decode(builtin.of(group, "v1", kind), assert(host.json.decode(text)))
  return why
end


local function unmarshal(what, field, go_type)
  return ("json: cannot unmarshal %s into Go struct field %s of type %s"):format(what, field, go_type)
end


local NOT_A_QUANTITY = "quantities must match the regular expression "
  .. "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


describe("reading a built-in kind", function()
  for _, case in ipairs {
    { '{"spec":5}', unmarshal("number", "Deployment.spec", "v1.DeploymentSpec") },
    { '{"spec":{"replicas":1.5}}', unmarshal("number 1.5", "DeploymentSpec.spec.replicas", "int32") },
    { '{"spec":{"replicas":99999999999}}', unmarshal("number 99999999999", "DeploymentSpec.spec.replicas", "int32") },
    { '{"spec":{"paused":"x"}}', unmarshal("string", "DeploymentSpec.spec.paused", "bool") },
    { '{"metadata":{"labels":{"a":5}}}', unmarshal("number", "ObjectMeta.metadata.labels", "string") },
    { '{"metadata":{"labels":[]}}', unmarshal("array", "ObjectMeta.metadata.labels", "map[string]string") },
    { '{"metadata":{"ownerReferences":[{"uid":5}]}}',
      unmarshal("number", "OwnerReference.metadata.ownerReferences.uid", "types.UID") },
    { '{"metadata":{"creationTimestamp":5}}', unmarshal("number", "ObjectMeta.metadata.creationTimestamp", "string") },
    { '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}}',
      unmarshal("bool", "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge", "int32") },
    { '{"spec":{"strategy":{"type":5}}}',
      unmarshal("number", "DeploymentStrategy.spec.strategy.type", "v1.DeploymentStrategyType") },
    { '{"spec":{"template":{"spec":{"containers":{}}}}}',
      unmarshal("object", "PodSpec.spec.template.spec.containers", "[]v1.Container") },
    { '{"spec":{"template":{"spec":{"containers":["x"]}}}}',
      unmarshal("string", "PodSpec.spec.template.spec.containers", "v1.Container") },
    { '{"spec":{"template":{"spec":{"containers":[{"ports":[{"containerPort":"x"}]}]}}}}',
      unmarshal("string", "ContainerPort.spec.template.spec.containers.ports.containerPort", "int32") },
    { '{"spec":{"template":{"spec":{"containers":[{"resources":{"limits":[]}}]}}}}',
      unmarshal("array", "ResourceRequirements.spec.template.spec.containers.resources.limits", "v1.ResourceList") },
    { '{"spec":{"template":{"spec":{"volumes":[{"emptyDir":{"medium":5}}]}}}}', unmarshal("number",
      "EmptyDirVolumeSource.spec.template.spec.volumes.VolumeSource.emptyDir.medium", "v1.StorageMedium") },
  } do
    it("refuses " .. case[1], function()
      assert.equal(case[2], told("Deployment", case[1]))
    end)
  end

  for _, case in ipairs {
    { "yesterday", 'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"' },
    { "", 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"' },
    { "2026-13-01T00:00:00Z", 'parsing time "2026-13-01T00:00:00Z": month out of range' },
    { "2026-11-31T00:00:00Z", 'parsing time "2026-11-31T00:00:00Z": day out of range' },
    { "2026-11-01T00:00:00",
      'parsing time "2026-11-01T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"' },
    { "2026-11-01T00:00:00Zx", 'parsing time "2026-11-01T00:00:00Zx": extra text: "x"' },
    { "2026-11-01T00:00:00+25:00", 'parsing time "2026-11-01T00:00:00+25:00": time zone offset hour out of range' },
    { "2026-11-01T00:00:00.5+01:00", nil },
    { "2028-02-29T23:59:59Z", nil },
  } do
    it("judges the time " .. case[1], function()
      assert.equal(case[2], told("Pod", ('{"metadata":{"creationTimestamp":"%s"}}'):format(case[1])))
    end)
  end

  for _, case in ipairs {
    { '"100m"' }, { "1.5" }, { '"1e3"' }, { '" 1 "' }, { '"."' },
    { '"abc"', NOT_A_QUANTITY }, { '""', NOT_A_QUANTITY }, { "true", NOT_A_QUANTITY }, { "{}", NOT_A_QUANTITY },
    { '"1e"', "unable to parse quantity's suffix" }, { '"1mm"', "unable to parse quantity's suffix" },
  } do
    it("judges the amount " .. case[1], function()
      assert.equal(case[2], told("Pod", ('{"spec":{"overhead":{"cpu":%s}}}'):format(case[1])))
    end)
  end

  for _, case in ipairs {
    { "YQ==" }, { "YWJj" }, { "YW\\nJj" }, { "" },
    { "x!", 1 }, { "YQ=", 3 }, { "YWJj=", 4 }, { "Y", 0 }, { "YQ==YQ==", 4 }, { "Y Q==", 1 }, { "abcd\\nYQ", 5 },
  } do
    it("judges the bytes " .. case[1], function()
      assert.equal(case[2] and "illegal base64 data at input byte " .. case[2],
        told("Secret", ('{"data":{"a":"%s"}}'):format(case[1])))
    end)
  end

  it("takes null for anything", function()
    assert.is_nil(told("Deployment", '{"metadata":null,"spec":{"replicas":null,"template":{"spec":null}}}'))
  end)

  it("looks into schemas that stand in the place of something else", function()
    assert.equal("boolean or JSON schema expected", told("CustomResourceDefinition",
      '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"additionalProperties":5}}}]}}'))
    assert.equal(unmarshal("number", "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.type", "string"),
      told("CustomResourceDefinition",
        '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"items":{"type":5}}}}]}}'))
  end)
end)
