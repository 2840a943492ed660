package states

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// everything is the id under which a pause of the whole run is stored, as in Salt.
const everything = "__all__"

// pauseInterval is how often a paused run checks whether it may go on. Another process writes the file, so there is
// nothing to wait for but time.
const pauseInterval = 200 * time.Millisecond

// maxPauseFile limits the file of a pause, in bytes.
const maxPauseFile = 1 << 20

// PauseDir returns the directory of the pauses of running jobs, one file for each job id.
func PauseDir(e *modules.Env) string {
	return e.Path(filepath.Join(pytext.Str(e.Opt("cachedir")), "state_pause"))
}

// pauseFile returns the file of a job. An id that could name a file elsewhere, such as "../x", is an error.
func pauseFile(e *modules.Env, jid string) (string, error) {
	if !protocol.ValidJID(jid) {
		return "", modules.Usagef("'%s' is not a job id", jid)
	}
	return filepath.Join(PauseDir(e), jid), nil
}

// ReadPause returns the pauses of a job by state id, each with "duration" or "kill" if set. The map is empty if
// there are none.
func ReadPause(e *modules.Env, jid string) (map[string]any, error) {
	path, err := pauseFile(e, jid)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return map[string]any{}, nil //nolint:nilerr // without a file there is no pause
	}
	if info.Size() > maxPauseFile {
		return nil, modules.Errorf("cannot read the pauses of %s: the file is larger than %d bytes", jid, maxPauseFile)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v, err := payload.UnmarshalDisk(b, payload.Limits{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the pauses of %s: %w", jid, err)
	}
	data, ok := payload.Map(v)
	if !ok {
		return map[string]any{}, nil
	}
	return data, nil
}

// ChangePause changes the pauses of a job by calling change with all of them. id "" stands for the whole run.
func ChangePause(e *modules.Env, jid, id string, change func(data map[string]any, id string)) error {
	path, err := pauseFile(e, jid)
	if err != nil {
		return err
	}
	if id == "" {
		id = everything
	}
	data, err := ReadPause(e, jid)
	if err != nil {
		return err
	}
	change(data, id)
	b, err := payload.Marshal(data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteFile(path, b, 0o644)
}

// waitWhilePaused waits while the chunk is paused. It returns "kill" if the run must end (State.check_pause). A
// file that cannot be read counts as no pause, as in Salt, so that a damaged file does not stop a run for ever.
func (r *Run) waitWhilePaused(ctx context.Context, low *Low) string {
	if r.jid == "" {
		return ""
	}
	path, err := pauseFile(r.env, r.jid)
	if err != nil {
		return ""
	}
	start := time.Now()
	for {
		if _, err := os.Stat(path); err != nil {
			return ""
		}
		data, err := ReadPause(r.env, r.jid)
		if err != nil {
			r.env.Logger().Error("Failed to read in pause data for file located at: "+path, "err", err)
			return ""
		}
		v, ok := data[low.id]
		if !ok {
			v, ok = data[everything]
		}
		if !ok {
			return ""
		}
		what, _ := payload.Map(v)
		if d, ok := payload.Int(what["duration"]); ok && time.Since(start) > time.Duration(d)*time.Second {
			return ""
		}
		if _, kill := what["kill"]; kill {
			return "kill"
		}
		if sleep(ctx, pauseInterval) != nil {
			return "kill"
		}
	}
}

// endPause removes the pauses of a run that has ended.
func (r *Run) endPause() {
	if r.jid == "" {
		return
	}
	if path, err := pauseFile(r.env, r.jid); err == nil {
		_ = os.Remove(path) // there is seldom a file
	}
}
