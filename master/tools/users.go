package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/internal/confined"
	"github.com/brine-salt/brine/protocol/crypt"
)

// aclUsers returns the users that get a key file: those named in rules, and this host's users that patterns
// match.
func aclUsers(acl map[string][]any) []string {
	var out []string
	for name := range acl {
		plain := regexp.QuoteMeta(name) == strings.ReplaceAll(name, ".", `\.`)
		if plain && !strings.Contains(name, "/") {
			out = append(out, name)
		}
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil || len(out) == len(acl) {
		return out
	}
	for line := range strings.Lines(string(passwd)) {
		name, _, _ := strings.Cut(line, ":")
		if !slices.Contains(out, name) && len(rulesOf(acl, name)) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// rulesOf returns the rules for a user.
func rulesOf(acl map[string][]any, user string) []any {
	var out []any
	for _, name := range slices.Sorted(maps.Keys(acl)) {
		if eauth.MatchName(name, user) {
			out = append(out, acl[name]...)
		}
	}
	return out
}

// userKey reads a user's key file, or creates it (salt/daemons/masterapi.py, mk_key). The name is "." + name +
// "_key", with "_" for a backslash in Windows names.
func (s *Server) userKey(dir *confined.Dir, name string) error {
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%q is not a valid user name", name)
	}
	file := "." + strings.ReplaceAll(name, `\`, "_") + "_key"
	b, _, err := dir.Read(file, 1024)
	// guard: damaged-key-files master:TestDamagedKeyFiles instead: err != nil && !errors.Is(err, fs.ErrNotExist)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, confined.ErrTooLarge) {
		return fmt.Errorf("cannot read key of user %q: %w", name, err)
	}
	if err == nil {
		var key *crypt.Key
		if key, err = crypt.ParseKey(string(b)); err == nil {
			s.keys[name] = key.Text()
			return nil
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		s.Log.Warn("Recreating the damaged key file of a user", "file", dir.Path()+"/"+file, "err",
			err)
	}
	key, err := crypt.NewKey()
	if err != nil {
		return err
	}
	if err := dir.Write(file, []byte(key.Text()), 0o600, true); err != nil {
		return fmt.Errorf("cannot write key of user %q: %w", name, err)
	}
	s.keys[name] = key.Text()
	if os.Geteuid() != 0 || name == "root" {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		s.Log.Warn("User of publisher_acl is unknown", "user", name)
		return nil
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil // not a Unix user id
	}
	if err := dir.Own(file, uid, -1); err != nil {
		return fmt.Errorf("cannot change the owner of the key file to %q: %w", name, err)
	}
	return nil
}
