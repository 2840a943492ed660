package gitfs

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
)

// FromOpts reads Salt's options gitfs_remotes and gitfs_*, and cachedir. Unknown parameters are an error, and so
// are those that this backend does not support: ignoring them would serve other files than configured.
func FromOpts(opts map[string]any) (Options, error) {
	o := Options{}
	if dir, _ := opts["cachedir"].(string); dir != "" {
		o.CacheDir = dir + "/gitfs"
	}
	var err error
	if o.Envs, err = parseEnvs(opts["gitfs_saltenv"]); err != nil {
		return o, fmt.Errorf("gitfs_saltenv: %w", err)
	}
	common := map[string]any{}
	for _, name := range remoteParams() {
		if v, ok := opts["gitfs_"+name]; ok {
			common[name] = v
		}
	}
	list, ok := opts["gitfs_remotes"].([]any)
	if !ok && opts["gitfs_remotes"] != nil {
		return o, fmt.Errorf("gitfs_remotes must be a list")
	}
	for _, v := range list {
		url, own, err := oneRemote(v)
		if err != nil {
			return o, fmt.Errorf("gitfs_remotes: %w", err)
		}
		r := Remote{URL: url}
		for _, name := range remoteParams() {
			if v, ok := common[name]; ok {
				if err := r.setParam(name, v); err != nil {
					return o, fmt.Errorf("gitfs_%s: %w", name, err)
				}
			}
		}
		for name, v := range own {
			if err := r.setParam(name, v); err != nil {
				return o, fmt.Errorf("gitfs_remotes: %s: %s: %w", redacted(url), name, err)
			}
		}
		o.Remotes = append(o.Remotes, r)
	}
	return o, nil
}

// remoteParams returns the parameters that have a default for all remotes.
func remoteParams() []string {
	return []string{"base", "fallback", "mountpoint", "root", "ssl_verify", "saltenv_whitelist", "saltenv_blacklist", "refspecs",
		"disable_saltenv_mapping", "ref_types", "update_interval", "user", "password", "pubkey", "privkey", "passphrase", "insecure_auth",
		"proxy"}
}

// oneRemote splits an entry of gitfs_remotes: a URL, or a map of a URL to its parameters.
func oneRemote(v any) (url string, own map[string]any, err error) {
	switch v := v.(type) {
	case string:
		return v, nil, nil
	case map[string]any:
		if len(v) != 1 {
			return "", nil, fmt.Errorf("a remote must be a URL, or a map of one URL to its parameters")
		}
		for name, list := range v {
			own, err := repackMap(list)
			if err == nil && len(own) == 0 {
				err = fmt.Errorf("it has no parameters: remove the colon after the URL")
			}
			if err != nil {
				return "", nil, fmt.Errorf("%s: %w", redacted(name), err)
			}
			return name, own, nil
		}
	}
	return "", nil, fmt.Errorf("a remote must be a URL, or a map of one URL to its parameters")
}

// repackMap makes one map of a list of maps with one key each (salt.utils.data.repack_dictlist).
func repackMap(v any) (map[string]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	case []any:
		out := make(map[string]any, len(v))
		for _, item := range v {
			m, ok := item.(map[string]any)
			if !ok || len(m) != 1 {
				return nil, fmt.Errorf("parameters must be a list of maps with one key each")
			}
			for name, value := range m {
				out[name] = value
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("parameters must be a list of maps with one key each")
}

// setParam sets a parameter from its value in the configuration.
func (r *Remote) setParam(name string, v any) (err error) {
	switch name {
	case "base":
		r.Base = pytext.Str(v)
	case "root":
		r.Root = pytext.Str(v)
	case "mountpoint":
		r.Mountpoint = pytext.Str(v)
	case "name":
		r.Name = pytext.Str(v)
	case "all_saltenvs":
		r.All = pytext.Str(v)
	case "fallback":
		r.Fallback = pytext.Str(v)
	case "user":
		r.User = pytext.Str(v)
	case "password":
		r.Password = pytext.Str(v)
	case "privkey":
		r.PrivateKey = pytext.Str(v)
	case "pubkey": // ssh finds it beside the private key
	case "passphrase":
		if pytext.Str(v) != "" {
			return fmt.Errorf("a private key with a passphrase needs an ssh-agent")
		}
	case "proxy":
		r.Proxy = pytext.Str(v)
	case "depth": // the whole history is fetched
	case "ssl_verify":
		r.NoVerify = !pytext.Truth(v)
	case "insecure_auth":
		r.Insecure = pytext.Truth(v)
	case "disable_saltenv_mapping":
		r.NoMapping = pytext.Truth(v)
	case "saltenv_whitelist":
		r.Allow = textList(v)
	case "saltenv_blacklist":
		r.Deny = textList(v)
	case "refspecs":
		r.Refspecs = textList(v)
	case "ref_types":
		r.RefTypes = textList(v)
		for i := range r.RefTypes {
			r.RefTypes[i] = strings.ToLower(r.RefTypes[i])
		}
	case "update_interval":
		n, ok := v.(int64)
		if !ok || n < 1 || n > math.MaxInt32 {
			return fmt.Errorf("%v is not a number of seconds", v)
		}
		r.Interval = time.Duration(n) * time.Second
	case "saltenv":
		r.Envs, err = parseEnvs(v)
	default:
		return fmt.Errorf("the parameter is unknown")
	}
	return err
}

// textList reads a list, or a string with commas.
func textList(v any) []string {
	var out []string
	switch v := v.(type) {
	case nil:
	case string:
		for part := range strings.SplitSeq(v, ",") {
			out = append(out, strings.TrimSpace(part))
		}
	case []any:
		for _, item := range v {
			out = append(out, pytext.Str(item))
		}
	default:
		out = []string{pytext.Str(v)}
	}
	return out
}

// parseEnvs reads the parameter saltenv.
func parseEnvs(v any) (map[string]Env, error) {
	m, err := repackMap(v)
	if err != nil || len(m) == 0 {
		return nil, err
	}
	out := make(map[string]Env, len(m))
	for env, params := range m {
		own, err := repackMap(params)
		if err != nil {
			return nil, fmt.Errorf("saltenv %s: %w", env, err)
		}
		var e Env
		for name, v := range own {
			text := pytext.Str(v)
			switch name {
			case "ref":
				e.Ref = &text
			case "root":
				e.Root = &text
			case "mountpoint":
				e.Mountpoint = &text
			default:
				return nil, fmt.Errorf("saltenv %s: parameter %q is unknown", env, name)
			}
		}
		out[env] = e
	}
	return out, nil
}
