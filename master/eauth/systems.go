package eauth

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strings"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/internal/unixcrypt"
)

// Systems returns this package's systems under Salt's names: "file", "pam" and "auto", and "peer", which Salt
// does not have. "sharedsecret" needs a secret: see SharedSecret. "ldap" is in package master/eauth/ldap.
func Systems() map[string]System {
	return map[string]System{"file": File{}, "pam": PAM{}, "auto": Auto{}, PeerSystem: Peer{}}
}

// Auto accepts every name with any password, for tests (salt/auth/auto.py). Like every system it is only used
// if external_auth names it.
type Auto struct{}

// Authenticate implements System.
func (Auto) Authenticate(context.Context, map[string]any, string, string) (bool, []string, error) {
	return true, nil, nil
}

// SharedSecret accepts every name with the secret as password (salt/auth/sharedsecret.py).
type SharedSecret struct{ Secret string }

// Authenticate implements System.
func (s SharedSecret) Authenticate(_ context.Context, _ map[string]any, _, password string) (bool,
	[]string, error) {
	if s.Secret == "" {
		return false, nil, errors.New("option sharedsecret is not set")
	}
	return subtle.ConstantTimeCompare([]byte(s.Secret), []byte(password)) == 1, nil, nil
}

// File reads names and passwords from a file (salt/auth/file.py). Its settings in external_auth are
// ^filename, ^filetype ("text", the default, or "htpasswd"), and for text files ^field_separator (":") and
// ^hashtype ("plaintext" or a hash's name).
type File struct{}

// maxUserFile is how many bytes of the file are read.
const maxUserFile = 1 << 20

// Authenticate implements System.
func (File) Authenticate(_ context.Context, config map[string]any, username,
	password string) (bool, []string, error) {
	text := func(key, other string) string {
		if s, ok := config[key].(string); ok && s != "" {
			return s
		}
		return other
	}
	name := text("^filename", "")
	if name == "" {
		return false, nil, errors.New("file: ^filename is not set")
	}
	stored, ok, err := line(name, text("^field_separator", ":"), username)
	if err != nil || !ok {
		return false, nil, err
	}
	given := password
	switch kind := text("^filetype", "text"); kind {
	case "htpasswd":
		if given, err = unixcrypt.Crypt(password, stored); err != nil {
			return false, nil, fmt.Errorf("file: password of %q in %s: %w", brief(username), name,
				err)
		}
	case "text":
		if h := text("^hashtype", "plaintext"); h != "plaintext" {
			sum := hashname.New(h)
			if sum == nil {
				return false, nil, fmt.Errorf("file: ^hashtype %q is unknown", h)
			}
			sum.Write([]byte(password))
			given = hex.EncodeToString(sum.Sum(nil))
		}
	default:
		return false, nil, fmt.Errorf("file: ^filetype %q is unknown", kind)
	}
	return subtle.ConstantTimeCompare([]byte(stored), []byte(given)) == 1, nil, nil
}

// line finds a name in a file and returns the field after it.
func line(file, sep, name string) (string, bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", false, fmt.Errorf("file: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 0; lines.Scan(); n++ {
		if n > maxUserFile {
			return "", false, fmt.Errorf("file: %s has more than %d lines", file, maxUserFile)
		}
		fields := strings.Split(strings.TrimSpace(lines.Text()), sep)
		if len(fields) >= 2 && fields[0] == name {
			return fields[1], true, nil
		}
	}
	return "", false, lines.Err()
}

// PAM checks users of this host with unix_chkpwd, the program that PAM's own module for /etc/shadow uses. A
// program without cgo cannot load PAM's libraries, so of a PAM configuration only pam_unix applies, for
// passwords and for expired accounts. The master must run as root.
type PAM struct{}

// Authenticate implements System.
func (PAM) Authenticate(ctx context.Context, _ map[string]any, username, password string) (bool,
	[]string, error) {
	u, err := user.Lookup(username)
	if err != nil || password == "" || strings.ContainsRune(password, 0) {
		return false, nil, nil
	}
	var program string
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/libexec", "/usr/lib"} {
		if info, err := os.Stat(dir + "/unix_chkpwd"); err == nil && info.Mode().IsRegular() {
			program = dir + "/unix_chkpwd"
			break
		}
	}
	if program == "" {
		return false, nil, errors.New("pam: unix_chkpwd is not installed")
	}
	// The password, then the account: one that has expired, or must change its password first, may know its password.
	// guard: CVE-2022-22967 TestCVE_2022_22967_AccountsThatAreShut
	for _, what := range []string{"nonull", "chkexpiry"} {
		cmd := exec.CommandContext(ctx, program, username, what)
		if what == "nonull" {
			cmd.Stdin = strings.NewReader(password + "\x00")
		}
		err = cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return false, nil, fmt.Errorf("pam: %w", err)
		}
		if err != nil {
			return false, nil, nil
		}
	}
	ids, err := u.GroupIds()
	if err != nil {
		return false, nil, fmt.Errorf("pam: groups of %q: %w", username, err)
	}
	var groups []string
	for _, id := range ids {
		if g, err := user.LookupGroupId(id); err == nil {
			groups = append(groups, g.Name)
		}
	}
	return true, groups, nil
}
