// Command load is what the figures of bench/ are taken with: it makes objects
// fast, waits without loading the API server, and reads from the audit log who
// wrote what and when. Standard library only. It prints its figures to stdout,
// one a line: the name, a tab, the value in seconds or as a count.
package main

import (
	"fmt"
	"os"
)

var commands = map[string]func(args []string) error{
	"answered":  runAnswered,
	"ats":       runAts,
	"begin":     runBegin,
	"changes":   runChanges,
	"churn":     runChurn,
	"echo":      runEcho,
	"edits":     runEdits,
	"first":     runFirst,
	"flood":     runFlood,
	"hop":       runHop,
	"hops":      runHops,
	"lateness":  runLateness,
	"lives":     runLives,
	"maps":      runMaps,
	"namespace": runNamespace,
	"objects":   runObjects,
	"observe":   runObserve,
	"outages":   runOutages,
	"overtake":  runOvertake,
	"pods":      runPods,
	"proxy":     runProxy,
	"ready":     runReady,
	"reviewed":  runReviewed,
	"reviews":   runReviews,
	"requests":  runRequests,
	"seen":      runSeen,
	"starts":    runStarts,
	"stream":    runStream,
	"wait":      runWait,
	"watchers":  runWatchers,
	"webhook":   runWebhook,
	"writes":    runWrites,
}

const usage = `usage: load COMMAND [FLAG...]      (-h after a command lists its flags)
  namespace  make one, and wait until pods can be made in it
  ats        make Ats, due at one instant
  churn      make Ats at a rate, each due soon, and delete each after a while
  edits      make waiting Ats due, one after the other
  pods       the bare client: make the pods of those Ats at one instant, with nothing in between
  wait       until so many pods were made, as the audit log says, and so many objects are in a phase
  lateness   from the instant, or that in each name, to each pod's create, from the audit log
  writes     by client, verb and resource, from the audit log
  requests   how many the operator sent since an instant, from the audit log
  overtake   from each edit to its pod, from the audit log
  first      from an instant to the first pod, from the audit log
  ready      when a URL first answered 200
  objects    makes objects after a pattern, or waits until they are ready
  reviews    asks a webhook server of the operator at a rate, on kept or on new connections: how long its answers take
  reviewed   makes Ats, every second one with a label: what the webhook that is asked about those adds
  answered   when the server of a kubeconfig that is still to be written first answered
  maps       makes ConfigMaps of 1 KB as fast as it can, and reads them: how many a second
  watchers   many watch while ConfigMaps are made at a rate: how many events did not arrive
  webhook    makes ConfigMaps, and asks a webhook of its own about every second one: what that adds
  starts     makes pods one after the other: from each create until it runs
  hops       one pod asks another at its address and by its Service: what the Service adds (echo and hop are its pods)
  changes    changes a ConfigMap that a pod has as a volume: how long until the pod sees it (seen is its pod)
  stream     serves lists and watches of pods and Ats that it makes up, for many objects at no cost of a real server
  lives      serves Ats that come, get pods and end, at little cost of a server: for profiles
  begin      has such a server make its Ats, until all are DONE
  flood      asks a stream for events at a rate: the operator's lag behind them, and its CPU
  proxy      stands before an API server and is gone by turns
  outages    from each end of one to the operator's watches and its next pod, and the lists it took, from the audit log
  observe    a process each second: descriptors, memory, probes
`

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "load %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
