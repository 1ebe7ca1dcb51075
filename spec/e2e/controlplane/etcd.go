package main

import (
	"fmt"
	"net/url"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// newEtcdCommand is a one-member etcd for a cluster that lives as long as a test
// run.
func newEtcdCommand() *cobra.Command {
	var dir, client, peer string
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "run a one-member etcd that does not sync to disk",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runEtcd(cmd, dir, client, peer)
		},
	}
	cmd.Flags().StringVar(&dir, "data-dir", "", "folder for the data")
	cmd.Flags().StringVar(&client, "client-url", "", "URL to serve clients on")
	cmd.Flags().StringVar(&peer, "peer-url", "", "URL to serve (absent) peers on; etcd insists on one")
	for _, flag := range []string{"data-dir", "client-url", "peer-url"} {
		_ = cmd.MarkFlagRequired(flag)
	}
	return cmd
}

func runEtcd(cmd *cobra.Command, dir, client, peer string) error {
	clientURL, err := url.Parse(client)
	if err != nil {
		return err
	}
	peerURL, err := url.Parse(peer)
	if err != nil {
		return err
	}

	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "warn"
	// Unset, it warns of every request: only etcd's own flags have a default for it.
	config.WarningUnaryRequestDuration = time.Second
	config.UnsafeNoFsync = true // nothing here outlives the test run, and every write would wait for the disk
	config.ListenClientUrls = []url.URL{*clientURL}
	config.AdvertiseClientUrls = config.ListenClientUrls
	config.ListenPeerUrls = []url.URL{*peerURL}
	config.AdvertisePeerUrls = config.ListenPeerUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)

	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	server, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	// It is not closed at the end: that waits for clients to go, and whatever has
	// been acknowledged is in the write-ahead log already.
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return err
	}
}
