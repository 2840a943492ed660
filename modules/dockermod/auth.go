package dockermod

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/fnmatch"
	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// registries returns the log-ins in configuration, grains and pillar.
func (d *client) registries(errs *[]any) dict {
	out := dict{}
	if v := option(d.Call, "docker-registries"); v != nil {
		m, ok := v.(dict)
		if !ok {
			*errs = append(*errs, "'docker-registries' Pillar value must be a dictionary")
		}
		maps.Copy(out, m)
	}
	pillar := d.PillarData()
	found := dict{}
	for _, data := range [...]dict{get(pillar, "master"), pillar, d.GrainData(), d.Config()} {
		for k, v := range data {
			if fnmatch.Match("*-docker-registries", k) {
				found[k] = v
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(found)) {
		m, ok := found[k].(dict)
		if !ok {
			*errs = append(*errs, "Docker registry '"+k+"' was not specified as a dictionary")
		}
		maps.Copy(out, m)
	}
	return out
}

// log logs in to registries, or out of them: all that are configured, if the call names none.
func (d *client) log(in bool) (any, error) {
	errs := []any{}
	known := d.registries(&errs)
	names := d.Extra
	if len(names) == 0 {
		for _, k := range slices.Sorted(maps.Keys(known)) {
			names = append(names, k)
		}
	}
	results := dict{}
	for _, x := range names {
		name := pytext.Str(x)
		entry, ok := known[name]
		if !ok {
			errs = append(errs, "No match found for registry '"+name+"'")
			continue
		}
		m, ok := entry.(dict)
		if in && !ok {
			errs = append(errs, "Invalid configuration for registry '"+name+"'")
			continue
		}
		lacks := ""
		for _, key := range [...]string{"password", "username"} {
			if _, ok := m[key]; !ok && in {
				lacks = key
			}
		}
		if lacks != "" {
			errs = append(errs, "Missing '"+lacks+"' for registry '"+name+"'")
			continue
		}
		server := indexURL
		if !strings.EqualFold(name, "hub") {
			server = strings.TrimPrefix(strings.TrimPrefix(name, "http://"), "https://")
			server, _, _ = strings.Cut(server, "/")
		}
		var err error
		if in {
			err = d.login(server, pytext.Str(m["username"]), pytext.Str(m["password"]))
		} else {
			err = d.keep(server, nil)
		}
		if err != nil && d.ctx.Err() != nil {
			return nil, d.ctx.Err()
		}
		if err != nil {
			text := err.Error()
			if status, said := refused(err); status != "" {
				text = "Error response from daemon: " + said
			}
			errs = append(errs, text)
		}
		results[name] = err == nil
	}
	code := int64(0)
	if len(errs) > 0 {
		code = 1
	}
	return dict{"retcode": code, "Errors": errs, "Results": results}, nil
}

// login has the daemon try a log-in and keeps it.
func (d *client) login(server, user, password string) error {
	m, err := d.dict("auth", request{body: dict{"username": user, "password": password, "serveraddress": server}})
	if err != nil {
		return err
	}
	entry := dict{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}
	if token, _ := m["IdentityToken"].(string); token != "" {
		entry = dict{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":")), "identitytoken": token}
	}
	return d.keep(server, entry)
}

// keep writes the log-in at a registry to Docker's configuration, or takes it out.
func (d *client) keep(server string, entry dict) error {
	if pytext.Truth(d.config["credsStore"]) || pytext.Truth(get(d.config, "credHelpers")[server]) {
		return modules.Errorf("cannot change the log-in at %s: %s names a credential helper, which is not supported", server, d.file)
	}
	path := d.Path(d.file)
	if _, err := os.Stat(path); err == nil && d.config == nil {
		return modules.Errorf("cannot change %s: it holds no JSON object", d.file)
	}
	config := nested.CopyMap(d.config)
	if config == nil {
		config = dict{}
	}
	auths := get(config, "auths")
	if auths == nil {
		auths = dict{}
		config["auths"] = auths
	}
	if entry != nil {
		auths[server] = entry
	} else {
		for _, k := range [...]string{server, "http://" + server, "https://" + server} {
			delete(auths, k)
		}
	}
	text, err := pyjson.Format(config, pyjson.Options{IndentText: "\t"})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := atomicfile.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	d.config = config
	return nil
}
