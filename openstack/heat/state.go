package heat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/backoff"
)

// States of a deployment.
const (
	stateRunning = "running" // started, without a result
	stateResume  = "resume"  // waiting to continue after a reboot
	stateDone    = "done"
)

// record is the state of a deployment on disk: one small file, which is replaced as a whole.
type record struct {
	State      string
	Boot       string // boot id when it was started
	Started    time.Time
	Resumes    int    // number of continuations after a reboot
	Out, Error string // output before the reboots
}

// maxResumes limits how often a deployment may request a reboot.
const maxResumes = 10

// ExitResume is the exit code with which a script with the option resume requests a reboot, after which it runs
// again.
const ExitResume = 194

func (p Paths) recordPath(id string) string { return filepath.Join(p.state(), "run", id+".json") }

// bootID returns the id of the current boot, or "" if it is unknown.
func (p Paths) bootID() string {
	b, err := os.ReadFile(p.at("/proc/sys/kernel/random/boot_id"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (p Paths) writeRecord(id string, r record) error {
	m := map[string]any{"state": r.State, "boot": r.Boot, "started": r.Started.UTC().Format(time.RFC3339), "resumes": r.Resumes}
	if r.Out != "" || r.Error != "" {
		m["stdout"], m["stderr"] = r.Out, r.Error
	}
	return writePrivate(p.recordPath(id), encode(m))
}

// readRecord returns false if there is no readable record. Then only the deployed file is used.
func (p Paths) readRecord(id string) (record, bool) {
	b, err := readLimited(p.recordPath(id), maxFile)
	if err != nil {
		return record{}, false
	}
	m := parseJSON(b)
	text := func(name string) string { s, _ := m[name].(string); return s }
	r := record{State: text("state"), Boot: text("boot"), Out: text("stdout"), Error: text("stderr")}
	n, _ := m["resumes"].(int64)
	r.Resumes = int(n)
	r.Started, _ = time.Parse(time.RFC3339, text("started"))
	return r, r.State != ""
}

// records returns the ids of all deployments with a record.
func (p Paths) records() []string {
	entries, _ := os.ReadDir(filepath.Join(p.state(), "run"))
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && goodID(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// deployedPath returns the file whose existence means that a deployment was started, for this agent and for
// heat-config.
func (p Paths) deployedPath(id string) string { return filepath.Join(p.deployed(), id+".json") }

func (p Paths) notifyPath(id string) string { return filepath.Join(p.deployed(), id+".notify.json") }

// ReadStatus returns the result of heat.status: deployments with their state, and pending signals.
func ReadStatus(p Paths) (map[string]any, error) {
	entries, err := os.ReadDir(p.deployed())
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("cannot read the deployments: %w", err)
	}
	list := map[string]any{}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || strings.HasSuffix(id, ".notify") || !goodID(id) {
			continue
		}
		item := map[string]any{"state": stateDone}
		if b, err := readLimited(p.deployedPath(id), maxFile); err == nil {
			m := parseJSON(b)
			item["name"], item["group"] = m["name"], m["group"]
		}
		if r, ok := p.readRecord(id); ok {
			item["state"], item["started"] = r.State, r.Started.Format(time.RFC3339)
		}
		if b, err := readLimited(p.notifyPath(id), maxFile); err == nil {
			item["status_code"] = int64(Result(parseJSON(b)).Status())
		}
		list[id] = item
	}
	waiting := []any{}
	signals, _ := os.ReadDir(filepath.Join(p.state(), "signals"))
	for _, e := range signals {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			waiting = append(waiting, id)
		}
	}
	return map[string]any{"deployments": list, "signals_waiting": waiting}, nil
}

// retry calls f until it succeeds, at most n times, with growing pauses. It returns the number of calls.
func retry(ctx context.Context, n int, f func() error) (int, error) {
	b := backoff.Backoff{Base: time.Second, Max: 30 * time.Second}
	for i := 1; ; i++ {
		err := f()
		if err == nil || i >= n {
			return i, err
		}
		if !backoff.Sleep(ctx, b.Next()) {
			return i, err
		}
	}
}
