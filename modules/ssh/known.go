//go:build unix

package ssh

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func failure(format string, args ...any) map[string]any {
	return map[string]any{"status": "error", "error": fmt.Sprintf(format, args...)}
}

// knownHosts returns the file of known hosts of a user or of the system, or the function's result if it is missing.
func (c *call) knownHosts(config, user any) (string, map[string]any, error) {
	name := "/etc/ssh/ssh_known_hosts"
	if pytext.Truth(user) {
		name = ".ssh/known_hosts"
	}
	if pytext.Truth(config) {
		name = pytext.Str(config)
	}
	if posixpath.IsAbs(name) {
		return name, nil, nil
	}
	if !pytext.Truth(user) {
		return "", failure("Cannot determine absolute path to file."), nil
	}
	info, err := c.account(user)
	if err != nil {
		return "", nil, err
	}
	if info == nil {
		return "", failure("User %s does not exist", pytext.Str(user)), nil
	}
	return posixpath.Join(pytext.Str(info["home"]), name), nil, nil
}

// withPort returns a host name in the notation of known_hosts files.
func withPort(host string, port any) string {
	if !pytext.Truth(port) || port == any(int64(22)) {
		return host
	}
	return "[" + host + "]:" + pytext.Str(port)
}

// parse reads lines of a file of known hosts.
func parse(lines []string, kind any) ([]any, error) {
	var out []any
	for _, l := range lines {
		words := strings.Fields(l)
		if len(words) != 3 || words[0][0] == '#' {
			continue
		}
		print, err := fingerprint(words[2], kind)
		if err != nil {
			return nil, err
		}
		if print != "" {
			out = append(out, map[string]any{"hostname": words[0], "key": words[2], "enc": words[1], "fingerprint": print})
		}
	}
	return out, nil
}

// entries returns the known keys of a host, or the function's result if they cannot be read.
func (c *call) entries(user any, host string, config, port, kind any) ([]any, map[string]any, error) {
	if err := c.needs("ssh-keygen"); err != nil {
		return nil, nil, err
	}
	path, answer, err := c.knownHosts(config, user)
	if err != nil || answer != nil {
		return nil, answer, err
	}
	lines, _, err := c.output([]any{"ssh-keygen", "-F", withPort(host, port), "-f", path}, true)
	if err != nil {
		return nil, nil, err
	}
	list, err := parse(lines, kind)
	return list, nil, err
}

func orNone(list []any, answer map[string]any, err error) (any, error) {
	switch {
	case err != nil:
		return nil, err
	case answer != nil:
		return answer, nil
	case len(list) == 0:
		return nil, nil
	}
	return list, nil
}

func getKnownHostEntries(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	return orNone(c.entries(c.Value("user"), c.Str("hostname"), c.Value("config"), c.Value("port"), c.Value("fingerprint_hash_type")))
}

func recvKnownHostEntries(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	list, err := c.receive()
	return orNone(list, nil, err)
}

// receive asks a host for its keys.
func (c *call) receive() ([]any, error) {
	if err := c.needs("ssh-keyscan"); err != nil {
		return nil, err
	}
	args := []any{"ssh-keyscan"}
	if c.Bool("port") {
		args = append(args, "-p", c.Str("port"))
	}
	if c.Bool("enc") {
		args = append(args, "-t", c.Str("enc"))
	} else if c.Grain("osfinger") == any("CentOS-5") {
		args = append(args, "-t", "rsa")
	}
	if c.Bool("hash_known_hosts") {
		args = append(args, "-H")
	}
	args = append(args, "-T", pytext.Str(c.Value("timeout")), c.Str("hostname"))
	var lines []string
	for range 5 {
		var err error
		if lines, _, err = c.output(args, false); err != nil || len(lines) > 0 {
			if err != nil {
				return nil, err
			}
			break
		}
		if err := c.ctx.Err(); err != nil {
			return nil, err
		}
	}
	return parse(lines, c.Value("fingerprint_hash_type"))
}

// field returns the values of one field of all entries.
func field(list []any, name string) []any {
	out := []any{}
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m[name])
		}
	}
	return out
}

func checkKnownHost(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	if !c.Bool("hostname") {
		return failure("hostname argument required"), nil
	}
	list, answer, err := c.entries(c.Value("user"), c.Str("hostname"), c.Value("config"), c.Value("port"), c.Value("fingerprint_hash_type"))
	if err != nil || answer != nil {
		return orNone(nil, answer, err)
	}
	known, want := field(list, "key"), c.Value("key")
	if !pytext.Truth(want) {
		known, want = field(list, "fingerprint"), c.Value("fingerprint")
	}
	switch {
	case len(list) == 0:
		return "add", nil
	case pytext.Truth(want) && !slices.ContainsFunc(known, func(k any) bool { return pytext.Repr(k) == pytext.Repr(want) }):
		return "update", nil
	}
	return "exists", nil
}

func rmKnownHost(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	if !c.Bool("hostname") {
		return failure("hostname argument required"), nil
	}
	path, answer, err := c.existing()
	if err != nil || answer != nil {
		return orNone(nil, answer, err)
	}
	_, out, err := c.output([]any{"ssh-keygen", "-R", withPort(c.Str("hostname"), c.Value("port")), "-f", path}, false)
	if err != nil {
		return nil, err
	}
	if err := c.give(path); err != nil {
		return nil, err
	}
	return map[string]any{"status": "removed", "comment": out}, nil
}

// existing returns the file of known hosts. If it does not exist the second result is the function's result.
func (c *call) existing() (string, map[string]any, error) {
	path, answer, err := c.knownHosts(c.Value("config"), c.Value("user"))
	if err == nil && answer == nil && !c.IsFile(path) {
		answer = failure("Known hosts file %s does not exist", path)
	}
	if err != nil || answer != nil || !c.Bool("user") {
		return path, answer, err
	}
	info, err := c.account(c.Value("user"))
	if err != nil {
		return "", nil, err
	}
	u, err := c.userFile(path, info, 0o700) // refused before ssh-keygen reads it
	if err != nil {
		return "", nil, modules.OSError(err)
	}
	u.close()
	return path, nil, nil
}

// give gives the file to the user of the call.
func (c *call) give(path string) error {
	if !c.Bool("user") {
		return nil
	}
	info, err := c.account(c.Value("user"))
	if err != nil {
		return err
	}
	u, err := c.userFile(path, info, 0o700)
	if err != nil {
		return modules.OSError(err)
	}
	defer u.close()
	if u.owner == nil {
		return nil
	}
	return modules.OSError(named(u.dir.Lchown(u.name, u.owner.UID, u.owner.GID), path))
}

func hashKnownHosts(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	if err := c.needs("ssh-keygen"); err != nil {
		return nil, err
	}
	path, answer, err := c.existing()
	if err != nil || answer != nil {
		return orNone(nil, answer, err)
	}
	out, err := c.hash(path)
	if err != nil {
		return nil, err
	}
	if err := c.give(path); err != nil {
		return nil, err
	}
	return map[string]any{"status": "updated", "comment": out}, nil
}

// hash makes the names in a file unreadable. The file keeps its mode.
func (c *call) hash(path string) (string, error) {
	info, err := os.Stat(c.Path(path))
	if err != nil {
		return "", modules.OSError(named(err, path))
	}
	_, out, err := c.output([]any{"ssh-keygen", "-H", "-f", path}, false)
	if err != nil {
		return "", err
	}
	return out, modules.OSError(named(atomicfile.Own(c.Path(path), -1, -1, info.Mode()), path))
}

func setKnownHost(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	host, port, key, print := c.Str("hostname"), c.Value("port"), c.Value("key"), c.Value("fingerprint")
	if host == "" {
		return failure("hostname argument required"), nil
	}
	if port != nil && port != any(int64(22)) && c.Bool("hash_known_hosts") {
		return failure("argument port can not be used in conjunction with argument hash_known_hosts"), nil
	}
	stored, answer, err := c.entries(c.Value("user"), host, c.Value("config"), port, c.Value("fingerprint_hash_type"))
	if err != nil || answer != nil {
		return orNone(nil, answer, err)
	}
	same := slices.DeleteFunc(slices.Clone(stored), func(e any) bool {
		m, _ := e.(map[string]any)
		return c.Value("enc") != nil && m["enc"] != c.Value("enc")
	})
	storedKeys := field(same, "key")
	update := len(stored) == 0 || pytext.Truth(print) && !has(field(stored, "fingerprint"), print) || pytext.Truth(key) && !has(storedKeys, key)
	if !update && (key != nil || print != nil) {
		return map[string]any{"status": "exists", "keys": storedKeys}, nil
	}
	fresh := []any{map[string]any{"hostname": host, "enc": c.Value("enc"), "key": key}}
	if !pytext.Truth(key) {
		if fresh, err = c.receive(); err != nil {
			return nil, err
		}
		switch {
		case len(fresh) == 0:
			return failure("Unable to receive remote host keys"), nil
		case pytext.Truth(print) && !has(field(fresh, "fingerprint"), print):
			return failure("Remote host public keys found but none of their fingerprints match the one you have provided"), nil
		case !update && equalSets(field(fresh, "key"), storedKeys):
			return map[string]any{"status": "exists", "keys": storedKeys}, nil
		}
	}
	path, answer, err := c.knownHosts(c.Value("config"), c.Value("user"))
	if err != nil || answer != nil {
		return orNone(nil, answer, err)
	}
	if err := c.putEntries(path, host, port, fresh); err != nil {
		return nil, err
	}
	if pytext.Truth(key) && c.Bool("hash_known_hosts") {
		if _, err := c.ExecKw(ctx, "ssh.hash_known_hosts", nil, map[string]any{"user": c.Value("user"), "config": path}); err != nil {
			return nil, err
		}
	}
	old := any(stored)
	if len(stored) == 0 {
		old = nil
	}
	return map[string]any{"status": "updated", "old": old, "new": fresh}, nil
}

func has(list []any, v any) bool {
	return slices.ContainsFunc(list, func(x any) bool { return pytext.Repr(x) == pytext.Repr(v) })
}

func equalSets(a, b []any) bool {
	set := func(list []any) map[string]bool {
		m := map[string]bool{}
		for _, x := range list {
			m[pytext.Repr(x)] = true
		}
		return m
	}
	return maps.Equal(set(a), set(b))
}

// putEntries writes the keys of a host into a file in the place of those it has.
func (c *call) putEntries(path, host string, port any, fresh []any) error {
	var info map[string]any
	var err error
	if c.Bool("user") {
		if info, err = c.account(c.Value("user")); err != nil {
			return err
		}
	}
	u, err := c.userFile(path, info, 0o777)
	if err != nil {
		return modules.Errorf("Couldn't append to known hosts file: '%s'", osText(err))
	}
	defer u.close()
	content, was, err := u.read()
	if err != nil {
		return modules.Errorf("Couldn't append to known hosts file: '%s'", osText(err))
	}
	mode := os.FileMode(0o600)
	if was != nil {
		mode = was.Mode()
		if content, err = c.withoutEntries(path, content, host, port); err != nil {
			return err
		}
	}
	var s strings.Builder
	s.WriteString(content)
	for _, e := range fresh {
		m := e.(map[string]any)
		name := pytext.Str(m["hostname"])
		if !c.Bool("hash_known_hosts") && port != nil && port != any(int64(22)) && !strings.Contains(name, ":") {
			m["port"] = port
			name = "[" + name + "]:" + pytext.Str(port)
		}
		fmt.Fprintf(&s, "%s %s %s\n", name, pytext.Str(m["enc"]), pytext.Str(m["key"]))
	}
	if u.owner != nil { // the user gets the file, whose ever it was
		was = nil
	}
	if err := u.write(s.String(), was, mode); err != nil {
		return modules.Errorf("Couldn't append to known hosts file: '%s'", osText(err))
	}
	return nil
}

// withoutEntries returns the content of a file without the lines that ssh-keygen finds for a host.
func (c *call) withoutEntries(path, content, host string, port any) (string, error) {
	found, _, err := c.output([]any{"ssh-keygen", "-F", withPort(host, port), "-f", path}, true)
	if err != nil {
		return "", err
	}
	all := slices.Collect(strings.Lines(content))
	drop := map[int]bool{}
	for i := 0; i+1 < len(found); i += 2 {
		head, entry := strings.Fields(found[i]), strings.Fields(found[i+1])
		if len(head) == 0 || len(entry) < 2 {
			continue
		}
		n, err := strconv.Atoi(head[len(head)-1])
		if err == nil && (c.Value("enc") == nil || any(entry[len(entry)-2]) == c.Value("enc")) {
			drop[n-1] = true
		}
	}
	var s strings.Builder
	for i, l := range all {
		if !drop[i] {
			s.WriteString(l)
		}
	}
	return s.String(), nil
}
