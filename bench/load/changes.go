package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	changesFolder = "/changes"
	changesFile   = "at"
	changesPause  = 1200 * time.Millisecond // the volumes of a pod are written once a second at most
)

// runSeen is what the pod of runChanges runs: the file in its volume says when it was changed.
func runSeen(args []string) error {
	set := flag.NewFlagSet("seen", flag.ExitOnError)
	count := set.Int("count", 10, "how many changes")
	_ = set.Parse(args)
	var took []time.Duration
	last := "0"
	for len(took) < *count {
		text, err := os.ReadFile(filepath.Join(changesFolder, changesFile))
		if err != nil {
			return err
		}
		if string(text) != last {
			last = string(text)
			at, err := strconv.ParseInt(last, 10, 64)
			if err != nil {
				return err
			}
			took = append(took, time.Since(time.Unix(0, at)))
		}
		time.Sleep(time.Millisecond)
	}
	slices.Sort(took)
	fmt.Printf("p50\t%.6f\nlongest\t%.6f\n", took[len(took)/2].Seconds(), took[len(took)-1].Seconds())
	return nil
}

// runChanges changes a ConfigMap that a pod has as a volume, in a cluster whose image "load" is this program.
func runChanges(args []string) error {
	var flags createFlags
	set := flag.NewFlagSet("changes", flag.ExitOnError)
	flags.register(set, "not used")
	_ = set.Parse(args)
	c, err := newClient(flags.kubeconfig)
	if err != nil {
		return err
	}
	maps, pods := fmt.Sprintf(mapsPath, flags.namespace), fmt.Sprintf(podsPath, flags.namespace)
	running, ended := c.phases(flags.namespace, "Running"), c.phases(flags.namespace, "Succeeded")
	err = c.post(maps, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"changes"},`+
		`"data":{%q:"0"}}`, changesFile))
	if err == nil {
		err = c.post(pods, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"changes"},"spec":{`+
			`"restartPolicy":"Never","containers":[{"name":"c","image":"load","args":["seen","-count","%d"],"volumeMounts":`+
			`[{"name":"v","mountPath":%q}]}],"volumes":[{"name":"v","configMap":{"name":"changes"}}]}}`,
			flags.count, changesFolder))
	}
	if err == nil {
		_, err = await(running, "changes")
	}
	for i := 0; i < flags.count && err == nil; i++ {
		time.Sleep(changesPause)
		err = c.patch(maps+"/changes", fmt.Sprintf(`{"data":{%q:"%d"}}`, changesFile, time.Now().UnixNano()))
	}
	if err == nil {
		_, err = await(ended, "changes")
	}
	if err != nil {
		return err
	}
	said, err := c.log(pods + "/changes")
	fmt.Print(said)
	if err == nil && !strings.Contains(said, "longest") {
		err = errors.New("the pod saw no change")
	}
	return err
}
