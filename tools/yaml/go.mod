// What kubectl's reader of YAML answers: see main.go. The version is that of spec/e2e/controlplane.
module moonloop/tools/yaml

go 1.26.0

require sigs.k8s.io/yaml v1.6.0

require go.yaml.in/yaml/v2 v2.4.3 // indirect
