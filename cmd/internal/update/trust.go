package update

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/config"
	"github.com/theupdateframework/go-tuf/v2/metadata/updater"

	"github.com/brine-salt/brine/cmd/internal/update/layout"
	"github.com/brine-salt/brine/internal/atomicfile"
)

// Limits of a repository. They are checked before memory is allocated.
const (
	maxRoot      = 64 << 10
	maxTimestamp = 16 << 10
	maxSnapshot  = 128 << 10
	maxTargets   = 1 << 20
	maxRotations = 64 // of the root, per check
	maxRoles     = 8  // delegations to a program
	// maxTrusted is for the file with verified metadata.
	maxTrusted = 4 << 20
)

// trustedFile is the file in the state directory with the last verified metadata.
const trustedFile = "trusted.json"

// trusted holds the verified metadata of a repository by role. It is stored even if later metadata is refused: a
// revoked key stays revoked, and older versions are not accepted later.
type trusted struct {
	// Pinned is the SHA-256 of the pinned root file. With a different file, the stored metadata is ignored.
	Pinned string            `json:"pinned"`
	Roles  map[string]string `json:"roles"`
	// Past is a time that has been reached, in seconds since 1970: the latest time of a check, but at most a second after
	// the expiry of the timestamp verified then. Setting the clock back does not make expired metadata valid, and a clock
	// that was once in the future blocks updates only until the repository signs its next timestamp.
	Past int64 `json:"past"`
}

// A Program is a program from a verified repository.
type Program struct {
	Version string
	Data    []byte
}

// A Repository fetches programs from a repository, which it verifies with the host's pinned keys.
type Repository struct {
	Root     string // the file with the pinned root metadata
	StateDir string
	Channel  string
	Platform string // linux-amd64
	Salt     []string
	Download time.Duration
	Now      func() time.Time
}

// Fetch looks for a version, or the newest one for "", in the repository at source, and returns its program. If takes
// returns false for the version, Fetch downloads no program and returns nil. If it refuses a repository, only
// metadata that was verified before that is stored.
func (r *Repository) Fetch(ctx context.Context, source, version string, takes func(version string) bool) (found string, p *Program, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Download)
	defer cancel()
	pinned, err := readLimit(r.Root, maxRoot)
	if err != nil {
		return "", nil, fmt.Errorf("cannot read the pinned keys: %w", err)
	}
	if err := json.Unmarshal(pinned, new(any)); err != nil {
		return "", nil, fmt.Errorf("cannot read the pinned keys: %w", inFile(r.Root, pinned, err))
	}
	t, err := r.load(pinned)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp(r.StateDir, "check-")
	if err != nil {
		return "", nil, fmt.Errorf("cannot check for updates: %w", err)
	}
	defer os.RemoveAll(dir)
	u, err := r.open(ctx, dir, source, pinned, t)
	if err == nil {
		found, p, err = r.choose(u, version, takes)
	}
	if saveErr := r.save(dir, t); saveErr != nil {
		err = errors.Join(err, saveErr)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("the repository did not answer within %s: %w", r.Download, context.Cause(ctx))
	}
	if err != nil {
		return "", nil, fmt.Errorf("cannot take an update from %s: %w", source, err)
	}
	return found, p, nil
}

// open creates go-tuf's client for a directory, which it fills with the trusted metadata.
func (r *Repository) open(ctx context.Context, dir, source string, pinned []byte, t *trusted) (*updater.Updater, error) {
	root := pinned
	for role, text := range t.Roles {
		if role == metadata.ROOT {
			root = []byte(text)
		}
		if err := os.WriteFile(filepath.Join(dir, role+".json"), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	source = strings.TrimSuffix(source, "/")
	u, err := updater.New(&config.UpdaterConfig{
		MaxRootRotations: maxRotations, MaxDelegations: maxRoles, RootMaxLength: maxRoot,
		TimestampMaxLength: maxTimestamp, SnapshotMaxLength: maxSnapshot, TargetsMaxLength: maxTargets,
		Fetcher:          fetcher{ctx: ctx, salt: r.Salt, dir: dir},
		LocalTrustedRoot: root, LocalMetadataDir: dir, LocalTargetsDir: dir,
		RemoteMetadataURL: source + "/metadata", RemoteTargetsURL: source + "/targets",
		PrefixTargetsWithHash: true,
	})
	if err != nil {
		return nil, fmt.Errorf("the pinned keys %s cannot be used: %w", r.Root, err)
	}
	clock := r.Now()
	now := clock
	if past := time.Unix(t.Past, 0); past.After(now) {
		now = past
	}
	u.UnsafeSetRefTime(now.UTC())
	err = u.Refresh()
	if stamp := u.GetTrustedMetadataSet().Timestamp; stamp != nil {
		// guard: update TestClockOfTheFuture instead: t.Past = now.Unix()
		t.Past = max(t.Past, min(now.Unix(), stamp.Signed.Expires.Unix()+1))
	}
	if now.After(clock) && errors.Is(err, &metadata.ErrExpiredMetadata{}) {
		err = fmt.Errorf("%w: the clock of this host was later before (%s)", err, now.UTC().Format(time.RFC3339))
	}
	return u, err
}

// choose selects a version of the channel and downloads its program.
func (r *Repository) choose(u *updater.Updater, version string, takes func(string) bool) (string, *Program, error) {
	prefix := r.Channel + "/" + r.Platform + "/"
	// Looking up an unknown name loads all roles that could delegate it.
	if _, err := u.GetTargetInfo(prefix + "none/" + layout.Program); err != nil && !strings.HasSuffix(err.Error(), "not found") {
		return "", nil, err
	}
	newest := ""
	for role, meta := range u.GetTrustedMetadataSet().Targets {
		for name, file := range meta.Signed.Targets {
			if err := r.checkTarget(role, name, file); err != nil {
				return "", nil, err
			}
			if v, ok := strings.CutPrefix(name, prefix); ok {
				v = strings.TrimSuffix(v, "/"+layout.Program)
				if newest == "" || CompareVersions(v, newest) > 0 {
					newest = v
				}
			}
		}
	}
	if version == "" {
		version = newest
	}
	if version == "" {
		return "", nil, fmt.Errorf("the channel %s has no program for %s", r.Channel, r.Platform)
	}
	file, err := u.GetTargetInfo(prefix + version + "/" + layout.Program)
	if err != nil {
		return "", nil, err
	}
	if !takes(version) {
		return version, nil, nil
	}
	// guard: update TestRefusals
	if file.Length > layout.MaxProgram {
		return "", nil, fmt.Errorf("the program of %s has %d bytes, more than %d", version, file.Length, layout.MaxProgram)
	}
	_, data, err := u.DownloadTarget(file, os.DevNull, "")
	if err != nil {
		return "", nil, err
	}
	if err := checkProgram(data, r.Platform); err != nil {
		return "", nil, err
	}
	return version, &Program{Version: version, Data: data}, nil
}

// checkTarget refuses a target unless it is a program of the role's own channel and platform. Targets cannot be
// links: a target is only a name and the hash of its content, and the updater itself writes the file.
func (r *Repository) checkTarget(role, name string, file *metadata.TargetFiles) error {
	parts := strings.Split(name, "/")
	// guard: update TestRefusals
	if len(parts) != 4 || parts[3] != layout.Program || !layout.ValidVersion(parts[2]) {
		return fmt.Errorf("the target %q is not channel/platform/version/%s", shorten(name), layout.Program)
	}
	// guard: update TestRefusals
	if role != parts[0]+"-"+parts[1] {
		return fmt.Errorf("the role %s may not have the target %q", role, shorten(name))
	}
	// guard: update TestRefusals
	if file.Length <= 0 || len(file.Hashes["sha256"]) != sha256.Size {
		return fmt.Errorf("the target %q has no length or no SHA-256", shorten(name))
	}
	return nil
}

func shorten(s string) string { return s[:min(len(s), 100)] }

// load reads the trusted metadata. It returns no metadata if the administrator has pinned other keys since. A damaged
// file is an error: without it, older metadata would be accepted.
func (r *Repository) load(pinned []byte) (*trusted, error) {
	sum := sha256.Sum256(pinned)
	now := &trusted{Pinned: hex.EncodeToString(sum[:]), Roles: map[string]string{}}
	path := filepath.Join(r.StateDir, trustedFile)
	text, err := readLimit(path, maxTrusted)
	if errors.Is(err, fs.ErrNotExist) {
		return now, nil
	}
	var had trusted
	if err == nil {
		err = json.Unmarshal(text, &had)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what was verified before: %w. Remove it to begin with the pinned keys again", inFile(path, text, err))
	}
	if had.Pinned != now.Pinned {
		return now, nil
	}
	now.Past = had.Past
	for role, text := range had.Roles {
		if !roleName(role) {
			return nil, fmt.Errorf("cannot read what was verified before: %s: there is no role %q", path, shorten(role))
		}
		now.Roles[role] = text
	}
	return now, nil
}

var roleNames = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

func roleName(s string) bool { return roleNames.MatchString(s) }

// save stores the metadata that the client wrote after verifying it.
func (r *Repository) save(dir string, t *trusted) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	for _, name := range names {
		role := strings.TrimSuffix(filepath.Base(name), ".json")
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if roleName(role) {
			t.Roles[role] = string(text)
		}
	}
	if len(t.Roles) == 0 {
		return nil
	}
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if had, err := os.ReadFile(filepath.Join(r.StateDir, trustedFile)); err == nil && bytes.Equal(had, text) {
		return nil
	}
	return atomicfile.WriteFile(filepath.Join(r.StateDir, trustedFile), text, 0o600)
}

// inFile adds the name of a JSON file to an error, and the line if the error has a position.
func inFile(path string, text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	at := int64(0)
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	default:
		return fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Errorf("%s:%d: %w", path, 1+bytes.Count(text[:at], []byte{'\n'}), err)
}

// readLimit reads a file of at most limit bytes.
func readLimit(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f, path, limit)
}
