//go:build unix

package ssh

import (
	"context"
	"errors"
	"strings"

	"github.com/brine-salt/brine/internal/python/posixpath"
	"github.com/brine-salt/brine/internal/python/pyre"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// refineEnc returns OpenSSH's name for a type of key.
func refineEnc(enc string) (string, error) {
	switch enc {
	case "r", "rsa", "ssh-rsa":
		return "ssh-rsa", nil
	case "d", "dsa", "dss", "ssh-dss":
		return "ssh-dss", nil
	case "e", "ecdsa":
		return "ecdsa-sha2-nistp256", nil
	case "ed25519", "ssh-ed25519":
		return "ssh-ed25519", nil
	case "ecdsa-sha2-nistp521", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256",
		"rsa-sha2-512-cert-v01@openssh.com", "rsa-sha2-256-cert-v01@openssh.com", "ssh-rsa-cert-v01@openssh.com",
		"ecdsa-sha2-nistp256-cert-v01@openssh.com", "ecdsa-sha2-nistp384-cert-v01@openssh.com", "ecdsa-sha2-nistp521-cert-v01@openssh.com",
		"sk-ecdsa-sha2-nistp256@openssh.com", "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com", "ssh-ed25519-cert-v01@openssh.com",
		"sk-ssh-ed25519@openssh.com", "sk-ssh-ed25519-cert-v01@openssh.com":
		return enc, nil
	}
	return "", modules.Errorf("Incorrect encryption key type '%s'.", enc)
}

// authKey is a line of a file of authorized keys.
type authKey struct {
	key, enc, comment, fingerprint string
	options                        []string
}

func (k authKey) line() string {
	s := ""
	if len(k.options) > 0 {
		s = strings.Join(k.options, ",") + " "
	}
	return s + k.enc + " " + k.key + " " + k.comment + "\n"
}

func (k authKey) shown() map[string]any {
	options := make([]any, len(k.options))
	for i, o := range k.options {
		options[i] = o
	}
	return map[string]any{"enc": k.enc, "comment": k.comment, "options": options, "fingerprint": k.fingerprint}
}

// optionList returns the pieces that Python's ",".join would join: the elements of a list, or the characters of a
// text.
func optionList(v any) []string {
	switch v := v.(type) {
	case []any:
		out := make([]string, len(v))
		for i, x := range v {
			out[i] = pytext.Str(x)
		}
		return out
	case string:
		if v != "" {
			return strings.Split(v, "")
		}
	}
	return nil
}

// keyLine finds options and key in a line.
func keyLine() (*pyre.Regexp, error) {
	return pyre.Compile(`^(.*?)\s?((?:sk-)?(?:ssh\-|ecds)[\w@.-]+\s.+)$`, 0)
}

// validKeys returns the keys in a file, in order. Of equal keys the last one counts.
func (c *call) validKeys(path string, kind any) ([]authKey, error) {
	text, err := c.read(path)
	if isOS(err) {
		return nil, modules.Errorf("Problem reading ssh key file %s", path)
	} else if err != nil {
		return nil, err
	}
	re, err := keyLine()
	if err != nil {
		return nil, err
	}
	var keys []authKey
	for _, l := range lines(text) {
		if l[0] == '#' {
			continue
		}
		loc, err := re.Search(l)
		if err != nil {
			return nil, err
		}
		if loc == nil {
			continue
		}
		words := strings.Fields(l[loc[4]:loc[5]])
		if len(words) < 2 {
			continue
		}
		k := authKey{enc: words[0], key: words[1], comment: strings.Join(words[2:], " ")}
		if opts := l[loc[2]:loc[3]]; opts != "" {
			k.options = strings.Split(opts, ",")
		}
		if k.fingerprint, err = fingerprint(k.key, kind); err != nil {
			return nil, err
		}
		if k.fingerprint == "" {
			continue
		}
		keys = put(keys, k)
	}
	return keys, nil
}

func put(keys []authKey, k authKey) []authKey {
	for i := range keys {
		if keys[i].key == k.key {
			keys[i] = k
			return keys
		}
	}
	return append(keys, k)
}

func find(keys []authKey, key string) (authKey, bool) {
	for _, k := range keys {
		if k.key == key {
			return k, true
		}
	}
	return authKey{}, false
}

// errNoUser says that a user's file is not known.
var errNoUser = errors.New("no such user")

// configFile returns the path of a user's keys, from sshd's setting AuthorizedKeysFile.
func (c *call) configFile(user any, config string) (string, error) {
	info, err := c.account(user)
	if err != nil {
		return "", err
	}
	if info == nil {
		return "", errors.Join(errNoUser, modules.Errorf("User '%s' does not exist", pytext.Str(user)))
	}
	home := pytext.Str(info["home"])
	var path strings.Builder
	for i := 0; i < len(config); i++ {
		if config[i] != '%' {
			path.WriteByte(config[i])
			continue
		}
		if i++; i == len(config) {
			return "", errors.Join(errNoUser, modules.Errorf("AuthorizedKeysFile path: Last character can't be escape character"))
		}
		switch config[i] {
		case '%':
			path.WriteByte('%')
		case 'u':
			path.WriteString(pytext.Str(user))
		case 'h':
			path.WriteString(home)
		default:
			return "", errors.Join(errNoUser, modules.Errorf(`AuthorizedKeysFile path: unknown token character "%%%c"`, config[i]))
		}
	}
	if posixpath.IsAbs(path.String()) {
		return path.String(), nil
	}
	return posixpath.Join(home, path.String()), nil
}

// keysOf returns a user's keys. It returns nil if the user or the file does not exist.
func (c *call) keysOf(user any, config string, kind any) ([]authKey, error) {
	path, err := c.configFile(user, config)
	if errors.Is(err, errNoUser) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if !c.IsFile(path) {
		return nil, nil
	}
	return c.validKeys(path, kind)
}

func authKeys(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	given := c.Value("user")
	_, several := given.([]any)
	several = several || !pytext.Truth(given)
	users, err := c.users()
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for _, u := range users {
		path, err := c.configFile(u, c.Str("config"))
		if errors.Is(err, errNoUser) {
			continue
		} else if err != nil {
			return nil, err
		}
		if !c.IsFile(path) {
			continue
		}
		keys, err := c.validKeys(path, c.Value("fingerprint_hash_type"))
		if err != nil {
			return nil, err
		}
		of := map[string]any{}
		for _, k := range keys {
			of[k.key] = k.shown()
		}
		if !several {
			return of, nil
		}
		all[pytext.Str(u)] = of
	}
	return all, nil
}

// change is one key to set, check or remove for a user.
type change struct {
	user   any
	config string
	kind   any // of the fingerprint
	key    authKey
}

func (c *call) change() change {
	return change{user: c.Value("user"), config: c.Str("config"), kind: c.Value("fingerprint_hash_type")}
}

// status returns what has to be done: "add", "update", or "exists" if nothing.
func (c *call) status(x change) (string, error) {
	var err error
	if x.key.enc, err = refineEnc(x.key.enc); err != nil {
		return "", err
	}
	have, err := c.keysOf(x.user, x.config, x.kind)
	if err != nil {
		return "", err
	}
	old, ok := find(have, x.key.key)
	switch {
	case !ok:
		return "add", nil
	case old.line() != x.key.line():
		return "update", nil
	}
	return "exists", nil
}

func (c *call) keyArgs() authKey {
	return authKey{key: pytext.Str(c.Value("key")), enc: pytext.Str(c.Value("enc")), comment: pytext.Str(c.Value("comment")), options: optionList(c.Value("options"))}
}

func checkKey(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	x := c.change()
	x.key = c.keyArgs()
	return modules.Answer(c.status(x))
}

// source brings a file of keys to the minion and reads it; no keys are noted for the state.
func (c *call) source(strict bool) ([]authKey, error) {
	source := c.Str("source")
	v, err := c.Exec(c.ctx, "cp.cache_file", source, c.Value("saltenv"))
	if err != nil {
		return nil, err
	}
	path, _ := v.(string)
	if strict && !c.IsFile(path) || !strict && path == "" {
		if strict {
			return nil, modules.Errorf("Failed to pull key file from salt file server")
		}
		return nil, nil
	}
	keys, err := c.validKeys(path, c.Value("fingerprint_hash_type"))
	if err == nil && len(keys) == 0 {
		complaint := "No keys detected in " + source + ". Is file properly formatted?"
		c.Logger().Error("No keys detected", "file", source)
		c.Context().Set("ssh_auth.error", complaint)
	}
	return keys, err
}

func checkKeyFile(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	keys, err := c.source(false)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, k := range keys {
		x := c.change()
		x.key = k
		if out[k.key], err = c.status(x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func rmAuthKey(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	x := c.change()
	x.key.key = pytext.Str(c.Value("key"))
	return modules.Answer(c.removeKey(x))
}

// removeKey takes a key out of a user's file, and with it the lines that are neither keys nor comments, as Salt does.
func (c *call) removeKey(x change) (string, error) {
	have, err := c.keysOf(x.user, x.config, x.kind)
	if err != nil {
		return "", err
	}
	if _, ok := find(have, x.key.key); !ok {
		return "Key not present", nil
	}
	path, err := c.configFile(x.user, x.config)
	if err != nil {
		return "", err
	}
	u, err := c.fileOf(path, x.user)
	if err != nil {
		return "", err
	}
	defer u.close()
	content, was, err := u.read()
	if err != nil {
		return "", err
	}
	re, err := keyLine()
	if err != nil {
		return "", err
	}
	var kept strings.Builder
	for _, l := range lines(content) {
		if l[0] != '#' {
			loc, err := re.Search(l)
			if err != nil {
				return "", err
			}
			if loc == nil {
				continue
			}
			if words := strings.Fields(l[loc[4]:loc[5]]); len(words) > 1 && words[1] == x.key.key {
				continue
			}
		}
		kept.WriteString(l + "\n")
	}
	if err := u.write(kept.String(), was, 0o600); err != nil {
		c.Logger().Warn("Cannot write the key file", "file", path, "err", err)
		return "Key not removed", nil
	}
	return "Key removed", nil
}

func rmAuthKeyFromFile(ctx context.Context, mc *modules.Call) (any, error) {
	return fromFile(ctx, mc, func(c *call, x change) (string, error) { return c.removeKey(x) }, []string{"Key not removed", "Key removed", "Key not present"})
}

// fromFile does something with every key of a file; the first of the answers that was given is the result, else the last.
func fromFile(ctx context.Context, mc *modules.Call, do func(*call, change) (string, error), answers []string) (any, error) {
	c := &call{mc, ctx}
	keys, err := c.source(true)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return "fail", nil
	}
	given := ""
	for _, k := range keys {
		x := c.change()
		x.key = k
		if o, ok := c.Keywords["options"]; ok && pytext.Truth(o) {
			x.key.options = optionList(o)
		}
		answer, err := do(c, x)
		if err != nil {
			return nil, err
		}
		given += answer
	}
	for _, a := range answers {
		if strings.Contains(given, a) {
			return a, nil
		}
	}
	return answers[len(answers)-1], nil
}

func setAuthKeyFromFile(ctx context.Context, mc *modules.Call) (any, error) {
	return fromFile(ctx, mc, func(c *call, x change) (string, error) { return c.setKey(x) }, []string{"fail", "replace", "new", "no change"})
}

func setAuthKey(ctx context.Context, mc *modules.Call) (any, error) {
	c := &call{mc, ctx}
	x := c.change()
	x.key = c.keyArgs()
	return modules.Answer(c.setKey(x))
}

// setKey puts a key into a user's file.
func (c *call) setKey(x change) (string, error) {
	if len(strings.Fields(x.key.key)) > 1 {
		return "invalid", nil
	}
	var err error
	if x.key.enc, err = refineEnc(x.key.enc); err != nil {
		return "", err
	}
	info, err := c.account(x.user)
	if err != nil {
		return "", err
	}
	if info == nil {
		return "fail", nil
	}
	if print, err := fingerprint(x.key.key, x.kind); err != nil || print == "" {
		return "Invalid public key", err
	}
	status, err := c.status(x)
	if err != nil {
		return "", err
	}
	switch status {
	case "exists":
		return "no change", nil
	case "update":
		return "replace", c.replaceKey(x)
	}
	return c.addKey(x, info)
}

// replaceKey replaces the line of an existing key in the file.
func (c *call) replaceKey(x change) error {
	path, err := c.configFile(x.user, x.config)
	if err != nil {
		return err
	}
	u, err := c.fileOf(path, x.user)
	if err != nil {
		return err
	}
	defer u.close()
	content, was, err := u.read()
	if isOS(err) {
		return modules.Errorf("Problem reading or writing to key file: %s", osText(err))
	} else if err != nil {
		return err
	}
	re, err := pyre.Compile(`((.*)\s)?((?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.-]+)\s([a-zA-Z0-9+/]+={0,2})(\s(.*))?`, 0)
	if err != nil {
		return err
	}
	var fresh strings.Builder
	for _, l := range lines(content) {
		if l[0] != '#' {
			loc, err := re.Search(l)
			if err != nil {
				return err
			}
			if loc != nil && l[loc[8]:loc[9]] == x.key.key {
				fresh.WriteString(x.key.line())
				continue
			}
		}
		fresh.WriteString(l + "\n")
	}
	if err := u.write(fresh.String(), was, 0o600); err != nil {
		return modules.Errorf("Problem reading or writing to key file: %s", osText(err))
	}
	return nil
}

// fileOf opens the file of a user's keys.
func (c *call) fileOf(path string, user any) (*userFile, error) {
	info, err := c.account(user)
	if err != nil {
		return nil, err
	}
	u, err := c.userFile(path, info, 0o700)
	return u, modules.OSError(err)
}

// addKey adds a line to a user's file, which is made with its directory if need be.
func (c *call) addKey(x change, info map[string]any) (string, error) {
	path, err := c.configFile(x.user, x.config)
	if err != nil {
		return "", err
	}
	home := pytext.Str(info["home"])
	if strings.HasPrefix(path, home) && !c.isDir(home) {
		return "fail", nil
	}
	u, err := c.userFile(path, info, 0o700)
	if err != nil {
		return "", modules.OSError(err)
	}
	defer u.close()
	content, was, err := u.read()
	if err != nil {
		return "", modules.Errorf("Could not write to key file: %s", osText(err))
	}
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	if err := u.write(content+x.key.line(), was, 0o600); err != nil {
		return "", modules.Errorf("Could not write to key file: %s", osText(err))
	}
	if was == nil {
		if err := c.relabel(path); err != nil {
			return "", modules.OSError(err)
		}
	}
	return "new", nil
}
