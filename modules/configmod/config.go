// Package configmod is Salt's execution module "config": settings from wherever a user may have put them. Salt's source:
// salt/modules/config.py.
package configmod

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// Compatibility.
//
// config.gather_bootstrap_script is absent: it fetches a script from the internet for salt-cloud to run on new machines.
// config.get differs: values that begin with sdb:// are returned as they are; there are no sdb drivers.
// config.get differs: with merge, lists are replaced whatever pillar_merge_lists in /etc/salt/master says.

// defaults returns the settings that have a default value.
func defaults() map[string]any {
	return map[string]any{
		"mongo.db": "salt", "mongo.password": "", "mongo.port": int64(27017), "mongo.user": "",
		"redis.db": "0", "redis.host": "salt", "redis.port": int64(6379),
		"test.foo":          "unconfigured",
		"ca.cert_base_path": "/etc/pki",
		"solr.cores":        []any{}, "solr.host": "localhost", "solr.port": "8983", "solr.baseurl": "/solr", "solr.type": "master",
		"solr.request_timeout": nil, "solr.init_script": "/etc/rc.d/solr",
		"solr.dih.import_options": map[string]any{"clean": false, "optimize": true, "commit": true, "verbose": false},
		"solr.backup_path":        nil, "solr.num_backups": int64(1),
		"poudriere.config": "/usr/local/etc/poudriere.conf", "poudriere.config_dir": "/usr/local/etc/poudriere.d",
		"ldap.uri": "", "ldap.server": "localhost", "ldap.port": "389", "ldap.tls": false, "ldap.no_verify": false,
		"ldap.anonymous": true, "ldap.scope": int64(2), "ldap.attrs": nil, "ldap.binddn": "", "ldap.bindpw": "",
		"hosts.file": hostsFile(), "aliases.file": "/etc/aliases",
		"virt":               map[string]any{"tunnel": false, "images": "/srv/salt-images"},
		"docker.exec_driver": "docker-exec",
		"docker.compare_container_networks": map[string]any{
			"static":    []any{"Aliases", "Links", "IPAMConfig"},
			"automatic": []any{"IPAddress", "Gateway", "GlobalIPv6Address", "IPv6Gateway"},
		},
	}
}

// place is one source of settings and the parameter that leaves it out.
type place struct {
	omit string
	data func(c *modules.Call) map[string]any
}

func options(c *modules.Call) map[string]any { return c.Options() }
func grains(c *modules.Call) map[string]any  { return c.GrainData() }
func pillar(c *modules.Call) map[string]any  { return c.PillarData() }
func master(c *modules.Call) map[string]any {
	m, _ := c.PillarData()["master"].(map[string]any)
	return m
}

// places returns the sources of settings, the one with the highest precedence first.
func places() []place {
	return []place{{"omit_opts", options}, {"omit_grains", grains}, {"omit_pillar", pillar}, {"omit_master", master}}
}

// name returns a key as text. It returns Python's error for a value that cannot be a key of a dict.
func name(v any) (string, error) {
	switch v.(type) {
	case []any, map[string]any, map[any]any:
		return "", &modules.TypeError{Msg: "unhashable type: '" + modules.TypeName(v) + "'"}
	}
	return pytext.Str(v), nil
}

func option(_ context.Context, c *modules.Call) (any, error) {
	key, err := name(c.Value("value"))
	if err != nil {
		return nil, err
	}
	wildcard, all := c.Bool("wildcard"), c.Bool("omit_all")
	byDefault := c.Value("default")
	if byDefault == nil && wildcard {
		byDefault = map[string]any{}
	} else if byDefault == nil {
		byDefault = ""
	}
	found := map[string]any{}
	list := append(places(), place{data: func(*modules.Call) map[string]any { return defaults() }})
	for _, p := range list {
		if p.omit != "" && (all || c.Bool(p.omit)) {
			continue
		}
		data := p.data(c)
		if !wildcard {
			if v, ok := data[key]; ok {
				return nested.Copy(v), nil
			}
			continue
		}
		for k, v := range data {
			if _, stronger := found[k]; !stronger && fnmatch.Match(key, k) {
				found[k] = nested.Copy(v)
			}
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	return byDefault, nil
}

func merge(_ context.Context, c *modules.Call) (any, error) {
	key, err := name(c.Value("value"))
	if err != nil {
		return nil, err
	}
	var ret any
	for _, p := range []place{{"omit_opts", options}, {"omit_master", master}, {"omit_pillar", pillar}} {
		v, ok := p.data(c)[key]
		if !ok || c.Bool(p.omit) {
			continue
		}
		switch have := ret.(type) {
		case nil:
			ret = nested.Copy(v)
			if _, ok := ret.(string); ok {
				return ret, nil
			}
		case map[string]any:
			if under, ok := v.(map[string]any); ok { // what is there already wins, at the first level
				under = nested.CopyMap(under)
				maps.Copy(under, have)
				ret = under
			}
		case []any:
			if more, ok := v.([]any); ok {
				ret = append(have, nested.Copy(more).([]any)...)
			}
		}
	}
	if ret == nil {
		if v, ok := defaults()[key]; ok {
			return v, nil
		}
		return c.Value("default"), nil
	}
	return ret, nil
}

func get(_ context.Context, c *modules.Call) (any, error) {
	if _, text := c.Value("key").(string); text && c.Str("delimiter") == "" {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "empty separator"}
	}
	path, ok := nested.Path(c.Value("key"), c.Str("delimiter"))
	if !ok {
		return nil, &modules.TypeError{Msg: "'" + modules.TypeName(c.Value("key")) + "' object is not iterable"}
	}
	if strategy := c.Value("merge"); strategy != nil {
		if strategy != "recurse" && strategy != "overwrite" {
			c.Logger().Warn("Unsupported merge strategy. Falling back to recurse.", "strategy", strategy)
		}
		if v, ok := nested.Follow(merged(c, strategy == "overwrite"), path); ok {
			return pyobj.From(v), nil
		}
		return c.Value("default"), nil
	}
	for _, p := range places() {
		if c.Bool(p.omit) {
			continue
		}
		var data any
		switch {
		case p.omit == "omit_pillar":
			data = c.OrderedPillar()
		case len(path) == 0:
			data = pyobj.FromMap(p.data(c))
		case p.omit == "omit_opts":
			data = only(path[0], func(name string) (any, bool) { return ownOption(c, name) })
		case p.omit == "omit_grains":
			data = only(path[0], c.OrderedGrain)
		default:
			data = c.OrderedPillar().Value("master")
		}
		if v, ok := nested.FollowObject(data, path); ok {
			return v, nil
		}
	}
	if v, ok := nested.Follow(defaults(), path); ok {
		return pyobj.From(v), nil
	}
	return c.Value("default"), nil
}

// only returns a dictionary with the one key, or an empty one if it has no value.
func only(key string, of func(string) (any, bool)) *pyobj.Dict {
	v, ok := of(key)
	if !ok {
		return &pyobj.Dict{}
	}
	return pyobj.NewDict(key, v)
}

// ownOption returns an option with ordered dictionaries. Like [modules.Call.Options] it knows the grains and the
// pillar, too.
func ownOption(c *modules.Call, name string) (any, bool) {
	switch name {
	case "grains":
		return c.OrderedGrains(), true
	case "pillar":
		return pyobj.DeepCopy(c.OrderedPillar()), true
	}
	return c.OptionInOrder(name)
}

// merged returns all settings in one map; those of a source with higher precedence win. With overwrite they replace
// whole values, otherwise dictionaries are merged.
func merged(c *modules.Call, overwrite bool) map[string]any {
	all := defaults()
	for _, p := range slices.Backward([]place{{"", options}, {"", grains}, {"", pillar}, {"", master}}) {
		data := p.data(c)
		if overwrite {
			for k, v := range data {
				all[k] = nested.Copy(v)
			}
			continue
		}
		nested.Update(all, data, false)
	}
	return all
}

func dotVals(_ context.Context, c *modules.Call) (any, error) {
	prefix := c.Str("value") + "."
	if c.Value("value") == nil {
		prefix = "None."
	}
	ret := map[string]any{}
	for _, data := range []map[string]any{master(c), options(c)} {
		for k, v := range data {
			if strings.HasPrefix(k, prefix) {
				ret[k] = nested.Copy(v)
			}
		}
	}
	return ret, nil
}

func items(_ context.Context, c *modules.Call) (any, error) { return nested.CopyMap(c.Options()), nil }

func backupMode(ctx context.Context, c *modules.Call) (any, error) {
	if c.Bool("backup") {
		return c.Value("backup"), nil
	}
	return c.Exec(ctx, "config.option", "backup_mode")
}

func manageMode(_ context.Context, c *modules.Call) (any, error) {
	if c.Value("mode") == nil {
		return nil, nil
	}
	mode := strings.ReplaceAll(pytext.Str(c.Value("mode")), "0o", "0")
	mode = strings.TrimLeft(strings.Trim(strings.Trim(mode, `"`), `'`), "0")
	return zfill(mode, 4), nil
}

// zfill puts zeros before a text, after its sign.
func zfill(s string, width int) string {
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	return sign + strings.Repeat("0", max(0, width-len(sign)-len([]rune(s)))) + s
}

func validFileproto(_ context.Context, c *modules.Call) (any, error) {
	uri, ok := c.Value("uri").(string)
	if !ok && pytext.Truth(c.Value("uri")) {
		return nil, modules.NoAttribute(c.Value("uri"), "decode")
	}
	scheme, _, found := strings.Cut(strings.TrimLeft(uri, "\x00\t\n\v\f\r "), ":")
	return found && slices.Contains([]string{"salt", "file", "http", "https", "ftp", "swift", "s3"}, strings.ToLower(scheme)), nil
}
