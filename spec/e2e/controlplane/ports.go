package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"github.com/spf13/cobra"
)

// Ports are looked for below the range that the kernel takes the local ends of
// connections from (32768 and up), or one could be taken between the choice and
// its use.
const (
	lowestPort  = 15000
	highestPort = 32000
)

// newFreePortsCommand prints free loopback ports, so that several control planes
// can run side by side.
func newFreePortsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "free-ports COUNT",
		Short: "print free loopback ports, one a line",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			count, err := strconv.Atoi(args[0])
			if err != nil || count < 1 || count > 100 {
				return fmt.Errorf("COUNT must be a number from 1 to 100, not %q", args[0])
			}
			return printFreePorts(count)
		},
	}
}

// printFreePorts keeps each port open until it has them all, so that none is
// printed twice.
func printFreePorts(count int) error {
	for tries := 0; count > 0; tries++ {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			if tries > 1000 {
				return fmt.Errorf("no free port: %w", err)
			}
			continue
		}
		defer listener.Close()
		fmt.Println(port)
		count--
	}
	return nil
}
