package aptpkg

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// defaultKeys is where keys go that are named by the signed-by option of repositories.
const defaultKeys = "/etc/apt/keyrings"

func hexText(n int64) string { return strconv.FormatInt(n, 16) }

func getRepoKeys(ctx context.Context, c *modules.Call) (any, error) {
	aptkey := c.Bool("aptkey") && c.Which("apt-key") != ""
	keys, err := repoKeys(ctx, c, aptkey, c.Str("keydir"))
	if keys == nil {
		return false, err
	}
	return keys, err
}

// repoKeys returns the keys that apt trusts, or those in dir. It returns nil if there is no such directory.
func repoKeys(ctx context.Context, c *modules.Call, aptkey bool, dir string) (map[string]any, error) {
	if aptkey {
		out, err := call(ctx, c, apt{noScope: true}, "apt-key", "adv", "--batch", "--list-public-keys", "--with-fingerprint",
			"--with-fingerprint", "--with-colons", "--fixed-list-mode")
		if err != nil {
			return nil, err
		}
		if out.Retcode != 0 {
			return nil, &modules.PythonError{Type: "UnboundLocalError", Msg: "cannot access local variable 'ret' where it is not associated with a value"}
		}
		return parseKeys(out.Stdout)
	}
	if dir == "" {
		dir = defaultKeys
	}
	files, err := keyFiles(c, dir)
	if files == nil || err != nil {
		return nil, err
	}
	var texts []string
	for _, file := range files {
		out, err := listKeys(ctx, c, file)
		if err != nil {
			return nil, err
		}
		texts = append(texts, out)
	}
	return parseKeys(strings.Join(texts, " "))
}

// keyFiles returns the files of a directory, or nil if there is no such directory.
func keyFiles(c *modules.Call, dir string) ([]string, error) {
	if info, err := os.Stat(c.Path(dir)); err != nil || !info.IsDir() {
		c.Logger().Error("The directory does not exist. Please create this directory only writable by root", "path", dir)
		return nil, nil
	}
	entries, err := os.ReadDir(c.Path(dir))
	if err != nil {
		return nil, modules.OSError(err)
	}
	files := []string{}
	for _, e := range entries {
		files = append(files, filepath.Join(dir, e.Name()))
	}
	return files, nil
}

func listKeys(ctx context.Context, c *modules.Call, file string) (string, error) {
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{
		Args: []string{"gpg", "--no-default-keyring", "--keyring", file, "--list-keys", "--with-colons"},
	})
	return out.Stdout, err
}

// parseKeys reads gpg's list with colons.
func parseKeys(text string) (map[string]any, error) {
	var keys []map[string]any
	for _, line := range pytext.SplitLines(text, false) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		raw := strings.Split(line, ":")
		if len(raw) < 2 {
			continue
		}
		item := func(i int) any {
			if i >= len(raw) {
				return nil
			}
			s := strings.TrimSpace(raw[i])
			if n, err := modules.ToInt(s); err == nil {
				return n
			}
			if s == "" {
				return nil
			}
			return s
		}
		kind := item(0)
		if (kind == "sub" || kind == "fpr" || kind == "uid") && len(keys) == 0 || (kind == "pub" || kind == "sub") && len(raw) < 12 {
			return nil, modules.IndexError()
		}
		switch kind {
		case "pub", "sub":
			key := map[string]any{
				"algorithm": item(3), "bits": item(2), "capability": item(11), "date_creation": item(5), "date_expiration": item(6),
				"keyid": pytext.Str(item(4)), "validity": item(1),
			}
			if kind == "pub" {
				keys = append(keys, key)
			} else {
				keys[len(keys)-1]["subkey"] = key
			}
		case "fpr":
			last := keys[len(keys)-1]
			if sub, ok := last["subkey"].(map[string]any); ok {
				last = sub
			}
			last["fingerprint"] = item(9)
		case "uid":
			last := keys[len(keys)-1]
			last["uid"], last["uid_hash"] = item(9), item(7)
		}
	}
	ret := map[string]any{}
	for _, k := range keys {
		ret[pytext.Str(k["keyid"])] = k
	}
	return ret, nil
}

// keySource says where a key comes from and where it goes.
type keySource struct {
	path, text, keyserver, keyid, saltenv string
	aptkey                                bool
	keydir, keyfile                       string
}

func addRepoKey(ctx context.Context, c *modules.Call) (any, error) {
	return addKey(ctx, c, keySource{
		path: c.Str("path"), text: c.Str("text"), keyserver: c.Str("keyserver"), keyid: c.Str("keyid"), saltenv: c.Str("saltenv"),
		aptkey: c.Bool("aptkey"), keydir: c.Str("keydir"), keyfile: c.Str("keyfile"),
	})
}

func addKey(ctx context.Context, c *modules.Call, s keySource) (bool, error) {
	if s.keydir == "" {
		s.keydir = defaultKeys
	}
	if !s.aptkey {
		if info, err := os.Stat(c.Path(s.keydir)); err != nil || !info.IsDir() {
			c.Logger().Error("The directory does not exist. Please create this directory only writable by root", "path", s.keydir)
			return false, nil
		}
	}
	s.aptkey = s.aptkey && c.Which("apt-key") != ""
	if s.keyid != "" {
		have, err := repoKeys(ctx, c, s.aptkey, s.keydir)
		if err != nil {
			return false, err
		}
		for id := range have {
			if strings.HasSuffix(id, s.keyid) {
				return true, nil
			}
		}
	}
	cmd, written := []string{"apt-key"}, ""
	switch {
	case s.path != "":
		path, err := pkglist.Cache(ctx, c, s.path, s.saltenv)
		if err != nil {
			return false, err
		}
		if path == "" {
			c.Logger().Error("Unable to get cached copy of file", "path", s.path)
			return false, nil
		}
		if !s.aptkey {
			return installKey(ctx, c, path, s)
		}
		cmd = append(cmd, "add", path)
	case s.text != "":
		cmd = append(cmd, "add", "-")
	case s.keyserver != "":
		if s.keyid == "" {
			return false, modules.Usagef("No keyid or keyid too short for keyserver: %s", s.keyserver)
		}
		if s.aptkey {
			cmd = append(cmd, "adv", "--batch", "--keyserver", s.keyserver, "--recv", s.keyid)
			break
		}
		if s.keyfile == "" {
			c.Logger().Error("You must define the name of the key file to save the key. See keyfile argument")
			return false, nil
		}
		if written = s.keyfile; !filepath.IsAbs(written) {
			written = filepath.Join(s.keydir, s.keyfile)
		}
		cmd = []string{"gpg", "--no-default-keyring", "--keyring", written, "--keyserver", s.keyserver, "--recv-keys", s.keyid}
	case s.keyid != "":
		return false, modules.Usagef("No keyserver specified for keyid: %s", s.keyid)
	default:
		return false, &modules.TypeError{Msg: "add_repo_key() takes at least 1 argument (0 given)"}
	}
	out, err := call(ctx, c, apt{stdin: s.text}, cmd...)
	if err != nil {
		return false, err
	}
	if out.Retcode != 0 {
		c.Logger().Error("Unable to add repo key", "stderr", out.Stderr)
		return false, nil
	}
	if written != "" {
		if err := os.Chmod(c.Path(written), 0o644); err != nil {
			return false, modules.OSError(err)
		}
	}
	return true, nil
}

// installKey puts a key file where repositories refer to it. Text is made binary, unless the name says that it is text.
func installKey(ctx context.Context, c *modules.Call, path string, s keySource) (bool, error) {
	name := s.keyfile
	if name == "" {
		name = filepath.Base(path)
	}
	b, err := os.ReadFile(c.Path(path))
	if err != nil {
		return false, modules.OSError(err)
	}
	if utf8.Valid(b) && strings.HasPrefix(strings.Trim(string(b), "-"), "BEGIN PGP") && !strings.HasSuffix(name, ".asc") {
		if c.Which("gpg") == "" {
			c.Logger().Error("Detected an ASCII armored key and the gpg binary is not available. Not decrypting the key.", "path", path)
			return false, nil
		}
		binary := path + ".decrypted"
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"gpg", "--yes", "--output", binary, "--dearmor", path}})
		if err != nil {
			return false, err
		}
		if out.Retcode != 0 {
			return false, modules.Errorf("cannot make the key %s binary: %s", path, out.Stderr)
		}
		if b, err = os.ReadFile(c.Path(binary)); err != nil {
			return false, modules.OSError(err)
		}
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.keydir, name)
	}
	if err := atomicfile.WriteFile(c.Path(name), b, 0o644); err != nil {
		return false, modules.OSError(err)
	}
	return true, nil
}

func delRepoKey(ctx context.Context, c *modules.Call) (any, error) {
	dir := c.Str("keydir")
	if dir == "" {
		dir = defaultKeys
	}
	aptkey := c.Bool("aptkey")
	if !aptkey {
		if files, err := keyFiles(c, dir); files == nil {
			return false, err
		}
	}
	aptkey = aptkey && c.Which("apt-key") != ""
	if pytext.Truth(c.Keywords["keyid_ppa"]) {
		if name, ok := c.Value("name").(string); !ok || !strings.HasPrefix(name, "ppa:") {
			return nil, modules.Usagef("keyid_ppa requires that a PPA be passed")
		}
		return nil, modules.Errorf("keys of PPAs are not looked up at Launchpad: pass the keyid")
	}
	id, ok := c.Keywords["keyid"]
	if !ok {
		return nil, modules.Usagef("keyid or keyid_ppa and PPA name must be passed")
	}
	keyid := pytext.Str(id)
	if aptkey {
		out, err := call(ctx, c, apt{noScope: true}, "apt-key", "del", keyid)
		if err != nil {
			return nil, err
		}
		if out.Retcode != 0 {
			text := "Failed to remove keyid {0}"
			if out.Stderr != "" {
				text += ": " + out.Stderr
			}
			return nil, modules.Errorf("%s", text)
		}
		return id, nil
	}
	if len(keyid) != 8 && len(keyid) != 16 {
		c.Logger().Error("The keyid needs to be either 8 or 16 characters")
		return false, nil
	}
	files, err := keyFiles(c, dir)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := listKeys(ctx, c, file)
		if err != nil {
			return nil, err
		}
		keys, err := parseKeys(text)
		if err != nil {
			return nil, err
		}
		for k := range keys {
			if strings.HasSuffix(k, keyid) {
				if err := os.Remove(c.Path(file)); err != nil {
					return nil, modules.OSError(err)
				}
				return id, nil
			}
		}
	}
	c.Logger().Error("Could not find the key file for keyid", "keyid", keyid)
	return false, nil
}
