package pillar

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/yaml"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// ExtRequest is the request to an external pillar: an entry of the option ext_pillar for one minion.
type ExtRequest struct {
	Request
	// Pillar is the pillar so far; it must not be changed.
	Pillar map[string]any
	// Args and Kwargs are the arguments of the entry: a list becomes Args, a dict Kwargs, anything else one element
	// of Args.
	Args   []any
	Kwargs map[string]any
	// Call runs functions of the program on behalf of the minion.
	Call *modules.Call
}

// ExtFunc is an external pillar. Its result, plain or ordered, is merged over the pillar so far. An error is
// reported in the pillar; it does not end the compilation.
type ExtFunc func(ctx context.Context, r ExtRequest) (any, error)

// addExternal merges the external pillars of the option ext_pillar over out (Pillar.ext_pillar).
func (c *compilation) addExternal(out *pyobj.Dict) (*pyobj.Dict, error) {
	v, ok := c.opts["ext_pillar"]
	if !ok {
		return out, nil
	}
	list, ok := v.([]any)
	if !ok {
		c.errs = append(c.errs, `The "ext_pillar" option is malformed`)
		return out, nil
	}
	// External pillars see the pillar of the command.
	if c.req.Override.Len() > 0 {
		out = c.mergeOver(out, c.req.Override)
	}
	excluded, _ := c.opts["exclude_ext_pillar"].([]any)
	for _, x := range list {
		// A malformed entry ends the list, and stock then returns an empty pillar.
		run, ok := x.(map[string]any)
		if !ok || len(run) == 0 {
			c.errs = append(c.errs, `The "ext_pillar" option is malformed`)
			return pyobj.NewDict(), nil
		}
		var ext any
		// If an entry has several external pillars, the last one is used, as in stock.
		for _, name := range slices.Sorted(maps.Keys(run)) {
			if slices.Contains(excluded, any(name)) {
				continue
			}
			f := c.extNamed(name)
			if f == nil {
				c.o.Log.Error("Specified ext_pillar interface " + name + " is unavailable")
				continue
			}
			got, err := c.runExternal(f, out, run[name])
			if ctxErr := c.ctx.Err(); ctxErr != nil {
				return nil, ctxErr
			}
			if err != nil {
				c.errs = append(c.errs, "Failed to load ext_pillar "+name+": "+err.Error())
				c.o.Log.Error("Exception caught loading ext_pillar '"+name+"'", "err", err)
				continue
			}
			ext = got
		}
		// The result may be plain or ordered.
		ext = pyobj.From(ext)
		if !pyobj.Truth(ext) {
			continue
		}
		d, ok := ext.(*pyobj.Dict)
		if !ok {
			return nil, errors.New("Cannot update using non-dict types in dictupdate.update()")
		}
		out = c.mergeOver(out, d)
	}
	return out, nil
}

// BuiltIn are the names of the external pillars that need no function in [Options].
var BuiltIn = []string{"cmd_json", "cmd_yaml", "file_tree", "http_json", "http_yaml"}

// extNamed returns an external pillar: the program's own, otherwise a built-in one, or nil if it is missing.
func (c *compilation) extNamed(name string) ExtFunc {
	if f := c.o.Ext[name]; f != nil {
		return f
	}
	switch name {
	case "cmd_json":
		return cmdJSON
	case "cmd_yaml":
		return cmdYAML
	case "http_json", "http_yaml":
		return httpPillar(strings.TrimPrefix(name, "http_"))
	case "file_tree":
		return c.fileTreePillar
	}
	return nil
}

// runExternal calls an external pillar. A panic in it becomes its error, so that one plug-in cannot stop a master.
func (c *compilation) runExternal(f ExtFunc, soFar *pyobj.Dict, val any) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	r := ExtRequest{Request: c.req, Pillar: pyobj.PlainMap(soFar), Call: c.call}
	switch v := val.(type) {
	case map[string]any:
		r.Kwargs = v
	case []any:
		r.Args = v
	default:
		r.Args = []any{v}
	}
	return f(c.ctx, r)
}

// commandArg binds the arguments of cmd_json and cmd_yaml by Python's rules and returns the command with the
// minion's id in it.
func commandArg(r ExtRequest) (string, error) {
	given, named := r.Kwargs["command"]
	for _, k := range slices.Sorted(maps.Keys(r.Kwargs)) {
		if k != "command" {
			return "", fmt.Errorf("ext_pillar() got an unexpected keyword argument '%s'", k)
		}
	}
	// Stock passes two arguments of its own first, which its errors count.
	switch n := len(r.Args); {
	case n > 1:
		return "", fmt.Errorf("ext_pillar() takes 3 positional arguments but %d were given", n+2)
	case n == 1:
		given = r.Args[0]
	case !named:
		return "", errors.New("ext_pillar() missing 1 required positional argument: 'command'")
	}
	if s, ok := given.(string); ok {
		return strings.ReplaceAll(s, "%s", r.ID), nil
	}
	return "", nil
}

// cmdJSON implements the external pillar cmd_json: the JSON that a command prints. Output that is not JSON is
// logged and ignored.
func cmdJSON(ctx context.Context, r ExtRequest) (any, error) {
	cmd, err := commandArg(r)
	if err != nil {
		return nil, err
	}
	v, err := r.Call.Exec(ctx, "cmd.run", cmd)
	var out any
	if err == nil {
		out, err = pyjson.ParseObject([]byte(pytext.Str(v)))
	}
	if err != nil {
		r.Call.Logger().Error("JSON data from "+cmd+" failed to parse", "err", err)
		return nil, nil
	}
	return out, nil
}

// cmdYAML implements the external pillar cmd_yaml: the YAML that a command prints.
func cmdYAML(ctx context.Context, r ExtRequest) (any, error) {
	cmd, err := commandArg(r)
	if err != nil {
		return nil, err
	}
	v, err := r.Call.ExecKw(ctx, "cmd.run_stdout", []any{cmd}, map[string]any{"python_shell": true})
	var out any
	if err == nil {
		out, err = yaml.ParseObject([]byte(pytext.Str(v)), "<command>", false)
	}
	if err != nil {
		r.Call.Logger().Error("YAML data from '"+cmd+"' failed to parse", "err", err)
		return nil, nil
	}
	return out, nil
}

// bindArgs binds the arguments of an external pillar, whose names are given in order. The first required ones must be
// given.
func bindArgs(r ExtRequest, names []string, required int) (map[string]any, error) {
	if n := len(r.Args); n > len(names) {
		return nil, fmt.Errorf("ext_pillar() takes from %d to %d positional arguments but %d were given", required+2, len(names)+2, n+2)
	}
	out := make(map[string]any, len(names))
	for i, v := range r.Args {
		out[names[i]] = v
	}
	for _, k := range slices.Sorted(maps.Keys(r.Kwargs)) {
		if !slices.Contains(names, k) {
			return nil, fmt.Errorf("ext_pillar() got an unexpected keyword argument '%s'", k)
		}
		out[k] = r.Kwargs[k]
	}
	for _, name := range names[:required] {
		if _, ok := out[name]; !ok {
			return nil, fmt.Errorf("ext_pillar() missing 1 required positional argument: '%s'", name)
		}
	}
	return out, nil
}

// httpPillar returns the external pillars http_json and http_yaml, which request data for a minion from a server. The
// URL can contain the minion's id and, with with_grains, its grains. A failed query is logged and ignored.
func httpPillar(kind string) ExtFunc {
	names := []string{"url", "with_grains", "header_dict", "auth", "username", "password"}
	if kind == "json" {
		names = append(names, "namespace")
	}
	return func(ctx context.Context, r ExtRequest) (any, error) {
		args, err := bindArgs(r, names, 1)
		if err != nil {
			return nil, err
		}
		address, ok := args["url"].(string)
		if !ok {
			return nil, fmt.Errorf("'%s' object has no attribute 'replace'", pyobj.TypeName(args["url"]))
		}
		// The id is quoted, since it comes from the minion.
		address = strings.ReplaceAll(address, "%s", quoteURL(r.ID))
		if pytext.Truth(args["with_grains"]) {
			if address, err = withGrains(ctx, r, address); err != nil || address == "" {
				return nil, err
			}
		}
		v, err := r.Call.ExecKw(ctx, "http.query", nil, map[string]any{"url": address, "text": true,
			"header_dict": args["header_dict"], "auth": args["auth"], "username": args["username"], "password": args["password"]})
		shown := publicPart(address)
		public := func(text string) string { return strings.ReplaceAll(text, address, shown) }
		if err != nil {
			return nil, errors.New(public(err.Error())) // the minion sees it, so user, password and query are removed
		}
		data, _ := v.(map[string]any)
		text, ok := data["text"]
		if !ok || data["error"] != nil {
			r.Call.Logger().Error("Error on minion '"+r.ID+"' http query: "+shown, "err", public(pytext.Str(data["error"])))
			return nil, nil
		}
		// The text is parsed here, because http.query would lose the order of keys.
		var got any
		if b := []byte(pytext.Str(text)); kind == "json" {
			got, err = pyjson.ParseObject(b)
		} else {
			got, err = yaml.ParseObject(b, shown, false)
		}
		if err == nil && pytext.Truth(args["namespace"]) {
			out := pyobj.NewDict()
			return out, out.Set(pytext.Str(args["namespace"]), pyobj.From(got))
		}
		return got, err
	}
}

// publicPart returns the part of an address that a log may show: without user, password and query, which often
// contain tokens.
func publicPart(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "<address>"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}

// withGrains replaces names in angle brackets with grains. It returns "" if the minion does not have one of them.
func withGrains(ctx context.Context, r ExtRequest, url string) (string, error) {
	for from := 0; ; {
		i := strings.IndexByte(url[from:], '<')
		if i < 0 {
			return url, nil
		}
		i += from
		name, _, ok := strings.Cut(url[i+1:], ">")
		if !ok {
			return url, nil
		}
		v, err := r.Call.Exec(ctx, "grains.get", name, nil)
		if err != nil {
			return "", err
		}
		if !pytext.Truth(v) {
			r.Call.Logger().Error("Unable to get minion '" + r.ID + "' grain: " + name)
			return "", nil
		}
		value := quoteURL(pytext.Str(v))
		url = strings.ReplaceAll(url, "<"+name+">", value)
		from = i + len(value)
	}
}

// quoteURL implements urllib.parse.quote.
func quoteURL(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c == '/' || c == '-' || c == '.' || c == '_' || c == '~' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}
