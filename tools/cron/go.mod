// What Kubernetes' reader of cron expressions answers: see main.go. The version is that of spec/e2e/controlplane.
module moonloop/tools/cron

go 1.26.0

require github.com/robfig/cron/v3 v3.0.1
