//go:build unix

package ssh

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pybase64"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// call is a running function with its context.
type call struct {
	*modules.Call
	ctx context.Context
}

// maxSize bounds the files that are read.
const maxSize = 64 << 20

// read returns the text of a file.
func (c *call) read(path string) (string, error) {
	info, err := os.Stat(c.Path(path))
	if err != nil {
		return "", named(err, path)
	}
	if info.IsDir() {
		return "", &os.PathError{Op: "open", Path: path, Err: unix.EISDIR}
	}
	if info.Size() > maxSize {
		return "", modules.Errorf("cannot read %q: %d bytes are more than %d", path, info.Size(), maxSize)
	}
	b, err := os.ReadFile(c.Path(path))
	if err != nil {
		return "", named(err, path)
	}
	return pycodec.UTF8(b)
}

// named puts the user's path in the place of the one that was opened.
func named(err error, path string) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return &os.PathError{Op: p.Op, Path: path, Err: p.Err}
	}
	return err
}

func osText(err error) string {
	if s, _ := modules.OSErrorText(err); s != "" {
		return s
	}
	return err.Error()
}

func isOS(err error) bool {
	s, _ := modules.OSErrorText(err)
	return s != ""
}

func (c *call) isDir(path string) bool {
	info, err := os.Stat(c.Path(path))
	return err == nil && info.IsDir()
}

// lines returns the non-empty lines of a text, without surrounding white space.
func lines(text string) []string {
	var out []string
	for _, l := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if l = pytext.Strip(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// account returns the result of user.info for a user, or nil if the user does not exist.
func (c *call) account(user any) (map[string]any, error) {
	v, err := c.Exec(c.ctx, "user.info", user)
	if err != nil {
		return nil, err
	}
	info, _ := v.(map[string]any)
	if len(info) == 0 {
		return nil, nil
	}
	return info, nil
}

// relabel gives a new file the SELinux context that its place wants.
func (c *call) relabel(path string) error {
	restorecon := c.Which("restorecon")
	if restorecon == "" {
		return nil
	}
	_, err := c.Cmd(c.ctx, modules.Command{Args: []string{restorecon, path}})
	return err
}

// fingerprint returns the hash of a public key as pairs of hex digits, or "" if the key is not valid base64.
func fingerprint(key string, kind any) (string, error) {
	sum := hash.Hash(sha256.New())
	if pytext.Truth(kind) {
		name := strings.ToLower(pytext.Str(kind))
		f := hashname.Func(name)
		if f == nil {
			return "", modules.Errorf("The fingerprint_hash_type %s is not supported.", name)
		}
		sum = f()
	}
	for i := range len(key) {
		if key[i] >= 0x80 {
			return "", &modules.PythonError{Type: "ValueError", Msg: "string argument should contain only ASCII characters"}
		}
	}
	raw, err := pybase64.DecodeStrict(key)
	if err != nil {
		return "", nil
	}
	sum.Write(raw)
	digits := hex.EncodeToString(sum.Sum(nil))
	var pairs []string
	for i := 0; i < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}
	return strings.Join(pairs, ":"), nil
}

// needs returns an error if a program is missing.
func (c *call) needs(program string) error {
	if c.Which(program) == "" {
		return &modules.MissingCommandError{Command: fmt.Sprintf("The '%s' binary was not found in $PATH.", program)}
	}
	return nil
}

// output returns the lines that a program prints.
func (c *call) output(args []any, ignoreStatus bool) ([]string, string, error) {
	kwargs := map[string]any{"python_shell": false}
	if ignoreStatus {
		kwargs["ignore_retcode"] = true
	}
	v, err := c.ExecKw(c.ctx, "cmd.run", []any{args}, kwargs)
	if err != nil {
		return nil, "", err
	}
	text := pytext.Str(v)
	return pytext.SplitLines(text, false), text, nil
}

func hostKeys(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	dir := c.Str("keydir")
	if dir == "" {
		if c.Grain("kernel") != any("Linux") {
			return nil, modules.Usagef("ssh.host_keys: Please specify a keydir")
		}
		dir = "/etc/ssh"
	}
	entries, err := os.ReadDir(c.Path(dir))
	if err != nil {
		return nil, modules.OSError(named(err, dir))
	}
	keys := map[string]any{}
	for _, e := range entries {
		kind, public, cert := hostKey(e.Name())
		if kind == "" || public == "" && c.Value("private") == any(false) || cert && c.Value("certs") == any(false) {
			continue
		}
		text, err := c.read(posixpath.Join(dir, e.Name()))
		if err != nil && !isOS(err) {
			return nil, err
		}
		if first, _, _ := strings.Cut(text, "\n"); first == "SSH PRIVATE KEY FILE FORMAT 1.1" {
			text = first
		}
		keys[kind+public] = pytext.Strip(text)
	}
	return keys, nil
}

// hostKey splits the name of a host key's file: ssh_host_<kind>_key, optionally followed by .pub or -cert.pub.
func hostKey(name string) (kind, public string, cert bool) {
	rest, ok := strings.CutPrefix(name, "ssh_host_")
	i := strings.LastIndex(rest, "_key")
	if !ok || i < 1 {
		return "", "", false
	}
	switch end := rest[i+len("_key"):]; {
	case strings.HasPrefix(end, "-cert.pub"):
		return rest[:i], "-cert.pub", true
	case strings.HasPrefix(end, ".pub"):
		return rest[:i], ".pub", false
	}
	return rest[:i], "", false
}

func userKeys(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	users, err := c.users()
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for _, u := range users {
		info, err := c.account(u)
		if err != nil {
			return nil, err
		}
		home, ok := info["home"]
		if !ok {
			continue
		}
		keys := map[string]any{}
		for _, name := range c.keyNames() {
			path := pytext.Str(home) + "/.ssh/" + name
			if strings.HasPrefix(name, "/") {
				path, name = name, posixpath.Base(name)
			}
			text, err := c.read(path)
			if isOS(err) {
				continue
			} else if err != nil {
				return nil, err
			}
			keys[name] = pytext.Strip(text)
		}
		if len(keys) > 0 {
			all[pytext.Str(u)] = keys
		}
	}
	return all, nil
}

// keyNames returns the names of the key files that user_keys reads.
func (c *call) keyNames() []string {
	var names []string
	for _, k := range [...]struct{ arg, suffix string }{{"pubfile", ".pub"}, {"prvfile", ""}} {
		switch v := c.Value(k.arg); {
		case pytext.Truth(v):
			names = append(names, pytext.Str(v))
		case v != any(false):
			for _, kind := range [...]string{"rsa", "dsa", "ecdsa", "ed25519"} {
				names = append(names, "id_"+kind+k.suffix)
			}
		}
	}
	return names
}

// users returns the users that the argument names, or all users.
func (c *call) users() ([]any, error) {
	v := c.Value("user")
	if !pytext.Truth(v) {
		var err error
		if v, err = c.Exec(c.ctx, "user.list_users"); err != nil {
			return nil, err
		}
	}
	if l, ok := v.([]any); ok {
		return l, nil
	}
	return []any{v}, nil
}

func keyIsEncrypted(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	path, ok := c.Value("key").(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "expected str, bytes or os.PathLike object, not " + modules.TypeName(c.Value("key"))}
	}
	text, err := c.read(path)
	var errno unix.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, modules.Errorf("%s does not exist", path)
	case errors.Is(err, fs.ErrPermission):
		return nil, modules.Errorf("Permission denied reading from %s", path)
	case errors.As(err, &errno):
		s := errno.Error()
		return nil, modules.Errorf("Error %d encountered reading from %s: %s", int(errno), path, strings.ToUpper(s[:1])+s[1:])
	case err != nil:
		return nil, err
	}
	if !isPrivate(text) {
		return nil, modules.Errorf("%s is not a private key", path)
	}
	return strings.Contains(text, "ENCRYPTED"), nil
}

// isPrivate looks for the head of a private key: BEGIN, words, PRIVATE KEY.
func isPrivate(text string) bool {
	for {
		_, after, ok := strings.Cut(text, "BEGIN ")
		if !ok {
			return false
		}
		head, _, ok := strings.Cut(after, "PRIVATE KEY")
		if ok && (head == "" || pytext.Strip(head[len(head)-1:]) == "") && strings.Trim(head, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_ \t\n") == "" {
			return true
		}
		text = after
	}
}

// available wants OpenSSH's programs.
func available(e *modules.Env) (bool, string) {
	if e.Which("ssh") == "" {
		return false, "The module requires the ssh binary."
	}
	return true, ""
}
