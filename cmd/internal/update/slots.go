package update

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/brine-salt/brine/cmd/internal/update/layout"
	"github.com/brine-salt/brine/internal/atomicfile"
)

// The two slots are directories with a program each. The minion's program is a link to the slot in use.
var slotNames = [...]string{"a", "b"}

const (
	slotsDir  = "slots"
	stateFile = "state.json"
	lockFile  = "lock"
	logFile   = "log"
	maxState  = 64 << 10
	maxFailed = 16 // failed versions that are remembered
	maxLog    = 256 << 10
)

// State is the updater's stored state, in state.json.
type State struct {
	// Slots are the versions in the slots.
	Slots map[string]string `json:"slots"`
	// Pinned is the only version that may be installed, or "" for any version.
	Pinned string `json:"pinned,omitempty"`
	// Disabled is set by "brine-update disable".
	Disabled bool `json:"disabled,omitempty"`
	// Trial is the current update, or nil.
	Trial *Trial `json:"trial,omitempty"`
	// Failed are the versions that were rolled back. They are only tried again on request.
	Failed []string `json:"failed,omitempty"`
	// Checked is when a repository was last queried, Latest its newest version, and Result the outcome.
	Checked int64  `json:"checked,omitempty"`
	Latest  string `json:"latest,omitempty"`
	Result  string `json:"result,omitempty"`
}

// The phases of a trial. Each is stored before its actions begin. The actions may be repeated.
const (
	phaseSwitch = "switch" // point the link to the new program and restart the minion
	phaseWatch  = "watch"  // wait for the new program to sign in
	phaseBack   = "back"   // point the link back and restart the minion
)

// Trial is an update whose program is in its slot.
type Trial struct {
	Slot  string `json:"slot"`
	Back  string `json:"back"` // slot of the previous program
	To    string `json:"to"`
	From  string `json:"from"`
	Phase string `json:"phase"`
	JID   string `json:"jid,omitempty"` // job that ordered it
	// Connected is set if the previous program was signed in. Otherwise the new one need not sign in either.
	Connected bool `json:"connected"`
	// Pinged is set if the previous program answered a requested ping of its master. Then the new program must do so,
	// too.
	Pinged bool `json:"pinged"`
	// Restarted is when the new program was started, in seconds since 1970.
	Restarted int64 `json:"restarted,omitempty"`
	// Watched counts how often the watch began. A power loss may interrupt it at most maxWatches times.
	Watched int `json:"watched,omitempty"`
}

const maxWatches = 3

func (u *Updater) path(parts ...string) string {
	return filepath.Join(append([]string{u.StateDir}, parts...)...)
}

// slotProgram returns the path of the program in a slot.
func (u *Updater) slotProgram(slot string) string { return u.path(slotsDir, slot, layout.Program) }

// readState reads the state. It is empty on a new host.
func (u *Updater) readState() (*State, error) {
	s := &State{Slots: map[string]string{}}
	text, err := readLimit(u.path(stateFile), maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err == nil && s.Trial != nil && (!slices.Contains(slotNames[:], s.Trial.Slot) || !slices.Contains(slotNames[:], s.Trial.Back)) {
		err = errors.New("the record of the trial has no slot")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the state of updates: %w", inFile(u.path(stateFile), text, err))
	}
	if s.Slots == nil {
		s.Slots = map[string]string{}
	}
	return s, nil
}

func (u *Updater) writeState(s *State) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(u.path(stateFile), append(text, '\n'), 0o600)
}

// linked returns the slot that the minion's program is a link to. It returns "" if the program is a regular file, as
// installed by a package.
func (u *Updater) linked() (string, error) {
	to, err := os.Readlink(u.Program)
	if err != nil {
		if info, statErr := os.Lstat(u.Program); statErr == nil && info.Mode().IsRegular() {
			return "", nil
		}
		return "", fmt.Errorf("cannot find the minion's program: %w", err)
	}
	for _, slot := range slotNames {
		if to == u.slotProgram(slot) {
			return slot, nil
		}
	}
	return "", fmt.Errorf("cannot update %s: it is a link to %s, which is not of brine-update", u.Program, to)
}

// link makes the minion's program a link to a slot. The change is atomic: others see either the old or the new
// program.
func (u *Updater) link(slot string) error {
	to := u.slotProgram(slot)
	if now, err := os.Readlink(u.Program); err == nil && now == to {
		return nil
	}
	next := u.Program + ".brine-update"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot switch the program: %w", err)
	}
	if err := os.Symlink(to, next); err != nil {
		return fmt.Errorf("cannot switch the program: %w", err)
	}
	u.step("linking")
	if err := os.Rename(next, u.Program); err != nil {
		return errors.Join(fmt.Errorf("cannot switch the program: %w", err), os.Remove(next))
	}
	return atomicfile.SyncDir(filepath.Dir(u.Program))
}

// keep copies a program that is not in a slot to the first slot, so that the update can be rolled back. It returns
// that slot.
func (u *Updater) keep(s *State, version string) (string, error) {
	data, err := readLimit(u.Program, layout.MaxProgram)
	if err != nil {
		return "", fmt.Errorf("cannot keep the program: %w", err)
	}
	slot := slotNames[0]
	if err := u.fill(s, slot, version, data); err != nil {
		return "", err
	}
	return slot, nil
}

// fill writes a program to an unused slot.
func (u *Updater) fill(s *State, slot, version string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(u.slotProgram(slot)), 0o755); err != nil {
		return fmt.Errorf("cannot fill slot %s: %w", slot, err)
	}
	if err := atomicfile.SyncDir(u.path(slotsDir)); err != nil {
		return err
	}
	delete(s.Slots, slot)
	if err := u.writeState(s); err != nil {
		return err
	}
	u.step("filling")
	if err := atomicfile.WriteFile(u.slotProgram(slot), data, 0o755); err != nil {
		return err
	}
	u.step("filled")
	s.Slots[slot] = version
	return u.writeState(s)
}

// sweep removes files that a power loss left behind: temporary files of links and slots, and directories of checks.
func (u *Updater) sweep() {
	_ = os.Remove(u.Program + ".brine-update")
	if dirs, err := filepath.Glob(u.path("check-*")); err == nil {
		for _, d := range dirs {
			_ = os.RemoveAll(d)
		}
	}
	for _, slot := range slotNames {
		dir := filepath.Dir(u.slotProgram(slot))
		list, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range list {
			if e.Name() != layout.Program {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
	for _, name := range []string{stateFile, trustedFile} {
		// Only one updater runs at a time, so no other process is writing these files.
		if left, err := filepath.Glob(u.path("." + name + ".*")); err == nil {
			for _, f := range left {
				_ = os.Remove(f)
			}
		}
	}
}
