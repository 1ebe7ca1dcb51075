-- The files of moonloop dev are for its user alone, with any umask.
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"

local POD = [[
apiVersion: v1
kind: ConfigMap
metadata: {name: files}
data: {a: text}
---
apiVersion: v1
kind: Pod
metadata: {name: printer}
spec:
  containers:
  - name: main
    image: busybox
    command: [sh, -c, "echo up; sleep 1000"]
    volumeMounts: [{name: scratch, mountPath: scratch}, {name: files, mountPath: files}]
  volumes: [{name: scratch, emptyDir: {}}, {name: files, configMap: {name: files, defaultMode: 0400}}]
]]


describe("moonloop dev", function()
  after_each(dev.stop_all)

  it("writes files with mode 0600 and folders with mode 0700", function()
    local place = shell.folder "modes"
    shell.write(place .. "/pod.yaml", POD)
    shell.write(place .. "/old-audit.log", "")
    shell.must("chmod 644 " .. place .. "/old-audit.log")
    for _, audit in ipairs { "audit.log", "old-audit.log" } do
      local server = dev.start({
        "--apply", place .. "/pod.yaml", "--data", place .. "/data", "--audit-log", place .. "/" .. audit,
        "--write-kubeconfig", place .. "/kubeconfig",
      }, { before = "umask 000" })
      server:till_told "printer +| up\n"
      -- Files and volumes that a pod sees have the modes that the pod says, or those of any container, in folders that
      -- nobody else can enter.
      local mounted = [[ -path "*/pods/*/volumes/*" -o -type f \( -path "*/pods/*/etc/*" -o -path "*/words/*" \) ]]
      local written = shell.must(("find %s/* %s/data %s/%s %s/kubeconfig ! -type l ! \\( %s \\)"):format(server.tmp,
        place, place, audit, place, mounted))
      for _, name in ipairs { "/cluster.log", "_main_0.log", "/kubeconfig", "/" .. audit, "/volumes" } do
        assert.is_truthy(written:find(name, 1, true), name .. " is not in\n" .. written)
      end
      for path in written:gmatch "[^\n]+" do
        assert.matches("^[0-7]00$", shell.must("stat -c %a '" .. path .. "'"):match "%d+", path)
      end
      server:stop()
    end
  end)
end)
