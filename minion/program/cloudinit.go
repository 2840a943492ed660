package program

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/brine-salt/brine/internal/daemon"
	"github.com/brine-salt/brine/internal/saltcli"
)

// cloudInitDir is where cloud-init keeps the state of this boot.
const cloudInitDir = "/run/cloud-init"

// cloudInitPoll is how often a waiting minion checks whether cloud-init has finished.
const cloudInitPoll = time.Second

var errCloudInitDone = errors.New("cloud-init has finished")

// cloudInitRuns reports whether cloud-init configures this host and has not finished. It writes result.json at its end,
// also after errors.
func cloudInitRuns(dir string) bool {
	_, enabled := os.Stat(filepath.Join(dir, "enabled"))
	_, done := os.Stat(filepath.Join(dir, "result.json"))
	return enabled == nil && done != nil
}

// awaitCloudInit waits until cloud-init has finished, and reports whether it has: a signal ends the wait as well. The
// supervisor is told that the minion is ready: cloud-init's last stage starts after the units that the system starts
// with, and may restart the minion.
func awaitCloudInit(ctx context.Context, p *saltcli.Program, dir string) bool {
	p.Log.Info("Waiting until cloud-init has finished (start_after_cloud_init)")
	d := daemonOptions(p)
	d.Again = func(err error) bool { return err != nil }
	return daemon.Run(ctx, d, func(ctx context.Context, n *daemon.Notifier) error {
		n.Started()
		n.Ready()
		n.Status("waiting until cloud-init has finished")
		tick := time.NewTicker(cloudInitPoll)
		defer tick.Stop()
		for cloudInitRuns(dir) {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
		return errCloudInitDone
	}) != nil
}
