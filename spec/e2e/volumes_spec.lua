-- The volumes of a pod that runs, as its processes see them while the sources change. On the embedded server: pods of
-- the control plane run nothing.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local kubectl = require "spec.e2e.support.kubectl"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local served = cluster.controlplane and pending or it
local WITHIN = 2 -- seconds
local CHANGES = 200

local POD = [[
apiVersion: v1
kind: Pod
metadata:
  name: reader
  labels: { tier: front }
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: busybox
    command: [sh, -c, "while :; do sleep 1; done"]
    volumeMounts:
    - { name: settings, mountPath: /settings }
    - { name: settings, mountPath: /alone, subPath: text }
    - { name: maybe, mountPath: /maybe }
    - { name: about, mountPath: /about }
  volumes:
  - name: settings
    configMap: { name: settings, defaultMode: 0440 }
  - name: maybe
    secret: { secretName: maybe, optional: true }
  - name: about
    projected:
      sources:
      - downwardAPI: { items: [ { path: pod/labels, fieldRef: { fieldPath: metadata.labels } } ] }
      - serviceAccountToken: { path: token, expirationSeconds: 600 }
]]


describe("The volumes of a pod that runs", function()
  local ns

  -- Runs a shell line in the pod. @return string the output, without the end of its last line
  local function said(line)
    local words = { os.getenv "KUBECTL" or "kubectl", "-n", ns, "exec", "reader", "--", "sh", "-c", line }
    return (shell.run(shell.line(words) .. " 2>/dev/null"):gsub("\n$", ""))
  end

  local function till_said(line, wanted)
    wait.till(line .. " to print " .. wanted, WITHIN, function()
      local now = said(line)
      return now == wanted, now
    end)
  end

  setup(function()
    if not cluster.controlplane then
      ns = cluster.namespace "volumes"
      kubectl.run("-n", ns, "create", "configmap", "settings", "--from-literal=text=0", "--from-literal=more=x")
      local path = shell.path "pod.yaml"
      shell.write(path, POD)
      kubectl.run("-n", ns, "apply", "-f", path)
      kubectl.run("-n", ns, "wait", "pod/reader", "--for=condition=Ready", "--timeout=60s")
    end
  end)

  teardown(function()
    if ns then
      cluster.forget(ns)
    end
  end)

  served("show a changed ConfigMap in one step, at its names and behind ..data alone", function()
    assert.equal("0x440", said "cat /settings/text /settings/more; stat -Lc %a /settings/text")
    kubectl.run("-n", ns, "patch", "configmap", "settings", "-p", '{"data":{"text":"1","more":null,"new":"y"}}')
    till_said("cat /settings/text; ls /settings | tr '\\n' ' '; cat /alone", "1new text 0")
    assert.equal("..data/text", said "readlink /settings/text")
    assert.equal("1", said "ls -d /settings/..2* | wc -l")
  end)

  served("show the last text of a ConfigMap that changes as fast as it can be written", function()
    for i = 1, CHANGES do
      api.patch("ConfigMap", ns, "settings", { data = { text = "change " .. i } })
    end
    till_said("cat /settings/text", "change " .. CHANGES)
    assert.equal("1", said "ls -d /settings/..2* | wc -l")
  end)

  served("show an optional Secret when it is made, and no more when it goes", function()
    assert.equal("", said "ls /maybe")
    kubectl.run("-n", ns, "create", "secret", "generic", "maybe", "--from-literal=key=value")
    till_said("cat /maybe/key", "value")
    kubectl.run("-n", ns, "delete", "secret", "maybe")
    till_said("ls /maybe | wc -l", "0")
  end)

  served("show the pod's labels as they are, beside its token", function()
    assert.equal('tier="front"', said "cat /about/pod/labels")
    local token = said "cat /about/token"
    kubectl.run("-n", ns, "label", "pod", "reader", "tier=back", "--overwrite")
    till_said("cat /about/pod/labels", 'tier="back"')
    assert.equal(token, said "cat /about/token")
  end)

  served("keep the files of a ConfigMap that is deleted, with an Event that says so", function()
    local before = said "cat /settings/*"
    kubectl.run("-n", ns, "delete", "configmap", "settings")
    wait.till("the Event", WITHIN, function()
      for _, event in ipairs(api.list("Event", ns)) do
        if event.reason == "FailedMount" and (event.note or ""):find('configmap "settings" not found', 1, true) then
          return true
        end
      end
    end)
    assert.equal(before, said "cat /settings/*")
  end)
end)
