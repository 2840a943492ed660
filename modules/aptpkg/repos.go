package aptpkg

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/aptsource"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func listRepos(_ context.Context, c *modules.Call) (any, error) {
	repos, err := repositories(c)
	if err != nil {
		return nil, err
	}
	ret := map[string]any{}
	for _, s := range repos {
		list, _ := ret[s.URI].([]any)
		ret[s.URI] = append(list, s.plain())
	}
	return ret, nil
}

func repositories(c *modules.Call) ([]*source, error) {
	all, err := readSources(c)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(all.list, func(s *source) bool { return s.Invalid })
	for _, s := range all.stanzas {
		list = append(list, s.each()...)
	}
	return list, nil
}

// isPPA reports whether a repository is named in Ubuntu's short form on a host that knows it.
func isPPA(c *modules.Call, repo string) bool {
	os := c.Grain("os")
	return strings.HasPrefix(repo, "ppa:") && (os == "Ubuntu" || os == "Mint" || os == "neon")
}

// ppaLine returns the sources line of a PPA.
func ppaLine(c *modules.Call, repo, auth string) (string, error) {
	owner, name, ok := strings.Cut(repo[len("ppa:"):], "/")
	if !ok || strings.Contains(name, "/") {
		return "", &modules.PythonError{Type: "ValueError", Msg: "not enough values to unpack (expected 2, got 1)"}
	}
	dist := pytext.Str(c.Grain("oscodename"))
	if auth != "" {
		return "deb https://" + auth + "@private-ppa.launchpad.net/" + owner + "/" + name + "/ubuntu " + dist + " main", nil
	}
	return "deb http://ppa.launchpad.net/" + owner + "/" + name + "/ubuntu " + dist + " main", nil
}

var webAddress = lazyre.Regexp{Expr: `(https?://)(.+)`}

func getRepo(_ context.Context, c *modules.Call) (any, error) {
	repo, auth := c.Str("repo"), pkglist.Keyword(c, "ppa_auth")
	if isPPA(c, repo) {
		line, err := ppaLine(c, repo, auth)
		if err != nil {
			return nil, err
		}
		repo = line
	}
	return findRepo(c, repo, auth)
}

func findRepo(c *modules.Call, repo, auth string) (any, error) {
	repos, err := repositories(c)
	if err != nil || len(repos) == 0 {
		return map[string]any{}, err
	}
	want, err := parseSource(repo, "")
	if err != nil {
		return nil, err
	}
	if m := webAddress.Get().FindStringSubmatch(want.URI); auth != "" && m != nil && !strings.HasPrefix(m[2], auth) {
		want.URI = m[1] + auth + "@" + m[2]
	}
	for _, s := range byURI(repos) {
		if !s.Same(&want.Line) {
			continue
		}
		if len(want.Comps) == 0 || slices.ContainsFunc(want.Comps, func(x string) bool { return slices.Contains(s.Comps, x) }) {
			return s.plain(), nil
		}
	}
	return map[string]any{}, nil
}

// byURI orders repositories as list_repos groups them.
func byURI(list []*source) []*source {
	var order []string
	groups := map[string][]*source{}
	for _, s := range list {
		if groups[s.URI] == nil {
			order = append(order, s.URI)
		}
		groups[s.URI] = append(groups[s.URI], s)
	}
	var out []*source
	for _, uri := range order {
		out = append(out, groups[uri]...)
	}
	return out
}

func delRepo(ctx context.Context, c *modules.Call) (any, error) {
	repo := c.Str("repo")
	ppa := isPPA(c, repo)
	if ppa {
		line, err := ppaLine(c, repo, pkglist.Keyword(c, "ppa_auth"))
		if err != nil {
			return nil, err
		}
		repo = line
	}
	all, err := readSources(c)
	if err != nil {
		return nil, err
	}
	want, err := parseSource(repo, "")
	if err != nil {
		return nil, err
	}
	var touched []string
	var kept []*source
	for _, s := range all.list {
		match := !s.Invalid && (s.Same(&want.Line) && slices.Equal(s.Architectures, want.Architectures) ||
			ppa && want.Kind == "deb" && s.Kind == "deb-src" && s.URI == want.URI && s.Dist == want.Dist)
		in := func(x string) bool { return slices.Contains(want.Comps, x) }
		if !match || !slices.ContainsFunc(s.Comps, in) && len(s.Comps)+len(want.Comps) > 0 {
			kept = append(kept, s)
			continue
		}
		if !slices.Contains(touched, s.File) {
			touched = append(touched, s.File)
		}
		if s.Comps = slices.DeleteFunc(slices.Clone(s.Comps), in); len(s.Comps) > 0 {
			kept = append(kept, s)
		}
	}
	var stanzas []*stanza
	for _, s := range all.stanzas {
		found, left := s.drop(want)
		if found && !slices.Contains(touched, s.File) {
			touched = append(touched, s.File)
		}
		if left {
			stanzas = append(stanzas, s)
			continue
		}
		for _, o := range all.stanzas { // the file is written without it
			o.changed = o.changed || o.File == s.File
		}
	}
	if len(touched) == 0 {
		return nil, modules.Errorf("Repo %s doesn't exist in the sources.list(s)", repo)
	}
	all.list, all.stanzas = kept, stanzas
	if err := all.save(); err != nil {
		return nil, err
	}
	var ret strings.Builder
	for _, file := range touched {
		left := slices.ContainsFunc(kept, func(s *source) bool { return s.File == file }) ||
			slices.ContainsFunc(stanzas, func(s *stanza) bool { return s.File == file })
		if !left && strings.Contains(file, "sources.list.d/") {
			ret.WriteString("File " + file + " containing repo '" + repo + "' has been removed.")
			if err := os.Remove(c.Path(file)); err != nil {
				return nil, modules.OSError(err)
			}
			continue
		}
		ret.WriteString("Repo '" + repo + "' has been removed from " + file + ".\n")
	}
	if _, err := refreshNow(ctx, c, nil, false); err != nil {
		return nil, err
	}
	return ret.String(), nil
}

func modRepo(ctx context.Context, c *modules.Call) (any, error) {
	repo := c.Str("repo")
	refresh := true
	for _, k := range []string{"refresh", "refresh_db"} {
		if v, ok := c.Keywords[k]; ok {
			refresh = pytext.Truth(v)
		}
	}
	if strings.HasPrefix(repo, "ppa:") {
		if !isPPA(c, repo) {
			return nil, modules.Errorf(`cannot parse "ppa:" style repo definitions: %s`, repo)
		}
		done, err := addPPA(ctx, c, repo, refresh)
		if err != nil || done != nil {
			return done, err
		}
	}
	all, err := readSources(c)
	if err != nil {
		return nil, err
	}
	if pytext.Truth(c.Keywords["consolidate"]) {
		if err := all.consolidate(); err != nil {
			return nil, err
		}
	}
	want, err := parseSource(repo, "")
	if err != nil {
		return nil, err
	}
	if want.Invalid {
		return nil, modules.Usagef("Name %s is not valid. This must be the complete repo entry as seen in the sources file", repo)
	}
	aptkey := c.Bool("aptkey") && c.Which("apt-key") != ""
	if !aptkey && want.SignedBy == "" {
		return nil, modules.Usagef("missing 'signedby' option when apt-key is missing")
	}
	if err := importKeys(ctx, c, aptkey, want.SignedBy); err != nil {
		return nil, err
	}
	s, err := all.change(c, repo, want)
	if err != nil {
		return nil, err
	}
	if err := all.save(); err != nil {
		return nil, err
	}
	if refresh {
		if _, err := refreshNow(ctx, c, nil, false); err != nil {
			return nil, err
		}
	}
	if s == nil { // it is in a file of the newer form
		have, err := findRepo(c, repo, "")
		return map[string]any{repo: have}, err
	}
	return map[string]any{repo: map[string]any{
		"architectures": nested.Anys(s.Architectures), "comps": nested.Anys(s.Comps), "disabled": s.Disabled, "file": s.File,
		"type": s.Kind, "uri": s.URI, "line": s.Text, "signedby": s.SignedBy,
	}}, nil
}

// addPPA lets Ubuntu's own program add a PPA.
func addPPA(ctx context.Context, c *modules.Call, repo string, refresh bool) (any, error) {
	if _, private := c.Keywords["ppa_auth"]; private || c.Which("apt-add-repository") == "" {
		return nil, modules.Errorf("Unable to add PPA '%s': apt-add-repository is needed, and PPAs with credentials are not supported", repo[4:])
	}
	line, err := ppaLine(c, repo, "")
	if err != nil {
		return nil, err
	}
	have, err := findRepo(c, line, "")
	if err != nil {
		return nil, err
	}
	if pytext.Truth(have) {
		return map[string]any{repo: have}, nil
	}
	var env []string
	if proxy := proxyURL(ctx, c); proxy != "" {
		env = []string{"http_proxy=" + proxy, "https_proxy=" + proxy}
	}
	cmd := []string{"apt-add-repository", "-y", repo}
	out, err := call(ctx, c, apt{noScope: true, env: env}, cmd...)
	if err != nil {
		return nil, err
	}
	if out.Retcode != 0 {
		return nil, modules.Errorf("Unable to add PPA '%s'. '%s' exited with status %d: '%s' ", repo[4:], pytext.Repr(nested.Anys(cmd)), out.Retcode, out.Stderr)
	}
	if refresh {
		if _, err := refreshNow(ctx, c, nil, false); err != nil {
			return nil, err
		}
	}
	return map[string]any{repo: out.Map()}, nil
}

// change gives the repository the wanted attributes, or adds it. It answers nil if that happened in a file of the newer form.
func (a *sources) change(c *modules.Call, repo string, want *source) (*source, error) {
	kw := c.Keywords
	comps := slices.Clone(want.Comps)
	if v, ok := kw["comps"]; ok {
		comps = pkglist.SplitInput(pytext.Str(v))
	}
	architectures := want.Architectures
	if v, ok := kw["architectures"]; ok {
		architectures = strings.Split(pytext.Str(v), ",")
	}
	s := a.find(kw, want, append(slices.Clone(want.Comps), comps...), architectures)
	if s == nil && a.changeStanza(c, want, comps, architectures) {
		return nil, nil
	}
	fresh, err := parseSource(repo, "")
	if err != nil {
		return nil, err
	}
	if s == nil {
		s, err = parseSource(repo, "")
		if err != nil {
			return nil, err
		}
		a.list = append(a.list, s)
	}
	if v, ok := kw["comments"]; ok {
		s.Comment = comments(v)
	}
	s.Text = fresh.Text
	if !strings.HasSuffix(s.Text, "\n") {
		s.Text += "\n"
	}
	s.Comps, s.Architectures, s.SignedBy = comps, architectures, want.SignedBy
	if v, ok := kw["disabled"]; ok {
		s.Disabled = pytext.IsTrue(v)
	} else if v, ok := kw["enabled"]; ok {
		s.Disabled = !pytext.IsTrue(v)
	}
	if v, ok := kw["file"]; ok {
		if s.File = pytext.Str(v); !filepath.IsAbs(s.File) {
			return nil, modules.Usagef("The file %s is not an absolute path", s.File)
		}
	}
	if v, ok := kw["dist"]; ok {
		s.Dist = pytext.Str(v)
	}
	if v, ok := kw["uri"]; ok {
		s.URI = pytext.Str(v)
	}
	if s.URI != want.URI {
		s.URI = want.URI
		s.Text = s.String()
	}
	return s, nil
}

// find returns the line to change, or nil if it is still missing.
func (a *sources) find(kw map[string]any, want *source, comps, architectures []string) *source {
	for _, s := range a.list {
		byName := s.Kind == want.Kind && s.Same(&want.Line)
		byKeyword := any(s.Dist) == kw["dist"] && any(s.Kind) == kw["type"]
		if !byName && !byKeyword {
			continue
		}
		if len(s.Comps) == 0 || !slices.Equal(architectures, s.Architectures) ||
			slices.ContainsFunc(comps, func(x string) bool { return slices.Contains(s.Comps, x) }) {
			return s
		}
	}
	return nil
}

// comments returns comments, one or a list of them, on one line.
func comments(v any) string {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []string
	for _, x := range list {
		out = append(out, pytext.Str(x))
	}
	return strings.TrimSpace(strings.Join(out, " "))
}

// consolidate writes every repository once, all into the main file, and removes the other files.
func (a *sources) consolidate() error {
	var out []*source
	for _, s := range a.list {
		if s.Invalid {
			continue
		}
		i := slices.IndexFunc(out, func(o *source) bool {
			return slices.Equal(o.Architectures, s.Architectures) && o.Disabled == s.Disabled && o.Kind == s.Kind && o.URI == s.URI && o.Dist == s.Dist
		})
		if i >= 0 {
			for _, comp := range s.Comps {
				if !slices.Contains(out[i].Comps, comp) {
					out[i].Comps = append(out[i].Comps, comp)
				}
			}
			continue
		}
		one, err := parseSource(s.Text, "")
		if err != nil {
			return err
		}
		out = append(out, one)
	}
	others := slices.DeleteFunc(slices.Clone(a.files), func(f string) bool { return f == aptsource.MainFile })
	a.list, a.files = out, slices.DeleteFunc(slices.Clone(a.files), func(f string) bool { return f != aptsource.MainFile })
	if err := a.save(); err != nil {
		return err
	}
	for _, f := range others {
		if err := os.Remove(a.c.Path(f)); err != nil && !os.IsNotExist(err) {
			return modules.OSError(err)
		}
	}
	return nil
}

// importKeys brings the keys that mod_repo was given to apt.
func importKeys(ctx context.Context, c *modules.Call, aptkey bool, signedby string) error {
	kw := c.Keywords
	if v, ok := kw["keyid"]; ok {
		return importByID(ctx, c, aptkey, signedby, v)
	}
	if v, ok := kw["key_url"]; ok {
		return importFromURL(ctx, c, aptkey, signedby, pytext.Str(v))
	}
	if v, ok := kw["key_text"]; ok {
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"apt-key", "add", "-"}, Stdin: pytext.Str(v)})
		if err == nil && !strings.HasPrefix(strings.ToUpper(out.Stdout), "OK") {
			err = modules.Errorf("Error: failed to add key:\n%s", pytext.Str(v))
		}
		return err
	}
	return nil
}

func importByID(ctx context.Context, c *modules.Call, aptkey bool, signedby string, ids any) error {
	keyserver := pkglist.Keyword(c, "keyserver")
	if !pytext.Truth(ids) || keyserver == "" {
		return &modules.PythonError{Type: "NameError", Msg: "both keyserver and keyid options required."}
	}
	list, ok := ids.([]any)
	if !ok {
		list = []any{ids}
	}
	for _, x := range list {
		key := pytext.Str(x)
		if n, ok := x.(int64); ok {
			key = "0x" + hexText(n)
		}
		if !aptkey {
			have, err := repoKeys(ctx, c, false, filepath.Dir(signedby))
			if err != nil {
				return err
			}
			if have[key] != nil {
				continue
			}
			added, err := addKey(ctx, c, keySource{keyid: key, keyserver: keyserver, keydir: filepath.Dir(signedby), keyfile: signedby})
			if err == nil && !added {
				err = modules.Errorf("Error: Could not add key: %s", key)
			}
			if err != nil {
				return err
			}
			continue
		}
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"apt-key", "export", key}})
		if err != nil {
			return err
		}
		if strings.HasPrefix(out.Stdout, "-----BEGIN PGP") {
			continue
		}
		cmd := []string{"apt-key", "adv", "--batch"}
		if proxy := proxyURL(ctx, c); proxy != "" && !noProxy(ctx, c, keyserver) {
			cmd = append(cmd, "--keyserver-options", "http-proxy="+proxy)
		}
		cmd = append(cmd, "--keyserver", keyserver, "--logger-fd", "1", "--recv-keys", key)
		if out, err = call(ctx, c, apt{noScope: true}, cmd...); err != nil {
			return err
		}
		if out.Retcode != 0 {
			return modules.Errorf("Error: key retrieval failed: %s", out.Stdout)
		}
	}
	return nil
}

func importFromURL(ctx context.Context, c *modules.Call, aptkey bool, signedby, url string) error {
	path, err := pkglist.Cache(ctx, c, url, c.Str("saltenv"))
	if err != nil {
		return err
	}
	if path == "" {
		return modules.Errorf("Error: file not found: %s", url)
	}
	if aptkey {
		out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"apt-key", "add", path}})
		if err == nil && !strings.HasPrefix(strings.ToUpper(out.Stdout), "OK") {
			err = modules.Errorf("Error: failed to add key from %s", url)
		}
		return err
	}
	source := keySource{path: path}
	if signedby != "" {
		source.keydir, source.keyfile = filepath.Dir(signedby), filepath.Base(signedby)
	}
	added, err := addKey(ctx, c, source)
	if err == nil && !added {
		err = modules.Errorf("Error: Could not add key: %s", path)
	}
	return err
}

// proxyURL returns the proxy that the minion's configuration names.
func proxyURL(ctx context.Context, c *modules.Call) string {
	get := func(name string) string {
		v, err := c.Exec(ctx, "config.option", name)
		if err != nil || !pytext.Truth(v) {
			return ""
		}
		return pytext.Str(v)
	}
	host, port, user, password := get("proxy_host"), get("proxy_port"), get("proxy_username"), get("proxy_password")
	switch {
	case host == "" || port == "":
		return ""
	case user != "" && password != "":
		return "http://" + user + ":" + password + "@" + host + ":" + port
	}
	return "http://" + host + ":" + port
}

func noProxy(ctx context.Context, c *modules.Call, host string) bool {
	v, err := c.Exec(ctx, "config.option", "no_proxy")
	if err != nil {
		return false
	}
	list, ok := v.([]any)
	return ok && slices.ContainsFunc(list, func(x any) bool { return pytext.Str(x) == host }) ||
		!ok && strings.Contains(pytext.Str(v), host)
}
