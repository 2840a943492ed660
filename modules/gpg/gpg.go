// Package gpg is Salt's execution module "gpg": keys of GnuPG, signatures and encryption, through the program gpg. Salt's source:
// salt/modules/gpg.py, which drives the program through the library python-gnupg.
package gpg

import (
	"bytes"
	"context"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/pycodec"
	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// gpg.read_key is added: Salt 3008 has it.
// gpg.create_key differs: values with line breaks, which would be further directives to gpg, are refused.
// gpg.decrypt differs: output is also written if text is decrypted; Salt says that it was, and writes nothing.
// gpg.* differ: names that begin with a dash are never taken for options of gpg.

// maxOutput bounds what gpg may print.
const maxOutput = 256 << 20

func available(e *modules.Env) (bool, string) {
	if e.Which("gpg") == "" {
		return false, "The gpg execution module cannot be loaded: gpg binary is not in the path."
	}
	return true, ""
}

// ring is a keyring and the program that works on it.
type ring struct {
	ctx           context.Context
	c             *modules.Call
	home, keyring string
	version       []string
}

// userInfo returns the result of user.info, by default for the user that the minion runs as.
func userInfo(ctx context.Context, c *modules.Call, user string) (map[string]any, error) {
	if user == "" {
		v, err := c.Exec(ctx, "config.option", "user")
		if err != nil {
			return nil, err
		}
		user = pytext.Str(v)
	}
	v, err := c.Exec(ctx, "user.info", user)
	if err != nil {
		return nil, err
	}
	if info, ok := v.(map[string]any); ok && len(info) > 0 {
		return info, nil
	}
	if user == "salt" {
		if own, err := c.Exec(ctx, "config.option", "user"); err != nil || pytext.Str(own) == user {
			return nil, modules.Usagef("User %s does not exist", user)
		}
		return userInfo(ctx, c, "")
	}
	return nil, modules.Usagef("User %s does not exist", user)
}

// home returns the GnuPG directory that the arguments select.
func home(ctx context.Context, c *modules.Call) (string, error) {
	if c.Bool("gnupghome") {
		return c.Str("gnupghome"), nil
	}
	if c.Str("user") == "salt" {
		v, err := c.Exec(ctx, "config.get", "config_dir")
		if err != nil {
			return "", err
		}
		return posixpath.Join(pytext.Str(v), "gpgkeys"), nil
	}
	info, err := userInfo(ctx, c, c.Str("user"))
	if err != nil {
		return "", err
	}
	return posixpath.Join(pytext.Str(info["home"]), ".gnupg"), nil
}

// open returns the keyring that the arguments select.
func open(ctx context.Context, c *modules.Call) (*ring, error) {
	dir, err := home(ctx, c)
	if err != nil {
		return nil, err
	}
	g := &ring{ctx: ctx, c: c, home: dir}
	if c.Bool("keyring") {
		text, ok := c.Value("keyring").(string)
		if !ok {
			return nil, modules.Usagef("Please pass keyring as a string. Multiple keyrings are not allowed")
		}
		g.keyring = text
	}
	if info, err := os.Stat(c.Path(dir)); err != nil || !info.IsDir() {
		return nil, valueError("gnupghome should be a directory (it isn't): " + dir)
	}
	said, err := g.run(request{args: []string{"--list-config", "--with-colons"}})
	if err != nil {
		return nil, err
	}
	if said.code != 0 {
		return nil, valueError("Error invoking gpg: " + strconv.Itoa(said.code) + ": " + said.stderr)
	}
	_, rest, _ := bytes.Cut(said.stdout, []byte("cfg:version:"))
	version, _, _ := strings.Cut(string(rest), "\n")
	g.version = strings.Split(strings.TrimSpace(version), ".")
	return g, nil
}

func valueError(text string) error { return &modules.PythonError{Type: "ValueError", Msg: text} }

// modern reports whether gpg is 2.1 or newer, which asks for a passphrase through its agent.
func (g *ring) modern() bool {
	major, _ := strconv.Atoi(g.version[0])
	minor := 0
	if len(g.version) > 1 {
		minor, _ = strconv.Atoi(g.version[1])
	}
	return major > 2 || major == 2 && minor >= 1
}

// request is one run of gpg.
type request struct {
	args []string
	// names are the objects of the command; they are never options.
	names []string
	// passphrase is nil if it is not set.
	passphrase *string
	stdin      io.Reader
}

// answer is the output of gpg.
type answer struct {
	stdout []byte
	// stderr is everything there, status what it says to programs.
	stderr string
	status []status
	code   int
}

// status is a line of gpg's status output: a keyword and its value.
type status struct{ key, value string }

// fields returns the first n words of the value. Missing words are "".
func (s status) fields(n int) []string {
	f := strings.Fields(s.value)
	for len(f) < n {
		f = append(f, "")
	}
	return f
}

func (g *ring) run(r request) (*answer, error) {
	args := []string{"gpg"}
	if r.passphrase != nil && *r.passphrase != "" && g.modern() {
		args = append(args, "--pinentry-mode", "loopback")
	}
	args = append(args, "--status-fd", "2", "--no-tty", "--no-verbose", "--fixed-list-mode", "--batch", "--with-colons", "--homedir", g.c.Path(g.home))
	if g.keyring != "" {
		args = append(args, "--no-default-keyring", "--keyring", g.keyring)
	}
	stdin := r.stdin
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	if r.passphrase != nil && *r.passphrase != "" {
		secret, err := latin1(*r.passphrase + "\n")
		if err != nil {
			return nil, err
		}
		args = append(args, "--passphrase-fd", "0")
		stdin = io.MultiReader(bytes.NewReader(secret), stdin)
	}
	args = append(args, r.args...)
	if len(r.names) > 0 {
		args = append(append(args, "--"), r.names...)
	}
	res, err := g.c.Cmd(g.ctx, modules.Command{Args: args, Stdin: stdin, Dir: "/", Limit: maxOutput})
	if err != nil {
		return nil, err
	}
	if res.Truncated {
		return nil, modules.Errorf("cannot take what gpg prints: it is more than %d bytes", maxOutput)
	}
	a := &answer{stdout: res.Stdout, stderr: fromLatin1(res.Stderr), code: res.ExitCode}
	for _, line := range pytext.SplitLines(a.stderr, false) {
		if rest, ok := strings.CutPrefix(pytext.StripRight(line), "[GNUPG:] "); ok {
			key, value, _ := strings.Cut(rest, " ")
			a.status = append(a.status, status{key, strings.TrimLeft(value, " ")})
		}
	}
	return a, nil
}

// latin1 encodes text for gpg as the Python library does. fromLatin1 is the reverse.
func latin1(s string) ([]byte, error) { return pycodec.Encode(s, "latin-1", "strict") }

func fromLatin1(b []byte) string {
	s, _ := pycodec.Decode(b, "latin-1")
	return s
}

// input encodes a text or bytes for gpg.
func input(v any) (io.Reader, error) {
	switch v := v.(type) {
	case string:
		b, err := latin1(v)
		return bytes.NewReader(b), err
	case []byte:
		return bytes.NewReader(v), nil
	}
	return nil, &modules.TypeError{Msg: "a bytes-like object is required, not '" + modules.TypeName(v) + "'"}
}

// passphrase is that of the pillar; nil if it has none.
func passphrase(ctx context.Context, c *modules.Call) (*string, error) {
	v, err := c.Exec(ctx, "pillar.get", "gpg_passphrase")
	if err != nil || !pytext.Truth(v) {
		return nil, err
	}
	s, ok := v.(string)
	if !ok {
		return nil, &modules.TypeError{Msg: "argument of type '" + modules.TypeName(v) + "' is not iterable"}
	}
	if strings.ContainsAny(s, "\n\r\x00") {
		return nil, valueError("Invalid passphrase")
	}
	return &s, nil
}

// needed returns the passphrase in the pillar if want is set, and nil otherwise.
func needed(ctx context.Context, c *modules.Call, want bool) (*string, error) {
	if !want {
		return nil, nil
	}
	p, err := passphrase(ctx, c)
	if err == nil && p == nil {
		err = modules.Usagef("gpg_passphrase not available in pillar.")
	}
	return p, err
}

// owned runs work on a keyring of another user as the minion's own, and gives it back.
func owned(ctx context.Context, c *modules.Call, work modules.Func) (any, error) {
	dir, err := home(ctx, c)
	if err != nil {
		return nil, err
	}
	user, err := userInfo(ctx, c, c.Str("user"))
	if err != nil {
		return nil, err
	}
	own, err := userInfo(ctx, c, "")
	if err != nil {
		return nil, err
	}
	if pytext.Str(user["uid"]) == pytext.Str(own["uid"]) {
		return work(ctx, c)
	}
	if err := give(ctx, c, dir, own["name"], own["gid"], false); err != nil {
		return nil, err
	}
	v, err := work(ctx, c)
	if err != nil {
		return nil, err
	}
	return v, give(ctx, c, dir, c.Value("user"), user["gid"], true)
}

// give makes the files of a keyring a user's.
func give(ctx context.Context, c *modules.Call, dir string, user, gid any, must bool) error {
	group, err := c.Exec(ctx, "file.gid_to_group", gid)
	if err != nil {
		return err
	}
	paths := []any{}
	if _, err := os.Stat(c.Path(dir)); err == nil || must {
		found, err := c.Exec(ctx, "file.find", dir)
		if err != nil {
			return err
		}
		list, _ := found.([]any)
		paths = append([]any{dir}, list...)
	}
	if c.Bool("keyring") {
		if _, err := os.Stat(c.Path(c.Str("keyring"))); err == nil {
			paths = append(paths, c.Value("keyring"))
		}
	}
	for _, p := range paths {
		if _, err := c.Exec(ctx, "file.chown", p, user, group); err != nil {
			return err
		}
	}
	return nil
}
